"""`lssvm forecast`: a time series and what comes next."""

from __future__ import annotations

import sys
import time
from dataclasses import MISSING, dataclass
from typing import TYPE_CHECKING, Any

from lssvm._core.errors import InvalidInputError
from lssvm.cli.console import ENDINGS, table_writer
from lssvm.cli.models import learned
from lssvm.cli.options import OUTPUT, DataFile, Reading, Seeded, option

if TYPE_CHECKING:
    from lssvm.estimators import NARX
    from lssvm.report.forecast import NextValues

_LONG = 50  # values from which on a series is also judged by its end


@dataclass(frozen=True)
class Forecasting:
    """Which series, how far and how."""

    column: str = option(MISSING, "The series.", names=("--column", "-c"))
    by_time: str | None = option(
        None, "The column of dates; by default the only one there is.", "COLUMN", ("--time",)
    )
    season: int | None = option(
        None, "Steps of a season; by default that of the dates, or of the series.", "N", min=2
    )
    horizon: int = option(24, "How many values to forecast.", min=1)
    lags: int | None = option(
        None, "Past values in a row; by default 50, or fewer, and at least a season.", min=1
    )
    last: int | None = option(None, "Learn from so many of the last values only.", min=10)
    differencing: int = option(0, "How often the series is differenced first.", min=0, max=3)
    coverage: float = option(0.9, "Share of the values that intervals are to hold.")
    out: str | None = option(None, "Write the forecast: .csv, .parquet.", "FILE", OUTPUT)
    report: str | None = option(None, "Write an HTML report.", "FILE")
    test: bool = option(
        True, "Also forecast the last values, as a check.", names=("--test/--no-test",)
    )

    def model(self, y: Any, horizon: int, seed: int, season: int | None = None) -> Any:
        """Return a model for a series that is to be forecast so far."""
        from lssvm.estimators import NARX

        known = len(y) - self.differencing
        if known < 10:
            raise InvalidInputError(f"The series has {len(y)} values: at least {10} are needed.")
        lags = self.lags
        if lags is None:
            lags = max(1, min(50, known // 4))
            if season is not None and season <= known // 3:  # the same place of the last season
                lags = max(lags, season)
        steps = min(horizon, max(1, (known - lags) // 5))
        return NARX(lags=lags, differencing=self.differencing, horizon=steps, random_state=seed)


def forecast(data: DataFile, reading: Reading, general: Seeded, asked: Forecasting) -> None:
    """Forecast a time series, with intervals.

    The series is predicted from its own past, at least a season of it; dates continue the calendar
    of the file. As a check the last values are forecast from those before them and compared with
    simple forecasts: the last value, the last season, and the line through the first and the last
    value (drift).
    """
    import numpy as np

    from lssvm.cli.tables import check_writable, open_table
    from lssvm.fitting.series import Calendar, find_season
    from lssvm.report.forecast import NextValues

    output, column, horizon, coverage = general.output, asked.column, asked.horizon, asked.coverage
    if not 0.0 < coverage < 1.0:
        raise InvalidInputError(f"--coverage {coverage} is not usable: give a number below 1.")
    check_writable(asked.out, ENDINGS, (data,))
    check_writable(asked.report, (".html",), (data,))
    table = open_table(data, reading, output.note)
    y, times = read_series(table, column, time_column(table, asked.by_time))
    kept = slice(-(asked.last or 0), None)
    y, times = y[kept], None if times is None else times[kept]
    calendar = None
    if times is not None:
        try:
            calendar = Calendar.of(times, column)
        except InvalidInputError as error:
            if asked.by_time is not None:
                raise
            output.note(f"lssvm: steps are numbered. {error}")
            times = None
    season = asked.season or (None if calendar is None else calendar.season) or find_season(y)
    check = backtest(y, asked, general.seed, season) if asked.test else None
    started = time.monotonic()
    model = asked.model(y, horizon, general.seed, season).fit(y, times=times)
    values = model.forecast(horizon)
    lower, upper = model.predict_interval(horizon, coverage=coverage).T
    seconds = time.monotonic() - started
    columns = {"step": np.arange(1, horizon + 1)}
    if times is not None:
        when = model.forecast_times(horizon)
        columns["time"] = np.array([shown_time(one) for one in when], dtype=object)
    columns |= {"forecast": values, "lower": lower, "upper": upper}
    if asked.out is not None:
        with table_writer(asked.out) as write:
            write(columns)
    if asked.report is not None:
        told = [] if check is None else [f"As a check, {checked(check)}."]
        listed = None if times is None else [str(one) for one in columns["time"]]
        following = NextValues(
            column, values, lower, upper, coverage, listed, None if times is None else calendar
        )
        write_page(asked.report, model, y, following, told, seconds)
    rows = list(zip(*(values.tolist() for values in columns.values()), strict=True))
    output.table(f"The next values of {column!r}", list(columns), rows[:24], left=())
    if len(rows) > 24:
        output.line(f"(the first 24 of {len(rows)})")
    if check is not None:
        output.line(f"check: {checked(check)}")
    for name, path in (("forecast", asked.out), ("report", asked.report)):
        if path is not None:
            output.line(f"{name} written to {path}")
    output.result(
        {
            "column": column,
            "values": len(y),
            "lags": model.lags,
            "C": learned(model.estimator_).get("C_"),
            "gamma": learned(model.estimator_).get("gamma_"),
            "coverage": coverage,
            "season": season,
            **columns,
            "check": check,
        }
    )


def time_column(table: Any, asked: str | None) -> str | None:
    """Return the column of dates: the one asked for, else the only one there is."""
    if asked is not None:
        table.need([asked], ", the times")
        return asked
    return next(iter(table.dates)) if len(table.dates) == 1 else None


def read_series(table: Any, column: str, when: str | None = None) -> tuple[Any, Any]:
    """Return a column of numbers, and its times (None: there are none), in their order."""
    import numpy as np

    from lssvm.data.raw import RawBlock
    from lssvm.fitting.series import read_times

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
    if when is None:
        return y, None
    times = read_times(_dates(table, when), column)
    order = np.argsort(times, kind="stable")
    same = np.flatnonzero(np.diff(times[order]) == np.timedelta64(0))
    if len(same):
        first, second = (block.place(int(order[same[0] + k])) for k in (0, 1))
        twice = shown_time(times[order[same[0]]])
        raise InvalidInputError(
            f"The time {twice} is there twice, in {first} and {second}: a series has one value for "
            "each time."
        )
    return y[order], times[order]


def _dates(table: Any, name: str) -> Any:
    """Return a column of dates, or of texts that are."""
    import numpy as np
    import pyarrow as pa

    from lssvm.data.dates import date_style, parse_dates

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


def shown_time(when: Any) -> str:
    """Return a time as people write it: a date alone where it is midnight.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.cli.forecasting import shown_time
    >>> shown_time(np.datetime64("2024-02-01", "us")), shown_time(np.datetime64("2024-02-01T06:30"))
    ('2024-02-01', '2024-02-01T06:30:00')
    """
    text = str(when.astype("datetime64[s]"))
    return text.removesuffix("T00:00:00")


def backtest(y: Any, asked: Forecasting, seed: int, season: int | None) -> dict[str, Any] | None:
    """Forecast the last values from those before; None where the series is short."""
    import numpy as np

    from lssvm.fitting.series import baselines

    steps = min(asked.horizon, len(y) // 5)
    if len(y) < _LONG or steps < 1:
        return None
    past, truth = y[:-steps], y[-steps:]
    made = asked.model(past, steps, seed, season).fit(past).forecast(steps)

    def error(values: Any) -> float:
        return float(np.sqrt(np.mean((values - truth) ** 2)))

    others = baselines(past, steps, season)
    return {
        "steps": steps,
        "rmse": error(made),
        "naive_rmse": error(others["repeating the last value"]),
        "baselines": {name: error(values) for name, values in others.items()},
    }


def checked(check: dict[str, Any]) -> str:
    """Say how good the forecast of known values was."""
    others = ", ".join(f"{name} gives {value:.4g}" for name, value in check["baselines"].items())
    return f"the last {check['steps']} values were forecast with RMSE {check['rmse']:.4g}; {others}"


def write_page(
    path: str, model: NARX, y: Any, following: NextValues, told: list[str], seconds: float
) -> None:
    """Write the report of a forecast; of a short series the forecast alone.

    Parameters
    ----------
    path : str
    model : NARX
        Fitted to the series.
    y : array of shape (n,)
        The series.
    following : NextValues
    told : list of str
        What else there is to say.
    seconds : float
        Spent on fit and forecast.
    """
    from lssvm.report.assembly import write_forecast
    from lssvm.report.forecast import can_hold_out
    from lssvm.report.markup import tag, write_page

    title = f"Forecast of {following.name}"
    if len(y) >= _LONG and can_hold_out(model, len(y)):
        settings = {"command": ["lssvm", *sys.argv[1:]], "notes": told}
        spent = {"fit and forecast": seconds}
        write_forecast(
            model, path, y, title=title, settings=settings, seconds=spent, following=following
        )
        return
    lead = f"The next {len(following.values)} values by a model of the last {model.lags}. "
    lead += " ".join([*told, "The series is too short to be judged by its last fifth."])
    leading = tag("p", lead, class_="lead")
    write_page(path, title, f"{len(y):,} values", leading, [following.section(y)])
