"""Arrays: their types, which annotations of the whole library mean, and their libraries.

Numerics are written against the array-API standard, so that NumPy, torch and CuPy arrays take the
same path. Where a NumPy-only routine is faster (in-place LAPACK), `is_numpy` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[Any]
"""Real numbers, float64 unless the input was float32."""
IntArray: TypeAlias = NDArray[np.intp]
"""Row numbers, class numbers, columns."""
BoolArray: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]
"""Labels, texts, or numbers of any kind."""
OnEvent: TypeAlias = Callable[[dict[str, Any]], None]
"""What listens to the progress of long work."""


try:
    import array_api_compat as _found
except ImportError:  # a machine that has scikit-learn but not array-api-compat: same code, vendored
    from sklearn.externals import array_api_compat as _found

Array: TypeAlias = Any
compat: Any = _found
"""Array-API-compat, installed or as it comes with scikit-learn."""

_STAGE = 2**26  # bytes that are copied from a GPU at a time


def get_namespace(*arrays: Array) -> Any:
    """Return the array-API namespace shared by ``arrays`` (NumPy's when there is no array).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm._core.arrays import get_namespace
    >>> get_namespace(np.ones(2)).__name__.endswith("numpy")
    True
    """
    known = [a for a in arrays if a is not None and not isinstance(a, (int, float, bool))]
    if not known:
        return compat.array_namespace(np.empty(0))
    return compat.array_namespace(*known)


def is_numpy(array: Array) -> bool:
    """Say whether ``array`` is a plain NumPy array."""
    return isinstance(array, np.ndarray)


def is_sparse(array: Array) -> bool:
    """Say whether ``array`` is a SciPy sparse matrix or array."""
    from scipy import sparse  # which the header of a model file does not need

    return bool(sparse.issparse(array))


def float_rows(X: Any) -> Any:
    """Return rows as float64: a NumPy array, or sparse rows as they are."""
    if is_sparse(X):
        return X.astype(np.float64, copy=False)
    return np.asarray(X, dtype=np.float64)


def join_rows(parts: Sequence[Any]) -> Any:
    """Return rows below each other: a NumPy array, or sparse rows where all are."""
    if all(is_sparse(part) for part in parts):
        from scipy import sparse

        return sparse.vstack(parts, format="csr")
    return np.concatenate([part.toarray() if is_sparse(part) else part for part in parts])


def device(array: Array) -> Any:
    """Return the device that ``array`` lives on (``"cpu"`` for NumPy)."""
    return compat.device(array)


def to_numpy(array: Array) -> np.ndarray[Any, Any]:
    """Return ``array`` as a NumPy array, copying from its device when it is not on the host."""
    if isinstance(array, np.ndarray):
        return array
    if compat.is_torch_array(array):
        tensor = array.detach()
        if tensor.is_cuda and tensor.nbytes > _STAGE:
            return _in_pieces(tensor)
        return np.asarray(tensor.cpu().numpy())
    if compat.is_cupy_array(array):
        return np.asarray(array.get())
    if type(array).__module__.startswith("array_api_strict"):
        xp = compat.array_namespace(array)
        return np.asarray(xp.asarray(array, device=xp.Device("CPU_DEVICE")))
    return np.asarray(array)


def take_rows(array: Array, index: np.ndarray[Any, Any]) -> Array:
    """Return some entries along the first axis of an array of any library."""
    if isinstance(array, np.ndarray):
        return array[index]
    if is_sparse(array):
        return array[index]
    xp = get_namespace(array)
    return xp.take(array, xp.asarray(index, dtype=xp.int64, device=device(array)), axis=0)


def take_square(array: Array, index: np.ndarray[Any, Any]) -> Array:
    """Return the rows and columns ``index`` of a square matrix of any library."""
    if isinstance(array, np.ndarray):
        return array[np.ix_(index, index)]
    xp = get_namespace(array)
    where = xp.asarray(index, dtype=xp.int64, device=device(array))
    return xp.take(xp.take(array, where, axis=0), where, axis=1)


def _in_pieces(tensor: Array) -> np.ndarray[Any, Any]:
    """Copy a large torch tensor from a GPU through pinned memory, which is ten times as fast."""
    import torch

    flat = tensor.contiguous().reshape(-1)
    out = torch.empty(tuple(tensor.shape), dtype=tensor.dtype)
    into, step = out.reshape(-1), _STAGE // tensor.element_size()
    stage = torch.empty(step, dtype=tensor.dtype, pin_memory=True)
    for begin in range(0, flat.shape[0], step):
        part = flat[begin : begin + step]
        stage[: len(part)].copy_(part)
        into[begin : begin + len(part)].copy_(stage[: len(part)])
    return np.asarray(out.numpy())
