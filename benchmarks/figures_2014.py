"""Draw figures 1 to 4 of [Mall2014].

    python -m benchmarks.figures_2014 --data DIR [--results FILE] [--out DIR]

Figures 1 and 2, models of Ripley's set and of Boston housing: of ten randomisations each method has
the one with the smallest test error, as printed (a picture, not a measurement). Figures 3 and 4,
Adult and Forest cover: errors, processor seconds and support vectors of all randomisations in the
records. The print's other set of figure 4, Year, is not at hand.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sparse2014 import OUTPUT, Study, load, measure, split
from benchmarks.study import records

SHOWN = ("PFS-LSSVM", "SPFS-LSSVM", "SSD-LSSVM")
BOXES = ("PFS-LSSVM", "SV_L0-norm", "SPFS-LSSVM", "SSD-LSSVM")
FIELDS = {
    "error": "test error",
    "processor_seconds": "CPU seconds; gamma is tuned once, in PFS",
    "n_support": "support vectors",
}
BOX_SETS = {"adu": ("Adult", 3), "ftc": ("Forest cover", 4)}
Results = dict[records.Key, dict[str, Any]]


def best_split(results: Results, name: str, method: str) -> int:
    """Return the randomisation with the smallest test error of a method."""
    errors = {r: line["error"] for (s, r, m), line in results.items() if (s, m) == (name, method)}
    return min(errors, key=lambda randomisation: (errors[randomisation], randomisation))


def best_models(
    folder: Path, results: Results, name: str
) -> dict[str, tuple[Any, Any, Any, float]]:
    """Fit each method on its best split: the model, the training rows and targets, the error."""
    X, y, attribute = load(folder, name)
    found = {}
    for method in SHOWN:
        number = best_split(results, name, method)
        X_train, y_train, X_test, y_test = split(name, X, y, attribute, number)
        study = Study(name, X_train, y_train, number)
        made: list[Any] = []

        def train(study: Study = study, method: str = method, made: list[Any] = made) -> Any:
            made.append(study.methods()[method]())
            return made[-1]

        error = measure(train, study.spec, X_test, y_test)["error"]
        found[method] = made[0], X_train, y_train, error
    return found


def titles(method: str, model: Any, error: float) -> str:
    """Return what stands above a panel."""
    return f"{method}\nerror {error:.3f}, {len(model.support_)} SV"


def draw_ripley(models: dict[str, tuple[Any, Any, Any, float]]) -> Any:
    """Return figure 1: the rows, the boundary and the support vectors."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 3.8), layout="constrained")
    for axes, (method, (model, X, y, error)) in zip(
        figure.subplots(1, len(models), squeeze=False)[0], models.items(), strict=True
    ):
        low, high = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
        first, second = np.meshgrid(
            *(np.linspace(a, b, 120) for a, b in zip(low, high, strict=True))
        )
        values = model.decision_function(np.column_stack([first.ravel(), second.ravel()]))
        axes.contour(first, second, values.reshape(first.shape), levels=[0.0], colors="k")
        for label, colour in zip(np.unique(y), ("C0", "C1"), strict=True):
            axes.plot(*X[y == label].T, ".", color=colour, alpha=0.6)
        chosen = model.support_vectors_
        axes.plot(*chosen.T, "o", mfc="none", mec="k", label="support vectors")
        axes.set_title(titles(method, model, error), fontsize=10)
        axes.legend(frameon=False, fontsize=8)
    return figure


def draw_boston(models: dict[str, tuple[Any, Any, Any, float]]) -> Any:
    """Return figure 2: predictions against the first principal component, and the support."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 3.8), layout="constrained")
    for axes, (method, (model, X, _, error)) in zip(
        figure.subplots(1, len(models), sharey=True, squeeze=False)[0], models.items(), strict=True
    ):
        direction = np.linalg.eigh(X.T @ X)[1][:, -1]
        chosen = model.support_vectors_
        axes.plot(X @ direction, model.predict(X), ".", alpha=0.6, label="training rows")
        axes.plot(
            *(chosen @ direction, model.predict(chosen)), "o", mfc="none", mec="k", label="support"
        )
        axes.set_title(titles(method, model, error), fontsize=10)
        axes.set_xlabel("first principal component")
    axes.legend(frameon=False, fontsize=8)
    figure.axes[0].set_ylabel("prediction, standardised")
    return figure


def draw_boxes(results: Results, name: str) -> Any:
    """Return figure 3 or 4: errors, seconds and support vectors of the randomisations."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 3.8), layout="constrained")
    for axes, (field, label) in zip(figure.subplots(1, len(FIELDS)), FIELDS.items(), strict=True):
        values = [
            [line[field] for (s, _, m), line in results.items() if (s, m) == (name, method)]
            for method in BOXES
        ]
        axes.boxplot(values)
        labels = [
            f"{m.removesuffix('-LSSVM')}\n({len(v)})" for m, v in zip(BOXES, values, strict=True)
        ]
        axes.set_xticks(range(1, len(BOXES) + 1), labels, fontsize=8)
        axes.set_ylabel(label)
    figure.suptitle(f"{BOX_SETS[name][0]} (runs)")
    return figure


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of <name>.parquet files, for 1 and 2")
    parser.add_argument("--results", type=Path, default=OUTPUT)
    parser.add_argument("--out", type=Path, default=OUTPUT.parent, help="folder of the pictures")
    options = parser.parse_args(arguments)
    results = records.read(options.results)
    figures = {number: draw_boxes(results, name) for name, (_, number) in BOX_SETS.items()}
    if options.data is not None:
        figures[1] = draw_ripley(best_models(options.data, results, "ripley"))
        figures[2] = draw_boston(best_models(options.data, results, "bho"))
    for number, figure in figures.items():
        figure.savefig(options.out / f"figure{number}_2014.png", dpi=100)


if __name__ == "__main__":
    main()
