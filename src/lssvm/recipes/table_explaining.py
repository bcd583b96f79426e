"""What a model for tables is made of, as terms whose explanations add up."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.explanations import Contrast, Expansion, Function, Term
from lssvm.parts import Cut, PartsEngine
from lssvm.parts.engine import ONE_THREAD
from lssvm.recipes.configurations import Inputs, Member
from lssvm.recipes.table import TableFit


def terms_of_table(
    fit: TableFit,
    X: Mapping[Inputs, FloatArray],
    background: Mapping[Inputs, FloatArray],
    column: IntArray,
    *,
    engine: PartsEngine = ONE_THREAD,
) -> list[Term]:
    """Return the terms of a model for tables, in the units of its target.

    Parameters
    ----------
    fit : TableFit
        With its context.
    X, background : mappings from inputs to arrays of shape (n, d)
        Prepared rows.
    column : int array of shape (n_columns,)
        Number of the explained column that every raw column belongs to.
    engine : PartsEngine

    Returns
    -------
    list of Term
        An expansion for every member that is one exact model of all rows, a function for one whose
        rows are sent to parts.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVMRegressor
    >>> from lssvm.recipes.table_explaining import background_of_table, terms_of_table
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> fit = LSSVMRegressor("fast", kernel="laplacian", metric=None).fit(X, X[:, 0]).record_
    >>> rows = background_of_table(fit, 5, np.random.default_rng(0))
    >>> all(term.exact for term in terms_of_table(fit, rows, rows, np.arange(2)))
    True
    """
    context = fit.context
    assert context is not None
    contrasts = {
        kind: Contrast.of(
            X[kind],
            background[kind],
            column[np.asarray(context.prepared[kind].sources, dtype=np.intp)],
            int(column.max()) + 1,
        )
        for kind in {member.configuration.inputs for member in fit.members}
    }
    terms = []
    shift = context.shift / len(fit.members)
    for member in fit.members:
        rows, scale = contrasts[member.configuration.inputs], member.weight * context.scale
        if all(len(cut.leaves) == 1 for cut in member.model.cuts):
            parts = [Term(rows, e) for e in _expansions(member, scale, shift)]
        else:
            parts = [Term(rows, _routed(member, scale, shift, engine))]
        terms += parts
    return terms


def _expansions(member: Member, scale: FloatArray, shift: FloatArray) -> list[Expansion]:
    """Return a member that is one exact model of all rows, or the mean of such."""
    cuts = member.model.cuts
    return [
        Expansion(
            member.configuration.make_kernel(leaf.setting.gamma),
            np.asarray(leaf.rows.X, dtype=np.float64),
            leaf.fit.coef * scale / len(cuts),
            (leaf.fit.intercept * scale + shift) / len(cuts),
            member.metric,
        )
        for cut in cuts
        for leaf in cut.leaves
    ]


def _routed(member: Member, scale: FloatArray, shift: FloatArray, engine: PartsEngine) -> Function:
    """Return the function of a member that sends rows to parts."""

    def outputs(X: FloatArray) -> FloatArray:
        values = member.model.outputs(member.metric.apply(X), engine=engine)
        return np.asarray(values * scale + shift)

    return outputs


def background_of_table(
    fit: TableFit, size: int, random: np.random.Generator
) -> dict[Inputs, FloatArray]:
    """Return some training rows as the parts of a model keep them, before the metric.

    Parameters
    ----------
    fit : TableFit
    size : int
        How many at most.
    random : numpy Generator

    Returns
    -------
    dict from inputs to arrays of shape (size, d)

    Notes
    -----
    A diagonal metric is divided out (features that it leaves out are 0, the model does not see
    them), a full one is inverted in the sense of least squares. Inputs of different kinds are of
    the same rows where the parts still know the numbers of their rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVMRegressor
    >>> from lssvm.recipes.table_explaining import background_of_table
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = LSSVMRegressor("fast", inputs="standardised", metric=None).fit(X, X[:, 0])
    >>> background_of_table(model.record_, 5, np.random.default_rng(0))["standardised"].shape
    (5, 2)
    """
    chosen: dict[Inputs, FloatArray] = {}
    seed = int(random.integers(2**31))
    for kind in sorted({member.configuration.inputs for member in fit.members}):
        among = [m for m in fit.members if m.configuration.inputs == kind]
        member = min(among, key=_obscurity)
        chosen[kind] = member.metric.unmap(_some_rows(member.model.cuts[0], size, seed))
    return chosen


def _some_rows(cut: Cut, size: int, seed: int) -> FloatArray:
    """Return rows of the parts, mapped by the metric: the same ones for the same seed."""
    starts = np.cumsum([0] + [len(leaf.rows.X) for leaf in cut.leaves])
    known = len(cut.members) == len(cut.leaves)
    numbers = np.concatenate(cut.members) if known else np.arange(starts[-1])
    order = np.argsort(numbers, kind="stable")
    places = order[np.random.default_rng(seed).permutation(len(order))[:size]]
    part = np.searchsorted(starts, places, "right") - 1
    rows = [cut.leaves[k].rows.X[i - starts[k]] for k, i in zip(part, places, strict=True)]
    return np.array(rows, dtype=np.float64)


def _obscurity(member: Member) -> int:
    """Return how much of the inputs a member's metric hides: nothing, some columns, directions."""
    return 0 if member.metric.map is None else member.metric.map.ndim
