"""Arrays of any library in, the same kind out: what the fixed-size estimators do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import update_wrapper, wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from lssvm._core.device import Device, find_device, is_foreign
from lssvm._core.errors import InvalidInputError
from lssvm._core.memory import as_bytes
from lssvm._core.namespace import Array, compat, device, get_namespace, to_numpy
from lssvm.data.dask import is_dask
from lssvm.data.scanning import is_stream

Model = TypeVar("Model", bound=type)

_LEARNS = ("fit", "partial_fit", "forget")


@dataclass(frozen=True, eq=False)
class Place:
    """Where a call is computed.

    Attributes
    ----------
    engine : Device
    X : array or None
        The rows where they came as an array of its library.
    """

    engine: Device
    X: Array | None


@dataclass(frozen=True, eq=False)
class Home:
    """The arrays of a model that was fitted to arrays of another library, as NumPy arrays."""

    arrays: dict[str, NDArray[Any]]


def computed_anywhere(*names: str) -> Callable[[Model], Model]:
    """Make methods of a class take arrays of any library and compute where ``device`` says.

    Within a call the model is a plain NumPy model; ``_place`` tells where the work is done. Arrays
    that come back, and after a fit those of the model, are of the kind of ``X``.
    """

    def decorate(cls: Model) -> Model:
        for name in names:
            owner = next(base for base in cls.__mro__ if name in vars(base))
            setattr(cls, name, _Method(name, vars(owner)[name]))
        return cls

    return decorate


class _Method:
    """A method (or property) that runs on the NumPy view of its model."""

    def __init__(self, name: str, inner: Any) -> None:
        self.name, self.inner = name, inner
        update_wrapper(self, getattr(inner, "fn", getattr(inner, "fget", inner)))  # type: ignore[arg-type]

    def __get__(self, model: Any, owner: Any = None) -> Any:
        if model is None:
            return self.inner.__get__(None, owner)
        if isinstance(self.inner, property):
            return _kind_of(model, self.inner.__get__(_view(model, None), owner))
        bound = self.inner.__get__(model, owner)

        @wraps(bound)
        def call(*args: Any, **kwargs: Any) -> Any:
            return _run(model, self.name, self.inner, args, kwargs)

        return call


def _run(model: Any, name: str, inner: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    def on(target: Any, *own: Any, **named: Any) -> Any:
        return inner.__get__(target, type(target))(*own, **named)

    if vars(model).get("_plain"):  # inside another call
        return on(model, *args, **kwargs)
    X = kwargs["X"] if "X" in kwargs else args[0] if args else None
    home = vars(model).get("_home")
    if X is None:
        return on(model, *args, **kwargs) if home is None else on(_view(model, None))
    if is_stream(X):
        engine = find_device(model.device, None, dispatch=False)
        if engine is None:
            return on(model, *args, **kwargs)
        _check_stream(model, name, X)
    for value in (*args, *kwargs.values()):
        _check_readable(value)
    dispatch = bool(get_config()["array_api_dispatch"])
    if not is_stream(X):
        engine = find_device(model.device, X, dispatch=dispatch)
    if engine is not None and model.memory_budget is not None:
        engine = replace(engine, limit=as_bytes(model.memory_budget))
    if dispatch and name != "fit" and hasattr(model, "dual_coef_"):
        _check_same(model, name, X)
    foreign = engine is not None and is_foreign(X)
    args, kwargs = _on_host(args, name, foreign), _named_on_host(kwargs, name, foreign)
    if engine is None and home is None:
        return on(model, *args, **kwargs)
    view = _view(model, None if engine is None else Place(engine, X if foreign else None))
    try:
        result = on(view, *args, **kwargs)
    finally:
        if name in _LEARNS:
            _keep_state(model, view, _like(model, name, X if foreign else None))
    return model if result is view else _same_kind(result, X) if foreign else result


def _check_stream(model: Any, name: str, X: Any) -> None:
    """Raise for what cannot be done on a device with rows that are read in blocks."""
    if is_dask(X) or getattr(X, "distributed", False):
        raise InvalidInputError(
            f"device={model.device!r} is not available for rows on a cluster: use device=None."
        )
    if name in ("partial_fit", "forget"):
        raise InvalidInputError(
            f"device={model.device!r} is not available for {name} with a scan: give arrays (a "
            "memory map is copied to the device in blocks), or set_params(device=None)."
        )


def _view(model: Any, place: Place | None) -> Any:
    """Return the model with NumPy arrays, to be used during one call."""
    view = object.__new__(type(model))
    view.__dict__.update(vars(model))
    home = vars(model).get("_home")
    view.__dict__.update({} if home is None else home.arrays)
    view.__dict__.update(_plain=True, _place=place, _home=None)
    return view


def host_model(model: Any) -> Any:
    """Return a model with NumPy arrays: itself, unless it was fitted to others."""
    if vars(model).get("_home") is None:
        return model
    view = _view(model, None)
    for name in ("_plain", "_place", "_home"):
        del view.__dict__[name]
    return view


def _keep_state(model: Any, view: Any, X: Array | None) -> None:
    """Take over what a call has learned, in arrays of the kind of ``X``."""
    state = {name: value for name, value in vars(view).items() if name not in ("_plain", "_place")}
    if X is not None:
        arrays = {name: value for name, value in state.items() if _converts(name, value)}
        state.update({name: _same_kind(value, X) for name, value in arrays.items()})
        state["_home"] = Home(arrays)
    model.__dict__.clear()
    model.__dict__.update(state)


def _like(model: Any, name: str, X: Array | None) -> Array | None:
    """Return an array of the kind that the model is to have: rows that are added change none."""
    if name == "fit" or not hasattr(model, "dual_coef_"):
        return X
    return None if vars(model).get("_home") is None else model.dual_coef_


def _check_readable(value: Any) -> None:
    """Raise for tensors of torch whose numbers cannot be read."""
    if not compat.is_torch_array(value):
        return
    layout, kind = str(value.layout), str(value.dtype)
    if value.device.type == "meta":
        why, change = "is on the device 'meta', which holds no numbers", "give one that has some"
    elif layout != "torch.strided":
        why, change = f"has the layout {layout}", "give a dense one (to_dense())"
    elif value.is_complex() or value.is_quantized or kind == "torch.bfloat16":
        why, change = f"has the type {kind}", "convert it to torch.float64 or torch.float32"
    else:
        return
    raise InvalidInputError(f"A tensor of shape {tuple(value.shape)} {why}: {change}.")


def _converts(name: str, value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and name != "classes_"


def _on_host(args: tuple[Any, ...], name: str, foreign: bool) -> tuple[Any, ...]:
    """Return arguments as NumPy arrays, but for rows that are computed where they are."""
    if not args:
        return args
    keep = foreign and name not in _LEARNS
    return (args[0] if keep else _host(args[0]), *(_host(value) for value in args[1:]))


def _named_on_host(kwargs: dict[str, Any], name: str, foreign: bool) -> dict[str, Any]:
    keep = foreign and name not in _LEARNS
    return {key: value if keep and key == "X" else _host(value) for key, value in kwargs.items()}


def _host(value: Any) -> Any:
    return to_numpy(value) if is_foreign(value) else value


def _same_kind(result: Any, X: Array) -> Any:
    """Return NumPy arrays of numbers as arrays of the library and device of ``X``."""
    if isinstance(result, tuple):
        return tuple(_same_kind(part, X) for part in result)
    if not isinstance(result, np.ndarray) or result.dtype.kind not in "biuf":
        return result
    return Device(get_namespace(X), device(X)).put(result)


def _kind_of(model: Any, result: Any) -> Any:
    home = vars(model).get("_home")
    return result if home is None else _same_kind(result, model.dual_coef_)


def _check_same(model: Any, name: str, X: Any) -> None:
    """Raise, as scikit-learn does, where ``X`` is not of the kind that the model was fitted to."""
    mine = model.dual_coef_
    if is_foreign(mine) == is_foreign(X):
        if not is_foreign(X):
            return
        if get_namespace(mine) is get_namespace(X) and device(mine) == device(X):
            return
    raise InvalidInputError(
        f"Inputs passed to {type(model).__name__}.{name}() must use the same namespace and the "
        "same device as those passed to fit(), as everywhere in scikit-learn with "
        "array_api_dispatch: convert X, or fit again."
    )


def check_device_rows(model: Any, X: Array) -> Array:
    """Check new rows that are on a device; what is on the host is checked as always."""
    if not is_foreign(X):
        return model._new_rows(X)
    xp = get_namespace(X)
    if X.ndim != 2 or X.shape[1] != model.n_features_in_:
        raise InvalidInputError(
            f"X has shape {tuple(X.shape)} but {type(model).__name__} was fitted with "
            f"{model.n_features_in_} features: give an array of shape (n, {model.n_features_in_})."
        )
    if X.shape[0] == 0:
        raise InvalidInputError("X has no rows: give at least one.")
    if not xp.isdtype(X.dtype, "real floating"):
        X = xp.astype(X, xp.float64)
    if not bool(xp.all(xp.isfinite(X))):
        raise InvalidInputError("X has NaN or infinity: impute or drop those rows.")
    return X
