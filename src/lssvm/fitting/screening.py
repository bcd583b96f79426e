"""The first stages of the fit for tables: configurations are tuned on some rows, and learn metrics.

With few rows the tuning is repeated without each of several folds, for outputs that no choice has
used: see `nested_outputs`. Metrics and warps are learned in rounds, which are compared on rows that
did not learn them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import slices
from lssvm.fitting.record import Scaling
from lssvm.fitting.stacking import mean_and_spread, most_used, on_common_scale, row_losses
from lssvm.fitting.table_record import SCALINGS, Configuration, Problem, number_of
from lssvm.fitting.table_work import FEW, N_FOLDS, Candidate, Work, best_first, clearly_best
from lssvm.kernels import Metric
from lssvm.kernels.radial import distances, fill_distances
from lssvm.local import LocalModel, Rows, Setting, fit_leaf, fit_local
from lssvm.local.leaf import weighted_error
from lssvm.local.model import middle_setting
from lssvm.solvers.exact import ExactPath

C_GRID = 10.0 ** np.arange(-2.0, 4.51, 0.5)
"""Values of C that are screened where one eigendecomposition serves all of them."""

NESTED = 250
"""Number of rows up to which held-out outputs come from nested folds.

With so few rows, the best of hundreds of settings, configurations and weights looks better than it
is, even where every output is a leave-one-out output.
"""

_WIDTHS = (0.5, 0.25, 1.0, 0.125, 2.0, 0.0625, 4.0, 8.0)  # times the inverse median distance
_PATH_ROWS = 250  # up to which one eigendecomposition serves all C
# With few rows a model of nine tenths of them is clearly worse than one of all. For classes that is
# less so, and the smaller a fold, the more the shares of the classes outside give away its own.
_N_OUTER_FOLDS = {"numbers": 30, "classes": 20}
_ENTRIES = 2**22  # numbers in the outputs of a batch of folds
_WARP_MIN_ROWS = 1000  # below which no warp is tried
_FOLD_GRADIENT_ROWS = 600  # at which slopes are taken in every fold, at most
_FEWER_FOLDS = 3  # in which maps are compared from 1,000 rows on


def screen(work: Work) -> list[Candidate]:
    """Return all configurations, each with the setting of its smallest leave-one-out error."""
    problem, settings, clock = work.problem, work.settings, work.clock
    size = settings.screened
    if clock.limit is not None:
        size = min(size, int(100 + 60 * clock.limit))
    chosen = problem.sample(min(size, problem.n), work.random("screening"))
    sets = distinct_configurations(problem, settings.configurations)
    begin = clock.now()
    squares: dict[Scaling, FloatArray] = {}
    out: list[Candidate] = []

    def tuned(numbered: tuple[int, Configuration]) -> Candidate | None:
        number, kind = numbered
        if number and clock.over(0.25):
            return None
        work.report("screening", str(kind), number, len(sets))
        start = clock.now()
        rows = problem.rows(kind.scaling, settings.metric, chosen)
        D = _distances(rows.X, kind, squares)
        known = work.paths.setdefault(kind, []) if len(chosen) == problem.n else None
        candidate = tune(rows, kind, D, work.folds[chosen], lambda: clock.over(0.25), known)
        took = clock.now() - start
        clock.measured(10.0 * len(chosen) ** 3, took / settings.engine.n_workers)
        return work.with_loss(replace(candidate, metric=settings.metric, rows=chosen, seconds=took))

    out = [c for c in work.parallel(tuned, list(enumerate(sets))) if c is not None]
    cost = len(sets) * 10.0 * len(chosen) ** 3 / work.unit(problem.n)
    text = f"{number_of(len(out), 'configuration')} on {len(chosen):,} rows"
    work.step("screening", text, np.nan, cost, begin)
    # Tables without numbers are the same in every scaling, and so are the losses.
    different = {(c.configuration.kernel, float(f"{c.loss:.5g}")): c for c in reversed(out)}
    return best_first(list(different.values()))


def _distances(
    X: FloatArray, kind: Configuration, squares: dict[Scaling, FloatArray]
) -> FloatArray:
    """Return the distances of all pairs; those of Euclidean kernels are computed once."""
    n = len(X)
    if kind.distance == "cityblock":
        return fill_distances(X, "cityblock", np.empty((n, n)))
    if (known := squares.get(kind.scaling)) is None:
        known = squares[kind.scaling] = fill_distances(X, "sqeuclidean", np.empty((n, n)))
    return known if kind.distance == "sqeuclidean" else np.sqrt(known)


def distinct_configurations(
    problem: Problem, configurations: tuple[Configuration, ...]
) -> tuple[Configuration, ...]:
    """Return the configurations without those whose inputs equal those of earlier ones."""
    if set(problem.inputs) >= set(SCALINGS):
        same = np.array_equal(problem.inputs["standardised"], problem.inputs["quantiles"])
        if same and any(c.scaling == "standardised" for c in configurations):
            return tuple(c for c in configurations if c.scaling == "standardised")
    return tuple(c for c in configurations if c.scaling in problem.inputs)


def tune(
    rows: Rows,
    configuration: Configuration,
    D: FloatArray,
    folds: IntArray,
    stop: Callable[[], bool] = lambda: False,
    known: list[ExactPath] | None = None,
) -> Candidate:
    """Return a candidate with the C and gamma of the smallest leave-one-out error.

    The decompositions of the grid, if it is used, are added to ``known``.
    """
    median = median_distance(D)
    if len(D) <= _PATH_ROWS:
        paths = exact_paths(rows, D, median, stop)
        setting, error, nested = tune_on_grid(rows, paths, folds, [] if known is None else known)
        return Candidate(configuration, setting, error, 0.0, outputs=nested, nested=nested)
    start = Setting(10.0, 0.5 / median)
    leaf = fit_leaf(rows, configuration.distance, start, tries=12, stop=stop, D=D, draft=True)
    return Candidate(configuration, leaf.setting, leaf.error, 0.0, outputs=leaf.fit.left_out)


def tune_on_grid(
    rows: Rows, paths: Iterator[tuple[float, ExactPath]], folds: IntArray, known: list[ExactPath]
) -> tuple[Setting, float, FloatArray]:
    """Return the best setting of a grid, with one eigendecomposition for every width.

    Also return its error, which is too small as the smallest of many, and leave-one-out outputs
    whose setting was chosen without the row's fold, whose error is not. The decompositions are
    added to ``known``.
    """
    settings: list[Setting] = []
    left_out: list[FloatArray] = []
    for gamma, path in paths:
        settings += [Setting(float(C), gamma) for C in C_GRID]
        left_out += path.left_out(C_GRID)
        known.append(path)
    outputs = np.array(left_out)  # (settings, n, k)
    losses = ((rows.Y - outputs) ** 2).sum(axis=2) * rows.weight
    best = int(np.argmin(losses.sum(axis=1)))
    nested = choose_by_other_folds(losses, outputs, folds)
    return settings[best], float(losses[best].sum() / rows.weight.sum()), nested


def exact_paths(
    rows: Rows, D: FloatArray, median: float, stop: Callable[[], bool] = lambda: False
) -> Iterator[tuple[float, ExactPath]]:
    """Yield the widths of the grid as gamma, each with the decomposition of its kernel matrix."""
    repeats = rows.repeats()
    for number, width in enumerate(_WIDTHS):
        if number and stop():
            break
        gamma = width / median
        yield gamma, ExactPath.of(np.exp(-gamma * D), rows.Y, rows.weight, repeats)


def choose_by_other_folds(losses: FloatArray, outputs: FloatArray, folds: IntArray) -> FloatArray:
    """Return outputs (n, k), each of the setting that is best for the rows of the other folds.

    Parameters
    ----------
    losses : array of shape (q, n)
        Losses of the rows, for every setting.
    outputs : array of shape (q, n, k)
        Outputs for the rows, for every setting.
    folds : int array of shape (n,)
        Fold of every row.
    """
    nested = np.empty(outputs.shape[1:])
    for v in np.unique(folds):
        inside = folds == v
        chosen = int(np.argmin(losses[:, ~inside].sum(axis=1)))
        nested[inside] = outputs[chosen][inside]
    return nested


def median_distance(D: FloatArray) -> float:
    """Return the median distance between different rows (1 where all are equal)."""
    n = len(D)
    step = max(1, n // 300)
    some = D[::step, ::step]
    some = some[some > 0]
    return float(np.median(some)) if len(some) else 1.0


def nested_outputs(work: Work, learned: list[FloatArray], at_most: int) -> FloatArray | None:
    """Return outputs of rows by stacks that were screened, tuned and weighted without their fold.

    The result is None if there is not enough time.

    Parameters
    ----------
    work : Work
    learned : list of arrays of shape (n, k)
        Held-out outputs of configurations with a metric learned in folds.
    at_most : int
        Configurations without a metric that a stack may use.

    Returns
    -------
    array of shape (n, k)

    Notes
    -----
    All choices are made again from the rows outside of a fold: a setting for each configuration by
    leave-one-out, the configurations that a stack uses, whose outputs have settings of other folds,
    and weights by leave-one-out outputs. One eigendecomposition for every configuration and width,
    that of the screening, serves all folds (`lssvm.solvers.exact.ExactPath.left_out_of_folds`).
    """
    problem = work.problem
    # Not stratified: the shares of the classes outside would give away those of the fold.
    random = np.random.default_rng(work.settings.seed)
    n_folds = _N_OUTER_FOLDS["numbers" if problem.classes is None else "classes"]
    folds = replace(problem, classes=None).folds(n_folds, random)
    sets = distinct_configurations(problem, work.settings.configurations)
    results = work.parallel(lambda c: tune_outside_folds(work, c, folds), sets)
    tuned = [one for one in results if one is not None]
    out = np.full(problem.Y.shape, np.nan)
    scales = []
    for v in np.unique(folds):
        if len(tuned) < len(results) or work.clock.over(0.9):
            return None
        inside, outside = np.flatnonzero(folds == v), np.flatnonzero(folds != v)
        Y, weight = problem.Y[outside], problem.weight[outside]
        chosen = np.arange(len(sets), dtype=np.intp)
        if at_most < len(sets):
            nested = [one.nested[v, outside] for one in tuned]
            rule = work.rule(at_most=at_most)
            chosen = most_used(rule.fit(nested, Y, weight, outside).weights)
        outputs = [tuned[i].outputs[v] for i in chosen] + learned
        plain = np.arange(len(outputs)) < len(chosen) if learned else None
        rule = work.rule(plain=plain)
        stack = rule.fit([F[outside] for F in outputs], Y, weight, outside)
        out[inside] = stack.outputs([F[inside] for F in outputs])
        outer = stack.outputs([F[outside] for F in outputs])
        if np.isfinite(outer).any():
            scales.append((inside, *mean_and_spread(outer, weight)))
    return on_common_scale(out, scales) if scales and rule.common_scale else out


@dataclass(frozen=True, eq=False)
class OuterFoldOutputs:
    """Outputs of a configuration that was tuned without one fold, for every fold.

    Attributes
    ----------
    outputs : array of shape (f, n, k)
        With the setting that is best for the rows outside of the fold: for rows of the fold by the
        model without it, for every other row by the model without the fold and that row.
    nested : array of shape (f, n, k)
        The same for rows outside, with the setting that is best for the rows outside of both this
        fold and the row's fold in ``work.folds``.
    """

    outputs: FloatArray
    nested: FloatArray


def tune_outside_folds(
    work: Work, configuration: Configuration, folds: IntArray
) -> OuterFoldOutputs | None:
    """Tune a configuration without each of the folds (n,), numbered from 0; None: no time left."""
    problem = work.problem
    paths = work.paths.pop(configuration, [])
    if len(paths) < len(_WIDTHS):
        rows = problem.rows(configuration.scaling, work.settings.metric)
        D = fill_distances(rows.X, configuration.distance, np.empty((problem.n, problem.n)))
        paths = [path for _, path in exact_paths(rows, D, median_distance(D))]
    f = int(folds.max()) + 1
    tuned = OuterFoldOutputs(*(np.empty((f, *problem.Y.shape)) for _ in range(2)))
    batch_size = max(1, _ENTRIES // (len(paths) * len(C_GRID) * problem.Y.size))
    batches = list(folds_of_equal_size(folds, batch_size))
    # One pass over the paths for all folds, where their outputs are few enough.
    for some in [batches] if f <= batch_size else [[batch] for batch in batches]:
        found: list[list[FloatArray]] = [[] for _ in some]
        for path in paths:
            if work.clock.over(0.8):
                return None
            left_out = path.left_out_of_folds(C_GRID, [members for _, members in some])
            for parts, part in zip(found, left_out, strict=True):
                parts.append(part)
        for (numbers, _), parts in zip(some, found, strict=True):
            outputs = np.concatenate(parts)
            losses = ((problem.Y - outputs) ** 2).sum(axis=3) * problem.weight  # (settings, g, n)
            for g, v in enumerate(numbers):
                outside = folds != v
                L, F = losses[:, g, outside], outputs[:, g]
                tuned.outputs[v] = F[int(np.argmin(L.sum(axis=1)))]
                tuned.nested[v, outside] = choose_by_other_folds(
                    L, F[:, outside], work.folds[outside]
                )
    return tuned


def folds_of_equal_size(folds: IntArray, batch_size: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield numbers (g,) and rows (g, s) of folds of one size, at most ``batch_size`` together."""
    size = np.bincount(folds)
    for s in np.unique(size[size > 0]):
        same = np.flatnonzero(size == s)
        for part in slices(len(same), batch_size):
            numbers = same[part]
            yield numbers, np.array([np.flatnonzero(folds == v) for v in numbers])


