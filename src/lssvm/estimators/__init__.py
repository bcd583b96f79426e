"""The public estimators."""

from lssvm.estimators.dual_classifier import LSSVC
from lssvm.estimators.dual_regressor import LSSVR

__all__ = ["LSSVC", "LSSVR"]
