"""Predictions of Dask collections, and of files on a cluster, which are computed when asked for."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm.data import Scan
from lssvm.data.dask import is_dask
from lssvm.estimators.fixed_stream import light_copy, model_rows


def is_lazy(X: Any) -> bool:
    """Say whether predictions of ``X`` are made by Dask when they are asked for."""
    return is_dask(X) or (isinstance(X, Scan) and X.distributed)


def lazy(model: Any, X: Any, method: str, empty: NDArray[Any]) -> Any:
    """Return what a method says of all rows, as a Dask collection with their partitions.

    Parameters
    ----------
    model : estimator
        Fitted.
    X : Dask array, Dask data frame, or Scan with a client
    method : str
        "predict" or "decision_function".
    empty : array of shape (0,) or (0, k)
        What the method says of no rows.

    Returns
    -------
    Dask array; for a data frame a series, or a frame with k columns, with its index
    """
    light = light_copy(model)
    if isinstance(X, Scan):
        return _of_scan(light, X, method, empty)
    if hasattr(X, "columns"):
        meta = _framed(empty, X._meta.index[:0], method)
        return X.map_partitions(partial(_of_frame, light, method=method, empty=empty), meta=meta)
    X = X.rechunk({1: -1})
    wide = empty.ndim == 2
    options = {"chunks": (X.chunks[0], empty.shape[1:])} if wide else {"drop_axis": 1}
    call = partial(_of_array, light, method=method, empty=empty)
    return X.map_blocks(call, dtype=empty.dtype, meta=empty, **options)


def _of_array(model: Any, X: Any, method: str, empty: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(getattr(model, method)(X)) if len(X) else empty


def _of_frame(model: Any, X: Any, method: str, empty: NDArray[Any]) -> Any:
    return _framed(_of_array(model, X, method, empty), X.index, method)


def _framed(values: NDArray[Any], index: Any, method: str) -> Any:
    import pandas as pd

    if values.ndim == 2:
        return pd.DataFrame(values, index=index)
    return pd.Series(values, index=index, name="prediction" if method == "predict" else method)


def _of_scan(model: Any, X: Scan, method: str, empty: NDArray[Any]) -> Any:
    """Return a Dask array with one chunk for every file or partition."""
    import dask.array as da

    rows = model_rows(model, X)
    reader: Any = rows.reader
    found = reader.delayed(rows, partial(_said, model, method=method))
    sizes = [part.rows for part in reader.parts]
    chunks = [
        da.from_delayed(value, (size, *empty.shape[1:]), dtype=empty.dtype, meta=empty)
        for value, size in zip(found, sizes, strict=True)
    ]
    return da.concatenate(chunks)


def _said(model: Any, rows: Scan, method: str) -> NDArray[Any]:
    return np.asarray(getattr(model, method)(rows))
