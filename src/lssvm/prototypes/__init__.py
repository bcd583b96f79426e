"""Which rows become prototypes: entropy, chance, clusters, pivots, or a choice of one's own."""

from lssvm.prototypes.bandwidth import Bandwidth, plug_in_bandwidth, rule_of_thumb_bandwidth
from lssvm.prototypes.renyi import RenyiEntropy, renyi_entropy
from lssvm.prototypes.select import RULES, KMeans, RPCholesky, select_prototypes
from lssvm.prototypes.selection import Rule, Selection, Task, Uniform

__all__ = [
    "RULES",
    "Bandwidth",
    "KMeans",
    "RPCholesky",
    "RenyiEntropy",
    "Rule",
    "Selection",
    "Task",
    "Uniform",
    "plug_in_bandwidth",
    "renyi_entropy",
    "rule_of_thumb_bandwidth",
    "select_prototypes",
]
