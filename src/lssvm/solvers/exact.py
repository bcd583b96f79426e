r"""The exact dual model and its leave-one-out outputs, for one C or a path of them.

With :math:`A = K + \\operatorname{diag}(1 / (C s))` the model solves

.. math::

    \begin{bmatrix} 0 & 1^T \\ 1 & A \\end{bmatrix}
    \begin{bmatrix} b \\ \alpha \\end{bmatrix} = \begin{bmatrix} 0 \\ y \\end{bmatrix}

([Suykens2002]_, eq. (3.5)). With :math:`\nu = A^{-1} 1` and
:math:`P = A^{-1} - \nu \nu^T / 1^T \nu` one has :math:`\alpha = P y`, and leaving out the rows of a
group G changes its residuals to :math:`P_{GG}^{-1} \alpha_G`; for one row
:math:`\alpha_i / P_{ii}` ([Cawley2004]_). Neither needs a refit. The model without the rows of a
fold V has :math:`P - P_{\\cdot V} P_{VV}^{-1} P_{V \\cdot}` and
:math:`\alpha - P_{\\cdot V} P_{VV}^{-1} \alpha_V` in place of P and :math:`\alpha` for the other
rows, whose residuals without the fold and themselves follow in the same way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, eigh, lapack

from lssvm._core.arrays import BoolArray, FloatArray, IntArray
from lssvm._core.errors import NotPositiveDefiniteError, NumericalWarning, not_known, not_usable
from lssvm._core.lapack import (
    factorise_triangle,
    invert_triangle,
    solve_triangle,
    symmetric_times,
    triangle_times,
)
from lssvm.solvers.base import (
    DualSystem,
    OnIteration,
    Solution,
    Status,
    eliminate_bias,
    relative_residual,
)
from lssvm.solvers.cg import ConjugateGradient
from lssvm.solvers.circulant import CirculantSolver, TakenOver, warn_if_rough
from lssvm.solvers.smo import SMO

BlockOfInverse = Callable[[IntArray], FloatArray]

_JITTER = (0.0, 1e-10, 1e-8, 1e-6)  # shares of the mean diagonal
_SINGULAR = 1e-12  # shares of the largest eigenvalue that count as 0
_CLEAR = 1e-3  # ratio of the roots of pivots above which a block is far from singular
_ENTRIES = 2**22  # numbers of a block of groups
_NOTHING_LEFT = 1e-12  # P_ii this far below the inverse's own diagonal: no row remains


@dataclass(frozen=True, eq=False)
class ExactFit:
    """An exact model with the leave-one-out outputs of its rows.

    Attributes
    ----------
    coef : array of shape (n, k)
        alpha.
    intercept : array of shape (k,)
        Of the outputs.
    left_out : array of shape (n, k)
        Output for every row of the model fitted without it (or without its group).
    diagonal : array of shape (n,)
        P_ii; empty where no leave-one-out outputs were computed.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.solvers import solve_exact
    >>> fit = solve_exact(np.eye(3), np.array([[1.0], [2.0], [3.0]]), np.ones(3))
    >>> fit.intercept, fit.left_out.ravel()
    (array([2.]), array([2.5, 2. , 1.5]))
    """

    coef: FloatArray
    intercept: FloatArray
    left_out: FloatArray
    diagonal: FloatArray = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, eq=False)
class Repeats:
    """Which rows are left out together.

    Attributes
    ----------
    members : tuple of int arrays
        Row numbers of every group of two rows or more; other rows are left out one by one.
    """

    members: tuple[IntArray, ...] = ()

    def stacked(self, most: int) -> Iterator[IntArray]:
        """Yield the groups of one size as arrays (g, size), with at most about ``most`` rows."""
        by_size: dict[int, list[IntArray]] = {}
        for group in self.members:
            by_size.setdefault(len(group), []).append(group)
        for size, groups in by_size.items():
            table = np.array(groups)
            step = max(1, most // size)
            yield from (table[start : start + step] for start in range(0, len(table), step))

    @classmethod
    def of(cls, labels: NDArray[np.generic]) -> Self:
        """Return the groups of rows (n,) with the same label."""
        if not len(labels):
            return cls()
        order = np.argsort(labels, kind="stable").astype(np.intp)
        same = np.concatenate([[False], labels[order][1:] == labels[order][:-1], [False]])
        begin = np.flatnonzero(~same[:-1] & same[1:])
        end = np.flatnonzero(same[:-1] & ~same[1:]) + 1
        return cls(tuple(order[b:e] for b, e in zip(begin, end, strict=True)))


ALONE = Repeats()
"""Every row is left out alone."""


def solve_exact(
    K: FloatArray,
    Y: FloatArray,
    noise: FloatArray,
    repeats: Repeats = ALONE,
    *,
    quiet: bool = False,
    held_out: bool = True,
    most: float = np.inf,
) -> ExactFit:
    """Solve the dual system by one Cholesky factorisation, with leave-one-out outputs.

    Parameters
    ----------
    K : array of shape (n, n), contiguous
        The kernel matrix, float64 or float32; overwritten.
    Y : array of shape (n, k)
        Targets.
    noise : array of shape (n,)
        1 / (C s_i), larger than 0.
    repeats : Repeats, default=ALONE
        Rows that are held out together; by default none.
    quiet : bool, default=False
        No warning about jitter, for callers that score the held-out outputs.
    held_out : bool, default=True
        Whether leave-one-out outputs are computed; without them half of the operations are saved.
    most : float, optional
        Of the condition that the pivots show: n times the mean of their inverses, at most n C. An
        error is raised where it is larger.

    Returns
    -------
    ExactFit

    Notes
    -----
    n^3 / 3 multiplications and additions in all: half for the factor, half for its inverse, whose
    columns hold the diagonal of the inverse; plus n^2 k. No memory beyond ``K``. A matrix that is
    not positive definite to working precision gets a scaled jitter and a warning (float32: an
    error). Everything is computed in the type of ``K`` and returned in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.solvers import solve_exact
    >>> solve_exact(np.eye(2), np.array([[1.0], [-1.0]]), np.ones(2)).coef.ravel()
    array([ 0.5, -0.5])
    """
    n = len(K)
    A = K.T if K.flags.c_contiguous else K  # columns contiguous; K is symmetric
    diagonal = A.diagonal() + noise
    # The factor takes the lower triangle; the upper one keeps K for another attempt.
    for share in _JITTER if A.dtype == np.float64 else (0.0,):
        if share:
            A[np.tril_indices(n, -1)] = A.T[np.tril_indices(n, -1)]
        A.flat[:: n + 1] = diagonal + share * diagonal.mean()
        if factorise_triangle(A, lower=True):
            break
    else:
        raise NotPositiveDefiniteError(
            f"The kernel matrix of {n} rows plus 1/C is not positive definite: use a smaller C, or "
            "a kernel that is positive definite."
        )
    if share and not quiet:
        warnings.warn(
            f"The kernel matrix plus 1/C was not positive definite to working precision; {share:g} "
            "of its diagonal was added. A smaller C avoids it.",
            NumericalWarning,
            stacklevel=2,
        )
    if most < np.inf and (shown := float((A.diagonal().astype(np.float64) ** -2.0).sum())) > most:
        raise NotPositiveDefiniteError(f"The matrix has a condition of {shown:.0e} at least.")
    right = np.asfortranarray(np.column_stack([np.ones(n), Y]), dtype=A.dtype)
    if not held_out:
        for transposed in (False, True):
            solve_triangle(A, right, lower=True, transposed=transposed)
        coef, intercept, _ = _centred(right.astype(np.float64))
        return ExactFit(coef, intercept, np.empty((0, Y.shape[1])))
    invert_triangle(A, lower=True)
    return _from_inverse_factor(A, right, Y, repeats)


_REFINED = 1e-12  # relative residual at which refinement ends
_STEPS = 30


def refine_exact(
    K: FloatArray, Y: FloatArray, noise: FloatArray, fit: ExactFit, inverse_factor: FloatArray
) -> ExactFit:
    """Return a model of single precision with coefficients of double precision.

    Parameters
    ----------
    K : array of shape (n, n), contiguous
        The kernel matrix in float64; overwritten where refinement does not converge.
    Y : array of shape (n, k)
        Targets.
    noise : array of shape (n,)
        1 / (C s_i).
    fit : ExactFit
        What `solve_exact` returned in float32; its leave-one-out outputs are kept.
    inverse_factor : array of shape (n, n)
        The matrix that `solve_exact` has overwritten.

    Notes
    -----
    Conjugate gradients on all right-hand sides, preconditioned by the factor: the condition that is
    left is near 1, so that a few steps of n^2 (k + 1) operations are enough. Where they are not,
    the system is solved in double precision.
    """
    refined = refine(K, Y, noise, inverse_factor)
    if refined is None:
        refined = solve_exact(K, Y, noise, quiet=True, held_out=False)
    return replace(refined, left_out=fit.left_out)


def refine(
    K: FloatArray, Y: FloatArray, noise: FloatArray, inverse_factor: FloatArray
) -> ExactFit | None:
    """Return the solution in double precision, or None where conjugate gradients do not converge.

    As `refine_exact`, but K is kept; without leave-one-out outputs. The factor may be in either
    precision, and that of a matrix with another noise.
    """
    n = len(K)
    right = np.column_stack([np.ones(n), Y])
    factor = inverse_factor.T if inverse_factor.flags.c_contiguous else inverse_factor
    few = right.shape[1] <= _FEW
    trmm = blas.strmm if factor.dtype == np.float32 else blas.dtrmm

    def product(X: FloatArray) -> FloatArray:
        return symmetric_times(K.T, X) if few and K.flags.c_contiguous else K @ X

    def precondition(R: FloatArray) -> FloatArray:
        if few:
            half = triangle_times(factor, R, transposed=False)
            found = triangle_times(factor, half, transposed=True)
        else:
            half = trmm(1.0, factor, np.asfortranarray(R, dtype=factor.dtype), lower=1)
            found = trmm(1.0, factor, half, lower=1, trans_a=1)
        return np.asarray(found, dtype=np.float64)

    size = np.linalg.norm(right, axis=0)
    size[size == 0.0] = 1.0
    x = precondition(right / size) * size
    R = right - product(x) - noise[:, None] * x
    Z = precondition(R / size) * size
    P, rho = Z, np.einsum("ij,ij->j", R, Z)
    for _ in range(_STEPS):
        if np.all(np.linalg.norm(R, axis=0) <= _REFINED * size):
            coef, intercept, _ = _centred(x)
            return ExactFit(coef, intercept, np.empty((0, Y.shape[1])))
        A = product(P) + noise[:, None] * P
        curvature = np.einsum("ij,ij->j", P, A)
        step = np.divide(rho, curvature, out=np.zeros_like(rho), where=curvature > 0)
        x, R = x + step * P, R - step * A
        Z = precondition(R / size) * size
        old, rho = rho, np.einsum("ij,ij->j", R, Z)
        P = Z + np.divide(rho, old, out=np.zeros_like(rho), where=old > 0) * P
    return None


def _centred(eta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return coefficients, intercept and nu from the solutions for 1 and Y, eq. (3.25)."""
    nu, eta = eta[:, 0], eta[:, 1:]
    intercept = eta.sum(axis=0) / nu.sum()
    return eta - nu[:, None] * intercept, intercept, nu


