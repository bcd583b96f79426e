"""Whether the parts of a model that came from a file fit together.

Everything that predictions, probabilities, intervals and updates read is checked: types, shapes
against each other, finite numbers, indices within bounds, sizes that a later call would allocate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm._core.errors import ModelFileError
from lssvm._core.memory import as_bytes
from lssvm._core.namespace import is_sparse
from lssvm._core.threads import n_threads
from lssvm.codes import Code
from lssvm.data import Preparation
from lssvm.estimators._dual import DualModel
from lssvm.estimators._greedy import GreedyModel
from lssvm.greedy import GreedyPath
from lssvm.io.checks_series import check_series
from lssvm.io.checks_uncertain import check_cache, check_memory, check_sample, check_scores
from lssvm.io.known import MAX_CLASSES
from lssvm.io.need import (
    floats,
    instance,
    is_number,
    is_whole,
    need,
    option,
    positive,
    weights,
    wholes,
)
from lssvm.kernels import Kernel, Polynomial, Precomputed
from lssvm.moments import Moments, NystromMap

_MOST = 4096  # threads, and degrees of a polynomial


def read_preparation(state: Any) -> Preparation:
    """Return the preparation of raw columns that a file describes."""
    wanted = {"names", "kinds", "mean", "scale", "fill", "categories"}
    need(isinstance(state, dict) and set(state) == wanted, "the preparation is not complete")
    names, kinds, levels = state["names"], state["kinds"], state["categories"]
    lists = all(isinstance(part, list) for part in (names, kinds, levels))
    need(lists and len(names) == len(kinds), "the columns of the preparation do not fit")
    need(all(isinstance(n, str) for n in names), "a column of the preparation has no name")
    need(len(set(names)) == len(names), "two columns of the preparation have the same name")
    need(all(kind in ("number", "text") for kind in kinds), "a column has an unknown kind")
    numbers = kinds.count("number")
    for name in ("mean", "scale", "fill"):
        values = state[name]
        if name == "fill" and values is None:
            continue
        usable = isinstance(values, list) and len(values) == numbers and all(map(is_number, values))
        need(usable, f"the {name} of the preparation does not fit its columns")
    need(all(value > 0 for value in state["scale"]), "a scale of the preparation is not positive")
    need(len(levels) == len(kinds) - numbers, "the categories do not fit the columns of text")
    for part in levels:
        texts = isinstance(part, list) and all(c is None or isinstance(c, str) for c in part)
        need(texts and len(set(part)) == len(part), "categories are no distinct texts")
    return Preparation.from_dict(state)


def check_model(model: Any, fitted: dict[str, Any], keep: str) -> None:
    """Raise a `ModelFileError` where the parts of a model do not fit together."""
    if type(model).__name__ == "NARX":
        check_series(model, fitted)
        return
    required = ["n_features_in_", "C_", "gamma_", "support_", "dual_coef_", "intercept_"]
    for name in required:
        need(name in fitted, f"{name} is missing")
    d = check_columns(fitted)
    check_parameters(model)
    m, k = floats(fitted["dual_coef_"], (None, None), "dual_coef_").shape
    need(m >= 1 and k >= 1, "there are no coefficients")
    floats(fitted["intercept_"], (k,), "intercept_")
    positive(fitted["C_"], k, "C_")
    _check_gamma(fitted["gamma_"], "gamma_")
    for name in ("_single", "_by_class"):
        instance(fitted.get(name, False), bool, name)
    for name in ("_seed", "n_iter_", "n_evaluations_", "n_prototypes_"):
        value = fitted.get(name, 0)
        need(is_whole(value) and 0 <= value < 2**63, f"{name} is no number")
    if "_scales" in fitted and fitted["_scales"] is not None:
        floats(fitted["_scales"], (d,), "_scales")
    classes = _check_classes(model, fitted, k)
    if not classes:
        need("_single" in fitted and (k == 1 or not fitted["_single"]), "_single does not fit")
    if isinstance(model, DualModel):
        _check_dual(model, fitted, d, m, k, classes)
    elif isinstance(model, GreedyModel):
        _check_greedy(model, fitted, d, m, k, classes)
    else:
        _check_fixed(model, fitted, d, m, k, classes)
    check_cache(model, fitted, keep, k, classes)


def check_columns(fitted: dict[str, Any]) -> int:
    """Check names and number of the raw columns; return the number of features."""
    raw = fitted["n_features_in_"]
    need(is_whole(raw) and raw >= 1, "n_features_in_ is no number of columns")
    names = fitted.get("feature_names_in_")
    if names is not None:
        array = instance(names, np.ndarray, "feature_names_in_")
        fits = array.dtype == object and array.shape == (raw,)
        need(fits and all(isinstance(n, str) for n in array), "feature_names_in_ does not fit")
    ready = fitted.get("preparation_")
    if ready is None:
        return int(raw)
    need(len(ready.schema.names) == raw, "the preparation has other columns than the model")
    if names is not None:
        need(list(names) == list(ready.schema.names), "the preparation has other names")
    return int(ready.n_features)


def check_parameters(model: Any) -> None:
    """Check the parameters that a fitted model reads."""
    jobs = model.n_jobs
    need(jobs is None or (is_whole(jobs) and 0 < abs(jobs) <= _MOST), f"n_jobs is {jobs!r}")
    try:
        n_threads(jobs), as_bytes(model.memory_budget)
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelFileError(f"The file does not fit together: {error}") from error
    kernel = model.kernel
    need(isinstance(kernel, (str, Kernel)), f"the kernel is {kernel!r}")
    need(is_whole(model.verbose), f"verbose is {model.verbose!r}")
    if hasattr(model, "decoding"):
        option(model.decoding, (None, "hamming", "loss"), "decoding")
        option(model.calibration, (None, "auto", "sigmoid", "isotonic"), "calibration")


def check_kernel(kernel: Any, wanted: Any, d: int, what: str) -> None:
    """Check that a kernel is the one that the parameters name, for ``d`` features."""
    instance(kernel, Kernel, what)
    name = wanted if isinstance(wanted, str) else wanted.name
    need(kernel.name == name, f"{what} is {kernel.name}, but the parameters say {name}")
    gamma = getattr(kernel, "gamma", 1.0)
    _check_gamma(gamma, f"gamma of {what}")
    need(np.ndim(gamma) == 0 or np.shape(gamma) == (d,), f"gamma of {what} does not fit")
    if isinstance(kernel, Polynomial):
        need(kernel.degree <= _MOST and is_number(kernel.coef0), f"{what} is no usable polynomial")
    need(getattr(kernel, "lengths", None) is None, f"{what} has lengths")


def _check_gamma(gamma: Any, what: str) -> None:
    if isinstance(gamma, np.ndarray):
        need(gamma.ndim <= 2, f"{what} has {gamma.ndim} axes")
        need(np.all(floats(gamma, None, what) >= 0), f"{what} is negative")
    else:
        need(gamma is None or (is_number(gamma) and gamma >= 0), f"{what} is {gamma!r}")


def _check_classes(model: Any, fitted: dict[str, Any], k: int) -> int:
    """Check labels and output code; return the number of classes, 0 for a regressor."""
    if not hasattr(model, "multiclass"):
        return 0
    need("classes_" in fitted and "code_" in fitted, "there are no classes")
    classes = instance(fitted["classes_"], np.ndarray, "classes_")
    need(classes.ndim == 1 and 2 <= len(classes) <= MAX_CLASSES, "classes_ has another shape")
    need(classes.dtype.kind in "biufUO", "classes_ are no labels")
    if classes.dtype.kind == "f":
        floats(classes, None, "classes_")
    need(len({type(label) for label in classes.tolist()}) == 1, "classes_ are of several kinds")
    need(np.all(classes[:-1] < classes[1:]), "classes_ are not in order")
    code = instance(fitted["code_"], Code, "code_")
    need(code.matrix.shape == (len(classes), k), "the output code does not fit")
    if "threshold_" in fitted:
        floats(fitted["threshold_"], (k,), "threshold_")
    elif type(model).__name__ == "FixedSizeLSSVC":
        need(False, "threshold_ is missing")
    return len(classes)


def _check_basis(model: Any, basis: Any, d: int, m: int) -> None:
    if model._precomputed():
        wholes(basis, (m,), "the support", 0, d)
    elif is_sparse(basis):
        need(model._accepts_sparse() and basis.shape == (m, d), "the support does not fit")
        floats(basis.data, None, "the support")
    else:
        floats(basis, (m, d), "the support")


def _check_dual(model: Any, fitted: dict[str, Any], d: int, m: int, k: int, classes: int) -> None:
    for name in ("_basis", "_machines", "_memory"):
        need(name in fitted, f"{name} is missing")
    wholes(fitted["support_"], (m,), "support_", 0)
    _check_basis(model, fitted["_basis"], d, m)
    machines = instance(fitted["_machines"], list, "_machines")
    need(len(machines) <= k, "there are more kernels than outputs")
    found = []
    for machine in machines:
        need(type(machine) is tuple and len(machine) == 2, "_machines has another shape")
        check_kernel(machine[0], model.kernel, d, "a kernel")
        need(isinstance(machine[0], Precomputed) == model._precomputed(), "a kernel does not fit")
        found += wholes(machine[1], (None,), "the outputs of a kernel", 0, k).tolist()
    need(sorted(found) == list(range(k)), "the kernels do not serve every output once")
    check_memory(model, fitted, d, k, classes)


def _check_fixed(model: Any, fitted: dict[str, Any], d: int, m: int, k: int, classes: int) -> None:
    for name in ("prototypes_", "_kernel", "_fitted_loss", "_by_class", "n_prototypes_"):
        need(name in fitted, f"{name} is missing")
    floats(fitted["prototypes_"], (m, d), "prototypes_")
    support = wholes(fitted["support_"], (None,), "support_", -1)
    need(len(support) in (0, m), "support_ does not fit the prototypes")
    need(model.kernel != "precomputed", "prototypes need a kernel of rows")
    check_kernel(fitted["_kernel"], model.kernel, d, "the kernel")
    need(not isinstance(fitted["_kernel"], Precomputed), "prototypes need a kernel of rows")
    instance(fitted["_fitted_loss"], str, "_fitted_loss")
    need(isinstance(fitted.get("_no_update"), str | None), "_no_update is no text")
    used = fitted.get("_used")
    if used is not None:
        need(isinstance(used, np.ndarray) and used.dtype == bool, "_used is no mask")
        need(used.shape == (m, k), "_used does not fit")
    by_class = fitted["_by_class"]
    need(classes > 0 or not by_class, "a regressor has no classes")
    moments = instance(fitted.get("moments_") or [], list, "moments_")
    need(len(moments) in (0, classes if by_class else 1), "moments_ does not fit")
    for part in moments:
        check_moments(part, m, 0 if by_class else k)
    map = fitted.get("_map")
    if map is not None:
        instance(map, NystromMap, "_map")
        rank = len(floats(map.eigenvalues, (None,), "eigenvalues"))
        floats(map.T, (m, rank), "_map")
        need(is_number(map.cut), "_map has no limit")
    need(map is not None or not moments, "the map is missing")
    check_sample(fitted.get("_sample"), d, k, classes)


def check_moments(moments: Any, m: int, q: int) -> None:
    """Check the moments of ``m`` prototypes and ``q`` targets."""
    instance(moments, Moments, "moments_")
    floats(moments.gram, (m, m), "gram")
    floats(moments.border, (m,), "border")
    floats(moments.cross, (m, q), "cross")
    floats(moments.target, (q,), "target")
    floats(moments.squares, (q,), "squares")
    need(is_number(moments.weight) and moments.weight >= 0, "the weight of the moments is none")
    need(is_whole(moments.n) and moments.n >= 0, "the count of the moments is none")
    if moments.shift is not None:
        floats(moments.shift, (m,), "shift")


def _check_greedy(model: Any, fitted: dict[str, Any], d: int, m: int, k: int, classes: int) -> None:
    for name in ("_basis", "_kernel", "_dtype"):
        need(name in fitted, f"{name} is missing")
    wholes(fitted["support_"], (m,), "support_", 0)
    _check_basis(model, fitted["_basis"], d, m)
    check_kernel(fitted["_kernel"], model.kernel, d, "the kernel")
    need(isinstance(fitted["_kernel"], Precomputed) == model._precomputed(), "a kernel is wrong")
    need(fitted["_dtype"] in (np.dtype("<f8"), np.dtype("<f4")), "_dtype is no type of numbers")
    check_scores(fitted.get("_left"), k, classes)
    lists = [fitted.get(name, []) for name in ("paths_", "_places", "_ridges")]
    if any(lists):
        need(all(isinstance(part, list) and len(part) == k for part in lists), "paths do not fit")
        floats(fitted.get("_centre"), (k,), "_centre")
        for path, place, ridge in zip(*lists, strict=True):
            _check_path(path, place, ridge, m)
        if model._precomputed():
            floats(fitted.get("_gram"), (m, m), "_gram")


def _check_path(path: Any, place: Any, ridge: Any, m: int) -> None:
    instance(path, GreedyPath, "a path")
    s = len(wholes(path.support, (None,), "a path", 0))
    wholes(place, (s,), "the places of a path", 0, m)
    weights(ridge, (s,), "the ridge of a path")
    for name in ("objective", "error", "held_out", "coef", "targets"):
        given = getattr(path, name)
        any_length = name in ("held_out", "error", "objective")
        floats(given, (None if any_length else s,), name, finite=name in ("coef", "targets"))
    if path.offsets is not None:
        floats(path.offsets, (s,), "offsets")
    if path.factor is not None:
        floats(path.factor, (s, s), "factor")
    need(is_number(path.intercept) and is_number(path.mean), "a path has no bias")
    need(type(path.bordered) is bool and path.left_out is None, "a path does not fit")
    instance(path.status, str, "the status of a path")
