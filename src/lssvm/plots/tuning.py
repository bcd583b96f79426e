"""Displays of a search: its surface over C and gamma, its progress, and its prototypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.plots.base import COLOURS, MARKERS, Display, Estimator, line_style, pyplot
from lssvm.plots.charts import SHAPES, Band, Chart, HeatMap, Line, Mark, Points, Star, log_ticks
from lssvm.tuning.search import TuningResult

KEYS = ("param_C", "param_gamma", "mean_test_score", "std_test_score", "rank_test_score", "stage")
LEVELS = 14
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
        self.C, self.gamma, self.scores, self.spread, rank = (
            values[keep] for values in (C, gamma, scores, spread, rank)
        )
        self.stages = np.asarray(cv_results["stage"])[keep]
        self.best_index = int(np.argmin(rank))
        self.path = _best_so_far(self.gamma, rank)
        self.profile = _best_of_each(self.gamma, rank)

    @classmethod
    def from_estimator(
        cls, model: Estimator, X: Any = None, y: Any = None, *, ax: Any = None
    ) -> Self:
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

    def plot(self, ax: Any = None) -> Self:
        """Draw the surface, or the curve where one parameter was tuned.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        TuningSurfaceDisplay
        """
        chart = self.chart()
        self.surface_: Any = None
        self.colorbar_: Any = None
        artists = self.draw(chart, ax, (7.2, 4.8), frame=True)
        drawn = dict(zip((mark.label for mark in chart.marks), artists, strict=True))
        self.best_, self.path_ = artists[-1], drawn.get("best so far")
        self.profile_ = drawn.get("best C at each gamma")
        if isinstance(surface := chart.marks[0], HeatMap):
            self._draw_surface(surface)
            for mark, artist in zip(chart.marks, artists, strict=True):
                if isinstance(mark, Points):  # white, on colours that are dark where they are good
                    artist.set(color="white", mec="black", mew=0.3, alpha=1.0, markersize=3.2)
        self.legend_ = self.legend_above()
        return self

    @property
    def tuned(self) -> list[str]:
        """Which of C and gamma were varied."""
        both = {"C": self.C, "gamma": self.gamma}
        return [name for name, v in both.items() if np.unique(v[np.isfinite(v)]).size > 1]

    def chart(self) -> Chart:
        """Return the surface, or the curve where one parameter was tuned; axes have logarithms."""
        x, y, best = np.log10(self.C), np.log10(self.gamma), self.best_index
        values, kind = losses_or_scores(self.scores)
        both = (("C", self.C[best]), ("gamma", self.gamma[best]))
        pair = ", ".join(f"{name} = {_text(value)}" for name, value in both if np.isfinite(value))
        if len(self.tuned) < 2:
            name = (self.tuned or ["C"])[0]
            x = y if name == "gamma" else x
            order = np.argsort(x)
            ends = (values - self.spread)[order], (values + self.spread)[order]
            curve: list[Mark] = [
                Band(x[order], np.nan_to_num(ends), "one deviation"),
                Line(x[order], values[order], "mean over folds"),
                Star(x[best], values[best], f"chosen: {pair}", "wrong"),
            ]
            axes = f"Cross-validated {kind} against {name}", name, f"cross-validated {kind}"
            return Chart(*axes, curve, x_ticks=log_ticks(x.min(), x.max()))
        if np.linalg.matrix_rank(np.column_stack([x - x[0], y - y[0]]), tol=1e-6) < 2:
            raise InvalidInputError(
                f"The {x.size} evaluated pairs of C and gamma lie on one line, which spans no "
                "surface: let the search evaluate more pairs."
            )
        wide = values.min() > 0 and values.max() > WIDE * values.min()
        shades = np.log10(values) if wide else values
        names, label = (_text(values.min()), _text(values.max())), f"cross-validated {kind}"
        marks: list[Mark] = [HeatMap(x, y, label, values=shades, ends=names, loss=kind == "loss")]
        for i, stage in enumerate(dict.fromkeys(self.stages.tolist())):
            rows, shape = self.stages == stage, SHAPES[i % len(SHAPES)]
            marks.append(Points(x[rows], y[rows], str(stage), "text", 0.7, 2.4, shape))
        for rows, label, colour in (
            (self.profile, "best C at each gamma", "text"),
            (self.path, "best so far", "wrong"),
        ):
            if rows.size > 1:
                dashed = colour == "text"
                marks.append(Line(x[rows], y[rows], label, colour, dashed=dashed, outlined=True))
        marks.append(Star(x[best], y[best], f"chosen: {pair}", "wrong"))
        across, up = (log_ticks(float(v.min()), float(v.max())) for v in (x, y))
        title = f"Cross-validated {kind} over C and gamma"
        return Chart(title, "C", "gamma", marks, x_ticks=across, y_ticks=up)

    def _draw_surface(self, surface: HeatMap) -> None:
        from matplotlib.ticker import FuncFormatter, LogLocator

        values = losses_or_scores(self.scores)[0]
        wide = not np.array_equal(values, surface.values)  # they are logarithms
        # dark is good, for a loss as for a score
        colours = "cividis" if surface.loss else "cividis_r"
        levels, norm = _levels(values, wide), "log" if wide else None
        grid = self.ax_.tricontourf(surface.x, surface.y, values, levels, cmap=colours, norm=norm)
        place = {"ax": self.ax_, "pad": 0.02, "label": surface.label}
        self.surface_, self.colorbar_ = grid, self.figure_.colorbar(grid, **place)
        for v, set_limits in ((surface.x, self.ax_.set_xlim), (surface.y, self.ax_.set_ylim)):
            edge = 0.02 * np.ptp(v)  # or marks at the limits would be cut
            set_limits(v.min() - edge, v.max() + edge)
        if wide:
            self.colorbar_.set_ticks(LogLocator(subs=(1.0, 2.0, 5.0)), minor=False)
            self.colorbar_.formatter = FuncFormatter(lambda value, _: f"{value:g}")
            self.colorbar_.minorticks_off()


def _text(value: float) -> str:
    return f"{value:,.0f}" if 1e3 <= value < 1e7 else f"{value:.3g}"


def losses_or_scores(scores: FloatArray) -> tuple[FloatArray, str]:
    """Return what is shown for scores, and what it is called: minus a loss is a loss.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.plots.tuning import losses_or_scores
    >>> losses_or_scores(np.array([-2.0, -1.0]))
    (array([2., 1.]), 'loss')
    """
    return (-scores, "loss") if (scores <= 0).all() else (scores, "score")


def _best_so_far(gamma: FloatArray, rank: FloatArray) -> IntArray:
    """Return the positions of the best evaluations so far, seen after each batch at one gamma."""
    known = np.where(np.isnan(gamma), 0.0, gamma)
    last = np.flatnonzero(np.append(known[1:] != known[:-1], True))  # of each batch
    best = np.minimum.accumulate(rank)[last]
    distinct = best[np.append(True, best[1:] < best[:-1])]
    return np.array([np.flatnonzero(rank == r)[0] for r in distinct], dtype=np.intp)


def _best_of_each(gamma: FloatArray, rank: FloatArray) -> IntArray:
    """Return the positions of the best evaluation at each gamma, if all have several."""
    values, group, count = np.unique(gamma, return_inverse=True, return_counts=True)
    if count.min() < 3:
        return np.empty(0, dtype=np.intp)
    order = np.lexsort((rank, group))
    return order[np.searchsorted(group[order], np.arange(values.size))]


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


OVER = {"seconds": "seconds", "n_evaluations": "pairs of C and gamma evaluated"}


class TuningTraceDisplay(Display):
    """Best loss so far of several searches, over evaluations or time.

    One line per search, a step where a better pair was found, with a mark at the end. Where a
    search began with an approximate criterion (`lssvm.tuning.CirculantSearch`), that part is a thin
    dotted line: its losses are those of the approximation.

    Parameters
    ----------
    results : mapping of str to TuningResult
        The records to compare, by the names of their lines; ``tuning_result_`` of estimators.

    Attributes
    ----------
    results : dict of str to TuningResult
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : dict of str to matplotlib.lines.Line2D
        The traces.
    approximate_ : dict of str to matplotlib.lines.Line2D
        The traces of the approximate parts, where there are any.
    legend_ : matplotlib.legend.Legend

    Notes
    -----
    Compare searches that minimise the same criterion on the same data. Losses that are all negative
    or zero (minus a score) are shown as scores. Time and memory are
    O(n) in the number of evaluations. [DeBrabanter2010, Section 6.3] compares searches so.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.plots import TuningTraceDisplay
    >>> X = np.linspace(-5.0, 5.0, 40)[:, None]
    >>> models = {
    ...     search: LSSVR("cv", gamma="cv", cv=5, search=search).fit(X, np.sinc(X[:, 0]))
    ...     for search in ("path", "grid")
    ... }
    >>> records = {search: model.tuning_result_ for search, model in models.items()}
    >>> sorted(TuningTraceDisplay(records).plot().lines_)
    ['grid', 'path']
    >>> sorted(TuningTraceDisplay.from_estimator(models["path"]).lines_)
    ['LSSVR']
    """

    def __init__(self, results: Mapping[str, TuningResult]) -> None:
        named = dict(results) if isinstance(results, Mapping) else {}
        wrong = [name for name, result in named.items() if not isinstance(result, TuningResult)]
        if not named or wrong:
            raise InvalidInputError(
                f"results has {'nothing' if not named else 'no TuningResult at ' + str(wrong)}: "
                "give a mapping from names to tuning_result_ of estimators that tuned themselves "
                "(one entry of it where problems were tuned separately)."
            )
        self.results = named

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        over: str = "seconds",
        name: str | None = None,
    ) -> Self:
        """Draw the search of a model that tuned itself; the constructor compares several.

        Parameters
        ----------
        model : Estimator
            A model fitted with ``C="cv"`` or ``gamma="cv"``, or a pipeline that ends in one.
        X, y : array-like or None, default=None
            Not needed: the model has its own record. Taken so that all displays are called alike.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        over : {"seconds", "n_evaluations"}, default="seconds"
            What the horizontal axis counts.
        name : str or None, default=None
            Name in the legend; None: that of the class.

        Returns
        -------
        TuningTraceDisplay

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the model is not fitted.
        InvalidInputError
            If it did not tune itself.
        """
        last = cls.fitted(model)
        if not hasattr(last, "tuning_result_"):
            raise InvalidInputError(
                f"{type(last).__name__} has no tuning_result_, it was fitted with fixed "
                'parameters; fit it with C="cv" or gamma="cv" to have a trace.'
            )
        return cls({name or type(last).__name__: last.tuning_result_}).plot(ax, over=over)

    def plot(self, ax: Any = None, *, over: str = "seconds") -> Self:
        """Draw the traces.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        over : {"seconds", "n_evaluations"}, default="seconds"
            What the horizontal axis counts.

        Returns
        -------
        TuningTraceDisplay
        """
        if over not in OVER:
            raise InvalidInputError(f"over={over!r} is not known: choose one of {tuple(OVER)}.")
        ax = self.open(ax, (7.2, 4.5), frame=True)
        self.lines_: dict[str, Any] = {}
        self.approximate_: dict[str, Any] = {}
        both = [r for result in self.results.values() for r in (result, result.approximate) if r]
        scores = all(np.all(r.trace["best_loss"] <= 0) for r in both)
        sign = -1.0 if scores else 1.0
        for i, (name, result) in enumerate(self.results.items()):

            def draw(title: str, record: TuningResult, before: int, **style: Any) -> Any:
                label = f"{title}: {record.n_evaluations} evaluations"
                steps, losses = record.trace[over] + before, sign * record.trace["best_loss"]
                return ax.plot(steps, losses, label=label, drawstyle="steps-post", **style)[0]

            colour, before = COLOURS[i % len(COLOURS)], 0
            first = result.approximate
            if first is not None:
                thin = {"color": colour, "linestyle": ":", "linewidth": 1.0}
                self.approximate_[name] = draw(f"{name}, approximate", first, 0, **thin)
                before = first.n_evaluations if over == "n_evaluations" else 0
            end = {"marker": MARKERS[i % len(MARKERS)], "markevery": [len(result.trace[over]) - 1]}
            self.lines_[name] = draw(name, result, before, **line_style(i), **end)
        ax.set(xlabel=OVER[over], ylabel="best score so far" if scores else "best loss so far")
        ax.set_xscale("log")
        if all(np.all(r.trace["best_loss"] > 0) for r in both):
            ax.set_yscale("log")
        self.legend_ = ax.legend(frameon=False, fontsize="small")
        return self


Pair: TypeAlias = tuple[Any, Any]
"""Rows and their targets."""

RATE = "misclassified rows (%)"
UNEXPLAINED = "$1 - R^2$"
FULL = "full model"
MOST_TICKS = 12


class PrototypeCurveDisplay(Display):
    """Error of a fixed-size model against its number of prototypes.

    The curve falls and becomes flat: a part of the rows is enough for the error of the full model,
    which may be drawn as a horizontal line [DeBrabanter2010, Fig. 2]. Several curves are
    overlaid by giving the axes of the first to the others.

    Parameters
    ----------
    sizes : array-like of shape (s,)
        Numbers of prototypes.
    errors : array-like of shape (s,)
        Errors (or scores) with so many.
    spread : array-like of shape (s,) or None, default=None
        Half the height of the bars.
    label : str, default="error"
        What they are, for the axis.
    chosen : int or None, default=None
        The number of prototypes to mark with a star.
    name : str, default="model"
        Name of the curve in the legend.

    Attributes
    ----------
    sizes, errors, spread : ndarray of shape (s,)
        In increasing order of the size; ``spread`` may be None.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib.lines.Line2D
        The curve.
    best_ : matplotlib.lines.Line2D or None
        The star.
    legend_ : matplotlib.legend.Legend
        The legend of all curves on the axes.

    Notes
    -----
    The paper shows single runs on test rows (``test=``). With ``n_prototypes="cv"`` the curve is
    cross-validated and costs nothing more; its bars are standard errors of the mean over the folds.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from lssvm import FixedSizeLSSVC
    >>> from lssvm.datasets import load_ripley
    >>> from lssvm.plots import PrototypeCurveDisplay
    >>> ripley = load_ripley()
    >>> X, y = ripley.data[ripley.train], ripley.target[ripley.train]
    >>> model = FixedSizeLSSVC("cv", gamma=1.0).fit(X, y)
    >>> display = PrototypeCurveDisplay.from_estimator(model)
    >>> model.n_prototypes_ in display.sizes
    True
    """

    def __init__(
        self,
        sizes: ArrayLike,
        errors: ArrayLike,
        *,
        spread: ArrayLike | None = None,
        label: str = "error",
        chosen: int | None = None,
        name: str = "model",
    ) -> None:
        size, error = np.asarray(sizes), np.asarray(errors, dtype=np.float64)
        bars = None if spread is None else np.asarray(spread, dtype=np.float64)
        shapes = {array.shape for array in (size, error, bars) if array is not None}
        if len(shapes) > 1 or size.ndim != 1 or size.size == 0 or not np.isfinite(error).all():
            raise InvalidInputError(
                f"sizes, errors and spread have the shapes {sorted(shapes)}, and "
                f"{np.count_nonzero(~np.isfinite(error))} errors are not finite: give one finite "
                "error for each number of prototypes, shape (s,)."
            )
        order = np.argsort(size)
        self.sizes = size[order]
        self.errors: FloatArray = error[order]
        self.spread: FloatArray | None = None if bars is None else bars[order]
        self.label, self.chosen, self.name = label, chosen, name

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        test: Pair | None = None,
        sizes: Sequence[int] = (),
        random_states: Sequence[int] = (0,),
        baseline: float | None = None,
        name: str | None = None,
    ) -> Self:
        """Draw the errors of a model with every number of prototypes.

        Parameters
        ----------
        model : Estimator
            A ``FixedSizeLSSVC`` or ``FixedSizeLSSVR``, or a pipeline that ends in one. Without
            ``test`` it was fitted with ``n_prototypes="cv"``, and its cross-validated errors are
            drawn. With ``test`` it need not be fitted: it is cloned, and its number of prototypes
            and its ``random_state`` are replaced.
        X, y : array-like of shape (n, d) and (n,), or None
            Training rows, for ``test`` alone.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw, such as ``ax_`` of another display; None: a new figure.
        test : (array-like of shape (t, d), array-like of shape (t,)) or None, default=None
            Test rows and their targets: the model is fitted to X and y with each of the ``sizes``
            and measured on these.
        sizes : sequence of int
            Numbers of prototypes, for ``test``.
        random_states : sequence of int, default=(0,)
            One fit for each; several give bars of one standard deviation.
        baseline : float or None, default=None
            Score of the full model by the same measure, drawn as a horizontal line.
        name : str or None, default=None
            Name in the legend; None: "cross-validation" or "test rows".

        Returns
        -------
        PrototypeCurveDisplay

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the model is not fitted, and there is no ``test``.
        InvalidInputError
            If it was fitted with a given number of prototypes, or X, y or sizes are missing.

        Notes
        -----
        Accuracies are shown as percentages of misclassified rows, minus a loss as the loss, and the
        scores of a scorer unchanged. On test rows the error is 1 - ``score``: the misclassified
        rows in per cent, or 1 - R^2. As many fits as sizes times seeds.
        """
        if test is not None:
            values, spread = _test_scores(model, X, y, test, sizes, random_states)
            numbers: Any = sizes
            chosen, rate, name = None, is_classifier(model), name or "test rows"
            offset, factor, label = 1.0, -1.0, UNEXPLAINED  # an error is offset + factor * score
        else:
            last = cls.fitted(model)
            results = getattr(last, "size_results_", None)
            if results is None:
                raise InvalidInputError(
                    f"{type(last).__name__} has no size_results_: its number of prototypes was "
                    'given; fit it with n_prototypes="cv", or give test= and sizes=, which fits '
                    "every size."
                )
            numbers, chosen = results["n_prototypes"], last.n_prototypes_
            values = np.asarray(results["mean_test_score"])
            folds = sum(key.startswith("split") for key in last.cv_results_)
            spread = np.asarray(results["std_test_score"]) / np.sqrt(folds)
            rate, name = is_classifier(last) and last.scoring is None, name or "cross-validation"
            kind = losses_or_scores(values)[1]
            offset, factor = 0.0, -1.0 if kind == "loss" else 1.0
            label = f"cross-validated {kind}"
        if rate:
            offset, factor, label = 100.0, -100.0, RATE
        bars = None if spread is None else abs(factor) * spread
        errors = offset + factor * values
        display = cls(numbers, errors, spread=bars, label=label, chosen=chosen, name=name)
        return display.plot(ax, None if baseline is None else offset + factor * baseline)

    def plot(self, ax: Any = None, baseline: float | None = None) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        baseline : float or None, default=None
            Error of the full model, drawn as a horizontal line.

        Returns
        -------
        PrototypeCurveDisplay
        """
        ax = self.open(ax, (6.0, 4.0))
        from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

        drawn = len(ax.containers)  # curves that are there already
        style = line_style(drawn)
        bars = {"yerr": self.spread, "capsize": 3, "elinewidth": 0.9}
        marks = {"marker": MARKERS[drawn % len(MARKERS)], "markersize": 5, "label": self.name}
        curve = ax.errorbar(self.sizes, self.errors, linewidth=1.8, **bars, **marks, **style)
        self.line_ = curve.lines[0]
        self.best_ = None
        if self.chosen is not None:
            at = int(np.flatnonzero(self.sizes == self.chosen)[0])
            chosen = f"chosen: {self.chosen:,}"
            mark = {"marker": "*", "markersize": 17, "markeredgecolor": "white", "zorder": 5}
            mark |= {"linestyle": "none", "color": style["color"], "label": chosen}
            (self.best_,) = ax.plot(self.chosen, self.errors[at], **mark)
        if baseline is not None:
            ax.axhline(baseline, color="black", linestyle=":", linewidth=1.4, label=FULL)
        ax.set_xscale("log")
        shown = [line.get_xdata() for line in ax.lines if line.get_label() != FULL]
        ticks = np.unique(np.concatenate(shown))
        if ticks.size <= MOST_TICKS:
            ax.xaxis.set_major_locator(FixedLocator(ticks.tolist()))
            ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        ax.set(xlabel="number of prototypes", ylabel=self.label)
        self.legend_ = self.legend_above()
        return self


def _test_scores(
    model: Estimator, X: Any, y: Any, test: Pair, sizes: Sequence[int], seeds: Sequence[int]
) -> tuple[FloatArray, FloatArray | None]:
    """Return mean and deviation of the scores on test rows, fitted once per size and seed."""
    pyplot("PrototypeCurveDisplay.from_estimator")
    if X is None or y is None or len(sizes) == 0:
        raise InvalidInputError("test= needs X and y to fit to, and sizes= to fit with.")
    scores = np.empty((len(sizes), len(seeds)))
    for i, j in np.ndindex(*scores.shape):
        copy: Any = clone(model)
        last = copy[-1] if isinstance(copy, Pipeline) else copy
        last.set_params(n_prototypes=sizes[i], random_state=seeds[j])
        scores[i, j] = copy.fit(X, y).score(*test)
    return scores.mean(axis=1), scores.std(axis=1, ddof=1) if len(seeds) > 1 else None
