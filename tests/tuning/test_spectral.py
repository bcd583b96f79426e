"""Generalised cross-validation, R(K), evidence and leave-one-out against dense evaluations."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from tests.oracles import circulant as oracle
from tests.oracles.dual import rbf, refit_predictions
from tests.tuning.criteria import criterion_objective

from lssvm import LSSVC, LSSVR
from lssvm._core.errors import InvalidInputError
from lssvm.kernels import RBF
from lssvm.solvers import DualSystem
from lssvm.solvers.circulant import Circulant, first_row, lay_rows
from lssvm.solvers.exact import eigen_state
from lssvm.tuning import PathSearch
from lssvm.tuning.objective import Group
from lssvm.tuning.spectral import SpectralObjective, Spectrum, noise_variance

RNG = np.random.default_rng(5)
X = RNG.uniform(-2, 2, (25, 2))
Y = np.column_stack([np.sin(X[:, 0]) + 3.0, X[:, 1] ** 2]) + 0.1 * RNG.standard_normal((25, 2))
C = np.array([0.1, 3.0, 200.0])
K = rbf(X, X, 0.7)
BOTH = [Group(np.arange(2))]


def objective(name, bias=True, weight=None):
    root = None if weight is None else np.sqrt(weight)
    return SpectralObjective(name, RBF, DualSystem(RBF(), X, X, 1.0, root, bias=bias), Y, BOTH)


@pytest.mark.parametrize("bias", [True, False])
def test_gcv(bias):
    found = objective("gcv", bias).at(0.7).losses(C).mean
    expected = [np.mean([oracle.gcv(K, y, c, bias) for y in Y.T]) for c in C]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", ["aic", "bic", "cp"])
def test_complexity_criteria(name, bias):
    part = objective(name, bias)
    noise = [None, None] if name != "cp" else part.noise[0]
    found = part.at(0.7).losses(C).mean
    pairs = list(zip(Y.T, noise, strict=True))
    expected = [np.mean([oracle.complexity(name, K, y, c, bias, v) for y, v in pairs]) for c in C]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    twice = np.r_[np.arange(25), np.arange(25)]
    double = DualSystem(RBF(0.7), X[twice], X[twice], 1.0, bias=bias)
    again = SpectralObjective(name, RBF, double, Y[twice], BOTH).at(0.7).losses(C).mean
    weighted = objective(name, bias, np.full(25, 2.0)).at(0.7).losses(C).mean
    np.testing.assert_allclose(weighted, again, rtol=1e-8)


@pytest.mark.parametrize("scoring", ["aic", "bic", "cp"])
def test_complexity_criteria_choose_C_and_gamma(scoring):
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(-3, 3, 150))[:, None]
    clean = np.sin(2 * x[:, 0])
    model = LSSVR("cv", gamma="cv", scoring=scoring).fit(x, clean + 0.3 * rng.normal(size=150))
    assert np.mean((model.predict(x) - clean) ** 2) < 0.02


def test_expected_risk_is_equation_29():
    part = objective("rk", bias=False)
    noise = part.noise[0]
    found = part.at(0.7).losses(C).mean
    expected = [
        np.mean([oracle.expected_risk(K, y, 1 / c, v) for y, v in zip(Y.T, noise, strict=True)])
        for c in C
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_expected_risk_without_noise_is_the_minimum_of_equation_27():
    state = eigen_state(DualSystem(RBF(0.7), X, X, C=1.0, bias=False))
    found = Spectrum.of_state(state, Y[:, :1]).loss("rk", C, np.zeros(1))
    expected = [oracle.regularised_risk(K, Y[:, 0], 1 / c) for c in C]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_expected_risk_falls_as_C_grows():
    losses = objective("rk").at(0.7).losses(np.logspace(-3, 5, 20)).mean
    assert np.all(np.diff(losses) < 0)


@pytest.mark.parametrize("bias", [True, False])
def test_evidence_is_the_largest_density_over_the_scale(bias):
    found = -25 * objective("evidence", bias).at(0.7).losses(C).mean
    for c, value in zip(C, found, strict=True):
        densities = []
        for y in Y.T:
            best = minimize_scalar(
                lambda t, y=y, c=c: -oracle.gp_evidence(K, y, c, bias, np.exp(t)),
                bounds=(-8, 8),
                method="bounded",
                options={"xatol": 1e-9},
            )
            densities.append(-best.fun)
        assert value == pytest.approx(np.mean(densities), rel=1e-8)


def test_evidence_weight_two_is_the_row_twice():
    weight = np.where(np.arange(25) % 3 == 0, 2, 1)
    rows = np.repeat(np.arange(25), weight)
    system = DualSystem(RBF(), X[rows], X[rows], C=1.0)
    twice = SpectralObjective("evidence", RBF, system, Y[rows], BOTH)
    weighted = objective("evidence", weight=weight.astype(float))
    np.testing.assert_allclose(
        weighted.at(0.7).losses(C).mean, twice.at(0.7).losses(C).mean, rtol=1e-9
    )


@pytest.mark.parametrize("name", ["gcv", "rk", "press"])
def test_weight_two_is_the_row_twice(name):
    weight = np.where(np.arange(25) % 3 == 0, 2.0, 1.0)
    rows = np.repeat(np.arange(25), weight.astype(int))

    def losses(system, targets):
        made = criterion_objective(name, RBF, system, targets, BOTH, positions=False)
        return made.at(0.7).losses(C).mean

    weighted = losses(DualSystem(RBF(1.0), X, X, C=1.0, root_weight=np.sqrt(weight)), Y)
    twice = losses(DualSystem(RBF(1.0), X[rows], X[rows], C=1.0), Y[rows])
    np.testing.assert_allclose(weighted, twice, rtol=1e-8)


def test_press_is_the_error_of_refits():
    made = criterion_objective(
        "press", RBF, DualSystem(RBF(1.0), X, X, C=1.0), Y, BOTH, positions=False
    )
    found = made.at(0.7).losses(C).mean
    folds = [(np.delete(np.arange(25), i), np.array([i])) for i in range(25)]
    for c, value in zip(C, found, strict=True):
        errors = [(np.concatenate(refit_predictions(K, y, c, folds)) - y) ** 2 for y in Y.T]
        assert value == pytest.approx(np.mean(errors), rel=1e-9)


def test_press_of_problems_of_some_rows_is_the_mean_of_their_errors():
    signs = np.sign(RNG.standard_normal((25, 2)))
    own = [np.arange(0, 18), np.arange(10, 25)]  # the rows of each problem: not as many
    coded = np.zeros((25, 2))
    for j, rows in enumerate(own):
        coded[rows, j] = signs[rows, j]
    groups = [Group(np.array([j]), rows) for j, rows in enumerate(own)]
    system = DualSystem(RBF(1.0), X, X, C=1.0)
    found = criterion_objective("press", RBF, system, coded, groups, positions=False)
    expected = np.zeros((len(C), 2))
    for j, rows in enumerate(own):
        n, y = len(rows), coded[rows, j]
        folds = [(np.delete(np.arange(n), i), np.array([i])) for i in range(n)]
        for i, c in enumerate(C):
            left_out = np.concatenate(refit_predictions(K[np.ix_(rows, rows)], y, c, folds))
            expected[i, j] = np.mean((left_out - y) ** 2)
    np.testing.assert_allclose(found.at(0.7).losses(C).mean, expected.mean(axis=1), rtol=1e-8)


@pytest.mark.parametrize("name", ["gcv", "rk", "evidence"])
@pytest.mark.parametrize("levels", [1, 2])
def test_circulant_spectrum_gives_what_the_dense_circulant_matrix_gives(name, levels):
    rows = RNG.standard_normal((30, 3))
    y = RNG.standard_normal(30)
    lattice = lay_rows(rows, levels=levels)
    matrix = Circulant.of(RBF(1.0), lattice)
    U = oracle.circulant(first_row(RBF(1.0), lattice))
    placed = y[lattice.places]
    noise = np.array([0.3])
    found = Spectrum.of_circulant(matrix, y[:, None], bias=False).loss(name, C, noise)
    expected = {
        "gcv": lambda c: oracle.gcv(U, placed, c, False),
        "rk": lambda c: oracle.expected_risk(U, placed, 1 / c, 0.3),
        "evidence": lambda c: -_best_evidence(U, placed, c) / 30,
    }[name]
    np.testing.assert_allclose(found, [expected(c) for c in C], rtol=1e-9)


def _best_evidence(U, y, c):
    scale = y @ np.linalg.solve(U + np.eye(len(U)) / c, y) / len(U)
    return oracle.gp_evidence(U, y, c, False, scale)


def test_indefinite_circulant_matrices_are_ruled_out():
    rows = RNG.standard_normal((100, 3))
    matrix = Circulant.of(RBF(1e-4), lay_rows(rows), "sum")
    loss = Spectrum.of_circulant(matrix, rows[:, :1], bias=True).loss("gcv", np.array([1e-3, 1e3]))
    assert np.isfinite(loss[0])
    assert np.isinf(loss[1])


def test_noise_variance():
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 6, (1500, 1))
    targets = np.column_stack([np.sin(rows[:, 0]), rows[:, 0]])
    noisy = targets + rng.standard_normal((1500, 2)) * [0.1, 0.5]
    np.testing.assert_allclose(noise_variance(rows, noisy), [0.01, 0.25], rtol=0.15)
    repeated = np.repeat(rows[:50], 30, axis=0)
    noise = noise_variance(repeated, 0.5 * rng.standard_normal((1500, 1)))
    np.testing.assert_allclose(noise, 0.25, rtol=0.15)


@pytest.mark.parametrize("scoring", ["gcv", "press", "evidence"])
def test_estimators_tune_by_a_criterion(scoring):
    rng = np.random.default_rng(0)
    rows = rng.uniform(-3, 3, (80, 1))
    y = np.sinc(rows[:, 0]) + 0.05 * rng.standard_normal(80)
    model = LSSVR("cv", gamma="cv", scoring=scoring).fit(rows, y)
    assert np.mean((model.predict(rows) - np.sinc(rows[:, 0])) ** 2) < 0.001
    labels = np.where(np.abs(rows[:, 0]) < 1, "in", "out")
    assert LSSVC("cv", gamma="cv", scoring=scoring).fit(rows, labels).score(rows, labels) > 0.95


def test_expected_risk_chooses_a_kernel_at_one_C():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-3, 3, (80, 1))
    y = np.sin(3 * rows[:, 0]) + 0.05 * rng.standard_normal(80)
    model = LSSVR(10.0, gamma="cv", scoring="rk").fit(rows, y)
    assert 0.05 < model.gamma_ < 50
    with pytest.raises(InvalidInputError, match="cannot choose C"):
        LSSVR("cv", gamma="cv", scoring="rk").fit(rows, y)


@pytest.mark.parametrize("multiclass", ["ovo", "ova", "moc"])
@pytest.mark.parametrize("scoring", ["gcv", "press", "evidence"])
def test_many_classes(scoring, multiclass):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((90, 2)) + 4 * np.repeat(np.eye(3)[:, :2], 30, axis=0)
    labels = np.repeat([0, 1, 2], 30)
    model = LSSVC("cv", gamma="cv", scoring=scoring, multiclass=multiclass).fit(rows, labels)
    assert model.score(rows, labels) > 0.93
    separate = LSSVC(
        "cv", scoring=scoring, multiclass=multiclass, search=PathSearch(per_output=True)
    )
    assert separate.fit(rows, labels).score(rows, labels) > 0.93


def test_precomputed_kernel():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-3, 3, (60, 1))
    gram = rbf(rows, rows, 1.0)
    for scoring in ("gcv", "press", "evidence"):
        given = LSSVR("cv", kernel="precomputed", scoring=scoring).fit(gram, np.sin(rows[:, 0]))
        assert given.score(gram, np.sin(rows[:, 0])) > 0.99
