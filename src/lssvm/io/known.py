"""The closed list of classes whose objects a model file may hold, and the rules for them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from lssvm import (
    codes,
    greedy,
    kernels,
    local,
    moments,
    preparation,
    prototypes,
    reductions,
    solvers,
    tasks,
    tuning,
    uncertainty,
)
from lssvm._core.arrays import AnyArray
from lssvm.fitting import configurations, dual, fixed_solution, record, series
from lssvm.fitting import greedy as greedy_recipe
from lssvm.fitting import table as table_recipe
from lssvm.fitting.table_context import TableContext
from lssvm.io.records import Book, Known, Lengths, Registry, need, table
from lssvm.preparation.encodings import CYCLES
from lssvm.preparation.tables import KINDS
from lssvm.preparation.text_dates import ORDERS
from lssvm.prototypes import bandwidth
from lssvm.reductions import l0, pruning


@dataclass(frozen=True)
class StoredTransformer:
    """A transformer as a file holds it.

    Attributes
    ----------
    name : str
        Of the step.
    kind : str
        The name of its class, "passthrough" or "drop".
    parameters : dict
        Those of the constructor that matter after the fit.
    fitted : dict
        What it has learned, by public names.
    parts : list of StoredTransformer
        The steps of a pipeline, the parts of a `ColumnTransformer`.
    columns : dict or None
        The columns of such a part: a list, a slice, or one.
    """

    name: str
    kind: str
    parameters: dict[str, Any]
    fitted: dict[str, Any]
    parts: list[StoredTransformer]
    columns: dict[str, Any] | None = None


@dataclass(frozen=True)
class StoredPipeline:
    """A pipeline as a file holds it.

    Attributes
    ----------
    steps : list of StoredTransformer
    name : str
        Of the last step.
    model : Model
    """

    steps: list[StoredTransformer]
    name: str
    model: Model


MAX_CLASSES = 4096
"""Classes that a stored model may have: the check of an output code takes their square in bytes."""

MOST = 10**6
"""Paths, origins, steps and lags: what a later call would loop over."""

PLAIN = "RBF/Exponential/Laplacian/Linear/Matern/NonStationary/Polynomial"
KERNELS = f"{PLAIN}/Trend"
"""The kernels of rows, for rules."""

COUNT = "whole >=0 <9223372036854775808"
"""What counts something, for rules."""

RULES = table(
    f"""
Model: kind text; parameters dict; left_out list * of text; n_features none | whole >=1;
    preparation none | dict; record none | Fit/SeriesFit/TableFit;
    calibration none | Probabilities/Residuals
StoredPipeline: steps list * of StoredTransformer; name text; model Model
StoredTransformer: name text; kind text; parameters dict; fitted dict;
    parts list * of StoredTransformer; columns none | dict
Fit: task Classes/Numbers k c; machines tuple * of Machine k d; basis rows m d | wholes m >=0 <d;
    coef floats m k some; intercept floats k some; C floats k >0;
    gamma none | number >=0 | floats >=0 | floats * >=0 | floats * * >=0; support wholes * >=-1;
    seed {COUNT}; memory DualMemory/FixedMemory/GreedyMemory k d c; loss text; solver text;
    residual score; iterations {COUNT}; tuning none | Tuning; relevance none | floats d;
    threshold none | floats k; details DualDetails/FixedDetails/GreedyDetails m k; stored text;
    metric Metric d
Machine: kernel {KERNELS}/Precomputed d; columns wholes * >=0 <k
Tuning: results tuple * of TuningResult; best_score score; n_evaluations {COUNT};
    sizes none | dict; sample none | dict
TuningResult: C score; gamma none | score; loss score; n_evaluations {COUNT}; n_points {COUNT};
    seconds score; interrupted bool; cv_results dict; best_index whole;
    approximate none | TuningResult
Classes: classes any; code Code c k; decoding none | text
Numbers: n_outputs whole =k >=1 <={MOST}; single bool
Code: matrix wholes c k; name text
RBF: gamma none | number >=0 | floats d >=0
Exponential: gamma none | number >=0 | floats d >=0
Laplacian: gamma none | number >=0 | floats d >=0
Matern: gamma none | number >=0 | floats d >=0
NonStationary: gamma none | number >=0 | floats d >=0; lengths none
Trend: kernel {PLAIN} d; functions text; covariance number >=0 | doubles q q
Polynomial: degree whole >=0 <=4096; gamma none | number; coef0 number
DualDetails: reduction_path list; n_reweightings none | {COUNT}
DualPart: columns wholes * >=0 <k; rows none | wholes * >=0 <n distinct some; kernel {KERNELS} d;
    C number >0
