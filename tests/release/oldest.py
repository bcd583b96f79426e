"""Write the oldest dependencies that the package takes: ``oldest.py pyproject.toml out``."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path(sys.argv[1]).read_text("utf-8"))["project"]
lines = [requirement.replace(">=", "==") for requirement in project["dependencies"]]
assert all("==" in line for line in lines), "every dependency needs its oldest version"
Path(sys.argv[2]).write_text("\n".join(lines) + "\n", "utf-8")
