"""A metric of the inputs: given, learned, stored, and the same wherever rows come from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR, load, save
from lssvm._core.errors import InvalidInputError
from lssvm.data import scan
from lssvm.estimators import opening as scan_opening
from lssvm.kernels import MetricKernel

MODELS: dict[str, Any] = {
    "LSSVC": lambda **more: LSSVC("cv", gamma="cv", cv=3, **more),
    "LSSVR": lambda **more: LSSVR("cv", gamma="cv", cv=3, **more),
    "FixedSizeLSSVC": lambda **more: FixedSizeLSSVC(20, cv=3, **more),
    "FixedSizeLSSVR": lambda **more: FixedSizeLSSVR(20, cv=3, **more),
}
rng = np.random.default_rng(5)
X = rng.normal(size=(120, 4))
NEW = rng.normal(size=(30, 4))
VALUES = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.05 * rng.normal(size=120)
SCALES = np.array([2.0, 1.0, 0.25, 0.5])
FULL = np.array([[2.0, 0.5, 0, 0], [0, 1.0, 0, 0.3], [0, 0, 0.25, 0], [0.1, 0, 0, 0.5]])


def target(name: str) -> Any:
    return (VALUES > 0).astype(int) if name.endswith("C") else VALUES


def outputs(model: Any, rows: Any) -> Any:
    classes = hasattr(model, "decision_function")
    return model.decision_function(rows) if classes else model.predict(rows)


def by_hand(rows: Any, A: Any) -> Any:
    return rows * A if A.ndim == 1 else rows @ A


@pytest.mark.parametrize("A", [SCALES, FULL], ids=["diagonal", "full"])
@pytest.mark.parametrize("name", list(MODELS))
def test_an_array_is_the_fit_to_mapped_inputs(name: str, A: Any) -> None:
    y = target(name)
    model = MODELS[name](kernel=MetricKernel("rbf", A)).fit(X, y)
    plain = MODELS[name]().fit(by_hand(X, A), y)
    np.testing.assert_allclose(outputs(model, NEW), outputs(plain, by_hand(NEW, A)), rtol=1e-9)
    assert model.C_ == plain.C_ and model.gamma_ == plain.gamma_
    np.testing.assert_allclose(model.metric_, A**2 if A.ndim == 1 else A @ A.T)
    np.testing.assert_allclose(model.support_vectors_, X[model.support_], atol=1e-9)
    assert model.score(X, y) == pytest.approx(plain.score(by_hand(X, A), y))
    if name.endswith("R"):
        ends = model.predict_interval(NEW), plain.predict_interval(by_hand(NEW, A))
    else:
        ends = model.predict_proba(NEW), plain.predict_proba(by_hand(NEW, A))
    np.testing.assert_allclose(*ends, rtol=1e-7)


@pytest.mark.parametrize("A", [SCALES, FULL], ids=["diagonal", "full"])
@pytest.mark.parametrize("name", ["FixedSizeLSSVC", "FixedSizeLSSVR"])
@pytest.mark.parametrize("size", [40, 1000])
def test_rows_that_are_read_in_blocks(
    name: str, A: Any, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_opening, "SAMPLE_ROWS", size)
    rows = np.tile(X, (12, 1)) + 0.01 * np.random.default_rng(0).normal(size=(1440, 4))
    y = np.tile(target(name), 12)
    use: dict[str, Any] = {"C": 10.0, "gamma": 0.3, "selection": rows[:20]}
    kind = {"FixedSizeLSSVC": FixedSizeLSSVC, "FixedSizeLSSVR": FixedSizeLSSVR}[name]
    model = kind(20, kernel=MetricKernel("rbf", A), **use).fit(scan(rows, target=y, prepare=False))
    use["selection"] = by_hand(rows[:20], A)
    plain = kind(20, **use).fit(scan(by_hand(rows, A), target=y, prepare=False))
    np.testing.assert_allclose(outputs(model, NEW), outputs(plain, by_hand(NEW, A)), rtol=1e-7)
    read = model.predict(scan(NEW))
    np.testing.assert_allclose(np.asarray(read), model.predict(NEW))
    model.partial_fit(scan(NEW, target=y[:30]))
    plain.partial_fit(scan(by_hand(NEW, A), target=y[:30]))
    np.testing.assert_allclose(outputs(model, NEW), outputs(plain, by_hand(NEW, A)), rtol=1e-6)


def test_rows_are_added_and_forgotten() -> None:
    model = FixedSizeLSSVR(20, kernel=MetricKernel("rbf", FULL), C=10.0, gamma=0.3).fit(
        X[:80], VALUES[:80]
    )
    before = model.predict(NEW)
    model.partial_fit(X[80:], VALUES[80:])
    assert np.abs(model.predict(NEW) - before).max() > 1e-4
    np.testing.assert_allclose(model.forget(X[80:], VALUES[80:]).predict(NEW), before, atol=1e-6)


def problem(n: int) -> tuple[Any, Any]:
    random = np.random.default_rng(1)
    rows = random.normal(size=(n, 12))
    return rows, np.sin(2 * rows[:, 0]) * rows[:, 1] + 0.05 * random.normal(size=n)


@pytest.mark.parametrize(
    ("kernel", "shape"), [("rbf", "diagonal"), ("rbf", "full"), ("laplacian", "diagonal")]
)
def test_irrelevant_columns(kernel: str, shape: str) -> None:
    rows, y = problem(700)
    train, test = slice(300), slice(300, None)
    plain = LSSVR("cv", gamma="cv", cv=3, kernel=kernel).fit(rows[train], y[train])
    model = LSSVR("cv", gamma="cv", cv=3, kernel=MetricKernel(kernel, shape))
    model.fit(rows[train], y[train])
    errors = [np.mean((m.predict(rows[test]) - y[test]) ** 2) for m in (plain, model)]
    assert errors[1] < 0.6 * errors[0]
    weights = model.metric_ if shape == "diagonal" else model.metric_.diagonal()
    assert weights[:2].min() > 3 * weights[2:].max()


def test_many_rows_and_classes() -> None:
    rows, y = problem(4000)
    labels, train, test = np.digitize(y, [-0.3, 0.3]), slice(3000), slice(3000, None)
    scores = [
        FixedSizeLSSVC(60, kernel=MetricKernel("rbf", m), cv=3)
        .fit(rows[train], labels[train])
        .score(rows[test], labels[test])
        for m in (None, "diagonal")
    ]
    assert scores[1] > scores[0] + 0.05


def test_a_full_metric_does_not_see_rotations() -> None:
    rows, y = problem(500)
    Q = np.linalg.qr(np.random.default_rng(2).normal(size=(12, 12)))[0]
    use: dict[str, Any] = {"C": 30.0, "gamma": 0.1, "kernel": MetricKernel("rbf", "full")}
    model = LSSVR(**use).fit(rows[:400], y[:400])
    turned = LSSVR(**use).fit(rows[:400] @ Q, y[:400])
    assert not np.allclose(model.metric_, np.eye(12), atol=0.1)
    np.testing.assert_allclose(turned.metric_, Q.T @ model.metric_ @ Q, atol=1e-6)
    np.testing.assert_allclose(turned.predict(rows[400:] @ Q), model.predict(rows[400:]), atol=1e-6)


def test_noise_has_no_metric() -> None:
    random = np.random.default_rng(3)
    model = LSSVR(kernel=MetricKernel("rbf", "full")).fit(
        random.normal(size=(150, 5)), random.normal(size=150)
    )
    np.testing.assert_array_equal(model.metric_, np.eye(5))


@pytest.mark.parametrize("keep", ["support", "prediction", "all"])
@pytest.mark.parametrize("A", [SCALES, FULL, "diagonal"], ids=["diagonal", "full", "learned"])
@pytest.mark.parametrize("name", list(MODELS))
def test_files(name: str, A: Any, keep: str, tmp_path: Any) -> None:
    model = (
        MODELS[name](kernel=MetricKernel("rbf", A))
        .set_params(C=10.0, gamma=0.3)
        .fit(X, target(name))
    )
    path = tmp_path / "model.lssvm"
    save(model, path, keep=keep)
    again = load(path)
    np.testing.assert_array_equal(outputs(again, NEW), outputs(model, NEW))
    np.testing.assert_array_equal(again.metric_, model.metric_)


@pytest.mark.parametrize("A", [SCALES, FULL], ids=["diagonal", "full"])
@pytest.mark.parametrize("name", list(MODELS))
def test_onnx(name: str, A: Any) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    from lssvm.onnx import to_onnx

    model = (
        MODELS[name](kernel=MetricKernel("rbf", A))
        .set_params(C=10.0, gamma=0.3)
        .fit(X, target(name))
    )
    regresses = name.endswith("R")
    proto = to_onnx(model, interval=0.9 if regresses else None)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    wanted = ["prediction", "lower"] if regresses else ["scores"]
    got = session.run(wanted, {"X": NEW})
    np.testing.assert_allclose(got[0][:, 0], outputs(model, NEW), atol=1e-8)
    if regresses:
        np.testing.assert_allclose(got[1][:, 0], model.predict_interval(NEW, 0.9)[:, 0], atol=1e-6)


@pytest.mark.parametrize("A", [SCALES, FULL], ids=["diagonal", "full"])
def test_explanations_are_of_the_inputs(A: Any) -> None:
    model = LSSVR(C=10.0, gamma=0.3, kernel=MetricKernel("rbf", A)).fit(X, VALUES)
    found = model.explain(NEW[:3])
    total = found.values.sum(axis=1) + found.base_values
    np.testing.assert_allclose(total, model.predict(NEW[:3]), atol=1e-6)
    np.testing.assert_array_equal(found.data, NEW[:3])


def test_sparse_rows() -> None:
    from scipy.sparse import csr_matrix

    model = LSSVR(kernel=MetricKernel("rbf", SCALES)).fit(csr_matrix(X), VALUES)
    plain = LSSVR(gamma=model.gamma_).fit(X * SCALES, VALUES)
    np.testing.assert_allclose(model.predict(csr_matrix(NEW)), plain.predict(NEW * SCALES))
    with pytest.raises(InvalidInputError, match="sparse rows dense"):
        LSSVR(kernel=MetricKernel("rbf", "full")).fit(csr_matrix(X), VALUES)


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"kernel": MetricKernel("rbf", "diagonal"), "gamma": "ard"}, "both scale the features"),
        ({"kernel": MetricKernel("precomputed", "full")}, "no gradients"),
        ({"kernel": MetricKernel(lambda X, Z: X @ Z.T, "full")}, "no gradients"),
        ({"kernel": MetricKernel("rbf", "round")}, "not known"),
        ({"kernel": MetricKernel("rbf", np.ones(3))}, "X has 4 features"),
        ({"kernel": MetricKernel("rbf", np.ones((4, 3)))}, "not usable"),
        ({"kernel": MetricKernel("rbf", np.zeros(4))}, "not usable"),
        ({"kernel": MetricKernel("rbf", np.array([1.0, np.nan, 1.0, 1.0]))}, "not usable"),
        ({"kernel": MetricKernel("rbf", {"a": 1})}, "not usable"),
    ],
)
def test_what_is_refused(more: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidInputError, match=match):
        LSSVR(**more).fit(X, VALUES)
