"""The circulant solver against the explicitly built multilevel circulant matrix."""

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.oracles import circulant as oracle

from lssvm import LSSVC, LSSVR
from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError, NumericalWarning
from lssvm.kernels import RBF, Laplacian, Linear, Matern
from lssvm.solvers import Cholesky, CirculantSolver, DualSystem, make_solver
from lssvm.solvers.circulant import Circulant, Lattice, first_row, lattice_shape, lay_rows

SHAPES = [(12,), (5, 7), (3, 4, 5)]


def lattice_of(shape, spacing=None):
    n = int(np.prod(shape))
    h = np.linspace(0.5, 0.9, len(shape)) if spacing is None else spacing
    return Lattice(np.arange(n), shape, h, n)


@pytest.mark.parametrize("wrap", ["set", "sum"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_first_row_is_equation_13(shape, wrap):
    lattice = lattice_of(shape)
    expected = getattr(oracle, f"first_row_{wrap}")(0.7, lattice.spacing, shape)
    np.testing.assert_allclose(first_row(RBF(0.7), lattice, wrap), expected, atol=1e-14)


def test_half_a_turn_is_counted_once_as_printed_and_twice_in_the_periodic_sum():
    lattice = lattice_of((6, 5))
    once, twice = (first_row(RBF(0.7), lattice, wrap) for wrap in ("set", "sum"))
    np.testing.assert_allclose(2 * once[3], twice[3], rtol=1e-14)
    others = [0, 1, 2, 4, 5]
    np.testing.assert_array_equal(once[others], twice[others])
    odd = lattice_of((7, 5))  # no step is half a turn
    np.testing.assert_array_equal(*(first_row(RBF(0.7), odd, wrap) for wrap in ("set", "sum")))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_weighted_wrap_is_the_nearest_circulant_matrix(shape):
    lattice = lattice_of(shape)
    K = oracle.lattice_gram(0.7, lattice.spacing, shape)
    expected = oracle.nearest_circulant(K, shape)
    np.testing.assert_allclose(first_row(RBF(0.7), lattice, "mean"), expected, atol=1e-14)


@pytest.mark.parametrize("wrap", ["sum", "set", "mean"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_eigenvalues_are_those_of_lemma_1(shape, wrap):
    lattice = lattice_of(shape)
    U = Circulant.of(RBF(0.7), lattice, wrap)
    row = first_row(RBF(0.7), lattice, wrap)
    expected = oracle.eigenvalues(row)
    np.testing.assert_allclose(U.eigenvalues, expected.real, atol=1e-11)
    np.testing.assert_allclose(expected.imag, 0.0, atol=1e-11)
    dense = np.linalg.eigvalsh(oracle.circulant(row))
    np.testing.assert_allclose(np.sort(U.eigenvalues.ravel()), dense, atol=1e-11)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("wrap", ["sum", "set", "mean"])
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_solution_equals_the_dense_solve(levels, wrap, bias):
    rng = np.random.default_rng(levels)
    n = {1: 13, 2: 30, 3: 48}[levels]
    X, Y = rng.standard_normal((n, 4)), rng.standard_normal((n, 2))
    solver = CirculantSolver(levels=levels, wrap=wrap)
    state = solver.factorise(DualSystem(RBF(2.0), X, X, C=0.5, bias=bias))
    found = solver.solve(state, Y)
    lattice = state.circulant.lattice
    assert len(lattice.shape) == levels
    U = oracle.circulant(first_row(RBF(2.0), lattice, wrap))
    H = U + 2.0 * np.eye(len(U))
    placed = Y[lattice.places]
    if bias:
        alpha, b = oracle.bordered_solution(H, placed)
    else:
        alpha, b = np.linalg.solve(H, placed), np.zeros(2)
    expected = np.zeros_like(Y)
    np.add.at(expected, lattice.places, alpha)
    np.testing.assert_allclose(found.alpha, expected, atol=1e-10)
    np.testing.assert_allclose(found.intercept, b, atol=1e-10)
    assert found.residual < 1e-12


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("levels", [1, 2])
def test_the_printed_solver_inverts_indefinite_matrices_too(levels, bias):
    # a kernel that is wide for the lattice: eq. (13) counts half a turn once
    rng = np.random.default_rng(0)
    n = {1: 12, 2: 30}[levels]
    X, Y = rng.standard_normal((n, 2)), rng.standard_normal((n, 2))
    system = DualSystem(RBF(0.05), X, X, C=40.0, bias=bias)
    solver = CirculantSolver.ding2011(levels)
    state = solver.factorise(system)
    lattice = state.circulant.lattice
    assert lattice.places.tolist() == list(range(n))  # rows as they come
    U = oracle.circulant(oracle.first_row_set(0.05, lattice.spacing, lattice.shape))
    H = U + np.eye(n) / 40.0
    assert np.linalg.eigvalsh(H)[0] < -0.01
    if bias:
        alpha, b = oracle.bordered_solution(H, Y)
    else:
        alpha, b = np.linalg.solve(H, Y), np.zeros(2)
    found = solver.solve(state, Y)
    scale = np.abs(alpha).max()
    np.testing.assert_allclose(found.alpha, alpha, atol=1e-9 * scale)
    np.testing.assert_allclose(found.intercept, b, atol=1e-9 * scale)
    with pytest.raises(NotPositiveDefiniteError, match="too wide"):
        CirculantSolver(levels, "plain", "set").factorise(system)


def test_rows_on_a_lattice_give_the_exact_solution_in_the_limit():
    errors = []
    for side in (8, 16, 24):
        axis = np.arange(side) - side / 2
        X = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
        X += 1e-9 * np.arange(len(X))[:, None]  # no ties in the order
        Y = np.exp(-0.5 * (X**2).sum(axis=1, keepdims=True))
        system = DualSystem(RBF(1.0), X, X, C=2.0, bias=False)
        approximate, exact = CirculantSolver(layout="plain", wrap="sum"), Cholesky()
        a = approximate.solve(approximate.factorise(system), Y).alpha
        e = exact.solve(exact.factorise(system), Y).alpha
        errors.append(np.abs(a - e).max())
    assert errors[0] > 1e-8
    assert errors[1] < 1e-3 * errors[0]
    assert errors[2] < 1e-3 * errors[1] or errors[2] < 1e-8


def test_sorted_layout_sorts_level_by_level():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((56, 2)) * np.array([5.0, 1.0])
    lattice = lay_rows(X, levels=2)
    places = lattice.places.reshape(lattice.shape)
    assert sorted(lattice.places.tolist()) == list(range(56))
    V = np.linalg.svd(X - X.mean(axis=0))[2]
    P = (X - X.mean(axis=0)) @ V.T
    first = P[places, 0]
    upwards = np.all(first[:-1].max(axis=1) <= first[1:].min(axis=1))
    downwards = np.all(first[:-1].min(axis=1) >= first[1:].max(axis=1))
    assert upwards or downwards
    steps = np.sign(np.diff(P[places, 1], axis=1))
    assert abs(steps.sum()) == steps.size


def test_spacings_of_a_true_lattice_are_found():
    axes = 0.5 * np.arange(9), 2.0 * np.arange(11)
    X = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    lattice = Lattice(*_plain(X, (9, 11)))
    np.testing.assert_allclose(lattice.spacing, [0.5, 2.0], rtol=1e-9)


def _plain(X, shape):
    from lssvm.solvers.circulant import _spacing

    places = np.arange(len(X))
    return places, shape, _spacing(X, places, shape), len(X)


def test_spare_places_repeat_rows():
    X = np.random.default_rng(0).standard_normal((101, 3))
    lattice = lay_rows(X, levels=2)
    counts = np.bincount(lattice.places, minlength=101)
    assert len(lattice.places) == np.prod(lattice.shape) > 101
    assert counts.min() == 1
    assert counts.max() == 2
    first = lattice.first()
    assert np.array_equal(lattice.places[first], np.arange(101))
    V = np.random.default_rng(1).standard_normal((len(lattice.places), 2))
    expected = np.zeros((101, 2))
    np.add.at(expected, lattice.places, V)
    np.testing.assert_allclose(lattice.gather(V), expected)


@pytest.mark.parametrize(("n", "levels"), [(1300, 2), (1009, 2), (2**18, 2), (997, 3), (70, 3)])
def test_lattices_have_few_spare_places_and_nearly_equal_sides(n, levels):
    shape = lattice_shape(n, levels)
    assert n <= np.prod(shape) <= n + 2 * max(shape)
    assert max(shape) <= 2.5 * min(shape)


def test_sparse_rows_are_laid_like_dense_ones():
    X = np.random.default_rng(0).standard_normal((80, 5))
    X[np.abs(X) < 0.5] = 0.0
    dense, sparse = lay_rows(X), lay_rows(csr_array(X))
    assert np.array_equal(dense.places, sparse.places)
    np.testing.assert_allclose(dense.spacing, sparse.spacing)


def test_many_features_take_another_way_to_the_same_directions():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 2100)) + 3.0
    wide = lay_rows(X).places.reshape(-1)
    narrow = lay_rows(X @ np.linalg.svd(X - X.mean(axis=0))[2][:4].T).places.reshape(-1)
    d = ((X[wide][1:] - X[wide][:-1]) ** 2).sum()
    e = ((X[narrow][1:] - X[narrow][:-1]) ** 2).sum()
    assert abs(d - e) < 0.25 * e  # the signs of the directions may differ


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_equal_rows_of_many_features_are_laid(kind):
    lattice = lay_rows(kind(np.ones((60, 2100))))
    assert set(lattice.places.tolist()) == set(range(60))
    np.testing.assert_array_equal(lattice.spacing, 0.0)


def test_wide_kernels_break_the_printed_matrix_but_not_the_weighted_one():
    X = np.random.default_rng(0).standard_normal((100, 3))
    system = DualSystem(RBF(1e-4), X, X, C=100.0)
    with pytest.raises(NotPositiveDefiniteError, match="too wide"):
        CirculantSolver(wrap="sum").factorise(system)
    solver = CirculantSolver(wrap="mean")
    assert solver.solve(solver.factorise(system), X[:, :1]).residual < 1e-9


def test_fallback_says_so_and_is_exact():
    X = np.random.default_rng(0).standard_normal((100, 3))
    Y = X[:, :1]
    system = DualSystem(RBF(1e-4), X, X, C=100.0)
    solver = CirculantSolver(wrap="sum", fallback=Cholesky(), min_rows=100)
    exact = Cholesky()
    with pytest.warns(NumericalWarning, match=r"too wide.*Cholesky is used"):
        state = solver.factorise(system)
    expected = exact.solve(exact.factorise(system), Y)
    np.testing.assert_array_equal(solver.solve(state, Y).alpha, expected.alpha)


def test_weights_fall_back():
    X = np.random.default_rng(0).standard_normal((300, 3))
    weight = np.linspace(0.5, 1.5, 300)
    with pytest.warns(NumericalWarning, match="cannot hold sample weights"):
        model = LSSVR(solver="circulant").fit(X, X[:, 0], weight)
    exact = LSSVR(solver="cholesky").fit(X, X[:, 0], weight)
    np.testing.assert_allclose(model.dual_coef_, exact.dual_coef_)
    with pytest.raises(InvalidInputError, match="cannot hold sample weights"):
        CirculantSolver().factorise(DualSystem(RBF(1.0), X, X, C=1.0, root_weight=weight))


def test_few_rows_are_solved_exactly_without_a_warning():
    X = np.random.default_rng(0).standard_normal((255, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LSSVR(solver="circulant").fit(X, X[:, 0])
    exact = LSSVR(solver="cholesky").fit(X, X[:, 0])
    np.testing.assert_allclose(model.dual_coef_, exact.dual_coef_)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Linear(), "Euclidean distance"),
        (Laplacian(1.0), "Euclidean distance"),
        (RBF(np.ones(3)), "one gamma"),
    ],
    ids=repr,
)
def test_kernels_that_have_no_lattice_are_refused(kernel, message):
    X = np.random.default_rng(0).standard_normal((100, 3))
    with pytest.raises(InvalidInputError, match=message):
        CirculantSolver().factorise(DualSystem(kernel, X, X, C=1.0))


def test_matern_kernel():
    X = np.random.default_rng(0).standard_normal((100, 2))
    solver = CirculantSolver()
    state = solver.factorise(DualSystem(Matern(0.5), X, X, C=1.0))
    assert solver.solve(state, X).residual < 1e-12


@pytest.mark.parametrize("settings", [{"levels": 4}, {"layout": "spiral"}, {"wrap": "no"}])
def test_settings_are_checked(settings):
    X = np.random.default_rng(0).standard_normal((100, 2))
    with pytest.raises(InvalidInputError, match=next(iter(settings))):
        CirculantSolver(**settings).factorise(DualSystem(RBF(1.0), X, X, C=1.0))


def test_named_solver_never_stores_the_kernel_matrix():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (5000, 2))
    y = np.where(np.sin(X[:, 0]) * X[:, 1] > 0, "a", "b")
    model = LSSVC(0.01, gamma=1.0, solver="circulant", memory_budget="20 MB").fit(X, y)
    assert model.solver_ == "circulant"
    assert model.score(X, y) > 0.8
    system = DualSystem(RBF(1.0), X, X, C=1.0, budget=20_000_000)
    name, solver = make_solver("circulant", system, seed=0)
    assert name == "circulant"
    assert type(solver.fallback).__name__ == "ConjugateGradient"


