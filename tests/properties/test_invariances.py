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


def promises():
    for transformation in TRANSFORMATIONS:
        for family, problems in FAMILIES.items():
            for name in problems:
                if not applies(transformation, family, name):
                    continue
                yield transformation, family, name


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
