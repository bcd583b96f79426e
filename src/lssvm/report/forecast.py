"""The report of a forecast: free runs through values that the model has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
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
from lssvm.plots import ForecastDisplay
from lssvm.plots.base import fitted_attributes
from lssvm.plots.charts import Band, Chart, Line, Mark, Rule, Ticks, Whiskers
from lssvm.plots.rows import parameters_of
from lssvm.report import html
from lssvm.report.comparison import compared_with, help_section
from lssvm.report.measures import Intervals, Measure, finite, proportion_interval
from lssvm.report.performance import error_histogram, metrics_table
from lssvm.report.refits import LearningCurve
from lssvm.report.reproduce import SPECIAL, Run, commands, listed, time_spent, versions
from lssvm.report.text import clean, listing, number, percent, quoted, short
from lssvm.report.tuning import learning_figure, search_figure, tuning_result

RUNS = 20  # free runs that errors come from
INTERVAL_RUNS = 6
COVERAGES = (0.5, 0.8, 0.9, 0.95)  # the last one is checked
SIZES = 6  # points of the learning curve
SHORTEST = 5  # steps of a run, at least
TICKS = 3  # dates on an axis
DAY = 86_400_000_000  # microseconds
SHOWN = 4  # parts of the past, in runs, that are drawn before a forecast
LAGS = 12  # past values that are listed
DRIFT = "continuing the straight line"
HELD_OUT = (
    "There were no test values: a copy with the same parameters was fitted to the first four "
    "fifths of the series, and the metrics are about the last fifth."
)


@dataclass(frozen=True, eq=False)
class Runs:
    """Forecasts from several origins and the true values.

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

    @property
    def mae(self) -> FloatArray:
        """Mean absolute error of each run, shape (r,)."""
        return np.asarray(np.abs(self.errors).mean(axis=1))


def read_series(data: Any) -> Series:
    """Return the one series of a report: y, or a pair (y, X) of it and its inputs."""
    y, X = data, None
    if isinstance(data, tuple) and len(data) == 2 and np.ndim(data[0]) > 0:
        y, X = data
    if is_list_of_series(y) and len(y) > 1:
        raise InvalidInputError(
            f"A report of a forecast is about one series, but {len(y)} came: write one for each."
        )
    (only,) = open_series(y, X)
    return only


def same_model(model: NARX) -> NARX:
    """Return an unfitted copy with the parameters that tuning has chosen."""
    inner: Any = model.estimator_
    params = inner.get_params(deep=False)
    tuned = {
        key: float(value) if np.size(value) == 1 else value
        for key, value in parameters_of(inner).items()
        if key in ("C", "gamma") and key in params
    }
    copy: NARX = clone(model).set_params(estimator=clone(inner).set_params(**tuned), search=None)
    return copy


def fit_same(model: NARX, past: Series) -> NARX:
    """Return a copy with the same parameters, fitted to another series."""
    with warnings.catch_warnings(action="ignore"):  # they were shown when the model was fitted
        return same_model(model).fit(past.values, past.inputs)


