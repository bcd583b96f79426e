"""One step of a `NARX` model as ONNX operators."""

from __future__ import annotations

import numpy as np
from scipy.special import comb

from lssvm._core.errors import InvalidInputError
from lssvm.estimators.base import KernelEstimator
from lssvm.onnx.graph import Graph, Value, element_type
from lssvm.onnx.kernel_nodes import add_expansion
from lssvm.recipes.series import SeriesFit


def series_inputs(record: SeriesFit, dtype: np.dtype[np.floating]) -> list[Value]:
    """Return the inputs of a step: the latest values, and the exogenous inputs where there are."""
    layout, kind = record.layout, element_type(dtype)
    inputs = [Value("history", kind, (layout.lags + layout.differencing,))]
    if layout.n_exog:
        inputs.append(Value("inputs", kind, (layout.exog_lags + 1, layout.n_exog)))
    return inputs


def add_step(graph: Graph, record: SeriesFit) -> dict[str, Value]:
    """Add the prediction of the next value from what `series_inputs` declares.

    ``history`` holds the latest values, the newest last; ``inputs`` those of the times up to and
    including the one that is predicted, the newest last.
    """
    inner, layout = record.regressor, record.layout
    if not isinstance(inner, KernelEstimator):
        raise InvalidInputError(
            f"The estimator of NARX is a {type(inner).__name__}, which cannot be "
            "exported: use one of this package, such as LSSVR or FixedSizeLSSVR."
        )
    lags, order = layout.lags, layout.differencing
    z = history = graph.tensor("history")
    for level in range(order):
        width = lags + order - level
        z = z.columns(np.arange(1, width)) - z.columns(np.arange(width - 1))
    row = ((z - layout.mean) / layout.scale).columns(np.arange(lags)[::-1])
    if layout.n_exog:
        u = graph.tensor("inputs").columns(np.arange(layout.exog_lags + 1)[::-1])
        u = (u - layout.inputs_mean) / layout.inputs_scale
        row = graph.concat([row, u.reshape(-1, (layout.exog_lags + 1) * layout.n_exog)])
    out = add_expansion(row, inner.record_) * layout.scale + layout.mean
    for j in range(1, order + 1):
        out -= history.columns([lags + order - j]) * ((-1.0) ** j * comb(order, j))
    return {"prediction": Value(out.name, element_type(graph.dtype), (1,))}
