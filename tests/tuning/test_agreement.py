"""All searches on one bowl: the same minimum, each within its own resolution."""

import numpy as np
import pytest
from tests.tuning.search_objectives import GENERAL, SurfaceObjective, bowl

from lssvm.tuning.search import Space
from lssvm.tuning.searches import GridSearch, make_search

SEARCHES_AND_TOLERANCE = [
    *((make_search(name), {"grid": 1.2}.get(name, 0.15)) for name in GENERAL),
    (GridSearch.ding2011(), 0.8),
]


@pytest.mark.parametrize(("search", "tolerance"), SEARCHES_AND_TOLERANCE, ids=repr)
@pytest.mark.parametrize(("c0", "g0"), [(2.2, -4.5), (5.0, -6.0)])
def test_the_minimum_of_a_bowl(search, tolerance, c0, g0):
    space = Space(gamma_start=0.1, n_features=4)
    result = search.run(SurfaceObjective(bowl(c0, g0)), space, random_state=0)
    assert np.log(result.C) == pytest.approx(c0, abs=tolerance)
    assert np.log(result.gamma) == pytest.approx(g0, abs=tolerance)