def _from_inverse_factor(
    L: FloatArray, right: FloatArray, Y: FloatArray, repeats: Repeats
) -> ExactFit:
    """Finish from the inverse of the lower factor (its upper triangle is not read)."""
    n = len(L)
    trmm = blas.strmm if L.dtype == np.float32 else blas.dtrmm
    half = trmm(1.0, L, right, lower=1)
    eta = trmm(1.0, L, half, lower=1, trans_a=1)
    coef, intercept, nu = _centred(np.asarray(eta, dtype=np.float64))
    whole = _squared_columns(L)

    def block(groups: IntArray) -> FloatArray:
        columns = np.moveaxis(L[:, groups], 0, 2)  # (g, s, n)
        columns = np.where(np.arange(n) < groups[:, :, None], 0.0, columns)
        return np.asarray(columns @ columns.transpose(0, 2, 1), dtype=np.float64)

    diagonal = whole - nu * nu / nu.sum()
    return ExactFit(coef, intercept, _left_out(Y, coef, nu, whole, block, repeats), diagonal)


def _left_out(
    Y: FloatArray,
    coef: FloatArray,
    nu: FloatArray,
    whole: FloatArray,
    block: BlockOfInverse,
    repeats: Repeats,
) -> FloatArray:
    """Return the outputs (n, k) of models without the row: y_G - P_GG^{-1} alpha_G.

    Zero where nothing would be left to fit a model to.
    """
    total = float(nu.sum())
    P = whole - nu * nu / total
    left = P > _NOTHING_LEFT * whole
    out = np.where(left[:, None], Y - coef / np.where(left, P, 1.0)[:, None], 0.0)
    for groups in repeats.stacked(_ENTRIES // max(len(Y), 1)):
        side = nu[groups]
        inside = block(groups) - side[:, :, None] * side[:, None, :] / total
        out[groups] = Y[groups] - _solve_blocks(inside, coef[groups])
        if groups.shape[1] == len(Y):
            out[groups] = 0.0
    return np.asarray(out)


def _solve_blocks(blocks: FloatArray, right: FloatArray) -> FloatArray:
    """Solve symmetric systems (g, s, s) for (g, s, k), by pseudo-inverses if any is singular."""
    with suppress(np.linalg.LinAlgError):
        pivots = np.diagonal(np.linalg.cholesky(blocks), axis1=1, axis2=2)
        if (pivots.min(axis=1) > _CLEAR * pivots.max(axis=1)).all():
            return np.asarray(np.linalg.solve(blocks, right))
    return np.asarray(np.linalg.pinv(blocks, rcond=_SINGULAR, hermitian=True) @ right)


_PANEL = 256
_CORNER = np.tri(_PANEL, dtype=bool)


def _squared_columns(L: FloatArray) -> FloatArray:
    """Return the squared norms of the columns of tril(L): the diagonal of L^T L."""
    out = np.empty(len(L))
    for start in range(0, len(L), _PANEL):
        stop = min(start + _PANEL, len(L))
        below, size = L[stop:, start:stop], stop - start
        corner = np.where(_CORNER[:size, :size], L[start:stop, start:stop], L.dtype.type(0))
        out[start:stop] = np.einsum("ij,ij->j", below, below)
        out[start:stop] += np.einsum("ij,ij->j", corner, corner)
    return out


_POOR = 1e-2  # relative residual
_FEW = 4  # columns up to which products with vectors are faster: a symmetric one copies the matrix


@dataclass(frozen=True)
class CholeskyState:
    """One array, Fortran order: the factor below the diagonal, H above it, both diagonals."""

    system: DualSystem
    array: FloatArray
    diagonal: FloatArray
    status: Status

    def solve(self, B: FloatArray) -> FloatArray:
        """Return H^-1 B for B (n, k)."""
        potrs = lapack.spotrs if self.array.dtype == np.float32 else lapack.dpotrs
        result, _ = potrs(self.array, B, lower=1)
        return np.asarray(result)

    def inverse(self) -> FloatArray:
        """Return H^-1 (n, n), another 2 n^3/3 operations and two matrices."""
        return inverse_of(np.array(self.array.T, order="F"))

    def product(self, B: FloatArray) -> FloatArray:
        """Return H B from the triangle the factorisation left alone, B (n, k)."""
        single = self.array.dtype == np.float32
        factor_diagonal = np.diagonal(self.array).copy()
        np.fill_diagonal(self.array, self.diagonal)
        if B.shape[1] <= _FEW:
            symv = blas.ssymv if single else blas.dsymv
            result = np.empty_like(B, order="F")
            for j in range(B.shape[1]):
                result[:, j] = symv(1.0, self.array, B[:, j], lower=0)
        else:
            symm = blas.ssymm if single else blas.dsymm
            result = np.asarray(symm(1.0, self.array, B, lower=0))
        np.fill_diagonal(self.array, factor_diagonal)
        return result


@dataclass(frozen=True)
class Cholesky:
    """Cholesky factorisation of H = R K R + I/C, in place, one kernel matrix in memory.

    Notes
    -----
    The two systems of section 3.4.1 of [Suykens2002]_ (here H eta = u and H nu = R Y, all
    columns at once) are solved directly and combined as in eq. (3.25). LAPACK factorises one
    triangle in place; the other one keeps H, so that the residual is that of the system, not of
    its factor, and one step of refinement is free of a second matrix.

    Time n^3/3 + n^2 (d + k), memory n^2 numbers. A factorisation that breaks down is repeated
    with a growing multiple of the identity and a `NumericalWarning`; a matrix that stays
    indefinite raises `NotPositiveDefiniteError`.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> from lssvm.solvers import Cholesky, DualSystem
    >>> X, Y = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]])
    >>> solver = Cholesky()
    >>> solution = solver.solve(solver.factorise(DualSystem(Linear(), X, X, C=1e6)), Y)
    >>> slope = X.T @ solution.alpha
    >>> slope.round(3), solution.intercept.round(3)
    (array([[2.]]), array([1.]))
    """

    def factorise(self, system: DualSystem) -> CholeskyState:
        """Factorise; see the class."""
        jitter, eps = 0.0, float(np.finfo(system.dtype).eps)
        for attempt in range(4):
            array = system.gram().T  # symmetric: the same in the order that LAPACK works in
            scale = float(np.max(np.abs(np.diagonal(array))))
            if attempt or 1.0 / system.C < 10.0 * eps * scale:  # lost when added to the diagonal
                jitter = max(100.0 * jitter, 10.0 * system.n * eps * scale)
            diagonal = np.diagonal(array) + (1.0 / system.C + jitter)
            np.fill_diagonal(array, diagonal)
            if _factorise(array):
                if not jitter:
                    return CholeskyState(system, array, diagonal, Status.SOLVED)
                text = f"{Status.JITTERED.value} (Added: {jitter:.1e}.)"
                warnings.warn(text, NumericalWarning, stacklevel=3)
                return CholeskyState(system, array, diagonal, Status.JITTERED)
        raise NotPositiveDefiniteError(
            f"The regularised kernel matrix is not positive definite, even with {jitter:.1e} added "
            "to its diagonal: the kernel has negative eigenvalues larger than 1/C. Use a positive "
            "definite kernel, or a smaller C."
        )

    def solve(
        self, state: CholeskyState, Y: FloatArray, *, on_iteration: OnIteration = None
    ) -> Solution:
        """Solve for the targets ``Y`` (n, k); without iterations, and therefore without reports."""
        u, bias = state.system.u, state.system.bias
        RY = u[:, None] * Y
        right = np.asfortranarray(np.column_stack([u, RY]))
        solved = state.solve(right)
        solved += state.solve(right - state.product(solved))  # one step of refinement
        beta, b = eliminate_bias(solved[:, 0], solved[:, 1:], u, bias)
        residual = relative_residual(state.product(np.asfortranarray(beta)), beta, b, u, RY, bias)
        if residual > _POOR:
            warnings.warn(
                f"The solution has a relative residual of {residual:.1e}: the kernel matrix is too "
                "ill-conditioned for this C. Scale the features, or lower C.",
                NumericalWarning,
                stacklevel=3,
            )
        return Solution(u[:, None] * beta, b, state.status, residual)


def _factorise(array: FloatArray) -> bool:
    """Put the Cholesky factor into the lower triangle; say whether there is one."""
    if array.dtype == np.float64:
        return factorise_triangle(array, lower=True)
    return int(lapack.spotrf(array, lower=1, overwrite_a=1, clean=0)[1]) == 0


@dataclass(frozen=True)
class EigenState:
    """The spectrum of R K R = Q diag(lam) Q^T, from which every C follows.

    Attributes
    ----------
    lam : array of shape (n,)
        Eigenvalues.
    Q : array of shape (n, n)
        Eigenvectors, in columns.
    u : array of shape (n,)
        The border R 1.
    Qu : array of shape (n,)
        Q^T u.
    bias : bool
        Without a bias G is H^-1 itself.
    """

    lam: FloatArray
    Q: FloatArray
    u: FloatArray
    Qu: FloatArray
    bias: bool = True

    @classmethod
    def of(cls, scaled: FloatArray, u: FloatArray, bias: bool = True) -> EigenState:
        """Decompose R K R (n, n), which is overwritten; what is rounding becomes 0."""
        lam, Q = eigh(scaled.T, overwrite_a=True, check_finite=False, driver="evd")
        largest = float(np.max(np.abs(lam), initial=0.0))
        lam[np.abs(lam) <= len(lam) * float(np.finfo(lam.dtype).eps) * largest] = 0.0
        return cls(lam, Q, u, Q.T @ u, bias)

    def positive(self) -> EigenState:
        """Return the state of a positive semi-definite matrix: negative values are rounding."""
        return replace(self, lam=np.maximum(self.lam, 0.0))

    def inverse_spectrum(self, C: FloatArray) -> FloatArray:
        """Return d = 1/(lam + 1/C), shape (n, c); zero where the system is not definite."""
        shifted = self.lam[:, None] + 1.0 / np.asarray(C, dtype=float)[None, :]
        return np.where(shifted > 0, 1.0 / np.where(shifted > 0, shifted, 1.0), 0.0)

    def bordered(self, C: FloatArray, RY: FloatArray) -> BorderedPath:
        """Solve the bordered system for all ``C`` (c,) and all scaled targets ``RY`` (n, k).

        Cost: 2 n^2 c (k + 1) operations.
        """
        d = self.inverse_spectrum(C)  # (n, c)
        definite = np.all(d > 0, axis=0)
        d = np.where(definite, d, 1.0)  # any finite stand-in: the caller discards these
        n, c, k = len(self.lam), d.shape[1], RY.shape[1]
        QY = self.Q.T @ RY  # (n, k)
        spectral = np.concatenate(
            [(d * self.Qu[:, None])[:, :, None], d[:, :, None] * QY[:, None]], 2
        )
        solved = (self.Q @ spectral.reshape(n, -1)).reshape(n, c, k + 1)
        eta, nu = solved[:, :, 0], solved[:, :, 1:]
        if not self.bias:
            zero = np.zeros_like(eta)
            return BorderedPath(self.Q, d, zero, np.ones(c), nu, np.zeros((c, k)), definite)
        s = self.u @ eta  # (c,)
        b = np.einsum("n,nck->ck", self.u, nu) / s[:, None]  # [Suykens2002, eq. (3.25)]
        beta = nu - eta[:, :, None] * b[None]
        return BorderedPath(self.Q, d, eta, s, beta, b, definite)


@dataclass(frozen=True)
class BorderedPath:
    r"""Solutions of the bordered system along a path of C, and those without some rows.

    With :math:`G = H^{-1} - \eta \eta^T / s` the scaled residuals of rows v that are left out are
    :math:`e_v = G_{vv}^{-1} \beta_v`, the solution without them is
    :math:`\beta - G_{:v} e_v` and :math:`b - \eta_v^T e_v / s` ([An2007], [Cawley2004]).

    Attributes
    ----------
    Q : array of shape (n, n)
        Eigenvectors.
    d : array of shape (n, c)
        1 / (lam + 1/C).
    eta : array of shape (n, c)
        H^-1 u; 0 without a bias.
    s : array of shape (c,)
        u^T H^-1 u; 1 without a bias.
    beta : array of shape (n, c, k)
    b : array of shape (c, k)
    definite : bool array of shape (c,)
        Where False, a negative eigenvalue outweighs 1/C and the rest means nothing.
    """

    Q: FloatArray
    d: FloatArray
    eta: FloatArray
    s: FloatArray
    beta: FloatArray
    b: FloatArray
    definite: BoolArray

    def inverse_diagonal(self) -> FloatArray:
        """Return the diagonal of H^-1, shape (n, c)."""
        n = len(self.Q)
        return np.concatenate([self.Q[i : i + 512] ** 2 @ self.d for i in range(0, n, 512)])

    def diagonal(self) -> FloatArray:
        """Return the diagonal of G, shape (n, c)."""
        return np.asarray(self.inverse_diagonal() - self.eta**2 / self.s)

    def row_errors(self) -> FloatArray:
        """Return the scaled residuals of rows that are left out one by one, shape (n, c, k)."""
        return np.asarray(self.beta / self.diagonal()[:, :, None])  # [Cawley2004]

    def errors(self, rows: IntArray, part: slice = slice(None)) -> FloatArray:
        """Return the scaled residuals (c, t, k) of rows that are left out together.

        For the values of C in ``part``. What is singular to rounding, and so tells nothing, is NaN.
        """
        Qv = np.ascontiguousarray(self.Q[rows])
        eta, s = self.eta[rows, part].T, self.s[part, None]  # (c, t), (c, 1)
        G = -eta[:, :, None] * (eta / s)[:, None, :]
        for c, root in enumerate(np.sqrt(self.d[:, part].T)):
            half = Qv * root
            G[c] += half @ half.T  # a symmetric product: half the operations
        return solve_each(G, np.moveaxis(self.beta[rows, part], 1, 0))  # [An2007]

    def without(
        self, rows: IntArray, errors: FloatArray, part: slice = slice(None)
    ) -> tuple[FloatArray, FloatArray]:
        """Return beta (c, n, k) and b (c, k) without rows that leave these errors (c, t, k)."""
        eta, s = self.eta[:, part].T, self.s[part, None, None]
        shift = (eta[:, None, rows] @ errors) / s  # (c, 1, k)
        moved = self.Q @ (self.d[:, part].T[:, :, None] * (self.Q[rows].T @ errors))
        beta = np.moveaxis(self.beta[:, part], 1, 0) - moved + eta[:, :, None] * shift
        beta[:, rows] = 0.0
        return beta, self.b[part] - shift[:, 0]


def eigen_state(system: DualSystem) -> EigenState:
    """Decompose R K R of a system (its C is not used)."""
    K = system.gram(
        copies=3,
        what="Tuning or pruning by the eigendecomposition of the kernel matrix",
        advice="Give numbers for C and gamma and no reduction, or use a fixed-size model "
        "(FixedSizeLSSVC, FixedSizeLSSVR), or raise memory_budget.",
    )
    return EigenState.of(K, system.u, system.bias)


def solve_each(G: FloatArray, B: FloatArray) -> FloatArray:
    """Solve c systems; what is singular to rounding, and so tells nothing, is NaN."""
    try:
        return np.asarray(np.linalg.solve(G, B))
    except np.linalg.LinAlgError:
        out = np.full(B.shape, np.nan)
        for c in range(len(G)):
            with suppress(np.linalg.LinAlgError):
                out[c] = np.linalg.solve(G[c], B[c])
        return out


@dataclass(frozen=True, eq=False)
class ExactPath:
    """The eigendecomposition from which the exact model of every C follows in n^2 operations.

    Attributes
    ----------
    state : EigenState
        Of :math:`S^{1/2} K S^{1/2}`.
    Y : array of shape (n, k)
        Targets.
    repeats : Repeats
        Rows that are left out together.
    """

    state: EigenState
    Y: FloatArray
    repeats: Repeats = ALONE

    @classmethod
    def of(
        cls, K: FloatArray, Y: FloatArray, weight: FloatArray, repeats: Repeats = ALONE
    ) -> ExactPath:
        """Decompose the kernel matrix K (n, n) of rows with targets Y (n, k), weights (n,)."""
        root = np.sqrt(weight)
        return cls(EigenState.of(root[:, None] * K * root, root).positive(), Y, repeats)

    def at(self, C: float) -> ExactFit:
        """Return the model of one C."""
        return next(self._fits(np.array([C])))

    def left_out(self, Cs: FloatArray) -> list[FloatArray]:
        """Return the leave-one-out outputs (n, k) of many C (q,) in n^2 q (k + 2) operations."""
        return [fit.left_out for fit in self._fits(Cs)]

    def _fits(self, Cs: FloatArray) -> Iterator[ExactFit]:
        """Yield the models of all C, for which the right-hand sides are turned once."""
        root = self.state.u
        path = self.state.bordered(Cs, root[:, None] * self.Y)
        B, whole = root[:, None] * path.Q, root[:, None] ** 2 * path.inverse_diagonal()
        for j, shrunk in enumerate(path.d.T):

            def block(groups: IntArray, shrunk: FloatArray = shrunk) -> FloatArray:
                chosen = B[groups]  # (g, s, n)
                return np.asarray((chosen * shrunk) @ chosen.transpose(0, 2, 1))

            coef, nu = root[:, None] * path.beta[:, j], root * path.eta[:, j]
            left_out = _left_out(self.Y, coef, nu, whole[:, j], block, self.repeats)
            yield ExactFit(coef, path.b[j], left_out)

    def left_out_of_folds(self, Cs: FloatArray, tables: Sequence[IntArray]) -> list[FloatArray]:
        """Return the outputs of all rows by models that have not seen a fold, (q, g, n, k) each.

        Rows of the fold are those of the model without the fold; every other row is that of the
        model without the fold and the row (or the row's group). A table (g, s) has g folds of s
        rows. The matrices P of all C are computed once: n^3 q operations.
        """
        root = self.state.u
        path = self.state.bordered(Cs, root[:, None] * self.Y)
        coef = np.moveaxis(root[:, None, None] * path.beta, 1, 0)  # (q, n, k)
        nu = np.ascontiguousarray((root[:, None] * path.eta).T)  # (q, n)
        whole = root**2 * path.inverse_diagonal().T
        B, total = root[:, None] * path.Q, nu.sum(axis=1)
        P = np.empty((len(Cs), len(B), len(B)))
        for j, half_shrunk in enumerate(np.sqrt(path.d.T)):
            half = B * half_shrunk
            np.matmul(half, half.T, out=P[j])  # a symmetric product: half the operations
            P[j] -= np.outer(nu[j], nu[j] / total[j])
        given = coef, nu, whole, B, path.d.T, P
        return [self._left_out_of_folds(folds, *given) for folds in tables]

    def _left_out_of_folds(
        self,
        folds: IntArray,
        coef: FloatArray,
        nu: FloatArray,
        whole: FloatArray,
        B: FloatArray,
        shrunk: FloatArray,
        inverses: FloatArray,
    ) -> FloatArray:
        n, (g, s), q, total = len(self.Y), folds.shape, len(nu), nu.sum(axis=1)
        P = inverses[:, folds]  # (q, g, s, n)
        each = np.arange(g)[:, None]
        own = P[:, each[:, :, None], np.arange(s)[:, None], folds[:, None, :]]
        inverse = _inverse_each(own) if s < n else np.zeros_like(own)  # (q, g, s, s)
        gain = inverse @ P
        residuals = inverse @ coef[:, folds]  # (q, g, s, k)
        rest = coef[:, None] - np.swapaxes(P, 2, 3) @ residuals  # (q, g, n, k)
        diagonal = (whole - nu**2 / total[:, None])[:, None] - np.einsum("qgsn,qgsn->qgn", P, gain)
        left = (diagonal > _NOTHING_LEFT * whole[:, None]) & (s + 1 < n)
        errors = rest / np.where(left, diagonal, 1.0)[..., None]
        out = np.where(left[..., None], self.Y - errors, 0.0)
        for groups in self.repeats.stacked(max(1, _ENTRIES // (q * max(n, g * s)))):  # (G, m)
            chosen, side = B[groups], nu[:, groups]  # (G, m, n), (q, G, m)
            inside = (chosen * shrunk[:, None, None]) @ chosen.transpose(0, 2, 1)
            inside -= side[..., None] * side[..., None, :] / total[:, None, None, None]
            cross, gains = (np.moveaxis(one[..., groups], 2, 3) for one in (P, gain))
            inside = inside[:, None] - np.swapaxes(cross, 3, 4) @ gains  # (q, g, G, m, m)
            gone = (folds[:, :, None, None] == groups).any(axis=1)  # (g, G, m)
            inside[:, gone[..., :, None] | gone[..., None, :]] = 0.0
            inverted = np.linalg.pinv(inside, rcond=_SINGULAR, hermitian=True)
            some = s + groups.shape[1] - gone.sum(axis=2) < n  # rows remain
            values = self.Y[groups] - inverted @ rest[:, :, groups]
            out[:, :, groups] = np.where(some[..., None, None], values, 0.0)
        out[:, each, folds] = self.Y[folds] - residuals if s < n else 0.0
        return out


def _inverse_each(G: FloatArray) -> FloatArray:
    """Return the inverses of symmetric matrices (..., s, s), pseudo-inverses if one is singular."""
    try:
        return np.asarray(np.linalg.inv(G))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(G, rcond=_SINGULAR, hermitian=True))


def inverse_of(factor: FloatArray) -> FloatArray:
    """Return the inverse (n, n) of a matrix from the Cholesky factor in its upper triangle.

    The factor is in Fortran order and is overwritten; 2 n^3/3 operations.
    """
    potri = lapack.spotri if factor.dtype == np.float32 else lapack.dpotri
    inverse, _ = potri(factor, lower=0, overwrite_c=1)
    return np.asarray(np.triu(inverse) + np.triu(inverse, 1).T)


def leave_folds_out(
    system: DualSystem,
    RY: FloatArray,
    C: float,
    folds: Sequence[IntArray],
    cross: Sequence[FloatArray],
) -> list[tuple[FloatArray, FloatArray]] | None:
    r"""Predict every fold, and further rows, by the model that was trained without it, for one C.

    :math:`e_v = G_{vv}^{-1} \beta_v` ([An2007], [Cawley2004]) from the inverse of H by its
    Cholesky factor: n^3 operations, two matrices of n^2 numbers, where an
    eigendecomposition takes about 9 n^3. None where H is not positive definite.
    """
    H = system.gram(
        copies=2,
        what="Exact cross-validation with the kernel matrix",
        advice="Give numbers for C and gamma, or use search=CirculantSearch(refine=0), which never "
        "stores it, or a fixed-size model (FixedSizeLSSVC, FixedSizeLSSVR), or raise "
        "memory_budget.",
    )
    H[np.diag_indices_from(H)] += 1.0 / C
    potrf = lapack.spotrf if H.dtype == np.float32 else lapack.dpotrf
    factor, info = potrf(H.T, lower=0, overwrite_a=1, clean=0)
    if info:
        return None
    inverse = inverse_of(factor)
    eta, nu = inverse @ system.u, inverse @ RY
    beta, b = eliminate_bias(eta, nu, system.u, system.bias)
    s = float(system.u @ eta)
    if not system.bias:
        eta, s = np.zeros_like(eta), 1.0
    left: FloatArray
    out = []
    for rows, further in zip(folds, cross, strict=True):
        e: FloatArray = np.empty((0, RY.shape[1]))
        left, shifted = beta, b
        if len(rows) == system.n:  # nothing is left to train on
            out.append((np.zeros((len(rows), len(b))), np.zeros((len(further), len(b)))))
            continue
        if len(rows):
            G = inverse[np.ix_(rows, rows)] - np.outer(eta[rows], eta[rows]) / s
            e = np.linalg.solve(G, beta[rows])  # [An2007]
        if len(further) and len(rows):
            shift = eta[rows] @ e / s
            left = beta - inverse[:, rows] @ e + eta[:, None] * shift
            left[rows] = 0.0
            shifted = b - shift
        out.append(((RY[rows] - e) / system.u[rows, None], further @ left + shifted))
    return out


SOLVER_NAMES = ("auto", "cg", "cholesky", "circulant", "smo")
"""The solvers that have a name."""
_NAMES: dict[type, str] = {
    Cholesky: "cholesky",
    CirculantSolver: "circulant",
    ConjugateGradient: "cg",
    SMO: "smo",
}


def choose_solver(n: int, budget: int, itemsize: int = 8) -> str:
    """Return what ``solver="auto"`` means for ``n`` rows.

    The kernel matrix is factorised when it fits into the memory budget; otherwise conjugate
    gradients recompute it block by block.
    """
    return "cholesky" if n * n * itemsize <= budget else "cg"


def make_solver(solver: Any, system: DualSystem, *, seed: int) -> tuple[str, Any]:
    """Return the name and the solver object for a system.

    Parameters
    ----------
    solver : {"auto", "cholesky", "cg", "smo", "circulant"} or a solver object
        An object needs ``factorise`` and ``solve`` (see `lssvm.solvers.Solver`), and has the
        tolerance and the limit of an iterative solver. "circulant" falls
        back to what "auto" means where it cannot be used.
    system : DualSystem
        What is to be solved.
    seed : int
        Chooses the landmarks of the preconditioner.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> from lssvm.solvers import DualSystem, make_solver
    >>> system = DualSystem(Linear(), np.eye(3), np.eye(3), C=1.0)
    >>> make_solver("auto", system, seed=0)[0]
    'cholesky'
    """
    if not isinstance(solver, str):
        if all(callable(getattr(solver, method, None)) for method in ("factorise", "solve")):
            return _NAMES.get(type(solver), type(solver).__name__), solver
        needed = f"give one of {', '.join(SOLVER_NAMES)}, or an object with the methods "
        raise not_usable("solver", solver, f"{needed}factorise(system) and solve(state, Y).")
    name = solver
    if solver == "auto":
        name = choose_solver(system.n, system.budget, system.dtype.itemsize)
    if name == "cholesky":
        return name, Cholesky()
    if name == "cg":
        return name, ConjugateGradient(preconditioner="nystrom", random_state=seed)
    if name == "circulant":
        _, exact = make_solver("auto", system, seed=seed)
        return name, CirculantSolver(fallback=exact)
    if name == "smo":
        return name, SMO()
    raise not_known("solver", solver, f"choose one of {', '.join(SOLVER_NAMES)}.")


def solve_with(
    solver: Any, system: DualSystem, Y: FloatArray, *, seed: int
) -> tuple[str, Solution]:
    """Solve a system for the targets ``Y`` (n, k) with the solver of that name, or that object.

    Parameters are those of `make_solver`. Returns the name of the solver that did it, which for
    "circulant" may be that of its fallback, and the solution.
    """
    name, chosen = make_solver(solver, system, seed=seed)
    state = chosen.factorise(system)
    solution = chosen.solve(state, Y)
    warn_if_rough(state, Y, solution)
    return state.name if isinstance(state, TakenOver) else name, solution
