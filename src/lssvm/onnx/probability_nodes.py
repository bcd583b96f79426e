"""Calibrated probabilities of the classes, as ONNX operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm.codes import Code
from lssvm.onnx.graph import Graph, ModelGraph, loop_body
from lssvm.uncertainty import Isotonic, Probabilities, Sigmoid
from lssvm.uncertainty.probabilities import PAIR_FLOOR, TILT, by_problem


def add_probabilities(graph: Graph, found: Probabilities, raw: str, scores: str, index: str) -> str:
    """Add calibrated probabilities (n, n_classes), see `lssvm.uncertainty.Probabilities`.

    Parameters
    ----------
    graph : Graph
    found : Probabilities
    raw : str
        Outputs (n, n_problems).
    scores : str
        Class scores (n, n_classes); not read where each problem has two classes.
    index : str
        Class numbers (n,) that were decided.
    """
    code, K = found.code, found.code.n_classes
    if not by_problem(code):
        p = _calibrated(graph, found.maps, scores)
        p = graph.node("Div", p, graph.row_sums(p))
        return _agreeing(graph, p, index, K)
    pairs = _calibrated(graph, found.maps, raw)
    low, high = graph.real(PAIR_FLOOR), graph.real(1.0 - PAIR_FLOOR)
    pairs = graph.node("Min", graph.node("Max", pairs, low), high)  # (n, n_problems)
    rest = graph.node("Sub", graph.real(1.0), pairs)
    if K == 2:
        both = [rest, pairs] if code.matrix[1, 0] > 0 else [pairs, rest]
        return _agreeing(graph, graph.node("Concat", *both, axis=1), index, K)
    return _agreeing(graph, _coupled(graph, code, pairs, rest), index, K)


def _calibrated(graph: Graph, maps: list[Any], scores: str) -> str:
    """Add the maps of the columns of ``scores`` (n, k)."""
    if all(isinstance(one, Sigmoid) for one in maps):
        slope = graph.real([[one.slope for one in maps]])
        offset = graph.real([[one.offset for one in maps]])
        z = graph.node("Add", graph.node("Mul", scores, slope), offset)
        above = graph.node("Add", graph.node("Exp", graph.node("Neg", z)), graph.real(1.0))
        return graph.node("Div", graph.real(1.0), above)
    if len(maps) > 1:
        parts = [
            _calibrated(graph, [one], graph.columns(scores, [j])) for j, one in enumerate(maps)
        ]
        return graph.node("Concat", *parts, axis=1)
    (one,) = maps
    assert isinstance(one, Isotonic)
    if len(one.knots) == 1:
        return graph.node("Add", graph.zeros(scores, 1), graph.real(one.values[0]))
    width = np.maximum(np.diff(one.knots), np.finfo(graph.dtype).tiny)
    # The share of every piece that lies below a score, then the rise of the pieces so far.
    share = graph.node("Sub", scores, graph.real(one.knots[None, :-1]))
    share = graph.node("Div", share, graph.real(width[None, :]))
    share = graph.node("Min", graph.node("Max", share, graph.real(0.0)), graph.real(1.0))
    rise = graph.node("MatMul", share, graph.real(np.diff(one.values)[:, None]))
    return graph.node("Add", rise, graph.real(one.values[0]))


def _coupled(graph: Graph, code: Code, pairs: str, rest: str) -> str:
    """Add `couple_pairs`: the p that minimises p^T Q p with sum one, by elimination.

    (Q + e e^T) x = e has the solution x = p / constant, and its matrix is positive definite: no
    pivots are needed, and one `Scan` over the classes eliminates the systems of all rows at once.
    """
    K = code.n_classes
    place = {
        (int(np.argmax(column)), int(np.argmin(column))): j
        for j, column in enumerate(code.matrix.T)
    }
    k = code.n_problems
    # r (n, K, K): P(i of i and j); its entries are columns of pairs, rest and a zero.
    where = [
        2 * k if i == j else place[i, j] if (i, j) in place else k + place[j, i]
        for i in range(K)
        for j in range(K)
    ]
    entries = graph.node("Concat", pairs, rest, graph.zeros(pairs, 1), axis=1)
    r = graph.columns(entries, where)
    r = graph.node("Reshape", r, graph.integers([-1, K, K]))
    turned = graph.node("Transpose", r, perm=[0, 2, 1])
    squares = graph.node("ReduceSum", graph.node("Mul", turned, turned), graph.integers([2]))
    diagonal = graph.node("Mul", squares, graph.real(np.eye(K)[None]))  # keepdims: (n, K, 1)
    Q = graph.node("Sub", diagonal, graph.node("Mul", turned, r))  # [Wu2004], the second method
    A = graph.node("Add", Q, graph.real(np.ones((1, K, K))))
    right = graph.node("Add", graph.zeros(pairs, K, 1), graph.real(1.0))
    A = graph.node("Concat", A, right, axis=2)

    step = ModelGraph(graph.dtype, prefix="step/", taken=("A", "unit"))
    across, down = step.integers([2]), step.integers([1])
    wide = step.node("Reshape", "unit", step.integers([1, 1, K + 1]))  # one at the pivot
    tall = step.node("Gather", "unit", step.integers(np.arange(K)))
    tall = step.node("Reshape", tall, step.integers([1, K, 1]))
    row = step.node("ReduceSum", step.node("Mul", "A", tall), down)  # (n, 1, K + 1)
    pivot = step.node("ReduceSum", step.node("Mul", row, wide), across)  # (n, 1, 1)
    row = step.node("Div", row, pivot)
    column = step.node("ReduceSum", step.node("Mul", "A", wide), across)  # (n, K, 1)
    column = step.node("Sub", column, tall)
    new = step.node("Sub", "A", step.node("Mul", column, row))
    body = loop_body(step, ["A", "unit"], [new])
    (solved,) = graph.scan([A], [graph.real(np.eye(K, K + 1))], body)
    p = graph.node("Gather", solved, graph.integers(K), axis=2)
    p = graph.node("Max", p, graph.real(0.0))
    return graph.node("Div", p, graph.row_sums(p))


def _agreeing(graph: Graph, p: str, index: str, K: int) -> str:
    """Add `agree_with`: rows whose largest probability is not the decided class are projected."""
    decided = graph.node("Reshape", index, graph.integers([-1, 1]))
    own_place = graph.node("Equal", decided, graph.integers(np.arange(K)[None, :]))
    nothing = graph.real(0.0)
    own = graph.row_sums(graph.node("Where", own_place, p, nothing))
    others = graph.node("Where", own_place, graph.real(-1.0), p)
    largest, _ = graph.nodes_of(
        "TopK", others, graph.integers([K - 1]), n_outputs=2, axis=1, largest=1, sorted=1
    )
    sums = graph.node("Add", graph.node("CumSum", largest, graph.integers(1)), own)
    levels = graph.node("Div", sums, graph.real(np.arange(2, K + 1)[None, :]))
    level, _ = graph.nodes_of("TopK", levels, graph.integers([1]), n_outputs=2, axis=1)
    new = graph.node("Where", own_place, level, graph.node("Min", p, level))
    share = graph.node("Div", graph.real(1.0 - TILT), graph.row_sums(new))
    new = graph.node("Mul", new, share)
    tilt = graph.node("Where", own_place, graph.real(TILT), nothing)
    new = graph.node("Add", new, tilt)
    first = graph.node("ArgMax", p, axis=1, keepdims=1)
    return graph.node("Where", graph.node("Equal", first, decided), p, new)
