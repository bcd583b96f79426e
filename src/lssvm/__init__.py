"""Least squares support vector machines of any size, with scikit-learn's interface."""

from lssvm.blocks import scan
from lssvm.estimators import (
    LSSVC,
    LSSVR,
    NARX,
    FixedSizeLSSVC,
    FixedSizeLSSVR,
    GreedyLSSVC,
    GreedyLSSVR,
)

__version__ = "0.1.0.dev0"

__all__ = [
    "LSSVC",
    "LSSVR",
    "NARX",
    "FixedSizeLSSVC",
    "FixedSizeLSSVR",
    "GreedyLSSVC",
    "GreedyLSSVR",
    "__version__",
    "scan",
]
