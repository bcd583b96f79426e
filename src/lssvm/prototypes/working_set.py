"""A set of prototypes whose quadratic Renyi entropy is raised by exchanging members."""

from __future__ import annotations

import math

import numpy as np

from lssvm._core.device import Device
from lssvm._core.namespace import to_numpy
from lssvm.prototypes.sampling import Array, Indices

_ROUNDING = 1e-12


def gaussian(A: Array, B: Array, engine: Device | None = None) -> Array:
    """Return exp(-||a - b||^2) for all pairs of rows, shape (a, b), computed by an engine."""
    if engine is not None:
        return _on_device(A, B, engine)
    block = A @ B.T
    block *= 2.0
    block -= np.einsum("ij,ij->i", A, A)[:, None]
    block -= np.einsum("ij,ij->i", B, B)
    np.minimum(block, 0.0, out=block)
    return np.exp(block, out=block)


def _on_device(A: Array, B: Array, engine: Device) -> Array:
    xp, left, right = engine.xp, engine.put(A), engine.put(B)
    aa = xp.sum(left * left, axis=1)[:, None]
    bb = xp.sum(right * right, axis=1)[None, :]
    block = 2.0 * xp.matmul(left, xp.permute_dims(right, (1, 0))) - aa - bb
    zero = xp.zeros((), dtype=block.dtype, device=engine.device)
    return to_numpy(xp.exp(xp.minimum(block, zero)))


