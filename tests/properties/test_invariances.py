"""What may be done to the training data without changing a model: promised, and kept."""

import re

import pytest
from tests.meta.tree import ROOT
from tests.properties.invariances import (
    FAMILIES,
    TOLERANCE,
    TRANSFORMATIONS,
    applies,
    differences,
)

# Promises that are not kept yet, and for which problems: a mark goes when its fault does.
_TABLES = ("two", "three frame", "numbers", "numbers frame", "numbers copies")
NOT_YET = {
    "columns in another order": _TABLES,
    "x * 3.7 + 11 for x in all number columns": _TABLES,
    "weights times 7": _TABLES,
    "weights that sum to 1": _TABLES,
    "every row three times": ("two", "three frame", "numbers frame"),
}


def promises():
    for transformation in TRANSFORMATIONS:
        for family, problems in FAMILIES.items():
            for name in problems:
                if not applies(transformation, family, name):
                    continue
                late = family == "table" and name in NOT_YET.get(transformation, ())
                marks = [pytest.mark.xfail(strict=True)] if late else []
                yield pytest.param(transformation, family, name, marks=marks)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("transformation", "family", "name"), list(promises()))
def test_the_model_is_the_same(transformation, family, name):
    if transformation == "a frame of polars":
        pytest.importorskip("polars")
    if transformation == "a table of Arrow":
        pytest.importorskip("pyarrow")
    far = differences(family, name, transformation)
    assert far and max(far.values()) <= TOLERANCE, far


def test_the_page_lists_what_is_promised():
    text = (ROOT / "docs" / "invariances.rst").read_text(encoding="utf-8")
    rows = re.findall(r"^   \* - (.+)\n     - (.+)\n     - ?(.*)$", text, flags=re.MULTILINE)
    shown = {what: (families, why) for what, families, why in rows[1:]}
    assert shown == {t.name: (t.families, t.unless) for t in TRANSFORMATIONS.values()}
