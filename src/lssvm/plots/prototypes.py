"""The chosen prototypes among the rows, in the plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.plots.canvas import COLOURS, Display, dot_style
from lssvm.plots.fitted import Estimator, class_positions, require
from lssvm.plots.plane import Plane

ROW = 9.0  # area of a row, in points squared
PROTOTYPE = 42.0
FADED = 0.3  # opacity of the rows
GREY = COLOURS[-1]


@dataclass(kw_only=True, eq=False, repr=False)
class PrototypesDisplay(Display):
    """Rows of a data set in the plane, and the prototypes that a fixed-size model chose.

    Prototypes of high entropy spread over the region where rows are; random ones follow the density
    [DeBrabanter2010, section 4]. With more than two features the plane is that of the first two
    principal components of the rows, as the model sees them (after the other steps of a
    pipeline), or of two features that are named.

    Use :meth:`from_estimator`; the constructor takes what it computes.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
        Rows in the plane.
    prototypes : ndarray of shape (m, 2)
        Prototypes in the plane.
    names : (str, str)
        Names of the axes.
    labels : ndarray of shape (n,) or None, default=None
        Classes of the rows as positions in ``classes``.
    prototype_labels : ndarray of shape (m,) or None, default=None
        Classes of the prototypes, likewise; -1 where a prototype is no row.
    classes : ndarray of shape (n_classes,) or None, default=None
        The names of the classes.
    n_rows : int or None, default=None
        Rows there are, where ``points`` are a part of them.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    points_, prototypes_ : list of matplotlib.collections.PathCollection
        Rows and prototypes, one collection per class.
    legend_ : matplotlib.legend.Legend or None
        The legend, beside the axes.

    See Also
    --------
    EntropyTraceDisplay : How the entropy of the prototypes rose.

    Notes
    -----
    At most ``max_rows`` rows are drawn, chosen at random with a fixed seed; all of them give the
    principal components. Time O(n d^2), memory O(n d).

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from lssvm import FixedSizeLSSVC
    >>> from lssvm.datasets import load_ripley
    >>> from lssvm.plots import PrototypesDisplay
    >>> ripley = load_ripley()
    >>> model = FixedSizeLSSVC(20, C=1.0, gamma=1.0).fit(ripley.data, ripley.target)
    >>> display = PrototypesDisplay.from_estimator(model, ripley.data, ripley.target)
    >>> display.prototypes.shape
    (20, 2)
    """

    points: FloatArray
    prototypes: FloatArray
    names: tuple[str, str]
    labels: NDArray[np.intp] | None = None
    prototype_labels: NDArray[np.intp] | None = None
    classes: NDArray[Any] | None = None
    n_rows: int | None = None

    def __post_init__(self) -> None:
        self.n_rows = len(self.points) if self.n_rows is None else self.n_rows

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        features: tuple[int | str, int | str] | None = None,
        max_rows: int = 3000,
        legend: bool = True,
    ) -> PrototypesDisplay:
        """Draw the prototypes of a fitted fixed-size model.

        Parameters
        ----------
        model : Estimator
            A fitted ``FixedSizeLSSVC`` or ``FixedSizeLSSVR``, or a pipeline that ends in one.
        X : array-like or DataFrame of shape (n, d)
            The rows the model was fitted on.
        y : array-like of shape (n,) or None, default=None
            Their classes, to tell them apart by colour and marker. Not used by a regressor.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        features : (int or str, int or str) or None, default=None
            The two features of the plane, by position or, for a DataFrame, by name. None: both
            features where there are two, otherwise the first two principal components.
        max_rows : int, default=3000
            Rows that are drawn at most.
        legend : bool, default=True
            Whether to put a legend beside the axes.

        Returns
        -------
        PrototypesDisplay

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the model is not fitted.
        InvalidInputError
            If it has no prototypes, or X and y are not its training data.
        """
        last = cls.fitted(model, X=X)
        require(last, ("prototypes_", "support_"), "a picture of the prototypes")
        support = np.asarray(last.support_, dtype=np.intp)
        if support.size == 0:
            raise InvalidInputError(
                f"{type(last).__name__} has a linear kernel in closed form, which needs no "
                "prototypes: fit it with another kernel to have some."
            )
        n = np.shape(X)[0]
        if support.max() >= n:
            raise InvalidInputError(
                f"X has {n} rows, but row {support.max()} is a prototype of "
                f"{type(last).__name__}: give the X it was fitted on."
            )
        points, prototypes, names = _plane(model, last.prototypes_, X, support, features)
        classes = getattr(last, "classes_", None)
        labels = None if y is None or classes is None else class_positions(y, classes, n)
        own = None if labels is None else np.where(support >= 0, labels[support], -1)
        if n > max_rows:
            shown = np.random.default_rng(0).choice(n, max_rows, replace=False)
            points, labels = points[shown], None if labels is None else labels[shown]
        display = cls(
            points=points,
            prototypes=prototypes,
            names=names,
            labels=labels,
            prototype_labels=own,
            classes=classes,
            n_rows=n,
        )
        return display.plot(ax, legend=legend)

    def plot(self, ax: Any = None, *, legend: bool = True) -> PrototypesDisplay:
        """Draw rows and prototypes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        legend : bool, default=True
            Whether to put a legend beside the axes; a figure with ``layout="constrained"`` makes
            room for it.

        Returns
        -------
        PrototypesDisplay
        """
        ax = self.open(ax, (7.2, 4.8), frame=True)
        self.points_, self.prototypes_ = [], []
        faint = {"s": ROW, "linewidths": 0, "alpha": FADED, "zorder": 2}
        ringed = {"s": PROTOTYPE, "edgecolors": "black", "linewidths": 0.9, "zorder": 3}
        for number, label in self._groups():
            rows, chosen = (
                slice(None) if labels is None else labels == number
                for labels in (self.labels, self.prototype_labels)
            )
            style = dot_style(number) if number >= 0 else {"facecolors": "white", "marker": "o"}
            faded = style if self.labels is not None else style | {"facecolors": GREY}
            disks = self.prototypes[chosen].T
            self.points_.append(ax.scatter(*self.points[rows].T, **faint, **faded))
            self.prototypes_.append(ax.scatter(*disks, label=label, **ringed, **style))
        self.name_axes(*self.names)
        title = f"{len(self.prototypes):,} prototypes among\n{self.n_rows:,} rows"
        self.legend_ = self.legend_beside(title=title, alignment="left") if legend else None
        return self

    def _groups(self) -> list[tuple[int, str]]:
        """Return the classes that are drawn, with their names in the legend."""
        if self.labels is None or self.prototype_labels is None or self.classes is None:
            return [(0, "prototype")]
        groups = [(number, str(label)) for number, label in enumerate(self.classes)]
        return [*groups, (-1, "no row")] if (self.prototype_labels < 0).any() else groups


def _plane(
    estimator: Estimator,
    Z: FloatArray,
    X: Any,
    support: NDArray[np.intp],
    features: tuple[int | str, int | str] | None,
) -> tuple[FloatArray, FloatArray, tuple[str, str]]:
    """Return rows and prototypes in the plane, and the names of its axes."""
    before = None
    if isinstance(estimator, Pipeline) and len(estimator.steps) > 1:
        before = estimator[:-1]
    if features is not None or np.shape(X)[1] == 2:
        plane = Plane.of(X, features, 2)
        if (support >= 0).all():
            return plane.points, plane.points[support], plane.names
        if before is not None:
            raise InvalidInputError(
                "Some prototypes are no rows of X, and the steps of the pipeline before the model "
                "cannot be undone: give the model itself and the rows that it sees."
            )
        columns = list(getattr(X, "columns", range(np.shape(X)[1])))
        places = [columns.index(f) for f in features or columns]
        return plane.points, Z[:, places], plane.names
    rows = np.asarray(X if before is None else before.transform(X), dtype=np.float64)
    components = PCA(2).fit(rows)
    x, y = (
        f"principal component {i + 1} ({100 * share:.0f} % of the variance)"
        for i, share in enumerate(components.explained_variance_ratio_)
    )
    return components.transform(rows), components.transform(Z), (x, y)
