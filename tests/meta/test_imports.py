"""The order of the folders, optional libraries and scikit-learn's private names."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest
from tests.meta.import_rules import (
    EXCEPTIONS,
    LAYERS,
    OPTIONAL,
    REQUIRED,
    import_violations,
    imports,
    package_imports,
    stale_exceptions,
    unknown_folders,
)
from tests.meta.tree import SOURCE, TESTS, package_folders, package_sources

import lssvm

SOURCES = package_sources()

REPORT = """
import json, os, sys, threading
folder = "/proc/self/fd"
files = []
if os.path.isdir(folder):
    for entry in os.listdir(folder):
        try:
            files.append(os.readlink(os.path.join(folder, entry)))
        except OSError:
            pass
devices = [name for name in files if name.startswith(("/dev/nvidia", "/dev/kfd", "/dev/dri"))]
loaded = sorted(name for name, module in sys.modules.items() if module is not None)
print(json.dumps([loaded, threading.active_count(), devices]))
"""

NOT_INSTALLED = f"""
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NotInstalled())
"""


def after(statement: str) -> tuple[list[str], int, list[str]]:
    """Run a statement in a fresh interpreter: modules loaded, threads, devices held open."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n"]
    command[-1] += statement + REPORT
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    modules, threads, devices = json.loads(answer.stdout)
    return modules, threads, devices


