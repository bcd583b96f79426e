"""Files of every kind are read in order, and what is wrong with them is named."""

import gzip
import re
from itertools import chain, pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lssvm import scan
from lssvm._core.errors import InvalidInputError

N = 20_000
rng = np.random.default_rng(0)
frame = pd.DataFrame(
    {
        "a": rng.standard_normal(N),
        "b": rng.integers(0, 5, N),
        "c": rng.integers(0, 2, N).astype(bool),
        "d": np.array(["x", "y", "z"])[rng.integers(0, 3, N)],
        "y": rng.standard_normal(N),
    }
)


def columns(data):
    """Return all numbers, texts and targets of a scan."""
    blocks = list(data.blocks())
    assert [block.start for block in blocks] == list(range(0, data.n_rows, 8192))
    numbers = np.concatenate([block.numbers for block in blocks])
    texts = [[text.levels[code] for code in text.codes] for b in blocks for text in b.texts]
    target = np.concatenate([block.target for block in blocks])
    return numbers, list(chain.from_iterable(texts)), target


def write_parquet(folder, part=frame, cuts=(0, 7000, 7001, N)):
    for i, (start, stop) in enumerate(pairwise(cuts)):
        table = pa.Table.from_pandas(part[start:stop], preserve_index=False)
        pq.write_table(table, folder / f"part{i}.parquet", row_group_size=900)


@pytest.mark.parametrize("kind", ["folder", "pattern", "list", "csv", "tsv", "feather", "table"])
@pytest.mark.parametrize("batch_rows", [1000, 65_536])
def test_rows_come_in_order_from_files_of_every_kind(kind, batch_rows, tmp_path):
    write_parquet(tmp_path)
    (tmp_path / "_SUCCESS").touch()
    where = {
        "folder": tmp_path,
        "pattern": str(tmp_path / "*.parquet"),
        "list": [tmp_path / f"part{i}.parquet" for i in range(3)],
        "csv": tmp_path / "one" / "rows.csv",
        "tsv": tmp_path / "one" / "rows.tsv",
        "feather": tmp_path / "one" / "rows.feather",
        "table": frame,
    }[kind]
    if kind in ("csv", "tsv", "feather"):
        (tmp_path / "one").mkdir()
        if kind == "feather":
            frame.to_feather(where)
        else:
            frame.to_csv(where, index=False, sep="," if kind == "csv" else "\t")
    data = scan(where, "y", batch_rows=batch_rows)
    assert data.n_rows == N
    assert data.schema.names == ("a", "b", "c", "d")
    assert data.schema.kinds == ("number", "number", "boolean", "text")
    numbers, texts, target = columns(data)
    np.testing.assert_array_equal(numbers, frame[["a", "b", "c"]].to_numpy(float))
    assert texts == frame["d"].tolist()
    np.testing.assert_array_equal(target, frame["y"])


def test_only_named_columns_are_read(tmp_path):
    write_parquet(tmp_path)
    data = scan(tmp_path, "d", columns=["b", "a"], weight="c")
    numbers, _, target = columns(data)
    np.testing.assert_array_equal(numbers, frame[["b", "a"]])
    assert target.tolist() == frame["d"].tolist()
    weights = np.concatenate([block.weight for block in data.blocks()])
    np.testing.assert_array_equal(weights, frame["c"])


