"""Whether the parts of a model that came from a file fit together.

Everything that predictions, probabilities, intervals and updates read is checked: types, shapes
against each other, finite numbers, indices within bounds, sizes that a later call would allocate.
What one record says of itself is checked where it is read (`lssvm.io.known`); here stands what
the parts of an estimator say of each other. Letters: d features, m support vectors, k outputs, c
classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm._core.errors import ModelFileError
from lssvm._core.memory import as_bytes
from lssvm._core.namespace import is_sparse
from lssvm._core.threads import n_threads
from lssvm.data import Preparation
from lssvm.estimators import LSSVR, FixedSizeLSSVR, GreedyLSSVR
from lssvm.io.known import BOOK, KERNELS, MAX_CLASSES, MOST
from lssvm.io.rules import Lengths, need, table
from lssvm.kernels import Kernel
from lssvm.uncertainty.probabilities import by_problem

_THREADS = 4096
_COUNT = "whole >=0 <9223372036854775808"
_RULES = table(
    f"""
every: dual_coef_ floats m k some; intercept_ floats k some; C_ number >0 | floats k >0;
    gamma_ none | number >=0 | floats >=0 | floats * >=0 | floats * * >=0;
    _single? bool; _by_class? bool; _seed? {_COUNT}; n_iter_? {_COUNT}; n_evaluations_? {_COUNT};
    n_prototypes_? {_COUNT}; _scales? none | floats d; _cache? dict
classifier: code_ Code; threshold_? floats k
dual: support_ wholes m >=0; _machines list * of tuple; _memory DualMemory k d;
    _labels? wholes * >=0 <c; _early? none | OutOfFold k c
fixed: prototypes_ floats m d; n_prototypes_ whole; support_ wholes * >=-1; _kernel {KERNELS} d;
    _fitted_loss text; _by_class bool; _no_update? none | text; _used? none | mask m k;
    _map? none | NystromMap m; _sample? none | Sample d k c
greedy: support_ wholes m >=0; _kernel {KERNELS}/Precomputed d; _dtype any;
    _left? none | OutOfFold k c; paths_? list p of GreedyPath;
    _places? list p of wholes * >=0 <m; _ridges? list p of floats * >=0; _centre? floats k;
    _gram? none | floats m m
series: horizon_ whole =o >=1 <={MOST}; n_series_ whole =s >=1 <={MOST}; _seed {_COUNT};
    _listed bool; _ends list s of Series h e; _plan? Plan l x e o w; _calibration? Calibration w
layout: n_exog_ whole =e >=0 <={MOST}; _layout Layout l x e; estimator_ any
preparation: names list n of text; kinds list n of text; mean list a of number;
    scale list a of number >0; fill none | list a of number; categories list b of list
