"""Files of the models for tables: rows in parts, raw columns, what is kept, what is refused."""

from __future__ import annotations

import copy
import json
import os
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.fuzz.model_files import FACTOR, SLACK, parts, sealed, taken_by
from tests.io import cases
from tests.io.cases import fitted
from tests.io.test_round_trip import again, assert_same
from tests.outputs import raw_outputs

import lssvm
from lssvm import LSSVMClassifier, LSSVMRegressor, load, save
from lssvm._core.errors import InvalidInputError
from lssvm.fitting.record import FORMS
from lssvm.io import read_header
from lssvm.io.files import schema_hash
from lssvm.io.models import is_zone

pytestmark = pytest.mark.usefixtures("without_nested_folds")

N = 600
rng = np.random.default_rng(5)
A = rng.standard_normal((N + 40, 3))
T = np.sin(2 * A[:, 0]) + A[:, 1] ** 2 / 2 + 0.1 * rng.standard_normal(N + 40)
CLASSES = np.array(["low", "middle", "high"])[np.digitize(T, [0.2, 0.9])]
TARGETS = {"classes": CLASSES, "number": T, "numbers": np.column_stack([T, A[:, 2] - T])}


def table(kind):
    """Return numbers, or a data frame with categories, dates, booleans and missing values."""
    if kind == "numbers":
        return A
    pandas = pytest.importorskip("pandas")
    own = np.random.default_rng(6)
    frame = pandas.DataFrame(
        {
            "a": np.where(own.random(N + 40) < 0.1, np.nan, A[:, 0]),
            "b": A[:, 1],
            "job": pandas.Categorical.from_codes(
                own.integers(-1, 4, N + 40), ["cook", "smith", "clerk", "né"]
            ),
            "town": [f"town {i}" for i in own.integers(90, size=N + 40)],
            "when": pandas.Timestamp("2024-01-01", tz="Europe/Brussels")
            + pandas.to_timedelta(own.integers(9000, size=N + 40), unit="h"),
            "written": [f"{1 + i % 28}.{1 + i % 12}.2023" for i in range(N + 40)],
            "member": pandas.array(own.integers(-1, 2, N + 40) > 0, dtype="boolean"),
        }
    )
    frame.loc[::7, "member"] = None
    return frame


def some(X, rows):
    return X[rows] if isinstance(X, np.ndarray) else X.iloc[rows]


