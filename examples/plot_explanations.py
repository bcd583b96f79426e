"""
Explaining predictions
======================

A model predicts the strength of concrete from eight columns; ``explain`` computes what each column
adds to a prediction. With a Laplacian or a Gaussian kernel the values are exact, not sampled, and
add up to the prediction.
"""

import matplotlib.pyplot as plt
import numpy as np

from lssvm import LSSVMRegressor
from lssvm.datasets import load_concrete
from lssvm.plots import BeeswarmDisplay, DependenceDisplay, InteractionDisplay, WaterfallDisplay

concrete = load_concrete()
chosen = np.random.default_rng(0).permutation(len(concrete.target))[:400]
table = dict(zip(concrete.feature_names, concrete.data[chosen].T, strict=True))
model = LSSVMRegressor("fast", kernel="laplacian", metric=None).fit(table, concrete.target[chosen])
found = model.explain(table, n_background=20, interactions=True)

# %%
# One mix: from the mean of the background rows to its prediction.

WaterfallDisplay(found, int(np.argmax(found.prediction))).plot()
plt.show()

# %%
# All mixes. A point is a mix, its colour the value of the column.

BeeswarmDisplay(found).plot()
plt.show()

# %%
# Age adds most in the first month, and more with more slag.

DependenceDisplay(found, "age").plot()
plt.show()

# %%
# Interactions: what two columns add together beyond what each adds alone.

InteractionDisplay(found).plot()
plt.show()
