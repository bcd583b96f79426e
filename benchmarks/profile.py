"""The five slowest paths and what bounds them: BLAS, LAPACK, exponentials, memory; whole tables.

Every path is timed next to the same amount of its unavoidable parts, called directly on arrays that
are already there; the sum of the parts is the bound. Processor seconds of one thread, the smallest
of several turns, so that other work on the machine matters little. Whole fits and predictions of
the model for tables are profiled, and the seconds of every function added up by what it does. Run
with::

    python -m benchmarks.profile                   # writes results/profile.json and PROFILE.md
    python -m benchmarks.profile --scale 0.2       # fewer rows, prints only
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "profile.json"
PAGE = ROOT / "benchmarks" / "PROFILE.md"
LIMIT = 1.5
"""What is further from its bound is to be mended or explained."""


@dataclass(frozen=True)
class Part:
    """An unavoidable part of a path: what it is limited by ("BLAS", ...), and a call of it.

    ``before`` is called first, outside the time; ``times`` is how often the path has the part.
    """

    kind: str
    what: str
    work: Callable[[], Any]
    before: Callable[[], Any] = lambda: None
    times: int = 1


@dataclass(frozen=True)
class Case:
    """A path, its parts, and what else it does."""

    name: str
    size: str
    ours: Callable[[], Any]
    parts: Sequence[Part]
    beyond: str


def cases(scale: float = 1.0) -> list[Case]:
    """Return the paths, with ``scale`` times the rows."""
    return [moments(scale), dual(scale), leaf(scale), parts(scale), *gradients(scale)]


def _rows(n: int, d: int, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    return X, (np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * random.standard_normal(n))[:, None]


def moments(scale: float) -> Case:
    """Second moments of ten folds: the pass of the fixed-size model."""
    from scipy.linalg import blas

    from lssvm.data import ArraySource
    from lssvm.data.folds import Folds
    from lssvm.kernels import RBF
    from lssvm.solvers.moments import accumulate, make_cells

    n, d, m, rows = int(40_000 * scale), 30, 500, 1000
    X, Y = _rows(n, d)
    folds = np.array_split(np.random.default_rng(1).permutation(n), 10)
    layout = make_cells(Folds(folds), n)
    Z, kernel = X[:m].copy(), RBF(1.0 / d)
    K, B, G = np.empty((rows, m)), np.ascontiguousarray(X[:m].T), np.zeros((m, m), order="F")

    def products() -> None:
        for start in range(0, n, rows):
            block = X[start : start + rows]
            np.matmul(block, B, out=K[: len(block)])

    def squares() -> None:
        for _ in range(0, n, rows):
            blas.dsyrk(1.0, K.T, beta=1.0, c=G, overwrite_c=1)

    return Case(
        "moments of ten folds",
        f"n = {n:,}, d = {d}, m = {m}",
        lambda: accumulate(
            kernel, ArraySource(X, Y, None, layout.order), Z, layout.cells, threads=1
        ),
        [
            Part("BLAS", "X Z'", products),
            Part("exp", "n m exponentials", _exponentials(n, m)),
            Part("BLAS", "K'K, one triangle", squares),
        ],
        "gathering the rows of a fold, adding norms to the products, sums with the targets",
    )


def dual(scale: float) -> Case:
    """One fit of the dual model."""
    from scipy.linalg import lapack

    from lssvm import LSSVR

    n, d = int(2500 * np.sqrt(scale)), 10
    X, Y = _rows(n, d)
    K = np.empty((n, n))
    A = _positive(n)
    work = A.copy(order="F")

    def restore() -> None:
        work[:] = A

    def factor() -> None:
        lapack.dpotrf(work, lower=1, clean=0, overwrite_a=1)

    def products() -> None:
        for start in range(0, n, 250):
            stop = min(start + 250, n)
            np.matmul(X[start:stop], X[:stop].T, out=K[start:stop, :stop])

    return Case(
        "dual fit",
        f"n = {n:,}, d = {d}",
        lambda: LSSVR(C=10.0, gamma=0.1, n_jobs=1).fit(X, Y[:, 0]),
        [
            Part("BLAS", "X X', one triangle", products),
            Part("exp", "n^2 / 2 exponentials", _exponentials(n, n // 2)),
            Part("LAPACK", "Cholesky factor", factor, restore),
        ],
        "fresh memory, the mirrored triangle that keeps the system for the residual, two solves of "
        "two columns, three products; the factor itself is found faster than by LAPACK's routine",
    )


def leaf(scale: float) -> Case:
    """Fit a part of the model for tables: three settings by exact leave-one-out."""
    from scipy.linalg import lapack

    from lssvm.local import Rows, Setting, fit_leaf

    n, d, tries = int(2000 * np.sqrt(scale)), 10, 3
    X, Y = _rows(n, d)
    A = _positive(n)
    L = lapack.dpotrf(A.copy(order="F"), lower=1)[0]
    work = A.copy(order="F")

    def differences() -> None:
        for start in range(0, n, 250):
            stop = min(start + 250, n)
            _differences(X[start:stop], X[:stop])

    def restore() -> None:
        work[:] = A

    def restore_factor() -> None:
        work[:] = L

    def factor() -> None:
        lapack.dpotrf(work, lower=1, clean=0, overwrite_a=1)

    def inverse() -> None:
        lapack.dtrtri(work, lower=1, overwrite_c=1)

    return Case(
        "table leaf with leave-one-out",
        f"n = {n:,}, d = {d}, Laplacian, {tries} settings",
        lambda: fit_leaf(
            Rows(X, Y, np.ones(n)), "cityblock", Setting(10.0, 0.1), tries=tries, threads=1
        ),
        [
            Part("differences", "|x - z|, one triangle", differences),
            Part("exp", f"{tries} n^2 exponentials", _exponentials(n, n * tries)),
            Part("LAPACK", f"{tries} Cholesky factors", factor, restore, tries),
            Part("LAPACK", f"{tries} inverses of them", inverse, restore_factor, tries),
        ],
        "the mirrored triangle, products with the inverse factor, its columns' norms",
    )


def parts(scale: float) -> Case:
    """Prediction of the model for tables: every row by the rows of its part."""
    from lssvm.local import Rows, Setting, fit_local

    n, d, size, new = int(8000 * scale), 10, 1000, int(10_000 * scale)
    X, Y = _rows(n, d)
    model = fit_local(Rows(X, Y, np.ones(n)), "cityblock", Setting(10.0, 0.1), leaf_size=size)
    length = int(np.mean([len(leaf.rows.X) for leaf in model.leaves]))
    T = _rows(new, d, 1)[0]
    K, coef = np.random.default_rng(2).uniform(size=(1000, length)), np.ones((length, 1))

    def differences() -> None:
        for start in range(0, new, 1000):
            _differences(T[start : start + 1000], X[:length])

    def products() -> None:
        for _ in range(0, new, 1000):
            K @ coef

    return Case(
        "prediction in parts",
        f"{new:,} rows, d = {d}, parts of {length:,}, Laplacian",
        lambda: model.outputs(T),
        [
            Part("differences", "|x - z|", differences),
            Part("exp", "one exponential a pair", _exponentials(new, length)),
            Part("memory", "K times the coefficients", products),
        ],
        "finding the part of every row, gathering rows, the factor of the width",
    )


def gradients(scale: float) -> list[Case]:
    """Average outer products of gradients, which make a metric: smooth kernel and Laplacian."""
    from lssvm.kernels import RBF, Laplacian
    from lssvm.kernels.metric import mean_outer_product

    n, d = int(3000 * np.sqrt(scale)), 20
    X, Y = _rows(n, d)
    rows = 500
    K, B = np.random.default_rng(2).uniform(size=(rows, n)), np.ascontiguousarray(X.T)
    slopes = np.empty((n, d))

    def products() -> None:
        for start in range(0, n, rows):
            np.matmul(X[start : start + rows], B, out=K[: len(X[start : start + rows])])

    def pulls() -> None:
        for start in range(0, n, rows):
            np.matmul(K[: len(X[start : start + rows])], X, out=slopes[start : start + rows])

    def sums() -> None:
        for _ in range(0, n, rows):
            for _ in range(d):
                K @ Y

    def differences() -> None:
        for start in range(0, n, rows):
            _differences(X[start : start + rows], X)

    exponentials = Part("exp", "one exponential a pair", _exponentials(n, n))
    size = f"{n:,} rows, d = {d}, one output"
    return [
        Case(
            "metric gradients, rbf, full",
            size,
            lambda: mean_outer_product(RBF(0.05), X, X, Y),
            [
                Part("BLAS", "X Z'", products),
                exponentials,
                Part("BLAS", "K Z", pulls),
                Part("BLAS", "outer products", lambda: slopes.T @ slopes),
            ],
            "norms added to the products, K times the coefficients before the product with Z",
        ),
        Case(
            "metric gradients, Laplacian, diagonal",
            size,
            lambda: mean_outer_product(Laplacian(0.05), X, X, Y, shape="diagonal"),
            [
                Part("differences", "|x - z|", differences),
                exponentials,
                Part("memory", "a pass over K for every column", sums),
            ],
            "the sign of every difference, which a compiled loop takes in the pass (without numba: "
            "ranks of two bytes are compared, made numbers and multiplied with a tile of K, three "
            "calls for every column), and fresh memory for K",
        ),
    ]


def _differences(X: Any, Z: Any) -> None:
    """Compute |x - z| by compiled loops where numba is installed, otherwise by SciPy."""
    from scipy.spatial.distance import cdist

    from lssvm.kernels import compiled

    if compiled.cityblock(X, Z, pairs=10**9) is None:
        cdist(X, Z, "cityblock")


def _exponentials(n: int, m: int) -> Callable[[], None]:
    """Return a call of n m exponentials in blocks that fit into the cache's next level."""
    block = -np.random.default_rng(0).uniform(0.0, 5.0, size=2**17)
    out = np.empty_like(block)
    whole, rest = divmod(n * m, len(block))

    def work() -> None:
        for _ in range(whole):
            np.exp(block, out=out)
        np.exp(block[:rest], out=out[:rest])

    return work


