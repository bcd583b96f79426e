"""The fixed-size model on rows that are read in blocks: fit, update, predict, score."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.memory import as_bytes, require
from lssvm._core.threads import n_threads, run_stream, slices
from lssvm.criteria.closed_form import is_criterion
from lssvm.criteria.fixed_stream import StreamObjective, StreamRows
from lssvm.data import Scan, scan
from lssvm.data.dask import is_dask
from lssvm.data.raw import CHUNK, RawBlock, plain_features
from lssvm.data.scanning import as_scan, is_stream
from lssvm.data.survey import Survey, survey
from lssvm.data.writing import write_table
from lssvm.engines.device_expansion import expand_on_device
from lssvm.estimators._problem import FixedProblem
from lssvm.estimators._validation import seed_of
from lssvm.folds.content import Folds, hash_rows
from lssvm.folds.positions import PositionFolds, PositionHoldout
from lssvm.kernels import Kernel, evaluate_expansion
from lssvm.moments import Moments
from lssvm.solvers.reweighting import residual_scale
from lssvm.solvers.reweighting_stream import solve_reweighted_stream

SAMPLE_ROWS = 50_000  # rows in memory that prototypes are chosen from and gamma is searched on


_RESCALINGS = 3  # how often a robust loss is solved for, as the scale of its residuals falls


@dataclass
class StreamProblem(FixedProblem):
    """A problem whose rows are read in blocks; the arrays of the base are those of the sample."""

    rows: StreamRows = field(kw_only=True)
    found: Survey = field(kw_only=True)
    loss: Any = field(kw_only=True)  # RowLoss, StoredScores, or None for the squared error
    in_memory: ClassVar[bool] = False

    @property
    def n_rows(self) -> int:
        """Rows there are."""
        return self.found.n_rows

    def scale(self) -> float:
        """Return gamma="scale" of all rows."""
        mean, variance = self.found.mean, self.found.variance
        spread = float(np.mean(variance + (mean - mean.mean()) ** 2))
        return 1.0 / (len(mean) * spread) if spread > 0 else 1.0

    def n_distinct(self) -> int:
        """Return the number of rows; equal ones are not looked for."""
        return self.found.n_rows

    def objective(self, kernel: Any, Z: FloatArray, folds: Any, *rest: Any) -> Any:
        """Return what tuning minimises."""
        return StreamObjective(kernel, self.rows, Z, folds, self.loss, self.table, *rest)

    def solve_robust(
        self,
        kernel: Kernel,
        Z: FloatArray,
        map: Any,
        C: float,
        loss: str,
        start: Any,
        j: int,
        *,
        budget: int,
        threads: int,
    ) -> tuple[FloatArray, FloatArray, int]:
        """Replace squared loss by another for output ``j``; its scale is that of the sample."""
        options: dict[str, Any] = {"budget": budget, "threads": threads}
        share: dict[str, Any] = dict(
            zip(options, self.rows.data.resources(budget, threads), strict=True)
        )

        def passes(work: Any, combine: Any) -> Any:
            return self.rows.reduce(partial(_one_target, work=work, j=j), combine)

        def scale_of(model: Any) -> float:
            fitted = evaluate_expansion(kernel, self.X, Z, *model, **options)
            return residual_scale(self.Y[:, [j]] - fitted)

        total, scale = 0, scale_of(start)
        stages = ("huber", "weighted") if loss == "weighted" else (loss,)
        for stage in stages:
            for _ in range(_RESCALINGS):
                *model, steps = solve_reweighted_stream(
                    kernel, passes, Z, map, C, stage, scale, start, **share
                )
                start, total, before, scale = tuple(model), total + steps, scale, scale_of(model)
                if stage == "absolute" or scale > 0.95 * before:
                    break
        return start[0], start[1], total

    def tested(self, point: Any) -> Any:
        """Return the folds of the rows of the sample."""
        part = point.objective.folds.assign(self.found.positions)
        return Folds([np.flatnonzero(part == v) for v in range(point.objective.folds.n_test)])

    def accumulate(
        self, kernel: Kernel, Z: FloatArray, *, budget: int, threads: int
    ) -> list[Moments]:
        """Return the moments of all rows, per class where there is a table."""
        q = 0 if self.table is None else self.table.n_classes
        return self.rows.moments(kernel, Z, None, q, budget=budget, threads=threads)


@dataclass(frozen=True, eq=False)
class StreamUpdate:
    """Rows that are added to a model or removed from it."""

    rows: StreamRows
    table: Any
    n_classes: int

    def accumulate(
        self, kernel: Kernel, Z: FloatArray, *, budget: int, threads: int
    ) -> list[Moments]:
        """Return the moments of all rows, per class where there is a table."""
        return self.rows.moments(kernel, Z, None, self.n_classes, budget=budget, threads=threads)

    def holds(self, keys: NDArray[np.uint64], seed: int) -> NDArray[np.bool_]:
        """Say which of some hashes of rows are among the rows, in one more pass."""
        work = partial(_holds, keys=keys, seed=seed)
        return self.rows.reduce(work, np.logical_or)  # type: ignore[no-any-return]


def _one_target(rows: StreamRows, work: Any, j: int) -> Any:
    return work(piece._replace(Y=piece.Y[:, [j]]) for piece in rows.pieces())


def _holds(rows: StreamRows, keys: NDArray[np.uint64], seed: int) -> NDArray[np.bool_]:
    found = np.zeros(len(keys), dtype=bool)
    for piece in rows.pieces():
        found |= np.isin(keys, hash_rows(piece.X, seed))
    return found


def first_pass(
    model: Any, X: Any, y: Any, sample_weight: Any, *, classes: bool
) -> tuple[Scan, Survey]:
    """Survey the rows and store what the fitted model has to know about their columns."""
    data = with_target(as_scan(X, y, sample_weight))
    if is_dask(X) and data.schema.texts:
        raise InvalidInputError(
            f"The columns {list(data.schema.texts)} hold text, but numbers are needed: use "
            "scan(X, target=...) to have them prepared, or leave them out."
        )
    budget = as_bytes(model.memory_budget)
    columns = len(data.schema.names)
    size = int(max(1000, min(SAMPLE_ROWS, 0.05 * budget // (8 * (columns + 2)))))
    if vars(model).get("_place") is not None:  # a device takes the rows from main memory
        size = max(1, data.n_rows)
        require(
            8 * size * (columns + 2),
            budget,
            what=f"The {size:,} rows of a scan, which a device takes from main memory,",
            advice="Use device=None, which reads them in blocks, or raise memory_budget.",
        )
    model._seed = seed_of(model.random_state)
    found = survey(data, size, seed=model._seed, classes=classes)
    model.n_features_in_ = columns
    if data.named:
        model.feature_names_in_ = np.array(data.schema.names, dtype=object)
    if found.preparation is not None:
        model.preparation_ = found.preparation
    return data, found


def with_target(data: Scan) -> Scan:
    """Raise where there is nothing to learn."""
    if not data.has_target:
        raise InvalidInputError(
            "The rows have no target to learn: give scan(..., target=...), or y beside a Dask "
            "collection."
        )
    return data


def sample_rows(found: Survey) -> tuple[FloatArray, Any, FloatArray | None]:
    """Return features, target and weights of the sample."""
    block = found.sample
    ready = found.preparation
    X = plain_features(block) if ready is None else ready.transform(block)
    weight = block.weight
    if weight is not None and np.all(weight == 1.0):
        weight = None
    return X, block.target, weight


def stream_folds(cv: Any, seed: int) -> PositionFolds | PositionHoldout:
    """Turn ``cv`` into folds by position."""
    if isinstance(cv, (PositionFolds, PositionHoldout)):
        return cv
    if isinstance(cv, (int, np.integer)) and type(cv) is not bool and cv >= 2:
        return PositionFolds(int(cv), seed)
    if isinstance(cv, (float, np.floating)) and 0.0 < cv < 1.0:
        return PositionHoldout(float(cv), seed)
    raise InvalidInputError(
        f"cv={cv!r} is not usable with rows that are read in blocks: give a number of folds, a "
        "share between 0 and 1 to hold out, PositionFolds or PositionHoldout."
    )


def stream_problem(
    model: Any, sample: FixedProblem, found: Survey, rows: StreamRows, table: Any, loss: Any
) -> FixedProblem:
    """Put the problem of a fit together from the sample's and the stream."""
    folds = stream_folds(model.cv, model._seed)
    part = folds.assign(found.positions)
    tests = [np.flatnonzero(part == v) for v in range(folds.n_test)]
    usable = [test for test in tests if 0 < len(test) < len(part)]
    support = found.positions[sample.support]
    if not usable and _tunes(model):
        raise InvalidInputError(
            f"No fold has rows to train on and rows to test on (n_samples={found.n_rows}): give "
            "more rows, or fixed numbers for C, gamma and n_prototypes."
        )
    sample = replace(sample, folds=Folds(usable), support=support)
    if found.complete:
        return sample
    if is_criterion(model.scoring):
        raise InvalidInputError(
            f"scoring={model.scoring!r} is not available for rows that are read in blocks: use "
            "cross-validation (scoring=None or a scorer)."
        )
    return StreamProblem(
        sample.given,
        sample.X,
        sample.Y,
        sample.weight,
        sample.labels,
        table,
        support,
        sample.criterion,
        folds,  # type: ignore[arg-type]
        sample,
        rows=rows,
        found=found,
        loss=loss,
    )


