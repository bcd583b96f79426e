"""Write model files of today's format with their outputs, once for every format.

``python -m tests.io.stored tests/io/format_4`` writes one file for some cases of every family, and
``expected.json`` with new rows and what the models return for them; `test_older_formats` reads it.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from tests.fitting.test_log_odds import ONE, losses_of, two_bananas
from tests.io.cases import CASES, NEW, TWO, X, Y, new_rows, rng

from lssvm import LSSVMClassifier, LSSVMRegressor, save
from lssvm._core.errors import InvalidInputError
from lssvm.data.encodings import FEWEST_ROWS

MODES = {
    "prediction": "dual, dual isotonic, dual precomputed, dual sparse, dual l0, fixed, fixed spfs, "
    "fixed scanned, fixed one-vs-one, greedy tuned, dual regressor pruned, fixed regressor robust",
    "all": "dual tuned, dual code, dual regressor tuned, fixed tuned, fixed regressor of two, "
    "greedy, greedy regressor of two, series with inputs, several series, table, table mixed, "
    "table parts, table regressor, table regressor parts, table regressor of two",
}


def log_odds() -> Any:
    """Return a table of two classes with leaves that minimise the log loss."""
    model = LSSVMClassifier(**ONE).fit(*two_bananas(600, 3))
    assert "logistic" in losses_of(model)
    return model


def values() -> Any:
    """Return a table whose numbers have values that stand out."""
    code = rng.integers(0, 90, FEWEST_ROWS)
    target = rng.normal(size=90)[code] + 0.3 * rng.normal(size=FEWEST_ROWS)
    model = LSSVMRegressor("fast", leaf_size=60, n_jobs=1, kernel="rbf", metric=None)
    model.fit(np.column_stack([code, rng.normal(size=FEWEST_ROWS)]), target)
    assert model.record_.any_prepared.encoded_by_target
    return model.compress(20)


def stored_rows(rows: Any) -> Any:
    """Return rows as `test_older_formats.rows_of` reads them."""
    if rows is None:
        return None
    if sparse.issparse(rows):
        return {"sparse": rows.toarray().tolist()}
    if not isinstance(rows, dict):
        return {"array": np.asarray(rows).tolist()}
    columns = {}
    for name, one in rows.items():
        dated = isinstance(one, np.ndarray) and one.dtype.kind == "M"
        columns[name] = {"dates": one.astype(str).tolist()} if dated else {"values": list(one)}
    return {"columns": columns}


def outputs(model: Any, rows: Any) -> dict[str, Any]:
    """Return what a model answers, as lists."""
    if hasattr(model, "forecast"):
        return {"forecast": np.asarray(model.forecast(6, rows)).tolist()}
    found = {"predict": model.predict(rows)}
    if hasattr(model, "classes_"):
        found["decision_function"] = model.decision_function(rows)
        found["predict_proba"] = model.predict_proba(rows)
        found["predict_set"] = model.predict_set(rows, 0.7)
    elif np.ndim(found["predict"]) == 1:
        with suppress(InvalidInputError):  # not every mode has intervals
            found["predict_interval"] = model.predict_interval(rows, 0.8)
    return {name: np.asarray(value).tolist() for name, value in found.items()}


def main(folder: Path) -> None:
    """Write all files."""
    folder.mkdir(exist_ok=True)
    expected: dict[str, Any] = {}
    models = [(name, keep, CASES[name]) for keep in MODES for name in MODES[keep].split(", ")]
    models += [("table log odds", "all", log_odds), ("table values", "prediction", values)]
    for name, keep, fit in models:
        model, file = fit(), name.replace(" ", "_").replace("-", "_") + ".lssvm"
        rows = [[0.5]] * 6 if name == "series with inputs" else None
        if not hasattr(model, "forecast"):
            rows = NEW[:, :2] if name in ("table log odds", "table values") else new_rows(model)
        save(model, folder / file, keep=keep, metrics={"error": 0.25})
        rows = np.array(rows) if isinstance(rows, list) else rows
        one = {"rows": stored_rows(rows), "keep": keep, "outputs": outputs(model, rows)}
        if name in ("fixed tuned", "table regressor"):
            new, target = X[:5] + 0.1, (TWO if name == "fixed tuned" else Y)[:5]
            model.partial_fit(new, target)
            added = {"X": new.tolist(), "y": target.tolist()}
            one["added"] = added | {"outputs": outputs(model, rows)}
        if name == "greedy regressor of two":
            one["truncated"] = outputs(model.truncate(4), rows)
        expected[file] = one
    (folder / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
