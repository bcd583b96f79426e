"""Accuracy of minimum output coding against the number of prototypes.

    python -m benchmarks.prototypes_moc --data DIR [--sets let,lan,pen] [--factors 1,2] [--all-rows]

C and gamma are those that the 2010 study has chosen with the printed number of prototypes (the
records of `python -m benchmarks.fixed_size2010`); the splits are its splits. `--all-rows` fits the
dual model with all rows beside them; `--retune` chooses C and gamma for every number of prototypes
anew, and those of the dual model on its first 1,000 rows. Every result is appended to the output as
one JSON line; results already there are not computed again. `--tables` writes the table instead.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.chapter3 import describe_run
from benchmarks.fixed_size2010 import DEFAULT_OUTPUT
from benchmarks.study import records
from benchmarks.study.data_2010 import Part2010, load_2010, split_2010
from benchmarks.study.methods_2010 import TUNING_ROWS
from benchmarks.study.printed_2010 import MULTICLASS_SETS, SIZES, TABLE_10
from lssvm import LSSVC, FixedSizeLSSVC

OUTPUT = Path("benchmarks/results/prototypes_moc.jsonl")
TUNED = "RBF FS-LSSVM (MOC)"
ALL_ROWS = "MOC, all rows"
TUNED_ANEW = ", tuned"
BESIDE = ("RBF FS-LSSVM (1vs1)", "RBF C-SVC (1vs1)", "RBF nu-SVC (1vs1)")
Results = dict[records.Key, dict[str, Any]]


def fit_and_test(model: FixedSizeLSSVC | LSSVC, part: Part2010) -> dict[str, Any]:
    """Return accuracy in per cent, parameters and processor seconds of one model."""
    start = time.process_time()
    model.fit(part.X_train, part.y_train)
    accuracy = 100.0 * model.score(part.X_test, part.y_test)
    return {
        "accuracy": round(accuracy, 4),
        "C": float(np.ravel(model.C_)[0]),
        "gamma": float(np.ravel(model.gamma_)[0]),
        "cpu_seconds": time.process_time() - start,
    }


def mean(found: Sequence[float]) -> str:
    """Return mean, standard deviation and number of accuracies, or a dash."""
    if len(found) == 0:
        return "-"
    spread = f" ± {np.std(found, ddof=1):.2f}" if len(found) > 1 else ""
    return f"{np.mean(found):.2f}{spread} ({len(found)})"


def table(results: Results, study: Results) -> list[str]:
    """Return the lines: accuracy by number of prototypes, and what stands beside it."""
    lines = [
        "# Minimum output coding: accuracy against the number of prototypes",
        "",
        "Written by `python -m benchmarks.prototypes_moc --tables` from its records and those of "
        "`benchmarks.fixed_size2010`: mean test accuracy in per cent ± standard deviation over the "
        "splits (their number), RBF kernel, C and gamma as tuned with the printed number of "
        "prototypes, or, where it says so, tuned anew for this number (all rows: on 1,000 rows). "
        "One-versus-one and the SVCs are those of the 2010 study.",
        "",
        "| set | model | prototypes | accuracy | printed |",
        "|---|---|---:|---:|---:|",
    ]
    for name in dict.fromkeys(key[0] for key in results):
        at = MULTICLASS_SETS.index(name)
        sizes = {(line["m"], m) for (s, _, m), line in results.items() if s == name}
        for m, method in sorted(sizes):
            here = [r["accuracy"] for (s, _, k), r in results.items() if (s, k) == (name, method)]
            printed = TABLE_10[TUNED][at]
            shown = f"{printed.mean} ± {printed.std}" if m == SIZES[name].n_prototypes else ""
            kind = method.replace(f", m={m}", "")
            lines.append(f"| {name} | {kind} | {m:,} | {mean(here)} | {shown} |")
        for method in BESIDE:
            here = [r["accuracy"] for (s, _, k), r in study.items() if (s, k) == (name, method)]
            shown = f"{TABLE_10[method][at].mean} ± {TABLE_10[method][at].std}"
            lines.append(f"| {name} | {method} |  | {mean(here)} | {shown} |")
    return [*lines, ""]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of <name>.parquet files")
    parser.add_argument("--sets", default="let,lan,pen")
    parser.add_argument("--factors", default="1,2", help="of the printed number of prototypes")
    parser.add_argument("--all-rows", action="store_true", help="the dual model with all rows too")
    parser.add_argument("--retune", action="store_true", help="C and gamma for every number anew")
    parser.add_argument("--randomisations", type=int, default=1)
    parser.add_argument("--tuned", type=Path, default=DEFAULT_OUTPUT)
    parser.add_argument("--out", type=Path, default=OUTPUT)
    parser.add_argument("--tables", type=Path, nargs="?", const=OUTPUT.with_suffix(".md"))
    options = parser.parse_args(arguments)
    tuned = records.read(options.tuned)
    if options.tables is not None:
        lines = table(records.read(options.out), tuned)
        options.tables.write_text("\n".join(lines), encoding="utf-8")
        return
    if options.data is None:
        parser.error("--data is needed: the folder with the <name>.parquet files")
    records.repair(options.out)
    done = set(records.read(options.out))
    records.append(options.out, {"run": describe_run(0)})
    for name in options.sets.split(","):
        data = load_2010(options.data, name)
        for number in range(options.randomisations):
            chosen = tuned[name, number, TUNED]["record"]
            given = {"C": chosen["C"], "gamma": chosen["gamma"], "multiclass": "moc", "n_jobs": 1}
            part = split_2010(data, number)
            if options.retune:
                given |= {"C": "cv", "gamma": "cv"}
            mark = TUNED_ANEW * options.retune
            models: dict[str, tuple[int, FixedSizeLSSVC | LSSVC]] = {}
            for factor in map(float, options.factors.split(",")):
                m = round(factor * data.sizes.n_prototypes)
                models[f"MOC, m={m}{mark}"] = (
                    m,
                    FixedSizeLSSVC(m, selection="renyi", random_state=number, **given),
                )
            if options.all_rows:
                models[ALL_ROWS + mark] = len(part.y_train), LSSVC(**given)
            for method, (m, model) in models.items():
                if (name, number, method) in done:
                    continue
                line = {"set": name, "randomisation": number, "method": method, "m": m}
                if method == ALL_ROWS + TUNED_ANEW:
                    model.fit(part.X_train[:TUNING_ROWS], part.y_train[:TUNING_ROWS])
                    model = clone(model).set_params(C=model.C_, gamma=model.gamma_)
                line |= fit_and_test(model, part)
                records.append(options.out, line)
                print(name, number, method, line["accuracy"], flush=True)


if __name__ == "__main__":
    main()
