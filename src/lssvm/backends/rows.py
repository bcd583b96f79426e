"""Training rows: values in main memory, or blocks that are read in passes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, ClassVar, TypeAlias

import numpy as np

from lssvm._core.arrays import (
    Array,
    BoolArray,
    Device,
    FloatArray,
    IntArray,
    OnEvent,
    check_magnitude,
    get_namespace,
    is_sparse,
    pick,
    times,
    to_numpy,
)
from lssvm._core.blocks import require, slices
from lssvm._core.errors import InvalidInputError
from lssvm.backends.device import Backend, Torch
from lssvm.backends.host import CHUNK, AnyFolds, FoldModels, Host, Named, row_block
from lssvm.data.folds import Folds, PositionFolds, PositionHoldout, count_observations, hash_rows
from lssvm.data.preparation import Learned
from lssvm.data.raw import LookedUp, RawBlock, check_rows
from lssvm.data.scanning import Scan
from lssvm.kernels import Kernel, Metric
from lssvm.kernels.dot import variances
from lssvm.kernels.factory import resolve_gamma
from lssvm.kernels.metric import IDENTITY
from lssvm.solvers.features import Factor, FoldFactors, stream_factors
from lssvm.solvers.moments import (
    FoldMoments,
    Moments,
    NystromMap,
    Piece,
    accumulate_stream,
    make_cells,
    map_outputs,
    stream_cells,
)
from lssvm.solvers.pcg import RowBlock
from lssvm.solvers.reweighting import residual_scale, solve_reweighted, solve_reweighted_stream
from lssvm.tasks import Classes, ClassTable, Numbers, RowLoss, Targets, Task
from lssvm.tasks.losses import DifferentiableLoss, loss_name

_MANY = 20  # more folds than this, of equal rows each, are left out in closed form
_RESCALINGS = 3  # how often a robust loss is solved for, as the scale of its residuals falls


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of arrays in main memory, computed on the host or on a device.

    Parameters
    ----------
    X : array of shape (n, d)
        Features.
    Y : array of shape (n, k) or LookedUp
        Targets.
    weight : array of shape (n,) or None, default=None
        Weights of the rows, those of the classes included.
    labels : array of shape (n,) or None, default=None
        Number of every row's class.
    loss_weight : array of shape (n,) or None, default=None
        Weights in losses; None: ``weight``.
    sample_weight : array of shape (n,) or None, default=None
        The caller's weights.
    positions : array of shape (n,) or None, default=None
        Rows of the caller's data that these are, where some had weight zero.
    caller_data : (X, y) or None, default=None
        What a splitter is to see.
    groups : array or None, default=None
        Groups of the caller's rows that are left out together.
    centre : array of shape (k,) or None, default=None
        What the targets are without.
    by_position : bool, default=False
        Whether folds are assigned by the positions of the rows.
    budget, threads : int
        Memory of the host in bytes, and threads.
    device : Device or None, default=None
        What computes; None: the host.
    placed : array or None, default=None
        The rows on that device, where the caller has them there.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.backends.rows import Rows
    >>> X = np.linspace(0, 1, 10)[:, None]
    >>> (moments,) = Rows(X, np.sin(X)).moments(RBF(1.0), X[::3], None, None).whole
    >>> moments.gram.shape, moments.n
    ((4, 4), 10)
    """

    X: FloatArray
    Y: FloatArray | LookedUp
    weight: FloatArray | None = None
    labels: IntArray | None = None
    loss_weight: FloatArray | None = None
    sample_weight: FloatArray | None = None
    positions: IntArray | None = None
    caller_data: tuple[Any, Any] | None = None
    groups: FloatArray | None = None
    centre: FloatArray | None = None
    by_position: bool = False
    budget: int = 2**31
    threads: int = 1
    device: Device | None = None
    placed: Any = None
    preview: ClassVar[None] = None  # nothing smaller is looked at first

    @cached_property
    def backend(self) -> Backend:
        """Where sums and products are computed."""
        if self.device is None:
            return Host(self.budget, self.threads)
        return Torch(self.device, self.threads)

    @property
    def n_rows(self) -> int:
        """Rows there are."""
        return int(self.X.shape[0])

    @property
    def n_outputs(self) -> int:
        """Targets of a row, k."""
        return int(self.Y.shape[1])

    @property
    def sample(self) -> Rows:
        """All rows."""
        return self

    @property
    def content(self) -> Any:
        """The features, where they are hashed fastest."""
        placed = self.backend.content(self.data)
        return self.X if placed is None else placed

    @property
    def targets(self) -> Targets:
        """What is known of all rows, for losses."""
        weight = self.weight if self.loss_weight is None else self.loss_weight
        return Targets(self.Y, self.labels, weight, self.sample_weight, self.X)

    @cached_property
    def row_numbers(self) -> IntArray:
        """Rows of the caller's data that these are."""
        return np.arange(self.n_rows) if self.positions is None else self.positions

    @cached_property
    def data(self) -> Any:
        """The rows as the backend reads them."""
        columns = {"Y": self.Y, "weight": self.weight, "labels": self.labels}
        columns["loss_weight"] = self.targets.weight
        known = {name: column for name, column in columns.items() if column is not None}
        return self.backend.load(self.X if self.placed is None else self.placed, known)

    def mapped(self, metric: Metric) -> Rows:
        """Return rows, and what a splitter sees of them, after a metric."""
        if metric.map is None:
            return self
        X, caller_data = metric.map_rows(self.X), self.caller_data
        if caller_data is not None:
            caller_data = (
                X if caller_data[0] is self.X else metric.map_rows(caller_data[0]),
                caller_data[1],
            )
        return replace(self, X=X, caller_data=caller_data)

    def observed(self) -> dict[str, Any]:
        """Return what distinguishes rows of the same content, as `assign_folds` takes it."""
        return {
            "labels": self.labels,
            "targets": np.asarray(self.Y) if self.labels is None else None,
            "weight": self.sample_weight,
            "groups": None if self.groups is None else self.groups[self.row_numbers],
        }

    def check(self, loss: str | DifferentiableLoss, criterion: str | None) -> None:
        """Raise for what a device does not compute."""
        self.backend.check(loss_name(loss), criterion)

    def usable_folds(self, folds: PositionFolds | PositionHoldout) -> Folds:
        """Return the folds by position of these rows that can be trained on and tested."""
        return Folds([test for test in self.tested(folds).test if 0 < len(test) < self.n_rows])

    def tested(self, folds: AnyFolds) -> Folds:
        """Return the folds of these rows."""
        if isinstance(folds, Folds):
            return folds
        fold = folds.assign(self.row_numbers)
        return Folds([np.flatnonzero(fold == v) for v in range(folds.n_test)])

    def leaves_out(self, folds: AnyFolds) -> bool:
        """Return whether there are many folds, each of one row or of equal ones."""
        assert isinstance(folds, Folds)
        if folds.train is not None or len(folds) <= _MANY:
            return False
        several = [rows for rows in folds.test if len(rows) > 1]
        content = hash_rows(self.X) if is_sparse(self.X) and several else self.X
        if all(bool(np.all(content[rows] == content[rows[0]])) for rows in several):
            self.backend.check(leaves_out=True)
            return True
        return False

    def repeats_cheaply(self, operations: float) -> bool:
        """Return whether the host takes few operations for rows that were given as arrays."""
        return not self.by_position and self.backend.is_cheap(operations)

    def rounds(self, wanted: int) -> int:
        """Return as many as are wanted."""
        return wanted

    def gamma_scale(self) -> float:
        """Return gamma="scale" of the rows."""
        return float(resolve_gamma("scale", self.X, self.weight))

    def spread(self) -> float:
        """Return the sum of the variances of the features: the mean diagonal of a linear kernel."""
        return float(variances(self.X, self.sample_weight).sum())  # weights not those of classes

    def n_observations(self) -> int:
        """Return the number of different rows, or of all where equal ones are observations."""
        targets = np.asarray(self.Y) if self.labels is None else self.labels
        return count_observations(self.content, targets)

    def moments(
        self, kernel: Kernel, Z: FloatArray, folds: AnyFolds | None, task: Classes | None
    ) -> FoldMoments:
        """Return the moments of every fold in one pass: n m^2 + 2 n m d operations."""
        assert folds is None or isinstance(folds, Folds)
        labels = () if task is None else (self.labels, task.n_classes)
        layout = make_cells(folds, self.n_rows, *labels)
        k = self.n_outputs if task is None else 0
        cells = self.backend.moments(kernel, self.data, Z, layout, k)
        return FoldMoments(replace(layout, order=None), cells, task)  # 4 bytes a row

    def factors(
        self, kernel: Kernel, Z: FloatArray, map: NystromMap, folds: AnyFolds | None
    ) -> FoldFactors:
        """Return the QR factors of the features of every fold, in one pass."""
        assert folds is None or isinstance(folds, Folds)
        layout = make_cells(folds, self.n_rows)
        order = np.arange(self.n_rows) if layout.order is None else layout.order
        Y = np.asarray(self.Y)

        def pieces() -> Iterator[Piece]:
            for c, cell in enumerate(layout.cells):
                for part in slices(cell.stop, CHUNK, cell.start):
                    rows = order[part]
                    fold = np.full(len(rows), c)
                    yield Piece(self.X[rows], Y[rows], pick(self.weight, rows), fold, rows, fold)

        n_cells = len(layout.cells)
        cells = stream_factors(kernel, Z, map, pieces(), n_cells, self.n_outputs)
        return FoldFactors(replace(layout, order=None), cells)

    def sums(self, held_out: FoldModels, loss: RowLoss) -> FloatArray:
        """Return sums (c, v) of a loss over the test rows of each fold by that fold's models."""
        sums = np.zeros((held_out.models[0].coef.shape[0], len(held_out.models)))
        columns = ("Y", "labels", "loss_weight")

        def use(v: int, at: IntArray, outputs: Array, block: Named) -> FloatArray:
            targets = Targets(block["Y"], block.get("labels"), block.get("loss_weight"))
            values, xp = loss.rows(outputs, targets), get_namespace(outputs)
            weight = xp.ones_like(values[0, ...]) if targets.weight is None else targets.weight
            return np.asarray(to_numpy(xp.matmul(values, weight)))

        for v, values in self.backend.fold_outputs(self.data, held_out, columns, use):
            sums[:, v] += values
        return sums

    def outputs(self, held_out: FoldModels) -> Iterator[tuple[FloatArray, Targets]]:
        """Yield, fold by fold, the outputs (c, t, k) of its models for its test rows."""
        c, _, k = held_out.models[0].coef.shape
        folds = self.tested(held_out.folds)
        every = [np.empty((c, len(rows), k)) for rows in folds.test]

        def use(v: int, at: IntArray, outputs: Array, block: Named) -> None:
            every[v][:, at] = to_numpy(outputs)

        deque(self.backend.fold_outputs(self.data, held_out, (), use), maxlen=0)
        for outputs, rows in zip(every, folds.test, strict=True):
            yield outputs, self.targets.take(rows)

    def scored_parts(self, errors: FloatArray) -> list[Any]:
        """Return all models, so many at a time as there is memory for."""
        return [*slices(len(errors), self.outputs_at_once(len(errors)))]

    def outputs_at_once(self, n_models: int) -> int:
        """Return of how many models the outputs of all rows can be kept at a time."""
        each = 3 * 8 * self.n_rows * self.n_outputs
        return int(max(1, min(n_models, 0.25 * self.budget // each)))

    def row_blocks(self, task: Classes | None) -> Iterator[RowBlock]:
        """Yield the rows as conjugate gradients take them, with the targets of classes."""
        table, put = None, self.backend.put
        if task is not None:
            table = self.table(task)
            table = replace(table, targets=put(table.targets), factors=put(table.factors))
        for block in self.backend.row_blocks(self.data, ("Y", "weight", "labels")):
            weight, labels = block.get("weight"), block.get("labels")
            yield row_block(block["X"], block["Y"], weight, labels, task, table)

    def table(self, task: Classes) -> ClassTable:
        """Return targets and weights of the classes."""
        assert self.labels is not None
        return task.table(task.counts(self.labels, self.weight))

    def target_offset(self) -> FloatArray:
        """Return what is taken off the targets for the sake of rounding: their mean."""
        if self.labels is not None:
            return np.zeros(self.n_outputs)
        return np.asarray(np.average(self.Y, axis=0, weights=self.weight), dtype=np.float64)

    def reweighted(
        self,
        kernel: Kernel,
        Z: FloatArray,
        map: NystromMap,
        C: float,
        loss: str | DifferentiableLoss,
        start: tuple[FloatArray, FloatArray],
        output: int,
        **options: Any,
    ) -> tuple[FloatArray, FloatArray, int]:
        """Minimise another loss than the squares for one output; also return the steps."""
        options |= {"budget": self.budget, "threads": self.threads}
        y, weight = self.Y[:][:, [output]], self.targets.weight
        if self.labels is not None:  # rows of other classes are not part of the problem
            options, used = options | {"classes": True}, (y[:, 0] != 0).astype(np.float64)
            weight = used if weight is None else used * weight
        return solve_reweighted(kernel, self.X, y, Z, map, C, loss, start, weight, **options)

    def holds(self, keys: Any, seed: int) -> BoolArray:
        """Return which of some hashes of rows are among the rows."""
        return np.isin(keys, hash_rows(self.content, seed))


# -- rows that are read in blocks ------------------------------------------------------------------


Encode: TypeAlias = Callable[[RawBlock], tuple[FloatArray, IntArray]]
"""From a raw block to targets (b, k) and class numbers (b,)."""


def encode_classes(
    block: RawBlock, task: Classes, targets: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Return the targets (b, k) and the class numbers (b,) of a raw block."""
    labels = task.numbers(block.target, f" in the block of row {block.start}")
    return targets[labels], labels.astype(np.intp)


def number_targets(block: RawBlock) -> FloatArray:
    """Return the targets (b, k) of a raw block."""
    assert block.target is not None
    if block.target.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"The target holds text in {block.place(0)}, but a regression needs numbers: use "
            "FixedSizeLSSVC for labels."
        )
    Y = np.asarray(block.target, dtype=np.float64).reshape(len(block), -1)
    check_magnitude(Y, "The target", "divide it by a constant")
    return Y


def encode_numbers(
    block: RawBlock, task: Numbers, centre: FloatArray | None
) -> tuple[FloatArray, IntArray]:
    """Return the targets of a raw block less their centre, and class numbers, which are all 0."""
    Y = task.check_outputs(number_targets(block))
    return Y if centre is None else Y - centre, np.zeros(len(block), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class ScanRows:
    """Rows of a scan, computed with in passes on the host, or where the workers are.

    Parameters
    ----------
    data : Scan
    learned : Learned or None
        From raw columns to features; None: numbers are taken as they are.
    encode : callable
        From a raw block to targets and class numbers.
    n_outputs : int
        Targets of a row, k.
    class_factors : array of shape (n_classes,) or None
        What the weights of the rows of a class are multiplied by.
    table : ClassTable or None, default=None
        Targets and weights of the classes, where moments are kept per class.
    metric : Metric, default=IDENTITY
        The map of the features.
    n_rows : int, default=0
        Rows of positive weight; 0 for rows that are only added up.
    sample : Rows or None, default=None
        Some of the rows, in memory.
    on_event : callable or None
    budget, threads : int
    """

    data: Scan
    learned: Learned | None
    encode: Encode
    n_outputs: int
    class_factors: FloatArray | None = None
    table: ClassTable | None = None
    metric: Metric = IDENTITY
    n_rows: int = 0
    sample: Rows = None  # type: ignore[assignment]
    on_event: OnEvent | None = None
    budget: int = 2**31
    threads: int = 1

    @classmethod
    def of(
        cls,
        task: Task,
        data: Scan,
        learned: Learned | None,
        counts: FloatArray | None,
        centre: FloatArray | None,
        **options: Any,
    ) -> ScanRows:
        """Return the rows with the targets of a task, less their centre.

        ``counts`` are the weights of the classes; of further rows they are not known, and targets
        of classes follow from all moments.
        """
        if isinstance(task, Numbers):
            encode = partial(encode_numbers, task=task, centre=centre)
            return cls(data, learned, encode, task.n_outputs, **options)
        table = task.table(np.ones(task.n_classes) if counts is None else counts)
        encode = partial(encode_classes, task=task, targets=table.targets)
        if task.per_class:
            return cls(data, learned, encode, task.n_outputs, table=table, **options)
        factors = table.factors if np.any(table.factors != 1.0) else None
        return cls(data, learned, encode, task.n_outputs, factors, **options)

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
            ready = self.learned
            X = block.features(None) if ready is None else ready.transform(block, position)
            X = self.metric.map_rows(X)
            Y, label = self.encode(block)
            weight = times(block.weight, pick(self.class_factors, label))
            cell = np.zeros(len(X), dtype=np.intp) if assign is None else assign(position, label)
            yield Piece(X, Y, weight, cell, position, label)

    def reduce(self, work: Callable[[ScanRows], Any], combine: Callable[[Any, Any], Any]) -> Any:
        """Apply ``work`` to all rows, or to the parts that workers have, and combine."""
        if self.data.distributed and self.on_event is not None:
            self.on_event({"text": f"pass over {self.data.n_rows:,} rows on the cluster"})
        return self.data.reduce(partial(_on_part, self._stripped(), work), combine)

    def stream(self, work: Callable[[ScanRows], Iterator[Any]]) -> Iterator[Any]:
        """Yield what ``work`` yields for all rows, or the parts of workers, in their order."""
        on_part = _listed if self.data.distributed else _on_part
        return chain.from_iterable(self.data.stream(partial(on_part, self._stripped(), work)))

    def _stripped(self) -> ScanRows:
        """Return what is sent to workers: everything but the data and the callback."""
        nothing: Any = None
        listener = None if self.data.distributed else self.on_event
        return replace(self, data=nothing, sample=nothing, on_event=listener)

    @property
    def preview(self) -> Rows:
        """The sample."""
        return self.sample

    @property
    def content(self) -> Any:
        """The rows of the sample."""
        return self.sample.X

    @property
    def backend(self) -> Host:
        """The host: what does not need all rows is computed here."""
        return Host(self.budget, self.threads)

    @property
    def _share(self) -> dict[str, Any]:
        budget, threads = self.data.resources(self.budget, self.threads)
        return {"budget": budget, "threads": threads}

    def check(self, loss: str | DifferentiableLoss, criterion: str | None) -> None:
        """Refuse criteria without folds, and losses that need several looks at a row."""
        if not isinstance(loss, str):
            raise InvalidInputError(
                f"loss={loss!r} is not available for rows that are read in blocks: use one of "
                "'huber', 'absolute', 'weighted', or rows in memory."
            )
        if criterion is not None:
            raise InvalidInputError(
                f"scoring={criterion!r} is not available for rows that are read in blocks: use "
                "cross-validation (scoring=None or a scorer)."
            )

    def usable_folds(self, folds: PositionFolds | PositionHoldout) -> AnyFolds:
        """Return the folds themselves."""
        return folds

    def leaves_out(self, folds: AnyFolds) -> bool:
        """Return False: folds by position have several rows."""
        return False

    def repeats_cheaply(self, operations: float) -> bool:
        """Return False: another pass reads all rows again."""
        return False

    def rounds(self, wanted: int) -> int:
        """Return 0: another pass reads all rows again."""
        return 0

    def gamma_scale(self) -> float:
        """Return gamma="scale" of the sample."""
        return self.sample.gamma_scale()

    def spread(self) -> float:
        """Return the sum of the variances of the features in the sample."""
        return self.sample.spread()

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
        cells = self.reduce(work, _added)
        n_cells, n_test = (1, 0) if folds is None else (folds.n_cells, folds.n_test)
        return FoldMoments(stream_cells(n_cells, n_test, max(q, 1)), cells, task)

    def factors(
        self, kernel: Kernel, Z: FloatArray, map: NystromMap, folds: AnyFolds | None
    ) -> FoldFactors:
        """Return the QR factors of the features of every fold, in one pass."""
        assert not isinstance(folds, Folds)
        n_cells, n_test = (1, 0) if folds is None else (folds.n_cells, folds.n_test)
        work = partial(_factors, kernel=kernel, Z=Z, map=map, folds=folds)
        return FoldFactors(stream_cells(n_cells, n_test, 1), self.reduce(work, _added))

    def sums(self, held_out: FoldModels, loss: RowLoss) -> FloatArray:
        """Return sums (c, v) of a loss over the test rows of each fold by that fold's models."""
        work = partial(_loss_sums, held_out=self._fold_models(held_out), loss=loss)
        return np.asarray(self.reduce(work, np.add))

    def outputs(self, held_out: FoldModels) -> Iterator[tuple[FloatArray, Targets]]:
        """Yield, fold by fold, the outputs (c, t, k) of its models for its test rows."""
        c, _, k = held_out.models[0].coef.shape
        n = self.data.n_rows
        out, Y = np.empty((c, n, k)), np.zeros((n, k))
        fold, label, weight = np.full(n, -1), np.zeros(n, dtype=np.intp), np.ones(n)
        for at, *values in self.stream(
            partial(_held_outputs, held_out=self._fold_models(held_out))
        ):
            out[:, at], Y[at], fold[at], label[at], weight[at] = values
        plain = bool(np.all(weight == 1.0))
        everything = Targets(Y, label, None, None if plain else weight)
        for v in range(len(held_out.models)):
            rows = np.flatnonzero(fold == v)
            yield out[:, rows], everything.take(rows)

    def scored_parts(self, errors: FloatArray) -> list[Any]:
        """Return the most promising models, for one pass: another costs too much."""
        n, k = self.data.n_rows, self.n_outputs
        require(
            8 * n * (k + 4) * 4,
            self.budget,
            what=f"Scoring the predictions of {n} rows at once, as this scoring needs,",
            advice="Use scoring=None, which needs no stored predictions, or raise memory_budget.",
        )
        most = max(1, int(0.25 * self.budget // (8 * n * k)))
        return [np.sort(np.argsort(errors.mean(axis=1), kind="stable")[:most])]

    def _fold_models(self, held_out: FoldModels) -> _HeldOut:
        factors = None if self.table is None else self.table.factors
        return _HeldOut(held_out, factors, self._share["threads"])

    def row_blocks(self, task: Classes | None) -> Iterator[RowBlock]:
        """Yield the rows as conjugate gradients take them, with the targets of classes."""
        for piece in self.pieces():
            for part in slices(len(piece.X), CHUNK):
                rows = piece.take(part)
                yield row_block(rows.X, rows.Y, rows.weight, rows.label, task, self.table)

    def reweighted(
        self,
        kernel: Kernel,
        Z: FloatArray,
        map: NystromMap,
        C: float,
        loss: str | DifferentiableLoss,
        start: tuple[FloatArray, FloatArray],
        output: int,
    ) -> tuple[FloatArray, FloatArray, int]:
        """Minimise another loss for one output; the scale of residuals is that of the sample."""

        def passes(work: Any, combine: Any) -> Any:
            return self.reduce(partial(_one_target, work=work, output=output), combine)

        def scale_of(model: tuple[FloatArray, FloatArray]) -> float:
            fitted = self.backend.outputs(kernel, self.sample.X, Z, *model)
            return residual_scale(self.sample.Y[:, [output]] - fitted, self.sample.weight)

        assert isinstance(loss, str)
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

    def holds(self, keys: Any, seed: int) -> BoolArray:
        """Return which of some hashes of rows are among the rows, in one pass."""
        return np.asarray(self.reduce(partial(_holds, keys=keys, seed=seed), np.logical_or))


def _on_part(rows: ScanRows, work: Callable[[ScanRows], Any], part: Scan) -> Any:
    return work(replace(rows, data=part))


def _listed(rows: ScanRows, work: Callable[[ScanRows], Iterator[Any]], part: Scan) -> list[Any]:
    return list(work(replace(rows, data=part)))


def _added(one: list[Any], other: list[Any]) -> list[Any]:
    return [a + b for a, b in zip(one, other, strict=True)]


def _moments(
    rows: ScanRows,
    kernel: Kernel,
    Z: FloatArray,
    folds: PositionFolds | PositionHoldout | None,
    n_classes: int,
    budget: int,
    threads: int,
) -> list[Moments]:
    n_cells = (1 if folds is None else folds.n_cells) * max(n_classes, 1)
    n_targets = 0 if n_classes else rows.n_outputs

    def assign(position: IntArray, label: IntArray) -> IntArray:
        fold = np.zeros(len(position), np.intp) if folds is None else folds.assign(position)
        return fold * n_classes + label if n_classes else fold

    pieces = (piece._replace(Y=piece.Y[:, :n_targets]) for piece in rows.pieces(assign))
    return accumulate_stream(kernel, pieces, Z, n_cells, n_targets, budget=budget, threads=threads)


def _factors(
    rows: ScanRows,
    kernel: Kernel,
    Z: FloatArray,
    map: NystromMap,
    folds: PositionFolds | PositionHoldout | None,
) -> list[Factor]:
    def assign(position: IntArray, label: IntArray) -> IntArray:
        return np.zeros(len(position), np.intp) if folds is None else folds.assign(position)

    n_cells = 1 if folds is None else folds.n_cells
    return stream_factors(kernel, Z, map, rows.pieces(assign), n_cells, rows.n_outputs)


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """The models of the folds, for rows that they have not seen."""

    of: FoldModels
    factors: FloatArray | None  # of the weights of the rows of a class
    threads: int

    def run(self, rows: ScanRows, use: Any) -> Iterator[tuple[int, Any]]:
        kernel, Z, models, folds = self.of
        assert not isinstance(folds, Folds)

        def assign(position: IntArray, label: IntArray) -> IntArray:
            part = folds.assign(position)
            return np.where(part < folds.n_test, part, -1)

        return map_outputs(kernel, rows.pieces(assign), Z, models, use, threads=self.threads)

    def targets(self, rows: Piece) -> Targets:
        weight = np.ones(len(rows.cell)) if rows.weight is None else rows.weight
        if self.factors is not None:
            weight = weight * self.factors[rows.label]
        return Targets(rows.Y, rows.label, weight)


def _loss_sums(rows: ScanRows, held_out: _HeldOut, loss: RowLoss) -> FloatArray:
    models = held_out.of.models
    sums = np.zeros((len(models[0].coef), len(models)))

    def use(v: int, part: Piece, outputs: FloatArray) -> FloatArray:
        targets = held_out.targets(part)
        return np.asarray(loss.rows(outputs, targets) @ targets.weight)

    for v, values in held_out.run(rows, use):
        sums[:, v] += values
    return sums


def _held_outputs(rows: ScanRows, held_out: _HeldOut) -> Iterator[tuple[FloatArray, ...]]:
    def use(v: int, part: Piece, outputs: FloatArray) -> tuple[FloatArray, ...]:
        fold = np.full(len(part.cell), v)
        weight = np.ones(len(part.cell)) if part.weight is None else part.weight
        if rows.class_factors is not None:  # a scorer does not see the weights of classes
            weight = weight / rows.class_factors[part.label]
        return part.position, outputs, part.Y, fold, part.label, weight

    return (values for _, values in held_out.run(rows, use))


def _one_target(rows: ScanRows, work: Any, output: int) -> Any:
    return work(piece._replace(Y=piece.Y[:, [output]]) for piece in rows.pieces())


def _holds(rows: ScanRows, keys: Any, seed: int) -> BoolArray:
    known = np.zeros(len(keys), dtype=bool)
    for piece in rows.pieces():
        known |= np.isin(keys, hash_rows(piece.X, seed))
    return known


def class_rows(
    task: Classes,
    X: Any,
    labels: IntArray,
    weight: FloatArray | None,
    host: Host,
    *,
    by_class: bool,
    counts: FloatArray | None = None,
) -> Rows:
    """Return rows of known classes, with their targets and weights.

    ``by_class`` means that the fit keeps moments per class where the task needs that: weights
    of rows are then without those of classes. ``counts`` are the weights of the classes where these
    rows are a sample of all.
    """
    table = task.table(task.counts(labels, weight) if counts is None else counts)
    full_weight = times(weight, table.row_factors(labels))
    per_class = by_class and task.per_class
    return Rows(
        X,
        table.looked_up(labels),
        weight if per_class else full_weight,
        labels,
        loss_weight=full_weight,
        sample_weight=weight,
        budget=host.budget,
        threads=host.threads,
    )


Training: TypeAlias = Rows | ScanRows
"""The training rows of one task, wherever they are; both classes have the same members."""
