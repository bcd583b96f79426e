"""What a kernel is, and how Gram matrices and expansions are computed in blocks."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from lssvm._core.arrays import Array, FloatArray, check_gram, is_numpy
from lssvm._core.blocks import block_rows, one_blas_thread, run_blocks, slices
from lssvm._core.errors import InvalidInputError
from lssvm.kernels.compiled import AddTo


class Evaluate(Protocol):
    """A kernel whose second argument is fixed."""

    def __call__(self, X: Array, out: FloatArray | None = None) -> Array:
        """Return the kernel (n, m) of the rows ``X`` (n, d), in ``out`` where it is honoured."""


class Kernel(ABC):
    """A positive definite function K(x, z), evaluated on blocks of rows.

    Subclasses are frozen dataclasses: a kernel is a value, its parameters never change.

    Attributes
    ----------
    name : str
        The word for it in an estimator's ``kernel`` parameter.
    accepts_sparse : bool
        Whether rows may come as a SciPy sparse matrix.
    radial : bool
        Whether K(x, z) depends on a distance between x and z alone.

    Examples
    --------
    >>> from lssvm.kernels import RBF, Kernel
    >>> isinstance(RBF(1.0), Kernel), RBF.radial
    (True, True)
    """

    name: ClassVar[str]
    accepts_sparse: ClassVar[bool] = False
    radial: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, X: Array, Z: Array, out: FloatArray | None = None) -> Array:
        """Return the kernel between rows.

        Parameters
        ----------
        X : array of shape (n, d)
        Z : array of shape (m, d)
        out : NumPy array of shape (n, m), optional
            Where to put the result; honoured by NumPy input only.

        Returns
        -------
        array of shape (n, m)
        """

    def with_gamma(self, gamma: Any) -> Kernel:
        """Return the same kernel with another gamma; only where it has one.

        Parameters
        ----------
        gamma : float or array of shape (d,)
            The new value.
        """
        return replace(self, gamma=gamma)  # type: ignore[type-var]

    def against(self, Z: Array) -> Evaluate:
        """Return the kernel with fixed ``Z`` (m, d); what depends on ``Z`` alone is done once.

        Parameters
        ----------
        Z : array of shape (m, d)
            Rows that stay, such as prototypes.

        Returns
        -------
        callable
            From ``X`` (n, d) and an optional ``out`` to the kernel (n, m), as `__call__`.
        """
        return lambda X, out=None: self(X, Z, out)

    def against_many(self, Z: Array, pairs: int | None) -> Evaluate:
        """Return `against` for so many kernel values: many are worth compiled loops.

        Parameters
        ----------
        Z : array of shape (m, d)
            Rows that stay.
        pairs : int or None
            Kernel values of all blocks of rows; None: not known.
        """
        return self.against(Z)

    def fused(self, Z: Array, coef: FloatArray, *, pairs: int, dtype: Any) -> AddTo | None:
        """Return compiled loops that add K(x, Z) coef to outputs of blocks of rows, or None.

        Parameters
        ----------
        Z : array of shape (m, d)
            Points of the expansion.
        coef : array of shape (m, k)
            Coefficients.
        pairs : int
            Kernel values of all blocks: many are worth compiled loops.
        dtype : dtype
            Of the rows and of Z together.
        """
        return None

    @abstractmethod
    def diag(self, X: Array) -> Array:
        """Return K(x, x) for every row of ``X`` (n, d), as an array of shape (n,).

        Parameters
        ----------
        X : array of shape (n, d)
            Rows.
        """

    def gradient(self, X: FloatArray, Z: FloatArray, coef: FloatArray) -> FloatArray:
        """Return the gradients of the expansions sum_j coef_j K(x, z_j) with respect to x.

        Parameters
        ----------
        X : array of shape (n, d)
            Where gradients are taken.
        Z : array of shape (m, d)
            Points of the expansions.
        coef : array of shape (m, k)
            Coefficients of k expansions.

        Returns
        -------
        array of shape (n, k, d)
            Where a kernel has a kink (x = z for the Laplacian and the exponential kernel) the
            term of that pair is zero, the mean of the slopes on both sides.
        """
        raise InvalidInputError(
            f"{type(self).__name__} has no gradient in closed form: choose a kernel by its name, "
            "or a metric of None."
        )


def fill_gram(kernel: Kernel, X: Array, Z: Array, out: FloatArray, *, threads: int) -> None:
    """Write the symmetric Gram matrix of a training set into ``out`` on several threads."""
    n = out.shape[0]
    rows = int(np.clip(n // (8 * threads), 64, 512))

    def fill(block: slice) -> None:
        view = out[block, : block.stop]
        values = kernel(X[block], Z[: block.stop], out=view)
        if values is not view:
            view[...] = values
        out[: block.start, block] = view[:, : block.start].T

    run_blocks(fill, slices(n, rows), threads if n >= 512 else 1)
    check_gram(out.diagonal())


def pull(W: FloatArray, X: FloatArray, Z: FloatArray, coef: FloatArray) -> FloatArray:
    """Return sum_j W_ij coef_jk (x_i - z_j), shape (n, k, d), by two matrix products."""
    (m, k), d = coef.shape, Z.shape[1]
    centre = Z.mean(axis=0)  # a common offset costs no digits
    X, Z = X - centre, Z - centre
    moved = W @ (coef[:, :, None] * Z[:, None, :]).reshape(m, k * d)
    total = W @ coef
    return np.asarray(total[:, :, None] * X[:, None, :] - moved.reshape(len(X), k, d))


_ENTRIES = 2**19  # kernel values of a block, where rows are not NumPy's
_NEAR_VALUES, _NEAR_ROWS = 2**15, 2**17  # numbers of a block that are still near when read again


def _rows_at_once(m: int, d: int) -> int:
    """Return the rows of a block, so that neither they nor their kernel values leave the cache."""
    return int(np.clip(min(_NEAR_VALUES // max(m, 1), _NEAR_ROWS // (d + 2)), 256, 4096))


def evaluate_expansion(
    kernel: Kernel,
    X: Array,
    Z: Array,
    coef: FloatArray,
    intercept: FloatArray,
    *,
    budget: int,
    threads: int,
    pairs: int | None = None,
) -> FloatArray:
    """Return K(X, Z) coef + intercept.

    ``pairs`` are the kernel values of all the work that this is a part of: many are worth compiled
    loops.
    """
    n, m = X.shape[0], coef.shape[0]
    if m == 0:  # no function, and no middle of the rows of Z
        return np.tile(np.asarray(intercept, dtype=coef.dtype), (n, 1))
    out = np.empty((n, coef.shape[1]), dtype=coef.dtype)
    most = _rows_at_once(m, X.shape[1]) if is_numpy(X) else max(256, _ENTRIES // max(m, 1))
    rows = block_rows(3 * m * coef.itemsize * threads, budget, n_rows=max(n, 1), at_most=most)
    if threads > 1:
        rows = max(1, min(rows, -(-n // threads)))

    kind = np.result_type(X.dtype, Z.dtype) if is_numpy(X) and is_numpy(Z) else None
    pairs = n * m if pairs is None else pairs
    add = None if kind is None else kernel.fused(Z, coef, pairs=pairs, dtype=kind)
    values, local = kernel.against(Z), threading.local()

    def fill(part: slice) -> None:
        if add is not None:
            out[part] = 0.0
            return add(X[part], out[part])
        if kind is not None and not hasattr(local, "room"):  # fresh pages for every block cost time
            local.room = np.empty((rows, m), dtype=kind)
        room = None if kind is None else local.room[: part.stop - part.start]
        np.matmul(np.asarray(values(X[part], room)), coef, out=out[part])

    with one_blas_thread() if threads == 1 and n > rows else nullcontext():  # blocks are small
        operations = n * m * (X.shape[1] + coef.shape[1])
        run_blocks(fill, slices(n, rows), threads, operations=operations)
    out += intercept
    return out


@dataclass(frozen=True, eq=False)
class Expansion:
    """Outputs sum_j coef_j K(x, z_j) + intercept.

    Attributes
    ----------
    kernel : Kernel
        Of all its outputs.
    basis : array or sparse matrix of shape (m, d)
        The rows z, as the kernel sees them; their numbers for a precomputed kernel.
    coef : array of shape (m, k)
        Coefficients of every output.
    intercept : array of shape (k,)
        What is added to every output.
    C : array of shape (k,)
        Regularisation of every output.
    """

    kernel: Kernel
    basis: Any
    coef: FloatArray
    intercept: FloatArray
    C: FloatArray

    @property
    def kernel_name(self) -> str:
        """The name of the kernel."""
        return self.kernel.name

    @property
    def n_basis(self) -> int:
        """Number of basis functions, m."""
        return int(self.coef.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return int(self.basis.shape[1])
