"""Draw figures 3.1 to 3.3 and 3.9 to 3.11 of [Suykens2002]: spirals, Ripley's set, pruned models.

python -m benchmarks.figures_chapter3 [--data FOLDER] [--out FOLDER]

The chapter prints no values, and data only for Ripley's set (`--data`: the folder of
ripley.parquet): two spirals of 190 points in [-40, 40], 250 points of each of two normal classes
with one covariance, 500 points of sinc with and without noise, C and gamma given. What is checked
is what its text states: no training error and a smooth boundary; support vectors near to and far
from the boundary; all rows of an LS-SVM are support vectors, not those of an SVM; without noise
more of them can be pruned.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from lssvm import LSSVC, LSSVR
from lssvm.reductions import Prune

Array = NDArray[Any]
SIZES = (500, 250, 50)
NOISES = (0.0, 0.1)
RESULTS = Path("benchmarks/results")


def spirals(n: int = 190) -> tuple[Array, Array]:
    """Return n points of each of two spirals of three turns, and their classes."""
    t = np.linspace(0.0, 6.0 * np.pi, n)
    arm = (2.0 + 2.0 * t)[:, None] * np.column_stack([np.cos(t), np.sin(t)])
    return np.vstack([arm, -arm]), np.repeat([0, 1], n)


def fit_spirals() -> tuple[LSSVC, Array, Array]:
    """Return the classifier of figure 3.2 with its rows."""
    X, y = spirals()
    return LSSVC(100.0, gamma=0.1, n_jobs=1).fit(X, y), X, y


def normals(n: int = 250, seed: int = 0) -> tuple[Array, Array]:
    """Return n points of each of two normal classes with the same covariance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, 2)) + np.repeat([[-1.5, -1.5], [1.5, 1.5]], n, axis=0)
    return X, np.repeat([0, 1], n)


def prune(fit: Callable[[Array], Any], sign: Array | None = None) -> list[tuple[Any, Array]]:
    """Return models of 500, 250 and 50 rows with these rows, 5 % of them removed at a time."""
    found: list[tuple[Any, Array]] = []
    rows = np.arange(SIZES[0])
    model = fit(rows)
    for size in SIZES:
        while len(rows) > size:
            value = model.dual_coef_[:, 0] * (1.0 if sign is None else sign[rows])
            gone = min(max(1, int(Prune().step * len(rows))), len(rows) - size)
            order = np.argsort(np.abs(value) if sign is None else value, kind="stable")
            rows = rows[np.sort(order[gone:])]
            model = fit(rows)
        found.append((model, rows))
    return found


def pruned(by: str = "size") -> list[tuple[LSSVC, Array]]:
    """Return the models of figure 3.11 with their rows."""
    X, y = normals()
    sign = None if by == "size" else 2.0 * y - 1.0
    return prune(lambda rows: LSSVC(1.0, gamma=0.2, n_jobs=1).fit(X[rows], y[rows]), sign)


def sinc(noise: float) -> tuple[Array, Array]:
    """Return 500 rows of sinc on [-10, 10], with normal noise of this deviation."""
    x = np.linspace(-10.0, 10.0, 500)
    return x[:, None], np.sinc(x / np.pi) + noise * np.random.default_rng(0).normal(size=500)


def pruned_sinc(noise: float) -> list[tuple[LSSVR, Array]]:
    """Return the models of figure 3.9 (no noise) or 3.10 with their rows."""
    X, y = sinc(noise)
    return prune(lambda rows: LSSVR(100.0, gamma=0.5, n_jobs=1).fit(X[rows], y[rows]))


def sinc_error(model: LSSVR) -> float:
    """Return the root mean squared distance of a model from sinc."""
    X, y = sinc(0.0)
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


def fit_ripley(X: Array, y: Array) -> tuple[LSSVC, SVC]:
    """Return the tuned classifier of figure 3.3, and an SVM of the same kernel for figure 3.1."""
    model = LSSVC("cv", gamma="cv", n_jobs=1, random_state=0).fit(X, y)
    return model, SVC(C=1.0, gamma=float(model.gamma_)).fit(X, y)


def draw_spirals() -> Any:
    """Return figure 3.2."""
    from matplotlib.figure import Figure

    model, X, y = fit_spirals()
    axis = np.linspace(-45.0, 45.0, 300)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    figure = Figure(figsize=(4.6, 4.4), layout="constrained")
    axes = figure.subplots()
    sides = model.predict(grid).reshape(300, 300)
    axes.contourf(axis, axis, sides, levels=[-0.5, 0.5, 1.5], colors=["0.35", "0.95"])
    for c, mark in ((0, "o"), (1, "*")):
        axes.plot(*X[y == c].T, mark, color=f"C{c}", markersize=3)
    axes.set(title="Two spirals: no training error", aspect="equal")
    return figure


