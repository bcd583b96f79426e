r"""
A model that runs without Python
================================

A tuned classifier is written to an ONNX file, loaded by onnxruntime and evaluated on a
grid of the plane. The file contains only support vectors and standard operators; any ONNX runtime
gives these predictions, on a server or on a phone.

The background shows the probabilities from onnxruntime. The right panel shows the difference
from those of the model itself, in the last digits of float64.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime

from lssvm import FixedSizeLSSVC
from lssvm.datasets import load_ripley
from lssvm.onnx import export

# %%
# Fit, export, and load the file as any other program would.

ripley = load_ripley()
X, y = ripley.data[ripley.train], ripley.target[ripley.train]
model = FixedSizeLSSVC(40, random_state=0).fit(X, y)

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "ripley.onnx"
export(model, path)
session = onnxruntime.InferenceSession(path)
print(f"{path.stat().st_size / 1000:.1f} kB")
for value in (*session.get_inputs(), *session.get_outputs()):
    print(value.name, value.type, value.shape)

# %%
# Same labels on all test rows.

(labels,) = session.run(["label"], {"X": ripley.data[ripley.test]})
same = labels == model.predict(ripley.data[ripley.test])
print(f"{same.sum()} of {len(same)} labels are equal")

# %%
# Probabilities on a grid.

axes = np.linspace(-1.5, 1.2, 160), np.linspace(-0.4, 1.3, 120)
grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
(probabilities,) = session.run(["probabilities"], {"X": grid})
gap = np.abs(probabilities - model.predict_proba(grid)).max(axis=1)
shape = (len(axes[1]), len(axes[0]))

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
levels = np.linspace(0, 1, 11)
drawn = left.contourf(*axes, probabilities[:, 1].reshape(shape), levels, cmap="RdBu_r", alpha=0.7)
fig.colorbar(drawn, ax=left, label="probability of the second class")
left.scatter(*X.T, c=y, cmap="RdBu_r", edgecolor="white", s=18)
left.set(xlabel=ripley.feature_names[0], ylabel=ripley.feature_names[1], title="By onnxruntime")
drawn = right.pcolormesh(*axes, np.log10(gap + 1e-17).reshape(shape), cmap="viridis")
fig.colorbar(drawn, ax=right, label="log10 of the difference")
right.set(xlabel=ripley.feature_names[0], title=f"From the model: at most {gap.max():.0e}")
plt.show()
