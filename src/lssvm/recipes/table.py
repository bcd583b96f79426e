"""The model for tables: screen, learn metrics, fit exact parts, stack.

Read `fit_table` from top to bottom; every stage is a function below it. All stages see numbers
only: one matrix for each way of preparing the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.threads import run_blocks
from lssvm.kernels import IDENTITY, Metric, distances, fill_distances
from lssvm.parts import PartsJob, PartsModel, Rows, Setting, fit_leaf, fit_many, fit_parts
from lssvm.parts.leaf import weighted_error
from lssvm.recipes.clock import Clock
from lssvm.recipes.configurations import INPUTS, KERNELS, Configuration, Inputs, Member
from lssvm.recipes.stacking import cross_stack, stack_weights
from lssvm.solvers import ExactPath

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Tell = Callable[[dict[str, Any]], None]


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
    threads : int
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
    threads: int = 1
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

SMALL = 2500
"""Below as many rows outputs of metrics come from folds, above from other rows."""

_FOLDS = 5
_CS = tuple(10.0 ** np.arange(-2.0, 4.51, 0.5))
_WIDTHS = (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # times the inverse median distance
_FIRST = 4000  # rows of the first round of a metric
_GRADIENTS = 6000  # rows at which gradients are taken
_FEW = 1000  # rows below which a metric has to be much better
_ENOUGH = 50  # rows below which no metric is tried
_PATH_ROWS = 400  # up to as many rows one eigendecomposition gives all C


@dataclass(frozen=True, eq=False)
class Problem:
    """Numbers to learn from.

    Attributes
    ----------
    inputs : mapping from "standardised", "quantiles" to arrays of shape (n, d)
    Y : array of shape (n, k)
        Targets: -1 and 1 for every class, or centred numbers of variance 1.
    weight : array of shape (n,)
    labels : int array of shape (n,) or None
        Rows of one label are left out together.
    classes : int array of shape (n,) or None
        Class numbers, so that samples are stratified.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.recipes import Problem
    >>> Problem({"standardised": np.ones((4, 1))}, np.ones((4, 1)), np.ones(4)).n
    4
    """

    inputs: Mapping[Inputs, FloatArray]
    Y: FloatArray
    weight: FloatArray
    labels: IntArray | None = None
    classes: IntArray | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.Y)

    def rows(
        self, inputs: Inputs, metric: Metric = IDENTITY, chosen: IntArray | None = None
    ) -> Rows:
        """Return (some of) the rows mapped by a metric."""
        at: Any = slice(None) if chosen is None else chosen
        labels = None if self.labels is None else self.labels[at]
        X = metric.apply(self.inputs[inputs][at])
        return Rows(X, self.Y[at], self.weight[at], labels)

    def merged(self) -> Problem:
        """Return the problem with copies of a row as one row of their weight, in a fixed order.

        So a weight of 2 is the row twice, and the order of the rows changes nothing. Copies have
        equal inputs and targets. Where rows of equal inputs have different targets and fewer than
        half of the rows differ (a few categories), repeats are observations of their own and stay.
        """
        own = [self.Y] if self.labels is None else [self.Y, self.labels[:, None]]
        inputs = row_numbers(np.column_stack(list(self.inputs.values())))
        place = row_numbers(np.column_stack([inputs[:, None], *own]))
        first = np.unique(place, return_index=True)[1]
        n_inputs, n_pairs = int(inputs.max()) + 1, len(first)
        if 2 * n_inputs < self.n and n_pairs > n_inputs:
            order = np.argsort(place, kind="stable").astype(np.intp)
            return subset(self, order)
        weight = np.asarray(np.bincount(place, self.weight), dtype=np.float64)
        return replace(subset(self, first.astype(np.intp)), weight=weight)


@dataclass(frozen=True)
class Trial:
    """A line of the table of what was tried.

    Attributes
    ----------
    configuration : Configuration
    rounds : int
        Of the metric.
    error : float
        Mean squared error on rows that were not seen, relative to that of the mean.
    weight : float
        In the stack; 0 for what is not part of it.
    seconds : float
    stage : str
        The last stage it reached: "screening", "metric" or "all rows".

    Examples
    --------
    >>> from lssvm.recipes import Configuration, Trial
    >>> Trial(Configuration("quantiles", "laplacian"), 1, 0.2, 0.0, 0.1, "metric").stage
    'metric'
    """

    configuration: Configuration
    rounds: int
    error: float
    weight: float
    seconds: float
    stage: str


@dataclass(frozen=True, eq=False)
class TableFit:
    """A fitted model for tables.

    Attributes
    ----------
    members : tuple of Member
        What is stacked.
    trials : tuple of Trial
    held_out : array of shape (n, k)
        Stacked outputs of rows by models that had not seen them; NaN where there is none.
    part_size : int

    Examples
    --------
    >>> from lssvm.recipes import TableFit
    >>> list(TableFit.__dataclass_fields__)
    ['members', 'trials', 'held_out', 'part_size']
    """

    members: tuple[Member, ...]
    trials: tuple[Trial, ...]
    held_out: FloatArray
    part_size: int

    def outputs(self, inputs: Mapping[Inputs, FloatArray], *, threads: int = 1) -> FloatArray:
        """Return the stacked outputs (n, k) for prepared inputs."""
        total: FloatArray | None = None
        for member in self.members:
            X = member.metric.apply(inputs[member.configuration.inputs])
            values = member.weight * member.model.outputs(X, threads=threads)
            total = values if total is None else total + values
        assert total is not None
        return total

    def local_error(self, inputs: Mapping[Inputs, FloatArray]) -> FloatArray:
        """Return the stack's root mean squared error in the part of every row, shape (n,)."""
        errors, weights = [], []
        for member in self.members:
            X = member.metric.apply(inputs[member.configuration.inputs])
            errors.append(member.model.local_error(X))
            weights.append(max(member.weight, 1e-12))
        return np.average(errors, axis=0, weights=weights)


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


