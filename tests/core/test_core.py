"""Memory, randomness, threads, progress."""

import io
import threading

import joblib
import numpy as np
import pytest

from lssvm._core import blocks
from lssvm._core.arrays import get_namespace, is_sparse, to_numpy
from lssvm._core.blocks import (
    as_bytes,
    available_memory,
    block_rows,
    n_threads,
    require,
    run_blocks,
    slices,
)
from lssvm._core.errors import InvalidInputError, LSSVMError, MemoryBudgetError
from lssvm._core.progress import Progress, listening
from lssvm._core.random import as_generator


@pytest.mark.parametrize(
    ("given", "wanted"),
    [(1000, 1000), ("1 kB", 1000), ("2 MiB", 2 * 2**20), ("1.5GB", 1_500_000_000), (2e3, 2000)],
)
def test_budgets(given, wanted):
    assert as_bytes(given) == wanted


@pytest.mark.parametrize(
    "bad", [0, -1, [1], float("inf"), float("nan"), "much", "3 apples", "1.2.3 GB", True, "0 GB"]
)
def test_bad_budgets(bad):
    with pytest.raises(InvalidInputError, match="memory_budget"):
        as_bytes(bad)


def test_default_budget_is_a_part_of_what_is_free(monkeypatch):
    monkeypatch.setattr(blocks, "available_memory", lambda: 10**9)
    assert as_bytes(None) == 7 * 10**8


def test_available_memory_is_positive():
    assert available_memory() >= 256 * 2**20


def test_block_rows():
    assert block_rows(1000, 10**6, n_rows=10**6) == 250
    assert block_rows(10**9, 10, n_rows=50) == 1
    assert block_rows(1, 10**9, n_rows=50) == 50


def test_require():
    require(10, 10, what="x", advice="y")
    with pytest.raises(MemoryBudgetError, match="Use less"):
        require(11, 10, what="It", advice="Use less.")
    assert issubclass(MemoryBudgetError, (MemoryError,)) and issubclass(
        MemoryBudgetError, LSSVMError
    )


def test_generators():
    draws = [as_generator(np.random.RandomState(3)).integers(100, size=5) for _ in range(2)]
    np.testing.assert_array_equal(*draws)
    generator = np.random.default_rng(0)
    assert as_generator(generator) is generator
    assert isinstance(as_generator(None), np.random.Generator)
    assert as_generator(np.int64(3)).integers(100) == as_generator(3).integers(100)


@pytest.mark.parametrize("bad", [-1, "seed", 1.5])
def test_bad_random_state(bad):
    with pytest.raises(InvalidInputError, match="random_state"):
        as_generator(bad)


@pytest.mark.parametrize("threads", [1, 4])
def test_run_blocks_keeps_order(threads):
    assert run_blocks(lambda s: s.start, slices(10, 3), threads) == [0, 3, 6, 9]


def test_short_work_starts_no_threads():
    def who(item):
        return threading.get_ident()

    here = {threading.get_ident()}
    assert set(run_blocks(who, range(8), 2, operations=1e3)) == here
    assert not set(run_blocks(who, range(8), 2, operations=1e12)) & here


def test_cores_are_as_joblib_counts_them(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert n_threads(None) == 1 and n_threads(-1) == 1 and n_threads(3) == 3


def test_threads():
    assert n_threads(2) == 2 and n_threads(-1) == n_threads(None) and n_threads(-1000) == 1
    for bad in (0, "all", True):
        with pytest.raises(InvalidInputError, match="n_jobs"):
            n_threads(bad)


def test_namespace():
    assert get_namespace(None, 1.0, np.ones(1)) is get_namespace()
    assert not is_sparse(np.ones(1))
    strict = pytest.importorskip("array_api_strict")
    assert get_namespace(strict.ones(1)).__name__.startswith("array_api_strict")
    np.testing.assert_array_equal(to_numpy(strict.ones(2)), np.ones(2))


def test_progress_is_silent_or_rationed():
    event = {"stage": "grid", "n_evaluations": 1, "planned": 9, "best_loss": None, "elapsed": 0.0}
    quiet, calm = io.StringIO(), io.StringIO()
    Progress(0, quiet)(event)
    assert quiet.getvalue() == ""
    progress = Progress(1, calm)
    for _ in range(5):
        progress(event)
    assert calm.getvalue().count("\n") == 1 and "1/9" in calm.getvalue()
    progress(event | {"stage": "done"})
    assert "done" in calm.getvalue()


def test_progress_rewrites_its_line_on_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    progress = Progress(1, screen)
    progress({"stage": "grid", "n_evaluations": 1, "elapsed": 0.0})
    progress({"stage": "done", "n_evaluations": 2, "elapsed": 0.1})
    assert screen.getvalue().count("\r") == 2 and screen.getvalue().endswith("\n")


def test_progress_in_a_notebook_has_no_control_codes_and_covers_what_was_longer(monkeypatch):
    class Notebook(io.StringIO):
        pass

    Notebook.__module__ = "ipykernel.iostream"
    page = Notebook()
    progress = Progress(1, page)
    event = {"stage": "grid", "n_evaluations": 3, "planned": 6, "elapsed": 90.0, "best_loss": -0.5}
    progress(event | {"best_C": 1.0, "best_gamma": 0.25})
    progress({"stage": "done", "n_evaluations": 6, "planned": 6, "elapsed": 91.0})
    first, second = page.getvalue().split("\r")[1:]
    assert first == (
        "lssvm: grid, [#####.....] 3/6 evaluations, best score 0.5 at C=1, gamma=0.25, 1:30, "
        "at most 1:30 left"
    )
    assert "\x1b" not in page.getvalue()
    assert second.rstrip() == "lssvm: done, 6/6 evaluations, 1:31"
    assert len(second) == len(first) + 1 and second.endswith("\n")


def test_progress_fits_a_narrow_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("COLUMNS", "40")
    screen = Terminal()
    Progress(1, screen)({"stage": "grid", "n_evaluations": 1, "planned": 60, "elapsed": 5.0})
    assert len(screen.getvalue().removeprefix("\r\x1b[2K")) == 39


def test_progress_in_a_log_says_how_long_it_may_take():
    log = io.StringIO()
    progress = Progress(1, log)
    progress({"stage": "path", "n_evaluations": 20, "planned": 60, "elapsed": 3600.0})
    assert log.getvalue() == "lssvm: path, 20/60 evaluations, 1:00:00, at most 2:00:00 left\n"


def test_progress_in_a_log_has_at_most_one_line_per_second(monkeypatch):
    clock = iter([0.0, 0.4, 0.99, 1.0, 1.9, 1.95])
    monkeypatch.setattr("lssvm._core.progress.time.monotonic", lambda: next(clock))
    progress = Progress(1, log := io.StringIO())
    for number in range(5):
        progress({"text": f"step {number}"})
    progress({"stage": "done", "text": "the last"})  # is shown in any case
    assert log.getvalue().splitlines() == ["lssvm: step 0", "lssvm: step 3", "lssvm: the last"]


def test_listeners_hear_every_event_while_they_listen():
    heard = []
    with listening(heard.append):
        Progress(0)({"stage": "a"})
    Progress(0)({"stage": "b"})
    assert heard == [{"stage": "a"}]


def test_the_number_of_threads_follows_joblibs_configuration():
    with joblib.parallel_config(n_jobs=3):
        assert (n_threads(None), n_threads(2)) == (3, 2)
    with joblib.parallel_config(n_jobs=-1):
        assert n_threads(None) == joblib.cpu_count()
    assert n_threads(None) == joblib.cpu_count()
