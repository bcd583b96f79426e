"""The file of results: one JSON line per set, randomisation and method, only ever appended to."""

import json
from pathlib import Path
from typing import Any

Key = tuple[str, int, str]


def read(path: Path) -> dict[Key, dict[str, Any]]:
    """Return the recorded results by (set, randomisation, method); a later line wins."""
    results: dict[Key, dict[str, Any]] = {}
    for line in _lines(path):
        if "method" in line:
            results[line["set"], line["randomisation"], line["method"]] = line
    return results


def read_runs(path: Path) -> list[dict[str, Any]]:
    """Return the descriptions of the runs (versions, machine, threads) in the order of the file."""
    return [line["run"] for line in _lines(path) if "run" in line]


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def repair(path: Path) -> None:
    """Remove a last line that an interruption cut short."""
    if path.exists():
        text = path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        if len(whole) < len(text):
            path.write_bytes(whole)


def append(path: Path, record: dict[str, Any]) -> None:
    """Add one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")
