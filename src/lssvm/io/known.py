"""The closed list of classes whose objects a model file may hold."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

MAX_CLASSES = 4096
"""Classes that a stored model may have: the check of an output code takes their square in bytes."""

_LEFT_OUT = {"DualSystem": {"budget", "threads"}, "TuningResult": {"point"}}


def stored_fields(kind: Any) -> list[str]:
    """Return the fields of a class that are stored; the others belong to the machine.

    Examples
    --------
    >>> from lssvm.io.known import stored_fields
    >>> from lssvm.kernels import Polynomial
    >>> stored_fields(Polynomial)
    ['degree', 'gamma', 'coef0']
    """
    out: set[str] = _LEFT_OUT.get(kind.__name__, set())
    return [f.name for f in fields(kind) if f.init and f.name not in out]


@cache
def known() -> dict[str, Any]:
    """Return the classes by their names; all are dataclasses of this package.

    Examples
    --------
    >>> from lssvm.io.known import known
    >>> known()["RBF"](2.0)
    RBF(gamma=2.0)
    """
    from lssvm.codes import Code
    from lssvm.estimators._uncertain_dual import DualMemory, DualPart
    from lssvm.estimators._uncertain_fixed import Sample
    from lssvm.estimators.narx_fitting import Plan
    from lssvm.estimators.narx_intervals import Calibration, SeriesResiduals
    from lssvm.estimators.narx_series import Layout, Series
    from lssvm.folds.positions import PositionFolds, PositionHoldout
    from lssvm.greedy import GreedyPath
    from lssvm.kernels import (
        RBF,
        Laplacian,
        Linear,
        Matern,
        NonStationary,
        Polynomial,
        Precomputed,
    )
    from lssvm.moments import Moments, NystromMap
    from lssvm.prototypes import (
        Bandwidth,
        KMeans,
        RenyiEntropy,
        RPCholesky,
        Selection,
        Uniform,
    )
    from lssvm.reductions import L0, FixedSizeL0, Prune, SparsityPath
    from lssvm.reductions.l0 import Reduced
    from lssvm.reductions.pruning import Pruned, PruneStep
    from lssvm.search.annealing import CoupledAnnealing
    from lssvm.search.circulant import CirculantSearch
    from lssvm.search.grid import GridSearch
    from lssvm.search.path import PathSearch
    from lssvm.search.shrinking import ShrinkingGridSearch
    from lssvm.search.space import TuningResult
    from lssvm.solvers import (
        PCG,
        SMO,
        Cholesky,
        CirculantSolver,
        ConjugateGradient,
        DualSystem,
    )
    from lssvm.uncertainty import Isotonic, OutOfFold, Probabilities, Residuals, Sigmoid

    kernels = (RBF, Laplacian, Linear, Matern, NonStationary, Polynomial, Precomputed)
    choices = (Code, KMeans, RenyiEntropy, RPCholesky, Uniform, L0, FixedSizeL0, Prune)
    solvers = (PCG, SMO, Cholesky, CirculantSolver, ConjugateGradient)
    searches = (CirculantSearch, CoupledAnnealing, GridSearch, PathSearch, ShrinkingGridSearch)
    fitted = (Moments, NystromMap, Sample, DualMemory, DualPart, DualSystem, GreedyPath)
    sure = (Isotonic, Sigmoid, OutOfFold, Probabilities, Residuals)
    records = (TuningResult, Selection, Bandwidth, SparsityPath, Reduced, Pruned, PruneStep)
    series = (Series, Layout, Plan, SeriesResiduals, Calibration)
    folds = (PositionFolds, PositionHoldout)
    groups = (kernels, choices, solvers, searches, fitted, sure, records, series, folds)
    return {kind.__name__: kind for group in groups for kind in group}
