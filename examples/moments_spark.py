"""Map-reduce with Spark: the moments of every partition, added as a tree, solved once.

``pip install pyspark``, and Java 17 or newer; the address of a cluster takes the place of
``local[2]``. No row is moved.
"""

import operator
import os
import sys

import numpy as np
from pyspark import SparkContext

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
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with SparkContext("local[2]", "moments") as spark:
        total = spark.parallelize(range(8), 8).map(moments).treeReduce(operator.add)
    coef, intercept = solve_primal(total, nystrom_map(KERNEL, Z), C)
    X, y = rows(99)
    left = np.mean((KERNEL(X, Z) @ coef + intercept - y) ** 2) / np.var(y)
    print(f"{total.n:,} rows in 8 partitions of Spark: R^2 on new rows {1.0 - left:.4f}")
    assert left < 0.05