def _tunes(model: Any) -> bool:
    values = (model.C, model.gamma, model.n_prototypes)
    return any(isinstance(value, str) and value == "cv" for value in values)


def update_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Scan, Any]:
    """Return the rows to add or remove as a scan, and the preparation that is left to do."""
    if is_stream(X):
        data = with_target(model_rows(model, as_scan(X, y, sample_weight)))
        return data, getattr(model, "preparation_", None)
    features = model.preparation_.transform(X)
    return scan(features, target=np.asarray(y), weight=sample_weight), None


# -- the fitted model --------------------------------------------------------------------------


def model_rows(model: Any, data: Any) -> Scan:
    """Return a scan of the columns that the model was fitted with."""
    rows = as_scan(data)
    names = tuple(str(n) for n in getattr(model, "feature_names_in_", ())) or None
    known = model.preparation_.schema if hasattr(model, "preparation_") else None
    kinds = known.kinds if known is not None and known.names == names else None
    rows = rows.select(names, model.n_features_in_, kinds)
    if known is not None and names is not None and rows.named:
        known.check(rows.schema, "the data set")
    elif rows.schema.texts != (() if known is None else known.texts):
        raise InvalidInputError(
            f"The columns {list(rows.schema.texts)} hold text, which is not what the model was "
            "fitted with: give its columns with columns=."
        )
    return rows


