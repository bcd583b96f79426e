"""Copies of rows do not leak from training sets into test sets: noise is not predicted."""

import numpy as np
import pytest

from lssvm import LSSVR, LSSVMRegressor


def noise(times, changed, levels):
    """Return 150 rows of noise several times, some targets changed, as a table."""
    rng = np.random.default_rng(0)
    columns = {"a": rng.normal(size=150), "b": rng.normal(size=150)}
    if levels:
        columns["b"] = np.array([f"level {i}" for i in rng.integers(0, levels, 150)], dtype=object)
    y = np.tile(rng.normal(size=150), times)
    y[:changed] += 0.5
    return {name: np.tile(column, times) for name, column in columns.items()}, y


@pytest.mark.parametrize("levels", [0, 60], ids=["numbers", "encoded by the target"])
@pytest.mark.parametrize("changed", [0, 1, 5])
@pytest.mark.parametrize("times", [3, 12])
def test_the_score_of_the_model_for_tables_is_not_that_of_copies(times, changed, levels):
    model = LSSVMRegressor(preset="fast").fit(*noise(times, changed, levels))
    assert model.best_score_ < 0.2  # a leak gives 0.99; single draws of noise are within 0.12 of 0


@pytest.mark.parametrize("changed", [0, 1])
def test_the_score_of_one_kernel_is_not_that_of_copies(changed):
    table, y = noise(3, changed, 0)
    model = LSSVR(C="cv", gamma="cv").fit(np.column_stack(list(table.values())), y)
    assert -model.best_score_ > 0.9 * np.var(y)
