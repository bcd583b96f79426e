"""A fitted model for tables: importances of its columns, rows that are added or removed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.backends.device import Backend
from lssvm.fitting.record import Features, Member
from lssvm.fitting.table_prototypes import change_global
from lssvm.fitting.table_record import TableFit
from lssvm.kernels.metric import mean_outer_product
from lssvm.local import Rows
from lssvm.local.cluster import find_engine

_LEAVES = 100  # whose gradients the importances are made of
_ROWS = 600  # at which gradients are taken


def column_importances(fit: TableFit) -> FloatArray:
    """Return how much the output changes along every column, summing to 1."""
    n = len(fit.any_prepared.columns)
    total = np.zeros(n)
    for member in fit.members:
        slopes = _mean_squared_slopes(member)
        sources = np.asarray(fit.prepared[member.scaling].sources, dtype=np.intp)
        if slopes.sum() > 0:
            total += np.bincount(sources, member.weight * slopes / slopes.sum(), minlength=n)
    return total / total.sum() if total.sum() > 0 else total


def _mean_squared_slopes(member: Member) -> FloatArray:
    """Return the mean squared slope of a member along every prepared feature, shape (d,)."""
    parts = member.leaves()
    parts = parts[:: -(-len(parts) // _LEAVES)]
    most = max(1, _ROWS // len(parts))
    total = []
    for one in parts:
        Z, use = one.basis, partial(mean_outer_product, metric=member.metric, shape="diagonal")
        total.append(len(Z) * use(one.kernel, Z[:: max(1, len(Z) // most)], Z, one.coef))
    return np.asarray(np.sum(total, axis=0))


def change_rows(
    fit: TableFit,
    features: Features,
    Y: FloatArray,
    weight: FloatArray,
    *,
    forget: bool,
    backend: Backend,
) -> TableFit:
    """Return the model with more rows, or fewer: their leaves are solved again.

    Parameters
    ----------
    fit : Fit
        With all its rows.
    features : mapping from scalings to arrays of shape (n, d)
        The rows, prepared.
    Y : array of shape (n, k)
        Their targets, in the units of the outputs.
    weight : array of shape (n,)
        In the units of the first fit.
    forget : bool
        Whether they leave.
    backend : Backend
        Where leaves are computed.
    """
    fit.need("all", "Adding or removing rows")
    used = np.flatnonzero(weight > 0)
    engine, moments = find_engine(backend), fit.state.moments
    changed: list[Member] = []
    for member in sorted(fit.members, key=lambda member: not member.in_leaves):
        X = np.asarray(member.mapped(features))
        rows = Rows(X, Y, weight / fit.state.weight_scale).take(used)
        if not member.in_leaves:  # prototypes of the rows that a member has in leaves
            (local,) = (one.local for one in changed if one.is_of(member))
            member, moments = change_global(
                member, moments, local, rows, forget=forget, threads=backend.threads
            )
            changed.append(member)
            continue
        change = member.local.forget if forget else member.local.learn
        try:
            changed.append(replace(member, model=change(rows, engine=engine)))
        except InvalidInputError as error:
            encoded = _encoded_by_target(fit) if forget else []
            if not encoded:
                raise
            raise InvalidInputError(
                f"{error} The columns {encoded} are encoded by the target, and differently for "
                "rows of the first fit: only rows that partial_fit has added can be forgotten."
            ) from error
    return replace(fit, members=tuple(changed), state=replace(fit.state, moments=moments))


def _encoded_by_target(fit: TableFit) -> list[str]:
    """Return the names of the columns that are encoded by the target."""
    return [
        column.name
        for column in fit.any_prepared.columns
        if any(":target" in suffix for suffix in getattr(column.encoding, "suffixes", ()))
    ]
