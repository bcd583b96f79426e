"""Damaged and hostile files: a `ModelFileError` or a model that works, and nothing else."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from safetensors.numpy import save as to_bytes
from safetensors.numpy import save_file
from tests.fuzz.model_files import FACTOR, SLACK, VALUES, parts, run, sealed, taken_by
from tests.fuzz.model_files import tries as attempt
from tests.io.cases import fitted

import lssvm
from lssvm import load, save
from lssvm._core.errors import InvalidInputError
from lssvm.io import read_header
from lssvm.io.container import MAX_HEADER, write_container

pytestmark = pytest.mark.usefixtures("without_nested_folds")

NAMES = ["fixed", "dual l0", "fixed regressor spfs", "series greedy", "greedy kmp"]
NAMES += ["table parts", "table regressor of two"]
MUTATIONS = 300  # for each of seven models


def stored(name, path, keep="prediction"):
    save(fitted(name), path, keep=keep, metrics={"error": 0.25})
    return path.read_bytes()


def tries(path, data):
    """Load a file: None where it was refused, else the model after it has predicted."""
    return attempt(str(path), data)


def framed(header, arrays=b""):
    """Return a file of a header of the format, given as a mapping or as bytes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + arrays


@pytest.mark.parametrize("name", NAMES)
def test_no_file_of_changed_bytes_loads(name, tmp_path):
    data = stored(name, tmp_path / "m")
    rng = np.random.default_rng(1)
    for _ in range(MUTATIONS):
        changed = bytearray(data)
        for place in rng.integers(len(data), size=rng.integers(1, 4)):
            changed[place] ^= int(rng.integers(1, 256))
        if bytes(changed) != data:
            (tmp_path / "m").write_bytes(changed)
            with pytest.raises(lssvm.ModelFileError, match="cannot be loaded"):
                load(tmp_path / "m")


@pytest.mark.parametrize("name", NAMES)
def test_files_changed_at_random_load_or_are_refused(name):
    tried = run(seed=3, seconds=600, files=60, names=[name])
    assert tried.files == 60
    assert 0 < tried.loaded < 60


