"""Arrays: their types, which annotations of the whole library mean, their libraries and devices.

Numerics are written against the array-API standard, so that NumPy, torch and CuPy arrays take the
same path. Where a NumPy-only routine is faster (in-place LAPACK), `is_numpy` decides.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lssvm._core.blocks import available_memory, slices
from lssvm._core.errors import InvalidInputError, MemoryBudgetError, library, not_usable

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
    """Return the array-API namespace shared by ``arrays`` (NumPy's when there is no array)."""
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


def is_dask(data: Any) -> bool:
    """Say whether ``data`` is a Dask array, data frame or series."""
    return "dask" in sys.modules and hasattr(data, "__dask_graph__") and hasattr(data, "to_delayed")


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


def check_weight(sample_weight: Any, n: int) -> FloatArray | None:
    """Return weights of shape (n,), or None where all of them are 1."""
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        text = f"sample_weight has entries that are not numbers ({error}): give one for each row."
        raise InvalidInputError(text) from error
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise InvalidInputError(
            f"sample_weight has shape {weight.shape} but X has {n} rows: give one weight per row. "
            "(Sample weights must be 1D array or scalar.)"
        )
    if not np.all(np.isfinite(weight)) or np.any(weight < 0):
        raise InvalidInputError(
            "sample_weight has negative, NaN or infinite values: weights must be finite and >= 0."
        )
    used = weight[weight > 0]
    if len(used) and (used.max() > 1e30 or used.min() < 1e-30):
        raise InvalidInputError(
            f"sample_weight has values from {used.min():.3g} to {used.max():.3g}: weights must be "
            "zero or lie within 1e-30 and 1e30. Divide them by a constant, or set what is next to "
            "nothing to zero."
        )
    if not np.any(weight > 0):
        raise InvalidInputError(
            "sample_weight is zero for every row: at least one row must have a positive weight."
        )
    return None if np.all(weight == 1.0) else weight


def times(weight: FloatArray | None, factor: FloatArray | None) -> FloatArray | None:
    """Return the product of two vectors of weights, None standing for ones."""
    if weight is None or factor is None:
        return factor if weight is None else weight
    return np.asarray(weight * factor)


def pick(values: Any, rows: Any) -> Any:
    """Return some rows of what may be None, which stays None."""
    return None if values is None else values[rows]


LARGEST = 1e60  # squares of squared distances and residuals stay within floating-point numbers
LARGEST32 = 1e15  # and squares themselves where numbers are float32
_GRAM, _GRAM32 = 1e50, 1e25  # the same for kernels


def check_magnitude(
    values: Any, name: str, change: str, *, small: bool = False, dtype: Any = None
) -> None:
    """Raise where numbers are so large or so small that their squares overflow or vanish."""
    numbers: AnyArray = np.asarray(getattr(values, "data", ()) if is_sparse(values) else values)
    if numbers.size == 0 or numbers.dtype.kind != "f":
        return
    largest = max(float(numbers.max()), -float(numbers.min()))
    computed = numbers.dtype if dtype is None else np.dtype(dtype)
    most = LARGEST if computed.itemsize > 4 else LARGEST32
    if largest > most or (not small and 0.0 < largest < 1.0 / most):
        size = "large" if largest > 1.0 else "small"
        raise InvalidInputError(
            f"{name} has values of magnitude {largest:.3g}, too {size} to compute with as "
            f"{computed}: they have to lie within {1.0 / most:.0e} and {most:.0e}. Use other "
            f"units, or {change}."
        )


def check_gram(diagonal: AnyArray) -> None:
    """Raise where the squares of a kernel's values, or the squares of these, overflow or vanish."""
    most = _GRAM if diagonal.dtype.itemsize > 4 else _GRAM32
    largest = float(np.max(np.abs(diagonal), initial=0.0))
    if largest > most:
        raise InvalidInputError(
            f"The kernel has values of {largest:.3g}, more than {most:.0e}, to which no system can "
            "be solved: bring the columns of X to one scale (sklearn.preprocessing."
            "StandardScaler), or lower gamma, degree or coef0."
        )


def is_int(value: Any) -> bool:
    """Return whether a value is a whole number, and no truth value."""
    return isinstance(value, (int, np.integer)) and type(value) is not bool


SAME = 1e-9
"""Scores that differ by less than this part of the largest are the same, but for rounding."""

_TIED = 1 << 20  # scores that are sorted at a time


def tie_scores(scores: FloatArray) -> FloatArray:
    """Return scores of which those that differ by rounding alone are equal.

    Equal rows get the same score, but for the last digits, which depend on where a row stands and
    on its own target: whatever ranks rows must not see them. Scores (n,), or (n, k) by columns,
    some of which are sorted at a time: next to the result little memory is needed.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 1:
        tied = _tied(one := values[None])
        return values if tied is one else tied[0]
    tied = np.empty_like(values)
    for part in slices(values.shape[1], max(1, _TIED // max(len(values), 1))):
        tied[:, part] = _tied(np.ascontiguousarray(values[:, part].T)).T
    return tied


def _tied(values: FloatArray) -> FloatArray:
    """Return scores (k, n) of which those of a row that differ by rounding alone are equal."""
    good = np.isfinite(values)
    least = SAME * np.max(np.abs(values), axis=1, initial=0.0, where=good)
    filled = np.where(good, values, np.inf)
    order = np.argsort(filled, axis=1)
    ordered = np.take_along_axis(filled, order, axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        new = np.diff(ordered, axis=1) > least[:, None]
    if new.all():
        return values
    first = np.maximum.accumulate(np.where(new, np.arange(1, values.shape[1]), 0), axis=1)
    ordered[:, 1:] = np.take_along_axis(ordered, first, axis=1)
    np.put_along_axis(filled, order, ordered, axis=1)
    return np.where(good, filled, values)


# -- devices --------------------------------------------------------------------------------------

_LEAST = 64  # rows of a block below which memory has run out for good


def is_foreign(array: Any) -> bool:
    """Say whether ``array`` is one of another library than NumPy that computes by itself."""
    if isinstance(array, np.ndarray) or not compat.is_array_api_obj(array):
        return False
    return not (compat.is_dask_array(array) or compat.is_pydata_sparse_array(array))


def on_host(value: Any) -> Any:
    """Return an array of another library as one of NumPy, and all else as it is."""
    return to_numpy(value) if is_foreign(value) else value


def same_place(one: Any, other: Any) -> bool:
    """Say whether two arrays are both on the host, or of one library and on one device."""
    if not (is_foreign(one) and is_foreign(other)):
        return not (is_foreign(one) or is_foreign(other))
    return get_namespace(one) is get_namespace(other) and bool(device(one) == device(other))


@dataclass(frozen=True, eq=False)
class Device:
    """An array library and a device of it.

    Attributes
    ----------
    xp : namespace
        Of the array-API standard.
    device : object
        As the library names it.
    limit : int or None
        Bytes that may be taken there at most; None: what is free.
    """

    xp: Any
    device: Any
    limit: int | None = None

    @property
    def is_torch(self) -> bool:
        """Whether the library is torch."""
        return bool(compat.is_torch_namespace(self.xp))

    @property
    def is_cuda(self) -> bool:
        """Whether the work is done by torch on an NVIDIA or AMD GPU."""
        return self.is_torch and getattr(self.device, "type", None) == "cuda"

    def put(self, values: Any, dtype: Any = None) -> Array:
        """Return ``values`` as an array on the device, floats as float64 unless ``dtype`` is given.

        A NumPy array goes there as it is and changes its type there.
        """
        if is_foreign(values) and get_namespace(values) is not self.xp:
            values = to_numpy(values)
        if isinstance(values, np.ndarray) and self.is_torch and not values.flags.writeable:
            values = values.copy()  # torch warns of memory that it must not write to
        if compat.is_torch_array(values):
            values = values.detach()  # else every block would be kept for its gradient
        array = self.xp.asarray(values, device=self.device)
        if dtype is None:
            floats = self.xp.isdtype(array.dtype, "real floating")
            dtype = self.xp.float64 if floats else array.dtype
        return array if array.dtype == dtype else self.xp.astype(array, dtype)

    def zeros(self, *shape: int) -> Array:
        """Return an array of zeros on the device."""
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.device)

    def free_bytes(self) -> int:
        """Return the memory that can still be taken there."""
        free = self._free()
        return free if self.limit is None else min(free, self.limit)

    def _free(self) -> int:
        if self.is_cuda:
            cuda = self.xp.cuda
            cached = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
            return int(cuda.mem_get_info(self.device)[0]) + int(cached)
        if compat.is_cupy_namespace(self.xp):
            import cupy

            cached = cupy.get_default_memory_pool().free_bytes()
            return int(cupy.cuda.runtime.memGetInfo()[0]) + int(cached)
        return available_memory()

    def release(self) -> None:
        """Give back memory that the library holds but does not use."""
        if self.is_cuda:
            self.xp.cuda.empty_cache()


def find_device(device_name: Any, X: Any, *, dispatch: bool) -> Device | None:
    """Return what computes on ``X``; None is NumPy on the host."""
    foreign = is_foreign(X)
    if device_name is None:
        if not foreign or not (dispatch or _on_accelerator(X)):
            return None
        return Device(get_namespace(X), device(X))
    host = isinstance(device_name, str) and device_name == "cpu"
    if host and not foreign:
        return None
    if foreign and not compat.is_torch_array(X):
        if host and not _on_accelerator(X):
            return Device(get_namespace(X), device(X))
        raise InvalidInputError(
            f"device={device_name!r} cannot be used with arrays of {type(X).__module__}: leave it "
            "out, and they are computed where they are."
        )
    return _torch_device(device_name)


def _on_accelerator(X: Any) -> bool:
    if compat.is_torch_array(X):
        return bool(X.device.type != "cpu")
    return bool(compat.is_cupy_array(X))


def _torch_device(name: Any) -> Device:
    otherwise = ", or device=None to compute with NumPy"
    torch = library("torch", f"device={name!r} needs torch", "[gpu]", otherwise)
    try:
        place = torch.device(name)
    except (RuntimeError, TypeError) as error:
        needed = "give None, 'cpu', 'cuda', 'cuda:1', or a torch.device."
        raise not_usable("device", name, needed) from error
    if place.type == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if (place.index or 0) >= count:
            raise InvalidInputError(
                f"device={name!r} is not there: torch sees {count} CUDA devices. Give one of them, "
                "or device=None to compute with NumPy."
            )
        if place.index is None:
            place = torch.device("cuda", torch.cuda.current_device())
    elif place.type != "cpu":
        needed = "models are computed in float64, which is supported on 'cpu' and 'cuda'."
        raise not_usable("device", name, needed)
    return Device(get_namespace(torch.empty(0)), place)


def out_of_memory(error: BaseException) -> bool:
    """Say whether an error means that a device has no memory left."""
    return type(error).__name__ == "OutOfMemoryError" or (
        isinstance(error, MemoryError) and not isinstance(error, MemoryBudgetError)
    )


@dataclass
class Halving:
    """Works through rows in blocks, smaller ones from when memory runs out.

    Attributes
    ----------
    engine : Device
    rows : int
        Rows of a block; halved whenever a block does not fit.
    """

    engine: Device
    rows: int
    halved: int = 0

    def run(self, work: Callable[[slice], Any], n: int) -> None:
        """Call ``work`` on consecutive slices of ``range(n)``.

        A call that fails for lack of memory must have changed nothing.
        """
        start = 0
        while start < n:
            block = slice(start, min(start + self.rows, n))
            try:
                work(block)
            except Exception as error:
                if not out_of_memory(error):
                    raise
                if self.rows <= _LEAST:
                    raise MemoryBudgetError(
                        f"The device has no memory left for a block of {self.rows} rows: give "
                        "fewer prototypes or folds, or free memory of the device."
                    ) from error
                self.engine.release()
                self.rows, self.halved = self.rows // 2, self.halved + 1
                continue
            start = block.stop


def like(result: Any, X: Array | None) -> Any:
    """Return numbers in the namespace and on the device of ``X``; what else there is as it is."""
    if not is_foreign(X):
        return result
    if isinstance(result, tuple):
        return tuple(like(part, X) for part in result)
    if not isinstance(result, np.ndarray) or result.dtype.kind not in "biuf":
        return result
    return Device(get_namespace(X), device(X)).put(result)
