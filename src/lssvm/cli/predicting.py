"""`lssvm predict`, `evaluate`, `info` and `export`: what a model file is used for.

`predict --check` compares new rows with those that a model was trained on.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, is_sparse
from lssvm._core.errors import InvalidInputError
from lssvm.cli.console import ENDINGS, Output, percent, shown, table_writer
from lssvm.cli.models import (
    Loaded,
    last_step,
    load_model,
    model_blocks,
    model_rows,
    model_scan,
    prepared_table,
)
from lssvm.cli.options import Evaluate, Export, Info, Predict
from lssvm.cli.tables import Table, check_writable, open_input
from lssvm.data import Scan
from lssvm.data.encodings import NumberEncoding
from lssvm.data.preparation import PreparedTable
from lssvm.io import read_header
from lssvm.kernels import RBF, Exponential, Kernel, Laplacian, Matern
from lssvm.plots.base import Estimator, fitted_attributes, has_method, transformed
from lssvm.plots.rows import classifies
from lssvm.report import measures
from lssvm.report.measures import ClassPredictions, NumberPredictions, Predictions

_RANKED = 1_000_000  # rows up to which they are ranked by scores, beyond by probabilities


def predict(options: Predict) -> None:
    """Predict new rows with a model."""
    output, out, interval = options.output, options.out, options.interval
    if options.json and out == "-":
        raise InvalidInputError("--json describes a file of predictions: give -o FILE.")
    check_writable(out, ENDINGS, (options.data, options.model), stdout=True)
    stored = load_model(options.model)
    model, last = stored.model, last_step(stored.model)
    classes = classifies(model)
    if options.proba and not (classes and has_method(model, "predict_proba")):
        raise InvalidInputError("--proba needs a classifier with calibrated probabilities.")
    if interval is not None and not 0.0 < interval < 1.0:
        raise InvalidInputError(
            f"--interval {interval} is not usable: give a number between 0 and 1."
        )
    able = has_method(last, "predict_proba") if classes else has_method(last, "predict_interval")
    if interval is not None and not able:
        kind = type(last).__name__
        raise InvalidInputError(f"--interval is not possible with a {kind}: it has no intervals.")
    rows = 0
    with open_input(options.data, stored.reading(options), output.note) as table:
        scanned, columns = model_scan(model, table, None), _KeptColumns(table, options.keep)
        check = RowCheck(model) if options.check else None
        with table_writer(out, escape=options.escape) as write:
            for block, X in model_blocks(model, scanned):
                write(columns.take(len(block)) | predicted(model, X, options.proba, interval))
                rows += len(block)
                if check is not None:
                    check.add(block)
    output.note(f"{rows:,} rows predicted" + ("" if out == "-" else f" into {out}"))
    result = {"model": options.model, "data": options.data, "output": out, "rows": rows}
    if check is not None:
        result["check"] = check.result()
        for line in check.lines():
            output.note(f"check: {line}")
    output.result(result)


def predicted(model: Estimator, X: Any, proba: bool, interval: float | None) -> dict[str, Any]:
    """Return the columns of predictions for one block."""
    columns: dict[str, Any] = {"prediction": np.asarray(model.predict(X))}
    last, inner = last_step(model), transformed(model, X)
    names = [str(label) for label in model.classes_.tolist()] if classifies(model) else []
    if proba:
        columns |= {f"p_{name}": p for name, p in zip(names, model.predict_proba(X).T, strict=True)}
    if interval is not None and names:
        inside = last.predict_set(inner, coverage=interval).tolist()
        columns["set"] = np.array(["|".join(compress(names, row)) for row in inside])
    elif interval is not None:
        columns["lower"], columns["upper"] = last.predict_interval(inner, coverage=interval).T
    return columns


class _KeptColumns:
    """Columns of the input, unchanged, in step with the blocks of predictions."""

    def __init__(self, table: Table, names: list[str]) -> None:
        self.names = table.names if "*" in names else list(names)
        table.need(self.names, ", which is to be kept")
        clash = [n for n in self.names if n in ("prediction", "lower", "upper", "set")]
        if clash:
            raise InvalidInputError(
                f"The column {clash[0]!r} cannot be kept: predictions have a column of that name."
            )
        self._batches = table.raw_batches(self.names) if self.names else iter(())
        self._left: list[Any] = []

    def take(self, rows: int) -> dict[str, Any]:
        """Return the next rows."""
        if not self.names:
            return {}
        import pyarrow as pa

        while sum(table.num_rows for table in self._left) < rows:
            self._left.append(pa.Table.from_batches([next(self._batches)]))
        whole = pa.concat_tables(self._left)
        self._left = [whole.slice(rows)]
        return {name: whole.slice(0, rows).column(name) for name in self.names}


def evaluate(options: Evaluate) -> None:
    """Measure a model on rows with a known target."""
    loaded, output = load_model(options.model), options.output
    with open_input(options.data, loaded.reading(options), output.note) as table:
        rows = model_scan(loaded.model, table, loaded.target(options.target), options.weight)
        held = loaded.parts(table, rows)[1] if options.held_out else rows
        if held is None:
            raise InvalidInputError(
                f"--held-out needs the file that the model was trained on, with rows held out "
                f"(train --test): {options.data} is another one, or none were."
            )
        metrics = measure(loaded.model, held, options.positive or loaded.card.get("positive"))
    print_metrics(output, metrics)
    for line in headlines(metrics, "held-out" if options.held_out else ""):
        output.line(line)
    output.result({"model": options.model, "data": options.data, **metrics})


def measure(model: Estimator, data: Scan, positive: Any = None) -> dict[str, Any]:
    """Return the metrics of a model on rows with a target, as `metrics_of` does.

    Parameters
    ----------
    model : fitted model
    data : Scan
    positive : object or None, default=None
        The positive class of two; None: the rarer one of these rows.

    Notes
    -----
    The rows are read block by block; memory of a block, and of 8 (q + 3) bytes a row for q classes
    or 16 for numbers.
    """
    parts: list[Any] = []
    unknown: list[Any] = [np.empty(0)]  # weights of rows whose class the model has not seen
    ranked = data.n_rows <= _RANKED
    for block, X in model_blocks(model, data):
        if not classifies(model):
            parts.append(measures.predict_numbers(model, X, block.target, block.weight, ()))
            continue
        classes = np.asarray(model.classes_)
        known = np.isin(block.target, classes)
        if not known.all():
            weight = np.ones(len(block)) if block.weight is None else block.weight
            unknown.append(weight[~known])
            block = block.take(np.flatnonzero(known))
        if len(block):
            rows = model_rows(model, block), block.target, classes, block.weight
            parts.append(measures.predict_classes(model, *rows, scores=ranked))
    if not parts:
        raise InvalidInputError("No row to measure on has a class that the model knows.")
    return metrics_of(measures.join_predictions(parts), np.concatenate(unknown), positive)


def metrics_of(predictions: Predictions, unknown: Any = (), positive: Any = None) -> dict[str, Any]:
    """Return metrics, those of the report, in types of JSON.

    Parameters
    ----------
    predictions : ClassPredictions or NumberPredictions
    unknown : array, default=()
        Weights of rows whose class the model has not seen: they count as wrong.
    positive : object or None, default=None
        The positive class of two; None: the rarer one.

    Returns
    -------
    dict
        Classes: ``accuracy`` with an interval of 95 %, ``baseline`` (that of the most frequent
        class), the metrics of `lssvm.report.measures.class_metrics`, ``confusion`` and metrics by
        class. Numbers: those of `NUMBER_METRICS`, ``bias`` and ``baseline_rmse`` (that of the
        mean).
    """
    n, weight, others = len(predictions), predictions.weight, float(np.sum(unknown))
    total = float(n if weight is None else weight.sum())
    if total + others == 0:
        raise InvalidInputError("The rows to measure on have a total weight of zero.")
    if isinstance(predictions, NumberPredictions):
        y, mean = predictions.Y[:, 0], partial(np.average, weights=weight)
        return {
            "rows": n,
            **measures.metric_values(measures.NUMBER_METRICS, predictions),
            "bias": float(mean(predictions.predicted[:, 0] - y)),
            "baseline_rmse": float(np.sqrt(mean((y - mean(y)) ** 2))),
        }
    assert isinstance(predictions, ClassPredictions)
    classes = predictions.classes
    chosen = measures.positive_class(classes, classes[predictions.labels], positive)
    predictions, hits = replace(predictions, positive=chosen), predictions.right
    if len(unknown):
        weight = np.append(np.ones(n) if weight is None else weight, unknown)
        hits = np.append(hits, np.zeros(len(unknown), dtype=bool))
    share, low, high = measures.proportion_interval(hits, weight)
    named = {"positive": measures.written_label(classes[chosen])} if len(classes) == 2 else {}
    return {
        "rows": n + len(unknown),
        "accuracy": share,
        "accuracy_interval": (low, high),
        "error": 1.0 - share,
        "baseline": measures.baseline_accuracy(predictions)[0] * total / (total + others),
        **named,
        **measures.metric_values(measures.class_metrics(predictions), predictions),
        **({"rows_of_unknown_classes": others} if others else {}),
        "classes": measures.class_table(predictions),
        "confusion": measures.confusion(predictions).tolist(),
    }


def headlines(metrics: dict[str, Any], kind: str = "") -> list[str]:
    """Return the lines about the accuracy of a model, compared with a constant prediction.

    Examples
    --------
    >>> from lssvm.cli.predicting import headlines
    >>> headlines({"rmse": 2.5, "baseline_rmse": 8.0, "r2": 0.91, "rows": 100}, "held-out")
    ['R2 0.910, RMSE 2.5 on 100 held-out rows (predicting the mean: RMSE 8)']
    """
    rows = f"on {metrics['rows']:,} {kind} rows".replace("  ", " ")
    if "accuracy" not in metrics:
        return [
            f"R2 {metrics['r2']:.3f}, RMSE {shown(float(metrics['rmse']))} {rows} (predicting the "
            f"mean: RMSE {shown(float(metrics['baseline_rmse']))})"
        ]
    low, high = map(percent, metrics["accuracy_interval"])
    lines = [
        f"accuracy {percent(metrics['accuracy'])} (95 % interval {low} to {high}) {rows} "
        f"(most frequent class: {percent(metrics['baseline'])})"
    ]
    if metrics.get("rows_of_unknown_classes"):
        lines[0] += "; some have classes that the model has not seen"
    if "positive" in metrics and {"precision", "recall"} <= set(metrics):
        ranked = f", ROC AUC {metrics['roc_auc']:.3f}" if "roc_auc" in metrics else ""
        lines.append(
            f"class {metrics['positive']!r}: precision {percent(metrics['precision'])}, recall "
            f"{percent(metrics['recall'])}{ranked}"
        )
    return lines


def print_metrics(output: Output, metrics: dict[str, Any]) -> None:
    """Print metrics as tables."""
    single = {k: value for k, value in metrics.items() if isinstance(value, (int, float))}
    rows = [[key.replace("_", " "), value] for key, value in single.items()]
    output.table("", ["metric", "value"], rows)
    classes = metrics.get("classes", ())
    if classes:
        columns = ["class", "precision", "recall"]
        heads = [f"called {entry['class']}" for entry in classes] if len(classes) <= 12 else []
        lines = [
            [*(entry[key] for key in columns), *(f"{count:g}" for count in counts[: len(heads)])]
            for entry, counts in zip(classes, metrics["confusion"], strict=True)
        ]
        output.table("", [*columns, *heads], lines)


def info(options: Info) -> None:
    """Show what a model file contains."""
    loaded, output = load_model(options.model), options.output
    facts = describe(options.model, loaded)
    rows = [[name.replace("_", " "), _text(value)] for name, value in facts.items()]
    output.table(os.path.basename(options.model), ["", ""], rows, left=(0, 1))
    test = loaded.card.get("test")
    if isinstance(test, dict):
        for line in headlines(test, str(loaded.card.get("tested") or "held-out")):
            output.line(f"test {line}")
    output.result({**facts, "card": loaded.card})


def describe(path: str, loaded: Loaded) -> dict[str, Any]:
    """Return what is known about a model."""
    model, header, ready = last_step(loaded.model), read_header(path), prepared_table(loaded.model)
    fitted = fitted_attributes(model)
    vectors = fitted.get("support_vectors_")
    facts: dict[str, Any] = {
        "bytes": os.path.getsize(path),
        "model": type(model).__name__,
        "kernel": str(model.get_params(deep=False).get("kernel", "")),
        "C": fitted.get("C_"),
        "gamma": fitted.get("gamma_"),
        "support_vectors": None if vectors is None else len(vectors),
        "prototypes": fitted.get("n_prototypes_"),
    }
    for name in ("task", "target", "data", "rows", "cv_score", "cv_score_name", "seconds", "seed"):
        facts[name] = loaded.card.get(name)
    if "classes_" in fitted:
        facts["classes"] = model.classes_.tolist()
    if "configurations_" in fitted:
        lines = model.summary_.splitlines()
        facts["chosen"] = [line.strip().removeprefix("- ").rstrip(".") for line in lines]
    if ready is not None:
        used = [column for column in ready.columns if column.encoding is not None]
        facts["columns"] = {column.name: column.kind for column in used}
        facts["features"] = ready.n_features
    elif "feature_names_in_" in fitted:
        facts["columns"] = dict.fromkeys(map(str, model.feature_names_in_), "number")
    facts |= {name: header.get(name) for name in ("format", "version", "schema_sha256")}
    return {name: value for name, value in facts.items() if value is not None}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} ({kind})" for name, kind in value.items())
    if isinstance(value, list):
        items = [str(item) for item in value]
        return ("; " if any(", " in item for item in items) else ", ").join(items)
    return shown(value)


def export(options: Export) -> None:
    """Write a model as ONNX for other programs."""
    check_writable(options.out, (".onnx",), (options.model,))
    write_onnx(load_model(options.model).model, options.out)
    size = os.path.getsize(options.out)
    options.output.line(f"{options.out} written ({size / 1024:.1f} kB)")
    options.output.result({"model": options.model, "output": options.out, "bytes": size})


def write_onnx(model: Estimator | None, out: str) -> None:
    """Write a model as ONNX; without one, raise where that would not be possible."""
    from lssvm.onnx import export as write
    from lssvm.onnx.graph import need_onnx

    need_onnx()
    if model is not None:
        write(model, out)


_SOME = 2000  # rows of a basis whose neighbours are looked for
_SHIFT = 0.5  # standard deviations that a mean may differ by, and three standard errors
_FAR = 2.0  # times the distance of the loneliest row of training to its neighbour
_SHOWN = 5


@dataclass
class RowCheck:
    """Counts what is unlike the training rows, block by block.

    Parameters
    ----------
    model : fitted model
    """

    model: Estimator

    def __post_init__(self) -> None:
        self.rows = self.far = 0
        self.first_far: int | None = None
        self.unseen: dict[str, Counter[str]] = {}
        self._sums, self._counts = defaultdict[str, float](float), Counter[str]()
        self._prepared = prepared_table(self.model)
        self._nearest = far_row_detector(self.model)

    def add(self, block: Any) -> None:
        """Look at a block of raw rows."""
        if self._prepared is not None:
            self._add_table(self._prepared, block.table)
        if self._nearest is not None:
            far = self._nearest(model_rows(self.model, block))
            if self.first_far is None and far.any():
                self.first_far = self.rows + int(np.flatnonzero(far)[0])
            self.far += int(far.sum())
        self.rows += len(block)

    def _add_table(self, prepared: PreparedTable, columns: Any) -> None:
        table = prepared.read(columns)
        for name, levels in prepared.unseen(table).items():
            self.unseen.setdefault(name, Counter()).update(levels)
        used = [column for column in prepared.columns if column.encoding is not None]
        features = np.cumsum([0] + [column.width for column in used[:-1]])
        X = prepared.transform(table)
        for column, raw, j in zip(used, table.columns, features, strict=True):
            if isinstance(column.encoding, NumberEncoding):
                known = ~raw.missing & np.isfinite(X[:, j])
                self._sums[column.name] += float(X[known, j].sum())
                self._counts[column.name] += int(known.sum())

    @property
    def shifted(self) -> dict[str, float]:
        """Columns of numbers whose mean differs from that of training, in deviations."""
        means = {n: self._sums[n] / c for n, c in self._counts.items() if c}
        limits = {n: _SHIFT + 3.0 / np.sqrt(self._counts[n]) for n in means}
        return {name: mean for name, mean in means.items() if abs(mean) > limits[name]}

    def result(self) -> dict[str, Any]:
        """Return the counts, in types of JSON."""
        return {
            "unseen_categories": {name: dict(levels) for name, levels in self.unseen.items()},
            "shifted_columns": self.shifted,
            "far_rows": self.far if self._nearest is not None else None,
            "first_far_row": self.first_far,
        }

    def lines(self) -> list[str]:
        """Return the results in words, a line each."""
        lines = []
        for name, levels in self.unseen.items():
            examples = ", ".join(repr(level) for level, _ in levels.most_common(_SHOWN))
            more = f" and {len(levels) - _SHOWN} more" if len(levels) > _SHOWN else ""
            lines.append(
                f"column {name!r} has categories that training has not seen, in "
                f"{levels.total():,} rows: {examples}{more}"
            )
        for name, mean in self.shifted.items():
            side = "above" if mean > 0 else "below"
            lines.append(
                f"column {name!r} is shifted: its mean is {abs(mean):.1f} standard deviations "
                f"{side} that of training"
            )
        if self.far:
            lines.append(
                f"{self.far:,} of {self.rows:,} rows are far from all training rows (the first is "
                f"row {(self.first_far or 0) + 1}): their predictions are guesses"
            )
        return lines or ["the rows are like those of training"]


def _distance(kernel: Kernel, X: Any, Z: Any, itself: bool = False) -> FloatArray:
    """Return minus the logarithm of the largest kernel value of each row, shape (n,)."""
    K = np.asarray(kernel(X, Z), dtype=np.float64)
    if itself:
        np.fill_diagonal(K, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(K.max(axis=1)))


def _distance_limit(kernel: Kernel, Z: Any) -> float:
    """Return how far a row may be from the rows Z: twice as far as they are from each other."""
    sample = Z[:: max(1, len(Z) // _SOME)]
    nearest = _distance(kernel, sample, sample, itself=True) if len(sample) > 1 else np.zeros(1)
    nearest = nearest[np.isfinite(nearest)]
    power = 2.0 if isinstance(kernel, RBF) else 1.0  # of the distance in the exponent
    return float(_FAR**power * nearest.max()) if len(nearest) else np.inf


def far_row_detector(model: Estimator) -> Callable[[Any], Any] | None:
    """Return a function that marks rows, as the model takes them, that are far from its basis.

    None where the kernel does not measure a distance. The largest kernel value of a row with any
    row of the basis is what a prediction computes anyway.
    """
    fit = last_step(model).record_
    local = fit.local_members  # they keep all rows; prototypes are some of them
    # Quantiles end where the training rows end: only the others show what is beyond.
    unbounded = [member for member in local if member.scaling != "quantiles"]
    member = max(unbounded or local, key=lambda one: one.weight)
    leaves, tree, ready = member.leaves(), member.trees[0], fit.prepared.get(member.scaling)
    kernels = [leaf.kernel for leaf in leaves]
    if not isinstance(kernels[0], RBF | Exponential | Laplacian | Matern):
        return None
    bases = [leaf.basis.toarray() if is_sparse(leaf.basis) else leaf.basis for leaf in leaves]
    limits = [_distance_limit(kernel, basis) for kernel, basis in zip(kernels, bases, strict=True)]

    def far(rows: Any) -> Any:
        X = transformed(model, rows)
        X = member.metric.apply(np.asarray(X if ready is None else ready.transform(X), np.float64))
        leaf_of = np.zeros(len(X), dtype=np.intp) if tree is None else tree.route(X)
        marked = np.zeros(len(X), dtype=bool)
        for leaf in np.unique(leaf_of):
            inside = leaf_of == leaf
            marked[inside] = _distance(kernels[leaf], X[inside], bases[leaf]) > limits[leaf]
        return marked

    return far
