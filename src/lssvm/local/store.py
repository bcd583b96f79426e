"""Rows on their way to their leaves: kept in memory, or in files of a scratch folder.

Rows arrive block by block in the order of the data; a leaf needs all of its rows at once. So
leaves are put together in bundles, each bundle is written as the blocks arrive, and read as a whole
when its leaves are solved.
"""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import numpy as np

from lssvm._core.arrays import AnyArray, FloatArray, IntArray
from lssvm._core.errors import ScratchError
from lssvm.local.leaf import Rows

_PREFIX = "lssvm-leaves-"
_BUNDLES = 128  # files that are open for writing

Placed: TypeAlias = list[tuple[int, AnyArray]]
"""Rows of a block by the bundle of their leaf."""


@dataclass(frozen=True, eq=False)
class LeafRows:
    """The rows of one leaf and their positions in the data.

    Attributes
    ----------
    leaf : int
    rows : Rows
    positions : array of shape (n,)
    """

    leaf: int
    rows: Rows
    positions: IntArray


class LeafStore:
    """Rows that are assigned to the leaves of a tree.

    Parameters
    ----------
    n_leaves : int
        How many leaves there are.
    n_features, n_targets : int
        Columns of the rows.
    n_rows : int
        How many rows will come.
    scratch : bool
        Whether rows go to files of a scratch folder instead of memory.

    Notes
    -----
    Inputs are kept in float32: half the memory, and the seventh digit of a standardised input means
    nothing about its target. A row takes 4 d + 8 k + 20 bytes.

    A scratch folder lies where temporary files go (the environment's ``TMPDIR``), is readable by
    its owner only, and is removed when the store is closed; folders of processes that were killed
    are removed by the next one.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import LeafStore
    >>> with LeafStore(2, 1, 1, n_rows=3, scratch=True) as store:
    ...     leaf, X = np.array([1, 0, 1]), np.array([[1.0], [2.0], [3.0]])
    ...     store.add(store.placed(leaf, X, np.ones((3, 1)), np.ones(3), start=0))
    ...     [(some.leaf, some.rows.X.ravel().tolist()) for some in store.leaves()]
    [(0, [2.0]), (1, [1.0, 3.0])]
    """

    def __init__(
        self, n_leaves: int, n_features: int, n_targets: int, *, n_rows: int, scratch: bool
    ) -> None:
        self._type = np.dtype(
            [
                ("leaf", np.int32),
                ("position", np.int64),
                ("weight", np.float64),
                ("Y", np.float64, (n_targets,)),
                ("X", np.float32, (n_features,)),
            ]
        )
        self._per_bundle = -(-n_leaves // min(n_leaves, _BUNDLES))
        n_bundles = -(-n_leaves // self._per_bundle)
        self._blocks: list[list[AnyArray]] = [[] for _ in range(n_bundles)]
        self._folder: Path | None = None
        self._files: list[Any] = []
        if scratch:
            remove_leftovers()
            self._folder = _make_folder(n_rows * self._type.itemsize)
            paths = (self._folder / f"{i}.rows" for i in range(n_bundles))
            self._files = [path.open("wb", buffering=2**18) for path in paths]

    def placed(
        self, leaf: IntArray, X: FloatArray, Y: FloatArray, weight: FloatArray, *, start: int
    ) -> Placed:
        """Return a block of rows as `add` takes them; several threads may do this.

        Parameters
        ----------
        leaf : array of shape (n,)
            Number of the leaf of every row.
        X : array of shape (n, d)
            Inputs.
        Y : array of shape (n, k)
            Targets.
        weight : array of shape (n,)
            Rows of weight 0 are left out.
        start : int
            Position of the first row.
        """
        used = np.flatnonzero(weight > 0)
        order = used[np.argsort(leaf[used] // self._per_bundle, kind="stable")]
        block = np.empty(len(order), dtype=self._type)
        block["leaf"], block["position"] = leaf[order], np.int64(start) + order
        block["weight"], block["Y"], block["X"] = weight[order], Y[order], X[order]
        bundle = block["leaf"] // self._per_bundle
        begin = np.searchsorted(bundle, np.arange(len(self._blocks) + 1))
        return [(int(i), block[begin[i] : begin[i + 1]]) for i in np.unique(bundle)]

    def add(self, rows: Placed) -> None:
        """Take rows that `placed` returned, in the order of the data."""
        for bundle, block in rows:
            self._write(bundle, block)

    def _write(self, bundle: int, block: AnyArray) -> None:
        if self._folder is None:
            self._blocks[bundle].append(block)
            return
        try:
            self._files[bundle].write(block.tobytes())
        except OSError as error:
            raise ScratchError(
                f"The scratch folder {self._folder} cannot take more rows ({error.strerror}): free "
                "some space there, or set TMPDIR to a folder with more."
            ) from error

    def leaves(
        self, *, only: IntArray | None = None, but: Collection[int] = ()
    ) -> Iterator[LeafRows]:
        """Yield the leaves that have rows, in order.

        Parameters
        ----------
        only : int array, optional
            The leaves that are wanted, where all stay here; otherwise rows are given up once they
            were read.
        but : collection of int, default=()
            Leaves that are not wanted.
        """
        for file in self._files:
            try:
                file.close()
            except OSError as error:
                raise ScratchError(
                    f"The scratch folder {self._folder} is full ({error.strerror}): free some "
                    "space there, or set TMPDIR to a folder with more."
                ) from error
        bundles = range(len(self._blocks)) if only is None else np.unique(only // self._per_bundle)
        for i in bundles:
            rows = self._read(int(i), keep=only is not None)
            if only is not None:
                rows = rows[np.isin(rows["leaf"], only)]
            order = np.argsort(rows["leaf"], kind="stable")
            leaf, position = rows["leaf"][order], rows["position"][order].astype(np.intp)
            X, Y, weight = rows["X"][order], rows["Y"][order], rows["weight"][order]
            del rows
            ends = [*np.flatnonzero(np.diff(leaf) != 0) + 1, len(leaf)]
            for begin, end in itertools.pairwise([0, *ends]):
                if end > begin and int(leaf[begin]) not in but:
                    at = slice(begin, end)
                    some = Rows(X[at], Y[at], weight[at])
                    yield LeafRows(int(leaf[begin]), some, position[at])

    def _read(self, bundle: int, keep: bool) -> AnyArray:
        if self._folder is None:
            blocks, empty = self._blocks[bundle], np.empty(0, dtype=self._type)
            rows = np.concatenate(blocks) if len(blocks) > 1 else (*blocks, empty)[0]
            self._blocks[bundle] = [rows] if keep else []
            return rows
        path = self._folder / f"{bundle}.rows"
        rows = np.fromfile(path, dtype=self._type)
        if not keep:
            path.unlink()
        return rows

    def close(self) -> None:
        """Give up memory and files."""
        self._blocks = []
        for file in self._files:
            try:
                file.close()
            except OSError:  # what could not be written is not needed any more
                pass
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> LeafStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _make_folder(size: int) -> Path:
    """Make a scratch folder, after looking whether there is room for so many bytes."""
    root = Path(tempfile.gettempdir())
    free = shutil.disk_usage(root).free
    if size > 0.95 * free:
        raise ScratchError(
            f"The rows need {size / 1e9:.1f} GB of scratch space and {root} has {free / 1e9:.1f} "
            "GB: free some, or set TMPDIR to a folder with more."
        )
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=root))


def remove_leftovers() -> None:
    """Remove the scratch folders of this user's processes that are no more.

    Examples
    --------
    >>> from lssvm.local.store import remove_leftovers
    >>> remove_leftovers()
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        number = folder.name.removeprefix(_PREFIX).split("-")[0]
        if not number.isdigit() or folder.is_symlink() or not folder.is_dir():
            continue
        ours = not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
        if ours and not _alive(int(number)):
            shutil.rmtree(folder, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        with suppress(PermissionError, OverflowError):  # another user's, or no such number
            if sys.platform != "win32":  # where signal 0 is Ctrl-C
                os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
