"""Run a plan: every fit in a process of its own, under a time limit, one line a record.

What a file has already is not measured again, so that a run can be stopped and continued.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.evidence import plans, records
from benchmarks.evidence.methods import registry
from benchmarks.evidence.plans import Job
from benchmarks.evidence.records import LIMIT, MISSING, OK

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Settings:
    """How records are measured.

    Attributes
    ----------
    data : Path or None
        Folder of the data sets; None: those that need no files.
    limit : float
        Seconds after which the process of one record is ended (start, fit and prediction).
    budget : float or None
        Seconds of a search for settings, for methods that take a budget; None: by the size of the
        set.
    threads : int
        Of every process.
    jobs : int
        Processes at a time.
    total : float or None
        Seconds of the whole run: nothing starts later, and what runs then is ended without a
        record, to be measured by the next run.
    """

    data: Path | None
    limit: float = 900.0
    budget: float | None = None
    threads: int = 2
    jobs: int = 1
    total: float | None = None


Measure = Callable[[Job, Settings], dict[str, Any]]


def pending(
    jobs: Iterable[Job], known: records.Records, *, again: bool = False, retry: bool = False
) -> list[Job]:
    """Return the jobs that have no record yet.

    Parameters
    ----------
    jobs : jobs
    known : Records
    again : bool
        All are measured again.
    retry : bool
        Those are measured again whose status is not "ok".
    """
    if again:
        return list(jobs)
    wanted = {None} if not retry else {None, LIMIT, MISSING, records.FAILED}
    return [job for job in jobs if known.done(job.key) in wanted]


def run(
    jobs: Sequence[Job],
    out: Path,
    settings: Settings,
    state: dict[str, Any],
    *,
    measure: Measure | None = None,
    again: bool = False,
    retry: bool = False,
    quiet: bool = False,
) -> int:
    """Measure what is missing and append it; return how many records were written."""
    measure = measure or in_process
    records.repair(out)
    known = records.read(out)
    head = records.run_line(
        state | {"threads": settings.threads, "jobs": settings.jobs, "budget_s": settings.budget}
    )
    if head["run"] not in known.runs:
        records.append(out, head)
    left = pending(jobs, known, again=again, retry=retry)
    if settings.jobs > 1:
        left = plans.largest_first(left)
    begin, written = time.monotonic(), 0
    times_ours = {m.name: m.times_ours for m in registry().values()}

    def work(job: Job) -> tuple[Job, dict[str, Any] | None]:
        time_left = settings.limit
        if settings.total is not None:
            time_left = min(time_left, settings.total - (time.monotonic() - begin))
            if time_left <= 0:
                return job, None
        factor = times_ours.get(job.method)
        used = replace(settings, limit=time_left)
        if factor is not None:
            ours = known.by_key.get((job.set, "table", job.seed), {}).get("fit_s")
            if ours is None:
                return job, None
            used = replace(used, budget=factor * ours)
        record = measure(job, used)
        if record["status"] == LIMIT and time_left < settings.limit:
            return job, None
        return job, record | {"run": head["run"], "limit_s": settings.limit}

    with shown(len(left), len(jobs), quiet) as tell:
        for job, record in _done(work, left, settings.jobs):
            if record is not None:
                records.append(out, record)
                known.by_key[job.key] = record
                tell(job, record)
                written += 1
    if written < len(left) and not quiet:
        print(f"{len(left) - written} records are left to the next run", flush=True)
    return written


def _done(
    work: Callable[[Job], tuple[Job, dict[str, Any] | None]], jobs: Sequence[Job], at_a_time: int
) -> Iterator[tuple[Job, dict[str, Any] | None]]:
    """Yield what is measured as it is done; Ctrl-C ends the processes that are running."""
    if at_a_time == 1:
        yield from map(work, jobs)
        return
    pool = ThreadPoolExecutor(at_a_time)
    try:
        for future in as_completed([pool.submit(work, job) for job in jobs]):
            yield future.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in list(_running):
            _end(process)
        raise
    pool.shutdown()


_running: set[subprocess.Popen[str]] = set()


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def in_process(job: Job, settings: Settings) -> dict[str, Any]:
    """Return the record that a process of its own measures; a time limit is a record too."""
    asked = json.dumps(
        {
            "set": job.set,
            "method": job.method,
            "seed": job.seed,
            "data": None if settings.data is None else str(settings.data),
            "threads": settings.threads,
            "budget": job.budget if settings.budget is None else settings.budget,
        }
    )
    threads = str(settings.threads)
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "NUMBA_NUM_THREADS": threads,
        "LOKY_MAX_CPU_COUNT": threads,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONWARNINGS": "ignore",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "0",
    }
    command = [sys.executable, "-m", "benchmarks.evidence", "one"]
    return finish(command, asked, environment, job, settings.limit)


def finish(
    command: Sequence[str], asked: str, environment: dict[str, str], job: Job, limit: float
) -> dict[str, Any]:
    """Run a command that prints a record in its last line; end it, and all it started, in time."""
    empty = {"set": job.set, "method": job.method, "seed": job.seed}
    start = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    _running.add(process)
    try:
        said, complaint = process.communicate(asked, timeout=limit)
    except subprocess.TimeoutExpired:
        _end(process)
        process.communicate()
        return empty | {"status": LIMIT, "seconds": time.perf_counter() - start}
    except BaseException:
        _end(process)
        process.communicate()
        raise
    finally:
        _running.discard(process)
    try:
        record: dict[str, Any] = json.loads(said.splitlines()[-1])
        record["status"]
    except (IndexError, ValueError, TypeError, KeyError):
        last = complaint.strip().splitlines()[-1:] or [""]
        text = f"the process ended with {process.returncode}: {last[0][:150]}"
        record = empty | {"status": records.FAILED, "text": text}
    return record | {"seconds": time.perf_counter() - start}


Tell = Callable[[Job, dict[str, Any]], None]


def shown(left: int, asked: int, quiet: bool) -> AbstractContextManager[Tell]:
    """Return a context that shows progress: a bar with rich, lines without it."""
    if quiet:
        return nullcontext(lambda job, record: None)
    print(f"{asked} records asked for, {asked - left} are there, {left} to measure", flush=True)
    try:
        return Bar(left)
    except ImportError:
        return nullcontext(lambda job, record: print(line(job, record), flush=True))


def line(job: Job, record: dict[str, Any]) -> str:
    """Return what is said about a record."""
    words = record["status"] if record["status"] != OK else f"error {record['error']:.2f}"
    if "fit_s" in record:
        words += f", fit {record['fit_s']:.1f} s"
    return f"{job.set} {job.method} seed {job.seed}: {words}"


class Bar:
    """A progress bar of rich with the time that is left."""

    def __init__(self, left: int) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self.task = self.bar.add_task("records", total=left)

    def __enter__(self) -> Tell:
        self.bar.__enter__()
        return self.tell

    def __exit__(self, *error: Any) -> None:
        self.bar.__exit__(*error)

    def tell(self, job: Job, record: dict[str, Any]) -> None:
        """Move the bar and print a line."""
        self.bar.console.print(line(job, record), highlight=False)
        self.bar.advance(self.task)
