"""FSALS-SVM and PFSALS-SVM: sparse models, built one basis function at a time [Jiao2007]_."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray, is_int, pick
from lssvm._core.blocks import small_problem
from lssvm._core.errors import ConvergenceWarning, InvalidInputError
from lssvm._core.progress import Listener
from lssvm._core.random import seed_of
from lssvm.backends.host import Host
from lssvm.backends.rows import Rows, class_rows
from lssvm.codes.code import ProblemGroup, groups
from lssvm.data.folds import Folds, are_observations, hash_rows, observation_weight
from lssvm.fitting.record import Fit, KernelState, Member, Tuning, check_finite
from lssvm.greedy import Greedy, GreedyPath, Observations, greedy_leave_one_out, greedy_paths
from lssvm.greedy.forward import change_C, support_factor
from lssvm.greedy.path import cholesky
from lssvm.kernels import Kernel
from lssvm.kernels.base import Expansion
from lssvm.kernels.factory import KernelChoice, KernelParameters, check_kernel_matrix, resolve_gamma
from lssvm.solvers import DualSystem
from lssvm.tasks import Classes, SquaredError, Task
from lssvm.tuning.objective import Losses, make_folds
from lssvm.tuning.search import Space
from lssvm.tuning.searches import PathSearch, check_C
from lssvm.uncertainty import OutOfFold


class GreedyParameters(KernelParameters, Protocol):
    """The parameters of a greedy estimator that settings are read from."""

    fit_intercept: bool
    epsilon: float | str
    criterion: str
    candidates: int | None
    prefit: bool
    max_support: int | str | None
    validation_fraction: float | None
    cv: Any


@dataclass(frozen=True, eq=False)
class GreedySettings:
    """The settings of a greedy model, checked.

    Attributes
    ----------
    C : float or None
        None: to be chosen by leave-one-out.
    choice : KernelChoice
    search : Greedy
        How bases grow, and when they stop.
    validation_fraction : float or None
        Share of the rows that the size is chosen on.
    fit_intercept : bool
    seed : int
    calibrates : bool
        Whether leave-one-out outputs are kept, for probabilities.
    cv : int, "loo", splitter or iterable
        Folds that gamma is tuned on, and, of groups, C and probabilities.
    tunes_epsilon, tunes_size : bool
        Whether epsilon, or the number of basis functions, is chosen on those folds.
    """

    C: float | None
    choice: KernelChoice
    search: Greedy
    validation_fraction: float | None
    fit_intercept: bool
    seed: int
    calibrates: bool
    cv: Any = 10
    tunes_epsilon: bool = False
    tunes_size: bool = False

    @classmethod
    def of(cls, estimator: GreedyParameters) -> GreedySettings:
        """Read and check the parameters of an estimator."""
        choice = KernelChoice.of(estimator)
        unknown = isinstance(choice.gamma, str) and choice.gamma not in ("scale", "auto", "cv")
        if choice.uses_ard or (unknown and choice.has_gamma):
            raise InvalidInputError(
                f"gamma={choice.gamma!r} is not available here: give a number, 'scale', 'auto', "
                "'cv' or an array with one value per feature."
            )
        choice.check()
        by_epsilon, by_size = (
            isinstance(value, str) and value == "cv"
            for value in (estimator.epsilon, estimator.max_support)
        )
        if by_epsilon and estimator.criterion != "fsals":
            raise InvalidInputError(
                f"epsilon='cv' cannot be used with criterion={estimator.criterion!r}, which does "
                "not stop by it: use max_support='cv'."
            )
        growth = Greedy(
            EPSILONS[0] if by_epsilon else estimator.epsilon,  # type: ignore[arg-type]
            estimator.criterion,
            estimator.candidates,
            bool(estimator.prefit),
            None if by_size else estimator.max_support,  # type: ignore[arg-type]
        )
        return cls(
            check_C(estimator.C),
            choice,
            growth,
            estimator.validation_fraction,
            bool(estimator.fit_intercept),
            seed_of(estimator.random_state),
            hasattr(estimator, "predict_proba"),
            estimator.cv,
            by_epsilon,
            by_size,
        )

    def in_units(self, unit: float) -> GreedySettings:
        """Return the settings for targets of this unit, which an epsilon to be chosen is in."""
        if not self.tunes_epsilon:
            return self
        return replace(self, search=replace(self.search, epsilon=EPSILONS[0] * unit))

    def stops(self, longest: int) -> list[Greedy]:
        """Return where runs that have grown may have stopped, when that is to be chosen."""
        unit, stops = self.search.epsilon / EPSILONS[0], []
        if self.tunes_epsilon:
            stops += [replace(self.search, epsilon=value * unit) for value in EPSILONS]
        if self.tunes_size:
            sizes = np.unique(np.geomspace(1, max(longest, 1), SIZES).round().astype(int))
            stops += [replace(self.search, max_support=int(size)) for size in sizes]
        return stops or [self.search]

    def check_labels(self) -> None:
        """Refuse an epsilon that a model without basis functions satisfies for labels +1, -1."""
        epsilon = self.search.epsilon
        number = isinstance(epsilon, (int, float, np.number))
        if self.search.criterion == "fsals" and number and epsilon >= 1:
            raise InvalidInputError(
                f"epsilon={epsilon!r} is not usable: a model without any basis function is "
                "within 1 of the labels +1 and -1, so give a number below 1 (0.5 is usual)."
            )

    @property
    def splits(self) -> bool:
        """Whether the caller has given the rows of every fold."""
        return not isinstance(self.cv, str) and (
            hasattr(self.cv, "split") or hasattr(self.cv, "__iter__")
        )

    def held_out(
        self, n: int, rng: np.random.Generator, groups: IntArray | None = None
    ) -> BoolArray | None:
        """Draw the rows on which the size is chosen; rows stand in an order of their content.

        With groups, numbered from 0, whole ones: as many as hold about the share.
        """
        share = self.validation_fraction
        if share is None:
            return None
        if not isinstance(share, (int, float, np.number)) or not 0 < share < 1:
            raise InvalidInputError(
                f"validation_fraction={share!r} is not usable: give a number between 0 and 1, or "
                "None to use every row."
            )
        many = round(float(share) * n)
        if not 0 < many < n:
            raise InvalidInputError(
                f"validation_fraction={share!r} of {n} distinct rows leaves none to learn from or "
                "none to score by: give more rows, or None."
            )
        if groups is None:
            held_out = np.zeros(n, dtype=bool)
            held_out[rng.permutation(n)[:many]] = True
            return held_out
        sizes = np.bincount(groups)
        if len(sizes) < 2:
            raise InvalidInputError(
                f"validation_fraction={share!r} needs at least 2 groups, one of them to score by, "
                "but there is 1: give more groups, or None."
            )
        order = rng.permutation(len(sizes))
        enough = int(np.searchsorted(np.cumsum(sizes[order]), many)) + 1
        return np.isin(groups, order[: min(enough, len(sizes) - 1)])


SELECTION_C = 8.0
"""The C at which the basis is selected when C itself is to be chosen."""

C_GRID = 2.0 ** np.arange(-6, 15)
"""The values among which C="cv" chooses."""

EPSILONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""What epsilon="cv" chooses among (figures 1 to 3 of [Jiao2007]), in deviations of numbers."""
SIZES = 12
"""About how many sizes max_support="cv" chooses among."""