@cache
def in_parts(rows, target):
    kind = LSSVMClassifier if target == "classes" else LSSVMRegressor
    trees = 2 if target == "number" else 1
    model = kind("fast", leaf_size=80, n_trees=trees, metric="auto", n_jobs=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lssvm.fitting.table.SMALL", 500)  # fewer rows are not split into leaves
        model.fit(some(table(rows), slice(N)), TARGETS[target][:N])
    assert len(model.record_.members[0].local.leaves) >= 7
    return model


def answers(model, X, sure=True):
    found = {"predict": model.predict(X)}
    if hasattr(model, "classes_"):
        found |= {"proba": model.predict_proba(X), "decision": model.decision_function(X)}
    if sure:
        found["sure"] = (
            model.predict_set(X, 0.8)
            if hasattr(model, "classes_")
            else model.predict_interval(X, 0.8)
        )
    return found


CASES = [("numbers", "classes"), ("frame", "classes"), ("numbers", "number"), ("frame", "numbers")]


@pytest.mark.parametrize(("rows", "target"), CASES)
def test_models_in_parts_come_back_bit_for_bit(rows, target, tmp_path):
    model, new = in_parts(rows, target), some(table(rows), slice(N - 60, N + 40))
    for keep in FORMS:
        loaded = again(model, tmp_path, keep)
        sure = keep != "support"
        assert_same(answers(loaded, new, sure), answers(model, new, sure))
        assert sorted(vars(loaded)) == sorted(vars(model))
        assert loaded.summary_ == model.summary_
        assert loaded.best_score_ == model.best_score_
        assert loaded.configurations_ == model.configurations_
        np.testing.assert_array_equal(loaded.metric_, model.metric_)
        np.testing.assert_array_equal(loaded.feature_importances_, model.feature_importances_)
        for name, ours in model.preparations_.items():
            theirs = loaded.preparations_[name]
            assert theirs.get_params() == ours.get_params()
            assert theirs.report_ == ours.report_


@pytest.mark.parametrize(("rows", "target"), CASES)
def test_rows_are_added_and_forgotten_as_before_with_all_alone(rows, target, tmp_path):
    model, X, y = in_parts(rows, target), table(rows), TARGETS[target]
    new, extra = some(X, slice(N - 60, N)), slice(N, N + 40)
    loaded, ours = again(model, tmp_path, "all"), copy.deepcopy(model)
    for one in (loaded, ours):
        one.partial_fit(some(X, extra), y[extra])
    before, changed = answers(model, new), answers(loaded, new)
    name = "decision" if "decision" in changed else "predict"
    assert not np.array_equal(changed[name], before[name])
    assert_same(changed, answers(ours, new))
    assert_same(answers(again(loaded, tmp_path, "all"), new), changed)
    loaded.forget(some(X, extra), y[extra])
    np.testing.assert_allclose(
        raw_outputs(loaded, new),
        raw_outputs(model, new),
        atol=1e-6,
    )
    for keep in ("prediction", "support"):
        less = again(model, tmp_path, keep)
        for change in (less.partial_fit, less.forget):
            with pytest.raises(InvalidInputError, match=r"rows: not available.*keep='all'"):
                change(some(X, extra), y[extra])
        with pytest.raises(InvalidInputError, match="asks for more than this model has"):
            save(less, tmp_path / "n", keep="all")


@pytest.mark.parametrize(("rows", "target"), CASES)
def test_the_smallest_form_has_neither_sets_nor_intervals(rows, target, tmp_path):
    loaded = again(in_parts(rows, target), tmp_path, "support")
    with pytest.raises(InvalidInputError, match=r"(sets|Intervals): not available.*'prediction'"):
        answers(loaded, some(table(rows), slice(3)))
    loaded.set_params(scaling="standardised", kernel="rbf", metric=None)
    loaded.fit(some(table(rows), slice(80)), TARGETS[target][:80])
    answers(loaded, some(table(rows), slice(3)))


@pytest.mark.parametrize(("rows", "target"), CASES)
def test_a_file_holds_the_rows_of_every_configuration_and_little_else(rows, target, tmp_path):
    model = in_parts(rows, target)
    sizes, made = {}, 0
    for keep in FORMS:
        save(model, tmp_path / "m", keep=keep)
        sizes[keep] = os.path.getsize(tmp_path / "m")
    for member in model.record_.members:
        for partition in member.local.partitions:
            made += sum(leaf.rows.X.nbytes + leaf.fit.coef.nbytes for leaf in partition.leaves)
    rest = 500_000  # normal scores, levels, residuals; a few hundred bytes of JSON for each part
    assert sizes["support"] < sizes["prediction"] < sizes["all"]
    assert sizes["prediction"] < made + rest
    loaded, memory = taken_by(lambda: load(tmp_path / "m"))
    assert memory < SLACK + FACTOR * sizes["all"]
    assert type(loaded) is type(model)


def test_the_header_tells_of_columns_and_classes(tmp_path):
    model = in_parts("frame", "classes")
    save(model, tmp_path / "m", metrics={"error": 0.1})
    header = read_header(tmp_path / "m")
    assert header["class"] == "LSSVMClassifier"
    assert header["classes"] == ["high", "low", "middle"]
    assert header["feature_names"] == list(table("frame").columns)
    assert header["fitted"]["best_score_"] == model.best_score_
    assert header["parameters"]["leaf_size"] == 80
    columns = header["preparation"]["standardised"]["columns"]
    assert [column["name"] for column in columns] == header["feature_names"]
    assert columns[2]["encoding"]["levels"] == ["clerk", "cook", "né", "smith"]
    assert columns[4]["encoding"]["zone"] == "Europe/Brussels"
    assert columns[5]["encoding"]["order"] == "dmy"
    assert header["schema_sha256"] == schema_hash(model)
    assert schema_hash(model) != schema_hash(in_parts("frame", "numbers"))
    json.dumps(header)


def test_a_loaded_model_checks_columns_as_the_saved_one_does(tmp_path):
    loaded = again(in_parts("frame", "numbers"), tmp_path, "prediction")
    frame = table("frame").iloc[:5]
    shuffled = frame[frame.columns[::-1]]
    np.testing.assert_array_equal(loaded.predict(shuffled), loaded.predict(frame))
    with pytest.raises(InvalidInputError, match="no columns"):
        loaded.predict(frame.drop(columns="town"))
    with pytest.raises(InvalidInputError, match="'b' has text"):
        loaded.predict(frame.assign(b="3,5"))


def test_a_time_zone_that_is_a_file_is_not_stored(tmp_path):
    pandas = pytest.importorskip("pandas")
    when = pandas.date_range("2024-01-01", periods=60, freq="31h", tz="UTC+02:00")
    frame = pandas.DataFrame({"when": when})
    model = LSSVMRegressor("fast", n_jobs=1).fit(frame, T[:60])
    loaded = again(model, tmp_path, "prediction")
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    record = model.record_
    column = record.any_prepared.columns[0]
    column = replace(column, encoding=replace(column.encoding, zone="dateutil/UTC"))
    table = replace(record.any_prepared, columns=(column,))
    model.record_ = replace(record, prepared=dict.fromkeys(record.prepared, table))
    with pytest.raises(InvalidInputError, match="when have the time zone dateutil/UTC, which"):
        save(model, tmp_path / "n")
    assert os.listdir(tmp_path) == ["model.lssvm"]


@pytest.mark.parametrize("zone", [None, "UTC", "UTC-09:30", "+02:00", "Europe/Brussels"])
def test_zones_with_a_name_or_hours_are_stored(zone):
    assert is_zone(zone)


@pytest.mark.parametrize(
    "zone",
    ["", "x", "/etc/passwd", "../UTC", "Europe", "tzlocal()", "dateutil/UTC", "UTC+99:00", "U\0"],
)
def test_other_zones_are_not(zone):
    assert not is_zone(zone)


# -- what does not fit together ----------------------------------------------------------------


def record(header):
    return header["model"]["fields"]["record"]["fields"]


def partition_of(header, member=0):
    return member_of(header, member)["model"]["fields"]["partitions"]["tuple"][0]["fields"]


def member_of(header, member=0):
    return record(header)["members"]["tuple"][member]["fields"]


def column_of(header, number, scaling=0):
    prepared = record(header)["prepared"]["dict"][scaling][1]["fields"]
    return prepared["columns"]["tuple"][number]["fields"]


def stored(name, path, keep="all"):
    save(fitted(name), path, keep=keep)
    return parts(path.read_bytes())


def refused(path, header, arrays, match):
    path.write_bytes(sealed(header, arrays))
    with pytest.raises(lssvm.ModelFileError, match=match):
        load(path)


@pytest.mark.parametrize(
    ("children", "match"),
    [([[0, -1]], "every leaf once"), ([[-1, -1]], "every leaf once"), ([[-1, -3]], "leaf once"),
     ([[-2, 7]], "leaf once"), ([[-1, -2], [-1, -3]], "children has shape")],
)  # fmt: skip
def test_a_tree_that_is_none_is_refused(children, match, tmp_path):
    header, arrays = stored("table parts", tmp_path / "m")
    name = partition_of(header)["tree"]["fields"]["children"]["array"]
    assert arrays[name].tolist() == [[-1, -2]]
    arrays[name] = np.array(children)
    refused(tmp_path / "m", header, arrays, match)


def test_a_tree_with_a_circle_is_refused(tmp_path):
    save(in_parts("numbers", "number"), tmp_path / "m")
    header, arrays = parts((tmp_path / "m").read_bytes())
    name = partition_of(header)["tree"]["fields"]["children"]["array"]
    children = arrays[name]
    inner = [(int(i), int(side)) for i, side in np.argwhere(children >= 0)]
    above, below = next((a, b) for a in inner for b in inner if b[0] == children[a])
    children[above], children[below] = children[below], children[above]  # a node below itself
    refused(tmp_path / "m", header, arrays, "circle")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda h: record(h)["members"].update(tuple=[]), "no member"),
        (lambda h: record(h)["prepared"].update(dict=[]), "columns are not known"),
        (lambda h: record(h).update(stored="prediction"), "how much of the model"),
        (lambda h: member_of(h).update(weight=-1.0), "weight is out of range|with a weight"),
        (lambda h: member_of(h)["model"]["fields"].update(distance="x"), "distance"),
        (lambda h: member_of(h).update(scaling="x"), "scaling is of"),
        (lambda h: member_of(h).update(outputs={"array": "outputs"}), "no array"),
        (lambda h: partition_of(h)["leaves"]["tuple"].pop(), "directions has shape"),
        (lambda h: column_of(h, 0).update(name="b"), "other columns|names"),
        (lambda h: column_of(h, 0).update(kind="date"), "kind that is encoded"),
        (lambda h: column_of(h, 0).update(kind="x"), "unknown kind"),
        (
            lambda h: column_of(h, 0)["encoding"]["fields"].update(scale=0.0),
            "scale is out of range",
        ),
        (lambda h: column_of(h, 0).update(encoding=None), "other inputs"),
        (lambda h: column_of(h, 1)["encoding"]["fields"]["levels"]["tuple"].pop(), "shape"),
        (lambda h: column_of(h, 4)["encoding"]["fields"].update(unseen=None), "unseen"),
        (lambda h: column_of(h, 5)["encoding"]["fields"].update(zone="/etc/passwd"), "time zone"),
        (lambda h: column_of(h, 5)["encoding"]["fields"].update(zone="dateutil/UTC"), "time zone"),
        (lambda h: column_of(h, 5)["encoding"]["fields"].update(order="x"), "order of dates"),
        (lambda h: h["model"]["fields"].update(n_features=6), "columns"),
        (lambda h: h["model"]["fields"].update(kind="LSSVMRegressor"), "does not have"),
        (lambda h: h["model"]["fields"].update(kind="LSSVC"), "another estimator|does not have"),
        (lambda h: record(h)["state"]["fields"].update(named=False), "names of columns"),
        (lambda h: record(h).update(calibrated=None), "calibration is missing"),
        (lambda h: record(h)["state"]["fields"].update(weight_scale=0.0), "weight_scale"),
    ],
    ids=range(24),
)
def test_parts_that_do_not_fit_together_are_refused(change, match, tmp_path):
    header, arrays = stored("table mixed", tmp_path / "m")
    change(header)
    refused(tmp_path / "m", header, arrays, f"{match}|nothing refers to")
    save(fitted("table mixed"), tmp_path / "m", keep="all")
    assert load(tmp_path / "m").summary_ == fitted("table mixed").summary_


