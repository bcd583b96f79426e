"""A little of the fuzz in every run, and what it must notice."""

import numpy as np
import pytest
from tests.fuzz import configurations, kills

from lssvm import LSSVR
from lssvm._core.errors import InvalidInputError


def test_forty_configurations_hold():
    tried = configurations.run(seed=0, seconds=120, count=40)
    assert tried.counts.total() == 40
    assert not tried.faults, tried.faults


def test_configurations_of_a_number_are_always_the_same():
    one, two = (configurations.draw(5, 17) for _ in range(2))
    assert str(one) == str(two)
    np.testing.assert_array_equal(one.X, two.X)
    assert str(one) != str(configurations.draw(5, 18))


class Broken(LSSVR):
    """A regressor with a fault."""

    fault = ""

    def fit(self, X, y, sample_weight=None):
        if self.fault == "raw":
            np.linalg.inv(np.zeros((2, 2)))
        if self.fault == "warning":
            np.array([1e200]) ** 2
        if self.fault == "ours":
            raise InvalidInputError("y has no values that could be used: give some.")
        return super().fit(X, y, sample_weight)

    def predict(self, X, **options):
        found = super().predict(X, **options)
        if self.fault == "nan":
            found[0] = np.nan
        if self.fault == "rows":
            found = found + np.arange(len(found))
        return found


@pytest.mark.parametrize("fault", ["raw", "warning", "nan", "rows", "ours", ""])
def test_the_fuzz_notices_faults(fault, tmp_path, monkeypatch):
    monkeypatch.setattr(Broken, "fault", fault)
    monkeypatch.setattr(configurations, "save", lambda model, path: None)
    monkeypatch.setattr(configurations, "load", lambda path: LSSVR().fit(X, y))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    y = X[:, 0]
    case = configurations.Case(Broken(), X, y, None, "made")
    if fault == "ours":
        assert configurations.try_case(case, str(tmp_path), rng) == "refused"
    elif fault == "":
        assert configurations.try_case(case, str(tmp_path), rng) == "answered"
    else:
        with pytest.raises((configurations.Fault, RuntimeWarning, np.linalg.LinAlgError)):
            configurations.try_case(case, str(tmp_path), rng)


@pytest.mark.skipif(not hasattr(kills.signal, "SIGKILL"), reason="no such signal here")
def test_killed_processes_leave_nothing_half_written(monkeypatch):
    root = str(configurations.__file__).rsplit("/tests/", 1)[0]
    monkeypatch.setenv("PYTHONPATH", f"{root}/src:{root}")
    monkeypatch.chdir(root)
    assert kills.run(seed=1, kills=3, tasks=["save", "checkpoint", "fit"]).kills == 3
