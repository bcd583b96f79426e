r"""Free-run validation: how far a model's own predictions carry it, for every C at once.

A series model that predicts one step well can still diverge when it is fed its own predictions. So
the loss here is that of the free run itself: stretches of the series are left out, the model is
trained on the rest and then runs through each stretch from the true values before it.

At one kernel parameter the kernel matrix is decomposed once. Leaving out the rows v of a stretch
changes the solution in closed form ([An2007]_, see :mod:`lssvm.tuning.dual`),

.. math::

    \beta^{(-v)} = \beta - G_{:v} G_{vv}^{-1} \beta_v, \qquad
    b^{(-v)} = b - \eta_v^T G_{vv}^{-1} \beta_v / s,

and all models, of every stretch and every C, run side by side as the rows of one matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import slices
from lssvm.kernels import Kernel
from lssvm.solvers import DualSystem, EigenState, eigen_state
from lssvm.solvers.exact import BorderedPath
from lssvm.tuning.objective import Losses

RUNAWAY = 1e6
"""A free run is held within this many units: it has diverged, but numbers stay finite."""

Noise: TypeAlias = Callable[[FloatArray], FloatArray]
"""From the rows of a step (m, p, d) to what is added to their predictions (m, p)."""

_CHUNK = 4_000_000  # numbers in the largest temporary


@dataclass(frozen=True)
class Stretch:
    """A piece of a series through which models run freely.

    Attributes
    ----------
    history : array of shape (lags,)
        Values before the stretch, the newest first.
    truth : array of shape (steps,)
        Values of the stretch.
    left_out : int array
        Training rows that a model of this stretch must not have seen.
    exog : array of shape (steps, e) or None, default=None
        Further columns of the rows of the stretch.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.tuning import Stretch
    >>> len(Stretch(np.zeros(2), np.ones(5), np.arange(3, 8)).truth)
    5
    """

    history: FloatArray
    truth: FloatArray
    left_out: IntArray
    exog: FloatArray | None = None


class Models(Protocol):
    """Several models that predict side by side.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> from lssvm.tuning.free_running import Expansions, Models
    >>> models: Models = Expansions(Linear(), np.eye(2), np.ones((3, 2)), np.zeros(3))
    >>> models(np.ones((3, 4, 2))).shape
    (3, 4)
    """

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Predict ``rows`` (m, p, d), those of each of the m models, and return (m, p)."""


@dataclass(frozen=True)
class Expansions:
    """Dual models that share their kernel and their training rows.

    Parameters
    ----------
    kernel : Kernel
    basis : array of shape (n, d)
    alpha : array of shape (m, n)
        Support values of each model.
    b : array of shape (m,)

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> from lssvm.tuning.free_running import Expansions
    >>> Expansions(Linear(), np.eye(2), np.array([[1.0, 2.0]]), np.ones(1))(np.ones((1, 1, 2)))
    array([[4.]])
    """

    kernel: Kernel
    basis: FloatArray
    alpha: FloatArray
    b: FloatArray

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Predict ``rows`` (m, p, d), those of each of the m models, and return (m, p)."""
        m, p, d = rows.shape
        out = np.empty((m, p))
        at_once = max(1, _CHUNK // (p * len(self.basis)))
        for part in slices(m, at_once):
            K = np.asarray(self.kernel(rows[part].reshape(-1, d), self.basis))
            K = K.reshape(-1, p, len(self.basis))
            out[part] = (K @ self.alpha[part, :, None])[:, :, 0]  # [Suykens2002, eq. (3.34)]
        return out + self.b[:, None]


class Predicts(Protocol):
    """A fitted regressor of any library."""

    def predict(self, X: FloatArray) -> Any:
        """Return predictions (n,) for rows (n, d)."""


@dataclass(frozen=True)
class FittedRegressors:
    """Fitted regressors, one for each model; a single one serves all.

    Parameters
    ----------
    regressors : sequence of fitted regressors

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from lssvm.tuning.free_running import FittedRegressors
    >>> line = LinearRegression().fit(np.eye(2), np.array([1.0, 2.0]))
    >>> FittedRegressors([line])(np.ones((3, 4, 2))).shape
    (3, 4)
    """

    regressors: Sequence[Predicts]

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Predict ``rows`` (m, p, d), those of each of the m models, and return (m, p)."""
        if len(self.regressors) == 1:
            flat = self.regressors[0].predict(rows.reshape(-1, rows.shape[2]))
            return np.asarray(flat, dtype=float).reshape(rows.shape[:2])
        pairs = zip(self.regressors, rows, strict=True)
        return np.stack([np.asarray(one.predict(own), dtype=float).ravel() for one, own in pairs])


