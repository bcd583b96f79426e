"""What the pictures of explanations share: an explanation of a model, and columns in words."""

from __future__ import annotations

import datetime
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.explanations import Explanation
from lssvm.plots.canvas import pyplot
from lssvm.plots.fitted import Estimator, fitted_model

UP, DOWN = "#D55E00", "#0072B2"
"""Colours of what raises and of what lowers an output."""


class Explains(Protocol):
    """A fitted model that explains its outputs."""

    def explain(self, X: Any, background: Any = None, **wishes: Any) -> Explanation:
        """Return the explanation of rows."""


def explanation_of(caller: str, model: Estimator, X: Any, **wishes: Any) -> Explanation:
    """Return the explanation of rows by a model, or by the last step of a pipeline.

    Parameters
    ----------
    caller : str
        Who asks, for the messages.
    model : Estimator
        A fitted model of lssvm, or a pipeline that ends in one.
    X : table of n rows
    **wishes
        What ``explain`` takes; a ``background`` is a table like X.

    Returns
    -------
    Explanation
        Of the features that the last step of a pipeline sees.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.plots.explained import explanation_of
    >>> X = np.arange(6.0)[:, None]
    >>> explanation_of("this example", LSSVR().fit(X, X[:, 0]), X).values.shape
    (6, 1)
    """
    pyplot(caller)
    if X is None:
        raise InvalidInputError(f"{caller} needs X, the rows to explain: X did not come.")
    last = fitted_model(model)
    if not hasattr(last, "explain"):
        raise InvalidInputError(
            f"{type(last).__name__} has no explain: give a model of lssvm, or a pipeline that "
            "ends in one."
        )
    if isinstance(model, Pipeline) and len(model) > 1:
        before = model[:-1]
        X = before.transform(X)
        if wishes.get("background") is not None:
            wishes["background"] = before.transform(wishes["background"])
    found: Explanation = last.explain(X, **wishes)
    return found


def single_output(explanation: Explanation, output: int | str) -> Explanation:
    """Return the explanation of one output, checked.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.plots.explained import single_output
    >>> X = np.arange(6.0)[:, None]
    >>> single_output(LSSVR().fit(X, X[:, 0]).explain(X), 0).values.ndim
    2
    """
    if not isinstance(explanation, Explanation):
        raise InvalidInputError(
            f"A {type(explanation).__name__} came in place of an explanation: give what "
            "model.explain(X) returns."
        )
    if not len(explanation):
        raise InvalidInputError("The explanation has no rows: explain at least one.")
    return explanation.output(output)


def column_number(explanation: Explanation, column: int | str | None) -> int:
    """Return the number of a column, the most important one for None.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.plots.explained import column_number
    >>> X = np.arange(6.0)[:, None]
    >>> column_number(LSSVR().fit(X, X[:, 0]).explain(X), "x0")
    0
    """
    names = explanation.feature_names
    if column is None:
        return int(np.argmax(explanation.importances))
    if isinstance(column, str) and column in names:
        return names.index(column)
    if not isinstance(column, str) and 0 <= column < len(names):
        return int(column)
    raise InvalidInputError(
        f"column={column!r} is not there: choose among {', '.join(names[:20])}"
        f"{', ...' if len(names) > 20 else ''}."
    )


def shown(value: Any) -> str:
    """Return a value of a table in a few characters.

    Examples
    --------
    >>> from lssvm.plots.explained import shown
    >>> shown(0.12345), shown(19620.4), shown("cook"), shown(float("nan")), shown(3.0)
    ('0.1235', '19,620', 'cook', '', '3')
    """
    if value is None:
        return ""
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if np.isnan(number):
            return ""
        return f"{number:,.0f}" if 1e4 <= abs(number) < 1e9 else f"{number:.4g}"
    text = str(value)
    return text if len(text) <= 18 else f"{text[:17]}…"


def spoken(explanation: Explanation) -> str:
    """Return what is explained, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVC
    >>> from lssvm.plots.explained import spoken
    >>> X = np.arange(6.0)[:, None]
    >>> spoken(LSSVC().fit(X, ["a", "b"] * 3).explain(X))
    "the score of 'b'"
    """
    (name,) = explanation.output_names
    return "the prediction" if name == "prediction" else f"the score of {name!r}"


def ranks(values: Any) -> FloatArray:
    """Return numbers of a column between 0 and 1 by their order; NaN for what is no number.

    Examples
    --------
    >>> from lssvm.plots.explained import ranks
    >>> ranks([5.0, 100.0, 6.0]), ranks(["b", "a", "b"])
    (array([0. , 1. , 0.5]), array([nan, nan, nan]))
    """
    out = np.full(len(values), np.nan)
    numbers = as_numbers(values)
    if numbers is None:
        return out
    known = ~np.isnan(numbers)
    levels, order = np.unique(numbers[known], return_inverse=True)
    out[known] = order / max(len(levels) - 1, 1)
    return out


def as_numbers(values: Any) -> FloatArray | None:
    """Return a column as numbers, dates as days; None where it holds texts.

    Examples
    --------
    >>> from lssvm.plots.explained import as_numbers
    >>> as_numbers([1, None]), as_numbers(["a", "b"])
    (array([ 1., nan]), None)
    """
    column = np.array([np.nan if v is None else v for v in values], dtype=object)
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        dates = as_dates(values)
    if dates is None:
        return None
    return np.where(np.isnat(dates), np.nan, dates.astype(np.int64) / 86_400.0)


def as_dates(values: Any) -> NDArray[np.datetime64] | None:
    """Return a column of dates to the second, None for another one.

    Examples
    --------
    >>> from datetime import date
    >>> from lssvm.plots.explained import as_dates
    >>> as_dates([date(2024, 5, 1), None]).tolist()[1] is None, as_dates(["2024"]) is None
    (True, True)
    """
    known = [v for v in values if v is not None and v == v]
    if not known or not all(isinstance(v, (datetime.date, np.datetime64)) for v in known):
        return None
    none = np.datetime64("NaT")
    return np.array([none if v is None or v != v else v for v in values], dtype="datetime64[s]")
