"""The kernel matrix as a multilevel circulant matrix: solved by fast Fourier transforms.

First where rows stand on a lattice, and how far apart its places are.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import fft
from scipy.optimize import nnls
from scipy.sparse.linalg import ArpackError, LinearOperator, svds

from lssvm._core.arrays import Array, BoolArray, FloatArray, IntArray, is_sparse, to_numpy
from lssvm._core.blocks import slices
from lssvm._core.errors import (
    InvalidInputError,
    NotPositiveDefiniteError,
    NumericalWarning,
    not_known,
    not_usable,
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

LAYOUTS = ("sorted", "plain")
"""How rows are laid on the lattice."""

_PAIRS = 4096  # pairs of places from which the spacings are estimated
_AT_ONCE = 2**20  # numbers of the pairs' rows that are held at once
_WIDE = 2000  # more features than this: principal directions without the covariance matrix


@dataclass(frozen=True)
class Lattice:
    """Rows laid on a lattice of p levels.

    Attributes
    ----------
    places : int array of shape (N,)
        The row at each place, the last level running fastest. A row may stand at two places.
    shape : tuple of int
        Sides n_0, ..., n_{p-1}; their product is N.
    spacing : array of shape (p,)
        Distances h_s between neighbours.
    n : int
        Number of rows, at most N.
    """

    places: IntArray
    shape: tuple[int, ...]
    spacing: FloatArray
    n: int

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the levels in an array of shape ``(*shape, k)``."""
        return tuple(range(len(self.shape)))

    def spread(self, V: FloatArray) -> FloatArray:
        """Put the values of the rows (n, k) at their places, one array per column."""
        return V[self.places].reshape(*self.shape, V.shape[1])

    def gather(self, V: FloatArray) -> FloatArray:
        """Add the values (N, k) at all places of each row, shape (n, k)."""
        flat = V.reshape(len(self.places), -1)
        first = self.first()
        out = flat[first]
        if len(self.places) > self.n:
            spare = np.ones(len(self.places), dtype=bool)
            spare[first] = False
            np.add.at(out, self.places[spare], flat[spare])
        return out

    def first(self) -> IntArray:
        """Return one place of each row, shape (n,)."""
        place = np.empty(self.n, dtype=np.intp)
        place[self.places[::-1]] = np.arange(len(self.places))[::-1]
        return place


