"""What used to be slow, each compared with a peer in the same run.

Cases::

    pairs    Pendigits, ten classes, one-vs-one, defaults, against one fit of scikit-learn's SVC
    letters  Letter, 26 classes, defaults, against one-vs-all, and against one fit of SVC
    ard      gamma="ard" against a tuned fit of the same model
    adult    Adult (LIBSVM's encoding), defaults, against one fit of SVC
    predict  few support vectors: rows a second against what 1,000 of them would promise
    smo      solver="smo" against solver="cholesky" at n = 3,000
    parquet  one pass over a Parquet file against the same rows in memory, 100 prototypes
    sparse   sparse rows against the same rows dense, and against Nystroem with Ridge

Run with::

    python -m benchmarks.slow_corners --data folder [pairs] [letters] ...

Every case appends one line to ``benchmarks/results/slow_corners.jsonl``; the last one of each is
what ``slow_corners.md`` shows. Wall seconds depend on what else runs; processor seconds, of all
threads together, hardly do: on two idle cores a fit takes about half of them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.streaming import throughput_case, write_rows
from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR

RESULTS = Path(__file__).parent / "results"
Parts = tuple[Any, Any, Any, Any]


def spent(work: Callable[[], Any]) -> tuple[float, float]:
    """Return the wall and the processor seconds of a piece of work."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def timed(name: str, work: Callable[[], Any]) -> dict[str, float]:
    """Return the seconds of a piece of work under its name."""
    wall, processor = spent(work)
    return {f"{name}_wall_s": round(wall, 3), f"{name}_cpu_s": round(processor, 3)}


def halves(data: Path, name: str) -> Parts:
    """Return standardised rows and labels: 2/3 to train on, 1/3 to test, by seed 0."""
    table = pd.read_parquet(data / f"{name}.parquet")
    y = table.pop("target").to_numpy()
    X = table.drop(columns="split", errors="ignore").to_numpy(float)
    X, new, y, truth = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(new), y, truth


def percent(model: Any, new: Any, truth: Any) -> float:
    """Return the accuracy in per cent."""
    return round(100.0 * float(model.score(new, truth)), 2)


def pairs_case(data: Path) -> dict[str, Any]:
    """Ten classes by default, and one SVC."""
    X, new, y, truth = halves(data, "pen")
    model, peer = FixedSizeLSSVC(random_state=0), SVC(C=10.0)
    record = timed("ours", lambda: model.fit(X, y)) | timed("svc", lambda: peer.fit(X, y))
    return record | {
        "rows": len(X),
        "ours_accuracy": percent(model, new, truth),
        "svc_accuracy": percent(peer, new, truth),
        "ratio": record["ours_cpu_s"] / record["svc_cpu_s"],
        "wanted": "under 5 s on two cores (10 processor seconds)",
    }


def letters_case(data: Path) -> dict[str, Any]:
    """26 classes by default, by one-vs-all, and one SVC."""
    X, new, y, truth = halves(data, "let")
    model, peer = FixedSizeLSSVC(random_state=0), SVC(C=10.0)
    other = FixedSizeLSSVC(multiclass="ova", random_state=0)
    record = timed("ours", lambda: model.fit(X, y)) | timed("svc", lambda: peer.fit(X, y))
    record |= timed("ova", lambda: other.fit(X, y))
    return record | {
        "rows": len(X),
        "code": model.record_.task.code.name,
        "ours_accuracy": percent(model, new, truth),
        "ova_accuracy": percent(other, new, truth),
        "svc_accuracy": percent(peer, new, truth),
        "ratio": record["ours_cpu_s"] / record["ova_cpu_s"],
        "wanted": "accuracy at least 95.5",
    }


def ard_case(data: Path) -> dict[str, Any]:
    """One width for every feature against one for all: Spambase, and Pima for the dual model."""
    record: dict[str, Any] = {"wanted": "at most 5 tuned fits"}
    ratios = []
    for name, make in (("spa", FixedSizeLSSVC), ("pid", LSSVC)):
        X, new, y, truth = halves(data, name)
        one, each = (make(C="cv", gamma=gamma, random_state=0) for gamma in ("cv", "ard"))
        own = timed("tuned", lambda one=one, X=X, y=y: one.fit(X, y))
        own |= timed("ard", lambda each=each, X=X, y=y: each.fit(X, y))
        own |= {"tuned_accuracy": percent(one, new, truth), "rows": len(X)}
        own |= {"ard_accuracy": percent(each, new, truth), "model": make.__name__}
        own["ratio"] = round(own["ard_cpu_s"] / own["tuned_cpu_s"], 2)
        ratios.append(own["ratio"])
        record[name] = own
    return record | {"ratio": max(ratios)}


def adult_case(data: Path) -> dict[str, Any]:
    """Adult with defaults, and one SVC on a fifth of its rows, scaled to all by the square."""
    table = pd.read_parquet(data / "a9a.parquet")
    y, part = table.pop("target").to_numpy(), table.pop("split").to_numpy()
    X, train = table.to_numpy(float), part == "train"
    model, peer = FixedSizeLSSVC(random_state=0), SVC()
    some = np.flatnonzero(train)[::5]
    record = timed("ours", lambda: model.fit(X[train], y[train]))
    record |= timed("svc_fifth", lambda: peer.fit(X[some], y[some]))
    return record | {
        "rows": int(train.sum()),
        "ours_accuracy": percent(model, X[~train], y[~train]),
        "svc_fifth_accuracy": percent(peer, X[~train], y[~train]),
        "ratio": record["ours_cpu_s"] / (25.0 * record["svc_fifth_cpu_s"]),
        "wanted": "a tuned fit in less than one untuned SVC (below 1)",
    }


