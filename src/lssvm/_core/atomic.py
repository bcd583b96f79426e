"""Files that are there when they are complete, or not at all: the one way in which we write."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType

from lssvm._core.errors import InvalidInputError, printable

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # no file locks on this system: leftovers are recognised by their age
    fcntl = None

_PATTERN = re.compile(r"\.lssvm-[0-9a-f]{16}\.partial")
_DAY = 86_400.0  # seconds after which a file without a lock has no writer
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FLAGS |= getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_being_written: set[str] = set()  # of this process: locks may be the process's, not the file's


@contextmanager
def replacing(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[str]:
    """Give the name of a new file that takes the place of ``path`` in the end.

    It lies in the same folder, so that the exchange is one step of the file system: whoever looks,
    at any moment, and after any kind of end of the process, finds the old file or the new one.
    """
    target, old = _destination(os.fspath(path))
    folder = os.path.dirname(target)
    remove_leftovers(folder)
    handle, temporary = _new_file(folder, target, 0o600 if private or old else 0o666)
    try:
        mode = stat.S_IMODE((old or os.fstat(handle)).st_mode)
        _change_mode(handle, temporary, 0o600)
        yield temporary
        os.fsync(handle)
        if not os.path.samestat(os.fstat(handle), os.lstat(temporary)):
            raise InvalidInputError(f"The new file of {printable(target)} was moved meanwhile.")
        _change_mode(handle, temporary, _with_owner(handle, old, mode))
        if fcntl is None:
            os.close(handle)  # an open file cannot be renamed there
            handle = -1
        os.replace(temporary, target)
        _sync_folder(folder)
    except OSError as error:
        if error.errno in _FULL:
            text = "no room is left on the disk: free some, or give another folder"
            raise OSError(error.errno, f"{text}; nothing was written", printable(target)) from error
        raise
    finally:
        if handle >= 0:
            os.close(handle)
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        _being_written.discard(temporary)


def remove_leftovers(folder: str) -> list[str]:
    """Remove what killed processes have left of `replacing` in a folder; return the names."""
    with suppress(OSError):
        names = filter(_PATTERN.fullmatch, os.listdir(folder))
        return [name for name in names if _remove_leftover(os.path.join(folder, name))]
    return []


def _remove_leftover(path: str) -> bool:
    with suppress(OSError):
        about = os.lstat(path)
        if path in _being_written or not stat.S_ISREG(about.st_mode) or about.st_uid != _user():
            return False
        handle = -1 if fcntl is None else os.open(path, _FLAGS)  # there open files cannot go
        try:
            locked, age = _lock(handle, wait=False), time.time() - about.st_mtime
            abandoned = age > _DAY if locked is None else locked
            if abandoned:
                os.unlink(path)  # with the lock: its writer has none yet, and will notice
            return abandoned
        finally:
            if handle >= 0:
                os.close(handle)
    return False


def _lock(handle: int, *, wait: bool) -> bool | None:
    """Take the lock of a file: False where another has it, None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _user() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0


def _destination(path: str) -> tuple[str, os.stat_result | None]:
    """Return the path with its links resolved, and what is known of a file that is there."""
    printed = printable(path)
    if "\0" in path or not path:
        raise InvalidInputError(f"'{printed}' is not the name of a file.")
    if os.path.islink(path):
        _check_link(path)
    target = os.path.realpath(path)
    if not os.path.isdir(os.path.dirname(target)):
        where = printable(os.path.dirname(target))
        raise InvalidInputError(f"The folder {where} does not exist: make it first.")
    try:
        old = os.lstat(target)
    except FileNotFoundError:
        return target, None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InvalidInputError(
                f"The name {printed} is too long: give a shorter one."
            ) from error
        raise
    if not stat.S_ISREG(old.st_mode):
        kind = "a folder" if stat.S_ISDIR(old.st_mode) else "no ordinary file"
        raise InvalidInputError(f"{printed} is {kind}: give the name of a file.")
    return target, old


def _check_link(path: str) -> None:
    """Raise where somebody else may have put a link into a folder that all share."""
    folder = os.lstat(os.path.dirname(os.path.abspath(path)))
    shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    if shared and os.lstat(path).st_uid not in (_user(), folder.st_uid):
        raise InvalidInputError(
            f"{printable(path)} is a link that another user has put into a folder that all share: "
            "give the name that it points to."
        )


def _new_file(folder: str, target: str, mode: int) -> tuple[int, str]:
    while True:
        temporary = os.path.join(folder, f".lssvm-{secrets.token_hex(8)}.partial")
        _being_written.add(temporary)
        try:
            handle = os.open(temporary, _FLAGS | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            continue
        except OSError as error:
            _being_written.discard(temporary)
            text = f"the folder cannot be written ({error.strerror})"
            raise OSError(error.errno, text, printable(target)) from error
        _lock(handle, wait=True)
        if fcntl is None or os.fstat(handle).st_nlink:
            return handle, temporary
        os.close(handle)  # removed by another process in the moment before the lock was ours
        _being_written.discard(temporary)


def _change_mode(handle: int, path: str, mode: int) -> None:
    with suppress(OSError):  # of a file system without modes
        os.chmod(handle if os.chmod in os.supports_fd else path, mode)


def _with_owner(handle: int, old: os.stat_result | None, mode: int) -> int:
    """Give a new file the owner of the old one; return the mode that it may then have."""
    new = os.fstat(handle)
    if old is None or (old.st_uid, old.st_gid) == (new.st_uid, new.st_gid):
        return mode
    try:
        os.chown(handle, old.st_uid, old.st_gid)
    except (OSError, AttributeError):
        return mode if old.st_gid == new.st_gid else mode & ~0o070  # not for another group
    return mode


def _sync_folder(folder: str) -> None:
    """Bring the new name to the disk, where a folder can be opened for that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
