"""Explicit features: the Nystrom map."""

from lssvm.features.nystrom import NystromMap, nystrom_map

__all__ = ["NystromMap", "nystrom_map"]
