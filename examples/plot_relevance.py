"""
Relevant features and wrong targets
===================================

The target depends on two features; eighteen others are noise. With one gamma for all features the
kernel is dominated by noise; ``gamma="ard"`` finds a gamma for each feature.
"""

import matplotlib.pyplot as plt
import numpy as np

from lssvm import LSSVR
from lssvm.plots import RelevanceDisplay

rng = np.random.default_rng(0)
X, X_test = rng.normal(size=(150, 20)), rng.normal(size=(500, 20))


def truth(rows):
    return np.sin(2 * rows[:, 4]) + rows[:, 11] ** 2 / 2


y = truth(X) + 0.1 * rng.normal(size=150)
one = LSSVR("cv", gamma="cv", cv=5).fit(X, y)
each = LSSVR("cv", gamma="ard", cv=5).fit(X, y)
errors = [np.sqrt(np.mean((m.predict(X_test) - truth(X_test)) ** 2)) for m in (one, each)]
display = RelevanceDisplay.from_estimator(each, limit=8)
display.ax_.set_title(f"test error {errors[0]:.2f} with one gamma, {errors[1]:.2f} with twenty")
plt.show()

# %%
# Every fifth target has a large error. The squared loss follows them; a robust loss does not.

x = np.sort(rng.uniform(-3, 3, 120))[:, None]
t = np.sin(2 * x[:, 0]) + 0.15 * rng.normal(size=120)
t[rng.permutation(120)[:24]] += rng.uniform(2, 6, size=24)
grid = np.linspace(-3, 3, 300)[:, None]
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(x[:, 0], t, ".", color="0.6", label="rows")
ax.plot(grid, np.sin(2 * grid), color="black", linewidth=1, label="truth")
for loss, dash in (("squared", "--"), ("huber", "-."), ("weighted", ":")):
    model = LSSVR("cv", gamma="cv", cv=5, loss=loss).fit(x, t)
    ax.plot(grid, model.predict(grid), dash, linewidth=2.5, label=f'loss="{loss}"')
ax.legend(ncols=3, loc="upper center")
ax.set_ylim(-2, 8)
plt.show()
