"""Multi-class output codes: tables of binary problems, their targets, and decoding."""

from lssvm.codes.code import (
    Code,
    Coding,
    decode,
    error_correcting,
    make_code,
    minimum_output,
    one_vs_all,
    one_vs_one,
)

__all__ = [
    "Code",
    "Coding",
    "decode",
    "error_correcting",
    "make_code",
    "minimum_output",
    "one_vs_all",
    "one_vs_one",
]
