"""Files of format 2, which version 0.2 has written, in the names of today's records.

A file names records and fields in words of its own format. What was renamed since version 0.2 is
listed here, and a record whose fields are arranged otherwise today is converted by a function.
Both work on the JSON of the header before it is decoded; arrays keep their names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RECORDS: dict[str, str] = {
    "Machine": "OutputGroup",
    "DualMemory": "DualCalibrationData",
    "FixedMemory": "FixedCalibrationData",
    "GreedyMemory": "GreedyCalibrationData",
}
"""Names of records in version 0.2, and their names today."""

FIELDS: dict[str, dict[str, str]] = {
    "Fit": {"machines": "output_groups", "memory": "calibration"},
    "DualMemory": {"held": "held_out", "held_rows": "held_out_rows"},
    "CalibrationSample": {"held": "held_out"},
    "GreedyMemory": {"left_out": "held_out"},
}
"""For records, by their names in version 0.2: names of fields, and their names today."""


def _bias_of_details(fields: dict[str, Any]) -> dict[str, Any]:
    penalised = fields.pop("penalised", False)
    return fields | ({"bias": "penalised"} if penalised else {})


CONVERTED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "FixedDetails": _bias_of_details,
}
"""Records, by their names in version 0.2, whose fields are arranged otherwise today.

A function takes and returns fields by today's names; the records in them are converted already.
"""

PARAMETERS: dict[str, dict[str, str]] = {}
"""For estimators and transformers: names of parameters in version 0.2, and their names today."""

FORMAT = 2

_SEARCHES = {
    "path": "PathSearch",
    "grid": "GridSearch",
    "shrinking": "ShrinkingGridSearch",
    "csa": "CoupledAnnealing",
    "circulant": "CirculantSearch",
}
_CODING = {"decoding": None, "targets": "label", "threshold": "zero", "calibration": "auto"}


def convert(stored: Any) -> Any:
    """Return the JSON of a value with the names of today's records and fields."""
    if isinstance(stored, list):
        return [convert(part) for part in stored]
    if not isinstance(stored, dict):
        return stored
    if "record" not in stored or not isinstance(stored.get("fields"), dict):
        return {key: convert(part) for key, part in stored.items()}
    name, renamed = stored["record"], {}
    if isinstance(name, str):
        renamed = FIELDS.get(name, {})
    fields = {renamed.get(key, key): convert(part) for key, part in stored["fields"].items()}
    if isinstance(name, str):
        fields = CONVERTED.get(name, dict)(fields)
        name = RECORDS.get(name, name)
    _rename_parameters(fields)
    return {**stored, "record": name, "fields": fields}


def _rename_parameters(fields: dict[str, Any]) -> None:
    kind, parameters = fields.get("kind"), fields.get("parameters")
    if not isinstance(kind, str) or not isinstance(parameters, dict):
        return
    for pair in parameters.get("dict", []):
        pair[0] = PARAMETERS.get(kind, {}).get(pair[0], pair[0])
    if kind.removesuffix("C").removesuffix("R") in ("LSSV", "FixedSizeLSSV", "GreedyLSSV"):
        given = {name: value for name, value in parameters.get("dict", [])}
        parameters["dict"] = [list(pair) for pair in _into_objects(given).items()]


def _record(name: str, **fields: Any) -> dict[str, Any]:
    return {"record": name, "fields": fields}


def _into_objects(given: dict[str, Any]) -> dict[str, Any]:
    """Put parameters that belong to a kernel, solver, search or code into its object."""
    degree, coef0 = given.pop("degree", 3), given.pop("coef0", 1.0)
    tol, max_iter = given.pop("tol", 1e-6), given.pop("max_iter", None)
    metric, tuning = given.pop("metric", None), given.pop("tuning", "joint")
    coding = {name: given.pop(name, usual) for name, usual in _CODING.items()}
    if given.get("kernel") == "poly" and (degree, coef0) != (3, 1.0):
        given["kernel"] = _record("Polynomial", degree=degree, coef0=coef0)
    if metric is not None:
        given["kernel"] = _record("MetricKernel", kernel=given.get("kernel", "rbf"), metric=metric)
    if given.get("solver") in ("cg", "smo") and (tol, max_iter) != (1e-6, None):
        limits = {"tol": tol} | ({} if max_iter is None else {"max_iter": max_iter})
        of_cg = given["solver"] == "cg"
        limits |= {"preconditioner": "nystrom"} if of_cg else {}
        given["solver"] = _record("ConjugateGradient" if of_cg else "SMO", **limits)
    if tuning == "separate":
        search = given.get("search", "path")
        search = _record(_SEARCHES[search]) if isinstance(search, str) else search
        given["search"] = {**search, "fields": {**search["fields"], "per_output": True}}
    if coding != _CODING:
        given["multiclass"] = _record("Coding", code=given.get("multiclass", "auto"), **coding)
    return given
