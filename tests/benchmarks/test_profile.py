"""The profile: its page is that of its figures, and every path runs."""

import json

import pytest
from tests.meta.tree import ROOT

from benchmarks import profile


def test_the_page_is_not_stale():
    found = json.loads((ROOT / "benchmarks/results/profile.json").read_text(encoding="utf-8"))
    text = (ROOT / "benchmarks/PROFILE.md").read_text(encoding="utf-8")
    assert text == profile.page(found), "run: python -m benchmarks.profile"


def test_every_path_runs_beside_its_parts():
    found = [profile.measure(case, 1) for case in profile.cases(scale=0.02)]
    assert len(found) == 6
    for case in found:
        assert case["bound_s"] == pytest.approx(sum(p["seconds"] for p in case["parts"]))
        assert {p["kind"] for p in case["parts"]} <= {
            "BLAS", "LAPACK", "exp", "memory", "differences",
        }  # fmt: skip


def test_preparation_is_not_timed_and_parts_are_counted():
    calls = []
    part = profile.Part("BLAS", "made", lambda: calls.append("work"), lambda: calls.append("b"), 3)
    case = profile.Case("a path", "small", lambda: calls.append("ours"), [part], "nothing")
    found = profile.measure(case, 2)
    assert calls == ["ours", "b", "work"] * 2
    assert found["path"] == "a path" and len(found["parts"]) == 1


def test_a_path_far_from_its_bound_is_named():
    case = {"path": "slow", "size": "n = 1", "ours_s": 4.0, "bound_s": 2.0, "ratio": 2.0,
            "parts": [{"kind": "exp", "what": "all", "seconds": 2.0}],
            "beyond": "waiting"}  # fmt: skip
    text = profile.page(
        {"machine": {"cores": 2, "cpu": "a"}, "code": "c", "repeats": 1, "cases": [case],
         "versions": {"numpy": "2", "scipy": "1", "python": "3"}}
    )  # fmt: skip
    assert "| slow | n = 1 | 4.000 s | 2.000 s | **2.00** | exp 100% |" in text
    assert "Over 1.5 times the bound: slow." in text and "The other 2.000 s: waiting." in text
