"""`write_report`: one page about a fitted model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lssvm.estimators import NARX
from lssvm.plots.base import Estimator
from lssvm.plots.rows import preparation_of, support_size
from lssvm.report import html
from lssvm.report.columns import columns, data, explained_rows, shapes
from lssvm.report.comparison import comparison, help_section, suggestions
from lssvm.report.forecast import NextValues, forecast_sections
from lssvm.report.measures import predict_intervals
from lssvm.report.performance import costs, coverage, errors, lead, mistakes, rankings, summary
from lssvm.report.refits import Subject, held_out_intervals, read_subject
from lssvm.report.reproduce import Run, reproduce, time_spent
from lssvm.report.text import percent, quoted, short
from lssvm.report.tuning import configurations, learning, prototypes, sizes, tuning, tuning_result

OVERLAP = 0.05  # share of test rows that may be training rows


def write_report(
    model: Estimator | NARX,
    path: str | os.PathLike[str],
    *,
    train: Any,
    test: Any = None,
    title: str | None = None,
    seconds: Mapping[str, float] | None = None,
    settings: Mapping[str, Any] | None = None,
    pos_label: Any = None,
) -> dict[str, Any]:
    """Write a report about a fitted model: its accuracy, what it learned, how to reproduce it.

    The page is one HTML file without scripts that loads nothing, for screens of any width, in light
    and dark mode, and for paper. Sections that do not apply to a model are omitted.

    Parameters
    ----------
    model : Estimator
        A fitted classifier or regressor of lssvm, those for tables included, a pipeline that ends
        in one, or a `NARX`.
    path : str or path
        The file to write. It appears, or takes the place of an older one, when it is complete.
    train : Scan or (X, y)
        The rows that the model was fitted to. Of a `NARX`: the series y, or (y, X) with inputs.
    test : Scan or (X, y), optional
        Rows that it has not seen. None: metrics are cross-validated on training rows, which the
        report states.
    title : str, optional
        Heading of the page.
    seconds : mapping from str to float, optional
        Time spent by stage, such as ``{"reading": 0.2, "tuning": 3.1}``.
    settings : mapping, optional
        Further information about the run. "command" (str or list of words) is the command line,
        "python" lines that read the rows as ``train`` and ``test`` and fit ``{model}``, "warnings"
        and "notes" (lists of str) are shown at the top, everything else in a table.
    pos_label : object, optional
        Of two classes, the one that precision, recall, curves and costs are about; by default the
        rarer one among the training rows.

    Returns
    -------
    dict
        The figures of the page, in JSON types: "task", "rows", "metrics" (each with
        value, low, high and how the interval was computed), "parameters", and by section
        "data", "confusion_matrix", "per_class", "calibration_error", "costs", "comparison",
        "importance", "partial_dependence", "relevance", "configurations", "sparsity",
        "learning_curve", "suggestions", "seconds", "notes", "versions", "schema_sha256", ...

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    InvalidInputError
        If the rows are not those of the model, or have no target.

    Notes
    -----
    The cost is bounded whatever the data are: figures come from at most 50,000 test rows, drawn
    uniformly; dots from 2,000; importance from at most 2,000 rows and 60 columns; the learning
    curve fits at most 2,000 rows, and 4,000 without test rows (1,000 of a model for tables, one
    configuration each); models of comparison at most 5,000. A data set in files is read once,
    besides a pass that counts its rows. Repeated calls give the same figures.

    Figures are scikit-learn's. Intervals of shares are Wilson's score intervals for the effective
    number of rows, (sum w)^2 / sum w^2; all others come from the jackknife over 10 to 20 groups of
    rows.

    Examples
    --------
    >>> import os, tempfile
    >>> from lssvm import FixedSizeLSSVC
    >>> from lssvm.datasets import load_ripley
    >>> from lssvm.report import write_report
    >>> ripley = load_ripley()
    >>> X, y = ripley.data, ripley.target
    >>> train, test = (X[ripley.train], y[ripley.train]), (X[ripley.test], y[ripley.test])
    >>> model = FixedSizeLSSVC(20, C=1.0, gamma=2.0).fit(*train)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     facts = write_report(model, os.path.join(folder, "r.html"), train=train, test=test)
    >>> round(facts["metrics"]["accuracy"]["value"], 2) == round(model.score(*test), 2)
    True
    """
    run = Run(train, test, title, seconds or {}, settings or {})
    if isinstance(model, NARX):
        return write_forecast(model, path, run)
    subject = read_subject(model, train, test, pos_label)
    rows, tested = subject.train, subject.test
    name = type(subject.model).__name__
    subject.facts |= {
        "task": "classification" if subject.classification else "regression",
        "model": name,
        "evaluated_on": "test rows" if test is not None else "training rows, cross-validated",
        "rows": {
            "train": rows.n_rows,
            "test": None if tested is None else tested.n_rows,
            "evaluated": len(subject.checked),
        },
        "n_support": support_size(subject.model),
    }
    if subject.classification and len(subject.classes.classes) == 2:
        subject.facts["pos_label"] = str(subject.classes.classes[subject.classes.positive])
    text, sections = _sections(subject, run)
    line = f"{name} · fitted to {rows.n_rows:,} rows of {len(rows.schema.names):,} columns"
    line += "" if tested is None else f" · tested on {tested.n_rows:,} others"
    html.write_page(path, title or f"Predicting {short(subject.target, 60)}", line, text, sections)
    return subject.facts | {"notes": list(subject.notes)}


def write_forecast(
    model: NARX, path: str | os.PathLike[str], run: Run, following: NextValues | None = None
) -> dict[str, Any]:
    """Write the page of a forecasting model; see `write_report`.

    Parameters
    ----------
    model, path
        As `write_report` takes them.
    run : Run
        The series, and what is known of the run.
    following : NextValues, optional
        Values after the last one, which the page then begins with.
    """
    subject, text, sections = forecast_sections(model, run, following)
    n, later = len(subject.past), len(subject.test)
    line = f"NARX · fitted to {n:,} values · tested on {later:,} others"
    html.write_page(path, run.title or "Forecasting a series", line, text, sections)
    return {
        "task": "forecast",
        "model": "NARX",
        "horizon": subject.horizon,
        "values": {"train": n, "test": later},
        "evaluated_on": "the last fifth, held out" if subject.held_out else "test values",
        **subject.facts,
        "notes": list(subject.notes),
    }


OF_COLUMNS = (comparison, data, columns, shapes, explained_rows)
OF_MODEL = (configurations, tuning, sizes, prototypes)
"""The sections of every model, in their order on the page."""


def _sections(subject: Subject, run: Run) -> tuple[html.Markup, list[html.Section]]:
    """Return the first sentences and all sections of the page, in their order."""
    if subject.classification:
        first, metrics = summary(subject, [])
        checks = [mistakes(subject), rankings(subject), costs(subject)]
    else:
        unseen = subject.estimator, subject.test or subject.train
        find = held_out_intervals if subject.test is None else predict_intervals
        intervals = find(*unseen)
        first, metrics = summary(subject, intervals)
        checks = [errors(subject), coverage(subject, intervals)]
    every = (section(subject) for section in (*OF_COLUMNS, *OF_MODEL))
    sections = [metrics, *checks, *every]
    learned = learning(subject)
    advice = None if learned is None else learned.text
    spent = time_spent(subject.facts, run.seconds, tuning_result(subject.model))
    advised = help_section(subject.facts, suggestions(subject, advice))
    sections += [learned, advised, spent, reproduce(subject, run)]
    all_sections = html.with_notes(sections, subject.notes, run.settings, _test_notes(subject))
    return lead(subject, first, advice), all_sections


def _test_notes(subject: Subject) -> Iterator[str]:
    """Yield notes on test rows that are training rows too, and on unknown categories."""
    test, ready = subject.test, preparation_of(subject.estimator)
    if test is None:
        return
    same = np.isin(test.keys(), subject.train.keys())
    share = float(same.mean())
    if share > OVERLAP:
        yield (
            f"{same.sum():,} of the {len(same):,} test rows ({percent(share)}) are also among the "
            "training rows, target and all: the metrics may be much too good."
        )
    unseen = {} if ready is None else ready.unseen(test.inputs(subject.estimator))
    for name, levels in unseen.items():
        rows = sum(levels.values())
        have = "1 test row has" if rows == 1 else f"{rows:,} test rows have"
        yield (
            f"{have} a category in {quoted(name)} that the training rows did not have; it counts "
            "as a rare one, or as none of the known ones."
        )
