"""Every Python block and every interactive session of the documentation runs as printed."""

from __future__ import annotations

import pytest
from tests.docs.pages import pages, pieces, run
from tests.docs.stage import CHECKS, NEEDS, SKIPPED

PAGES = pages()


@pytest.fixture
def in_empty_folder(tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    pyplot.switch_backend("agg")
    yield tmp_path
    pyplot.close("all")


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_page_runs_as_printed(name, in_empty_folder):
    for library in NEEDS.get(name, ()):
        pytest.importorskip(library)
    names = {}  # nothing is defined before: a page can be pasted from top to bottom
    run(name, PAGES[name], names, tuple(SKIPPED.get(name, ())))
    CHECKS.get(name, lambda names, folder: None)(names, in_empty_folder)
    assert PAGES[name], f"{name} has no code: it should not be among the pages to run"


def test_what_is_said_of_pages_is_said_of_pages_that_exist():
    assert {*NEEDS, *SKIPPED, *CHECKS} <= set(PAGES)


TEXT = """\
Words.

.. code-block:: python

   x = 1
   y = 2

>>> x + y
3

   .. code-block:: python

      z = x + y
"""


def test_blocks_and_sessions_are_read_in_order():
    code = pieces(TEXT)
    assert [piece.source for piece in code] == ["x = 1\ny = 2\n\n", "x + y\n", "z = x + y\n"]
    names = {}
    run("made", code, names)
    assert names["z"] == 3


def test_a_wrong_answer_and_a_wrong_line_are_found():
    with pytest.raises(AssertionError, match=r"Expected:\s+4\s+Got:\s+3"):
        run("made", pieces(TEXT.replace("\n3\n", "\n4\n")), {})
    with pytest.raises(NameError, match="'w'") as caught:
        run("made", pieces(TEXT.replace("z = x", "z = w")), {})
    assert caught.traceback[-1].lineno + 1 == 13


def test_a_block_that_is_left_out_has_to_be_there():
    names = {}
    run("made", pieces(TEXT), names, ("z = x",))
    assert "z" not in names
    with pytest.raises(AssertionError, match="no block with"):
        run("made", pieces(TEXT), {}, ("nowhere",))
