"""Where rows come from: blocks of features, targets and weights."""

from lssvm.blocks.source import ArraySource, Block, RowSource

__all__ = ["ArraySource", "Block", "RowSource"]