GAMMA_RANGE = (1e-4, 30.0)
"""Where gamma="cv" looks, in units of gamma="scale"; beyond it nearly every row joins the basis."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GreedyState(KernelState):
    """What only a greedy model has: the runs, from which smaller models follow.

    Attributes
    ----------
    paths : tuple of k GreedyPath
        The run of every output; its support are rows of the caller's data.
    places : tuple of k int arrays
        Where the rows of each run stand in the basis, in the order of selection.
    ridges : tuple of k arrays
        What 1/C adds to the diagonal at these rows.
    centre : array of shape (k,)
        What was taken off the targets.
    gram : array of shape (m, m) or None
        Kernel matrix of the basis, where the kernel is precomputed.
    C_scores : array or None
        Leave-one-out scores of `C_GRID`, where C was chosen.
    best_score : float or None
        The score of the chosen C.
    epsilon, max_support : float, int or None
        Those that were chosen.
    """

    paths: tuple[GreedyPath, ...]
    places: tuple[IntArray, ...]
    ridges: tuple[FloatArray, ...]
    centre: FloatArray
    gram: FloatArray | None = None
    C_scores: FloatArray | None = None
    best_score: float | None = None
    epsilon: float | None = None
    max_support: int | None = None

    def published(self, fit: GreedyFit) -> dict[str, Any]:
        """Return fitted attributes of the estimator."""
        scores = {"param_C": C_GRID.copy(), "mean_test_score": self.C_scores}
        attributes = {
            "paths_": list(self.paths) or None,
            "cv_results_": None if self.C_scores is None else scores,
            "best_score_": self.best_score,
            "epsilon_": self.epsilon,
            "max_support_": self.max_support,
        }  # of a tuned gamma they are in the record already
        kept = {name: value for name, value in attributes.items() if value is not None}
        return {**super().published(fit), "n_iter_": self.iterations, **kept}

    def reduced(self, form: str, fit: GreedyFit) -> GreedyState:
        """Return what a file of this form keeps: without the runs nothing can be truncated."""
        return replace(self, paths=(), places=(), ridges=(), gram=None, C_scores=None)


GreedyFit: TypeAlias = Fit[GreedyState]


@dataclass(frozen=True, eq=False)
class GreedyCalibrationData:
    """What a greedy model remembers of its training rows.

    Attributes
    ----------
    held_out : OutOfFold or None
        Leave-one-out outputs of all rows, where requested.
    """

    held_out: OutOfFold | None = None

    def out_of_fold(self, fit: GreedyFit, host: Host) -> OutOfFold:
        """Return the leave-one-out outputs."""
        if self.held_out is None:
            raise InvalidInputError(
                "This model has no leave-one-out outputs to calibrate probabilities on, which "
                "truncate leaves behind, and calibration=None too: fit with max_support instead."
            )
        return self.held_out

    def posteriors(self, fit: GreedyFit, host: Host) -> NoReturn:
        """Refuse: the rows outside the basis take no part in the model."""
        raise InvalidInputError(
            "A greedy model has no error bars and no intervals: use LSSVR or FixedSizeLSSVR."
        )

    def residuals(self, fit: GreedyFit, host: Host, posteriors: object = None) -> NoReturn:
        """Refuse, as there are no posteriors."""
        self.posteriors(fit, host)

    def reduced(self, form: str, fit: GreedyFit) -> GreedyCalibrationData:
        """Return what a file of this form keeps; maps to probabilities are stored in its place."""
        return self if form == "all" else GreedyCalibrationData()


def fit_greedy(rows: Rows, task: Task, settings: GreedySettings, callback: Listener) -> GreedyFit:
    """Fit a sparse model by [Jiao2007, algorithms 1 and 2]."""
    if isinstance(task, Classes):
        settings.check_labels()
    else:
        settings = settings.in_units(float(np.std(rows.Y, axis=0).max()) or 1.0)
    if settings.choice.precomputed:
        assert rows.caller_data is not None
        check_kernel_matrix(rows.caller_data[0])
    gamma, tuning, chosen_C = settings.choice.fixed_gamma(rows.X, rows.weight), None, settings.C
    point: GreedyPoint | None = None  # of folds that calibration follows too
    best_score: float | None = None
    if settings.choice.tunes_gamma:
        tuning, point, stop = _tune(rows, task, settings, callback)
        gamma, chosen_C = tuning.result.gamma, tuning.result.C
        settings = replace(settings, search=stop)
    elif settings.tunes_epsilon or settings.tunes_size:
        positions = settings.choice.precomputed
        folds = make_folds(settings.cv, settings.seed, rows, positions=positions)
        point = GreedyObjective(rows, task, settings, folds).at(gamma)
        chosen_C, best_score, stop = point.best()
        settings = replace(settings, search=stop)
    elif rows.groups is not None and (settings.C is None or settings.calibrates):
        folds = make_folds(settings.cv, settings.seed, rows, positions=settings.choice.precomputed)
        point = GreedyObjective(rows, task, settings, folds).at(gamma)
    kernel = settings.choice.at(gamma)
    left_out = settings.calibrates and point is None
    runs, centre = _grow_all(rows, task, settings, kernel, callback, left_out=left_out)
    Y = np.asarray(rows.Y, dtype=np.float64) - centre
    _warn_of_memory(runs, settings.search.epsilon)

    C, scores = chosen_C, None
    if settings.C is None and C is not None:  # chosen with gamma
        runs = [run.at_C(C, settings.search.criterion) for run in runs]
    elif C is None:  # chosen for all outputs; their bases stay
        if point is None:
            scores, ties = _score_C(rows, Y, task, runs, settings.search.criterion)
        else:
            losses = point.losses(C_GRID)
            scores, ties = -losses.mean, -losses.tie
        best = np.lexsort((-ties, -scores))[0]
        C, best_score = float(C_GRID[best]), float(scores[best])
        runs = [run.at_C(C, settings.search.criterion) for run in runs]
    calibration = GreedyCalibrationData()
    if settings.calibrates:
        assert rows.labels is not None
        if point is None:
            outputs = _leave_one_out(rows, Y, runs, np.array([C]), settings.search.criterion)[0]
            tested = np.arange(rows.n_rows)
        else:
            outputs, tested = point.out_of_fold(float(C))
        labels = rows.labels[tested].astype(np.intp)
        calibration = GreedyCalibrationData(OutOfFold(outputs, labels, pick(rows.weight, tested)))

    used = np.unique(np.concatenate([run.support for run in runs]))  # the union of all bases
    if len(used) == 0:
        used = runs[0].merged.first[:1]
    support = rows.row_numbers[used]
    numbers = [rows.row_numbers[run.support] for run in runs]
    listed = zip(runs, numbers, strict=True)
    precomputed = settings.choice.precomputed
    state = GreedyState(
        gamma=gamma,
        support=support,
        iterations=max(1, *(len(run.path.support) for run in runs)),
        paths=tuple(replace(run.path, support=run_rows, left_out=None) for run, run_rows in listed),
        places=tuple(np.searchsorted(used, run.support) for run in runs),
        ridges=tuple(run.ridge(C) for run in runs),
        centre=centre,
        gram=np.asarray(rows.X[np.ix_(used, support)]) if precomputed else None,
        C_scores=scores,
        best_score=best_score,
        epsilon=settings.search.epsilon if settings.tunes_epsilon else None,
        max_support=settings.search.max_support if settings.tunes_size else None,
    )
    solutions = [(run.path.coef, run.path.intercept) for run in runs]
    coef, intercept = _expand(state, solutions, len(used), runs[0].merged.system.dtype)
    basis = support if precomputed else rows.X[used]
    member = Member(Expansion(kernel, basis, coef, intercept, np.full(len(runs), C)))
    return Fit(task, (member,), state, settings.seed, calibration, tuning=tuning)


# -- gamma, and C with it, by cross-validation ----------------------------------------------------


def _tune(
    rows: Rows, task: Task, settings: GreedySettings, callback: Listener
) -> tuple[Tuning, GreedyPoint | None, Greedy]:
    """Choose gamma, and what else is open, by cross-validation [Jiao2007, section VII-C].

    Also return the models of folds that keep groups together, for probabilities, and where runs
    stop.
    """
    objective = GreedyObjective(rows, task, settings, make_folds(settings.cv, settings.seed, rows))
    space = Space(
        C=settings.C,
        gamma_start=float(resolve_gamma("scale", rows.X, rows.weight)),
        n_features=max(1, int(rows.X.shape[1])),
        C_range=(float(C_GRID[0]), float(C_GRID[-1])),
        gamma_range=GAMMA_RANGE,
        counted_rows=None if rows.labels is None else rows.n_observations(),
    )
    search = PathSearch(n_C=len(C_GRID))
    result = search.run(objective, space, random_state=settings.seed, on_event=callback.on_event)
    tuning = Tuning.of([result], result.n_evaluations)
    needed = settings.calibrates and (rows.groups is not None or settings.splits)
    stops = settings.tunes_epsilon or settings.tunes_size
    if not needed and not stops:
        return tuning, None, settings.search
    point = result.point  # which is not kept where others are as good
    point = point if isinstance(point, GreedyPoint) else objective.at(result.gamma)
    stop = point.stop_at(float(result.C))
    return tuning, point if needed else None, stop


@dataclass(frozen=True, eq=False)
class GreedyObjective:
    """Cross-validated loss of a greedy model as a function of (C, gamma).

    "All the free parameters are tuned using tenfold cross validation" [Jiao2007, section VII-C]. In
    every fold the bases grow on its training rows, at the given C or at `SELECTION_C`; other values
    of C are solved on those bases. A run that stops earlier is the beginning of one that goes on:
    where epsilon or the size is open, the best of them stands for each C. Time v n m^2 for each
    gamma.
    """

    rows: Rows
    task: Task
    settings: GreedySettings
    folds: Folds

    def at(self, gamma: float | None) -> GreedyPoint:
        """Let the bases of all folds grow."""
        folds, kernel = self.folds, self.settings.choice.at(gamma)
        everyone = np.arange(self.rows.n_rows)
        trained = folds.train or [np.setdiff1d(everyone, test) for test in folds.test]
        callback, data = Listener(lambda event: None), (self.task, self.settings, kernel)
        runs = [_grow_all(self._part(t), *data, callback, v) for v, t in enumerate(trained)]
        return GreedyPoint(self, gamma, runs)

    def _part(self, train: IntArray) -> Rows:
        """Return the training rows of a fold, with the class weights that follow from them."""
        rows, task = self.rows, self.task
        positions, host = rows.row_numbers[train], Host(rows.budget, rows.threads)
        X, weight = rows.X[train], pick(rows.sample_weight, train)
        if isinstance(task, Classes):
            assert rows.labels is not None
            coded = class_rows(task, X, rows.labels[train], weight, host, by_class=False)
            return replace(coded, positions=positions, groups=rows.groups)
        Y, weight = np.asarray(rows.Y)[train], pick(rows.weight, train)
        return replace(rows, X=X, Y=Y, weight=weight, sample_weight=weight, positions=positions)


@dataclass(frozen=True, eq=False)
class GreedyPoint:
    """The bases of all folds at one kernel parameter."""

    objective: GreedyObjective
    gamma: float | None
    runs: list[tuple[list[_Run], FloatArray]]

    @cached_property
    def stops(self) -> list[Greedy]:
        """Where the runs may stop."""
        longest = max(len(run.path.support) for runs, _ in self.runs for run in runs)
        return self.objective.settings.stops(longest)

    def losses(self, C: FloatArray) -> Losses:
        """Return the losses of the values ``C`` at their best stop."""
        fold, share, tie = self._all_losses(C)
        best = self._best_stops(fold @ share, tie)
        at = np.arange(len(C)), best
        return Losses(fold[at], share, tie[at])

    def best(self) -> tuple[float, float, Greedy]:
        """Return the best C, where it is open, its score and its stop."""
        made = self.objective.settings
        grid = C_GRID if made.C is None else np.array([made.C])
        losses = self.losses(grid)
        best = int(np.lexsort((losses.tie, losses.mean))[0])
        return float(grid[best]), -float(losses.mean[best]), self.stop_at(float(grid[best]))

    def stop_at(self, C: float) -> Greedy:
        """Return where the runs stop best at ``C``."""
        if len(self.stops) == 1:
            return self.stops[0]
        fold, share, tie = self._all_losses(np.array([C]))
        return self.stops[int(self._best_stops(fold @ share, tie)[0])]

    @staticmethod
    def _best_stops(mean: FloatArray, tie: FloatArray) -> IntArray:
        return np.array([np.lexsort((tie[i], mean[i]))[0] for i in range(len(mean))], dtype=np.intp)

    def _all_losses(self, C: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return losses (c, stops, v), shares of the folds (v,) and squared errors (c, stops)."""
        made, targets, shape = self.objective, self.objective.rows.targets, (len(C), -1)
        loss, squares, losses = made.task.loss(None), SquaredError(), []
        with small_problem(made.rows.n_rows):
            for v, test in enumerate(made.folds.test):
                tested, values = targets.take(test), self._fold(v, C)
                mass = len(test) if tested.weight is None else float(tested.weight.sum())
                losses.append((loss(values, tested), squares(values, tested), mass))
        fold, tie = (
            np.stack([np.reshape(entry[i], shape) for entry in losses], axis=2) for i in (0, 1)
        )
        weight = np.array([entry[2] for entry in losses], dtype=np.float64)
        share = weight / weight.sum()
        return fold, share, tie @ share

    def out_of_fold(self, C: float) -> tuple[FloatArray, IntArray]:
        """Return the outputs (t, k) of the rows of all folds at ``C``, and these rows."""
        tests, stop = self.objective.folds.test, self.stops.index(self.stop_at(C))
        with small_problem(self.objective.rows.n_rows):
            values = [self._fold(v, np.array([C]))[stop] for v in range(len(tests))]
        return np.concatenate(values), np.concatenate(tests)

    def _fold(self, v: int, C: FloatArray) -> FloatArray:
        """Return the outputs (c stops, t, k) of all problems for the rows of a fold."""
        test, (runs, centre) = self.objective.folds.test[v], self.runs[v]
        many = len(C) * len(self.stops)
        outputs = np.zeros((many, len(test), self.objective.rows.n_outputs))
        for run in runs:
            outputs[:, :, run.output] = self._outputs(run, C, test)
        return outputs + centre

    def _outputs(self, run: _Run, C: FloatArray, test: IntArray) -> FloatArray:
        """Return the outputs (c stops, t) of one problem for the rows of its fold."""
        system, criterion = run.merged.system, self.objective.settings.search.criterion
        fixed = self.objective.settings.C is not None
        paths = [run.path if fixed else run.at_C(float(value), criterion).path for value in C]
        coef, intercept = [], []
        for path, value in zip(paths, C.tolist(), strict=True):
            solutions = [(path.coef, path.intercept)]
            if len(self.stops) > 1:
                at = system if fixed else replace(system, C=value)
                solutions = run.beginnings(path, at, [run.size_at(stop) for stop in self.stops])
            coef += [solution for solution, _ in solutions]
            intercept += [b for _, b in solutions]
        host, spread = Host(system.budget, system.threads), np.column_stack(coef)
        X, basis = self.objective.rows.X[test], system.basis[run.path.support]
        return np.asarray(host.outputs(system.kernel, X, basis, spread, np.array(intercept))).T


