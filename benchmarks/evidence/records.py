"""The file of records: one JSON line per (set, method, seed), only ever appended to.

Versions, machine and code of a fit stand in a line of their own, ``{"run": id, "versions": ...,
"machine": ..., "code": ...}``, once for all records with that ``run``; `read` joins them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks.evidence.machine import digest
from benchmarks.study.records import append, repair

__all__ = ["Key", "Records", "append", "read", "repair", "run_line"]

Key = tuple[str, str, int]

OK, LIMIT, MISSING, FAILED = "ok", "time limit", "not installed", "error"
"""What ``status`` can be; "error" has the text in ``text``, as has "not installed"."""


@dataclass
class Records:
    """Records by (set, method, seed), a later line of the file wins, and the runs by their id."""

    by_key: dict[Key, dict[str, Any]] = field(default_factory=dict)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def all(self) -> list[dict[str, Any]]:
        """All records."""
        return list(self.by_key.values())

    @cached_property
    def tried(self) -> dict[tuple[str, str], dict[int, dict[str, Any]]]:
        """Records by set and method, then by seed, without those of missing libraries."""
        found: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
        for (name, method, seed), record in self.by_key.items():
            if record["status"] != MISSING:
                found.setdefault((name, method), {})[seed] = record
        return found

    def done(self, key: Key) -> str | None:
        """Return the status of what has been measured, None where it has not."""
        found = self.by_key.get(key)
        return None if found is None else str(found["status"])


def read(path: Path) -> Records:
    """Return what a file holds; nothing where there is no file."""
    found = Records()
    if not path.exists():
        return found
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        if "method" in line:
            found.by_key[line["set"], line["method"], line["seed"]] = line
        else:
            found.runs[line["run"]] = line
    return found


def run_line(state: dict[str, Any]) -> dict[str, Any]:
    """Return the line that describes a run, with its id."""
    return {"run": digest(json.dumps(state, sort_keys=True))} | state
