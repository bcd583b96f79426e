"""Rules that choose prototypes: entropy, random rows, clusters, pivots, or a custom rule."""

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
