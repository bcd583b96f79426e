"""`lssvm compare`: our models beside scikit-learn's on somebody's own data."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from lssvm.cli.console import Output
from lssvm.cli.inspection import Inspection
from lssvm.cli.options import Columns, DataFile, Reading, Seeded

_DUAL_ROWS = 3_000  # rows up to which the dual model is tuned
_GRID_ROWS = 2_000  # rows up to which SVC is tuned over a grid
_SVC_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class TrainAndTest:
    """Prepared rows to train and to test on, the same for all models."""

    X: Any
    y: Any
    weight: Any
    X_test: Any
    y_test: Any
    weight_test: Any


def compare(
    data: DataFile,
    columns: Columns,
    reading: Reading,
    general: Seeded,
    test: Annotated[
        float, typer.Option(min=0.05, max=0.9, help="Share of the rows to test on.")
    ] = 0.3,
    rows: Annotated[
        int, typer.Option(min=50, help="At most so many rows are read, drawn at random.")
    ] = 20_000,
) -> None:
    """Put our models beside scikit-learn's.

    All models see the same prepared columns and are tested on the same held-out rows. Ours tune
    themselves; SVC is tuned over a small grid up to 2,000 rows and has its defaults beyond,
    Nystroem + Ridge chooses among three widths and nine penalties, gradient boosting has its
    defaults.
    """
    from lssvm.cli.inspection import inspect_table
    from lssvm.cli.tables import open_table

    output = general.output
    found = inspect_table(open_table(data, reading), columns)
    output.note(f"lssvm: {found.told()}")
    parts = gather(found, test, general.seed, rows)
    output.note(f"lssvm: {len(parts.X):,} rows to train on, {len(parts.X_test):,} to test on")
    table = []
    for name, note, make in contenders(found.classes, len(parts.X), parts.X.shape[1], general.seed):
        output.note(f"lssvm: fitting {name}")
        table.append(_measured(name, note, make, parts, found.classes))
    _show(output, found, table)
    output.result(
        {
            "data": data,
            "task": found.task,
            "rows": len(parts.X),
            "test_rows": len(parts.X_test),
            "features": int(parts.X.shape[1]),
            "models": table,
        }
    )


def gather(found: Inspection, test: float, seed: int, limit: int) -> TrainAndTest:
    """Read rows into memory, at most ``limit``, prepared by what the training part shows."""
    import numpy as np

    from lssvm.data.survey import survey

    train, held = found.rule(test, seed).split(found.table, found.scan(), found.target)
    assert held is not None
    surveyed = survey(train, round(limit * (1 - test)), seed=seed)
    ready = surveyed.preparation
    tested = survey(held, round(limit * test), seed=seed).sample
    assert ready is not None
    sample = surveyed.sample
    y, y_test = (np.asarray(part.target) for part in (sample, tested))
    if not found.classes:
        y, y_test = y.astype(np.float64), y_test.astype(np.float64)
    X, X_test = ready.transform(sample), ready.transform(tested)
    return TrainAndTest(X, y, sample.weight, X_test, y_test, tested.weight)


def contenders(
    classes: bool, n: int, d: int, seed: int
) -> list[tuple[str, str, Callable[[], Any]]]:
    """Return name, note and maker of each model."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import RidgeClassifierCV, RidgeCV
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    from lssvm.estimators import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR

    fixed, dual = (FixedSizeLSSVC, LSSVC) if classes else (FixedSizeLSSVR, LSSVR)
    svm = SVC if classes else SVR
    ridge = RidgeClassifierCV if classes else RidgeCV
    boosting = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    alphas = [10.0**k for k in range(-6, 3)]
    size = min(n, 300)

    widths = [0.1 / d, 1.0 / d, 10.0 / d]

    def plain_svm() -> Any:
        if classes:
            return SVC()
        return TransformedTargetRegressor(SVR(), transformer=StandardScaler())

    def tuned_svm() -> Any:
        prefix = "" if classes else "regressor__"
        grid = {f"{prefix}C": [1.0, 10.0, 100.0], f"{prefix}gamma": widths}
        return GridSearchCV(plain_svm(), grid, cv=3)

    def nystroem() -> Any:
        features = Nystroem(n_components=size, random_state=seed)
        model = make_pipeline(features, ridge(alphas))
        return GridSearchCV(model, {"nystroem__gamma": widths}, cv=3)

    found: list[tuple[str, str, Callable[[], Any]]] = [
        (fixed.__name__, "tuned", lambda: fixed(random_state=seed))
    ]
    if n <= _DUAL_ROWS:
        found.append((dual.__name__, "tuned", lambda: dual("cv", gamma="cv", random_state=seed)))
    if n <= _GRID_ROWS:
        found.append((svm.__name__, "3 x 3 grid", tuned_svm))
    elif n <= _SVC_ROWS:
        found.append((svm.__name__, "defaults", plain_svm))
    found.append(("Nystroem + Ridge", f"{size} components, 3 gammas", nystroem))
    found.append((boosting.__name__, "defaults", lambda: boosting(random_state=seed)))
    return found


def _measured(
    name: str, note: str, make: Callable[[], Any], rows: TrainAndTest, classes: bool
) -> dict[str, Any]:
    import numpy as np
    from sklearn import metrics

    model = make()
    weights = {} if rows.weight is None or "Nystroem" in name else {"sample_weight": rows.weight}
    start = time.perf_counter()
    model.fit(rows.X, rows.y, **weights)
    fitted = time.perf_counter()
    predicted = np.asarray(model.predict(rows.X_test))
    done = time.perf_counter()
    metric = metrics.zero_one_loss if classes else metrics.root_mean_squared_error
    error = float(metric(rows.y_test, predicted, sample_weight=rows.weight_test))
    return {
        "model": name,
        "note": note if rows.weight is None or weights else f"{note}, without weights",
        "error": error,
        "fit_seconds": fitted - start,
        "predict_seconds": done - fitted,
        "bytes": _bytes(model),
    }


def _bytes(model: Any) -> int:
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


def _show(output: Output, found: Inspection, table: list[dict[str, Any]]) -> None:
    what = "error" if found.classes else "RMSE"
    output.table(
        "The same rows for all; size: our model file, or the pickled model",
        ["model", "", f"test {what}", "fit, s", "predict, s", "size, kB"],
        [
            [
                row["model"],
                row["note"],
                f"{row['error']:.2%}" if found.classes else row["error"],
                row["fit_seconds"],
                row["predict_seconds"],
                f"{row['bytes'] / 1024:.0f}",
            ]
            for row in table
        ],
        left=(0, 1),
    )
