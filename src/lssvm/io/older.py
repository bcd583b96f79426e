"""Files of older formats, in the names of today's records.

A file names records and fields in words of its own format. What was renamed from one format to the
next is listed here, and a record whose fields are arranged otherwise is converted by a function.
Both work on the JSON of the header before it is decoded; arrays keep their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Fields = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """What changes from a format to the next one.

    Attributes
    ----------
    records : mapping from str to str
        Old and new names of records.
    fields : mapping from str
        For records, by their old names: old and new names of fields.
    converted : mapping from str to callable
        Records, by their old names, whose fields are arranged otherwise. A function takes and
        returns fields by their new names; the records in them are converted already.
    """

    records: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    converted: Mapping[str, Callable[[Fields], Fields]] = field(default_factory=dict)

    def convert(self, stored: Any) -> Any:
        """Return the JSON of a value with the names of the next format."""
        if isinstance(stored, list):
            return [self.convert(part) for part in stored]
        if not isinstance(stored, dict):
            return stored
        name, given = stored.get("record"), stored.get("fields")
        if not isinstance(name, str) or not isinstance(given, dict):
            return {key: self.convert(part) for key, part in stored.items()}
        renamed = self.fields.get(name, {})
        fields = {renamed.get(key, key): self.convert(part) for key, part in given.items()}
        fields = self.converted.get(name, dict)(fields)
        return {**stored, "record": self.records.get(name, name), "fields": fields}


# -- format 2, which version 0.2 has written -------------------------------------------------------

_SEARCHES = {
    "path": "PathSearch",
    "grid": "GridSearch",
    "shrinking": "ShrinkingGridSearch",
    "csa": "CoupledAnnealing",
    "circulant": "CirculantSearch",
}
_CODING = {"decoding": None, "targets": "label", "threshold": "zero", "calibration": "auto"}


def _with_bias(fields: Fields) -> Fields:
    penalised = fields.pop("penalised", False)
    return fields | ({"bias": "penalised"} if penalised else {})


def _with_objects(fields: Fields) -> Fields:
    kind, given = fields.get("kind"), _parameters(fields)
    if str(kind).removesuffix("C").removesuffix("R") in ("LSSV", "FixedSizeLSSV", "GreedyLSSV"):
        fields["parameters"] = _mapping(_into_objects(given))
    return fields


def _parameters(fields: Fields) -> dict[str, Any]:
    return {name: value for name, value in fields["parameters"].get("dict", [])}


def _mapping(values: dict[str, Any]) -> dict[str, Any]:
    return {"dict": [list(pair) for pair in values.items()]}


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


# -- format 3 --------------------------------------------------------------------------------------

_RENAMED = {"inputs": "scaling", "part_size": "leaf_size"}


def _with_new_parameters(fields: Fields) -> Fields:
    if fields.get("kind") in ("LSSVMClassifier", "LSSVMRegressor"):
        given = _parameters(fields).items()
        fields["parameters"] = _mapping({_RENAMED.get(name, name): value for name, value in given})
    return fields


STEPS = {
    2: Step(
        {
            "Machine": "OutputGroup",
            "DualMemory": "DualCalibrationData",
            "FixedMemory": "FixedCalibrationData",
            "GreedyMemory": "GreedyCalibrationData",
        },
        {
            "Fit": {"machines": "output_groups", "memory": "calibration"},
            "DualMemory": {"held": "held_out", "held_rows": "held_out_rows"},
            "CalibrationSample": {"held": "held_out"},
            "GreedyMemory": {"left_out": "held_out"},
        },
        {"FixedDetails": _with_bias, "Model": _with_objects},
    ),
    3: Step(
        {"PartsModel": "LocalModel", "Cut": "Partition"},
        {
            "PartsModel": {"cuts": "partitions", "part_size": "leaf_size"},
            "Cut": {"members": "rows"},
            "Tree": {"n_parts": "n_leaves"},
            "TableFit": {"part_size": "leaf_size"},
            "Configuration": {"inputs": "scaling"},
        },
        {"Model": _with_new_parameters},
    ),
}
"""By the number of the format that is converted."""


def convert(stored: Any, number: int) -> Any:
    """Return the JSON of a file of a format in the names of today's records."""
    for step in (STEPS[n] for n in sorted(STEPS) if n >= number):
        stored = step.convert(stored)
    return stored
