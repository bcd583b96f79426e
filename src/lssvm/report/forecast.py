"""The report of a forecast: as full as that of a classifier.

First free runs of a forecasting model through values it has not seen, beside simple rules.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import t
from sklearn.base import clone
from sklearn.linear_model import RidgeCV

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.estimators import NARX
from lssvm.fitting import series
from lssvm.fitting.series import Calendar, Series, is_list_of_series, open_series
from lssvm.plots import TuningSurfaceDisplay
from lssvm.plots.base import fitted_attributes
from lssvm.plots.tuning import KEYS
from lssvm.report.charts import Chart, alone, figure, pictures
from lssvm.report.comparison import help_section
from lssvm.report.markup import (
    UNKNOWN,
    Markup,
    Section,
    bar_table,
    clean,
    count,
    listing,
    noted,
    number,
    percent,
    short,
    table,
    tag,
    tiles,
    why,
)
from lssvm.report.measures import Intervals, Measure, finite, proportion_interval, shown, span
from lssvm.report.performance import as_fact, error_histogram, figure_table
from lssvm.report.reproduce import SPECIAL, code_block, listed, time_spent, versions
from lssvm.report.subject import parameters_of, search_facts
from lssvm.report.tuning import surface

RUNS = 20  # free runs that errors come from
INTERVAL_RUNS = 6
COVERAGES = (0.5, 0.8, 0.9, 0.95)  # the last one is judged
SIZES = 6  # points of the learning curve
SHORTEST = 5  # steps of a run, at least
TICKS = 3  # dates on an axis
DAY = 86_400_000_000  # microseconds
DRIFT = "going on in a straight line"
HELD_OUT = (
    "There were no test values: a copy with the same parameters was fitted to the first four "
    "fifths of the series, and the figures are about the last fifth."
)


@dataclass(frozen=True, eq=False)
class Runs:
    """Forecasts from several origins beside what came.

    Attributes
    ----------
    origins : int array of shape (r,)
        Values of the tested part before each run.
    truth, forecast : arrays of shape (r, h)
    """

    origins: Any
    truth: FloatArray
    forecast: FloatArray

    @property
    def errors(self) -> FloatArray:
        """True minus forecast, shape (r, h)."""
        return self.truth - self.forecast


def read_series(data: Any) -> Series:
    """Return the one series of a report: y, or a pair (y, X) of it and its inputs."""
    y, X = data, None
    if isinstance(data, tuple) and len(data) == 2 and np.ndim(data[0]) > 0:
        y, X = data
    if is_list_of_series(y) and len(y) > 1:
        raise InvalidInputError(
            f"A report of a forecast is about one series, but {len(y)} came: write one for each."
        )
    (found,) = open_series(y, X)
    return found


def same_model(model: NARX) -> NARX:
    """Return an unfitted copy with the parameters that tuning has found."""
    inner: Any = model.estimator_
    params = inner.get_params(deep=False)
    known = {
        key: float(value) if np.size(value) == 1 else value
        for key, value in parameters_of(inner).items()
        if key in ("C", "gamma") and key in params
    }
    same: NARX = clone(model).set_params(estimator=clone(inner).set_params(**known), search=None)
    return same


def fit_same(model: NARX, past: Series) -> NARX:
    """Return a copy with the same parameters, fitted to another series."""
    # what there is to say was said when the model was fitted
    with warnings.catch_warnings(action="ignore"):
        return same_model(model).fit(past.values, past.inputs)


def free_runs(model: NARX, past: Series, test: Series, horizon: int) -> Runs:
    """Run a model freely from several origins of the tested part."""
    n = len(test)
    h = max(1, min(horizon, n // 2 if n >= 2 * SHORTEST else n))
    origins = np.arange(0, n - h + 1, max(1, -(-(n - h) // (RUNS - 1))))
    made = [_forecast(model, past, test, int(o), h) for o in origins]
    truth = np.stack([test.values[o : o + h] for o in origins])
    return Runs(origins, truth, np.stack(made))


def _forecast(model: NARX, past: Series, test: Series, origin: int, h: int, **more: Any) -> Any:
    before = test.at(slice(0, origin)).after(past) if origin else past
    future = None if test.inputs is None else test.inputs[origin : origin + h]
    # a run that diverges shows in its errors
    with warnings.catch_warnings(action="ignore"):
        return model.forecast(h, future, history=before.values, X_history=before.inputs, **more)


def interval_runs(model: NARX, past: Series, test: Series, runs: Runs) -> list[Intervals]:
    """Return intervals of several coverages for some of the runs, ends of shape (r, h, 2)."""
    count = len(runs.origins)
    some = np.unique(np.linspace(0, count - 1, INTERVAL_RUNS).round().astype(int))
    truth, widest = runs.truth[some], max(COVERAGES)
    h = truth.shape[1]
    asked = {"return_interval": True, "coverage": widest}
    # Runs are simulated once: what another coverage changes is the factor of every step.
    ends = np.stack(
        [_forecast(model, past, test, int(o), h, **asked)[1] for o in runs.origins[some]]
    )
    middle, half = ends.mean(axis=2, keepdims=True), np.diff(ends, axis=2) / 2.0
    calibration = model.record_.calibration
    assert calibration is not None
    full = calibration.factors(widest, h)
    unit = half / np.where(full > 0, full, 1.0)[:, None]
    sides = np.array([-1.0, 1.0])
    return [
        Intervals(c, middle + calibration.factors(c, h)[:, None] * unit * sides, truth)
        for c in COVERAGES
    ]


def compared_runs(model: NARX, past: Series, test: Series, runs: Runs) -> dict[str, Runs]:
    """Return the runs of simple rules and of a linear model of the same lags."""
    origins, truth = runs.origins, runs.truth
    season = series.find_season(past.values)
    known = [np.concatenate([past.values, test.values[:o]]) for o in origins]
    made = [series.baselines(y, truth.shape[1], season) for y in known]
    found = {
        DRIFT if name == "drift" else name: Runs(origins, truth, np.stack([m[name] for m in made]))
        for name in made[0]
    }
    linear = NARX(
        RidgeCV(np.logspace(-6, 3, 10)),
        lags=model.lags,
        exog_lags=model.exog_lags,
        differencing=model.differencing,
        horizon=model.horizon_,
    )
    with warnings.catch_warnings(action="ignore"):
        linear.fit(past.values, past.inputs)
    found["linear autoregression (ridge)"] = free_runs(linear, past, test, truth.shape[1])
    return found


def mean_with_interval(values: FloatArray) -> tuple[float, float, float]:
    """Return the mean over runs (r,) with its 95 % interval by Student's t; NaN ends for one."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return mean, float("nan"), float("nan")
    half = float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def series_curve(model: NARX, past: Series, test: Series, horizon: int) -> tuple[Any, FloatArray]:
    """Return lengths of the past, and mean absolute errors of runs (sizes, r) of models of them."""
    least = model.lags + model.differencing + max(20, model.lags)
    if len(past) < 2 * least:
        return np.empty(0, dtype=int), np.empty((0, 0))
    sizes = np.unique(np.geomspace(least, len(past), SIZES).round().astype(int))
    errors = []
    for size in sizes:
        part = past.at(slice(len(past) - int(size), None))
        runs = free_runs(fit_same(model, part), part, test, horizon)
        errors.append(np.abs(runs.errors).mean(axis=1))
    return sizes, np.array(errors)


