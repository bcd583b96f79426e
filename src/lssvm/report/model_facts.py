"""What reports and commands read from a fitted model: the only place that knows its attributes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.data.prepare import Preparation
from lssvm.fitting import TableFit
from lssvm.plots.fitted import Estimator, fitted_model
from lssvm.reductions import SparsityPath

MANY = 64  # pairs of classes
PATH_WORK = 2e10  # operations of a sparsity path that are not too many


def classifies(estimator: Estimator) -> bool:
    """Say whether an estimator, or the last step of a pipeline, predicts classes."""
    return bool(is_classifier(fitted_model(estimator)))


def is_table(model: Estimator) -> bool:
    """Say whether a model is one of those for tables, with a stack of configurations."""
    return hasattr(model, "configurations_")


def table_record(model: Estimator) -> TableFit | None:
    """Return the stack of a model for tables; None for other models."""
    return getattr(model, "record_", None) if is_table(model) else None


def column_kinds(estimator: Estimator) -> dict[str, str] | None:
    """Return what the columns of a model for tables hold, by their names; None for other models."""
    record = table_record(estimator)
    if record is None or record.context is None:
        return None
    return {column.name: column.kind for column in record.context.any_prepared.columns}


def preparation_of(estimator: Estimator) -> Preparation | None:
    """Return how raw columns become numbers, where the model has learned that from a scan."""
    return getattr(estimator, "preparation_", None)


def columns_of(estimator: Estimator) -> tuple[tuple[str, ...] | None, int, tuple[str, ...] | None]:
    """Return names (None: they have none), number and kinds (None: unknown) of its columns."""
    names = tuple(str(name) for name in getattr(estimator, "feature_names_in_", ())) or None
    ready = preparation_of(estimator)
    known = None if ready is None or ready.schema.names != names else ready.schema.kinds
    return names, int(getattr(estimator, "n_features_in_", 0)), known


def inner_names(estimator: Estimator, d: int) -> tuple[str, ...]:
    """Return names of the d features that the model itself sees, behind all preparation."""
    ready = preparation_of(estimator)
    names = ready.feature_names if ready is not None else columns_of(estimator)[0] or ()
    return tuple(names) if len(names) == d else tuple(f"x{j}" for j in range(d))


def is_precomputed(model: Estimator) -> bool:
    """Say whether the model takes kernel values in place of features."""
    kernel = getattr(model, "kernel", None)
    return isinstance(kernel, str) and kernel == "precomputed"


def support_size(model: Estimator) -> int:
    """Return the number of basis functions of a model; of one for tables, the rows it keeps."""
    record = table_record(model)
    if record is not None:
        cuts = [member.model.cuts[0] for member in record.members]
        return max(sum(len(leaf.rows.X) for leaf in cut.leaves) for cut in cuts)
    return int(np.atleast_2d(np.asarray(getattr(model, "dual_coef_", 0.0))).shape[0])


def prediction_work(model: Estimator, d: int) -> float:
    """Return about how many operations the prediction of a row of d columns takes."""
    kept, record = basis(model), table_record(model)
    width = 20 + (d if kept is None else kept[1].shape[1])
    return float(support_size(model) * width * (1 if record is None else len(record.used)))


def n_prototypes(model: Estimator) -> int | None:
    """Return the prototypes before a reduction; None for models without."""
    m = getattr(model, "n_prototypes_", None)
    return None if m is None else int(m)


def basis(model: Estimator) -> tuple[str, FloatArray, IntArray] | None:
    """Return what the rows that a model keeps are called, the rows (m, d) and their positions."""
    what = "prototypes" if hasattr(model, "prototypes_") else "support vectors"
    Z = getattr(model, "prototypes_", getattr(model, "support_vectors_", None))
    support = np.asarray(getattr(model, "support_", ()), dtype=np.intp)
    if Z is None or len(support) == 0:
        return None
    return what, np.asarray(Z.toarray() if hasattr(Z, "toarray") else Z, dtype=np.float64), support


def parameters_of(model: Estimator) -> dict[str, Any]:
    """Return C, gamma, the number of prototypes and the solver, as far as a model has them."""
    values = {k: getattr(model, f"{k}_", None) for k in ("C", "gamma", "n_prototypes", "solver")}
    return {name: value for name, value in values.items() if value is not None}


def n_systems(model: Estimator) -> int:
    """Return how many linear systems a model has: one per pair of classes in one-vs-one."""
    code = getattr(model, "code_", None)
    return 1 if code is None or code.shares_rows else int(code.n_problems)


def slow_to_calibrate(model: Estimator) -> bool:
    """Say whether probabilities would take very long: a pass over the rows for each of many pairs.

    The scores of a tuned model are at hand.
    """
    return n_systems(model) > MANY and not hasattr(model, "tuning_result_")


@dataclass(frozen=True)
class SearchFacts:
    """What a search for parameters has left.

    Attributes
    ----------
    results : dict or list of dict
        ``cv_results_``; a list where binary problems were tuned one by one.
    evaluations : int
    seconds : float
    best_score : float
    interrupted : bool
    """

    results: Any
    evaluations: int
    seconds: float
    best_score: float
    interrupted: bool


def search_facts(model: Estimator) -> SearchFacts | None:
    """Return the record of a search; None where nothing was searched."""
    results = getattr(model, "cv_results_", None)
    if results is None:
        return None
    record = getattr(model, "tuning_result_", None)
    tried = len(results) if isinstance(results, list) else len(results["mean_test_score"])
    return SearchFacts(
        results,
        int(getattr(model, "n_evaluations_", tried)),
        float(getattr(record, "seconds", 0.0)),
        float(getattr(model, "best_score_", np.nan)),
        bool(getattr(record, "interrupted", False)),
    )


def sparsity_path(model: Estimator) -> SparsityPath | None:
    """Return error against support vectors, where the model has it or finds it quickly."""
    if not hasattr(model, "sparsity_path"):
        return None
    if not getattr(model, "sparsity_paths_", None):
        folds = getattr(model, "cv", 10)
        folds = int(folds) if isinstance(folds, (int, np.integer)) and folds > 1 else 10
        problems = max(1, len(getattr(model, "moments_", None) or [0]))
        if 15.0 * folds * (n_prototypes(model) or 0) ** 3 * problems > PATH_WORK:
            return None
    try:
        path = model.sparsity_path()
    except InvalidInputError:
        return None
    return path if isinstance(path, SparsityPath) else None