def free_run(
    models: Models,
    history: FloatArray,
    steps: int,
    exog: FloatArray | None = None,
    noise: Noise | None = None,
) -> FloatArray:
    r"""Let models run on their own predictions.

    Iterates :math:`\hat y_{k+1} = f(\hat y_k, \hat y_{k-1}, \dots) + \epsilon_k` from given values,
    for m models and p paths of each at once.

    Parameters
    ----------
    models : Models
        Kernel expansions over lagged values.
    history : array of shape (m, p, lags)
        Values before the first step, the newest first.
    steps : int
        How far they run.
    exog : array of shape (m, steps, e) or None, default=None
        Further columns of the rows, the same for all paths of a model.
    noise : callable or None, default=None
        From the rows of a step (m, p, lags + e) to what is added to their predictions (m, p) before
        they are fed back; None: nothing.

    Returns
    -------
    array of shape (m, p, steps)

    Notes
    -----
    ``steps`` predictions of m p rows each. Values are held within plus or minus `RUNAWAY`.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> from lssvm.tuning import free_run
    >>> from lssvm.tuning.free_running import Expansions
    >>> halve = Expansions(Linear(), np.array([[1.0]]), np.array([[0.5]]), np.zeros(1))
    >>> free_run(halve, np.array([[[8.0]]]), 3)
    array([[[4., 2., 1.]]])
    """
    m, p, lags = history.shape
    # Newest last, so that a step appends: the window moves, nothing is copied.
    track = np.empty((m, p, lags + steps))
    track[:, :, :lags] = history[:, :, ::-1]
    rows = np.empty((m, p, lags + (0 if exog is None else exog.shape[2])))
    for step in range(steps):
        rows[:, :, :lags] = track[:, :, step : step + lags][:, :, ::-1]
        if exog is not None:
            rows[:, :, lags:] = exog[:, None, step]
        value = models(rows)  # [Suykens2002, Section 3.5]
        if noise is not None:
            value = value + noise(rows)
        track[:, :, lags + step] = np.clip(np.nan_to_num(value, nan=RUNAWAY), -RUNAWAY, RUNAWAY)
    return track[:, :, lags:]


