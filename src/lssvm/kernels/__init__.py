"""Kernels K(x, z) between blocks of rows and prototypes."""

from lssvm.kernels.base import Kernel
from lssvm.kernels.dot import Linear, NonStationary, Polynomial
from lssvm.kernels.factory import KERNEL_NAMES, FunctionKernel, Precomputed, make_kernel
from lssvm.kernels.metric import Metric, MetricKernel
from lssvm.kernels.radial import RBF, Exponential, Laplacian, Matern
from lssvm.kernels.trend import Trend

__all__ = [
    "KERNEL_NAMES",
    "RBF",
    "Exponential",
    "FunctionKernel",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Metric",
    "MetricKernel",
    "NonStationary",
    "Polynomial",
    "Precomputed",
    "Trend",
    "make_kernel",
]
