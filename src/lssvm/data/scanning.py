"""`scan`: a data set in files or memory, read block by block."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.errors import InvalidInputError
from lssvm.data.cluster import check_client
from lssvm.data.csv_files import CsvOptions
from lssvm.data.dask import array_reader as dask_array_reader
from lssvm.data.dask import files_reader, frame_reader, is_dask
from lssvm.data.frames import FrameReader, is_frame
from lssvm.data.opening import array_reader, dask_reader, file_reader, refuse, roles
from lssvm.data.plain import SourceReader
from lssvm.data.raw import RawBlock, Reader, Schema, chunk_rows, rechunk
from lssvm.data.splitting import SplitReader
from lssvm.data.watching import Watch, changed_file

_BATCH = 65_536  # rows read at once
_BATCH_NUMBERS = 2**22  # but no more numbers than these


@dataclass(frozen=True, eq=False, repr=False)
class Scan:
    """A data set that is read in blocks, as often as somebody passes over it; made by `scan`.

    Attributes
    ----------
    reader : Reader
        Where the rows come from.
    has_target : bool
        Whether rows come with targets.
    standardise : bool
        Whether a model brings numbers to mean 0 and variance 1.
    missing : {"refuse", "impute"}
        Whether missing values are an error, or are filled in.
    max_categories : int
        Most different strings of a column of text.
    prepare : bool
        Whether a model learns a `Preparation` from the rows, or takes their numbers as they are.
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
    standardise: bool = True
    missing: str = "refuse"
    max_categories: int = 64
    prepare: bool = True
    batch_rows: int | None = None
    watch: Watch | None = None

    def __repr__(self) -> str:
        target = "with" if self.has_target else "without"
        told = f"; {self.told}" if self.told else ""
        return f"<Scan of {len(self.schema.names)} columns, {target} a target{told}>"

    @property
    def told(self) -> str:
        """How files are read, where that is not as one would expect: encoding, delimiter, ..."""
        return str(getattr(self.reader, "told", ""))

    @cached_property
    def n_rows(self) -> int:
        """Rows there are; counted once, when first asked for."""
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
        return self.reader.named

    @property
    def distributed(self) -> bool:
        """Whether the rows lie in parts that Dask passes over."""
        return self.reader.distributed

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
        found = self.reader.reduce(self, work, combine)
        self._check_files()
        return found

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

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that are read, where there are some."""
        reader: Any = self.reader
        reader = reader.reader if isinstance(reader, SplitReader) else reader
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

    def split(
        self, share: float, *, seed: int = 0, rows: NDArray[np.bool_] | None = None
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
            replace(self, reader=SplitReader(self.reader, float(share), seed, held, rows))
            for held in (False, True)
        )
        return rest, held_out

    def select(
        self, names: tuple[str, ...] | None, n_columns: int, kinds: tuple[str, ...] | None = None
    ) -> Scan:
        """Return a scan of the columns that a model knows.

        Parameters
        ----------
        names : tuple of str or None
            Where columns have names; None: they are counted.
        n_columns : int
            How many columns the model knows.
        kinds : tuple of {"number", "text"} or None
            What the columns are to hold, where the files leave that open (CSV).
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
            yield block
        if n == 0:
            raise InvalidInputError("There are no rows to read: the data set is empty.")
        counted = self.__dict__.get("n_rows", n)
        if self.files and counted != n:
            raise changed_file(
                ", ".join(self.files[:5]), f"{counted:,} rows were counted, {n:,} read"
            )


