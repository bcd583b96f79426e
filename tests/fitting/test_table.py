"""The recipe of the model for tables: honest, reproducible, within its limits."""

from dataclasses import replace

import numpy as np
import pytest

from lssvm._core.blocks import one_blas_thread
from lssvm._core.errors import Stopped
from lssvm.fitting import (
    Configuration,
    Interrupted,
    Member,
    Problem,
    TableSettings,
    fit_table,
    screening,
    table,
    table_record,
)
from lssvm.fitting.screening import (
    begin_rounds,
    choose_by_other_folds,
    fit_draft,
    learn_on_rows,
    median_distance,
    next_map,
    screen,
    tune,
)
from lssvm.fitting.stacking import fit_stack, known_rows
from lssvm.fitting.table import (
    better_inputs,
    choose_leaf_size,
    fall_of_loss,
    fit_fallback,
    gain_of_size,
    in_order,
    overfitted,
    without_redundant,
    without_rows,
    worth_fitting,
)
from lssvm.fitting.table_large import allowed_for_all_rows, operations_of_all_rows
from lssvm.fitting.table_record import row_numbers, why_not
from lssvm.fitting.table_scoring import ClassScorer, known_outputs
from lssvm.fitting.table_work import Candidate, Clock, Plan, Work, clearly_best
from lssvm.kernels import Metric
from lssvm.kernels.base import Expansion
from lssvm.kernels.metric import IDENTITY
from lssvm.kernels.radial import KERNEL_OF, distances
from lssvm.kernels.warp import Warp
from lssvm.local import LeafEngine, Rows, Setting, fit_leaf, grow_tree
from lssvm.solvers.exact import ExactPath
from lssvm.tasks import Classes


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
    held = np.mean((fit.state.held_out - train.Y) ** 2)
    assert 0.005 < held < 0.3
    assert len(fit.tuning.trials) >= 6


def test_large_data_go_into_parts():
    train = problem(2600, classes=True)
    fit = fit_table(train, LARGE, Clock(), quiet)
    assert fit.state.leaf_size == 300
    for member in fit.members:
        assert len(member.local.leaves) >= 9
    known = np.isfinite(fit.state.held_out).all(axis=1)
    assert 300 <= known.sum() <= 2600
    wrong = np.mean(np.sign(fit.state.held_out[known]) != train.Y[known])
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
        ratios.append(np.mean((fit.state.held_out - y) ** 2) / y.var())
    assert np.mean(ratios) > 0.95 and max(ratios) < 1.3


@pytest.mark.parametrize("n", [150, 400])
def test_every_ingredient_off_is_the_exact_model(n):
    """In double precision, whatever it was compared in."""
    train = problem(n)
    ask = TableSettings.preset(
        "balanced", configurations=(Configuration("standardised", "rbf"),), rounds=0
    )
    fit = fit_table(train, ask, Clock(), quiet)
    (member,) = fit.members
    assert member.metric is IDENTITY
    rows = Rows(train.inputs["standardised"], train.Y, train.weight)
    setting = member.local.leaves[0].setting
    exact = fit_leaf(rows, "sqeuclidean", setting).outputs(rows.X, "sqeuclidean")
    np.testing.assert_allclose(fit.outputs(train.inputs), member.weight * exact, atol=1e-10)
    assert member.local.leaves[0].fit.coef.dtype == np.float64


def test_same_seed_same_model_whatever_the_number_of_threads():
    train, outputs = problem(2600), []
    for threads in (1, 2):
        ask = TableSettings(**{**LARGE.__dict__, "engine": LeafEngine(threads), "rounds": 1})
        with one_blas_thread():  # as the estimators have it
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


def test_a_clock_knows_shares_of_its_limit_and_what_is_affordable():
    seconds = 0.0
    clock = Clock(10.0, lambda: seconds)
    clock.measured(600.0, 2.0)  # 300 operations a second
    seconds = 6.0
    assert clock.over(0.6) and not clock.over(0.7)
    assert clock.affordable(1e9, 0.5) == 600.0  # half of the four seconds that are left
    assert clock.affordable(7.0, 0.5) == 7.0
    seconds = 11.0
    assert clock.over(1.0) and clock.affordable(1e9, 0.5) == 0.0
    assert not Clock(None, lambda: seconds).over(0.0)