"""
)


def read_preparation(state: dict[str, Any]) -> Preparation:
    """Return the preparation of raw columns that a file describes."""
    need(set(state) == set(_RULES["preparation"]), "the preparation is not complete")
    lengths = BOOK.check(state, _RULES["preparation"])
    names, kinds = state["names"], state["kinds"]
    need(len(set(names)) == len(names), "two columns of the preparation have the same name")
    need(set(kinds) <= {"number", "text"}, "a column has an unknown kind")
    fits = (kinds.count("number"), kinds.count("text")) == (lengths["a"], lengths["b"])
    need(fits, "the preparation does not fit its columns")
    for part in state["categories"]:
        texts = all(c is None or isinstance(c, str) for c in part)
        need(texts and len(set(part)) == len(part), "categories are no distinct texts")
    return Preparation.from_dict(state)


def check_model(model: Any, fitted: dict[str, Any], keep: str) -> None:
    """Raise a `ModelFileError` where the parts of a model do not fit together."""
    if type(model).__name__ == "NARX":
        _check_series(model, fitted)
        return
    _check_parameters(model)
    lengths: Lengths = {"d": _check_columns(fitted), "c": 0}
    classifier = hasattr(model, "multiclass")
    lengths = BOOK.check(fitted, _RULES["every"], lengths)
    k = lengths["k"]
    if classifier:
        BOOK.check(fitted, _RULES["classifier"], lengths)
        lengths["c"] = _check_classes(fitted, k)
    else:
        need("_single" in fitted and (k == 1 or not fitted["_single"]), "_single does not fit")
    if "_memory" in fitted:
        _check_dual(model, fitted, BOOK.check(fitted, _RULES["dual"], lengths))
    elif "prototypes_" in fitted:
        _check_fixed(model, fitted, BOOK.check(fitted, _RULES["fixed"], lengths))
    else:
        _check_greedy(model, fitted, BOOK.check(fitted, _RULES["greedy"], lengths))
    _check_cache(model, fitted, keep, lengths)


def _check_columns(fitted: dict[str, Any]) -> int:
    """Check names and number of the raw columns; return the number of features."""
    lengths = BOOK.check(fitted, {"n_features_in_": "whole =r >=1"})
    raw, names, ready = lengths["r"], fitted.get("feature_names_in_"), fitted.get("preparation_")
    if names is not None:
        fits = isinstance(names, np.ndarray) and names.dtype == object and names.shape == (raw,)
        need(fits and all(isinstance(n, str) for n in names), "feature_names_in_ does not fit")
    if ready is None:
        return raw
    need(len(ready.schema.names) == raw, "the preparation has other columns than the model")
    same = names is None or list(names) == list(ready.schema.names)
    need(same, "the preparation has other names")
    return int(ready.n_features)


def _check_parameters(model: Any) -> None:
    """Check the parameters that a fitted model reads."""
    jobs = model.n_jobs
    need(jobs is None or (type(jobs) is int and 0 < abs(jobs) <= _THREADS), "n_jobs is no number")
    try:
        n_threads(jobs), as_bytes(model.memory_budget)
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelFileError(f"The file does not fit together: {error}") from error
    need(isinstance(model.kernel, (str, Kernel)), "the kernel is none")
    need(type(model.verbose) is int, "verbose is no number")
    if hasattr(model, "decoding"):
        need(_one_of(model.decoding, None, "hamming", "loss"), "decoding is unknown")
        maps = (None, "auto", "sigmoid", "isotonic")
        need(_one_of(model.calibration, *maps), "calibration is unknown")


def _one_of(value: Any, *options: Any) -> bool:
    return (value is None or isinstance(value, str)) and value in options


def _check_kernel(model: Any, kernel: Any) -> None:
    """Check that a kernel is the one that the parameters name."""
    wanted = model.kernel if isinstance(model.kernel, str) else model.kernel.name
    need(kernel.name == wanted, f"a kernel is {kernel.name}, but the parameters name another")


def _check_classes(fitted: dict[str, Any], k: int) -> int:
    """Check labels and output code; return the number of classes."""
    labels: Any = fitted.get("classes_")
    need(isinstance(labels, np.ndarray) and labels.dtype.kind in "biufUO", "classes_ are no labels")
    need(labels.ndim == 1 and 2 <= len(labels) <= MAX_CLASSES, "classes_ has another shape")
    need(labels.dtype.kind != "f" or np.all(np.isfinite(labels)), "classes_ are not finite")
    need(len({type(label) for label in labels.tolist()}) == 1, "classes_ are of several kinds")
    need(np.all(labels[:-1] < labels[1:]), "classes_ are not in order")
    need(fitted["code_"].matrix.shape == (len(labels), k), "the output code does not fit")
    return len(labels)


def _check_basis(model: Any, fitted: dict[str, Any], lengths: Lengths) -> None:
    given = model._precomputed()
    rule = "wholes m >=0 <d" if given else "rows m d"
    BOOK.check(fitted, {"_basis": rule}, lengths)
    need(model._accepts_sparse() or not is_sparse(fitted["_basis"]), "the support is sparse")


def _check_dual(model: Any, fitted: dict[str, Any], lengths: Lengths) -> None:
    k, memory = lengths["k"], fitted["_memory"]
    _check_basis(model, fitted, lengths)
    served = []
    for machine in fitted["_machines"]:
        need(len(machine) == 2, "_machines has another shape")
        BOOK.value(machine[0], f"{KERNELS}/Precomputed d", lengths, "a kernel")
        BOOK.value(machine[1], "wholes * >=0 <k", lengths, "the outputs of a kernel")
        _check_kernel(model, machine[0])
        served += machine[1].tolist()
    need(sorted(served) == list(range(k)), "the kernels do not serve every output once")
    for part in memory.parts:
        sparse = is_sparse(part.system.rows) or is_sparse(part.system.basis)
        need(model._accepts_sparse() or not sparse, "the rows are sparse")
    if lengths["c"] and memory.parts:
        need(len(fitted.get("_labels", ())) == len(memory.Y), "the labels do not fit")


def _check_fixed(model: Any, fitted: dict[str, Any], lengths: Lengths) -> None:
    classes, k = lengths["c"], lengths["k"]
    need(len(fitted["support_"]) in (0, lengths["m"]), "support_ does not fit the prototypes")
    _check_kernel(model, fitted["_kernel"])
    by_class = fitted["_by_class"]
    need(classes > 0 or not by_class, "a regressor has no classes")
    need("threshold_" in fitted or not classes, "threshold_ is missing")
    moments = fitted.get("moments_") or []
    targets = 0 if by_class else k
    BOOK.value(moments, f"list * of Moments m q={targets}", lengths, "moments_")
    need(len(moments) in (0, classes if by_class else 1), "moments_ does not fit")
    need(fitted.get("_map") is not None or not moments, "the map is missing")
    sample = fitted.get("_sample")
    if sample is not None:
        need((sample.labels is None) == (classes == 0), "the labels of the sample do not fit")
        need(sample.X is not None or classes > 0, "the rows of the sample are missing")


def _check_greedy(model: Any, fitted: dict[str, Any], lengths: Lengths) -> None:
    need(fitted["_dtype"] in (np.dtype("<f8"), np.dtype("<f4")), "_dtype is no type of numbers")
    _check_basis(model, fitted, lengths)
    _check_kernel(model, fitted["_kernel"])
    lists = [fitted.get(name, []) for name in ("paths_", "_places", "_ridges")]
    if any(lists):
        need(all(len(part) == lengths["k"] for part in lists), "paths do not fit")
        need("_centre" in fitted, "_centre is missing")
        for path, place, ridge in zip(*lists, strict=True):
            need(len(path.support) == len(place) == len(ridge), "a path does not fit")
        need(fitted.get("_gram") is not None or not model._precomputed(), "_gram is missing")


def _check_cache(model: Any, fitted: dict[str, Any], keep: str, lengths: Lengths) -> None:
    """Check the maps to probabilities, or the residuals of intervals, that were made at saving."""
    cache, classes = fitted.get("_cache", {}), lengths["c"]
    wanted = "probabilities" if classes else "residuals"
    need(set(cache) <= {wanted} and (keep != "all" or not cache), "_cache does not fit")
    BOOK.check(cache, {"probabilities?": "Probabilities", "residuals?": "Residuals k"}, lengths)
    if "probabilities" in cache:
        found, code = cache["probabilities"], fitted["code_"]
        same = np.array_equal(found.code.matrix, code.matrix) and found.decoding == model.decoding
        need(same, "the probabilities have another code")
        count = code.n_problems if by_problem(code) else code.n_classes
        need(len(found.maps) == count, "maps are missing")
        need(keep == "support" or len(found.threshold), "the quantiles of the sets are missing")


def _check_series(model: Any, fitted: dict[str, Any]) -> None:
    for name, low in (("n_paths", 2), ("n_origins", 1)):
        BOOK.value(getattr(model, name), f"whole >={low} <={MOST}", {}, name)
    kinds = (LSSVR, FixedSizeLSSVR, GreedyLSSVR)
    need(model.estimator is None or isinstance(model.estimator, kinds), "no regressor")
    lengths = BOOK.check(fitted, _RULES["layout"])
    layout, inner = fitted["_layout"], fitted["estimator_"]
    width = layout.lags + lengths["e"] * (layout.exog_lags + 1)
    lengths = BOOK.check(fitted, _RULES["series"], {**lengths, "h": layout.history, "w": width})
    single = isinstance(inner, kinds) and hasattr(inner, "dual_coef_")
    need(single and inner.dual_coef_.shape[1] == 1, "estimator_ is not fitted")
    fits = inner.n_features_in_ == width and not hasattr(inner, "preparation_")
    need(fits, "the lags do not fit")
    need(fitted["_listed"] or lengths["s"] == 1, "the ends of the series do not fit")
    plan = fitted.get("_plan")
    same = plan is None or plan.layout.differencing == layout.differencing
    need(same, "the plan has other differences")