def optional(modules: list[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} & OPTIONAL


def test_the_walk_finds_the_package():
    assert "lssvm._core.errors" in SOURCES
    assert "lssvm.datasets" in SOURCES


def test_imports_obey_the_layers():
    assert [v for name in sorted(SOURCES) for v in import_violations(SOURCES[name], name)] == []


def test_every_folder_has_a_place_among_the_layers():
    assert unknown_folders(sorted(SOURCES), package_folders()) == []


def test_no_exception_is_stale():
    assert stale_exceptions(SOURCES) == []
    assert all(len(reason) > 20 for reason in EXCEPTIONS.values())


def test_oracles_stand_on_their_own():
    paths = sorted((TESTS / "oracles").rglob("*.py"))
    assert len(paths) > 5
    for path in paths:
        assert package_imports(path.read_text(encoding="utf-8"), "lssvm") == [], path.name


def test_importing_the_package_loads_no_optional_library_and_takes_no_device():
    modules, threads, devices = after("from lssvm import *")
    assert "lssvm.estimators" in modules
    # scikit-learn loads pandas, pyarrow and others of its own accord where they are installed: take
    # away what the same modules of the required libraries load without lssvm.
    required = [name for name in modules if name.partition(".")[0] in {*REQUIRED, "sklearn"}]
    statement = f"import importlib\nfor name in {required}:\n    importlib.import_module(name)"
    assert optional(modules) - optional(after(statement)[0]) == set()
    assert threads == 1
    assert devices == []


def test_the_package_can_be_imported_where_no_optional_library_is_installed():
    modules, _, _ = after(NOT_INSTALLED + "from lssvm import *")
    assert "lssvm.estimators" in modules
    assert optional(modules) == set()


def test_importing_the_package_alone_loads_no_library_at_all():
    modules, _, _ = after("import lssvm")
    own = {name for name in modules if name.startswith("lssvm")}
    assert own == {"lssvm", "lssvm._core", "lssvm._core.version"}
    assert {name.partition(".")[0] for name in modules} & {*REQUIRED, *OPTIONAL, "sklearn"} == set()


def test_the_names_of_the_package_come_when_they_are_asked_for():
    modules, _, _ = after("import lssvm\nassert lssvm.kernels.RBF\nassert lssvm.scan")
    assert {"lssvm.kernels", "lssvm.data"} <= set(modules)
    assert "sklearn" not in modules
    with pytest.raises(AttributeError, match="'lssvm' has no attribute 'LSSVM'"):
        _ = lssvm.LSSVM
    assert set(lssvm.__all__) <= set(dir(lssvm))


def test_a_library_that_is_not_installed_cannot_be_imported():
    with pytest.raises(AssertionError, match=r"ModuleNotFoundError: pandas"):
        after(NOT_INSTALLED + "import pandas")


def test_the_fresh_interpreter_would_notice_a_library_and_a_thread():
    pytest.importorskip("pandas")
    modules, threads, _ = after(
        "import pandas, threading\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()"
    )
    assert "pandas" in optional(modules)
    assert threads == 2


@pytest.mark.parametrize(
    ("module", "source", "problem"),
    [
        ("lssvm.kernels.rbf", "from lssvm.solvers.cg import CG", "kernels must not import solvers"),
        ("lssvm.kernels.rbf", "def f():\n    import lssvm.io", "kernels must not import io"),
        ("lssvm.datasets", "from lssvm.kernels import RBF", "datasets must not import kernels"),
        ("lssvm.kernels.rbf", "from lssvm import solvers", "kernels must not import solvers"),
        ("lssvm.kernels.rbf", "import lssvm", "imports the whole package"),
        ("lssvm.kernels.rbf", "from lssvm import LSSVC", "above all folders"),
        ("lssvm.kernels.rbf", "from . import linear", "relative import"),
        ("lssvm.data.dask", "import dask.array as da", "optional library at module level"),
        (
            "lssvm.data.dask",
            "try:\n    import dask\nexcept ImportError: pass",
            "optional library",
        ),
        ("lssvm.plots", "class A:\n    import matplotlib", "optional library at module level"),
        ("lssvm.codes.code", "from sklearn.utils import check_array", "for tasks and below"),
        ("lssvm.estimators.svc", "from sklearn.utils._tags import Tags", "private name"),
        ("lssvm.estimators.svc", "from sklearn.base import _fit_context", "private name"),
        ("lssvm.estimators.svc", "import sklearn\nsklearn.utils._x.f()", "private name"),
        ("lssvm.solvers.cg", "import jax", "unknown library"),
        ("lssvm.solvers.cg", "from lssvm.kernels.base import _name", "private name of another"),
        ("lssvm", "import torch", "optional library at module level"),
    ],
)
def test_a_bad_import_is_found(module, source, problem):
    (found,) = import_violations(source, module)
    assert problem in found
    assert found.startswith(f"{module}:")


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("lssvm", "from lssvm.estimators import LSSVC"),
        ("lssvm.estimators.svc", "from lssvm.kernels import RBF\nfrom sklearn.base import clone"),
        ("lssvm.kernels.rbf", "from lssvm.kernels.base import Kernel\nfrom lssvm._core import x"),
        ("lssvm.plots.grid", "def f():\n    import matplotlib.pyplot as plt"),
        ("lssvm.plots.grid", "if TYPE_CHECKING:\n    from matplotlib.axes import Axes"),
        ("lssvm.prototypes.select", "def f():\n    from sklearn.cluster import KMeans"),
        ("lssvm.estimators.svc", "import sklearn\nprint(sklearn.__version__)"),
    ],
)
def test_a_good_import_is_not(module, source):
    assert import_violations(source, module) == []


def test_a_folder_without_a_place_is_found():
    modules = ["lssvm", "lssvm.misc", "lssvm.misc.a", "lssvm.kernels"]
    assert unknown_folders(modules, {"misc", "kernels"}) == ["misc"]


def test_a_stale_exception_is_found():
    module, _ = next(iter(EXCEPTIONS))
    assert len(stale_exceptions({module: "import numpy"})) == 1


def test_an_oracle_that_leans_on_the_package_is_found():
    source = "def f():\n    from lssvm.kernels import RBF"
    assert package_imports(source, "lssvm") == ["line 2 imports lssvm.kernels.RBF"]


def test_both_branches_of_a_type_checking_block_are_read():
    source = "if TYPE_CHECKING:\n    import torch\nelse:\n    import dask"
    assert [(i.target, i.deferred) for i in imports(ast.parse(source))] == [
        ("torch", True),
        ("dask", False),
    ]


def test_the_layers_are_distinct():
    assert len(set(LAYERS)) == len(LAYERS)
