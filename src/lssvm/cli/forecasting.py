"""`lssvm forecast`: a time series and what comes next."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import Any

from lssvm._core.errors import InvalidInputError
from lssvm.cli.option_groups import option
from lssvm.cli.options import OUTPUT, DataFile, Reading, Seeded
from lssvm.cli.writing import ENDINGS, table_writer


@dataclass(frozen=True)
class Forecasting:
    """Which series, how far and how."""

    column: str = option(MISSING, "The series.", names=("--column", "-c"))
    horizon: int = option(24, "How many values to forecast.", min=1)
    lags: int | None = option(None, "Past values in a row; by default 50, or fewer.", min=1)
    last: int | None = option(None, "Learn from so many of the last values only.", min=10)
    differencing: int = option(0, "How often the series is differenced first.", min=0, max=3)
    coverage: float = option(0.9, "Share of the values that intervals are to hold.")
    out: str | None = option(None, "Write the forecast: .csv, .parquet.", "FILE", OUTPUT)
    report: str | None = option(None, "Draw it into an HTML page.", "FILE")
    test: bool = option(
        True, "Also forecast the last values, as a check.", names=("--test/--no-test",)
    )

    def model(self, y: Any, horizon: int, seed: int) -> Any:
        """Return a model for a series that is to be forecast so far."""
        from lssvm.estimators import NARX

        known = len(y) - self.differencing
        if known < 10:
            raise InvalidInputError(f"The series has {len(y)} values: at least {10} are needed.")
        lags = self.lags if self.lags is not None else max(1, min(50, known // 4))
        steps = min(horizon, max(1, (known - lags) // 5))
        return NARX(lags=lags, differencing=self.differencing, horizon=steps, random_state=seed)


def forecast(data: DataFile, reading: Reading, general: Seeded, asked: Forecasting) -> None:
    """Forecast a time series, with intervals.

    The series is modelled by its own past. As a check the last values are forecast from those
    before them, beside the naive forecast that repeats the last value.
    """
    import numpy as np

    from lssvm.cli.tables import check_writable, open_table

    output, column, horizon, coverage = general.output, asked.column, asked.horizon, asked.coverage
    if not 0.0 < coverage < 1.0:
        raise InvalidInputError(f"--coverage {coverage} is not usable: give a number below 1.")
    check_writable(asked.out, ENDINGS, (data,))
    check_writable(asked.report, (".html",), (data,))
    y = read_series(open_table(data, reading, general.output.note), column)[-(asked.last or 0) :]
    check = backtest(y, asked, general.seed) if asked.test else None
    model = asked.model(y, horizon, general.seed).fit(y)
    values, ends = model.forecast(horizon, return_interval=True, coverage=coverage)
    lower, upper = ends.T
    columns = {
        "step": np.arange(1, horizon + 1),
        "forecast": values,
        "lower": lower,
        "upper": upper,
    }
    if asked.out is not None:
        with table_writer(asked.out) as write:
            write(columns)
    if asked.report is not None:
        lead = f"The next {horizon} values of {column!r} by a model of the last {model.lags}."
        lead += "" if check is None else f" As a check, {checked(check)}."
        write_page(asked.report, column, y, columns, coverage, lead)
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
            "C": getattr(model.estimator_, "C_", None),
            "gamma": getattr(model.estimator_, "gamma_", None),
            "coverage": coverage,
            **columns,
            "check": check,
        }
    )


def read_series(table: Any, column: str) -> Any:
    """Return a column of numbers."""
    import numpy as np

    table.need([column], "")
    if table.kinds[column] != "number":
        raise InvalidInputError(f"The column {column!r} holds {table.kinds[column]}, not numbers.")
    parts = [block.numbers[:, 0] for block in table.scan(columns=[column]).blocks()]
    y = np.concatenate(parts)
    bad = np.flatnonzero(~np.isfinite(y))
    if len(bad):
        raise InvalidInputError(
            f"The series {column!r} has a missing or infinite value in row {int(bad[0])}: fill it "
            "in."
        )
    return y


def backtest(y: Any, asked: Forecasting, seed: int) -> dict[str, Any] | None:
    """Forecast the last values from those before; None where the series is short."""
    import numpy as np

    steps = min(asked.horizon, len(y) // 5)
    if len(y) < 50 or steps < 1:
        return None
    past, truth = y[:-steps], y[-steps:]
    made = asked.model(past, steps, seed).fit(past).forecast(steps)
    return {
        "steps": steps,
        "rmse": float(np.sqrt(np.mean((made - truth) ** 2))),
        "naive_rmse": float(np.sqrt(np.mean((past[-1] - truth) ** 2))),
    }


def checked(check: dict[str, Any]) -> str:
    """Say how good the forecast of known values was."""
    return (
        f"the last {check['steps']} values were forecast with RMSE {check['rmse']:.4g}; repeating "
        f"the last value gives {check['naive_rmse']:.4g}"
    )


def write_page(
    path: str, column: str, y: Any, columns: dict[str, Any], coverage: float, lead: str
) -> None:
    """Write one HTML page: the forecast in words, as a picture and as a table.

    Parameters
    ----------
    path, column : str
    y : array of shape (n,)
        The series.
    columns : dict of arrays of shape (steps,)
        "step", "forecast", "lower" and "upper".
    coverage : float
    told : list of str
        What else there is to say.
    """
    import numpy as np

    from lssvm.report.charts import Chart, alone
    from lssvm.report.formats import count, number, percent
    from lssvm.report.markup import clean, table, tag
    from lssvm.report.page import Section, page, write_file

    steps, values, low, high = columns.values()
    past = y[-(4 * len(values) + 50) :]
    before = np.arange(1 - len(past), 1)
    title, across = f"Forecast of {column}", "steps from the last value"
    chart = Chart(title, [*before, *steps], [*past, *low, *high], across, column)
    chart.band(steps, low, high, "sc").line(before, past).line(steps, values, "sc")
    inside = f"{percent(coverage, 0)} interval"
    keys = [("sa line", column), ("sc line", "forecast"), ("sc area", inside)]
    picture = alone(chart, f"The last {count(len(past))} values and {len(values)} forecasts.", keys)
    rows = [[int(step), *map(number, rest)] for step, *rest in zip(*columns.values(), strict=True)]
    listed = table("The forecast.", [name.capitalize() for name in columns], rows)
    section = Section("forecast", "What comes next", "Forecast", [picture, listed])
    facts = tag("p", f"{count(len(y))} values", class_="facts")
    leading = tag("p", lead, class_="lead")
    write_file(path, page(clean(title), facts, leading, [section], "This page loads nothing."))
