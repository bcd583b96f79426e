"""What a caller gave, opened in one place: arrays in memory, or rows that are read in blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from lssvm._core.arrays import Array, compat, is_dask
from lssvm._core.device import is_foreign, on_host
from lssvm._core.errors import InvalidInputError
from lssvm.data.dask import array_reader, frame_reader
from lssvm.data.raw import is_source
from lssvm.data.scanning import Scan, scan


@dataclass(frozen=True, eq=False)
class Arrays:
    """Arrays of any library, sparse matrices and frames, as they were given."""

    X: Any
    y: Any = None
    sample_weight: Any = None
    groups: Any = None

    @property
    def foreign(self) -> Array | None:
        """X where it is an array of another library than NumPy."""
        return self.X if is_foreign(self.X) else None

    def on_host(self) -> tuple[Any, Any, Any]:
        """Return X, y and the weights in main memory."""
        return on_host(self.X), on_host(self.y), on_host(self.sample_weight)


Dataset: TypeAlias = Arrays | Scan
"""Rows, wherever they are: arrays, or a scan, which may be of files or of a Dask collection."""


def open_dataset(X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Dataset:
    """Return rows of any kind with their targets, weights and groups, as far as they were given.

    Nothing else asks what X is. A `Scan` is what a scan, a `RowSource` or a Dask collection
    becomes; it brings its own targets, unless they stand beside a Dask collection.
    """
    for value in (X, y, sample_weight):
        _check_tensor(value)
    data = as_scan(X, y, sample_weight)
    if data is None:
        return Arrays(X, y, sample_weight, groups)
    if groups is not None:
        raise InvalidInputError(
            "groups cannot be given with rows that are read in blocks, which are dealt to folds by "
            "their positions: give arrays X and y, or leave groups out."
        )
    return data.watched()


def as_scan(data: Any, y: Any = None, sample_weight: Any = None) -> Scan | None:
    """Return a `Scan` as it is, a `RowSource` or a Dask collection as one, None for arrays.

    A Dask collection comes with target and weights beside it, and its numbers are taken as they
    are, as those of arrays in memory.
    """
    if is_dask(data):
        read = frame_reader if hasattr(data, "_meta") and hasattr(data, "columns") else array_reader
        reader = replace(read(data, y, sample_weight, None), collection=data)
        return Scan(reader, y is not None, prepare=False)
    if not isinstance(data, Scan) and not is_source(data):
        return None
    if y is not None or sample_weight is not None:
        raise InvalidInputError(
            "A scan brings its own target and weights: give them to scan(..., target=..., "
            "weight=...) and leave y and sample_weight out."
        )
    return data if isinstance(data, Scan) else scan(data)


def _check_tensor(value: Any) -> None:
    """Raise for tensors of torch that hold no numbers that can be read."""
    if not compat.is_torch_array(value):
        return
    layout, kind = str(value.layout), str(value.dtype)
    if value.device.type == "meta":
        why, change = "is on the device 'meta', which holds no numbers", "give one that has some"
    elif layout != "torch.strided":
        why, change = f"has the layout {layout}", "give a dense one (to_dense())"
    elif value.is_complex() or value.is_quantized or kind == "torch.bfloat16":
        why, change = f"has the type {kind}", "convert it to torch.float64 or torch.float32"
    else:
        return
    raise InvalidInputError(f"A tensor of shape {tuple(value.shape)} {why}: {change}.")
