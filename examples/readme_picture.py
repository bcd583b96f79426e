"""Draw the picture of the README: ``python examples/readme_picture.py [file.png]``.

Three classifiers of the same 250 rows, each tuned by ten-fold cross-validation on them and tested
on the same 1,000 other rows: scikit-learn's SVC, the full least squares machine, and the same with
its support vectors reduced.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from lssvm import LSSVC
from lssvm.datasets import load_ripley

BLUE, ORANGE = "#2b6ca3", "#d9822b"
SHADES = LinearSegmentedColormap.from_list("classes", ["#a9cbe8", "#f7f7f5", "#f7d3a8"])


def models():
    """Return what is compared, by title."""
    grid = {"C": 10.0 ** np.arange(-2, 5), "gamma": 2.0 ** np.arange(-4, 6)}
    return {
        "sklearn SVC, grid of 70": GridSearchCV(SVC(), grid, cv=10),
        "LSSVC, tuned in fit": LSSVC(C="cv", gamma="cv", random_state=0),
        'LSSVC, reduction="l0"': LSSVC(C="cv", gamma="cv", reduction="l0", random_state=0),
    }


def draw(ax, model, X, y):
    """Draw outputs, boundary, rows and support vectors."""
    low, high = X.min(axis=0) - 0.15, X.max(axis=0) + 0.15
    x0, x1 = np.meshgrid(np.linspace(low[0], high[0], 300), np.linspace(low[1], high[1], 300))
    f = model.decision_function(np.c_[x0.ravel(), x1.ravel()]).reshape(x0.shape)
    ax.contourf(x0, x1, np.clip(f, -1.2, 1.2), np.linspace(-1.2, 1.2, 25), cmap=SHADES)
    ax.contour(x0, x1, f, [0.0], colors="0.15", linewidths=1.8)
    for label, colour in zip(np.unique(y), (BLUE, ORANGE), strict=True):
        ax.scatter(*X[y == label].T, s=9, color=colour, alpha=0.75, linewidths=0)
    ring = {"facecolors": "none", "edgecolors": "0.1", "zorder": 3}
    vectors = model.support_vectors_
    many = len(vectors) > 50
    ax.scatter(*vectors.T, s=26 if many else 120, linewidths=0.5 if many else 1.8, **ring)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
    for side in ax.spines.values():
        side.set_visible(False)


def main(path: str) -> None:
    """Fit, draw, save."""
    ripley = load_ripley()
    X, y = ripley.data[ripley.train], ripley.target[ripley.train]
    X_test, y_test = ripley.data[ripley.test], ripley.target[ripley.test]
    figure, panels = plt.subplots(1, 3, figsize=(11.4, 4.0), layout="constrained")
    for ax, (title, model) in zip(panels, models().items(), strict=True):
        model.fit(X, y)
        error = 100 * (1 - model.score(X_test, y_test))
        fitted = getattr(model, "best_estimator_", model)
        draw(ax, fitted, X, y)
        ax.set_title(title, fontsize=12, fontweight="bold", color="0.15", pad=24)
        words = f"{len(fitted.support_vectors_)} support vectors, test error {error:.1f} %"
        ax.text(0.5, 1.025, words, transform=ax.transAxes, ha="center", fontsize=11, color="0.3")
    figure.savefig(path, dpi=105, facecolor="white")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "docs/images/readme.png")
