"""The entry point: what every rule promises, and choices made elsewhere."""

import numpy as np
import pytest

from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm.prototypes import RenyiEntropy, Selection, select_prototypes
from lssvm.prototypes.select import RULES


class Gaussian:
    def __call__(self, X, Z):
        return np.exp(-((X[:, None] - Z[None]) ** 2).sum(axis=2))

    def diag(self, X):
        return np.ones(X.shape[0])


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    return X, (X[:, 0] > 0.8).astype(int)


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_rule_selects_distinct_rows_reproducibly(rule, dtype, data):
    X = data[0].astype(dtype)
    chosen = select_prototypes(X, 25, rule, kernel=Gaussian(), random_state=4)
    again = select_prototypes(X, 25, rule, kernel=Gaussian(), random_state=4)
    other = select_prototypes(X, 25, rule, kernel=Gaussian(), random_state=5)
    assert np.unique(chosen.indices).size == 25
    assert chosen.indices.min() >= 0
    np.testing.assert_array_equal(chosen.indices, again.indices)
    assert not np.array_equal(chosen.indices, other.indices)
    np.testing.assert_array_equal(chosen.prototypes(X, 7), X[chosen.indices[:7]])
    assert chosen.prototypes(X).dtype == dtype


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_respects_classes_and_weights(rule, data):
    X, y = data
    weight = np.where(np.arange(300) % 4 == 0, 0.0, 1.0)
    share = weight[y == 1].sum() / weight.sum()
    chosen = select_prototypes(
        X, 30, rule, y=y, sample_weight=weight, kernel=Gaussian(), random_state=0
    ).indices
    assert (weight[chosen] > 0).all()
    assert chosen.size == 30
    assert abs(y[chosen].sum() - 30 * share) <= 1.0


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_reduces_with_a_warning(rule):
    X = np.repeat(np.arange(6.0), 3)[:, None]
    with pytest.warns(NumericalWarning, match="reduced to 6"):
        chosen = select_prototypes(X, 9, rule, kernel=Gaussian(), random_state=0)
    assert sorted(X[chosen.indices, 0]) == list(range(6))
    assert np.unique(chosen.indices).size == 6


@pytest.mark.filterwarnings("ignore::lssvm._core.errors.NumericalWarning")
@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_copes_with_one_row(rule):
    chosen = select_prototypes(np.ones((1, 2)), 3, rule, kernel=Gaussian(), random_state=0)
    assert chosen.indices.tolist() == [0]


@pytest.mark.parametrize("rule", sorted(RULES))
def test_contents_shared_by_classes_are_taken_once(rule):
    X = np.append(np.zeros(200), np.arange(1.0, 25.0))[:, None]
    y = np.arange(224) % 2
    for seed in range(3):
        chosen = select_prototypes(X, 12, rule, y=y, kernel=Gaussian(), random_state=seed).indices
        assert np.unique(X[chosen]).size == 12


def test_rule_objects_of_ones_own(data):
    class Last:
        def select(self, candidates):
            return Selection(np.arange(candidates.X.shape[0])[-candidates.size :])

    assert select_prototypes(data[0], 2, Last()).indices.tolist() == [298, 299]


def test_given_indices_and_rows(data):
    X = data[0]
    assert select_prototypes(X, None, np.array([5, 2, 9])).indices.tolist() == [5, 2, 9]
    assert select_prototypes(X, 2, [5, 2, 9]).indices.tolist() == [5, 2]
    rows = np.zeros((4, 3), dtype=np.float32)
    chosen = select_prototypes(X, 3, rows)
    assert chosen.prototypes(X).shape == (3, 3)
    assert chosen.prototypes(X).dtype == np.float32
    assert chosen.indices.tolist() == [-1, -1, -1]


def test_functions_get_a_seed_and_return_indices_or_rows(data):
    X = data[0]
    seeds = []

    def rule(X, n_prototypes, random_state):
        seeds.append(random_state)
        return np.random.default_rng(random_state).choice(X.shape[0], n_prototypes, replace=False)

    first = select_prototypes(X, 6, rule, random_state=1).indices
    second = select_prototypes(X, 6, rule, random_state=1).indices
    np.testing.assert_array_equal(first, second)
    assert seeds[0] == seeds[1]
    assert type(seeds[0]) is int
    rows = select_prototypes(X, 2, lambda X, m, seed: X[:m] + 1.0)
    np.testing.assert_array_equal(rows.prototypes(X), X[:2] + 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rule": "best"}, "not known"),
        ({"n_prototypes": 0}, "n_prototypes=0"),
        ({"n_prototypes": 2.5}, "positive int"),
        ({"n_prototypes": None}, "n_prototypes=None"),
        ({"rule": [1, 1, 2], "n_prototypes": None}, "2 different ones of 3"),
        ({"rule": [1, 300], "n_prototypes": None}, "from 0 to 299"),
        ({"rule": [1.5, 2.5]}, "integer row numbers"),
        ({"rule": np.zeros((4, 2))}, "shape"),
        ({"rule": [1, 2], "n_prototypes": 3}, "only 2"),
        ({"rule": "rpcholesky"}, "kernel"),
        ({"y": np.linspace(0, 1, 300)}, "integer class labels"),
        ({"y": np.zeros(3, dtype=int)}, r"\(300,\)"),
        ({"sample_weight": -np.ones(300)}, "sample_weight"),
    ],
)
def test_bad_requests_are_named(arguments, message, data):
    request = {"n_prototypes": 4, "rule": RenyiEntropy()} | arguments
    with pytest.raises(InvalidInputError, match=message):
        select_prototypes(data[0], **request)
