"""Where rows come from: arrays, files larger than memory, blocks of features and targets."""

from lssvm.blocks.prepare import Preparation
from lssvm.blocks.scanning import Scan, scan
from lssvm.blocks.source import ArraySource, Block, RowSource

__all__ = ["ArraySource", "Block", "Preparation", "RowSource", "Scan", "scan"]
