"""The kernel matrix as a multilevel circulant matrix: solved by fast Fourier transforms."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import (
    InvalidInputError,
    NotPositiveDefiniteError,
    NumericalWarning,
    not_known,
)
from lssvm.kernels import Kernel, Laplacian
from lssvm.solvers.base import (
    DualSystem,
    OnIteration,
    Solution,
    Solver,
    Status,
    eliminate_bias,
    relative_residual,
)
from lssvm.solvers.circulant_lattice import Lattice, check_layout, lay_rows

WRAPS = ("mean", "sum", "set")
"""How the two images of a lattice distance are joined."""

_CHECKED = 16  # rows at which a solution is held against the true kernel


def first_row(kernel: Kernel, lattice: Lattice, wrap: str = "mean") -> FloatArray:
    r"""Return the first row u of the multilevel circulant matrix U.

    Parameters
    ----------
    kernel : Kernel
        A function of the Euclidean distance.
    lattice : Lattice
        Where the rows stand.
    wrap : {"mean", "sum", "set"}, default="mean"
        A step of j and one of n - j the other way round lead to the same place of the circle.
        "set" adds their kernel values as printed, :math:`u_j = \sum_{l \in D_j} t_l` over the
        *set* :math:`D_{j,s} = \{j_s, n_s - j_s\}` (eq. (13) of [Ding2011]_): a step of n/2, which
        is the same both ways, is counted once. "sum" counts it twice, as the periodic sum of the
        kernel does. "mean" weighs the two by the parts (n - j)/n and j/n of the pairs of places
        that are so far apart, on every level.

    Returns
    -------
    array of the lattice's shape

    Notes
    -----
    O(p N) time and memory, where the sets D_j of the print, of up to 2^p members, are formed one
    level after the other.

    "sum" and "set" double every value but the first where the kernel does not decay over the
    lattice, so U + I/C has eigenvalues near -1: for wide kernels, not only for small n, it is not
    positive definite. "mean" gives the circulant matrix nearest to the lattice's kernel matrix in
    the Frobenius norm ([Chan1988]_), which is positive semi-definite whenever that is.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.solvers import first_row, lay_rows
    >>> lattice = lay_rows(np.arange(4.0)[:, None], levels=1)
    >>> first_row(RBF(1.0), lattice, "sum").round(4)
    array([1.    , 0.368 , 0.0366, 0.368 ])
    >>> first_row(RBF(1.0), lattice, "set").round(4)
    array([1.    , 0.368 , 0.0183, 0.368 ])
    """
    check_wrap(wrap)
    check_kernel(kernel)
    steps = np.meshgrid(
        *(h * np.arange(n) for h, n in zip(lattice.spacing, lattice.shape, strict=True)),
        indexing="ij",
        copy=False,
    )
    distance = np.sqrt(np.asarray(sum(step**2 for step in steps)))
    t = np.asarray(kernel(distance.reshape(-1, 1), np.zeros((1, 1))))  # [Ding2011, eq. (12)]
    u = t.reshape(lattice.shape)
    for level, n in enumerate(lattice.shape):
        j = np.arange(n)
        other = np.take(u, -j % n, axis=level)
        column = (-1,) + (1,) * (len(lattice.shape) - level - 1)
        if wrap in ("sum", "set"):
            twice = (j > 0) & ((wrap == "sum") | (2 * j != n))
            u = u + other * twice.reshape(column)  # [Ding2011, eq. (13)]
        else:
            share = (j / n).reshape(column)
            u = u * (1.0 - share) + other * share
    return np.asarray(u, dtype=np.float64)


def check_wrap(wrap: str) -> None:
    """Raise where `first_row` does not know a wrap."""
    if wrap not in WRAPS:
        raise not_known("wrap", wrap, f"choose one of {WRAPS}.")


def check_kernel(kernel: Kernel) -> None:
    """Raise where a kernel is no function of the Euclidean distance with one gamma."""
    if not kernel.radial or isinstance(kernel, Laplacian):
        raise InvalidInputError(
            f"The circulant approximation needs a kernel of the Euclidean distance, 'rbf' or "
            f"'matern', but the kernel is {kernel.name!r}: use one of those, or another solver or "
            "search."
        )
    if np.ndim(getattr(kernel, "gamma", 0.0)) != 0:
        raise InvalidInputError(
            "The circulant approximation needs one gamma for all features: multiply the columns of "
            "X by the square roots of gamma and give gamma=1."
        )


@dataclass(frozen=True)
class Circulant:
    """A symmetric multilevel circulant matrix U, as its eigenvalues.

    Attributes
    ----------
    lattice : Lattice
        Where the rows stand.
    eigenvalues : array of the lattice's shape
        v of eq. (16) of [Ding2011]_ (lemma 1).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.solvers import Circulant, lay_rows
    >>> U = Circulant.of(RBF(1.0), lay_rows(np.arange(6.0)[:, None], levels=1))
    >>> V = np.arange(6.0)[:, None]
    >>> bool(np.allclose(U.solve(U.product(V) + 0.5 * V, np.array([0.5]))[..., 0], V))
    True
    """

    lattice: Lattice
    eigenvalues: FloatArray

    @classmethod
    def of(cls, kernel: Kernel, lattice: Lattice, wrap: str = "mean") -> Circulant:
        """Approximate the kernel matrix of the rows on a lattice; O(N log N) operations."""
        v = fft.fftn(first_row(kernel, lattice, wrap)).real  # [Ding2011, eq. (16)]
        rounding = 10.0 * np.finfo(np.float64).eps * np.log2(2 * v.size) * np.abs(v).max()
        return cls(lattice, np.where(np.abs(v) <= rounding, 0.0, v))

    def definite(self, shift: FloatArray) -> NDArray[np.bool_]:
        """Say for each of the shifts mu (c,) whether U + mu I is positive definite."""
        return np.asarray(self.eigenvalues.min() + np.asarray(shift) > 0)

    def product(self, V: FloatArray) -> FloatArray:
        """Return U V for values at the places, the lattice's axes first, then k columns."""
        axes = self.lattice.axes
        transformed = fft.fftn(V, axes=axes) * self.eigenvalues[..., None]
        return np.asarray(fft.ifftn(transformed, axes=axes).real)

    def solve(self, V: FloatArray, shift: FloatArray) -> FloatArray:
        """Return (U + mu I)^-1 V for all shifts mu (c,).

        ``V`` has the lattice's axes first and then k columns; the result has c and k last. One
        forward transform serves all shifts: O((c + 1) k N log N) operations.
        """
        axes = self.lattice.axes
        transformed = fft.rfftn(V, axes=axes)
        half = self.eigenvalues[..., : transformed.shape[len(axes) - 1]]
        scaled = transformed[..., None, :] / (half[..., None, None] + np.asarray(shift)[:, None])
        return np.asarray(fft.irfftn(scaled, self.lattice.shape, axes=axes))  # eq. (17)


