"""`lssvm forecast`: a time series and its next values."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from lssvm._core.errors import InvalidInputError
from lssvm.cli.console import ENDINGS, table_writer
from lssvm.cli.options import Forecast
from lssvm.cli.tables import check_writable, open_table
from lssvm.data.dates import date_style, parse_dates
from lssvm.data.raw import RawBlock
from lssvm.estimators import NARX
from lssvm.fitting.series import Calendar, baselines, find_season, read_times
from lssvm.plots.base import fitted_attributes
from lssvm.report import html
from lssvm.report.assembly import write_forecast
from lssvm.report.forecast import NextValues, can_hold_out
from lssvm.report.reproduce import Run

_LONG = 50  # values from which on a series is also tested on its end
_FEWEST = 10
_SHOWN = 24


def make_model(y: Any, options: Forecast, horizon: int, season: int | None) -> NARX:
    """Return a model for a series that is to be forecast so far."""
    known = len(y) - options.differencing
    if known < _FEWEST:
        raise InvalidInputError(f"The series has {len(y)} values: at least {_FEWEST} are needed.")
    lags = options.lags
    if lags is None:
        lags = max(1, min(50, known // 4))
        if season is not None and season <= known // 3:  # the same place of the last season
            lags = max(lags, season)
    steps = min(horizon, max(1, (known - lags) // 5))
    size: dict[str, Any] = {"lags": lags, "horizon": steps, "differencing": options.differencing}
    return NARX(random_state=options.seed, **size)


def forecast(options: Forecast) -> None:
    """Forecast a time series, with intervals."""
    output, column = options.output, options.column
    horizon, coverage = options.horizon, options.coverage
    if not 0.0 < coverage < 1.0:
        raise InvalidInputError(
            f"--coverage {coverage} is not usable: give a number between 0 and 1."
        )
    check_writable(options.out, ENDINGS, (options.data,))
    check_writable(options.report, (".html",), (options.data,))
    table = open_table(options.data, options, output.note)
    dates = options.by_time
    if dates is None and len(table.dates) == 1:
        dates = next(iter(table.dates))
    y, times = read_series(table, column, dates)
    last_values = slice(-(options.last or 0), None)
    y, times, calendar = y[last_values], None if times is None else times[last_values], None
    if times is not None:
        try:
            calendar = Calendar.of(times, column)
        except InvalidInputError as error:
            if options.by_time is not None:
                raise
            output.note(f"steps are numbered. {error}")
            times = None
    season = options.season or (None if calendar is None else calendar.season) or find_season(y)
    check = backtest(y, options, season) if options.test else None
    started = time.monotonic()
    model = make_model(y, options, horizon, season).fit(y, times=times)
    values = model.forecast(horizon)
    lower, upper = model.predict_interval(horizon, coverage=coverage).T
    seconds = time.monotonic() - started
    columns: dict[str, Any] = {"step": np.arange(1, horizon + 1)}
    if times is not None:
        when = [time_text(one) for one in model.forecast_times(horizon)]
        columns["time"] = np.array(when, dtype=object)
    columns |= {"forecast": values, "lower": lower, "upper": upper}
    if options.out is not None:
        with table_writer(options.out) as write:
            write(columns)
    if options.report is not None:
        listed = None if times is None else columns["time"].tolist()
        following = NextValues(column, values, lower, upper, coverage, listed, calendar)
        notes = [] if check is None else [f"As a check, {check_text(check)}."]
        write_report(options.report, model, y, following, notes, seconds)
    rows = list(zip(*(values.tolist() for values in columns.values()), strict=True))
    output.table(f"The next values of {column!r}", list(columns), rows[:_SHOWN], left=())
    if len(rows) > _SHOWN:
        output.line(f"(the first {_SHOWN} of {len(rows)})")
    if check is not None:
        output.line(f"check: {check_text(check)}")
    for name, path in (("forecast", options.out), ("report", options.report)):
        if path is not None:
            output.line(f"{name} written to {path}")
    fitted = fitted_attributes(model.estimator_)
    output.result(
        {
            "column": column,
            "values": len(y),
            "lags": model.lags,
            "C": fitted.get("C_"),
            "gamma": fitted.get("gamma_"),
            "coverage": coverage,
            "season": season,
            **columns,
            "check": check,
        }
    )


def read_series(table: Any, column: str, dates: str | None = None) -> tuple[Any, Any]:
    """Return a column of numbers, and its times (None: there are none), in their order."""
    table.need([column], "")
    if table.kinds[column] != "number":
        raise InvalidInputError(f"The column {column!r} holds {table.kinds[column]}, not numbers.")
    block = RawBlock.join(list(table.scan(columns=[column]).blocks()))
    y = block.numbers[:, 0]
    bad = np.flatnonzero(~np.isfinite(y))
    if len(bad):
        raise InvalidInputError(
            f"The series {column!r} has a missing or infinite value in {block.place(int(bad[0]))}: "
            "fill it in."
        )
    if dates is None:
        return y, None
    table.need([dates], ", the times")
    times = read_times(_read_dates(table, dates), column)
    order = np.argsort(times, kind="stable")
    same = np.flatnonzero(np.diff(times[order]) == np.timedelta64(0, "us"))
    if len(same):
        first, second = (block.place(int(order[same[0] + k])) for k in (0, 1))
        raise InvalidInputError(
            f"The time {time_text(times[order[same[0]]])} occurs twice, in {first} and {second}: a "
            "series has one value for each time."
        )
    return y[order], times[order]


def _read_dates(table: Any, name: str) -> Any:
    """Return a column of dates, or of texts that are."""
    import pyarrow as pa

    values = table.column(name).combine_chunks()
    if values.null_count:
        raise InvalidInputError(f"--time {name} has missing values: every row needs a time.")
    if not pa.types.is_string(values.type):
        return np.asarray(values)
    texts = values.to_pylist()
    style = date_style(texts)
    if style is None or style.ambiguous:
        raise InvalidInputError(
            f"--time {name} holds texts such as {texts[0]!r}, which are not dates, or could be "
            "read in two ways: write them as 2024-12-31."
        )
    return parse_dates(texts, style.order, style.zoned)


def time_text(when: Any) -> str:
    """Return a time as text: a date alone where it is midnight.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.cli.forecasting import time_text
    >>> time_text(np.datetime64("2024-02-01", "us")), time_text(np.datetime64("2024-02-01T06:30"))
    ('2024-02-01', '2024-02-01T06:30:00')
    """
    return str(when.astype("datetime64[s]")).removesuffix("T00:00:00")


def backtest(y: Any, options: Forecast, season: int | None) -> dict[str, Any] | None:
    """Forecast the last values from those before; None where the series is short."""
    steps = min(options.horizon, len(y) // 5)
    if len(y) < _LONG or steps < 1:
        return None
    past, truth = y[:-steps], y[-steps:]
    forecasts = {"model": make_model(past, options, steps, season).fit(past).forecast(steps)}
    forecasts |= baselines(past, steps, season)
    rmse = {name: float(np.sqrt(np.mean((v - truth) ** 2))) for name, v in forecasts.items()}
    return {
        "steps": steps,
        "rmse": rmse.pop("model"),
        "naive_rmse": rmse["repeating the last value"],
        "baselines": rmse,
    }


def check_text(check: dict[str, Any]) -> str:
    """Return how good the forecast of known values was, in words."""
    others = ", ".join(f"{name} gives {value:.4g}" for name, value in check["baselines"].items())
    return f"the last {check['steps']} values were forecast with RMSE {check['rmse']:.4g}; {others}"


def write_report(
    path: str, model: NARX, y: Any, following: NextValues, notes: list[str], seconds: float
) -> None:
    """Write the report of a forecast; of a short series the forecast alone."""
    title = f"Forecast of {following.name}"
    if len(y) >= _LONG and can_hold_out(model, len(y)):
        settings = {"command": ["lssvm", *sys.argv[1:]], "notes": notes}
        spent = {"fit and forecast": seconds}
        write_forecast(model, path, Run(y, None, title, spent, settings), following)
        return
    words = f"The next {len(following.values)} values by a model of the last {model.lags}. "
    words += " ".join([*notes, "The series is too short to be tested on its last fifth."])
    lead = html.tag("p", words, class_="lead")
    html.write_page(path, title, f"{len(y):,} values", lead, [following.section(y)])