@pytest.mark.parametrize(("loss", "match"), [("logistic", "one output"), ("x", "another type")])
def test_a_loss_that_does_not_fit_the_outputs_of_a_leaf_is_refused(loss, match, tmp_path):
    header, arrays = stored("table regressor of two", tmp_path / "m")
    leaf = partition_of(header)["leaves"]["tuple"][0]["fields"]
    assert leaf["setting"]["fields"].pop("loss") == "squared"
    (tmp_path / "older").write_bytes(sealed(header, arrays))  # without the field
    (found,) = load(tmp_path / "older").record_.members[0].local.leaves
    assert found.setting.loss == "squared"
    leaf["setting"]["fields"]["loss"] = loss
    refused(tmp_path / "m", header, arrays, match)


@pytest.mark.parametrize("part", ["X", "Y", "weight", "coef", "left_out", "directions", "held_out"])
@pytest.mark.parametrize("how", ["type", "length", "infinite"])
def test_arrays_of_parts_are_checked(part, how, tmp_path):
    header, arrays = stored("table parts", tmp_path / "m")
    name = next(name for name in arrays if name.endswith(part) and arrays[name].size)
    if how == "type":
        arrays[name] = arrays[name].astype(np.int64)
    elif how == "length":
        arrays[name] = arrays[name][:, :0] if part == "held_out" else arrays[name][:-1]
    elif part != "held_out":
        arrays[name].flat[0] = np.inf
    else:
        return  # outputs of rows that every model had seen are NaN
    refused(tmp_path / "m", header, arrays, "does not fit together")


