"""Fewer support vectors after training."""

from lssvm.reductions.greedy import greedy_paths
from lssvm.reductions.greedy_loo import greedy_leave_one_out
from lssvm.reductions.greedy_path import Greedy, GreedyPath
from lssvm.reductions.l0 import L0, NormalEquations, Reduced, reduce_dual_l0, reduce_l0
from lssvm.reductions.pruning import Prune, Pruned, PruneStep, prune

__all__ = [
    "L0",
    "Greedy",
    "GreedyPath",
    "NormalEquations",
    "Prune",
    "PruneStep",
    "Pruned",
    "Reduced",
    "greedy_leave_one_out",
    "greedy_paths",
    "prune",
    "reduce_dual_l0",
    "reduce_l0",
]