DualMemory: X rows n d; Y floats y k; parts list * of DualPart n k d; weight none | floats * >0;
    labels none | wholes * >=0 <c; bias bool; reduction none | text; held none | scores t k;
    held_rows none | wholes t >=0
FixedDetails: n_prototypes {COUNT}; moments list * of Moments m; map none | NystromMap m;
    selection none | Selection; used none | mask m k; no_update none | text;
    paths tuple * of SparsityPath; centre none | floats k; peak_memory none | {COUNT};
    penalised bool
Moments: gram doubles m m; border doubles m; cross doubles m q; target doubles q;
    squares doubles q; weight number >=0; n whole >=0; shift none | doubles m
NystromMap: eigenvalues doubles r; T doubles m r; cut number
FixedMemory: sample none | CalibrationSample d k c
CalibrationSample: keys keys t sorted; Y floats t k; weight none | floats t >=0;
    X none | floats t d; held none | scores t k; labels none | wholes t >=0 <c; behind bool
GreedyDetails: paths tuple p of GreedyPath; places tuple p of wholes * >=0 <m;
    ridges tuple p of floats * >=0; centre floats k; gram none | floats m m;
    C_scores none | scores *; best_score none | score
GreedyPath: support wholes s >=0; objective scores *; error scores *; held_out scores *;
    status text; coef floats s; intercept number; targets floats s; offsets none | floats s;
    mean number; bordered bool; factor none | floats s s; left_out none
GreedyMemory: left_out none | OutOfFold k c
OutOfFold: scores scores t k; labels wholes t >=0 <c; weight none | floats t >=0
Isotonic: knots floats j rising some; values floats j sorted >=0 <=1
Sigmoid: slope number >=0; offset number
Probabilities: code Code; decoding none | text; maps list * of Isotonic/Sigmoid;
    threshold floats t sorted; weight floats t >=0; sharpness number >0
Residuals: values list k of floats * sorted; weight list k of floats * >=0
SeriesFit: regressor Model; layout Layout l x e h w; ends tuple s of Series h e; listed bool;
    horizon whole =o >=1 <={MOST}; seed {COUNT}; plan none | Plan l x e o w; tuning none | Tuning;
    calibration none | Calibration w; stored text; calendars? tuple * of Calendar
Calendar: last whole; step whole >=0; months whole >=0 <=1200; day whole >=0 <=31; weekdays bool;
    framed bool; name none | text
Series: values floats h; inputs none | floats h e
Layout: lags whole =l >=1 <={MOST}; exog_lags whole =x >=0 <={MOST};
    differencing whole >=0 <={MOST}; mean number; scale number >0;
    inputs_mean none | floats e; inputs_scale none | floats e >0
Plan: rows floats n w; targets floats n; sizes list * of whole >=0; layout Layout l x e;
    horizon whole =o; n_origins whole >=1 <={MOST}; rolling bool
SeriesResiduals: values floats n some; rows floats n w; index wholes n >=0
Calibration: residuals SeriesResiduals w; mean_spread floats o some; ratios floats * o some
TableFit: members tuple * of Member k; trials tuple * of Trial; held_out scores t k;
    part_size whole >=1; context TableContext k; stored text; interrupted bool;
    note text
TableContext: prepared dict; texts bool; task Classes/Numbers k c; shift doubles k;
    scale doubles k >0; weight_scale number >0; seed {COUNT}; n_rows {COUNT}; importances scores f;
    best_score score; calibration none | Probabilities/Residuals; nearby {COUNT}
Trial: configuration Configuration; rounds {COUNT}; error score; weight score; seconds score;
    stage text
Member: configuration Configuration; model PartsModel k d; metric Metric d; rounds {COUNT};
    weight number >=0; beside bool; moments none | Moments m q=k
Configuration: inputs text; kernel text
Metric: map none | doubles d d | doubles d
PartsModel: distance text; cuts tuple * of Cut k d; part_size whole >=1
Cut: tree Tree p d; leaves tuple p of Leaf k d; members tuple * of wholes * >=0
Tree: directions doubles q d; thresholds doubles q; children wholes q 2; n_parts whole =p >=1
Leaf: rows Rows n d k y; setting Setting; fit ExactFit n k y; error number >=0;
    kept doubles * * >=0
