import numpy as np
import pytest
from tests.oracles import fixed_size as oracle

from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError, NumericalWarning
from lssvm.kernels import RBF, FunctionKernel, Linear
from lssvm.solvers import moments
from lssvm.solvers.moments import nystrom_map


def points(m=40, d=3):
    return np.random.default_rng(0).normal(size=(m, d))


def test_features_are_those_of_the_paper():
    Z, X = points(), points(70)
    map = nystrom_map(RBF(0.5), Z)
    wanted = oracle.features(oracle.rbf(X, Z, 0.5), oracle.rbf(Z, Z, 0.5), map.cut)
    found = map.transform(RBF(0.5)(X, Z))
    np.testing.assert_allclose(found @ found.T, wanted @ wanted.T, rtol=1e-9, atol=1e-9)


def test_features_reproduce_the_kernel_between_prototypes():
    Z = points()
    K = RBF(0.5)(Z, Z)
    map = nystrom_map(RBF(0.5), Z)
    np.testing.assert_allclose(map.T.T @ K @ map.T, np.eye(map.rank), atol=1e-7)
    F = map.transform(K)
    np.testing.assert_allclose(F @ F.T, K, atol=1e-7)


def test_duplicates_are_harmless():
    Z = points()
    one, two = nystrom_map(RBF(0.5), Z), nystrom_map(RBF(0.5), np.vstack([Z, Z[:7]]))
    assert two.rank == one.rank
    X = points(20)
    a = one.transform(RBF(0.5)(X, Z))
    b = two.transform(RBF(0.5)(X, np.vstack([Z, Z[:7]])))
    # Duplicates change the metric of the map but not the kernel it stands for.
    np.testing.assert_allclose(a @ a.T, b @ b.T, atol=1e-5)


def test_the_cut_off_is_relative():
    Z = points()
    scaled = FunctionKernel(lambda X, Y: 1e8 * np.asarray(RBF(0.01)(X, Y)))
    one, other = nystrom_map(RBF(0.01), Z), nystrom_map(scaled, Z)
    assert one.rank == other.rank < len(Z)
    np.testing.assert_allclose(other.cut, 1e8 * one.cut, rtol=1e-9)
    assert one.eigenvalues.min() > one.cut


def test_linear_features_are_the_inputs():
    map = nystrom_map(Linear(), np.eye(4))
    X = points(10, 4)
    F = map.transform(X)
    np.testing.assert_allclose(F @ F.T, X @ X.T, rtol=1e-12)


def test_whiten_is_the_product():
    Z = points()
    map = nystrom_map(RBF(0.5), Z)
    G = np.random.default_rng(1).normal(size=(40, 40))
    G = G @ G.T
    np.testing.assert_allclose(
        np.tril(map.whiten(G)), np.tril(map.T.T @ G @ map.T), rtol=1e-9, atol=1e-9 * 1e4
    )


def test_kernels_that_cannot_be_used():
    Z = points(5)
    with pytest.warns(NumericalWarning, match="not positive semidefinite"):
        nystrom_map(FunctionKernel(lambda X, Y: -np.asarray(RBF(0.5)(X, Y))), Z)
    with pytest.raises(InvalidInputError, match="not finite"):
        nystrom_map(RBF(0.5), Z, gram=np.full((5, 5), np.inf))


@pytest.mark.torch
class TestManyPrototypesOnADevice:
    """Above a number of prototypes the map is that of a Cholesky factor."""

    @pytest.fixture(autouse=True)
    def few(self, monkeypatch):
        monkeypatch.setattr(moments, "_FACTORED", 5)

    def test_same_inner_products(self):
        torch = pytest.importorskip("torch")
        Z = np.random.default_rng(0).normal(size=(30, 3))
        kernel = RBF(2.0)
        factored = nystrom_map(kernel, torch.asarray(Z)).on_host()
        assert np.allclose(np.tril(factored.T, -1), 0.0)
        X = np.random.default_rng(1).normal(size=(20, 3))
        expected = nystrom_map(kernel, Z).transform(kernel(X, Z))
        found = factored.transform(kernel(X, Z))
        np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-10)

    def test_singular_to_rounding(self):
        torch = pytest.importorskip("torch")
        Z = np.random.default_rng(0).normal(size=(30, 1))
        with pytest.warns(NumericalWarning, match="added to its diagonal"):
            found = nystrom_map(RBF(0.1), torch.asarray(Z)).on_host()
        inner = found.transform(RBF(0.1)(Z, Z))
        np.testing.assert_allclose(inner @ inner.T, RBF(0.1)(Z, Z), atol=1e-5)

    def test_indefinite(self):
        torch = pytest.importorskip("torch")
        with pytest.raises(NotPositiveDefiniteError, match="another kernel"):
            nystrom_map(RBF(1.0), torch.zeros((6, 1)), gram=-torch.eye(6, dtype=torch.float64))
