"""Runs the command line in this process and makes small tables to run it on."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer.main

from lssvm.cli import main

# A process builds its parser once, from the annotations of all commands; so do these tests.
typer.main.get_command = functools.cache(typer.main.get_command)


@dataclass(frozen=True)
class Answer:
    """What a command has said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def lssvm(*words: Any, stdin: bytes = b"") -> Answer:
    """Run a command."""
    out, err, before = io.StringIO(), io.StringIO(), sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([str(word) for word in words])
    finally:
        sys.stdin = before
    return Answer(code, out.getvalue(), err.getvalue())


def good(*words: Any, stdin: bytes = b"") -> Answer:
    """Run a command that has to succeed."""
    answer = lssvm(*words, stdin=stdin)
    assert answer.code == 0, answer.err
    return answer


def mixed_rows(n: int = 160, seed: int = 0) -> list[dict[str, Any]]:
    """Return rows with numbers, categories, missing values and a class that follows from them."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        age, job, pay = rng.uniform(20, 60), rng.choice(["cook", "smith", "clerk"]), rng.normal()
        rich = age / 20 + 2 * (job == "smith") + pay > 3
        rows.append(
            {
                "id": i,
                "age": None if rng.uniform() < 0.1 else round(float(age), 2),
                "job": None if rng.uniform() < 0.1 else str(job),
                "pay": round(float(pay), 3),
                "kids": int(rng.integers(4)),
                "income": "high" if rich else "low",
                "value": round(float(age / 10 + pay + (job == "cook")), 3),
            }
        )
    return rows


def as_csv(rows: list[dict[str, Any]], delimiter: str = ",", missing: str = "") -> str:
    """Return rows as CSV text."""
    lines = [list(rows[0])]
    lines += [[missing if v is None else str(v) for v in row.values()] for row in rows]
    return "\n".join(delimiter.join(line) for line in lines) + "\n"


def write_csv(path: Path, rows: list[dict[str, Any]], **options: str) -> Path:
    path.write_text(as_csv(rows, **options), encoding="utf-8")
    return path


QUICK = ("--prototypes", "25", "--cv", "4")
