"""The closed list of classes whose objects a model file may hold, and the rules for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from lssvm.io.records import Known, Registry
from lssvm.io.rules import Book, Lengths, need, table

MAX_CLASSES = 4096
"""Classes that a stored model may have: the check of an output code takes their square in bytes."""

MOST = 10**6
"""Paths, origins, steps and lags: what a later call would loop over."""

KERNELS = "RBF/Laplacian/Linear/Matern/NonStationary/Polynomial"
"""The kernels of rows, for rules."""

RULES = table(
    f"""
Model: kind text; parameters dict; left_out list * of text; fitted none | dict;
    preparation none | dict
RBF: gamma number >=0 | floats d >=0
Laplacian: gamma number >=0 | floats d >=0
Matern: gamma number >=0 | floats d >=0
NonStationary: gamma number >=0 | floats d >=0; lengths none
Polynomial: degree whole >=0 <=4096; gamma number; coef0 number
Moments: gram floats m m; border floats m; cross floats m q; target floats q; squares floats q;
    weight number >=0; n whole >=0; shift none | floats m
NystromMap: eigenvalues floats r; T floats m r; cut number
Sample: keys keys t sorted; Y floats t k; weight none | floats t >=0; X none | floats t d;
    held none | scores t k; labels none | wholes t >=0 <c; behind bool
OutOfFold: scores scores t k; labels wholes t >=0 <c; weight none | floats t >=0
DualSystem: kernel {KERNELS} d; rows rows n d; basis rows n d; C number >0;
    root_weight none | floats n >0; bias bool
DualPart: columns wholes * >=0 <k; system DualSystem n d;
    rows none | wholes * >=0 <n distinct some
DualMemory: Y floats n k; parts list * of DualPart n k d; weight none | floats * >=0;
    held none | scores t k; held_rows none | wholes t >=0 <n; loss text;
    reduction none | text | Prune/L0
GreedyPath: support wholes s >=0; objective scores *; error scores *; held_out scores *;
    status text; coef floats s; intercept number; targets floats s; offsets none | floats s;
    mean number; bordered bool; factor none | floats s s; left_out none
Isotonic: knots floats j rising some; values floats j sorted >=0 <=1
Sigmoid: slope number >=0; offset number
Probabilities: code Code; decoding none | text; maps list * of Isotonic/Sigmoid;
    threshold floats t sorted; weight floats t >=0
Residuals: values list k of floats * sorted; weight list k of floats * >=0
Series: values floats h; inputs none | floats h e
Layout: lags whole =l >=1 <={MOST}; exog_lags whole =x >=0 <={MOST};
    differencing whole >=0 <={MOST}; mean number; scale number >0;
    inputs_mean none | floats e; inputs_scale none | floats e >0
Plan: rows floats n w; targets floats n; sizes list * of whole >=0; layout Layout l x;
    horizon whole =o; n_origins whole >=1 <={MOST}; rolling bool
