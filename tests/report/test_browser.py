"""Reports in a real browser: nothing is loaded, nothing complains, nothing sticks out."""

from __future__ import annotations

import pytest
from tests.report import cases
from tests.report.browser import CHROMIUM, DRIVER, Browser
from tests.report.rough import make_rough

from lssvm.report import write_report

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver on the path"
    ),
]

PAGES = ("prepared", "many_classes", "regression", "outputs", "table_classifier", "forecast")
# What sticks out to the right, but for what scrolls in its own box or is hidden on purpose.
STICKS_OUT = """
return [...document.querySelectorAll('body *')].filter(e =>
  e.getBoundingClientRect().right > window.innerWidth + 1
  && !e.closest('.scroll, pre, .skip, svg')).map(e => e.outerHTML.slice(0, 80))
"""


@pytest.fixture(scope="module")
def browser():
    with Browser() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    long = "a_name_without_any_place_to_break_it_" * 4
    with pytest.MonkeyPatch.context() as patch:
        make_rough(patch)
        for name in PAGES:
            case = getattr(cases, name)()
            settings = {long: long, "command": f"lssvm train {long}", "notes": [long]}
            path = folder / f"{name}.html"
            options = {"title": long, "seconds": {long: 1.0}, "settings": settings}
            write_report(case.model, path, train=case.train, test=case.test, **options)
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_quietly_and_fits(browser, pages, name, width, scheme):
    browser.console(), browser.requests()
    page = pages / f"{name}.html"
    browser.show(page, width, 844, scheme)
    assert browser.console() == []
    loaded = {address for address in browser.requests() if not address.startswith("data:image/")}
    assert loaded == {page.as_uri()}
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run(STICKS_OUT) == []
    assert browser.run("return document.querySelectorAll('section').length") >= 5


def test_pictures_have_a_size_and_hold_their_words(browser, pages):
    browser.show(pages / "regression.html", 390, 844, "light")
    sizes = browser.run(
        "return [...document.querySelectorAll('svg')].map(e => e.getBoundingClientRect().height)"
    )
    assert len(sizes) >= 6
    assert min(sizes) > 150
    cut = browser.run(
        """return [...document.querySelectorAll('svg text')].filter(t => {
          const a = t.getBBox(), v = t.ownerSVGElement.viewBox.baseVal;
          if (t.getAttribute('transform')) return a.width > v.height;
          return a.x < -1 || a.x + a.width > v.width + 1;
        }).map(t => t.textContent)"""
    )
    assert cut == []


def test_dark_is_dark_and_print_is_light(browser, pages):
    shade = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    page = pages / "prepared.html"
    browser.show(page, 1280, 900, "light")
    assert min(browser.run(shade)) > 200
    browser.show(page, 1280, 900, "dark")
    assert max(browser.run(shade)) < 60
    browser.show(page, 1280, 900, "dark", "print")
    assert min(browser.run(shade)) > 250
    hidden = "return getComputedStyle(document.querySelector('nav')).display"
    assert browser.run(hidden) == "none"


def test_details_open_with_the_keyboard(browser, pages):
    browser.show(pages / "prepared.html", 390, 844, "light")
    state = "return document.querySelector('details').open"
    assert browser.run(state) is False
    browser.press("details > summary", "\ue007")  # Enter
    assert browser.run(state) is True
