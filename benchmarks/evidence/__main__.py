"""The command of the study: run, report, read, list.

python -m benchmarks.evidence run --data DIR --out FILE [--quick | --full]
[--sets ...] [--methods ...] [--seeds ...] [--jobs 16 --threads 1 --total 540]
python -m benchmarks.evidence report [--records FILE] [--check]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from benchmarks.evidence import methods, plans, running, sets

RECORDS = running.ROOT / "benchmarks" / "results" / "evidence.jsonl"


def main(arguments: list[str] | None = None) -> None:
    """Do what the command line asks for."""
    asked = _parser().parse_args(arguments)
    asked.work(asked)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.evidence",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="measure what has no record yet")
    words = "folder of the Parquet files; without it the sets that need none are measured"
    run.add_argument("--data", type=Path, help=words)
    run.add_argument("--out", type=Path, required=True, help="file of records; is appended to")
    run.add_argument("--quick", action="store_true", help="a subset, under 20 minutes")
    run.add_argument("--full", action="store_true", help="all of the study")
    groups = {"sets": plans.SET_GROUPS, "methods": [*methods.GROUPS, "all"]}
    for name, known in groups.items():
        words = f"names, or {', '.join(known)}; with spaces or commas between them"
        run.add_argument(f"--{name}", nargs="+", action=_Listed, help=words)
    words = "with spaces or commas between them; default: 10, 5 or 3 by the set's size"
    run.add_argument("--seeds", nargs="+", action=_Listed, help=words)
    run.add_argument("--limit", type=float, help="seconds of one record (quick: 120, else 900)")
    run.add_argument(
        "--budget", type=float, help="seconds of a search (quick: 10, else 10, 30 or 100 by size)"
    )
    run.add_argument("--threads", type=int, help="of a process; default: cores / jobs")
    run.add_argument("--jobs", type=int, default=1, help="processes at a time")
    run.add_argument(
        "--total", type=float, help="seconds of the whole run; what it cuts is no record"
    )
    run.add_argument("--again", action="store_true", help="also what has a record")
    run.add_argument("--retry", action="store_true", help="also what has a record that is not ok")
    run.set_defaults(work=_run)
    report = commands.add_parser("report", help="write the generated parts of the texts")
    report.add_argument("--records", type=Path, default=RECORDS)
    report.add_argument("--check", action="store_true", help="say what is stale, change nothing")
    report.set_defaults(work=_report)
    reading = commands.add_parser("read", help="print what a file of records says, as Markdown")
    reading.add_argument("records", type=Path)
    reading.set_defaults(work=_read)
    listing = commands.add_parser("list", help="print sets and methods")
    listing.set_defaults(work=_list)
    one = commands.add_parser("one", help="measure one record, asked for in JSON on stdin")
    one.set_defaults(work=_one)
    return parser


class _Listed(argparse.Action):
    """Names with spaces or commas between them."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        setattr(namespace, self.dest, [name for word in values for name in word.split(",") if name])


def _run(asked: argparse.Namespace) -> None:
    sys.path.insert(0, str(running.ROOT / "src"))  # the code of this tree is what is measured
    from benchmarks.evidence.machine import state

    # Asked to end, as by Ctrl-C: the process that measures must not stay behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    jobs = _jobs(asked)
    if asked.data is None:
        jobs = [job for job in jobs if job.needs_no_file]
    elif not asked.data.is_dir():
        raise SystemExit(f"--data {asked.data}: there is no such folder")
    if not jobs:
        plan = plans.quick() if asked.quick else plans.full()
        there = dict.fromkeys(job.set for job in plan if asked.data or job.needs_no_file)
        files = "" if asked.data else " without --data"
        raise SystemExit(f"Nothing to measure. Sets of the plan{files}: {', '.join(there)}.")
    threads = asked.threads or max(1, (os.cpu_count() or 1) // asked.jobs)
    settings = running.Settings(
        None if asked.data is None else asked.data.resolve(),
        asked.limit or (120.0 if asked.quick else 900.0),
        asked.budget or (10.0 if asked.quick else None),
        threads,
        asked.jobs,
        asked.total,
    )
    running.run(jobs, asked.out, settings, state(), again=asked.again, retry=asked.retry)


def _jobs(asked: argparse.Namespace) -> list[plans.Job]:
    """Return the plan, of a preset one the part with the named sets, methods and seeds."""
    seeds = None if asked.seeds is None else [int(seed) for seed in asked.seeds]
    if not (asked.quick or asked.full):
        names = plans.named_sets(asked.sets or ["all"])
        return plans.plan(names, methods.named(asked.methods or ["main"]), seeds)
    jobs = plans.quick() if asked.quick else plans.full()
    if asked.sets:
        names = plans.named_sets(asked.sets)
        jobs = [job for job in jobs if job.set in names]
    if asked.methods:
        wanted = {method.name for method in methods.named(asked.methods)}
        jobs = [job for job in jobs if job.method in wanted]
    if seeds is not None:
        jobs = [job for job in jobs if job.seed in seeds]
    return jobs


def _one(asked: argparse.Namespace) -> None:
    """Measure one record; only its line goes to stdout, whatever libraries print."""
    wanted = json.loads(sys.stdin.read())
    stdout = os.dup(1)
    os.dup2(2, 1)
    from benchmarks.evidence.measuring import measure

    method = methods.registry()[wanted["method"]]
    record = measure(
        None if wanted["data"] is None else Path(wanted["data"]),
        wanted["set"],
        method,
        wanted["seed"],
        threads=wanted["threads"],
        budget=wanted["budget"],
    )
    os.write(stdout, (json.dumps(record) + "\n").encode())
    os._exit(0)  # no library may spend time or crash at its exit


def _report(asked: argparse.Namespace) -> None:
    from benchmarks.evidence import report

    stale = report.write(running.ROOT, asked.records, check=asked.check)
    words = "stale" if asked.check else "written"
    print("\n".join(f"{words}: {name}" for name in stale) or "all is up to date")
    if asked.check and stale:
        raise SystemExit(1)


def _read(asked: argparse.Namespace) -> None:
    from benchmarks.evidence import records, report

    source = f"by python -m benchmarks.evidence read from `{asked.records.name}`"
    print(report.everything(records.read(asked.records), {}, source))


def _list(asked: argparse.Namespace) -> None:
    for name in (*sets.STUDY, *sets.TABLES):
        title = sets.TITLES.get(name, name)
        print(f"{name:20} {sets.task_of(name):8} {sets.size_of(name):7} {title}")
    for method in methods.registry().values():
        print(f"{method.name:28} {method.group:9} {method.inputs:12} {method.settings}")


if __name__ == "__main__":
    main()
