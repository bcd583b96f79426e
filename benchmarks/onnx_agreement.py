"""Does onnxruntime answer as the model does? Every data set of a folder, all test rows.

For every ``<name>.parquet`` (attributes, ``target``, and ``split`` where there is one) up to 3,000
training rows are drawn and several models are fitted, exported and run on all other rows (the test
part of ``split`` where there is one):

    columns   FixedSizeLSSVC/R on a scan of the raw columns; ONNX does all preparation
    damaged   the same file on rows of which some numbers are missing and some strings are unknown
    pipeline  StandardScaler and LSSVC/R on the prepared features, 500 rows
    greedy    GreedyLSSVC/R with a Matern kernel on the prepared features, 500 rows
    narx      one step of NARX, on a series (a set whose only attribute is ``t``)

Labels have to be equal in every row, scores within 1e-5. Run with::

    python -m benchmarks.onnx_agreement --data DIR

It appends to ``results/onnx_agreement.jsonl``, skips what is there, and writes
``results/onnx_agreement.md``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.study.records import append, repair
from lssvm import (
    LSSVC,
    LSSVR,
    NARX,
    FixedSizeLSSVC,
    FixedSizeLSSVR,
    GreedyLSSVC,
    GreedyLSSVR,
    scan,
)
from lssvm.kernels import Matern
from lssvm.onnx import to_onnx

RESULTS = Path(__file__).parent / "results" / "onnx_agreement.jsonl"
TRAIN_ROWS, DUAL_ROWS, PROTOTYPES = 3000, 500, 60
PART = 5000  # rows of a run
TOLERANCE = 1e-5
KEYS = ("set", "model", "task", "rows", "classes", "wrong_labels", "scores", "probabilities")


def read(path: Path) -> tuple[pd.DataFrame, pd.Series, np.ndarray]:
    """Return attributes, target, and which rows are for training."""
    frame = pd.read_parquet(path)
    rng = np.random.default_rng(0)
    if "split" in frame:
        train = (frame["split"] == "train").to_numpy()
    else:
        train = rng.permutation(len(frame)) < 2 * len(frame) // 3
    y = frame["target"]
    if isinstance(y.dtype, pd.CategoricalDtype):
        y = y.astype(str)
    X = frame.drop(columns=[c for c in ("split", "target") if c in frame])
    texts = [c for c in X if X[c].dtype.kind not in "biuf"]
    X = X.drop(columns=[c for c in texts if X[c].nunique() > 60])
    texts = [c for c in X if X[c].dtype.kind not in "biuf"]
    X[texts] = X[texts].astype(object)
    return X, y, train


def feed_columns(X: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the raw columns as inputs; a missing string is the empty one."""
    return {
        c: (
            X[c].to_numpy(np.float64, na_value=np.nan)
            if X[c].dtype.kind in "biuf"
            else X[c].fillna("").to_numpy(object)
        )[:, None]
        for c in X
    }


def damage(X: pd.DataFrame) -> pd.DataFrame:
    """Return rows of which some numbers are missing and some strings are missing or unknown."""
    X, rng = X.copy(), np.random.default_rng(1)
    for c in X:
        hit = rng.random(len(X)) < 0.1
        if X[c].dtype.kind in "biuf":
            X[c] = X[c].astype(np.float64).mask(hit, np.nan)
        else:
            X[c] = X[c].mask(hit, None).mask(rng.random(len(X)) < 0.1, "never seen")
    return X


def session_of(proto: Any) -> Any:
    """Return a session on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(proto.SerializeToString(), options)


def compare(model: Any, rows: Any, feed: dict[str, np.ndarray]) -> dict[str, Any]:
    """Compare model and file on all rows."""
    proto = to_onnx(model)
    session = session_of(proto)
    names = [output.name for output in session.get_outputs()]
    n = len(next(iter(feed.values())))
    wrong, worst, unlike, ours_s, onnx_s = 0, 0.0, 0.0, 0.0, 0.0
    for start in range(0, n, PART):
        part = slice(start, start + PART)
        some = rows.iloc[part] if isinstance(rows, pd.DataFrame) else rows[part]
        began = time.process_time()
        out = session.run(names, {key: value[part] for key, value in feed.items()})
        onnx_s += time.process_time() - began
        began = time.process_time()
        expected = np.asarray(model.predict(some))
        ours_s += time.process_time() - began
        if len(out) == 1:
            gap = out[0] - expected.reshape(len(out[0]), -1)
            worst = max(worst, float(np.abs(gap).max()))
            continue
        wrong += int((out[0] != expected).sum())
        scores = np.asarray(model.decision_function(some)).reshape(len(out[1]), -1)
        worst = max(worst, float(np.abs(out[1] - scores).max()))
        unlike = max(unlike, float(np.abs(out[2] - model.predict_proba(some)).max()))
    labels = len(names) > 1
    return {
        "rows": n,
        "wrong_labels": wrong if labels else None,
        "scores": worst,
        "probabilities": unlike if labels else None,
        "kB": proto.ByteSize() / 1000,
        "ours_s": ours_s,
        "onnx_s": onnx_s,
    }


def cases(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the names of the models of a data set, each with a function that measures it."""
    X, y, train = read(path)
    if list(X) == ["t"]:
        yield "narx", lambda: series_case(y.to_numpy(float), train)
        return
    regression = y.dtype.kind in "biuf" and y.nunique() > 50
    fixed, dual, greedy = (
        (FixedSizeLSSVR, LSSVR, GreedyLSSVR) if regression else (FixedSizeLSSVC, LSSVC, GreedyLSSVC)
    )
    rng = np.random.default_rng(2)
    chosen = rng.permutation(np.flatnonzero(train))[:TRAIN_ROWS]
    test = ~train
    facts = {"task": "regression" if regression else "classification"}
    if not regression:
        facts["classes"] = int(y.iloc[chosen].nunique())
    learned = scan(X.iloc[chosen].assign(target=y.iloc[chosen]), target="target")
    model = fixed(PROTOTYPES, gamma="scale", cv=5, random_state=0, n_jobs=1)
    fitted: list[Any] = []

    def of_columns(rows: pd.DataFrame) -> dict[str, Any]:
        if not fitted:
            fitted.append(model.fit(learned))
        return {**facts, **compare(model, rows, feed_columns(rows))}

    def of_features(estimator: Any) -> dict[str, Any]:
        if not fitted:
            fitted.append(model.fit(learned))
        few = chosen[:DUAL_ROWS]
        whole = model.preparation_.transform(X)
        target = y.to_numpy()
        estimator.fit(whole[few], target[few])
        known = {"classes": len(estimator.classes_)} if not regression else {}
        return {**facts, **known, **compare(estimator, whole[test], {"X": whole[test]})}

    C = 10.0
    yield "columns", lambda: of_columns(X[test])
    yield "damaged", lambda: of_columns(damage(X[test]))
    yield "pipeline", lambda: of_features(make_pipeline(StandardScaler(), dual(C=C, n_jobs=1)))
    yield (
        "greedy",
        lambda: of_features(
            greedy(C=C, kernel=Matern(nu=2.5), max_support=40, n_jobs=1, random_state=0)
        ),
    )


