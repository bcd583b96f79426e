"""LAPACK and BLAS routines that let other threads of Python run while they work.

SciPy's wrappers hold Python's lock during a call, so that folds on several threads would take
turns. SciPy also publishes the same routines as C pointers (``scipy.linalg.cython_blas`` and
``cython_lapack``, an interface meant for other packages); called through ctypes they release it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

from lssvm._core.arrays import FloatArray

_BLOCK = 64  # columns per block of LAPACK's blocked algorithms
_BELOW = np.tri(_BLOCK, k=-1, dtype=bool)
_PANEL = 128  # columns that a large Cholesky factorisation finishes at a time
_CORNER = 32  # of which the halves of a triangle have a multiple of columns


@cache
def _routine(name: str) -> Callable[..., None]:
    """Return a routine of SciPy's BLAS or LAPACK as a C function; every argument is a pointer."""
    table = getattr(cython_lapack, "__pyx_capi__") | getattr(cython_blas, "__pyx_capi__")  # noqa: B009
    capsule = table[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = api.PyCapsule_GetName(capsule)
    assert signature is not None
    n_arguments = signature.count(b",") + 1
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)
    return prototype(api.PyCapsule_GetPointer(capsule, signature))


@cache
def _word(value: str) -> Any:
    """Return a word as C reads it."""
    return ctypes.create_string_buffer(value.encode())


def _call(name: str, *arguments: Any) -> None:
    """Call a routine with words (str), integers, floats and arrays, each passed by its address."""
    kept: list[Any] = []  # alive until the routine has returned
    pointers = []
    dtype, number = (
        (np.float32, ctypes.c_float) if name[0] == "s" else (np.float64, ctypes.c_double)
    )
    for value in arguments:
        if isinstance(value, np.ndarray):
            if value.dtype not in (dtype, np.intc):  # it would be read and written beyond
                raise TypeError(f"{name} takes {np.dtype(dtype)}, not {value.dtype}.")
            pointers.append(value.__array_interface__["data"][0])
            continue
        if isinstance(value, str):
            kept.append(_word(value))
        else:
            kept.append(number(value) if isinstance(value, float) else ctypes.c_int(value))
        pointers.append(ctypes.addressof(kept[-1]))
    _routine(name)(*pointers)


