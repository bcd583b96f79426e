"""Rows that are read in blocks, from a file or on a cluster: nothing of their number is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Protocol

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray, OnEvent, times
from lssvm._core.blocks import require, slices
from lssvm._core.errors import InvalidInputError
from lssvm.backends.host import AnyFolds, FoldModels, HostRows, Rows, row_block
from lssvm.data.folds import Folds, PositionFolds, PositionHoldout, hash_rows
from lssvm.data.prepare import Preparation, Survey
from lssvm.data.raw import RawBlock, check_rows, plain_features
from lssvm.data.scanning import Scan
from lssvm.kernels import Kernel, Metric
from lssvm.kernels.metric import IDENTITY
from lssvm.moments import Moments, NystromMap, Piece, accumulate_stream
from lssvm.moments.accumulate import map_outputs
from lssvm.moments.moments import FoldMoments, stream_cells
from lssvm.solvers.pcg import RowBlock
from lssvm.solvers.reweighting import residual_scale, solve_reweighted_stream
from lssvm.tasks import Classes, ClassTable, RowLoss, Truth

_CHUNK = 8192  # rows of a part of a pass of conjugate gradients
_RESCALINGS = 3  # how often a robust loss is solved for, as the scale of its residuals falls


class Encode(Protocol):
    """From a raw block to targets (b, k) and class numbers (b,)."""

    def __call__(self, block: RawBlock) -> tuple[FloatArray, IntArray]:
        """Return targets and class numbers."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks of a scan, prepared: what travels to the workers of a cluster.

    Parameters
    ----------
    data : Scan
    preparation : Preparation or None
        From raw columns to features.
    encode : callable
        From a raw block to targets and class numbers.
    n_targets : int
    factors : array of shape (n_classes,) or None
        What the weights of the rows of a class are multiplied by.
    on_event : callable or None
    metric : Metric, default=IDENTITY
        The map of the features.
    """

    data: Scan
    preparation: Preparation | None
    encode: Encode
    n_targets: int
    factors: FloatArray | None = None
    on_event: OnEvent | None = None
    metric: Metric = IDENTITY

    def pieces(self, assign: Callable[[IntArray, IntArray], IntArray] | None = None) -> Any:
        """Yield the rows of positive weight, with the cell that ``assign`` gives them."""
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
            X = self.metric.map_rows(X)
            Y, label = self.encode(block)
            weight = times(block.weight, None if self.factors is None else self.factors[label])
            cell = np.zeros(len(X), dtype=np.intp) if assign is None else assign(position, label)
            yield Piece(X, Y, weight, cell, position, label)

    def reduce(self, work: Callable[[Blocks], Any], combine: Callable[[Any, Any], Any]) -> Any:
        """Apply ``work`` to all blocks, or to the parts that workers have, and combine."""
        if self.data.distributed and self.on_event is not None:
            self.on_event({"text": f"pass over {self.data.n_rows:,} rows on the cluster"})
        return self.data.reduce(partial(_on_part, self._light(), work), combine)

    def stream(self, work: Callable[[Blocks], Iterator[Any]]) -> Iterator[Any]:
        """Yield what ``work`` yields for all blocks, or the parts of workers, in their order."""
        on_part = _listed if self.data.distributed else _on_part
        return chain.from_iterable(self.data.stream(partial(on_part, self._light(), work)))

    def _light(self) -> Blocks:
        """Return what travels to workers: everything but the data and who listens."""
        nothing: Any = None
        listener = None if self.data.distributed else self.on_event
        return replace(self, data=nothing, on_event=listener)


def _on_part(blocks: Blocks, work: Callable[[Blocks], Any], part: Scan) -> Any:
    return work(replace(blocks, data=part))


def _listed(blocks: Blocks, work: Callable[[Blocks], Iterator[Any]], part: Scan) -> list[Any]:
    return list(work(replace(blocks, data=part)))


@dataclass(frozen=True, eq=False)
class ScanRows(Rows):
    """Rows of a scan: what is asked of them is computed in passes.

    Parameters
    ----------
    blocks : Blocks
    survey : Survey or None, default=None
        What the first pass has found; None for rows that are only added up.
    sample : HostRows or None, default=None
        Some of the rows, in memory.
    table : ClassTable or None, default=None
        Targets and weights of the classes, where moments are kept per class.
    budget, threads : int
    """

    blocks: Blocks
    survey: Survey = None  # type: ignore[assignment]
    sample: HostRows = None  # type: ignore[assignment]
    table: ClassTable | None = None
    budget: int = 2**31
    threads: int = 1

    @property
    def n_rows(self) -> int:
        """Rows there are."""
        return self.survey.n_rows

    @property
    def n_outputs(self) -> int:
        """Targets of a row, k."""
        return self.blocks.n_targets

    @property
    def rereads(self) -> bool:
        """Another pass reads the file again."""
        return False

    @property
    def _share(self) -> dict[str, Any]:
        budget, threads = self.blocks.data.resources(self.budget, self.threads)
        return {"budget": budget, "threads": threads}

    def check(self, loss: str, criterion: str | None) -> None:
        """Refuse criteria without folds."""
        if criterion is not None:
            raise InvalidInputError(
                f"scoring={criterion!r} is not available for rows that are read in blocks: use "
                "cross-validation (scoring=None or a scorer)."
            )

    def usable_folds(self, folds: PositionFolds | PositionHoldout) -> AnyFolds:
        """Return the folds themselves."""
        return folds

    def gamma_scale(self) -> float:
        """Return gamma="scale" of all rows."""
        mean, variance = self.survey.mean, self.survey.variance
        spread = float(np.mean(variance + (mean - mean.mean()) ** 2))
        return 1.0 / (len(mean) * spread) if spread > 0 else 1.0

    def spread(self) -> float:
        """Return the sum of the variances of the features."""
        return float(np.sum(self.survey.variance))

    def n_observations(self) -> int:
        """Return the number of rows; equal ones are not looked for."""
        return self.n_rows

    def moments(
        self, kernel: Kernel, Z: FloatArray, folds: AnyFolds | None, task: Classes | None
    ) -> FoldMoments:
        """Return the moments of every fold in one pass."""
        assert not isinstance(folds, Folds)
        q = 0 if task is None else task.n_classes
        work = partial(_moments, kernel=kernel, Z=Z, folds=folds, n_classes=q, **self._share)
        cells = self.blocks.reduce(work, _added)
        n_cells, n_test = (1, 0) if folds is None else (folds.n_cells, folds.n_test)
        return FoldMoments(stream_cells(n_cells, n_test, max(q, 1)), cells, task)

    def sums(self, held: FoldModels, loss: RowLoss) -> FloatArray:
        """Return sums (c, v) of a loss over the test rows of each fold by that fold's models."""
        work = partial(_loss_sums, held=self._held(held), loss=loss)
        return np.asarray(self.blocks.reduce(work, np.add))

    def outputs(self, held: FoldModels) -> Iterator[tuple[FloatArray, Truth]]:
        """Yield, fold by fold, the outputs (c, t, k) of its models for its test rows."""
        c, _, k = held.models[0].coef.shape
        n = self.blocks.data.n_rows
        out, Y = np.empty((c, n, k)), np.zeros((n, k))
        fold, label, weight = np.full(n, -1), np.zeros(n, dtype=np.intp), np.ones(n)
        for at, *values in self.blocks.stream(partial(_held_outputs, held=self._held(held))):
            out[:, at], Y[at], fold[at], label[at], weight[at] = values
        plain = bool(np.all(weight == 1.0))
        everything = Truth(Y, label, None, None if plain else weight)
        for v in range(len(held.models)):
            rows = np.flatnonzero(fold == v)
            yield out[:, rows], everything.take(rows)

    def outputs_at_once(self, n_models: int) -> int:
        """Return of how many models the outputs of all rows can be held at a time."""
        n, k = self.blocks.data.n_rows, self.n_outputs
        require(
            8 * n * (k + 4) * 4,
            self.budget,
            what=f"Scoring the predictions of {n} rows at once, as this scoring needs,",
            advice="Use scoring=None, which needs no stored predictions, or raise memory_budget.",
        )
        return max(1, min(n_models, int(0.25 * self.budget // (8 * n * k))))

    def _held(self, held: FoldModels) -> _HeldOut:
        factors = None if self.table is None else self.table.factors
        return _HeldOut(held, factors, self._share["threads"])

    def row_blocks(self, task: Classes | None) -> Iterator[RowBlock]:
        """Yield the rows as conjugate gradients take them, with the targets of classes."""
        for piece in self.blocks.pieces():
            for part in slices(len(piece.X), _CHUNK):
                rows = piece.take(part)
                yield row_block(rows.X, rows.Y, rows.weight, rows.label, task, self.table)

    def reweighted(
        self,
        kernel: Kernel,
        Z: FloatArray,
        map: NystromMap,
        C: float,
        loss: str,
        start: tuple[FloatArray, FloatArray],
        output: int,
    ) -> tuple[FloatArray, FloatArray, int]:
        """Minimise another loss for one output; the scale of residuals is that of the sample."""

        def passes(work: Any, combine: Any) -> Any:
            return self.blocks.reduce(partial(_one_target, work=work, output=output), combine)

        def scale_of(model: tuple[FloatArray, FloatArray]) -> float:
            fitted = self.evaluate(kernel, self.sample.X, Z, *model)
            return residual_scale(self.sample.Y[:, [output]] - fitted, self.sample.weight)

        total, scale = 0, scale_of(start)
        stages = ("huber", "weighted") if loss == "weighted" else (loss,)
        for stage in stages:
            for _ in range(_RESCALINGS):
                coef, intercept, steps = solve_reweighted_stream(
                    kernel, passes, Z, map, C, stage, scale, start, **self._share
                )
                start, total, before = (coef, intercept), total + steps, scale
                scale = scale_of(start)
                if stage == "absolute" or scale > 0.95 * before:
                    break
        return start[0], start[1], total

    def tested(self, folds: AnyFolds) -> Folds:
        """Return the folds of the rows of the sample."""
        assert not isinstance(folds, Folds)
        part = folds.assign(self.survey.positions)
        return Folds([np.flatnonzero(part == v) for v in range(folds.n_test)])

    def holds(self, keys: Any, seed: int) -> BoolArray:
        """Return which of some hashes of rows are among the rows, in one pass."""
        return np.asarray(self.blocks.reduce(partial(_holds, keys=keys, seed=seed), np.logical_or))


def _added(one: list[Moments], other: list[Moments]) -> list[Moments]:
    return [a + b for a, b in zip(one, other, strict=True)]


def _moments(
    blocks: Blocks,
    kernel: Kernel,
    Z: FloatArray,
    folds: PositionFolds | PositionHoldout | None,
    n_classes: int,
    budget: int,
    threads: int,
) -> list[Moments]:
    n_cells = (1 if folds is None else folds.n_cells) * max(n_classes, 1)
    n_targets = 0 if n_classes else blocks.n_targets

    def assign(position: IntArray, label: IntArray) -> IntArray:
        fold = np.zeros(len(position), np.intp) if folds is None else folds.assign(position)
        return fold * n_classes + label if n_classes else fold

    pieces = (piece._replace(Y=piece.Y[:, :n_targets]) for piece in blocks.pieces(assign))
    return accumulate_stream(kernel, pieces, Z, n_cells, n_targets, budget=budget, threads=threads)


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """The models of the folds, for rows that they have not seen."""

    of: FoldModels
    factors: FloatArray | None  # of the weights of the rows of a class
    threads: int

    def run(self, blocks: Blocks, use: Any) -> Iterator[tuple[int, Any]]:
        kernel, Z, models, folds = self.of
        assert not isinstance(folds, Folds)

        def assign(position: IntArray, label: IntArray) -> IntArray:
            part = folds.assign(position)
            return np.where(part < folds.n_test, part, -1)

        return map_outputs(kernel, blocks.pieces(assign), Z, models, use, threads=self.threads)

    def truth(self, rows: Piece) -> Truth:
        weight = np.ones(len(rows.cell)) if rows.weight is None else rows.weight
        if self.factors is not None:
            weight = weight * self.factors[rows.label]
        return Truth(rows.Y, rows.label, weight)


def _loss_sums(blocks: Blocks, held: _HeldOut, loss: RowLoss) -> FloatArray:
    models = held.of.models
    sums = np.zeros((len(models[0].coef), len(models)))

    def use(v: int, part: Piece, outputs: FloatArray) -> FloatArray:
        truth = held.truth(part)
        return np.asarray(loss.rows(outputs, truth) @ truth.weight)

    for v, values in held.run(blocks, use):
        sums[:, v] += values
    return sums


def _held_outputs(blocks: Blocks, held: _HeldOut) -> Iterator[tuple[FloatArray, ...]]:
    def use(v: int, part: Piece, outputs: FloatArray) -> tuple[FloatArray, ...]:
        fold = np.full(len(part.cell), v)
        weight = np.ones(len(part.cell)) if part.weight is None else part.weight
        if blocks.factors is not None:  # a scorer sees the caller's weights, not those of classes
            weight = weight / blocks.factors[part.label]
        return part.position, outputs, part.Y, fold, part.label, weight

    return (values for _, values in held.run(blocks, use))


def _one_target(blocks: Blocks, work: Any, output: int) -> Any:
    return work(piece._replace(Y=piece.Y[:, [output]]) for piece in blocks.pieces())


def _holds(blocks: Blocks, keys: Any, seed: int) -> BoolArray:
    held = np.zeros(len(keys), dtype=bool)
    for piece in blocks.pieces():
        held |= np.isin(keys, hash_rows(piece.X, seed))
    return held