SHOWN = 4  # parts of the past, in runs, that are drawn before a forecast
LAGS = 12  # past values that are listed
COLOURS = ("s0", "s1", "s2", "s3")


@dataclass(eq=False)
class Forecast:
    """A forecasting model with the values that a report looks at.

    Attributes
    ----------
    model : NARX
        As given.
    judged : NARX
        What the figures are about: the model itself, or a copy that has not seen the last fifth.
    past, test : Series
        What it was fitted to, and what follows.
    held_out : bool
        Whether the tested part was held out of the training series.
    runs : Runs
    notes : list of str
    facts : dict
    """

    model: NARX
    judged: NARX
    past: Series
    test: Series
    held_out: bool
    runs: Runs
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, model: NARX, train: Any, test: Any) -> Forecast:
        """Read the series, and run the model through the part that it has not seen."""
        past, judged = read_series(train), model
        if test is None:
            cut = len(past) - len(past) // 5
            if not can_hold_out(model, len(past)):
                raise InvalidInputError(
                    f"The series has {len(past)} values, too few to hold out a fifth of them with "
                    f"lags={model.lags}: give test=, the values that follow."
                )
            later, past = past.at(slice(cut, None)), past.at(slice(0, cut))
            judged = fit_same(model, past)
        else:
            later = read_series(test)
        runs = free_runs(judged, past, later, int(model.horizon_))
        return cls(model, judged, past, later, test is None, runs, [HELD_OUT] * (test is None))

    @property
    def calendar(self) -> Calendar | None:
        """The calendar of the training series, where it has times."""
        known = self.model.calendar_
        return known if isinstance(known, Calendar) else None

    @property
    def last(self) -> int:
        """Position of the last training value among all."""
        return len(self.past) - 1 + (len(self.test) if self.held_out else 0)

    @property
    def horizon(self) -> int:
        """Steps of the runs."""
        return int(self.runs.truth.shape[1])

    @property
    def history(self) -> dict[str, Any]:
        """What came before the tested part, as methods of the model take it."""
        return {"history": self.past.values, "X_history": self.past.inputs}

    @cached_property
    def one_step_errors(self) -> FloatArray:
        """True minus predicted from the true values before, shape (n,)."""
        said = self.judged.predict(self.test.values, self.test.inputs, **self.history)
        return np.asarray(self.test.values - said)

    @property
    def tested(self) -> str:
        """Say what the figures come from."""
        n, runs = count(len(self.test)), len(self.runs.origins)
        many = f"{runs} free runs" if runs > 1 else "one free run"
        unseen = "held-out" if self.held_out else "later"
        return f"{many} of {count(self.horizon)} steps through {n} {unseen} values"


