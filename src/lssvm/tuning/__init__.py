"""What is minimised to choose C and gamma, and how it is searched."""

from lssvm.criteria.ard import (
    DualRelevance,
    FixedRelevance,
    Relevance,
    RelevanceEvidence,
    find_relevance,
)
from lssvm.criteria.base import Group, Losses, Objective, Point
from lssvm.criteria.circulant import CirculantObjective, CirculantPoint
from lssvm.criteria.dual import C_range, DualObjective, DualPoint
from lssvm.criteria.fixed_size import FixedSizeObjective
from lssvm.criteria.free_running import FreeRunObjective, FreeRunPoint, Stretch, free_run
from lssvm.criteria.spectral import (
    CRITERIA,
    SPECTRAL,
    FixedCriterionObjective,
    SpectralObjective,
    Spectrum,
    criterion_objective,
    is_criterion,
    noise_variance,
)
from lssvm.criteria.threshold import best_threshold
from lssvm.engines.host import HostRows
from lssvm.folds.content import (
    Folds,
    PositionFolds,
    PositionHoldout,
    content_folds,
    content_holdout,
    hash_rows,
    repeats_by_nature,
    restrict_folds,
    smallest_hashes,
    splitter_folds,
)
from lssvm.search.annealing import CoupledAnnealing
from lssvm.search.base import Search, Space, TuningResult
from lssvm.search.choice import make_search
from lssvm.search.circulant import CirculantSearch
from lssvm.search.grid import GridSearch, ShrinkingGridSearch
from lssvm.search.path import PathSearch

__all__ = [
    "CRITERIA",
    "SPECTRAL",
    "C_range",
    "CirculantObjective",
    "CirculantPoint",
    "CirculantSearch",
    "CoupledAnnealing",
    "DualObjective",
    "DualPoint",
    "DualRelevance",
    "FixedCriterionObjective",
    "FixedRelevance",
    "FixedSizeObjective",
    "Folds",
    "FreeRunObjective",
    "FreeRunPoint",
    "GridSearch",
    "Group",
    "HostRows",
    "Losses",
    "Objective",
    "PathSearch",
    "Point",
    "PositionFolds",
    "PositionHoldout",
    "Relevance",
    "RelevanceEvidence",
    "Search",
    "ShrinkingGridSearch",
    "Space",
    "SpectralObjective",
    "Spectrum",
    "Stretch",
    "TuningResult",
    "best_threshold",
    "content_folds",
    "content_holdout",
    "criterion_objective",
    "find_relevance",
    "free_run",
    "hash_rows",
    "is_criterion",
    "make_search",
    "noise_variance",
    "repeats_by_nature",
    "restrict_folds",
    "smallest_hashes",
    "splitter_folds",
]
