"""One rule in every family and engine, where there were several."""

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from tests.contracts.inputs import rows
from tests.contracts.refits import (
    TUNERS,
    check_scores,
    fold_scores,
    margin,
    pooled_score,
    splits_of,
    tuned,
    unweighted,
)
from tests.contracts.running import learn, scheduler

from lssvm import (
    LSSVC,
    FixedSizeLSSVC,
    FixedSizeLSSVR,
    GreedyLSSVC,
    LSSVMRegressor,
    scan,
)
from lssvm.codes import Coding


def engines(names):
    """Return parameters, those of Dask marked."""
    for name in names:
        marks = [pytest.mark.dask] if name.endswith("dask") else []
        yield pytest.param(name, marks=marks)


def split_evenly(n, size):
    """Return splits with ``size`` rows to test on."""
    tests = [np.arange(i, min(i + size, n)) for i in range(0, n, size)]
    return [(np.setdiff1d(np.arange(n), test), test) for test in tests]


def few(name, n):
    """Return the first rows of a data set, without weights."""
    data = rows(name)
    return replace(data, X=data.X[:n], y=data.y[:n], weight=np.ones(n))


# -- 1. the folds of a scorer are averaged, and pooled only where one has fewer than 3 rows or lacks
# a class without which there is no score --------------------------------------------------------

ON_ARRAYS = ("dual-host", "fixed-host", "fixed-strict")


@pytest.mark.parametrize(
    "tuner",
    list(engines(ON_ARRAYS)),
)
@pytest.mark.parametrize(("name", "scoring"), [("three", margin), ("numbers", "r2")])
def test_many_folds_of_a_scorer_are_averaged(tuner, name, scoring):
    data = few(name, 78)
    data = replace(data, X=data.X.repeat(2, axis=0), y=data.y.repeat(2, axis=0))
    data = replace(data, weight=np.ones(156))
    splits = split_evenly(156, 3)  # of the fewest rows that are averaged
    assert len(splits) > 50
    options = {"multiclass": "ova"} if name == "three" else {}
    model = tuned(tuner, data, splits, scoring=scoring, **options)
    check_scores(model, lambda gamma: np.mean(fold_scores(model, data, gamma, splits, scoring)))


@pytest.mark.parametrize(
    "tuner",
    list(engines(ON_ARRAYS)),
)
@pytest.mark.parametrize(("name", "scoring"), [("two", margin), ("numbers", "r2")])
def test_folds_of_two_rows_are_pooled_for_a_scorer(tuner, name, scoring):
    data = few(name, 60)
    splits = split_evenly(60, 2)
    assert len(splits) < 50
    model = tuned(tuner, data, splits, scoring=scoring)
    check_scores(model, lambda gamma: pooled_score(model, data, gamma, splits, scoring))


@pytest.mark.parametrize("tuner", list(engines(TUNERS)))
@pytest.mark.parametrize("scoring", ["average_precision", "roc_auc"])
def test_folds_that_lack_a_class_are_pooled_for_a_scorer(tuner, scoring):
    data = few("two", 60)
    y = np.where(np.arange(60) % 20 == 3, 1, -1)  # three rows, ten folds
    data, splits = replace(data, y=y), splits_of(tuner, 60, 10)
    with warnings.catch_warnings(action="error", category=UserWarning):
        model = tuned(tuner, data, splits, scoring=scoring)
    check_scores(model, lambda gamma: pooled_score(model, data, gamma, splits, scoring))


# -- 2. a scorer gets the caller's sample weights, never class weights ---------------------------


@pytest.mark.parametrize("tuner", list(engines(TUNERS)))
@pytest.mark.parametrize("scoring", ["accuracy", margin])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_scorer_gets_no_class_weights(tuner, scoring, weighted):
    data = rows("uneven")
    data = data if weighted else replace(data, weight=np.ones(len(data.y)))
    splits = splits_of(tuner, len(data.y))
    model = tuned(tuner, data, splits, scoring=scoring, class_weight={-1: 1.0, 1: 6.0})
    check_scores(model, lambda gamma: np.mean(fold_scores(model, data, gamma, splits, scoring)))


# -- 3. a bad decoding is refused for two classes too --------------------------------------------

CLASSIFIERS = {
    "dual-host": lambda **options: LSSVC(2.0, gamma=0.4, **options),
    "greedy-host": lambda **options: GreedyLSSVC(2.0, gamma=0.4, **options),
    "fixed-host": lambda **options: FixedSizeLSSVC(20, C=2.0, gamma=0.4, **options),
    "fixed-strict": lambda **options: FixedSizeLSSVC(20, C=2.0, gamma=0.4, **options).set_params(
        device="cpu"
    ),
    "fixed-scan": lambda **options: FixedSizeLSSVC(20, C=2.0, gamma=0.4, **options),
    "fixed-dask": lambda **options: FixedSizeLSSVC(20, C=2.0, gamma=0.4, **options),
}


