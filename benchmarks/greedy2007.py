"""Rerun tables V to XIX and figures 1 to 3 of [Jiao2007]: greedy models, LS-SVM, pruning, SVC.

    python -m benchmarks.greedy2007 --data DIR [--sets usp,lan] [--methods FSALS,SVC] [--powers 2,3]

Every result is appended to the output as one JSON line; results already there are not measured
again. Times are CPU seconds of one thread; accuracies are on the test part, which chooses nothing.
Rows read from files are in single precision, as they are there: the greedy models keep it for
kernel values (as SVC does for its cache) and solve in double precision.
"FSALS 0.3" and the like are FSALS with that epsilon, the points of figures 1 to 3; the full LS-SVM
is epsilon = 0. `--tables` writes the tables instead, `--widths` shows how Ringnorm's kernel width
was chosen, `python -m benchmarks.figures_2007` draws the figures.
"""

import argparse
import gc
import json
import os
import platform
import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from benchmarks.study import printed_2007 as printed
from lssvm import LSSVC, LSSVR, GreedyLSSVC
from lssvm.solvers import SMO, ConjugateGradient
from lssvm.tuning import GridSearch

Array = NDArray[Any]
OUTPUT = Path("benchmarks/results/greedy2007.jsonl")
REPORT = Path("benchmarks/results/greedy2007.md")
SEED = 2007
WIDTHS = {
    "ringnorm": 2.0**-4,
    "ringnorm 0.05": 0.05,
    "lan": 2.0**-2,
    "usp": 2.0**-5,
    "mnist1": 2.0**-6,
    "mnist": 2.0**-6,
}
SOME = (-1, 2, 5, 8)
EPSILONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FIGURES = {"ringnorm": -1, "lan": 0}  # log2(gamma) of figures 1 to 3, the best of the tables
VARIED = [f"FSALS {epsilon}" for epsilon in EPSILONS]
PLAN: dict[str, dict[str, tuple[int, ...]]] = {
    "usp": {
        "SVC": printed.POWERS,
        "FSALS": printed.POWERS,
        "PFSALS": printed.POWERS,
        "PFSALS 0.4": SOME,
        "LS-SVM CG": printed.POWERS,
        "LS-SVM SMO": printed.POWERS,
        "SVS": (2,),
        "KMP": (3,),
        "SGGP": (3,),
        "KMP 200": (3,),
        "SGGP 200": (3,),
    },
    "ringnorm": {
        "SVC": printed.POWERS,
        "FSALS": printed.POWERS,
        "PFSALS": printed.POWERS,
        "LS-SVM CG": printed.POWERS,
        "LS-SVM SMO": printed.POWERS,
        "SVS": printed.POWERS,
        "KMP": (-1,),
        "SGGP": (-1,),
        "KMP tuned": (-1,),
        "SGGP tuned": (-1,),
        **dict.fromkeys(VARIED, (FIGURES["ringnorm"],)),
    },
    "ringnorm 0.05": dict.fromkeys(("SVC", "FSALS", "PFSALS", "LS-SVM CG", "SVS"), printed.POWERS),
    "lan": {
        "SVC": printed.POWERS,
        "FSALS": printed.POWERS,
        "PFSALS": printed.POWERS,
        "LS-SVM CG": printed.POWERS,
        "LS-SVM SMO": printed.POWERS,
        "SVS": printed.POWERS,
        **dict.fromkeys(VARIED, (FIGURES["lan"],)),
    },
    "mnist1": {"SVC": SOME, "FSALS": SOME, "PFSALS": printed.POWERS, "PFSALS 0.4": SOME},
    "mnist": {
        "PFSALS": printed.POWERS,
        "FSALS": (2,),
        "SVC": (2,),
        "PFSALS 0.6": (2,),
        "PFSALS 0.4": (2,),
    },
}


@dataclass(frozen=True)
class Task:
    """Training and test part, and the kernel width."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    width: float


def ringnorm(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw n rows of two normal classes in 20 dimensions (section VII-A)."""
    y = rng.integers(0, 2, n)
    wide, narrow = 2.0 * rng.normal(size=(n, 20)), 2.0 / np.sqrt(20) + rng.normal(size=(n, 20))
    return np.where(y[:, None] == 0, wide, narrow), y


