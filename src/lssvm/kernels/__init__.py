"""Kernels K(x, z) between blocks of rows and prototypes."""

from lssvm.kernels.base import Kernel, fill_gram
from lssvm.kernels.dot import Linear, Polynomial
from lssvm.kernels.expansion import evaluate_expansion
from lssvm.kernels.factory import KERNEL_NAMES, has_gamma, make_kernel, resolve_gamma
from lssvm.kernels.given import FunctionKernel, Precomputed
from lssvm.kernels.nonstationary import NonStationary
from lssvm.kernels.radial import RBF, Laplacian, Matern

__all__ = [
    "KERNEL_NAMES",
    "RBF",
    "FunctionKernel",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "NonStationary",
    "Polynomial",
    "Precomputed",
    "evaluate_expansion",
    "fill_gram",
    "has_gamma",
    "make_kernel",
    "resolve_gamma",
]
