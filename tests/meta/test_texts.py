"""Citations exist, modules stay small, no file names a machine, texts are plain English."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module

import pytest
from tests.meta.import_rules import LAYERS
from tests.meta.text_rules import (
    LINE_LIMIT,
    STUMBLES,
    bibliography_keys,
    cited_keys,
    extras,
    length_violations,
    machine_paths,
    raised_strings,
    shown_strings,
    stumbles,
    unknown_citations,
)
from tests.meta.tree import BIBLIOGRAPHY, ROOT, SOURCE, package_sources, tracked_texts

SOURCES = package_sources()
MOST_STUMBLES = 2  # in README, pages, examples, command line and report; only ever lowered
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def shown_texts():
    """Return what readers see: README, pages, examples, help, strings of programs and displays."""
    paths = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
    paths += sorted((ROOT / "docs").glob("*.rst")) + sorted((ROOT / "examples").glob("*.py"))
    texts = {path.name: path.read_text(encoding="utf-8") for path in paths}
    typer = pytest.importorskip("typer")
    program = typer.main.get_command(import_module("lssvm.cli.app").app)
    context = program.make_context("lssvm", [], resilient_parsing=True)
    for name, command in program.commands.items():
        texts[f"help of {name}"] = command.get_help(context)
    folders = ("lssvm.cli", "lssvm.plots", "lssvm.report")
    readers = [name for name in SOURCES if name.startswith(folders)]
    return texts | {name: shown_strings(SOURCES[name]) for name in readers}


def test_texts_have_few_phrases_that_read_as_translated():
    found = [line for name, text in shown_texts().items() for line in stumbles(name, text)]
    assert len(found) <= MOST_STUMBLES, "\n".join(found)


def test_errors_have_no_such_phrases():
    texts = {name: raised_strings(source) for name, source in SOURCES.items()}
    assert [line for name, text in texts.items() for line in stumbles(name, text)] == []
    source = (
        'def f(x):\n    "Says."\n    need(x, f"{x} is no class")\n    raise ValueError("told")\n'
    )
    assert set(raised_strings(source).split("\n")) == {" is no class", "told"}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("The model says so; it is no class.", 2),
        ("There is no class, which is no longer a problem.", 0),
        ("Numbers, text and holes, as they are, beside each other.", 3),
        ("Some thousand rows were left out", 2),
    ],
)
def test_such_phrases_are_counted(text, number):
    assert len(stumbles("made", text)) == number
    assert all("made: ..." in line for line in stumbles("made", text)) and len(STUMBLES) > 10


def test_strings_are_shown_and_docstrings_are_not():
    source = '"""Says."""\ndef f():\n    "Told."\n    x = 1\n    return f"{x} is no class"\n'
    assert shown_strings(source) == " is no class"


def test_files_that_pages_name_exist():
    """Paths on the page of the architecture are below src/lssvm, those of CONTRIBUTING the root."""
    page = (ROOT / "docs" / "architecture.rst").read_text(encoding="utf-8")
    picture = (ROOT / "docs" / "_static" / "way_of_a_row.svg").read_text(encoding="utf-8")
    named = {*re.findall(r"\b[a-z_]+/[a-z_]+\.py\b", page + picture)}
    named |= {*re.findall(r"\b([a-z_]+)/(?=[,`<\n ])", page + picture)} - {"tests"}
    assert len(named) > 20
    assert [name for name in sorted(named) if not (SOURCE / "lssvm" / name).exists()] == []
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {*re.findall(r"`((?:src|tests|benchmarks|docs|examples)/[\w/]*(?:\.\w+)?)`", guide)}
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/architecture.rst"])
def test_folders_on_pages_are_those_of_the_package_in_their_order(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    rows = re.findall(r"^(?:\| |   \* - )((?:`+\w+`+(?:, )?)+)(?: \||$)", text, re.MULTILINE)
    found = [folder for row in rows for folder in re.findall(r"\w+", row)]
    assert found == list(LAYERS)


def test_oldest_versions_on_the_page_are_those_of_the_project():
    page = (ROOT / "docs" / "stability.rst").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^   \* - ([\w-]+)\n     - ([\d.]+)$", page, flags=re.MULTILINE))
    listed = {name.lower(): version for name, version in rows.items()} | {"3": "", "2": "", "1": ""}
    needed = [re.split(">=", line) for line in PROJECT["dependencies"]]
    needed += [["python", PROJECT["requires-python"].removeprefix(">=")]]
    assert {name: listed.get(name) for name, _ in needed} == dict(needed)


def test_extras_in_messages_exist():
    named = {extra for source in SOURCES.values() for extra in extras(source)}
    assert {"plots", "files", "cli"} <= named <= {*PROJECT["optional-dependencies"]}
    assert extras("library('m', 'f needs m', \"[plots,cli]\") + x['a']") == {"plots", "cli"}


def test_every_citation_is_in_the_bibliography():
    bibliography = BIBLIOGRAPHY.read_text(encoding="utf-8")
    found = [line for n, s in SOURCES.items() for line in unknown_citations(n, s, bibliography)]
    assert found == []


def test_the_bibliography_has_no_key_twice_and_holds_the_five_papers():
    keys = bibliography_keys(BIBLIOGRAPHY.read_text(encoding="utf-8"))
    assert len(keys) == len(set(keys))
    assert {"Suykens2002", "Jiao2007", "DeBrabanter2010", "Ding2011", "Mall2014"} <= set(keys)


def test_every_module_stays_below_the_line_limit():
    assert [v for name, text in SOURCES.items() for v in length_violations(name, text)] == []


def test_no_file_names_a_machine_path():
    texts = tracked_texts()
    assert "tests/meta/test_texts.py" in texts
    assert [line for name, text in texts.items() for line in machine_paths(name, text)] == []


def test_a_citation_that_is_not_in_the_bibliography_is_found():
    source = "x = 1  # [Nobody1999, eq. (3)] and [Somebody2001]"
    assert cited_keys(source) == {"Nobody1999", "Somebody2001"}
    assert unknown_citations("made", source, "@book{Somebody2001,\n}") == [
        "made cites [Nobody1999], which is not in the bibliography"
    ]


@pytest.mark.parametrize("source", ["a[X2]", "[0, 2002]", "rows[Index2d]", "[see 1999]"])
def test_what_is_no_citation_is_not_taken_for_one(source):
    assert cited_keys(source) == set()


def test_a_long_module_is_found():
    assert length_violations("made", "x = 1\n" * LINE_LIMIT) == []
    assert len(length_violations("made", "x = 1\n" * (LINE_LIMIT + 1))) == 1


@pytest.mark.parametrize(
    "path",
    ["/" + "home/ada/data", "/" + "work/main/src", "/" + "root/.cache", "C:\\" + "Users\\ada"],
)
@pytest.mark.parametrize("line", ["open('{}')", "see {} for more", "DATA={}"])
def test_a_machine_path_is_found(path, line):
    (found,) = machine_paths("made", line.format(path))
    assert found == f"made names {path}" or path.startswith(found.removeprefix("made names "))


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org/home/page",
        "a/work/b",
        "~/work/x",
        "data/home/x",
        "and/root/of",
        "/usr/bin",
    ],
)
def test_what_is_no_machine_path_is_not_taken_for_one(text):
    assert machine_paths("made", text) == []
