"""
Four output codes for four classes
==================================

A problem with several classes is coded into binary ones (section 3.2 of Suykens et al., 2002):

* one-versus-one: a binary problem for each pair of classes;
* one-versus-all: each class against the rest;
* minimum output coding: as few binary problems as can separate the classes;
* error-correcting output codes: more of them, so that a few wrong outputs can be corrected.

Minimum output coding is the cheapest. Its disadvantage shows where two classes differ in both
outputs: the outputs do not change sign at the same place, so a strip of a third class lies between.
"""

import matplotlib.pyplot as plt
import numpy as np

from lssvm import LSSVC
from lssvm.plots import BoundaryDisplay

CODES = {
    "ovo": "one-versus-one",
    "ova": "one-versus-all",
    "moc": "minimum output coding",
    "ecoc": "error-correcting output code",
}


# %%
# Four overlapping clouds, of different shapes.


def clouds(n, rng):
    centres = np.array([[0.0, 0.0], [2.2, 0.4], [0.6, 2.0], [2.6, 2.4]])
    spread = np.array([[0.9, 0.5], [0.5, 0.9], [0.6, 0.6], [0.9, 0.6]])
    y = rng.integers(4, size=n)
    return centres[y] + spread[y] * rng.normal(size=(n, 2)), y


rng = np.random.default_rng(0)
X, y = clouds(160, rng)
X_test, y_test = clouds(10_000, rng)

# %%
# The same C and gamma for all codes; the area of a mark is proportional to the norm of the
# coefficients of its row over all binary problems.

figure, axes = plt.subplots(
    2, 2, figsize=(9.5, 7.5), sharex=True, sharey=True, layout="constrained"
)
for (multiclass, name), ax in zip(CODES.items(), axes.flat, strict=True):
    model = LSSVC(C=10.0, gamma=0.5, multiclass=multiclass, random_state=0).fit(X, y)
    error = np.mean(model.predict(X_test) != y_test)
    problems = model.dual_coef_.shape[1]
    BoundaryDisplay.from_estimator(
        model, X, y, max_size=80.0, grid_resolution=500, legend=False, ax=ax
    )
    ax.set_title(f"{name}\n{problems} binary problems, test error {error:.1%}")
    ax.label_outer()
plt.show()
