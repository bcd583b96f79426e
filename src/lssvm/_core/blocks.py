"""Work in blocks of rows: their size from a memory budget, and threads over them.

The budget is a number of bytes; each thread of ours has one BLAS thread.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from lssvm._core.errors import MemoryBudgetError, not_usable

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def available_memory() -> int:
    """Return the bytes that can be allocated now without swapping (at least 256 MiB).

    The smaller of what the kernel calls available and what a control group leaves, where those can
    be read; otherwise half of the physical memory, otherwise 2 GiB.
    """
    limits = [_meminfo_available(), _cgroup_left()]
    known = [limit for limit in limits if limit is not None]
    return max(min(known) if known else 2 * 2**30, 256 * 2**20)


def peak_memory() -> int | None:
    """Return the most resident memory that the process has had so far, in bytes, where known."""
    # what getrusage returns may be the memory of the process that started this one
    if (peak := _bytes_listed("/proc/self/status", "VmHWM:")) is not None:
        return peak
    try:
        import resource
    except ImportError:  # not on this system
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most) * (1 if sys.platform == "darwin" else 1024)


def _bytes_listed(path: str, name: str) -> int | None:
    """Return a line of a file of Linux that lists kilobytes, in bytes."""
    with suppress(OSError), open(path, encoding="ascii") as lines:
        return next((int(x.split()[1]) * 1024 for x in lines if x.startswith(name)), None)
    return None


def _meminfo_available() -> int | None:
    if (available := _bytes_listed("/proc/meminfo", "MemAvailable:")) is not None:
        return available
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):
        return None


def _cgroup_left() -> int | None:
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as handle:
            limit = handle.read().strip()
        if limit == "max":
            return None
        with open("/sys/fs/cgroup/memory.current", encoding="ascii") as handle:
            return int(limit) - int(handle.read())
    except (OSError, ValueError):
        return None


def as_bytes(memory_budget: int | float | str | None) -> int:
    """Turn a memory budget into bytes."""
    if memory_budget is None:
        return int(0.7 * available_memory())
    if isinstance(memory_budget, str):
        match = re.fullmatch(r"\s*([0-9.]+(?:[eE][0-9]+)?)\s*([A-Za-z]*)\s*", memory_budget)
        if match and match[2].upper() in _UNITS:
            try:
                value = float(match[1]) * _UNITS[match[2].upper()]
            except ValueError:
                value = 0.0
            if value >= 1:
                return int(value)
    elif isinstance(memory_budget, (int, float)) and not isinstance(memory_budget, bool):
        if 1 <= memory_budget < float("inf"):
            return int(memory_budget)
    needed = "give a positive number of bytes, a string such as '2 GB' or '800 MiB', or None for "
    raise not_usable("memory_budget", memory_budget, f"{needed}70 % of the available memory.")


def block_rows(
    row_bytes: int, budget: int, *, n_rows: int, at_most: int = 4096, share: float = 0.25
) -> int:
    """Return how many rows a block may have so that it takes ``share`` of the budget."""
    return int(max(1, min(n_rows, at_most, share * budget // max(row_bytes, 1))))


def require(n_bytes: int, budget: int, *, what: str, advice: str) -> None:
    """Raise `MemoryBudgetError` if ``n_bytes`` exceed the budget, before anything is allocated."""
    if n_bytes > budget:
        raise MemoryBudgetError(
            f"{what} needs {_readable(n_bytes)} but the memory budget is {_readable(budget)}. "
            f"{advice}"
        )


def _readable(n_bytes: int) -> str:
    """Return a number of bytes in words with enough digits."""
    return f"{n_bytes / 1e9:.2f} GB" if n_bytes >= 1e8 else f"{n_bytes:,} bytes"


_SHORT = 1e7  # operations: about a millisecond, what threads take to start and to meet again

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _controller() -> Any:
    # Finding the BLAS libraries of the process takes milliseconds: done once.
    return ThreadpoolController()


def n_threads(n_jobs: int | None) -> int:
    """Turn scikit-learn's ``n_jobs`` into a number of threads.

    None is the value of ``joblib.parallel_config`` where it is set, else all that may be used.

    What may be used is joblib's to say: it knows affinities, the limits of containers and the
    environment's ``LOKY_MAX_CPU_COUNT``.
    """
    from joblib import cpu_count  # scikit-learn's; not needed by what only reads files
    from joblib.parallel import get_active_backend

    usable = int(cpu_count())
    if n_jobs is None:
        n_jobs = get_active_backend()[1]
    if n_jobs is None:
        return usable
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or int(n_jobs) == 0:
        needed = "give a positive number of threads, a negative one to count back from all cores "
        raise not_usable("n_jobs", n_jobs, f"{needed}(-1: all), or None for all.")
    return int(n_jobs) if n_jobs > 0 else max(1, usable + 1 + int(n_jobs))


def run_blocks(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    threads: int,
    *,
    operations: float = math.inf,
    on_error: Callable[[], None] | None = None,
) -> list[Result]:
    """Apply ``work`` to every item, in order, on ``threads`` threads with one BLAS thread each.

    Several threads of Python share the work because NumPy and BLAS release the lock. With one
    thread, or one item, nothing is started and BLAS keeps its own threads; nor is anything where
    all the work takes so few ``operations`` that it is over before threads have begun. ``on_error``
    is called at the first error, Ctrl-C among them, before the work that has begun is waited for:
    it may ask that work to end.
    """
    todo = list(items)
    if threads <= 1 or len(todo) <= 1:
        return [work(item) for item in todo]
    if operations < _SHORT:
        with one_blas_thread():
            return [work(item) for item in todo]
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        try:
            return list(pool.map(work, todo))
        except BaseException:
            if on_error is not None:
                on_error()
            raise


def run_stream(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    threads: int,
    *,
    operations: float = math.inf,
) -> Iterator[Result]:
    """Apply ``work`` to the items of a stream and yield the results in order.

    Items are drawn by the calling thread, which reads the next ones while the others compute; a
    few more than ``threads`` are held at a time. One BLAS thread each. No thread is started where
    all the work takes few ``operations``.
    """
    if operations < _SHORT:
        with one_blas_thread():
            yield from map(work, items)
        return
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[Result]] = deque()
        try:
            for item in items:
                pending.append(pool.submit(work, item))
                if len(pending) > threads + 1:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS on one thread, around work that others share out to threads."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@contextmanager
def small_problem(n: int, limit: int = 512) -> Iterator[None]:
    """Keep BLAS on one thread while ``n`` is below ``limit``.

    Matrices that small gain nothing from several threads, and on a busy machine threads that wait
    for each other cost a hundred times what they save.
    """
    with one_blas_thread() if n < limit else nullcontext():
        yield


def slices(n_rows: int, rows: int, start: int = 0) -> list[slice]:
    """Cut ``range(n_rows)`` into consecutive slices of ``rows`` rows (the last may be shorter)."""
    return [slice(begin, min(begin + rows, n_rows)) for begin in range(start, n_rows, rows)]
