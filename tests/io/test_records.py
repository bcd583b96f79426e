"""The encoder of records, the rules for what they hold, and what both refuse."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from lssvm._core.errors import InvalidInputError, ModelFileError
from lssvm.io.container import DTYPES
from lssvm.io.records import Book, Known, NotStorable, allowance, decode, encode, parse, table

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


def positive(point):
    if isinstance(point.at, int) and point.at == 13:
        raise ModelFileError("13 is refused")


REGISTRY = {"point": Known(Point, positive, frozenset({"threads"})), "square": Known(Square)}


def again(value, limit=ROOM):
    tree, arrays = encode(value, REGISTRY)
    text = json.dumps(tree, allow_nan=False)
    return decode(json.loads(text), arrays, REGISTRY, limit)


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
plain = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    plain | numbers | labels,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(texts | st.integers(), inner, max_size=3)
        | st.builds(Point, inner)
    ),
    max_leaves=8,
)


@given(values)
def test_every_value_comes_back(value):
    try:
        found = again(value)
    except ModelFileError as error:
        assert "13" in str(error)  # the check of the class
        return
    assert_equal(found, value)


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
    tree, arrays = encode({"a": np.array(["ab", "é"])}, REGISTRY)
    assert tree == {"dict": [["a", {"texts": "a", "ends": "a.ends", "objects": False}]]}
    assert bytes(arrays["a"]) == "abé".encode()
    assert arrays["a.ends"].tolist() == [2, 4]


def test_fields_of_the_machine_are_not_stored_and_the_check_is_asked():
    assert again(Point(1.0, "n", threads=8)) == Point(1.0, "n", threads=1)
    with pytest.raises(ModelFileError, match="13 is refused"):
        again(Point(13))


def test_equal_large_arrays_are_stored_once():
    big = np.arange(200.0)
    _, arrays = encode([big, big.copy(), big + 1.0, big[:3], big[:3].copy()], REGISTRY)
    assert len(arrays) == 4


@pytest.mark.parametrize(
    "value",
    [len, object(), {1, 2}, 1j, np.array([1j]), np.array(["2020-01-01"], dtype="M8[D]"), b"x",
     np.array([[object()]]), sparse.coo_array(np.eye(2)), np.ma.masked_array([1.0]),
     np.zeros((1, 1, 1, 1, 1)), np.dtype("<U4"), [Known(Point)], np.array([len])],
)  # fmt: skip
def test_what_cannot_be_stored_is_refused(value):
    with pytest.raises(NotStorable, match="cannot be stored"):
        encode(value, REGISTRY)


def test_labels_that_are_no_text_of_utf_8_are_refused():
    with pytest.raises(InvalidInputError, match="no text of UTF-8"):
        encode(np.array(["\ud800"]), REGISTRY)


def test_labels_that_could_not_be_loaded_are_not_saved():
    long = np.array(["a" * 20_000, *map(str, range(900))])
    assert long.nbytes > allowance(20_000 + 9 * 900)
    with pytest.raises(NotStorable, match="much longer than the others"):
        encode(long, REGISTRY)
    assert again(long.astype(object)).tolist() == long.tolist()


HOSTILE: list[Any] = [
    {}, {"unknown": 1}, {"array": "a", "more": 1}, {"array": "b"}, {"array": 3}, {"array": ["a"]},
    {"record": "other", "fields": {}}, {"record": ["point"], "fields": {}}, {"record": "point"},
    {"record": "point", "fields": {"threads": 4}}, {"record": "point", "fields": []},
    {"float": "1.0"}, {"float": 3}, {"tuple": 3}, {"tuple": {}}, {"dict": [[1]]}, {"dict": 3},
    {"dict": [[[1], 2]]}, {"dtype": "O"}, {"dtype": "<U9"}, {"dtype": []}, {"objects": [[]]},
    {"objects": 3}, {"texts": "a", "ends": "a"}, {"texts": "a"}, {"csr": {}, "shape": [1, 1]},
    {"csr": {"data": {"array": "a"}, "indices": {"array": "a"}, "indptr": {"array": "a"}}},
]  # fmt: skip


@pytest.mark.parametrize("tree", HOSTILE, ids=json.dumps)
def test_what_was_not_written_so_is_refused(tree):
    with pytest.raises((ModelFileError, KeyError, TypeError)):
        decode(tree, {"a": np.arange(3.0)}, REGISTRY, ROOM)


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
        decode({"array": "a"}, {"a": np.ones(1), "b\x1b": np.ones(1)}, REGISTRY, ROOM)


def test_depth_and_memory_have_limits():
    deep: Any = 1
    for _ in range(30):
        deep = [deep]
    with pytest.raises(ModelFileError, match="nested too deeply"):
        decode(deep, {}, REGISTRY, ROOM)
    words = np.array(["ab"] * 100)
    assert again(words, 100 * (80 + 4 * 2 + 4 * 2)).tolist() == words.tolist()
    with pytest.raises(ModelFileError, match="more than its length explains"):
        again(words, 100 * (80 + 4 * 2 + 4 * 2) - 1)


def test_constructors_check_what_they_are_given():
    assert again(Square(2.0)) == Square(2.0)
    with pytest.raises(InvalidInputError, match="a side is negative"):
        decode({"record": "square", "fields": {"side": -1.0}}, {}, REGISTRY, ROOM)


# -- rules -------------------------------------------------------------------------------------

BOOK = Book(
    table("Point: at floats n >=0; note none | text\nSquare: side whole =q >=1"),
    {"Point": lambda point, lengths: None if lengths["n"] != 5 else 1 / 0},
)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (None, "none"), (None, "none | text"), ("a", "none | text"), (3, "whole >=0 <4"),
        (True, "bool"), (2.5, "number >2"), (3, "number"), ([1, 2], "list 2 of whole"),
        ([], "list * of whole"), ((1,), "tuple"), ({}, "dict"), (object(), "any"),
        (np.ones((2, 3)), "floats 2 m"), (np.array([1.0, np.nan]), "scores 2"),
        (np.array([0, 2]), "wholes k >=0 <3 rising distinct some"), (np.ones(2, bool), "mask k"),
        (np.array([1, 1]), "wholes k sorted"), (np.ones(1, np.uint64), "keys *"),
        (np.ones(2), "doubles k"), (np.nan, "score"), ((1, 2), "tuple 2 of whole"),
        (sparse.csr_array(np.eye(2)), "rows 2 2"), (np.eye(2), "rows k k"), (np.float64(1), "any"),
        (np.array(1.0), "floats"), (Point(np.ones(2)), "Point n=2"), (Point(np.ones(3)), "Point k"),
        ([Point(np.ones(3))] * 2, "list * of Point k"), (np.array([7]), "wholes * <z"),
    ],
)  # fmt: skip
def test_what_a_rule_says_passes(value, rule):
    lengths: dict[str, int] = {}
    BOOK.value(value, rule, lengths, "it")
    assert set(lengths) <= {"m", "k", "n"}


@pytest.mark.parametrize(
    ("value", "rule", "problem"),
    [
        (None, "text", "another kind"), (1, "none | text", "another kind"), (True, "whole", "kind"),
        (4, "whole >=0 <4", "is not <4"), (-1, "whole >=0", "is not >=0"), (1.0, "whole", "kind"),
        (np.inf, "number", "not finite"), (np.nan, "number", "not finite"), (1, "bool", "kind"),
        ([1], "list 2 of whole", "has 1 entries"), ([1, "a"], "list * of whole", "entry of it"),
        (np.ones((2, 3)), "floats 2 2", r"has shape \(2, 3\), not \(2, 2\)"),
        (np.ones((2, 3)), "floats m m", "has shape"), (np.ones(2), "wholes 2", "another kind"),
        (np.array([np.inf]), "floats 1", "NaN or infinity"), (np.ones(1, int), "keys 1", "kind"),
        (np.array([1, 0]), "wholes 2 sorted", "is not sorted"),
        (np.array([1, 1]), "wholes 2 rising", "is not rising"),
        (np.array([1, 1]), "wholes 2 distinct", "is not distinct"),
        (np.array([], int), "wholes * some", "is not some"),
        (np.array([3]), "wholes 1 <3", "is not <3"), (np.array([-1.0]), "floats 1 >=0", "not >=0"),
        (np.ones(1, np.float32), "doubles 1", "no array of doubles"), ((1,), "tuple 2", "has 1"),
        (np.ones(1, np.uint8), "keys 1", "no array of keys"), (np.ones(1), "floats", "has shape"),
        (sparse.csr_array(np.eye(2)), "floats 2 2", "another kind"),
        (sparse.csr_array(np.diag([1.0, np.nan])), "rows 2 2", "NaN or infinity"),
        (Point(np.ones(2)), "Point n=3", "at has shape"), (Point(-np.ones(2)), "Point", "not >=0"),
        (Point("x"), "Point", "at is of another kind"), (Square(2.0), "Point", "another kind"),
        ("\x1b[2J", "whole", r"it is '\\x1b\[2J'; needed: whole"),
    ],
)  # fmt: skip
def test_what_a_rule_forbids_is_refused(value, rule, problem):
    with pytest.raises(ModelFileError, match=problem):
        BOOK.value(value, rule, {}, "it")


def test_letters_stand_for_one_length():
    values = {"a": np.ones((2, 3)), "b": np.ones(3), "c": 3}
    rules = {"a": "floats m k", "b": "floats k", "c": "whole =k", "d?": "floats m"}
    assert BOOK.check(values, rules) == {"m": 2, "k": 3}
    assert BOOK.check({**values, "d": np.ones(2)}, rules) == {"m": 2, "k": 3}
    for name, wrong in [("b", np.ones(2)), ("c", 4), ("d", np.ones(3)), ("a", None)]:
        with pytest.raises(ModelFileError, match=rf"together: {name} "):
            BOOK.check({**values, name: wrong}, rules)
    with pytest.raises(ModelFileError, match="together: b "):
        BOOK.check({"a": values["a"]}, rules)


def test_an_alternative_that_fails_leaves_no_letter_behind():
    lengths: dict[str, int] = {}
    BOOK.value(np.ones((2, 3)), "floats k k | floats m k", lengths, "it")
    assert lengths == {"m": 2, "k": 3}


def test_the_check_of_a_class_is_asked():
    with pytest.raises(ZeroDivisionError):
        BOOK.check_record(Point(np.ones(5)), "Point")
    assert BOOK.check_record(Point(np.ones(4)), "Point") == {"n": 4}


def test_a_table_is_read_over_several_lines():
    read = table("A: x floats n; y none |\n    text\nB: z whole")
    assert read == {"A": {"x": "floats n", "y": "none | text"}, "B": {"z": "whole"}}
    assert [one.kind for one in parse(read["A"]["y"])] == ["none", "text"]
