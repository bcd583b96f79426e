"""How the entropy of the prototypes rose while they were selected."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lssvm._core.errors import InvalidInputError
from lssvm.plots.canvas import Display, line_style
from lssvm.plots.fitted import Estimator, finite_vector, require


class EntropyTraceDisplay(Display):
    """Quadratic Renyi entropy of the working set after every exchange of a prototype.

    The curve rises from the entropy of a random set and becomes flat when exchanges gain little
    [DeBrabanter2010, algorithm 1]. Several selections are overlaid by giving the axes of the first
    to the others; colour and dash tell them apart. (The height of the curve depends on the units of
    the features: compare the rise, and only selections from the same data.)

    Parameters
    ----------
    trace : array-like of shape (n_swaps + 1,)
        Entropy in nats at the start and after each exchange, as ``Selection.entropy_trace`` has it.
    n_trials : int or None, default=None
        Candidates that were looked at, for the legend.
    name : str, default="model"
        Name of the selection in the legend.

    Attributes
    ----------
    trace : ndarray of shape (n_swaps + 1,)
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib.lines.Line2D
        The trace.
    legend_ : matplotlib.legend.Legend
        The legend of all traces on the axes.

    See Also
    --------
    PrototypesDisplay : Where the chosen prototypes lie.

    Notes
    -----
    Time and memory O(n_swaps).

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from lssvm import FixedSizeLSSVC
    >>> from lssvm.datasets import load_ripley
    >>> from lssvm.plots import EntropyTraceDisplay
    >>> ripley = load_ripley()
    >>> model = FixedSizeLSSVC(20, C=1.0, gamma=1.0).fit(ripley.data, ripley.target)
    >>> display = EntropyTraceDisplay.from_estimator(model)
    >>> bool(display.trace[-1] > display.trace[0])
    True
    """

    def __init__(
        self, trace: ArrayLike, *, n_trials: int | None = None, name: str = "model"
    ) -> None:
        needed = "entropy_trace of a selection by entropy, such as selection_ of an estimator with "
        self.trace = finite_vector("The trace", trace, f'{needed}selection="renyi"')
        self.n_trials, self.name = n_trials, name

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        name: str | None = None,
    ) -> EntropyTraceDisplay:
        """Draw the trace of a fitted fixed-size model.

        Parameters
        ----------
        model : Estimator
            A fitted ``FixedSizeLSSVC`` or ``FixedSizeLSSVR`` that selected its prototypes by
            entropy, or a pipeline that ends in one.
        X, y : array-like or None, default=None
            Not needed: the model has its own record. Taken so that all displays are called alike.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw, such as ``ax_`` of another display; None: a new figure.
        name : str or None, default=None
            Name in the legend; None: that of the class.

        Returns
        -------
        EntropyTraceDisplay

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the model is not fitted.
        InvalidInputError
            If its prototypes were not selected by entropy.
        """
        last = cls.fitted(model)
        require(last, ("selection_",), "an entropy trace")
        selection = last.selection_
        if selection is None or selection.entropy_trace.size == 0:
            raise InvalidInputError(
                f"{type(last).__name__} did not select its prototypes by entropy, so there is no "
                'trace: fit it with selection="renyi" and fewer prototypes than there are rows.'
            )
        name = name or type(last).__name__
        return cls(selection.entropy_trace, n_trials=selection.n_trials, name=name).plot(ax)

    def plot(self, ax: Any = None) -> EntropyTraceDisplay:
        """Draw the trace.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        EntropyTraceDisplay
        """
        ax = self.open(ax, (6.0, 4.0))
        drawn = len(ax.lines)  # traces that are there already
        swaps = self.trace.size - 1
        trials = "" if self.n_trials is None else f" in {self.n_trials:,} trials"
        (self.line_,) = ax.plot(
            np.arange(self.trace.size),
            self.trace,
            linewidth=1.8,
            marker="o" if swaps == 0 else "",
            label=f"{self.name}: {swaps:,} exchanges{trials}",
            **line_style(drawn),
        )
        self.name_axes("exchanges of a prototype", "quadratic Renyi entropy (nats)")
        ax.set_xlim(left=0, auto=True)  # auto: the next trace may need more room
        self.legend_ = ax.legend(loc="lower right", frameon=False)
        return self
