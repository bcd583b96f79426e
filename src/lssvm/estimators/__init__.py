"""The public estimators."""

from lssvm.estimators.dual import LSSVC, LSSVR
from lssvm.estimators.fixed_size import FixedSizeLSSVC, FixedSizeLSSVR
from lssvm.estimators.greedy import GreedyLSSVC, GreedyLSSVR
from lssvm.estimators.narx import NARX
from lssvm.estimators.table import LSSVMClassifier, LSSVMRegressor

__all__ = [
    "LSSVC",
    "LSSVR",
    "NARX",
    "FixedSizeLSSVC",
    "FixedSizeLSSVR",
    "GreedyLSSVC",
    "GreedyLSSVR",
    "LSSVMClassifier",
    "LSSVMRegressor",
]
