"""Cross-validation and holdout of the fixed-size model on rows that are read in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray, IntArray, OnEvent
from lssvm._core.memory import require
from lssvm.criteria.base import Losses
from lssvm.criteria.fixed_size import FixedSizePoint, _squared
from lssvm.criteria.row_losses import RowLoss, StoredScores
from lssvm.data import Preparation, Scan
from lssvm.data.raw import check_rows, plain_features
from lssvm.folds.positions import PositionFolds, PositionHoldout
from lssvm.kernels import Kernel
from lssvm.moments import Moments, Piece, accumulate_stream
from lssvm.moments.cells import ClassTable, FoldMoments, stream_cells
from lssvm.moments.streamed import map_outputs

Encode = Callable[[Any], tuple[FloatArray, IntArray]]
Assign = Callable[[IntArray, IntArray], IntArray]
Model = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class StreamRows:
    """A data set with what is done to its rows before a pass sees them.

    Attributes
    ----------
    data : Scan
    preparation : Preparation or None
    encode : callable
        From a `RawBlock` to targets (b, k) and class numbers (b,).
    n_targets : int
        k.
    factors : array of shape (n_classes,) or None
        What the weights of the rows of a class are multiplied by.
    on_event : callable or None
        Told how far a pass has come.
    """

    data: Scan
    preparation: Preparation | None
    encode: Encode
    n_targets: int
    factors: FloatArray | None = None
    on_event: OnEvent | None = None

    def pieces(self, assign: Assign | None = None) -> Iterator[Piece]:
        """Read all rows of positive weight; ``assign`` gives cells to positions and classes."""
        for block in self.data.blocks():
            check_rows(block)
            if self.on_event is not None:
                self.on_event({"text": f"pass, {block.start + len(block):,} rows read"})
            position = np.arange(block.start, block.start + len(block))
            if block.weight is not None and not np.all(block.weight > 0):
                used = np.flatnonzero(block.weight > 0)
                block, position = block.take(used), position[used]
            ready = self.preparation
            X = plain_features(block) if ready is None else ready.transform(block)
            Y, label = self.encode(block)
            weight = block.weight
            if self.factors is not None:
                weight = self.factors[label] if weight is None else weight * self.factors[label]
            cell = np.zeros(len(X), dtype=np.intp) if assign is None else assign(position, label)
            yield Piece(X, Y, weight, cell, position, label)

    def moments(
        self,
        kernel: Kernel,
        Z: FloatArray,
        folds: PositionFolds | PositionHoldout | None,
        n_classes: int,
        *,
        budget: int,
        threads: int,
    ) -> list[Moments]:
        """Pass over the rows: the moments of the cells of `stream_cells`.

        Where classes are kept apart (``n_classes`` > 0) targets follow from the class and none are
        accumulated. Another engine has to give the same sums.
        """
        budget, threads = self.data.resources(budget, threads)
        work = partial(
            _moments,
            kernel=kernel,
            Z=Z,
            folds=folds,
            n_classes=n_classes,
            budget=budget,
            threads=threads,
        )
        return self.reduce(work, _added)  # type: ignore[no-any-return]

    def reduce(self, work: Callable[[StreamRows], Any], combine: Callable[[Any, Any], Any]) -> Any:
        """Apply ``work`` to all rows, or to those of every part where Dask has it.

        For rows on a cluster, ``work`` and what else is kept here is sent there.
        """
        if not self.data.distributed:
            return work(self)
        if self.on_event is not None:
            self.on_event({"text": f"pass over {self.data.n_rows:,} rows on the cluster"})
        light = replace(self, data=None, on_event=None)  # type: ignore[arg-type]
        return self.data.reduce(partial(_on_part, light, work), combine)

    def stream(self, work: Callable[[StreamRows], Iterator[Any]]) -> Iterator[Any]:
        """Yield what ``work`` yields for all rows, in their order, or in that of the parts."""
        if not self.data.distributed:
            return work(self)
        light = replace(self, data=None, on_event=None)  # type: ignore[arg-type]
        return chain.from_iterable(self.data.stream(partial(_listed, light, work)))


def _on_part(rows: StreamRows, work: Callable[[StreamRows], Any], part: Scan) -> Any:
    return work(replace(rows, data=part))


def _listed(rows: StreamRows, work: Callable[[StreamRows], Iterator[Any]], part: Scan) -> list[Any]:
    return list(work(replace(rows, data=part)))


def _added(one: list[Moments], other: list[Moments]) -> list[Moments]:
    return [a + b for a, b in zip(one, other, strict=True)]


def _moments(
    rows: StreamRows,
    kernel: Kernel,
    Z: FloatArray,
    folds: PositionFolds | PositionHoldout | None,
    n_classes: int,
    budget: int,
    threads: int,
) -> list[Moments]:
    q = max(n_classes, 1)

    def assign(position: IntArray, label: IntArray) -> IntArray:
        part = np.zeros(len(position), np.intp) if folds is None else folds.assign(position)
        return part * q + label if n_classes else part

    pieces = rows.pieces(assign)
    if n_classes:
        pieces = (piece._replace(Y=piece.Y[:, :0]) for piece in pieces)
    return accumulate_stream(
        kernel,
        pieces,
        Z,
        (1 if folds is None else folds.n_cells) * q,
        0 if n_classes else rows.n_targets,
        budget=budget,
        threads=threads,
    )


@dataclass(frozen=True, eq=False)
class _Held:
    """The models of all folds, to be evaluated on the rows that they were not trained on."""

    kernel: Kernel
    Z: FloatArray
    models: list[Model]
    folds: PositionFolds | PositionHoldout
    factors: FloatArray | None  # of the weights of the rows of a class
    threads: int

    def run(self, rows: StreamRows, use: Any) -> Iterator[tuple[int, Any]]:
        """Evaluate the models of every fold on its rows: ``use(fold, rows, outputs)``."""
        n_test = self.folds.n_test

        def assign(position: IntArray, label: IntArray) -> IntArray:
            part = self.folds.assign(position)
            return np.where(part < n_test, part, -1)

        return map_outputs(
            self.kernel, rows.pieces(assign), self.Z, self.models, use, threads=self.threads
        )

    def weights(self, rows: Piece) -> FloatArray:
        weight = np.ones(len(rows.cell)) if rows.weight is None else rows.weight
        return weight if self.factors is None else weight * self.factors[rows.label]


def _summed_losses(rows: StreamRows, held: _Held, criterion: RowLoss) -> FloatArray:
    """Return the sums (c, v) of the losses of c candidates on v folds."""
    sums = np.zeros((len(held.models[0][0]), len(held.models)))

    def use(v: int, part: Piece, outputs: FloatArray) -> FloatArray:
        return np.asarray(criterion.rows(outputs, part) @ held.weights(part))

    for v, part in held.run(rows, use):
        sums[:, v] += part
    return sums


def _outputs(rows: StreamRows, held: _Held) -> Iterator[tuple[FloatArray, ...]]:
    """Yield position, outputs, targets, fold, label and weight of all rows, in pieces."""

    def use(v: int, part: Piece, outputs: FloatArray) -> tuple[FloatArray, ...]:
        fold = np.full(len(part.cell), v)
        return part.position, outputs, part.Y, fold, part.label, held.weights(part)

    return (found for _, found in held.run(rows, use))


@dataclass(frozen=True, eq=False)
class StreamObjective:
    """The cross-validated loss of a fixed-size model on a stream, as a function of (C, gamma).

    Attributes
    ----------
    kernel : callable
        From gamma to a `Kernel`.
    rows : StreamRows
    Z : array of shape (m, d)
    folds : PositionFolds or PositionHoldout
    criterion : RowLoss, StoredScores or None
        None is the squared error, which needs no predictions.
    table : ClassTable or None
    C_grid : array of shape (c,) or None
        As in `FixedSizeObjective`.
    budget, threads : int
    method : str

    Notes
    -----
    [DeBrabanter2010]_, algorithm 4, for v-fold cross-validation as well as a holdout. `at` takes
    one pass for the moments of all folds, a path of C then one more pass for the losses of all c
    values of C on all folds (none for the squared error). Of the predictions only sums are
    kept, so that memory does not grow with the number of rows, except where a criterion needs all
    predictions at once (`StoredScores`): then those values of C with the smallest squared
    errors are scored that a quarter of the memory budget holds.
    """

    kernel: Callable[[float | None], Kernel]
    rows: StreamRows
    Z: NDArray[Any]
    folds: PositionFolds | PositionHoldout
    criterion: RowLoss | StoredScores | None
    table: ClassTable | None = None
    C_grid: FloatArray | None = None
    budget: int = 2**31
    threads: int = 1
    method: str = "auto"
    leave_out: bool = False

    @property
    def n_problems(self) -> int:
        """Number of outputs k."""
        return int(self.rows.n_targets if self.table is None else self.table.targets.shape[1])

    def at(self, gamma: float | None) -> StreamPoint:
        """Accumulate the moments of all folds at ``gamma`` in one pass."""
        kernel = self.kernel(gamma)
        q = 0 if self.table is None else self.table.n_classes
        cells = self.rows.moments(
            kernel, self.Z, self.folds, q, budget=self.budget, threads=self.threads
        )
        layout = stream_cells(self.folds.n_cells, self.folds.n_test, max(q, 1))
        return StreamPoint(self, kernel, self.Z, FoldMoments(layout, cells, self.table), gamma)  # type: ignore[arg-type]


class StreamPoint(FixedSizePoint):
    """A fixed-size model at one kernel parameter; predictions are made in passes."""

    objective: StreamObjective  # type: ignore[assignment]

    def _joint(self, C: FloatArray, columns: IntArray) -> Losses:
        systems = self._folds(columns)
        objective = self.objective
        per_C = 2 * 8 * len(systems) * len(self.Z) * len(columns)
        step = int(max(1, min(len(C), 0.25 * objective.budget // per_C)))
        errors, losses = [], []
        for i in range(0, len(C), step):
            models = [system.solve(C[i : i + step], objective.method) for system in systems]
            tests = [self.moments.testing(v, columns) for v in range(len(systems))]
            squared = [_squared(test, *model) for test, model in zip(tests, models, strict=True)]
            errors.append(np.stack(squared, 1))
            losses.append(self._evaluate(models, errors[-1]))
        return self._losses(np.concatenate(losses), np.concatenate(errors))

    def _separate(self, groups: list[IntArray]) -> Losses:
        coef, b, squares = self._choose_all(groups)
        models = [(coef[v : v + 1], b[v : v + 1]) for v in range(len(coef))]
        return self._losses(self._evaluate(models, squares), squares)

    def _sizes(self) -> FloatArray:
        """Return the weight of every test set."""
        cells, table = self.moments.cells, self.moments.table
        factors = np.ones(1) if table is None else table.factors
        return np.array(
            [
                sum(f * cells[i].weight for f, i in zip(factors, members, strict=True))
                for members in self.moments.layout.test
            ]
        )

    def _losses(self, losses: FloatArray, errors: FloatArray) -> Losses:
        sizes = self._sizes()
        if not sizes.sum() > 0:  # a holdout of next to no rows
            sizes = np.ones(len(sizes))
        share = sizes / sizes.sum()
        tie = (errors * share).sum(axis=1)
        if isinstance(self.objective.criterion, StoredScores):
            share = (sizes > 0) / np.count_nonzero(sizes)
        losses = np.where(np.isfinite(tie)[:, None], losses, np.inf)
        return Losses(losses, share, np.where(np.isfinite(tie), tie, np.inf))

    def _evaluate(self, models: list[Model], errors: FloatArray) -> FloatArray:
        """Return the losses (c, v) of c candidates per fold, in a pass over the rows."""
        criterion = self.objective.criterion
        if criterion is None:
            return errors
        if isinstance(criterion, StoredScores):
            return self._stored(models, errors, criterion)
        work = partial(_summed_losses, held=self._held(models), criterion=criterion)
        sums = self.objective.rows.reduce(work, np.add)
        sizes = self._sizes()
        losses = criterion.finish(sums / np.where(sizes > 0, sizes, 1.0))
        bad = np.stack([~np.isfinite(coef).all(axis=(1, 2)) for coef, _ in models], 1)
        return np.where(bad, np.inf, losses)

    def _held(self, models: list[Model]) -> _Held:
        objective = self.objective
        _, threads = objective.rows.data.resources(objective.budget, objective.threads)
        factors = None if objective.table is None else objective.table.factors
        return _Held(self.kernel, self.Z, models, objective.folds, factors, threads)

    def _stored(
        self, models: list[Model], errors: FloatArray, criterion: StoredScores
    ) -> FloatArray:
        """Keep the predictions of the candidates with the smallest squared errors; score them."""
        objective = self.objective
        n, k = objective.rows.data.n_rows, models[0][0].shape[2]
        limit = int(0.25 * objective.budget // (8 * n * k))
        require(
            8 * n * (k + 4) * 4,
            objective.budget,
            what=f"Scoring the predictions of {n} rows at once, as this scoring needs,",
            advice="Use scoring=None, which needs no stored predictions, or raise memory_budget.",
        )
        used = np.sort(np.argsort(errors.mean(axis=1), kind="stable")[: max(limit, 1)])
        chosen = [(coef[used], b[used]) for coef, b in models]
        out, Y = np.empty((len(used), n, k)), np.zeros((n, k))
        fold, label, weight = np.full(n, -1), np.zeros(n, dtype=np.intp), np.ones(n)
        found = objective.rows.stream(partial(_outputs, held=self._held(chosen)))
        for at, outputs, targets, v, labels, weights in found:
            out[:, at], Y[at], fold[at], label[at], weight[at] = (
                outputs,
                targets,
                v,
                labels,
                weights,
            )
        plain = bool(np.all(weight == 1.0))
        score = criterion.criterion(Y, label, None if plain else weight)
        losses = np.full(errors.shape, np.inf)
        for v in range(errors.shape[1]):
            rows = np.flatnonzero(fold == v)
            losses[used, v] = score(out[:, rows], rows) if len(rows) else 0.0
        return losses