def _positive(n: int) -> Any:
    X = np.random.default_rng(3).standard_normal((n, 5))
    squares = ((X[:, None, :3] - X[None, :, :3]) ** 2).sum(axis=2)
    return np.asfortranarray(np.exp(-0.1 * squares) + np.eye(n))


# --- whole fits and predictions of tables ---------------------------------------------------------

GROUPS = (
    ("LAPACK", "_core/lapack.py", ""),
    ("LAPACK", "numpy/linalg/", ""),
    ("LAPACK", "scipy/linalg/", ""),
    ("exponentials", "local/leaf.py", "exponential"),
    ("exponentials", "kernels/radial.py", "evaluate"),
    ("exponentials", "fitting/screening.py", "exact_paths"),
    ("compiled kernels", "kernels/compiled.py", "_laplacian_tile"),
    ("compiled kernels", "kernels/compiled.py", "_exponential_tile"),
    ("compiled kernels", "kernels/compiled.py", "_ordered_tile"),
    ("distances", "kernels/compiled.py", "_cityblock_tile"),
    ("distances", "kernels/radial.py", ""),
    ("distances", "", "cdist"),
    ("BLAS", "kernels/", ""),
    ("BLAS", "solvers/", ""),
    ("BLAS", "local/", ""),
    ("stack and calibration", "fitting/stacking.py", ""),
    ("stack and calibration", "scipy/optimize/", ""),
    ("stack and calibration", "lssvm/uncertainty/", ""),
    ("preparation", "lssvm/data/", ""),
    ("preparation", "lssvm/preparation/", ""),
    ("preparation", "pandas/", ""),
    ("preparation", "narwhals/", ""),
)
"""A group, a part of the file and of the name of the functions whose own seconds are in it."""

