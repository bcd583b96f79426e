"""What a fitted model is made of, as terms whose explanations add up.

First kernel models, then the model for tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray, is_sparse
from lssvm._core.blocks import require
from lssvm.backends.host import Host
from lssvm.explanations import Contrast, Expansion, Function, Term
from lssvm.fitting.record import Fit
from lssvm.fitting.table_record import Member, Scaling, TableFit
from lssvm.local import LeafEngine, Partition
from lssvm.local.engine import ONE_THREAD
from lssvm.tasks import Classes


def dense_rows(X: Any, budget: int) -> FloatArray:
    """Return rows as a dense array of float64, where they fit into the budget."""
    if is_sparse(X):
        require(
            8 * X.shape[0] * X.shape[1],
            budget,
            what=f"Explaining {X.shape[0]} sparse rows of {X.shape[1]} features",
            advice="Explain fewer rows at a time, or raise memory_budget.",
        )
        X = X.toarray()
    return np.asarray(X, dtype=np.float64)


def output_names(task: Any) -> tuple[str, ...]:
    """Return names of what is explained: classes, or targets."""
    if isinstance(task, Classes):
        shown = task.classes[1:] if task.n_classes == 2 else task.classes
        return tuple(str(label) for label in shown)
    return ("prediction",) if task.single else tuple(f"output {j}" for j in range(task.n_outputs))


def terms_of_fit(fit: Fit, rows: Contrast, host: Host) -> list[Term]:
    """Return the terms of a kernel model's predictions or decision values."""
    task = fit.task
    linear = task.linear_scores() if isinstance(task, Classes) else np.eye(fit.coef.shape[1])
    if linear is None:
        return [Term(rows, lambda X: task.scores(fit.outputs(fit.metric.apply(X), host)))]
    basis = fit.basis
    if is_sparse(basis):
        basis = dense_rows(basis, host.budget)
    return [
        Term(
            rows,
            Expansion(
                kernel,
                basis,
                np.asarray(coef, dtype=np.float64) @ linear[columns],
                np.asarray(intercept, dtype=np.float64) @ linear[columns],
                fit.metric,
            ),
        )
        for columns, kernel, coef, intercept in fit.expansions()
    ]


def terms_of_table(
    fit: TableFit,
    X: Mapping[Scaling, FloatArray],
    background: Mapping[Scaling, FloatArray],
    column: IntArray,
    *,
    engine: LeafEngine = ONE_THREAD,
) -> list[Term]:
    """Return the terms of a model for tables, in the units of its target."""
    context = fit.context
    assert context is not None
    contrasts = {
        kind: Contrast.of(
            X[kind],
            background[kind],
            column[np.asarray(context.prepared[kind].sources, dtype=np.intp)],
            int(column.max()) + 1,
        )
        for kind in {member.configuration.scaling for member in fit.used}
    }
    terms = []
    shift = (context.shift + fit.offset * context.scale) / len(fit.used)
    for member in fit.used:
        rows, scale = contrasts[member.configuration.scaling], member.weight * context.scale
        if all(len(partition.leaves) == 1 for partition in member.model.partitions):
            parts = [Term(rows, e) for e in _expansions(member, scale, shift)]
        else:
            size = fit.leaf_size * len(member.model.partitions)
            parts = [Term(rows, _routed(member, scale, shift, engine), size)]
        terms += parts
    return terms


def _expansions(member: Member, scale: FloatArray, shift: FloatArray) -> list[Expansion]:
    """Return a member that is one exact model of all rows, or the mean of such."""
    cuts = member.model.partitions
    return [
        Expansion(
            member.configuration.make_kernel(leaf.setting.gamma),
            np.asarray(leaf.rows.X, dtype=np.float64),
            leaf.fit.coef * scale / len(cuts),
            (leaf.fit.intercept * scale + shift) / len(cuts),
            member.metric,
        )
        for partition in cuts
        for leaf in partition.leaves
    ]


def _routed(member: Member, scale: FloatArray, shift: FloatArray, engine: LeafEngine) -> Function:
    """Return the function of a member that sends rows to parts."""

    def outputs(X: FloatArray) -> FloatArray:
        values = member.model.outputs(member.metric.apply(X), engine=engine)
        return np.asarray(values * scale + shift)

    return outputs


def background_of_table(
    fit: TableFit, size: int, random: np.random.Generator
) -> dict[Scaling, FloatArray]:
    """Return some training rows as the parts of a model keep them, before the metric."""
    chosen: dict[Scaling, FloatArray] = {}
    seed = int(random.integers(2**31))
    for kind in sorted({member.configuration.scaling for member in fit.members}):
        among = [m for m in fit.members if m.configuration.scaling == kind]
        member = min(among, key=_obscurity)
        chosen[kind] = member.metric.unmap(_some_rows(member.model.partitions[0], size, seed))
    return chosen


def _some_rows(partition: Partition, size: int, seed: int) -> FloatArray:
    """Return rows of the parts, mapped by the metric: the same ones for the same seed."""
    starts = np.cumsum([0] + [len(leaf.rows.X) for leaf in partition.leaves])
    known = len(partition.rows) == len(partition.leaves)
    numbers = np.concatenate(partition.rows) if known else np.arange(starts[-1])
    order = np.argsort(numbers, kind="stable")
    places = order[np.random.default_rng(seed).permutation(len(order))[:size]]
    part = np.searchsorted(starts, places, "right") - 1
    rows = [partition.leaves[k].rows.X[i - starts[k]] for k, i in zip(part, places, strict=True)]
    return np.array(rows, dtype=np.float64)


def _obscurity(member: Member) -> int:
    """Return how much of the inputs a member's metric hides: nothing, some columns, directions."""
    return 0 if member.metric.map is None else member.metric.map.ndim
