"""The losses and tables of the quantiles."""

import json

import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss

from benchmarks import quantiles


def test_the_loss_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    truth, predicted = rng.normal(size=40), rng.normal(size=(40, 5))
    wanted = [
        mean_pinball_loss(truth, column, alpha=level)
        for level, column in zip(quantiles.LEVELS, predicted.T, strict=True)
    ]
    np.testing.assert_allclose(quantiles.pinball(truth, predicted), wanted)


def test_a_table_has_the_splits_that_all_methods_have_done(tmp_path):
    losses = {"lssvm": 1.0, "catboost": 2.0, "catboost-each": 4.0, "lightgbm": 0.5, "constant": 5.0}
    other = {"n": 100, "coverage": 0.85, "fit_cpu": 1.0}
    found = [
        {"set": name, "randomisation": 0, "method": m, "pinball": [loss] * 5} | other
        for name in ("a", "b")
        for m, loss in losses.items()
        if (name, m) != ("b", "lightgbm")
    ]
    path = tmp_path / "found.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in found))
    text = quantiles.table(path)
    assert "| a | 100 | 20.0 | 40.0 | 80.0 | 10.0 | 85 |" in text and "| b |" not in text
    assert "| CatBoost | 0.500 (1) |" in text and "| LightGBM | 2.000 (0) |" in text
    assert "ours 5.0" in text


def test_our_quantiles_of_a_small_set(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 2)), rng.normal(size=150)
    split = quantiles.sets.Split("numbers", X[:100], y[:100], X[100:], y[100:])
    monkeypatch.setattr(quantiles.sets, "split", lambda folder, name, seed: split)
    found = [quantiles.measure(None, "any", 0, m) for m in ("lssvm", "constant")]
    assert found[0]["n"] == 100 and found[0]["n_test"] == 50
    assert found[0]["pinball"] == pytest.approx(found[1]["pinball"], rel=0.3)
    assert min(one["coverage"] for one in found) > 0.75
