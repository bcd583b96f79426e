"""What is tuned and where, and the record that a search gives back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.criteria.base import Point


@dataclass(frozen=True)
class Space:
    """What is tuned, and where.

    Parameters
    ----------
    C : float or None, default=None
        A fixed value of C; None: C is tuned.
    gamma : float or None, default=None
        A fixed kernel parameter; None where it is tuned or the kernel has none.
    tune_gamma : bool, default=True
        Whether the kernel parameter is tuned.
    gamma_start : float, default=1.0
        Data-driven centre of the search, such as 1 / (d var).
    n_features : int, default=1
        Number of inputs d, by which the chapter's candidate widths are scaled.
    C_range : (float, float), default=(1e-3, 1e6)
        Smallest and largest C.
    gamma_range : (float, float), default=(1e-4, 1e4)
        Smallest and largest kernel parameter, as factors of ``gamma_start``.
    counted_rows : int or None, default=None
        Says that losses are minus a rate p counted over this many rows (an accuracy). In the final
        choice rates within half a standard error, sqrt(p (1 - p) / rows) / 2, of the best one then
        count as equal, and the smooth tie loss decides between them.

    Examples
    --------
    >>> from lssvm.search.space import Space
    >>> space = Space(gamma_start=0.5)
    >>> space.tune_C, space.gamma_bounds
    (True, (5e-05, 5000.0))
    """

    C: float | None = None
    gamma: float | None = None
    tune_gamma: bool = True
    gamma_start: float = 1.0
    n_features: int = 1
    C_range: tuple[float, float] = (1e-3, 1e6)
    gamma_range: tuple[float, float] = (1e-4, 1e4)
    counted_rows: int | None = None

    def __post_init__(self) -> None:
        for name in ("C", "gamma", "gamma_start"):
            value = getattr(self, name)
            if value is None and name != "gamma_start":
                continue
            if not (np.isfinite(value) and value > 0):
                raise InvalidInputError(f"{name}={value!r} cannot be used: give a positive number.")
            object.__setattr__(self, name, float(value))
        for name in ("C_range", "gamma_range"):
            low, high = (float(value) for value in getattr(self, name))
            if not 0 < low < high < np.inf:
                raise InvalidInputError(
                    f"{name}={(low, high)} is not a range: give 0 < smallest < largest."
                )
            object.__setattr__(self, name, (low, high))
        if self.tune_gamma and self.gamma is not None:
            raise InvalidInputError(
                f"gamma={self.gamma} is fixed and tune_gamma is True: give gamma=None to tune it, "
                "or tune_gamma=False to keep it."
            )
        if self.n_features < 1:
            raise InvalidInputError(
                f"n_features={self.n_features}: give the number of inputs, >= 1."
            )

    @property
    def tune_C(self) -> bool:
        """Whether C is tuned."""
        return self.C is None

    @property
    def gamma_bounds(self) -> tuple[float, float]:
        """Smallest and largest kernel parameter."""
        return self.gamma_start * self.gamma_range[0], self.gamma_start * self.gamma_range[1]

    def C_grid(self, n: int) -> FloatArray:
        """Return ``n`` values of C, evenly spaced in log C, or the one that is fixed."""
        if self.C is not None:
            return np.array([self.C])
        return np.geomspace(self.C_range[0], self.C_range[1], n)


@dataclass(frozen=True)
class TuningResult:
    """What every search returns.

    Attributes
    ----------
    C, gamma : float, float or None
        The chosen pair: smallest mean loss, then smallest tie loss, then smallest C, then smallest
        gamma among all evaluations.
    loss : float
        Its mean loss.
    n_evaluations : int
        Number of distinct pairs (C, gamma) evaluated.
    n_points : int
        Number of expensive :meth:`Objective.at` calls the run takes without a checkpoint.
    seconds : float
        Wall time, including that of the runs a checkpoint continues.
    interrupted : bool
        Whether the search was stopped by a KeyboardInterrupt; the pair is the best so far.
    cv_results : dict
        One entry per evaluation, as scikit-learn's searches have it: ``param_C``, ``param_gamma``
        (NaN where the kernel has none), ``params``, ``split{i}_test_score`` = -loss,
        ``mean_test_score``, ``std_test_score``, ``rank_test_score`` (1 is the chosen pair; ties
        are broken as above, so ranks are distinct), and ``mean_tie_score`` = -tie, ``stage`` (of
        the search), ``seconds`` (since the start of the search).
    best_index : int
        Position of the chosen pair in ``cv_results``.
    point : Point or None
        What was factorised at the chosen gamma, where it is still at hand.
    approximate : TuningResult or None
        What the same search chose by an approximate criterion before it evaluated exactly.

    Examples
    --------
    >>> from lssvm import LSSVR
    >>> import numpy as np
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = LSSVR("cv", cv=4).fit(X, np.sin(X[:, 0]))
    >>> sorted(model.cv_results_)[:2]
    ['mean_test_score', 'mean_tie_score']
    """

    C: float
    gamma: float | None
    loss: float
    n_evaluations: int
    n_points: int
    seconds: float
    interrupted: bool
    cv_results: dict[str, Any] = field(repr=False)
    best_index: int = 0
    point: Point | None = field(default=None, repr=False, compare=False)
    approximate: TuningResult | None = None

    @property
    def trace(self) -> dict[str, NDArray[Any]]:
        """The best loss so far after every evaluation.

        Arrays of one entry per evaluation: ``n_evaluations`` (1, 2, ...), ``seconds`` since the
        start of the search, ``best_loss``.
        """
        loss = -np.asarray(self.cv_results["mean_test_score"], dtype=np.float64)
        return {
            "n_evaluations": np.arange(1, len(loss) + 1),
            "seconds": np.asarray(self.cv_results["seconds"], dtype=np.float64),
            "best_loss": np.fmin.accumulate(loss),
        }


def chance_band(loss: float, rows: int) -> float:
    """Return half a standard error of minus a rate counted over ``rows``; 0 for other losses.

    Examples
    --------
    >>> from lssvm.search.space import chance_band
    >>> chance_band(-0.8, 100)
    0.02
    """
    if not -1.0 <= loss <= 0.0:
        return 0.0
    return float(0.5 * np.sqrt(-loss * (1.0 + loss) / rows))


def selection_order(
    mean: FloatArray, tie: FloatArray, C: FloatArray, gamma: FloatArray
) -> NDArray[np.intp]:
    """Return the order of evaluations from best to worst.

    Smallest mean, then smallest tie loss, then smallest C, then smallest gamma; what is not a
    number counts as infinite.

    Parameters
    ----------
    mean, tie, C, gamma : ndarray of shape (c,)

    Returns
    -------
    ndarray of shape (c,)

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.search.space import selection_order
    >>> one = np.ones(3)
    >>> selection_order(np.array([2.0, 1.0, 1.0]), np.array([0.0, 5.0, 4.0]), one, one)
    array([2, 1, 0])
    """

    def worst_if_nan(x: FloatArray) -> FloatArray:
        return np.where(np.isnan(x), np.inf, x)

    return np.lexsort((worst_if_nan(gamma), C, worst_if_nan(tie), worst_if_nan(mean)))
