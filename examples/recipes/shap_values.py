"""SHAP: our Shapley values in its pictures, and its explainers for our models.

``explain`` computes the values of a kernel model from its kernel; what `shap` estimates from
predictions alone agrees with it, and takes longer.
"""
# needs: shap

import numpy as np
import shap
from sklearn.preprocessing import StandardScaler

from lssvm import LSSVR
from lssvm.datasets import load_concrete

concrete = load_concrete()
X = StandardScaler().fit_transform(concrete.data)[:200]
model = LSSVR(C=10.0, gamma=0.1).fit(X, concrete.target[:200])
ours = model.explain(X[:5], background=X[:40])
drawn = shap.Explanation(
    ours.values, ours.base_values, data=X[:5], feature_names=list(concrete.feature_names)
)
print("most important:", drawn.abs.mean(0).feature_names[int(np.argmax(drawn.abs.mean(0).values))])
theirs = shap.explainers.Exact(model.predict, X[:40])(X[:5])
np.testing.assert_allclose(theirs.values, ours.values, atol=1e-6)
