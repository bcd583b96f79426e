"""Multi-class output codes: a table of binary problems, their targets, and the way back."""

from __future__ import annotations

from lssvm.codes.code import (
    Code,
    ProblemGroup,
    decode,
    error_correcting,
    groups,
    make_code,
    minimum_output,
    one_vs_all,
    one_vs_one,
    targets,
)

__all__ = [
    "Code",
    "ProblemGroup",
    "decode",
    "error_correcting",
    "groups",
    "make_code",
    "minimum_output",
    "one_vs_all",
    "one_vs_one",
    "targets",
]