def scan(
    data: Any,
    target: Any = None,
    *,
    columns: Sequence[Any] | None = None,
    batch_rows: int | None = None,
    weight: Any = None,
    standardise: bool = True,
    missing: str = "refuse",
    max_categories: int = 64,
    client: Any = None,
    csv: CsvOptions | None = None,
) -> Scan:
    r"""Describe a data set that models read in blocks; it need not fit in memory.

    Nothing is read but what the columns are called, until somebody passes over it.

    Parameters
    ----------
    data : str, path, list of paths, array, data frame, Arrow table, Dask collection or RowSource
        A file, a folder of files, or a pattern such as ``"flights/*.parquet"``; files are read in
        the order of their names. By their endings: Parquet (.parquet, .pq), Arrow and Feather
        (.arrow, .feather, .ipc), CSV with a header line (.csv, .tsv), LIBSVM text (.svm, .libsvm,
        .svmlight), NumPy (.npy, mapped into memory); read as a whole are the first sheet of
        workbooks (.xlsx, .xls, .xlsb, .ods) and JSON lines (.jsonl, .ndjson). Arrays and memory
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
    standardise : bool, default=True
        Bring columns of numbers to mean 0 and variance 1, which takes the first pass of a fit.
    missing : {"refuse", "impute"}, default="refuse"
        What to do with missing values in features: an error that names file, row and column, or
        the column's mean (a category of its own for text).
    max_categories : int, default=64
        Columns of text become one column of 0 and 1 for each of their strings; a column with more
        strings than this is an error.
    client : dask.distributed.Client, optional
        The workers of this client read the files, which they need to see under the same names, and
        compute; each file is read by one of them. For Dask arrays and data frames: the client to
        use instead of Dask's own choice.
    csv : CsvOptions, optional
        What CSV files do not say themselves: encoding, delimiter, decimal sign, texts that mean
        "missing", types of columns. What it leaves open is recognised; ``told`` of the result
        says how.

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
    _check_options(batch_rows, missing, max_categories)
    if not isinstance(standardise, (bool, np.bool_)):
        raise InvalidInputError(f"standardise={standardise!r} is not usable: give True or False.")
    rows = None if batch_rows is None else int(batch_rows)
    prepare = True
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
    elif _is_source(data):
        refuse("A RowSource", target=target, columns=columns, weight=weight)
        reader, has_target, prepare = SourceReader(data), data.n_targets > 0, False
    elif is_frame(data):
        reader = FrameReader(data, *roles(target, weight, columns))
    else:
        reader = array_reader(np.asanyarray(data), target, columns, weight, "the array")
    return Scan(reader, has_target, standardise, missing, max_categories, prepare, rows)


def as_scan(data: Any, y: Any = None, sample_weight: Any = None) -> Scan | None:
    """Return a `Scan` as it is, a `RowSource` or a Dask collection as one, None for arrays.

    A Dask collection comes with target and weights beside it, and its numbers are taken as they
    are, as those of arrays in memory.
    """
    if is_dask(data):
        frame = hasattr(data, "_meta") and hasattr(data, "columns")
        reader = (frame_reader if frame else dask_array_reader)(data, y, sample_weight, None)
        return Scan(reader, y is not None, standardise=False, prepare=False)
    if not isinstance(data, Scan) and not _is_source(data):
        return None
    if y is not None or sample_weight is not None:
        raise InvalidInputError(
            "A scan brings its own target and weights: give them to scan(..., target=..., "
            "weight=...) and leave y and sample_weight out."
        )
    return data if isinstance(data, Scan) else scan(data)


def _is_source(data: Any) -> bool:
    return hasattr(data, "read") and hasattr(data, "n_targets")


def _check_options(batch_rows: Any, missing: str, max_categories: int) -> None:
    if batch_rows is not None and (not isinstance(batch_rows, (int, np.integer)) or batch_rows < 1):
        raise InvalidInputError(f"batch_rows={batch_rows!r} is not usable: give a positive int.")
    if missing not in ("refuse", "impute"):
        raise InvalidInputError(f"missing={missing!r} is not known: 'refuse' or 'impute'.")
    if not isinstance(max_categories, (int, np.integer)) or max_categories < 1:
        raise InvalidInputError(f"max_categories={max_categories!r} is not usable: give an int.")
