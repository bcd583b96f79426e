import sys

import numpy as np
import pytest

from lssvm._core.arrays import (
    Device,
    Halving,
    find_device,
    get_namespace,
    is_foreign,
    out_of_memory,
    to_numpy,
)
from lssvm._core.errors import InvalidInputError, MemoryBudgetError, MissingDependencyError

X = np.arange(6.0).reshape(3, 2)
NUMPY = Device(get_namespace(X), "cpu")


class OutOfMemoryError(RuntimeError):
    """As torch and CuPy name theirs."""


def test_numpy_arrays_stay_with_numpy():
    assert find_device(None, X, dispatch=True) is None
    assert find_device("cpu", X, dispatch=False) is None
    assert find_device(None, X.tolist(), dispatch=True) is None


def test_strict_arrays_follow_the_setting():
    strict = pytest.importorskip("array_api_strict")
    A = strict.asarray(X)
    assert is_foreign(A)
    assert find_device(None, A, dispatch=False) is None
    assert find_device(None, A, dispatch=True).xp is strict
    assert find_device("cpu", A, dispatch=False).xp is strict
    with pytest.raises(InvalidInputError, match="leave it out"):
        find_device("cuda", A, dispatch=True)
    other = strict.asarray(X, device=strict.Device("device1"))
    np.testing.assert_array_equal(to_numpy(other), X)


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match=r"\.\[gpu\]"):
        find_device("cuda", X, dispatch=False)


@pytest.mark.torch
def test_torch_devices():
    torch = pytest.importorskip("torch")
    A = torch.asarray(X)
    engine = find_device(torch.device("cpu"), X, dispatch=False)
    assert engine.is_torch and not engine.is_cuda
    assert find_device(None, A, dispatch=False) is None
    assert find_device("cpu", A, dispatch=False).is_torch
    assert engine.put(X.astype(np.float32)).dtype == torch.float64
    assert engine.put(np.arange(3, dtype=np.int32)).dtype == torch.int32
    for wrong in ("gpu", 1.5):
        with pytest.raises(InvalidInputError, match="is not usable"):
            find_device(wrong, X, dispatch=False)
    with pytest.raises(InvalidInputError, match="float64"):
        find_device("meta", X, dispatch=False)
    with pytest.raises(InvalidInputError, match="CUDA devices"):
        find_device("cuda:99", X, dispatch=False)


def test_what_counts_as_out_of_memory():
    assert out_of_memory(OutOfMemoryError())
    assert out_of_memory(MemoryError())
    assert not out_of_memory(MemoryBudgetError())
    assert not out_of_memory(RuntimeError())


def test_blocks_are_halved_and_every_row_is_seen_once():
    seen, blocks = [], Halving(NUMPY, 1000)

    def work(part):
        if part.stop - part.start > 130:
            raise OutOfMemoryError
        seen.extend(range(part.start, part.stop))

    blocks.run(work, 2345)
    assert seen == list(range(2345))
    assert blocks.rows == 125
    assert blocks.halved == 3


def test_memory_that_never_suffices():
    def work(part):
        raise OutOfMemoryError

    with pytest.raises(MemoryBudgetError, match="fewer prototypes"):
        Halving(NUMPY, 1000).run(work, 10)


def test_other_errors_are_not_hidden():
    def work(part):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Halving(NUMPY, 1000).run(work, 10)
