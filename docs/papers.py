"""Make docs/papers.rst from docs/papers.toml: switches, then a row per algorithm, equation, table.

python docs/papers.py
"""

import re
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TABLE, PAGE = HERE / "papers.toml", HERE / "papers.rst"
PAPERS = {
    2002: ("Suykens2002", "Basic methods of least squares support vector machines (chapter 3)"),
    2007: ("Jiao2007", "Fast sparse approximation for least squares support vector machine"),
    2010: ("DeBrabanter2010", "Optimized fixed-size kernel models for large data sets"),
    2011: ("Ding2011", "Approximate model selection for large scale LSSVM"),
    2014: ("Mall2014", "Very sparse LSSVM reductions for large scale data"),
}
HEAD = """The papers and this library
===========================

.. This page is made by docs/papers.py from docs/papers.toml.

One row per algorithm, equation and table of the five papers that this library is built on: where
it is, which test checks it, what deviates from the paper and why, and what was measured (the
printed figure in brackets). A row that is "as printed" has a test that compares with plain NumPy
written from the text (``tests/oracles``), and so has every option below. Every other row states
what deviates, which option is the printed version if there is one, and "not explained" where the
cause is not known. Measured figures are those of ``benchmarks/RESULTS.md``, where their protocol
is. A test checks that every name and every test on this page exists, and that an oracle is used
where the page claims it.

Printed versions by name
------------------------

Where the default is another way, or the paper leaves a choice open, these options give the printed
model. C is the papers' gamma, and gamma is 1/sigma^2. The whole methods by one name:

.. code-block:: python

   import numpy as np
   from lssvm import FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVC, LSSVC, LSSVR, scan
   from lssvm.codes import Coding
   from lssvm.prototypes import RenyiEntropy, renyi_entropy
   from lssvm.solvers import Logistic, Pinball

   rng = np.random.default_rng(0)
   X = rng.normal(size=(60, 2))
   y = np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, "a", "b")
   methods = [
       LSSVC.suykens2002(),
       GreedyLSSVC.jiao2007(sampled=True),
       FixedSizeLSSVC.debrabanter2010(12),
       LSSVC.ding2011(),
       FixedSizeLSSVC.mall2014("ssd-printed", "2 sqrt(n)"),
   ]
   scores = [method.fit(X, y).score(X, y) for method in methods]

Parts of them are options of any model: the order of the entropy (1 is Shannon's) and the printed
bandwidth, a threshold, a loss, a criterion:

.. code-block:: python

   entropy = renyi_entropy(X[:12], np.array([0.5, 0.5]), order=1)
   selection = RenyiEntropy("random", "plug-in", order=1)
   FixedSizeLSSVC(12, selection=selection, scoring="bic").fit(X, y)
   LSSVC("cv", gamma="cv", scoring="aic").fit(X, y)
   LSSVC(multiclass=Coding(targets="fisher", threshold="midpoint")).fit(X, y)
   LSSVC(multiclass=Coding(loss=Logistic(), calibration=None)).fit(X, y)
   LSSVR(loss=Pinball(0.9)).fit(X, X[:, 0])

Algorithm 4 of 2010 on a file, with the last 20 rows, or another file, for validation:

.. code-block:: python

   rows = np.column_stack([X, np.sin(X[:, 0])])
   np.savetxt("all.csv", rows, delimiter=",", header="a,b,y", comments="")
   np.savetxt("valid.csv", rows[40:], delimiter=",", header="a,b,y", comments="")
   FixedSizeLSSVR(12, cv=range(40, 60)).fit(scan("all.csv", target="y"))
   FixedSizeLSSVR(12, cv=scan("valid.csv", target="y")).fit(scan("all.csv", target="y"))

"""


def rows() -> list[dict[str, Any]]:
    """Read the table."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))["row"]


def switches() -> list[dict[str, Any]]:
    """Read the options that are the printed version."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))["switch"]


def markup(text: str) -> str:
    """Turn `code` into reStructuredText."""
    return re.sub(r"`([^`]+)`", r"``\1``", text)


def _options() -> str:
    text = [".. list-table::\n   :header-rows: 1\n   :widths: 28 44 28\n\n"]
    text += ["   * - option\n     - printed\n     - by default\n"]
    for switch in switches():
        names = ", ".join(f"``{name}``" for name in switch["option"])
        printed = markup(switch["printed"])
        if "equation" in switch:
            # Several formulas, so that the lines of a cell can break between them.
            formulas = re.sub(r"([,;]) \\q?quad ", r"`\1 :math:`", switch["equation"])
            printed += f": :math:`{formulas}`"
        text.append(f"   * - {names}\n     - {printed}\n     - {markup(switch['default'])}\n")
    return "".join(text) + "\n"


def page() -> str:
    """Return the page."""
    text = [HEAD, _options()]
    for year, (key, title) in PAPERS.items():
        heading = f"{year}: {title}"
        text += [f"{heading}\n{'-' * len(heading)}\n\n:cite:`{key}`\n\n"]
        text += [".. list-table::\n   :header-rows: 1\n   :widths: 22 24 24 30\n\n"]
        text += ["   * - printed\n     - where\n     - checked by\n     - deviates, measured\n"]
        for row in rows():
            if row["paper"] != year:
                continue
            where = ", ".join(f"``{name}``" for name in row["where"])
            checked = ", ".join(f"``{name}``" for name in row["checked"])
            notes = [row.get("deviates", "As printed.")]
            if "measured" in row:
                notes.append(f"Measured: {row['measured']}.")
            last = markup(" ".join(note.rstrip(".") + "." for note in notes))
            cells = [markup(row["item"]), where, checked, last[:1].upper() + last[1:]]
            text.append("   * - " + "\n     - ".join(cells) + "\n")
        text.append("\n")
    return "".join(text).rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
