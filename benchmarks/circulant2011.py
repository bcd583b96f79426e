"""Rerun [Ding2011]: table 2, how time grows with n, and what 1,300 rows cost.

    python -m benchmarks.circulant2011 --data DIR [--sets thyroid,heart] [--cases table,speed]

Every result is appended to the output as one JSON line; results already there are not computed
again. `python -m benchmarks.tables_circulant2011` prints the tables.
"""

import argparse
import itertools
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from benchmarks.chapter3 import describe_run
from benchmarks.study import records
from benchmarks.study.printed_2011 import SETS
from lssvm import LSSVC
from lssvm.data.folds import assign_folds
from lssvm.kernels import RBF
from lssvm.solvers import CirculantSolver, DualSystem
from lssvm.solvers.circulant import Circulant, lay_rows
from lssvm.tuning import CirculantSearch, GridSearch

Array = NDArray[np.float64]

DEFAULT_OUTPUT = Path("benchmarks/results/circulant2011.jsonl")
SPLITS = 20
GRID = GridSearch.ding2011()
SEARCHES: dict[str, dict[str, Any]] = {
    "exact": {"search": GRID},
    "printed": {"search": CirculantSearch(GRID, refine=0, layout="plain", wrap="set")},
    "periodic sum": {"search": CirculantSearch(GRID, refine=0, layout="plain", wrap="sum")},
    "approximate": {"search": CirculantSearch(GRID, refine=0)},
    "refined": {"search": CirculantSearch(GRID)},
    "leave-one-out": {"search": CirculantSearch(GRID, refine=0), "scoring": "press"},
}


def load(folder: Path, name: str) -> tuple[Array, NDArray[np.int64], NDArray[Any] | None]:
    """Read a set: rows, labels -1 and +1, and its predefined split where the file has one."""
    import pandas as pd

    spec = SETS[name]
    frame = pd.read_parquet(folder / f"{spec.file}.parquet")
    marks = frame["split"].to_numpy() if "split" in frame else None
    X = frame.drop(columns=[c for c in ("target", "split") if c in frame]).to_numpy(float)
    y = 2 * np.unique(frame["target"].to_numpy(), return_inverse=True)[1] - 1
    if X.shape[1] != spec.n_features or len(X) < spec.n_train + spec.n_test:
        raise ValueError(
            f"{name}: came with {X.shape[0]} rows and {X.shape[1]} attributes; table 1 has "
            f"{spec.n_train + spec.n_test} and {spec.n_features}."
        )
    return X, y, marks


def split(folder: Path, name: str, number: int) -> tuple[Array, Any, Array, Any]:
    """Return the training and the test part of one split, inputs standardised by the training part.

    Split 0 is the predefined one where the file has it. All others are drawn at random with the
    published sizes; the draw depends on the name and the number only.
    """
    X, y, marks = load(folder, name)
    spec = SETS[name]
    if number == 0 and marks is not None:
        train, test = np.flatnonzero(marks == "train"), np.flatnonzero(marks == "test")
    else:
        order = np.random.default_rng([number, zlib.crc32(name.encode())]).permutation(len(y))
        train = order[: spec.n_train]
        test = order[spec.n_train : spec.n_train + spec.n_test]
    if len(train) != spec.n_train or len(test) != spec.n_test:
        raise ValueError(f"{name}: the predefined split has {len(train)}/{len(test)} rows.")
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    spread[spread == 0.0] = 1.0
    return (X[train] - mean) / spread, y[train], (X[test] - mean) / spread, y[test]


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Return what ``work`` returns, its wall time and its processor time in seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - processor


def tune(X: Array, y: Any, **settings: Any) -> LSSVC:
    """Choose (C, gamma) by 5-fold cross-validation and train on all rows."""
    return LSSVC("cv", gamma="cv", cv=5, n_jobs=1, **settings).fit(X, y)


def repeated_factorisation(X: Array, y: Any) -> tuple[float, float]:
    """Choose (C, gamma) as the paper's 5-fold cross-validation does: every system factorised."""
    folds = assign_folds(X, 5, labels=(y > 0).astype(np.intp)).test
    errors = np.zeros((len(GRID.gamma), len(GRID.C)))
    for i, gamma in enumerate(GRID.gamma):
        K = np.asarray(RBF(gamma)(X, X))
        for test in folds:
            train = np.setdiff1d(np.arange(len(X)), test)
            within, across = K[np.ix_(train, train)], K[np.ix_(test, train)]
            right = np.column_stack([np.ones(len(train)), y[train]])
            for j, C in enumerate(GRID.C):
                H = within + np.eye(len(train)) / C
                eta, nu = cho_solve(cho_factor(H, overwrite_a=True), right).T
                b = nu.sum() / eta.sum()
                errors[i, j] += np.sum((across @ (nu - eta * b) + b > 0) != (y[test] > 0))
    i, j = np.unravel_index(np.argmin(errors), errors.shape)
    return float(GRID.C[j]), float(GRID.gamma[i])


