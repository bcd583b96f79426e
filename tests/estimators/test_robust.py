"""Robust losses of both regressors."""

import warnings

import numpy as np
import pytest

from lssvm import LSSVR, FixedSizeLSSVR
from lssvm._core.errors import InvalidInputError
from lssvm.solvers.reweighting import residual_scale, reweight, robust_weights
from lssvm.tuning import PathSearch

ROBUST = ("huber", "absolute", "weighted")


def curve(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n)


X, y = curve(200, 0)
X_TEST, y_TEST = curve(400, 1)
SPOILED = y.copy()
OUT = np.random.default_rng(2).permutation(200)[:40]
SPOILED[OUT] += np.random.default_rng(3).uniform(5.0, 15.0, size=40)


def error(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.sqrt(np.mean((model.predict(X_TEST) - y_TEST) ** 2))


FEW = PathSearch(n_C=20, max_points=5)
MODELS = {
    "dual": lambda loss: LSSVR("cv", gamma="cv", loss=loss, cv=3, search=FEW),
    "fixed": lambda loss: FixedSizeLSSVR(60, loss=loss, cv=4, search=FEW),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_outliers_do_little_and_clean_data_lose_little(make):
    clean = error(make("squared").fit(X, y))
    assert error(make("squared").fit(X, SPOILED)) > 2.0 * clean
    for loss in ROBUST:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spoiled, plain = make(loss).fit(X, SPOILED), make(loss).fit(X, y)
        assert error(spoiled) < 1.3 * clean, loss
        assert error(plain) < 1.15 * clean, loss


@pytest.mark.parametrize("loss", ["huber", "weighted"])
def test_the_dual_solution_is_a_fixed_point_of_its_weights(loss):
    model = LSSVR(5.0, gamma=0.5, loss=loss).fit(X, SPOILED)
    assert model.n_reweightings_ > 0
    residual = SPOILED - model.predict(X)
    weights = robust_weights(residual, loss, residual_scale(residual))
    plain = LSSVR(5.0, gamma=0.5).fit(X, SPOILED, weights)
    np.testing.assert_allclose(model.predict(X_TEST), plain.predict(X_TEST), atol=2e-3)


@pytest.mark.parametrize("loss", ROBUST)
def test_all_rows_as_prototypes_give_the_dual_model(loss):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dual = LSSVR(5.0, gamma=0.5, loss=loss).fit(X, SPOILED)
        fixed = FixedSizeLSSVR(200, C=5.0, gamma=0.5, loss=loss).fit(X, SPOILED)
    np.testing.assert_allclose(dual.predict(X_TEST), fixed.predict(X_TEST), atol=1e-2)


def test_several_outputs_are_weighed_one_by_one():
    both = LSSVR(5.0, gamma=0.5, loss="huber").fit(X, np.column_stack([y, SPOILED]))
    for j, target in enumerate((y, SPOILED)):
        one = LSSVR(5.0, gamma=0.5, loss="huber").fit(X, target)
        np.testing.assert_allclose(both.predict(X_TEST)[:, j], one.predict(X_TEST), atol=1e-6)


def test_a_weight_is_a_number_of_rows():
    # most rows differ, so that equal ones are copies
    weight = np.random.default_rng(4).choice([1, 2, 3], size=200, p=[0.7, 0.2, 0.1])
    rows = np.repeat(np.arange(200), weight)
    for loss in ("huber", "weighted"):
        for model in (LSSVR(5.0, gamma=0.5, loss=loss), LSSVR("cv", gamma=0.5, cv=4, loss=loss)):
            weighted = model.fit(X, SPOILED, weight).predict(X_TEST)
            repeated = model.fit(X[rows], SPOILED[rows]).predict(X_TEST)
            np.testing.assert_allclose(weighted, repeated, atol=1e-6)
    residual = np.arange(1.0, 6.0)
    assert residual_scale(residual, np.array([1.0, 1.0, 2.0, 1.0, 4.0])) == pytest.approx(
        residual_scale(np.repeat(residual, [1, 1, 2, 1, 4]))
    )


def test_weights_of_huber():
    # 1 up to 1.345 scales, then in inverse proportion
    given = robust_weights(np.array([0.0, -2.69, 5.38, -26.9]), "huber", 2.0)
    np.testing.assert_allclose(given, [1.0, 1.0, 0.5, 0.1])


def test_weights_of_the_weighted_model():
    # [Suykens2002w]: 1 up to 2.5 scales, (3 - e) / 0.5 up to 3, then 1e-4
    wanted = [1.0, 1.0, 0.4, 1e-4, 1e-4]
    given = robust_weights(np.array([0.0, -5.0, 5.6, 6.0, -100.0]), "weighted", 2.0)
    np.testing.assert_allclose(given, wanted)


def test_rows_that_are_met_exactly_end_the_reweighting():
    calls = []

    def solve(weights):
        calls.append(weights)
        return 0, np.zeros(4)

    assert reweight(solve, np.zeros(4), (1, np.zeros(4)), "huber")[0] == 1
    assert calls == []


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (LSSVR(loss="hinge"), "loss"),
        (LSSVR(loss="huber", reduction="l0"), "reduction='l0'"),
        (FixedSizeLSSVR(loss="weighted", reduction="spfs"), "reduction='spfs'"),
    ],
    ids=["unknown", "dual reduction", "fixed reduction"],
)
def test_what_cannot_be_had(model, match):
    with pytest.raises(InvalidInputError, match=match):
        model.fit(X[:30], y[:30])


def test_error_bars_belong_to_squared_loss():
    model = LSSVR(5.0, gamma=0.5, loss="huber").fit(X, SPOILED)
    with pytest.raises(InvalidInputError, match="loss='squared'"):
        model.predict(X_TEST, return_std=True)


def test_relevance_is_not_bent_by_outliers():
    noise = np.random.default_rng(5).normal(size=(200, 3))
    wide = np.column_stack([noise, X])
    model = LSSVR("cv", gamma="ard", loss="weighted", cv=4).fit(wide, SPOILED)
    assert set(np.argsort(model.feature_relevance_)[-2:]) == {3, 4}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scoring", ["gcv", "evidence", "press"])
@pytest.mark.parametrize(
    "make",
    [
        lambda **options: FixedSizeLSSVR(20, gamma=0.3, **options),
        lambda **options: LSSVR("cv", gamma=0.3, **options),
    ],
    ids=["fixed", "dual"],
)
def test_criteria_without_folds_go_with_robust_losses(make, scoring, weighted):
    generator = np.random.default_rng(5)
    X = generator.uniform(-2, 2, (120, 1))
    truth = np.sin(X[:, 0])
    y = truth + 0.05 * generator.normal(size=120)
    y[::12] += 20.0
    weight = generator.uniform(0.5, 2.0, 120) if weighted else None
    errors = {
        loss: np.mean((make(loss=loss, scoring=scoring).fit(X, y, weight).predict(X) - truth) ** 2)
        for loss in ("squared", "huber", "weighted")
    }
    assert max(errors["huber"], errors["weighted"]) < 0.1 * errors["squared"]
