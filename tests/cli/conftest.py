"""A table and two models that the tests of the command line share."""

import shutil

import pytest
from tests.cli.running import QUICK, good, mixed_rows, write_csv
from tests.report.rough import make_rough


@pytest.fixture(autouse=True)
def few_repetitions(monkeypatch):
    """Let reports be rough: what they say has its own tests."""
    make_rough(monkeypatch)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with a table, a classifier and a regressor."""
    folder = tmp_path_factory.mktemp("cli")
    data = write_csv(folder / "data.csv", mixed_rows())
    for target, name, drop in (("income", "classes", "value"), ("value", "numbers", "income")):
        options = ("--target", target, "--drop", drop, "--drop", "id", *QUICK)
        good("train", data, *options, "-o", folder / f"{name}.lssvm", "--quiet")
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A copy of that folder, which is the current one."""
    for file in made.iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path
