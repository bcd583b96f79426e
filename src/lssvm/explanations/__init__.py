"""Explanations: what every column adds to a prediction, as interventional Shapley values.

Exact in polynomial time for expansions in product kernels (rbf and Laplacian, with one width or one
for every column) and linear kernels; sampled, with standard errors, for everything else. The method
``explain`` of every estimator is the way in.
"""

from lssvm.explanations.expansion import (
    Contrast,
    Effort,
    Expansion,
    Explanation,
    Function,
    ShapleyValues,
    Term,
    factor_exponents,
    shapley_values,
)

__all__ = [
    "Contrast",
    "Effort",
    "Expansion",
    "Explanation",
    "Function",
    "ShapleyValues",
    "Term",
    "factor_exponents",
    "shapley_values",
]
