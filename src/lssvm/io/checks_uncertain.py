"""Whether what probabilities, error bars and intervals are made from fits the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm._core.namespace import is_sparse
from lssvm.estimators._uncertain_dual import DualMemory, DualPart
from lssvm.estimators._uncertain_fixed import Sample
from lssvm.io.need import floats, instance, is_number, need, positive, weights, wholes
from lssvm.kernels import Kernel, Precomputed
from lssvm.reductions import L0, Prune
from lssvm.uncertainty import Isotonic, OutOfFold, Probabilities, Residuals, Sigmoid
from lssvm.uncertainty.probabilities import by_problem


def check_scores(table: Any, k: int, classes: int) -> None:
    """Check out-of-fold scores, or that there are none."""
    if table is None:
        return
    instance(table, OutOfFold, "the scores")
    t = len(floats(table.scores, (None, k), "scores", finite=False))
    wholes(table.labels, (t,), "the labels of the scores", 0, classes)
    weights(table.weight, (t,), "the weights of the scores")


def check_sample(sample: Any, d: int, k: int, classes: int) -> None:
    """Check the sample of training rows of a fixed-size model, or that there is none."""
    if sample is None:
        return
    instance(sample, Sample, "the sample")
    keys = wholes(sample.keys, (None,), "the keys of the sample")
    need(keys.dtype == np.uint64 and np.all(keys[:-1] <= keys[1:]), "the keys are not in order")
    t = len(keys)
    floats(sample.Y, (t, k), "the targets of the sample")
    weights(sample.weight, (t,), "the weights of the sample")
    need(sample.X is not None or sample.held is not None, "the sample has neither rows nor scores")
    if sample.X is not None:
        floats(sample.X, (t, d), "the rows of the sample")
    if sample.held is not None:
        floats(sample.held, (t, k), "the scores of the sample", finite=False)
    need((sample.labels is None) == (classes == 0), "the labels of the sample do not fit")
    need(sample.X is not None or classes > 0, "the rows of the sample are missing")
    if sample.labels is not None:
        wholes(sample.labels, (t,), "the labels of the sample", 0, classes)
    need(type(sample.behind) is bool, "the sample does not fit")


def check_memory(model: Any, fitted: dict[str, Any], d: int, k: int, classes: int) -> None:
    """Check what a dual model remembers of its training rows."""
    memory = instance(fitted["_memory"], DualMemory, "_memory")
    n = len(floats(memory.Y, (None, k), "the targets"))
    instance(memory.loss, str, "the loss")
    known = memory.reduction in (None, "prune", "l0") or isinstance(memory.reduction, (Prune, L0))
    need(known, "the reduction is unknown")
    if memory.weight is not None:
        length = n if memory.parts else None
        weights(memory.weight, (length,), "the weights")
    if memory.held is not None or memory.held_rows is not None:
        t = len(floats(memory.held, (None, k), "the scores", finite=False))
        wholes(memory.held_rows, (t,), "the rows of the scores", 0, n)
    need(isinstance(memory.parts, list) and len(memory.parts) <= k, "the parts do not fit")
    columns: list[int] = []
    for part in memory.parts:
        columns += _check_part(model, part, n, d, k)
    need(not columns or sorted(columns) == list(range(k)), "the parts do not serve every output")
    if classes:
        labels = fitted.get("_labels")
        if labels is not None or memory.parts:
            wholes(labels, (n if memory.parts else None,), "the labels", 0, classes)
        check_scores(fitted.get("_early"), k, classes)


def _check_part(model: Any, part: Any, n: int, d: int, k: int) -> list[int]:
    instance(part, DualPart, "a part")
    system = part.system
    if part.rows is not None:
        wholes(part.rows, (None,), "the rows of a part", 0, n)
        need(len(np.unique(part.rows)) == len(part.rows) > 0, "a part has a row twice")
    for rows in (system.rows, system.basis):
        if is_sparse(rows):
            need(model._accepts_sparse() and rows.shape == (n, d), "the rows do not fit")
            floats(rows.data, None, "the rows")
        else:
            floats(rows, (n, d), "the rows")
    instance(system.kernel, Kernel, "the kernel of a part")
    need(not isinstance(system.kernel, Precomputed), "the kernel of a part is none of rows")
    gamma = getattr(system.kernel, "gamma", 1.0)
    need(np.ndim(gamma) == 0 or np.shape(gamma) == (d,), "gamma of a part does not fit")
    need(is_number(getattr(system.kernel, "degree", 1)), "the degree of a part is none")
    need(getattr(system.kernel, "degree", 1) <= 4096, "the degree of a part is too high")
    positive(system.C, 1, "the C of a part")
    if system.root_weight is not None:
        need(np.all(floats(system.root_weight, (n,), "weights") > 0), "a row has no weight")
    need(type(system.bias) is bool, "a part does not say whether it has a bias")
    found: list[int] = wholes(part.columns, (None,), "the outputs of a part", 0, k).tolist()
    return found


def check_cache(model: Any, fitted: dict[str, Any], keep: str, k: int, classes: int) -> None:
    """Check the maps to probabilities, or the residuals of intervals, that were made at saving."""
    cache = fitted.get("_cache", {})
    instance(cache, dict, "_cache")
    wanted = "probabilities" if classes else "residuals"
    need(set(cache) <= {wanted} and (keep != "all" or not cache), "_cache does not fit")
    if "probabilities" in cache:
        _check_probabilities(cache["probabilities"], model, fitted["code_"], keep)
    if "residuals" in cache:
        residuals = instance(cache["residuals"], Residuals, "the residuals")
        pairs = (residuals.values, residuals.weight)
        need(all(isinstance(p, list) and len(p) == k for p in pairs), "the residuals do not fit")
        for values, weight in zip(*pairs, strict=True):
            sorted_ = floats(values, (None,), "the residuals")
            need(np.all(sorted_[:-1] <= sorted_[1:]), "the residuals are not in order")
            need(weight is not None, "the residuals have no weights")
            weights(weight, (len(values),), "the weights of the residuals")


def _check_probabilities(found: Any, model: Any, code: Any, keep: str) -> None:
    instance(found, Probabilities, "the probabilities")
    need(np.array_equal(found.code.matrix, code.matrix), "the probabilities have another code")
    need(found.decoding == model.decoding, "the probabilities are decoded otherwise")
    wanted = code.n_problems if by_problem(code) else code.n_classes
    need(isinstance(found.maps, list) and len(found.maps) == wanted, "maps are missing")
    for map in found.maps:
        if isinstance(map, Sigmoid):
            need(is_number(map.slope) and map.slope >= 0, "a map is not usable")
            need(is_number(map.offset), "a map is not usable")
            continue
        instance(map, Isotonic, "a map")
        knots = floats(map.knots, (None,), "the knots of a map")
        values = floats(map.values, knots.shape, "the values of a map")
        need(len(knots) >= 1 and np.all(knots[:-1] < knots[1:]), "the knots are not in order")
        need(np.all((values >= 0) & (values <= 1)), "a map has values outside 0 and 1")
        need(np.all(values[:-1] <= values[1:]), "a map falls")
    threshold = floats(found.threshold, (None,), "the quantiles of the sets")
    need(np.all(threshold[:-1] <= threshold[1:]), "the quantiles of the sets are not in order")
    need(keep == "support" or len(threshold) > 0, "the quantiles of the sets are missing")
    need(found.weight is not None, "the quantiles of the sets have no weights")
    weights(found.weight, threshold.shape, "the weights of the sets")
