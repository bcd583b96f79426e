"""Sparse rows in fixed-size, greedy and table models: the dense answers, without dense rows."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import lssvm
from lssvm import (
    FixedSizeLSSVC,
    FixedSizeLSSVR,
    GreedyLSSVC,
    GreedyLSSVR,
    LSSVMClassifier,
    LSSVMRegressor,
)
from lssvm._core.errors import InvalidInputError, MemoryBudgetError
from lssvm.kernels import Matern, MetricKernel
from lssvm.tuning import PathSearch

rng = np.random.default_rng(0)
N, D = 240, 150
X = sp.random(N, D, density=0.05, random_state=1, format="csr")
F = np.asarray(X @ rng.normal(size=D)).ravel()
NUMBERS = F + 0.05 * rng.normal(size=N)
CLASSES = np.digitize(F, np.quantile(F, [0.33, 0.66]))
ROWS = np.arange(0, N, 6)


def _close(model, dense, tolerance=1e-6):
    np.testing.assert_allclose(model.C_, dense.C_)
    outputs = [
        one.record_.outputs({"none": X if one is model else X.toarray()}, one._host())
        for one in (model, dense)
    ]
    np.testing.assert_allclose(*outputs, atol=tolerance)


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", Matern(nu=1.5)])
def test_fixed_size_answers_are_those_of_dense_rows(kernel, layout):
    how = {"kernel": kernel, "selection": ROWS, "cv": 3, "gamma": 0.05}
    given = X.asformat(layout)
    model = FixedSizeLSSVR(**how).fit(given, NUMBERS)
    _close(model, FixedSizeLSSVR(**how).fit(X.toarray(), NUMBERS))
    assert kernel == "linear" or sp.issparse(model.record_.expansion.basis)
    np.testing.assert_allclose(model.predict(given), model.predict(X.toarray()), atol=1e-9)
    mean, std = model.predict(given[:9], return_std=True)
    assert np.all(std > 0) and mean.shape == (9,)
    classifier = FixedSizeLSSVC(**how, multiclass="ovo").fit(given, CLASSES)
    _close(classifier, FixedSizeLSSVC(**how, multiclass="ovo").fit(X.toarray(), CLASSES))
    np.testing.assert_allclose(classifier.predict_proba(given).sum(axis=1), 1.0)


def test_defaults_tune_on_sparse_rows():
    weight = rng.uniform(0.5, 2.0, N)
    model = FixedSizeLSSVC(60, cv=4).fit(X, CLASSES, sample_weight=weight)
    assert model.score(X, CLASSES) > 0.6  # a third by chance
    chosen = model.record_.state.support
    np.testing.assert_allclose(model.record_.expansion.basis.toarray(), X[chosen].toarray())
    again = FixedSizeLSSVC(60, cv=4).fit(X, CLASSES, sample_weight=weight)
    np.testing.assert_array_equal(chosen, again.record_.state.support)
    assert len(np.unique(chosen)) == 60
    drawn = FixedSizeLSSVC(60, cv=4, selection="random").fit(X, CLASSES)
    assert set(drawn.record_.state.support) != set(chosen)


@pytest.mark.parametrize(
    "more",
    [
        {"cv": "loo"},
        {"loss": "huber"},
        {"reduction": "spfs"},
        {"gamma": "ard"},
        {"scoring": "gcv"},
        {"scoring": "r2"},
        {"kernel": MetricKernel("rbf", "diagonal")},
        {"search": PathSearch(per_output=True)},
        {"n_prototypes": "cv"},
    ],
    ids=lambda more: "-".join(map(str, more.values())),
)
def test_options_give_the_answers_of_dense_rows(more):
    Y = np.column_stack([NUMBERS, 2.0 * F + 1.0])
    how = {"cv": 4, "selection": ROWS, "search": PathSearch(n_C=8, max_points=3)} | more
    model, dense = FixedSizeLSSVR(**how).fit(X, Y), FixedSizeLSSVR(**how).fit(X.toarray(), Y)
    np.testing.assert_allclose(model.gamma_, dense.gamma_)
    _close(model, dense, 1e-5)


def test_rows_are_added_and_forgotten():
    how = {"selection": ROWS, "C": 10.0, "gamma": 0.05}
    whole = FixedSizeLSSVR(**how).fit(X, NUMBERS)
    part = FixedSizeLSSVR(**how).fit(X[:239], NUMBERS[:239]).partial_fit(X[239:], NUMBERS[239:])
    np.testing.assert_allclose(part.predict(X), whole.predict(X), atol=1e-8)
    less = whole.forget(X[:20], NUMBERS[:20])
    assert np.all(np.isfinite(less.predict(X)))


def test_files_hold_sparse_prototypes(tmp_path):
    model = FixedSizeLSSVC(30, C=10.0, gamma=0.1).fit(X, CLASSES)
    lssvm.save(model, tmp_path / "model.lssvm")
    loaded = lssvm.load(tmp_path / "model.lssvm")
    assert sp.issparse(loaded.record_.expansion.basis)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("model", [GreedyLSSVR, GreedyLSSVC])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_greedy_answers_are_those_of_dense_rows(model, kernel):
    y = NUMBERS if model is GreedyLSSVR else CLASSES
    how = {"kernel": kernel, "C": 10.0, "gamma": 0.05, "max_support": 20}
    sparse, dense = model(**how).fit(X.tocsc(), y), model(**how).fit(X.toarray(), y)
    np.testing.assert_array_equal(sparse.record_.state.support, dense.record_.state.support)
    _close(sparse, dense)


@pytest.mark.parametrize(
    ("model", "how"),
    [
        (FixedSizeLSSVR, {"n_prototypes": 30}),
        (FixedSizeLSSVR, {"n_prototypes": 30, "kernel": "linear"}),
        (GreedyLSSVR, {"max_support": 20, "C": 10.0}),
        (GreedyLSSVR, {"max_support": 20, "C": 10.0, "kernel": "linear"}),
    ],
)
def test_nothing_becomes_dense(model, how):
    n, d = 1_500, 40_000  # 480 MB as a dense array
    made = np.random.default_rng(0)
    places = made.integers(d, size=20 * n)
    wide = sp.csr_matrix((np.ones(20 * n), places, np.arange(0, 20 * n + 1, 20)), shape=(n, d))
    y = np.asarray(wide @ made.normal(size=d)).ravel()
    tracemalloc.start()
    try:
        fitted = model(**how).fit(wide, y)
        fitted.predict(wide[:500])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6
    assert sp.issparse(fitted.record_.expansion.basis)


@pytest.mark.parametrize("model", [FixedSizeLSSVC, GreedyLSSVC])
def test_kernels_that_cannot_say_so(model):
    with pytest.raises((InvalidInputError, TypeError), match=r"dense|toarray"):
        model(kernel="laplacian").fit(X, CLASSES)


def test_what_needs_dense_rows_says_so():
    with pytest.raises(InvalidInputError, match=r"laplacian.*toarray"):
        FixedSizeLSSVC(kernel="laplacian").fit(X, CLASSES)
    with pytest.raises(InvalidInputError, match=r"kmeans.*sparse.*renyi"):
        FixedSizeLSSVC(30, selection="kmeans").fit(X, CLASSES)
    with pytest.raises(InvalidInputError, match=r"conjugate gradients.*dense"):
        FixedSizeLSSVC(30, solver="pcg").fit(X, CLASSES)


@pytest.mark.parametrize("model", [LSSVMRegressor, LSSVMClassifier])
def test_tables_are_prepared_as_dense_columns(model):
    y = NUMBERS if model is LSSVMRegressor else CLASSES
    some, y = X[:90, :12], y[:90]
    how = {"scaling": "standardised", "kernel": "rbf", "metric": None}
    sparse, dense = (model("fast", **how).fit(A, y) for A in (some, some.toarray()))
    np.testing.assert_array_equal(sparse.predict(some), dense.predict(some.toarray()))


def test_tables_that_would_not_fit_name_models_that_do(monkeypatch):
    monkeypatch.setattr("lssvm.data.columns.as_bytes", lambda budget: 10**9)
    wide = sp.csr_matrix((10_000, 10**6))
    with pytest.raises(MemoryBudgetError, match="FixedSizeLSSVC"):
        LSSVMClassifier().fit(wide, np.arange(10_000) % 2)
