"""Print the newest Python that is installed here, on the path or by pyenv.

``python .ci/newest.py`` prints the name of its file: that of the running one if there is no newer.
Pre-releases and those without a lock of the interpreter are left out: few libraries have wheels.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

ABOUT = (
    "import ensurepip, sys, sysconfig; v = sys.version_info; "
    "print(v.minor if v.releaselevel == 'final' "
    "and not sysconfig.get_config_var('Py_GIL_DISABLED') else 0)"
)


def minor(python: str) -> int:
    """Return the number after 3 of a Python that makes environments, otherwise 0."""
    done = subprocess.run([python, "-c", ABOUT], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else 0


def main() -> None:
    """Try all of them."""
    root = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    pythons = [sys.executable, *map(str, root.glob("versions/3.*/bin/python"))]
    pythons += filter(None, [shutil.which(f"python3.{number}") for number in range(12, 30)])
    sys.stdout.write(max(pythons, key=minor) + "\n")


if __name__ == "__main__":
    main()
