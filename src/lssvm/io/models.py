"""From an estimator to what a file holds of it, and back.

First whether the records of a file fit together: lengths, ranges, and what one says of another.
Types are checked where a record is decoded (`lssvm.io.records`). Letters: d features, m support
vectors, k outputs, n rows.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from types import NoneType
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from lssvm import estimators, local
from lssvm._core.arrays import FloatArray, IntArray, is_sparse
from lssvm._core.blocks import n_threads
from lssvm._core.errors import InvalidInputError, MemoryBudgetError, ModelFileError, printable
from lssvm.codes import make_code
from lssvm.data.columns import KINDS
from lssvm.data.dates import ORDERS
from lssvm.data.encodings import (
    CYCLES,
    DateEncoding,
    Encoding,
    LevelEncoding,
    NumberEncoding,
    ValueEncoding,
)
from lssvm.data.preparation import PreparedColumn, PreparedTable
from lssvm.data.raw import SCANNED
from lssvm.data.text import BUCKETS, TextEncoding
from lssvm.estimators import NARX
from lssvm.estimators.base import KernelClassifier, KernelEstimator, KernelRegressor
from lssvm.fitting.dual import DualCalibrationData, DualState
from lssvm.fitting.fixed_solution import (
    CalibrationSample,
    FixedCalibrationData,
    FixedFit,
    FixedState,
)
from lssvm.fitting.greedy import GreedyCalibrationData, GreedyFit, GreedyState
from lssvm.fitting.record import FORMS, Fit
from lssvm.fitting.series import Layout, SeriesFit
from lssvm.fitting.table_record import TableFit, TableState
from lssvm.io.records import NotStorable, encode, need
from lssvm.io.schema import MAX_CLASSES, Model, schema
from lssvm.kernels import Kernel, Metric, Trend
from lssvm.kernels.base import Expansion
from lssvm.kernels.factory import has_gamma
from lssvm.kernels.radial import KERNEL_OF
from lssvm.solvers.moments import Moments
from lssvm.tasks import Classes, Numbers, Task
from lssvm.uncertainty import Isotonic, Probabilities, Residuals
from lssvm.uncertainty.probabilities import by_problem

MOST = 10**6
"""Paths, origins, steps, lags, outputs: what a later call would loop over."""


# -- the fields of a record; one that is None passes -------------------------------------------


def check_shapes(record: object, **shapes: tuple[int | None, ...]) -> None:
    """Refuse arrays of other shapes; None is any length."""
    for name, shape in shapes.items():
        if (array := getattr(record, name)) is not None:
            fits = len(array.shape) == len(shape)
            fits = fits and all(b in (None, a) for a, b in zip(array.shape, shape, strict=True))
            need(fits, f"{name} has shape {array.shape}, not {shape}")


def check_range(record: object, low: float, high: float, *names: str) -> None:
    """Refuse numbers, alone or in arrays, that are less than ``low`` or more than ``high``."""
    for name in names:
        if (value := getattr(record, name)) is not None:
            values = np.asarray(value)
            need(np.all((values >= low) & (values <= high)), f"{name} is out of range")


def check_positive(record: object, *names: str) -> None:
    """Refuse numbers, alone or in arrays, that are not positive."""
    check_range(record, np.nextafter(0.0, 1.0), np.inf, *names)


def check_order(record: object, *names: str) -> None:
    """Refuse arrays of one axis whose values fall."""
    for name in names:
        check_shapes(record, **{name: (None,)})
        values = getattr(record, name)
        need(np.all(values[:-1] <= values[1:]), f"{name} is not in order")


def _distinct(names: Sequence[Any]) -> bool:
    return len(set(names)) == len(names)


# -- kernels, tasks, probabilities -------------------------------------------------------------


def check_kernel(kernel: Kernel, d: int) -> None:
    """Check a kernel of d features, as far as its constructor has not."""
    plain = kernel.kernel if isinstance(kernel, Trend) else kernel
    if hasattr(plain, "gamma"):
        _check_gamma(plain, plain.gamma, d)
    if hasattr(plain, "degree"):
        check_range(plain, 1, 4096, "degree")


def _check_gamma(record: object, gamma: Any, *shape: int | None) -> None:
    """Check one width of a record, or several in an array of floats."""
    array = isinstance(gamma, np.ndarray) and gamma.dtype.kind == "f"
    need(gamma is None or array or type(gamma) in (int, float), "gamma is of another type")
    if array:
        check_shapes(record, gamma=shape)
    check_range(record, 0, np.inf, "gamma")


def check_metric(metric: Metric, d: int) -> int:
    """Check the warp and the map of a metric, which is full or diagonal; return its width."""
    full = metric.map is not None and metric.map.ndim == 2
    check_shapes(metric, map=(d, None) if full else (d,))
    if metric.warp is not None:
        q = metric.warp.knots.shape[1] if metric.warp.knots.ndim == 2 else 0
        need(q > 0, "a warp has no knots")
        check_shapes(metric.warp, knots=(d, q), values=(d, q))
        along, up = np.diff(metric.warp.knots, axis=1), np.diff(metric.warp.values, axis=1)
        rises = np.array_equal(along > 0, up > 0) and np.all(along >= 0) and np.all(up >= 0)
        need(rises, "a warp does not increase")
    if not full:
        return d
    assert metric.map is not None
    need(1 <= metric.map.shape[1] <= d, "a metric has more directions than features")
    return int(metric.map.shape[1])


def check_task(task: Task, k: int) -> None:
    """Check labels and output code, or the number of outputs."""
    if not isinstance(task, Classes):
        need(1 <= task.n_outputs <= MOST and task.n_outputs == k, "the outputs do not fit")
        need((task.shift is None) == (task.scale is None), "the units of the targets do not fit")
        need(task.smearing is None or task.scale is not None, "logarithms have no units")
        check_shapes(task, shift=(k,), scale=(k,), smearing=(k,))
        check_positive(task, "scale")
        check_positive(task, "smearing")
        return
    labels = task.classes
    need(labels.dtype.kind in "biufUO", "classes are not labels")
    need(labels.ndim == 1 and 2 <= len(labels) <= MAX_CLASSES, "classes have another shape")
    need(labels.dtype.kind != "f" or np.all(np.isfinite(labels)), "classes are not finite")
    need(len({type(label) for label in labels.tolist()}) == 1, "classes are of several types")
    need(np.all(labels[:-1] < labels[1:]), "classes are not in order")
    check_shapes(task.code, matrix=(len(labels), k))
    decoding = task.decoding
    if decoding == "argmax":
        ova = make_code("ova", len(labels)).matrix
        need(np.array_equal(task.code.matrix, ova), "the classes have another code")
        decoding = None
    options = {"targets": task.targets, "class_weight": task.class_weight}
    type(task).of(labels, multiclass=task.code, decoding=decoding, **options)


def check_calibration(
    calibration: Probabilities | Residuals | None, task: Task, stored: str
) -> None:
    """Check what turns outputs into probabilities and sets, or into intervals."""
    if isinstance(calibration, Residuals):
        need(not isinstance(task, Classes), "classes have residuals")
        sizes = {len(calibration.values), len(calibration.weight), task.n_outputs}
        need(len(sizes) == 1, "the residuals do not fit")
        for values, weight in zip(calibration.values, calibration.weight, strict=True):
            need(values.ndim == 1 and values.shape == weight.shape, "the residuals do not fit")
            need(np.all(values[:-1] <= values[1:]), "the residuals are not in order")
            need(np.all(weight >= 0), "the weights of residuals are negative")
        check_range(calibration, 0, 2**63 - 1, "nearby")
        return
    need(calibration is not None and isinstance(task, Classes), "the calibration is missing")
    assert calibration is not None and isinstance(task, Classes)
    same = np.array_equal(calibration.code.matrix, task.code.matrix)
    # Maps of older files take decoded outputs.
    known = (None, "argmax", "softmax") if task.decoding == "argmax" else (task.decoding,)
    need(same and calibration.decoding in known, "the probabilities have another code")
    count = task.n_outputs if by_problem(task.code) else task.n_classes
    need(len(calibration.maps) == count, "maps are missing")
    need(stored == "support" or len(calibration.threshold), "the quantiles of sets are missing")
    check_order(calibration, "threshold")
    check_shapes(calibration, weight=calibration.threshold.shape)
    check_range(calibration, 0, np.inf, "weight")
    check_positive(calibration, "sharpness")
    for one in calibration.maps:
        if isinstance(one, Isotonic):
            check_order(one, "knots", "values")
            need(_distinct(one.knots.tolist()) and len(one.knots), "a map has no knots")
            check_shapes(one, values=one.knots.shape)
            check_range(one, 0, 1, "values")
        else:
            check_range(one, 0, np.inf, "slope")


# -- columns -----------------------------------------------------------------------------------


def read_preparation(state: dict[str, Any], named: bool) -> PreparedTable:
    """Return the preparation of a scan as files of formats 2 and 3 have it, a dictionary.

    Numbers are standardised, missing ones the mean; strings are indicators of 0 and 1. ``named``
    says whether the columns had names of their own.
    """
    fields = {"names", "kinds", "mean", "scale", "fill", "categories"}
    need(set(state) == fields, "the preparation is not complete")
    filled = {**state, "fill": state["mean"] if state["fill"] is None else state["fill"]}
    need(all(isinstance(part, list) for part in filled.values()), "the preparation has no lists")
    names, kinds, categories = filled["names"], filled["kinds"], filled["categories"]
    need(all(isinstance(name, str) for name in names), "names are not texts")
    need(all(kind in SCANNED for kind in kinds), "a column has an unknown kind")
    numbers = [filled["fill"], filled["mean"], filled["scale"]]
    fits = all(len(part) == len(kinds) - kinds.count("text") for part in numbers)
    fits = fits and len(kinds) == len(names) and len(categories) == kinds.count("text")
    need(fits, "the preparation does not fit its columns")
    plain = all(type(v) in (int, float) and abs(v) < np.inf for part in numbers for v in part)
    need(plain and all(v > 0 for v in filled["scale"]), "mean, scale or fill are not numbers")
    for part in categories:
        texts = isinstance(part, list) and all(c is None or isinstance(c, str) for c in part)
        need(texts and _distinct(part), "categories are not distinct texts")
    units, levels = zip(*numbers, strict=True), iter(categories)
    columns = []
    for name, kind in zip(names, kinds, strict=True):
        encoding = _indicators(next(levels)) if kind == "text" else _number(kind, *next(units))
        kind, done = ("category", "indicators") if kind == "text" else (kind, "standardised")
        done = "dropped" if encoding is None else done
        columns.append(PreparedColumn(name, kind, encoding, done, "in a file of an older format"))
    return PreparedTable(tuple(columns), named)


def _number(kind: str, fill: float, mean: float, scale: float) -> Encoding:
    position = NumberEncoding(fill, mean, scale, np.empty(0), np.empty(0), 0.0)
    if kind == "date":
        return DateEncoding(position, (), None, "")
    if kind != "boolean":
        return position
    sides, unknown = (np.array([[0.0], [1.0]]) - mean) / scale, np.array([(fill - mean) / scale])
    return LevelEncoding(("False", "True"), sides, unknown, unknown, ("",))


def _indicators(levels: list[str | None]) -> Encoding | None:
    if not levels:
        return None
    known, sides = [level for level in levels if level is not None], np.eye(len(levels))
    places = [levels.index(level) for level in known]
    missing = sides[levels.index(None)] if None in levels else np.zeros(len(levels))
    absent = "(missing)"
    while absent in known:
        absent += "#"
    suffixes = tuple(f"={absent if level is None else level}" for level in levels)
    return LevelEncoding(tuple(known), sides[places], missing, np.zeros(len(levels)), suffixes)


def _count_columns(stored: Model) -> int:
    """Check names and number of the raw columns; return the number."""
    raw, names = stored.n_features or 0, stored.feature_names
    need(raw > 0, "the number of columns is missing")
    if names is not None:
        fits = names.dtype == object and names.shape == (raw,)
        need(fits and all(isinstance(n, str) for n in names), "the names of columns do not fit")
    return raw


def _count_features(stored: Model, fit: Fit[Any]) -> int:
    """Check the raw columns of a model of one basis; return the number of features."""
    raw, names = _count_columns(stored), stored.feature_names
    if not fit.prepared:
        return raw
    need(list(fit.prepared) == ["none"], "the preparations are those of a table")
    ready = fit.prepared["none"]
    check_prepared(ready)
    need(ready.n_features > 0, "the preparation has no features")
    need(len(ready.columns) == raw, "the preparation has other columns than the model")
    need(names is None or list(names) == list(ready.names), "the preparation has other names")
    return ready.n_features


_NUMBERS = (NumberEncoding, ValueEncoding)
_ENCODING: dict[str, Any] = {"number": _NUMBERS, "duration": _NUMBERS}
_ENCODING |= {"date": DateEncoding, "category": LevelEncoding, "boolean": LevelEncoding}
_ENCODING |= {"text": TextEncoding}


def check_prepared(table: PreparedTable) -> None:
    """Check the encodings of the columns of a table."""
    need(table.columns and _distinct(table.names), "columns have no names of their own")
    for column in table.columns:
        encoding = column.encoding
        need(column.kind in (*KINDS, "text"), "a column has an unknown kind")
        fits = encoding is None or isinstance(encoding, _ENCODING.get(column.kind, ()))
        need(fits, "a column is not of the kind that is encoded")
        if isinstance(encoding, DateEncoding):
            cycles = encoding.cycles
            need(set(cycles) <= set(CYCLES) and _distinct(cycles), "cycles are not known")
            need(encoding.order in ("", *ORDERS), "the order of dates is not known")
            need(is_zone(encoding.zone), "the time zone is not known here")
            encoding = encoding.position
        if isinstance(encoding, TextEncoding):
            _check_text(encoding)
            encoding = encoding.level_encoding
        if isinstance(encoding, ValueEncoding):
            g, k = len(encoding.values), len(encoding.endings)
            need(g and k and _distinct(encoding.suffixes), "the values of a column are none")
            check_shapes(encoding, effects=(g, k), unknown=(k,))
            need(np.all(np.diff(encoding.values) > 0), "the values of a column do not rise")
            encoding = encoding.number
        if isinstance(encoding, LevelEncoding):
            n, width = len(encoding.levels), len(encoding.suffixes)
            need(column.kind != "boolean" or n == 2, "booleans have other levels than two")
            fits = _distinct(encoding.levels) and _distinct(encoding.suffixes)
            need(fits and width, "two levels of a column have the same name")
            check_shapes(encoding, values=(n, width), missing=(width,), unseen=(width,))
        if isinstance(encoding, NumberEncoding):
            check_positive(encoding, "scale")
            check_range(encoding, 0, np.inf, "indicator")
            check_order(encoding, "grid", "scores")
            check_shapes(encoding, scores=encoding.grid.shape)


def _check_text(text: TextEncoding) -> None:
    v, q = len(text.idf), len(text.endings)
    need(v and q, "a text has no features")
    check_shapes(text, buckets=(v,), idf=(v,), projection=(v, q), centre=(q,))
    check_range(text, 0, BUCKETS - 1, "buckets")
    need(np.all(text.buckets[:-1] < text.buckets[1:]), "n-grams are not in order")
    check_positive(text, "idf")
    check_range(text, 0, np.inf, "indicator")
    need(_distinct(text.suffixes), "two features of a text have the same name")


_HOURS = r"UTC|(UTC)?[+-]([01]\d|2[0-3]):[0-5]\d"


def is_zone(zone: str | None) -> bool:
    """Say whether a time zone can be stored: by its name, or by its hours from UTC."""
    if zone is None or re.fullmatch(_HOURS, zone):
        return True
    try:
        return bool(ZoneInfo(zone).key)
    except (OSError, LookupError, ValueError):
        return False


# -- fits --------------------------------------------------------------------------------------

_FAMILY: dict[type[Any], tuple[str, str, type[Any]]] = {
    DualState: ("LSSVC", "LSSVR", DualCalibrationData),
    FixedState: ("FixedSizeLSSVC", "FixedSizeLSSVR", FixedCalibrationData),
    GreedyState: ("GreedyLSSVC", "GreedyLSSVR", GreedyCalibrationData),
    TableState: ("LSSVMClassifier", "LSSVMRegressor", NoneType),
}
"""For every state the estimators that have it, and their calibration data."""


def check_fit(model: KernelEstimator, fit: Fit[Any], stored: Model) -> None:
    """Raise a `ModelFileError` where the parts of a fit do not fit together."""
    task, state, k = fit.task, fit.state, fit.task.n_outputs
    classifier, regressor, data = _FAMILY[type(state)]
    wanted = classifier if isinstance(task, Classes) else regressor
    same = type(model).__name__ == wanted and type(fit.calibration) is data
    need(same, "the record is one of another estimator")
    need(fit.stored in FORMS, "how much is stored is not known")
    check_task(task, k)
    _check_resources(model)
    model._host()
    check_range(fit, 0, 2**63 - 1, "seed")
    need(fit.members and fit.used, "there is no member with a weight")
    for member in fit.members:
        check_range(member, 0, np.inf, "weight", "rounds")
        need(np.isnan(member.error) or member.error >= 0, "error is out of range")
    if isinstance(state, TableState):
        _check_table(fit, state, stored)
    else:
        _check_kernel_fit(model, fit, stored)
    if fit.calibrated is not None:
        check_calibration(fit.calibrated, task, fit.stored)


def _check_kernel_fit(model: KernelEstimator, fit: Fit[Any], stored: Model) -> None:
    """Check a fit whose members share one basis."""
    d, state, data, task = _count_features(stored, fit), fit.state, fit.calibration, fit.task
    need(fit.offset is None, "a model of one basis has an offset")
    units = task.decoding == "argmax" if isinstance(task, Classes) else task.scale is not None
    need(not units, "the targets are those of a table")
    if isinstance(model, KernelClassifier):
        model._check_coding()
    choice, k = model._kernel_choice(), task.n_outputs
    for member in fit.members:
        plain = (member.scaling, member.weight, member.in_leaves) == ("none", 1.0, False)
        need(plain, "a member is one of a model for tables")
    m = len(fit.members[0].expansion.coef)
    need(m, "coef has no rows")
    kernels = [member.expansion.kernel for member in fit.members]
    if isinstance(data, DualCalibrationData):
        kernels += [part.kernel for part in data.parts]
    for kernel in kernels:
        named = kernel.name == choice.name and not has_gamma(kernel)
        need(named, "a kernel is not the one that the parameters name")
        check_kernel(kernel, d)
    _check_outputs([np.arange(k) if m.outputs is None else m.outputs for m in fit.members], k)
    for member in fit.members:
        check_metric(member.metric, d)
        _check_rows("basis", member.expansion.basis, choice)
        served = k if member.outputs is None else len(member.outputs)
        _check_expansion(member.expansion, (m,) if choice.precomputed else (m, d), served)
        if choice.precomputed:
            check_range(member.expansion, 0, d - 1, "basis")
    check_shapes(state, threshold=(k,), relevance=(d,), support=(None,))
    _check_gamma(state, state.gamma, *[None] * min(np.ndim(state.gamma), 2))
    check_range(state, -1, np.inf, "support")
    no_support = isinstance(state, FixedState) and not len(state.support)
    need(len(state.support) == m or no_support, "support")
    check_range(state, 0, 2**63 - 1, "iterations")
    if isinstance(data, DualCalibrationData):
        _check_rows("X", data.X, choice)
        _check_dual(data, task, d)
    elif isinstance(data, FixedCalibrationData):
        _check_fixed(fit, data.sample, d)
    elif isinstance(data, GreedyCalibrationData):
        _check_greedy(fit, data, choice.precomputed)


def _check_expansion(one: Expansion, basis: tuple[int, ...], k: int) -> None:
    """Check the shapes of an expansion of k outputs."""
    check_shapes(one, basis=basis, coef=(basis[0], k), intercept=(k,), C=(k,))
    check_positive(one, "C")


def _check_resources(model: KernelEstimator) -> None:
    whole = model.n_jobs is None or type(model.n_jobs) is int
    need(whole and abs(model.n_jobs or 1) <= 4096, "n_jobs is not a number of threads")
    need(isinstance(model.verbose, int), "verbose is not a number")
    n_threads(model.n_jobs)


def _check_outputs(columns: list[IntArray], k: int) -> None:
    need(columns and all(one.ndim == 1 for one in columns), "the kernels serve no outputs")
    served = np.sort(np.concatenate(columns))
    need(np.array_equal(served, np.arange(k)), "the kernels do not serve every output once")


def _check_rows(name: str, X: Any, choice: Any) -> None:
    """Refuse what is no table of floats (row numbers for a precomputed kernel)."""
    sparse = is_sparse(X) and choice.accepts_sparse
    kind = "i" if choice.precomputed and name == "basis" else "f"
    fits = (isinstance(X, np.ndarray) or sparse) and X.dtype.kind == kind
    need(fits, f"{name} does not fit the kernel")


def _n_classes(task: Task) -> int:
    return task.n_classes if isinstance(task, Classes) else 0


def _check_dual(data: DualCalibrationData, task: Task, d: int) -> None:
    """Check the rows of a dual model, and the systems that were solved."""
    k, n, n_targets = task.n_outputs, data.X.shape[0], len(data.Y)
    need((data.labels is not None) == isinstance(task, Classes), "the labels do not fit")
    need((data.held_out is None) == (data.held_out_rows is None), "the scores do not fit")
    rows = n_targets if data.labels is None else len(data.labels)
    held = None if data.held_out is None else len(data.held_out)
    check_shapes(data, X=(n, d), Y=(n_targets, k), labels=(rows,), weight=(rows,))
    check_shapes(data, held_out=(held, k), held_out_rows=(held,))
    check_range(data, 0, _n_classes(task) - 1, "labels")
    check_range(data, 0, rows - 1, "held_out_rows")
    check_positive(data, "weight")
    if data.parts:
        _check_outputs([part.columns for part in data.parts], k)
        need(n == n_targets == rows, "the rows do not fit")
    for part in data.parts:
        check_positive(part, "C")
        check_shapes(part, rows=(None,))
        check_range(part, 0, n - 1, "rows")
        distinct = part.rows is None or (len(part.rows) and _distinct(part.rows.tolist()))
        need(distinct, "a system has no rows, or one twice")


def _check_moments(moments: Moments, m: int, q: int) -> None:
    check_shapes(moments, gram=(m, m), border=(m,), cross=(m, q), target=(q,), squares=(q,))
    check_shapes(moments, shift=(m,))
    check_range(moments, 0, np.inf, "weight", "n")


def _check_fixed(fit: FixedFit, sample: CalibrationSample | None, d: int) -> None:
    """Check moments, map and the sample of rows of a fixed-size model."""
    state, (m, k) = fit.state, fit.expansion.coef.shape
    task, classes = fit.task, isinstance(fit.task, Classes)
    need(state.threshold is not None or not classes, "the threshold is missing")
    count = _n_classes(task) if task.per_class else 1
    need(len(state.moments) in (0, count), "the moments do not fit")
    for moments in state.moments:
        _check_moments(moments, m, 0 if task.per_class else k)
    bars = fit.stored == "prediction" and not classes and state.loss == "squared"
    needed = state.is_posterior_of_model and (fit.stored == "all" or bars)
    need(state.moments or not needed, "the moments are missing")
    need(state.map is not None or not state.moments, "the map is missing")
    if (nystrom := state.map) is not None:
        check_shapes(nystrom, eigenvalues=(None,))
        check_shapes(nystrom, T=(m, len(nystrom.eigenvalues)))
    check_shapes(state, used=(m, k), centre=(k,))
    check_range(state, 0, np.inf, "n_prototypes", "peak_memory")
    if sample is not None:
        need((sample.labels is not None) == classes, "the labels of the sample do not fit")
        rows = sample.X is not None or (classes and sample.held_out is not None)
        need(rows, "the rows of the sample are missing")
        check_order(sample, "keys")
        n = len(sample.keys)
        check_shapes(sample, Y=(n, k), X=(n, d), held_out=(n, k), labels=(n,), weight=(n,))
        check_range(sample, 0, _n_classes(task) - 1, "labels")
        check_range(sample, 0, np.inf, "weight")


def _check_greedy(fit: GreedyFit, data: GreedyCalibrationData, precomputed: bool) -> None:
    """Check the runs of a greedy model, one for every output."""
    state, (m, k) = fit.state, fit.expansion.coef.shape
    runs = [state.paths, state.places, state.ridges]
    needed = k if fit.stored == "all" or state.paths else 0
    need(all(len(one) == needed for one in runs), "the runs do not serve every output")
    check_shapes(state, centre=(k,), gram=(m, m), C_scores=(None,))
    need(state.gram is not None or not (precomputed and needed), "the kernel matrix is missing")
    for path, places, ridges in zip(*runs, strict=True):
        s = len(path.support)
        check_shapes(path, support=(s,), coef=(s,), targets=(s,), offsets=(s,), factor=(s, s))
        check_shapes(path, objective=(None,), error=(None,), held_out=(None,))
        check_range(path, 0, np.inf, "support")
        need(places.shape == ridges.shape == (s,) and path.left_out is None, "a run does not fit")
        need(np.all((places >= 0) & (places < m)) and np.all(ridges >= 0), "a run does not fit")
    if (scores := data.held_out) is not None:
        n = len(scores.labels)
        check_shapes(scores, scores=(n, k), labels=(n,), weight=(n,))
        check_range(scores, 0, _n_classes(fit.task) - 1, "labels")
        check_range(scores, 0, np.inf, "weight")


# -- the model for tables ----------------------------------------------------------------------


def _check_table(fit: TableFit, state: TableState, stored: Model) -> None:
    """Check columns, members and held-out outputs of a model for tables."""
    task, k, tuning = fit.task, fit.task.n_outputs, fit.tuning
    _check_prepared(fit, state, stored)
    units = task.decoding == "argmax" if isinstance(task, Classes) else task.scale is not None
    need(units and tuning is not None, "the targets or the trials are missing")
    check_shapes(state, held_out=(None, k), importances=(len(fit.any_prepared.columns),))
    fits = fit.offset is None or fit.offset.shape in ((1,), (k,))
    need(fits, "offset has another shape")
    check_positive(state, "weight_scale")
    check_range(state, 0, 2**63 - 1, "n_rows")
    check_range(state, 1, np.inf, "leaf_size")
    rows, all_kept = len(state.held_out), fit.stored == "all"
    need(all_kept or not rows, "there are outputs that were not to be kept")
    check_shapes(state, learned=(None,))
    check_range(state, 0, rows - 1, "learned")
    for member in fit.members:
        ready = fit.prepared.get(member.scaling)
        d = check_metric(member.metric, -1 if ready is None else ready.n_features)
        need(member.outputs is None, "a member serves some outputs alone")
        if member.in_leaves:
            _check_local(member.local, d, k, rows, all_kept)
            continue
        one = member.expansion
        _check_expansion(one, (len(one.coef), d), k)
        need(type(one.kernel) in KERNEL_OF.values(), "a kernel is not one of tables")
        check_kernel(one.kernel, d)
        need(len(one.coef), "coef has no rows")
        exact = [m for m in fit.members if m.in_leaves and m.is_of(member)]
        alone = len(fit.members) == 1
        need(len(exact) == (0 if alone else 1), "prototypes have no leaves that they belong to")
        same = all(_same_arrays(one.metric.map, member.metric.map) for one in exact)
        need(same, "prototypes have another metric than their leaves")
        need(np.isfinite(member.error), "the error of prototypes is missing")
    _check_global(fit, state, k)
    if isinstance(fit.calibrated, Residuals) and fit.calibrated.nearby and fit.stored != "support":
        largest = max(fit.local_members, key=lambda member: member.weight)
        leaves = [leaf for one in largest.local.partitions for leaf in one.leaves]
        need(all(len(leaf.squares) for leaf in leaves), "the errors of the rows are missing")
    if isinstance(task, Classes) or fit.stored != "support":
        need(fit.calibrated is not None, "the calibration is missing")


def _same_arrays(one: FloatArray | None, other: FloatArray | None) -> bool:
    return one is other if one is None or other is None else np.array_equal(one, other)


def _check_global(fit: TableFit, state: TableState, k: int) -> None:
    """Check the moments of the one member that may be a global model of all rows."""
    globals_ = [member.expansion for member in fit.members if not member.in_leaves]
    need(len(globals_) <= 1, "there are several global members")
    if (moments := state.moments) is None:
        return
    need(fit.stored == "all" and globals_, "there are moments that were not to be kept")
    _check_moments(moments, len(globals_[0].coef), k)
    # Kernel values are from 0 to 1, and so is their mean.
    most = 1.001 * moments.weight
    sums = max(float(np.abs(moments.gram).max()), float(np.abs(moments.border).max()))
    need(most > 0.0 and sums <= most, "moments are not sums of kernel values")
    check_range(moments, -1.001, 1.001, "shift")


def _check_prepared(fit: TableFit, state: TableState, stored: Model) -> None:
    """Check the raw columns of a model for tables."""
    tables, names = list(fit.prepared.values()), stored.feature_names
    need(tables, "the columns are not known")
    need("none" not in fit.prepared, "columns are not scaled")
    for table in tables:
        check_prepared(table)
    columns = [[(c.name, c.kind) for c in one.columns] for one in tables]
    same = all(one == columns[0] for one in columns) and len({one.named for one in tables}) == 1
    need(same, "the preparations are of other columns")
    need(tables[0].named or not state.named, "columns without names have names")
    known = names is not None and [name for name, _ in columns[0]] == list(names)
    need(_count_columns(stored) == len(columns[0]), "the columns do not fit")
    need(known if state.named else names is None, "the names of columns do not fit")
    need(stored.preparation is None, "there are parts too many")


def _check_local(model: local.LocalModel, d: int, k: int, rows: int, all_kept: bool) -> None:
    """Check the leaves of a member."""
    check_range(model, 1, np.inf, "leaf_size")
    need(model.partitions, "a configuration has no leaves")
    for partition in model.partitions:
        _check_tree(partition.tree, len(partition.leaves), d)
        for leaf in partition.leaves:
            _check_leaf(leaf, d, k, all_kept)
        sizes = [(len(leaf.rows.X),) for leaf in partition.leaves]
        fits = not partition.rows or [part.shape for part in partition.rows] == sizes
        fits = fits and all(np.all((part >= 0) & (part < rows)) for part in partition.rows)
        need(fits, "the rows of the leaves do not fit")


def _check_tree(tree: local.Tree, p: int, d: int) -> None:
    """Check that every node but the root is below one earlier node, and every leaf below one."""
    q = p - 1
    check_shapes(tree, directions=(q, d), thresholds=(q,), children=(q, 2))
    below = np.sort(tree.children.ravel())
    whole = np.array_equal(below, [*range(-p, 0), *range(1, q)] if q else [])
    need(whole and tree.n_leaves == p, "the tree does not lead to every leaf once")
    inner = tree.children >= 0
    need(np.all((tree.children > np.arange(q)[:, None])[inner]), "the tree has a circle")


def _check_leaf(leaf: local.Leaf, d: int, k: int, with_targets: bool) -> None:
    """Check the rows of a leaf, which have targets only where they can be added and removed."""
    rows, n, n_kept = leaf.rows, len(leaf.rows.X), len(leaf.kept)
    t = n if with_targets else 0
    need(n, "a leaf has no rows")
    check_shapes(rows, X=(n, d), Y=(t, k), weight=(t,), labels=(t,))
    need(rows.Y.dtype == rows.weight.dtype == np.float64, "Y is not an array of float64")
    check_positive(rows, "weight")
    check_positive(leaf.setting, "C")
    check_range(leaf.setting, 0, np.inf, "gamma")
    need(leaf.setting.loss == "squared" or k == 1, "log-odds have one output")
    check_shapes(leaf.fit, coef=(n, k), intercept=(k,), left_out=(None, k))
    need(len(leaf.fit.left_out) in (0, t), "outputs and rows differ in number")
    check_shapes(leaf, kept=(n if n_kept else 0, k if n_kept else None))
    check_range(leaf, 0, np.inf, "error", "kept")


# -- time series -------------------------------------------------------------------------------


def check_series(model: NARX, fit: SeriesFit) -> None:
    """Raise a `ModelFileError` where the parts of a time-series model do not fit together."""
    inner, layout, plan = fit.regressor, fit.layout, fit.plan
    need(type(model.n_paths) is int, "n_paths is not a number")
    check_range(model, 2, MOST, "n_paths")
    check_range(fit, 1, MOST, "horizon")
    check_range(fit, 0, 2**63 - 1, "seed")
    e, width = _check_layout(layout)
    need(isinstance(inner, KernelEstimator), "the regressor is none")
    assert isinstance(inner, KernelEstimator)
    fitted = hasattr(inner, "record_") and isinstance(inner.record_.task, Numbers)
    fitted = fitted and inner.record_.task.n_outputs == 1
    need(fitted and inner.n_features_in_ == width, "the regressor does not fit")
    need(not hasattr(inner, "feature_names_in_"), "the regressor has named columns")
    need(not hasattr(inner, "preparation_"), "the regressor prepares columns")
    need(fit.stored in FORMS, "how much is stored is not known")
    need(len(fit.ends) == 1 or (fit.listed and fit.ends), "the ends of the series do not fit")
    for end in fit.ends:
        need((end.inputs is not None) == (e > 0), "the inputs of a series do not fit")
        check_shapes(end, values=(layout.history,), inputs=(layout.history, e))
    need(len(fit.calendars) in (0, len(fit.ends)), "the times of the series do not fit")
    for times in fit.calendars:
        check_range(times, -(2**58), 2**58, "last")
        check_range(times, 0, 2**58, "step")
        check_range(times, 0, 1200, "months")
        check_range(times, 0, 31, "day")
        rules = (times.step > 0, times.months > 0 and times.day > 0, times.weekdays)
        need(sum(rules) == 1, "the times of a series follow no rule")
    if plan is not None:
        need(_check_layout(plan.layout) == (e, width), "the plan has another layout")
        pairs = [(plan.layout.differencing, layout.differencing), (plan.horizon, fit.horizon)]
        pairs += [(plan.layout.lags, layout.lags), (sum(plan.sizes), len(plan.rows))]
        need(all(a == b for a, b in pairs), "the plan has other lags, differences or sizes")
        check_shapes(plan, rows=(None, width), targets=(len(plan.rows),))
        check_range(plan, 0, np.inf, "sizes")
        check_range(plan, 1, MOST, "n_origins")
    known = fit.stored == "support" or fit.calibration is not None or plan is not None
    need(known, "what intervals need is missing")
    if fit.calibration is not None:
        residuals, n = fit.calibration.residuals, len(fit.calibration.residuals.values)
        check_shapes(residuals, values=(n,), rows=(n, width), index=(n,))
        check_range(residuals, 0, np.inf, "index")
        steps = len(fit.calibration.mean_spread)
        check_shapes(fit.calibration, mean_spread=(steps,), ratios=(None, steps))
        need(n and steps and len(fit.calibration.ratios), "there are no residuals")


def _check_layout(layout: Layout) -> tuple[int, int]:
    """Check lags and units; return the columns of the inputs and the width of a row."""
    check_range(layout, 1, MOST, "lags")
    check_range(layout, 0, MOST, "exog_lags", "differencing")
    e = 0 if layout.inputs_mean is None else len(layout.inputs_mean)
    need((layout.inputs_mean is None) == (layout.inputs_scale is None), "the units do not fit")
    check_shapes(layout, inputs_mean=(e,), inputs_scale=(e,))
    check_positive(layout, "scale", "inputs_scale")
    need(layout.inputs_mean is None or e, "there are inputs of no columns")
    return e, layout.lags + e * (layout.exog_lags + 1)


Estimator: TypeAlias = KernelEstimator | NARX

OF_THE_MACHINE = frozenset({"device"})
"""Parameters that say something about a machine and are never stored."""

OF_THE_ROWS = frozenset({"cv", "selection"})
"""Parameters that are not stored where they are lists or arrays: they belong to training rows."""


@cache
def models() -> dict[str, Callable[..., Estimator]]:
    """Return the estimators that a file may hold, by name."""
    listed = {name: getattr(estimators, name) for name in estimators.__all__}
    return {name: kind for name, kind in listed.items() if issubclass(kind, Estimator)}


def is_storable(value: object) -> bool:
    """Say whether an object is an estimator that a file may hold."""
    return models().get(type(value).__name__) is type(value)


def check_storable(model: Any, keep: str) -> None:
    """Raise where a model is none of ours, not fitted, or has less than is to be kept."""
    from sklearn.utils.validation import check_is_fitted

    if not is_storable(model):
        raise InvalidInputError(
            f"{type(model).__name__} cannot be saved: give a fitted model of "
            f"{', '.join(sorted(models()))}."
        )
    check_is_fitted(model)
    if len(getattr(model, "classes_", ())) > MAX_CLASSES:
        raise InvalidInputError(
            f"A model file holds at most {MAX_CLASSES} classes; this model has "
            f"{len(model.classes_)}."
        )
    if keep not in FORMS:
        raise InvalidInputError(f"keep={keep!r} is not known: choose one of {', '.join(FORMS)}.")
    stored = model.record_.stored
    if FORMS.index(stored) < FORMS.index(keep):
        raise InvalidInputError(
            f"keep={keep!r} asks for more than this model has: it was loaded from a file that was "
            f"saved with keep={stored!r}. Give that, or save the original model."
        )


# -- writing -----------------------------------------------------------------------------------


def write_model(model: Estimator, keep: str) -> Model:
    """Return what a file holds of an estimator: its parameters and what is kept of its fit."""
    parameters, left_out = _parameters(model, keep)
    stored = Model(type(model).__name__, parameters, left_out)
    if not hasattr(model, "record_"):
        return stored
    if isinstance(model, NARX):
        series, inner = model.record_.stripped(keep), model.record_.regressor
        assert isinstance(inner, KernelEstimator)  # as `estimator` was
        regressor: Any = write_model(inner, keep)
        return replace(stored, record=replace(series, regressor=regressor))
    fit = model.record_
    _check_zones(fit)
    return replace(
        stored,
        n_features=int(model.n_features_in_),
        feature_names=getattr(model, "feature_names_in_", None),
        record=fit.stripped(keep, _calibration(model, fit.stripped(keep))),
    )


def _check_zones(fit: Fit[Any]) -> None:
    """Raise where dates have a time zone that no file can hold."""
    for column in fit.any_prepared.columns if fit.prepared else ():
        encoding = column.encoding
        if isinstance(encoding, DateEncoding) and not is_zone(encoding.zone):
            raise InvalidInputError(
                f"The dates of column {printable(column.name)} have the time zone "
                f"{printable(encoding.zone)}, which a model file cannot hold: give them a zone "
                "with a name, such as 'Europe/Brussels', or hours from UTC, such as 'UTC+01:00'."
            )


def _parameters(model: Estimator, keep: str) -> tuple[dict[str, Any], list[str]]:
    """Return the parameters, and the names of those that are not stored."""
    parameters: dict[str, Any] = {}
    left_out = []
    for name, value in sorted(model.get_params(deep=False).items()):
        rows = name in OF_THE_ROWS and isinstance(value, (list, tuple, np.ndarray))
        if name in OF_THE_MACHINE or rows:
            left_out += [name] if value is not None else []
            continue
        nested = is_storable(value) and isinstance(value, KernelEstimator)
        plain = write_model(value, keep) if nested else value
        try:
            encode(plain, schema())
        except NotStorable as error:
            if name in ("kernel", "estimator"):
                raise InvalidInputError(
                    f"{name}={printable(repr(value))} cannot be stored in a model file, which "
                    "never holds code: use one of the kernels and regressors of lssvm."
                ) from error
            left_out.append(name)
            continue
        parameters[name] = plain
        left_out += [f"{name}.checkpoint"] if getattr(value, "checkpoint", None) else []
    return parameters, left_out


def _calibration(model: KernelEstimator, stripped: Fit[Any]) -> Probabilities | Residuals | None:
    """Return what has to be computed now, because the rows that it rests on are not kept."""
    if stripped.calibration is model.record_.calibration:  # computed when first asked for
        return None
    with suppress(InvalidInputError, MemoryBudgetError):  # then there is none after loading either
        if isinstance(model, KernelClassifier) and hasattr(model, "predict_proba"):
            return model._probabilities()
        if isinstance(model, KernelRegressor) and stripped.stored == "prediction":
            return model._residuals()
    return None


def check_parameters(values: dict[str, Any]) -> None:
    """Refuse sparse matrices, which no parameter is: comparing them takes their shape."""
    waiting: list[Any] = [values]
    while waiting:
        value = waiting.pop()
        need(not isinstance(value, (csr_array, csr_matrix)), "a parameter is a sparse matrix")
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, (list, tuple)):
            waiting += value


# -- reading -----------------------------------------------------------------------------------


def read_model(stored: Model) -> Estimator:
    """Return the estimator that a file holds, after everything has been checked."""
    kind = models().get(stored.kind)
    if kind is None:
        raise ModelFileError("The file does not name one of the estimators of lssvm.")
    if not set(stored.parameters) <= set(inspect.signature(kind).parameters) - OF_THE_MACHINE:
        raise ModelFileError(f"The file holds parameters that {stored.kind} does not have.")
    check_parameters(stored.parameters)
    values = {n: read_model(v) if isinstance(v, Model) else v for n, v in stored.parameters.items()}
    model: Estimator = kind(**values)
    record = stored.record
    if isinstance(model, NARX) and isinstance(record, SeriesFit):
        inner: Any = record.regressor
        regressor: Any = read_model(inner)
        record = replace(record, regressor=regressor)
        check_series(model, record)
        model._publish(record)
    elif isinstance(model, KernelEstimator) and isinstance(record, Fit):
        if stored.preparation is not None:  # of formats 2 and 3
            ready = read_preparation(stored.preparation, stored.feature_names is not None)
            record = replace(record, prepared={"none": ready})
        check_fit(model, record, stored)
        columns = ("n_features_in_", stored.n_features), ("feature_names_in_", stored.feature_names)
        for name, value in columns:
            if value is not None:
                setattr(model, name, value)
        model._publish(record)
    else:
        need(record is None, "the record is one of another estimator")
    return model
