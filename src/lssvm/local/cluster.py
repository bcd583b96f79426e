"""Parts on the workers of a Dask cluster: every part is a task, what comes back is its model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lssvm._core.blocks import one_blas_thread
from lssvm._core.device import find_device
from lssvm.data.cluster import Part, map_in_order
from lssvm.local.device import DeviceParts
from lssvm.local.engine import HostParts, LeafTask, PartsEngine
from lssvm.local.leaf import Leaf, fit_leaf


@dataclass(frozen=True)
class ClusterParts(HostParts):
    """Parts as tasks of Dask; everything else on threads of this machine.

    Parameters
    ----------
    threads : int, default=1
        How many threads compute.
    client : Client or None, default=None
        None is Dask's own choice.

    Notes
    -----
    The rows of a part go to a worker, 4 d + 8 k + 8 bytes each, and come back with 16 k more: for a
    part of L rows L^2 operations or more are done with every number that is moved. Parts of a
    worker that dies are given to others.

    Examples
    --------
    >>> from lssvm.local import ClusterParts
    >>> ClusterParts(2).side_by_side
    2
    """

    client: Any = None

    def fit(
        self,
        tasks: Sequence[LeafTask],
        *,
        tries: int = 1,
        stop: Callable[[], bool] = lambda: False,
        finished: Callable[[int, Leaf], None] = lambda number, leaf: None,
        on_error: Callable[[], None] | None = None,
        draft: bool = False,
        held_out: bool = True,
    ) -> list[Leaf]:
        """Fit exact models on the workers; ``stop`` is called before each is sent."""
        parts = (
            Part(number, 0, len(task.rows.X), (task, 1 if stop() else tries, draft, held_out))
            for number, task in enumerate(tasks)
        )
        leaves = []
        for number, leaf in enumerate(map_in_order(parts, _fit, self.client)):
            finished(number, leaf)
            leaves.append(leaf)
        return leaves


def _fit(part: Part) -> Leaf:
    task, tries, draft, held_out = part.values
    kind = {"draft": draft, "held_out": held_out}
    with one_blas_thread():
        return fit_leaf(task.rows, task.distance, task.start, tries=tries, **kind)


def find_engine(name: Any, data: Any, threads: int, limit: int | None) -> PartsEngine:
    """Return who computes parts: threads, a device, or the cluster that has the data.

    Parameters
    ----------
    name : str, torch.device or None
        As the parameter ``device`` of an estimator names it.
    data : Dataset or None
        Rows that the parts are made of, where these are not in memory.
    threads : int
        Of this machine.
    limit : int or None
        Bytes that may be used on a device.
    """
    place = find_device(name, None, dispatch=False)
    if place is not None:
        return DeviceParts(replace(place, limit=limit))
    if data is not None and data.distributed:
        return ClusterParts(threads, data.client)
    return HostParts(threads)
