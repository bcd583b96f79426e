"""Second moments of kernel values and targets: what the fixed-size model needs of the data."""

from lssvm.moments.accumulate import accumulate
from lssvm.moments.moments import Moments, total

__all__ = ["Moments", "accumulate", "total"]
