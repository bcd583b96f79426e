"""What all pictures share: matplotlib, axes, colours, and what they read from an estimator."""

from __future__ import annotations

import io
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import AnyArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError, library

# Okabe and Ito's colours for readers with any kind of colour vision, the pale yellow left out.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#666666")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "p")
DASHES = ("-", "--", "-.", ":")


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
    """Where a picture was drawn, and how every picture begins and ends.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    legend_ : matplotlib.legend.Legend or None
    """

    ax_: Any
    figure_: Any
    legend_: Any = None

    @classmethod
    def fitted(cls, model: Estimator, **given: Any) -> Any:
        """Return the fitted model, or raise where it, matplotlib or the data are missing.

        Parameters
        ----------
        model : estimator
            Fitted, or a pipeline that ends in a fitted one.
        **given : object
            What has to be there, by its name; None is missing.
        """
        pyplot(f"{cls.__name__}.from_estimator")
        missing = [name for name, value in given.items() if value is None]
        if missing:
            raise InvalidInputError(
                f"{cls.__name__}.from_estimator needs {' and '.join(given)}, the data of the fit: "
                f"{' and '.join(missing)} did not come."
            )
        return fitted_model(model)

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

    def svg(self, dark: bool = False) -> str:
        """Return the picture as SVG without a background, for a light or a dark page.

        Parameters
        ----------
        dark : bool, default=False
            Whether lines and words are light.
        """
        plt = pyplot(f"{type(self).__name__}.svg")
        ink = "#e6eaf0" if dark else "#1b2430"
        inked = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
        style = {**dict.fromkeys(inked, ink), "svg.fonttype": "none", "svg.hashsalt": "lssvm"}
        file = io.StringIO()
        with plt.rc_context(style):
            plot: Any = self.plot  # type: ignore[attr-defined]
            plot()
            self.figure_.savefig(file, format="svg", transparent=True, metadata={"Date": None})
            plt.close(self.figure_)
        return file.getvalue()

    def name_axes(self, x: str, y: str) -> None:
        """Name the axes.

        Parameters
        ----------
        x, y : str
            Their names.
        """
        self.ax_.set(xlabel=x, ylabel=y)

    def star(self, x: float, y: float, label: str, colour: str) -> Any:
        """Mark the chosen place.

        Parameters
        ----------
        x, y : float
            Where it is.
        label : str
            Its name in the legend.
        colour : str
            As matplotlib takes it.
        """
        style = {"linestyle": "none", "marker": "*", "markersize": 17, "markeredgecolor": "white"}
        return self.ax_.plot(x, y, color=colour, label=label, zorder=5, **style)[0]

    def one_more_line(self, x: Any, y: Any, label: str) -> Any:
        """Draw a line in a style that the lines on the axes have not.

        Parameters
        ----------
        x, y : arrays of shape (n,)
            Places; a single one gets a marker.
        label : str
            Its name in the legend.
        """
        style = {"marker": "o" if len(x) == 1 else "", **line_style(len(self.ax_.lines))}
        return self.ax_.plot(x, y, linewidth=1.8, label=label, **style)[0]

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


def line_style(i: int) -> dict[str, Any]:
    """Return colour and dash of the i-th of several lines on the same axes."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i % len(DASHES)]}


def dot_style(i: int) -> dict[str, Any]:
    """Return colour and marker of the i-th class."""
    return {"facecolors": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}


class Estimator(Protocol):
    """A model of lssvm or scikit-learn, or a pipeline that ends in one."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters."""


class SupportModel(Protocol):
    """A fitted model with support vectors."""

    support_: Any
    dual_coef_: Any


class Predictor(Estimator, Protocol):
    """A fitted model that predicts."""

    def predict(self, X: Any) -> Any:
        """Return the predictions of rows."""


class Probabilistic(Protocol):
    """A classifier with probabilities."""

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes."""


def has_probabilities(model: object) -> TypeGuard[Probabilistic]:
    """Say whether a model has probabilities, which depends on its parameters."""
    return hasattr(model, "predict_proba")


@runtime_checkable
class WithScores(Protocol):
    """A classifier with decision values."""

    def decision_function(self, X: Any) -> Any:
        """Return the decision values of rows."""


@runtime_checkable
class WithIntervals(Protocol):
    """A regressor with prediction intervals."""

    def predict_interval(self, X: Any, coverage: float = ...) -> Any:
        """Return the ends of intervals."""


@runtime_checkable
class WithExplanations(Protocol):
    """A model that explains its predictions."""

    def explain(self, X: Any, background: Any = None, **options: Any) -> Any:
        """Return what every column adds to the predictions."""


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


def behind_steps(estimator: Estimator, X: Any) -> Any:
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


def support_magnitudes(model: SupportModel) -> FloatArray:
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


def finite_vector(what: str, values: ArrayLike, needed: str) -> FloatArray:
    """Return numbers as a vector, or raise an error that says what is needed.

    Parameters
    ----------
    what : str
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
            f"{what} has shape {vector.shape} and {np.count_nonzero(~np.isfinite(vector))} values "
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
