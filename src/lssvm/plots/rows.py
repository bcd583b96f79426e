"""What a fitted model consists of, and the rows that it takes."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from lssvm._core.arrays import AnyArray, FloatArray, IntArray, is_sparse
from lssvm._core.errors import InvalidInputError
from lssvm.data import Scan
from lssvm.data.dataset import Dataset, open_dataset
from lssvm.data.folds import hash_rows
from lssvm.data.preparation import PreparedTable
from lssvm.data.raw import RawBlock, Schema, TextColumn, plain_features
from lssvm.data.scanning import SplitReader
from lssvm.estimators import FixedSizeLSSVC, FixedSizeLSSVR, LSSVMClassifier, LSSVMRegressor
from lssvm.fitting import Fit
from lssvm.plots.base import Estimator, fitted_attributes, fitted_model, transformed
from lssvm.reductions import SparsityPath

MANY = 64  # pairs of classes
PATH_WORK = 2e10  # operations of a sparsity path that are not too many


def classifies(estimator: Estimator) -> bool:
    """Say whether an estimator, or the last step of a pipeline, predicts classes."""
    return bool(is_classifier(fitted_model(estimator)))


def is_table(model: Estimator) -> bool:
    """Say whether a model is one of those for tables, with a stack of configurations."""
    return isinstance(model, LSSVMClassifier | LSSVMRegressor)


def table_record(model: Estimator) -> Fit[Any] | None:
    """Return the stack of a model for tables; None for other models."""
    return model.record_ if isinstance(model, LSSVMClassifier | LSSVMRegressor) else None


def preparation_of(estimator: Estimator) -> PreparedTable | None:
    """Return how raw columns become numbers, where the model itself has learned that."""
    record = fitted_attributes(estimator).get("record_")
    return record.any_prepared if isinstance(record, Fit) and record.prepared else None


def reader_of(estimator: Estimator) -> PreparedTable | None:
    """Return how raw columns become numbers, in the model or in the first step of a pipeline."""
    first = estimator[0] if isinstance(estimator, Pipeline) else estimator
    ready = fitted_attributes(first).get("prepared_")
    return ready if isinstance(ready, PreparedTable) else preparation_of(estimator)


def columns_of(estimator: Estimator) -> tuple[tuple[str, ...] | None, int, dict[str, str]]:
    """Return names (None: they have none) and number of its columns, and what is known of them."""
    first = estimator[0] if isinstance(estimator, Pipeline) else estimator
    fitted = fitted_attributes(first)
    names = tuple(str(name) for name in fitted.get("feature_names_in_", ())) or None
    ready = reader_of(estimator)
    return names, int(fitted.get("n_features_in_", 0)), {} if ready is None else ready.kinds


def feature_names_of(estimator: Estimator, d: int) -> tuple[str, ...]:
    """Return names of the d features that the model itself sees, behind all preparation."""
    ready = preparation_of(estimator)
    names = ready.feature_names if ready is not None else columns_of(estimator)[0] or ()
    return tuple(names) if len(names) == d else tuple(f"x{j}" for j in range(d))


def is_precomputed(model: Estimator) -> bool:
    """Say whether the model takes kernel values in place of features."""
    kernel = model.get_params(deep=False).get("kernel")
    return isinstance(kernel, str) and kernel == "precomputed"


def support_size(model: Estimator) -> int:
    """Return the number of basis functions of a model; of one for tables, the rows it keeps."""
    record = table_record(model)
    if record is not None:
        return max(member.model.n_basis for member in record.members)
    return int(np.atleast_2d(np.asarray(fitted_attributes(model)["dual_coef_"])).shape[0])


def prediction_work(model: Estimator, d: int) -> float:
    """Return about how many operations the prediction of a row of d columns takes."""
    basis_rows, record = basis(model), table_record(model)
    width = 20 + (d if basis_rows is None else basis_rows[1].shape[1])
    return float(support_size(model) * width * (1 if record is None else len(record.used)))


def n_prototypes(model: Estimator) -> int | None:
    """Return the prototypes before a reduction; None for models without."""
    m = fitted_attributes(model).get("n_prototypes_")
    return None if m is None else int(m)


def basis(model: Estimator) -> tuple[str, FloatArray, IntArray] | None:
    """Return what the rows that a model keeps are called, the rows (m, d) and their positions."""
    fitted = fitted_attributes(model)
    name = "prototypes" if "prototypes_" in fitted else "support vectors"
    Z = fitted.get("prototypes_", fitted.get("support_vectors_"))
    support = np.asarray(fitted.get("support_", ()), dtype=np.intp)
    if Z is None or len(support) == 0:
        return None
    return name, np.asarray(Z.toarray() if is_sparse(Z) else Z, dtype=np.float64), support


def parameters_of(model: Estimator) -> dict[str, Any]:
    """Return C, gamma, the number of prototypes and the solver, as far as a model has them."""
    fitted = fitted_attributes(model)
    values = {k: fitted.get(f"{k}_") for k in ("C", "gamma", "n_prototypes", "solver")}
    return {name: value for name, value in values.items() if value is not None}


def n_systems(model: Estimator) -> int:
    """Return how many linear systems a model has: one per pair of classes in one-vs-one."""
    code = fitted_attributes(model).get("code_")
    return 1 if code is None or code.shares_rows else int(code.n_problems)


def slow_to_calibrate(model: Estimator) -> bool:
    """Say whether probabilities would take very long: a pass over the rows for each of many pairs.

    The scores of a tuned model are at hand.
    """
    return n_systems(model) > MANY and "tuning_result_" not in fitted_attributes(model)


def sparsity_path(model: Estimator) -> SparsityPath | None:
    """Return error against support vectors, where the model has it or finds it quickly."""
    if not isinstance(model, FixedSizeLSSVC | FixedSizeLSSVR):
        return None
    fitted = fitted_attributes(model)
    if not fitted.get("sparsity_paths_"):
        folds = model.cv
        folds = int(folds) if isinstance(folds, (int, np.integer)) and folds > 1 else 10
        problems = max(1, len(fitted.get("moments_") or [0]))
        if 15.0 * folds * (n_prototypes(model) or 0) ** 3 * problems > PATH_WORK:
            return None
    try:
        path = model.sparsity_path()
    except InvalidInputError:
        return None
    return path if isinstance(path, SparsityPath) else None


LIMIT = 50_000  # rows that are kept in memory


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Rows of a data set with their targets.

    Attributes
    ----------
    block : RawBlock
        Rows of positive weight, with targets.
    n_rows : int
        Rows of positive weight, of which ``block`` holds all or a uniform sample.
    positions : int array
        Where the rows stand among all rows.
    target : tuple of str
        Names of the target, where it has any.
    files : tuple of str
        Where the rows come from, where that is files.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVC
    >>> from lssvm.plots.rows import SampledRows
    >>> X, y = np.arange(6.0).reshape(3, 2), np.array([0, 1, 1])
    >>> rows = SampledRows.read(LSSVC(gamma=1.0).fit(X, y), (X, y))
    >>> rows.n_rows, rows.schema.names, rows.take([2]).y.tolist()
    (3, ('x0', 'x1'), [1])
    """

    block: RawBlock
    n_rows: int
    positions: IntArray
    target: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def schema(self) -> Schema:
        """The columns of features."""
        return self.block.schema

    @classmethod
    def read(cls, estimator: Estimator, data: Any, limit: int = LIMIT, seed: int = 0) -> Self:
        """Read at most ``limit`` rows, drawn uniformly, of a scan or a pair (X, y).

        Parameters
        ----------
        estimator : object
            Fitted; its columns are read.
        data : Scan or (X, y)
        limit : int, default=50000
        seed : int, default=0

        Notes
        -----
        One pass over the data, one more to count the rows of files. Memory of the sample.
        """
        if isinstance(data, tuple) and len(data) == 2:
            return cls._of(open_dataset(*data), limit, seed, estimator)
        if not isinstance(data, Scan):
            raise InvalidInputError(
                f"The rows of a report came as {type(data).__name__}: give lssvm.scan(...) with a "
                "target, or a pair (X, y)."
            )
        if not data.has_target:
            raise InvalidInputError(
                "The rows of a report have no target: give scan(..., target=...)."
            )
        data = data.select(*columns_of(estimator))
        rows = cls._of(data, limit, seed, estimator)
        reader = innermost_reader(data)
        known = vars(reader)
        target, files = known.get("target"), known.get("files", ())
        names = target if isinstance(target, tuple) else ()
        return replace(rows, target=tuple(map(str, names)), files=tuple(map(str, files)))

    @classmethod
    def _of(cls, data: Dataset, limit: int, seed: int, estimator: Estimator) -> Self:
        """Draw rows of a data set; text that was dates in training is read as dates."""
        sample, ready = data.sample(limit, seed=seed), preparation_of(estimator)
        rows, table = sample.block, sample.block.table
        block = RawBlock.of_table(table if ready is None else ready.with_dates(table))
        block = replace(block, target=rows.target, weight=rows.weight)
        return cls(block, sample.n_rows, sample.positions)

    def __len__(self) -> int:
        return len(self.block)

    @property
    def complete(self) -> bool:
        """Whether these are all rows."""
        return len(self) == self.n_rows

    @property
    def y(self) -> AnyArray:
        """The targets, shape (n,) or (n, k)."""
        assert self.block.target is not None
        return self.block.target

    @property
    def weight(self) -> FloatArray | None:
        """The weights, shape (n,); None where all are one."""
        weight = self.block.weight
        return None if weight is None or np.all(weight == weight[0]) else weight

    def take(self, rows: Any) -> SampledRows:
        """Return some rows."""
        index = np.asarray(rows, dtype=np.intp)
        return replace(self, block=self.block.take(index), positions=self.positions[index])

    def subsample(self, limit: int, seed: int = 0) -> SampledRows:
        """Return at most so many rows, drawn at random, in their order."""
        if len(self) <= limit:
            return self
        rng = np.random.default_rng(seed)
        return self.take(np.sort(rng.choice(len(self), limit, replace=False)))

    def permuted(self, name: str, places: IntArray) -> SampledRows:
        """Return rows where one column has values of other rows.

        Parameters
        ----------
        name : str
            Of the column.
        places : int array of shape (n,)
            Which row each of its values comes from.
        """
        column = self.columns()[name]
        permuted = column.take(places) if isinstance(column, TextColumn) else column[places]
        return self.replaced({name: permuted})

    def replaced(self, values: dict[str, Any]) -> SampledRows:
        """Return rows with other values in some columns: numbers (n,), texts (n,), or a column."""
        numbers, texts = self.block.numbers.copy(), list(self.block.texts)
        for name, column in values.items():
            if name in self.schema.texts:
                coded = column if isinstance(column, TextColumn) else TextColumn.of(list(column))
                texts[self.schema.texts.index(name)] = coded
            else:
                numbers[:, self.schema.numbers.index(name)] = column
        return replace(self, block=replace(self.block, numbers=numbers, texts=tuple(texts)))

    def columns(self) -> dict[str, FloatArray | TextColumn]:
        """Return the columns by their names, in the order of the schema."""
        numbers = dict(zip(self.schema.numbers, self.block.numbers.T, strict=True))
        texts = dict(zip(self.schema.texts, self.block.texts, strict=True))
        both: dict[str, FloatArray | TextColumn] = {**numbers, **texts}
        return {name: both[name] for name in self.schema.names}

    def values(self) -> dict[str, AnyArray]:
        """Return the columns by their names, strings unchanged."""
        columns = self.columns().items()
        return {name: c.texts if isinstance(c, TextColumn) else c for name, c in columns}

    def codes(self) -> FloatArray:
        """Return all columns as numbers, strings by their position; only to distinguish rows."""
        return np.column_stack([self.block.numbers, *map(as_numbers, self.block.texts)])

    def keys(self) -> NDArray[np.uint64]:
        """Return a hash of every row with its target, the same for equal rows anywhere."""
        columns = [np.nan_to_num(self.block.numbers, nan=0.123456789)]
        for text in (*self.block.texts, TextColumn.of(map(str, self.y.tolist()))):
            levels = [zlib.crc32(level.encode("utf-8", "replace")) for level in text.levels]
            columns.append(np.array([*levels, 0], dtype=np.float64)[text.codes][:, None])
        return hash_rows(np.hstack(columns), 0)

    def inputs(self, estimator: Estimator) -> Any:
        """Return the rows as the estimator takes them for a prediction."""
        if reader_of(estimator) is not None:
            return replace(self.block.table, named=columns_of(estimator)[0] is not None)
        if columns_of(estimator)[0] is not None:
            try:
                import pandas as pd
            except ImportError:  # our own models take columns by their names as well
                return self.values() if self.schema.texts else plain_features(self.block)
            return pd.DataFrame(self.values())
        if self.schema.texts:
            raise InvalidInputError(
                f"The columns {list(self.schema.texts)} hold text, but the model was fitted to an "
                "array of numbers: give the rows as it takes them."
            )
        return plain_features(self.block)

    def features(self, estimator: Estimator) -> Any:
        """Return the rows as a copy of the estimator is fitted to them, prepared if it prepares."""
        ready = fitted_attributes(estimator).get("preparation_")
        return self.inputs(estimator) if ready is None else ready.transform(self.block)

    def model_features(self, estimator: Estimator) -> FloatArray:
        """Return the features (n, d) that the model itself sees, behind all preparation."""
        return np.asarray(transformed(estimator, self.features(estimator)), dtype=np.float64)

    def model_inputs(self, estimator: Estimator) -> Any:
        """Return the rows as the model at the end of an estimator takes them."""
        plain = fitted_model(estimator) is estimator
        return self.inputs(estimator) if plain else self.model_features(estimator)


def as_numbers(values: FloatArray | TextColumn) -> FloatArray:
    """Return a column as numbers, strings by their position."""
    array = values.codes if isinstance(values, TextColumn) else values
    return np.asarray(array, dtype=np.float64)


def innermost_reader(data: Scan) -> Any:
    """Return what reads the rows of a scan, of which it may take a part."""
    reader: Any = data.reader
    while isinstance(reader, SplitReader):
        reader = reader.reader
    return reader
