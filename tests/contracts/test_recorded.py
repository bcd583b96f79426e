"""Every contract case gives the numbers that are recorded for it, on each of its engines."""

import json

import pytest
from tests.contracts.cases import CASES, ENGINES, RECORDED_TOLERANCE
from tests.contracts.record import PATH, recorded
from tests.contracts.running import differences, run

RECORDED = recorded()
LIBRARY = {"strict": "array_api_strict", "torch": "torch", "dask": "dask.array"}
MARKS = {"torch": pytest.mark.torch, "dask": pytest.mark.dask}


def runs():
    for case in CASES.values():
        for group, engines in case.groups().items():
            for engine in engines:
                marks = [MARKS[engine]] if engine in MARKS else []
                yield pytest.param(case, group, engine, id=f"{case.name}-{engine}", marks=marks)


@pytest.mark.parametrize(("case", "group", "engine"), list(runs()))
def test_numbers_are_the_recorded_ones(case, group, engine):
    if engine in LIBRARY:
        pytest.importorskip(LIBRARY[engine])
    # What the file gives back is what json makes of it: lists for tuples.
    found = json.loads(json.dumps(run(case, engine)))
    far = differences(found, RECORDED[case.name][group], RECORDED_TOLERANCE, case.looser)
    assert not far, "\n".join(far)  # all of them: pytest shows the first item of a list


def test_the_file_holds_the_table_and_stays_small():
    assert set(RECORDED) == set(CASES)
    assert all(set(RECORDED[name]) == set(case.groups()) for name, case in CASES.items())
    assert PATH.stat().st_size < 480_000


def test_every_family_and_engine_has_cases():
    families = {case.family for case in CASES.values()}
    assert families == {"dual", "fixed", "greedy", "narx", "table"}
    assert {engine for case in CASES.values() for engine in case.engines} == set(ENGINES)


@pytest.mark.parametrize(
    ("found", "expected", "same"),
    [
        (1.0, 1.0 + 1e-10, True),
        (1.0, 1.0 + 1e-7, False),
        (float("nan"), 1.0, False),
        ([1, 2], [1, 3], False),
        ({"shape": [2], "all": [1.0, 100.0]}, {"shape": [2], "all": [1.0 + 5e-8, 100.0]}, True),
        ({"shape": [2], "all": [1.0, 100.0]}, {"shape": [2], "all": [1.0 + 5e-7, 100.0]}, False),
        ({"a": 1.0}, {"a": 1.0, "b": 2.0}, False),
    ],
)
def test_what_differs_is_found(found, expected, same):
    assert (differences(found, expected, 1e-9, {}) == []) is same


def test_a_new_key_hides_nothing():
    found = {"a": 1.0, "new": 2.0, "b": {"c": [1], "deep": 0}, "d": {"shape": [1], "all": [1.0]}}
    expected = {"a": 2.0, "old": 2.0, "b": {"c": [2]}, "d": {"shape": [1], "all": [3.0]}}
    lines = differences(found, expected, 1e-9, {})
    names = [line.split()[0].rstrip(":") for line in lines]
    assert names == ["new", "old", "a", "b.deep", "b.c", "d"]
    assert lines[:2] == ["new is new", "old is missing"]
