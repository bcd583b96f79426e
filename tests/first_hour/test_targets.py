"""Targets that cannot be used: one sentence each, from every family."""

from decimal import Decimal

import numpy as np
import pytest

from lssvm import (
    LSSVC,
    LSSVR,
    FixedSizeLSSVC,
    FixedSizeLSSVR,
    GreedyLSSVC,
    GreedyLSSVR,
    LSSVMClassifier,
    LSSVMRegressor,
)

X = np.random.default_rng(0).normal(size=(30, 2))
Y = X[:, 0].tolist()
LABELS = np.where(X[:, 0] > 0, "yes", "no").tolist()
NUMBERS = {
    "None": ([None, *Y[1:]], "missing, the first in row 0"),
    "NaN": ([*Y[:-1], np.nan], "NaN"),
    "a signalling NaN": ([*Y[:-1], Decimal("sNaN")], "missing, the first in row 29"),
    "a word": ([*Y[:4], "four", *Y[5:]], "'four' in row 4|not numbers"),
    "another length": (Y[:-1], "numbers of samples"),
    "no columns": (np.empty((30, 0)), r"\(30, 0\)"),
    "dates": (np.datetime64("2024-01-01") + np.arange(30), "dates or durations"),
    "infinite": ([*Y[:-1], np.inf], "inf"),
    "the name of a column": ("price", "y is 'price', one value: give one target for each row"),
}
CLASSES = {
    "None": ([None, *LABELS[1:]], "missing, the first in row 0"),
    "NaN": ([*LABELS[:-1], np.nan], "missing, the first in row 29"),
    "mixed": ([1, *LABELS[1:]], "no common order"),
    "one class": (["yes"] * 30, "class"),
    "another length": (LABELS[:-1], "numbers of samples"),
    "fractions": (Y, rf"continuous. y has fractions, {Y[0]:g} in row 0: use a regressor"),
    "the name of a column": ("kind", "y is 'kind', one value: give one target for each row"),
}


@pytest.mark.parametrize("cls", [LSSVR, FixedSizeLSSVR, GreedyLSSVR, LSSVMRegressor])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_cannot_be_learned(cls, name):
    y, words = NUMBERS[name]
    with pytest.raises(ValueError, match=words) as raised:
        cls().fit(X, y)
    assert len(str(raised.value)) < 300 and "\n" not in str(raised.value)


@pytest.mark.parametrize("cls", [LSSVC, FixedSizeLSSVC, GreedyLSSVC, LSSVMClassifier])
@pytest.mark.parametrize("name", CLASSES)
def test_classes_that_cannot_be_learned(cls, name):
    y, words = CLASSES[name]
    with pytest.raises(ValueError, match=words) as raised:
        cls().fit(X, y)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("cls", [LSSVR, LSSVMRegressor])
def test_numbers_of_other_types_are_numbers(cls):
    want = cls().fit(X, Y).predict(X)
    for y in ([Decimal(value) for value in Y], [repr(value) for value in Y]):
        np.testing.assert_array_equal(cls().fit(X, y).predict(X), want)


def test_no_rows_at_all():
    for cls in (LSSVMRegressor, LSSVMClassifier):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            cls().fit(X[:0], [])
