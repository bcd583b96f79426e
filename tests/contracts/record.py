"""Record the numbers of contract cases: ``python -m tests.contracts.record NAME ...``.

How numbers are recorded again, and when:

- A refactoring changes no recorded number. Rounding may change: numbers are compared to 1e-7
  (`RECORDED_TOLERANCE` in `cases`), single entries to what their ``looser`` says, with a reason.
- Where numbers are meant to change, record the cases concerned again by their names, and no others:
  ``python -m tests.contracts.record "table two" "table three"``. A name that ends in ``*`` means
  all cases that begin so (``"table *"``), ``--all`` means every case. Their names and the reason go
  into the commit message, and what users notice goes into the changelog.
- ``--check`` after the names writes nothing and says what would change.

``src`` has to be on the path. A new case has no numbers until it is recorded, and a test says so.
"""

from __future__ import annotations

import fnmatch
import json
import sys
from pathlib import Path
from typing import Any

from tests.contracts.cases import CASES, RECORDED_TOLERANCE, Case
from tests.contracts.running import differences, run

PATH = Path(__file__).with_name("recorded.json")


def recorded() -> dict[str, Any]:
    """Return the recorded numbers, by case and by group of engines."""
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


def record(case: Case) -> dict[str, Any]:
    """Return the numbers of a case for each group of engines that share them."""
    return {group: run(case, engines[0]) for group, engines in case.groups().items()}


def write(records: dict[str, Any]) -> None:
    """Write the file, one case a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(records[name])}" for name in sorted(records)]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def named(names: list[str]) -> tuple[list[str], list[str]]:
    """Return the cases that are meant, and the names that mean none."""
    meant: list[str] = []
    unknown: list[str] = []
    for name in names:
        pattern = "*" if name == "--all" else name
        matches = [case for case in CASES if fnmatch.fnmatchcase(case, pattern)]
        meant += [case for case in matches if case not in meant]
        unknown += [] if matches else [name]
    return meant, unknown


def main(arguments: list[str]) -> int:
    """Record the named cases, or say what would change."""
    check = "--check" in arguments
    names, unknown = named([name for name in arguments if name != "--check"])
    if not names or unknown:
        print(f"not known: {unknown}" if unknown else "name the cases to record, or give --all")
        return 2
    records = {name: value for name, value in recorded().items() if name in CASES}
    for name in names:
        case, before = CASES[name], records.get(name, {})
        records[name] = json.loads(json.dumps(record(case)))
        for line in differences(records[name], before, RECORDED_TOLERANCE, {}):
            print(f"{name}: {line[:200]}")
    if not check:
        write(records)
        print(f"{len(names)} cases recorded, {PATH.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
