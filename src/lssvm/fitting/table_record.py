"""What a fit for tables leaves: members, their stack, and what stands around the numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.data.preparation import PreparedTable
from lssvm.fitting.record import check_form
from lssvm.kernels import Kernel, Metric
from lssvm.kernels.metric import IDENTITY, Shape, low_rank
from lssvm.kernels.radial import KERNEL_OF, Distance
from lssvm.kernels.warp import learn_warp
from lssvm.local import LeafEngine, LocalModel
from lssvm.local.engine import ONE_THREAD
from lssvm.solvers.moments import Moments
from lssvm.tasks import Classes, Numbers
from lssvm.uncertainty import Probabilities, Residuals

Scaling: TypeAlias = Literal["standardised", "quantiles"]
KernelName: TypeAlias = Literal["rbf", "exponential", "laplacian"]

SCALINGS: tuple[Scaling, ...] = ("standardised", "quantiles")
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
    """A scaling of the inputs and a kernel.

    Attributes
    ----------
    scaling : {"standardised", "quantiles"}
        Numbers of mean 0 and variance 1, or their ranks as normal quantiles.
    kernel : {"rbf", "exponential", "laplacian"}
        exp(-gamma distance) of squared Euclidean, Euclidean or city-block distances.

    Examples
    --------
    >>> from lssvm.fitting import Configuration
    >>> str(Configuration("quantiles", "laplacian"))
    'laplacian on quantiles'
    """

    scaling: Scaling
    kernel: KernelName

    def __str__(self) -> str:
        return f"{self.kernel} on {self.scaling}"

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
        model: LocalModel,
        metric: Metric,
        engine: LeafEngine,
        rows: FloatArray,
        *,
        at_most: int,
        shape: Shape | None = None,
        how: str = "metric",
        ties: bool = True,
    ) -> Metric:
        """Return the metric or warp of the slopes of a model at its own rows.

        Parameters
        ----------
        model : LocalModel
            Of this configuration, fitted to inputs mapped by ``metric``.
        metric : Metric
            That the inputs of the model were mapped by.
        engine : LeafEngine
            Where it is computed.
        rows : array of shape (n, d)
            The inputs, whose quantiles are the knots of a warp.
        at_most : int
            Rows at which slopes are taken, spread over all leaves.
        shape : {"diagonal", "full"}, optional
            None: that of the kernel.
        how : {"metric", "warp"}
        ties : bool, default=True
            Whether features of few values have one-sided slopes.

        Returns
        -------
        Metric
            Of the average over leaves: local models show the directions that matter as well as one
            large model does, at a fraction of its cost.
        """
        leaves = model.leaves
        shape = self.shape if shape is None else shape
        total = sum(len(leaf.rows.X) for leaf in leaves)
        step = max(1, -(-total // at_most))
        if how == "warp":
            warp = learn_warp(
                engine.squared_slopes(leaves, self.distance, metric, step, ties), rows
            )
            return metric if warp is None else Metric(None, warp)
        if shape == "full" and rows.shape[1] > WIDE:
            k = leaves[0].fit.coef.shape[1]
            step = max(step, -(-total * k // (2 * WIDE)))
            G = engine.gradient_rows(leaves, self.distance, metric, step, ties)
            if len(G) < rows.shape[1]:
                return replace(low_rank(G), warp=metric.warp)
        M = engine.outer_product(leaves, self.distance, metric, shape, step, ties)
        return replace(Metric.of(M), warp=metric.warp)


WIDE = 300
"""Features beyond which a full metric is made of the gradients of few rows, of their rank."""


@dataclass(frozen=True, eq=False)
class Member:
    """A fitted configuration of the stack.

    Attributes
    ----------
    configuration : Configuration
        Scaling of the inputs, and kernel.
    metric : Metric
        The map of its inputs.
    rounds : int
        Rounds in which the metric was learned.
    model : LocalModel
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
    model: LocalModel
    metric: Metric = IDENTITY
    rounds: int = 0
    weight: float = 1.0
    beside: bool = False
    moments: Moments | None = None

    def is_of(self, other: Member) -> bool:
        """Return whether both have the same configuration and map, as prototypes and their leaves.

        Parameters
        ----------
        other : Member
            Of the same stack.
        """
        return self.name == other.name

    @property
    def name(self) -> tuple[Configuration, int, bool]:
        """What tells members of one stack apart, prototypes and their leaves excepted."""
        return self.configuration, self.rounds, self.metric.warp is not None

    def mapped(self, inputs: Mapping[Scaling, FloatArray]) -> FloatArray:
        """Return rows as the kernel sees them.

        Parameters
        ----------
        inputs : mapping from scalings to array of shape (n, d)
            Prepared rows.
        """
        return self.metric.apply(inputs[self.configuration.scaling])


