"""The built pages in a real browser: nothing is loaded, no raw formula, nothing sticks out.

Builds nothing: run ``make docs`` first, or the tests are skipped.
"""

from __future__ import annotations

import re

import pytest
from tests.meta.tree import ROOT
from tests.report.browser import CHROMIUM, DRIVER, Browser

BUILT = ROOT / "docs" / "_build" / "html"
PAGES = sorted(path.stem for path in BUILT.glob("*.html"))
EXAMPLES = sorted(f"auto_examples/{path.stem}" for path in BUILT.glob("auto_examples/*.html"))
# Of the reference the packages, and classes with long signatures: the others are made alike.
API = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
REFERENCE = [f"generated/{name}" for name in re.findall(r"^   (lssvm[\w.]*)$", API, re.MULTILINE)]
REFERENCE += [
    f"generated/lssvm.{name}"
    for name in ("LSSVMClassifier", "FixedSizeLSSVR", "data.Scan", "plots.WaterfallDisplay")
]
SIZES = [(390, "dark"), (390, "light"), (1280, "light"), (1280, "dark")]
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


@pytest.mark.parametrize("name", [*PAGES, *EXAMPLES, *REFERENCE])
def test_a_page_loads_quietly_and_fits(browser, name):
    browser.console(), browser.requests()
    browser.show(BUILT / f"{name}.html", 390, 844, "light")
    assert browser.run(RAW) == []
    for width, scheme in SIZES:
        browser.resize(width, 844, scheme)
        assert browser.run("return document.documentElement.scrollWidth") <= width
    asked = browser.requests()
    assert [url for url in asked if url.startswith(("http:", "https:"))] == []
    said = [line for line in browser.console() if "[PST]" not in line and "theme mode" not in line]
    assert said == []


def test_types_in_signatures_are_links(browser):
    browser.show(BUILT / "generated" / "lssvm.solvers.DualSystem.html", 1280, 844, "light")
    links = browser.run(
        "return [...document.querySelectorAll('dt.sig a.reference')].map(e => e.textContent)"
    )
    assert "Kernel" in links


@pytest.mark.parametrize("name", PAGES)
def test_tables_fit_on_a_desktop(browser, name):
    browser.show(BUILT / f"{name}.html", 1280, 844, "light")
    wide = "[...document.querySelectorAll('.pst-scrollable-table-container')]"
    wide += ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 80))"
    assert browser.run(f"return {wide}") == []
