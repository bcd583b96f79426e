"""Pictures of explanations.

First what they share: an explanation of a model, and columns in words.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import AnyArray, BoolArray, FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.explanations import Explanation
from lssvm.plots.base import (
    COLOURS,
    MARKERS,
    Display,
    Estimator,
    behind_steps,
    fitted_model,
    pyplot,
)

UP, DOWN = "#D55E00", "#0072B2"
"""Colours of what raises and of what lowers an output."""


def explanation_of(display: type[Display], model: Estimator, X: Any, **wishes: Any) -> Explanation:
    """Return the explanation of rows by a model, or by the last step of a pipeline.

    Parameters
    ----------
    display : class
        Which picture is drawn, for the messages.
    model : Estimator
        A fitted model of lssvm, or a pipeline that ends in one.
    X : table of n rows
    **wishes
        What ``explain`` takes; a ``background`` is a table like X.

    Returns
    -------
    Explanation
        Of the features that the last step of a pipeline sees.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.plots.explanations import BeeswarmDisplay, explanation_of
    >>> X = np.arange(6.0)[:, None]
    >>> explanation_of(BeeswarmDisplay, LSSVR().fit(X, X[:, 0]), X).values.shape
    (6, 1)
    """
    caller = f"{display.__name__}.from_estimator"
    pyplot(caller)
    if X is None:
        raise InvalidInputError(f"{caller} needs X, the rows to explain: X did not come.")
    last = fitted_model(model)
    if not hasattr(last, "explain"):
        raise InvalidInputError(
            f"{type(last).__name__} has no explain: give a model of lssvm, or a pipeline that "
            "ends in one."
        )
    if wishes.get("background") is not None:
        wishes["background"] = behind_steps(model, wishes["background"])
    found: Explanation = last.explain(behind_steps(model, X), **wishes)
    return found


def single_output(explanation: Explanation, output: int | str) -> Explanation:
    """Return the explanation of one output, checked.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.plots.explanations import single_output
    >>> X = np.arange(6.0)[:, None]
    >>> single_output(LSSVR().fit(X, X[:, 0]).explain(X), 0).values.ndim
    2
    """
    if not isinstance(explanation, Explanation):
        raise InvalidInputError(
            f"A {type(explanation).__name__} came in place of an explanation: give what "
            "model.explain(X) returns."
        )
    if not len(explanation):
        raise InvalidInputError("The explanation has no rows: explain at least one.")
    return explanation.output(output)


def column_number(explanation: Explanation, column: int | str | None) -> int:
    """Return the number of a column, the most important one for None.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.plots.explanations import column_number
    >>> X = np.arange(6.0)[:, None]
    >>> column_number(LSSVR().fit(X, X[:, 0]).explain(X), "x0")
    0
    """
    names = explanation.feature_names
    if column is None:
        return int(np.argmax(explanation.importances))
    if isinstance(column, str) and column in names:
        return names.index(column)
    if not isinstance(column, str) and 0 <= column < len(names):
        return int(column)
    raise InvalidInputError(
        f"column={column!r} is not there: choose among {', '.join(names[:20])}"
        f"{', ...' if len(names) > 20 else ''}."
    )


def shown(value: Any) -> str:
    """Return a value of a table in a few characters.

    Examples
    --------
    >>> from lssvm.plots.explanations import shown
    >>> shown(0.12345), shown(19620.4), shown("cook"), shown(float("nan")), shown(3.0)
    ('0.1235', '19,620', 'cook', '', '3')
    """
    if value is None:
        return ""
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if np.isnan(number):
            return ""
        return f"{number:,.0f}" if 1e4 <= abs(number) < 1e9 else f"{number:.4g}"
    text = str(value)
    return text if len(text) <= 18 else f"{text[:17]}…"


def spoken(explanation: Explanation) -> str:
    """Return what is explained, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVC
    >>> from lssvm.plots.explanations import spoken
    >>> X = np.arange(6.0)[:, None]
    >>> spoken(LSSVC().fit(X, ["a", "b"] * 3).explain(X))
    "the score of 'b'"
    """
    (name,) = explanation.output_names
    return "the prediction" if name == "prediction" else f"the score of {name!r}"


def ranks(values: Any) -> FloatArray:
    """Return numbers of a column between 0 and 1 by their order; NaN for what is no number.

    Examples
    --------
    >>> from lssvm.plots.explanations import ranks
    >>> ranks([5.0, 100.0, 6.0]), ranks(["b", "a", "b"])
    (array([0. , 1. , 0.5]), array([nan, nan, nan]))
    """
    out = np.full(len(values), np.nan)
    numbers = as_numbers(values)
    if numbers is None:
        return out
    known = ~np.isnan(numbers)
    levels, order = np.unique(numbers[known], return_inverse=True)
    out[known] = order / max(len(levels) - 1, 1)
    return out


def as_numbers(values: Any) -> FloatArray | None:
    """Return a column as numbers, dates as days; None where it holds texts.

    Examples
    --------
    >>> from lssvm.plots.explanations import as_numbers
    >>> as_numbers([1, None]), as_numbers(["a", "b"])
    (array([ 1., nan]), None)
    """
    column = np.array([np.nan if v is None else v for v in values], dtype=object)
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        dates = as_dates(values)
    if dates is None:
        return None
    return np.where(np.isnat(dates), np.nan, dates.astype(np.int64) / 86_400.0)


def as_dates(values: Any) -> NDArray[np.datetime64] | None:
    """Return a column of dates to the second, None for another one.

    Examples
    --------
    >>> from datetime import date
    >>> from lssvm.plots.explanations import as_dates
    >>> as_dates([date(2024, 5, 1), None]).tolist()[1] is None, as_dates(["2024"]) is None
    (True, True)
    """
    known = [v for v in values if v is not None and v == v]
    if not known or not all(isinstance(v, (datetime.date, np.datetime64)) for v in known):
        return None
    none = np.datetime64("NaT")
    return np.array([none if v is None or v != v else v for v in values], dtype="datetime64[s]")


MAP = "cividis"
"""Colours of low and high values, which readers with any kind of colour vision tell apart."""


def at_least_one(limit: int) -> int:
    """Return how many columns are drawn, if that is at least one."""
    if limit < 1:
        raise InvalidInputError(f"limit={limit!r} is not usable: draw at least 1 column.")
    return limit


def by_rank(order: FloatArray) -> dict[str, Any]:
    """Return the look of dots whose colours follow ranks from 0 to 1."""
    return {"c": order, "cmap": MAP, "vmin": 0.0, "vmax": 1.0, "linewidths": 0}


def low_to_high(display: Any, label: str) -> Any:
    """Draw the bar of colours that ranks have, for the first dots of a display."""
    beside = {"ax": display.ax_, "ticks": [0.0, 1.0], "aspect": 30, "pad": 0.02}
    bar = display.figure_.colorbar(display.points_[0], **beside)
    bar.set_ticklabels(["low", "high"])
    bar.set_label(label, labelpad=-12)
    bar.outline.set_visible(False)
    return bar


class ColumnsDisplay(Display, ABC):
    """The columns of an explanation, the most important one first."""

    wishes: ClassVar[dict[str, bool]] = {}  # what the explanation is asked for besides

    def __init__(self, explanation: Explanation, *, output: int | str = 0, limit: int = 12) -> None:
        self.limit, self.explanation = at_least_one(limit), single_output(explanation, output)
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
    ) -> Self:
        """Draw the explanations of rows, or the interactions in them.

        Parameters
        ----------
        model : Estimator
            A fitted model of lssvm, or a pipeline that ends in one. Interactions need one whose
            explanations are exact.
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
        found = explanation_of(cls, model, X, background=background, **cls.wishes)
        return cls(found, output=output, limit=limit).plot(ax)

    @abstractmethod
    def plot(self, ax: Any = None) -> Self:
        """Draw the columns."""


