"""The sections of the columns: what they hold, which matter, what they do, and single rows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.feature_selection import r_regression
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.data.raw import TextColumn
from lssvm.explanations import Explanation
from lssvm.kernels.warp import N_BINS
from lssvm.plots.base import (
    Predictor,
    WithExplanations,
    WithScores,
    class_scores,
    fitted_attributes,
    fitted_model,
    has_probabilities,
)
from lssvm.report.charts import N_COLOURS, Chart, figure, pictures
from lssvm.report.markup import (
    Markup,
    Section,
    bar_table,
    count,
    more,
    number,
    percent,
    plus_minus,
    short,
    signed_table,
    table,
    tag,
    why,
)
from lssvm.report.measures import (
    Z95,
    as_columns,
    log_losses,
    losses,
    mean_and_error,
    nameless_rows,
    row_losses,
)
from lssvm.report.subject import (
    SampledRows,
    Subject,
    as_numbers,
    classifies,
    inner_names,
    prediction_work,
    slow_to_calibrate,
    table_record,
)

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
    >>> from lssvm.report.columns import column_facts
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
            "sure that it is known before the target is, or drop it. Such a column is often a leak."
        )
    for name in ids[:5]:
        subject.notes.append(
            f"The column “{short(name, 40)}” has another value in every row and may only number "
            "the rows: drop it, unless it has a meaning."
        )
    record = table_record(subject.model)
    if record is not None:
        ready = record.any_prepared
        subject.notes += [
            f"Column {n!r} is dropped: {reason}." for n, reason in ready.dropped.items()
        ]
        subject.notes += [f"Column {n!r}: {guess}." for n, guess in ready.guesses.items()]
    texts = sum(fact.kind == "text" for fact in facts)
    seen = "" if rows.complete else f" (of which {count(len(rows))} were examined)"
    words = (
        f"{count(rows.n_rows)} training rows{seen}, {count(len(facts) - texts)} columns of numbers "
        f"and {count(texts)} of text. "
        + (f"{count(duplicates)} rows are copies of another row. " if duplicates else "")
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


WORK = 1.2e10  # kernel operations that shuffling columns may take
ROWS = (300, 2000)
PREDICTIONS = 6000  # of every shuffled column, over the repetitions
REPEATS = (2, 30)
NUMBERS = 2e7  # values of rows that are predicted at once
COLUMNS = 60  # columns that are tried
SHOWN = 20


@dataclass(frozen=True, eq=False)
class Importance:
    """How much larger the loss of the model gets when a column is shuffled.

    Attributes
    ----------
    names : tuple of str
    mean, error : arrays of shape (c,)
        Mean rise of the loss, in descending order, and its standard error over the rows.
    loss : str
        What the loss is.
    n_rows, repeats : int
    tried, all : int
        Columns that were shuffled, of how many.
    """

    names: tuple[str, ...]
    mean: FloatArray
    error: FloatArray
    loss: str
    n_rows: int
    repeats: int
    tried: int
    all: int


def shuffle_importance(estimator: Predictor, rows: SampledRows) -> Importance:
    """Shuffle one column after the other and predict again.

    Parameters
    ----------
    estimator : Predictor
        Fitted. The loss of a classifier is the log loss of its probabilities (the share of wrong
        rows where it has none), that of a regressor the squared error over the target's variance.
    rows : SampledRows

    Notes
    -----
    What `sklearn.inspection.permutation_importance` computes, with all repetitions of a column
    predicted at once and columns of any kind shuffled as they are. Rows and repetitions are as many
    as the work allows; few rows are shuffled more often. Of more than 60 columns, those that go
    most with the predictions (by rank correlation) are tried. Standard errors are those of the
    mean over rows of each row's mean rise over the repetitions.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.report.columns import shuffle_importance
    >>> from lssvm.report.subject import SampledRows, as_numbers
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
    random = np.random.default_rng(0)
    places = np.array([random.permutation(len(some)) for _ in range(repeats)])
    together = int(np.clip(NUMBERS / (len(some) * d), 1, repeats))  # repetitions at a time

    base, loss = model_losses(estimator, some)
    rise = np.zeros((len(tried), len(some)))
    for begin in range(0, repeats, together):
        part = places[begin : begin + together]
        many = some.take(np.tile(np.arange(len(some)), len(part)))
        for i, j in enumerate(tried):
            lost, _ = model_losses(estimator, many.moved(rows.schema.names[j], part.ravel()))
            rise[i] += (lost.reshape(len(part), -1) - base).sum(axis=0) / repeats
    mean, error = np.array([mean_and_error(each, some.weight) for each in rise]).T
    order = np.argsort(-mean, kind="stable")
    names = tuple(rows.schema.names[tried[i]] for i in order)
    return Importance(names, mean[order], error[order], loss, len(some), repeats, len(tried), d)


