"""Numbers as people write them: decimal commas, grouped thousands, currency and percent signs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError, shown
from lssvm.data.dates import read_text

_CODES = r"US\$|R\$|USD|EUR|GBP|CHF|JPY|CNY|SEK|NOK|DKK|PLN|INR|BRL|Fr\.|kr\.?|zł|Kč"
CURRENCY = rf"(?:\p{{Sc}}|{_CODES})"
_SPACES = r"[ \x{00A0}\x{202F}\x{2009}]"
_MINUS = r"[+\-\x{2212}]"
_GROUPS = {"": None, ",": ",", ".": r"\.", " ": _SPACES, "'": r"['\x{2019}]"}
DECIMALS = (".", ",")
THOUSANDS = ("", ",", ".", " ", "'")
CODED = r"^0\d+$"
"""Digits behind a leading zero: a code, which would lose it as a number."""

MISSING: tuple[str, ...] = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null", "?"),
)
"""Texts that always mean "missing"; those of pyarrow, and a question mark."""


@dataclass(frozen=True)
class NumberStyle:
    """How the numbers of a column are written.

    Parameters
    ----------
    decimal : {".", ","}, default="."
    thousands : {"", ",", ".", " ", "'"}, default=""
        Between groups of three digits; "": digits are not grouped.

    Notes
    -----
    Whatever the style is, currency signs and codes may stand before or behind the number, a percent
    sign divides it by 100, and parentheses or a minus sign behind it make it negative.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from lssvm.data.number_text import NumberStyle
    >>> style = NumberStyle(",", ".")
    >>> style.parse(pa.array(["1.234,50 €", "(7)", "12,5 %", None])).to_pylist()
    [1234.5, -7.0, 0.125, None]
    """

    decimal: str = "."
    thousands: str = ""

    def __post_init__(self) -> None:
        if self.decimal not in DECIMALS or self.thousands not in THOUSANDS:
            raise InvalidInputError(
                f"decimal={self.decimal!r} and thousands={self.thousands!r} are not usable: a "
                "decimal sign is '.' or ',', thousands are grouped by ',', '.', a space or an "
                "apostrophe."
            )
        if self.decimal == self.thousands:
            raise InvalidInputError(
                f"{self.decimal!r} cannot be both the decimal sign and the one between thousands."
            )

    @property
    def plain(self) -> bool:
        """Whether programs write numbers so."""
        return self == NumberStyle()

    @cached_property
    def pattern(self) -> str:
        """A regular expression of RE2 that all numbers of this style match."""
        point = r"\." if self.decimal == "." else ","
        digits = r"\d+"
        group = _GROUPS[self.thousands]
        if group is not None:
            inner = rf"(?:{group}\d{{2,3}})*" if self.thousands == "," else rf"(?:{group}\d{{3}})*"
            digits = rf"(?:\d+|[1-9]\d{{0,2}}{inner}{group}\d{{3}})"
        number = rf"(?:{digits}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"
        before = rf"(?:{_MINUS}\s*)?(?:{CURRENCY}\s*)?(?:{_MINUS}\s*)?"
        signed = rf"{before}{number}\s*(?:{CURRENCY}|%)?"
        return rf"^(?:{signed}|\(\s*{signed}\s*\)|{signed}\s*-)$"

    def matches(self, texts: Any) -> Any:
        """Return which texts of an Arrow array are numbers of this style (null: missing)."""
        import pyarrow.compute as pc

        return pc.match_substring_regex(texts, self.pattern)

    def first_other(self, texts: Any) -> int:
        """Return the first text that is no number of this style; -1: there is none."""
        import pyarrow.compute as pc

        return int(pc.index(pc.invert(self.matches(texts)), True).as_py())

    def parse(self, texts: Any) -> Any:
        """Return the numbers of an Arrow array of texts of this style."""
        import pyarrow as pa
        import pyarrow.compute as pc

        percent = pc.match_substring_regex(texts, r"%")
        turned = pc.match_substring_regex(texts, r"^\(|[0-9.,]\s*-$")
        bare = pc.replace_substring_regex(texts, rf"{CURRENCY}|[\s()%\x{{00A0}}\x{{202F}}]|-$", "")
        bare = pc.replace_substring_regex(bare, r"\x{2212}", "-")
        group = _GROUPS[self.thousands]
        if group is not None:
            bare = pc.replace_substring_regex(bare, group, "")
        if self.decimal == ",":
            bare = pc.replace_substring(bare, ",", ".")
        bare = pc.replace_substring_regex(bare, r"^\+", "")
        numbers = bare.cast(pa.float64())
        numbers = pc.if_else(percent, pc.divide(numbers, 100.0), numbers)
        return pc.if_else(turned, pc.negate(numbers), numbers)


@dataclass(frozen=True)
class NumberReading:
    """What a column of text holds.

    Attributes
    ----------
    style : NumberStyle or None
        How its numbers are written; None: it holds text.
    coded : bool
        Whether it holds digits with leading zeros, which are names.
    word : str or None
        A text among numbers of which somebody has to say whether it means "missing".
    row : int
        Where the word stands first.
    count : int
        Rows with such words.
    signs : tuple of {"currency", "percent"}
        Signs that stand with the numbers.
    """

    style: NumberStyle | None
    coded: bool = False
    word: str | None = None
    row: int = 0
    count: int = 0
    signs: tuple[str, ...] = ()


_RARE = 0.1  # share of the rows that words among numbers have at most
_WORDS = 3  # different words up to which they are no categories
_NUMBERS = 10  # different numbers from which on a column is one of numbers


def word_remedy(name: str, word: str) -> str:
    """Say what to do about a word in a column of numbers."""
    return (
        f"give --missing {word!r} (csv=CsvOptions(null_values=({word!r},))) if that means a "
        f"missing value, or --category {name} (types={{{name!r}: 'text'}}) if the column is text"
    )


def styles(decimal: str | None, thousands: str | None, prefer: str) -> list[NumberStyle]:
    """Return the styles that a column may have, the likeliest first.

    Examples
    --------
    >>> from lssvm.data.number_text import styles
    >>> [(s.decimal, s.thousands) for s in styles(",", None, ".")]
    [(',', ''), (',', '.'), (',', ' '), (',', "'")]
    """
    decimals = [decimal] if decimal else sorted(DECIMALS, key=lambda sign: sign != prefer)
    groups = ("", *([thousands] if thousands else THOUSANDS[1:]))
    return [NumberStyle(d, t) for d in decimals for t in groups if d != t]


def describe_styles(styles_used: Iterable[NumberStyle]) -> list[str]:
    """Say what is not as programs write numbers."""
    known = set(styles_used)
    words = ["decimal commas"] if any(style.decimal == "," for style in known) else []
    groups = sorted({style.thousands for style in known} - {""})
    if groups:
        words.append(f"thousands grouped by {' and '.join(map(repr, groups))}")
    return words


def trimmed(texts: Any, nulls: Sequence[str]) -> Any:
    """Return texts of an Arrow array without spaces around them, null where they mean missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bare = pc.utf8_trim_whitespace(texts)
    absent = pc.is_in(bare, value_set=pa.array(sorted(set(nulls)), bare.type))
    return pc.if_else(absent, pa.scalar(None, bare.type), bare)


