"""Versions and machine of a run: what a record was measured with, without names of hosts."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import os
import platform
import re
from pathlib import Path
from typing import Any

PACKAGES = (
    "lssvm numpy scipy scikit-learn pandas catboost lightgbm xgboost xgboost-cpu "
    "scikit-learn-intelex neo-ls-svm xrfm torch himalaya thundersvm "
    "pytabkit skrub autogluon.tabular numba"
).split()


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that are there."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    found["lssvm"] = _own_version()
    return found


def machine() -> dict[str, Any]:
    """Return cores, kind of processor and memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "cpu": _processor(),
        "memory_gb": round(memory / 1e9),
        "system": platform.system(),
    }


def state() -> dict[str, Any]:
    """Return versions, machine and a digest of the sources of `lssvm`."""
    return {"versions": versions(), "machine": machine(), "code": code_digest()}


def digest(value: str) -> str:
    """Return twelve letters that stand for a text."""
    return hashlib.sha256(value.encode()).hexdigest()[:12]


def code_digest() -> str:
    """Return twelve letters that stand for the statements of `lssvm`: which code was measured.

    Comments, docstrings and layout do not count.
    """
    import lssvm

    folder = Path(lssvm.__file__).parent
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        whole.update(f"{path.relative_to(folder)}{statements(path.read_text('utf-8'))}".encode())
    return whole.hexdigest()[:12]


def statements(source: str) -> str:
    """Return the syntax tree of a module without its docstrings, as text.

    Fields that only some versions of Python have are left out where they are empty.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree).replace(", type_params=[]", "")


def _own_version() -> str:
    import lssvm

    return lssvm.__version__


def _processor() -> str:
    """Return the model of the processor in words, with its family where the words say little."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    found = {k: re.search(rf"^{k}\s*: (.*)$", text, re.MULTILINE) for k in ("model name", "model")}
    name, model = found["model name"], found["model"]
    words = name[1] if name else platform.machine()
    return f"{words}, model {model[1]}" if model else words
