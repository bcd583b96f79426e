"""The laser benchmark measures what its tables say."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LinearRegression

from benchmarks import santa_fe
from lssvm import NARX


def record(origin, nmse, inside):
    rates = {f"inside_{c}": inside for c in santa_fe.COVERAGES}
    widths = {f"width_{c}": 1.0 for c in santa_fe.COVERAGES}
    return {
        "origin": origin,
        "method": "free-run",
        "nmse": nmse,
        "C": 2.0,
        "gamma": 0.5,
        "cpu_seconds": 3.0,
        **rates,
        **widths,
    }


def test_the_tables_summarise_all_origins():
    text = santa_fe.tables([record(1000, 0.04, 1.0), record(1470, 0.5, 0.6)])
    assert "| free-run | 0.040 | 2 | 0.5 | 2 | 0.270 | 0.270 | 0.50 | - | 3.0 |" in text
    assert "| 90% | 80.0% | 60% | 1 of 2 | 1.00 |" in text
    assert "one-step" not in text
    other = {**record(1000, 0.03, 1.0), "method": "one-step"}
    text = santa_fe.tables([record(1000, 0.04, 1.0), record(1470, 0.5, 0.6), other])
    assert "| one-step | 0.030 | 2 | 0.5 | 1 | 0.030 | 0.030 | 0.03 | 1 of 1 | 3.0 |" in text


def test_a_model_that_is_trained_once_continues_at_later_origins(monkeypatch):
    y = np.sin(0.3 * np.arange(2000.0)) + 0.01 * np.random.default_rng(0).standard_normal(2000)
    fits = []

    def make():
        fits.append(1)
        return NARX(LinearRegression(), 4, n_origins=3, n_paths=5)

    monkeypatch.setitem(santa_fe.METHODS, "free-run", make)
    models = {}
    once = [santa_fe.measure(y, origin, santa_fe.ONCE, models) for origin in (1000, 1470)]
    assert len(fits) == 1
    again = santa_fe.measure(y, 1000, "free-run", models)
    assert again["nmse"] == once[0]["nmse"] < 0.01
    assert once[1]["nmse"] != once[0]["nmse"]
    assert 0.0 <= once[1]["inside_0.9"] <= 1.0