def recognise_numbers(texts: Any, tried: Iterable[NumberStyle]) -> NumberReading:
    """Say what a column holds, by texts that were `trimmed`.

    Parameters
    ----------
    texts : Arrow array of strings
    tried : iterable of NumberStyle
        In the order in which they are preferred.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from lssvm.data.number_text import recognise_numbers, styles
    >>> recognise_numbers(pa.array(["1,5", "2,25"]), styles(None, None, ".")).style
    NumberStyle(decimal=',', thousands='')
    >>> recognise_numbers(pa.array(["007", "12"]), styles(None, None, ".")).coded
    True
    """
    import pyarrow.compute as pc

    known = texts.drop_null()
    if len(known) == 0:
        return NumberReading(None)
    distinct = known.unique()
    if pc.any(pc.match_substring_regex(distinct, CODED)).as_py():
        return NumberReading(None, coded=True)
    most = _with_digits(distinct)
    if most < len(distinct) and (most < _NUMBERS or len(distinct) - most > _WORDS):
        return NumberReading(None)
    best: tuple[int, NumberStyle] | None = None
    for style in tried:
        hits = style.matches(distinct)
        matching = int(pc.sum(hits).as_py() or 0)
        if matching == len(distinct):
            return NumberReading(style, signs=_signs(distinct))
        if best is None or matching > best[0]:
            best = matching, style
    assert best is not None
    numbers, style = best
    words = distinct.filter(pc.invert(style.matches(distinct)))
    if numbers < _NUMBERS or len(words) > _WORDS:
        return NumberReading(None)
    wrong = pc.is_in(texts, value_set=words)
    count = int(pc.sum(wrong).as_py())
    if count > _RARE * len(known):
        return NumberReading(None)
    row = int(pc.index(wrong, True).as_py())
    return NumberReading(None, word=texts[row].as_py(), row=row, count=count)


