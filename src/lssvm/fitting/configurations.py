"""What the model for tables chooses among: inputs, kernels, metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lssvm._core.arrays import FloatArray
from lssvm.kernels import Kernel, Metric
from lssvm.kernels.metric import IDENTITY, Shape
from lssvm.kernels.radial import KERNEL_OF, Distance
from lssvm.local import PartsEngine, PartsModel
from lssvm.solvers.moments import Moments

Inputs: TypeAlias = Literal["standardised", "quantiles"]
KernelName: TypeAlias = Literal["rbf", "exponential", "laplacian"]

INPUTS: tuple[Inputs, ...] = ("standardised", "quantiles")
"""Numbers as they are, standardised; or their normal scores."""

KERNELS: tuple[KernelName, ...] = ("rbf", "exponential", "laplacian")
"""All are exp(-gamma distance), each with a distance of its own."""

DISTANCE: dict[KernelName, Distance] = {
    "rbf": "sqeuclidean",
    "exponential": "euclidean",
    "laplacian": "cityblock",
}
SHAPE: dict[KernelName, Shape] = {"rbf": "full", "exponential": "full", "laplacian": "diagonal"}


@dataclass(frozen=True)
class Configuration:
    """Inputs and a kernel.

    Attributes
    ----------
    inputs : {"standardised", "quantiles"}
        Numbers of mean 0 and variance 1, or their ranks as normal quantiles.
    kernel : {"rbf", "exponential", "laplacian"}
        exp(-gamma distance) of squared Euclidean, Euclidean or city-block distances.

    Examples
    --------
    >>> from lssvm.fitting import Configuration
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
        """Return the kernel of a width.

        Parameters
        ----------
        gamma : float
            Parameter of the kernel.
        """
        return KERNEL_OF[self.distance](gamma)

    def learn_metric(
        self,
        model: PartsModel,
        metric: Metric,
        engine: PartsEngine,
        *,
        at_most: int,
        shape: Shape | None = None,
    ) -> Metric:
        """Return the metric of the gradients of a model at its own rows.

        Parameters
        ----------
        model : PartsModel
            Of this configuration, fitted to inputs mapped by ``metric``.
        metric : Metric
            That the inputs of the model were mapped by.
        engine : PartsEngine
            Where it is computed.
        at_most : int
            Rows at which gradients are taken, spread over all parts.
        shape : {"diagonal", "full"}, optional
            None: that of the kernel.

        Returns
        -------
        Metric
            Of the average over parts: local models show the directions that matter as well as one
            large model does, at a fraction of its cost.
        """
        leaves = model.cuts[0].leaves
        total = sum(len(leaf.rows.X) for leaf in leaves)
        step = max(1, -(-total // at_most))
        shape = self.shape if shape is None else shape
        return Metric.of(engine.outer_product(leaves, self.distance, metric, shape, step))


@dataclass(frozen=True, eq=False)
class Member:
    """A fitted configuration of the stack.

    Attributes
    ----------
    configuration : Configuration
        Inputs and kernel.
    metric : Metric
        The map of its inputs.
    rounds : int
        Rounds in which the metric was learned.
    model : PartsModel
        Its exact models in parts.
    weight : float
        In the stack.
    beside : bool
        Whether it is made of prototypes of the rows that another member of the same configuration
        and metric keeps in parts.
    moments : Moments or None
        Of all rows, once prototypes have learned or forgotten some.

    Examples
    --------
    >>> from lssvm.fitting import Member
    >>> list(Member.__dataclass_fields__)
    ['configuration', 'model', 'metric', 'rounds', 'weight', 'beside', 'moments']
    """

    configuration: Configuration
    model: PartsModel
    metric: Metric = IDENTITY
    rounds: int = 0
    weight: float = 1.0
    beside: bool = False
    moments: Moments | None = None

    def is_of(self, other: Member) -> bool:
        """Say whether both have the same configuration and metric, as prototypes and their parts.

        Parameters
        ----------
        other : Member
            Of the same stack.
        """
        return (self.configuration, self.rounds) == (other.configuration, other.rounds)

    def mapped(self, inputs: Mapping[Inputs, FloatArray]) -> FloatArray:
        """Return rows as the kernel sees them.

        Parameters
        ----------
        inputs : mapping from inputs to array of shape (n, d)
            Prepared rows.
        """
        return self.metric.apply(inputs[self.configuration.inputs])
