"""Leaves on the workers of a Dask cluster: every leaf is a task, what comes back is its model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lssvm._core.blocks import one_blas_thread
from lssvm.backends.device import Backend
from lssvm.data.cluster import Part, map_in_order
from lssvm.data.dataset import Dataset
from lssvm.local.device import DeviceLeaves
from lssvm.local.engine import HostLeaves, LeafEngine, LeafTask
from lssvm.local.leaf import Leaf, fit_leaf


@dataclass(frozen=True)
class ClusterLeaves(HostLeaves):
    """Leaves as tasks of Dask; everything else on threads of this machine.

    Parameters
    ----------
    threads : int, default=1
        How many threads compute.
    client : Client or None, default=None
        None is Dask's own choice.

    Notes
    -----
    The rows of a leaf go to a worker, 4 d + 8 k + 8 bytes each, and come back with 16 k more: for a
    leaf of L rows L^2 operations or more are done with every number that is moved. Leaves of a
    worker that dies are given to others.

    Examples
    --------
    >>> from lssvm.local import ClusterLeaves
    >>> ClusterLeaves(2).n_workers
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
        sent = (
            Part(number, 0, len(task.rows.X), (task, 1 if stop() else tries, draft, held_out))
            for number, task in enumerate(tasks)
        )
        leaves = []
        for number, leaf in enumerate(map_in_order(sent, _fit, self.client)):
            finished(number, leaf)
            leaves.append(leaf)
        return leaves


def _fit(part: Part) -> Leaf:
    task, tries, draft, held_out = part.values
    kind = {"draft": draft, "held_out": held_out}
    with one_blas_thread():
        return fit_leaf(task.rows, task.distance, task.start, tries=tries, **kind)


def find_engine(backend: Backend, data: Dataset | None = None) -> LeafEngine:
    """Return what computes leaves: a device, the cluster that has the data, or threads.

    Parameters
    ----------
    backend : Backend
        The host, or a device.
    data : Dataset or None
        Rows of the leaves, where these are not in memory.
    """
    if backend.device is not None:
        return DeviceLeaves(backend.device)
    if data is not None and data.distributed:
        return ClusterLeaves(backend.threads, data.client)
    return HostLeaves(backend.threads)
