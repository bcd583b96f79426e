"""Second moments of kernel values and targets: what the fixed-size model needs of the data."""

from lssvm.moments.accumulate import Piece, accumulate, accumulate_stream
from lssvm.moments.moments import Moments, total
from lssvm.moments.nystrom import NystromMap, nystrom_map

__all__ = [
    "Moments",
    "NystromMap",
    "Piece",
    "accumulate",
    "accumulate_stream",
    "nystrom_map",
    "total",
]