def fit_table(problem: Problem, ask: TableSettings, clock: Clock, tell: Tell) -> TableFit:
    """Fit the model for tables.

    Parameters
    ----------
    problem : Problem
    ask : TableSettings
    clock : Clock
    tell : callable
        Called with a dict for every step: its stage, what is tried, the best error so far.

    Returns
    -------
    TableFit

    Notes
    -----
    1. Every configuration is screened by leave-one-out on some rows.
    2. The best ones, one of every kernel among them, learn a metric on some rows; the number of
       rounds is what other rows say. Small data ask folds, and need a clear gain.
    3. Those that the stack of judged outputs uses are fitted to all rows, exactly or in parts.
    4. Weights are non-negative least squares on leave-one-out outputs of rows that made no metric.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.recipes import Problem, TableSettings, fit_table
    >>> from lssvm.recipes.clock import Clock
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 3))
    >>> problem = Problem({"standardised": X, "quantiles": X}, np.sin(X[:, :1]), np.ones(120))
    >>> fit = fit_table(problem, TableSettings.preset("fast"), Clock(), lambda event: None)
    >>> error = np.mean((fit.outputs({"standardised": X, "quantiles": X}) - np.sin(X[:, :1]))**2)
    >>> bool(error < 0.05)
    True
    """
    random = np.random.default_rng(ask.seed)
    folds = deal(problem, _FOLDS, random)
    found = screen(problem, folds, ask, clock, tell, random)
    if problem.n < SMALL:
        return fit_small(problem, found, folds, ask, clock, tell)
    return fit_large(problem, found, folds, ask, clock, tell, random)


# --- screening -----------------------------------------------------------------------------------


def screen(
    problem: Problem,
    folds: IntArray,
    ask: TableSettings,
    clock: Clock,
    tell: Tell,
    random: np.random.Generator,
) -> list[Candidate]:
    """Return all configurations with the setting that leave-one-out on some rows prefers."""
    chosen = sample_rows(problem, min(ask.screened, problem.n), random)
    sets = distinct(problem, ask.configurations)

    def work(configuration: Configuration) -> Candidate:
        begin = clock.now()
        rows = problem.rows(configuration.inputs, chosen=chosen)
        candidate = tune(rows, configuration, folds[chosen])
        return replace(candidate, seconds=clock.now() - begin)

    found = run_blocks(work, sets, ask.threads)
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


