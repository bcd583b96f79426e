"""The built pages in a real browser: nothing is loaded, no raw formula, nothing sticks out.

Builds nothing: run ``make docs`` first, or the tests are skipped.
"""

from __future__ import annotations

import pytest
from tests.meta.tree import ROOT
from tests.report.browser import CHROMIUM, DRIVER, Browser

BUILT = ROOT / "docs" / "_build" / "html"
PAGES = sorted(path.stem for path in BUILT.glob("*.html"))
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver"),
    pytest.mark.skipif(not PAGES, reason="needs the pages: make docs"),
]
RAW = r"""return [...document.querySelectorAll('.bd-article p, .bd-article li, math')]
  .map(e => e.textContent).filter(t => /\\[a-z]+\{|\\frac|:math:|\\\(/.test(t))"""


@pytest.fixture(scope="module")
def browser():
    with Browser() as found:
        yield found


@pytest.mark.parametrize("width, scheme", [(390, "light"), (390, "dark"), (1280, "light")])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_quietly_and_fits(browser, name, width, scheme):
    browser.console(), browser.requests()
    browser.show(BUILT / f"{name}.html", width, 844, scheme)
    asked = browser.requests()
    assert [url for url in asked if url.startswith(("http:", "https:"))] == []
    said = [line for line in browser.console() if "[PST]" not in line and "theme mode" not in line]
    assert said == []
    assert browser.run(RAW) == []
    assert browser.run("return document.documentElement.scrollWidth") <= width