def test_squared_errors_of_leaves_have_a_row_for_every_row(tmp_path):
    """Two outputs: a transposed array has as many numbers, and intervals would fail."""
    model = copy.deepcopy(fitted("table regressor of two"))
    calibrated = replace(model.record_.calibrated, nearby=4)
    model.record_ = replace(model.record_, calibrated=calibrated)
    save(model, tmp_path / "m")
    header, arrays = parts((tmp_path / "m").read_bytes())
    assert load(tmp_path / "m").predict_interval(cases.NEW_MIXED).shape == (3, 2, 2)
    members = record(header)["members"]["tuple"]
    leaves = [partition_of(header, i)["leaves"]["tuple"][0]["fields"] for i in range(len(members))]
    (leaf,) = [leaf for leaf in leaves if arrays[leaf["kept"]["array"]].size]
    name = leaf["kept"]["array"]
    kept = arrays[name]
    for changed in (kept.T, kept.reshape(-1, 1), kept.ravel(), kept[:-1], kept[:, :0], -kept):
        arrays[name] = np.ascontiguousarray(changed)
        refused(tmp_path / "m", header, arrays, "kept has shape|kept is out|together")
    arrays[name] = np.empty((0, 2))
    refused(tmp_path / "m", header, arrays, "errors of the rows are missing")


