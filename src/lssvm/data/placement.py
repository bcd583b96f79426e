"""Which worker of a Dask cluster works on which part of the rows."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from lssvm._core.errors import MissingDependencyError


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
    number = need_dask().config.get("num_workers", None)
    return int(number or os.cpu_count() or 1)


def futures_of_value(value: Any) -> list[Any]:
    """Return the futures in the graph of a Dask collection."""
    from distributed import futures_of

    return list(futures_of(value))


def workers_of(client: Any) -> dict[str, tuple[int, int]]:
    """Return threads and memory limit (0: none) of every worker."""
    try:
        info = client.scheduler_info(n_workers=-1)
    except TypeError:  # older ones always tell of all workers
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
    return [part._replace(values=own) for part, own in zip(parts, values, strict=True)]


def _unshared(values: list[Any], graphs: dict[int, dict[Any, Any]]) -> list[Any]:
    tried = [_recipe(value, graphs) for value in values]
    found = [value.graph for value in tried if isinstance(value, Recipe)]
    together = {key for graph in found for key in graph}
    return tried if len(together) == sum(len(graph) for graph in found) else values


def _recipe(value: Any, graphs: dict[int, dict[Any, Any]]) -> Any:
    if not hasattr(value, "__dask_graph__") or has_futures(value):
        return value
    from dask.optimization import cull
    from dask.utils import ensure_dict

    number = id(value.__dask_graph__())
    if number not in graphs:
        graphs[number] = dict(ensure_dict(value.__dask_graph__()))
    return Recipe(dict(cull(graphs[number], [value.key])[0]), value.key)
