"""The encoder of records, the types of their fields, and what both refuse."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy import sparse

from lssvm._core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError, ModelFileError
from lssvm.io.container import DTYPES
from lssvm.io.models import check_order, check_positive, check_range, check_shapes
from lssvm.io.records import NotStorable, Record, allowance, decode, encode

ROOM = 10**6


@dataclass(frozen=True)
class Point:
    at: Any
    note: str | None = None
    threads: int = 1


@dataclass(frozen=True)
class Square:
    side: float
    area: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        if self.side < 0:
            raise InvalidInputError("a side is negative")


SCHEMA = {"point": Record(Point, frozenset({"threads"}), nan=frozenset({"at"}))}
SCHEMA |= {"square": Record(Square)}


def again(value, limit=ROOM):
    tree, arrays = encode(value, SCHEMA)
    text = json.dumps(tree, allow_nan=False)
    return decode(json.loads(text), arrays, SCHEMA, limit)


def assert_equal(found, wanted):
    assert type(found) is type(wanted)
    if isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found, wanted)
    elif isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            assert_equal(a, b)
    elif isinstance(wanted, dict):
        assert list(found) == list(wanted)
        for key in wanted:
            assert_equal(found[key], wanted[key])
    elif isinstance(wanted, Point):
        assert_equal(found.at, wanted.at)
    else:
        assert found == wanted or (found != found and wanted != wanted)


numbers = hnp.arrays(
    st.sampled_from([np.dtype(kind) for kind in DTYPES.values()]),
    hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
labels = st.lists(texts, max_size=5).map(lambda v: np.array(v, dtype=object))
integers = st.integers(-(2**63), 2**64 - 1)
plain = st.none() | st.booleans() | integers | st.floats() | texts
values = st.recursive(
    plain | numbers | labels,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(texts | integers, inner, max_size=3)
        | st.builds(Point, inner)
    ),
    max_leaves=8,
)


@given(values)
def test_every_value_comes_back(value):
    assert_equal(again(value), value)


@pytest.mark.parametrize(
    "value",
    [
        np.array(["a", "", "日本", "longer text"]),
        np.array(["x"], dtype=object),
        np.array(["", None, 3, 2.5, True], dtype=object),
        np.array([], dtype=object),
        np.array([], dtype="<U1"),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(3, dtype=">i4").astype("<i4"),
        np.float32(2.5),
        np.array(7),
        np.empty((0, 3)),
    ],
)
def test_arrays_come_back_with_their_types(value):
    found = again([value])[0]
    assert_equal(np.asarray(found), np.asarray(value, dtype=np.asarray(found).dtype))
    if isinstance(value, np.ndarray):
        assert found.dtype == value.dtype
        assert found.flags.f_contiguous == value.flags.f_contiguous


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_matrices_come_back(kind):
    matrix = kind(np.diag([1.0, 0.0, 2.0]))
    found = again({"a": matrix, "b": matrix})
    assert type(found["a"]) is kind
    assert (found["a"] != matrix).nnz == 0


def test_labels_are_stored_as_utf_8_with_their_ends():
    tree, arrays = encode({"a": np.array(["ab", "é"])}, SCHEMA)
    assert tree == {"dict": [["a", {"texts": "a", "ends": "a.ends", "objects": False}]]}
    assert bytes(arrays["a"]) == "abé".encode()
    assert arrays["a.ends"].tolist() == [2, 4]


def test_fields_of_the_machine_are_not_stored():
    assert again(Point(1.0, "n", threads=8)) == Point(1.0, "n", threads=1)


def test_equal_large_arrays_are_stored_once():
    big = np.arange(200.0)
    _, arrays = encode([big, big.copy(), big + 1.0, big[:3], big[:3].copy()], SCHEMA)
    assert len(arrays) == 4


@pytest.mark.parametrize(
    "value",
    [len, object(), {1, 2}, 1j, np.array([1j]), np.array(["2020-01-01"], dtype="M8[D]"), b"x",
     np.array([[object()]]), sparse.coo_array(np.eye(2)), np.ma.masked_array([1.0]),
     np.zeros((1, 1, 1, 1, 1)), np.dtype("<U4"), [Record(Point)], np.array([len]),
     2**64, -(2**63) - 1],
)  # fmt: skip
def test_what_cannot_be_stored_is_refused(value):
    with pytest.raises(NotStorable, match="cannot be stored"):
        encode(value, SCHEMA)


def test_labels_that_are_no_text_of_utf_8_are_refused():
    with pytest.raises(InvalidInputError, match="cannot be written as UTF-8"):
        encode(np.array(["\ud800"]), SCHEMA)


def test_labels_that_could_not_be_loaded_are_not_saved():
    long = np.array(["a" * 20_000, *map(str, range(900))])
    assert long.nbytes > allowance(20_000 + 9 * 900)
    with pytest.raises(NotStorable, match="much longer than the others"):
        encode(long, SCHEMA)
    assert again(long.astype(object)).tolist() == long.tolist()


HOSTILE: list[Any] = [
    {}, {"unknown": 1}, {"array": "a", "more": 1}, {"array": "b"}, {"array": 3}, {"array": ["a"]},
    {"record": "other", "fields": {}}, {"record": ["point"], "fields": {}}, {"record": "point"},
    {"record": "point", "fields": {"threads": 4}}, {"record": "point", "fields": []},
    {"float": "1.0"}, {"float": 3}, {"tuple": 3}, {"tuple": {}}, {"dict": [[1]]}, {"dict": 3},
    {"dict": [[[1], 2]]}, {"dtype": "O"}, {"dtype": "<U9"}, {"dtype": []}, {"objects": [[]]},
    {"objects": 3}, {"texts": "a", "ends": "a"}, {"texts": "a"}, {"csr": {}, "shape": [1, 1]},
    10**30, [2**64], {"dict": [["a", -(2**64)]]},
    {"csr": {"data": {"array": "a"}, "indices": {"array": "a"}, "indptr": {"array": "a"}}},
]  # fmt: skip


@pytest.mark.parametrize("tree", HOSTILE, ids=json.dumps)
def test_what_was_not_written_so_is_refused(tree):
    with pytest.raises((ModelFileError, KeyError, TypeError)):
        decode(tree, {"a": np.arange(3.0)}, SCHEMA, ROOM)


@pytest.mark.parametrize(
    ("joined", "ends"),
    [
        (b"abc", [1, 2]),
        (b"abc", [1, 4]),
        (b"abc", [2, 1, 3]),
        (b"abc", [-1, 3]),
        (b"", [1]),
        (b"abc", []),
    ],
)
def test_texts_whose_ends_do_not_fit_are_refused(joined, ends):
    arrays = {
        "t": np.frombuffer(joined, dtype=np.uint8),
        "e": np.array(ends, dtype=np.int64),
    }
    with pytest.raises(ModelFileError, match="ends do not fit"):
        decode({"texts": "t", "ends": "e", "objects": True}, arrays, {}, ROOM)


def test_texts_that_are_no_utf_8_are_a_value_error():
    arrays = {"t": np.array([0xFF], dtype=np.uint8), "e": np.array([1])}
    with pytest.raises(ValueError, match="utf-8"):
        decode({"texts": "t", "ends": "e", "objects": True}, arrays, {}, ROOM)


def test_arrays_that_nothing_refers_to_are_refused():
    with pytest.raises(ModelFileError, match=r"refers to, such as b\\x1b"):
        decode({"array": "a"}, {"a": np.ones(1), "b\x1b": np.ones(1)}, SCHEMA, ROOM)


def test_depth_and_memory_have_limits():
    deep: Any = 1
    for _ in range(30):
        deep = [deep]
    with pytest.raises(ModelFileError, match="nested too deeply"):
        decode(deep, {}, SCHEMA, ROOM)
    words = np.array(["ab"] * 100)
    assert again(words, 100 * (80 + 4 * 2 + 4 * 2)).tolist() == words.tolist()
    with pytest.raises(ModelFileError, match="more than its length explains"):
        again(words, 100 * (80 + 4 * 2 + 4 * 2) - 1)


def test_constructors_check_what_they_are_given():
    assert again(Square(2.0)) == Square(2.0)
    with pytest.raises(InvalidInputError, match="a side is negative"):
        decode({"record": "square", "fields": {"side": -1.0}}, {}, SCHEMA, ROOM)


# -- types -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Typed:
    number: float = 1.0
    count: int = 1
    text: str | None = None
    floats: FloatArray | None = None
    whole: IntArray | None = None
    mask: BoolArray | None = None
    keys: NDArray[np.uint64] | None = None
    any_array: AnyArray | None = None
    several: tuple[Point, ...] = ()
    listed: list[FloatArray] = field(default_factory=list)
    named: dict[str, int] = field(default_factory=dict)
    one_of: Literal["a", "b"] = "a"
    anything: Any = None
    either: Point | Square | None = None


TYPED = Record(Typed, nan=frozenset({"anything"}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("number", 2), ("number", -0.5), ("count", 3), ("text", None), ("text", "a"),
        ("floats", np.ones(2)), ("floats", np.ones((2, 3), np.float32)), ("whole", np.arange(3)),
        ("whole", np.arange(3, dtype=np.int8)), ("mask", np.ones(2, bool)),
        ("keys", np.ones(1, np.uint64)), ("any_array", np.array(["a"])), ("several", ()),
        ("several", (Point(1), Point(2))), ("listed", [np.ones(1)]), ("named", {"a": 1}),
        ("one_of", "b"), ("anything", np.array([np.nan])), ("either", Square(1.0)),
    ],
)  # fmt: skip
def test_values_of_the_types_of_their_fields_pass(name, value):
    TYPED.check({name: value})


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("number", True, "number is of another type"), ("number", "1", "it is '1'; needed: float"),
        ("number", np.inf, "number holds NaN or infinity"), ("count", 1.0, "count is of another"),
        ("count", True, "count is of another"), ("text", 1, "needed: str | None"),
        ("floats", np.arange(2), "floats is of another type"),
        ("floats", np.array([1.0, np.nan]), "floats holds NaN"),
        ("floats", sparse.csr_array(np.eye(2)), "floats is of another type"),
        ("whole", np.ones(2), "whole is of another type"), ("mask", np.ones(2), "mask is of"),
        ("keys", np.arange(2), "keys is of"), ("any_array", [1], "it is list"),
        ("several", [Point(1)], "it is list"), ("several", (Square(1.0),), "several is of"),
        ("listed", [np.array([np.inf])], "listed holds NaN"), ("listed", [1], "listed is of"),
        ("named", {"a": "b"}, "named is of"), ("named", {1: 1}, "named is of"),
        ("one_of", "c", "one_of is of"), ("one_of", [], "one_of is of"),
        ("either", "\x1b[2J", r"it is '\\x1b\[2J'"), ("either", Typed(), "it is Typed"),
    ],
)  # fmt: skip
def test_values_of_other_types_are_refused(name, value, problem):
    with pytest.raises(ModelFileError, match=problem):
        TYPED.check({name: value})


def test_records_for_lapack_have_float64_alone():
    record = Record(Typed, float64=True)
    record.check({"floats": np.ones(2), "whole": np.arange(2)})
    with pytest.raises(ModelFileError, match="floats is not an array of float64"):
        record.check({"floats": np.ones(2, np.float32)})


def test_protocols_are_the_records_that_the_schema_names():
    @dataclass(frozen=True)
    class Holder:
        shape: Shape  # noqa: F821 - known to the schema alone

    with pytest.raises(ModelFileError, match="it is Point; needed: Shape"):
        Record(Holder, types={"Shape": Square}).check({"shape": Point(1)})
    Record(Holder, types={"Shape": Square}).check({"shape": Square(1.0)})


def test_a_record_has_its_own_name_in_files_and_fields_that_are_not_stored():
    schema = {"place": Record(Point, not_stored=frozenset({"threads"}))}
    tree, arrays = encode(Point(1.5, "n"), schema)
    assert tree == {"record": "place", "fields": {"at": 1.5, "note": "n"}}
    assert decode(tree, arrays, schema, ROOM) == Point(1.5, "n")
    with pytest.raises(ModelFileError, match="fields that it does not have"):
        decode({"record": "place", "fields": {"position": 1.5}}, arrays, schema, ROOM)


# -- shapes and ranges -------------------------------------------------------------------------


def test_shapes_ranges_and_order_are_checked_by_name():
    values = SimpleNamespace(a=np.ones((2, 3)), b=np.array([1, 2, 2]), c=None, d=0.5)
    check_shapes(values, a=(2, 3), b=(None,), c=(7,))
    check_range(values, 0, 2, "a", "b", "c", "d")
    check_positive(values, "a", "c", "d")
    check_order(values, "b")
    for call, problem in [
        (lambda: check_shapes(values, a=(3, 2)), r"a has shape \(2, 3\), not \(3, 2\)"),
        (lambda: check_shapes(values, b=(3, 1)), "b has shape"),
        (lambda: check_range(values, 0, 1, "b"), "b is out of range"),
        (lambda: check_range(values, 1, 2, "d"), "d is out of range"),
        (lambda: check_positive(SimpleNamespace(a=0.0), "a"), "a is out of range"),
        (lambda: check_order(SimpleNamespace(a=np.array([2, 1])), "a"), "a is not in order"),
        (lambda: check_order(values, "a"), "a has shape"),
    ]:
        with pytest.raises(ModelFileError, match=problem):
            call()
