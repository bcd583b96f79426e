"""Pipelines of scikit-learn: by `export`, and by skl2onnx with our converters."""

from __future__ import annotations

import numpy as np
import onnx
import pandas as pd
import pytest
import skl2onnx
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import VotingRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from tests.onnx.running import as_table, operators, run, run_proto

import lssvm.onnx
from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVC, GreedyLSSVR
from lssvm._core.errors import InvalidInputError
from lssvm.codes import Coding
from lssvm.onnx import to_onnx

rng = np.random.default_rng(0)
X = 20.0 + 10.0 * rng.normal(size=(80, 3))
NEW = 20.0 + 15.0 * rng.normal(size=(100, 3))
LABELS = np.digitize(X[:, 0] - X[:, 1] + 5.0 * rng.normal(size=80), [-8.0, 8.0])
TWO = (LABELS > 0).astype(int)
CLASSIFIERS = [LSSVC, FixedSizeLSSVC, GreedyLSSVC]
REGRESSORS = [LSSVR, FixedSizeLSSVR, GreedyLSSVR]


def pipeline(last, y):
    return make_pipeline(StandardScaler(), last).fit(X, y)


def check(model, rows, found, atol=1e-9):
    assert found["label"].tolist() == model.predict(rows).tolist()
    scores = as_table(model.decision_function(rows))
    np.testing.assert_allclose(found["scores"], scores, rtol=0, atol=atol)
    expected = model.predict_proba(rows)
    np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=atol)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
@pytest.mark.parametrize("y", [TWO, LABELS], ids=["two", "three"])
def test_export_of_a_pipeline_has_all_outputs(estimator, y):
    model = pipeline(estimator(C=1.0, gamma=0.5), y)
    check(model, NEW, run(model, NEW))


@pytest.mark.parametrize("estimator", REGRESSORS)
def test_export_of_a_regression_pipeline(estimator):
    model = pipeline(estimator(C=10.0, gamma=0.5), X[:, :2] / 10.0)
    np.testing.assert_allclose(run(model, NEW)["prediction"], model.predict(NEW), atol=1e-9)


def test_nested_pipelines_searches_and_steps_that_do_nothing():
    inner = make_pipeline(MinMaxScaler(), "passthrough", LSSVC(C=1.0))
    search = GridSearchCV(make_pipeline(StandardScaler(), inner), {"pipeline__lssvc__C": [1, 10]})
    search.fit(X, TWO)
    check(search, NEW, run(search, NEW))


def test_a_pipeline_of_nothing_but_the_model():
    model = make_pipeline("passthrough", LSSVC(C=1.0)).fit(X, TWO)
    check(model, NEW, run(model, NEW))


def frame(rows):
    table = pd.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "scores": rows[:, 2]})
    table["word"] = np.array(["x", "y", "z"], dtype=object)[(rows[:, 2] % 3).astype(int)]
    return table


def mixed():
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer(
        (numbers, ["a", "b", "scores"]), (OneHotEncoder(handle_unknown="ignore"), ["word"])
    )
    table = frame(X)
    table.loc[::9, "a"] = np.nan
    return make_pipeline(columns, FixedSizeLSSVC(20, C=1.0, gamma=0.2)).fit(table, LABELS), table


def test_columns_with_names_words_and_missing_numbers():
    model, table = mixed()
    rows = frame(NEW)
    rows.loc[::4, "a"] = np.nan
    rows.loc[::5, "word"] = "unknown"
    proto = to_onnx(model, X=table[:2])
    feed = {name: rows[[name]].to_numpy(object if name == "word" else np.float64) for name in rows}
    found = run_proto(proto, feed)
    assert list(found) == ["label", "probabilities", "scores_"]
    check(model, rows, {name.rstrip("_"): value for name, value in found.items()})


def test_columns_with_names_need_some_rows():
    model, _ = mixed()
    with pytest.raises(InvalidInputError, match=r"skl2onnx could not convert.*X="):
        to_onnx(model)


def test_our_model_inside_another_one():
    model = VotingRegressor([("a", LSSVR(C=1.0)), ("b", FixedSizeLSSVR(10, C=1.0))])
    model.fit(X, X[:, 0] / 10.0)
    proto = to_onnx(model)
    (found,) = run_proto(proto, {"X": NEW}).values()
    np.testing.assert_allclose(found[:, 0], model.predict(NEW), rtol=0, atol=1e-9)


def test_our_classifier_inside_another_one():
    model = CalibratedClassifierCV(LSSVC(C=1.0, multiclass=Coding(calibration=None)), cv=3).fit(
        X, LABELS
    )
    found = run_proto(to_onnx(model), {"X": NEW})
    assert found["label"].tolist() == model.predict(NEW).tolist()
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(NEW), atol=1e-6)


def test_steps_that_skl2onnx_does_not_know():
    model = TransformedTargetRegressor(LSSVR(C=1.0), transformer=StandardScaler()).fit(X, X[:, 0])
    with pytest.raises(InvalidInputError, match="Use steps that skl2onnx supports"):
        to_onnx(model)


@pytest.mark.parametrize("option", [{"probabilities": True}, {"interval": 0.9}])
def test_options_of_our_models_alone(option):
    model = VotingRegressor([("a", LSSVR(C=1.0))]).fit(X, X[:, 0])
    with pytest.raises(InvalidInputError, match="not for VotingRegressor"):
        to_onnx(model, **option)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make_pipeline(StandardScaler(), SVC()), "not a model of this package"),
        (StandardScaler(), "not a model of this package"),
        ("model.lssvm", "not a model of this package"),
    ],
)
def test_models_without_one_of_ours_are_refused(model, message):
    with pytest.raises(InvalidInputError, match=message):
        to_onnx(model)


