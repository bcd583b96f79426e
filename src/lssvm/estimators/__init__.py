"""The public estimators."""

from lssvm.estimators.dual_classifier import LSSVC
from lssvm.estimators.dual_regressor import LSSVR
from lssvm.estimators.fixed_classifier import FixedSizeLSSVC
from lssvm.estimators.fixed_regressor import FixedSizeLSSVR

__all__ = ["LSSVC", "LSSVR", "FixedSizeLSSVC", "FixedSizeLSSVR"]