def test_the_fuzz_notices_a_raw_error_and_memory_that_is_not_explained(tmp_path, monkeypatch):
    data = stored("fixed", tmp_path / "m")
    monkeypatch.setattr("tests.fuzz.model_files.load", lambda path: np.ones(SLACK // 4))
    if taken_by(lambda: np.ones(2**23))[1]:  # where memory can be measured
        with pytest.raises(AssertionError, match="bytes took"):
            tries(tmp_path / "m", data)
    monkeypatch.setattr("tests.fuzz.model_files.load", lambda path: {}["x"])
    with pytest.raises(KeyError):
        tries(tmp_path / "m", data)


@pytest.mark.parametrize("name", NAMES[:3])
def test_a_truncated_file_is_refused(name, tmp_path):
    data = stored(name, tmp_path / "m")
    for length in [*range(0, 40, 3), *range(64, len(data), 397), len(data) - 1]:
        assert tries(tmp_path / "m", data[:length]) is None
    assert tries(tmp_path / "m", data + b"\0") is None
    assert tries(tmp_path / "m", data) is not None


class Bomb:
    def __reduce__(self):
        return (sys.exit, ("code of a file was run",))


def test_a_pickle_by_another_name_is_refused(tmp_path):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert tries(tmp_path / "m", pickle.dumps(Bomb(), protocol)) is None
        assert tries(tmp_path / "m", pickle.dumps(fitted("fixed"), protocol)) is None
    np.save(tmp_path / "a.npy", np.array([Bomb()]), allow_pickle=True)
    assert tries(tmp_path / "m", (tmp_path / "a.npy").read_bytes()) is None


def entry(shape, place, dtype="F64"):
    return {"dtype": dtype, "shape": shape, "data_offsets": place}


BASE = {"header": '{"checksum":"' + "0" * 64 + '","format":4,"lssvm":"0.1"}'}


@pytest.mark.parametrize(
    ("entries", "room"),
    [
        ({"a": entry([2**60], [0, 2**63])}, 8),
        ({"a": entry([2**31, 2**31, 4], [0, 0])}, 0),
        ({"a": entry([10**12], [0, 8 * 10**12])}, 8),
        ({"a": entry([-1], [0, -8])}, 0),
        ({"a": entry([1.0], [0, 8])}, 8),
        ({"a": entry([True], [0, 8])}, 8),
        ({"a": entry([1], [0, 8]), "b": entry([1], [0, 8])}, 8),
        ({"a": entry([1], [8, 16])}, 16),
        ({"a": entry([1], [0, 8])}, 16),
        ({"a": entry([1], [0, 8], "F128")}, 8),
        ({"a": entry([4], [0, 8], "BF16")}, 8),
        ({"a": entry([1], [0, 8], ["F64"])}, 8),
        ({"a": entry([1] * 9, [0, 8])}, 8),
        ({"a": entry([1] * 90, [0, 8])}, 8),
        ({"a": entry("x", [0, 8])}, 8),
        ({"a": [1]}, 8),
        ({"a": entry([3], [0, 3], "BOOL")}, 3),
    ],
)
def test_absurd_sizes_are_refused_before_memory_is_taken(entries, room, tmp_path):
    data = framed({"__metadata__": BASE, **entries}, b"\x07" * room)
    tracemalloc.start()
    assert tries(tmp_path / "m", data) is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20
    with pytest.raises(lssvm.ModelFileError, match="cannot be loaded"):
        read_header(tmp_path / "m")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 8,
        (2**63).to_bytes(8, "little") + b"{}",
        (2 * MAX_HEADER).to_bytes(8, "little") + b" " * 100,
        framed(b"{}"),
        framed(b"[]"),
        framed(b"[" * 200_000),
        framed(b'{"a":' * 40_000),
        framed(b'{"__metadata__":{"header":"1","header":"2"}}'),
        framed(b'{"__metadata__":{"a":NaN}}'),
        framed(b'{"__metadata__":{"header":1}}'),
        framed(b'{"__metadata__":{}, "a": ' + b"9" * 5000 + b"}"),
        framed({"__metadata__": BASE}),
        framed({"__metadata__": {"header": '{"checksum":"zz"}'}}),
        framed({"__metadata__": {"header": '{"checksum":"' + "[" * 100_000}}),
        framed({"__metadata__": {"header": '{"checksum":"1","checksum":"2"}'}}),
        framed({"__metadata__": {"header": '{"checksum":""}'}}),
        sealed({"format": 4}, {}),
        sealed({"format": 4, "lssvm": "0.1"}, {}),
        sealed({"format": 4, "lssvm": "0.1", "keep": "all", "model": 3}, {}),
        sealed({"format": 4, "lssvm": "0.1", "keep": [], "model": {}}, {}),
    ],
    ids=range(21),
)
def test_strange_headers_are_refused(data, tmp_path):
    (tmp_path / "m").write_bytes(data)
    for read in (load, read_header):
        with pytest.raises(lssvm.ModelFileError, match="cannot be loaded"):
            read(tmp_path / "m")


# -- more than the length of a file explains ---------------------------------------------------


def edited(name, path, change):
    """Return a file after its parameters and its arrays were changed, and the first of them."""
    header, arrays = parts(stored(name, path))
    pairs = dict(header["model"]["fields"]["parameters"]["dict"])
    change(pairs, arrays)
    header["model"]["fields"]["parameters"]["dict"] = [list(pair) for pair in pairs.items()]
    return sealed(header, arrays)


def refused_cheaply(path, data, match):
    """Load a file that makes too much; return its memory by its length."""
    path.write_bytes(data)

    def refused():
        with pytest.raises(lssvm.ModelFileError, match=match):
            load(path)

    _, memory = taken_by(refused)
    assert memory <= SLACK + FACTOR * len(data)


def test_labels_are_bounded_in_sum_not_one_by_one(tmp_path):
    """The file that took 4.1 GB: labels of a great width, in many arrays."""

    def change(pairs, arrays):
        stored = []
        for i in range(40):
            arrays[f"t{i}"] = np.full(400, 97, dtype=np.uint8)
            arrays[f"t{i}.ends"] = np.full(900, 400, dtype=np.int64)
            stored.append({"texts": f"t{i}", "ends": f"t{i}.ends", "objects": False})
        pairs["targets"] = stored

    data = edited("fixed", tmp_path / "m", change)
    assert 40 * 900 * 400 * 4 > 2**25 + 16 * len(data)
    refused_cheaply(tmp_path / "m", data, "more than its length explains")


def test_one_long_label_among_many_is_refused(tmp_path):
    def change(pairs, arrays):
        arrays["t"] = np.full(20_000, 97, dtype=np.uint8)
        arrays["t.ends"] = np.full(3000, 20_000, dtype=np.int64)
        pairs["targets"] = {"texts": "t", "ends": "t.ends", "objects": False}

    refused_cheaply(
        tmp_path / "m", edited("fixed", tmp_path / "m", change), "than its length explains"
    )


