"""Cross-validated losses of each output of a fixed-size model by itself, from shared moments.

A (C, gamma) for every binary problem [Suykens2002, eq. (3.13)], [DeBrabanter2010, section 8]: what
was read from the rows at one gamma serves all problems.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.namespace import Array, device, get_namespace, to_numpy
from lssvm._core.threads import slices, small_problem
from lssvm.criteria.base import Losses
from lssvm.criteria.fixed_size import FixedSizeObjective, FixedSizePoint
from lssvm.engines.base import Expansion
from lssvm.tasks import RowLoss, Truth


@dataclass(frozen=True)
class BinaryErrors(RowLoss):
    """Rows on the wrong side of a binary problem, for several problems at a time.

    Parameters
    ----------
    columns : tuple of int
        The problems; models come problem by problem, shape (c q, t, 1) for c models of q problems.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.criteria.separate import BinaryErrors
    >>> from lssvm.tasks import Truth
    >>> truth = Truth(np.array([[1.0, 0.0], [-1.0, 1.0]]))  # the first row is not in problem 1
    >>> BinaryErrors((0, 1)).rows(np.full((2, 2, 1), 0.5), truth)
    array([[0., 1.],
           [0., 0.]])
    """

    columns: tuple[int, ...]

    def rows(self, outputs: Array, truth: Truth) -> Array:
        """Return 1 where a row of a problem is on the wrong side, shape (c q, t)."""
        xp, q = get_namespace(outputs), len(self.columns)
        index = xp.asarray(self.columns, device=device(outputs))
        Y = xp.permute_dims(xp.take(truth.Y, index, axis=1), (1, 0))  # (q, t)
        t = int(outputs.shape[1])
        products = xp.reshape(outputs, (-1, q, t)) * Y[None, ...]
        wrong = (products <= 0) & (Y != 0)[None, ...]
        return xp.astype(xp.reshape(wrong, (-1, t)), outputs.dtype)


@dataclass(eq=False)
class SeparateObjective:
    """One objective for each output, with the passes over the rows in common.

    Parameters
    ----------
    objective : FixedSizeObjective
        Of all outputs; its loss is not used.
    by_error : bool
        Whether an output is judged by its rows on the wrong side, with the squared error for ties,
        or by the squared error alone.
    room : int
        Bytes that the moments of kernel parameters may take; those of the last one are kept
        whatever they take.

    Notes
    -----
    A pass for each gamma that any output asks for, and what `FixedSizeObjective` takes for each C.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.criteria.separate import SeparateObjective
    >>> from lssvm.tasks import SquaredError
    >>> from lssvm.tuning import FixedSizeObjective, HostRows, content_folds
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> rows = HostRows(X, np.hstack([np.sin(X), np.sin(9 * X)]))
    >>> both = FixedSizeObjective(RBF, rows, X[::5], content_folds(X, 5), SquaredError())
    >>> slow, fast = (SeparateObjective(both, False, 10**8).of(j) for j in (0, 1))
    >>> C = np.array([1e4])
    >>> bool(slow.at(0.1).losses(C).mean[0] < 1e-3 < fast.at(0.1).losses(C).mean[0])
    True
    """

    objective: FixedSizeObjective
    by_error: bool
    room: int
    _points: dict[Any, FixedSizePoint] = field(default_factory=dict, repr=False)
    _tables: dict[Any, tuple[FloatArray, FloatArray]] = field(default_factory=dict, repr=False)

    def of(self, output: int) -> OutputObjective:
        """Return the objective of one output."""
        return OutputObjective(self, output)

    def point(self, gamma: float | None) -> FixedSizePoint:
        """Return the moments at a kernel parameter, of which three digits count."""
        key = _key(gamma)
        if key not in self._points:
            point = self.objective.at(gamma)
            size = 2 * 8 * point.Z.shape[0] ** 2 * max(1, len(point.moments.cells))
            while self._points and (len(self._points) + 1) * size > self.room:
                self._points.pop(next(iter(self._points)))
            self._points[key] = point
        return self._points[key]

    def losses(self, gamma: float | None, output: int, C: FloatArray) -> Losses:
        """Return the losses of one output along a path of C."""
        C = np.asarray(C, dtype=np.float64)
        point = self.point(gamma)
        group = next(g for g in point.groups if output in g)
        key = (_key(gamma), int(group[0]), C.tobytes())
        if key not in self._tables:
            with small_problem(point.Z.shape[0]):
                self._tables[key] = self._table(point, C, group)
        errors, mass = self._tables[key]
        loss, squares = errors[..., int(np.searchsorted(group, output))]
        share = mass / mass.sum() if mass.sum() > 0 else np.full(len(mass), 1.0 / len(mass))
        tie = (squares * share).sum(axis=1)
        finite = np.isfinite(tie)
        loss = np.where(finite[:, None], loss, np.inf)
        return Losses(loss, share, np.where(finite, tie, np.inf))

    def _table(
        self, point: FixedSizePoint, C: FloatArray, group: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return losses and squared errors (2, c, v, q), and the weights (v,) of the folds."""
        if self.objective.leave_out:
            return self._left_out(point, C, group)
        each = 6 * 8 * point.moments.n_folds * point.Z.shape[0] * len(group)
        step = int(max(1, min(len(C), 0.25 * point.rows.budget // each)))
        pieces = [self._stretch(point, C[part], group) for part in slices(len(C), step)]
        return np.concatenate([losses for losses, _ in pieces], axis=1), pieces[0][1]

    def _stretch(
        self, point: FixedSizePoint, C: FloatArray, group: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        models, squares, mass = point.output_models(C, group)
        losses = squares
        if self.by_error:
            flat = [_problem_by_problem(model) for model in models]
            loss, folds = BinaryErrors(tuple(group.tolist())), self.objective.folds
            sums = point.rows.sums(point.kernel, point.Z, flat, folds, loss)
            wrong = np.moveaxis(sums.reshape(len(C), len(group), -1), 2, 1)
            right = 1.0 - wrong / np.where(mass > 0, mass, 1.0)[:, None]
            losses = -np.round(right, 9)
        return np.stack([losses, squares]), mass

    def _left_out(
        self, point: FixedSizePoint, C: FloatArray, group: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        truth = point.rows.sample.truth
        Y = np.asarray(truth.Y)[:, group]
        used = np.arange(len(Y)) if self.objective.task is None else np.flatnonzero(Y[:, 0])
        weight = np.ones(len(Y)) if truth.weight is None else truth.weight
        weight, Y = weight[used] / weight[used].sum(), Y[used]
        squares, wrong = [], []
        for part in slices(len(C), point.rows.outputs_at_once(len(C))):
            outputs = point.left_out_outputs(C[part], group)[:, used]
            squares.append(np.einsum("cnq,n->cq", (outputs - Y) ** 2, weight))
            wrong.append(np.einsum("cnq,n->cq", (outputs * Y <= 0) & (Y != 0), weight))
        square, right = np.concatenate(squares)[:, None], 1.0 - np.concatenate(wrong)[:, None]
        return np.stack([-np.round(right, 9) if self.by_error else square, square]), np.ones(1)


@dataclass(frozen=True, eq=False)
class OutputObjective:
    """The objective of one output, see `SeparateObjective`."""

    shared: SeparateObjective
    output: int

    def at(self, gamma: float | None) -> OutputPoint:
        """Return the losses at one kernel parameter, where they are asked for."""
        return OutputPoint(self, gamma)


@dataclass(frozen=True, eq=False)
class OutputPoint:
    """A kernel parameter of one output."""

    objective: OutputObjective
    gamma: float | None

    def losses(self, C: FloatArray) -> Losses:
        """Return the losses of a path of C."""
        return self.objective.shared.losses(self.gamma, self.objective.output, C)


def _key(gamma: float | None) -> str:
    return "" if gamma is None else f"{gamma:.3g}"


def _problem_by_problem(model: Expansion) -> Expansion:
    """Return models (c, m, q) as (c q, m, 1)."""
    coef, b = model
    xp = get_namespace(coef)
    c, m, q = coef.shape
    flat = xp.reshape(xp.permute_dims(coef, (0, 2, 1)), (c * q, m, 1))
    return Expansion(flat, xp.reshape(b, (c * q, 1)))


def fold_models(
    point: FixedSizePoint, C: float, output: int
) -> list[tuple[FloatArray, FloatArray]] | None:
    """Return coefficients (m, 1) and intercepts (1,) of one output for every fold.

    None where rows are left out in closed form.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.criteria.separate import fold_models
    >>> from lssvm.tasks import SquaredError
    >>> from lssvm.tuning import FixedSizeObjective, HostRows, content_folds
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> folds = content_folds(X, 5)
    >>> made = FixedSizeObjective(RBF, HostRows(X, np.sin(X)), X[::5], folds, SquaredError())
    >>> [coef.shape for coef, _ in fold_models(made.at(1.0), 10.0, 0)][:2]
    [(20, 1), (20, 1)]
    """
    if point.objective.leave_out:
        return None
    group = next(g for g in point.groups if output in g)
    at = [int(np.searchsorted(group, output))]
    models, _, _ = point.output_models(np.array([C]), group)
    return [(to_numpy(coef)[0][:, at], to_numpy(b)[0][at]) for coef, b in models]
