"""Which rows become prototypes: entropy, chance, clusters, pivots, or a choice of one's own."""

from lssvm.prototypes.bandwidth import plug_in_bandwidth
from lssvm.prototypes.renyi import RenyiEntropy, renyi_entropy
from lssvm.prototypes.select import KMeans, RPCholesky, select_prototypes
from lssvm.prototypes.selection import Candidates, Rule, Selection, Uniform

__all__ = [
    "Candidates",
    "KMeans",
    "RPCholesky",
    "RenyiEntropy",
    "Rule",
    "Selection",
    "Uniform",
    "plug_in_bandwidth",
    "renyi_entropy",
    "select_prototypes",
]
