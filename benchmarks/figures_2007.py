"""Draw figures 1 to 3 of [Jiao2007]: accuracy, support vectors and time of FSALS against epsilon.

python -m benchmarks.figures_2007 [--results FILE] [--out FILE]
"""

import argparse
from pathlib import Path
from typing import Any

from benchmarks.greedy2007 import EPSILONS, FIGURES, OUTPUT, read
from benchmarks.tables_greedy2007 import Results

PICTURE = Path("benchmarks/results/figures1to3_2007.png")
TITLES = {"ringnorm": "Ringnorm", "lan": "Satimage"}
FIELDS = {
    "accuracy": "test accuracy, %",
    "n_support": "support vectors",
    "seconds": "training time, CPU s",
}


def points(results: Results, name: str, field: str) -> list[tuple[float, float]]:
    """Return (epsilon, value) of FSALS on a set, ascending, as far as it was run."""
    power, scale = FIGURES[name], 100.0 if field == "accuracy" else 1.0
    methods = {epsilon: f"FSALS {epsilon}" for epsilon in EPSILONS}
    return [
        (epsilon, scale * results[name, method, power][field])
        for epsilon, method in methods.items()
        if (name, method, power) in results
    ]


def draw(results: Results) -> Any:
    """Return the figure: a column per set, a row per figure; the full LS-SVM as a line."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 7.5), layout="constrained")
    grid = figure.subplots(len(FIELDS), len(FIGURES), sharex=True, squeeze=False)
    for column, (name, power) in enumerate(FIGURES.items()):
        for row, (field, label) in enumerate(FIELDS.items()):
            axes = grid[row, column]
            found = points(results, name, field)
            axes.plot([e for e, _ in found], [v for _, v in found], marker="o", label="FSALS")
            full = results.get((name, "LS-SVM CG", power))
            if full is not None:
                value = (100.0 if field == "accuracy" else 1.0) * full[field]
                axes.axhline(value, color="C1", label="LS-SVM, all rows (CG)")
            axes.set_ylabel(label)
            axes.grid(alpha=0.3)
        grid[0, column].set_title(f"{TITLES[name]}, log2(gamma) = {power}")
        grid[0, column].legend(frameon=False)
        grid[-1, column].set_xlabel("epsilon")
    return figure


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=OUTPUT)
    parser.add_argument("--out", type=Path, default=PICTURE)
    options = parser.parse_args(arguments)
    draw(read(options.results)).savefig(options.out, dpi=120)


if __name__ == "__main__":
    main()
