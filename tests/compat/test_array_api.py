"""scikit-learn's own checks of estimators that take arrays of any library."""

import warnings

import pytest
from sklearn.utils import estimator_checks

from lssvm import FixedSizeLSSVC, FixedSizeLSSVR

if not hasattr(estimator_checks, "NamespaceAndDevice"):
    pytest.skip("this scikit-learn has no checks of mixed inputs", allow_module_level=True)

NamespaceAndDevice = estimator_checks.NamespaceAndDevice
check_array_api_input = estimator_checks.check_array_api_input
check_array_api_mixed_inputs = estimator_checks.check_array_api_mixed_inputs
check_array_api_same_namespace = estimator_checks.check_array_api_same_namespace

ESTIMATORS = [FixedSizeLSSVC(20, cv=3), FixedSizeLSSVR(20, cv=3)]
TORCH = pytest.mark.torch
KINDS = [
    ("numpy", None, None),
    ("array_api_strict", "CPU_DEVICE", "float64"),
    ("array_api_strict", "device1", "float32"),
    pytest.param("torch", "cpu", "float64", marks=TORCH),
    pytest.param("torch", "cpu", "float32", marks=TORCH),
]


@pytest.fixture(autouse=True)
def dispatch_allowed(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # scikit-learn does not dispatch without it


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize(("library", "device", "dtype"), KINDS)
def test_arrays_of_a_library(estimator, library, device, dtype):
    pytest.importorskip(library)
    assert estimator.__sklearn_tags__().array_api_support
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checked = check_array_api_input(
            type(estimator).__name__,
            estimator,
            library,
            device,
            dtype,
            check_values=dtype != "float32",
            check_sample_weight=True,
        )
    assert checked is None  # it raises otherwise


@pytest.mark.torch
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_targets_of_another_library(estimator):
    pytest.importorskip("torch")
    strict, torch = (
        NamespaceAndDevice("array_api_strict", "device1"),
        NamespaceAndDevice("torch", "cpu"),
    )
    name = type(estimator).__name__
    assert check_array_api_mixed_inputs(name, estimator, torch, strict) is None


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_another_library_after_the_fit(estimator):
    name = type(estimator).__name__
    assert check_array_api_same_namespace(name, estimator, "array_api_strict") is None
