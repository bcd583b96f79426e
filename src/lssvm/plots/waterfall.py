"""The way from the mean output to the output of one row, column by column."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm._core.errors import InvalidInputError
from lssvm.explanations import Explanation
from lssvm.plots.canvas import Display
from lssvm.plots.explained import DOWN, UP, explanation_of, shown, single_output, spoken
from lssvm.plots.fitted import Estimator


class WaterfallDisplay(Display):
    """What every column adds to the output of one row, from the mean of the background to it.

    Bars to the right raise the output, those to the left lower it; each begins where the one below
    it ends. Whiskers are two standard errors, where values are sampled.

    Parameters
    ----------
    explanation : Explanation
        What ``model.explain(X)`` returns.
    row : int, default=0
        Which of the explained rows.
    output : int or str, default=0
        Which of several outputs.
    limit : int, default=10
        How many columns are drawn at most; the others are added up in one bar.

    Attributes
    ----------
    explanation : Explanation
        Of the row and the output.
    order : int ndarray
        Columns from the largest value to the smallest.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    bars_ : matplotlib.container.BarContainer
        From the column of the largest value, drawn at the top, to the smallest.

    See Also
    --------
    BeeswarmDisplay : All rows at once.

    Notes
    -----
    Time O(p log p) for p columns.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.plots import WaterfallDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = LSSVR(C=10.0, gamma=0.1).fit(X, 2 * X[:, 0] + X[:, 1])
    >>> display = WaterfallDisplay.from_estimator(model, X[:1])
    >>> [text.get_text().split(" ")[0] for text in display.ax_.get_yticklabels()]
    ['x0', 'x1', 'x2']
    """

    def __init__(
        self, explanation: Explanation, row: int = 0, *, output: int | str = 0, limit: int = 10
    ) -> None:
        if limit < 1:
            raise InvalidInputError(f"limit={limit!r} is not usable: draw at least 1 column.")
        one = single_output(explanation, output)
        if not -len(one) <= row < len(one):
            raise InvalidInputError(
                f"row={row!r} is not there: the explanation has {len(one)} rows."
            )
        self.explanation = one[row]
        self.limit = limit
        self.order = np.argsort(-np.abs(self.explanation.values[0]), kind="stable")

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        background: Any = None,
        row: int = 0,
        output: int | str = 0,
        limit: int = 10,
    ) -> WaterfallDisplay:
        """Draw the explanation of one row.

        Parameters
        ----------
        model : Estimator
            A fitted model of lssvm, or a pipeline that ends in one.
        X : table of n rows
            Of which one is explained.
        y : array-like or None, default=None
            Not needed; taken so that all displays are called alike.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        background : table or None, default=None
            As ``explain`` takes it.
        row : int, default=0
            Which row of X.
        output : int or str, default=0
            Which of several outputs.
        limit : int, default=10
            How many columns are drawn at most.

        Returns
        -------
        WaterfallDisplay
        """
        caller = f"{cls.__name__}.from_estimator"
        found = explanation_of(caller, model, X, background=background)
        return cls(found, row, output=output, limit=limit).plot(ax)

    def plot(self, ax: Any = None) -> WaterfallDisplay:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        WaterfallDisplay
        """
        one = self.explanation
        values, errors = one.values[0], one.errors[0]
        alone = len(self.order) if len(self.order) <= self.limit else self.limit - 1
        drawn, rest = self.order[: max(alone, 1)], self.order[max(alone, 1) :]
        steps = [float(values[i]) for i in drawn]
        error = [float(errors[i]) for i in drawn]
        labels = [_label(one.feature_names[i], one.data[0, i]) for i in drawn]
        if len(rest):
            steps.append(float(values[rest].sum()))
            error.append(float(np.sqrt((errors[rest] ** 2).sum())))
            labels.append(f"{len(rest)} others")
        base = float(one.base_values[0])
        ends = (
            base + np.cumsum(steps[::-1])[::-1]
        )  # the smallest is at the bottom, next to the base
        starts = ends - steps
        ax = self.open(ax, (6.4, 1.3 + 0.34 * len(steps)))
        places = np.arange(len(steps))
        colours = [UP if step >= 0 else DOWN for step in steps]
        self.bars_ = ax.barh(places, steps, left=starts, height=0.62, color=colours)
        if any(error):
            ax.errorbar(
                ends, places, xerr=2 * np.array(error), fmt="none", ecolor="black", capsize=2
            )
        for k in places[:-1]:  # where a bar begins, the one below has ended
            ax.plot([starts[k]] * 2, [k + 0.31, k + 0.69], color="0.5", linewidth=0.8)
        final = float(ends[0])
        ax.plot([base] * 2, [-0.5, len(steps) - 0.4], color="0.6", linewidth=0.8, linestyle=":")
        low, high = min(starts.min(), ends.min(), base), max(starts.max(), ends.max(), base)
        room = 0.16 * max(high - low, 1e-12)
        for place, step, start, end in zip(places, steps, starts, ends, strict=True):
            right = step >= 0
            ax.text(
                max(start, end) + 0.15 * room if right else min(start, end) - 0.15 * room,
                place,
                f"{step:+.3g}",
                va="center",
                ha="left" if right else "right",
                fontsize="small",
                color=UP if right else DOWN,
            )
        ax.set_xlim(low - room, high + room)
        ax.set_ylim(len(steps) - 0.4, -0.6)
        ax.set_yticks(places, labels)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel(f"{spoken(one)}: {base:.4g} on average, {final:.4g} for this row")
        return self


def _label(name: str, value: Any) -> str:
    text = shown(value)
    return f"{name} = {text}" if text else name
