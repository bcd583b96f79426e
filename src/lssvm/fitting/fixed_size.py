"""The fixed-size model: prototypes, tuning, primal solution, second level of sparsity.

A search keeps its points (`KeptPoints`), so that the final model needs no further pass. Rows
may come and go: moments add and subtract, so that a fitted model follows exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray, is_int, is_sparse
from lssvm._core.blocks import peak_memory
from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError
from lssvm._core.progress import Listener
from lssvm.backends.host import AnyFolds, Host
from lssvm.backends.rows import Rows, Training
from lssvm.data.folds import Folds
from lssvm.fitting.fixed_settings import (
    N_C,
    FixedProblem,
    FixedSettings,
    Prototypes,
    choose_prototypes,
    fold_task,
    folds_of,
    snap_gamma,
    snap_results,
)
from lssvm.fitting.fixed_solution import (
    SAMPLE,
    SCORES,
    SD_KEEPS_NO_ROWS,
    TUNED_PROTOTYPES,
    CalibrationSample,
    Coefficients,
    DualStart,
    FixedCalibrationData,
    FixedFit,
    FixedState,
    Solution,
    choose_pcg,
    draw_sample,
    fit_on_prototypes,
    held_out_outputs,
    moments_to_reduce,
    problems,
    prototype_basis,
    reduce_model,
    remember,
    solve_by_gradients,
    solve_moments,
    solve_used,
    with_thresholds,
    worth_keeping,
)
from lssvm.fitting.record import Fit, Member, Tuning, alike, members_of
from lssvm.kernels import Kernel, Linear
from lssvm.kernels.base import Expansion
from lssvm.kernels.factory import KernelChoice
from lssvm.reductions import SparsityPath
from lssvm.reductions.fixed_size import PrototypeBasis, cross_validate_sizes
from lssvm.solvers.features import feature_map
from lssvm.solvers.moments import (
    FoldMoments,
    Moments,
    NystromMap,
    nystrom_map,
    resolved_by_moments,
    total,
)
from lssvm.solvers.primal import solve_primal
from lssvm.solvers.reweighting import ROUGH, absolute_C, lower_weights
from lssvm.tasks import Classes, Numbers, SquaredError, Task
from lssvm.tasks.losses import loss_name
from lssvm.tuning.fixed_size import (
    FeaturePoint,
    FixedSizeObjective,
    FixedSizePoint,
    KeptPoints,
    SeparateObjective,
    fold_models,
)
from lssvm.tuning.objective import check_criterion
from lssvm.tuning.relevance import (
    FIXED_PROTOTYPES,
    FIXED_ROWS,
    FixedRelevance,
    dense_rows,
    relevance_sample,
    shares,
    spread_gamma,
)
from lssvm.tuning.search import Space, TuningResult
from lssvm.tuning.searches import ListedPathSearch, PathSearch, best_gammas
from lssvm.tuning.spectral import FixedCriterionObjective

LOST = 0.05
"""What a direction that moments cannot resolve may contribute to a fit, see `nystrom_map`."""
NO_MOMENTS = (
    "solver='pcg' keeps no moments, so rows cannot be added or removed: use solver='cholesky'"
)


def fit_fixed_size(
    rows: Training, task: Task, settings: FixedSettings, callback: Listener
) -> FixedFit:
    """Fit a fixed-size model [DeBrabanter2010, algorithms 1-4]."""
    rows.check(settings.loss, settings.criterion)
    sample = rows.sample
    gamma = settings.choice.fixed_gamma(sample.X, sample.weight, rows.gamma_scale())
    problem = FixedProblem(rows, task, settings, callback, gamma)
    chosen = choose_prototypes(rows, settings, gamma)
    if settings.separate and settings.tunes and rows.n_outputs > 1:
        return fit_separate(problem, chosen)
    pcg = choose_pcg(problem, chosen.Z)
    basis = chosen if pcg is None else chosen.first(TUNED_PROTOTYPES)

    start = fit_on_prototypes(problem, chosen)
    tuned = _tuned(problem, basis, start)
    kernel, moments = tuned.choice.at(tuned.gamma), None
    if pcg is not None:
        solution = solve_by_gradients(problem, pcg, kernel, chosen.Z, tuned.C_of)
        kept: dict[str, Any] = {"no_update": NO_MOMENTS}
    else:
        chosen = chosen.first(tuned.size)
        by_features = settings.by_features or _needs_features(problem, tuned, kernel, chosen.Z)
        if by_features:
            problem, tuned = _tuned_by_features(problem, tuned, chosen)
            kernel = tuned.choice.at(tuned.gamma)
        moments = _moments_of_folds(problem, tuned, kernel, chosen.Z)
        map = nystrom_map(kernel, rows.backend.put(chosen.Z))
        if by_features:
            first = _solve_features(problem, tuned, kernel, chosen.Z)
        elif start is not None:
            first = start.coef, start.fit.expansion.intercept - problem.centre
        else:
            how: dict[str, Any] = {"bias": settings.bias, "threads": rows.backend.threads}
            whole, by_class = moments.whole, problem.by_class
            first = solve_moments(whole, map, by_class, tuned.C_of, **how)
        solution = _refined(problem, tuned, chosen.Z, map, first)
        solution = replace(solution, solver="features") if by_features else solution
        kept = {"moments": moments.whole, "map": map, "bias": settings.bias}
    expansion = Expansion(kernel, chosen.Z, solution.coef, solution.intercept, solution.C)
    state = FixedState(
        gamma=tuned.choice.by_feature(tuned.gamma),
        support=chosen.support,
        loss=loss_name(settings.loss),
        solver=solution.solver,
        residual=solution.residual,
        iterations=solution.iterations,
        n_prototypes=chosen.Z.shape[0],
        **kept,
    )
    calibration = FixedCalibrationData()
    fit = Fit(task, (Member(expansion),), state, settings.seed, calibration, tuning=tuned.tuning)
    if moments is None:
        return _finished(fit, problem, tuned, basis.Z, chosen)
    fit = _reduced(fit, problem, chosen, moments, start)
    point = tuned if settings.reduction is None else replace(tuned, point=None)
    return _finished(fit, problem, point, fit.expansion.basis, chosen)


def _tuned(problem: FixedProblem, basis: Prototypes, start: DualStart | None) -> Tuned:
    """Return C and gamma: of the model on the prototypes, tuned, or as given."""
    rows, settings, m = problem.rows, problem.settings, basis.Z.shape[0]
    if start is not None:
        fit = start.fit
        C, gamma = fit.expansion.C.copy(), fit.state.gamma
        return Tuned(C, gamma, settings.choice, m, rows, None, fit.tuning)
    if settings.tunes:
        return _tune(problem, basis.Z)
    assert settings.C is not None
    return Tuned(np.full(rows.n_outputs, settings.C), problem.gamma, settings.choice, m, rows)


def _needs_features(problem: FixedProblem, tuned: Tuned, kernel: Kernel, Z: FloatArray) -> bool:
    """Return whether directions that moments cannot resolve would matter to the model.

    A direction of eigenvalue lambda contributes about C n lambda / m to the fit (`nystrom_map`).
    Only rows in main memory and one system for all outputs, where a few more passes are cheap.
    """
    rows, settings, m = problem.rows, problem.settings, Z.shape[0]
    plain = settings.solver == "auto" and settings.needs_moments is None
    if not plain or settings.criterion is not None or problem.by_class is not None:
        return False
    if not rows.repeats_cheaply(rows.n_rows * m**2):
        return False
    if is_sparse(Z) or (tuned.point is not None and tuned.point.objective.leave_out):
        return False
    unit = float(np.mean(kernel.diag(Z)))
    return bool(np.max(tuned.C_of) * rows.n_rows * resolved_by_moments(m) * unit > LOST)


def _tuned_by_features(
    problem: FixedProblem, tuned: Tuned, chosen: Prototypes
) -> tuple[FixedProblem, Tuned]:
    """Return the problem in feature space, tuned there among the best kernel parameters."""
    settings = problem.settings
    problem.rows.backend.check(features=True)
    if problem.by_class is not None:
        raise InvalidInputError(
            "solver='features' solves one system for all outputs: use multiclass='ova', no "
            "class_weight='balanced' and no targets='fisher' (a code without zeros), or "
            "solver='auto'."
        )
    if settings.by_features:
        return problem, tuned
    search = settings.search
    if tuned.tuning is not None and settings.choice.tunes_gamma:
        gammas = best_gammas(tuned.tuning.results[0], N_GAMMAS)
        n_C = search.n_C if isinstance(search, PathSearch) else N_C
        search = ListedPathSearch(n_C=n_C, gammas=gammas, on_interrupt=search.on_interrupt)
    again = replace(settings, solver="features", search=replace(search, checkpoint=None))
    problem = replace(problem, settings=again)
    if tuned.tuning is None:
        return problem, tuned
    retuned = _tune(problem, chosen.Z)
    assert retuned.tuning is not None
    first = tuned.tuning.cv_results
    return problem, replace(retuned, tuning=replace(retuned.tuning, sample=first))


def _solve_features(
    problem: FixedProblem, tuned: Tuned, kernel: Kernel, Z: FloatArray
) -> Coefficients:
    """Solve for the coefficients by the QR factor of the features of all rows."""
    map, rows = feature_map(kernel, Z), problem.rows
    factors = tuned.point.moments if isinstance(tuned.point, FeaturePoint) else None
    if factors is None or not factors.layout.whole:  # not tuned, or on other training sets
        factors = rows.factors(kernel, Z, map, None)
    whole = factors.whole
    W, b = whole.solve(tuned.C_of[:1], problem.settings.bias)
    return map.T @ W[0], b[0]


def _moments_of_folds(
    problem: FixedProblem, tuned: Tuned, kernel: Kernel, Z: FloatArray
) -> FoldMoments:
    """Return the moments of tuning's folds, or of one more pass over the rows."""
    point, by_class = tuned.point, problem.by_class
    point = None if isinstance(point, FeaturePoint) else point
    if point is not None and point.has_folds:
        moments: FoldMoments | None = point.moments
    else:
        moments = moments_to_reduce(problem, kernel, Z)
    if moments is not None and moments.whole:
        return moments
    whole = [] if point is None or moments is not None else point.whole
    if not whole and problem.settings.method != "sd":  # not tuned, or on other training sets
        whole = tuned.rows.moments(kernel, Z, None, by_class).whole
    if moments is None:
        return FoldMoments.without_folds(whole, by_class)
    return moments.with_whole(whole)


