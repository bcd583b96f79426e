"""A pass over parts of the rows where Dask keeps them.

First which worker works on which part; then sums on each worker, and over the workers as a tree.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

from lssvm._core.blocks import one_blas_thread
from lssvm._core.errors import InvalidInputError, LSSVMError, library


def need_dask() -> Any:
    """Import dask, or say how to get it."""
    return library("dask", "Rows on a cluster are read with Dask", "[dask]")


class Part(NamedTuple):
    """Some consecutive rows of a data set.

    Attributes
    ----------
    number : int
        Which part it is, counted from 0.
    start : int
        Position of its first row among all rows.
    rows : int
        Rows it has.
    values : tuple
        What the rows are read from: Dask's delayed values, or anything that can be pickled.
    """

    number: int
    start: int
    rows: int
    values: tuple[Any, ...]


def n_slots() -> int:
    """Return the threads that Dask uses in this process."""
    return int(need_dask().config.get("num_workers", None) or os.cpu_count() or 1)


def futures_of_value(value: Any) -> list[Any]:
    """Return the futures in the graph of a Dask collection."""
    from distributed import futures_of

    return list(futures_of(value))


def workers_of(client: Any) -> dict[str, tuple[int, int]]:
    """Return threads and memory limit (0: none) of every worker."""
    try:
        info = client.scheduler_info(n_workers=-1)
    except TypeError:  # older ones always list all workers
        info = client.scheduler_info()
    return {
        address: (max(1, int(worker["nthreads"])), int(worker.get("memory_limit") or 0))
        for address, worker in info["workers"].items()
    }


def runs(parts: list[Part], number: int) -> list[list[Part]]:
    """Cut parts into at most ``number`` runs of nearly as many parts."""
    number = min(number, len(parts))
    bounds = [len(parts) * i // number for i in range(number + 1)]
    return [parts[a:b] for a, b in pairwise(bounds)]


def placed(parts: Sequence[Part], client: Any) -> dict[str, list[list[Part]]]:
    """Return for every worker the parts that each of its threads is to add up."""
    workers = workers_of(client)
    if not workers:  # some may come
        return {"": [list(parts)]}
    slots = [address for address, (threads, _) in workers.items() for _ in range(threads)]
    lists: dict[str, list[list[Part]]] = {
        address: [[] for _ in range(threads)] for address, (threads, _) in workers.items()
    }
    rest = []
    for part, holders in zip(parts, _holders(parts, client), strict=True):
        known = [address for address in holders if address in lists]
        if known:
            min((one for address in known for one in lists[address]), key=len).append(part)
        else:
            rest.append(part)
    for address, run in zip(slots, runs(rest, len(slots)) if rest else [], strict=False):
        min(lists[address], key=len).extend(run)
    used = {address: [one for one in assigned if one] for address, assigned in lists.items()}
    return {address: assigned for address, assigned in used.items() if assigned}


def _holders(parts: Sequence[Part], client: Any) -> list[list[str]]:
    """Return the workers that hold rows of each part, where they are in memory."""
    graphs: dict[int, dict[Any, Any]] = {}  # all parts of a collection have the same one
    futures = [_future_below(part.values[0], graphs) if part.values else None for part in parts]
    known = [future for future in futures if future is not None]
    if not known:
        return [[] for _ in parts]
    who = {str(key): list(addresses) for key, addresses in client.who_has(known).items()}
    return [[] if future is None else who.get(str(future.key), []) for future in futures]


def _future_below(value: Any, graphs: dict[int, dict[Any, Any]]) -> Any:
    """Return the first future that a delayed value is computed from; None: there is none."""
    if not hasattr(value, "__dask_graph__"):
        return None
    from dask.core import get_dependencies
    from dask.utils import ensure_dict

    graph = graphs.get(id(value.__dask_graph__()))
    if graph is None:
        graph = dict(ensure_dict(value.__dask_graph__())) if has_futures(value) else {}
        graphs[id(value.__dask_graph__())] = graph
    todo, seen = [value.key], set()
    while todo:
        key = todo.pop()
        node = graph.get(key)
        if hasattr(node, "client") and hasattr(node, "key"):
            return node
        if node is not None and key not in seen:
            seen.add(key)
            todo.extend(get_dependencies(graph, key))
    return None


def has_futures(value: Any) -> bool:
    """Say whether a Dask collection, or a part of it, lies in the memory of workers."""
    return "distributed" in sys.modules and bool(futures_of_value(value))


class Recipe:
    """A delayed value that is computed inside the task that needs it, so that it is never moved.

    No data class: Dask would look into it and take the keys of the graph for tasks to wait for.
    """

    def __init__(self, graph: dict[Any, Any], key: Any) -> None:
        self.graph, self.key = graph, key

    def compute(self) -> Any:
        """Return the value."""
        return need_dask().get(self.graph, self.key)


def inlined(parts: Sequence[Part]) -> list[Part]:
    """Return the parts with recipes in place of delayed values.

    Not where values lie in the memory of workers already, and not where parts are computed from
    something that they share, which would be computed once for each of them.
    """
    graphs: dict[int, dict[Any, Any]] = {}
    columns = [
        _unshared(list(values), graphs)
        for values in zip(*(part.values for part in parts), strict=True)
    ]
    values = list(zip(*columns, strict=True)) or [()] * len(parts)
    return [part._replace(values=kept) for part, kept in zip(parts, values, strict=True)]


def _unshared(values: list[Any], graphs: dict[int, dict[Any, Any]]) -> list[Any]:
    tried = [_recipe(value, graphs) for value in values]
    subgraphs = [value.graph for value in tried if isinstance(value, Recipe)]
    together = {key for graph in subgraphs for key in graph}
    return tried if len(together) == sum(len(graph) for graph in subgraphs) else values


def _recipe(value: Any, graphs: dict[int, dict[Any, Any]]) -> Any:
    if not hasattr(value, "__dask_graph__") or has_futures(value):
        return value
    from dask.optimization import cull
    from dask.utils import ensure_dict

    number = id(value.__dask_graph__())
    if number not in graphs:
        graphs[number] = dict(ensure_dict(value.__dask_graph__()))
    return Recipe(dict(cull(graphs[number], [value.key])[0]), value.key)


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
    except (Exception, asyncio.CancelledError) as error:
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
    there, others are assigned in runs. When a worker dies, what it had is given to others.

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
    """What one worker adds up."""

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
            placement = {"workers": [address], "allow_other_workers": True} if bound else {}
            sums = _tree(job, [_chain(job, group) for group in groups])
            shares.append(
                _Share(address if bound else "", groups, client.compute(sums, **placement))
            )
        level, tree = [share.future for share in shares], list[Any]()
        while len(level) > 1:
            some = _cut(level, SPLIT)
            level = [client.submit(_merge, shared, futures, pure=False) for futures in some]
            tree += level
        gone = _await(level[0], {share.address for share in shares if share.address}, client)
        if not gone:
            return level[0].result()
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
                results = dask.compute(*[apply(work, _bare(p), list(p.values)) for p in group])
            yield from results
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


def _cut(parts: list[Any], size: int) -> list[list[Any]]:
    return [parts[i : i + size] for i in range(0, len(parts), size)]


# -- tasks -------------------------------------------------------------------------------------


def _same(value: Any) -> Any:
    return value


def _bare(part: Part) -> Part:
    return part._replace(values=())


def _apply(work: Work, part: Part, values: list[Any]) -> Any:
    computed = (value.compute() if isinstance(value, Recipe) else value for value in values)
    return work(part._replace(values=tuple(computed)))


def _step(job: _Job, part: Part, values: list[Any], before: Any) -> Any:
    result = _apply(job.work, part, values)
    return result if before is None else job.combine(before, result)


def _merge(job: _Job, results: list[Any]) -> Any:
    return reduce(job.combine, results)


def _chain(job: Any, parts: list[Part]) -> Any:
    """Return the task that adds up parts one after the other: only one result is held."""
    step = need_dask().delayed(_step, pure=False)
    before = None
    for part in parts:
        before = step(job, _bare(part), list(part.values), before)
    return before


def _tree(job: Any, level: list[Any]) -> Any:
    merge = need_dask().delayed(_merge, pure=False)
    while len(level) > 1:
        level = [merge(job, some) for some in _cut(level, SPLIT)]
    return level[0]
