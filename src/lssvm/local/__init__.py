"""Exact models of parts of the rows: a tree of cuts with a dual model in every leaf."""

from lssvm.local.cluster import ClusterParts
from lssvm.local.device import DeviceParts
from lssvm.local.engine import HostParts, LeafTask, PartsEngine
from lssvm.local.leaf import Leaf, Rows, Setting, fit_leaf
from lssvm.local.model import Cut, PartsJob, PartsModel, fit_many, fit_parts
from lssvm.local.store import PartStore
from lssvm.local.tree import Tree, grow_tree

__all__ = [
    "ClusterParts",
    "Cut",
    "DeviceParts",
    "HostParts",
    "Leaf",
    "LeafTask",
    "PartStore",
    "PartsEngine",
    "PartsJob",
    "PartsModel",
    "Rows",
    "Setting",
    "Tree",
    "fit_leaf",
    "fit_many",
    "fit_parts",
    "grow_tree",
]