def lattice_shape(n: int, levels: int) -> tuple[int, ...]:
    """Return sides of a lattice that has room for ``n`` rows.

    Sides within a quarter of the p-th root of n are tried; the fewest spare places win, then the
    most equal sides: theorems 5 and 6 of [Ding2011] ask for a long shortest side, and the
    transform is fast for sides of any length.
    """
    if levels == 1:
        return (n,)
    root = n ** (1.0 / levels)
    sides = {round(root), *range(math.ceil(0.8 * root), math.floor(1.25 * root) + 1)}
    shapes = [(side, *lattice_shape(-(-n // side), levels - 1)) for side in sorted(sides)]
    return min(shapes, key=lambda shape: (int(np.prod(shape)), max(shape) - min(shape)))


def check_layout(levels: int, layout: str) -> None:
    """Raise where `lay_rows` does not know a setting."""
    if levels not in (1, 2, 3):
        raise not_usable("levels", levels, "give 1, 2 or 3.")
    if layout not in LAYOUTS:
        raise not_known("layout", layout, f"choose one of {LAYOUTS}.")


def lay_rows(X: Array, *, levels: int = 2, layout: str = "sorted") -> Lattice:
    """Lay rows on a lattice and estimate its spacings.

    [Ding2011] says neither how rows are laid nor how h is set. Here h^2 is the non-negative least
    squares fit of squared lattice distances, sum_s (j_s - l_s)^2 h_s^2, to the squared distances
    of 4,096 pairs of rows (always the same pairs of places). Where n has no product with sides
    of nearly equal length, the next larger lattice is taken and its spare places (in two levels
    fewer than the shorter side) repeat rows, evenly spread over the order: such a row counts twice.

    Time O(n d^2 + p n log n), memory O(n p + d^2).
    """
    check_layout(levels, layout)
    n = int(X.shape[0])
    if layout == "sorted":
        levels = max(1, min(levels, int(X.shape[1])))
    shape = lattice_shape(n, levels)
    spare = int(np.prod(shape)) - n
    filled = np.sort(np.concatenate([np.arange(n), (np.arange(spare) * n) // max(1, spare)]))
    if layout == "plain":
        places = filled
    else:
        P = _projections(X, levels)
        places = np.argsort(P[:, 0], kind="stable")[filled]
        size = len(places)
        for level in range(1, levels):
            size //= shape[level - 1]
            part = np.arange(len(places)) // size
            places = places[np.lexsort((P[places, level], part))]
    places = places.astype(np.intp)
    return Lattice(places, shape, _spacing(X, places, shape), n)


def _projections(X: Array, levels: int) -> FloatArray:
    """Return the rows along the leading principal directions, shape (n, levels)."""
    n, d = X.shape
    if is_sparse(X):
        mean = np.asarray(X.mean(axis=0)).ravel()
    else:
        X = to_numpy(X).astype(np.float64, copy=False)
        mean = X.mean(axis=0)
    if d > _WIDE and levels < min(n, d):
        centred = LinearOperator(
            (n, d),
            matvec=lambda v: X @ v.ravel() - mean @ v.ravel(),
            rmatvec=lambda v: X.T @ v.ravel() - mean * v.sum(),
            dtype=np.float64,
        )
        start = np.random.default_rng(0).standard_normal(min(n, d))
        try:
            directions = svds(centred, levels, rng=0, v0=start)[2][::-1].T
        except ArpackError:  # equal rows have no directions: any do
            directions = np.eye(d, levels)
    else:
        if is_sparse(X):
            product = (X.T @ X).toarray() - n * np.outer(mean, mean)
        else:  # centred first: far from the origin the difference would be all rounding
            X, mean = X - mean, np.zeros(d)
            product = X.T @ X
        _, vectors = np.linalg.eigh(product)
        directions = vectors[:, ::-1][:, :levels]
    return np.asarray(X @ directions - mean @ directions)


def _spacing(X: Array, places: IntArray, shape: tuple[int, ...]) -> FloatArray:
    """Fit the spacings to the distances of pairs of rows, shape (p,)."""
    rng = np.random.default_rng(0)
    pairs = rng.integers(len(places), size=(2, min(_PAIRS, len(places) ** 2)))
    rows = places[pairs]
    squares = np.empty(rows.shape[1])
    for part in slices(len(squares), max(1, _AT_ONCE // X.shape[1])):
        difference = X[rows[0, part]] - X[rows[1, part]]
        if is_sparse(difference):
            squares[part] = np.asarray(difference.multiply(difference).sum(axis=1)).ravel()
        else:
            squares[part] = (to_numpy(difference).astype(np.float64) ** 2).sum(axis=1)
    if not np.all(np.isfinite(squares)):
        raise InvalidInputError(
            "Squared distances between the rows overflow, so they cannot be laid on a lattice: "
            "scale the features (StandardScaler)."
        )
    j, i = (np.stack(np.unravel_index(side, shape), 1).astype(float) for side in pairs)
    scale = float(squares.max(initial=0.0)) or 1.0
    h2, _ = nnls((j - i) ** 2, squares / scale)
    return np.asarray(np.sqrt(h2 * scale))


WRAPS = ("mean", "sum", "set")
"""How the two images of a lattice distance are joined."""

_CHECKED = 16  # rows at which a solution is held against the true kernel


def first_row(kernel: Kernel, lattice: Lattice, wrap: str = "mean") -> FloatArray:
    """Return the first row u of the multilevel circulant matrix U.

    O(p N) time and memory, where the sets D_j of the print, of up to 2^p members, are formed one
    level after the other.

    "sum" and "set" double every value but the first where the kernel does not decay over the
    lattice, so U + I/C has eigenvalues near -1: for wide kernels, not only for small n, it is not
    positive definite. "mean" gives the circulant matrix nearest to the lattice's kernel matrix in
    the Frobenius norm ([Chan1988]), which is positive semi-definite whenever that is.
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
        v of eq. (16) of [Ding2011] (lemma 1).
    """

    lattice: Lattice
    eigenvalues: FloatArray

    @classmethod
    def of(cls, kernel: Kernel, lattice: Lattice, wrap: str = "mean") -> Circulant:
        """Approximate the kernel matrix of the rows on a lattice; O(N log N) operations."""
        v = fft.fftn(first_row(kernel, lattice, wrap)).real  # [Ding2011, eq. (16)]
        rounding = 10.0 * np.finfo(np.float64).eps * np.log2(2 * v.size) * np.abs(v).max()
        return cls(lattice, np.where(np.abs(v) <= rounding, 0.0, v))

    def solvable(self, shift: FloatArray, indefinite: bool = False) -> BoolArray:
        """Say for each mu (c,) whether U + mu I is positive definite, or only not singular."""
        if indefinite:
            shifted = np.abs(self.eigenvalues.ravel()[:, None] + np.asarray(shift))
            return np.asarray(shifted.min(axis=0) > 0)
        return np.asarray(self.eigenvalues.min() + np.asarray(shift) > 0)

    def product(self, V: FloatArray) -> FloatArray:
        """Return U V for values at the places, the lattice's axes first, then k columns."""
        axes = self.lattice.axes
        transformed = fft.fftn(V, axes=axes) * self.eigenvalues[..., None]
        return np.asarray(fft.ifftn(transformed, axes=axes).real)

    def solve(self, V: FloatArray, shift: FloatArray) -> FloatArray:
        """Return (U + mu I)^-1 V for all shifts mu (c,).

        The result has the lattice's axes first, c and k last. One forward transform serves all
        shifts: O((c + 1) k N log N) operations.
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
    indefinite : bool, default=False
        Whether U + I/C is inverted also where it is not positive definite, as eq. (17) prints it;
        the solution then minimises nothing.

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

    Deviations from the paper: the weighted wrap (see `first_row`), rows that are laid in sorted
    order (see `lay_rows`), and indefinite matrices, which are refused; see `ding2011`.

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
    indefinite: bool = False

    @classmethod
    def ding2011(cls, levels: int = 2) -> CirculantSolver:
        """Return algorithm 1 of [Ding2011]_ as printed: rows in given order, eqs. (13) and (17).

        Parameters
        ----------
        levels : {1, 2, 3}, default=2
            Levels of the circulant matrix, on which the paper does not decide.
        """
        return cls(levels, "plain", "set", min_rows=0, indefinite=True)

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
        if not circulant.solvable(np.array([1.0 / system.C]), self.indefinite)[0]:
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
        self, state: CirculantState | TakenOver, Y: FloatArray, *, on_iteration: OnIteration = None
    ) -> Solution:
        """Solve for the targets ``Y`` (n, k); without iterations, and therefore without reports."""
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
