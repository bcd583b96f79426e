"""Pictures of what a fit is made of: prototypes, support values and features."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.plots.base import (
    COLOURS,
    MARKERS,
    Display,
    Estimator,
    finite_vector,
    line_style,
    require,
    support_magnitudes,
)
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
        last = cls.fitted(model)
        require(last, ("selection_",), "an entropy trace")
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
        ax = self.open(ax, (6.0, 4.0))
        swaps = self.trace.size - 1
        trials = "" if self.n_trials is None else f" in {self.n_trials:,} trials"
        label = f"{self.name}: {swaps:,} exchanges{trials}"
        self.line_ = self.one_more_line(np.arange(self.trace.size), self.trace, label)
        self.name_axes("exchanges of a prototype", "quadratic Renyi entropy (nats)")
        ax.set_xlim(left=0, auto=True)  # auto: the next trace may need more room
        self.legend_ = ax.legend(loc="lower right", frameon=False)
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
        ax = self.open(ax, (6.0, 4.0))
        scale = float(self.values[0]) if relative and self.values[0] > 0 else 1.0
        ranks, label = np.arange(1, self.values.size + 1), f"{self.name}: "
        label += f"{np.count_nonzero(self.values)} support vectors"
        self.line_ = self.one_more_line(ranks, self.values / scale, label)
        shown = r"$|\alpha|$ / largest $|\alpha|$" if relative else r"support value $|\alpha|$"
        self.name_axes("rank of the support vector", shown)
        ax.set_xlim(left=0, auto=True)  # auto: the next spectrum may need more room
        ax.set_ylim(bottom=0, auto=True)
        self.legend_ = ax.legend(loc="upper right", frameon=False)
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
        last = cls.fitted(model)
        require(last, ("sparsity_path",), "a picture of the sparsity")
        path = last.sparsity_path()
        if isinstance(path, list):
            if output is None or not -len(path) <= output < len(path):
                raise InvalidInputError(
                    f"output={output!r}, but the model has a sparsity path for each of its "
                    f"{len(path)} outputs: give a number from 0 to {len(path) - 1}."
                )
            path = path[output]
        return cls(path, name=name or type(last).__name__).plot(ax)

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
        ax = self.open(ax, (6.0, 4.0))
        drawn = len(ax.collections)  # paths that are there already
        path, style = self.path, line_style(drawn)
        colour = style["color"]
        (self.line_,) = ax.plot(path.sizes, path.mean, linewidth=1.8, **style)
        ends = path.mean - path.std_error, path.mean + path.std_error
        self.band_ = ax.fill_between(path.sizes, *ends, color=colour, alpha=0.18, linewidth=0)
        mark = {"marker": MARKERS[drawn % len(MARKERS)], "markersize": 9, "linestyle": "none"}
        (self.chosen_,) = ax.plot(
            [path.chosen],
            path.mean[path.sizes == path.chosen],
            color=colour,
            markeredgecolor="black",
            label=f"{self.name}: {path.chosen} of {path.sizes[-1]} chosen",
            **mark,
        )
        ax.set_xscale("log")
        self.name_axes("support vectors", "cross-validated squared error")
        self.legend_ = ax.legend(loc="upper right", frameon=False)
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
        last = cls.fitted(model)
        require(last, ("feature_relevance_",), "a picture of the relevance of features")
        if names is None:
            names = getattr(last, "feature_names_in_", getattr(X, "columns", None))
        return cls(last.feature_relevance_, names, limit=limit).plot(ax)

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
        shown, rest = np.split(self.order, [self.limit])
        values, labels = self.shares[shown].tolist(), [self.names[i] for i in shown]
        if len(rest):
            values.append(float(self.shares[rest].sum()))
            labels.append(f"{len(rest)} others")
        ax = self.open(ax, (6.0, 0.8 + 0.28 * len(values)))
        places = np.arange(len(values))
        self.bars_ = ax.barh(places, values, height=0.7, color=COLOURS[0])
        if len(rest):
            self.bars_[-1].set(facecolor="white", edgecolor=COLOURS[0], hatch="//")
        ax.set_yticks(places, labels)
        ax.invert_yaxis()
        ax.set_xlim(left=0.0)
        ax.set_xlabel("relevance (share of the feature in the mean exponent of the kernel)")
        return self
