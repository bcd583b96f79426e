"""Which columns of text hold numbers, and how these are written."""

import pytest

from lssvm.data.number_text import (
    NumberReading,
    NumberStyle,
    preferred_decimal,
    recognise_numbers,
    styles,
)

pa = pytest.importorskip("pyarrow")

NUMBERS = [f"{i},5" for i in range(12)]


@pytest.mark.parametrize(
    ("columns", "delimiter", "sign"),
    [
        ([["1,5", "0,125"]], None, ","),
        ([["1.5", "0.125"]], ";", "."),
        ([["1.234,5"], ["a", "b"]], ",", ","),
        ([["1,234"]], ";", ","),  # open: a semicolon decides
        ([["1,234"]], "\t", "."),
        ([["1,5"], ["1.25"]], ";", "."),  # columns that contradict each other
        ([["1,5", "many"]], None, "."),  # not all are numbers
        ([["007,5", "00"]], None, "."),  # codes
        ([[], ["a"]], ";", "."),
    ],
)
def test_the_decimal_sign_of_a_file(columns, delimiter, sign):
    arrays = [pa.array(column, pa.string()) for column in columns]
    assert preferred_decimal(arrays, delimiter) == sign


@pytest.mark.parametrize(
    ("texts", "reading"),
    [
        (NUMBERS, NumberReading(NumberStyle(","))),
        ([*NUMBERS, "none"], NumberReading(None, word="none", row=12, count=1)),
        ([*NUMBERS, "9 or 10"], NumberReading(None, word="9 or 10", row=12, count=1)),
        ([*NUMBERS[:9], "none"], NumberReading(None)),  # too few numbers
        ([*NUMBERS, *(["none"] * 3)], NumberReading(None)),  # too many rows with the word
        ([*NUMBERS * 9, "a", "b", "c"], NumberReading(None, word="a", row=108, count=3)),
        ([*NUMBERS * 9, "a", "b", "c", "d"], NumberReading(None)),  # too many words
        (["cook", "smith"], NumberReading(None)),
        (["007", "cook"], NumberReading(None, coded=True)),
        (["12 €", "3 %"], NumberReading(NumberStyle(), signs=("currency", "percent"))),
    ],
)
def test_numbers_words_and_codes(texts, reading):
    assert recognise_numbers(pa.array(texts), styles(None, None, ".")) == reading
