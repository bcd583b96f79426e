"""What all displays share: drawing a chart with matplotlib, and reading a fitted estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import AnyArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError, library
from lssvm.plots.charts import SHAPES, Band, Chart, Line, Mark, Points, Rule, Star, Whiskers, Words

# Okabe and Ito's colours for readers with any kind of colour vision, without the pale yellow.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#666666")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
DASHES = ("-", "--", "-.", ":")
STEPS = {"q0": "#3b2f8f", "q1": "#2a6fa8", "q2": "#178f86", "q3": "#5aa02c", "q4": "#bf7c00"}


def pyplot(caller: str) -> Any:
    """Return ``matplotlib.pyplot``; raise an error that names the extra where it is missing.

    Parameters
    ----------
    caller : str
        What needs it, for the message.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from lssvm.plots.base import pyplot
    >>> pyplot("this example").__name__
    'matplotlib.pyplot'
    """
    return library("matplotlib.pyplot", f"{caller} needs matplotlib", "[plots]")


class Display:
    """Where a chart was drawn, and how every chart is drawn with matplotlib.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    legend_ : matplotlib.legend.Legend or None
    """

    ax_: Any
    figure_: Any
    legend_: Any = None

    @classmethod
    def fitted(cls, model: Estimator, *attributes: str, **data: Any) -> Any:
        """Return the fitted model, or raise where it, matplotlib or the data are missing.

        Parameters
        ----------
        model : estimator
            Fitted, or a pipeline that ends in a fitted one.
        *attributes : str
            What the model has to have.
        **data : object
            The data that are needed, by their names; None is missing.
        """
        pyplot(f"{cls.__name__}.from_estimator")
        missing = [name for name, value in data.items() if value is None]
        if missing:
            raise InvalidInputError(
                f"{cls.__name__}.from_estimator needs {' and '.join(data)}, the data of the fit: "
                f"{' and '.join(missing)} did not come."
            )
        last = fitted_model(model)
        require(last, attributes, cls.__name__)
        return last

    def open(self, ax: Any, figsize: tuple[float, float], frame: bool = False) -> Any:
        """Return the axes to draw on, without the upper and the right line unless ``frame``.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None
            Where to draw; None: a new figure.
        figsize : (float, float)
            Inches of a new figure.
        frame : bool, default=False
            Whether all four lines around the axes are drawn.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        self.ax_ = plt.subplots(figsize=figsize, layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        if not frame:
            self.ax_.spines[["top", "right"]].set_visible(False)
        return self.ax_

    def draw(
        self, chart: Chart, ax: Any, figsize: tuple[float, float] = (6.0, 4.0), frame: bool = False
    ) -> list[Any]:
        """Draw a chart, and return the artists of its marks.

        A chart on axes that have one already is drawn in the next colour, dash and marker.

        Parameters
        ----------
        chart : Chart
            Without a heat map.
        ax, figsize, frame
            As `open` takes them.
        """
        ax = self.open(ax, figsize, frame)
        first = len(ax.get_legend_handles_labels()[1])
        artists = [_artist(ax, mark, first) for mark in chart.marks]
        if chart.x_log:
            ax.set_xscale("log")
        for set_ticks, ticks in ((ax.set_xticks, chart.x_ticks), (ax.set_yticks, chart.y_ticks)):
            if ticks is not None:
                set_ticks(*zip(*ticks, strict=True))
        ax.set(xlabel=chart.x_label, ylabel=chart.y_label)
        return artists

    def legend_beside(self, **options: Any) -> Any:
        """Return a legend to the right of the axes.

        Parameters
        ----------
        **options : object
            As ``Axes.legend`` takes them.
        """
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
        return self.ax_.legend(frameon=False, **place, **options)

    def legend_above(self, **options: Any) -> Any:
        """Return a legend above the axes, in three columns.

        Parameters
        ----------
        **options : object
            As ``Axes.legend`` takes them.
        """
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
        return self.ax_.legend(ncols=3, frameon=False, fontsize="small", **place, **options)


def _artist(ax: Any, mark: Mark, first: int) -> Any:
    """Draw a mark; ``first`` is the number of the first series of its chart."""
    number = first + mark.colour if isinstance(mark.colour, int) else first
    roles = {"text": "black", "wrong": COLOURS[1], "paper": "white", "grey": COLOURS[-1]} | STEPS
    colour = roles.get(str(mark.colour), COLOURS[number % len(COLOURS)])
    style: dict[str, Any] = {"color": colour, "alpha": mark.opacity, "label": mark.label or None}
    match mark:
        case Line():
            dash = "--" if mark.dashed else DASHES[number % len(DASHES)]
            width = 0.8 * mark.width
            style |= {"marker": "o" if np.size(mark.x) == 1 else "", "linewidth": width}
            if mark.outlined:
                from matplotlib.patheffects import withStroke

                style["path_effects"] = [withStroke(linewidth=width + 1.6, foreground="white")]
            return ax.plot(mark.x, mark.y, linestyle=dash, zorder=3, **style)[0]
        case Points():
            edge = {"markeredgecolor": "black"} if mark.outlined else {"markeredgewidth": 0.0}
            sign = MARKERS[SHAPES.index(mark.shape) if mark.shape else number % len(MARKERS)]
            style |= {"marker": sign, "markersize": 1.05 * mark.size, "linestyle": "none"}
            return ax.plot(mark.x, mark.y, zorder=2 + mark.outlined, **style, **edge)[0]
        case Band():
            return ax.fill_between(mark.x, *mark.y, linewidth=0, zorder=0, **style)
        case Whiskers():
            return ax.vlines(mark.x, *mark.y, linewidth=mark.width, **style)
        case Rule():
            place = {"ls": ":", "lw": 1.4, "color": "black", "label": mark.label or None}
            return ax.axvline(mark.x, **place) if mark.y is None else ax.axhline(mark.y, **place)
        case Star():
            style |= {"linestyle": "none", "markeredgecolor": "white", "zorder": 5}
            style |= {"marker": MARKERS[first % len(MARKERS)] if first else "*"}
            return ax.plot(mark.x, mark.y, markersize=9 if first else 17, **style)[0]
        case Words():
            places = zip(mark.x, mark.y, mark.texts, strict=True)
            return [ax.text(*place) for place in places]
    return None


def line_style(i: int) -> dict[str, Any]:
    """Return colour and dash of the i-th of several lines on the same axes."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i % len(DASHES)]}


def dot_style(i: int) -> dict[str, Any]:
    """Return colour and marker of the i-th class."""
    return {"facecolors": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}


@contextmanager
def nameless_rows() -> Iterator[None]:
    """Take rows without the names of their columns, and do not warn."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        yield


class Estimator(Protocol):
    """A fitted model of lssvm or scikit-learn, or a pipeline that ends in one."""

    def predict(self, X: Any) -> Any:
        """Return the predictions of rows."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters."""

    def __getattr__(self, name: str) -> Any:
        """Return a method or a fitted attribute of a model of its kind."""


def has_method(model: object, name: str) -> bool:
    """Say whether a model has a method, which may depend on its parameters."""
    return hasattr(model, name)


def fitted_model(estimator: Estimator) -> Any:
    """Return the fitted model: the estimator itself, or the last step of a pipeline.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> from lssvm.plots.base import fitted_model
    >>> pipeline = make_pipeline(StandardScaler(), SVC()).fit([[0.0], [1.0]], [0, 1])
    >>> fitted_model(pipeline)
    SVC()
    """
    model = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    check_is_fitted(model)
    return model


def fitted_attributes(model: object) -> dict[str, Any]:
    """Return what a fit has set: the attributes that end in an underscore, by their names.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from lssvm.plots.base import fitted_attributes
    >>> fitted_attributes(SVC().fit([[0.0], [1.0]], [0, 1]))["classes_"].tolist()
    [0, 1]
    """
    return {k: v for k, v in vars(model).items() if k.endswith("_") and not k.startswith("_")}


def transformed(estimator: Estimator, X: Any) -> Any:
    """Return rows as the model at the end of an estimator takes them, behind its other steps."""
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        return estimator[:-1].transform(X)
    return X


def require(model: object, names: tuple[str, ...], purpose: str) -> None:
    """Raise an error that names the attributes a model lacks for a purpose.

    Examples
    --------
    >>> from lssvm.plots.base import require
    >>> require("a text", ("lower", "upper"), "this example")
    """
    missing = [name for name in names if not hasattr(model, name)]
    if missing:
        raise InvalidInputError(
            f"{type(model).__name__} has no {' and no '.join(missing)}, which {purpose} needs: "
            f"give an estimator of lssvm, or another one with {', '.join(names)}."
        )


def support_magnitudes(model: Estimator) -> FloatArray:
    r"""Return the magnitude of the coefficient of every support vector.

    Parameters
    ----------
    model : object
        Fitted, with ``support_`` of shape (n_sv,) and ``dual_coef_`` of shape (n_sv, k) or (n_sv,);
        scikit-learn's (k, n_sv) is understood as well.

    Returns
    -------
    ndarray of shape (n_sv,)
        :math:`|\alpha_i|` for one output, :math:`(\sum_l \alpha_{il}^2)^{1/2}` for several.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from lssvm.plots.base import support_magnitudes
    >>> support_magnitudes(SimpleNamespace(support_=[4, 7], dual_coef_=[[3.0, -4.0], [1.0, 0.0]]))
    array([5., 1.])
    """
    require(model, ("support_", "dual_coef_"), "a picture of the support values")
    n_sv = len(np.asarray(model.support_))
    dual_coef = np.asarray(model.dual_coef_, dtype=np.float64)
    coefficients = dual_coef[:, None] if dual_coef.ndim == 1 else dual_coef
    if coefficients.shape[0] != n_sv:
        coefficients = coefficients.T
    if n_sv == 0 or coefficients.ndim != 2 or coefficients.shape[0] != n_sv:
        raise InvalidInputError(
            f"{type(model).__name__} has dual_coef_ of shape {dual_coef.shape} for {n_sv} support "
            "vectors: a picture needs at least one, and one row of dual_coef_ for each."
        )
    return np.asarray(np.linalg.norm(coefficients, axis=1))


def finite_vector(name: str, values: ArrayLike, needed: str) -> FloatArray:
    """Return numbers as a vector, or raise an error that names what is needed.

    Parameters
    ----------
    name : str
        What they are, for the message.
    values : array-like of shape (n,)
    needed : str
        What to give instead, for the message.

    Examples
    --------
    >>> from lssvm.plots.base import finite_vector
    >>> finite_vector("the trace", [1, 2], "numbers")
    array([1., 2.])
    """
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        raise InvalidInputError(
            f"{name} has shape {vector.shape} and {np.count_nonzero(~np.isfinite(vector))} values "
            f"that are not finite: give {needed}."
        )
    return vector


def class_scores(decision: ArrayLike) -> FloatArray:
    """Return decision values with a column for every class: -f and f where there are two.

    Examples
    --------
    >>> from lssvm.plots.base import class_scores
    >>> class_scores([1.0, 2.0])
    array([[-1.,  1.],
           [-2.,  2.]])
    """
    f = np.asarray(decision, dtype=np.float64)
    return np.column_stack([-f.ravel(), f.ravel()]) if f.ndim == 1 or f.shape[1] == 1 else f


def class_positions(y: ArrayLike, classes: AnyArray, n: int) -> IntArray:
    """Return the classes of the rows as positions in ``classes``.

    Parameters
    ----------
    y : array-like of shape (n,)
        Classes of the rows.
    classes : ndarray of shape (n_classes,)
        All classes, sorted.
    n : int
        Number of rows.

    Returns
    -------
    ndarray of int, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.plots.base import class_positions
    >>> class_positions(["b", "a"], np.array(["a", "b"]), 2).tolist()
    [1, 0]
    """
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise InvalidInputError(
            f"y has shape {labels.shape}, but X has {n} rows: give one class for each row."
        )
    unknown = np.setdiff1d(labels, classes)
    if unknown.size:
        raise InvalidInputError(
            f"y has classes {unknown.tolist()} that the estimator does not know: it was fitted on "
            f"{classes.tolist()}; give the X and y it was fitted on."
        )
    return np.searchsorted(classes, labels)
