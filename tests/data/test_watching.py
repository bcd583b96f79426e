"""A file that changes between the passes of a fit is noticed and named, whatever its format."""

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from lssvm import FixedSizeLSSVC, scan
from lssvm._core.errors import InvalidInputError
from lssvm.data import Scan
from lssvm.estimators import opening as scan_opening

N = 1500
KINDS = ["parquet", "feather", "csv", "svm", "npy"]


def rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(10, 99, (n, 2))  # numbers of two digits: files of n rows have one length
    return X, (X[:, 0] + X[:, 1] > 109).astype(int)


def write(path, X, y):
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    table = pa.Table.from_pandas(frame, preserve_index=False)
    match path.suffix[1:]:
        case "parquet":
            pq.write_table(table, path, compression="none", use_dictionary=False)
        case "feather":
            pyarrow.feather.write_feather(table, str(path), compression="uncompressed")
        case "csv":
            frame.to_csv(path, index=False)
        case "svm":
            lines = [f"{c} 1:{a} 2:{b}\n" for (a, b), c in zip(X, y, strict=True)]
            path.write_text("".join(lines))
        case "npy":
            np.save(path, np.column_stack([X, y]))


def opened(path):
    target = {"svm": None, "npy": 2}.get(path.suffix[1:], "y")
    return scan(path, target=target)


@pytest.fixture
def between_passes(monkeypatch):
    """Let something happen after the first pass of a fit, of which only a sample is in memory."""

    def arrange(action):
        real = Scan.sample

        def sample(*args, **options):
            found = real(*args, **options)
            action()
            return found

        monkeypatch.setattr(Scan, "sample", sample)
        monkeypatch.setattr(scan_opening, "SAMPLE_ROWS", 1000)

    return arrange


def fit(data):
    return FixedSizeLSSVC(10, C=1.0, gamma=0.5, random_state=0).fit(data)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", ["removed", "added", "replaced", "gone"])
def test_a_file_that_changes_between_passes_stops_the_fit(kind, change, tmp_path, between_passes):
    path = tmp_path / f"rows.{kind}"
    X, y = rows()
    write(path, X, y)
    data, before = opened(path), os.stat(path)

    def alter():
        if change == "gone":
            path.unlink()
        elif change == "replaced":  # nothing but the targets differs, not even the time
            if kind == "npy":
                np.load(path, mmap_mode="r+")[:, 2] = 1 - y
            else:
                write(path, X, 1 - y)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        else:
            n = N - 100 if change == "removed" else N + 100
            other = tmp_path / f"other.{kind}"
            write(other, *rows(n))
            os.replace(other, path)

    between_passes(alter)
    with pytest.raises(InvalidInputError, match=rf"rows\.{kind} changed while it was read"):
        fit(data)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_left_alone_is_fitted_and_may_change_afterwards(
    kind, tmp_path, between_passes
):
    path = tmp_path / f"rows.{kind}"
    write(path, *rows())
    between_passes(lambda: None)
    data = opened(path)
    assert fit(data).score(data) > 0.9
    if kind != "npy":  # which is mapped when the scan is made
        write(path, *rows(N + 7, seed=1))
        assert fit(opened(path)).score(opened(path)) > 0.9


def test_the_file_that_changed_is_the_one_named(tmp_path, between_passes):
    X, y = rows()
    for name in ("a", "b", "c"):
        write(tmp_path / f"{name}.csv", X[:500], y[:500])
    between_passes(lambda: write(tmp_path / "b.csv", X[:500], 1 - y[:500]))
    with pytest.raises(InvalidInputError, match=r"^\S*b\.csv changed"):
        fit(scan(tmp_path, target="y"))


def test_rows_added_while_a_single_pass_reads_them_are_noticed(tmp_path):
    path = tmp_path / "rows.svm"
    write(path, *rows(9000))
    blocks = scan(path, batch_rows=100).blocks()
    with pytest.raises(InvalidInputError, match=r"rows\.svm changed while it was read"):
        for _ in blocks:
            with path.open("a") as file:
                file.write("1 1:5\n")


def test_rows_counted_before_must_be_those_of_the_pass(tmp_path):
    path = tmp_path / "rows.csv"
    write(path, *rows())
    data = scan(path, target="y")
    assert data.n_rows == N
    write(path, *rows(N - 1))
    with pytest.raises(InvalidInputError, match=r"rows\.csv changed.*1,500 rows.*1,499"):
        list(data.blocks())


def test_held_out_parts_of_a_file_are_watched_too(tmp_path, between_passes):
    path = tmp_path / "rows.parquet"
    X, y = rows(2000)
    write(path, X, y)
    rest, _ = scan(path, target="y").split(0.1)
    between_passes(lambda: write(path, *rows(2000, seed=3)))
    with pytest.raises(InvalidInputError, match=r"rows\.parquet changed"):
        fit(rest)
