"""Speed of the fixed-size model against bare BLAS, against one fit, and against grid search.

Every figure is a ratio of two times measured in the same run; each side is repeated and the
smallest time counts. Run with::

    python benchmarks/fixed_size_speed.py --out speed.json            # all cases
    python benchmarks/fixed_size_speed.py moments --scale 0.1         # one, on a tenth of the rows
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from lssvm._core.blocks import n_threads, run_blocks, slices
from lssvm.backends.rows import Rows
from lssvm.data import ArraySource
from lssvm.data.folds import Folds
from lssvm.kernels import RBF
from lssvm.solvers.moments import accumulate, make_cells, nystrom_map
from lssvm.solvers.primal import solve_primal
from lssvm.tasks import AbsoluteError, SquaredError
from lssvm.tuning.fixed_size import FixedSizeObjective

C_PATH = np.geomspace(1e-3, 1e6, 60)


def best_of(repeats: int, *sides: Callable[[], Any]) -> list[float]:
    """Return the smallest time of each side, the sides taking turns."""
    times = [[] for _ in sides]
    for _ in range(repeats):
        for side, kept in zip(sides, times, strict=True):
            start = time.perf_counter()
            side()
            kept.append(time.perf_counter() - start)
    return [min(kept) for kept in times]


def make_data(n: int, d: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    return X, y[:, None]


def ten_folds(n: int) -> Folds:
    return Folds(np.array_split(np.random.default_rng(1).permutation(n), 10))


def bare_blas(X: Any, Z: Any, threads: int) -> None:
    """Compute the two products of a pass and nothing else: X Z^T and K^T K."""
    m, B = len(Z), np.ascontiguousarray(Z.T)

    def work(part: slice) -> Any:
        K, G = np.empty((1024, m)), np.empty((m, m))
        for block in slices(part.stop - part.start, 1024):
            rows = X[part.start + block.start : part.start + block.stop]
            view = np.matmul(rows, B, out=K[: len(rows)])
            np.matmul(view.T, view, out=G)
        return G

    run_blocks(work, slices(len(X), -(-len(X) // threads)), threads)


def moments_case(n: int, d: int, m: int, repeats: int, threads: int) -> dict[str, Any]:
    X, Y = make_data(n, d)
    Z, layout = X[:m], make_cells(ten_folds(n), n)
    source, kernel = ArraySource(X, Y, None, layout.order), RBF(1.0 / d)
    ours, blas = best_of(
        repeats,
        lambda: accumulate(kernel, source, Z, layout.cells, threads=threads),
        lambda: bare_blas(X, Z, threads),
    )
    return {"ours": ours, "blas": blas, "ratio": ours / blas, "wanted": "<= 1.25"}


def path_case(n: int, d: int, m: int, repeats: int, threads: int, limit: float) -> dict[str, Any]:
    X, Y = make_data(n, d)
    Z, folds = X[:m], ten_folds(n)

    def plain() -> None:
        kernel = RBF(1.0 / d)
        moments = accumulate(kernel, ArraySource(X, Y), Z, threads=threads)[0]
        solve_primal(moments, nystrom_map(kernel, Z), 1.0)

    def cross_validate(criterion: Any) -> None:
        rows = Rows(X, Y, threads=threads)
        objective = FixedSizeObjective(RBF, rows, Z, folds, criterion)
        objective.at(1.0 / d).losses(C_PATH)

    fit, squared, predicted = best_of(
        repeats,
        plain,
        lambda: cross_validate(SquaredError()),
        lambda: cross_validate(AbsoluteError()),
    )
    return {
        "fit": fit,
        "cv_squared": squared,
        "cv_predictions": predicted,
        "ratio": squared / fit,
        "ratio_predictions": predicted / fit,
        "wanted": f"<= {limit:g}",
    }


def grid_search_case(n: int, d: int, m: int, repeats: int, threads: int) -> dict[str, Any]:
    X, Y = make_data(n, d)
    folds = ten_folds(n)
    everyone = np.arange(n)
    splits = [(np.setdiff1d(everyone, test), test) for test in folds.test]
    pipeline = make_pipeline(Nystroem(gamma=1.0 / d, n_components=m, random_state=0), Ridge())
    peer = GridSearchCV(
        pipeline,
        {"ridge__alpha": 1.0 / C_PATH},
        cv=splits,
        scoring="neg_mean_squared_error",
        n_jobs=threads,
        refit=False,
    )

    def ours() -> None:
        rows = Rows(X, Y, threads=threads)
        objective = FixedSizeObjective(RBF, rows, X[:m], folds, SquaredError())
        objective.at(1.0 / d).losses(C_PATH)

    mine = best_of(repeats, ours)[0]
    (theirs,) = best_of(1, lambda: peer.fit(X, Y[:, 0]))
    return {"ours": mine, "grid_search": theirs, "ratio": theirs / mine, "wanted": ">= 200"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = ("moments", "path", "path_cubic", "grid_search")
    parser.add_argument("cases", nargs="*", default=names, help=f"any of {names}")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the rows")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--out", default=None, help="file for the results, JSON")
    options = parser.parse_args()
    threads, repeats, scale = n_threads(options.threads), options.repeats, options.scale
    cases = {
        "moments": lambda: moments_case(int(200_000 * scale), 54, 500, repeats, threads),
        "path": lambda: path_case(int(200_000 * scale), 54, 500, repeats, threads, 2.0),
        "path_cubic": lambda: path_case(int(13_000 * scale), 10, 1500, repeats, threads, 6.0),
        "grid_search": lambda: grid_search_case(int(20_000 * scale), 10, 300, repeats, threads),
    }
    results: dict[str, Any] = {
        "machine": platform.platform(),
        "processor": platform.processor(),
        "threads": threads,
        "scale": scale,
    }
    for name in options.cases:
        results[name] = cases[name]()
        print(name, json.dumps(results[name]), flush=True)
    if options.out is not None:
        with open(options.out, "w", encoding="utf-8") as handle:
            json.dump(results, handle, indent=2)


if __name__ == "__main__":
    main()
