"""`NARX`: time series by a regressor on lagged values."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm._core.random import RandomState
from lssvm.estimators.base import CallbackSupportMixin, callback_of, reports
from lssvm.estimators.dual import LSSVR
from lssvm.explanations import Explanation
from lssvm.fitting.explaining import ExplainOptions, Groups, explain_series
from lssvm.fitting.series import (
    Calendar,
    SeriesFit,
    SeriesSettings,
    calibrate_intervals,
    check_count,
    fit_series,
    index_times,
    is_list_of_series,
    open_series,
)
from lssvm.kernels import MetricKernel
from lssvm.uncertainty import check_coverage


@dataclass(eq=False, repr=False)
class NARX(CallbackSupportMixin, BaseEstimator):
    r"""Nonlinear autoregression with exogenous inputs, on any regressor.

    The model is :math:`\hat y_t = f(y_{t-1}, \dots, y_{t-p}; x_t, \dots, x_{t-r})` with
    p = ``lags`` and r = ``exog_lags`` (section 3.5 of [Suykens2002]_). `predict` predicts one step
    ahead; `forecast` feeds its own predictions back.

    Parameters
    ----------
    estimator : regressor or None, default=None
        Learns f from standardised rows; None is ``LSSVR(C="cv", gamma="cv")``. An `LSSVR` whose C
        or gamma is "cv" is tuned by ``validation`` and ``search`` (its own cv, search and scoring
        serve "one-step" only); any other regressor, and one with ``gamma="ard"``, is fitted
        unchanged.
    lags : int, default=50
        Number p of past values in a row.
    exog_lags : int, default=0
        Number r of past inputs in a row, in addition to those of the time itself. Only if X is
        given.
    differencing : int, default=0
        How often the series is differenced before f is learned; forecasts are summed up again.
    validation : {"free-run", "rolling-origin", "one-step"}, default="free-run"
        What tunes C and gamma. "free-run": segments of ``horizon`` values are held out, together
        with the rows whose lags reach into them, and the model runs through each of them.
        "rolling-origin": the same runs, but the model has seen only what came before.
        "one-step": the estimator's own cross-validation of one-step errors, as in the book; it
        tends to choose models that diverge in free runs.
    horizon : int or None, default=None
        Steps of the free runs of tuning, of `score` and of the calibration of intervals. None is
        100, or a fifth of the rows of the longest series where that is less.
    n_origins : int, default=20
        Number of segments in tuning and calibration, evenly spread; in "rolling-origin" over the
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
        If C or gamma was tuned: parameters and scores (minus the mean squared error of the free
        runs, in units of the variance of the differenced series).
    best_score_ : float
        If C or gamma was tuned.
    calendar_ : Calendar, tuple of Calendar or None
        How the times of the training series follow each other, where it has any.

    See Also
    --------
    lssvm.plots.ForecastDisplay : Draws a forecast, its interval and the truth.

    Notes
    -----
    q = 50 of the book counts from zero: its model has 51 past values, ``lags=51`` here. It tunes by
    10-fold cross-validation of one-step errors ("one-step") and points to "special cross-validation
    techniques for time-series", which "free-run" and "rolling-origin" are.

    Times are those of the index of a pandas series, or ``times``: evenly spaced, months (or
    quarters, years), or working days. Forecasts then have times too: the forecast of a pandas
    series is a pandas series with dates, and `forecast_times` returns the times in any case. They
    are not inputs of f.

    Several series (a list) share one f; rows never span two of them. Forecasts then have a leading
    axis of series. A model continues its training series; ``history`` makes it continue another.

    Inside scikit-learn's searches the series takes the place of X, its inputs that of y:
    ``GridSearchCV(NARX(LSSVR()), {"lags": [10, 50], "estimator__C": [1, 10]},
    cv=TimeSeriesSplit(5)).fit(y)``, or ``.fit(y, X)``. A test part must directly follow its
    training part, as in `TimeSeriesSplit` without a gap, because `predict` and `score` continue the
    training series. ``scoring`` is not given (then it is `score`), or a function of the model, the
    test part and its inputs.

    An interval is calibrated at the first call
    that needs one: ``n_origins`` times ``n_paths`` simulated paths, and ``n_origins`` refits if
    the estimator is not a plain `LSSVR`.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import NARX
    >>> y = np.sin(0.3 * np.arange(240))
    >>> model = NARX(lags=4).fit(y[:200])
    >>> bool(np.abs(model.forecast(40) - y[200:]).max() < 0.05)
    True
    """

    record_: SeriesFit = field(init=False)
    estimator: Any = None
    lags: int = 50
    exog_lags: int = 0
    differencing: int = 0
    _: KW_ONLY
    validation: str = "free-run"
    horizon: int | None = None
    n_origins: int = 20
    search: Any = None
    n_paths: int = 50
    random_state: RandomState = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    @reports
    def fit(self, y: Any, X: Any = None, *, times: Any = None) -> NARX:
        """Fit the model to a series.

        Parameters
        ----------
        y : array-like of shape (n,), or a list of such
            One series, or several.
        X : array-like of shape (n, d), or a list of such, optional
            Exogenous inputs of the same times.
        times : array-like of shape (n,) of dates, or a list of such, optional
            Times of the values; None: the index of a pandas series, if it holds dates.

        Returns
        -------
        NARX
            Itself.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:  # of an earlier fit
            delattr(self, name)
        regressor = LSSVR("cv", gamma="cv") if self.estimator is None else clone(self.estimator)
        kernel = getattr(regressor, "kernel", None)
        if isinstance(kernel, MetricKernel):
            raise InvalidInputError(
                f"kernel={kernel!r} is not available for the estimator of NARX: use "
                f"kernel={kernel.kernel!r}, or gamma='ard' for one width per lag."
            )
        dual = regressor if isinstance(regressor, LSSVR) else None
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k != "estimator"}
        settings = SeriesSettings(regressor, dual, **parameters)
        listed, series = is_list_of_series(y), open_series(y, X)
        calendars = _calendars(y, times, [len(one) for one in series], listed)
        record = fit_series(series, listed, settings, callback_of(self))
        return self._publish(replace(record, calendars=calendars))

    def _publish(self, record: SeriesFit) -> NARX:
        """Keep the record, and set what follows from it as attributes."""
        if record.tuning is not None:
            if record.tuning.cv_results is not None:
                self.cv_results_ = record.tuning.cv_results
            self.best_score_ = record.tuning.best_score
        self.estimator_, self.horizon_ = record.regressor, record.horizon
        self.n_series_, self.n_exog_ = len(record.ends), record.layout.n_exog
        calendars = record.calendars
        self.calendar_ = None if not calendars else calendars if record.listed else calendars[0]
        self.record_ = record
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
            Inputs of the times of ``history``.

        Returns
        -------
        array of shape (n,), or a list of such
        """
        check_is_fitted(self)
        pairs = self.record_.continued(y, X, history, X_history)
        predicted = [self.record_.predict(past, later) for past, later in pairs]
        return predicted if is_list_of_series(y) else predicted[0]

    def forecast(
        self,
        steps: int,
        X_future: Any = None,
        return_interval: bool = False,
        coverage: float = 0.95,
        *,
        history: Any = None,
        X_history: Any = None,
    ) -> Any:
        """Forecast by a free run: predictions are fed back as if they were true.

        Parameters
        ----------
        steps : int
            How many values, at least 1.
        X_future : array-like of shape (steps, d), or a list of such, optional
            Inputs of the times that are forecast; needed where the model was trained with inputs.
        return_interval : bool, default=False
            Also return the result of `predict_interval`.
        coverage : float, default=0.95
            Share of the values that their intervals are to contain, between 0 and 1.
        history : array-like of shape (h,), optional
            The series that is continued, in place of the training series; at least ``lags`` +
            ``differencing`` values.
        X_history : array-like of shape (h, d), optional
            Inputs of the times of ``history``.

        Returns
        -------
        forecast : array of shape (steps,)
            Of shape (n_series, steps) where the model was trained on a list of series. A pandas
            series with dates if such a series is continued.
        interval : array of shape (steps, 2)
            Lower and upper ends, with ``return_interval``; (n_series, steps, 2) for a list of
            series.
        """
        values, ends = self._run(steps, X_future, return_interval, coverage, history, X_history)
        dated = self._dated(history, steps)
        if dated is not None:
            values = dated(values)
        return values if ends is None else (values, ends)

    def predict_interval(
        self,
        steps: int,
        X_future: Any = None,
        coverage: float = 0.95,
        *,
        history: Any = None,
        X_history: Any = None,
    ) -> FloatArray:
        """Return prediction intervals of a forecast.

        Parameters
        ----------
        steps : int
            How many values ahead.
        X_future : array-like of shape (steps, d), or a list of such, optional
            As in `forecast`.
        coverage : float, default=0.95
            Share of the values that their intervals are to contain, between 0 and 1.
        history, X_history : array-like, optional
            As in `forecast`.

        Returns
        -------
        array of shape (steps, 2)
            Lower and upper ends around `forecast`; (n_series, steps, 2) for a list of series.

        Notes
        -----
        Intervals come from simulated free runs whose noise is that of similar rows, scaled so that
        they hold on stretches the model has not seen (split conformal). Beyond ``horizon_`` steps
        they are an extrapolation.

        Examples
        --------
        >>> import numpy as np
        >>> from lssvm import NARX
        >>> y = np.sin(0.3 * np.arange(120)) + 0.1 * np.random.default_rng(0).normal(size=120)
        >>> ends = NARX(lags=8, horizon=10).fit(y).predict_interval(10, coverage=0.9)
        >>> ends.shape, bool((ends[:, 0] < ends[:, 1]).all())
        ((10, 2), True)
        """
        ends = self._run(steps, X_future, True, coverage, history, X_history)[1]
        assert ends is not None
        return ends

    def forecast_times(self, steps: int, *, history: Any = None) -> NDArray[np.datetime64]:
        """Return the times of the next values.

        Parameters
        ----------
        steps : int
            How many values ahead.
        history : series of pandas, optional
            The series that is continued, in place of the training series.

        Returns
        -------
        array of datetime64 of shape (steps,)
            Of shape (n_series, steps) where the model was trained on a list of series.

        Raises
        ------
        InvalidInputError
            If the series has no times.

        Examples
        --------
        >>> import numpy as np
        >>> from lssvm import NARX
        >>> days = np.datetime64("2024-02-01") + np.arange(28)
        >>> model = NARX(lags=3).fit(np.sin(np.arange(28.0)), times=days)
        >>> model.forecast_times(2).astype("datetime64[D]").tolist()
        [datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)]
        """
        check_is_fitted(self)
        check_count("steps", steps, 1)
        if history is None:
            calendars = self.record_.calendars
        else:
            index = index_times(history)
            calendars = () if index is None else (Calendar.of(index, "history"),)
        if not calendars:
            raise InvalidInputError(
                "The series has no times, or they are not evenly spaced: fit a series of pandas "
                "whose index holds dates, or give fit(y, times=...), which names what is wrong."
            )
        times = np.stack([calendar.following(steps) for calendar in calendars])
        return times if self.record_.listed and history is None else np.asarray(times[0])

    def _run(
        self,
        steps: int,
        X_future: Any,
        intervals: bool,
        coverage: float,
        history: Any,
        X_history: Any,
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return a free run, and intervals on request."""
        check_is_fitted(self)
        check_count("steps", steps, 1)
        coverage = check_coverage(coverage)
        record = self.record_
        past = record.past(history, X_history)
        listed = record.listed and history is None
        run = record.run(past, record.future_inputs(X_future, past, steps, listed), steps)
        if run.diverged:
            warnings.warn(
                "The forecast has diverged and is held at its limit: fewer steps, a smaller C or a "
                "larger gamma keep a free run within the range of its data.",
                NumericalWarning,
                stacklevel=3,
            )
        values = record.levels(run, past)
        if not intervals:
            return values if listed else np.asarray(values[0]), None
        self.record_ = calibrate_intervals(record, self._plain_dual(), self.n_paths)
        half = self.record_.half_widths(run, coverage, self.n_paths)
        ends = np.stack([values - half, values + half], axis=2)
        return (values, ends) if listed else (np.asarray(values[0]), np.asarray(ends[0]))

    def explain(
        self,
        y: Any,
        X: Any = None,
        *,
        history: Any = None,
        X_history: Any = None,
        groups: Groups | None = None,
        n_background: int | None = None,
        n_permutations: int | None = None,
        interactions: bool = False,
        random_state: RandomState = None,
    ) -> Explanation:
        """Return what every past value and every input adds to the one-step predictions.

        Parameters
        ----------
        y, X, history, X_history
            What `predict` takes.
        groups : dict from str to list, or None, default=None
            Columns, by name or number, that are explained as one, such as all lags of an input.
        n_background : int or None, default=None
            Rows of the regressor's basis, or of the training, that absent values are taken from.
        n_permutations : int or None, default=None
            Orders of the columns for every row and background row, if values are sampled.
        interactions : bool, default=False
            Also return the interactions of pairs of columns, if values are exact.
        random_state : int, Generator, RandomState or None, default=None
            Draws background rows and orders; None is a fixed seed.

        Returns
        -------
        lssvm.explanations.Explanation
            Of the predictions of all series one after the other; columns are y[t-1], y[t-2], ...,
            then x0[t], ... With differencing, what the last values add by themselves is part of
            ``base_values``.

        Notes
        -----
        Exact or sampled as the regressor's own ``explain``; regressors of other libraries are
        sampled.

        Examples
        --------
        >>> import numpy as np
        >>> from lssvm import LSSVR, NARX
        >>> y = np.sin(0.3 * np.arange(240))
        >>> model = NARX(LSSVR(C=100.0, gamma=0.1), lags=2).fit(y[:200])
        >>> parts = model.explain(y[200:])
        >>> parts.feature_names, bool(np.allclose(parts.prediction, model.predict(y[200:])))
        (('y[t-1]', 'y[t-2]'), True)
        """
        check_is_fitted(self)
        sampling = (n_background, n_permutations, interactions, random_state)
        pairs = self.record_.continued(y, X, history, X_history)
        return explain_series(self.record_, pairs, ExplainOptions(groups, *sampling))

    def _dated(self, history: Any, steps: int) -> Callable[[FloatArray], Any] | None:
        """Return what makes a series of pandas of a forecast; None where it stays an array."""
        record = self.record_
        index = None if history is None else index_times(history)
        if history is not None:
            framed, name = index is not None, getattr(history, "name", None)
        else:
            framed = bool(record.calendars) and not record.listed and record.calendars[0].framed
            name = record.calendars[0].name if framed else None
        if not framed:
            return None
        try:
            import pandas as pd

            times = self.forecast_times(steps, history=history)
        except (ImportError, InvalidInputError):  # uneven times of a history go nowhere
            return None
        return lambda values: pd.Series(values, index=pd.DatetimeIndex(times), name=name)

    def _plain_dual(self) -> LSSVR | None:
        """Return the regressor where it is a dual model that solves its system and no more."""
        inner = self.estimator_
        if isinstance(inner, LSSVR) and type(inner) is LSSVR and inner.loss == "squared":
            return inner if inner.reduction is None else None
        return None

    def score(self, y: Any, X: Any = None) -> float:
        """Return R^2 of free runs through a continuation of the training series.

        The continuation is cut into pieces of ``horizon_`` values; each is forecast from the true
        values before it. With ``horizon=1`` these are the one-step predictions.

        Parameters
        ----------
        y : array-like of shape (n,), or a list of such
            What follows the training series.
        X : array-like of shape (n, d), or a list of such, optional
            Inputs of the same times.

        Returns
        -------
        float
            1 - sum of squared errors / sum of squared deviations from the mean of ``y``.
        """
        check_is_fitted(self)
        return self.record_.score(self.record_.continued(y, X))


def _calendars(y: Any, times: Any, sizes: list[int], listed: bool) -> tuple[Calendar, ...]:
    """Return how the times of the series follow each other; empty where they have none."""
    if times is None:
        indices = [index_times(one) for one in (y if listed else [y])]
        if any(index is None for index in indices):
            return ()
        try:
            made = [Calendar.of(index, "y") for index in indices]
        except InvalidInputError:  # times were not requested: `forecast_times` raises
            return ()
        names = [getattr(one, "name", None) for one in (y if listed else [y])]
        return tuple(
            replace(one, framed=True, name=name if isinstance(name, str) else None)
            for one, name in zip(made, names, strict=True)
        )
    each = times if listed else [times]
    if not isinstance(each, (list, tuple)) or [len(one) for one in each] != sizes:
        raise InvalidInputError(
            "times has other lengths than y: give one time for each value of each series."
        )
    return tuple(Calendar.of(one, "y") for one in each)
