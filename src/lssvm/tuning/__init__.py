"""Criteria and searches that choose C and gamma."""

from lssvm.data.folds import PositionFolds, PositionHoldout
from lssvm.tuning.circulant import CirculantSearch
from lssvm.tuning.objective import Losses, Objective, Point
from lssvm.tuning.search import Search, Space, TuningResult
from lssvm.tuning.searches import (
    CoupledAnnealing,
    GridSearch,
    PathSearch,
    ShrinkingGridSearch,
    make_search,
)

__all__ = [
    "CirculantSearch",
    "CoupledAnnealing",
    "GridSearch",
    "Losses",
    "Objective",
    "PathSearch",
    "Point",
    "PositionFolds",
    "PositionHoldout",
    "Search",
    "ShrinkingGridSearch",
    "Space",
    "TuningResult",
    "make_search",
]
