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

CONVERTED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Records, by their names in version 0.2, whose fields are arranged otherwise today.

A function takes and returns fields by today's names; the records in them are converted already.
"""

PARAMETERS: dict[str, dict[str, str]] = {}
"""For estimators and transformers: names of parameters in version 0.2, and their names today."""

FORMAT = 2


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
    if isinstance(kind, str) and kind in PARAMETERS and isinstance(parameters, dict):
        for pair in parameters.get("dict", []):
            pair[0] = PARAMETERS[kind].get(pair[0], pair[0])
