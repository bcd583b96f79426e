"""Write the screenshots of the docs: ``python -m tests.report.screenshots docs/images``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tests.report.browser import Browser

from lssvm import FixedSizeLSSVR, LSSVMClassifier, scan
from lssvm.datasets import load_concrete, load_german_credit
from lssvm.report import write_report


def parts(table, target):
    """Return a scan of two thirds of the rows, and one of the others."""
    order = np.random.default_rng(0).permutation(len(table[target]))
    cut = 2 * len(order) // 3
    return [
        scan({name: np.asarray(values)[rows] for name, values in table.items()}, target=target)
        for rows in (order[:cut], order[cut:])
    ]


def report(model, table, target, path):
    """Fit a model and write its report."""
    train, test = parts(table, target)
    start = time.perf_counter()
    model.fit(train)
    seconds = {"tuning and fitting": time.perf_counter() - start}
    write_report(model, path, train=train, test=test, seconds=seconds)


def make(folder):
    """Write the reports of two bundled data sets, and return their paths."""
    credit, concrete = load_german_credit(), load_concrete()
    table = {
        name: credit.data[:, j].astype(str if name in credit.categorical_features else float)
        for j, name in enumerate(credit.feature_names)
    }
    table["risk"] = np.where(credit.target == 1, "good", "bad")
    classes, numbers = folder / "credit.html", folder / "concrete.html"
    report(LSSVMClassifier(random_state=0), table, "risk", classes)
    columns = dict(zip(concrete.feature_names, concrete.data.T, strict=True))
    columns["strength"] = concrete.target
    report(FixedSizeLSSVR(random_state=0), columns, "strength", numbers)
    return classes, numbers


def main(out: Path) -> None:
    """Save the pictures."""
    out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, Browser() as browser:
        classes, numbers = make(Path(folder))
        top = "return document.querySelector('#{}').offsetTop - 10"
        browser.show(classes, 1280, 900, "light")
        browser.picture(out / "report-desktop-light.png", 1500)
        browser.show(numbers, 1280, 900, "dark")
        browser.picture(out / "report-desktop-dark.png", 1500, browser.run(top.format("tuning")))
        browser.show(classes, 390, 844, "light")
        browser.picture(out / "report-phone-light.png")
        browser.show(numbers, 390, 844, "dark")
        browser.picture(out / "report-phone-dark.png", 844, browser.run(top.format("errors")))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
