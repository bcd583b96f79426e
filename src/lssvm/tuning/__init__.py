"""Criteria and searches that choose C and gamma."""

from lssvm.data.folds import PositionFolds, PositionHoldout
from lssvm.tuning.annealing import CoupledAnnealing
from lssvm.tuning.circulant import CirculantSearch
from lssvm.tuning.grid import GridSearch, ShrinkingGridSearch
from lssvm.tuning.objective import Losses, Objective, Point
from lssvm.tuning.path import PathSearch, make_search
from lssvm.tuning.search import Search, Space, TuningResult

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
