"""Coupled annealing against the paper's formulas in loops, its counts, and the simplex search."""

import numpy as np
import pytest
from tests.oracles import annealing as oracle
from tests.tuning.search_objectives import SurfaceObjective, banana, bowl, steps, two_valleys

from lssvm.tuning.search import Space
from lssvm.tuning.searches import T_0, CoupledAnnealing, acceptance, acceptance_variance


def zero(c, g):
    return np.zeros(c.shape)


@pytest.mark.parametrize("T", [0.1, 1.0, 30.0])
def test_acceptance_and_variance_are_the_papers(T):
    rng = np.random.default_rng(0)
    E_states, E_probes = rng.normal(size=5), rng.normal(size=4)
    np.testing.assert_allclose(
        acceptance(E_probes, E_states, T), oracle.acceptance(E_probes, E_states, T), rtol=1e-12
    )
    assert acceptance_variance(E_states, T) == pytest.approx(
        oracle.variance(E_states, T), rel=1e-9, abs=1e-15
    )


def test_energies_far_from_zero_do_not_overflow():
    E_states, E_probes = np.array([1.0, 2.0, 4.0]), np.array([0.0, 3.0])
    for shift in (1e4, -1e4):
        shifted = acceptance(E_probes + shift, E_states + shift, 0.5)
        np.testing.assert_allclose(shifted, acceptance(E_probes, E_states, 0.5), rtol=1e-9)
        assert acceptance_variance(E_states + shift, 0.5) == pytest.approx(
            acceptance_variance(E_states, 0.5)
        )
    assert acceptance(np.array([1e100, -1e100]), E_states, 1e-3).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("q", [2, 5, 9])
def test_the_variance_is_between_zero_and_its_bound(q):
    assert acceptance_variance(np.full(q, 3.0), 1.0) == pytest.approx(0.0, abs=1e-16)
    alone = np.concatenate([[0.0], np.full(q - 1, 1e6)])
    assert acceptance_variance(alone, 1.0) == pytest.approx((q - 1) / q**2)


@pytest.mark.parametrize(("q", "evaluations"), [(5, 90), (5, 92), (3, 50), (2, 2)])
@pytest.mark.parametrize("surface", [bowl(4.0, -3.0, 0.5), two_valleys])
def test_the_states_are_those_of_algorithm_6(surface, q, evaluations):
    space = Space(gamma_start=0.5)
    objective = SurfaceObjective(surface, zero)
    search = CoupledAnnealing(starters=q, evaluations=evaluations, simplex=0)
    search.run(objective, space, random_state=11)

    seed = int(np.random.default_rng(11).integers(2**63 - 1))
    low = np.log([space.C_range[0], space.gamma_bounds[0]])
    width = np.log([space.C_range[1], space.gamma_bounds[1]]) - low
    asked = oracle.anneal(
        lambda x: float(surface(np.array([x[0]]), x[1])[0]),
        low.tolist(),
        width.tolist(),
        q,
        evaluations,
        T_0,
        np.random.default_rng(seed),
    )
    evaluated = np.log([(C, gamma) for gamma, C in objective.asked])
    assert len(objective.asked) == evaluations
    np.testing.assert_allclose(evaluated, asked, rtol=0, atol=1e-8)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("surface", [bowl(), two_valleys, banana, steps(bowl())])
def test_90_evaluations_of_the_annealing_and_70_of_the_simplex(surface, seed):
    objective = SurfaceObjective(surface, bowl())
    result = CoupledAnnealing().run(objective, Space(), random_state=seed)
    stages, counts = np.unique(result.cv_results["stage"], return_counts=True)
    assert dict(zip(stages.tolist(), counts.tolist(), strict=True)) == {
        "starters": 5,
        "annealing": 85,
        "simplex": 70,
    }


@pytest.mark.parametrize(("evaluations", "simplex"), [(5, 0), (7, 1), (23, 10), (90, 0)])
def test_other_budgets_are_kept_too(evaluations, simplex):
    search = CoupledAnnealing(evaluations=evaluations, simplex=simplex)
    result = search.run(SurfaceObjective(bowl()), Space(), random_state=0)
    assert result.n_evaluations == evaluations + simplex
    assert np.count_nonzero(result.cv_results["stage"] == "simplex") == simplex


def test_every_pair_lies_in_the_space():
    space = Space(gamma_start=0.1, gamma_range=(0.1, 10.0), C_range=(1.0, 50.0))
    corner = SurfaceObjective(lambda c, g: -c - g)
    result = CoupledAnnealing().run(corner, space, random_state=0)
    C, gamma = result.cv_results["param_C"], result.cv_results["param_gamma"]
    slack = 1 + 1e-12
    assert 1.0 / slack <= C.min() and C.max() <= 50.0 * slack
    assert 0.01 / slack <= gamma.min() and gamma.max() <= 1.0 * slack
    assert result.C > 49.0
    assert result.gamma > 0.99


def test_the_simplex_refines_what_annealing_found():
    surface = bowl(4.0, -3.0, 0.5)
    coarse, fine = (
        CoupledAnnealing(simplex=n).run(SurfaceObjective(surface), Space(), random_state=2)
        for n in (0, 70)
    )
    assert coarse.cv_results["params"] == fine.cv_results["params"][:90]
    assert fine.loss < 1e-8 < coarse.loss


def test_two_valleys_are_told_apart_from_most_seeds():
    losses = [
        CoupledAnnealing().run(SurfaceObjective(two_valleys), Space(), random_state=seed).loss
        for seed in range(20)
    ]
    assert np.count_nonzero(np.array(losses) < 0.11) >= 16


def test_on_a_plateau_the_tie_loss_leads_the_simplex():
    smooth = bowl(3.0, 1.0)
    objective = SurfaceObjective(steps(smooth), smooth)
    result = CoupledAnnealing().run(objective, Space(), random_state=0)
    assert result.loss == pytest.approx(0.0, abs=1e-12)
    assert -result.cv_results["mean_tie_score"][result.best_index] < 1e-6


def test_the_search_does_not_depend_on_the_unit_of_the_loss():
    params = [
        CoupledAnnealing(simplex=0)
        .run(
            SurfaceObjective(lambda c, g, s=scale: s * (0.5 + bowl()(c, g))),
            Space(),
            random_state=0,
        )
        .cv_results["params"]
        for scale in (1.0, 1024.0, 2.0**-40)
    ]
    # the offsets of the folds are absolute, so pairs agree up to rounding
    for other in params[1:]:
        for a, b in zip(params[0], other, strict=True):
            assert a["C"] == pytest.approx(b["C"], rel=1e-6)


@pytest.mark.parametrize("tuned", ["C", "gamma"])
def test_one_dimension(tuned):
    objective = SurfaceObjective(bowl(1.5, -2.5))
    if tuned == "C":
        space = Space(gamma=float(np.exp(-2.5)), tune_gamma=False)
    else:
        space = Space(C=float(np.exp(1.5)))
    result = CoupledAnnealing().run(objective, space, random_state=0)
    stage = result.cv_results["stage"]
    assert np.count_nonzero(stage != "simplex") == 90
    assert 50 < np.count_nonzero(stage == "simplex") <= 70  # it may shrink to rounding before
    assert result.n_points == (1 if tuned == "C" else result.n_evaluations)
    assert np.log(result.C) == pytest.approx(1.5, abs=1e-3)
    assert np.log(result.gamma) == pytest.approx(-2.5, abs=1e-3)