def draw_pruned() -> Any:
    """Return figure 3.11: support vectors and sorted support values at three sizes."""
    from matplotlib.figure import Figure

    X, y = normals()
    axis = np.linspace(-5.0, 5.0, 120)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    figure = Figure(figsize=(9.0, 5.4), layout="constrained")
    panels = figure.subplots(2, len(SIZES))
    for column, (model, rows) in enumerate(pruned()):
        top, bottom = panels[:, column]
        for c in (0, 1):
            top.plot(*X[rows[y[rows] == c]].T, "o", color=f"C{c}", markersize=3)
        outputs = model.decision_function(grid).reshape(120, 120)
        top.contour(axis, axis, outputs, levels=[0.0], colors="k")
        top.set_title(f"{len(rows)} support vectors")
        bottom.plot(np.sort(np.abs(model.dual_coef_[:, 0]))[::-1])
        bottom.set(xlabel="k, sorted", ylabel="|alpha|")
    return figure


def draw_sinc() -> Any:
    """Return figures 3.9 and 3.10: the pruned models and their sorted support values."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 9.0), layout="constrained")
    panels = figure.subplots(4, len(SIZES))
    for part, noise in enumerate(NOISES):
        X, y = sinc(noise)
        for column, (model, rows) in enumerate(pruned_sinc(noise)):
            top, bottom = panels[2 * part : 2 * part + 2, column]
            top.plot(X[:, 0], y, ".", color="0.7", markersize=2)
            top.plot(X[rows, 0], y[rows], "o", color="C1", markersize=3)
            top.plot(X[:, 0], model.predict(X), "k")
            top.set_title(f"noise {noise:g}: {len(rows)} support vectors")
            bottom.plot(np.sort(np.abs(model.dual_coef_[:, 0]))[::-1])
            bottom.set(xlabel="k, sorted", ylabel="|alpha|")
    return figure


def draw_ripley(X: Array, y: Array) -> Any:
    """Return figures 3.3 and 3.1: boundary, support values, sorted support values of both."""
    from matplotlib.figure import Figure

    model, machine = fit_ripley(X, y)
    low, high = X.min(axis=0) - 0.1, X.max(axis=0) + 0.1
    axes = [np.linspace(low[i], high[i], 120) for i in range(2)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    outputs = model.decision_function(grid).reshape(120, 120)
    alpha = np.abs(model.dual_coef_[:, 0])
    figure = Figure(figsize=(10.0, 3.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for c, mark in ((0, "o"), (1, "*")):
        left.plot(*X[y == c].T, mark, color=f"C{c}", markersize=3)
    left.contour(*axes, outputs, levels=[0.0], colors="k")
    left.set_title("Ripley's set: boundary")
    middle.scatter(*X.T, s=60.0 * alpha / alpha.max(), color="k")
    middle.set_title("size: |alpha|")
    other = np.zeros(len(y))
    other[machine.support_] = np.abs(machine.dual_coef_[0])
    for name, values in (("LS-SVM", alpha), ("SVM", other)):
        right.plot(np.sort(values / values.max())[::-1], label=name)
    right.set(xlabel="k, sorted", ylabel="|alpha| over the largest")
    right.legend()
    return figure


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of ripley.parquet")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    draw_spirals().savefig(options.out / "figure3.2_2002.png", dpi=100)
    draw_pruned().savefig(options.out / "figure3.11_2002.png", dpi=100)
    draw_sinc().savefig(options.out / "figures3.9and3.10_2002.png", dpi=80)
    for noise in NOISES:
        errors = [f"{sinc_error(model):.4f}" for model, _ in pruned_sinc(noise)]
        print(f"sinc, noise {noise}, error with {SIZES} support vectors: {', '.join(errors)}")
    if options.data is not None:
        import pandas as pd

        rows = pd.read_parquet(options.data / "ripley.parquet").query("split == 'train'")
        X, y = rows[["xs", "ys"]].to_numpy(), rows["target"].to_numpy()
        draw_ripley(X, y).savefig(options.out / "figures3.1and3.3_2002.png", dpi=80)
        model, machine = fit_ripley(X, y)
        print(f"Ripley: {len(model.support_)} of {len(y)} and {len(machine.support_)} rows kept")


if __name__ == "__main__":
    main()
