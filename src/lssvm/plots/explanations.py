"""Displays of explanations: one row, one column, all of them, and pairs of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.data.columns import RawColumn, read_column
from lssvm.explanations import Explanation
from lssvm.plots.base import COLOURS, MARKERS, Display, Estimator, transformed

UP, DOWN = "#D55E00", "#0072B2"
"""Colours of what raises and of what lowers an output."""
MAP = "cividis"
"""Colours of low and high values, for readers with any kind of colour vision."""


class ExplanationDisplay(Display):
    """What displays of explanations share.

    Attributes
    ----------
    explanation : Explanation
        Of the output that is drawn.
    """

    explanation: Explanation

    @classmethod
    def explain(cls, model: Estimator, X: Any, background: Any, **options: Any) -> Explanation:
        """Return the explanation of rows by a model, or by the last step of a pipeline.

        Parameters
        ----------
        model : Estimator
            A fitted model of lssvm, or a pipeline that ends in one.
        X : table of n rows
            Rows to explain.
        background : table or None
            As ``explain`` of the model takes it, but before the steps of a pipeline.
        **options : object
            As ``explain`` of the model takes them.
        """
        last = cls.fitted(model, "explain")
        if X is None:
            raise InvalidInputError(
                f"{cls.__name__}.from_estimator needs X, the rows to explain: X did not come."
            )
        if background is not None:
            background = transformed(model, background)
        explanation: Explanation = last.explain(transformed(model, X), background, **options)
        return explanation

    def __init__(self, explanation: Explanation, *, output: int | str = 0, limit: int = 12) -> None:
        if not isinstance(explanation, Explanation):
            raise InvalidInputError(
                f"A {type(explanation).__name__} came in place of an explanation: give what "
                "model.explain(X) returns."
            )
        if not len(explanation):
            raise InvalidInputError("The explanation has no rows: explain at least one.")
        if limit < 1:
            raise InvalidInputError(f"limit={limit!r} is not usable: draw at least 1 column.")
        self.explanation, self.limit = explanation.output(output), limit
        self.order = np.argsort(-self.explanation.importances, kind="stable")

    def to_shap(self) -> Any:
        """Return what is drawn as a ``shap.Explanation``, for the plots of `shap`.

        Examples
        --------
        ``shap.plots.beeswarm(BeeswarmDisplay.from_estimator(model, X).to_shap())``
        """
        return self.explanation.to_shap()

    @property
    def output_name(self) -> str:
        """What is explained, in words."""
        (name,) = self.explanation.output_names
        return "the prediction" if name == "prediction" else f"the score of {name!r}"

    def column_number(self, column: int | str | None) -> int:
        """Return the position of a column, the most important one for None.

        Parameters
        ----------
        column : int, str or None
            Position or name.
        """
        names = self.explanation.feature_names
        if column is None:
            return int(self.order[0])
        if isinstance(column, str) and column in names:
            return names.index(column)
        if not isinstance(column, str) and 0 <= column < len(names):
            return int(column)
        raise InvalidInputError(
            f"column={column!r} is not there: choose among {', '.join(names[:20])}"
            f"{', ...' if len(names) > 20 else ''}."
        )

    def raw_column(self, j: int) -> RawColumn:
        """Return the values of a column in the explained rows.

        Parameters
        ----------
        j : int
            Its position.
        """
        return read_column(self.explanation.feature_names[j], self.explanation.data[:, j])

    def colour_bar(self, points: Any, label: str) -> Any:
        """Draw the scale of points whose colours follow ranks.

        Parameters
        ----------
        points : matplotlib.collections.PathCollection
            The points.
        label : str
            What the colours are.
        """
        place = {"ax": self.ax_, "ticks": [0.0, 1.0], "aspect": 30, "pad": 0.02}
        bar = self.figure_.colorbar(points, **place)
        bar.set_ticklabels(["low", "high"])
        bar.set_label(label, labelpad=-12)
        bar.outline.set_visible(False)
        return bar


def value_text(value: Any) -> str:
    """Return a value of a table in a few characters.

    Examples
    --------
    >>> from lssvm.plots.explanations import value_text
    >>> value_text(-0.12345), value_text(19620.4), value_text("cook"), value_text(float("nan"))
    ('−0.1235', '19,620', 'cook', 'missing')
    """
    if value is None or value != value:
        return "missing"
    if isinstance(value, (float, np.floating)):
        number = float(value)
        text = f"{number:,.0f}" if 1e4 <= abs(number) < 1e9 else f"{number:.4g}"
        return text.replace("-", "\u2212")
    text = str(value).removesuffix(" 00:00:00")
    return text if len(text) <= 20 else f"{text[:19]}…"


def ranks(column: RawColumn) -> FloatArray:
    """Return values of a column between 0 and 1 by their order, NaN where missing.

    Examples
    --------
    >>> from lssvm.data.columns import read_column
    >>> from lssvm.plots.explanations import ranks
    >>> ranks(read_column("a", [5.0, 100.0, None, 6.0]))
    array([0. , 1. , nan, 0.5])
    """
    numbers = column.as_numbers()
    known = ~np.isnan(numbers)
    levels, order = np.unique(numbers[known], return_inverse=True)
    numbers[known] = order / max(len(levels) - 1, 1)
    return numbers


def by_rank(order: FloatArray) -> dict[str, Any]:
    """Return the look of points whose colours follow ranks from 0 to 1."""
    return {"c": order, "cmap": MAP, "vmin": 0.0, "vmax": 1.0, "linewidths": 0}


class ColumnsDisplay(ExplanationDisplay):
    """The columns of an explanation, the most important one first."""

    options: ClassVar[dict[str, bool]] = {}  # of ``explain``

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
        explanation = cls.explain(model, X, background, **cls.options)
        return cls(explanation, output=output, limit=limit).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the columns."""
        raise NotImplementedError


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
            values, shown = one.values[:, column], self.raw_column(column)
            order = ranks(shown)
            known = ~np.isnan(order) & (shown.kind != "category")
            heights = place + swarm(values, span)
            if not known.all():
                ax.scatter(values[~known], heights[~known], s=size, color="0.6", linewidths=0)
            places, look = (values[known], heights[known]), by_rank(order[known])
            self.points_.append(ax.scatter(*places, s=size, **look))
        ax.set_yticks(range(len(drawn)), [one.feature_names[i] for i in drawn])
        ax.set_ylim(len(drawn) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel(f"what the column adds to {self.output_name}")
        self.colorbar_ = self.colour_bar(self.points_[0], "value of the column")
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


class DependenceDisplay(ExplanationDisplay):
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
        the column, or the strongest interaction where those are known. A few texts have a
        colour and a marker each.
    output : int or str, default=0
        Which of several outputs.

    Attributes
    ----------
    explanation : Explanation
        Of the output.
    column, colour : int
        Positions of the columns; ``colour`` is -1 where there is one column only.
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
        super().__init__(explanation, output=output)
        self.column = self.column_number(column)
        self.colour = self.companion() if colour is None else self.column_number(colour)

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
        explanation = cls.explain(model, X, background)
        return cls(explanation, column, colour=colour, output=output).plot(ax)

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
        drawn, values, errors = self.raw_column(j), one.values[:, j], one.errors[:, j]
        x = drawn.values
        if drawn.kind == "category":
            codes, levels = _levels(drawn)
            x = codes + np.random.default_rng(0).uniform(-0.2, 0.2, len(codes))
            turned = {"rotation": 30, "ha": "right"} if sum(map(len, levels)) > 60 else {}
            ax.set_xticks(range(len(levels)), levels, **turned)
        ax.axhline(0.0, color="0.6", linewidth=0.8, zorder=0)
        if errors.any():
            ax.errorbar(x, values, yerr=2 * errors, fmt="none", ecolor="0.75", linewidth=0.8)
        size = float(np.clip(1500.0 / len(one), 7.0, 28.0))
        self.points_, self.colorbar_ = [], None
        other = None if self.colour < 0 else self.raw_column(self.colour)
        if other is None:
            self.points_.append(ax.scatter(x, values, s=size, color=COLOURS[0], linewidths=0))
        elif other.kind == "category" and len(_levels(other)[1]) <= len(COLOURS):
            codes, levels = _levels(other)
            for k, level in enumerate(levels):
                look = {"color": COLOURS[k], "marker": MARKERS[k], "linewidths": 0, "zorder": 2}
                rows = codes == k
                self.points_.append(ax.scatter(x[rows], values[rows], s=size, label=level, **look))
            self.legend_ = self.legend_beside(title=other.name)
        else:
            look = by_rank(np.nan_to_num(ranks(other), nan=0.5))
            self.points_.append(ax.scatter(x, values, s=size, zorder=2, **look))
            self.colorbar_ = self.colour_bar(self.points_[0], other.name)
        ax.set(xlabel=drawn.name, ylabel=f"what it adds to {self.output_name}")
        return self

    def companion(self) -> int:
        """Return the column that goes most with differences between rows of about the same value.

        The strongest interaction where these are known; -1 where there is no other column.
        """
        one, p = self.explanation, len(self.explanation.feature_names)
        if p == 1:
            return -1
        if one.interactions is not None:
            strength = np.abs(one.interactions[:, self.column]).mean(axis=0)
        else:
            ordered = [np.nan_to_num(ranks(self.raw_column(k)), nan=0.5) for k in range(p)]
            rows = np.argsort(ordered[self.column], kind="stable")
            steps = np.diff(one.values[rows, self.column])
            moves = [np.diff(values[rows]) for values in ordered]
            strength = np.array([_goes_with(steps, move) for move in moves])
        strength[self.column] = -1.0
        return int(np.argmax(strength))


def _levels(column: RawColumn) -> tuple[FloatArray, list[str]]:
    """Return the level of every row of a category, and the names; the last one may be missing."""
    missing = ["missing"] * bool(column.missing.any())
    codes = np.where(column.missing, len(column.levels), column.values)
    return codes.astype(np.float64), [*column.levels, *missing]


def _goes_with(steps: FloatArray, moves: FloatArray) -> float:
    """Return how much steps between neighbours go with those of another column.

    The sign of the effect may change along the column: ten neighbours at a time.
    """
    size = float(np.sqrt((moves**2).sum()))
    if size == 0:
        return 0.0
    return float(np.abs(np.add.reduceat(steps * moves, np.arange(0, len(steps), 10))).sum()) / size


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

    options: ClassVar[dict[str, bool]] = {"interactions": True}

    def __init__(self, explanation: Explanation, *, output: int | str = 0, limit: int = 12) -> None:
        super().__init__(explanation, output=output, limit=limit)
        pairs = self.explanation.interactions
        if pairs is None:
            raise InvalidInputError(
                "The explanation has no interactions: compute them with "
                "model.explain(X, interactions=True)."
            )
        self.strength = 2.0 * np.abs(pairs).mean(axis=0)
        self.strength[np.diag_indices_from(self.strength)] /= 2.0

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
        place = {"ha": "center", "va": "center", "fontsize": "x-small"}
        for (i, k), value in np.ndenumerate(table):
            colour = "black" if i == k or value > 0.6 * largest else "white"
            ax.text(k, i, f"{value:.2g}", color=colour, **place)
        self.colorbar_ = self.figure_.colorbar(self.image_, ax=ax, aspect=30, pad=0.02)
        self.colorbar_.set_label("mean size of the interaction")
        self.colorbar_.outline.set_visible(False)
        return self


class WaterfallDisplay(ExplanationDisplay):
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
        if isinstance(explanation, Explanation):
            n = len(explanation)
            if not -n <= row < n:
                raise InvalidInputError(f"row={row!r} is not there: the explanation has {n} rows.")
            explanation = explanation[row]
        super().__init__(explanation, output=output, limit=limit)

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
        explanation = cls.explain(model, X, background)
        return cls(explanation, row, output=output, limit=limit).plot(ax)

    def rows(self, names: Sequence[str] | None = None) -> list[tuple[str, float, float]]:
        """Return label, value and standard error of the columns; the last ones are added up.

        Parameters
        ----------
        names : sequence of str or None, default=None
            Names of the columns; None: those of the explanation.
        """
        one, names = self.explanation, names or self.explanation.feature_names
        values, errors = one.values[0], one.errors[0]
        used = self.order[(values[self.order] != 0) | (errors[self.order] != 0)]
        order = used if len(used) else self.order[:1]  # without columns that the model has dropped
        single = len(order) if len(order) <= self.limit else max(self.limit - 1, 1)
        rows = [
            (f"{names[i]} = {value_text(one.data[0, i])}", float(values[i]), float(errors[i]))
            for i in order[:single]
        ]
        if len(rest := order[single:]):
            error = float(np.sqrt((errors[rest] ** 2).sum()))
            rows.append((f"{len(rest)} others", float(values[rest].sum()), error))
        return rows

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
        labels, steps, error = zip(*self.rows(), strict=True)
        base = float(one.base_values[0])
        # The smallest is at the bottom, next to the base.
        ends = base + np.cumsum(steps[::-1])[::-1]
        starts = ends - steps
        ax = self.open(ax, (6.4, 1.3 + 0.34 * len(steps)))
        places = np.arange(len(steps))
        colours = [UP if step >= 0 else DOWN for step in steps]
        self.bars_ = ax.barh(places, steps, left=starts, height=0.62, color=colours)
        if any(error):
            look = {"fmt": "none", "ecolor": "black", "capsize": 2}
            ax.errorbar(ends, places, xerr=2 * np.array(error), **look)
        for k in places[:-1]:  # where a bar begins, the one below has ended
            ax.plot([starts[k]] * 2, [k + 0.31, k + 0.69], color="0.5", linewidth=0.8)
        final = float(ends[0])
        ax.plot([base] * 2, [-0.5, len(steps) - 0.4], color="0.6", linewidth=0.8, linestyle=":")
        low, high = min(starts.min(), ends.min(), base), max(starts.max(), ends.max(), base)
        room = 0.16 * max(high - low, 1e-12)
        labels_of_bars = [f"{step:+.3g}" for step in steps]
        texts = ax.bar_label(self.bars_, labels_of_bars, padding=3, size="small")
        for text, colour in zip(texts, colours, strict=True):
            text.set_color(colour)
        ax.set_xlim(low - room, high + room)
        ax.set_ylim(len(steps) - 0.4, -0.6)
        ax.set_yticks(places, labels)
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel(f"{self.output_name}: {base:.4g} on average, {final:.4g} for this row")
        return self
