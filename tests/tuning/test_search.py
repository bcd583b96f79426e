"""The contract: losses, space, selection, names of the searches, finer sets."""

import numpy as np
import pytest

from lssvm._core.errors import InvalidInputError
from lssvm.tuning.circulant import CirculantSearch
from lssvm.tuning.objective import Losses
from lssvm.tuning.search import Space, chance_band, selection_order, zoom
from lssvm.tuning.searches import (
    CoupledAnnealing,
    GridSearch,
    PathSearch,
    ShrinkingGridSearch,
    make_search,
)


def test_losses_summarise_the_folds_with_their_weights():
    rng = np.random.default_rng(0)
    fold, weight = rng.random((4, 3)), np.array([0.5, 0.3, 0.2])
    losses = Losses(fold, weight, np.zeros(4))
    np.testing.assert_allclose(losses.mean, fold @ weight, rtol=1e-12)  # to 13 digits
    variance = (fold**2) @ weight - (fold @ weight) ** 2
    np.testing.assert_allclose(losses.std, np.sqrt(variance), rtol=1e-12)


def test_equal_shares_of_rows_are_equal_however_folds_share_them():
    weight = np.array([43, 43, 42, 42]) / 170
    right = np.array([[40, 31, 29, 30], [30, 41, 30, 29], [39, 30, 31, 30]])
    losses = Losses(-right / [43, 43, 42, 42], weight, np.zeros(3))
    assert len(set(losses.mean.tolist())) == 1
    assert losses.mean[0] == pytest.approx(-130 / 170, rel=1e-12)


def test_a_mean_does_not_depend_on_the_rows_beside_it():
    rng = np.random.default_rng(1)
    fold, weight = rng.random((50, 10)), np.full(10, 0.1)
    together = Losses(fold, weight, np.zeros(50))
    alone = [Losses(fold[i : i + 1], weight, np.zeros(1)) for i in range(50)]
    assert together.mean.tolist() == [float(x.mean[0]) for x in alone]
    assert together.std.tolist() == [float(x.std[0]) for x in alone]


def test_losses_too_large_to_be_squared_have_no_deviation():
    with np.errstate(over="raise"):
        assert Losses(np.array([[1e200, 3e200]]), np.full(2, 0.5), np.zeros(1)).std[0] == np.inf


def test_a_fold_of_weight_zero_is_ignored():
    losses = Losses(np.array([[1.0, np.nan]]), np.array([1.0, 0.0]), np.zeros(1))
    assert losses.mean[0] == 1.0
    assert losses.std[0] == 0.0


def test_an_infinite_loss_gives_an_infinite_mean_without_a_warning():
    losses = Losses(np.array([[1.0, np.inf]]), np.array([0.5, 0.5]), np.zeros(1))
    assert np.isinf(losses.mean[0])
    assert not np.isfinite(losses.std[0])


@pytest.mark.parametrize(
    ("fold", "weight", "tie"),
    [
        (np.ones(3), np.ones(1), np.ones(3)),
        (np.ones((3, 2)), np.full(3, 1 / 3), np.ones(3)),
        (np.ones((3, 2)), np.full(2, 0.5), np.ones(2)),
        (np.ones((3, 2)), np.ones(2), np.ones(3)),
        (np.ones((3, 2)), np.array([2.0, -1.0]), np.ones(3)),
    ],
)
def test_losses_of_the_wrong_shape_or_weight_are_refused(fold, weight, tie):
    with pytest.raises(InvalidInputError, match="Losses got"):
        Losses(fold, weight, tie)


