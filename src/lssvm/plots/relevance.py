"""Bars of the relevance of the features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.plots.canvas import COLOURS, Display
from lssvm.plots.fitted import Estimator, require


class RelevanceDisplay(Display):
    r"""Shares of the features in what the kernel sees, as bars from large to small.

    A model with ``gamma="ard"`` has found a length scale for every feature (eq. (3.69) of
    [Suykens2002]_); the bar of feature l is :math:`\gamma_l \operatorname{var}(x_l)` divided by
    the sum over all features.

    Parameters
    ----------
    shares : array-like of shape (d,)
        Not negative.
    names : array-like of str of shape (d,), optional
        Names of the features; None: x0, x1, ...
    limit : int, default=20
        How many features are drawn at most; the others are added up in one bar.

    Attributes
    ----------
    shares : ndarray of shape (d,)
        In the order of the features.
    order : int ndarray of shape (d,)
        Features from the largest share to the smallest.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    bars_ : matplotlib.container.BarContainer

    Notes
    -----
    Time O(d log d).

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from lssvm.plots import RelevanceDisplay
    >>> display = RelevanceDisplay([0.1, 0.7, 0.2], ["age", "weight", "height"]).plot()
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['weight', 'height', 'age']
    """

    def __init__(
        self, shares: ArrayLike, names: ArrayLike | None = None, *, limit: int = 20
    ) -> None:
        values = np.asarray(shares, dtype=np.float64)
        if values.ndim != 1 or values.size == 0 or not np.all(values >= 0):
            raise InvalidInputError(
                f"The shares have shape {values.shape}: give one number >= 0 per feature, shape "
                "(d,)."
            )
        labels = [f"x{i}" for i in range(values.size)] if names is None else list(np.asarray(names))
        if len(labels) != values.size:
            raise InvalidInputError(
                f"There are {len(labels)} names for {values.size} features: give one for each."
            )
        if limit < 1:
            raise InvalidInputError(f"limit={limit!r} is not usable: draw at least 1 feature.")
        self.shares: FloatArray = values
        self.names, self.limit = [str(label) for label in labels], limit
        self.order = np.argsort(-values, kind="stable")

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        names: ArrayLike | None = None,
        limit: int = 20,
    ) -> RelevanceDisplay:
        """Draw the relevance of the features of a fitted estimator.

        Parameters
        ----------
        model : Estimator
            A model fitted with ``gamma="ard"``, or a pipeline that ends in one.
        X : DataFrame or None, default=None
            Names the features, where it has columns and the model has not seen names.
        y : array-like or None, default=None
            Not needed; taken so that all displays are called alike.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        names : array-like of str of shape (d,), optional
            None: the column names that the model has seen, those of X, or x0, x1, ...
        limit : int, default=20
            How many features are drawn at most.

        Returns
        -------
        RelevanceDisplay
        """
        last = cls.fitted(model)
        require(last, ("feature_relevance_",), "a picture of the relevance of features")
        if names is None:
            names = getattr(last, "feature_names_in_", getattr(X, "columns", None))
        return cls(last.feature_relevance_, names, limit=limit).plot(ax)

    def plot(self, ax: Any = None) -> RelevanceDisplay:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        RelevanceDisplay
        """
        shown, rest = np.split(self.order, [self.limit])
        values, labels = self.shares[shown].tolist(), [self.names[i] for i in shown]
        if len(rest):
            values.append(float(self.shares[rest].sum()))
            labels.append(f"{len(rest)} others")
        ax = self.open(ax, (6.0, 0.8 + 0.28 * len(values)))
        places = np.arange(len(values))
        self.bars_ = ax.barh(places, values, height=0.7, color=COLOURS[0])
        if len(rest):
            self.bars_[-1].set(facecolor="white", edgecolor=COLOURS[0], hatch="//")
        ax.set_yticks(places, labels)
        ax.invert_yaxis()
        ax.set_xlim(left=0.0)
        ax.set_xlabel("relevance (share of the feature in the mean exponent of the kernel)")
        return self
