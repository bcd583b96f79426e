"""Explanations of fitted models: rows, background and columns, from what a caller gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lssvm._core.arrays import AnyArray, FloatArray, IntArray, is_sparse
from lssvm._core.errors import InvalidInputError, not_usable
from lssvm._core.progress import Progress
from lssvm._core.random import RandomState, as_generator
from lssvm.data.preparation import PreparedTable
from lssvm.explanations import (
    Contrast,
    Effort,
    Explanation,
    Function,
    ShapleyValues,
    Term,
    shapley_values,
)
from lssvm.explanations.expansion import ROWS
from lssvm.fitting.explaining import (
    background_of_table,
    dense_rows,
    output_names,
    terms_of_fit,
    terms_of_table,
)
from lssvm.fitting.record import Fit, Resources, is_int
from lssvm.fitting.series import Layout, Series, SeriesFit
from lssvm.fitting.table_record import Inputs, TableFit
from lssvm.local import PartsEngine

Groups = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Wish:
    """What `explain` was asked for, checked.

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
        given = (("n_background", self.n_background, 1), ("n_permutations", self.n_permutations, 2))
        for name, value, least in given:
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
            found = [self._column(member, name) for member in members]
            for column in found:
                if column in taken:
                    raise InvalidInputError(
                        f"Column {self.names[column]!r} is in the groups {taken[column]!r} and "
                        f"{name!r}: give every column to one group."
                    )
                taken[column] = name
            place[found] = min(found)
        kept, number = np.unique(place, return_inverse=True)
        names = tuple(taken.get(int(column), self.names[column]) for column in kept)
        data = self.data[:, kept]
        several = np.bincount(number)[number[kept]] > 1
        if several.any():  # no single value says what a group is
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


def explain_fit(
    fit: Fit, X: Any, background: Any, columns: Columns, wish: Wish, resources: Resources
) -> Explanation:
    """Explain the predictions or decision values of a kernel model.

    Parameters
    ----------
    fit : Fit
    X : array of shape (n, d)
        Features of the rows.
    background : array of shape (B, d) or None
        None: rows of the basis.
    columns : Columns
    wish : Wish
    resources : Resources

    Returns
    -------
    Explanation
    """
    random = wish.random()
    columns = columns.grouped(wish.groups)
    if background is None:
        if fit.kernel.name == "precomputed":
            raise InvalidInputError(
                "A model with kernel='precomputed' keeps no rows: give background, rows of the "
                "kernel matrix as in predict. Columns that are explained are training rows."
            )
        background = fit.metric.unmap(fit.basis)
    given = dense_rows(X, resources.budget)
    against = dense_rows(wish.some(background, random), resources.budget)
    rows = Contrast.of(given, against, columns.owner, len(columns.names))
    found = _shapley(terms_of_fit(fit, rows, resources), wish, random, resources)
    return _of_task(found, columns, fit.task)


def _of_task(found: ShapleyValues, columns: Columns, task: Any) -> Explanation:
    """Return the explanation of what a task calls its outputs."""
    outputs = output_names(task)
    single = len(outputs) == 1 and getattr(task, "single", True)  # one number a row
    return explanation(found, columns, outputs, single)


def _shapley(
    terms: Sequence[Term], wish: Wish, random: np.random.Generator, resources: Resources
) -> ShapleyValues:
    progress, seed = Progress(wish.verbose), int(random.integers(2**31))

    def report(done: int, of: int) -> None:
        progress({"text": f"explaining, {done} of {of} blocks"})

    use = (seed, resources.budget, resources.threads, report)
    effort = Effort(wish.n_permutations, wish.n_background is None, *use)
    return shapley_values(terms, interactions=wish.interactions, effort=effort)


def explanation(
    found: ShapleyValues, columns: Columns, outputs: tuple[str, ...], single: bool
) -> Explanation:
    """Return values with names, without the axis of outputs where there is one."""
    values, errors, pairs = found.values, found.errors, found.interactions
    base = np.tile(found.base, (len(values), 1))
    if single:
        values, errors, base = values[..., 0], errors[..., 0], base[:, 0]
        pairs = None if pairs is None else pairs[..., 0]
    return Explanation(values, base, columns.data, columns.names, outputs, errors, pairs)


