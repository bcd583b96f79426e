"""Displays over one or two features: decision regions, prototypes, partial dependence."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats.mstats import mquantiles
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline

from lssvm._core.arrays import AnyArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.data.raw import TextColumn
from lssvm.plots.base import (
    COLOURS,
    Display,
    Estimator,
    class_positions,
    class_scores,
    dot_style,
    fitted_attributes,
    fitted_model,
    has_method,
    nameless_rows,
    support_magnitudes,
)
from lssvm.plots.charts import Band, Chart, Colour, Line, Mark, Points, Whiskers, Words
from lssvm.plots.rows import SampledRows, as_numbers, classifies, slow_to_calibrate

Features: TypeAlias = tuple[int | str, int | str] | None
"""Two features by their positions or names; None: there are no others."""

PADDING = 0.06  # of the range of the rows, on every side


@dataclass(frozen=True)
class Plane:
    """A grid over two features of a data set; the other features are held at their means.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
        The rows of the data set in the plane.
    names : (str, str)
        Names of the two features.
    grid : (ndarray of shape (r, r), ndarray of shape (r, r))
        Coordinates of the grid.
    rows : ndarray or DataFrame of shape (r^2, d)
        The grid as rows of the data set, in the container the data came in.

    Examples
    --------
    >>> from lssvm.plots.plane import Plane
    >>> plane = Plane.of([[0.0, 5.0, 1.0], [1.0, 7.0, 2.0]], (2, 0), 3)
    >>> plane.names, plane.rows[0]
    (('feature 2', 'feature 0'), array([-0.06,  6.  ,  0.94]))
    """

    points: FloatArray
    names: tuple[str, str]
    grid: tuple[FloatArray, FloatArray]
    rows: Any

    @classmethod
    def of(cls, X: Any, features: Features, resolution: int) -> Plane:
        """Lay a grid of ``resolution`` points in each direction over two features of X."""
        if resolution < 2:
            raise InvalidInputError(f"grid_resolution={resolution!r}: give a whole number >= 2.")
        columns = list(getattr(X, "columns", ()))
        data = _numbers(X)
        first, second = _two_features(features, columns, data.shape[1])
        points = data[:, [first, second]]
        low, high = points.min(axis=0), points.max(axis=0)
        padding = PADDING * np.where(high > low, high - low, 1.0)
        ends = np.linspace(low - padding, high + padding, resolution)  # (r, 2)
        xx, yy = np.meshgrid(ends[:, 0], ends[:, 1])
        rows = np.tile(data.mean(axis=0), (resolution**2, 1))
        rows[:, first], rows[:, second] = xx.ravel(), yy.ravel()
        x, y = (str(columns[i]) if columns else f"feature {i}" for i in (first, second))
        # an estimator fitted on named columns wants to see them again
        table = type(X)(dict(zip(columns, rows.T, strict=True))) if columns else rows
        return cls(points, (x, y), (xx, yy), table)


def _numbers(X: Any) -> FloatArray:
    try:
        data = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            "X has entries that are not numbers, and a plane needs two numerical features: encode "
            "X first and fit the model on the encoded columns."
        ) from error
    if data.ndim != 2 or len(data) == 0 or not np.isfinite(data).all():
        raise InvalidInputError(
            f"X has shape {data.shape} and {np.count_nonzero(~np.isfinite(data))} entries that "
            "are not finite: give the (n, d) training data, n >= 1, without missing values."
        )
    return data


def _two_features(features: Features, columns: list[Any], d: int) -> tuple[int, int]:
    """Return the positions of the two features."""
    if d < 2:
        raise InvalidInputError(f"X has {d} feature and a plane needs two: add a feature.")
    if features is None and d > 2:
        raise InvalidInputError(
            f"X has {d} features and a plane shows two: name them with features=(i, j); the other "
            "ones are then held at their means."
        )
    features = (0, 1) if features is None else features
    if isinstance(features, str) or len(features) != 2:
        raise InvalidInputError(f"features={features!r}: give a pair (i, j), as a tuple.")
    positions = [columns.index(name) if name in columns else name for name in features]
    if any(isinstance(i, bool) or i not in range(d) for i in positions):
        known = f"a name from {columns} or " if columns else ""
        raise InvalidInputError(
            f"features={features!r} is not in X: give {known}a position from 0 to {d - 1} for each."
        )
    first, second = (int(i) for i in positions)
    if first == second:
        raise InvalidInputError(f"features={features!r} names one feature twice: give two.")
    return first, second


REGION = 0.18  # opacity of the regions, light enough for print
POINT = 9.0  # area of a training row without a support value, in points squared
ALPHA = 0.65  # opacity of the rows
TARGET_LINE: dict[str, Any] = {"linewidth": 0.8, "linestyle": "dashed"}
HOLLOW: dict[str, Any] = {"facecolors": "none", "edgecolors": "black"}


@dataclass(kw_only=True, eq=False, repr=False)
class BoundaryDisplay(Display):
    r"""Decision regions of a classifier over two features, with the training rows.

    The area of a disk is proportional to the support value :math:`|\alpha_k|` of its row
    [Suykens2002, Figs. 3.3 and 3.11]; rows that are not support vectors are small dots. A solid
    line parts the regions. For two classes, dashed lines show where f(x) is -1 and +1: a row there
    has no error, so the large disks lie away from them, on either side.

    Use :meth:`from_estimator`; the constructor takes what it computes.

    Parameters
    ----------
    grid : (ndarray of shape (r, r), ndarray of shape (r, r))
        Coordinates of the grid, as ``numpy.meshgrid`` gives them.
    scores : ndarray of shape (r, r, n_classes)
        Class scores on the grid; the largest one is the prediction.
    points : ndarray of shape (n, 2)
        The training rows in the plane.
    labels : ndarray of shape (n,)
        Their classes as positions in ``classes``.
    classes : ndarray of shape (n_classes,)
        The names of the classes.
    support : ndarray of shape (n_sv,)
        Which rows are support vectors.
    magnitudes : ndarray of shape (n_sv,)
        Their support values.
    names : (str, str)
        Names of the two features.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    regions_ : list of matplotlib.contour.ContourSet
        One filled region per class.
    boundaries_ : list of matplotlib.contour.ContourSet
        The lines that part them.
    points_ : list of matplotlib.collections.PathCollection
        The training rows, one collection per class.
    support_points_ : list of matplotlib.collections.PathCollection
        The support vectors, one collection per class.
    legend_ : matplotlib.legend.Legend or None
        The legend, next to the axes.

    See Also
    --------
    SupportSpectrumDisplay : The same support values, sorted.

    Notes
    -----
    With r = ``grid_resolution``, time is that of r^2 predictions and memory O(r^2 n_classes). With
    several outputs, the support value of a row is the Euclidean norm of its coefficients.

    The chapter draws the boundary and the disks in two panels; here one shows both.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from lssvm import LSSVC
    >>> from lssvm.plots import BoundaryDisplay
    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [0.0, 3.0], [4.0, 1.0]], ["a", "a", "b", "b"]
    >>> display = BoundaryDisplay.from_estimator(LSSVC().fit(X, y), X, y)
    >>> [text.get_text() for text in display.legend_.get_texts()[:2]]
    ['a', 'b']
    """

    grid: tuple[FloatArray, FloatArray]
    scores: FloatArray
    points: FloatArray
    labels: IntArray
    classes: AnyArray
    support: IntArray
    magnitudes: FloatArray
    names: tuple[str, str]

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        ax: Any = None,
        features: Features = None,
        grid_resolution: int = 200,
        max_size: float = 150.0,
        legend: bool = True,
    ) -> Self:
        """Draw the decision regions of a fitted classifier.

        Parameters
        ----------
        model : Estimator
            A fitted classifier with ``decision_function``, ``classes_``, ``support_`` and
            ``dual_coef_`` (scikit-learn's SVC is one too), or a pipeline that ends in one.
        X : array-like or DataFrame of shape (n, d)
            The rows the model was fitted on.
        y : array-like of shape (n,)
            Their classes.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        features : (int or str, int or str) or None, default=None
            The two features of the plane, by position or, for a DataFrame, by name. The other ones
            are held at their means over X, so the regions are those of one slice, while the rows
            are shown wherever they are in the other features. May be None only where d is 2.
        grid_resolution : int, default=200
            Number of grid points in each direction.
        max_size : float, default=150.0
            Area of the largest disk, in points squared.
        legend : bool, default=True
            Whether to draw a legend next to the axes; a figure with ``layout="constrained"`` makes
            room for it.

        Returns
        -------
        BoundaryDisplay

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the model is not fitted.
        InvalidInputError
            If it is not a classifier with support values, or X and y are not its training data.
        """
        last = cls.fitted(model, "decision_function", "classes_", X=X, y=y)
        if isinstance(kernel := getattr(last, "kernel", None), str) and kernel == "precomputed":
            raise InvalidInputError(
                f"{type(last).__name__} has a precomputed kernel, whose value at the points of a "
                "grid is not known: fit it with a kernel that is a function of the features."
            )
        magnitudes = support_magnitudes(last)
        plane = Plane.of(X, features, grid_resolution)
        support = np.asarray(last.support_, dtype=np.intp)
        if support.max() >= len(plane.points):
            raise InvalidInputError(
                f"X has {len(plane.points)} rows, but row {support.max()} is a support vector of "
                f"{type(last).__name__}: give the X and y it was fitted on."
            )
        classes, decide = np.asarray(last.classes_), model.decision_function
        display = cls(
            grid=plane.grid,
            scores=class_scores(decide(plane.rows)).reshape(*plane.grid[0].shape, -1),
            points=plane.points,
            labels=class_positions(np.asarray(y), classes, len(plane.points)),
            classes=classes,
            support=support,
            magnitudes=magnitudes,
            names=plane.names,
        )
        return display.plot(ax, max_size=max_size, legend=legend)

    def plot(self, ax: Any = None, *, max_size: float = 150.0, legend: bool = True) -> Self:
        """Draw regions, rows and support values.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        max_size : float, default=150.0
            Area of the largest disk, in points squared.
        legend : bool, default=True
            Whether to draw a legend next to the axes; a figure with ``layout="constrained"`` makes
            room for it.

        Returns
        -------
        BoundaryDisplay
        """
        self.open(ax, (7.2, 4.8), frame=True)
        self._draw_regions()
        largest = float(self.magnitudes.max())
        area_per_value = max_size / largest if largest > 0 else 0.0
        self._draw_rows(area_per_value)
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        self.legend_ = self._draw_legend(area_per_value) if legend else None
        return self

    def _draw_regions(self) -> None:
        ax, (x, y) = self.ax_, self.grid
        self.regions_, self.boundaries_ = [], []
        order = np.sort(self.scores, axis=2)
        for c in range(len(self.classes)):
            scores = self.scores[:, :, c]
            # distance to the best of the other classes: positive where c is the prediction
            lead = scores - np.where(scores == order[:, :, -1], order[:, :, -2], order[:, :, -1])
            if not (lead > 0).any():
                continue
            colours = [COLOURS[c % len(COLOURS)]]
            region = ax.contourf(x, y, lead, [0.0, np.inf], colors=colours, alpha=REGION)
            self.regions_.append(region)
            if (lead < 0).any():
                edge = ax.contour(x, y, lead, [0.0], colors="black", linewidths=1.4)
                self.boundaries_.append(edge)
        if len(self.classes) == 2:
            f = self.scores[:, :, 1]
            inside = [level for level in (-1.0, 1.0) if f.min() < level < f.max()]
            if inside:
                style = {f"{key}s": value for key, value in TARGET_LINE.items()}
                ax.contour(x, y, f, inside, colors="black", **style)

    def _draw_rows(self, area_per_value: float) -> None:
        self.points_, self.support_points_ = [], []
        plain = ~np.isin(np.arange(len(self.points)), self.support)
        rim = {"edgecolors": "black", "linewidths": 0.4}
        for c in range(len(self.classes)):
            style = {**dot_style(c), "alpha": ALPHA}
            rows = plain & (self.labels == c)
            dots = self.ax_.scatter(*self.points[rows].T, s=POINT, linewidths=0, zorder=2, **style)
            chosen = self.labels[self.support] == c
            places, areas = self.points[self.support[chosen]].T, self.magnitudes[chosen]
            disks = self.ax_.scatter(*places, s=area_per_value * areas, zorder=3, **rim, **style)
            self.points_.append(dots)
            self.support_points_.append(disks)

    def _draw_legend(self, area_per_value: float) -> Any:
        from matplotlib.lines import Line2D
        from matplotlib.ticker import MaxNLocator

        def dot(area: float, label: str, **style: Any) -> Any:
            return self.ax_.scatter([], [], s=area, label=label, linewidths=0.4, **style)

        handles = [
            dot(45.0, str(label), edgecolors="black", alpha=ALPHA, **dot_style(c))
            for c, label in enumerate(self.classes)
        ]
        handles.append(Line2D([], [], color="black", linewidth=1.4, label="boundary"))
        if len(self.classes) == 2:
            handles.append(Line2D([], [], color="black", label=r"$f(x) = \pm 1$", **TARGET_LINE))
        largest = float(self.magnitudes.max())
        handles += [
            dot(area_per_value * value, rf"$|\alpha| = {value:g}$", **HOLLOW)
            for value in MaxNLocator(3).tick_values(0.0, largest)
            if 0 < value <= largest
        ]
        return self.legend_beside(handles=handles)


MANY = 8  # classes from which on their names are written into the chart


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
        Classes of the prototypes, likewise; -1 where a prototype is not a row.
    classes : ndarray of shape (n_classes,) or None, default=None
        The names of the classes.
    n_rows : int or None, default=None
        Number of all rows, where ``points`` are a part of them.
    ordered : bool, default=False
        Whether the classes are ranges of a number, from low to high.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    points_, prototypes_ : list of matplotlib.lines.Line2D
        Markers of rows and prototypes, one line per class.
    legend_ : matplotlib.legend.Legend or None
        The legend, next to the axes.

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
    labels: IntArray | None = None
    prototype_labels: IntArray | None = None
    classes: AnyArray | None = None
    n_rows: int | None = None
    ordered: bool = False

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
        features: Features = None,
        max_rows: int = 3000,
        legend: bool = True,
    ) -> Self:
        """Draw the prototypes of a fitted fixed-size model.

        Parameters
        ----------
        model : Estimator
            A fitted ``FixedSizeLSSVC`` or ``FixedSizeLSSVR``, or a pipeline that ends in one.
        X : array-like or DataFrame of shape (n, d)
            The rows the model was fitted on.
        y : array-like of shape (n,) or None, default=None
            Their classes, shown by colour and marker. Not used by a regressor.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        features : (int or str, int or str) or None, default=None
            The two features of the plane, by position or, for a DataFrame, by name. None: both
            features where there are two, otherwise the first two principal components.
        max_rows : int, default=3000
            Rows that are drawn at most.
        legend : bool, default=True
            Whether to draw a legend next to the axes.

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
        last = cls.fitted(model, "prototypes_", "support_", X=X)
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
        chosen = None if labels is None else np.where(support >= 0, labels[support], -1)
        if n > max_rows:
            shown = np.random.default_rng(0).choice(n, max_rows, replace=False)
            points, labels = points[shown], None if labels is None else labels[shown]
        display = cls(
            points=points,
            prototypes=prototypes,
            names=names,
            labels=labels,
            prototype_labels=chosen,
            classes=classes,
            n_rows=n,
        )
        return display.plot(ax, legend=legend)

    def plot(self, ax: Any = None, *, legend: bool = True) -> Self:
        """Draw rows and prototypes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        legend : bool, default=True
            Whether to draw a legend next to the axes; a figure with ``layout="constrained"`` makes
            room for it.

        Returns
        -------
        PrototypesDisplay
        """
        artists = self.draw(self.chart(), ax, (7.2, 4.8), frame=True)
        n = len(self._groups())
        self.points_, self.prototypes_ = artists[:n], artists[n : 2 * n]
        title = f"{len(self.prototypes):,} prototypes among\n{self.n_rows:,} rows"
        self.legend_ = self.legend_beside(title=title, alignment="left") if legend else None
        return self

    def chart(self) -> Chart:
        """Return the chart: faint rows, then ringed prototypes, then names of many classes."""
        rows: list[Mark] = []
        ringed: list[Mark] = []
        groups = self._groups()
        size = 8.0 if len(self.prototypes) <= 300 else 5.5
        for number, label in groups:
            points, prototypes = (
                places[slice(None) if labels is None else labels == number].T
                for places, labels in (
                    (self.points, self.labels),
                    (self.prototypes, self.prototype_labels),
                )
            )
            colour: Colour = "paper" if number < 0 else number
            if self.ordered and number >= 0:
                colour = f"q{round(4 * number / max(len(groups) - 1, 1))}"
            faint = "grey" if self.labels is None else colour
            shape = "dot" if self.ordered or number < 0 else ""
            rows.append(Points(points[0], points[1], "", faint, 0.3, shape=shape))
            places = prototypes[0], prototypes[1], label, colour
            ringed.append(Points(*places, size=size, shape=shape, outlined=True))
        words: list[Mark] = []
        if len(groups) > MANY and self.labels is not None and not self.ordered:
            of_groups = (self.points[self.labels == k] for k, _ in groups)
            x, y = np.transpose([np.median(points, axis=0) for points in of_groups])
            words = [Words(x, y, texts=[label for _, label in groups])]
        return Chart("Rows and prototypes in the plane", *self.names, [*rows, *ringed, *words])

    def _groups(self) -> list[tuple[int, str]]:
        """Return the classes that are drawn, with their names in the legend."""
        if self.labels is None or self.prototype_labels is None or self.classes is None:
            return [(0, "prototype")]
        groups = [(number, str(label)) for number, label in enumerate(self.classes)]
        outside = (self.prototype_labels < 0).any()
        return [*groups, (-1, "not a training row")] if outside else groups


def _plane(
    estimator: Estimator, Z: FloatArray, X: Any, support: IntArray, features: Features
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
                "Some prototypes are not rows of X, and the steps of the pipeline before the model "
                "cannot be undone: give the model itself and the rows that it sees."
            )
        columns = list(getattr(X, "columns", range(np.shape(X)[1])))
        places = [columns.index(f) for f in features or columns]
        return plane.points, Z[:, places], plane.names
    rows = np.asarray(X if before is None else before.transform(X), dtype=np.float64)
    return project(rows, Z, ())


def project(
    X: FloatArray, Z: FloatArray, names: tuple[str, ...]
) -> tuple[FloatArray, FloatArray, tuple[str, str]]:
    """Return rows and prototypes in the plane of the first two principal components.

    Parameters
    ----------
    X : array of shape (n, d)
    Z : array of shape (m, d)
    names : tuple of d str
        Of the features; two of them are the plane themselves.

    Returns
    -------
    points : array of shape (n, 2)
    places : array of shape (m, 2)
    axes : (str, str)
        Names of the axes.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.plots.plane import project
    >>> project(np.eye(2), np.zeros((1, 2)), ("a", "b"))[2]
    ('a', 'b')
    """
    if len(names) == 2:
        return X, Z, (names[0], names[1])
    components = PCA(2, svd_solver="full").set_output(transform="default").fit(X)
    x, y = (
        f"principal component {i + 1} ({100 * share:.0f} % of the variance)"
        for i, share in enumerate(components.explained_variance_ratio_)
    )
    return components.transform(X), components.transform(Z), (x, y)


CATEGORIES = 8


@dataclass(frozen=True, eq=False)
class Grid:
    """Values of a column that are tried.

    Attributes
    ----------
    name : str
    values : list of float or str
    places : array of shape (g,)
        Positions on an axis: the values themselves, or 0, 1, 2 and so on.
    text : bool
    """

    name: str
    values: list[Any]
    places: FloatArray
    text: bool

    @classmethod
    def of(cls, rows: SampledRows, name: str, most: int) -> Grid | None:
        """Return values between the 2 % and 98 % quantiles, or the most frequent categories.

        None where a column has fewer than two values.
        """
        column = rows.columns()[name]
        if isinstance(column, TextColumn):
            often = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))
            order = np.argsort(-often, kind="stable")[: min(most, CATEGORIES)]
            levels = sorted(column.levels[i] for i in order if often[i])
            return cls(name, levels, np.arange(len(levels)) + 0.0, True) if levels[1:] else None
        known = column[np.isfinite(column)]
        values = np.unique(known)
        if len(values) < 2:
            return None
        if len(values) > most:
            low, high = mquantiles(known, (0.02, 0.98))
            low, high = (low, high) if high > low else values[[0, -1]]
            values = np.linspace(low, high, most)
        return cls(name, values.tolist(), values, False)


