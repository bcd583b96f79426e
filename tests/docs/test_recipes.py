"""The recipes with other libraries run, where those are installed, and all of them are shown."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest
from tests.meta.tree import ROOT

FOLDER = ROOT / "examples" / "recipes"
RECIPES = sorted(FOLDER.glob("*.py"))
ALL = os.environ.get("ALL_RECIPES")  # none may be skipped
NODE_MODULES = os.environ.get("NODE_MODULES")  # where npm has installed onnxruntime-web


def needs(path):
    """Return the library that a recipe is for."""
    return re.search(r"^# needs: (\w+)$", path.read_text("utf-8"), flags=re.MULTILINE)[1]


def run(command, folder):
    """Run a recipe in a folder and return what it prints."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_runs(path, tmp_path):
    if find_spec(needs(path)) is None and not ALL:
        pytest.skip(f"{needs(path)} is not installed")
    run([sys.executable, "-W", "error:::lssvm", str(path)], tmp_path)


@pytest.mark.skipif(not NODE_MODULES, reason="NODE_MODULES names no folder of onnxruntime-web")
def test_the_exported_model_runs_in_javascript(tmp_path):
    run([sys.executable, str(FOLDER / "onnx_runtime.py")], tmp_path)
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    shutil.copy(FOLDER / "onnx_browser.mjs", tmp_path)
    assert "the same class as in Python for" in run(["node", "onnx_browser.mjs"], tmp_path)


def test_the_page_of_recipes_shows_them_all():
    text = (ROOT / "docs" / "recipes.rst").read_text("utf-8")
    shown = set(re.findall(r"literalinclude:: \.\./examples/(.*)", text))
    others = {f"moments_{name}.py" for name in ("processes", "ray", "spark")}
    assert shown == {f"recipes/{path.name}" for path in FOLDER.iterdir() if path.is_file()} | others
