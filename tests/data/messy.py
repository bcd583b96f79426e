"""Messy files: the same table as people have it, or one that cannot be read without their help.

Every generator returns a `Case`: a file, options of the command line, and either nothing (the
file gives the table that the clean one gives) or what the error has to say.
"""

from __future__ import annotations

import datetime
import gzip
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

NUMBERS = ("size", "price", "rate", "kids", "value")
NAMES = ("size", "price", "rate", "kids", "town", "code", "value", "label")
TOWNS = ("Köln", "Zürich", "Málaga", "Brest")


@dataclass(frozen=True)
class Case:
    """A messy file.

    Attributes
    ----------
    name : str
        Of the file.
    content : bytes
    words : tuple of str
        Options of the command line that it needs.
    error : str or None
        What the error says; None: the table is the clean one.
    told : str or None
        What the line says about how it is read.
    """

    name: str
    content: bytes
    words: tuple[str, ...] = ()
    error: str | None = None
    told: str | None = None


def rows() -> list[dict[str, Any]]:
    """Return the table: numbers, holes, text with letters beyond ASCII, codes, two targets."""
    rng = np.random.default_rng(3)
    made = []
    for i in range(120):
        size, town = round(float(rng.uniform(0.5, 9.5)), 2), TOWNS[int(rng.integers(4))]
        price = round(float(rng.uniform(1000, 99999)), 2) * (-1 if i % 9 == 0 else 1)
        rate, code = round(float(rng.uniform(0.01, 0.99)), 3), ("007", "012", "120")[i % 3]
        value = size + price / 40_000 + (town == "Köln") + rate
        made.append(
            {
                "size": None if i % 11 == 5 else size,
                "price": price,
                "rate": rate,
                "kids": int(rng.integers(5)),
                "town": None if i % 13 == 7 else town,
                "code": code,
                "value": round(value, 3),
                "label": "good" if value > 6.5 else "bad",
            }
        )
    return made


ROWS = rows()
Writer = Callable[[str, Any], str]


def plain(name: str, value: Any) -> str:
    return "" if value is None else repr(value) if name in NUMBERS else str(value)


def lines(write: Writer = plain, sep: str = ",") -> list[str]:
    body = [sep.join(write(name, row[name]) for name in NAMES) for row in ROWS]
    return [sep.join(NAMES), *body]


def text(write: Writer = plain, sep: str = ",", end: str = "\n") -> str:
    return end.join(lines(write, sep)) + end


def csv(content: str | bytes, name: str = "messy.csv", **more: Any) -> Case:
    return Case(name, content.encode() if isinstance(content, str) else content, **more)


def with_numbers(form: Callable[[str, float], str], sep: str = ",", **more: Any) -> Case:
    """Return the table with numbers written by a function of the column and the number."""

    def write(name: str, value: Any) -> str:
        wanted = value is not None and name in NUMBERS
        return form(name, value) if wanted else plain(name, value)

    return csv(text(write, sep), **more)


def comma(number: str) -> str:
    return number.replace(".", ",")


def grouped(value: float, sign: str) -> str:
    return f"{value:,}".replace(",", sign)


GENERATORS: dict[str, Callable[[], Case]] = {}


def generator(make: Callable[[], Case]) -> Callable[[], Case]:
    GENERATORS[make.__name__] = make
    return make


# --- how fields and lines are cut ---------------------------------------------------------------


@generator
def semicolons() -> Case:
    return csv(text(sep=";"), told="fields separated by semicolons")


@generator
def tabs_in_csv() -> Case:
    return csv(text(sep="\t"), told="fields separated by tabs")


@generator
def tabs_in_tsv() -> Case:
    return csv(text(sep="\t"), "messy.tsv")


@generator
def bars() -> Case:
    return csv(text(sep="|"), told="fields separated by bars")


@generator
def a_delimiter_that_is_said() -> Case:
    return csv(text(sep="~"), words=("--delimiter", "~"))


@generator
def the_line_of_excel() -> Case:
    return csv("sep=;\r\n" + text(sep=";", end="\r\n"))


@generator
def ends_of_windows() -> Case:
    return csv(text(end="\r\n"))


@generator
def no_end_of_the_last_line() -> Case:
    return csv(text().rstrip("\n"))