def responses(estimator: Estimator, X: Any) -> tuple[FloatArray, str]:
    """Return the predictions for rows, (n, q), and what they are.

    Returns
    -------
    values : array of shape (n, q)
        A column for every class (of two classes too) or every output.
    what : {"probability", "score", "value"}
    """
    with nameless_rows():
        if not classifies(estimator):
            values = np.asarray(estimator.predict(X), dtype=np.float64)
            return values.reshape(len(values), -1), "value"
        slow = slow_to_calibrate(fitted_model(estimator))
        if has_method(estimator, "predict_proba") and not slow:
            with suppress(InvalidInputError):  # nothing to calibrate on
                return np.asarray(estimator.predict_proba(X)), "probability"
        assert has_method(estimator, "decision_function")
        return class_scores(estimator.decision_function(X)), "score"


def partial_dependence(
    estimator: Estimator, rows: SampledRows, grids: list[Grid]
) -> tuple[FloatArray, str]:
    """Return the predictions for rows with every combination of values put into some columns.

    Parameters
    ----------
    estimator : Estimator
    rows : SampledRows
        m rows, whose other columns are not changed.
    grids : list of Grid

    Returns
    -------
    values : array of shape (g1, ..., m, q)
    what : str

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.plots.plane import Grid, partial_dependence
    >>> from lssvm.plots.rows import SampledRows
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> model = LSSVR(100.0, gamma=0.1).fit(X, 2 * X[:, 0])
    >>> rows = SampledRows.read(model, (X, 2 * X[:, 0]))
    >>> made, what = partial_dependence(model, rows, [Grid.of(rows, "x0", 5)])
    >>> bool(np.all(np.diff(made.mean(axis=1)[:, 0]) > 0)), made.shape, what
    (True, (5, 80, 1), 'value')
    """
    sizes, m = [len(grid.values) for grid in grids], len(rows)
    places = np.indices(sizes).reshape(len(sizes), -1)
    every = rows.take(np.tile(np.arange(m), places.shape[1]))
    values = {
        grid.name: np.repeat(np.array(grid.values, dtype=object)[at], m).tolist()
        for grid, at in zip(grids, places, strict=True)
    }
    predicted, kind = responses(estimator, every.replaced(values).inputs(estimator))
    return predicted.reshape(*sizes, m, -1), kind


