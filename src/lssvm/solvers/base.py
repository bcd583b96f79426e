"""The system of the dual model, and what every solver takes and returns."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from lssvm._core.arrays import Array, FloatArray, IntArray
from lssvm._core.blocks import block_rows, require, run_blocks, slices
from lssvm._core.errors import ConvergenceWarning, InvalidInputError
from lssvm.kernels import Kernel, Precomputed
from lssvm.kernels.base import fill_gram

OnIteration: TypeAlias = Callable[[int, float], None] | None
"""Called with the number of every iteration and the relative residual; None: nothing is."""


class Status(enum.Enum):
    """How a solve ended; the value is the message.

    Examples
    --------
    >>> from lssvm.solvers import Status
    >>> Status.SOLVED.value
    'The system was solved to its tolerance.'
    """

    SOLVED = "The system was solved to its tolerance."
    JITTERED = (
        "The kernel matrix was not positive definite to rounding, so a small multiple of the "
        "identity was added. Likely causes: a very large C, nearly equal rows, or a kernel that is "
        "not positive definite. Lower C, or use another kernel."
    )
    MAX_ITER = (
        "The iteration stopped before it reached its tolerance. Raise max_iter or tol, lower C, or "
        "use solver='cholesky'."
    )


@dataclass(frozen=True)
class DualSystem:
    r"""The bordered system of a dual LS-SVM with weights, in symmetric scaled form.

    With weights s_i the model minimises 1/2 w^T w + C/2 sum_i s_i e_i^2 and its dual is

    .. math::

        \begin{bmatrix} 0 & u^T \\ u & H \end{bmatrix}
        \begin{bmatrix} b \\ \beta \end{bmatrix} = \begin{bmatrix} 0 \\ R y \end{bmatrix},
        \qquad H = R K R + I/C, \quad u = R 1, \quad R = diag(\sqrt{s}), \quad \alpha = R \beta,

    which is eq. (3.32) of [Suykens2002]_ when all weights are one.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    rows : array of shape (n, d)
        Training rows (for a precomputed kernel: rows of its matrix).
    basis : array of shape (n, d)
        The same rows as right-hand arguments (for a precomputed kernel: column indices).
    C : float
        Regularisation.
    root_weight : array of shape (n,) or None
        Square roots of the sample weights, None when all are one.
    budget : int
        Memory budget in bytes.
    threads : int
        How many threads compute.
    bias : bool, default=True
        Whether the system has its border; without it beta = H^-1 R y (eq. (3.62)) and b = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> from lssvm.solvers import DualSystem
    >>> DualSystem(Linear(), np.eye(2), np.eye(2), C=2.0).diagonal()
    array([1.5, 1.5])
    """

    kernel: Kernel
    rows: Array
    basis: Array
    C: float
    root_weight: FloatArray | None = None
    budget: int = 2**31
    threads: int = 1
    bias: bool = True

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.rows.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating point type of the system: float32 only when the rows are."""
        kind = np.dtype(self.rows.dtype)
        return kind if kind == np.float32 else np.dtype(np.float64)

    @property
    def u(self) -> FloatArray:
        """The border R 1, shape (n,)."""
        return np.ones(self.n, self.dtype) if self.root_weight is None else self.root_weight

    def subset(self, rows: IntArray) -> DualSystem:
        """Return the system of some of the rows, in the order of ``rows`` (m,).

        Parameters
        ----------
        rows : int array of shape (m,)
            Row numbers.
        """
        root = None if self.root_weight is None else self.root_weight[rows]
        return replace(self, rows=self.rows[rows], basis=self.basis[rows], root_weight=root)

    def gram(
        self,
        *,
        copies: int = 1,
        what: str = "The kernel matrix",
        advice: str = "Use solver='cg', which never stores it, or a fixed-size model "
        "(FixedSizeLSSVC, FixedSizeLSSVR), or raise memory_budget.",
    ) -> FloatArray:
        """Return R K R (n, n) in C order, refusing before allocation what the budget cannot hold.

        Cost: n^2 d / 2 operations and n^2 / 2 kernel evaluations, n^2 numbers of memory.

        Parameters
        ----------
        copies : int, default=1
            Matrices of that size that the caller will hold.
        what : str, default="The kernel matrix"
            What is refused, the first words of the error.
        advice : str, optional
            What to do instead, the last words of the error.
        """
        require(
            copies * self.n**2 * self.dtype.itemsize,
            self.budget,
            what=f"{what} of {self.n:,} rows",
            advice=advice,
        )
        K = np.empty((self.n, self.n), self.dtype)
        fill_gram(self.kernel, self.rows, self.basis, K, threads=self.threads)
        if self.root_weight is not None:
            K *= self.root_weight[:, None]
            K *= self.root_weight[None, :]
        return K

    def block(self, part: slice) -> FloatArray:
        """Return the rows ``part`` of R K R, shape (len, n).

        Parameters
        ----------
        part : slice
            Which rows.
        """
        values = np.asarray(self.kernel(self.rows[part], self.basis))
        if self.root_weight is not None:
            values = values * self.root_weight[part, None] * self.root_weight[None, :]
        return values

    def columns(self, index: IntArray) -> FloatArray:
        """Return the columns ``index`` (m,) of R K R, shape (n, m), in row blocks.

        Parameters
        ----------
        index : int array of shape (m,)
            Which columns.
        """
        out = np.empty((self.n, len(index)), self.dtype)
        basis = self.basis[index]

        def fill(part: slice) -> None:
            out[part] = self.kernel(self.rows[part], basis)

        run_blocks(fill, slices(self.n, 1024), self.threads)
        if self.root_weight is not None:
            out *= self.root_weight[:, None]
            out *= self.root_weight[None, index]
        return out

    def kernel_diagonal(self) -> FloatArray:
        """Return K(x, x) for every row, shape (n,)."""
        if isinstance(self.kernel, Precomputed):  # the rows may be some of the matrix's rows
            return np.asarray(self.rows[np.arange(self.n), self.basis])
        return np.asarray(self.kernel.diag(self.rows), dtype=self.dtype)

    def diagonal(self) -> FloatArray:
        """Return the diagonal of H = R K R + I/C, shape (n,)."""
        values = self.kernel_diagonal()
        if self.root_weight is not None:
            values = values * self.root_weight**2
        return values + 1.0 / self.C

    def product(self, V: FloatArray) -> FloatArray:
        """Return H V for V (n, k); the kernel is recomputed in blocks and never stored.

        Cost: n^2 (d + k) operations; memory of one block per thread, within the budget.

        Parameters
        ----------
        V : array of shape (n, k)
            What H is multiplied by.
        """
        out = np.empty_like(V)
        rows = block_rows(
            3 * self.n * self.dtype.itemsize * self.threads, self.budget, n_rows=self.n, at_most=512
        )

        def fill(part: slice) -> None:
            np.matmul(self.block(part), V, out=out[part])

        run_blocks(fill, slices(self.n, rows), self.threads)
        out += V / self.C
        return out