def test_no_matrix_is_made_of_many_features_when_a_file_is_loaded(tmp_path):
    """The metric of d features is d x d numbers: made when asked for, not by every file."""
    header, arrays = stored("table", tmp_path / "m", "prediction")
    d = 9000
    prepared = record(header)["prepared"]["dict"]
    for number, (_, one) in enumerate(prepared):
        arrays |= {f"v{number}": np.zeros((1, d)), f"w{number}": np.zeros(d)}
        levels = {
            "levels": {"tuple": ["a"]},
            "values": {"array": f"v{number}"},
            "missing": {"array": f"w{number}"},
            "unseen": {"array": f"w{number}"},
            "suffixes": {"tuple": [f"{i}" for i in range(d)]},
        }
        for j, column in enumerate(one["fields"]["columns"]["tuple"]):
            wide = {"record": "LevelEncoding", "fields": levels}
            column["fields"] |= {"kind": "category", "encoding": None if j else wide}
    for i, member in enumerate(record(header)["members"]["tuple"]):
        partition, leaf = (
            partition_of(header, i),
            partition_of(header, i)["leaves"]["tuple"][0]["fields"],
        )
        arrays |= {f"d{i}": np.zeros((0, d)), f"x{i}": np.zeros((1, d)), f"c{i}": np.ones((1, 1))}
        partition["tree"]["fields"]["directions"] = {"array": f"d{i}"}
        leaf["rows"]["fields"]["X"] = {"array": f"x{i}"}
        leaf["fit"]["fields"]["coef"] = {"array": f"c{i}"}
        member["fields"]["metric"]["fields"]["map"] = None
    text = json.dumps(header)
    used = {name: array for name, array in arrays.items() if f'"{name}"' in text}
    data = sealed(header, used)
    (tmp_path / "m").write_bytes(data)
    model, memory = taken_by(lambda: load(tmp_path / "m"))
    assert memory < SLACK + FACTOR * len(data) < 8 * d * d
    assert model.predict(np.full((1, 3), "a", dtype=object)).shape == (1,)