def test_rows_for_a_model_that_needs_none_are_refused():
    with pytest.raises(InvalidInputError, match="X= is for pipelines"):
        to_onnx(LSSVC(C=1.0).fit(X, TWO), X=X)


# -- skl2onnx itself -------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", CLASSIFIERS)
@pytest.mark.parametrize("y", [TWO, LABELS], ids=["two", "three"])
@pytest.mark.parametrize("raw", [False, True])
def test_skl2onnx_converts_classifiers(estimator, y, raw):
    model = pipeline(estimator(C=1.0, gamma=0.5, kernel="laplacian"), y)
    options = {"zipmap": False, "raw_scores": raw}
    proto = skl2onnx.to_onnx(model, X[:1], options={id(model.steps[-1][1]): options})
    assert {domain for domain, _ in operators(proto)} <= {"", "ai.onnx.ml"}
    found = run_proto(proto, {"X": NEW})
    assert list(found) == ["label", "probabilities"]
    assert found["label"].tolist() == model.predict(NEW).tolist()
    expected = model.predict_proba(NEW)
    if raw:
        scores = model.decision_function(NEW)
        expected = np.column_stack([-scores, scores]) if scores.ndim == 1 else scores
    np.testing.assert_allclose(found["probabilities"], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("estimator", REGRESSORS)
def test_skl2onnx_converts_regressors(estimator):
    model = pipeline(estimator(C=10.0, gamma=0.5), X[:, :2] / 10.0)
    found = run_proto(skl2onnx.to_onnx(model, X[:1]), {"X": NEW})["variable"]
    np.testing.assert_allclose(found, model.predict(NEW), rtol=0, atol=1e-9)


def test_without_calibration_the_second_output_holds_scores():
    model = pipeline(LSSVC(C=1.0, multiclass=Coding(calibration=None)), LABELS)
    proto = skl2onnx.to_onnx(model, X[:1], options={id(model): {"zipmap": False}})
    found = run_proto(proto, {"X": NEW})
    np.testing.assert_allclose(found["probabilities"], model.decision_function(NEW), atol=1e-9)


def test_single_precision_and_dictionaries_of_probabilities():
    model = pipeline(FixedSizeLSSVC(20, C=1.0, gamma=0.5), np.array(["a", "b", "c"])[LABELS])
    rows = NEW.astype(np.float32)
    found = run_proto(skl2onnx.to_onnx(model, X[:1].astype(np.float32)), {"X": rows})
    assert list(found) == ["output_label", "output_probability"]
    assert (found["output_label"] == model.predict(rows)).mean() > 0.98
    values = np.array(
        [[row[name] for name in model.classes_] for row in found["output_probability"]]
    )
    np.testing.assert_allclose(values, model.predict_proba(rows), atol=1e-4)


@pytest.mark.parametrize("options", [{"nocl": True}, {"output_class_labels": True}])
def test_other_options_of_classifiers(options):
    model = pipeline(LSSVC(C=1.0), np.array(["a", "b", "c"])[LABELS])
    options = {id(model.steps[-1][1]): {"zipmap": False, **options}}
    found = run_proto(skl2onnx.to_onnx(model, X[:1], options=options), {"X": NEW})
    labels = found["label"]
    if "class_labels" in found:
        assert found["class_labels"].tolist() == ["a", "b", "c"]
    else:
        labels = model.classes_[labels]
    assert labels.tolist() == model.predict(NEW).tolist()


@pytest.mark.parametrize("labels", [np.array([False, True]), np.array([1.0, 2.0])])
def test_labels_become_integers_as_skl2onnx_has_them(labels):
    model = pipeline(LSSVC(C=1.0), labels[TWO])
    proto = skl2onnx.to_onnx(model, X[:1], options={id(model): {"zipmap": False}})
    found = run_proto(proto, {"X": NEW})["label"]
    assert found.dtype == np.int64
    assert found.tolist() == model.predict(NEW).astype(int).tolist()


def test_labels_that_are_no_whole_numbers_are_refused():
    model = pipeline(LSSVC(C=1.0), np.array(["1", "2"])[TWO])
    model.steps[-1][1].classes_ = np.array([0.5, 1.5])
    with pytest.raises(InvalidInputError, match="not whole numbers"):
        skl2onnx.to_onnx(model, X[:1], options={id(model): {"zipmap": False}})


@pytest.mark.parametrize("opset", [13, 15])
def test_older_operators(opset):
    model = pipeline(LSSVC(C=1.0, multiclass="ovo"), LABELS)
    proto = skl2onnx.to_onnx(
        model,
        X[:1],
        options={id(model): {"zipmap": False}},
        target_opset={"": opset, "ai.onnx.ml": 2},
    )
    assert {o.version for o in proto.opset_import if not o.domain} == {opset}
    found = run_proto(proto, {"X": NEW})
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(NEW), atol=1e-9)


def test_operators_that_are_too_old_are_refused():
    model = pipeline(LSSVC(C=1.0), TWO)
    with pytest.raises(InvalidInputError, match="target_opset=12"):
        skl2onnx.to_onnx(model, X[:1], target_opset=12, options={id(model): {"zipmap": False}})


def test_registering_twice_changes_nothing():
    lssvm.onnx.register()
    lssvm.onnx.register()
    model = pipeline(LSSVC(C=1.0), TWO)
    proto = skl2onnx.to_onnx(model, X[:1].astype(np.float32))
    onnx.checker.check_model(proto)
    assert [output.name for output in proto.graph.output] == ["output_label", "output_probability"]
