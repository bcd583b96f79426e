"""Decision regions of a classifier in the plane of two features, with its support values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.plots.canvas import COLOURS, Display, dot_style
from lssvm.plots.fitted import Estimator, class_positions, require, support_magnitudes
from lssvm.plots.plane import Plane, class_scores

REGION = 0.18  # opacity of the regions, light enough for print
POINT = 9.0  # area of a training row without a support value, in points squared
ALPHA = 0.65  # opacity of the rows
TARGET_LINE: dict[str, Any] = {"linewidth": 0.8, "linestyle": "dashed"}
HOLLOW: dict[str, Any] = {"facecolors": "none", "edgecolors": "black"}


@dataclass(kw_only=True, eq=False, repr=False)
class BoundaryDisplay(Display):
    r"""Decision regions of a classifier over two features, with the training rows.

    The area of a disk is proportional to the support value :math:`|\alpha_k|` of its row
    [Suykens2002, Figs. 3.3 and 3.11]; rows that are no support vectors are small dots. A solid
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
        The legend, beside the axes.

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
    labels: NDArray[np.intp]
    classes: NDArray[Any]
    support: NDArray[np.intp]
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
        features: tuple[int | str, int | str] | None = None,
        grid_resolution: int = 200,
        max_size: float = 150.0,
        legend: bool = True,
    ) -> BoundaryDisplay:
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
            Whether to put a legend beside the axes; a figure with ``layout="constrained"`` makes
            room for it.

        Returns
        -------
        BoundaryDisplay

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the model is not fitted.
        InvalidInputError
            If it is no classifier with support values, or X and y are not its training data.
        """
        last = cls.fitted(model, X=X, y=y)
        require(last, ("decision_function", "classes_"), "a decision boundary")
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
        classes, decide = np.asarray(last.classes_), model.decision_function  # type: ignore[attr-defined]
        display = cls(
            grid=plane.grid,
            scores=class_scores(decide(plane.rows), plane.grid[0].shape),
            points=plane.points,
            labels=class_positions(np.asarray(y), classes, len(plane.points)),
            classes=classes,
            support=support,
            magnitudes=magnitudes,
            names=plane.names,
        )
        return display.plot(ax, max_size=max_size, legend=legend)

    def plot(
        self, ax: Any = None, *, max_size: float = 150.0, legend: bool = True
    ) -> BoundaryDisplay:
        """Draw regions, rows and support values.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        max_size : float, default=150.0
            Area of the largest disk, in points squared.
        legend : bool, default=True
            Whether to put a legend beside the axes; a figure with ``layout="constrained"`` makes
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
        self.name_axes(*self.names)
        self.legend_ = self._draw_legend(area_per_value) if legend else None
        return self

    def _draw_regions(self) -> None:
        ax, (x, y) = self.ax_, self.grid
        self.regions_, self.boundaries_ = [], []
        order = np.sort(self.scores, axis=2)
        for c in range(len(self.classes)):
            own = self.scores[:, :, c]
            # distance to the best of the other classes: positive where c is the prediction
            lead = own - np.where(own == order[:, :, -1], order[:, :, -2], order[:, :, -1])
            if not (lead > 0).any():
                continue
            colours = [COLOURS[c % len(COLOURS)]]
            self.regions_.append(
                ax.contourf(x, y, lead, [0.0, np.inf], colors=colours, alpha=REGION)
            )
            if (lead < 0).any():
                self.boundaries_.append(
                    ax.contour(x, y, lead, [0.0], colors="black", linewidths=1.4)
                )
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