Rows: X floats n d some; Y doubles y k; weight doubles y >0; labels none | wholes y
Setting: C number >0; gamma number >=0
ExactFit: coef doubles n k; intercept doubles k; left_out doubles * k
PreparedTable: columns tuple * of PreparedColumn; named bool
PreparedColumn: name text; kind text; encoding none | NumberEncoding/LevelEncoding/DateEncoding;
    done text; why text
NumberEncoding: fill number; mean number; scale number >0; grid doubles g sorted;
    scores doubles g sorted; indicator number >=0
LevelEncoding: levels tuple l of text; values doubles l w; missing doubles w; unseen doubles w;
    suffixes tuple w of text
DateEncoding: position NumberEncoding; cycles tuple * of text; zone none | text; order text
"""
)
"""For every class what its fields are; see `lssvm.io.records`."""


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
    n_features : int or None
        Columns that rows have.
    feature_names : array of str or None
    preparation : dict or None
        From raw columns to features.
    record : Fit, SeriesFit, TableFit or None
        None where the estimator is not fitted. The regressor of a `SeriesFit` is a `Model`.
    calibration : Probabilities, Residuals or None
        What was computed from rows that the file does not hold.
    """

    kind: str
    parameters: dict[str, Any]
    left_out: list[str]
    n_features: int | None = None
    feature_names: AnyArray | None = None
    preparation: dict[str, Any] | None = None
    record: record.Fit | series.SeriesFit | table_recipe.TableFit | None = None
    calibration: uncertainty.Probabilities | uncertainty.Residuals | None = None


def _check_classes(task: tasks.Classes, lengths: Lengths) -> None:
    labels: Any = task.classes
    need(isinstance(labels, np.ndarray) and labels.dtype.kind in "biufUO", "classes are no labels")
    need(labels.ndim == 1 and 2 <= len(labels) <= MAX_CLASSES, "classes have another shape")
    need(labels.dtype.kind != "f" or np.all(np.isfinite(labels)), "classes are not finite")
    need(len({type(label) for label in labels.tolist()}) == 1, "classes are of several kinds")
    need(np.all(labels[:-1] < labels[1:]), "classes are not in order")
    type(task).of(
        labels,
        multiclass=task.code,
        decoding=task.decoding,
        targets=task.targets,
        class_weight=task.class_weight,
    )


def _check_dual(memory: dual.DualMemory, lengths: Lengths) -> None:
    columns = [j for part in memory.parts for j in part.columns.tolist()]
    whole = not columns or sorted(columns) == list(range(lengths["k"]))
    need(whole and bool(columns) == bool(memory.parts), "the parts do not serve every output")
    rows = lengths["y"] if memory.labels is None else len(memory.labels)
    held = memory.held_rows
    need((memory.held is None) == (held is None), "the scores do not fit")
    need(held is None or np.all(held < rows), "scores are of rows that are not there")
    need(memory.weight is None or len(memory.weight) == rows, "the weights do not fit")
    need(not columns or lengths["n"] == lengths["y"] == rows, "the rows do not fit")


def _check_sample(sample: fixed_solution.CalibrationSample, lengths: Lengths) -> None:
    need(sample.X is not None or sample.held is not None, "the sample has neither rows nor scores")


def _check_residuals(residuals: uncertainty.Residuals, lengths: Lengths) -> None:
    pairs = zip(residuals.values, residuals.weight, strict=True)
    need(all(len(a) == len(b) for a, b in pairs), "the weights of the residuals do not fit")


def _check_series(one: series.Series, lengths: Lengths) -> None:
    width = 0 if one.inputs is None else one.inputs.shape[1]
    need(lengths.get("e", width) == width, "the inputs of a series do not fit")


def _check_layout(layout: series.Layout, lengths: Lengths) -> None:
    """Check the units of the inputs; e, h and w are their columns, the history, and a row's."""
    need((layout.inputs_mean is None) == (layout.inputs_scale is None), "the units do not fit")
    e = layout.n_exog
    need(layout.inputs_mean is None or e > 0, "there are inputs of no columns")
    need(lengths.setdefault("e", e) == e, "the inputs do not fit")
    lengths |= {"h": layout.history, "w": layout.lags + e * (layout.exog_lags + 1)}


def _check_calendar(calendar: series.Calendar, lengths: Lengths) -> None:
    ways = (calendar.step > 0, calendar.months > 0 and calendar.day > 0, calendar.weekdays)
    need(sum(ways) == 1, "the times of a series follow no rule")
    sizes = (abs(calendar.last), calendar.step)
    need(max(sizes) < 2**58, "the times of a series are out of range")


