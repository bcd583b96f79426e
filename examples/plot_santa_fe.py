"""
The Santa Fe laser: 100 steps of free run
=========================================

A laser pulses with growing intensity and then collapses, repeatedly and irregularly. A model of the
last 50 values is fitted to 1,000 values; then it forecasts 100 steps, feeding its own predictions
back (section 3.5 and figure 3.6 of Suykens et al., 2002).
"""

import matplotlib.pyplot as plt

from lssvm import LSSVR, NARX
from lssvm.datasets import load_laser
from lssvm.plots import ForecastDisplay

laser = load_laser().target.astype(float)
train, truth = laser[:1000], laser[1000:1100]

# %%
# By default C and gamma are chosen by free runs through held-out segments of the training series.
# The values to forecast are not used.

model = NARX(lags=50).fit(train)
print(f"C = {model.estimator_.C_:.3g}, gamma = {model.estimator_.gamma_:.3g}")

# %%
# For comparison, the same model with C and gamma from the leave-one-out error of one step: it
# predicts one step well but fails in a free run.

one_step = NARX(LSSVR("cv", gamma="cv", cv="loo"), lags=50, validation="one-step").fit(train)

# %%
# The intervals come from simulated paths, calibrated on the held-out segments.

figure, panels = plt.subplots(2, 1, figsize=(9, 7), layout="constrained", sharex=True)
for panel, fitted, name in zip(panels, (model, one_step), ("free runs", "one step"), strict=True):
    error = ((fitted.forecast(100) - truth) ** 2).mean() / truth.var()
    ForecastDisplay.from_estimator(
        fitted,
        y=truth,
        past=train[-60:],
        coverage=0.8 if fitted is model else None,
        ax=panel,
    )
    panel.set_title(f"tuned by {name}: normalised error {error:.3f}", loc="right", fontsize=11)
plt.show()