def joined(parts: Sequence[Explanation]) -> Explanation:
    """Return the explanation of blocks of rows one after the other."""
    first = parts[0]
    whole: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("values", "base_values", "data", "errors")
    }
    if first.interactions is not None:
        whole["interactions"] = np.concatenate([part.interactions for part in parts])
    return replace(first, **whole)


# -- columns -----------------------------------------------------------------------------------


def plain_columns(X: Any, names: Any) -> Columns:
    """Return the columns of features as they are."""
    d = X.shape[1]
    shown = (f"x{j}" for j in range(d)) if names is None else (str(name) for name in names)
    data = X.toarray() if is_sparse(X) else np.asarray(X)
    return Columns(tuple(shown), np.arange(d, dtype=np.intp), data.astype(np.float64))


def table_columns(X: Any, prepared: PreparedTable) -> Columns:
    """Return the raw columns of a table; those that the model leaves out are missing."""
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


# -- models for tables and for series ----------------------------------------------------------


def explain_table(
    fit: TableFit,
    raw: Any,
    X: Mapping[Inputs, FloatArray],
    background: Mapping[Inputs, FloatArray] | None,
    wish: Wish,
    resources: Resources,
    engine: PartsEngine,
) -> Explanation:
    """Explain the predictions or decision values of a model for tables.

    Parameters
    ----------
    fit : TableFit
    raw : table of n rows
        As the caller gave it.
    X, background : mappings from inputs to prepared rows
        No background: rows that the parts keep.
    wish : Wish
    resources : Resources
    engine : PartsEngine
        Who computes the outputs of parts.

    Returns
    -------
    Explanation
    """
    context = fit.context
    assert context is not None
    random = wish.random()
    columns = table_columns(raw, context.any_prepared).grouped(wish.groups)
    if background is None:
        against: Mapping[Inputs, FloatArray] = background_of_table(fit, wish.most, random)
    else:
        n = len(next(iter(background.values())))
        some = wish.some(np.arange(n), random)
        against = {kind: rows[some] for kind, rows in background.items()}
    terms = terms_of_table(fit, X, against, columns.owner, engine=engine)
    return _of_task(_shapley(terms, wish, random, resources), columns, context.task)


def explain_series(
    record: SeriesFit, pairs: Sequence[tuple[Series, Series]], wish: Wish
) -> Explanation:
    """Explain one-step predictions of a time-series model by the values they are made of.

    Parameters
    ----------
    record : SeriesFit
    pairs : sequence of pairs of Series
        What is predicted, and what came before it.
    wish : Wish

    Returns
    -------
    Explanation
        Of the predictions in the units of the series. With differencing, what the last values add
        by themselves is part of ``base_values``.
    """
    layout, regressor, random = record.layout, record.regressor, wish.random()
    tables = [layout.table(later.after(past))[0][-len(later) :] for past, later in pairs]
    rows = np.concatenate(tables)
    fit = getattr(regressor, "record_", None)
    if isinstance(fit, Fit):
        background = fit.metric.unmap(fit.basis)
    elif record.plan is not None:
        background = record.plan.rows
    else:
        raise InvalidInputError(
            "Explanations cannot be had from this model: it was loaded from a file without its "
            "training rows. Save the fitted model with keep='all'."
        )
    columns = Columns(*_lags(layout), _in_units(layout, rows)).grouped(wish.groups)
    against = wish.some(background, random)
    contrast = Contrast.of(rows, against, columns.owner, len(columns.names))
    resources = Resources(10**9, 1)
    if isinstance(fit, Fit):
        terms = terms_of_fit(fit, contrast, resources)
    else:
        terms = [Term(contrast, _predictions(regressor))]
    found = _shapley(terms, wish, random, resources)
    one = explanation(found, columns, ("prediction",), True)
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
