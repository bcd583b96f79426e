"""A forecast of a time series, its interval and the truth."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.plots.base import COLOURS, Display, Estimator, finite_vector, require


class ForecastDisplay(Display):
    """A free-run forecast as in [Suykens2002, Fig. 3.6]: truth solid, forecast dashed.

    Parameters
    ----------
    forecast : array-like of shape (steps,)
        Forecast values.
    interval : array-like of shape (steps, 2) or None, default=None
        Lower and upper ends, drawn as a band.
    truth : array-like of shape (t,) or None, default=None
        What really followed, from the first step on; any number of values.
    past : array-like of shape (p,) or None, default=None
        Values before the first step.
    coverage : float or None, default=None
        What the interval promises, for the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    forecast_line_ : matplotlib.lines.Line2D
    truth_line_, past_line_ : matplotlib.lines.Line2D or None
    band_ : matplotlib.collections.PolyCollection or None
    legend_ : matplotlib.legend.Legend

    See Also
    --------
    lssvm.NARX : Makes the forecast.

    Notes
    -----
    Time and memory are those of drawing the values. Steps are counted from 1, the last value of the
    past is step 0. The figure of the book has neither past nor band.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from lssvm import LSSVR, NARX
    >>> from lssvm.plots import ForecastDisplay
    >>> y = np.sin(0.3 * np.arange(120))
    >>> model = NARX(LSSVR(100.0), lags=4).fit(y[:100])
    >>> display = ForecastDisplay.from_estimator(model, y=y[100:], past=y[80:100])
    >>> [text.get_text() for text in display.legend_.get_texts()]
    ['past', 'truth', 'forecast', '95 % interval']
    """

    def __init__(
        self,
        forecast: ArrayLike,
        *,
        interval: ArrayLike | None = None,
        truth: ArrayLike | None = None,
        past: ArrayLike | None = None,
        coverage: float | None = None,
    ) -> None:
        needed = "a vector of finite numbers"
        self.forecast = finite_vector("forecast", forecast, needed)
        self.truth = None if truth is None else finite_vector("truth", truth, needed)
        self.past = None if past is None else finite_vector("past", past, needed)
        self.interval: FloatArray | None = None
        if interval is not None:
            self.interval = np.asarray(interval, dtype=np.float64)
            if self.interval.shape != (len(self.forecast), 2):
                raise InvalidInputError(
                    f"interval has shape {self.interval.shape} for a forecast of "
                    f"{len(self.forecast)} steps: give lower and upper ends, shape (steps, 2)."
                )
        self.coverage = coverage

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        ax: Any = None,
        steps: int | None = None,
        past: ArrayLike | None = None,
        coverage: float | None = 0.95,
        history: Any = None,
        X_history: Any = None,
    ) -> Self:
        """Forecast and draw.

        Parameters
        ----------
        model : NARX
            A fitted model; one that was trained on several series needs a ``history``.
        X : array-like of shape (steps, d) or None, default=None
            Inputs of the times that are forecast.
        y : array-like of shape (t,) or None, default=None
            What really followed.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        steps : int or None, default=None
            How many values are forecast; None: as many as X or y has.
        past : array-like of shape (p,) or None, default=None
            Values before the first step that are to be drawn.
        coverage : float or None, default=0.95
            Coverage of the band; None: no band.
        history, X_history : array-like or None, default=None
            The series that is continued, in place of the training series; see `NARX.forecast`.

        Returns
        -------
        ForecastDisplay
        """
        last = cls.fitted(model)
        require(last, ("forecast",), "a picture of a forecast")
        if steps is None:
            known = X if X is not None else y
            if known is None:
                raise InvalidInputError(
                    "How far to forecast? Give steps=, or X or y of the future."
                )
            steps = len(known)  # type: ignore[arg-type]
        given = {"history": history, "X_history": X_history}
        interval = None
        if coverage is None:
            values = last.forecast(steps, X, **given)
        else:
            values, interval = last.forecast(steps, X, True, coverage, **given)
        if np.ndim(values) != 1:
            raise InvalidInputError(
                f"The model was trained on {len(values)} series: give the history of the one that "
                "is to be drawn."
            )
        values, interval = np.asarray(values), None if interval is None else np.asarray(interval)
        return cls(values, interval=interval, truth=y, past=past, coverage=coverage).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the forecast.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        ForecastDisplay
        """
        ax = self.open(ax, (8.0, 4.0))
        steps = np.arange(1, len(self.forecast) + 1)
        self.past_line_ = self.truth_line_ = self.band_ = None
        joint: FloatArray = np.empty(0)  # the last past value, so that lines have no gap
        if self.past is not None:
            joint, times = self.past[-1:], np.arange(1 - len(self.past), 1)
            (self.past_line_,) = ax.plot(times, self.past, color="0.55", lw=1.4, label="past")
            ax.axvline(0.5, color="0.7", lw=0.8, ls=":")
        if self.truth is not None:
            line = np.concatenate([joint, self.truth])
            times = np.arange(1 - len(joint), len(self.truth) + 1)
            (self.truth_line_,) = ax.plot(times, line, color="black", lw=1.4, label="truth")
        (self.forecast_line_,) = ax.plot(
            steps, self.forecast, color=COLOURS[1], lw=1.6, ls="--", label="forecast"
        )
        if self.interval is not None:
            promise = "" if self.coverage is None else f"{100 * self.coverage:g} % "
            style = {"color": COLOURS[4], "alpha": 0.35, "label": f"{promise}interval"}
            self.band_ = ax.fill_between(steps, *self.interval.T, lw=0, zorder=0, **style)
        self.name_axes("step", "value")
        ax.margins(x=0.01)
        self.legend_ = ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False)
        return self
