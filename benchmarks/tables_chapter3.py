"""Print the tables of the chapter 3 study as Markdown, measured rows above printed ones.

python -m benchmarks.tables_chapter3 [--results FILE] [--out FILE]
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.chapter3 import DEFAULT_OUTPUT
from benchmarks.study import machines, printed_chapter3, records
from benchmarks.study.data import SETS
from benchmarks.study.printed_chapter3 import PrintedRow
from benchmarks.study.references import PRINTED_AS, REFERENCES
from benchmarks.study.statistics import summarise

Array = NDArray[np.float64]
Results = dict[records.Key, dict[str, Any]]
NOT_RUN = "-"
FEWEST = 3  # randomisations on every set of a method that is compared with others
OTHER_TASK = "wav"  # the printed problem of this name is another one


def values(results: Results, name: str, method: str, field: str = "accuracy") -> Array:
    """Return one field of all randomisations of a set and method, as far as they were run."""
    return np.array(
        [line[field] for (s, _, m), line in sorted(results.items()) if (s, m) == (name, method)]
    )


def row(cells: Sequence[str]) -> str:
    """Return one line of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def head(cells: Sequence[str]) -> list[str]:
    """Return the head of a Markdown table, numbers to the right."""
    return [row(cells), "|---|" + "---:|" * (len(cells) - 1)]


def printed_name(method: str, is_binary: bool) -> str:
    """Return the name of a method in the printed table."""
    if method in ("RBF SVM", "Lin SVM") and not is_binary:
        return f"{method} (1vs1)"
    return PRINTED_AS.get(method, method)


def shared_means(results: Results, sets: Sequence[str], methods: Sequence[str]) -> Array:
    """Return mean accuracies (methods, sets) over the randomisations that all methods have."""
    means = np.empty((len(methods), len(sets)))
    for j, name in enumerate(sets):
        had = [{r for (s, r, m) in results if (s, m) == (name, method)} for method in methods]
        shared = sorted(set.intersection(*had))
        for i, method in enumerate(methods):
            means[i, j] = np.mean([results[name, r, method]["accuracy"] for r in shared])
    return means


def comparison(
    results: Results, sets: Sequence[str], methods: Sequence[str], printed: dict[str, PrintedRow]
) -> list[str]:
    """Return table 3.3 or 3.4: every method on every set, measured and printed."""
    is_binary = sets == printed_chapter3.BINARY_SETS
    methods = [m for m in methods if any(len(values(results, s, m)) for s in sets)]
    runs = {(m, s): values(results, s, m) for m in methods for s in sets}
    least = {m: min(len(runs[m, s]) for s in sets) for m in methods}
    often = min(FEWEST, max(least.values(), default=0))  # a taste of the study has fewer
    full = [m for m in methods if least[m] >= max(1, often)]
    if not full:
        return ["No method was run on all sets."]
    summary = summarise(shared_means(results, sets, full))
    top = {s: max(runs[m, s].mean() for m in methods if len(runs[m, s])) for s in sets}
    lines = head(["method", *sets, "AA", "AR", "P_ST", "P_W"])
    for method in methods:
        cells = [_cell(runs[method, s], top[s]) for s in sets]
        if method in full:
            i = full.index(method)
            average = f"{summary.average_accuracy[i]:.1f}"
            cells += [
                f"**{average}**" if i == summary.best else average,
                f"{summary.average_rank[i]:.1f}",
                f"{summary.p_sign[i]:.3f}",
                f"{summary.p_wilcoxon[i]:.3f}",
            ]
        else:
            cells += [NOT_RUN] * 4
        lines.append(row([f"**{method}**", *cells]))
        if (name := printed_name(method, is_binary)) in printed:
            paper = printed[name]
            cells = [f"{a:.1f} ({b:.1f})" for a, b in zip(paper.mean, paper.std, strict=True)]
            cells += [f"{paper.aa:.1f}", f"{paper.ar:.1f}", f"{paper.p_sign:.3f}", ""]
            lines.append(row([f"_printed: {name}_", *(f"_{c}_" if c else "" for c in cells)]))
    return [*lines, "", *_fewer(runs)]


def _cell(accuracies: Array, top: float) -> str:
    if len(accuracies) == 0:
        return NOT_RUN
    spread = f" ({accuracies.std(ddof=1):.1f})" if len(accuracies) > 1 else ""
    text = f"{accuracies.mean():.1f}"
    return (f"**{text}**" if accuracies.mean() >= top - 1e-9 else text) + spread


def _fewer(runs: dict[tuple[str, str], Array]) -> list[str]:
    """Say where fewer than 10 randomisations were run."""
    short: dict[tuple[str, int], list[str]] = {}
    for (method, name), accuracies in runs.items():
        if len(accuracies) < 10:
            short.setdefault((name, len(accuracies)), []).append(method)
    alike: dict[tuple[int, tuple[str, ...]], list[str]] = {}
    for (name, count), methods in short.items():
        alike.setdefault((count, tuple(methods)), []).append(f"`{name}`")
    return [
        f"- {count} randomisation{'s' * (count != 1)} on {', '.join(names)}: {', '.join(methods)}."
        for (count, methods), names in sorted(alike.items())
    ]


