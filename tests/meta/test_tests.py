"""Every test of the suite can fail."""

from __future__ import annotations

import pytest
from tests.meta.assert_rules import silent_tests, unmarked_tests
from tests.meta.tree import TESTS

FILES = sorted(TESTS.rglob("test_*.py"))


TEXTS = {path: path.read_text(encoding="utf-8") for path in FILES}


def test_every_test_asserts_something():
    assert [t for path, text in TEXTS.items() for t in silent_tests(path.name, text)] == []


def test_every_test_that_needs_torch_is_marked():
    assert [t for p, text in TEXTS.items() for t in unmarked_tests(p.name, text, "torch")] == []


def test_the_walk_finds_this_file():
    assert any(path.name == "test_tests.py" for path in FILES)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("x = 1", "asserts nothing"),
        ("helper()", "asserts nothing"),
        ("model.fit(X)", "asserts nothing"),
        ("assert x == 1\n    np.allclose(a, b)", "a verdict that nobody reads"),
        ("assert x == 1\n    assert (a == b, 'message')", "always true"),
        ("assert x == 1\n    assert True", "always true"),
    ],
)
def test_a_silent_test_is_found(body, problem):
    (found,) = silent_tests("made", f"def helper():\n    pass\n\ndef test_x():\n    {body}\n")
    assert problem in found


@pytest.mark.parametrize(
    "body",
    [
        "assert x == 1",
        "np.testing.assert_allclose(a, b)",
        "with pytest.raises(ValueError):\n        f()",
        "check(estimator)",
        "check_estimator(model)",
        "helper()",
        "self.assertEqual(a, b)",
        "pytest.fail('no')",
    ],
)
def test_a_test_that_can_fail_is_not(body):
    source = (
        f"def inner():\n    assert y\n\ndef helper():\n    inner()\n\ndef test_x():\n    {body}\n"
    )
    assert silent_tests("made", source) == []


def test_helpers_that_call_each_other_end():
    source = "def a():\n    b()\n\ndef b():\n    a()\n\ndef test_x():\n    a()\n"
    assert len(silent_tests("made", source)) == 1


NEEDS = "def test_x():\n    torch = pytest.importorskip('torch')\n"


@pytest.mark.parametrize(
    "source",
    [
        NEEDS,
        "def test_x():\n    import torch\n",
        "def test_x():\n    from torch.linalg import inv\n",
        "@pytest.mark.parametrize('library', ['numpy', 'torch'])\ndef test_x(library): pass\n",
        "class TestX:\n    " + NEEDS.replace("\n    ", "\n        "),
    ],
)
def test_a_test_without_its_marker_is_found(source):
    (found,) = unmarked_tests("made", source, "torch")
    assert "test_x needs torch" in found


@pytest.mark.parametrize(
    "source",
    [
        "@pytest.mark.torch\n" + NEEDS,
        "pytestmark = pytest.mark.torch\n" + NEEDS,
        "@pytest.mark.torch\nclass TestX:\n    " + NEEDS.replace("\n    ", "\n        "),
        "@pytest.mark.parametrize('n', [pytest.param('torch', marks=pytest.mark.torch)])\n"
        "def test_x(n): pass\n",
        "def test_x():\n    assert 'torch' in names\n",
    ],
)
def test_a_test_with_its_marker_is_not(source):
    assert unmarked_tests("made", source, "torch") == []