@dataclass(frozen=True, eq=False)
class _Merged:
    """The distinct rows of outputs that are trained on the same rows."""

    outputs: IntArray
    rows: IntArray  # training rows
    all_rows: bool  # whether these are all there are
    system: DualSystem  # of the distinct rows
    Y: FloatArray  # their mean targets
    first: IntArray  # a training row for each distinct row
    member: IntArray  # the distinct row of each training row
    groups: IntArray | None = None  # the group of each distinct row, the first one of several

    def observations(self, rows: Rows, y: FloatArray) -> Observations | None:
        """Return the training rows as observations, where rows repeat by nature."""
        _, unit = observation_weight(rows.n_rows, rows.sample_weight)
        row_weight = np.ones(len(self.rows)) if rows.weight is None else rows.weight[self.rows]
        count = np.ones(len(self.rows))
        if unit is not None and rows.sample_weight is not None:
            count = (rows.sample_weight / unit)[self.rows]
        if not are_observations(self.member, y[self.rows], row_weight, float(count.sum())):
            return None
        total = np.asarray(self.system.u, dtype=np.float64)[self.member] ** 2
        return Observations(self.member, y[self.rows], row_weight / count / total)


@dataclass(frozen=True, eq=False)
class _Run:
    """The run of one output."""

    output: int
    y: FloatArray  # targets of the distinct rows
    merged: _Merged
    path: GreedyPath  # its support counts distinct rows

    @property
    def support(self) -> IntArray:
        """The basis as training rows."""
        return self.merged.first[self.path.support]

    def size_at(self, stop: Greedy) -> int:
        """Return how many functions the run had when it would have stopped there."""
        size, many = len(self.path.support), stop.max_support
        if stop.criterion == "fsals":  # eq. (31) of [Jiao2007]
            reached = np.append(np.max(np.abs(self.y)), self.path.error) <= stop.epsilon
            size = int(np.argmax(reached)) if reached.any() else size
        return size if many is None else min(size, many)

    def beginnings(
        self, path: GreedyPath, system: DualSystem, sizes: list[int]
    ) -> list[tuple[FloatArray, float]]:
        """Return coefficients, zeros at the end, and bias of the first functions of the run."""
        factor, solutions = path.factor, []
        if factor is None and len(path.support):
            factor = support_factor(system, path.support)
        for size in sizes:
            coef, b = np.zeros(len(path.support)), 0.0
            if size:
                assert factor is not None
                coef[:size], b = path.at(size, factor)
            solutions.append((coef, b))
        return solutions

    def at_C(self, C: float, criterion: str) -> _Run:
        """Return the run solved again at another C, on the same basis."""
        return replace(self, path=change_C(self.merged.system, self.path, C, criterion))

    def ridge(self, C: float) -> FloatArray:
        """Return 1/(C s) at the basis, which is 1/(2 gamma) in [Jiao2007, eq. (12)]."""
        weight = np.asarray(self.merged.system.u, dtype=np.float64)[self.path.support] ** 2
        return np.asarray(1.0 / (C * weight))


