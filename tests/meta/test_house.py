"""The rules of the house that no other tool looks after."""

from __future__ import annotations

import ast

import pytest
from sklearn.base import BaseEstimator
from tests.meta.tree import package_sources

import lssvm

MOST_CLASSES = 3
MOST_UNSEEN = 25
MEANT = {"estimator", "fit", "fitted", "model", "problem", "record"}

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


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_an_estimator_is_made_of_few_classes_of_ours(estimator):
    ours = [base for base in estimator.__mro__ if base.__module__.partition(".")[0] == "lssvm"]
    assert len(ours) <= MOST_CLASSES, ours


def test_the_estimators_are_found():
    assert {"LSSVC", "FixedSizeLSSVR", "LSSVMClassifier"} <= {kind.__name__ for kind in ESTIMATORS}


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
