"""The fixed-size model on a GPU: against bare products, against the clock, against scikit-learn.

Needs a CUDA device and torch; beside them NumPy, SciPy and scikit-learn are enough, and the package
need not be installed::

    PYTHONPATH=src python3 -m benchmarks.gpu --out gpu.json                  # all cases
    PYTHONPATH=src python3 -m benchmarks.gpu moments tuned --rows 1000000    # two, on fewer rows
    python -m benchmarks.gpu compact --data folder --out covertype.npz       # where pandas is
    PYTHONPATH=src python3 -m benchmarks.gpu covertype --data covertype.npz

``--device cpu`` runs the same on the CPU, to try the script.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn dispatches with it only

import numpy as np
import torch
from sklearn import config_context
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline

from lssvm import FixedSizeLSSVC, FixedSizeLSSVR
from lssvm._core.arrays import Device, get_namespace, to_numpy
from lssvm.backends import device as device_rows
from lssvm.backends.device import DeviceBlocks, accumulate_on_device, block_size
from lssvm.backends.rows import Rows
from lssvm.codes import Coding
from lssvm.data.folds import Folds
from lssvm.kernels import RBF
from lssvm.solvers.moments import make_cells
from lssvm.tasks import Misclassification
from lssvm.tuning import PathSearch
from lssvm.tuning.fixed_size import FixedSizeObjective
from lssvm.tuning.searches import ListedPathSearch

FEATURES = 28
TEST_ROWS = 50_000


class Bench:
    """The device of a run, the clock on it, and rows to work on."""

    data_file = "covertype.npz"
    sizes = (40_000, 5_000)  # prototypes of the last fit on Covertype, and while it is tuned
    limit = 50.0  # seconds for the scales of its columns
    narrower = 4.0  # by which gamma grows with the number of prototypes

    def __init__(self, device: str, rows: int) -> None:
        self.device, self.rows = torch.device(device), rows
        self.engine = Device(get_namespace(torch.empty(0)), self.device)

    def wait(self) -> None:
        """Wait until the device has done its work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def seconds(self, work: Callable[[], Any]) -> float:
        """Return the time of some work."""
        self.wait()
        start = time.perf_counter()
        work()
        self.wait()
        return time.perf_counter() - start

    def best_of(self, repeats: int, *sides: Callable[[], Any]) -> list[float]:
        """Return the smallest time of each side, the sides taking turns."""
        times: list[list[float]] = [[] for _ in sides]
        for _ in range(repeats):
            for side, kept in zip(sides, times, strict=True):
                kept.append(self.seconds(side))
        return [min(kept) for kept in times]

    def data(self, n: int, d: int = FEATURES) -> tuple[Any, Any]:
        """Return rows and a noisy binary target on the device."""
        torch.manual_seed(0)
        X = torch.randn(n, d, dtype=torch.float64, device=self.device)
        f = torch.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3]
        noise = torch.randn(n, dtype=torch.float64, device=self.device)
        return X, f + 0.5 * noise


def moments_case(bench: Bench) -> dict[str, Any]:
    """Moments of ten folds against the bare products of the same blocks."""
    n, m = bench.rows, 1000
    X, y = bench.data(n)
    Z = to_numpy(X[:m])
    order = np.random.default_rng(1).permutation(n).astype(np.int32)
    layout = make_cells(Folds([np.sort(part) for part in np.array_split(order, 10)]), n)
    rows = DeviceBlocks(bench.engine, X, {"Y": to_numpy(y)[:, None]})
    kernel, block = RBF(1.0 / FEATURES), block_size(bench.engine, m)
    _ = rows.kept

    def ours() -> None:
        accumulate_on_device(kernel, rows, Z, layout.order, layout.cells, n_targets=1)

    K, G = torch.rand(block, m, dtype=torch.float64, device=bench.device), bench.engine.zeros(m, m)

    def bare() -> None:
        done = 0
        while done < n:
            part = K[: min(block, n - done)]
            G.addmm_(part.T, part)
            done += block

    mine, products = bench.best_of(3, ours, bare)
    return {
        "rows": n,
        "ours": mine,
        "bare_gemm": products,
        "ratio": mine / products,
        "gemm_tflops": 2.0 * n * m * m / products / 1e12,
        "wanted": "ratio <= 1.6",
    }