def _groups(task: Task, rows: Rows) -> list[ProblemGroup]:
    """Return the outputs that are trained on the same rows, and these rows."""
    if isinstance(task, Classes):
        assert rows.labels is not None
        return groups(task.code, rows.labels)
    return [ProblemGroup(columns, None) for columns in task.groups()]


def _merge_equal(
    rows: Rows, Y: FloatArray, group: ProblemGroup, kernel: Kernel, settings: GreedySettings
) -> _Merged:
    """Merge equal rows: their weights add up, their targets are averaged."""
    used = np.arange(rows.n_rows) if group.rows is None else group.rows
    keys = used if settings.choice.precomputed else hash_rows(rows.X[used])
    _, first, member = np.unique(keys, return_index=True, return_inverse=True)
    weight = np.ones(len(used)) if rows.weight is None else rows.weight[used]
    total, Y = np.bincount(member, weight), Y[np.ix_(used, group.columns)]
    merged = np.column_stack([np.bincount(member, weight * y) for y in Y.T]) / total[:, None]
    Y = merged if len(first) < len(used) else Y[first]
    first = used[first]
    X = rows.X[first]
    system = DualSystem(
        kernel,
        X,
        rows.row_numbers[first] if settings.choice.precomputed else X,
        SELECTION_C if settings.C is None else settings.C,
        None if np.all(total == 1.0) else np.sqrt(total),
        rows.budget,
        rows.threads,
        settings.fit_intercept,
    )
    return _Merged(
        group.columns,
        used,
        group.rows is None,
        system,
        Y,
        first,
        member,
        _first_group(rows, used, member),
    )


