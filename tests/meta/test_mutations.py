"""The deliberate changes of numerical lines can be made, and their tests are there."""

from pathlib import Path

import pytest
from tests.fuzz.mutations import MUTATIONS, ROOT

FOLDERS = "moments solvers kernels tuning reductions greedy uncertainty backends codes local"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.file}: {m.new[:40]}")
def test_each_change_can_be_made_at_one_place_and_has_tests(mutation):
    text = (ROOT / mutation.path).read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1
    assert mutation.old != mutation.new
    assert all((ROOT / "tests" / name).exists() for name in mutation.tests)
    compile(text.replace(mutation.old, mutation.new), str(mutation.path), "exec")


def test_all_numerical_folders_are_among_them():
    assert len(MUTATIONS) >= 40
    touched = {Path(mutation.file).parts[0] for mutation in MUTATIONS}
    assert set(FOLDERS.split()) | {"fitting"} <= touched