def _check_plan(plan: series.Plan, lengths: Lengths) -> None:
    need(sum(plan.sizes) == lengths["n"], "the sizes of the series do not fit")


def _check_configuration(one: configurations.Configuration, lengths: Lengths) -> None:
    known = one.inputs in configurations.INPUTS and one.kernel in configurations.KERNELS
    need(known, "a configuration is not known")


def _check_member(member: configurations.Member, lengths: Lengths) -> None:
    model = member.model
    need(model.cuts, "a configuration has no parts")
    need(model.distance == member.configuration.distance, "the distance is not the kernel's")
    one = len(model.cuts) == len(model.cuts[0].leaves) == 1
    need(one or not member.beside, "prototypes are in several parts")
    if (moments := member.moments) is None:
        return
    size, most = len(model.cuts[0].leaves[0].rows.X), 1.001 * moments.weight
    need(member.beside and len(moments.gram) == size, "moments do not fit their rows")
    # Kernel values are from 0 to 1, and so is their mean.
    sums = max(float(np.abs(moments.gram).max()), float(np.abs(moments.border).max()))
    need(most > 0.0 and sums <= most, "moments are no sums of kernel values")
    shift = 0.0 if moments.shift is None else moments.shift
    need(np.all(np.abs(shift) <= 1.001), "moments are not centred on a mean")


def _check_cut(cut: local.Cut, lengths: Lengths) -> None:
    sizes = [len(leaf.rows.X) for leaf in cut.leaves]
    fits = not cut.members or [len(rows) for rows in cut.members] == sizes
    need(fits, "the rows of the parts do not fit")


def _check_tree(tree: local.Tree, lengths: Lengths) -> None:
    """Check that every node but the root is below one earlier node, and every part below one."""
    q, p = lengths["q"], lengths["p"]
    below = np.sort(tree.children.ravel())
    whole = p == q + 1 and np.array_equal(below, [*range(-p, 0), *range(1, q)] if q else [])
    need(whole, "the tree does not lead to every part once")
    inner = tree.children >= 0
    need(np.all((tree.children > np.arange(q)[:, None])[inner]), "the tree has a circle")


def _check_leaf(leaf: local.Leaf, lengths: Lengths) -> None:
    kept = len(leaf.fit.left_out)
    need(kept in (0, len(leaf.rows.Y)), "outputs and rows differ in number")


def _check_rows(rows: local.Rows, lengths: Lengths) -> None:
    need(lengths["y"] in (0, lengths["n"]), "the targets do not fit their rows")


def _check_context(context: TableContext, lengths: Lengths) -> None:
    tables = list(context.prepared.values())
    known = tables and set(context.prepared) <= set(configurations.INPUTS)
    need(known, "the inputs are not known")
    need(all(isinstance(one, preparation.PreparedTable) for one in tables), "no preparation")
    columns = [[(c.name, c.kind) for c in one.columns] for one in tables]
    same = all(one == columns[0] for one in columns) and len({one.named for one in tables}) == 1
    need(same and len(columns[0]) == lengths["f"], "the preparations are of other columns")
    need(tables[0].named or not context.texts, "columns without names have names")


def _check_prepared(table: preparation.PreparedTable, lengths: Lengths) -> None:
    need(len(set(table.names)) == len(table.columns) > 0, "columns have no names of their own")


_ENCODING = {"number": "Number", "duration": "Number", "date": "Date"}
_ENCODING |= {"category": "Level", "boolean": "Level"}


def _check_column(column: preparation.PreparedColumn, lengths: Lengths) -> None:
    need(column.kind in KINDS, "a column has an unknown kind")
    way = None if column.encoding is None else type(column.encoding).__name__
    own = _ENCODING.get(column.kind)
    need(way is None or way == f"{own}Encoding", "a column is not of the kind that is encoded")
    if column.kind == "boolean" and isinstance(column.encoding, preparation.LevelEncoding):
        need(len(column.encoding.levels) == 2, "a column of booleans has other levels than two")


def _check_levels(encoding: preparation.LevelEncoding, lengths: Lengths) -> None:
    for names in (encoding.levels, encoding.suffixes):
        need(len(set(names)) == len(names), "two levels of a column have the same name")
    need(lengths["w"], "a column has no features")


def _check_dates(encoding: preparation.DateEncoding, lengths: Lengths) -> None:
    cycles = encoding.cycles
    need(set(cycles) <= set(CYCLES) and len(set(cycles)) == len(cycles), "cycles are not known")
    need(encoding.order in ("", *ORDERS), "the order of dates is not known")
    need(is_zone(encoding.zone), "the time zone is not known here")


