"""`lssvm forecast`: a time series and what comes next."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lssvm._core.errors import InvalidInputError
from lssvm.cli.options import DataFile, Reading, Seeded
from lssvm.cli.writing import ENDINGS, table_writer


def forecast(
    data: DataFile,
    column: Annotated[str, typer.Option("--column", "-c", help="The series.")],
    reading: Reading,
    general: Seeded,
    horizon: Annotated[int, typer.Option(min=1, help="How many values to forecast.")] = 24,
    lags: Annotated[
        int | None, typer.Option(min=1, help="Past values in a row; by default 50, or fewer.")
    ] = None,
    last: Annotated[
        int | None, typer.Option(min=10, help="Learn from so many of the last values only.")
    ] = None,
    differencing: Annotated[
        int, typer.Option(min=0, max=3, help="How often the series is differenced first.")
    ] = 0,
    coverage: Annotated[
        float, typer.Option(help="Share of the values that intervals are to hold.")
    ] = 0.9,
    out: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the forecast: .csv, .parquet."),
    ] = None,
    report: Annotated[
        str | None, typer.Option("--report", metavar="FILE", help="Draw it into an HTML page.")
    ] = None,
    test: Annotated[
        bool, typer.Option("--test/--no-test", help="Also forecast the last values, as a check.")
    ] = True,
) -> None:
    """Forecast a time series, with intervals.

    The series is modelled by its own past. As a check the last values are forecast from those
    before them, beside the naive forecast that repeats the last value.
    """
    from lssvm.cli.tables import check_writable, open_table

    output = general.output
    if not 0.0 < coverage < 1.0:
        raise InvalidInputError(f"--coverage {coverage} is not usable: give a number below 1.")
    check_writable(out, ENDINGS, (data,))
    check_writable(report, (".html",), (data,))
    y = read_series(open_table(data, reading), column)[-(last or 0) :]
    check = backtest(y, horizon, lags, differencing, general.seed) if test else None
    model = _model(y, lags, differencing, horizon, general.seed).fit(y)
    values, ends = model.forecast(horizon, return_interval=True, coverage=coverage)
    import numpy as np

    columns = {
        "step": np.arange(1, horizon + 1),
        "forecast": values,
        "lower": ends[:, 0],
        "upper": ends[:, 1],
    }
    if out is not None:
        with table_writer(out) as write:
            write(columns)
    if report is not None:
        told = [f"The next {horizon} values of {column!r} by a model of the last {model.lags}."]
        told += [] if check is None else [f"As a check, {checked(check)}."]
        write_page(report, column, y, columns, coverage, told)
    rows = list(zip(*(part.tolist() for part in columns.values()), strict=True))
    shown = rows if len(rows) <= 24 else rows[:24]
    output.table(f"The next values of {column!r}", list(columns), shown, left=())
    if len(shown) < len(rows):
        output.line(f"(the first 24 of {len(rows)})")
    if check is not None:
        output.line(f"check: {checked(check)}")
    for name, path in (("forecast", out), ("report", report)):
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


def _model(y: Any, lags: int | None, differencing: int, horizon: int, seed: int) -> Any:
    from lssvm.estimators import NARX

    known = len(y) - differencing
    if known < 10:
        raise InvalidInputError(f"The series has {len(y)} values: at least {10} are needed.")
    used = lags if lags is not None else max(1, min(50, known // 4))
    steps = min(horizon, max(1, (known - used) // 5))
    return NARX(lags=used, differencing=differencing, horizon=steps, random_state=seed)


def backtest(
    y: Any, horizon: int, lags: int | None, differencing: int, seed: int
) -> dict[str, Any] | None:
    """Forecast the last values from those before; None where the series is short."""
    import numpy as np

    steps = min(horizon, len(y) // 5)
    if len(y) < 50 or steps < 1:
        return None
    past, truth = y[:-steps], y[-steps:]
    made = _model(past, lags, differencing, steps, seed).fit(past).forecast(steps)
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
    path: str,
    column: str,
    y: Any,
    columns: dict[str, Any],
    coverage: float,
    told: list[str],
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

    from lssvm._core.atomic import replacing
    from lssvm.report.charts import Chart, alone
    from lssvm.report.formats import count, number, percent
    from lssvm.report.markup import clean, table, tag
    from lssvm.report.page import Section, page

    steps, values, low, high = columns.values()
    past = y[-(4 * len(values) + 50) :]
    before = np.arange(1 - len(past), 1)
    places = [*before, *steps]
    chart = Chart(
        f"Forecast of {column}", places, [*past, *low, *high], "steps from the last value", column
    )
    chart.band(steps, low, high, "sc").line(before, past).line(steps, values, "sc")
    inside = f"{percent(coverage, 0)} interval"
    keys = [("sa line", column), ("sc line", "forecast"), ("sc area", inside)]
    picture = alone(chart, f"The last {count(len(past))} values and {len(values)} forecasts.", keys)
    rows = zip(*columns.values(), strict=True)
    lines = [[int(step), *map(number, rest)] for step, *rest in rows]
    listed = table("The forecast.", ["Step", "Forecast", "Lower", "Upper"], lines)
    section = Section("forecast", "What comes next", "Forecast", [picture, listed])
    lead = tag("p", " ".join(told), class_="lead")
    facts = tag("p", f"{count(len(y))} values", class_="facts")
    whole = page(clean(f"Forecast of {column}"), facts, lead, [section], "This page loads nothing.")
    with replacing(path) as name, open(name, "w", encoding="utf-8") as file:
        file.write(whole)
