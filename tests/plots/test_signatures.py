"""All displays are called alike."""

from __future__ import annotations

import inspect

import pytest

from lssvm import plots
from lssvm._core.errors import InvalidInputError
from lssvm.plots.base import Display

DISPLAYS = [getattr(plots, name) for name in plots.__all__]


@pytest.mark.parametrize("display", DISPLAYS, ids=lambda display: display.__name__)
def test_every_display_takes_a_model_and_perhaps_data(display):
    assert issubclass(display, Display)
    parameters = list(inspect.signature(display.from_estimator).parameters.values())
    assert [p.name for p in parameters[:4]] == ["model", "X", "y", "ax"]
    assert [p.default for p in parameters[1:4]] == [None, None, None]
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters[3:])
    first = list(inspect.signature(display.plot).parameters.values())[1]
    assert (first.name, first.default) == ("ax", None)


@pytest.mark.parametrize("name", ["BoundaryDisplay", "PrototypesDisplay"])
def test_a_display_that_needs_data_says_so(name, two_blobs):
    from lssvm import FixedSizeLSSVC

    model = FixedSizeLSSVC(5, C=1.0, gamma=1.0).fit(*two_blobs)
    with pytest.raises(InvalidInputError, match=f"{name}.from_estimator needs X"):
        getattr(plots, name).from_estimator(model)
