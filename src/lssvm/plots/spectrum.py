"""The sorted spectrum of support values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lssvm._core.arrays import FloatArray
from lssvm.plots.canvas import Display, line_style
from lssvm.plots.fitted import Estimator, finite_vector, support_magnitudes


class SupportSpectrumDisplay(Display):
    r"""Support values :math:`|\alpha_k|`, sorted from large to small.

    A least squares model has a decaying spectrum without zeros; pruning cuts its tail off
    [Suykens2002, Figs. 3.1 and 3.8]. Several models are overlaid by giving the axes of the first to
    the others; colour and dash tell them apart.

    Parameters
    ----------
    values : array-like of shape (n_sv,)
        Support values; magnitudes are taken and sorted. Zeros for rows that are no support vectors
        may be among them.
    name : str, default="model"
        Name of the model in the legend.

    Attributes
    ----------
    values : ndarray of shape (n_sv,)
        Magnitudes from large to small.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib.lines.Line2D
        The spectrum.
    legend_ : matplotlib.legend.Legend
        The legend of all spectra on the axes.

    See Also
    --------
    BoundaryDisplay : Where in the plane the large support values lie.

    Notes
    -----
    Time is O(n_sv log n_sv), memory O(n_sv k) for k outputs. With several outputs the value of a
    row is the Euclidean norm of its k coefficients, which the chapter leaves open.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from lssvm import LSSVR
    >>> from lssvm.plots import SupportSpectrumDisplay
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 2.0, 1.0, 4.0]
    >>> display = SupportSpectrumDisplay.from_estimator(LSSVR(C=10.0).fit(X, y), name="stiff")
    >>> soft = SupportSpectrumDisplay.from_estimator(LSSVR().fit(X, y), name="soft", ax=display.ax_)
    >>> [text.get_text() for text in soft.legend_.get_texts()]
    ['stiff: 4 support vectors', 'soft: 4 support vectors']
    """

    def __init__(self, values: ArrayLike, *, name: str = "model") -> None:
        needed = "one finite number per support vector, shape (n_sv,)"
        magnitudes = np.abs(finite_vector("The array of support values", values, needed))
        self.values: FloatArray = np.sort(magnitudes)[::-1].copy()
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        model: Estimator,
        X: Any = None,
        y: Any = None,
        *,
        ax: Any = None,
        name: str | None = None,
        relative: bool = False,
    ) -> SupportSpectrumDisplay:
        """Draw the spectrum of a fitted estimator.

        Parameters
        ----------
        model : Estimator
            A fitted model with ``support_`` and ``dual_coef_`` (scikit-learn's SVC is one too), or
            a pipeline that ends in one.
        X, y : array-like or None, default=None
            Not needed: the model has its own record. Taken so that all displays are called alike.
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw, such as ``ax_`` of another display; None: a new figure.
        name : str or None, default=None
            Name in the legend; None: that of the class.
        relative : bool, default=False
            Divide by the largest value, to compare models with different C.

        Returns
        -------
        SupportSpectrumDisplay
        """
        last = cls.fitted(model)
        display = cls(support_magnitudes(last), name=name or type(last).__name__)
        return display.plot(ax, relative=relative)

    def plot(self, ax: Any = None, *, relative: bool = False) -> SupportSpectrumDisplay:
        """Draw the spectrum.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; None: a new figure.
        relative : bool, default=False
            Divide by the largest value, to compare models with different C.

        Returns
        -------
        SupportSpectrumDisplay
        """
        ax = self.open(ax, (6.0, 4.0))
        scale = float(self.values[0]) if relative and self.values[0] > 0 else 1.0
        drawn = len(ax.lines)  # spectra that are there already
        (self.line_,) = ax.plot(
            np.arange(1, self.values.size + 1),
            self.values / scale,
            linewidth=1.8,
            marker="o" if self.values.size == 1 else "",
            label=f"{self.name}: {np.count_nonzero(self.values)} support vectors",
            **line_style(drawn),
        )
        shown = r"$|\alpha|$ / largest $|\alpha|$" if relative else r"support value $|\alpha|$"
        self.name_axes("rank of the support vector", shown)
        ax.set_xlim(left=0, auto=True)  # auto: the next spectrum may need more room
        ax.set_ylim(bottom=0, auto=True)
        self.legend_ = ax.legend(loc="upper right", frameon=False)
        return self
