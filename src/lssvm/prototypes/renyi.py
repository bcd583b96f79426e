"""Active selection of prototypes by Renyi entropy, of order 2 or another, or Shannon's.

First the working sets, whose entropy is raised by exchanging members; then the selection.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, qmc

from lssvm._core.arrays import Device, FloatArray, IntArray, to_numpy
from lssvm._core.errors import InvalidInputError, not_known, not_usable
from lssvm.prototypes.bandwidth import Bandwidth, plug_in_bandwidth, rule_of_thumb_bandwidth
from lssvm.prototypes.selection import Candidates, Selection, as_rows, interleave, random_order

_ROUNDING = 1e-12


def gaussian(A: FloatArray, B: FloatArray, engine: Device | None = None) -> FloatArray:
    """Return exp(-||a - b||^2) for all pairs of rows, shape (a, b), computed by an engine."""
    if engine is not None:
        return _on_device(A, B, engine)
    block = A @ B.T
    block *= 2.0
    block -= np.einsum("ij,ij->i", A, A)[:, None]
    block -= np.einsum("ij,ij->i", B, B)
    np.minimum(block, 0.0, out=block)
    return np.asarray(np.exp(block, out=block))


def _on_device(A: FloatArray, B: FloatArray, engine: Device) -> FloatArray:
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

    A batch of b candidates costs b m exponentials and 2 b m d operations at once, an exchange O(m);
    the paper counts the same, one candidate at a time [DeBrabanter2010, section 5]. Candidates that
    would gain nothing when the batch begins are dropped; every other is tested with the set as it
    is at its turn, so the entropy never falls. Memory O(m^2).
    """

    def __init__(
        self, points: FloatArray, labels: IntArray | None, engine: Device | None = None
    ) -> None:
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
        candidates: FloatArray,
        labels: IntArray | None,
        keep: int,
        rng: np.random.Generator,
        floor: float,
    ) -> IntArray:
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
        self,
        candidates: FloatArray,
        labels: IntArray | None,
        least_rise: float,
        partners: IntArray | None,
    ) -> list[tuple[int, int, float]]:
        """Offer candidates one after the other; take each that raises the entropy enough."""
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
                same_class = np.where(self.labels == labels[c], self.potential + block[q], -np.inf)
                i = int(np.argmax(same_class))
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

    def _most(self, block: FloatArray, labels: IntArray | None) -> FloatArray:
        """Return the largest potential that a candidate can take away, shape (b,)."""
        if labels is None or self.labels is None:
            return np.asarray((block + self.potential).max(axis=1))
        most = np.empty(len(block))
        for label in np.unique(labels):
            rows, members = np.flatnonzero(labels == label), np.flatnonzero(self.labels == label)
            most[rows] = (block[np.ix_(rows, members)] + self.potential[members]).max(axis=1)
        return most

    def _threshold(self, least_rise: float) -> float:
        """Return the gain in one-sided potential that raises the entropy by ``least_rise``."""
        return -math.expm1(-max(least_rise, _ROUNDING)) * 0.5 * (self.size + self.total)

    def _replace(self, i: int, point: FloatArray, column: FloatArray, gain: float) -> None:
        column = column.copy()
        column[i] = 0.0
        self.potential += column
        self.potential -= self.kernel[i]
        self.potential[i] = column.sum()
        self.kernel[i] = column
        self.kernel[:, i] = column
        self.points[i] = point
        self.total -= 2.0 * gain

    def nested_order(self, sequence: IntArray, floor: float) -> IntArray:
        """Order the members so that every prefix is a set of high entropy.

        From the last place to the first, the member with the largest potential among those left is
        taken out. Members below ``floor`` are equally good and keep their (random) order.
        """
        labels = np.zeros(self.size, dtype=np.intp) if self.labels is None else self.labels
        left = self.potential.copy()
        order = np.empty(self.size, dtype=np.intp)
        alike: dict[int, list[int]] = {}  # members of a class once all are below the floor
        for place in range(self.size - 1, -1, -1):
            c = int(sequence[place])
            if c not in alike:
                allowed = left if self.labels is None else np.where(labels == c, left, -np.inf)
                worst = int(np.argmax(allowed))
                if allowed[worst] <= floor:
                    alike[c] = np.flatnonzero(allowed > -np.inf).tolist()
            if c in alike:
                worst = alike[c].pop()
            order[place] = worst
            left -= self.kernel[worst]
            left[worst] = -np.inf
        return order