def table(folder: Path, sets: list[str], splits: int) -> Iterator[tuple[records.Key, Any]]:
    """Yield the work of table 2: every search on every split."""
    for number in range(splits):
        for name in sets:
            for method, settings in SEARCHES.items():

                def work(name: str = name, number: int = number, settings: Any = settings) -> Any:
                    X, y, X_test, y_test = split(folder, name, number)
                    model, wall, processor = timed(lambda: tune(X, y, **settings))
                    error = 100.0 * float(np.mean(model.predict(X_test) != y_test))
                    return {
                        "error": round(error, 6),
                        "seconds": round(wall, 4),
                        "processor_s": round(processor, 4),
                        "C": model.C_,
                        "gamma": model.gamma_,
                        "cv_accuracy": model.best_score_,
                    }

                yield (name, number, method), work


def speed(folder: Path, sets: list[str]) -> Iterator[tuple[records.Key, Any]]:
    """Yield the timing of what table 2 does not have: every system factorised, and the path."""
    for name in sets:
        for method in ("repeated factorisation", "path"):

            def work(name: str = name, method: str = method) -> Any:
                X, y, _, _ = split(folder, name, 0)
                choose = repeated_factorisation if method != "path" else tune
                _, wall, processor = timed(lambda: choose(X, y))
                return {"seconds": wall, "processor_s": processor, "n": len(X)}

            yield (name, 0, f"speed: {method}"), work


def choices(folder: Path, sets: list[str]) -> Iterator[tuple[records.Key, Any]]:
    """Yield what layout, wrap and levels cost: the exact loss of the pair that each one chooses."""
    for name in sets:
        for number in range(4):

            def work(name: str = name, number: int = number) -> Any:
                X, y, _, _ = split(folder, name, number)
                exact = tune(X, y, search=GRID).cv_results_
                pairs = zip(exact["param_C"], exact["param_gamma"], strict=True)
                score = dict(zip(pairs, exact["mean_test_score"], strict=True))
                found = {}
                for layout, wrap, levels in itertools.product(
                    ("plain", "sorted"), ("sum", "mean"), (1, 2, 3)
                ):
                    search = CirculantSearch(GRID, 0, levels, layout, wrap)
                    model = tune(X, y, search=search)
                    indefinite = float(np.mean(np.isinf(model.cv_results_["mean_test_score"])))
                    loss = max(score.values()) - score[model.C_, model.gamma_]
                    found[f"{layout}, {wrap}, {levels}"] = [100.0 * float(loss), indefinite]
                return {"loss": found}

            yield (name, number, "choices"), work


def growth() -> Iterator[tuple[records.Key, Any]]:
    """Yield the time of a solve, and of a grid by generalised cross-validation, against n."""
    for power in range(10, 19):
        n = 2**power
        for levels in (1, 2, 3):

            def work(n: int = n, levels: int = levels) -> Any:
                rng = np.random.default_rng(0)
                X = rng.uniform(0.0, n ** (1.0 / 3.0), (n, 3))
                Y = np.sin(X[:, :1]) + 0.1 * rng.standard_normal((n, 1))
                solver, system = CirculantSolver(levels=levels), DualSystem(RBF(1.0), X, X, 10.0)
                laid = min(timed(lambda: lay_rows(X, levels=levels))[2] for _ in range(3))
                lattice = lay_rows(X, levels=levels)
                first = min(timed(lambda: Circulant.of(RBF(1.0), lattice))[2] for _ in range(3))
                whole = min(
                    timed(lambda: solver.solve(solver.factorise(system), Y))[2] for _ in range(3)
                )
                return {"n": n, "whole_s": whole, "layout_s": laid, "first_row_s": first}

            yield ("growth", n, f"levels {levels}"), work


def main() -> None:
    """Run what is not in the output yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUTPUT)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--cases", default="table,speed,growth,choices")
    options = parser.parse_args()
    sets, cases = options.sets.split(","), options.cases.split(",")
    records.repair(options.out)
    known = records.read(options.out)
    records.append(options.out, {"run": describe_run(0)})
    work: list[tuple[records.Key, Any]] = []
    if "growth" in cases:
        work += growth()
    if "table" in cases:
        work += table(options.data, sets, options.splits)
    if "choices" in cases:
        work += choices(options.data, [name for name in sets if name != "image"])
    if "speed" in cases:
        work += speed(options.data, [name for name in ("image",) if name in sets])
    for (name, number, method), measure in work:
        if (name, number, method) not in known:
            line = {"set": name, "randomisation": number, "method": method, **measure()}
            records.append(options.out, line)


if __name__ == "__main__":
    main()
