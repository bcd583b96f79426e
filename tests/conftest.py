"""What tests of several folders share."""

import pytest


@pytest.fixture(scope="module")
def without_nested_folds():
    """Let models of small tables be judged by their own folds, which takes far less time.

    For tests of something else than the score of a model for tables.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lssvm.fitting.table.NESTED", 0)
        yield
