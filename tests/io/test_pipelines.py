"""Pipelines in model files: what was saved gives the same predictions, without pickle."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    StandardScaler,
)
from tests.fuzz.model_files import parts, sealed

from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, LSSVMClassifier, load, save
from lssvm._core.errors import InvalidInputError, ModelFileError
from lssvm.io import read_header
from lssvm.preparation import TablePreparation


def frame(n=80, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.uniform(20, 70, n),
            "pay": np.where(rng.uniform(size=n) < 0.1, np.nan, 1000 * rng.normal(size=n)),
            "job": rng.choice(["cook", "smith", "clerk"], n),
            "grade": rng.choice(["low", "mid", "high"], n),
            "kids": rng.integers(0, 4, n),
        }
    )
    y = np.where(table["age"] / 50 + (table["job"] == "smith") > 1.4, "yes", "no")
    return table, y


def again(model, folder, **options):
    save(model, folder / "m.lssvm", **options)
    return load(folder / "m.lssvm")


NUMBERS = {
    "standard": StandardScaler(),
    "standard_without_mean": StandardScaler(with_mean=False),
    "range": MinMaxScaler((-1, 2), clip=True),
    "quantiles": QuantileTransformer(n_quantiles=20, output_distribution="normal"),
    "imputed": make_pipeline(SimpleImputer(strategy="median", add_indicator=True)),
    "nothing": "passthrough",
}


@pytest.mark.filterwarnings("ignore::lssvm._core.errors.ScaleWarning")
@pytest.mark.parametrize("name", NUMBERS)
def test_scalers_give_the_same_bits(tmp_path, name):
    X, _ = frame()
    X = X[["age", "pay", "kids"]].to_numpy()
    X = X if name == "imputed" else np.nan_to_num(X)
    model = Pipeline([("first", NUMBERS[name]), ("model", LSSVR(gamma=0.1))]).fit(X, X[:, 0])
    found = again(model, tmp_path)
    new = frame(30, 1)[0][["age", "pay", "kids"]].to_numpy()
    new = new if name == "imputed" else np.nan_to_num(new)
    np.testing.assert_array_equal(found.predict(new), model.predict(new))
    assert type(found) is Pipeline and [step for step, _ in found.steps] == ["first", "model"]
    again(found, tmp_path)  # a loaded one can be saved


def mixed(**remainder):
    texts = make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(handle_unknown="ignore", drop="if_binary", sparse_output=False),
    )
    grades = OrdinalEncoder(
        categories=[["low", "mid", "high"]], handle_unknown="use_encoded_value", unknown_value=-1
    )
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    parts = [("texts", texts, ["job"]), ("grades", grades, ["grade"])]
    return ColumnTransformer([*parts, ("numbers", numbers, ["age", "pay"])], **remainder)


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("rest", ["drop", "passthrough", MinMaxScaler()])
def test_columns_of_every_kind(tmp_path, rest):
    X, y = frame()
    model = make_pipeline(mixed(remainder=rest), LSSVC(gamma=0.3)).fit(X, y)
    found = again(model, tmp_path)
    new = frame(40, 2)[0]
    new.loc[3, "job"], new.loc[4, "grade"] = "pilot", "none"
    np.testing.assert_array_equal(found.decision_function(new), model.decision_function(new))
    np.testing.assert_array_equal(found.predict_proba(new), model.predict_proba(new))
    np.testing.assert_array_equal(
        found[:-1].get_feature_names_out(), model[:-1].get_feature_names_out()
    )
    assert found.feature_names_in_.tolist() == list(X.columns)


def test_columns_by_position_slice_and_selector(tmp_path):
    X, y = frame()
    X = X.fillna(0.0)
    numbers = X[["age", "pay", "kids"]].to_numpy()
    parts = [("a", StandardScaler(), slice(0, 2)), ("b", MinMaxScaler(), [2])]
    model = make_pipeline(ColumnTransformer(parts), LSSVC(gamma=0.3)).fit(numbers, y)
    np.testing.assert_array_equal(
        again(model, tmp_path).decision_function(numbers), model.decision_function(numbers)
    )
    chosen = make_column_selector(dtype_include=np.number)
    parts = [("numbers", StandardScaler(), chosen), ("texts", OneHotEncoder(), ["job"])]
    model = make_pipeline(ColumnTransformer(parts), LSSVC(gamma=0.3)).fit(X, y)
    np.testing.assert_array_equal(
        again(model, tmp_path).decision_function(X), model.decision_function(X)
    )


@pytest.mark.parametrize("last", [LSSVC(gamma=0.3), FixedSizeLSSVC(20, C=1.0, gamma=0.1)])
def test_our_own_preparation(tmp_path, last):
    X, y = frame()
    model = make_pipeline(TablePreparation("quantiles"), last).fit(X, y)
    found = again(model, tmp_path, metrics={"accuracy": 0.9})
    new = frame(40, 2)[0]
    np.testing.assert_array_equal(found.decision_function(new), model.decision_function(new))
    header = read_header(tmp_path / "m.lssvm")
    assert header["class"] == type(last).__name__ and header["metrics"] == {"accuracy": 0.9}
    assert [step["kind"] for step in header["steps"]] == ["TablePreparation"]
    assert header["classes"] == ["no", "yes"]


def test_a_table_model_behind_a_scaler(tmp_path):
    X, y = frame()
    X = X[["age", "kids"]].to_numpy()
    model = make_pipeline(StandardScaler(), LSSVMClassifier("fast")).fit(X, y)
    np.testing.assert_array_equal(again(model, tmp_path).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("steps", "part"),
    [
        ([PCA(2), LSSVC()], "'pca' of the pipeline is a PCA.*holds ColumnTransformer"),
        ([StandardScaler(), LogisticRegression()], "ends in LogisticRegression"),
        ([OneHotEncoder(min_frequency=5), LSSVC()], "pools rare categories"),
    ],
)
def test_what_no_file_can_hold_is_said(tmp_path, steps, part):
    X = np.random.default_rng(0).integers(0, 3, (40, 3)).astype(float)
    model = make_pipeline(*steps).fit(X, X[:, 0] > 0)
    with pytest.raises(InvalidInputError, match=part):
        save(model, tmp_path / "m.lssvm")
    assert not (tmp_path / "m.lssvm").exists()


def test_a_transformer_that_is_not_on_the_list_is_never_made(tmp_path):
    X, y = frame()
    X = X[["age", "kids"]].to_numpy()
    save(make_pipeline(StandardScaler(), LSSVC(gamma=1.0)).fit(X, y), tmp_path / "m.lssvm")
    from lssvm.io.container import read_container, write_container

    found, arrays = read_container(tmp_path / "m.lssvm")
    for name, value in (("kind", "FunctionTransformer"), ("parameters", {"dict": [["func", "x"]]})):
        header = json.loads(json.dumps(found.header))
        header["model"]["fields"]["steps"][0]["fields"][name] = value
        kept = {k: v for k, v in header.items() if k in ("keep", "metrics", "fitted", "model")}
        write_container(
            tmp_path / "bad.lssvm", {**kept, "schema_sha256": header["schema_sha256"]}, arrays
        )
        with pytest.raises(ModelFileError, match=r"not known|other parameters"):
            load(tmp_path / "bad.lssvm")


@pytest.mark.parametrize("first", ["scaler", "columns", "nested"])
def test_a_pipeline_of_another_width_than_its_model_is_refused(tmp_path, first):
    X, y = frame()
    X = X[["age", "kids"]].to_numpy()
    steps = {
        "scaler": StandardScaler(),
        "columns": ColumnTransformer([("a", StandardScaler(), [0]), ("b", "passthrough", [1])]),
        "nested": make_pipeline("passthrough", make_pipeline(MinMaxScaler())),
    }
    narrow = make_pipeline(steps[first], LSSVC(gamma=1.0)).fit(X, y)
    wide = make_pipeline(StandardScaler(), LSSVC(gamma=1.0)).fit(np.hstack([X, X]), y)
    models = []
    for model in (narrow, wide):
        save(model, tmp_path / "m")
        models.append(parts((tmp_path / "m").read_bytes()))
    (header, arrays), (other, more) = models
    text = json.dumps(other["model"]["fields"]["model"])
    renamed = {f"wide {name}": array for name, array in more.items() if f'"{name}"' in text}
    for name in more:
        text = text.replace(f'"array": "{name}"', f'"array": "wide {name}"')
        text = text.replace(f'"texts": "{name}"', f'"texts": "wide {name}"')
        text = text.replace(f'"ends": "{name}"', f'"ends": "wide {name}"')
    header["model"]["fields"]["model"] = json.loads(text)
    text = json.dumps(header)
    used = {k: a for k, a in (arrays | renamed).items() if f': "{k}"' in text}
    (tmp_path / "m").write_bytes(sealed(header, used))
    with pytest.raises(ModelFileError, match="other features than its pipeline makes"):
        load(tmp_path / "m")


@pytest.mark.parametrize("place", ["step", "columns"])
def test_steps_that_do_not_fit_one_another_are_refused(tmp_path, place):
    X, y = frame()
    X = X[["age", "kids"]].to_numpy()
    columns = ColumnTransformer([("a", StandardScaler(), [0]), ("b", StandardScaler(), [1])])
    second = columns if place == "columns" else StandardScaler()
    save(make_pipeline(MinMaxScaler(), second, LSSVC(gamma=1.0)).fit(X, y), tmp_path / "m")
    header, arrays = parts((tmp_path / "m").read_bytes())
    steps = header["model"]["fields"]["steps"]
    step = steps[1]["fields"]["parts"][0] if place == "columns" else steps[0]
    fitted = dict(step["fields"]["fitted"]["dict"])
    fitted["n_features_in_"] = 3
    for value in fitted.values():
        if isinstance(value, dict):
            arrays[value["array"]] = np.ones(3)
    step["fields"]["fitted"]["dict"] = [list(pair) for pair in fitted.items()]
    (tmp_path / "m").write_bytes(sealed(header, arrays))
    with pytest.raises(ModelFileError, match="other columns than it is given"):
        load(tmp_path / "m")
