"""Models of distinct rows against those of all rows."""

import numpy as np
import pytest

from lssvm.local import Rows, Setting, fit_leaf
from lssvm.local import leaf as leaf_module
from lssvm.local.leaf import EqualRows, MergedRows
from lssvm.solvers import ExactFit


def repeated(n, distinct, observations, k=1, seed=0):
    """Return rows of few distinct inputs, with targets that equal rows share or do not share."""
    rng = np.random.default_rng(seed)
    place = rng.integers(distinct, size=n)
    X = rng.normal(size=(distinct, 3))[place]
    Y = np.sin(X[:, :1]) + rng.normal(size=(n, k))
    if not observations:
        Y = Y[np.unique(place, return_index=True)[1]][np.unique(place, return_inverse=True)[1]]
    return Rows(X, Y, rng.uniform(0.5, 2.0, n))


def classes(rows):
    Y = np.where(rows.Y + np.random.default_rng(5).normal(size=rows.Y.shape) > 0, 1.0, -1.0)
    return Rows(rows.X, Y, rows.weight)


def both(monkeypatch, *given, **how):
    """Return a leaf of distinct rows and one of all rows."""
    merged = fit_leaf(*given, **how)
    with monkeypatch.context() as patch:
        patch.setattr(MergedRows, "of", classmethod(lambda *given: None))
        return merged, fit_leaf(*given, **how)


