"""Run a contract case on an engine and read numbers from the fitted model.

Everything goes through public names: constructors, `fit`, methods and fitted attributes.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from tests.contracts.cases import Case
from tests.contracts.inputs import Rows, rows

from lssvm import load, save, scan
from lssvm.estimators import table_fit

FLOOR = 1e-3  # of the scale that numbers are compared by: an intercept may be next to nothing
_LONG = 16  # arrays of more entries are summarised
_ENTRIES = 6  # that a summary holds

_PLAIN = ("C_", "gamma_", "threshold_", "intercept_", "best_score_", "feature_relevance_")
_EXACT = ("n_prototypes_", "n_evaluations_", "n_reweightings_", "solver_", "horizon_")


# -- fitting -----------------------------------------------------------------------------------


@contextmanager
def scheduler(engine: str) -> Iterator[None]:
    """Let Dask compute in this thread, with the same memory on every machine."""
    if engine != "dask":
        yield
        return
    import dask

    with dask.config.set(scheduler="synchronous", num_workers=1):
        yield


@contextmanager
def limit_of_tables(many: int | None) -> Iterator[None]:
    """Let tables of so many rows be fitted by a sample; the one name here that is not public."""
    before = {name: getattr(table_fit, name) for name in ("MANY", "SAMPLE")}
    if many is not None:
        table_fit.MANY, table_fit.SAMPLE = many, many - 100
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(table_fit, name, value)


def as_given(engine: str, array: Any) -> Any:
    """Return an array of the host as the engine is given it."""
    if array is None or engine in ("host", "scan"):
        return array
    if engine == "dask":
        import dask.array as da

        return da.from_array(array, chunks=(_chunk(len(array)), *array.shape[1:]))
    if engine == "strict":
        import array_api_strict as xp
    else:
        import torch as xp
    return xp.asarray(array)


def _chunk(n: int) -> int:
    return max(40, n // 3)


def learn(model: Any, method: str, engine: str, X: Any, y: Any, weight: Any) -> Any:
    """Call `fit`, `partial_fit` or `forget` with rows as the engine has them."""
    if hasattr(X, "columns"):  # a data frame, whose columns are prepared
        named = X.assign(target=y) if weight is None else X.assign(target=y, weight=weight)
        role = {} if weight is None else {"weight": "weight"}
        return getattr(model, method)(scan(named, target="target", **role))
    given = [as_given(engine, array) for array in (X, y, weight)]
    if engine == "scan":
        return getattr(model, method)(scan(X, target=y, weight=weight, prepare=False))
    if weight is None:
        return getattr(model, method)(given[0], given[1])
    return getattr(model, method)(given[0], given[1], sample_weight=given[2])


def learn_table(case: Case, model: Any, method: str, engine: str, part: slice) -> Any:
    """Call `fit`, `partial_fit` or `forget` of a model for tables."""
    data, learning = rows(case.data), getattr(model, method)
    X, y = data.X[part], data.y[part]
    weight = data.weight[part] if case.weights else None
    if engine == "scan" and hasattr(X, "columns"):
        named = X.assign(target=y) if weight is None else X.assign(target=y, weight=weight)
        role = {} if weight is None else {"weight": "weight"}
        return learning(scan(named, target="target", **role))
    if engine == "scan":
        return learning(scan(X, target=y, weight=weight))
    roles = {} if weight is None else {"sample_weight": weight}
    if case.grouped and method == "fit":
        roles["groups"] = data.groups[part]
    if engine == "dask":
        X, y, *_ = (as_given(engine, array) for array in (X, y))
        roles = {name: as_given(engine, array) for name, array in roles.items()}
    return learning(X, y, **roles)


def fitted(case: Case, engine: str) -> Any:
    """Return the model of a case, fitted on an engine."""
    model, data = case.make(), rows(case.data)
    if engine in ("strict", "torch"):
        model.set_params(device="cpu")
    if case.family == "narx":
        return model.fit(data.y) if data.X is None else model.fit(data.y, data.X)
    for method, start, stop in (("fit", 0, case.rows), *case.then):
        part = slice(start, stop)
        if case.family == "table":
            with limit_of_tables(case.many):
                learn_table(case, model, method, engine, part)
            continue
        X = data.X[part, part] if case.square else data.X[part]
        weight = data.weight[part] if case.weights else None
        learn(model, method, engine, X, data.y[part], weight)
    if case.compressed:
        return model.compress(case.compressed)
    return model.truncate(case.truncate) if case.truncate else model


def run(case: Case, engine: str) -> dict[str, Any]:
    """Return what is recorded of a case."""
    with warnings.catch_warnings(record=True) as caught, scheduler(engine):
        warnings.simplefilter("always")
        model = fitted(case, engine)
        record = read(model, case, engine, rows(case.data))
    told = sorted({w.category.__name__ for w in caught if w.category is not ResourceWarning})
    return {**record, "warnings": told} if told else record


# -- reading -----------------------------------------------------------------------------------


def host(values: Any) -> Any:
    """Return an array of the host."""
    return np.asarray(values.compute() if hasattr(values, "compute") else values)


def summary(values: Any) -> Any:
    """Return numbers as they are recorded: a float, a short array, or what tells a long one."""
    array = host(values)
    if array.ndim == 0:
        return float(array)
    array = array.astype(float)
    flat = array.ravel()
    if array.size <= _LONG:
        return {"shape": list(array.shape), "all": flat.tolist()}
    some = np.linspace(0, array.size - 1, _ENTRIES).astype(int)
    return {
        "shape": list(array.shape),
        "some": flat[some].tolist(),
        "sum": math.fsum(flat),
        "norm": math.sqrt(math.fsum(flat**2)),
        "largest": float(np.abs(flat).max()),
    }


def exact(values: Any) -> Any:
    """Return whole numbers: all of a few, else their count, the first ones and a hash."""
    array = host(values)
    if array.ndim == 0:
        return array.item()
    listed = array.ravel().tolist()
    if len(listed) <= _LONG:
        return listed
    told = hashlib.sha256(repr(listed).encode()).hexdigest()[:16]
    return {"count": len(listed), "first": listed[:4], "hash": told}


def _search(results: Any) -> Any:
    """Return what is recorded of `cv_results_`, whatever the order of the evaluations."""
    if isinstance(results, list):  # tuned separately
        return {str(i): _search(one) for i, one in enumerate(results)}
    scores = np.asarray(results["mean_test_score"], dtype=float)
    finite = np.sort(scores[np.isfinite(scores)])
    record = {"evaluated": len(scores), "finite": len(finite), "scores": summary(finite)}
    if "std_test_score" in results:
        spread = np.asarray(results["std_test_score"], dtype=float)
        record["spread"] = summary(np.sort(spread[np.isfinite(spread)]))
    if "mean_tie_score" in results:
        ties = np.asarray(results["mean_tie_score"], dtype=float)
        record["ties"] = math.fsum(ties[np.isfinite(ties)])
    return record


def read(model: Any, case: Case, engine: str, data: Rows) -> dict[str, Any]:
    """Return the record of a fitted model."""
    record: dict[str, Any] = {}
    if case.family == "narx":
        return _read_series(model, case, data)
    for name in _PLAIN:
        if getattr(model, name, None) is not None:
            record[name] = summary(getattr(model, name))
    for name in _EXACT:
        if hasattr(model, name):
            record[name] = exact(getattr(model, name))
    if case.family == "table":
        return record | _read_table(model, case, data)
    if hasattr(model, "n_iter_") and record.get("solver_") not in ("cg", "pcg", "smo"):
        record["n_iter_"] = exact(model.n_iter_)  # iterations to a tolerance may move by one
    record["dual_coef_"] = summary(model.dual_coef_)
    record["support_"] = exact(model.support_)
    if hasattr(model, "cv_results_"):
        record["cv_results_"] = _search(model.cv_results_)
    if hasattr(model, "size_results_"):
        record["size_results_"] = summary(model.size_results_["mean_test_score"])
    new = as_given(engine, data.new) if engine in ("strict", "torch") else data.new
    if case.task.startswith("classes"):
        record["decision_function"] = summary(model.decision_function(new))
        record["predict"] = exact(model.predict(new))
    else:
        record["predict"] = summary(model.predict(new))
    for what in case.read:
        record[what] = _READERS[what](model, new, data)
    return record


def _read_table(model: Any, case: Case, data: Rows) -> dict[str, Any]:
    """Return the record of a model for tables; numbers of members may come in any order."""
    tried = model.configurations_
    record = {
        "importances": summary(model.feature_importances_),
        "kernels": sorted(tried["kernel"]),
        "rounds": sorted(tried["rounds"]),
        "errors": summary(np.sort(np.asarray(tried["error"], dtype=float))),
        "stack": summary(np.sort(np.asarray(tried["weight"], dtype=float))),
    }
    if not case.compressed:
        record["metric"] = summary(np.abs(model.metric_))
    if case.task.startswith("classes"):
        record["decision_function"] = summary(model.decision_function(data.new))
        record["predict"] = [str(label) for label in model.predict(data.new)]
    else:
        record["predict"] = summary(model.predict(data.new))
    for what in case.read:
        record[what] = _READERS[what](model, data.new, data)
    return record


def _file(model: Any, new: Any, data: Rows) -> bool:
    """Return whether the model of a file gives the very same outputs."""
    classes = hasattr(model, "classes_")
    with tempfile.TemporaryDirectory() as folder:
        save(model, f"{folder}/model.lssvm")
        again = load(f"{folder}/model.lssvm")
    names = ("decision_function", "predict_proba") if classes else ("predict", "predict_interval")
    return all(
        np.array_equal(getattr(again, name)(new), getattr(model, name)(new)) for name in names
    )


def _interval(model: Any, new: Any, data: Rows) -> Any:
    return summary(model.predict_interval(new, coverage=0.8))


def _spread(model: Any, new: Any, data: Rows) -> Any:
    return summary(model.predict(new, return_std=True)[1])


def _sparsity(model: Any, new: Any, data: Rows) -> Any:
    path = model.sparsity_path()
    return {
        "sizes": exact(path.sizes),
        "order": exact(path.order),
        "mean": summary(path.mean),
        "std_error": summary(path.std_error),
    }


_READERS = {
    "file": _file,
    "interval": _interval,
    "noise": lambda model, new, data: summary(model.noise_variance_),
    "proba": lambda model, new, data: summary(model.predict_proba(new)),
    "score": lambda model, new, data: float(model.score(data.X, data.y)),
    "set": lambda model, new, data: exact(model.predict_set(new, coverage=0.8)),
    "sparsity": _sparsity,
    "std": _spread,
}


def _read_series(model: Any, case: Case, data: Rows) -> dict[str, Any]:
    inner, steps = model.estimator_, 6
    future = () if data.new is None else (data.new,)
    record = {"horizon_": exact(model.horizon_), "forecast": summary(model.forecast(6, *future))}
    for name in ("C_", "gamma_", "intercept_", "dual_coef_"):
        if getattr(inner, name, None) is not None:
            record[name] = summary(getattr(inner, name))
    if hasattr(model, "cv_results_"):
        record["best_score_"] = summary(model.best_score_)
        record["cv_results_"] = _search(model.cv_results_)
    if "interval" in case.read:
        options = {} if data.new is None else {"X_future": data.new}
        forecast = model.forecast(steps, return_interval=True, coverage=0.8, **options)
        record["interval"] = summary(forecast[1])
    if "score" in case.read:
        half = len(data.y) // 2
        inputs = () if data.X is None else (data.X[:half],)
        record["score"] = float(model.score(data.y[:half], *inputs))
    return record


# -- comparing ---------------------------------------------------------------------------------


def differences(
    found: Any, recorded: Any, tolerance: float, looser: dict[str, float], at: str = ""
) -> list[str]:
    """Return in words where a record is not the recorded one.

    Numbers are compared relative to the scale of the array that they are of.
    """
    tolerance = looser.get(at.split(".")[0], tolerance)
    if math.isinf(tolerance):
        return []
    if isinstance(recorded, dict) and "shape" in recorded:
        return _different_arrays(found, recorded, tolerance, at)
    if isinstance(recorded, dict) and isinstance(found, dict):
        missing = [
            f"{at}.{key} is {'new' if key in found else 'missing'}".lstrip(".")
            for key in sorted(found.keys() ^ recorded.keys())
        ]
        both = [key for key in recorded if key in found]
        inner = (
            differences(found[key], recorded[key], tolerance, looser, f"{at}.{key}".lstrip("."))
            for key in both
        )
        return [*missing, *(text for texts in inner for text in texts)]
    if isinstance(recorded, float) and isinstance(found, (int, float)):
        return _different(at, [found], [recorded], tolerance * max(abs(recorded), FLOOR))
    return [] if found == recorded else [f"{at}: {found!r}, recorded {recorded!r}"]


def _different_arrays(found: Any, recorded: Any, tolerance: float, at: str) -> list[str]:
    if not isinstance(found, dict) or found.get("shape") != recorded["shape"]:
        return [f"{at}: {found!r}, recorded {recorded!r}"]
    if "all" in recorded:
        finite = [abs(value) for value in recorded["all"] if math.isfinite(value)]
        scale = max([*finite, FLOOR])
        return _different(at, found["all"], recorded["all"], tolerance * scale)
    scale = max(recorded["largest"], FLOOR)
    size, norm = math.prod(recorded["shape"]), max(recorded["norm"], FLOOR)
    return [
        *_different(at, found["some"], recorded["some"], tolerance * scale),
        *_different(at, [found["sum"]], [recorded["sum"]], tolerance * norm * math.sqrt(size)),
        *_different(at, [found["norm"]], [recorded["norm"]], tolerance * norm),
    ]


def _different(
    at: str, found: Sequence[float], recorded: Sequence[float], allowed: float
) -> list[str]:
    far = [
        abs(mine - its)
        for mine, its in zip(found, recorded, strict=True)
        if mine != its and not (math.isnan(mine) and math.isnan(its))
    ]
    worst = max((math.inf if math.isnan(value) else value for value in far), default=0.0)
    if worst <= allowed:
        return []
    return [f"{at}: off by {worst:.2g} where {allowed:.2g} is allowed ({found} for {recorded})"]
