"""The evidence against densities, and its gradient against finite differences."""

import numpy as np
import pytest
from tests.oracles.dual import rbf
from tests.oracles.gaussian_process import evidence, restricted_evidence

from lssvm._core.errors import InvalidInputError
from lssvm.kernels import RBF, FunctionKernel, Laplacian, Linear, Matern, Polynomial
from lssvm.solvers import DualSystem
from lssvm.solvers.exact import eigen_state
from lssvm.uncertainty import evidence_path, log_evidence, log_gamma_slope

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
Y = np.column_stack([np.sin(X[:, 0]) + 0.1 * rng.normal(size=40), X[:, 1] ** 2 + 4.0])


@pytest.mark.parametrize("C", [0.1, 50.0])
def test_value_is_the_density_of_the_targets(C):
    K = rbf(X, X, 0.3)
    with_bias = log_evidence(DualSystem(RBF(0.3), X, X, C), Y)
    wanted = [restricted_evidence(K, y, C) for y in Y.T]
    assert with_bias.value == pytest.approx(sum(value for value, _ in wanted), abs=1e-8)
    np.testing.assert_allclose(with_bias.prior_variance, [scale for _, scale in wanted])
    without = log_evidence(DualSystem(RBF(0.3), X, X, C, bias=False), Y)
    assert without.value == pytest.approx(sum(evidence(K, y, C)[0] for y in Y.T), abs=1e-8)


def test_weights_are_precisions():
    weight = rng.uniform(0.5, 2.0, size=40)
    K = rbf(X, X, 0.3) + np.diag(1.0 / (5.0 * weight)) - np.eye(40) / 5.0
    ours = log_evidence(DualSystem(RBF(0.3), X, X, 5.0, np.sqrt(weight)), Y[:, :1]).value
    assert ours == pytest.approx(restricted_evidence(K, Y[:, 0], 5.0)[0], abs=1e-8)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        RBF,
        Laplacian,
        lambda g: RBF(g * np.array([1.0, 0.2, 3.0])),
        lambda g: Matern(g, nu=0.5),
        lambda g: Matern(g, nu=1.5),
        lambda g: Matern(g, nu=2.5),
        lambda g: Polynomial(degree=3, gamma=g, coef0=1.0),
        lambda g: Polynomial(degree=1, gamma=g, coef0=0.5),
    ],
)
def test_gradient_against_finite_differences(make, weighted, bias):
    root = np.sqrt(rng.uniform(0.5, 2.0, size=40)) if weighted else None

    def at(log_C, log_gamma):
        return log_evidence(
            DualSystem(make(np.exp(log_gamma)), X, X, np.exp(log_C), root, bias=bias), Y
        )

    point, h = np.array([1.0, -1.5]), 1e-5
    ours = at(*point).gradient
    for i, step in enumerate(h * np.eye(2)):
        wanted = (at(*(point + step)).value - at(*(point - step)).value) / (2 * h)
        assert ours[i] == pytest.approx(wanted, rel=1e-5, abs=1e-5)


def test_path_is_the_evidence_at_every_C():
    C = np.array([0.01, 1.0, 300.0])
    for bias in (True, False):
        system = DualSystem(RBF(0.3), X, X, 1.0, bias=bias)
        path = evidence_path(eigen_state(system), Y, C)
        wanted = [
            log_evidence(DualSystem(RBF(0.3), X, X, c, bias=bias), Y, with_gradient=False).value
            for c in C
        ]
        np.testing.assert_allclose(path, wanted, atol=1e-7)


def test_kernels_without_gamma():
    assert np.isnan(log_evidence(DualSystem(Linear(), X, X, 1.0), Y).gradient[1])
    assert log_gamma_slope(FunctionKernel(lambda a, b: a @ b.T), X, X) is None

    class Odd(RBF.__base__):
        gamma = 1.0

        def __call__(self, X, Z, out=None):
            return np.eye(len(X), len(Z))

        def diag(self, X):
            return np.ones(len(X))

    with pytest.raises(InvalidInputError, match="with_gradient=False"):
        log_gamma_slope(Odd(), X, X)


def test_the_evidence_prefers_the_kernel_that_made_the_data():
    K = rbf(X, X, 0.3) + np.eye(40) / 50.0
    y = np.linalg.cholesky(K) @ np.random.default_rng(3).normal(size=(40, 20))
    values = [log_evidence(DualSystem(RBF(g), X, X, 50.0), y).value for g in (0.03, 0.3, 3.0)]
    assert np.argmax(values) == 1
