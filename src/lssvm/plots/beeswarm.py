"""The values of all rows, one line of points for every column."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.explanations import Explanation
from lssvm.plots.canvas import Display
from lssvm.plots.explained import explanation_of, ranks, single_output, spoken
from lssvm.plots.fitted import Estimator

MAP = "cividis"
"""Colours of low and high values, which readers with any kind of colour vision tell apart."""


class BeeswarmDisplay(Display):
    """Values of the columns for many rows: a point is a row, its colour the column's own value.

    Columns are ordered by the mean size of their values; points that would lie on each other are
    set side by side. Texts and missing values are grey.

    Parameters
    ----------
    explanation : Explanation
        What ``model.explain(X)`` returns.
    output : int or str, default=0
        Which of several outputs.
    limit : int, default=12
        How many columns are drawn at most.

    Attributes
    ----------
    explanation : Explanation
        Of the output.
    order : int ndarray
        Columns from the most important one to the least.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    points_ : list of matplotlib.collections.PathCollection
        One for every column that is drawn.
    colorbar_ : matplotlib.colorbar.Colorbar

    See Also
    --------
    WaterfallDisplay : One row.
    DependenceDisplay : One column.

    Notes
    -----
    Time O(n log n) for every column.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.plots import BeeswarmDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = LSSVR(C=10.0, gamma=0.1).fit(X, X[:, 1] + 3 * X[:, 2])
    >>> BeeswarmDisplay.from_estimator(model, X).order
    array([2, 1, 0])
    """

    def __init__(self, explanation: Explanation, *, output: int | str = 0, limit: int = 12) -> None:
        if limit < 1:
            raise InvalidInputError(f"limit={limit!r} is not usable: draw at least 1 column.")
        self.explanation = single_output(explanation, output)
        self.limit = limit
        self.order = np.argsort(-self.explanation.importances, kind="stable")

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        background: Any = None,
        output: int | str = 0,
        limit: int = 12,
    ) -> BeeswarmDisplay:
        """Draw the explanations of rows.

        Parameters
        ----------
        model : Estimator
            A fitted model of lssvm, or a pipeline that ends in one.
        X : table of n rows
            Rows to explain.
        y : array-like or None, default=None
            Not needed; taken so that all displays are called alike.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        background : table or None, default=None
            As ``explain`` takes it.
        output : int or str, default=0
            Which of several outputs.
        limit : int, default=12
            How many columns are drawn at most.

        Returns
        -------
        BeeswarmDisplay
        """
        caller = f"{cls.__name__}.from_estimator"
        found = explanation_of(caller, model, X, background=background)
        return cls(found, output=output, limit=limit).plot(ax)

    def plot(self, ax: Any = None) -> BeeswarmDisplay:
        """Draw the points.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        BeeswarmDisplay
        """
        one, drawn = self.explanation, self.order[: self.limit]
        ax = self.open(ax, (6.8, 1.2 + 0.42 * len(drawn)))
        ax.axvline(0.0, color="0.6", linewidth=0.8, zorder=0)
        span = float(np.ptp(one.values[:, drawn])) or 1.0
        size = float(np.clip(900.0 / len(one), 5.0, 22.0))
        self.points_ = []
        for place, column in enumerate(drawn):
            values = one.values[:, column]
            order = ranks(one.data[:, column])
            known = ~np.isnan(order)
            heights = place + swarm(values, span)
            if not known.all():
                ax.scatter(values[~known], heights[~known], s=size, color="0.6", linewidths=0)
            points = ax.scatter(
                values[known],
                heights[known],
                s=size,
                c=order[known],
                cmap=MAP,
                vmin=0.0,
                vmax=1.0,
                linewidths=0,
            )
            self.points_.append(points)
        ax.set_yticks(range(len(drawn)), [one.feature_names[i] for i in drawn])
        ax.set_ylim(len(drawn) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel(f"what the column adds to {spoken(one)}")
        self.colorbar_ = self.figure_.colorbar(
            self.points_[0], ax=ax, ticks=[0.0, 1.0], aspect=30, pad=0.02
        )
        self.colorbar_.set_ticklabels(["low", "high"])
        self.colorbar_.set_label("value of the column", labelpad=-12)
        self.colorbar_.outline.set_visible(False)
        return self


def swarm(values: FloatArray, span: float, bins: int = 90, width: float = 0.38) -> FloatArray:
    """Return offsets that set points of about the same value side by side.

    Parameters
    ----------
    values : array of shape (n,)
    span : float
        Width of the axis, of which points share a bin.
    bins : int, default=90
    width : float, default=0.38
        Largest offset.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.plots.beeswarm import swarm
    >>> swarm(np.array([0.0, 0.0, 5.0]), 5.0).round(2)
    array([0.  , 0.38, 0.  ])
    """
    place = np.round(values / span * bins).astype(np.int64)
    order = np.lexsort((np.arange(len(values)), place))
    first = np.searchsorted(place[order], place[order], "left")
    within = np.empty(len(values), dtype=np.int64)
    within[order] = np.arange(len(values)) - first
    sides = np.where(within % 2 == 0, -1, 1) * ((within + 1) // 2)
    return np.asarray(sides * (width / max(int(np.abs(sides).max(initial=0)), 1)))
