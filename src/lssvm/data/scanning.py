"""`scan`: a data set in files or memory, read block by block.

First what reads the files, arrays or Dask collections that `scan` is given, and a part of their
rows that is held out (or left) without a list of them; then `Scan` itself.
"""

from __future__ import annotations

import glob as globbing
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NoReturn

import numpy as np

from lssvm._core.arrays import AnyArray, BoolArray, IntArray, is_dask
from lssvm._core.blocks import run_stream, slices
from lssvm._core.errors import InvalidInputError, not_known, not_usable
from lssvm._core.random import hash_positions
from lssvm.data.arrow import FORMATS, ArrowReader
from lssvm.data.cluster import check_client
from lssvm.data.csv_files import CsvOptions
from lssvm.data.dask import DaskReader, files_reader, frame_reader
from lssvm.data.dask import array_reader as dask_array_reader
from lssvm.data.folds import PositionFolds, PositionHoldout
from lssvm.data.plain import (
    ArrayReader,
    FileStamps,
    FrameReader,
    LibsvmReader,
    SourceReader,
    Watch,
    changed_file,
    is_frame,
)
from lssvm.data.raw import (
    RawBlock,
    Reader,
    Schema,
    check_features,
    chunk_rows,
    is_source,
    rechunk,
)
from lssvm.data.sampling import Sample, Sampler

_LIBSVM = (".svm", ".libsvm", ".svmlight")
_ARRAY = (".npy",)
_KNOWN = (*FORMATS, *_LIBSVM, *_ARRAY)


def dask_reader(
    data: Any, target: Any, columns: Sequence[Any] | None, weight: Any, client: Any
) -> DaskReader:
    """Return the reader of a Dask array or data frame, from the arguments of `scan`."""
    if hasattr(data, "_meta") and hasattr(data, "columns"):
        y, w = (option if is_dask(option) else None for option in (target, weight))
        names = () if y is not None else _names(target)
        weight_name = None if w is not None else _one(weight)
        return frame_reader(
            data, y, w, client, roles(names, weight_name, columns)[2], names, weight_name
        )
    taken: list[int] = []

    def column(option: Any) -> Any:
        if not isinstance(option, (int, np.integer)) or isinstance(option, bool):
            return option
        if not -data.shape[1] <= option < data.shape[1]:
            raise InvalidInputError(
                f"There is no column {option}: the array has {data.shape[1]}, counted from 0."
            )
        taken.append(int(option) % data.shape[1])
        return data[:, int(option)]

    y, w = column(target), column(weight)
    used = [j for j in range(data.shape[1]) if j not in taken] if columns is None else columns
    whole = len(used) == data.shape[1]
    return dask_array_reader(data if whole else data[:, list(used)], y, w, client)


def refuse(what: str, **options: Any) -> None:
    """Raise for a role that the data itself gives."""
    for name, value in options.items():
        if value is not None:
            raise InvalidInputError(f"{what} has its own {name}: do not give {name}=.")


def _names(target: Any) -> tuple[str, ...]:
    if target is None:
        return ()
    names = [target] if isinstance(target, str) else target
    if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
        raise InvalidInputError(f"target={target!r} is not usable here: give the name of a column.")
    return tuple(names)


def _one(weight: Any) -> str | None:
    if weight is None or isinstance(weight, str):
        return weight
    raise InvalidInputError(f"weight={weight!r} is not usable here: give the name of a column.")


def roles(
    target: Any, weight: Any, columns: Sequence[Any] | None
) -> tuple[tuple[str, ...], str | None, tuple[str, ...] | None]:
    """Return the names of target, weight and features, each of them in one role."""
    names = _names(target), _one(weight), _columns(columns)
    every = [*names[0], *([] if names[1] is None else [names[1]]), *(names[2] or ())]
    twice = sorted({name for name in every if every.count(name) > 1})
    if twice:
        raise InvalidInputError(
            f"The columns {twice} are named more than once: a column is a feature, the target or "
            "the weight. Name it once in columns=, target= and weight=."
        )
    return names


def _columns(columns: Sequence[Any] | None) -> tuple[str, ...] | None:
    if columns is None:
        return None
    if isinstance(columns, str) or len(columns) == 0:
        raise InvalidInputError(f"columns={columns!r} is not usable: give a list of columns.")
    return tuple(str(column) for column in columns)