def sample_rows(problem: Problem, size: int, random: np.random.Generator) -> IntArray:
    """Return sorted numbers of ``size`` rows, classes in proportion."""
    n = problem.n
    if size >= n:
        return np.arange(n, dtype=np.intp)
    order = random.permutation(n)
    if problem.classes is not None:
        # Every class in turn: its j-th row of N_c comes at the place (j + u) / N_c.
        place = np.empty(n)
        for c in np.unique(problem.classes):
            members = order[problem.classes[order] == c]
            place[members] = (np.arange(len(members)) + random.uniform()) / len(members)
        order = np.argsort(place, kind="stable")
    return np.sort(order[:size]).astype(np.intp)


def say(tell: Tell, clock: Clock, stage: str, found: list[Candidate]) -> None:
    """Report the best candidate so far."""
    best = min(found, key=lambda c: c.error)
    text = f"{stage}: {best.configuration} is best of {len(found)}, error {best.error:.4g}"
    tell({"stage": stage, "text": f"{text}, {clock.spent():.1f} s", "best_loss": best.error})


# --- small data ----------------------------------------------------------------------------------


def fit_small(
    problem: Problem,
    found: list[Candidate],
    folds: IntArray,
    ask: TableSettings,
    clock: Clock,
    tell: Tell,
) -> TableFit:
    """Fit all configurations exactly; add those with a metric where folds say that it pays."""
    refined = [found[0]] if clock.over(0.5) else found

    def whole(candidates: list[Candidate]) -> list[tuple[Candidate, PartsModel]]:
        begin = clock.now()
        jobs = [
            PartsJob(
                problem.rows(c.configuration.inputs, c.metric),
                c.configuration.distance,
                c.setting,
                problem.n,
            )
            for c in candidates
        ]
        tries = ask.tries if problem.n > ask.screened else 1
        models = fit_many(jobs, tries=tries, threads=ask.threads)
        took = (clock.now() - begin) / max(len(candidates), 1)
        done = []
        for c, model in zip(candidates, models, strict=True):
            leaf = model.cuts[0].leaves[0]
            new = replace(c, setting=leaf.setting, error=leaf.error, seconds=c.seconds + took)
            done.append((replace(new, stage="all rows"), model))
        return done

    fitted = whole(refined)
    outputs = [model.left_out(problem.n) for _, model in fitted]
    rest = [c for c in found if not any(c is r for r in refined)]
    if ask.rounds and problem.n >= _ENOUGH and not clock.over(0.3):
        best = sorted((c for c, _ in fitted), key=lambda c: c.error)[: ask.kept]

        def rounds(candidate: Candidate) -> Candidate | None:
            return learn_in_folds(problem, candidate, folds, ask, clock)

        better = [c for c in run_blocks(rounds, best, ask.threads) if c is not None]
        say(tell, clock, "metric", [c for c, _ in fitted] + better)
        for candidate, (_, model) in zip(better, whole(better), strict=True):
            assert candidate.judged is not None
            fitted.append((replace(candidate, stage="all rows"), model))
            outputs.append(candidate.judged)
    return assemble(problem, fitted, outputs, rest, folds, problem.n, clock, tell)


def deal(problem: Problem, n_folds: int, random: np.random.Generator) -> IntArray:
    """Return the fold of every row: classes in proportion, rows that belong together share one."""
    first = next(iter(problem.inputs))
    repeats = problem.rows(first).repeats()
    folds = np.empty(problem.n, dtype=np.intp)
    order = random.permutation(problem.n)
    if problem.classes is not None:
        order = order[np.argsort(problem.classes[order], kind="stable")]
    folds[order] = np.arange(problem.n) % n_folds
    for group in repeats.members:
        folds[group] = folds[group[0]]
    return folds


