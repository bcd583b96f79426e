"""The model for tables: screen, learn metrics and warps, fit exact leaves, stack.

Read `fit_table` from top to bottom; every stage is a function below it, or in the modules that it
imports, that takes values and returns values. All stages see numbers only: one matrix for each
scaling of the inputs.

A step is taken where its gain in held-out loss is worth its cost (`Work.worth`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray
from lssvm._core.blocks import run_blocks
from lssvm._core.errors import Stopped
from lssvm.fitting.log_odds import fit_log_odds, refit_by_log_loss, try_log_odds
from lssvm.fitting.record import Fit, Member, Trial, Tuning
from lssvm.fitting.screening import (
    NESTED,
    Rounds,
    begin_rounds,
    distinct_configurations,
    learn_in_folds,
    learn_on_rows,
    maps_of,
    median_distance,
    nested_outputs,
    screen,
)
from lssvm.fitting.stacking import (
    Stack,
    StackRule,
    cross_stack,
    fit_stack,
    known_rows,
    mean_loss,
    most_used,
    row_losses,
    rows_that_count,
)
from lssvm.fitting.table_large import (
    allowed_for_all_rows,
    fit_all_rows,
    operations_of_all_rows,
)
from lssvm.fitting.table_prototypes import add_prototypes
from lssvm.fitting.table_record import AllRows, Problem, TableFit, TableState, number_of, subset
from lssvm.fitting.table_work import (
    FEW,
    FEW_ROWS,
    N_FOLDS,
    SMALL,
    Callback,
    Candidate,
    Clock,
    Fitted,
    OutOfTime,
    Plan,
    Scorer,
    TableSettings,
    Work,
    best_first,
    in_order,
    made_by_few_rows,
)
from lssvm.kernels.radial import Distance, distances
from lssvm.local import (
    Leaf,
    LeafTask,
    LocalJob,
    LocalModel,
    Rows,
    Setting,
    fit_local_models,
    grow_tree,
)
from lssvm.local.leaf import weighted_error
from lssvm.tasks import Numbers

_FIRST_ROUND_ROWS = 4000  # that the first round of a metric uses at most
_METRIC_MIN_ROWS = 50  # below which no metric is tried
_ONE_LEAF_ROWS = 4000  # up to which one leaf has all rows, except with "fast"
_REDUNDANT = 0.2  # share of the gain that is worth a unit: models that add less are dropped
_MIN_LEAF_ROWS = 125  # smallest leaf size to which a time limit leads
_COMPARED_ROWS = 3000  # on which leaves of two sizes are compared
_OPTIMISM = 0.05  # share by which the loss of rows that made a metric may be smaller
_NEXT_GAIN = 0.7  # of the last doubling's gain that the next one is expected to have


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a fit that has a model already, which is its attribute ``fit``."""

    def __init__(self, fit: TableFit) -> None:
        super().__init__()
        self.fit = fit


# --- the fit -------------------------------------------------------------------------------------


def fit_table(
    problem: Problem,
    settings: TableSettings,
    clock: Clock,
    callback: Callback,
    scorer: Scorer | None = None,
    all_rows: AllRows | None = None,
) -> TableFit:
    """Fit the model for tables.

    Parameters
    ----------
    problem : Problem
        Rows as numbers, with targets and weights.
    settings : TableSettings
        What is tried, and what a gain may cost.
    clock : Clock
        The time limit.
    callback : callable
        Called with a dict for every step: its stage, what is tried, the best loss so far. It may
        raise `lssvm._core.errors.Stopped` to end the fit with what is best so far.
    scorer : Scorer, optional
        The loss that chooses configurations and stacks; by default the log loss for classes and
        the squared error for numbers.
    all_rows : AllRows, optional
        Where the problem is a sample: all rows, to which the leaves are fitted.

    Returns
    -------
    Fit

    Raises
    ------
    Interrupted
        On Ctrl-C where there is a model of all rows, with that model; otherwise Ctrl-C raises a
        plain KeyboardInterrupt.

    Notes
    -----
    1. Every configuration is screened by leave-one-out on some rows.
    2. The best ones, with at least one of every kernel, learn a metric or a warp on some rows, in
       rounds while the loss of held-out rows falls. Few rows use folds, and need a clear gain.
    3. Leaves are doubled in size while some of them gain enough; the configurations whose stack
       gains enough are fitted to all rows. A global model of prototypes is added where a trial
       with some of them is about as good. Leaves of two classes minimise the log loss in place of
       squared errors where the gain is worth the cost.
    4. Weights minimise the loss of leave-one-out outputs; `best_score_` is computed from rows that
       made no metric.

    When time is short, stages are shortened or skipped; the best configuration is always fitted to
    all rows.
    """
    folds = problem.folds(N_FOLDS, np.random.default_rng([settings.seed, 1]))
    work = Work(problem, settings, clock, scorer, folds, callback)
    fitted: list[Fitted] = []
    plan = Plan()
    try:
        plan = replace(plan, candidates=screen(work))
        stage = fit_small if problem.n < SMALL else fit_large
        for next_plan, models in stage(work, plan, all_rows):
            plan, fitted = next_plan, models  # what is kept if a later stage is interrupted
        fit = assemble(work, plan, fitted)
        report_end(work, fit)
    except Stopped:
        clock.resume()
        if not fitted:  # of the sample, if there is one: that is faster
            plan, fitted = fit_fallback(work, plan)
        fit = interrupted(assemble(work, plan, fitted))
        report_end(work, fit)
    except KeyboardInterrupt as error:
        clock.resume()
        if not fitted:
            raise
        raise Interrupted(interrupted(assemble(work, plan, fitted))) from error
    return fit


