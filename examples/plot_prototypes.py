"""
Which rows become prototypes, and how many
==========================================

A fixed-size model is an expansion on a few training rows, its prototypes. By default these are
random rows; ``selection="renyi"`` chooses rows with a high quadratic Renyi entropy, which spread
over the data. The pictures show where they lie, how the entropy rises, and how many are enough.
"""

import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lssvm import LSSVR, FixedSizeLSSVC, FixedSizeLSSVR
from lssvm.datasets import load_concrete, load_ripley
from lssvm.plots import EntropyTraceDisplay, PrototypeCurveDisplay, PrototypesDisplay

ripley = load_ripley()
X, y = ripley.data, ripley.target


def chosen(selection):
    return FixedSizeLSSVC(40, selection=selection, C=10.0, gamma=2.0, random_state=0).fit(X, y)


# %%
# Forty rows at random follow the density; forty rows of high entropy cover the plane.

figure, both = plt.subplots(1, 2, figsize=(10.0, 4.2), layout="constrained", sharey=True)
for ax, selection in zip(both, ("random", "renyi"), strict=True):
    PrototypesDisplay.from_estimator(chosen(selection), X, y, ax=ax, legend=selection == "renyi")
    ax.set_title(selection)
plt.show()

# %%
# A row replaces a prototype if this increases the entropy. Exchanges with a small gain are skipped:
# a set of maximal entropy consists of outliers.

EntropyTraceDisplay.from_estimator(chosen("renyi"))
plt.show()

# %%
# With more than two features the plane is that of the first two principal components.

concrete = load_concrete()
rows, target = concrete.data[::2], concrete.target[::2]
test_rows, test_target = concrete.data[1::2], concrete.target[1::2]
model = make_pipeline(StandardScaler(), FixedSizeLSSVR(80, random_state=0)).fit(rows, target)
PrototypesDisplay.from_estimator(model, rows)
plt.show()

# %%
# A part of the rows gives the error of the full model, whose error is the dotted line.

full = make_pipeline(StandardScaler(), LSSVR(C="cv", gamma="cv", random_state=0))
PrototypeCurveDisplay.from_estimator(
    model,
    rows,
    target,
    test=(test_rows, test_target),
    sizes=[10, 20, 40, 80, 160, 320],
    random_states=range(3),
    baseline=full.fit(rows, target).score(test_rows, test_target),
)
plt.show()

# %%
# With ``n_prototypes="cv"`` the model compares nested sets itself; the rows are not read again.

sized = make_pipeline(StandardScaler(), FixedSizeLSSVR("cv", random_state=0)).fit(rows, target)
PrototypeCurveDisplay.from_estimator(sized)
plt.show()
