"""Measure what the entropy selection costs beside the fit, and what more trials would gain.

    python -m benchmarks.renyi_check --data DIR [--cases adu:500,mgt:500]
    python -m benchmarks.renyi_check                       # the table of what was measured

A case is a data set and a number of prototypes. The selection by entropy is timed as a part of a
plain fit (C and gamma given) and of the fit that tunes itself. It is then repeated from the same
start with 20 times as many trials, and with every exchange taken that gains anything. Results
already in the output are not computed again.
"""

import argparse
import time
from pathlib import Path
from typing import Any

from benchmarks.chapter3 import describe_run
from benchmarks.prototype_rules import REGRESSION, Timed
from benchmarks.study import records
from benchmarks.study.frames import draw, load
from lssvm import FixedSizeLSSVC, FixedSizeLSSVR
from lssvm.prototypes import RenyiEntropy, select_prototypes

CASES = "adu:500,mgt:500,mgt:1000,spa:500,let:500,ftc:500,shu:500,protein:500,kin8nm:500"
MAX_TRAIN = 100_000
TIMES = 20
OUTPUT = Path("benchmarks/results/renyi_check.jsonl")
TABLE = Path("benchmarks/results/renyi_check.md")


def measure(folder: Path, name: str, m: int) -> dict[str, Any]:
    """Return times and entropies of one case."""
    regression = name in REGRESSION
    part = draw(load(folder, name, regression=regression), 0, MAX_TRAIN, 0)
    X, y = part.X_train, part.y_train
    kind: Any = FixedSizeLSSVR if regression else FixedSizeLSSVC
    timed = Timed(RenyiEntropy())
    options = {"selection": timed, "n_jobs": 1, "random_state": 0}
    options |= {} if regression else {"multiclass": "ova"}
    seconds = {}
    for fit, given in (("tuned", {}), ("plain", {"C": 1.0, "gamma": "scale"})):
        model = kind(m, **options, **given)
        start = time.process_time()
        model.fit(X, y)
        seconds[f"{fit}_seconds"] = time.process_time() - start
        seconds[f"{fit}_selection_seconds"] = timed.seconds
    labels = None if regression else y
    short = select_prototypes(X, m, RenyiEntropy(), y=labels, random_state=0)
    patient = RenyiEntropy(tol=1e-9, max_trials=TIMES * short.n_trials)
    long = select_prototypes(X, m, patient, y=labels, random_state=0)
    return seconds | {
        "n": len(y),
        "d": X.shape[1],
        "trials": short.n_trials,
        "swaps": short.n_swaps,
        "entropy_start": float(short.entropy_trace[0]),
        "entropy": float(short.entropy_trace[-1]),
        "entropy_long": float(long.entropy_trace[-1]),
        "trials_long": long.n_trials,
    }


def table(path: Path) -> str:
    """Return the table of a file of results as Markdown."""
    lines = [HEAD]
    for (name, m, _), r in records.read(path).items():
        rise = r["entropy_long"] - r["entropy"]
        cells = [
            *(name, f"{r['n']:,}", r["d"], f"{m:,}", f"{r['trials']:,}", f"{r['swaps']:,}"),
            f"{r['tuned_selection_seconds']:.2f} s",
            f"{100 * r['plain_selection_seconds'] / r['plain_seconds']:.1f} %",
            f"{100 * r['tuned_selection_seconds'] / r['tuned_seconds']:.1f} %",
            *(f"{r[key]:.3f}" for key in ("entropy_start", "entropy", "entropy_long")),
            f"{100 * rise / abs(r['entropy']):.2f} %",
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


HEAD = f"""# The entropy selection compared with the fit

`python -m benchmarks.renyi_check --data DIR`

Wanted: at most a tenth of the fit's time, and an entropy that {TIMES} times as many trials raise by
under 1 %. Processor seconds on one thread; the plain fit has C and gamma given, the tuned fit is the
estimator's default (several classes: one against all). Entropies in nats, of standardised columns:
of the random start, as selected, and after {TIMES} times as many trials that may take every
exchange (the default leaves those alone that gain less than 0.1/m). Two thirds of the rows, at most
{MAX_TRAIN:,}.

| set | n | d | m | trials | swaps | selection | of a plain fit | of the tuned fit | start | H | H, long | rise |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""  # noqa: E501


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of <name>.parquet files")
    parser.add_argument("--cases", default=CASES, help="comma-separated set:prototypes")
    parser.add_argument("--out", type=Path, default=OUTPUT)
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args(arguments)
    if options.data is not None:
        records.repair(options.out)
        done = set(records.read(options.out))
        records.append(options.out, {"run": describe_run(MAX_TRAIN)})
        for case in options.cases.split(","):
            name, m = case.split(":")
            if (name, int(m), "renyi") not in done:
                result = measure(options.data, name, int(m))
                key = {"set": name, "randomisation": int(m), "method": "renyi"}
                records.append(options.out, key | result)
                print(case, result, flush=True)
    options.table.write_text(table(options.out), encoding="utf-8")


if __name__ == "__main__":
    main()
