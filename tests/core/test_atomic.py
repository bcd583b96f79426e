"""A file is there when it is complete, or not at all, whoever else is in the folder."""

from __future__ import annotations

import errno
import os
import secrets
import signal
import stat
import subprocess
import sys
import threading

import pytest

from lssvm._core import atomic
from lssvm._core.atomic import remove_leftovers, replacing
from lssvm._core.errors import InvalidInputError

TOKEN = "0123456789abcdef"


def write(path, text, **options):
    with replacing(path, **options) as name, open(name, "w", encoding="utf-8") as file:
        file.write(text)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture
def mask():
    """Give a function that sets the mask of new files; the old one comes back."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def test_a_file_appears_and_is_replaced(tmp_path):
    path = tmp_path / "a.txt"
    with replacing(path) as name:
        assert os.path.dirname(name) == str(tmp_path)
        assert os.listdir(tmp_path) == [os.path.basename(name)]
        with open(name, "w") as file:
            file.write("one")
        assert not path.exists()
    write(path, "two")
    assert path.read_text() == "two"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_nothing_is_left_of_what_failed(error, tmp_path):
    write(tmp_path / "a", "old")
    with (
        pytest.raises(error),
        replacing(tmp_path / "a") as name,
        open(name, "w") as file,
    ):
        file.write("half")
        raise error
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_new_files_have_the_mode_of_the_mask_and_private_ones_are_private(tmp_path, mask):
    write(tmp_path / "open", "")
    write(tmp_path / "private", "", private=True)
    assert (mode(tmp_path / "open"), mode(tmp_path / "private")) == (0o644, 0o600)
    mask(0o277)
    write(tmp_path / "stricter", "", private=True)
    assert mode(tmp_path / "stricter") == 0o400
    mask(0o027)
    write(tmp_path / "group", "")
    assert mode(tmp_path / "group") == 0o640


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("kept", [0o600, 0o640, 0o664, 0o444])
def test_the_mode_of_the_old_file_stays(kept, private, tmp_path, mask):
    write(tmp_path / "a", "old")
    os.chmod(tmp_path / "a", kept)
    with replacing(tmp_path / "a", private=private) as name:
        assert mode(name) == 0o600  # nobody reads along meanwhile
    assert mode(tmp_path / "a") == kept


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "model").write_text("old")
    os.symlink("model", tmp_path / "there" / "second")
    os.symlink(tmp_path / "there" / "second", tmp_path / "link")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "second").is_symlink()
    assert (tmp_path / "there" / "model").read_text() == "new"
    assert not (tmp_path / "there" / "model").is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["link", "there"]
    os.symlink(tmp_path / "there" / "nothing yet", tmp_path / "early")
    write(tmp_path / "early", "made")
    assert (tmp_path / "there" / "nothing yet").read_text() == "made"


def test_a_planted_link_is_not_followed(tmp_path, monkeypatch):
    (tmp_path / "victim").write_text("precious")
    os.symlink(tmp_path / "victim", tmp_path / f".lssvm-{TOKEN}.partial")
    tokens = iter([TOKEN, "f" * 16])
    monkeypatch.setattr(secrets, "token_hex", lambda size: next(tokens))
    write(tmp_path / "a", "new")
    assert next(tokens, None) is None
    assert (tmp_path / "victim").read_text() == "precious"
    assert (tmp_path / "a").read_text() == "new"
    assert not (tmp_path / "a").is_symlink()


def test_names_are_not_predictable(tmp_path):
    names = set()
    for _ in range(20):
        with replacing(tmp_path / "a") as name:
            names.add(name)
    assert len(names) == 20
    assert all(atomic._PATTERN.fullmatch(os.path.basename(name)) for name in names)


def test_a_file_that_was_exchanged_meanwhile_is_noticed(tmp_path):
    write(tmp_path / "a", "old")
    (tmp_path / "b").write_text("other")
    with (
        pytest.raises(InvalidInputError, match="moved meanwhile"),
        replacing(tmp_path / "a") as name,
    ):
        os.replace(tmp_path / "b", name)
    assert (tmp_path / "a").read_text() == "old"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "is not the name of a file"),
        ("a\0b", r"a\\x00b' is not the name of a file"),
        ("no folder\x1b[2J/a", r"folder .*no folder\\x1b\[2J does not exist: make it first"),
        ("folder", "is a folder"),
        ("pipe", "is no ordinary file"),
        ("loop", "is no ordinary file"),
        ("x" * 300, "too long"),
    ],
)
def test_what_cannot_be_written_is_refused(name, problem, tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    os.symlink("loop", tmp_path / "loop")
    path = os.path.join(tmp_path, name) if name else name
    with pytest.raises(InvalidInputError, match=problem):
        write(path, "new")
    assert sorted(os.listdir(tmp_path)) == ["folder", "loop", "pipe"]


def test_the_longest_names_can_be_written(tmp_path):
    write(tmp_path / ("x" * 255), "new")
    assert os.listdir(tmp_path) == ["x" * 255]


def test_a_full_disk_is_named_and_leaves_the_old_file(tmp_path, monkeypatch):
    write(tmp_path / "a", "old")

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"no room is left on the disk: free some.*nothing was wri"):
        write(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


LIMITED = """
import resource, sys
from lssvm._core.atomic import replacing
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with replacing(sys.argv[1]) as name, open(name, "wb") as file:
        file.write(bytes(200_000))
