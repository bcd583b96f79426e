"""What is in a model file, what cannot be, and who may read it."""

from __future__ import annotations

import dataclasses
import json
import os
import threading

import numpy as np
import pytest
import safetensors
from safetensors.numpy import save_file
from tests.fuzz.model_files import parts, sealed
from tests.io import cases
from tests.io.cases import fitted

import lssvm
from lssvm import LSSVC, LSSVR, NARX, FixedSizeLSSVC, GreedyLSSVR, LSSVMRegressor, load, save
from lssvm._core.errors import InvalidInputError
from lssvm.io import read_header
from lssvm.io.container import read_container
from lssvm.io.schema import schema
from lssvm.kernels import RBF, FunctionKernel, NonStationary
from lssvm.tuning import PathSearch


def test_the_safetensors_library_opens_a_file(tmp_path):
    model = fitted("fixed regressor tuned")
    for keep in ("all", "prediction", "support"):
        save(model, tmp_path / "m", keep=keep, metrics={"error": 0.5})
        with safetensors.safe_open(tmp_path / "m", framework="np") as file:
            found = file.get_tensor("members.0.coef")
            np.testing.assert_array_equal(found, model.dual_coef_)
            assert json.loads(file.metadata()["header"])["metrics"] == {"error": 0.5}
            assert set(file.keys()) == set(read_header(tmp_path / "m")["arrays"])


def test_the_header_says_everything_but_the_arrays(tmp_path):
    model = fitted("fixed scanned")
    save(model, tmp_path / "m", metrics={"accuracy": np.float64(0.75), "folds": (1, 2)})
    header = read_header(tmp_path / "m")
    assert header["format"] == 4
    assert header["version"] == lssvm.__version__
    assert header["class"] == "FixedSizeLSSVC"
    assert header["keep"] == "prediction"
    assert header["feature_names"] == ["age", "job", "pay"]
    assert header["n_features"] == 3
    assert header["classes"] == ["high", "low", "middle"]
    assert [column["name"] for column in header["preparation"]["none"]["columns"]] == [
        "age",
        "job",
        "pay",
    ]
    assert header["metrics"] == {"accuracy": 0.75, "folds": [1, 2]}
    assert header["parameters"]["cv"] == {
        "class": "PositionFolds",
        "n_folds": 3,
        "seed": 0,
        "numbers": None,
    }
    assert header["parameters"]["gamma"] == 0.2
    assert header["fitted"]["best_score_"] == model.best_score_
    assert header["fitted"]["n_prototypes_"] == 12
    assert header["arrays"]["members.0.coef"]["shape"] == model.dual_coef_.shape
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
    with pytest.raises(ValueError, match="not fitted"):
        save(LSSVMRegressor(), tmp_path / "m")
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
    assert load(tmp_path / "m").selection == "random"
    model = FixedSizeLSSVC(9, C=1.0, gamma=1.0, random_state=np.random.RandomState(0))
    model.set_params(device="cpu", cv=[(np.arange(5), np.arange(5, 9))])
    save(model.fit(cases.X, cases.TWO), tmp_path / "m")
    assert read_header(tmp_path / "m")["left_out"] == ["cv", "device", "random_state"]
    loaded = load(tmp_path / "m")
    assert (loaded.device, loaded.cv, loaded.random_state) == (None, 10, None)


def test_a_search_is_stored_without_its_checkpoint(tmp_path):
    search = PathSearch(n_C=3, checkpoint=tmp_path / "tuning.json")
    save(LSSVR("cv", search=search, cv=3).fit(cases.X, cases.Y), tmp_path / "m")
    assert read_header(tmp_path / "m")["left_out"] == ["search.checkpoint"]
    loaded = load(tmp_path / "m").search
    assert (loaded.n_C, loaded.checkpoint) == (3, None)


def test_a_file_cannot_name_a_place_to_write_to(tmp_path):
    save(LSSVR("cv", search=PathSearch(n_C=3), cv=3).fit(cases.X, cases.Y), tmp_path / "m")
    header, arrays = parts((tmp_path / "m").read_bytes())
    parameters = dict(header["model"]["fields"]["parameters"]["dict"])
    for change, problem in [
        (parameters | {"device": "elsewhere"}, "parameters that LSSVR does not have"),
        ({"search": parameters["search"]}, "PathSearch with fields that it does not have"),
    ]:
        header["model"]["fields"]["parameters"]["dict"] = [list(pair) for pair in change.items()]
        (tmp_path / "m").write_bytes(sealed(header, arrays))
        with pytest.raises(lssvm.ModelFileError, match=problem):
            load(tmp_path / "m")
        parameters["search"]["fields"]["checkpoint"] = "elsewhere"