# --- 2. metrics and warps ------------------------------------------------------------------------


def next_map(
    work: Work,
    candidate: Candidate,
    model: LocalModel,
    metric: Metric,
    chosen: IntArray,
    map_kind: str,
    at_most: int,
) -> tuple[Metric, Setting]:
    """Return the metric or warp learned from the slopes of a model, and a setting for it.

    The setting is the mean of those of the model's leaves, with gamma changed so that the width
    stays the same relative to the median distance of the chosen rows.
    """
    kind, settings = candidate.configuration, work.settings
    raw = work.problem.inputs[kind.scaling][chosen]
    learned = kind.learn_metric(
        model,
        metric,
        settings.engine.single_threaded(),
        raw,
        at_most=at_most,
        shape=settings.shape,
        how=map_kind,
        ties=settings.ties,
    )
    some = chosen[:: max(1, len(chosen) // 300)]
    rows = [work.problem.rows(kind.scaling, each, some).X for each in (metric, learned)]
    before, after = (median_distance(distances(X, X, kind.distance)) for X in rows)
    middle = middle_setting(model.leaves)
    return learned, Setting(middle.C, middle.gamma * float(np.clip(before / after, 1e-6, 1e6)))


def fit_draft(
    work: Work,
    candidate: Candidate,
    metric: Metric,
    setting: Setting,
    chosen: IntArray,
    leaf_size: int,
    tries: int,
) -> LocalModel:
    """Fit models to some rows under a metric for a comparison: they are not kept."""
    return fit_local(
        work.problem.rows(candidate.configuration.scaling, metric, chosen),
        candidate.configuration.distance,
        setting,
        leaf_size=leaf_size,
        tries=tries,
        stop=lambda: work.clock.over(0.6),
        engine=work.settings.engine.single_threaded(),
        draft=True,
        held_out=False,
    )


def scored_draft(
    work: Work, candidate: Candidate, learn: IntArray, scored: IntArray, tries: int
) -> tuple[LocalModel, FloatArray]:
    """Return a draft of some rows under the candidate's metric, and its outputs for others."""
    problem, clock, settings = work.problem, work.clock, work.settings
    leaf_size, start = min(settings.learned_leaf, settings.largest), clock.now()
    metric = candidate.metric
    model = fit_draft(work, candidate, metric, candidate.setting, learn, leaf_size, tries)
    X = problem.rows(candidate.configuration.scaling, metric, scored).X
    values = model.outputs(X, engine=settings.engine.single_threaded())
    cost = len(learn) * min(leaf_size, len(learn)) ** 2
    clock.measured(cost, (clock.now() - start) / settings.engine.n_workers)
    return model, values


@dataclass(frozen=True, eq=False)
class Rounds:
    """Rounds of a metric or warp that are learned on some rows and compared on others.

    Attributes
    ----------
    best, last : Candidate
        The round with the smallest error on the other rows, and the last one.
    best_model, model : LocalModel
        What was fitted to the rows in these rounds, as drafts.
    failures : int
        Rounds at the end that gained too little.
    steps : tuple of int
        What the rounds are recorded as.
    """

    best: Candidate
    best_model: LocalModel
    last: Candidate
    model: LocalModel
    failures: int = 0
    steps: tuple[int, ...] = ()

    def from_best(self) -> Rounds:
        """Return the state after the best round, from which another map may go on."""
        return Rounds(self.best, self.best_model, self.best, self.best_model)


def begin_rounds(work: Work, candidate: Candidate, learn: IntArray, scored: IntArray) -> Rounds:
    """Fit a candidate to some rows, with the metric that it has, and compare it on others."""
    begin = work.clock.now()
    tries = 6 if candidate.stage == "screening" and not candidate.rounds else 3
    model, last = scored_round(work, candidate, candidate.rounds, learn, scored, tries)
    text = f"{candidate.configuration}, models of {len(learn):,} rows"
    work.step("metric", text, np.nan, cost_of_draft(work, learn), begin)
    best = work.with_loss(replace(last, seconds=candidate.seconds + work.clock.now() - begin))
    return Rounds(best, model, last, model)


def scored_round(
    work: Work, candidate: Candidate, number: int, learn: IntArray, scored: IntArray, tries: int
) -> tuple[LocalModel, Candidate]:
    """Return a draft of some rows, and the candidate with its error and outputs for others."""
    model, outputs = scored_draft(work, candidate, learn, scored, tries)
    problem = work.problem
    return model, replace(
        candidate,
        setting=middle_setting(model.leaves),
        error=weighted_error(problem.Y[scored], outputs, problem.weight[scored]),
        rounds=number,
        outputs=outputs,
        rows=scored,
        nested=None,
        stage="metric",
    )


def cost_of_draft(work: Work, learn: IntArray) -> float:
    """Return the cost in units of models of some rows in the leaves that metrics are learned in."""
    leaf_size = min(work.settings.learned_leaf, work.settings.largest, len(learn))
    return len(learn) * leaf_size**2 / work.unit(work.problem.n)


def learn_on_rows(
    work: Work, begun: Rounds, learn: IntArray, scored: IntArray, map_kind: str, rounds: int
) -> Rounds:
    """Go on with a metric or warp of some rows while rounds gain enough on the other ones."""
    clock, settings = work.clock, work.settings
    begin, found, kind = clock.now(), begun, begun.best.configuration
    while (
        found.last.rounds < begun.last.rounds + rounds
        and found.failures <= settings.patience
        and not clock.over(0.5)
    ):
        since = clock.now()
        metric, setting = next_map(
            work, found.last, found.model, found.last.metric, learn, map_kind, settings.slopes
        )
        number, before = found.last.rounds + 1, found.best.error
        current = replace(found.last, metric=metric, setting=setting)
        model, last = scored_round(work, current, number, learn, scored, 3)
        gain = 1.0 - last.error / before if before > 0 else np.nan
        text = f"{kind}, {map_kind}, round {number}"
        step = work.step("metric", text, gain, cost_of_draft(work, learn), since)
        enough = last.error <= (1.0 - settings.gain) * before
        failures = 0 if enough else found.failures + 1
        steps = (*found.steps, step)
        found = replace(found, last=last, model=model, failures=failures, steps=steps)
        if last.error < before:
            found = replace(found, best=last, best_model=model)
    if found is begun:
        return found
    work.keep(found.steps, len(found.steps) - (found.last.rounds - found.best.rounds))
    seconds = begun.best.seconds + clock.now() - begin
    return replace(found, best=work.with_loss(replace(found.best, seconds=seconds)))


def learn_in_folds(
    work: Work, candidate: Candidate, map_kind: str
) -> tuple[Candidate | None, list[int]]:
    """Return the candidate with a metric or warp, or None where folds do not gain clearly.

    Also return the numbers of the steps that the rounds are recorded as. The outputs of a fold come
    from a map and a model that were learned without its rows. When time runs out, the candidate is
    None.
    """
    problem, folds, settings, clock = work.problem, work.folds, work.settings, work.clock
    kind, begin = candidate.configuration, clock.now()
    engine, n = settings.engine.single_threaded(), problem.n
    losses: list[FloatArray] = []  # of every round, by row
    outputs: list[FloatArray] = []
    state = [(candidate.metric, candidate.setting)] * N_FOLDS
    factors = []  # of every round: how its setting changes with the map
    models: dict[int, LocalModel] = {}  # of the last round, by fold
    steps: list[int] = []
    numbers = [v for v in range(N_FOLDS) if (folds == v).any() and (folds != v).any()]
    numbers = numbers if n < FEW else numbers[:_FEWER_FOLDS]
    scored = np.flatnonzero(np.isin(folds, numbers))
    for number in range(settings.rounds + 1):
        if number > 1 and clock.over(0.6):
            break
        start = clock.now()
        held_out = np.full(problem.Y.shape, np.nan)
        factor = (1.0, 1.0)
        for v in numbers:
            if number <= 1 and clock.over(0.7):
                return None, steps
            inside, outside = np.flatnonzero(folds == v), np.flatnonzero(folds != v)
            metric, setting = state[v]
            if number:
                metric, setting = state[v] = next_map(
                    work, candidate, models[v], metric, outside, map_kind, _FOLD_GRADIENT_ROWS
                )
            # The first fold chooses how settings change with the map, for all folds and all rows.
            tries = 3 if number and v == numbers[0] else 1
            models[v] = fit_draft(
                work, candidate, metric, setting.times(*factor), outside, len(outside), tries
            )
            if tries > 1:
                tuned = middle_setting(models[v].leaves)
                factor = tuned.C / setting.C, tuned.gamma / setting.gamma
            new = problem.rows(kind.scaling, metric, inside)
            held_out[inside] = models[v].outputs(new.X, engine=engine)
        factors.append(factor)
        outputs.append(held_out)
        losses.append(
            row_losses(held_out[scored], problem.Y[scored], "squared") * problem.weight[scored]
        )
        before = losses[-2].mean() if number else 0.0
        gain = 1.0 - losses[-1].mean() / before if before > 0 else np.nan
        d, k = problem.inputs[kind.scaling].shape[1], problem.Y.shape[1]
        operations = n**3 + len(numbers) * (
            n**3 / 6.0 + 4.0 * _FOLD_GRADIENT_ROWS * n * d * (k + 2)
        )
        cost = operations / work.unit(n)
        if number:
            text = f"{kind}, {map_kind}, round {number}"
            steps.append(work.step("metric", text, gain, cost, start))
        if number and not work.worth(gain, max(cost, 1.0)):
            break
    table = np.array(losses)
    best = clearly_best(table)
    if not best:
        return None, steps
    nested = np.full(problem.Y.shape, np.nan)
    for v in numbers:
        inside = folds == v
        nested[inside] = outputs[clearly_best(table[:, folds[scored] != v])][inside]
    every = np.arange(n, dtype=np.intp)
    metric, setting = candidate.metric, candidate.setting
    for factor in factors[:best]:
        if clock.over(0.8):
            return None, steps
        setting = setting.times(*factor)
        model = fit_draft(work, candidate, metric, setting, every, n, 1)
        metric, setting = next_map(work, candidate, model, metric, every, map_kind, settings.slopes)
    learned = replace(
        candidate,
        metric=metric,
        setting=setting.times(*factors[best]),
        rounds=best,
        error=float(losses[best].sum() / problem.weight[scored].sum()),
        outputs=outputs[best],
        rows=every,
        nested=nested,
        seconds=candidate.seconds + clock.now() - begin,
        stage="metric",
    )
    return work.with_loss(learned), steps


def maps_of(work: Work, candidate: Candidate, n_rows: int) -> list[str]:
    """Return the kinds of maps that a candidate may learn: a metric, and a warp of its features."""
    shape = work.settings.shape or candidate.configuration.shape
    warped = work.settings.warps and n_rows >= _WARP_MIN_ROWS and shape == "diagonal"
    return ["metric", "warp"] if warped else ["metric"]
