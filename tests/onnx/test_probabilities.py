"""Decoding, calibration and coupling alone, on outputs that no fit would give."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from tests.onnx.running import run_proto

from lssvm.codes import Code, decode, one_vs_all, one_vs_one
from lssvm.onnx.graph import OPSET, ModelGraph, Value, element_type
from lssvm.onnx.models import add_class_scores, add_decision, add_probabilities
from lssvm.uncertainty import Isotonic, Probabilities, Sigmoid

rng = np.random.default_rng(0)
NOTHING = np.empty(0)


def answer(code, raw, found=None, decoding=None, index=None):
    """Return scores, class numbers and probabilities that a graph gives for raw outputs."""
    graph = ModelGraph(taken=["raw", "index"])
    given = graph.tensor("raw")
    scores, decided = add_decision(code, decoding, given)
    if index is not None:
        decided = graph.tensor("index")
    K, real = code.n_classes, element_type(np.float64)
    outputs = {
        "scores": Value(scores.name, real, (1 if K == 2 else K,)),
        "decided": Value(decided.name, element_type(np.int64), ()),
    }
    if found is not None:
        by_class = add_class_scores(code, decoding, given)
        p = add_probabilities(found, given, by_class, decided)
        outputs["p"] = Value(p.name, real, (K,))
    declared = [
        Value(graph.rename(value.name, name), value.kind, value.tail).info()
        for name, value in outputs.items()
    ]
    helper = onnx.helper
    inputs = [Value("raw", real, (code.n_problems,)).info()]
    feed = {"raw": raw}
    if index is not None:
        inputs.append(Value("index", element_type(np.int64), ()).info())
        feed["index"] = index
    proto = helper.make_model(
        helper.make_graph(graph.nodes, "test", inputs, declared, graph.initializers),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=8,
    )
    return run_proto(proto, feed)


def maps(n, slope):
    return [Sigmoid(slope * rng.uniform(0.5, 2.0), rng.normal()) for _ in range(n)]


@pytest.mark.parametrize("k", [3, 6, 15])
@pytest.mark.parametrize("slope", [0.5, 5.0, 500.0])
def test_coupled_pairs_up_to_certainty(k, slope):
    code = one_vs_one(k)
    raw = rng.normal(size=(200, code.n_problems))
    found = Probabilities(code, None, maps(code.n_problems, slope), NOTHING, NOTHING)
    given = answer(code, raw, found)
    decided = np.argmax(decode(code, raw), axis=1)
    assert given["decided"].tolist() == decided.tolist()
    np.testing.assert_allclose(given["p"], found.of(raw, decided), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "code", [one_vs_one(2), one_vs_one(4), one_vs_all(4)], ids=lambda code: code.name
)
def test_probabilities_that_contradict_the_decision_are_moved(code):
    raw = rng.normal(size=(100, code.n_problems))
    index = rng.integers(0, code.n_classes, len(raw))
    found = Probabilities(code, None, maps(code.n_problems, 2.0), NOTHING, NOTHING)
    given = answer(code, raw, found, index=index)
    expected = found.of(raw, index)
    np.testing.assert_allclose(given["p"], expected, rtol=0, atol=1e-9)
    assert np.argmax(given["p"], axis=1).tolist() == index.tolist()


@pytest.mark.parametrize(
    ("knots", "values"),
    [
        ([0.3], [0.7]),
        ([-1.0, 1.0], [0.2, 0.9]),
        ([-1.0, -0.5, -0.5 + 1e-13, 2.0], [0.1, 0.3, 0.6, 0.9]),
        ([-1.0, 0.0, 0.5], [0.4, 0.4, 0.4]),
    ],
)
def test_isotonic_maps(knots, values):
    code = one_vs_all(2)
    map = Isotonic(np.array(knots), np.array(values))
    found = Probabilities(code, None, [map], NOTHING, NOTHING)
    raw = np.concatenate([np.linspace(-3, 3, 101), knots])[:, None]
    index = (raw[:, 0] > 0).astype(np.intp)
    expected = found.of(raw, index)
    np.testing.assert_allclose(answer(code, raw, found)["p"], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e3])
def test_log_odds_against_the_other_classes(scale):
    code, raw = one_vs_all(5), scale * rng.normal(size=(100, 5))
    raw[:5, 1] = raw[:5, 0]
    found = Probabilities(code, "softmax", maps(5, 1.0), NOTHING, NOTHING, 1.3)
    index = np.argmax(raw, axis=1)
    given = answer(code, raw, found, "softmax", index=index)
    np.testing.assert_allclose(given["p"], found.of(raw, index), rtol=0, atol=1e-9)


def test_maps_of_both_kinds_side_by_side():
    code = one_vs_one(3)
    step = Isotonic(np.array([-1.0, 0.0, 1.0]), np.array([0.2, 0.3, 0.9]))
    mixed = [Sigmoid(2.0, 0.1), step, Sigmoid(1.0, -0.3)]
    found = Probabilities(code, None, mixed, NOTHING, NOTHING)
    raw = rng.normal(size=(50, 3))
    decided = np.argmax(decode(code, raw), axis=1)
    np.testing.assert_allclose(answer(code, raw, found)["p"], found.of(raw, decided), atol=1e-9)


@pytest.mark.parametrize("decoding", ["hamming", "loss"])
@pytest.mark.parametrize(
    "code",
    [one_vs_one(4), one_vs_all(4), Code([[1, 0, 1], [-1, 1, 0], [0, -1, -1], [-1, -1, 1]])],
    ids=lambda code: code.name,
)
def test_ties_are_broken_as_the_library_does(decoding, code):
    raw = rng.integers(-1, 2, size=(300, code.n_problems)).astype(float)  # votes and zeros
    given = answer(code, raw, decoding=decoding)
    scores = decode(code, raw, decoding)
    assert given["scores"].tolist() == scores.tolist()
    assert given["decided"].tolist() == np.argmax(scores, axis=1).tolist()
    top = np.sort(scores, axis=1)
    assert (top[:, -1] == top[:, -2]).mean() > 0.05  # there are ties


def test_a_score_of_zero_is_the_first_class():
    raw = np.array([[0.0], [-0.0], [1e-300], [-1e-300]])
    assert answer(one_vs_all(2), raw)["decided"].tolist() == [0, 0, 1, 0]
