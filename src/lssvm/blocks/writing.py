"""Tables written block by block; a file is there when it is complete, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.atomic import replacing
from lssvm._core.errors import InvalidInputError
from lssvm.blocks.arrow import need_pyarrow

WRITES = (".parquet", ".arrow", ".csv", ".npy")


def write_table(parts: Iterable[Mapping[str, NDArray[Any]]], path: str) -> str:
    """Write columns block by block.

    Parameters
    ----------
    parts : iterable of mappings from names to arrays of shape (b,) or (b, k)
        A column of shape (b, k) becomes k columns ``name_0``, ``name_1``, ...
    path : str
        Parquet, Arrow, CSV or .npy by its ending (.npy: one column).

    Returns
    -------
    str
        The path.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from lssvm.blocks.writing import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = write_table([{"p": np.ones(2)}, {"p": np.zeros(1)}],
    ...                        os.path.join(folder, "p.npy"))
    ...     np.load(name)
    array([1., 1., 0.])
    """
    ending = os.path.splitext(path)[1].lower()
    if ending not in WRITES:
        raise InvalidInputError(f"out={path!r} has to end in one of {', '.join(WRITES)}.")
    with replacing(path) as name:
        if ending == ".npy":
            _write_array(parts, name)
        else:
            _write_arrow(parts, name, ending)
    return path


def _write_array(parts: Iterable[Mapping[str, NDArray[Any]]], name: str) -> None:
    found = []
    for part in parts:
        (values,) = part.values()
        found.append(values)
    with open(name, "wb") as handle:
        np.save(handle, np.concatenate(found), allow_pickle=False)


def _write_arrow(parts: Iterable[Mapping[str, NDArray[Any]]], name: str, ending: str) -> None:
    pa = need_pyarrow()
    writer = None
    try:
        for part in parts:
            columns: dict[str, Any] = {}
            for key, values in part.items():
                if values.ndim == 1:
                    columns[key] = values
                else:
                    columns |= {f"{key}_{j}": values[:, j] for j in range(values.shape[1])}
            table = pa.table({key: pa.array(values) for key, values in columns.items()})
            writer = _writer(name, ending, table.schema) if writer is None else writer
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _writer(name: str, ending: str, schema: Any) -> Any:
    import pyarrow as pa

    if ending == ".parquet":
        from pyarrow import parquet

        return parquet.ParquetWriter(name, schema)
    if ending == ".csv":
        from pyarrow import csv

        return csv.CSVWriter(name, schema)
    return pa.ipc.new_file(name, schema)
