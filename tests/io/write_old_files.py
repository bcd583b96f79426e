"""Write the files that every later version must load: run once for each new format number.

``python -m tests.io.write_old_files`` writes those that are missing and changes none.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from lssvm import (
    LSSVC,
    LSSVR,
    NARX,
    FixedSizeLSSVC,
    FixedSizeLSSVR,
    GreedyLSSVC,
    GreedyLSSVR,
    save,
    scan,
)
from lssvm.io.files import FORMAT

DATA = Path(__file__).parent / "data"


def main() -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((30, 2)).round(3)
    y = (np.sin(X[:, 0]) + X[:, 1]).round(3)
    rows = [[0.5, -0.5], [1.0, 2.0], [-1.5, 0.25]]
    labels = np.array(["no", "yes"])[(y > 0).astype(int)]
    table = {"a": X[:, 0], "b": np.where(X[:, 1] > 0, "up", "down"), "y": labels}
    raw = {"a": [0.5, -1.5], "b": ["up", "down"]}
    models = [
        (LSSVC(multiclass="ova").fit(X, np.digitize(y, [-0.5, 0.5])), rows),
        (LSSVR(10.0, gamma=np.array([0.5, 0.2])).fit(X, y), rows),
        (FixedSizeLSSVC(6, C=1.0, gamma=0.5).fit(scan(table, target="y")), raw),
        (FixedSizeLSSVR(6, cv=3).fit(X, np.column_stack([y, -y])), rows),
        (GreedyLSSVC(C=10.0, kernel="matern", gamma=0.5, max_support=6).fit(X, labels), rows),
        (GreedyLSSVR(C=10.0, kernel="poly", max_support=6).fit(X, y), rows),
        (
            NARX(LSSVR(10.0), lags=3, horizon=3, n_origins=3, n_paths=5).fit(np.sin(np.arange(30))),
            0,
        ),
    ]
    for model, data in models:
        name = type(model).__name__
        path = DATA / f"format_{FORMAT}_{name}.lssvm"
        if path.exists():
            continue
        wanted = {"format": FORMAT, "class": name, "rows": data}
        if name == "NARX":
            wanted["forecast"] = model.forecast(3).tolist()
        elif name.endswith("C"):
            given = data if isinstance(data, dict) else np.array(data)
            wanted["labels"] = model.predict(given).tolist()
            wanted["proba"] = model.predict_proba(given).tolist()
        else:
            wanted["values"] = model.predict(np.array(data)).tolist()
        save(model, path, metrics={"note": "stays as it is"})
        path.with_suffix(".json").write_text(json.dumps(wanted, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
