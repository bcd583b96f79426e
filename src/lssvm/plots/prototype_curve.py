"""Error against the number of prototypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.plots.canvas import MARKERS, Display, line_style, pyplot
from lssvm.plots.fitted import Estimator
from lssvm.plots.tuning_surface import as_shown

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
    The print shows single runs on test rows (``test=``). With ``n_prototypes="cv"`` the curve is
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
        test: tuple[Any, Any] | None = None,
        sizes: Sequence[int] = (),
        random_states: Sequence[int] = (0,),
        baseline: float | None = None,
        name: str | None = None,
    ) -> PrototypeCurveDisplay:
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
        scores of a scorer as they are. On test rows the error is 1 - ``score``: the misclassified
        rows in per cent, or 1 - R^2. As many fits as sizes times seeds.
        """
        if test is not None:
            values, spread = _test_scores(model, X, y, test, sizes, random_states)
            numbers: Any = sizes
            chosen, rate, label = None, is_classifier(model), UNEXPLAINED
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
            rate = is_classifier(last) and last.scoring is None
            label = f"cross-validated {as_shown(values)[1]}"
        # an error is offset + factor * score
        offset, factor = (1.0, -1.0) if label == UNEXPLAINED else (0.0, 1.0)
        if rate:
            offset, factor, label = 100.0, -100.0, RATE
        elif label.endswith("loss"):
            factor = -1.0
        bars = None if spread is None else abs(factor) * spread
        name = name or ("cross-validation" if test is None else "test rows")
        errors = offset + factor * values
        display = cls(numbers, errors, spread=bars, label=label, chosen=chosen, name=name)
        return display.plot(ax, None if baseline is None else offset + factor * baseline)

    def plot(self, ax: Any = None, baseline: float | None = None) -> PrototypeCurveDisplay:
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
            self.best_ = self.star(self.chosen, self.errors[at], chosen, style["color"])
        if baseline is not None:
            ax.axhline(baseline, color="black", linestyle=":", linewidth=1.4, label=FULL)
        ax.set_xscale("log")
        shown = [line.get_xdata() for line in ax.lines if line.get_label() != FULL]
        ticks = np.unique(np.concatenate(shown))
        if ticks.size <= MOST_TICKS:
            ax.xaxis.set_major_locator(FixedLocator(ticks.tolist()))
            ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        self.name_axes("number of prototypes", self.label)
        self.legend_ = self.legend_above()
        return self


def _test_scores(
    model: Estimator,
    X: Any,
    y: Any,
    test: tuple[Any, Any],
    sizes: Sequence[int],
    seeds: Sequence[int],
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
