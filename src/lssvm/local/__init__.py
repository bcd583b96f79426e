"""Partitions of the rows: trees with an exact dual model in every leaf."""

from lssvm.local.cluster import ClusterLeaves
from lssvm.local.device import DeviceLeaves
from lssvm.local.engine import HostLeaves, LeafEngine, LeafTask
from lssvm.local.leaf import Leaf, Rows, Setting, fit_leaf
from lssvm.local.model import LocalJob, LocalModel, Partition, fit_local, fit_local_models
from lssvm.local.store import LeafStore
from lssvm.local.tree import Tree, grow_tree

__all__ = [
    "ClusterLeaves",
    "DeviceLeaves",
    "HostLeaves",
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
