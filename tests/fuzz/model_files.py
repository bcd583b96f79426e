"""Model files changed at random, with checksums that fit: refused, or a model that works.

``python -m tests.fuzz.model_files --seed 0 --seconds 60`` goes on for a minute. Every file is
loaded with the resident memory of the process measured; a file that raises anything but a
`ModelFileError`, that takes more memory than its length explains, or whose model raises something
raw, ends the run with its seed, its number and the file itself.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from safetensors.numpy import save as to_bytes
from tests.io.cases import CASES, fitted
from tests.io.test_round_trip import answers, updated

from lssvm import ModelFileError, load, save
from lssvm._core.errors import LSSVMError
from lssvm.io import read_header

SLACK = 64 * 2**20  # bytes: libraries that the first load imports, and what a small file may make
FACTOR = 64  # bytes of memory for each byte of a file: Python's objects are larger than JSON


def parts(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header of a file as JSON (without its checksum) and its arrays."""
    length = int.from_bytes(data[:8], "little")
    raw = json.loads(data[8 : 8 + length])
    header = json.loads(raw.pop("__metadata__")["header"])
    del header["checksum"]
    kinds = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I8": "i1", "BOOL": "?"}
    kinds |= {"I16": "<i2", "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1"}
    arrays = {}
    for name, entry in raw.items():
        begin, end = (8 + length + place for place in entry["data_offsets"])
        flat = np.frombuffer(data[begin:end], dtype=kinds[entry["dtype"]])
        arrays[name] = flat.reshape(entry["shape"]).copy()
    return header, arrays


def checksum(text: str, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name!r} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def sealed(header: Any, arrays: dict[str, np.ndarray]) -> bytes:
    """Return a file whose checksum is right; the header is JSON or its text."""
    text = header if isinstance(header, str) else json.dumps(header, ensure_ascii=False)
    whole = f'{{"checksum":"{checksum(text, arrays)}",{text[1:]}'
    return to_bytes(arrays, {"header": whole})


# -- changes -----------------------------------------------------------------------------------

VALUES: list[Any] = [
    None, True, 0, -1, 3, 10**6, 10**30, 0.5, -1e308, "", "x", "rbf", "precomputed", "x" * 5000,
    [], [0], {}, [[]], [None] * 3000,
    {"array": "members.0.coef"}, {"array": "nothing"}, {"tuple": [1, 2]}, {"float": "nan"},
    {"array": "members.0.coef", "order": "F"}, {"float": []}, {"tuple": {}},
    {"record": "RBF", "fields": {"gamma": 1.0}}, {"record": "Precomputed", "fields": {}},
    {"record": "os.system", "fields": {}}, {"record": [], "fields": {}}, {"record": "RBF"},
    {"dict": [[1, 2]]}, {"dict": [[[], 2]]}, {"dict": [1]}, {"objects": ["a", None, 1]},
    {"objects": [[1]]}, {"texts": "members.0.coef", "ends": "members.0.coef"},
    {"dtype": "<f8"}, {"dtype": "<U9999999"}, {"dtype": {}},
    {"record": "Code", "fields": {"matrix": [[1], [-1]], "name": "x"}}, {"tuple": []},
    {"record": "Metric", "fields": {"map": None}}, "laplacian", "quantiles", "Europe/Brussels",
    {"record": "Model", "fields": {"kind": "LSSVC", "parameters": {"dict": []}, "left_out": []}},
]  # fmt: skip