def learn_in_folds(
    problem: Problem, candidate: Candidate, folds: IntArray, ask: TableSettings, clock: Clock
) -> Candidate | None:
    """Return the candidate with a metric, or None where folds with their own do not gain clearly.

    Every fold's outputs come from a metric and a model that have not seen its rows.
    """
    begin = clock.now()
    losses: list[FloatArray] = []  # of every round, by row
    outputs: list[FloatArray] = []
    state = [(candidate.metric, candidate.setting)] * _FOLDS
    for done in range(ask.rounds + 1):
        held = np.empty(problem.Y.shape)
        for v in range(_FOLDS):
            inside, outside = np.flatnonzero(folds == v), np.flatnonzero(folds != v)
            metric, setting = state[v]
            tries = 1 if not done else 3
            model = one_round(problem, candidate, metric, setting, outside, tries)
            new = problem.rows(candidate.configuration.inputs, metric, inside)
            held[inside] = model.outputs(new.X)
            if done < ask.rounds:
                learned = candidate.configuration.learn_metric(model, metric, at_most=_GRADIENTS)
                state[v] = learned, rescaled(problem, candidate, model, metric, learned, outside)
        outputs.append(held)
        losses.append(((problem.Y - held) ** 2).sum(axis=1) * problem.weight)
        if done and losses[-1].mean() > 0.99 * losses[-2].mean():
            break
        if clock.over(0.6):
            break
    table = np.array(losses)
    best = clearly_best(table)
    if not best:
        return None
    crossed = np.empty(problem.Y.shape)
    for v in range(_FOLDS):
        inside = folds == v
        crossed[inside] = outputs[clearly_best(table[:, ~inside])][inside]
    every = np.arange(problem.n, dtype=np.intp)
    metric, setting = candidate.metric, candidate.setting
    for done in range(best):
        tries = 1 if not done else 3
        model = one_round(problem, candidate, metric, setting, every, tries)
        learned = candidate.configuration.learn_metric(model, metric, at_most=_GRADIENTS)
        setting = rescaled(problem, candidate, model, metric, learned, every)
        metric = learned
    return replace(
        candidate,
        metric=metric,
        setting=setting,
        rounds=best,
        error=float(losses[best].sum() / problem.weight.sum()),
        judged=outputs[best],
        crossed=crossed,
        seconds=candidate.seconds + clock.now() - begin,
        stage="metric",
    )


def clearly_best(losses: FloatArray) -> int:
    """Return the round of the smallest loss, or 0 where its gain over no metric is not clear.

    Parameters
    ----------
    losses : array of shape (rounds + 1, n)
        Of every row after every round.
    """
    n = losses.shape[1]
    best = int(np.argmin(losses.mean(axis=1)))
    gain = losses[0] - losses[best]
    wanted = (2.5 if n < _FEW else 1.0) * gain.std() / np.sqrt(n)
    least = 2.0 / np.sqrt(n) * losses[0].mean() if n < _FEW else 0.0
    return best if gain.mean() > max(wanted, least) else 0


def one_round(
    problem: Problem,
    candidate: Candidate,
    metric: Metric,
    setting: Setting,
    chosen: IntArray,
    tries: int,
    part_size: int | None = None,
) -> PartsModel:
    """Fit the models of some rows under a metric; without a part size one exact model."""
    rows = problem.rows(candidate.configuration.inputs, metric, chosen)
    size = len(chosen) if part_size is None else part_size
    return fit_parts(rows, candidate.configuration.distance, setting, part_size=size, tries=tries)