@dataclass(frozen=True, eq=False)
class NextValues:
    """What a model says comes next.

    Attributes
    ----------
    name : str
        Of the series.
    values, lower, upper : array of shape (steps,)
        Forecasts and the ends of their intervals.
    coverage : float
        Share of the values that the intervals are to hold.
    times : sequence of str or None
        When these values come, where that is known.
    calendar : Calendar or None
        Of the series, for the axis.
    """

    name: str
    values: FloatArray
    lower: FloatArray
    upper: FloatArray
    coverage: float
    times: Sequence[str] | None = None
    calendar: Calendar | None = None

    def section(self, series: FloatArray) -> Section:
        """Return the forecast after the last values of the series, and as a table."""
        steps = np.arange(1, len(self.values) + 1)
        past = series[-(4 * len(steps) + 50) :]
        before = np.arange(1 - len(past), 1)
        ticks = date_ticks(self.calendar, 0, int(before[0]), len(steps))
        across = "steps from the last value" if ticks is None else "time"
        title, heights = f"Forecast of {self.name}", [*past, *self.lower, *self.upper]
        chart = Chart(title, [*before, *steps], heights, across, self.name, x_names=ticks)
        chart.band(steps, self.lower, self.upper, "sc").line(before, past)
        chart.line(steps, self.values, "sc")
        keys = [("sa line", self.name), ("sc line", "forecast")]
        keys.append(("sc area", f"{percent(self.coverage, 0)} interval"))
        words = f"The last {count(len(past))} values and {count(len(steps))} forecasts."
        names = ["Step", *([] if self.times is None else ["Time"]), "Forecast", "Lower", "Upper"]
        columns: list[Any] = [steps.tolist()]
        columns += [] if self.times is None else [list(self.times)]
        columns += [map(number, ends) for ends in (self.values, self.lower, self.upper)]
        rows = [list(row) for row in zip(*columns, strict=True)]
        body = [alone(chart, words, keys), table("The forecast.", names, rows)]
        return Section("next", "What comes next", "Next", body)


