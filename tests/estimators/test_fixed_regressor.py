import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, cross_val_score

from lssvm import LSSVR, GreedyLSSVR
from lssvm._core.errors import ConvergenceWarning, InvalidInputError, NumericalWarning
from lssvm.estimators.fixed_size import FixedSizeLSSVR
from lssvm.kernels import Polynomial
from lssvm.tuning import GridSearch, PathSearch


def data(n=150, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("kernel", ["rbf", Polynomial(degree=2), "laplacian", "matern"], ids=str)
def test_all_rows_as_prototypes_is_the_dual_model(kernel):
    X, y = data()
    s = np.random.default_rng(1).random(len(X)) + 0.1
    options = {"C": 3.0, "gamma": 0.2, "kernel": kernel}
    fixed = FixedSizeLSSVR(len(X), **options).fit(X, y, s)
    dual = LSSVR(solver="cholesky", **options).fit(X, y, s)
    new = data(50, seed=2)[0]
    np.testing.assert_allclose(fixed.predict(new), dual.predict(new), atol=1e-6)


def test_linear_kernel_in_closed_form_is_the_dual_model():
    X, y = data(400)
    fixed = FixedSizeLSSVR(5, C=3.0, kernel="linear").fit(X, y)
    dual = LSSVR(3.0, kernel="linear", solver="cholesky").fit(X, y)
    np.testing.assert_allclose(fixed.predict(X), dual.predict(X), atol=1e-7)
    assert fixed.prototypes_.shape == (4, 4)


def test_cross_validation_equals_refits():
    X, y = data(200)
    Z = X[:30]
    cv = KFold(5, shuffle=True, random_state=0)
    search = GridSearch()
    model = FixedSizeLSSVR(selection=Z, cv=cv, search=search).fit(X, y)
    results = model.cv_results_
    for i in np.linspace(0, len(results["params"]) - 1, 7).astype(int):
        C, gamma = results["params"][i]["C"], results["params"][i]["gamma"]
        if C > 1e4:
            continue
        for v, (train, test) in enumerate(cv.split(X)):
            refit = FixedSizeLSSVR(selection=Z, C=C, gamma=gamma).fit(X[train], y[train])
            error = np.mean((refit.predict(X[test]) - y[test]) ** 2)
            np.testing.assert_allclose(-results[f"split{v}_test_score"][i], error, rtol=1e-8)


def test_tuning_finds_a_good_model_by_itself():
    X, y = data(600)
    model = FixedSizeLSSVR().fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.9
    assert model.n_prototypes_ == 200
    assert model.best_score_ == model.cv_results_["mean_test_score"].max()
    np.testing.assert_array_equal(model.prototypes_, X[model.support_])


FOLDS = {
    "loo": LeaveOneOut(),
    "folds": KFold(4, shuffle=True, random_state=1),
    "overlapping": ShuffleSplit(3, random_state=0, test_size=0.3),
}


@pytest.mark.parametrize("folds", FOLDS)
@pytest.mark.parametrize("scoring", [None, "neg_median_absolute_error"])
def test_folds_and_scorers(folds, scoring):
    """The scores are those of refits on the same folds, and C is the best of them."""
    X, y = data(48)
    Cs, fixed = (0.02, 0.5, 10.0, 300.0), {"selection": X[::3], "gamma": 0.1}
    cv, splits = "loo" if folds == "loo" else FOLDS[folds], list(FOLDS[folds].split(X))
    model = FixedSizeLSSVR(cv=cv, scoring=scoring, search=GridSearch(C=Cs), **fixed).fit(X, y)
    expected = []
    for C in Cs:
        refits = [FixedSizeLSSVR(C=C, **fixed).fit(X[train], y[train]) for train, _ in splits]
        errors = [y[test] - m.predict(X[test]) for m, (_, test) in zip(refits, splits, strict=True)]
        if scoring is None:
            expected.append(-np.mean(np.concatenate(errors) ** 2))
        elif folds == "loo":  # single rows are scored together
            expected.append(-np.median(np.abs(np.concatenate(errors))))
        else:
            expected.append(-np.mean([np.median(np.abs(error)) for error in errors]))
    found = dict(
        zip(model.cv_results_["param_C"], model.cv_results_["mean_test_score"], strict=True)
    )
    np.testing.assert_allclose([found[C] for C in Cs], expected, rtol=1e-7)
    assert model.C_ == Cs[int(np.argmax(expected))]


@pytest.mark.parametrize("solver", ["cholesky", "eigen", "tridiagonal"])
def test_solvers_agree(solver):
    X, y = data(200)
    options = {"gamma": 0.1, "selection": X[:20], "search": PathSearch(n_C=20)}
    auto = FixedSizeLSSVR(**options).fit(X, y)
    other = FixedSizeLSSVR(solver=solver, **options).fit(X, y)
    np.testing.assert_allclose(other.predict(X), auto.predict(X), rtol=1e-6)


def test_weights_are_repeats():
    X, y = data(180)
    s = np.random.default_rng(3).integers(0, 3, len(X))  # most rows differ when they are repeated
    options = {"selection": X[:25], "gamma": 0.1}
    weighted = FixedSizeLSSVR(**options).fit(X, y, s)
    repeated = FixedSizeLSSVR(**options).fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6)


