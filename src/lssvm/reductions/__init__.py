"""Fewer support vectors after training."""

from lssvm.reductions.fixed_size import (
    FixedSizeL0,
    PrototypeBasis,
    cross_validate_sizes,
    reduce_as_printed,
)
from lssvm.reductions.greedy import greedy_paths
from lssvm.reductions.greedy_loo import greedy_leave_one_out
from lssvm.reductions.greedy_path import Greedy, GreedyPath
from lssvm.reductions.l0 import (
    L0,
    NormalEquations,
    Reduced,
    reduce_dual_l0,
    reduce_l0,
    reduce_systems,
)
from lssvm.reductions.l0_path import l0_order
from lssvm.reductions.l0_system import L0System
from lssvm.reductions.pruning import Prune, Pruned, PruneStep, prune
from lssvm.reductions.sparsity import SparsityPath

__all__ = [
    "L0",
    "FixedSizeL0",
    "Greedy",
    "GreedyPath",
    "L0System",
    "NormalEquations",
    "PrototypeBasis",
    "Prune",
    "PruneStep",
    "Pruned",
    "Reduced",
    "SparsityPath",
    "cross_validate_sizes",
    "greedy_leave_one_out",
    "greedy_paths",
    "l0_order",
    "prune",
    "reduce_as_printed",
    "reduce_dual_l0",
    "reduce_l0",
    "reduce_systems",
]
