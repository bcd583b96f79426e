"""Ctrl-C: the best model so far is saved, or nothing at all."""

import signal

import pytest
from tests.cli.running import lssvm

import lssvm as package
from lssvm._core.progress import listening
from lssvm.data import Scan

TRAIN = ("train", "data.csv", "-t", "income", "--drop", "value", "--prototypes", "20", "--cv", "3")


class PressAt:
    """Presses Ctrl-C at the nth event."""

    def __init__(self, count):
        self.count, self.seen = count, 0

    def __call__(self, event):
        self.seen += 1
        if self.seen == self.count:
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("command", ["train", "tune"])
def test_the_best_model_so_far_is_saved(here, command):
    words = (command, *TRAIN[1:], "-o", "new.lssvm")
    press = PressAt(3)
    with listening(press):
        answer = lssvm(*words, "--json")
    assert answer.code == 130 and answer.json["interrupted"] is True
    assert press.seen < 10  # a whole search has many more
    assert package.load("new.lssvm").predict(package.scan("data.csv")).shape == (160,)
    assert "Traceback" not in answer.err


def test_a_report_is_not_written_any_more_and_a_line_says_where_the_model_is(here):
    with listening(PressAt(2)):
        answer = lssvm(*TRAIN, "-o", "new.lssvm", "--report", "new.html")
    assert answer.code == 130
    assert answer.err.splitlines()[-1].endswith("the best model so far is in new.lssvm")
    assert not (here / "new.html").exists()


@pytest.mark.parametrize("times", [1, 2])
def test_after_the_search_the_model_is_solved_unless_asked_twice(here, monkeypatch, times):
    import lssvm.fitting.fixed_size as recipe

    real = recipe.solve_moments

    def solve(*arguments, **options):
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        return real(*arguments, **options)

    monkeypatch.setattr(recipe, "solve_moments", solve)
    answer = lssvm(*TRAIN, "-o", "new.lssvm")
    assert answer.code == 130
    assert "solving with the best parameters so far" in answer.err
    assert (here / "new.lssvm").exists() == (times == 1)
    assert "Traceback" not in answer.err


def test_before_there_is_a_model_nothing_is_written(here, monkeypatch):
    real = Scan.sample

    def sample(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return real(*arguments, **options)

    monkeypatch.setattr(Scan, "sample", sample)
    before = sorted(here.iterdir())
    answer = lssvm(*TRAIN, "-o", "new.lssvm")
    assert answer.code == 130
    assert answer.err.splitlines()[-1] == "lssvm: interrupted"
    assert sorted(here.iterdir()) == before


def test_the_handler_of_before_is_back_afterwards(here):
    before = signal.getsignal(signal.SIGINT)
    lssvm(*TRAIN, "-o", "new.lssvm")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("where", ["lssvm.cli.training.measure", "lssvm.report.write_report"])
def test_a_model_that_is_there_is_not_lost(here, monkeypatch, where):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, stop)
    answer = lssvm(*TRAIN, "-o", "new.lssvm", "--report", "new.html")
    assert answer.code == 130 and "new.lssvm" in answer.err
    assert package.load("new.lssvm").classes_.tolist() == ["high", "low"]
    assert not (here / "new.html").exists()


def test_a_refit_that_is_stopped_leaves_the_tested_model(here, monkeypatch):
    import lssvm.cli.training as module

    lssvm(*TRAIN, "-o", "tested.lssvm")
    real, fits = module.fit_rows, []

    def fit_rows(*arguments, **options):
        fitted = real(*arguments, **options)
        fits.append(monkeypatch.setattr(type(fitted.model), "fit", stop))
        return fitted

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "fit_rows", fit_rows)
    answer = lssvm(*TRAIN, "-o", "new.lssvm", "--refit")
    assert answer.code == 130 and len(fits) == 1
    coefficients = [package.load(name).dual_coef_ for name in ("tested.lssvm", "new.lssvm")]
    assert (coefficients[0] == coefficients[1]).all()
    assert lssvm("evaluate", "new.lssvm", "data.csv", "--held-out").code == 0


def test_while_it_starts(monkeypatch):
    def press(*_, **__):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("lssvm.cli.app.app", press)
    # Where the tests run in the background the signal is ignored; a terminal does not.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert lssvm("--version").code == 130
    finally:
        signal.signal(signal.SIGINT, before)
