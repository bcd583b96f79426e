"""The same answer from every family and every engine, where mathematics says so."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from tests.contracts.cases import CASES, TOLERANCE
from tests.contracts.inputs import rows
from tests.contracts.running import differences, host, learn, run, scheduler

from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVC, GreedyLSSVR, scan
from lssvm.codes import Coding
from lssvm.solvers import SMO, ConjugateGradient
from lssvm.tuning import GridSearch, PositionFolds, PositionHoldout


def outputs(model, X):
    kind = "decision_function" if hasattr(model, "classes_") else "predict"
    return host(getattr(model, kind)(X))


def check_same(found, expected, X, tolerance=1e-7):
    """Assert that two models give the same outputs, relative to their scale."""
    mine, its = outputs(found, X), outputs(expected, X)
    np.testing.assert_allclose(mine, its, rtol=0.0, atol=tolerance * np.abs(its).max())


# -- engines -----------------------------------------------------------------------------------


def by_position(cv):
    """Return the folds that a scan deals, for arrays."""
    if isinstance(cv, int):
        return PositionFolds(cv)
    return PositionHoldout(cv) if isinstance(cv, float) else cv


# the folds of this one are those of the prototypes alone, on a scan by content
OWN_FOLDS = ("fixed ssd",)


def in_memory():
    """Return the cases of arrays and of scans that fit in memory."""
    for case in CASES.values():
        if {"host", "scan"} <= set(case.engines) and not case.then and case.name not in OWN_FOLDS:
            yield pytest.param(case, id=case.name)


@pytest.mark.parametrize("case", list(in_memory()))
def test_a_scan_gives_the_model_of_the_array_with_its_folds(case):
    model, looser = case.make(), case.looser
    if case.family == "table":  # has no cv: a scan is read as the array, folds and all
        dealt, looser = case, {}
    else:
        dealt = replace(case, make=lambda: clone(model).set_params(cv=by_position(model.cv)))
    mine, its = run(case, "scan"), run(dealt, "host")
    mine.pop("solver_", None)  # arrays may be solved in feature space, to the same numbers
    its.pop("solver_", None)
    far = differences(mine, its, TOLERANCE, looser)
    assert not far, "\n".join(far)


STREAMED = {
    "two": ("many two", {}),
    "balanced": ("many two", {"class_weight": "balanced"}),
    "fisher": ("many two", {"multiclass": Coding(targets="fisher")}),
    "class weights": ("many two", {"class_weight": {0: 1.0, 1: 3.0}}),
    "roc_auc": ("many two", {"scoring": "roc_auc", "search": GridSearch(C=(1.0, 30.0, 900.0))}),
    "ovo": ("many three", {"multiclass": "ovo"}),
    "ova": ("many three", {"multiclass": "ova"}),
    "numbers": ("many numbers", {}),
    "outputs": ("many outputs", {}),
    "r2": ("many outputs", {"scoring": "r2"}),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", STREAMED)
def test_rows_read_in_blocks_give_the_model_of_the_array(name, weighted):
    data_name, options = STREAMED[name]
    data = rows(data_name)
    weight = data.weight if weighted else None
    kind = FixedSizeLSSVC if data.task.startswith("classes") else FixedSizeLSSVR
    options = {"selection": data.X[::450], "gamma": 0.4, "n_jobs": 1, **options}
    held = kind(cv=PositionFolds(2), **options).fit(data.X, data.y, weight)
    blocks = kind(cv=2, memory_budget=5_700_000, **options)
    blocks.fit(scan(data.X, target=data.y, weight=weight, prepare=False))
    np.testing.assert_allclose(blocks.C_, held.C_, rtol=1e-9)
    np.testing.assert_allclose(blocks.best_score_, held.best_score_, rtol=1e-9)
    check_same(blocks, held, data.new, 1e-9)


# -- all rows as prototypes, or in the basis, give the dual model --------------------------------

CLASSES = [
    ("two", {}),
    ("two", {"multiclass": Coding(targets=(2.0, 0.5))}),
    ("uneven", {"multiclass": Coding(targets="fisher")}),
    ("uneven", {"class_weight": "balanced"}),
    ("uneven", {"class_weight": {-1: 1.0, 1: 3.0}}),
    ("three", {"multiclass": "ovo"}),
    ("three", {"multiclass": Coding("ovo", targets="fisher"), "class_weight": "balanced"}),
    ("three", {"multiclass": "ova"}),
    ("five", {"multiclass": "moc"}),
    ("five", {"multiclass": Coding("ecoc", decoding="hamming")}),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "options"), CLASSES, ids=str)
@pytest.mark.parametrize("engine", ["host", "strict", "scan"])
def test_all_rows_as_prototypes_give_the_dual_classifier(name, options, engine, weighted):
    data = rows(name)
    weight = data.weight if weighted else None
    dual = LSSVC(2.0, gamma=1.5, **options).fit(data.X, data.y, weight)
    fixed = FixedSizeLSSVC(selection=data.X, C=2.0, gamma=1.5, **options)
    if engine == "strict":
        fixed.set_params(device="cpu")
    learn(fixed, "fit", engine, data.X, data.y, weight)
    check_same(fixed, dual, data.new)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["numbers", "outputs"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern"])
def test_all_rows_as_prototypes_give_the_dual_regressor(name, kernel, weighted):
    data = rows(name)
    weight = data.weight if weighted else None
    dual = LSSVR(2.0, gamma=1.5, kernel=kernel).fit(data.X, data.y, weight)
    fixed = FixedSizeLSSVR(selection=data.X, C=2.0, gamma=1.5, kernel=kernel)
    check_same(fixed.fit(data.X, data.y, weight), dual, data.new)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["huber", "absolute", "weighted"])
def test_robust_losses_of_both_families_take_the_same_steps(loss, weighted):
    data = rows("spoiled outputs")
    weight = data.weight if weighted else None
    dual = LSSVR(2.0, gamma=1.5, loss=loss).fit(data.X, data.y, weight)
    fixed = FixedSizeLSSVR(selection=data.X, C=2.0, gamma=1.5, loss=loss)
    fixed.fit(data.X, data.y, weight)
    assert fixed.n_iter_ == dual.n_reweightings_ > 1
    check_same(fixed, dual, data.new, 1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        (name, options)
        for name, options in CLASSES
        if Coding.of(options.get("multiclass")).targets == "label"
    ],
    ids=str,
)
def test_a_greedy_classifier_of_all_rows_is_the_dual_one(name, options, weighted):
    data = rows(name)
    weight = data.weight if weighted else None
    dual = LSSVC(2.0, gamma=1.5, **{"multiclass": "ova", **options}).fit(data.X, data.y, weight)
    greedy = GreedyLSSVC(2.0, gamma=1.5, epsilon=0.0, **options).fit(data.X, data.y, weight)
    check_same(greedy, dual, data.new)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["numbers", "outputs", "repeated"])
def test_a_greedy_regressor_of_all_rows_is_the_dual_one(name, weighted):
    data = rows(name)
    weight = data.weight if weighted else None
    dual = LSSVR(2.0, gamma=1.5).fit(data.X, data.y, weight)
    greedy = GreedyLSSVR(2.0, gamma=1.5, epsilon=0.0).fit(data.X, data.y, weight)
    check_same(greedy, dual, data.new)


@pytest.mark.parametrize(
    "solver",
    [ConjugateGradient(tol=1e-11, preconditioner="nystrom"), SMO(tol=1e-11), "cholesky"],
    ids=str,
)
@pytest.mark.parametrize("name", ["two", "three"])
def test_solvers_of_the_dual_give_one_model(solver, name):
    data = rows(name)
    exact = LSSVC(2.0, gamma=0.4).fit(data.X, data.y, data.weight)
    other = LSSVC(2.0, gamma=0.4, solver=solver).fit(data.X, data.y, data.weight)
    check_same(other, exact, data.new)


@pytest.mark.parametrize("solver", ["cholesky", "eigen", "tridiagonal"])
@pytest.mark.parametrize(("name", "multiclass"), [("two", "auto"), ("three", "ovo")])
def test_solvers_of_the_primal_give_one_model(solver, name, multiclass):
    data = rows(name)
    options = {"gamma": 0.4, "cv": 4, "multiclass": multiclass}
    first = FixedSizeLSSVC(20, **options).fit(data.X, data.y, data.weight)
    other = FixedSizeLSSVC(20, solver=solver, **options).fit(data.X, data.y, data.weight)
    np.testing.assert_allclose(other.C_, first.C_, rtol=1e-9)
    np.testing.assert_allclose(other.best_score_, first.best_score_, rtol=1e-9)
    check_same(other, first, data.new)


# -- weights -----------------------------------------------------------------------------------

MODELS = {
    "dual classes": (LSSVC(2.0, gamma=0.4), "three"),
    "dual classes tuned": (LSSVC("cv", gamma=0.4, cv=4), "three"),
    "dual ova scorer": (LSSVC("cv", gamma=0.4, cv=4, scoring="accuracy"), "two"),
    "dual balanced": (LSSVC("cv", gamma=0.4, cv=4, class_weight="balanced"), "uneven"),
    "dual fisher": (LSSVC(2.0, gamma=0.4, multiclass=Coding(targets="fisher")), "three"),
    "dual numbers": (LSSVR("cv", gamma=0.4, cv=4), "outputs"),
    "dual huber": (LSSVR(2.0, gamma=0.4, loss="huber"), "spoiled outputs"),
    "dual gcv": (LSSVR("cv", gamma=0.4, scoring="gcv"), "numbers"),
    "fixed classes": (FixedSizeLSSVC(C=2.0, gamma=0.4), "three"),
    "fixed classes tuned": (FixedSizeLSSVC(gamma=0.4, cv=4), "three"),
    "fixed ova tuned": (FixedSizeLSSVC(gamma=0.4, cv=4, multiclass="ova"), "three"),
    "fixed balanced": (FixedSizeLSSVC(gamma=0.4, cv=4, class_weight="balanced"), "uneven"),
    "fixed fisher": (FixedSizeLSSVC(gamma=0.4, cv=4, multiclass=Coding(targets="fisher")), "three"),
    "fixed threshold": (
        FixedSizeLSSVC(gamma=0.4, cv=4, multiclass=Coding(threshold="cv")),
        "uneven",
    ),
    "fixed numbers": (FixedSizeLSSVR(gamma=0.4, cv=4), "outputs"),
    "fixed huber": (FixedSizeLSSVR(C=2.0, gamma=0.4, loss="huber"), "spoiled outputs"),
    "greedy classes": (GreedyLSSVC(2.0, gamma=0.4), "three"),
    "greedy classes tuned": (GreedyLSSVC("cv", gamma=0.4, max_support=20), "two"),
    "greedy numbers": (GreedyLSSVR(2.0, gamma=0.4, epsilon=0.4), "outputs"),
}


def made(name):
    model, data = clone(MODELS[name][0]), rows(MODELS[name][1])
    if "selection" in model.get_params():
        model.set_params(selection=data.X[::6] + 0.01)
    return model, data


def check_tuned_alike(found, expected):
    np.testing.assert_allclose(found.C_, expected.C_, rtol=1e-9)
    if hasattr(expected, "best_score_"):
        np.testing.assert_allclose(found.best_score_, expected.best_score_, rtol=1e-8)


@pytest.mark.parametrize("name", MODELS)
def test_a_weight_of_two_is_the_row_twice(name):
    model, data = made(name)
    twice = np.arange(len(data.y)) % 3 == 0
    weighted = clone(model).fit(data.X, data.y, 1.0 + twice)
    X, y = (np.concatenate([array, array[twice]]) for array in (data.X, data.y))
    repeated = clone(model).fit(X, y)
    check_tuned_alike(weighted, repeated)
    check_same(weighted, repeated, data.new)


@pytest.mark.parametrize("name", MODELS)
def test_a_weight_of_zero_is_no_row(name):
    model, data = made(name)
    used = data.weight > 0
    weighted = clone(model).fit(data.X, data.y, data.weight)
    without = clone(model).fit(data.X[used], data.y[used], data.weight[used])
    check_tuned_alike(weighted, without)
    check_same(weighted, without, data.new, 1e-9)


@pytest.mark.parametrize("multiclass", ["ovo", "ova", "moc"])
@pytest.mark.parametrize("family", ["dual", "fixed", "greedy"])
def test_weights_of_classes_are_weights_of_their_rows(family, multiclass):
    data = rows("three")
    factors = {1: 0.5, 4: 2.0, 7: 3.0}
    model = {
        "dual": LSSVC("cv", gamma=0.4, cv=4),
        "fixed": FixedSizeLSSVC(selection=data.X[::6] + 0.01, gamma=0.4, cv=4),
        "greedy": GreedyLSSVC(2.0, gamma=0.4),
    }[family].set_params(multiclass=multiclass)
    by_class = clone(model).set_params(class_weight=factors).fit(data.X, data.y, data.weight)
    own = data.weight * np.array([factors[label] for label in data.y])
    by_row = clone(model).fit(data.X, data.y, own)
    check_tuned_alike(by_class, by_row)
    np.testing.assert_allclose(by_class.dual_coef_, by_row.dual_coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(by_class.intercept_, by_row.intercept_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("family", ["dual", "fixed", "greedy"])
def test_balanced_classes_weigh_the_same(family):
    data = rows("three")
    model = {
        "dual": LSSVC(2.0, gamma=0.4),
        "fixed": FixedSizeLSSVC(selection=data.X[::6] + 0.01, C=2.0, gamma=0.4),
        "greedy": GreedyLSSVC(2.0, gamma=0.4),
    }[family].set_params(multiclass="ova")
    total = {label: data.weight[data.y == label].sum() for label in np.unique(data.y)}
    mean = data.weight.sum() / len(total)
    own = data.weight * np.array([mean / total[label] for label in data.y])
    balanced = clone(model).set_params(class_weight="balanced").fit(data.X, data.y, data.weight)
    check_same(balanced, clone(model).fit(data.X, data.y, own), data.new, 1e-9)


# -- updates -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "engine", ["host", "strict", "scan", pytest.param("dask", marks=pytest.mark.dask)]
)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("two", {}),
        ("three", {"multiclass": "ovo"}),
        ("uneven", {"class_weight": "balanced"}),
        ("three", {"multiclass": Coding("ova", targets="fisher")}),
        ("outputs", {}),
    ],
    ids=str,
)
def test_rows_added_and_removed_give_the_model_of_the_rest(name, options, engine):
    data = rows(name)
    kind = FixedSizeLSSVC if data.task.startswith("classes") else FixedSizeLSSVR
    model = kind(selection=data.X[::6] + 0.01, C=2.0, gamma=0.4, **options)
    left = np.r_[0:60, 80 : len(data.y)]
    expected = clone(model).fit(data.X[left], data.y[left], data.weight[left])
    if engine == "strict":
        model.set_params(device="cpu")
    with scheduler(engine):
        for method, start, stop in (("fit", 0, 90), ("partial_fit", 90, None), ("forget", 60, 80)):
            part = slice(start, stop)
            learn(model, method, engine, data.X[part], data.y[part], data.weight[part])
    check_same(model, expected, data.new)
