r"""
Decision boundary and support values
====================================

Ripley's data are two overlapping mixtures of two Gaussians in the plane; the best possible error
rate is about 8 %. The classifier chooses C and gamma by cross-validation inside ``fit``.

The area of a mark is proportional to the support value :math:`|\alpha_k|` of its row, as in figure
3.3 of chapter 3 of Suykens et al. (2002). Since :math:`\alpha_k = C e_k`, a row has a large one
where its residual is large: near the boundary and, above all, on the wrong side of it. Rows on the
dashed lines, where the output is exactly the label -1 or +1, have none.
"""

import matplotlib.pyplot as plt
import numpy as np

from lssvm import LSSVC
from lssvm.datasets import load_ripley
from lssvm.plots import BoundaryDisplay

# %%
# The data come with an official split: 250 rows for training and 1,000 for testing.

ripley = load_ripley()
X, y = ripley.data[ripley.train], ripley.target[ripley.train]
X_test, y_test = ripley.data[ripley.test], ripley.target[ripley.test]

model = LSSVC(C="cv", gamma="cv", random_state=0).fit(X, y)
error = np.mean(model.predict(X_test) != y_test)

# %%
# Regions, boundary, rows and support values in one picture.

display = BoundaryDisplay.from_estimator(model, X, y)
display.ax_.set(
    xlabel=ripley.feature_names[0],
    ylabel=ripley.feature_names[1],
    title=f"C = {model.C_:.3g}, gamma = {model.gamma_:.3g}: test error {error:.1%}",
)
plt.show()
