"""Files that have to stay as they are while somebody passes over them more than once."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from lssvm._core.errors import InvalidInputError
from lssvm.data.raw import RawBlock


def _mark(file: str) -> tuple[int, int] | None:
    """Return size and time of a file, None where there is none."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def changed_file(files: str, what: str) -> InvalidInputError:
    """Return the error of a file that changed while it was read."""
    return InvalidInputError(
        f"{files} changed while it was read: {what}. A fit passes over its rows several times and "
        "needs the same ones each time: wait until nobody writes there, or read a copy, and call "
        "scan(...) again."
    )


@dataclass(frozen=True)
class FileStamps:
    """Sizes and times of some files at one moment.

    Parameters
    ----------
    files : tuple of str
    marks : tuple of (int, int) or None
        Bytes and nanoseconds of each; None for a file that was not there.

    Examples
    --------
    >>> import os, tempfile
    >>> from lssvm.data.watching import FileStamps
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "rows.csv")
    ...     _ = open(name, "w").write("a,b")
    ...     stamps = FileStamps.of([name])
    ...     stamps.check()
    ...     _ = open(name, "w").write("a,b,c")
    ...     stamps.check()
    Traceback (most recent call last):
    ...
    lssvm._core.errors.InvalidInputError: ...rows.csv changed while it was read: ...
    """

    files: tuple[str, ...]
    marks: tuple[tuple[int, int] | None, ...]

    @classmethod
    def of(cls, files: Iterable[str]) -> FileStamps:
        """Return the stamps of files as they are now."""
        names = tuple(str(file) for file in files)
        return cls(names, tuple(_mark(name) for name in names))

    def check(self) -> None:
        """Raise where a file is not what it was."""
        for name, before in zip(self.files, self.marks, strict=True):
            now = _mark(name)
            if now == before or before is None:
                continue
            if now is None:
                raise changed_file(name, "it is gone")
            if now[0] != before[0]:
                raise changed_file(name, f"it had {before[0]:,} bytes and has {now[0]:,}")
            raise changed_file(name, "it was written to")


@dataclass
class Watch:
    """What the first pass over some files has seen, which every later pass is compared with.

    Attributes
    ----------
    stamps : FileStamps
    first : dict or None
        Rows and a checksum of the targets by where they came from; None before the first pass.
    """

    stamps: FileStamps
    first: dict[str, tuple[int, int]] | None = field(default=None)

    @classmethod
    def over(cls, files: Sequence[str]) -> Watch:
        """Begin to watch."""
        return cls(FileStamps.of(files))

    def compare(self, seen: dict[str, tuple[int, int]]) -> None:
        """Keep what the first pass has seen, or raise where another one saw something else."""
        if self.first is None:
            self.first = seen
        for where, (rows, digest) in seen.items():
            known = self.first.get(where, (0, 0))
            name = where if where in self.stamps.files else ", ".join(self.stamps.files[:5])
            if known[0] != rows:
                raise changed_file(name, f"the first pass saw {known[0]:,} rows, this one {rows:,}")
            if known[1] != digest:
                raise changed_file(name, "its targets are not those of the first pass")

    def over_blocks(self, blocks: Iterable[RawBlock]) -> Iterator[RawBlock]:
        """Yield the blocks of one pass, and look after it whether it was like the first one."""
        self.stamps.check()
        seen: dict[str, tuple[int, int]] = {}
        for block in blocks:
            where = block.places[0][1] if block.places else ""
            rows, digest = seen.get(where, (0, 0))
            seen[where] = rows + len(block), _checksum(block, digest)
            yield block
        self.stamps.check()
        self.compare(seen)


def _checksum(block: RawBlock, digest: int) -> int:
    if block.target is None or block.target.dtype.kind == "O":
        return digest
    return zlib.crc32(np.ascontiguousarray(block.target).tobytes(), digest)
