"""The section of the learning curve, which says whether more rows would help."""

from __future__ import annotations

import numpy as np

from lssvm.report.charts import Chart, alone
from lssvm.report.formats import count
from lssvm.report.markup import why
from lssvm.report.model_facts import is_table
from lssvm.report.page import Section
from lssvm.report.refits import LearningCurve, learning_curve
from lssvm.report.subject import Subject


def learning(subject: Subject) -> Section | None:
    """Return the section of the learning curve; None where there are too few rows."""
    if not subject.has_features:
        return None
    curve = learning_curve(subject.estimator, subject.train, subject.test)
    if curve is None:
        return None
    subject.facts["learning_curve"] = {
        "rows": curve.sizes.tolist(),
        "error": curve.error.tolist(),
        "std_error": curve.spread.tolist(),
    }
    what = "share of wrong rows" if subject.classification else "error (deviations of the target)"
    low = np.maximum(curve.error - 1.96 * curve.spread, 0.0)
    high = curve.error + 1.96 * curve.spread
    axes = (f"{what} against training rows", curve.sizes, [*low, *high], "training rows", what)
    chart = Chart(*axes, x_log=True, height=270, x_names=_ticks(curve))
    chart.band(curve.sizes, low, high).line(curve.sizes, curve.error)
    chart.dots(curve.sizes, curve.error, size=6.0)
    how = "with the same parameters"
    if is_table(subject.model):
        how = "each its heaviest configuration alone"
    caption = (
        f"Copies of the model, {how}, fitted to parts of the training rows and "
        f"measured on {count(curve.n_test)} {'held-out' if curve.held_out else 'test'} rows; the "
        f"band is a 95 % interval.{' The last point is this model.' if curve.ends_in_model else ''}"
    )
    body = [why(verdict(curve)), alone(chart, caption)]
    return Section("learning", "Would more rows help?", "Learning", body)


def verdict(curve: LearningCurve) -> str:
    """Say what the end of a learning curve means.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.learning import verdict
    >>> from lssvm.report.refits import LearningCurve
    >>> sizes, error = np.array([10, 20, 40, 80, 160]), np.array([0.5, 0.4, 0.3, 0.2, 0.1])
    >>> verdict(LearningCurve(sizes, error, 0.01 * error, 0.2, 0.02, 100, False))
    'The error was still falling from 40 to 160 rows: more rows would probably help.'
    """
    step = f"from {count(curve.sizes[-3])} to {count(curve.sizes[-1])} rows"
    sure = abs(curve.gain) > 2.0 * curve.gain_spread
    if curve.gain > 0 and sure:
        return f"The error was still falling {step}: more rows would probably help."
    if curve.gain > curve.gain_spread:
        return f"The error fell a little {step}, within its uncertainty: more rows may help."
    if curve.gain < 0 and sure:
        return (
            f"The error rose {step}: the parameters suit fewer rows, or the later rows are of "
            "another kind. Tune again before looking for more rows."
        )
    return f"The error no longer fell {step}: more rows of the same kind would hardly help."


def _ticks(curve: LearningCurve) -> list[tuple[float, str]]:
    """Return the sizes as ticks, without those whose names would overlap."""
    ticks: list[tuple[float, str]] = []
    span = float(np.log(curve.sizes[-1] / curve.sizes[0]))
    for size in curve.sizes[::-1]:
        if not ticks or np.log(ticks[-1][0] / size) > 0.13 * span:
            ticks.append((float(size), count(size)))
    return ticks
