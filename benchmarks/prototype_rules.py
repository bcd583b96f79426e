"""Compare the rules that choose prototypes at equal numbers of prototypes, on real data sets.

    python -m benchmarks.prototype_rules --data DIR [--sets spa,mgt] [--seeds 10]
    python -m benchmarks.prototype_rules                    # the tables of what was measured

Every rule chooses m of the same training rows, and C and gamma are then tuned for that choice by
the estimator's default search (ten folds), as they are for a user: parameters tuned once for all
rules would favour the rule they were tuned with. A seed draws the training rows, the test rows and
the prototypes. Results already in the output are not computed again.
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.chapter3 import describe_run
from benchmarks.study import records
from benchmarks.study.frames import Drawn, draw, load
from benchmarks.study.statistics import average_ranks, sign_test, wilcoxon_test
from lssvm import FixedSizeLSSVC, FixedSizeLSSVR
from lssvm.prototypes import Candidates, Rule, Selection
from lssvm.prototypes.select import RULES

CLASSIFICATION = tuple("spa mgt adu ftc rae_banana thy ims wav shu lan opt pen".split())
REGRESSION = ("bike_hour", "kin8nm", "protein", "ccs")
SIZES = (50, 200)
COMPARED = ("random", "renyi", "kmeans", "rpcholesky")
MAX_TRAIN, MAX_TEST = 3_000, 5_000
OUTPUT = Path("benchmarks/results/prototype_rules.jsonl")
TABLES = Path("benchmarks/results/prototype_rules.md")


class Timed:
    """A rule that keeps the time it took."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.seconds = 0.0

    def select(self, candidates: Candidates) -> Selection:
        """Select prototypes by the rule."""
        start = time.process_time()
        selection = self.rule.select(candidates)
        self.seconds = time.process_time() - start
        return selection


def measure(part: Drawn, rule: str, m: int, seed: int, *, regression: bool) -> dict[str, Any]:
    """Return test error in per cent, seconds of selection and of the whole fit, and parameters."""
    timed = Timed(RULES[rule]())
    options = {"selection": timed, "n_jobs": 1, "random_state": seed}
    model = (
        FixedSizeLSSVR(m, **options)
        if regression
        else FixedSizeLSSVC(m, multiclass="ova", **options)
    )
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer distinct rows than prototypes
        model.fit(part.X_train, part.y_train)
    seconds = time.process_time() - start
    predicted = model.predict(part.X_test)
    if regression:
        error = np.sqrt(np.mean((predicted - part.y_test) ** 2)) / np.std(part.y_test)
    else:
        error = np.mean(predicted != part.y_test)
    return {
        "error": round(100.0 * float(error), 6),
        "selection_seconds": round(timed.seconds, 5),
        "fit_seconds": round(seconds, 4),
        "n_prototypes": model.n_prototypes_,
        "C": float(model.C_),
        "gamma": float(model.gamma_),
    }


def run(options: argparse.Namespace) -> None:
    """Measure what the output does not hold yet."""
    records.repair(options.out)
    done = set(records.read(options.out))
    records.append(options.out, {"run": describe_run(MAX_TRAIN)})
    for seed in range(options.seeds):
        for name in options.sets.split(","):
            keys = {(name, seed, f"{rule}, m = {m}"): (rule, m) for rule in COMPARED for m in SIZES}
            if keys.keys() <= done:
                continue
            rows = load(options.data, name, regression=name in REGRESSION)
            part = draw(rows, seed, MAX_TRAIN, MAX_TEST)
            sizes = {"n_train": len(part.y_train), "n_features": rows.X.shape[1]}
            for key, (rule, m) in keys.items():
                if key in done:
                    continue
                result = measure(part, rule, m, seed, regression=rows.regression)
                head = dict(zip(("set", "randomisation", "method"), key, strict=True))
                records.append(options.out, head | sizes | result)
                print(*key, result["error"], result["fit_seconds"], flush=True)


def tables(path: Path) -> str:
    """Return the tables of a file of results as Markdown."""
    results = records.read(path)
    sets = [s for s in (*CLASSIFICATION, *REGRESSION) if any(key[0] == s for key in results)]
    parts = [HEAD]
    for m in SIZES:
        methods = [f"{rule}, m = {m}" for rule in COMPARED]
        complete = [s for s in sets if _seeds(results, s, methods)]
        if complete:
            parts += [f"## {m} prototypes\n", *_size_tables(results, complete, methods)]
    return "\n".join(parts)


