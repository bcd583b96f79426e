"""The fixed-size estimators on a device: the same model as with NumPy on the host."""

import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit

from lssvm import FixedSizeLSSVC, FixedSizeLSSVR, load, save, scan
from lssvm._core.arrays import Device, get_namespace
from lssvm._core.errors import InvalidInputError, MemoryBudgetError
from lssvm.backends import device as device_rows
from lssvm.data.folds import hash_rows, smallest_hashes
from lssvm.fitting import fixed_settings as choosing
from lssvm.prototypes import renyi
from lssvm.reductions import FixedSizeL0
from lssvm.solvers import PCG
from lssvm.tuning import GridSearch

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
F = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=400)
BINARY = (F > 0).astype(int)
THREE = np.digitize(F, [-0.5, 0.5])
WEIGHT = rng.uniform(0.5, 2.0, size=400) * (np.arange(400) % 7 > 0)
LIBRARIES = ["array_api_strict", pytest.param("torch", marks=pytest.mark.torch)]


EXACT = PCG(tol=1e-11)
FEW = GridSearch(C=(0.1, 1.0, 10.0, 100.0))


def fit_elsewhere(model, library, *arrays):
    xp = pytest.importorskip(library)
    return clone(model).set_params(device="cpu").fit(*(xp.asarray(array) for array in arrays))


def close(found, expected, rtol=1e-8):
    found = np.asarray(found)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=rtol * np.abs(expected).max())


