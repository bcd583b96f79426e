"""Losses of one's own and of quantiles against eqs. (3.52)-(3.53)."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, QuantileRegressor
from tests.oracles import losses as oracle
from tests.oracles.dual import rbf
from tests.oracles.fixed_size import features

import lssvm
from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVC
from lssvm._core.errors import InvalidInputError
from lssvm.codes import Coding
from lssvm.solvers import DifferentiableLoss, Logistic, Pinball

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 2))
y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_t(2, size=90) + 3.0
s = rng.uniform(0.5, 2.0, size=90)


class LogCosh(DifferentiableLoss):
    def value(self, error):
        return np.logaddexp(error, -error)

    def derivative(self, error):
        return np.tanh(error)


CASES = {
    "log-cosh": (LogCosh(), oracle.log_cosh),
    "median": (Pinball(0.5, 0.05), oracle.pinball(0.5, 0.05)),
    "upper": (Pinball(0.9, 0.05), oracle.pinball(0.9, 0.05)),
}


@pytest.mark.parametrize("weight", [None, s], ids=["plain", "weighted"])
@pytest.mark.parametrize("case", CASES)
def test_a_differentiable_loss_solves_3_53(case, weight):
    loss, derivative = CASES[case]
    model = LSSVR(5.0, gamma=0.5, loss=loss).fit(X, y, weight)
    alpha = model.dual_coef_[:, 0]
    off = oracle.optimality(rbf(X, X, 0.5), y, alpha, model.intercept_[0], 5.0, derivative, weight)
    np.testing.assert_allclose(off, 0.0, atol=1e-4)
    squares = LSSVR(5.0, gamma=0.5).fit(X, y, weight)
    assert np.abs(squares.predict(X) - model.predict(X)).max() > 0.02


@pytest.mark.parametrize("case", CASES)
def test_the_fixed_size_model_minimises_3_51_in_its_features(case):
    loss, derivative = CASES[case]
    Z = X[:12]
    model = FixedSizeLSSVR(12, selection=Z, C=5.0, gamma=0.5, loss=loss).fit(X, y)
    F = features(rbf(X, Z, 0.5), rbf(Z, Z, 0.5), 1e-9)
    w = F.T @ (5.0 * derivative(y - model.predict(X)))  # w = sum alpha_k phi(x_k), eq. (3.52)
    np.testing.assert_allclose(F @ w + model.intercept_, model.predict(X), atol=2e-3)
    assert abs(derivative(y - model.predict(X)).sum()) < 1e-3


def test_a_quantile_is_that_of_scikit_learn_and_covers_its_share():
    random = np.random.default_rng(1)  # of its own: other tests draw from the shared one
    line = random.uniform(-1, 1, size=(400, 1))
    target = 2 * line[:, 0] + random.normal(size=400)
    ours = LSSVR(1e4, kernel="linear", loss=Pinball(0.8, 1e-4)).fit(line, target)
    theirs = QuantileRegressor(quantile=0.8, alpha=0.0).fit(line, target)
    np.testing.assert_allclose(ours.predict(line), theirs.predict(line), atol=0.02)
    assert np.mean(target < ours.predict(line)) == pytest.approx(0.8, abs=0.01)


def test_what_a_loss_of_your_own_needs(monkeypatch, tmp_path):
    monkeypatch.setattr("lssvm.estimators.opening.SAMPLE_ROWS", 40)
    many = np.tile(np.column_stack([X, y]), (14, 1))  # more than are taken into memory
    np.savetxt(tmp_path / "rows.csv", many, delimiter=",", header="a,b,y", comments="")
    data = lssvm.scan(tmp_path / "rows.csv", target="y", prepare=False)
    with pytest.raises(NotImplementedError, match="derivative"):
        LSSVR(1.0, loss=DifferentiableLoss()).fit(X, y)
    with pytest.raises(InvalidInputError, match="DifferentiableLoss"):
        LSSVR(1.0, loss="pinball").fit(X, y)
    with pytest.raises(InvalidInputError, match="quantile"):
        Pinball(1.0)
    with pytest.raises(InvalidInputError, match="read in blocks"):
        FixedSizeLSSVR(10, C=1.0, gamma=0.5, loss=LogCosh()).fit(data)
    with pytest.raises(InvalidInputError, match="posterior"):
        LSSVR(1.0, gamma=0.5, loss=LogCosh()).fit(X, y).predict(X, return_std=True)


def test_tuned_models_and_files_keep_a_loss(tmp_path):
    model = LSSVR("cv", gamma="cv", loss=Pinball(0.7)).fit(X, y)
    assert np.mean(y < model.predict(X)) == pytest.approx(0.7, abs=0.1)
    lssvm.save(model, tmp_path / "model.lssvm")
    again = lssvm.load(tmp_path / "model.lssvm")
    assert again.loss == Pinball(0.7)
    np.testing.assert_allclose(again.predict(X), model.predict(X))


# -- classes ---------------------------------------------------------------------------------------

labels = np.digitize(y, [2.0, 4.0])
signs = np.where(y > 3.0, 1.0, -1.0)


@pytest.mark.parametrize("weight", [None, s], ids=["plain", "weighted"])
def test_logistic_loss_solves_3_53(weight):
    coding = Coding(loss=Logistic(), calibration=None)
    model = LSSVC(5.0, gamma=0.5, multiclass=coding).fit(X, signs, weight)
    alpha, b = model.dual_coef_[:, 0], model.intercept_[0]
    derivative = oracle.logistic(signs)
    off = oracle.optimality(rbf(X, X, 0.5), signs, alpha, b, 5.0, derivative, weight)
    np.testing.assert_allclose(off, 0.0, atol=1e-5)


def test_logistic_loss_is_logistic_regression_where_the_kernel_is_linear():
    ours = LSSVC(2.0, kernel="linear", multiclass=Coding(loss=Logistic())).fit(X, signs)
    theirs = LogisticRegression(C=2.0, tol=1e-10, max_iter=1000).fit(X, signs)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    with pytest.raises(InvalidInputError, match="Logistic"):
        ours.predict_proba(X)


@pytest.mark.parametrize("code", ["ovo", "ova"])
def test_every_binary_problem_has_the_loss(code):
    coding = Coding(code, loss=Logistic(), calibration=None)
    dual = LSSVC(5.0, gamma=0.5, multiclass=coding).fit(X, labels)
    fixed = FixedSizeLSSVC(90, C=5.0, gamma=0.5, multiclass=coding).fit(X, labels)
    for model in (dual, fixed):
        for j, column in enumerate(model.code_.matrix.T):
            used = np.flatnonzero(column[labels])
            own = column[labels[used]].astype(float)
            alone = LSSVC(5.0, gamma=0.5, multiclass=Coding(loss=Logistic())).fit(X[used], own)
            outputs = rbf(X, model.support_vectors_, 0.5) @ model.dual_coef_[:, j]
            outputs += model.intercept_[j]
            np.testing.assert_allclose(outputs, alone.decision_function(X), atol=5e-3)


def test_what_losses_of_classes_need(tmp_path):
    with pytest.raises(InvalidInputError, match="classes"):
        LSSVR(1.0, loss=Logistic()).fit(X, y)
    with pytest.raises(InvalidInputError, match="numbers"):
        LSSVC(1.0, multiclass=Coding(loss=Pinball())).fit(X, labels)
    with pytest.raises(InvalidInputError, match="label"):
        LSSVC(1.0, multiclass=Coding(targets="fisher", loss=Logistic())).fit(X, labels)
    with pytest.raises(ValueError, match="loss"):
        GreedyLSSVC(multiclass=Coding("ova", loss=Logistic())).fit(X, labels)
    model = LSSVC("cv", gamma="cv", multiclass=Coding(loss=Logistic(), calibration=None))
    model.fit(X, labels)
    lssvm.save(model, tmp_path / "model.lssvm")
    again = lssvm.load(tmp_path / "model.lssvm")
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X))
    assert again.multiclass.loss == Logistic()
