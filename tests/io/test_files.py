"""What is in a model file, what cannot be, and that old files go on loading."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from tests.io import cases
from tests.io.cases import fitted

import lssvm
from lssvm import LSSVC, LSSVR, NARX, FixedSizeLSSVC, GreedyLSSVR, load, save
from lssvm._core.errors import InvalidInputError
from lssvm.io import read_header
from lssvm.io.container import read_container
from lssvm.io.known import known, stored_fields
from lssvm.kernels import RBF, FunctionKernel, NonStationary

DATA = Path(__file__).parent / "data"


def test_the_safetensors_library_opens_a_file(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    model = fitted("fixed regressor tuned")
    for keep in ("all", "prediction", "support"):
        save(model, tmp_path / "m", keep=keep, metrics={"error": 0.5})
        with safetensors.safe_open(tmp_path / "m", framework="np") as file:
            np.testing.assert_array_equal(file.get_tensor("dual_coef_"), model.dual_coef_)
            assert json.loads(file.metadata()["metrics"]) == {"error": 0.5}
            assert set(file.keys()) == set(read_header(tmp_path / "m")["arrays"])


def test_the_header_says_everything_but_the_arrays(tmp_path):
    model = fitted("fixed scanned")
    save(model, tmp_path / "m", metrics={"accuracy": np.float64(0.75), "folds": (1, 2)})
    header = read_header(tmp_path / "m")
    assert header["format"] == 1
    assert header["version"] == lssvm.__version__
    assert header["class"] == "FixedSizeLSSVC"
    assert header["keep"] == "prediction"
    assert header["feature_names"] == ["age", "job", "pay"]
    assert header["n_features"] == 3
    assert header["classes"] == ["high", "low", "middle"]
    assert header["preparation"] == model.preparation_.to_dict()
    assert header["metrics"] == {"accuracy": 0.75, "folds": [1, 2]}
    assert header["parameters"]["cv"] == {"class": "PositionFolds", "n_folds": 3, "seed": 0}
    assert header["parameters"]["gamma"] == 0.2
    assert header["fitted"]["best_score_"] == model.best_score_
    assert header["fitted"]["n_prototypes_"] == 12
    assert header["arrays"]["dual_coef_"]["shape"] == model.dual_coef_.shape
    assert header["size"] == os.path.getsize(tmp_path / "m")
    assert len(header["schema_sha256"]) == 64
    json.dumps(header)  # for machines


def test_the_hash_of_the_schema_follows_columns_and_classes(tmp_path):
    def schema(X, y):
        save(LSSVC().fit(X, y), tmp_path / "m")
        return read_header(tmp_path / "m")["schema_sha256"]

    base = schema(cases.X, cases.TWO)
    assert schema(cases.X + 1.0, cases.TWO) == base
    assert schema(cases.X[:, :2], cases.TWO) != base
    assert schema(cases.X, cases.TWO + 1) != base
    assert schema(cases.X, cases.THREE) != base


def test_names_of_columns_travel_and_are_checked(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(cases.X, columns=["a", "b", "é"])
    model = LSSVC().fit(frame, cases.TWO)
    save(model, tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "é"]
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[["b", "a", "é"]])


@pytest.mark.parametrize(
    "labels",
    [
        cases.TWO,
        cases.TWO.astype(np.int8),
        cases.TWO.astype(bool),
        cases.TWO - 1.0,
        cases.THREE,
        cases.THREE.astype(object),
        np.array(["ä", "日本"])[cases.TWO],
        cases.TWO.astype(np.uint64) + np.uint64(2**63),
    ],
)
def test_labels_keep_their_type(labels, tmp_path):
    model = LSSVC().fit(cases.X, labels)
    save(model, tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert [type(label) for label in loaded.classes_] == [type(label) for label in model.classes_]


@pytest.mark.parametrize(
    "kernel",
    [
        lambda X, Z: X @ Z.T,
        FunctionKernel(lambda X, Z: X @ Z.T),
        NonStationary(1.0, lambda X: 1.0 + X**2),
    ],
)
def test_a_kernel_that_is_code_cannot_be_stored(kernel, tmp_path):
    model = LSSVR(kernel=kernel).fit(cases.X, cases.Y)
    with pytest.raises(InvalidInputError, match=r"kernel=.*never holds code"):
        save(model, tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_a_regressor_of_another_library_cannot_be_stored(tmp_path):
    from sklearn.linear_model import Ridge

    with pytest.raises(InvalidInputError, match=r"estimator=Ridge\(\) cannot be stored"):
        save(NARX(Ridge(), lags=3).fit(cases.SERIES), tmp_path / "m")
    with pytest.raises(InvalidInputError, match="Ridge cannot be saved: give a fitted model of"):
        save(Ridge().fit(cases.X, cases.Y), tmp_path / "m")


def test_a_model_that_is_not_fitted_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        save(LSSVC(), tmp_path / "m")
    with pytest.raises(InvalidInputError, match="keep='some' is not known"):
        save(fitted("dual"), tmp_path / "m", keep="some")
    with pytest.raises(InvalidInputError, match=r"metrics\['f'\] holds"):
        save(fitted("dual"), tmp_path / "m", metrics={"f": len})
    assert os.listdir(tmp_path) == []


def test_parameters_that_are_left_out_get_their_defaults(tmp_path):
    save(fitted("dual regressor scored"), tmp_path / "m")
    assert read_header(tmp_path / "m")["left_out"] == ["scoring"]
    assert load(tmp_path / "m").scoring is None
    save(fitted("fixed regressor given"), tmp_path / "m")
    assert load(tmp_path / "m").selection == "renyi"
    model = FixedSizeLSSVC(9, C=1.0, gamma=1.0, random_state=np.random.RandomState(0))
    model.set_params(checkpoint=str(tmp_path / "tuning.json"), cv=[(np.arange(5), np.arange(5, 9))])
    save(model.fit(cases.X, cases.TWO), tmp_path / "m")
    assert read_header(tmp_path / "m")["left_out"] == ["checkpoint", "cv", "random_state"]
    loaded = load(tmp_path / "m")
    assert (loaded.checkpoint, loaded.cv, loaded.random_state) == (None, 10, None)


def test_a_file_cannot_name_a_place_to_write_to(tmp_path):
    from tests.io.test_hostile import packed, split, stored

    header, arrays = split(stored("fixed", tmp_path / "m"))
    tree = json.loads(header)
    record = json.loads(tree["__metadata__"]["model"])
    record["parameters"]["checkpoint"] = "elsewhere"
    tree["__metadata__"]["model"] = json.dumps(record)
    (tmp_path / "m").write_bytes(packed(tree, arrays))
    with pytest.raises(lssvm.ModelFileError, match="parameters that FixedSizeLSSVC does not have"):
        load(tmp_path / "m")


def test_equal_arrays_are_stored_once(tmp_path):
    save(fitted("series"), tmp_path / "m", keep="all")
    _, arrays = read_container(tmp_path / "m")
    rows = fitted("series")._plan.rows
    assert sum(a.shape == rows.shape and np.array_equal(a, rows) for a in arrays.values()) == 1
    loaded = load(tmp_path / "m")
    assert loaded.estimator_.support_vectors_ is loaded.estimator_._basis


def test_the_order_of_an_array_in_memory_travels(tmp_path):
    save(fitted("fixed"), tmp_path / "m", keep="all")
    loaded = load(tmp_path / "m")
    for name in ("_map.T", "prototypes_", "dual_coef_"):
        theirs, ours = loaded, fitted("fixed")
        for part in name.split("."):
            theirs, ours = getattr(theirs, part), getattr(ours, part)
        assert (theirs.flags.c_contiguous, theirs.flags.f_contiguous) == (
            ours.flags.c_contiguous,
            ours.flags.f_contiguous,
        )
        assert theirs.flags.writeable


def test_a_file_is_complete_or_not_there(tmp_path, monkeypatch):
    save(fitted("dual"), tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save(fitted("fixed"), tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]
    with pytest.raises(InvalidInputError, match="does not exist"):
        save(fitted("fixed"), tmp_path / "nowhere" / "m")


def test_files_have_little_endian_numbers_and_are_the_same_each_time(tmp_path):
    X = cases.X.astype(">f8")
    save(GreedyLSSVR(C=10.0).fit(X, cases.Y), tmp_path / "m")
    first = (tmp_path / "m").read_bytes()
    _, arrays = read_container(tmp_path / "m")
    assert all(array.dtype.newbyteorder("=") == array.dtype for array in arrays.values())
    save(GreedyLSSVR(C=10.0).fit(X, cases.Y), str(tmp_path / "m"))
    assert (tmp_path / "m").read_bytes() == first


def test_the_list_of_classes_is_closed():
    for name, kind in known().items():
        assert kind.__name__ == name
        assert kind.__module__.startswith("lssvm.")
        assert set(stored_fields(kind)) <= set(kind.__dataclass_fields__)
    assert known()["RBF"] is RBF


OLD = sorted(DATA.glob("format_*.lssvm"))


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_old_files_go_on_loading(path):
    wanted = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    model = load(path)
    assert read_header(path)["format"] == wanted["format"]
    if wanted["class"] == "NARX":
        found, ends = model.forecast(3, return_interval=True)
        np.testing.assert_allclose(found, wanted["forecast"], rtol=1e-6)
        assert np.all(ends[:, 0] < found)
        return
    rows = wanted["rows"] if isinstance(wanted["rows"], dict) else np.array(wanted["rows"])
    if wanted["class"].endswith("C"):
        assert model.predict(rows).tolist() == wanted["labels"]
        np.testing.assert_allclose(model.predict_proba(rows), wanted["proba"], rtol=1e-6)
    else:
        np.testing.assert_allclose(model.predict(rows), wanted["values"], rtol=1e-6)


def test_there_are_old_files_of_every_format_and_class():
    found = {(json.loads(p.with_suffix(".json").read_text())["class"], p.stem[:8]) for p in OLD}
    from lssvm.io.models import PARTS

    assert found == {(name, "format_1") for name in PARTS}
    assert sum(p.stat().st_size for p in OLD) < 60_000