@generator
def empty_lines_before() -> Case:
    return csv("\n\n" + text())


@generator
def empty_lines_between() -> Case:
    return csv(text(end="\n\n"))


@generator
def empty_lines_after() -> Case:
    return csv(text() + "\n\n\n")


@generator
def a_delimiter_too_many() -> Case:
    return csv("".join(f"{line},\n" for line in lines()))


@generator
def everything_in_quotes() -> Case:
    return csv(text(lambda name, value: f'"{plain(name, value)}"'))


@generator
def a_column_without_a_name() -> Case:
    body = [f"{i},{line}" for i, line in enumerate(lines())]
    return csv("\n".join(["," + lines()[0], *body[1:]]) + "\n", words=("--drop", "column 1"))


@generator
def compressed() -> Case:
    return csv(gzip.compress(text().encode()), "messy.csv.gz")


# --- spaces -------------------------------------------------------------------------------------


@generator
def spaces_around_fields() -> Case:
    return csv(text(lambda name, value: f"  {plain(name, value)} "))


@generator
def spaces_around_names() -> Case:
    head, *body = lines()
    return csv("\n".join([head.replace(",", " , ") + " ", *body]) + "\n")


@generator
def spaces_behind_some_labels() -> Case:
    count = iter(range(10**6))

    def write(name: str, value: Any) -> str:
        tail = " " * (next(count) % 3) if name in ("label", "town") and value else ""
        return plain(name, value) + tail

    return csv(text(write))


# --- numbers ------------------------------------------------------------------------------------


@generator
def decimal_commas() -> Case:
    return with_numbers(lambda _, v: comma(repr(v)), ";", told="decimal commas")


@generator
def decimal_commas_in_quotes() -> Case:
    return with_numbers(lambda _, v: f'"{comma(repr(v))}"')


@generator
def decimal_commas_that_are_said() -> Case:
    return with_numbers(lambda _, v: comma(repr(v)), "\t", words=("--decimal", ","))


@generator
def thousands_by_commas() -> Case:
    return with_numbers(lambda _, v: f'"{grouped(v, ",")}"', told="thousands grouped by ','")


@generator
def thousands_by_points() -> Case:
    def form(name: str, value: float) -> str:
        return f"{value:,}".translate({ord(","): ".", ord("."): ","})

    return with_numbers(form, ";", told="thousands grouped by '.'")


@generator
def thousands_that_are_said() -> Case:
    words = ("--thousands", ".", "--decimal", ",")

    def form(name: str, value: float) -> str:
        return f"{value:,}".translate({ord(","): ".", ord("."): ","})

    return with_numbers(form, ";", words=words)


@generator
def thousands_by_spaces() -> Case:
    return with_numbers(lambda _, v: comma(grouped(v, " ")), ";")


@generator
def thousands_by_narrow_spaces() -> Case:
    return with_numbers(lambda _, v: comma(grouped(v, "\u202f")), ";")


@generator
def thousands_by_apostrophes() -> Case:
    return with_numbers(lambda _, v: grouped(v, "'"))


@generator
def dollars() -> Case:
    def form(name: str, value: float) -> str:
        return f"${value}".replace("$-", "-$") if name == "price" else repr(value)

    return with_numbers(form, told="currency signs")


@generator
def euros_behind() -> Case:
    def form(name: str, value: float) -> str:
        return comma(f"{value}") + " €" if name == "price" else comma(repr(value))

    return with_numbers(form, ";", told="currency signs")


@generator
def codes_of_currencies() -> Case:
    return with_numbers(lambda n, v: f"USD {v}" if n == "price" else repr(v))


@generator
def percents() -> Case:
    return with_numbers(
        lambda n, v: f"{round(v * 100, 1)}%" if n == "rate" else repr(v), told="percent signs"
    )


@generator
def percents_with_commas() -> Case:
    def form(name: str, value: float) -> str:
        return comma(f"{round(value * 100, 1)} %" if name == "rate" else repr(value))

    return with_numbers(form, ";")


@generator
def parentheses_of_accountants() -> Case:
    return with_numbers(lambda _, v: f"({-v})" if v < 0 else repr(v))


@generator
def a_minus_sign_behind() -> Case:
    return with_numbers(lambda _, v: f"{-v}-" if v < 0 else repr(v))