def recognise_style(texts: Any, tried: Sequence[NumberStyle]) -> NumberReading:
    """Say what a column holds that programs read as numbers: codes, or 1.234 for 1234.

    Parameters
    ----------
    texts : Arrow array of strings
    tried : sequence of NumberStyle
        In the order in which they are preferred: a comma first where that is the decimal sign.
    """
    import pyarrow.compute as pc

    if pc.any(pc.match_substring_regex(texts, CODED)).as_py():
        return NumberReading(None, coded=True)
    reading = NumberReading(None) if tried[0].decimal == "." else recognise_numbers(texts, tried)
    return reading if reading.style is not None else NumberReading(NumberStyle())


def _with_digits(distinct: Any) -> int:
    """Return how many texts of an Arrow array may be numbers: found sooner than by all styles."""
    import pyarrow.compute as pc

    return int(pc.sum(pc.match_substring_regex(distinct, "[0-9]")).as_py() or 0)


def _signs(distinct: Any) -> tuple[str, ...]:
    import pyarrow.compute as pc

    tests = {"currency": CURRENCY, "percent": "%"}
    return tuple(
        name
        for name, pattern in tests.items()
        if pc.any(pc.match_substring_regex(distinct, pattern)).as_py()
    )


def preferred_decimal(columns: Iterable[Any], delimiter: str | None) -> str:
    """Return the decimal sign of a file, which decides where a column leaves it open.

    Parameters
    ----------
    columns : iterable of Arrow arrays of strings, `trimmed`
    delimiter : str or None
        A semicolon is used where commas are decimal signs.

    Notes
    -----
    A column is evidence where its numbers can be read with one of both signs only: 1,5 or 0,125 or
    1.234,5 is so, 1,234 is not.
    """
    import pyarrow.compute as pc

    seen: set[str] = set()
    open_commas = False
    for texts in columns:
        known = texts.drop_null().unique()
        if len(known) == 0 or pc.any(pc.match_substring_regex(known, CODED)).as_py():
            continue
        if _with_digits(known) < len(known):
            continue
        can = {
            decimal
            for decimal in DECIMALS
            if any(pc.all(s.matches(known)).as_py() for s in styles(decimal, None, decimal))
        }
        if len(can) == 1:
            seen |= can
        elif can:
            open_commas |= bool(pc.any(pc.match_substring(known, ",")).as_py())
    if len(seen) == 1:
        return seen.pop()
    return "," if not seen and open_commas and delimiter == ";" else "."


MOSTLY = 0.8
"""Share of the rows whose text is a number or a date from which on that is remarked."""

_NUMBER = re.compile(r"[+-]?[$€£]? ?\d[\d., ']*(?:e[+-]?\d+)? ?[%$€£]?", re.IGNORECASE)


def other_than_text(levels: Sequence[str], weight: FloatArray) -> tuple[str, str] | None:
    """Say what text is that is numbers or dates but for some words, and what to do; else None."""
    step = max(1, len(levels) // 1000)
    levels, rows = levels[::step], weight[::step]
    if len(levels) < 3:
        return None
    for what, convert, like in (
        ("dates", "pandas.to_datetime", lambda text: read_text(text) is not None),
        ("numbers", "pandas.to_numeric", lambda text: _NUMBER.fullmatch(text.strip())),
    ):
        fits = np.array([bool(like(text)) for text in levels])
        if rows[fits].sum() < MOSTLY * rows.sum() or fits.sum() < 3:
            continue
        if fits.all():
            if what == "numbers" and not any({*".,%$€£"} & {*text} for text in levels):
                return None  # codes
            remedy = f"If they are {what}, turn them into {what} ({convert})"
            return f"{what} written as text ({levels[0]!r})", remedy
        words = ", ".join(map(shown, [levels[i] for i in np.flatnonzero(~fits)[:3]]))
        return (
            f"{what} but for {words} in {rows[~fits].sum():g} of {rows.sum():g} rows",
            f"If these mean a missing value, turn the column into {what} ({convert}(..., "
            "errors='coerce'); --missing)",
        )
    return None
