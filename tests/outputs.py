"""The outputs of all binary problems, which the public methods decode."""

import numpy as np


def raw_outputs(model, X):
    """The outputs of a fitted model for rows of an array, shape (n, k)."""
    rows = model._inputs(X)
    return np.asarray(rows.outputs(model.record_), dtype=np.float64)
