"""`NARX`: time series by a regressor on lagged values."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm._core.random import RandomState
from lssvm.estimators.callbacks import CallbackSupportMixin, listen, reports
from lssvm.estimators.dual_regressor import LSSVR
from lssvm.estimators.explaining import Groups, Wish, explain_series
from lssvm.explanations import Explanation
from lssvm.recipes.series import (
    SeriesFit,
    SeriesSettings,
    calibrate_intervals,
    check_count,
    fit_series,
)
from lssvm.recipes.series_data import is_list_of_series, open_series
from lssvm.uncertainty import check_coverage


@dataclass(eq=False, repr=False)
class NARX(CallbackSupportMixin, BaseEstimator):
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
        for name in [name for name in vars(self) if name.endswith("_")]:  # of an earlier fit
            delattr(self, name)
        regressor = LSSVR("cv", gamma="cv") if self.estimator is None else clone(self.estimator)
        if getattr(regressor, "metric", None) is not None:
            raise InvalidInputError(
                f"metric={regressor.metric!r} is not available for the estimator of NARX: use "
                "metric=None, or gamma='ard' for one width per lag."
            )
        dual = regressor if isinstance(regressor, LSSVR) else None
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k != "estimator"}
        ask = SeriesSettings(regressor, dual, **parameters)
        return self._publish(fit_series(open_series(y, X), is_list_of_series(y), ask, listen(self)))

    def _publish(self, record: SeriesFit) -> NARX:
        """Keep the record, and set what follows from it as attributes."""
        if record.tuning is not None:
            if record.tuning.cv_results is not None:
                self.cv_results_ = record.tuning.cv_results
            self.best_score_ = record.tuning.best_score
        self.estimator_, self.horizon_ = record.regressor, record.horizon
        self.n_series_, self.n_exog_ = len(record.ends), record.layout.n_exog
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
                stacklevel=2,
            )
        values = record.levels(run, past)
        if not return_interval:
            return values if listed else np.asarray(values[0])
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
        n_background: int = 100,
        n_permutations: int = 10,
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
        n_background : int, default=100
            Rows of the regressor's basis, or of the training, that absent values are taken from.
        n_permutations : int, default=10
            Orders of the columns for every row and background row, where values are sampled.
        interactions : bool, default=False
            Also return how pairs of columns work together, where values are exact.
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
        >>> found = model.explain(y[200:])
        >>> found.feature_names, bool(np.allclose(found.prediction, model.predict(y[200:])))
        (('y[t-1]', 'y[t-2]'), True)
        """
        check_is_fitted(self)
        wish = Wish(groups, n_background, n_permutations, interactions, random_state)
        return explain_series(self.record_, self.record_.continued(y, X, history, X_history), wish)

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

        Returns
        -------
        float
            1 - sum of squared errors / sum of squared deviations from the mean of ``y``.
        """
        check_is_fitted(self)
        return self.record_.score(self.record_.continued(y, X))