def _refined(
    problem: FixedProblem, tuned: Tuned, Z: FloatArray, map: NystromMap, start: Coefficients
) -> Solution:
    """Minimise another loss than the squares, output by output, from the least squares model."""
    settings, (coef, intercept) = problem.settings, start
    kernel, lowered = tuned.choice.at(tuned.gamma), tuned.rows is not problem.rows
    if not settings.reweights(lowered):
        return Solution(coef, intercept, tuned.C_of)
    C_of, steps, sample = tuned.C_of.copy(), 0, tuned.rows.sample
    for j in range(len(C_of)):
        first = (coef[:, [j]], intercept[[j]])
        if settings.loss == "absolute" and settings.C is None:
            residual = sample.Y[:, [j]] - sample.backend.outputs(kernel, sample.X, Z, *first)
            C_of[j] = absolute_C(float(C_of[j]), residual, sample.weight)
        coef[:, [j]], intercept[[j]], count = tuned.rows.reweighted(
            kernel, Z, map, float(C_of[j]), settings.loss, first, j
        )
        steps = max(steps, count)
    return Solution(coef, intercept, C_of, iterations=steps)


def _reduced(
    fit: FixedFit,
    problem: FixedProblem,
    chosen: Prototypes,
    moments: FoldMoments,
    start: DualStart | None,
) -> FixedFit:
    """Drop prototypes, or keep what `sparsity_path` needs."""
    rows, settings = problem.rows, problem.settings
    if settings.method == "sd":
        return replace(fit, state=replace(fit.state, no_update=SD_KEEPS_NO_ROWS))
    if settings.method is None and (moments.n_folds < 2 or settings.bias != "free"):
        return fit
    basis = prototype_basis(problem, fit, chosen, moments, start)
    if settings.reduction is None:
        kept = worth_keeping(basis, rows.sample.budget)
        return replace(fit, state=replace(fit.state, kept=kept))
    return reduce_model(
        fit, rows, basis, settings.reduction, settings.reduced_C_grid(problem.C_range)
    )


