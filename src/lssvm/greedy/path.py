"""What a greedy run leaves behind: the order of the basis functions, and the model at any size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, solve_triangular
from scipy.linalg import cholesky as dense_cholesky

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import NotPositiveDefiniteError
from lssvm.solvers import DualSystem

NOT_DEFINITE = (
    "The kernel matrix of the selected rows is not positive definite, even with 1/C on its "
    "diagonal. Use a positive definite kernel such as 'rbf', or lower C, or pass the rows as "
    "float64."
)
OnEvent = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Greedy:
    """Settings of the greedy approximation.

    Parameters
    ----------
    epsilon : float, default=0.5
        Stop when no row outside the basis is predicted with a larger error (eq. (31) of
        [Jiao2007]_); 0 takes every row.
    criterion : {"fsals", "kmp", "sggp"}, default="fsals"
        The loss that the next basis function is to lower most: the dual of the LS-SVM, eq. (38),
        or that of kernel matching pursuit, eq. (36), or of the sparse greedy Gaussian process,
        eq. (37).
    candidates : int or None, default=None
        Look at that many random rows per step; None looks at all. 146 rows hold one of the best
        2.5 % with probability 0.975 (eq. (35)).
    prefit : bool, default=False
        Whether the gain of a candidate counts the refit of all coefficients (eq. (23)), not of its
        own alone (eq. (30)).
    max_support : int or None, default=None
        Stop at that many basis functions per problem.
    patience : int, default=50
        With held-out rows: stop after that many steps without a smaller squared error on them.

    Examples
    --------
    >>> from lssvm.greedy import Greedy
    >>> Greedy(candidates=146).epsilon
    0.5
    """

    epsilon: float = 0.5
    criterion: str = "fsals"
    candidates: int | None = None
    prefit: bool = False
    max_support: int | None = None
    patience: int = 50


@dataclass(frozen=True)
class GreedyPath:
    """The run of one problem: one entry per basis function, in the order of selection.

    Attributes
    ----------
    support : int array of shape (m,)
        Rows, the first selected first.
    objective : array of shape (m,)
        The loss after each step; it never rises.
    error : array of shape (m,)
        The largest error among the rows looked at after each step: what eq. (31) compares.
    held_out : array of shape (m,) or (0,)
        Mean squared error on the held-out rows after each step.
    status : {"epsilon", "exhausted", "max_support", "held_out", "memory"}
        Why it stopped.
    coef : array of shape (m,)
        Of the basis functions.
    intercept : float
        Zero without a bias.
    targets : array of shape (m,)
        Right-hand side of the systems: y at the support, or K^T y.
    offsets : array of shape (m,) or None
        For "kmp" and "sggp" with a bias: means of the basis functions, so that
        b = mean - offsets' coef.
    mean : float
        Mean target, used with ``offsets``.
    bordered : bool
        Whether the bias is the border of the system (eq. (13)).
    factor : array of shape (m, m) or None
        Lower Cholesky factor of the system where the support alone does not tell it.
    left_out : array of shape (n,) or None
        Leave-one-out predictions of all rows, where they were asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.greedy import Greedy, greedy_paths
    >>> from lssvm.solvers import DualSystem
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> system = DualSystem(RBF(1.0), X, X, C=100.0)
    >>> (path,) = greedy_paths(system, np.sin(X), Greedy(epsilon=0.1))
    >>> path.status, len(path.support) < 20
    ('epsilon', True)
    """

    support: IntArray
    objective: FloatArray
    error: FloatArray
    held_out: FloatArray
    status: str
    coef: FloatArray
    intercept: float
    targets: FloatArray
    offsets: FloatArray | None = None
    mean: float = 0.0
    bordered: bool = True
    factor: FloatArray | None = None
    left_out: FloatArray | None = None

    def at(self, size: int, factor: FloatArray) -> tuple[FloatArray, float]:
        """Return coefficients (size,) and bias of the model of the first ``size`` functions.

        The leading part of the factor is that of the smaller system, so that a size costs size^2
        operations.

        Parameters
        ----------
        size : int
            How many functions.
        factor : array of shape (m, m)
            Lower Cholesky factor of the system of all functions.
        """
        return solve_size(
            factor[:size, :size],
            self.targets[:size],
            bordered=self.bordered,
            offsets=None if self.offsets is None else self.offsets[:size],
            mean=self.mean,
        )

    def cut(self, size: int, coef: FloatArray, intercept: float) -> GreedyPath:
        """Return the path of the first ``size`` functions, with the solution of `at`.

        Parameters
        ----------
        size : int
            How many functions stay.
        coef : array of shape (size,)
            Their coefficients.
        intercept : float
            The bias.
        """
        names = ("support", "objective", "error", "held_out", "targets")
        changed: dict[str, Any] = {name: getattr(self, name)[:size] for name in names}
        if self.offsets is not None:
            changed["offsets"] = self.offsets[:size]
        if self.factor is not None:
            changed["factor"] = self.factor[:size, :size]
        if size < len(self.support):
            changed["status"] = "max_support"
        return replace(self, coef=coef, intercept=intercept, left_out=None, **changed)


def solve_size(
    factor: FloatArray,
    targets: FloatArray,
    *,
    bordered: bool,
    offsets: FloatArray | None = None,
    mean: float = 0.0,
) -> tuple[FloatArray, float]:
    """Solve one subproblem from its Cholesky factor.

    Parameters
    ----------
    factor : array of shape (m, m)
        Lower triangular G with G G^T the definite part of the system.
    targets : array of shape (m,)
    bordered : bool
        Whether a border of ones determines the bias.
    offsets, mean
        See `GreedyPath`.

    Returns
    -------
    coef : array of shape (m,)
    intercept : float
    """
    w = solve_triangular(factor, targets, lower=True)
    if not bordered:
        coef = solve_triangular(factor, w, lower=True, trans=1)
        return coef, 0.0 if offsets is None else float(mean - offsets @ coef)
    u = solve_triangular(factor, np.ones(len(targets)), lower=True)
    b = float(u @ w / (u @ u))
    return solve_triangular(factor, w - b * u, lower=True, trans=1), b  # [Jiao2007, eq. (16)]


def own_errors(factor: FloatArray, coef: FloatArray, bordered: bool, y: FloatArray) -> FloatArray:
    """Return the leave-one-out errors of the rows of a basis, alpha_i / R_ii, shape (m,).

    m^3/3 operations for the inverse of the factor. Nothing is left of a basis of one with a bias:
    the model is 0 and the error is y.
    """
    if bordered and len(coef) == 1:
        return y
    inverse = solve_triangular(factor, np.eye(len(coef)), lower=True, overwrite_b=True)
    diagonal = np.einsum("ij,ij->j", inverse, inverse)  # of H^-1
    if bordered:
        eta = inverse.T @ inverse.sum(axis=1)  # H^-1 1
        diagonal = diagonal - eta**2 / eta.sum()
    return np.asarray(coef / diagonal)  # [Jiao2007, eq. (13)]: R_ii of the bordered inverse


def cholesky(matrix: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor (m, m) in float64, m^3/3 operations."""
    matrix = np.asarray(matrix, dtype=np.float64)
    try:
        return np.asarray(dense_cholesky(matrix, lower=True, check_finite=False))
    except LinAlgError as error:
        raise NotPositiveDefiniteError(NOT_DEFINITE) from error


