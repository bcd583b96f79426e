"""Who computes leaves: threads of this machine, or a GPU. Four verbs, the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import run_blocks, slices
from lssvm.kernels import Kernel
from lssvm.kernels.metric import (
    Metric,
    Shape,
    gradient_rows,
    mean_outer_product,
    squared_slopes,
)
from lssvm.kernels.radial import KERNEL_OF, Distance
from lssvm.kernels.warp import SquaredSlopes
from lssvm.local.leaf import Leaf, Rows, Setting, fit_leaf
from lssvm.local.tree import Tree

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
        Where the walk to a better setting begins.

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


class LeafEngine(Protocol):
    """What a local model needs of the machine it is computed on.

    Attributes
    ----------
    n_workers : int
        Configurations that may be computed at the same time, each by `single_threaded`.
    speed : float
        Operations that it does in the time in which two cores do one.

    Examples
    --------
    >>> from lssvm.local import HostLeaves
    >>> HostLeaves(4).n_workers, HostLeaves(4).single_threaded()
    (4, HostLeaves(threads=1))
    """

    @property
    def n_workers(self) -> int:
        """Return how many configurations may be computed at the same time."""

    @property
    def speed(self) -> float:
        """Return how many times as fast as two cores the engine solves systems."""

    def largest_leaf(self, budget: int) -> int:
        """Return the rows of the largest leaf that fits into a budget of bytes.

        Parameters
        ----------
        budget : int
            Memory budget in bytes.
        """

    def single_threaded(self) -> LeafEngine:
        """Return the engine of one of several configurations that are computed at the same time."""

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

        ``finished`` is called with every model as soon as it is there; ``on_error`` at the first
        error, Ctrl-C among them, before work that has begun is waited for.

        Parameters
        ----------
        tasks : sequence of LeafTask
            What is fitted, a leaf each.
        tries : int, default=1
            Settings that a leaf may try.
        stop : callable, optional
            Asked before further settings are tried; true ends the walks.
        finished : callable, optional
            Called with the number of a task and its model.
        on_error : callable, optional
            Called without arguments at the first error.
        draft, held_out : bool
            See `fit_leaf`.
        """

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

    def route(self, tree: Tree, X: FloatArray) -> IntArray:
        """Return the number of the leaf of every row.

        Parameters
        ----------
        tree : Tree
            What splits the space into leaves.
        X : array of shape (n, d)
            Mapped rows.
        """

    def outer_product(
        self,
        leaves: Sequence[Leaf],
        distance: Distance,
        metric: Metric,
        shape: Shape,
        step: int,
        ties: bool = True,
    ) -> FloatArray:
        """Return the sum over leaves of weighted outer products of slopes.

        Parameters
        ----------
        leaves : sequence of Leaf
            The leaves.
        distance : {"sqeuclidean", "euclidean", "cityblock"}
            What the kernel is a function of.
        metric : Metric
            That the rows were mapped by: slopes are with respect to its inputs.
        shape : {"diagonal", "full"}
            Whether the whole matrix is wanted, or its diagonal.
        step : int
            Slopes are taken at every step-th row of a leaf.
        ties : bool, default=True
            Whether features of few values have one-sided slopes.
        """

    def gradient_rows(
        self,
        leaves: Sequence[Leaf],
        distance: Distance,
        metric: Metric,
        step: int,
        ties: bool = True,
    ) -> FloatArray:
        """Return the slopes (r, d) whose outer products `outer_product` adds up."""

    def squared_slopes(
        self,
        leaves: Sequence[Leaf],
        distance: Distance,
        metric: Metric,
        step: int,
        ties: bool = True,
    ) -> SquaredSlopes:
        """Return squared slopes along the features, towards both sides, at every step-th row."""


