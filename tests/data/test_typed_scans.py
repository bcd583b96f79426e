"""A scan is the frame: the same columns, whatever the file is."""

from __future__ import annotations

import numpy as np
import pytest

from lssvm import LSSVMClassifier, LSSVMRegressor, scan
from lssvm.data.columns import read_table
from lssvm.data.raw import RawBlock

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


def frame(n=90):
    rng = np.random.default_rng(0)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.permutation(n), unit="D")
    return pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "new": rng.random(n) < 0.4,
            "when": day,
            "job": rng.choice(["cook", "smith", "pilot"], n),
        }
    )


WRITERS = {
    "csv": lambda table, path: table.to_csv(path, index=False),
    "parquet": lambda table, path: table.to_parquet(path),
    "feather": lambda table, path: table.to_feather(path),
    "xlsx": lambda table, path: table.to_excel(path, index=False),
}


def typed(data):
    return RawBlock.join(list(data.blocks())).table


@pytest.mark.parametrize("ending", [*WRITERS, "memory"])
def test_a_scan_has_the_columns_of_the_frame(ending, tmp_path):
    table = frame()
    if ending == "xlsx":
        pytest.importorskip("openpyxl")
    where = tmp_path / f"t.{ending}"
    if ending == "memory":
        where = table
    else:
        WRITERS[ending](table, where)
    for mine, its in zip(typed(scan(where)).columns, read_table(table).columns, strict=True):
        assert (mine.name, mine.kind, mine.levels) == (its.name, its.kind, its.levels)
        np.testing.assert_array_equal(mine.values, its.values)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_model_of_a_scan_is_that_of_the_frame(ending, tmp_path):
    table = frame()
    y = np.sin(table["x"]) + table["new"] + table["when"].dt.day_of_year / 50.0
    WRITERS[ending](table.assign(y=y), tmp_path / f"t.{ending}")
    options = {"preset": "fast", "random_state": 0}
    mine = LSSVMRegressor(**options).fit(scan(tmp_path / f"t.{ending}", target="y"))
    its = LSSVMRegressor(**options).fit(table, y)
    expected = its.predict(table)
    np.testing.assert_allclose(mine.predict(table), expected, atol=1e-8)
    rows = scan(tmp_path / f"t.{ending}", columns=list(table.columns))
    np.testing.assert_allclose(its.predict(rows), expected, atol=1e-8)


def test_dates_of_a_zone_keep_it(tmp_path):
    table = frame()
    table["when"] = table["when"].dt.tz_localize("Europe/Amsterdam")
    table.to_parquet(tmp_path / "t.parquet")
    (column,) = (c for c in typed(scan(tmp_path / "t.parquet")).columns if c.name == "when")
    (expected,) = (c for c in read_table(table).columns if c.name == "when")
    assert column.zone == expected.zone == "Europe/Amsterdam"
    np.testing.assert_array_equal(column.values, expected.values)


def test_dates_of_every_form_in_a_file(tmp_path):
    table = frame()
    y = (table["x"] > 0).astype(int)
    other = table.assign(when=table["when"].dt.strftime("%m/%d/%Y %I:%M %p"), y=y)
    other.to_csv(tmp_path / "t.csv", index=False)
    mine = LSSVMClassifier(preset="fast", random_state=0).fit(scan(tmp_path / "t.csv", target="y"))
    its = LSSVMClassifier(preset="fast", random_state=0).fit(table, y)
    np.testing.assert_allclose(mine.predict_proba(other), its.predict_proba(table), atol=1e-7)


def test_a_target_of_dates_is_refused(tmp_path):
    frame().to_parquet(tmp_path / "t.parquet")
    with pytest.raises(
        ValueError, match=r"The target 'when' .*holds dates: give numbers or classes"
    ):
        list(scan(tmp_path / "t.parquet", target="when").blocks())