def test_adding_and_forgetting_rows_equal_a_refit():
    X, y = data(300)
    Y = np.column_stack([y, -2.0 * y + X[:, 0]])
    s = np.random.default_rng(4).random(300) + 0.5
    options = {"selection": X[:25], "gamma": 0.1, "C": 10.0}
    model = FixedSizeLSSVR(**options).fit(X[:200], Y[:200], s[:200])
    model.partial_fit(X[200:], Y[200:], s[200:])
    whole = FixedSizeLSSVR(**options).fit(X, Y, s)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-8, atol=1e-9)
    model.forget(X[:200], Y[:200], s[:200])
    part = FixedSizeLSSVR(**options).fit(X[200:], Y[200:], s[200:])
    np.testing.assert_allclose(model.predict(X), part.predict(X), rtol=1e-6, atol=1e-7)
    with pytest.raises(InvalidInputError, match="more rows"):
        model.forget(X[:200], Y[:200])


def test_the_first_partial_fit_is_a_fit():
    X, y = data(100)
    a = FixedSizeLSSVR(20, gamma=0.1, C=1.0).partial_fit(X, y)
    b = FixedSizeLSSVR(20, gamma=0.1, C=1.0).fit(X, y)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))


@pytest.mark.parametrize("loss", ["huber", "absolute"])
def test_robust_losses_resist_outliers(loss):
    X, y = data(300)
    spoiled = y.copy()
    spoiled[:20] += 30.0
    squared = FixedSizeLSSVR(40, cv=3).fit(X, spoiled)
    robust = FixedSizeLSSVR(40, cv=3, loss=loss).fit(X, spoiled)
    assert robust.n_iter_ > 0
    error = [np.abs(m.predict(X) - y)[20:].mean() for m in (squared, robust)]
    assert error[1] < 0.7 * error[0]
    with pytest.raises(AttributeError, match="partial_fit") as caught:
        robust.partial_fit(X, y)
    assert "use loss='squared'" in str(caught.value.__cause__)


def test_number_of_prototypes_by_cross_validation():
    X, y = data(500)
    model = FixedSizeLSSVR("cv", gamma=0.1).fit(X, y)
    sizes, scores = (model.size_results_[k] for k in ("n_prototypes", "mean_test_score"))
    assert len(sizes) == 5
    assert model.n_prototypes_ == sizes[np.argmax(scores)] == len(model.prototypes_)
    refit = FixedSizeLSSVR(selection=model.prototypes_, gamma=0.1, C=model.C_).fit(X, y)
    np.testing.assert_allclose(model.predict(X), refit.predict(X), rtol=1e-7, atol=1e-7)


def test_rows_are_added_to_a_model_of_fewer_prototypes():
    X, y = data(500)
    model = FixedSizeLSSVR("cv", gamma=0.01, C=1.0).fit(X[:400], y[:400])
    options = {"selection": model.prototypes_, "gamma": 0.01, "C": 1.0}
    model.partial_fit(X[400:], y[400:])
    refit = FixedSizeLSSVR(**options).fit(X, y)
    np.testing.assert_allclose(model.predict(X), refit.predict(X), atol=1e-6)


def test_too_many_prototypes_are_reduced_with_a_warning():
    X, y = data(40)
    with pytest.warns(NumericalWarning, match="reduced to 40"):
        model = FixedSizeLSSVR(100, C=1.0, gamma=0.1).fit(X, y)
    assert model.n_prototypes_ == 40


