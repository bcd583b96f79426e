"""Where rows come from: arrays, files larger than memory, blocks of features and targets."""

from lssvm.blocks.csv_files import CsvOptions
from lssvm.blocks.prepare import Preparation
from lssvm.blocks.scanning import Scan, scan
from lssvm.blocks.source import ArraySource, Block, LookedUp, RowSource

__all__ = [
    "ArraySource",
    "Block",
    "CsvOptions",
    "LookedUp",
    "Preparation",
    "RowSource",
    "Scan",
    "scan",
]