def _first_group(rows: Rows, used: IntArray, member: IntArray) -> IntArray | None:
    """Return the number of the group of each distinct row: the first of those of equal rows."""
    if rows.groups is None:
        return None
    numbers = np.unique(rows.groups[rows.row_numbers[used]], return_inverse=True)[1]
    first = np.full(int(member.max()) + 1, len(used))
    np.minimum.at(first, member, numbers)
    return np.asarray(np.unique(first, return_inverse=True)[1])


def _grow_all(
    rows: Rows,
    task: Task,
    settings: GreedySettings,
    kernel: Kernel,
    callback: Listener,
    *fold: int,
    left_out: bool = False,
) -> tuple[list[_Run], FloatArray]:
    """Return the runs of all outputs in their order, and what was taken off the targets."""
    centre = rows.target_offset() if settings.fit_intercept else np.zeros(rows.n_outputs)
    Y, runs = np.asarray(rows.Y, dtype=np.float64) - centre, []
    for number, group in enumerate(_groups(task, rows)):
        if group.rows is not None and len(group.rows) == 0:
            continue  # all rows of two classes are in the fold: their problem has no rows
        merged = _merge_equal(rows, Y, group, kernel, settings)
        rng = np.random.default_rng([settings.seed, number, *fold])
        runs += _grow(merged, settings, rng, callback, left_out)
    return sorted(runs, key=lambda run: run.output), centre


