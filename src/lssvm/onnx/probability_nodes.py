"""Calibrated probabilities of the classes, as ONNX operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm.codes import Code
from lssvm.onnx.graph import ModelGraph, Tensor, loop_body
from lssvm.uncertainty import Isotonic, Probabilities, Sigmoid
from lssvm.uncertainty.probabilities import PAIR_FLOOR, TILT, by_problem


def add_probabilities(
    calibrated: Probabilities, raw: Tensor, scores: Tensor, index: Tensor
) -> Tensor:
    """Add calibrated probabilities (n, n_classes), see `lssvm.uncertainty.Probabilities`.

    Parameters
    ----------
    calibrated : Probabilities
    raw : Tensor
        Outputs (n, n_problems).
    scores : Tensor
        Class scores (n, n_classes); not read where each problem has two classes.
    index : Tensor
        Class numbers (n,) that were decided.
    """
    code, maps = calibrated.code, calibrated.maps
    if not by_problem(code):
        p = _calibrated(maps, scores)
        return _agreeing(p / p.sums(), index, code.n_classes)
    pairs = _calibrated(maps, raw).clipped(PAIR_FLOOR, 1.0 - PAIR_FLOOR)  # (n, n_problems)
    rest = 1.0 - pairs
    if code.n_classes > 2:
        return _agreeing(_coupled(code, pairs, rest), index, code.n_classes)
    both = [rest, pairs] if code.matrix[1, 0] > 0 else [pairs, rest]
    return _agreeing(raw.graph.concat(both), index, 2)


def _calibrated(maps: list[Any], scores: Tensor) -> Tensor:
    """Add the maps of the columns of ``scores`` (n, k)."""
    graph = scores.graph
    if all(isinstance(one, Sigmoid) for one in maps):
        slope, offset = ([[getattr(one, name) for one in maps]] for name in ("slope", "offset"))
        return 1.0 / (graph.node("Exp", -(scores * slope + offset)) + 1.0)
    if len(maps) > 1:
        return graph.concat([_calibrated([one], scores.columns([j])) for j, one in enumerate(maps)])
    (one,) = maps
    assert isinstance(one, Isotonic)
    lowest = float(one.values[0])
    if len(one.knots) == 1:
        return graph.zeros(scores, 1) + lowest
    width = np.maximum(np.diff(one.knots), np.finfo(graph.dtype).tiny)
    # The share of every piece that lies below a score, then the rise of the pieces so far.
    share = ((scores - one.knots[None, :-1]) / width[None, :]).clipped(0.0, 1.0)
    return share @ np.diff(one.values)[:, None] + lowest


def _coupled(code: Code, pairs: Tensor, rest: Tensor) -> Tensor:
    """Add `couple_pairs`: the p that minimises p^T Q p with sum one, by elimination.

    (Q + e e^T) x = e has the solution x = p / constant, and its matrix is positive definite: no
    pivots are needed, and one `Scan` over the classes eliminates the systems of all rows at once.
    """
    graph, K, k = pairs.graph, code.n_classes, code.n_problems
    place = {
        (int(np.argmax(column)), int(np.argmin(column))): j
        for j, column in enumerate(code.matrix.T)
    }
    # r (n, K, K): P(i of i and j); its entries are columns of pairs, rest and a zero.
    where = [
        2 * k if i == j else place[i, j] if (i, j) in place else k + place[j, i]
        for i in range(K)
        for j in range(K)
    ]
    entries = graph.concat([pairs, rest, graph.zeros(pairs, 1)])
    r = entries.columns(where).reshape(-1, K, K)
    turned = graph.node("Transpose", r, perm=[0, 2, 1])
    diagonal = (turned * turned).sums(2) * np.eye(K)[None]
    Q = diagonal - turned * r  # [Wu2004], the second method
    A = graph.concat([Q + np.ones((1, K, K)), graph.zeros(pairs, K, 1) + 1.0], axis=2)

    step = ModelGraph(graph.dtype, prefix="step/", taken=("A", "unit"))
    old, unit = step.tensor("A"), step.tensor("unit")  # one at the pivot
    wide = unit.reshape(1, 1, K + 1)
    tall = step.node("Gather", unit, step.integers(np.arange(K))).reshape(1, K, 1)
    row = (old * tall).sums(1)  # (n, 1, K + 1)
    row = row / (row * wide).sums(2)
    column = (old * wide).sums(2) - tall  # (n, K, 1)
    body = loop_body(step, ["A", "unit"], [old - column * row])
    (solved,) = graph.scan([A], [np.eye(K, K + 1)], body)
    p = graph.node("Max", graph.node("Gather", solved, graph.integers(K), axis=2), 0.0)
    return p / p.sums()


def _largest(values: Tensor, count: int, columns: int) -> Tensor:
    """Add the largest values of every row, in descending order."""
    graph = values.graph
    # One row more: versions of the runtime before 1.31 divide by the number of rows.
    padded = graph.node("Concat", values, np.zeros((1, columns)), axis=0)
    top, _ = graph.nodes_of(
        "TopK", padded, graph.integers([count]), n_outputs=2, axis=1, largest=1, sorted=1
    )
    return graph.node("Slice", top, *(graph.integers([i]) for i in (0, -1, 0)))


def _agreeing(p: Tensor, index: Tensor, K: int) -> Tensor:
    """Add `agree_with`: rows whose largest probability is not the decided class are projected."""
    node, integers = p.graph.node, p.graph.integers
    decided = index.reshape(-1, 1)
    own_place = node("Equal", decided, integers(np.arange(K)[None, :]))
    own = node("Where", own_place, p, 0.0).sums()
    others = node("Where", own_place, -1.0, p)
    largest = _largest(others, K - 1, K)
    levels = (node("CumSum", largest, integers(1)) + own) / np.arange(2, K + 1)[None, :]
    level = _largest(levels, 1, K - 1)
    new = node("Where", own_place, level, node("Min", p, level))
    new = new * ((1.0 - TILT) / new.sums()) + node("Where", own_place, TILT, 0.0)
    first = node("ArgMax", p, axis=1, keepdims=1)
    return node("Where", node("Equal", first, decided), p, new)
