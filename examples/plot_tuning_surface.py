"""
How C and gamma are chosen
==========================

With ``C="cv"`` and ``gamma="cv"`` an estimator tunes itself, and ``cv_results_`` lists every
evaluated pair. The path search pays for one factorisation per value of gamma and then reads a whole
path of C from it, so its pairs lie on lines. Coupled simulated annealing pays for each pair; it
starts with a global search and ends with a simplex search around the best pair.
"""

import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lssvm import LSSVC
from lssvm.datasets import load_heart
from lssvm.plots import TuningSurfaceDisplay

heart = load_heart()


def tuned(search):
    model = LSSVC(C="cv", gamma="cv", search=search, random_state=0)
    return make_pipeline(StandardScaler(), model).fit(heart.data, heart.target)


# %%
# The default: a line search over gamma with the whole path of C inside.

TuningSurfaceDisplay.from_estimator(tuned("path"))
plt.show()

# %%
# Coupled simulated annealing, then a simplex. Many pairs are equally good: what matters is to find
# the valley, which runs from small gamma with large C to large gamma with small C.

TuningSurfaceDisplay.from_estimator(tuned("csa"))
plt.show()
