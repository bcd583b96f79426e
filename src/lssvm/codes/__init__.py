"""Multi-class output codes: a table of binary problems, their targets, and the way back."""

from lssvm.codes.code import (
    Code,
    decode,
    error_correcting,
    make_code,
    minimum_output,
    one_vs_all,
    one_vs_one,
)

__all__ = [
    "Code",
    "decode",
    "error_correcting",
    "make_code",
    "minimum_output",
    "one_vs_all",
    "one_vs_one",
]
