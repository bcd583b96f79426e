"""A loaded model says the same as the saved one, bit for bit, in every mode."""

from __future__ import annotations

import copy
import os

import numpy as np
import pytest
from tests.io import cases
from tests.io.cases import (
    CASES,
    CLASSIFIERS,
    REGRESSORS,
    SERIES_MODELS,
    TABLE_MODELS,
    fitted,
    new_rows,
)
from tests.looping import case

from lssvm import load, save
from lssvm._core.errors import InvalidInputError
from lssvm.fitting.record import FORMS

pytestmark = [
    pytest.mark.filterwarnings("ignore::lssvm._core.errors.NumericalWarning"),
    pytest.mark.usefixtures("without_nested_folds"),
]


def again(model, tmp_path, keep):
    path = tmp_path / "model.lssvm"
    save(model, path, keep=keep)
    return load(path)


def answer(call):
    """Return what a call gives, or the kind of error and what it says."""
    try:
        return call()
    except (InvalidInputError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"


def answers(model, *, sure=True):
    """Return everything that a model says about new rows."""
    rows = new_rows(model)
    found = {"predict": model.predict(rows)}
    if hasattr(model, "classes_"):
        found["decision"] = model.decision_function(rows)
        found["proba"] = answer(lambda: model.predict_proba(rows))
    elif sure and hasattr(model, "predict_interval"):
        found["interval"] = answer(lambda: model.predict_interval(rows, 0.8))
    if "interval" in found and not hasattr(model, "preparations_"):
        found["std"] = answer(lambda: model.predict(rows, return_std=True)[1])
        found["cov"] = answer(lambda: model.predict(rows, return_cov=True)[1])
        found["noise"] = answer(lambda: model.noise_variance_)
    if sure and hasattr(model, "classes_"):
        found["set"] = answer(lambda: model.predict_set(rows, 0.7))
        found["log"] = answer(lambda: model.predict_log_proba(rows))
    return found


def forecasts(model, *, sure=True):
    inputs = cases.INPUT[:6] if model.n_exog_ else None
    found = {"forecast": model.forecast(6, inputs)}
    if sure:
        found["interval"] = model.forecast(6, inputs, return_interval=True)[1]
    part = cases.SERIES[:8]
    found["next"] = model.predict(part, None if inputs is None else cases.INPUT[:8], **past(model))
    return found


def past(model):
    given = {"history": cases.SERIES[:20]}
    return given | ({"X_history": cases.INPUT[:20]} if model.n_exog_ else {})


def assert_same(found, wanted):
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        if isinstance(value, str):
            assert found[name] == value, name
        else:
            np.testing.assert_array_equal(found[name], value, err_msg=name)
            assert np.asarray(found[name]).dtype == np.asarray(value).dtype, name


def updated(model, sign):
    """Return what a model says after rows were added or removed."""
    model = copy.deepcopy(model)
    data = (cases.X, cases.THREE if len(getattr(model, "classes_", ())) == 3 else cases.TWO)
    if not hasattr(model, "classes_"):
        k = model.record_.task.n_outputs
        data = (cases.X, cases.PAIR if k == 2 else cases.Y)
    rows = slice(10, 20)
    X, y = data[0][rows], data[1][rows]
    if hasattr(model, "preparation_"):
        X = cases.rows_of(cases.TABLE, rows)
    if hasattr(model, "preparations_") and cases.takes_mixed(model):
        X = cases.rows_of(cases.MIXED, rows)
    (model.partial_fit if sign > 0 else model.forget)(X, y)
    return answers(model)


KINDS = {"classifiers": CLASSIFIERS, "regressors": REGRESSORS, "tables": TABLE_MODELS}


@pytest.mark.parametrize("kind", KINDS)
def test_everything_about_new_rows_is_the_same(kind, tmp_path):
    for name in KINDS[kind]:
        model = fitted(name)
        said = answers(model)
        for keep in ("all", "prediction"):
            with case(name, keep):
                loaded = again(model, tmp_path, keep)
                assert type(loaded) is type(model)
                assert_same(answers(loaded), said)


def test_the_answers_are_numbers_where_there_are_some():
    texts = {name: value for name, value in answers(fitted("fixed")).items() if type(value) is str}
    assert texts == {}
    assert type(answers(fitted("dual regressor tuned"))["interval"]) is np.ndarray
    assert type(answers(fitted("fixed regressor spfs"))["cov"]) is np.ndarray
    assert type(updated(fitted("fixed scanned"), -1)["proba"]) is np.ndarray
    assert type(updated(fitted("table parts"), -1)["set"]) is np.ndarray
    assert type(updated(fitted("table regressor of two"), 1)["interval"]) is np.ndarray


@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS, *TABLE_MODELS])
def test_predictions_and_probabilities_of_the_smallest_form_are_the_same(name, tmp_path):
    model = fitted(name)
    loaded = again(model, tmp_path, "support")
    assert_same(answers(loaded, sure=False), answers(model, sure=False))


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith(("fixed", "table"))])
@pytest.mark.parametrize("sign", [1, -1])
def test_rows_can_be_added_and_removed_after_loading(name, sign, tmp_path):
    model = fitted(name)
    loaded = again(model, tmp_path, "all")
    wanted = answer(lambda: updated(model, sign))
    found = answer(lambda: updated(loaded, sign))
    if isinstance(wanted, str):
        assert found == wanted
    else:
        assert_same(found, wanted)
    with pytest.raises((InvalidInputError, AttributeError), match=r"keep='all'|has no attribute"):
        updated(again(model, tmp_path, "prediction"), sign)


