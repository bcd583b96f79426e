"""Partitions of the rows: trees with an exact dual model in every leaf."""

from lssvm.local.device import DeviceLeaves
from lssvm.local.engine import ClusterLeaves, LeafEngine, LeafTask
from lssvm.local.leaf import Leaf, Rows, Setting, fit_leaf
from lssvm.local.model import (
    LocalJob,
    LocalModel,
    Partition,
    Tree,
    fit_local,
    fit_local_models,
    grow_tree,
)
from lssvm.local.store import LeafStore

__all__ = [
    "ClusterLeaves",
    "DeviceLeaves",
    "Leaf",
    "LeafEngine",
    "LeafStore",
    "LeafTask",
    "LocalJob",
    "LocalModel",
    "Partition",
    "Rows",
    "Setting",
    "Tree",
    "fit_leaf",
    "fit_local",
    "fit_local_models",
    "grow_tree",
]
