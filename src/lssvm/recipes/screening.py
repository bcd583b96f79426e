"""Settings of the recipe for tables, and its first stage: every configuration on some rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.threads import run_blocks
from lssvm.kernels import IDENTITY, Metric, fill_distances
from lssvm.parts import PartsEngine, Rows, Setting, fit_leaf
from lssvm.parts.engine import ONE_THREAD
from lssvm.recipes.clock import Clock
from lssvm.recipes.configurations import INPUTS, KERNELS, Configuration
from lssvm.recipes.problem import Problem, sample_rows
from lssvm.solvers import ExactPath

Tell = Callable[[dict[str, Any]], None]

_CS = tuple(10.0 ** np.arange(-2.0, 4.51, 0.5))
_WIDTHS = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # times the inverse median distance
_PATH_ROWS = 400  # up to as many rows one eigendecomposition gives all C


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
        Configurations that are fitted to all rows.
    learned_on : int
        Rows that a metric is learned on at most, in parts of ``learned_part`` rows.
    learned_part : int
    judged_on : int
        Other rows that judge its rounds, at most.
    rounds : int
        Of the metric, at most; 0 for none.
    operations : float
        What the exact models of all rows may cost; it decides how large parts are.
    part_size : int or None
        Rows of a part at most; None: by ``operations``.
    largest : int
        Rows of a part at most, whatever else is said: what memory allows.
    n_trees : int
    tries : int
        Settings of C and gamma that a part tries.
    engine : PartsEngine
        Who computes.
    seed : int

    Examples
    --------
    >>> from lssvm.recipes import TableSettings
    >>> TableSettings.preset("fast").kept
    2
    """

    configurations: tuple[Configuration, ...] = tuple(
        Configuration(inputs, kernel) for kernel in KERNELS for inputs in INPUTS
    )
    screened: int = 700
    kept: int = 3
    learned_on: int = 16_000
    learned_part: int = 1000
    judged_on: int = 2500
    rounds: int = 4
    operations: float = 2e12
    part_size: int | None = None
    largest: int = 20_000
    n_trees: int = 1
    tries: int = 3
    engine: PartsEngine = ONE_THREAD
    seed: int = 0

    @classmethod
    def preset(cls, name: str, **others: Any) -> TableSettings:
        """Return the values of "fast", "balanced" or "best"."""
        return cls(**(PRESETS[name] | others))


PRESETS: dict[str, dict[str, Any]] = {
    "fast": dict(
        screened=500, kept=2, learned_on=4000, learned_part=500, rounds=2, operations=1e11, tries=2
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
    judged: FloatArray | None = None  # outputs for rows that made no gradient
    crossed: FloatArray | None = None  # leave-one-out outputs, settings chosen by other folds
    stage: str = "screening"


def screen(
    problem: Problem,
    folds: IntArray,
    ask: TableSettings,
    clock: Clock,
    tell: Tell,
    random: np.random.Generator,
) -> list[Candidate]:
    """Return all configurations with the setting that leave-one-out on some rows prefers."""
    size = ask.screened if clock.limit is None else min(ask.screened, int(100 + 60 * clock.limit))
    chosen = sample_rows(problem, min(size, problem.n), random)
    sets = distinct(problem, ask.configurations)
    done: list[Configuration] = []

    def work(configuration: Configuration) -> Candidate | None:
        if done and clock.over(0.25):
            return None
        begin = clock.now()
        rows = problem.rows(configuration.inputs, chosen=chosen)
        candidate = tune(rows, configuration, folds[chosen])
        done.append(configuration)
        return replace(candidate, seconds=clock.now() - begin)

    found = [c for c in run_blocks(work, sets, ask.engine.side_by_side) if c is not None]
    found.sort(key=lambda c: c.error)
    say(tell, clock, "screening", found)
    return found


def distinct(
    problem: Problem, configurations: tuple[Configuration, ...]
) -> tuple[Configuration, ...]:
    """Return the configurations without those whose inputs are equal to ones before them."""
    if set(problem.inputs) >= set(INPUTS):
        same = np.array_equal(problem.inputs["standardised"], problem.inputs["quantiles"])
        if same and any(c.inputs == "standardised" for c in configurations):
            return tuple(c for c in configurations if c.inputs == "standardised")
    return tuple(c for c in configurations if c.inputs in problem.inputs)


def tune(rows: Rows, configuration: Configuration, folds: IntArray) -> Candidate:
    """Return C and gamma of the smallest leave-one-out error of an exact model."""
    n = len(rows.X)
    D = fill_distances(rows.X, configuration.distance, np.empty((n, n)))
    median = median_of(D)
    if n <= _PATH_ROWS:
        setting, error, crossed = by_paths(rows, D, median, folds)
        return Candidate(configuration, setting, error, 0.0, crossed=crossed)
    start = Setting(10.0, 0.5 / median)
    leaf = fit_leaf(rows, configuration.distance, start, tries=14, D=D)
    return Candidate(configuration, leaf.setting, leaf.error, 0.0)


def by_paths(
    rows: Rows, D: FloatArray, median: float, folds: IntArray
) -> tuple[Setting, float, FloatArray]:
    """Return the best setting of a grid: one eigendecomposition for every width.

    Also its error, and leave-one-out outputs whose setting was chosen without the row's fold: the
    smallest of many errors is too small, these are not.
    """
    settings: list[Setting] = []
    outputs: list[FloatArray] = []
    repeats = rows.repeats()
    for width in _WIDTHS:
        path = ExactPath.of(np.exp(-width / median * D), rows.Y, rows.weight, repeats)
        for C in _CS:
            settings.append(Setting(float(C), width / median))
            outputs.append(path.at(C).left_out)
    losses = np.array([((rows.Y - F) ** 2).sum(axis=1) * rows.weight for F in outputs])
    crossed = np.empty(rows.Y.shape)
    for v in np.unique(folds):
        inside = folds == v
        chosen = int(np.argmin(losses[:, ~inside].sum(axis=1)))
        crossed[inside] = outputs[chosen][inside]
    best = int(np.argmin(losses.sum(axis=1)))
    return settings[best], float(losses[best].sum() / rows.weight.sum()), crossed


def median_of(D: FloatArray) -> float:
    """Return the median distance between different rows (1 where all are equal)."""
    n = len(D)
    step = max(1, n // 300)
    some = D[::step, ::step]
    some = some[some > 0]
    return float(np.median(some)) if len(some) else 1.0


def say(tell: Tell, clock: Clock, stage: str, found: list[Candidate]) -> None:
    """Report the best candidate so far."""
    best = min(found, key=lambda c: c.error)
    text = f"{stage}: {best.configuration} is best of {len(found)}, error {best.error:.4g}"
    tell({"stage": stage, "text": f"{text}, {clock.spent():.1f} s", "best_loss": best.error})
