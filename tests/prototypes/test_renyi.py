"""Selection by Renyi entropy: the criterion, the ascent, weights, classes, nested order."""

import numpy as np
import pytest
from tests.oracles import plugin_bandwidth as plug_in_oracle
from tests.oracles import prototypes as oracle

from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm.prototypes import RenyiEntropy, plug_in_bandwidth, renyi_entropy, select_prototypes


@pytest.fixture
def X():
    rng = np.random.default_rng(7)
    return np.vstack([rng.standard_normal((900, 2)), rng.normal(4, 0.1, (600, 2))])


def test_entropy_equals_the_double_sum_and_the_integral(X):
    h = np.array([0.3, 0.8])
    assert renyi_entropy(X[:40], h) == pytest.approx(oracle.renyi_entropy(X[:40], h), rel=1e-12)
    z = X[:60, :1]
    expected = oracle.renyi_entropy_by_quadrature(z[:, 0], 0.3)
    assert renyi_entropy(z, 0.3) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("order", [0.5, 1.0, 1.5, 3.0])
@pytest.mark.parametrize("d", [1, 2])
def test_entropies_of_any_order_are_the_printed_integrals(X, d, order):
    Z, h = X[::60, :d], np.array([0.5, 0.8])[:d]
    expected = oracle.entropy_by_quadrature(Z, h, order, points=401 if d == 2 else 4001)
    assert renyi_entropy(Z, h, order) == pytest.approx(expected, abs=2e-4)
    if order == 1.0:  # the limit of the others
        assert renyi_entropy(Z, h, 1.0 + 1e-6) == pytest.approx(expected, abs=2e-4)


def test_entropies_of_many_columns_lie_between_their_neighbours():
    Z = np.random.default_rng(0).standard_normal((40, 5))
    found = [renyi_entropy(Z, 0.7, order) for order in (0.5, 1.0, 2.0, 2.5)]
    assert (np.diff(found) < 0).all()  # the entropy falls with its order
    nodes = renyi_entropy(Z, 0.7, 2.0 + 1e-9)
    assert nodes == pytest.approx(found[2], abs=5e-3)  # the closed form


@pytest.mark.parametrize("order", [1.0, 3.0])
def test_selection_by_an_entropy_of_another_order(X, order):
    rule = RenyiEntropy("random", np.array([0.5, 0.5]), max_trials=300, order=order)
    y = (X[:, 0] > 2).astype(int)
    chosen = select_prototypes(X, 12, rule, y=y, random_state=0)
    trace = chosen.entropy_trace
    assert (np.diff(trace) > 0).all() and trace[-1] > trace[0] + 0.3
    expected = oracle.entropy_by_quadrature(X[chosen.indices], chosen.bandwidth.value, order)
    assert trace[-1] == pytest.approx(expected, abs=0.01)
    assert np.bincount(y[chosen.indices]).tolist() == [7, 5]
    with pytest.raises(InvalidInputError, match="swap='random'"):
        RenyiEntropy(order=order)
    with pytest.raises(InvalidInputError, match="Shannon"):
        renyi_entropy(X[:5], 1.0, order=0.0)


def test_the_printed_bandwidth_is_the_plug_in_of_every_column(X):
    some = X[::10]
    chosen = select_prototypes(some, 20, RenyiEntropy("random", "plug-in"), random_state=0)
    for column, value in zip(some.T, chosen.bandwidth.value, strict=True):
        assert value == pytest.approx(plug_in_oracle.plug_in_bandwidth(column), rel=5e-3)


@pytest.mark.parametrize("swap", ["greedy", "random"])
@pytest.mark.parametrize("stratified", [False, True])
def test_trace_is_exact_and_never_falls(X, swap, stratified):
    y = (X[:, 0] > 2).astype(int) if stratified else None
    chosen = select_prototypes(X, 60, RenyiEntropy(swap=swap), y=y, random_state=0)
    trace = chosen.entropy_trace
    assert trace.size == chosen.n_swaps + 1 > 20
    assert (np.diff(trace) > 0).all()
    last = oracle.renyi_entropy(X[chosen.indices], chosen.bandwidth.value)
    assert trace[-1] == pytest.approx(last, rel=1e-10)