def averages(results: Results) -> list[str]:
    """Return the average accuracies here and in print, over the sets that both have."""
    lines = head(["method", "sets", "AA here", "AA printed", "difference"])
    for sets, printed in (
        (printed_chapter3.BINARY_SETS, printed_chapter3.TABLE_3_3),
        (printed_chapter3.MULTICLASS_SETS, printed_chapter3.TABLE_3_4),
    ):
        is_binary = sets == printed_chapter3.BINARY_SETS
        for method in [*machines.methods(is_binary), *REFERENCES]:
            name = printed_name(method, is_binary)
            shared = [
                k for k, s in enumerate(sets) if s != OTHER_TASK and len(values(results, s, method))
            ]
            if name in printed and shared:
                here = float(np.mean([values(results, sets[k], method).mean() for k in shared]))
                paper = float(np.mean([printed[name].mean[k] for k in shared]))
                kind = f"{len(shared)} {'binary' if is_binary else 'multi-class'}"
                lines.append(
                    row([method, kind, f"{here:.1f}", f"{paper:.1f}", f"{here - paper:+.1f}"])
                )
    return lines


def pruning(results: Results) -> list[str]:
    """Return table 3.5: accuracy, training examples kept and percentage pruned."""
    sets = printed_chapter3.PRUNED_SETS
    marks = [f"{level}{mark}" for level in machines.LEVELS for mark in machines.PRUNINGS]
    names = {"LS-SVM": {s: _unpruned(s) for s in sets}} | {
        f"LS-SVM_{mark}": {s: f"{_unpruned(s)} {mark}" for s in sets} for mark in marks
    }
    lines = head(["", *sets])
    for label, methods in names.items():
        accuracies = [values(results, s, methods[s]) for s in sets]
        lines.append(row([f"**{label}** accuracy", *(_cell(a, np.inf) for a in accuracies)]))
        if label in printed_chapter3.TABLE_3_5:
            paper = printed_chapter3.TABLE_3_5[label]
            cells = [f"_{a:.1f} ({b:.1f})_" for a, b in zip(paper.mean, paper.std, strict=True)]
            lines.append(row(["_printed_", *cells]))
    for label, methods in list(names.items())[1:]:
        counts = [values(results, s, methods[s], "record") for s in sets]
        lines.append(row([f"**{label}** examples kept", *(_kept(c) for c in counts)]))
        if label in printed_chapter3.TABLE_3_5_ROWS:
            printed = printed_chapter3.TABLE_3_5_ROWS
            pairs = zip(printed[label], printed["LS-SVM"], strict=True)
            lines.append(row(["_printed_", *(f"_{a} of {b}_" for a, b in pairs)]))
        lines.append(row([f"**{label}** pruned", *(_percent(c) for c in counts)]))
        if label in printed_chapter3.TABLE_3_5_PRUNED_PERCENT:
            percent = printed_chapter3.TABLE_3_5_PRUNED_PERCENT[label]
            lines.append(row(["_printed_", *(f"_{p} %_" for p in percent)]))
    runs = {(label, s): values(results, s, m[s]) for label, m in names.items() for s in sets}
    return [*lines, "", *_fewer(runs)]


def _kept(found: Array) -> str:
    if len(found) == 0:
        return NOT_RUN
    kept = np.mean([record["rows_kept"] for record in found])
    return f"{kept:.0f} of {found[0]['rows_all']}"


def _percent(found: Array) -> str:
    if len(found) == 0:
        return NOT_RUN
    return f"{np.mean([100 * (1 - r['rows_kept'] / r['rows_all']) for r in found]):.0f} %"


def _unpruned(name: str) -> str:
    return "RBF LS-SVM" if name in printed_chapter3.BINARY_SETS else "RBF LS-SVM (1vs1)"


def times(results: Results) -> list[str]:
    """Return the mean seconds of one training, tuning included."""
    lines = []
    for sets in (printed_chapter3.BINARY_SETS, printed_chapter3.MULTICLASS_SETS):
        is_binary = sets == printed_chapter3.BINARY_SETS
        lines += head(["seconds", *sets])
        for method in [*machines.methods(is_binary), "RBF SVM", "Lin SVM"]:
            seconds = [values(results, s, method, "fit_seconds") for s in sets]
            if any(len(s) for s in seconds):
                cells = [f"{s.mean():.2g}" if len(s) else NOT_RUN for s in seconds]
                lines.append(row([method, *cells]))
        lines.append("")
    return lines


