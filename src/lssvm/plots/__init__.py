"""Plots of fitted models, in the style of scikit-learn's displays.

Each class computes what is shown in ``from_estimator``, draws it in ``plot`` and keeps the artists.
Colours are safe for colour-blind readers, and every class or line also has a marker or dash of its
own, for print. Needs matplotlib: ``pip install '.[plots]'`` in a clone.
"""

from __future__ import annotations

from lssvm.plots.curves import (
    EntropyTraceDisplay,
    ForecastDisplay,
    RelevanceDisplay,
    SparsityDisplay,
    SupportSpectrumDisplay,
)
from lssvm.plots.explanations import (
    BeeswarmDisplay,
    DependenceDisplay,
    InteractionDisplay,
    WaterfallDisplay,
)
from lssvm.plots.plane import BoundaryDisplay, PartialDependenceDisplay, PrototypesDisplay
from lssvm.plots.tuning import PrototypeCurveDisplay, TuningSurfaceDisplay, TuningTraceDisplay

__all__ = [
    "BeeswarmDisplay",
    "BoundaryDisplay",
    "DependenceDisplay",
    "EntropyTraceDisplay",
    "ForecastDisplay",
    "InteractionDisplay",
    "PartialDependenceDisplay",
    "PrototypeCurveDisplay",
    "PrototypesDisplay",
    "RelevanceDisplay",
    "SparsityDisplay",
    "SupportSpectrumDisplay",
    "TuningSurfaceDisplay",
    "TuningTraceDisplay",
    "WaterfallDisplay",
]
