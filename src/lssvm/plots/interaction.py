"""Which pairs of columns work together."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm._core.errors import InvalidInputError
from lssvm.explanations import Explanation
from lssvm.plots.beeswarm import MAP
from lssvm.plots.canvas import Display
from lssvm.plots.explained import explanation_of, single_output
from lssvm.plots.fitted import Estimator


class InteractionDisplay(Display):
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
    Time O(n p^2) beside the explanation.

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

    def __init__(self, explanation: Explanation, *, output: int | str = 0, limit: int = 12) -> None:
        if limit < 1:
            raise InvalidInputError(f"limit={limit!r} is not usable: draw at least 1 column.")
        one = single_output(explanation, output)
        if one.interactions is None:
            raise InvalidInputError(
                "The explanation has no interactions: ask for them with "
                "model.explain(X, interactions=True)."
            )
        self.explanation = one
        self.limit = limit
        self.strength = 2.0 * np.abs(one.interactions).mean(axis=0)
        own = np.arange(len(self.strength))
        self.strength[own, own] /= 2.0
        self.order = np.argsort(-one.importances, kind="stable")

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
    ) -> InteractionDisplay:
        """Draw the interactions in rows.

        Parameters
        ----------
        model : Estimator
            A fitted model of lssvm whose explanations are exact, or a pipeline that ends in one.
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
        InteractionDisplay
        """
        caller = f"{cls.__name__}.from_estimator"
        found = explanation_of(caller, model, X, background=background, interactions=True)
        return cls(found, output=output, limit=limit).plot(ax)

    def plot(self, ax: Any = None) -> InteractionDisplay:
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
