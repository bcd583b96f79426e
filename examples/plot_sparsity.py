"""
How few support vectors are enough
==================================

A fixed-size model uses all of its prototypes. The L0 reductions of Mall and Suykens (2014) remove
the least important ones, using the second moments of the fit: no row is read again. Left:
the cross-validated error against the number of support vectors, with its standard error, for two
starting points, and the smallest number within one standard error of the best. Right: the model
that is left for the Ripley data, its support vectors drawn large.
"""

import matplotlib.pyplot as plt

from lssvm import FixedSizeLSSVC
from lssvm.datasets import load_ripley
from lssvm.plots import BoundaryDisplay, SparsityDisplay
from lssvm.reductions import FixedSizeL0

ripley = load_ripley()
X, y = ripley.data[ripley.train], ripley.target[ripley.train]
X_test, y_test = ripley.data[ripley.test], ripley.target[ripley.test]

_, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for reduction in ("spfs", "ssd"):
    model = FixedSizeLSSVC(60, reduction=reduction).fit(X, y)
    accuracy = f"{100 * model.score(X_test, y_test):.1f} %"
    SparsityDisplay.from_estimator(model, name=f'"{reduction}" ({accuracy})', ax=ax)

# %%
# The size can also be given. Prediction then uses only these support vectors.

small = FixedSizeLSSVC(60, reduction=FixedSizeL0("ssd", size=8)).fit(X, y)
_, ax = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
BoundaryDisplay.from_estimator(small, X, y, ax=ax)
accuracy = 100 * small.score(X_test, y_test)
ax.set_title(f"8 support vectors: {accuracy:.1f} % of the test rows")
plt.show()
