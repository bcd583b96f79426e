import numpy as np
import pytest

from lssvm._core.errors import InvalidInputError
from lssvm.data import ArraySource, LookedUp


def test_blocks_cover_the_rows_in_order():
    X, Y, s = np.arange(10.0).reshape(5, 2), np.arange(5.0)[:, None], np.arange(5.0) + 1
    blocks = list(ArraySource(X, Y, s).blocks(2))
    assert [block.start for block in blocks] == [0, 2, 4]
    np.testing.assert_array_equal(np.concatenate([b.X for b in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([b.Y for b in blocks]), Y)
    np.testing.assert_array_equal(np.concatenate([b.weight for b in blocks]), s)


def test_order_gathers_repeats_and_leaves_out():
    X = np.arange(4, dtype=np.float32)[:, None]
    source = ArraySource(X, X, None, np.array([3, 3, 1]))
    block = source.read(slice(0, 3))
    assert source.n_rows == 3
    assert block.X.dtype == np.float64
    assert block.X.ravel().tolist() == [3.0, 3.0, 1.0]
    assert block.weight is None


@pytest.mark.parametrize("Y, s", [(np.ones(3), None), (np.ones((2, 1)), None),
                                  (np.ones((3, 1)), np.ones(2))])  # fmt: skip
def test_shapes_that_do_not_fit_are_refused(Y, s):
    with pytest.raises(InvalidInputError, match="rows"):
        ArraySource(np.ones((3, 2)), Y, s)


def test_targets_that_are_looked_up_are_an_array_only_by_a_copy():
    targets = LookedUp(np.array([[-1.0], [1.0]]), np.array([0, 1, 1], dtype=np.int16))
    np.testing.assert_array_equal(np.asarray(targets, dtype=np.float32), [[-1.0], [1.0], [1.0]])
    assert np.asarray(targets, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="copy"):
        targets.__array__(copy=False)
