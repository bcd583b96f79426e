"""The recipe of the model for tables: honest, reproducible, within its limits."""

from dataclasses import replace

import numpy as np
import pytest

from lssvm._core.errors import Stopped
from lssvm.fitting import Configuration, Interrupted, Problem, TableSettings, fit_table
from lssvm.fitting.clock import Clock
from lssvm.fitting.problem import deal, sample_rows
from lssvm.kernels.metric import IDENTITY
from lssvm.local import HostParts, Rows, fit_leaf


def quiet(event):
    return None


def problem(n, seed=0, d=4, noise=0.1, classes=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2
    if classes:
        labels = (f + noise * rng.normal(size=n) > 0.3).astype(int)
        return Problem(both(X), np.where(labels > 0, 1.0, -1.0)[:, None], np.ones(n), None, labels)
    y = f + noise * rng.normal(size=n)
    return Problem(both(X), ((y - y.mean()) / y.std())[:, None], np.ones(n))


def both(X):
    return {"standardised": X, "quantiles": np.tanh(X)}


SMALL = TableSettings.preset("balanced", screened=120)
LARGE = TableSettings.preset(
    "balanced",
    screened=150,
    learned_on=600,
    learned_leaf=200,
    scored_on=300,
    leaf_size=300,
    rounds=2,
)


def relative_error(fit, p, new):
    return np.mean((fit.outputs(new.inputs) - new.Y) ** 2) / new.Y.var()


def test_small_data_are_learned_and_judged_honestly():
    train = problem(130)
    rng = np.random.default_rng(9)
    X = rng.normal(size=(500, 4))
    fit = fit_table(train, SMALL, Clock(), quiet)
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2
    shown = fit.outputs(both(X))[:, 0]
    assert np.corrcoef(shown, f)[0, 1] > 0.95
    held = np.mean((fit.held_out - train.Y) ** 2)
    assert 0.005 < held < 0.3
    assert len(fit.trials) >= 6


def test_large_data_go_into_parts():
    train = problem(2600, classes=True)
    fit = fit_table(train, LARGE, Clock(), quiet)
    assert fit.part_size == 300
    for member in fit.members:
        assert len(member.model.cuts[0].leaves) >= 9
    known = np.isfinite(fit.held_out).all(axis=1)
    assert 300 <= known.sum() <= 2600
    wrong = np.mean(np.sign(fit.held_out[known]) != train.Y[known])
    assert wrong < 0.12
    fresh = problem(1000, seed=5, classes=True)
    error = np.mean(np.sign(fit.outputs(fresh.inputs)) != fresh.Y)
    assert abs(error - wrong) < 0.05


def test_noise_is_reported_as_noise():
    """No row's own target reaches its held-out output: on noise the score is that of the mean."""
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=(130, 1))
        p = Problem(both(rng.normal(size=(130, 3))), y, np.ones(130))
        fit = fit_table(p, SMALL, Clock(), quiet)
        ratios.append(np.mean((fit.held_out - y) ** 2) / y.var())
    assert np.mean(ratios) > 0.95 and max(ratios) < 1.3


def test_every_ingredient_off_is_the_exact_model():
    train = problem(150)
    ask = TableSettings.preset(
        "balanced", configurations=(Configuration("standardised", "rbf"),), rounds=0
    )
    fit = fit_table(train, ask, Clock(), quiet)
    (member,) = fit.members
    assert member.metric is IDENTITY
    rows = Rows(train.inputs["standardised"], train.Y, train.weight)
    setting = member.model.cuts[0].leaves[0].setting
    exact = fit_leaf(rows, "sqeuclidean", setting).outputs(rows.X, "sqeuclidean")
    np.testing.assert_allclose(fit.outputs(train.inputs), member.weight * exact, atol=1e-10)


def test_same_seed_same_model_whatever_the_number_of_threads():
    train, outputs = problem(2600), []
    for threads in (1, 2):
        ask = TableSettings(**{**LARGE.__dict__, "engine": HostParts(threads), "rounds": 1})
        outputs.append(fit_table(train, ask, Clock(), quiet).outputs(train.inputs))
    np.testing.assert_array_equal(*outputs)