@dataclass(frozen=True)
class CirculantState:
    """A system whose kernel matrix was replaced by a circulant one."""

    system: DualSystem
    circulant: Circulant


@dataclass(frozen=True)
class TakenOver:
    """The state of the solver that took over."""

    solver: Solver
    state: Any

    @property
    def name(self) -> str:
        """The name of that solver, as `lssvm.solvers.make_solver` has it."""
        name = type(self.solver).__name__
        return {"Cholesky": "cholesky", "ConjugateGradient": "cg"}.get(name, name)


def warn_if_rough(state: Any, Y: FloatArray, solution: Solution) -> None:
    """Warn where a circulant solution, with the true kernel, misses the targets ``Y`` (n, k).

    The true system's residual at 16 rows is compared with the targets there: O(n d) operations,
    O(n) memory. Nothing happens for the states of other solvers.
    """
    if not isinstance(state, CirculantState):
        return
    system = state.system
    rows = np.random.default_rng(0).permutation(system.n)[:_CHECKED]
    K = np.asarray(system.kernel(system.rows[rows], system.basis))
    targets = Y[rows] - solution.intercept
    left = targets - K @ solution.alpha - solution.alpha[rows] / system.C
    ratio = np.linalg.norm(left) / max(float(np.linalg.norm(targets)), np.finfo(float).tiny)
    if ratio > 1.0:
        warnings.warn(
            f"With the true kernel the circulant solution of {system.n:,} rows leaves a residual "
            f"of {ratio:.2g} times the targets: it is far from the exact model. The rows are too "
            "far from a lattice for this C: use another solver, a much smaller C or a larger "
            "gamma.",
            NumericalWarning,
            stacklevel=3,
        )


