"""`lssvm compare`: the models of lssvm and of other libraries on the same rows of a file."""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from sklearn import metrics
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from lssvm.cli.console import percent
from lssvm.cli.models import estimators_of
from lssvm.cli.options import Compare
from lssvm.cli.tables import Inspection, inspect_table, open_table
from lssvm.data.preparation import PreparationSettings, learn
from lssvm.data.raw import RawBlock
from lssvm.io import save
from lssvm.plots.base import Estimator

_DUAL_ROWS = 3_000  # rows up to which the dual model is tuned
_ARD_ROWS = 5_000  # rows up to which a width for each feature is learned
_GRID_ROWS = 2_000  # rows up to which SVC is tuned over a grid
_SVC_ROWS = 20_000
# Of other libraries: the names begin with, the parameter of the seed, and those for silence.
_BOOSTING: dict[str, tuple[str, str, dict[str, Any]]] = {
    "catboost": ("CatBoost", "random_seed", {"verbose": False, "allow_writing_files": False}),
    "lightgbm": ("LGBM", "random_state", {"verbose": -1}),
    "xgboost": ("XGB", "random_state", {"verbosity": 0}),
}


class Prepared(NamedTuple):
    """Rows, the same for all models: prepared, and the raw columns."""

    X: Any
    y: Any
    weight: Any
    raw: Any


def compare(options: Compare) -> None:
    """Compare with scikit-learn and boosted trees."""
    output = options.output
    inspected = inspect_table(open_table(options.data, options, output.note), options)
    classes = inspected.classes
    output.note(f"{inspected.summary()}")
    train, test = gather(inspected, options)
    output.note(f"{len(train.X):,} rows to train on, {len(test.X):,} to test on")
    n, d = train.X.shape
    measured = []
    for name, note, model in contenders(classes, n, d, options.seed):
        output.note(f"fitting {name}")
        measured.append(_measured(name, note, model, train, test, classes))
    error = f"test {'error' if classes else 'RMSE'}"
    output.table(
        "The same rows for all; size: our model file, or the pickled model",
        ["model", "", error, "fit, s", "predict, ms", "size, kB"],
        [
            [
                *(row["model"], row["note"], percent(row["error"]) if classes else row["error"]),
                *(f"{row['fit_seconds']:.1f}", f"{1000.0 * row['predict_seconds']:.1f}"),
                f"{row['bytes'] / 1024:,.0f}",
            ]
            for row in measured
        ],
        left=(0, 1),
    )
    sizes = {"rows": n, "test_rows": len(test.X), "features": d}
    output.result({"data": options.data, "task": inspected.task, **sizes, "models": measured})


def gather(inspected: Inspection, options: Compare) -> tuple[Prepared, Prepared]:
    """Read rows into memory, prepared as those to train on are, and those to test on."""
    rule, seed = inspected.rule(options.test, options.seed), options.seed
    train, test = rule.split(inspected.table, inspected.scan(), inspected.target)
    assert test is not None
    drawn = train.sample(round(options.rows * (1 - options.test)), seed=seed).block
    others = test.sample(round(options.rows * options.test), seed=seed).block
    settings = PreparationSettings(target="classes" if inspected.classes else "numbers", seed=seed)
    learned = learn(drawn.table, drawn.target, drawn.weight, None, settings)
    kind = None if inspected.classes else np.float64

    def prepared(block: RawBlock, X: Any) -> Prepared:
        return Prepared(X, np.asarray(block.target, dtype=kind), block.weight, block.table)

    first = prepared(drawn, learned.transform(drawn, learned.positions))
    return first, prepared(others, learned.prepared.transform(others))


def contenders(classes: bool, n: int, d: int, seed: int) -> list[tuple[str, str, Any]]:
    """Return name, note and estimator of each model."""
    task = 0 if classes else 1
    fixed, dual, table = (estimators_of(kind)[task] for kind in ("fixed-size", "dual", "table"))
    ridge = (RidgeClassifierCV, RidgeCV)[task]
    boosting = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)[task]
    size = min(2 * n // 3, 300)  # as many rows as a fold of three leaves
    widths = [0.1 / d, 1.0 / d, 10.0 / d]
    machine, prefix = SVC(), ""
    if not classes:
        machine = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
        prefix = "regressor__"
    grid = {f"{prefix}C": [1.0, 10.0, 100.0], f"{prefix}gamma": widths}
    features = Nystroem(n_components=size, random_state=seed)
    nystroem = make_pipeline(features, ridge([10.0**k for k in range(-6, 3)]))
    tuned = GridSearchCV(nystroem, {"nystroem__gamma": widths}, cv=3)
    svm, ard = "SVC" if classes else "SVR", fixed(gamma="ard", random_state=seed)
    search = GridSearchCV(machine, grid, cv=3)
    candidates: list[tuple[bool, str, str, Any]] = [
        (True, table.__name__, "the model for tables", table(random_state=seed)),
        (True, fixed.__name__, "tuned", fixed(random_state=seed)),
        (n <= _ARD_ROWS and d > 1, fixed.__name__, "tuned, a width for each feature", ard),
        (n <= _DUAL_ROWS, dual.__name__, "tuned", dual("cv", gamma="cv", random_state=seed)),
        (n <= _GRID_ROWS, svm, "3 x 3 grid", search),
        (_GRID_ROWS < n <= _SVC_ROWS, svm, "defaults", machine),
        (True, "Nystroem + Ridge", f"{size} components, 3 gammas", tuned),
        (True, boosting.__name__, "defaults", boosting(random_state=seed)),
    ]
    models = [(name, note, model) for feasible, name, note, model in candidates if feasible]
    for library, (start, seeded, silent) in _BOOSTING.items():
        try:
            module = import_module(library)
        except ImportError:
            continue
        name = f"{start}{'Classifier' if classes else 'Regressor'}"
        model = vars(module)[name](**{seeded: seed}, **silent)
        models.append((name, f"defaults of {library}", model))
    return models


def _measured(
    name: str, note: str, model: Estimator, train: Prepared, test: Prepared, classes: bool
) -> dict[str, Any]:
    weights = {} if train.weight is None or "Nystroem" in name else {"sample_weight": train.weight}
    rows, new = (each.raw if name.startswith("LSSVM") else each.X for each in (train, test))
    target, true = train.y, test.y
    if classes and not _is_ours(model):
        labels, target = np.unique(target, return_inverse=True)  # some take codes of classes only
        true = np.searchsorted(labels, true)
    start = time.perf_counter()
    model.fit(rows, target, **weights)
    fitted = time.perf_counter()
    predicted = np.asarray(model.predict(new)).reshape(len(true))
    done = time.perf_counter()
    metric = metrics.zero_one_loss if classes else metrics.root_mean_squared_error
    return {
        "model": name,
        "note": note if train.weight is None or weights else f"{note}, without weights",
        "error": float(metric(true, predicted, sample_weight=test.weight)),
        "fit_seconds": fitted - start,
        "predict_seconds": done - fitted,
        "bytes": _bytes(model),
    }


def _is_ours(model: object) -> bool:
    return type(model).__module__.startswith("lssvm.")


def _bytes(model: object) -> int:
    """Return the size of our model file, or of a pickle of another model."""
    if not _is_ours(model):
        return len(pickle.dumps(model))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.lssvm")
        save(model, path)
        return os.path.getsize(path)
