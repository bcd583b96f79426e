r"""
Pruning: 500, 250 and 50 support vectors
========================================

A least squares model uses every row. The rows with the smallest support values :math:`|\alpha_k|`
matter least, so the pruning algorithm of section 3.7 of Suykens et al. (2002) removes 5 % of them,
trains again, and goes on. The pictures follow figures 3.9 and 3.10 there: the sinc function without
and with noise, at constant C and gamma.

``reduction="prune"`` does this inside ``fit`` and stops where the cross-validated performance falls
significantly: the last column.
"""

import matplotlib.pyplot as plt
import numpy as np

from lssvm import LSSVR
from lssvm.plots import SupportSpectrumDisplay

PARAMETERS = {"C": 10.0, "gamma": 0.1}
rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-10.0, 10.0, 500))
X, grid = x[:, None], np.linspace(-10.0, 10.0, 400)[:, None]
sinc = np.sinc(x / np.pi)


# %%
# The algorithm by hand, to stop at given numbers of support vectors.


def pruned_to(n, y):
    rows = np.arange(len(X))
    while True:
        model = LSSVR(**PARAMETERS).fit(X[rows], y[rows])
        if len(rows) == n:
            return model
        order = np.argsort(np.abs(model.dual_coef_[:, 0]))
        rows = np.sort(rows[order[min(max(1, len(rows) // 20), len(rows) - n) :]])


# %%
# Top: the data (grey), the support vectors (orange) and the model (blue). Bottom: their spectra.

for noise in (0.0, 0.1):
    y = sinc + noise * rng.normal(size=x.size)
    models = [pruned_to(n, y) for n in (500, 250, 50)]
    models.append(LSSVR(**PARAMETERS, reduction="prune", random_state=0).fit(X, y))
    figure, axes = plt.subplots(2, 4, figsize=(11.0, 5.2), layout="constrained", sharey="row")
    for model, (top, bottom) in zip(models, axes.T, strict=True):
        kept = model.support_vectors_[:, 0]
        rms = np.sqrt(np.mean((model.predict(X) - sinc) ** 2))
        top.plot(x, y, ".", color="0.75", markersize=3)
        top.plot(kept, y[np.searchsorted(x, kept)], ".", color="#D55E00", markersize=5)
        top.plot(grid, model.predict(grid), color="#0072B2")
        top.set_title(f"{len(kept)} support vectors\nerror {rms:.1e}", fontsize="medium")
        SupportSpectrumDisplay.from_estimator(model, ax=bottom).legend_.remove()
    for ax in axes[1, 1:]:
        ax.set_ylabel("")
    axes[0, 3].set_title('reduction="prune"\n' + axes[0, 3].get_title(), fontsize="medium")
    figure.suptitle("sinc without noise" if noise == 0 else f"sinc with noise of {noise}")
    plt.show()