@dataclass(frozen=True, eq=False)
class TableContext:
    """From raw tables to the inputs of a `TableFit`, and from its outputs to answers.

    Attributes
    ----------
    prepared : dict from scalings to PreparedTable
        How raw columns become the inputs of every kind.
    texts : bool
        Whether the columns have names that are texts, as ``feature_names_in_`` takes them.
    task : Classes or Numbers
        What outputs mean.
    shift, scale : arrays of shape (k,)
        A target is scale * output + shift; 0 and 1 for classes.
    weight_scale : float
        Mean weight of the rows, by which weights were divided.
    seed : int
        What the preparation dealt its folds with.
    n_rows : int
        Rows that were fitted, equal ones together.
    importances : array of shape (n_columns,)
        Of the columns; they sum to one.
    best_score : float
        From rows that were left out.
    calibration : Probabilities, Residuals or None
        From held-out outputs to probabilities and sets, or to intervals.
    nearby : int
        Training rows near a row whose errors say how wide its interval is; 0: those of its part.

    Examples
    --------
    >>> from lssvm.fitting import TableContext
    >>> list(TableContext.__dataclass_fields__)[:3]
    ['prepared', 'texts', 'task']
    """

    prepared: dict[Scaling, PreparedTable]
    texts: bool
    task: Classes | Numbers
    shift: FloatArray
    scale: FloatArray
    weight_scale: float
    seed: int
    n_rows: int
    importances: FloatArray
    best_score: float = float("nan")
    calibration: Probabilities | Residuals | None = None
    nearby: int = 0

    @property
    def n_columns(self) -> int:
        """Number of raw columns."""
        return len(self.any_prepared.columns)

    @property
    def any_prepared(self) -> PreparedTable:
        """One of the preparations: all are of the same raw columns."""
        return next(iter(self.prepared.values()))

    def stripped(self, form: str) -> TableContext:
        """Return what a file of this form keeps: "support" has no sets and no intervals.

        Parameters
        ----------
        form : {"all", "prediction", "support"}
            All, what prediction and intervals need, or what prediction needs.
        """
        if form != "support":
            return self
        known, none = self.calibration, np.empty(0)
        if isinstance(known, Probabilities):
            return replace(self, calibration=replace(known, threshold=none, weight=none))
        return replace(self, calibration=None)


@dataclass(frozen=True)
class Trial:
    """A line of the table of what was tried.

    Attributes
    ----------
    configuration : Configuration
        Scaling of the inputs, and kernel.
    rounds : int
        Of the metric.
    error : float
        Mean squared error on rows that were not seen, relative to that of the mean.
    weight : float
        In the stack; 0 for what is not part of it.
    seconds : float
        What it took.
    stage : str
        The last stage it reached: "screening", "metric", "all rows" or "prototypes".
    warped : bool
        Whether its features are warped.

    Examples
    --------
    >>> from lssvm.fitting import Configuration, Trial
    >>> Trial(Configuration("quantiles", "laplacian"), 1, 0.2, 0.0, 0.1, "metric").stage
    'metric'
    """

    configuration: Configuration
    rounds: int
    error: float
    weight: float
    seconds: float
    stage: str
    warped: bool = False


@dataclass(frozen=True)
class Step:
    """A step of a fit.

    Attributes
    ----------
    stage : str
        "screening", "metric", "leaf size", "configurations", "all rows" or "prototypes".
    what : str
        What was done, or what would come next.
    gain : float
        By which share the out-of-sample loss fell, or is expected to fall; NaN where there is
        nothing to compare with.
    cost : float
        Operations, relative to those that a gain of the preset's size may cost.
    seconds : float
        What it took; 0 for what was not done.
    taken : bool
        Whether it was done.
    """

    stage: str
    what: str
    gain: float
    cost: float
    seconds: float
    taken: bool


