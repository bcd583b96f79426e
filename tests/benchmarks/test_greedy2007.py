"""The study of the 2007 paper: its printed tables, its data and its report."""

import numpy as np
import pytest
from benchmarks.study import printed_2007 as printed

from benchmarks import figures_2007, greedy2007, tables_greedy2007


@pytest.mark.parametrize("name", printed.TABLES)
def test_printed_tables_are_complete_and_plausible(name):
    for method, fields in printed.TABLES[name].items():
        for field, values in fields.items():
            assert len(values) == 12, (method, field)
        known = [a for a in fields["accuracy"] if a is not None]
        assert 0.8 < min(known) and max(known) < 1.0
        times = np.array([t for t in fields["seconds"] if t is not None])
        assert times.max() / times.min() < 20  # a lost decimal point would be a factor of 100


def test_ringnorm_is_the_described_one():
    X, y = greedy2007.ringnorm(4000, np.random.default_rng(0))
    assert X.shape == (4000, 20) and set(y) == {0, 1}
    np.testing.assert_allclose(X[y == 0].var(axis=0).mean(), 4.0, rtol=0.03)
    np.testing.assert_allclose(X[y == 1].var(axis=0).mean(), 1.0, rtol=0.03)
    np.testing.assert_allclose(X[y == 1].mean(), 2 / np.sqrt(20), rtol=0.03)
    np.testing.assert_allclose(X[y == 0].mean(), 0.0, atol=0.03)


def test_measures_and_reports(tmp_path):
    rng = np.random.default_rng(1)
    (X, y), (X_test, y_test) = greedy2007.ringnorm(120, rng), greedy2007.ringnorm(80, rng)
    task = greedy2007.Task(X, y, X_test, y_test, 2.0**-4)
    out = tmp_path / "results.jsonl"
    for method in ("FSALS", "PFSALS 0.4", "SVC", "LS-SVM CG", "LS-SVM SMO", "SVS", "KMP"):
        result = greedy2007.measure(method, 1, task, "1 GB")
        assert result["accuracy"] > 0.8 and 0 < result["n_support"] <= 120
        greedy2007.append(out, {"set": "usp", "method": method, "power": 1} | result)
    results = greedy2007.read(out)
    assert results["usp", "SVS", 1]["n_support"] == results["usp", "FSALS", 1]["n_support"]
    text = tables_greedy2007.report(results)
    size = results["usp", "FSALS", 1]["n_support"]
    assert f"| {size} / 1,992 |" in text and "USPS against SVC" in text


def test_a_planned_method_exists():
    task = greedy2007.Task(np.eye(3), np.arange(3), np.eye(3), np.arange(3), 1.0)
    for name, methods in greedy2007.PLAN.items():
        assert name in printed.TABLES
        for method in methods:
            made = None if method == "SVS" else greedy2007.make(method, 2, task, "1 GB")
            assert made is None or made.get_params()["C"] in (4.0, 8.0, "cv")


def test_figures_have_the_measured_points():
    line = {"accuracy": 0.98, "n_support": 90, "seconds": 0.2}
    results = {
        ("ringnorm", "FSALS 0.3", -1): line,
        ("ringnorm", "FSALS 0.8", -1): line | {"n_support": 40},
        ("ringnorm", "LS-SVM CG", -1): line | {"n_support": 3000},
        ("lan", "FSALS 0.3", 1): line,  # another gamma: not of the figures
    }
    assert figures_2007.points(results, "ringnorm", "n_support") == [(0.3, 90.0), (0.8, 40.0)]
    assert figures_2007.points(results, "lan", "accuracy") == []
    axes = figures_2007.draw(results).axes
    assert len(axes) == 6 and len(axes[2].get_lines()) == 2
    assert "| Support vectors | 3,000 | 90 | 40 |" in tables_greedy2007.report(results)
