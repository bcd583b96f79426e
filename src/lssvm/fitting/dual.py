"""The full dual model: settings, tuning, solution, reduction, data for calibration.

[Suykens2002, chapter 3]
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray, is_int, pick
from lssvm._core.blocks import small_problem
from lssvm._core.errors import InvalidInputError, MemoryBudgetError
from lssvm._core.progress import Listener
from lssvm.backends.host import Host
from lssvm.backends.rows import Rows
from lssvm.codes import Coding
from lssvm.codes.code import groups as code_groups
from lssvm.data.folds import (
    Folds,
    are_observations,
    assign_folds,
    count_observations,
    hash_rows,
    observation_weight,
    restrict_folds,
)
from lssvm.fitting.record import (
    Fit,
    KernelState,
    Posteriors,
    Tuning,
    alike,
    check_finite,
    members_of,
)
from lssvm.kernels import Kernel, Precomputed
from lssvm.kernels.factory import KernelChoice, check_kernel_matrix, resolve_gamma
from lssvm.reductions import L0, Prune
from lssvm.reductions.l0 import reduce_dual_l0
from lssvm.reductions.pruning import WrongSides, prune
from lssvm.solvers import DualSystem
from lssvm.solvers.exact import solve_with
from lssvm.solvers.reweighting import ROUGH, absolute_C, lower_weights, minimise_loss, reweight
from lssvm.tasks import Classes, Loss, Misclassification, Numbers, SquaredError, Targets, Task
from lssvm.tasks.losses import best_threshold, loss_name, middle_threshold
from lssvm.tuning.dual import C_range, DualObjective, DualPoint
from lssvm.tuning.fixed_size import untested_output
from lssvm.tuning.objective import FoldTargets, Group, check_criterion, is_criterion, make_folds
from lssvm.tuning.relevance import DUAL_ROWS, DualRelevance, relevance_sample, shares, spread_gamma
from lssvm.tuning.search import Space
from lssvm.tuning.searches import SQUARES, TunedParameters, TunedSettings, check_option
from lssvm.tuning.spectral import SpectralObjective, press_folds, press_loss
from lssvm.uncertainty import DualPosterior, OutOfFold, Residuals, scaled_residuals


@dataclass(frozen=True, eq=False, kw_only=True)
class DualState(KernelState):
    """How a dual model was fitted.

    Attributes
    ----------
    reduction_path : list
        What the reduction did, one record for each group of outputs.
    n_reweightings : int or None
        Steps of a robust loss; None for classes.
    """

    reduction_path: list[Any]
    n_reweightings: int | None

    def published(self, fit: Fit[Any]) -> dict[str, Any]:
        """Return fitted attributes of the estimator."""
        attributes = {
            "n_iter_": self.iterations,
            "solver_": self.solver,
            "residual_": self.residual,
        }
        if self.n_reweightings is not None:
            attributes["n_reweightings_"] = self.n_reweightings
        return super().published(fit) | attributes | {"reduction_path_": self.reduction_path}

    def reduced(self, form: str, fit: DualFit) -> DualState:
        """Return what a file of this form keeps."""
        return replace(self, reduction_path=[])


DualFit: TypeAlias = Fit[DualState]


@dataclass(frozen=True, eq=False)
class DualPart:
    """Problems that share rows, C and kernel.

    Attributes
    ----------
    columns : int array
    rows : int array or None
        Training rows of these problems; None: all.
    kernel : Kernel
    C : float
    """

    columns: IntArray
    rows: IntArray | None
    kernel: Kernel
    C: float


@dataclass(frozen=True, eq=False)
class DualCalibrationData:
    """The training rows of a dual model as far as uncertainty needs them.

    Attributes
    ----------
    parts : list of DualPart
        Empty where rows are not kept: of a precomputed kernel, a reduced model, another loss than
        squares, and where scores of rows left out are kept in their place.
    X : array or sparse matrix of shape (n, d)
        The basis of the model, where that is all rows.
    Y : array of shape (n, k)
    weight : array of shape (n,) or None
    labels : int array of shape (n,) or None
        Class numbers; None where targets are numbers.
    bias : bool
    reduction : str or None
        The parameter, as text.
    held_out : array of shape (t, k) or None
        What cross-validation has predicted of ``held_out_rows``.
    held_out_rows : int array of shape (t,) or None
    """

    parts: list[DualPart]
    X: Any
    Y: FloatArray
    weight: FloatArray | None
    labels: IntArray | None
    bias: bool = True
    reduction: str | None = None
    held_out: FloatArray | None = None
    held_out_rows: IntArray | None = None

    def settled(self, host: Host) -> DualCalibrationData:
        """Return what is kept after a fit.

        Scores of classes that are at hand stand for the rows; they are computed now where a reduced
        model does not keep the rows. A reduced regressor has no error bars.
        """
        if self.labels is None:
            return self if self.reduction is None else self._without_rows(None)
        held_out, held_out_rows = self.held_out, self.held_out_rows
        if held_out is None and self.reduction is not None and self.parts:
            with suppress(MemoryBudgetError):
                held_out, held_out_rows = self._leave_one_out(host), np.arange(len(self.Y))
        if held_out is None and self.reduction is None:
            return self
        return replace(self._without_rows(held_out), held_out_rows=held_out_rows)

    def _without_rows(self, held_out: FloatArray | None) -> DualCalibrationData:
        return replace(self, parts=[], X=self.X[:0], Y=self.Y[:0], held_out=held_out)

    def out_of_fold(self, fit: DualFit, host: Host) -> OutOfFold:
        """Return scores of rows by models that have not seen them."""
        assert self.labels is not None
        if self.held_out is not None and self.held_out_rows is not None:
            rows = self.held_out_rows
            return OutOfFold(self.held_out, self.labels[rows], pick(self.weight, rows))
        if not self.parts and fit.state.loss != "squared":
            raise InvalidInputError(
                f"loss={fit.state.loss} has no out-of-fold scores to calibrate probabilities on: "
                "use decision_function, or the squared loss."
            )
        if not self.parts:
            raise InvalidInputError(
                "There are no out-of-fold scores to calibrate probabilities on: with a "
                "precomputed kernel, or a reduction of a model too large for the memory budget, "
                "they come from tuning. Set C='cv'."
            )
        scores = self._leave_one_out(host)
        if fit.state.threshold is not None:
            scores -= fit.state.threshold
        return OutOfFold(scores, self.labels, self.weight)

    def _posterior(self, part: DualPart, host: Host) -> DualPosterior:
        root = None if self.weight is None else np.sqrt(self.weight)
        budget, threads = host.budget, host.threads
        system = DualSystem(part.kernel, self.X, self.X, part.C, root, budget, threads, self.bias)
        if part.rows is None:
            return DualPosterior(system, self.Y[:, part.columns])
        return DualPosterior(system.subset(part.rows), self.Y[np.ix_(part.rows, part.columns)])

    def _left_out(self, part: DualPart, posterior: DualPosterior) -> tuple[FloatArray, FloatArray]:
        """Return leave-one-out predictions and variances.

        Equal rows are left out together, or, where they repeat by nature, one observation alone.
        """
        system, share = posterior.system, None
        if system.n < 2:
            raise InvalidInputError(
                f"Out-of-fold predictions need at least 2 rows but a problem has {system.n}."
            )
        _, unit = observation_weight(len(self.Y), self.weight, self.labels)
        if unit is not None and self.weight is not None:
            share = (unit / self.weight)[slice(None) if part.rows is None else part.rows]
        observed = float(system.n if share is None else np.sum(1.0 / share))
        Y = self.Y if part.rows is None else self.Y[part.rows]
        if are_observations(hash_rows(system.rows), Y[:, part.columns], None, observed):
            folds = list(np.arange(system.n)[:, None])
        else:
            folds, share = assign_folds(system.rows, None).test, None
        return posterior.leave_out(folds, share)

    def _leave_one_out(self, host: Host) -> FloatArray:
        """Return what all problems say of every row without it, shape (n, k)."""
        scores = np.empty(self.Y.shape)
        for part in self.parts:
            posterior = self._posterior(part, host)
            left, _ = self._left_out(part, posterior)
            if part.rows is None:
                scores[:, part.columns] = left
                continue
            # Rows of other classes were not in the training set of these problems.
            system, (coef, b) = posterior.system, posterior.expansion()
            outputs = host.outputs(system.kernel, self.X, system.basis, coef, b)
            scores[:, part.columns] = outputs
            scores[np.ix_(part.rows, part.columns)] = left
        return scores

    def posteriors(self, fit: DualFit, host: Host) -> Posteriors:
        """Return the outputs and their Gaussian posterior."""
        if self.reduction is not None:
            raise InvalidInputError(
                f"reduction={self.reduction} has replaced the model that the error bars belong "
                "to: use reduction=None for standard deviations and intervals."
            )
        fit.state.check_posterior()
        if not self.parts:
            raise InvalidInputError(
                "kernel='precomputed' does not give K(x, x) of new rows, which their variance "
                "needs: pass the kernel as a function, or by name."
            )
        return [(part.columns, self._posterior(part, host)) for part in self.parts]

    def residuals(self, fit: DualFit, host: Host, posteriors: Posteriors) -> Residuals:
        """Return errors of rows left out, in units of their predicted deviations."""
        residuals, scale = np.empty(self.Y.shape), np.empty(self.Y.shape)
        for part, (columns, posterior) in zip(self.parts, posteriors, strict=True):
            assert isinstance(posterior, DualPosterior)
            left, variance = self._left_out(part, posterior)
            residuals[:, columns] = self.Y[:, columns] - left
            spread = variance[:, None] * posterior.prior_variance + posterior.noise_variance
            scale[:, columns] = np.sqrt(spread)
        if self.held_out is None or self.held_out_rows is None:
            return scaled_residuals(residuals, scale, self.weight)
        rows = self.held_out_rows
        return scaled_residuals(self.Y[rows] - self.held_out, scale[rows], pick(self.weight, rows))

    def reduced(self, form: str, fit: DualFit) -> DualCalibrationData:
        """Return what a file of this form keeps; maps are stored in the place of scores."""
        if form == "all" or (form == "prediction" and self.parts):
            return self
        labels = pick(self.labels, slice(0))
        return replace(self._without_rows(None), weight=None, labels=labels, held_out_rows=None)


class DualParameters(TunedParameters, Protocol):
    """The parameters of a dual estimator that settings are read from."""

    fit_intercept: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class DualSettings(TunedSettings):
    """The settings of a dual model, checked.

    Attributes
    ----------
    fit_intercept : bool
    reduction : Prune, L0 or None
    reduction_text : str or None
        The reduction as the caller wrote it.
    threshold : str
        "zero", "midpoint" or "cv", of a classifier.
    """

    fit_intercept: bool = True
    reduction: Prune | L0 | None = None
    reduction_text: str | None = None
    threshold: str = "zero"

    @classmethod
    def of(cls, estimator: DualParameters) -> DualSettings:
        """Read and check the parameters of an estimator."""
        reduction = estimator.reduction
        settings = cls(
            **cls.read(estimator),
            fit_intercept=bool(estimator.fit_intercept),
            reduction=_reduction(reduction),
            reduction_text=None if reduction is None else repr(reduction),
            threshold=Coding.of(getattr(estimator, "multiclass", "auto")).threshold,
        )
        settings.choice.check()
        check_option("threshold", settings.threshold, ("zero", "midpoint", "cv"))
        if settings.choice.uses_ard and settings.separate:
            raise InvalidInputError(
                "gamma='ard' finds one set of values for all outputs, so a search with "
                "per_output=True cannot be used with it: use per_output=False."
            )
        if settings.search.checkpoint is not None and settings.separate:
            raise InvalidInputError(
                "A checkpoint holds one search, and per_output=True has one for each output: use "
                "per_output=False, or no checkpoint."
            )
        return settings

    @property
    def tunes(self) -> bool:
        """Whether anything is tuned."""
        return self.C is None or self.choice.tunes_gamma

    @property
    def needs_folds(self) -> bool:
        """Whether leave-one-out predictions could not stand in for those of the folds.

        The folds of a splitter may keep groups together; a precomputed matrix is not kept to leave
        rows out later.
        """
        return self.choice.precomputed or not (hasattr(self.cv, "__index__") or self.cv == "loo")


def _reduction(option: Any) -> Prune | L0 | None:
    known: dict[str, type[Prune | L0]] = {"prune": Prune, "l0": L0}
    reduction = known[option]() if isinstance(option, str) and option in known else option
    if option is not None and not isinstance(reduction, (Prune, L0)):
        raise InvalidInputError(
            f"reduction={option!r} is not known: choose None, 'prune', 'l0', or an instance of "
            "lssvm.reductions.Prune or lssvm.reductions.L0."
        )
    return reduction


def fit_dual(rows: Rows, task: Task, settings: DualSettings, callback: Listener) -> DualFit:
    """Fit the dual model: least squares support vector machines of [Suykens2002, chapter 3]."""
    problem = _open(rows, task, settings, callback)
    with small_problem(rows.n_rows):
        chosen = _untuned(problem)
        if settings.tunes:
            chosen = _tune(problem, settings.choice)
            for _ in range(settings.robust_rounds):
                problem = _weigh_down(problem, chosen)
                chosen = _tune(problem, settings.choice, again=True)
            if settings.choice.uses_ard:
                chosen = _spread_gamma(problem, chosen)
        solved = [_solve(part, problem, chosen) for part in _parts_of(problem, chosen)]
        solved = [_reduce(_use_loss(part, problem), problem) for part in solved]
        fit = _record(problem, chosen, solved)
        return _with_thresholds(fit, rows, settings) if settings.threshold != "zero" else fit


def _with_thresholds(fit: DualFit, rows: Rows, settings: DualSettings) -> DualFit:
    """Move the outputs so that classes change at zero: half-way, or by out-of-fold errors."""
    Y, host = np.asarray(rows.Y, dtype=np.float64), Host(rows.budget, rows.threads)
    calibration, weight, tested = fit.calibration, rows.weight, np.arange(len(Y))
    assert isinstance(calibration, DualCalibrationData)
    middle = settings.threshold == "midpoint"
    if middle:
        outputs = fit.outputs({"none": rows.X}, host)
    else:
        outputs = calibration.out_of_fold(fit, host).scores
        if calibration.held_out_rows is not None:
            tested = calibration.held_out_rows
    rule = middle_threshold if middle else best_threshold
    pairs = zip(np.asarray(outputs, dtype=np.float64).T, Y[tested].T, strict=True)
    moved = np.array([rule(values, y, pick(weight, tested)) for values, y in pairs])
    if calibration.held_out is not None:
        calibration = replace(calibration, held_out=calibration.held_out - moved)
    before = fit.expansion.intercept
    fit = fit.solved(intercept=(before - moved).astype(before.dtype))
    return replace(fit, state=replace(fit.state, threshold=moved), calibration=calibration)


def _open(rows: Rows, task: Task, settings: DualSettings, callback: Listener) -> DualProblem:
    choice = settings.choice
    if choice.precomputed:
        check_kernel_matrix(rows.X if rows.caller_data is None else rows.caller_data[0])
    gamma = choice.fixed_gamma(rows.X, rows.weight)
    system = DualSystem(
        choice.at(gamma),
        rows.X,
        rows.row_numbers if choice.precomputed else rows.X,
        settings.C or 1.0,
        None if rows.weight is None else np.sqrt(rows.weight),
        rows.budget,
        rows.threads,
        settings.fit_intercept,
    )
    cv = per_fold = None
    if settings.tunes or isinstance(settings.reduction, Prune):
        cv = make_folds(settings.cv, settings.seed, rows, positions=choice.precomputed)
    Y = np.asarray(rows.Y, dtype=np.float64)
    if isinstance(task, Classes):  # [Suykens2002, eq. (3.12)]
        assert rows.labels is not None
        groups = [Group(g.columns, g.rows) for g in code_groups(task.code, rows.labels)]
    else:
        groups = [Group(np.arange(Y.shape[1]))]
    folds, loss = cv, None
    if not is_criterion(settings.scoring):
        loss = task.loss(settings.scoring, settings.loss)
    elif settings.scoring == "press":
        folds, loss = press_folds(system, Y, choice.precomputed), press_loss(groups)
    if isinstance(task, Classes) and folds is not None:
        assert rows.labels is not None
        per_fold = FoldTargets.of(task, rows.labels, rows.sample_weight, folds)
    targets = Targets(Y, rows.labels, rows.weight, rows.sample_weight, rows.X)
    made = (system, targets, task, groups, gamma, loss, cv, folds, per_fold)
    return DualProblem(rows, settings, callback, *made)


def _record(problem: DualProblem, chosen: Chosen, parts: list[Part]) -> DualFit:
    rows, settings, (n, k) = problem.rows, problem.settings, problem.targets.Y.shape
    coef, intercept, C = np.zeros((n, k)), np.zeros(k), np.empty(k)
    gamma: list[Any] = [None] * k
    for part in parts:
        members = np.arange(n) if part.rows is None else part.rows
        coef[np.ix_(members, part.columns)] = part.solved.alpha
        intercept[part.columns], C[part.columns] = part.solved.b, part.C
        for j in part.columns:
            gamma[j] = part.gamma
    check_finite(coef, intercept)
    used = np.flatnonzero(np.any(coef != 0, axis=1))
    used = used if len(used) else np.array([0])
    system, choice = problem.system, chosen.choice
    same = all(np.array_equal(gamma[0], value) for value in gamma)
    published = choice.by_feature(gamma[0]) if same else np.array(gamma)
    basis = system.basis[used]
    coef = coef[used].astype(system.dtype, copy=False)
    intercept = intercept.astype(system.dtype, copy=False)
    relevance = None
    if choice.uses_ard:
        relevance = shares(published, rows.X, problem.targets.weight)
    n_reweightings = None
    if rows.labels is None:
        n_reweightings = max(part.n_reweightings for part in parts)
    return Fit(
        problem.task,
        members_of(choice, gamma, basis, coef, intercept, C),
        DualState(
            gamma=published,
            support=rows.row_numbers[used],
            loss=loss_name(settings.loss),
            solver=parts[-1].solved.solver,
            residual=max(part.solved.residual for part in parts),
            iterations=max(1, *(part.solved.iterations for part in parts)),
            relevance=relevance,
            reduction_path=[part.path for part in parts if part.path is not None],
            n_reweightings=n_reweightings,
        ),
        settings.seed,
        _remember(problem, chosen, parts, basis if len(used) == n else None),
        tuning=chosen.tuning,
    )


def _remember(
    problem: DualProblem, chosen: Chosen, parts: list[Part], basis: Any
) -> DualCalibrationData:
    """Keep rows, targets and what cross-validation has predicted, as far as they are needed.

    ``basis`` are the rows, where all of them are support vectors.
    """
    rows, settings = problem.rows, problem.settings
    held_out = held_out_rows = None
    # Of a weighted row that stands for many, "press" leaves out all, and a calibration only one.
    whole = settings.scoring == "press" and rows.weight is not None
    squares = isinstance(settings.loss, str)  # or a robust loss: the scores have their unit
    if chosen.point is not None and len(set(chosen.C.tolist())) == 1 and not whole and squares:
        # A search without the kernel matrix may end where the matrix does not fit.
        with suppress(MemoryBudgetError):
            held_out = np.concatenate([p[0] for p in chosen.point.predictions(chosen.C[:1])])
            held_out_rows = np.concatenate(chosen.point.objective.folds.test)
    precomputed = isinstance(problem.system.kernel, Precomputed)
    kept = [] if precomputed or settings.loss != "squared" else parts
    if rows.groups is not None and held_out is None and kept:
        held_out, held_out_rows = _without_groups(problem, parts)
    calibration = DualCalibrationData(
        [
            DualPart(part.columns, part.rows, part.choice.at(part.gamma), float(part.C[0]))
            for part in kept
        ],
        (rows.X.copy() if basis is None else basis) if kept else rows.X[:0].copy(),
        np.array(problem.targets.Y),  # a regressor's may be the caller's array
        problem.targets.weight,
        rows.labels,
        settings.fit_intercept,
        settings.reduction_text,
        held_out,
        held_out_rows,
    )
    return calibration.settled(Host(rows.budget, rows.threads))


def _without_groups(problem: DualProblem, parts: list[Part]) -> tuple[FloatArray, IntArray]:
    """Return the outputs of rows by models that have not seen their groups."""
    cv = problem.settings.cv
    folds = make_folds(
        int(cv) if is_int(cv) and cv >= 2 else 10, problem.settings.seed, problem.rows
    )
    held_out = np.zeros((sum(len(test) for test in folds.test), problem.targets.Y.shape[1]))
    for part in parts:
        group = Group(np.arange(len(part.columns)), part.rows)
        system, targets = replace(problem.system, C=part.system.C), problem.targets
        targets = Targets(targets.Y[:, part.columns])
        kernel = partial(lambda one, gamma: one, part.system.kernel)
        objective = DualObjective(kernel, system, targets, folds, SquaredError(), [group])
        held_out[:, part.columns] = np.concatenate(
            [p[0] for p in objective.at(None).predictions(np.array([part.system.C]))]
        )
    return held_out, np.concatenate(folds.test)


@dataclass(frozen=True, eq=False)
class DualProblem:
    """Outputs that are trained and tuned together.

    Attributes
    ----------
    rows : Rows
    settings : DualSettings
    callback : Listener
    system : DualSystem
        Of all rows; its kernel is that of the given gamma, or of 1.
    targets : Targets
        Targets (n, k), classes and weights.
    task : Classes or Numbers
    groups : list of Group
        Outputs that are trained on the same rows.
    gamma : float, array or None
        As given; None: tuned, or the kernel has none.
    loss : Loss or None
        What tuning minimises; None for a criterion that needs no folds.
    cv : Folds or None
        Folds as the caller gave them.
    folds : Folds or None
        Folds that are tuned on.
    per_fold : FoldTargets or None
    lowered : bool
        Whether a robust loss has changed the weights.
    """

    rows: Rows
    settings: DualSettings
    callback: Listener
    system: DualSystem
    targets: Targets
    task: Task
    groups: list[Group]
    gamma: Any
    loss: Loss | None
    cv: Folds | None
    folds: Folds | None
    per_fold: FoldTargets | None
    lowered: bool = False

    def targets_of(self, part: Part) -> FloatArray:
        """Return the targets of a part."""
        Y = self.targets.Y
        return np.asarray(
            Y[:, part.columns] if part.rows is None else Y[np.ix_(part.rows, part.columns)]
        )


@dataclass(frozen=True, eq=False)
class Chosen:
    """C and gamma of every output.

    Attributes
    ----------
    C : array of shape (k,)
    gamma : list of float, array or None
    choice : KernelChoice
        With the factors of gamma by feature.
    tuning : Tuning or None
    point : DualPoint or None
        What was factorised at the chosen gamma, where one choice serves all outputs.
    """

    C: FloatArray
    gamma: list[Any]
    choice: KernelChoice
    tuning: Tuning | None = None
    point: DualPoint | None = None


def _untuned(problem: DualProblem) -> Chosen:
    """Return C and gamma as the caller gave them; what is to be tuned is not a number yet."""
    k, settings = problem.targets.Y.shape[1], problem.settings
    C = np.full(k, np.nan if settings.C is None else settings.C)
    return Chosen(C, [problem.gamma] * k, settings.choice)


def _tune(problem: DualProblem, choice: KernelChoice, *, again: bool = False) -> Chosen:
    """Choose C and gamma, jointly for all outputs or for each by itself [Suykens2002, (3.13)].

    A checkpoint holds the first search of a fit; ``again`` means that this is a later one.
    """
    settings = problem.settings
    if is_criterion(settings.scoring):
        check_criterion(settings.scoring, settings.C)
    space, chosen, results = _space(problem, problem.system), _untuned(problem), []
    counts = problem.targets.labels is not None and settings.scoring is None
    more: dict[str, Any] = {"resume": not again}
    if settings.search.checkpoint is not None:
        data = (problem.system.rows, problem.targets.Y, problem.targets.weight)
        more["fingerprint"] = settings.fingerprint(data, problem.task, settings.fit_intercept)
    every = np.arange(len(chosen.C))
    for columns in every[:, None] if settings.separate else [every]:
        part = _single(problem, int(columns[0])) if settings.separate else problem
        objective = _objective(part, choice)
        if counts:
            n, X, Y = part.system.n, part.system.rows, part.targets.Y
            counted = n if choice.precomputed else count_observations(X, Y)
            space = replace(space, counted_rows=counted)
        result = settings.run_search(objective, space, problem.callback, **more)
        results.append(result)
        chosen.C[columns] = result.C
        if choice.tunes_gamma:
            for j in columns:
                chosen.gamma[j] = result.gamma
    point = result.point if len(results) == 1 else None
    if len(results) == 1 and not isinstance(point, DualPoint):
        at_hand = settings.needs_folds and isinstance(objective, DualObjective)
        point = objective.at(result.gamma) if at_hand else None
    assert point is None or isinstance(point, DualPoint)
    evaluated = [r for result in results for r in (result, result.approximate) if r is not None]
    tuning = Tuning.of(results, int(sum(r.n_evaluations for r in evaluated)))
    return replace(chosen, choice=choice, tuning=tuning, point=point)


def _space(problem: DualProblem, system: DualSystem) -> Space:
    """Return what is searched; the range of C is in units of the kernel of ``system``."""
    X, tuned = problem.system.rows, problem.settings.choice.tunes_gamma
    return Space(
        C=problem.settings.C,
        tune_gamma=tuned,
        gamma_start=float(resolve_gamma("scale", X, problem.targets.weight)) if tuned else 1.0,
        n_features=max(1, X.shape[1]),
        C_range=C_range(system),
    )


def _objective(problem: DualProblem, choice: KernelChoice) -> DualObjective | SpectralObjective:
    def kernel(value: float | None) -> Kernel:
        return choice.at(value if choice.tunes_gamma else problem.gamma)

    system, targets, groups = problem.system, problem.targets, problem.groups
    if problem.loss is None:
        return SpectralObjective(problem.settings.scoring, kernel, system, targets.Y, groups)
    assert problem.folds is not None
    folds, per_fold = problem.folds, problem.per_fold
    return DualObjective(kernel, system, targets, folds, problem.loss, groups, per_fold)


def _single(problem: DualProblem, j: int) -> DualProblem:
    """Return the problem of one output, on the rows that it is trained on."""
    targets, settings, column = problem.targets, problem.settings, np.array([j])
    group = next(g for g in problem.groups if j in g.columns)
    rows = np.arange(problem.system.n) if group.rows is None else group.rows
    squares = isinstance(settings.scoring, str) and settings.scoring == SQUARES
    known = settings.scoring is None or squares or is_criterion(settings.scoring)
    if targets.labels is not None and not known:
        raise InvalidInputError(
            f"per_output=True scores each binary problem by its accuracy, or with scoring="
            f"{SQUARES!r} by its squared error; another scoring cannot be given with it. Use "
            "per_output=False."
        )
    loss: Loss | None = SquaredError() if squares else Misclassification(_side)
    if is_criterion(settings.scoring):
        loss = None if problem.loss is None else SquaredError()
    elif targets.labels is None:
        loss = Numbers(1).loss(settings.scoring, settings.loss)
    folds, per_fold, system = problem.folds, problem.per_fold, problem.system
    if group.rows is not None:
        system, targets = system.subset(rows), targets.take(rows)
        if folds is not None:
            folds = restrict_folds(folds, rows, problem.system.n)
            if len(folds) == 0:
                raise untested_output(j)
    if per_fold is not None and problem.folds is not None:
        per_fold = per_fold.restricted(_kept(problem.folds, rows), rows, column)
    Y, only = targets.Y[:, column], [Group(np.array([0]))]
    targets = replace(targets, Y=Y, labels=None if targets.labels is None else _side(Y))
    problem = replace(problem, system=system, targets=targets, groups=only)
    return replace(problem, loss=loss, folds=folds, per_fold=per_fold)


def _side(raw: FloatArray) -> IntArray:
    return (raw[:, 0] > 0).astype(np.intp)


def _kept(folds: Folds, rows: IntArray) -> IntArray:
    """Return the folds that have some of the rows to test, and some to train on."""
    trains = folds.test if folds.train is None else folds.train
    pairs = zip(folds.test, trains, strict=True)
    return np.flatnonzero([np.isin(t, rows).any() and np.isin(s, rows).any() for t, s in pairs])


def _spread_gamma(problem: DualProblem, chosen: Chosen) -> Chosen:
    """Give every feature a gamma of its own, where cross-validation is not against it."""
    settings = problem.settings
    sample = relevance_sample(problem.rows, problem.targets.weight, DUAL_ROWS, settings.seed)
    return spread_gamma(
        DualRelevance(settings.choice.at, *sample, bias=settings.fit_intercept),
        float(chosen.gamma[0]),
        float(chosen.C[0]),
        chosen,
        lambda scales: _tune(problem, settings.choice.scaled(scales), again=True),
        tune_C=settings.C is None,
    )


_ACCURATE = 1e-8  # relative residual below which tuning's factorisation also gives the solution


class Model(NamedTuple):
    """A solution: support values (n, k), intercepts (k,), and how they were computed."""

    alpha: FloatArray
    b: FloatArray
    solver: str
    residual: float
    iterations: int


@dataclass(frozen=True, eq=False)
class Part:
    """Outputs that share rows, C and gamma, and their model.

    Attributes
    ----------
    group : int
        Number of their group.
    rows : int array or None
        Training rows; None: all.
    columns : int array
    system : DualSystem
        Of those rows, with kernel and C.
    gamma : float, array or None
    choice : KernelChoice
        Of the kernel, for another gamma.
    C : array of shape (k,)
        What each output is published with.
    model : Model or None
        None: not solved yet.
    n_reweightings : int
    path : object or None
        What a reduction did.
    """

    group: int
    rows: IntArray | None
    columns: IntArray
    system: DualSystem
    gamma: Any
    choice: KernelChoice
    C: FloatArray
    model: Model | None = None
    n_reweightings: int = 0
    path: Any = None

    @property
    def solved(self) -> Model:
        """The model."""
        assert self.model is not None
        return self.model


def _parts_of(problem: DualProblem, chosen: Chosen) -> list[Part]:
    """Gather outputs of the same rows, C and gamma: they share one factorisation."""
    parts = []
    for number, group in enumerate(problem.groups):
        for same in alike((float(chosen.C[j]), chosen.gamma[j]) for j in group.columns):
            columns = group.columns[same]
            C, gamma = chosen.C[columns], chosen.gamma[columns[0]]
            system = replace(problem.system, kernel=chosen.choice.at(gamma), C=float(C[0]))
            part_system = system if group.rows is None else system.subset(group.rows)
            parts.append(Part(number, group.rows, columns, part_system, gamma, chosen.choice, C))
    return parts


def _solve(part: Part, problem: DualProblem, chosen: Chosen) -> Part:
    """Solve the least squares problem, or take the solution of what tuning has factorised."""
    Y, settings, solved = problem.targets_of(part), problem.settings, None
    if chosen.point is not None and isinstance(settings.solver, str) and settings.solver == "auto":
        solved = chosen.point.solution(part.group, part.system.C, Y)
    if solved is not None and solved[2] <= _ACCURATE:
        alpha, b, residual = solved
        return replace(part, model=Model(alpha, b, "eigen", residual, 1))
    return replace(part, model=_solve_system(part.system, Y, settings))


def _solve_system(system: DualSystem, Y: FloatArray, settings: DualSettings) -> Model:
    """Solve (3.32) of [Suykens2002], or (3.62) without a bias."""
    # The bias takes up a common offset; without it tol and float32 refer to what is to learn.
    centre = np.average(Y, axis=0, weights=system.u**2) if system.bias else np.zeros(Y.shape[1])
    targets = (Y - centre).astype(system.dtype)
    name, solved = solve_with(settings.solver, system, targets, seed=settings.seed)
    return Model(solved.alpha, solved.intercept + centre, name, solved.residual, solved.iterations)


def _evaluate(system: DualSystem, model: Model) -> FloatArray:
    """Return the outputs of a model for its rows."""
    kernel, host = system.kernel, Host(system.budget, system.threads)
    values = host.outputs(kernel, system.rows, system.basis, model.alpha, model.b)
    return np.asarray(values, dtype=np.float64)


# -- robust losses -------------------------------------------------------------------------------


def _weighted(
    system: DualSystem,
    y: FloatArray,
    settings: DualSettings,
    weight: FloatArray,
    targets: FloatArray | None = None,
) -> tuple[Model, FloatArray]:
    """Return the weighted least squares model of one output, and its outputs for the rows."""
    reweighted = replace(system, root_weight=np.sqrt(weight).astype(system.dtype))
    model = _solve_system(reweighted, (y if targets is None else targets)[:, None], settings)
    return model, _evaluate(reweighted, model)[:, 0]


def _weigh_down(problem: DualProblem, chosen: Chosen) -> DualProblem:
    """Return the problem with less weight on rows that its model is far off from.

    The first time that is Huber's model of all rows, then what cross-validation has predicted.
    """
    Y, weight = problem.targets.Y, problem.rows.weight
    predictions = np.full(Y.shape, np.nan)
    if not problem.lowered:
        everyone = np.ones(len(Y)) if weight is None else weight
        for part in _parts_of(problem, chosen):
            for j in part.columns:
                solve = partial(_weighted, part.system, Y[:, j], problem.settings)
                start = solve(everyone)
                _, predictions[:, j], _ = reweight(solve, Y[:, j], start, "huber", weight, **ROUGH)
    elif chosen.point is not None:
        held_out = chosen.point.predictions(chosen.C[:1])
        for rows, values in zip(chosen.point.objective.folds.test, held_out, strict=True):
            predictions[rows] = values[0]
    lowered = lower_weights(Y, predictions, weight, problem.targets.weight)
    return replace(
        problem,
        system=replace(problem.system, root_weight=np.sqrt(lowered)),
        targets=replace(problem.targets, weight=lowered, sample_weight=lowered),
        lowered=True,
    )


def _use_loss(part: Part, problem: DualProblem) -> Part:
    """Replace squares by another loss, output by output."""
    settings = problem.settings
    if not settings.reweights(problem.lowered):
        return part
    fitted, Y = _evaluate(part.system, part.solved), problem.targets_of(part)
    weight = pick(problem.targets.weight, slice(None) if part.rows is None else part.rows)
    model, C, steps = part.solved, part.C.copy(), 0
    alpha, b = model.alpha.copy(), model.b.copy()
    for i in range(len(part.columns)):
        y, values = Y[:, i], fitted[:, i]
        if settings.loss == "absolute" and settings.C is None:
            C[i] = absolute_C(float(C[i]), y - values, weight)
        solve = partial(_weighted, replace(part.system, C=float(C[i])), y, settings)
        start = model._replace(alpha=alpha[:, [i]], b=b[[i]]), values
        if isinstance(settings.loss, str):
            robust, _, count = reweight(solve, y, start, settings.loss, weight)
        else:
            classes = problem.targets.labels is not None
            robust, _, count = minimise_loss(
                solve, y, start, settings.loss, float(C[i]), weight, classes
            )
        alpha[:, [i]], b[[i]] = robust.alpha, robust.b
        model, steps = model._replace(solver=robust.solver), max(steps, count)
    return replace(part, C=C, model=model._replace(alpha=alpha, b=b), n_reweightings=steps)


# -- fewer support vectors -----------------------------------------------------------------------


def _reduce(part: Part, problem: DualProblem) -> Part:
    """Drop support vectors, where there is a reduction."""
    Y, reduction = problem.targets_of(part), problem.settings.reduction
    if isinstance(reduction, L0):
        numbers = problem.targets.labels is None
        coef, reduced = reduce_dual_l0(
            part.system, Y, part.solved.alpha, reduction, numbers=numbers
        )
        model = part.solved._replace(alpha=coef, b=reduced.intercept)
        return replace(part, model=model, path=reduced)
    return _prune(part, problem, Y, reduction) if isinstance(reduction, Prune) else part


def _prune(part: Part, problem: DualProblem, Y: FloatArray, pruning: Prune) -> Part:
    """Remove the smallest support values step by step [Suykens2002, section 3.7]."""
    folds, system, settings = problem.cv, part.system, problem.settings
    assert folds is not None
    if part.rows is not None:
        folds = restrict_folds(folds, part.rows, problem.system.n)
    loss = SquaredError() if problem.targets.labels is None else WrongSides()
    if pruning.by == "sign" and problem.targets.labels is None:
        raise InvalidInputError(
            "Prune(by='sign') needs classes: the sign of a support value of a regressor is that of "
            "its error. Use by='size'."
        )
    if pruning.retune and not settings.tunes:
        raise InvalidInputError(
            "Prune(retune=True) needs something to tune: set C='cv' or gamma='cv'."
        )

    def kernel(value: float | None) -> Kernel:
        return part.choice.at(value if settings.choice.tunes_gamma else problem.gamma)

    def retune(rows: IntArray) -> tuple[Any, DualSystem]:
        group = Group(np.arange(Y.shape[1]), rows)
        objective = DualObjective(kernel, system, Targets(Y), folds, loss, [group])
        space = _space(problem, system)
        result = settings.search.run(objective, space, random_state=settings.seed, resume=False)
        gamma = result.gamma if settings.choice.tunes_gamma else problem.gamma
        return gamma, replace(system, kernel=part.choice.at(gamma), C=result.C)

    def solve(smaller: DualSystem, targets: FloatArray) -> FloatArray:
        return _solve_system(smaller, targets, settings).alpha

    again, alpha = retune if pruning.retune else None, part.solved.alpha
    weight = pick(problem.targets.sample_weight, slice(None) if part.rows is None else part.rows)
    pruned = prune(system, Y, folds, loss, alpha, solve, pruning, again, part.gamma, weight)
    final = replace(system, kernel=part.choice.at(pruned.gamma), C=pruned.C).subset(pruned.rows)
    left = _solve_system(final, Y[pruned.rows], settings)
    coef = np.zeros_like(part.solved.alpha)
    coef[pruned.rows] = left.alpha
    model = part.solved._replace(alpha=coef, b=left.b, solver=left.solver)
    C = np.full(len(part.columns), pruned.C)
    return replace(part, model=model, C=C, gamma=pruned.gamma, path=pruned)
