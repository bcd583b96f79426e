"""Fewer support vectors after training."""

from lssvm.reductions.fixed_size import FixedSizeL0, SparsityPath
from lssvm.reductions.l0 import L0
from lssvm.reductions.pruning import Prune

__all__ = ["L0", "FixedSizeL0", "Prune", "SparsityPath"]
