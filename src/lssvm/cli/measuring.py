"""Predictions of a model block by block, and how good they are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lssvm._core.errors import InvalidInputError

if TYPE_CHECKING:
    from lssvm.cli.tables import Table
    from lssvm.data import Scan

_KEPT = 1_000_000  # rows up to which scores are kept, for the area under the curve


def is_classifier(model: Any) -> bool:
    """Say whether a model predicts classes."""
    return hasattr(model, "classes_")


def needed_columns(model: Any) -> tuple[str, ...]:
    """Return the columns that a model reads."""
    names = tuple(str(name) for name in getattr(model, "feature_names_in_", ()))
    if not names:
        raise InvalidInputError(
            "The model was fitted to columns without names, so they cannot be found in a file: "
            "fit it to a table with named columns, or use it from Python."
        )
    return names


def model_scan(model: Any, table: Table, target: str | None, weight: str | None = None) -> Scan:
    """Return the columns of a table that a model reads, typed as in its training."""
    names = needed_columns(model)
    table.need(names, ", which the model needs")
    types = {}
    if hasattr(model, "preparation_"):
        schema = model.preparation_.schema
        types = dict(zip(schema.names, schema.kinds, strict=True))
    if target is not None:
        table.need([target], ", the target")
        if target in names:
            raise InvalidInputError(
                f"The column {target!r} cannot be the target: the model learns from it."
            )
        types[target] = target_type(model, table, target)
    if weight is not None:
        table.need([weight], ", the weight")
    return table.scan(target, names, weight, types)


def target_type(model: Any, table: Table, target: str) -> str:
    """Return how the target of a model is to be read from CSV."""
    if not is_classifier(model):
        return "number"
    kind = model.classes_.dtype.kind
    if kind in "iu":
        return "integer"
    return "number" if kind in "bf" else "text"


def model_blocks(model: Any, data: Scan) -> Iterator[tuple[Any, Any]]:
    """Yield blocks of raw rows, with what the methods of the model take for them."""
    prepared = hasattr(model, "preparation_")
    if not prepared and data.schema.texts:
        raise InvalidInputError(
            f"The columns {list(data.schema.texts)} hold text, which the model cannot read."
        )
    for block in data.blocks():
        yield block, block if prepared else block.numbers


def measure(model: Any, data: Scan) -> dict[str, Any]:
    """Return the metrics of a model on rows with a target.

    Parameters
    ----------
    model : estimator
    data : Scan
        With a target; weights count.

    Returns
    -------
    dict
        Classes: ``accuracy`` with an interval of 95 %, ``baseline`` (of always saying the most
        frequent class), ``balanced_accuracy``, ``log_loss``, ``roc_auc`` (two classes, up to a
        million rows), ``confusion`` and per-class figures. Numbers: ``rmse``, ``baseline_rmse``
        (of always saying the mean), ``mae``, ``r2``, ``bias``.

    Notes
    -----
    One pass; memory of a block, and one number a row for the area under the curve.
    """
    tally: Any = _Classes(model) if is_classifier(model) else _Numbers()
    for block, X in model_blocks(model, data):
        tally.add(model, block, X)
    if tally.total == 0:
        raise InvalidInputError("The rows to measure on have a total weight of zero.")
    found: dict[str, Any] = tally.result()
    return found


class _Classes:
    def __init__(self, model: Any) -> None:
        import numpy as np

        self.classes = model.classes_.tolist()
        self.others: dict[Any, int] = {}  # labels the model has not seen
        self.counts = np.zeros((len(self.classes), len(self.classes)))
        self.rows, self.total, self.missed, self.log = 0, 0.0, 0.0, 0.0
        self.binary = len(self.classes) == 2
        self.kept: list[Any] = []

    def add(self, model: Any, block: Any, X: Any) -> None:
        import numpy as np

        weight = np.ones(len(block)) if block.weight is None else block.weight
        code = {label: i for i, label in enumerate(self.classes)}
        truth = np.array([code.get(label, -1) for label in block.target.tolist()])
        decided = np.array([code[label] for label in model.predict(X).tolist()])
        known = truth >= 0
        np.add.at(self.counts, (truth[known], decided[known]), weight[known])
        self.rows += len(block)
        self.total += float(weight.sum())
        self.missed += float(weight[~known].sum())
        if not hasattr(model, "predict_proba"):
            self.log = math.nan
            return
        p = model.predict_proba(X)
        own = p[np.flatnonzero(known), truth[known]]
        self.log -= float(weight[known] @ np.log(np.maximum(own, 1e-15)))
        if self.binary and self.rows <= _KEPT:
            self.kept.append((truth[known], p[known, 1], weight[known]))

    def result(self) -> dict[str, Any]:
        import numpy as np

        right, actual = np.diag(self.counts), self.counts.sum(axis=1)
        called = self.counts.sum(axis=0)
        recall = right / np.where(actual > 0, actual, np.nan)
        precision = right / np.where(called > 0, called, np.nan)
        share = float(right.sum() / self.total)
        found: dict[str, Any] = {
            "rows": self.rows,
            "accuracy": share,
            "accuracy_interval": wilson(share, self.total),
            "error": 1.0 - share,
            "baseline": float(actual.max() / self.total),
            "balanced_accuracy": float(np.nanmean(recall)) if actual.any() else math.nan,
            "log_loss": self.log / max(self.total - self.missed, 1e-300),
        }
        if self.missed:
            found["rows_of_unknown_classes"] = self.missed
        if self.kept and self.rows <= _KEPT:
            found["roc_auc"] = _area(
                *(np.concatenate(part) for part in zip(*self.kept, strict=True))
            )
        found["classes"] = [
            {
                "class": label,
                "rows": float(actual[i]),
                "precision": float(precision[i]),
                "recall": float(recall[i]),
            }
            for i, label in enumerate(self.classes)
        ]
        found["confusion"] = self.counts.tolist()
        return found


def _area(truth: Any, score: Any, weight: Any) -> float:
    from sklearn.metrics import roc_auc_score

    if len(set(truth.tolist())) < 2:
        return math.nan
    return float(roc_auc_score(truth, score, sample_weight=weight))


class _Numbers:
    def __init__(self) -> None:
        self.rows, self.total = 0, 0.0
        self.squares = self.absolute = self.bias = self.mean = self.spread = 0.0

    def add(self, model: Any, block: Any, X: Any) -> None:
        import numpy as np

        weight = np.ones(len(block)) if block.weight is None else block.weight
        y = np.asarray(block.target, dtype=np.float64)
        off = np.asarray(model.predict(X), dtype=np.float64) - y
        part = float(weight.sum())
        self.rows += len(y)
        if part == 0.0:
            return
        self.squares += float(weight @ off**2)
        self.absolute += float(weight @ np.abs(off))
        self.bias += float(weight @ off)
        here = float(weight @ y) / part
        step, both = here - self.mean, self.total + part
        self.spread += float(weight @ (y - here) ** 2) + step**2 * self.total * part / both
        self.mean, self.total = self.mean + step * part / both, both

    def result(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "rmse": math.sqrt(self.squares / self.total),
            "mae": self.absolute / self.total,
            "r2": 1.0 - self.squares / self.spread if self.spread > 0 else math.nan,
            "bias": self.bias / self.total,
            "baseline_rmse": math.sqrt(self.spread / self.total),
        }


def wilson(share: float, rows: float, z: float = 1.959964) -> tuple[float, float]:
    """Return Wilson's interval of 95 % for a share.

    Examples
    --------
    >>> from lssvm.cli.measuring import wilson
    >>> [round(end, 3) for end in wilson(0.9, 100)]
    [0.826, 0.945]
    """
    centre = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows**2)) / (1 + z * z / rows)
    return max(0.0, centre - half), min(1.0, centre + half)


def headline(metrics: dict[str, Any], held_out: bool = False) -> str:
    """Return the one line that says how good a model is.

    Examples
    --------
    >>> from lssvm.cli.measuring import headline
    >>> headline({"rmse": 2.5, "baseline_rmse": 8.0, "r2": 0.91, "rows": 100})
    'RMSE 2.5, R2 0.91 on 100 rows (always saying the mean: RMSE 8)'
    """
    rows = f"on {metrics['rows']:,}{' held-out' if held_out else ''} rows"
    if "accuracy" not in metrics:
        beside = f"(always saying the mean: RMSE {metrics['baseline_rmse']:.4g})"
        return f"RMSE {metrics['rmse']:.4g}, R2 {metrics['r2']:.3g} {rows} {beside}"
    low, high = metrics["accuracy_interval"]
    unknown = metrics.get("rows_of_unknown_classes")
    return (
        f"accuracy {metrics['accuracy']:.1%} (95 % interval {low:.1%} to {high:.1%}) {rows} "
        f"(always saying the same class: {metrics['baseline']:.1%})"
    ) + ("; some have classes that the model has not seen" if unknown else "")