@generator
def the_long_minus_sign() -> Case:
    return with_numbers(lambda _, v: repr(v).replace("-", "\u2212"))


@generator
def plus_signs() -> Case:
    return with_numbers(lambda _, v: repr(v) if v < 0 else f"+{v}")


@generator
def powers_of_ten() -> Case:
    return with_numbers(lambda n, v: f"{v:.9e}" if n == "price" else repr(v))


@generator
def points_without_a_zero() -> Case:
    return with_numbers(lambda n, v: repr(v).removeprefix("0") if n == "rate" else repr(v))


# --- encodings ----------------------------------------------------------------------------------


@generator
def a_byte_order_mark() -> Case:
    return csv(b"\xef\xbb\xbf" + text().encode(), told="byte order mark")


@generator
def latin_1() -> Case:
    return csv(text().encode("latin-1"), told="Windows-1252")


@generator
def windows_1252_with_euros() -> Case:
    case = euros_behind()
    return csv(case.content.decode().encode("cp1252"), told="Windows-1252")


@generator
def an_encoding_that_is_said() -> Case:
    return csv(text().encode("cp850"), words=("--encoding", "cp850"))


@generator
def utf_16() -> Case:
    return csv(text().encode("utf-16"), told="UTF-16")


@generator
def utf_16_the_other_way_round() -> Case:
    return csv(b"\xfe\xff" + text().encode("utf-16-be"), told="UTF-16")


@generator
def utf_16_without_a_mark() -> Case:
    return csv(text(sep="\t").encode("utf-16-le"), told="UTF-16")


# --- holes --------------------------------------------------------------------------------------


def holes(mark: Callable[[int], str], **more: Any) -> Case:
    count = iter(range(10**6))

    def write(name: str, value: Any) -> str:
        return mark(next(count)) if value is None else plain(name, value)

    return csv(text(write), **more)


@generator
def question_marks() -> Case:
    return holes(lambda _: "?")


@generator
def several_words_for_missing() -> Case:
    return holes(lambda i: ("NA", "", "null", " n/a ", "NaN", "#N/A")[i % 6])


@generator
def a_word_for_missing_that_is_said() -> Case:
    return holes(lambda _: "unknown", words=("--missing", "unknown"))


@generator
def a_word_for_missing_that_is_not_said() -> Case:
    return holes(lambda _: "unknown", error="'unknown' in line 7 of messy.csv.*--missing 'unknown'")


@generator
def rows_without_a_target() -> Case:
    head, *body = lines()
    extra = ["1.5,2000.0,0.5,1,Brest,007,,", "2.5,3000.0,0.5,1,Köln,012, ,NA"]
    return csv("\n".join([head, *extra, *body]) + "\n", told="2 rows have no target")


# --- other formats ------------------------------------------------------------------------------


def workbook(cells: list[list[Any]]) -> bytes:
    """Return a workbook of one sheet."""

    def cell(value: Any) -> str:
        if value is None:
            return "<c/>"
        if isinstance(value, datetime.date):  # days since 1899-12-30, in the style of dates
            return f'<c s="1"><v>{(value - datetime.date(1899, 12, 30)).days}</v></c>'
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        return f"<c><v>{value}</v></c>"

    space = "http://schemas.openxmlformats.org"
    sheet = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in cells)
    office = f"{space}/officeDocument/2006/relationships"
    main = f"{space}/spreadsheetml/2006/main"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{space}/package/2006/content-types"><Default '
        'Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/><Override '
        f'PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/><Override '
        f'PartName="/xl/styles.xml" ContentType="{kind}.styles+xml"/></Types>',
        "xl/styles.xml": f'<styleSheet xmlns="{main}"><cellXfs count="2"><xf numFmtId="0"/>'
        '<xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>',
        "_rels/.rels": f'<Relationships xmlns="{space}/package/2006/relationships"><Relationship '
        f'Id="r1" Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="Data" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{space}/package/2006/relationships">'
        f'<Relationship Id="r1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="r2" Type="{office}/styles" Target="styles.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{sheet}</sheetData>'
        "</worksheet>",
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{content}')
    return made.getvalue()


@generator
def excel() -> Case:
    return Case("messy.xlsx", workbook([list(NAMES), *([*row.values()] for row in ROWS)]))