@pytest.mark.parametrize("swap", ["greedy", "random"])
def test_twenty_times_as_many_trials_gain_little(X, swap):
    short = select_prototypes(X, 60, RenyiEntropy(swap=swap), random_state=0)
    rule = RenyiEntropy(swap=swap, tol=1e-9, max_trials=20 * short.n_trials)
    long = select_prototypes(X, 60, rule, random_state=0)
    assert long.n_trials > 4 * short.n_trials
    assert 0.0 < long.entropy_trace[-1] - short.entropy_trace[-1] < 0.06


def test_reaches_at_least_what_the_printed_algorithm_reaches():
    X = np.random.default_rng(0).standard_normal((300, 2))
    h = np.array([0.5, 0.5])
    _, printed = oracle.active_selection(X, 15, h, 400, np.random.default_rng(1))
    for swap in ("greedy", "random"):
        rule = RenyiEntropy(swap=swap, bandwidth=h, max_trials=400)
        found = select_prototypes(X, 15, rule, random_state=1).entropy_trace[-1]
        assert found > printed - 0.15
    random = oracle.renyi_entropy(X[:15], h)
    assert printed > random + 0.5


def test_bandwidth_by_the_rule_of_thumb(X):
    chosen = select_prototypes(X, 20, RenyiEntropy(bandwidth="rule-of-thumb"), random_state=0)
    np.testing.assert_allclose(chosen.bandwidth.value, oracle.rule_of_thumb(X), rtol=1e-12)
    last = oracle.renyi_entropy(X[chosen.indices], chosen.bandwidth.value)
    assert chosen.entropy_trace[-1] == pytest.approx(last, abs=1e-9)
    with pytest.raises(InvalidInputError, match="rule-of-thumb"):
        RenyiEntropy(bandwidth="silverman")


def test_bandwidth_is_the_plug_in_at_the_rate_of_the_dimension(X):
    single = select_prototypes(X[:, :1], 20, "renyi", random_state=0).bandwidth
    np.testing.assert_allclose(single.value, plug_in_bandwidth(X[:, :1]).value, rtol=1e-12)
    n, d = X.shape
    scott = (4 / ((d + 2) * n)) ** (1 / (d + 4)) / (4 / (3 * n)) ** 0.2
    both = select_prototypes(X, 20, "renyi", random_state=0).bandwidth
    np.testing.assert_allclose(both.value, scott * plug_in_bandwidth(X).value, rtol=1e-12)


def test_ascent_is_not_degenerate_in_many_dimensions():
    rng = np.random.default_rng(0)
    centres = 3 * rng.standard_normal((40, 60))
    X = centres[np.arange(2000) % 40] + 0.1 * rng.standard_normal((2000, 60))
    chosen = select_prototypes(X, 40, "renyi", random_state=0)
    assert np.unique(chosen.indices % 40).size >= 36  # one per cluster; about 25 at random
    start = select_prototypes(X, 40, "random", random_state=0)
    assert np.unique(start.indices % 40).size < 32


@pytest.mark.parametrize("swap", ["greedy", "random"])
def test_classes_keep_their_shares(X, swap):
    y = np.where(X[:, 0] > 2, 5, np.where(X[:, 1] > 1.5, -1, 2))
    chosen = select_prototypes(X, 50, RenyiEntropy(swap=swap), y=y, random_state=3)
    labels, counts = np.unique(y, return_counts=True)
    got = np.array([(y[chosen.indices] == label).sum() for label in labels])
    assert got.sum() == 50
    np.testing.assert_allclose(got, 50 * counts / y.size, atol=1.0)
    assert chosen.n_swaps > 10
    half = np.array([(y[chosen.indices[:25]] == label).sum() for label in labels])
    np.testing.assert_allclose(half, 25 * counts / y.size, atol=2.0)


@pytest.mark.parametrize("swap", ["greedy", "random"])
def test_fewer_prototypes_than_classes(X, swap):
    y = np.arange(X.shape[0]) % 7
    y[:10] = 3
    with pytest.warns(NumericalWarning, match="7 classes"):
        chosen = select_prototypes(X, 4, RenyiEntropy(swap=swap), y=y, random_state=0)
    assert np.unique(y[chosen.indices]).size == 4


