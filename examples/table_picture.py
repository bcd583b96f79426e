"""Draw the model for tables: ``python examples/table_picture.py [file.png]``.

Concrete, 1,030 mixes: two thirds are learned by `LSSVMRegressor` with everything by default, one
third is predicted with 90 % intervals, and the answers are explained.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

from lssvm import LSSVMRegressor
from lssvm.datasets import load_concrete
from lssvm.plots import BeeswarmDisplay, DependenceDisplay

BLUE = "#2b6ca3"


def main(path: str) -> None:
    """Fit, draw, save."""
    concrete = load_concrete()
    order = np.random.default_rng(0).permutation(len(concrete.target))
    rows, others = np.split(order, [2 * len(order) // 3])
    names = [name.replace("_", " ") for name in concrete.feature_names]
    train, test = (dict(zip(names, concrete.data[part].T, strict=True)) for part in (rows, others))
    y, truth = concrete.target[rows], concrete.target[others]
    model = LSSVMRegressor().fit(train, y)
    predicted = model.predict(test)
    low, high = model.predict_interval(test, 0.9).T
    inside = np.mean((low <= truth) & (truth <= high))

    figure, panels = plt.subplots(1, 3, figsize=(12.6, 4.2), layout="constrained")
    ax = panels[0]
    ends = [truth.min(), truth.max()]
    ax.vlines(truth, low, high, color=BLUE, alpha=0.16, linewidth=1.6)
    ax.scatter(truth, predicted, s=9, color=BLUE)
    ax.plot(ends, ends, color="0.3", linewidth=1.2, linestyle="--")
    ax.set(xlabel="true strength (MPa)", ylabel="predicted, with 90 % intervals")
    words = f"test R² {model.score(test, truth):.3f}, {100 * inside:.0f} % inside"
    ax.set_title(f"LSSVMRegressor(), {len(rows)} rows\n{words}", fontsize=11)

    some = {name: column[:150] for name, column in test.items()}
    found = model.explain(some, n_background=20)
    BeeswarmDisplay(found, limit=8).plot(ax=panels[1])
    panels[1].set_title("what each column adds\nto the strength of 150 new mixes", fontsize=11)
    DependenceDisplay(found, "age").plot(ax=panels[2])
    panels[2].set_title("what the age adds,\nagainst the age (days)", fontsize=11)
    figure.savefig(path, dpi=105, facecolor="white")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/images/table.png")