@dataclass(frozen=True, eq=False)
class TableFit:
    """A fitted model for tables.

    Attributes
    ----------
    members : tuple of Member
        What is stacked.
    trials : tuple of Trial
        All that was tried.
    held_out : array of shape (n, k)
        Stacked outputs of rows by models that had not seen them; NaN where there is none.
    offset : array of shape (k,)
        Added to the weighted sum of the members' outputs.
    leaf_size : int
        Rows of a part at most.
    context : TableContext or None
        From raw tables to inputs and from outputs to answers; None where the recipe was used alone.
    stored : str
        "all", or the form of the file that the model was loaded from.
    interrupted : bool
        Whether the fit was ended before all stages were through.
    note : str
        What the model is, where it keeps no training rows: compressed, or made of prototypes.
    spent : tuple of Step
        What was tried, what it took and what it gained.
    """

    members: tuple[Member, ...]
    trials: tuple[Trial, ...]
    held_out: FloatArray
    leaf_size: int
    offset: FloatArray = field(default_factory=lambda: np.zeros(1))
    context: TableContext | None = None
    stored: str = "all"
    interrupted: bool = False
    note: str = ""
    spent: tuple[Step, ...] = ()

    def need(self, form: str, what: str) -> None:
        """Raise where the file that the model was loaded from left out what is asked for.

        Parameters
        ----------
        form : {"all", "prediction", "support"}
            What a file has to keep for it.
        what : str
            What is asked for, the first words of the error.
        """
        if self.note and form == "all":
            raise InvalidInputError(
                f"{what} cannot be had from a model of support vectors, which keeps no training "
                "rows: ask the model that it was compressed from, or fit one that keeps its rows "
                "(fewer of them, or more memory and time)."
            )
        check_form(self.stored, form, what)

    def stripped(self, form: str) -> TableFit:
        """Return what a file of this form keeps.

        Parameters
        ----------
        form : {"all", "prediction", "support"}
            All, what prediction and intervals need, or what prediction needs.
        """
        if form == "all":
            return self
        # Intervals by nearby errors need those of the member that they are taken from.
        near = form == "prediction" and self.context is not None and self.context.nearby > 0
        return replace(
            self,
            members=tuple(
                replace(m, model=m.model.stripped(near and m is self.largest), moments=None)
                for m in self.members
            ),
            held_out=self.held_out[:0],
            context=None if self.context is None else self.context.stripped(form),
            stored=form,
        )

    def outputs(
        self, inputs: Mapping[Scaling, FloatArray], *, engine: LeafEngine = ONE_THREAD
    ) -> FloatArray:
        """Return the stacked outputs (n, k) for prepared inputs.

        Parameters
        ----------
        inputs : mapping from scalings to arrays of shape (n, d)
            Prepared rows, for every kind of inputs that a member takes.
        engine : LeafEngine, optional
            Where it is computed; by default on one thread.
        """
        total = sum(m.weight * m.model.outputs(m.mapped(inputs), engine=engine) for m in self.used)
        return np.asarray(total + self.offset)

    @property
    def used(self) -> list[Member]:
        """The members that outputs are made of: all but parts that stay for their rows alone."""
        return [m for m in self.members if m.weight > 0]

    @property
    def in_parts(self) -> list[Member]:
        """The members that keep their rows: all but prototypes beside them."""
        return [m for m in self.members if not m.beside]

    @property
    def n_tried(self) -> int:
        """The number of configurations that were tried, without prototypes of the same ones."""
        return sum(trial.stage != "prototypes" for trial in self.trials)

    @property
    def largest(self) -> Member:
        """The member in parts with the largest weight."""
        return max(self.in_parts, key=lambda m: m.weight)

    def local_error(
        self, inputs: Mapping[Scaling, FloatArray] | None, n: int, nearby: int = 0
    ) -> FloatArray:
        """Return the root mean squared error around every row, shape (n, 1) or (n, k).

        Parameters
        ----------
        inputs : mapping from scalings to arrays of shape (n, d), or None
            Prepared rows, for every kind of inputs that a member takes; None for the training
            rows, with errors of other rows only.
        n : int
            Number of rows.
        nearby : int, default=0
            Nearest training rows whose leave-one-out errors are averaged, for every output; 0 is
            the error of the leaf of a row, all outputs together.
        """

        def error(member: Member) -> FloatArray:
            X = None if inputs is None else member.mapped(inputs)
            return np.sqrt(member.model.squared_error(X, n, nearby))

        if nearby:
            return error(self.largest)
        weights = [max(member.weight, 1e-12) for member in self.in_parts]
        errors = [error(member) for member in self.in_parts]
        return np.asarray(np.average(errors, axis=0, weights=weights))
