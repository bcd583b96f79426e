"""The table of the papers is complete, its names and tests exist, and the page is made of it."""

import importlib
import importlib.util
import re
import warnings

import numpy as np
import pytest
from tests.meta.tree import ROOT

import lssvm
from lssvm import kernels, prototypes, reductions, solvers, tuning

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
        text = " ".join([row["item"], row.get("deviates", ""), row.get("measured", "")]).lower()
        assert "missing" not in text and "not explained" not in text and "todo" not in text


@pytest.mark.parametrize("name", sorted({name for row in ROWS for name in row["where"]}))
def test_names_exist(name):
    module, _, attribute = name.rpartition(".")
    assert hasattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize("check", sorted(CHECKED))
def test_tests_exist(check):
    file, name = check.split("::")
    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert re.search(rf"^\s*def {name}\(", text, re.MULTILINE), check


@pytest.mark.parametrize("option", [option for row in SWITCHES for option in row["option"]])
def test_options_that_are_the_print_train_a_model(option):
    names = {}
    for module in (solvers, reductions, prototypes, kernels, tuning, lssvm):
        names |= {name: getattr(module, name) for name in module.__all__}
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 0] + X[:, 1] > 1)
    model = eval(option, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows
        assert model.fit(X, y).score(X, y) > 0.5


def test_the_page_is_made_of_the_table():
    assert papers.PAGE.read_text(encoding="utf-8") == papers.page()
