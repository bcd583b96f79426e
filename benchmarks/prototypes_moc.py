"""Accuracy of minimum output coding against the number of prototypes.

    python -m benchmarks.prototypes_moc --data DIR [--sets let,lan,pen] [--factors 1,2] [--all-rows]

C and gamma are those that the 2010 study has chosen with the printed number of prototypes (the
records of `python -m benchmarks.fixed_size2010`); the splits are its splits. `--all-rows` fits the
dual model with all rows beside them. Every result is appended to the output as one JSON line;
results already there are not computed again.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.chapter3 import describe_run
from benchmarks.fixed_size2010 import DEFAULT_OUTPUT
from benchmarks.study import records
from benchmarks.study.data_2010 import Part2010, load_2010, split_2010
from lssvm import LSSVC, FixedSizeLSSVC

OUTPUT = Path("benchmarks/results/prototypes_moc.jsonl")
TUNED = "RBF FS-LSSVM (MOC)"


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


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of <name>.parquet files")
    parser.add_argument("--sets", default="let,lan,pen")
    parser.add_argument("--factors", default="1,2", help="of the printed number of prototypes")
    parser.add_argument("--all-rows", action="store_true", help="the dual model with all rows too")
    parser.add_argument("--randomisations", type=int, default=1)
    parser.add_argument("--tuned", type=Path, default=DEFAULT_OUTPUT)
    parser.add_argument("--out", type=Path, default=OUTPUT)
    options = parser.parse_args(arguments)
    tuned = records.read(options.tuned)
    records.repair(options.out)
    done = set(records.read(options.out))
    records.append(options.out, {"run": describe_run(0)})
    for name in options.sets.split(","):
        data = load_2010(options.data, name)
        for number in range(options.randomisations):
            chosen = tuned[name, number, TUNED]["record"]
            given = {"C": chosen["C"], "gamma": chosen["gamma"], "multiclass": "moc", "n_jobs": 1}
            part = split_2010(data, number)
            models: dict[str, tuple[int, FixedSizeLSSVC | LSSVC]] = {}
            for factor in map(float, options.factors.split(",")):
                m = round(factor * data.sizes.n_prototypes)
                models[f"MOC, m={m}"] = m, FixedSizeLSSVC(m, random_state=number, **given)
            if options.all_rows:
                models["MOC, all rows"] = len(part.y_train), LSSVC(**given)
            for method, (m, model) in models.items():
                if (name, number, method) in done:
                    continue
                line = {"set": name, "randomisation": number, "method": method, "m": m}
                line |= fit_and_test(model, part)
                records.append(options.out, line)
                print(name, number, method, line["accuracy"], flush=True)


if __name__ == "__main__":
    main()