def left_out_solution(
    state: EigenState, path: BorderedPath, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the solutions of all C without some training rows.

    Parameters
    ----------
    state : EigenState
    path : BorderedPath
        Solutions with all rows, of one target.
    rows : int array of shape (v,)
        What is left out.

    Returns
    -------
    alpha : array of shape (c, n)
        Zero at ``rows``.
    b : array of shape (c,)

    Notes
    -----
    v^2 n operations for each C.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.solvers import DualSystem, eigen_state
    >>> from lssvm.tuning.free_running import left_out_solution
    >>> X = np.arange(5.0)[:, None]
    >>> state = eigen_state(DualSystem(RBF(1.0), X, X, C=1.0))
    >>> path = state.bordered(np.array([1.0, 10.0]), X)
    >>> alpha, b = left_out_solution(state, path, np.array([1, 2]))
    >>> alpha.shape, bool(np.all(alpha[:, 1:3] == 0))
    ((2, 5), True)
    """
    beta, b = path.beta[:, :, 0].T, path.b[:, 0]  # (c, n), (c,)
    if len(rows) == 0:
        return beta, b
    Q, eta, s = state.Q, path.eta.T, path.s
    Qv, eta_v = np.ascontiguousarray(Q[rows]), eta[:, rows]
    e = np.empty((len(s), len(rows)))
    for c, root in enumerate(np.sqrt(path.d.T)):
        half = Qv * root
        G = half @ half.T - np.outer(eta_v[c], eta_v[c] / s[c])
        e[c] = np.linalg.solve(G, beta[c, rows])  # [An2007]
    shift = np.einsum("cv,cv->c", eta_v, e) / s
    alpha = beta - (path.d.T * (e @ Qv)) @ Q.T + eta * shift[:, None]
    alpha[:, rows] = 0.0
    return alpha, b - shift * state.bias


@dataclass(frozen=True)
class FreeRunObjective:
    """The mean squared error of free runs as a function of (C, gamma).

    Parameters
    ----------
    kernel : callable
        From gamma to a `Kernel`.
    rows : array of shape (n, d)
        Training rows: the latest values first, then further columns.
    targets : array of shape (n,)
        The next value of every row.
    stretches : sequence of Stretch
        All of the same length.
    sums : int, default=0
        How often errors are summed up along a stretch before they are squared: a series that was
        differenced is judged by its levels.
    budget, threads : int
        Memory budget in bytes.
    bias : bool, default=True
        Whether the model has an intercept.

    Notes
    -----
    For n rows, o stretches of h steps with v rows left out each, and c values of C: one
    eigendecomposition, o c v^2 n operations for the solutions and h o c n kernel evaluations for
    the runs.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.tuning import FreeRunObjective, Stretch
    >>> y = np.sin(np.arange(60.0))
    >>> rows = np.column_stack([y[1:-1], y[:-2]])
    >>> stretch = Stretch(y[[29, 28]], y[30:40], np.arange(28, 40))
    >>> objective = FreeRunObjective(RBF, rows, y[2:], [stretch])
    >>> loss = objective.at(0.5).losses(np.array([1e-3, 1e3])).mean
    >>> bool(loss[1] < 0.01 < loss[0])
    True
    """

    kernel: Callable[[float | None], Kernel]
    rows: FloatArray
    targets: FloatArray
    stretches: Sequence[Stretch]
    sums: int = 0
    budget: int = 2**31
    threads: int = 1
    bias: bool = True

    def at(self, gamma: float | None) -> FreeRunPoint:
        """Decompose the kernel matrix at ``gamma``."""
        kernel, limits = self.kernel(gamma), (self.budget, self.threads)
        system = DualSystem(kernel, self.rows, self.rows, 1.0, None, *limits, self.bias)
        return FreeRunPoint(self, kernel, eigen_state(system))


@dataclass(frozen=True)
class FreeRunPoint:
    """Free runs at one kernel parameter, for every C.

    Parameters
    ----------
    objective : FreeRunObjective
        What is minimised.
    kernel : Kernel
        At the kernel parameter.
    state : EigenState
        Of the kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.tuning import FreeRunObjective, Stretch
    >>> y = np.sin(np.arange(60.0))
    >>> rows = np.column_stack([y[1:-1], y[:-2]])
    >>> stretch = Stretch(y[[29, 28]], y[30:40], np.arange(28, 40))
    >>> point = FreeRunObjective(RBF, rows, y[2:], [stretch]).at(0.5)
    >>> point.runs(np.array([1.0, 10.0])).shape
    (1, 2, 10)
    """

    objective: FreeRunObjective
    kernel: Kernel
    state: EigenState

    def models(self, C: FloatArray) -> Expansions:
        """Return the model of each stretch and C, stretch by stretch.

        Parameters
        ----------
        C : array of shape (c,)
            Regularisation, one value for each candidate.
        """
        objective = self.objective
        path = self.state.bordered(np.asarray(C, dtype=float), objective.targets[:, None])
        solved = [left_out_solution(self.state, path, s.left_out) for s in objective.stretches]
        alpha = np.concatenate([alpha for alpha, _ in solved])
        alpha[np.tile(~path.definite, len(solved))] = np.nan
        b = np.concatenate([b for _, b in solved])
        return Expansions(self.kernel, objective.rows, alpha, b)

    def runs(self, C: FloatArray) -> FloatArray:
        """Return the free runs of all stretches and C, shape (o, c, steps).

        Parameters
        ----------
        C : array of shape (c,)
            Regularisation, one value for each candidate.
        """
        stretches, c = self.objective.stretches, len(C)
        history = np.repeat(np.stack([s.history for s in stretches]), c, axis=0)
        exog, steps = stack_exog(stretches), len(stretches[0].truth)
        exog = None if exog is None else np.repeat(exog, c, axis=0)
        runs = free_run(self.models(C), history[:, None], steps, exog)
        return runs.reshape(len(stretches), c, steps)

    def losses(self, C: FloatArray) -> Losses:
        """Return the mean squared error of every stretch for the values ``C``, shape (c,)."""
        objective = self.objective
        truth = np.stack([s.truth for s in objective.stretches])[:, None]
        at_once = max(1, _CHUNK // (len(truth) * len(objective.targets)))
        pieces = []
        for part in slices(len(C), at_once):
            errors = level_errors(self.runs(C[part]) - truth, objective.sums)
            pieces.append((errors**2).mean(axis=2).T)
        fold = np.concatenate(pieces)  # (c, o)
        weight = np.full(len(truth), 1.0 / len(truth))
        return Losses(fold, weight, fold.mean(axis=1))


def level_errors(errors: FloatArray, sums: int) -> FloatArray:
    """Sum errors of differences (..., steps) up to errors of levels."""
    for _ in range(sums):
        errors = np.cumsum(errors, axis=-1)
    return errors


def stack_exog(stretches: Sequence[Stretch]) -> FloatArray | None:
    """Return the further columns of all stretches, shape (o, steps, e), None without any."""
    if stretches[0].exog is None:
        return None
    return np.stack([s.exog for s in stretches if s.exog is not None])
