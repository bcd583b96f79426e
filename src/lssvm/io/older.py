"""Files of older formats, in the names of today's records.

A file names records and fields in words of its own format. What was renamed from one format to the
next is listed here, and a record whose fields are arranged otherwise is converted by a function.
Both work on the JSON of the header before it is decoded, and on the arrays that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from lssvm._core.arrays import AnyArray
from lssvm._core.errors import ModelFileError

Fields: TypeAlias = dict[str, Any]

Arrays: TypeAlias = dict[str, AnyArray] | None
"""The arrays of a file by their names; None where its header alone is read."""


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
        Records, by their old names, whose fields are arranged otherwise. A function takes fields by
        their new names and the arrays, and returns fields; the records in them are converted
        already.
    """

    records: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    converted: Mapping[str, Callable[[Fields, Arrays], Fields]] = field(default_factory=dict)

    def convert(self, stored: Any, arrays: Arrays = None) -> Any:
        """Return the JSON of a value with the names of the next format."""
        if isinstance(stored, list):
            return [self.convert(part, arrays) for part in stored]
        if not isinstance(stored, dict):
            return stored
        name, old = stored.get("record"), stored.get("fields")
        if not isinstance(name, str) or not isinstance(old, dict):
            return {key: self.convert(part, arrays) for key, part in stored.items()}
        renamed = self.fields.get(name, {})
        fields = {renamed.get(key, key): self.convert(part, arrays) for key, part in old.items()}
        if name in self.converted:
            fields = self.converted[name](fields, arrays)
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


def _with_bias(fields: Fields, arrays: Arrays) -> Fields:
    penalised = fields.pop("penalised", False)
    return fields | ({"bias": "penalised"} if penalised else {})


def _with_objects(fields: Fields, arrays: Arrays) -> Fields:
    kind, parameters = fields.get("kind"), _parameters(fields)
    if str(kind).removesuffix("C").removesuffix("R") in ("LSSV", "FixedSizeLSSV", "GreedyLSSV"):
        fields["parameters"] = _mapping(_into_objects(parameters))
    return fields


def _parameters(fields: Fields) -> dict[str, Any]:
    return {name: value for name, value in fields["parameters"].get("dict", [])}


def _mapping(values: dict[str, Any]) -> dict[str, Any]:
    return {"dict": [list(pair) for pair in values.items()]}


def _record(name: str, **fields: Any) -> dict[str, Any]:
    return {"record": name, "fields": fields}


def _into_objects(values: dict[str, Any]) -> dict[str, Any]:
    """Put parameters that belong to a kernel, solver, search or code into its object."""
    degree, coef0 = values.pop("degree", 3), values.pop("coef0", 1.0)
    tol, max_iter = values.pop("tol", 1e-6), values.pop("max_iter", None)
    metric, tuning = values.pop("metric", None), values.pop("tuning", "joint")
    coding = {name: values.pop(name, usual) for name, usual in _CODING.items()}
    if values.get("kernel") == "poly" and (degree, coef0) != (3, 1.0):
        values["kernel"] = _record("Polynomial", degree=degree, coef0=coef0)
    if metric is not None:
        kernel = values.get("kernel", "rbf")
        values["kernel"] = _record("MetricKernel", kernel=kernel, metric=metric)
    if values.get("solver") in ("cg", "smo") and (tol, max_iter) != (1e-6, None):
        limits = {"tol": tol} | ({} if max_iter is None else {"max_iter": max_iter})
        of_cg = values["solver"] == "cg"
        limits |= {"preconditioner": "nystrom"} if of_cg else {}
        values["solver"] = _record("ConjugateGradient" if of_cg else "SMO", **limits)
    if tuning == "separate":
        search = values.get("search", "path")
        search = _record(_SEARCHES[search]) if isinstance(search, str) else search
        values["search"] = {**search, "fields": {**search["fields"], "per_output": True}}
    if coding != _CODING:
        values["multiclass"] = _record("Coding", code=values.get("multiclass", "auto"), **coding)
    return values


# -- format 3, in which models for tables had a record of their own --------------------------------

_PARAMETERS = {"inputs": "scaling", "part_size": "leaf_size"}
_KERNELS = {"rbf": "RBF", "exponential": "Exponential", "laplacian": "Laplacian"}
_STATE = ("gamma", "support", "loss", "solver", "residual", "iterations", "relevance", "threshold")
_OF_EXPANSION = ("basis", "coef", "intercept", "C")


def _need(condition: bool, problem: str) -> None:
    if not condition:
        raise ModelFileError(f"The file does not fit together: {problem}.")


def _array(stored: Fields, arrays: Mapping[str, AnyArray]) -> AnyArray:
    """Return an array that JSON names."""
    array = arrays[stored["array"]]
    return array.T if stored.get("order") == "F" else array


def _model(fields: Fields, arrays: Arrays) -> Fields:
    """Rename parameters, and put the calibration into the record."""
    record: Any = fields.get("record")
    calibrated, parameters = fields.pop("calibration", None), _parameters(fields)
    if calibrated is not None:
        record["fields"]["calibrated"] = calibrated
    if fields.get("kind") in ("LSSVMClassifier", "LSSVMRegressor"):
        renamed = {_PARAMETERS.get(name, name): value for name, value in parameters.items()}
        fields["parameters"] = _mapping(renamed)
        tuned = parameters.get("scoring") is not None and record is not None
        if fields["kind"] == "LSSVMClassifier" and tuned:
            record["fields"]["calibrated"]["fields"]["agrees"] = False
    return fields


