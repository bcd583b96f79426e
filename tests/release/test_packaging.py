"""What is written twice for packagers agrees with pyproject.toml."""

import re
import tomllib
from importlib import import_module

import pytest
from tests.meta.tree import ROOT

import lssvm
from lssvm import datasets

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
ABOUT = PROJECT["project"]


def requirements(text):
    return set(re.findall(r"^ +- ([\w-]+ >=[\d.]+)$", text, flags=re.MULTILINE))


def of_conda(name):
    """Return the name that conda has for a package."""
    return {"dask[array,dataframe,distributed]": "dask", "matplotlib": "matplotlib-base",
            "torch": "pytorch"}.get(name, name)  # fmt: skip


def test_the_conda_recipe_needs_what_the_project_needs():
    text = (ROOT / "recipe" / "meta.yaml").read_text("utf-8")
    run, optional = text.partition("  run:\n")[2].partition("  run_constrained:\n")[::2]
    extras = ABOUT["optional-dependencies"]
    needed = {*ABOUT["dependencies"], *extras["cli"], f"python{ABOUT['requires-python']}"}
    split = {f"{of_conda(n)} >={v}" for n, v in (x.split(">=") for x in needed)}
    assert requirements(run) == split
    others = {x for name in extras if name != "all" for x in extras[name]} - needed
    assert requirements(optional.partition("\ntest:")[0]) == {
        f"{of_conda(n)} >={v}" for n, v in (x.split(">=") for x in others)
    }
    assert set(PROJECT["build-system"]["requires"]) == {"hatchling>=1.26"}
    assert "hatchling >=1.26" in requirements(text.partition("  run:\n")[0])
    pattern = re.search(r"regex_pattern='(.*)'", text)[1]
    version = (ROOT / "src/lssvm/_core/version.py").read_text("utf-8")
    assert re.search(pattern, version)["version"] == lssvm.__version__
    assert f"summary: {ABOUT['description']}" in text
    assert all(f"    - {name}" in text for name in ABOUT["license-files"])


def test_the_container_copies_what_its_build_reads():
    text = (ROOT / "Containerfile").read_text("utf-8")
    copied = re.search(r"^COPY (.*) \./$", text, flags=re.MULTILINE)[1].split()
    read = {"pyproject.toml", ABOUT["readme"], "LICENSE"}
    assert set(copied) == read and "COPY src src" in text
    for extra in re.findall(r"\.\[([\w,]+)\]", text):
        assert set(extra.split(",")) <= set(ABOUT["optional-dependencies"])


def test_the_version_is_that_of_the_changelog_and_of_the_citation():
    released = re.search(r"^## (.*) \((.*)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    cited = (ROOT / "CITATION.cff").read_text("utf-8")
    assert released[1] == lssvm.__version__
    assert f"\nversion: {released[1]}\ndate-released: {released[2]}\n" in cited


def test_every_extra_is_tried_by_the_release_check():
    from tests.release.extras import EXTRAS

    assert {e.__name__ for e in EXTRAS} == set(ABOUT["optional-dependencies"]) - {"all"}
    (every,) = ABOUT["optional-dependencies"]["all"]
    assert set(re.search(r"\[(.*)\]", every)[1].split(",")) == {e.__name__ for e in EXTRAS}


@pytest.mark.parametrize("name", ["onnx", "plots", "cli", "files", "fast", "dask"])
def test_an_extra_works(name, capsys):
    from tests.release import extras

    extras.main([name])
    assert capsys.readouterr().out == f"the extra {name} works\n"


def test_licence_files_and_the_marker_of_types_are_there():
    assert all((ROOT / name).is_file() for name in ABOUT["license-files"])
    assert (ROOT / "src/lssvm/py.typed").exists()
    newest = max(int(c.rpartition(".")[2]) for c in ABOUT["classifiers"] if ":: 3." in c)
    oldest = min(int(c.rpartition(".")[2]) for c in ABOUT["classifiers"] if ":: 3." in c)
    assert ABOUT["requires-python"] == f">=3.{oldest}" and newest >= 13


def test_importing_the_package_imports_no_library():
    import subprocess
    import sys

    code = (
        "import sys, lssvm; print([m for m in ('numpy', 'scipy', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          cwd=ROOT / "src")  # fmt: skip
    assert done.stdout.strip() == "[]"


def test_what_the_changelog_names_in_place_of_older_parameters_can_be_used():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8").partition("### Added")[0]
    rows = re.findall(r"^  \| `.*?` \| `(\w+)=(.*?)`(.*) \|$", text, flags=re.MULTILINE)
    assert {name for name, _, _ in rows} == {"kernel", "solver", "search", "multiclass"}
    balance = datasets.load_balance()
    X, y = balance.data[::5], balance.target[::5]
    for name, code, words in rows:
        package = import_module(re.search(r"`(lssvm\.\w+)`", words)[1])
        given = {name: eval(code, dict(vars(package)))}
        model = lssvm.LSSVC(**given)
        if name in {"search", "multiclass"}:  # thresholds of 0.2 belonged to the fixed-size models
            model = lssvm.FixedSizeLSSVC(20, random_state=0, **given)
        assert model.fit(X, y).predict(X).shape == y.shape
