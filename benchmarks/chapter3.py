"""Run the benchmark study of [Suykens2002], section 3.4.2 and table 3.5, on data sets at hand.

    python -m benchmarks.chapter3 --data DIR [--sets acr,bld] [--methods "RBF LS-SVM,LDA"]

Every result is appended to the output as one JSON line; results already there are not computed
again, so a run can be stopped and continued. `python -m benchmarks.tables_chapter3` prints the
tables.
"""

import argparse
import os
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.study import machines, records
from benchmarks.study.data import SETS, StudyData, load, split
from benchmarks.study.printed_chapter3 import PRUNED_SETS
from benchmarks.study.references import REFERENCES
from benchmarks.study.task import Task, Trained

DEFAULT_OUTPUT = Path("benchmarks/results/chapter3.jsonl")


def methods_for(data: StudyData) -> dict[str, Callable[[Task], Trained]]:
    """Return the methods that apply to a data set; pruning on the sets of table 3.5 only."""
    pruned = machines.pruned_methods(data.is_binary) if data.name in PRUNED_SETS else {}
    printed = {} if data.is_binary else machines.printed_methods()
    whole = machines.all_rows_methods() if data.spec.fit_rows is not None else {}
    return REFERENCES | machines.methods(data.is_binary) | pruned | printed | whole


def measure(
    train: Callable[[Task], Trained], data: StudyData, randomisation: int, max_rows: int
) -> dict[str, Any]:
    """Train on one randomisation and test: accuracy in per cent, seconds, chosen parameters."""
    part = split(data, randomisation)
    fit_rows = min(len(part.y_train), data.spec.fit_rows or len(part.y_train))
    task = Task(part.X_train, part.y_train, data.categorical, fit_rows, min(max_rows, fit_rows))
    start = time.perf_counter()
    trained = train(task)
    fitted = time.perf_counter()
    accuracy = 100.0 * float(np.mean(trained.model.predict(part.X_test) == part.y_test))
    return {
        "accuracy": round(accuracy, 6),
        "fit_seconds": round(fitted - start, 4),
        "predict_seconds": round(time.perf_counter() - fitted, 4),
        "tuning_rows": task.tuning_rows,
        "fit_rows": fit_rows,
        "record": trained.record,
    }


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def describe_run(max_rows: int) -> dict[str, Any]:
    """Return versions, machine, threads and options of this run."""
    import scipy
    import sklearn
    import threadpoolctl

    return {
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "lssvm": machines.library_version(),
        },
        "commit": _commit(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "blas": [
            {key: pool[key] for key in ("internal_api", "version", "num_threads")}
            for pool in threadpoolctl.threadpool_info()
        ],
        "max_rows": max_rows,
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of <name>.parquet files")
    parser.add_argument("--sets", default=",".join(SETS), help="comma-separated names")
    parser.add_argument("--methods", default="", help="comma-separated names; all by default")
    parser.add_argument("--randomisations", type=int, default=10)
    parser.add_argument("--max-rows", type=int, default=2000, help="largest number of tuning rows")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUTPUT)
    options = parser.parse_args(arguments)

    wanted = [name for name in options.methods.split(",") if name]
    records.repair(options.out)
    done = set(records.read(options.out))
    records.append(options.out, {"run": describe_run(options.max_rows)})
    for name in options.sets.split(","):
        data = load(options.data, name)
        methods = methods_for(data)
        for method, train in methods.items():
            if wanted and method not in wanted:
                continue
            for randomisation in range(options.randomisations):
                if (name, randomisation, method) in done:
                    continue
                result = measure(train, data, randomisation, options.max_rows)
                key = {"set": name, "randomisation": randomisation, "method": method}
                records.append(options.out, key | result)
                print(name, randomisation, method, result["accuracy"], result["fit_seconds"])


if __name__ == "__main__":
    main()
