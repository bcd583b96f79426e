"""What is minimised to choose C and gamma, and how it is searched."""

from lssvm.tuning.base import Losses, Objective, Point, Space, TuningResult
from lssvm.tuning.circulant import CirculantObjective, CirculantPoint
from lssvm.tuning.criteria import AbsoluteError, Criterion, Misclassification, SquaredError
from lssvm.tuning.dual import C_range, DualObjective, DualPoint, Group
from lssvm.tuning.dual_criteria import CRITERIA, criterion_objective, is_criterion
from lssvm.tuning.fixed_criteria import FixedCriterionObjective
from lssvm.tuning.fixed_size import FixedSizeObjective
from lssvm.tuning.folds import (
    Folds,
    content_folds,
    content_holdout,
    hash_rows,
    restrict_folds,
    smallest_hashes,
    splitter_folds,
)
from lssvm.tuning.free_running import FreeRunObjective, FreeRunPoint, Stretch, free_run
from lssvm.tuning.noise import noise_variance
from lssvm.tuning.position_folds import PositionFolds, PositionHoldout
from lssvm.tuning.relevance import Relevance, RelevanceEvidence, find_relevance
from lssvm.tuning.relevance_models import DualRelevance, FixedRelevance
from lssvm.tuning.search_annealing import CoupledAnnealing
from lssvm.tuning.search_base import Search
from lssvm.tuning.search_choice import make_search
from lssvm.tuning.search_circulant import CirculantSearch
from lssvm.tuning.search_grid import GridSearch
from lssvm.tuning.search_path import PathSearch
from lssvm.tuning.search_shrinking import ShrinkingGridSearch
from lssvm.tuning.spectral import SPECTRAL, Spectrum
from lssvm.tuning.spectral_objective import SpectralObjective
from lssvm.tuning.threshold import best_threshold

__all__ = [
    "CRITERIA",
    "SPECTRAL",
    "AbsoluteError",
    "C_range",
    "CirculantObjective",
    "CirculantPoint",
    "CirculantSearch",
    "CoupledAnnealing",
    "Criterion",
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
    "Losses",
    "Misclassification",
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
    "SquaredError",
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
    "restrict_folds",
    "smallest_hashes",
    "splitter_folds",
]
