"""Reweighting in passes equals reweighting of rows in memory."""

import numpy as np
import pytest

from lssvm._core.errors import ConvergenceWarning
from lssvm.data import ArraySource
from lssvm.kernels import RBF
from lssvm.solvers.moments import Piece, accumulate, nystrom_map
from lssvm.solvers.primal import solve_primal
from lssvm.solvers.reweighting import residual_scale, robust_weights, solve_reweighted_stream

rng = np.random.default_rng(0)
X = rng.standard_normal((700, 2))
y = np.sin(X[:, :1]) + 0.1 * rng.standard_cauchy((700, 1))
Z, kernel, weight = X[:20], RBF(0.5), rng.uniform(0.5, 2.0, 700)
start = (np.zeros((20, 1)), np.zeros(1))


def pieces():
    rows = np.arange(700)
    for part in np.array_split(rows, 3):
        yield Piece(X[part], y[part], weight[part], 0 * part, part, 0 * part)


def reduce(work, combine):
    """Work on two parts of the rows and put the results together."""
    first, *others = pieces()
    return combine(work([first]), work(others))


def in_memory(loss, scale, tol):
    """Reweight with a fixed scale, all rows at once."""
    map = nystrom_map(kernel, Z)
    (coef, b), last = start, None
    for iteration in range(50):
        fitted = kernel(X, Z) @ coef + b
        if iteration and np.sqrt(np.mean((fitted - last) ** 2)) <= tol * scale:
            return coef, b, iteration
        factors = robust_weights((y - fitted)[:, 0], loss, scale)
        moments = accumulate(kernel, ArraySource(X, y, weight * factors), Z)[0]
        (coef, b), last = solve_primal(moments, map, 10.0), fitted
    raise AssertionError("the loop does not end")


@pytest.mark.parametrize("loss", ["huber", "absolute", "weighted"])
def test_passes_give_what_rows_in_memory_give(loss):
    map = nystrom_map(kernel, Z)
    scale = residual_scale(y)
    expected = in_memory(loss, scale, 1e-2)
    found = solve_reweighted_stream(
        kernel, reduce, Z, map, 10.0, loss, scale, start, threads=2, tol=1e-2
    )
    assert found[2] == expected[2] > 1
    outputs = [kernel(X, Z) @ coef + b for coef, b, _ in (found, expected)]
    np.testing.assert_allclose(*outputs, rtol=0.0, atol=1e-5)  # weights span six decades


def test_too_few_passes_are_told():
    map = nystrom_map(kernel, Z)
    with pytest.warns(ConvergenceWarning, match="2 reweightings"):
        found = solve_reweighted_stream(
            kernel, reduce, Z, map, 10.0, "absolute", 1.0, start, max_iter=2, tol=1e-12
        )
    assert np.isfinite(found[0]).all()
    assert solve_reweighted_stream(kernel, reduce, Z, map, 1.0, "huber", 0.0, start)[2] == 0