PROTOCOL = """\
Protocol: random splits into the N_CV training and N_test test rows of tables 3.1 and 3.2, the
same for all methods; inputs standardised by the training part; rows with unknown values
removed; a categorical attribute is one column of integer codes (values in sorted order), so
that n is that of the tables. Cells are the mean test accuracy in per cent (sample standard
deviation); bold is the best measured one. AA is the average accuracy and AR the average rank;
P_ST (sign test) and P_W (Wilcoxon's signed rank test, exact) compare with the method of the
best AA, each set being one pair; these four columns compare the methods that were run at least
three times on all sets, on the randomisations that they share. Lists below the tables say where
fewer than 10 randomisations were run; such means carry more noise than the others.

What differs from the print:

- LS-SVM: `LSSVC` tunes C and the kernel parameter, one pair for all binary subproblems, by exact
  10-fold cross-validation and its path search (20 values of C at each kernel parameter,
  polynomial 12, linear 60, and 8 more around the best); the print has a shrinking grid per
  binary subproblem.
  The polynomial degree, 2 to 10, is the best by cross-validated
  accuracy. The rows "separate" have a (C, gamma) for each binary subproblem, as printed, tuned and
  trained on the tuning rows where those are a part ("joint" has one on the same rows); the rows
  "counting" have minimum output codes by binary counting.
- Large sets: LS-SVM is tuned on a random part of the training rows ({tuning}), then trained on
  all of them; on `adu` LS-SVM and SVM are trained on a random {adu_rows} of the 33000 training
  rows, LS-SVM in the rows "all rows" on all of them. All are tested on the full test part.
- SVM: scikit-learn's SVC, one-versus-one, grid of 5 x 5 (linear: 5) values, 5 folds on at most
  1000 training rows, at most 100000 iterations (a limit that the linear SVM meets on `adu`, hence
  its spread there). SVM with MOC was not run.
- CART with cost-complexity pruning stands in for C4.5, a tree of depth 1 for oneR, QDA has a
  cross-validated shrinkage, nearest neighbours take categories as numbers, NB_k has Silverman's
  bandwidth.
- `wav` is Breiman's problem with 21 attributes (3600 of 5000 rows per randomisation); the
  printed accuracies near 99 % belong to another problem. `led` is another draw of the same
  generator.
"""


def tuning_rows(results: Results) -> str:
    """Say on how many rows LS-SVM was tuned where that is a part of the training rows."""
    parts: dict[str, set[int]] = {}
    for (name, _, method), line in results.items():
        if "LS-SVM" in method and line["tuning_rows"] < SETS[name].n_train:
            parts.setdefault(name, set()).add(line["tuning_rows"])
    return ", ".join(
        f"`{name}` {' or '.join(map(str, sorted(rows)))} of {SETS[name].n_train}"
        for name, rows in parts.items()
    )


def versions(runs: list[dict[str, Any]]) -> str:
    """Say what the latest run ran on."""
    if not runs:
        return ""
    names = ", ".join(f"{name} {version}" for name, version in runs[-1]["versions"].items())
    return f"Run with {names} on {runs[-1]['cores']} cores."


def document(results: Results, runs: list[dict[str, Any]]) -> str:
    """Return all tables as one Markdown fragment."""
    protocol = PROTOCOL.format(tuning=tuning_rows(results), adu_rows=SETS["adu"].fit_rows)
    binary = [*machines.methods(True), *machines.all_rows_methods(), *REFERENCES]
    multiclass = [*machines.methods(False), *machines.printed_methods(), *REFERENCES]
    sections = [
        ["## The benchmark study of chapter 3", "", protocol.rstrip()],
        ["### Average accuracies", "", "`wav` left out.", "", *averages(results)],
        [
            "### Binary sets (table 3.3)",
            "",
            *comparison(results, printed_chapter3.BINARY_SETS, binary, printed_chapter3.TABLE_3_3),
        ],
        [
            "### Multi-class sets (table 3.4)",
            "",
            *comparison(
                results, printed_chapter3.MULTICLASS_SETS, multiclass, printed_chapter3.TABLE_3_4
            ),
        ],
        ["### Pruning (table 3.5)", "", PRUNING_NOTE.rstrip(), "", *pruning(results)],
        ["### Training times", "", TIMES_NOTE + versions(runs), "", *times(results)],
    ]
    return "\n\n".join("\n".join(section).rstrip() for section in sections) + "\n"


PRUNING_NOTE = """\
RBF kernel, one-versus-one on the multi-class sets. Examples are counted over all binary subproblems
together, as N^(1:L) in the print. When the accuracy falls, C and gamma are tuned again on the rows
that are left, as the chapter's algorithm says; "fixed" leaves that out. The test of the fall is the
exact sign test on paired out-of-fold decisions, those of the pruned model and of the model of all
rows, or, in the rows "previous", of the step before; the print does not say which test it used, and
has the two percentages of `iri` exchanged.
"""

TIMES_NOTE = """\
Mean seconds of one training with its tuning, one BLAS thread, with other work on the machine:
an indication, not a comparison of speed, since the searches differ in values, folds and rows.
"""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=DEFAULT_OUTPUT)
    parser.add_argument("--out", type=Path, help="Markdown file; standard output by default")
    options = parser.parse_args(arguments)
    text = document(records.read(options.results), records.read_runs(options.results))
    if options.out is None:
        print(text, end="")
    else:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
