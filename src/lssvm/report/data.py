"""The section of the data: what the columns hold, and what looks wrong with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from lssvm._core.arrays import FloatArray
from lssvm.data.raw import TextColumn
from lssvm.report.charts import N_COLOURS
from lssvm.report.formats import count, number, percent, short
from lssvm.report.markup import Markup, Section, bar_table, more, table, tag, why
from lssvm.report.measures import as_columns
from lssvm.report.sample import SampledRows, as_numbers
from lssvm.report.subject import Subject

LEAK = 0.98  # accuracy, or R2, of a single column from which on it is suspected
LEAK_ROWS = 2000
LEAK_COLUMNS = 200
FEW = 30  # rows below which nothing is suspected
LONG = 25  # columns from which on their table is folded away
MOST = 1200  # columns that are listed
LEVELS = 6  # categories that are named


@dataclass(frozen=True)
class ColumnFacts:
    """What a column holds.

    Attributes
    ----------
    name, kind : str
    missing : int
        Rows without a value.
    holds : str
        Range or categories, in words.
    suspicion : str
        "constant", "an identifier" or nothing.
    """

    name: str
    kind: str
    missing: int
    holds: str
    suspicion: str


def column_facts(name: str, values: FloatArray | TextColumn) -> ColumnFacts:
    """Look at one column.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.data import column_facts
    >>> column_facts("id", np.arange(100.0)).suspicion, column_facts("a", np.ones(9)).holds
    ('an identifier', '1 to 1, mean 1')
    """
    numbers = as_numbers(values)
    n = len(numbers)
    if isinstance(values, TextColumn):
        kind, known = "text", numbers[numbers >= 0]
        levels = [values.levels[int(code)] for code in np.unique(known)]
        names = ", ".join(short(level, 16) for level in levels[:LEVELS])
        holds = f"{count(len(levels))} categories: {names}{', …' if len(levels) > LEVELS else ''}"
        different, ordered = len(levels), len(levels) == len(known)
    else:
        kind, known = "number", numbers[np.isfinite(numbers)]
        holds = "no value"
        if known.size:
            holds = f"{number(known.min())} to {number(known.max())}, mean {number(known.mean())}"
        different = len(np.unique(known))
        # whole numbers that never repeat and leave few gaps, as those of a counter
        whole = bool(known.size) and bool(np.all(known == np.floor(known)))
        ordered = whole and float(np.ptp(known)) < 2.0 * n
    suspicion = "constant" if different < 2 else ""
    if n >= FEW and different == len(known) == n and ordered:
        suspicion = "an identifier"
    return ColumnFacts(name, kind, n - len(known), holds, suspicion)


def leaks(rows: SampledRows, classification: bool) -> dict[str, float]:
    """Return the columns that predict the target almost alone, with their accuracy or R2.

    Parameters
    ----------
    rows : SampledRows
    classification : bool

    Notes
    -----
    A small decision tree on each column, three-fold cross-validation on at most 2,000 rows, the
    first 200 columns. Classes of which nearly all rows are one are no evidence: the tree has to be
    right for 98 % of the rows, and wrong for at most a tenth of those that the largest class gets
    wrong.
    """
    some = rows.some(LEAK_ROWS)
    if classification:
        _, sizes = np.unique(some.y, return_counts=True)
        limit = max(LEAK, 1.0 - 0.1 * (1.0 - sizes.max() / len(some)))
        tree = DecisionTreeClassifier(max_leaf_nodes=64, min_samples_leaf=3, random_state=0)
        target, usable = some.y, sizes.min() >= 3
    else:
        target, limit, usable = as_columns(some.y), LEAK, True
        tree = DecisionTreeRegressor(max_leaf_nodes=256, min_samples_leaf=3, random_state=0)
    if len(some) < FEW or not usable:
        return {}
    scores = {
        name: float(np.mean(cross_val_score(tree, as_numbers(values)[:, None], target, cv=3)))
        for name, values in list(some.columns().items())[:LEAK_COLUMNS]
    }
    return {name: score for name, score in scores.items() if score >= limit}


def data(subject: Subject) -> Section | None:
    """Return the section of the data; None where rows are kernel values."""
    if not subject.has_features:
        return None
    rows = subject.train
    facts = [column_facts(name, values) for name, values in rows.columns().items()]
    leaking = leaks(rows, subject.classification)
    duplicates = len(rows) - len(np.unique(rows.keys()))
    ids = [fact.name for fact in facts if fact.suspicion == "an identifier"]
    holes = {fact.name: fact.missing / len(rows) for fact in facts if fact.missing}
    subject.facts["data"] = {
        "duplicates": duplicates,
        "missing": holes,
        "constant": [fact.name for fact in facts if fact.suspicion == "constant"],
        "suspected_ids": ids,
        "suspected_leaks": leaking,
    }
    what = "rows rightly" if subject.classification else "variance of the target"
    for name, score in leaking.items():
        subject.notes.append(
            f"The column “{short(name, 40)}” alone predicts {percent(score)} of the {what}: make "
            "sure that it is known before the target is, or leave it out. Such a column is often a "
            "leak."
        )
    for name in ids[:5]:
        subject.notes.append(
            f"The column “{short(name, 40)}” has another value in every row, as a number of rows "
            "has: leave it out, unless it means something."
        )
    texts = sum(fact.kind == "text" for fact in facts)
    seen = "" if rows.complete else f" (of which {count(len(rows))} were looked at)"
    words = (
        f"{count(rows.n_rows)} training rows{seen}, {count(len(facts) - texts)} columns of numbers "
        f"and {count(texts)} of text. "
        + (f"{count(duplicates)} rows repeat another one, target and all. " if duplicates else "")
        + (f"{count(len(holes))} columns have missing values." if holes else "Nothing is missing.")
    )
    head = ["Column", "Kind", "What it holds", "Missing", "Remark"]
    lines = [head, *(_line(fact, leaking, len(rows)) for fact in facts[:MOST])]
    kept = [j for j in range(5) if j < 3 or any(line[j] for line in lines[1:])]
    head, *lines = [[line[j] for j in kept] for line in lines]
    listed = table("Columns of the training rows.", head, lines, class_=None)
    if len(lines) > LONG:
        listed = more(f"The {count(len(facts))} columns", listed)
    return Section("data", "What it learned from", "Data", [why(words), _target(subject), listed])


def _line(fact: ColumnFacts, leaking: dict[str, float], n: int) -> list[str]:
    remark = "predicts the target alone" if fact.name in leaking else fact.suspicion
    missing = percent(fact.missing / n) if fact.missing else ""
    bold = tag("strong", remark) if remark else ""
    return [short(fact.name, 60), fact.kind, fact.holds, missing, bold]


def _target(subject: Subject) -> Markup:
    """Return what the target holds: rows by class, or the range of numbers."""
    if subject.classification:
        labels, sizes = np.unique(subject.train.y, return_counts=True)
        rows = [
            (label, float(n), f"{count(n)} ({percent(float(n / sizes.sum()))})")
            for label, n in zip(labels, sizes, strict=True)
        ]
        colours = [f"s{c % N_COLOURS}" for c in range(len(rows))]
        made = bar_table("Training rows by class.", ["Class", "", "Rows"], rows, colours)
        return made if len(rows) <= LONG else more(f"The {len(rows)} classes", made)
    Y = as_columns(subject.train.y)
    said = [
        f"{short(name, 40)}: {column_facts(name, y).holds}"
        for name, y in zip(subject.numbers.names, Y.T, strict=True)
    ]
    return tag("p", "What is predicted lies in these ranges: ", "; ".join(said[:LONG]), ".")
