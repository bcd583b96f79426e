"""Second moments of kernel values and targets: what the fixed-size model needs of the data."""

from lssvm.moments.moments import (
    Moments,
    NystromMap,
    Piece,
    accumulate,
    accumulate_stream,
    nystrom_map,
    total,
)

__all__ = [
    "Moments",
    "NystromMap",
    "Piece",
    "accumulate",
    "accumulate_stream",
    "nystrom_map",
    "total",
]