def test_a_time_limit_leaves_a_usable_model():
    train = problem(2600)
    said = []
    fit = fit_table(train, LARGE, Clock(1e-3), said.append)
    assert len(fit.members) == 1 and np.isfinite(fit.outputs(train.inputs)).all()
    assert said[-1]["stage"] == "done"
    small = fit_table(problem(120), SMALL, Clock(1e-3), quiet)
    assert len(small.members) == 1 and small.members[0].rounds == 0


class Ticking:
    """A clock of calls: every question costs a second, and one may end in Ctrl-C."""

    def __init__(self, interrupt=None):
        self.calls, self.interrupt = 0, interrupt

    def __call__(self):
        self.calls += 1
        if self.calls == self.interrupt:
            raise KeyboardInterrupt
        return float(self.calls)


TWO = (Configuration("standardised", "rbf"), Configuration("standardised", "laplacian"))
QUICK = {
    "small": (problem(60), TableSettings.preset("fast", configurations=TWO, screened=60, rounds=1)),
    "large": (
        problem(2500),
        TableSettings.preset(
            "fast",
            configurations=TWO,
            screened=60,
            learned_on=300,
            learned_leaf=100,
            scored_on=100,
            leaf_size=150,
            rounds=1,
        ),
    ),
}


def assert_valid(fit, p):
    assert fit.members and np.isfinite(fit.outputs(p.inputs)).all()
    assert fit.held_out.shape == p.Y.shape and np.isfinite(fit.held_out).any()
    assert {t.stage for t in fit.trials} <= {"screening", "metric", "all rows"}
    names = [(t.configuration, t.rounds) for t in fit.trials]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("size", QUICK)
def test_a_time_limit_at_every_stage_leaves_a_valid_model(size):
    p, ask = QUICK[size]
    ticking = Ticking()
    whole = fit_table(p, ask, Clock(1e12, ticking), quiet)
    assert_valid(whole, p)
    seen = set()
    for limit in np.unique(np.geomspace(1, 5 * ticking.calls, 14).astype(int)):
        fit = fit_table(p, ask, Clock(float(limit), Ticking()), quiet)
        assert_valid(fit, p)
        seen.add((len(fit.trials), max(t.rounds for t in fit.trials)))
    assert len(seen) > 2  # some stages were cut


@pytest.mark.parametrize("size", QUICK)
def test_an_interrupt_at_every_stage_leaves_a_valid_model_or_none(size):
    p, ask = QUICK[size]
    ticking = Ticking()
    fit_table(p, ask, Clock(1e12, ticking), quiet)
    kept = 0
    for call in np.unique(np.linspace(2, ticking.calls, 14).astype(int)):
        with pytest.raises(KeyboardInterrupt) as caught:
            fit_table(p, ask, Clock(1e12, Ticking(call)), quiet)
        if isinstance(caught.value, Interrupted):
            kept += 1
            assert_valid(caught.value.fit, p)
            assert caught.value.fit.interrupted
    assert 0 < kept < 14


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", QUICK)
def test_who_listens_may_stop_at_every_step(size, threads):
    p, ask = QUICK[size]
    ask = replace(ask, engine=HostParts(threads))
    events = []
    whole = fit_table(p, ask, Clock(), events.append)
    assert not whole.interrupted and events[-1]["stage"] == "done"
    assert {e["stage"] for e in events} == {"screening", "metric", "all rows", "done"}
    losses = [e["best_loss"] for e in events if e["best_loss"] is not None]
    assert losses == sorted(losses, reverse=True) and len(losses) > 3
    for step in range(1, len(events) - 1):
        said = []

        def stopping(event, step=step, said=said):
            said.append(event)
            if len(said) == step:
                raise Stopped

        fit = fit_table(p, ask, Clock(), stopping)
        assert fit.interrupted and said[-1]["stage"] == "interrupted"
        assert_valid(fit, p)


