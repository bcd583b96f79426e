"""A stopped search that is continued gives the answer of one that was not stopped."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from tests.tuning.search_objectives import GENERAL, SurfaceObjective, bowl, rough

from lssvm._core.errors import InvalidInputError
from lssvm.tuning.objective import Losses
from lssvm.tuning.search import Batch, Checkpoint, Space
from lssvm.tuning.searches import CoupledAnnealing, GridSearch, PathSearch, make_search


def kept(search, path):
    """The search with a checkpoint; Ctrl-C ends it with what is best so far."""
    return replace(search, checkpoint=path, on_interrupt="keep")


def same(a, b):
    """Whether two results are equal bit for bit, up to wall time."""
    assert (a.C, a.gamma, a.loss) == (b.C, b.gamma, b.loss)
    assert (a.n_evaluations, a.n_points) == (b.n_evaluations, b.n_points)
    assert (a.interrupted, a.best_index) == (b.interrupted, b.best_index)
    assert a.cv_results.keys() == b.cv_results.keys()
    for name, column in a.cv_results.items():
        if name != "seconds":
            np.testing.assert_array_equal(column, b.cv_results[name], strict=name != "params")


@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.parametrize("where", ["interrupt_at", "interrupt_losses"])
@pytest.mark.parametrize("call", [2, 7])
def test_a_continued_run_equals_an_uninterrupted_one(name, where, call, tmp_path):
    search, path = make_search(name), tmp_path / "search.jsonl"
    whole = search.run(SurfaceObjective(rough), Space(), random_state=3)

    first = SurfaceObjective(rough, **{where: call})
    stopped = kept(search, path).run(first, Space(), random_state=3)
    assert stopped.interrupted
    second = SurfaceObjective(rough)
    continued = kept(search, path).run(second, Space(), random_state=3)
    same(continued, whole)

    # nothing is computed twice, and no point is built that is not needed
    assert not set(first.asked) & set(second.asked)
    assert len(first.asked) + len(second.asked) == whole.n_evaluations
    assert set(second.gammas) == {gamma for gamma, _ in second.asked}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", GENERAL)
def test_a_finished_run_is_replayed_without_the_objective(name, tmp_path):
    search, path = make_search(name), tmp_path / "search.jsonl"
    whole = kept(search, path).run(SurfaceObjective(rough), Space(), random_state=3)
    objective = SurfaceObjective(rough)
    again = kept(search, path).run(objective, Space(), random_state=3)
    same(again, whole)
    assert not objective.gammas
    assert again.cv_results["seconds"].tolist() == whole.cv_results["seconds"].tolist()
    assert again.seconds >= whole.cv_results["seconds"][-1]


def test_a_checkpoint_does_not_change_the_answer(tmp_path):
    for name in GENERAL:
        plain = make_search(name).run(SurfaceObjective(rough), Space(), random_state=3)
        path = tmp_path / f"{name}.jsonl"
        stored = kept(make_search(name), path).run(SurfaceObjective(rough), Space(), random_state=3)
        same(stored, plain)


def test_several_interruptions(tmp_path):
    path = tmp_path / "search.jsonl"
    for _ in range(3):
        objective = SurfaceObjective(rough, interrupt_losses=3)
        assert kept(PathSearch(), path).run(objective, Space()).interrupted
    continued = kept(PathSearch(), os.fspath(path)).run(SurfaceObjective(rough), Space())
    same(continued, PathSearch().run(SurfaceObjective(rough), Space()))


def test_an_unseeded_run_takes_the_seed_of_the_file(tmp_path):
    path = tmp_path / "search.jsonl"
    first = SurfaceObjective(rough, interrupt_losses=20)
    kept(CoupledAnnealing(), path).run(first, Space())
    second = SurfaceObjective(rough)
    kept(CoupledAnnealing(), path).run(second, Space())
    assert len(first.asked) == 19
    assert not set(first.asked) & set(second.asked)
    assert 130 <= len(second.asked) <= 160 - 19  # a pair may recur at a wall of the box


def test_every_evaluation_is_on_disk_when_the_next_one_starts(tmp_path):
    path = tmp_path / "search.jsonl"
    lines = []

    class Looks(SurfaceObjective):
        def losses(self, gamma, C):
            lines.append(len(path.read_text().splitlines()))
            return super().losses(gamma, C)

    kept(GridSearch(), path).run(Looks(bowl()), Space())
    assert lines == list(range(1, 10))  # settings, then one batch per gamma


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"search": CoupledAnnealing(evaluations=80)}, "search"),
        ({"space": Space(gamma_start=1.0 + 2**-52)}, "space"),
        ({"fingerprint": "other data"}, "fingerprint"),
        ({"random_state": 4}, "seed"),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused(changed, word, tmp_path):
    path = tmp_path / "search.jsonl"

    def run(search=None, space=None, **options):
        search = search or CoupledAnnealing()
        objective = SurfaceObjective(bowl())
        settings = {"random_state": 3, "fingerprint": "data", **options}
        return kept(search, path).run(objective, space or Space(), **settings)

    run()
    before = path.read_bytes()
    with pytest.raises(InvalidInputError, match=rf"other settings \({word}: "):
        run(**changed)
    assert path.read_bytes() == before
    run()


BATCH = {"stage": "grid", "gamma": 0.5, "seconds": 1.0, "C": [1.0], "fold": [[0.3]]}
BATCH |= {"weight": [1.0], "tie": [0.2]}
WRONG = [
    {"gamma": [0.5]},
    {"gamma": "0.5"},
    {"stage": ["grid"]},
    {"C": [1.0, 2.0]},
    {"C": [[1.0]]},
    {"C": [None]},
    {"C": [10**400]},
    {"fold": 0.3},
    {"fold": [[0.3, 0.4]]},
    {"weight": [2.0]},
    {"seconds": {}},
]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        "[1, 2]\n",
        "{}\n",
        '{"format": 1}\n{"stage": "grid"}\n',
        '{"format": 1}\n{"C":',
        "[" * 100_000,
        *('{"format": 1}\n' + json.dumps(BATCH | wrong) + "\n" for wrong in WRONG),
    ],
    ids=lambda text: text[:200],
)
def test_a_file_that_is_no_checkpoint_is_refused(text, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match="is not a checkpoint"):
        kept(GridSearch(), path).run(SurfaceObjective(bowl()), Space())
    assert path.read_text() == text


def test_a_file_of_another_format_is_refused(tmp_path):
    path = tmp_path / "search.jsonl"
    kept(GridSearch(), path).run(SurfaceObjective(bowl()), Space())
    header, *lines = path.read_text().splitlines()
    newer = {**json.loads(header), "format": 2}
    path.write_text("\n".join([json.dumps(newer), *lines]))
    with pytest.raises(InvalidInputError, match="format: 2 in the file, 1 now"):
        kept(GridSearch(), path).run(SurfaceObjective(bowl()), Space())


def test_a_missing_folder_is_named_before_anything_is_computed(tmp_path):
    objective = SurfaceObjective(bowl())
    with pytest.raises(InvalidInputError, match="make the folder"):
        kept(GridSearch(), tmp_path / "none" / "search.jsonl").run(objective, Space())
    assert not objective.gammas


def test_a_failed_write_leaves_the_last_file(tmp_path, monkeypatch):
    path = tmp_path / "search.jsonl"
    store = Checkpoint(path, {"seed": 1})
    C, one = np.array([1.0]), np.ones(1)
    store.append(Batch("grid", 0.5, C, Losses(np.array([[0.1]]), one, one), 1.0))
    before = path.read_bytes()

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="disk full"):
        store.append(Batch("grid", 0.7, C, Losses(np.array([[0.2]]), one, one), 2.0))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_numbers_come_back_bit_for_bit(tmp_path):
    path = tmp_path / "search.jsonl"
    fold = np.array([[0.1 + 0.2, np.nextafter(1.0, 2.0), 5e-324], [np.inf, -0.0, np.nan]])
    losses = Losses(fold, np.array([0.1, 0.2, 0.7]), np.array([1 / 3, np.nan]))
    gamma, C = float(np.nextafter(0.1, 1.0)), np.array([1e-300, np.pi])
    Checkpoint(path, {}).append(Batch("x", gamma, C, losses, 0.1))
    found = Checkpoint(path, {}).find(gamma, C)
    for name in ("fold", "weight", "tie"):
        assert getattr(found.losses, name).tobytes() == getattr(losses, name).tobytes()
    assert Checkpoint(path, {}).find(0.1, C) is None
    assert Checkpoint(path, {}).find(gamma, C[:1]) is None


def test_names_are_as_long_as_the_file_system_allows(tmp_path):
    path = tmp_path / ("s" * 250)
    expected = GridSearch().run(SurfaceObjective(bowl()), Space())
    for _ in range(2):  # written, then continued
        found = kept(GridSearch(), path).run(SurfaceObjective(bowl()), Space())
        assert (found.C, found.gamma) == (expected.C, expected.gamma)
    with pytest.raises(InvalidInputError, match="too long: give a shorter one"):
        kept(GridSearch(), tmp_path / ("s" * 300)).run(SurfaceObjective(bowl()), Space())
