"""The full grid and the shrinking grid."""

import itertools

import numpy as np
import pytest
from tests.tuning.search_objectives import SurfaceObjective, bowl, rough

from lssvm.tuning.search import Space
from lssvm.tuning.searches import GridSearch, ShrinkingGridSearch


def test_every_pair_is_evaluated_with_one_point_per_gamma():
    objective = SurfaceObjective(rough)
    C, gamma = [0.5, 1.0, 8.0], [0.1, 0.4]
    result = GridSearch(C=C, gamma=gamma).run(objective, Space())
    assert objective.asked == list(itertools.product(gamma, C))
    assert objective.gammas == gamma
    losses = {(g, c): rough(np.log(c), np.log(g)) for g in gamma for c in C}
    assert (result.gamma, result.C) == min(losses, key=losses.get)


def test_the_default_grid_is_one_value_per_decade_around_the_start():
    objective = SurfaceObjective(bowl())
    result = GridSearch().run(objective, Space(gamma_start=0.03))
    np.testing.assert_allclose(objective.gammas, 0.03 * 10.0 ** np.arange(-4, 5))
    np.testing.assert_allclose(np.unique(result.cv_results["param_C"]), 10.0 ** np.arange(-3, 7))
    assert result.n_evaluations == 90


def test_the_grid_of_2011():
    grid = GridSearch.ding2011()
    mu = [2.0**k for k in range(-15, 6, 2)]
    assert sorted(grid.C) == sorted(1 / value for value in mu)
    assert list(grid.gamma) == [2.0**k for k in range(-15, 10, 2)]
    objective = SurfaceObjective(bowl())
    result = grid.run(objective, Space())
    assert (len(objective.gammas), result.n_evaluations) == (13, 13 * 11)


def test_equal_pairs_are_decided_by_tie_then_C_then_gamma():
    def flat(c, g):
        return np.full(c.shape, 0.5)

    grid = GridSearch(C=[4.0, 1.0, 2.0], gamma=[3.0, 1.0])
    result = grid.run(SurfaceObjective(flat), Space())
    assert (result.C, result.gamma) == (1.0, 1.0)
    result = grid.run(SurfaceObjective(flat, lambda c, g: -g - c), Space())
    assert (result.C, result.gamma) == (4.0, 3.0)


def test_what_is_fixed_stands_in_for_its_axis():
    grid = GridSearch(C=[1.0, 2.0], gamma=[0.1, 0.2, 0.3])
    objective = SurfaceObjective(bowl())
    grid.run(objective, Space(C=7.0))
    assert objective.asked == [(0.1, 7.0), (0.2, 7.0), (0.3, 7.0)]
    objective = SurfaceObjective(bowl())
    grid.run(objective, Space(gamma=0.9, tune_gamma=False))
    assert objective.asked == [(0.9, 1.0), (0.9, 2.0)]


def test_a_grid_is_a_value():
    grid = GridSearch(C=np.array([1, 2]), gamma=0.5)
    assert grid == GridSearch(C=(1.0, 2.0), gamma=[0.5])
    assert repr(grid) == "GridSearch(C=(1.0, 2.0), gamma=(0.5,))"
    hash(grid)


def test_the_first_shrinking_grid_is_the_chapters():
    objective = SurfaceObjective(bowl())
    result = ShrinkingGridSearch(i_max=0).run(objective, Space(n_features=13))
    sigma = np.array([0.5, 5, 10, 15, 25, 50, 100, 250, 500]) * np.sqrt(13)
    np.testing.assert_allclose(np.sort(objective.gammas), np.sort(1 / sigma**2))
    C = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50, 100, 500, 1000]
    assert np.unique(result.cv_results["param_C"]).tolist() == C
    assert result.n_evaluations == 9 * 11


@pytest.mark.parametrize("g0", np.arange(-7.0, -3.0, 0.25))
def test_three_refinements_of_5_by_11_with_the_best_point_kept(g0):
    objective = SurfaceObjective(bowl(2.2, g0))
    result = ShrinkingGridSearch().run(objective, Space(n_features=4))
    assert result.n_points == len(objective.gammas) == 9 + 3 * 4
    stages, counts = np.unique(result.cv_results["stage"], return_counts=True)
    assert stages.tolist() == ["grid 0", "grid 1", "grid 2", "grid 3"]
    assert counts.tolist() == [99, 54, 54, 54]  # the best pair is known
    assert result.loss < 1e-3


def test_each_refinement_lies_inside_the_neighbours_of_the_best_pair():
    objective = SurfaceObjective(bowl(2.2, -4.0))
    result = ShrinkingGridSearch(i_max=1).run(objective, Space(n_features=4))
    table = result.cv_results
    first = table["stage"] == "grid 0"
    for name in ("param_C", "param_gamma"):
        values = np.unique(table[name][first])
        best = table[name][first][np.argmax(table["mean_test_score"][first])]
        i = int(np.searchsorted(values, best))
        finer = np.unique(table[name][~first])
        assert best in finer
        assert values[i - 1] < finer[0]
        assert finer[-1] < values[i + 1]
        assert finer.size == (11 if name == "param_C" else 5)


def test_refinement_can_leave_the_chapters_sets():
    surface = SurfaceObjective(lambda c, g: -c + g)
    result = ShrinkingGridSearch().run(surface, Space())
    assert result.C > 1000.0
    assert result.gamma < 1 / 500.0**2


@pytest.mark.parametrize("i_max", [0, 2])
def test_shrinking_with_one_parameter(i_max):
    objective = SurfaceObjective(bowl(2.2, 0.0))
    space = Space(gamma=1.0, tune_gamma=False)
    result = ShrinkingGridSearch(i_max=i_max).run(objective, space)
    assert objective.gammas == [1.0]
    assert result.n_evaluations == 11 + 10 * i_max
    objective = SurfaceObjective(bowl(0.0, -4.0))
    result = ShrinkingGridSearch(i_max=i_max).run(objective, Space(C=1.0))
    assert result.n_evaluations == result.n_points == 9 + 4 * i_max