def _finished(
    fit: FixedFit, problem: FixedProblem, tuned: Tuned, Z: FloatArray, chosen: Prototypes
) -> FixedFit:
    """Bring the record to the host, and add what is remembered of the rows."""
    state, one = fit.state, fit.expansion
    rows, settings, by_class = problem.rows, problem.settings, problem.by_class
    sample, calibration = rows.sample, FixedCalibrationData()
    relevance = shares(state.gamma, sample.X, sample.weight) if settings.choice.uses_ard else None
    state = replace(
        state,
        moments=[part.on_host() for part in state.moments],
        map=None if state.map is None else state.map.on_host(),
        selection=chosen.selection,
        centre=sample.centre,
        peak_memory=peak_memory() if sample.by_position else None,
        relevance=relevance,
    )
    if settings.calibrates:
        table = None if by_class is None or state.solver != "pcg" else sample.table(by_class)
        point = tuned.point
        if point is None and settings.reduction is None and sample.groups is not None:
            point = _groups_left_out(problem, fit, Z)
        models = folds = outputs = None
        if point is not None and point.has_folds:
            models = point.fold_models(float(one.C[0]))
        if point is not None and models is not None:
            folds = rows.sample.tested(point.objective.folds)
            outputs = partial(held_out_outputs, rows, folds, one.kernel, Z, models)
        calibration = remember(rows, settings.seed, table, folds, outputs)
    fit = fit.solved(intercept=one.intercept + problem.centre)
    return with_thresholds(replace(fit, state=state, calibration=calibration), settings.threshold)