def find_files(data: Any) -> list[str]:
    """Return the files that a path, a folder, a pattern or a list of these stands for."""
    if isinstance(data, (list, tuple)):
        files = [file for entry in data for file in find_files(entry)]
        if not files:
            raise InvalidInputError("The list of files to scan is empty.")
        return files
    path = os.fspath(data)
    if os.path.isdir(path):
        inside = globbing.glob(os.path.join(globbing.escape(path), "**", "*"), recursive=True)
        named = [f for f in inside if not os.path.basename(f).startswith(("_", "."))]
        files = sorted(f for f in named if os.path.isfile(f) and ending(f) in _KNOWN)
    elif os.path.exists(path):
        files = [path]
    else:
        files = sorted(f for f in globbing.glob(path, recursive=True) if os.path.isfile(f))
    if not files:
        raise InvalidInputError(
            f"No file matches {path!r}: give a file, a folder that holds files ending in one of "
            f"{', '.join(_KNOWN)}, or a pattern such as 'folder/*.parquet'."
        )
    return files


def ending(file: str) -> str:
    """Return the ending of a file's name, without that of a compression."""
    return os.path.splitext(file.removesuffix(".gz"))[1].lower()


def file_reader(
    data: Any, target: Any, columns: Sequence[Any] | None, weight: Any, csv: CsvOptions
) -> tuple[Any, bool]:
    """Return the reader of some files, and whether it gives targets."""
    files = find_files(data)
    endings = {ending(file) for file in files}
    if len(endings) > 1 or not endings <= set(_KNOWN):
        raise InvalidInputError(
            f"The files end in {sorted(endings)}: give files of one kind, ending in one of "
            f"{', '.join(_KNOWN)}."
        )
    for file in files:
        if os.path.getsize(file) == 0:
            raise InvalidInputError(f"{file} is empty: it has no bytes. Remove it.")
    (kind,) = endings
    if kind in FORMATS:
        arrow = ArrowReader(files, FORMATS[kind], *roles(target, weight, columns), csv)
        _ = arrow.schema  # a wrong name is found at once
        return arrow, target is not None
    if kind in _LIBSVM:
        refuse("LIBSVM text", target=target, weight=weight)
        return LibsvmReader(files, _columns(columns)), True
    if len(files) > 1:
        raise InvalidInputError(f"{len(files)} .npy files were given: give one array of all rows.")
    X = _map(files[0])
    return array_reader(X, target, columns, weight, files[0], (X,)), target is not None


def _map(file: Any) -> AnyArray:
    try:
        array: AnyArray = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInputError(
            f"{file} cannot be mapped as a NumPy array: {error}. Save it with numpy.save."
        ) from error
    return array


