"""Preparation of the columns of scans, samples, and files that are there or not."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lssvm import FixedSizeLSSVC, LSSVMClassifier, scan
from lssvm._core.errors import InvalidInputError
from lssvm.data.arrow import write_table
from lssvm.data.preparation import PreparationSettings, learn
from lssvm.data.raw import RawBlock, Schema, TextColumn, rechunk
from lssvm.preparation import TablePreparation

pytestmark = pytest.mark.filterwarnings("ignore::lssvm._core.errors.ColumnWarning")

rng = np.random.default_rng(0)
N = 20_000
frame = pd.DataFrame(
    {
        "far": 1e6 + rng.standard_normal(N),
        "town": np.array(["Aalst", "Bruges", "Ypres"])[rng.integers(0, 3, N)],
        "constant": np.full(N, 0.1),
        "small": 1e-6 * rng.standard_normal(N),
    }
)


PREPARED = {"target": "classes", "random_state": 0}


def fitted(data, **options):
    return FixedSizeLSSVC(10, C=1.0, gamma=0.5, random_state=0, **options).fit(data)


def labelled(n=N):
    """Return some rows with labels, a town of very many levels, gaps and dates."""
    table = frame[:n].drop(columns="constant")
    random = np.random.default_rng(1)
    number = random.integers(0, 80, n)
    table["street"] = [f"street {k}" for k in number]
    table["day"] = np.datetime64("2020-01-01") + random.integers(0, 900, n).astype("m8[D]")
    table.loc[random.integers(0, n, n // 20), "small"] = np.nan
    table.loc[random.integers(0, n, n // 20), "town"] = None
    table["y"] = np.where(number + 20 * random.standard_normal(n) > 40, "yes", "no")
    return table


def test_a_file_means_the_same_features_in_every_model(tmp_path):
    table = labelled(1500)
    table.to_parquet(tmp_path / "rows.parquet")
    X, y = table.drop(columns="y"), table["y"]
    expected = TablePreparation(**PREPARED).fit(X, y)
    for data in (scan(tmp_path / "rows.parquet", "y"), scan(table, "y")):
        ready = fitted(data).preparation_
        assert ready.feature_names == tuple(expected.get_feature_names_out())
        np.testing.assert_array_equal(ready.transform(X), expected.transform(X))
    options = {"scaling": "standardised", "kernel": "rbf", "random_state": 0}
    model = LSSVMClassifier("fast", **options).fit(scan(tmp_path / "rows.parquet", "y"))
    own = model.preparations_["standardised"]
    assert tuple(own.get_feature_names_out()) == ready.feature_names
    np.testing.assert_array_equal(own.transform(X), ready.transform(X))


@pytest.mark.parametrize("columns", [["far", "small"], ["far", "town", "street", "day", "small"]])
def test_blocks_are_prepared_as_the_whole_table_is(columns):
    table = labelled(3000)
    ready = fitted(scan(table, "y", columns=columns)).preparation_
    blocks = scan(table[columns[::-1]], batch_rows=700).blocks()
    found = np.concatenate([ready.transform(block) for block in blocks])
    np.testing.assert_array_equal(found, ready.transform(table))


def test_rows_of_the_sample_are_encoded_out_of_fold_in_every_pass():
    table = labelled(4000)
    data = scan(table, "y")
    drawn = data.sample(1200, seed=3)
    settings = PreparationSettings(target="classes")
    learned = learn(drawn.block.table, drawn.block.target, None, None, settings)
    (column,) = learned.encoded
    assert learned.prepared.names[column] == "street"
    learned = replace(learned, positions=drawn.positions)
    rows = [np.arange(block.start, block.start + len(block)) for block in data.blocks()]
    pairs = zip(data.blocks(), rows, strict=True)
    found = np.concatenate([learned.transform(block, at) for block, at in pairs])
    plain = learned.prepared.transform(table)
    (feature,) = np.flatnonzero(learned.prepared.sources == column)
    others = np.setdiff1d(np.arange(4000), drawn.positions)
    np.testing.assert_array_equal(found[others], plain[others])
    np.testing.assert_array_equal(found[drawn.positions, feature], learned.encoded[column][:, 0])
    assert np.mean(found[drawn.positions, feature] != plain[drawn.positions, feature]) > 0.9


def test_neither_batches_nor_files_change_what_is_learned(tmp_path):
    table = labelled(4000)
    table.to_parquet(tmp_path / "one.parquet")
    (tmp_path / "many").mkdir()
    for i, start in enumerate(range(0, 4000, 1300)):
        table[start : start + 1300].to_parquet(tmp_path / "many" / f"{i}.parquet")
    # A sample of 3,125 rows takes a twentieth of the budget.
    little = {"memory_budget": 3_500_000, "n_jobs": 1}
    one = fitted(scan(tmp_path / "one.parquet", "y"), **little)
    for data in (
        scan(tmp_path / "many", "y"),
        scan(tmp_path / "one.parquet", "y", batch_rows=777),
    ):
        other = fitted(data, **little)
        np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
        new = table[:50].drop(columns="y")
        np.testing.assert_array_equal(
            one.preparation_.transform(new), other.preparation_.transform(new)
        )


def test_weights_count_rows_several_times():
    table = frame.assign(y=rng.standard_normal(N))
    weight = rng.integers(0, 3, N).astype(float)
    repeated = table.loc[np.repeat(np.arange(N), weight.astype(int))]
    settings = PreparationSettings(target="numbers")
    ready = []
    for data in (scan(table.assign(w=weight), "y", weight="w"), scan(repeated, "y")):
        drawn = data.sample(3 * N).block
        ready.append(learn(drawn.table, drawn.target, drawn.weight, None, settings).prepared)
    new = frame[:100]
    np.testing.assert_allclose(ready[0].transform(new), ready[1].transform(new), atol=1e-9)


@pytest.mark.parametrize(
    ("name", "value", "options", "message"),
    [
        ("far", np.inf, {}, "'far' has an infinite value in row 900"),
        ("far", np.nan, {"missing": "refuse"}, r"'far' has a missing value \(NaN\) in row 900"),
        ("town", None, {"missing": "refuse"}, r"'town' has a missing value \(NaN\) in row 900"),
        (
            "far",
            np.nan,
            {"prepare": False, "columns": ["far"]},
            r"'far' has a missing value .* row 900",
        ),
        ("town", "Namur", {"prepare": False}, r"\['town'\] hold text, but numbers are needed"),
    ],
)
def test_values_that_cannot_be_used_are_named(name, value, options, message):
    table = frame[:2000].assign(y=np.arange(2000) % 2)
    table.loc[900, name] = value
    with pytest.raises(InvalidInputError, match=message):
        fitted(scan(table, "y", **options))


def test_refused_values_are_refused_by_every_model_and_method():
    table = frame[:400].assign(y=np.arange(400) % 2)
    missing = table.copy()
    missing.loc[9, "small"] = np.nan
    refused = scan(missing, "y", missing="refuse")
    for model in (fitted(scan(table, "y")), LSSVMClassifier("fast").fit(scan(table, "y"))):
        with pytest.raises(InvalidInputError, match=r"'small' has a missing value .* row 9"):
            model.fit(refused)
        model.fit(scan(table, "y"))
        with pytest.raises(InvalidInputError, match=r"'small' has a missing value .* row 9"):
            model.predict(refused)
        assert len(model.predict(missing)) == 400  # filled


def test_numbers_can_be_taken_as_they_are():
    X = np.column_stack([frame["far"] - 1e6, 1e6 * frame["small"]])[:500]
    y = (X[:, 0] > X[:, 1]).astype(int)
    plain = fitted(scan(X, y, prepare=False))
    assert not hasattr(plain, "preparation_")
    inside = FixedSizeLSSVC(10, C=1.0, gamma=0.5, random_state=0).fit(X, y)
    np.testing.assert_allclose(plain.decision_function(X), inside.decision_function(X), atol=1e-9)


def test_text_where_numbers_were_learned():
    model = fitted(scan(frame[:300].assign(y=np.arange(300) % 2), "y"))
    with pytest.raises(InvalidInputError, match="'far' has text or categories"):
        model.predict(scan(frame[:5].assign(far="text")))


def test_rows_cannot_be_forgotten_where_columns_are_encoded_by_the_target():
    table = labelled(1500)
    model = fitted(scan(table, "y"))
    model.partial_fit(scan(table[:10], "y"))
    with pytest.raises(InvalidInputError, match=r"\['street'\] are encoded by the target"):
        model.forget(scan(table[:10], "y"))


# -- blocks cut anew, samples -----------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 30))
def test_blocks_cut_anew_hold_the_same_rows(sizes, rows):
    n = sum(sizes)
    numbers = np.arange(n, dtype=float)[:, None]
    words = TextColumn.of([f"w{i % 5}" for i in range(n)])
    starts = np.cumsum([0, *sizes]).tolist()
    blocks = []
    for file, (start, stop) in enumerate(pairwise(starts)):
        levels = [words.levels[c] for c in words.codes[start:stop]]
        place = ((0, f"f{file}", 0),)
        text = TextColumn.of(levels)
        schema = Schema(("a", "b"), ("number", "text"))
        blocks.append(RawBlock(schema, numbers[start:stop], (text,), None, None, start, place))
    cut = list(rechunk(blocks, rows))
    assert [len(block) for block in cut] == [min(rows, n - s) for s in range(0, n, rows)]
    found = [t.levels[c] for block in cut for t in block.texts for c in t.codes]
    assert found == [f"w{i % 5}" for i in range(n)]
    for block in cut:
        for i in range(len(block)):
            position = int(block.numbers[i, 0])
            file = int(np.searchsorted(starts, position, side="right")) - 1
            assert block.place(i) == f"row {position - starts[file]} of f{file}"


def test_the_sample_does_not_depend_on_batches_and_holds_every_class():
    X = rng.standard_normal((N, 2))
    y = np.where(np.arange(N) % 2000 == 7, "rare", "common")
    found = scan(X, y, batch_rows=777).sample(500, seed=1, classes=True)
    again = scan(X, y).sample(500, seed=1, classes=True)
    assert (found.positions == again.positions).all()
    assert found.classes.tolist() == ["common", "rare"]
    assert found.counts.tolist() == [N - 10, 10]
    assert (found.block.target == "rare").sum() == 10
    assert 500 <= len(found.positions) <= 530
    np.testing.assert_array_equal(found.block.numbers, X[found.positions])
    assert abs(found.positions.mean() / N - 0.5) < 0.05  # from everywhere
    other = scan(X, y).sample(500, seed=2, classes=True)
    assert (other.positions[:500] != found.positions[:500]).any()
    assert not found.complete
    assert scan(X, y).sample(N).complete


# -- files that are there or not -------------------------------------------------------------


def test_a_failure_leaves_the_old_file(tmp_path):
    path = str(tmp_path / "p.parquet")
    write_table([{"p": np.ones(3)}], path)
    before = (tmp_path / "p.parquet").read_bytes()

    def parts():
        yield {"p": np.zeros(3)}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_table(parts(), path)
    assert (tmp_path / "p.parquet").read_bytes() == before
    assert os.listdir(tmp_path) == ["p.parquet"]


def test_names_that_cannot_be_written(tmp_path):
    with pytest.raises(InvalidInputError, match="has to end"):
        write_table([], str(tmp_path / "p.xlsx"))
    with pytest.raises(InvalidInputError, match="does not exist"):
        write_table([], str(tmp_path / "no" / "p.csv"))


KILLED = """
import sys, time
import numpy as np
from lssvm.data.arrow import write_table

def parts():
    for i in range(1000):
        print(i, flush=True)
        yield {"p": np.zeros(100_000)}
        time.sleep(0.01)

write_table(parts(), sys.argv[1])
"""


def test_a_killed_process_leaves_the_old_file(tmp_path):
    path = tmp_path / "p.parquet"
    write_table([{"p": np.ones(3)}], str(path))
    before = path.read_bytes()
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
    )
    for _ in range(5):  # some blocks are written
        process.stdout.readline()
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert path.read_bytes() == before
    assert write_table([{"p": np.zeros(2)}], str(path)) == str(path)
    assert len(pd.read_parquet(path)) == 2
