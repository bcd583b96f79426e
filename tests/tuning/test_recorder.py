"""What all searches share: one evaluation per pair, few points alive, events, interruption."""

from dataclasses import replace

import numpy as np
import pytest
from tests.tuning.search_objectives import GENERAL, SurfaceObjective, bowl, rough, steps

from lssvm._core.errors import InvalidInputError, Stopped
from lssvm.tuning.objective import Losses
from lssvm.tuning.search import Recorder, Space
from lssvm.tuning.searches import CoupledAnnealing, GridSearch, PathSearch, make_search

ALL = GENERAL


def test_a_pair_is_evaluated_once():
    objective = SurfaceObjective(bowl())
    record = Recorder(objective)
    first = record.evaluate("a", 0.5, np.array([1.0, 2.0, 1.0]))
    second = record.evaluate("b", 0.5, np.array([2.0, 3.0]))
    assert objective.asked == [(0.5, 1.0), (0.5, 2.0), (0.5, 3.0)]
    assert len(objective.gammas) == record.n_points == 1
    assert first.mean[1] == second.mean[0]
    assert first.fold.shape == (3, 3)
    assert record.n_evaluations == 3


def test_the_best_and_the_latest_point_stay_alive():
    objective = SurfaceObjective(bowl(g0=0.0))
    record = Recorder(objective)
    C = np.array([1.0])
    for gamma in (0.01, 1.0, 100.0, 1000.0):
        record.evaluate("walk", gamma, C)
    record.evaluate("again", 1.0, C + 1.0)  # the best: alive
    record.evaluate("again", 1000.0, C + 1.0)  # the latest: alive
    assert objective.gammas == [0.01, 1.0, 100.0, 1000.0]
    record.evaluate("again", 100.0, C + 1.0)  # gone
    assert objective.gammas == [0.01, 1.0, 100.0, 1000.0, 100.0]
    assert record.n_points == 5
    assert objective.most_alive == 2


@pytest.mark.parametrize("name", ALL)
def test_points_alive_and_counts(name):
    objective = SurfaceObjective(bowl())
    result = make_search(name).run(objective, Space(), random_state=0)
    assert objective.most_alive <= 2
    assert result.n_points == len(objective.gammas)
    assert result.n_evaluations == len(objective.asked) == len(set(objective.asked))


@pytest.mark.parametrize("name", ALL)
def test_the_record_has_scikit_learns_shape(name):
    objective = SurfaceObjective(steps(bowl(3.0, 1.0)), bowl(3.0, 1.0))
    result = make_search(name).run(objective, Space(), random_state=0)
    table, n = result.cv_results, result.n_evaluations
    assert set(table) == {
        "params",
        "param_C",
        "param_gamma",
        "split0_test_score",
        "split1_test_score",
        "split2_test_score",
        "mean_test_score",
        "std_test_score",
        "rank_test_score",
        "mean_tie_score",
        "stage",
        "seconds",
    }
    assert all(len(column) == n for column in table.values())
    splits = np.array([table[f"split{i}_test_score"] for i in range(3)])
    np.testing.assert_allclose(table["mean_test_score"], objective.weight @ splits, atol=1e-14)
    assert sorted(table["rank_test_score"]) == list(range(1, n + 1))
    assert [(p["gamma"], p["C"]) for p in table["params"]] == objective.asked
    assert table["param_C"].tolist() == [p["C"] for p in table["params"]]
    assert table["param_gamma"].tolist() == [p["gamma"] for p in table["params"]]
    assert (np.diff(table["seconds"]) >= 0).all()
    # the chosen pair, found again by plain sorting
    rows = zip(
        -table["mean_test_score"],
        -table["mean_tie_score"],
        table["param_C"],
        table["param_gamma"],
        range(n),
        strict=True,
    )
    loss, _, C, gamma, index = min(rows)
    assert (loss, C, gamma, index) == (result.loss, result.C, result.gamma, result.best_index)
    assert table["rank_test_score"][index] == 1
    assert not result.interrupted
    assert result.seconds >= table["seconds"][-1]


def test_a_kernel_without_a_parameter():
    objective = SurfaceObjective(bowl(2.0, 0.0))
    result = PathSearch().run(objective, Space(tune_gamma=False))
    assert objective.gammas == [None]
    assert result.gamma is None
    assert np.isnan(result.cv_results["param_gamma"]).all()
    assert result.cv_results["params"][result.best_index] == {"C": result.C}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("gamma", [None, 0.7])
def test_nothing_to_tune_is_one_evaluation(name, gamma):
    objective = SurfaceObjective(bowl())
    space = Space(C=3.0, gamma=gamma, tune_gamma=False)
    result = make_search(name).run(objective, space, random_state=0)
    assert objective.asked == [(gamma, 3.0)]
    assert (result.C, result.gamma, result.n_points) == (3.0, gamma, 1)


