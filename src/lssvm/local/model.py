"""Exact models in the leaves of one or more partitions, averaged."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.kernels.base import Expansion
from lssvm.kernels.radial import KERNEL_OF, Distance
from lssvm.local.engine import ONE_THREAD, LeafEngine, LeafTask
from lssvm.local.leaf import Leaf, Rows, Setting

_DRAFTS = 4  # of the same rows, before compiled loops are worth their loading
_TUNED = 10  # one of so many leaves tries settings for all of them
_GROWN = 1.5  # times the leaf size beyond which a leaf is split after an update
_MANY_NODES = 200  # of a tree, from which rows may go down together, level by level,
_NODE = 5000  # where a visit of a node takes as long as so many products
_LARGEST = 2  # equal rows that no tree separates: at most so many times the leaf size are used


@dataclass(frozen=True, eq=False)
class Partition:
    """A tree with the exact models of its leaves.

    Attributes
    ----------
    tree : Tree
        Which leaf a row belongs to.
    leaves : tuple of Leaf
        The models, in the order of the tree's leaves.
    rows : tuple of int arrays
        Row numbers of the training data in every leaf; empty after an update.

    Examples
    --------
    >>> from lssvm.local import Partition
    >>> [field for field in Partition.__dataclass_fields__]
    ['tree', 'leaves', 'rows']
    """

    tree: Tree
    leaves: tuple[Leaf, ...]
    rows: tuple[IntArray, ...] = ()

    def leave_one_out(self, n: int) -> FloatArray:
        """Return the leave-one-out outputs of the training rows, (n, k); NaN where unknown.

        Parameters
        ----------
        n : int
            Number of training rows.
        """
        out = np.full((n, self.leaves[0].fit.coef.shape[1]), np.nan)
        for leaf, rows in zip(self.leaves, self.rows, strict=True):
            out[rows] = leaf.fit.left_out
        return out


@dataclass(frozen=True, eq=False)
class LocalModel:
    """Exact dual models in the leaves of one or more partitions of the rows.

    Attributes
    ----------
    distance : {"sqeuclidean", "euclidean", "cityblock"}
        What the kernel is a function of.
    partitions : tuple of Partition
        Outputs are their mean.
    leaf_size : int
        Rows of a leaf at most.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import Rows, Setting, fit_local
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> rows = Rows(X, np.sin(X), np.ones(200))
    >>> model = fit_local(rows, "euclidean", Setting(100.0, 0.5), leaf_size=50)
    >>> len(model.leaves), bool(np.abs(model.outputs(X) - np.sin(X)).max() < 0.1)
    (4, True)
    """

    distance: Distance
    partitions: tuple[Partition, ...]
    leaf_size: int

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The leaves of the first partition, which have every row once."""
        return self.partitions[0].leaves

    @property
    def n_outputs(self) -> int:
        """Number of outputs, k."""
        return int(self.leaves[0].fit.coef.shape[1])

    @property
    def kernel_name(self) -> str:
        """The name of the kernel."""
        return KERNEL_OF[self.distance].name

    @property
    def n_basis(self) -> int:
        """Number of rows that one of the partitions keeps."""
        return sum(len(leaf.rows.X) for leaf in self.leaves)

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return int(self.leaves[0].rows.X.shape[1])

    def expansions(self, partition: Partition) -> list[Expansion]:
        """Return the kernel expansions of the leaves of a partition.

        Parameters
        ----------
        partition : Partition
            One of the model's.
        """
        return [self.expansion(leaf) for leaf in partition.leaves]

    def expansion(self, leaf: Leaf) -> Expansion:
        """Return the kernel expansion of a leaf, its rows in double precision.

        Parameters
        ----------
        leaf : Leaf
            One of the model's.
        """
        return Expansion(
            KERNEL_OF[self.distance](leaf.setting.gamma),
            np.asarray(leaf.rows.X, dtype=np.float64),
            leaf.fit.coef,
            leaf.fit.intercept,
            np.full(self.n_outputs, leaf.setting.C),
        )

    def outputs(self, X: FloatArray, *, engine: LeafEngine = ONE_THREAD) -> FloatArray:
        """Return the outputs (n, k) for mapped rows X (n, d).

        Parameters
        ----------
        X : array of shape (n, d)
            Mapped rows.
        engine : LeafEngine, optional
            Where it is computed; by default on one thread.
        """
        out = np.zeros((len(X), self.n_outputs))
        for partition in self.partitions:
            assigned = partition.tree.split(engine.route(partition.tree, X))
            jobs = [(leaf, X[rows]) for leaf, rows in zip(partition.leaves, assigned, strict=True)]
            for rows, values in zip(assigned, engine.outputs(jobs, self.distance), strict=True):
                out[rows] += values / len(self.partitions)
        return out

    def leave_one_out(self, n: int) -> FloatArray:
        """Return the leave-one-out outputs of the training rows, shape (n, k).

        Averages over the trees that know a row: of very many equal rows each uses some.

        Parameters
        ----------
        n : int
            Number of training rows.
        """
        outputs = np.array([one.leave_one_out(n) for one in self.partitions])
        known = np.isfinite(outputs).sum(axis=0)
        return np.where(known > 0, np.nansum(outputs, axis=0) / np.maximum(known, 1), np.nan)

    def squared_error(
        self, X: FloatArray | None, n: int, nearby: int | Sequence[int] = 0
    ) -> FloatArray:
        """Return mean squared leave-one-out errors around rows, (n, 1), (n, k) or (c, n, k).

        Parameters
        ----------
        X : array of shape (n, d) or None
            Mapped rows; None for the training rows, each without itself.
        n : int
            Number of rows.
        nearby : int or sequence of c ints, default=0
            Training rows whose errors are averaged, for every output; 0: the error of the leaf of
            a row, all outputs together.
        """
        shape = (n, self.n_outputs if nearby else 1)
        total = np.zeros(shape if isinstance(nearby, int) else (len(nearby), *shape))
        for partition in self.partitions:
            errors = np.full(total.shape, np.nan)
            assigned = partition.rows if X is None else partition.tree.rows_by_leaf(X)
            for leaf, rows in zip(partition.leaves, assigned, strict=True):
                if len(rows) and nearby:
                    mapped = None if X is None else X[rows]
                    errors[..., rows, :] = leaf.nearby_error(mapped, self.distance, nearby)
                else:
                    errors[..., rows, :] = leaf.error
            total += errors
        return total / len(self.partitions)

    def stripped(self, errors: bool = False) -> LocalModel:
        """Return what prediction needs: without targets, weights and leave-one-out outputs.

        Parameters
        ----------
        errors : bool, default=False
            Whether the squares of the leave-one-out errors are kept.
        """
        return replace(
            self,
            partitions=tuple(
                Partition(one.tree, tuple(leaf.stripped(errors) for leaf in one.leaves))
                for one in self.partitions
            ),
        )

    def learn(self, new: Rows, *, engine: LeafEngine = ONE_THREAD) -> LocalModel:
        """Return the model with more rows: leaves that got some are solved again.

        C, gamma and the tree stay; a leaf that grew past one and a half times its size is split.

        Parameters
        ----------
        new : Rows
            Mapped, as the model's own are.
        engine : LeafEngine, optional
            Where it is computed; by default on one thread.
        """
        return self._changed(lambda one: self._with(one, new, engine))

    def forget(self, removed: Rows, *, engine: LeafEngine = ONE_THREAD) -> LocalModel:
        """Return the model without some of its rows (found by inputs and targets).

        Parameters
        ----------
        removed : Rows
            Mapped, as the model's own are.
        engine : LeafEngine, optional
            Where it is computed; by default on one thread.
        """
        return self._changed(lambda one: self._without(one, removed, engine))

    def _changed(self, change: Callable[[Partition], Partition]) -> LocalModel:
        return replace(self, partitions=tuple(change(one) for one in self.partitions))

    def _solved_again(
        self, partition: Partition, changed: dict[int, Rows], engine: LeafEngine
    ) -> list[Leaf]:
        """Return the leaves of a partition, some of them solved with other rows."""
        leaves = list(partition.leaves)
        tasks = [LeafTask(rows, self.distance, leaves[p].setting) for p, rows in changed.items()]
        for p, leaf in zip(changed, engine.fit(tasks), strict=True):
            leaves[p] = leaf
        return leaves

    def _with(self, partition: Partition, new: Rows, engine: LeafEngine) -> Partition:
        changed = {
            p: partition.leaves[p].rows.joined(new.take(m))
            for p, m in enumerate(partition.tree.rows_by_leaf(new.X))
            if len(m)
        }
        tree, leaves = partition.tree, self._solved_again(partition, changed, engine)
        for p in range(len(leaves)):
            if len(leaves[p].rows.X) > _GROWN * self.leaf_size:
                tree, leaves = self._split(tree, leaves, p, engine)
        return Partition(tree, tuple(leaves))

    def _split(
        self, tree: Tree, leaves: list[Leaf], leaf: int, engine: LeafEngine
    ) -> tuple[Tree, list[Leaf]]:
        """Replace a leaf by the leaves of a tree of its rows."""
        rows, setting = leaves[leaf].rows, leaves[leaf].setting
        below = grow_tree(rows.X, self.leaf_size)
        if below.n_leaves == 1:
            return tree, leaves
        shift, first = len(tree.thresholds), len(leaves)
        # Its first leaf takes the number of the leaf it replaces, the others come at the end.
        number = {0: leaf} | {p: first + p - 1 for p in range(1, below.n_leaves)}
        inner = np.where(below.children >= 0, below.children + shift, 0)
        inner = np.where(
            below.children >= 0, inner, -1 - np.vectorize(number.get)(-1 - below.children, 0)
        )
        children = np.where(tree.children == -1 - leaf, shift, tree.children)
        new = engine.fit(
            [LeafTask(rows.take(m), self.distance, setting) for m in below.rows_by_leaf(rows.X)]
        )
        leaves = leaves.copy()
        leaves[leaf] = new[0]
        return Tree(
            np.vstack([tree.directions.reshape(-1, rows.X.shape[1]), below.directions]),
            np.concatenate([tree.thresholds, below.thresholds]),
            np.vstack([children.reshape(-1, 2), inner]).astype(np.intp),
            tree.n_leaves + below.n_leaves - 1,
        ), leaves + new[1:]

    def _without(self, partition: Partition, removed: Rows, engine: LeafEngine) -> Partition:
        """Take the weight of rows away; an emptied leaf becomes one with its neighbour."""
        kept: dict[int, _KeptRows] = {}

        def taken(leaf: int, row: Rows) -> bool:
            if leaf not in kept:
                kept[leaf] = _KeptRows(partition.leaves[leaf].rows)
            return kept[leaf].take(row)

        changed: set[int] = set()
        for i, first in enumerate(partition.tree.route(removed.X).tolist()):
            # Rows that are kept in single precision may be on the other side of a threshold.
            row = removed.take(np.array([i], dtype=np.intp))
            others = (p for p in range(len(partition.leaves)) if p != first)
            leaf = next((p for p in itertools.chain([first], others) if taken(p, row)), None)
            if leaf is None:
                raise InvalidInputError(
                    "A row that should be forgotten is not among the rows of the model: give rows "
                    "with the inputs, targets and weights that they were learned with."
                )
            changed.add(leaf)
        left = {leaf: kept[leaf].left() for leaf in sorted(changed)}
        empty = [leaf for leaf, rows in left.items() if rows is None]
        if len(empty) == len(partition.leaves):
            raise InvalidInputError(
                "Forgetting these rows would leave none: keep at least one, or fit again."
            )
        remaining = {leaf: rows for leaf, rows in left.items() if rows is not None}
        tree, leaves = partition.tree, self._solved_again(partition, remaining, engine)
        for leaf in reversed(empty):
            del leaves[leaf]
            tree = tree.without(leaf)
        return Partition(tree, tuple(leaves))


