"""Fewer support vectors after training."""

from lssvm.reductions.fixed_size import (
    FixedSizeL0,
    PrototypeBasis,
    SparsityPath,
    cross_validate_sizes,
    reduce_as_printed,
)
from lssvm.reductions.l0 import (
    L0,
    L0System,
    Reduced,
    l0_order,
    reduce_dual_l0,
    reduce_l0,
    reduce_printed,
    reduce_systems,
    target_scale,
)
from lssvm.reductions.pruning import Prune, Pruned, PruneStep, WrongSides, prune

__all__ = [
    "L0",
    "FixedSizeL0",
    "L0System",
    "PrototypeBasis",
    "Prune",
    "PruneStep",
    "Pruned",
    "Reduced",
    "SparsityPath",
    "WrongSides",
    "cross_validate_sizes",
    "l0_order",
    "prune",
    "reduce_as_printed",
    "reduce_dual_l0",
    "reduce_l0",
    "reduce_printed",
    "reduce_systems",
    "target_scale",
]