def print_widths() -> None:
    """Print the leave-one-out accuracy of the full machine on Ringnorm's training part, C = 8."""
    X, y = ringnorm(3000, np.random.default_rng(SEED))
    for power in range(-7, -1):
        search = GridSearch([8.0], [2.0**power])
        model = LSSVC("cv", gamma="cv", cv="loo", search=search).fit(X, y)
        print(f"2^{power}: {model.best_score_:.4f}", flush=True)


def load(folder: Path, name: str) -> Task:
    """Return a data set as section VII-A describes it."""
    if name.startswith("ringnorm"):
        rng = np.random.default_rng(SEED)
        (X, y), (X_test, y_test) = ringnorm(3000, rng), ringnorm(4400, rng)
        return Task(X, y, X_test, y_test, WIDTHS[name])
    import pandas as pd

    frame = pd.read_parquet(folder / f"{'mnist' if name == 'mnist1' else name}.parquet")
    train = (frame["split"] == "train").to_numpy()
    y = np.unique(frame["target"].to_numpy().astype(str), return_inverse=True)[1]
    X = frame.drop(columns=["target", "split"]).to_numpy(np.float32)  # as they are in the files
    del frame
    if name == "lan":
        X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    elif name == "usp":
        X = (X + 1.0) / 2.0  # grey values between 0 and 1
    else:
        X = X / np.float32(255.0)
    rows = np.flatnonzero(train)[: 20_000 if name == "mnist1" else None]
    return Task(X[rows], y[rows], X[~train], y[~train], WIDTHS[name])


