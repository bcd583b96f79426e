"""Tables of very many rows and scans: parts of all rows, everything else by a sample."""

import numpy as np
import pandas as pd
import pytest

from lssvm import LSSVMClassifier, LSSVMRegressor, load, save, scan
from lssvm._core.errors import InvalidInputError
from lssvm.data.dataset import open_dataset
from lssvm.estimators import table_fit
from lssvm.estimators.table_fit import seed_of_model
from lssvm.local import store

CHOSEN = {"preset": "fast", "kernel": "rbf", "scaling": "standardised", "leaf_size": 300}


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.uniform(size=n),
            "job": rng.choice(["cook", "smith", "clerk"], size=n),
        }
    )
    frame.loc[::50, "b"] = np.nan
    value = np.sin(2 * frame["a"]) + (frame["job"] == "cook") + 0.2 * rng.normal(size=n)
    return frame, value.to_numpy()


@pytest.fixture
def small_limits(monkeypatch):
    """Let 4,000 rows be very many."""
    monkeypatch.setattr(table_fit, "MANY", 3500)
    monkeypatch.setattr(table_fit, "SAMPLE", 3000)
    monkeypatch.setattr("lssvm.data.raw.CHUNK", 1024)


@pytest.fixture
def file(tmp_path):
    def write(frame, name="rows.parquet"):
        path = tmp_path / name
        frame.to_parquet(path)
        return path

    return write


def test_a_scan_of_few_rows_is_the_table_in_memory(file):
    frame, y = table(400)
    path = file(frame.assign(y=y))
    inside = LSSVMRegressor(**CHOSEN).fit(frame, y)
    outside = LSSVMRegressor(**CHOSEN).fit(scan(path, target="y"))
    new, _ = table(100, seed=1)
    np.testing.assert_allclose(outside.predict(new), inside.predict(new), atol=1e-10)
    np.testing.assert_allclose(
        outside.predict(scan(path, target="y")), inside.predict(frame), atol=1e-10
    )


def test_prototypes_beside_parts_of_very_many_rows_are_refused(small_limits):
    frame, y = table(4000)
    with pytest.raises(InvalidInputError, match=r"n_prototypes=500 .* 4,000 are too many"):
        LSSVMRegressor("fast", n_prototypes=500).fit(frame, y)
    assert LSSVMRegressor("fast", n_prototypes=0, n_jobs=1).fit(frame, y).score(frame, y) > 0.5


@pytest.mark.parametrize("scratch", [False, True])
def test_array_and_scan_give_the_same_model_of_all_rows(small_limits, file, scratch, monkeypatch):
    folders = []
    make = store._make_folder
    monkeypatch.setattr(
        store, "_make_folder", lambda size: folders.append(make(size)) or folders[-1]
    )
    monkeypatch.setattr("lssvm.fitting.table_large._WAITING", 0.0 if scratch else 1.0)
    frame, y = table(4000)
    path = file(frame.assign(y=y))
    inside = LSSVMRegressor(**CHOSEN).fit(frame, y)
    outside = LSSVMRegressor(**CHOSEN)
    outside.fit(scan(path, target="y"))
    assert bool(folders) == scratch
    assert not any(folder.exists() for folder in folders)
    new, truth = table(500, seed=1)
    np.testing.assert_allclose(outside.predict(new), inside.predict(new), atol=1e-8)
    assert outside.best_score_ == pytest.approx(inside.best_score_, abs=1e-9)
    leaves = inside.record_.members[0].local.leaves
    assert sum(len(leaf.rows.X) for leaf in leaves) == 4000
    error = np.mean((inside.predict(new) - truth) ** 2) / np.var(truth)
    assert error < 0.12
    assert "4,000 rows" in inside.summary_


def test_all_rows_beat_the_sample(small_limits):
    """Rows beyond the sample reach the model: their targets decide predictions near them."""
    frame, y = table(4000)
    y = y.copy()
    far = frame["a"].to_numpy() > 1.0
    y[far] += 5.0
    model = LSSVMRegressor(**CHOSEN).fit(frame, y)
    seed = seed_of_model(model)
    drawn = open_dataset(frame, y).sample(table_fit.SAMPLE, seed=seed)
    again = scan(frame.assign(y=y), "y").sample(table_fit.SAMPLE, seed=seed)
    np.testing.assert_array_equal(drawn.positions, again.positions)
    assert len(drawn.positions) == 3000 < drawn.n_rows
    fitted = sum(len(leaf.rows.X) for leaf in model.record_.members[0].local.leaves)
    assert fitted == 4000
    assert np.abs(model.predict(frame[far]) - y[far]).mean() < 1.0


