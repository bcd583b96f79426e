"""The section of the columns: which ones the model leans on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.feature_selection import r_regression

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.plots.fitted import Predictor, fitted_model
from lssvm.report.formats import count, percent, plus_minus
from lssvm.report.markup import Markup, Section, bar_table, why
from lssvm.report.measures import nameless_rows, row_losses
from lssvm.report.model_facts import classifies, inner_names, prediction_work
from lssvm.report.sample import SampledRows, as_numbers
from lssvm.report.subject import Subject

WORK = 1.2e10  # kernel operations that shuffling columns may take
ROWS = (300, 2000)
PREDICTIONS = 6000  # of every shuffled column, over the repetitions
REPEATS = (2, 30)
NUMBERS = 2e7  # values of rows that are predicted at once
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


def shuffle_importance(estimator: Predictor, rows: SampledRows) -> Importance:
    """Shuffle one column after the other and predict again.

    Parameters
    ----------
    estimator : Predictor
        Fitted. The loss of a classifier is the share of wrong rows, that of a regressor the root
        mean squared error over the deviation of the target.
    rows : SampledRows

    Notes
    -----
    What `sklearn.inspection.permutation_importance` computes, with all repetitions of a column
    predicted at once and columns of any kind shuffled as they are. Rows and repetitions are as many
    as the work allows; few rows are shuffled more often. Of more than 60 columns, those that go
    most with the predictions (by rank correlation) are tried.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.report.importance import shuffle_importance
    >>> from lssvm.report.sample import SampledRows, as_numbers
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> model = LSSVR(10.0, gamma=0.3).fit(X, X[:, 1])
    >>> shuffle_importance(model, SampledRows.read(model, (X, X[:, 1]))).names
    ('x1', 'x0')
    """
    model, d = fitted_model(estimator), len(rows.schema.names)
    most = WORK / (prediction_work(model, d) * min(d, COLUMNS))  # predictions of a column
    some = rows.some(int(np.clip(most / REPEATS[0], *ROWS)), seed=1)
    repeats = int(np.clip(min(PREDICTIONS, most) / len(some), *REPEATS))
    tried = np.arange(d) if d <= COLUMNS else _strongest(estimator, some)
    classes = classifies(estimator)

    random = np.random.default_rng(0)
    places = np.array([random.permutation(len(some)) for _ in range(repeats)])
    together = int(np.clip(NUMBERS / (len(some) * d), 1, repeats))  # repetitions at a time

    def badness(sample: SampledRows) -> FloatArray:
        losses = row_losses(estimator, sample.given(estimator), sample.y)
        each = np.average(losses.reshape(-1, len(some)), axis=1, weights=some.weight)
        return np.asarray(each if classes else np.sqrt(each))

    worse = np.empty((len(tried), repeats))
    for begin in range(0, repeats, together):
        part = slice(begin, begin + together)
        many = some.take(np.tile(np.arange(len(some)), len(places[part])))
        for i, j in enumerate(tried):
            worse[i, part] = badness(many.moved(rows.schema.names[j], places[part].ravel()))
    worse -= badness(some)
    mean, spread = worse.mean(axis=1), worse.std(axis=1)
    order = np.argsort(-mean, kind="stable")
    names = tuple(rows.schema.names[tried[i]] for i in order)
    return Importance(names, mean[order], spread[order], len(some), repeats, len(tried), d)


def _strongest(estimator: Predictor, rows: SampledRows) -> IntArray:
    """Return the columns whose values go most with the predictions, by rank correlation."""
    with nameless_rows():
        predicted = np.asarray(estimator.predict(rows.given(estimator)))
    target = np.unique(predicted, return_inverse=True)[1].reshape(len(rows), -1)[:, 0]
    table = np.nan_to_num(np.column_stack([as_numbers(v) for v in rows.columns().values()]))
    ranks = np.argsort(np.argsort(table, axis=0), axis=0).astype(np.float64)
    strength = np.abs(r_regression(ranks, target, force_finite=True))
    strength[table.std(axis=0) == 0] = -1.0
    return np.sort(np.argsort(-strength, kind="stable")[:COLUMNS])


def columns(subject: Subject) -> Section | None:
    """Return the section of the columns."""
    if not subject.has_features or len(subject.train.schema.names) < 2:
        return None
    rows = subject.train if subject.test is None else subject.test
    found = shuffle_importance(subject.estimator, rows)
    body = [*_relevance(subject), *_importance(subject, found)]
    return Section("columns", "Which columns matter", "Columns", body)


def _importance(subject: Subject, found: Importance) -> list[Markup]:
    subject.facts["importance"] = dict(zip(found.names, found.mean.tolist(), strict=True))
    kind = "training" if subject.test is None else "test"
    unit, scale, tail = "root mean squared error, in deviations of the target,", 1.0, ""
    if subject.classification:
        unit, scale, tail = "share of wrong rows", 100.0, " points"
    words = (
        f"Each column in turn was shuffled among {count(found.n_rows)} {kind} rows "
        f"({found.repeats} times), so that it says nothing any more: the {unit} rises by this "
        "much. Columns that say the same can stand in for each other and then look unimportant."
    )
    if found.tried < found.all:
        words += (
            f" Of {count(found.all)} columns, the {found.tried} that go most with the predictions "
            "were tried."
        )
    rows = [
        (name, float(mean), f"{plus_minus(scale * mean, scale * spread)}{tail}")
        for name, mean, spread in zip(found.names, found.mean, found.spread, strict=True)
    ]
    rest = len(rows) - SHOWN
    more = f" {rest} more columns matter less." if rest > 0 else ""
    caption = f"Importance by shuffling: mean and deviation over the repetitions.{more}"
    return [why(words), bar_table(caption, ["Column", "", "Worse by"], rows[:SHOWN])]


def _relevance(subject: Subject) -> list[Markup]:
    relevance = getattr(subject.model, "feature_relevance_", None)
    if relevance is None:
        return []
    names = inner_names(subject.estimator, len(relevance))
    order = np.argsort(-np.asarray(relevance), kind="stable")
    shares = subject.facts["relevance"] = {names[i]: float(relevance[i]) for i in order}
    rows = [(name, share, percent(share)) for name, share in shares.items()][:SHOWN]
    words = (
        "Each feature has a gamma of its own, found by the evidence of the training rows. The "
        "larger it is, the more the model looks at that feature."
    )
    caption = "Relevance: the share of each feature in the distances that the model sees."
    return [why(words), bar_table(caption, ["Feature", "", "Share"], rows)]
