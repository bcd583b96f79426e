"""Exact models in the parts of one or more trees, averaged."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.kernels.radial import Distance
from lssvm.local.engine import ONE_THREAD, LeafTask, PartsEngine
from lssvm.local.leaf import Leaf, Rows, Setting
from lssvm.local.tree import Tree, grow_tree

_TUNED = 10  # every so many parts one tries settings for all of them
_GROWN = 1.5  # a part this many times its size is split
_LARGEST = 2  # equal rows that no cut separates: at most so many times the part size are used


@dataclass(frozen=True, eq=False)
class Cut:
    """A tree with the exact models of its parts.

    Attributes
    ----------
    tree : Tree
        Which part a row belongs to.
    leaves : tuple of Leaf
        The models of the parts, in their order.
    members : tuple of int arrays
        Row numbers of the training data in every part; empty after an update.

    Examples
    --------
    >>> from lssvm.local import Cut
    >>> [field for field in Cut.__dataclass_fields__]
    ['tree', 'leaves', 'members']
    """

    tree: Tree
    leaves: tuple[Leaf, ...]
    members: tuple[IntArray, ...] = ()

    def left_out(self, n: int) -> FloatArray:
        """Return the leave-one-out outputs of the training rows, (n, k); NaN where unknown.

        Parameters
        ----------
        n : int
            Number of training rows.
        """
        out = np.full((n, self.leaves[0].fit.coef.shape[1]), np.nan)
        for leaf, rows in zip(self.leaves, self.members, strict=True):
            out[rows] = leaf.fit.left_out
        return out


@dataclass(frozen=True, eq=False)
class PartsModel:
    """Exact dual models in parts.

    Attributes
    ----------
    distance : {"sqeuclidean", "euclidean", "cityblock"}
        What the kernel is a function of.
    cuts : tuple of Cut
        Outputs are their mean.
    part_size : int
        Rows of a part at most.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import Rows, Setting, fit_parts
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> rows = Rows(X, np.sin(X), np.ones(200))
    >>> model = fit_parts(rows, "euclidean", Setting(100.0, 0.5), part_size=50)
    >>> len(model.cuts[0].leaves), bool(np.abs(model.outputs(X) - np.sin(X)).max() < 0.1)
    (4, True)
    """

    distance: Distance
    cuts: tuple[Cut, ...]
    part_size: int

    def outputs(self, X: FloatArray, *, engine: PartsEngine = ONE_THREAD) -> FloatArray:
        """Return the outputs (n, k) for mapped rows X (n, d).

        Parameters
        ----------
        X : array of shape (n, d)
            Mapped rows.
        engine : PartsEngine, optional
            Where it is computed; by default on one thread.
        """
        k = self.cuts[0].leaves[0].fit.coef.shape[1]
        out = np.zeros((len(X), k))
        for cut in self.cuts:
            members = cut.tree.split(engine.route(cut.tree, X))
            jobs = [(leaf, X[rows]) for leaf, rows in zip(cut.leaves, members, strict=True)]
            for rows, values in zip(members, engine.outputs(jobs, self.distance), strict=True):
                out[rows] += values / len(self.cuts)
        return out

    def left_out(self, n: int) -> FloatArray:
        """Return the leave-one-out outputs of the training rows, shape (n, k), trees averaged.

        Parameters
        ----------
        n : int
            Number of training rows.
        """
        return np.asarray(np.mean([cut.left_out(n) for cut in self.cuts], axis=0))

    def local_error(self, X: FloatArray) -> FloatArray:
        """Return the root mean squared leave-one-out error of the part of every row, shape (n,).

        Parameters
        ----------
        X : array of shape (n, d)
            Mapped rows.
        """
        total = np.zeros(len(X))
        for cut in self.cuts:
            errors = np.array([leaf.error for leaf in cut.leaves])
            total += errors[cut.tree.route(X)] / len(self.cuts)
        return np.sqrt(total)

    def nearby_error(self, X: FloatArray, count: int) -> FloatArray:
        """Return the mean squared leave-one-out error near every row of X (n, d), shape (n, k).

        Parameters
        ----------
        X : array of shape (n, d)
            Mapped rows.
        count : int
            Training rows that are averaged, with one more of the part's mean error.
        """
        k = self.cuts[0].leaves[0].fit.coef.shape[1]
        total = np.zeros((len(X), k))
        for cut in self.cuts:
            for leaf, rows in zip(cut.leaves, cut.tree.members(X), strict=True):
                if len(rows):
                    total[rows] += leaf.nearby_error(X[rows], self.distance, count)
        return total / len(self.cuts)

    def own_nearby_error(self, n: int, count: int) -> FloatArray:
        """Return the same for the n training rows, each without itself; NaN where unknown.

        Parameters
        ----------
        n : int
            Number of training rows.
        count : int
            Other training rows that are averaged.
        """
        k = self.cuts[0].leaves[0].fit.coef.shape[1]
        total = np.zeros((n, k))
        for cut in self.cuts:
            part = np.full((n, k), np.nan)
            for leaf, rows in zip(cut.leaves, cut.members, strict=True):
                part[rows] = leaf.nearby_error(None, self.distance, count)
            total += part
        return total / len(self.cuts)

    def own_error(self, n: int) -> FloatArray:
        """Return the root mean squared leave-one-out error of the part of n training rows, (n,).

        Parameters
        ----------
        n : int
            Number of training rows.
        """
        total = np.zeros(n)
        for cut in self.cuts:
            if not cut.members:
                return np.full(n, np.sqrt(cut.leaves[0].error))
            part = np.full(n, np.nan)
            for leaf, rows in zip(cut.leaves, cut.members, strict=True):
                part[rows] = leaf.error
            total += part
        return np.sqrt(total / len(self.cuts))

    def light(self, errors: bool = False) -> PartsModel:
        """Return what prediction needs: without targets, weights and leave-one-out outputs.

        Parameters
        ----------
        errors : bool, default=False
            Whether the squares of the leave-one-out errors are kept.
        """
        cuts = tuple(
            Cut(cut.tree, tuple(leaf.light(errors) for leaf in cut.leaves)) for cut in self.cuts
        )
        return replace(self, cuts=cuts)

    def learn(self, new: Rows, *, engine: PartsEngine = ONE_THREAD) -> PartsModel:
        """Return the model with more rows: parts that got some are solved again.

        C, gamma and the tree stay; a part that grew past one and a half times its size is split.

        Parameters
        ----------
        new : Rows
            Mapped, as the model's own are.
        engine : PartsEngine, optional
            Where it is computed; by default on one thread.
        """
        cuts = tuple(self._with(cut, new, engine) for cut in self.cuts)
        return replace(self, cuts=cuts)

    def forget(self, gone: Rows, *, engine: PartsEngine = ONE_THREAD) -> PartsModel:
        """Return the model without some of its rows (found by inputs and targets).

        Parameters
        ----------
        gone : Rows
            Mapped, as the model's own are.
        engine : PartsEngine, optional
            Where it is computed; by default on one thread.
        """
        cuts = tuple(self._without(cut, gone, engine) for cut in self.cuts)
        return replace(self, cuts=cuts)

    def _solved_again(self, cut: Cut, changed: dict[int, Rows], engine: PartsEngine) -> list[Leaf]:
        """Return the parts of a cut, some of them solved with other rows."""
        leaves = list(cut.leaves)
        tasks = [LeafTask(rows, self.distance, leaves[p].setting) for p, rows in changed.items()]
        for p, leaf in zip(changed, engine.fit(tasks), strict=True):
            leaves[p] = leaf
        return leaves

    def _with(self, cut: Cut, new: Rows, engine: PartsEngine) -> Cut:
        changed = {
            p: cut.leaves[p].rows.joined(new.take(m))
            for p, m in enumerate(cut.tree.members(new.X))
            if len(m)
        }
        tree, leaves = cut.tree, self._solved_again(cut, changed, engine)
        for p in range(len(leaves)):
            if len(leaves[p].rows.X) > _GROWN * self.part_size:
                tree, leaves = self._split(tree, leaves, p, engine)
        return Cut(tree, tuple(leaves))

    def _split(
        self, tree: Tree, leaves: list[Leaf], part: int, engine: PartsEngine
    ) -> tuple[Tree, list[Leaf]]:
        """Replace a part by the parts of a tree of its own."""
        rows, setting = leaves[part].rows, leaves[part].setting
        below = grow_tree(rows.X, self.part_size)
        if below.n_parts == 1:
            return tree, leaves
        shift, first = len(tree.thresholds), len(leaves)
        # Its first part takes the number of the part it replaces, the others come at the end.
        number = {0: part} | {p: first + p - 1 for p in range(1, below.n_parts)}
        inner = np.where(below.children >= 0, below.children + shift, 0)
        inner = np.where(
            below.children >= 0, inner, -1 - np.vectorize(number.get)(-1 - below.children, 0)
        )
        children = np.where(tree.children == -1 - part, shift, tree.children)
        new = engine.fit(
            [LeafTask(rows.take(m), self.distance, setting) for m in below.members(rows.X)]
        )
        leaves = leaves.copy()
        leaves[part] = new[0]
        return Tree(
            np.vstack([tree.directions.reshape(-1, rows.X.shape[1]), below.directions]),
            np.concatenate([tree.thresholds, below.thresholds]),
            np.vstack([children.reshape(-1, 2), inner]).astype(np.intp),
            tree.n_parts + below.n_parts - 1,
        ), leaves + new[1:]

    def _without(self, cut: Cut, gone: Rows, engine: PartsEngine) -> Cut:
        """Take the weight of rows away; an emptied part becomes one with its neighbour."""
        shelves: dict[int, _Shelf] = {}

        def taken(part: int, row: Rows) -> bool:
            if part not in shelves:
                shelves[part] = _Shelf(cut.leaves[part].rows)
            return shelves[part].take(row)

        met: set[int] = set()
        for i, first in enumerate(cut.tree.route(gone.X).tolist()):
            # Rows that are kept in single precision may be on the other side of a cut.
            row = gone.take(np.array([i], dtype=np.intp))
            others = (p for p in range(len(cut.leaves)) if p != first)
            part = next((p for p in itertools.chain([first], others) if taken(p, row)), None)
            if part is None:
                raise InvalidInputError(
                    "A row that should be forgotten is not among the rows of the model: give rows "
                    "with the inputs, targets and weights that they were learned with."
                )
            met.add(part)
        left = {part: shelves[part].left() for part in sorted(met)}
        empty = [part for part, rows in left.items() if rows is None]
        if len(empty) == len(cut.leaves):
            raise InvalidInputError(
                "Forgetting these rows would leave none: keep at least one, or fit again."
            )
        changed = {part: rows for part, rows in left.items() if rows is not None}
        tree, leaves = cut.tree, self._solved_again(cut, changed, engine)
        for part in reversed(empty):
            del leaves[part]
            tree = tree.without(part)
        return Cut(tree, tuple(leaves))


class _Shelf:
    """The rows of a part by their inputs and targets, with the weight that is left of each."""

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


def fit_parts(
    rows: Rows,
    distance: Distance,
    start: Setting,
    *,
    part_size: int,
    n_trees: int = 1,
    tries: int = 1,
    random: np.random.Generator | None = None,
    stop: Callable[[], bool] = lambda: False,
    engine: PartsEngine = ONE_THREAD,
    draft: bool = False,
    held_out: bool = True,
) -> PartsModel:
    """Fit exact models in parts; C and gamma are chosen by some of them for all.

    Parameters
    ----------
    rows : Rows
        Inputs mapped by the metric.
    distance : {"sqeuclidean", "euclidean", "cityblock"}
        What the kernel is a function of.
    start : Setting
        Where the search of every part starts.
    part_size : int
        Up to as many rows there is one part: the exact model.
    n_trees : int, default=1
        More than one are cut differently and averaged (one where there is one part).
    tries : int, default=1
        Settings that a part tries, see `fit_leaf`.
    random : Generator, optional
        For the cuts of further trees.
    stop : callable, optional
        Asked during the search; True leaves the remaining parts at the start.
    engine : PartsEngine
        Who computes: `HostParts` (threads) or `DeviceParts` (a GPU).
    draft, held_out : bool
        See `fit_leaf`.

    Returns
    -------
    PartsModel

    Notes
    -----
    n L^2 / 3 multiplications and additions for parts of L rows, 2 L^2 numbers per thread. Every
    tenth part tries settings; the others take the geometric mean of what these chose.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import Rows, Setting, fit_parts
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> model = fit_parts(Rows(X, np.sin(X), np.ones(100)), "euclidean", Setting(10.0, 0.5),
    ...                   part_size=60, n_trees=2, random=np.random.default_rng(0))
    >>> model.left_out(100).shape
    (100, 1)
    """
    job = PartsJob(rows, distance, start, part_size, n_trees)
    more: dict[str, Any] = {"draft": draft, "held_out": held_out}
    return fit_many([job], tries=tries, random=random, stop=stop, engine=engine, **more)[0]


@dataclass(frozen=True, eq=False)
class PartsJob:
    """What `fit_parts` is asked for, so that several can be computed side by side.

    Attributes
    ----------
    rows : Rows
        Inputs mapped by the metric.
    distance : {"sqeuclidean", "euclidean", "cityblock"}
        What the kernel is a function of.
    start : Setting
        Where the search of every part starts.
    part_size : int
        Rows of a part at most.
    n_trees : int
        Trees that are averaged.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import PartsJob, Rows, Setting
    >>> PartsJob(Rows(np.ones((2, 1)), np.ones((2, 1)), np.ones(2)), "euclidean",
    ...          Setting(1.0, 1.0), 10).n_trees
    1
    """

    rows: Rows
    distance: Distance
    start: Setting
    part_size: int
    n_trees: int = 1


def fit_many(
    jobs: Sequence[PartsJob],
    *,
    tries: int = 1,
    random: np.random.Generator | None = None,
    stop: Callable[[], bool] = lambda: False,
    engine: PartsEngine = ONE_THREAD,
    finished: Callable[[int, PartsModel], None] = lambda number, model: None,
    on_error: Callable[[], None] | None = None,
    draft: bool = False,
    held_out: bool = True,
) -> list[PartsModel]:
    """Fit several models in parts, all their parts on the threads of an engine; see `fit_parts`.

    Parameters
    ----------
    jobs : sequence of PartsJob
        One for each model.
    tries, random, stop, engine, draft, held_out
        As for `fit_parts`.
    finished : callable, optional
        Called with the number of a job and its model as soon as it is there: what is known when
        later ones are interrupted.
    on_error : callable, optional
        Called at the first error, Ctrl-C among them, before parts that have begun are waited for.

    Returns
    -------
    list of PartsModel

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.local import PartsJob, Rows, Setting, fit_many
    >>> rows = Rows(np.arange(9.0)[:, None], np.ones((9, 1)), np.ones(9))
    >>> len(fit_many([PartsJob(rows, "euclidean", Setting(1.0, 1.0), 5)] * 2))
    2
    """
    random = np.random.default_rng(0) if random is None else random
    planned: list[tuple[int, Tree, list[IntArray]]] = []
    for number, job in enumerate(jobs):
        for t in range(job.n_trees):
            tree = grow_tree(job.rows.X, job.part_size, random=random if t else None)
            members = tree.split(engine.route(tree, job.rows.X))
            most = _LARGEST * job.part_size
            planned.append((number, tree, [_limited(m, most, random) for m in members]))
            if tree.n_parts == 1:
                break
    owners = [(t, p) for t, (_, _, members) in enumerate(planned) for p in range(len(members))]
    tasks = [
        LeafTask(job.rows.take(planned[t][2][p]), job.distance, job.start)
        for t, p in owners
        for job in [jobs[planned[t][0]]]
    ]
    leaves: dict[tuple[int, int], Leaf] = {}
    waiting = Counter(planned[t][0] for t, _ in owners)
    models: dict[int, PartsModel] = {}
    lock = Lock()

    def model_of(number: int) -> PartsModel:
        cuts = tuple(
            Cut(tree, tuple(leaves[t, p] for p in range(len(members))), tuple(members))
            for t, (of, tree, members) in enumerate(planned)
            if of == number
        )
        return PartsModel(jobs[number].distance, cuts, jobs[number].part_size)

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
    return Setting(float(C), float(gamma))


def _limited(rows: IntArray, size: int, random: np.random.Generator) -> IntArray:
    """Return some of the rows where no cut could make a part small enough."""
    if len(rows) <= size:
        return rows
    return np.sort(random.choice(rows, size, replace=False))