@pytest.mark.parametrize("name", ALL)
def test_events_tell_the_progress(name):
    events = []
    result = make_search(name).run(
        SurfaceObjective(bowl()), Space(), random_state=0, on_event=events.append
    )
    keys = {
        "stage",
        "n_evaluations",
        "planned",
        "n_points",
        "best_loss",
        "best_C",
        "best_gamma",
        "elapsed",
    }
    assert all(set(event) == keys for event in events)
    counts = [event["n_evaluations"] for event in events]
    assert counts == sorted(counts)
    assert len(set(counts)) == len(counts) - 1  # only the last event adds nothing
    best = [event["best_loss"] for event in events]
    assert best == sorted(best, reverse=True)
    assert all(event["planned"] >= event["n_evaluations"] for event in events)
    assert events[0]["planned"] >= result.n_evaluations
    last = events[-1]
    assert last["stage"] == "done"
    assert last["planned"] == last["n_evaluations"] == result.n_evaluations
    assert (last["best_loss"], last["best_C"], last["best_gamma"]) == (
        result.loss,
        result.C,
        result.gamma,
    )


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("where", ["interrupt_at", "interrupt_losses"])
def test_an_interruption_gives_the_best_so_far_to_those_who_ask(name, where):
    with pytest.raises(KeyboardInterrupt):
        make_search(name).run(SurfaceObjective(rough, **{where: 5}), Space(), random_state=0)
    search = replace(make_search(name), on_interrupt="keep")
    whole = make_search(name).run(SurfaceObjective(rough), Space(), random_state=0)
    objective = SurfaceObjective(rough, **{where: 5})
    events = []
    result = search.run(objective, Space(), random_state=0, on_event=events.append)
    assert result.interrupted
    n = result.n_evaluations
    assert 0 < n < whole.n_evaluations
    assert result.cv_results["params"] == whole.cv_results["params"][:n]
    assert result.loss == np.nanmin(-whole.cv_results["mean_test_score"][:n])
    assert events[-1]["stage"] == "interrupted"


def test_an_interruption_before_the_first_evaluation_is_raised():
    for where in ("interrupt_at", "interrupt_losses"):
        with pytest.raises(KeyboardInterrupt):
            PathSearch(on_interrupt="keep").run(SurfaceObjective(bowl(), **{where: 1}), Space())


def test_what_an_interruption_does_has_two_answers():
    with pytest.raises(InvalidInputError, match="on_interrupt='stop'"):
        PathSearch(on_interrupt="stop").run(SurfaceObjective(bowl()), Space())


def test_the_callback_may_stop_the_search():
    def stop(event):
        if event["n_evaluations"] >= 20:
            raise Stopped

    result = GridSearch().run(SurfaceObjective(bowl()), Space(), on_event=stop)
    assert result.interrupted
    assert result.n_evaluations == 20


def test_another_error_is_not_swallowed():
    class Broken(SurfaceObjective):
        def at(self, gamma):
            if len(self.gammas) == 3:
                raise ZeroDivisionError
            return super().at(gamma)

    with pytest.raises(ZeroDivisionError):
        GridSearch().run(Broken(bowl()), Space())


@pytest.mark.parametrize("name", ALL)
def test_no_finite_loss_is_an_error(name):
    objective = SurfaceObjective(lambda c, g: np.full(c.shape, np.nan))
    with pytest.raises(InvalidInputError, match="has a finite loss"):
        make_search(name).run(objective, Space(), random_state=0)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_pairs_without_a_finite_loss_are_passed_over(name, bad):
    def surface(c, g):
        return np.where((c > 3.0) | (g > 1.0), bad, bowl(2.0, -2.0)(c, g))

    result = make_search(name).run(SurfaceObjective(surface), Space(), random_state=0)
    assert result.loss < 0.1


def test_an_objective_that_breaks_the_contract_is_named():
    class TooFew(SurfaceObjective):
        def losses(self, gamma, C):
            return super().losses(gamma, C[:1])

    class OtherFolds(SurfaceObjective):
        def losses(self, gamma, C):
            v = len(self.gammas)
            return Losses(np.ones((C.size, v)), np.full(v, 1 / v), np.ones(C.size))

    for broken in (TooFew, OtherFolds):
        with pytest.raises(InvalidInputError, match="The objective gave losses of shape"):
            GridSearch().run(broken(bowl()), Space())


def test_a_buffer_that_the_objective_reuses_does_not_spoil_the_record():
    class Reuses(SurfaceObjective):
        buffer = np.empty((10, 1))

        def losses(self, gamma, C):
            self.buffer[:, 0] = bowl()(np.log(C), np.log(gamma))
            return Losses(self.buffer, np.ones(1), np.zeros(10))

    result = GridSearch().run(Reuses(bowl()), Space())
    scores = result.cv_results["split0_test_score"]
    np.testing.assert_allclose(scores, result.cv_results["mean_test_score"], rtol=1e-12)


def test_annealing_is_the_only_search_that_draws():
    for name in ALL:
        results = [
            make_search(name).run(SurfaceObjective(rough), Space(), random_state=seed)
            for seed in (0, 0, 1)
        ]
        params = [result.cv_results["params"] for result in results]
        assert params[0] == params[1]
        assert (params[0] == params[2]) == (name != "csa")
    generator = np.random.default_rng(5)
    state = generator.bit_generator.state
    GridSearch().run(SurfaceObjective(bowl()), Space(), random_state=generator)
    assert generator.bit_generator.state == state
    CoupledAnnealing().run(SurfaceObjective(bowl()), Space(), random_state=generator)
    assert generator.bit_generator.state != state
