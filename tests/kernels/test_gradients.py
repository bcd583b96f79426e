"""Gradients of kernel expansions against finite differences."""

import numpy as np
import pytest

from lssvm._core.errors import InvalidInputError
from lssvm.kernels import (
    RBF,
    Exponential,
    FunctionKernel,
    Laplacian,
    Linear,
    Matern,
    NonStationary,
    Polynomial,
    Precomputed,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(7, 4)) + 2.0
Z = rng.normal(size=(9, 4)) + 2.0
coef = rng.normal(size=(9, 3))
gammas = np.array([0.1, 0.5, 0.0, 1.0])

KERNELS = [
    RBF(0.3),
    RBF(gammas),
    Laplacian(0.3),
    Laplacian(gammas),
    Exponential(0.3),
    Exponential(gammas),
    Matern(0.3, 0.5),
    Matern(0.3, 1.5),
    Matern(gammas, 2.5),
    Linear(),
    Polynomial(1, 0.2, 1.5),
    Polynomial(3, 0.2, 1.5),
    NonStationary(0.3),
    NonStationary(gammas + 0.1),
]


def by_differences(kernel, X, Z, coef, step=1e-6):
    out = np.empty((len(X), coef.shape[1], X.shape[1]))
    for i in range(X.shape[1]):
        move = np.zeros(X.shape[1])
        move[i] = step
        out[:, :, i] = (kernel(X + move, Z) @ coef - kernel(X - move, Z) @ coef) / (2 * step)
    return out


@pytest.mark.parametrize(
    "kernel", KERNELS, ids=lambda k: f"{k.name}-{np.ndim(getattr(k, 'gamma', 0))}"
)
def test_gradient(kernel):
    expected = by_differences(kernel, X, Z, coef)
    assert np.abs(expected).max() > 1e-2
    np.testing.assert_allclose(kernel.gradient(X, Z, coef), expected, atol=2e-8, rtol=1e-6)


@pytest.mark.parametrize("kernel", [Laplacian(0.4), Exponential(0.4), Matern(0.4, 0.5)])
def test_a_kink_counts_its_mean_slope(kernel):
    """At x = z the slope is the mean of the slopes on both sides: what central differences say."""
    W = np.vstack([Z, X[:2]])
    more = np.vstack([coef, rng.normal(size=(2, 3))])
    expected = by_differences(kernel, X, W, more)
    np.testing.assert_allclose(kernel.gradient(X, W, more), expected, atol=1e-6)


def test_laplacian_with_columns_of_two_values():
    """One-hot columns take the matrix product, integers meet equal values: the same slopes."""
    A = np.column_stack([rng.integers(0, 2, (20, 5)), rng.integers(0, 4, 20), rng.normal(size=20)])
    A = A.astype(float)
    kernel = Laplacian(np.linspace(0.1, 0.7, 7))
    weights = rng.normal(size=(20, 2))
    expected = by_differences(kernel, A, A, weights)
    np.testing.assert_allclose(kernel.gradient(A, A, weights), expected, atol=1e-6)


def test_laplacian_of_many_points_in_tiles():
    """Values that meet never, now and then and often, against the signs of all differences."""
    draw = np.random.default_rng(1)
    A, B = draw.normal(size=(40, 3)), draw.normal(size=(9000, 3))
    for column, digits in ((1, 2), (2, 0)):
        A[:, column], B[:, column] = A[:, column].round(digits), B[:, column].round(digits)
    B[:40, 0] = A[:, 0]
    weights = draw.normal(size=(9000, 2))
    gamma = np.array([0.2, 0.5, 0.1])
    K = Laplacian(gamma)(A, B)
    expected = np.stack(
        [
            -g * (K * np.sign(a[:, None] - b)) @ weights
            for g, a, b in zip(gamma, A.T, B.T, strict=True)
        ],
        axis=2,
    )
    found = Laplacian(gamma).gradient(A, B, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(
    "kernel", [Precomputed(), FunctionKernel(lambda A, B: A @ B.T), NonStationary(1.0, np.abs)]
)
def test_without_closed_form(kernel):
    with pytest.raises(InvalidInputError, match="closed form"):
        kernel.gradient(X, Z, coef)
