"""The best loss so far of several searches, over time or evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lssvm._core.errors import InvalidInputError
from lssvm.plots.canvas import COLOURS, MARKERS, Display, line_style
from lssvm.plots.fitted import Estimator
from lssvm.search.space import TuningResult

OVER = {"seconds": "seconds", "n_evaluations": "pairs of C and gamma evaluated"}


class TuningTraceDisplay(Display):
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
    >>> records = {search: model.tuning_result_ for search, model in models.items()}
    >>> sorted(TuningTraceDisplay(records).plot().lines_)
    ['grid', 'path']
    >>> sorted(TuningTraceDisplay.from_estimator(models["path"]).lines_)
    ['LSSVR']
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
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        over: str = "seconds",
        name: str | None = None,
    ) -> TuningTraceDisplay:
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

    def plot(self, ax: Any = None, *, over: str = "seconds") -> TuningTraceDisplay:
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
        self.name_axes(OVER[over], "best score so far" if scores else "best loss so far")
        ax.set_xscale("log")
        if all(np.all(r.trace["best_loss"] > 0) for r in both):
            ax.set_yscale("log")
        self.legend_ = ax.legend(frameon=False, fontsize="small")
        return self
