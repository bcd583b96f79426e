"""Speed of the dual model as ratios, both sides measured in one run.

    python -m benchmarks.dual_speed --out benchmarks/results/dual_speed.json

Every figure is the minimum over repetitions; the ratios are what counts.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy
import sklearn
from scipy.linalg import lapack
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold

from lssvm import LSSVR, __version__
from lssvm._core.blocks import n_threads
from lssvm.kernels import RBF
from lssvm.kernels.base import fill_gram
from lssvm.solvers import ConjugateGradient, DualSystem
from lssvm.tuning import GridSearch


def best(work, repeats):
    """Return the shortest of several runs of ``work`` in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def data(n, d, seed=0):
    """Return standardised inputs and a noisy smooth target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


def cholesky_fit(repeats):
    """Compare a fit at n = 5,000 with computing its kernel matrix and LAPACK's factorisation."""
    X, y = data(5000, 10)
    K = np.empty((5000, 5000))

    def limit():
        fill_gram(RBF(0.1), X, X, K, threads=n_threads(None))
        K.flat[::5001] += 1.0
        lapack.dpotrf(K.T, lower=0, overwrite_a=1, clean=0)

    pairs = [(best(lambda: LSSVR(gamma=0.1).fit(X, y), 1), best(limit, 1)) for _ in range(repeats)]
    fit, floor = (min(times) for times in zip(*pairs, strict=True))
    return {"fit_s": fit, "kernel_plus_lapack_s": floor, "ratio": fit / floor, "wanted": "<= 1.3"}


def leave_one_out_path(repeats):
    """Compare 60 values of C by exact leave-one-out at n = 3,000 with a single fit."""
    X, y = data(3000, 10)
    grid = GridSearch(C=np.logspace(-3, 6, 60))
    tuned = LSSVR("cv", gamma=0.1, cv="loo", search=grid)
    path = best(lambda: tuned.fit(X, y), repeats)
    fit = best(lambda: LSSVR(gamma=0.1).fit(X, y), repeats + 2)
    return {"path_s": path, "fit_s": fit, "ratio": path / fit, "wanted": "<= 15"}


def grid_search(repeats):
    """Compare a 10 x 10 grid at n = 2,000 with GridSearchCV over KernelRidge."""
    X, y = data(2000, 10)
    folds = KFold(10, shuffle=True, random_state=0)
    C, gamma = np.logspace(-3, 3, 10), np.logspace(-3, 1, 10)
    start = time.perf_counter()
    theirs = GridSearchCV(
        KernelRidge(kernel="rbf"),
        {"alpha": 1.0 / C, "gamma": gamma},
        cv=folds,
        scoring="neg_mean_squared_error",
        refit=False,
    ).fit(X, y)
    peer = time.perf_counter() - start
    search = GridSearch(C, gamma)
    ten = best(lambda: LSSVR("cv", gamma="cv", cv=folds, search=search).fit(X, y), repeats)
    loo = best(lambda: LSSVR("cv", gamma="cv", cv="loo", search=search).fit(X, y), repeats)
    return {
        "grid_search_cv_s": peer,
        "ten_fold_s": ten,
        "leave_one_out_s": loo,
        "ten_fold_speedup": peer / ten,
        "leave_one_out_speedup": peer / loo,
        "their_best_mse": -float(theirs.best_score_),
        "wanted": ">= 8 and >= 15",
    }


def _solve(preconditioner, n, C):
    """Solve one large system in this process and print what it took."""
    X, y = data(n, 20)
    system = DualSystem(RBF(1.0 / 20), X, X, C, budget=1_000_000_000, threads=n_threads(None))
    solver = ConjugateGradient(tol=1e-6, max_iter=2000, preconditioner=preconditioner)
    start = time.perf_counter()
    solution = solver.solve(solver.factorise(system), y[:, None])
    print(
        json.dumps(
            {
                "seconds": time.perf_counter() - start,
                "iterations": solution.iterations,
                "residual": solution.residual,
                "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
            }
        )
    )


def conjugate_gradients(n, C):
    """Compare preconditioned and plain conjugate gradients, each in a process of its own."""
    found = {}
    for name in ("nystrom", "plain"):
        command = [sys.executable, "-m", "benchmarks.dual_speed", "--solve", name]
        command += ["--n", str(n), "--C", str(C)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found[name] = json.loads(output.splitlines()[-1])
    found["iterations_ratio"] = found["nystrom"]["iterations"] / found["plain"]["iterations"]
    found["wanted"] = "ratio <= 0.2, residual <= 1e-6, peak < 1.5 GB"
    return found


def main():
    """Run the comparisons that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=["fit", "loo", "grid", "cg"])
    parser.add_argument("--n", type=int, default=30_000, help="rows of the iterative solve")
    parser.add_argument("--C", type=float, default=10.0, help="C of the iterative solve")
    parser.add_argument("--solve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.solve:
        _solve(None if options.solve == "plain" else options.solve, options.n, options.C)
        return
    studies = {
        "fit": lambda: cholesky_fit(options.repeats),
        "loo": lambda: leave_one_out_path(options.repeats),
        "grid": lambda: grid_search(options.repeats),
        "cg": lambda: conjugate_gradients(options.n, options.C),
    }
    results = {
        "lssvm": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
        "threads": n_threads(None),
    }
    for name in options.only:
        results[name] = studies[name]()
        print(name, json.dumps(results[name], indent=2), flush=True)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
