"""What a fit of the model for tables learns from and tries, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from lssvm._core.arrays import AnyArray, FloatArray, IntArray, tie_scores
from lssvm._core.blocks import run_blocks, run_stream
from lssvm._core.errors import InvalidInputError
from lssvm._core.random import draw_rows, hash_positions, rank_hashes
from lssvm.data.dataset import Dataset
from lssvm.data.folds import (
    are_observations,
    fold_numbers,
    hash_rows,
    observation_weight,
)
from lssvm.data.preparation import Learned
from lssvm.fitting.record import Features, Fit, Member, Scaling, State, Step
from lssvm.kernels import Kernel, Laplacian, Metric
from lssvm.kernels.base import Expansion
from lssvm.kernels.metric import (
    IDENTITY,
    Shape,
    Slopes,
    low_rank,
    mean_outer_product,
    slopes_of,
    squared_slopes,
)
from lssvm.kernels.radial import KERNEL_OF, Distance
from lssvm.kernels.warp import learn_warp
from lssvm.local import LeafEngine, LocalModel, Rows
from lssvm.local.engine import SlopesAt
from lssvm.solvers.moments import Moments
from lssvm.tasks import Numbers

Result = TypeVar("Result")

# -- the rows --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Problem:
    """Numbers to learn from.

    Attributes
    ----------
    inputs : mapping from "standardised", "quantiles" to arrays of shape (n, d)
        The rows, prepared in each way.
    Y : array of shape (n, k)
        Targets: -1 and 1 for every class, or centred numbers of variance 1.
    weight : array of shape (n,)
        Weights of the rows.
    labels : int array of shape (n,) or None
        Rows of one label are left out together.
    classes : int array of shape (n,) or None
        Class numbers, so that samples are stratified.
    scored : array of shape (n,) or None
        Weights that scores are taken with; None: ``weight``. Weights of classes are not in it.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting import Problem
    >>> Problem({"standardised": np.ones((4, 1))}, np.ones((4, 1)), np.ones(4)).n
    4
    """

    inputs: Mapping[Scaling, FloatArray]
    Y: FloatArray
    weight: FloatArray
    labels: IntArray | None = None
    classes: IntArray | None = None
    scored: FloatArray | None = None

    @property
    def score_weight(self) -> FloatArray:
        """Weights of the rows in scores, shape (n,)."""
        return self.weight if self.scored is None else self.scored

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.Y)

    def rows(
        self, scaling: Scaling, metric: Metric = IDENTITY, chosen: IntArray | None = None
    ) -> Rows:
        """Return (some of) the rows mapped by a metric.

        Parameters
        ----------
        scaling : {"standardised", "quantiles"}
            Of the inputs.
        metric : Metric, default=IDENTITY
            That they are mapped by.
        chosen : int array of shape (m,), optional
            Numbers of the rows; by default all.
        """
        at: Any = slice(None) if chosen is None else chosen
        labels = None if self.labels is None else self.labels[at]
        return Rows(metric.apply(self.inputs[scaling][at]), self.Y[at], self.weight[at], labels)

    def sample(self, size: int, random: np.random.Generator) -> IntArray:
        """Return sorted numbers of some rows, classes in proportion.

        Parameters
        ----------
        size : int
            How many rows.
        random : Generator
        """
        keys = hash_positions(np.arange(self.n), int(random.integers(2**63)))
        return draw_rows(keys, size, self.classes)

    def folds(self, n_folds: int, random: np.random.Generator) -> IntArray:
        """Return the fold of every row: classes in proportion, what belongs together shares one.

        Parameters
        ----------
        n_folds : int
            How many folds, at most.
        random : Generator
        """
        together = self.rows(next(iter(self.inputs))).together()
        keys = hash_positions(together, int(random.integers(2**63)))
        return fold_numbers(keys, n_folds, self.classes)[0].astype(np.intp)

    def divided(self, by: float) -> Problem:
        """Return the problem with its weights divided by a number.

        Parameters
        ----------
        by : float
            Larger than 0.
        """
        scored = None if self.scored is None else self.scored / by
        return replace(self, weight=self.weight / by, scored=scored)

    def merged(self, *, ranked: bool = True) -> Problem:
        """Return the problem with copies of a row as one row of their weight, in a fixed order.

        So a weight of 2 is the row twice, and the order of the rows changes nothing. Copies have
        equal inputs and targets. Observations of a few categories (`are_observations`) stay.

        Parameters
        ----------
        ranked : bool, default=True
            Whether order and units of the features change nothing either, which takes the longest.
        """
        tables = list(self.inputs.values())
        inputs = row_numbers(tables[0] if len(tables) == 1 else np.column_stack(tables), ranked)
        if not ranked and inputs.max() == self.n - 1:
            return self
        place = row_numbers(np.column_stack([inputs[:, None], self.Y]), ranked)
        if self.labels is not None:  # equal rows of several groups
            pairs = place * (self.labels.max() + 1) + self.labels
            place = np.unique(pairs, return_inverse=True)[1].ravel()
        first = np.unique(place, return_index=True)[1]
        counted = observation_weight(self.n, self.weight, self.classes)[0]
        if are_observations(inputs, self.Y, self.weight, counted):
            order = np.argsort(place, kind="stable").astype(np.intp)
            return subset(self, order)
        weight = np.asarray(np.bincount(place, self.weight), dtype=np.float64)
        scored = None if self.scored is None else np.bincount(place, self.scored).astype(np.float64)
        return replace(subset(self, first.astype(np.intp)), weight=weight, scored=scored)


@dataclass(frozen=True, eq=False)
class TableBlock:
    """Some of all rows, prepared.

    Attributes
    ----------
    inputs : mapping from scalings to arrays of shape (n, d)
    Y : array of shape (n, k)
    weight : array of shape (n,)
    start : int
        Position of the first row.
    """

    inputs: Mapping[Scaling, FloatArray]
    Y: FloatArray
    weight: FloatArray
    start: int


Encode = Callable[[AnyArray, FloatArray], tuple[FloatArray, FloatArray]]
"""From targets and weights to (Y, weight)."""


@dataclass(frozen=True, eq=False)
class AllRows:
    """All rows of a table of very many, prepared block by block.

    Attributes
    ----------
    data : Dataset
    encode : callable
        From targets and weights to (Y, weight).
    sample : int array of shape (m,)
        Positions of the rows that everything else is chosen by, ascending.
    budget, threads : int
        Bytes of memory and threads that may be used.
    learned : mapping from scalings to Learned
        How the columns are prepared.
    scale : float
        What weights are divided by.
    """

    data: Dataset
    encode: Encode
    sample: IntArray
    budget: int
    threads: int
    learned: Mapping[Scaling, Learned] = field(default_factory=dict)
    scale: float = 1.0

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.data.n_rows

    def map(
        self, scalings: Sequence[Scaling], use: Callable[[TableBlock], Result]
    ) -> Iterator[Result]:
        """Yield what ``use`` returns for all rows in order, by blocks with the given scalings.

        Blocks are read by the calling thread, and prepared and used by the others.
        """

        def work(block: Any) -> Result:
            at = np.arange(block.start, block.start + len(block))
            X = {name: self.learned[name].transform(block, at) for name in scalings}
            weight = np.ones(len(block)) if block.weight is None else block.weight
            assert block.target is not None
            Y, weight = self.encode(block.target, weight)
            return use(TableBlock(X, Y, weight / self.scale, block.start))

        return run_stream(work, self.data.blocks(), self.threads)

    def blocks(self, scalings: Sequence[Scaling]) -> Iterator[TableBlock]:
        """Yield all rows in order with the requested scalings."""
        return self.map(scalings, lambda block: block)


def subset(problem: Problem, rows: IntArray) -> Problem:
    """Return the problem of some rows."""
    return Problem(
        {name: X[rows] for name, X in problem.inputs.items()},
        problem.Y[rows],
        problem.weight[rows],
        None if problem.labels is None else problem.labels[rows],
        None if problem.classes is None else problem.classes[rows],
        None if problem.scored is None else problem.scored[rows],
    )


def row_numbers(table: FloatArray, ranked: bool = True) -> IntArray:
    """Return a number for every row (n,): equal rows share it, others are in a fixed order.

    If ``ranked``, neither order nor units of the columns change that order, nor does rounding:
    features of texts and targets have values that differ by it alone.
    """
    _, first, number = np.unique(hash_rows(table), return_index=True, return_inverse=True)
    if not ranked:
        return number.ravel()
    place = np.empty(len(first), dtype=np.intp)
    if len(first) < len(table):
        keys = rank_hashes(tie_scores(table[first]))
    else:  # no copy of the table
        keys = rank_hashes(tie_scores(table))[first]
    place[np.argsort(keys, kind="stable")] = np.arange(len(first))
    return place[number.ravel()]


# -- configurations --------------------------------------------------------------------------------

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
            slopes = engine.squared_slopes(SlopesAt(leaves, self.distance, metric, step, ties))
            warp = learn_warp(slopes, rows)
            return metric if warp is None else Metric(None, warp)
        if shape == "full" and rows.shape[1] > WIDE:
            k = leaves[0].fit.coef.shape[1]
            step = max(step, -(-total * k // (2 * WIDE)))
            G = engine.gradient_rows(SlopesAt(leaves, self.distance, metric, step, ties))
            if len(G) < rows.shape[1]:
                return replace(low_rank(G), warp=metric.warp)
        at = SlopesAt(leaves, self.distance, metric, step, ties)
        return replace(Metric.of(engine.outer_product(at, shape)), warp=metric.warp)


WIDE = 300
"""Features beyond which a full metric is made of the gradients of few rows, of their rank."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TableState(State):
    """What only a model for tables has.

    Attributes
    ----------
    leaf_size : int
        Rows of a leaf at most.
    held_out : array of shape (n, k)
        Stacked outputs of rows by models that had not seen them; NaN where there is none.
    learned : int array
        Numbers of the rows that made a metric: their outputs calibrate, and are not scored.
    n_rows : int
        Rows that were fitted, equal ones together.
    weight_scale : float
        Mean weight of the rows, by which weights were divided.
    importances : array of shape (n_columns,)
        Of the columns; they sum to one.
    named : bool
        Whether the names of the columns are text, as ``feature_names_in_`` takes them.
    moments : Moments or None
        Of all rows, once a global member of prototypes has learned or forgotten some.
    interrupted : bool
        Whether the fit was ended before all stages were through.
    note : str
        What the model is, where it keeps no training rows: compressed, or made of prototypes.
    """

    leaf_size: int
    held_out: FloatArray
    learned: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    n_rows: int = 0
    weight_scale: float = 1.0
    importances: FloatArray = field(default_factory=lambda: np.empty(0))
    named: bool = False
    moments: Moments | None = None
    interrupted: bool = False
    note: str = ""

    def check_rows(self, what: str) -> None:
        """Raise where the model keeps no training rows."""
        if self.note:
            raise InvalidInputError(
                f"{what}: not available for a model of support vectors, which keeps no training "
                "rows. Use the model that it was compressed from, or fit one that keeps its rows "
                "(fewer of them, or more memory and time)."
            )

    def reduced(self, form: str, fit: TableFit) -> TableState:
        """Return what a file of this form keeps."""
        return replace(self, held_out=self.held_out[:0], learned=self.learned[:0], moments=None)

    def published(self, fit: TableFit) -> dict[str, Any]:
        """Return fitted attributes of the estimator."""
        assert fit.tuning is not None
        trials = fit.tuning.trials
        attributes: dict[str, Any] = {
            "n_features_in_": len(fit.any_prepared.columns),
            "configurations_": {name: [getattr(t, name) for t in trials] for name in OF_TRIALS},
            "leaf_size_": self.leaf_size,
            "feature_importances_": self.importances,
            "summary_": summary(fit),
        }
        if self.named:
            attributes["feature_names_in_"] = np.array(fit.any_prepared.names, dtype=object)
        return attributes


