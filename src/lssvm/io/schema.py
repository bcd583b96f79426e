"""The schema of a model file: the records that it may hold, by their names in files.

A file holds one `Model`, or one `StoredPipeline` that ends in one. They consist of:

=================  ============================================================================
record             holds
=================  ============================================================================
Model              class and parameters of an estimator, its columns, and the record of its fit
Fit                task, members, offset, calibration, tuning, preparations, and ``state``, which
                   only one family of models has
Member             an Expansion, or a LocalModel of leaves; scaling, metric, outputs, weight
Expansion          kernel, basis, coefficients, intercepts, C
SeriesFit          a regressor as a Model, lags and units, the ends of the series
PreparedTable      for every raw column its kind and encoding
Probabilities,     what turns outputs into probabilities and sets, or into intervals
Residuals
StoredPipeline     named steps of scikit-learn (StoredTransformer), and the Model behind them
=================  ============================================================================

The fields of a record are those of its dataclass, whose annotations are their types. A class or a
field that is renamed keeps its name in files: here, or through `lssvm.io.older`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from lssvm import (
    codes,
    greedy,
    kernels,
    local,
    prototypes,
    reductions,
    solvers,
    tasks,
    tuning,
    uncertainty,
)
from lssvm._core.arrays import AnyArray
from lssvm.data import encodings, preparation, text
from lssvm.fitting import dual, fixed_solution, record, series, table_record
from lssvm.fitting import greedy as greedy_fit
from lssvm.io.records import Record, Schema, need
from lssvm.kernels import base, warp
from lssvm.prototypes import bandwidth
from lssvm.reductions import l0, pruning
from lssvm.solvers import moments

MAX_CLASSES = 4096
"""Classes that a stored model may have: the check of an output code takes their square in bytes."""


@dataclass(frozen=True)
class StoredTransformer:
    """A transformer as a file holds it.

    Attributes
    ----------
    name : str
        Of the step.
    kind : str
        The name of its class, "passthrough" or "drop".
    parameters : dict
        Those parameters of the constructor that matter after the fit.
    fitted : dict
        What it has learned, by public names.
    parts : list of StoredTransformer
        The steps of a pipeline, the transformers of a `ColumnTransformer`.
    columns : dict or None
        The columns of such a transformer: a list, a slice, or one.
    """

    name: str
    kind: str
    parameters: dict[str, Any]
    fitted: dict[str, Any]
    parts: list[StoredTransformer]
    columns: dict[str, Any] | None = None


@dataclass(frozen=True)
class StoredPipeline:
    """A pipeline as a file holds it: steps, and the name of the last one, which is a model."""

    steps: list[StoredTransformer]
    name: str
    model: Model


@dataclass(frozen=True)
class Model:
    """An estimator as a file holds it.

    Attributes
    ----------
    kind : str
        The name of its class.
    parameters : dict
        Those of the constructor; nested estimators are records.
    left_out : list of str
        Parameters that are not stored.
    n_features : int or None
        Columns that rows have.
    feature_names : array of str or None
    preparation : dict or None
        From raw columns to features, in files of formats 2 and 3; newer ones have it in the record.
    record : Fit, SeriesFit or None
        None where the estimator is not fitted. The regressor of a `SeriesFit` is a `Model`.
    """

    kind: str
    parameters: dict[str, Any]
    left_out: list[str]
    n_features: int | None = None
    feature_names: AnyArray | None = None
    preparation: dict[str, Any] | None = None
    record: record.Fit[Any] | series.SeriesFit | None = None


# By the names of their classes, which files keep: what is renamed is listed under its old name.
_STORED: tuple[tuple[ModuleType, str], ...] = (
    (record, "Fit Member Tuning Trial Step"),
    (dual, "DualState DualCalibrationData DualPart"),
    (fixed_solution, "FixedState FixedCalibrationData CalibrationSample"),
    (greedy_fit, "GreedyState GreedyCalibrationData"),
    (series, "SeriesFit SeriesResiduals Calibration Calendar Layout Plan Series"),
    (table_record, "TableState"),
    (local, "LocalModel Partition Tree Leaf Rows Setting"),
    (greedy, "GreedyPath"),
    (uncertainty, "OutOfFold Probabilities Residuals Isotonic Sigmoid"),
    (moments, "Moments NystromMap"),
    (solvers, "ExactFit Logistic Pinball"),
    (solvers, "PCG SMO Cholesky CirculantSolver ConjugateGradient"),
    (prototypes, "Selection KMeans RenyiEntropy RPCholesky Uniform"),
    (bandwidth, "Bandwidth"),
    (reductions, "SparsityPath L0 FixedSizeL0 Prune"),
    (l0, "Reduced"),
    (pruning, "Pruned PruneStep"),
    (tuning, "TuningResult PositionFolds PositionHoldout"),
    (tuning, "CirculantSearch CoupledAnnealing GridSearch PathSearch ShrinkingGridSearch"),
    (preparation, "PreparedTable PreparedColumn"),
    (encodings, "NumberEncoding ValueEncoding LevelEncoding DateEncoding"),
    (text, "TextEncoding"),
    (tasks, "Classes Numbers"),
    (codes, "Code Coding"),
    (base, "Expansion"),
    (warp, "Warp"),
    (kernels, "RBF Exponential Laplacian Linear Matern NonStationary Polynomial Trend"),
    (kernels, "Precomputed Metric MetricKernel"),
)
_RECORDS: dict[str, type[Any]] = {
    **{kind.__name__: kind for kind in (Model, StoredPipeline, StoredTransformer)},
    **{name: vars(module)[name] for module, names in _STORED for name in names.split()},
}

_NOT_STORED = {"TuningResult": "point", "FixedState": "kept"}
_NOT_STORED |= {name: "checkpoint" for name in _RECORDS if name.endswith(("Search", "Annealing"))}

_NAN = {
    "DualState": "residual",
    "FixedState": "residual",
    "Member": "error",
    "Tuning": "best_score",
    "TuningResult": "C gamma loss seconds",
    "DualCalibrationData": "held_out",
    "CalibrationSample": "held_out",
    "Selection": "entropy_trace",
    "Bandwidth": "value",
    "SparsityPath": "mean std_error C constant",
    "PruneStep": "loss p_value",
    "GreedyState": "C_scores best_score residual",
    "GreedyPath": "objective error held_out",
    "OutOfFold": "scores",
    "TableState": "held_out importances",
    "Trial": "error weight seconds",
    "Step": "gain",
}

_FLOAT64 = {"Moments", "NystromMap", "Metric", "Warp", "TableState", "Tree", "Leaf", "ExactFit"}
_FLOAT64 |= {"NumberEncoding", "ValueEncoding", "LevelEncoding", "TextEncoding", "Numbers"}

_UNNAMED = {"Model": "parameters record", "StoredPipeline": "model", "Member": "model"}

_Encoding = encodings.NumberEncoding | encodings.LevelEncoding | encodings.DateEncoding
_Encoding |= encodings.ValueEncoding | text.TextEncoding
_TYPES: dict[str, Any] = {
    "CalibrationData": dual.DualCalibrationData
    | fixed_solution.FixedCalibrationData
    | greedy_fit.GreedyCalibrationData,
    "Calibrator": uncertainty.Isotonic | uncertainty.Sigmoid,
    "Encoding": _Encoding,
    "Regressor": Model,
    "S": dual.DualState
    | fixed_solution.FixedState
    | greedy_fit.GreedyState
    | table_record.TableState,
    "Solver": solvers.SMO | solvers.Cholesky | solvers.ConjugateGradient | solvers.CirculantSolver,
}


def _cost_of_code(fields: dict[str, Any]) -> int:
    matrix: Any = fields.get("matrix")
    n = len(matrix) if isinstance(matrix, np.ndarray) and matrix.ndim else 0
    need(n <= MAX_CLASSES, f"there are more than {MAX_CLASSES} classes")
    return n * n + 16 * np.size(matrix)


@cache
def schema() -> Schema:
    """Return the records by their names in files.

    Examples
    --------
    >>> from lssvm.io.schema import schema
    >>> schema()["RBF"].type(2.0)
    RBF(gamma=2.0)
    """
    types = {kind.__name__: kind for kind in _RECORDS.values()} | _TYPES
    return {
        name: Record(
            kind,
            not_stored=frozenset(_NOT_STORED.get(name, "").split()),
            nan=frozenset(_NAN.get(name, "").split()),
            float64=name in _FLOAT64,
            types=types,
            unnamed=frozenset(_UNNAMED.get(name, "").split()),
            cost=_cost_of_code if name == "Code" else None,
        )
        for name, kind in _RECORDS.items()
    }
