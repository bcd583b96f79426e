import numpy as np
import pytest
from tests.oracles import fixed_size as oracle

from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm.features import nystrom_map
from lssvm.kernels import RBF, FunctionKernel, Linear


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
