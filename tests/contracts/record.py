"""Record the numbers of contract cases: ``python -m tests.contracts.record NAME ...``.

A case is recorded anew where its numbers are meant to change, and its name and the reason go into
the changelog; ``--all`` records every case. Needs ``src`` on the path.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.contracts.cases import CASES, Case
from tests.contracts.running import run

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


def main(names: list[str]) -> int:
    """Record the named cases."""
    unknown = [name for name in names if name not in CASES and name != "--all"]
    if not names or unknown:
        print(f"not known: {unknown}" if unknown else "name the cases to record, or give --all")
        return 2
    everything = "--all" in names
    records = {} if everything else recorded()
    for name in CASES if everything else names:
        records[name] = record(CASES[name])
    write({name: value for name, value in records.items() if name in CASES})
    print(f"{len(CASES) if everything else len(names)} cases recorded, {PATH.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
