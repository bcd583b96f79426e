"""Tables of very many rows: everything is chosen on a sample, and leaves are fitted to all rows.

Preparation, configurations, metrics and trees come from a sample; one pass sends every row to its
leaves; then leaves are solved in batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.blocks import run_blocks, run_stream
from lssvm.fitting.table_prototypes import fit_prototypes
from lssvm.fitting.table_record import AllRows, TableBlock, number_of
from lssvm.fitting.table_work import Candidate, Fitted, Plan, Work
from lssvm.local import (
    Leaf,
    LeafStore,
    LeafTask,
    LocalModel,
    Partition,
    Setting,
    Tree,
    grow_tree,
)
from lssvm.local.model import middle_setting
from lssvm.local.store import LeafRows, Placed

_TOGETHER = 2**29  # entries of the kernel matrices of a batch of leaves, times the engine's speed
_FEWEST = 125  # rows of a leaf, below which prototypes are the better use of time
_PROTOTYPES = (200, 1000)  # at least and at most
_WAITING = 2.0 / 3.0  # of the memory budget for rows on their way to their leaves and the model
_MODEL = 0.5  # of the memory budget that the rows of a model may take
_TUNED = 10  # one of so many leaves tries settings for all of them,
_MOST_TUNED = 24  # so many leaves at most,
_TRIES = 3  # so many settings
_TREES = 4  # are solved at the same time by a device


@dataclass(eq=False)
class _Job:
    """A candidate, one of its trees and the rows on their way to its leaves."""

    number: int
    candidate: Candidate
    tree: Tree
    store: LeafStore


def operations_of_all_rows(n_rows: int, leaf_size: int) -> float:
    """Return the operations of a configuration, with the settings that some leaves try.

    Examples
    --------
    >>> from lssvm.fitting.table_large import operations_of_all_rows
    >>> operations_of_all_rows(1_000_000, 1000) / (1e12 * 2 / 3)  # 24 of 1,000 leaves: 3 settings
    1.048
    """
    leaves = n_rows / leaf_size
    more = (_TRIES - 1) * min(1.0 / _TUNED, _MOST_TUNED / leaves)
    return n_rows * leaf_size**2 * (2.0 / 3.0) * (1.0 + more)


def allowed_for_all_rows(work: Work, n_rows: int) -> float:
    """Return the operations that leaves of all rows may cost together: by default half a unit.

    Gains alone would allow more: in very many rows nearly every step has one.
    """
    return work.unit(n_rows) * 0.0025 / max(work.settings.gain, 0.001)


def fit_all_rows(
    work: Work, plan: Plan, all_rows: AllRows, leaf_size: int
) -> tuple[Plan, list[Fitted]]:
    """Fit all rows, in exact leaves where memory and time allow, else by prototypes in one pass.

    Leaves keep all rows, in float32, and cost n L^2 (2/3) operations with L rows in a leaf;
    prototypes keep nothing, and cost n m^2 for m of them.
    """
    n, settings, begin = all_rows.n_rows, work.settings, work.clock.now()
    many = int(np.clip(np.sqrt(10.0 * work.unit(n) / n), *_PROTOTYPES))
    total = np.cumsum([_bytes_of_rows(work, n, c) for c in plan.candidates])
    count = int(np.searchsorted(total, _MODEL * all_rows.budget, side="right"))
    why = ""
    if not count:
        why = (
            f"exact leaves would keep {total[0] / 1e9:.2g} GB of rows, and half of memory_budget "
            f"is {_MODEL * all_rows.budget / 1e9:.2g} GB"
        )
    least = n * _FEWEST**2 * (2.0 / 3.0)
    possible = work.clock.affordable(least, 0.7)
    if count and possible < least and settings.leaf_size is None:
        many = int(np.clip(np.sqrt(possible / n), 50, many))
        why = "time_limit leaves no time for exact leaves of all rows"
    fitted: list[Fitted]
    if why:
        plan = replace(plan.keep(plan.candidates[:1]), note=f"prototypes in place of leaves: {why}")
        fitted = [fit_prototypes(work, all_rows, plan.candidates[0], many)]
        cost = n * many**2 / work.unit(n)
    else:
        plan = plan.keep(plan.candidates[:count])
        fitted = fit_leaves_of_all_rows(work, all_rows, plan.candidates, leaf_size)
        cost = len(fitted) * settings.n_trees * operations_of_all_rows(n, leaf_size) / work.unit(n)
    text = f"{number_of(len(fitted), 'configuration')} of {n:,} rows"
    work.step("all rows", text, np.nan, cost, begin)
    took = (work.clock.now() - begin) / len(fitted)
    return plan, [(replace(c, seconds=c.seconds + took), m, F) for c, m, F in fitted]


def _bytes_of_rows(work: Work, n_rows: int, candidate: Candidate) -> float:
    """Return the memory of the inputs that the leaves of a configuration keep."""
    d = work.problem.inputs[candidate.configuration.scaling].shape[1]
    return float(4.0 * d * n_rows * work.settings.n_trees)


def fit_leaves_of_all_rows(
    work: Work, all_rows: AllRows, candidates: list[Candidate], leaf_size: int
) -> list[Fitted]:
    """Fit candidates to all rows in leaves.

    Parameters
    ----------
    work : Work
        Of the sample.
    all_rows : AllRows
    candidates : list of Candidate
    leaf_size : int
        Rows of a leaf.

    Returns
    -------
    list of (Candidate, LocalModel, array of shape (m, k))
        With leave-one-out outputs of the rows of the sample.

    Notes
    -----
    One pass over the rows. Those on their way to their leaves are kept in memory where two thirds
    of the budget hold them and the model, otherwise in a scratch folder, 4 d + 8 k + 20 bytes a row
    and candidate.
    """
    problem, engine, sample = work.problem, work.settings.engine, all_rows.sample
    threads, random = all_rows.threads, work.random("trees")
    share = max(1, round(leaf_size * len(sample) / all_rows.n_rows))
    n_targets = problem.Y.shape[1]
    with ExitStack() as stack:
        jobs: list[_Job] = []
        rows = sum(_bytes_of_rows(work, all_rows.n_rows, c) for c in candidates)
        scratch = 2.0 * rows > _WAITING * all_rows.budget
        numbered = [
            (i, random.spawn(1)[0] if t else None)
            for i in range(len(candidates))
            for t in range(work.settings.n_trees)
        ]

        def grow(job: tuple[int, np.random.Generator | None]) -> Tree:
            c = candidates[job[0]]
            X = problem.rows(c.configuration.scaling, c.metric).X
            return grow_tree(X, share, random=job[1])

        for (i, _), tree in zip(numbered, run_blocks(grow, numbered, threads), strict=True):
            store = LeafStore(
                tree.n_leaves,
                tree.directions.shape[1],
                n_targets,
                n_rows=all_rows.n_rows,
                scratch=scratch,
            )
            jobs.append(_Job(i, candidates[i], tree, stack.enter_context(store)))
        used = list(dict.fromkeys(c.configuration.scaling for c in candidates))

        def placed(block: TableBlock) -> list[Placed]:
            out = []
            for job in jobs:
                inputs = block.inputs[job.candidate.configuration.scaling]
                X = engine.mapped(job.candidate.metric, inputs)
                leaves = engine.route(job.tree, X)
                out.append(job.store.placed(leaves, X, block.Y, block.weight, start=block.start))
            return out

        for parts in all_rows.map(used, placed):
            work.clock.over(1.0)  # raises if the fit was stopped
            for job, part in zip(jobs, parts, strict=True):
                job.store.add(part)
        # While a device solves leaves of one tree, the host reads and keeps those of others.
        at_once = min(_TREES, engine.n_configurations // engine.n_workers)
        solved = run_blocks(
            lambda job: _solve(work, job, leaf_size, sample),
            jobs,
            at_once,
            on_error=work.clock.stop,
        )
    out: list[Fitted] = []
    for number, c in enumerate(candidates):
        trees = [s for job, s in zip(jobs, solved, strict=True) if job.number == number]
        model = LocalModel(
            c.configuration.distance, tuple(partition for partition, _ in trees), leaf_size
        )
        outputs = np.asarray(np.mean([held_out for _, held_out in trees], axis=0))
        out.append((replace(c, stage="all rows"), model, outputs))
    return out


def _solve(work: Work, job: _Job, leaf_size: int, sample: IntArray) -> tuple[Partition, FloatArray]:
    """Solve the leaves of a tree in batches; return them and held-out outputs of the sample.

    Some leaves try settings, and the others take the mean of what these chose.
    """
    engine, clock, c, n_leaves = work.settings.engine, work.clock, job.candidate, job.tree.n_leaves
    leaves: dict[int, Leaf] = {}
    held_out = np.full((len(sample), work.problem.Y.shape[1]), np.nan)

    def solve(some: Iterator[LeafRows], setting: Setting, tries: int) -> None:
        def fit_batch(batch: list[LeafRows]) -> tuple[list[LeafRows], list[Leaf]]:
            tasks = [LeafTask(one.rows, c.configuration.distance, setting) for one in batch]
            fitted = engine.fit(
                tasks,
                tries=1 if clock.over(0.9) else tries,
                stop=lambda: clock.over(0.9),
                on_error=clock.stop,
            )
            return batch, fitted

        batches = _batches(some, 2 * leaf_size, _TOGETHER * engine.speed)
        # A device does not wait for the next rows to be read.
        ahead = engine.n_configurations > engine.n_workers
        stream = run_stream(fit_batch, batches, 1) if ahead else map(fit_batch, batches)
        for batch, fitted in stream:
            for one, leaf in zip(batch, fitted, strict=True):
                place = np.searchsorted(sample, one.positions)
                there = sample[np.minimum(place, len(sample) - 1)] == one.positions
                held_out[place[there]] = leaf.fit.left_out[there]
                fit = replace(leaf.fit, left_out=leaf.fit.left_out[:0].copy())  # those are enough
                leaves[one.leaf] = replace(leaf, fit=fit)
            work.report("all rows", f"{c.configuration}", len(leaves) - 1, n_leaves)

    count = min(-(-n_leaves // _TUNED), _MOST_TUNED)
    tuned = np.unique(np.linspace(0, n_leaves, count, endpoint=False).astype(np.intp))
    solve(job.store.leaves(only=tuned), c.setting, _TRIES)
    shared = middle_setting(list(leaves.values())) if leaves else c.setting
    solve(job.store.leaves(but=set(leaves)), shared, 1)
    return Partition(job.tree, tuple(leaves[i] for i in range(n_leaves))), held_out


def _batches(leaves: Iterator[LeafRows], largest: int, together: float) -> Iterator[list[LeafRows]]:
    """Yield batches of leaves whose kernel matrices fit together; thin out too large leaves."""
    batch: list[LeafRows] = []
    size = 0
    for some in leaves:
        if len(some.positions) > largest:  # equal rows that no tree separates
            chosen = np.linspace(0, len(some.positions) - 1, largest).astype(np.intp)
            some = LeafRows(some.leaf, some.rows.take(chosen), some.positions[chosen])
        entries = len(some.positions) ** 2
        if batch and size + entries > together:
            yield batch
            batch, size = [], 0
        batch.append(some)
        size += entries
    if batch:
        yield batch
