"""The routines that run beside other threads against plain NumPy."""

import numpy as np
import pytest

from lssvm._core.lapack import (
    add_gram,
    congruence,
    factorise_triangle,
    mirror,
    reflect,
    tridiagonalise,
)


@pytest.mark.parametrize("r", [1, 2, 5, 130])
def test_a_reduction_and_its_reflectors_give_the_matrix_back(r):
    rng = np.random.default_rng(r)
    A = rng.standard_normal((r, r))
    A = A + A.T
    factor = np.asfortranarray(np.tril(A))
    d, e, tau = tridiagonalise(factor)
    S = np.diag(d) + np.diag(e, -1) + np.diag(e, 1)
    Q = np.eye(r)
    if r > 1:
        part = np.asfortranarray(np.eye(r - 1))
        reflect(np.asfortranarray(factor[1:, :-1]), tau, part, transposed=False)
        Q[1:, 1:] = part
        back = part.copy(order="F")
        reflect(np.asfortranarray(factor[1:, :-1]), tau, back, transposed=True)
        np.testing.assert_allclose(back, np.eye(r - 1), atol=1e-12)
    np.testing.assert_allclose(Q @ S @ Q.T, A, atol=1e-11)


def test_a_congruence_fills_the_lower_triangle():
    rng = np.random.default_rng(0)
    L, T = np.tril(rng.standard_normal((7, 7))), np.asfortranarray(rng.standard_normal((7, 4)))
    found = congruence(np.asfortranarray(L), T)
    np.testing.assert_allclose(np.tril(found), np.tril(T.T @ (L + L.T) @ T), atol=1e-12)
    with pytest.raises(TypeError, match="takes float64, not float32"):
        congruence(np.asfortranarray(L), T.astype(np.float32))


@pytest.mark.parametrize("m", [1, 5, 64, 150])
def test_sums_of_grams_in_place(m):
    rng = np.random.default_rng(m)
    K, L = rng.standard_normal((7, m)), rng.standard_normal((70, m))
    gram = np.zeros((m, m))
    add_gram(gram, K, new=True)
    add_gram(gram, L, new=False)
    add_gram(gram, K[:0], new=False)
    assert np.allclose(mirror(gram), K.T @ K + L.T @ L, rtol=1e-13, atol=1e-13)
    assert np.array_equal(gram, gram.T)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("r", [1, 130, 512, 700])
def test_a_factor_takes_one_triangle_and_leaves_the_other(r, lower):
    rng = np.random.default_rng(r)
    A = rng.standard_normal((r, r + 5))
    A = np.asfortranarray(A @ A.T + np.eye(r))
    room = np.asfortranarray(np.zeros((r + 3, r)))  # a part of a larger array
    part = room[:r]
    part[:] = A
    assert factorise_triangle(part, lower=lower)
    factor = np.linalg.cholesky(A)
    mine, other = (np.tril, np.triu) if lower else (np.triu, np.tril)
    np.testing.assert_allclose(mine(part), factor if lower else factor.T, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(other(part, 1 if lower else -1), other(A, 1 if lower else -1))
    assert not room[r:].any()


@pytest.mark.parametrize("at", [0, 300, 699])
def test_a_matrix_that_is_not_positive_definite_has_no_factor(at):
    A = np.asfortranarray(np.eye(700))
    A[at, at] = -1.0
    assert not factorise_triangle(A, lower=True)
