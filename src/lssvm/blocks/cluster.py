"""A pass over parts of the rows where Dask keeps them: added up on each worker, then as a tree."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

from lssvm._core.errors import InvalidInputError, MissingDependencyError
from lssvm._core.threads import one_blas_thread

SPLIT = 8  # results that one task of the tree adds up
_SHARE = 0.7  # of the memory of a worker, as of that of this machine


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


Work = Callable[[Part], Any]
Combine = Callable[[Any, Any], Any]


@dataclass(frozen=True, eq=False)
class _Job:
    """What is done with every part, and how two results become one."""

    work: Work
    combine: Combine


def need_dask() -> Any:
    """Import dask, or say how to get it."""
    try:
        import dask
    except ImportError as error:
        raise MissingDependencyError(
            "Rows on a cluster are read with Dask, which is not installed: "
            "pip install 'lssvm[dask]'."
        ) from error
    return dask


def active_client(client: Any = None) -> Any:
    """Return ``client``, else the one that Dask would use itself; None: this process.

    As in Dask, a scheduler that was set with ``dask.config.set(scheduler=...)`` comes first.
    """
    if client is not None:
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


def check_client(client: Any) -> None:
    """Raise where ``client`` is not a client of Dask."""
    need_dask()
    from distributed import Client

    if not isinstance(client, Client):
        raise InvalidInputError(
            f"client={client!r} is not usable: give a dask.distributed.Client, for example "
            "Client(LocalCluster()) or Client('tcp://scheduler:8786')."
        )


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
        return budget // (3 * _n_threads())
    workers = _workers(client)
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
    there, others are dealt out in runs. Workers are a wish, not an order: when one dies, Dask
    computes what was lost on another.

    Examples
    --------
    >>> from lssvm.blocks.cluster import Part, map_reduce
    >>> parts = [Part(i, 10 * i, 10, ()) for i in range(5)]
    >>> map_reduce(parts, lambda part: part.start, lambda a, b: a + b)
    100
    """
    dask = need_dask()
    client = active_client(client)
    job = dask.delayed(_Job(work, combine), pure=False, traverse=False)
    if client is None:
        groups = _runs(list(parts), _n_threads())
        with one_blas_thread():  # of all threads; each on its own would undo it for the others
            return dask.compute(_tree(job, [_chain(job, group) for group in groups]))[0]
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        job = client.persist(dask.delayed(_same, pure=False)(job))
    found = []
    for address, groups in _placed(parts, client).items():
        wish = {"workers": [address], "allow_other_workers": True} if address else {}
        found.append(client.compute(_tree(job, [_chain(job, group) for group in groups]), **wish))
    (shared,) = _futures_of(job)
    while len(found) > 1:
        found = [
            client.submit(_merge, shared, found[i : i + SPLIT], pure=False)
            for i in range(0, len(found), SPLIT)
        ]
    return found[0].result()


def map_in_order(parts: Sequence[Part], work: Work, client: Any = None) -> Iterator[Any]:
    """Apply ``work`` to every part and yield the results in order, a few parts ahead at most."""
    dask = need_dask()
    client = active_client(client)
    apply = dask.delayed(_apply, pure=False)
    if client is None:
        for group in _cut(list(parts), _n_threads()):
            with one_blas_thread():
                found = dask.compute(*[apply(work, _bare(p), list(p.values)) for p in group])
            yield from found
        return
    job = client.persist(dask.delayed(_same, pure=False)(dask.delayed(work, traverse=False)))
    ahead = 2 * max(1, sum(threads for threads, _ in _workers(client).values()))
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


# -- tasks -------------------------------------------------------------------------------------


def _same(value: Any) -> Any:
    return value


def _bare(part: Part) -> Part:
    return part._replace(values=())


def _apply(work: Work, part: Part, values: list[Any]) -> Any:
    return work(part._replace(values=tuple(values)))


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


# -- who does what -----------------------------------------------------------------------------


def _n_threads() -> int:
    number = need_dask().config.get("num_workers", None)
    return int(number or os.cpu_count() or 1)


def _futures_of(value: Any) -> list[Any]:
    from distributed import futures_of

    return list(futures_of(value))


def _workers(client: Any) -> dict[str, tuple[int, int]]:
    """Return threads and memory limit (0: none) of every worker."""
    try:
        info = client.scheduler_info(n_workers=-1)
    except TypeError:  # older ones always tell of all workers
        info = client.scheduler_info()
    return {
        address: (max(1, int(worker["nthreads"])), int(worker.get("memory_limit") or 0))
        for address, worker in info["workers"].items()
    }


def _cut(parts: list[Part], size: int) -> list[list[Part]]:
    return [parts[i : i + size] for i in range(0, len(parts), size)]


def _runs(parts: list[Part], number: int) -> list[list[Part]]:
    """Cut parts into at most ``number`` runs of nearly as many parts."""
    number = min(number, len(parts))
    bounds = [len(parts) * i // number for i in range(number + 1)]
    return [parts[a:b] for a, b in pairwise(bounds)]


def _placed(parts: Sequence[Part], client: Any) -> dict[str, list[list[Part]]]:
    """Return for every worker the parts that each of its threads is to add up."""
    workers = _workers(client)
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
    for address, run in zip(slots, _runs(rest, len(slots)) if rest else [], strict=False):
        min(lists[address], key=len).extend(run)
    used = {address: [one for one in found if one] for address, found in lists.items()}
    return {address: found for address, found in used.items() if found}


def _holders(parts: Sequence[Part], client: Any) -> list[list[str]]:
    """Return the workers that hold rows of each part, where they are in memory."""
    graphs: dict[int, dict[Any, Any]] = {}  # all parts of a collection have the same one
    futures = [_future_below(part.values[0], graphs) if part.values else None for part in parts]
    known = [future for future in futures if future is not None]
    if not known:
        return [[] for _ in parts]
    who = {str(key): list(found) for key, found in client.who_has(known).items()}
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
    return "distributed" in sys.modules and bool(_futures_of(value))