def _grow(
    merged: _Merged,
    settings: GreedySettings,
    rng: np.random.Generator,
    callback: Listener,
    left_out: bool,
) -> list[_Run]:
    """Let the bases grow [Jiao2007, eqs. (15)-(18) and (30)] until eq. (31) holds."""
    n = merged.system.n
    with small_problem(n):
        paths = greedy_paths(
            merged.system,
            merged.Y,
            settings.search,
            held_out=settings.held_out(n, rng, merged.groups),
            random_state=rng,
            on_event=callback.on_event,
            left_out=settings.C is not None and left_out,
        )
    listed = zip(merged.outputs.tolist(), merged.Y.T, paths, strict=True)
    return [_Run(output, y, merged, path) for output, y, path in listed]


def _warn_of_memory(runs: list[_Run], epsilon: float) -> None:
    cut = sum(run.path.status == "memory" for run in runs)
    if cut:
        warnings.warn(
            f"{cut} of {len(runs)} problems stopped before epsilon={epsilon:g} because "
            "memory_budget holds no more columns. Raise memory_budget or epsilon, or set "
            "candidates=146, which needs less.",
            ConvergenceWarning,
            stacklevel=5,
        )


def _score_C(
    rows: Rows, Y: FloatArray, task: Task, runs: list[_Run], criterion: str
) -> tuple[FloatArray, FloatArray]:
    """Return leave-one-out scores of `C_GRID`, and minus squared errors, which decide ties."""
    targets = replace(rows.targets, Y=Y)
    outputs = _leave_one_out(rows, Y, runs, C_GRID, criterion)
    losses = task.loss(None)(outputs, targets)
    for run in runs:  # a problem's squared error is that of its own rows
        others = np.setdiff1d(np.arange(rows.n_rows), run.merged.rows)
        outputs[:, others, run.output] = Y[others, run.output]
    return -losses, -SquaredError()(outputs, targets)


