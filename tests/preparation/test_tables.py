"""Tables of every library, and columns of every kind, as typed columns."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pytest

from lssvm._core.errors import InvalidInputError
from lssvm.data.columns import read_table
from lssvm.preparation import TablePreparation

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

MOMENTS = [datetime.datetime(2023, 1, 1, 6), None, datetime.datetime(2024, 6, 5, 18, 30)]
COLUMNS = {
    "age": [20.5, None, 40.0],
    "count": [3, 4, 9],
    "job": ["cook", None, "smith"],
    "new": [True, None, False],
    "when": MOMENTS,
    "wait": [datetime.timedelta(hours=6), None, datetime.timedelta(days=2)],
}
KINDS = ["number", "number", "category", "boolean", "date", "duration"]


def as_pandas(columns):
    frame = pd.DataFrame({name: pd.Series(values) for name, values in columns.items()})
    return frame.astype({"job": "category"}) if "job" in columns else frame


def as_pandas_nullable(columns):
    return pd.DataFrame(columns).convert_dtypes()


def as_pandas_objects(columns):
    return pd.DataFrame({name: pd.Series(v, dtype=object) for name, v in columns.items()})


def as_pandas_arrow(columns):
    return pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype)


def as_polars(columns):
    return pytest.importorskip("polars").DataFrame(columns)


def as_polars_categories(columns):
    pl = pytest.importorskip("polars")
    return pl.DataFrame(columns).with_columns(pl.col("job").cast(pl.Categorical))


def as_objects(columns):
    return np.array(list(columns.values()), dtype=object).T


def as_rows(columns):
    return [list(row) for row in zip(*columns.values(), strict=True)]


WAYS = [
    as_pandas,
    as_pandas_nullable,
    as_pandas_objects,
    as_pandas_arrow,
    pa.table,
    as_polars,
    as_polars_categories,
    dict,
    as_objects,
    as_rows,
]


@pytest.mark.parametrize("make", WAYS)
def test_the_same_columns_come_out_of_every_table(make):
    table = read_table(make(COLUMNS))
    assert [column.kind for column in table.columns] == KINDS
    assert table.n_rows == 3
    assert table.named == (make not in (as_objects, as_rows))
    for column in table.columns:
        assert column.missing.tolist() == [False, column.name not in ("count", "x1"), False]
    age, count, job, new, when, wait = table.columns
    np.testing.assert_array_equal(age.values, [20.5, np.nan, 40.0])
    np.testing.assert_array_equal(count.values, [3.0, 4.0, 9.0])
    assert (job.levels, job.values.tolist()) == (("cook", "smith"), [0, -1, 1])
    np.testing.assert_array_equal(new.values, [1.0, np.nan, 0.0])
    assert when.values[[0, 2]].astype("datetime64[s]").tolist() == [MOMENTS[0], MOMENTS[2]]
    np.testing.assert_array_equal(wait.values, [0.25, np.nan, 2.0])


@pytest.mark.parametrize("make", WAYS)
def test_a_preparation_takes_every_table(make):
    expected = TablePreparation(rare=1).fit_transform(COLUMNS)
    np.testing.assert_allclose(TablePreparation(rare=1).fit_transform(make(COLUMNS)), expected)
    if make not in (as_objects, as_rows):
        preparation = TablePreparation(rare=1).fit(COLUMNS)
        np.testing.assert_allclose(preparation.transform(make(COLUMNS)), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float32", "bool"])
def test_arrays_of_numbers_of_every_type(dtype):
    X = np.array([[1, 0], [0, 1], [1, 1], [0, 0]]).astype(dtype)
    kinds = {column.kind for column in read_table(X).columns}
    assert kinds == {"boolean" if dtype == "bool" else "number"}
    assert TablePreparation().fit_transform(X).dtype == np.float64


def test_numbers_of_python_in_objects():
    values = [Decimal("1.5"), 2, np.float32(3.0), None, True]
    column = read_table({"a": np.array(values, dtype=object)}).columns[0]
    assert column.kind == "number"
    np.testing.assert_array_equal(column.values, [1.5, 2.0, 3.0, np.nan, 1.0])


def test_missing_values_of_every_kind_in_text():
    values = np.array(["a", None, np.nan, pd.NA, pd.NaT, "b"], dtype=object)
    column = read_table({"a": values}).columns[0]
    assert column.values.tolist() == [0, -1, -1, -1, -1, 1]
    frame = pd.DataFrame({"a": values})
    assert read_table(frame).columns[0].values.tolist() == [0, -1, -1, -1, -1, 1]


def test_categories_of_numbers_are_categories_and_unused_ones_are_not_there():
    frame = pd.DataFrame({"grade": pd.Categorical([1, 3, 1], categories=[1, 2, 3])})
    column = read_table(frame).columns[0]
    assert (column.kind, column.levels) == ("category", ("1", "3"))


def test_columns_of_nothing():
    for values in ([None, None], np.array([None, None]), pd.Series([None, None], dtype=object)):
        assert read_table({"a": values}).columns[0].kind == "empty"
    assert read_table(pa.table({"a": pa.nulls(2)})).columns[0].kind == "empty"


def test_sparse_columns_of_pandas():
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0, 0.0])})
    np.testing.assert_array_equal(read_table(frame).columns[0].values, [0.0, 1.0, 0.0])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.5, "n/a", 2.0], r"mixes values of different kinds \(1.5 in row 0 and 'n/a' in row 1\)"),
        ([{"a": 1}, {"b": 2}], "values of type dict"),
        ([b"a", 1.5], "values of type bytes"),
        ([1 + 2j, 3.0], "values of type complex"),
        (
            [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), datetime.datetime(2024, 1, 1)],
            "dates with a time zone and dates without one",
        ),
    ],
)
def test_what_is_no_column_is_an_error_that_names_it(values, message):
    for table in ({"col": values}, {"col": np.array([*values, None], dtype=object)[:-1]}):
        with pytest.raises(InvalidInputError, match=f"'col'.*{message}"):
            read_table(table)


def test_lists_in_cells_are_refused():
    with pytest.raises(InvalidInputError, match="'col' has values of type List"):
        read_table(pa.table({"col": [[1, 2], [3]]}))
    with pytest.raises(InvalidInputError, match="'col' has values of type list"):
        read_table(pd.DataFrame({"col": [[1, 2], [3]]}))


def test_a_type_that_cannot_be_used_is_named_as_its_library_names_it():
    months = pd.DataFrame({"col": pd.period_range("2020-01", periods=3, freq="M")})
    with pytest.raises(InvalidInputError, match=r"'col' has values of type period\[M\]; usable"):
        read_table(months)


def test_tables_that_are_none_are_errors():
    with pytest.raises(InvalidInputError, match="differ in length"):
        read_table({"a": [1, 2], "b": [1]})
    with pytest.raises(InvalidInputError, match="same name"):
        read_table(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(InvalidInputError, match="same name"):
        read_table(pd.DataFrame([[1, 2]], columns=[1, "1"]))
    with pytest.raises(InvalidInputError, match="Expected 2D array"):
        read_table([1.0, 2.0])
    with pytest.raises(InvalidInputError, match="shape"):
        read_table({"a": np.ones((2, 2))})
    with pytest.raises(InvalidInputError, match="minimum of 1"):
        read_table(pd.DataFrame(index=[0, 1]))


def test_frames_that_are_not_computed_are_refused():
    pl = pytest.importorskip("polars")
    with pytest.raises(InvalidInputError, match="LazyFrame that cannot be read"):
        read_table(pl.LazyFrame({"a": [1]}))


def test_dates_with_a_time_zone_go_by_its_clock():
    utc = pd.to_datetime(["2024-01-01 23:30", "2024-07-01 12:00"], utc=True)
    frame = pd.DataFrame({"when": utc.tz_convert("Europe/Amsterdam")})
    column = read_table(frame).columns[0]
    assert column.zone == "Europe/Amsterdam"
    assert column.values.astype(str)[0].startswith("2024-01-02T00:30")
    again = read_table(pd.DataFrame({"when": utc}), zones={"when": "Europe/Amsterdam"}).columns[0]
    np.testing.assert_array_equal(again.values, column.values)
    preparation = TablePreparation().fit(frame)
    np.testing.assert_array_equal(
        preparation.transform(pd.DataFrame({"when": utc})), preparation.transform(frame)
    )
    with pytest.raises(InvalidInputError, match="'when' has dates with time zone None"):
        preparation.transform(pd.DataFrame({"when": utc.tz_localize(None)}))


def test_dates_with_a_time_zone_as_objects_are_those_of_utc():
    east = datetime.timezone(datetime.timedelta(hours=2))
    values = [datetime.datetime(2024, 1, 1, 12, tzinfo=zone) for zone in (datetime.UTC, east)]
    (column,) = read_table({"when": [*values, None]}).columns
    assert column.kind == "date" and column.zone == "UTC"
    assert column.values.astype("datetime64[h]").astype(str).tolist() == [
        "2024-01-01T12",
        "2024-01-01T10",
        "NaT",
    ]


def test_a_signalling_nan_is_missing_and_halves_of_surrogate_pairs_are_text():
    (column,) = read_table({"x": [Decimal("sNaN"), Decimal("1.5")]}).columns
    assert column.kind == "number" and np.isnan(column.values[0])
    (column,) = read_table({"x": ["a\udc80", "b"]}).columns
    assert column.levels == ("a\\udc80", "b")


def test_whole_numbers_that_come_back_as_floats_are_the_same_levels():
    frame = pd.DataFrame({"k": pd.Categorical([1, 2, 3, 1, 2, 3])})
    preparation = TablePreparation(rare=1).fit(frame)
    expected = preparation.transform(frame)
    floats = pd.DataFrame({"k": pd.Categorical([1.0, 2.0, 3.0, 1.0, 2.0, 3.0])})
    np.testing.assert_array_equal(preparation.transform(floats), expected)
    np.testing.assert_array_equal(preparation.transform({"k": [1, 2, 3, 1, 2, 3]}), expected)
    np.testing.assert_array_equal(
        preparation.transform({"k": np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0])}), expected
    )
    assert preparation.unseen(floats) == {}


@pytest.mark.parametrize("how", ["pandas", "arrow", "option"])
def test_ordered_categories_keep_their_order(how):
    sizes, levels = ["S", "L", "M", "M", "S", "L"], ["S", "M", "L"]
    preparation = TablePreparation()
    if how == "pandas":
        table = pd.DataFrame({"size": pd.Categorical(sizes, levels, ordered=True)})
    elif how == "arrow":
        codes = pa.array([levels.index(size) for size in sizes], pa.int8())
        column = pa.DictionaryArray.from_arrays(codes, pa.array(levels), ordered=True)
        table = pa.table({"size": column})
    else:
        table, preparation = {"size": sizes}, TablePreparation(ordered={"size": levels})
    Z = preparation.fit_transform(table)
    places = np.array([levels.index(size) for size in sizes], dtype=float)
    np.testing.assert_allclose(Z[:, 0], (places - places.mean()) / places.std())
    assert Z.shape == (6, 1) and preparation.report_["why"] == ["S < M < L"]
    np.testing.assert_allclose(preparation.transform({"size": sizes}), Z)
    unseen = preparation.transform({"size": ["XXL", None]})
    np.testing.assert_allclose(unseen, Z[[2, 2]])


def test_a_level_that_the_order_does_not_name_is_an_error():
    with pytest.raises(InvalidInputError, match="'size' has the level 'XL', which ordered="):
        TablePreparation(ordered={"size": ["S", "M"]}).fit({"size": ["S", "XL", "M"]})
    with pytest.raises(InvalidInputError, match="ordered= names the columns"):
        TablePreparation(ordered={"sizes": ["S", "M"]}).fit({"size": ["S", "M"]})


def test_dates_as_text_are_taken_where_training_had_dates():
    days = np.datetime64("2024-01-01") + np.arange(40)
    preparation = TablePreparation().fit({"when": days})
    texts = [str(day) for day in days]
    np.testing.assert_allclose(
        preparation.transform({"when": texts}), preparation.transform({"when": days})
    )


@pytest.mark.parametrize("make", [way for way in WAYS if way is not as_polars_categories])
def test_integers_that_a_float_rounds_are_numbers(make):
    """Numbers of accounts and of orders: 2**53 and more."""
    numbers = [2**62 + 1, 3, -(2**60) - 1]
    (column,) = read_table(make({"order": numbers})).columns
    assert column.kind == "number"
    np.testing.assert_array_equal(column.values, np.array(numbers, dtype=np.float64))


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.int8()])
def test_integers_of_arrow_with_holes(kind):
    numbers = [100 if kind == pa.int8() else 2**62 + 1, None, 3]
    (column,) = read_table(pa.table({"order": pa.array(numbers, kind)})).columns
    np.testing.assert_array_equal(column.values, np.array(numbers, dtype=np.float64))
