"""What a column adds, against its own value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import BoolArray, FloatArray
from lssvm.explanations import Explanation
from lssvm.plots.beeswarm import MAP
from lssvm.plots.canvas import COLOURS, MARKERS, Display
from lssvm.plots.explained import (
    as_dates,
    as_numbers,
    column_number,
    explanation_of,
    ranks,
    single_output,
    spoken,
)
from lssvm.plots.fitted import Estimator


class DependenceDisplay(Display):
    """The values of one column against the column itself, a point for every row.

    The colour is another column: the one that explains best why equal values of the column add
    different amounts. Whiskers are two standard errors, where values are sampled.

    Parameters
    ----------
    explanation : Explanation
        What ``model.explain(X)`` returns.
    column : int, str or None, default=None
        None: the most important one.
    colour : int, str or None, default=None
        The other column; None: the one that goes most with the differences between neighbours in
        the column, or the strongest interaction where those were asked for. A few texts have a
        colour and a marker each.
    output : int or str, default=0
        Which of several outputs.

    Attributes
    ----------
    explanation : Explanation
        Of the output.
    column, colour : int
        Numbers of the columns; ``colour`` is -1 where there is one column only.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    points_ : list of matplotlib.collections.PathCollection
    colorbar_ : matplotlib.colorbar.Colorbar or None

    See Also
    --------
    InteractionDisplay : Which pairs of columns work together.

    Notes
    -----
    Time O(n p) for p columns.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.plots import DependenceDisplay
    >>> X = np.random.default_rng(0).normal(size=(80, 4))
    >>> model = LSSVR(C=10.0, gamma=0.1).fit(X, 2 * X[:, 0] * X[:, 2])
    >>> display = DependenceDisplay.from_estimator(model, X, column=0)
    >>> display.ax_.get_xlabel(), display.colour
    ('x0', 2)
    """

    def __init__(
        self,
        explanation: Explanation,
        column: int | str | None = None,
        *,
        colour: int | str | None = None,
        output: int | str = 0,
    ) -> None:
        self.explanation = single_output(explanation, output)
        self.column = column_number(self.explanation, column)
        if colour is not None:
            self.colour = column_number(self.explanation, colour)
        else:
            self.colour = companion(self.explanation, self.column)

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        background: Any = None,
        column: int | str | None = None,
        colour: int | str | None = None,
        output: int | str = 0,
    ) -> DependenceDisplay:
        """Draw what a column adds for rows.

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
        column, colour : int, str or None, default=None
            The column, and the one that colours the points.
        output : int or str, default=0
            Which of several outputs.

        Returns
        -------
        DependenceDisplay
        """
        caller = f"{cls.__name__}.from_estimator"
        found = explanation_of(caller, model, X, background=background)
        return cls(found, column, colour=colour, output=output).plot(ax)

    def plot(self, ax: Any = None) -> DependenceDisplay:
        """Draw the points.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        DependenceDisplay
        """
        one, j = self.explanation, self.column
        ax = self.open(ax, (6.0, 4.0))
        x, ticks = _positions(one.data[:, j])
        values, errors = one.values[:, j], one.errors[:, j]
        ax.axhline(0.0, color="0.6", linewidth=0.8, zorder=0)
        if errors.any():
            ax.errorbar(x, values, yerr=2 * errors, fmt="none", ecolor="0.75", linewidth=0.8)
        size = float(np.clip(1500.0 / len(one), 7.0, 28.0))
        self.points_, self.colorbar_ = [], None
        levels = None if self.colour < 0 else _levels(one.data[:, self.colour])
        if levels is not None:
            for k, (level, rows) in enumerate(levels.items()):
                look = {"color": COLOURS[k], "marker": MARKERS[k], "linewidths": 0, "zorder": 2}
                self.points_.append(ax.scatter(x[rows], values[rows], s=size, label=level, **look))
            self.legend_ = self.legend_beside(title=one.feature_names[self.colour])
        elif self.colour < 0:
            self.points_.append(ax.scatter(x, values, s=size, color=COLOURS[0], linewidths=0))
        else:
            order = np.nan_to_num(ranks(one.data[:, self.colour]), nan=0.5)
            look = {"c": order, "cmap": MAP, "vmin": 0.0, "vmax": 1.0, "linewidths": 0, "zorder": 2}
            self.points_.append(ax.scatter(x, values, s=size, **look))
            self.colorbar_ = self.figure_.colorbar(
                self.points_[0], ax=ax, ticks=[0.0, 1.0], aspect=30, pad=0.02
            )
            self.colorbar_.set_ticklabels(["low", "high"])
            self.colorbar_.set_label(one.feature_names[self.colour], labelpad=-12)
            self.colorbar_.outline.set_visible(False)
        if ticks is not None:
            turned = {"rotation": 30, "ha": "right"} if sum(map(len, ticks)) > 60 else {}
            ax.set_xticks(range(len(ticks)), ticks, **turned)
        ax.set_xlabel(one.feature_names[j])
        ax.set_ylabel(f"what it adds to {spoken(one)}")
        return self


def _positions(values: Any) -> tuple[Any, list[str] | None]:
    """Return where the values of a column lie, and labels where they are no numbers."""
    known = as_dates(values) if as_dates(values) is not None else as_numbers(values)
    if known is not None:
        return known, None
    levels, place = np.unique(_texts(values), return_inverse=True)
    spread = np.random.default_rng(0).uniform(-0.2, 0.2, len(place))
    return place + spread, levels.tolist()


def _texts(values: Any) -> NDArray[Any]:
    return np.array(["missing" if v is None or v != v else str(v) for v in values])


def _levels(values: Any) -> dict[str, BoolArray] | None:
    """Return the rows of every level of a column of a few texts, None for another column."""
    if as_numbers(values) is not None:
        return None
    texts = _texts(values)
    levels = np.unique(texts)
    if len(levels) > len(COLOURS):
        return None
    return {str(level): texts == level for level in levels}


def _order(values: Any) -> FloatArray:
    """Return numbers of a column between 0 and 1 by their order, texts by the alphabet."""
    if as_numbers(values) is not None:
        return np.nan_to_num(ranks(values), nan=0.5)
    return ranks(np.unique(_texts(values), return_inverse=True)[1])


def companion(explanation: Explanation, column: int) -> int:
    """Return the column that goes most with differences between rows of about the same value.

    Parameters
    ----------
    explanation : Explanation
        Of one output.
    column : int

    Returns
    -------
    int
        -1 where there is no other column.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.plots.dependence import companion
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> companion(LSSVR(C=10.0, gamma=0.1).fit(X, X[:, 0] * X[:, 1]).explain(X), 0)
    1
    """
    p = len(explanation.feature_names)
    if p == 1:
        return -1
    if explanation.interactions is not None:
        strength = np.abs(explanation.interactions[:, column]).mean(axis=0)
    else:
        order = np.argsort(_order(explanation.data[:, column]), kind="stable")
        steps = np.diff(explanation.values[order, column])
        strength = np.zeros(p)
        if len(steps):
            for other in range(p):
                strength[other] = _goes_with(steps, _order(explanation.data[order, other]))
    strength[column] = -1.0
    return int(np.argmax(strength))


def _goes_with(steps: FloatArray, other: FloatArray) -> float:
    """Return how much steps between neighbours go with those of another column.

    The sign of the effect may change along the column: ten neighbours at a time.
    """
    moved = np.diff(other)
    size = float(np.sqrt((moved**2).sum()))
    blocks = np.add.reduceat(steps * moved, np.arange(0, len(steps), 10))
    return float(np.abs(blocks).sum()) / size if size > 0 else 0.0