def rescaled(
    problem: Problem,
    candidate: Candidate,
    model: PartsModel,
    metric: Metric,
    learned: Metric,
    chosen: IntArray,
) -> Setting:
    """Return the mean setting of a model's parts for a new metric: the same relative width."""
    some = chosen[:: max(1, len(chosen) // 300)]
    kind = candidate.configuration.distance
    medians = []
    for m in (metric, learned):
        X = problem.rows(candidate.configuration.inputs, m, some).X
        medians.append(median_of(distances(X, X, kind)))
    middle = middle_setting(model)
    return Setting(middle.C, middle.gamma * medians[0] / medians[1])


def middle_setting(model: PartsModel) -> Setting:
    """Return the geometric mean of the settings of a model's parts."""
    logs = [
        [np.log(leaf.setting.C), np.log(leaf.setting.gamma)]
        for cut in model.cuts
        for leaf in cut.leaves
    ]
    C, gamma = np.exp(np.mean(logs, axis=0))
    return Setting(float(C), float(gamma))


# --- large data ----------------------------------------------------------------------------------


def fit_large(
    problem: Problem,
    found: list[Candidate],
    folds: IntArray,
    ask: TableSettings,
    clock: Clock,
    tell: Tell,
    random: np.random.Generator,
) -> TableFit:
    """Learn metrics on some rows, judge them on others, fit what the stack needs to all rows."""
    count = min(ask.judged_on, problem.n // 4)
    judge = sample_rows(problem, count, random)
    rest = np.setdiff1d(np.arange(problem.n, dtype=np.intp), judge)
    learn = rest[sample_rows(subset(problem, rest), min(ask.learned_on, len(rest)), random)]
    # Screening saw few rows and no metric: all configurations get one round on some of the rows,
    # the best of them further rounds on all that may be learned on.
    first = learn[:: -(-len(learn) // _FIRST)]
    tried = found[:1] if clock.over(0.3) else found
    dropped = [c for c in found if not any(c is t for t in tried)]
    few = replace(ask, rounds=min(ask.rounds, 1))
    looked = run_blocks(
        lambda c: learn_on_rows(problem, c, first, judge, few, clock), tried, ask.threads
    )
    say(tell, clock, "metric", looked)
    kept = one_of_every_kernel(looked, ask.kept + 1)
    dropped += [c for c in looked if not any(c is k for k in kept)]
    if not clock.over(0.4):
        kept = run_blocks(
            lambda c: learn_on_rows(problem, c, learn, judge, ask, clock), kept, ask.threads
        )
    judged = sorted(kept, key=lambda c: c.error)
    say(tell, clock, "metric", judged)
    chosen = needed(problem, judged, judge, ask.kept)
    dropped += [c for c in judged if not any(c is k for k in chosen)]
    part_size = choose_part_size(problem, len(chosen), ask, clock)
    begin = clock.now()
    if clock.over(0.8):
        dropped, chosen = dropped + chosen[1:], chosen[:1]
    jobs = [
        PartsJob(
            problem.rows(c.configuration.inputs, c.metric),
            c.configuration.distance,
            c.setting,
            part_size,
            ask.n_trees,
        )
        for c in chosen
    ]
    models = fit_many(
        jobs,
        tries=ask.tries,
        random=random,
        stop=lambda: clock.over(0.9),
        threads=ask.threads,
    )
    took = (clock.now() - begin) / len(chosen)
    fitted = [
        (replace(c, seconds=c.seconds + took, stage="all rows"), model)
        for c, model in zip(chosen, models, strict=True)
    ]
    outputs = [model.left_out(problem.n) for _, model in fitted]
    if any(c.rounds for c, _ in fitted):  # rows that made a metric are no judges of it
        for values in outputs:
            values[learn] = np.nan
    return assemble(problem, fitted, outputs, dropped, folds, part_size, clock, tell)


def subset(problem: Problem, rows: IntArray) -> Problem:
    """Return the problem of some rows."""
    return Problem(
        {name: X[rows] for name, X in problem.inputs.items()},
        problem.Y[rows],
        problem.weight[rows],
        None if problem.labels is None else problem.labels[rows],
        None if problem.classes is None else problem.classes[rows],
    )


def row_numbers(table: FloatArray) -> IntArray:
    """Return a number for every row (n,): equal rows share it, others are in a fixed order."""
    flat = np.ascontiguousarray(table + 0.0)  # -0 is 0
    if not flat.shape[1]:
        return np.zeros(len(flat), dtype=np.intp)
    keys = flat.view(np.dtype((np.void, flat.dtype.itemsize * flat.shape[1]))).ravel()
    return np.unique(keys, return_inverse=True)[1].ravel().astype(np.intp)


def one_of_every_kernel(found: list[Candidate], size: int) -> list[Candidate]:
    """Return the best candidate of every kernel and then the best of the rest.

    Screening sees few rows: it ranks inputs well, kernels less so.
    """
    ordered = sorted(found, key=lambda c: c.error)
    seen: set[str] = set()
    first: list[Candidate] = []
    rest: list[Candidate] = []
    for candidate in ordered:
        new = candidate.configuration.kernel not in seen
        (first if new else rest).append(candidate)
        seen.add(candidate.configuration.kernel)
    return (first + rest)[:size]


def learn_on_rows(
    problem: Problem,
    candidate: Candidate,
    learn: IntArray,
    judge: IntArray,
    ask: TableSettings,
    clock: Clock,
) -> Candidate:
    """Learn a metric on some rows in rounds; keep the round that is best for the others.

    Begins at the round that the candidate has reached.
    """
    begin = clock.now()
    configuration = candidate.configuration
    best, error = candidate, np.inf
    metric, setting = candidate.metric, candidate.setting
    for rounds in range(candidate.rounds, ask.rounds + 1):
        tries = 6 if candidate.stage == "screening" and not rounds else 3
        model = one_round(problem, candidate, metric, setting, learn, tries, ask.learned_part)
        new = problem.rows(configuration.inputs, metric, judge)
        values = model.outputs(new.X)
        now = weighted_error(new.Y, values, new.weight)
        if now < error:
            best = replace(
                candidate,
                setting=middle_setting(model),
                error=now,
                metric=metric,
                rounds=rounds,
                judged=values,
                stage="metric",
            )
        cost = len(learn) * min(ask.learned_part, len(learn)) ** 2 * 2.0
        took = (clock.now() - begin) / (rounds - candidate.rounds + 1)
        clock.measured(cost, took / ask.threads)
        last = now > 0.995 * error or rounds == ask.rounds
        error = min(now, error)
        if last or clock.over(0.5):
            break
        learned = configuration.learn_metric(model, metric, at_most=_GRADIENTS)
        setting = rescaled(problem, candidate, model, metric, learned, learn)
        metric = learned
    return replace(best, seconds=candidate.seconds + clock.now() - begin)


def needed(
    problem: Problem, judged: list[Candidate], judge: IntArray, size: int
) -> list[Candidate]:
    """Return the candidates that the stack of judged outputs uses most, at most ``size``."""
    outputs = [c.judged for c in judged if c.judged is not None]
    if len(outputs) < len(judged) or len(judged) == 1:
        return judged[:size]
    weights = stack_weights(outputs, problem.Y[judge], problem.weight[judge])
    order = np.argsort(-weights, kind="stable")[:size]
    return [judged[i] for i in order if weights[i] > 0.02 * weights.sum()]


def choose_part_size(
    problem: Problem, n_configurations: int, ask: TableSettings, clock: Clock
) -> int:
    """Return how many rows a part may have: n L^2 (2/3) operations for every try."""
    if ask.part_size is not None:
        return min(ask.part_size, ask.largest)
    # More outputs are worth more time: their peers build trees for every class.
    wanted = ask.operations * min(np.sqrt(problem.Y.shape[1]), 4.0)
    operations = clock.affordable(float(wanted), 0.7)
    each = problem.n * (2.0 / 3.0) * ask.tries * ask.n_trees * max(n_configurations, 1)
    return int(min(max(np.sqrt(operations / each), 500.0), ask.largest))


# --- the stack -----------------------------------------------------------------------------------


def assemble(
    problem: Problem,
    fitted: list[tuple[Candidate, PartsModel]],
    outputs: list[FloatArray],
    dropped: list[Candidate],
    folds: IntArray,
    part_size: int,
    clock: Clock,
    tell: Tell,
) -> TableFit:
    """Weigh the fitted configurations by their outputs for rows that they had not seen."""
    plain = np.array([c.rounds == 0 for c, _ in fitted]) if problem.n < _FEW else None
    weights = stack_weights(outputs, problem.Y, problem.weight, plain)
    honest = [
        F if c.crossed is None or len(c.crossed) < problem.n else c.crossed
        for (c, _), F in zip(fitted, outputs, strict=True)
    ]
    held_out = cross_stack(honest, problem.Y, problem.weight, folds, plain)
    members = [
        Member(c.configuration, model, c.metric, c.rounds, float(w))
        for (c, model), w in zip(fitted, weights, strict=True)
        if w > 0
    ]
    spread = weighted_error(
        problem.Y,
        np.broadcast_to(np.average(problem.Y, axis=0, weights=problem.weight), problem.Y.shape),
        problem.weight,
    )
    spread = spread if spread > 0 else 1.0
    trials = [
        Trial(c.configuration, c.rounds, relative(F, problem, spread), float(w), c.seconds, c.stage)
        for (c, _), F, w in zip(fitted, outputs, weights, strict=True)
    ]
    trials += [
        Trial(c.configuration, c.rounds, c.error / spread, 0.0, c.seconds, c.stage) for c in dropped
    ]
    trials.sort(key=lambda t: (-t.weight, t.error))
    tell({"stage": "done", "text": f"done: {len(members)} configurations, {clock.spent():.1f} s"})
    return TableFit(tuple(members), tuple(trials), held_out, part_size)


def relative(outputs: FloatArray, problem: Problem, spread: float) -> float:
    """Return the mean squared error of outputs where they are known, relative to the mean's."""
    good = np.isfinite(outputs).all(axis=1)
    return weighted_error(problem.Y[good], outputs[good], problem.weight[good]) / spread
