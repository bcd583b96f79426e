"""Where a model is computed: an array library and one of its devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lssvm._core.arrays import Array, compat, device, get_namespace, to_numpy
from lssvm._core.blocks import available_memory
from lssvm._core.errors import InvalidInputError, MemoryBudgetError, library, not_usable

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