def free_runs(model: NARX, past: Series, test: Series, horizon: int) -> Runs:
    """Run a model freely from several origins of the tested part."""
    n = len(test)
    h = max(1, min(horizon, n // 2 if n >= 2 * SHORTEST else n))
    origins = np.arange(0, n - h + 1, max(1, -(-(n - h) // (RUNS - 1))))
    forecasts = [_forecast(model, past, test, int(o), h) for o in origins]
    truth = np.stack([test.values[o : o + h] for o in origins])
    return Runs(origins, truth, np.stack(forecasts))


def _forecast(model: NARX, past: Series, test: Series, origin: int, h: int, **more: Any) -> Any:
    before = test.at(slice(0, origin)).after(past) if origin else past
    future = None if test.inputs is None else test.inputs[origin : origin + h]
    with warnings.catch_warnings(action="ignore"):  # a run that diverges shows in its errors
        return model.forecast(h, future, history=before.values, X_history=before.inputs, **more)


def interval_runs(model: NARX, past: Series, test: Series, runs: Runs) -> list[Intervals]:
    """Return intervals of several coverages for some of the runs, ends of shape (r, h, 2)."""
    chosen = np.unique(np.linspace(0, len(runs.origins) - 1, INTERVAL_RUNS).round().astype(int))
    truth, widest = runs.truth[chosen], max(COVERAGES)
    h = truth.shape[1]
    options = {"return_interval": True, "coverage": widest}
    # Runs are simulated once: what another coverage changes is the factor of every step.
    origins = map(int, runs.origins[chosen])
    ends = np.stack([_forecast(model, past, test, o, h, **options)[1] for o in origins])
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
    histories = [np.concatenate([past.values, test.values[:o]]) for o in origins]
    rules = [series.baselines(y, truth.shape[1], season) for y in histories]
    others = {
        DRIFT if name == "drift" else name: Runs(origins, truth, np.stack([m[name] for m in rules]))
        for name in rules[0]
    }
    ridge = RidgeCV(np.logspace(-6, 3, 10))
    linear = same_model(model).set_params(estimator=ridge, horizon=model.horizon_)
    with warnings.catch_warnings(action="ignore"):
        linear.fit(past.values, past.inputs)
    others["linear autoregression (ridge)"] = free_runs(linear, past, test, truth.shape[1])
    return others


def mean_with_interval(values: FloatArray) -> tuple[float, float, float]:
    """Return the mean over runs (r,) with its 95 % interval by Student's t; NaN ends for one."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return mean, float("nan"), float("nan")
    half = float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def series_curve(model: NARX, past: Series, test: Series, horizon: int) -> LearningCurve | None:
    """Fit copies to ever longer parts of the past; None where it is too short for five lengths."""
    least = model.lags + model.differencing + max(20, model.lags)
    if len(past) < 2 * least:
        return None
    sizes = np.unique(np.geomspace(least, len(past), SIZES).round().astype(int))
    if len(sizes) < 5:
        return None
    errors = []
    for size in sizes:
        part = past.at(slice(len(past) - int(size), None))
        errors.append(free_runs(fit_same(model, part), part, test, horizon).mae)
    means = np.array([mean_with_interval(line) for line in errors])
    half = np.nan_to_num(means[:, 2] - means[:, 0])
    gain = mean_with_interval(errors[-3] - errors[-1])
    last = float(means[-1, 0])
    return LearningCurve(sizes, means[:, 0], half, gain[1:], last, len(test), False, factor=1.0)


@dataclass(eq=False)
class Forecast:
    """A forecasting model with the values that a report looks at.

    Attributes
    ----------
    model : NARX
        As given.
    tested : NARX
        What the metrics are about: the model itself, or a copy that has not seen the last fifth.
    past, test : Series
        The training values, and those that follow.
    held_out : bool
        Whether the tested part was held out of the training series.
    runs : Runs
    notes : list of str
    facts : dict
    """

    model: NARX
    tested: NARX
    past: Series
    test: Series
    held_out: bool
    runs: Runs
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, model: NARX, train: Any, test: Any) -> Forecast:
        """Read the series, and run the model through the part that it has not seen."""
        past, tested = read_series(train), model
        if test is not None:
            later = read_series(test)
        elif can_hold_out(model, len(past)):
            cut = len(past) - len(past) // 5
            later, past = past.at(slice(cut, None)), past.at(slice(0, cut))
            tested = fit_same(model, past)
        else:
            raise InvalidInputError(
                f"The series has {len(past)} values, too few to hold out a fifth of them with "
                f"lags={model.lags}: give test=, the values that follow."
            )
        runs = free_runs(tested, past, later, int(model.horizon_))
        return cls(model, tested, past, later, test is None, runs, [HELD_OUT] * (test is None))

    def ticks(self, first: int, end: int, at: int = 0) -> Ticks | None:
        """Return dates for values from ``first`` to ``end``, drawn ``at`` positions further on."""
        calendar = self.model.calendar_
        if not isinstance(calendar, Calendar):
            return None
        last = len(self.past) - 1 + (len(self.test) if self.held_out else 0)
        return [(place + at, name) for place, name in date_ticks(calendar, last, first, end)]

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
        predicted = self.tested.predict(self.test.values, self.test.inputs, **self.history)
        return np.asarray(self.test.values - predicted)

    @cached_property
    def others(self) -> dict[str, Runs]:
        """The runs of other forecasts."""
        return compared_runs(self.tested, self.past, self.test, self.runs)

    @property
    def best_other(self) -> tuple[str, float]:
        """Name and error of the best of the other forecasts."""
        errors = {name: float(runs.mae.mean()) for name, runs in self.others.items()}
        return min(errors.items(), key=lambda item: item[1])

    @property
    def evaluated(self) -> str:
        """The runs that the metrics come from, in words."""
        n = len(self.runs.origins)
        count = f"{n} free runs" if n > 1 else "one free run"
        unseen = "held-out" if self.held_out else "later"
        return f"{count} of {self.horizon:,} steps through {len(self.test):,} {unseen} values"


@dataclass(frozen=True, eq=False)
class NextValues:
    """The forecast of the values that follow the series.

    Attributes
    ----------
    name : str
        Of the series.
    values, lower, upper : array of shape (steps,)
        Forecasts and the ends of their intervals.
    coverage : float
        Nominal coverage of the intervals.
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

    def section(self, series: FloatArray) -> html.Section:
        """Return the forecast after the last values of the series, and as a table."""
        steps = np.arange(1, len(self.values) + 1)
        past, ends = series[-(4 * len(steps) + 50) :], np.column_stack([self.lower, self.upper])
        display = ForecastDisplay(self.values, interval=ends, past=past, coverage=self.coverage)
        ticks = None
        if self.calendar is not None:
            ticks = date_ticks(self.calendar, 0, 1 - len(past), len(steps))
        across = "steps from the last value" if ticks is None else "time"
        marks = list(display.marks().values())
        chart = Chart(f"Forecast of {self.name}", across, self.name, marks, x_ticks=ticks)
        caption = f"The last {len(past):,} values and {len(steps):,} forecasts."
        columns: dict[str, Any] = {"Step": steps.tolist()}
        columns |= {} if self.times is None else {"Time": self.times}
        values = {"Forecast": self.values, "Lower": self.lower, "Upper": self.upper}
        columns |= {name: list(map(number, each)) for name, each in values.items()}
        rows = [list(row) for row in zip(*columns.values(), strict=True)]
        body = [
            html.figure(chart, caption, alone=True),
            html.table("The forecast.", list(columns), rows),
        ]
        return html.Section("next", "What comes next", "Next", None, body)


def date_ticks(calendar: Calendar, last: int, first: int, end: int) -> Ticks:
    """Return dates on an axis of positions, of which ``last`` is that of the calendar."""
    places = np.unique(np.linspace(first, end, TICKS + 2).round().astype(np.intp)[1:-1])
    unit: Any = "M" if calendar.months else "D"
    if 0 < calendar.step < DAY:
        unit = "m" if abs(end - first) * calendar.step < 3 * DAY else "D"
    names = [str(name) for name in np.datetime_as_string(calendar.at(places - last), unit=unit)]
    if unit == "m":  # few days: the clock matters, and the year does not
        names = [name[5:].replace("T", " ") for name in names]
    return list(zip(places.astype(np.float64).tolist(), names, strict=True))


def can_hold_out(model: NARX, n: int) -> bool:
    """Return whether a series of n values is long enough to be tested on its last fifth."""
    return bool(n - n // 5 >= model.lags + model.differencing + 2)


def _lead(subject: Forecast, advice: str | None) -> html.Markup:
    mae = Measure("mae", "", *mean_with_interval(subject.runs.mae), "runs")
    name, other = subject.best_other
    interval = f" (95 % interval {mae.span})" if np.isfinite(mae.low) else ""
    lags = [quoted(lag) for lag in list(subject.facts.get("importance", {}))[:3]]
    return html.tag(
        "p",
        "This model forecasts ",
        html.tag("strong", f"{subject.horizon:,} steps"),
        " ahead and is off by ",
        html.tag("strong", mae.shown),
        f" on average{interval} over {subject.evaluated}, where the best other forecast, {name}, "
        f"is off by {number(other)}. It depends most on {listing(lags)}. ",
        advice or "The series is too short to see whether more of it would help.",
        class_="lead",
    )


def _metrics(subject: Forecast) -> html.Section:
    runs = subject.runs
    variance, ahead = float(np.var(subject.test.values)) or 1.0, f"{subject.horizon} steps ahead"
    rmse = np.sqrt((runs.errors**2).mean(axis=1))
    metrics = [
        Measure(key, name, *mean_with_interval(values), "runs", meaning=meaning)
        for key, name, meaning, values in (
            ("mae", "Mean absolute error", "of all steps of the free runs", runs.mae),
            ("rmse", "Root mean squared error", "large errors count more", rmse),
            ("last_step_mae", "Error of the last step", ahead, np.abs(runs.errors[:, -1])),
            ("bias", "Bias", "mean of true minus forecast; 0 is best", runs.errors.mean(axis=1)),
        )
    ]
    r2 = 1.0 - float((runs.errors**2).mean()) / variance
    step = float(np.abs(subject.one_step_errors).mean())
    both = {"r2": r2, "one_step_mae": step}.items()
    single = [Measure(key, "", value, np.nan, np.nan, "none") for key, value in both]
    subject.facts["metrics"] = {measure.key: measure.fact for measure in (*metrics, *single)}
    leading = [(measure.name, measure.shown, measure.span) for measure in metrics[:3]]
    leading.append(("Explained variance", percent(max(r2, 0.0)), "of the free runs"))
    leading.append(("One step ahead", number(step), "mean absolute error"))
    text = (
        f"All metrics come from {subject.evaluated}, each from the true values before it, on the "
        "model's own forecasts from then on. Intervals are over the runs, which overlap, so that "
        "they are a little too narrow."
    )
    name, other = subject.best_other
    if metrics[0].value >= other:
        subject.notes.append(
            f"The model is not better than {name}, which is off by {number(other)} on average."
        )
    caption = "Metrics of the free runs; 95 % intervals by Student's t over the runs."
    body = [html.tiles(leading), html.paragraph(text), metrics_table(caption, metrics)]
    return html.Section("figures", "How good it is", "Metrics", None, body)


def _pictures(subject: Forecast) -> html.Section:
    runs, h, n = subject.runs, subject.horizon, len(subject.past)
    before = min(n, SHOWN * h)
    future = None if subject.test.inputs is None else subject.test.inputs[:h]
    _, ends = subject.tested.forecast(h, future, True, 0.95, **subject.history)
    display = ForecastDisplay(
        runs.forecast[0],
        interval=ends,
        truth=runs.truth[0],
        past=subject.past.values[n - before :],
        coverage=0.95,
    )
    title = "The first free run and the true values, with its 95 % interval"
    marks = list(display.marks().values())
    ticks = subject.ticks(n - before, n + h, 1 - n)
    run = Chart(title, "step" if ticks is None else "time", "value", marks, x_ticks=ticks)
    every = np.concatenate([subject.past.values, subject.test.values])
    thin = np.unique(np.linspace(0, len(every) - 1, 1500).round().astype(int))
    line = Line(thin, every[thin], "", "text", width=1.0)
    ticks = subject.ticks(0, len(every))
    whole = Chart("The whole series", "time", "value", [line, Rule(n - 0.5, None)], x_ticks=ticks)
    drawn = html.pictures(
        html.figure(run, f"{title}; the dashed line is where it begins.", height=270),
        html.figure(whole, "The whole series; it was tested after the dashed line.", height=270),
    )
    text = "A forecast is fed back as if it were true, step by step, so that errors add up."
    return html.Section("forecast", "What it forecasts", "Forecast", text, [drawn])


def _errors(subject: Forecast) -> html.Section:
    steps = np.arange(1, subject.horizon + 1)
    curves = {"this model": subject.runs, **subject.others}
    means = {name: np.abs(runs.errors).mean(axis=0) for name, runs in curves.items()}
    subject.facts["error_by_step"] = {name: mean.tolist() for name, mean in means.items()}
    lines = [
        Line(steps, mean, name, i - 1 if i else "main", width=1.4 if i else 2.4)
        for i, (name, mean) in enumerate(means.items())
    ]
    top = 1.04 * float(np.quantile(np.concatenate(list(means.values())), 0.98))
    measure = "mean absolute error"
    chart = Chart(f"{measure} by steps ahead", "steps ahead", measure, lines, y_limits=(0.0, top))
    drawn = html.pictures(
        html.figure(chart, "Errors by steps ahead, compared with other forecasts."),
        error_histogram(subject.runs.errors.ravel()),
        _autocorrelation(subject),
    )
    return html.Section("errors", "Where it is right and wrong", "Errors", None, [drawn])


def _autocorrelation(subject: Forecast) -> html.Markup:
    """Return the autocorrelation of one-step errors: what is left to learn from the past."""
    e = subject.one_step_errors - subject.one_step_errors.mean()
    n, most = len(e), min(40, len(e) // 3)
    lags = np.arange(1, most + 1)
    r = np.array([float(e[k:] @ e[:-k]) for k in lags]) / (float(e @ e) or 1.0)
    limit = 1.96 / np.sqrt(n)
    marks: list[Mark] = [
        Band([0, most + 1], ([-limit] * 2, [limit] * 2), colour="grey"),
        Rule(None, 0.0),
        Whiskers(lags, (np.minimum(r, 0.0), np.maximum(r, 0.0)), opacity=1.0, width=2.0),
    ]
    size = 1.04 * max(0.3, *np.abs(r))
    title = "Autocorrelation of one-step errors"
    chart = Chart(title, "lag", "correlation", marks, y_limits=(-size, size))
    outside = int((np.abs(r) > limit).sum())
    if outside > 0.15 * most + 1:
        subject.notes.append(
            f"One-step errors are correlated: {outside} of {most} autocorrelations are outside the "
            "band of chance. More lags, or inputs, may explain them."
        )
    text = f"{title}: bars outside the band ({number(limit)}) are something still to learn."
    return html.figure(chart, text)


def _intervals(subject: Forecast) -> html.Section:
    rows, facts = [], {}
    for each in interval_runs(subject.tested, subject.past, subject.test, subject.runs):
        inside, width = each.inside, float(each.width.mean())
        facts[f"{each.coverage:g}"] = {"coverage": float(inside.mean()), "width": width}
        early, late = np.array_split(inside, 2, axis=1) if inside.shape[1] > 1 else (inside, inside)
        shares = [percent(part.mean()) for part in (inside, early, late)]
        rows.append([percent(each.coverage, 0), *shares, number(width)])
    subject.facts["intervals"] = facts
    *_, high = proportion_interval(inside.all(axis=1) if len(inside) == 1 else inside.ravel())
    if high < 0.95:
        subject.notes.append(
            f"The 95 % intervals contain only {percent(inside.mean())} of the values: take them as "
            "rough."
        )
    head = ["Nominal", "Inside", "First half of the steps", "Second half", "Mean width"]
    caption = f"Share of values inside their intervals, over {len(inside)} free runs."
    text = (
        "Intervals come from simulated runs whose noise is that of similar rows, scaled so that "
        "their coverage is right on segments the model has not seen."
    )
    body = [html.table(caption, head, rows)]
    return html.Section("intervals", "Can its intervals be trusted?", "Intervals", text, body)


def _comparison(subject: Forecast) -> html.Section:
    mae, facts = subject.runs.mae, dict[str, dict[str, Any]]()
    rows: list[list[Any]] = [[html.tag("strong", "this model"), number(mae.mean()), ""]]
    for name, runs in subject.others.items():
        gain, low, high = mean_with_interval(runs.mae - mae)
        rows.append([name, number(runs.mae.mean()), compared_with(gain, low, high, number)])
        facts[name] = {"mae": float(runs.mae.mean()), "gain": gain, "low": finite(low)}
    subject.facts["comparison"] = facts
    better = [name for name, fact in facts.items() if fact["gain"] < 0]
    text = "This model did better than all of these over the same runs."
    if better:
        text = f"Better on average over the same runs: {', '.join(better)}."
    head = ["Forecast", "Mean absolute error", "Compared with this model"]
    caption = "Simple rules and a linear model of the same lags, from the same origins."
    body = [html.table(caption, head, rows)]
    return html.Section("comparison", "Compared with other forecasts", "Comparison", text, body)


def _data(subject: Forecast) -> html.Section:
    y, inputs = subject.past.values, subject.past.inputs
    n = len(y)
    season = series.find_season(y) or 1
    slope = float(np.polyfit(np.arange(n), y, 1)[0])
    correlation = float(np.corrcoef(y[1:], y[:-1])[0, 1]) if np.std(y) > 0 else 0.0
    jumps = np.abs(np.diff(y))
    repeats, largest = int((jumps == 0).sum()), int(np.argmax(jumps)) + 1
    subject.facts["data"] = {"values": n, "season": season, "slope": slope, "repeats": repeats}
    rows = {
        "Values": f"{n:,}",
        "Range": f"{number(y.min())} to {number(y.max())}, mean {number(y.mean())}",
        "Trend": f"{number(slope)} a step, {number(slope * n)} over the series",
        "Season": f"repeats every {season} steps" if season > 1 else "none was found",
        "Correlation with the value before": number(correlation),
        "Values equal to the one before": f"{repeats:,} ({percent(repeats / max(n - 1, 1))})",
        "Largest jump": f"{number(jumps.max())}, at value {largest + 1:,}",
        "Inputs": "none" if inputs is None else f"{inputs.shape[1]:,}",
    }
    if season > subject.model.lags:
        subject.notes.append(
            f"The series repeats every {season} steps, but the model uses {subject.model.lags} "
            f"past values: try lags={season} or more."
        )
    lines = [list(item) for item in rows.items()]
    body = [html.table("The training series.", ["Property", "Value"], lines, class_=None)]
    return html.Section("data", "What it learned from", "Data", None, body)


def _lags(subject: Forecast) -> html.Section:
    sample = subject.test.at(slice(0, 60))
    options = {"n_background": 20, "n_permutations": 4, **subject.history}
    explained = subject.tested.explain(sample.values, sample.inputs, **options)
    sizes, names = explained.importances, explained.feature_names
    order = np.argsort(-sizes, kind="stable")
    subject.facts["importance"] = {names[i]: float(sizes[i]) for i in order}
    rows = [(names[i], float(sizes[i]), number(sizes[i])) for i in order[:LAGS]]
    text = (
        f"What every past value and input adds to the one-step prediction of {len(sample)} values, "
        "against 20 rows of the past (Shapley values): the mean size. Neighbouring values are "
        "similar, and share what they add."
    )
    rest = len(order) - LAGS
    caption = "Mean size of what each adds." + (f" {rest} more add less." if rest > 0 else "")
    body = [html.bar_table(caption, ["Past value", "", "Adds"], rows)]
    return html.Section("columns", "Which past values matter", "Lags", text, body)


def _tuning(subject: Forecast) -> html.Section | None:
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
    text = f"{len(results['mean_test_score']):,} settings were tried, by {how}."
    return html.Section("tuning", "How it was tuned", "Tuning", text, [search_figure(results)])


def _learning(subject: Forecast, curve: LearningCurve, advice: str | None) -> html.Section:
    facts = {"values": curve.sizes.tolist(), "error": curve.error.tolist()}
    subject.facts["learning_curve"] = facts
    caption = (
        "Copies of the model, with the same parameters, fitted to the last values of the past and "
        "run through the tested part; the band is a 95 % interval over the runs."
    )
    body = [learning_figure(curve, "values of the past", "mean absolute error", caption)]
    return html.Section("learning", "Would a longer past help?", "Learning", advice, body)


def _help(subject: Forecast, advice: str | None) -> html.Section:
    lines, model, facts = [], subject.model, subject.facts["data"]
    name, other = subject.best_other
    if float(subject.runs.mae.mean()) >= other:
        lines.append(f"Use {name}: the model is not better here, or it lacks inputs.")
    if facts["season"] > model.lags:
        lines.append(
            f"More lags: the series repeats every {facts['season']} steps (lags={facts['season']})."
        )
    trend = abs(facts["slope"]) * len(subject.past)
    if model.differencing == 0 and trend > float(np.std(subject.past.values)):
        lines.append("The series has a trend: try differencing=1.")
    if model.validation == "one-step":
        lines.append(
            'Tune by free runs, validation="free-run": one-step errors choose models that diverge.'
        )
    if subject.past.inputs is None:
        lines.append(
            "Inputs that are known ahead (a calendar, prices, weather forecasts) can be given as X."
        )
    return help_section(subject.facts, lines + ([] if advice is None else [advice]))


def _reproduce(subject: Forecast, run: Run) -> html.Section:
    model = subject.model
    params, defaults = model.get_params(deep=False), NARX().get_params(deep=False)
    changed = [f"{k}={v!r}" for k, v in params.items() if repr(v) != repr(defaults[k])]
    inputs = "" if subject.past.inputs is None else ", X"
    lines = f"from lssvm import LSSVR, NARX\n\nmodel = NARX({', '.join(changed)}).fit(y{inputs})"
    shown = {k: short(v, 200) for k, v in run.settings.items() if k not in SPECIAL}
    subject.facts |= {"versions": versions(), "settings": shown}
    chosen = {f"{k}_": number(v) for k, v in subject.facts["parameters"].items()}
    every = {k: clean(" ".join(repr(v).split()))[:200] for k, v in params.items()} | chosen
    parameters = listed("Parameters of NARX.", "Parameter", every)
    packages = listed("Versions.", "Package", {**versions(), **shown})
    body = [*commands(clean(lines), run.command), parameters, packages]
    return html.Section("reproduce", "Reproduce", "Reproduce", None, body)


ORDER = (_metrics, _pictures, _errors, _intervals, _comparison, _data, _lags, _tuning)
"""The sections of every forecast, in their order on the page."""


def forecast_sections(
    model: NARX, run: Run, following: NextValues | None = None
) -> tuple[Forecast, html.Markup, list[html.Section]]:
    """Return the series and its runs, the first sentences and all sections of the page."""
    subject, sections = Forecast.read(model, run.train, run.test), list[html.Section | None]()
    if following is not None:
        sections.append(following.section(np.asarray(read_series(run.train).values)))
    curve = series_curve(subject.tested, subject.past, subject.test, subject.horizon)
    advice = None if curve is None else curve.verdict("values", "a longer past")
    sections += [section(subject) for section in ORDER]
    if curve is not None:
        sections.append(_learning(subject, curve, advice))
    spent = time_spent(subject.facts, run.seconds, tuning_result(model))
    sections += [_help(subject, advice), spent, _reproduce(subject, run)]
    listed = html.with_notes(sections, subject.notes, run.settings)
    return subject, _lead(subject, advice), listed
