"""The bundled data sets hold what their sources publish."""

from __future__ import annotations

import gzip
import hashlib
import sys
from collections import Counter
from importlib.resources import files

import numpy as np
import pytest

from lssvm import datasets
from lssvm._core.errors import MissingDependencyError
from lssvm.datasets import Dataset, list_datasets

# name: rows, attributes, class counts (None: regression), train and test sizes, digest of the CSV
TABLE = {
    "balance": (
        *(625, 4, {"B": 49, "L": 288, "R": 288}, None),
        "fcdc149c2bcb8c97ae006b542cac37bd783b6ea75e3671af04a35c8799825086",
    ),
    "concrete": (
        *(1030, 8, None, None),
        "3a07434108d18fb858e17a793b7fbaf7030fce7d3b4b64b4ef86128f1fe8d9d8",
    ),
    "german_credit": (
        *(1000, 20, {1: 700, 2: 300}, None),
        "f5a7095a9a9c1a7da8a921b93007c6d79b1c2c756bd005815eea066ee658efb4",
    ),
    "heart": (
        *(270, 13, {1: 150, 2: 120}, None),
        "91cd1994466afd8bcdc733c7b733b45b1a2a9ae992d5d536194456c55b00568b",
    ),
    "laser": (
        *(2000, 1, None, (1000, 100)),
        "c4e977741c22df4cac4417390ca3dae800ff63432b5af6ebb9d048e594bb3434",
    ),
    "liver": (
        *(345, 6, {1: 145, 2: 200}, None),
        "4244ccd1d0604a062de5aced361eca6d8fe8ec1fafeb7560b853d5c02b93bec6",
    ),
    "ripley": (
        *(1250, 2, {0: 625, 1: 625}, (250, 1000)),
        "578001861c482d86ca242c2be53795a21c374390d4e555dd9a5fc74a7cc5b36b",
    ),
}
NAMES = sorted(TABLE)


def load(name: str, **options: bool) -> Dataset:
    dataset = getattr(datasets, f"load_{name}")(**options)
    assert isinstance(dataset, Dataset)
    return dataset


def test_the_list_names_every_loader_and_nothing_else():
    assert list_datasets() == NAMES
    loaders = {name for name in datasets.__all__ if name.startswith("load_")}
    assert loaders == {f"load_{name}" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_sizes_and_class_counts_are_the_published_ones(name):
    n, d, counts, _, _ = TABLE[name]
    dataset = load(name)
    assert dataset.name == name
    assert dataset.data.shape == (n, d)
    assert dataset.target.shape == (n,)
    assert len(dataset.feature_names) == len(set(dataset.feature_names)) == d
    assert set(dataset.categorical_features) <= set(dataset.feature_names)
    if counts is None:
        assert dataset.target.dtype == np.float64
        assert dataset.target_names == ()
    else:
        assert Counter(dataset.target.tolist()) == counts
        assert len(dataset.target_names) == len(counts)


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_the_one_that_was_checked(name):
    packed = files("lssvm.datasets").joinpath("data", f"{name}.csv.gz").read_bytes()
    assert hashlib.sha256(gzip.decompress(packed)).hexdigest() == TABLE[name][-1]


@pytest.mark.parametrize("name", NAMES)
def test_the_official_split_is_disjoint_and_of_the_published_size(name):
    dataset = load(name)
    sizes = TABLE[name][3]
    if sizes is None:
        assert dataset.train is None
        assert dataset.test is None
    else:
        assert (len(dataset.train), len(dataset.test)) == sizes
        assert not set(dataset.train) & set(dataset.test)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_finite_and_complete(name):
    dataset = load(name)
    numeric = [
        j
        for j, feature in enumerate(dataset.feature_names)
        if dataset.data.dtype != object or feature not in dataset.categorical_features
    ]
    assert np.isfinite(dataset.data[:, numeric].astype(float)).all()
    if dataset.target.dtype == np.float64:
        assert np.isfinite(dataset.target).all()


@pytest.mark.parametrize("name", NAMES)
def test_source_and_terms_are_named_in_the_record_the_docstring_and_the_list(name):
    dataset = load(name)
    listing = files("lssvm.datasets").joinpath("SOURCES.md").read_text(encoding="utf-8")
    doc = getattr(datasets, f"load_{name}").__doc__
    assert len(dataset.description) > 40
    assert len(dataset.source) > 10
    assert len(dataset.licence) > 10
    assert f"`{name}`" in listing
    assert "Source and terms:" in doc


def test_a_load_cannot_spoil_the_next_one():
    first = load("heart")
    first.data[:] = -1.0
    first.target[:] = -1
    second = load("heart")
    assert second.data[0].tolist() == [70, 1, 4, 130, 322, 0, 2, 109, 0, 2.4, 2, 3, 3]
    assert second.target[0] == 2


def test_balance_labels_obey_the_torque_rule():
    balance = load("balance")
    left = balance.data[:, 0] * balance.data[:, 1]
    right = balance.data[:, 2] * balance.data[:, 3]
    expected = np.select([left > right, left < right], ["L", "R"], "B")
    np.testing.assert_array_equal(balance.target, expected)


def test_concrete_matches_the_published_range_and_mean():
    concrete = load("concrete")
    assert concrete.target.min() == 2.33
    assert concrete.target.max() == 82.6
    assert concrete.target.mean() == pytest.approx(35.818, abs=5e-4)


def test_german_credit_keeps_its_categories_as_strings():
    credit = load("german_credit")
    assert credit.data.dtype == object
    columns = dict(zip(credit.feature_names, credit.data.T, strict=True))
    strings = {key for key, column in columns.items() if isinstance(column[0], str)}
    assert strings == set(credit.categorical_features)
    assert set(columns["status"]) == {"A11", "A12", "A13", "A14"}
    assert min(columns["age"]) == 19


def test_laser_is_in_time_order():
    laser = load("laser")
    np.testing.assert_array_equal(laser.data[:, 0], np.arange(2000))
    np.testing.assert_array_equal(laser.test, np.arange(1000, 1100))
    assert laser.target[:5].tolist() == [86, 141, 95, 41, 22]


def test_ripley_is_balanced_in_both_parts():
    ripley = load("ripley")
    assert np.bincount(ripley.target[ripley.train]).tolist() == [125, 125]
    assert np.bincount(ripley.target[ripley.test]).tolist() == [500, 500]


@pytest.mark.parametrize("name", NAMES)
def test_as_frame_holds_the_same_values(name):
    pandas = pytest.importorskip("pandas")
    plain, framed = load(name), load(name, as_frame=True)
    assert isinstance(framed.data, pandas.DataFrame)
    assert isinstance(framed.target, pandas.Series)
    assert tuple(framed.data.columns) == plain.feature_names
    np.testing.assert_array_equal(framed.data.to_numpy(dtype=object), plain.data.astype(object))
    np.testing.assert_array_equal(framed.target.to_numpy(), plain.target)
    kinds = {c for c in framed.data if isinstance(framed.data[c].dtype, pandas.CategoricalDtype)}
    assert kinds == set(plain.categorical_features)


def test_as_frame_without_pandas_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"'ripley' needs pandas.*pip install pandas"):
        load("ripley", as_frame=True)


def test_a_record_cannot_be_reassigned():
    dataset = load("liver")
    with pytest.raises(AttributeError):
        dataset.target = None


def test_the_bundle_stays_small():
    folder = files("lssvm.datasets").joinpath("data")
    assert sum(len(entry.read_bytes()) for entry in folder.iterdir()) < 200_000