class BeeswarmDisplay(ColumnsDisplay):
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

    def plot(self, ax: Any = None) -> Self:
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
            places, look = (values[known], heights[known]), by_rank(order[known])
            self.points_.append(ax.scatter(*places, s=size, **look))
        ax.set_yticks(range(len(drawn)), [one.feature_names[i] for i in drawn])
        ax.set_ylim(len(drawn) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel(f"what the column adds to {spoken(one)}")
        self.colorbar_ = low_to_high(self, "value of the column")
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
    >>> from lssvm.plots.explanations import swarm
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
    ) -> Self:
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
        found = explanation_of(cls, model, X, background=background)
        return cls(found, column, colour=colour, output=output).plot(ax)

    def plot(self, ax: Any = None) -> Self:
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
            self.points_.append(ax.scatter(x, values, s=size, zorder=2, **by_rank(order)))
            self.colorbar_ = low_to_high(self, one.feature_names[self.colour])
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


def _texts(values: Any) -> AnyArray:
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
    >>> from lssvm.plots.explanations import companion
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


class InteractionDisplay(ColumnsDisplay):
    """Mean sizes of the interactions of all pairs of columns, as a table of colours.

    On the diagonal what a column adds by itself. An interaction is what two columns add together
    beyond what each adds without the other; half of it is in the value of each.

    Parameters
    ----------
    explanation : Explanation
        What ``model.explain(X, interactions=True)`` returns.
    output : int or str, default=0
        Which of several outputs.
    limit : int, default=12
        How many columns are drawn at most: the most important ones.

    Attributes
    ----------
    strength : ndarray of shape (p, p)
        Mean sizes: of whole interactions, and of the columns by themselves on the diagonal.
    order : int ndarray
        Columns from the most important one to the least.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    image_ : matplotlib.image.AxesImage
    colorbar_ : matplotlib.colorbar.Colorbar

    See Also
    --------
    DependenceDisplay : One column, coloured by another.

    Notes
    -----
    Time O(n p^2) in addition to the explanation.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.plots import InteractionDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> model = LSSVR(C=100.0, gamma=0.1).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    >>> strength = InteractionDisplay.from_estimator(model, X[:20]).strength
    >>> bool(strength[0, 1] > 5 * strength[0, 2])
    True
    """

    wishes: ClassVar[dict[str, bool]] = {"interactions": True}

    def __init__(self, explanation: Explanation, *, output: int | str = 0, limit: int = 12) -> None:
        super().__init__(explanation, output=output, limit=limit)
        pairs = self.explanation.interactions
        if pairs is None:
            raise InvalidInputError(
                "The explanation has no interactions: ask for them with "
                "model.explain(X, interactions=True)."
            )
        self.strength = 2.0 * np.abs(pairs).mean(axis=0)
        own = np.arange(len(self.strength))
        self.strength[own, own] /= 2.0

    def plot(self, ax: Any = None) -> Self:
        """Draw the table.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        InteractionDisplay
        """
        drawn = self.order[: self.limit]
        table = self.strength[np.ix_(drawn, drawn)]
        side = 2.2 + 0.42 * len(drawn)
        ax = self.open(ax, (side + 1.2, side), frame=True)
        pairs = np.where(np.eye(len(drawn), dtype=bool), np.nan, table)
        largest = float(np.nanmax(pairs, initial=0.0))
        ax.set_facecolor("0.92")  # of the diagonal, whose sizes would hide those of the pairs
        self.image_ = ax.imshow(pairs, cmap=MAP, vmin=0.0, vmax=largest or 1.0)
        names = [self.explanation.feature_names[i] for i in drawn]
        ax.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
        ax.set_yticks(range(len(names)), names)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        for (i, k), value in np.ndenumerate(table):
            colour = "black" if i == k or value > 0.6 * largest else "white"
            ax.text(
                k, i, f"{value:.2g}", ha="center", va="center", fontsize="x-small", color=colour
            )
        self.colorbar_ = self.figure_.colorbar(self.image_, ax=ax, aspect=30, pad=0.02)
        self.colorbar_.set_label("mean size of the interaction")
        self.colorbar_.outline.set_visible(False)
        return self


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
        self.limit, one = at_least_one(limit), single_output(explanation, output)
        if not -len(one) <= row < len(one):
            raise InvalidInputError(
                f"row={row!r} is not there: the explanation has {len(one)} rows."
            )
        self.explanation = one[row]
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
    ) -> Self:
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
        found = explanation_of(cls, model, X, background=background)
        return cls(found, row, output=output, limit=limit).plot(ax)

    def plot(self, ax: Any = None) -> Self:
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
        # The smallest is at the bottom, next to the base.
        ends = base + np.cumsum(steps[::-1])[::-1]
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
        said = ax.bar_label(self.bars_, [f"{step:+.3g}" for step in steps], padding=3, size="small")
        for text, colour in zip(said, colours, strict=True):
            text.set_color(colour)
        ax.set_xlim(low - room, high + room)
        ax.set_ylim(len(steps) - 0.4, -0.6)
        ax.set_yticks(places, labels)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel(f"{spoken(one)}: {base:.4g} on average, {final:.4g} for this row")
        return self


def _label(name: str, value: Any) -> str:
    text = shown(value)
    return f"{name} = {text}" if text else name
