"""Random options of every estimator on hostile data: an answer that holds, or an error of ours.

``python -m tests.fuzz.configurations --seed 0 --seconds 60`` goes on for a minute. Every number of
a seed is one configuration: an estimator, options, data and weights. It is fitted, asked for all it
can answer, saved, loaded and, where the problem is well conditioned, fitted to its rows in another
order. What is looked for: errors that are not ours, warnings that are not documented, answers that
are not finite, equal rows with different answers, rows that are answered differently alone, models
that change on the way through a file or with the order of the rows, fits that do not keep to their
time limit. Every sixth is a model for tables with a raw table. `--only 17` runs one number again,
with the traceback of its failure.
"""

from __future__ import annotations

import argparse
import linecache
import os
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError, UndefinedMetricWarning
from sklearn.metrics import get_scorer_names
from sklearn.model_selection import KFold

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
    load,
    save,
    scan,
)
from lssvm._core.errors import (
    ColumnWarning,
    ConvergenceWarning,
    LSSVMError,
    NumericalWarning,
    ScaleWarning,
)
from lssvm.codes import Coding
from lssvm.kernels import RBF, Matern, Polynomial
from lssvm.reductions import FixedSizeL0, Prune
from lssvm.solvers import PCG, SMO
from lssvm.tuning import (
    CoupledAnnealing,
    GridSearch,
    PathSearch,
    PositionFolds,
    PositionHoldout,
    make_search,
)

Random = np.random.Generator
DOCUMENTED = (
    ColumnWarning,
    NumericalWarning,
    ConvergenceWarning,
    ScaleWarning,
    DataConversionWarning,
    UndefinedMetricWarning,
)


LONGEST = 15  # seconds of computing that one configuration of at most 60 rows may take
LONGEST_TABLE = 60  # the same for a model for tables, of at most 2,000 rows
OVER = 0.1, 2.0  # share, and seconds, that a fit may take beyond its time limit
WAITING = 20  # times as long may pass on a machine that has other things to do


class Fault(AssertionError):
    """Something that does not hold."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise a Fault in a computation that does not end (where there are alarms)."""
    if not hasattr(signal, "SIGPROF"):
        yield
        return

    def ring(*_: Any) -> None:
        raise Fault(f"took more than {seconds} seconds")

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds)}
    timers[signal.SIGALRM] = (signal.ITIMER_REAL, WAITING * seconds)
    before = {name: signal.signal(name, ring) for name in timers}
    for timer, limit in timers.values():
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for name, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(name, before[name])


# -- data ------------------------------------------------------------------------------------------


