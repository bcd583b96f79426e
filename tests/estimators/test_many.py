"""``solver="pcg"`` of the fixed-size models."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from tests.outputs import raw_outputs

import lssvm.estimators.opening as scan_opening
import lssvm.fitting.fixed_size as recipe
from lssvm import FixedSizeLSSVC, FixedSizeLSSVR, scan
from lssvm._core.errors import ConvergenceWarning, InvalidInputError, MemoryBudgetError
from lssvm.codes import Coding
from lssvm.data import Scan
from lssvm.solvers import PCG

N = 1200
rng = np.random.default_rng(1)
X = rng.standard_normal((N, 3))
y = 20.0 + np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(N)
label = np.array(["high", "low", "mid"])[np.digitize(y - 20.0, [-0.5, 0.7])]
weight = rng.integers(0, 4, N).astype(float)
Z = X[:80]
GIVEN = {"C": 10.0, "gamma": 2.0, "selection": Z}
TIGHT = PCG(tol=1e-10)


def outputs(model, rows=X):
    return raw_outputs(model, rows)


@pytest.mark.parametrize("s", [None, weight])
def test_regression_equals_the_direct_solution(s):
    Y = np.column_stack([y, X[:, 0] * X[:, 1]])
    direct = FixedSizeLSSVR(solver="cholesky", **GIVEN).fit(X, Y, s)
    model = FixedSizeLSSVR(solver=TIGHT, **GIVEN).fit(X, Y, s)
    np.testing.assert_allclose(outputs(model), outputs(direct), atol=1e-6)
    assert (direct.solver_, model.solver_) == ("direct", "pcg")
    assert model.residual_ < 1e-10 and model.n_iter_ > 0 and model.moments_ == []
    assert model.n_prototypes_ == len(model.prototypes_) == len(model.dual_coef_) == len(Z)


@pytest.mark.parametrize("multiclass", ["ovo", "ova", "moc"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_classification_equals_the_direct_solution(multiclass, class_weight):
    options = GIVEN | {"multiclass": multiclass, "class_weight": class_weight}
    direct = FixedSizeLSSVC(solver="cholesky", **options).fit(X, label, weight)
    model = FixedSizeLSSVC(solver=TIGHT, **options).fit(X, label, weight)
    np.testing.assert_allclose(outputs(model), outputs(direct), atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), direct.predict(X))


def test_pairs_are_solved_in_turns_where_their_factors_do_not_fit():
    plenty = FixedSizeLSSVC(solver=TIGHT, **GIVEN).fit(X, label)
    m = 1000
    options = {"C": 1.0, "gamma": 3.0, "selection": X[:m], "solver": TIGHT, "n_jobs": 1}
    plenty = FixedSizeLSSVC(**options).fit(X, label)
    needed = 8 * (m * (m + 1) + 512 * m + 2**19 + 128 * m + 8 * m * 3)
    scarce = FixedSizeLSSVC(**options, memory_budget=needed).fit(X, label)
    np.testing.assert_allclose(outputs(scarce), outputs(plenty), atol=1e-6)
    with pytest.raises(MemoryBudgetError, match="1,000 prototypes"):
        FixedSizeLSSVC(**options, memory_budget=needed - 1).fit(X, label)


@pytest.mark.parametrize("kind", ["labels", "pairs", "numbers"])
def test_a_stream_equals_arrays(kind, monkeypatch, tmp_path):
    monkeypatch.setattr(scan_opening, "SAMPLE_ROWS", 1000)
    drawn = Scan.sample
    monkeypatch.setattr(Scan, "sample", lambda data, _, **options: drawn(data, 500, **options))
    if kind == "numbers":
        make, target, extra = FixedSizeLSSVR, y, {}
    else:
        make, target = FixedSizeLSSVC, label
        extra = {"multiclass": "ovo" if kind == "pairs" else "ova"}
    options = GIVEN | extra | {"solver": TIGHT}
    arrays = make(**options).fit(X, target, weight)
    data = scan(X, target=target, weight=weight, prepare=False, batch_rows=77)
    stream = make(**options).fit(data)
    np.testing.assert_allclose(outputs(stream), outputs(arrays), atol=1e-6)
    assert stream.solver_ == "pcg" and stream.moments_ == []
    small = make(**options, memory_budget="20 MB").fit(data)  # the kernel is computed anew
    np.testing.assert_allclose(outputs(small), outputs(arrays), atol=1e-6)


def test_tuning_is_that_of_fewer_prototypes(monkeypatch):
    monkeypatch.setattr(recipe, "TUNED_PROTOTYPES", 30)
    options = {"cv": 3, "random_state": 0}
    small = FixedSizeLSSVC(selection=Z[:30], **options).fit(X, label)
    model = FixedSizeLSSVC(selection=Z, solver="pcg", **options).fit(X, label)
    np.testing.assert_array_equal(model.C_, small.C_)
    assert model.gamma_ == small.gamma_ and model.best_score_ == small.best_score_
    np.testing.assert_array_equal(
        model.cv_results_["mean_test_score"], small.cv_results_["mean_test_score"]
    )
    assert model.n_prototypes_ == 80 and model.dual_coef_.shape == (80, 3)
    direct = FixedSizeLSSVR(80, C=model.C_[0], gamma=model.gamma_).fit(X, y)
    assert direct.solver_ == "direct"
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.mean(model.classes_[shares.argmax(axis=1)] == label) > 0.8
    moved = clone(model).set_params(multiclass=Coding(threshold="cv")).fit(X, label)
    assert moved.threshold_.any() and moved.score(X, label) > 0.8


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_probabilities_without_tuning(class_weight):
    model = FixedSizeLSSVC(solver="pcg", class_weight=class_weight, **GIVEN).fit(X, label)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.mean(model.classes_[shares.argmax(axis=1)] == label) > 0.8


def test_auto_switches_where_moments_do_not_fit():
    m = 600
    options = {"C": 1.0, "gamma": 3.0, "selection": X[:m], "n_jobs": 1}
    direct = FixedSizeLSSVR(**options).fit(X, y)
    budget = 8 * m * (m + 2) * 5 - 1  # of one training set, with buffers
    model = FixedSizeLSSVR(**options, memory_budget=budget).fit(X, y)
    assert (direct.solver_, model.solver_) == ("direct", "pcg")
    np.testing.assert_allclose(model.predict(X), direct.predict(X), atol=1e-3)
    kept = FixedSizeLSSVR(**options, memory_budget=budget + 1).fit(X, y)
    assert kept.solver_ == "direct"


@pytest.mark.parametrize("order", ["C", "F", "list"])
def test_kernels_of_any_layout(order):
    def kernel(A, B):
        K = np.exp(-2.0 * ((A[:, None] - B[None]) ** 2).sum(axis=2))
        return K.tolist() if order == "list" else np.asarray(K, order=order)

    expected = FixedSizeLSSVR(solver=TIGHT, **GIVEN).fit(X[:300], y[:300])
    model = FixedSizeLSSVR(solver=TIGHT, kernel=kernel, C=10.0, selection=Z)
    np.testing.assert_allclose(outputs(model.fit(X[:300], y[:300])), outputs(expected), atol=1e-7)
    with pytest.raises(InvalidInputError, match="complex128; it must return real numbers"):
        model.set_params(kernel=lambda A, B: A @ B.T + 0j).fit(X, y)


def test_what_needs_moments_is_refused():
    def refuse(words, **options):
        with pytest.raises(InvalidInputError, match=words):
            FixedSizeLSSVR(**(GIVEN | {"solver": "pcg"} | options)).fit(X, y)

    refuse("reduction='spfs' works on moments", reduction="spfs")
    refuse("loss='huber' works on moments", loss="huber")
    refuse("n_prototypes='cv' works on moments", n_prototypes="cv")
    refuse("solver='lanczos'", solver="lanczos")
    model = FixedSizeLSSVR(solver="pcg", **GIVEN).fit(X, y)
    with pytest.raises(InvalidInputError, match="keeps no moments, from which standard"):
        model.predict(X, return_std=True)
    with pytest.raises(InvalidInputError, match="keeps no moments"):
        model.predict_interval(X)
    assert not hasattr(model, "partial_fit") and not hasattr(model, "forget")
    chosen = FixedSizeLSSVR(solver="pcg", **GIVEN).fit(X, y).set_params(solver="auto")
    with pytest.raises(InvalidInputError, match="keeps no moments, so rows cannot be added"):
        chosen.partial_fit(X, y)
    classifier = FixedSizeLSSVC(solver=PCG(), **GIVEN).fit(X, label)
    assert not hasattr(classifier, "partial_fit") and not hasattr(classifier, "forget")
    with pytest.raises(InvalidInputError, match="moments of the folds"):
        classifier.sparsity_path()


def test_too_few_iterations_warn():
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations"):
        model = FixedSizeLSSVR(solver=PCG(max_iter=1, n_rows=0), **GIVEN).fit(X, y)
    assert model.residual_ > 1e-6


def test_fits_again_and_travels():
    model = FixedSizeLSSVR(solver="pcg", **GIVEN).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    again = model.set_params(solver="auto").fit(X, y)
    assert again.solver_ == "direct" and not hasattr(again, "residual_")
    again.partial_fit(X[:5], y[:5])
    linear = FixedSizeLSSVR(kernel="linear", C=10.0, solver=TIGHT).fit(X, y)
    direct = FixedSizeLSSVR(kernel="linear", C=10.0).fit(X, y)
    np.testing.assert_allclose(linear.predict(X), direct.predict(X), atol=1e-7)


def test_a_weight_of_two_is_the_row_twice():
    options = GIVEN | {"solver": TIGHT}
    used = np.repeat(np.arange(N), weight.astype(int))
    weighted = FixedSizeLSSVR(**options).fit(X, y, weight)
    repeated = FixedSizeLSSVR(**options).fit(X[used], y[used])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-6)