REST = "other NumPy and Python"


def group_of(file: str, function: str) -> str:
    """Return the first group that a function is in."""
    for group, place, name in GROUPS:
        if place in file.replace("\\", "/") and name in function:
            return group
    return REST


def shares(work: Callable[[], Any]) -> dict[str, float]:
    """Return the processor seconds of a call by group, the largest first."""
    profiler = cProfile.Profile(time.process_time)
    profiler.enable()
    work()
    profiler.disable()
    total: dict[str, float] = {}
    for (file, _, function), values in pstats.Stats(profiler).stats.items():  # type: ignore[attr-defined]
        known = group_of(file, function)
        parts = [(known, values[2])]
        if known == REST and file == "~":  # what is built in counts for its callers
            parts = [(group_of(at, name), by[2]) for (at, _, name), by in values[4].items()]
        for group, seconds in parts:
            total[group] = total.get(group, 0.0) + seconds
    return dict(sorted(total.items(), key=lambda one: -one[1]))


def table_frame(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Return a table of eight columns of numbers and two of categories, and a target."""
    import pandas as pd

    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.standard_normal((n, 8)), columns=[f"x{j}" for j in range(8)])
    frame["job"] = random.choice(["cook", "smith", "clerk", "nurse"], n)
    frame["town"] = random.choice([f"t{j}" for j in range(15)], n)
    y = np.sin(2.0 * frame["x0"]) + frame["x1"] * frame["x2"] + (frame["job"] == "cook")
    frame.loc[::20, "x3"] = np.nan
    return frame, (y + 0.3 * random.standard_normal(n)).to_numpy()


def whole_tables(scale: float) -> list[dict[str, Any]]:
    """Return the seconds by group of whole fits and predictions of tables."""
    from lssvm import LSSVMClassifier, LSSVMRegressor

    new = table_frame(int(20_000 * scale), 1)[0]
    done = []
    LSSVMRegressor(n_jobs=1, random_state=0).fit(*table_frame(int(2000 * scale), 2)).predict(new)
    for n, classes in ((800, True), (800, False), (6000, True), (6000, False)):
        frame, y = table_frame(max(int(n * scale), 100))
        model = (LSSVMClassifier if classes else LSSVMRegressor)(n_jobs=1, random_state=0)
        target = np.where(y > np.median(y), "high", "low") if classes else y
        what = f"{len(frame):,} rows of 10 columns, {'2 classes' if classes else 'numbers'}"
        for name, call in (
            ("fit", partial(model.fit, frame, target)),
            (f"prediction of {len(new):,} rows", partial(model.predict, new)),
        ):
            done.append({"path": name, "size": what, "seconds": shares(call)})
    return done


def table_lines(tables: list[dict[str, Any]]) -> list[str]:
    """Return the section of `page` on whole tables."""
    groups = [*dict.fromkeys(group for group, _, _ in GROUPS), REST]
    lines = [
        "",
        "## Whole fits and predictions of tables",
        "",
        "The default model on one thread, after a first fit that loads what is compiled. Shares of "
        "the processor seconds, by the functions that they are spent in: matrix products, "
        "ufuncs and what is built in count for the function that calls them. BLAS is the code of "
        "kernels, solvers and leaves that is little but products; distances of Euclidean kernels "
        "are products too; compiled kernels are distances, exponentials and sums in one loop. The "
        "profiler adds to the share of Python.",
        "",
        f"| path | table | seconds | {' | '.join(groups)} |",
        "| --- | --- | ---: |" + " ---: |" * len(groups),
    ]
    for one in tables:
        total = sum(one["seconds"].values())
        cells = [f"{one['seconds'].get(group, 0.0) / total:.0%}" for group in groups]
        lines.append(f"| {one['path']} | {one['size']} | {total:.2f} | {' | '.join(cells)} |")
    return lines


def measure(case: Case, repeats: int) -> dict[str, Any]:
    """Return processor seconds of a path and of its parts, taking turns, the smallest of each."""
    sides = [Part("", "", case.ours), *case.parts]
    least = [np.inf] * len(sides)
    for _ in range(repeats):
        for i, side in enumerate(sides):
            side.before()
            start = time.process_time()
            side.work()
            least[i] = min(least[i], side.times * (time.process_time() - start))
    bound = sum(least[1:])
    return {
        "path": case.name,
        "size": case.size,
        "ours_s": least[0],
        "bound_s": bound,
        "ratio": least[0] / bound,
        "parts": [
            {"kind": part.kind, "what": part.what, "seconds": seconds}
            for part, seconds in zip(case.parts, least[1:], strict=True)
        ],
        "beyond": case.beyond,
    }


def page(found: dict[str, Any]) -> str:
    """Return PROFILE.md."""
    machine, versions = found["machine"], found["versions"]
    lines = [
        "# What bounds the slowest paths",
        "",
        "Written by `python -m benchmarks.profile` from "
        "[`results/profile.json`](results/profile.json). Processor seconds of one thread, the "
        f"smallest of {found['repeats']} turns; the bound is the sum of the parts that cannot be "
        "left out, each called directly on arrays that are there already. On "
        f"{machine['cores']} cores ({machine['cpu']}), NumPy {versions['numpy']}, SciPy "
        f"{versions['scipy']}, Python {versions['python']}, code `{found['code']}`; "
        f"{found['load']:.1f} processes were running when it began.",
        "",
        "| path | size | ours | bound | ratio | bounded by |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for case in found["cases"]:
        shares: dict[str, float] = {}
        for part in case["parts"]:
            shares[part["kind"]] = shares.get(part["kind"], 0.0) + part["seconds"]
        words = ", ".join(
            f"{kind} {seconds / case['bound_s']:.0%}"
            for kind, seconds in sorted(shares.items(), key=lambda item: -item[1])
        )
        mark = "**" if case["ratio"] > LIMIT else ""
        lines.append(
            f"| {case['path']} | {case['size']} | {case['ours_s']:.3f} s | {case['bound_s']:.3f} s "
            f"| {mark}{case['ratio']:.2f}{mark} | {words} |"
        )
    lines += ["", "The parts of the bounds, and what a path does beyond them:", ""]
    for case in found["cases"]:
        parts = "; ".join(f"{p['what']} ({p['kind']}) {p['seconds']:.3f} s" for p in case["parts"])
        rest = case["ours_s"] - case["bound_s"]
        lines.append(
            f"- **{case['path']}**: {parts}. The other {rest:.3f} s: {case['beyond']}."
            if rest > 0
            else f"- **{case['path']}**: {parts}. Beyond them: {case['beyond']}."
        )
    over = [case["path"] for case in found["cases"] if case["ratio"] > LIMIT]
    lines += ["", f"Over {LIMIT:g} times the bound: {', '.join(over) if over else 'none'}."]
    return "\n".join([*lines, *table_lines(found["tables"]), ""])


def main() -> None:
    """Measure, and write the figures and the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="part of the rows; prints only")
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT / "src"))
    from threadpoolctl import threadpool_limits

    from benchmarks.evidence.machine import state

    load = os.getloadavg()[0]
    with threadpool_limits(1):
        done = [measure(case, asked.repeats) for case in cases(asked.scale)]
        tables = whole_tables(asked.scale)
    found = state() | {"repeats": asked.repeats, "cases": done}
    found |= {"tables": tables, "load": load}
    text = page(found)
    print(text)
    if asked.scale == 1.0:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
