"""The splits, statistics and printed values of the 2011 study."""

import json

import numpy as np
import pandas as pd
import pytest
from benchmarks.study.printed_2011 import SETS
from benchmarks.study.statistics import wilcoxon_test

from benchmarks import circulant2011, tables_circulant2011


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((215, 5))
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["target"] = np.where(X[:, 0] + 0.3 * rng.standard_normal(215) > 0, 1, -1)
    frame.to_parquet(tmp_path / "rae_thyroid.parquet")
    frame["split"] = np.where(np.arange(215) < 75, "test", "train")
    (tmp_path / "given").mkdir()
    frame.to_parquet(tmp_path / "given" / "rae_thyroid.parquet")
    return tmp_path


def test_splits_have_the_published_sizes(folder):
    X, y, X_test, y_test = circulant2011.split(folder, "thyroid", 3)
    assert (len(X), len(y_test)) == (140, 75)
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1.0)
    assert set(y) == {-1, 1}
    again = circulant2011.split(folder, "thyroid", 3)
    np.testing.assert_array_equal(again[2], X_test)
    assert not np.array_equal(circulant2011.split(folder, "thyroid", 4)[2], X_test)


def test_split_0_is_the_predefined_one(folder):
    X_test = circulant2011.split(folder / "given", "thyroid", 0)[2]
    raw = pd.read_parquet(folder / "given" / "rae_thyroid.parquet")[list("abcde")].to_numpy()
    np.testing.assert_allclose(X_test[0] * raw[75:].std(axis=0) + raw[75:].mean(axis=0), raw[0])


def test_repeated_factorisation_finds_what_the_exact_path_finds(folder):
    X, y, _, _ = circulant2011.split(folder, "thyroid", 1)
    C, gamma = circulant2011.repeated_factorisation(X, y)
    results = circulant2011.tune(X, y, search=circulant2011.GRID).cv_results_
    scores = results["mean_test_score"]
    chosen = (results["param_C"] == C) & (results["param_gamma"] == gamma)
    assert scores[chosen][0] == scores.max()


def test_z_statistic_is_that_of_the_paper():
    x, y = np.array([3.0, 5.0, 4.0, 4.0]), np.array([2.0, 2.0, 3.0, 1.0])
    spread = x.var(ddof=1) / 4 + y.var(ddof=1) / 4
    assert tables_circulant2011.z_statistic(x, y) == pytest.approx(2.0 / np.sqrt(spread))
    assert tables_circulant2011.paired_z(x, x) == 0.0


def test_the_printed_text_disagrees_with_the_printed_table():
    z = {
        name: (spec.approximate_error - spec.exact_error)
        / (np.hypot(spec.exact_spread, spec.approximate_spread) / np.sqrt(spec.replications))
        for name, spec in SETS.items()
    }
    assert sum(value > 1.64 for value in z.values()) == 8
    exact = np.array([spec.exact_error for spec in SETS.values()])
    approximate = np.array([spec.approximate_error for spec in SETS.values()])
    assert wilcoxon_test(approximate, exact) < 0.05


def test_tables_are_made_of_what_is_there(tmp_path, capsys, monkeypatch):
    lines = [
        {"set": "heart", "randomisation": r, "method": m, "error": 10.0 + r, "processor_s": 1.0}
        for r in range(3)
        for m in circulant2011.SEARCHES
    ]
    lines.append(
        {"set": "growth", "randomisation": 1024, "method": "levels 1", "n": 1024}
        | {"whole_s": 0.1, "layout_s": 0.05, "first_row_s": 0.01}
    )
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    monkeypatch.setattr("sys.argv", ["tables", "--results", str(path)])
    tables_circulant2011.main()
    text = capsys.readouterr().out
    assert "| heart | 170 | 3 | 16.20 ± 3.26 | 18.92 ± 4.58 | 11.00 ± 1.00 |" in text
    assert "| 1,024 | 0.1000 | 9765.6 | 0.0500 |" in text
