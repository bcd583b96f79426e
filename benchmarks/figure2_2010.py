"""Draw figure 2 of [DeBrabanter2010]: test error against the number of prototypes.

python -m benchmarks.figure2_2010 [--results FILE] [--out FILE]
"""

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fixed_size2010 import DEFAULT_OUTPUT
from benchmarks.study import records
from benchmarks.study.methods_2010 import FIGURE_2_SETS
from benchmarks.tables_chapter3 import Results, values

TITLES = {"spa": "Spambase", "bho": "Boston housing"}


def curve(results: Results, name: str) -> list[tuple[int, NDArray[np.float64]]]:
    """Return the number of prototypes with the test errors of all randomisations, ascending."""
    methods = {m for (s, _, m) in results if s == name and re.fullmatch(r".*, m=\d+", m)}
    sizes = sorted(int(method.rsplit("=", 1)[1]) for method in methods)
    return [(m, errors(results, name, f"RBF FS-LSSVM, m={m}")) for m in sizes]


def errors(results: Results, name: str, method: str) -> NDArray[np.float64]:
    """Return the test errors: per cent of misclassified rows, or mean squared error."""
    if name == "spa":
        return 100.0 - values(results, name, method)
    return values(results, name, method, "L2")


def draw(results: Results) -> Any:
    """Return the figure: one panel per set, mean and standard deviation, and the dual model."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(FIGURE_2_SETS)), FIGURE_2_SETS, strict=True):
        points = curve(results, name)
        sizes = [m for m, _ in points]
        means = [float(part.mean()) for _, part in points]
        spreads = [float(part.std(ddof=1)) if len(part) > 1 else 0.0 for _, part in points]
        axes.errorbar(sizes, means, spreads, marker="o", capsize=3, label="fixed-size LS-SVM")
        whole = errors(results, name, "RBF LS-SVM")
        if len(whole):
            axes.axhline(float(whole.mean()), color="C1", label="LS-SVM, all rows")
        axes.set(xscale="log", xlabel="number of prototypes m", title=TITLES[name])
        axes.set_xticks(sizes, [str(m) for m in sizes])
        axes.minorticks_off()
        axes.set_ylabel("test error, %" if name == "spa" else "test mean squared error")
        axes.legend(frameon=False)
    return figure


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=DEFAULT_OUTPUT)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/figure2_2010.png"))
    options = parser.parse_args(arguments)
    draw(records.read(options.results)).savefig(options.out, dpi=120)


if __name__ == "__main__":
    main()
