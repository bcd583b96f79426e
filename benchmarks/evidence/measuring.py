"""One record: fit one method to one set with one seed in this process, and measure it.

`benchmarks.evidence.running` starts a process of its own for every record, so that peak memory,
threads and crashes of one do not touch another.
"""

from __future__ import annotations

import importlib
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from benchmarks.evidence import measures
from benchmarks.evidence.methods import Ask, Method, NotThereError
from benchmarks.evidence.records import FAILED, MISSING, OK
from benchmarks.evidence.sets import Split, numeric, split
from lssvm.kernels import compiled

COVERAGE = 0.9


def measure(
    folder: Path | None, name: str, method: Method, seed: int, *, threads: int, budget: float
) -> dict[str, Any]:
    """Return the record of one fit; what a library raises is a record too."""
    record: dict[str, Any] = {"set": name, "method": method.name, "seed": seed}
    try:
        for module in method.needs:
            importlib.import_module(module)
    except (ImportError, OSError) as missing:
        return record | {"status": MISSING, "text": _words(missing)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts = split(folder, name, seed)
            if parts.task not in method.tasks:
                raise TypeError(f"{method.name} does not predict {parts.task}")
            return record | {"status": OK} | _fitted(parts, method, seed, threads, budget)
    except NotThereError as missing:
        return record | {"status": MISSING, "text": _words(missing)}
    except Exception as error:  # whatever a peer raises
        return record | {"status": FAILED, "text": _words(error)}


def _fitted(parts: Split, method: Method, seed: int, threads: int, budget: float) -> dict[str, Any]:
    n = min(len(parts.y_train), method.most_rows or len(parts.y_train))
    X_train, y_train = parts.X_train.iloc[:n], parts.y_train[:n]
    X, X_test = _inputs(method, X_train, parts.X_test)
    classes = np.unique(y_train) if parts.task == "classes" else np.empty(0)
    ask = Ask(parts.task, n, max(len(classes), 1), seed, threads, budget, _shares(parts, n))
    model = method.make(ask)
    y: NDArray[Any] = y_train
    if parts.task == "classes" and method.inputs != "frame":
        y = np.searchsorted(classes, y_train)
    if parts.task == "numbers":
        y = np.asarray(y_train, dtype=float)
        if method.inputs == "standardised":
            model = StandardisedTarget(model)
    if method.warm:
        _warm_up(method, ask)
    before = measures.peak_megabytes()
    # Threads, so that processor time and memory are those of this process.
    with joblib.parallel_config(backend="threading"):
        _, fit_s, fit_cpu = measures.timed(lambda: model.fit(X, y))
    predicted, predict_s, predict_cpu = measures.timed(
        lambda: np.asarray(model.predict(X_test)).ravel()
    )
    peak = measures.peak_megabytes()
    found: dict[str, Any] = {
        "task": parts.task,
        "n": n,
        "d": X.shape[1],
        "columns": parts.X_train.shape[1],
        "n_test": len(parts.y_test),
        "classes": len(classes),
        "capped": parts.capped,
        "trained_on_part": n < len(parts.y_train),
    }
    if parts.task == "classes":
        found |= _class_measures(model, method, classes, X_test, parts.y_test, predicted)
    else:
        found |= _number_measures(model, X_test, np.asarray(parts.y_test, float), predicted)
    if parts.known is not None:
        judge = measures.error_of_classes if parts.task == "classes" else measures.error_of_numbers
        found["known_error"] = judge(parts.y_test, parts.known)
    row = X_test.iloc[:1] if method.inputs == "frame" else X_test[:1]
    return (
        found
        | {
            "fit_s": fit_s,
            "fit_cpu": fit_cpu,
            "predict_s": predict_s,
            "predict_cpu": predict_cpu,
            "rows_per_s": len(parts.y_test) / predict_s,
            "one_row_s": measures.one_row_seconds(model.predict, row),
            "model_bytes": measures.stored_bytes(model),
            "peak_mb": peak,
            "peak_before_mb": before,
        }
        | _of_ours(model)
    )


def _warm_up(method: Method, ask: Ask) -> None:
    """Fit and predict a few made rows: what a library loads or compiles once is not timed.

    Ours loads its compiled loops at the first fit of many rows; here at that of a few.
    """
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(60, 3)), columns=list("abc"))
    frame = X.assign(d=random.choice(["x", "y"], 60))
    y = (X["a"] > 0).to_numpy().astype(int) if not ask.numbers else X["a"].to_numpy()
    rows, some = _inputs(method, frame, frame[:5])
    few = replace(ask, n_train=60, n_classes=1 if ask.numbers else 2, shares=(0.5, 0.5), budget=0.1)
    every_loop = mock.patch.object(compiled, "_WORTH", 0)
    with suppress(Exception), every_loop, joblib.parallel_config(backend="threading"):
        method.make(few).fit(rows, y).predict(some)


