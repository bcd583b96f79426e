"""Damaged and hostile files: a `ModelFileError` or a model that works, and nothing else."""

from __future__ import annotations

import hashlib
import json
import pickle
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
from tests.io.cases import fitted, new_rows

import lssvm
from lssvm import load, save
from lssvm._core.errors import LSSVMError
from lssvm.io import read_header
from lssvm.io.container import MAX_HEADER, write_container

NAMES = ["fixed", "dual l0", "fixed regressor spfs", "series greedy", "greedy kmp"]
MUTATIONS = 2000  # for each of five models


def stored(name, path, keep="prediction"):
    save(fitted(name), path, keep=keep, metrics={"error": 0.25})
    return path.read_bytes()


def split(data):
    """Return header and arrays of a file."""
    length = int.from_bytes(data[:8], "little")
    return data[8 : 8 + length], data[8 + length :]


def sealed(header, arrays):
    """Return a file whose checksum is right."""
    cut = header.find(b'"checksum":"')
    if cut >= 0:
        cut += len('"checksum":"')
        blank = header[:cut] + b"0" * 64 + header[cut + 64 :]
        digest = hashlib.sha256(blank + arrays).hexdigest().encode()
        header = blank[:cut] + digest + blank[cut + 64 :]
    return len(header).to_bytes(8, "little") + header + arrays


def packed(header, arrays=b""):
    """Return a file of a header given as a mapping."""
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return sealed(text, arrays)


