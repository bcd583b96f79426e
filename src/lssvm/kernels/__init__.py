"""Kernels K(x, z) between blocks of rows and prototypes."""

from lssvm.kernels.base import Kernel, evaluate_expansion, fill_gram
from lssvm.kernels.dot import Linear, NonStationary, Polynomial
from lssvm.kernels.factory import (
    KERNEL_NAMES,
    FunctionKernel,
    Precomputed,
    has_gamma,
    make_kernel,
    resolve_gamma,
)
from lssvm.kernels.metric import IDENTITY, Metric, mean_outer_product
from lssvm.kernels.radial import (
    DISTANCES,
    RBF,
    Exponential,
    Laplacian,
    Matern,
    distances,
    fill_distances,
)
from lssvm.kernels.trend import TRENDS, Trend

__all__ = [
    "DISTANCES",
    "IDENTITY",
    "KERNEL_NAMES",
    "RBF",
    "TRENDS",
    "Exponential",
    "FunctionKernel",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Metric",
    "NonStationary",
    "Polynomial",
    "Precomputed",
    "Trend",
    "distances",
    "evaluate_expansion",
    "fill_distances",
    "fill_gram",
    "has_gamma",
    "make_kernel",
    "mean_outer_product",
    "resolve_gamma",
]