SeriesResiduals: values floats n some; rows floats n w; index wholes n >=0
Calibration: residuals SeriesResiduals w; mean_spread floats o some; ratios floats * o some
"""
)
"""For every class what its fields are; see `lssvm.io.rules`."""


@dataclass(frozen=True)
class Model:
    """An estimator as a file holds it.

    Attributes
    ----------
    kind : str
        The name of its class.
    parameters : dict
        Those of the constructor, nested estimators as records.
    left_out : list of str
        Parameters that are not stored.
    fitted : dict or None
        Attributes that a fit has set; None where the estimator is not fitted.
    preparation : dict or None
        From raw columns to features.
    """

    kind: str
    parameters: dict[str, Any]
    left_out: list[str]
    fitted: dict[str, Any] | None = None
    preparation: dict[str, Any] | None = None


def _check_dual(memory: Any, lengths: Lengths) -> None:
    k, n = lengths["k"], lengths["n"]
    columns = [j for part in memory.parts for j in part.columns.tolist()]
    need(not columns or sorted(columns) == list(range(k)), "the parts do not serve every output")
    whole = memory.weight is None or not memory.parts or len(memory.weight) == n
    need(whole and bool(columns) == bool(memory.parts), "the parts do not fit")
    need((memory.held is None) == (memory.held_rows is None), "the scores do not fit")


def _check_sample(sample: Any, lengths: Lengths) -> None:
    need(sample.X is not None or sample.held is not None, "the sample has neither rows nor scores")


def _check_residuals(residuals: Any, lengths: Lengths) -> None:
    pairs = zip(residuals.values, residuals.weight, strict=True)
    need(all(len(a) == len(b) for a, b in pairs), "the weights of the residuals do not fit")


def _check_inputs(record: Any, lengths: Lengths) -> None:
    """Check that there are inputs where a series has columns of them (e), and only there."""
    values = record.inputs_mean if hasattr(record, "inputs_mean") else record.inputs
    need(values is None or lengths.get("e", 1) > 0, "there are inputs of no columns")
    need(values is not None or lengths.get("e", 0) == 0, "the inputs are missing")
    if hasattr(record, "inputs_mean"):
        need((values is None) == (record.inputs_scale is None), "the units do not fit")


def _check_plan(plan: Any, lengths: Lengths) -> None:
    need(sum(plan.sizes) == lengths["n"], "the sizes of the series do not fit")


def _check_code(code: Any, lengths: Lengths) -> None:
    need(isinstance(code.name, str), "the name of a code is no text")


BOOK = Book(
    RULES,
    {
        "DualMemory": _check_dual,
        "Sample": _check_sample,
        "Residuals": _check_residuals,
        "Layout": _check_inputs,
        "Series": _check_inputs,
        "Plan": _check_plan,
        "Code": _check_code,
    },
)
"""The rules and checks of all records."""


def _cost_of_code(given: dict[str, Any]) -> int:
    matrix: Any = given.get("matrix")
    n = len(matrix) if isinstance(matrix, (list, np.ndarray)) and np.ndim(matrix) else 0
    need(n <= MAX_CLASSES, f"there are more than {MAX_CLASSES} classes")
    return n * n + 16 * np.size(matrix)


@cache
def known() -> Registry:
    """Return the classes by the names that files call them.

    Examples
    --------
    >>> from lssvm.io.known import known
    >>> known()["RBF"].kind(2.0)
    RBF(gamma=2.0)
    """
    from lssvm import (
        codes,
        features,
        kernels,
        moments,
        prototypes,
        reductions,
        solvers,
        tuning,
        uncertainty,
    )
    from lssvm.estimators import (
        _uncertain_dual,
        _uncertain_fixed,
        narx_fitting,
        narx_intervals,
        narx_series,
    )
    from lssvm.reductions import l0, pruning

    listed: list[tuple[Any, str]] = [
        (kernels, f"{KERNELS}/Precomputed"),
        (codes, "Code"),
        (prototypes, "KMeans/RenyiEntropy/RPCholesky/Uniform/Selection/Bandwidth"),
        (reductions, "L0/FixedSizeL0/Prune/GreedyPath/SparsityPath"),
        (l0, "Reduced"),
        (pruning, "Pruned/PruneStep"),
        (solvers, "PCG/SMO/Cholesky/CirculantSolver/ConjugateGradient/DualSystem"),
        (tuning, "CirculantSearch/CoupledAnnealing/GridSearch/PathSearch/ShrinkingGridSearch"),
        (tuning, "PositionFolds/PositionHoldout/TuningResult"),
        (moments, "Moments"),
        (features, "NystromMap"),
        (uncertainty, "Isotonic/Sigmoid/OutOfFold/Probabilities/Residuals"),
        (_uncertain_fixed, "Sample"),
        (_uncertain_dual, "DualMemory/DualPart"),
        (narx_series, "Series/Layout"),
        (narx_fitting, "Plan"),
        (narx_intervals, "SeriesResiduals/Calibration"),
    ]
    left_out = {"DualSystem": {"budget", "threads"}, "TuningResult": {"point"}}
    kinds = {name: getattr(module, name) for module, names in listed for name in names.split("/")}
    kinds["Model"] = Model

    def entry(name: str) -> Known:
        return Known(
            kinds[name],
            lambda record: BOOK.check_record(record, name),
            frozenset(left_out.get(name, ())),
            _cost_of_code if name == "Code" else None,
            frozenset({"parameters", "fitted"} if name == "Model" else ()),
        )

    return {name: entry(name) for name in kinds}
