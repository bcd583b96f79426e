"""Rerun the experiments of [DeBrabanter2010], tables 1, 3, 4 and 8 to 13 and figure 2.

    python -m benchmarks.fixed_size2010 --data DIR [--sets pid,spa] [--methods "RBF FS-LSSVM"]

Every result is appended to the output as one JSON line; results already there are not computed
again, so a run can be stopped and continued. Everything runs in one thread. Seconds are given as
wall time and as processor time, which other work on the machine does not lengthen much.
`python -m benchmarks.tables_2010` prints the tables.
"""

import argparse
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy is loaded

import time  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from benchmarks.chapter3 import describe_run  # noqa: E402
from benchmarks.study import records  # noqa: E402
from benchmarks.study.data_2010 import Data2010, load_2010, split_2010  # noqa: E402
from benchmarks.study.methods_2010 import Job, Train, methods_2010  # noqa: E402
from benchmarks.study.printed_2010 import FOLDS, SIZES, TABLE_3, TABLE_4  # noqa: E402
from benchmarks.study.timing_2010 import ROUTES, measure_cv  # noqa: E402

DEFAULT_OUTPUT = Path("benchmarks/results/fixed_size2010.jsonl")
TIMING = "cv"  # stands for tables 3 and 4 among the methods
TIMED = {"ccs": TABLE_3, "mgt": TABLE_4}
REPEATS = {"ccs": 3, "mgt": 1}
RANDOMISATIONS = {"mgt": 5, "adu": 5, "let": 3, "shu": 5, "ftc": 3}  # ten on the others
FEW_RANDOMISATIONS = 3  # of what takes longest, on sets with many rows or many pairs
TABLE_1_RANDOMISATIONS = 30
FIGURE_2_RANDOMISATIONS = 5
FEW_ROWS = 10_000  # scikit-learn's machines have all randomisations up to so many
SIMPLE_LIMIT = 5e10  # the simple cross-validation is timed up to n m^2 v operations


def planned(name: str, method: str) -> int:
    """Return how many randomisations of a method are run on a set."""
    if name == "bho" and method in ("RBF FS-LSSVM", "RBF FS-LSSVM, random"):
        return TABLE_1_RANDOMISATIONS
    if ", m=" in method or method == "RBF LS-SVM":
        return FIGURE_2_RANDOMISATIONS
    most = RANDOMISATIONS.get(name, 10)
    long = method.endswith(", own") and name != "lan"
    many = SIZES[name].n_train > FEW_ROWS and not ("LSSVM" in method or method == "Maj. rule")
    return min(most, FEW_RANDOMISATIONS) if long or many else most


def measure(train: Train, data: Data2010, randomisation: int) -> dict[str, Any]:
    """Train on one randomisation and test: accuracy or errors, seconds, what was chosen."""
    part = split_2010(data, randomisation)
    job = Job(part.X_train, part.y_train, data.sizes.n_prototypes, randomisation)
    start, cpu = time.perf_counter(), time.process_time()
    trained = train(job)
    predictions = trained.model.predict(part.X_test)
    found = {
        "seconds": round(time.perf_counter() - start, 3),
        "cpu_seconds": round(time.process_time() - cpu, 3),
        "record": trained.record,
    }
    if data.kind == "regression":
        errors = np.abs(predictions - part.y_test)
        return found | {
            "L2": float(np.mean(errors**2)),
            "L1": float(errors.mean()),
            "Linf": float(errors.max()),
        }
    return found | {"accuracy": round(100.0 * float(np.mean(predictions == part.y_test)), 6)}


def time_folds(data: Data2010, done: set[records.Key], out: Path) -> None:
    """Fill tables 3 and 4: all rows, the numbers of prototypes and folds of the print."""
    X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    y = data.y if data.kind == "binary" else (data.y - data.y.mean()) / data.y.std()
    for repeat in range(REPEATS[data.name]):
        for m in TIMED[data.name]:
            for v in FOLDS:
                for route in ROUTES:
                    method = f"{route} cv, m={m}, v={v}"
                    too_long = route == "simple" and len(y) * m**2 * v > SIMPLE_LIMIT
                    if too_long or (data.name, repeat, method) in done:
                        continue
                    key = {"set": data.name, "randomisation": repeat, "method": method}
                    records.append(out, key | measure_cv(route, X, y, m, v, repeat))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of <name>.parquet files")
    parser.add_argument("--sets", default=",".join(SIZES), help="comma-separated names")
    parser.add_argument("--methods", default="", help=f"names, separated by ';', or '{TIMING}'")
    parser.add_argument("--randomisations", type=int, default=30, help="at most as many")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUTPUT)
    options = parser.parse_args(arguments)

    wanted = [name for name in options.methods.split(";") if name]
    records.repair(options.out)
    done = set(records.read(options.out))
    records.append(options.out, {"run": describe_run(0)})
    for name in options.sets.split(","):
        data = load_2010(options.data, name)
        methods = methods_2010(name, data.kind)
        for randomisation in range(options.randomisations):
            for method, train in methods.items():
                if (wanted and method not in wanted) or randomisation >= planned(name, method):
                    continue
                if (name, randomisation, method) in done:
                    continue
                result = measure(train, data, randomisation)
                key = {"set": name, "randomisation": randomisation, "method": method}
                records.append(options.out, key | result)
                score = result.get("accuracy", result.get("L2"))
                print(name, randomisation, method, score, result["cpu_seconds"], flush=True)
        if name in TIMED and (not wanted or TIMING in wanted):
            time_folds(data, done, options.out)


if __name__ == "__main__":
    main()