@dataclass(frozen=True)
class Solution:
    """The result of a solver.

    Attributes
    ----------
    alpha : array of shape (n, k)
        Support values, one column per right-hand side (weights already undone: alpha = R beta).
    intercept : array of shape (k,)
        What is added to every output.
    status : Status
        Whether it converged.
    residual : float
        Largest relative residual over the columns, recomputed at the end.
    iterations : int
        0 for direct solvers.
    history : list of float
        Value of the monitored quantity per iteration, empty for direct solvers.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.solvers import Solution, Status
    >>> Solution(np.zeros((3, 1)), np.ones(1), Status.SOLVED, 0.0).iterations
    0
    """

    alpha: FloatArray
    intercept: FloatArray
    status: Status
    residual: float
    iterations: int = 0
    history: list[float] = field(default_factory=list)


class Solver(Protocol):
    """Factorise once, then solve for many right-hand sides.

    ``tol`` of an iterative solver means the relative residual of each column.

    Examples
    --------
    >>> from lssvm.solvers import Cholesky
    >>> callable(Cholesky().factorise) and callable(Cholesky().solve)
    True
    """

    def factorise(self, system: DualSystem) -> Any:
        """Do all that needs the matrix only and return it as a state.

        Parameters
        ----------
        system : DualSystem
            Rows, kernel and C.
        """

    def solve(self, state: Any, Y: FloatArray, *, on_iteration: OnIteration = None) -> Solution:
        """Solve the bordered system for the targets ``Y`` (n, k).

        Parameters
        ----------
        state : object
            What `factorise` returned.
        Y : array of shape (n, k)
            Targets.
        on_iteration : callable, optional
            Called with the number of iterations so far and the relative residual.
        """


def eliminate_bias(
    eta: FloatArray, nu: FloatArray, u: FloatArray, bias: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Combine H^-1 u and H^-1 Y into the solution of the bordered system."""
    if not bias:
        return nu, np.zeros(nu.shape[1], nu.dtype)
    s = u @ eta  # [Suykens2002, section 3.4.1, step 2]
    b = (u @ nu) / s  # [Suykens2002, section 3.4.1, step 3]
    return nu - eta[:, None] * b, b


def check_limits(tol: float, max_iter: int) -> None:
    """Refuse a tolerance or a number of iterations that an iterative solver cannot use."""
    if not tol > 0 or max_iter < 1:
        raise InvalidInputError(
            f"tol={tol!r} and max_iter={max_iter!r} are not usable: tol must be positive and "
            "max_iter at least 1."
        )


def warn_unsolved(how: str, residual: float, tol: float, advice: str) -> Status:
    """Warn where an iteration has stopped before its tolerance, and return its status."""
    if residual <= tol:
        return Status.SOLVED
    warnings.warn(
        f"{how} at a relative residual of {residual:.1e} where tol={tol:.1e} is needed. {advice}",
        ConvergenceWarning,
        stacklevel=3,
    )
    return Status.MAX_ITER


def relative_residual(
    H_beta: FloatArray,
    beta: FloatArray,
    b: FloatArray,
    u: FloatArray,
    RY: FloatArray,
    bias: bool = True,
) -> float:
    """Return the largest relative residual of the bordered system over its columns.

    ``H_beta`` (n, k) is H beta; ``RY`` (n, k) the scaled targets.
    """
    rest = RY - H_beta - u[:, None] * b
    scale = np.linalg.norm(RY, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    relative = np.linalg.norm(rest, axis=0) / scale
    if bias:
        # Support values have a unit of their own: their sum is compared with their size, and
        # counts as much as H beta does compared with the targets.
        size = np.linalg.norm(u) * np.linalg.norm(beta, axis=0)
        share = np.linalg.norm(H_beta, axis=0) / scale
        relative = np.hypot(relative, share * np.abs(u @ beta) / np.where(size > 0, size, 1.0))
    return float(np.max(relative, initial=0.0))