TableFit: TypeAlias = Fit[TableState]

OF_TRIALS = ("scaling", "kernel", "rounds", "error", "weight", "seconds", "stage", "warped")
"""Columns of ``configurations_``."""


def local_error(
    fit: TableFit, features: Features | None, n: int, nearby: int | Sequence[int] = 0
) -> FloatArray:
    """Return the root mean squared error around every row, shape (n, 1), (n, k) or (c, n, k).

    Parameters
    ----------
    fit : Fit
    features : mapping from scalings to arrays of shape (n, d), or None
        Prepared rows; None for the training rows, with errors of other rows only.
    n : int
        Number of rows.
    nearby : int or sequence of c ints, default=0
        Nearest training rows whose leave-one-out errors are averaged, for every output; 0 is the
        error of the leaf of a row, all outputs together.
    """
    members = fit.local_members
    if nearby:
        largest = max(members, key=lambda member: member.weight)
        return np.sqrt(largest.squared_error(features, n, nearby))
    errors = [np.sqrt(member.squared_error(features, n)) for member in members]
    weights = [max(member.weight, 1e-12) for member in members]
    return np.asarray(np.average(errors, axis=0, weights=weights))


def number_of(count: int, what: str) -> str:
    """Return how many of something there are, in words such as "1 model" and "2 models"."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def _percent(gain: float) -> str:
    """Return a gain in per cent; of a loss near 0 it says no more than that the loss rose."""
    return "below -1,000%" if gain < -10.0 else f"{round(gain, 4) + 0.0:.2%}"


def summary(fit: TableFit) -> str:
    """Return what was chosen, and why, in words; then which columns are dropped or guessed."""
    state, tuning, prepared = fit.state, fit.tuning, fit.any_prepared
    assert tuning is not None
    columns = [f"- column {name!r} is dropped: {why}." for name, why in prepared.dropped.items()]
    columns += [f"- column {name!r}: {guess}." for name, guess in prepared.guesses.items()]
    if not tuning.trials:
        return "\n".join([state.note, *columns])
    local = fit.local_members
    several = len(local) > 1
    each = "each " if several else ""
    if state.note:
        how = f"{state.leaf_size:,} {state.note}"
    else:
        most = max(len(member.local.leaves) for member in local)
        how = f"{each}in {most} leaves of at most {state.leaf_size:,} rows"
        if most == 1:
            how = f"{each}an exact model of all rows"
        for member in fit.members:
            if not member.in_leaves:
                how += f", and {member.model.n_basis:,} prototypes of all of them"
    many = number_of(len(local), "configuration")
    lines = [f"{many} for {state.n_rows:,} rows, {how}."]
    if state.interrupted:
        lines.append("The fit was interrupted: this is what was finished.")
    if isinstance(fit.task, Numbers) and fit.task.smearing is not None:
        factors = ", ".join(f"{factor:.4g}" for factor in fit.task.smearing)
        lines.append(f"Logarithms of the target are learned; exponentials are times {factors}.")
    for trial in tuning.trials:
        name = str(trial)
        if trial.rounds:
            what = "warp" if trial.warped else "metric"
            name += f", {what} of {number_of(trial.rounds, 'round')}"
        if trial.stage == "prototypes":
            name += ", prototypes"
        share = f"weight {trial.weight:.2f}" if trial.weight > 0 else f"dropped after {trial.stage}"
        lines.append(f"- {name}: {share}, out-of-sample error {trial.error:.4g} of the variance.")
    seconds = seconds_of_stages(tuning.steps)
    took = [f"{stage} {time:.1f} s" for stage, time in seconds.items() if time >= 0.05]
    lines += [f"Time: {', '.join(took)}."] if took else []
    used = {str(trial) for trial in tuning.trials if trial.weight > 0}
    for step in tuning.steps:
        if step.stage != "metric" or step.what.split(",")[0] in used:
            for why, gain in why_not(step):
                known = f", gain {gain} of the loss" if gain else ""
                lines.append(f"- {why}: {step.what}{known}.")
    return "\n".join([*lines, *columns])


def seconds_of_stages(steps: Sequence[Step]) -> dict[str, float]:
    """Return the time of every stage of a fit, in seconds."""
    seconds: dict[str, float] = {}
    for step in steps:
        seconds[step.stage] = seconds.get(step.stage, 0.0) + step.seconds
    return seconds


def why_not(step: Step) -> list[tuple[str, str]]:
    """Return why a step is not part of the model, and its gain ("": not known); [] if it is."""
    if step.taken:
        return []
    if not np.isfinite(step.gain):
        return [] if step.seconds > 0 else [("not tried for its time", "")]
    why = "tried, not kept" if step.seconds > 0 else "not worth its cost"
    return [(why, _percent(step.gain))]


_LEAVES = 100  # whose gradients the importances are made of
_ROWS = 600  # at which gradients are taken
_PRODUCTS = 2**32  # of rows, basis and features: at fewer rows where there are more of them


def column_importances(
    fit: TableFit, threads: int = 1, share: float = 1.0, slopes_by: Slopes = slopes_of
) -> FloatArray:
    """Return how much the output changes along every column, summing to 1.

    A ``share`` below 1 looks at as much fewer leaves and rows.
    """
    n = len(fit.any_prepared.columns)
    total = np.zeros(n)
    for member in fit.members:
        slopes = _mean_squared_slopes(member, threads, share, slopes_by)
        sources = np.asarray(fit.prepared[member.scaling].sources, dtype=np.intp)
        if slopes.sum() > 0:
            total += np.bincount(sources, member.weight * slopes / slopes.sum(), minlength=n)
    return total / total.sum() if total.sum() > 0 else total


def _mean_squared_slopes(
    member: Member, threads: int, share: float, slopes_by: Slopes
) -> FloatArray:
    """Return the mean squared slope of a member along every prepared feature, shape (d,)."""
    model = member.model
    parts: Sequence[Any] = [model] if isinstance(model, Expansion) else model.leaves
    parts = parts[:: -(-len(parts) // int(share * _LEAVES))]
    most = max(1, int(share * _ROWS) // len(parts))

    def slopes(part: Any) -> FloatArray:
        one = part if isinstance(model, Expansion) else model.expansion(part)
        Z, metric = tie_scores(one.basis), member.metric
        fewer = max(1, min(most, _PRODUCTS // max(Z.size * len(parts), 1)))
        rows = np.arange(0, len(Z), max(1, len(Z) // fewer), dtype=np.intp)
        # The Laplacian has no derivative where rows are tied; the other kernels do.
        own = rows if isinstance(one.kernel, Laplacian) else None
        at = one.kernel, Z[rows], Z, one.coef
        options: dict[str, Any] = {"metric": metric, "rows_in_Z": own, "slopes_by": slopes_by}
        if metric.warp is None:
            M = mean_outer_product(*at, shape="diagonal", **options)
        else:  # with respect to the features, not to what the warp makes of them
            weight = np.ones(len(rows))
            M = squared_slopes(*at, weight=weight, **options).means
        return len(Z) * M

    return np.asarray(np.sum(run_blocks(slopes, parts, threads), axis=0))