def _groups_left_out(problem: FixedProblem, fit: FixedFit, Z: FloatArray) -> FixedSizePoint:
    """Return the moments of folds of groups, of a model that was not tuned."""
    rows, settings = problem.rows, problem.settings
    cv = settings.cv if is_int(settings.cv) and settings.cv >= 2 else 10
    folds = folds_of(rows, replace(settings, cv=cv))
    loss, one = problem.task.loss(None, settings.loss), fit.expansion
    grid = np.unique(one.C)
    parts = (rows, Z, folds, loss, problem.by_class, grid, settings.path_method)
    return FixedSizeObjective(lambda _: one.kernel, *parts).at(None)


N_SIZES = 5  # [DeBrabanter2010, section 5]
N_GAMMAS = 3  # kernel parameters that are tried on all rows, where they are read in blocks


@dataclass(frozen=True, eq=False)
class Tuned:
    """What tuning chose.

    Attributes
    ----------
    C_of : array of shape (k,)
    gamma : float, array or None
    choice : KernelChoice
        With the factors of the features, where they were looked for.
    size : int
        Number of prototypes.
    rows : Training
        The rows, with weights as a robust loss has lowered them.
    point : FixedSizePoint or None
        The moments there; None where nothing was tuned.
    tuning : Tuning or None
    """

    C_of: FloatArray
    gamma: Any
    choice: KernelChoice
    size: int
    rows: Training
    point: FixedSizePoint | None = None
    tuning: Tuning | None = None


def _tune(problem: FixedProblem, Z: FloatArray) -> Tuned:
    """Choose C, gamma and the number of prototypes by cross-validation.

    Robust losses are tuned in rounds: rows that a rough fit, then the models of the folds, find
    far off lose weight. Widths of features are looked for last, by the evidence, and taken where
    cross-validation is not against them.
    """
    rows, settings, tune = problem.rows, problem.settings, _Tuner(problem)
    tuned = tune(rows, Z, settings.choice)
    for number in range(rows.rounds(settings.robust_rounds)):
        weighed = _weigh_down(rows, tuned, Z[: tuned.size], first=number == 0)
        tuned = tune(weighed, Z, settings.choice, again=True)
    if settings.choice.uses_ard:
        tuned = _widths_of_features(tuned, settings, Z[: tuned.size], tune)
    return tuned


