"""The recipes with other libraries run, where those are installed, and all of them are shown."""

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest
from tests.meta.tree import ROOT

RECIPES = sorted((ROOT / "examples" / "recipes").glob("*.py"))


def needs(path):
    """Return the library that a recipe is for."""
    return re.search(r"^# needs: (\w+)$", path.read_text("utf-8"), flags=re.MULTILINE)[1]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_runs(path, tmp_path):
    if find_spec(needs(path)) is None:
        pytest.skip(f"{needs(path)} is not installed")
    done = subprocess.run([sys.executable, "-W", "error:::lssvm", str(path)], cwd=tmp_path,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_page_of_recipes_shows_them_all():
    text = (ROOT / "docs" / "recipes.rst").read_text("utf-8")
    shown = set(re.findall(r"literalinclude:: \.\./examples/(.*)", text))
    others = {f"moments_{name}.py" for name in ("processes", "ray", "spark")}
    assert shown == {f"recipes/{path.name}" for path in RECIPES} | others