@generator
def excel_with_a_gap_above() -> Case:
    return Case("messy.xlsx", workbook([[None], list(NAMES), *([*r.values()] for r in ROWS)]))


@generator
def excel_with_numbers_as_text() -> Case:
    cells = [[None if v is None else comma(str(v)) for v in row.values()] for row in ROWS]
    return Case("messy.xlsx", workbook([list(NAMES), *cells]), told="decimal commas")


@generator
def json_lines() -> Case:
    body = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
    return Case("messy.jsonl", body.encode())


@generator
def json_lines_without_some_keys() -> Case:
    found = [{k: v for k, v in row.items() if v is not None} for row in ROWS]
    return Case("messy.ndjson", "".join(json.dumps(row) + "\n\n" for row in found).encode())


def arrow_table() -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist(ROWS)


@generator
def feather() -> Case:
    from pyarrow import feather as format

    made = io.BytesIO()
    format.write_feather(arrow_table(), made)
    return Case("messy.feather", made.getvalue())


@generator
def parquet() -> Case:
    from pyarrow import parquet as format

    made = io.BytesIO()
    format.write_table(arrow_table(), made)
    return Case("messy.parquet", made.getvalue())


# --- what nobody can read without help ----------------------------------------------------------


@generator
def a_typing_error_in_a_number() -> Case:
    changed = lines()
    fields = changed[40].split(",")
    changed[40] = ",".join(["4.O2", *fields[1:]])
    return csv("\n".join(changed), error="'4.O2' in line 41 of messy.csv.*--missing '4.O2'")


@generator
def a_field_too_many() -> Case:
    changed = lines()
    changed[30] += ",more"
    return csv("\n".join(changed), error="Line 31 of messy.csv has 9 fields.*names 8.*repair")


@generator
def a_field_too_few_behind_an_empty_line() -> Case:
    changed = lines()
    changed[30] = "\n1,2,3"
    return csv("\n".join(changed), error="Line 32 of messy.csv has 3 fields.*repair or remove")


@generator
def the_same_name_twice() -> Case:
    content = text().replace("price", "size", 1)
    return csv(content, error="messy.csv has two columns of the name 'size'.*line 1: rename")


@generator
def a_quote_that_never_ends() -> Case:
    changed = lines()
    changed[20] = changed[20].replace("Brest", "x").replace(",", ',"', 1)
    return csv("\n".join(changed), error="Line 21 of messy.csv has .* fields.*repair")


@generator
def nothing_at_all() -> Case:
    return csv("", error="messy.csv is empty.*")


@generator
def a_header_only() -> Case:
    return csv(lines()[0] + "\n", error="messy.csv .*no rows")


@generator
def zero_bytes() -> Case:
    return csv(b"\x00\xff\xfe\x01" * 500, error="messy.csv is not CSV: there are zero bytes")


@generator
def another_encoding_than_was_said() -> Case:
    content = text().encode("latin-1")
    line = 1 + next(i for i, row in enumerate(lines()) if not row.isascii())
    error = f"Line {line} of messy.csv is not UTF-8.*--encoding"
    return csv(content, words=("--encoding", "utf-8"), error=error)


@generator
def another_delimiter_than_was_said() -> Case:
    return csv(text(), words=("--delimiter", ";"), error="messy.csv is one column.*--delimiter ','")


@generator
def json_that_breaks_off() -> Case:
    body = "".join(json.dumps(row) + "\n" for row in ROWS[:50]) + '{"size": 1.5, "pri\n'
    return Case("messy.jsonl", body.encode(), error="Line 51 of messy.jsonl is not JSON.*object")


@generator
def json_that_is_a_list() -> Case:
    return Case("messy.jsonl", b"[1, 2]\n", error="Line 1 of messy.jsonl is a list, not an object")


@generator
def a_workbook_that_is_none() -> Case:
    return Case("messy.xlsx", b"PK no", error="messy.xlsx cannot be read as a workbook.*as CSV")


@generator
def an_infinite_number() -> Case:
    changed = lines()
    changed[10] = ",".join(["inf", *changed[10].split(",")[1:]])
    return csv("\n".join(changed), error="'size' has an infinite value in line 11.*replace")


@generator
def a_target_that_is_not_there() -> Case:
    content = text().replace("value", "worth", 1)
    return csv(content, error="messy.csv has no column 'value'")
