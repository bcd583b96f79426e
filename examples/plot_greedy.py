r"""
A model of every size from one run
==================================

``GreedyLSSVC`` adds one basis function at a time (FSALS of Jiao et al., 2007) until every other row
is predicted within epsilon of its label. ``truncate(n)`` gives the model after n steps. The
example shows the test error against the number of support vectors, compared with the full model,
for the losses of FSALS, kernel matching pursuit and the sparse greedy Gaussian process.
"""

import matplotlib.pyplot as plt
import numpy as np

from lssvm import LSSVC, GreedyLSSVC
from lssvm.datasets import load_ripley

ripley = load_ripley()
X, y = ripley.data[ripley.train], ripley.target[ripley.train]
X_test, y_test = ripley.data[ripley.test], ripley.target[ripley.test]
PARAMETERS = {"C": 4.0, "gamma": 4.0}

full = LSSVC(**PARAMETERS).fit(X, y)
runs = {
    "fsals": GreedyLSSVC(**PARAMETERS, epsilon=0.0),
    "kmp": GreedyLSSVC(**PARAMETERS, criterion="kmp", epsilon=0.0, max_support=120),
    "sggp": GreedyLSSVC(**PARAMETERS, criterion="sggp", prefit=True, epsilon=0.0, max_support=120),
}
for model in runs.values():
    model.fit(X, y)

# %%
# Left: the test error of every size. Right: where FSALS stops at the default epsilon = 0.5, the
# decision boundary and the rows it kept.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.2), layout="constrained")
colours = {"fsals": "#0072B2", "kmp": "#D55E00", "sggp": "#009E73"}
for name, model in runs.items():
    sizes = np.unique(np.geomspace(1, model.n_iter_, 40).astype(int))
    errors = [100 * (1 - model.truncate(int(n)).score(X_test, y_test)) for n in sizes]
    left.semilogx(sizes, errors, color=colours[name], label=f'criterion="{name}"')
left.axhline(100 * (1 - full.score(X_test, y_test)), color="0.5", ls=":", label="LSSVC, 250 rows")
left.set(xlabel="support vectors", ylabel="test error in per cent", ylim=(7, 30))
left.legend()

stopped = GreedyLSSVC(**PARAMETERS).fit(X, y)
x1, x2 = np.meshgrid(np.linspace(-1.4, 1.1, 150), np.linspace(-0.3, 1.2, 150))
scores = stopped.decision_function(np.column_stack([x1.ravel(), x2.ravel()])).reshape(x1.shape)
right.contour(x1, x2, scores, levels=[-1, 0, 1], colors="0.3", linestyles=["--", "-", "--"])
right.scatter(*X.T, c=np.where(y == y.max(), "#0072B2", "#D55E00"), s=8)
right.scatter(*stopped.support_vectors_.T, facecolors="none", edgecolors="0.2", s=40)
right.set_title(f"{len(stopped.support_)} of {len(X)} rows kept at epsilon = 0.5")
plt.show()