def _features(model: Any, block: RawBlock) -> FloatArray:
    if hasattr(model, "preparation_"):
        return np.asarray(model.preparation_.transform(block))
    return plain_features(block)


# What prediction does not need; some of it is as large as the data of a small problem.
_LEFT_OUT = (
    "_cache",
    "_map",
    "_sample",
    "cv_results_",
    "moments_",
    "sample_results_",
    "selection_",
    "size_results_",
    "sparsity_paths_",
    "support_",
    "tuning_result_",
)


def light_copy(model: Any) -> Any:
    """Return the model without what prediction does not need, for one thread of a worker."""
    light = copy.copy(model)
    for name in _LEFT_OUT:
        vars(light).pop(name, None)
    return light.set_params(n_jobs=1)


def stream_blocks(model: Any, data: Scan) -> Iterator[tuple[RawBlock, FloatArray]]:
    """Yield blocks of rows with the outputs (b, k) of all problems for them."""
    budget = as_bytes(model.memory_budget)
    place = vars(model).get("_place")
    if place is not None:
        trained = (model.prototypes_, model.dual_coef_, model.intercept_)
        return (
            (
                block,
                expand_on_device(place.engine, model._kernel, _features(model, block), *trained),
            )
            for block in data.blocks()
        )

    def work(block: RawBlock) -> tuple[RawBlock, FloatArray]:
        outputs = evaluate_expansion(
            model._kernel,
            _features(model, block),
            model.prototypes_,
            model.dual_coef_,
            model.intercept_,
            budget=budget,
            threads=1,
        )
        return block, outputs

    return run_stream(work, data.blocks(), n_threads(model.n_jobs))


def stream_features(model: Any, data: Any) -> FloatArray:
    """Return the features of all rows at once, where they fit."""
    data = model_rows(model, data)
    n, d = data.n_rows, model.prototypes_.shape[1]
    require(
        8 * n * d,
        as_bytes(model.memory_budget),
        what=f"Keeping the features of {n} rows, as error bars need,",
        advice="Ask for them in parts of the rows, or raise memory_budget.",
    )
    return np.concatenate([_features(model, block) for block in data.blocks()])


def stream_outputs(model: Any, data: Any) -> Iterator[FloatArray]:
    """Yield the outputs (b, k) of all problems, block by block."""
    rows = model_rows(model, as_scan(data))
    if not rows.distributed:
        return (outputs for _, outputs in stream_blocks(model, rows))
    return chain.from_iterable(rows.stream(partial(_outputs, light_copy(model))))


def _outputs(model: Any, rows: Scan) -> list[FloatArray]:
    return [outputs for _, outputs in stream_blocks(model, rows)]


def write_predictions(model: Any, X: Any, finish: Any, out: Any) -> str:
    """Predict block by block into a file; the file appears when it is complete."""
    if is_stream(X):
        outputs = stream_outputs(model, X)
    else:
        whole = model._raw_scores(X)
        outputs = (whole[part] for part in slices(len(whole), CHUNK))
    return write_table(({"prediction": finish(raw)} for raw in outputs), os.fspath(out))