def model_losses(estimator: Predictor, rows: SampledRows) -> tuple[FloatArray, str]:
    """Return the loss of every row, shape (n,), and what it is."""
    if not classifies(estimator):
        lost = row_losses(estimator, rows.given(estimator), rows.y)
        return lost, "squared error, as a share of the variance of the target,"
    values, what = answers(estimator, rows.given(estimator))
    classes = np.asarray(estimator.classes_)  # type: ignore[attr-defined]
    labels = np.searchsorted(classes, rows.y)
    if what == "probability":
        return log_losses(values, labels), "log loss"
    return np.asarray(values.argmax(axis=1) != labels, dtype=np.float64), "share of wrong rows"


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
    low, high = found.mean - Z95 * found.error, found.mean + Z95 * found.error
    ends = np.column_stack([low, high]).tolist()
    subject.facts["importance_interval"] = dict(zip(found.names, ends, strict=True))
    kind = "training" if subject.test is None else "test"
    words = (
        f"Each column in turn was shuffled among {count(found.n_rows)} {kind} rows "
        f"({found.repeats} times), which removes its information about the target. The bars show "
        f"by how much the {found.loss} rises. A column whose interval contains zero may not "
        "matter; columns with the same information can replace each other and look unimportant."
    )
    if found.tried < found.all:
        words += (
            f" Of {count(found.all)} columns, the {found.tried} that go most with the predictions "
            "were tried."
        )
    rows = [
        (name, float(mean), [number(mean), tag("small", f"{number(a)} to {number(b)}")])
        for name, mean, (a, b) in zip(found.names, found.mean, ends, strict=True)
        if (a, b) != (0.0, 0.0)  # the model has dropped it
    ]
    rest = len(rows) - SHOWN
    more = f" {rest} more columns matter less." if rest > 0 else ""
    caption = f"Permutation importance: mean rise of the loss with its 95 % interval.{more}"
    return [why(words), bar_table(caption, ["Column", "", "Loss rises by"], rows[:SHOWN])]


def _relevance(subject: Subject) -> list[Markup]:
    relevance = fitted_attributes(subject.model).get("feature_relevance_")
    if relevance is None:
        return []
    names = inner_names(subject.estimator, len(relevance))
    order = np.argsort(-np.asarray(relevance), kind="stable")
    shares = subject.facts["relevance"] = {names[i]: float(relevance[i]) for i in order}
    rows = [(name, share, percent(share)) for name, share in shares.items()][:SHOWN]
    words = (
        "Each feature has its own gamma, estimated from the training rows. The larger it is, the "
        "faster the model varies with the feature."
    )
    caption = "Relevance: the share of each feature in the distances of the kernel."
    return [why(words), bar_table(caption, ["Feature", "", "Share"], rows)]


SHAPE_WORK = 6e9  # operations that the pictures may take
SHAPE_ROWS = (20, 100)  # rows that the answers are averaged over
SHAPE_COLUMNS = 4  # columns that are drawn
POINTS = 20  # values of a column
CATEGORIES = 8
CELLS = 14  # values of each column of a pair
LINES = 6  # classes or outputs with a line of their own
STEPS = 12  # shades of a pair
NARROW = 6  # letters of a category under a picture


