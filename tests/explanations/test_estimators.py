"""`explain` of every estimator, against all coalitions of its own predictions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from lssvm import (
    LSSVC,
    LSSVR,
    NARX,
    FixedSizeLSSVC,
    FixedSizeLSSVR,
    GreedyLSSVC,
    GreedyLSSVR,
    LSSVMClassifier,
    LSSVMRegressor,
    load,
    save,
    scan,
)
from lssvm._core.errors import InvalidInputError, MissingDependencyError
from lssvm.codes import Coding
from lssvm.explanations import Explanation
from lssvm.kernels import Matern
from lssvm.tuning import GridSearch
from tests.oracles.shapley import shapley

pytestmark = pytest.mark.usefixtures("without_nested_folds")

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(90, 4))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
THREE = np.array(["low", "middle", "high"])[np.digitize(Y, [-0.5, 0.5])]
TWO = np.where(Y > 0, "up", "down")
WEIGHT = RANDOM.uniform(0.2, 2.0, 90)
NEW, BACKGROUND = X[:3] + 0.1, X[40:46]

REGRESSORS = {
    "dual": lambda: LSSVR(10.0, gamma=0.3).fit(X, Y, sample_weight=WEIGHT),
    "dual laplacian, two targets": lambda: LSSVR(10.0, kernel="laplacian", gamma=0.3).fit(
        X, np.column_stack([Y, Y**2])
    ),
    "ard": lambda: LSSVR(10.0, gamma=[0.1, 0.5, 0.5, 0.0]).fit(X, Y),
    "linear": lambda: LSSVR(1.0, kernel="linear").fit(X, Y),
    "matern": lambda: LSSVR(10.0, kernel=Matern(), gamma=0.3).fit(X, Y),
    "function": lambda: LSSVR(10.0, kernel=lambda A, B: (1.0 + A @ B.T) ** 2).fit(X, Y),
    "without bias": lambda: LSSVR(10.0, gamma=0.3, fit_intercept=False).fit(X, Y),
    "fixed size": lambda: FixedSizeLSSVR(20, C=10.0, gamma=0.3).fit(X, Y),
    "greedy": lambda: GreedyLSSVR(gamma=0.3).fit(X, Y),
    "table": lambda: LSSVMRegressor("fast", kernel="rbf").fit(X, Y),
    "table with two targets": lambda: LSSVMRegressor("fast", kernel="rbf").fit(
        X, np.column_stack([Y, -Y])
    ),
    "table with a metric": lambda: LSSVMRegressor(kernel="laplacian").fit(X, X[:, 0] ** 2),
}
CLASSIFIERS = {
    "two classes": lambda: LSSVC(10.0, gamma=0.3).fit(X, TWO, sample_weight=WEIGHT),
    "three classes": lambda: LSSVC(10.0, gamma=0.3, kernel="laplacian").fit(X, THREE),
    "minimum output code": lambda: LSSVC(10.0, gamma=0.3, multiclass="moc").fit(X, THREE),
    "votes": lambda: LSSVC(10.0, gamma=0.3, multiclass="ovo").fit(X, THREE),
    "pairs, no votes": lambda: LSSVC(10.0, gamma=0.3, multiclass=Coding(decoding="loss")).fit(
        X, THREE
    ),
    "a kernel for each class": lambda: LSSVC(
        "cv", gamma="cv", multiclass="ova", cv=3, search=GridSearch(per_output=True)
    ).fit(X, THREE),
    "fixed size": lambda: FixedSizeLSSVC(20, C=10.0, gamma=0.3).fit(X, THREE),
    "greedy": lambda: GreedyLSSVC(gamma=0.3).fit(X, TWO),
    "table": lambda: LSSVMClassifier("fast", kernel="rbf").fit(X, THREE),
    "table with two classes": lambda: LSSVMClassifier("fast", kernel="rbf").fit(X, TWO),
}


def check(model, output):
    found = model.explain(NEW, BACKGROUND)
    truth = shapley(lambda rows: output(rows).reshape(len(rows), -1), NEW, BACKGROUND)
    assert isinstance(found, Explanation)
    said = output(NEW)
    assert found.values.shape == (3, 4, *said.shape[1:])
    assert found.base_values.shape == found.prediction.shape == said.shape
    np.testing.assert_allclose(found.values.reshape(truth.shape), truth, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.prediction, said, rtol=0, atol=1e-9)
    assert found.exact
    assert len(found.output_names) == (1 if said.ndim == 1 else said.shape[1])
    return found


@pytest.mark.parametrize("name", REGRESSORS)
def test_predictions_of_regressors(name):
    model = REGRESSORS[name]()
    check(model, model.predict)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_decision_values_of_classifiers(name):
    model = CLASSIFIERS[name]()
    found = check(model, model.decision_function)
    names = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
    assert found.output_names == tuple(names)


def test_without_a_background_rows_of_the_model_are_taken():
    model = LSSVR(10.0, gamma=0.3).fit(X, Y)
    found = model.explain(NEW)
    assert found.base_values[0] == pytest.approx(model.predict(X).mean())  # all 90 rows
    few = model.explain(NEW, n_background=5)
    np.testing.assert_allclose(few.prediction, model.predict(NEW), atol=1e-10)
    assert few.base_values[0] != found.base_values[0]
    again = model.explain(NEW, n_background=5, random_state=None)
    np.testing.assert_array_equal(few.values, again.values)
    other = model.explain(NEW, n_background=5, random_state=1)
    assert np.any(other.values != few.values)


@pytest.mark.parametrize("metric", ["auto", None])
def test_a_model_for_tables_has_its_own_background(metric):
    model = LSSVMRegressor("fast", metric=metric).fit(X, Y)
    found = model.explain(NEW)
    assert found.base_values[0] == pytest.approx(model.predict(X).mean(), abs=1e-6)
    np.testing.assert_allclose(found.prediction, model.predict(NEW), atol=1e-9)


@pytest.fixture(scope="module")
def warped():
    own = np.random.default_rng(1)
    rows = own.uniform(-1, 1, (1600, 3))
    target = 3 * np.tanh(6 * rows[:, 0]) + rows[:, 1] ** 3 + 0.05 * own.normal(size=1600)
    asked = {"kernel": "laplacian", "scaling": "standardised", "leaf_size": 400, "n_jobs": 1}
    model = LSSVMRegressor("fast", **asked).fit(rows, target)
    assert any(member.metric.warp is not None for member in model.record_.members)
    return model


def test_a_warp_is_explained(warped):
    new = np.array([[0.1, -0.5, 0.3], [-0.7, 0.9, 0.0]])
    background = np.random.default_rng(2).uniform(-1, 1, (5, 3))
    found = warped.explain(new, background)
    truth = shapley(lambda rows: warped.predict(rows)[:, None], new, background)
    np.testing.assert_allclose(found.values, truth[:, :, 0], atol=1e-9)


@pytest.mark.parametrize("keep", ["all", "prediction", "support"])
def test_a_warp_is_stored(keep, warped, tmp_path):
    save(warped, tmp_path / "model.lssvm", keep=keep)
    new = np.random.default_rng(3).uniform(-2, 2, (50, 3))
    loaded = load(tmp_path / "model.lssvm")
    np.testing.assert_array_equal(loaded.predict(new), warped.predict(new))
    assert loaded.configurations_["warped"] == warped.configurations_["warped"]


def test_a_model_for_tables_refuses_no_rows():
    for model, y in ((LSSVMRegressor("fast"), Y), (LSSVMClassifier("fast"), TWO)):
        with pytest.raises(InvalidInputError, match="no row to explain"):
            model.fit(X, y).explain(X[:0])


def test_float32_rows_are_explained_in_double_precision():
    model = LSSVR(10.0, gamma=0.3).fit(X.astype(np.float32), Y.astype(np.float32))
    found = model.explain(NEW.astype(np.float32), BACKGROUND.astype(np.float32))
    assert found.values.dtype == np.float64
    predicted = model.predict(NEW.astype(np.float32))
    np.testing.assert_allclose(found.prediction, predicted, atol=1e-4)


def test_sparse_rows():
    import scipy.sparse as sp

    dense = np.where(np.abs(X) > 0.5, X, 0.0)
    model = LSSVR(10.0, gamma=0.3).fit(sp.csr_matrix(dense), Y)
    found = model.explain(sp.csr_matrix(dense[:3]))
    twin = LSSVR(10.0, gamma=0.3).fit(dense, Y).explain(dense[:3])
    np.testing.assert_allclose(found.values, twin.values, atol=1e-10)


def test_a_precomputed_kernel_explains_by_training_rows():
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    model = LSSVR(10.0, kernel="precomputed").fit(K, Y)
    with pytest.raises(InvalidInputError, match="keeps no rows: give background"):
        model.explain(K[:2])
    found = model.explain(K[:2], K[10:14])
    steps = (K[:2] - K[10:14].mean(axis=0)) * model.dual_coef_[:, 0]
    np.testing.assert_allclose(found.values, steps, atol=1e-12)
    np.testing.assert_allclose(found.prediction, model.predict(K[:2]), atol=1e-10)


def test_frames_lend_their_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["age", "weight", "height", "pulse"])
    model = LSSVR(10.0, gamma=0.3).fit(frame, Y)
    found = model.explain(frame[:3], frame[40:46])
    assert found.feature_names == ("age", "weight", "height", "pulse")
    np.testing.assert_array_equal(found.data, X[:3])
    with pytest.raises(ValueError, match="feature names"):
        model.explain(frame[["age", "weight", "height"]])
    table = LSSVMRegressor("fast", kernel="rbf").fit(frame, Y)
    with pytest.raises(InvalidInputError, match=r"no columns .*pulse"):
        table.explain(frame[["age", "weight", "height"]])


def test_columns_of_a_table_are_explained_whatever_features_they_become():
    pd = pytest.importorskip("pandas")
    job = np.array(["cook", "smith", "pilot"])[RANDOM.integers(3, size=90)]
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(RANDOM.integers(400, size=90), unit="D")
    frame = pd.DataFrame({"a": X[:, 0], "job": job, "when": when, "same": 1.0})
    frame.loc[3, "a"] = np.nan
    target = np.where(np.isnan(frame["a"]), 0.0, frame["a"]) + 2.0 * (job == "cook")
    model = LSSVMRegressor("fast", kernel="laplacian", metric=None).fit(frame, target)
    rows, background = frame[:2], frame[20:25]
    found = model.explain(rows, background)
    assert found.feature_names == ("a", "job", "when", "same")
    assert found.exact
    assert not found.values[:, 3].any()  # the constant is left out
    assert found.data[0, 1] == job[0]
    np.testing.assert_allclose(found.prediction, model.predict(rows), atol=1e-10)
    # Coalitions of raw columns, by the model's own predictions.
    truth = np.array([_of_frame(model, rows.iloc[[i]], background) for i in range(2)])
    np.testing.assert_allclose(found.values[:, :3], truth, atol=1e-8)


def _of_frame(model, row, background):
    names = ["a", "job", "when"]

    def output(codes):  # columns of 0 and 1 say which background row or the row itself
        mixed = []
        for code in codes:
            one = background.iloc[[int(code[3])]].copy()
            for name, own in zip(names, code[:3], strict=True):
                if own:
                    one[name] = row[name].to_numpy()
            mixed.append(one)
        import pandas as pd

        return model.predict(pd.concat(mixed))[:, None]

    each = [
        shapley(output, [[1, 1, 1, b]], np.array([[0.0, 0.0, 0.0, b]]), [[0], [1], [2]])
        for b in range(len(background))
    ]
    return np.mean(each, axis=0)[0, :, 0]


def test_parts_are_sampled_with_errors_and_add_up():
    random = np.random.default_rng(1)
    A = random.normal(size=(2600, 9))
    b = A[:, 0] + A[:, 1] * A[:, 2]
    model = LSSVMRegressor(
        "fast", leaf_size=300, kernel="laplacian", scaling="standardised", metric=None
    ).fit(A, b)
    found = model.explain(A[:2], A[100:104], n_permutations=5)
    assert not found.exact
    assert np.all(found.errors[:, 0] > 0)
    np.testing.assert_allclose(found.prediction, model.predict(A[:2]), atol=1e-9)


def test_a_scan_puts_the_levels_of_a_column_together():
    pytest.importorskip("pandas")
    table = {"age": X[:, 0] * 10 + 40, "job": np.array(["cook", "smith", "pilot"] * 30)}
    model = FixedSizeLSSVR(20, C=10.0, gamma=0.3).fit(scan(table | {"y": Y}, target="y"))
    rows = {"age": np.array([30.0, 60.0]), "job": np.array(["smith", "cook"])}
    found = model.explain(rows)
    assert found.feature_names == ("age", "job")
    assert found.data.tolist() == [[30.0, "smith"], [60.0, "cook"]]
    np.testing.assert_allclose(found.prediction, model.predict(rows), atol=1e-10)


def test_groups_are_columns_of_their_own():
    model = LSSVR(10.0, gamma=0.3).fit(X, Y)
    found = model.explain(NEW, BACKGROUND, groups={"both": ["x1", 2]})
    assert found.feature_names == ("x0", "both", "x3")
    truth = shapley(lambda A: model.predict(A)[:, None], NEW, BACKGROUND, [[0], [1, 2], [3]])
    np.testing.assert_allclose(found.values, truth[..., 0], atol=1e-10)
    assert np.isnan(found.data[:, 1]).all()
    np.testing.assert_array_equal(found.data[:, 2], NEW[:, 3])


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"groups": {"a": ["x9"]}}, "names the column 'x9', which is not there"),
        ({"groups": {"a": [0], "b": [0]}}, "is in the groups 'a' and 'b'"),
        ({"groups": {"a": "x0"}}, "give a list of columns"),
        ({"n_background": 0}, "n_background=0 is not usable"),
        ({"n_permutations": 1}, "n_permutations=1 is not usable"),
        ({"random_state": -1}, "random_state=-1 is not usable"),
    ],
)
def test_wishes_that_cannot_be_met(wish, message):
    model = LSSVR().fit(X, Y)
    with pytest.raises(InvalidInputError, match=message):
        model.explain(NEW, **wish)


def test_a_model_that_is_not_fitted_says_so():
    from sklearn.exceptions import NotFittedError

    for model in (LSSVR(), LSSVMRegressor(), NARX()):
        with pytest.raises(NotFittedError):
            model.explain(X)


@pytest.mark.parametrize("differencing", [0, 1, 2])
@pytest.mark.parametrize("regressor", [LSSVR(10.0, gamma=0.1), Ridge()])
def test_series_are_explained_by_their_past(differencing, regressor):
    t = np.arange(160)
    y, inputs = np.sin(0.3 * t) + 0.1 * t, np.cos(0.1 * t)[:, None]
    model = NARX(regressor, lags=3, exog_lags=1, differencing=differencing)
    model.fit(y[:120], inputs[:120])
    found = model.explain(y[120:], inputs[120:])
    assert found.feature_names == ("y[t-1]", "y[t-2]", "y[t-3]", "x0[t]", "x0[t-1]")
    np.testing.assert_allclose(found.prediction, model.predict(y[120:], inputs[120:]), atol=1e-9)
    if differencing == 0:
        np.testing.assert_allclose(found.data[5, 0], y[124])
    np.testing.assert_allclose(found.data[5, 3:], [inputs[125, 0], inputs[124, 0]])
    together = model.explain(y[120:], inputs[120:], groups={"x0": ["x0[t]", "x0[t-1]"]})
    assert together.feature_names[-1] == "x0"


def test_a_linear_regressor_of_a_series_is_explained_by_its_slopes():
    y = np.cumsum(np.random.default_rng(0).normal(size=120))
    model = NARX(Ridge(), lags=3).fit(y[:100])
    found = model.explain(y[100:])
    rows = model.record_.layout.table(np_series(y))[0]
    steps = rows[-20:] - _background_mean(model)
    np.testing.assert_allclose(
        found.values, steps * model.estimator_.coef_ * model.record_.layout.scale, atol=1e-9
    )


def np_series(y):
    from lssvm.fitting.series import Series

    return Series(y, None)


def _background_mean(model):
    return model.record_.plan.rows.mean(axis=0)


@pytest.mark.parametrize("keep", ["all", "prediction", "support"])
def test_models_from_files_explain_alike(tmp_path, keep):
    for model in (LSSVC(10.0, gamma=0.3).fit(X, THREE), FixedSizeLSSVR(20, C=1.0).fit(X, Y)):
        path = tmp_path / "model.lssvm"
        save(model, path, keep=keep)
        again = load(path)
        one, two = model.explain(NEW), again.explain(NEW)
        np.testing.assert_allclose(two.values, one.values, atol=1e-12)


def test_the_explanation_of_some_rows_and_of_one_output():
    model = LSSVC(10.0, gamma=0.3, multiclass=Coding(decoding="loss")).fit(X, THREE)
    found = model.explain(NEW, BACKGROUND, interactions=True)
    assert len(found) == 3
    assert found[1].values.shape == (1, 4, 3)
    assert found[:2].interactions.shape == (2, 4, 4, 3)
    middle = found.output("middle")
    assert middle.values.shape == (3, 4)
    np.testing.assert_array_equal(middle.values, found.values[..., 2])
    np.testing.assert_array_equal(middle.interactions, found.interactions[..., 2])
    assert middle.importances.shape == (4,)
    with pytest.raises(InvalidInputError, match="choose one of high, low, middle"):
        found.output("none")
    with pytest.raises(InvalidInputError, match="has 3 outputs"):
        found.output(3)


def test_shap_is_named_where_it_is_missing(monkeypatch):
    import sys

    found = LSSVR().fit(X, Y).explain(NEW)
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(MissingDependencyError, match="pip install shap"):
        found.to_shap()


def test_an_explanation_for_shap(monkeypatch):
    import sys
    from types import SimpleNamespace

    stand_in = SimpleNamespace(Explanation=lambda **given: SimpleNamespace(**given))
    monkeypatch.setitem(sys.modules, "shap", stand_in)
    found = LSSVR().fit(X, Y).explain(NEW)
    given = found.to_shap()
    assert given.values is found.values
    assert given.feature_names == ["x0", "x1", "x2", "x3"]
    assert given.output_names is None


def test_a_table_that_is_read_in_blocks_is_explained_in_blocks():
    columns = {f"c{j}": X[:, j] for j in range(4)}
    model = LSSVMRegressor("fast", kernel="laplacian", metric=None).fit(columns, Y)
    whole = model.explain(columns, columns, n_background=10, interactions=True)
    read = model.explain(scan(columns), scan(columns), n_background=10, interactions=True)
    np.testing.assert_allclose(read.values, whole.values, atol=1e-12)
    np.testing.assert_allclose(read.interactions, whole.interactions, atol=1e-12)
    assert read.feature_names == whole.feature_names
