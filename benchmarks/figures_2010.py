"""Draw figures 1 to 4 of [DeBrabanter2010] from the records of `benchmarks.fixed_size2010`.

python -m benchmarks.figures_2010 [--results FILE] [--out FOLDER]

Figure 1: errors with prototypes by entropy and at random; 2: test error against the number of
prototypes; 3 and 4: seconds of a cross-validation against the number of folds.
"""

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fixed_size2010 import DEFAULT_OUTPUT
from benchmarks.study import printed_2010 as printed
from benchmarks.study import records
from benchmarks.study.methods_2010 import FIGURE_2_SETS
from benchmarks.tables_chapter3 import Results, values

TITLES = {"spa": "Spambase", "bho": "Boston housing", "ccs": "Concrete", "mgt": "Magic"}


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


def draw_selection(results: Results) -> Any:
    """Return figure 1: box plots of the errors on Boston housing, both rules on the same splits."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4, 3.6), layout="constrained")
    axes = figure.subplots()
    methods = {"entropy": "RBF FS-LSSVM", "random": "RBF FS-LSSVM, random"}
    axes.boxplot([values(results, "bho", method, "L2") for method in methods.values()])
    axes.set_xticks([1, 2], list(methods))
    axes.set(ylabel="test mean squared error", title="Boston housing, 200 prototypes")
    return figure


def draw_times(results: Results, name: str, table: dict[int, dict[str, Any]]) -> Any:
    """Return figure 3 or 4: seconds against folds, simple (full) and fast (dashed)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for colour, m in enumerate(table):
        for route, style in (("simple", "-"), ("optimized", "--")):
            found = [
                values(results, name, f"{route} cv, m={m}, v={v}", "cpu_seconds")
                for v in printed.FOLDS
            ]
            seconds = [float(part.min()) if len(part) else np.nan for part in found]
            label = f"m = {m}, {'refits' if route == 'simple' else 'fast'}"
            axes.plot(printed.FOLDS, seconds, style, color=f"C{colour}", label=label)
    axes.set(xlabel="folds", ylabel="processor seconds", yscale="log", title=TITLES[name])
    axes.legend(frameon=False, fontsize=7)
    return figure


def draw(results: Results) -> Any:
    """Return figure 2: one panel per set, mean and standard deviation, and the dual model."""
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
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args(arguments)
    results = records.read(options.results)
    figures = {
        1: draw_selection(results),
        2: draw(results),
        3: draw_times(results, "ccs", printed.TABLE_3),
        4: draw_times(results, "mgt", printed.TABLE_4),
    }
    for number, figure in figures.items():
        figure.savefig(options.out / f"figure{number}_2010.png", dpi=100)


if __name__ == "__main__":
    main()
