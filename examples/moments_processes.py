"""Map-reduce with nothing but processes: the moments of every part, added, solved once.

The same steps as in ``moments_ray.py`` and ``moments_spark.py``: every part of the rows gives a
`lssvm.solvers.moments.Moments`, moments are added, and one system is solved for their sum. No row
is moved.
"""

from concurrent.futures import ProcessPoolExecutor

import numpy as np

from lssvm.data import ArraySource
from lssvm.kernels import RBF
from lssvm.solvers.moments import accumulate, nystrom_map
from lssvm.solvers.primal import solve_primal

KERNEL, C = RBF(0.3), 1000.0
Z = np.random.default_rng(0).standard_normal((100, 3))  # prototypes: rows from anywhere will do


def rows(seed):
    """Return a part of the rows; in real life, a file that is read."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20_000, 3))
    return X, np.sin(X[:, :1]) + X[:, 1:2] * X[:, 2:] + 0.1 * rng.standard_normal((20_000, 1))


def moments(seed):
    """Return all that the model needs of a part."""
    return accumulate(KERNEL, ArraySource(*rows(seed)), Z)[0]


if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        total = sum(pool.map(moments, range(8)))
    coef, intercept = solve_primal(total, nystrom_map(KERNEL, Z), C)
    X, y = rows(99)
    left = np.mean((KERNEL(X, Z) @ coef + intercept - y) ** 2) / np.var(y)
    print(f"{total.n:,} rows in 8 parts on 2 processes: R^2 on new rows {1.0 - left:.4f}")
    assert left < 0.05
