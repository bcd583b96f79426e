"""The rules of the house that no other tool looks after."""

from __future__ import annotations

import ast
import inspect

import pytest
from sklearn.base import BaseEstimator
from tests.meta.tree import package_sources

import lssvm

# Limits that only go down: who improves a number writes the new one here. In brackets the aim.
MOST_FILES = 169
MOST_LINES = 43_212  # (33,000) without docstrings, comments and empty lines
MOST_ASKED = 0  # getattr and hasattr in the command line and the report
MOST_CLASSES = 3  # of ours in a resolution order
MOST_PARAMETERS = 18  # of an estimator
MOST_PLACES = 3  # questions of models where rows are, or where they are computed with
MOST_UNSEEN = 10  # parameters typed Any where a model is meant
_WITH_TEXTS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
MEANT = {"estimator", "fit", "fitted", "model", "problem", "record"}

ASKING = {"is_dask", "is_foreign", "is_source"}
KINDS = {"Arrays", "GivenArrays", "GivenBlocks", "Rows", "Scan", "ScanRows", "RowSource"}
KINDS |= {"MemorySource", "ScanSource", "Host", "Torch", "Device"}
PLACES = {"device", "foreign", "namespace_of", "place"}

ESTIMATORS = [
    value
    for value in (getattr(lssvm, name) for name in lssvm.__all__)
    if isinstance(value, type) and issubclass(value, BaseEstimator)
]


def unseen_parameters(source: str) -> list[str]:
    """Return the parameters that mean a model, problem or record and are typed Any."""
    return [
        f"{node.name}({one.arg})"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        if one.arg in MEANT and isinstance(one.annotation, ast.Name) and one.annotation.id == "Any"
    ]


def code_lines(source: str) -> int:
    """Return the number of lines that are no docstring, no comment and not empty."""
    texts: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        for one in getattr(node, "body", None) if isinstance(node, _WITH_TEXTS) else ():
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                texts.update(range(one.lineno, (one.end_lineno or one.lineno) + 1))
    lines = enumerate(source.splitlines(), start=1)
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in texts
        for number, line in lines
    )


def asked(source: str) -> int:
    """Return how often a source asks what an object has."""
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("getattr", "hasattr")
        for node in ast.walk(ast.parse(source))
    )


def places_asked(source: str) -> list[str]:
    """Return the questions where rows are: by a function, a class, a property or a device."""
    return [ast.unparse(node) for node in ast.walk(ast.parse(source)) if _asks_for_a_place(node)]


def _asks_for_a_place(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        kinds = {_last_name(one) for argument in node.args[1:] for one in ast.walk(argument)}
        return node.func.id in ASKING or (node.func.id == "isinstance" and bool(kinds & KINDS))
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        return _last_name(node.left) in PLACES
    return isinstance(node, ast.Attribute) and node.attr in ("complete", "distributed")


def _last_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def test_the_house_is_no_larger_than_it_was():
    sources = package_sources()
    assert len(sources) <= MOST_FILES
    assert sum(code_lines(source) for source in sources.values()) <= MOST_LINES


def test_lines_of_code_are_counted_without_texts():
    text = '"""Text\n\nover lines."""\n# comment\n\nX = 1\n"""Of X."""\n'
    source = f'{text}\ndef f():\n    "Text."\n    return X\n'
    assert code_lines(source) == 3


def test_readers_of_records_ask_no_more_than_they_did():
    readers = [
        source
        for module, source in package_sources().items()
        if module.split(".")[1:2] in (["cli"], ["report"])
    ]
    assert readers and sum(map(asked, readers)) <= MOST_ASKED
    assert asked("getattr(a, 'b'); hasattr(a, 'b'); a.getattr(1)") == 2


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_an_estimator_is_made_of_few_classes_of_ours(estimator):
    ours = [base for base in estimator.__mro__ if base.__module__.partition(".")[0] == "lssvm"]
    assert len(ours) <= MOST_CLASSES, ours


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_an_estimator_has_few_parameters_documented_in_their_order(estimator):
    names = list(inspect.signature(estimator).parameters)
    assert len(names) <= MOST_PARAMETERS, names
    section = inspect.getdoc(estimator).split("Parameters\n----------\n")[1].split("\n\n")[0]
    lines = [line for line in section.splitlines() if line and not line.startswith(" ")]
    documented = [name for line in lines for name in line.split(" : ")[0].split(", ")]
    assert documented == names


def test_the_estimators_are_found():
    assert {"LSSVC", "FixedSizeLSSVR", "LSSVMClassifier"} <= {kind.__name__ for kind in ESTIMATORS}


def test_models_rarely_ask_where_rows_are():
    found = [
        f"{module}: {one}"
        for module, source in package_sources().items()
        if module.split(".")[1:2] in (["estimators"], ["fitting"], ["tuning"])
        for one in places_asked(source)
    ]
    assert len(found) <= MOST_PLACES, found


def test_a_question_where_rows_are_is_found():
    source = "isinstance(X, (int, Scan)); isinstance(X, int); is_dask(X); rows.complete"
    assert len(places_asked(f"{source}; rows.device is None; X is None; f(device)")) == 4


def test_the_type_checker_sees_models_problems_and_records():
    found = [
        f"{module}: {one}"
        for module, source in package_sources().items()
        for one in unseen_parameters(source)
    ]
    assert len(found) <= MOST_UNSEEN, found


def test_a_parameter_that_is_not_seen_is_found():
    source = "def f(model: Any, X: Any, *, record: Any = None, fit: object = None) -> None: ..."
    assert unseen_parameters(source) == ["f(model)", "f(record)"]