def test_rows_of_weight_zero_are_never_chosen_and_heavy_ones_more_often(X):
    weight = np.zeros(X.shape[0])
    weight[::3] = 1.0
    chosen = select_prototypes(X, 60, "renyi", sample_weight=weight, random_state=0)
    assert (chosen.indices % 3 == 0).all()
    assert chosen.n_swaps > 10
    weight = np.where(np.arange(X.shape[0]) % 2 == 0, 9.0, 1.0)
    chosen = select_prototypes(X, 100, "random", sample_weight=weight, random_state=0)
    assert (chosen.indices % 2 == 0).sum() > 75


@pytest.mark.parametrize("swap", ["greedy", "random"])
def test_contents_are_not_repeated(swap):
    rng = np.random.default_rng(0)
    X = np.append(np.zeros(900), rng.standard_normal(60))[:, None]
    chosen = select_prototypes(X, 30, RenyiEntropy(swap=swap), random_state=0)
    assert np.unique(X[chosen.indices]).size == 30


def test_dense_far_cluster_does_not_make_duplicates_worthwhile():
    # exchanging one of many crowded points for a copy of a lonely one would raise the entropy
    X = np.append(np.linspace(0, 1e-3, 40), np.full(200, 50.0))[:, None]
    rule = RenyiEntropy(bandwidth=1.0, tol=1e-6)
    chosen = select_prototypes(X, 20, rule, random_state=0)
    assert (X[chosen.indices] == 50.0).sum() == 1


def test_more_prototypes_than_distinct_rows_are_reduced():
    X = np.repeat(np.arange(12.0), 5)[:, None]
    with pytest.warns(NumericalWarning, match="reduced to 12"):
        chosen = select_prototypes(X, 20, "renyi", random_state=0)
    assert np.unique(X[chosen.indices]).size == 12


def test_constant_columns_change_nothing(X):
    wide = np.column_stack([np.full(X.shape[0], 3.0), X, np.zeros(X.shape[0])])
    plain = select_prototypes(X, 40, "renyi", random_state=5)
    padded = select_prototypes(wide, 40, "renyi", random_state=5)
    np.testing.assert_array_equal(plain.indices, padded.indices)
    np.testing.assert_allclose(plain.entropy_trace, padded.entropy_trace, rtol=1e-12)


def test_units_of_the_columns_change_nothing(X):
    plain = select_prototypes(X, 40, "renyi", random_state=5)
    scaled = select_prototypes(X * [4.0, 0.25] + [1024.0, 0.0], 40, "renyi", random_state=5)
    assert np.isin(plain.indices, scaled.indices).mean() > 0.9
    np.testing.assert_allclose(plain.entropy_trace[-1], scaled.entropy_trace[-1], atol=0.02)


def test_prefixes_are_sets_of_high_entropy(X):
    h = np.array([0.8, 0.8])
    chosen = select_prototypes(X, 80, RenyiEntropy(bandwidth=h), random_state=0)
    rng = np.random.default_rng(0)
    for k in (5, 10, 20, 40):
        prefix = renyi_entropy(X[chosen.indices[:k]], h)
        others = [renyi_entropy(X[rng.permutation(chosen.indices)[:k]], h) for _ in range(20)]
        assert prefix > max(others)


def test_seed_decides(X):
    first = select_prototypes(X, 30, "renyi", random_state=1).indices
    np.testing.assert_array_equal(first, select_prototypes(X, 30, "renyi", random_state=1).indices)
    assert not np.array_equal(first, select_prototypes(X, 30, "renyi", random_state=2).indices)


def test_all_rows_can_be_prototypes(X):
    chosen = select_prototypes(X[:50], 50, "renyi", random_state=0)
    assert sorted(chosen.indices) == list(range(50))
    assert chosen.n_trials == 0


def test_bad_settings_are_named(X):
    for settings in ({"swap": "best"}, {"tol": 0.0}, {"max_trials": -1}):
        with pytest.raises(InvalidInputError, match=next(iter(settings))):
            RenyiEntropy(**settings)
    for bandwidth in (-1.0, np.ones(3), np.nan):
        with pytest.raises(InvalidInputError, match="bandwidth"):
            select_prototypes(X, 5, RenyiEntropy(bandwidth=bandwidth))
    X[:, 0] = np.nan
    with pytest.raises(InvalidInputError, match="not finite"):
        select_prototypes(X, 5, RenyiEntropy(bandwidth=1.0))
