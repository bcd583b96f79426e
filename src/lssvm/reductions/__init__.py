"""Fewer support vectors after training."""

from lssvm.reductions.l0 import L0, NormalEquations, Reduced, reduce_dual_l0, reduce_l0
from lssvm.reductions.pruning import Prune, Pruned, PruneStep, prune

__all__ = [
    "L0",
    "NormalEquations",
    "Prune",
    "PruneStep",
    "Pruned",
    "Reduced",
    "prune",
    "reduce_dual_l0",
    "reduce_l0",
]
