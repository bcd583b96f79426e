"""Which parts of which estimator go into a file, and how they become a model again.

Every attribute that a fit sets has a line in `PARTS`: from which form on (`FORMS`) it is stored.
"support" is what a prediction needs; "prediction" adds what error bars, intervals and sets need;
"all" adds what updates need, and the records of the fit.
"""

from __future__ import annotations

import inspect
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from lssvm._core.errors import InvalidInputError, MemoryBudgetError, ModelFileError
from lssvm._core.memory import as_bytes
from lssvm._core.text import printable
from lssvm._core.threads import n_threads
from lssvm.estimators._stored import FORMS, stored_form
from lssvm.io.checks import check_model, read_preparation
from lssvm.io.known import MAX_CLASSES, Model, known
from lssvm.io.records import NotStorable, encode

_COMMON = {
    "support": "n_features_in_ feature_names_in_ preparation_ C_ gamma_ best_score_ support_ "
    "dual_coef_ intercept_ n_iter_",
    "all": "cv_results_",
}
_CLASSIFIER = {"support": "classes_ code_"}
_TUNED = {
    "support": "n_evaluations_ feature_relevance_ _seed _scales",
    "all": "tuning_result_",
}
_DUAL = {
    "support": "_basis _machines residual_ solver_ _memory",
    "all": "reduction_path_",
}
_FIXED = {
    "support": "prototypes_ n_prototypes_ _kernel _fitted_loss _by_class _no_update _used "
    "peak_memory_ solver_ residual_",
    "prediction": "sparsity_paths_",
    "all": "moments_ _map _sample selection_ size_results_ sample_results_",
}
_GREEDY = {
    "support": "_basis _kernel _dtype",
    "all": "paths_ _places _ridges _centre _gram",
}
_SERIES = {
    "support": "estimator_ horizon_ n_series_ n_exog_ best_score_ _listed _layout _ends _seed",
    "prediction": "_calibration _plan",
    "all": "cv_results_",
}


def _table(*groups: dict[str, str]) -> dict[str, str]:
    pairs = [(form, names) for group in groups for form, names in group.items()]
    return {name: form for form, names in pairs for name in names.split()}


PARTS: dict[str, dict[str, str]] = {
    "LSSVC": _table(
        _COMMON, _TUNED, _DUAL, _CLASSIFIER, {"prediction": "_labels", "all": "_early"}
    ),
    "LSSVR": _table(_COMMON, _TUNED, _DUAL, {"support": "_single n_reweightings_"}),
    "FixedSizeLSSVC": _table(_COMMON, _TUNED, _FIXED, _CLASSIFIER, {"support": "threshold_"}),
    "FixedSizeLSSVR": _table(_COMMON, _TUNED, _FIXED, {"support": "_single"}),
    "GreedyLSSVC": _table(_COMMON, _GREEDY, _CLASSIFIER, {"all": "_left"}),
    "GreedyLSSVR": _table(_COMMON, _GREEDY, {"support": "_single"}),
    "NARX": _table(_SERIES),
}
"""For every class the attributes that are stored, and the smallest form that has them."""

DERIVED = frozenset({"support_vectors_", "_cache", "_kept", "_stored"})
"""Attributes that follow from others, or do not travel."""

OF_THE_MACHINE = frozenset({"checkpoint", "device"})
"""Parameters that say something about a machine and are never stored."""

OF_THE_ROWS = frozenset({"cv", "selection"})
"""Parameters that are not stored where they are lists or arrays: they belong to training rows."""


@cache
def models() -> dict[str, Any]:
    """Return the estimators that a file may hold, by name."""
    from lssvm import estimators

    return {name: getattr(estimators, name) for name in PARTS}


def check_storable(model: Any, keep: str) -> None:
    """Raise where a model is none of ours, not fitted, or has less than is to be kept."""
    from sklearn.utils.validation import check_is_fitted

    if models().get(type(model).__name__) is not type(model):
        raise InvalidInputError(
            f"{type(model).__name__} cannot be saved: give a fitted model of "
            f"{', '.join(sorted(PARTS))}."
        )
    check_is_fitted(model)
    if len(getattr(model, "classes_", ())) > MAX_CLASSES:
        raise InvalidInputError(
            f"A model file holds at most {MAX_CLASSES} classes; this model has "
            f"{len(model.classes_)}."
        )
    if keep not in FORMS:
        raise InvalidInputError(f"keep={keep!r} is not known: choose one of {', '.join(FORMS)}.")
    if FORMS.index(stored_form(model)) < FORMS.index(keep):
        raise InvalidInputError(
            f"keep={keep!r} asks for more than this model has: it was loaded from a file that was "
            f"saved with keep={stored_form(model)!r}. Give that, or save the original model."
        )


# -- writing -----------------------------------------------------------------------------------


def write_model(model: Any, keep: str) -> Model:
    """Return the record of an estimator: its parameters and what is kept of its fit."""
    parameters: dict[str, Any] = {}
    left_out = []
    for name, value in sorted(model.get_params(deep=False).items()):
        rows = name in OF_THE_ROWS and isinstance(value, (list, tuple, np.ndarray))
        if name in OF_THE_MACHINE or rows:
            left_out += [name] if value is not None else []
            continue
        try:
            parameters[name] = _nested(value, keep)
            encode(parameters[name], known())
        except NotStorable as error:
            if name in ("kernel", "estimator"):
                raise InvalidInputError(
                    f"{name}={printable(repr(value))} cannot be stored in a model file, which "
                    "never holds code: use one of the kernels and regressors of lssvm."
                ) from error
            del parameters[name]
            left_out.append(name)
    if not hasattr(model, "dual_coef_") and not hasattr(model, "estimator_"):
        return Model(type(model).__name__, parameters, left_out)
    fitted = {name: _nested(value, keep) for name, value in _parts(model, keep).items()}
    ready = fitted.pop("preparation_", None)
    prepared = None if ready is None else ready.to_dict()
    return Model(type(model).__name__, parameters, left_out, fitted, prepared)