def _of_ours(model: Any) -> dict[str, Any]:
    """Return what a model for tables says about its fit: members, and seconds by stage."""
    if not hasattr(model, "summary_") or not hasattr(model, "configurations_"):
        return {}
    spent: dict[str, float] = {}
    for stage, seconds in zip(
        *(model.configurations_[k] for k in ("stage", "seconds")), strict=True
    ):
        spent[stage] = spent.get(stage, 0.0) + float(seconds)
    weights = np.asarray(model.configurations_["weight"], dtype=float)
    return {
        "summary": model.summary_,
        "n_members": int(np.sum(weights > 0)),
        "spent_s": {stage: round(seconds, 4) for stage, seconds in spent.items()},
    }


def _inputs(method: Method, train: Any, test: Any) -> tuple[Any, Any]:
    if method.inputs == "frame":
        return train, test
    A, B = numeric(train, test)
    if method.inputs == "standardised":
        scale = StandardScaler().fit(A)
        A, B = scale.transform(A), scale.transform(B)
    return A, B


def _shares(parts: Split, n: int) -> tuple[float, float]:
    if parts.task == "numbers":
        return 1.0, 1.0
    counts = np.unique(parts.y_train[:n], return_counts=True)[1]
    return float(counts.min() / n), float(counts.max() / n)


def _class_measures(
    model: Any,
    method: Method,
    classes: NDArray[Any],
    X: Any,
    truth: NDArray[Any],
    predicted: NDArray[Any],
) -> dict[str, Any]:
    """Return the error and, where the model has probabilities, log loss and calibration error."""
    place = np.searchsorted(classes, truth).clip(0, len(classes) - 1)
    codes = np.where(classes[place] == truth, place, -1)
    if method.inputs == "frame":
        found = np.searchsorted(classes, predicted.astype(classes.dtype))
    else:
        found = np.rint(predicted.astype(float)).astype(int)
    out: dict[str, Any] = {"error": measures.error_of_classes(codes, found)}
    said = _offered(model, "predict_proba", X)
    if said is None or said.shape != (len(truth), len(classes)) or not np.isfinite(said).all():
        return out
    return out | {
        "measure": measures.area_above_curve(codes, said)
        if len(classes) == 2
        else measures.log_loss(codes, said),
        "log_loss": measures.log_loss(codes, said),
        "ece": measures.calibration_error(codes, said),
    }


def _number_measures(
    model: Any, X: Any, truth: NDArray[np.float64], predicted: NDArray[np.float64]
) -> dict[str, Any]:
    """Return the error and, where the model has intervals, their coverage and relative width."""
    out: dict[str, Any] = {
        "error": measures.error_of_numbers(truth, predicted),
        "measure": float(np.sqrt(np.mean((truth - predicted) ** 2))),
    }
    said = _offered(model, "predict_interval", X, coverage=COVERAGE)
    if said is None or said.shape != (len(truth), 2):
        return out
    low, high = said.T
    return out | {
        "coverage": measures.coverage(truth, low, high),
        "width": float(np.mean(high - low) / truth.std()),
    }


def _offered(model: Any, name: str, X: Any, **settings: Any) -> NDArray[np.float64] | None:
    """Return what a method of a model says, None where it has none or refuses."""
    if not hasattr(model, name):
        return None
    try:
        return np.asarray(getattr(model, name)(X, **settings), dtype=float)
    except Exception:  # no other output may cost the record
        return None


class StandardisedTarget:
    """A regressor whose target has mean 0 and variance 1 in training."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> StandardisedTarget:
        """Fit the scaled target."""
        self.mean_, self.scale_ = float(np.mean(y)), float(np.std(y)) or 1.0
        self.model.fit(X, (y - self.mean_) / self.scale_)
        return self

    def predict(self, X: Any) -> Any:
        """Return numbers in the target's unit."""
        return np.asarray(self.model.predict(X)).ravel() * self.scale_ + self.mean_

    def __getattr__(self, name: str) -> Any:
        # Only models with intervals offer them.
        if name == "predict_interval" and hasattr(self.__dict__.get("model"), name):
            return self._interval
        raise AttributeError(name)

    def _interval(self, X: Any, coverage: float) -> Any:
        return self.model.predict_interval(X, coverage=coverage) * self.scale_ + self.mean_


def _words(error: BaseException) -> str:
    """Return an error in one line without paths."""
    import re

    text = " ".join(f"{type(error).__name__}: {error}".split())
    return re.sub(r"(?:/[\w.+-]+){2,}", "...", text)[:200]
