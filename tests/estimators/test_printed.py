"""What the papers print, as options of the estimators, against plain NumPy written from the text."""

import numpy as np
import pytest
from tests.oracles import prototypes as prototypes_oracle

from lssvm import FixedSizeLSSVC, FixedSizeLSSVR
from lssvm._core.errors import InvalidInputError


def numbers(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n) + 2.0


def classes(n=180, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    score = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=n)
    return X, np.digitize(score, np.linspace(-0.7, 0.7, k - 1) if k > 2 else [0.2])


@pytest.mark.parametrize("k, n", [(1, 120), (2, 120), (3, 100), (2.5, 100), (20, 50)])
def test_number_of_prototypes_is_the_ceiling_of_k_roots(k, n):
    # [Mall2014, section IV-A]: M = ceil(k sqrt(N))
    X, y = numbers(n)
    model = FixedSizeLSSVR(f"{k} sqrt(n)", C=1.0, gamma=0.3).fit(X, y)
    assert model.n_prototypes_ == min(n, prototypes_oracle.root_size(k, n))


@pytest.mark.parametrize("asked", ["sqrt", "0 sqrt(n)", "-1 sqrt(n)", "3 sqrt(m)"])
def test_other_rules_of_the_number_of_prototypes_are_refused(asked):
    with pytest.raises(InvalidInputError, match="sqrt"):
        FixedSizeLSSVC(asked, C=1.0, gamma=0.3).fit(*classes())
