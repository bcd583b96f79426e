"""Model files: a fitted model as arrays and JSON, which can never run code."""

from lssvm.io.files import load, read_header, save

__all__ = ["load", "read_header", "save"]
