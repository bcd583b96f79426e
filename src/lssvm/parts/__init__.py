"""Exact models of parts of the rows: a tree of cuts with a dual model in every leaf."""

from lssvm.parts.cluster import ClusterParts
from lssvm.parts.device import DeviceParts
from lssvm.parts.engine import HostParts, LeafTask, PartsEngine
from lssvm.parts.leaf import Leaf, Rows, Setting, fit_leaf
from lssvm.parts.model import Cut, PartsJob, PartsModel, fit_many, fit_parts
from lssvm.parts.store import PartStore
from lssvm.parts.tree import Tree, grow_tree

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
