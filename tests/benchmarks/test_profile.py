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
        {"machine": {"cores": 2, "cpu": "a"}, "code": "c", "load": 3.04,
         "repeats": 1, "cases": [case],
         "versions": {"numpy": "2", "scipy": "1", "python": "3"},
         "tables": [{"path": "fit", "size": "10 rows", "seconds": {"LAPACK": 1.0, "BLAS": 3.0}}]}
    )  # fmt: skip
    assert "| slow | n = 1 | 4.000 s | 2.000 s | **2.00** | exp 100% |" in text
    assert "Over 1.5 times the bound: slow." in text and "The other 2.000 s: waiting." in text
    assert "code `c`; 3.0 processes were running" in text
    assert "| fit | 10 rows | 4.00 | 25% | 0% | 0% | 0% | 75% | 0% | 0% | 0% |" in text


@pytest.mark.parametrize(
    ("file", "function", "group"),
    [
        ("/a/lssvm/_core/lapack.py", "_call", "LAPACK"),
        ("/a/lssvm/kernels/radial.py", "evaluate", "exponentials"),
        ("/a/lssvm/kernels/radial.py", "_squares", "distances"),
        ("~", "<built-in method cdist_cityblock>", "distances"),
        ("/a/lssvm/solvers/exact.py", "refine_exact", "BLAS"),
        ("/a/lssvm/fitting/table.py", "fit_table", profile.REST),
    ],
)
def test_functions_are_in_the_group_of_what_they_do(file, function, group):
    assert profile.group_of(file, function) == group


def test_names_of_groups_are_files_and_functions_that_exist():
    for _, place, name in profile.GROUPS:
        if place.endswith(".py") and (ROOT / "src/lssvm" / place).exists():
            assert name in (ROOT / "src/lssvm" / place).read_text(encoding="utf-8")
        elif place.endswith(".py"):
            raise AssertionError(place)


def test_whole_fits_and_predictions_are_shared_among_groups():
    done = profile.whole_tables(scale=0.05)
    assert len(done) == 8 and {one["path"] for one in done} == {"fit", "prediction of 1,000 rows"}
    for one in done:
        assert set(one["seconds"]) <= {group for group, _, _ in profile.GROUPS} | {profile.REST}
        assert sum(one["seconds"].values()) > 0.0
    assert "LAPACK" in done[0]["seconds"] and "preparation" in done[1]["seconds"]
