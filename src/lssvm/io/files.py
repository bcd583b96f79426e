"""Model files: `save`, `load` and what the header of a file says."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from lssvm._core.errors import InvalidInputError, ModelFileError
from lssvm._core.version import __version__
from lssvm.io.container import (
    Container,
    parse_json,
    read_container,
    read_container_header,
    write_container,
)

FORMAT = 1
"""The number of the format that is written."""

_TEXTS = ("class", "features", "classes", "preparation", "metrics", "model", "schema_sha256")
_UNFORESEEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def save(
    model: Any, path: Any, *, keep: str = "prediction", metrics: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted model to one file, which can never run code.

    Parameters
    ----------
    model : LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVC, GreedyLSSVR or NARX
        Fitted.
    path : str or path
        The file appears, or takes the place of an older one, when it is complete.
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
        Where the model holds what a file cannot: a kernel that is a function, or in `NARX` a
        regressor of another library.

    Notes
    -----
    The file is one of the safetensors format: arrays, and a header of JSON with a format number,
    the version of the package, class and parameters of the model, names of the features, their
    preparation, the classes, the metrics, a hash of the training schema and a checksum of
    everything. After `load`, everything that was kept gives the same results bit for bit on the
    same machine, and the parameters are the same but for those that a file cannot or should not
    hold: ``scoring``, ``cv``, ``selection`` and ``random_state`` as objects, functions or arrays,
    and ``checkpoint`` and ``device``. They do not matter for predictions; the loaded model has
    their defaults, and the header names them under ``left_out``.

    In form "prediction" the maps to probabilities and the residuals of intervals are computed
    before saving where that is cheap, and stored in place of the rows that they came from. A dual
    model without a reduction holds all training rows as support vectors. A fixed-size regressor
    keeps its moments (m^2 numbers), which error bars need; a classifier does not. Time and memory
    are those of writing the arrays, without a copy.

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
    from lssvm.estimators._anywhere import host_model
    from lssvm.io.models import check_storable, write_model

    model = host_model(model)
    check_storable(model, keep)
    record, arrays = write_model(model, keep)
    fitted = record["fitted"]
    features = {n: fitted.pop(n, None) for n in ("n_features_in_", "feature_names_in_")}
    texts: dict[str, Any] = {
        "class": record.pop("class"),
        "features": features,
        "classes": fitted.pop("classes_", None),
        "preparation": record.pop("preparation", None),
        "metrics": _plain({} if metrics is None else metrics, "metrics"),
        "model": {"keep": keep, **record},
    }
    texts["schema_sha256"] = _schema(texts)
    written = {name: json.dumps(value, ensure_ascii=False) for name, value in texts.items()}
    metadata = {"format": str(FORMAT), "lssvm": __version__, **written}
    write_container(os.fspath(path), metadata, arrays)


def load(path: Any) -> Any:
    """Read a fitted model from a file that `save` has written.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator
        Of the class that was saved.

    Raises
    ------
    ModelFileError
        Where the file is damaged, no model file, of a newer format, or does not fit together; a
        `ValueError`. A file that cannot be opened raises an `OSError`.

    Notes
    -----
    A file can never run code: it holds arrays and JSON, its classes are those of a closed list, and
    nothing is imported by a name from it. No more memory is taken than the length of the file
    explains, and everything is checked before it becomes a model: the checksum, types, shapes
    against each other, finite numbers. Needs nothing but the required libraries of the package.

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
    found, arrays = read_container(path)
    number = _format(found)
    try:
        return _LOADERS[number](found, arrays)
    except ModelFileError as error:
        raise ModelFileError(f"{found.path} cannot be loaded: {error}") from error
    except _UNFORESEEN as error:
        raise ModelFileError(
            f"{found.path} cannot be loaded: what it holds makes no model ({error})."
        ) from error


