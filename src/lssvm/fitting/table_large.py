"""Tables of very many rows: everything is chosen on some of them, all of them make the parts.

Preparation, configurations, metrics and trees come from a sample; one pass sends every row to its
parts; parts are solved some at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.fitting.table_rows import AllRows
from lssvm.fitting.table_run import Candidate, TableRun
from lssvm.local import Cut, Leaf, LeafTask, PartsModel, PartStore, Tree, grow_tree
from lssvm.local.store import PartRows

_TOGETHER = 2**29  # numbers of kernel matrices of parts that an engine gets at a time
_FEWEST = 125  # rows of a part, below which prototypes are the better use of time
_PROTOTYPES = (200, 1000)  # how few and how many of them
_WAITING = 0.5  # of the memory budget that rows on their way to their parts may take
_MODEL = 0.5  # of the memory budget that the rows of a model may take


@dataclass(eq=False)
class _Job:
    """A candidate, one of its trees and the rows on their way to its parts."""

    number: int
    candidate: Candidate
    tree: Tree
    store: PartStore


@dataclass(frozen=True)
class Plan:
    """What all rows are fitted by.

    Attributes
    ----------
    candidates : list of Candidate
        As many as memory holds the rows of.
    n_prototypes : int
        0 for parts.
    why : str
        Why there are no parts.
    """

    candidates: list[Candidate]
    n_prototypes: int = 0
    why: str = ""


def plan_fit(run: TableRun, everything: AllRows, candidates: list[Candidate], tries: int) -> Plan:
    """Choose between exact parts and prototypes by what they cost.

    Parts keep all rows, in float32, and cost n L^2 (2/3) operations for every try with L rows in a
    part; prototypes keep nothing, and cost n m^2 for m of them.
    """
    n = everything.n_rows
    many = int(np.clip(np.sqrt(10.0 * run.ask.operations / n), *_PROTOTYPES))
    sizes = [
        4.0 * everything.n_rows * run.problem.inputs[c.configuration.inputs].shape[1]
        for c in candidates
    ]
    total = np.cumsum(sizes) * run.ask.n_trees
    count = int(np.searchsorted(total, _MODEL * everything.budget, side="right"))
    if not count:
        why = (
            f"exact parts would keep {total[0] / 1e9:.2g} GB of rows, and half of memory_budget is "
            f"{_MODEL * everything.budget / 1e9:.2g} GB"
        )
        return Plan(candidates[:1], many, why)
    least = n * _FEWEST**2 * (2.0 / 3.0) * tries
    possible = run.clock.affordable(least, 0.7)
    if possible < least and run.ask.part_size is None:
        size = int(np.clip(np.sqrt(possible / n), 50, many))
        return Plan(candidates[:1], size, "time_limit leaves no time for exact parts of all rows")
    return Plan(candidates[:count])


def fit_every_row(
    run: TableRun, everything: AllRows, candidates: list[Candidate], part_size: int, tries: int
) -> list[tuple[Candidate, PartsModel, FloatArray]]:
    """Fit candidates to all rows in parts.

    Parameters
    ----------
    run : TableRun
        Of the sample.
    everything : AllRows
    candidates : list of Candidate
    part_size : int
        Rows of a part, of all rows.
    tries : int

    Returns
    -------
    list of (Candidate, PartsModel, array of shape (m, k))
        With leave-one-out outputs of the rows of the sample.

    Notes
    -----
    One pass over the rows. Those on their way to their parts are kept in memory where half of the
    budget is enough, else in a scratch folder, 4 d + 8 k + 20 bytes a row and candidate.
    """
    problem, engine, sample = run.problem, run.ask.engine, everything.sample
    share = max(1, round(part_size * len(sample) / everything.n_rows))
    n_targets = problem.Y.shape[1]
    with ExitStack() as stack:
        jobs: list[_Job] = []
        size = sum(
            4 * problem.inputs[c.configuration.inputs].shape[1] + 8 * n_targets for c in candidates
        )
        waiting = everything.n_rows * size * run.ask.n_trees
        scratch = waiting > _WAITING * everything.budget
        for number, c in enumerate(candidates):
            X = problem.rows(c.configuration.inputs, c.metric).X
            for t in range(run.ask.n_trees):
                tree = grow_tree(X, share, random=run.random if t else None)
                store = PartStore(
                    tree.n_parts, X.shape[1], n_targets, n_rows=everything.n_rows, scratch=scratch
                )
                jobs.append(_Job(number, c, tree, stack.enter_context(store)))
        used = list(dict.fromkeys(c.configuration.inputs for c in candidates))
        for block in everything.blocks(used):
            run.clock.over(1.0)  # raises where who listens wants to stop
            for job in jobs:
                X = job.candidate.metric.apply(block.inputs[job.candidate.configuration.inputs])
                part = engine.route(job.tree, X)
                job.store.add(part, X, block.Y, block.weight, start=block.start)
        solved = [_solve(run, job, part_size, tries, sample) for job in jobs]
    out: list[tuple[Candidate, PartsModel, FloatArray]] = []
    for number, c in enumerate(candidates):
        own = [s for job, s in zip(jobs, solved, strict=True) if job.number == number]
        model = PartsModel(c.configuration.distance, tuple(cut for cut, _ in own), part_size)
        outputs = np.asarray(np.mean([held for _, held in own], axis=0))
        out.append((replace(c, stage="all rows"), model, outputs))
    return out


def _solve(
    run: TableRun, job: _Job, part_size: int, tries: int, sample: IntArray
) -> tuple[Cut, FloatArray]:
    """Solve the parts of a tree, some at a time; return them and the sample's outputs."""
    clock, c = run.clock, job.candidate
    leaves: dict[int, Leaf] = {}
    held = np.full((len(sample), run.problem.Y.shape[1]), np.nan)
    for batch in _batches(job.store.parts(), 2 * part_size):
        tasks = [LeafTask(some.rows, c.configuration.distance, c.setting) for some in batch]
        fitted = run.ask.engine.fit(
            tasks,
            tries=1 if clock.over(0.9) else tries,
            stop=lambda: clock.over(0.9),
            on_error=clock.stop,
        )
        for some, leaf in zip(batch, fitted, strict=True):
            place = np.searchsorted(sample, some.positions)
            there = sample[np.minimum(place, len(sample) - 1)] == some.positions
            held[place[there]] = leaf.fit.left_out[there]
            fit = replace(leaf.fit, left_out=leaf.fit.left_out[:0])  # only the sample's are needed
            leaves[some.part] = replace(leaf, fit=fit)
        run.begin("all rows", f"{c.configuration}", len(leaves) - 1, job.tree.n_parts)
    return Cut(job.tree, tuple(leaves[part] for part in range(job.tree.n_parts))), held


def _batches(parts: Iterator[PartRows], largest: int) -> Iterator[list[PartRows]]:
    """Deal out parts whose kernel matrices together stay below a limit; cut what is too large."""
    batch: list[PartRows] = []
    size = 0
    for some in parts:
        if len(some.positions) > largest:  # equal rows that no cut separates
            chosen = np.linspace(0, len(some.positions) - 1, largest).astype(np.intp)
            some = PartRows(some.part, some.rows.take(chosen), some.positions[chosen])
        own = len(some.positions) ** 2
        if batch and size + own > _TOGETHER:
            yield batch
            batch, size = [], 0
        batch.append(some)
        size += own
    if batch:
        yield batch