def tries(path, data):
    """Load a file: None where it was refused, else the model after it has predicted."""
    path.write_bytes(data)
    try:
        model = load(path)
    except lssvm.ModelFileError:
        return None
    read_header(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numbers that were changed overflow
        try:
            if hasattr(model, "forecast"):
                model.forecast(2)
            else:
                model.predict(new_rows(model))
                if hasattr(model, "predict_proba"):
                    model.predict_proba(new_rows(model))
                elif hasattr(model, "predict_interval"):
                    model.predict_interval(new_rows(model))
        except (LSSVMError, np.linalg.LinAlgError):
            pass  # a model of other numbers, such as a gram that is not positive definite
    return model


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
def test_changed_bytes_with_the_right_checksum_load_or_are_refused(name, tmp_path):
    header, arrays = split(stored(name, tmp_path / "m"))
    rng = np.random.default_rng(2)
    loaded = 0
    for i in range(MUTATIONS // 4):
        changed = [bytearray(header), bytearray(arrays)]
        part = changed[i % 2]
        for place in rng.integers(len(part), size=rng.integers(1, 4)):
            part[place] ^= int(rng.integers(1, 256))
        loaded += tries(tmp_path / "m", sealed(*map(bytes, changed))) is not None
    assert 0 < loaded < MUTATIONS // 4


VALUES = [
    None, True, 0, -1, 3, 10**30, 0.5, -1e308, "", "x", "rbf", "precomputed", [], [0], {}, [[]],
    {"array": "dual_coef_"}, {"array": "nothing"}, {"tuple": [1, 2]}, {"float": "nan"},
    {"object": "RBF", "fields": {"gamma": 1.0}}, {"object": "Precomputed", "fields": {}},
    {"object": "os.system", "fields": {}}, {"dict": [[1, 2]]}, {"dict": [[[], 2]]},
    {"labels": ["a", "b"], "dtype": "<U1"}, {"labels": ["a"], "dtype": "<U9999999"},
    {"labels": [1, 2], "dtype": "|b1"}, {"dtype": "<f8"}, {"model": {"class": "LSSVC"}},
]  # fmt: skip


def nodes(tree, path=()):
    """Yield the place of every value of a tree of JSON."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from nodes(value, (*path, key))


def changed_tree(tree, rng):
    """Return a copy in which one value was replaced, removed or doubled."""
    tree = json.loads(json.dumps(tree))
    places = list(nodes(tree))
    *way, last = places[rng.integers(len(places))]
    inner = tree
    for key in way:
        inner = inner[key]
    what = rng.integers(4)
    if what == 0:
        inner.pop(last)
    elif what == 1 and isinstance(inner, list):
        inner.append(inner[last])
    else:
        inner[last] = VALUES[rng.integers(len(VALUES))]
    return tree


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("keep", ["all", "prediction"])
def test_changed_values_load_or_are_refused(name, keep, tmp_path):
    header, arrays = split(stored(name, tmp_path / "m", keep))
    whole = json.loads(header)
    texts = {k: json.loads(v) for k, v in whole["__metadata__"].items() if k in _JSON}
    rng = np.random.default_rng(3)
    loaded = 0
    for _ in range(MUTATIONS // 10):
        new = changed_tree(texts, rng) if rng.integers(8) else texts
        new = {k: v for k, v in new.items() if k in _JSON}
        tree = dict(whole)
        if new is texts or rng.integers(8) == 0:
            tree = changed_tree({k: v for k, v in whole.items() if k != "__metadata__"}, rng)
        written = {k: json.dumps(v, ensure_ascii=False) for k, v in new.items()}
        tree = {"__metadata__": {**whole["__metadata__"], **written}} | {
            k: v for k, v in tree.items() if k != "__metadata__"
        }
        with_hash(tree["__metadata__"], new)
        loaded += tries(tmp_path / "m", packed(tree, arrays)) is not None
    assert 0 < loaded < MUTATIONS // 10


_JSON = ("class", "features", "classes", "preparation", "metrics", "model")


def with_hash(metadata, texts):
    """Put in the hash of the schema that belongs to changed texts."""
    ready = texts.get("preparation") or {}
    if not isinstance(ready, dict) or "features" not in texts or "classes" not in texts:
        return
    parts = {
        "features": texts["features"],
        "kinds": ready.get("kinds"),
        "categories": ready.get("categories"),
        "classes": texts["classes"],
    }
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    metadata["schema_sha256"] = json.dumps(digest)


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


BASE = {"format": "1", "lssvm": "0.1", "checksum": "0" * 64}


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
        ({"a": entry([1], [0, 8], ["F64"])}, 8),
        ({"a": entry([1] * 9, [0, 8])}, 8),
        ({"a": entry("x", [0, 8])}, 8),
        ({"a": [1]}, 8),
        ({"a": entry([3], [0, 3], "BOOL")}, 3),
    ],
)
def test_absurd_sizes_are_refused_before_memory_is_taken(entries, room, tmp_path):
    data = packed({"__metadata__": BASE, **entries}, b"\x07" * room)
    tracemalloc.start()
    assert tries(tmp_path / "m", data) is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 8,
        (2**63).to_bytes(8, "little") + b"{}",
        (MAX_HEADER + 1).to_bytes(8, "little") + b" " * 100,
        (2).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (200_000).to_bytes(8, "little") + b"[" * 200_000,
        (200_000).to_bytes(8, "little") + b'{"a":' * 40_000,
        sealed(b'{"__metadata__":{"a":"1","a":"2"}}', b""),
        sealed(b'{"__metadata__":{"a":NaN}}', b""),
        sealed(b'{"__metadata__":{"a":1}}', b""),
        sealed(b'{"__metadata__":{}, "a": ' + b"9" * 5000 + b"}", b""),
        packed({"__metadata__": BASE}),
        packed({"__metadata__": {**BASE, "checksum": "zz"}}),
        packed({"__metadata__": {"checksum": "0" * 64}}),
        packed({"__metadata__": {**BASE, "format": "0"}}),
        packed({"__metadata__": {**BASE, "format": "²"}}),
        packed({"__metadata__": {**BASE, "format": "-1"}}),
    ],
    ids=range(18),
)
def test_strange_headers_are_refused(data, tmp_path):
    (tmp_path / "m").write_bytes(data)
    with pytest.raises(lssvm.ModelFileError, match="cannot be loaded"):
        load(tmp_path / "m")
    with pytest.raises(lssvm.ModelFileError, match="cannot be loaded"):
        read_header(tmp_path / "m")


def edited(data, change):
    """Return a file after its record and its arrays were changed."""
    header, arrays = split(data)
    tree = json.loads(header)
    record = json.loads(tree["__metadata__"]["model"])
    arrays = change(tree, record, arrays) or arrays
    tree["__metadata__"]["model"] = json.dumps(record)
    return packed(tree, arrays)


def test_an_output_code_of_too_many_classes_is_refused_before_it_is_compared(tmp_path):
    def change(tree, record, arrays):
        size = len(arrays)
        tree["large"] = entry([50_000, 16], [size, size + 800_000], "I8")
        record["parameters"]["multiclass"] = {
            "object": "Code",
            "fields": {"matrix": {"array": "large"}, "name": "x"},
        }
        return arrays + b"\1" * 800_000

    tracemalloc.start()
    assert tries(tmp_path / "m", edited(stored("fixed", tmp_path / "m"), change)) is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24


def test_an_array_that_is_named_often_is_not_copied_often(tmp_path):
    def change(tree, record, arrays):
        size = len(arrays)
        tree["large"] = entry([256, 8], [size, size + 2048], "I8")
        code = {"object": "Code", "fields": {"matrix": {"array": "large"}, "name": "x"}}
        record["parameters"]["targets"] = [code] * 2000
        words = np.unpackbits(np.arange(256, dtype=np.uint8)).reshape(256, 8)
        return arrays + (2 * words.astype(np.int8) - 1).tobytes()

    data = edited(stored("fixed", tmp_path / "m"), change)
    (tmp_path / "m").write_bytes(data)
    with pytest.raises(lssvm.ModelFileError, match="refers to its arrays too often"):
        load(tmp_path / "m")


def test_deeply_nested_values_are_refused(tmp_path):
    header, arrays = split(stored("fixed", tmp_path / "m"))
    tree = json.loads(header)
    model = json.loads(tree["__metadata__"]["model"])
    for depth in (30, 900, 20_000):
        deep = "[" * depth + "]" * depth
        text = json.dumps(model).replace('"coef0": 1.0', f'"coef0": {deep}')
        assert deep in text
        tree["__metadata__"]["model"] = text
        assert tries(tmp_path / "m", packed(tree, arrays)) is None


def test_a_newer_format_names_the_version_that_is_needed(tmp_path):
    header, arrays = split(stored("fixed", tmp_path / "m"))
    tree = json.loads(header)
    tree["__metadata__"] |= {"format": "7", "lssvm": "3.2.1"}
    (tmp_path / "m").write_bytes(packed(tree, arrays))
    for read in (load, read_header):
        with pytest.raises(lssvm.ModelFileError, match=r"format 7.*lssvm 3\.2\.1 or newer"):
            read(tmp_path / "m")


def test_numbers_that_are_not_finite_are_refused(tmp_path):
    header, arrays = split(stored("fixed", tmp_path / "m"))
    entries = json.loads(header)
    begin = entries["dual_coef_"]["data_offsets"][0]
    for odd in (np.nan, np.inf):
        changed = arrays[:begin] + np.float64(odd).tobytes() + arrays[begin + 8 :]
        (tmp_path / "m").write_bytes(sealed(header, changed))
        with pytest.raises(lssvm.ModelFileError, match="dual_coef_ holds NaN or infinity"):
            load(tmp_path / "m")


def test_a_safetensors_file_of_something_else_is_refused(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    numpy.save_file({"a": np.ones(3)}, tmp_path / "m", {"framework": "none"})
    with pytest.raises(lssvm.ModelFileError, match="no checksum"):
        load(tmp_path / "m")
    write_container(str(tmp_path / "m"), {"framework": "none"}, {"a": np.ones(3)})
    with pytest.raises(lssvm.ModelFileError, match="safetensors file of something else"):
        load(tmp_path / "m")


def test_a_model_file_error_is_a_value_error_and_other_errors_stay_as_they_are(tmp_path):
    assert issubclass(lssvm.ModelFileError, ValueError)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)


LOADS = """
import sys
class Never:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("safetensors", "onnx", "torch"):
            raise AssertionError(name)
sys.meta_path.insert(0, Never())
from lssvm import load
from lssvm.io import read_header
read_header(sys.argv[1])
assert "sklearn" not in sys.modules and "scipy" not in sys.modules
model = load(sys.argv[1])
assert "safetensors" not in sys.modules
print(type(model).__name__)
"""


def test_a_header_needs_only_numpy_and_a_model_no_library_for_the_format(tmp_path):
    stored("fixed", tmp_path / "m")
    command = [sys.executable, "-c", LOADS, str(tmp_path / "m")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("FixedSizeLSSVC", 0), done.stderr