@dataclass(frozen=True, eq=False)
class Grid:
    """Values of a column that are tried.

    Attributes
    ----------
    name : str
    values : list of float or str
    places : array of shape (g,)
        Where they stand on an axis: the values themselves, or 0, 1, 2 and so on.
    text : bool
    """

    name: str
    values: list[Any]
    places: FloatArray
    text: bool

    @classmethod
    def of(cls, rows: SampledRows, name: str, most: int) -> Grid | None:
        """Return values between the 2 % and 98 % quantiles, or the most frequent categories.

        None where a column has fewer than two values.
        """
        column = rows.columns()[name]
        if isinstance(column, TextColumn):
            often = np.bincount(column.codes[column.codes >= 0], minlength=len(column.levels))
            order = np.argsort(-often, kind="stable")[: min(most, CATEGORIES)]
            levels = [column.levels[i] for i in order if often[i]]
            return cls(name, levels, np.arange(len(levels)) + 0.0, True) if levels[1:] else None
        known = column[np.isfinite(column)]
        different = np.unique(known)
        if len(different) < 2:
            return None
        values = different
        if len(different) > most:
            values = np.linspace(np.quantile(known, 0.02), np.quantile(known, 0.98), most)
            values = (
                values if values[-1] > values[0] else np.linspace(different[0], different[-1], most)
            )
        return cls(name, values.tolist(), values, False)

    @property
    def names(self) -> list[tuple[float, str]] | None:
        """Names of the places on an axis, where they are categories."""
        if not self.text:
            return None
        return [
            (i, short(value, NARROW)) for i, value in zip(self.places, self.values, strict=True)
        ]


def answers(estimator: Predictor, given: Any) -> tuple[FloatArray, str]:
    """Return what a model says about rows, (n, q), and what that is.

    Returns
    -------
    values : array of shape (n, q)
        A column for every class (of two classes too) or every output.
    what : {"probability", "score", "value"}
    """
    with nameless_rows():
        if not classifies(estimator):
            values = np.asarray(estimator.predict(given), dtype=np.float64)
            return values.reshape(len(values), -1), "value"
        slow = slow_to_calibrate(fitted_model(estimator))
        if has_probabilities(estimator) and not slow:
            with suppress(InvalidInputError):  # nothing to calibrate on
                return np.asarray(estimator.predict_proba(given)), "probability"
        assert isinstance(estimator, WithScores)
        return class_scores(estimator.decision_function(given)), "score"


def partial_dependence(
    estimator: Predictor, rows: SampledRows, grids: list[Grid]
) -> tuple[FloatArray, str]:
    """Return the answers of rows with every combination of values put into some columns.

    Parameters
    ----------
    estimator : Predictor
    rows : SampledRows
        m rows, whose other columns stay as they are.
    grids : list of Grid

    Returns
    -------
    values : array of shape (g1, ..., m, q)
    what : str

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.report.subject import SampledRows
    >>> from lssvm.report.columns import Grid, partial_dependence
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> model = LSSVR(100.0, gamma=0.1).fit(X, 2 * X[:, 0])
    >>> rows = SampledRows.read(model, (X, 2 * X[:, 0]))
    >>> made, what = partial_dependence(model, rows, [Grid.of(rows, "x0", 5)])
    >>> bool(np.all(np.diff(made.mean(axis=1)[:, 0]) > 0)), made.shape, what
    (True, (5, 80, 1), 'value')
    """
    sizes, m = [len(grid.values) for grid in grids], len(rows)
    places = np.indices(sizes).reshape(len(sizes), -1)
    every = rows.take(np.tile(np.arange(m), places.shape[1]))
    values = {
        grid.name: np.repeat(np.array(grid.values, dtype=object)[at], m).tolist()
        for grid, at in zip(grids, places, strict=True)
    }
    found, what = answers(estimator, every.replaced(values).given(estimator))
    return found.reshape(*sizes, m, -1), what


def shapes(subject: Subject) -> Section | None:
    """Return the section of partial dependence; None where no column can be varied."""
    if not subject.has_features:
        return None
    leading = list(subject.facts.get("importance") or subject.train.schema.names)[:SHAPE_COLUMNS]
    evaluations = SHAPE_COLUMNS * POINTS + 2 * CELLS * CELLS // 3
    work = prediction_work(subject.model, len(subject.train.schema.names)) * evaluations
    rows = subject.train.some(int(np.clip(SHAPE_WORK / work, *SHAPE_ROWS)), seed=2)
    grids = [grid for name in leading if (grid := Grid.of(subject.train, name, POINTS))]
    if not grids:
        return None
    facts: dict[str, Any] = {}
    drawn = [_one(subject, rows, grid, facts) for grid in grids]
    coarse = [Grid.of(subject.train, grid.name, CELLS) for grid in grids[:3]]
    first, *rest = [grid for grid in coarse if grid is not None]
    drawn += [_two(subject, rows, [first, other]) for other in rest]
    subject.facts["partial_dependence"] = facts
    warped = [figure for grid in grids if (figure := _where(subject, grid)) is not None]
    words = (
        f"One column at a time is set to each of its values in {count(len(rows))} training rows, "
        "and the predictions are averaged: the line. The band holds the middle half of the rows. A "
        "flat line is a column without an effect of its own; a wide band is one that interacts "
        "with others. Some combinations may never occur in reality."
    )
    body = [why(words), pictures(*drawn)]
    if warped:
        told = (
            "The model has learned a scale for every place of a column, a warp: where it is "
            "large, small differences of the column matter, and where it is near 0 they do not."
        )
        body += [tag("h3", "Where along a column the prediction changes"), why(told)]
        body.append(pictures(*warped))
    return Section("shapes", "What the leading columns do", "Shapes", body)