def tridiagonalise(A: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Reduce a symmetric matrix to tridiagonal form in place (LAPACK's dsytrd)."""
    r = A.shape[0]
    d, e, tau = np.empty(r), np.empty(max(r - 1, 0)), np.empty(max(r - 1, 0))
    work, info = np.empty(_BLOCK * max(r, 1)), np.zeros(1, dtype=np.intc)
    _call("dsytrd", "L", r, A, max(r, 1), d, e, tau, work, len(work), info)
    return d, e, tau


def reflect(reflectors: FloatArray, tau: FloatArray, B: FloatArray, *, transposed: bool) -> None:
    """Multiply B (r, q) in place by Q or Q^T of a QR factorisation (LAPACK's dormqr)."""
    r, q = B.shape
    p = len(tau)
    work, info = np.empty(_BLOCK * max(q, 1) + _BLOCK * (_BLOCK + 1)), np.zeros(1, dtype=np.intc)
    word = "T" if transposed else "N"
    _call("dormqr", "L", word, r, q, p, reflectors, r, tau, B, r, work, len(work), info)


def add_gram(gram: FloatArray, K: FloatArray, *, new: bool) -> None:
    """Add :math:`K^T K` to the upper triangle of a matrix in place (BLAS's dsyrk)."""
    b, m = K.shape
    if b and m:
        # Read by columns, as BLAS does, K is K^T and the upper triangle the lower one.
        _call("dsyrk", "L", "N", m, b, 1.0, K, m, 0.0 if new else 1.0, gram, m)


def mirror(A: FloatArray) -> FloatArray:
    """Copy the upper triangle of a square matrix to the lower one, in place; return it."""
    for start in range(0, len(A), _BLOCK):
        stop = start + _BLOCK
        corner = A[start:stop, start:stop]
        np.copyto(corner, corner.T, where=_BELOW[: len(corner), : len(corner)])
        A[stop:, start:stop] = A[start:stop, stop:].T
    return A


def congruence(half: FloatArray, T: FloatArray) -> FloatArray:
    """Return :math:`T^T (L + L^T) T` for a lower triangular L (BLAS's dtrmm and dsyr2k)."""
    m, r = T.shape
    X = T.copy(order="F")
    _call("dtrmm", "L", "L", "T", "N", m, r, 1.0, half, m, X, m)
    out = np.zeros((r, r), order="F")
    _call("dsyr2k", "L", "T", r, m, 1.0, X, m, T, m, 0.0, out, max(r, 1))
    return out


def _leading(A: FloatArray) -> int:
    """Return the leading dimension of a matrix whose columns are contiguous."""
    rows, columns = A.shape
    size = A.itemsize
    if A.dtype not in (np.float64, np.float32) or (rows > 1 and A.strides[0] != size):
        raise ValueError("The columns of the matrix must be contiguous numbers.")
    return int(max(1, rows, A.strides[1] // size if columns > 1 else 0))


def _typed(name: str, A: FloatArray) -> str:
    """Return the name of a routine for the type of a matrix: single or double precision."""
    return ("s" if A.dtype == np.float32 else "d") + name


def factorise_triangle(A: FloatArray, *, lower: bool) -> bool:
    """Factorise a positive definite matrix in place (LAPACK's dpotrf); say whether it is one."""
    r = A.shape[0]
    if not lower or r < 4 * _PANEL:
        return _factorise_at_once(A, lower=lower)
    for start in range(0, r, _PANEL):
        stop = min(start + _PANEL, r)
        corner = A[start:stop, start:stop]
        if not _factorise_at_once(corner, lower=True):
            return False
        if stop < r:
            panel, rest = A[stop:, start:stop], A[stop:, stop:]
            shape = r - stop, stop - start
            trsm, syrk, width = _typed("trsm", A), _typed("syrk", A), _leading(A)
            _call(trsm, "R", "L", "T", "N", *shape, 1.0, corner, width, panel, width)
            _call(syrk, "L", "N", *shape, -1.0, panel, width, 1.0, rest, width)
    return True


def _factorise_at_once(A: FloatArray, *, lower: bool) -> bool:
    info = np.zeros(1, dtype=np.intc)
    _call(_typed("potrf", A), "L" if lower else "U", A.shape[0], A, _leading(A), info)
    return int(info[0]) == 0


def solve_triangle(A: FloatArray, B: FloatArray, *, lower: bool, transposed: bool) -> None:
    """Solve with a triangle of A (r, r) for the columns of B (r, q), in place (BLAS's dtrsm)."""
    r, q = B.shape
    uplo, trans = "L" if lower else "U", "T" if transposed else "N"
    _call(_typed("trsm", A), "L", uplo, trans, "N", r, q, 1.0, A, _leading(A), B, _leading(B))


def symmetric_times(A: FloatArray, B: FloatArray) -> FloatArray:
    """Return A B for a symmetric A (r, r) and few columns B (r, q), one by one (BLAS's dsymv)."""
    r, q = B.shape
    B = np.asfortranarray(B, dtype=A.dtype)
    out = np.zeros((r, q), dtype=A.dtype, order="F")
    for j in range(q):
        _call(_typed("symv", A), "L", r, 1.0, A, _leading(A), B[:, j], 1, 0.0, out[:, j], 1)
    return out


def triangle_times(A: FloatArray, B: FloatArray, *, transposed: bool) -> FloatArray:
    """Return L B or L^T B for the lower triangle L of A (r, r), few columns B (BLAS's dtrmv)."""
    r, q = B.shape
    out = np.array(B, dtype=A.dtype, order="F")
    for j in range(q):
        word = "T" if transposed else "N"
        _call(_typed("trmv", A), "L", word, "N", r, A, _leading(A), out[:, j], 1)
    return out


def add_outer(A: FloatArray, B: FloatArray, factor: float = 1.0) -> None:
    """Add factor B B^T to the lower triangle of A (r, r), for B (r, q) (BLAS's dsyrk)."""
    r, q = B.shape
    _call("dsyrk", "L", "N", r, q, factor, B, _leading(B), 1.0, A, _leading(A))


def invert_triangle(A: FloatArray, *, lower: bool) -> bool:
    """Invert a triangle in place; say whether no diagonal entry was zero.

    A lower one is halved until LAPACK's dtrtri is left with few columns, of which it is slow.
    """
    if lower and len(A) > _BLOCK:
        if not np.all(A.diagonal()):
            return False
        half = -(-len(A) // (2 * _CORNER)) * _CORNER
        above, side, below = A[:half, :half], A[half:, :half], A[half:, half:]
        shape, width = side.shape, _leading(A)
        trsm, trmm = _typed("trsm", A), _typed("trmm", A)
        _call(trsm, "L", "L", "N", "N", *shape, -1.0, below, width, side, width)
        invert_triangle(above, lower=True)
        _call(trmm, "R", "L", "N", "N", *shape, 1.0, above, width, side, width)
        return invert_triangle(below, lower=True)
    info = np.zeros(1, dtype=np.intc)
    _call(_typed("trtri", A), "L" if lower else "U", "N", A.shape[0], A, _leading(A), info)
    return int(info[0]) == 0
