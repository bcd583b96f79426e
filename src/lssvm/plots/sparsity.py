"""Cross-validated error against the number of support vectors."""

from __future__ import annotations

from typing import Any

from lssvm._core.errors import InvalidInputError
from lssvm.plots.canvas import MARKERS, Display, line_style
from lssvm.plots.fitted import Estimator, require
from lssvm.reductions import SparsityPath


class SparsityDisplay(Display):
    """Error against the number of support vectors, with the choice of one standard error.

    The trade-off of [Mall2014, section V], measured by cross-validation inside the training set.
    Several models are overlaid by giving the axes of the first to the others; colour, dash and
    marker tell them apart.

    Parameters
    ----------
    path : SparsityPath
        See `lssvm.FixedSizeLSSVC.sparsity_path`.
    name : str, default="model"
        Name of the model in the legend.

    Attributes
    ----------
    path : SparsityPath
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib.lines.Line2D
        The mean error.
    band_ : matplotlib.collections.PolyCollection
        One standard error to each side.
    chosen_ : matplotlib.lines.Line2D
        The size that was chosen.
    legend_ : matplotlib.legend.Legend

    See Also
    --------
    SupportSpectrumDisplay : The support values of a model.

    Notes
    -----
    Drawing takes O(s) for s sizes; the path takes what `sparsity_path` says, unless the model has
    it already.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from lssvm import FixedSizeLSSVR
    >>> from lssvm.plots import SparsityDisplay
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = FixedSizeLSSVR(20, gamma=1.0, reduction="spfs", cv=5).fit(X, np.sin(X[:, 0]))
    >>> display = SparsityDisplay.from_estimator(model, name="sine")
    >>> display.legend_.get_texts()[0].get_text() == f"sine: {len(model.support_)} of 20 chosen"
    True
    """

    def __init__(self, path: SparsityPath, *, name: str = "model") -> None:
        if not isinstance(path, SparsityPath):
            raise InvalidInputError(
                f"The path is a {type(path).__name__}: give what sparsity_path() returns, one path "
                "at a time where there is one for each output."
            )
        self.path, self.name = path, name

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        output: int | None = None,
        name: str | None = None,
    ) -> SparsityDisplay:
        """Draw the sparsity path of a fitted estimator.

        Parameters
        ----------
        model : Estimator
            A fitted `FixedSizeLSSVC` or `FixedSizeLSSVR`, or a pipeline that ends in one.
        X, y : array-like or None, default=None
            Not needed: the model has its own record. Taken so that all displays are called alike.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw, such as ``ax_`` of another display; None: a new figure.
        output : int or None, default=None
            Which output, where prototypes were dropped for each by itself.
        name : str or None, default=None
            Name in the legend; None: that of the class.

        Returns
        -------
        SparsityDisplay
        """
        last = cls.fitted(model)
        require(last, ("sparsity_path",), "a picture of the sparsity")
        path = last.sparsity_path()
        if isinstance(path, list):
            if output is None or not -len(path) <= output < len(path):
                raise InvalidInputError(
                    f"output={output!r}, but the model has a sparsity path for each of its "
                    f"{len(path)} outputs: give a number from 0 to {len(path) - 1}."
                )
            path = path[output]
        return cls(path, name=name or type(last).__name__).plot(ax)

    def plot(self, ax: Any = None) -> SparsityDisplay:
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        SparsityDisplay
        """
        ax = self.open(ax, (6.0, 4.0))
        drawn = len(ax.collections)  # paths that are there already
        path, style = self.path, line_style(drawn)
        colour = style["color"]
        (self.line_,) = ax.plot(path.sizes, path.mean, linewidth=1.8, **style)
        ends = path.mean - path.std_error, path.mean + path.std_error
        self.band_ = ax.fill_between(path.sizes, *ends, color=colour, alpha=0.18, linewidth=0)
        mark = {"marker": MARKERS[drawn % len(MARKERS)], "markersize": 9, "linestyle": "none"}
        (self.chosen_,) = ax.plot(
            [path.chosen],
            path.mean[path.sizes == path.chosen],
            color=colour,
            markeredgecolor="black",
            label=f"{self.name}: {path.chosen} of {path.sizes[-1]} chosen",
            **mark,
        )
        ax.set_xscale("log")
        self.name_axes("support vectors", "cross-validated squared error")
        self.legend_ = ax.legend(loc="upper right", frameon=False)
        return self