class WorkingSet:
    """The information potential of a set of points, kept up to date under exchanges.

    The potential of point k is the sum over the other points l of exp(-||z_k - z_l||^2), with z the
    rows divided by twice the bandwidths. An exchange of member i for candidate c lowers the sum
    over all ordered pairs by twice ``(potential_i + k(c, z_i)) - sum_l k(c, z_l)``.

    Parameters
    ----------
    points : ndarray of shape (m, d)
        Scaled rows. Changed in place by exchanges.
    labels : ndarray of int, shape (m,), or None
        A candidate replaces only a member of its own class.
    engine : Device or None, default=None
        What computes the kernel between points; None: NumPy.

    Notes
    -----
    A batch of b candidates costs b m exponentials and 2 b m d operations at once, an exchange O(m);
    the paper counts the same, one candidate at a time [DeBrabanter2010, section 5]. Candidates that
    would gain nothing when the batch begins are dropped; every other one is judged by the set as it
    is at its turn, so the entropy never falls. Memory O(m^2).
    """

    def __init__(self, points: Array, labels: Indices | None, engine: Device | None = None) -> None:
        self.points = points
        self.labels = labels
        self.engine = engine
        self.kernel = gaussian(points, points, engine)
        np.fill_diagonal(self.kernel, 0.0)
        self.potential = self.kernel.sum(axis=1)
        self.total = float(self.potential.sum())  # over ordered pairs of different points

    @property
    def size(self) -> int:
        """The number of members."""
        return int(self.potential.size)

    @property
    def log_sum(self) -> float:
        """The logarithm of the double sum of [DeBrabanter2010, eq. (12)], diagonal included."""
        return math.log(self.size + self.total)

    def screen(
        self,
        candidates: Array,
        labels: Indices | None,
        keep: int,
        rng: np.random.Generator,
        floor: float,
    ) -> Indices:
        """Return the positions of the ``keep`` candidates that promise to gain most.

        That is the largest potential among the members of the candidate's class less its own,
        estimated from a quarter of the members. Candidates of a class below ``floor`` are
        equally good: the first are kept.
        """
        seen = rng.choice(self.size, -(-self.size // 4), replace=False)
        block = gaussian(candidates, self.points[seen], self.engine)
        loss = block.sum(axis=1) * (self.size / seen.size)
        np.maximum(loss, floor, out=loss)
        if labels is not None and self.labels is not None:
            worst = np.full(int(self.labels.max()) + 1, -np.inf)
            np.maximum.at(worst, self.labels, self.potential)
            loss -= worst[labels]
        return np.argsort(loss, kind="stable")[:keep]

    def exchange(
        self, candidates: Array, labels: Indices | None, least_rise: float, partners: Indices | None
    ) -> list[tuple[int, int, float]]:
        """Offer candidates one after the other; take each that raises the entropy enough.

        Parameters
        ----------
        candidates : ndarray of shape (b, d)
            Scaled rows.
        labels : ndarray of int, shape (b,), or None
            Their classes.
        least_rise : float
            The entropy an exchange has to gain.
        partners : ndarray of int, shape (b,), or None
            The member each candidate may replace; None: the one that gains most.

        Returns
        -------
        list of (candidate, member, log_sum)
            The exchanges made and the logarithm of the double sum after each.
        """
        block = gaussian(candidates, self.points, self.engine)  # (b, m)
        sums = block.sum(axis=1)
        if partners is None:
            best = self._most(block, labels)
        else:
            best = block[np.arange(block.shape[0]), partners] + self.potential[partners]
        hopeful = np.flatnonzero(best - sums > self._threshold(least_rise))
        block, sums, rows = block[hopeful], sums[hopeful], candidates[hopeful]
        among = gaussian(rows, rows)
        made = []
        for q, c in enumerate(hopeful):
            if partners is not None:
                i = int(partners[c])
            elif labels is None or self.labels is None:
                i = int(np.argmax(self.potential + block[q]))
            else:
                own = np.where(self.labels == labels[c], self.potential + block[q], -np.inf)
                i = int(np.argmax(own))
            gain = self.potential[i] + block[q, i] - sums[q]
            if gain <= self._threshold(least_rise):
                continue
            if np.array_equal(rows[q], self.points[np.argmax(block[q])]):
                continue  # the set has this content already
            self._replace(i, rows[q], block[q], float(gain))
            sums += among[q] - block[:, i]
            block[:, i] = among[q]
            made.append((int(c), i, self.log_sum))
        return made

    def _most(self, block: Array, labels: Indices | None) -> Array:
        """Return the largest potential that a candidate can take away, shape (b,)."""
        if labels is None or self.labels is None:
            return np.asarray((block + self.potential).max(axis=1))
        most = np.empty(len(block))
        for label in np.unique(labels):
            rows, own = np.flatnonzero(labels == label), np.flatnonzero(self.labels == label)
            most[rows] = (block[np.ix_(rows, own)] + self.potential[own]).max(axis=1)
        return most

    def _threshold(self, least_rise: float) -> float:
        """Return the gain in one-sided potential that raises the entropy by ``least_rise``."""
        return -math.expm1(-max(least_rise, _ROUNDING)) * 0.5 * (self.size + self.total)

    def _replace(self, i: int, point: Array, column: Array, gain: float) -> None:
        column = column.copy()
        column[i] = 0.0
        self.potential += column
        self.potential -= self.kernel[i]
        self.potential[i] = column.sum()
        self.kernel[i] = column
        self.kernel[:, i] = column
        self.points[i] = point
        self.total -= 2.0 * gain

    def nested_order(self, sequence: Indices, floor: float) -> Indices:
        """Order the members so that every prefix is a set of high entropy.

        From the last place to the first, the member with the largest potential among those left is
        taken out. Members below ``floor`` are equally good and keep their (random) order.

        Parameters
        ----------
        sequence : ndarray of int, shape (m,)
            The class of each place; all 0 without classes.
        floor : float
            Potential below which members are not told apart.

        Notes
        -----
        Time and memory O(m^2).
        """
        labels = np.zeros(self.size, dtype=np.intp) if self.labels is None else self.labels
        left = self.potential.copy()
        order = np.empty(self.size, dtype=np.intp)
        alike: dict[int, list[int]] = {}  # members of a class once all are below the floor
        for place in range(self.size - 1, -1, -1):
            c = int(sequence[place])
            if c not in alike:
                own = left if self.labels is None else np.where(labels == c, left, -np.inf)
                worst = int(np.argmax(own))
                if own[worst] <= floor:
                    alike[c] = np.flatnonzero(own > -np.inf).tolist()
            if c in alike:
                worst = alike[c].pop()
            order[place] = worst
            left -= self.kernel[worst]
            left[worst] = -np.inf
        return order
