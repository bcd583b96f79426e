"""What the stages of a fit for tables share: settings, candidates, and what a gain may cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Protocol, TypeVar

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import run_blocks
from lssvm._core.errors import Stopped
from lssvm.fitting.record import Step
from lssvm.fitting.stacking import StackRule, fit_stack, mean_loss, row_losses, rows_that_count
from lssvm.fitting.table_record import KERNELS, SCALINGS, Configuration, Problem
from lssvm.kernels import Metric
from lssvm.kernels.base import Expansion
from lssvm.kernels.metric import IDENTITY, Shape
from lssvm.local import LeafEngine, LocalModel, Setting
from lssvm.local.engine import ONE_THREAD
from lssvm.solvers.exact import ExactPath

Callback = Callable[[dict[str, Any]], None]
Item = TypeVar("Item")
Result = TypeVar("Result")

N_FOLDS = 5
"""Folds; with few rows each learns its own metric."""

FEW = 1000
"""Number of rows below which a metric has to be much better than none."""

SMALL = 1500
"""Number of rows from which metrics are compared on rows set aside; below it, in folds."""

FEW_ROWS = 20.0
"""Rows that make up a log loss: fewer do not show which candidates are better."""


class OutOfTime(Stopped):
    """The time limit is reached and there is a model."""


@dataclass
class Clock:
    """A time limit and the speed that was measured so far.

    Attributes
    ----------
    limit : float or None
        Seconds; None for no limit. Without a limit nothing depends on measured times, so that the
        same data give the same model.

    Examples
    --------
    >>> from lssvm.fitting.table_work import Clock
    >>> Clock(None).over(0.5), Clock(0.0).over(0.5)
    (False, True)
    """

    limit: float | None = None
    now: Callable[[], float] = time.monotonic
    started: float = field(init=False)
    operations: float = 0.0
    seconds: float = 0.0
    stopped: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.started = self.now()

    def spent(self) -> float:
        """Return the seconds since the start."""
        return self.now() - self.started

    def over(self, share: float) -> bool:
        """Return whether that share of the limit is spent.

        Raises
        ------
        Stopped
            After `stop`, so that work on other threads ends.
        """
        if self.stopped:
            raise Stopped
        return self.limit is not None and self.spent() >= share * self.limit

    def stop(self) -> None:
        """Make `over` raise from now on, on all threads."""
        self.stopped = True

    def resume(self) -> None:
        """Undo `stop`, to finish the fit with what there is."""
        self.stopped = False

    def left(self) -> float:
        """Return the seconds that are left; infinite without a limit."""
        return np.inf if self.limit is None else self.limit - self.spent()

    def measured(self, operations: float, seconds: float) -> None:
        """Note that so many operations took so many seconds."""
        self.operations += operations
        self.seconds += seconds

    def affordable(self, operations: float, share: float) -> float:
        """Return how many of these operations fit into a share of the time that is left."""
        if self.limit is None or not self.seconds:
            return operations
        left = max(self.limit - self.spent(), 0.0) * share
        return min(operations, left * self.operations / self.seconds)


class Scorer(Protocol):
    """A loss of held-out outputs: smaller is better.

    Attributes
    ----------
    chooses : bool
        Whether the loss chooses configurations and stacks; if not, the log loss of classes and the
        squared error of numbers do.
    ranks : bool
        Whether the loss compares outputs of rows with each other, so that they need one scale.
    """

    @property
    def chooses(self) -> bool:
        """Whether the loss chooses configurations and stacks."""

    @property
    def ranks(self) -> bool:
        """Whether the loss compares outputs of rows with each other."""

    def loss(self, outputs: FloatArray, rows: IntArray) -> float:
        """Return the loss of outputs (m, k) for the rows (m,) of a problem."""

    def decision_shift(self, outputs: FloatArray, rows: IntArray) -> FloatArray:
        """Return the shift (k,) of outputs (m, k) whose decisions have the smallest loss."""


@dataclass(frozen=True)
class TableSettings:
    """What is tried, and what a gain may cost; a preset is a set of these values.

    Attributes
    ----------
    configurations : tuple of Configuration
        Configurations to screen.
    gain : float
        Relative fall of the held-out loss that is worth a unit of cost, see `Work.worth`.
    screened : int
        Rows of the screening.
    kept : int
        Configurations whose metric is learned in more than one round, on ``learned_on`` rows.
    plain : int
        With few rows, configurations without a metric that are fitted to all of them.
    learned_on : int
        Rows that a metric is learned from at most, in leaves of ``learned_leaf`` rows.
    learned_leaf : int
        Rows of these leaves, and the size from which leaves of the model are doubled.
    slopes : int
        Rows at which the slopes of a metric or warp are taken, at most.
    scored_on : int
        Other rows on which its rounds are compared, at most.
    rounds : int
        Rounds of a metric or warp, at most; 0 for no metric.
    patience : int
        Consecutive rounds without enough gain that are allowed.
    metric : Metric
        Where the rounds begin; with ``rounds=0`` the metric that is used.
    shape : {"diagonal", "full"} or None
        Shape of learned metrics; None: diagonal for the Laplacian, full for the other kernels.
    ties : bool
        Whether slopes along features of few values are one-sided.
    warps : bool
        Whether warps of single features are tried.
    values : bool
        Whether repeated values of numbers are encoded by the target, where they stand out.
    log_loss : bool
        Whether classes are stacked by the log loss; otherwise by squared errors.
    logistic : bool
        Whether leaves of two classes minimise the log loss, where that gains enough.
    other_classes : bool
        Whether the probability of one of several classes may depend on the outputs of the others.
    leaf_size : int or None
        Rows of a leaf at most; None: doubled while that is worth its cost.
    n_prototypes : int or None
        Prototypes of all rows; None: where they are worth their cost.
    largest : int
        Rows of a leaf at most that memory allows.
    n_trees : int
        Partitions of the rows that are averaged.
    engine : LeafEngine
        Where leaves are computed.
    seed : int
        Seed of the random numbers.
    """

    configurations: tuple[Configuration, ...] = tuple(
        Configuration(scaling, kernel) for kernel in KERNELS for scaling in SCALINGS
    )
    gain: float = 0.005
    screened: int = 600
    kept: int = 3
    plain: int = 3
    learned_on: int = 16_000
    learned_leaf: int = 1000
    slopes: int = 2000
    scored_on: int = 2500
    rounds: int = 8
    patience: int = 1
    metric: Metric = IDENTITY
    shape: Shape | None = None
    ties: bool = True
    warps: bool = True
    values: bool = True
    log_loss: bool = True
    logistic: bool = True
    other_classes: bool = True
    leaf_size: int | None = None
    n_prototypes: int | None = None
    largest: int = 20_000
    n_trees: int = 1
    engine: LeafEngine = ONE_THREAD
    seed: int = 0

    @classmethod
    def preset(cls, name: str, **others: Any) -> TableSettings:
        """Return the values of "fast", "balanced" or "best", some of them replaced."""
        return cls(**(PRESETS[name] | others))


PRESETS: dict[str, dict[str, Any]] = {
    "fast": dict(
        gain=0.02,
        screened=400,
        kept=1,
        plain=2,
        learned_on=4000,
        learned_leaf=500,
        slopes=1000,
        scored_on=1500,
        rounds=3,
        patience=0,
        n_prototypes=0,
    ),
    "balanced": dict(),
    "best": dict(
        gain=1e-4,
        screened=1500,
        kept=6,
        plain=6,
        learned_on=32_000,
        slopes=4000,
        rounds=12,
        n_trees=2,
    ),
}
"""The settings of every preset."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A configuration with what the stages so far have chosen and measured."""

    configuration: Configuration
    setting: Setting
    error: float
    seconds: float
    metric: Metric = IDENTITY
    rounds: int = 0
    outputs: FloatArray | None = None  # held-out outputs
    rows: IntArray | None = None  # the numbers of their rows
    nested: FloatArray | None = None  # the same, with settings and rounds chosen by other folds
    loss: float = np.inf
    stage: str = "screening"
    step: int | None = None  # the number of the recorded step that added it to the model

    @property
    def name(self) -> tuple[Configuration, int, bool]:
        """Identifies a candidate of a fit: configuration, rounds, whether it has a warp."""
        return self.configuration, self.rounds, self.metric.warp is not None


