"""The model for tables: screen, learn metrics, fit exact parts, stack.

Read `fit_table` from top to bottom; every stage is a function below it. All stages see numbers
only: one matrix for each way of preparing the inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError, Stopped
from lssvm.fitting.clock import Clock
from lssvm.fitting.configurations import Configuration, Inputs, Member
from lssvm.fitting.judging import Judge, SquaredErrors
from lssvm.fitting.metric_rounds import FEW, N_FOLDS, learn_in_folds, learn_on_rows
from lssvm.fitting.nested import NESTED, nested_outputs
from lssvm.fitting.problem import Problem, deal, sample_rows, subset
from lssvm.fitting.record import check_form
from lssvm.fitting.screening import distinct, median_of, screen
from lssvm.fitting.stacking import cross_stack, most_used
from lssvm.fitting.table_beside import fit_beside, size_beside, width_beside
from lssvm.fitting.table_context import TableContext
from lssvm.fitting.table_large import fit_every_row, plan_fit
from lssvm.fitting.table_prototypes import fit_prototypes
from lssvm.fitting.table_rows import AllRows
from lssvm.fitting.table_run import Candidate, TableRun, TableSettings, Tell
from lssvm.kernels.radial import distances
from lssvm.local import PartsEngine, PartsJob, PartsModel, Setting, fit_many
from lssvm.local.engine import ONE_THREAD
from lssvm.local.leaf import weighted_error

SMALL = 2500
"""Below as many rows outputs of metrics come from folds, above from other rows."""

_FIRST = 4000  # rows of the first round of a metric
_ENOUGH = 50  # rows below which no metric is tried
_SMALLEST = 500  # rows of a part, where time does not ask for fewer


@dataclass(frozen=True)
class Trial:
    """A line of the table of what was tried.

    Attributes
    ----------
    configuration : Configuration
        Inputs and kernel.
    rounds : int
        Of the metric.
    error : float
        Mean squared error on rows that were not seen, relative to that of the mean.
    weight : float
        In the stack; 0 for what is not part of it.
    seconds : float
        What it took.
    stage : str
        The last stage it reached: "screening", "metric" or "all rows".

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
    part_size : int
        Rows of a part at most.
    context : TableContext or None
        From raw tables to inputs and from outputs to answers; None where the recipe was used alone.
    stored : str
        "all", or the form of the file that the model was loaded from.
    interrupted : bool
        Whether the fit was ended before all stages were through.
    note : str
        What the model is, where it keeps no training rows: compressed, or made of prototypes.

    Examples
    --------
    >>> from lssvm.fitting import TableFit
    >>> list(TableFit.__dataclass_fields__)
    ['members', 'trials', 'held_out', 'part_size', 'context', 'stored', 'interrupted', 'note']
    """

    members: tuple[Member, ...]
    trials: tuple[Trial, ...]
    held_out: FloatArray
    part_size: int
    context: TableContext | None = None
    stored: str = "all"
    interrupted: bool = False
    note: str = ""

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
                replace(m, model=m.model.light(near and m is self.largest), moments=None)
                for m in self.members
            ),
            held_out=self.held_out[:0],
            context=None if self.context is None else self.context.stripped(form),
            stored=form,
        )

    def outputs(
        self, inputs: Mapping[Inputs, FloatArray], *, engine: PartsEngine = ONE_THREAD
    ) -> FloatArray:
        """Return the stacked outputs (n, k) for prepared inputs.

        Parameters
        ----------
        inputs : mapping from inputs to arrays of shape (n, d)
            Prepared rows, for every kind of inputs that a member takes.
        engine : PartsEngine, optional
            Where it is computed; by default on one thread.
        """
        return np.asarray(
            sum(m.weight * m.model.outputs(m.mapped(inputs), engine=engine) for m in self.used)
        )

    @property
    def used(self) -> list[Member]:
        """The members that outputs are made of: all but parts that stay for their rows alone."""
        return [m for m in self.members if m.weight > 0]

    @property
    def in_parts(self) -> list[Member]:
        """The members that keep their rows: all but prototypes beside them."""
        return [m for m in self.members if not m.beside]

    @property
    def largest(self) -> Member:
        """The member in parts with the largest weight."""
        return max(self.in_parts, key=lambda m: m.weight)

    def local_error(self, inputs: Mapping[Inputs, FloatArray], nearby: int = 0) -> FloatArray:
        """Return the root mean squared error around every row, shape (n, 1) or (n, k).

        Parameters
        ----------
        inputs : mapping from inputs to arrays of shape (n, d)
            Prepared rows, for every kind of inputs that a member takes.
        nearby : int, default=0
            Nearest training rows whose leave-one-out errors are averaged, for every output; 0 is
            the error of the part of a row, all outputs together.
        """
        if nearby:
            member = self.largest
            return np.sqrt(member.model.nearby_error(member.mapped(inputs), nearby))
        return self._averaged([m.model.local_error(m.mapped(inputs)) for m in self.in_parts])

    def own_error(self, n: int, nearby: int = 0) -> FloatArray:
        """Return the same around the n training rows, with errors of other rows only.

        Parameters
        ----------
        n : int
            Number of training rows.
        nearby : int, default=0
            As in `local_error`.
        """
        if nearby:
            return np.sqrt(self.largest.model.own_nearby_error(n, nearby))
        return self._averaged([member.model.own_error(n) for member in self.in_parts])

    def _averaged(self, errors: list[FloatArray]) -> FloatArray:
        weights = [max(member.weight, 1e-12) for member in self.in_parts]
        return np.asarray(np.average(errors, axis=0, weights=weights)[:, None])


class OutOfTime(Stopped):
    """The time is over and there is a model."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a fit that has a model already.

    Attributes
    ----------
    fit : TableFit
        Of what was finished.

    Examples
    --------
    >>> from lssvm.fitting import Interrupted
    >>> issubclass(Interrupted, KeyboardInterrupt)
    True
    """

    def __init__(self, fit: TableFit) -> None:
        super().__init__()
        self.fit = fit


def fit_table(
    problem: Problem,
    ask: TableSettings,
    clock: Clock,
    tell: Tell,
    judge: Judge | None = None,
    everything: AllRows | None = None,
) -> TableFit:
    """Fit the model for tables.

    Parameters
    ----------
    problem : Problem
        Rows as numbers, with targets and weights.
    ask : TableSettings
        How much is tried.
    clock : Clock
        The time limit.
    tell : callable
        Called with a dict for every step: its stage, what is tried, the best loss so far. It may
        raise `lssvm._core.errors.Stopped` to end the fit with what is best so far.
    judge : Judge, optional
        What losses are reported, and where it says so what configurations and stacks are chosen by;
        None is squared errors.
    everything : AllRows, optional
        Where the problem is a sample: all rows, which the parts are made of.

    Returns
    -------
    TableFit

    Raises
    ------
    Interrupted
        On Ctrl-C where a model of all rows is there, with that model; before it is
        KeyboardInterrupt.

    Notes
    -----
    1. Every configuration is screened by leave-one-out on some rows.
    2. The best ones, one of every kernel among them, learn a metric on some rows; the number of
       rounds is what other rows say. Small data ask folds, and need a clear gain.
    3. Those that the stack of judged outputs uses are fitted to all rows, exactly or in parts.
       Beside parts prototypes of all rows are fitted, where some of them are about as good.
    4. Weights are non-negative least squares on leave-one-out outputs of rows that made no metric.

    Out of time stages are shortened and left out; the best configuration is always fitted to all
    rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting import Problem, TableSettings, fit_table
    >>> from lssvm.fitting.clock import Clock
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 3))
    >>> problem = Problem({"standardised": X, "quantiles": X}, np.sin(X[:, :1]), np.ones(120))
    >>> fit = fit_table(problem, TableSettings.preset("fast"), Clock(), lambda event: None)
    >>> error = np.mean((fit.outputs({"standardised": X, "quantiles": X}) - np.sin(X[:, :1]))**2)
    >>> bool(error < 0.05)
    True
    """
    random = np.random.default_rng(ask.seed)
    judge = SquaredErrors(problem) if judge is None else judge
    folds = deal(problem, N_FOLDS, random)
    run = TableRun(problem, ask, clock, tell, judge, folds, random, everything)
    try:
        screen(run)
        fit = fit_small(run) if problem.n < SMALL else fit_large(run)
        report_end(run, fit)
    except Stopped:
        clock.go_on()
        if not run.fitted:
            run.everything = None  # a model of the sample is there sooner
            fit_at_once(run)
        fit = replace(assemble(run), interrupted=True)
        report_end(run, fit)
    except KeyboardInterrupt as error:
        clock.go_on()
        if not run.fitted:
            raise
        fit = replace(assemble(run), interrupted=True)
        raise Interrupted(fit) from error
    return fit


def report_end(run: TableRun, fit: TableFit) -> None:
    """Report the end of a fit."""
    what, spent = "interrupted" if fit.interrupted else "done", run.clock.spent()
    many = len({(m.configuration, m.rounds) for m in fit.used})  # prototypes are of one of them
    text = f"{what}: {many} configuration{'s' if many > 1 else ''}, {spent:.1f} s"
    run.tell({"stage": what, "text": text, "best_loss": run.best, "elapsed": spent})


def fit_at_once(run: TableRun) -> None:
    """Fit the best configuration that is known to all rows, in small parts and without a search."""
    problem = run.problem
    candidates = run.ordered(run.found)
    if not candidates:
        some = sample_rows(problem, min(problem.n, 300), run.random)
        configuration = distinct(problem, run.ask.configurations)[0]
        X = problem.rows(configuration.inputs, run.ask.metric, some).X
        setting = Setting(10.0, 0.5 / median_of(distances(X, X, configuration.distance)))
        candidates = [Candidate(configuration, setting, np.inf, 0.0, run.ask.metric)]
    part_size = min(problem.n if problem.n < SMALL else _SMALLEST, run.ask.largest)
    fit_all_rows(run, candidates[:1], part_size, tries=1, trees=1)


def fit_all_rows(
    run: TableRun, candidates: list[Candidate], part_size: int, *, tries: int, trees: int = 1
) -> None:
    """Fit candidates to all rows; each is part of what is known as soon as it is there.

    Out of time those that are not there are left out, unless there would be none.
    """
    problem, clock = run.problem, run.clock
    first, begin = len(run.fitted), clock.now()
    if run.everything is not None and candidates:
        plan = plan_fit(run, run.everything, candidates, tries)
        if plan.n_prototypes:
            fitted = [fit_prototypes(run, run.everything, plan.candidates[0], plan.n_prototypes)]
            run.note = f"prototypes in place of parts: {plan.why}"
        else:
            fitted = fit_every_row(run, run.everything, plan.candidates, part_size, tries)
        took = (clock.now() - begin) / len(fitted)
        run.fitted += [(replace(c, seconds=c.seconds + took), m, F) for c, m, F in fitted]
        return
    jobs = [
        PartsJob(
            problem.rows(c.configuration.inputs, c.metric),
            c.configuration.distance,
            c.setting,
            part_size,
            trees,
        )
        for c in candidates
    ]
    if not jobs:
        return

    def stop() -> bool:
        if run.fitted and clock.over(1.0):
            raise OutOfTime
        return clock.over(0.9)

    def finished(number: int, model: PartsModel) -> None:
        c = replace(candidates[number], stage="all rows")
        outputs = model.left_out(problem.n)
        if c.rounds and c.rows is not None and problem.n < SMALL:
            assert c.outputs is not None
            outputs = c.outputs  # its leave-one-out outputs have met its metric
        elif part_size >= problem.n:
            leaf = model.cuts[0].leaves[0]
            c = replace(c, setting=leaf.setting, error=leaf.error)
        with run.lock:
            run.fitted.append((c, model, outputs))
        run.begin("all rows", str(c.configuration), number, len(jobs))

    try:
        fit_many(
            jobs,
            tries=tries,
            random=run.random,
            stop=stop,
            engine=run.ask.engine,
            finished=finished,
            on_error=clock.stop,
        )
    except OutOfTime:
        clock.go_on()
    took = (clock.now() - begin) / len(jobs)
    place = {(c.configuration, c.rounds): i for i, c in enumerate(candidates)}
    new = sorted(run.fitted[first:], key=lambda one: place[one[0].configuration, one[0].rounds])
    run.fitted[first:] = [(replace(c, seconds=c.seconds + took), m, F) for c, m, F in new]


def fit_small(run: TableRun) -> TableFit:
    """Fit configurations exactly; add those with a metric where folds say that it pays."""
    problem, ask, clock = run.problem, run.ask, run.clock
    tries = ask.tries if problem.n > ask.screened else 1
    first = run.found
    if clock.over(0.5):
        first = run.found[:1]
    elif ask.small < len(run.found):
        first = needed(run, run.found, ask.small)
    fit_all_rows(run, first, min(problem.n, ask.largest), tries=tries)
    run.dropped = [c for c in run.found if not any(c is f for f in first)]
    if ask.rounds and problem.n >= _ENOUGH and not clock.over(0.3):
        best = run.ordered([c for c, _, _ in run.fitted])[: ask.kept]

        def rounds(numbered: tuple[int, Candidate]) -> Candidate | None:
            run.begin("metric", str(numbered[1].configuration), numbered[0], len(best))
            return learn_in_folds(run, numbered[1])

        better = [c for c in run.side_by_side(rounds, list(enumerate(best))) if c is not None]
        fit_all_rows(run, better, min(problem.n, ask.largest), tries=tries)
    return assemble(run)


def fit_large(run: TableRun) -> TableFit:
    """Learn metrics on some rows, judge them on others, fit what the stack needs to all rows."""
    problem, ask, clock, random = run.problem, run.ask, run.clock, run.random
    judge = sample_rows(problem, min(ask.judged_on, problem.n // 4), random)
    rest = np.setdiff1d(np.arange(problem.n, dtype=np.intp), judge)
    learn = rest[sample_rows(subset(problem, rest), min(ask.learned_on, len(rest)), random)]
    # Screening saw few rows and no metric: all configurations get one round on some of the rows,
    # the best of them further rounds on all that may be learned on.
    first = learn[:: -(-len(learn) // _FIRST)]
    few = replace(ask, rounds=min(ask.rounds, 1))
    run.learned = learn

    def rounds(candidates: list[Candidate], rows: IntArray, most: TableSettings) -> list[Candidate]:
        def work(numbered: tuple[int, Candidate]) -> Candidate:
            run.begin("metric", str(numbered[1].configuration), numbered[0], len(candidates))
            return learn_on_rows(run, numbered[1], rows, judge, most)

        return run.ordered(run.side_by_side(work, list(enumerate(candidates))))

    def keep(chosen: list[Candidate]) -> None:
        run.dropped += [c for c in run.found if not any(c is k for k in chosen)]
        run.found = chosen

    if clock.over(0.3):
        keep(run.found[:1])
    else:
        run.found = rounds(run.found, first, few)
        keep(one_of_every_kernel(run.found, ask.kept + 1))
        if not clock.over(0.4):
            run.found = rounds(run.found, learn, ask)
        keep(needed(run, run.found, ask.kept))
        if clock.over(0.8):
            keep(run.found[:1])
    n = problem.n if run.everything is None else run.everything.n_rows
    part_size = choose_part_size(n, problem.Y.shape[1], len(run.found), ask, clock)
    fit_all_rows(run, run.found, part_size, tries=ask.tries, trees=ask.n_trees)
    add_prototypes(run)
    return assemble(run)


def add_prototypes(run: TableRun) -> None:
    """Fit prototypes beside the best configuration, where rows are in parts and it may help."""
    in_parts = len(run.fitted[0][1].cuts[0].leaves) > 1 and run.everything is None
    if not in_parts or run.found[0].stage != "metric" or run.clock.over(0.7):
        return
    size = size_beside(run, run.problem.n)
    if not size:
        return
    candidate, model, _ = min(run.fitted, key=lambda one: one[0].error)
    run.begin("prototypes", str(candidate.configuration), 0, 1)
    begin = run.clock.now()
    gamma = width_beside(run, candidate, size)
    if gamma is not None:
        found, beside, outputs = fit_beside(run, candidate, model, size, gamma)
        found = replace(found, seconds=run.clock.now() - begin)
        run.fitted.append((found, beside, outputs))


def one_of_every_kernel(ordered: list[Candidate], size: int) -> list[Candidate]:
    """Return the best candidate of every kernel and then the best of the rest, best first.

    Screening sees few rows: it ranks inputs well, kernels less so.
    """
    seen: set[str] = set()
    first: list[Candidate] = []
    rest: list[Candidate] = []
    for candidate in ordered:
        new = candidate.configuration.kernel not in seen
        (first if new else rest).append(candidate)
        seen.add(candidate.configuration.kernel)
    return (first + rest)[:size]


def needed(run: TableRun, candidates: list[Candidate], size: int) -> list[Candidate]:
    """Return the candidates that the stack of their outputs uses most, at most ``size``."""
    rows = candidates[0].rows
    outputs = [c.outputs for c in candidates if c.outputs is not None and c.rows is rows]
    if rows is None or len(outputs) < len(candidates) or len(candidates) == 1:
        return candidates[:size]
    Y, weight = run.problem.Y[rows], run.problem.weight[rows]
    weights = run.rule(at_most=size).weights(outputs, Y, weight, rows)
    return [candidates[i] for i in most_used(weights)]


def choose_part_size(
    n_rows: int, n_outputs: int, n_configurations: int, ask: TableSettings, clock: Clock
) -> int:
    """Return how many rows a part may have: n L^2 (2/3) operations for every try."""
    if ask.part_size is not None:
        return min(ask.part_size, ask.largest)
    # More outputs are worth more time: their peers build trees for every class.
    wanted = ask.operations * ask.engine.speed * min(np.sqrt(n_outputs), 4.0)
    operations = clock.affordable(float(wanted), 0.7)
    each = n_rows * (2.0 / 3.0) * ask.tries * ask.n_trees * max(n_configurations, 1)
    # What is fast can afford larger parts of very many rows; not in proportion, for the time of
    # small parts is not only that of their operations.
    least = _SMALLEST * np.cbrt(ask.engine.speed) / (1 if clock.limit is None else 4)
    return int(min(max(np.sqrt(operations / each), least), ask.largest))


def assemble(run: TableRun) -> TableFit:
    """Weigh the fitted configurations by their outputs for rows that they had not seen."""
    problem = run.problem
    fitted = [c for c, _, _ in run.fitted]
    outputs = [F for _, _, F in run.fitted]
    if run.learned is not None and any(c.rounds for c in fitted):
        outputs = [F.copy() for F in outputs]
        for F in outputs:  # rows that made a metric are no judges of it
            F[run.learned] = np.nan
    plain = np.array([c.rounds == 0 for c in fitted]) if problem.n < FEW else None
    every = np.arange(problem.n, dtype=np.intp)
    weights = run.rule(plain=plain).weights(outputs, problem.Y, problem.weight, every)
    held_out = honest_outputs(run, outputs)
    names = {(c.configuration, c.rounds) for c in fitted}
    dropped = [c for c in run.dropped + run.found if (c.configuration, c.rounds) not in names]
    beside = np.array([c.stage == "prototypes" for c in fitted])
    kept = weights > 0
    for c, used in zip(fitted, kept, strict=True):
        if used and c.stage == "prototypes":  # parts keep the rows that these were made of
            own = (c.configuration, c.rounds)
            kept = kept | [own == (other.configuration, other.rounds) for other in fitted]
    members = [
        Member(c.configuration, model, c.metric, c.rounds, float(w), bool(b))
        for (c, model, _), w, k, b in zip(run.fitted, weights, kept, beside, strict=True)
        if k
    ]
    spread = weighted_error(
        problem.Y,
        np.broadcast_to(np.average(problem.Y, axis=0, weights=problem.weight), problem.Y.shape),
        problem.weight,
    )
    spread = spread if spread > 0 else 1.0
    trials = [
        Trial(c.configuration, c.rounds, relative(F, problem, spread), float(w), c.seconds, c.stage)
        for c, F, w in zip(fitted, outputs, weights, strict=True)
    ]
    trials += [
        Trial(c.configuration, c.rounds, c.error / spread, 0.0, c.seconds, c.stage)
        for c in {(c.configuration, c.rounds): c for c in dropped}.values()
    ]
    trials.sort(key=lambda t: (-t.weight, t.error))
    part_size = max(model.part_size for c, model, _ in run.fitted if c.stage != "prototypes")
    return TableFit(tuple(members), tuple(trials), held_out, part_size, note=run.note)


def honest_outputs(run: TableRun, outputs: list[FloatArray]) -> FloatArray:
    """Return outputs of rows by stacks whose settings, choices and weights are of other folds.

    Where configurations were left out by what they said about all rows, they stand for election
    again in every fold.
    """
    problem, n = run.problem, run.problem.n

    def known(c: Candidate) -> FloatArray | None:
        found = c.outputs if c.crossed is None else c.crossed
        return found if found is not None and len(found) == n else None

    fitted = [c for c, _, _ in run.fitted]
    crossed = [F if c.crossed is None else known(c) for c, F in zip(fitted, outputs, strict=True)]
    honest = [F if G is None else G for F, G in zip(outputs, crossed, strict=True)]
    rounds = [c.rounds for c in fitted]
    if n <= NESTED and not run.clock.over(0.7):
        learned = [F for F, done in zip(honest, rounds, strict=True) if done]
        return nested_outputs(run, learned, run.ask.small)
    others = [known(c) for c in run.dropped] if n < SMALL else []
    at_most = None
    if others and all(F is not None for F in others):
        at_most = len(fitted)
        honest += [F for F in others if F is not None]
        rounds += [0] * len(others)
    plain = np.array(rounds) == 0 if n < FEW else None
    rule = run.rule(plain=plain, at_most=at_most)
    return cross_stack(honest, problem.Y, problem.weight, run.folds, rule)


def relative(outputs: FloatArray, problem: Problem, spread: float) -> float:
    """Return the mean squared error of outputs where they are known, relative to the mean's."""
    good = np.isfinite(outputs).all(axis=1)
    return weighted_error(problem.Y[good], outputs[good], problem.weight[good]) / spread