class PartialDependenceDisplay(Display):
    """The mean prediction as one column is set to each of its values, all else unchanged.

    The band, or the bar of a category, is the middle half of the rows. What is drawn is the
    probability of a class, or a predicted number; `sklearn.inspection.PartialDependenceDisplay`
    takes the same models.

    Parameters
    ----------
    values : array of shape (g,)
        Values of the column.
    responses : array of shape (n, g)
        Predictions of n rows at these values.
    name, response : str
        Names of the column and of what is predicted.

    Attributes
    ----------
    values, responses
        As given.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib.lines.Line2D
        The mean.

    See Also
    --------
    DependenceDisplay : What the column adds to the prediction of each row.

    Notes
    -----
    n g predictions.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.plots import PartialDependenceDisplay
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> model = LSSVR(C=100.0, gamma=0.1).fit(X, 2 * X[:, 0])
    >>> display = PartialDependenceDisplay.from_estimator(model, X, column=0)
    >>> bool(np.all(np.diff(display.responses.mean(axis=0)) > 0)), display.ax_.get_xlabel()
    (True, 'x0')
    """

    def __init__(
        self, values: AnyArray, responses: FloatArray, *, name: str, response: str
    ) -> None:
        self.values, self.responses = np.asarray(values), np.asarray(responses, dtype=np.float64)
        self.name, self.response = name, response
        if self.responses.ndim != 2 or self.responses.shape[1] != len(self.values):
            raise InvalidInputError(
                f"Responses of shape {self.responses.shape} do not go with {len(self.values)} "
                "values: give a row for each row of data and a column for each value."
            )

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        column: int | str = 0,
        output: int = -1,
        n_points: int = 20,
        n_rows: int = 100,
    ) -> Self:
        """Compute and draw.

        Parameters
        ----------
        model : Estimator
            Fitted.
        X : data frame or array of shape (n, d)
            Rows whose other columns are not changed.
        y : object, default=None
            Not used.
        ax : matplotlib.axes.Axes, optional
            Where to draw.
        column : int or str, default=0
            The column.
        output : int, default=-1
            Which of several classes or targets; the second of two classes by default.
        n_points : int, default=20
            Values of a column of numbers, between its 2 % and 98 % quantiles.
        n_rows : int, default=100
            Rows at most, drawn at random.
        """
        last: Any = cls.fitted(model, X=X)
        whole: Any = model
        rows = SampledRows.read(model, (X, np.zeros(np.shape(X)[0])))
        names = rows.schema.names
        if isinstance(column, str) and column not in names:
            raise InvalidInputError(f"There is no column {column!r}: choose among {list(names)}.")
        name = column if isinstance(column, str) else names[column]
        known = ~np.isnan(as_numbers(rows.columns()[name]))
        grid = Grid.of(rows.take(np.flatnonzero(known)), name, n_points)
        if grid is None:
            raise InvalidInputError(f"The column {name!r} has fewer than two values.")
        sample = rows.take(np.flatnonzero(known)).subsample(n_rows)
        values, kind = partial_dependence(whole, sample, [grid])
        classes = fitted_attributes(last).get("classes_")
        response = "prediction" if classes is None else f"{kind} of {classes[output]}"
        drawn = values[..., output].T
        return cls(np.array(grid.values), drawn, name=name, response=response).plot(ax)

    def marks(self, colour: Colour = "main", label: str = "", *, band: bool = True) -> list[Mark]:
        """Return the mean and the middle half of the responses.

        Parameters
        ----------
        colour : int or str, default="main"
            Of all marks.
        label : str, default=""
            Of the mean.
        band : bool, default=True
            Whether the middle half is drawn.
        """
        mean = self.responses.mean(axis=0)
        ends = np.quantile(self.responses, [0.25, 0.75], axis=0)
        if self.values.dtype.kind not in "biuf":
            places = np.arange(len(self.values))
            spread = Whiskers(places, ends, colour=colour, opacity=0.25, width=5.0)
            return [spread, Points(places, mean, label, colour, size=8.0)]
        middle = [Band(self.values, ends, colour=colour)] if band else []
        return [*middle, Line(self.values, mean, label, colour)]

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw.
        """
        ticks = None
        if self.values.dtype.kind not in "biuf":
            ticks = [(float(i), str(value)) for i, value in enumerate(self.values)]
        axes = "Partial dependence", self.name, self.response
        self.line_ = self.draw(Chart(*axes, self.marks(), x_ticks=ticks), ax)[-1]
        return self