def features(rng: Random) -> tuple[np.ndarray, str]:
    """Return rows, and what is wrong with them."""
    n, d = int(rng.integers(1, 61)), int(rng.integers(1, 6))
    d = 150 if rng.random() < 0.02 else d
    X = rng.normal(size=(n, d))
    said = [f"n={n} d={d}"]
    if rng.random() < 0.15:
        X[:, rng.integers(d)] = rng.choice([0.0, 1.0, -3e5])
        said.append("constant column")
    if rng.random() < 0.1:
        X[:] = X[:1]
        said.append("all rows equal")
    elif rng.random() < 0.25:
        X = X[rng.integers(0, max(1, n // 3), n)]
        said.append("duplicates")
    elif rng.random() < 0.15:
        X = np.round(X)
        said.append("integers")
    if rng.random() < 0.2:
        scale = float(10.0 ** rng.choice([-200, -30, -8, -3, 3, 8, 30, 200, 307]))
        columns = rng.random(d) < 0.5 if rng.random() < 0.5 else slice(None)
        with np.errstate(over="ignore"):
            X[:, columns] *= scale
        said.append(f"scale {scale:g}")
    if rng.random() < 0.1:
        X += float(10.0 ** rng.integers(2, 9))
        said.append("offset")
    if rng.random() < 0.02:
        X[:, rng.integers(d)] = rng.choice([np.nan, np.inf])
        said.append("no numbers")
    return X, ", ".join(said)


def layout(X: np.ndarray, rng: Random) -> tuple[np.ndarray, str]:
    """Return rows as float32, in Fortran order, read-only or as they are."""
    kind = rng.choice(["plain", "plain", "float32", "fortran", "readonly", "strided"])
    with np.errstate(over="ignore"):
        small = X.astype(np.float32)
    if kind == "float32" and np.all(np.isfinite(small)):
        return small, "float32"
    if kind == "fortran":
        return np.asfortranarray(X), "fortran"
    if kind == "strided":
        return np.repeat(X, 2, axis=0)[::2], "strided"
    if kind == "readonly":
        X = X.copy()
        X.flags.writeable = False
        return X, "readonly"
    return X, "plain"


COLUMNS: dict[str, Callable[[Random, int], Any]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.uniform(0.0, 9.0, n),
    "tied": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "int": lambda rng, n: rng.integers(-5, 2**62, n),
    "constant": lambda rng, n: np.full(n, 3.5),
    "rare": lambda rng, n: np.where(np.arange(n) == rng.integers(n), 1.0, 0.0),
    "empty": lambda rng, n: np.full(n, np.nan),
    "no text": lambda rng, n: np.full(n, None),
    "holes": lambda rng, n: np.where(rng.random(n) < rng.random(), np.nan, rng.normal(size=n)),
    "huge": lambda rng, n: 1.7e308 * rng.uniform(-1.0, 1.0, n),
    "tiny": lambda rng, n: 1e-300 * rng.normal(size=n),
    "large": lambda rng, n: 1e12 + rng.normal(size=n),
    "heavy": lambda rng, n: np.exp(20.0 * rng.normal(size=n)),
    "infinite": lambda rng, n: np.where(rng.random(n) < 0.1, np.inf, rng.normal(size=n)),
    "bool": lambda rng, n: rng.random(n) < 0.5,
    "id": lambda rng, n: np.array([f"id-{i}" for i in rng.permutation(n)], dtype=object),
    "town": lambda rng, n: rng.choice(np.array(["Köln", "Brest", "", " Brest"], dtype=object), n),
    "towns": lambda rng, n: np.array([f"town {i}" for i in rng.integers(0, 20, n)], dtype=object),
    "maybe": lambda rng, n: rng.choice(np.array(["yes", "no", None], dtype=object), n),
    "prices": lambda rng, n: np.array([f"{i:,} €" for i in rng.integers(0, 9**6, n)], dtype=object),
    "percent": lambda rng, n: np.array([f"{i} %" for i in rng.integers(0, 99, n)], dtype=object),
    "words": lambda rng, n: np.array(
        [" ".join(rng.choice(["ice", "salt", "tea", "oil"], 9)) for _ in range(n)], dtype=object
    ),
    "mixed": lambda rng, n: np.array([i if i % 3 else f"{i}x" for i in range(n)], dtype=object),
    "dates": lambda rng, n: DAY + rng.integers(0, 9000, n).astype("timedelta64[h]"),
    "gone": lambda rng, n: np.full(n, np.datetime64("NaT", "ns")),
    "days": lambda rng, n: (
        (DAY + rng.integers(0, 400, n).astype("timedelta64[D]"))
        .astype("datetime64[D]")
        .astype(str)
        .astype(object)
    ),
    "hours": lambda rng, n: rng.integers(0, 9000, n).astype("timedelta64[h]").astype("m8[ns]"),
}
DAY = np.datetime64("2020-02-28", "ns")


def raw_table(rng: Random, n: int) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return columns of many kinds, new rows that also have what the first have not, and a text."""
    usual = ["normal", "normal", "town", "holes"]
    chosen = [pick(rng, *COLUMNS, *usual * 5) for _ in range(rng.integers(1, 8))]
    if rng.random() < 0.04:
        chosen = ["normal"] * 200 + chosen
    columns = {f"{kind} {i}": COLUMNS[kind](rng, n) for i, kind in enumerate(chosen)}
    new = {name: COLUMNS[name.rsplit(" ", 1)[0]](rng, 12) for name in columns}
    for name, values in new.items():
        if values.dtype == object:
            strict = name.startswith(("days", "mixed", "prices", "percent"))  # dates and numbers
            values[:3] = None if strict else [None, "never seen", ""]
        elif name.startswith("infinite"):
            values[:] = 1.0
        elif values.dtype == float:
            values[:3] = [np.nan, 1e300, -0.0]
    text = ", ".join(chosen if len(chosen) < 20 else ["wide", *chosen[200:]])
    return columns, new, text


def container(columns: dict[str, Any], new: dict[str, Any], rng: Random) -> tuple[Any, Any, str]:
    """Return old and new rows as a data frame, a mapping, a table of Arrow or an array."""
    kind = pick(rng, "pandas", "pandas", "mapping", "arrow", "array")
    if kind == "mapping":
        return columns, new, kind
    if kind == "array":
        return (
            *(np.column_stack([*map(as_objects, one.values())]) for one in (columns, new)),
            kind,
        )
    import pandas as pd

    frames = [pd.DataFrame(one) for one in (columns, new)]
    if rng.random() < 0.3:
        for name in columns:
            if name.startswith(("town", "maybe")):
                frames[0][name] = frames[0][name].astype("category")
        kind += " with categories"
    if kind.startswith("arrow"):
        import pyarrow as pa

        try:
            return (*(pa.Table.from_pandas(one, preserve_index=False) for one in frames), kind)
        except pa.ArrowException:  # a column of numbers and text
            return *frames, "pandas"
    return *frames, kind


def as_objects(values: np.ndarray) -> np.ndarray:
    return values.astype(object) if values.dtype.kind not in "OmM" else np.array([*values], object)


def some_rows(X: Any, number: int) -> Any:
    """Return the first rows of a table of any kind."""
    if isinstance(X, dict):
        return {name: values[:number] for name, values in X.items()}
    return X[:number]


def class_labels(X: np.ndarray, rng: Random) -> tuple[np.ndarray, str]:
    """Return labels of one to six classes, of several types."""
    n = len(X)
    q = int(rng.choice([1, 2, 2, 2, 3, 3, 4, 6]))
    with np.errstate(all="ignore"):
        score = X[:, 0] / max(float(np.abs(X[:, 0]).max()), 1e-300) + 0.2 * rng.normal(size=n)
    codes = np.argsort(np.argsort(score)) * q // n
    if rng.random() < 0.2:
        codes = rng.integers(0, q, n)
    if rng.random() < 0.15 and n > 3:  # a class of one row
        codes[:] = np.minimum(codes, 1)
        codes[rng.integers(n)] = 2
    kind = rng.choice(["int", "text", "object", "bool", "float", "negative"])
    names = np.array(["ja", "nee", "=x", "é", "", "long name of a class"])
    made: dict[str, Callable[[], np.ndarray]] = {
        "int": lambda: codes,
        "text": lambda: names[codes],
        "object": lambda: names[codes].astype(object),
        "bool": lambda: codes > 0,
        "float": lambda: codes.astype(float),
        "negative": lambda: -5 * codes,
    }
    return made[kind](), f"{q} classes of {kind}"


def numbers(X: np.ndarray, rng: Random) -> tuple[np.ndarray, str]:
    """Return targets, one or several."""
    n = len(X)
    k = int(rng.choice([1, 1, 1, 2, 3]))
    with np.errstate(all="ignore"):
        base = X[:, :1] / max(float(np.abs(X[:, 0]).max()), 1e-300)
    Y = np.sin(3 * base) + 0.2 * rng.normal(size=(n, k))
    said = [f"{k} targets"]
    if rng.random() < 0.1:
        Y[:] = rng.choice([0.0, 1.0, 1e8])
        said.append("constant y")
    if rng.random() < 0.2:
        scale = float(10.0 ** rng.choice([-200, -50, -8, 8, 50, 200, 307]))
        with np.errstate(over="ignore"):
            Y *= scale
        said.append(f"y scale {scale:g}")
    if rng.random() < 0.1:
        Y += 1e6
        said.append("y offset")
    if rng.random() < 0.1:
        Y[rng.integers(n)] += 1e4
        said.append("outlier")
    if rng.random() < 0.03:
        Y[rng.integers(n)] = rng.choice([np.nan, np.inf])
        said.append("missing y")
    return (Y[:, 0] if k == 1 and rng.random() < 0.8 else Y), ", ".join(said)


def weights(n: int, rng: Random) -> tuple[np.ndarray | None, str]:
    kind = rng.choice(["none", "none", "none", "uniform", "zeros", "decades", "large", "counts"])
    if kind == "none":
        return None, "no weights"
    w = {
        "uniform": rng.uniform(0.1, 2.0, n),
        "zeros": rng.integers(0, 2, n) * 1.0,
        "decades": 10.0 ** rng.uniform(-9, 9, n),
        "large": np.full(n, 1e9),
        "counts": rng.integers(0, 4, n) * 1.0,
    }[str(kind)]
    return w, f"weights {kind}"


# -- options ---------------------------------------------------------------------------------------


def pick(rng: Random, *values: Any) -> Any:
    return values[rng.integers(len(values))]


def some(rng: Random, options: dict[str, Callable[[], Any]], share: float) -> dict[str, Any]:
    """Return a few of the options."""
    return {name: make() for name, make in options.items() if rng.random() < share}


def number_C(rng: Random) -> float:
    usual = pick(rng, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6, 1e10, 1e-10)
    return float(pick(rng, 1e300, 1e-300) if rng.random() < 0.03 else usual)


def number_gamma(rng: Random, d: int) -> Any:
    one = float(pick(rng, 1e-8, 1e-2, 0.3, 1.0, 10.0, 1e6, 1e-30, 1e30))
    return pick(rng, one, one, "scale", "auto", np.full(d, 0.5))


def kernel(rng: Random, names: tuple[str, ...]) -> Any:
    return pick(rng, *names, Matern(nu=2.5), RBF(0.5))


NAMES = ("rbf", "rbf", "rbf", "linear", "poly", "laplacian", "matern", "exponential")
FAST = GridSearch(C=[0.1, 10.0], gamma=[0.1, 1.0])


def search(rng: Random) -> Any:
    slow = pick(rng, "path", "grid", PathSearch(n_C=5), CoupledAnnealing(2, 4, 3), "shrinking")
    return slow if rng.random() < 0.12 else FAST


def splits(rng: Random, *more: Any) -> Any:
    return pick(rng, 2, 3, 3, 5, "loo", KFold(2), *more)


def any_scoring(rng: Random) -> str:
    return pick(rng, *get_scorer_names())


def scoring_of_classes(rng: Random) -> Any:
    usual = pick(rng, None, "accuracy", "f1_macro", "roc_auc", "press", "gcv", "evidence", "rk")
    return any_scoring(rng) if rng.random() < 0.2 else usual


def scoring_of_numbers(rng: Random) -> Any:
    usual = pick(rng, None, "r2", "neg_median_absolute_error", "press", "gcv", "evidence", "rk")
    return any_scoring(rng) if rng.random() < 0.2 else usual


def class_options(rng: Random, **more: Any) -> dict[str, Any]:
    made = {
        "code": lambda: pick(rng, "auto", "ovo", "ova", "moc", "ecoc"),
        "decoding": lambda: pick(rng, "hamming", "loss"),
        "calibration": lambda: pick(rng, "sigmoid", "isotonic", None),
    }
    coding = Coding(**some(rng, made, 0.25), **some(rng, more, 0.15))
    options = some(rng, {"class_weight": lambda: pick(rng, "balanced", {0: 3.0})}, 0.25)
    return {"multiclass": coding, **options}


def targets_of(rng: Random) -> Any:
    return lambda: pick(rng, "fisher", (2.0, 0.5))


def poly(rng: Random) -> Polynomial:
    return Polynomial(degree=pick(rng, 1, 2, 5), coef0=pick(rng, 0.0, 1.0, 5.0))


def tuned(rng: Random) -> tuple[str, ...]:
    return pick(rng, (), (), ("C",), ("gamma",), ("C", "gamma"))


def dual(rng: Random, d: int, classifies: bool) -> Any:
    options = {"C": number_C(rng), "gamma": number_gamma(rng, d), "kernel": kernel(rng, NAMES)}
    options |= {"kernel": poly(rng)} if options["kernel"] == "poly" else {}
    options |= some(
        rng,
        {
            "solver": lambda: pick(rng, "cholesky", "cg", SMO(max_iter=1000), "circulant"),
            "reduction": lambda: pick(rng, "prune", "l0", Prune(step=0.3)),
            "fit_intercept": lambda: False,
        },
        0.2,
    )
    options |= {name: "cv" for name in tuned(rng)} | {"cv": splits(rng), "search": search(rng)}
    if rng.random() < 0.2:
        options["search"] = replace(make_search(options["search"]), per_output=True)
    if classifies:
        options |= class_options(rng, targets=targets_of(rng))
        options |= some(rng, {"scoring": lambda: scoring_of_classes(rng)}, 0.3)
        return LSSVC(**options)
    options |= some(rng, {"loss": lambda: pick(rng, "huber", "absolute", "weighted")}, 0.2)
    options |= some(rng, {"scoring": lambda: scoring_of_numbers(rng)}, 0.3)
    return LSSVR(**options)


def fixed(rng: Random, d: int, classifies: bool) -> Any:
    options = {"C": number_C(rng), "gamma": number_gamma(rng, d), "kernel": kernel(rng, NAMES)}
    options |= {"kernel": poly(rng)} if options["kernel"] == "poly" else {}
    options |= {"n_prototypes": pick(rng, 1, 3, 10, 30, "auto", "auto")}
    options |= some(
        rng,
        {
            "selection": lambda: pick(rng, "random", "kmeans", "rpcholesky", "renyi"),
            "solver": lambda: pick(rng, "cholesky", "eigen", "tridiagonal", "pcg", PCG()),
            "reduction": lambda: pick(rng, "spfs", "ssd", "sv-l0", "sd", FixedSizeL0(size=3)),
            "fit_intercept": lambda: pick(rng, False, "penalised"),
        },
        0.2,
    )
    more = (0.3, PositionFolds(3), PositionHoldout(0.3))
    options |= {name: "cv" for name in tuned(rng)} | {"cv": splits(rng, *more)}
    options |= {"search": search(rng), "random_state": 0}
    if classifies:
        threshold = {"threshold": lambda: pick(rng, "cv", "zero")}
        options |= class_options(rng, targets=targets_of(rng), **threshold)
        options |= some(rng, {"scoring": lambda: scoring_of_classes(rng)}, 0.3)
        return FixedSizeLSSVC(**options)
    options |= some(rng, {"loss": lambda: pick(rng, "huber", "absolute", "weighted")}, 0.2)
    options |= some(rng, {"scoring": lambda: scoring_of_numbers(rng)}, 0.3)
    return FixedSizeLSSVR(**options)


def greedy(rng: Random, d: int, classifies: bool) -> Any:
    options = {"C": number_C(rng), "gamma": number_gamma(rng, d), "kernel": kernel(rng, NAMES)}
    options |= some(
        rng,
        {
            "criterion": lambda: pick(rng, "kmp", "sggp"),
            "candidates": lambda: pick(rng, 1, 5, 146),
            "epsilon": lambda: pick(rng, 0.0, 0.3),
            "max_support": lambda: pick(rng, 1, 5),
            "prefit": lambda: True,
            "fit_intercept": lambda: False,
            "validation_fraction": lambda: pick(rng, 0.2, 0.5),
        },
        0.25,
    )
    options |= {"random_state": 0, "cv": splits(rng)}
    if rng.random() < 0.3:  # every fold grows its bases anew
        options |= {name: "cv" for name in tuned(rng)}
    return GreedyLSSVC(**options, **class_options(rng)) if classifies else GreedyLSSVR(**options)


def table(rng: Random, n: int, classifies: bool) -> Any:
    presets = ("fast",) if n > 200 else ("fast", "fast", "fast", "balanced", "best")
    limit = pick(rng, 1e-3, 0.1, 1.0, 3.0) if n > 200 or rng.random() < 0.3 else None
    options = {"preset": pick(rng, *presets), "time_limit": limit}
    options |= some(
        rng,
        {
            "scoring": lambda: any_scoring(rng),
            "scaling": lambda: pick(rng, "standardised", "quantiles"),
            "kernel": lambda: pick(rng, "rbf", "laplacian", "exponential"),
            "metric": lambda: pick(rng, None, "diagonal", "full"),
            "leaf_size": lambda: pick(rng, 10, 50),
            "n_trees": lambda: pick(rng, 1, 2),
            "n_prototypes": lambda: pick(rng, 0, 20),
            "drop": lambda: False,
            "memory_budget": lambda: pick(rng, "1 MB", "1 GB"),
        },
        0.2,
    )
    if classifies:
        weights = {"class_weight": lambda: pick(rng, "balanced", {0: 3.0})}
        return LSSVMClassifier(**options, **some(rng, weights, 0.25))
    logs = {"target_scale": lambda: pick(rng, "auto", "log")}
    return LSSVMRegressor(**options, **some(rng, logs, 0.1))


def series(rng: Random) -> Any:
    inner = pick(rng, None, LSSVR(C=10.0, gamma=0.1), FixedSizeLSSVR(5, C=10.0, gamma=0.1))
    options = some(
        rng,
        {
            "differencing": lambda: 1,
            "horizon": lambda: pick(rng, 1, 3),
            "n_origins": lambda: 3,
            "n_paths": lambda: 5,
            "validation": lambda: pick(rng, "one-step", "free-run"),
        },
        0.3,
    )
    return NARX(estimator=inner, lags=int(rng.integers(1, 9)), random_state=0, **options)


# -- one configuration -----------------------------------------------------------------------------


@dataclass
class Case:
    """An estimator with what it is fitted to."""

    model: Any
    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    said: str
    groups: np.ndarray | None = None
    new: Any = None  # rows as the fit has not seen them
    steps: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        text = " ".join(str(self.model).split())
        return f"{text} | {self.said} | at {self.steps[-1] if self.steps else 'start'}"

    @property
    def classifies(self) -> bool:
        return hasattr(self.model, "classes_")


def draw(seed: int, number: int) -> Case:
    """Return the configuration of a number."""
    rng = np.random.default_rng([seed, number])
    family = pick(rng, *(dual,) * 10, *(fixed,) * 10, *(greedy,) * 6, series)
    if number % 6 == 5:
        return _draw_table(rng)
    if family is series:
        return _draw_series(rng)
    X, said = features(rng)
    classifies = bool(rng.integers(2))
    y, about = class_labels(X, rng) if classifies else numbers(X, rng)
    weight, weighed = weights(len(X), rng)
    model = family(rng, X.shape[1], classifies)
    X, stored = layout(X, rng)
    how = ""
    if family is dual and rng.random() < 0.05:
        model.set_params(kernel="precomputed", gamma="scale")
        with np.errstate(over="ignore", invalid="ignore"):
            X, how = np.nan_to_num(RBF(0.3)(*[np.asarray(X, float)] * 2)), "precomputed"
    elif family is fixed and rng.random() < 0.1:
        how = "scan"
    groups = None
    if how != "scan" and rng.random() < 0.1:
        groups, how = rng.integers(0, rng.integers(1, 8), len(X)), f"{how} groups"
    return Case(model, X, y, weight, ", ".join([said, about, weighed, stored, how]), groups)


def _draw_table(rng: Random) -> Case:
    n = int(pick(rng, 300, 2000) if rng.random() < 0.04 else rng.integers(1, 81))
    columns, new, said = raw_table(rng, n)
    X = rng.normal(size=(n, 1))
    for name, values in columns.items():  # the first numbers have to do with the targets
        if isinstance(values, np.ndarray) and values.dtype == float and np.isfinite(values).all():
            X, said = values[:, None], f"{said} (y by {name!r})"
            break
    classifies = bool(rng.integers(2))
    y, about = class_labels(X, rng) if classifies else numbers(X, rng)
    if classifies and rng.random() < 0.05:
        y = y.astype(object)
        y[rng.integers(n)] = pick(rng, None, np.nan)
        about += ", missing labels"
    weight, weighed = weights(n, rng)
    groups = rng.integers(0, rng.integers(1, 8), n) if rng.random() < 0.15 else None
    X, new, how = container(columns, new, rng)
    how += "" if groups is None else " groups"
    said = ", ".join([f"n={n}: {said}", about, weighed, how])
    return Case(table(rng, n, classifies), X, y, weight, said, groups, new)


def _draw_series(rng: Random) -> Case:
    n = int(rng.integers(1, 61))
    y = np.sin(0.4 * np.arange(n)) + 0.05 * rng.normal(size=n)
    if rng.random() < 0.2:
        y[:] = y[:1]
    y = y * float(pick(rng, 1.0, 1.0, 1e-8, 1e8, 1e200))
    model, inputs, said = series(rng), None, f"series of {n}"
    if rng.random() < 0.3:
        inputs = rng.normal(size=(n + 3, 2)) * float(pick(rng, 0.0, 1.0, 1e8, 1e200))
        model.exog_lags, said = int(rng.integers(3)), f"{said} with inputs"
    if rng.random() < 0.3:
        import pandas as pd

        days = pd.date_range("2020-02-28", periods=n + 3, freq=pick(rng, "D", "ME", "B", "h"))
        order = rng.permutation(n) if rng.random() < 0.2 else np.arange(n)
        y, said = pd.Series(y[order], days[:n][order]), f"{said} with dates"
        y = y.to_frame() if rng.random() < 0.3 else y
        inputs = None if inputs is None else pd.DataFrame(inputs, days)
    known, new = (None, None) if inputs is None else (inputs[:n], inputs[n:])
    return Case(model, known, y, None, said, None, new)


def allowed(error: BaseException) -> bool:
    """Return whether an error is one that a caller is meant to see."""
    if isinstance(error, (LSSVMError, NotFittedError)):
        return len(str(error)) > 20
    if not isinstance(error, (ValueError, TypeError)):
        return False
    frame = traceback.extract_tb(error.__traceback__)[
        -1
    ]  # raised on purpose, by us or scikit-learn
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    # Checks of inputs by scikit-learn are ours, and a splitter of its is the caller's.
    folders = (
        "lssvm",
        os.path.join("sklearn", "utils"),
        os.path.join("sklearn", "model_selection"),
    )
    ours = any(os.sep + folder + os.sep in frame.filename for folder in folders)
    return ours and line.startswith("raise")


def finite(values: Any, what: str) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
        raise Fault(f"{what} is not finite: {array.ravel()[~np.isfinite(array.ravel())][:3]}")
    return array


def answers(case: Case, model: Any, X: Any) -> dict[str, np.ndarray]:
    """Return all that a fitted model says of rows."""
    found = {}
    for method in ("decision_function", "predict", "predict_proba"):
        if hasattr(model, method):
            case.steps.append(method)
            try:
                found[method] = finite(getattr(model, method)(X), method)
            except LSSVMError as error:
                if method != "predict_proba":  # which needs calibration, and rows for it
                    raise Fault(f"{method} of a fitted model raised {error}") from error
    if "predict_proba" in found and not np.allclose(found["predict_proba"].sum(axis=1), 1.0):
        raise Fault("probabilities do not sum to one")
    if hasattr(model, "classes_") and not np.all(np.isin(found["predict"], model.classes_)):
        raise Fault("a label that is no class was predicted")
    if isinstance(model, LSSVMRegressor):
        case.steps.append("predict_quantile")
        ends = model.predict_quantile(X, [0.2, 0.8])
        if np.any(np.isnan(ends)) or np.any(ends[..., 0] > ends[..., 1]):
            raise Fault("quantiles are not in order")
    if "predict_proba" in found:
        case.steps.append("predict_set")
        if not model.predict_set(X, 0.8).any(axis=1).all():
            raise Fault("a set of classes is empty")
    if hasattr(model, "predict_interval"):
        case.steps.append("predict_interval")
        try:
            low, high = np.moveaxis(model.predict_interval(X, coverage=0.8), -1, 0)
        except LSSVMError:  # too few rows to calibrate
            return found
        if np.any(np.isnan(low)) or np.any(np.isnan(high)) or np.any(low > high):
            raise Fault("an interval is no interval")
    return found


def outputs_of(found: dict[str, np.ndarray]) -> np.ndarray:
    return np.asarray(found.get("decision_function", found["predict"]))


def before_votes(model: Any, X: Any, found: dict[str, np.ndarray]) -> np.ndarray:
    """Return outputs that do not jump where the sum of what cancels out is rounding."""
    if isinstance(model, (LSSVC, FixedSizeLSSVC, GreedyLSSVC)) and not model.record_.prepared:
        return np.asarray(model.record_.outputs({"none": X}))
    return outputs_of(found)


def check_equal_rows(case: Case, model: Any) -> None:
    """Rows that are equal have equal answers, wherever they stand among others."""
    X = np.asarray(case.X)
    twice = np.concatenate([X, X[::-1]])
    case.steps.append("equal rows")
    found = before_votes(model, twice, answers(case, model, twice))
    n, scale = len(X), float(np.max(np.abs(found), initial=0.0))
    eps = float(np.finfo(np.float32 if X.dtype == np.float32 else np.float64).eps)
    if found.dtype.kind == "f" and not np.allclose(
        found[:n], found[n:][::-1], rtol=0, atol=1e4 * eps * coefficient_scale(model, scale)
    ):
        raise Fault(f"equal rows differ by {np.abs(found[:n] - found[n:][::-1]).max():.2e}")


def coefficient_scale(model: Any, scale: float) -> float:
    """Return how large the terms of a sum are, of which an output is what is left."""
    coef = getattr(model, "dual_coef_", None)
    if coef is None:
        return scale
    largest = float(np.sum(np.abs(np.asarray(coef, dtype=float))))
    return max(scale, largest * kernel_bound(model))


def kernel_bound(model: Any) -> float:
    vectors = getattr(model, "support_vectors_", None)
    kernel = getattr(model, "kernel", "rbf")
    bounded = kernel not in ("linear", "poly") and not isinstance(kernel, Polynomial)
    if bounded or vectors is None:
        return 1.0
    return max(1.0, float(np.max(np.abs(model.record_.expansion.kernel(vectors, vectors)))))


def check_file(case: Case, model: Any, X: Any, folder: str) -> None:
    """A model that went through a file says the same, bit for bit."""
    case.steps.append("save and load")
    path = os.path.join(folder, "m.lssvm")
    save(model, path)
    before, after = answers(case, model, X), answers(case, load(path), X)
    for name, values in before.items():
        if not np.array_equal(values, after[name]):
            raise Fault(f"{name} changed in a file")


def well_conditioned(case: Case, model: Any) -> bool:
    """Return whether rounding alone, and no draw of a random number, may differ with the order."""
    if not isinstance(model, (LSSVC, LSSVR)):
        return False
    options = model.get_params()
    plain = options["kernel"] in ("rbf", "laplacian", "matern")
    fixed_numbers = isinstance(options["C"], float) and 1e-3 <= options["C"] <= 1e3
    gamma = options["gamma"]
    fixed_numbers &= not isinstance(gamma, float) or 1e-3 <= gamma <= 1e3
    modest = not any(
        word in case.said for word in ("scale", "offset", "decades", "large", "precomputed")
    )
    exact = options["solver"] in ("auto", "cholesky")
    tuned_here = "cv" in (options["C"], options["gamma"] if np.ndim(options["gamma"]) == 0 else 0)
    squared = options.get("loss", "squared") == "squared" and options["reduction"] is None
    return plain and fixed_numbers and modest and exact and squared and not tuned_here


def check_order(case: Case, model: Any, found: dict[str, np.ndarray], rng: Random) -> None:
    """The rows in another order give the same model."""
    order = rng.permutation(len(case.y))
    case.steps.append("another order")
    weight = None if case.weight is None else case.weight[order]
    options = {} if case.groups is None else {"groups": case.groups[order]}
    other = clone(case.model).fit(case.X[order], case.y[order], sample_weight=weight, **options)
    again = answers(case, other, case.X)
    one, two = before_votes(model, case.X, found), before_votes(other, case.X, again)
    scale = float(np.max(np.abs(one), initial=0.0)) if one.dtype.kind == "f" else 0.0
    scale = coefficient_scale(model, scale) if scale else scale  # what cancels out is rounding
    eps = 1e-3 if case.X.dtype == np.float32 else 1e-6
    same = np.allclose(one, two, rtol=0, atol=eps * scale) if scale else np.array_equal(one, two)
    if not same:
        raise Fault("the order of the rows changes the model")


def try_case(case: Case, folder: str, rng: Random) -> str:
    """Return "answered" or "refused"; raise what must not happen."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in DOCUMENTED:
            warnings.simplefilter("ignore", kind)
        warnings.filterwarnings("ignore", "The groups parameter is ignored by KFold")  # it is
        warnings.filterwarnings("ignore", "y_pred contains classes|A single label was")
        warnings.filterwarnings("ignore", "Clustering metrics")  # scores that are not for numbers
        warnings.filterwarnings("ignore", "invalid value encountered in cast", module="sklearn")
        case.steps.append("fit")
        try:
            model = _fitted(case)
        except Exception as error:
            if allowed(error):
                return "refused"
            raise
        if isinstance(model, NARX):
            case.steps.append("forecast")
            finite(model.forecast(3, case.new), "forecast")
            return "answered"
        found = answers(case, model, case.X)
        if case.new is not None:
            check_table(case, model, found, folder, rng)
            return "answered"
        if str(case.model.get_params().get("kernel")) != "precomputed":
            check_equal_rows(case, model)
        check_file(case, model, case.X, folder)
        if "scan" not in case.said and well_conditioned(case, model):
            check_order(case, model, found, rng)
        return "answered"


def check_table(
    case: Case, model: Any, found: dict[str, np.ndarray], folder: str, rng: Random
) -> None:
    """A model for tables: rows alone, new rows, files, updates, small models, explanations."""
    case.steps.append("one row")
    one = answers(case, model, some_rows(case.X, 1))
    for name, values in found.items():
        if values.dtype.kind == "f" and not np.allclose(
            one[name], values[:1], rtol=1e-6, atol=1e-9 * max(1.0, np.abs(values).max())
        ):
            raise Fault(f"{name} of a row alone is {one[name]} and not {values[:1]}")
    answers(case, model, case.new)
    if rng.random() < 0.5:
        check_file(case, model, case.new, folder)
    what = rng.random()
    few, targets = some_rows(case.X, 3), case.y[:3]
    case.steps.append("more")
    try:
        if what < 0.1:
            explained = model.explain(few)
            finite(explained.values, "explain")
        elif what < 0.2:
            answers(case, model.compress(3), case.new)
        elif what < 0.4:
            weight = None if case.weight is None else case.weight[:3]
            model.partial_fit(few, targets, sample_weight=weight)
            answers(case, model, case.new)
            model.forget(few, targets, sample_weight=weight)
            answers(case, model, case.new)
    except Exception as error:
        if not allowed(error):
            raise


def _fitted(case: Case) -> Any:
    if isinstance(case.model, NARX):
        return clone(case.model).fit(case.y, case.X)
    if "scan" in case.said:
        data = scan(np.asarray(case.X), target=case.y, weight=case.weight)
        return clone(case.model).fit(data)
    options = {} if case.groups is None else {"groups": case.groups}
    model, start = clone(case.model), time.process_time()
    model.fit(case.X, case.y, sample_weight=case.weight, **options)
    limit, took = getattr(model, "time_limit", None), time.process_time() - start
    if limit is not None and took > (1.0 + OVER[0]) * limit + OVER[1]:
        raise Fault(f"computed for {took:.1f} seconds, where the limit is {limit}")
    return model


@dataclass
class Tried:
    """What became of the configurations, and the failures by kind."""

    counts: Counter[str]
    faults: dict[str, list[tuple[int, str]]]


def kind_of(error: BaseException) -> str:
    """Return what is the same in failures of one cause."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if os.sep + "lssvm" + os.sep in f.filename]
    place = f"{os.path.basename(own[-1].filename)}:{own[-1].lineno}" if own else ""
    text = str(error).splitlines()[0] if str(error) else ""
    return f"{type(error).__name__} at {place}: {''.join(c for c in text if not c.isdigit())[:120]}"


def run(seed: int, seconds: float, count: int | None = None, start: int = 0) -> Tried:
    """Try configurations until the time is over, or as many as are asked for."""
    tried, end, number = Tried(Counter(), {}), time.monotonic() + seconds, start
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end and number - start != count:
            case = draw(seed, number)
            try:
                with time_limit(LONGEST if case.new is None else LONGEST_TABLE):
                    result = try_case(case, folder, np.random.default_rng([seed, number, 1]))
                tried.counts[result] += 1
            except Exception as error:
                tried.counts["faulty"] += 1
                tried.faults.setdefault(kind_of(error), []).append((number, str(case)))
            number += 1
    return tried


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--count", type=int)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    if options.only is not None:
        case = draw(options.seed, options.only)
        print(case)
        with tempfile.TemporaryDirectory() as folder:
            random = np.random.default_rng([options.seed, options.only, 1])
            print(try_case(case, folder, random))
        return
    tried = run(options.seed, options.seconds, options.count, options.start)
    print(f"seed {options.seed}: {tried.counts.total()} configurations, {dict(tried.counts)}")
    for kind, cases in tried.faults.items():
        print(f"{len(cases)} x {kind}\n    number {cases[0][0]}: {cases[0][1][:400]}")
    if tried.faults:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