def test_selection_is_by_mean_then_tie_then_C_then_gamma():
    nan = np.nan
    #                  worst  3rd  2nd  best  4th  5th
    mean = np.array([nan, 1.0, 1.0, 1.0, 1.0, 2.0])
    tie = np.array([0.0, 3.0, 3.0, 3.0, 4.0, 0.0])
    C = np.array([1.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    gamma = np.array([1.0, 1.0, 2.0, 1.0, 1.0, 1.0])
    assert selection_order(mean, tie, C, gamma).tolist() == [3, 2, 1, 4, 5, 0]


def test_space_says_what_is_tuned():
    space = Space(C=np.float64(2.0), gamma_start=np.float32(0.5))
    assert not space.tune_C
    assert space.C_grid(5).tolist() == [2.0]
    assert "np." not in repr(space)
    assert Space(gamma_start=3.0, gamma_range=(0.5, 2.0)).gamma_bounds == (1.5, 6.0)
    grid = Space(C_range=(1e-2, 1e2)).C_grid(5)
    np.testing.assert_allclose(grid, [1e-2, 1e-1, 1.0, 10.0, 100.0])


@pytest.mark.parametrize(
    "settings",
    [
        {"C": 0.0},
        {"C": np.inf},
        {"gamma": -1.0, "tune_gamma": False},
        {"gamma_start": np.nan},
        {"gamma": 1.0},
        {"n_features": 0},
        {"C_range": (1.0, 1.0)},
        {"gamma_range": (0.0, 1.0)},
    ],
)
def test_a_space_that_cannot_be_searched_is_refused(settings):
    with pytest.raises(InvalidInputError):
        Space(**settings)


def test_names_of_the_searches():
    made = {name: make_search(name) for name in ("path", "grid", "shrinking", "csa", "circulant")}
    assert made == {
        "path": PathSearch(),
        "grid": GridSearch(),
        "shrinking": ShrinkingGridSearch(),
        "csa": CoupledAnnealing(),
        "circulant": CirculantSearch(),
    }
    mine = PathSearch(n_C=7)
    assert make_search(mine) is mine


@pytest.mark.parametrize("search", ["anneal", None, PathSearch, 3])
def test_an_unknown_search_is_refused_with_the_names(search):
    with pytest.raises(InvalidInputError, match="'path', 'grid', 'shrinking', 'csa'"):
        make_search(search)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PathSearch(n_C=1),
        lambda: PathSearch(max_points=0),
        lambda: PathSearch(tol=0.0),
        lambda: GridSearch(C=[1.0, -1.0]),
        lambda: GridSearch(gamma=[]),
        lambda: GridSearch(gamma=[[1.0]]),
        lambda: GridSearch(C=[np.nan]),
        lambda: ShrinkingGridSearch(i_max=-1),
        lambda: CoupledAnnealing(starters=1),
        lambda: CoupledAnnealing(evaluations=4),
        lambda: CoupledAnnealing(simplex=-1),
    ],
)
def test_settings_that_cannot_search_are_refused(make):
    with pytest.raises(InvalidInputError):
        make()


def test_zoom_stays_inside_the_neighbours_and_mirrors_at_an_end():
    values = np.array([1.0, 8.0, 64.0, 1000.0])
    np.testing.assert_allclose(zoom(values, 1, 2), [2.0, 4.0, 8.0, 16.0, 32.0])
    np.testing.assert_allclose(zoom(values, 0, 2), [0.25, 0.5, 1.0, 2.0, 4.0])
    ratio = np.cbrt(1000.0 / 64.0)
    np.testing.assert_allclose(zoom(values, 3, 2), 1000.0 * ratio ** np.arange(-2.0, 3.0))
    assert zoom(values, 2, 3)[3] == 64.0


@pytest.mark.parametrize(
    ("search", "settings"),
    [
        (CirculantSearch, {"refine": 2.5}),
        (CoupledAnnealing, {"evaluations": 20.5}),
        (CoupledAnnealing, {"starters": "5"}),
        (GridSearch, {"C": "a"}),
        (GridSearch, {"gamma": [[0.1], [0.2, 0.3]]}),
        (PathSearch, {"n_C": "60"}),
        (PathSearch, {"max_points": 2.5}),
        (ShrinkingGridSearch, {"i_max": 1.5}),
    ],
    ids=str,
)
def test_settings_of_another_type_are_told(search, settings):
    with pytest.raises(InvalidInputError, match="give"):
        search(**settings)


@pytest.mark.parametrize(("rate", "rows"), [(0.9, 400), (0.5, 26), (1.0, 10), (0.0, 10)])
def test_rates_within_half_a_standard_error_are_alike(rate, rows):
    hits = np.repeat([1.0, 0.0], [round(rate * rows), rows - round(rate * rows)])
    error = hits.std() / np.sqrt(rows)  # of a mean of zeros and ones
    assert chance_band(-rate, rows) == pytest.approx(error / 2, abs=1e-15)


@pytest.mark.parametrize("loss", [0.3, 17.0, -1.5, np.nan])
def test_losses_that_are_no_rates_have_no_band(loss):
    assert chance_band(loss, 100) == 0.0
