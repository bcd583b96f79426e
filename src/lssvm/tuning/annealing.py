"""Coupled simulated annealing with variance control, then a simplex search.

Both walk in a box of (log C, log gamma) and see the loss as an energy on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.tuning.search import Recorder, Search, Space, whole

NEVER = 1e100  # energy of a pair without a finite loss


def walk_simplex(box: Box, stage: str, start: FloatArray, edge: float, evaluations: int) -> None:
    """Walk downhill from ``start``, shape (dimension,), by the method of Nelder and Mead."""

    def energy(x: FloatArray) -> float:
        return box.energy(stage, box.reflect(x))

    options: Any = {
        "initial_simplex": np.vstack([start, start + edge * np.eye(box.dimension)]),
        "maxfev": evaluations,
        "xatol": 0.0,
        "fatol": 0.0,
    }
    minimize(energy, start, method="Nelder-Mead", options=options)


class Box:
    """The tuned coordinates, (log C, log gamma) or one of them, and the energy on them."""

    def __init__(self, record: Recorder, space: Space) -> None:
        bounds = [space.C_range] * space.tune_C + [space.gamma_bounds] * space.tune_gamma
        limits = np.log(np.array(bounds).reshape(-1, 2))
        self.low = limits[:, 0]
        self.width = limits[:, 1] - limits[:, 0]
        self.dimension = len(bounds)
        self.scale = 1.0
        self._tie_scale = 1.0
        self._record = record
        self._space = space

    def evaluate(self, stage: str, x: FloatArray) -> tuple[float, float]:
        """Return mean and tie loss at ``x``, shape (dimension,)."""
        space = self._space
        C = float(np.exp(x[0])) if space.C is None else space.C
        gamma = float(np.exp(x[-1])) if space.tune_gamma else space.gamma
        losses = self._record.evaluate(stage, gamma, np.array([C]))
        return float(losses.mean[0]), float(losses.tie[0])

    def start(self, found: list[tuple[float, float]]) -> None:
        """Fix the scales of the energy from the starters."""
        mean, tie = np.array([pair for pair in found if np.isfinite(pair).all()]).reshape(-1, 2).T
        if mean.size:
            self.scale = float(np.std(mean)) or float(np.abs(mean).max()) or 1.0
            self._tie_scale = float(np.median(np.abs(tie))) or 1.0

    def energy(self, stage: str, x: FloatArray) -> float:
        """Return the energy at ``x``: the mean loss, on plateaus with a slope of the tie loss."""
        mean, tie = self.evaluate(stage, x)
        if not np.isfinite(mean):
            return NEVER
        slope = tie / (self._tie_scale + abs(tie)) if np.isfinite(tie) else 1.0
        return mean + 1e-6 * self.scale * slope

    def reflect(self, x: FloatArray) -> FloatArray:
        """Return ``x``, shape (..., dimension), reflected at the walls; unchanged inside them."""
        t = (x - self.low) / self.width
        folded = 1.0 - np.abs(1.0 - np.mod(t, 2.0))
        return np.where((t >= 0.0) & (t <= 1.0), x, self.low + self.width * folded)


ALPHA = 0.05  # change of the acceptance temperature, [DeBrabanter2010, Algorithm 6, step 1]
VARIANCE = 0.99  # share of the largest possible variance, [DeBrabanter2010, Algorithm 6, step 1]
T_0 = 0.5  # initial generation temperature, in widths of the box
EDGE = 0.5  # edge of the initial simplex, in log C and log gamma


@dataclass(frozen=True)
class CoupledAnnealing(Search):
    r"""Anneal several coupled states in (log C, log gamma), then refine the best by Nelder-Mead.

    Cost: ``evaluations + simplex`` pairs, each with its own kernel parameter and hence its own call
    of :meth:`~lssvm.tuning.Objective.at` where gamma is tuned.

    Parameters
    ----------
    starters : int, default=5
        Number q of coupled states.
    evaluations : int, default=90
        Number of pairs evaluated by the annealing, the starting ones included.
    simplex : int, default=70
        Number of pairs evaluated by the simplex search after it. It is spent whole, unless the
        simplex shrinks to rounding (in one dimension) or meets a pair again at the walls.
    checkpoint, on_interrupt
        Of every search, see `Search`.

    Notes
    -----
    [DeBrabanter2010, Section 6.3, Appendix and Algorithm 6]; 90 + 70 evaluations and 5 starters are
    those of its Section 8.

    ==================================== =========================================================
    paper                                here
    ==================================== =========================================================
    :math:`\Theta = \{x_i\}`, q          ``states``, ``starters``
    :math:`y_i = x_i + \varepsilon_i`    ``probes``: a Cauchy step, reflected into the box
    :math:`E`                            mean loss, with a millionth part of the tie loss
    :math:`\rho`                         inside :func:`acceptance`
    :math:`T_k = T_0 / (k + 1)`          ``T_0 / (k + 1)``, in widths of the box
    :math:`T_k^{ac}`                     ``temperature``
    ==================================== =========================================================

    Deviations from the paper, and why:

    - The coupling term is printed with :math:`E(y_i)` under a sum over :math:`x_i \in \Theta`;
      according to the text it comprises the energies of the current states, so :math:`E(x_i)` is
      used.
    - The printed variance :math:`\frac{1}{q} \sum A^2 - \frac{1}{q^2}` is one only of numbers that
      sum to one, and its bound :math:`(q-1)/q^2` (in step 1) holds for those. So it is taken
      over the shares :math:`\exp(-E(x_i)/T^{ac}) / \rho` of the current states.
    - Exponentials are evaluated as differences of energies, so they cannot overflow.
    - The initial acceptance temperature is the standard deviation of the energies of the starters:
      the search does not change when the loss is multiplied by a number.
    - One inner iteration (G = 1) per temperature: 90 evaluations are 18 sweeps of 5.

    Where only one of C and gamma is tuned, the search is one-dimensional; where none is, the one
    pair is evaluated.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from lssvm.tuning import Losses
    >>> from lssvm.tuning.search import Space
    >>> from lssvm.tuning.annealing import CoupledAnnealing
    >>> def at(gamma):
    ...     def losses(C):
    ...         loss = (np.log(C) - 2.0) ** 2 + (np.log(gamma) + 1.0) ** 2
    ...         return Losses(fold=loss[:, None], weight=np.ones(1), tie=loss)
    ...     return SimpleNamespace(losses=losses)
    >>> result = CoupledAnnealing().run(SimpleNamespace(at=at), Space(), random_state=0)
    >>> bool(abs(np.log(result.gamma) + 1.0) < 0.01), result.n_evaluations
    (True, 160)
    """

    starters: int = 5
    evaluations: int = 90
    simplex: int = 70
    stochastic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        usable = whole(self.starters, self.evaluations, self.simplex)
        if not usable or self.starters < 2 or self.evaluations < self.starters or self.simplex < 0:
            raise InvalidInputError(
                f"{self!r} cannot search: give whole numbers, starters >= 2, evaluations >= "
                "starters and simplex >= 0."
            )

    def _search(self, record: Recorder, space: Space, rng: np.random.Generator) -> None:
        box = Box(record, space)
        if not box.dimension:
            record.planned = 1
            box.evaluate("fixed", np.empty(0))
            return
        record.planned = self.evaluations + self.simplex
        best = self._anneal(box, rng)
        if self.simplex:
            walk_simplex(box, "simplex", best, EDGE, self.simplex + 1)  # the start is known

    def _anneal(self, box: Box, rng: np.random.Generator) -> FloatArray:
        """Return the best state of the annealing, shape (dimension,)."""
        q = self.starters
        states = box.low + box.width * rng.random((q, box.dimension))
        box.start([box.evaluate("starters", state) for state in states])
        E = np.array([box.energy("starters", state) for state in states])
        best: FloatArray = states[np.argmin(E)].copy()
        E_best = E.min()
        temperature = box.scale
        sweeps = -(-(self.evaluations - q) // q)
        for k in range(sweeps):
            n = min(q, self.evaluations - q * (k + 1))  # the last sweep may be a part
            steps = np.tan(np.pi * (rng.random((q, box.dimension)) - 0.5))
            spread = box.width * T_0 / (k + 1)  # [DeBrabanter2010, Algorithm 6, step 21]
            probes = box.reflect(states + spread * steps)[:n]  # [DeBrabanter2010, Alg. 6, step 3]
            r = rng.random(q)[:n]
            E_probes = np.array([box.energy("annealing", probe) for probe in probes])
            accepted = E_probes <= E[:n]  # [DeBrabanter2010, Algorithm 6, step 5]
            A = acceptance(E_probes, E, temperature)  # [DeBrabanter2010, Algorithm 6, step 8]
            accepted |= A > r  # [DeBrabanter2010, Algorithm 6, step 9]
            if E_probes.min() < E_best:
                best, E_best = probes[np.argmin(E_probes)], E_probes.min()
            states[:n][accepted], E[:n][accepted] = probes[accepted], E_probes[accepted]
            wanted = VARIANCE * (q - 1) / q**2  # [DeBrabanter2010, Algorithm 6, step 1]
            low = acceptance_variance(E, temperature) < wanted
            # [DeBrabanter2010, Algorithm 6, steps 16 to 19]
            temperature *= 1 - ALPHA if low else 1 + ALPHA
        return best


def acceptance(E_probes: FloatArray, E_states: FloatArray, temperature: float) -> FloatArray:
    r"""Return the probabilities with which worse probes are accepted.

    :math:`A_i = e^{-E(y_i)/T} / (e^{-E(y_i)/T} + \rho)` with
    :math:`\rho = \sum_j e^{-E(x_j)/T}`, [DeBrabanter2010, Appendix], evaluated as
    :math:`1 / (1 + \sum_j e^{(E(y_i) - E(x_j))/T})`.
    """
    differences = (E_probes[:, None] - E_states[None, :]) / temperature  # (n, q)
    A: FloatArray = expit(-logsumexp(differences, axis=1))  # [DeBrabanter2010, Appendix]
    return A


def acceptance_variance(E_states: FloatArray, temperature: float) -> float:
    r"""Return the variance of the shares of the current states in the coupling term.

    :math:`\frac{1}{q} \sum_i A_i^2 - \frac{1}{q^2}` with :math:`A_i = e^{-E(x_i)/T} / \rho`,
    [DeBrabanter2010, Appendix]. It is between 0 (equal energies) and :math:`(q-1)/q^2`.
    """
    q = E_states.size
    A = softmax(-E_states / temperature)
    return float(np.mean(A**2) - 1.0 / q**2)  # [DeBrabanter2010, Appendix]
