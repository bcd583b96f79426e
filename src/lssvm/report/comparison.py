"""The sections of comparison and of suggestions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import LSSVMError
from lssvm.estimators import LSSVMClassifier, LSSVMRegressor
from lssvm.plots.base import fitted_attributes
from lssvm.plots.rows import SampledRows, is_table
from lssvm.report import html
from lssvm.report.measures import Z95, as_columns, losses, mean_and_error
from lssvm.report.refits import Subject
from lssvm.report.text import MINUS, listing, number, percent, quoted

ROWS = 5000  # rows that the others are fitted to
TABLE_ROWS = 1000  # rows that the model for tables is fitted to
FEW = 200  # rows below which the model for tables is not tried
WIDE = 200  # columns beyond which it is not tried either
CLASSES = 30  # classes beyond which trees and it are not tried
LEVELS = 250  # categories that trees take as such
TREES = 100  # rounds of boosting at most
TABLE = "the model for tables"


@dataclass(frozen=True)
class Compared:
    """Another model, measured on the rows of the report.

    Attributes
    ----------
    name : str
    value : float
        Share of right rows, or of explained variance.
    gain, std_error : float
        How much better this report's model is, and the standard error of that, from the
        differences of the rows.
    rows : int
        How many it was fitted to.
    """

    name: str
    value: float
    gain: float
    std_error: float
    rows: int

    @property
    def ends(self) -> tuple[float, float]:
        """The 95 % interval of the gain."""
        return self.gain - Z95 * self.std_error, self.gain + Z95 * self.std_error


def as_matrix(rows: SampledRows, known: SampledRows) -> FloatArray:
    """Return rows as numbers: columns of numbers, then texts as positions among known categories.

    Missing values, and categories that are not known, are NaN.
    """
    parts = [rows.block.numbers]
    for column, other in zip(rows.block.texts, known.block.texts, strict=True):
        place = {level: i for i, level in enumerate(other.levels)}
        codes = [float(place.get(level, math.nan)) for level in column.levels]
        parts.append(np.array([*codes, math.nan])[column.codes][:, None])
    return np.hstack(parts)


def others(rows: SampledRows, classes: bool) -> dict[str, Any]:
    """Return unfitted models by their names, for the columns of `as_matrix`."""
    p, texts = rows.block.numbers.shape[1], rows.block.texts
    numbers, words = list(range(p)), list(range(p, p + len(texts)))
    few = [j for j, text in zip(words, texts, strict=True) if len(text.levels) <= LEVELS]
    medians = SimpleImputer(strategy="median", keep_empty_features=True)
    scaled = make_pipeline(medians, StandardScaler())
    spread = make_pipeline(
        SimpleImputer(strategy="constant", fill_value=-1.0, keep_empty_features=True),
        OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=100),
    )
    columns = [("numbers", scaled, numbers), ("texts", spread, words)]
    prepared = ColumnTransformer(columns).set_output(transform="default")
    boosting = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    trees = boosting(max_iter=TREES, categorical_features=few, random_state=0)
    if classes:
        models: dict[str, Any] = {
            "the most frequent class": DummyClassifier(strategy="most_frequent"),
            "logistic regression": LogisticRegression(max_iter=300),
        }
        if len(np.unique(rows.y)) <= CLASSES:
            models["gradient boosted trees"] = trees
    else:
        several = as_columns(rows.y).shape[1] > 1
        models = {
            "the mean": DummyRegressor(),
            "linear regression (ridge)": RidgeCV(np.logspace(-3, 3, 13)),
            "gradient boosted trees": MultiOutputRegressor(trees) if several else trees,
        }
    linear = list(models)[1]
    models[linear] = Pipeline([("columns", prepared), ("model", models[linear])])
    return models


def compare(subject: Subject) -> list[Compared]:
    """Fit other models to (some of) the training rows and measure them on the same rows.

    Notes
    -----
    With test rows, on these; without, every checked row is predicted by a copy that was fitted to
    four fifths of the others. At most 5,000 rows are fitted, 1,000 by the model for tables.
    """
    predicted = subject.numbers.predicted if not subject.classification else None
    if predicted is None:
        predicted = subject.classes.classes[subject.classes.predicted]
    weight, known = subject.checked.weight, (subject.checked.y, subject.classification)
    base = losses(predicted, *known, weight)
    compared = []
    for name, other, n in _predictions(subject):
        loss = losses(other, *known, weight)
        quality = 1.0 - mean_and_error(loss, weight)[0]
        compared.append(Compared(name, quality, *mean_and_error(loss - base, weight), n))
    return compared


def _predictions(subject: Subject) -> list[tuple[str, Any, int]]:
    predictions = []
    rows = subject.checked if subject.test is None else subject.train.subsample(ROWS, seed=5)
    X, y = as_matrix(rows, rows), rows.y
    folds = KFold(5, shuffle=True, random_state=0)
    fitted = [part for part, _ in folds.split(X)] if subject.test is None else [slice(None)]
    # The only row of a class is in no fold that is fitted without it.
    few = subject.classification and min(len(np.unique(y[part])) for part in fitted) < 2
    # of models that are not ours
    with warnings.catch_warnings(action="ignore"):
        for name, model in others(rows, subject.classification).items():
            if few and not isinstance(model, DummyClassifier):
                continue
            prefix = "model__" if isinstance(model, Pipeline) else ""
            weight = {} if rows.weight is None else {f"{prefix}sample_weight": rows.weight}
            if subject.test is None:
                predicted = cross_val_predict(model, X, y, cv=folds, params=weight)
                n = len(rows) - len(rows) // 5
            else:
                known = as_matrix(subject.checked, rows)
                predicted, n = model.fit(X, y, **weight).predict(known), len(rows)
            predictions.append((name, predicted, n))
        if (table := _table_model(subject)) is not None:
            predictions.append(table)
    return predictions


def _table_model(subject: Subject) -> tuple[str, Any, int] | None:
    """Return the predictions of the model for tables, where it is another one and rows suffice."""
    n_columns = len(subject.train.schema.names)
    if is_table(subject.model) or subject.test is None or len(subject.train) < FEW:
        return None
    if n_columns > WIDE or (subject.classification and len(subject.classes.classes) > CLASSES):
        return None
    rows = subject.train.subsample(TABLE_ROWS, seed=5)
    model = (LSSVMClassifier if subject.classification else LSSVMRegressor)("fast")
    try:
        model.fit(rows.values(), rows.y, sample_weight=rows.weight)
        return TABLE, model.predict(subject.checked.values()), len(rows)
    except LSSVMError:  # columns that need a preparation of their own
        return None


def comparison(subject: Subject) -> html.Section | None:
    """Return the section of other models; None where rows are kernel values."""
    if not subject.has_features:
        return None
    compared = compare(subject)
    facts = map(asdict, compared)
    subject.facts["comparison"] = {fact.pop("name"): fact for fact in facts}
    name, quality = type(subject.model).__name__, compared[0].value + compared[0].gain
    this = html.tag("strong", f"this model ({name})")
    rows = [[this, percent(quality), "", f"{subject.train.n_rows:,}"]]
    for one in compared:
        against = compared_with(one.gain, *one.ends, _in_points)
        rows.append([one.name, percent(max(one.value, 0.0)), against, f"{one.rows:,}"])
    caption = (
        "Other models with their default settings, on the same rows; the difference with its 95 % "
        "interval, from the differences row by row."
    )
    measure = "Right" if subject.classification else "Explained variance"
    head = ["Model", measure, "Compared with this model", "Fitted to rows"]
    title, body = "Compared with other models", [html.table(caption, head, rows)]
    return html.Section("comparison", title, "Comparison", _summary(compared), body)


def _in_points(value: float) -> str:
    return f"{100.0 * value:.1f}".replace("-", MINUS)


def compared_with(gain: float, low: float, high: float, write: Callable[[float], str]) -> str:
    """Return by how much another model is worse (a gain above zero) or better, with its interval.

    Examples
    --------
    >>> from lssvm.report.comparison import compared_with
    >>> compared_with(-2.0, -3.0, -1.0, str)
    '2.0 better (1.0 to 3.0)'
    """
    if gain == low == high == 0:
        return "the same"
    side = 1.0 if gain >= 0 else -1.0
    interval = " to ".join(map(write, sorted([side * low, side * high])))
    unit = " points" if write is _in_points else ""
    known = f" ({interval})" if math.isfinite(low) else ""
    return f"{write(abs(gain))}{unit} {'worse' if gain >= 0 else 'better'}{known}"


def _summary(compared: list[Compared]) -> str:
    better = [one for one in compared if one.ends[1] < 0]
    if better:
        best = max(better, key=lambda one: one.value)
        return (
            f"{best.name[:1].upper()}{best.name[1:]} did clearly better on the same rows, by "
            f"{number(-100.0 * best.gain)} points: see the suggestions below."
        )
    rest = [one.name for one in compared if one.ends[0] <= 0]
    if not rest:
        return "This model did clearly better than all of these on the same rows."
    return f"None of these did clearly better. Not clearly worse: {', '.join(rest)}."


ONE_SIDED = 0.9  # share of one class from which on weights of the classes help
LEADING = 0.6  # part of all importance in a quarter of the columns from which on ARD may help
COLUMNS = 4  # columns below which that is not informative


def suggestions(subject: Subject, advice: str | None) -> list[str]:
    """Return what would help, the most important first, from the facts of all sections.

    Parameters
    ----------
    subject : Subject
        With the facts of the other sections.
    advice : str or None
        The conclusion from the learning curve.
    """
    lines = [*_data_advice(subject), *_model_advice(subject), *_parameter_advice(subject)]
    lines += [] if advice is None else [advice]
    if subject.test is None:
        lines.append("Test rows would show the accuracy on rows that were not used for any choice.")
    return lines or ["None of the checks suggests an improvement."]


def help_section(facts: dict[str, Any], lines: list[str]) -> html.Section:
    """Return the section of suggestions, which join the facts."""
    facts["suggestions"] = lines
    text = "Suggestions from the results above, the most important first."
    return html.Section("help", "What would help", "What helps", text, [html.bullets(lines)])


def _data_advice(subject: Subject) -> Iterator[str]:
    data = subject.facts.get("data", {})
    for name in list(data.get("suspected_leaks", ()))[:1]:
        yield (
            f"Drop {quoted(name)}, or make sure that it is known in time: it predicts the target "
            "by itself."
        )
    for name in list(data.get("suspected_ids", ()))[:1]:
        yield f"Drop {quoted(name)}: it numbers the rows."
    spans = subject.facts.get("importance_interval", {}).items()
    harmful = [quoted(name, 24) for name, (_, high) in spans if high < 0]
    if harmful:
        yield f"The loss falls when {listing(harmful[:3])} is shuffled: try without it."


def _model_advice(subject: Subject) -> Iterator[str]:
    kind = "Classifier" if subject.classification else "Regressor"
    compared = subject.facts.get("comparison", {})
    better = {
        name: -100 * one["gain"]
        for name, one in compared.items()
        if one["gain"] < -Z95 * one["std_error"]
    }
    if TABLE in better:
        yield (
            f"The model for tables, LSSVM{kind}(), was better by {number(better[TABLE])} points "
            "with its fast settings: use it."
        )
    elif not is_table(subject.model) and better:
        yield (
            f"Another model was clearly better: try the model for tables, LSSVM{kind}(), which "
            "chooses among kernels and learns a metric."
        )
    if is_table(subject.model) and subject.model.get_params(deep=False)["preset"] != "best":
        yield f'LSSVM{kind}("best") tries more configurations, in several times the time.'


def _parameter_advice(subject: Subject) -> Iterator[str]:
    params = subject.model.get_params(deep=False)
    spans = subject.facts.get("importance_interval", {}).values()
    gains = np.array([max(low, 0.0) for low, _ in spans])
    gamma = params.get("gamma", "ard")
    if params.get("kernel") == "rbf" and np.ndim(gamma) == 0 and gamma != "ard":
        few = max(1, len(gains) // 4)
        lead = float(np.sort(gains)[::-1][:few].sum() / gains.sum()) if gains.sum() > 0 else 0.0
        if len(gains) >= COLUMNS and lead > LEADING:
            yield (
                f"{percent(lead, 0)} of the importance is in {few} of {len(gains)} columns: "
                'gamma="ard" gives every column its own width.'
            )
    if not subject.classification:
        return
    if subject.facts.get("baseline_accuracy", 0.0) > ONE_SIDED and not params.get("class_weight"):
        yield 'Most rows are of one class: class_weight="balanced" makes the others count.'
    code = fitted_attributes(subject.model).get("code_")
    classes = len(subject.classes.classes)
    if code is not None and classes > 2 and code.n_problems < classes:
        yield (
            f"{classes} classes are coded into {code.n_problems} binary problems: "
            'multiclass="ova" or "ecoc" has more of them, and is often more accurate.'
        )
