"""Rows that are added to a fitted model for tables, or removed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.backends.device import Backend
from lssvm.fitting.record import Features, Member
from lssvm.fitting.table_prototypes import change_global
from lssvm.fitting.table_record import TableFit
from lssvm.local import Rows
from lssvm.local.engine import find_engine


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