def _lines(subject: Subject, values: FloatArray) -> list[int]:
    """Return the classes or outputs that are drawn: the positive of two, else those that vary."""
    q = values.shape[-1]
    if subject.classification and q == 2:
        return [subject.classes.positive]
    moves = np.ptp(values.mean(axis=-2).reshape(-1, q), axis=0)
    return sorted(np.argsort(-moves, kind="stable")[:LINES].tolist())


def _named(subject: Subject, j: int) -> str:
    names = subject.classes.classes if subject.classification else subject.numbers.names
    return short(names[j], 24)


def _said(subject: Subject, what: str, lines: list[int]) -> str:
    if what == "value":
        one = len(subject.numbers.names) == 1
        return short(subject.target, 30) if one else "predicted"
    return f"{what} of “{_named(subject, lines[0])}”" if len(lines) == 1 else what


def _one(subject: Subject, rows: SampledRows, grid: Grid, facts: dict[str, Any]) -> Markup:
    values, what = partial_dependence(subject.estimator, rows, [grid])  # (g, m, q)
    lines = _lines(subject, values)
    mean, (low, high) = values.mean(axis=1), np.quantile(values, [0.25, 0.75], axis=1)
    facts[grid.name] = {"values": grid.values, "mean": mean[:, lines].tolist()}
    name, said = short(grid.name, 40), _said(subject, what, lines)
    drawn = np.concatenate([mean[:, lines], low[:, lines], high[:, lines]])
    title = f"{said} against {name}"
    limits = (-0.02, 1.02) if what == "probability" else None
    chart = Chart(title, grid.places, drawn, name, said, x_names=grid.names, y_limits=limits)
    keys = []
    for j in lines:
        colour = f"s{j % 8}" if subject.classification or len(lines) > 1 else "sa"
        if grid.text:
            for x, a, b in zip(grid.places, low[:, j], high[:, j], strict=True):
                chart.line([x, x], [a, b], colour, width=5.0, opacity=0.25)
            chart.dots(grid.places, mean[:, j], colour, size=8.0)
        else:
            if len(lines) <= 2:
                chart.band(grid.places, low[:, j], high[:, j], colour)
            chart.line(grid.places, mean[:, j], colour)
        keys.append((f"{colour} {'dot' if grid.text else 'line'}", _named(subject, j)))
    caption = f"{said[:1].upper()}{said[1:]} as “{name}” varies, with all other columns unchanged."
    if grid.text and any(len(str(value)) > NARROW for value in grid.values):
        caption += f" From left: {', '.join(short(value, 20) for value in grid.values)}."
    return figure(chart.svg(), caption, keys if len(lines) > 1 else ())


def _where(subject: Subject, grid: Grid) -> Markup | None:
    """Return how fast the warp of a model for tables runs along a column of numbers."""
    record = table_record(subject.model)
    warped = [] if record is None else [m for m in record.used if m.metric.warp is not None]
    if not warped or grid.text or subject.model is not subject.estimator:
        return None
    member, column = max(warped, key=lambda m: m.weight), subject.train.columns()[grid.name]
    known = as_numbers(column)[np.isfinite(as_numbers(column))]
    edges = np.unique(np.quantile(known, np.linspace(0.01, 0.99, N_BINS + 1), method="nearest"))
    rows = subject.train.take(np.zeros(len(edges), dtype=np.intp))
    given = rows.replaced({grid.name: edges.tolist()}).given(subject.estimator)
    ready = fitted_attributes(subject.model)["preparations_"][member.scaling].transform(given)
    moves = np.abs(np.diff(member.mapped({member.scaling: ready}), axis=0)).sum(axis=1)
    if len(edges) < 3 or not moves.any():
        return None
    speed = moves / np.diff(edges) * (edges[-1] - edges[0]) / moves.sum()
    subject.facts.setdefault("warps", {})[grid.name] = {
        "edges": edges.tolist(),
        "slope": speed.tolist(),
    }
    name, x, y = short(grid.name, 40), np.repeat(edges, 2)[1:-1], np.repeat(speed, 2)
    chart = Chart(f"Warp of {name}", x, [0, *y], name, "slope of the warp", y_zero=True)
    chart.line([edges[0], edges[-1]], [1, 1], "st", dashed=True, width=1.2, opacity=0.5).line(x, y)
    return figure(
        chart.svg(), f"Slope of the warp along “{name}”; dashed: the same scale everywhere."
    )