except OSError as error:
    print(error)
"""


def test_a_file_that_may_not_grow_is_not_half_written(tmp_path):
    write(tmp_path / "a", "old")
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    assert "no room is left" in done.stdout, done.stderr
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


SLOW = """
import sys, time
from lssvm._core.atomic import replacing
with replacing(sys.argv[1]) as name, open(name, "w") as file:
    file.write("half")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_process_leaves_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    write(tmp_path / "a", "old")
    command = [sys.executable, "-c", SLOW, str(tmp_path / "a")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())
    try:
        assert process.stdout.readline() == "writing\n"
        (partial,) = set(os.listdir(tmp_path)) - {"a"}
        assert remove_leftovers(str(tmp_path)) == []
        write(tmp_path / "b", "beside it")
        assert (tmp_path / partial).read_text() == "half"
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert (tmp_path / "a").read_text() == "old"
    assert (tmp_path / partial).exists()
    write(tmp_path / "c", "later")
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c"]


def test_files_of_other_names_kinds_and_users_are_left_alone(tmp_path):
    others = [".lssvm-0123.partial", ".a.123.partial", "lssvm-model", f".lssvm-{TOKEN}.partial.b"]
    for name in others:
        (tmp_path / name).write_text("mine")
    (tmp_path / f".lssvm-{TOKEN}.partial").mkdir()
    os.mkfifo(tmp_path / f".lssvm-{TOKEN[::-1]}.partial")
    if os.geteuid() == 0:
        foreign = tmp_path / f".lssvm-{'a' * 16}.partial"
        foreign.write_text("another's")
        os.chown(foreign, 65534, 65534)
    before = sorted(os.listdir(tmp_path))
    assert remove_leftovers(str(tmp_path)) == []
    assert sorted(os.listdir(tmp_path)) == before
    (tmp_path / f".lssvm-{'b' * 16}.partial").write_text("left")
    assert remove_leftovers(str(tmp_path)) == [f".lssvm-{'b' * 16}.partial"]
    assert remove_leftovers(str(tmp_path / "nowhere")) == []


