"""Processes killed while they write: what was there stays whole, and leftovers go at the next run.

``python -m tests.fuzz.kills --seed 0 --kills 50 --seconds 600`` starts a process that saves models,
keeps a search in a checkpoint, fits with one or writes predictions, kills it (SIGKILL) at a random
moment, and looks at what lies in the folder: a file that is not whole is a failure, and so is one
that an unharmed run leaves behind after it, or a continued fit that differs from one in one go.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lssvm import LSSVC, FixedSizeLSSVR, load, save, scan
from lssvm.tuning import Losses
from lssvm.tuning.search import Batch, Checkpoint
from lssvm.tuning.searches import PathSearch

ROWS = 3000


def rows(n: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 0.1 * rng.normal(size=n)


# -- what a process does until it is killed --------------------------------------------------------


def save_models(folder: str, once: bool) -> None:
    """Save two models to one path in turn."""
    X, y = rows(400)
    models = [LSSVC(C).fit(X, y > 0) for C in (1.0, 10.0)]
    turn = 0
    ready(once)
    while True:
        save(models[turn % 2], os.path.join(folder, "model.lssvm"))
        turn += 1
        if once:
            return


def keep_search(folder: str, once: bool) -> None:
    """Go on with the checkpoint of a search."""
    path = os.path.join(folder, "search.jsonl")
    kept = Checkpoint(path, {"seed": 1})
    ready(once)
    gamma = float(len(kept._batches))
    while True:
        losses = Losses(np.full((40, 5), gamma), np.full(5, 0.2), np.full(40, gamma))
        kept.append(Batch("path", gamma, np.arange(1.0, 41.0), losses, seconds=gamma))
        gamma += 1.0
        if once:
            return


def write_predictions(folder: str, once: bool) -> None:
    """Write the predictions for a scan, in several formats in turn."""
    X, y = rows()
    model = FixedSizeLSSVR(20, C=1.0, gamma=0.5).fit(X, y)
    turn = 0
    ready(once)
    while True:
        ending = ("parquet", "csv", "npy", "arrow")[turn % 4]
        model.predict(scan(X), out=os.path.join(folder, f"predictions.{ending}"))
        turn += 1
        if once and turn == 4:
            return


def searched(checkpoint: str | None) -> FixedSizeLSSVR:
    """Return a model whose search takes about a second."""
    search = PathSearch(checkpoint=checkpoint)
    return FixedSizeLSSVR(150, search=search, random_state=0, n_jobs=1).fit(*rows())


def fit_from_checkpoint(folder: str, once: bool) -> None:
    """Fit with a checkpoint: a new one, or what is there once the process was killed."""
    kept, answer = (os.path.join(folder, name) for name in ("fit.jsonl", "answer.lssvm"))
    if not once:
        for path in (kept, answer):
            if os.path.exists(path):
                os.remove(path)
    ready(once)
    save(searched(kept), answer)
    if not once:
        time.sleep(60.0)


def ready(once: bool) -> None:
    """Tell the parent that writing begins."""
    if not once:
        print("ready", flush=True)


# -- what must hold after it -----------------------------------------------------------------------


def whole_model(folder: str) -> None:
    path = os.path.join(folder, "model.lssvm")
    if os.path.exists(path):
        X, _ = rows(400)
        assert load(path).C_ in (1.0, 10.0)
        assert np.all(np.isfinite(load(path).decision_function(X)))


def whole_search(folder: str) -> None:
    path = os.path.join(folder, "search.jsonl")
    if os.path.exists(path):
        kept = Checkpoint(path, {"seed": 1})
        count = len(open(path, encoding="utf-8").read().splitlines()) - 1
        for gamma in range(count):  # every batch up to the last one is there
            found = kept.find(float(gamma), np.arange(1.0, 41.0))
            assert found is not None and np.all(found.losses.fold == gamma)


def whole_predictions(folder: str) -> None:
    import pyarrow as pa
    from pyarrow import csv, parquet

    readers: dict[str, Callable[[str], Any]] = {
        "parquet": lambda path: parquet.read_table(path).num_rows,
        "csv": lambda path: csv.read_csv(path).num_rows,
        "npy": lambda path: len(np.load(path)),
        "arrow": lambda path: pa.ipc.open_file(path).read_all().num_rows,
    }
    for ending, count in readers.items():
        path = os.path.join(folder, f"predictions.{ending}")
        if os.path.exists(path):
            assert count(path) == ROWS, path


@cache
def in_one_go() -> FixedSizeLSSVR:
    """Return the model that was never interrupted."""
    return searched(None)


def whole_answer(folder: str) -> None:
    path = os.path.join(folder, "answer.lssvm")
    if os.path.exists(path):
        found, wanted = load(path), in_one_go()
        assert (found.C_, found.gamma_) == (wanted.C_, wanted.gamma_)
        np.testing.assert_array_equal(found.predict(rows()[0]), wanted.predict(rows()[0]))


TASKS: dict[str, tuple[Callable[[str, bool], None], Callable[[str], None]]] = {
    "save": (save_models, whole_model),
    "checkpoint": (keep_search, whole_search),
    "fit": (fit_from_checkpoint, whole_answer),
    "predictions": (write_predictions, whole_predictions),
}


@dataclass(frozen=True)
class Killed:
    """How many processes were killed, and in how many folders something half-written lay."""

    kills: int
    leftovers: int


def kill_once(task: str, folder: str, moment: float) -> None:
    """Start a process, let it work, and kill it after some seconds."""
    command = [sys.executable, "-m", "tests.fuzz.kills", "--task", task, "--folder", folder]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == "ready\n", f"the process of {task} said {line!r}"
        time.sleep(moment)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def run(seed: int, kills: int, seconds: float = 600.0, tasks: list[str] | None = None) -> Killed:
    """Kill processes until there were enough of them, or the time is over.

    Raises
    ------
    AssertionError
        For a file that is not whole, or one that is left behind.
    """
    draw, end = random.Random(seed), time.monotonic() + seconds
    names = sorted(TASKS) if tasks is None else tasks
    count = leftovers = 0
    with tempfile.TemporaryDirectory() as base:
        while count < kills and time.monotonic() < end:
            task = names[count % len(names)]
            folder = os.path.join(base, task)
            os.makedirs(folder, exist_ok=True)
            kill_once(task, folder, draw.uniform(0.0, 0.4))
            leftovers += any(name.endswith(".partial") for name in os.listdir(folder))
            try:
                TASKS[task][1](folder)  # what was there before is whole
                TASKS[task][0](folder, True)  # the next run goes through,
                left = [name for name in os.listdir(folder) if name.startswith(".")]
                assert not left, f"left behind: {left}"  # and removes what was left
                assert os.listdir(folder), "nothing was written"
                TASKS[task][1](folder)
            except BaseException as error:
                raise AssertionError(f"seed {seed}, kill {count} ({task}): {error}") from error
            count += 1
    return Killed(count, leftovers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--task", choices=sorted(TASKS))
    parser.add_argument("--folder")
    options = parser.parse_args()
    if options.task:
        TASKS[options.task][0](options.folder, False)
        return
    killed = run(options.seed, options.kills, options.seconds)
    told = {"seed": options.seed, "killed": killed.kills, "half-written": killed.leftovers}
    print(json.dumps(told), "nothing lost, nothing left behind")


if __name__ == "__main__":
    main()