def nodes(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every value of a tree of JSON."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in pairs:
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from nodes(value, (*path, key))


def change_value(header: dict[str, Any], rng: np.random.Generator) -> None:
    """Replace, remove, double or exchange values of the header."""
    places = list(nodes(header))
    *way, last = places[rng.integers(len(places))]
    inner: Any = header
    for key in way:
        inner = inner[key]
    what = rng.integers(5)
    if what == 0:
        inner.pop(last)
    elif what == 1 and isinstance(inner, list):
        inner += [inner[last]] * int(rng.integers(1, 200))
    elif what == 2:
        other: Any = header
        for key in places[rng.integers(len(places))]:
            other = other[key]
        inner[last] = json.loads(json.dumps(other))
    else:
        inner[last] = json.loads(json.dumps(VALUES[rng.integers(len(VALUES))]))


def change_array(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    """Change bytes, length, axes or the type of an array."""
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays[name]
    what = rng.integers(6)
    if what == 0 and array.size:
        raw = bytearray(array.tobytes())
        for place in rng.integers(len(raw), size=rng.integers(1, 4)):
            raw[place] ^= int(rng.integers(1, 256))
        kind = np.uint8 if array.dtype == bool else array.dtype
        arrays[name] = np.frombuffer(bytes(raw), dtype=kind).reshape(array.shape)
    elif what == 1 and array.size:
        flat = array.reshape(-1).copy()
        odd = [0, 1, -1, 2**31, 2**62, np.inf, np.nan, 1e300]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flat[rng.integers(len(flat))] = np.array(odd[rng.integers(len(odd))]).astype(flat.dtype)
        arrays[name] = flat.reshape(array.shape)
    elif what == 2:
        arrays[name] = array[: rng.integers(len(array) + 1)] if array.ndim else array.reshape(1)
    elif what == 3:
        arrays[name] = np.concatenate([array] * int(rng.integers(2, 50))) if array.ndim else array
    elif what == 4:
        arrays[name] = array.reshape(-1) if array.ndim != 1 else array[None, :]
    else:
        kinds = [np.float32, np.int64, np.uint8, np.bool_, np.float64, np.uint64]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays[name] = array.astype(kinds[rng.integers(len(kinds))])


def grow(header: dict[str, Any], arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    """Put in something that would make much more than the file has."""
    n = int(rng.integers(100, 4000))
    what = rng.integers(5)
    if what == 0:  # one long text among many short ones
        ends = np.full(n, 20_000, dtype=np.int64)
        arrays |= {"t": np.full(20_000, 97, dtype=np.uint8), "t.ends": ends}
        stored: Any = {"texts": "t", "ends": "t.ends", "objects": False}
    elif what == 1:  # an output code of many classes
        arrays["t"] = rng.choice(np.array([-1, 1], dtype=np.int8), size=(n, 12))
        code = {"matrix": {"array": "t"}}
        stored = [{"record": "Code", "fields": {**code, "name": f"{i}"}} for i in range(30)]
    elif what == 2:  # one array, copied by many records
        arrays["t"] = np.ones(n)
        rbf = {"gamma": {"array": "t"}}
        stored = [{"record": "Matern", "fields": {**rbf, "nu": 0.5 + i}} for i in range(2 * n)]
    elif what == 3:  # a sparse matrix of great shape
        arrays |= {"t": np.ones(1), "t.i": np.zeros(1, np.int32), "t.p": np.array([0, 1], np.int32)}
        csr = {"data": {"array": "t"}, "indices": {"array": "t.i"}, "indptr": {"array": "t.p"}}
        stored = [{"csr": csr, "shape": [1, 2**40 + i]} for i in range(n)]
    else:  # labels named again and again
        ends = np.arange(n, dtype=np.int64) + 1
        arrays |= {"t": np.full(n, 97, dtype=np.uint8), "t.ends": ends}
        stored = [{"texts": "t", "ends": "t.ends", "objects": bool(i % 2)} for i in range(n)]
    pairs = header["model"]["fields"]["parameters"]["dict"]
    pairs[rng.integers(len(pairs))][1] = stored


def changed(
    header: dict[str, Any], arrays: dict[str, np.ndarray], rng: np.random.Generator
) -> bytes:
    """Return a file with one to three changes; at times with bytes changed after all."""
    header, arrays = json.loads(json.dumps(header)), dict(arrays)
    if rng.integers(20) == 0:
        grow(header, arrays, rng)
    else:
        for _ in range(rng.integers(1, 4)):
            if rng.integers(2):
                change_value(header, rng)
            else:
                change_array(arrays, rng)
    data = sealed(header, {name: np.ascontiguousarray(a) for name, a in arrays.items()})
    if rng.integers(10) == 0:
        raw = bytearray(data)
        raw[rng.integers(len(raw))] ^= int(rng.integers(1, 256))
        data = bytes(raw[: rng.integers(len(raw))] if rng.integers(4) == 0 else raw)
    return data


# -- tries -------------------------------------------------------------------------------------


def resident() -> tuple[int, int]:
    """Return the resident memory of this process and its peak in bytes (Linux; else 0, 0)."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
    except OSError:
        return 0, 0
    return tuple(int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))  # type: ignore


def taken_by(action: Any) -> tuple[Any, int]:
    """Return what a call gives and the memory it has taken at its peak, in bytes."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # the peak begins anew
    except OSError:
        return action(), 0
    before = resident()[0]
    result = action()
    return result, resident()[1] - before


def tries(path: str, data: bytes) -> Any:
    """Load a file: None where it was refused, else the model after it has predicted."""
    with open(path, "wb") as file:
        file.write(data)

    def attempt() -> Any:
        try:
            return load(path)
        except ModelFileError as error:
            shown = str(error)
            assert shown.isprintable(), ascii(shown[:500])
            assert len(shown) < 2000, shown[:500]
            return None

    model, memory = taken_by(attempt)
    assert memory <= SLACK + FACTOR * len(data), f"{len(data)} bytes took {memory} of memory"
    if model is None:
        return None
    with suppress(ModelFileError):  # what only people read may be missing
        json.dumps(read_header(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numbers that were changed overflow
        calls = [lambda: model.forecast(2) if hasattr(model, "forecast") else answers(model)]
        if hasattr(model, "partial_fit"):
            calls += [lambda: updated(model, 1), lambda: updated(model, -1)]
        if hasattr(model, "truncate"):
            calls.append(lambda: model.truncate(3))
        for call in calls:  # models of other numbers: a gram may not be positive definite
            with suppress(LSSVMError, np.linalg.LinAlgError):
                call()
    return model


@dataclass(frozen=True)
class Tried:
    """How many files were tried, and how many of them still gave a model."""

    files: int
    loaded: int


def run(
    seed: int, seconds: float, files: int | None = None, names: list[str] | None = None
) -> Tried:
    """Try changed files until the time is over, or as many as are asked for.

    Parameters
    ----------
    seed : int
    seconds : float
    files : int, optional
    names : list of str, optional
        Of the models in `tests.io.cases`; None: all of them.

    Raises
    ------
    AssertionError
        For the first file that is neither refused nor loaded in peace.
    """
    chosen = sorted(CASES) if names is None else names
    end, count, loaded = time.monotonic() + seconds, 0, 0
    originals: dict[tuple[str, str], Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m")
        while time.monotonic() < end and count != files:
            rng = np.random.default_rng([seed, count])
            case = (chosen[count % len(chosen)], ("all", "prediction")[rng.integers(2)])
            if case not in originals:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    save(fitted(case[0]), path, keep=case[1], metrics={"error": 0.25})
                with open(path, "rb") as file:
                    originals[case] = parts(file.read())
            data = changed(*originals[case], rng)
            try:
                loaded += tries(path, data) is not None
            except BaseException as error:
                kept = os.path.join(tempfile.gettempdir(), f"lssvm-fuzz-{seed}-{count}.lssvm")
                with open(kept, "wb") as file:
                    file.write(data)
                raise AssertionError(f"seed {seed}, file {count} of {case}: {kept}") from error
            count += 1
    return Tried(count, loaded)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    tried = run(options.seed, options.seconds)
    print(
        f"seed {options.seed}: {tried.files} model files, {tried.loaded} gave a model, rest refused"
    )


if __name__ == "__main__":
    main()
