"""The best loss so far of several searches, over time or evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lssvm._core.errors import InvalidInputError
from lssvm.plots.canvas import COLOURS, DASHES, MARKERS, axes, pyplot
from lssvm.plots.fitted import fitted_model
from lssvm.search.space import TuningResult

OVER = {"seconds": "seconds", "n_evaluations": "pairs of C and gamma evaluated"}


class TuningTraceDisplay:
    """How fast several searches came how far: their best losses so far.

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
    >>> sorted(TuningTraceDisplay.from_estimators(models).lines_)
    ['grid', 'path']
    """

    def __init__(self, results: Mapping[str, TuningResult]) -> None:
        given = dict(results) if isinstance(results, Mapping) else {}
        wrong = [name for name, result in given.items() if not isinstance(result, TuningResult)]
        if not given or wrong:
            raise InvalidInputError(
                f"results has {'nothing' if not given else 'no TuningResult at ' + str(wrong)}: "
                "give a mapping from names to tuning_result_ of estimators that tuned themselves "
                "(one entry of it where problems were tuned separately)."
            )
        self.results = given

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], *, over: str = "seconds", ax: Any = None
    ) -> TuningTraceDisplay:
        """Draw the searches of several estimators that tuned themselves.

        Parameters
        ----------
        estimators : mapping of str to estimator
            Models fitted with ``C="cv"`` or ``gamma="cv"``, or pipelines that end in one.
        over : {"seconds", "n_evaluations"}, default="seconds"
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        TuningTraceDisplay

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If an estimator is not fitted.
        InvalidInputError
            If one did not tune itself.
        """
        pyplot(f"{cls.__name__}.from_estimators")
        found = {}
        for name, estimator in estimators.items():
            model = fitted_model(estimator)
            if not hasattr(model, "tuning_result_"):
                raise InvalidInputError(
                    f"{name}: {type(model).__name__} has no tuning_result_, it was fitted with "
                    'fixed parameters; fit it with C="cv" or gamma="cv" to have a trace.'
                )
            found[name] = model.tuning_result_
        return cls(found).plot(over=over, ax=ax)

    def plot(self, *, over: str = "seconds", ax: Any = None) -> TuningTraceDisplay:
        """Draw the traces.

        Parameters
        ----------
        over : {"seconds", "n_evaluations"}, default="seconds"
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        TuningTraceDisplay
        """
        if over not in OVER:
            raise InvalidInputError(f"over={over!r} is not known: choose one of {tuple(OVER)}.")
        ax = axes(f"{type(self).__name__}.plot", ax, (7.2, 4.5))
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_: dict[str, Any] = {}
        self.approximate_: dict[str, Any] = {}
        both = [r for result in self.results.values() for r in (result, result.approximate) if r]
        scores = all(np.all(r.trace["best_loss"] <= 0) for r in both)
        sign = -1.0 if scores else 1.0
        for i, (name, result) in enumerate(self.results.items()):
            style = {"color": COLOURS[i % len(COLOURS)], "drawstyle": "steps-post"}
            before = 0
            if result.approximate is not None:
                part = result.approximate
                before = part.n_evaluations if over == "n_evaluations" else 0
                (self.approximate_[name],) = ax.plot(
                    part.trace[over],
                    sign * part.trace["best_loss"],
                    linestyle=":",
                    linewidth=1.0,
                    label=f"{name}, approximate: {part.n_evaluations} evaluations",
                    **style,
                )
            trace = result.trace
            (self.lines_[name],) = ax.plot(
                trace[over] + before,
                sign * trace["best_loss"],
                linestyle=DASHES[i % len(DASHES)],
                marker=MARKERS[i % len(MARKERS)],
                markevery=[len(trace["best_loss"]) - 1],
                label=f"{name}: {result.n_evaluations} evaluations",
                **style,
            )
        ax.set_xlabel(OVER[over])
        ax.set_ylabel("best score so far" if scores else "best loss so far")
        ax.set_xscale("log")
        if all(np.all(r.trace["best_loss"] > 0) for r in both):
            ax.set_yscale("log")
        self.legend_ = ax.legend(frameon=False, fontsize="small")
        return self
