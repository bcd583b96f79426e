"""What is minimised to choose C and gamma, and how it is searched."""

from lssvm.backends.host import HostRows
from lssvm.data.folds import (
    Folds,
    PositionFolds,
    PositionHoldout,
    assign_folds,
    content_holdout,
    hash_rows,
    repeats_by_nature,
    restrict_folds,
    smallest_hashes,
    splitter_folds,
)
from lssvm.tuning.annealing import CoupledAnnealing
from lssvm.tuning.circulant import CirculantObjective, CirculantPoint, CirculantSearch
from lssvm.tuning.dual import C_range, DualObjective, DualPoint
from lssvm.tuning.fixed_size import FixedSizeObjective
from lssvm.tuning.free_running import FreeRunObjective, FreeRunPoint, Stretch, free_run
from lssvm.tuning.grid import GridSearch, ShrinkingGridSearch
from lssvm.tuning.objective import Group, Losses, Objective, Point
from lssvm.tuning.path import PathSearch, make_search
from lssvm.tuning.relevance import (
    DualRelevance,
    FixedRelevance,
    Relevance,
    RelevanceEvidence,
    find_relevance,
)
from lssvm.tuning.search import Search, Space, TuningResult
from lssvm.tuning.spectral import (
    CRITERIA,
    SPECTRAL,
    FixedCriterionObjective,
    SpectralObjective,
    Spectrum,
    criterion_objective,
    is_criterion,
    noise_variance,
)
from lssvm.tuning.threshold import best_threshold

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
    "assign_folds",
    "best_threshold",
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
