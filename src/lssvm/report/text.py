"""Numbers and names as text."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Any

UNKNOWN = "\u2013"  # a dash in the place of a number
MINUS = "\u2212"


def number(value: float) -> str:
    """Return a number to three significant digits (whole ones without zeros behind a point).

    Thousands are marked from 10,000 on, so that a year is a year.

    Examples
    --------
    >>> from lssvm.report.text import number
    >>> number(2005), number(12345.6), number(0.00012345), number(0.5), number(-3.14159)
    ('2005', '12,346', '0.000123', '0.500', '−3.14')
    """
    value = float(value)
    if not math.isfinite(value):
        return UNKNOWN if math.isnan(value) else ("∞" if value > 0 else f"{MINUS}∞")
    whole = float(f"{value:.12g}").is_integer()
    value = value if abs(value) >= 1000 else float(f"{value:.3g}")  # 0.9999 is 1.00, not 1.000
    size = math.floor(math.log10(abs(value))) if value else 0
    if not -5 <= size < 9:
        return f"{value:.2e}".replace("-", MINUS)
    mark = "," if size >= 4 else ""
    return f"{value:{mark}.{0 if whole else max(0, 2 - size)}f}".replace("-", MINUS)


def plus_minus(value: float, error: float, *, sign: bool = False) -> str:
    """Return a number with its uncertainty: both to the second digit of the latter.

    Examples
    --------
    >>> from lssvm.report.text import plus_minus
    >>> plus_minus(2.5412, 0.737), plus_minus(-0.0334, 0.0021, sign=True), plus_minus(12.345, 0.0)
    ('2.54 ± 0.74', '−0.0334 ± 0.0021', '12.3')
    """
    lead = "+" if sign and value > 0 else ""
    if not (error > 0 and math.isfinite(error) and math.isfinite(value)):
        return lead + number(value)
    size = math.floor(math.log10(error))
    if not -7 < size < 6:
        return f"{lead}{number(value)} ± {number(error)}"
    digits = max(0, 1 - size)
    return lead + f"{value:,.{digits}f} ± {error:,.{digits}f}".replace("-", MINUS)


def percent(share: float, digits: int = 1) -> str:
    """Return a share as per cent, never rounded to 0 or 100 where it is not.

    Examples
    --------
    >>> from lssvm.report.text import percent
    >>> percent(0.8631), percent(1.0), percent(0.99996), percent(0.00001), percent(0.5, 0)
    ('86.3 %', '100 %', '> 99.9 %', '< 0.1 %', '50 %')
    """
    if not math.isfinite(share):
        return UNKNOWN
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    text = f"{100 * share:.{digits}f}"
    edge = 10.0**-digits
    if float(text) >= 100.0 and share < 1.0:
        return f"> {100 - edge:.{digits}f} %"
    if float(text) == 0.0 and share > 0.0:
        return f"< {edge:.{digits}f} %"
    return f"{text} %"


def duration(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> from lssvm.report.text import duration
    >>> duration(0.012), duration(3.14), duration(75), duration(7300)
    ('12 ms', '3.1 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def short(text: Any, length: int = 18) -> str:
    """Return a text without its middle where it is long.

    Examples
    --------
    >>> from lssvm.report.text import short
    >>> short("a_very_long_name_of_a_column", 13)
    'a_very…column'
    """
    words = " ".join(str(text).split())
    if len(words) <= length:
        return words
    head = (length - 1) // 2
    return f"{words[:head]}…{words[len(words) - (length - 1 - head) :]}"


def quoted(text: Any, length: int = 40) -> str:
    """Return a text in quotation marks, shortened where it is long.

    Examples
    --------
    >>> from lssvm.report.text import quoted
    >>> quoted("age")
    '“age”'
    """
    return f"“{short(text, length)}”"


def listing(names: Sequence[str]) -> str:
    """Return names in a sentence.

    Examples
    --------
    >>> from lssvm.report.text import listing
    >>> listing(["a", "b", "c"]), listing(["a"]), listing([])
    ('a, b and c', 'a', '')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def clean(value: Any) -> str:
    """Return a value as text without control characters and lone surrogates.

    Examples
    --------
    >>> from lssvm.report.text import clean
    >>> clean("a" + chr(0) + "b"), clean("x" + chr(0x202E) + "y") == "x" + chr(0xFFFD) + "y"
    ('a\ufffdb', True)
    """
    text = str(value)
    if text.isascii() and text.isprintable():
        return text
    odd = ("Cc", "Cf", "Cs", "Co", "Cn")
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in odd else "\ufffd" for c in text
    )
