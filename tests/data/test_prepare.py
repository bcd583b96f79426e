"""Preparation of raw columns, the survey, and files that are there or not."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lssvm import scan
from lssvm._core.errors import InvalidInputError
from lssvm.data import Preparation
from lssvm.data.arrow import write_table
from lssvm.data.prepare import survey
from lssvm.data.raw import RawBlock, TextColumn, rechunk

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


def test_numbers_are_standardised_and_text_is_one_hot():
    ready = Preparation.learn(scan(frame))
    X = ready.transform(frame)
    assert ready.feature_names == (
        "far",
        "town=Aalst",
        "town=Bruges",
        "town=Ypres",
        "constant",
        "small",
    )
    np.testing.assert_allclose(X[:, [0, 5]].mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(X[:, [0, 5]].std(axis=0), 1.0, rtol=1e-9)
    np.testing.assert_allclose(X[:, 4], 0.0, atol=1e-12)
    np.testing.assert_array_equal(X[:, 1:4], pd.get_dummies(frame["town"]).to_numpy(float))


def test_weights_count_rows_several_times():
    weight = rng.integers(0, 3, N).astype(float)
    ready = Preparation.learn(scan(frame.assign(w=weight), weight="w"))
    repeated = frame.loc[np.repeat(np.arange(N), weight.astype(int))]
    expected = Preparation.learn(scan(repeated))
    np.testing.assert_allclose(ready.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(ready.scale, expected.scale, rtol=1e-9)


def test_json_keeps_everything():
    table = frame.copy()
    table.loc[3, "town"], table.loc[5, "far"] = None, np.nan
    ready = Preparation.learn(scan(table, missing="impute"))
    again = Preparation.from_dict(json.loads(json.dumps(ready.to_dict())))
    assert (again.transform(table) == ready.transform(table)).all()
    assert again.categories == ((None, "Aalst", "Bruges", "Ypres"),)
    assert ready.transform(table)[5, 0] == 0.0
    assert ready.transform(table)[3, 1] == 1.0


def test_unseen_strings_give_zeros():
    ready = Preparation.learn(scan(frame))
    assert ready.transform(frame[:1].assign(town="Namur"))[0, 1:4].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"far": np.inf}, r"'far' has an infinite value \(inf\) in row 9000"),
        ({"far": np.nan}, r"'far' has a missing value \(NaN\) in row 9000"),
        ({"town": None}, r"'town' has a missing value \(NaN\) in row 9000"),
    ],
)
def test_values_that_cannot_be_used_are_named(change, message):
    table = frame.copy()
    for name, value in change.items():
        table.loc[9000, name] = value
    with pytest.raises(InvalidInputError, match=message):
        Preparation.learn(scan(table))
    with pytest.raises(InvalidInputError, match=message):
        Preparation.learn(scan(frame)).transform(table)


def test_too_many_categories():
    table = frame.assign(identity=[f"id{i}" for i in range(N)])
    with pytest.raises(InvalidInputError, match="'identity' has more than max_categories=64"):
        Preparation.learn(scan(table))
    with pytest.raises(InvalidInputError, match="'town' has more than max_categories=2"):
        Preparation.learn(scan(frame, max_categories=2))


def test_text_where_numbers_were_learned():
    ready = Preparation.learn(scan(frame))
    with pytest.raises(InvalidInputError, match="'far'"):
        ready.transform(frame.assign(far="text"))


# -- blocks cut anew, survey -----------------------------------------------------------------


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
        blocks.append(RawBlock(numbers[start:stop], (text,), None, None, start, place))
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
    found = survey(scan(X, y, batch_rows=777), 500, seed=1, classes=True)
    again = survey(scan(X, y), 500, seed=1, classes=True)
    assert (found.positions == again.positions).all()
    assert (found.mean == again.mean).all()
    assert found.classes.tolist() == ["common", "rare"]
    assert found.counts.tolist() == [N - 10, 10]
    assert (found.sample.target == "rare").sum() == 10
    assert 500 <= len(found.positions) <= 530
    np.testing.assert_array_equal(found.sample.numbers, X[found.positions])
    assert abs(found.positions.mean() / N - 0.5) < 0.05  # from everywhere
    other = survey(scan(X, y), 500, seed=2, classes=True)
    assert (other.positions[:500] != found.positions[:500]).any()


def test_the_survey_knows_the_moments_of_the_features():
    table = frame.assign(y=0.0)
    found = survey(scan(table, "y", standardise=False), 100)
    X = found.preparation.transform(table)
    np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.variance[:4], X.var(axis=0)[:4], rtol=1e-6)
    assert not found.complete
    assert survey(scan(table, "y"), N).complete


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
