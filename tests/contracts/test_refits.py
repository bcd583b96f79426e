"""What tuning reports is what refits on the same folds give, in every family and engine."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from tests.contracts.inputs import folds, rows
from tests.contracts.refits import (
    TUNERS,
    check_scores,
    fold_scores,
    margin,
    pooled_score,
    splits_of,
    tuned,
)

from lssvm import LSSVR, FixedSizeLSSVC, FixedSizeLSSVR
from lssvm.codes import Coding
from lssvm.tuning import GridSearch

MARKED = [
    pytest.param(t, marks=pytest.mark.dask) if t.endswith("dask") else pytest.param(t)
    for t in TUNERS
]


def plain(name):
    """Return a data set without weights."""
    data = rows(name)
    return replace(data, weight=np.ones(len(data.y)))


@pytest.mark.parametrize("tuner", MARKED)
@pytest.mark.parametrize(
    ("name", "scoring", "options"),
    [
        ("two", "accuracy", {}),
        ("two", "roc_auc", {}),
        ("two", margin, {}),
        ("three", "balanced_accuracy", {"multiclass": "ova"}),
        ("three", "accuracy", {"multiclass": "ovo"}),
        ("three", margin, {"multiclass": "ovo"}),
        ("five", margin, {"multiclass": "moc"}),
        ("five", margin, {"multiclass": Coding("ecoc", decoding="hamming")}),
        ("two", margin, {"multiclass": Coding(targets=(2.0, 0.5))}),
        ("numbers", "r2", {}),
        ("numbers", "neg_mean_absolute_error", {}),
        ("outputs", "r2", {}),
    ],
    ids=lambda v: v.__name__ if callable(v) else str(v),
)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_scorer_is_averaged_over_refits(tuner, name, scoring, options, weighted):
    data = rows(name) if weighted else plain(name)
    splits = splits_of(tuner, len(data.y))
    model = tuned(tuner, data, splits, scoring=scoring, **options)
    check_scores(model, lambda gamma: np.mean(fold_scores(model, data, gamma, splits, scoring)))


@pytest.mark.parametrize("tuner", MARKED)
@pytest.mark.parametrize("multiclass", ["ovo", "ova"])
def test_the_accuracy_is_that_of_refits_weighted_by_rows(tuner, multiclass):
    data = rows("three")
    splits = splits_of(tuner, len(data.y))
    model = tuned(tuner, data, splits, multiclass=multiclass)
    share = np.array([data.weight[test].sum() for _, test in splits])

    def expected(gamma):
        return np.average(fold_scores(model, data, gamma, splits, "accuracy"), weights=share)

    for gamma, score in zip(
        model.cv_results_["param_gamma"], model.cv_results_["mean_test_score"], strict=True
    ):
        np.testing.assert_allclose(score, expected(gamma), rtol=1e-7)


@pytest.mark.parametrize("tuner", MARKED)
@pytest.mark.parametrize("name", ["numbers", "outputs"])
def test_the_squared_error_is_that_of_refits_weighted_by_rows(tuner, name):
    data = rows(name)
    splits = splits_of(tuner, len(data.y))
    model = tuned(tuner, data, splits)
    share = np.array([data.weight[test].sum() for _, test in splits])

    def expected(gamma):
        scores = fold_scores(model, data, gamma, splits, "neg_mean_squared_error")
        return np.average(scores, weights=share)

    check_scores(model, expected)


@pytest.mark.parametrize("tuner", ["dual-host", "fixed-host"])
@pytest.mark.parametrize(("name", "scoring"), [("two", margin), ("numbers", "r2")])
def test_a_scorer_sees_single_rows_together(tuner, name, scoring):
    data = plain(name)
    data = replace(data, X=data.X[:30], y=data.y[:30], weight=np.ones(30))
    splits = [(np.delete(np.arange(30), i), np.array([i])) for i in range(30)]
    model = tuned(tuner, data, "loo", scoring=scoring)
    check_scores(model, lambda gamma: pooled_score(model, data, gamma, splits, scoring))


# -- one-vs-one --------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_every_pair_takes_the_C_of_its_smallest_squared_error(spread):
    """The C of each pair beats its neighbours in refits of the pair alone, weighted by rows."""
    data = rows("three")
    rng = np.random.default_rng(8)
    weight = np.exp(spread * rng.normal(size=len(data.y)))
    data = replace(data, weight=np.round(weight, 6))
    splits, Z = folds(len(data.y)), data.X[::6] + 0.01
    model = FixedSizeLSSVC(selection=Z, gamma=0.4, cv=splits, multiclass="ovo")
    model.fit(data.X, data.y, data.weight)
    assert len(set(model.C_)) > 1
    classes = model.classes_
    pairs = [(a, b) for i, a in enumerate(classes) for b in classes[i + 1 :]]
    for C, pair in zip(model.C_, pairs, strict=True):
        errors = {}
        for factor in (0.25, 0.5, 1.0, 2.0, 4.0):
            total = 0.0
            for train, test in splits:
                own = train[np.isin(data.y[train], pair)]
                left = test[np.isin(data.y[test], pair)]
                part = FixedSizeLSSVC(selection=Z, C=float(C) * factor, gamma=0.4)
                part.fit(data.X[own], data.y[own], data.weight[own])
                sign = np.where(data.y[left] == pair[1], 1.0, -1.0)
                outputs = part.decision_function(data.X[left])
                total += data.weight[left] @ (outputs - sign) ** 2
            errors[factor] = total
        assert errors[1.0] == min(errors.values()), (pair, errors)


# -- robust losses with several outputs --------------------------------------------------------


def scale_of(residual, weight):
    """Robust standard deviation: the median size under the weights, for a normal."""
    size, order = np.abs(residual), np.argsort(np.abs(residual))
    below = np.cumsum(weight[order]) / weight.sum()
    return 1.4826 * size[order][np.searchsorted(below, 0.5)]


def factors(residual, loss, scale):
    size = np.abs(residual)
    if loss == "huber":
        return np.minimum(1.0, 1.345 * scale / np.maximum(size, 1e-300))
    if loss == "weighted":
        return np.clip((3.0 - size / scale) / 0.5, 1e-4, 1.0)
    return 0.5 / np.maximum(size, 1e-3 * scale)


def make(family, data, C):
    if family == "dual":
        return LSSVR(C, gamma=0.4)
    return FixedSizeLSSVR(selection=data.X[::4] + 0.01, C=C, gamma=0.4)


@pytest.mark.parametrize("family", ["dual", "fixed"])
@pytest.mark.parametrize("loss", ["huber", "absolute", "weighted"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_output_has_a_robust_loss_of_its_own(family, loss, weighted):
    data = rows("spoiled outputs")
    weight = data.weight if weighted else None
    model = make(family, data, 2.0).set_params(loss=loss).fit(data.X, data.y, weight)
    for j in range(2):
        alone = clone(model).fit(data.X, data.y[:, j], weight)
        np.testing.assert_allclose(model.dual_coef_[:, [j]], alone.dual_coef_, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(model.intercept_[j], alone.intercept_[0], rtol=1e-9)


@pytest.mark.parametrize("family", ["dual", "fixed"])
@pytest.mark.parametrize("loss", ["huber", "absolute", "weighted"])
def test_a_robust_model_is_that_of_its_own_weights(family, loss):
    """One more weighted least squares refit, with weights of the model's residuals, stays there."""
    data = rows("spoiled outputs")
    squared = make(family, data, 2.0).fit(data.X, data.y, data.weight)
    model = make(family, data, 2.0).set_params(loss=loss).fit(data.X, data.y, data.weight)
    used = data.weight > 0
    for j in range(2):
        residual = (data.y - model.predict(data.X))[:, j]
        scale = scale_of(residual[used], data.weight[used])
        again = make(family, data, 2.0)
        again.fit(data.X, data.y[:, j], data.weight * factors(residual, loss, scale))
        moved = again.predict(data.X)[used] - model.predict(data.X)[used, j]
        size = np.sqrt(np.average(moved**2, weights=data.weight[used]))
        from_squares = (squared.predict(data.X) - model.predict(data.X))[used, j]
        assert size < 1e-2 * scale
        assert size < 0.05 * np.sqrt(np.average(from_squares**2, weights=data.weight[used]))


