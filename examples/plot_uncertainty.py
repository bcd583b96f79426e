"""
Error bars, intervals and prediction sets
=========================================

A regressor has two measures of uncertainty. The standard deviation is that of the function, under
the Gaussian model: it grows where there are no rows. The interval is for new observations; its size
is calibrated on held-out residuals, so its coverage is right for heavy-tailed noise too.
"""

import matplotlib.pyplot as plt
import numpy as np

from lssvm import LSSVC, LSSVR
from lssvm.datasets import load_ripley

rng = np.random.default_rng(0)
X = np.sort(np.r_[rng.uniform(-4, -0.5, 120), rng.uniform(1.5, 4, 80)])[:, None]
y = np.sin(2 * X[:, 0]) + 0.15 * rng.standard_t(3, size=200)
model = LSSVR(C="cv", gamma="cv").fit(X, y)

# %%
# The band around the curve is two standard deviations of the function, the dashed lines are 90 %
# intervals for observations.

grid = np.linspace(-4.5, 4.5, 400)[:, None]
mean, std = model.predict(grid, return_std=True)
low, high = model.predict_interval(grid, coverage=0.9).T

fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.plot(X[:, 0], y, ".", color="0.6", markersize=4, label="rows")
ax.plot(grid, mean, color="C0", label="prediction")
ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, color="C0", alpha=0.25, label="2 std")
ax.plot(grid, low, "--", color="C1", label="90 % interval")
ax.plot(grid, high, "--", color="C1")
fig.legend(loc="outside lower center", ncols=4, frameon=False)
ax.set(xlabel="x", ylabel="y")
ends = model.predict_interval(X, coverage=0.9)
inside = np.mean((y >= ends[:, 0]) & (y <= ends[:, 1]))
ax.set_title(f"noise {model.noise_variance_**0.5:.2f}; {100 * inside:.0f} % of the rows are inside")
plt.show()

# %%
# A classifier gives probabilities, and sets of classes that contain the true one with a given
# probability. Where both classes are in the set, the model cannot decide.

ripley = load_ripley()
train, test = ripley.train, ripley.test
classifier = LSSVC(C="cv", gamma="cv").fit(ripley.data[train], ripley.target[train])
p = classifier.predict_proba(ripley.data[test])[:, 1]
sets = classifier.predict_set(ripley.data[test], coverage=0.95)
covered = sets[np.arange(len(sets)), ripley.target[test].astype(int)].mean()

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
points = ax.scatter(*ripley.data[test].T, c=p, cmap="cividis", s=12)
unsure = sets.all(axis=1)
ax.scatter(*ripley.data[test][unsure].T, facecolors="none", edgecolors="k", s=40, linewidths=0.6)
fig.colorbar(points, label="probability of class 1")
ax.set_title(f"95 % sets cover {100 * covered:.1f} %; circles: both classes ({unsure.mean():.0%})")
plt.show()