def _leave_one_out(
    rows: Rows, Y: FloatArray, runs: list[_Run], Cs: FloatArray, criterion: str
) -> FloatArray:
    """Return leave-one-out outputs on the selected bases, shape (c, n, k).

    Equal rows are left out together, or, where they repeat by nature, one observation alone.
    """
    outputs = np.empty((len(Cs), rows.n_rows, rows.n_outputs))
    for run in runs:
        path, merged = run.path, run.merged
        if not merged.all_rows:  # rows that a one-vs-one problem has not seen
            system = merged.system
            basis, host = system.basis[path.support], Host(system.budget, system.threads)
            coef, intercept = path.coef[:, None], np.array([path.intercept])
            values = host.outputs(system.kernel, rows.X, basis, coef, intercept)
            outputs[:, :, run.output] = values[:, 0]
        observations = merged.observations(rows, Y[:, run.output])
        if observations is not None:
            left_out = greedy_leave_one_out(merged.system, run.y, path, Cs, criterion, observations)
            outputs[:, merged.rows, run.output] = left_out
            continue
        if path.left_out is not None and len(Cs) == 1:  # the run's own C
            left_out = path.left_out[None, :]
        else:
            left_out = greedy_leave_one_out(merged.system, run.y, path, Cs, criterion)
        outputs[:, merged.rows, run.output] = left_out[:, merged.member]
    return outputs


