"""Rules about tests: each one must be able to fail."""

from __future__ import annotations

import ast
import re

# A call by one of these names fails when something is wrong.
_CHECKING_CALL = re.compile(
    r"(^|_)(assert|check|checks|raises|warns|fail|verify)(_|$)|^assert[A-Z]"
)
# These return their verdict; as a statement of their own they throw it away.
_VERDICTS = {
    "all",
    "allclose",
    "any",
    "array_equal",
    "isclose",
    "isfinite",
    "isinstance",
    "issubclass",
}


def _called_name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _always_true(test: ast.expr) -> bool:
    if isinstance(test, ast.Tuple):
        return bool(test.elts)
    return isinstance(test, ast.Constant) and bool(test.value)


def _asserts(function: ast.AST, helpers: dict[str, ast.AST], seen: frozenset[str]) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and not _always_true(node.test):
            return True
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Call):
            name = _called_name(node)
            if _CHECKING_CALL.search(name):
                return True
            helper = helpers.get(name) if name not in seen else None
            if helper is not None and _asserts(helper, helpers, seen | {name}):
                return True
    return False


def _functions(tree: ast.AST) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def silent_tests(name: str, source: str) -> list[str]:
    """Return the test functions of a module that assert nothing, and verdicts thrown away."""
    tree = ast.parse(source)
    functions = _functions(tree)
    helpers = {f.name: f for f in functions if not f.name.startswith("test")}
    tests = [f for f in functions if f.name.startswith("test")]
    found = [
        f"{name}:{test.lineno} {test.name} asserts nothing"
        for test in tests
        if not _asserts(test, helpers, frozenset())
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and _always_true(node.test):
            found.append(f"{name}:{node.lineno} an assertion that is always true")
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            if _called_name(node.value) in _VERDICTS:
                found.append(f"{name}:{node.lineno} a verdict that nobody reads")
    return found


def _needs(test: ast.FunctionDef | ast.AsyncFunctionDef, library: str) -> bool:
    """Say whether a test imports a library, or is given its name by a decorator."""
    for decorator in test.decorator_list:
        values = [node.value for node in ast.walk(decorator) if isinstance(node, ast.Constant)]
        if library in values:
            return True
    for node in ast.walk(test):
        if isinstance(node, ast.Import) and any(
            a.name.split(".")[0] == library for a in node.names
        ):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == library:
            return True
        if isinstance(node, ast.Call) and _called_name(node) == "importorskip":
            if any(isinstance(a, ast.Constant) and a.value == library for a in node.args):
                return True
    return False


def unmarked_tests(name: str, source: str, library: str) -> list[str]:
    """Return the tests that need ``library`` but lack its marker: nothing would ever run them.

    The marker may stand at the test, at one of its parameters, at its class or at the module.
    """
    if library not in source:
        return []
    tree = ast.parse(source)
    marker = f"pytest.mark.{library}"
    if re.search(rf"^pytestmark = .*{re.escape(marker)}\b", source, re.MULTILINE):
        return []
    marked_classes = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and marker in map(ast.unparse, node.decorator_list)
    ]
    excused = {id(test) for node in marked_classes for test in _functions(node)}
    return [
        f"{name}:{test.lineno} {test.name} needs {library} but is not marked {marker}"
        for test in _functions(tree)
        if test.name.startswith("test")
        and id(test) not in excused
        and _needs(test, library)
        and not any(marker in ast.unparse(decorator) for decorator in test.decorator_list)
    ]