def interrupted(fit: TableFit) -> TableFit:
    """Return the record of a fit that ended before its last stage."""
    return replace(fit, state=replace(fit.state, interrupted=True))


Stage = Iterator[tuple[Plan, list[Fitted]]]


def report_end(work: Work, fit: TableFit) -> None:
    """Report the end of a fit."""
    stage, spent = "interrupted" if fit.state.interrupted else "done", work.clock.spent()
    count = len(fit.local_members)  # without prototypes, which are of one of these configurations
    text = f"{stage}: {count} configuration{'s' if count > 1 else ''}, {spent:.1f} s"
    best = min(work.best, default=None)
    work.callback({"stage": stage, "text": text, "best_loss": best, "elapsed": spent})


# --- 3. models of all rows -----------------------------------------------------------------------


def fit_fallback(work: Work, plan: Plan) -> tuple[Plan, list[Fitted]]:
    """Fit the best configuration so far to all rows, in small leaves, without a search."""
    problem, settings = work.problem, work.settings
    if not plan.candidates:
        some = problem.sample(min(problem.n, 300), work.random("fallback"))
        kind = distinct_configurations(problem, settings.configurations)[0]
        X = problem.rows(kind.scaling, settings.metric, some).X
        setting = Setting(10.0, 0.5 / median_distance(distances(X, X, kind.distance)))
        plan = replace(plan, candidates=[Candidate(kind, setting, np.inf, 0.0, settings.metric)])
    plan = plan.keep(plan.candidates[:1])
    leaf_size = min(problem.n if problem.n < SMALL else 500, settings.largest)
    return plan, fit_rows(work, plan.candidates, leaf_size)