def array_reader(
    X: AnyArray,
    target: Any,
    columns: Sequence[Any] | None,
    weight: Any,
    where: str,
    mapped: tuple[AnyArray, ...] = (),
) -> ArrayReader:
    """Return the reader of an array, from the arguments of `scan`."""
    if X.ndim != 2 or X.dtype.kind not in "biuf" or X.shape[1] == 0:
        raise InvalidInputError(
            f"{where} has shape {X.shape} and type {X.dtype}: an array of numbers, one row per "
            "sample, is needed."
        )
    taken, files = [], list(mapped)

    def column(option: Any, what: str) -> AnyArray | None:
        if option is None:
            return None
        if isinstance(option, (int, np.integer)) and not isinstance(option, bool):
            if not -X.shape[1] <= option < X.shape[1]:
                raise InvalidInputError(
                    f"{what}={option} but {where} has {X.shape[1]} columns, numbered from 0."
                )
            taken.append(int(option) % X.shape[1])
            return np.asarray(X[:, option])
        if isinstance(option, (str, os.PathLike)):
            values = _map(option)
            files.append(values)
        else:
            values = np.asanyarray(option)
        if values.ndim not in (1, 2) or len(values) != len(X):
            raise InvalidInputError(
                f"{what} has shape {values.shape} but {where} has {len(X)} rows: one per row."
            )
        return values

    y, w = column(target, "target"), column(weight, "weight")
    used = [j for j in range(X.shape[1]) if j not in taken] if columns is None else list(columns)
    if not used or not all(isinstance(j, (int, np.integer)) and 0 <= j < X.shape[1] for j in used):
        raise not_usable("columns", columns, f"{where} has columns 0 to {X.shape[1] - 1}.")
    names = tuple(f"x{j}" for j in used)
    plain = used == list(range(X.shape[1]))
    bases: list[Any] = [file.base for file in files]
    maps = [m for m in bases if isinstance(m, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED")]
    stamps = FileStamps.of(file.filename for file in files) if files else None  # type: ignore[attr-defined]
    return ArrayReader(X, y, w, names, None if plain else used, where, tuple(maps), stamps)


_SALT = 0x3C6EF372  # the parts must not follow the folds, which are hashed with the seed
_COUNT_ROWS = 2**20


@dataclass(frozen=True, eq=False)
class SplitReader(Reader):
    """Rows of another reader, by a list of them or a seeded hash of their position.

    Parameters
    ----------
    reader : Reader
    share : float
        Of the rows that are held out, between 0 and 1.
    seed : int
    held_out : bool
        Whether the rows are those held out, or the others.
    rows : bool array of shape (n,) or None, default=None
        Which rows are held out, in place of the hash.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import scan
    >>> rest, held_out = scan(np.arange(6.0)[:, None]).split(0.5)
    >>> [len(block) for block in held_out.blocks()]
    [3]
    """

    reader: Reader
    share: float
    seed: int
    held_out: bool
    rows: BoolArray | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.share < 1.0:
            raise InvalidInputError(
                f"A held-out share of {self.share!r} is not usable: give a number between 0 and 1."
            )

    @property
    def schema(self) -> Schema:
        """Columns of features."""
        return self.reader.schema

    def choose(self, names: tuple[str, ...], kinds: Mapping[str, str]) -> SplitReader:
        """Return a reader of some columns."""
        return replace(self, reader=self.reader.choose(names, kinds))

    def count(self) -> int:
        """Return the number of rows in this part."""
        parts = slices(self.reader.count(), _COUNT_ROWS)
        return int(sum(self._in_part(np.arange(p.start, p.stop)).sum() for p in parts))

    def blocks(self, batch_rows: int) -> Iterator[RawBlock]:
        """Yield the rows of this part in order."""
        part = "the held-out part" if self.held_out else "the part that is not held out"
        start = 0
        for block in self.reader.blocks(batch_rows):
            positions = np.arange(block.start, block.start + len(block))
            rows = np.flatnonzero(self._in_part(positions))
            if len(rows):
                yield replace(block.take(rows), start=start, places=((0, part, start),))
                start += len(rows)

    def _in_part(self, positions: IntArray) -> BoolArray:
        limit = np.uint64(int(self.share * 2.0**53) << 11)
        held_out: BoolArray = (
            hash_positions(positions, self.seed + _SALT) < limit
            if self.rows is None
            else self.rows[positions]
        )
        return held_out if self.held_out else ~held_out


@dataclass(frozen=True, eq=False)
class JoinedReader(Reader):
    """The rows of one reader, then those of another with the same columns."""

    first: Reader
    second: Reader

    @property
    def schema(self) -> Schema:
        """Columns of features."""
        return self.first.schema

    def choose(self, names: tuple[str, ...], kinds: Mapping[str, str]) -> JoinedReader:
        """Return a reader of some columns."""
        return JoinedReader(self.first.choose(names, kinds), self.second.choose(names, kinds))

    def count(self) -> int:
        """Return the number of rows of both."""
        return self.first.count() + self.second.count()

    def blocks(self, batch_rows: int) -> Iterator[RawBlock]:
        """Yield the rows of both in order."""
        yield from self.first.blocks(batch_rows)
        start = self.first.count()
        for block in self.second.blocks(batch_rows):
            yield replace(block, start=start + block.start)


_BATCH = 65_536  # rows read at once
_BATCH_NUMBERS = 2**22  # but no more numbers than these


@dataclass(frozen=True, eq=False, repr=False)
class Scan:
    """A data set that is read in blocks; made by `scan`.

    Attributes
    ----------
    reader : Reader
        Where the rows come from.
    has_target : bool
        Whether rows come with targets.
    missing : {"fill", "refuse"}
        Whether models fill missing values, or these are an error when they are read.
    prepare : bool
        Whether models learn from the rows how to prepare the columns, or use numbers unchanged.
    batch_rows : int or None
        Rows read at once; None: by the number of columns.
    watch : Watch or None
        What was seen of the files in the first of several passes.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import scan
    >>> data = scan(np.arange(6.0).reshape(3, 2), target=np.array([0, 1, 1]))
    >>> data.n_rows, data.feature_names, [block.target.tolist() for block in data.blocks()]
    (3, ('x0', 'x1'), [[0, 1, 1]])
    """

    reader: Reader
    has_target: bool
    missing: str = "fill"
    prepare: bool = True
    batch_rows: int | None = None
    watch: Watch | None = None

    def __repr__(self) -> str:
        target = "with" if self.has_target else "without"
        detected = f"; {self.detected}" if self.detected else ""
        return f"<Scan of {len(self.schema.names)} columns, {target} a target{detected}>"

    @property
    def detected(self) -> str:
        """How files are read, where that is not as one would expect: encoding, delimiter, ..."""
        return str(getattr(self.reader, "description", ""))

    @cached_property
    def n_rows(self) -> int:
        """Rows there are; counted once, at the first use."""
        return self.reader.count()

    @property
    def schema(self) -> Schema:
        """Columns of features and what they hold."""
        return self.reader.schema

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of features."""
        return self.schema.names

    @property
    def named(self) -> bool:
        """Whether the columns have names of their own, by which they are found again."""
        return self.schema.named

    @property
    def distributed(self) -> bool:
        """Whether the rows lie in parts that Dask passes over."""
        return self.reader.distributed

    @property
    def client(self) -> Any:
        """The client of Dask that was given; None: there is none, or Dask's own choice."""
        return getattr(self.reader, "client", None)

    @property
    def native(self) -> None:
        """Nothing: the rows are no array."""
        return

    def in_memory(self, who: str) -> NoReturn:
        """Refuse: not all rows are in memory.

        Parameters
        ----------
        who : str
            The estimator that needs them.
        """
        raise InvalidInputError(
            f"{who} takes arrays, as it needs all rows at once, but X is a scan, which is read in "
            "blocks: use FixedSizeLSSVC or FixedSizeLSSVR, which read scans, or give arrays X and "
            "y."
        )

    def checked(self, check: Callable[[Any], Any]) -> Scan:
        """Return the scan: its rows are checked when they are read.

        Parameters
        ----------
        check : callable
            Of arrays in memory.
        """
        return self

    def read(self) -> RawBlock:
        """Return all rows."""
        return RawBlock.join(list(self.blocks()))

    def on_host(self) -> tuple[Any, Any, Any]:
        """Return all rows as a table, with targets and weights."""
        rows = self.read()
        return rows.table, rows.target, rows.weight

    def map(self, work: Callable[[RawBlock, int], Any], threads: int) -> Iterator[Any]:
        """Yield what ``work`` returns for every block, on all threads.

        Parameters
        ----------
        work : callable
            From a block and the threads that it may use to a result.
        threads : int
            Blocks that are worked on at a time.
        """
        return run_stream(partial(_single, work), self.blocks(), threads)

    def like(self, result: Any) -> Any:
        """Return numbers as they are: rows that are read in blocks are of no library.

        Parameters
        ----------
        result : array
            Of NumPy.
        """
        return result

    def with_validation(self, cv: Any) -> tuple[Scan, Any]:
        """Return the rows with those of validation, and folds by position.

        Parameters
        ----------
        cv : Scan, str or other
            Another scan is joined and held out; a column of fold numbers is left out of the
            features. What else there is stays as it is.
        """
        if isinstance(cv, Scan):
            held_out = PositionHoldout(rows=(self.n_rows, self.n_rows + cv.n_rows))
            return self.joined(cv), held_out
        if not isinstance(cv, str) or cv == "loo":
            return self, cv
        if cv not in self.feature_names:
            raise InvalidInputError(
                f"cv={cv!r} is not a column: the scan has {', '.join(self.feature_names[:8])}, ..."
            )
        column = replace(self, reader=self.reader.choose((cv,), {}), has_target=False)
        numbers = np.concatenate([block.features(None)[:, 0] for block in column.blocks()])
        if np.any(numbers != np.round(numbers)) or numbers.max() < 0:
            raise InvalidInputError(
                f"cv={cv!r} is not a column of folds: give whole numbers from 0 on, -1 for rows "
                "that are always trained on."
            )
        rest = tuple(name for name in self.feature_names if name != cv)
        folds = PositionFolds(int(numbers.max()) + 1, numbers=numbers.astype(np.intp))
        return replace(self, reader=self.reader.choose(rest, {})), folds

    def reduce(self, work: Callable[[Scan], Any], combine: Callable[[Any, Any], Any]) -> Any:
        """Apply ``work`` to all rows: to this scan, or to one of every part where Dask has it.

        Parameters
        ----------
        work : callable
            From a scan to a result; for rows on a cluster it is sent there.
        combine : callable
            From two results to one, neither of which may be changed.
        """
        self._check_files()
        result = self.reader.reduce(self, work, combine)
        self._check_files()
        return result

    def sample(self, size: int, *, seed: int = 0, classes: bool = False) -> Sample:
        """Draw rows uniformly in one pass, which also counts rows and classes.

        Parameters
        ----------
        size : int
            Rows of the sample.
        seed : int, default=0
            Another seed draws other rows.
        classes : bool, default=False
            Whether the target holds class labels, of which the sample then has at least 20 rows
            each.

        Returns
        -------
        Sample

        Examples
        --------
        >>> import numpy as np
        >>> from lssvm import scan
        >>> data = scan(np.arange(20.0)[:, None], target=np.arange(20) % 2)
        >>> drawn = data.sample(5, classes=True)
        >>> drawn.n_rows, drawn.counts, len(drawn.block)
        (20, array([10., 10.]), 20)
        """
        work = partial(_drawn, size=size, seed=seed, classes=classes)
        drawn: Sampler = self.reduce(work, Sampler.merged)
        return drawn.sample()

    def stream(self, work: Callable[[Scan], Any]) -> Iterator[Any]:
        """Yield what ``work`` returns for this scan, or for one of every part, in order.

        Parameters
        ----------
        work : callable
            From a scan to anything; where rows are on a cluster it is run there.
        """
        self._check_files()
        yield from self.reader.stream(self, work)
        self._check_files()

    def collect(self, work: Callable[[Scan], Any], empty: AnyArray, name: str) -> Any:
        """Return the array that ``work`` returns for the rows, lazy where Dask has them.

        Parameters
        ----------
        work : callable
            From a scan to an array of its rows.
        empty : array of shape (0, ...)
            What ``work`` returns for no rows.
        name : str
            Of the series, where the rows are a Dask data frame.
        """
        return self.reader.collect(self, work, empty, name)

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that are read, where there are some."""
        reader: Any = self.reader.reader if isinstance(self.reader, SplitReader) else self.reader
        if getattr(reader, "distributed", False):
            reader = getattr(reader.opener, "reader", None)
        return tuple(getattr(reader, "files", ()))

    def watched(self) -> Scan:
        """Return this scan for several passes, which must all see the same rows.

        Each pass then compares sizes and times of the files, rows and a checksum of the targets
        with those of the first one, and raises an error that names a file that changed.
        """
        return replace(self, watch=Watch.over(self.files)) if self.files else self

    def _check_files(self) -> None:
        """Raise where a file changed; of rows on a cluster this is all that is watched."""
        if self.watch is not None:
            self.watch.stamps.check()

    def resources(self, budget: int, threads: int) -> tuple[int, int]:
        """Return memory in bytes and threads for a pass over one part, given those of a model.

        Parameters
        ----------
        budget : int
            Bytes of memory that a model may use.
        threads : int
            Threads that it may use.
        """
        return self.reader.resources(budget, threads)

    def joined(self, other: Scan) -> Scan:
        """Return the rows of this scan, then those of another one with the same columns.

        Parameters
        ----------
        other : Scan
            Rows of the same columns, on this machine.
        """
        if self.distributed or other.distributed:
            raise InvalidInputError(
                "Rows on a cluster cannot be joined with others: give the validation rows as a "
                "range of rows, cv=range(start, stop)."
            )
        if self.named:
            kinds = dict(zip(self.schema.names, self.schema.kinds, strict=True))
            other = replace(other, reader=other.reader.choose(self.schema.names, kinds))
        elif len(other.schema.names) != len(self.schema.names):
            raise InvalidInputError(
                f"The scans have {len(self.schema.names)} and {len(other.schema.names)} columns: "
                "give validation rows with the columns of the training rows."
            )
        return replace(self, reader=JoinedReader(self.reader, other.reader))

    def split(
        self, share: float, *, seed: int = 0, rows: BoolArray | None = None
    ) -> tuple[Scan, Scan]:
        """Return two scans: most rows, and a share of them that is held out.

        Parameters
        ----------
        share : float
            Of the rows in the second scan, between 0 and 1.
        seed : int, default=0
            Another seed holds out other rows.
        rows : bool array of shape (n_rows,) or None, default=None
            Which rows are held out; None: by the hash.

        Returns
        -------
        rest, held_out : Scan

        Notes
        -----
        A row goes where a seeded hash of its position sends it: nothing is stored, and the split is
        the same however the files are cut. The share is met up to chance.

        Examples
        --------
        >>> import numpy as np
        >>> from lssvm import scan
        >>> rest, held_out = scan(np.arange(200.0).reshape(100, 2)).split(0.2)
        >>> rest.n_rows + held_out.n_rows, held_out.n_rows
        (100, 16)
        """
        self.reader.check_split()
        rest, held_out = (
            replace(self, reader=SplitReader(self.reader, float(share), seed, is_held_out, rows))
            for is_held_out in (False, True)
        )
        return rest, held_out

    def select(
        self, names: tuple[str, ...] | None, n_columns: int, kinds: Mapping[str, str]
    ) -> Scan:
        """Return a scan of the columns that a model knows.

        Parameters
        ----------
        names : tuple of str or None
            Where columns have names; None: they are counted.
        n_columns : int
            How many columns the model knows.
        kinds : mapping from names to what a `Schema` calls it
            What columns are to hold, where the files leave that open (CSV).
        """
        if names is not None and self.named:
            return replace(self, reader=self.reader.choose(names, kinds))
        if len(self.schema.names) != n_columns:
            raise InvalidInputError(
                f"The data set has {len(self.schema.names)} columns of features, but the model was "
                f"fitted with {n_columns}: name them with columns=."
            )
        return self

    def blocks(self) -> Iterator[RawBlock]:
        """Yield all rows in order, in blocks of 8,192 rows (the last one may be shorter).

        Rows of more than 256 columns come in smaller blocks. The blocks are the same whatever
        ``batch_rows`` and the sizes of the files are.
        """
        columns = len(self.schema.names)
        rows = self.batch_rows or max(1024, min(_BATCH, _BATCH_NUMBERS // columns))
        watch = self.watch or Watch.over(self.files)
        n = 0
        for block in rechunk(watch.over_blocks(self.reader.blocks(rows)), chunk_rows(columns)):
            n += len(block)
            check_features(block, self.missing)
            yield block
        if n == 0:
            raise InvalidInputError("There are no rows to read: the data set is empty.")
        counted = self.__dict__.get("n_rows", n)
        if self.files and counted != n:
            raise changed_file(
                ", ".join(self.files[:5]), f"{counted:,} rows were counted, {n:,} read"
            )


def _single(work: Callable[[RawBlock, int], Any], block: RawBlock) -> Any:
    return work(block, 1)


def _drawn(part: Scan, **options: Any) -> Sampler:
    return Sampler(**options).add(part.blocks())


def scan(
    data: Any,
    target: Any = None,
    *,
    columns: Sequence[Any] | None = None,
    batch_rows: int | None = None,
    weight: Any = None,
    missing: str = "fill",
    prepare: bool = True,
    client: Any = None,
    csv: CsvOptions | None = None,
) -> Scan:
    r"""Describe a data set that models read in blocks; it need not fit in memory.

    Only the names of the columns are read until a model uses the data.

    Parameters
    ----------
    data : str, path, list of paths, array, data frame, Arrow table, Dask collection or RowSource
        A file, a folder of files, or a pattern such as ``"flights/*.parquet"``; files are read in
        the order of their names. By their endings: Parquet (.parquet, .pq), Arrow and Feather
        (.arrow, .feather, .ipc), CSV with a header line (.csv, .tsv, .txt), LIBSVM text (.svm,
        .libsvm, .svmlight), NumPy (.npy, mapped into memory); read as a whole are the first sheet
        of workbooks (.xlsx, .xls, .xlsb, .ods) and JSON lines (.jsonl, .ndjson). Arrays and memory
        maps of shape (n, d), data frames and Arrow tables, and objects with ``n_rows``,
        ``n_targets`` and ``read(slice)`` (`RowSource`) are read where they are. Dask arrays and
        data frames are passed over where their partitions are.
    target : str, list of str, int, array or path, optional
        The column to predict, or several for a regression with several outputs. For an array: the
        number of a column, an array of shape (n,) or (n, k), or a .npy file of one. LIBSVM text and
        a RowSource hold their own. None for rows that are only to be predicted.
    columns : list, optional
        Columns of features (numbers of columns for arrays, indices for LIBSVM text); only these are
        read. None: all others.
    batch_rows : int, optional
        Rows read at once; by default 65,536, fewer where rows are long. No result depends on it.
    weight : str, int or array, optional
        Column of sample weights, given as the target is. Not for LIBSVM text.
    missing : {"fill", "refuse"}, default="fill"
        What to do with missing values in features: fill and mark them, as
        `lssvm.preparation.TablePreparation` does, or an error that names file, row and column.
    prepare : bool, default=True
        Whether `lssvm.FixedSizeLSSVC` and `lssvm.FixedSizeLSSVR` prepare the columns as
        `lssvm.preparation.TablePreparation` does, by what a sample of 50,000 rows shows, or take
        numbers as they are; text and missing values are errors then. The models for tables always
        prepare.
    client : dask.distributed.Client, optional
        The workers of this client read the files, which they need to see under the same names, and
        compute; each file is read by one of them. For Dask arrays and data frames: the client to
        use instead of Dask's own choice.
    csv : CsvOptions, optional
        How CSV files are read: encoding, delimiter, decimal sign, texts that mean "missing", types
        of columns. What is not given is detected; the attribute ``detected`` of the result
        describes it.

    Returns
    -------
    Scan
        For ``fit``, ``predict``, ``score`` and ``partial_fit`` of `lssvm.FixedSizeLSSVC` and
        `lssvm.FixedSizeLSSVR`.

    Examples
    --------
    >>> import os, tempfile
    >>> from lssvm import FixedSizeLSSVC, scan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "small.svm")
    ...     with open(name, "w") as file:
    ...         _ = file.writelines(f"{i % 2} 1:{i % 2 + i / 99} 2:{i % 7}\n" for i in range(60))
    ...     data = scan(name)
    ...     model = FixedSizeLSSVC(10, C=10.0, gamma=0.5).fit(data)
    ...     data.n_rows, model.predict(data).shape
    (60, (60,))
    """
    if batch_rows is not None and (not isinstance(batch_rows, (int, np.integer)) or batch_rows < 1):
        raise not_usable("batch_rows", batch_rows, "give a positive int.")
    if missing not in ("fill", "refuse"):
        raise not_known("missing", missing, "'fill' or 'refuse'.")
    if not isinstance(prepare, (bool, np.bool_)):
        raise not_usable("prepare", prepare, "give True or False.")
    rows = None if batch_rows is None else int(batch_rows)
    has_target = target is not None
    reader: Reader
    if client is not None:
        check_client(client)
    if isinstance(data, (str, os.PathLike, list, tuple)):
        reader, has_target = file_reader(data, target, columns, weight, csv or CsvOptions())
        reader = reader if client is None else files_reader(reader, client)
    elif is_dask(data):
        reader = dask_reader(data, target, columns, weight, client)
    elif client is not None:
        raise InvalidInputError(
            f"client= is for files and Dask collections, not for {type(data).__name__}: turn the "
            "data into a Dask array (dask.array.from_array)."
        )
    elif is_source(data):
        refuse("A RowSource", target=target, columns=columns, weight=weight)
        reader, has_target, prepare = SourceReader(data), data.n_targets > 0, False
    elif is_frame(data):
        reader = FrameReader(data, *roles(target, weight, columns))
    else:
        reader = array_reader(np.asanyarray(data), target, columns, weight, "the array")
    return Scan(reader, has_target, missing, bool(prepare), rows)
