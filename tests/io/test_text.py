"""Models with a column of text: files, explanations, scans, ONNX."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.inspection import permutation_importance
from sklearn.pipeline import make_pipeline
from tests.preparation.texts import job_titles, reviews

from lssvm import LSSVR, FixedSizeLSSVR, LSSVMClassifier, LSSVMRegressor, load, save, scan
from lssvm._core.errors import InvalidInputError, ModelFileError
from lssvm.data.columns import read_table
from lssvm.data.preparation import PreparationSettings, learn
from lssvm.data.text import BUCKETS
from lssvm.io.models import check_prepared
from lssvm.preparation import TablePreparation

pytestmark = pytest.mark.filterwarnings("ignore::lssvm._core.errors.ColumnWarning")
pd = pytest.importorskip("pandas")

N = 240
PAY = np.random.default_rng(7).normal(size=N)
TEXTS, LIKING = reviews(N)
TITLES, EARNED = job_titles(2000, seed=3)
REMARKS = pd.DataFrame({"pay": PAY, "remark": TEXTS})
NEW = pd.DataFrame({"pay": [0.1, 0.2, 0.3, 0.4], "remark": ["a great day", None, "", "awful food"]})


@pytest.fixture(scope="module")
def regressor():
    return LSSVMRegressor(random_state=0, n_jobs=1).fit(REMARKS, LIKING + 0.3 * PAY)


def test_a_model_for_tables_predicts_the_same_from_a_file(regressor, tmp_path):
    save(regressor, tmp_path / "model.lssvm")
    again = load(tmp_path / "model.lssvm")
    np.testing.assert_array_equal(again.predict(NEW), regressor.predict(NEW))
    assert again.preparations_["standardised"].report_["kind"] == ["number", "text"]
    assert again.predict(NEW)[0] > again.predict(NEW)[3]


def test_classes_by_titles_that_keep_their_levels(tmp_path):
    labels = np.where(EARNED[:600] > 0.3, "more", "less")
    frame = pd.DataFrame({"title": TITLES[:600], "pay": np.resize(PAY, 600)})
    model = LSSVMClassifier(random_state=0, n_jobs=1).fit(frame, labels)
    save(model, tmp_path / "model.lssvm")
    again = load(tmp_path / "model.lssvm")
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    encoding = again.preparations_["standardised"].prepared_.columns[0].encoding
    assert encoding.level_encoding is not None and encoding.suffixes[0] == ":target=more"


def test_a_pipeline_predicts_the_same_from_a_file(tmp_path):
    model = make_pipeline(TablePreparation(), LSSVR(C=1.0, gamma=0.1)).fit(REMARKS, LIKING)
    save(model, tmp_path / "model.lssvm")
    np.testing.assert_array_equal(load(tmp_path / "model.lssvm").predict(NEW), model.predict(NEW))


def test_scans_have_the_features_of_frames(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.csv"
    REMARKS.assign(y=LIKING).to_csv(path, index=False)
    options = {"C": 1.0, "gamma": 0.1, "random_state": 0}
    model = FixedSizeLSSVR(60, **options).fit(scan(path, target="y"))
    column = model.preparation_.columns[1]
    assert column.kind == "text" and column.width == 16
    rows = TablePreparation(target="numbers").fit(REMARKS, LIKING)
    ours, others = model.preparation_.transform(NEW), rows.transform(NEW)
    np.testing.assert_allclose(ours[:, :16], others[:, :16], atol=1e-10)
    np.testing.assert_allclose(ours[:, 16], others[:, 16], rtol=0.02)  # by other folds
    save(model, tmp_path / "model.lssvm")
    again = load(tmp_path / "model.lssvm")
    np.testing.assert_array_equal(again.predict(scan(path)), model.predict(scan(path)))
    assert np.corrcoef(model.predict(scan(path)), LIKING)[0, 1] > 0.6


def test_explanations_and_importances_are_those_of_the_column(regressor):
    explanation = regressor.explain(NEW)
    assert list(explanation.feature_names) == ["pay", "remark"]
    assert explanation.values.shape == (4, 2)
    assert explanation.values[0, 1] > explanation.values[3, 1]
    assert regressor.feature_importances_.shape == (2,)
    found = permutation_importance(regressor, REMARKS, LIKING, n_repeats=2, random_state=0)
    assert found.importances_mean[1] > found.importances_mean[0]


def test_onnx_names_the_column_and_what_to_do(regressor, tmp_path):
    onnx = pytest.importorskip("lssvm.onnx")
    pytest.importorskip("onnx")
    with pytest.raises(InvalidInputError, match=r"'remark' is text, .*drop=\['remark'\]"):
        onnx.export(regressor, tmp_path / "model.onnx")
    model = LSSVMRegressor(drop=["remark"], random_state=0, n_jobs=1).fit(REMARKS, LIKING)
    onnx.export(model, tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").stat().st_size > 0


def changes(encoding):
    """Return what a hostile file may hold in place of an encoding."""
    v, q = encoding.projection.shape
    far = encoding.buckets.copy()
    far[-1] = BUCKETS
    below = encoding.buckets.copy()
    below[0] = -1
    twice = encoding.buckets.copy()
    twice[1] = twice[0]
    return {
        "far": {"buckets": far},
        "below": {"buckets": below},
        "twice": {"buckets": twice},
        "short": {"buckets": encoding.buckets[1:]},
        "flat": {"projection": encoding.projection[:, 0]},
        "narrow": {"projection": encoding.projection[:, 1:]},
        "tall": {"projection": np.zeros((v + 1, q))},
        "centre": {"centre": encoding.centre[:, None]},
        "idf": {"idf": -encoding.idf},
        "names": {"endings": (":text0",) * q},
        "nameless": {"endings": ()},
        "indicator": {"indicator": -1.0},
        "nothing": {
            "buckets": encoding.buckets[:0],
            "idf": encoding.idf[:0],
            "projection": encoding.projection[:0],
        },
    }


PREPARED = learn(read_table(REMARKS), LIKING, None, None, PreparationSettings()).prepared
CHANGES = changes(PREPARED.columns[1].encoding)


@pytest.mark.parametrize("change", CHANGES)
def test_records_that_do_not_fit_together_are_refused(change):
    check_prepared(PREPARED)
    number, text = PREPARED.columns
    damaged = replace(text, encoding=replace(text.encoding, **CHANGES[change]))
    with pytest.raises(ModelFileError, match="does not fit together"):
        check_prepared(replace(PREPARED, columns=(number, damaged)))


def test_kind_and_encoding_have_to_agree():
    number, text = PREPARED.columns
    for wrong in (replace(text, kind="category"), replace(number, kind="text")):
        with pytest.raises(ModelFileError, match="not of the kind that is encoded"):
            check_prepared(replace(PREPARED, columns=(wrong,)))


@pytest.mark.parametrize(
    "change", [{"projection": "float32"}, {"buckets": "float64"}, {"centre": "nan"}]
)
def test_files_with_other_types_are_refused(change, tmp_path):
    ((name, kind),) = change.items()
    column = PREPARED.columns[1]
    array = getattr(column.encoding, name)
    array = array * np.nan if kind == "nan" else array.astype(kind)
    damaged = replace(column, encoding=replace(column.encoding, **{name: array}))
    model = make_pipeline(TablePreparation(), LSSVR(C=1.0, gamma=0.1)).fit(REMARKS, LIKING)
    model[0].prepared_ = replace(PREPARED, columns=(PREPARED.columns[0], damaged))
    save(model, tmp_path / "model.lssvm")
    with pytest.raises(ModelFileError, match=f"cannot be loaded: .*{name}"):
        load(tmp_path / "model.lssvm")