def date_ticks(
    calendar: Calendar | None, last: int, first: int, end: int
) -> list[tuple[float, str]] | None:
    """Return dates on an axis of positions, of which ``last`` is that of the calendar."""
    if calendar is None:
        return None
    places = np.unique(np.linspace(first, end, TICKS + 2).round().astype(np.intp)[1:-1])
    when = calendar.at(places - last)
    unit: Any = "M" if calendar.months else "D"
    if 0 < calendar.step < DAY:
        unit = "m" if abs(end - first) * calendar.step < 3 * DAY else "D"
    names = [str(name) for name in np.datetime_as_string(when, unit=unit)]
    if unit == "m":  # few days: the clock matters, and the year does not
        names = [name[5:].replace("T", " ") for name in names]
    return list(zip(places.astype(np.float64).tolist(), names, strict=True))


def can_hold_out(model: NARX, n: int) -> bool:
    """Say whether a series of n values is long enough to be judged by its last fifth."""
    return bool(n - n // 5 >= model.lags + model.differencing + 2)


def forecast_sections(
    model: NARX,
    train: Any,
    test: Any,
    settings: Mapping[str, Any],
    seconds: Mapping[str, float] | None = None,
    following: NextValues | None = None,
) -> tuple[Forecast, Markup, list[Section]]:
    """Return what was read, the first sentences and the sections of a forecast's report."""
    subject = Forecast.read(model, train, test)
    others = compared_runs(subject.judged, subject.past, subject.test, subject.runs)
    figures = _figures(subject, others)
    learned = _learning(subject)
    made = [
        None if following is None else following.section(np.asarray(read_series(train).values)),
        figures,
        _picture(subject),
        _errors(subject, others),
        _intervals(subject),
        _comparison(subject, others),
        _data(subject),
        _lags(subject),
        _tuning(subject),
        learned[1],
        _help(subject, others, learned[0]),
        time_spent(subject.facts, seconds, search_facts(model)),
        _reproduce(subject, settings),
    ]
    lead = _lead(subject, others, learned[0])
    return subject, lead, noted(made, figures, subject.notes, settings)


def _mae(runs: Runs) -> FloatArray:
    return np.asarray(np.abs(runs.errors).mean(axis=1))


def _best(others: dict[str, Runs]) -> tuple[str, float]:
    errors = {name: float(_mae(runs).mean()) for name, runs in others.items()}
    name = min(errors, key=lambda key: errors[key])
    return name, errors[name]


def _span(low: float, high: float) -> str:
    return f"{number(low)} to {number(high)}" if np.isfinite(low) else UNKNOWN


def _lead(subject: Forecast, others: dict[str, Runs], advice: str | None) -> Markup:
    mean, low, high = mean_with_interval(_mae(subject.runs))
    name, other = _best(others)
    interval = f" (95 % interval {_span(low, high)})" if np.isfinite(low) else ""
    lags = [f"“{lag}”" for lag in list(subject.facts.get("importance", {}))[:3]]
    return tag(
        "p",
        "This model forecasts ",
        tag("strong", f"{count(subject.horizon)} steps"),
        " ahead and is off by ",
        tag("strong", number(mean)),
        f" on average{interval} over {subject.tested}, where the best simple rule, {name}, is off "
        f"by {number(other)}. It leans most on {listing(lags)}. ",
        advice or "The series is too short to see whether more of it would help.",
        class_="lead",
    )


def _figures(subject: Forecast, others: dict[str, Runs]) -> Section:
    runs = subject.runs
    variance, ahead = float(np.var(subject.test.values)) or 1.0, f"{subject.horizon} steps ahead"
    rmse = np.sqrt((runs.errors**2).mean(axis=1))
    figures = [
        Measure(key, name, *mean_with_interval(values), "runs", meaning=meaning)
        for key, name, meaning, values in (
            ("mae", "Mean absolute error", "of all steps of the free runs", _mae(runs)),
            ("rmse", "Root mean squared error", "large errors count more", rmse),
            ("last_step_mae", "Error of the last step", ahead, np.abs(runs.errors[:, -1])),
            ("bias", "Bias", "mean of true minus forecast; 0 is best", runs.errors.mean(axis=1)),
        )
    ]
    r2 = 1.0 - float((runs.errors**2).mean()) / variance
    step = float(np.abs(subject.one_step_errors).mean())
    single = [
        Measure(key, "", value, np.nan, np.nan, "none")
        for key, value in (("r2", r2), ("one_step_mae", step))
    ]
    subject.facts["metrics"] = {measure.key: as_fact(measure) for measure in (*figures, *single)}
    leading = [(measure.name, shown(measure), span(measure)) for measure in figures[:3]]
    leading.append(("Explained variance", percent(max(r2, 0.0)), "of the free runs"))
    leading.append(("One step ahead", number(step), "mean absolute error"))
    words = (
        f"All figures come from {subject.tested}, each from the true values before it, on the "
        "model's own forecasts from then on. Intervals are over the runs, which overlap, so that "
        "they are a little too narrow."
    )
    name, other = _best(others)
    if figures[0].value >= other:
        subject.notes.append(
            f"The model is no better than {name}, which is off by {number(other)} on average."
        )
    caption = "Figures of the free runs; 95 % intervals by Student's t over the runs."
    body = [tiles(leading), why(words), figure_table(caption, figures)]
    return Section("figures", "How good it is", "Figures", body)


def _picture(subject: Forecast) -> Section:
    runs, h, n = subject.runs, subject.horizon, len(subject.past)
    before = min(n, SHOWN * h)
    time = np.arange(n - before, n + h)
    truth = np.concatenate([subject.past.values[n - before :], runs.truth[0]])
    future = None if subject.test.inputs is None else subject.test.inputs[:h]
    _, ends = subject.judged.forecast(h, future, True, 0.95, **subject.history)
    title = "The first free run and the true values, with its 95 % interval"
    ticks = date_ticks(subject.calendar, subject.last, int(time[0]), int(time[-1]))
    axes: dict[str, Any] = {"height": 270, "x_names": ticks}
    chart = Chart(title, time, [*truth, *ends.ravel()], "time", "value", **axes)
    chart.band(time[before:], ends[:, 0], ends[:, 1]).rule(x=n - 0.5)
    chart.line(time, truth, "st", width=1.4).line(time[before:], runs.forecast[0], "sa")
    legend = [("st line", "what came"), ("sa line", "forecast"), ("sa area", "95 % interval")]
    drawn = [figure(chart.svg(), f"{title}; the dashed line is where it begins.", legend)]
    every = np.concatenate([subject.past.values, subject.test.values])
    axes["x_names"] = date_ticks(subject.calendar, subject.last, 0, len(every))
    whole = Chart("The whole series", [0, len(every)], every, "time", "value", **axes)
    thin = np.unique(np.linspace(0, len(every) - 1, 1500).round().astype(int))
    whole.line(thin, every[thin], "st", width=1.0).rule(x=n - 0.5)
    drawn.append(figure(whole.svg(), "The whole series; what follows the dashed line was tested."))
    words = "A forecast is fed back as if it were true, step by step, so that errors add up."
    return Section("forecast", "What it forecasts", "Forecast", [why(words), pictures(*drawn)])


def _errors(subject: Forecast, others: dict[str, Runs]) -> Section:
    steps = np.arange(1, subject.horizon + 1)
    curves = {"this model": subject.runs, **others}
    means = {name: np.abs(runs.errors).mean(axis=0) for name, runs in curves.items()}
    top = float(np.quantile(np.concatenate(list(means.values())), 0.98))
    what = "mean absolute error"
    chart = Chart(f"{what} by steps ahead", steps, [0, top], "steps ahead", what, y_zero=True)
    keys = []
    for (name, mean), colour in zip(means.items(), ("sa", *COLOURS), strict=False):
        chart.line(steps, mean, colour, width=2.4 if colour == "sa" else 1.4)
        keys.append((f"{colour} line", name))
    drawn = [
        figure(chart.svg(), "Errors by steps ahead, compared with simple rules.", keys),
        error_histogram(subject.runs.errors.ravel()),
        _echo(subject),
    ]
    subject.facts["error_by_step"] = {name: mean.tolist() for name, mean in means.items()}
    body = [pictures(*drawn)]
    return Section("errors", "Where it is right and wrong", "Errors", body)


def _echo(subject: Forecast) -> Markup:
    """Return the autocorrelation of one-step errors: what is left to learn from the past."""
    e = subject.one_step_errors - subject.one_step_errors.mean()
    n, most = len(e), min(40, len(e) // 3)
    lags = np.arange(1, most + 1)
    r = np.array([float(e[k:] @ e[:-k]) for k in lags]) / (float(e @ e) or 1.0)
    limit = 1.96 / np.sqrt(n)
    title = "Autocorrelation of one-step errors"
    chart = Chart(title, [0, most + 1], [-0.3, 0.3, *r], "lag", "correlation")
    chart.band([0, most + 1], [-limit] * 2, [limit] * 2, "s7").rule(y=0.0)
    for k, value in zip(lags, r, strict=True):
        chart.line([k, k], [0.0, value], "sa", width=2.0)
    outside = int((np.abs(r) > limit).sum())
    if outside > 0.15 * most + 1:
        subject.notes.append(
            f"One-step errors echo: {outside} of {most} autocorrelations are outside the band of "
            "chance. More lags, or inputs, may explain them."
        )
    words = f"{title}: bars outside the band ({number(limit)}) are something still to learn."
    return figure(chart.svg(), words)


def _intervals(subject: Forecast) -> Section:
    rows, facts = [], {}
    for each in interval_runs(subject.judged, subject.past, subject.test, subject.runs):
        inside, width = each.inside, float(each.width.mean())
        facts[f"{each.coverage:g}"] = {"coverage": float(inside.mean()), "width": width}
        early, late = np.array_split(inside, 2, axis=1) if inside.shape[1] > 1 else (inside, inside)
        held = [percent(float(part.mean())) for part in (inside, early, late)]
        rows.append([percent(each.coverage, 0), *held, number(width)])
    subject.facts["intervals"] = facts
    *_, high = proportion_interval(inside.all(axis=1) if len(inside) == 1 else inside.ravel())
    if high < 0.95:
        subject.notes.append(
            f"The 95 % intervals held only {percent(float(inside.mean()))} of the values: take "
            "them as rough."
        )
    head = ["Promised", "Held", "First half of the steps", "Second half", "Mean width"]
    caption = f"Share of values inside their intervals, over {len(inside)} free runs."
    words = (
        "Intervals come from simulated runs whose noise is that of similar rows, scaled so that "
        "they hold on stretches the model has not seen."
    )
    body = [why(words), table(caption, head, rows)]
    return Section("intervals", "Can its intervals be trusted?", "Intervals", body)


def _comparison(subject: Forecast, others: dict[str, Runs]) -> Section:
    own = _mae(subject.runs)
    rows = [[tag("strong", "this model"), number(float(own.mean())), ""]]
    facts: dict[str, dict[str, Any]] = {}
    for name, runs in others.items():
        theirs = _mae(runs)
        gain, low, high = mean_with_interval(theirs - own)
        word = "worse" if gain >= 0 else "better"
        ends = sorted([low, high]) if gain >= 0 else sorted([-high, -low])
        rows.append(
            [name, number(float(theirs.mean())), f"{number(abs(gain))} {word} ({_span(*ends)})"]
        )
        facts[name] = {"mae": float(theirs.mean()), "gain": gain, "low": finite(low)}
    subject.facts["comparison"] = facts
    better = [name for name, fact in facts.items() if fact["gain"] < 0]
    words = (
        f"Better on average over the same runs: {', '.join(better)}."
        if better
        else "This model did better than all of these over the same runs."
    )
    head = ["Forecast", "Mean absolute error", "Compared with this model"]
    caption = "Simple rules and a linear model of the same lags, from the same origins."
    body = [why(words), table(caption, head, rows)]
    return Section("comparison", "Compared with other forecasts", "Comparison", body)


def _data(subject: Forecast) -> Section:
    y = subject.past.values
    n = len(y)
    season = series.find_season(y) or 1
    slope = float(np.polyfit(np.arange(n), y, 1)[0])
    echo = float(np.corrcoef(y[1:], y[:-1])[0, 1]) if np.std(y) > 0 else 0.0
    jumps = np.abs(np.diff(y))
    repeats = int((jumps == 0).sum())
    equal = percent(repeats / max(n - 1, 1))
    largest = int(np.argmax(jumps)) + 1
    subject.facts["data"] = {"values": n, "season": season, "slope": slope, "repeats": repeats}
    rows = [
        ["Values", count(n)],
        ["Range", f"{number(y.min())} to {number(y.max())}, mean {number(y.mean())}"],
        ["Trend", f"{number(slope)} a step, {number(slope * n)} over the series"],
        ["Season", f"repeats every {season} steps" if season > 1 else "none was found"],
        ["Correlation with the value before", number(echo)],
        ["Values equal to the one before", f"{count(repeats)} ({equal})"],
        ["Largest jump", f"{number(float(jumps.max()))}, at value {count(largest + 1)}"],
        ["Inputs", "none" if subject.past.inputs is None else count(subject.past.inputs.shape[1])],
    ]
    if season > subject.model.lags:
        subject.notes.append(
            f"The series repeats every {season} steps, but the model uses {subject.model.lags} "
            f"past values: try lags={season} or more."
        )
    body = [table("The training series.", ["What", "Value"], rows, class_=None)]
    return Section("data", "What it learned from", "Data", body)


def _lags(subject: Forecast) -> Section:
    some = subject.test.at(slice(0, 60))
    sampled = {"n_background": 20, "n_permutations": 4, **subject.history}
    found = subject.judged.explain(some.values, some.inputs, **sampled)
    sizes = np.abs(found.values).mean(axis=0)
    order = np.argsort(-sizes, kind="stable")
    names = found.feature_names
    subject.facts["importance"] = {names[i]: float(sizes[i]) for i in order}
    rows = [(names[i], float(sizes[i]), number(float(sizes[i]))) for i in order[:LAGS]]
    words = (
        f"What every past value and input adds to the one-step prediction of {len(some)} values, "
        "against 20 rows of the past (Shapley values): the mean size. Neighbouring values are "
        "similar, and share what they add."
    )
    rest = len(order) - LAGS
    caption = "What the prediction is made of." + (f" {rest} more add less." if rest > 0 else "")
    body = [why(words), bar_table(caption, ["Past value", "", "Adds"], rows)]
    return Section("columns", "Which past values matter", "Lags", body)


def _tuning(subject: Forecast) -> Section | None:
    results = fitted_attributes(subject.model).get("cv_results_")
    inner: Any = subject.model.estimator_
    subject.facts["parameters"] = {
        key: float(value)
        for key, value in parameters_of(inner).items()
        if key in ("C", "gamma") and np.size(value) == 1
    }
    if results is None:
        return None
    how = {
        "free-run": "free runs through held-out segments",
        "rolling-origin": "free runs by models that had seen only what came before",
        "one-step": "cross-validation of one-step errors",
    }[subject.model.validation]
    tried = len(results["mean_test_score"])
    body: list[Any] = [why(f"{count(tried)} settings were tried, by {how}.")]
    if set(KEYS) <= set(results):
        display = TuningSurfaceDisplay(results)
        varied = [np.unique(v[np.isfinite(v)]).size > 1 for v in (display.C, display.gamma)]
        if all(varied):
            body.append(surface(display))
    return Section("tuning", "How it was tuned", "Tuning", body)


def _learning(subject: Forecast) -> tuple[str | None, Section | None]:
    sizes, errors = series_curve(subject.judged, subject.past, subject.test, subject.horizon)
    if len(sizes) < 5:
        return None, None
    made = np.array([mean_with_interval(line) for line in errors])
    mean = made[:, 0]
    low, high = (np.where(np.isfinite(end), end, mean) for end in made.T[1:])
    subject.facts["learning_curve"] = {"values": sizes.tolist(), "error": mean.tolist()}
    gain, below, above = mean_with_interval(errors[-3] - errors[-1])
    step = f"from {count(int(sizes[-3]))} to {count(int(sizes[-1]))} values"
    if gain > 0 and below > 0:
        said = f"The error was still falling {step}: a longer past would probably help."
    elif gain < 0 and above < 0:
        said = f"The error rose {step}: the past may have been of another kind; try its last part."
    else:
        said = f"The error no longer fell clearly {step}: a longer past would hardly help."
    what = "mean absolute error"
    low, across = np.maximum(low, 0.0), "values of the past"
    axes = (f"{what} against {across}", sizes, [*low, *high], across, what)
    chart = Chart(*axes, x_log=True, height=270)
    chart.band(sizes, low, high).line(sizes, mean).dots(sizes, mean, size=6.0)
    caption = (
        "Copies of the model, with the same parameters, fitted to the last values of the past and "
        "run through the tested part; the band is a 95 % interval over the runs."
    )
    return said, Section(
        "learning", "Would a longer past help?", "Learning", [why(said), alone(chart, caption)]
    )


def _help(subject: Forecast, others: dict[str, Runs], advice: str | None) -> Section:
    lines = []
    name, other = _best(others)
    own = float(_mae(subject.runs).mean())
    if own >= other:
        lines.append(f"Use {name}, or give the model what it lacks: it is no better here.")
    season = subject.facts["data"]["season"]
    if season > subject.model.lags:
        lines.append(f"More lags: the series repeats every {season} steps (lags={season}).")
    slope = abs(subject.facts["data"]["slope"]) * len(subject.past)
    if subject.model.differencing == 0 and slope > float(np.std(subject.past.values)):
        lines.append("The series has a trend: try differencing=1.")
    if subject.model.validation == "one-step":
        lines.append(
            'Tune by free runs, validation="free-run": one-step errors choose models that run away.'
        )
    if subject.past.inputs is None:
        lines.append(
            "Inputs that are known ahead (a calendar, prices, weather forecasts) can be given as X."
        )
    if advice is not None:
        lines.append(advice)
    return help_section(subject.facts, lines)


def _reproduce(subject: Forecast, settings: Mapping[str, Any]) -> Section:
    model = subject.model
    params, defaults = model.get_params(deep=False), NARX().get_params(deep=False)
    given = [f"{k}={v!r}" for k, v in params.items() if repr(v) != repr(defaults[k])]
    inputs = "" if subject.past.inputs is None else ", X"
    lines = f"from lssvm import LSSVR, NARX\n\nmodel = NARX({', '.join(given)}).fit(y{inputs})"
    shown = {k: short(v, 200) for k, v in settings.items() if k not in SPECIAL}
    subject.facts |= {"versions": versions(), "settings": shown}
    body: list[Any] = [tag("h3", "In Python"), code_block(clean(lines))]
    if settings.get("command") is not None:
        command = settings["command"]
        said = command if isinstance(command, str) else " ".join(map(str, command))
        body += [tag("h3", "On the command line"), code_block(clean(said))]
    chosen = {f"{k}_": number(v) for k, v in subject.facts["parameters"].items()}
    every = {k: clean(" ".join(repr(v).split()))[:200] for k, v in params.items()} | chosen
    body.append(listed("Parameters of NARX.", "Parameter", every))
    body.append(listed("What ran.", "Package", {**versions(), **shown}))
    return Section("reproduce", "Reproduce", "Reproduce", body)
