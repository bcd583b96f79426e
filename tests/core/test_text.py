"""What a terminal would obey or hide is shown instead."""

import unicodedata

import pytest

from lssvm._core.errors import printable


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain name, Größe, 価格, \\d", "plain name, Größe, 価格, \\d"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\nb\rc\td\x00", "a\\nb\\rc\\td\\x00"),
        ("\x9b2J", "\\x9b2J"),
        ("x\u202egpj.exe", "x\\u202egpj.exe"),
        ("\u2066a\u2069\u200b\ufeff", "\\u2066a\\u2069\\u200b\\ufeff"),
        ("a\u2028b", "a\\u2028b"),
        ("\udc80", "\\udc80"),
        (b"\x1b", "b'\\x1b'"),
        (None, "None"),
    ],
)
def test_each_is_seen(raw, shown):
    assert printable(raw) == shown


def test_nothing_unseen_is_left_of_all_of_unicode():
    every = "".join(map(chr, range(0x110000)))
    shown = printable(every, limit=len(every))
    shown.encode("utf-8")
    hidden = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
    assert not any(unicodedata.category(sign) in hidden for sign in set(shown))
    assert len(shown.splitlines()) == 1


def test_the_length_is_limited():
    assert printable("a" * 10_000) == "a" * 200 + "..."
    assert printable("a" * 200) == "a" * 200
    assert len(printable("\x00" * 10_000)) <= 4 * 200 + 3