def tuned_case(bench: Bench) -> dict[str, Any]:
    """Tune with 10 folds, 60 values of C and 10 of gamma; rows on the host, and on the device."""
    X, f = bench.data(bench.rows + 100_000)
    y = (f > 0).to(torch.int64)
    host, labels = to_numpy(X), to_numpy(y)
    n = bench.rows
    gammas = tuple(np.geomspace(0.02, 2.0, 10) / FEATURES)
    found: dict[str, Any] = {"rows": n, "n_C": 60, "n_gamma": 10, "wanted": "< 30 s"}

    def fit(name: str, search: Any, A: Any, b: Any) -> None:
        model = FixedSizeLSSVC(
            1000, device=bench.device, selection="renyi", search=search, random_state=0
        )
        found[f"{name}_s"] = bench.seconds(lambda: model.fit(A[:n], b[:n]))
        found[f"{name}_accuracy"] = float(model.score(A[n:], b[n:]))
        found[f"{name}_chosen"] = [float(model.C_), float(model.gamma_)]
        found[f"{name}_gammas"] = len(set(model.cv_results_["param_gamma"].tolist()))

    listed = ListedPathSearch(n_C=60, gammas=gammas)
    fit("host_listed", listed, host, labels)
    fit("device_listed", listed, X, y)
    reg = FixedSizeLSSVR(
        1000, device=bench.device, selection="renyi", search=listed, random_state=0
    )
    target = to_numpy(f)
    found["regression_s"] = bench.seconds(lambda: reg.fit(host[:n], target[:n]))
    return found


def many_case(bench: Bench) -> dict[str, Any]:
    """Fit 10,000 prototypes at one (C, gamma)."""
    n, m = bench.rows, 10_000 if bench.device.type == "cuda" else 600
    X, f = bench.data(n + 100_000)
    y = (f > 0).to(torch.int64)
    host, labels = to_numpy(X), to_numpy(y)
    settings: dict[str, Any] = {"C": 1.0, "gamma": 0.3 / FEATURES, "random_state": 0}
    model = FixedSizeLSSVC(m, device=bench.device, selection="random", **settings)
    seconds = bench.seconds(lambda: model.fit(host[:n], labels[:n]))
    scored = bench.seconds(lambda: model.score(host[n:], labels[n:]))
    return {
        "rows": n,
        "prototypes": m,
        "seconds": seconds,
        "accuracy": float(model.score(host[n:], labels[n:])),
        "predict_100000_s": scored,
        "wanted": "< 60 s",
    }


def agree_case(bench: Bench) -> dict[str, Any]:
    """Compare coefficients and chosen parameters of NumPy and the device."""
    n = min(bench.rows, 20_000)
    X, f = bench.data(n)
    host, target = to_numpy(X), to_numpy(f)
    labels = (target > 0).astype(int)
    found: dict[str, Any] = {"rows": n, "wanted": "<= 1e-8, same parameters"}
    try:
        import cupy
    except ImportError:
        cupy = None
    for name, kind, y in (
        ("classifier", FixedSizeLSSVC, labels),
        ("regressor", FixedSizeLSSVR, target),
    ):
        ours = kind(300, random_state=0).fit(host, y)
        for where, A, b in (
            ("host", host, y),
            ("device", X, torch.asarray(y, device=bench.device)),
            *(() if cupy is None else (("cupy", cupy.asarray(host), cupy.asarray(y)),)),
        ):
            place = None if where == "cupy" else bench.device
            theirs = kind(300, device=place, random_state=0).fit(A, b)
            coef = to_numpy(theirs.dual_coef_)
            found[f"{name}_{where}"] = {
                "coefficients": float(np.abs(coef - ours.dual_coef_).max())
                / float(np.abs(ours.dual_coef_).max()),
                "same_parameters": bool(
                    np.array_equal(ours.C_, theirs.C_) and ours.gamma_ == theirs.gamma_
                ),
                "C": float(ours.C_),
                "gamma": float(ours.gamma_),
            }
    return found