@pytest.mark.parametrize("name", SERIES_MODELS)
@pytest.mark.parametrize("keep", ["all", "prediction"])
@pytest.mark.parametrize("calibrated", [False, True])
def test_forecasts_are_the_same(name, keep, calibrated, tmp_path):
    model = copy.deepcopy(fitted(name))
    if calibrated:
        forecasts(model)
    loaded = again(model, tmp_path, keep)
    assert (loaded.record_.plan is None) == (keep == "prediction" and calibrated)
    assert_same(forecasts(loaded), forecasts(model))


@pytest.mark.parametrize("name", SERIES_MODELS)
def test_forecasts_of_the_smallest_form_have_no_intervals(name, tmp_path):
    loaded = again(fitted(name), tmp_path, "support")
    assert_same(forecasts(loaded, sure=False), forecasts(fitted(name), sure=False))
    with pytest.raises(InvalidInputError, match=r"intervals: not available.*keep='prediction'"):
        forecasts(loaded)


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith("greedy")])
def test_a_greedy_model_can_be_truncated_after_loading(name, tmp_path):
    model = fitted(name)
    loaded = again(model, tmp_path, "all")
    rows = new_rows(model)
    np.testing.assert_array_equal(loaded.truncate(4).predict(rows), model.truncate(4).predict(rows))
    with pytest.raises(InvalidInputError, match=r"truncated model.*keep='all'"):
        again(model, tmp_path, "prediction").truncate(4)


@pytest.mark.parametrize("name", ["fixed spfs", "fixed regressor spfs", "fixed spfs apart"])
def test_the_sparsity_path_travels(name, tmp_path):
    for keep in ("all", "prediction"):
        ours, loaded = fitted(name).sparsity_path(), again(fitted(name), tmp_path, keep)
        theirs = loaded.sparsity_path()
        pairs = zip(ours, theirs, strict=True) if isinstance(ours, list) else [(ours, theirs)]
        for a, b in pairs:
            np.testing.assert_array_equal(a.mean, b.mean)
            assert a.chosen == b.chosen


def test_the_records_of_tuning_travel_with_all(tmp_path):
    model = fitted("fixed tuned")
    loaded = again(model, tmp_path, "all")
    assert loaded.tuning_result_.trace["best_loss"].tolist() == (
        model.tuning_result_.trace["best_loss"].tolist()
    )
    assert list(loaded.cv_results_) == list(model.cv_results_)
    assert loaded.cv_results_["params"] == model.cv_results_["params"]
    np.testing.assert_array_equal(loaded.selection_.indices, model.selection_.indices)
    assert not hasattr(again(model, tmp_path, "prediction"), "cv_results_")


@pytest.mark.parametrize("name", CASES)
def test_public_attributes_are_the_same(name, tmp_path):
    model = fitted(name)
    loaded = again(model, tmp_path, "all")
    assert sorted(vars(loaded)) == sorted(vars(model))
    assert repr(loaded.get_params()) == repr(model.get_params()) or name in (
        "dual objects",  # a generator
        "dual regressor scored",  # a function
        "fixed regressor given",  # a list of rows
        "dual isotonic",  # a kernel object is another one
        "dual annealed",
        "table regressor of two",  # a generator
    )
    for n in ("dual_coef_", "intercept_", "C_", "support_"):
        if hasattr(model, n):
            np.testing.assert_array_equal(getattr(loaded, n), getattr(model, n))


def test_a_loaded_model_can_be_saved_again_in_its_form_or_a_smaller_one(tmp_path):
    model = fitted("fixed tuned")
    loaded = again(model, tmp_path, "prediction")
    assert_same(answers(again(loaded, tmp_path, "prediction")), answers(model))
    again(loaded, tmp_path, "support")
    with pytest.raises(InvalidInputError, match="asks for more than this model has"):
        again(loaded, tmp_path, "all")


def test_a_loaded_model_can_be_fitted_again(tmp_path):
    loaded = again(fitted("fixed"), tmp_path, "support")
    with pytest.raises(InvalidInputError, match=r"sets: not available.*keep='prediction'"):
        loaded.predict_set(cases.NEW)
    loaded.fit(cases.X, cases.TWO)
    assert_same(answers(loaded), answers(fitted("fixed")))
    loaded.partial_fit(cases.X[:3], cases.TWO[:3])


def test_the_smallest_form_of_ten_support_vectors_is_small(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((2000, 20))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(2000)
    from lssvm import FixedSizeLSSVC, FixedSizeLSSVR

    names = [f"feature number {i}" for i in range(20)]
    for model in (
        FixedSizeLSSVC(10, C=1.0, gamma=0.05).fit(X, y > 0),
        FixedSizeLSSVR(10, C=1.0, gamma=0.05).fit(X, y),
    ):
        model.feature_names_in_ = np.array(names, dtype=object)
        save(model, tmp_path / "m", keep="support")
        assert os.path.getsize(tmp_path / "m") < 10_000
        save(model, tmp_path / "m", keep="prediction")
        assert os.path.getsize(tmp_path / "m") < 100_000


def test_the_forms_grow(tmp_path):
    sizes = []
    for keep in FORMS:
        save(fitted("fixed tuned"), tmp_path / "m", keep=keep)
        sizes.append(os.path.getsize(tmp_path / "m"))
    assert sizes == sorted(set(sizes))
