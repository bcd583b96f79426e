"""Conjugate gradients for the fixed-size model with many prototypes: no moments are formed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError, not_usable
from lssvm._core.namespace import Array, device, get_namespace, to_numpy
from lssvm.solvers.base import OnIteration, Status, warn_unsolved
from lssvm.solvers.pcg_rows import NormalProducts, Sums
from lssvm.solvers.pcg_space import FeatureSpace

_RESTARTS = 5
_TINY = np.finfo(np.float64).tiny
_SAMPLES = ((4, 60), (12, 20))  # rows per prototype, and iterations that they may cost at most
_FUNCTION = 20  # operations that an evaluation of the kernel's scalar function counts for
_ITERATIONS = 25  # that "auto" reckons with
_MANY = 2000  # prototypes up to which it does not reckon: moments are a matter of seconds
_GAIN = 2.0  # how many times fewer operations "auto" asks for: moments can be used again


@dataclass(frozen=True)
class PCG:
    """How the fixed-size model is solved by conjugate gradients.

    Parameters
    ----------
    tol : float, default=1e-6
        Relative residual of the normal equations in feature space that every output has to reach.
    max_iter : int, default=200
        Most iterations, one pass over the rows each.
    n_rows : int or None, default=None
        Rows of the preconditioner beside the prototypes; None: see `preconditioner_rows`.

    Notes
    -----
    What needs moments is not available: `partial_fit` and `forget`, error bars and intervals,
    reductions, losses other than squares, and ``n_prototypes="cv"``. With ``C="cv"`` or
    ``gamma="cv"`` both are tuned, by moments, with the first 1,000 prototypes (a selection of its
    own: every prefix is one) and carry over as they are; out-of-fold outputs, hence probabilities
    and thresholds, are those of that smaller model.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import FixedSizeLSSVR
    >>> from lssvm.solvers import PCG
    >>> X = np.linspace(0, 6, 400)[:, None]
    >>> model = FixedSizeLSSVR(20, C=100.0, gamma=1.0, solver=PCG(tol=1e-8))
    >>> model.fit(X, np.sin(X[:, 0])).residual_ < 1e-8
    True
    """

    tol: float = 1e-6
    max_iter: int = 200
    n_rows: int | None = None

    def __post_init__(self) -> None:
        number = isinstance(self.tol, (int, float, np.number)) and type(self.tol) is not bool
        if not number or not self.tol > 0 or not _whole(self.max_iter, 1):
            raise InvalidInputError(
                f"tol={self.tol!r} and max_iter={self.max_iter!r} are not usable: tol must be "
                "positive and max_iter a whole number of at least 1."
            )
        if self.n_rows is not None and not _whole(self.n_rows, 0):
            raise not_usable("n_rows", self.n_rows, "give None, or a whole number of 0 or more.")


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, (int, np.integer)) and type(value) is not bool and int(value) >= least


@dataclass(frozen=True, eq=False)
class PCGSolution:
    """What `solve_pcg` returns.

    Attributes
    ----------
    coef : array of shape (m, k)
        Coefficients, a column for each output.
    intercept : array of shape (k,)
        What is added to every output.
    status : Status
        Whether it converged.
    residual : float
        Largest relative residual over the outputs, recomputed at the end.
    iterations : int
        How many there were.
    history : list of float
        Largest relative residual after every iteration.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.solvers import PCGSolution, Status
    >>> PCGSolution(np.zeros((3, 1)), np.ones(1), Status.SOLVED, 0.0, 4).iterations
    4
    """

    coef: Array
    intercept: Array
    status: Status
    residual: float
    iterations: int
    history: list[float] = field(default_factory=list)


def solve_pcg(
    rows: NormalProducts,
    space: FeatureSpace,
    C: FloatArray,
    columns: IntArray | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 200,
    on_iteration: OnIteration | None = None,
) -> PCGSolution:
    r"""Solve the normal equations of the fixed-size model without forming them.

    .. math::

        \bigl(K^T S (K - 1 \mu^T) + (K_{ZZ} + \delta I)/C\bigr)\,\beta = K^T S (y - \bar y),
        \qquad b = \bar y - \mu^T \beta,
        \qquad \mu = K^T s / 1^T s, \quad \bar y = s^T y / 1^T s,

    which is [DeBrabanter2010]_, eq. (7), with the bias eliminated instead of regularised.

    Parameters
    ----------
    rows : NormalProducts
        Products with K and its transpose; see `KernelProducts`.
    space : FeatureSpace
        Holds the preconditioners of all ``columns``; see `make_space`.
    C : array of shape (k,)
        Of all outputs.
    columns : int array, optional
        The outputs that are solved for; all by default.
    tol : float, default=1e-6
        Relative residual of every output.
    max_iter : int, default=200
        Iterations at most.
    on_iteration : callable, optional
        Called with the number of the iteration and the largest relative residual.

    Returns
    -------
    PCGSolution
        With arrays of the library, and on the device, of ``rows``.

    Notes
    -----
    The idea is that of [Rudi2017]_: conjugate gradients on the Nystrom normal equations, one pass
    over the rows for each step, with a preconditioner from Cholesky factors of size m. With
    U^T U = K_ZZ + delta I (delta = 1e-12 of its trace) the system in w = U beta is

    .. math:: (U^{-T} K^T S (K - 1 \mu^T) U^{-1} + I/C)\,w = U^{-T} K^T S (y - \bar y),

    the primal system of the fixed-size model. ``tol`` is about its relative residual, in the
    Euclidean norm and in that of the inverse preconditioner, which is about the relative error of
    the model in the norm that it minimises: both have to be as small. Two things
    differ from the paper. The mean is projected out, so that the bias is exact. And the
    preconditioner is the same matrix for a sample of rows and the prototypes, all of equal weight,
    where the paper has the prototypes alone: see `preconditioner_rows`.

    Directions in which K_ZZ has less than delta are damped. The direct route (`solve_primal`) drops
    those below sqrt(eps / (10 m)) of the trace instead, which the rounding of its moments asks
    for: where K_ZZ has such directions, the two models differ on rows far from all prototypes.

    The outputs are columns that share every pass; a column that has converged leaves it. At the
    end the residual is computed anew, and where rounding has parted the recurrence from it, the
    iteration starts again from there, up to five times. Each iteration costs a pass (n m (2 d + 4
    k) operations) and 4 m^2 k; memory is that of the two arguments and 6 m k numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.solvers import KernelProducts, PreconditionerRows
    >>> from lssvm.solvers import array_rows, make_space, solve_pcg
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> Z, C = X[::20], np.array([100.0])
    >>> rows = KernelProducts(RBF(1.0), array_rows(X, np.sin(X)), Z, 1)
    >>> space = make_space(RBF(1.0), Z)
    >>> space.add(PreconditionerRows(np.arange(1), 100.0, X[::5], np.full(40, 4.0), 1.0))
    >>> solution = solve_pcg(rows, space, C)
    >>> solution.status.name, solution.residual < 1e-6
    ('SOLVED', True)
    """
    sums = rows.sums
    xp = get_namespace(sums.cross)
    columns = np.arange(sums.cross.shape[1]) if columns is None else np.asarray(columns)
    mean, centre, rhs = _right_side(xp, sums, columns)
    system = _System(xp, rows, space, mean, np.asarray(C, dtype=np.float64), columns)
    rhs = space.lower(rhs)
    every = np.arange(len(columns))
    scale = np.maximum(system.norms(rhs, space.precondition(rhs, columns)), _TINY)
    X, R, history = xp.zeros_like(rhs), rhs, list[float]()
    for _ in range(1 + _RESTARTS):
        X = X + _descend(system, R, scale, 0.9 * tol, max_iter, history, on_iteration)
        R = rhs - system.product(X, every)
        norms = system.norms(R, space.precondition(R, columns))
        residual = float(np.max(norms / scale, initial=0.0))
        if residual <= tol or len(history) >= max_iter:
            break
    advice = f"Raise max_iter ({max_iter}), tol or the rows of the preconditioner"
    if len(history) < max_iter:
        advice = "Rounding leaves no more digits: raise tol"
    advice += " (solver=PCG(...) of lssvm.solvers), lower C, or use solver='cholesky'."
    how = f"Conjugate gradients stopped after {len(history)} iterations"
    status = warn_unsolved(how, residual, tol, advice)
    coef = space.lift(X)
    intercept = centre - xp.sum(mean * coef, axis=0)
    return PCGSolution(coef, intercept, status, residual, len(history), history)


def _right_side(xp: Any, sums: Sums, columns: IntArray) -> tuple[Array, Array, Array]:
    """Return the means of K (m, 1 or k), of the targets (k,) and K^T S (y - mean) (m, k)."""
    at = xp.asarray(columns, device=device(sums.cross))
    border, weight = sums.border, sums.weight
    if border.shape[1] > 1:
        border, weight = xp.take(border, at, axis=1), xp.take(weight, at, axis=0)
    if not bool(xp.all(weight > 0)):
        raise InvalidInputError("A training set is empty: use more rows, or fewer classes.")
    target = xp.take(sums.target, at, axis=0) / weight
    rhs = xp.take(sums.cross, at, axis=1) - border * target[None, :]
    return border / weight[None, :], target + xp.take(sums.offset, at, axis=0), rhs


@dataclass(frozen=True, eq=False)
class _System:
    """The matrix of the primal system, one for each output."""

    xp: Any
    rows: NormalProducts
    space: FeatureSpace
    mean: Array
    C: FloatArray
    columns: IntArray

    def product(self, V: Array, at: IntArray) -> Array:
        """Return the products for V (m, a), whose columns are the outputs ``columns[at]``."""
        xp = self.xp
        beta, mean = self.space.lift(V), self.mean
        if mean.shape[1] > 1:
            mean = self.take(mean, at)
        own = self.columns[at]
        G = self.rows.product(beta, -xp.sum(mean * beta, axis=0), own)
        ridge = xp.asarray(1.0 / self.C[own], dtype=V.dtype, device=device(V))
        return self.space.lower(G) + V * ridge[None, :]

    def take(self, A: Array | None, at: IntArray) -> Array:
        """Return some columns; None of None."""
        return None if A is None else self.xp.take(A, self.xp.asarray(at, device=device(A)), axis=1)

    def dots(self, A: Array, B: Array) -> Array:
        """Return the inner products of the columns."""
        return self.xp.sum(A * B, axis=0)

    def norms(self, R: Array, Z: Array) -> FloatArray:
        """Return the two norms of residuals R, preconditioned Z, in main memory: shape (2, a)."""
        squares = self.xp.stack([self.dots(R, R), self.dots(R, Z)])
        return np.sqrt(np.asarray(to_numpy(squares), dtype=np.float64))


def _descend(
    system: _System,
    R: Array,
    scale: FloatArray,
    tol: float,
    max_iter: int,
    history: list[float],
    on_iteration: OnIteration | None,
) -> Array:
    """Run the recurrences from zero for the right-hand sides R (m, k); return the solutions."""
    xp, k = system.xp, R.shape[1]
    active, relative = np.arange(k), np.zeros(k)
    solved: dict[int, Array] = {}
    x, r, P, before = xp.zeros_like(R), R, None, None
    began = len(history)
    while True:
        z = system.space.precondition(r, system.columns[active])
        relative[active] = np.max(system.norms(r, z) / scale[:, active], axis=0)
        if len(history) > began:
            history[-1] = float(np.max(relative))
            if on_iteration is not None:
                on_iteration(len(history), history[-1])
        left = relative[active] > tol
        if not left.all():
            solved.update({int(active[i]): x[:, int(i)] for i in np.flatnonzero(~left)})
            stay, active = np.flatnonzero(left), active[left]
            if not active.size:
                break
            x, r, z, P, before = (system.take(A, stay) for A in (x, r, z, P, before))
        if len(history) >= max_iter:
            solved.update({int(j): x[:, i] for i, j in enumerate(active)})
            break
        rho = system.dots(r, z)[None, :]
        P = z if P is None else z + P * (rho / before)
        HP = system.product(P, active)
        curvature = system.dots(P, HP)[None, :]
        if not np.all(to_numpy(curvature) > 0):
            raise NotPositiveDefiniteError(
                f"A direction p with p^T H p = {np.min(to_numpy(curvature)):.1e} was met: the "
                "kernel or the targets are not finite. Scale the features (StandardScaler), or "
                "lower C, degree or gamma."
            )
        x, r, before = x + rho / curvature * P, r - rho / curvature * HP, rho
        history.append(np.inf)
    return xp.stack([solved[j] for j in range(k)], axis=1)


def preconditioner_rows(n: int, m: int, d: int, k: int = 1) -> int:
    """Return how many rows a preconditioner sees beside the prototypes.

    Four times the number of prototypes as far as that costs no more than 60 iterations, twelve
    times as far as it costs no more than 20, and no more than there are. On 20,000 rows of
    Covertype with m = 1,000 (two widths, C = 1 and 100) the prototypes alone, as in [Rudi2017]_,
    took 39 to 130 iterations to a residual of 1e-6, twice as many rows beside them at most 38, four
    times as many at most 29, eight times as many at most 21.

    Parameters
    ----------
    n, m, d, k : int
        Rows, prototypes, features and outputs.

    Examples
    --------
    >>> from lssvm.solvers import preconditioner_rows
    >>> preconditioner_rows(500_000, 2_000, 54), preconditioner_rows(30_000, 20_000, 54)
    (24000, 6750)
    """
    iteration = n * (d + k + _FUNCTION) / max(m, 1)
    return int(min(n, max(min(each * m, most * iteration) for each, most in _SAMPLES)))


def choose_primal(
    n: int,
    m: int,
    d: int,
    k: int,
    *,
    n_cells: int = 1,
    n_groups: int = 1,
    budget: int,
    threads: int = 1,
) -> str:
    """Return what ``solver="auto"`` of the fixed-size model means: "direct" or "pcg".

    Conjugate gradients where the moments of all cells do not fit into the memory budget, or where,
    for more than 2,000 prototypes, they and the direct solution take more than twice as many
    operations as 25 iterations and the preconditioner. (Moments are worth something: rows can be
    added, error bars computed.)

    Parameters
    ----------
    n, m, d, k : int
        Rows, prototypes, features and outputs.
    n_cells : int, default=1
        Moments that are held at once: folds times classes.
    n_groups : int, default=1
        Systems: the pairs of one-vs-one, else 1.
    budget : int
        Memory budget in bytes.
    threads : int, default=1
        How many threads compute.

    Returns
    -------
    {"direct", "pcg"}

    Examples
    --------
    >>> from lssvm.solvers import choose_primal
    >>> choose_primal(10**5, 1000, 30, 1, budget=10**10)
    'direct'
    >>> choose_primal(10**6, 10_000, 30, 1, budget=10**10)
    'pcg'
    >>> choose_primal(10**4, 2000, 30, 1, n_cells=10, budget=10**8)
    'pcg'
    """
    moments = 8 * m * (m + k + 1) * (n_cells + max(2 * threads, 4))
    if moments > budget or m <= _MANY:
        return "pcg" if moments > budget else "direct"
    direct = 2 * n * m**2 + 2 * n * m * d + (13 + 4 * (n_groups - 1)) * m**3
    iterate = _ITERATIONS * n * m * (2 * d + 4 * k + _FUNCTION)
    group = 2 * preconditioner_rows(n, m, d, k) * m**2 + m**3
    return "pcg" if direct > _GAIN * (iterate + n_groups * group) else "direct"