def _nested(value: Any, keep: str) -> Any:
    ours = models().get(type(value).__name__) is type(value)
    return write_model(value, keep) if ours else value


def _parts(model: Any, keep: str) -> dict[str, Any]:
    """Return the attributes that are stored."""
    name = type(model).__name__
    table, level = PARTS[name], FORMS.index(keep)
    parts = {n: v for n, v in vars(model).items() if n in table and FORMS.index(table[n]) <= level}
    if keep == "all":
        return parts
    if name == "NARX":
        if "_calibration" in parts:
            parts.pop("_plan", None)  # there to calibrate
        return parts
    if name in ("LSSVC", "FixedSizeLSSVC", "GreedyLSSVC"):
        _calibrate(model, keep, parts)
    if name in ("LSSVC", "LSSVR"):
        _forget_rows(model, keep, parts)
    if name == "FixedSizeLSSVR" and keep == "prediction":
        _keep_posterior(model, parts)
    return parts


def _calibrate(model: Any, keep: str, parts: dict[str, Any]) -> None:
    """Store the maps to probabilities in place of the rows that they are fitted on."""
    if model.calibration is None or not hasattr(model, "predict_proba"):
        return
    lazy = type(model).__name__ == "LSSVC" and model._early is None and model._memory.parts
    if keep == "prediction" and lazy and "probabilities" not in model._cache:
        return  # the rows are the support vectors: left out one by one when first asked for
    with suppress(InvalidInputError, MemoryBudgetError):  # then there are none after loading either
        found = model._probabilities()
        if keep == "support":
            none = np.empty(0)
            found = replace(found, threshold=none, weight=none)
        parts["_cache"] = {"probabilities": found}


def _forget_rows(model: Any, keep: str, parts: dict[str, Any]) -> None:
    """Drop the targets of the training rows where nothing needs them."""
    memory = model._memory
    needed = keep == "prediction" and bool(memory.parts) and "_cache" not in parts
    if type(model).__name__ == "LSSVR":
        needed = needed and memory.loss == "squared" and memory.reduction is None
    if not needed:
        none: dict[str, Any] = {"parts": [], "weight": None, "held": None, "held_rows": None}
        parts["_memory"] = replace(memory, Y=memory.Y[:0], **none)
        parts.pop("_labels", None)


def _keep_posterior(model: Any, parts: dict[str, Any]) -> None:
    """Store what error bars and intervals of a fixed-size regressor need, if there are any."""
    try:
        model._posteriors()
    except InvalidInputError:
        return
    parts["moments_"], parts["_map"] = model.moments_, model._map
    with suppress(InvalidInputError):  # too few rows
        if "residuals" not in model._cache:
            model._cache["residuals"] = model._make_residuals()
        parts["_cache"] = {"residuals": model._cache["residuals"]}


# -- reading -----------------------------------------------------------------------------------


def read_model(record: Any, keep: str) -> Any:
    """Return the estimator of a record, after everything has been checked."""
    if not isinstance(record, Model) or record.kind not in PARTS:
        raise ModelFileError("The file does not name one of the estimators of lssvm.")
    kind, name = models()[record.kind], record.kind
    if not set(record.parameters) <= set(inspect.signature(kind).parameters) - OF_THE_MACHINE:
        raise ModelFileError(f"The file holds parameters that {name} does not have.")
    model = kind(**{n: _estimator(value, keep) for n, value in record.parameters.items()})
    if record.fitted is None:
        return model
    if not set(record.fitted) <= {*PARTS[name], "_cache"} - {"preparation_"}:
        raise ModelFileError(f"The file holds attributes that {name} does not have.")
    fitted = {n: _estimator(value, keep) for n, value in record.fitted.items()}
    if record.preparation is not None:
        fitted["preparation_"] = read_preparation(record.preparation)
    check_model(model, fitted, keep)
    for n, value in {**fitted, **_restored(model, fitted)}.items():
        setattr(model, n, value)
    if keep != "all":
        model._stored = keep
    return model


def _estimator(value: Any, keep: str) -> Any:
    return read_model(value, keep) if isinstance(value, Model) else value


def _restored(model: Any, fitted: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes that follow from others."""
    name = type(model).__name__
    if name == "NARX":
        return {}
    more: dict[str, Any] = {} if name == "GreedyLSSVR" else {"_cache": fitted.get("_cache", {})}
    if "prototypes_" in fitted:
        more["support_vectors_"] = fitted["prototypes_"]
        absent: dict[str, Any] = {"moments_": [], "_map": None, "_sample": None, "selection_": None}
        return more | {n: value for n, value in absent.items() if n not in fitted}
    if not model._precomputed():
        more["support_vectors_"] = fitted["_basis"]
    if name == "LSSVC":
        more["_early"] = fitted.get("_early")
        more["_labels"] = fitted.get("_labels", np.empty(0, dtype=np.intp))
    if name == "GreedyLSSVC":
        more["_left"] = fitted.get("_left")
    if "_memory" in fitted:
        more["_memory"] = _on_this_machine(model, fitted["_memory"])
    return more


def _on_this_machine(model: Any, memory: Any) -> Any:
    """Give the systems of a dual model the memory and the threads of this machine."""
    here: dict[str, Any] = {
        "budget": as_bytes(model.memory_budget),
        "threads": n_threads(model.n_jobs),
    }
    parts = [replace(part, system=replace(part.system, **here)) for part in memory.parts]
    return replace(memory, parts=parts)