@dataclass(frozen=True)
class CirculantSolver:
    r"""Approximate solution in O(n log n) time and O(n) memory, by Fourier transforms.

    Parameters
    ----------
    levels : {1, 2, 3}, default=2
        Levels p of the circulant matrix.
    layout : {"sorted", "plain"}, default="sorted"
        How rows are laid on the lattice, see `lay_rows`.
    wrap : {"mean", "sum", "set"}, default="mean"
        "set" is the printed matrix, see `first_row`.
    fallback : Solver or None, default=None
        What solves the system, after a warning, where the circulant matrix cannot: the rows have
        weights, or U + I/C is not positive definite. None raises an error.
    min_rows : int, default=256
        A system of fewer rows goes to the fallback, if there is one, without a warning: it costs
        next to nothing there.

    Notes
    -----
    Eqs. (12) to (17) and algorithm 1 of [Ding2011]_, with mu = 1/C:

    =========================== =======================================================
    paper                       here
    =========================== =======================================================
    :math:`\mu`                 1/C
    :math:`\mathbf{n}, p`       ``Lattice.shape``, ``levels``
    :math:`h_{n,s}`             ``Lattice.spacing``
    :math:`t_j, u_j`            `first_row`
    :math:`v, \Phi`             ``Circulant.eigenvalues``, ``scipy.fft``
    :math:`\rho, \nu, b`        ``eta``, ``nu``, ``intercept``
    =========================== =======================================================

    The kernel matrix enters through the lattice alone, so the solution is as good as the lattice:
    exact in the limit for rows that stand on one (theorem 5), rough for rows in many dimensions.
    Its use is in model selection, where a rough answer narrows the search (see
    `lssvm.tuning.CirculantSearch`). The residual in the answer is that of the circulant system.
    Predictions use the true kernel (section 4), and what U does not see of it is multiplied by
    C: for scattered rows a final model is often useless unless C is small. `LSSVC` and `LSSVR`
    hold the solution against the true kernel at a few rows, and warn.

    Deviations from the print: the weighted wrap (see `first_row`), and rows that are laid in sorted
    order (see `lay_rows`); ``layout="plain", wrap="set"`` is the print.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.solvers import Cholesky, CirculantSolver, DualSystem
    >>> X = np.arange(200.0)[:, None]
    >>> Y = np.exp(-((X - 100.0) / 10.0) ** 2)
    >>> system = DualSystem(RBF(0.1), X, X, C=10.0, bias=False)
    >>> solver, exact = CirculantSolver(levels=1, wrap="sum"), Cholesky()
    >>> difference = (
    ...     solver.solve(solver.factorise(system), Y).alpha
    ...     - exact.solve(exact.factorise(system), Y).alpha
    ... )
    >>> bool(np.abs(difference).max() < 1e-9)
    True
    """

    levels: int = 2
    layout: str = "sorted"
    wrap: str = "mean"
    fallback: Solver | None = None
    min_rows: int = 256

    def check(self) -> None:
        """Raise where a setting is not known, also where the fallback would not need it."""
        check_layout(self.levels, self.layout)
        check_wrap(self.wrap)

    def factorise(self, system: DualSystem) -> CirculantState | TakenOver:
        """Lay the rows, transform the first row; see the class."""
        self.check()
        check_kernel(system.kernel)
        if system.n < self.min_rows and self.fallback is not None:
            return TakenOver(self.fallback, self.fallback.factorise(system))
        if system.root_weight is not None:
            text = "A circulant matrix cannot hold sample weights or class weights: fit without "
            error = InvalidInputError(f"{text}weights, or use another solver.")
            return self._give_up(system, error)
        lattice = lay_rows(system.rows, levels=self.levels, layout=self.layout)
        circulant = Circulant.of(system.kernel, lattice, self.wrap)
        if not circulant.definite(np.array([1.0 / system.C]))[0]:
            lowest = float(circulant.eigenvalues.min())
            error = NotPositiveDefiniteError(
                f"The circulant approximation of the kernel matrix of {system.n:,} rows has the "
                f"eigenvalue {lowest:.2g}, below -1/C = {-1.0 / system.C:.2g}: the kernel is too "
                "wide for the lattice. Use wrap='mean', a larger gamma, a smaller C, or another "
                "solver."
            )
            return self._give_up(system, error)
        return CirculantState(system, circulant)

    def _give_up(self, system: DualSystem, error: ValueError) -> TakenOver:
        if self.fallback is None:
            raise error
        warnings.warn(
            f"{error} The exact solver {type(self.fallback).__name__} is used instead.",
            NumericalWarning,
            stacklevel=4,
        )
        return TakenOver(self.fallback, self.fallback.factorise(system))

    def solve(
        self,
        state: CirculantState | TakenOver,
        Y: FloatArray,
        *,
        on_iteration: OnIteration | None = None,
    ) -> Solution:
        """Solve for the targets ``Y`` (n, k); nothing iterates, so nothing is reported."""
        if isinstance(state, TakenOver):
            return state.solver.solve(state.state, Y, on_iteration=on_iteration)
        circulant, system = state.circulant, state.system
        lattice, shift = circulant.lattice, 1.0 / system.C
        right = lattice.spread(np.column_stack([np.ones(system.n), Y]).astype(np.float64))
        places = len(lattice.places)
        solved = circulant.solve(right, np.array([shift])).reshape(places, -1)  # eq. (9)
        border, targets = np.ones(places), right.reshape(places, -1)[:, 1:]
        # [Ding2011, eq. (10)]
        beta, b = eliminate_bias(solved[:, 0], solved[:, 1:], border, system.bias)
        alpha = lattice.gather(beta.reshape(*lattice.shape, -1))
        H_beta = circulant.product(beta.reshape(*lattice.shape, -1)).reshape(places, -1)
        H_beta += shift * beta
        residual = relative_residual(H_beta, beta, b, border, targets, bias=False)
        alpha, b = alpha.astype(system.dtype, copy=False), b.astype(system.dtype, copy=False)
        return Solution(alpha, b, Status.SOLVED, residual)