def fit_classes(name, data, **options):
    engine = name.split("-")[1]
    with scheduler(engine):
        return learn(CLASSIFIERS[name](**options), "fit", engine, data.X, data.y, None)


@pytest.mark.parametrize("classifier", list(engines(CLASSIFIERS)))
def test_a_bad_decoding_is_refused_for_two_classes(classifier):
    with pytest.raises(ValueError, match="decoding"):
        fit_classes(classifier, rows("two"), multiclass=Coding(decoding="votes"))


@pytest.mark.parametrize("classifier", list(engines(CLASSIFIERS)))
def test_a_good_decoding_is_taken_for_two_classes(classifier):
    model = fit_classes(classifier, rows("two"), multiclass=Coding(decoding="hamming"))
    assert model.record_.task.decoding == "hamming" and len(np.asarray(model.classes_)) == 2


# -- 4. targets that are not finite are refused everywhere ---------------------------------------

WITH_TARGETS = [name for name in CLASSIFIERS if not name.startswith("greedy")]


@pytest.mark.parametrize("classifier", list(engines(WITH_TARGETS)))
@pytest.mark.parametrize("pair", [(np.inf, 1.0), (1.0, np.inf)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_infinite_targets_are_refused(classifier, pair):
    with pytest.raises(ValueError, match="targets"):
        fit_classes(classifier, rows("two"), multiclass=Coding(targets=pair))


@pytest.mark.parametrize("classifier", list(engines(WITH_TARGETS)))
@pytest.mark.parametrize("pair", [(0.0, 1.0), (np.nan, 1.0), (1.0,), "labels"])
def test_unusable_targets_are_refused(classifier, pair):
    with pytest.raises(ValueError, match="targets"):
        fit_classes(classifier, rows("two"), multiclass=Coding(targets=pair))


# -- 6. one tolerance and one limit for reweighting ----------------------------------------------


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_reweighting_ends_alike_wherever_rows_are(C):
    """Absolute loss has no scale that a sample could change: the steps are the same ones.

    That both families take the same steps in memory is tested where families are compared.
    """
    data = rows("many spoiled")
    y = data.y[:, 0]
    options = {"selection": data.X[::450], "gamma": 0.4, "loss": "absolute", "C": C, "n_jobs": 1}
    held = FixedSizeLSSVR(**options).fit(data.X, y)
    blocks = FixedSizeLSSVR(**options, memory_budget=5_700_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged
        blocks.fit(scan(data.X, target=y, prepare=False))
    assert abs(held.n_iter_ - blocks.n_iter_) <= 2


# -- 7. counts of classes come from the training rows of each fold -------------------------------


@pytest.mark.parametrize("tuner", list(engines(TUNERS)))
@pytest.mark.parametrize("multiclass", ["ovo", "ova"])
def test_fisher_targets_are_those_of_the_training_rows(tuner, multiclass):
    data = few("three", 150)
    splits = splits_of(tuner, 150)
    model = tuned(
        tuner, data, splits, scoring=margin, multiclass=Coding(multiclass, targets="fisher")
    )
    check_scores(model, lambda gamma: np.mean(fold_scores(model, data, gamma, splits, margin)))


@pytest.mark.parametrize("tuner", list(engines(TUNERS)))
@pytest.mark.parametrize("name", ["uneven", "three"])
def test_balanced_weights_are_those_of_the_training_rows(tuner, name):
    data = few(name, 140)
    splits = splits_of(tuner, 140)
    model = tuned(tuner, data, splits, scoring=unweighted, class_weight="balanced")
    check_scores(model, lambda gamma: np.mean(fold_scores(model, data, gamma, splits, unweighted)))


# -- threads: any number predicts, and a lock of the caller makes one of those that change -------


@pytest.mark.parametrize("kind", [FixedSizeLSSVR, LSSVMRegressor])
def test_threads_that_predict_get_what_one_gets(kind):
    data = few("numbers", 60)
    model = kind(random_state=0, n_jobs=1).fit(data.X, data.y)
    blocks = [data.X[i:] for i in range(12)]
    alone = [model.predict(X) for X in blocks]
    model = kind(random_state=0, n_jobs=1).fit(data.X, data.y)  # nothing is computed yet
    lock = threading.Lock()

    def work(i):
        with lock:
            model.partial_fit(data.X[i : i + 1], data.y[i : i + 1])
        return i

    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(alone, pool.map(model.predict, blocks), strict=True):
            np.testing.assert_array_equal(one, other)
        assert sorted(pool.map(work, range(12))) == list(range(12))
    twice = kind(random_state=0, n_jobs=1).fit(data.X, data.y)
    twice.partial_fit(data.X[:12], data.y[:12])
    np.testing.assert_allclose(model.predict(data.X), twice.predict(data.X), rtol=0, atol=1e-6)
