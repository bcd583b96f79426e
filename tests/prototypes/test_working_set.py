"""The bookkeeping behind the entropy ascent."""

import numpy as np
import pytest

from lssvm.prototypes.renyi import WorkingSet, gaussian


def test_gaussian_equals_the_definition():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((5, 3)), rng.standard_normal((4, 3))
    expected = np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(gaussian(A, B), expected, rtol=1e-12)
    assert (gaussian(1e4 * A, 1e4 * A) <= 1.0).all()


@pytest.mark.parametrize("partners", [None, "random"])
@pytest.mark.parametrize("classes", [1, 3])
def test_state_after_exchanges_equals_a_fresh_one(partners, classes):
    rng = np.random.default_rng(1)
    labels = np.arange(30) % classes
    members = WorkingSet(rng.standard_normal((30, 2)), labels)
    before = members.log_sum
    offered = 1.5 * rng.standard_normal((200, 2))
    own = np.arange(200) % classes
    forced = None if partners is None else classes * rng.integers(10, size=200) + own
    made = members.exchange(offered, own, 0.0, forced)
    assert len(made) > 10
    for candidate, member, _ in made:
        assert labels[member] == own[candidate]
    fresh = WorkingSet(members.points.copy(), labels)
    np.testing.assert_allclose(members.kernel, fresh.kernel, rtol=1e-12)
    np.testing.assert_allclose(members.potential, fresh.potential, rtol=1e-10)
    assert members.log_sum == pytest.approx(fresh.log_sum, rel=1e-12)
    sums = np.array([before] + [log_sum for *_, log_sum in made])
    assert (np.diff(sums) < 0).all()
    assert sums[-1] == members.log_sum


def test_exchange_takes_the_best_partner_and_only_large_gains():
    points = np.array([[0.0], [0.1], [5.0], [9.0]])
    members = WorkingSet(points.copy(), None)
    assert members.exchange(np.array([[7.0]]), None, 10.0, None) == []
    [(candidate, member, _)] = members.exchange(np.array([[7.0]]), None, 0.01, None)
    assert candidate == 0
    assert member in (0, 1)
    assert members.points[member, 0] == 7.0


def test_screening_keeps_the_emptiest_places_and_the_order_among_equals():
    members = WorkingSet(np.zeros((40, 1)) + 0.01 * np.arange(40)[:, None], None)
    candidates = np.array([[0.2], [9.0], [0.1], [30.0], [8.0], [0.3]])
    kept = members.screen(candidates, None, 3, np.random.default_rng(0), 0.05)
    assert kept.tolist() == [1, 3, 4]


def test_screening_serves_the_class_that_has_most_to_gain():
    # class 0 is crowded, class 1 is spread out: a place between the members of class 0 is worth
    # more than an empty one for class 1
    points = np.concatenate([0.01 * np.arange(20), 10.0 * np.arange(1, 21)])[:, None]
    members = WorkingSet(points, np.repeat([0, 1], 20))
    candidates = np.array([[-7.0], [3.0], [-9.0], [1.5]])
    labels = np.array([1, 0, 1, 0])
    kept = members.screen(candidates, labels, 2, np.random.default_rng(0), 1e-9)
    assert sorted(kept.tolist()) == [1, 3]


def test_a_candidate_is_dropped_only_if_its_own_class_gains_nothing():
    # the crowd is of class 0, so that a candidate of class 1 has nobody to take the place of
    points = np.concatenate([0.01 * np.arange(20), 10.0 * np.arange(1, 21)])[:, None]
    members = WorkingSet(points, np.repeat([0, 1], 20))
    assert members.exchange(np.array([[-7.0]]), np.array([1]), 0.01, None) == []
    [(_, member, _)] = members.exchange(np.array([[-7.0]]), np.array([0]), 0.01, None)
    assert member < 20
