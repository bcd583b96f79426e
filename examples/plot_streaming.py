r"""
A file that is read in blocks
=============================

The fixed-size model needs only sums over its rows, so it can be tuned and fitted on files that do
not fit in memory. Here three files of different length are written, with a column of text among
the numbers, and scanned: rows are read in blocks, prepared (numbers are standardised, text becomes
indicators), and discarded.

The picture shows the cross-validated accuracy along the path of C on all rows, at the best values
of gamma on a sample of the rows.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from lssvm import FixedSizeLSSVC, scan

# %%
# Some files: two numbers on very different scales, a word, and the class.

rng = np.random.default_rng(0)


def write(path, n):
    near, far = rng.standard_normal(n), 1e4 * rng.standard_normal(n)
    kind = np.array(["north", "south"])[rng.integers(0, 2, n)]
    score = np.sin(3 * near) + np.where(kind == "south", far / 1e4, -far / 1e4)
    late = np.where(score + 0.3 * rng.standard_normal(n) > 0, "late", "on time")
    rows = zip(near, far, kind, late, strict=True)
    path.write_text("near,far,kind,late\n" + "\n".join(",".join(map(str, r)) for r in rows) + "\n")


folder = tempfile.TemporaryDirectory()
for i, n in enumerate((30_000, 5_000, 25_000)):
    write(Path(folder.name) / f"part{i}.csv", n)

# %%
# One line describes them, one line tunes and fits. The sample holds 50,000 of the 60,000 rows.

data = scan(Path(folder.name) / "*.csv", target="late")
model = FixedSizeLSSVC(100, cv=5, random_state=0).fit(data)
print(f"{data.n_rows} rows, {model.preparation_.feature_names}")
print(f"C = {model.C_:.3g}, gamma = {model.gamma_:.3g}, accuracy {model.score(data):.3f}")
print(model.predict({"near": [0.5], "far": [20_000.0], "kind": ["south"]}))

# %%
# The paths of C on all rows.

fig, ax = plt.subplots()
gamma = model.cv_results_["param_gamma"]
for value in np.unique(gamma):
    part = np.flatnonzero(gamma == value)
    part = part[np.argsort(model.cv_results_["param_C"][part])]
    accuracy = model.cv_results_["mean_test_score"][part]
    ax.semilogx(model.cv_results_["param_C"][part], accuracy, label=f"gamma = {value:.3g}")
ax.set(xlabel="C", ylabel="cross-validated accuracy", title="Five folds of 60,000 rows in files")
ax.legend()
folder.cleanup()
plt.show()