@dataclass(frozen=True, eq=False)
class _Tuner:
    problem: FixedProblem

    @cached_property
    def separate(self) -> bool:
        """Whether problems do not share their rows, so that each chooses its own C."""
        return len(self.problem.task.groups()) > 1 and self.problem.by_class is not None

    def __call__(
        self,
        rows: Training,
        Z: FloatArray,
        choice: KernelChoice,
        *,
        again: bool = False,
        sizes: bool = True,
    ) -> Tuned:
        settings, task, separate = self.problem.settings, self.problem.task, self.separate
        tunes_gamma = choice.tunes_gamma
        counts = rows.sample.labels is not None and settings.scoring is None
        tested = self._tested_share(rows) if counts else 1.0
        counted = tested * rows.n_observations() if counts else None
        space = self.problem.space(rows, 1.0 if separate else settings.C, counted)
        search, sample_results = settings.search, None
        n_pairs = len(task.groups()) if separate else 1
        few = searched_prototypes(Z.shape[0], n_pairs) if type(search) is PathSearch else Z.shape[0]
        if rows.preview is not None and tunes_gamma:
            search, sample_results = self._from_sample(
                rows.preview, Z[:few], choice, space, N_GAMMAS
            )
        elif few < Z.shape[0] and tunes_gamma:
            search, sample_results = self._from_sample(rows, Z[:few], choice, space, 1)
            search = replace(search, climbs=not separate)
        points = KeptPoints(self._objective(rows, Z, choice), rows.backend.budget // 4)
        more: dict[str, Any] = {"resume": not again}
        if search.checkpoint is not None:
            Y = np.asarray(rows.sample.Y) + self.problem.centre
            data = (rows.sample.X, Y, rows.sample.weight, Z)
            more["fingerprint"] = settings.fingerprint(
                data, task, settings.n_prototypes, rows.n_rows
            )
        result = replace(settings, search=search).run_search(
            points, space, self.problem.callback, **more
        )
        point = result.point  # None where a file knew its losses, or others were better at first
        if not isinstance(point, FixedSizePoint):
            point = points.at(result.gamma)
        if separate and point.C_of is None:
            point.losses(np.ones(1))
        C_of = point.C_of if separate else np.full(rows.n_outputs, result.C)
        assert C_of is not None
        gamma = snap_gamma(result.gamma) if tunes_gamma else self.problem.gamma
        tuned = Tuned(C_of, gamma, choice, Z.shape[0], rows, point)
        score, size_results = -result.loss, None
        if settings.sizes_by_cv and sizes:
            grid = Space(C=settings.C, C_range=self.problem.C_range).C_grid(N_C)
            tuned, score, size_results = _tune_size(tuned, point, grid, score)
        table = _table(result, snapped=tunes_gamma, separate=separate)
        results = (replace(result, point=None, cv_results=table),)
        tuning = Tuning(float(score), results, result.n_evaluations, size_results, sample_results)
        return replace(tuned, tuning=tuning)

    def _folds(self, rows: Training) -> AnyFolds:
        settings, task = self.problem.settings, self.problem.task
        folds = folds_of(rows, settings)
        if self.separate and is_int(settings.cv) and settings.reduction is None:
            return enough_folds(folds, len(task.groups()))
        return folds

    def _tested_share(self, rows: Training) -> float:
        """Return the share of the rows that are left out, where pairs leave out some."""
        folds = self._folds(rows) if self.separate else None
        if not isinstance(folds, Folds) or not is_int(self.problem.settings.cv):
            return 1.0
        return sum(len(test) for test in folds.test) / rows.n_rows

    def _objective(
        self, rows: Training, Z: FloatArray, choice: KernelChoice
    ) -> FixedSizeObjective | FixedCriterionObjective:
        settings, task = self.problem.settings, self.problem.task
        grid = (
            Space(C=settings.C, C_range=self.problem.C_range).C_grid(N_C) if self.separate else None
        )
        scoring, loss = (
            None if settings.criterion else settings.scoring,
            task.loss(None, settings.loss),
        )
        if scoring is not None and isinstance(task, Numbers):
            loss = task.loss(scoring, settings.loss, rows.sample.centre)
        elif scoring is not None:
            loss = task.loss(scoring, settings.loss)
        folds = self._folds(rows)
        objective = self.problem.objective(choice, rows, Z, folds, loss, grid)
        if settings.criterion is None:
            return objective
        check_criterion(settings.criterion, settings.C)
        return FixedCriterionObjective(settings.criterion, objective)

    def _from_sample(
        self, rows: Training, Z: FloatArray, choice: KernelChoice, space: Space, n_gammas: int
    ) -> tuple[ListedPathSearch, dict[str, Any]]:
        """Search on a sample, or with few prototypes; all then choose among its best gammas."""
        if rows is not self.problem.rows:
            counted = round(self._tested_share(rows) * rows.n_rows)
            space = replace(space, counted_rows=space.counted_rows and max(1, counted))
        return self.problem.narrowed(self._objective(rows, Z, choice), space, n_gammas)


def _table(result: TuningResult, *, snapped: bool, separate: bool) -> dict[str, Any]:
    table = snap_results(result.cv_results) if snapped else dict(result.cv_results)
    if separate:  # each problem has its own C, see C_
        table["param_C"] = np.full(len(table["param_C"]), np.nan)
        table["params"] = [{k: v for k, v in p.items() if k != "C"} for p in table["params"]]
    return table


def _tune_size(
    tuned: Tuned, point: FixedSizePoint, grid: FloatArray, score: float
) -> tuple[Tuned, float, dict[str, Any]]:
    """Choose among nested sets of m, m/2, ... prototypes [DeBrabanter2010, section 5]."""
    m = point.Z.shape[0]
    sizes = np.unique(np.maximum(1, m // 2 ** np.arange(N_SIZES)))
    best: tuple[float, float] = (np.inf, np.inf)
    table: dict[str, list[float]] = {"mean_test_score": [], "std_test_score": [], "C": []}
    for size in sizes:
        part = point if size == m else point.prefix(int(size))
        losses = part.losses(grid if part.objective.C_grid is None else np.ones(1))
        i = int(np.lexsort((losses.tie, losses.mean))[0])
        table["mean_test_score"].append(-float(losses.mean[i]))
        table["std_test_score"].append(float(losses.std[i]))
        table["C"].append(np.nan if part.C_of is not None else float(grid[i]))
        key = (float(losses.mean[i]), float(losses.tie[i]))
        if key < best:
            best, separate = key, part.C_of
            C_of = np.full(len(tuned.C_of), grid[i]) if separate is None else separate
            tuned = replace(tuned, C_of=C_of, size=int(size), point=part)
            score = -key[0]
    results = {"n_prototypes": sizes} | {name: np.array(v) for name, v in table.items()}
    return tuned, score, results


def _weigh_down(rows: Training, tuned: Tuned, Z: FloatArray, *, first: bool) -> Rows:
    """Return the rows with lower weights where they are far from what others say of them."""
    sample: Rows = rows.sample
    kernel = tuned.choice.at(tuned.gamma)
    predictions = np.full(sample.Y.shape, np.nan)
    if first:
        map = nystrom_map(kernel, sample.backend.put(Z))
        moments = sample.moments(kernel, Z, None, None)
        coef, b = solve_moments(moments.whole, map, None, tuned.C_of)
        for j, C in enumerate(tuned.C_of):
            start = (coef[:, [j]], b[[j]])
            coef[:, [j]], b[[j]], _ = sample.reweighted(
                kernel, Z, map, float(C), "huber", start, j, **ROUGH
            )
        predictions[:] = sample.backend.outputs(kernel, sample.X, Z, coef, b)
    elif tuned.point is not None and tuned.point.has_folds:
        models = tuned.point.fold_models(float(tuned.C_of[0]))
        tests = [] if models is None else sample.tested(tuned.point.objective.folds).test
        for (coef, b), test in zip(models or [], tests, strict=True):
            predictions[test] = sample.backend.outputs(kernel, sample.X[test], Z, coef, b)
    weight = lower_weights(
        np.asarray(sample.Y), predictions, sample.weight, tuned.rows.sample.weight
    )
    return replace(sample, weight=weight)


def _widths_of_features(
    tuned: Tuned, settings: FixedSettings, Z: FloatArray, tune: Callable[..., Tuned]
) -> Tuned:
    """Look for one gamma per feature, and keep it where cross-validation is not against it."""
    sample: Rows = tuned.rows.sample
    X, Y, weight = relevance_sample(sample, sample.targets.weight, FIXED_ROWS, settings.seed)
    some = dense_rows(Z[:FIXED_PROTOTYPES], sample.budget)
    evidence = FixedRelevance(settings.choice.at, X, Y, some, weight)
    return spread_gamma(
        evidence,
        tuned.gamma,
        float(np.exp(np.mean(np.log(tuned.C_of)))),
        tuned,
        lambda scales: tune(tuned.rows, Z, settings.choice.scaled(scales), again=True, sizes=False),
        tune_C=settings.C is None,
    )


def change_rows(fit: FixedFit, rows: Training, host: Host, *, sign: int) -> FixedFit:
    """Return the model with further rows (sign 1), or without some that it has learned (-1)."""
    state, one = fit.state, fit.expansion
    fit.need("all", "Adding or removing rows")
    if state.no_update is not None:
        raise InvalidInputError(f"{state.no_update}, or fit again.")
    task = fold_task(fit.task)
    change = [part.on_host() for part in rows.moments(one.kernel, one.basis, None, task).whole]
    whole = _summed(state.moments, change, sign)
    if task is not None and min(min(part.n, part.weight) for part in whole) <= 0:
        raise InvalidInputError(
            "forget would leave a class without rows: keep at least one row of each class."
        )
    try:
        if state.used is None:
            assert state.map is not None
            coef, intercept = solve_moments(whole, state.map, task, one.C, bias=state.bias)
        else:
            coef, intercept = solve_used(fit, whole, state.used)
    except NotPositiveDefiniteError as error:
        if sign > 0:
            raise
        raise InvalidInputError(
            "Without these rows the sums of the model are not possible: forget was given rows that "
            "the model has not learned. Give only rows (with their labels and weights) that fit or "
            "partial_fit has seen."
        ) from error
    intercept = intercept if state.centre is None else intercept + state.centre
    intercept = intercept if state.threshold is None else intercept - state.threshold
    calibration = fit.calibration
    assert isinstance(calibration, FixedCalibrationData)
    sample = calibration.sample
    if sample is not None and sign > 0:
        sample = _sample_with(fit, sample, rows.sample, host)
    elif sample is not None:
        sample = sample.take(np.flatnonzero(~rows.holds(sample.keys, fit.seed)))
    return replace(
        fit.solved(coef=coef, intercept=intercept),
        calibration=FixedCalibrationData(sample),
        # only models of squared loss take rows
        state=replace(state, moments=whole, kept=None, paths=(), loss="squared"),
    )


def _summed(old: list[Moments], change: list[Moments], sign: int) -> list[Moments]:
    pairs = [(a, b.shifted(a.shift)) for a, b in zip(old, change, strict=True)]
    whole = [a + b if sign > 0 else a - b for a, b in pairs]
    short = [part.weight < -1e-9 * a.weight for part, (a, _) in zip(whole, pairs, strict=True)]
    if any(short) or min(part.n for part in whole) < 0 or sum(part.n for part in whole) < 1:
        raise InvalidInputError(
            "forget was given more rows than the model has learned: give only rows (with their "
            "labels and weights) that fit or partial_fit has seen."
        )
    return whole


def _sample_with(
    fit: FixedFit, old: CalibrationSample, rows: Rows | None, host: Host
) -> CalibrationSample:
    """Return what calibrates with some of the rows that were added; none of a scan are drawn."""
    if rows is None:
        return replace(old, behind=True)
    size = SAMPLE if old.held_out is None or old.labels is None else SCORES
    new, _ = draw_sample(rows, None, fit.seed, size)
    if old.X is not None:  # rows are left out of the model with all rows
        old = replace(old, held_out=None)
    else:
        assert new.X is not None
        new = replace(new, X=None, held_out=fit.mapped_outputs(new.X, host))
    both = old.joined(new)
    if len(both.keys) <= size:
        return both
    end = int(np.searchsorted(both.keys, both.keys[size - 1], side="right"))
    return both.take(np.arange(end))


def _spread(basis: PrototypeBasis) -> float:
    """Return the sum of the variances of the features, where they are the basis; else 1."""
    if is_sparse(basis.Z) or not np.array_equal(basis.Z, np.eye(*basis.Z.shape)):
        return 1.0
    moments = total(basis.moments.whole)
    spread = float(np.trace(moments.gram) - moments.border @ moments.border / moments.weight)
    return spread / moments.weight if spread > 0 else 1.0


def sparsity_path(fit: FixedFit, C_grid: FloatArray | None) -> tuple[FixedFit, list[SparsityPath]]:
    """Return the errors of all numbers of support vectors, and a record that keeps them."""
    state = fit.state
    if state.paths:
        return fit, list(state.paths)
    if state.kept is None:
        raise InvalidInputError(
            "sparsity_path needs the moments of the folds, which this model does not have: they "
            "are there after a fit that tunes something by cross-validation (not leave-one-out), "
            "as long as they fit into 5 % of memory_budget, no rows were added or removed and the "
            "model was not pickled. Fit with reduction='spfs', which computes the path inside fit, "
            "or raise memory_budget."
        )
    every = np.arange(len(state.kept.C))
    if C_grid is not None and isinstance(fit.expansion.kernel, Linear):
        C_grid = C_grid / _spread(state.kept)
    paths = [cross_validate_sizes(state.kept, every, C_grid)]
    return replace(fit, state=replace(state, paths=tuple(paths))), paths


MANY_SYSTEMS = 100
"""Systems of pairs and folds above which less is computed."""
TESTED_ROWS = 2_000
"""Rows in the folds that are left out, at least."""
TESTED_FOLDS = 2
"""Folds that are left out, at least."""
SEARCHED_PROTOTYPES = 200
"""Prototypes, the first of all, that the kernel parameter is searched with."""


SEARCHED_TOGETHER = 300
"""The same where all outputs share one system."""


def enough_folds(folds: AnyFolds, n_pairs: int) -> AnyFolds:
    """Return the folds that are left out: some of them where pairs and rows are many."""
    if not isinstance(folds, Folds) or folds.train is not None:
        return folds
    if n_pairs * len(folds) <= MANY_SYSTEMS:
        return folds
    tested = np.cumsum([len(test) for test in folds.test])
    return Folds(folds.test[: max(TESTED_FOLDS, 1 + int(np.searchsorted(tested, TESTED_ROWS)))])


def searched_prototypes(m: int, n_pairs: int) -> int:
    """Return with how many of m prototypes the kernel parameter is searched.

    A pass of n rows takes n m^2 operations: where there are many prototypes, few of them are enough
    to see about which width is best.
    """
    few = SEARCHED_PROTOTYPES if n_pairs > 10 else SEARCHED_TOGETHER
    return few if m >= 2 * few else m


NO_ROWS = (
    "A search with per_output=True leaves a kernel for every output and the moments of none, so "
    "rows cannot be added or removed: use per_output=False"
)


def fit_separate(problem: FixedProblem, chosen: Prototypes) -> FixedFit:
    """Fit a fixed-size model with a (C, gamma) for each output.

    Section 8 of [DeBrabanter2010] tunes the classifiers of a code as it does a binary one; eq.
    (3.13) of [Suykens2002] has a (gamma_i, sigma_i) for each. The outputs share prototypes, and
    the passes over the rows of kernel parameters that several of them ask for.
    """
    rows, task, settings, Z = problem.rows, problem.task, problem.settings, chosen.Z
    shared = _shared(problem, rows, Z)
    results = [_search(problem, shared, j, Z) for j in range(rows.n_outputs)]
    C = np.array([result.C for result in results])
    tuned = settings.choice.tunes_gamma
    gammas = [snap_gamma(r.gamma) if tuned else problem.gamma for r in results]
    groups = alike(gammas)
    coef, intercept = np.zeros((Z.shape[0], len(C))), np.zeros(len(C))
    for columns in groups:
        kernel = settings.choice.at(gammas[columns[0]])
        whole = rows.moments(kernel, Z, None, problem.by_class).whole
        map = nystrom_map(kernel, rows.backend.put(Z))
        for outputs, value, moments in problems(whole, problem.by_class, C, columns):
            solved = solve_primal(moments, map, value, bias=settings.bias)
            coef[:, outputs], intercept[outputs] = solved
    calibration = FixedCalibrationData()
    if settings.calibrates:
        table = None if problem.by_class is None else rows.sample.table(problem.by_class)
        searched = [result.gamma for result in results]
        held_out = partial(_held_out_outputs, problem, shared, groups, searched, C)
        calibration = remember(
            rows, settings.seed, table, rows.sample.tested(shared.objective.folds), held_out
        )
    published = settings.choice.by_feature(gammas[0]) if len(groups) == 1 else np.array(gammas)
    sample = rows.sample
    n_evaluations = int(sum(result.n_evaluations for result in results))
    tuning = Tuning.of([_snapped(r) if tuned else r for r in results], n_evaluations)
    state = FixedState(
        gamma=published,
        support=chosen.support,
        n_prototypes=Z.shape[0],
        selection=chosen.selection,
        no_update=NO_ROWS,
        centre=sample.centre,
        peak_memory=peak_memory() if sample.by_position else None,
    )
    members = members_of(settings.choice, gammas, Z, coef, intercept + problem.centre, C)
    fit = Fit(task, members, state, settings.seed, calibration, tuning=tuning)
    return with_thresholds(fit, settings.threshold)


def _shared(problem: FixedProblem, rows: Training, Z: FloatArray) -> SeparateObjective:
    """Return what all outputs read their losses from."""
    settings = problem.settings
    objective = problem.objective(
        settings.choice, rows, Z, folds_of(rows, settings), SquaredError()
    )
    by_error = settings.scoring is None and isinstance(problem.task, Classes)
    return SeparateObjective(objective, by_error, rows.backend.budget // 4)


def _search(
    problem: FixedProblem, shared: SeparateObjective, output: int, Z: FloatArray
) -> TuningResult:
    """Search C and gamma of one output; on a sample first where rows are read in blocks."""
    rows, settings, callback = problem.rows, problem.settings, problem.callback
    counted = rows.n_observations() * _share(problem, output) if shared.by_error else None
    space, search = problem.space(rows, settings.C, counted), settings.search
    if rows.preview is not None and settings.choice.tunes_gamma:
        search, _ = problem.narrowed(_shared(problem, rows.preview, Z).of(output), space, 1)
    return replace(settings, search=search).run_search(
        shared.of(output), space, callback, resume=False
    )


def _share(problem: FixedProblem, output: int) -> float:
    """Return the part of the rows that a problem is trained on."""
    task, labels = problem.task, problem.rows.sample.labels
    if not isinstance(task, Classes) or labels is None:
        return 1.0
    return float(np.mean(task.code.matrix[labels, output] != 0))


def _snapped(result: TuningResult) -> TuningResult:
    """Return the result with the values of gamma that models were made with."""
    table = snap_results(result.cv_results)
    return replace(result, gamma=snap_gamma(result.gamma), cv_results=table)


def _held_out_outputs(
    problem: FixedProblem,
    shared: SeparateObjective,
    groups: list[IntArray],
    searched: list[float | None],
    C: FloatArray,
    numbers: IntArray,
) -> FloatArray:
    """Return out-of-fold outputs of rows, (t, k), kernel by kernel."""
    rows, objective = problem.rows, shared.objective
    held_out = np.full((len(numbers), len(C)), np.nan)
    for columns in groups:
        point = shared.points.at(searched[columns[0]])
        if objective.leave_out:  # in closed form
            for j in columns:
                group = next(g for g in point.groups if j in g)
                outputs = point.left_out_outputs(C[[j]], group)[0, numbers]
                held_out[:, j] = outputs[:, int(np.searchsorted(group, j))]
            continue
        models = []
        for fold in zip(*(fold_models(point, float(C[j]), int(j)) for j in columns), strict=True):
            coef, b = zip(*fold, strict=True)
            models.append((np.concatenate(coef, axis=1), np.concatenate(b)))
        folds = rows.sample.tested(objective.folds)
        held_out[:, columns] = held_out_outputs(rows, folds, point.kernel, point.Z, models, numbers)
    return held_out
