"""Compiled loops against NumPy and SciPy; what happens where numba is missing."""

import subprocess
import sys

import numpy as np
import pytest

from lssvm.kernels import Exponential, Laplacian, compiled
from lssvm.kernels.base import evaluate_expansion
from lssvm.kernels.radial import distances, fill_distances
from lssvm.local import Rows, Setting, fit_leaf


def rows_of(n, d, kind):
    """Rows with an offset; the first are the same for every n, others lie very close to them."""
    some = np.random.default_rng(d)
    X = some.normal(size=(700, d)) * some.uniform(0.1, 2.0, d) + 20.0
    if kind == "levels":  # columns of two values
        X = np.where(X > 20.0, 21.5, 19.0)
        X[:, -1] = some.normal(size=700)
    X[5:8] = X[:3] + 1e-9
    return X[:n]


@pytest.fixture
def routes(monkeypatch):
    """A function that computes by compiled loops and by NumPy and SciPy, and returns both."""
    pytest.importorskip("numba")
    monkeypatch.setattr(compiled, "_WORTH", 0)
    loaded = compiled.loops()
    calls = []

    def counted(loop):
        return lambda *values: (calls.append(1), loop(*values))

    fields = ("cityblock", "laplacian", "exponential", "ordered")
    counting = compiled.Loops(*(counted(getattr(loaded, name)) for name in fields))

    def both(work):
        monkeypatch.setattr(compiled, "loops", lambda: counting)
        fast = work()
        n_calls = len(calls)
        assert n_calls > 0
        monkeypatch.setattr(compiled, "loops", lambda: None)
        pure = work()
        assert len(calls) == n_calls
        return fast, pure

    return both


@pytest.mark.parametrize("kernel", [Laplacian, Exponential])
@pytest.mark.parametrize("kind", ["numbers", "levels"])
@pytest.mark.parametrize(
    ("n", "m", "d", "k"), [(1, 1, 1, 1), (65, 513, 2, 3), (200, 700, 11, 1), (70, 512, 20, 2)]
)
@pytest.mark.parametrize("threads", [1, 3])
def test_expansions(routes, kernel, kind, n, m, d, k, threads):
    X, Z = rows_of(n, d, kind), rows_of(m, d, kind)
    coef = np.random.default_rng(0).normal(size=(m, k))
    gamma = np.random.default_rng(1).uniform(0.1, 0.5, d)
    use = {"budget": 10**8, "threads": threads}
    fast, pure = routes(lambda: evaluate_expansion(kernel(gamma), X, Z, coef, np.arange(k), **use))
    np.testing.assert_allclose(fast, pure, rtol=0, atol=1e-12 * np.abs(coef).sum())


def test_levels_that_the_basis_does_not_have(routes):
    Z = rows_of(300, 12, "levels")
    X = Z[:100].copy()
    X[3, 2], X[50, 5] = 20.0, -4.0
    coef = np.ones((300, 1))
    use = {"budget": 10**8, "threads": 1}
    fast, pure = routes(lambda: evaluate_expansion(Laplacian(0.1), X, Z, coef, np.zeros(1), **use))
    np.testing.assert_allclose(fast, pure, rtol=1e-12)


@pytest.mark.parametrize("kernel", [Laplacian, Exponential])
def test_float32(routes, kernel):
    X, Z = (rows_of(n, 9, "numbers").astype(np.float32) for n in (130, 600))
    coef = np.random.default_rng(0).normal(size=(600, 2)).astype(np.float32)
    use = {"budget": 10**8, "threads": 1}
    fast, pure = routes(
        lambda: evaluate_expansion(kernel(0.2), X, Z, coef, np.zeros(2, np.float32), **use)
    )
    assert fast.dtype == pure.dtype == np.float32
    np.testing.assert_allclose(fast, pure, rtol=0, atol=3e-6 * np.abs(coef).sum())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exponential_is_right_to_the_last_digit(routes, dtype):
    t = np.linspace(0.0, 80.0, 20_001).astype(dtype)
    one, zero = np.ones((1, 1), dtype), np.zeros((1, 1), dtype)

    def values():  # exp(-t) of a basis of one row at 0
        add = compiled.expansion("cityblock", zero, one, pairs=1, dtype=dtype)
        out = np.zeros((len(t), 1), dtype)
        if add is None:
            return np.exp(-t)
        add(t[:, None], out)
        return out[:, 0]

    fast, _ = routes(values)
    exact = np.exp(-t.astype(np.longdouble))
    assert np.max(np.abs(fast - exact) / np.spacing(exact.astype(dtype))) < 1.5