def test_classes_weights_and_intervals(small_limits, file):
    frame, value = table(4000)
    labels = np.where(value > 0.8, "high", "low")
    weight = np.ones(4000)
    weight[:200] = 0.0
    path = file(frame.assign(y=labels, w=weight))
    inside = LSSVMClassifier(**CHOSEN, class_weight="balanced").fit(frame, labels, weight)
    data = scan(path, target="y", weight="w")
    outside = LSSVMClassifier(**CHOSEN, class_weight="balanced").fit(data)
    new, truth = table(400, seed=1)
    np.testing.assert_allclose(outside.predict_proba(new), inside.predict_proba(new), atol=1e-8)
    assert outside.score(new, np.where(truth > 0.8, "high", "low")) > 0.85
    used = sum(len(leaf.rows.X) for leaf in outside.record_.members[0].local.leaves)
    assert used == 3800
    regressor = LSSVMRegressor(**CHOSEN).fit(frame, value)
    low, high = regressor.predict_interval(new, coverage=0.9).T
    assert 0.85 < np.mean((low <= truth) & (truth <= high)) < 0.95


def test_bad_input(small_limits, file):
    frame, _ = table(4000)
    path = file(frame)
    with pytest.raises(InvalidInputError, match="target="):
        LSSVMRegressor(**CHOSEN).fit(scan(path))
    with pytest.raises(InvalidInputError, match="target="):
        LSSVMClassifier(**CHOSEN).fit(scan(path))
    with pytest.raises(InvalidInputError, match="groups"):
        LSSVMRegressor(**CHOSEN).fit(scan(path), groups=np.arange(4000))
    with pytest.raises(InvalidInputError, match="1 class"):
        LSSVMClassifier(**CHOSEN).fit(frame, np.zeros(4000))


def test_models_of_many_rows_are_stored_and_updated(small_limits, tmp_path):
    from lssvm import load, save

    frame, y = table(4000)
    model = LSSVMRegressor(**CHOSEN).fit(frame, y)
    save(model, tmp_path / "model.lssvm")
    new, truth = table(50, seed=1)
    np.testing.assert_array_equal(load(tmp_path / "model.lssvm").predict(new), model.predict(new))
    before = model.predict(new)
    model.partial_fit(new, truth)
    assert np.abs(model.predict(new) - truth).mean() < np.abs(before - truth).mean()
    model.forget(new, truth)
    np.testing.assert_allclose(model.predict(new), before, atol=1e-5)


def test_prototypes_where_parts_do_not_fit_into_memory(small_limits, file, tmp_path):
    frame, y = table(4000)
    path = file(frame.assign(y=y))
    # a kernel whose systems a dense solve with moments resolves, whatever C is chosen
    use = {**CHOSEN, "memory_budget": "50 kB", "kernel": "laplacian"}
    model = LSSVMRegressor(**use).fit(scan(path, target="y"))
    assert "prototypes in place of leaves: exact leaves would keep" in model.summary_
    again = LSSVMRegressor(**use).fit(frame, y)
    new, truth = table(2000, seed=1)
    np.testing.assert_allclose(model.predict(new), again.predict(new), atol=1e-5)
    assert model.score(new, truth) > 0.9
    assert model.best_score_ == pytest.approx(model.score(new, truth), abs=0.02)
    low, high = model.predict_interval(new, coverage=0.9).T
    assert abs(np.mean((truth >= low) & (truth <= high)) - 0.9) < 0.04
    # the expansion solves the fixed-size problem of all rows, not of the sample alone
    (member,) = model.record_.members
    one = member.expansion
    X = member.metric.apply(model.preparations_["standardised"].transform(frame))
    kernel, Z, target = one.kernel, one.basis, (y - y.mean()) / y.std()
    design = np.column_stack([kernel(X, Z), np.ones(len(X))])
    penalty = np.zeros((len(Z) + 1, len(Z) + 1))
    penalty[:-1, :-1] = kernel(Z, Z) / one.C[0]
    solved = np.linalg.solve(design.T @ design + penalty, design.T @ target)
    expected = np.column_stack([kernel(X[:50], Z), np.ones(50)]) @ solved * y.std() + y.mean()
    np.testing.assert_allclose(model.predict(frame[:50]), expected, atol=1e-4)
    save(model, tmp_path / "model.lssvm")
    np.testing.assert_array_equal(load(tmp_path / "model.lssvm").predict(new), model.predict(new))
    with pytest.raises(InvalidInputError, match="support vectors"):
        model.partial_fit(frame[:5], y[:5])


def test_prototypes_where_there_is_no_time_for_parts(small_limits):
    frame, y = table(4000)
    names = np.where(y > 0.5, "high", "low")
    model = LSSVMClassifier(preset="fast", kernel="rbf", scaling="standardised", time_limit=1e-3)
    model.fit(frame, names)
    assert "time_limit" in model.summary_
    new, truth = table(1000, seed=1)
    assert model.score(new, np.where(truth > 0.5, "high", "low")) > 0.85
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1.0)
