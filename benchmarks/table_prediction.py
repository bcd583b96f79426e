r"""Time of predictions of a model for tables with many rows in parts.

Parts are made of random rows with random coefficients (prediction does not ask where they come
from): three configurations, as many as the preset "balanced" keeps at most, and prototypes of all
rows compared with them.

    python benchmarks/table_prediction.py --train 50000 --rows 100000 --features 20
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from lssvm.backends.host import Host
from lssvm.fitting import Configuration, Member
from lssvm.local import Leaf, LocalModel, Partition, Rows, Setting, grow_tree
from lssvm.solvers import ExactFit


def make(n: int, d: int, size: int, kernel: str, seed: int) -> Member:
    """Return a member whose leaves have random coefficients."""
    random = np.random.default_rng(seed)
    configuration = Configuration("standardised", kernel)  # type: ignore[arg-type]
    X = random.normal(size=(n, d))
    tree = grow_tree(X, size)
    leaves = []
    for rows in tree.rows_by_leaf(X):
        m = len(rows)
        fit = ExactFit(random.normal(size=(m, 1)), np.zeros(1), np.empty((0, 1)))
        some = Rows(X[rows], np.empty((0, 1)), np.empty(0))
        leaves.append(Leaf(some, Setting(1.0, 0.05), fit, 1.0))
    model = LocalModel(configuration.distance, (Partition(tree, tuple(leaves)),), size)
    return Member(model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--train", type=int, default=50_000)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--leaf-size", type=int, default=2500)
    parser.add_argument("--prototypes", type=int, default=2800)
    parser.add_argument("--threads", type=int, default=2)
    asked = parser.parse_args()
    new = np.random.default_rng(1).normal(size=(asked.rows, asked.features))
    wall = cpu = 0.0
    sizes = {
        kernel: (asked.train, asked.leaf_size) for kernel in ("rbf", "exponential", "laplacian")
    }
    sizes["laplacian, prototypes"] = asked.prototypes, asked.prototypes
    for name, (n, size) in sizes.items():
        member = make(n, asked.features, size, name.partition(",")[0], 0)
        begin, used = time.perf_counter(), time.process_time()
        member.evaluate(new, Host(2**31, asked.threads))
        took = time.perf_counter() - begin, time.process_time() - used
        print(f"{name}: {took[0]:.1f} s, {took[1]:.1f} s of processor time", flush=True)
        wall, cpu = wall + took[0], cpu + took[1]
    print(f"all: {wall:.1f} s, {cpu:.1f} s of processor time on {asked.threads} threads")


if __name__ == "__main__":
    main()