def _expand(
    state: GreedyState,
    solutions: list[tuple[FloatArray, float]],
    size: int,
    dtype: np.dtype[Any],
) -> tuple[FloatArray, FloatArray]:
    """Spread the coefficients of every output over the basis, (size, k) and (k,)."""
    coef = np.zeros((size, len(solutions)))
    for j, (values, _) in enumerate(solutions):
        coef[state.places[j], j] = values
    intercept = np.array([b for _, b in solutions]) + state.centre
    check_finite(coef, intercept)
    return coef.astype(dtype, copy=False), intercept.astype(dtype, copy=False)


def truncate_fit(fit: GreedyFit, n: int) -> GreedyFit:
    """Return the model of the first ``n`` basis functions of every output."""
    if not is_int(n) or n < 1:
        raise InvalidInputError(f"n={n!r} is not usable: give a whole number >= 1.")
    fit.need("all", "A truncated model")
    state, one = fit.state, fit.expansion
    sizes = [min(int(n), len(path.support)) for path in state.paths]
    solutions = [_solve_first(fit, j, size) for j, size in enumerate(sizes)]
    places = [place[:size] for place, size in zip(state.places, sizes, strict=True)]
    used = np.unique(np.concatenate(places))
    used = used if len(used) else np.array([0])
    paths = zip(state.paths, sizes, solutions, strict=True)
    smaller = replace(
        state,
        support=state.support[used],
        iterations=max(1, *sizes),
        paths=tuple(path.cut(size, *solution) for path, size, solution in paths),
        places=tuple(np.searchsorted(used, place) for place in places),
        ridges=tuple(ridge[:size] for ridge, size in zip(state.ridges, sizes, strict=True)),
        gram=None if state.gram is None else state.gram[np.ix_(used, used)],
    )
    coef, intercept = _expand(smaller, solutions, len(used), one.coef.dtype)
    return replace(
        fit.solved(basis=one.basis[used], coef=coef, intercept=intercept),
        calibration=GreedyCalibrationData(),  # held-out outputs belong to the whole model
        state=smaller,
    )


def _solve_first(fit: GreedyFit, output: int, size: int) -> tuple[FloatArray, float]:
    """Solve an output for its first ``size`` basis functions."""
    state, one = fit.state, fit.expansion
    path, place = state.paths[output], state.places[output][:size]
    if size == len(path.support):
        return path.coef, path.intercept
    if path.factor is not None:
        return path.at(size, path.factor)
    if state.gram is not None:
        K = state.gram[np.ix_(place, place)]
    else:
        K = one.kernel(one.basis[place], one.basis[place])
    K = np.asarray(K, dtype=np.float64)
    return path.at(size, cholesky(K + np.diag(state.ridges[output][:size])))
