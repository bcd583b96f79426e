"""The one table of what may be done to the training data without changing a model.

A transformation takes a problem to another that means the same: the model of the one has to answer
as that of the other, to `TOLERANCE` of the scale of its answers. `PROMISES` says for every family
which of them are promised; ``docs/invariances.rst`` shows the same table, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from lssvm import (
    LSSVC,
    LSSVR,
    NARX,
    FixedSizeLSSVC,
    FixedSizeLSSVR,
    GreedyLSSVC,
    GreedyLSSVR,
    LSSVMClassifier,
    LSSVMRegressor,
    scan,
)

TOLERANCE = 1e-6
N = 96


@dataclass(frozen=True, eq=False)
class Problem:
    """Training data, new rows, and what turns answers back into those of the plain problem."""

    X: Any
    y: Any
    new: Any
    weight: Any = None
    groups: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    labels: Any = np.asarray

    def changed(self, rows: Any) -> Problem:
        """Return the problem with its training rows chosen or repeated."""

        def take(values: Any) -> Any:
            if values is None:
                return None
            return values.iloc[rows] if isinstance(values, pd.DataFrame) else values[rows]

        X, y, weight, groups = map(take, (self.X, self.y, self.weight, self.groups))
        return replace(self, X=X, y=y, weight=weight, groups=groups)

    def columns(self, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Problem:
        """Return the problem with its columns changed, in the training and the new rows."""
        if isinstance(self.X, pd.DataFrame):
            return replace(self, X=change(self.X), new=change(self.new))
        X, new = (change(pd.DataFrame(rows)).to_numpy() for rows in (self.X, self.new))
        return replace(self, X=X, new=new)


# -- problems --------------------------------------------------------------------------------------


@cache
def problem(name: str) -> Problem:
    """Return a problem by name: arrays or frames; two or three classes, numbers or a series."""
    rng = np.random.default_rng(11)
    X = np.round(rng.normal(size=(N + 9, 3)) * 64) / 64  # float32 holds them too
    if name.endswith("copies"):  # most rows stand there several times, with different targets
        X = X[np.arange(len(X)) % 40]
    value = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=len(X))
    if name.startswith("two"):
        y = np.where(value > 0.1, 1, 0)
    elif name.startswith("three"):
        y = np.digitize(value, [-0.5, 0.6])
    else:
        y = np.round(value, 6)
    if name.startswith("series"):
        for t in range(1, len(y)):
            y[t] = np.round(0.6 * y[t - 1] + 0.4 * y[t], 6)
    table: Any = X
    if name.endswith("frame"):
        day = np.datetime64("2021-03-01") + np.round(50 * X[:, 2]).astype("timedelta64[D]")
        table = pd.DataFrame(
            {
                "a": X[:, 0],
                "b": np.where(rng.random(len(X)) < 0.1, np.nan, X[:, 1]),
                "kind": np.array(["low", "mid", "high"])[np.digitize(X[:, 1], [-0.4, 0.4])],
                "town": [f"t{int(v)}" for v in 8 * X[:, 2] + rng.integers(0, 3, len(X))],
                "day": day.astype("datetime64[ns]"),
            }
        )
    rows = np.arange(N)
    plain = Problem(table, y, table[N:])
    return plain.changed(rows)


# -- transformations -------------------------------------------------------------------------------

ORDER = np.random.default_rng(5).permutation(N)
TWICE = np.arange(N) % 3 == 0
WEIGHTS = np.random.default_rng(6).uniform(0.5, 2.0, size=N)
GROUPS = np.arange(N) * 7 % 19


def numeric(frame: pd.DataFrame) -> list[Any]:
    return list(frame.select_dtypes("number").columns)


def in_units(frame: pd.DataFrame) -> pd.DataFrame:
    out = frame.copy()
    for name in numeric(frame):
        out[name] = out[name] * 3.7 + 11.0
    return out


def backwards(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[list(frame.columns[::-1])]


def renamed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.rename(columns={name: f"column {i}" for i, name in enumerate(frame.columns)})


def as_names(problem: Problem) -> Problem:
    names = np.array(["ant", "bee", "cat"])
    return replace(problem, y=names[problem.y], labels=lambda y: np.searchsorted(names, y))


def framed(p: Problem) -> Problem:
    frame = [pd.DataFrame(rows, columns=["u", "v", "w"]) for rows in (p.X, p.new)]
    return replace(p, X=frame[0], new=frame[1])


def in_other_units(p: Problem) -> Problem:
    return replace(p, y=3.7 * p.y + 11.0, labels=lambda values: (np.asarray(values) - 11.0) / 3.7)


def dated(p: Problem) -> Problem:
    """Return the series with dates, and its inputs as frames."""
    index = pd.date_range("2021-01-01", periods=len(p.X) + len(p.new), freq="D")
    names = ["u", "v", "w"]
    X = pd.DataFrame(p.X, index[: len(p.X)], names)
    new = pd.DataFrame(p.new, index[len(p.X) :], names)
    return replace(p, X=X, y=pd.Series(p.y, X.index, name="load"), new=new)


def by_polars(frame: pd.DataFrame) -> Any:
    import polars

    return polars.DataFrame({name: list(frame[name]) for name in frame.columns})


def by_arrow(frame: pd.DataFrame) -> Any:
    import pyarrow

    return pyarrow.Table.from_pandas(frame, preserve_index=False)


def by_dict(frame: pd.DataFrame) -> Any:
    return {name: frame[name].to_numpy() for name in frame.columns}


def contained(convert: Callable[[pd.DataFrame], Any]) -> Callable[[Problem], Problem]:
    def change(p: Problem) -> Problem:
        p = p if isinstance(p.X, pd.DataFrame) else framed(p)
        return replace(p, X=convert(p.X), new=convert(p.new))

    return change


def scanned(p: Problem) -> Problem:
    frame = p.X if isinstance(p.X, pd.DataFrame) else pd.DataFrame(p.X)
    X = scan(frame.assign(target=p.y), target="target", prepare=False)
    return replace(p, X=X, y=None)


def typed(dtype: Any) -> Callable[[Problem], Problem]:
    def change(p: Problem) -> Problem:
        return p.columns(lambda f: f.astype(dict.fromkeys(numeric(f), dtype)))

    return change


def counted(p: Problem) -> Problem:
    """Return numbers of few values, so that a type of integers holds them."""
    return p.columns(_rounded)


def _rounded(frame: pd.DataFrame) -> pd.DataFrame:
    out = frame.copy()
    for name in numeric(frame):
        out[name] = (out[name] * 4).round().fillna(0.0)
    return out


def factors(p: Problem) -> dict[Any, float]:
    return {label: 1.0 + i for i, label in enumerate(np.unique(p.y))}


@dataclass(frozen=True)
class Transformation:
    """Two problems that mean the same, made from one."""

    name: str
    before: Callable[[Problem], Problem]
    after: Callable[[Problem], Problem]
    families: str  # that promise it
    unless: str = ""  # why not for the others
    compared: tuple[str, ...] | None = None  # by default all answers


def same(p: Problem) -> Problem:
    return p


def weighted(p: Problem) -> Problem:
    return replace(p, weight=WEIGHTS)


def in_groups(p: Problem) -> Problem:
    return replace(p, groups=GROUPS)


EVERY = "dual, fixed size, greedy, table"
ALL = f"{EVERY}, series"
_BYTES = "folds are drawn by the bytes of the rows: give cv as splits"
_NAMES = "folds are drawn by the names of the groups: give cv as splits"
_COUNTS = "C counts weights: twice the weight is twice the row"
_FLOAT = "float32 is computed as float32"

TRANSFORMATIONS = {
    t.name: t
    for t in (
        Transformation("rows in another order", same, lambda p: p.changed(ORDER), EVERY),
        Transformation("rows in another order, with groups", in_groups,
                       lambda p: in_groups(p).changed(ORDER), EVERY),
        Transformation("columns in another order", same, lambda p: p.columns(backwards),
                       "table, series", _BYTES),
        Transformation("x * 3.7 + 11 for x in all number columns", same,
                       lambda p: p.columns(in_units), "table, series", _BYTES),
        Transformation("other names of columns", same, lambda p: p.columns(renamed), ALL),
        Transformation("weights times 7", weighted,
                       lambda p: replace(p, weight=7.0 * WEIGHTS), "table", _COUNTS),
        Transformation("weights that sum to 1", weighted,
                       lambda p: replace(p, weight=WEIGHTS / WEIGHTS.sum()), "table", _COUNTS),
        Transformation("the row twice for a weight of 2",
                       lambda p: replace(p, weight=1.0 + TWICE),
                       lambda p: p.changed(np.r_[np.arange(N), np.flatnonzero(TWICE)]), EVERY),
        Transformation("no row for a weight of 0",
                       lambda p: replace(p, weight=WEIGHTS * TWICE),
                       lambda p: weighted(p).changed(np.flatnonzero(TWICE)), EVERY),
        Transformation("every row three times", same,
                       lambda p: p.changed(np.tile(np.arange(N), 3)), "table", _COUNTS),
        Transformation("a frame for an array", same, contained(same), ALL),
        Transformation("a frame of polars", same, contained(by_polars), ALL),
        Transformation("a table of Arrow", same, contained(by_arrow), ALL),
        Transformation("a dict of columns", same, contained(by_dict), "table", "not taken"),
        Transformation("a scan", same, scanned, "table",
                       "dual and greedy take none, fixed size draws its folds by position"),
        Transformation("numbers that float32 holds, as float32", same, typed(np.float32),
                       "table, series", _FLOAT),
        Transformation("whole numbers as int", counted,
                       lambda p: typed(np.int64)(counted(p)), ALL),
        Transformation("other names of groups", in_groups,
                       lambda p: replace(p, groups=np.array([f"g{g}" for g in GROUPS])),
                       "table", _NAMES),
        Transformation("weights of rows for class weights",
                       lambda p: replace(p, options={"class_weight": factors(p)}),
                       lambda p: replace(p, weight=np.vectorize(factors(p).get)(p.y)), EVERY,
                       "scores see weights of rows, never class weights",
                       ("decision_function", "predict")),
        Transformation("other names of classes, in the same order", same, as_names, EVERY),
        Transformation("y * 3.7 + 11 for y in a series", same, in_other_units, "series",
                       "C, epsilon and losses have the units of y"),
        Transformation("a series with dates, inputs as frames", same, dated, "series"),
        Transformation("a series as a list of numbers", same,
                       lambda p: replace(p, y=p.y.tolist(), X=p.X.tolist()), "series"),
        Transformation("whole numbers of a series as int",
                       lambda p: replace(p, y=np.round(9.0 * p.y)),
                       lambda p: replace(p, y=np.round(9.0 * p.y).astype(np.int64)), "series"),
    )
}  # fmt: skip


# -- families --------------------------------------------------------------------------------------

FAST: dict[str, Any] = {"preset": "fast", "kernel": "rbf", "n_jobs": 1}


def fixed_size(kind: Any) -> Callable[..., Any]:
    """Return an estimator whose prototypes do not depend on how rows are drawn."""

    def make(**options: Any) -> Any:
        return kind(n_prototypes=N, gamma="scale", cv=4, search="grid", **options)

    return make


FAMILIES: dict[str, dict[str, Callable[..., Any]]] = {
    "dual": {
        "two": lambda **o: LSSVC("cv", cv=4, **o),
        "three": lambda **o: LSSVC(2.0, **o),
        "numbers": lambda **o: LSSVR("cv", cv=4, **o),
    },
    "fixed size": {
        "two": fixed_size(FixedSizeLSSVC),
        "numbers": fixed_size(FixedSizeLSSVR),
    },
    "greedy": {
        "two": lambda **o: GreedyLSSVC(2.0, max_support=15, **o),
        "numbers": lambda **o: GreedyLSSVR(2.0, max_support=15, **o),
    },
    "table": {
        "two": lambda **o: LSSVMClassifier(**FAST, **o),
        "three frame": lambda **o: LSSVMClassifier(**FAST, **o),
        "numbers": lambda **o: LSSVMRegressor(**FAST, **o),
        "numbers frame": lambda **o: LSSVMRegressor(**FAST, **o),
        "numbers copies": lambda **o: LSSVMRegressor(**FAST, **o),
    },
    "series": {
        "series": lambda: NARX(lags=5, exog_lags=1, horizon=6, n_origins=4, n_paths=5),
        "series differenced": lambda: NARX(
            GreedyLSSVR(2.0, max_support=15), 5, 1, 1, horizon=6, n_origins=4, n_paths=5
        ),
    },
}


def applies(transformation: str, family: str, name: str) -> bool:
    """Return whether a transformation is promised by a family and means anything for a problem."""
    if family not in TRANSFORMATIONS[transformation].families.split(", "):
        return False
    if transformation in ("a frame for an array", "a scan") and name.endswith("frame"):
        return False  # a scan has columns of numbers and texts
    if name.endswith("copies") and not {"row", "rows", "weights"} & set(transformation.split()):
        return False
    return "class" not in transformation or not name.startswith("numbers")


def answers(family: str, name: str, p: Problem) -> dict[str, Any]:
    """Return what the model of a problem says of the new rows, and its own score."""
    if family == "series":
        return forecasts(FAMILIES[family][name](), p)
    model = FAMILIES[family][name](**p.options)
    roles = {"sample_weight": p.weight, "groups": p.groups}
    roles = {role: value for role, value in roles.items() if value is not None}
    model.fit(p.X, **roles) if p.y is None else model.fit(p.X, p.y, **roles)
    out: dict[str, Any] = {}
    if hasattr(model, "classes_"):
        out["decision_function"] = np.asarray(model.decision_function(p.new))
        out["predict"] = p.labels(model.predict(p.new)).astype(float)
        if family == "table":
            out["predict_proba"] = np.asarray(model.predict_proba(p.new))
    else:
        out["predict"] = np.asarray(model.predict(p.new), dtype=float)
        if family == "table":
            out["predict_interval"] = np.asarray(model.predict_interval(p.new, 0.8))
    if hasattr(model, "best_score_"):
        out["best_score_"] = np.asarray(model.best_score_)
    return out


def forecasts(model: Any, p: Problem) -> dict[str, Any]:
    """Return the forecast of a series from its inputs, with intervals, and the score of tuning."""
    values, ends = model.fit(p.y, p.X).forecast(9, p.new, return_interval=True, coverage=0.5)
    out = {"forecast": p.labels(values), "interval": p.labels(ends)}
    return out | (
        {"best_score_": np.asarray(model.best_score_)} if hasattr(model, "best_score_") else {}
    )


@cache
def plain_answers(family: str, name: str) -> dict[str, Any]:
    """Return the answers for the problem as it is."""
    return answers(family, name, problem(name))


def differences(family: str, name: str, transformation: str) -> dict[str, float]:
    """Return how far the answers of the two problems are apart, relative to their scale."""
    t, plain = TRANSFORMATIONS[transformation], problem(name)
    if t.before is same:
        mine = plain_answers(family, name)
    else:
        mine = answers(family, name, t.before(plain))
    its = answers(family, name, t.after(plain))
    return {
        key: float(np.abs(mine[key] - its[key]).max() / max(1e-3, np.abs(mine[key]).max()))
        for key in t.compared or mine
        if key in mine
    }
