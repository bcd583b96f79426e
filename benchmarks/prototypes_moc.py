"""Accuracy of minimum output coding against the number of prototypes.

    python -m benchmarks.prototypes_moc --data DIR [--sets let,lan,pen] [--factors 1,2]

C and gamma are those that the 2010 study has chosen with the printed number of prototypes (the
records of `python -m benchmarks.fixed_size2010`); the splits are its splits. Every result is
appended to the output as one JSON line; results already there are not computed again.
"""

import argparse
import time
from pathlib import Path

from benchmarks.chapter3 import describe_run
from benchmarks.fixed_size2010 import DEFAULT_OUTPUT
from benchmarks.study import records
from benchmarks.study.data_2010 import load_2010, split_2010
from lssvm import FixedSizeLSSVC

OUTPUT = Path("benchmarks/results/prototypes_moc.jsonl")
TUNED = "RBF FS-LSSVM (MOC)"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of <name>.parquet files")
    parser.add_argument("--sets", default="let,lan,pen")
    parser.add_argument("--factors", default="1,2", help="of the printed number of prototypes")
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
            part = split_2010(data, number)
            for factor in map(float, options.factors.split(",")):
                m = round(factor * data.sizes.n_prototypes)
                method = f"MOC, m={m}"
                if (name, number, method) in done:
                    continue
                model = FixedSizeLSSVC(
                    m,
                    C=chosen["C"],
                    gamma=chosen["gamma"],
                    multiclass="moc",
                    random_state=number,
                    n_jobs=1,
                )
                start = time.process_time()
                model.fit(part.X_train, part.y_train)
                accuracy = 100.0 * model.score(part.X_test, part.y_test)
                line = {"set": name, "randomisation": number, "method": method}
                line |= {"accuracy": round(accuracy, 4), "m": m, "C": model.C_}
                line |= {"gamma": model.gamma_, "cpu_seconds": time.process_time() - start}
                records.append(options.out, line)
                print(name, number, method, line["accuracy"], flush=True)


if __name__ == "__main__":
    main()
