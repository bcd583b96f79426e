"""`NARX`: time series by a regressor on lagged values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm._core.random import RandomState
from lssvm.criteria.free_running import RUNAWAY, free_run
from lssvm.estimators._callbacks import Listened, reports, told
from lssvm.estimators._stored import need_stored
from lssvm.estimators._validation import check_option, seed_of
from lssvm.estimators.dual_regressor import LSSVR
from lssvm.estimators.narx_fitting import (
    Plan,
    check_number,
    fit_tuned,
    predictor,
    wants_tuning,
)
from lssvm.estimators.narx_intervals import Calibration, calibrate, interval_widths
from lssvm.estimators.narx_series import (
    Layout,
    Series,
    are_several,
    as_series,
    check_inputs,
    check_lengths,
)


class NARX(Listened, BaseEstimator):
    r"""Nonlinear autoregression with exogenous inputs, on any regressor.

    The model is :math:`\hat y_t = f(y_{t-1}, \dots, y_{t-p}; x_t, \dots, x_{t-r})` with
    p = ``lags`` and r = ``exog_lags`` (section 3.5 of [Suykens2002]_). `predict` looks one step
    ahead; `forecast` runs freely, on its own predictions.

    Parameters
    ----------
    estimator : regressor or None, default=None
        Learns f from standardised rows; None is ``LSSVR(C="cv", gamma="cv")``. An `LSSVR` whose C
        or gamma is "cv" is tuned by ``validation`` and ``search`` (its own cv, search and scoring
        serve "one-step" only); any other regressor, and one with ``gamma="ard"``, is fitted as it
        is.
    lags : int, default=50
        Number p of past values in a row.
    exog_lags : int, default=0
        Number r of past inputs in a row, beside those of the time itself. Only where X is given.
    differencing : int, default=0
        How often the series is differenced before f is learned; forecasts are summed up again.
    validation : {"free-run", "rolling-origin", "one-step"}, default="free-run"
        What tunes C and gamma. "free-run": stretches of ``horizon`` values are left out, together
        with the rows whose lags reach into them, and the model runs through each of them.
        "rolling-origin": the same runs, but the model has seen only what came before.
        "one-step": the estimator's own cross-validation of one-step errors, as in print; it tends
        to choose models that diverge in free run.
    horizon : int or None, default=None
        Steps of the free runs of tuning, of `score` and of the calibration of intervals. None is
        100, or a fifth of the rows of the longest series where that is less.
    n_origins : int, default=20
        Number of stretches in tuning and calibration, evenly spread; in "rolling-origin" over the
        second half of a series.
    search : str, Search or None, default=None
        How (C, gamma) are searched, see `lssvm.tuning`; None is ``PathSearch(n_C=13)``.
    n_paths : int, default=50
        Simulated paths per forecast interval.
    random_state : int, Generator, RandomState or None, default=None
        Seeds simulation and search; None is a fixed seed.

    Attributes
    ----------
    estimator_ : regressor
        Fitted on standardised rows: the newest value first, then the inputs.
    horizon_ : int
    n_series_ : int
    n_exog_ : int
        Number of columns of X, 0 without.
    cv_results_ : dict
        Where C or gamma was tuned: parameters and scores (minus the mean squared error of the free
        runs, in units of the variance of the differenced series).
    best_score_ : float
        Where C or gamma was tuned.

    See Also
    --------
    lssvm.plots.ForecastDisplay : Draws a forecast, its interval and the truth.

    Notes
    -----
    The print's q = 50 counts from zero: its model has 51 past values, ``lags=51`` here. It tunes by
    10-fold cross-validation of one-step errors ("one-step") and points to "special cross-validation
    techniques for time-series", which "free-run" and "rolling-origin" are.

    Several series (a list) share one f; rows never span two of them. Forecasts then have a leading
    axis of series. A model continues its training series; ``history`` makes it continue another.

    Inside scikit-learn's searches the series takes the place of X, its inputs that of y:
    ``GridSearchCV(NARX(LSSVR()), {"lags": [10, 50], "estimator__C": [1, 10]},
    cv=TimeSeriesSplit(5)).fit(y)``, or ``.fit(y, X)``. A test part must directly follow its
    training part, as in `TimeSeriesSplit` without a gap, because `predict` and `score` continue the
    training series. ``scoring`` is left out (then it is `score`), or a function of the model, the
    test part and its inputs.

    Cost of tuning: see `lssvm.tuning.FreeRunObjective`. An interval is calibrated at the first call
    that asks for one: ``n_origins`` times ``n_paths`` simulated paths, and ``n_origins`` refits
    where the estimator is no plain `LSSVR`.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import NARX
    >>> y = np.sin(0.3 * np.arange(240))
    >>> model = NARX(lags=4).fit(y[:200])
    >>> bool(np.abs(model.forecast(40) - y[200:]).max() < 0.05)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        lags: int = 50,
        exog_lags: int = 0,
        differencing: int = 0,
        *,
        validation: str = "free-run",
        horizon: int | None = None,
        n_origins: int = 20,
        search: Any = None,
        n_paths: int = 50,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.lags = lags
        self.exog_lags = exog_lags
        self.differencing = differencing
        self.validation = validation
        self.horizon = horizon
        self.n_origins = n_origins
        self.search = search
        self.n_paths = n_paths
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    @reports
    def fit(self, y: Any, X: Any = None) -> NARX:
        """Learn from a series.

        Parameters
        ----------
        y : array-like of shape (n,), or a list of such
            One series, or several.
        X : array-like of shape (n, d), or a list of such, optional
            Exogenous inputs of the same times.

        Returns
        -------
        NARX
            Itself.
        """
        self._check_parameters()
        for name in ("cv_results_", "best_score_", "_calibration", "_stored"):
            self.__dict__.pop(name, None)  # of an earlier fit
        self._seed = seed_of(self.random_state)
        series = as_series(y, X)
        check_lengths(series, self.lags, self.exog_lags, self.differencing)
        layout = Layout.learn(series, self.lags, self.exog_lags, self.differencing)
        rolling = self.validation == "rolling-origin"
        plan = Plan.of(series, layout, self.horizon, self.n_origins, rolling)
        estimator = LSSVR("cv", gamma="cv") if self.estimator is None else clone(self.estimator)
        if self.validation != "one-step" and wants_tuning(estimator):
            estimator, result = fit_tuned(estimator, plan, self.search, self._seed, told(self))
            self.cv_results_, self.best_score_ = result.cv_results, -result.loss
        else:
            estimator.fit(plan.rows, plan.targets)
        self.estimator_ = estimator
        self.horizon_ = plan.horizon
        self.n_series_, self._listed = len(series), are_several(y)
        self.n_exog_ = 0 if series[0].inputs is None else series[0].inputs.shape[1]
        self._layout, self._plan = layout, plan
        self._ends = [s.part(slice(len(s) - layout.history, None)) for s in series]
        return self

    def predict(
        self, y: Any, X: Any = None, *, history: Any = None, X_history: Any = None
    ) -> FloatArray | list[FloatArray]:
        """Predict each value of a series from the true values before it.

        Parameters
        ----------
        y : array-like of shape (n,), or a list of such
            What follows the training series (or ``history``). A list has one continuation for each
            training series.
        X : array-like of shape (n, d), or a list of such, optional
            Inputs of the same times; needed where the model was trained with inputs.
        history : array-like of shape (h,), optional
            What comes before ``y``, in place of the training series; at least ``lags`` +
            ``differencing`` values.
        X_history : array-like of shape (h, d), optional

        Returns
        -------
        array of shape (n,), or a list of such
        """
        check_is_fitted(self)
        parts, before = self._continue(y, X, history, X_history)
        predicted = []
        for part, past in zip(parts, before, strict=True):
            whole = part.after(past)
            rows = self._layout.table(whole)[0][-len(part) :]
            raw = np.asarray(self.estimator_.predict(rows)).reshape(len(rows))
            predicted.append(self._layout.one_step_levels(raw, whole))
        return predicted if are_several(y) else predicted[0]

    def forecast(
        self,
        steps: int,
        X_future: Any = None,
        return_interval: bool = False,
        coverage: float = 0.95,
        *,
        history: Any = None,
        X_history: Any = None,
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Forecast by a free run: predictions are fed back as if they were true.

        Parameters
        ----------
        steps : int
            How many values, at least 1.
        X_future : array-like of shape (steps, d), or a list of such, optional
            Inputs of the times that are forecast; needed where the model was trained with inputs.
        return_interval : bool, default=False
            Return an interval for each value as well.
        coverage : float, default=0.95
            Share of the values that their intervals are to contain, between 0 and 1.
        history : array-like of shape (h,), optional
            The series that is continued, in place of the training series; at least ``lags`` +
            ``differencing`` values.
        X_history : array-like of shape (h, d), optional

        Returns
        -------
        forecast : array of shape (steps,)
            Of shape (n_series, steps) where the model was trained on a list of series.
        interval : array of shape (steps, 2)
            Lower and upper ends, where asked for; (n_series, steps, 2) for a list of series.

        Notes
        -----
        Intervals come from simulated free runs whose noise is that of similar rows, scaled so that
        they hold on stretches the model has not seen (split conformal). Beyond ``horizon_`` steps
        they are an extrapolation.
        """
        check_is_fitted(self)
        check_number("steps", steps, 1)
        if not (isinstance(coverage, (float, np.floating)) and 0.0 < coverage < 1.0):
            raise InvalidInputError(
                f"coverage={coverage!r} is not usable: give a share between 0 and 1, such as 0.95."
            )
        past = self._past(history, X_history)
        exog = self._future(past, X_future, steps, history is not None)
        start = np.stack([self._layout.newest_first(s) for s in past])[:, None]
        models = predictor(self.estimator_)
        run = free_run(models, start, steps, exog)[:, 0]
        if np.abs(run).max() >= RUNAWAY:
            warnings.warn(
                "The forecast has diverged and is held at its limit: fewer steps, a smaller C or a "
                "larger gamma keep a free run within the range of its data.",
                NumericalWarning,
                stacklevel=2,
            )
        values = np.stack([self._layout.levels(r, s) for r, s in zip(run, past, strict=True)])
        whole = self._listed and history is None
        if not return_interval:
            return values if whole else np.asarray(values[0])
        half = interval_widths(
            self._calibrated(),
            models,
            start,
            exog,
            run,
            coverage,
            self.n_paths,
            self._layout,
            self._seed,
        )
        ends = np.stack([values - half, values + half], axis=2)
        return (values, ends) if whole else (np.asarray(values[0]), np.asarray(ends[0]))

    def score(self, y: Any, X: Any = None) -> float:
        """Return R^2 of free runs through a continuation of the training series.

        The continuation is cut into pieces of ``horizon_`` values; each is forecast from the true
        values before it. With ``horizon=1`` these are the one-step predictions.

        Parameters
        ----------
        y : array-like of shape (n,), or a list of such
            What follows the training series.
        X : array-like of shape (n, d), or a list of such, optional

        Returns
        -------
        float
            1 - sum of squared errors / sum of squared deviations from the mean of ``y``.
        """
        check_is_fitted(self)
        errors, truth = [], []
        for part, past in zip(*self._continue(y, X, None, None), strict=True):
            for start in range(0, len(part), self.horizon_):
                piece = part.part(slice(start, start + self.horizon_))
                before = part.part(slice(0, start)).after(past)
                exog = self._exog_columns(before, piece.inputs, len(piece))
                history = self._layout.newest_first(before)[None, None]
                run = free_run(predictor(self.estimator_), history, len(piece), exog)[0, 0]
                errors.append(self._layout.levels(run, before) - piece.values)
                truth.append(piece.values)
        total = np.concatenate(truth)
        lost = float((np.concatenate(errors) ** 2).sum())
        spread = float(((total - total.mean()) ** 2).sum())
        if spread == 0.0:
            return 1.0 if lost == 0.0 else 0.0  # as scikit-learn's r2_score
        return 1.0 - lost / spread

    # -- checks ----------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_number("lags", self.lags, 1)
        check_number("exog_lags", self.exog_lags, 0)
        check_number("differencing", self.differencing, 0)
        check_number("n_origins", self.n_origins, 1)
        check_number("n_paths", self.n_paths, 2)
        if self.horizon is not None:
            check_number("horizon", self.horizon, 1)
        check_option("validation", self.validation, ("free-run", "rolling-origin", "one-step"))

    def _past(self, history: Any, X_history: Any) -> list[Series]:
        """Return the series that are continued: those of the training, or the one given."""
        if history is None:
            if X_history is not None:
                raise InvalidInputError("X_history came without history: give both, or neither.")
            return self._ends
        (past,) = as_series(np.asarray(history), X_history, "history", "X_history")
        self._check_width(past.inputs, "X_history")
        if len(past) < self._layout.history:
            raise InvalidInputError(
                f"history has {len(past)} values but the model looks back {self._layout.history}: "
                "give at least as many."
            )
        return [past]

    def _continue(
        self, y: Any, X: Any, history: Any, X_history: Any
    ) -> tuple[list[Series], list[Series]]:
        parts, past = as_series(y, X), self._past(history, X_history)
        if len(parts) != len(past):
            raise InvalidInputError(
                f"y has {len(parts)} series but {len(past)} are to be continued: give a list with "
                "one continuation for each training series, or one series and its history."
            )
        for part in parts:
            self._check_width(part.inputs, "X")
        return parts, past

    def _check_width(self, inputs: FloatArray | None, name: str) -> None:
        width = 0 if inputs is None else inputs.shape[1]
        if width != self.n_exog_:
            raise InvalidInputError(
                f"{name} has {width} columns of inputs but the model was trained with "
                f"{self.n_exog_}: give the same columns as in fit."
            )

    def _future(
        self, past: list[Series], X_future: Any, steps: int, other: bool
    ) -> FloatArray | None:
        """Return the columns of future rows that come from the inputs, (m, steps, e)."""
        if X_future is None or self.n_exog_ == 0:
            self._check_width(None if X_future is None else np.empty((0, 1)), "X_future")
            return None
        listed = self._listed and not other
        tables = X_future if listed else [X_future]
        if not isinstance(tables, (list, tuple)) or len(tables) != len(past):
            raise InvalidInputError(
                f"X_future must be a list of {len(past)} tables, one for each training series."
            )
        columns = []
        for s, table in zip(past, tables, strict=True):
            inputs = check_inputs(table, steps, "X_future")
            self._check_width(inputs, "X_future")
            columns.append(self._exog_columns(s, inputs, steps))
        return np.concatenate([c for c in columns if c is not None])

    def _exog_columns(
        self, past: Series, inputs: FloatArray | None, steps: int
    ) -> FloatArray | None:
        if inputs is None or past.inputs is None:
            return None
        whole = np.concatenate([past.inputs, inputs])
        columns = self._layout.exog(whole, len(past), len(past) + steps)
        return None if columns is None else columns[None]

    def _calibrated(self) -> Calibration:
        if not hasattr(self, "_calibration"):
            need_stored(self, "prediction", "Forecast intervals")
            self._calibration = calibrate(self.estimator_, self._plan, self.n_paths, self._seed)
        return self._calibration