def read_header(path: Any) -> dict[str, Any]:
    """Return what a model file says about its model, without its arrays.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    dict
        ``format`` (int), ``version`` of the package that wrote it, ``class``, ``keep``,
        ``parameters``, ``left_out`` (parameters that were not stored), ``fitted`` (numbers and
        texts that the fit has found), ``n_features``, ``feature_names`` (list or None), ``classes``
        (list or None), ``preparation`` (dict or None), ``metrics``, ``schema_sha256``, ``arrays``
        (shape and type by name) and ``size`` in bytes.

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
    found = read_container_header(path)
    number, texts = _format(found), _texts(found)
    try:
        return {"format": number, **_header(found, texts)}
    except _UNFORESEEN as error:
        raise ModelFileError(
            f"{found.path} cannot be loaded: what its header holds describes no model ({error})."
        ) from error


def _header(found: Container, texts: dict[str, Any]) -> dict[str, Any]:
    record, features = texts["model"], texts["features"]
    names, classes = features.get("feature_names_in_"), texts["classes"]
    fitted = {n: describe(v) for n, v in record.get("fitted", {}).items() if n[:1] != "_"}
    return {
        "version": found.metadata["lssvm"],
        "class": texts["class"],
        "keep": record.get("keep"),
        "parameters": {n: describe(v) for n, v in record.get("parameters", {}).items()},
        "left_out": record.get("left_out", []),
        "fitted": {n: v for n, v in fitted.items() if isinstance(v, (int, float, str))},
        "n_features": features.get("n_features_in_"),
        "feature_names": None if names is None else names.get("labels"),
        "classes": None if classes is None else classes.get("labels"),
        "preparation": texts["preparation"],
        "metrics": texts["metrics"],
        "schema_sha256": texts["schema_sha256"],
        "arrays": {n: {"shape": e.shape, "dtype": e.dtype} for n, e in found.entries.items()},
        "size": found.size,
    }


def describe(stored: Any) -> Any:
    """Return a stored value as plain JSON for people: classes by name, arrays by their name."""
    if isinstance(stored, list):
        return [describe(part) for part in stored]
    if not isinstance(stored, dict):
        return stored
    if "object" in stored:
        return {"class": stored["object"]} | {
            name: describe(part) for name, part in dict(stored.get("fields", {})).items()
        }
    if "dict" in stored:
        return {str(key): describe(part) for key, part in stored["dict"]}
    if "model" in stored:
        return {"class": stored["model"].get("class")} | {
            name: describe(part) for name, part in stored["model"].get("parameters", {}).items()
        }
    return describe(next(iter(stored.values()), None))


# -- the header --------------------------------------------------------------------------------


def _format(found: Container) -> int:
    """Return the number of the format; raise where it is not known."""
    text, version = found.metadata.get("format", ""), found.metadata.get("lssvm", "")
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not version:
        raise ModelFileError(
            f"{found.path} cannot be loaded: it has no format number of lssvm; it is a safetensors "
            "file of something else."
        )
    if int(text) not in _LOADERS:
        raise ModelFileError(
            f"{found.path} cannot be loaded: it has format {text}, which lssvm {version[:40]} has "
            f"written; this is lssvm {__version__}, which reads formats up to {FORMAT}. Install "
            f"lssvm {version[:40]} or newer."
        )
    return int(text)


def _texts(found: Container) -> dict[str, Any]:
    """Return the JSON texts of a header."""
    wanted = {"format", "lssvm", *_TEXTS}
    if set(found.metadata) != wanted:
        raise ModelFileError(f"{found.path} cannot be loaded: its header is not complete.")
    try:
        texts = {name: parse_json(found.metadata[name]) for name in _TEXTS}
    except ValueError as error:
        raise ModelFileError(f"{found.path} cannot be loaded: {error}.") from error
    shapes: dict[str, Any] = {
        "class": str,
        "features": dict,
        "classes": dict | None,
        "preparation": dict | None,
        "metrics": dict,
        "model": dict,
        "schema_sha256": str,
    }
    for name, kind in shapes.items():
        if not isinstance(texts[name], kind):
            raise ModelFileError(f"{found.path} cannot be loaded: {name!r} in its header is wrong.")
    if texts["schema_sha256"] != _schema(texts):
        raise ModelFileError(
            f"{found.path} cannot be loaded: its columns and classes are not those of the training."
        )
    return texts


def _schema(texts: Mapping[str, Any]) -> str:
    """Return a hash of what rows have to look like: columns, their kinds and categories, labels."""
    ready = texts["preparation"] or {}
    parts = {
        "features": texts["features"],
        "kinds": ready.get("kinds"),
        "categories": ready.get("categories"),
        "classes": texts["classes"],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def schema_hash(model: Any) -> str:
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
    from lssvm.io.models import check_storable, write_model

    check_storable(model, "support")
    record, _ = write_model(model, "support")
    fitted = record["fitted"]
    features = {n: fitted.get(n) for n in ("n_features_in_", "feature_names_in_")}
    texts = {"features": features, "classes": fitted.get("classes_")}
    return _schema({**texts, "preparation": record.get("preparation")})


def _load_1(found: Container, arrays: dict[str, Any]) -> Any:
    """Load a file of format 1."""
    from lssvm.estimators._stored import FORMS
    from lssvm.io.models import read_model

    texts = _texts(found)
    record = dict(texts["model"])
    keep = record.pop("keep", None)
    if not isinstance(keep, str) or keep not in FORMS or not isinstance(record.get("fitted"), dict):
        raise ModelFileError("the file does not say how much of the model it holds.")
    outside = {**texts["features"], "classes_": texts["classes"]}
    if not set(outside) <= {"n_features_in_", "feature_names_in_", "classes_"}:
        raise ModelFileError("the file describes its features in another way.")
    fitted = {**record["fitted"], **{n: v for n, v in outside.items() if v is not None}}
    record |= {"class": texts["class"], "preparation": texts["preparation"], "fitted": fitted}
    return read_model(record, arrays, keep)


_LOADERS = {1: _load_1}


def _plain(value: Any, where: str) -> Any:
    """Return metrics as plain JSON; a number that is not finite becomes None."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return _plain(value.item(), where)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(part, where) for part in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {str(key): _plain(part, f"{where}[{key!r}]") for key, part in value.items()}
    raise InvalidInputError(
        f"{where} holds {value!r}: give numbers, texts, lists, and mappings from texts to them."
    )
