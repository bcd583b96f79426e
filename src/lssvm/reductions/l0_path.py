"""The order in which prototypes leave an L0 reduction, as its penalty grows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.reductions.l0_system import L0System, reweighted_step, strongest

_RATIO = 10.0**0.25  # by which C is divided
_STEPS = 3  # reweightings at each C
_COMPACT = 0.85  # part of the functions still there below which the systems are made smaller
_THRESHOLD = 1e-6  # [Mall2014, section IV]
_VANISHED = 1e-9


def l0_order(systems: Sequence[L0System], start: FloatArray, C: FloatArray) -> IntArray:
    r"""Return the basis functions from the last to the first that leaves.

    Parameters
    ----------
    systems : sequence of L0System
        Their columns make up all k outputs.
    start : array of shape (m, k)
        Coefficients to start from.
    C : array of shape (k,)

    Returns
    -------
    int array of shape (m,)
        A permutation: its first k entries are a support of k basis functions, for every k.

    Notes
    -----
    Algorithms 3 and 4 of [Mall2014]_ end at one size, which follows from C and is found by
    accident. Here their reweighting goes on, C divided by :math:`10^{1/4}` after every 3 steps,
    until one basis function is left. A function leaves when the norm of its coefficients falls
    below 1e-6 of the largest. On nine data sets three reweightings for each C gave supports as good
    as fifty, one reweighting somewhat worse ones, a start at 100 times the C no better ones; small
    supports were much better than those of backward elimination by the rise of the objective.

    About 40 systems of the shrinking active set, in all some 7 times m^3/3 operations; no pass over
    the data.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.moments import Moments
    >>> from lssvm.reductions import L0System, l0_order
    >>> Q = np.random.default_rng(0).normal(size=(100, 4))
    >>> y = Q[:, [2]] + 0.5 * Q[:, [0]]
    >>> l0_order([L0System.of(Moments.of(Q, y), np.array([0]))], np.ones((4, 1)), np.ones(1))[:2]
    array([2, 0])
    """
    beta = np.array(start, dtype=np.float64)
    active = np.arange(len(beta))  # what the systems in hand are about
    alive = np.ones(len(beta), dtype=bool)  # which of them have not left
    left: list[int] = []
    parts = list(systems)
    largest = float(np.max(np.abs(beta), initial=0.0))
    if not largest > 0.0:
        first = strongest(systems)
        return np.concatenate([active[first : first + 1], np.delete(active, first)])
    step, value = 0, C.astype(np.float64)
    while np.count_nonzero(alive) > 1:
        D = np.linalg.norm(beta, axis=1)
        gone = np.flatnonzero(alive & ~(D > _THRESHOLD * D.max()))
        left.extend(active[gone[np.argsort(D[gone], kind="stable")]].tolist())
        alive[gone] = False
        if np.count_nonzero(alive) < _COMPACT * len(alive):
            index = np.flatnonzero(alive)
            active, alive, D = active[index], alive[index], D[index]
            parts = [part.subset(index) for part in parts]
        D[~alive] = 0.0  # without effect on the others
        beta = reweighted_step(parts, D, value)
        if not np.max(np.abs(beta)) > _VANISHED * largest:  # all at once
            order = np.flatnonzero(alive)[np.argsort(D[alive], kind="stable")]
            left.extend(active[order[:-1]].tolist())
            alive[order[:-1]] = False
        step += 1
        if step % _STEPS == 0:
            value = value / _RATIO
    return np.array([*active[alive].tolist(), *left[::-1]], dtype=np.intp)
