"""Citations exist, modules stay small, no file knows somebody's machine."""

from __future__ import annotations

import pytest
from tests.meta.text_rules import (
    LINE_LIMIT,
    bibliography_keys,
    cited_keys,
    length_violations,
    machine_paths,
    unknown_citations,
)
from tests.meta.tree import BIBLIOGRAPHY, package_sources, tracked_texts

SOURCES = package_sources()


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
