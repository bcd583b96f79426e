"""Every command that README and documentation print runs as printed, page by page."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from tests.cli.running import lssvm
from tests.docs.console import blocks, commands, pages
from tests.meta.tree import SOURCE
from tests.report.rough import make_rough

PAGES = pages()


SHELL = set("|<>&;$`*")  # a line with one of these is run by a shell
INTO_FILE = re.compile(r"(?P<command>lssvm [^|<>&;$`*]+) > (?P<file>[\w.]+)")


MADE: dict[tuple[str, bytes], dict[str, bytes]] = {}  # files that slow lines leave in a folder
SLOW = ("lssvm train ",)  # the same on several pages


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def digest(files):
    found = hashlib.sha256()
    for name, data in files.items():
        found.update(name.encode() + hashlib.sha256(data).digest())
    return found.digest()


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs a line in a folder: its exit code and its errors.

    Lines of `lssvm` alone, and what they print into a file, run in this process, which saves
    imports; a shell runs the others. What a line has made of the same files on another page is
    taken as it is.
    """
    make_rough(monkeypatch)
    programs = tmp_path / "bin"
    programs.mkdir()
    script = programs / "lssvm"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m lssvm "$@"\n')
    script.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(SOURCE),
        "OMP_NUM_THREADS": "1",
    }

    def run(line, folder):
        monkeypatch.chdir(folder)
        if line.startswith("lssvm ") and not SHELL & set(line):
            key = line, digest(contents(folder))
            for name, data in MADE.get(key, {}).items():
                (folder / name).write_bytes(data)
            if key in MADE:
                return 0, ""
            answer = lssvm(*shlex.split(line)[1:])
            if answer.code == 0 and line.startswith(SLOW):
                MADE[key] = contents(folder)
            return answer.code, answer.err
        if printed := INTO_FILE.fullmatch(line):
            answer = lssvm(*shlex.split(printed["command"])[1:])
            (folder / printed["file"]).write_text(answer.out, encoding="utf-8")
            return answer.code, answer.err
        command = ["bash", "-c", f"set -o pipefail; {line}"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    return run


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="the blocks are lines of a shell")
def test_the_commands_of_all_pages_run_as_printed(run, tmp_path):
    """In one test: what a line takes long for on one page is there for the next."""
    for page in PAGES:
        folder = tmp_path / page.name.replace(os.sep, "-")
        folder.mkdir()
        for line in page.commands:
            code, errors = run(line, folder)
            assert code == 0, f"{page.name}: {line}\n{errors}"


def test_the_pages_are_found():
    names = [page.name for page in PAGES]
    assert "README.md" in names and os.path.join("docs", "command_line.rst") in names
    everything = " ".join(line for page in PAGES for line in page.commands)
    for word in ("train", "predict", "evaluate", "tune", "reduce", "info", "export", "compare"):
        assert f"lssvm {word} " in everything


def test_blocks_and_commands_are_read():
    page = "text\n\n.. code-block:: console\n\n   $ a -b \\\n     c\n   output\n   $ d\n\nmore\n"
    (block,) = blocks("x.rst", page)
    assert commands(block) == ["a -b    c", "d"]
    assert blocks("x.md", "```console\n$ a\n```\n```python\n$ b\n```\n") == ["$ a\n"]
