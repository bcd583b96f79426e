import numpy as np
import pytest

from lssvm._core.arrays import Device, device, get_namespace
from lssvm._core.errors import MemoryBudgetError
from lssvm.backends import device as device_rows
from lssvm.backends.device import DeviceBlocks, accumulate_on_device
from lssvm.data import ArraySource, LookedUp
from lssvm.kernels import RBF, Laplacian, Linear, Matern, NonStationary, Polynomial
from lssvm.solvers.moments import accumulate

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
Y = rng.normal(size=(300, 2))
WEIGHT = rng.uniform(0.5, 2.0, size=300)
Z = X[:17]
ORDER = rng.permutation(300)
CELLS = [slice(0, 100), slice(100, 100), slice(100, 290)]
LIBRARIES = ["numpy", "array_api_strict", pytest.param("torch", marks=pytest.mark.torch)]


def engine_of(library):
    xp = pytest.importorskip(library)
    some = xp.asarray(np.zeros(1))
    return Device(get_namespace(some), device(some))


def assert_same(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        mine = mine.on_host().plain()
        theirs = theirs.plain()
        assert mine.n == theirs.n
        for name in ("gram", "border", "cross", "target", "squares", "weight"):
            np.testing.assert_allclose(
                getattr(mine, name), getattr(theirs, name), rtol=1e-11, atol=1e-10, err_msg=name
            )


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.3),
        RBF(np.array([0.1, 0.2, 0.3, 0.4])),
        RBF(1e-3),
        Linear(),
        Polynomial(2, 0.5),
        Laplacian(0.2),
        Matern(0.3, 0.5),
        Matern(0.3, 2.5),
        NonStationary(0.3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kept", [0.5, 0.0])
def test_equal_to_the_pass_on_the_host(monkeypatch, library, kernel, kept):
    monkeypatch.setattr(device_rows, "_KEPT", kept)
    monkeypatch.setattr(device_rows, "_COPIED", 4 * 70)
    rows = DeviceBlocks(engine_of(library), X, {"Y": Y, "weight": WEIGHT})
    found = accumulate_on_device(kernel, rows, Z, ORDER, CELLS, n_targets=2)
    source = ArraySource(X, Y, WEIGHT, ORDER)
    assert (rows.kept is None) == (kept == 0.0)
    assert_same(found, accumulate(kernel, source, Z, CELLS))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kept", [0.5, 0.0])
def test_rows_several_times_and_targets_looked_up(monkeypatch, library, kept):
    monkeypatch.setattr(device_rows, "_KEPT", kept)
    monkeypatch.setattr(device_rows, "_COPIED", 4 * 70)
    looked_up = LookedUp(np.array([[-1.0], [1.0], [0.5]]), rng.integers(3, size=300))
    order = np.concatenate([ORDER[:200], ORDER[100:]])
    cells = [slice(0, 200), slice(200, 400)]
    rows = DeviceBlocks(engine_of(library), X.astype(np.float32), {"Y": looked_up})
    found = accumulate_on_device(RBF(0.3), rows, Z, order, cells, n_targets=1)
    source = ArraySource(X.astype(np.float32), looked_up, None, order)
    assert_same(found, accumulate(RBF(0.3), source, Z, cells))


@pytest.mark.parametrize("library", LIBRARIES)
def test_rows_on_the_device_in_their_own_order(library):
    engine = engine_of(library)
    rows = DeviceBlocks(engine, engine.put(X), {"Y": Y})
    found = accumulate_on_device(RBF(0.3), rows, Z, None, [slice(0, 300)], n_targets=1 + 1)
    assert_same(found, accumulate(RBF(0.3), ArraySource(X, Y), Z))


@pytest.mark.torch
def test_more_columns_than_a_panel(monkeypatch):
    many = rng.normal(size=(700, 4))
    rows = DeviceBlocks(engine_of("torch"), X, {"Y": Y})
    found = accumulate_on_device(RBF(0.3), rows, many, None, [slice(0, 300)], n_targets=2)
    assert_same(found, accumulate(RBF(0.3), ArraySource(X, Y), many))


class Scarce(RBF):
    """A kernel that finds memory for few rows only."""

    def against(self, Z):
        values = super().against(Z)

        def evaluate(X, out=None):
            if X.shape[0] > 150:
                raise MemoryError
            return values(X)

        return evaluate


def test_out_of_memory_halves_the_blocks(monkeypatch):
    rows = DeviceBlocks(engine_of("numpy"), X, {"Y": Y})
    found = accumulate_on_device(Scarce(0.3), rows, Z, None, [slice(0, 300)], n_targets=2)
    assert_same(found, accumulate(RBF(0.3), ArraySource(X, Y), Z))


def test_moments_that_do_not_fit(monkeypatch):
    monkeypatch.setattr(Device, "free_bytes", lambda self: 10_000)
    rows = DeviceBlocks(engine_of("numpy"), X, {"Y": Y})
    with pytest.raises(MemoryBudgetError, match="Lower n_prototypes"):
        accumulate_on_device(RBF(0.3), rows, Z, ORDER, CELLS * 10, n_targets=2)


def test_blocks_shrink_with_the_memory(monkeypatch):
    engine = engine_of("numpy")
    assert device_rows.block_size(engine, 1000) > 10_000
    monkeypatch.setattr(Device, "free_bytes", lambda self: 10**8)
    assert device_rows.block_size(engine, 1000) == 833
