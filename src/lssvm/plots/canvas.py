"""What all pictures share: matplotlib itself, axes, colours, markers and dashes."""

from __future__ import annotations

from typing import Any

from lssvm._core.errors import MissingDependencyError

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
    >>> from lssvm.plots.canvas import pyplot
    >>> pyplot("this example").__name__
    'matplotlib.pyplot'
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            f"{caller} needs matplotlib, which is not installed: run `pip install lssvm[plots]`."
        ) from error
    return plt


def axes(caller: str, ax: Any, figsize: tuple[float, float]) -> Any:
    """Return ``ax``, or the axes of a new figure that makes room for labels and legends.

    Parameters
    ----------
    caller : str
        What needs them, for the message where matplotlib is missing.
    ax : matplotlib.axes.Axes or None
        The axes the user gave.
    figsize : (float, float)
        Width and height of a new figure in inches.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from lssvm.plots.canvas import axes
    >>> axes("this example", None, (4.0, 3.0)).figure.get_size_inches()
    array([4., 3.])
    """
    plt = pyplot(caller)
    if ax is None:
        _, ax = plt.subplots(figsize=figsize, layout="constrained")
    return ax
