"""The model for tables: screen, learn metrics, fit exact parts, stack.

Read `fit_table` from top to bottom; every stage is a function below it. All stages see numbers
only: one matrix for each way of preparing the inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.threads import run_blocks
from lssvm.parts import PartsEngine, PartsJob, PartsModel, fit_many
from lssvm.parts.engine import ONE_THREAD
from lssvm.parts.leaf import weighted_error
from lssvm.recipes.clock import Clock
from lssvm.recipes.configurations import Configuration, Inputs, Member
from lssvm.recipes.metric_rounds import FEW, N_FOLDS, learn_in_folds, learn_on_rows
from lssvm.recipes.problem import Problem, deal, sample_rows, subset
from lssvm.recipes.record import check_form
from lssvm.recipes.screening import Candidate, TableSettings, Tell, say, screen
from lssvm.recipes.stacking import cross_stack, stack_weights
from lssvm.recipes.table_context import TableContext

SMALL = 2500
"""Below as many rows outputs of metrics come from folds, above from other rows."""

_FIRST = 4000  # rows of the first round of a metric
_ENOUGH = 50  # rows below which no metric is tried


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
    context : TableContext or None
        From raw tables to inputs and from outputs to answers; None where the recipe was used alone.
    stored : str
        "all", or the form of the file that the model was loaded from.

    Examples
    --------
    >>> from lssvm.recipes import TableFit
    >>> list(TableFit.__dataclass_fields__)
    ['members', 'trials', 'held_out', 'part_size', 'context', 'stored']
    """

    members: tuple[Member, ...]
    trials: tuple[Trial, ...]
    held_out: FloatArray
    part_size: int
    context: TableContext | None = None
    stored: str = "all"

    def need(self, form: str, what: str) -> None:
        """Raise where the file that the model was loaded from left out what is asked for."""
        check_form(self.stored, form, what)

    def in_form(self, form: str) -> TableFit:
        """Return what a file of this form keeps."""
        if form == "all":
            return self
        return replace(
            self,
            members=tuple(replace(m, model=m.model.light()) for m in self.members),
            held_out=self.held_out[:0],
            context=None if self.context is None else self.context.in_form(form),
            stored=form,
        )

    def outputs(
        self, inputs: Mapping[Inputs, FloatArray], *, engine: PartsEngine = ONE_THREAD
    ) -> FloatArray:
        """Return the stacked outputs (n, k) for prepared inputs."""
        total: FloatArray | None = None
        for member in self.members:
            X = member.metric.apply(inputs[member.configuration.inputs])
            values = member.weight * member.model.outputs(X, engine=engine)
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
    folds = deal(problem, N_FOLDS, random)
    found = screen(problem, folds, ask, clock, tell, random)
    if problem.n < SMALL:
        return fit_small(problem, found, folds, ask, clock, tell)
    return fit_large(problem, found, folds, ask, clock, tell, random)


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
        models = fit_many(jobs, tries=tries, engine=ask.engine)
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

        better = [c for c in run_blocks(rounds, best, ask.engine.side_by_side) if c is not None]
        say(tell, clock, "metric", [c for c, _ in fitted] + better)
        for candidate, (_, model) in zip(better, whole(better), strict=True):
            assert candidate.judged is not None
            fitted.append((replace(candidate, stage="all rows"), model))
            outputs.append(candidate.judged)
    return assemble(problem, fitted, outputs, rest, folds, problem.n, clock, tell)


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
        lambda c: learn_on_rows(problem, c, first, judge, few, clock),
        tried,
        ask.engine.side_by_side,
    )
    say(tell, clock, "metric", looked)
    kept = one_of_every_kernel(looked, ask.kept + 1)
    dropped += [c for c in looked if not any(c is k for k in kept)]
    if not clock.over(0.4):
        kept = run_blocks(
            lambda c: learn_on_rows(problem, c, learn, judge, ask, clock),
            kept,
            ask.engine.side_by_side,
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
        engine=ask.engine,
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
    wanted = ask.operations * ask.engine.speed * min(np.sqrt(problem.Y.shape[1]), 4.0)
    operations = clock.affordable(float(wanted), 0.7)
    each = problem.n * (2.0 / 3.0) * ask.tries * ask.n_trees * max(n_configurations, 1)
    return int(min(max(np.sqrt(operations / each), 500.0), ask.largest))


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
    plain = np.array([c.rounds == 0 for c, _ in fitted]) if problem.n < FEW else None
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
