"""Write the tables of `benchmarks.sparse2014` next to the printed ones.

python -m benchmarks.tables_sparse2014 [--results FILE] [--times FILE] [--out FILE]
"""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.sparse2014 import LOPEZ_ROWS, OUTPUT, SVM_ROWS, TUNING_ROWS, printed_name
from benchmarks.study import records
from benchmarks.study.printed_2014 import PRINTED, RIPLEY_TEST, SECONDS, SETS, TABLE_VI

METHODS = (
    "PFS-LSSVM",
    "SPFS-LSSVM",
    "SPFS-LSSVM at k",
    "SPFS-LSSVM as printed",
    "SPFS-LSSVM by the paper",
    "SD-LSSVM",
    "SSD-LSSVM",
    "SSD-LSSVM at k",
    "SSD-LSSVM as printed",
    "SSD-LSSVM by the paper",
    "SV_L0-norm",
    "SV_L0-norm by the paper",
    "Lopez",
    "Keerthi",
    "C-SVM",
    "nu-SVM",
)
TIMES = Path("benchmarks/results/sparse2014_times.jsonl")
ROUNDING = 0.0005  # printed errors and deviations are rounded

Result = tuple[float, float, float, int]  # error, standard deviation, support vectors, runs


def collect(lines: Iterable[dict[str, Any]]) -> dict[tuple[str, str], Result]:
    """Return mean error, standard deviation, mean support vectors and runs by (set, method)."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for line in lines:
        key = line["set"], line["method"]
        found.setdefault(key, []).append((line["error"], line["n_support"]))
    out = {}
    for key, values in found.items():
        errors, support = np.array(values).T
        spread = float(errors.std(ddof=1)) if len(errors) > 1 else float("nan")
        out[key] = float(errors.mean()), spread, float(support.mean()), len(errors)
    return out


def row_of_print(name: str, method: str) -> tuple[float, float | None, float | None] | None:
    """Return what is printed for a set and a method, however we ran it."""
    plain = method.removesuffix(" at k").removesuffix(" as printed").removesuffix(" by the paper")
    return PRINTED[plain].get(printed_name(name))


def verdict(name: str, method: str, ours: Result) -> str:
    """Compare with the printed error plus the printed deviation, and the printed support vectors.

    The deviation is the print's, over its ten randomisations; where it is printed as 0 an error
    has to be as small as the printed one.
    """
    printed = row_of_print(name, method)
    if printed is None or printed[1] is None or printed[2] is None:
        return ""
    error, spread, support = printed[0], printed[1], printed[2]
    accurate = ours[0] <= error + spread + ROUNDING
    sparse = ours[2] <= support + 0.5
    if accurate and sparse:
        if ours[0] < error:
            return "better on both" if ours[2] < support - 0.5 else "smaller error, as many SV"
        return "within the printed deviation, no more SV"
    if accurate:
        more = "within the printed deviation, more SV"
        return "smaller error, more SV" if ours[0] < error else more
    return "larger error" if sparse else "larger error, more SV"


def table(results: dict[tuple[str, str], Result], methods: tuple[str, ...]) -> list[str]:
    """Return the lines of tables IV and V."""
    lines = ["| set | method | error | SV | runs | printed error | printed SV | |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    names = [(name, spec.printed) for name, spec in SETS.items()]
    names.insert(1, (RIPLEY_TEST, "RIP, 1,000 test rows"))
    for name, title in names:
        for method in methods:
            ours = results.get((name, method))
            if ours is None:
                continue
            printed = row_of_print(name, method)
            error, support = "-", "-"
            if printed is not None:
                deviation = "" if printed[1] is None else f" ± {printed[1]:.3g}"
                error = f"{printed[0]:.4g}{deviation}"
                support = "-" if printed[2] is None else f"{printed[2]:.0f}"
            spread = f" ± {ours[1]:.4f}" if ours[3] > 1 else ""
            lines.append(
                f"| {title} | {method} | {ours[0]:.4f}{spread} | {ours[2]:.1f} | "
                f"{ours[3]} | {error} | {support} | {verdict(name, method, ours)} |"
            )
    return lines


def trade_off(results: dict[tuple[str, str], Result]) -> list[str]:
    """Return the lines of table VI: sparsity and change in error, ours / printed."""
    lines = ["| set | SPFS sparsity | change in error | SSD sparsity | change in error |"]
    lines.append("|---|---|---|---|---|")
    for name, spec in SETS.items():
        cells = []
        for first, second, at in (("PFS-LSSVM", "SPFS-LSSVM", 0), ("SD-LSSVM", "SSD-LSSVM", 2)):
            before, after = results.get((name, first)), results.get((name, second))
            if before is None or after is None:
                break
            change = after[0] - before[0]
            change = change if spec.regression else change / before[0]
            printed = TABLE_VI[name]
            cells.append(f"{1 - after[2] / before[2]:.2f} / {printed[at]:.2f}")
            cells.append(f"{change:+.2f} / {printed[at + 1]:+.2f}")
        if len(cells) == 4:
            lines.append(f"| {spec.printed} | {' | '.join(cells)} |")
    return lines


def seconds(lines: Iterable[dict[str, Any]]) -> dict[tuple[str, str], tuple[float, int]]:
    """Return the mean processor seconds, with the tuning, and the runs, by (set, method)."""
    found: dict[tuple[str, str], list[float]] = {}
    for line in lines:
        spent = line["processor_seconds"] + line["tuning_seconds"]
        found.setdefault((line["set"], line["method"]), []).append(spent)
    return {key: (float(np.mean(spent)), len(spent)) for key, spent in found.items()}


def times(spent: dict[tuple[str, str], tuple[float, int]]) -> list[str]:
    """Return the lines of the second half of table IV: seconds, and over those of PFS-LSSVM."""
    lines = ["| set | method | seconds | over PFS | runs | printed seconds | over PFS |"]
    lines.append("|---|---|---:|---:|---:|---:|---:|")
    for name, spec in SETS.items():
        base, theirs = spent.get((name, "PFS-LSSVM")), SECONDS["PFS-LSSVM"].get(name)
        for method in SECONDS:
            ours, printed = spent.get((name, method)), SECONDS[method].get(name)
            if ours is None or base is None:
                continue
            cells = [f"{ours[0]:.2f}", f"{ours[0] / base[0]:.2f}", str(ours[1])]
            if printed is None or theirs is None:
                cells += ["-", "-"]
            else:
                cells += [f"{printed:,.0f}" if printed >= 1000 else f"{printed:.4g}"]
                cells += [f"{printed / theirs:.2f}"]
            lines.append(f"| {spec.printed} | {method} | {' | '.join(cells)} |")
    return lines


def summary(results: dict[tuple[str, str], Result]) -> list[str]:
    """Return a line of counts for each of the paper's two methods."""
    lines = []
    ways = ("", " at k", " as printed")
    for method in [f"{kind}-LSSVM{way}" for kind in ("SPFS", "SSD") for way in ways]:
        own = {name: r for (name, kind), r in results.items() if kind == method}
        found = [verdict(name, method, r) for name, r in own.items() if name != RIPLEY_TEST]
        good = [v for v in found if v and not v.endswith("more SV") and "larger" not in v]
        good += [v for v in found if v.endswith("no more SV")]
        better = sum(v in ("better on both", "smaller error, as many SV") for v in found)
        what = "a smaller error at the printed number" if method.endswith("k") else "better on both"
        lines.append(
            f"- {method}: {len(good)} of {len(found)} sets at most the printed error plus the "
            f"printed deviation with no more support vectors; {better} {what}."
        )
    return lines


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--results", type=Path, default=OUTPUT)
    parser.add_argument("--times", type=Path, default=TIMES, help="records of the times")
    parser.add_argument("--out", type=Path, default=OUTPUT.with_suffix(".md"))
    options = parser.parse_args(arguments)
    results = collect(records.read(options.results).values())
    spent = seconds(records.read(options.times).values())
    missing = [spec.printed for name, spec in SETS.items() if (name, "PFS-LSSVM") not in results]
    text = [
        "# Very sparse reductions: tables IV, V and VI of [Mall2014]",
        "",
        "Written by `python -m benchmarks.tables_sparse2014` from the records of "
        "`python -m benchmarks.sparse2014 --data DIR`.",
        "",
        "Error: misclassification rate, or mean squared error of the standardised target (BH, Con, "
        "SLC, YP), on a random third of the rows; mean ± standard deviation over the runs. SV: the "
        "mean number of support vectors. That number is chosen on the training rows by "
        'cross-validation (one standard error); "at k" asks for the printed number instead, and '
        '"as printed" is algorithm 3 or 4 to the letter (`reduction="spfs-printed"`, '
        '`"ssd-printed"`). Nothing is chosen on test rows. Splits are random, ours and theirs '
        'differ. "Within the printed deviation" means the deviation that the paper prints, over '
        "its own ten randomisations; where it prints 0 (or 0.0), an error has to be no larger than "
        "the printed one.",
        "",
        "Ripley's set has 250 training and 1,000 test rows. Table III of the print has 250 rows, "
        'a third of them, 84, to test. The rows "RIP, 1,000 test rows" are trained on a random two '
        "thirds of the 250 rows and tested on all 1,000: the error printed for PFS-LSSVM is "
        "close to that of this protocol and far from that of 84 random rows, on which SVC has no "
        "smaller one. That the print used it is an inference.",
        "",
        f"PFS, SPFS and SV_L0 choose gamma on at most {TUNING_ROWS:,} rows and are fitted to all; "
        f"Lopez (`LSSVC(reduction='l0')`, LSSVR) is tuned on at most {LOPEZ_ROWS[0]:,} rows and "
        f"fitted to at most {LOPEZ_ROWS[1]:,}; SVC, SVR, NuSVC and NuSVR of scikit-learn are tuned "
        f"on at most {SVM_ROWS[0]:,} rows and fitted to at most {SVM_ROWS[1]:,}.",
        "",
        *summary(results),
        *([f"- Not run: {', '.join(missing)}."] if missing else []),
        "",
        "## Tables IV and V",
        "",
        *table(results, METHODS),
        "",
        "## Table VI: ours / printed",
        "",
        *trade_off(results),
        "",
    ]
    if spent:
        text += [
            "## Times of table IV",
            "",
            "Mean processor seconds of one thread for tuning, training and reduction, each method "
            "by itself (gamma is tuned once for PFS, SPFS and SV_L0, and counted in each), in one "
            "run beside other work; the print's are from a PC of its time under Matlab, test "
            "included. Only ratios compare. In print a reduction costs next to nothing after the "
            "tuning of PFS, and SSD, whose tuning sees the prototypes alone, takes 0.3 to 0.7 of "
            "it. Here that tuning is a matter of a second, so that what SPFS and SV_L0 do after it "
            "in this study (another path of C, folds for the number of support vectors) counts, "
            "and SSD, which has those folds too, is faster on the larger sets only.",
            "",
            *times(spent),
            "",
        ]
    options.out.write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
