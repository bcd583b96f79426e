"""
Five searches for C and gamma
=============================

All searches minimise the exact 5-fold cross-validated error of a noisy sinc, and return the same
kind of record. The path and the grids pay for one factorisation per gamma and read many
values of C from it; annealing and the simplex pay for every pair. The circulant search evaluates
143 pairs with an approximate matrix first (dotted; its losses are those of the approximation) and
then 20 pairs exactly.
"""

import matplotlib.pyplot as plt
import numpy as np

from lssvm import LSSVR
from lssvm.plots import TuningTraceDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-4.0, 4.0, (300, 2))
truth = np.sinc(np.hypot(X[:, 0], X[:, 1]))
y = truth + 0.05 * rng.standard_normal(300)

models = {
    search: LSSVR(C="cv", gamma="cv", cv=5, search=search, random_state=0).fit(X, y)
    for search in ("path", "grid", "shrinking", "csa", "circulant")
}
TuningTraceDisplay({search: model.tuning_result_ for search, model in models.items()}).plot()
plt.show()

# %%
# The pairs differ, but their errors are nearly equal.

for search, model in models.items():
    error = np.sqrt(np.mean((model.predict(X) - truth) ** 2))
    print(f"{search:10s} C = {model.C_:8.3g}  gamma = {model.gamma_:6.3g}  error {error:.4f}")
