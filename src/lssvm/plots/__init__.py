"""Pictures of fitted models, in the manner of scikit-learn's displays.

Each class computes what is shown in ``from_estimator``, draws it in ``plot`` and keeps the artists.
Colours are safe for colour-blind readers, and every class or line also has a marker or dash of its
own, for print. Needs matplotlib: ``pip install lssvm[plots]``.
"""

from __future__ import annotations

from lssvm.plots.beeswarm import BeeswarmDisplay
from lssvm.plots.boundary import BoundaryDisplay
from lssvm.plots.dependence import DependenceDisplay
from lssvm.plots.entropy import EntropyTraceDisplay
from lssvm.plots.forecast import ForecastDisplay
from lssvm.plots.interaction import InteractionDisplay
from lssvm.plots.prototype_curve import PrototypeCurveDisplay
from lssvm.plots.prototypes import PrototypesDisplay
from lssvm.plots.relevance import RelevanceDisplay
from lssvm.plots.sparsity import SparsityDisplay
from lssvm.plots.spectrum import SupportSpectrumDisplay
from lssvm.plots.tuning_surface import TuningSurfaceDisplay
from lssvm.plots.tuning_trace import TuningTraceDisplay
from lssvm.plots.waterfall import WaterfallDisplay

__all__ = [
    "BeeswarmDisplay",
    "BoundaryDisplay",
    "DependenceDisplay",
    "EntropyTraceDisplay",
    "ForecastDisplay",
    "InteractionDisplay",
    "PrototypeCurveDisplay",
    "PrototypesDisplay",
    "RelevanceDisplay",
    "SparsityDisplay",
    "SupportSpectrumDisplay",
    "TuningSurfaceDisplay",
    "TuningTraceDisplay",
    "WaterfallDisplay",
]