class _KeptRows:
    """The rows of a leaf by their inputs and targets, with the weight that is left of each."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.weight = rows, rows.weight.copy()
        self.places: dict[bytes, list[int]] = {}
        for i, key in enumerate(self._keys(rows)):
            self.places.setdefault(key, []).append(i)

    def _keys(self, rows: Rows) -> list[bytes]:
        X = rows.X.astype(self.rows.X.dtype).astype(np.float64)
        return [row.tobytes() for row in np.ascontiguousarray(np.column_stack([X, rows.Y]) + 0.0)]

    def take(self, row: Rows) -> bool:
        """Take the weight of a row away, from copies too; return whether there was as much."""
        at, lost = self.places.get(self._keys(row)[0], []), float(row.weight[0])
        if not at or self.weight[at].sum() < lost * (1.0 - 1e-9):
            return False
        # Of copies first the one of the same weight, so that the others stay what they are.
        for i in sorted(at, key=lambda i: (abs(self.weight[i] - lost) > 1e-9 * lost, i)):
            part = min(lost, float(self.weight[i]))
            self.weight[i] -= part
            lost -= part
        return True

    def left(self) -> Rows | None:
        """Return the rows that are left, or None."""
        kept = np.flatnonzero(self.weight > 1e-9 * self.rows.weight)
        return replace(self.rows, weight=self.weight).take(kept) if len(kept) else None


def fit_local(
    rows: Rows,
    distance: Distance,
    start: Setting,
    *,
    leaf_size: int,
    n_trees: int = 1,
    tries: int = 1,
    random: np.random.Generator | None = None,
    stop: Callable[[], bool] = lambda: False,
    engine: LeafEngine = ONE_THREAD,
    draft: bool = False,
    held_out: bool = True,
) -> LocalModel:
    """Fit exact models in leaves; C and gamma are chosen on some of them for all.

    Parameters
    ----------
    rows : Rows
        Inputs mapped by the metric.
    distance : {"sqeuclidean", "euclidean", "cityblock"}
        What the kernel is a function of.
    start : Setting
        Where the search of every leaf starts.
    leaf_size : int
        Rows of a leaf at most; up to this number of rows there is one leaf, the exact model.
    n_trees : int, default=1
        Partitions that are averaged; always one where there is one leaf.
    tries : int, default=1
        Settings that a leaf tries, see `fit_leaf`.
    random : Generator, optional
        For the directions of further trees.
    stop : callable, optional
        Called during the search; True keeps the remaining leaves at the start.
    engine : LeafEngine
        Where it is computed: `LeafEngine` (threads) or `DeviceLeaves` (a GPU).
    draft, held_out : bool
        See `fit_leaf`.

    Returns
    -------
    LocalModel

    Notes
    -----
    n L^2 / 3 multiplications and additions for leaves of L rows, 2 L^2 numbers per thread. Every
    tenth leaf tries settings; the others take the geometric mean of what these chose.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import Rows, Setting, fit_local
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = fit_local(Rows(X, np.sin(X), np.ones(100)), "euclidean", Setting(10.0, 0.5),
    ...                   leaf_size=60, n_trees=2, random=np.random.default_rng(0))
    >>> model.leave_one_out(100).shape
    (100, 1)
    """
    job = LocalJob(rows, distance, start, leaf_size, n_trees)
    more: dict[str, Any] = {"draft": draft, "held_out": held_out}
    return fit_local_models([job], tries=tries, random=random, stop=stop, engine=engine, **more)[0]


@dataclass(frozen=True, eq=False)
class LocalJob:
    """Arguments of `fit_local`, so that several can be computed at the same time.

    Attributes
    ----------
    rows : Rows
        Inputs mapped by the metric.
    distance : {"sqeuclidean", "euclidean", "cityblock"}
        What the kernel is a function of.
    start : Setting
        Where the search of every leaf starts.
    leaf_size : int
        Rows of a leaf at most.
    n_trees : int
        Trees that are averaged.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import LocalJob, Rows, Setting
    >>> LocalJob(Rows(np.ones((2, 1)), np.ones((2, 1)), np.ones(2)), "euclidean",
    ...          Setting(1.0, 1.0), 10).n_trees
    1
    """

    rows: Rows
    distance: Distance
    start: Setting
    leaf_size: int
    n_trees: int = 1


def fit_local_models(
    jobs: Sequence[LocalJob],
    *,
    tries: int = 1,
    random: np.random.Generator | None = None,
    stop: Callable[[], bool] = lambda: False,
    engine: LeafEngine = ONE_THREAD,
    finished: Callable[[int, LocalModel], None] = lambda number, model: None,
    on_error: Callable[[], None] | None = None,
    draft: bool = False,
    held_out: bool = True,
) -> list[LocalModel]:
    """Fit several local models, all their leaves on the threads of an engine; see `fit_local`.

    Parameters
    ----------
    jobs : sequence of LocalJob
        One for each model.
    tries, random, stop, engine, draft, held_out
        As for `fit_local`.
    finished : callable, optional
        Called with the number of a job and its model as soon as it is there: what is known when
        later ones are interrupted.
    on_error : callable, optional
        Called at the first error, Ctrl-C among them, before leaves that have begun are waited for.

    Returns
    -------
    list of LocalModel

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import LocalJob, Rows, Setting, fit_local_models
    >>> rows = Rows(np.arange(9.0)[:, None], np.ones((9, 1)), np.ones(9))
    >>> len(fit_local_models([LocalJob(rows, "euclidean", Setting(1.0, 1.0), 5)] * 2))
    2
    """
    random = np.random.default_rng(0) if random is None else random
    planned: list[tuple[int, Tree, list[IntArray]]] = []
    for number, job in enumerate(jobs):
        for t in range(job.n_trees):
            tree = grow_tree(job.rows.X, job.leaf_size, random=random if t else None)
            assigned = tree.split(engine.route(tree, job.rows.X))
            most = _LARGEST * job.leaf_size
            planned.append((number, tree, [_limited(rows, most, random) for rows in assigned]))
            if tree.n_leaves == 1:
                break
    owners = [(t, p) for t, (_, _, assigned) in enumerate(planned) for p in range(len(assigned))]
    # Drafts of the same rows are made again, for every round.
    pairs = (_DRAFTS if draft else 1) * sum(len(r) ** 2 // 2 for *_, leaf in planned for r in leaf)
    tasks = [
        LeafTask(job.rows.take(planned[t][2][p]), job.distance, job.start, pairs=pairs)
        for t, p in owners
        for job in [jobs[planned[t][0]]]
    ]
    leaves: dict[tuple[int, int], Leaf] = {}
    waiting = Counter(planned[t][0] for t, _ in owners)
    models: dict[int, LocalModel] = {}
    lock = Lock()

    def model_of(number: int) -> LocalModel:
        partitions = tuple(
            Partition(tree, tuple(leaves[t, p] for p in range(len(assigned))), tuple(assigned))
            for t, (of, tree, assigned) in enumerate(planned)
            if of == number
        )
        return LocalModel(jobs[number].distance, partitions, jobs[number].leaf_size)

    def take(place: int, leaf: Leaf) -> None:
        number = planned[owners[place][0]][0]
        with lock:
            leaves[owners[place]] = leaf
            waiting[number] -= 1
            last = not waiting[number]
        if last:
            models[number] = model_of(number)
            finished(number, models[number])

    chosen = {
        place
        for t in range(len(planned))
        for place in [i for i, (owner, _) in enumerate(owners) if owner == t][::_TUNED]
    }
    first = [i for i in range(len(tasks)) if tries == 1 or i in chosen]
    engine.fit(
        [tasks[i] for i in first],
        tries=tries,
        stop=stop,
        finished=lambda i, leaf: take(first[i], leaf),
        on_error=on_error,
        draft=draft,
        held_out=held_out,
    )
    rest = [i for i in range(len(tasks)) if i not in set(first)]
    shared = {
        t: middle_setting([leaves[owners[i]] for i in first if owners[i][0] == t])
        for t in {owners[i][0] for i in rest}
    }
    engine.fit(
        [replace(tasks[i], start=shared[owners[i][0]]) for i in rest],
        stop=stop,
        finished=lambda i, leaf: take(rest[i], leaf),
        on_error=on_error,
        draft=draft,
        held_out=held_out,
    )
    return [models[number] for number in range(len(jobs))]


def middle_setting(leaves: Sequence[Leaf]) -> Setting:
    """Return the geometric mean of the settings of leaves."""
    logs = np.log([[leaf.setting.C, leaf.setting.gamma] for leaf in leaves])
    C, gamma = np.exp(logs.mean(axis=0))
    return Setting(float(C), float(gamma), leaves[0].setting.loss)


def _limited(rows: IntArray, size: int, random: np.random.Generator) -> IntArray:
    """Return some of the rows where no tree could make a leaf small enough."""
    if len(rows) <= size:
        return rows
    return np.sort(random.choice(rows, size, replace=False))


# -- trees -----------------------------------------------------------------------------------------

_SAMPLED = 250_000  # rows that a tree is grown from
_LOOKED_AT = 20_000  # rows from which a direction is computed
_WIDE = 256  # features beyond which directions are iterated
_WIDE_ENTRIES = 2**23  # numbers from which they are computed then
_DIRECTIONS = 4  # that a node tries
_ITERATIONS = 8


@dataclass(frozen=True, eq=False)
class Tree:
    """Where a row belongs: left while ``x @ direction <= threshold``, else right.

    Attributes
    ----------
    directions : array of shape (q, d)
        Of the q inner nodes; the first is the root.
    thresholds : array of shape (q,)
        Of the inner nodes.
    children : int array of shape (q, 2)
        Numbers of the nodes below; a leaf p is -1 - p.
    n_leaves : int
        How many leaves there are.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import grow_tree
    >>> tree = grow_tree(np.arange(8.0)[:, None], leaf_size=4)
    >>> tree.route(np.array([[0.0], [7.0], [1000.0]])).tolist()
    [0, 1, 1]
    """

    directions: FloatArray
    thresholds: FloatArray
    children: IntArray
    n_leaves: int

    def route(self, X: FloatArray) -> IntArray:
        """Return the number of the leaf of every row of X (n, d), shape (n,).

        Parameters
        ----------
        X : array of shape (n, d)
            Mapped rows.
        """
        nodes, depth = len(self.thresholds), self.depth
        if nodes > _MANY_NODES and _NODE * nodes > X.size * depth:
            return self._route_by_level(X, depth)
        out = np.zeros(len(X), dtype=np.intp)
        if not nodes:
            return out
        waiting = [(0, np.arange(len(X), dtype=np.intp))]
        while waiting:
            node, rows = waiting.pop()
            right = X[rows] @ self.directions[node] > self.thresholds[node]
            for side, chosen in enumerate((rows[~right], rows[right])):
                child = int(self.children[node, side])
                if child < 0:
                    out[chosen] = -1 - child
                elif len(chosen):
                    waiting.append((child, chosen))
        return out

    def _route_by_level(self, X: FloatArray, depth: int) -> IntArray:
        """Return the leaves of few rows in a tree of many nodes: all rows go down together."""
        node = np.zeros(len(X), dtype=np.intp)
        for _ in range(depth):
            inner = np.flatnonzero(node >= 0)
            at = node[inner]
            along = np.einsum("ij,ij->i", X[inner], self.directions[at])
            node[inner] = self.children[at, (along > self.thresholds[at]).astype(np.intp)]
        return np.asarray(-1 - node)

    @property
    def depth(self) -> int:
        """The most nodes between the root and a leaf, the root among them."""
        level, depth = np.arange(min(1, len(self.thresholds))), 0
        while len(level):
            below, depth = self.children[level].ravel(), depth + 1
            level = below[below >= 0]
        return depth

    def rows_by_leaf(self, X: FloatArray) -> list[IntArray]:
        """Return the row numbers of every leaf.

        Parameters
        ----------
        X : array of shape (n, d)
            Mapped rows.
        """
        return self.split(self.route(X))

    def split(self, leaf: IntArray) -> list[IntArray]:
        """Return the row numbers of every leaf, from the leaf of every row.

        Parameters
        ----------
        leaf : int array of shape (n,)
            Number of the leaf of every row.
        """
        order = np.argsort(leaf, kind="stable").astype(np.intp)
        counts = np.bincount(leaf, minlength=self.n_leaves)
        return np.split(order, np.cumsum(counts)[:-1])

    def without(self, leaf: int) -> Tree:
        """Return the tree in which the neighbour of a leaf takes its place.

        Parameters
        ----------
        leaf : int
            Number of the leaf; those after it count one less.
        """
        nodes: list[int] = []
        children: list[list[int]] = []

        def keep(node: int) -> int:
            if node < 0:
                return node + (-1 - node > leaf)
            left, right = self.children[node].tolist()
            if -1 - leaf in (left, right):
                return keep(right if left == -1 - leaf else left)
            number = len(nodes)
            nodes.append(node)
            children.append([])
            children[number] = [keep(left), keep(right)]
            return number

        keep(0)
        below = np.asarray(children, dtype=np.intp).reshape(-1, 2)
        return Tree(self.directions[nodes], self.thresholds[nodes], below, self.n_leaves - 1)


def grow_tree(X: FloatArray, leaf_size: int, *, random: np.random.Generator | None = None) -> Tree:
    """Split rows into leaves of about equal size, none larger than ``leaf_size`` where possible.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows, mapped by the metric.
    leaf_size : int
        Rows of a leaf at most.
    random : Generator, optional
        None splits along the direction of most variance. A generator draws directions in proportion
        to the spread of the rows along them: another tree each time.

    Returns
    -------
    Tree

    Notes
    -----
    A node of n rows holds q = ceil(n / leaf_size) leaves, q // 2 of them on its left: the threshold
    is the median where q is even. Equal rows are never separated; a leaf of equal rows only may
    therefore stay larger than ``leaf_size``. Of more than 250,000 rows every q-th is looked at:
    leaves then vary a little in size.

    O(n d^2 log(n / leaf_size)) time, of more than 256 features O(n d log(n / leaf_size)).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import grow_tree
    >>> X = np.random.default_rng(0).normal(size=(900, 2))
    >>> [len(rows) for rows in grow_tree(X, 300).rows_by_leaf(X)]
    [300, 300, 300]
    """
    if len(X) > _SAMPLED:
        step = -(-len(X) // _SAMPLED)
        leaf_size, X = max(1, leaf_size // step), X[::step]
    directions: list[FloatArray] = []
    thresholds: list[float] = []
    children: list[list[int]] = []
    n_leaves = 0
    # (rows, node above or None, side of it)
    waiting: list[tuple[IntArray, int | None, int]] = [(np.arange(len(X), dtype=np.intp), None, 0)]
    while waiting:
        rows, above, side = waiting.pop()
        split = _split(X, rows, leaf_size, random)
        if split is None:
            number, n_leaves = -1 - n_leaves, n_leaves + 1
        else:
            number = len(thresholds)
            direction, threshold, right = split
            directions.append(direction)
            thresholds.append(threshold)
            children.append([0, 0])
            waiting += [(rows[right], number, 1), (rows[~right], number, 0)]
        if above is not None:
            children[above][side] = number
    d = X.shape[1]
    return Tree(
        np.asarray(directions, dtype=np.float64).reshape(-1, d),
        np.asarray(thresholds, dtype=np.float64),
        np.asarray(children, dtype=np.intp).reshape(-1, 2),
        n_leaves,
    )


def _split(
    X: FloatArray, rows: IntArray, leaf_size: int, random: np.random.Generator | None
) -> tuple[FloatArray, float, BoolArray] | None:
    """Return (direction, threshold, which rows go right), or None where a leaf is small enough."""
    n = len(rows)
    leaves = -(-n // max(leaf_size, 1))
    if leaves < 2:
        return None
    tried = _directions(X, rows, random)
    for direction in tried:
        # A sign that does not depend on the library that found the vector.
        direction = direction * (1.0 if direction[np.argmax(np.abs(direction))] > 0 else -1.0)
        along = X[rows] @ direction
        threshold = _between(along, n * (leaves // 2) // leaves)
        if threshold is not None:
            return direction, threshold, along > threshold
    return None


def _directions(
    X: FloatArray, rows: IntArray, random: np.random.Generator | None
) -> list[FloatArray]:
    """Return the directions of most variance of some rows, the first at random if one is given."""
    wide = X.shape[1] > _WIDE
    most = max(_WIDE_ENTRIES // X.shape[1], 4 * _DIRECTIONS) if wide else _LOOKED_AT
    looked = rows if len(rows) <= most else rows[:: -(-len(rows) // most)]
    spread = X[looked] - X[looked].mean(axis=0)
    if wide:
        tried = list(_iterated(spread))
        mixed = None if random is None else random.normal(size=len(spread)) @ spread
    else:
        values, vectors = np.linalg.eigh(spread.T @ spread)
        root = np.sqrt(np.maximum(values, 0.0))
        tried = list(vectors[:, ::-1].T[:_DIRECTIONS])
        mixed = None if random is None else vectors @ (root * random.normal(size=len(root)))
    norm = 0.0 if mixed is None else float(np.linalg.norm(mixed))
    return tried if mixed is None or norm == 0 else [mixed / norm, *tried]


def _iterated(spread: FloatArray) -> FloatArray:
    """Return directions of much variance of centred rows (m, d), as rows: subspace iteration.

    It begins with rows, so that the order of the features changes nothing.
    """
    basis = spread[:: -(-len(spread) // (2 * _DIRECTIONS))].T
    for _ in range(_ITERATIONS):
        basis = spread.T @ (spread @ np.linalg.qr(basis)[0])
    basis = np.linalg.qr(basis)[0]
    right = np.linalg.svd(spread @ basis, full_matrices=False)[2]
    return np.asarray((right @ basis.T)[:_DIRECTIONS])


def _between(values: FloatArray, count: int) -> float | None:
    """Return a threshold with about ``count`` values at or below it, between different values."""
    ordered = np.sort(values)
    tiny = 1e-9 * max(float(ordered[-1] - ordered[0]), abs(float(ordered[-1])) * 1e-3)
    changes = np.flatnonzero(np.diff(ordered) > tiny) + 1
    if not len(changes):
        return None
    place = int(changes[np.argmin(np.abs(changes - count))])
    return float((ordered[place - 1] + ordered[place]) / 2.0)
