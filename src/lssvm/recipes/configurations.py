"""What the model for tables chooses among: inputs, kernels, metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lssvm.kernels import IDENTITY, RBF, Exponential, Kernel, Laplacian, Metric, mean_outer_product
from lssvm.kernels.distances import Distance
from lssvm.kernels.metric import Shape
from lssvm.parts import Leaf, PartsModel

FloatArray = NDArray[np.float64]
Inputs: TypeAlias = Literal["standardised", "quantiles"]
KernelName: TypeAlias = Literal["gaussian", "exponential", "laplacian"]

INPUTS: tuple[Inputs, ...] = ("standardised", "quantiles")
"""Numbers as they are, standardised; or their normal scores."""

KERNELS: tuple[KernelName, ...] = ("gaussian", "exponential", "laplacian")
"""All are exp(-gamma distance), each with a distance of its own."""

DISTANCE: dict[KernelName, Distance] = {
    "gaussian": "sqeuclidean",
    "exponential": "euclidean",
    "laplacian": "cityblock",
}
SHAPE: dict[KernelName, Shape] = {
    "gaussian": "full",
    "exponential": "full",
    "laplacian": "diagonal",
}
MAKE: dict[KernelName, type[RBF] | type[Exponential] | type[Laplacian]] = {
    "gaussian": RBF,
    "exponential": Exponential,
    "laplacian": Laplacian,
}


@dataclass(frozen=True)
class Configuration:
    """Inputs and a kernel.

    Attributes
    ----------
    inputs : {"standardised", "quantiles"}
    kernel : {"gaussian", "exponential", "laplacian"}

    Examples
    --------
    >>> from lssvm.recipes import Configuration
    >>> str(Configuration("quantiles", "laplacian"))
    'laplacian on quantiles'
    """

    inputs: Inputs
    kernel: KernelName

    def __str__(self) -> str:
        return f"{self.kernel} on {self.inputs}"

    @property
    def distance(self) -> Distance:
        """What the kernel is an exponential of."""
        return DISTANCE[self.kernel]

    @property
    def shape(self) -> Shape:
        """Whether its metric is full or diagonal."""
        return SHAPE[self.kernel]

    def make_kernel(self, gamma: float) -> Kernel:
        """Return the kernel of a width."""
        return MAKE[self.kernel](gamma)

    def learn_metric(
        self, leaf: Leaf, metric: Metric, rows: NDArray[np.intp] | None, threads: int
    ) -> Metric:
        """Return the metric of a fitted model's gradients at some of its rows (None: all)."""
        Z = leaf.rows.X
        at = slice(None) if rows is None else rows
        M = mean_outer_product(
            self.make_kernel(leaf.setting.gamma),
            Z[at],
            Z,
            leaf.fit.coef,
            metric=metric,
            shape=self.shape,
            weight=leaf.rows.weight[at],
            threads=threads,
        )
        return Metric.of(M)


@dataclass(frozen=True, eq=False)
class Member:
    """A fitted configuration of the stack.

    Attributes
    ----------
    configuration : Configuration
    metric : Metric
    rounds : int
        Rounds in which the metric was learned.
    model : PartsModel
    weight : float
        In the stack.

    Examples
    --------
    >>> from lssvm.recipes import Member
    >>> list(Member.__dataclass_fields__)
    ['configuration', 'model', 'metric', 'rounds', 'weight']
    """

    configuration: Configuration
    model: PartsModel
    metric: Metric = IDENTITY
    rounds: int = 0
    weight: float = 1.0
