"""The fixed-size model on rows that are read in blocks equals the one on arrays."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import lssvm.estimators.opening as scan_opening
from lssvm import FixedSizeLSSVC, FixedSizeLSSVR, scan
from lssvm._core.errors import InvalidInputError, MemoryBudgetError
from lssvm.codes import Coding
from lssvm.data import Block, Scan
from lssvm.kernels import RBF
from lssvm.reductions import FixedSizeL0
from lssvm.tuning import PathSearch, PositionFolds, PositionHoldout

N = 2500
rng = np.random.default_rng(0)
X = rng.standard_normal((N, 3))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(N)
label = np.array(["high", "low", "mid"])[np.digitize(y, [-0.5, 0.7])]
Z = X[::50]


@pytest.fixture
def small_sample(monkeypatch):
    """Let the sample be smaller than the data: the passes are taken over the stream."""
    monkeypatch.setattr(scan_opening, "SAMPLE_ROWS", 1000)


def write(folder, kind, target):
    """Write the rows as files of some kind and return what `scan` takes."""
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=target)
    if kind == "parquet":
        for i in range(3):
            part = pa.Table.from_pandas(frame[i * 900 : (i + 1) * 900], preserve_index=False)
            pq.write_table(part, folder / f"part{i}.parquet", row_group_size=250)
        return scan(folder / "*.parquet", target="y", prepare=False, batch_rows=177)
    if kind == "csv":
        frame.to_csv(folder / "rows.csv", index=False, float_format="%.17g")
        return scan(folder / "rows.csv", target="y", prepare=False)
    if kind == "arrow":
        frame.to_feather(folder / "rows.feather")
        return scan(folder, target="y", prepare=False)
    if kind == "npy":
        np.save(folder / "X.npy", X)
        np.save(folder / "y.npy", np.asarray(target))
        return scan(folder / "X.npy", target=folder / "y.npy", prepare=False)
    if kind == "libsvm":
        with open(folder / "rows.svm", "w") as file:
            for row, value in zip(X.tolist(), np.asarray(target).tolist(), strict=True):
                pairs = " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row))
                file.write(f"{value!r} {pairs}\n")
        return scan(folder / "rows.svm", prepare=False)
    return scan(frame, target="y", prepare=False)


def same(streamed, fitted):
    np.testing.assert_allclose(streamed.C_, fitted.C_, rtol=1e-12)
    assert streamed.gamma_ == fitted.gamma_
    scale = np.abs(fitted.dual_coef_).max()
    np.testing.assert_allclose(streamed.dual_coef_, fitted.dual_coef_, rtol=1e-8, atol=1e-8 * scale)
    np.testing.assert_allclose(streamed.intercept_, fitted.intercept_, rtol=1e-8, atol=1e-8)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow", "npy", "libsvm", "frame"])
def test_files_of_every_kind_give_the_model_of_the_arrays(kind, tmp_path, small_sample):
    data = write(tmp_path, kind, y)
    streamed = FixedSizeLSSVR(selection=Z, gamma=0.3).fit(data)
    same(streamed, FixedSizeLSSVR(selection=Z, gamma=0.3, cv=PositionFolds(10)).fit(X, y))
    assert streamed.score(data) == pytest.approx(streamed.score(X, y), rel=1e-10)
    np.testing.assert_allclose(streamed.predict(data), streamed.predict(X), rtol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"multiclass": "ovo"},
        {"multiclass": "ova"},
        {"multiclass": "ova", "class_weight": "balanced"},
        {"multiclass": Coding("ovo", targets="fisher"), "class_weight": "balanced"},
        {"multiclass": "moc", "class_weight": {"low": 3.0}},
        {"multiclass": "ova", "scoring": "balanced_accuracy"},
    ],
    ids=str,
)
def test_classes_are_tuned_on_a_stream_as_on_arrays(options, tmp_path, small_sample):
    data = write(tmp_path, "parquet", label)
    options = {"selection": Z, "gamma": 0.3, **options}
    streamed = FixedSizeLSSVC(cv=4, **options).fit(data)
    fitted = FixedSizeLSSVC(cv=PositionFolds(4), **options).fit(X, label)
    same(streamed, fitted)
    key = "mean_test_score"
    np.testing.assert_allclose(streamed.cv_results_[key], fitted.cv_results_[key], rtol=1e-8)
    assert streamed.score(data) == pytest.approx(fitted.score(X, label))
    assert (streamed.predict(data) == fitted.predict(X)).all()


def test_a_holdout_on_a_stream_is_that_on_arrays(tmp_path, small_sample):
    data = write(tmp_path, "parquet", y)
    streamed = FixedSizeLSSVR(selection=Z, gamma=0.3, cv=0.2).fit(data)
    same(streamed, FixedSizeLSSVR(selection=Z, gamma=0.3, cv=PositionHoldout(0.2)).fit(X, y))
    assert "split0_test_score" in streamed.cv_results_
    assert "split1_test_score" not in streamed.cv_results_


def test_weights_of_a_stream_are_those_of_arrays(small_sample):
    weight = rng.integers(0, 3, N).astype(float)
    table = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y, "w": weight}
    streamed = FixedSizeLSSVR(selection=Z, gamma=0.3, n_prototypes=50).fit(
        scan(table, target="y", weight="w", prepare=False)
    )
    fitted = FixedSizeLSSVR(selection=Z, gamma=0.3, n_prototypes=50, cv=PositionFolds(10))
    same(streamed, fitted.fit(X, y, sample_weight=weight))


def test_given_row_numbers_are_those_of_the_file():
    weight = np.ones(len(X))
    weight[:5] = 0.0
    chosen = np.array([40, 10, 20, 30])
    data = scan(X, target=y, weight=weight, prepare=False)
    model = FixedSizeLSSVR(C=1.0, gamma=0.3, selection=chosen).fit(data)
    np.testing.assert_array_equal(model.prototypes_, X[chosen])
    np.testing.assert_array_equal(model.support_, chosen)


def test_given_row_numbers_that_are_not_kept_are_refused(small_sample):
    model = FixedSizeLSSVR(C=1.0, gamma=0.3, selection=np.arange(0, 1200, 100))
    with pytest.raises(InvalidInputError, match=r"not among the 1000 rows.*shape \(m, d\)"):
        model.fit(scan(X, target=y, prepare=False))


def test_all_rows_in_the_sample_give_the_fit_of_the_arrays_with_tuned_gamma(tmp_path):
    data = write(tmp_path, "parquet", y)
    streamed = FixedSizeLSSVR(50).fit(data)
    same(streamed, FixedSizeLSSVR(50, cv=PositionFolds(10)).fit(X, y))
    assert streamed.support_.max() > 1000


def test_gamma_is_searched_on_the_sample_and_the_best_are_tried_on_all_rows(small_sample):
    model = FixedSizeLSSVR(40, random_state=3).fit(scan(X, target=y))
    tried = np.unique(model.cv_results_["param_gamma"])
    searched = np.unique([f"{g:.3g}" for g in model.sample_results_["param_gamma"]]).astype(float)
    assert len(tried) == 3 < len(searched)
    assert set(tried) <= set(searched)
    assert model.gamma_ in tried
    assert model.score(scan(X, target=y)) > 0.97
    again = FixedSizeLSSVR(40, random_state=3).fit(scan(X, target=y, batch_rows=333))
    assert (again.dual_coef_ == model.dual_coef_).all()  # to the last bit


@pytest.mark.parametrize(
    ("kind", "target", "passes"), [(FixedSizeLSSVR, y, 4), (FixedSizeLSSVC, label, 7)]
)
def test_a_fit_takes_as_many_passes_as_the_page_says(
    kind, target, passes, small_sample, monkeypatch
):
    read, blocks = [], Scan.blocks

    def counted(self, *given, **options):
        rows = 0
        for block in blocks(self, *given, **options):
            rows += len(block)
            yield block
        read.append(rows)

    monkeypatch.setattr(Scan, "blocks", counted)
    kind(40, random_state=0).fit(scan(X, target=target, prepare=False))
    assert read == [N] * passes


def test_the_number_of_prototypes_is_chosen_on_a_stream(small_sample):
    streamed = FixedSizeLSSVR("cv", selection=X[:400], gamma=0.3).fit(
        scan(X, target=y, prepare=False)
    )
    fitted = FixedSizeLSSVR("cv", selection=X[:400], gamma=0.3, cv=PositionFolds(10)).fit(X, y)
    assert streamed.n_prototypes_ == fitted.n_prototypes_
    same(streamed, fitted)


def test_several_outputs(small_sample):
    Y = np.column_stack([y, X[:, 0]])
    frame = pd.DataFrame(np.column_stack([X, Y]), columns=list("abcyz"))
    data = scan(frame, target=["y", "z"], prepare=False)
    streamed = FixedSizeLSSVR(selection=Z, gamma=0.3).fit(data)
    fitted = FixedSizeLSSVR(selection=Z, gamma=0.3, cv=PositionFolds(10)).fit(X, Y)
    same(streamed, fitted)
    assert streamed.score(data) == pytest.approx(fitted.score(X, Y))
    assert streamed.predict(data).shape == (N, 2)


def test_a_scorer_scores_as_many_candidates_as_the_budget_holds(small_sample):
    many = scan(np.tile(X, (12, 1)), target=np.tile(y, 12), prepare=False)
    model = FixedSizeLSSVR(selection=Z, gamma=0.3, scoring="neg_mean_absolute_error")
    with pytest.raises(MemoryBudgetError, match="scoring"):
        model.set_params(memory_budget="4 MB").fit(many)
    model.set_params(memory_budget="8 MB").fit(many)
    scores = model.cv_results_["mean_test_score"]
    assert 1 <= np.isfinite(scores).sum() < len(scores)
    assert np.isfinite(model.best_score_)
    fitted = FixedSizeLSSVR(selection=Z, gamma=0.3, scoring="neg_mean_absolute_error")
    fitted.set_params(cv=PositionFolds(10)).fit(np.tile(X, (12, 1)), np.tile(y, 12))
    assert model.best_score_ == pytest.approx(fitted.best_score_, rel=0.1)


@pytest.mark.parametrize("loss", ["huber", "absolute", "weighted"])
def test_robust_losses_on_a_stream(loss, small_sample):
    spoiled = np.where(np.arange(N) % 10 == 0, y + 20.0, y)
    options = {"selection": Z, "C": 1.0, "gamma": 0.3, "loss": loss}
    streamed = FixedSizeLSSVR(**options).fit(scan(X, target=spoiled, prepare=False))
    fitted = FixedSizeLSSVR(**options).fit(X, spoiled)
    assert streamed.n_iter_ > 1
    close = np.abs(streamed.predict(X) - fitted.predict(X)).mean()
    plain = FixedSizeLSSVR(selection=Z, C=1.0, gamma=0.3).fit(X, spoiled)
    assert close < 0.02 * np.abs(plain.predict(X) - fitted.predict(X)).mean()


def test_passes_are_reported(capsys, small_sample):
    FixedSizeLSSVR(selection=Z, C=1.0, gamma=0.3, verbose=2).fit(scan(X, target=y))
    assert "lssvm: pass, 2,500 rows read" in capsys.readouterr().err


def test_a_stopped_search_on_a_stream_is_continued(tmp_path, small_sample):
    search = PathSearch(checkpoint=tmp_path / "c.jsonl")
    options = {"selection": Z, "random_state": 0, "search": search}
    data = scan(X, target=y, prepare=False)
    whole = FixedSizeLSSVR(selection=Z, random_state=0).fit(data)
    first = FixedSizeLSSVR(**options).fit(data)
    again = FixedSizeLSSVR(**options).fit(data)
    for model in (first, again):
        assert (model.dual_coef_ == whole.dual_coef_).all()


def test_a_fitted_model_is_pickled_and_cloned(tmp_path):
    frame_with_text().to_parquet(tmp_path / "rows.parquet")
    data = scan(tmp_path / "rows.parquet", target="y")
    model = FixedSizeLSSVR(20, C=1.0).fit(data)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(data) == model.predict(data)).all()
    assert not clone(model).__sklearn_is_fitted__()


# -- preparation ------------------------------------------------------------------------------


def test_standardising_is_that_of_scikit_learn(small_sample):
    wide = X * [1.0, 100.0, 0.01] + 5.0
    streamed = FixedSizeLSSVR(selection=Z, gamma="scale").fit(scan(wide, target=y))
    assert streamed.gamma_ == pytest.approx(1 / 3, rel=1e-9)
    scaler = StandardScaler().fit(wide[_sample_positions(streamed)])
    fitted = FixedSizeLSSVR(selection=Z, gamma=streamed.gamma_, cv=PositionFolds(10))
    fitted.fit(scaler.transform(wide), y)
    np.testing.assert_allclose(
        streamed.predict(wide), fitted.predict(scaler.transform(wide)), rtol=1e-6, atol=1e-8
    )


def frame_with_text():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["city"] = np.array(["Ghent", "Leuven", "Mons"])[rng.integers(0, 3, N)]
    frame["y"] = y + 2.0 * (frame["city"] == "Mons")
    return frame


def test_raw_rows_of_any_kind_are_predicted(tmp_path, small_sample):
    frame = frame_with_text()
    frame.to_parquet(tmp_path / "rows.parquet")
    data = scan(tmp_path / "rows.parquet", target="y")
    model = FixedSizeLSSVR(60).fit(data)
    assert model.score(data) > 0.97
    expected = model.predict(data)
    raw = frame.drop(columns="y")
    for rows in (raw, raw[["city", "c", "b", "a"]], frame, pa.Table.from_pandas(raw), scan(raw)):
        np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-8)
    categorical = raw.assign(city=raw["city"].astype("category"))
    np.testing.assert_allclose(model.predict(categorical), expected, rtol=1e-8)
    np.testing.assert_allclose(model.predict(raw.to_numpy(object)), expected, rtol=1e-8)
    assert model.n_features_in_ == 4
    assert model.prototypes_.shape[1] == 6
    assert list(model.feature_names_in_) == ["a", "b", "c", "city"]


def test_columns_without_names_are_counted(tmp_path, small_sample):
    model = FixedSizeLSSVR(selection=Z, C=10.0, gamma=0.3).fit(scan(X * 100.0, target=y))
    assert not hasattr(model, "feature_names_in_")
    frame = pd.DataFrame(X * 100.0, columns=["a", "b", "c"])
    frame.to_parquet(tmp_path / "rows.parquet")
    expected = model.predict(X * 100.0)
    for rows in (frame, scan(tmp_path / "rows.parquet"), scan(X * 100.0)):
        np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-8)
    with pytest.raises(InvalidInputError, match="text"):
        model.predict(scan(frame.assign(b="word")))


def test_missing_values_are_refused_or_filled(tmp_path):
    frame = frame_with_text()
    frame.loc[1700, "b"] = np.nan
    frame.loc[1800, "city"] = None
    frame.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InvalidInputError, match=r"'b'.*row 1700 of .*rows\.parquet"):
        data = scan(tmp_path / "rows.parquet", target="y", missing="refuse")
        FixedSizeLSSVR(20, C=1.0).fit(data)
    data = scan(tmp_path / "rows.parquet", target="y")
    model = FixedSizeLSSVR(20, C=1.0).fit(data)
    assert np.isfinite(model.predict(data)).all()
    assert "b=(missing)" in model.preparation_.feature_names


# -- what else a fixed-size model does ------------------------------------------------------


@pytest.mark.parametrize("reduction", ["spfs", "ssd"])
def test_a_streamed_model_is_reduced(reduction, small_sample):
    options = {"C": 10.0, "gamma": 0.3, "reduction": FixedSizeL0(reduction, size=15)}
    data = scan(X, target=y, prepare=False)
    model = FixedSizeLSSVR(60, **options).fit(data)
    assert len(model.support_vectors_) == 15
    assert (X[model.support_] == model.support_vectors_).all()
    assert model.score(data) > 0.5
    if reduction == "spfs":
        rows = model.selection_.prototypes(X[_sample_positions(model)])
        fitted = FixedSizeLSSVR(selection=rows, cv=PositionFolds(10), **options).fit(X, y)
        same(model, fitted)


def _sample_positions(model):
    return scan(X, target=y).sample(scan_opening.SAMPLE_ROWS, seed=model.record_.seed).positions


def test_probabilities_and_error_bars_from_a_stream(small_sample):
    data = scan(X, target=label, prepare=False)
    model = FixedSizeLSSVC(selection=Z, gamma=0.3).fit(data)
    fitted = FixedSizeLSSVC(selection=Z, gamma=0.3, cv=PositionFolds(10)).fit(X, label)
    p = model.predict_proba(data)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.abs(p - fitted.predict_proba(X)).mean() < 0.05  # calibrated on fewer rows
    data = scan(X, target=y, prepare=False)
    bars = FixedSizeLSSVR(selection=Z, C=10.0, gamma=0.3).fit(data)
    expected = FixedSizeLSSVR(selection=Z, C=10.0, gamma=0.3).fit(X, y)
    for ours, theirs in zip(
        bars.predict(data, return_std=True), expected.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    inside = bars.predict_interval(data, 0.9)
    assert 0.85 < np.mean((inside[:, 0] < y) & (y < inside[:, 1])) < 0.95
    with pytest.raises(MemoryBudgetError, match="error bars"):
        bars.set_params(memory_budget=1000).predict(data, return_std=True)


def test_forgotten_rows_leave_the_calibration_sample(small_sample):
    data = scan(X, target=y, prepare=False)
    model = FixedSizeLSSVR(selection=Z, C=10.0, gamma=0.3).fit(data)
    before = len(model.record_.calibration.sample.keys)
    model.forget(scan(X[:1250], target=y[:1250], prepare=False))
    assert 0.3 * before < len(model.record_.calibration.sample.keys) < 0.7 * before


# -- updating, predicting to files -----------------------------------------------------------


def test_rows_are_added_and_removed_from_a_stream(small_sample):
    options = {"selection": Z, "C": 10.0, "gamma": 0.3}
    whole = FixedSizeLSSVR(**options).fit(X, y)
    first = scan(X[:1500], target=y[:1500], prepare=False)
    second = scan(X[1500:], target=y[1500:], prepare=False)
    model = FixedSizeLSSVR(**options).fit(first).partial_fit(second)
    same(model, whole)
    same(model.forget(second), FixedSizeLSSVR(**options).fit(X[:1500], y[:1500]))
    same(model.partial_fit(X[1500:], y[1500:]), whole)


def test_a_model_of_arrays_learns_and_predicts_from_a_stream():
    options = {"selection": Z, "C": 10.0, "gamma": 0.3, "class_weight": "balanced"}
    model = FixedSizeLSSVC(**options).fit(X[:1500], label[:1500])
    model.partial_fit(scan(X[1500:], target=label[1500:]))
    same(model, FixedSizeLSSVC(**options).fit(X, label))
    assert (model.predict(scan(X)) == model.predict(X)).all()


def test_an_unseen_label_is_an_error_and_changes_nothing():
    model = FixedSizeLSSVC(selection=Z, C=1.0, gamma=0.3).fit(X, label)
    before = model.predict(X)
    for rows in ((X[:3], ["low", "low", "odd"]), (scan(X[:3], target=["low", "low", "odd"]),)):
        with pytest.raises(InvalidInputError, match="odd"):
            model.partial_fit(*rows)
    assert (model.predict(X) == before).all()


@pytest.mark.parametrize("ending", ["parquet", "csv", "npy", "arrow"])
def test_predictions_are_written(ending, tmp_path):
    model = FixedSizeLSSVC(selection=Z, C=1.0, gamma=0.3).fit(X, label)
    out = tmp_path / f"p.{ending}"
    for rows in (X, scan(X)):
        assert model.predict(rows, out=out) == str(out)
        if ending == "npy":
            found = np.load(out)
        elif ending == "csv":
            found = pd.read_csv(out)["prediction"].to_numpy()
        elif ending == "arrow":
            found = pa.ipc.open_file(out).read_all()["prediction"].to_numpy()
        else:
            found = pd.read_parquet(out)["prediction"].to_numpy()
        assert (found == model.predict(X)).all()
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


# -- other sources, faults -------------------------------------------------------------------


class Made:
    """Rows made on request."""

    n_rows, n_targets = N, 1

    def read(self, part):
        return Block(X[part], y[part, None], None, part.start)


def test_a_source_of_ones_own_is_fitted(small_sample):
    model = FixedSizeLSSVR(selection=Z, gamma=0.3).fit(Made())
    same(model, FixedSizeLSSVR(selection=Z, gamma=0.3, cv=PositionFolds(10)).fit(X, y))
    assert model.score(Made()) == pytest.approx(model.score(X, y))
    assert not hasattr(model, "preparation_")


class Interrupted(RBF):
    """Raises after some blocks, as a person may."""

    calls = 0

    def against(self, Z):
        values = super().against(Z)

        def counted(X, out=None):
            Interrupted.calls += 1
            if Interrupted.calls > 2:
                raise KeyboardInterrupt
            return values(X, out)

        return counted


@pytest.mark.parametrize("streamed", [False, True])
def test_an_interrupted_fit_leaves_an_unfitted_model(streamed, small_sample):
    model = FixedSizeLSSVR(selection=Z, C=1.0, gamma=0.3).fit(X, y)
    model.set_params(kernel=Interrupted(0.3))
    Interrupted.calls = 0
    with pytest.raises(KeyboardInterrupt):
        model.fit(scan(X, target=y)) if streamed else model.fit(X, y)
    assert not model.__sklearn_is_fitted__()
    assert not hasattr(model, "prototypes_")


def test_an_interrupted_update_leaves_the_model_as_it_was():
    model = FixedSizeLSSVR(selection=Z, C=1.0, gamma=0.3, kernel=Interrupted(0.3))
    Interrupted.calls = -10_000
    model.fit(X, y)
    before, moments = model.dual_coef_.copy(), model.moments_
    Interrupted.calls = 0
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(scan(X, target=y))
    assert (model.dual_coef_ == before).all()
    assert model.moments_ is moments


def fitted():
    return FixedSizeLSSVR(selection=Z, C=1.0, gamma=0.3).fit(X, y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FixedSizeLSSVR().fit(scan(X)), "no target"),
        (lambda: FixedSizeLSSVR().fit(scan(X, target=y), y), "leave y"),
        (lambda: FixedSizeLSSVR(cv="loo").fit(scan(X, target=y)), "cv='loo'"),
        (lambda: FixedSizeLSSVR().fit(scan(X, target=label)), "FixedSizeLSSVC"),
        (lambda: FixedSizeLSSVC().fit(scan(X, target=y)), "FixedSizeLSSVR"),
        (lambda: FixedSizeLSSVC().fit(scan(X, target=0 * y)), "one class"),
        (lambda: FixedSizeLSSVR().fit(scan(X, target=np.where(y > 2, np.nan, y))), "row"),
        (lambda: FixedSizeLSSVR().fit(scan(X[:0], target=y[:0])), "empty"),
        (lambda: FixedSizeLSSVR().fit(scan(X, target=y, weight=-np.ones(N))), "weight"),
        (lambda: FixedSizeLSSVR().fit(scan(X, target=y, weight=np.zeros(N))), "zero"),
        (lambda: fitted().partial_fit(scan(X, target=np.full(N, np.nan))), "target"),
        (lambda: fitted().partial_fit(scan(X + np.inf, target=y)), "row 0"),
        (lambda: fitted().predict(scan(X * np.nan)), "row 0"),
        (lambda: fitted().predict(scan(X[:, :2])), "2 columns"),
    ],
)
def test_what_cannot_be_fitted_says_why(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_predicting_other_columns_says_which():
    model = FixedSizeLSSVR(20, C=1.0).fit(scan(frame_with_text(), target="y"))
    with pytest.raises(InvalidInputError, match="city"):
        model.predict(scan(pd.DataFrame(X, columns=["a", "b", "c"])))
    with pytest.raises(InvalidInputError, match="city"):
        model.predict(pd.DataFrame(X, columns=["a", "b", "c"]))
    with pytest.raises(InvalidInputError, match="4 features"):
        model.predict(X)


def test_relevance_from_a_scan(small_sample):
    noise = np.random.default_rng(7).normal(size=(N, 4))
    wide = np.column_stack([noise, X[:, :1]])
    target = np.sin(2 * X[:, 0])
    model = FixedSizeLSSVR(30, gamma="ard", cv=3).fit(scan(wide, target=target, prepare=False))
    assert np.argmax(model.feature_relevance_) == 4
    assert model.gamma_.shape == (5,)
    assert model.score(wide, target) > 0.95
