"""Paths of C of several training sets: one after the other on a host, together on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.namespace import Array, is_numpy, to_numpy
from lssvm._core.threads import run_blocks
from lssvm.moments import Moments, NystromMap
from lssvm.solvers.primal import PrimalSystem, primal_system
from lssvm.solvers.primal_batch import PrimalBatch, primal_batch, squared_errors

_FLOOR = 1e-10  # squared errors, relative to the variance of the targets, that count as zero


@dataclass(frozen=True, eq=False)
class FoldPaths:
    """Systems of several training sets, reduced so that every further value of C is cheap.

    They are systems of the host, one each, or a batch on a device.
    """

    systems: list[PrimalSystem] | PrimalBatch
    threads: int = 1

    def solve(self, C: FloatArray, method: str = "auto") -> list[tuple[Array, Array]]:
        """Return coefficients (c, m, k) and intercepts (c, k) of each training set."""
        if isinstance(self.systems, list):
            return run_blocks(lambda system: system.solve(C, method), self.systems, self.threads)
        coef, intercept = self.systems.solve(C, method)
        return [(coef[v, ...], intercept[v, ...]) for v in range(int(coef.shape[0]))]


def fold_paths(
    training: Sequence[Moments],
    map: NystromMap | None,
    *,
    threads: int = 1,
    penalised: bool = False,
) -> FoldPaths:
    """Prepare the systems of several training sets.

    Parameters
    ----------
    training : list of Moments
        NumPy's, or all on one device.
    map : NystromMap or None
        From kernel values to features; None: the moments are those of features.
    threads : int, default=1
    penalised : bool, default=False
        Whether the bias is penalised like a weight, eq. (7) of [DeBrabanter2010]_ as printed.

    Returns
    -------
    FoldPaths

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import Moments
    >>> from lssvm.solvers.fold_paths import fold_paths
    >>> X = np.arange(4.0)[:, None]
    >>> (coef, b), = fold_paths([Moments.of(X, X)], None).solve(np.array([1e6]))
    >>> coef.round(4)
    array([[[1.]]])
    """
    if is_numpy(training[0].gram):

        def prepare(moments: Moments) -> PrimalSystem:
            return primal_system(moments, map, penalised=penalised)

        return FoldPaths(run_blocks(prepare, training, threads), threads)
    return FoldPaths(primal_batch(training, map, penalised=penalised))


def output_errors(test: Moments, coef: Array, intercept: Array) -> FloatArray:
    """Return the mean squared errors (c, k) of models on the rows of some moments, by output.

    Nothing is read again: y^T y - 2 w^T cross + w^T gram w. No rows: zero. Errors that rounding
    makes negative are a small part of the variance.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import Moments
    >>> from lssvm.solvers.fold_paths import output_errors
    >>> test = Moments.of(np.ones((2, 1)), np.array([[1.0, 2.0], [3.0, 2.0]]))
    >>> output_errors(test, np.ones((1, 1, 2)), np.ones((1, 2)))
    array([[1., 0.]])
    """
    if not test.weight > 0:
        return np.zeros(intercept.shape)
    if is_numpy(test.gram):
        errors = test.squared_error(coef, intercept) / test.weight
        variance = test.squares / test.weight - (test.target / test.weight) ** 2
        errors = np.maximum(errors, _FLOOR * np.maximum(variance, 0.0))
    else:
        errors = to_numpy(squared_errors(test, coef, intercept))
    return np.asarray(np.where(np.isnan(errors), np.inf, errors))


def mean_squared_error(test: Moments, coef: Array, intercept: Array) -> FloatArray:
    """Return the mean squared errors (c,) of models, averaged over the outputs."""
    return np.asarray(output_errors(test, coef, intercept).mean(axis=1))
