"""The cross-validation surface over C and gamma, with the search on it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.plots.canvas import COLOURS, MARKERS, Display
from lssvm.plots.fitted import Estimator

KEYS = ("param_C", "param_gamma", "mean_test_score", "std_test_score", "rank_test_score", "stage")
LEVELS = 14
MARGIN = 0.02  # of the range of the pairs, on every side
WIDE = 10.0  # losses that differ by more than this factor are shown on a logarithmic scale


class TuningSurfaceDisplay(Display):
    """Cross-validation scores over log C and log gamma, the search's path and the chosen pair.

    Colours interpolate between the evaluated pairs, which are shown as small marks, one kind per
    stage of the search. The line joins the best pairs so far, one after each batch of evaluations
    at one gamma; it ends in the star, the chosen pair. Where a search takes a whole path of C at
    each gamma, a dotted line joins the best C of every gamma: the profile it moves along. Where all
    values are of C or all of gamma (the other one was not tuned) a curve with a band of one
    standard deviation over the folds takes the place of the surface.

    Parameters
    ----------
    cv_results : dict
        ``cv_results_`` of an estimator that tuned itself: one entry per evaluation in ``param_C``,
        ``param_gamma`` (NaN where there is none), ``mean_test_score``, ``std_test_score``,
        ``rank_test_score`` (1 is the chosen pair) and ``stage``.

    Attributes
    ----------
    C, gamma, scores, spread : ndarray of shape (n_evaluations,)
        The evaluated pairs, their mean scores and standard deviations, in the order of the search.
    best_index : int
        Position of the chosen pair.
    path : ndarray of int of shape (p,)
        Positions of the best pairs so far.
    profile : ndarray of int of shape (g,)
        Positions of the best pair at each gamma, by increasing gamma; empty where a gamma was tried
        with fewer than three values of C.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    surface_ : matplotlib.contour.ContourSet or None
        The filled surface; None where a curve is drawn.
    path_ : matplotlib.lines.Line2D or None
        The line of the best pairs so far; None where a curve is drawn.
    profile_ : matplotlib.lines.Line2D or None
        The line of the best C at every gamma; None without such, or where a curve is drawn.
    best_ : matplotlib.lines.Line2D
        The star.
    colorbar_ : matplotlib.colorbar.Colorbar or None
        None where a curve is drawn.
    legend_ : matplotlib.legend.Legend
        The legend.

    Notes
    -----
    Scores that are all negative or zero (minus a loss) are shown as losses. The axes hold base-10
    logarithms, so anything added to them is given as ``log10(C)``, ``log10(gamma)``. Time is
    O(n log n) for the triangulation of n evaluations, memory O(n). The searches of
    [DeBrabanter2010, Section 6.3] move over this surface.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.plots import TuningSurfaceDisplay
    >>> X = np.linspace(-5.0, 5.0, 40)[:, None]
    >>> model = LSSVR(C="cv", gamma="cv", cv=5).fit(X, np.sinc(X[:, 0]))
    >>> display = TuningSurfaceDisplay.from_estimator(model)
    >>> bool(display.C[display.best_index] == model.C_)
    True
    >>> bool(display.path[-1] == display.best_index)
    True
    """

    def __init__(self, cv_results: dict[str, Any]) -> None:
        missing = [key for key in KEYS if key not in cv_results]
        if missing:
            raise InvalidInputError(
                f"cv_results has no {', '.join(missing)}: give cv_results_ of an estimator of "
                'lssvm fitted with C="cv" or gamma="cv".'
            )
        C, gamma, scores, spread, rank = (
            np.asarray(cv_results[key], dtype=np.float64) for key in KEYS[:-1]
        )
        keep = np.isfinite(scores)
        if not keep.any():
            raise InvalidInputError(
                f"None of the {scores.size} scores in cv_results is finite, so there is no surface "
                "to draw: check the data and the scoring, and fit again."
            )
        self.C: FloatArray = C[keep]
        self.gamma: FloatArray = gamma[keep]
        self.scores: FloatArray = scores[keep]
        self.spread: FloatArray = spread[keep]
        self.stages = np.asarray(cv_results["stage"])[keep]
        self.best_index = int(np.argmin(rank[keep]))
        self.path = _best_so_far(self.gamma, rank[keep])
        self.profile = _best_of_each(self.gamma, rank[keep])

    @classmethod
    def from_estimator(
        cls, model: Estimator, X: Any = None, y: Any = None, *, ax: Any = None
    ) -> TuningSurfaceDisplay:
        """Draw the surface of an estimator that tuned itself.

        Parameters
        ----------
        model : Estimator
            A model fitted with ``C="cv"`` or ``gamma="cv"``, or a pipeline that ends in one.
        X, y : array-like or None, default=None
            Not needed: the model has its own record. Taken so that all displays are called alike.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        TuningSurfaceDisplay

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the model is not fitted.
        InvalidInputError
            If it did not tune itself.
        """
        last = cls.fitted(model)
        results = getattr(last, "cv_results_", None)
        if results is None:
            raise InvalidInputError(
                f"{type(last).__name__} has no cv_results_: it was fitted with fixed parameters; "
                'fit it with C="cv" or gamma="cv" to have a surface.'
            )
        if isinstance(results, list):
            raise InvalidInputError(
                f"{type(last).__name__} tuned its {len(results)} binary problems separately, so "
                "there are as many surfaces: draw one by "
                f"{cls.__name__}(model.cv_results_[i]).plot()."
            )
        return cls(results).plot(ax)

    def plot(self, ax: Any = None) -> TuningSurfaceDisplay:
        """Draw the surface, or the curve where one parameter was tuned.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        TuningSurfaceDisplay
        """
        self.open(ax, (7.2, 4.8), frame=True)
        if np.unique(self.C).size > 1 and np.unique(self.gamma).size > 1:
            self._draw_surface()
        else:
            self._draw_curve()
        return self

    def _draw_surface(self) -> None:
        from matplotlib.patheffects import Normal, Stroke
        from matplotlib.ticker import FuncFormatter, LogLocator

        ax = self.ax_
        x, y = np.log10(self.C), np.log10(self.gamma)
        if np.linalg.matrix_rank(np.column_stack([x - x[0], y - y[0]])) < 2:
            raise InvalidInputError(
                f"The {x.size} evaluated pairs of C and gamma lie on one line, which spans no "
                "surface: let the search evaluate more pairs."
            )
        shown, name = as_shown(self.scores)
        wide = bool(shown.min() > 0 and shown.max() > WIDE * shown.min())
        # dark is good, for a loss as for a score
        colours = "cividis" if name == "loss" else "cividis_r"
        levels, norm = _levels(shown, wide), "log" if wide else None
        self.surface_ = ax.tricontourf(x, y, shown, levels, cmap=colours, norm=norm)
        beside = {"ax": ax, "pad": 0.02, "label": f"cross-validated {name}"}
        self.colorbar_ = self.figure_.colorbar(self.surface_, **beside)
        if wide:
            self.colorbar_.set_ticks(LogLocator(subs=(1.0, 2.0, 5.0)), minor=False)
            self.colorbar_.formatter = FuncFormatter(lambda value, _: f"{value:g}")
            self.colorbar_.minorticks_off()
        self._draw_marks(x, y)

        def line(rows: NDArray[np.intp], label: str, edge: Any, **style: Any) -> Any:
            effects = [edge, Normal()]
            named = label if rows.size > 1 else None
            return ax.plot(x[rows], y[rows], label=named, path_effects=effects, **style)[0]

        self.profile_ = None
        if self.profile.size > 1:
            dotted = {"color": "white", "linestyle": ":", "linewidth": 1.6, "zorder": 3}
            edge = Stroke(linewidth=3.2, foreground="#444444")
            self.profile_ = line(self.profile, "best C at each gamma", edge, **dotted)
        solid = {"color": COLOURS[1], "linewidth": 1.8, "marker": "o", "markersize": 3.5}
        edge = Stroke(linewidth=3.4, foreground="white")
        self.path_ = line(self.path, "best so far", edge, zorder=4, **solid)
        self._draw_best(x[self.best_index], y[self.best_index])
        _power_ticks(ax.xaxis, "C")
        _power_ticks(ax.yaxis, "gamma")
        for values, set_limits in ((x, ax.set_xlim), (y, ax.set_ylim)):
            edge = MARGIN * np.ptp(values)  # or the marks at the limits would be cut
            set_limits(values.min() - edge, values.max() + edge)
        self.legend_ = self.legend_above()

    def _draw_curve(self) -> None:
        self.surface_ = self.path_ = self.profile_ = self.colorbar_ = None
        ax = self.ax_
        name = "gamma" if np.unique(self.gamma).size > 1 else "C"
        x = np.log10(self.gamma if name == "gamma" else self.C)
        shown, what = as_shown(self.scores)
        order = np.argsort(x)
        low, high = (shown + sign * self.spread for sign in (-1.0, 1.0))
        ax.fill_between(x[order], low[order], high[order], color=COLOURS[0], alpha=0.2, linewidth=0)
        ax.plot(x[order], shown[order], color=COLOURS[0], label="mean over the folds")
        self._draw_best(x[self.best_index], shown[self.best_index])
        ax.set_ylabel(f"cross-validated {what}")
        _power_ticks(ax.xaxis, name)
        self.legend_ = self.legend_above()

    def _draw_marks(self, x: FloatArray, y: FloatArray) -> None:
        """Mark the evaluated pairs, one kind of mark per stage of the search."""
        edge = {"markeredgecolor": "black", "markeredgewidth": 0.3}
        for i, stage in enumerate(dict.fromkeys(self.stages.tolist())):
            rows = self.stages == stage
            mark = {"marker": MARKERS[i % len(MARKERS)], "markersize": 3.2, "linestyle": "none"}
            self.ax_.plot(x[rows], y[rows], color="white", label=str(stage), **mark, **edge)

    def _draw_best(self, x: float, y: float) -> None:
        C, gamma = self.C[self.best_index], self.gamma[self.best_index]
        pair = f"C = {C:.3g}" + ("" if np.isnan(gamma) else f", gamma = {gamma:.3g}")
        self.best_ = self.star(x, y, f"chosen: {pair}", COLOURS[1])


def as_shown(scores: FloatArray) -> tuple[FloatArray, str]:
    """Return what is shown for scores, and what it is called: minus a loss is a loss.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.plots.tuning_surface import as_shown
    >>> as_shown(np.array([-2.0, -1.0]))
    (array([2., 1.]), 'loss')
    """
    return (-scores, "loss") if (scores <= 0).all() else (scores, "score")


def _best_so_far(gamma: FloatArray, rank: FloatArray) -> NDArray[np.intp]:
    """Return the positions of the best evaluations so far, seen after each batch at one gamma."""
    known = np.where(np.isnan(gamma), 0.0, gamma)
    last = np.flatnonzero(np.append(known[1:] != known[:-1], True))  # of each batch
    best = np.minimum.accumulate(rank)[last]
    distinct = best[np.append(True, best[1:] < best[:-1])]
    return np.array([np.flatnonzero(rank == r)[0] for r in distinct], dtype=np.intp)


def _best_of_each(gamma: FloatArray, rank: FloatArray) -> NDArray[np.intp]:
    """Return the positions of the best evaluation at each gamma, if all have several."""
    values, which, count = np.unique(gamma, return_inverse=True, return_counts=True)
    if count.min() < 3:
        return np.empty(0, dtype=np.intp)
    order = np.lexsort((rank, which))
    return order[np.searchsorted(which[order], np.arange(values.size))]


def _levels(shown: FloatArray, wide: bool) -> FloatArray:
    """Return the limits of the colours, from the smallest to the largest value."""
    from matplotlib.ticker import MaxNLocator

    low, high = float(shown.min()), float(shown.max())
    if low == high:
        return np.array([low - 0.5, low + 0.5])
    even = MaxNLocator(LEVELS).tick_values(low, high)
    levels = np.geomspace(low, high, LEVELS) if wide else np.asarray(even)
    # rounding must not leave the extreme pairs outside
    levels[0], levels[-1] = min(levels[0], low), max(levels[-1], high)
    return levels


def _power_ticks(axis: Any, name: str) -> None:
    """Label an axis of logarithms with powers of ten."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"$10^{{{value:g}}}$"))
    axis.set_label_text(name)