@pytest.mark.parametrize("kind", ["sqeuclidean", "euclidean", "cityblock"])
@pytest.mark.parametrize("n, distinct", [(300, 12), (300, 200), (900, 400)])
@pytest.mark.parametrize("observations", [True, False])
@pytest.mark.parametrize("k", [1, 3])
def test_the_model_is_that_of_all_rows(kind, n, distinct, observations, k, monkeypatch):
    rows = repeated(n, distinct, observations, k)
    monkeypatch.setattr(leaf_module, "_SINGLE_MIN_ROWS", 400)
    merged, whole = both(monkeypatch, rows, kind, Setting(7.0, 0.4))
    np.testing.assert_allclose(merged.fit.coef, whole.fit.coef, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(merged.fit.intercept, whole.fit.intercept, rtol=1e-7)
    precise = 2e-3 if n > 500 else 1e-7  # leave-one-out outputs have single precision
    np.testing.assert_allclose(merged.fit.left_out, whole.fit.left_out, atol=precise)
    assert merged.error == pytest.approx(whole.error, rel=precise)
    assert len(merged.rows.X) == len(merged.fit.coef) == n


@pytest.mark.parametrize("draft", [True, False])
@pytest.mark.parametrize("tries", [1, 6])
def test_the_search_takes_the_same_steps(draft, tries, monkeypatch):
    rows = repeated(600, 250, True)
    how = {"tries": tries, "draft": draft}
    merged, whole = both(monkeypatch, rows, "euclidean", Setting(0.2, 2.0), **how)
    assert merged.setting == whole.setting
    np.testing.assert_allclose(merged.fit.coef, whole.fit.coef, atol=1e-3 if draft else 1e-7)
    left_out = fit_leaf(rows, "euclidean", Setting(0.2, 2.0), held_out=False).fit.left_out
    assert len(left_out) == 0


@pytest.mark.parametrize("observations", [True, False])
@pytest.mark.parametrize("draft", [True, False])
def test_log_odds(observations, draft, monkeypatch):
    rows = classes(repeated(400, 30, True))
    if not observations:
        rows = Rows(rows.X, np.sign(rows.X[:, :1] + 0.1), rows.weight)
        assert not EqualRows.among(rows.X, rows.Y, rows.weight).alone
    setting = Setting(3.0, 0.4, "logistic")
    squared = fit_leaf(rows, "sqeuclidean", Setting(1.0, 0.4)).fit
    for near in (None, squared):
        how = {"near": near, "tries": 3, "draft": draft}
        merged, whole = both(monkeypatch, rows, "sqeuclidean", setting, **how)
        assert merged.setting == whole.setting
        outputs = [leaf.outputs(rows.X[:50], "sqeuclidean") for leaf in (merged, whole)]
        np.testing.assert_allclose(*outputs, atol=0.1 if draft else 1e-5)
        left_out = [np.tanh(leaf.fit.left_out / 2) for leaf in (merged, whole)]
        np.testing.assert_allclose(*left_out, atol=0.05 if draft else 5e-3)
        assert merged.error == pytest.approx(whole.error, rel=0.05 if draft else 5e-3)


def test_left_out_observations_are_refits():
    rows = repeated(120, 6, True)
    leaf = fit_leaf(rows, "sqeuclidean", Setting(5.0, 0.3))
    assert EqualRows.among(rows.X, rows.Y, rows.weight).alone
    for i in range(0, 120, 7):
        rest = fit_leaf(rows.take(np.delete(np.arange(120), i)), "sqeuclidean", leaf.setting)
        expected = rest.outputs(rows.X[i : i + 1], "sqeuclidean")[0]
        np.testing.assert_allclose(leaf.fit.left_out[i], expected, rtol=1e-7, atol=1e-9)


def test_what_is_not_merged():
    rows = repeated(200, 20, True)
    equal = EqualRows.among(rows.X, rows.Y, rows.weight)
    of = MergedRows.of
    assert len(of(rows.X, rows.Y, rows.weight, equal).X) == 20
    few = EqualRows.among(rows.X[:50], rows.Y[:50])
    assert of(rows.X[:50], rows.Y[:50], rows.weight[:50], few) is None
    X = np.random.default_rng(0).normal(size=(200, 2))
    assert of(X, rows.Y, rows.weight, EqualRows.among(X, rows.Y)) is None
    labels = np.arange(200) // 2  # groups of other rows are left out together
    merged = fit_leaf(rows, "sqeuclidean", Setting(1.0, 1.0)).fit.left_out
    groups = fit_leaf(
        Rows(rows.X, rows.Y, rows.weight, labels), "sqeuclidean", Setting(1.0, 1.0)
    ).fit.left_out
    assert np.abs(merged - groups).max() > 1e-4


def test_equal_sums_of_other_rows_are_told_apart(monkeypatch):
    class Zeros:
        def integers(self, high, size, dtype):
            return np.zeros(size, dtype)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Zeros())
    found = EqualRows.among(np.array([[1.0], [2.0], [1.0], [3.0]]), np.ones((4, 1)))
    assert found.place[0] == found.place[2] and len(np.unique(found.place)) == 3


def test_gathered_coefficients_have_the_same_outputs():
    rows = repeated(150, 9, True)
    equal = EqualRows.among(rows.X, rows.Y)
    distinct = MergedRows.of(rows.X, rows.Y, rows.weight, equal)
    whole = ExactFit(rows.Y, np.zeros(1), rows.Y)
    K = rows.X @ rows.X.T
    np.testing.assert_allclose(
        K[:, equal.first] @ distinct.gathered(whole).coef, K @ rows.Y, rtol=1e-9, atol=1e-9
    )


def test_copies_of_minus_and_plus_one_do_not_leak():
    """Sums of the bits of such rows are nearly all the same: they are no observations."""
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 7)).reshape(7, -1).T
    X = np.repeat(corners, 2, axis=0)
    y = np.repeat(np.random.default_rng(0).normal(size=len(corners)), 2)
    Y = (y + 0.01 * np.random.default_rng(1).normal(size=len(y)))[:, None]
    found = EqualRows.among(X, Y)
    assert not found.alone and len(found.first) == len(corners)
    error = fit_leaf(Rows(X, Y, np.ones(len(X))), "sqeuclidean", Setting(100.0, 0.1)).error
    assert error > 0.5 * Y.var()
