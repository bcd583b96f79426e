"""Naive Bayes for mixed attributes: frequencies for categories, a density for numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from sklearn.base import BaseEstimator, ClassifierMixin

Array = NDArray[np.float64]

_FLOOR = 1e-6  # smallest density and variance, attributes have variance one
_GRID = 2000  # points of the tabulated kernel density


class MixedNaiveBayes(ClassifierMixin, BaseEstimator):
    """Naive Bayes as NB_n and NB_k of [Suykens2002, section 3.4.2].

    Parameters
    ----------
    categorical
        Flags, shape (d,). A categorical attribute has Laplace-corrected frequencies per class.
    density
        ``"normal"`` (NB_n) or ``"kernel"`` (NB_k) for the other attributes. The kernel estimate
        is Gaussian with Silverman's bandwidth 0.9 min(s, IQR / 1.34) n^(-1/5) per class and
        attribute, tabulated on a grid. (Weka, used in the print, has another bandwidth rule.)
    """

    def __init__(self, categorical: NDArray[np.bool_], density: str = "normal") -> None:
        self.categorical = categorical
        self.density = density

    def fit(self, X: Array, y: Any) -> "MixedNaiveBayes":
        """Estimate one table or density per class and attribute."""
        self.classes_, counts = np.unique(y, return_counts=True)
        self.log_prior_ = np.log(counts / len(y))
        self.parts_ = [
            [
                self._part(X[:, j], X[y == c, j], bool(self.categorical[j]))
                for j in range(X.shape[1])
            ]
            for c in self.classes_
        ]
        return self

    def _part(self, all_values: Array, values: Array, is_categorical: bool) -> Any:
        if is_categorical:
            levels = np.unique(all_values)
            counts = np.array([np.sum(values == level) for level in levels])
            return _Table(levels, np.log((counts + 1) / (len(values) + len(levels))))
        if self.density == "normal":
            return _Normal(values.mean(), max(float(values.var()), _FLOOR))
        return _Kernel(values)

    def predict(self, X: Array) -> Any:
        """Return the class of the largest posterior."""
        log_joint = np.column_stack(
            [
                prior + sum(part(X[:, j]) for j, part in enumerate(parts))
                for prior, parts in zip(self.log_prior_, self.parts_, strict=True)
            ]
        )
        return self.classes_[np.argmax(log_joint, axis=1)]


class _Table:
    def __init__(self, levels: Array, log_probability: Array) -> None:
        self.levels, self.log_probability = levels, log_probability

    def __call__(self, x: Array) -> Array:
        place = np.clip(np.searchsorted(self.levels, x), 0, len(self.levels) - 1)
        known = self.levels[place] == x
        return np.where(known, self.log_probability[place], self.log_probability.min())


class _Normal:
    def __init__(self, mean: float, variance: float) -> None:
        self.mean, self.variance = mean, variance

    def __call__(self, x: Array) -> Array:
        return -0.5 * ((x - self.mean) ** 2 / self.variance + np.log(2 * np.pi * self.variance))


class _Kernel:
    """Gaussian kernel density, values counted on a grid and smoothed."""

    def __init__(self, values: Array) -> None:
        quartiles = np.percentile(values, (25, 75))
        spread = values.std()
        robust = (quartiles[1] - quartiles[0]) / 1.34
        scale = min(spread, robust) if robust > 0 else spread
        width = max(0.9 * scale * len(values) ** -0.2, 1e-2)
        self.grid = np.linspace(values.min() - 5 * width, values.max() + 5 * width, _GRID)
        step = self.grid[1] - self.grid[0]
        counts = np.histogram(
            values, bins=_GRID, range=(self.grid[0] - step / 2, self.grid[-1] + step / 2)
        )[0]
        smooth = gaussian_filter1d(
            counts.astype(float), width / step, mode="constant", truncate=6.0
        )
        self.log_density = np.log(smooth / (len(values) * step) + _FLOOR)

    def __call__(self, x: Array) -> Array:
        return np.interp(x, self.grid, self.log_density, left=np.log(_FLOOR), right=np.log(_FLOOR))
