"""The diagram that notebooks show of a model, before and after its fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr

from lssvm import (
    LSSVC,
    LSSVR,
    NARX,
    FixedSizeLSSVC,
    FixedSizeLSSVR,
    GreedyLSSVC,
    GreedyLSSVR,
    load,
    save,
)
from lssvm.kernels import RBF
from lssvm.reductions import Prune

rng = np.random.default_rng(0)
X = rng.standard_normal((30, 2))
y = (X[:, 0] > 0).astype(int)
SERIES = np.sin(0.5 * np.arange(40))

MODELS = [
    LSSVC(C=7.25, kernel=RBF(np.array([0.5, 2.0])), reduction=Prune(), cv=3),
    LSSVR(C=7.25, gamma=np.array([0.5, 2.0])),
    FixedSizeLSSVC(9, C=7.25, gamma=1.0),
    FixedSizeLSSVR(9, C=7.25, gamma=1.0, selection=list(range(9))),
    GreedyLSSVC(C=7.25),
    GreedyLSSVR(C=7.25),
    NARX(LSSVR(C=7.25), lags=3),
]


def fit(model):
    return model.fit(SERIES) if isinstance(model, NARX) else model.fit(X, y)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_notebook_shows_a_diagram_with_parameters_and_state(model, tmp_path):
    name = type(model).__name__
    before = estimator_html_repr(model)
    assert f">{name}<" in before and "7.25" in before
    assert "Not fitted" in before
    after = estimator_html_repr(fit(model))
    assert f">{name}<" in after and "7.25" in after
    assert "Not fitted" not in after and "Fitted" in after
    shown = model._repr_mimebundle_()
    assert shown["text/plain"] == repr(model)
    assert "Fitted" in shown["text/html"] and "Fitted" in model._repr_html_()
    save(model, tmp_path / "m")
    assert "Not fitted" not in estimator_html_repr(load(tmp_path / "m"))


def test_a_pipeline_shows_its_model():
    pipeline = make_pipeline(StandardScaler(), FixedSizeLSSVC(9, C=7.25, gamma=1.0)).fit(X, y)
    text = estimator_html_repr(pipeline)
    assert "FixedSizeLSSVC" in text and "StandardScaler" in text and "Not fitted" not in text
