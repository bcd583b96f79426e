"""Explanations of fitted models: their members as terms whose Shapley values add up.

First the options, and the columns that features belong to. Then the terms of a fit, and the
explanation of a fit and of a time-series model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lssvm._core.arrays import AnyArray, FloatArray, IntArray, is_int, is_sparse
from lssvm._core.blocks import require
from lssvm._core.errors import InvalidInputError, not_usable
from lssvm._core.progress import Progress
from lssvm._core.random import RandomState, as_generator
from lssvm.backends.device import Backend
from lssvm.backends.host import Host
from lssvm.data.preparation import PreparedTable
from lssvm.explanations import (
    Contrast,
    Effort,
    Expansion,
    Explanation,
    Function,
    ShapleyValues,
    Term,
    shapley_values,
)
from lssvm.explanations.expansion import ROWS
from lssvm.fitting.record import Features, Fit, Member, Scaling
from lssvm.fitting.series import Layout, Series, SeriesFit
from lssvm.local import Partition
from lssvm.tasks import Classes

Groups = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, eq=False)
class ExplainOptions:
    """The options of `explain`, checked.

    Attributes
    ----------
    groups : mapping from names to columns, or None
    n_background, n_permutations : int or None
        None: as many as a few seconds allow.
    interactions : bool
    random_state : int, Generator, RandomState or None
    verbose : int
        Whether progress is shown.
    """

    groups: Groups | None = None
    n_background: int | None = None
    n_permutations: int | None = None
    interactions: bool = False
    random_state: RandomState = None
    verbose: int = 0

    def __post_init__(self) -> None:
        limits = (
            ("n_background", self.n_background, 1),
            ("n_permutations", self.n_permutations, 2),
        )
        for name, value, least in limits:
            if value is not None and (not is_int(value) or value < least):
                raise not_usable(name, value, f"give a whole number >= {least}, or None.")

    @property
    def most(self) -> int:
        """Background rows at most."""
        return ROWS[1] if self.n_background is None else self.n_background

    def random(self) -> np.random.Generator:
        """Return the generator of background rows and orders; a fixed one for None."""
        return as_generator(0 if self.random_state is None else self.random_state)

    def some(self, rows: Any, random: np.random.Generator) -> Any:
        """Return at most ``n_background`` of the rows."""
        n = rows.shape[0]
        return rows if n <= self.most else rows[np.sort(random.permutation(n)[: self.most])]


@dataclass(frozen=True, eq=False)
class Columns:
    """What is explained: columns with names, each of one or more features.

    Attributes
    ----------
    names : tuple of str
    owner : int array of shape (d,)
        The column of every feature.
    data : array of shape (n, p)
        Values of the explained rows, for people.
    """

    names: tuple[str, ...]
    owner: IntArray
    data: AnyArray

    def grouped(self, groups: Groups | None) -> Columns:
        """Return columns of which some are put together."""
        if not groups:
            return self
        place = np.arange(len(self.names), dtype=np.intp)
        taken: dict[int, str] = {}
        for name, members in groups.items():
            if isinstance(members, (str, int, np.integer)) or not len(members):
                raise InvalidInputError(
                    f"groups[{name!r}]={members!r} is not usable: give a list of columns, by name "
                    "or number."
                )
            chosen = [self._column(member, name) for member in members]
            for column in chosen:
                if column in taken:
                    raise InvalidInputError(
                        f"Column {self.names[column]!r} is in the groups {taken[column]!r} and "
                        f"{name!r}: give every column to one group."
                    )
                taken[column] = name
            place[chosen] = min(chosen)
        kept, number = np.unique(place, return_inverse=True)
        names = tuple(taken.get(int(column), self.names[column]) for column in kept)
        data = self.data[:, kept]
        several = np.bincount(number)[number[kept]] > 1
        if several.any():  # no single value stands for a group
            data = data.copy()
            data[:, several] = np.nan if data.dtype.kind == "f" else None
        return Columns(names, number[self.owner].astype(np.intp), data)

    def _column(self, member: Any, group: str) -> int:
        if isinstance(member, str) and member in self.names:
            return self.names.index(member)
        if is_int(member) and 0 <= member < len(self.names):
            return int(member)
        raise InvalidInputError(
            f"groups[{group!r}] names the column {member!r}, which is not there: choose among "
            f"{', '.join(self.names[:20])}{', ...' if len(self.names) > 20 else ''}."
        )


def plain_columns(X: Any, names: Any) -> Columns:
    """Return the columns of rows that are features already."""
    d = X.shape[1]
    titles = (f"x{j}" for j in range(d)) if names is None else (str(name) for name in names)
    data = X.toarray() if is_sparse(X) else np.asarray(X)
    return Columns(tuple(titles), np.arange(d, dtype=np.intp), data.astype(np.float64))


def table_columns(X: Any, prepared: PreparedTable) -> Columns:
    """Return the raw columns of a table; those that the model drops are missing."""
    table = prepared.read(X)
    data = np.full((table.n_rows, len(prepared.columns)), None, dtype=object)
    place = {name: j for j, name in enumerate(prepared.names)}
    for name, column in zip(prepared.used, table.columns, strict=True):
        values = column.values
        if column.kind == "category":
            values = np.array([*column.levels, None], dtype=object)[values]
        data[:, place[name]] = values
    if all(column.kind in ("number", "boolean", "empty") for column in table.columns):
        data = data.astype(np.float64)
    return Columns(prepared.names, np.arange(len(prepared.columns), dtype=np.intp), data)


# -- the terms of a fit ------------------------------------------------------------------------


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
        titles = task.classes[1:] if task.n_classes == 2 else task.classes
        return tuple(str(label) for label in titles)
    log = "" if task.smearing is None else "log "
    if task.single:
        return (f"{log}prediction",)
    return tuple(f"{log}output {j}" for j in range(task.n_outputs))


def terms_of(
    fit: Fit[Any], rows: Mapping[Scaling, Contrast], host: Host, backend: Backend
) -> list[Term]:
    """Return the terms of the predictions or decision values of a fit.

    Parameters
    ----------
    fit : Fit
    rows : mapping from scalings to Contrast
        Rows and background rows, for every scaling that a member takes.
    host : Host
        Where votes are counted.
    backend : Backend
        Where leaves are computed.
    """
    linear = fit.task.linear_scores()
    if linear is None:
        ((scaling, contrast),) = rows.items()
        votes = fit.task.scores
        return [Term(contrast, lambda X: votes(fit.outputs({scaling: X}, host)))]
    L, constant = linear
    constant = constant if fit.offset is None else constant + fit.offset @ L
    shift = constant / len(fit.used)
    terms = []
    for member in fit.used:
        weights = member.weight * (L if member.outputs is None else L[member.outputs])
        parts = member.expansions()
        if parts is None:
            function, local = _routed(member, weights, shift, backend), member.local
            size = local.leaf_size * len(local.partitions)
            terms.append(Term(rows[member.scaling], function, size))
            continue
        for one in parts:
            coef = np.asarray(one.coef, dtype=np.float64) @ weights / len(parts)
            intercept = (np.asarray(one.intercept, dtype=np.float64) @ weights + shift) / len(parts)
            basis = dense_rows(one.basis, host.budget) if is_sparse(one.basis) else one.basis
            expansion = Expansion(one.kernel, basis, coef, intercept, member.metric)
            terms.append(Term(rows[member.scaling], expansion))
    return terms


def _routed(member: Member, coef: FloatArray, shift: FloatArray, backend: Backend) -> Function:
    """Return the function of a member that sends rows to leaves."""

    def outputs(X: FloatArray) -> FloatArray:
        return np.asarray(member.evaluate(member.metric.apply(X), backend) @ coef + shift)

    return outputs


def background_of(fit: Fit[Any], options: ExplainOptions, random: np.random.Generator) -> Features:
    """Return some of the rows that a model keeps, before the metric."""
    chosen: dict[Scaling, Any] = {}
    seed: int | None = None
    for scaling in sorted({member.scaling for member in fit.members}):
        among = [member for member in fit.members if member.scaling == scaling]
        # A metric hides nothing of the inputs, some columns, or directions.
        member = min(among, key=lambda one: 0 if one.metric.map is None else one.metric.map.ndim)
        if member.in_leaves:
            seed = int(random.integers(2**31)) if seed is None else seed
            kept: Any = _some_rows(member.local.partitions[0], options.most, seed)
        else:
            kept = options.some(member.expansion.basis, random)
        chosen[scaling] = member.metric.unmap(kept)
    return chosen


def _some_rows(partition: Partition, size: int, seed: int) -> FloatArray:
    """Return training rows that leaves keep, after the metric: the same ones for a seed."""
    starts = np.cumsum([0] + [len(leaf.rows.X) for leaf in partition.leaves])
    known = len(partition.rows) == len(partition.leaves)
    numbers = np.concatenate(partition.rows) if known else np.arange(starts[-1])
    order = np.argsort(numbers, kind="stable")
    places = order[np.random.default_rng(seed).permutation(len(order))[:size]]
    leaf = np.searchsorted(starts, places, "right") - 1
    rows = [partition.leaves[k].rows.X[i - starts[k]] for k, i in zip(leaf, places, strict=True)]
    return np.array(rows, dtype=np.float64)


# -- explanations --------------------------------------------------------------------------------


def explain(
    fit: Fit[Any],
    features: Features,
    background: Features | None,
    columns: Columns,
    options: ExplainOptions,
    host: Host,
    backend: Backend,
) -> Explanation:
    """Explain the predictions or decision values of a fit.

    Parameters
    ----------
    fit : Fit
    features : mapping from scalings to arrays of shape (n, d)
        Rows.
    background : mapping from scalings to arrays of shape (B, d), or None
        None: rows that the model keeps.
    columns : Columns
        What the features belong to.
    options : ExplainOptions
    host : Host
    backend : Backend
        Where the outputs of leaves are computed.

    Returns
    -------
    Explanation
    """
    random = options.random()
    columns = columns.grouped(options.groups)
    if background is None:
        if fit.main.model.kernel_name == "precomputed":
            raise InvalidInputError(
                "A model with kernel='precomputed' keeps no rows: give background, rows of the "
                "kernel matrix as in predict. Columns that are explained are training rows."
            )
        against = background_of(fit, options, random)
    else:
        n = next(iter(background.values())).shape[0]
        some = options.some(np.arange(n), random)
        against = {scaling: rows[some] for scaling, rows in background.items()}
    rows = {}
    for scaling in {member.scaling for member in fit.used}:
        owner = columns.owner
        if scaling in fit.prepared:
            owner = owner[np.asarray(fit.prepared[scaling].sources, dtype=np.intp)]
        explained, other = (dense_rows(some[scaling], host.budget) for some in (features, against))
        rows[scaling] = Contrast.of(explained, other, owner, len(columns.names))
    values = _shapley(terms_of(fit, rows, host, backend), options, random, host)
    outputs = output_names(fit.task)
    single = len(outputs) == 1 and getattr(fit.task, "single", True)  # one number a row
    return explanation(values, columns, outputs, single)


def _shapley(
    terms: Sequence[Term], options: ExplainOptions, random: np.random.Generator, host: Host
) -> ShapleyValues:
    progress, seed = Progress(options.verbose), int(random.integers(2**31))

    def report(done: int, of: int) -> None:
        progress({"text": f"explaining, {done} of {of} blocks"})

    use = (seed, host.budget, host.threads, report)
    effort = Effort(options.n_permutations, options.n_background is None, *use)
    return shapley_values(terms, interactions=options.interactions, effort=effort)


def explanation(
    shapley: ShapleyValues, columns: Columns, outputs: tuple[str, ...], single: bool
) -> Explanation:
    """Return values with names, without the axis of outputs where there is one."""
    values, errors, pairs = shapley.values, shapley.errors, shapley.interactions
    base = np.tile(shapley.base, (len(values), 1))
    if single:
        values, errors, base = values[..., 0], errors[..., 0], base[:, 0]
        pairs = None if pairs is None else pairs[..., 0]
    return Explanation(values, base, columns.data, columns.names, outputs, errors, pairs)


def explain_series(
    record: SeriesFit, pairs: Sequence[tuple[Series, Series]], options: ExplainOptions
) -> Explanation:
    """Explain one-step predictions of a time-series model by the values they are made of.

    Parameters
    ----------
    record : SeriesFit
    pairs : sequence of pairs of Series
        What is predicted, and what came before it.
    options : ExplainOptions

    Returns
    -------
    Explanation
        Of the predictions in the units of the series. With differencing, what the last values add
        by themselves is part of ``base_values``.
    """
    layout, regressor, random = record.layout, record.regressor, options.random()
    tables = [layout.table(later.after(past))[0][-len(later) :] for past, later in pairs]
    rows = np.concatenate(tables)
    fit = record.inner
    if fit is not None:
        background = background_of(fit, options, random)["none"]
    elif record.plan is not None:
        background = options.some(record.plan.rows, random)
    else:
        raise InvalidInputError(
            "Explanations: not available, because this model was loaded from a file without its "
            "training rows. Save the fitted model with keep='all'."
        )
    columns = Columns(*_lags(layout), _in_units(layout, rows)).grouped(options.groups)
    contrast = Contrast.of(rows, background, columns.owner, len(columns.names))
    host = Host(10**9, 1)
    if fit is not None:
        terms = terms_of(fit, {"none": contrast}, host, host)
    else:
        terms = [Term(contrast, _predictions(regressor))]
    values = _shapley(terms, options, random, host)
    one = explanation(values, columns, ("prediction",), True)
    level = np.concatenate([layout.one_step_levels(np.zeros(len(b)), b.after(a)) for a, b in pairs])
    pairs_ = None if one.interactions is None else one.interactions * layout.scale
    return replace(
        one,
        values=one.values * layout.scale,
        base_values=one.base_values * layout.scale + level,
        errors=one.errors * layout.scale,
        interactions=pairs_,
    )


def _predictions(regressor: Any) -> Function:
    return lambda X: np.asarray(regressor.predict(X), dtype=np.float64).reshape(len(X), 1)


def _lags(layout: Layout) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of the features of a row, each a column of its own."""
    names = [f"y[t-{lag}]" for lag in range(1, layout.lags + 1)]
    if layout.n_exog:
        for lag in range(layout.exog_lags + 1):
            names += [f"x{j}[t{f'-{lag}' if lag else ''}]" for j in range(layout.n_exog)]
    return tuple(names), np.arange(len(names), dtype=np.intp)


def _in_units(layout: Layout, rows: FloatArray) -> FloatArray:
    """Return rows in the units of the (differenced) series and of its inputs."""
    out = rows * layout.scale + layout.mean
    if layout.inputs_mean is not None and layout.inputs_scale is not None:
        times = layout.exog_lags + 1
        scale, mean = np.tile(layout.inputs_scale, times), np.tile(layout.inputs_mean, times)
        out[:, layout.lags :] = rows[:, layout.lags :] * scale + mean
    return np.asarray(out)
