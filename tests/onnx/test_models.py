"""Every estimator, kernel, output code and type of label: onnxruntime answers as the model does."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx
import pytest
from scipy import sparse
from tests.looping import case
from tests.onnx.running import as_table, check_classifier, nodes, operators, run
from tests.outputs import raw_outputs

from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVC, GreedyLSSVR
from lssvm.codes import Coding
from lssvm.kernels import RBF, Matern, Polynomial
from lssvm.onnx import export, to_onnx
from lssvm.reductions import FixedSizeL0
from lssvm.tuning import GridSearch

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
NEW = 1.5 * rng.normal(size=(150, 3))
LATENT = X @ rng.normal(size=(3, 5)) + 0.5 * rng.normal(size=(80, 5))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]])

CLASSIFIERS = [LSSVC, FixedSizeLSSVC, GreedyLSSVC]
REGRESSORS = [LSSVR, FixedSizeLSSVR, GreedyLSSVR]
KERNELS = [
    {"kernel": "rbf", "gamma": 0.5},
    {"kernel": "rbf", "gamma": np.array([0.5, 0.0, 2.0])},
    {"kernel": "linear"},
    {"kernel": Polynomial(degree=3, coef0=0.5), "gamma": 0.3},
    {"kernel": Polynomial(degree=1, coef0=0.0), "gamma": 0.3},
    {"kernel": "exponential", "gamma": np.array([0.4, 1.0, 0.1])},
    {"kernel": "laplacian", "gamma": 0.4},
    {"kernel": "laplacian", "gamma": np.array([0.4, 1.0, 0.1])},
    {"kernel": Matern(nu=0.5), "gamma": 0.4},
    {"kernel": Matern(nu=1.5), "gamma": 0.4},
    {"kernel": Matern(nu=2.5), "gamma": np.array([0.4, 1.0, 0.1])},
    {"kernel": "nonstationary", "gamma": 0.4},
    {"kernel": "nonstationary", "gamma": np.array([0.4, 1.0, 0.1])},
    {"kernel": RBF(0.7)},
    {"kernel": Matern(0.7, 2.5)},
]


def classes(k):
    return np.argmax(LATENT[:, :k], axis=1)


def named(case):
    gamma = case.get("gamma", "")
    kernel = case["kernel"]
    name = kernel if isinstance(kernel, str) else repr(kernel)
    return f"{name}-{'ard' if np.ndim(gamma) else gamma}"


@pytest.mark.parametrize("estimator", REGRESSORS)
@pytest.mark.parametrize("kernel", KERNELS, ids=named)
def test_regressors_of_all_kernels(estimator, kernel):
    model = estimator(C=10.0, **kernel).fit(X, Y)
    found = run(model, NEW)
    assert list(found) == ["prediction"]
    np.testing.assert_allclose(found["prediction"], model.predict(NEW), rtol=0, atol=1e-9)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_classifiers_of_all_kernels(estimator):
    for kernel in KERNELS:
        with case(kernel):
            model = estimator(C=1.0, **kernel).fit(X, classes(2))
            check_classifier(model, NEW, run(model, NEW))


@pytest.mark.parametrize("estimator", CLASSIFIERS)
@pytest.mark.parametrize("code", ["ova", "ovo", "moc", "ecoc"])
def test_output_codes_and_calibration(estimator, code):
    for k, calibration in product((2, 3, 5), ("sigmoid", "isotonic", None)):
        with case(k, calibration):
            model = estimator(C=1.0, gamma=0.5, multiclass=Coding(code, calibration=calibration))
            model.fit(X, classes(k))
            check_classifier(model, NEW, run(model, NEW))


@pytest.mark.parametrize("estimator", CLASSIFIERS)
@pytest.mark.parametrize("decoding", ["hamming", "loss"])
@pytest.mark.parametrize("code", ["ovo", "ecoc"])
def test_decodings(estimator, decoding, code):
    model = estimator(C=1.0, gamma=0.5, multiclass=Coding(code, decoding=decoding)).fit(
        X, classes(4)
    )
    check_classifier(model, NEW, run(model, NEW))


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_a_given_code_of_two_classes_may_name_the_first_one_plus(estimator):
    model = estimator(C=1.0, gamma=0.5, multiclass=[[1], [-1]]).fit(X, classes(2))
    assert model.score(X, classes(2)) > 0.8
    check_classifier(model, NEW, run(model, NEW))


LABELS = {
    "integers": (np.array([7, -3, 4]), onnx.TensorProto.INT64),
    "small": (np.array([7, 3, 4], dtype=np.uint8), onnx.TensorProto.INT64),
    "strings": (np.array(["wine", "bière", ""]), onnx.TensorProto.STRING),
    "objects": (np.array(["a", "b", "c"], dtype=object), onnx.TensorProto.STRING),
    "numbers": (np.array([1.0, 3.0, 2.0]), onnx.TensorProto.DOUBLE),
    "booleans": (np.array([True, False]), onnx.TensorProto.BOOL),
}


@pytest.mark.parametrize("estimator", CLASSIFIERS)
@pytest.mark.parametrize("kind", LABELS)
def test_labels_keep_their_type(estimator, kind):
    names, expected = LABELS[kind]
    model = estimator(C=1.0, gamma=0.5).fit(X, names[classes(len(names))])
    found = run(model, NEW)
    check_classifier(model, NEW, found)
    assert to_onnx(model).graph.output[0].type.tensor_type.elem_type == expected


@pytest.mark.parametrize(
    "model",
    [
        FixedSizeLSSVC(20, C=1.0, gamma=0.5, multiclass=Coding(targets="fisher")),
        FixedSizeLSSVC(20, C="cv", gamma=0.5, multiclass=Coding(threshold="cv"), cv=3),
        FixedSizeLSSVC(40, C=1.0, gamma=0.5, reduction=FixedSizeL0("spfs", size=7), cv=3),
        FixedSizeLSSVC(20, C="cv", gamma=0.5, multiclass="ovo", cv=3),
        LSSVC(C=1.0, gamma=0.5, multiclass=Coding(targets="fisher")),
        LSSVC(C=1.0, gamma=0.5, reduction="prune", cv=3),
        LSSVC(C="cv", gamma="cv", multiclass="ovo", cv=3, search=GridSearch(per_output=True)),
        GreedyLSSVC(C=1.0, gamma=0.5, max_support=6, multiclass="ovo"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_options_of_the_fit(model):
    model.fit(X, classes(3))
    check_classifier(model, NEW, run(model, NEW))


@pytest.mark.parametrize("estimator", REGRESSORS)
def test_one_output_is_a_column(estimator):
    model = estimator(C=10.0, gamma=0.5).fit(X, Y[:, 0])
    found = run(model, NEW)["prediction"]
    assert found.shape == (len(NEW), 1)
    np.testing.assert_allclose(found, as_table(model.predict(NEW)), rtol=0, atol=1e-9)


@pytest.mark.parametrize("estimator", [LSSVR, FixedSizeLSSVR])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "matern"])
@pytest.mark.parametrize("y", [Y, Y[:, 0]], ids=["two", "one"])
def test_intervals(estimator, kernel, y):
    model = estimator(C=2.0, gamma=0.3, kernel=kernel).fit(X, y)
    found = run(model, NEW, interval=0.9)
    expected = model.predict_interval(NEW, coverage=0.9).reshape(len(NEW), -1, 2)
    assert list(found) == ["prediction", "lower", "upper"]
    np.testing.assert_allclose(found["prediction"], as_table(model.predict(NEW)), atol=1e-9)
    np.testing.assert_allclose(found["lower"], expected[:, :, 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found["upper"], expected[:, :, 1], rtol=1e-9, atol=1e-9)


def test_intervals_of_weighted_rows_and_outputs_of_their_own():
    weight = rng.uniform(0.5, 2.0, len(X))
    model = LSSVR(C="cv", gamma="cv", cv=3, search=GridSearch(per_output=True))
    model.fit(X, np.column_stack([Y, np.sign(X[:, 0]), Y[:, 0]]), sample_weight=weight)
    found = run(model, NEW, interval=0.8)
    expected = model.predict_interval(NEW, coverage=0.8)
    np.testing.assert_allclose(found["lower"], expected[:, :, 0], rtol=1e-9, atol=1e-9)


def test_outputs_with_kernels_of_their_own_come_in_their_order():
    model = LSSVR(C="cv", gamma="cv", cv=3, search=GridSearch(per_output=True))
    model.fit(X, np.column_stack([Y, np.sign(X[:, 0]), Y[:, 0]]))
    assert len(model.record_.members) > 1
    found = run(model, NEW)["prediction"]
    np.testing.assert_allclose(found, model.predict(NEW), rtol=0, atol=1e-9)


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("kernel", ["rbf", "matern"])
def test_any_number_of_rows(rows, kernel):
    model = LSSVC(C=1.0, gamma=0.5, kernel=kernel, multiclass="ovo").fit(X, classes(3))
    found = run(model, NEW[:rows])
    shapes = {name: value.shape for name, value in found.items()}
    assert shapes == {"label": (rows,), "scores": (rows, 3), "probabilities": (rows, 3)}
    if rows:
        check_classifier(model, NEW[:rows], found)


def test_sparse_training_rows():
    model = LSSVC(C=1.0, gamma=0.5).fit(sparse.csr_matrix(X), classes(2))
    check_classifier(model, NEW, run(model, NEW))


@pytest.mark.parametrize("kernel", ["rbf", "matern", "laplacian"])
def test_a_common_offset_costs_no_digits(kernel):
    model = LSSVR(C=10.0, gamma=0.5, kernel=kernel).fit(X + 1e4, Y)
    found = run(model, NEW + 1e4)["prediction"]
    np.testing.assert_allclose(found, model.predict(NEW + 1e4), rtol=0, atol=1e-6)


def test_exponents_that_a_product_would_spoil_come_from_differences():
    far = X * 1e6
    model = LSSVR(C=10.0, gamma=1.0).fit(far, Y)
    near = far + 0.3 * rng.normal(size=far.shape)
    proto = to_onnx(model)
    assert ("", "Scan") in operators(proto)
    exact = np.exp(-((near[:, None] - far[None]) ** 2).sum(axis=2))
    expected = exact @ model.dual_coef_ + model.intercept_
    np.testing.assert_allclose(run(model, near)["prediction"], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_single_precision(estimator):
    model = estimator(C=1.0, gamma=0.5, multiclass="ovo").fit(X, classes(3))
    found = run(model, NEW.astype(np.float32), dtype="float32")
    assert {found[name].dtype for name in ("scores", "probabilities")} == {np.dtype(np.float32)}
    sure = np.abs(raw_outputs(model, NEW)).min(axis=1) > 1e-4
    assert sure.mean() > 0.9
    check = {name: value[sure] for name, value in found.items()}
    check_classifier(model, NEW[sure], check, atol=1e-4)
    small, large = (to_onnx(model, dtype=kind).ByteSize() for kind in ("float32", "float64"))
    assert small < large


def test_a_model_fitted_in_single_precision_is_exported_in_double():
    model = LSSVC(C=1.0, gamma=0.5).fit(X.astype(np.float32), classes(2))
    found = run(model, NEW)
    np.testing.assert_allclose(found["scores"][:, 0], model.decision_function(NEW), atol=1e-5)


def test_probabilities_can_be_left_out():
    model = LSSVC(C=1.0, gamma=0.5).fit(X, classes(3))
    assert list(run(model, NEW, probabilities=False)) == ["label", "scores"]
    assert list(run(model, NEW, probabilities=True)) == ["label", "probabilities", "scores"]


def test_a_model_cut_short_has_no_probabilities():
    model = GreedyLSSVC(C=1.0, gamma=0.5).fit(X, classes(2)).truncate(5)
    found = run(model, NEW)
    assert list(found) == ["label", "scores"]
    assert found["label"].tolist() == model.predict(NEW).tolist()


def test_the_file_says_what_it_is(tmp_path):
    model = LSSVC(C=1.0, gamma=0.5).fit(X, np.array(["a", "b", "c"])[classes(3)])
    path = export(model, tmp_path / "model.onnx")
    proto = onnx.load(path)
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]
    assert proto.producer_name == "lssvm"
    assert "LSSVC" in proto.doc_string
    facts = {entry.key: entry.value for entry in proto.metadata_props}
    assert facts["estimator"] == "LSSVC"
    assert facts["classes"] == '["a", "b", "c"]'
    assert {(o.domain, o.version) for o in proto.opset_import} == {("", 18), ("ai.onnx.ml", 3)}
    assert proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "rows"


def test_the_size_follows_the_support_vectors():
    model = FixedSizeLSSVC(10, C=1.0, kernel="rbf", gamma=0.5).fit(X, classes(2))
    big = FixedSizeLSSVC(60, C=1.0, kernel="rbf", gamma=0.5).fit(X, classes(2))
    grown = to_onnx(big).ByteSize() - to_onnx(model).ByteSize()
    numbers = 50 * (3 + 3)  # features, coefficient, square, one
    assert 8 * numbers <= grown <= 8 * numbers + 100
    assert len(nodes(to_onnx(big).graph)) == len(nodes(to_onnx(model).graph))
