"""Draw figures 3.2 and 3.11 of [Suykens2002]: two spirals, and a classifier that is pruned.

python -m benchmarks.figures_chapter3 [--out FOLDER]

The chapter prints no values and no data: two spirals of 190 points in [-40, 40], and 250 points of
each of two normal classes with one covariance, C and gamma given. What is checked is what its text
states: no training error and a smooth boundary; support vectors near to and far from the boundary.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm import LSSVC
from lssvm.reductions import Prune

Array = NDArray[Any]
SIZES = (500, 250, 50)
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


def pruned(by: str = "size") -> list[tuple[LSSVC, Array]]:
    """Return the models of figure 3.11 with their rows, 5 % of them removed at a time."""
    X, y = normals()
    found, rows = [], np.arange(len(y))
    while len(rows) >= SIZES[-1]:
        model = LSSVC(1.0, gamma=0.2, n_jobs=1).fit(X[rows], y[rows])
        if len(found) < len(SIZES) and len(rows) <= SIZES[len(found)]:
            found.append((model, rows))
        sign = 2.0 * y[rows] - 1.0
        alpha = model.dual_coef_[:, 0]
        value = np.abs(alpha) if by == "size" else sign * alpha
        gone = min(max(1, int(Prune().step * len(rows))), max(1, len(rows) - SIZES[len(found) % 3]))
        rows = rows[np.sort(np.argsort(value, kind="stable")[gone:])]
    return found


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


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    draw_spirals().savefig(options.out / "figure3.2_2002.png", dpi=100)
    draw_pruned().savefig(options.out / "figure3.11_2002.png", dpi=100)


if __name__ == "__main__":
    main()
