"""Ctrl-C: the best model so far is saved, or nothing at all."""

import signal

import pytest
from tests.cli.running import lssvm

import lssvm as package
from lssvm._core.progress import listening

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
    from lssvm.estimators import FixedSizeLSSVC

    real = FixedSizeLSSVC._solve

    def solve(*arguments):
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        return real(*arguments)

    monkeypatch.setattr(FixedSizeLSSVC, "_solve", solve)
    answer = lssvm(*TRAIN, "-o", "new.lssvm")
    assert answer.code == 130
    assert "solving with the best parameters so far" in answer.err
    assert (here / "new.lssvm").exists() == (times == 1)
    assert "Traceback" not in answer.err


def test_before_there_is_a_model_nothing_is_written(here, monkeypatch):
    import lssvm.estimators._stream_classifier as module

    real = module.first_pass

    def first_pass(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        return real(*arguments, **options)

    monkeypatch.setattr(module, "first_pass", first_pass)
    before = sorted(here.iterdir())
    answer = lssvm(*TRAIN, "-o", "new.lssvm")
    assert answer.code == 130
    assert answer.err.splitlines()[-1] == "lssvm: interrupted before there was anything to save"
    assert sorted(here.iterdir()) == before


def test_the_handler_of_before_is_back_afterwards(here):
    before = signal.getsignal(signal.SIGINT)
    lssvm(*TRAIN, "-o", "new.lssvm")
    assert signal.getsignal(signal.SIGINT) is before
