"""Tuning of a fixed-size model: C, gamma, the number of prototypes, widths of features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.progress import Listener
from lssvm.criteria.ard import FixedRelevance
from lssvm.criteria.closed_form import check_criterion
from lssvm.criteria.fixed_size import FixedSizeObjective, FixedSizePoint
from lssvm.criteria.fixed_spectral import FixedCriterionObjective
from lssvm.engines.base import AnyFolds, Rows
from lssvm.engines.host import HostRows
from lssvm.folds.content import Folds, content_folds, hash_rows
from lssvm.folds.positions import PositionFolds, PositionHoldout
from lssvm.recipes.ard import FIXED_PROTOTYPES, FIXED_ROWS, relevance_sample, spread_gamma
from lssvm.recipes.fixed_settings import N_C, FixedSettings
from lssvm.recipes.fixed_solution import solve_moments
from lssvm.recipes.record import Tuning
from lssvm.recipes.robust import ROUGH, lower_weights, rounds
from lssvm.recipes.settings import KernelChoice, is_int, make_folds
from lssvm.search.base import Search
from lssvm.search.kept_points import KeptPoints
from lssvm.search.path import ListedPathSearch, PathSearch, best_gammas
from lssvm.search.space import Space, TuningResult
from lssvm.tasks import Classes, Task

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
    rows : Rows
        The rows, with weights as a robust loss has lowered them.
    point : FixedSizePoint or None
        The moments there; None where nothing was tuned.
    tuning : Tuning or None
    """

    C_of: FloatArray
    gamma: Any
    choice: KernelChoice
    size: int
    rows: Rows
    point: FixedSizePoint | None = None
    tuning: Tuning | None = None


def fold_task(task: Task) -> Classes | None:
    """Return the task where moments are kept per class, which puts problems together."""
    return task if isinstance(task, Classes) and task.per_class else None


def folds_of(rows: Rows, ask: FixedSettings) -> AnyFolds:
    """Return the folds that ``cv`` asks for, by content or, of rows read in blocks, by position."""
    sample: HostRows = rows.sample
    if sample.by_position:
        folds = rows.usable_folds(position_folds(ask.cv, ask.seed))
        if isinstance(folds, Folds) and len(folds) == 0 and ask.tunes:
            raise InvalidInputError(
                f"No fold has rows to train on and rows to test on (n_samples={sample.n_rows}): "
                "give more rows, or fixed numbers for C, gamma and n_prototypes."
            )
        return folds
    cv, n = ask.cv, sample.n_rows
    content = getattr(rows, "content", sample.X)
    if is_int(cv) and n <= 10_000:
        distinct = len(np.unique(hash_rows(content, ask.seed)))
        if distinct < 2:
            raise InvalidInputError(
                f"Tuning needs at least 2 distinct rows but there is only 1 (n_samples={n}): "
                "give fixed numbers for C, gamma and n_prototypes."
            )
        cv = min(int(cv), distinct) if cv >= 2 else cv
    if is_int(cv) and cv >= 2:
        return content_folds(content, int(cv), labels=sample.labels, seed=ask.seed)
    given: tuple[Any, Any] = (sample.X, None) if sample.given is None else sample.given
    return make_folds(replace(ask, cv=cv), *given, sample.row_numbers, sample.labels)


def position_folds(cv: Any, seed: int) -> PositionFolds | PositionHoldout:
    """Turn ``cv`` into folds by position."""
    if isinstance(cv, (PositionFolds, PositionHoldout)):
        return cv
    if is_int(cv) and cv >= 2:
        return PositionFolds(int(cv), seed)
    if isinstance(cv, (float, np.floating)) and 0.0 < cv < 1.0:
        return PositionHoldout(float(cv), seed)
    raise InvalidInputError(
        f"cv={cv!r} is not usable with rows that are read in blocks: give a number of folds, a "
        "share between 0 and 1 to hold out, PositionFolds or PositionHoldout."
    )


