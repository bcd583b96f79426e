"""ONNX Runtime: a model as a file for another language, a phone or a browser."""
# needs: onnxruntime

import json
from pathlib import Path

import numpy as np
import onnxruntime
from sklearn.preprocessing import StandardScaler

from lssvm import FixedSizeLSSVC
from lssvm.datasets import load_heart
from lssvm.onnx import export

heart = load_heart()
X = StandardScaler().fit_transform(heart.data)
model = FixedSizeLSSVC(60, random_state=0).fit(X, heart.target)
export(model, "heart.onnx")
session = onnxruntime.InferenceSession("heart.onnx", providers=["CPUExecutionProvider"])
(entry,) = session.get_inputs()
dtype = np.float64 if "double" in entry.type else np.float32
labels = session.run(None, {entry.name: X.astype(dtype)})[0]
agree = np.mean(np.ravel(labels) == model.predict(X))
print(f"the same class for {agree:.1%} of the rows")
assert agree > 0.99
expected = {"rows": X.tolist(), "classes": model.predict(X).tolist()}
Path("heart.json").write_text(json.dumps(expected), encoding="utf-8")  # for the next recipe