class Spectrum:
    """Pruning by the support value spectrum to given numbers of support vectors, one-vs-all."""

    def __init__(self, C: float, gamma: float, sizes: list[int]) -> None:
        self.C, self.gamma, self.sizes = C, gamma, sizes

    def fit(self, X: Array, y: Array) -> "Spectrum":
        """Train, drop the smallest 5 % of the support values, and so on, for every class."""
        classes = np.unique(y)
        signs = [classes[1]] if len(classes) == 2 else list(classes)
        self.classes, self.models, kept = classes, [], []
        for label, size in zip(signs, self.sizes, strict=True):
            rows, t = np.arange(len(X)), np.where(y == label, 1.0, -1.0)
            model = LSSVR(self.C, gamma=self.gamma, n_jobs=1).fit(X, t)
            while len(rows) > size:
                order = np.argsort(np.abs(model.dual_coef_[:, 0]))
                drop = min(max(1, len(rows) // 20), len(rows) - size)  # 5 % per step
                rows = np.sort(rows[order[drop:]])
                model = LSSVR(self.C, gamma=self.gamma, n_jobs=1).fit(X[rows], t[rows])
            self.models.append(model)
            kept.append(rows)
        self.support_ = np.unique(np.concatenate(kept))
        return self

    def predict(self, X: Array) -> Array:
        """Return the class with the largest output."""
        scores = np.column_stack([model.predict(X) for model in self.models])
        if scores.shape[1] == 1:
            return self.classes[(scores[:, 0] > 0).astype(int)]
        return self.classes[np.argmax(scores, axis=1)]


def make(method: str, power: int, task: Task, budget: str) -> Any:
    """Return the estimator of a method at log2(gamma) = power."""
    C, gamma = 2.0 * 2.0**power, task.width
    greedy = {"gamma": gamma, "n_jobs": 1, "memory_budget": budget, "random_state": SEED}
    if method == "SVC":
        return SVC(C=2.0**power, gamma=gamma, cache_size=500)
    if method == "FSALS":
        return GreedyLSSVC(C, **greedy)
    if method.startswith("FSALS "):
        return GreedyLSSVC(C, epsilon=float(method.split()[1]), **greedy)
    if method.startswith("PFSALS"):
        epsilon = float(method.split()[1]) if " " in method else 0.5
        return GreedyLSSVC(C, candidates=146, epsilon=epsilon, **greedy)
    if method.startswith(("KMP", "SGGP")) and not method.endswith(" tuned"):
        kind, _, size = method.partition(" ")
        options = {"criterion": kind.lower(), "prefit": kind == "SGGP", "epsilon": 0.0}
        if size:
            options["max_support"] = int(size)  # of every class
        return GreedyLSSVC(C, candidates=146, validation_fraction=0.2, **options, **greedy)
    if method.endswith(" tuned"):  # all free parameters by tenfold cross-validation
        kind = method.split()[0]
        size = printed.PURSUITS["ringnorm"][kind]["n_support"]
        options = {"criterion": kind.lower(), "prefit": kind == "SGGP", "epsilon": 0.0}
        tuned = greedy | {"gamma": "cv", "candidates": 146, "max_support": size}
        return GreedyLSSVC("cv", **options, **tuned)
    # eq. (39): a mean squared residual of 1e-6, targets being +1 and -1
    solver: Any = ConjugateGradient(tol=1e-3) if method == "LS-SVM CG" else SMO(tol=1e-3)
    return LSSVC(C, gamma=gamma, multiclass="ova", solver=solver, n_jobs=1)


def accuracy(model: Any, task: Task) -> float:
    """Return the part of the test rows that is classified correctly."""
    correct = [
        np.sum(model.predict(task.X_test[i : i + 2000]) == task.y_test[i : i + 2000])
        for i in range(0, len(task.y_test), 2000)
    ]
    return round(float(np.sum(correct)) / len(task.y_test), 6)


def measure(method: str, power: int, task: Task, budget: str, repeats: int = 1) -> dict[str, Any]:
    """Train and test: accuracy, support vectors, least CPU seconds, peak memory of the process."""
    if method == "SVS":
        base = make("FSALS", power, task, budget).fit(task.X, task.y)
        sizes = [len(path.support) for path in base.paths_]
        model: Any = Spectrum(2.0 * 2.0**power, task.width, sizes)
    else:
        model = make(method, power, task, budget)
    times = []
    for _ in range(repeats):
        gc.collect()
        wall, start = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(task.X, task.y)
        times.append((time.process_time() - start, time.perf_counter() - wall))
    seconds, wall = min(times)
    extra: dict[str, Any] = {}
    if method.endswith(" tuned"):
        extra = {"C": float(model.C_), "gamma": float(model.gamma_)}
    if method in ("KMP", "SGGP") and len(model.paths_) == 1:  # the same run at the printed size
        size = printed.PURSUITS["ringnorm"][method]["n_support"]
        extra["accuracy_at_printed_size"] = accuracy(model.truncate(size), task)
    return extra | {
        "accuracy": accuracy(model, task),
        "n_support": len(model.support_),
        "seconds": round(seconds, 3),
        "wall_seconds": round(wall, 3),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "width": task.width,
        "repeats": repeats,
    }


def describe() -> dict[str, Any]:
    """Return versions and machine."""
    import scipy
    import sklearn

    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "cores": os.cpu_count(),
        "threads": os.environ.get("OMP_NUM_THREADS"),
    }


def read(path: Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    """Return the recorded results by (set, method, power)."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return {(r["set"], r["method"], r["power"]): r for r in lines if "set" in r}


def append(path: Path, record: dict[str, Any]) -> None:
    """Add one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def run(options: argparse.Namespace, allowed: Callable[[str, int], bool]) -> None:
    """Measure what is planned, allowed and not there yet; powers outside, methods inside."""
    append(options.out, {"run": describe()})
    for name in options.sets.split(","):
        task = None
        for power in printed.POWERS:
            for method, powers in PLAN[name].items():
                if power not in powers or not allowed(method, power):
                    continue
                if (name, method, power) in read(options.out):
                    continue
                task = task or load(options.data, name)
                result = measure(method, power, task, options.budget, options.repeats)
                append(options.out, {"set": name, "method": method, "power": power} | result)
                print(name, method, power, result, flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of <name>.parquet files")
    parser.add_argument("--sets", default=",".join(PLAN), help="comma-separated names")
    parser.add_argument("--methods", default="", help="comma-separated names; all by default")
    parser.add_argument("--powers", default="", help="comma-separated log2(gamma); all by default")
    parser.add_argument("--budget", default="6 GB", help="memory budget of the greedy models")
    parser.add_argument("--repeats", type=int, default=1, help="fits; the least time counts")
    parser.add_argument("--out", type=Path, default=OUTPUT)
    parser.add_argument("--tables", type=Path, nargs="?", const=REPORT, help="write tables here")
    parser.add_argument("--widths", action="store_true", help="print how Ringnorm's was chosen")
    options = parser.parse_args(arguments)
    if options.tables is not None:
        from benchmarks.tables_greedy2007 import report

        options.tables.write_text(report(read(options.out)), encoding="utf-8")
        return
    if options.widths:
        print_widths()
        return
    if options.data is None:
        parser.error("--data is needed: the folder with the <name>.parquet files")
    methods = [m for m in options.methods.split(",") if m]
    powers = [int(p) for p in options.powers.split(",") if p]
    run(options, lambda m, p: (not methods or m in methods) and (not powers or p in powers))


if __name__ == "__main__":
    main()
