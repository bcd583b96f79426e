"""The built pages in a real browser: nothing is loaded, no raw formula, nothing sticks out.

Builds nothing: run ``make docs`` first, or the tests are skipped.
"""

from __future__ import annotations

import pytest
from tests.meta.tree import ROOT
from tests.report.browser import CHROMIUM, DRIVER, Browser

BUILT = ROOT / "docs" / "_build" / "html"
PAGES = sorted(path.stem for path in BUILT.glob("*.html"))
EXAMPLES = sorted(f"auto_examples/{path.stem}" for path in BUILT.glob("auto_examples/*.html"))
# Of the reference the packages, and classes with long signatures: the others are made alike.
PACKAGES = sorted(
    f"generated/{path.stem}"
    for path in BUILT.glob("generated/*.html")
    if path.stem.rpartition(".")[2].islower()
)
CLASSES = [
    f"generated/lssvm.{name}"
    for name in ("LSSVMClassifier", "FixedSizeLSSVR", "data.Scan", "plots.WaterfallDisplay")
]
SIZES = [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")]
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


def check(browser, name, width, scheme):
    browser.console(), browser.requests()
    browser.show(BUILT / f"{name}.html", width, 844, scheme)
    asked = browser.requests()
    assert [url for url in asked if url.startswith(("http:", "https:"))] == []
    said = [line for line in browser.console() if "[PST]" not in line and "theme mode" not in line]
    assert said == []
    assert browser.run(RAW) == []
    assert browser.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width, scheme", SIZES)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_quietly_and_fits(browser, name, width, scheme):
    check(browser, name, width, scheme)


@pytest.mark.parametrize("name", [*EXAMPLES, *PACKAGES, *CLASSES])
def test_examples_and_the_reference_fit_a_phone(browser, name):
    check(browser, name, 390, "dark")


def test_types_in_signatures_are_links(browser):
    browser.show(BUILT / "generated" / "lssvm.solvers.DualSystem.html", 1280, 844, "light")
    links = browser.run(
        "return [...document.querySelectorAll('dt.sig a.reference')].map(e => e.textContent)"
    )
    assert "Kernel" in links