def test_rows_that_made_a_metric_do_not_judge_an_interrupted_fit():
    p, ask = QUICK["large"]
    ticking = Ticking()
    fit_table(p, ask, Clock(1e12, ticking), quiet)
    for call in range(ticking.calls, 0, -8):
        try:
            fit_table(p, ask, Clock(1e12, Ticking(call)), quiet)
        except Interrupted as caught:
            fit = caught.fit
            if any(m.rounds for m in fit.members):
                assert np.isnan(fit.held_out).any()
        except KeyboardInterrupt:
            break


class ByAbsoluteErrors:
    chooses = True

    def __init__(self, p):
        self.p = p

    def loss(self, outputs, rows):
        return float(np.mean(np.abs(self.p.Y[rows] - outputs)))

    def decision_shift(self, outputs, rows):
        return np.zeros(outputs.shape[1])


def test_a_scorer_chooses_what_is_stacked():
    """One configuration is best by the scorer alone: only it is kept."""

    class Contrary(ByAbsoluteErrors):
        def loss(self, outputs, rows):  # the worst model wins
            return -super().loss(outputs, rows)

    p = problem(90)
    ask = TableSettings.preset("fast", rounds=0)
    best, worst = (
        fit_table(p, ask, Clock(), quiet, scorer(p)) for scorer in (ByAbsoluteErrors, Contrary)
    )
    error = [np.mean(np.abs(f.held_out - p.Y)) for f in (best, worst)]
    assert error[0] < 0.8 * error[1]
    assert len(worst.members) <= 2 and len(best.members) <= 2


def test_fast_fits_at_most_two_configurations():
    for n in (90, 700):
        p = problem(n)
        ask = TableSettings.preset("fast", screened=200, rounds=0)
        fit = fit_table(p, ask, Clock(), quiet)
        assert sum(t.stage == "all rows" for t in fit.trials) <= 2 and len(fit.trials) == 6


class Fast(HostParts):
    """Threads that say they are eight times as fast."""

    speed = 8.0


def test_part_size_follows_costs_and_limits():
    train = problem(2600)
    sizes = [
        choose_part_size(
            train.n, train.Y.shape[1], 3, TableSettings(operations=o, largest=4000), Clock()
        )
        for o in (1e9, 1e11, 1e12, 1e15)
    ]
    assert sizes == sorted(sizes) and sizes[0] == 500 and sizes[-1] == 4000
    fast = TableSettings(operations=1.0, engine=Fast())  # larger parts than on one thread, at least
    assert choose_part_size(train.n, train.Y.shape[1], 3, fast, Clock()) == 1000
    given = TableSettings(part_size=77)
    assert choose_part_size(train.n, train.Y.shape[1], 3, given, Clock()) == 77


def test_samples_and_folds_keep_classes_and_groups():
    labels = np.r_[np.zeros(900), np.ones(100)].astype(int)
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 500, 1000)
    p = Problem(both(rng.normal(size=(1000, 2))), np.ones((1000, 1)), np.ones(1000), groups, labels)
    chosen = sample_rows(p, 200, rng)
    assert len(set(chosen)) == 200 and labels[chosen].sum() in (19, 20, 21)
    folds = deal(p, 5, rng)
    for g in np.unique(groups):
        assert len(set(folds[groups == g])) == 1


def test_merged_rows_are_weights():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=(30, 1))
    again = np.repeat(np.arange(30), rng.integers(1, 5, 30))
    again = again[rng.permutation(len(again))]
    merged = Problem(both(X[again]), y[again], np.ones(len(again))).merged()
    other = Problem(both(X), y, np.bincount(again).astype(float)).merged()
    for name in ("standardised", "quantiles"):
        np.testing.assert_array_equal(merged.inputs[name], other.inputs[name])
    np.testing.assert_array_equal(merged.weight, other.weight)
    np.testing.assert_array_equal(merged.Y, other.Y)
    few = Problem(both(np.zeros((10, 1))), np.arange(10.0)[:, None] % 2, np.ones(10)).merged()
    assert few.n == 10  # repeats with different targets are observations