CASES = {
    "regression": (FixedSizeLSSVR(40, cv=4, selection="renyi"), (X, F)),
    "outputs": (FixedSizeLSSVR(40, cv=4, gamma=0.5), (X, np.stack([F, X[:, 0]], 1))),
    "weights": (FixedSizeLSSVR(40, cv=4), (X, F, WEIGHT)),
    "two classes": (FixedSizeLSSVC(40, cv=4), (X, BINARY)),
    "balanced": (FixedSizeLSSVC(40, cv=4, class_weight="balanced"), (X, BINARY)),
    "pairs": (FixedSizeLSSVC(40, cv=4, gamma=0.3), (X, THREE, WEIGHT)),
    "one against all": (FixedSizeLSSVC(40, cv=4, multiclass="ova"), (X, THREE)),
    "holdout": (FixedSizeLSSVC(40, cv=0.3, gamma=0.5), (X, BINARY)),
    "overlap": (
        FixedSizeLSSVR(40, gamma=0.3, cv=ShuffleSplit(3, random_state=0, test_size=0.3)),
        (X, F),
    ),
    "scorer": (
        FixedSizeLSSVC(40, gamma=0.3, cv=4, scoring="roc_auc", search=FEW),
        (X, BINARY),
    ),
    "pooled scorer": (  # folds of two rows
        FixedSizeLSSVR(20, gamma=0.3, cv=30, scoring="r2", search=FEW),
        (X[:60], F[:60]),
    ),
    "size": (FixedSizeLSSVR("cv", cv=4, gamma=2.0), (X, F)),
    "eigen": (FixedSizeLSSVR(40, gamma=0.5, cv=4, solver="eigen"), (X, F)),
    "conjugate gradients": (FixedSizeLSSVR(60, C=3.0, gamma=0.5, solver=EXACT), (X, F, WEIGHT)),
    "pairs by pcg": (FixedSizeLSSVC(60, gamma=0.5, cv=3, solver=EXACT), (X, THREE, WEIGHT)),
    "linear": (FixedSizeLSSVR(kernel="linear", cv=4), (X, F)),
    "laplacian": (FixedSizeLSSVR(40, kernel="laplacian", cv=4), (X, F)),
    "matern": (FixedSizeLSSVC(40, kernel="matern", cv=4), (X, BINARY)),
    "poly": (FixedSizeLSSVR(40, kernel="poly", gamma=0.3, cv=4), (X, F)),
    "relevance": (FixedSizeLSSVR(25, gamma="ard", cv=3, solver="cholesky"), (X[:200], F[:200])),
    "spfs": (FixedSizeLSSVR(40, gamma=0.5, cv=4, reduction="spfs"), (X, F)),
    "ssd": (FixedSizeLSSVC(40, gamma=0.5, cv=4, reduction="ssd"), (X, BINARY)),
    "sv-l0": (FixedSizeLSSVC(40, gamma=0.5, cv=4, reduction="sv-l0"), (X, BINARY)),
    "pairs reduced": (
        FixedSizeLSSVC(20, C=1.0, gamma=0.5, cv=3, reduction=FixedSizeL0(joint=False)),
        (X, THREE),
    ),
    "as printed": (
        FixedSizeLSSVR(40, C=1.0, gamma=0.5, reduction=FixedSizeL0(size="l0")),
        (X, F),
    ),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("case", CASES)
def test_same_parameters_and_predictions(case, library):
    xp = pytest.importorskip(library)
    model, arrays = CASES[case]
    host = clone(model).fit(*arrays)
    there = fit_elsewhere(model, library, *arrays)
    np.testing.assert_allclose(np.asarray(there.C_), host.C_, rtol=1e-12)
    if host.gamma_ is not None:
        close(there.gamma_, host.gamma_)
    assert there.n_prototypes_ == host.n_prototypes_
    np.testing.assert_array_equal(np.asarray(there.support_), host.support_)
    outputs = "decision_function" if isinstance(model, FixedSizeLSSVC) else "predict"
    new = np.random.default_rng(1).normal(size=(50, 3))
    found = getattr(there, outputs)(xp.asarray(new))
    assert type(found) is type(there.dual_coef_) is type(xp.asarray(new))
    close(found, getattr(host, outputs)(new))
    close(there.predict(xp.asarray(new)), host.predict(new))


@pytest.mark.parametrize("library", LIBRARIES)
def test_same_coefficients(library):
    pytest.importorskip(library)
    for model, arrays in (
        (FixedSizeLSSVC(40, C=3.0, gamma=0.5), (X, THREE)),
        (FixedSizeLSSVR(40, C=3.0, gamma=0.5), (X, F, WEIGHT)),
        (FixedSizeLSSVC(40, cv=4), (X, BINARY)),
    ):
        host, there = clone(model).fit(*arrays), fit_elsewhere(model, library, *arrays)
        close(there.dual_coef_, host.dual_coef_)
        close(there.intercept_, host.intercept_)
        np.testing.assert_array_equal(np.asarray(there.support_), host.support_)


@pytest.mark.torch
@pytest.mark.parametrize("kept", [0.5, 0.0])
def test_host_arrays_on_a_device_of_torch(monkeypatch, kept):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(device_rows, "_KEPT", kept)
    monkeypatch.setattr(device_rows, "_COPIED", 3 * 90)
    for model, y in ((FixedSizeLSSVC(40, cv=4), THREE), (FixedSizeLSSVR(40, cv=4, gamma=0.5), F)):
        host = clone(model).fit(X, y, WEIGHT)
        there = clone(model).set_params(device=torch.device("cpu")).fit(X, y, WEIGHT)
        assert isinstance(there.dual_coef_, np.ndarray)
        assert there.cv_results_["params"] == host.cv_results_["params"]
        close(there.cv_results_["mean_test_score"], host.cv_results_["mean_test_score"])
        assert isinstance(there.predict(X), np.ndarray)
        close(there.predict(X), host.predict(X))
        again = pickle.loads(pickle.dumps(there))
        close(again.predict(X), host.predict(X))


@pytest.mark.parametrize("library", LIBRARIES)
def test_prototypes_are_chosen_on_the_device(monkeypatch, library):
    model = FixedSizeLSSVC(40, C=1.0, gamma=0.5, selection="renyi")
    host = clone(model).fit(X, BINARY)
    monkeypatch.setattr(choosing, "SELECTED_ON_HOST", 0)
    used, real = [], renyi._on_device
    monkeypatch.setattr(renyi, "_on_device", lambda *args: used.append(1) or real(*args))
    there = fit_elsewhere(model, library, X, BINARY)
    assert len(used) > 1
    np.testing.assert_array_equal(np.asarray(there.support_), host.support_)
    close(there.selection_.entropy_trace, host.selection_.entropy_trace)


@pytest.mark.torch
def test_float32_rows_are_computed_in_float64():
    torch = pytest.importorskip("torch")
    small = X.astype(np.float32)
    host = FixedSizeLSSVR(40, C=3.0, gamma=0.5).fit(small, F)
    there = FixedSizeLSSVR(40, C=3.0, gamma=0.5, device="cpu").fit(torch.asarray(small), F)
    assert there.dual_coef_.dtype == torch.float64
    close(there.dual_coef_, host.dual_coef_)


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_are_added_and_removed(library):
    xp = pytest.importorskip(library)
    model = FixedSizeLSSVC(40, cv=4, gamma=0.5)
    host = clone(model).fit(X[:300], BINARY[:300])
    there = fit_elsewhere(model, library, X[:300], BINARY[:300])
    for name in ("partial_fit", "forget"):
        part = slice(300, 400) if name == "partial_fit" else slice(280, 350)
        getattr(host, name)(X[part], BINARY[part])
        result = getattr(there, name)(xp.asarray(X[part]), xp.asarray(BINARY[part]))
        assert result is there
        close(there.dual_coef_, host.dual_coef_)
        assert type(there.dual_coef_) is type(xp.asarray(X))


@pytest.mark.parametrize("library", LIBRARIES)
def test_everything_comes_back_in_kind(library):
    xp = pytest.importorskip(library)
    A, new = xp.asarray(X), X[:20]
    host, there = FixedSizeLSSVC(40, cv=4).fit(X, THREE), FixedSizeLSSVC(40, cv=4, device="cpu")
    there.fit(A, xp.asarray(THREE))
    close(there.predict_proba(xp.asarray(new)), host.predict_proba(new))
    close(there.predict_log_proba(xp.asarray(new)), host.predict_log_proba(new))
    np.testing.assert_array_equal(np.asarray(there.predict_set(A)), host.predict_set(X))
    assert there.score(A, xp.asarray(THREE)) == host.score(X, THREE)
    assert there.sparsity_path().sizes.tolist() == host.sparsity_path().sizes.tolist()
    spread = {"cv": 4, "selection": "renyi"}  # close prototypes amplify rounding
    host, there = FixedSizeLSSVR(40, **spread).fit(X, F), FixedSizeLSSVR(40, **spread, device="cpu")
    there.fit(A, xp.asarray(F))
    for mine, theirs in zip(
        there.predict(xp.asarray(new), return_std=True),
        host.predict(new, return_std=True),
        strict=True,
    ):
        assert type(mine) is type(A)
        close(mine, theirs, 1e-6)
    close(there.predict_interval(xp.asarray(new)), host.predict_interval(new), 1e-6)
    close(there.noise_variance_, host.noise_variance_, 1e-6)
    close(there.predict(new), host.predict(new))  # NumPy rows are taken too


@pytest.mark.parametrize("library", LIBRARIES)
def test_saved_models_are_those_of_numpy(library, tmp_path):
    pytest.importorskip("safetensors")
    there = fit_elsewhere(FixedSizeLSSVC(20, C=1.0, gamma=0.5), library, X, BINARY)
    save(there, tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again.dual_coef_, np.ndarray)
    host = FixedSizeLSSVC(20, C=1.0, gamma=0.5).fit(X, BINARY)
    close(again.decision_function(X), host.decision_function(X))


@pytest.mark.torch
def test_scikit_learn_decides_for_arrays_in_host_memory(monkeypatch):
    torch = pytest.importorskip("torch")
    A, y = torch.asarray(X), torch.asarray(F)
    plain = FixedSizeLSSVR(20, C=1.0, gamma=0.5).fit(A, y)
    assert isinstance(plain.dual_coef_, np.ndarray)
    assert isinstance(plain.predict(A), np.ndarray)
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True):
        there = FixedSizeLSSVR(20, C=1.0, gamma=0.5).fit(A, y)
        assert isinstance(there.predict(A), torch.Tensor)
        close(there.dual_coef_, plain.dual_coef_)
        with pytest.raises(ValueError, match="same namespace"):
            there.predict(X)


