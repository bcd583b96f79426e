"""The table of the papers is complete, its names and tests exist, and the page is made of it."""

import ast
import importlib
import importlib.util
import re
import warnings

import numpy as np
import pytest
from tests.meta.tree import ROOT

import lssvm
from lssvm import codes, kernels, prototypes, reductions, solvers, tuning

MAKER = importlib.util.spec_from_file_location("papers", ROOT / "docs" / "papers.py")
papers = importlib.util.module_from_spec(MAKER)
MAKER.loader.exec_module(papers)
ROWS, SWITCHES = papers.rows(), papers.switches()
CHECKED = {name for row in (*ROWS, *SWITCHES) for name in row["checked"]}


def test_the_table_is_complete():
    assert len(ROWS) >= 69
    assert {row["paper"] for row in ROWS} == set(papers.PAPERS)
    assert len({(row["paper"], row["item"]) for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert row["where"] and row["checked"], row["item"]
        assert "todo" not in " ".join(map(str, row.values())).lower()


@pytest.mark.parametrize("name", sorted({name for row in ROWS for name in row["where"]}))
def test_names_exist(name):
    module, _, attribute = name.rpartition(".")
    assert hasattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("check", sorted(CHECKED))
def test_tests_exist(check):
    file, name = check.split("::")
    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert re.search(rf"^\s*def {name}\(", text, re.MULTILINE), check


def uses_oracle(check):
    """Return whether a test, or a function of its file that it calls, uses tests/oracles."""
    file, name = check.split("::")
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    oracles = {
        alias.asname or alias.name
        for node in imports
        for alias in node.names
        if (node.module or "").startswith("tests.oracles")
    }
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    seen, left = set(), {name}
    while left:
        function = functions[left.pop()]
        seen.add(function.name)
        names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        if names & oracles:
            return True
        left |= names & functions.keys() - seen
    return False


@pytest.mark.parametrize("row", [*ROWS, *SWITCHES], ids=lambda row: str(row.get("item")))
def test_what_is_as_printed_is_compared_with_an_oracle(row):
    # a row without deviations, one that says "as printed", and every option that is the print
    if "as printed" in row.get("deviates", "as printed").lower():
        assert any(map(uses_oracle, row["checked"])), row["checked"]


def test_an_oracle_is_seen_where_it_is_used():
    file = "estimators/test_printed.py"
    assert uses_oracle(f"{file}::test_penalised_bias_is_equation_7")  # by another function
    assert not uses_oracle(f"{file}::test_bound_bias_refuses_what_has_a_free_one")


@pytest.mark.parametrize("option", [option for row in SWITCHES for option in row["option"]])
def test_options_that_are_the_print_train_a_model(option):
    names = {}
    for module in (solvers, reductions, prototypes, kernels, tuning, codes, lssvm):
        names |= {name: getattr(module, name) for name in module.__all__}
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 0] + X[:, 1] > 1)
    model = eval(option, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows
        assert model.fit(X, y).score(X, y) > 0.5


def test_the_page_is_made_of_the_table():
    assert papers.PAGE.read_text(encoding="utf-8") == papers.page()