class HostSlopes:
    """Slopes of leaves on the threads of this machine."""

    threads: int = 1

    def outer_product(
        self,
        leaves: Sequence[Leaf],
        distance: Distance,
        metric: Metric,
        shape: Shape,
        step: int,
        ties: bool = True,
    ) -> FloatArray:
        """Return the sum over leaves of their weight times the mean outer product of slopes."""

        def work(leaf: Leaf) -> FloatArray:
            kernel, Z, coef, own, weight = _at_rows(leaf, distance, step)
            M = mean_outer_product(
                kernel,
                Z[own],
                Z,
                coef,
                metric=metric,
                shape=shape,
                weight=weight,
                own=own if ties else None,
            )
            return np.asarray(leaf.rows.weight.sum() * M)

        return np.asarray(np.sum(run_blocks(work, leaves, self.threads), axis=0))

    def gradient_rows(
        self,
        leaves: Sequence[Leaf],
        distance: Distance,
        metric: Metric,
        step: int,
        ties: bool = True,
    ) -> FloatArray:
        """Return the slopes (r, d) whose outer products `outer_product` adds up."""

        def work(leaf: Leaf) -> FloatArray:
            kernel, Z, coef, own, weight = _at_rows(leaf, distance, step)
            return gradient_rows(
                kernel, Z[own], Z, coef, metric=metric, weight=weight, own=own if ties else None
            )

        return np.concatenate(run_blocks(work, leaves, self.threads))

    def squared_slopes(
        self,
        leaves: Sequence[Leaf],
        distance: Distance,
        metric: Metric,
        step: int,
        ties: bool = True,
    ) -> SquaredSlopes:
        """Return squared slopes along the features, towards both sides, at every step-th row."""

        def work(leaf: Leaf) -> SquaredSlopes:
            kernel, Z, coef, own, weight = _at_rows(leaf, distance, step)
            return squared_slopes(
                kernel, Z[own], Z, coef, metric=metric, weight=weight, own=own if ties else None
            )

        return SquaredSlopes.joined(run_blocks(work, leaves, self.threads))


def _at_rows(
    leaf: Leaf, distance: Distance, step: int
) -> tuple[Kernel, FloatArray, FloatArray, IntArray, FloatArray]:
    """Return kernel, rows, coefficients, every step-th row number and the weights of those."""
    Z = np.asarray(leaf.rows.X, dtype=np.float64)
    own = np.arange(0, len(Z), step, dtype=np.intp)
    return KERNEL_OF[distance](leaf.setting.gamma), Z, leaf.fit.coef, own, leaf.rows.weight[own]


@dataclass(frozen=True)
class HostLeaves(HostSlopes):
    """Leaves on threads of one BLAS thread each; a single leaf keeps the threads of BLAS.

    Parameters
    ----------
    threads : int, default=1
        How many threads compute.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import HostLeaves, LeafTask, Rows, Setting
    >>> X = np.linspace(-3, 3, 30)[:, None]
    >>> task = LeafTask(Rows(X, np.sin(X), np.ones(30)), "euclidean", Setting(10.0, 0.5))
    >>> len(HostLeaves(2).fit([task, task]))
    2
    """

    threads: int = 1

    @property
    def n_workers(self) -> int:
        """Return the number of threads."""
        return self.threads

    @property
    def speed(self) -> float:
        """Return 1: presets are made for threads of two cores."""
        return 1.0

    def largest_leaf(self, budget: int) -> int:
        """Return the rows of the largest leaf: two matrices on every thread, half the budget."""
        return int(np.sqrt(budget / 2 / (16.0 * self.threads)))

    def single_threaded(self) -> HostLeaves:
        """Return the engine of one thread."""
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
        """Fit exact models; see `fit_leaf`."""
        inside = self.threads if len(tasks) == 1 else 1

        def work(item: tuple[int, LeafTask]) -> Leaf:
            number, task = item
            leaf = fit_leaf(
                task.rows,
                task.distance,
                task.start,
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
        """Return the outputs of every leaf for its own rows, in blocks on all threads."""
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

    def route(self, tree: Tree, X: FloatArray) -> IntArray:
        """Return the number of the leaf of every row."""
        return tree.route(X)


ONE_THREAD = HostLeaves()
"""Leaves one after the other."""
