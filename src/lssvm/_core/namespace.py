"""The one gate to array libraries: the namespace and device that arrays live in.

Numerics are written against the array-API standard, so that NumPy, torch and CuPy arrays take the
same path. Where a NumPy-only routine is faster (in-place LAPACK), `is_numpy` decides.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

try:
    import array_api_compat as _compat
except ImportError:  # a machine that has scikit-learn but not array-api-compat: same code, vendored
    from sklearn.externals import array_api_compat as _compat

Array: TypeAlias = Any


def get_namespace(*arrays: Array) -> Any:
    """Return the array-API namespace shared by ``arrays`` (NumPy's when there is no array).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm._core.namespace import get_namespace
    >>> get_namespace(np.ones(2)).__name__.endswith("numpy")
    True
    """
    known = [a for a in arrays if a is not None and not isinstance(a, (int, float, bool))]
    if not known:
        return _compat.array_namespace(np.empty(0))
    return _compat.array_namespace(*known)


def is_numpy(array: Array) -> bool:
    """Say whether ``array`` is a plain NumPy array."""
    return isinstance(array, np.ndarray)


def is_sparse(array: Array) -> bool:
    """Say whether ``array`` is a SciPy sparse matrix or array."""
    return bool(sparse.issparse(array))


def device(array: Array) -> Any:
    """Return the device that ``array`` lives on (``"cpu"`` for NumPy)."""
    return _compat.device(array)


def to_numpy(array: Array) -> np.ndarray[Any, Any]:
    """Return ``array`` as a NumPy array, copying from its device when it is not on the host."""
    if isinstance(array, np.ndarray):
        return array
    if _compat.is_torch_array(array):
        return np.asarray(array.detach().cpu().numpy())
    if _compat.is_cupy_array(array):
        return np.asarray(array.get())
    return np.asarray(array)