def tune_fixed_size(
    rows: Rows, task: Task, ask: FixedSettings, Z: FloatArray, gamma: Any, tell: Listener
) -> Tuned:
    """Choose C, gamma and the number of prototypes by cross-validation.

    Robust losses are tuned in rounds: rows that a rough fit, then the models of the folds, find
    far off lose weight. Widths of features are looked for last, by the evidence, and taken where
    cross-validation is not against them.
    """
    tune = _Tuner(task, ask, gamma, tell)
    tuned = tune(rows, Z, ask.choice)
    for number in range(rounds(ask.loss) if rows is rows.sample else 0):
        weighed = _weigh_down(rows, tuned, Z[: tuned.size], first=number == 0)
        tuned = tune(weighed, Z, ask.choice, again=True)
    if ask.choice.asks_ard:
        tuned = _widths_of_features(tuned, ask, Z[: tuned.size], tune)
    return tuned


@dataclass(frozen=True, eq=False)
class _Tuner:
    task: Task
    ask: FixedSettings
    gamma: Any
    tell: Listener

    def __call__(
        self,
        rows: Rows,
        Z: FloatArray,
        choice: KernelChoice,
        *,
        again: bool = False,
        sizes: bool = True,
    ) -> Tuned:
        ask, separate = self.ask, len(self.task.groups()) > 1 and fold_task(self.task) is not None
        tunes_gamma = choice.tunes_gamma
        counts = rows.sample.labels is not None and ask.scoring is None
        space = Space(
            C=1.0 if separate else ask.C,
            tune_gamma=tunes_gamma,
            gamma_start=rows.gamma_scale() if tunes_gamma else 1.0,
            n_features=rows.sample.X.shape[1],
            counted_rows=rows.n_distinct() if counts else None,
        )
        search, sample_results = ask.search, None
        if rows is not rows.sample and not rows.rereads and tunes_gamma:
            search, sample_results = self._from_sample(rows.sample, Z, choice, space, separate)
        memory = KeptPoints(self._objective(rows, Z, choice, separate), rows.budget // 4)
        more: dict[str, Any] = {"resume": not again}
        if search.checkpoint is not None:
            data = (rows.sample.X, np.asarray(rows.sample.Y), rows.sample.weight, Z)
            more["fingerprint"] = ask.fingerprint(data, self.task, ask.n_prototypes, rows.n_rows)
        result = replace(ask, search=search).run_search(memory, space, self.tell, **more)
        point = memory.point(result.gamma)
        if separate and point.C_of is None:
            point.losses(np.ones(1))
        C_of = point.C_of if separate else np.full(rows.n_outputs, result.C)
        gamma = _snap(result.gamma) if tunes_gamma else self.gamma
        tuned = Tuned(C_of, gamma, choice, len(Z), rows, point)
        score, size_results = -result.loss, None
        if ask.sizes_by_cv and sizes:
            tuned, score, size_results = _tune_size(tuned, point, ask.C, score)
        table = _table(result, snapped=tunes_gamma, separate=separate)
        kept = replace(result, point=None, cv_results=table)
        tuning = Tuning((kept,), float(score), result.n_evaluations, size_results, sample_results)
        return replace(tuned, tuning=tuning)

    def _objective(
        self, rows: Rows, Z: FloatArray, choice: KernelChoice, separate: bool
    ) -> FixedSizeObjective | FixedCriterionObjective:
        ask, tunes_gamma = self.ask, choice.tunes_gamma
        grid = None
        if separate:
            grid = Space().C_grid(N_C) if ask.C is None else np.array([ask.C])
        objective = FixedSizeObjective(
            lambda value: choice.at(_snap(value) if tunes_gamma else self.gamma),
            rows,
            Z,
            folds_of(rows, ask),
            self.task.loss(None if ask.criterion else ask.scoring, ask.loss),
            fold_task(self.task),
            grid,
            ask.path_method,
        )
        if ask.criterion is None:
            return objective
        check_criterion(ask.criterion, ask.C)
        return FixedCriterionObjective(ask.criterion, objective)

    def _from_sample(
        self, sample: HostRows, Z: FloatArray, choice: KernelChoice, space: Space, separate: bool
    ) -> tuple[Search, dict[str, Any]]:
        """Search on the sample; all rows then choose among its best kernel parameters."""
        search, on_event = self.ask.search, self.tell.on_event
        objective = self._objective(sample, Z, choice, separate)
        space = replace(space, counted_rows=space.counted_rows and sample.n_rows)
        seed = self.ask.seed
        result = search.run(objective, space, random_state=seed, on_event=on_event, resume=False)
        listed = ListedPathSearch(
            n_C=search.n_C if isinstance(search, PathSearch) else N_C,
            gammas=best_gammas(result, N_GAMMAS),
            checkpoint=search.checkpoint,
            on_interrupt=search.on_interrupt,
        )
        return listed, result.cv_results


def _snap(gamma: float | None) -> float:
    """Round to three digits: rounding in the last bits must not show in what is chosen."""
    assert gamma is not None
    return float(f"{gamma:.3g}")


def _table(result: TuningResult, *, snapped: bool, separate: bool) -> dict[str, Any]:
    table = dict(result.cv_results)
    table["params"] = [dict(params) for params in table["params"]]
    if snapped:
        table["param_gamma"] = np.array([_snap(g) for g in table["param_gamma"]])
        for params in table["params"]:
            params["gamma"] = _snap(params["gamma"])
    if separate:  # each problem has its own C, see C_
        table["param_C"] = np.full(len(table["param_C"]), np.nan)
        for params in table["params"]:
            del params["C"]
    return table


def _tune_size(
    tuned: Tuned, point: FixedSizePoint, C: float | None, score: float
) -> tuple[Tuned, float, dict[str, Any]]:
    """Choose among nested sets of m, m/2, ... prototypes [DeBrabanter2010, section 5]."""
    m = len(point.Z)
    sizes = np.unique(np.maximum(1, m // 2 ** np.arange(N_SIZES)))
    grid = Space(C=C).C_grid(N_C)
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
            best, own = key, part.C_of
            C_of = np.full(len(tuned.C_of), grid[i]) if own is None else own
            tuned = replace(tuned, C_of=C_of, size=int(size), point=part)
            score = -key[0]
    results = {"n_prototypes": sizes} | {name: np.array(v) for name, v in table.items()}
    return tuned, score, results


def _weigh_down(rows: Rows, tuned: Tuned, Z: FloatArray, *, first: bool) -> HostRows:
    """Return the rows with lower weights where they are far from what others say of them."""
    sample: HostRows = rows.sample
    kernel = tuned.choice.at(tuned.gamma)
    predictions = np.full(sample.Y.shape, np.nan)
    if first:
        map = sample.map(kernel, Z)
        moments = sample.moments(kernel, Z)
        coef, b = solve_moments(moments.whole, map, None, tuned.C_of)
        for j, C in enumerate(tuned.C_of):
            start = (coef[:, [j]], b[[j]])
            coef[:, [j]], b[[j]], _ = sample.reweighted(
                kernel, Z, map, float(C), "huber", start, j, **ROUGH
            )
        predictions[:] = sample.evaluate(kernel, sample.X, Z, coef, b)
    elif tuned.point is not None and tuned.point.has_folds:
        models = tuned.point.fold_models(float(tuned.C_of[0]))
        tests = [] if models is None else sample.tested(tuned.point.objective.folds).test
        for (coef, b), test in zip(models or [], tests, strict=True):
            predictions[test] = sample.evaluate(kernel, sample.X[test], Z, coef, b)
    weight = lower_weights(
        np.asarray(sample.Y), predictions, sample.weight, tuned.rows.sample.weight
    )
    return replace(sample, weight=weight)


def _widths_of_features(
    tuned: Tuned, ask: FixedSettings, Z: FloatArray, tune: Callable[..., Tuned]
) -> Tuned:
    """Look for one gamma per feature, and keep it where cross-validation is not against it."""
    sample: HostRows = tuned.rows.sample
    X, Y, weight = relevance_sample(sample, sample.truth.weight, FIXED_ROWS, ask.seed)
    evidence = FixedRelevance(ask.choice.at, X, Y, Z[:FIXED_PROTOTYPES], weight)
    return spread_gamma(
        evidence,
        tuned.gamma,
        float(np.exp(np.mean(np.log(tuned.C_of)))),
        tuned,
        lambda scales: tune(tuned.rows, Z, ask.choice.scaled(scales), again=True, sizes=False),
        tune_C=ask.C is None,
    )