@pytest.mark.torch
def test_rows_are_hashed_alike_on_a_device():
    torch = pytest.importorskip("torch")
    rows = X.copy()
    rows[3, 1], rows[4, 1] = 0.0, -0.0
    for values in (rows, rows.astype(np.float32)):
        for seed in (0, 11):
            found = hash_rows(torch.asarray(values), seed)
            np.testing.assert_array_equal(found, hash_rows(values, seed))
            drawn = smallest_hashes(torch.asarray(values), 30, seed)[1]
            np.testing.assert_array_equal(drawn, smallest_hashes(values, 30, seed)[1])


REFUSED = {
    "function": (FixedSizeLSSVR(20, kernel=lambda A, B: A @ B.T), "a function of NumPy"),
    "loo": (FixedSizeLSSVR(20, cv="loo"), "cv=10"),
    "criterion": (FixedSizeLSSVR(20, scoring="press"), "scoring"),
    "loss": (FixedSizeLSSVR(20, loss="huber"), "loss='squared'"),
    "solver": (FixedSizeLSSVR(20, solver="tridiagonal"), "solver="),
    "function by pcg": (
        FixedSizeLSSVR(20, C=1.0, kernel=lambda A, B: A @ B.T, solver="pcg"),
        "function of NumPy arrays",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_device_cannot_do_is_said(case):
    strict = pytest.importorskip("array_api_strict")
    model, message = REFUSED[case]
    with pytest.raises(InvalidInputError, match=message):
        model.set_params(device="cpu").fit(strict.asarray(X), strict.asarray(F))


@pytest.mark.torch
def test_a_scan_is_read_into_memory_for_a_device(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("lssvm.estimators.opening.SAMPLE_ROWS", 50)  # of a stream
    data, place = scan(X, target=F), torch.device("cpu")
    passes = []
    real = device_rows.DeviceBlocks.blocks
    monkeypatch.setattr(device_rows.DeviceBlocks, "blocks", lambda *a: passes.append(1) or real(*a))
    there = FixedSizeLSSVR(20, C=1.0, gamma=0.5, device=place, random_state=0).fit(data)
    assert passes
    monkeypatch.setattr("lssvm.estimators.opening.SAMPLE_ROWS", len(X))
    host = FixedSizeLSSVR(20, C=1.0, gamma=0.5, random_state=0).fit(data)
    close(there.dual_coef_, host.dual_coef_)
    passes.clear()
    close(there.predict(scan(X)), host.predict(scan(X)))
    close(there.score(data), host.score(data))
    assert len(passes) >= 2
    tuned = FixedSizeLSSVR(20, cv=3, random_state=0)
    assert clone(tuned).set_params(device=place).fit(data).gamma_ == tuned.fit(data).gamma_
    with pytest.raises(InvalidInputError, match="rows that are added from a scan"):
        there.partial_fit(data)
    with pytest.raises(MemoryBudgetError, match="device=None"):
        clone(there).set_params(memory_budget=3000).fit(data)


@pytest.mark.torch
@pytest.mark.dask
def test_rows_on_a_cluster_are_not_taken_to_a_device():
    torch, da = pytest.importorskip("torch"), pytest.importorskip("dask.array")
    with pytest.raises(InvalidInputError, match="cluster"):
        FixedSizeLSSVR(20, device=torch.device("cpu")).fit(da.from_array(X), da.from_array(F))


@pytest.mark.parametrize("solver", ["auto", "pcg"])
@pytest.mark.parametrize("options", [{"C": 1.0, "gamma": 0.5}, {"cv": 3}])
def test_the_memory_budget_is_that_of_the_device(solver, options):
    strict = pytest.importorskip("array_api_strict")
    model = FixedSizeLSSVR(20, solver=solver, device="cpu", memory_budget=2000, **options)
    with pytest.raises(MemoryBudgetError, match=r"needs \d.*bytes but the memory budget is 2,000"):
        model.fit(strict.asarray(X), strict.asarray(F))


def test_a_function_is_not_evaluated_on_a_device():
    strict = pytest.importorskip("array_api_strict")
    model = FixedSizeLSSVR(20, C=1.0, kernel=lambda A, B: A @ B.T).fit(X, F)
    with pytest.raises(InvalidInputError, match="function of NumPy arrays"):
        model.set_params(device="cpu").predict(strict.asarray(X))


@pytest.mark.parametrize("library", LIBRARIES)
def test_prototypes_are_given_in_kind(library):
    xp = pytest.importorskip(library)
    expected = FixedSizeLSSVR(C=1.0, gamma=0.5, selection=X[:9]).fit(X, F)
    for chosen in (xp.asarray(X[:9]), xp.asarray(np.arange(9))):
        model = FixedSizeLSSVR(C=1.0, gamma=0.5, selection=chosen)
        close(fit_elsewhere(model, library, X, F).dual_coef_, expected.dual_coef_)
        close(model.fit(X, F).dual_coef_, expected.dual_coef_)


@pytest.mark.parametrize("library", LIBRARIES)
def test_bad_rows_are_refused(library):
    xp = pytest.importorskip(library)
    model = fit_elsewhere(FixedSizeLSSVR(20, C=1.0, gamma=0.5), library, X, F)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(xp.asarray(X[:, :2]))
    bad = X[:5].copy()
    bad[2, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict(xp.asarray(bad))
    with pytest.raises(ValueError, match="NaN"):
        fit_elsewhere(FixedSizeLSSVR(20), library, bad, F[:5])
    with pytest.raises(ValueError, match="no rows"):
        model.predict(xp.asarray(X[:0]))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.to("meta"), "'meta', which has no values"),
        (lambda t: t.to_sparse(), "to_dense"),
        (lambda t: t.bfloat16(), "bfloat16.*convert it to torch.float64"),
        (lambda t: t + 1j, "complex128.*convert it"),
    ],
)
def test_tensors_that_cannot_be_read_are_refused(change, message):
    torch = pytest.importorskip("torch")
    rows, target = torch.asarray(X), torch.asarray(F)
    model = FixedSizeLSSVR(20, C=1.0, gamma=0.5)
    for arrays in ((change(rows), target), (rows, change(target))):
        with pytest.raises(InvalidInputError, match=message):
            model.fit(*arrays)
    with pytest.raises(InvalidInputError, match=message):
        model.fit(X, F).predict(change(rows))


@pytest.mark.torch
def test_no_gradient_is_followed():
    torch = pytest.importorskip("torch")
    engine = Device(get_namespace(torch.asarray(X)), torch.device("cpu"))
    assert not engine.put(torch.asarray(X).requires_grad_()).requires_grad
    rows = torch.asarray(X).requires_grad_()
    model = FixedSizeLSSVR(20, C=1.0, gamma=0.5, device="cpu").fit(rows, F)
    close(model.dual_coef_, FixedSizeLSSVR(20, C=1.0, gamma=0.5).fit(X, F).dual_coef_)
    assert not model.predict(rows).requires_grad


@pytest.mark.parametrize("library", LIBRARIES)
def test_added_rows_of_another_kind_do_not_change_that_of_the_model(library, monkeypatch):
    xp = pytest.importorskip(library)
    model = FixedSizeLSSVR(20, C=1.0, gamma=0.5)
    host = clone(model).fit(X[:300], F[:300])
    there = fit_elsewhere(model, library, X[:300], F[:300])
    host.set_params(device="cpu").partial_fit(xp.asarray(X[300:]), xp.asarray(F[300:]))
    there.partial_fit(X[300:], F[300:])
    assert isinstance(host.dual_coef_, np.ndarray)
    assert type(there.dual_coef_) is type(xp.asarray(X))
    close(there.dual_coef_, host.dual_coef_)
    with pytest.raises(ValueError, match="features"):
        there.partial_fit(X[:5, :2], F[:5])
    assert type(there.dual_coef_) is type(xp.asarray(X))
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True):
        with pytest.raises(InvalidInputError, match="same namespace"):
            there.partial_fit(X[:5], F[:5])
