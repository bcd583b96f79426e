"""Messy files give the model of the clean file, or an error with file, line and remedy."""

import re

import numpy as np
import pytest
from tests.cli.running import good, lssvm
from tests.data import messy

FIXED = ("--prototypes", "20", "--C", "10", "--gamma", "0.2", "--test", "0")
GOOD = [name for name, make in messy.GENERATORS.items() if make().error is None]
BAD = [name for name in messy.GENERATORS if name not in GOOD]


def column(path, name="prediction"):
    head, *body = path.read_text(encoding="utf-8").splitlines()
    place = head.split(",").index(name)
    return [line.split(",")[place] for line in body]


def train(folder, file, target, words=()):
    """Train on a file; return what was said and its predictions."""
    other = {"value": "label", "label": "value"}[target]
    model = folder / "m.lssvm"
    said = good("train", file, "-t", target, "--drop", other, *FIXED, *words, "-o", model)
    reading = [
        word
        for at in range(0, len(words), 2)
        if words[at] != "--drop"
        for word in words[at : at + 2]
    ]
    good("predict", model, file, *reading, "-o", folder / "p.csv", "--quiet")
    return said, column(folder / "p.csv")


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clean")
    (folder / "clean.csv").write_text(messy.text(), encoding="utf-8")
    return {t: train(folder, folder / "clean.csv", t)[1] for t in ("value", "label")}


def written(folder, name):
    if "excel" in name or "workbook" in name:
        pytest.importorskip("python_calamine")
    case = messy.GENERATORS[name]()
    (folder / case.name).write_bytes(case.content)
    return case


def test_there_are_many():
    assert len(messy.GENERATORS) >= 60 and len(GOOD) >= 40


@pytest.mark.parametrize("name", GOOD)
def test_the_model_is_that_of_the_clean_file(tmp_path, monkeypatch, clean, name):
    case = written(tmp_path, name)
    monkeypatch.chdir(tmp_path)
    said, found = train(tmp_path, case.name, "value", case.words)
    skipped = 2 if name == "rows_without_a_target" else 0
    expected = np.array(clean["value"], dtype=float)
    np.testing.assert_allclose(np.array(found[skipped:], dtype=float), expected, rtol=1e-6)
    assert len(found) == len(expected) + skipped
    lines = said.err.splitlines()
    assert case.told is None or any(case.told in line for line in lines)
    assert sum(" is read as " in line for line in lines) <= 1


@pytest.mark.parametrize(
    "name", ["spaces_behind_some_labels", "excel", "json_lines", "utf_16", "spaces_around_fields"]
)
def test_the_classes_are_those_of_the_clean_file(tmp_path, monkeypatch, clean, name):
    case = written(tmp_path, name)
    monkeypatch.chdir(tmp_path)
    assert train(tmp_path, case.name, "label", case.words)[1] == clean["label"]


@pytest.mark.parametrize("name", BAD)
def test_the_error_says_where_and_what_to_do(tmp_path, monkeypatch, name):
    case = written(tmp_path, name)
    monkeypatch.chdir(tmp_path)
    answer = lssvm("train", case.name, "-t", "value", *FIXED, *case.words, "-o", "m.lssvm")
    assert answer.code == 2 and answer.out == ""
    last = answer.err.splitlines()[-1]
    assert case.error is not None and re.search(case.error, last), last
    assert last.startswith("lssvm: error: ") and "CsvOptions" not in last
    assert not (tmp_path / "m.lssvm").exists()


def test_codes_keep_their_zeros(tmp_path):
    (tmp_path / "c.csv").write_text(messy.text(), encoding="utf-8")
    train(tmp_path, tmp_path / "c.csv", "value")
    from lssvm import load

    ready = load(tmp_path / "m.lssvm").preparation_
    (code,) = (column for column in ready.columns if column.name == "code")
    assert code.encoding.levels == ("007", "012", "120")
    rows = "".join(f"{i},{i % 7},{('007', '12')[i % 2]}\n" for i in range(120))
    (tmp_path / "d.csv").write_text("a,b,y\n" + rows)
    words = ("train", tmp_path / "d.csv", "-t", "y", *FIXED, "-o", tmp_path / "y.lssvm", "--json")
    assert good(*words).json["task"] == "classification"
    assert load(tmp_path / "y.lssvm").classes_.tolist() == ["007", "12"]
