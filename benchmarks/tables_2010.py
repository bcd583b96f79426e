"""Print the tables of the 2010 study as Markdown, measured rows above printed ones.

python -m benchmarks.tables_2010 [--results FILE] [--notes FILE] [--out FILE]
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fixed_size2010 import DEFAULT_OUTPUT
from benchmarks.study import printed_2010 as printed
from benchmarks.study import records
from benchmarks.study.methods_2010 import SEARCH_SETS, SVM_ROWS, TUNING_ROWS
from benchmarks.study.printed_2010 import Figure
from benchmarks.study.timing_2010 import ROUTES
from benchmarks.tables_chapter3 import NOT_RUN, Results, head, row, values

Array = NDArray[np.float64]
ERRORS = ("L2", "L1", "Linf")
OURS = ("RBF FS-LSSVM", "Lin FS-LSSVM", "RBF FS-LSSVM (MOC)", "RBF FS-LSSVM (1vs1)")
OURS += ("Lin FS-LSSVM (1vs1)", "Lin FS-LSSVM (MOC)")
CLUSTERED = "RBF FS-LSSVM, kmeans"
OWN = "RBF FS-LSSVM (1vs1), own"
RELEVANT = "RBF FS-LSSVM, ard"
MOVED = ("RBF FS-LSSVM, threshold", "Lin FS-LSSVM, threshold")
MOVED_PAIRS = ("RBF FS-LSSVM (1vs1), threshold", "Lin FS-LSSVM (1vs1), threshold")
BIASED = ("RBF FS-LSSVM, penalised", "Lin FS-LSSVM, penalised", "Lin FS-LSSVM, penalised, small C")
CODED = ("RBF FS-LSSVM (MOC), counting", "Lin FS-LSSVM (MOC), counting")
SEPARATE = ("RBF FS-LSSVM (MOC), separate", "RBF FS-LSSVM (1vs1), separate")
VARIANTS = (CLUSTERED, RELEVANT, OWN, *MOVED, *MOVED_PAIRS, *BIASED, *CODED, *SEPARATE)


def cell(found: Array, digits: int) -> str:
    """Return mean, standard deviation and number of randomisations."""
    if len(found) == 0:
        return NOT_RUN
    spread = f" ({found.std(ddof=1):.{digits}f})" if len(found) > 1 else ""
    return f"{found.mean():.{digits}f}{spread} [{len(found)}]"


def printed_cell(figure: Figure, digits: int) -> str:
    """Return a printed mean and standard deviation."""
    spread = "\\*" if figure.std is None else f"{figure.std:.{digits}f}"
    return f"_{figure.mean:.{digits}f} ({spread})_"


def verdict(mean: float, figure: Figure, *, lower_is_better: bool = False) -> str:
    """Compare a measured mean with a printed one and its standard deviation."""
    gain = figure.mean - mean if lower_is_better else mean - figure.mean
    if gain >= 0:
        return f"better by {gain:.2f}"
    if figure.std is not None and gain >= -figure.std:
        return f"within the printed std ({gain:+.2f})"
    return f"**short by {-gain:.2f}**, std {figure.std:.2f}"


def comparison(
    results: Results,
    sets: Sequence[str],
    table: dict[str, tuple[Figure, ...]],
    field: str,
    digits: int,
    extra: Sequence[str] = (),
) -> list[str]:
    """Return a table of methods by sets, each measured row above the printed one."""
    lines = head(["method", *(f"`{name}`" for name in sets)])
    for method in [*table, *extra]:
        found = [values(results, name, method, field) for name in sets]
        if method in table or any(len(part) for part in found):
            lines.append(row([f"**{method}**", *(cell(part, digits) for part in found)]))
        if method in table:
            lines.append(
                row(["_printed_", *(printed_cell(figure, digits) for figure in table[method])])
            )
    return lines


def verdicts(
    results: Results, sets: Sequence[str], table: dict[str, tuple[Figure, ...]]
) -> list[str]:
    """Return what became of every printed figure of the fixed-size model."""
    lines = head(["set", "method", "ours", "printed", "verdict", "best SVM measured"])
    for j, name in enumerate(sets):
        peers = [values(results, name, m) for m in table if "SVC" in m]
        peak = max((part.mean() for part in peers if len(part)), default=np.nan)
        for method in (m for m in [*table, *VARIANTS] if m in OURS or m in VARIANTS):
            found = values(results, name, method)
            if len(found):
                figure = table[method.split(", ")[0]][j]
                cells = [f"`{name}`", method, cell(found, 2), printed_cell(figure, 2)]
                lines.append(row([*cells, verdict(found.mean(), figure), f"{peak:.2f}"]))
    return lines


def regression(results: Results) -> list[str]:
    """Return table 12."""
    sets = printed.REGRESSION_SETS
    lines = head(["method", "error", *(f"`{name}`" for name in sets), *(["verdict"] * len(sets))])
    for method, table in printed.TABLE_12.items():
        for error in ERRORS:
            found = [values(results, name, method, error)[:10] for name in sets]
            cells = [cell(part, 3) for part in found]
            ends = [
                verdict(part.mean(), figure, lower_is_better=True)
                if method == "RBF FS-LSSVM" and len(part)
                else ""
                for part, figure in zip(found, table[error], strict=True)
            ]
            lines.append(row([f"**{method}**", error, *cells, *ends]))
            cells = [printed_cell(figure, 2) for figure in table[error]]
            lines.append(row(["_printed_", error, *cells, *[""] * len(sets)]))
    return lines


def table_1(results: Results) -> list[str]:
    """Return the comparison of entropy and random selection on `bho`."""
    lines = head(["selection", "ours: mean", "std", "runs", "printed mean", "std"])
    methods = {"Entropy": "RBF FS-LSSVM", "Random": "RBF FS-LSSVM, random"}
    for label, figure in printed.TABLE_1.items():
        found = values(results, "bho", methods[label], "L2")
        measured = [NOT_RUN] * 3
        if len(found) > 1:
            measured = [f"{found.mean():.4f}", f"{found.std(ddof=1):.4f}", str(len(found))]
        lines.append(row([label, *measured, f"_{figure.mean}_", f"_{figure.std}_"]))
    return lines


def timings(results: Results, name: str, table: dict[int, dict[str, Any]]) -> list[str]:
    """Return table 3 or 4: smallest processor seconds of a cross-validation, ours and printed."""
    lines = head(["prototypes", "cross-validation", *(f"{v} folds" for v in printed.FOLDS)])
    for m, rows in table.items():
        measured = {}
        for route in ROUTES:
            found = [
                values(results, name, f"{route} cv, m={m}, v={v}", "cpu_seconds")
                for v in printed.FOLDS
            ]
            measured[route] = np.array([part.min() if len(part) else np.nan for part in found])
        for route, times in rows.items():
            cells = [NOT_RUN if np.isnan(t) else f"{t:.3g}" for t in measured[route]]
            lines.append(row([str(m), f"**{route}**", *cells]))
            lines.append(row(["", "_printed_", *(f"_{t:g}_" for t in times)]))
        ratio = measured["simple"] / measured["optimized"]
        lines.append(
            row([str(m), "ratio", *(NOT_RUN if np.isnan(r) else f"{r:.1f}" for r in ratio)])
        )
        paper = np.array(rows["simple"]) / np.array(rows["optimized"])
        lines.append(row(["", "_printed_", *(f"_{r:.1f}_" for r in paper)]))
        for route in ("algorithm 3", "features"):
            ratio = measured["simple"] / measured[route]
            if not np.isnan(ratio).all():
                cells = [NOT_RUN if np.isnan(r) else f"{r:.1f}" for r in ratio]
                lines.append(row([str(m), f"ratio, {route}", *cells]))
    return lines


def searches(results: Results) -> list[str]:
    """Return the three searches side by side: test result, CV score, evaluations, seconds."""
    lines = head(["set", "search", "test", "CV score", "pairs (C, gamma)", "processor s"])
    for name in SEARCH_SETS:
        field = "L2" if name in printed.REGRESSION_SETS else "accuracy"
        methods = {"path": "RBF FS-LSSVM"} | {s: f"RBF FS-LSSVM, {s}" for s in ("grid", "csa")}
        had = [{r for (s, r, m) in results if (s, m) == (name, x)} for x in methods.values()]
        shared = sorted(set.intersection(*had))
        for search, method in methods.items():
            found = [results[name, r, method] for r in shared]
            if found:
                score = np.mean([line["record"]["cv_score"] for line in found])
                pairs = np.mean([line["record"]["n_evaluations"] for line in found])
                seconds = np.mean([line["cpu_seconds"] for line in found])
                test = cell(np.array([line[field] for line in found]), 3)
                cells = [f"`{name}`", search, test, f"{score:.4f}", f"{pairs:.0f}"]
                lines.append(row([*cells, f"{seconds:.2f}"]))
    return lines


def machine_rows(results: Results) -> str:
    """Say where the machines of scikit-learn were trained on a part of the rows."""
    capped = sorted(
        {
            f"`{name}` ({line['record']['fit_rows']:,} of {printed.SIZES[name].n_train:,})"
            for (name, _, _), line in results.items()
            if line.get("record", {}).get("fit_rows", 10**9) < printed.SIZES[name].n_train
        }
    )
    return ", ".join(capped) if capped else "none"


def summary(results: Results) -> list[str]:
    """Count the verdicts of the RBF and of the linear models."""
    lines = []
    for kernel in ("RBF", "Lin"):
        counts = {"better": 0, "within": 0, "**short": 0}
        tables = (
            (printed.BINARY_SETS, printed.TABLE_8),
            (printed.MULTICLASS_SETS, printed.TABLE_10),
        )
        for sets, table in tables:
            for method in (m for m in table if m in OURS and m.startswith(kernel)):
                for name, figure in zip(sets, table[method], strict=True):
                    found = values(results, name, method)
                    if len(found):
                        counts[verdict(found.mean(), figure).split()[0]] += 1
        lines.append(
            f"- {kernel} FS-LSSVM, classification: {counts['better']} at least the printed mean, "
            f"{counts['within']} below it by no more than one printed standard deviation, "
            f"{counts['**short']} by more."
        )
    return lines


def report(results: Results, runs: list[dict[str, Any]]) -> list[str]:
    """Return the whole document."""
    commits = sorted({run["commit"] for run in runs})
    versions = runs[-1]["versions"] if runs else {}
    sections: list[tuple[str, list[str]]] = [
        ("Summary", summary(results)),
        ("Verdicts, table 8", verdicts(results, printed.BINARY_SETS, printed.TABLE_8)),
        ("Verdicts, table 10", verdicts(results, printed.MULTICLASS_SETS, printed.TABLE_10)),
        (
            "Table 8: test accuracy in per cent, binary sets",
            comparison(
                results,
                printed.BINARY_SETS,
                printed.TABLE_8,
                "accuracy",
                2,
                [CLUSTERED, RELEVANT, *MOVED, *BIASED],
            ),
        ),
        (
            "Table 9: seconds, binary sets",
            comparison(
                results,
                printed.BINARY_SETS,
                printed.TABLE_9,
                "cpu_seconds",
                1,
                [CLUSTERED, RELEVANT, *MOVED, *BIASED],
            ),
        ),
        (
            "Table 10: test accuracy in per cent, multi-class sets",
            comparison(
                results,
                printed.MULTICLASS_SETS,
                printed.TABLE_10,
                "accuracy",
                2,
                [OWN, *MOVED_PAIRS, *CODED, *SEPARATE],
            ),
        ),
        (
            "Table 11: seconds, multi-class sets",
            comparison(
                results,
                printed.MULTICLASS_SETS,
                printed.TABLE_11,
                "cpu_seconds",
                1,
                [OWN, *MOVED_PAIRS, *CODED, *SEPARATE],
            ),
        ),
        ("Table 12: test errors, regression (first ten randomisations)", regression(results)),
        (
            "Table 13: seconds, regression",
            comparison(results, printed.REGRESSION_SETS, printed.TABLE_13, "cpu_seconds", 1),
        ),
        ("Table 1: selection of the prototypes, mean squared error on `bho`", table_1(results)),
        ("Table 3: one cross-validation on `ccs`", timings(results, "ccs", printed.TABLE_3)),
        ("Table 4: one cross-validation on `mgt`", timings(results, "mgt", printed.TABLE_4)),
        ("Searches, the same randomisations", searches(results)),
    ]
    lines = [
        "# The experiments of the 2010 paper",
        "",
        "Written by `python -m benchmarks.tables_2010` from `fixed_size2010.jsonl`, measured by "
        "`python -m benchmarks.fixed_size2010 --data DIR`. Means over randomisations with the "
        "standard deviation in parentheses and the number of randomisations in brackets; "
        "_printed_ rows are those of [DeBrabanter2010]. Seconds are processor time of one thread "
        "for tuning, training and testing (the printed ones are wall time of a machine of 2008). "
        f"The machines of scikit-learn were tuned on at most {TUNING_ROWS:,} rows and trained "
        f"once on at most {SVM_ROWS:,}; fewer than all rows on: {machine_rows(results)}.",
        "",
        f"Commit {', '.join(commits)}; "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + ".",
    ]
    for title, part in sections:
        lines += ["", f"## {title}", "", *part]
    return lines


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=DEFAULT_OUTPUT)
    parser.add_argument("--notes", type=Path, default=None, help="Markdown to put at the end")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args(arguments)
    lines = report(records.read(options.results), records.read_runs(options.results))
    if options.notes is not None:
        lines += ["", options.notes.read_text(encoding="utf-8").rstrip()]
    text = "\n".join(lines) + "\n"
    if options.out is None:
        print(text, end="")
    else:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