def test_dictionary_columns_and_nulls(tmp_path):
    table = pa.table(
        {
            "d": pa.array(["u", None, "v", "u"]).dictionary_encode(),
            "i": pa.array([1, None, 3, 4]),
            "t": pa.array([True, None, False, True]),
            "y": pa.array(["no", "yes", "no", "yes"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (tmp_path / "t.parquet", table):
        (block,) = scan(source, "y").blocks()
        np.testing.assert_array_equal(block.numbers, [[1, 1], [np.nan, np.nan], [3, 0], [4, 1]])
        levels = block.texts[0].levels
        assert [levels[code] if code >= 0 else None for code in block.texts[0].codes] == [
            "u",
            None,
            "v",
            "u",
        ]
        assert block.target.tolist() == ["no", "yes", "no", "yes"]


def test_whole_numbers_at_the_start_of_a_csv_file_do_not_fix_the_type(tmp_path):
    lines = [f"{i},{i}" for i in range(200_000)] + ["0.5,0.25"]
    (tmp_path / "t.csv").write_text("a,y\n" + "\n".join(lines) + "\n")
    numbers, _, target = columns(scan(tmp_path / "t.csv", "y"))
    assert numbers[-1, 0] == 0.5
    assert target[-1] == 0.25


def test_libsvm_text(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("+1 1:0.5 3:2  # note\n-1 2:1e-1\n\n3\n")
    data = scan(path)
    (block,) = data.blocks()
    assert data.n_rows == 3
    assert data.feature_names == ("1", "2", "3")
    np.testing.assert_array_equal(block.numbers, [[0.5, 0, 2], [0, 0.1, 0], [0, 0, 0]])
    assert block.target.tolist() == [1.0, -1.0, 3.0]
    with gzip.open(tmp_path / "t.svm.gz", "wt") as file:
        file.write(path.read_text())
    (zipped,) = scan(tmp_path / "t.svm.gz").blocks()
    np.testing.assert_array_equal(zipped.numbers, block.numbers)
    (block,) = scan(path, columns=[3, 9]).blocks()
    np.testing.assert_array_equal(block.numbers, [[2, 0], [0, 0], [0, 0]])


def test_memory_maps_and_arrays(tmp_path):
    X = rng.standard_normal((100, 3)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    data = scan(tmp_path / "X.npy", target=-1, weight=0)
    (block,) = data.blocks()
    assert data.feature_names == ("x1",)
    np.testing.assert_array_equal(block.numbers, X[:, [1]])
    np.testing.assert_array_equal(block.target, X[:, 2])
    np.testing.assert_array_equal(block.weight, X[:, 0])
    assert isinstance(data.reader.X, np.memmap)


# -- faults ----------------------------------------------------------------------------------


def read(*args, **options):
    data = scan(*args, **options)
    return [len(block) for block in data.blocks()]


def test_nothing_matches(tmp_path):
    with pytest.raises(InvalidInputError, match=r"No file matches .*nothing"):
        scan(tmp_path / "nothing*.parquet", "y")
    with pytest.raises(InvalidInputError, match="No file matches"):
        scan(tmp_path, "y")


def test_a_missing_column(tmp_path):
    write_parquet(tmp_path)
    with pytest.raises(InvalidInputError, match=r"part0\.parquet has no column 'z'"):
        scan(tmp_path, "z")
    frame.drop(columns="b").to_parquet(tmp_path / "part9.parquet", index=False)
    with pytest.raises(InvalidInputError, match=r"part9\.parquet has no column 'b'"):
        read(tmp_path, "y")
    with pytest.raises(InvalidInputError, match=r"part9\.parquet has no column 'b'"):
        _ = scan(tmp_path, "y").n_rows


def test_a_schema_that_changes_between_files(tmp_path):
    write_parquet(tmp_path)
    frame.assign(a="text").to_parquet(tmp_path / "part9.parquet", index=False)
    with pytest.raises(InvalidInputError, match=r"'a' of .*part9\.parquet holds texts, but number"):
        read(tmp_path, "y")


def test_a_column_of_another_type(tmp_path):
    frame.assign(blob=b"3").to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match=r"'blob' of .*t\.parquet has the type binary"):
        scan(tmp_path, "y")


@pytest.mark.parametrize("keep", [0, 3, 500, -4, -30_000])
def test_a_truncated_parquet_file(tmp_path, keep):
    write_parquet(tmp_path)
    whole = (tmp_path / "part2.parquet").read_bytes()
    (tmp_path / "part2.parquet").write_bytes(whole[:keep])
    with pytest.raises(InvalidInputError, match=r"part2\.parquet"):
        read(tmp_path, "y")


def test_damaged_pages_of_a_parquet_file(tmp_path):
    write_parquet(tmp_path)
    whole = bytearray((tmp_path / "part2.parquet").read_bytes())
    whole[4:300] = bytes(296)
    (tmp_path / "part2.parquet").write_bytes(whole)
    with pytest.raises(InvalidInputError, match=r"part2\.parquet cannot be read in column '[ab]'"):
        read(tmp_path, "y")


def test_a_string_where_numbers_were(tmp_path):
    lines = [f"{i},{i}.5" for i in range(200_000)] + ["oops,1"]
    (tmp_path / "t.csv").write_text("a,y\n" + "\n".join(lines) + "\n")
    with pytest.raises(
        InvalidInputError, match=r"Line 200002 of .*t\.csv has 'oops' in column 'a'"
    ):
        read(tmp_path / "t.csv", "y")


def test_empty_files(tmp_path):
    (tmp_path / "t.csv").touch()
    with pytest.raises(InvalidInputError, match=r"t\.csv is empty"):
        read(tmp_path / "t.csv", "y")
    (tmp_path / "t.csv").write_text("a,y\n")
    with pytest.raises(InvalidInputError, match=r"t\.csv is empty: it has no rows"):
        read(tmp_path / "t.csv", "y")
    frame[:0].to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match=r"t\.parquet is empty: it has no rows"):
        read(tmp_path / "t.parquet", "y")
    (tmp_path / "t.svm").write_text("# nothing\n")
    with pytest.raises(InvalidInputError, match=r"t\.svm is empty"):
        read(tmp_path / "t.svm")


def test_a_target_that_is_missing(tmp_path):
    part = frame.copy()
    part.loc[12_345, "d"] = None
    write_parquet(tmp_path, part)
    with pytest.raises(InvalidInputError, match=r"'d' is missing in row 5344 of .*part2\.parquet"):
        read(tmp_path, "d")


@pytest.mark.parametrize("line", ["one 1:2", "1 2", "1 a:2", "1 1:b", "1 1:2:3", "1 0:2"])
def test_lines_that_are_no_libsvm_text(tmp_path, line):
    (tmp_path / "t.svm").write_text("1 1:2\n" + line + "\n")
    with pytest.raises(InvalidInputError, match=r"t\.svm"):
        read(tmp_path / "t.svm")


@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        ((np.ones(3),), {}, "shape (3,)"),
        ((np.ones((3, 2)), np.ones(4)), {}, "target has shape (4,)"),
        ((np.ones((3, 2)), 2), {}, "target=2"),
        ((np.ones((3, 2)),), {"columns": [5]}, "columns=[5]"),
        ((frame, "nothing"), {}, "no columns ['nothing']"),
        ((frame, 3), {}, "target=3"),
        ((frame, "y"), {"columns": "a"}, "columns='a'"),
        ((frame, "y"), {"batch_rows": 0}, "batch_rows=0"),
        ((frame, "y"), {"missing": "drop"}, "missing='drop'"),
        ((frame, "y"), {"prepare": "no"}, "prepare='no'"),
        (([],), {}, "empty"),
    ],
)
def test_arguments_that_cannot_be_used(args, options, message):
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        read(*args, **options)


def test_files_of_several_kinds(tmp_path):
    write_parquet(tmp_path)
    (tmp_path / "more.csv").write_text("a,y\n1,2\n")
    with pytest.raises(InvalidInputError, match="one kind"):
        scan(tmp_path, "y")
    (tmp_path / "t.npy").write_bytes(b"no array")
    with pytest.raises(InvalidInputError, match=r"t\.npy cannot be mapped"):
        scan(tmp_path / "t.npy")


def test_a_target_that_becomes_text_in_another_file_is_named(tmp_path):
    for name, y in (("1.parquet", [0, 1, 0]), ("2.parquet", ["0", "1", "0"])):
        pq.write_table(pa.table({"x": [1.0, 2.0, 3.0], "y": y}), tmp_path / name)
    with pytest.raises(InvalidInputError, match=r"'y' of .*2\.parquet holds text"):
        list(scan(tmp_path, target="y").blocks())


def test_a_column_has_one_role():
    table = pd.DataFrame({"x": [1.0, 2.0], "y": [0, 1]})
    for options in ({"columns": ["x", "y"]}, {"columns": ["x", "x"]}, {"weight": "y"}):
        with pytest.raises(InvalidInputError, match="named more than once"):
            scan(table, target="y", **options)