def _two(subject: Subject, rows: SampledRows, pair: list[Grid]) -> Markup:
    some = rows.some(max(SHAPE_ROWS[0], len(rows) // 3), seed=3)
    values, what = partial_dependence(subject.estimator, some, pair)
    j = _lines(subject, values.reshape(-1, *values.shape[2:]))[0]
    mean = values.mean(axis=2)[..., j].T  # rows of the picture are the second column
    x, y = pair
    said = _said(subject, what, [j])
    names = [short(grid.name, 40) for grid in pair]
    title = f"{said} over {names[0]} and {names[1]}"
    edges = [_edges(grid.places) for grid in pair]
    ends = [(float(e[0]), float(e[-1])) for e in edges]
    axes: dict[str, Any] = {"x_limits": ends[0], "y_limits": ends[1]}
    axes |= {"x_names": x.names, "y_names": y.names, "bar_room": 52.0}
    chart = Chart(title, x.places, y.places, names[0], names[1], **axes)
    low, high = float(mean.min()), float(mean.max())
    levels = np.floor(STEPS * (mean - low) / ((high - low) or 1.0)).clip(0, STEPS - 1)
    colour = f"s{j % 8}" if subject.classification else "sa"
    say = percent if what == "probability" else number
    chart.cells(edges[0], edges[1], levels.astype(np.intp), colour)
    chart.colour_bar((say(low), say(high)), STEPS, colour)
    caption = f"{said[:1].upper()}{said[1:]} over “{names[0]}” and “{names[1]}”."
    return figure(chart.svg(), caption)


def _edges(places: FloatArray) -> FloatArray:
    """Return the ends of cells around places."""
    middle = (places[1:] + places[:-1]) / 2
    first, last = 2 * places[0] - middle[0], 2 * places[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])


WORST = 3
TYPICAL = 2
BACKGROUND = 20
ORDERS = 4
ROW_COLUMNS = 7  # columns of a row that are listed
WIDE = 60  # columns beyond which sampling would take too long


def explained_rows(subject: Subject) -> Section | None:
    """Return the section of explanations; None where the model has none."""
    if not subject.has_features or not isinstance(subject.model, WithExplanations):
        return None
    typical, worst = _chosen(subject)
    rows = [*typical, *worst]
    found = explanation(subject, rows)
    if found is None:
        return None
    said = [f"Typical row {i + 1}" for i in range(len(typical))]
    said += [
        f"Wrong row {i + 1}" if subject.classification else f"Row far off {i + 1}"
        for i in range(len(worst))
    ]
    drawn = [
        _table(subject, found, i, row, name)
        for i, (row, name) in enumerate(zip(rows, said, strict=True))
    ]
    what = "score" if subject.classification else "prediction"
    words = (
        f"What each column adds to the {what} of a row, beginning with the mean {what} of "
        f"{BACKGROUND} training rows (Shapley values). "
        + ("They are exact" if found.exact else "They are sampled, and the ± is a standard error")
        + f"; with the mean they add up to the {what}. The wrong rows are those with the highest "
        "probability or the largest error: check their values."
    )
    record = table_record(subject.model)
    if subject.classification and record is not None and np.any(record.offset):
        words += " Scores are log-odds, before they are calibrated to probabilities."
    return Section("rows", "Why it predicted this", "Rows", [why(words), pictures(*drawn)])


def explanation(subject: Subject, rows: list[int]) -> Explanation | None:
    """Return the explanation of some of the rows that figures come from."""
    model, background = subject.model, subject.train.some(BACKGROUND, seed=4)
    both = subject.checked.take(rows), background
    given, against = (some.seen(subject.estimator) for some in both)
    with suppress(InvalidInputError), nameless_rows():
        found: Explanation = model.explain(  # type: ignore[attr-defined]
            given, against, n_background=BACKGROUND, n_permutations=ORDERS
        )
        return found
    return None


def _chosen(subject: Subject) -> tuple[list[int], list[int]]:
    """Return rows in the middle and at the end of what the model gets wrong."""
    if not subject.classification:
        found = subject.numbers
        order = np.argsort(losses(found.predicted, found.Y, classes=False), kind="stable")
        middle = len(order) // 2
        return order[middle : middle + TYPICAL].tolist(), order[::-1][:WORST].tolist()
    classes = subject.classes
    sure = classes.probability if classes.probability is not None else classes.ranking
    sure = np.zeros((len(classes), len(classes.classes))) if sure is None else sure
    own = sure[np.arange(len(classes)), classes.decided]
    right = classes.decided == classes.labels
    wrong = np.flatnonzero(~right)
    worst = wrong[np.argsort(-own[wrong], kind="stable")][:WORST].tolist()
    typical = []
    for c in np.argsort(-np.bincount(classes.labels), kind="stable")[:TYPICAL]:
        good = np.flatnonzero(right & (classes.labels == c))
        if len(good):
            typical.append(int(good[np.argsort(own[good], kind="stable")[len(good) // 2]]))
    return typical, worst


def _table(subject: Subject, found: Explanation, i: int, row: int, name: str) -> Markup:
    j, sign, colours = _output(subject, row)
    part = found[i].output(j) if found.values.ndim == 3 else found[i]
    values, errors = sign * part.values[0], part.errors[0]
    order = np.argsort(-np.abs(values), kind="stable")
    order = order[(values[order] != 0) | (errors[order] != 0)]  # without what the model has dropped
    shown, rest = order[:ROW_COLUMNS], order[ROW_COLUMNS:]
    names = list(part.feature_names)
    if subject.model is not subject.estimator:
        names = list(inner_names(subject.estimator, len(names)))
    added = [
        (f"{short(names[k], 28)} = {_value(part.data[0, k])}", float(values[k]), float(errors[k]))
        for k in shown
    ]
    if len(rest):
        added.append((f"{len(rest)} other columns", float(values[rest].sum()), 0.0))
    lines = [(what, value, plus_minus(value, error, sign=True)) for what, value, error in added]
    base, total = sign * float(part.base_values[0]), sign * float(part.prediction[0])
    where = int(subject.checked.positions[row]) + 1
    kind = "training" if subject.test is None else "test"
    caption = (
        f"{name}: {kind} row {where}, {_verdict(subject, row, j)} From {number(base)} to "
        f"{number(total)}."
    )
    return signed_table(caption, ["Column", "", "Adds"], lines, colours)


def _output(subject: Subject, row: int) -> tuple[int, float, tuple[str, str]]:
    """Return the output that is explained, its sign, and the colours of what is for and against."""
    if not subject.classification:
        return 0, 1.0, ("sa", "sb")
    if len(subject.classes.classes) == 2:
        c = subject.classes.positive
        return 0, 1.0 if c else -1.0, (f"s{c}", f"s{1 - c}")  # scores are those of the second class
    c = int(subject.classes.decided[row])
    return c, 1.0, (f"s{c % N_COLOURS}", "sb")


def _verdict(subject: Subject, row: int, j: int) -> str:
    if not subject.classification:
        true, said = (values[row, 0] for values in (subject.numbers.Y, subject.numbers.predicted))
        return f"predicted {number(said)}, true {number(true)}."
    found = subject.classes
    decided, label = (short(found.classes[each[row]], 24) for each in (found.decided, found.labels))
    sure = ""
    if found.probability is not None:
        sure = f" (probability {percent(float(found.probability[row, found.decided[row]]))})"
    towards = short(found.classes[found.positive], 24) if len(found.classes) == 2 else decided
    return f"predicted “{decided}”{sure}, true “{label}”. Bars to the right are for “{towards}”."


def _value(value: Any) -> str:
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return "missing"
    if isinstance(value, (float, int, np.number)) and not isinstance(value, bool):
        return number(float(value))
    return short(value, 20)