def tune_on_half(work: Work, candidate: Candidate, n_rows: int) -> Setting:
    """Return the best setting for half as many rows, which costs an eighth."""
    problem, kind = work.problem, candidate.configuration
    some = problem.sample(min(n_rows // 2, problem.n), work.random("half"))
    task = LeafTask(
        problem.rows(kind.scaling, candidate.metric, some), kind.distance, candidate.setting
    )
    (leaf,) = work.settings.engine.fit(
        [task], tries=4, stop=lambda: work.clock.over(0.6), draft=True
    )
    return leaf.setting


def fit_rows(work: Work, candidates: list[Candidate], leaf_size: int) -> list[Fitted]:
    """Fit candidates to all rows of the problem, in leaves of a size.

    When time runs out, candidates that are not fitted yet are dropped, unless none is.
    """
    problem, clock, settings = work.problem, work.clock, work.settings
    begin = clock.now()
    fitted: dict[int, Fitted] = {}
    jobs = [
        LocalJob(
            problem.rows(c.configuration.scaling, c.metric),
            c.configuration.distance,
            c.setting,
            leaf_size,
            settings.n_trees,
        )
        for c in candidates
    ]

    def stop() -> bool:
        if fitted and clock.over(1.0):
            raise OutOfTime
        return clock.over(0.9)

    def finished(number: int, model: LocalModel) -> None:
        c = replace(candidates[number], stage="all rows")
        outputs = model.leave_one_out(problem.n)
        if c.rounds and c.rows is not None and problem.n < SMALL:
            assert c.outputs is not None
            outputs = c.outputs  # leave-one-out would use a metric that has seen the row
        elif leaf_size >= problem.n:
            leaf = model.leaves[0]
            c = replace(c, setting=leaf.setting, error=leaf.error)
        fitted[number] = (c, model, outputs)
        work.report("all rows", str(c.configuration), number, len(jobs))

    if jobs:
        try:
            fit_local_models(
                jobs,
                random=work.random("trees"),
                stop=stop,
                engine=settings.engine,
                finished=finished,
                on_error=clock.stop,
            )
        except OutOfTime:
            clock.resume()
        n, done = problem.n, max(len(fitted), 1)
        cost = done * settings.n_trees * n * min(leaf_size, n) ** 2 * 2.0 / 3.0 / work.unit(n)
        text = f"{number_of(len(fitted), 'configuration')} in leaves of at most {leaf_size:,} rows"
        work.step("all rows", text, np.nan, cost, begin)
    took = (clock.now() - begin) / max(len(jobs), 1)
    return [
        (replace(c, seconds=c.seconds + took), model, F)
        for c, model, F in (fitted[i] for i in sorted(fitted))
    ]


def fit_small(work: Work, plan: Plan, all_rows: AllRows | None) -> Stage:
    """Fit configurations exactly; add log-odds, and a metric or warp if folds gain clearly."""
    problem, settings, clock = work.problem, work.settings, work.clock
    most = settings.plain if problem.n > settings.screened else max(settings.plain, 4)
    first = plan.candidates[:1] if clock.over(0.5) else used_by_stack(work, plan.candidates, most)
    plan = plan.keep(first)
    leaf_size = min(problem.n, settings.largest)
    if leaf_size > 2 * settings.screened:
        first = [replace(c, setting=tune_on_half(work, c, leaf_size)) for c in first]
        plan = replace(plan, candidates=first)
    fitted = fit_rows(work, first, leaf_size)
    yield plan, fitted
    if work.may_fit_log_odds and problem.n > NESTED:  # the stack chooses: no metric saw the rows
        trials = [(one, try_log_odds(work, one)) for one in fitted]
        pairs = [(one, fit_log_odds(work, one, trial)) for one, trial in trials if trial]
        fitted = fitted + [new for old, new in pairs if new is not old]
        yield plan, fitted
    if not settings.rounds or problem.n < _METRIC_MIN_ROWS or clock.over(0.3):
        return
    best = best_first([c for c, _, _ in fitted])[: min(settings.kept, 2)]
    best = list({c.configuration: c for c in reversed(best)}.values())[::-1]  # not again log-odds
    jobs = [(c, "metric") for c in best]
    jobs += [(c, "warp") for c in best[:1] if "warp" in maps_of(work, c, problem.n)]

    def learned(
        numbered: tuple[int, tuple[Candidate, str]],
    ) -> tuple[Candidate | None, list[int]]:
        number, (candidate, map_kind) = numbered
        work.report("metric", str(candidate.configuration), number, len(jobs))
        found, steps = learn_in_folds(work, candidate, map_kind)
        work.not_kept(steps[0 if found is None else found.rounds :])
        return found, steps

    done = work.parallel(learned, list(enumerate(jobs)))
    better = [(found, steps) for found, steps in done if found is not None]
    chosen = {  # for every configuration the better of its maps
        kind: min((c for c, _ in better if c.configuration == kind), key=lambda c: c.loss)
        for kind in dict.fromkeys(c.configuration for c, _ in better)
    }
    for found, steps in better:
        if found is not chosen[found.configuration]:
            work.not_kept(steps)
    yield plan, fitted + fit_rows(work, list(chosen.values()), leaf_size)


def fit_large(work: Work, plan: Plan, all_rows: AllRows | None) -> Stage:
    """Learn metrics on some rows, compare on others, fit what the stack needs to all rows."""
    problem, settings, clock = work.problem, work.settings, work.clock
    random = work.random("rows")
    scored = problem.sample(min(settings.scored_on, problem.n // 4), random)
    rest = np.setdiff1d(np.arange(problem.n, dtype=np.intp), scored)
    learn = rest[subset(problem, rest).sample(min(settings.learned_on, len(rest)), random)]
    plan = replace(plan, learned=learn)

    def begin(candidates: list[Candidate], rows: IntArray) -> list[Rounds]:
        return work.parallel(lambda c: begin_rounds(work, c, rows, scored), candidates)

    def go_on(jobs: list[tuple[Rounds, str]], rows: IntArray, most: int) -> list[Rounds]:
        def one(numbered: tuple[int, tuple[Rounds, str]]) -> Rounds:
            number, (begun, map_kind) = numbered
            work.report("metric", str(begun.best.configuration), number, len(jobs))
            return learn_on_rows(work, begun, rows, scored, map_kind, most)

        return work.parallel(one, list(enumerate(jobs)))

    if clock.over(0.3):
        plan = plan.keep(plan.candidates[:1])
    else:
        # Screening uses few rows and no metric. It ranks scalings well, kernels less so: the better
        # scalings of every kernel get one round on some rows, and the best of these candidates get
        # further rounds on more rows.
        plan = plan.keep(better_inputs(plan.candidates, settings.gain))
        first = learn[:: -(-len(learn) // _FIRST_ROUND_ROWS)]
        jobs = [(one, "metric") for one in begin(plan.candidates, first)]
        found = go_on(jobs, first, min(settings.rounds, 1))
        done = {one.best.configuration: one for one in found}
        plan = replace(plan, candidates=in_order(work, [one.best for one in found]))
        plan = plan.keep(plan.candidates[: settings.kept])
        if settings.rounds and not clock.over(0.4):
            if len(first) == len(learn):
                begun = [done[c.configuration] for c in plan.candidates]
            else:
                begun = begin(plan.candidates, learn)
            jobs = [
                (one if map_kind == "metric" else one.from_best(), map_kind)
                for one in begun
                for map_kind in maps_of(work, one.best, len(learn))
            ]
            found = go_on(jobs, learn, settings.rounds)
            plan = replace(
                plan, candidates=without_repeats(in_order(work, [one.best for one in found]))
            )
        if clock.over(0.8):
            plan = plan.keep(plan.candidates[:1])
    n = problem.n if all_rows is None else all_rows.n_rows
    leaf_size, setting = choose_leaf_size(work, plan.candidates[0], n, many=all_rows is not None)
    # With the size of leaves the settings of the others change by the same factors.
    old = plan.candidates[0].setting
    factors = setting.C / old.C, setting.gamma / old.gamma
    plan = replace(
        plan, candidates=[replace(c, setting=c.setting.times(*factors)) for c in plan.candidates]
    )
    of_all_rows = operations_of_leaves if all_rows is None else operations_of_all_rows
    operations = settings.n_trees * of_all_rows(n, min(leaf_size, n))
    most = None if all_rows is None else int(allowed_for_all_rows(work, n) / operations)
    plan = plan.keep(worth_fitting(work, plan.candidates, operations / work.unit(n), most))
    if all_rows is not None:
        plan, fitted = fit_all_rows(work, plan, all_rows, leaf_size)
        yield plan, fitted
        return
    fitted = fit_rows(work, plan.candidates, leaf_size)
    yield plan, fitted
    fitted = fitted + add_prototypes(work, plan, fitted)
    yield plan, fitted
    if work.may_fit_log_odds:
        refitted = refit_by_log_loss(work, plan, fitted)
        if refitted is not None:
            yield plan, refitted


def better_inputs(candidates: list[Candidate], gain: float) -> list[Candidate]:
    """Return the best candidate of every kernel, and those with nearly as good a scaling."""
    best: dict[str, float] = {}
    chosen = []
    for candidate in candidates:  # the best first
        kernel = candidate.configuration.kernel
        if kernel not in best or candidate.loss < best[kernel] * (1.0 + 2.0 * gain):
            chosen.append(candidate)
        best.setdefault(kernel, candidate.loss)
    return chosen


def without_repeats(candidates: list[Candidate]) -> list[Candidate]:
    """Return the candidates without repeats of a configuration, rounds and kind of map."""
    return list({c.name: c for c in reversed(candidates)}.values())[::-1]


def used_by_stack(work: Work, candidates: list[Candidate], size: int) -> list[Candidate]:
    """Return the candidates that the stack of their outputs uses most, at most ``size``."""
    rows = candidates[0].rows
    outputs = [c.outputs for c in candidates if c.outputs is not None and c.rows is rows]
    if rows is None or len(outputs) < len(candidates) or len(candidates) == 1:
        return candidates[:size]
    Y, weight = work.problem.Y[rows], work.problem.weight[rows]
    stack = work.rule(at_most=size).fit(outputs, Y, weight, rows)
    return [candidates[i] for i in most_used(stack.weights)] or candidates[:1]


def worth_fitting(
    work: Work, candidates: list[Candidate], cost: float, most: int | None = None
) -> list[Candidate]:
    """Return the candidates whose outputs, stacked with those before them, gain enough.

    Stacks are compared on held-out rows, with weights fitted to other held-out rows. Where a few of
    these make up the log loss, a second candidate is taken in any case if it costs no more than a
    unit: the leave-one-out outputs of all rows will show whether it is needed. With ``most`` the
    result has at most so many candidates, and at least one.
    """
    problem, rows = work.problem, candidates[0].rows
    pool = [c for c in candidates if c.rows is rows and c.outputs is not None]
    if rows is None or len(pool) < 2 or work.clock.over(0.8):
        return candidates[:1]
    Y, weight, folds = problem.Y[rows], problem.weight[rows], work.folds[rows]

    def loss_of(chosen: list[Candidate]) -> float:
        outputs = [c.outputs for c in chosen if c.outputs is not None]
        outputs *= 2 if len(outputs) == 1 else 1  # so that a single one is shrunk as several are
        stacked = cross_stack(outputs, Y, weight, folds, StackRule(work.loss))
        if work.scorer is not None and work.scorer.chooses:
            return float(work.scorer.loss(stacked, rows))
        return mean_loss(stacked, Y, weight, work.loss)

    few = cost <= 1.0 and made_by_few_rows(work, pool[0])
    chosen, best = pool[:1], loss_of(pool[:1])
    steps: list[int] = []
    most = len(pool) if most is None else min(most, len(pool))
    threads, operations = work.settings.engine.threads, 1e4 * Y.size
    while len(chosen) < most:
        begin = work.clock.now()
        others = [i for i, c in enumerate(pool) if c not in chosen]
        losses = run_blocks(
            loss_of, [[*chosen, pool[i]] for i in others], threads, operations=operations
        )
        loss, i = min(zip(losses, others, strict=True))
        gain = (best - loss) / abs(best) if best else 0.0
        taken = work.worth(gain, cost) or (few and len(chosen) == 1)
        text = f"{pool[i].configuration} in the stack"
        step = work.step("configurations", text, gain, cost, begin if taken else None)
        if not taken:
            break
        chosen, best = [*chosen, pool[i]], loss
        steps.append(step)
    return [pool[0], *(replace(c, step=s) for c, s in zip(chosen[1:], steps, strict=True))]


def operations_of_leaves(n_rows: int, leaf_size: int) -> float:
    """Return the operations of a configuration of all rows in leaves of one setting."""
    return n_rows * leaf_size**2 * (2.0 / 3.0)


def choose_leaf_size(
    work: Work, candidate: Candidate, n_rows: int, *, many: bool = False
) -> tuple[int, Setting]:
    """Return how many rows a leaf may have, doubled while the gain is worth it, and its setting.

    Some leaves of twice the size are compared with the two halves that a partition makes of each,
    by leave-one-out errors of the same rows. Where the rows of the problem are a sample of very
    ``many``, a size also has to leave time for a second configuration.
    """
    settings, problem, clock = work.settings, work.problem, work.clock
    if settings.leaf_size is not None:
        size = min(settings.leaf_size, settings.largest, n_rows)
        large = size > 2 * settings.learned_leaf
        return size, tune_on_half(work, candidate, size) if large else candidate.setting
    if (
        n_rows <= min(_ONE_LEAF_ROWS, settings.largest)
        and settings.gain < 0.02
        and not clock.over(0.5)
    ):
        return n_rows, tune_on_half(work, candidate, n_rows)
    kind, setting = candidate.configuration, candidate.setting
    size = min(settings.learned_leaf, settings.largest, n_rows)
    # Models that are kept take twice the time of those that were measured, and 0.4 leaves a margin.
    of_all_rows = operations_of_all_rows if many else operations_of_leaves
    share = clock.affordable(1e3 * n_rows * size**2, 0.4) / of_all_rows(n_rows, size)
    while share < 1.0 and size >= 2 * _MIN_LEAF_ROWS:
        size, share = size // 2, 4.0 * share
    rows = problem.rows(kind.scaling, candidate.metric)
    expected = np.inf
    while 2 * size <= settings.largest and size < n_rows:
        new = 2 * size if 3 * size < n_rows else min(n_rows, settings.largest)
        operations = of_all_rows(n_rows, new)
        cost = (operations - of_all_rows(n_rows, size)) / work.unit(n_rows)
        text = f"{new:,} rows in place of {size:,}"
        too_slow = clock.affordable(operations, 0.5) < operations
        if many:
            too_slow |= 2.0 * settings.n_trees * operations > allowed_for_all_rows(work, n_rows)
        if too_slow or not work.worth(expected, cost):
            work.step("leaf size", text, expected, cost, None)
            break
        begin = clock.now()
        work.report("leaf size", text, 0, 1)
        # Where leaves are large, a trial would cost as much as the model.
        known = 4 * size > problem.n and np.isfinite(expected)
        if known:
            gain, tuned = expected, setting
        else:
            gain, tuned = gain_of_size(work, rows, kind.distance, setting, min(2 * size, problem.n))
        taken = work.worth(gain, cost)
        if not taken and not known:
            work.tried("leaf size", text, begin)
        work.step("leaf size", text, gain, cost, begin if taken else None)
        if not taken:
            break
        size, setting, expected = new, tuned, min(_NEXT_GAIN * gain, expected)
    return size, setting


def gain_of_size(
    work: Work, rows: Rows, distance: Distance, start: Setting, size: int
) -> tuple[float, Setting]:
    """Return the relative gain of leaves of a size over their halves, and their setting.

    One leaf proposes a setting, and all that are compared decide whether it is taken: what suits
    one leaf may spoil another. A few remote rows do not decide, see `fall_of_loss`.
    """
    engine = work.settings.engine
    leaves = [
        numbers
        for numbers in grow_tree(rows.X, size).rows_by_leaf(rows.X)
        if len(numbers) >= size // 2
    ]
    count = max(1, round(_COMPARED_ROWS / size))
    compared = [leaves[i] for i in np.unique(np.linspace(0, len(leaves) - 1, count).astype(int))]
    regions = [numbers[: int(1.5 * size)] for numbers in compared]
    halves = []
    for numbers in regions:
        X = rows.X[numbers]
        split = grow_tree(X, -(-len(X) // 2)).rows_by_leaf(X)
        halves += [numbers[half] for half in split]
    every = np.concatenate(regions)
    weight = rows.weight[every]

    def losses_of(found: list[Leaf], parts: list[IntArray]) -> FloatArray:
        """Return the leave-one-out losses of the rows of all parts, in the order of ``every``."""
        out = np.empty(len(rows.X))
        for leaf, numbers in zip(found, parts, strict=True):
            out[numbers] = leaf.squares.sum(axis=1)
        return np.asarray(out[every])

    def best_losses(parts: list[IntArray]) -> tuple[FloatArray, Setting]:
        tasks = [LeafTask(rows.take(numbers), distance, start) for numbers in parts]
        first = engine.fit(tasks[:1], tries=2, draft=True)
        proposed = first[0].setting
        rest = [replace(task, start=proposed) for task in tasks[1:]]
        losses = losses_of([*first, *engine.fit(rest, draft=True)], parts)
        if proposed == start or not rest:
            return losses, proposed
        plain = losses_of(engine.fit(tasks, draft=True), parts)
        better = fall_of_loss(plain, losses, weight) > 0.0
        return (losses, proposed) if better else (plain, start)

    before, _ = best_losses(halves)
    after, setting = best_losses(regions)
    return fall_of_loss(before, after, weight), setting


def fall_of_loss(before: FloatArray, after: FloatArray, weight: FloatArray) -> float:
    """Return the relative fall of the mean of losses (n,) of rows, with or without a few of them.

    A loss cannot fall below 0, but it may rise without bounds where a row is far from all others.
    Where the losses fall more without the thousandth of the rows that change most, this is the
    result, unless a few rows make up the losses anyway.
    """

    def fall(some: IntArray) -> float:
        was, now = (float(weight[some] @ losses[some]) for losses in (before, after))
        return 1.0 - now / was if was > 0 else 0.0

    order = np.argsort(weight * np.abs(before - after), kind="stable").astype(np.intp)
    if rows_that_count(before, weight) < FEW_ROWS:
        return fall(order)
    return max(fall(order), fall(order[: len(order) - len(order) // 1000]))


# --- 4. the stack --------------------------------------------------------------------------------


def assemble(work: Work, plan: Plan, fitted: list[Fitted]) -> TableFit:
    """Weight the fitted configurations by their held-out outputs; return the record."""
    problem, begin = work.problem, work.clock.now()
    outputs = [F for _, _, F in fitted]
    learned = np.empty(0, dtype=np.intp)
    if plan.learned is not None and any(c.rounds for c, _, _ in fitted):
        learned = plan.learned
        if overfitted(work, [c for c, _, _ in fitted], outputs, learned):
            outputs = without_rows(outputs, learned)
    stack = stack_of(work, [c for c, _, _ in fitted], outputs)
    used = without_redundant(work, stack, [c for c, _, _ in fitted], outputs)
    for c, is_used in zip([c for c, _, _ in fitted], used, strict=True):
        if is_used and c.stage == "prototypes":
            used = used | np.array([c.name == other.name for other, _, _ in fitted])
    unused: list[Candidate] = []
    if used.any() and not used.all():
        unused = [c for (c, _, _), keep in zip(fitted, used, strict=True) if not keep]
        fitted = [entry for entry, keep in zip(fitted, used, strict=True) if keep]
        outputs = [F for F, keep in zip(outputs, used, strict=True) if keep]
        stack = stack_of(work, [c for c, _, _ in fitted], outputs)
    candidates = [c for c, _, _ in fitted]
    held_out = held_out_outputs(work, plan, candidates, outputs)
    kept = stack.weights > 0
    for c, is_used in zip(candidates, kept, strict=True):
        if is_used and c.stage == "prototypes":  # leaves keep the rows that these were made of
            kept = kept | [c.name == other.name for other in candidates]
    members = [
        Member(model, None, c.configuration.scaling, c.metric, c.rounds, float(w), c.error)
        for (c, model, _), w, keep in zip(fitted, stack.weights, kept, strict=True)
        if keep
    ]
    mean = np.average(problem.Y, axis=0, weights=problem.weight)
    spread = weighted_error(problem.Y, np.broadcast_to(mean, problem.Y.shape), problem.weight)
    spread = spread if spread > 0 else 1.0
    trials = [
        trial_of(c, relative_error(on_target_scale(c, F), problem, spread), float(w))
        for c, F, w in zip(candidates, without_rows(outputs, learned), stack.weights, strict=True)
    ]
    names = {c.name for c in candidates}
    earlier = plan.dropped + plan.candidates + unused
    dropped = {c.name: c for c in earlier if c.name not in names}
    kept_steps = {c.step for c in candidates}
    work.not_kept(c.step for c in unused if c.step is not None and c.step not in kept_steps)
    trials += [trial_of(c, c.error / spread, 0.0) for c in dropped.values()]
    trials.sort(key=lambda t: (-t.weight, t.error))
    leaf_size = max(
        model.leaf_size if isinstance(model, LocalModel) else len(model.basis)
        for c, model, _ in fitted
        if c.stage != "prototypes"
    )
    work.step("stack", f"weights of {number_of(len(candidates), 'model')}", np.nan, 0.0, begin)
    return Fit(
        Numbers(problem.Y.shape[1], single=False),
        tuple(members),
        TableState(leaf_size=leaf_size, held_out=held_out, learned=learned, note=plan.note),
        work.settings.seed,
        tuning=Tuning(float("nan"), trials=tuple(trials), steps=tuple(work.steps)),
        offset=stack.offset,
    )


def without_rows(outputs: list[FloatArray], rows: IntArray) -> list[FloatArray]:
    """Return the outputs with NaN for some rows."""
    if not len(rows):
        return outputs
    outputs = [F.copy() for F in outputs]
    for F in outputs:
        F[rows] = np.nan
    return outputs


def overfitted(
    work: Work, candidates: list[Candidate], outputs: list[FloatArray], learned: IntArray
) -> bool:
    """Return whether leave-one-out losses of rows that made a metric are clearly too small.

    They are compared with those of the other rows. If they are not too small, all rows weight and
    calibrate the stack, which matters where classes are many or rare.
    """
    problem = work.problem
    unseen = without_rows(outputs, learned)
    stack = stack_of(work, candidates, unseen)
    losses = row_losses(stack.outputs(outputs), problem.Y, work.loss)
    means, variances = [], []
    for rows in (learned[np.isfinite(losses[learned])], np.flatnonzero(known_rows(unseen))):
        if not len(rows):
            return True
        weight = problem.weight[rows]
        means.append(np.average(losses[rows], weights=weight))
        spread = np.average((losses[rows] - means[-1]) ** 2, weights=weight)
        variances.append(spread * np.square(weight).sum() / weight.sum() ** 2)
    gap = means[1] - means[0]
    return bool(gap > 2.0 * np.sqrt(sum(variances)) and gap > _OPTIMISM * means[1])


def trial_of(c: Candidate, error: float, weight: float) -> Trial:
    """Return the row of a candidate in ``configurations_``."""
    warped = c.metric.warp is not None
    kind = c.configuration
    return Trial(kind.scaling, kind.kernel, c.rounds, error, weight, c.seconds, c.stage, warped)


def stack_of(work: Work, candidates: list[Candidate], outputs: list[FloatArray]) -> Stack:
    """Return the stack of candidates; with few rows it leans on those without a metric."""
    problem = work.problem
    plain = np.array([c.rounds == 0 for c in candidates]) if problem.n < FEW else None
    every = np.arange(problem.n, dtype=np.intp)
    return work.rule(plain=plain).fit(outputs, problem.Y, problem.weight, every)


def without_redundant(
    work: Work, stack: Stack, candidates: list[Candidate], outputs: list[FloatArray]
) -> BoolArray:
    """Return which models are kept: those without which the loss would rise noticeably."""
    problem = work.problem
    prototypes = [c.stage == "prototypes" for c in candidates]
    used = stack.weights > 0
    good = np.flatnonzero(known_rows(outputs))
    Y, weight = problem.Y[good], problem.weight[good]
    known = [F[good] for F in outputs]
    best = mean_loss(stack.outputs(known), Y, weight, work.loss)
    share = stack.weights * [np.std(F) for F in known]  # log-odds have a larger scale than -1 and 1
    while used.sum() > 1:
        i = min(np.flatnonzero(used), key=lambda j: share[j])
        rest = used.copy()
        rest[i] = False
        if all(prototypes[j] for j in np.flatnonzero(rest)):  # leaves keep the rows
            break
        few = fit_stack([known[j] for j in np.flatnonzero(rest)], Y, weight, work.loss)
        left = mean_loss(
            few.outputs([known[j] for j in np.flatnonzero(rest)]), Y, weight, work.loss
        )
        if left > best + _REDUNDANT * work.settings.gain * abs(best):
            break
        used = rest
    return used


def held_out_outputs(
    work: Work, plan: Plan, candidates: list[Candidate], outputs: list[FloatArray]
) -> FloatArray:
    """Return outputs of rows by stacks whose settings, choices and weights come from other folds.

    Configurations that were dropped because of their outputs for all rows are candidates again in
    every fold.
    """
    problem, n = work.problem, work.problem.n

    def held_out_of(c: Candidate) -> FloatArray | None:
        values = c.outputs if c.nested is None else c.nested
        return values if values is not None and len(values) == n else None

    in_folds = [
        F if c.nested is None else held_out_of(c) for c, F in zip(candidates, outputs, strict=True)
    ]
    out_of_fold = [F if G is None else G for F, G in zip(outputs, in_folds, strict=True)]
    rounds = [c.rounds for c in candidates]
    if n <= NESTED and not work.clock.over(0.7):
        learned = [F for F, done in zip(out_of_fold, rounds, strict=True) if done]
        nested = nested_outputs(work, learned, max(work.settings.plain, 4))
        if nested is not None:
            return nested
    dropped = [held_out_of(c) for c in plan.dropped] if n < SMALL else []
    at_most = None
    if dropped and all(F is not None for F in dropped):
        at_most = len(candidates)
        out_of_fold += [F for F in dropped if F is not None]
        rounds += [0] * len(dropped)
    plain = np.array(rounds) == 0 if n < FEW else None
    rule = work.rule(plain=plain, at_most=at_most)
    threads = work.settings.engine.threads
    return cross_stack(out_of_fold, problem.Y, problem.weight, work.folds, rule, threads)


def on_target_scale(candidate: Candidate, outputs: FloatArray) -> FloatArray:
    """Return outputs on the scale of the targets: log-odds become means of -1 and 1."""
    return np.tanh(0.5 * outputs) if candidate.stage == "log loss" else outputs


def relative_error(outputs: FloatArray, problem: Problem, spread: float) -> float:
    """Return the mean squared error of known outputs, relative to that of the mean."""
    good = np.isfinite(outputs).all(axis=1)
    return weighted_error(problem.Y[good], outputs[good], problem.weight[good]) / spread