@pytest.fixture
def windows(monkeypatch):
    """No locks of files, and no file that is open can be removed or renamed."""
    opened, close, unlink, replace = {}, os.close, os.unlink, os.replace

    def open_(path, *options, _open=os.open, **others):
        handle = _open(path, *options, **others)
        opened[handle] = os.path.realpath(path)
        return handle

    def close_(handle):
        opened.pop(handle, None)
        close(handle)

    def refuse(change):
        def changed(path, *others):
            if os.path.realpath(path) in opened.values():
                raise PermissionError(13, "used by another process")
            return change(path, *others)

        return changed

    monkeypatch.setattr(atomic, "fcntl", None)
    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(os, "close", close_)
    monkeypatch.setattr(os, "unlink", refuse(unlink))
    monkeypatch.setattr(os, "replace", refuse(replace))


def test_without_locks_only_old_files_are_leftovers(tmp_path, windows):
    name = f".lssvm-{TOKEN}.partial"
    (tmp_path / name).write_text("perhaps in use")
    write(tmp_path / "a", "new")
    assert (tmp_path / name).exists()
    os.utime(tmp_path / name, (0, 0))
    write(tmp_path / "a", "newer")
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give files away")
def test_a_link_of_another_user_in_a_shared_folder_is_refused(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    (tmp_path / "victim").write_text("precious")
    os.symlink(tmp_path / "victim", shared / "out")
    os.chmod(shared, 0o1777)
    os.chown(shared / "out", 65534, 65534, follow_symlinks=False)
    with pytest.raises(InvalidInputError, match="another user has put into a folder that all"):
        write(shared / "out", "new")
    assert (tmp_path / "victim").read_text() == "precious"
    os.chown(shared / "out", 0, 0, follow_symlinks=False)
    write(shared / "out", "new")
    assert (tmp_path / "victim").read_text() == "new"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give files away")
def test_the_owner_of_the_old_file_stays(tmp_path):
    write(tmp_path / "a", "old")
    os.chown(tmp_path / "a", 65534, 65534)
    write(tmp_path / "a", "new")
    about = os.stat(tmp_path / "a")
    assert (about.st_uid, about.st_gid) == (65534, 65534)


def test_a_group_that_cannot_be_passed_on_gets_no_rights(tmp_path, monkeypatch, mask):
    write(tmp_path / "a", "old")
    os.chmod(tmp_path / "a", 0o664)
    about = os.stat(tmp_path / "a")

    def refuse(*arguments):
        raise PermissionError

    monkeypatch.setattr(os, "chown", refuse)
    values = list(about)
    values[5] += 1  # the group
    assert atomic._with_owner(os.open(tmp_path / "a", 0), os.stat_result(values), 0o664) == 0o604
    assert atomic._with_owner(os.open(tmp_path / "a", 0), about, 0o664) == 0o664


def test_four_threads_that_write_one_path_lose_nothing(tmp_path):
    path, problems, seen = tmp_path / "a", [], []
    done = threading.Event()

    def save(thread):
        try:
            for i in range(60):
                write(path, f"{thread} {i} " + "x" * 5000)
        except Exception as error:
            problems.append(error)

    def read():
        while not done.is_set():
            if path.exists():
                seen.append(len(path.read_text().split()[2]))

    threads = [threading.Thread(target=save, args=(i,)) for i in range(4)]
    reader = threading.Thread(target=read)
    for thread in [*threads, reader]:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    reader.join()
    assert problems == []
    assert set(seen) == {5000}
    assert path.read_text().split()[1] == "59"  # the last save of one of the threads
    assert os.listdir(tmp_path) == ["a"]


def test_several_processes_that_write_one_folder_lose_nothing(tmp_path):
    code = (
        "import sys\nfrom lssvm._core.atomic import replacing\n"
        "for i in range(40):\n"
        "    with replacing(sys.argv[1]) as name, open(name, 'w') as file:\n"
        "        file.write('x' * 5000)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a")]
    running = [subprocess.Popen(command, env=environment(), stderr=-1) for _ in range(3)]
    ends = [(process.communicate()[1], process.returncode) for process in running]
    assert ends == [(b"", 0)] * 3
    assert (tmp_path / "a").read_text() == "x" * 5000
    assert os.listdir(tmp_path) == ["a"]