_HOURS = r"UTC|(UTC)?[+-]([01]\d|2[0-3]):[0-5]\d"


def is_zone(zone: str | None) -> bool:
    """Say whether a time zone can be stored: by its name, or by its hours from UTC.

    Examples
    --------
    >>> from lssvm.io.known import is_zone
    >>> is_zone("UTC+01:00"), is_zone("dateutil//etc/localtime")
    (True, False)
    """
    if zone is None or re.fullmatch(_HOURS, zone):
        return True
    try:
        return bool(ZoneInfo(zone).key)
    except (OSError, LookupError, ValueError):
        return False


BOOK = Book(
    RULES,
    {
        "Classes": _check_classes,
        "DualMemory": _check_dual,
        "CalibrationSample": _check_sample,
        "Residuals": _check_residuals,
        "Series": _check_series,
        "Layout": _check_layout,
        "Plan": _check_plan,
        "Calendar": _check_calendar,
        "Configuration": _check_configuration,
        "Member": _check_member,
        "Cut": _check_cut,
        "Tree": _check_tree,
        "Leaf": _check_leaf,
        "Rows": _check_rows,
        "TableContext": _check_context,
        "PreparedTable": _check_prepared,
        "PreparedColumn": _check_column,
        "LevelEncoding": _check_levels,
        "DateEncoding": _check_dates,
    },
)
"""The rules and checks of all records."""


def _cost_of_code(given: dict[str, Any]) -> int:
    matrix: Any = given.get("matrix")
    n = len(matrix) if isinstance(matrix, (list, np.ndarray)) and np.ndim(matrix) else 0
    need(n <= MAX_CLASSES, f"there are more than {MAX_CLASSES} classes")
    return n * n + 16 * np.size(matrix)


_UNNAMED = {"Model": {"parameters", "record"}, "StoredPipeline": {"model"}}


@cache
def known() -> Registry:
    """Return the classes by the names that files call them.

    Examples
    --------
    >>> from lssvm.io.known import known
    >>> known()["RBF"].kind(2.0)
    RBF(gamma=2.0)
    """
    searches = "CirculantSearch/CoupledAnnealing/GridSearch/PathSearch/ShrinkingGridSearch"
    listed: list[tuple[Any, str]] = [
        (kernels, f"{KERNELS}/Precomputed/Metric"),
        (codes, "Code"),
        (tasks, "Classes/Numbers"),
        (prototypes, "KMeans/RenyiEntropy/RPCholesky/Uniform/Selection"),
        (bandwidth, "Bandwidth"),
        (reductions, "L0/FixedSizeL0/Prune/SparsityPath"),
        (l0, "Reduced"),
        (pruning, "Pruned/PruneStep"),
        (greedy, "GreedyPath"),
        (solvers, "PCG/SMO/Cholesky/CirculantSolver/ConjugateGradient/ExactFit"),
        (tuning, f"{searches}/PositionFolds/PositionHoldout/TuningResult"),
        (moments, "Moments/NystromMap"),
        (uncertainty, "Isotonic/Sigmoid/OutOfFold/Probabilities/Residuals"),
        (record, "Fit/Machine/Tuning"),
        (dual, "DualDetails/DualMemory/DualPart"),
        (fixed_solution, "FixedDetails/FixedMemory/CalibrationSample"),
        (greedy_recipe, "GreedyDetails/GreedyMemory"),
        (series, "SeriesFit/SeriesResiduals/Calibration"),
        (series, "Calendar/Layout/Plan/Series"),
        (local, "Cut/Leaf/PartsModel/Rows/Setting/Tree"),
        (preparation, "DateEncoding/LevelEncoding/NumberEncoding/PreparedColumn/PreparedTable"),
        (configurations, "Configuration/Member"),
        (table_recipe, "TableFit/Trial"),
    ]
    left_out = {"TuningResult": {"point"}, "FixedDetails": {"kept"}}
    left_out |= {name: {"checkpoint"} for name in searches.split("/")}
    kinds = {name: getattr(module, name) for module, names in listed for name in names.split("/")}
    own = (Model, StoredPipeline, StoredTransformer, TableContext)
    kinds |= {kind.__name__: kind for kind in own}

    def entry(name: str) -> Known:
        return Known(
            kinds[name],
            lambda record: BOOK.check_record(record, name),
            frozenset(left_out.get(name, ())),
            _cost_of_code if name == "Code" else None,
            frozenset(_UNNAMED.get(name, ())),
        )

    return {name: entry(name) for name in kinds}