def predict_case(data: Path) -> dict[str, Any]:
    """Time of a prediction against the number of support vectors."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 28))
    record: dict[str, Any] = {"rows": len(X), "features": 28}
    for m in (1000, 100, 10):
        model = FixedSizeLSSVR(m, C=1.0, gamma=0.02, selection="random", n_jobs=1)
        model.fit(X[:5000], X[:5000, 0])
        record[f"ms_{m}"] = 1e3 * min(spent(lambda m=model: m.predict(X))[1] for _ in range(5))
    reading = 1e3 * min(spent(lambda: np.einsum("ij,ij->i", X, X))[1] for _ in range(5))
    record["ms_squares_of_the_rows"] = reading
    share = (record["ms_1000"] - record["ms_100"]) / 900
    return record | {
        "ratio": record["ms_10"] / (10 * share + reading),
        "wanted": "ten support vectors: near ten shares and reading the rows",
    }


def smo_case(data: Path) -> dict[str, Any]:
    """Pairs of support values one after the other against a factor."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 10))
    y = np.sin(X @ rng.normal(size=10)) + 0.1 * rng.normal(size=3000)
    smo, direct = (LSSVR(C=10.0, gamma=0.1, solver=name) for name in ("smo", "cholesky"))
    record = timed("smo", lambda: smo.fit(X, y)) | timed("cholesky", lambda: direct.fit(X, y))
    difference = float(np.abs(smo.predict(X) - direct.predict(X)).max())
    return record | {
        "updates": int(smo.n_iter_),
        "microseconds_an_update": round(1e6 * record["smo_cpu_s"] / int(smo.n_iter_), 1),
        "largest_difference": difference,
        "ratio": record["smo_cpu_s"] / record["cholesky_cpu_s"],
        "wanted": "none: solver='auto' does not take it",
    }


def parquet_case(data: Path) -> dict[str, Any]:
    """Time one pass over 500,000 rows, ten folds, 100 prototypes, in memory and from Parquet."""
    with tempfile.TemporaryDirectory() as folder:
        rows = write_rows(Path(folder) / "rows", 500_000)
        record = throughput_case(rows, 100, 3, 2, time.process_time)
    record["memory_cpu_s"], record["parquet_cpu_s"] = record.pop("memory"), record.pop("parquet")
    return record | {"wanted": "at least 0.7 of memory's speed"}


def sparse_case(data: Path) -> dict[str, Any]:
    """20,000 rows of 5,000 features, 25 of them not zero."""
    rng = np.random.default_rng(0)
    n, d, each = 20_000, 5_000, 25
    places = rng.integers(d, size=n * each)
    X = sp.csr_matrix((rng.random(n * each), places, np.arange(0, n * each + 1, each)), (n, d))
    y = np.asarray(X @ rng.normal(size=d)).ravel()
    how: dict[str, Any] = {"C": 100.0, "gamma": 0.02, "selection": "random", "random_state": 0}
    record = {}
    for name, rows in (("sparse", X), ("dense", X.toarray())):
        record |= timed(name, lambda A=rows: FixedSizeLSSVR(300, **how).fit(A, y))
    tracemalloc.start()
    FixedSizeLSSVR(300, **how).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    peer = make_pipeline(Nystroem(gamma=0.02, n_components=300, random_state=0), Ridge(0.01))
    record |= timed("nystroem", lambda: peer.fit(X, y))
    return record | {
        "rows": n,
        "features": d,
        "peak_mb": round(peak / 1e6, 1),
        "dense_mb": 8 * n * d / 1e6,
        "ratio": record["sparse_cpu_s"] / record["nystroem_cpu_s"],
        "wanted": "nothing of n x d dense",
    }


CASES = {
    "pairs": pairs_case,
    "letters": letters_case,
    "ard": ard_case,
    "adult": adult_case,
    "predict": predict_case,
    "smo": smo_case,
    "parquet": parquet_case,
    "sparse": sparse_case,
}


def main() -> None:
    """Measure the cases that are asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="all by default")
    parser.add_argument("--data", type=Path, required=True, help="folder of <name>.parquet")
    parser.add_argument("--out", type=Path, default=RESULTS / "slow_corners.jsonl")
    asked = parser.parse_args()
    for name in asked.cases or CASES:
        load = os.getloadavg()[0]
        record = {"case": name, "cores": os.cpu_count(), "load": round(load, 1)}
        record |= {"python": platform.python_version(), "numpy": np.__version__}
        record |= CASES[name](asked.data)
        with open(asked.out, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        print(json.dumps(record, indent=1), flush=True)
    write_table(asked.out)


def write_table(records: Path) -> None:
    """Write the last record of every case as Markdown beside the records."""
    last: dict[str, dict[str, Any]] = {}
    for line in records.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        last[record["case"]] = record
    lines = [
        "| case | ratio to the peer | load | measured | wanted |",
        "| --- | ---: | ---: | --- | --- |",
    ]
    hidden = ("case", "cores", "load", "python", "numpy", "ratio", "wanted")
    for name in CASES:
        if name not in last:
            continue
        record = last[name]
        facts = ", ".join(_fact(key, record[key]) for key in record if key not in hidden)
        lines.append(
            f"| {name} | {record['ratio']:.2f} | {record['load']} | {facts} | {record['wanted']} |"
        )
    records.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _fact(name: str, value: Any) -> str:
    if isinstance(value, dict):
        return f"{name} ({', '.join(_fact(key, value[key]) for key in value)})"
    return (
        f"{name.replace('_', ' ')} {value:.4g}"
        if isinstance(value, float)
        else f"{name.replace('_', ' ')} {value}"
    )


if __name__ == "__main__":
    main()