def test_a_sparse_matrix_in_the_place_of_a_parameter_is_refused(tmp_path):
    """Its shape takes no bytes in a file, and all of memory where it is compared."""

    def change(pairs, arrays):
        arrays["one"], arrays["at"] = np.ones(1), np.zeros(1, dtype=np.int64)
        arrays["to"] = np.array([0, 1])
        csr = {"data": {"array": "one"}, "indices": {"array": "at"}, "indptr": {"array": "to"}}
        pairs["class_weight"] = [{"csr": csr, "shape": [1, 2**40], "kind": "matrix"}]

    data = edited("fixed", tmp_path / "m", change)
    refused_cheaply(tmp_path / "m", data, "a parameter is a sparse matrix")


def test_an_output_code_of_too_many_classes_is_refused_before_it_is_compared(tmp_path):
    def change(pairs, arrays):
        arrays["large"] = np.ones((50_000, 16), dtype=np.int8)
        fields = {"matrix": {"array": "large"}, "name": "x"}
        pairs["multiclass"] = {"record": "Code", "fields": fields}

    refused_cheaply(
        tmp_path / "m", edited("fixed", tmp_path / "m", change), "more than 4096 classes"
    )


def test_an_array_that_is_named_often_is_not_copied_often(tmp_path):
    def change(pairs, arrays):
        words = np.unpackbits(np.arange(256, dtype=np.uint8)).reshape(256, 8)
        arrays["large"] = 2 * words.astype(np.int8) - 1
        pairs["targets"] = [
            {"record": "Code", "fields": {"matrix": {"array": "large"}, "name": f"{i}"}}
            for i in range(2000)
        ]

    refused_cheaply(
        tmp_path / "m", edited("fixed", tmp_path / "m", change), "more than its length explains"
    )


def test_equal_values_are_made_once(tmp_path):
    def change(pairs, arrays):
        arrays["t"] = np.full(1000, 97, dtype=np.uint8)
        arrays["t.ends"] = np.arange(1, 1001)
        pairs["scoring"] = [{"texts": "t", "ends": "t.ends", "objects": False}] * 5000

    (tmp_path / "m").write_bytes(edited("fixed", tmp_path / "m", change))
    found, memory = taken_by(lambda: load(tmp_path / "m").scoring)
    assert memory < SLACK
    assert len(found) == 5000
    assert all(array is found[0] for array in found)


@pytest.mark.parametrize("place", ["seed", "iterations", "n_features", "n_jobs", "class_weight"])
@pytest.mark.parametrize("number", [10**30, -(10**30), 2**64])
def test_whole_numbers_of_more_than_64_bits_are_refused(place, number, tmp_path):
    header, arrays = parts(stored("fixed", tmp_path / "m"))
    model = header["model"]["fields"]
    if place in ("n_jobs", "class_weight"):
        for pair in model["parameters"]["dict"]:
            if pair[0] == place:
                pair[1] = number if place == "n_jobs" else {"dict": [[0, number]]}
    else:
        fit = model["record"]["fields"]
        places = {"n_features": model, "iterations": fit["state"]["fields"]}
        places.get(place, fit)[place] = number
    (tmp_path / "m").write_bytes(sealed(header, arrays))
    with pytest.raises(lssvm.ModelFileError, match="more than 64 bits"):
        load(tmp_path / "m")


HEADERS = {
    "lists": "[" + "[]," * 4_500_000 + "0]",
    "mappings": "[" + '{"a":0},' * 1_800_000 + "0]",
    "lists that are few enough": "[" + "[]," * 1_040_000 + "0]",
    "texts": "[" + '"abcdefgh",' * 1_000_000 + "0]",
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_long_header_takes_little_memory(name, tmp_path):
    """The header of 15 MB that took 734 MB."""
    text = '{"format":4,"lssvm":"0.2","keep":"all","model":' + HEADERS[name] + "}"
    (tmp_path / "m").write_bytes(sealed(text, {}))
    for read in (load, read_header):

        def refused(read=read):
            with pytest.raises(lssvm.ModelFileError, match="cannot be loaded"):
                read(tmp_path / "m")

        assert taken_by(refused)[1] < 256 * 2**20


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path):
    with pytest.raises(InvalidInputError, match="table of its 200,000 arrays"):
        write_container(tmp_path / "m", {}, {str(i): np.empty(0) for i in range(200_000)})
    with pytest.raises(InvalidInputError, match="holds at most 16,777,216"):
        write_container(tmp_path / "m", {"model": "x" * 2**24}, {})
    assert os.listdir(tmp_path) == []