TWO = (Configuration("standardised", "rbf"), Configuration("standardised", "laplacian"))
QUICK = {
    "small": (
        problem(60, d=8, noise=0.02),
        TableSettings.preset("fast", configurations=TWO, screened=60, rounds=1),
    ),
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
    assert fit.state.held_out.shape == p.Y.shape and np.isfinite(fit.state.held_out).any()
    assert {t.stage for t in fit.tuning.trials} <= {"screening", "metric", "all rows"}
    names = [(str(t), t.rounds) for t in fit.tuning.trials]
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
        seen.add((len(fit.tuning.trials), max(t.rounds for t in fit.tuning.trials)))
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
            assert caught.value.fit.state.interrupted
    assert 0 < kept < 14


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", QUICK)
def test_who_listens_may_stop_at_every_step(size, threads):
    p, ask = QUICK[size]
    ask = replace(ask, engine=LeafEngine(threads))
    events = []
    whole = fit_table(p, ask, Clock(), events.append)
    assert not whole.state.interrupted and events[-1]["stage"] == "done"
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
        assert fit.state.interrupted and said[-1]["stage"] == "interrupted"
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
                assert np.isnan(fit.state.held_out).any()
        except KeyboardInterrupt:
            break


class ByAbsoluteErrors:
    chooses = True

    ranks = False

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
    error = [np.mean(np.abs(f.state.held_out - p.Y)) for f in (best, worst)]
    assert error[0] < 0.8 * error[1]
    assert len(worst.members) <= 2 and len(best.members) <= 2


@pytest.mark.parametrize("limit", [0.5, 1.0, 4.0])
def test_a_slow_scorer_does_not_hold_up_a_fit_that_is_out_of_time(limit):
    p = problem(60, classes=True)
    seconds = 0.0

    class Slow(ClassScorer):
        def loss(self, outputs, rows):
            nonlocal seconds
            seconds += 0.02
            return super().loss(outputs, rows)

    def scorer():
        task = Classes.of(np.arange(2), multiclass="ova")
        return Slow(task, p.classes, p.weight, "balanced_accuracy")

    ask = TableSettings.preset("fast", configurations=TWO, rounds=0)
    fit = fit_table(p, ask, Clock(limit, lambda: seconds), quiet, scorer())
    assert seconds < 1.1 * limit + 2.0
    assert np.isfinite(fit.state.held_out).all()
    fit_table(p, ask, Clock(), quiet, scorer())
    assert seconds > 15.0


def test_folds_of_few_rows_end_with_the_time(monkeypatch):
    seconds, outputs = 0.0, ExactPath.left_out_of_folds

    def slow(path, *given):
        nonlocal seconds
        seconds += 1.0
        return outputs(path, *given)

    monkeypatch.setattr(ExactPath, "left_out_of_folds", slow)
    ask = TableSettings.preset("fast", configurations=TWO, rounds=0)
    fit = fit_table(problem(60), ask, Clock(3.0, lambda: seconds), quiet)
    limited = seconds
    assert 0.0 < limited < 1.1 * 3.0 + 8.0  # a configuration on which it has begun has 8 widths
    assert np.isfinite(fit.state.held_out).all()
    fit_table(problem(60), ask, Clock(), quiet)
    assert seconds - limited >= 16.0


def test_fast_fits_at_most_two_configurations():
    for n in (90, 700):
        p = problem(n)
        ask = TableSettings.preset("fast", screened=200, rounds=0)
        fit = fit_table(p, ask, Clock(), quiet)
        assert (
            sum(t.stage == "all rows" for t in fit.tuning.trials) <= 2
            and len(fit.tuning.trials) == 6
        )


ROWS = 1_000_000  # that costs are counted for
RBF = Configuration("standardised", "rbf")


def smooth_or_noise(n, smooth):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    y = np.sin(1.5 * X[:, 0]) + X[:, 1] * X[:, 2] if smooth else rng.normal(size=n)
    y = y + 0.02 * rng.normal(size=n)
    return Problem({"standardised": X}, (y / y.std())[:, None], np.ones(n))


def make_work(p, clock=None, scorer=None, **settings):
    folds = p.folds(5, np.random.default_rng(0))
    return Work(p, TableSettings(**settings), clock or Clock(), scorer, folds, quiet)


def leaf_size(smooth, clock=None, n_rows=ROWS, trials=False, **settings):
    """Return the size of leaves of 1,200 rows, and the steps to it, also of ``trials``."""
    work = make_work(
        smooth_or_noise(1200, smooth), clock, **{"learned_leaf": 150, "largest": 5000} | settings
    )
    setting = Setting(100.0, 0.05) if smooth else Setting(0.01, 0.05)
    size, _ = choose_leaf_size(work, Candidate(RBF, setting, 1.0, 0.0), n_rows)
    assert {step.stage for step in work.steps} <= {"leaf size"}
    return size, [s for s in work.steps if trials or not s.what.startswith("trial")]


def test_leaves_are_doubled_while_that_is_worth_its_cost():
    sizes = {smooth: leaf_size(smooth, gain=0.5) for smooth in (True, False)}
    assert sizes[True][0] >= 600 and sizes[False][0] == 150
    for size, steps in sizes.values():
        taken = [step for step in steps if step.taken]
        assert size == 150 * 2 ** len(taken)
        assert all(step.gain > 0.5 * max(step.cost, 0.02) for step in taken)
        costs = [step.cost for step in steps]
        assert costs == sorted(costs)
        for step in steps[len(taken) :]:
            assert step.gain <= 0.5 * max(step.cost, 0.02)


def test_a_preset_that_wants_more_for_its_time_stops_earlier():
    sizes = [leaf_size(True, gain=gain, largest=1300)[0] for gain in (0.005, 0.5, 5.0, 1e3)]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == 1200 and sizes[-1] == 150
    assert len(set(sizes)) > 2
    gains = [TableSettings.preset(name).gain for name in ("fast", "balanced", "best")]
    assert gains == sorted(gains, reverse=True)


def test_limits_of_leaves():
    assert leaf_size(True, largest=400)[0] == 300
    assert leaf_size(True, leaf_size=77) == (77, [])
    assert leaf_size(True, leaf_size=770, largest=400)[0] == 400
    assert leaf_size(True, n_rows=1200) == (1200, [])  # one exact model
    assert leaf_size(True, n_rows=1200, gain=0.02)[0] <= 1200


def test_a_time_limit_shortens_the_doubling():
    slow, quick = (Clock(10.0, lambda: 0.0) for _ in range(2))
    slow.measured(ROWS * 200.0**2, 10.0)  # half of the limit solves leaves of 170 rows
    quick.measured(1e30, 10.0)
    assert leaf_size(True, slow, largest=700)[0] == 150
    assert leaf_size(True, quick, largest=700)[0] == leaf_size(True, largest=700)[0] == 600


@pytest.mark.parametrize(("rows", "size"), [(600, 600), (400, 300), (200, 150), (1, 150)])
def test_leaves_are_halved_where_all_of_them_would_take_too_long(rows, size):
    clock = Clock(10.0, lambda: 0.0)
    # Two fifths of the limit solve leaves of so many rows.
    clock.measured(ROWS * float(rows + 1) ** 2 * 2.0 / 3.0 / 0.4, 10.0)
    assert leaf_size(True, clock, learned_leaf=600, largest=600)[0] == size


def test_leaves_of_very_many_rows_leave_time_for_a_second_configuration():
    work = make_work(smooth_or_noise(1200, True), learned_leaf=150, largest=5000)
    start = Candidate(RBF, Setting(100.0, 0.05), 1.0, 0.0)
    sizes = [choose_leaf_size(work, start, ROWS, many=many)[0] for many in (False, True)]
    assert sizes[1] < sizes[0]
    allowed = allowed_for_all_rows(work, ROWS)
    assert 2.0 * operations_of_all_rows(ROWS, sizes[1]) <= allowed
    assert 2.0 * operations_of_all_rows(ROWS, 2 * sizes[1]) > allowed


def test_an_engine_that_is_faster_may_spend_more():
    class Fast(LeafEngine):
        speed = 1e4

    slow, fast = (
        leaf_size(True, gain=5.0, largest=1300, engine=e)[0] for e in (LeafEngine(), Fast())
    )
    assert slow < fast


def test_the_gain_of_a_size_is_that_of_leave_one_out_errors():
    p = smooth_or_noise(400, True)
    work, start = make_work(p), Setting(100.0, 0.05)
    rows = p.rows("standardised")
    gain, setting = gain_of_size(work, rows, "sqeuclidean", start, 400)
    halves = [rows.take(m) for m in grow_tree(rows.X, 200).rows_by_leaf(rows.X)]
    first = fit_leaf(halves[0], "sqeuclidean", start, tries=2)
    second = fit_leaf(halves[1], "sqeuclidean", first.setting)
    whole = fit_leaf(rows, "sqeuclidean", start, tries=2)
    assert setting == whole.setting
    assert gain == pytest.approx(1.0 - whole.error / np.mean([first.error, second.error]), rel=1e-3)


def test_a_setting_of_one_leaf_is_taken_where_it_suits_the_others():
    """A smooth leaf proposes a larger C, which a leaf of noise would pay for."""
    rng = np.random.default_rng(0)
    start, proposals = Setting(1.0, 0.2), []
    for side in (-20.0, 20.0):  # either may be the first leaf
        X = rng.normal(size=(400, 2))
        noise = np.arange(400) % 2 == 0
        X[:, 0] += np.where(noise, side, -side)
        y = np.where(noise, 3.0 * rng.normal(size=400), np.sin(X[:, 1]))[:, None]
        p = Problem({"standardised": X}, y, np.ones(400))
        rows = p.rows("standardised")
        first = grow_tree(X, 200).rows_by_leaf(X)[0]
        proposals.append(fit_leaf(rows.take(first), "sqeuclidean", start, tries=2).setting)
        assert gain_of_size(make_work(p), rows, "sqeuclidean", start, 200)[1] == start
    assert Setting(4.0, 0.2) in proposals


def test_a_few_rows_whose_losses_rise_do_not_speak_against_a_size():
    rng = np.random.default_rng(0)
    before = rng.uniform(0.5, 1.5, 2000)
    after, weight = 0.9 * before, rng.uniform(0.5, 2.0, 2000)
    assert fall_of_loss(before, after, weight) == pytest.approx(0.1)
    remote = after.copy()
    remote[[5, 700]] = 1e4
    assert fall_of_loss(before, remote, weight) == pytest.approx(0.1)
    remote[[6, 701]] = 1e4  # more than a thousandth
    assert fall_of_loss(before, remote, weight) < -1.0
    solved = before.copy()
    solved[:2] = 0.0  # a fall is bounded, and counts
    assert fall_of_loss(before, solved, weight) == pytest.approx(
        weight[:2] @ before[:2] / (weight @ before)
    )
    wrong = np.zeros(2000)
    wrong[:5] = 4.0  # five rows make up the loss: none is left out
    assert fall_of_loss(wrong, 2.0 * wrong, weight) == pytest.approx(-1.0)
    assert fall_of_loss(np.zeros(3), np.ones(3), np.ones(3)) == 0.0


def test_a_remainder_is_no_leaf_of_its_own():
    """2,500 rows in leaves of 1,000 would leave half a leaf over: all are one."""
    _, steps = leaf_size(True, n_rows=375, gain=0.02)
    assert steps[0].what == "375 rows in place of 150"


def test_a_doubling_is_expected_to_gain_less_than_the_last_one(monkeypatch):
    start = Setting(1.0, 1.0)
    monkeypatch.setattr(table, "gain_of_size", lambda *given: (0.1, start))
    work = make_work(smooth_or_noise(1200, True), learned_leaf=150, largest=5000, gain=0.02)
    choose_leaf_size(work, Candidate(RBF, start, 1.0, 0.0), ROWS)
    gains = [step.gain for step in work.steps]
    assert [step.taken for step in work.steps][-1] is False
    assert gains[:2] == [0.1, 0.1]  # measured on the rows that there are
    np.testing.assert_allclose(gains[2:], 0.07 * 0.7 ** np.arange(len(gains) - 2))
    assert len(gains) > 3


@pytest.mark.parametrize("gain, patience, rounds", [(0.9, 0, 1), (0.9, 1, 2), (-1e9, 0, 3)])
def test_rounds_end_when_they_gain_too_little(gain, patience, rounds):
    p = problem(500)
    work = make_work(p, gain=gain, patience=patience, learned_leaf=150)
    start = Candidate(RBF, Setting(10.0, 0.1), 1.0, 0.0)
    begun = begin_rounds(work, start, *LEARNED)
    found = learn_on_rows(work, begun, *LEARNED, "metric", 3)
    assert found.last.rounds == len(metric_steps(work)) == rounds
    if rounds < 3:  # nor do they go on later
        assert learn_on_rows(work, found, *LEARNED, "metric", 3) is found


LEARNED = np.arange(300), np.arange(300, 500)


def metric_steps(work):
    """Return the rounds that were done, each with whether it was kept."""
    steps = [s for s in work.steps if s.stage == "metric" and "round" in s.what]
    return {s.what.split(", ", 1)[1]: s.taken for s in steps}


def test_rounds_after_the_best_one_are_listed_as_not_kept():
    work = make_work(problem(500, noise=2.0), gain=-1e9, learned_leaf=150)
    start = Candidate(RBF, Setting(10.0, 0.1), 1.0, 0.0)
    begun = begin_rounds(work, start, *LEARNED)
    found = learn_on_rows(work, begun, *LEARNED, "metric", 4)
    number = found.best.rounds
    assert 0 < number < 4
    kept = {f"metric, round {r}": r <= number for r in (1, 2, 3, 4)}
    assert metric_steps(work) == kept
    after = learn_on_rows(work, found.from_best(), *LEARNED, "warp", 1)
    kept[f"warp, round {number + 1}"] = after.best.rounds > number
    assert metric_steps(work) == kept  # of a warp, none of those before it


def test_rounds_that_go_on_equal_those_in_one_piece():
    models = []
    for pieces in ([4], [1, 1, 2]):
        work = make_work(problem(500), gain=-1e9, learned_leaf=150)
        found = begin_rounds(work, Candidate(RBF, Setting(10.0, 0.1), 1.0, 0.0), *LEARNED)
        for rounds in pieces:
            found = learn_on_rows(work, found, *LEARNED, "metric", rounds)
        assert found.last.rounds == 4
        models.append((found.best.rounds, found.best.error, found.last.error, len(work.steps)))
    assert models[0] == models[1]


@pytest.mark.parametrize("clear", [0, 1])
def test_rounds_of_folds_that_are_not_used_are_listed_as_not_kept(clear, monkeypatch):
    monkeypatch.setattr(screening, "clearly_best", lambda losses: clear)
    settings = replace(SMALL, configurations=(RBF,), gain=-1e9, rounds=2)
    fit = fit_table(problem(150), settings, Clock(), quiet)
    taken = [step.taken for step in fit.tuning.steps if step.stage == "metric"]
    assert taken == [bool(clear), False]


def test_what_the_stack_does_not_use_is_listed_as_not_kept(monkeypatch):
    p = problem(2600)
    settings = replace(LARGE, configurations=TWO, n_prototypes=40, gain=1e-9)
    steps = {}
    for used in ([True, True, True], [True, False, False]):
        monkeypatch.setattr(table, "without_redundant", lambda *given, used=used: np.array(used))
        fit = fit_table(p, settings, Clock(), quiet)
        every = [s for s in fit.tuning.steps if s.stage in ("configurations", "prototypes")]
        steps[sum(used)] = [s.taken for s in every]
        assert len(fit.members) == sum(used)
    assert steps == {3: [True, True], 1: [False, False]}
    (gone,) = [t for t in fit.tuning.trials if t.stage == "all rows" and t.weight == 0]
    assert gone.kernel != fit.tuning.trials[0].kernel


def test_the_time_of_trials_counts():
    for n in (600, 1200):
        size, (trial, step) = leaf_size(False, gain=0.5, n_rows=n, trials=True)
        assert size == 150 and trial.seconds > 0 and np.isnan(trial.gain) and not trial.taken
        assert step.seconds == 0 and np.isfinite(step.gain) and trial.what.endswith(step.what)
    assert why_not(trial) == [] and why_not(replace(trial, taken=True)) == []
    assert why_not(replace(step, gain=0.012)) == [("not worth its cost", "1.20%")]
    assert why_not(replace(step, gain=0.012, seconds=1.0)) == [("tried, not kept", "1.20%")]
    assert why_not(replace(step, gain=np.inf)) == [("not tried for its time", "")]


def test_every_round_of_all_rows_has_the_setting_of_that_round_in_folds(monkeypatch):
    """The first fold says by how much C and gamma change in a round, from nothing on."""
    X = np.random.default_rng(0).normal(size=(300, 10))
    p = Problem({"standardised": X}, X[:, :1] ** 2, np.ones(300))
    work = make_work(p, rounds=6)
    changed, given, mapped = [], [], []

    def drafted(work, candidate, metric, setting, rows, n, tries):
        model = fit_draft(work, candidate, metric, setting, rows, n, tries)
        if tries == 3:
            tuned = screening.middle_setting(model.leaves)
            changed.append([tuned.C / setting.C, tuned.gamma / setting.gamma])
        if len(rows) == 300:
            given.append(setting)
        return model

    def next_one(work, candidate, model, metric, rows, *options):
        found = next_map(work, candidate, model, metric, rows, *options)
        if len(rows) == 300:
            mapped.append(found[1])
        return found

    monkeypatch.setattr(screening, "fit_draft", drafted)
    monkeypatch.setattr(screening, "next_map", next_one)
    start = Candidate(RBF, Setting(10.0, 0.02), 1.0, 0.0)
    found, _ = screening.learn_in_folds(work, start, "metric")
    assert 2 <= found.rounds < len(changed) and len(given) == len(mapped) == found.rounds
    before, after = [start.setting, *mapped], [*given, found.setting]
    ratios = [[b.C / a.C, b.gamma / a.gamma] for a, b in zip(before, after, strict=True)]
    np.testing.assert_allclose(ratios, [[1.0, 1.0], *changed[: found.rounds]])
    assert len(np.unique(np.round(changed[: found.rounds + 1], 6), axis=0)) > 1


def test_the_width_of_a_kernel_moves_with_the_distances_of_its_rows():
    p = problem(300)
    work, every = make_work(p), np.arange(300)
    candidate = Candidate(RBF, Setting(10.0, 0.1), 1.0, 0.0)
    model = fit_draft(work, candidate, IDENTITY, candidate.setting, every, 300, 1)
    metric, setting = next_map(work, candidate, model, IDENTITY, every, "metric", 300)
    products = []
    for each, gamma in ((IDENTITY, model.leaves[0].setting.gamma), (metric, setting.gamma)):
        X = p.rows("standardised", each).X
        products.append(gamma * np.median(distances(X, X, "sqeuclidean")))
    assert metric is not IDENTITY and setting.gamma != model.leaves[0].setting.gamma
    assert products[1] == pytest.approx(products[0], rel=0.1)


def test_inputs_that_are_nearly_as_good_stay_in_the_race():
    kinds = [
        Configuration(s, k) for k in ("rbf", "laplacian") for s in ("standardised", "quantiles")
    ]
    losses = [1.0, 1.03, 2.0, 2.3]  # a gain of 0.02: up to 4 % behind the best of the kernel
    found = [
        Candidate(k, Setting(1, 1), 1.0, 0.0, loss=v) for k, v in zip(kinds, losses, strict=True)
    ]
    assert better_inputs(found, 0.02) == found[:3]
    assert better_inputs(found, 0.01) == [found[0], found[2]]
    assert better_inputs(found, 0.1) == found


def test_few_rows_need_a_gain_that_is_no_chance():
    own = np.random.default_rng(0)
    for n, clear in ((100, False), (4000, True)):
        gain = own.normal(size=n)
        gain = 0.25 + 1.5 * (gain - gain.mean()) / gain.std()  # 1.7 standard errors of 100 rows
        before = np.full(n, 1.0)
        assert clearly_best(np.array([before, before - gain])) == int(clear)
    before = np.full(100, 1.0)
    assert clearly_best(np.array([before, before - 0.25])) == 1  # the same gain of every row
    assert clearly_best(np.array([before, before - 0.15])) == 0  # less than a fifth
    assert clearly_best(np.array([before, before + 0.25])) == 0


def candidates_of(p, outputs):
    """Return candidates with these held-out outputs of every other row."""
    rows = np.arange(0, p.n, 2)
    kinds = [Configuration("standardised", name) for name in ("rbf", "exponential", "laplacian")]
    some = {"error": 1.0, "seconds": 0.0, "rows": rows, "stage": "metric"}
    return [
        Candidate(kind, Setting(1.0, 1.0), outputs=F[rows], **some)
        for kind, F in zip(kinds, outputs, strict=True)
    ]


def test_configurations_are_fitted_where_the_stack_gains_enough():
    p = smooth_or_noise(1200, True)
    e = 0.3 * np.random.default_rng(1).normal(size=(3, 1200, 1))
    different = candidates_of(p, 0.9 * (p.Y + e))
    same = candidates_of(p, 0.9 * (p.Y + e[[0, 0, 0]]))
    for found, cost, count in ((different, 1.0, 3), (different, 1e6, 1), (same, 1.0, 1)):
        work = make_work(p)
        chosen = worth_fitting(work, found, cost)
        assert [c.step for c in chosen] == [None, 0, 1][:count]
        assert [step.taken for step in work.steps][: count - 1] == [True] * (count - 1)
        assert all(step.stage == "configurations" for step in work.steps)
    for most, count in ((0, 1), (2, 2), (9, 3)):
        assert len(worth_fitting(make_work(p), different, 1.0, most)) == count
    late = make_work(p, Clock(0.0))
    assert worth_fitting(late, different, 1.0) == different[:1]


def test_a_second_configuration_is_fitted_where_few_rows_make_up_the_log_loss():
    p = problem(1200, classes=True)
    wrong = {few: np.where(np.arange(1200) % (200 if few else 10) == 0, -1, 1) for few in (1, 0)}
    sure = {few: candidates_of(p, [p.Y * wrong[few][:, None]] * 3) for few in (1, 0)}
    for few, cost, count in ((1, 1.0, 2), (0, 1.0, 1), (1, 1.01, 1)):
        work = make_work(p)
        assert len(worth_fitting(work, sure[few], cost)) == count
        assert abs(work.steps[0].gain) < 0.01 and work.steps[0].taken == (count > 1)
    assert len(worth_fitting(make_work(p), sure[1], 1.0, 1)) == 1
    assert len(worth_fitting(make_work(p, log_loss=False), sure[1], 1.0)) == 1
    task = Classes.of(np.array(["no", "yes"]), multiclass="ova")
    scorer = ClassScorer(task, p.classes, p.weight, "accuracy")
    assert len(worth_fitting(make_work(p, scorer=scorer), sure[1], 1.0)) == 1


def test_squared_errors_rank_candidates_where_few_rows_make_up_the_log_loss():
    p = problem(1200, classes=True)
    for step, order in ((200, [1, 0]), (10, [0, 1])):
        wrong = np.where(np.arange(1200) % step == 0, -1.0, 1.0)[:, None]
        found = candidates_of(p, [p.Y * wrong] * 3)[:2]
        found = [replace(c, loss=v, error=1.0 - v) for c, v in zip(found, (0.1, 0.2), strict=True)]
        assert in_order(make_work(p), found[::-1]) == [found[i] for i in order]
        assert in_order(make_work(p, log_loss=False), found[::-1]) == found
    unknown = [replace(c, outputs=None) for c in found]
    assert in_order(make_work(p), unknown) == unknown


def test_the_unit_of_the_targets_decides_nothing():
    p = smooth_or_noise(1200, True)
    e = 0.3 * np.random.default_rng(1).normal(size=(3, 1200, 1))
    gains = []
    for unit in (1.0, 30.0):
        work = make_work(replace(p, Y=unit * p.Y))
        worth_fitting(work, candidates_of(p, 0.9 * unit * (p.Y + e)), 1.0)
        gains.append([step.gain for step in work.steps])
    np.testing.assert_allclose(gains[0], gains[1], rtol=1e-6)


def test_what_is_fitted_without_time_for_anything_else_predicts():
    p, new = problem(120), problem(500, seed=3)
    _, fitted = fit_fallback(make_work(p, Clock(0.0)), Plan())
    ((_, model, _),) = fitted
    error = np.mean((model.outputs(new.inputs["standardised"]) - new.Y) ** 2)
    assert error < 0.5 * new.Y.var()


def test_the_median_distance_is_that_of_different_rows():
    X = np.arange(10.0)[:, None]
    different = distances(X, X, "euclidean")
    wanted = np.median(different[different > 0])
    many = np.repeat(np.arange(10), 20)
    assert median_distance(different) == median_distance(different[many][:, many]) == wanted
    assert median_distance(np.zeros((4, 4))) == 1.0


def test_a_setting_is_chosen_by_the_rows_of_other_folds():
    folds = np.arange(6) // 3
    losses = np.array([[0.0, 0.0, 0.0, 5.0, 5.0, 5.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
    outputs = np.repeat([10.0, 20.0], 6).reshape(2, 6, 1)
    chosen = choose_by_other_folds(losses, outputs, folds)
    # What is best for the rows of the first fold is bad for the second, and the first has no say.
    np.testing.assert_array_equal(chosen[:, 0], [20.0, 20.0, 20.0, 10.0, 10.0, 10.0])


def test_every_configuration_is_screened_by_distances_of_its_own():
    p = problem(100)
    work = make_work(p, screened=100)
    found = {c.configuration: c for c in screen(work)}
    assert len(found) == len(TableSettings().configurations)
    for kind, candidate in found.items():
        rows = p.rows(kind.scaling, IDENTITY, candidate.rows)
        alone = tune(rows, kind, distances(rows.X, rows.X, kind.distance), work.folds)
        assert candidate.setting.C == alone.setting.C
        assert candidate.setting.gamma == pytest.approx(alone.setting.gamma, rel=1e-9)
        assert candidate.error == pytest.approx(alone.error, rel=1e-6)


def test_rows_that_made_a_metric_have_no_outputs():
    p = problem(60)
    outputs, learned = [p.Y + 0.1, p.Y - 0.2], np.arange(20)
    known = known_rows(without_rows(outputs, learned))
    np.testing.assert_array_equal(known, np.arange(60) >= 20)
    assert known_rows(outputs).all()  # what was given is what it was


def test_members_that_add_nothing_are_left_out():
    p = smooth_or_noise(600, True)
    e = np.random.default_rng(1).normal(size=(3, 600, 1))
    outputs = p.Y + 0.3 * e * np.array([1.0, 1.0, 8.0])[:, None, None]
    found = candidates_of(p, outputs)
    stack = fit_stack(outputs, p.Y, p.weight)
    assert 0 < stack.weights[2] < 0.1

    def kept(gain, found):
        return without_redundant(make_work(p, gain=gain), stack, found, outputs).tolist()

    assert kept(1e-6, found) == [True, True, True]
    assert kept(0.05, found) == [True, True, False]
    assert sum(kept(1e6, found)) == 1
    # Leaves keep the rows that prototypes were made of: the last of them stays.
    prototypes = [replace(c, stage="prototypes") for c in found]
    for i in range(3):
        some = [found[j] if i == j else prototypes[j] for j in range(3)]
        assert kept(1e6, some)[i]


def test_rows_that_made_a_metric_weight_the_stack_unless_they_look_too_good():
    p = smooth_or_noise(600, True)
    learned, e = np.arange(300), np.random.default_rng(1).normal(size=(1, 600, 1))
    candidate, *_ = candidates_of(p, p.Y + 0.3 * e[[0, 0, 0]])
    work = make_work(p)
    assert not overfitted(work, [candidate], [p.Y + 0.3 * e[0]], learned)
    smaller = np.where(np.arange(600) < 300, 0.2, 0.3)[:, None] * e[0]
    assert overfitted(work, [candidate], [p.Y + smaller], learned)
    # Half of the error in rows that hardly count shows nothing.
    light = replace(p, weight=np.where(np.arange(600) < 290, 1e-6, 1.0))
    part = np.where(np.arange(600) < 290, 0.1, 0.3)[:, None] * e[0]
    assert not overfitted(make_work(light), [candidate], [p.Y + part], learned)


def test_rows_that_made_a_metric_are_not_scored():
    train = problem(2600, classes=True)
    fit = fit_table(train, LARGE, Clock(), quiet)
    learned = fit.state.learned
    assert len(learned) == LARGE.learned_on
    assert not np.isin(known_outputs(fit)[1], learned).any()
    every = known_outputs(fit, learned=True)[1]
    assert np.isin(learned, every).all() or not np.isin(learned, every).any()


def test_the_same_seed_takes_the_same_steps():
    few = {"configurations": TWO, "learned_leaf": 100, "largest": 300, "n_prototypes": 0}
    settings = replace(LARGE, leaf_size=None, rounds=1, gain=0.02, **few)
    p = problem(2600)
    fits = [fit_table(p, replace(settings, seed=s), Clock(), quiet) for s in (3, 3, 4)]
    steps = [[(s.what, s.gain, s.cost, s.taken) for s in fit.tuning.steps] for fit in fits]
    assert repr(steps[0]) == repr(steps[1]) != repr(steps[2])
    outputs = [fit.outputs(p.inputs) for fit in fits]
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert np.abs(outputs[0] - outputs[2]).max() > 0.0
    stages = {step.stage for step in fits[0].tuning.steps}
    assert stages >= {"screening", "metric", "leaf size", "all rows"}


def test_members_with_a_metric_and_with_a_warp_are_told_apart():
    """Prototypes of one are not those of the other, though configuration and rounds are equal."""
    leaf = fit_leaf(Rows(np.ones((2, 1)), np.ones((2, 1)), np.ones(2)), "euclidean", Setting(1, 1))
    kernel = KERNEL_OF["euclidean"](leaf.setting.gamma)
    model = Expansion(kernel, leaf.rows.X, leaf.fit.coef, np.zeros(1), np.ones(1))
    knots = np.array([[0.0, 1.0]])
    metric, warp = Metric(np.ones(1)), Metric(None, Warp(knots, 2.0 * knots))
    a, b = (Member(model, None, "standardised", one, 2) for one in (metric, warp))
    assert a.is_of(a) and a.is_of(replace(a, weight=0.5)) and not a.is_of(b)


def test_samples_and_folds_keep_classes_and_groups():
    labels = np.r_[np.zeros(900), np.ones(100)].astype(int)
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 500, 1000)
    p = Problem(both(rng.normal(size=(1000, 2))), np.ones((1000, 1)), np.ones(1000), groups, labels)
    chosen = p.sample(200, rng)
    assert len(set(chosen)) == 200 and labels[chosen].sum() in (19, 20, 21)
    folds = p.folds(5, rng)
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
    quick = Problem(both(X[again]), y[again], np.ones(len(again))).merged(ranked=False)
    counts = [dict(zip(p.Y.ravel(), p.weight, strict=True)) for p in (quick, other)]
    assert quick.n == 30 and counts[0] == counts[1]
    all_different = Problem(both(X), y, np.ones(30))
    assert all_different.merged(ranked=False) is all_different
    few = Problem(both(np.zeros((10, 1))), np.arange(10.0)[:, None] % 2, np.ones(10)).merged()
    assert few.n == 10  # repeats with different targets are observations


def test_rounding_does_not_change_the_order_of_rows():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=60), rng.integers(0, 4, 60) / 3.0])
    dusty = X + 1e-15 * rng.random((2, 60, 2))
    np.testing.assert_array_equal(row_numbers(dusty[0]), row_numbers(X))
    np.testing.assert_array_equal(row_numbers(dusty[1]), row_numbers(X))


def test_the_summary_counts_and_rounds_in_words():
    counted = [table_record.number_of(n, "model") for n in (0, 1, 2, 1200)]
    assert counted == ["0 models", "1 model", "2 models", "1,200 models"]
    told = [table_record._percent(gain) for gain in (0.0123, -1e-9, -9.5, -10.5, -1e15)]
    assert told == ["1.23%", "0.00%", "-950.00%", "below -1,000%", "below -1,000%"]
