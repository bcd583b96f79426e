"""Reductions do not depend on the unit of y, and a weight of 2 is the row twice."""

import numpy as np
import pytest

from lssvm import LSSVC, LSSVR, FixedSizeLSSVR
from lssvm.reductions import L0, FixedSizeL0


def sine(n=180, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(n)


def reductions():
    yield "l0", lambda: LSSVR(C=10.0, gamma=1.0, reduction="l0")
    for method in ("spfs", "ssd", "sv-l0"):
        yield method, lambda m=method: FixedSizeLSSVR(40, C=10.0, gamma=1.0, cv=5, reduction=m)
    printed = FixedSizeL0("spfs", size="l0", settings=L0())
    yield "printed", lambda: FixedSizeLSSVR(40, C=10.0, gamma=1.0, reduction=printed)


@pytest.mark.parametrize(("name", "make"), list(reductions()))
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_the_unit_of_y_changes_nothing(name, make, factor):
    X, y = sine()
    model, other = make().fit(X, y), make().fit(X, factor * y)
    assert 2 <= len(model.support_) < (180 if name == "l0" else 40)
    np.testing.assert_array_equal(other.support_, model.support_)
    np.testing.assert_allclose(other.predict(X), factor * model.predict(X), atol=1e-6 * factor)


def test_outputs_in_different_units_are_reduced_alike():
    X, y = sine()
    both = np.column_stack([y, np.cos(X[:, 0])])
    model = LSSVR(C=10.0, gamma=1.0, reduction="l0").fit(X, both)
    other = LSSVR(C=10.0, gamma=1.0, reduction="l0").fit(X, both * [1e-3, 1e3])
    np.testing.assert_array_equal(other.support_, model.support_)


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_pruning_takes_a_weight_of_2_for_the_row_twice(kind):
    X, y = sine(90)
    model, y = (LSSVR, y) if kind == "numbers" else (LSSVC, (y > 0.1).astype(int))
    weight = np.where(np.arange(90) % 4 == 0, 2, 1)
    counted = model(C=5.0, gamma=1.0, reduction="prune", cv=5).fit(X, y, sample_weight=weight)
    X2, y2 = np.repeat(X, weight, axis=0), np.repeat(y, weight)
    repeated = model(C=5.0, gamma=1.0, reduction="prune", cv=5).fit(X2, y2)
    assert len(counted.support_) < 80
    grid = np.linspace(-3, 3, 50)[:, None]
    answer = "predict" if kind == "numbers" else "decision_function"
    np.testing.assert_allclose(
        getattr(counted, answer)(grid), getattr(repeated, answer)(grid), atol=1e-7
    )
    one, two = (m.reduction_path_[0].steps for m in (counted, repeated))
    assert [step.p_value for step in one] == pytest.approx([step.p_value for step in two])
    assert [step.loss for step in one] == pytest.approx([step.loss for step in two])