_FINE, _ROUGH = (96, 24, 1024), (16, 8, 64)  # nodes: one axis, each of two axes, all of more


def _normal_nodes(d: int, sizes: tuple[int, int, int]) -> tuple[FloatArray, FloatArray]:
    """Return nodes (p, d) and weights (p,) of expectations over d standard normal variables."""
    if d <= 2:
        axis, weight = np.polynomial.hermite_e.hermegauss(sizes[d - 1])
        nodes = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
        shares = np.prod(np.meshgrid(*[weight] * d, indexing="ij"), axis=0).ravel()
        return nodes, shares / shares.sum()
    half = norm.ppf(qmc.Sobol(d, seed=0).random(sizes[2] // 2))
    nodes = np.vstack([half, -half])  # of mean 0, and after the next line of variance 1
    nodes /= np.sqrt(np.mean(nodes**2, axis=0))
    return nodes, np.full(len(nodes), 1.0 / len(nodes))


def _integrated(density: FloatArray, weight: FloatArray, order: float) -> float:
    """Return eq. (9) or (10) of [DeBrabanter2010] from densities (m, p) at nodes about m points.

    The density is an even mixture of normal ones about the points: an integral of f^q is an
    expectation of f^(q-1) over them.
    """
    if order == 1.0:
        return -float(np.mean(np.log(density) @ weight))  # eq. (9)
    mean = float(np.mean(density ** (order - 1.0) @ weight))
    return float(math.log(mean) / (1.0 - order))  # eq. (10)


class IntegratedSet(WorkingSet):
    """A working set whose entropy is of any order, by an integral over the density estimate.

    Densities at p nodes about every member are kept: an exchange that is tried costs O(m p d).
    """

    def __init__(
        self,
        points: FloatArray,
        labels: IntArray | None,
        order: float,
        sizes: tuple[int, int, int] = _ROUGH,
    ) -> None:
        super().__init__(points, labels)
        m, d = points.shape
        self.order, self.scale = order, m * (2.0 * math.pi) ** (0.5 * d)
        self.offset = 0.5 * d * math.log(4.0 * math.pi) + 2.0 * math.log(m)
        self.nodes, self.weight = _normal_nodes(d, sizes)
        self.places = points[:, None, :] + 0.5 * self.nodes  # (m, p, d)
        self.density = np.stack([self._kernel(place, points).sum(axis=1) for place in self.places])
        self.density /= self.scale
        self.entropy: float = _integrated(self.density, self.weight, order)

    @staticmethod
    def _kernel(A: FloatArray, B: FloatArray) -> FloatArray:
        return gaussian(math.sqrt(2.0) * A, math.sqrt(2.0) * B)  # points are x / (2 h)

    @property
    def log_sum(self) -> float:
        """The constant of the entropy less the entropy, both without the bandwidths."""
        return float(self.offset - self.entropy)

    def exchange(
        self,
        candidates: FloatArray,
        labels: IntArray | None,
        least_rise: float,
        partners: IntArray | None,
    ) -> list[tuple[int, int, float]]:
        """Offer each candidate in place of its partner; take it if that raises the entropy."""
        assert partners is not None
        made = []
        for c, i in enumerate(partners.tolist()):
            row = candidates[c]
            if np.any(np.all(self.points == row, axis=1)):
                continue  # the set has this content already
            flat = self.places.reshape(-1, row.size)
            both = self._kernel(flat, np.stack([row, self.points[i]])) / self.scale
            density = self.density + (both[:, 0] - both[:, 1]).reshape(self.density.shape)
            points = self.points.copy()
            points[i], place = row, row + 0.5 * self.nodes
            density[i] = self._kernel(place, points).sum(axis=1) / self.scale
            entropy = _integrated(np.maximum(density, 1e-300), self.weight, self.order)
            if entropy > self.entropy + max(least_rise, _ROUNDING):
                column = gaussian(row[None], self.points)[0]
                self._replace(i, row, column, 0.0)
                self.places[i], self.density, self.entropy = place, density, entropy
                made.append((c, i, self.log_sum))
        return made


_BATCH = 256
_SCREENED = 4  # candidates looked at per candidate tried
_BANDWIDTH_ROWS = 5_000


def renyi_entropy(Z: npt.ArrayLike, bandwidth: npt.ArrayLike, order: float = 2.0) -> float:
    r"""Return the Renyi entropy of the density estimated from the rows of Z.

    .. math:: H_q = \frac{1}{1-q} \log \int \hat f^q, \qquad H_2
       = -\log \frac{1}{m^2 |D| 2^{d/2}} \sum_{kl} \kappa((D \sqrt 2)^{-1} (z_k - z_l))

    Parameters
    ----------
    Z : array-like of shape (m, d)
        Points.
    bandwidth : float or array-like of shape (d,)
        The diagonal of D.
    order : float, default=2.0
        q > 0; 1 is Shannon's entropy :math:`-\int \hat f \log \hat f`, the limit.

    Notes
    -----
    [DeBrabanter2010, eqs. (9)-(12)] with a Gaussian kernel in the density estimate (11). For q = 2,
    eq. (12), the paper has ``|D|^2`` where the integral of the squared eq. (11) gives
    ``|D| 2^(d/2)``: a constant, which changes no selection. Time O(m^2 d), memory O(m^2). Other
    orders have no closed form: the integral is one over p normal nodes about every point, by
    Gauss-Hermite rules up to two columns and 1,024 quasi-random nodes for more. Time O(m^2 p d).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.prototypes import renyi_entropy
    >>> round(renyi_entropy(np.zeros((3, 1)), 1.0), 4)  # -log of the integral of phi^2
    1.2655
    """
    rows = as_rows(Z).astype(np.float64, copy=False)
    h = np.broadcast_to(np.asarray(bandwidth, dtype=np.float64), rows.shape[1:])
    points = (rows - rows.mean(axis=0)) / (2.0 * h)
    if order != 2.0:
        _check_order(order)
        return float(np.log(h).sum() + IntegratedSet(points, None, order, _FINE).entropy)
    return _constant(h, rows.shape[0]) - math.log(gaussian(points, points).sum())


def _check_order(order: float) -> None:
    if not 0.0 < order < np.inf:
        raise not_usable("order", order, "give a positive number; 1 is Shannon's entropy.")


def _constant(h: FloatArray, m: int) -> float:
    """Return the quadratic entropy less the part that depends on the points."""
    normaliser = 0.5 * int(h.size) * math.log(4.0 * math.pi)
    return float(np.log(h).sum()) + normaliser + 2.0 * math.log(m)


@dataclass(frozen=True)
class RenyiEntropy:
    r"""Select prototypes by exchanges that raise their Renyi entropy, quadratic by default.

    Parameters
    ----------
    swap : {"greedy", "random"}, default="greedy"
        ``"random"`` is the algorithm as printed: a random candidate is exchanged for a random
        prototype if that raises the entropy at all. ``"greedy"`` exchanges a candidate for the
        prototype that gains most, if the entropy rises by at least tol/m, and tries the quarter of
        the drawn candidates that promise to gain most.
    bandwidth : float, array of shape (d,), "plug-in" or "rule-of-thumb", optional
        Bandwidths of the entropy kernel, used unchanged. By default the plug-in bandwidths of
        the columns (from at most 5,000 rows), brought to the rate of a d-dimensional density.
        "plug-in" takes them as printed, without that, from all rows. "rule-of-thumb" are those of
        algorithm 2 of [Mall2014]_, see `rule_of_thumb_bandwidth`.
    tol : float, default=0.1
        In units of the entropy (nats). Exchanges that gain less than tol/m are left alone by
        ``"greedy"`` (m of them gain less than ``tol``); both stop when the last doubling of
        the number of trials raised the entropy by less than tol/10.
    max_trials : int, optional
        Candidates at most. By default ten per row, but at least 50 per prototype; most
        selections stop long before.
    order : float, default=2.0
        Of the entropy, [DeBrabanter2010]_, eq. (10); 1 is Shannon's, eq. (9). Orders other than 2
        need ``swap="random"``, and take integrals over 16 to 64 nodes about every prototype.

    Notes
    -----
    [DeBrabanter2010, algorithm 1]. The printed plug-in bandwidths are univariate, of the order
    n^(-1/5). In a product kernel over d columns they vanish for all pairs of rows: on the Spambase,
    Magic and Adult sets the entropy of a random set was within 0.3, 0.001 and 0.01 of its maximum,
    and nothing was left to select. They are therefore multiplied by

    .. math:: n^{1/5 - 1/(d+4)} (4/(d+2))^{1/(d+4)} (3/4)^{1/5},

    the ratio of the normal reference bandwidths in d dimensions and in one; d counts the columns
    that are not constant (constant ones take no part), and the factor is 1 for d = 1.

    ``tol`` is there for the model's sake. A set of maximal entropy is made of outliers: on twelve
    sets the test error with exchanges down to rounding was 0.98 to 1.21 times that with random
    prototypes, with ``tol=0.1`` 0.97 to 1.04 times, while the entropies differed by 0.02 or less.
    It also makes the ascent short.

    With labels, a candidate replaces a member of its own class only, so that the shares of the
    classes stay; the entropy is that of all prototypes together. Candidates are drawn in
    sweeps without replacement, with probabilities proportional to the sample weights. A content
    that the set holds is not taken again.

    ``Selection.indices`` is ordered by taking out, from the last place to the first, the prototype
    with the largest potential (of the class whose turn it is, with labels): a prefix is a set of
    high entropy with the right share of each class.

    Time O(m^2 d) + O(trials (m/2)(d + 1)), memory O(m^2 + trials) besides O(n) with weights.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.prototypes import RenyiEntropy, select_prototypes
    >>> X = np.random.default_rng(0).standard_normal((1000, 2))
    >>> chosen = select_prototypes(X, 30, RenyiEntropy(), random_state=0)
    >>> bool(chosen.entropy_trace[-1] > chosen.entropy_trace[0] + 0.3)
    True
    >>> len(np.unique(chosen.indices))
    30
    """

    swap: Literal["greedy", "random"] = "greedy"
    bandwidth: float | FloatArray | str | None = None
    tol: float = 0.1
    max_trials: int | None = None
    order: float = 2.0

    def __post_init__(self) -> None:
        if self.swap not in ("greedy", "random"):
            raise not_known("swap", self.swap, "give 'greedy' or 'random'.")
        _check_order(self.order)
        if self.order != 2.0 and self.swap != "random":
            raise not_usable("order", self.order, "orders other than 2 need swap='random'.")
        if isinstance(self.bandwidth, str) and self.bandwidth not in ("plug-in", "rule-of-thumb"):
            needed = "give 'plug-in', 'rule-of-thumb', numbers, or None for plug-in bandwidths "
            needed += "at the rate of d dimensions."
            raise not_known("bandwidth", self.bandwidth, needed)
        if not self.tol > 0.0:
            raise not_usable("tol", self.tol, "give a positive number.")
        if self.max_trials is not None and self.max_trials < 0:
            needed = "give a number of candidates, at least 0, or None."
            raise not_usable("max_trials", self.max_trials, needed)

    def select(self, candidates: Candidates) -> Selection:
        """Select prototypes, see `select_prototypes`."""
        rows = candidates.draw()
        bandwidth, used = self._bandwidth(candidates)
        h = bandwidth.value[used]
        start = _scaled(candidates.X, rows, used, 0.0, h)
        if not np.isfinite(start).all():
            raise InvalidInputError(
                "X has values that are not finite; impute them or drop those rows."
            )
        centre = start.mean(axis=0)
        labels = None if candidates.labels is None else candidates.labels[rows]
        members = (
            WorkingSet(start - centre, labels, candidates.engine)
            if self.order == 2.0
            else IntegratedSet(start - centre, labels, self.order)
        )
        constant = _constant(h, rows.size)
        trace = [constant - members.log_sum]
        trials, mark, mark_entropy = 0, rows.size, trace[0]
        for drawn in self._candidates(candidates, labels, rows.size):
            trials += drawn.size
            points = _scaled(candidates.X, drawn, used, centre, h)
            for candidate, member, log_sum in self._offer(members, drawn, points, candidates):
                rows[member] = candidate
                trace.append(constant - log_sum)  # [DeBrabanter2010, eq. (12)]
            if trials >= 2 * mark:
                if trace[-1] - mark_entropy < 0.1 * self.tol:
                    break
                mark, mark_entropy = trials, trace[-1]
        classes = np.zeros(rows.size, dtype=np.intp) if labels is None else labels
        order = members.nested_order(interleave(np.bincount(classes)), 0.5 * self.tol)
        return Selection(rows[order], np.array(trace), trials, len(trace) - 1, bandwidth)

    def _offer(
        self, members: WorkingSet, drawn: IntArray, points: FloatArray, candidates: Candidates
    ) -> list[tuple[int, int, float]]:
        """Offer candidates to the working set; return (row, member, log_sum) of each exchange."""
        partners, least_rise = None, self.tol / members.size
        if self.swap == "random":
            partners, least_rise = _partners(members, drawn, candidates), 0.0
        labels = None if candidates.labels is None else candidates.labels[drawn]
        if self.swap == "greedy" and drawn.size > _BATCH:
            kept = members.screen(points, labels, _BATCH, candidates.rng, 0.5 * self.tol)
            drawn, points = drawn[kept], points[kept]
            labels = None if labels is None else labels[kept]
        made = members.exchange(points, labels, least_rise, partners)
        return [(int(drawn[candidate]), member, log_sum) for candidate, member, log_sum in made]

    def _bandwidth(self, candidates: Candidates) -> tuple[Bandwidth, IntArray]:
        """Return the bandwidths and the columns that take part."""
        d = candidates.X.shape[1]
        if isinstance(self.bandwidth, str) and self.bandwidth == "rule-of-thumb":
            thumb = rule_of_thumb_bandwidth(candidates.X, sample_weight=candidates.weight)
            return thumb, np.flatnonzero(~thumb.constant)
        if self.bandwidth is not None and not isinstance(self.bandwidth, str):
            widths = np.asarray(self.bandwidth, dtype=np.float64)
            if widths.shape not in ((), (d,)) or not (np.isfinite(widths) & (widths > 0.0)).all():
                needed = f"give a positive number or {d} of them, one per column of X."
                raise not_usable("bandwidth", self.bandwidth, needed)
            value = np.broadcast_to(widths, d).copy()
            return Bandwidth(value, ("given",) * d, ("",) * d), np.arange(d)
        plug_in = plug_in_bandwidth(
            candidates.X,
            sample_weight=candidates.weight,
            max_rows=_BANDWIDTH_ROWS if self.bandwidth is None else None,
            random_state=candidates.rng,
        )
        used = np.flatnonzero(~plug_in.constant)
        if self.bandwidth is not None:
            return plug_in, used  # [DeBrabanter2010, algorithm 2] as it is
        k = max(used.size, 1)
        rate = candidates.count ** (1.0 / 5.0 - 1.0 / (k + 4.0))
        rate *= (4.0 / (k + 2.0)) ** (1.0 / (k + 4.0)) * 0.75**0.2
        value = plug_in.value.copy()
        value[used] *= rate
        return replace(plug_in, value=value), used

    def _candidates(
        self, candidates: Candidates, labels: IntArray | None, m: int
    ) -> Iterator[IntArray]:
        """Draw batches of candidates, in sweeps that grow as long as the search lasts."""
        n, sweep = candidates.X.shape[0], 8 * _BATCH * _SCREENED
        left = max(10 * n, 50 * m) if self.max_trials is None else self.max_trials
        if m == n:
            return
        size = _BATCH if self.swap == "random" else _BATCH * _SCREENED
        while left > 0:
            order = random_order(n, min(sweep, left), candidates.rng, candidates.weight)
            left, sweep = left - order.size, 2 * sweep
            if (
                labels is not None and candidates.labels is not None
            ):  # no place to take: no candidate
                order = order[np.isin(candidates.labels[order], labels)]
            for start in range(0, order.size, size):
                yield order[start : start + size]


def _scaled(
    X: FloatArray, rows: IntArray, used: IntArray, centre: FloatArray | float, h: FloatArray
) -> FloatArray:
    """Return rows divided by twice the bandwidths, less the centre, as float64."""
    return X[rows][:, used].astype(np.float64) / (2.0 * h) - centre


def _partners(members: WorkingSet, drawn: IntArray, candidates: Candidates) -> IntArray:
    """Draw a member to replace for every candidate, of its class where there are labels."""
    if members.labels is None or candidates.labels is None:
        return candidates.rng.integers(members.size, size=drawn.size)
    order = np.argsort(members.labels, kind="stable")
    labels = candidates.labels[drawn]
    first = np.searchsorted(members.labels[order], labels)
    count = np.searchsorted(members.labels[order], labels, side="right") - first
    return order[first + (candidates.rng.random(drawn.size) * count).astype(np.intp)]
