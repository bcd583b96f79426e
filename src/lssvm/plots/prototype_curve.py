"""Error against the number of prototypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from lssvm._core.errors import InvalidInputError
from lssvm.plots.canvas import COLOURS, DASHES, MARKERS, axes, pyplot
from lssvm.plots.fitted import FloatArray, fitted_model

RATE = "misclassified rows (%)"
UNEXPLAINED = "$1 - R^2$"
FULL = "full model"
MOST_TICKS = 12


class PrototypeCurveDisplay:
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
    The print shows single runs on test rows (`from_test`). With ``n_prototypes="cv"`` the curve is
    cross-validated and costs nothing more (`from_estimator`); its bars are standard errors of the
    mean over the folds.

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
        shapes = {part.shape for part in (size, error, bars) if part is not None}
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
        self.label = label
        self.chosen = chosen
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        baseline: float | None = None,
        name: str = "cross-validation",
        ax: Any = None,
    ) -> PrototypeCurveDisplay:
        """Draw the cross-validated errors of a model that chose its number of prototypes.

        Parameters
        ----------
        estimator : object
            A ``FixedSizeLSSVC`` or ``FixedSizeLSSVR`` fitted with ``n_prototypes="cv"``, or a
            pipeline that ends in one.
        baseline : float or None, default=None
            Score of the full model by the same measure, drawn as a horizontal line.
        name : str, default="cross-validation"
            Name in the legend.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw, such as ``ax_`` of another display; None: a new figure.

        Returns
        -------
        PrototypeCurveDisplay

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        InvalidInputError
            If it was fitted with a given number of prototypes.

        Notes
        -----
        Accuracies are shown as percentages of misclassified rows, minus a loss as the loss, and the
        scores of a scorer as they are.
        """
        pyplot(f"{cls.__name__}.from_estimator")
        model = fitted_model(estimator)
        results = getattr(model, "size_results_", None)
        if results is None:
            raise InvalidInputError(
                f"{type(model).__name__} has no size_results_: its number of prototypes was given; "
                'fit it with n_prototypes="cv", or use from_test, which fits every size.'
            )
        scores = np.asarray(results["mean_test_score"])
        folds = sum(key.startswith("split") for key in model.cv_results_)
        if is_classifier(model) and model.scoring is None:
            sign, shift, factor, label = -1.0, 1.0, 100.0, RATE
        elif (scores <= 0).all():
            sign, shift, factor, label = -1.0, 0.0, 1.0, "cross-validated loss"
        else:
            sign, shift, factor, label = 1.0, 0.0, 1.0, "cross-validated score"
        display = cls(
            results["n_prototypes"],
            factor * (shift + sign * scores),
            spread=factor * np.asarray(results["std_test_score"]) / np.sqrt(folds),
            label=label,
            chosen=model.n_prototypes_,
            name=name,
        )
        return display.plot(ax, None if baseline is None else factor * (shift + sign * baseline))

    @classmethod
    def from_test(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        X_test: Any,
        y_test: Any,
        *,
        sizes: Sequence[int],
        random_states: Sequence[int] = (0,),
        baseline: float | None = None,
        name: str = "test rows",
        ax: Any = None,
    ) -> PrototypeCurveDisplay:
        """Fit a model with every number of prototypes and draw the errors on test rows.

        Parameters
        ----------
        estimator : object
            A ``FixedSizeLSSVC`` or ``FixedSizeLSSVR``, or a pipeline that ends in one. It is
            cloned; its number of prototypes and its ``random_state`` are replaced.
        X, y : array-like of shape (n, d) and (n,)
            Training rows.
        X_test, y_test : array-like of shape (t, d) and (t,)
            Test rows.
        sizes : sequence of int
            Numbers of prototypes.
        random_states : sequence of int, default=(0,)
            One fit for each; several give bars of one standard deviation.
        baseline : float or None, default=None
            ``score`` of the full model on the test rows, drawn as a horizontal line.
        name : str, default="test rows"
            Name in the legend.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        PrototypeCurveDisplay

        Notes
        -----
        The error is 1 - ``score``: the misclassified rows in per cent, or the part of the variance
        that is left, 1 - R^2. As many fits as sizes times seeds.
        """
        pyplot(f"{cls.__name__}.from_test")
        factor = 100.0 if is_classifier(estimator) else 1.0
        errors = np.empty((len(sizes), len(random_states)))
        for i, size in enumerate(sizes):
            for j, seed in enumerate(random_states):
                model = clone(estimator)
                last = model[-1] if isinstance(model, Pipeline) else model
                last.set_params(n_prototypes=size, random_state=seed)
                errors[i, j] = factor * (1.0 - model.fit(X, y).score(X_test, y_test))
        display = cls(
            sizes,
            errors.mean(axis=1),
            spread=errors.std(axis=1, ddof=1) if len(random_states) > 1 else None,
            label=RATE if is_classifier(estimator) else UNEXPLAINED,
            name=name,
        )
        return display.plot(ax, None if baseline is None else factor * (1.0 - baseline))

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
        ax = axes(f"{type(self).__name__}.plot", ax, (6.0, 4.0))
        from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

        drawn = len(ax.containers)  # curves that are there already
        colour = COLOURS[drawn % len(COLOURS)]
        bars = ax.errorbar(
            self.sizes,
            self.errors,
            yerr=self.spread,
            color=colour,
            linestyle=DASHES[drawn % len(DASHES)],
            linewidth=1.8,
            marker=MARKERS[drawn % len(MARKERS)],
            markersize=5,
            capsize=3,
            elinewidth=0.9,
            label=self.name,
        )
        self.line_ = bars.lines[0]
        self.best_ = None
        if self.chosen is not None:
            at = int(np.flatnonzero(self.sizes == self.chosen)[0])
            (self.best_,) = ax.plot(
                self.chosen,
                self.errors[at],
                color=colour,
                linestyle="none",
                marker="*",
                markersize=17,
                markeredgecolor="white",
                label=f"chosen: {self.chosen:,}",
                zorder=5,
            )
        if baseline is not None:
            ax.axhline(baseline, color="black", linestyle=":", linewidth=1.4, label=FULL)
        ax.set_xscale("log")
        shown = [line.get_xdata() for line in ax.lines if line.get_label() != FULL]
        ticks = np.unique(np.concatenate(shown))
        if ticks.size <= MOST_TICKS:
            ax.xaxis.set_major_locator(FixedLocator(ticks.tolist()))
            ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        ax.set_xlabel("number of prototypes")
        ax.set_ylabel(self.label)
        ax.spines[["top", "right"]].set_visible(False)
        self.legend_ = ax.legend(
            loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize="small"
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self
