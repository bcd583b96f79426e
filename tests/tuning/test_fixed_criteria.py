"""Criteria of the fixed-size model against those of the dual model and of dense refits."""

import numpy as np
import pytest
from tests.oracles import circulant as oracle
from tests.tuning.criteria import criterion_objective

from lssvm import FixedSizeLSSVC, FixedSizeLSSVR
from lssvm._core.errors import InvalidInputError
from lssvm.backends.rows import Rows
from lssvm.data.folds import assign_folds
from lssvm.kernels import RBF
from lssvm.solvers import DualSystem
from lssvm.tasks import SquaredError
from lssvm.tuning.fixed_size import FixedSizeObjective
from lssvm.tuning.objective import Group
from lssvm.tuning.spectral import FixedCriterionObjective

RNG = np.random.default_rng(2)
X = RNG.uniform(-2, 2, (30, 2))
Y = np.column_stack([np.sin(X[:, 0]) + 3.0, X[:, 1] ** 2]) + 0.1 * RNG.standard_normal((30, 2))
C = np.array([0.1, 3.0, 200.0])
NAMES = ["aic", "bic", "cp", "gcv", "rk", "evidence", "press"]


def fixed(name, Z, weight=None):
    rows = Rows(X, Y, weight)
    plain = FixedSizeObjective(RBF, rows, Z, assign_folds(X, 5), SquaredError())
    return FixedCriterionObjective(name, plain)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_all_rows_as_prototypes_are_the_dual_model(name, weighted):
    weight = np.linspace(0.5, 2.5, 30) if weighted else None
    root = None if weight is None else np.sqrt(weight)
    system = DualSystem(RBF(1.0), X, X, C=1.0, root_weight=root)
    dual = criterion_objective(name, RBF, system, Y, [Group(np.arange(2))], positions=False)
    expected = dual.at(1.5).losses(C).mean
    found = fixed(name, X, weight).at(1.5).losses(C).mean
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["gcv", "evidence"])
def test_prototypes_are_a_kernel_of_lower_rank(name):
    Z = X[::4]
    Kz, Kx = np.asarray(RBF(0.7)(Z, Z)), np.asarray(RBF(0.7)(X, Z))
    K = Kx @ np.linalg.solve(Kz, Kx.T)
    found = fixed(name, Z).at(0.7).losses(C).mean
    for c, value in zip(C, found, strict=True):
        expected = []
        for y in Y.T:
            if name == "gcv":
                expected.append(oracle.gcv(K, y, c, True))
                continue
            H = K + np.eye(30) / c
            one = np.linalg.solve(H, np.ones(30))
            nu = np.linalg.solve(H, y)
            beta = nu - one * nu.sum() / one.sum()
            expected.append(-oracle.gp_evidence(K, y, c, True, y @ beta / 29) / 30)
        assert value == pytest.approx(np.mean(expected), rel=1e-6)


@pytest.mark.parametrize("scoring", ["gcv", "evidence", "press"])
def test_estimators_tune_by_a_criterion(scoring):
    rng = np.random.default_rng(0)
    rows = rng.uniform(-3, 3, (300, 1))
    y = np.sinc(rows[:, 0]) + 0.05 * rng.standard_normal(300)
    model = FixedSizeLSSVR(C="cv", gamma="cv", n_prototypes=40, scoring=scoring).fit(rows, y)
    assert np.mean((model.predict(rows) - np.sinc(rows[:, 0])) ** 2) < 0.001
    assert model.tuning_result_.n_evaluations == model.n_evaluations_
    labels = np.where(np.abs(rows[:, 0]) < 1, "in", "out")
    two = FixedSizeLSSVC(C="cv", gamma="cv", n_prototypes=40, scoring=scoring).fit(rows, labels)
    assert two.score(rows, labels) > 0.95


@pytest.mark.parametrize("scoring", ["gcv", "evidence", "press"])
@pytest.mark.parametrize("multiclass", ["ovo", "ova"])
def test_many_classes(multiclass, scoring):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((150, 2)) + 4 * np.repeat(np.eye(3)[:, :2], 50, axis=0)
    labels = np.repeat(["a", "b", "c"], 50)
    model = FixedSizeLSSVC(
        C="cv", gamma="cv", n_prototypes=30, scoring=scoring, multiclass=multiclass
    ).fit(rows, labels)
    assert model.score(rows, labels) > 0.93


def test_number_of_prototypes_by_a_criterion():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-3, 3, (600, 1))
    y = np.sinc(rows[:, 0]) + 0.05 * rng.standard_normal(600)
    model = FixedSizeLSSVR(C="cv", gamma="cv", n_prototypes="cv", scoring="evidence").fit(rows, y)
    assert len(model.size_results_["n_prototypes"]) > 1
    assert np.mean((model.predict(rows) - np.sinc(rows[:, 0])) ** 2) < 0.001


def test_expected_risk_needs_a_number_for_C():
    with pytest.raises(InvalidInputError, match="cannot choose C"):
        FixedSizeLSSVR(C="cv", gamma="cv", scoring="rk").fit(X, Y)
    assert FixedSizeLSSVR(C=10.0, gamma="cv", scoring="rk").fit(X, Y).gamma_ > 0


def test_a_reduction_after_a_criterion_has_the_folds_of_the_user():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-3, 3, (200, 1))
    y = np.sinc(rows[:, 0]) + 0.05 * rng.standard_normal(200)
    model = FixedSizeLSSVR(30, cv=4, scoring="gcv", reduction="spfs").fit(rows, y)
    assert len(model.support_) < 30
