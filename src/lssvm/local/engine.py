"""Where leaves are computed: threads of this machine, the workers of a cluster, or a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray, tie_scores
from lssvm._core.blocks import one_blas_thread, run_blocks, slices
from lssvm.backends.device import Backend
from lssvm.data.cluster import Part, map_in_order
from lssvm.data.dataset import Dataset
from lssvm.kernels.base import Kernel
from lssvm.kernels.metric import (
    Metric,
    Shape,
    gradient_rows,
    mean_outer_product,
    slopes_of,
    squared_slopes,
)
from lssvm.kernels.radial import KERNEL_OF, Distance
from lssvm.kernels.warp import SquaredSlopes
from lssvm.local.leaf import Leaf, Rows, Setting, fit_leaf
from lssvm.solvers import ExactFit

if TYPE_CHECKING:
    from lssvm.local.model import Tree

_ROWS = 1024, 2**14  # rows of a block of outputs: every block prepares the basis anew


@dataclass(frozen=True, eq=False)
class LeafTask:
    """An exact model to be fitted.

    Attributes
    ----------
    rows : Rows
        To be fitted to.
    distance : {"sqeuclidean", "euclidean", "cityblock"}
        What the kernel is a function of.
    start : Setting
        Where the search for a better setting begins.
    near, pairs : optional
        See `fit_leaf`.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import LeafTask, Rows, Setting
    >>> rows = Rows(np.zeros((3, 1)), np.ones((3, 1)), np.ones(3))
    >>> LeafTask(rows, "euclidean", Setting(1.0, 0.5)).distance
    'euclidean'
    """

    rows: Rows
    distance: Distance
    start: Setting
    near: ExactFit | None = None
    pairs: int | None = None


@dataclass(frozen=True, eq=False)
class SlopesAt:
    """Leaves, and at which of their rows slopes are taken.

    Attributes
    ----------
    leaves : sequence of Leaf
    distance : {"sqeuclidean", "euclidean", "cityblock"}
        What the kernel is a function of.
    metric : Metric
        That the rows were mapped by: slopes are with respect to its inputs.
    step : int
        Slopes are taken at every step-th row of a leaf.
    ties : bool
        Whether features of few values have one-sided slopes.
    """

    leaves: Sequence[Leaf]
    distance: Distance
    metric: Metric
    step: int
    ties: bool = True


@dataclass(frozen=True)
class LeafEngine:
    """What computes leaves: here threads of one BLAS thread each.

    `ClusterLeaves` and `DeviceLeaves` replace what other machines do in another way. A single leaf
    keeps the threads of BLAS.

    Parameters
    ----------
    threads : int, default=1
        How many threads compute.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import LeafEngine, LeafTask, Rows, Setting
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> task = LeafTask(Rows(X, np.sin(X), np.ones(30)), "euclidean", Setting(10.0, 0.5))
    >>> len(LeafEngine(2).fit([task, task]))
    2
    >>> LeafEngine(4).n_workers, LeafEngine(4).single_threaded()
    (4, LeafEngine(threads=1))
    """

    threads: int = 1

    @property
    def n_workers(self) -> int:
        """Leaves that are computed at the same time."""
        return self.threads

    @property
    def n_configurations(self) -> int:
        """Configurations that may be computed at the same time, each by `single_threaded`."""
        return self.n_workers

    @property
    def speed(self) -> float:
        """How many times as fast as two cores, which presets are made for, it solves systems."""
        return 1.0

    def largest_leaf(self, budget: int) -> int:
        """Return the rows of the largest leaf: two matrices on every thread, half the budget.

        Parameters
        ----------
        budget : int
            Memory budget in bytes.
        """
        return int(np.sqrt(budget / 2 / (16.0 * self.threads)))

    def single_threaded(self) -> LeafEngine:
        """Return the engine of one of several configurations that are computed at the same time."""
        return ONE_THREAD

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
        """Fit exact models, each with at most ``tries`` settings.

        Parameters
        ----------
        tasks : sequence of LeafTask
            What is fitted, a leaf each.
        tries : int, default=1
            Settings that a leaf may try.
        stop : callable, optional
            Called before further settings are tried; true ends the search.
        finished : callable, optional
            Called with the number of a task and its model as soon as it is there.
        on_error : callable, optional
            Called without arguments at the first error, Ctrl-C among them, before work that has
            begun is waited for.
        draft, held_out : bool
            See `fit_leaf`.
        """
        inside = self.threads if len(tasks) == 1 else 1

        def work(item: tuple[int, LeafTask]) -> Leaf:
            number, task = item
            leaf = fit_leaf(
                task.rows,
                task.distance,
                task.start,
                near=task.near,
                pairs=task.pairs,
                tries=1 if stop() else tries,
                stop=stop,
                threads=inside,
                draft=draft,
                held_out=held_out,
            )
            finished(number, leaf)
            return leaf

        return run_blocks(work, enumerate(tasks), self.threads, on_error=on_error)

    def outputs(
        self, jobs: Sequence[tuple[Leaf, FloatArray]], distance: Distance
    ) -> list[FloatArray]:
        """Return the outputs (n, k) of every leaf for its own rows (n, d).

        Parameters
        ----------
        jobs : sequence of (Leaf, array of shape (n, d))
            A leaf and its mapped rows.
        distance : {"sqeuclidean", "euclidean", "cityblock"}
            What the kernel is a function of.
        """
        rows = int(np.clip(-(-sum(len(X) for _, X in jobs) // (2 * self.threads)), *_ROWS))
        blocks = [(i, b) for i, (_, X) in enumerate(jobs) for b in slices(len(X), rows)]
        out = [np.empty((len(X), leaf.fit.coef.shape[1])) for leaf, X in jobs]
        pairs = sum(len(X) * len(leaf.rows.X) for leaf, X in jobs)

        def work(item: tuple[int, slice]) -> None:
            i, block = item
            leaf, X = jobs[i]
            out[i][block] = leaf.outputs(X[block], distance, pairs)

        run_blocks(work, blocks, self.threads)
        return out

    def mapped(self, metric: Metric, X: FloatArray) -> FloatArray:
        """Return rows mapped by a metric.

        Parameters
        ----------
        metric : Metric
            What maps them.
        X : array of shape (n, d)
            Rows.
        """
        return metric.apply(X)

    def route(self, tree: Tree, X: FloatArray) -> IntArray:
        """Return the number of the leaf of every row.

        Parameters
        ----------
        tree : Tree
            What splits the space into leaves.
        X : array of shape (n, d)
            Mapped rows.
        """
        return tree.route(X)

    def outer_product(self, at: SlopesAt, shape: Shape) -> FloatArray:
        """Return the sum over leaves of their weight times the mean outer product of slopes.

        Parameters
        ----------
        at : SlopesAt
            The leaves, and the rows at which slopes are taken.
        shape : {"diagonal", "full"}
            Whether the whole matrix is wanted, or its diagonal.
        """
        products = self._slopes(partial(mean_outer_product, shape=shape), at)
        weights = [leaf.rows.weight.sum() for leaf in at.leaves]
        return np.asarray(np.sum([w * M for w, M in zip(weights, products, strict=True)], axis=0))

    def gradient_rows(self, at: SlopesAt) -> FloatArray:
        """Return the slopes (r, d) whose outer products `outer_product` adds up."""
        return np.concatenate(self._slopes(gradient_rows, at))

    def squared_slopes(self, at: SlopesAt) -> SquaredSlopes:
        """Return squared slopes along the features, towards both sides."""
        return SquaredSlopes.joined(self._slopes(squared_slopes, at))

    def slopes(
        self,
        kernel: Kernel,
        X: FloatArray,
        Z: FloatArray,
        coef: FloatArray,
        metric: Metric,
        rows_in_Z: IntArray | None,
    ) -> list[FloatArray]:
        """Return the slopes (n, k, d) of an expansion, of one side or of both; see `slopes_of`."""
        return slopes_of(kernel, X, Z, coef, metric, rows_in_Z)

    def _slopes(self, compute: Callable[..., Any], at: SlopesAt) -> list[Any]:
        """Return what ``compute`` returns for each leaf, on threads of this machine.

        Values that differ by rounding alone are equal: slopes between them would be rounding.
        """

        def work(leaf: Leaf) -> Any:
            Z = tie_scores(leaf.rows.X)
            rows = np.arange(0, len(Z), at.step, dtype=np.intp)
            options = {"metric": at.metric, "weight": leaf.rows.weight[rows]}
            options["slopes_by"] = self.slopes
            kernel = KERNEL_OF[at.distance](leaf.setting.gamma)
            rows_in_Z = rows if at.ties else None
            return compute(kernel, Z[rows], Z, leaf.fit.coef, rows_in_Z=rows_in_Z, **options)

        return run_blocks(work, at.leaves, self.threads)


ONE_THREAD = LeafEngine()
"""Leaves one after the other."""


@dataclass(frozen=True)
class ClusterLeaves(LeafEngine):
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
        for number, leaf in enumerate(map_in_order(sent, _fit_on_worker, self.client)):
            finished(number, leaf)
            leaves.append(leaf)
        return leaves


def _fit_on_worker(part: Part) -> Leaf:
    task, tries, draft, held_out = part.values
    kind = {"tries": tries, "draft": draft, "held_out": held_out}
    with one_blas_thread():
        return fit_leaf(
            task.rows, task.distance, task.start, near=task.near, pairs=task.pairs, **kind
        )


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
        from lssvm.local.device import DeviceLeaves  # which builds on this module

        return DeviceLeaves(backend.device)
    if data is not None and data.distributed:
        return ClusterLeaves(backend.threads, data.client)
    return LeafEngine(backend.threads)
