"""Print the oldest versions that pyproject.toml declares, as constraints for pip.

``python .ci/oldest.py test cli files > constraints.txt`` takes the dependencies of the package and
those of the groups and extras that are named: every ``name>=version`` becomes ``name==version``.
"""

from __future__ import annotations

import pathlib
import re
import sys
import tomllib

NEEDED = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^\]]*\])?>=(?P<version>[0-9.]+)$")


def oldest(project: dict[str, object], names: list[str]) -> dict[str, str]:
    """Return the oldest version of every package that is declared."""
    about = project["project"]
    tables = [about["dependencies"]]
    tables += [about["optional-dependencies"].get(name, []) for name in names]
    tables += [project["dependency-groups"].get(name, []) for name in names]
    found: dict[str, str] = {}
    for needed in (entry for table in tables for entry in table):
        match = NEEDED.fullmatch(needed)
        if match is None:
            sys.exit(f"{needed!r} declares no oldest version: write name>=version")
        name, version = match["name"].lower(), match["version"]
        if found.setdefault(name, version) != version:
            sys.exit(f"{name} is declared with >={found[name]} and with >={version}")
    return found


def main() -> None:
    """Read pyproject.toml and print the constraints."""
    path = pathlib.Path(__file__).parents[1] / "pyproject.toml"
    project = tomllib.loads(path.read_text(encoding="utf-8"))
    for name, version in sorted(oldest(project, sys.argv[1:]).items()):
        sys.stdout.write(f"{name}=={version}\n")


if __name__ == "__main__":
    main()
