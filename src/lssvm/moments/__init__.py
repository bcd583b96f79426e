"""Second moments of kernel values and targets: what the fixed-size model needs of the data."""

from lssvm.moments.accumulate import accumulate
from lssvm.moments.moments import Moments, total
from lssvm.moments.streamed import Piece, accumulate_stream

__all__ = ["Moments", "Piece", "accumulate", "accumulate_stream", "total"]
