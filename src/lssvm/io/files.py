"""Model files: `save`, `load` and what the header of a file says."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lssvm._core.errors import InvalidInputError, ModelFileError, printable
from lssvm.io import older
from lssvm.io.container import Container, open_container, read_container, write_container

if TYPE_CHECKING:
    from lssvm.io.schema import Model, StoredPipeline

Path = str | os.PathLike[str]

_UNFORESEEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def save(
    model: Any, path: Path, *, keep: str = "prediction", metrics: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted model to one file, which can never run code.

    Parameters
    ----------
    model : estimator
        Fitted: `LSSVMClassifier`, `LSSVMRegressor`, `LSSVC`, `LSSVR`, `FixedSizeLSSVC`,
        `FixedSizeLSSVR`, `GreedyLSSVC`, `GreedyLSSVR` or `NARX`, or a pipeline of scikit-learn
        that ends in one of them (not in `NARX`) behind `TablePreparation`, `StandardScaler`,
        `MinMaxScaler`, `QuantileTransformer`, `SimpleImputer`, `OneHotEncoder`,
        `OrdinalEncoder`, `ColumnTransformer` and pipelines of these.
    path : str or path
        The file appears, or takes the place of an older one, when it is complete. A new one is for
        its owner alone (mode 0600), since support vectors and prototypes are rows of the training
        data; an older one passes its mode on, and a symbolic link stays.
    keep : {"prediction", "all", "support"}, default="prediction"
        How much of the model. "prediction": all that `predict`, probabilities, sets, error bars and
        intervals need. "all": also the moments, the sample of the training rows and the records of
        tuning, so that ``partial_fit``, ``forget``, ``truncate`` and the plots go on. "support":
        support vectors, coefficients and the maps to probabilities alone, without intervals and
        sets; the smallest.
    metrics : mapping from str, optional
        Numbers, texts, lists and mappings of them to keep with the model, such as its test error;
        `lssvm.io.read_header` gives them back.

    Raises
    ------
    InvalidInputError
        If the model contains something that a file cannot store: a kernel that is a function, in
        `NARX` a regressor of another library, in a pipeline another transformer.

    Notes
    -----
    The file is one of the safetensors format: arrays, and a header of JSON with a format number,
    the version of the package, class and parameters of the model, the preparation of raw columns,
    the metrics, a hash of the training schema and a checksum of everything. After `load`,
    everything that was kept gives the same results bit for bit on the same machine, and the
    parameters are the same but for those that a file cannot or should not hold: ``scoring``,
    ``cv``, ``selection`` and ``random_state`` as objects, functions or arrays, ``device``, and the
    ``checkpoint`` of a search. They do not matter for predictions; the loaded model has their
    defaults, and the header names them under ``left_out``.

    In form "prediction" the maps to probabilities and the residuals of intervals are computed
    before saving where that is cheap, and stored in place of the rows that they came from. A dual
    model without a reduction holds all training rows as support vectors, and so does every
    configuration of a model for tables (equal arrays are stored once); its targets, weights and
    held-out outputs come with "all" only. A fixed-size regressor
    keeps its moments (m^2 numbers), which error bars need; a classifier does not. Time and memory
    are those of writing the arrays and of one copy of them.

    Examples
    --------
    >>> import os, tempfile
    >>> from lssvm import FixedSizeLSSVC, load, save
    >>> from lssvm.datasets import load_ripley
    >>> ripley = load_ripley()
    >>> X, y = ripley.data[ripley.train], ripley.target[ripley.train]
    >>> model = FixedSizeLSSVC(20).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.lssvm")
    ...     save(model, path)
    ...     again = load(path)
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    from lssvm.io.records import encode
    from lssvm.io.schema import schema

    record = _to_record(model, keep)
    tree, arrays = encode(record, schema())
    header = {
        "keep": keep,
        "metrics": plain_json({} if metrics is None else metrics, "metrics"),
        "schema_sha256": _schema(record),
        "fitted": _fitted_values(_final_step(model)),
        "model": tree,
    }
    write_container(path, header, arrays)


def load(path: Path) -> Any:
    """Read a fitted model from a file that `save` has written.

    Parameters
    ----------
    path : str or path
        A file that `save` or `lssvm train` has written.

    Returns
    -------
    estimator
        Of the class that was saved.

    Raises
    ------
    ModelFileError
        If the file is damaged, not a model file, of another format, or does not fit together; a
        `ValueError`. A file that cannot be opened raises an `OSError`.

    Notes
    -----
    A file can never run code: it holds arrays and JSON, its classes are those of a closed list, and
    nothing is imported by a name from it. All that it makes is bounded in sum by its length: 32 MiB
    and 16 times the length, beyond its arrays and the plain values of its header. Everything is
    checked before it becomes a model: the checksum, types, shapes against each other, finite
    numbers.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from lssvm import LSSVR, load, save
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = LSSVR(C=100.0).fit(X, np.sin(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.lssvm")
    ...     save(model, path)
    ...     again = load(path)
    >>> again
    LSSVR(C=100.0)
    """
    from lssvm.io.models import read_model
    from lssvm.io.records import allowance, decode
    from lssvm.io.schema import Model, StoredPipeline, schema

    container, arrays = read_container(path)
    header = container.header
    try:
        tree = older.convert(header.get("model"), header["format"], arrays)
        stored = decode(tree, arrays, schema(), allowance(container.size))
        inner = stored.model if isinstance(stored, StoredPipeline) else stored
        if not isinstance(inner, Model) or inner.record is None:
            raise ModelFileError("The file has no fitted estimator.")
        if header.get("keep") != inner.record.stored:
            raise ModelFileError("The file does not state how much of the model it holds.")
        if isinstance(stored, StoredPipeline):
            from lssvm.io.pipelines import read_pipeline

            return read_pipeline(stored)
        return read_model(inner)
    except ModelFileError as error:
        raise ModelFileError(
            f"{container.path} cannot be loaded: {printable(error, 500)}"
        ) from error
    except _UNFORESEEN as error:
        raise ModelFileError(
            f"{container.path} cannot be loaded: what it holds makes no model ({printable(error)})."
        ) from error


def read_header(path: Path) -> dict[str, Any]:
    """Return the header of a model file: everything except the arrays.

    Parameters
    ----------
    path : str or path
        A file that `save` or `lssvm train` has written.

    Returns
    -------
    dict
        ``format`` (int), ``version`` of the package that wrote it, ``class``, ``keep``,
        ``parameters``, ``left_out`` (parameters that were not stored), ``fitted`` (numbers and
        texts of the fit), ``n_features``, ``feature_names`` (list or None), ``classes``
        (list or None), ``preparation`` (dict or None), ``steps`` (of a pipeline, before the
        model), ``metrics``, ``schema_sha256``, ``arrays`` (shape and type by name) and ``size`` in
        bytes.

    Raises
    ------
    ModelFileError
        Where there is no such header.

    Notes
    -----
    Only the header is read, so that the checksum is not compared; `load` does that.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from lssvm import LSSVR, save
    >>> from lssvm.io import read_header
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.lssvm")
    ...     save(LSSVR(C=100.0).fit(X, np.sin(X[:, 0])), path, metrics={"mse": 0.01})
    ...     header = read_header(path)
    >>> header["class"], header["fitted"]["C_"], header["metrics"]
    ('LSSVR', 100.0, {'mse': 0.01})
    """
    with open_container(path) as (container, fetch):
        try:
            return _describe_header(container, fetch)
        except _UNFORESEEN as error:
            raise ModelFileError(
                f"{container.path} cannot be loaded: what its header holds describes no model "
                f"({printable(error)})."
            ) from error


def _final_step(model: object) -> Any:
    """Return the model itself, which may stand at the end of a pipeline."""
    steps = getattr(model, "steps", None)
    return steps[-1][1] if isinstance(steps, list) and steps else model


def _to_record(model: object, keep: str) -> Model | StoredPipeline:
    """Return what a file holds of a model, or of a pipeline that ends in one."""
    from lssvm.io.models import check_storable, write_model

    if _final_step(model) is model:
        check_storable(model, keep)
        return write_model(model, keep)
    from lssvm.io.pipelines import write_pipeline

    return write_pipeline(model, keep)


def _fitted_values(model: object) -> dict[str, Any]:
    """Return numbers and texts of a fit, for people."""
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    plain = {n: plain_json(v, n) for n, v in fitted.items() if isinstance(v, (int, float, str))}
    return {name: value for name, value in plain.items() if value is not None}


def _describe_header(container: Container, fetch: Callable[[str], Any]) -> dict[str, Any]:
    header = container.header
    tree = older.convert(header.get("model"), header["format"])
    model, steps = tree["fields"], None
    if tree["record"] == "StoredPipeline":
        steps = [describe(step) for step in model["steps"]]
        model = model["model"]["fields"]
    record = model["record"]["fields"]
    task = record.get("task", {"fields": {}})["fields"]
    prepared = describe(record.get("prepared")) or describe(model["preparation"])
    return {
        "format": header["format"],
        "version": header["lssvm"],
        "class": model["kind"],
        "keep": header["keep"],
        "parameters": describe(model["parameters"]),
        "left_out": model["left_out"],
        "fitted": dict(header["fitted"]),
        "n_features": model["n_features"],
        "feature_names": _labels(model["feature_names"], fetch),
        "classes": _labels(task.get("classes"), fetch),
        "preparation": prepared,
        **({} if steps is None else {"steps": steps}),
        "metrics": dict(header["metrics"]),
        "schema_sha256": header["schema_sha256"],
        "arrays": container.arrays,
        "size": container.size,
    }


def _labels(stored: Any, fetch: Callable[[str], Any]) -> list[Any] | None:
    """Return stored labels as a list."""
    if stored is None:
        return None
    if "array" in stored:
        return list(fetch(stored["array"]).tolist())
    if "texts" not in stored:
        return list(stored["objects"])
    data, ends = fetch(stored["texts"]).tobytes(), fetch(stored["ends"]).tolist()
    return [data[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]


def describe(stored: Any) -> Any:
    """Return a stored value as plain JSON for people: classes by name, arrays by their name."""
    if isinstance(stored, list):
        return [describe(part) for part in stored]
    if not isinstance(stored, dict):
        return stored
    if "dict" in stored:
        return {str(key): describe(part) for key, part in stored["dict"]}
    if stored.get("record") == "Model":
        inner = stored["fields"]
        return {"class": inner["kind"], **describe(inner["parameters"])}
    if "record" in stored:
        parts = stored["fields"].items()
        return {"class": stored["record"]} | {name: describe(part) for name, part in parts}
    return describe(next(iter(stored.values()), None))


# -- the hash of the schema --------------------------------------------------------------------


def _schema(whole: Model | StoredPipeline) -> str:
    """Return a hash of what rows have to look like: columns, their kinds and categories, labels."""
    stored: Any = getattr(whole, "model", whole)
    steps: Any = getattr(whole, "steps", None)
    names, record = stored.feature_names, stored.record
    classes = getattr(getattr(record, "task", None), "classes", None)
    ready = record.any_prepared if getattr(record, "prepared", None) else stored.preparation
    kinds = levels = None
    if ready is not None:
        kinds = [column.kind for column in ready.columns]
        levels = [getattr(column.encoding, "levels", None) for column in ready.columns]
    parts = {
        "n": stored.n_features,
        "names": None if names is None else names.tolist(),
        "kinds": kinds,
        "categories": levels,
        "classes": None if classes is None else [str(classes.dtype), classes.tolist()],
    }
    if steps is not None:
        parts["steps"] = [[step.name, step.kind] for step in steps]
        first = steps[0].fitted if steps else {}
        columns = first.get("feature_names_in_")
        if "prepared" in first:
            columns = np.array(first["prepared"].names, dtype=object)
        parts["names"] = None if columns is None else columns.tolist()
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def schema_hash(model: object) -> str:
    """Return the hash of the training schema that a file of a model has.

    Parameters
    ----------
    model : object
        A fitted model that `save` takes.

    Returns
    -------
    str
        SHA-256 of the columns, their kinds and categories, and the classes, in hexadecimal.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVC
    >>> from lssvm.io.files import schema_hash
    >>> len(schema_hash(LSSVC(gamma=1.0).fit(np.eye(2), [0, 1])))
    64
    """
    return _schema(_to_record(model, "support"))


def plain_json(value: Any, where: str, unknown: Callable[[Any], Any] | None = None) -> Any:
    """Return a value in types of JSON; a number that is not finite becomes None.

    Parameters
    ----------
    value : object
    where : str
        What it is, for the message.
    unknown : callable or None, default=None
        Applied to keys and values of other types; None: these raise an error.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.io.files import plain_json
    >>> plain_json({"a": np.array([1.0, np.nan]), "b": np.int64(3), "c": (True, "x")}, "metrics")
    {'a': [1.0, None], 'b': 3, 'c': [True, 'x']}
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return plain_json(value.item(), where, unknown)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain_json(part, where, unknown) for part in value]
    if isinstance(value, Mapping) and (unknown or all(isinstance(key, str) for key in value)):
        parts = value.items()
        return {str(key): plain_json(part, f"{where}[{key!r}]", unknown) for key, part in parts}
    if unknown is not None:
        return unknown(value)
    raise InvalidInputError(
        f"{where} holds {value!r}: give numbers, texts, lists, and mappings from texts to them."
    )