@dataclass
class Trace:
    """What is recorded while a problem runs."""

    support: list[int] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    status: str = "exhausted"
    fitted: FloatArray | None = None  # (n,), after the last step

    def record(self, error: float, held: FloatArray, weight: FloatArray) -> None:
        """Record the largest error after a step, and the mean square of the held-out ones."""
        self.error.append(float(error))
        if len(held):
            self.held_out.append(float(np.average(held**2, weights=weight)))

    def stops(self, settings: Greedy, error: float, left: bool) -> bool:
        """Say whether to stop, and keep why; ``left``: whether there are rows to choose from."""
        if not left:
            self.status = "exhausted"
        elif error <= settings.epsilon:  # [Jiao2007, eq. (31)]
            self.status = "epsilon"
        elif settings.max_support is not None and len(self.support) >= settings.max_support:
            self.status = "max_support"
        elif not self.out_of_patience(settings.patience):
            return False
        return True

    def out_of_patience(self, patience: int) -> bool:
        """Say whether the smallest held-out loss lies at least ``patience`` steps back."""
        over = len(self.held_out) - 1 - int(np.argmin(self.held_out or [0.0])) >= patience
        self.status = "held_out" if over else self.status
        return over

    def cut(self, size: int) -> dict[str, Any]:
        """Return the first ``size`` steps, as fields of a `GreedyPath`."""
        return {
            "support": np.array(self.support[:size], dtype=np.intp),
            "objective": np.array(self.objective[:size]),
            "error": np.array(self.error[:size]),
            "held_out": np.array(self.held_out[:size]),
            "status": self.status,
        }

    def event(self, number: int) -> dict[str, Any]:
        """Say how far the problem of that number is, for a progress report."""
        error = f", largest error {self.error[-1]:.4g}" if self.error else ""
        return {"text": f"problem {number + 1}, {len(self.support)} basis functions{error}"}


def best_size(trace: Trace, patience: int) -> int:
    """Return how many steps of a run count: all, or those up to the best on held-out rows."""
    losses = np.asarray(trace.held_out)
    if len(losses) == 0:
        return len(trace.support)
    best = 0
    for t in range(len(losses)):
        if losses[t] < losses[best]:
            best = t
        if t - best >= patience:
            break
    return best + 1


def support_gram(system: DualSystem, support: IntArray) -> FloatArray:
    """Return the kernel matrix of the support, without weights, shape (m, m), in float64."""
    K = system.kernel(system.rows[support], system.basis[support])
    return np.asarray(K, dtype=np.float64)