def test_duplicate_prototypes_are_harmless():
    X, y = data(200)
    options = {"C": 1.0, "gamma": 0.1}
    one = FixedSizeLSSVR(selection=X[:20], **options).fit(X, y)
    two = FixedSizeLSSVR(selection=np.vstack([X[:20], X[:20]]), **options).fit(X, y)
    np.testing.assert_allclose(one.predict(X), two.predict(X), atol=1e-6)


def test_threads_and_budget_change_nothing():
    X, y = data(1500)
    options = {"n_prototypes": 40, "C": 1.0, "gamma": 0.1}
    a = FixedSizeLSSVR(n_jobs=1, **options).fit(X, y)
    b = FixedSizeLSSVR(n_jobs=3, memory_budget="2 MB", **options).fit(X, y)
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-9, atol=1e-10)


def test_an_interrupted_fit_keeps_the_best_so_far_where_that_is_asked_for(monkeypatch):
    X, y = data(200)
    seen = []

    class Stopping:
        def __init__(self, verbose):
            pass

        def __call__(self, event):
            seen.append(event)
            if len(seen) == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr("lssvm.estimators.base.Progress", Stopping)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = FixedSizeLSSVR(20, search=PathSearch(on_interrupt="keep")).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


def test_an_interrupted_fit_raises_and_leaves_an_unfitted_model(monkeypatch):
    X, y = data(200)
    model = FixedSizeLSSVR(20).fit(X, y)

    class Stopping:
        def __init__(self, verbose):
            pass

        def __call__(self, event):
            raise KeyboardInterrupt

    monkeypatch.setattr("lssvm.estimators.base.Progress", Stopping)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    with pytest.raises(Exception, match="not fitted"):
        model.predict(X)


@pytest.mark.parametrize("cls", [LSSVR, FixedSizeLSSVR, GreedyLSSVR])
def test_an_interruption_ends_the_loop_of_a_cross_validation(cls, monkeypatch):
    X, y = data(60)
    fits = []

    class Stopping:
        def __init__(self, verbose):
            fits.append(verbose)

        def __call__(self, event):
            raise KeyboardInterrupt

    monkeypatch.setattr("lssvm.estimators.base.Progress", Stopping)
    with pytest.raises(KeyboardInterrupt):
        cross_val_score(cls(C="cv", gamma="cv", cv=3), X, y, cv=4, error_score=0.0)
    assert len(fits) == 1


def test_a_fit_that_fails_leaves_an_unfitted_model(monkeypatch):
    X, y = data(100)
    model = FixedSizeLSSVR(20, C=1.0, gamma=0.1).fit(X, y)

    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("lssvm.backends.host.accumulate", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    with pytest.raises(Exception, match="not fitted"):
        model.predict(X)


def test_a_checkpoint_is_continued_to_the_same_answer(tmp_path):
    X, y = data(200)
    path = tmp_path / "run.jsonl"
    first = FixedSizeLSSVR(20, search=PathSearch(checkpoint=path)).fit(X, y)
    again = FixedSizeLSSVR(20, search=PathSearch(checkpoint=path)).fit(X, y)
    np.testing.assert_array_equal(first.predict(X), again.predict(X))
    with pytest.raises(InvalidInputError):
        FixedSizeLSSVR(20, search=PathSearch(checkpoint=path)).fit(X, y + 1.0)


@pytest.mark.parametrize(
    "options, match",
    [
        ({"n_prototypes": 0}, "n_prototypes"),
        ({"n_prototypes": "many"}, "n_prototypes"),
        ({"C": -1.0}, "C="),
        ({"gamma": "wide"}, "gamma"),
        ({"loss": "hinge"}, "loss"),
        ({"solver": "magic"}, "solver"),
        ({"kernel": "precomputed"}, "precomputed"),
        ({"search": "luck"}, "search"),
        ({"cv": 1}, "cv"),
        ({"scoring": "beauty"}, "scoring"),
        ({"memory_budget": 1000}, "memory budget"),
    ],
    ids=lambda x: str(x),
)
def test_unusable_parameters_are_named(options, match):
    X, y = data(60)
    with pytest.raises(ValueError, match=match):
        FixedSizeLSSVR(**options).fit(X, y)


def test_it_can_be_cloned_and_pickled():
    X, y = data(100)
    model = FixedSizeLSSVR(20, C=1.0, gamma=0.1).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert not hasattr(clone(model), "dual_coef_")
