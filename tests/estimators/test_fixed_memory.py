"""Memory beyond the input: what a fit allocates for every row."""

import tracemalloc

import numpy as np
import pytest

from lssvm import FixedSizeLSSVC, FixedSizeLSSVR, LSSVMRegressor
from lssvm.codes import Coding
from lssvm.data.folds import DistinctRows, hash_rows
from lssvm.fitting import fixed_solution
from lssvm.fitting.fixed_settings import SELECTED_FROM


def peak(kind, n, n_classes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 2))
    y = X[:, 0] + 0.5 * rng.standard_normal(n)
    if n_classes:
        y = np.digitize(y, np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]))
    model = kind(8, gamma=0.5, cv=3, n_jobs=1, random_state=0, memory_budget="50MB")
    tracemalloc.start()
    try:
        model.fit(X, y)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("kind", "n_classes"),
    [(FixedSizeLSSVR, 0), (FixedSizeLSSVC, 2), (FixedSizeLSSVC, 4)],
    ids=["regression", "two classes", "one-versus-one"],
)
def test_a_row_costs_few_bytes_beyond_the_input(kind, n_classes):
    small, large = 120_000, 240_000
    growth = (peak(kind, large, n_classes) - peak(kind, small, n_classes)) / (large - small)
    # Row numbers of the folds up to three times, 4 bytes each, a class number of 2, some marks of
    # one, and what is in passing while a third of the rows is a fold.
    assert growth < 24


def test_prototypes_of_many_rows_are_rows_and_show_every_class():
    rng = np.random.default_rng(1)
    n = SELECTED_FROM + 5000
    X = rng.standard_normal((n, 2))
    y = np.where(X[:, 0] > 0, "many", "more")
    y[:30] = "rare"
    model = FixedSizeLSSVC(
        30, C=1.0, gamma=0.5, multiclass=Coding("ova", calibration=None), random_state=0
    )
    model.fit(X, y)
    assert np.array_equal(X[model.support_], model.prototypes_)
    assert np.any(y[model.support_] == "rare")


@pytest.mark.parametrize("n_different", [1, 20, 50, 2000])
def test_different_rows_are_counted_whatever_is_repeated(n_different, monkeypatch):
    monkeypatch.setattr("lssvm.data.folds._COUNTED", 50)
    different = np.arange(n_different, dtype=float)[:, None]
    rows = np.concatenate([np.zeros((400, 1)), different, np.zeros((400, 1))])  # 0 hashes to 0
    tolerance = 0.0 if n_different <= 50 else 0.3
    counted = DistinctRows()
    for part in np.array_split(rows, 7):
        counted.add(hash_rows(part))
    assert counted.n_distinct() == pytest.approx(n_different, rel=tolerance)


@pytest.mark.parametrize("kind", [FixedSizeLSSVC, FixedSizeLSSVR])
def test_many_equal_rows_leave_room_for_other_prototypes(kind, monkeypatch):
    monkeypatch.setattr("lssvm.fitting.fixed_settings.SELECTED_FROM", 300)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 2))
    X[::4] = 0.0  # their hash is the smallest there is
    y = np.sin(X[:, 0])
    y = (y > 0).astype(int) if kind is FixedSizeLSSVC else y
    model = kind(10, C=10.0, gamma=1.0).fit(X, y)
    assert model.prototypes_.shape == (10, 2)
    assert len(np.unique(model.prototypes_, axis=0)) == 10
    np.testing.assert_array_equal(model.prototypes_, X[model.support_])
    assert model.score(X, y) > 0.85


def test_many_rows_of_zeros_do_not_fill_the_calibration():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 2))
    X[::2] = 0.0
    y = X[:, 0] + 0.3 * rng.normal(size=len(X)) * (1.0 + np.abs(X[:, 0]))
    interval = FixedSizeLSSVR(10, C=1.0, gamma=0.5).fit(X, y).predict_interval(X[1::2])
    inside = (y[1::2] >= interval[:, 0]) & (y[1::2] <= interval[:, 1])
    assert 0.93 < inside.mean() < 0.97


def test_leaves_of_a_table_keep_to_the_memory_budget():
    """Their matrices do; the prepared table and what is computed for all rows come on top."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4))
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(3000)
    peaks = {}
    for budget in (10, 1000):
        options = {"leaf_size": 3000, "metric": None, "kernel": "rbf", "scaling": "standardised"}
        model = LSSVMRegressor("fast", n_jobs=1, memory_budget=f"{budget} MB", **options)
        tracemalloc.start()
        try:
            model.fit(X, y)
            peaks[budget] = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peaks[10] < 1.5 * 10e6 + 8 * X.nbytes
    assert peaks[1000] > 40e6


@pytest.mark.parametrize(("times", "kept"), [(2.1, True), (1.9, False)])
def test_blocks_of_the_kernel_are_kept_if_they_take_half_of_what_remains(times, kept, monkeypatch):
    n, m, seen = 4000, 50, []
    X = np.random.default_rng(0).normal(size=(n, 3))
    products = fixed_solution.KernelProducts

    def watched(*args, **options):
        seen.append(options["keep"])
        return products(*args, **options)

    monkeypatch.setattr(fixed_solution, "KernelProducts", watched)
    others = 8 * m * (m + 1) + 8 * (512 * m + 2**19 + 128 * m)
    budget = int(others + times * 8 * n * (m + 1))
    model = FixedSizeLSSVR(m, C=1.0, gamma=0.3, solver="pcg", memory_budget=budget, n_jobs=1)
    model.fit(X, X[:, 0])
    assert seen == [kept]
