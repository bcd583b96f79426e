r"""
The spectrum of support values
==============================

The hinge loss of a support vector machine gives many rows a coefficient of exactly zero. The
squared loss gives none: the sorted :math:`|\alpha_k|` of a least squares model are a decaying
spectrum (figure 3.1 of chapter 3 of Suykens et al., 2002). Pruning cuts off its tail and trains
again on what is left, as long as the cross-validated performance does not fall significantly
(figure 3.8).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from lssvm import LSSVC
from lssvm.datasets import load_ripley
from lssvm.plots import SupportSpectrumDisplay

ripley = load_ripley()
X, y = ripley.data[ripley.train], ripley.target[ripley.train]

# %%
# Three classifiers with the same kernel and the same C.

full = LSSVC(C="cv", gamma="cv", random_state=0).fit(X, y)
fixed = {"C": full.C_, "gamma": full.gamma_}
pruned = LSSVC(**fixed, reduction="prune", random_state=0).fit(X, y)
machine = SVC(**fixed).fit(X, y)

# %%
# The coefficients of the support vector machine end at C, so the values are compared relative to
# the largest one. Rows that are not support vectors are added as zeros, to show where they begin.

display = SupportSpectrumDisplay.from_estimator(full, name="LSSVC", relative=True)
for name, model in (("LSSVC, pruned", pruned), ("SVC", machine)):
    values = np.zeros(len(X))
    values[model.support_] = np.abs(model.dual_coef_).ravel()
    SupportSpectrumDisplay(values, name=name).plot(display.ax_, relative=True)
display.ax_.set_title("Sorted support values, 250 training rows")
plt.show()
