"""Displays of curves and bars: entropy, support values, sparsity, relevance, forecasts."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.plots.base import COLOURS, Display, Estimator, finite_vector, support_magnitudes
from lssvm.plots.charts import Band, Chart, Line, Mark, Rule, Star
from lssvm.reductions import SparsityPath


class EntropyTraceDisplay(Display):
    """Quadratic Renyi entropy of the working set after every exchange of a prototype.

    The curve rises from the entropy of a random set and becomes flat when exchanges gain little
    [DeBrabanter2010, algorithm 1]. Several selections are overlaid by giving the axes of the first
    to the others; they differ in colour and dash. (The height of the curve depends on the units of
    the features: compare the rise, and only selections from the same data.)

    Parameters
    ----------
    trace : array-like of shape (n_swaps + 1,)
        Entropy in nats at the start and after each exchange, as ``Selection.entropy_trace`` has it.
    n_trials : int or None, default=None
        Candidates that were looked at, for the legend.
    name : str, default="model"
        Name of the selection in the legend.

    Attributes
    ----------
    trace : ndarray of shape (n_swaps + 1,)
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib.lines.Line2D
        The trace.
    legend_ : matplotlib.legend.Legend
        The legend of all traces on the axes.

    See Also
    --------
    PrototypesDisplay : Where the chosen prototypes lie.

    Notes
    -----
    Time and memory O(n_swaps).

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from lssvm import FixedSizeLSSVC
    >>> from lssvm.datasets import load_ripley
    >>> from lssvm.plots import EntropyTraceDisplay
    >>> ripley = load_ripley()
    >>> model = FixedSizeLSSVC(20, C=1.0, gamma=1.0, selection="renyi")
    >>> model = model.fit(ripley.data, ripley.target)
    >>> display = EntropyTraceDisplay.from_estimator(model)
    >>> bool(display.trace[-1] > display.trace[0])
    True
    """

    def __init__(
        self, trace: ArrayLike, *, n_trials: int | None = None, name: str = "model"
    ) -> None:
        needed = "entropy_trace of a selection by entropy, such as selection_ of an estimator with "
        self.trace = finite_vector("The trace", trace, f'{needed}selection="renyi"')
        self.n_trials, self.name = n_trials, name

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Draw the trace of a fitted fixed-size model.

        Parameters
        ----------
        model : Estimator
            A fitted ``FixedSizeLSSVC`` or ``FixedSizeLSSVR`` that selected its prototypes by
            entropy, or a pipeline that ends in one.
        X, y : array-like or None, default=None
            Not needed: the model has its own record. Taken so that all displays are called alike.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw, such as ``ax_`` of another display; None: a new figure.
        name : str or None, default=None
            Name in the legend; None: that of the class.

        Returns
        -------
        EntropyTraceDisplay

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the model is not fitted.
        InvalidInputError
            If its prototypes were not selected by entropy.
        """
        last = cls.fitted(model, "selection_")
        selection = last.selection_
        if selection is None or selection.entropy_trace.size == 0:
            raise InvalidInputError(
                f"{type(last).__name__} did not select its prototypes by entropy, so there is no "
                'trace: fit it with selection="renyi" and fewer prototypes than there are rows.'
            )
        name = name or type(last).__name__
        return cls(selection.entropy_trace, n_trials=selection.n_trials, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the trace.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        EntropyTraceDisplay
        """
        trials = "" if self.n_trials is None else f" in {self.n_trials:,} trials"
        label = f"{self.name}: {self.trace.size - 1:,} exchanges{trials}"
        line = Line(np.arange(self.trace.size), self.trace, label)
        axes = "exchanges of a prototype", "quadratic Renyi entropy (nats)"
        (self.line_,) = self.draw(Chart("Entropy trace", *axes, [line]), ax)
        self.ax_.set_xlim(left=0, auto=True)  # auto: the next trace may need more room
        self.legend_ = self.ax_.legend(loc="lower right", frameon=False)
        return self


class SupportSpectrumDisplay(Display):
    r"""Support values :math:`|\alpha_k|`, sorted from large to small.

    A least squares model has a decaying spectrum without zeros; pruning cuts its tail off
    [Suykens2002, Figs. 3.1 and 3.8]. Several models are overlaid by giving the axes of the first to
    the others; they differ in colour and dash.

    Parameters
    ----------
    values : array-like of shape (n_sv,)
        Support values; magnitudes are taken and sorted. Zeros for rows that are not support vectors
        may be included.
    name : str, default="model"
        Name of the model in the legend.

    Attributes
    ----------
    values : ndarray of shape (n_sv,)
        Magnitudes from large to small.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib.lines.Line2D
        The spectrum.
    legend_ : matplotlib.legend.Legend
        The legend of all spectra on the axes.

    See Also
    --------
    BoundaryDisplay : Where in the plane the large support values lie.

    Notes
    -----
    Time is O(n_sv log n_sv), memory O(n_sv k) for k outputs. With several outputs the value of a
    row is the Euclidean norm of its k coefficients, which the chapter leaves open.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from lssvm import LSSVR
    >>> from lssvm.plots import SupportSpectrumDisplay
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 2.0, 1.0, 4.0]
    >>> display = SupportSpectrumDisplay.from_estimator(LSSVR(C=10.0).fit(X, y), name="stiff")
    >>> soft = SupportSpectrumDisplay.from_estimator(LSSVR().fit(X, y), name="soft", ax=display.ax_)
    >>> [text.get_text() for text in soft.legend_.get_texts()]
    ['stiff: 4 support vectors', 'soft: 4 support vectors']
    """

    def __init__(self, values: ArrayLike, *, name: str = "model") -> None:
        needed = "one finite number per support vector, shape (n_sv,)"
        magnitudes = np.abs(finite_vector("The array of support values", values, needed))
        self.values: FloatArray = np.sort(magnitudes)[::-1].copy()
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        name: str | None = None,
        relative: bool = False,
    ) -> Self:
        """Draw the spectrum of a fitted estimator.

        Parameters
        ----------
        model : Estimator
            A fitted model with ``support_`` and ``dual_coef_`` (scikit-learn's SVC is one too), or
            a pipeline that ends in one.
        X, y : array-like or None, default=None
            Not needed: the model has its own record. Taken so that all displays are called alike.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw, such as ``ax_`` of another display; None: a new figure.
        name : str or None, default=None
            Name in the legend; None: that of the class.
        relative : bool, default=False
            Divide by the largest value, to compare models with different C.

        Returns
        -------
        SupportSpectrumDisplay
        """
        last = cls.fitted(model)
        display = cls(support_magnitudes(last), name=name or type(last).__name__)
        return display.plot(ax, relative=relative)

    def plot(self, ax: Any = None, *, relative: bool = False) -> Self:
        """Draw the spectrum.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        relative : bool, default=False
            Divide by the largest value, to compare models with different C.

        Returns
        -------
        SupportSpectrumDisplay
        """
        scale = float(self.values[0]) if relative and self.values[0] > 0 else 1.0
        label = f"{self.name}: {np.count_nonzero(self.values)} support vectors"
        line = Line(np.arange(1, self.values.size + 1), self.values / scale, label)
        shown = r"$|\alpha|$ / largest $|\alpha|$" if relative else r"support value $|\alpha|$"
        chart = Chart("Support values", "rank of the support vector", shown, [line])
        (self.line_,) = self.draw(chart, ax)
        self.ax_.set_xlim(left=0, auto=True)  # auto: the next spectrum may need more room
        self.ax_.set_ylim(bottom=0, auto=True)
        self.legend_ = self.ax_.legend(loc="upper right", frameon=False)
        return self


class SparsityDisplay(Display):
    """Error against the number of support vectors, with the choice of one standard error.

    The trade-off of [Mall2014, section V], measured by cross-validation inside the training set.
    Several models are overlaid by giving the axes of the first to the others; they differ in
    colour, dash and marker.

    Parameters
    ----------
    path : SparsityPath
        See `lssvm.FixedSizeLSSVC.sparsity_path`.
    name : str, default="model"
        Name of the model in the legend.

    Attributes
    ----------
    path : SparsityPath
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib.lines.Line2D
        The mean error.
    band_ : matplotlib.collections.PolyCollection
        One standard error to each side.
    chosen_ : matplotlib.lines.Line2D
        The size that was chosen.
    legend_ : matplotlib.legend.Legend

    See Also
    --------
    SupportSpectrumDisplay : The support values of a model.

    Notes
    -----
    Drawing takes O(s) for s sizes; the path costs what `sparsity_path` states, unless the model has
    it already.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from lssvm import FixedSizeLSSVR
    >>> from lssvm.plots import SparsityDisplay
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = FixedSizeLSSVR(20, gamma=1.0, reduction="spfs", cv=5).fit(X, np.sin(X[:, 0]))
    >>> display = SparsityDisplay.from_estimator(model, name="sine")
    >>> display.legend_.get_texts()[0].get_text() == f"sine: {len(model.support_)} of 20 chosen"
    True
    """

    def __init__(self, path: SparsityPath, *, name: str = "model") -> None:
        if not isinstance(path, SparsityPath):
            raise InvalidInputError(
                f"The path is a {type(path).__name__}: give what sparsity_path() returns, one path "
                "at a time where there is one for each output."
            )
        self.path, self.name = path, name

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        output: int | None = None,
        name: str | None = None,
    ) -> Self:
        """Draw the sparsity path of a fitted estimator.

        Parameters
        ----------
        model : Estimator
            A fitted `FixedSizeLSSVC` or `FixedSizeLSSVR`, or a pipeline that ends in one.
        X, y : array-like or None, default=None
            Not needed: the model has its own record. Taken so that all displays are called alike.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw, such as ``ax_`` of another display; None: a new figure.
        output : int or None, default=None
            Which output, where prototypes were dropped for each by itself.
        name : str or None, default=None
            Name in the legend; None: that of the class.

        Returns
        -------
        SparsityDisplay
        """
        last = cls.fitted(model, "sparsity_path")
        path = last.sparsity_path()
        if isinstance(path, list):
            if output is None or not -len(path) <= output < len(path):
                raise InvalidInputError(
                    f"output={output!r}, but the model has a sparsity path for each of its "
                    f"{len(path)} outputs: give a number from 0 to {len(path) - 1}."
                )
            path = path[output]
        return cls(path, name=name or type(last).__name__).plot(ax)

    def chart(self) -> Chart:
        """Return the chart: the legend explains its marks where the model has no name."""
        path = self.path
        low, high = path.mean - path.std_error, path.mean + path.std_error
        labels, chosen = ("", ""), f"{self.name}: {path.chosen} of {path.sizes[-1]} chosen"
        if not self.name:
            labels, chosen = ("mean", "one standard error"), f"{path.chosen} support vectors"
        at = float(path.mean[path.sizes == path.chosen][0])
        marks = [
            Rule(None, path.limit),
            Band(path.sizes, (low, high), labels[1]),
            Line(path.sizes, path.mean, labels[0]),
            Star(float(path.chosen), at, chosen),
        ]
        title = "Cross-validated squared error against the number of support vectors"
        return Chart(title, "support vectors", "cross-validated squared error", marks, x_log=True)

    def plot(self, ax: Any = None) -> Self:
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        SparsityDisplay
        """
        _, self.band_, self.line_, self.chosen_ = self.draw(self.chart(), ax)
        self.legend_ = self.ax_.legend(loc="upper right", frameon=False)
        return self


class RelevanceDisplay(Display):
    r"""Relevance of the features, as bars from large to small.

    A model with ``gamma="ard"`` has a length scale for every feature (eq. (3.69) of
    [Suykens2002]_); the bar of feature l is :math:`\gamma_l \operatorname{var}(x_l)` divided by
    the sum over all features.

    Parameters
    ----------
    shares : array-like of shape (d,)
        Not negative.
    names : array-like of str of shape (d,), optional
        Names of the features; None: x0, x1, ...
    limit : int, default=20
        How many features are drawn at most; the others are added up in one bar.

    Attributes
    ----------
    shares : ndarray of shape (d,)
        In the order of the features.
    order : int ndarray of shape (d,)
        Features from the largest share to the smallest.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    bars_ : matplotlib.container.BarContainer

    Notes
    -----
    Time O(d log d).

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from lssvm.plots import RelevanceDisplay
    >>> display = RelevanceDisplay([0.1, 0.7, 0.2], ["age", "weight", "height"]).plot()
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['weight', 'height', 'age']
    """

    def __init__(
        self, shares: ArrayLike, names: ArrayLike | None = None, *, limit: int = 20
    ) -> None:
        values = np.asarray(shares, dtype=np.float64)
        if values.ndim != 1 or values.size == 0 or not np.all(values >= 0):
            raise InvalidInputError(
                f"The shares have shape {values.shape}: give one number >= 0 per feature, shape "
                "(d,)."
            )
        labels = [f"x{i}" for i in range(values.size)] if names is None else list(np.asarray(names))
        if len(labels) != values.size:
            raise InvalidInputError(
                f"There are {len(labels)} names for {values.size} features: give one for each."
            )
        if limit < 1:
            raise InvalidInputError(f"limit={limit!r} is not usable: draw at least 1 feature.")
        self.shares: FloatArray = values
        self.names, self.limit = [str(label) for label in labels], limit
        self.order = np.argsort(-values, kind="stable")

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        names: ArrayLike | None = None,
        limit: int = 20,
    ) -> Self:
        """Draw the relevance of the features of a fitted estimator.

        Parameters
        ----------
        model : Estimator
            A model fitted with ``gamma="ard"``, or a pipeline that ends in one.
        X : DataFrame or None, default=None
            Names the features, where it has columns and the model has not seen names.
        y : array-like or None, default=None
            Not needed; taken so that all displays are called alike.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        names : array-like of str of shape (d,), optional
            None: the column names that the model has seen, those of X, or x0, x1, ...
        limit : int, default=20
            How many features are drawn at most.

        Returns
        -------
        RelevanceDisplay
        """
        last = cls.fitted(model, "feature_relevance_")
        if names is None:
            names = getattr(last, "feature_names_in_", getattr(X, "columns", None))
        return cls(last.feature_relevance_, names, limit=limit).plot(ax)

    def rows(self) -> list[tuple[str, float]]:
        """Return names and shares from large to small; those beyond the limit are added up."""
        largest, rest = np.split(self.order, [self.limit])
        rows = [(self.names[i], float(self.shares[i])) for i in largest]
        others = [(f"{len(rest)} others", float(self.shares[rest].sum()))]
        return rows + others * bool(len(rest))

    def plot(self, ax: Any = None) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        RelevanceDisplay
        """
        labels, values = zip(*self.rows(), strict=True)
        ax = self.open(ax, (6.0, 0.8 + 0.28 * len(values)))
        places = np.arange(len(values))
        self.bars_ = ax.barh(places, values, height=0.7, color=COLOURS[0])
        if len(self.order) > self.limit:
            self.bars_[-1].set(facecolor="white", edgecolor=COLOURS[0], hatch="//")
        ax.set_yticks(places, labels)
        ax.invert_yaxis()
        ax.set_xlim(left=0.0)
        ax.set_xlabel("relevance (share of the feature in the mean exponent of the kernel)")
        return self


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
        Nominal coverage of the interval, for the legend.

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
        last = cls.fitted(model, "forecast")
        if steps is None:
            known = X if X is not None else y
            if known is None:
                raise InvalidInputError(
                    "How far to forecast? Give steps=, or X or y of the future."
                )
            steps = len(known)  # type: ignore[arg-type]
        past_of_series = {"history": history, "X_history": X_history}
        interval = None
        if coverage is None:
            values = last.forecast(steps, X, **past_of_series)
        else:
            values, interval = last.forecast(steps, X, True, coverage, **past_of_series)
        if np.ndim(values) != 1:
            raise InvalidInputError(
                f"The model was trained on {len(values)} series: give the history of the one that "
                "is to be drawn."
            )
        values, interval = np.asarray(values), None if interval is None else np.asarray(interval)
        return cls(values, interval=interval, truth=y, past=past, coverage=coverage).plot(ax)

    def marks(self) -> dict[str, Mark]:
        """Return what is drawn, by its name; the last value of the past is at step 0."""
        steps = np.arange(1, len(self.forecast) + 1)
        marks: dict[str, Mark] = {}
        joint: FloatArray = np.empty(0)  # the last past value, so that lines have no gap
        if self.past is not None:
            joint, times = self.past[-1:], np.arange(1 - len(self.past), 1)
            marks["past"] = Line(times, self.past, "past", "grey", width=1.6)
            marks["begin"] = Rule(0.5, None)
        if self.truth is not None:
            times = np.arange(1 - len(joint), len(self.truth) + 1)
            line = np.concatenate([joint, self.truth])
            marks["truth"] = Line(times, line, "truth", "text", width=1.6)
        marks["forecast"] = Line(steps, self.forecast, "forecast", "wrong", dashed=True)
        if self.interval is not None:
            nominal = "" if self.coverage is None else f"{100 * self.coverage:g} % "
            marks["interval"] = Band(steps, self.interval.T, f"{nominal}interval", "wrong")
        return marks

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
        marks = self.marks()
        chart = Chart("Forecast", "step", "value", list(marks.values()))
        artists = self.draw(chart, ax, (8.0, 4.0))
        drawn = dict(zip(marks, artists, strict=True))
        self.forecast_line_, self.band_ = drawn["forecast"], drawn.get("interval")
        self.past_line_, self.truth_line_ = drawn.get("past"), drawn.get("truth")
        self.ax_.margins(x=0.01)
        place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 4}
        self.legend_ = self.ax_.legend(frameon=False, **place)
        return self