Fitted = tuple[Candidate, LocalModel | Expansion, FloatArray]


@dataclass(frozen=True, eq=False)
class Work:
    """What the stages of a fit share: problem, settings, clock, scorer, folds and callback.

    ``paths`` are eigendecompositions of all rows that the screening leaves to nested folds.
    """

    problem: Problem
    settings: TableSettings
    clock: Clock
    scorer: Scorer | None
    folds: IntArray
    callback: Callback
    best: list[float] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    paths: dict[Configuration, list[ExactPath]] = field(default_factory=dict)
    lock: Any = field(default_factory=Lock)

    @property
    def may_fit_log_odds(self) -> bool:
        """Whether leaves may minimise the log loss: of two classes, where that loss counts."""
        return self.loss == "log" and self.problem.Y.shape[1] == 1 and self.settings.logistic

    def random(self, stage: str) -> np.random.Generator:
        """Return the random generator of a stage."""
        return np.random.default_rng([self.settings.seed, *stage.encode()])

    def parallel(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Apply work to items on the threads of the engine; an error stops the clock for all."""
        threads = self.settings.engine.n_configurations
        return run_blocks(work, items, threads, on_error=self.clock.stop)

    def report(self, stage: str, what: str, done: int, planned: int) -> None:
        """Report what is tried next."""
        best = min(self.best, default=None)
        spent = self.clock.spent()
        shown = "" if best is None else f", best loss so far {best:.4g}"
        event = {
            "stage": stage,
            "text": f"{stage}: {what}, {done + 1} of {planned}{shown}, {spent:.1f} s",
            "trying": what,
            "n_evaluations": done,
            "planned": planned,
            "best_loss": best,
            "elapsed": spent,
        }
        with self.lock:
            self.callback(event)

    def step(self, stage: str, what: str, gain: float, cost: float, begin: float | None) -> int:
        """Record the gain and time of a step; ``begin`` is None where it was not taken.

        The result is its number among the steps, for `not_kept`.
        """
        took = 0.0 if begin is None else self.clock.now() - begin
        with self.lock:
            self.steps.append(Step(stage, what, float(gain), cost, took, begin is not None))
            return len(self.steps) - 1

    def tried(self, stage: str, what: str, begin: float) -> None:
        """Record the time of a trial after which a step is not taken."""
        self.not_kept([self.step(stage, f"trial of {what}", np.nan, 0.0, begin)])

    def not_kept(self, numbers: Iterable[int]) -> None:
        """Note that the results of steps that were done are not part of the model."""
        with self.lock:
            for number in numbers:
                self.steps[number] = replace(self.steps[number], taken=False)

    def keep(self, numbers: Sequence[int], count: int) -> None:
        """Note that the first ``count`` of some steps are part of the model, and the others not."""
        with self.lock:
            for place, number in enumerate(numbers):
                self.steps[number] = replace(self.steps[number], taken=place < count)

    def with_loss(self, candidate: Candidate) -> Candidate:
        """Return a candidate with the loss of its held-out outputs."""
        outputs = candidate.outputs if candidate.nested is None else candidate.nested
        rows = candidate.rows
        assert outputs is not None
        assert rows is not None
        Y, weight = self.problem.Y[rows], self.problem.weight[rows]
        if self.scorer is not None and self.scorer.chooses:
            good = np.flatnonzero(np.isfinite(outputs).all(axis=1))
            loss = float(self.scorer.loss(outputs[good], rows[good]))
        elif self.loss == "log":
            stack = fit_stack([outputs], Y, weight, "log")
            loss = mean_loss(stack.outputs([outputs]), Y, weight, "log")
        else:
            loss = mean_loss(outputs, Y, weight, "squared")
        if np.isfinite(loss):
            self.best.append(loss)
        return replace(candidate, loss=loss)

    @property
    def loss(self) -> Any:
        """The loss that the weights of a stack minimise: "log" or "squared"."""
        classes = self.problem.classes is not None and self.settings.log_loss
        return "log" if classes else "squared"

    def rule(self, **others: Any) -> StackRule:
        """Return how models are stacked; after the time limit decisions are not shifted."""
        if self.scorer is None or not self.scorer.chooses:
            return StackRule(self.loss, **others)
        return StackRule(
            self.loss,
            scorer=self.scorer.loss,
            shift=None if self.clock.over(1.0) else self.scorer.decision_shift,
            common_scale=self.scorer.ranks,
            **others,
        )

    def unit(self, n_rows: int) -> float:
        """Return the operations that a gain of ``settings.gain`` may cost: linear in the rows.

        About what boosted trees spend. It grows with the outputs, as trees are grown for each.
        """
        outputs = min(np.sqrt(self.problem.Y.shape[1]), 4.0)
        return (1e10 + 5e6 * n_rows) * float(outputs) * self.settings.engine.speed

    def worth(self, gain: float, cost: float) -> bool:
        """Return whether a relative gain of the loss is worth a cost in units."""
        return gain > self.settings.gain * max(cost, 0.02)


def best_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return candidates in order of their losses."""
    return sorted(candidates, key=lambda c: (not np.isfinite(c.loss), c.loss, c.error))


def made_by_few_rows(work: Work, candidate: Candidate) -> bool:
    """Return whether a few rows make up the log loss of the held-out outputs of a candidate.

    Where classes are nearly certain, these are the rows that are wrong, and differences of the loss
    are chance.
    """
    scored = work.scorer is not None and work.scorer.chooses
    if work.loss != "log" or scored or candidate.outputs is None or candidate.rows is None:
        return False
    Y, weight = work.problem.Y[candidate.rows], work.problem.weight[candidate.rows]
    outputs = fit_stack([candidate.outputs], Y, weight, "log").outputs([candidate.outputs])
    return rows_that_count(row_losses(outputs, Y, "log"), weight) < FEW_ROWS


def in_order(work: Work, candidates: list[Candidate]) -> list[Candidate]:
    """Return candidates in order of their losses.

    Where a few rows make up the log loss of the best one, the order is that of squared errors, to
    which no row adds much.
    """
    found = best_first(candidates)
    return sorted(found, key=lambda c: c.error) if made_by_few_rows(work, found[0]) else found


@dataclass(frozen=True, eq=False)
class Plan:
    """What a stage passes to the next.

    Attributes
    ----------
    candidates : list of Candidate
        Candidates that are still considered, the best first.
    dropped : list of Candidate
        Candidates that are not used any more.
    learned : int array or None
        Rows that metrics are learned from; None where all rows are, in folds.
    note : str
        Why the model keeps no rows, where it does not.
    """

    candidates: list[Candidate] = field(default_factory=list)
    dropped: list[Candidate] = field(default_factory=list)
    learned: IntArray | None = None
    note: str = ""

    def keep(self, chosen: list[Candidate]) -> Plan:
        """Return the plan with these candidates; the others are added to ``dropped``."""
        kept = {c.name for c in chosen}
        gone = [c for c in self.candidates if c.name not in kept]
        return replace(self, candidates=chosen, dropped=self.dropped + gone)


def clearly_best(losses: FloatArray) -> int:
    """Return the round of the smallest loss, or 0 if its gain over no metric is not clear.

    Parameters
    ----------
    losses : array of shape (rounds + 1, n)
        Losses of the rows after every round, the first without a metric.
    """
    n = losses.shape[1]
    best = int(np.argmin(losses.mean(axis=1)))
    gain = losses[0] - losses[best]
    wanted = (2.5 if n < FEW else 1.0) * gain.std() / np.sqrt(n)
    least = 2.0 / np.sqrt(n) * losses[0].mean() if n < FEW else 0.0
    return best if gain.mean() > max(wanted, least) else 0
