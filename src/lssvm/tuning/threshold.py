"""Where a two-class output should change from one class to the other."""

from __future__ import annotations

import numpy as np

from lssvm._core.arrays import FloatArray


def best_threshold(
    scores: FloatArray, targets: FloatArray, weight: FloatArray | None = None
) -> float:
    """Return the threshold of the fewest errors, or one as good that is nearer to zero.

    Targets of +1 and -1 put the threshold of a least squares classifier half-way between the
    classes, which is best only where both have the same shape. Choosing the cut by its errors is
    the advice of [Hastie2009], section 4.3, for linear discriminants; here the outputs are those
    of models that did not see the rows. Among the cuts whose weight of errors lies within half a
    standard error of the smallest, the one nearest to zero is taken: as for C and gamma, what
    cannot be told apart is decided by least squares.

    Time O(n log n), memory O(n).
    """
    used = np.flatnonzero(np.isfinite(scores) & (targets != 0))
    mass = np.ones(len(used)) if weight is None else np.asarray(weight, dtype=np.float64)[used]
    positive = targets[used] > 0
    if not (positive.any() and not positive.all()):
        return 0.0
    order = np.argsort(scores[used], kind="stable")
    values, signed = scores[used][order], np.where(positive, mass, -mass)[order]
    errors = mass[~positive].sum() + np.concatenate([[0.0], np.cumsum(signed)])
    share = np.maximum(errors / mass.sum(), 0.0)
    ties = np.concatenate([[False], values[1:] == values[:-1], [False]])  # no cut between equals
    share[ties] = np.inf
    smallest = float(share.min())
    n_effective = mass.sum() ** 2 / (mass**2).sum()
    alike = share <= smallest + 0.5 * np.sqrt(smallest * (1.0 - smallest) / n_effective) + 1e-12
    if alike[np.searchsorted(values, 0.0, side="right")]:
        return 0.0
    cuts = np.concatenate([[values[0] - 1.0], (values[1:] + values[:-1]) / 2, [values[-1] + 1.0]])
    return float(cuts[alike][np.argmin(np.abs(cuts[alike]))])
