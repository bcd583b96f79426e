"""A pass over parts of the rows where Dask keeps them: added up on each worker, then as a tree."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

from lssvm._core.errors import InvalidInputError, LSSVMError
from lssvm._core.threads import one_blas_thread
from lssvm.data.placement import (
    Part,
    Recipe,
    futures_of_value,
    inlined,
    n_slots,
    need_dask,
    placed,
    runs,
    workers_of,
)

SPLIT = 8  # results that one task of the tree adds up
_DEATHS = 3  # workers that may die over a part before it is given up, as in Dask
_CLOSED = ("closed", "closing")
_PATIENCE = 1.0  # seconds between looks at the workers
_SHARE = 0.7  # of the memory of a worker, as of that of this machine


Work = Callable[[Part], Any]
Combine = Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False)
class _Job:
    """What is done with every part, and how two results become one."""

    work: Work
    combine: Combine


def active_client(client: Any = None) -> Any:
    """Return ``client``, else the one that Dask would use itself; None: this process.

    As in Dask, a scheduler that was set with ``dask.config.set(scheduler=...)`` comes first.
    """
    if client is not None:
        if getattr(client, "status", "") in _CLOSED:
            raise _closed(client)
        return client
    dask = need_dask()
    if dask.config.get("scheduler", None) not in (None, "dask.distributed", "distributed"):
        return None
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        return default_client()
    except ValueError:  # there is none
        return None


def _closed(client: Any) -> InvalidInputError:
    return InvalidInputError(
        f"The Dask client is {client.status}, so that its workers cannot be asked: keep it open as "
        "long as the scan is used, or make the scan anew with an open client."
    )


@contextmanager
def _while_open(client: Any) -> Iterator[None]:
    """Say so where a client was closed while somebody waited for its workers."""
    try:
        yield
    except (CancelledError, asyncio.CancelledError, RuntimeError, AttributeError, OSError) as error:
        if client.status in _CLOSED and not isinstance(error, LSSVMError):
            raise _closed(client) from error
        raise


def check_client(client: Any) -> None:
    """Raise where ``client`` is not an open client of Dask."""
    need_dask()
    from distributed import Client

    if not isinstance(client, Client):
        raise InvalidInputError(
            f"client={client!r} is not usable: give a dask.distributed.Client, for example "
            "Client(LocalCluster()) or Client('tcp://scheduler:8786')."
        )
    active_client(client)


def task_resources(budget: int, client: Any = None) -> int:
    """Return the memory budget, in bytes, of every task of a pass.

    Parameters
    ----------
    budget : int
        That of the model; a task never gets more.
    client : Client, optional

    Notes
    -----
    The share of a worker's memory limit that falls to one of its threads, of which a third: beside
    its own sums a task holds those of the parts before it and the total of both. Workers without a
    limit, and threads of this process, share the budget of the model.
    """
    client = active_client(client)
    if client is None:
        return budget // (3 * n_slots())
    workers = workers_of(client)
    slots = max(1, sum(threads for threads, _ in workers.values()))
    shares = [
        _SHARE * limit / threads if limit else budget / slots for threads, limit in workers.values()
    ]
    return int(min([budget, *shares]) // 3)


def map_reduce(parts: Sequence[Part], work: Work, combine: Combine, client: Any = None) -> Any:
    """Apply ``work`` to every part where it is, and combine what comes out.

    Parameters
    ----------
    parts : sequence of Part
        At least one.
    work : callable
        From a `Part`, its values computed, to a result. It is sent to the workers once each.
    combine : callable
        From two results to one; neither may be changed.
    client : Client, optional
        By default Dask's own choice: the active client, else threads of this process.

    Returns
    -------
    The combined result, on this side.

    Notes
    -----
    Every thread of every worker adds up its parts one after the other; the sums of the threads are
    added on their worker, those of the workers in a tree that takes 8 at a time. What is moved is
    one result per worker, not one per part. Parts that lie in the memory of a worker are worked on
    there, others are dealt out in runs. When a worker dies, what it had is given to others.

    Examples
    --------
    >>> from lssvm.data.cluster import Part, map_reduce
    >>> parts = [Part(i, 10 * i, 10, ()) for i in range(5)]
    >>> map_reduce(parts, lambda part: part.start, lambda a, b: a + b)
    100
    """
    dask = need_dask()
    client = active_client(client)
    job = dask.delayed(_Job(work, combine), pure=False, traverse=False)
    if client is None:
        groups = runs(list(parts), n_slots())
        with one_blas_thread():  # of all threads; each on its own would undo it for the others
            return dask.compute(_tree(job, [_chain(job, group) for group in groups]))[0]
    with _while_open(client):
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            job = client.persist(dask.delayed(_same, pure=False)(job))
        return _gathered(inlined(parts), job, client)


@dataclass
class _Share:
    """What one worker was asked to add up."""

    address: str
    groups: list[list[Part]]
    future: Any


def _gathered(parts: Sequence[Part], job: Any, client: Any) -> Any:
    """Share the parts out, wait, and share out again what workers had that are gone.

    Dask does the latter itself, but not where for a moment no other worker was running: tasks that
    were meant for the one that is gone then wait for ever.
    """
    (shared,) = futures_of_value(job)
    shares, todo = list[_Share](), list(parts)
    deaths = dict.fromkeys((part.number for part in parts), 0)
    while True:
        for address, groups in placed(todo, client).items():
            # Rows in the memory of workers draw the work to them; names of tasks that are not ours
            # must not be bound to a worker, as others may use them.
            bound = bool(address) and not _has_delayed(groups)
            wish = {"workers": [address], "allow_other_workers": True} if bound else {}
            sums = _tree(job, [_chain(job, group) for group in groups])
            shares.append(_Share(address if bound else "", groups, client.compute(sums, **wish)))
        found, tree = [share.future for share in shares], list[Any]()
        while len(found) > 1:
            found = [
                client.submit(_merge, shared, found[i : i + SPLIT], pure=False)
                for i in range(0, len(found), SPLIT)
            ]
            tree += found
        gone = _await(found[0], {share.address for share in shares if share.address}, client)
        if not gone:
            return found[0].result()
        lost = [share for share in shares if share.address in gone]
        shares = [share for share in shares if share.address not in gone]
        client.cancel([*tree, *(share.future for share in lost)])
        todo = [part for share in lost for group in share.groups for part in group]
        for part in todo:
            deaths[part.number] += 1
        most = max(deaths, key=deaths.__getitem__)
        if deaths[most] > _DEATHS:
            raise LSSVMError(
                f"Workers died {deaths[most]} times while they had part {most} of the data (and "
                f"{sum(count == deaths[most] for count in deaths.values()) - 1} others): see their "
                "logs. Most often memory is short: give workers more of it or fewer threads, or "
                "use smaller partitions, fewer prototypes or fewer folds."
            )


def _has_delayed(groups: list[list[Part]]) -> bool:
    values = (value for group in groups for part in group for value in part.values)
    return any(hasattr(value, "__dask_graph__") for value in values)


def _await(future: Any, addresses: set[str], client: Any) -> set[str]:
    """Wait for a future; return the workers that are gone as soon as there are some."""
    from distributed import wait

    while True:
        try:
            with client.as_current():
                wait(future, timeout=_PATIENCE)
            return set()
        except TimeoutError:
            gone = addresses - set(workers_of(client))
            if gone:
                return gone


def map_in_order(parts: Iterable[Part], work: Work, client: Any = None) -> Iterator[Any]:
    """Apply ``work`` to every part and yield the results in order, a few parts ahead at most."""
    dask = need_dask()
    client = active_client(client)
    apply = dask.delayed(_apply, pure=False)
    if client is None:
        for group in _cut(list(parts), n_slots()):
            with one_blas_thread():
                found = dask.compute(*[apply(work, _bare(p), list(p.values)) for p in group])
            yield from found
        return
    with _while_open(client):
        yield from _streamed(parts, work, client, apply)


def _streamed(parts: Iterable[Part], work: Work, client: Any, apply: Any) -> Iterator[Any]:
    dask = need_dask()
    job = client.persist(dask.delayed(_same, pure=False)(dask.delayed(work, traverse=False)))
    ahead = 2 * max(1, sum(threads for threads, _ in workers_of(client).values()))
    pending: deque[Any] = deque()
    for part in parts:
        pending.append(client.compute(apply(job, _bare(part), list(part.values))))
        if len(pending) > ahead:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def delayed_parts(parts: Sequence[Part], work: Work) -> list[Any]:
    """Return ``work`` of every part, not computed yet."""
    dask = need_dask()
    job = dask.delayed(work, pure=False, traverse=False)
    apply = dask.delayed(_apply, pure=False)
    return [apply(job, _bare(part), list(part.values)) for part in parts]


def _cut(parts: list[Part], size: int) -> list[list[Part]]:
    return [parts[i : i + size] for i in range(0, len(parts), size)]


# -- tasks -------------------------------------------------------------------------------------


def _same(value: Any) -> Any:
    return value


def _bare(part: Part) -> Part:
    return part._replace(values=())


def _apply(work: Work, part: Part, values: list[Any]) -> Any:
    found = (value.compute() if isinstance(value, Recipe) else value for value in values)
    return work(part._replace(values=tuple(found)))


def _step(job: _Job, part: Part, values: list[Any], before: Any) -> Any:
    found = _apply(job.work, part, values)
    return found if before is None else job.combine(before, found)


def _merge(job: _Job, found: list[Any]) -> Any:
    return reduce(job.combine, found)


def _chain(job: Any, parts: list[Part]) -> Any:
    """Return the task that adds up parts one after the other: only one result is held."""
    step = need_dask().delayed(_step, pure=False)
    before = None
    for part in parts:
        before = step(job, _bare(part), list(part.values), before)
    return before


def _tree(job: Any, found: list[Any]) -> Any:
    merge = need_dask().delayed(_merge, pure=False)
    while len(found) > 1:
        found = [merge(job, found[i : i + SPLIT]) for i in range(0, len(found), SPLIT)]
    return found[0]
