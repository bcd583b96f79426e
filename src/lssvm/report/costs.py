"""The section of costs: what a threshold costs where false alarms and misses cost differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm.report.charts import Chart, figure, pictures
from lssvm.report.formats import number, percent, short
from lssvm.report.markup import Section, table, tag, why
from lssvm.report.measures import ClassPredictions, row_shares
from lssvm.report.subject import Subject

RATIOS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # cost of a miss over that of a false alarm
DRAWN = (0.2, 1.0, 5.0)
POINTS = 201


@dataclass(frozen=True, eq=False)
class Thresholds:
    """What happens at every threshold.

    Attributes
    ----------
    thresholds : array of shape (t,)
        Rows whose probability (or score) of the second class is above one are said to be of it.
    false_alarms, misses : arrays of shape (t,)
        Shares of all rows.
    default : (float, float)
        False alarms and misses of what the model decides itself.
    positive : float
        Share of the second class.
    """

    thresholds: FloatArray
    false_alarms: FloatArray
    misses: FloatArray
    default: tuple[float, float]
    positive: float

    def cost(self, ratio: float) -> FloatArray:
        """Return the cost of a row at every threshold: one a false alarm, ``ratio`` a miss."""
        return np.asarray(self.false_alarms + ratio * self.misses)


def thresholds(found: ClassPredictions) -> Thresholds | None:
    """Return what every threshold does; None without scores or with other than two classes.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.report.costs import thresholds
    >>> from lssvm.report.measures import ClassPredictions
    >>> p = np.array([0.1, 0.4, 0.6, 0.9])
    >>> both, labels = np.column_stack([1 - p, p]), np.array([0, 1, 0, 1])
    >>> made = thresholds(ClassPredictions(np.array([0, 1]), labels, p > 0.5, both, None, None))
    >>> float(made.cost(1.0).min()), made.default
    (0.25, (0.25, 0.25))
    """
    p = found.probability if found.probability is not None else found.scores
    if len(found.classes) != 2 or p is None or len(np.unique(found.labels)) < 2:
        return None
    score, truth = p[:, 1], found.labels == 1
    weight = row_shares(len(truth), found.weight)
    grid = np.linspace(0.0, 1.0, POINTS)
    if found.probability is None:
        grid = np.linspace(float(score.min()), float(score.max()), POINTS)
    said = score[None, :] > grid[:, None]
    alarms = (said & ~truth) @ weight
    misses = (~said & truth) @ weight
    decided = found.decided == 1
    default = (float((decided & ~truth) @ weight), float((~decided & truth) @ weight))
    return Thresholds(grid, alarms, misses, default, float(truth @ weight))


def costs(subject: Subject) -> Section | None:
    """Return the section of costs over thresholds; None where there is nothing to choose."""
    made = thresholds(subject.classes)
    if made is None:
        return None
    label, other = (short(subject.classes.classes[c], 24) for c in (1, 0))
    what = "probability" if subject.classes.probability is not None else "score"
    axis = f"threshold on the {what} of “{label}”"
    title = f"False alarms and misses against the {axis}"
    heights = [0, *made.false_alarms, *made.misses]
    shares = Chart(title, made.thresholds, heights, axis, "share of all rows", y_zero=True)
    shares.line(made.thresholds, made.false_alarms, "s0")
    shares.line(made.thresholds, made.misses, "s1")
    keys = [
        ("s0 line", f"false alarms: “{other}” said to be “{label}”"),
        ("s1 line", f"misses: “{label}” said to be “{other}”"),
    ]
    drawn = [figure(shares.svg(), f"What a {axis} does.", keys), _curves(made, axis)]
    rows, facts = [], {}
    for ratio in RATIOS:
        cost = made.cost(ratio)
        best = _middle(cost)
        own = made.default[0] + ratio * made.default[1]
        recall, precision = _rates(made, best)
        facts[f"{ratio:g}"] = {
            "threshold": float(made.thresholds[best]),
            "cost": float(cost[best]),
            "cost_of_the_model": own,
        }
        trivial = min(1.0 - made.positive, ratio * made.positive)
        costs_of_100 = [number(100.0 * float(each)) for each in (cost[best], own, trivial)]
        cut, shares_said = number(float(made.thresholds[best])), map(percent, (recall, precision))
        rows.append([_ratio(ratio), cut, *costs_of_100, *shares_said])
    subject.facts["costs"] = facts
    head = ["A miss costs", "Threshold", "Cost", "By default", "One answer", "Recall", "Precision"]
    caption = [
        "Costs of 100 rows in units of a false alarm: at the threshold with the smallest cost, by ",
        "what the model decides itself, and by always giving the cheaper of the two answers.",
    ]
    words = (
        f"A false alarm says “{label}” where “{other}” is true, a miss the other way round. Find "
        "the line of what a miss costs you: its threshold is where to cut. Thresholds were chosen "
        "on the rows that the costs are measured on, so that they are slightly too good."
    )
    body: list[Any] = [why(words), pictures(*drawn), table(tag("span", *caption), head, rows)]
    return Section("costs", "What a threshold costs", "Costs", body)


def _curves(made: Thresholds, axis: str) -> Any:
    every = np.concatenate([made.cost(ratio) for ratio in DRAWN])
    title = f"Cost of a row against the {axis}"
    top = float(min(every.max(), 2.5 * made.cost(1.0).max()))
    chart = Chart(title, made.thresholds, [0, top], axis, "cost of a row", y_zero=True)
    keys = []
    for ratio, colour in zip(DRAWN, ("q0", "q2", "q4"), strict=True):
        cost = made.cost(ratio)
        best = _middle(cost)
        chart.line(made.thresholds, cost, colour)
        chart.dots(made.thresholds[[best]], cost[[best]], colour, size=9.0)
        keys.append((f"{colour} line", f"a miss costs {_ratio(ratio)}"))
    return figure(chart.svg(), "Cost of a row; the dots are the smallest ones.", keys)


def _middle(cost: FloatArray) -> int:
    """Return the middle of the first run of smallest costs."""
    best = np.flatnonzero(cost <= cost.min() + 1e-12)
    run = best[: int(np.argmax(np.append(np.diff(best) > 1, True))) + 1]
    return int(run[len(run) // 2])


def _ratio(ratio: float) -> str:
    times = ratio if ratio >= 1 else 1 / ratio
    if ratio == 1:
        return "as much as a false alarm"
    return f"{times:g} times {'as much' if ratio > 1 else 'less'}"


def _rates(made: Thresholds, at: int) -> tuple[float, float]:
    found = made.positive - float(made.misses[at])
    said = found + float(made.false_alarms[at])
    return found / made.positive, found / said if said > 0 else float("nan")