def stream_case(bench: Bench) -> dict[str, Any]:
    """Compare rows that stay on the device with rows that are copied with every pass."""
    n, m = bench.rows, 1000
    X, f = bench.data(n)
    host, y = to_numpy(X), to_numpy(f)[:, None]
    del X
    order = np.random.default_rng(1).permutation(n).astype(np.int32)
    layout = make_cells(Folds([np.sort(part) for part in np.array_split(order, 10)]), n)
    kernel, Z = RBF(1.0 / FEATURES), host[:m]

    def run(rows: DeviceBlocks) -> Callable[[], Any]:
        return lambda: accumulate_on_device(
            kernel, rows, Z, layout.order, layout.cells, n_targets=1
        )

    kept = DeviceBlocks(bench.engine, host, {"Y": y})
    _ = kept.kept
    share, device_rows._KEPT = device_rows._KEPT, 0.0
    copied = DeviceBlocks(bench.engine, host, {"Y": y})
    assert copied.kept is None
    device_rows._KEPT = share
    stays, moves = bench.best_of(2, run(kept), run(copied))
    transfer = bench.seconds(lambda: list(copied.blocks(None, [slice(0, n)], ["Y"])))
    return {
        "rows": n,
        "kept_s": stays,
        "copied_s": moves,
        "copies_alone_s": transfer,
        "gb": host.nbytes / 1e9,
        "hidden": "copied_s is near the larger of kept_s and copies_alone_s where copies overlap",
    }


def covertype(path: str) -> tuple[Any, Any]:
    """Return features, columns scaled to [0, 1], and class 2 against the rest."""
    found = np.load(path)
    X = np.zeros((len(found["label"]), 54))
    low, high = found["numeric"].min(axis=0), found["numeric"].max(axis=0)
    X[:, :10] = (found["numeric"] - low) / (high - low).astype(float)
    everyone = np.arange(len(X))
    X[everyone, 10 + found["area"]] = 1.0
    X[everyone, 14 + found["soil"]] = 1.0
    return X, (found["label"] == 2).astype(np.int64)


def compact(data: str, out: str) -> None:
    """Write Covertype as a small file of NumPy arrays."""
    import pandas as pd

    table = pd.read_parquet(os.path.join(data, "ftc.parquet"))
    X, y = table.iloc[:, :-1].to_numpy(), table.iloc[:, -1].to_numpy()
    np.savez_compressed(
        out,
        numeric=X[:, :10].astype(np.int16),
        area=X[:, 10:14].argmax(axis=1).astype(np.uint8),
        soil=X[:, 14:].argmax(axis=1).astype(np.uint8),
        label=y.astype(np.uint8),
    )


