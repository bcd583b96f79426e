"""Rules about imports, as functions from source text to a list of violations."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

# A folder imports only from itself and from folders before it.
LAYERS = (
    "_core",
    "datasets",
    "data",
    "kernels",
    "codes",
    "tasks",
    "prototypes",
    "solvers",
    "backends",
    "tuning",
    "reductions",
    "greedy",
    "uncertainty",
    "explanations",
    "preparation",
    "local",
    "fitting",
    "estimators",
    "io",
    "onnx",
    "plots",
    "report",
    "cli",
)
SKLEARN_FROM = "tasks"

REQUIRED = {
    "array_api_compat",
    "joblib",
    "narwhals",
    "numpy",
    "safetensors",
    "scipy",
    "threadpoolctl",
}
OPTIONAL = {
    "charset_normalizer",
    "cupy",
    "dask",
    "distributed",
    "matplotlib",
    "numba",
    "onnx",
    "onnxruntime",
    "pandas",
    "polars",
    "psutil",
    "pyarrow",
    "python_calamine",
    "rich",
    "shap",
    "skl2onnx",
    "torch",
    "typer",
}

# What a folder is made of: without it there is nothing to import there.
FOUNDATION = {"cli": "typer"}

# (module, imported module): why the rule does not apply
EXCEPTIONS = {
    ("lssvm._core.arrays", "sklearn.externals"): "the copy of array-api-compat there, as a "
    "fallback where the library itself is not installed",
    ("lssvm.prototypes.select", "sklearn.cluster"): "k-means itself, inside the function",
}


@dataclass(frozen=True)
class Import:
    """One imported module or name, with where it stands."""

    target: str  # dotted: for `from a.b import c` the target is a.b.c
    module: str  # dotted: a.b
    line: int
    deferred: bool  # inside a function, or under `if TYPE_CHECKING`
    relative: bool


def _is_type_checking(node: ast.If) -> bool:
    return ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def imports(tree: ast.AST, deferred: bool = False) -> Iterator[Import]:
    """Yield every import below ``tree``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, alias.name, node.lineno, deferred, False)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            for alias in node.names:
                target = f"{module}.{alias.name}"
                yield Import(target, module, node.lineno, deferred, node.level > 0)
        elif isinstance(node, ast.If) and _is_type_checking(node):
            for child in node.body:
                yield from imports(ast.Module([child], []), True)
            for child in node.orelse:
                yield from imports(ast.Module([child], []), deferred)
        else:
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports(node, deferred or function)


def _private_sklearn_attributes(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            parts = ast.unparse(node).split(".")
            if parts[0] == "sklearn" and _private(parts[-1:]):
                yield ".".join(parts), node.lineno


def _private(parts: list[str]) -> bool:
    return any(p.startswith("_") and not p.startswith("__") for p in parts)


def _own_violation(here: str, layer: str | None, item: Import) -> str | None:
    """Check one import of lssvm itself."""
    parts = item.target.split(".")
    if any(part.startswith("_") and part not in ("_core", "__version__") for part in parts):
        return f"imports a private name of another module: {item.target}"
    if layer is None:  # the public face imports whatever it shows
        return None
    if len(parts) == 1:
        return f"imports the whole package: {item.target}"
    if parts[1] not in LAYERS:
        return f"imports {item.target}, which is above all folders"
    if LAYERS.index(parts[1]) > LAYERS.index(layer):
        return f"{layer} must not import {parts[1]}: {item.target}"
    return None


def _foreign_violation(layer: str | None, item: Import) -> str | None:
    """Check one import of another library."""
    library = item.target.partition(".")[0]
    if library in sys.stdlib_module_names or library in REQUIRED:
        return None
    if library == "sklearn":
        if layer is not None and LAYERS.index(layer) < LAYERS.index(SKLEARN_FROM):
            return f"scikit-learn is for {SKLEARN_FROM} and below, not for {layer}: {item.target}"
        if _private(item.target.split(".")):
            return f"a private name of scikit-learn: {item.target}"
        return None
    if library in OPTIONAL and layer is not None and FOUNDATION.get(layer) == library:
        return None
    if library in OPTIONAL:
        return None if item.deferred else f"optional library at module level: {item.target}"
    return f"unknown library: {item.target}"


def import_violations(source: str, module: str) -> list[str]:
    """Return what the imports of ``module`` (dotted, with this ``source``) break."""
    parts = module.split(".")
    tree = ast.parse(source)
    layer = parts[1] if len(parts) > 1 and parts[1] in LAYERS else None
    found = []
    for item in imports(tree):
        if item.relative:
            found.append(f"{module}:{item.line} relative import")
            continue
        if (module, item.module) in EXCEPTIONS:
            continue
        own = item.target.partition(".")[0] == "lssvm"
        problem = _own_violation(module, layer, item) if own else _foreign_violation(layer, item)
        if problem:
            found.append(f"{module}:{item.line} {problem}")
    found += [
        f"{module}:{line} a private name of scikit-learn: {name}"
        for name, line in _private_sklearn_attributes(tree)
    ]
    return found


def unknown_folders(modules: list[str], packages: set[str]) -> list[str]:
    """Return the folders of the package that have no place in the order of layers."""
    folders = {m.split(".")[1] for m in modules if m.count(".") >= 1}
    return sorted(folders & packages - set(LAYERS))


def stale_exceptions(sources: dict[str, str]) -> list[str]:
    """Return the exceptions that no longer excuse anything in a module that exists."""
    return [
        f"{module} no longer imports {target}"
        for module, target in EXCEPTIONS
        if module in sources
        and target not in {item.module for item in imports(ast.parse(sources[module]))}
    ]


def package_imports(source: str, package: str) -> list[str]:
    """Return the imports of ``package`` in a source that must not have any."""
    return [
        f"line {item.line} imports {item.target}"
        for item in imports(ast.parse(source))
        if item.target.partition(".")[0] == package
    ]
