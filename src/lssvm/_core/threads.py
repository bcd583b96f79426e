"""Threads over row blocks, one BLAS thread each."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from lssvm._core.errors import not_usable

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _controller() -> Any:
    # Finding the BLAS libraries of the process takes milliseconds: done once.
    return ThreadpoolController()


def n_threads(n_jobs: int | None) -> int:
    """Turn scikit-learn's ``n_jobs`` into a number of threads (None: all that may be used).

    Examples
    --------
    >>> from lssvm._core.threads import n_threads
    >>> n_threads(3), n_threads(None) >= 1
    (3, True)
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    usable = usable or 1
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
    on_error: Callable[[], None] | None = None,
) -> list[Result]:
    """Apply ``work`` to every item, in order, on ``threads`` threads with one BLAS thread each.

    Several threads of Python share the work because NumPy and BLAS release the lock. With one
    thread, or one item, nothing is started and BLAS keeps its own threads. ``on_error`` is called
    at the first error, Ctrl-C among them, before the work that has begun is waited for: it may ask
    that work to end.
    """
    todo = list(items)
    if threads <= 1 or len(todo) <= 1:
        return [work(item) for item in todo]
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        try:
            return list(pool.map(work, todo))
        except BaseException:
            if on_error is not None:
                on_error()
            raise


def run_stream(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """Apply ``work`` to the items of a stream and yield the results in order.

    Items are drawn by the calling thread, which reads the next ones while the others compute; a
    few more than ``threads`` are held at a time. One BLAS thread each.
    """
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