def test_equal_arrays_are_stored_once(tmp_path):
    save(fitted("series"), tmp_path / "m", keep="all")
    _, arrays = read_container(tmp_path / "m")
    rows = fitted("series").record_.plan.rows
    assert sum(a.shape == rows.shape and np.array_equal(a, rows) for a in arrays.values()) == 1
    loaded = load(tmp_path / "m")
    assert loaded.estimator_.support_vectors_ is loaded.record_.inner.expansion.basis


def test_the_order_of_an_array_in_memory_travels(tmp_path):
    save(fitted("fixed"), tmp_path / "m", keep="all")
    loaded = load(tmp_path / "m")
    for name in ("state.map.T", "expansion.basis", "expansion.coef"):
        theirs, ours = loaded.record_, fitted("fixed").record_
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


def test_the_list_of_records_is_closed():
    for name, record in schema().items():
        assert dataclasses.is_dataclass(record.type)
        assert record.type.__module__.startswith("lssvm.")
        assert record.type.__dataclass_params__.frozen, name
        fields = set(record.type.__dataclass_fields__)
        assert record.not_stored | record.nan | record.unnamed <= fields, name
        assert set(record.field_types) >= set(record.fields)
    assert schema()["RBF"].type is RBF


# -- who may read and write --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dual", "fixed", "greedy", "series"])
def test_a_new_model_is_for_its_owner_alone_and_an_old_mode_stays(name, tmp_path):
    before = os.umask(0o022)
    try:
        save(fitted(name), tmp_path / "m")
        assert (tmp_path / "m").stat().st_mode & 0o777 == 0o600
        os.chmod(tmp_path / "m", 0o644)
        save(fitted(name), tmp_path / "m")
        assert (tmp_path / "m").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


def test_a_link_stays_and_the_model_behind_it_is_replaced(tmp_path):
    (tmp_path / "models").mkdir()
    os.symlink(tmp_path / "models" / "first", tmp_path / "m")
    save(fitted("fixed"), tmp_path / "m")
    assert (tmp_path / "m").is_symlink()
    assert type(load(tmp_path / "models" / "first")).__name__ == "FixedSizeLSSVC"


def test_four_threads_that_save_to_one_path_lose_nothing(tmp_path):
    problems, done = [], threading.Event()

    def work(action):
        try:
            action()
        except Exception as error:
            problems.append(error)

    def saves(name):
        for _ in range(15):
            save(fitted(name), tmp_path / "m", metrics={"name": name})

    def loads():
        while not done.is_set():
            load(tmp_path / "m")

    names = ["fixed", "dual", "greedy", "fixed regressor"]
    save(fitted("fixed"), tmp_path / "m")
    [fitted(name) for name in names]
    threads = [threading.Thread(target=work, args=(lambda n=n: saves(n),)) for n in names]
    reader = threading.Thread(target=work, args=(loads,))
    for thread in [*threads, reader]:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    reader.join()
    assert problems == []
    assert read_header(tmp_path / "m")["metrics"]["name"] in names
    assert os.listdir(tmp_path) == ["m"]


# -- other formats -----------------------------------------------------------------------------


def test_a_file_of_an_older_format_is_named_with_what_to_do(tmp_path):
    old = {"format": "1", "lssvm": "0.0.7", "checksum": "0" * 64, "model": "{}", "class": '"LSSVC"'}
    save_file({"dual_coef_": np.ones((2, 1))}, tmp_path / "m", old)
    for read in (load, read_header):
        with pytest.raises(
            lssvm.ModelFileError,
            match=r"format 1, which lssvm 0\.0\.7 has.*reads formats 2 to 4\. Load it with",
        ):
            read(tmp_path / "m")


def test_a_file_of_a_newer_format_is_named_with_what_to_do(tmp_path):
    save(fitted("fixed"), tmp_path / "m")
    header, arrays = parts((tmp_path / "m").read_bytes())
    for number in (7, "2", 2.0, True, None):
        header |= {"format": number, "lssvm": "3.2.1"}
        (tmp_path / "m").write_bytes(sealed(header, arrays))
        for read in (load, read_header):
            with pytest.raises(lssvm.ModelFileError, match=rf"format {number}.*with lssvm 3\.2\.1"):
                read(tmp_path / "m")


def test_messages_show_names_and_do_not_obey_them(tmp_path):
    name = "m\x1b[2J\u202e"
    (tmp_path / name).write_bytes(b"nothing")
    with pytest.raises(lssvm.ModelFileError, match=r"m\\x1b\[2J\\u202e cannot be loaded"):
        load(tmp_path / name)
    save(fitted("fixed"), tmp_path / "m")
    header, arrays = parts((tmp_path / "m").read_bytes())
    header["model"]["record"] = "\x1b[31mMoments"
    (tmp_path / "m").write_bytes(sealed(header, arrays))
    with pytest.raises(lssvm.ModelFileError, match=r"unknown name, \\x1b\[31mMoments"):
        load(tmp_path / "m")