def test_far_rows_have_no_influence_and_nan_is_not_hidden(routes):
    X, Z = np.array([[0.0], [1e3], [1e300], [np.nan]]), np.zeros((1, 1))

    def values():
        add = compiled.expansion("cityblock", Z, np.ones((1, 1)), pairs=1)
        out = np.zeros((4, 1))
        if add is not None:
            add(X, out)
        return out[:, 0]

    fast, _ = routes(values)
    np.testing.assert_allclose(fast, [1.0, 0.0, 0.0, np.nan], atol=1e-300)


@pytest.mark.parametrize("kind", ["numbers", "levels"])
@pytest.mark.parametrize("d", [1, 3, 8, 13])
def test_distances(routes, kind, d):
    X, Z = rows_of(70, d, kind), rows_of(530, d, kind)
    fast, pure = routes(lambda: distances(X, Z, "cityblock"))
    np.testing.assert_allclose(fast, pure, rtol=1e-12, atol=1e-12)
    fast, pure = routes(lambda: Laplacian(0.3)(X, Z))
    np.testing.assert_allclose(fast, pure, rtol=1e-12)


@pytest.mark.parametrize("threads", [1, 3])
def test_filled_distances(routes, threads):
    X = rows_of(600, 7, "numbers")
    fast, pure = routes(
        lambda: fill_distances(X, "cityblock", np.empty((600, 600)), threads=threads)
    )
    np.testing.assert_allclose(fast, pure, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(fast, fast.T)


@pytest.mark.parametrize("d", [1, 4, 7])
@pytest.mark.parametrize("k", [1, 3])
def test_slopes(routes, d, k):
    Z = np.round(rows_of(600, d, "numbers"), 1)  # many equal values: their sign is 0
    coef = np.random.default_rng(0).normal(size=(600, k))
    fast, pure = routes(lambda: Laplacian(0.3).gradient(Z[:90], Z, coef))
    np.testing.assert_allclose(fast, pure, rtol=0, atol=1e-12 * np.abs(pure).max())


@pytest.mark.parametrize("distance", ["cityblock", "euclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_leaves(routes, distance, dtype):
    X = rows_of(120, 5, "numbers").astype(dtype)
    rows = Rows(X, np.sin(X[:, :2].astype(float)), np.ones(120))
    leaf = fit_leaf(rows, distance, Setting(10.0, 0.1))
    fast, pure = routes(lambda: leaf.outputs(X[:70].astype(float) + 0.01, distance))
    np.testing.assert_allclose(fast, pure, rtol=1e-12, atol=1e-12 * np.abs(leaf.fit.coef).sum())


SMALL = """
import sys
import numpy as np
from lssvm.kernels import Laplacian, compiled
from lssvm.kernels.base import evaluate_expansion
{before}
n = {n}
X = np.linspace(0.0, 1.0, n * 10).reshape(n, 10)
use = dict(budget=10**8, threads=1)
out = evaluate_expansion(Laplacian(1.0), X, X, np.ones((n, 1)), np.zeros(1), **use)
assert np.isfinite(out).all()
print("numba" in sys.modules and sys.modules["numba"] is not None, compiled.loops() is not None)
"""


def printed(n, before=""):
    code = SMALL.format(n=n, before=before)
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()


def test_little_work_does_not_load_numba():
    assert printed(100)[0] == "False"


def test_much_work_does():
    pytest.importorskip("numba")
    assert printed(2300) == ["True", "True"]


def test_without_numba_everything_is_computed_by_scipy():
    assert printed(2300, "sys.modules['numba'] = None") == ["False", "False"]
