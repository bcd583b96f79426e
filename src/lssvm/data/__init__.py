"""Data sets: arrays, files larger than memory, blocks of features and targets."""

from lssvm.data.csv_files import CsvOptions
from lssvm.data.raw import ArraySource, Block, LookedUp, RowSource
from lssvm.data.scanning import Scan, scan

__all__ = [
    "ArraySource",
    "Block",
    "CsvOptions",
    "LookedUp",
    "RowSource",
    "Scan",
    "scan",
]
