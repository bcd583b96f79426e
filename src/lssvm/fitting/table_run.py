"""Settings of the recipe for tables, and what its stages share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import run_blocks
from lssvm.fitting.clock import Clock
from lssvm.fitting.configurations import INPUTS, KERNELS, Configuration
from lssvm.fitting.judging import Judge
from lssvm.fitting.problem import Problem
from lssvm.fitting.stacking import StackRule
from lssvm.fitting.table_rows import AllRows
from lssvm.kernels import Metric
from lssvm.kernels.metric import IDENTITY, Shape
from lssvm.local import PartsEngine, PartsModel, Setting
from lssvm.local.engine import ONE_THREAD

Tell = Callable[[dict[str, Any]], None]
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class TableSettings:
    """How much is tried; a preset is a set of these values.

    Attributes
    ----------
    configurations : tuple of Configuration
        What is screened.
    screened : int
        Rows of the first screening.
    kept : int
        Configurations that are fitted to all rows where there are parts.
    small : int
        Configurations that are fitted to all rows where there are few rows.
    learned_on : int
        Rows that a metric is learned on at most, in parts of ``learned_part`` rows.
    learned_part : int
        Rows of the parts in which a metric is learned.
    judged_on : int
        Other rows that judge its rounds, at most.
    rounds : int
        Of the metric, at most; 0 for none.
    metric : Metric
        Where the rounds begin; without rounds a metric that is given.
    shape : {"diagonal", "full"} or None
        Of learned metrics; None: the Laplacian learns a diagonal, the others a full matrix.
    operations : float
        What the exact models of all rows may cost; it decides how large parts are.
    part_size : int or None
        Rows of a part at most; None: by ``operations``.
    beside : float
        Share of ``operations`` that prototypes beside parts may cost; 0 for none.
    n_prototypes : int or None
        Prototypes beside parts; None: by ``beside``, where they help.
    largest : int
        Rows of a part at most, whatever else is said: what memory allows.
    n_trees : int
        Cuts of the rows into parts that are averaged.
    tries : int
        Settings of C and gamma that a part tries.
    engine : PartsEngine
        Who computes.
    seed : int
        Of the random numbers; the same seed gives the same result.

    Examples
    --------
    >>> from lssvm.fitting import TableSettings
    >>> TableSettings.preset("fast").kept
    2
    """

    configurations: tuple[Configuration, ...] = tuple(
        Configuration(inputs, kernel) for kernel in KERNELS for inputs in INPUTS
    )
    screened: int = 700
    kept: int = 3
    small: int = 6
    learned_on: int = 16_000
    learned_part: int = 1000
    judged_on: int = 2500
    rounds: int = 4
    metric: Metric = IDENTITY
    shape: Shape | None = None
    operations: float = 2e12
    part_size: int | None = None
    beside: float = 0.2
    n_prototypes: int | None = None
    largest: int = 20_000
    n_trees: int = 1
    tries: int = 3
    engine: PartsEngine = ONE_THREAD
    seed: int = 0

    @classmethod
    def preset(cls, name: str, **others: Any) -> TableSettings:
        """Return the values of "fast", "balanced" or "best".

        Parameters
        ----------
        name : {"fast", "balanced", "best"}
            How much time may be spent.
        **others : Any
            Values of single settings in place of those of the preset.
        """
        return cls(**(PRESETS[name] | others))


PRESETS: dict[str, dict[str, Any]] = {
    "fast": dict(
        screened=500,
        kept=2,
        small=2,
        learned_on=4000,
        learned_part=500,
        rounds=2,
        operations=1e11,
        beside=0.0,
        tries=2,
    ),
    "balanced": dict(),
    "best": dict(
        screened=1500,
        kept=6,
        learned_on=32_000,
        learned_part=2000,
        rounds=6,
        operations=4e13,
        n_trees=2,
        tries=6,
    ),
}
"""What the word for a preset stands for."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A configuration on its way through the stages."""

    configuration: Configuration
    setting: Setting
    error: float
    seconds: float
    metric: Metric = IDENTITY
    rounds: int = 0
    outputs: FloatArray | None = None  # for rows that made neither model nor metric
    rows: IntArray | None = None  # which rows these are
    crossed: FloatArray | None = None  # the same, settings and rounds chosen by other folds
    loss: float = np.inf  # by the judge
    stage: str = "screening"


@dataclass(eq=False)
class TableRun:
    """What the stages of a fit share, and what they have found so far.

    Attributes
    ----------
    problem : Problem
    ask : TableSettings
    clock : Clock
    tell : callable
    judge : Judge
    folds : int array of shape (n,)
    random : Generator
    everything : AllRows or None
        Where the problem is a sample: all rows.
    found : list of Candidate
        Configurations with a setting, as far as the last finished stage knows them.
    dropped : list of Candidate
        What was left behind.
    learned : int array or None
        Rows that made a metric, where others did not.
    fitted : list of (Candidate, PartsModel, array of shape (n, k))
        Models of all rows with their out-of-sample outputs.
    best : float
        The smallest loss so far.
    note : str
        Why the model keeps no rows, where it does not.
    """

    problem: Problem
    ask: TableSettings
    clock: Clock
    tell: Tell
    judge: Judge
    folds: IntArray
    random: np.random.Generator
    everything: AllRows | None = None
    found: list[Candidate] = field(default_factory=list)
    dropped: list[Candidate] = field(default_factory=list)
    learned: IntArray | None = None
    fitted: list[tuple[Candidate, PartsModel, FloatArray]] = field(default_factory=list)
    best: float = np.inf
    note: str = ""
    lock: Any = field(default_factory=Lock)

    def side_by_side(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Apply work to items on the threads of the run; an error ends all of it soon."""
        return run_blocks(work, items, self.ask.engine.side_by_side, on_error=self.clock.stop)

    def begin(self, stage: str, what: str, done: int, planned: int) -> None:
        """Report what is tried next."""
        best = f", best loss so far {self.best:.4g}" if np.isfinite(self.best) else ""
        text = f"{stage}: {what}, {done + 1} of {planned}{best}, {self.clock.spent():.1f} s"
        with self.lock:
            self.tell({"stage": stage, "text": text, "trying": what, **self._facts(done, planned)})

    def judged(self, candidate: Candidate) -> Candidate:
        """Return a candidate with its loss, which is the best one so far or not."""
        assert candidate.outputs is not None
        assert candidate.rows is not None
        outputs = candidate.outputs if candidate.crossed is None else candidate.crossed
        loss = float(self.judge.loss(outputs, candidate.rows))
        with self.lock:
            self.best = min(self.best, loss if np.isfinite(loss) else np.inf)
        return replace(candidate, loss=loss)

    def _facts(self, done: int, planned: int) -> dict[str, Any]:
        best = self.best if np.isfinite(self.best) else None
        elapsed = self.clock.spent()
        return {"n_evaluations": done, "planned": planned, "best_loss": best, "elapsed": elapsed}

    def ordered(self, candidates: list[Candidate]) -> list[Candidate]:
        """Return candidates, the best first: by the judge's loss, or by squared errors."""
        if self.judge.decides:
            return sorted(candidates, key=lambda c: (not np.isfinite(c.loss), c.loss, c.error))
        return sorted(candidates, key=lambda c: c.error)

    def rule(self, **others: Any) -> StackRule:
        """Return how models are stacked."""
        return StackRule(loss=self.judge.loss if self.judge.decides else None, **others)
