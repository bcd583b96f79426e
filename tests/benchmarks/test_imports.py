"""Every benchmark can be imported, and so can what its functions import later."""

import ast
import warnings
from importlib import import_module

import pytest
from tests.meta.tree import ROOT

PATHS = sorted((ROOT / "benchmarks").rglob("*.py"))
OURS = ("lssvm", "benchmarks", "tests")


def attempt(module):
    """Import a module; one of another library, which need not be installed here, is skipped."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return import_module(module)
    except ModuleNotFoundError as error:
        if error.name.split(".")[0] in OURS:
            raise
        pytest.skip(f"{error.name} is not installed")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_benchmark_and_what_it_imports_can_be_imported(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in OURS:
            module = attempt(node.module)
            for name in (alias.name for alias in node.names):
                assert hasattr(module, name) or attempt(f"{node.module}.{name}")
        elif isinstance(node, ast.Import):
            for name in (alias.name for alias in node.names if alias.name.split(".")[0] in OURS):
                attempt(name)
    if path.stem != "__main__":
        attempt(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