def series_case(y: np.ndarray, train: np.ndarray) -> dict[str, Any]:
    """Predict every value of a series from those before it."""
    model, lags = NARX(LSSVR(C=100.0, gamma=0.02, n_jobs=1), lags=20), 20
    begin = int(train.sum())
    model.fit(y[:begin])
    expected = model.predict(y[begin:])
    proto = to_onnx(model)
    history = np.lib.stride_tricks.sliding_window_view(y[begin - lags : -1], lags)
    (found,) = session_of(proto).run(None, {"history": np.ascontiguousarray(history)})
    return {
        "task": "series",
        "rows": len(expected),
        "scores": float(np.abs(found[:, 0] - expected).max()),
        "kB": proto.ByteSize() / 1000,
    }


def table(records: list[dict[str, Any]]) -> str:
    """Return the results as Markdown."""
    wrong = sum(r.get("wrong_labels") or 0 for r in records)
    n_rows = sum(r["rows"] for r in records if r.get("wrong_labels") is not None)
    worst = max(r["scores"] for r in records)
    far = [f"{r['set']} ({r['model']})" for r in records if r["scores"] > TOLERANCE]
    lines = [
        "# Does onnxruntime answer as the model does?",
        "",
        "Written by `python -m benchmarks.onnx_agreement --data DIR`; its head says what was run.",
        "Scores are decision values or predictions, in the units of the target; columns 6 to 8 are",
        "the number of test rows with another label and the largest differences. Seconds are",
        "processor time of one thread for all rows: labels or predictions alone for ours, all",
        "outputs for ONNX.",
        "",
        f"onnxruntime {onnxruntime.__version__}, inputs float64: {wrong} labels of {n_rows:,} "
        f"differ, the largest difference of scores is {worst:.1e}.",
        f"Beyond {TOLERANCE:.0e}: {', '.join(far) if far else 'none'}.",
        "",
        "| set | model | task | test rows | classes | labels that differ | scores | probabilities "
        "| file kB | ours s | ONNX s |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for r in sorted(records, key=lambda r: (r["set"], r["model"])):
        small = [f"{r[k]:.1e}" if r.get(k) is not None else "" for k in ("scores", "probabilities")]
        sizes = [
            f"{r[k]:.{d}f}" if k in r else "" for k, d in (("kB", 0), ("ours_s", 2), ("onnx_s", 2))
        ]
        count = "" if r.get("wrong_labels") is None else str(r["wrong_labels"])
        cells = [r["set"], r["model"], r["task"], f"{r['rows']:,}", str(r.get("classes", ""))]
        lines.append(f"| {' | '.join([*cells, count, *small, *sizes])} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default="", help="names, comma-separated; all by default")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    repair(arguments.out)
    records = []
    if arguments.out.exists():
        records = [json.loads(line) for line in arguments.out.read_text().splitlines()]
    done = {(r["set"], r["model"]) for r in records}
    wanted = set(filter(None, arguments.sets.split(",")))
    paths = sorted(arguments.data.glob("*.parquet"), key=lambda path: path.stat().st_size)
    for path in [p for p in paths if not wanted or p.stem in wanted]:
        if {(path.stem, m) for m in ("columns", "damaged", "pipeline", "greedy")} <= done:
            continue
        for name, measure in cases(path):
            if (path.stem, name) in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # small training parts leave much to warn of
                record = {"set": path.stem, "model": name, **measure()}
            records.append(record)
            append(arguments.out, record)
            print({key: record.get(key) for key in KEYS}, flush=True)
    arguments.out.with_suffix(".md").write_text(table(records))


if __name__ == "__main__":
    main()