def _size_tables(results: dict[Any, Any], sets: list[str], methods: list[str]) -> list[str]:
    errors, selection, fit = (
        [
            [[results[s, i, method][field] for i in _seeds(results, s, methods)] for s in sets]
            for method in methods
        ]
        for field in ("error", "selection_seconds", "fit_seconds")
    )
    lines = ["| set | n | d | seeds | " + " | ".join(COMPARED) + " |"]
    lines += ["| --- " + "| ---: " * (3 + len(methods)) + "|"]
    for j, name in enumerate(sets):
        one = results[name, _seeds(results, name, methods)[0], methods[0]]
        best = min(np.mean(row[j]) for row in errors)
        cells = []
        for row in errors:
            cell = f"{np.mean(row[j]):.2f} ± {np.std(row[j], ddof=1) if len(row[j]) > 1 else 0:.2f}"
            cells.append(f"**{cell}**" if np.mean(row[j]) == best else cell)
        head = (name, one["n_train"], one["n_features"], len(errors[0][j]))
        lines.append(f"| {' | '.join(map(str, (*head, *cells)))} |")
    mean = np.array([[np.mean(values) for values in row] for row in errors])  # (rules, sets)
    lines += ["", "| over the sets | " + " | ".join(COMPARED) + " |"]
    lines += ["| --- " + "| ---: " * len(methods) + "|"]
    summary = {
        "average rank (1 is best)": average_ranks(-mean),
        "error over that of random, geometric mean": np.exp(np.log(mean / mean[0]).mean(axis=1)),
        "sets better / worse than random": [
            f"{np.sum(row < mean[0])} / {np.sum(row > mean[0])}" for row in mean
        ],
        "p of the sign test against random": [sign_test(row, mean[0]) for row in mean],
        "p of the Wilcoxon test against random": [
            wilcoxon_test(row / mean[0], np.ones(len(sets))) for row in mean
        ],
        "seconds to select, mean": [np.mean(np.concatenate(row)) for row in selection],
        "seconds of the whole fit, mean": [np.mean(np.concatenate(row)) for row in fit],
        "share of the fit, median over sets": [
            np.median([np.mean(s) / np.mean(f) for s, f in zip(*rows, strict=True)])
            for rows in zip(selection, fit, strict=True)
        ],
    }
    for label, values in summary.items():
        cells = [value if isinstance(value, str) else f"{value:.3f}" for value in values]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return [*lines, ""]


def _seeds(results: dict[Any, Any], name: str, methods: list[str]) -> list[int]:
    """Return the seeds for which all rules have been measured."""
    found = {key[1] for key in results if key[0] == name}
    return sorted(
        seed for seed in found if all((name, seed, method) in results for method in methods)
    )


HEAD = f"""# Prototype rules at equal numbers of prototypes

`python -m benchmarks.prototype_rules --data DIR`, then the same without `--data` for these tables.

Test errors in per cent, mean and standard deviation over the seeds: misclassified rows, and for
{", ".join(REGRESSION)} the root mean squared error over the standard deviation of the
targets. A seed draws two thirds of the rows (at most {MAX_TRAIN:,}) for training and others (at
most {MAX_TEST:,}) for testing; all rules see the same rows. C and gamma are tuned for every rule
and seed by the estimator's default search with ten folds. Several classes: one against all. Rows
are standardised; categories are integer codes. Times are processor seconds on one thread. The tests
take the sets as pairs (errors relative to those of random for the ranks of Wilcoxon's test). The
smallest mean error of a set is in bold.
"""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of <name>.parquet files")
    parser.add_argument("--sets", default=",".join((*CLASSIFICATION, *REGRESSION)))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=OUTPUT)
    parser.add_argument("--tables", type=Path, default=TABLES)
    options = parser.parse_args(arguments)
    if options.data is not None:
        run(options)
    options.tables.write_text(tables(options.out), encoding="utf-8")


if __name__ == "__main__":
    main()
