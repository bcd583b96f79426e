"""What all pictures share: matplotlib itself, axes, legends, colours, markers and dashes."""

from __future__ import annotations

from typing import Any

from lssvm._core.errors import InvalidInputError, library
from lssvm.plots.fitted import Estimator, fitted_model

# Okabe and Ito's colours for readers with any kind of colour vision, the pale yellow left out.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#666666")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "p")
DASHES = ("-", "--", "-.", ":")


def pyplot(caller: str) -> Any:
    """Return ``matplotlib.pyplot``; raise an error that names the extra where it is missing.

    Parameters
    ----------
    caller : str
        What needs it, for the message.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from lssvm.plots.base import pyplot
    >>> pyplot("this example").__name__
    'matplotlib.pyplot'
    """
    return library("matplotlib.pyplot", f"{caller} needs matplotlib", "pip install lssvm[plots].")


class Display:
    """Where a picture was drawn, and how every picture begins and ends.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    legend_ : matplotlib.legend.Legend or None
    """

    ax_: Any
    figure_: Any
    legend_: Any = None

    @classmethod
    def fitted(cls, model: Estimator, **given: Any) -> Any:
        """Return the fitted model, or raise where it, matplotlib or the data are missing.

        Parameters
        ----------
        model : estimator
            Fitted, or a pipeline that ends in a fitted one.
        **given : object
            What has to be there, by its name; None is missing.
        """
        pyplot(f"{cls.__name__}.from_estimator")
        missing = [name for name, value in given.items() if value is None]
        if missing:
            raise InvalidInputError(
                f"{cls.__name__}.from_estimator needs {' and '.join(given)}, the data of the fit: "
                f"{' and '.join(missing)} did not come."
            )
        return fitted_model(model)

    def open(self, ax: Any, figsize: tuple[float, float], frame: bool = False) -> Any:
        """Return the axes to draw on, without the upper and the right line unless ``frame``.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None
            Where to draw; None: a new figure.
        figsize : (float, float)
            Inches of a new figure.
        frame : bool, default=False
            Whether all four lines around the axes are drawn.
        """
        plt = pyplot(f"{type(self).__name__}.plot")
        self.ax_ = plt.subplots(figsize=figsize, layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        if not frame:
            self.ax_.spines[["top", "right"]].set_visible(False)
        return self.ax_

    def name_axes(self, x: str, y: str) -> None:
        """Name the axes.

        Parameters
        ----------
        x, y : str
            Their names.
        """
        self.ax_.set(xlabel=x, ylabel=y)

    def star(self, x: float, y: float, label: str, colour: str) -> Any:
        """Mark the chosen place.

        Parameters
        ----------
        x, y : float
            Where it is.
        label : str
            Its name in the legend.
        colour : str
            As matplotlib takes it.
        """
        style = {"linestyle": "none", "marker": "*", "markersize": 17, "markeredgecolor": "white"}
        return self.ax_.plot(x, y, color=colour, label=label, zorder=5, **style)[0]

    def one_more_line(self, x: Any, y: Any, label: str) -> Any:
        """Draw a line in a style that the lines on the axes have not.

        Parameters
        ----------
        x, y : arrays of shape (n,)
            Places; a single one gets a marker.
        label : str
            Its name in the legend.
        """
        style = {"marker": "o" if len(x) == 1 else "", **line_style(len(self.ax_.lines))}
        return self.ax_.plot(x, y, linewidth=1.8, label=label, **style)[0]

    def legend_beside(self, **options: Any) -> Any:
        """Return a legend to the right of the axes.

        Parameters
        ----------
        **options : object
            As ``Axes.legend`` takes them.
        """
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
        return self.ax_.legend(frameon=False, **place, **options)

    def legend_above(self, **options: Any) -> Any:
        """Return a legend above the axes, in three columns.

        Parameters
        ----------
        **options : object
            As ``Axes.legend`` takes them.
        """
        place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
        return self.ax_.legend(ncols=3, frameon=False, fontsize="small", **place, **options)


def line_style(i: int) -> dict[str, Any]:
    """Return colour and dash of the i-th of several lines on the same axes."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i % len(DASHES)]}


def dot_style(i: int) -> dict[str, Any]:
    """Return colour and marker of the i-th class."""
    return {"facecolors": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