def _kernel_fit(fields: Fields, arrays: Arrays) -> Fields:
    """Make members of the kernels of outputs, and a state of what belongs to one family."""
    groups = [group["fields"] for group in fields.pop("output_groups")["tuple"]]
    whole = {name: fields.pop(name) for name in _OF_EXPANSION}
    metric = {"metric": fields.pop("metric")} if "metric" in fields else {}
    state = fields.pop("details")
    state["fields"] |= {name: fields.pop(name) for name in _STATE if name in fields}
    members = []
    if len(groups) > 1 and arrays is not None:  # what follows takes no more memory than the file
        served = sum(_array(group["columns"], arrays).size for group in groups)
        _need(served <= len(_array(whole["intercept"], arrays)), "kernels serve outputs twice")
    for number, group in enumerate(groups):
        of_group, outputs = dict(whole), None
        if len(groups) > 1 and arrays is not None:
            outputs, columns = group["columns"], _array(group["columns"], arrays)
            for name in _OF_EXPANSION[1:]:
                new = f"members.{number}.{name}"
                arrays[new] = np.ascontiguousarray(_array(whole[name], arrays)[..., columns])
                of_group[name] = {"array": new}
        expansion = _record("Expansion", kernel=group["kernel"], **of_group)
        members.append(_record("Member", model=expansion, outputs=outputs, **metric))
    return fields | {"members": {"tuple": members}, "state": state}


def _table_fit(fields: Fields, arrays: Arrays) -> Fields:
    """Put what was known of columns, targets and the stack where all fits have it."""
    context = fields.pop("context")["fields"]
    task, calibrated = context["task"], context.get("calibration")
    shift, scale, nearby = context["shift"], context["scale"], context.get("nearby", 0)
    classes = task["record"] == "Classes"
    task["fields"] |= {"decoding": "argmax"} if classes else {"shift": shift, "scale": scale}
    if calibrated is not None and not classes:
        calibrated["fields"]["nearby"] = nearby
    members: list[Fields] = []
    moments = None
    for member in (one["fields"] for one in fields.pop("members")["tuple"]):
        is_global, known = member.pop("beside", False), member.pop("moments", None)
        kernel = member.pop("configuration")["fields"]
        member["scaling"], moments = kernel["scaling"], known or moments
        if (is_global or fields.get("note")) and arrays is not None:
            leaf = member["model"]["fields"]["partitions"]["tuple"][0]["fields"]["leaves"]
            leaf, name = leaf["tuple"][0]["fields"], f"members.{len(members)}.C"
            setting, exact = leaf["setting"]["fields"], leaf["fit"]["fields"]
            _need(all("error" not in one["fields"] for one in members), "there are two of them")
            arrays[name] = np.full_like(_array(exact["intercept"], arrays), setting["C"])
            member["error"], member["model"] = (
                leaf["error"],
                _record(
                    "Expansion",
                    kernel=_record(_KERNELS[kernel["kernel"]], gamma=setting["gamma"]),
                    basis=leaf["rows"]["fields"]["X"],
                    coef=exact["coef"],
                    intercept=exact["intercept"],
                    C={"array": name},
                ),
            )
        members.append(_record("Member", **member))
    tuning = {"trials": fields.pop("trials"), "steps": fields.pop("spent", {"tuple": []})}
    state = {name: context[name] for name in ("n_rows", "weight_scale", "importances")}
    state |= {"named": context["texts"], "moments": moments}
    names = ("leaf_size", "held_out", "interrupted", "note")
    state |= {name: fields.pop(name) for name in names if name in fields}
    return fields | {
        "task": task,
        "members": {"tuple": members},
        "state": _record("TableState", **state),
        "seed": context["seed"],
        "calibrated": calibrated,
        "tuning": _record("Tuning", best_score=context["best_score"], **tuning),
        "prepared": context["prepared"],
    }


def _trial(fields: Fields, arrays: Arrays) -> Fields:
    kernel: Fields = fields.pop("configuration")["fields"]
    return kernel | fields


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
        {
            "PartsModel": "LocalModel",
            "Cut": "Partition",
            "TableFit": "Fit",
            "DualDetails": "DualState",
            "FixedDetails": "FixedState",
            "GreedyDetails": "GreedyState",
        },
        {
            "PartsModel": {"cuts": "partitions", "part_size": "leaf_size"},
            "Cut": {"members": "rows"},
            "Tree": {"n_parts": "n_leaves"},
            "TableFit": {"part_size": "leaf_size"},
            "Configuration": {"inputs": "scaling"},
        },
        {"Model": _model, "Fit": _kernel_fit, "TableFit": _table_fit, "Trial": _trial},
    ),
}
"""By the number of the format that is converted."""


def convert(stored: Any, number: int, arrays: Arrays = None) -> Any:
    """Return the JSON of a file of a format in the names of today's records.

    ``arrays`` gets what a conversion adds to the arrays of the file, and loses what it drops.
    """
    tree = stored
    for step in (STEPS[n] for n in sorted(STEPS) if n >= number):
        tree = step.convert(tree, arrays)
    if arrays is not None and tree is not stored:
        for name in set(_named(stored)) - set(_named(tree)):
            arrays.pop(name, None)
    return tree


def _named(tree: Any) -> Iterator[str]:
    """Yield the names of the arrays that JSON refers to."""
    if isinstance(tree, list):
        for part in tree:
            yield from _named(part)
    elif isinstance(tree, dict):
        for key, part in tree.items():
            if key in ("array", "texts", "ends") and isinstance(part, str):
                yield part
            else:
                yield from _named(part)
