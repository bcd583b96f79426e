"""Time series by a regressor on lagged values, tuned by free runs [Suykens2002, section 3.5]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.progress import Listener
from lssvm._core.random import RandomState
from lssvm._core.threads import small_problem
from lssvm.criteria.dual import C_range
from lssvm.criteria.free_running import FittedRegressors, Models, Predicts
from lssvm.kernels import Kernel, resolve_gamma
from lssvm.recipes.record import Fit, Tuning, check_form
from lssvm.recipes.series_data import Layout, Plan, Series, check_inputs, check_lengths, open_series
from lssvm.recipes.series_intervals import Calibration, FreeRun, calibrate
from lssvm.recipes.settings import (
    KernelChoice,
    check_C,
    check_option,
    is_int,
    resources_of,
    seed_of,
)
from lssvm.search.base import Search
from lssvm.search.choice import make_search
from lssvm.search.path import PathSearch
from lssvm.search.space import Space, TuningResult
from lssvm.solvers import DualSystem

VALIDATIONS = ("free-run", "rolling-origin", "one-step")


class Regressor(Predicts, Protocol):
    """What is asked of the regressor inside, beside predictions."""

    def fit(self, X: FloatArray, y: FloatArray) -> Any:
        """Learn from rows (n, d) and targets (n,)."""


class DualRegressor(Regressor, Protocol):
    """An LS-SVM in the dual: its solutions without some of the rows follow in closed form."""

    C: Any
    kernel: Any
    gamma: Any
    degree: int
    coef0: float
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
        raise InvalidInputError(
            f"{name}={value!r} is not usable: give a whole number >= {smallest}."
        )


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
        if _choice_of(ask.dual).tunes_gamma:
            ask.dual.set_params(gamma=result.gamma)
    ask.regressor.fit(plan.rows, plan.targets)
    ends = tuple(s.at(slice(len(s) - layout.history, None)) for s in series)
    return SeriesFit(ask.regressor, layout, ends, listed, plan.horizon, seed, plan, tuning)


def _choice_of(dual: DualRegressor) -> KernelChoice:
    return KernelChoice(dual.kernel, dual.gamma, dual.degree, dual.coef0)


def _is_open(dual: DualRegressor) -> bool:
    """Say whether C or gamma are to be chosen; a gamma per feature the model finds by itself."""
    choice = _choice_of(dual)
    return not choice.asks_ard and (check_C(dual.C) is None or choice.tunes_gamma)


def _tune(
    dual: DualRegressor, plan: Plan, search: Search, seed: int, tell: Listener
) -> TuningResult:
    """Choose C and gamma by free runs through stretches that models have not seen."""
    choice = _choice_of(dual)
    if choice.precomputed:
        raise InvalidInputError(
            "NARX cannot tune kernel='precomputed': the rows of a free run are made on the way. "
            "Name a kernel such as 'rbf'."
        )
    gamma = choice.fixed_gamma(plan.rows, None)

    def kernel(value: float | None) -> Kernel:
        return choice.at(value if gamma is None else gamma)

    tunes_gamma = choice.tunes_gamma
    space = Space(
        C=check_C(dual.C),
        tune_gamma=tunes_gamma,
        gamma_start=float(resolve_gamma("scale", plan.rows)) if tunes_gamma else 1.0,
        n_features=plan.rows.shape[1],
        C_range=C_range(DualSystem(kernel(None), plan.rows, plan.rows, 1.0)),
    )
    resources = resources_of(dual)
    objective = plan.objective(kernel, bool(dual.fit_intercept), resources)
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
    fit, resources = dual.record_, resources_of(dual)
    objective = plan.objective(lambda _: fit.kernel, bool(dual.fit_intercept), resources)
    return objective.at(None).models(fit.C)


def _refitted(regressor: Regressor, plan: Plan) -> Models:
    """Return regressors that are fitted without the rows that each stretch leaves out."""
    kept = [np.delete(np.arange(len(plan.targets)), s.left_out) for s in plan.stretches()]
    return FittedRegressors(
        [clone(regressor).fit(plan.rows[rows], plan.targets[rows]) for rows in kept]
    )
