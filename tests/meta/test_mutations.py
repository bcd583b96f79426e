"""The deliberate changes of numerical lines can be made, and their tests are there."""

from pathlib import Path

import pytest
from tests.fuzz.mutations import MUTATIONS, PACKAGE, ROOT
from tests.fuzz.places import NotOnePlace, find

FOLDERS = "solvers kernels tuning reductions greedy uncertainty backends codes local"
SOURCE = """
def first(weights, lam):
    return weights[:, None] * lam[:, None] ** 2


class Model:
    def first(self, a, b):
        total = a + 1.0 / b
        return total * (a + 1.0 / a)


LIMITS = (1, 2)
"""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.function}: {m.new}")
def test_each_change_can_be_made_at_one_place_and_has_tests(mutation):
    place = mutation.place()
    before, after = place.path.read_text(encoding="utf-8"), place.changed(mutation.new)
    assert before != after
    compile(after, str(place.path), "exec")
    assert mutation.tests and all((ROOT / "tests" / name).exists() for name in mutation.tests)


def test_all_numerical_folders_are_among_them():
    assert len(MUTATIONS) >= 60
    touched = {m.place().path.relative_to(ROOT / PACKAGE).parts[0] for m in MUTATIONS}
    there = {path.name for path in (ROOT / PACKAGE).iterdir()}
    assert {*FOLDERS.split(), "fitting"} & there <= touched


@pytest.fixture
def package(tmp_path):
    Path(tmp_path, "module.py").write_text(SOURCE)
    return tmp_path


@pytest.mark.parametrize(
    ("function", "old", "new", "line"),
    [
        ("first", "A[:, None] * B[:, None] ** 2", "A[:, None] * B[:, None]",
         "return (weights[:, None] * lam[:, None])"),
        ("Model.first", "A = B + 1.0 / C", "A = B - 1.0 / C", "total = a - 1.0 / b"),
        ("Model.first", "A + 1.0 / A", "A", "return total * ((a))"),
        ("gone", "A * (B + C)", "A + (B + C)", "return (total + (a + 1.0 / a))"),
        ("(top)", "(1, A)", "(3, A)", "LIMITS = ((3, 2))"),
    ],
)  # fmt: skip
def test_a_change_is_made_where_its_meaning_is(package, function, old, new, line):
    text = find(package, function, old).changed(new)
    assert line in text and len(text.splitlines()) == len(SOURCE.splitlines())


@pytest.mark.parametrize(
    ("function", "old", "times"),
    [("Model.first", "A + 1.0 / B", 2), ("first", "A @ B", 0), ("gone", "A + 1.0 / B", 2)],
)
def test_what_is_not_at_one_place_is_refused(package, function, old, times):
    with pytest.raises(NotOnePlace, match=f"occurs {times} times"):
        find(package, function, old)


def test_one_of_several_places_is_taken_by_its_number(package):
    text = find(package, "Model.first", "A + 1.0 / B", at=1).changed("A")
    assert "total = a + 1.0 / b" in text and "return total * ((a))" in text