def relevant_scales(bench: Bench, X: Any, y: Any, m: int, limit: float) -> tuple[Any, list[Any]]:
    """Choose gamma, one for each of twelve groups of columns, on a holdout of the training rows.

    Coordinate by coordinate with m random prototypes: numeric columns, the areas, the soils.
    """
    rng, began = np.random.default_rng(1), time.perf_counter()
    n = len(X)
    held = np.sort(rng.choice(n, n // 10, replace=False))
    Z = X[np.setdiff1d(rng.choice(n, m, replace=False), held)]
    Y = np.where(y[:, None] == 1, 1.0, -1.0)
    rows = Rows(X, Y, labels=y.astype(np.int16), device=bench.engine)
    groups = [np.array([j]) for j in range(10)] + [np.arange(10, 14), np.arange(14, 54)]
    C, log = np.geomspace(3.0, 3000.0, 4), []

    def decide(raw: Any) -> Any:
        return (raw[:, 0] > 0).to(torch.int64)

    def loss(gamma: Any) -> float:
        objective = FixedSizeObjective(
            lambda _: RBF(gamma), rows, Z, Folds([held]), Misclassification(decide)
        )
        found = objective.at(None).losses(C)
        log.append([float(-found.mean.min()), time.perf_counter() - began])
        return float(found.mean.min())

    gamma = np.full(54, 4.0)
    best, factor = loss(gamma), 4.0
    while time.perf_counter() - began < limit and factor > 1.3:
        improved = False
        for group in [*groups, np.arange(54)]:
            for step in (factor, 1.0 / factor):
                if time.perf_counter() - began > limit:
                    break
                tried = gamma.copy()
                tried[group] *= step
                value = loss(tried)
                if value < best:
                    gamma, best, improved = tried, value, True
                    break
        factor = factor if improved else np.sqrt(factor)
    return gamma, log


def covertype_case(bench: Bench) -> dict[str, Any]:
    """Tune and fit Covertype, class 2 against the rest, beside scikit-learn on the same device."""
    X, y = covertype(bench.data_file)
    order = np.random.default_rng(0).permutation(len(X))
    test, train = order[:TEST_ROWS], order[TEST_ROWS : TEST_ROWS + bench.rows]
    found: dict[str, Any] = {"rows": len(train), "wanted": ">= 0.945 within 180 s"}
    size, few = bench.sizes
    began = time.perf_counter()
    gamma, log = relevant_scales(bench, X[train], y[train], few, bench.limit)
    found["tuning_s"] = time.perf_counter() - began
    found["gamma"] = [float(f"{value:.4g}") for value in gamma]
    found["holdout_accuracy"] = log[-1][0], max(entry[0] for entry in log), len(log)
    model = FixedSizeLSSVC(
        size,
        gamma=gamma * bench.narrower,
        cv=0.1,
        search=PathSearch(n_C=8),
        selection="random",
        multiclass=Coding(calibration=None),
        device=bench.device,
        random_state=0,
    )
    model.fit(X[train], y[train])
    bench.wait()
    found["total_s"] = time.perf_counter() - began
    found["prototypes"] = size
    found["C"], found["cv_accuracy"] = float(model.C_), float(model.best_score_)
    found["predict_s"] = bench.seconds(lambda: model.predict(X[test]))
    found["accuracy"] = float(model.score(X[test], y[test]))
    model = None
    bench.engine.release()
    found["scikit_learn"] = []
    for components in (few // 5, few):
        try:
            found["scikit_learn"].append(peer(bench, X, y, train, test, components))
        except torch.OutOfMemoryError:
            found["scikit_learn"].append({"components": components, "error": "out of memory"})
            break
        if found["scikit_learn"][-1]["total_s"] > bench.limit:
            break
    return found


def peer(bench: Bench, X: Any, y: Any, train: Any, test: Any, m: int) -> dict[str, Any]:
    """Run scikit-learn's Nystroem and RidgeClassifierCV on torch, gamma by a holdout."""
    A, b = (torch.asarray(array, device=bench.device) for array in (X, y))
    part, held = (torch.asarray(rows, device=bench.device) for rows in (train, test))
    cut = len(train) // 10
    best: tuple[float, float] = (-1.0, 0.0)

    def fit(gamma: float, rows: Any) -> Any:
        steps = (
            Nystroem(gamma=gamma, n_components=m, random_state=0),
            RidgeClassifierCV(alphas=np.geomspace(1e-4, 1e2, 7)),
        )
        return make_pipeline(*steps).fit(A[rows], b[rows])

    began = time.perf_counter()
    with config_context(array_api_dispatch=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for gamma in (1.0, 4.0, 16.0):
            model = fit(gamma, part[cut:])
            best = max(best, (float(model.score(A[part[:cut]], b[part[:cut]])), gamma))
            del model
        model = fit(best[1], part)
        bench.wait()
        seconds = time.perf_counter() - began
        accuracy = float(model.score(A[held], b[held]))
    return {"components": m, "total_s": seconds, "gamma": best[1], "accuracy": accuracy}


def as_text(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    lines = [f"# The fixed-size model on a GPU\n\n{results['device']}, torch {results['torch']}.\n"]
    lines += ["| what | measured | wanted |", "| --- | --- | --- |"]

    def row(what: str, measured: str, wanted: str = "") -> None:
        lines.append(f"| {what} | {measured} | {wanted} |")

    if "moments" in results:
        r = results["moments"]
        measured = (
            f"{r['ours']:.2f} s, {r['ratio']:.2f} times bare products ({r['bare_gemm']:.2f} s)"
        )
        row(f"moments of ten folds, {r['rows']:,} rows, 1,000 prototypes", measured, "<= 1.6 times")
    if "tuned" in results:
        r = results["tuned"]
        what = f"tuned, {r['rows']:,} rows, 10 folds, {r['n_C']} C, {r['n_gamma']} gamma"
        row(f"{what}: classifier, rows on the host", f"{r['host_listed_s']:.1f} s", r["wanted"])
        row("the same, rows on the GPU", f"{r['device_listed_s']:.1f} s", r["wanted"])
        row("the same, regressor, rows on the host", f"{r['regression_s']:.1f} s", r["wanted"])
    if "many" in results:
        r = results["many"]
        what = f"{r['prototypes']:,} prototypes, {r['rows']:,} rows, one (C, gamma)"
        row(what, f"{r['seconds']:.1f} s", r["wanted"])
    for name, r in results.get("agree", {}).items():
        if isinstance(r, dict):
            same = "same" if r["same_parameters"] else "OTHER"
            measured = f"coefficients differ by {r['coefficients']:.0e}, {same} C and gamma"
            row(f"{name.replace('_', ', ')} against NumPy", measured, "1e-8, same")
    if "stream" in results:
        r = results["stream"]
        measured = f"{r['copied_s']:.2f} s; {r['kept_s']:.2f} s where they stay, copies alone "
        what = f"one pass, {r['gb']:.1f} GB of rows copied in blocks"
        row(what, measured + f"{r['copies_alone_s']:.2f} s")
    if "covertype" in results:
        r = results["covertype"]
        what = f"Covertype, {r['rows']:,} rows, tuned, {r['prototypes']:,} prototypes"
        measured = f"{100 * r['accuracy']:.2f} % in {r['total_s']:.0f} s"
        row(what, measured, ">= 94.5 % in 180 s")
        for peer in r["scikit_learn"]:
            what = (
                f"scikit-learn's Nystroem and RidgeClassifierCV, {peer['components']:,} components"
            )
            measured = peer.get("error", "")
            if "accuracy" in peer:
                measured = f"{100 * peer['accuracy']:.2f} % in {peer['total_s']:.0f} s"
            row(what, measured)
    return "\n".join(lines) + "\n"


CASES: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "moments": moments_case,
    "tuned": tuned_case,
    "many": many_case,
    "agree": agree_case,
    "stream": stream_case,
    "covertype": covertype_case,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = (*CASES, "compact")
    parser.add_argument(
        "cases", nargs="*", default=[c for c in CASES if c != "covertype"], help=f"any of {names}"
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--data", default=None, help="folder (compact) or file (covertype)")
    parser.add_argument("--out", default=None, help="file for the results")
    parser.add_argument("--sizes", type=int, nargs=2, default=None, help="of covertype")
    parser.add_argument("--limit", type=float, default=50.0, help="seconds of its tuning")
    parser.add_argument("--narrower", type=float, default=4.0, help="factor of its last gamma")
    options = parser.parse_args()
    if options.cases == ["compact"]:
        compact(options.data, options.out)
        return
    bench = Bench(options.device, options.rows)
    bench.data_file = options.data or bench.data_file
    if options.sizes is not None:
        bench.sizes = tuple(options.sizes)
    bench.limit, bench.narrower = options.limit, options.narrower
    results: dict[str, Any] = {
        "machine": platform.platform(),
        "device": torch.cuda.get_device_name() if bench.device.type == "cuda" else "cpu",
        "torch": torch.__version__,
    }
    for name in options.cases:
        results[name] = CASES[name](bench)
        if bench.device.type == "cuda":
            results[name]["peak_gb"] = torch.cuda.max_memory_allocated() / 1e9
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        print(name, json.dumps(results[name]), flush=True)
        if options.out is not None:
            with open(options.out, "w", encoding="utf-8") as handle:
                json.dump(results, handle, indent=2)
            with open(os.path.splitext(options.out)[0] + ".md", "w", encoding="utf-8") as handle:
                handle.write(as_text(results))


if __name__ == "__main__":
    main()
