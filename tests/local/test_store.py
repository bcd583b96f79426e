import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from lssvm._core.errors import ScratchError
from lssvm.local import LeafStore
from lssvm.local.store import remove_leftovers


def fill(store, n, n_leaves, seed=0):
    rng = np.random.default_rng(seed)
    part = rng.integers(n_leaves, size=n)
    X, Y, weight = rng.normal(size=(n, 3)), rng.normal(size=(n, 2)), rng.integers(3, size=n) * 0.5
    for begin in range(0, n, 70):
        at = slice(begin, begin + 70)
        store.add(store.placed(part[at], X[at], Y[at], weight[at], start=begin))
    return part, X, Y, weight


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("n_leaves", [1, 5, 300])  # 300: several parts share a file
def test_every_part_gets_its_rows(scratch, on_disk, n_leaves):
    with LeafStore(n_leaves, 3, 2, n_rows=500, scratch=on_disk) as store:
        part, X, Y, weight = fill(store, 500, n_leaves)
        assert bool(list(scratch.iterdir())) == on_disk
        seen = []
        for some in store.leaves():
            rows = np.flatnonzero((part == some.leaf) & (weight > 0))
            np.testing.assert_array_equal(some.positions, rows)
            np.testing.assert_array_equal(some.rows.X, X[rows].astype(np.float32))
            np.testing.assert_array_equal(some.rows.Y, Y[rows])
            np.testing.assert_array_equal(some.rows.weight, weight[rows])
            seen.append(some.leaf)
    assert seen == sorted(set(part[weight > 0].tolist()))
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("n_leaves", [5, 300])
def test_some_leaves_are_read_first_and_the_others_later(scratch, on_disk, n_leaves):
    with LeafStore(n_leaves, 3, 2, n_rows=500, scratch=on_disk) as store:
        part, X, _, weight = fill(store, 500, n_leaves)
        chosen = np.array([0, n_leaves // 2, n_leaves - 1])
        first = list(store.leaves(only=chosen))
        seen = {some.leaf for some in first}
        rest = list(store.leaves(but=seen))
        assert seen <= set(chosen.tolist()) and not seen & {some.leaf for some in rest}
        for some in first + rest:
            rows = np.flatnonzero((part == some.leaf) & (weight > 0))
            np.testing.assert_array_equal(some.positions, rows)
            np.testing.assert_array_equal(some.rows.X, X[rows].astype(np.float32))
        assert sum(len(some.positions) for some in first + rest) == np.count_nonzero(weight)


def test_the_folder_is_private_and_goes_when_something_fails(scratch):
    with pytest.raises(RuntimeError), LeafStore(2, 3, 2, n_rows=9, scratch=True) as store:
        fill(store, 9, 2)
        (folder,) = scratch.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        raise RuntimeError
    assert not list(scratch.iterdir())


def test_folders_of_killed_processes_are_removed(scratch):
    code = (
        "import os, signal\n"
        "from lssvm.local import LeafStore\n"
        "store = LeafStore(2, 3, 2, n_rows=9, scratch=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(scratch)}, check=False
    )
    assert done.returncode == -9
    (left,) = scratch.iterdir()
    other = scratch / "lssvm-leaves-mine"  # not made by us
    other.mkdir()
    alive = scratch / f"lssvm-leaves-{os.getppid()}-abc"
    alive.mkdir()
    remove_leftovers()
    assert not left.exists()
    assert other.exists() and alive.exists()


def test_no_signal_is_sent_where_it_would_be_ctrl_c(scratch, monkeypatch):
    def kill(process, number):
        raise AssertionError("a signal was sent")

    folder = scratch / "lssvm-leaves-123-abc"
    folder.mkdir()
    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setattr(sys, "platform", "win32")
    remove_leftovers()
    assert folder.exists()


def test_no_room_is_said_before_the_work(scratch, monkeypatch):
    usage = namedtuple("usage", "total used free")(100, 50, 50)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(ScratchError, match="TMPDIR"):
        LeafStore(2, 3, 2, n_rows=1000, scratch=True)
    assert not list(scratch.iterdir())


def test_a_disk_that_fills_up_is_an_error_that_names_the_folder():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    with LeafStore(1, 3, 2, n_rows=9, scratch=True) as store:
        store._files[0].close()
        store._files[0] = open("/dev/full", "wb", buffering=0)
        with pytest.raises(ScratchError, match="lssvm-leaves"):
            fill(store, 9, 1)