def huber_weights(data, C, family):
    """Return the weights of rows after Huber's loss: as far off as their worst output."""
    worst = np.ones(len(data.y))
    for j in range(data.y.shape[1]):
        y = data.y[:, j]
        model = make(family, data, C).fit(data.X, y, data.weight)
        for _ in range(30):
            residual = y - model.predict(data.X)
            scale = scale_of(residual, data.weight)
            weight = data.weight * factors(residual, "huber", scale)
            model = make(family, data, C).fit(data.X, y, weight)
        residual = y - model.predict(data.X)
        far = factors(residual, "weighted", scale_of(residual, data.weight))
        worst = np.minimum(worst, far)
    return worst * data.weight


def held_out(data, C, family, splits, weight):
    predicted = np.empty_like(data.y)
    for train, test in splits:
        predicted[test] = (
            make(family, data, C).fit(data.X[train], data.y[train], weight[train])
        ).predict(data.X[test])
    return predicted


def choose(data, family, splits, weight, Cs):
    """Return the C of the smallest absolute error under the weights, and that error."""
    errors = [
        np.average(
            np.abs(held_out(data, C, family, splits, weight) - data.y).mean(axis=1), weights=weight
        )
        for C in Cs
    ]
    best = int(np.argmin(errors))
    return Cs[best], errors[best]


@pytest.mark.parametrize("family", ["dual", "fixed"])
def test_a_robust_loss_is_tuned_without_the_rows_that_are_far_off(family):
    """Tune, weigh down what Huber's model is far off from, tune, weigh down what was held out."""
    data = rows("spoiled outputs")
    data = replace(data, weight=np.where(data.weight > 0, data.weight, 1.0))
    splits, Cs = folds(len(data.y)), (0.05, 1.0, 20.0)
    C, first = choose(data, family, splits, data.weight, Cs)
    weight = huber_weights(data, C, family)
    C, _ = choose(data, family, splits, weight, Cs)
    predicted = held_out(data, C, family, splits, weight)
    worst = np.ones(len(data.y))
    for residual in (data.y - predicted).T:
        far = factors(residual, "weighted", scale_of(residual, data.weight))
        worst = np.minimum(worst, far)
    C, third = choose(data, family, splits, worst * data.weight, Cs)
    model = make(family, data, "cv").set_params(loss="huber", cv=splits, search=GridSearch(C=Cs))
    model.fit(data.X, data.y, data.weight)
    assert first > 1.5 * third  # the outliers count no longer
    assert np.all(np.asarray(model.C_) == C)
    np.testing.assert_allclose(-model.best_score_, third, rtol=5e-3)
