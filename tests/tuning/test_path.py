"""The path search: near the minimum of many surfaces, with few kernel parameters."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.tuning.search_objectives import SurfaceObjective, banana, bowl, steps, two_valleys

from lssvm.tuning import Losses
from lssvm.tuning.search import Space
from lssvm.tuning.searches import GridSearch, ListedPathSearch, PathSearch


def grid_10_by_10():
    return GridSearch(C=np.geomspace(1e-3, 1e6, 10), gamma=np.geomspace(1e-4, 1e4, 10))


def bowls(n):
    rng = np.random.default_rng(0)
    for _ in range(n):
        yield bowl(rng.uniform(-4, 11), rng.uniform(-8, 8), rng.uniform(-1, 1))


def test_far_better_than_a_10_by_10_grid_on_bowls_and_with_fewer_points():
    points = []
    for surface in bowls(25):
        path = PathSearch().run(SurfaceObjective(surface), Space())
        grid = grid_10_by_10().run(SurfaceObjective(surface), Space())
        assert path.loss <= grid.loss
        assert path.loss < 0.005
        points.append(path.n_points)
    assert max(points) <= 10
    assert np.mean(points) < 8.5


def test_a_valley_along_which_C_and_gamma_replace_each_other():
    path = PathSearch().run(SurfaceObjective(banana), Space())
    grid = grid_10_by_10().run(SurfaceObjective(banana), Space())
    assert path.loss < 0.1 * grid.loss
    assert path.n_points < 10


def test_the_deeper_of_two_valleys_is_found():
    path = PathSearch().run(SurfaceObjective(two_valleys), Space())
    assert path.loss < 0.11
    assert path.n_points <= 12
    assert path.n_evaluations == 68 * path.n_points  # the whole path of C at each
    assert set(path.cv_results["stage"]) >= {"coarse", "expand", "valley", "refine"}


@pytest.mark.parametrize(("c0", "g0"), [(3.0, 2.7), (-2.0, -5.0), (8.0, 6.0)])
def test_on_a_plateau_the_tie_loss_leads(c0, g0):
    smooth = bowl(c0, g0, -0.5)
    flat = SurfaceObjective(steps(smooth), smooth)
    result = PathSearch().run(flat, Space())
    assert result.loss == pytest.approx(0.0, abs=1e-12)
    assert -result.cv_results["mean_tie_score"][result.best_index] < 0.01
    assert result.n_points <= 12


def test_a_loss_that_is_the_same_everywhere_is_left_to_the_tie_loss():
    constant = SurfaceObjective(lambda c, g: np.full(c.shape, 0.3), bowl(4.0, -6.0))
    result = PathSearch().run(constant, Space())
    assert np.log(result.C) == pytest.approx(4.0, abs=0.1)
    assert np.log(result.gamma) == pytest.approx(-6.0, abs=0.1)


def test_a_surface_without_any_shape_gives_the_smallest_C_and_stays_near_the_start():
    flat = SurfaceObjective(lambda c, g: np.full(c.shape, 0.3))
    result = PathSearch().run(flat, Space())
    assert result.C == 1e-3
    assert "expand" not in result.cv_results["stage"]
    assert result.n_points <= 12


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_optimum_at_the_limit_of_gamma(sign):
    surface = SurfaceObjective(lambda c, g: sign * 0.1 * g + (c - 3.0) ** 2 / 50)
    result = PathSearch().run(surface, Space(gamma_start=2.0))
    assert result.gamma == pytest.approx(2.0 * 10 ** (-4 * sign))
    assert result.n_points <= 10
    gammas = result.cv_results["param_gamma"]
    assert gammas.min() >= 2e-4 * (1 - 1e-12)
    assert gammas.max() <= 2e4 * (1 + 1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_kernel_parameters_without_a_finite_loss_are_avoided(bad, side):
    def surface(c, g):
        return np.where(side * g > 3.0, bad, bowl(2.0, side * 1.2)(c, g))

    result = PathSearch().run(SurfaceObjective(surface), Space())
    assert result.loss < 0.005
    assert result.n_points <= 12


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_optimum_at_the_limit_of_C(sign):
    surface = SurfaceObjective(lambda c, g: sign * 0.1 * c + (g - 1.0) ** 2 / 50)
    result = PathSearch().run(surface, Space())
    assert result.C == (1e-3 if sign > 0 else 1e6)
    values = result.cv_results["param_C"]
    assert values.min() >= 1e-3
    assert values.max() <= 1e6


def test_only_C():
    objective = SurfaceObjective(bowl(2.345, np.log(0.5)))
    result = PathSearch().run(objective, Space(gamma=0.5, tune_gamma=False))
    assert objective.gammas == [0.5]
    assert np.log(result.C) == pytest.approx(2.345, abs=0.04)
    assert result.n_evaluations == 68


def test_only_gamma():
    objective = SurfaceObjective(bowl(np.log(3.0), 1.234))
    result = PathSearch().run(objective, Space(C=3.0))
    assert result.C == 3.0
    assert np.log(result.gamma) == pytest.approx(1.234, abs=0.05)
    assert result.n_evaluations == result.n_points <= 10


def test_the_start_comes_first_and_the_order_is_from_the_inside():
    objective = SurfaceObjective(bowl())
    PathSearch().run(objective, Space(gamma_start=0.3))
    assert objective.gammas[0] == 0.3
    np.testing.assert_allclose(objective.gammas[1:4], [0.03, 3.0, 0.003])


def test_a_narrow_range_around_the_start():
    space = Space(gamma_range=(0.5, 2.0), C_range=(1.0, 10.0))
    result = PathSearch().run(SurfaceObjective(bowl(1.0, 0.2)), space)
    assert result.loss < 0.001
    assert 0.5 <= result.gamma <= 2.0
    assert 1.0 <= result.C <= 10.0


@pytest.mark.parametrize("n", [1, 2, 3, 5, 20])
def test_the_number_of_points_is_limited(n):
    objective = SurfaceObjective(bowl(2.0, -7.0))
    result = PathSearch(max_points=n, tol=1e-3).run(objective, Space())
    assert len(objective.gammas) == result.n_points <= n
    assert result.n_points == n or n == 20


def test_refinement_ends_at_the_tolerance():
    loose, tight = (
        PathSearch(tol=tol, max_points=50).run(SurfaceObjective(bowl(2.0, -1.3)), Space())
        for tol in (1.0, 1e-3)
    )
    assert loose.n_points < tight.n_points < 30
    gammas = np.unique(tight.cv_results["param_gamma"])
    best = int(np.searchsorted(gammas, tight.gamma))
    gaps = np.diff(np.log(gammas[best - 1 : best + 2]))
    assert (gaps <= 1e-3).all()
    assert np.log(tight.gamma) == pytest.approx(-1.3, abs=1e-3)


def test_noise_does_not_lead_astray():
    rng = np.random.default_rng(7)
    for _ in range(10):
        smooth = bowl(rng.uniform(-2, 8), rng.uniform(-5, 5))
        phase = rng.uniform(0, 100)

        def noisy(c, g, smooth=smooth, phase=phase):
            noise = np.modf(np.sin(12.9898 * c + 78.233 * g + phase) * 43758.5453)[0]
            return np.round(50 * (0.1 + 0.02 * smooth(c, g) + 0.02 * noise)) / 50

        result = PathSearch().run(SurfaceObjective(noisy, smooth), Space())
        assert smooth(np.log(result.C), np.log(result.gamma)) < 2.0
        assert result.n_points <= 12


def test_a_kink_on_which_parabolas_are_slow_is_sectioned():
    def kink(c, g):
        return np.full(c.shape, max(20 * (g - 1.3), 1.3 - g))

    result = PathSearch(tol=0.01, max_points=60).run(SurfaceObjective(kink), Space(C=1.0))
    assert np.log(result.gamma) == pytest.approx(1.3, abs=0.01)
    assert result.n_points <= 25


@pytest.mark.parametrize(("best", "tried"), [(0.9, 2), (2.1, 3), (1e3, 5)])
def test_a_listed_search_climbs_as_long_as_it_gets_better(best, tried):
    def at(gamma):
        loss = np.array([(np.log(gamma) - np.log(best)) ** 2])
        made = Losses(loss[:, None], np.ones(1), loss)
        return SimpleNamespace(losses=lambda C: made)

    search = ListedPathSearch(gammas=(1.0,), climbs=True)
    result = search.run(SimpleNamespace(at=at), Space(C=1.0))
    assert result.n_points == tried
    expected = min(2.0 ** np.arange(tried), key=lambda gamma: abs(np.log(gamma / best)))
    assert result.gamma == expected
    assert ListedPathSearch(gammas=(1.0,)).run(SimpleNamespace(at=at), Space(C=1.0)).n_points == 1
