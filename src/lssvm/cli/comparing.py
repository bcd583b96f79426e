"""`lssvm compare`: the models of lssvm and of other libraries on the same rows of a file."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Option

from lssvm.cli.console import percent
from lssvm.cli.models import Model, estimator_class
from lssvm.cli.options import Columns, DataFile, Reading, Seeded

if TYPE_CHECKING:
    from lssvm.cli.tables import Inspection

_DUAL_ROWS = 3_000  # rows up to which the dual model is tuned
_ARD_ROWS = 5_000  # rows up to which a width for each feature is learned
_GRID_ROWS = 2_000  # rows up to which SVC is tuned over a grid
_SVC_ROWS = 20_000
# Of other libraries: classifier, regressor, and parameters for the seed and for silence.
_BOOSTING: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "catboost": (
        *("CatBoostClassifier", "CatBoostRegressor", "random_seed"),
        {"verbose": False, "allow_writing_files": False},  # no folder of logs
    ),
    "lightgbm": ("LGBMClassifier", "LGBMRegressor", "random_state", {"verbose": -1}),
    "xgboost": ("XGBClassifier", "XGBRegressor", "random_state", {"verbosity": 0}),
}


class Prepared(NamedTuple):
    """Rows, the same for all models: prepared, and the raw columns."""

    X: Any
    y: Any
    weight: Any
    raw: Any


def compare(
    data: DataFile,
    columns: Columns,
    reading: Reading,
    general: Seeded,
    test: Annotated[float, Option(min=0.05, max=0.9, help="Share of the rows to test on.")] = 0.3,
    rows: Annotated[
        int, Option(min=50, help="At most so many rows are read, drawn at random.")
    ] = 20_000,
) -> None:
    """Compare with scikit-learn and boosted trees.

    All models are tested on the same held-out rows and see the same prepared columns, except for
    the model for tables, which prepares the raw columns itself. The models of lssvm tune
    themselves; SVC is tuned over a small grid up to 2,000 rows and has its defaults beyond,
    Nystroem + Ridge chooses among three widths and nine penalties. Gradient boosting of
    scikit-learn, and of CatBoost, LightGBM and XGBoost where these are installed, has its defaults.
    """
    from lssvm.cli.tables import inspect_table, open_table

    output = general.output
    table = open_table(data, reading, output.note)
    inspected = inspect_table(table, columns)
    classes = inspected.classes
    output.note(f"lssvm: {inspected.told()}")
    train, held = gather(inspected, test, general.seed, rows)
    output.note(f"lssvm: {len(train.X):,} rows to train on, {len(held.X):,} to test on")
    n, d = train.X.shape
    measured = []
    for name, note, model in contenders(classes, n, d, general.seed):
        output.note(f"lssvm: fitting {name}")
        measured.append(_measured(name, note, model, train, held, classes))
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
    output.result(
        {
            "data": data,
            "task": inspected.task,
            "rows": n,
            "test_rows": len(held.X),
            "features": d,
            "models": measured,
        }
    )


def gather(inspected: Inspection, test: float, seed: int, limit: int) -> tuple[Prepared, Prepared]:
    """Read rows into memory, at most ``limit``, prepared by what the training part shows."""
    import numpy as np

    from lssvm.data.preparation import PreparationSettings, learn

    rule = inspected.rule(test, seed)
    train, held = rule.split(inspected.table, inspected.scan(), inspected.target)
    assert held is not None
    drawn = train.sample(round(limit * (1 - test)), seed=seed).block
    others = held.sample(round(limit * test), seed=seed).block
    settings = PreparationSettings(target="classes" if inspected.classes else "numbers", seed=seed)
    ready = learn(drawn.table, drawn.target, drawn.weight, None, settings)
    kind = None if inspected.classes else np.float64

    def prepared(block: Any, X: Any) -> Prepared:
        return Prepared(X, np.asarray(block.target, dtype=kind), block.weight, block.table)

    first = prepared(drawn, ready.transform(drawn, ready.positions))
    return first, prepared(others, ready.prepared.transform(others))


def contenders(classes: bool, n: int, d: int, seed: int) -> list[tuple[str, str, Any]]:
    """Return name, note and maker of each model."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import RidgeClassifierCV, RidgeCV
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    fixed, dual, table = (
        estimator_class(kind, classes) for kind in ("fixed-size", "dual", "table")
    )
    svm = SVC if classes else SVR
    ridge = RidgeClassifierCV if classes else RidgeCV
    boosting = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    alphas = [10.0**k for k in range(-6, 3)]
    size = min(2 * n // 3, 300)  # as many rows as a fold of three leaves
    widths = [0.1 / d, 1.0 / d, 10.0 / d]
    machine, prefix = SVC(), ""
    if not classes:
        machine = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
        prefix = "regressor__"
    grid = {f"{prefix}C": [1.0, 10.0, 100.0], f"{prefix}gamma": widths}
    nystroem = make_pipeline(Nystroem(n_components=size, random_state=seed), ridge(alphas))
    models: list[tuple[str, str, Any]] = [
        (table.__name__, "the model for tables", table(random_state=seed)),
        (fixed.__name__, "tuned", fixed(random_state=seed)),
    ]
    if n <= _ARD_ROWS and d > 1:
        own = fixed(gamma="ard", random_state=seed)
        models.append((fixed.__name__, "tuned, a width for each feature", own))
    if n <= _DUAL_ROWS:
        models.append((dual.__name__, "tuned", dual("cv", gamma="cv", random_state=seed)))
    if n <= _GRID_ROWS:
        models.append((svm.__name__, "3 x 3 grid", GridSearchCV(machine, grid, cv=3)))
    elif n <= _SVC_ROWS:
        models.append((svm.__name__, "defaults", machine))
    tuned = GridSearchCV(nystroem, {"nystroem__gamma": widths}, cv=3)
    models.append(("Nystroem + Ridge", f"{size} components, 3 gammas", tuned))
    models.append((boosting.__name__, "defaults", boosting(random_state=seed)))
    return [*models, *other_boosting(classes, seed)]


def other_boosting(classes: bool, seed: int) -> list[tuple[str, str, Any]]:
    """Return gradient boosting of other libraries, of those that are installed."""
    from importlib import import_module

    models = []
    for library, (classifier, regressor, seeded, options) in _BOOSTING.items():
        try:
            module = import_module(library)
        except ImportError:
            continue
        name = classifier if classes else regressor
        model = vars(module)[name](**{seeded: seed}, **options)
        models.append((name, f"defaults of {library}", model))
    return models


def _measured(
    name: str, note: str, model: Model, train: Prepared, test: Prepared, classes: bool
) -> dict[str, Any]:
    import numpy as np
    from sklearn import metrics

    weights = {} if train.weight is None or "Nystroem" in name else {"sample_weight": train.weight}
    own, new = (rows.raw if name.startswith("LSSVM") else rows.X for rows in (train, test))
    target, true = train.y, test.y
    if classes and not type(model).__module__.startswith("lssvm."):
        labels, target = np.unique(target, return_inverse=True)  # some take codes of classes only
        true = np.searchsorted(labels, true)
    start = time.perf_counter()
    model.fit(own, target, **weights)
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


def _bytes(model: object) -> int:
    """Return the size of our model file, or of a pickle of another model."""
    import os
    import pickle
    import tempfile

    from lssvm.io import save

    if not type(model).__module__.startswith("lssvm."):
        return len(pickle.dumps(model))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.lssvm")
        save(model, path)
        return os.path.getsize(path)