def test_float32_stays_float32():
    X = np.random.default_rng(0).standard_normal((300, 2)).astype(np.float32)
    model = LSSVR(0.01, solver="circulant").fit(X, X[:, 0])
    assert model.dual_coef_.dtype == np.float32


def test_a_solution_that_misses_the_true_system_is_told():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (300, 2))
    y = np.sin(X[:, 0])
    with pytest.warns(NumericalWarning, match="too far from a lattice"):
        model = LSSVR(10.0, gamma=1.0, solver="circulant").fit(X, y)
    assert model.score(X, y) < -1.0  # what the warning is about
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fair = LSSVR(1.0, gamma=30.0, solver="circulant").fit(X, y)
    assert fair.score(X, y) > 0.0
    assert fair.solver_ == "circulant"


def test_the_solver_that_took_over_is_named():
    X = np.random.default_rng(0).standard_normal((300, 3))
    few = LSSVR(solver="circulant").fit(X[:100], X[:100, 0])
    assert few.solver_ == "cholesky"
    with pytest.warns(NumericalWarning, match="cannot hold sample weights"):
        weighted = LSSVR(solver="circulant").fit(X, X[:, 0], np.linspace(0.5, 1.5, 300))
    assert weighted.solver_ == "cholesky"


def test_settings_are_checked_where_the_fallback_solves():
    X = np.random.default_rng(0).standard_normal((50, 2))
    for settings in ({"levels": 9}, {"layout": "spiral"}, {"wrap": "no"}):
        solver = CirculantSolver(**settings, fallback=Cholesky())
        with pytest.raises(InvalidInputError, match=next(iter(settings))):
            solver.factorise(DualSystem(RBF(1.0), X, X, C=1.0))


def test_rows_far_from_the_origin_are_laid_as_near_it():
    X = np.random.default_rng(0).standard_normal((300, 3)) * [3.0, 2.0, 1.0]
    X = np.round(X * 2**20) / 2**20  # exact beside the offset
    far = lay_rows(X + 2.0**30)
    np.testing.assert_array_equal(far.places, lay_rows(X).places)


def test_distances_that_overflow_are_told():
    X = np.random.default_rng(0).standard_normal((300, 2))
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(InvalidInputError, match="scale the features"),
    ):
        lay_rows(1e200 * X, layout="plain")


def test_wide_rows_are_compared_in_blocks():
    X = np.random.default_rng(0).standard_normal((80, 20_000))
    tracemalloc.start()
    lattice = lay_rows(X, layout="plain")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6  # all pairs at once take 650 MB
    assert np.all(lattice.spacing >= 0)