def test_deeply_nested_values_are_refused(tmp_path):
    header, arrays = parts(stored("fixed", tmp_path / "m"))
    for depth in (30, 900, 20_000):
        deep = "[" * depth + "]" * depth
        text = json.dumps(header).replace('["scoring", null]', f'["scoring", {deep}]')
        assert deep in text
        assert tries(tmp_path / "m", sealed(text, arrays)) is None


def test_a_string_in_the_place_of_a_number_makes_no_product(tmp_path):
    header, arrays = parts(stored("series greedy", tmp_path / "m"))
    layout = header["model"]["fields"]["record"]["fields"]["layout"]["fields"]
    layout |= {"lags": "x" * 1000, "exog_lags": 900_000}
    refused_cheaply(tmp_path / "m", sealed(header, arrays), "lags is of another type")


def test_numbers_that_are_not_finite_are_refused(tmp_path):
    header, arrays = parts(stored("fixed", tmp_path / "m"))
    for odd in (np.nan, np.inf):
        arrays["members.0.coef"][0, 0] = odd
        (tmp_path / "m").write_bytes(sealed(header, arrays))
        with pytest.raises(lssvm.ModelFileError, match="coef holds NaN or infinity"):
            load(tmp_path / "m")


def test_what_lapack_reads_is_float64(tmp_path):
    """The file that corrupted memory: LAPACK took a map of float32 for one of float64."""
    for name in ("state.map.T", "state.moments.0.gram"):
        header, arrays = parts(stored("fixed regressor", tmp_path / "m", "all"))
        arrays[name] = arrays[name].astype(np.float32)
        (tmp_path / "m").write_bytes(sealed(header, arrays))
        with pytest.raises(lssvm.ModelFileError, match="is not an array of float64"):
            load(tmp_path / "m")


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_every_strange_value_in_every_place_of_one_file(value, tmp_path):
    header, arrays = parts(stored("fixed", tmp_path / "m", "support"))
    member = ("members", "tuple", 0, "fields")
    places = ((), ("state", "fields"), member, (*member, "model", "fields"))
    count = 0
    for way in places:
        for name in inside(header, way):
            changed = copy.deepcopy(header)
            inside(changed, way)[name] = value
            tries(tmp_path / "m", sealed(changed, arrays))
            count += 1
    assert count > 35


def inside(header, way):
    """Return the fields of a record below that of the fit."""
    fields = header["model"]["fields"]["record"]["fields"]
    for key in way:
        fields = fields[key]
    return fields


def test_a_safetensors_file_of_something_else_is_refused(tmp_path):
    save_file({"a": np.ones(3)}, tmp_path / "m", {"framework": "none"})
    with pytest.raises(lssvm.ModelFileError, match="no header of lssvm"):
        load(tmp_path / "m")
    save_file({"a": np.ones(3)}, tmp_path / "m")
    with pytest.raises(lssvm.ModelFileError, match="cannot be loaded"):
        load(tmp_path / "m")
    write_container(tmp_path / "m", {"framework": "none"}, {"a": np.ones(3)})
    with pytest.raises(lssvm.ModelFileError, match="nothing refers to"):
        load(tmp_path / "m")


def test_the_order_of_the_arrays_in_a_file_does_not_matter(tmp_path):
    data = stored("fixed", tmp_path / "m")
    header, arrays = parts(data)
    assert len(to_bytes(dict(reversed(arrays.items())))) < len(data)
    assert tries(tmp_path / "m", sealed(header, dict(reversed(arrays.items())))) is not None


def test_a_model_file_error_is_a_value_error_and_other_errors_stay_as_they_are(tmp_path):
    assert issubclass(lssvm.ModelFileError, ValueError)
    for read in (load, read_header):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "nothing")
        with pytest.raises(IsADirectoryError):
            read(tmp_path)


LOADS = """
import sys
class Never:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("onnx", "torch"):
            raise AssertionError(name)
sys.meta_path.insert(0, Never())
from lssvm import load
from lssvm.io import read_header
read_header(sys.argv[1])
assert "sklearn" not in sys.modules and "scipy" not in sys.modules
model = load(sys.argv[1])
print(type(model).__name__)
"""


def test_a_header_needs_neither_scipy_nor_scikit_learn(tmp_path):
    stored("fixed", tmp_path / "m")
    command = [sys.executable, "-c", LOADS, str(tmp_path / "m")]
    here = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(lssvm.__file__))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=here)
    assert (done.stdout.strip(), done.returncode) == ("FixedSizeLSSVC", 0), done.stderr
