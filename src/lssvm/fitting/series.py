"""Time series by a regressor on lagged values, tuned by free runs [Suykens2002, section 3.5]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import slices, small_problem
from lssvm._core.errors import InvalidInputError, not_usable
from lssvm._core.progress import Listener
from lssvm._core.random import RandomState
from lssvm.fitting.record import Fit, Tuning, check_form
from lssvm.fitting.series_data import (
    Calendar,
    Layout,
    Plan,
    Series,
    check_inputs,
    check_lengths,
    open_series,
)
from lssvm.fitting.settings import (
    KernelChoice,
    KernelParameters,
    check_C,
    check_option,
    is_int,
    resources_of,
    seed_of,
)
from lssvm.kernels import Kernel, resolve_gamma
from lssvm.solvers import DualSystem
from lssvm.tuning.choice import make_search
from lssvm.tuning.dual import C_range
from lssvm.tuning.free_running import (
    RUNAWAY,
    FittedRegressors,
    Models,
    Noise,
    Predicts,
    free_run,
    level_errors,
    stack_exog,
)
from lssvm.tuning.path import PathSearch
from lssvm.tuning.search import Search, Space, TuningResult

VALIDATIONS = ("free-run", "rolling-origin", "one-step")


class Regressor(Predicts, Protocol):
    """What is asked of the regressor inside, beside predictions."""

    def fit(self, X: FloatArray, y: FloatArray) -> Any:
        """Learn from rows (n, d) and targets (n,)."""


class DualRegressor(Regressor, KernelParameters, Protocol):
    """An LS-SVM in the dual: its solutions without some of the rows follow in closed form."""

    fit_intercept: bool
    memory_budget: Any
    n_jobs: int | None
    record_: Fit

    def set_params(self, **parameters: Any) -> Any:
        """Set parameters by name."""


@dataclass(frozen=True, eq=False)
class SeriesSettings:
    """The settings of a time-series model: the parameters of `NARX`, checked.

    Attributes
    ----------
    regressor : Regressor
        Not fitted yet.
    dual : DualRegressor or None
        The same, where it is a dual model: free runs may choose its C and gamma.
    """

    regressor: Regressor
    dual: DualRegressor | None
    lags: int
    exog_lags: int
    differencing: int
    validation: str
    horizon: int | None
    n_origins: int
    search: Any
    n_paths: int
    random_state: RandomState

    def __post_init__(self) -> None:
        smallest = {"lags": 1, "exog_lags": 0, "differencing": 0, "n_origins": 1, "n_paths": 2}
        for name, least in smallest.items():
            check_count(name, getattr(self, name), least)
        if self.horizon is not None:
            check_count("horizon", self.horizon, 1)
        check_option("validation", self.validation, VALIDATIONS)


def check_count(name: str, value: Any, smallest: int) -> None:
    """Refuse what is no whole number of at least ``smallest``."""
    if not is_int(value) or value < smallest:
        raise not_usable(name, value, f"give a whole number >= {smallest}.")


# -- the record --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SeriesFit:
    """A fitted time-series model.

    Attributes
    ----------
    regressor : Regressor
        Fitted on the standardised rows.
    layout : Layout
        Which values make up a row, and in which units.
    ends : tuple of Series
        What the row of the next time needs of every training series.
    listed : bool
        Whether a list of series was given.
    horizon : int
        Steps of the free runs of validation.
    seed : int
    plan : Plan or None
        The training rows; None where they are not needed any more.
    tuning : Tuning or None
        Where free runs have chosen C or gamma.
    calibration : Calibration or None
        What intervals rest on, once one was asked for.
    stored : str
        "all", or the form of the file that the model was loaded from.
    calendars : tuple of Calendar
        The times of the training series; empty where they have none.
    """

    regressor: Regressor
    layout: Layout
    ends: tuple[Series, ...]
    listed: bool
    horizon: int
    seed: int
    plan: Plan | None = None
    tuning: Tuning | None = None
    calibration: Calibration | None = None
    stored: str = "all"
    calendars: tuple[Calendar, ...] = ()

    @property
    def models(self) -> FittedRegressors:
        """The regressor, for any number of free runs side by side."""
        return FittedRegressors([self.regressor])

    def in_form(self, form: str) -> SeriesFit:
        """Return what a file of this form keeps, the regressor as it is."""
        if form == "all":
            return self
        calibration = None if form == "support" else self.calibration
        return replace(
            self,
            plan=self.plan if form == "prediction" and calibration is None else None,
            tuning=None if self.tuning is None else self.tuning.light(),
            calibration=calibration,
            stored=form,
        )

    def past(self, history: Any, X_history: Any) -> tuple[Series, ...]:
        """Return the series that are continued: those of the training, or the one given."""
        if history is None:
            if X_history is not None:
                raise InvalidInputError("X_history came without history: give both, or neither.")
            return self.ends
        (past,) = open_series(np.asarray(history), X_history, "history", "X_history")
        self._check_width(past.inputs, "X_history")
        if len(past) < self.layout.history:
            raise InvalidInputError(
                f"history has {len(past)} values but the model looks back {self.layout.history}: "
                "give at least as many."
            )
        return (past,)

    def continued(
        self, y: Any, X: Any, history: Any = None, X_history: Any = None
    ) -> list[tuple[Series, Series]]:
        """Return pairs of a series and what follows it."""
        later, past = open_series(y, X), self.past(history, X_history)
        if len(later) != len(past):
            raise InvalidInputError(
                f"y has {len(later)} series but {len(past)} are to be continued: give a list with "
                "one continuation for each training series, or one series and its history."
            )
        for series in later:
            self._check_width(series.inputs, "X")
        return list(zip(past, later, strict=True))

    def future_inputs(
        self, X_future: Any, past: Sequence[Series], steps: int, listed: bool
    ) -> list[FloatArray | None]:
        """Check the inputs of the times that are forecast, one table for each series."""
        if X_future is None or self.layout.n_exog == 0:
            self._check_width(None if X_future is None else np.empty((0, 1)), "X_future")
            return [None] * len(past)
        tables = X_future if listed else [X_future]
        if not isinstance(tables, (list, tuple)) or len(tables) != len(past):
            raise InvalidInputError(
                f"X_future must be a list of {len(past)} tables, one for each training series."
            )
        inputs: list[FloatArray | None] = [check_inputs(t, steps, "X_future") for t in tables]
        for table in inputs:
            self._check_width(table, "X_future")
        return inputs

    def _check_width(self, inputs: FloatArray | None, name: str) -> None:
        width = 0 if inputs is None else inputs.shape[1]
        if width != self.layout.n_exog:
            raise InvalidInputError(
                f"{name} has {width} columns of inputs but the model was trained with "
                f"{self.layout.n_exog}: give the same columns as in fit."
            )

    def predict(self, past: Series, later: Series) -> FloatArray:
        """Predict each of some values from the true ones before it, shape (n,)."""
        whole = later.after(past)
        rows = self.layout.table(whole)[0][-len(later) :]
        raw = np.asarray(self.regressor.predict(rows)).reshape(len(rows))
        return self.layout.one_step_levels(raw, whole)

    def run(
        self, past: Sequence[Series], inputs: Sequence[FloatArray | None], steps: int
    ) -> FreeRun:
        """Run freely from the ends of some series, with the inputs of the times to come."""
        start = np.stack([self.layout.newest_first(series) for series in past])[:, None]
        columns = [
            self.layout.exog(np.concatenate([s.inputs, table]), len(s), len(s) + steps)
            for s, table in zip(past, inputs, strict=True)
            if s.inputs is not None and table is not None
        ]
        return FreeRun.of(self.models, start, np.stack(columns) if columns else None, steps)

    def levels(self, run: FreeRun, past: Sequence[Series]) -> FloatArray:
        """Return free runs in the units of the series that they continue, shape (m, steps)."""
        pairs = zip(run.values, past, strict=True)
        return np.stack([self.layout.levels(values, series) for values, series in pairs])

    def half_widths(self, run: FreeRun, coverage: float, n_paths: int) -> FloatArray:
        """Return half the widths of intervals around free runs, shape (m, steps)."""
        assert self.calibration is not None
        noise = self.calibration.residuals.noise([self.seed, 1])
        spread = run.spread(self.models, noise, n_paths, self.layout.differencing)
        return self.calibration.half_widths(spread, coverage) * self.layout.scale

    def score(self, pairs: Sequence[tuple[Series, Series]]) -> float:
        """Return R^2 of free runs of ``horizon`` steps through what follows some series."""
        errors, truth = [], []
        for past, later in pairs:
            for start in range(0, len(later), self.horizon):
                piece = later.at(slice(start, start + self.horizon))
                before = later.at(slice(0, start)).after(past)
                run = self.run([before], [piece.inputs], len(piece))
                errors.append(self.levels(run, [before])[0] - piece.values)
                truth.append(piece.values)
        values = np.concatenate(truth)
        lost = float((np.concatenate(errors) ** 2).sum())
        spread = float(((values - values.mean()) ** 2).sum())
        if spread == 0.0:
            return 1.0 if lost == 0.0 else 0.0  # as scikit-learn's r2_score
        return 1.0 - lost / spread


# -- the recipe --------------------------------------------------------------------------------


def fit_series(
    series: Sequence[Series], listed: bool, ask: SeriesSettings, tell: Listener
) -> SeriesFit:
    """Learn the next value from those before it [Suykens2002, section 3.5].

    Parameters
    ----------
    series : sequence of Series
    listed : bool
        Whether they were given as a list.
    ask : SeriesSettings
    tell : Listener

    Returns
    -------
    SeriesFit

    Notes
    -----
    The cost of tuning is that of `lssvm.tuning.FreeRunObjective`.
    """
    check_lengths(series, ask.lags, ask.exog_lags, ask.differencing)
    layout = Layout.learn(series, ask.lags, ask.exog_lags, ask.differencing)
    rolling = ask.validation == "rolling-origin"
    plan = Plan.of(series, layout, ask.horizon, ask.n_origins, rolling)
    seed, tuning = seed_of(ask.random_state), None
    if ask.dual is not None and ask.validation != "one-step" and _is_open(ask.dual):
        search = PathSearch(n_C=13) if ask.search is None else make_search(ask.search)
        result = _tune(ask.dual, plan, search, seed, tell)
        tuning = Tuning((result,), -result.loss, result.n_evaluations)
        ask.dual.set_params(C=result.C)
        if KernelChoice.of(ask.dual).tunes_gamma:
            ask.dual.set_params(gamma=result.gamma)
    ask.regressor.fit(plan.rows, plan.targets)
    ends = tuple(s.at(slice(len(s) - layout.history, None)) for s in series)
    return SeriesFit(ask.regressor, layout, ends, listed, plan.horizon, seed, plan, tuning)


def _is_open(dual: DualRegressor) -> bool:
    """Say whether C or gamma are to be chosen; a gamma per feature the model finds by itself."""
    choice = KernelChoice.of(dual)
    return not choice.asks_ard and (check_C(dual.C) is None or choice.tunes_gamma)


def _tune(
    dual: DualRegressor, plan: Plan, search: Search, seed: int, tell: Listener
) -> TuningResult:
    """Choose C and gamma by free runs through stretches that models have not seen."""
    choice = KernelChoice.of(dual)
    if choice.precomputed:
        raise InvalidInputError(
            "NARX cannot tune kernel='precomputed': the rows of a free run are made on the way. "
            "Name a kernel such as 'rbf'."
        )
    gamma = choice.fixed_gamma(plan.rows, None)

    def kernel(value: float | None) -> Kernel:
        return choice.at(value if gamma is None else gamma)

    space = Space(
        C=check_C(dual.C),
        tune_gamma=choice.tunes_gamma,
        gamma_start=float(resolve_gamma("scale", plan.rows)) if choice.tunes_gamma else 1.0,
        n_features=plan.rows.shape[1],
        C_range=C_range(DualSystem(kernel(None), plan.rows, plan.rows, 1.0)),
    )
    objective = plan.objective(kernel, bool(dual.fit_intercept), resources_of(dual))
    with small_problem(len(plan.rows)):
        result = search.run(objective, space, random_state=seed, on_event=tell.on_event)
    return replace(result, point=None)


def calibrate_intervals(fit: SeriesFit, dual: DualRegressor | None, n_paths: int) -> SeriesFit:
    """Return the record with what intervals rest on.

    Parameters
    ----------
    fit : SeriesFit
    dual : DualRegressor or None
        The fitted regressor, where it is a dual model that solves its linear system and no more.
    n_paths : int
        Simulated paths of each stretch.

    Returns
    -------
    SeriesFit

    Notes
    -----
    One eigendecomposition for a dual model, otherwise a refit for each stretch; then `calibrate`.
    """
    if fit.calibration is not None:
        return fit
    check_form(fit.stored, "prediction", "Forecast intervals")
    assert fit.plan is not None
    plan = replace(fit.plan, rolling=False)
    models = _refitted(fit.regressor, plan) if dual is None else _left_out(dual, plan)
    return replace(fit, calibration=calibrate(models, plan, n_paths, fit.seed))


def _left_out(dual: DualRegressor, plan: Plan) -> Models:
    """Return models of every stretch without the rows it leaves out [An2007]."""
    fit, bias = dual.record_, bool(dual.fit_intercept)
    return plan.objective(lambda _: fit.kernel, bias, resources_of(dual)).at(None).models(fit.C)


def _refitted(regressor: Regressor, plan: Plan) -> Models:
    """Return regressors that are fitted without the rows that each stretch leaves out."""
    kept = [np.delete(np.arange(len(plan.targets)), s.left_out) for s in plan.stretches()]
    fits = [clone(regressor).fit(plan.rows[rows], plan.targets[rows]) for rows in kept]
    return FittedRegressors(fits)


NEIGHBOURS = 5
WINDOW = 0.1  # ratios are pooled over this part of the horizon on either side of a step
_CHUNK = 4_000_000  # numbers in the largest temporary


@dataclass(frozen=True, eq=False)
class SeriesResiduals:
    """Out-of-sample one-step residuals, and the rows they belong to."""

    rows: FloatArray  # (k, d)
    values: FloatArray  # (k,)
    index: IntArray  # (k,), places among the training rows

    def noise(self, seed: list[int], left_out: list[IntArray] | None = None) -> Noise:
        """Return a function that draws the residual of a near row, see `free_run`.

        ``left_out`` names the training rows that each of the m models may not use; a model to
        which too few are left may use all.
        """
        rng = np.random.default_rng(seed)
        squares, k = (self.rows**2).sum(axis=1), min(NEIGHBOURS, len(self.values))
        barred = None
        if left_out is not None:
            barred = np.stack([np.isin(self.index, rows) for rows in left_out])
            barred[(~barred).sum(axis=1) < k] = False

        def draw(rows: FloatArray) -> FloatArray:
            m, p, d = rows.shape
            out = np.empty((m, p))
            rank = rng.integers(k, size=(m, p))
            for some in slices(m, max(1, _CHUNK // (p * len(squares)))):
                # Squared distances less what is the same for all rows.
                far = squares - 2.0 * (rows[some].reshape(-1, d) @ self.rows.T)
                far = far.reshape(-1, p, len(squares))
                if barred is not None:
                    far = np.where(barred[some, None], np.inf, far)
                near = np.argpartition(far, k - 1, axis=2)[:, :, :k]
                picked = np.take_along_axis(near, rank[some, :, None], axis=2)[:, :, 0]
                out[some] = self.values[picked]
            return out

        return draw


@dataclass(frozen=True, eq=False)
class Calibration:
    """What held-out stretches say about the size of errors."""

    residuals: SeriesResiduals
    mean_spread: FloatArray  # (horizon,)
    ratios: FloatArray  # (o, horizon), absolute error over unit

    def half_widths(self, spread: FloatArray, coverage: float) -> FloatArray:
        """Return half the widths k_h u_h of intervals for a simulated spread (m, steps)."""
        steps = spread.shape[1]
        units = np.sqrt(spread * self.mean_spread[self._step(steps)])
        return np.asarray(self.factors(coverage, steps) * units)

    def _step(self, steps: int) -> IntArray:
        """Return the calibrated step that stands for each step: the last one for all beyond."""
        return np.minimum(np.arange(steps), len(self.mean_spread) - 1)

    def factors(self, coverage: float, steps: int) -> FloatArray:
        """Return k_h for every step."""
        horizon = self.ratios.shape[1]
        reach = int(np.ceil(WINDOW * horizon)) if horizon > 1 else 0
        factors = np.empty(horizon)
        for h in range(horizon):
            pool = np.sort(self.ratios[:, max(0, h - reach) : h + reach + 1], axis=None)
            rank = int(np.ceil((len(pool) + 1) * coverage))
            factors[h] = pool[min(rank, len(pool)) - 1]
        return np.asarray(factors[self._step(steps)])


@dataclass(frozen=True, eq=False)
class FreeRun:
    """Forecasts of m series on their own predictions, in units of the rows.

    Attributes
    ----------
    start : array of shape (m, 1, lags)
        Values before the first step, the newest first.
    exog : array of shape (m, steps, e) or None
        Columns that come from the inputs.
    values : array of shape (m, steps)
    """

    start: FloatArray
    exog: FloatArray | None
    values: FloatArray

    @classmethod
    def of(cls, models: Models, start: FloatArray, exog: FloatArray | None, steps: int) -> FreeRun:
        """Let models run from given values."""
        return cls(start, exog, free_run(models, start, steps, exog)[:, 0])

    @property
    def diverged(self) -> bool:
        """Whether it was held at its limit."""
        return bool(np.abs(self.values).max() >= RUNAWAY)

    def spread(self, models: Models, noise: Noise, n_paths: int, sums: int) -> FloatArray:
        """Return the root mean square deviation of noisy free runs from this one, (m, steps)."""
        starts, steps = np.repeat(self.start, n_paths, axis=1), self.values.shape[1]
        paths = free_run(models, starts, steps, self.exog, noise)
        deviations = level_errors(paths - self.values[:, None], sums)
        floor = np.finfo(float).eps * (1.0 + np.abs(self.values))
        return np.asarray(np.sqrt((deviations**2).mean(axis=1)) + floor)


def calibrate(models: Models, plan: Plan, n_paths: int, seed: int) -> Calibration:
    """Compare simulated spread and true errors on the stretches that are held out.

    Parameters
    ----------
    models : Models
        One for each stretch of the plan, trained without what the stretch leaves out.
    plan : Plan
    n_paths : int
    seed : int

    Returns
    -------
    Calibration

    Notes
    -----
    ``n_paths`` free runs of ``plan.horizon`` steps for each stretch.
    """
    stretches, sums = plan.stretches(), plan.layout.differencing
    truth = np.stack([s.truth for s in stretches])
    places = [place for place, _ in plan.places()]
    errors = (truth - models(np.stack([plan.rows[place] for place in places]))).ravel()
    index, first = np.unique(
        np.concatenate([np.arange(place.start, place.stop) for place in places]), return_index=True
    )
    residuals = SeriesResiduals(plan.rows[index], errors[first], index)
    start = np.stack([s.history for s in stretches])[:, None]
    run = FreeRun.of(models, start, stack_exog(stretches), plan.horizon)
    noise = residuals.noise([seed, 0], [s.left_out for s in stretches])
    scale = run.spread(models, noise, n_paths, sums)
    mean = scale.mean(axis=0)
    ratios = np.abs(level_errors(run.values - truth, sums)) / np.sqrt(scale * mean)
    return Calibration(residuals, mean, ratios)
