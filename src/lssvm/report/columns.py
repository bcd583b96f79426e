"""The section of the columns: which ones the model leans on."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.report.markup import Markup, join, tag
from lssvm.report.predictions import as_columns
from lssvm.report.rows import Rows
from lssvm.report.scales import count, percent, short
from lssvm.report.subject import Section, Subject, support_size

WORK = 6e9  # kernel operations that shuffling columns may take
ROWS = (150, 1000)
REPEATS = 5
COLUMNS = 60  # columns that are tried
SHOWN = 20


@dataclass(frozen=True, eq=False)
class Importance:
    """How much worse predictions get when a column is shuffled.

    Attributes
    ----------
    names : tuple of str
    mean, spread : arrays of shape (c,)
        Over the repetitions, in descending order of the mean.
    n_rows, repeats : int
    tried, all : int
        Columns that were shuffled, of how many.
    """

    names: tuple[str, ...]
    mean: FloatArray
    spread: FloatArray
    n_rows: int
    repeats: int
    tried: int
    all: int


def shuffle_importance(estimator: Any, model: Any, rows: Rows, classification: bool) -> Importance:
    """Shuffle one column after the other and predict again.

    Parameters
    ----------
    estimator : object
        Fitted.
    model : object
        Its last step, or itself.
    rows : Rows
    classification : bool
        Whether the loss is the share of wrong rows, else the root mean squared error over the
        deviation of the target.

    Notes
    -----
    Rows and repetitions are as many as the work allows. Of more than 60 columns, those that go most
    with the predictions (by rank correlation of numbers, all of text) are tried.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.report.columns import shuffle_importance
    >>> from lssvm.report.rows import Rows
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> model = LSSVR(10.0, gamma=0.3).fit(X, X[:, 1])
    >>> rows = Rows.read(model, (X, X[:, 1]))
    >>> shuffle_importance(model, model, rows, False).names
    ('x1', 'x0')
    """
    d = len(rows.schema.names)
    per_row = support_size(model) * (
        np.shape(model.prototypes_)[1] if hasattr(model, "prototypes_") else d
    )
    tried = min(d, COLUMNS)
    most = WORK / max(per_row + 20 * support_size(model), 1) / tried
    n = int(np.clip(most / REPEATS, *ROWS))
    repeats = int(np.clip(most / n, 1, REPEATS))
    some = rows.some(n, seed=1)
    columns = np.arange(d) if d <= COLUMNS else _strongest(estimator, some)
    truth: Any = some.y if classification else as_columns(some.y)

    def loss(part: Rows) -> float:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            predicted = np.asarray(estimator.predict(part.given(estimator)))
        if classification:
            return float(np.mean(predicted != truth))
        deviation = truth.std(axis=0)
        error = (predicted.reshape(truth.shape) - truth) / np.where(deviation > 0, deviation, 1.0)
        return float(np.sqrt(np.mean(error**2)))

    rng = np.random.default_rng(0)
    before = loss(some)
    change = np.array(
        [
            [
                loss(some.shuffled(int(c), rng.permutation(len(some)))) - before
                for _ in range(repeats)
            ]
            for c in columns
        ]
    )
    mean = change.mean(axis=1)
    order = np.argsort(-mean, kind="stable")
    names = tuple(rows.schema.names[columns[i]] for i in order)
    spread = change.std(axis=1)[order]
    return Importance(names, mean[order], spread, len(some), repeats, len(columns), d)


def _strongest(estimator: Any, rows: Rows) -> IntArray:
    """Return the columns whose numbers go most with the predictions, and columns of text."""
    predicted = np.asarray(estimator.predict(rows.given(estimator)))
    codes = np.unique(predicted, return_inverse=True)[1].reshape(predicted.shape)
    target = codes.reshape(len(rows), -1)[:, 0].astype(np.float64)
    table = np.nan_to_num(rows.codes())
    ranks = np.argsort(np.argsort(table, axis=0), axis=0).astype(np.float64)
    ranks -= ranks.mean(axis=0)
    target -= target.mean()
    size = np.sqrt((ranks**2).sum(axis=0) * (target @ target))
    strength = np.abs(target @ ranks) / np.where(size > 0, size, 1.0)
    strength[table.std(axis=0) == 0] = -1.0
    order = [*rows.schema.numbers, *rows.schema.texts]
    place = {name: i for i, name in enumerate(order)}
    by_column = np.array([strength[place[name]] for name in rows.schema.names])
    return np.sort(np.argsort(-by_column, kind="stable")[:COLUMNS])


def columns(subject: Subject) -> Section | None:
    """Return the section of the columns."""
    if not subject.has_features or len(subject.train.schema.names) < 2:
        return None
    parts: list[Any] = []
    relevance = getattr(subject.model, "feature_relevance_", None)
    if relevance is not None:
        parts.append(_relevance(subject, np.asarray(relevance)))
    rows = subject.train if subject.test is None else subject.test
    found = shuffle_importance(subject.estimator, subject.model, rows, subject.classification)
    parts.append(_importance(subject, found))
    return Section("columns", "Which columns matter", "Columns", join(parts))


def _importance(subject: Subject, found: Importance) -> list[Any]:
    subject.facts["importance"] = {
        name: float(value) for name, value in zip(found.names, found.mean, strict=True)
    }
    kind = "training" if subject.test is None else "test"
    unit = (
        "the share of wrong rows rises by"
        if subject.classification
        else "the root mean squared error, in deviations of the target, rises by"
    )
    words = [
        f"Each column in turn was shuffled among {count(found.n_rows)} {kind} rows "
        f"({found.repeats} times), so that it says nothing any more: {unit} this much. Columns "
        "that say the same can stand in for each other and then look unimportant."
    ]
    if found.tried < found.all:
        words.append(
            f" Of {count(found.all)} columns, the {found.tried} that go most with the predictions "
            "were tried."
        )

    def say(mean: float, spread: float) -> str:
        words = f"{mean:.3f} ± {spread:.3f}"
        if subject.classification:
            words = f"{100 * mean:.1f} ± {100 * spread:.1f} points"
        return words.replace("-", "\u2212")

    rows = [
        (name, float(mean), say(mean, spread))
        for name, mean, spread in zip(
            found.names[:SHOWN], found.mean[:SHOWN], found.spread[:SHOWN], strict=True
        )
    ]
    rest = len(found.names) - len(rows)
    more = f" {rest} more columns matter less." if rest > 0 else ""
    caption = f"Importance by shuffling: mean and deviation over the repetitions.{more}"
    return [tag("p", words, class_="why"), bar_table(caption, ["Column", "", "Worse by"], rows)]


def _relevance(subject: Subject, shares: FloatArray) -> list[Any]:
    names: Any = None
    if hasattr(subject.estimator, "preparation_"):
        names = subject.estimator.preparation_.feature_names
    elif subject.model is subject.estimator:
        names = subject.train.schema.names
    if names is None or len(names) != len(shares):
        names = [f"x{j}" for j in range(len(shares))]
    order = np.argsort(-shares, kind="stable")
    subject.facts["relevance"] = {str(names[i]): float(shares[i]) for i in order}
    rows = [(names[i], float(shares[i]), percent(float(shares[i]))) for i in order[:SHOWN]]
    words = (
        "Each feature has a gamma of its own, found by the evidence of the training rows. The "
        "larger it is, the more the model looks at that feature."
    )
    caption = "Relevance: the share of each feature in the distances that the model sees."
    return [tag("p", words, class_="why"), bar_table(caption, ["Feature", "", "Share"], rows)]


def bar_table(caption: str, head: list[str], rows: list[tuple[Any, float, str]]) -> Markup:
    """Return a table whose middle column is a bar.

    Parameters
    ----------
    caption : str
    head : list of 3 str
    rows : list of (name, value, text)
        Values below zero have an empty bar.

    Examples
    --------
    >>> from lssvm.report.columns import bar_table
    >>> "width:50.0%" in bar_table("c", ["a", "", "b"], [("x", 2.0, "2"), ("y", 1.0, "1")])
    True
    """
    most = max((value for _, value, _ in rows), default=0.0)
    body = []
    for name, value, text in rows:
        share = max(value, 0.0) / most if most > 0 else 0.0
        bar = tag("div", style=f"width:{100 * share:.1f}%", class_=None if share > 0 else "none")
        body.append(
            tag(
                "tr",
                tag("th", short(name, 44), scope="row", title=str(name)),
                tag("td", bar, class_="track"),
                tag("td", text),
            )
        )
    inner = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", [tag("th", name, scope="col") for name in head])),
        tag("tbody", body),
        class_="bars numbers",
    )
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)
