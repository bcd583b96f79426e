"""The sections of the columns: values, importance, effects, and the explanation of single rows."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_selection import r_regression
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.data.raw import TextColumn
from lssvm.explanations import Explanation
from lssvm.kernels.warp import N_BINS
from lssvm.plots import PartialDependenceDisplay, RelevanceDisplay, WaterfallDisplay
from lssvm.plots.base import Estimator, fitted_attributes, fitted_model, has_method, nameless_rows
from lssvm.plots.charts import Chart, Colour, HeatMap, Line, Mark, Ticks
from lssvm.plots.plane import Grid, partial_dependence, responses
from lssvm.plots.rows import (
    SampledRows,
    as_numbers,
    classifies,
    feature_names_of,
    prediction_work,
    table_record,
)
from lssvm.report import html
from lssvm.report.measures import Z95, as_columns, log_losses, losses, mean_and_error, row_losses
from lssvm.report.refits import Subject
from lssvm.report.text import number, percent, plus_minus, quoted, short

LEAK = 0.98  # accuracy, or R2, of a single column from which on it is suspected
LEAK_ROWS = 2000
LEAK_COLUMNS = 200
FEW = 30  # rows below which nothing is suspected
LONG = 25  # columns from which on their table is folded away
MOST = 1200  # columns that are listed
LEVELS = 6  # categories that are named


class ColumnFacts(NamedTuple):
    """What is known of a column: rows without a value, its values in words, a suspicion."""

    name: str
    kind: str
    missing: int
    values: str
    suspicion: str


def column_facts(name: str, values: FloatArray | TextColumn) -> ColumnFacts:
    """Look at one column.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.columns import column_facts
    >>> column_facts("id", np.arange(100.0)).suspicion, column_facts("a", np.ones(9)).values
    ('an identifier', '1 to 1, mean 1')
    """
    numbers = as_numbers(values)
    n = len(numbers)
    if isinstance(values, TextColumn):
        kind, known = "text", numbers[numbers >= 0]
        levels = [values.levels[int(code)] for code in np.unique(known)]
        names = ", ".join(short(level, 16) for level in levels[:LEVELS])
        text = f"{len(levels):,} categories: {names}{', …' if len(levels) > LEVELS else ''}"
        counter = True
    else:
        kind, known = "number", numbers[np.isfinite(numbers)]
        text = "no value"
        if known.size:
            text = f"{number(known.min())} to {number(known.max())}, mean {number(known.mean())}"
        # whole numbers that never repeat and leave few gaps, as those of a counter
        whole = known.size > 0 and bool(np.all(known == np.floor(known)))
        counter = whole and float(np.ptp(known)) < 2.0 * n
    different = len(np.unique(known))
    suspicion = "constant" if different < 2 else ""
    if n >= FEW and different == len(known) == n and counter:
        suspicion = "an identifier"
    return ColumnFacts(name, kind, n - len(known), text, suspicion)


def leaks(rows: SampledRows, classification: bool) -> dict[str, float]:
    """Return the columns that predict the target almost alone, with their accuracy or R2.

    Parameters
    ----------
    rows : SampledRows
    classification : bool

    Notes
    -----
    A small decision tree on each column, three-fold cross-validation on at most 2,000 rows, the
    first 200 columns. A column among classes of which one has nearly all rows is not suspected
    for that: the tree has to be right for 98 % of the rows, and wrong for at most a tenth of those
    that the largest class gets wrong.
    """
    sample = rows.subsample(LEAK_ROWS)
    if classification:
        _, sizes = np.unique(sample.y, return_counts=True)
        limit = max(LEAK, 1.0 - 0.1 * (1.0 - sizes.max() / len(sample)))
        tree = DecisionTreeClassifier(max_leaf_nodes=64, min_samples_leaf=3, random_state=0)
        target, usable = sample.y, sizes.min() >= 3
    else:
        target, limit, usable = as_columns(sample.y), LEAK, True
        tree = DecisionTreeRegressor(max_leaf_nodes=256, min_samples_leaf=3, random_state=0)
    if len(sample) < FEW or not usable:
        return {}
    scores = {
        name: float(np.mean(cross_val_score(tree, as_numbers(values)[:, None], target, cv=3)))
        for name, values in list(sample.columns().items())[:LEAK_COLUMNS]
    }
    return {name: score for name, score in scores.items() if score >= limit}


def data(subject: Subject) -> html.Section | None:
    """Return the section of the data; None where rows are kernel values."""
    if not subject.has_features:
        return None
    rows, notes = subject.train, subject.notes
    facts = [column_facts(name, values) for name, values in rows.columns().items()]
    leaking = leaks(rows, subject.classification)
    duplicates = len(rows) - len(np.unique(rows.keys()))
    ids = [fact.name for fact in facts if fact.suspicion == "an identifier"]
    missing = {fact.name: fact.missing / len(rows) for fact in facts if fact.missing}
    subject.facts["data"] = {
        "duplicates": duplicates,
        "missing": missing,
        "constant": [fact.name for fact in facts if fact.suspicion == "constant"],
        "suspected_ids": ids,
        "suspected_leaks": leaking,
    }
    unit = "rows rightly" if subject.classification else "variance of the target"
    notes += [
        f"The column {quoted(name)} alone predicts {percent(score)} of the {unit}: make sure that "
        "it is known before the target is, or drop it. Such a column is often a leak."
        for name, score in leaking.items()
    ]
    notes += [
        f"The column {quoted(name)} has another value in every row and may only number the rows: "
        "drop it, unless it has a meaning."
        for name in ids[:5]
    ]
    record = table_record(subject.model)
    if record is not None:
        ready = record.any_prepared
        notes += [f"Column {n!r} is dropped: {reason}." for n, reason in ready.dropped.items()]
        notes += [f"Column {n!r}: {guess}." for n, guess in ready.guesses.items()]
    texts = sum(fact.kind == "text" for fact in facts)
    examined = "" if rows.complete else f" (of which {len(rows):,} were examined)"
    text = (
        f"{rows.n_rows:,} training rows{examined}, {len(facts) - texts:,} columns of numbers and "
        f"{texts:,} of text. "
        + (f"{duplicates:,} rows are copies of another row. " if duplicates else "")
        + (f"{len(missing):,} columns have missing values." if missing else "Nothing is missing.")
    )
    lines: list[list[Any]] = [["Column", "Kind", "Values", "Missing", "Remark"]]
    for fact in facts[:MOST]:
        remark = "predicts the target alone" if fact.name in leaking else fact.suspicion
        share = percent(missing[fact.name]) if fact.missing else ""
        strong = html.tag("strong", remark) if remark else ""
        lines.append([short(fact.name, 60), fact.kind, fact.values, share, strong])
    filled = [j for j in range(5) if j < 3 or any(line[j] for line in lines[1:])]
    head, *lines = [[line[j] for j in filled] for line in lines]
    listed = html.table("Columns of the training rows.", head, lines, class_=None)
    if len(lines) > LONG:
        listed = html.details(f"The {len(facts):,} columns", listed)
    return html.Section("data", "What it learned from", "Data", text, [_target(subject), listed])


def _target(subject: Subject) -> html.Markup:
    """Return the rows by class, or the range of the target."""
    if not subject.classification:
        columns = zip(subject.numbers.names, as_columns(subject.train.y).T, strict=True)
        ranges = [f"{short(name, 40)}: {column_facts(name, y).values}" for name, y in columns]
        return html.tag("p", "The target lies in these ranges: ", "; ".join(ranges[:LONG]), ".")
    labels, sizes = np.unique(subject.train.y, return_counts=True)
    rows = [
        (label, float(n), f"{n:,} ({percent(n / sizes.sum())})")
        for label, n in zip(labels, sizes, strict=True)
    ]
    colours = [html.colour_class(c) for c in range(len(rows))]
    table = html.bar_table("Training rows by class.", ["Class", "", "Rows"], rows, colours)
    return table if len(rows) <= LONG else html.details(f"The {len(rows)} classes", table)


WORK = 1.2e10  # kernel operations that shuffling columns may take
ROWS = (300, 2000)
PREDICTIONS = 6000  # of every shuffled column, over the repetitions
REPEATS = (2, 30)
NUMBERS = 2e7  # values of rows that are predicted at once
COLUMNS = 60  # columns that are tried
SHOWN = 20


class Importance(NamedTuple):
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


def shuffle_importance(estimator: Estimator, rows: SampledRows) -> Importance:
    """Shuffle one column after the other and predict again.

    Parameters
    ----------
    estimator : Estimator
        Fitted. The loss of a classifier is the log loss of its probabilities (the share of wrong
        rows where it has none), that of a regressor the squared error over the target's variance.
    rows : SampledRows

    Notes
    -----
    What `sklearn.inspection.permutation_importance` computes, with all repetitions of a column
    predicted at once and columns of any kind shuffled. Rows and repetitions are as many as the
    work allows; few rows are shuffled more often. Of more than 60 columns, those that correlate
    most with the predictions (by ranks) are tried. Standard errors are those of the mean over rows
    of each row's mean rise over the repetitions.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.report.columns import shuffle_importance
    >>> from lssvm.plots.rows import SampledRows
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> model = LSSVR(10.0, gamma=0.3).fit(X, X[:, 1])
    >>> shuffle_importance(model, SampledRows.read(model, (X, X[:, 1]))).names
    ('x1', 'x0')
    """
    model, d = fitted_model(estimator), len(rows.schema.names)
    most = WORK / (prediction_work(model, d) * min(d, COLUMNS))  # predictions of a column
    sample = rows.subsample(int(np.clip(most / REPEATS[0], *ROWS)), seed=1)
    repeats = int(np.clip(min(PREDICTIONS, most) / len(sample), *REPEATS))
    tried = np.arange(d) if d <= COLUMNS else _strongest(estimator, sample)
    random = np.random.default_rng(0)
    places = np.array([random.permutation(len(sample)) for _ in range(repeats)])
    together = int(np.clip(NUMBERS / (len(sample) * d), 1, repeats))  # repetitions at a time

    base, loss = model_losses(estimator, sample)
    rise = np.zeros((len(tried), len(sample)))
    for begin in range(0, repeats, together):
        part = places[begin : begin + together]
        tiled = sample.take(np.tile(np.arange(len(sample)), len(part)))
        for i, j in enumerate(tried):
            errors, _ = model_losses(estimator, tiled.permuted(rows.schema.names[j], part.ravel()))
            rise[i] += (errors.reshape(len(part), -1) - base).sum(axis=0) / repeats
    mean, error = np.array([mean_and_error(each, sample.weight) for each in rise]).T
    order = np.argsort(-mean, kind="stable")
    names = tuple(rows.schema.names[tried[i]] for i in order)
    return Importance(names, mean[order], error[order], loss, len(sample), repeats, len(tried), d)


def model_losses(estimator: Estimator, rows: SampledRows) -> tuple[FloatArray, str]:
    """Return the loss of every row, shape (n,), and what it is."""
    if not classifies(estimator):
        lost = row_losses(estimator, rows.inputs(estimator), rows.y)
        return lost, "squared error, as a share of the variance of the target,"
    values, kind = responses(estimator, rows.inputs(estimator))
    classes = np.asarray(fitted_model(estimator).classes_)
    labels = np.searchsorted(classes, rows.y)
    if kind == "probability":
        return log_losses(values, labels), "log loss"
    return np.asarray(values.argmax(axis=1) != labels, dtype=np.float64), "share of wrong rows"


def _strongest(estimator: Estimator, rows: SampledRows) -> IntArray:
    """Return the columns whose ranks correlate most with the predictions."""
    with nameless_rows():
        predicted = np.asarray(estimator.predict(rows.inputs(estimator)))
    target = np.unique(predicted, return_inverse=True)[1].reshape(len(rows), -1)[:, 0]
    values = np.nan_to_num(np.column_stack([as_numbers(v) for v in rows.columns().values()]))
    ranks = np.argsort(np.argsort(values, axis=0), axis=0).astype(np.float64)
    strength = np.abs(r_regression(ranks, target, force_finite=True))
    strength[values.std(axis=0) == 0] = -1.0
    return np.sort(np.argsort(-strength, kind="stable")[:COLUMNS])


def columns(subject: Subject) -> html.Section | None:
    """Return the section of importance, and of the relevance of features where it was learned."""
    if not subject.has_features or len(subject.train.schema.names) < 2:
        return None
    rows, kind = subject.train, "training"
    if subject.test is not None:
        rows, kind = subject.test, "test"
    names, mean, error, loss, n, repeats, tried, d = shuffle_importance(subject.estimator, rows)
    ends = np.column_stack([mean - Z95 * error, mean + Z95 * error])
    subject.facts["importance"] = dict(zip(names, mean.tolist(), strict=True))
    subject.facts["importance_interval"] = dict(zip(names, ends.tolist(), strict=True))
    text = (
        f"Each column in turn was shuffled among {n:,} {kind} rows ({repeats} times), which "
        f"removes its information about the target. The bars show by how much the {loss} rises. A "
        "column whose interval contains zero may not matter; columns with the same information can "
        "replace each other and look unimportant."
    )
    if tried < d:
        text += (
            f" Of {d:,} columns, the {tried} that correlate most with the predictions were tried."
        )
    lines = [
        (name, float(rise), [number(rise), html.tag("small", f"{number(a)} to {number(b)}")])
        for name, rise, (a, b) in zip(names, mean, ends, strict=True)
        if a or b  # otherwise the model has dropped it
    ]
    rest = len(lines) - SHOWN
    caption = "Permutation importance: mean rise of the loss with its 95 % interval."
    caption += f" {rest} more columns matter less." if rest > 0 else ""
    bars = html.bar_table(caption, ["Column", "", "Loss rises by"], lines[:SHOWN])
    body = [bars, *_relevance(subject)]
    return html.Section("columns", "Which columns matter", "Columns", text, body)


def _relevance(subject: Subject) -> list[html.Markup]:
    relevance = fitted_attributes(subject.model).get("feature_relevance_")
    if relevance is None:
        return []
    names = feature_names_of(subject.estimator, len(relevance))
    display = RelevanceDisplay(relevance, names, limit=SHOWN)
    shares = display.shares
    subject.facts["relevance"] = {names[i]: float(shares[i]) for i in display.order}
    text = (
        "Each feature has its own gamma, estimated from the training rows. The larger it is, the "
        "faster the model varies with the feature."
    )
    caption = "Relevance: the share of each feature in the distances of the kernel."
    rows = [(name, share, percent(share)) for name, share in display.rows()]
    return [html.paragraph(text), html.bar_table(caption, ["Feature", "", "Share"], rows)]


SHAPE_WORK = 6e9  # operations that the charts may take
SHAPE_ROWS = (20, 100)  # rows that the predictions are averaged over
SHAPE_COLUMNS = 4  # columns that are drawn
POINTS = 20  # values of a column
CELLS = 14  # values of each column of a pair
LINES = 6  # classes or outputs with a line of their own
NARROW = 6  # letters of a category under a chart


def shapes(subject: Subject) -> html.Section | None:
    """Return the section of partial dependence; None where no column can be varied."""
    if not subject.has_features:
        return None
    leading = list(subject.facts.get("importance") or subject.train.schema.names)[:SHAPE_COLUMNS]
    evaluations = SHAPE_COLUMNS * POINTS + 2 * CELLS * CELLS // 3
    work = prediction_work(subject.model, len(subject.train.schema.names)) * evaluations
    rows = subject.train.subsample(int(np.clip(SHAPE_WORK / work, *SHAPE_ROWS)), seed=2)
    grids = [grid for name in leading if (grid := Grid.of(subject.train, name, POINTS))]
    if not grids:
        return None
    facts = subject.facts["partial_dependence"] = {}
    drawn = [_curve(subject, rows, grid, facts) for grid in grids]
    coarse = [Grid.of(subject.train, grid.name, CELLS) for grid in grids[:3]]
    first, *rest = [grid for grid in coarse if grid is not None]
    drawn += [_map(subject, rows, [first, other]) for other in rest]
    text = (
        f"One column at a time is set to each of its values in {len(rows):,} training rows, and "
        "the predictions are averaged: the line. The band holds the middle half of the rows. A "
        "flat line is a column without an effect of its own; a wide band is one that interacts "
        "with others. Some combinations may never occur in reality."
    )
    body = [html.pictures(*drawn)]
    warped = [made for grid in grids if (made := _warp_curve(subject, grid)) is not None]
    if warped:
        about = (
            "The model has learned a scale for every place of a column, a warp: where it is "
            "large, small differences of the column matter, and where it is near 0 they do not."
        )
        body.append(html.tag("h3", "Where along a column the prediction changes"))
        body += [html.paragraph(about), html.pictures(*warped)]
    return html.Section("shapes", "What the leading columns do", "Shapes", text, body)


def _varying_outputs(subject: Subject, values: FloatArray) -> list[int]:
    """Return the classes or outputs that are drawn: the positive of two, else those that vary."""
    q = values.shape[-1]
    if subject.classification and q == 2:
        return [subject.classes.positive]
    moves = np.ptp(values.mean(axis=-2).reshape(-1, q), axis=0)
    return sorted(np.argsort(-moves, kind="stable")[:LINES].tolist())


def _response(subject: Subject, kind: str, lines: list[int]) -> str:
    if kind == "value":
        one = len(subject.numbers.names) == 1
        return short(subject.target, 30) if one else "predicted"
    return f"{kind} of {quoted(subject.names[lines[0]], 24)}" if len(lines) == 1 else kind


def _ticks(grid: Grid) -> Ticks | None:
    names = [short(value, NARROW) for value in grid.values]
    return list(zip(grid.places.tolist(), names, strict=True)) if grid.text else None


def _curve(subject: Subject, rows: SampledRows, grid: Grid, facts: dict[str, Any]) -> html.Markup:
    values, kind = partial_dependence(subject.estimator, rows, [grid])  # (g, m, q)
    lines = _varying_outputs(subject, values)
    facts[grid.name] = {"values": grid.values, "mean": values.mean(axis=1)[:, lines].tolist()}
    name, response = short(grid.name, 40), _response(subject, kind, lines)
    marks: list[Mark] = []
    for j in lines:
        several = len(lines) > 1
        colour: Colour = j if subject.classification or several else "main"
        label = short(subject.names[j], 24) if several else ""
        drawn = np.array(grid.values), values[..., j].T
        display = PartialDependenceDisplay(*drawn, name=name, response=response)
        marks += display.marks(colour, label, band=len(lines) <= 2)
    limits = (-0.02, 1.02) if kind == "probability" else None
    axes = f"{response} against {name}", name, response, marks
    caption = f"{_capital(response)} as “{name}” varies, with all other columns unchanged."
    if grid.text and any(len(str(value)) > NARROW for value in grid.values):
        caption += f" From left: {', '.join(short(value, 20) for value in grid.values)}."
    return html.figure(Chart(*axes, y_limits=limits, x_ticks=_ticks(grid)), caption)


def _warp_curve(subject: Subject, grid: Grid) -> html.Markup | None:
    """Return the slope of the warp of a model for tables along a column of numbers."""
    record = table_record(subject.model)
    warped = [] if record is None else [m for m in record.used if m.metric.warp is not None]
    if not warped or grid.text or subject.model is not subject.estimator:
        return None
    member, column = max(warped, key=lambda m: m.weight), subject.train.columns()[grid.name]
    known = as_numbers(column)[np.isfinite(as_numbers(column))]
    edges = np.unique(np.quantile(known, np.linspace(0.01, 0.99, N_BINS + 1), method="nearest"))
    rows = subject.train.take(np.zeros(len(edges), dtype=np.intp))
    inputs = rows.replaced({grid.name: edges.tolist()}).inputs(subject.estimator)
    ready = fitted_attributes(subject.model)["preparations_"][member.scaling].transform(inputs)
    moves = np.abs(np.diff(member.mapped({member.scaling: ready}), axis=0)).sum(axis=1)
    if len(edges) < 3 or not moves.any():
        return None
    slope = moves / np.diff(edges) * (edges[-1] - edges[0]) / moves.sum()
    warps = subject.facts.setdefault("warps", {})
    warps[grid.name] = {"edges": edges.tolist(), "slope": slope.tolist()}
    name, steps = short(grid.name, 40), (np.repeat(edges, 2)[1:-1], np.repeat(slope, 2))
    guide = Line(edges[[0, -1]], [1, 1], "", "text", 0.5, width=1.2, dashed=True)
    axes = f"Warp of {name}", name, "slope of the warp"
    chart = Chart(*axes, [guide, Line(*steps)], y_zero=True)
    caption = f"Slope of the warp along “{name}”; dashed: the same scale everywhere."
    return html.figure(chart, caption)


def _map(subject: Subject, rows: SampledRows, pair: list[Grid]) -> html.Markup:
    sample = rows.subsample(max(SHAPE_ROWS[0], len(rows) // 3), seed=3)
    values, kind = partial_dependence(subject.estimator, sample, pair)
    j = _varying_outputs(subject, values.reshape(-1, *values.shape[2:]))[0]
    mean = values.mean(axis=2)[..., j].T  # rows of the chart are the second column
    response, names = _response(subject, kind, [j]), [short(grid.name, 40) for grid in pair]
    x, y = (_edges(grid.places) for grid in pair)
    write = percent if kind == "probability" else number
    style: dict[str, Any] = {"colour": j if subject.classification else "main"}
    style |= {"values": mean, "ends": (write(mean.min()), write(mean.max()))}
    title = f"{response} over {names[0]} and {names[1]}"
    ticks: dict[str, Any] = {"x_ticks": _ticks(pair[0]), "y_ticks": _ticks(pair[1])}
    chart = Chart(title, names[0], names[1], [HeatMap(x, y, **style)], **ticks)
    return html.figure(chart, f"{_capital(response)} over “{names[0]}” and “{names[1]}”.")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _edges(places: FloatArray) -> FloatArray:
    """Return the ends of cells around places."""
    middle = (places[1:] + places[:-1]) / 2
    first, last = 2 * places[0] - middle[0], 2 * places[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])


WORST = 3
TYPICAL = 2
BACKGROUND = 20
ORDERS = 4
ROW_COLUMNS = 8  # lines of an explanation


def explained_rows(subject: Subject) -> html.Section | None:
    """Return the section of explanations; None where the model has none."""
    if not subject.has_features or not has_method(subject.model, "explain"):
        return None
    typical, worst = _choose_rows(subject)
    explained = explanation(subject, [*typical, *worst])
    if explained is None:
        return None
    wrong = "Wrong row" if subject.classification else "Row with a large error"
    names = [f"Typical row {i + 1}" for i in range(len(typical))]
    names += [f"{wrong} {i + 1}" for i in range(len(worst))]
    rows = zip([*typical, *worst], names, strict=True)
    drawn = [_explain_row(subject, explained, i, *row) for i, row in enumerate(rows)]
    output = "score" if subject.classification else "prediction"
    exact = "exact" if explained.exact else "sampled, and the ± is a standard error"
    text = (
        f"What each column adds to the {output} of a row, beginning with the mean {output} of "
        f"{BACKGROUND} training rows (Shapley values). They are {exact}; with the mean they add up "
        f"to the {output}. The wrong rows are those with the highest probability or the largest "
        "error: check their values."
    )
    record = table_record(subject.model)
    if subject.classification and record is not None and np.any(record.offset):
        text += " Scores are log-odds, before they are calibrated to probabilities."
    return html.Section("rows", "Why it predicted this", "Rows", text, [html.pictures(*drawn)])


def explanation(subject: Subject, rows: list[int]) -> Explanation | None:
    """Return the explanation of some of the evaluated rows."""
    both = subject.checked.take(rows), subject.train.subsample(BACKGROUND, seed=4)
    inputs, background = (some.model_inputs(subject.estimator) for some in both)
    model, options = subject.model, {"n_background": BACKGROUND, "n_permutations": ORDERS}
    with suppress(InvalidInputError), nameless_rows():
        explained: Explanation = model.explain(inputs, background, **options)
        return explained
    return None


def _choose_rows(subject: Subject) -> tuple[list[int], list[int]]:
    """Return rows with typical errors and with the largest ones."""
    if not subject.classification:
        error = losses(subject.numbers.predicted, subject.numbers.Y, classes=False)
        order = np.argsort(error, kind="stable")
        middle = len(order) // 2
        return order[middle : middle + TYPICAL].tolist(), order[::-1][:WORST].tolist()
    classes = subject.classes
    sure = classes.probability if classes.probability is not None else classes.ranking
    sure = np.zeros((len(classes), len(classes.classes))) if sure is None else sure
    sure = sure[np.arange(len(classes)), classes.predicted]
    right, wrong = classes.right, np.flatnonzero(~classes.right)
    worst = wrong[np.argsort(-sure[wrong], kind="stable")][:WORST].tolist()
    typical = []
    for c in np.argsort(-np.bincount(classes.labels), kind="stable")[:TYPICAL]:
        good = np.flatnonzero(right & (classes.labels == c))
        if len(good):
            typical.append(int(good[np.argsort(sure[good], kind="stable")[len(good) // 2]]))
    return typical, worst


def _explain_row(
    subject: Subject, explained: Explanation, i: int, row: int, name: str
) -> html.Markup:
    """Return what the columns add to the output of a row, for the positive or predicted class."""
    output, sign, colours = 0, 1.0, ("main", "text")
    kind = "training" if subject.test is None else "test"
    caption = f"{name}: {kind} row {subject.checked.positions[row] + 1}, "
    if not subject.classification:
        true, predicted = (v[row, 0] for v in (subject.numbers.Y, subject.numbers.predicted))
        caption += f"predicted {number(predicted)}, true {number(true)}."
    else:
        classes = subject.classes
        decided, label = int(classes.predicted[row]), int(classes.labels[row])
        towards, two = decided, len(classes.classes) == 2
        output, colours = decided, (html.colour_class(decided), "text")
        if two:  # scores are those of the second class
            towards = classes.positive
            output, sign = 0, 1.0 if towards else -1.0
            colours = (html.colour_class(towards), html.colour_class(1 - towards))
        sure = ""
        if classes.probability is not None:
            sure = f" (probability {percent(classes.probability[row, decided])})"
        names_of = [classes.name(c) for c in (decided, label, towards)]
        caption += f"predicted {names_of[0]}{sure}, true {names_of[1]}. Bars to the right are for "
        caption += f"{names_of[2]}."
    names = None
    if subject.model is not subject.estimator:
        names = feature_names_of(subject.estimator, len(explained.feature_names))
    display = WaterfallDisplay(explained, i, output=output, limit=ROW_COLUMNS)
    lines = [
        (label, sign * value, plus_minus(sign * value, error, sign=True))
        for label, value, error in display.rows(names)
    ]
    ends = display.explanation.base_values, display.explanation.prediction
    base, total = (sign * float(values[0]) for values in ends)
    caption += f" From {number(base)} to {number(total)}."
    shades = [colours[value < 0] for _, value, _ in lines]
    return html.bar_table(caption, ["Column", "", "Adds"], lines, shades, signed=True)
