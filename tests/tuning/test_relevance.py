"""The evidence with one gamma per feature: gradients, agreement of the models, weights, search."""

import numpy as np
import pytest

from lssvm._core.errors import InvalidInputError
from lssvm.kernels import RBF, Laplacian, Matern
from lssvm.solvers import DualSystem
from lssvm.tuning.relevance import (
    DualRelevance,
    FixedRelevance,
    feature_sums,
    find_relevance,
    kernel_and_slope,
    sample_rows,
)
from lssvm.uncertainty import log_evidence

rng = np.random.default_rng(3)
X = rng.normal(size=(40, 3)) + 5.0
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1]]) + 0.1 * rng.normal(size=(40, 2))
WEIGHT = rng.integers(1, 4, size=40).astype(float)
KERNELS = {
    "rbf": RBF,
    "matern-0.5": lambda g: Matern(g, nu=0.5),
    "matern-1.5": lambda g: Matern(g, nu=1.5),
    "matern-2.5": lambda g: Matern(g, nu=2.5),
}


def models(kernel, weight):
    return {
        "dual": DualRelevance(kernel, X, Y, weight),
        "no bias": DualRelevance(kernel, X, Y, weight, bias=False),
        "fixed": FixedRelevance(kernel, X, Y, X[:12] + 0.1, weight),
    }


def central(function, point, step=1e-5):
    out = []
    for i in range(len(point)):
        move = np.zeros(len(point))
        move[i] = step
        out.append((function(point + move) - function(point - move)) / (2 * step))
    return np.array(out)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("model", ["dual", "no bias", "fixed"])
def test_gradient(name, weight, model):
    evidence = models(KERNELS[name], weight)[model]
    point = np.array([-0.3, -1.0, -2.0, np.log(30.0)])
    _, slope = evidence(point[:3], point[3])
    wanted = central(lambda p: evidence(p[:3], p[3])[0], point)
    np.testing.assert_allclose(slope, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("bias", [True, False])
def test_differences_are_those_of_the_log_evidence(bias):
    points = [(np.array([-1.0, -2.0, 0.0]), 3.0), (np.array([0.0, 0.5, -3.0]), 1.0)]
    ours = [DualRelevance(RBF, X, Y, bias=bias)(*p)[0] for p in points]
    theirs = [
        log_evidence(DualSystem(RBF(np.exp(g)), X, X, C=np.exp(c), bias=bias), Y).value
        for g, c in points
    ]
    assert ours[0] - ours[1] == pytest.approx(theirs[0] - theirs[1], rel=1e-9)


def test_the_fixed_model_with_all_rows_is_the_dual_one():
    points = [(np.array([-1.0, -1.0, 0.0]), 3.0), (np.array([0.0, 0.5, -1.0]), 1.0)]
    dual, fixed = DualRelevance(RBF, X, Y, WEIGHT), FixedRelevance(RBF, X, Y, X, WEIGHT)
    (a, slope_a), (b, slope_b) = (model(*points[0]) for model in (dual, fixed))
    assert a - b == pytest.approx(dual(*points[1])[0] - fixed(*points[1])[0], abs=1e-4)
    np.testing.assert_allclose(slope_a, slope_b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("model", ["dual", "no bias", "fixed"])
def test_a_weight_is_a_number_of_rows(model):
    rows = np.repeat(np.arange(40), WEIGHT.astype(int))
    point = (np.array([-0.3, -1.0, -2.0]), 2.0)
    weighted = models(RBF, WEIGHT)[model]
    kind = type(weighted)
    more = {"bias": weighted.bias} if kind is DualRelevance else {"Z": weighted.Z}
    value, slope = weighted(*point)
    value_2, slope_2 = kind(RBF, X[rows], Y[rows], **more)(*point)
    assert value == pytest.approx(value_2, rel=1e-7)
    np.testing.assert_allclose(slope, slope_2, rtol=1e-5, atol=1e-5)


def test_feature_sums_against_the_plain_formula():
    W, Z = rng.normal(size=(40, 7)), rng.normal(size=(7, 3))
    wanted = np.einsum("ij,ijl->l", W, (X[:, None] - Z[None]) ** 2)
    np.testing.assert_allclose(feature_sums(W, X, Z), wanted, rtol=1e-10)


def test_two_of_twenty_features():
    data = np.random.default_rng(0)
    A = data.normal(size=(150, 20))
    y = np.sin(2 * A[:, 4]) + A[:, 11] ** 2 / 2 + 0.1 * data.normal(size=150)
    dual = find_relevance(DualRelevance(RBF, A, y[:, None]), 0.02, 100.0)
    fixed = find_relevance(FixedRelevance(RBF, A, y[:, None], A[:60]), 0.02, 100.0)
    for found in (dual, fixed):
        assert set(np.argsort(found.gamma)[-2:]) == {4, 11}
        assert found.value > found.start_value


def test_a_feature_without_information_stays():
    A = np.column_stack([X, np.full(40, 2.0)])
    found = find_relevance(DualRelevance(RBF, A, Y), 0.5, 10.0, tune_C=False)
    assert found.gamma[3] == pytest.approx(0.5) and found.C == 10.0


def test_other_kernels_are_refused():
    with pytest.raises(InvalidInputError, match="rbf and matern"):
        kernel_and_slope(Laplacian(1.0), X, X)


def test_sampled_rows_do_not_depend_on_order_or_repetition():
    rows = sample_rows(X, 10, 0)
    assert len(rows) == 10
    twice = sample_rows(np.vstack([X, X])[::-1], 10, 0)
    assert {tuple(r) for r in X[rows]} == {tuple(r) for r in np.vstack([X, X])[::-1][twice]}
