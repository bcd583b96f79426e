"""Least squares support vector machines of any size, with scikit-learn's interface.

Names are imported on first use, so that ``import lssvm`` is fast.
"""

import typing

from lssvm._core.version import __version__

__all__ = [
    "LSSVC",
    "LSSVR",
    "NARX",
    "FixedSizeLSSVC",
    "FixedSizeLSSVR",
    "GreedyLSSVC",
    "GreedyLSSVR",
    "LSSVMClassifier",
    "LSSVMRegressor",
    "ModelFileError",
    "__version__",
    "load",
    "save",
    "scan",
]

if typing.TYPE_CHECKING:
    from lssvm._core.errors import ModelFileError
    from lssvm.data import scan
    from lssvm.estimators import (
        LSSVC,
        LSSVR,
        NARX,
        FixedSizeLSSVC,
        FixedSizeLSSVR,
        GreedyLSSVC,
        GreedyLSSVR,
        LSSVMClassifier,
        LSSVMRegressor,
    )
    from lssvm.io import load, save
else:
    _HOMES = {"ModelFileError": "_core.errors", "load": "io", "save": "io", "scan": "data"}

    def __getattr__(name):
        from importlib import import_module
        from importlib.util import find_spec

        if name in __all__:
            home = _HOMES.get(name, "estimators")
            value = getattr(import_module(f"lssvm.{home}"), name)
            globals()[name] = value  # the next time it is simply there
            return value
        if not name.startswith("_") and find_spec(f"lssvm.{name}") is not None:
            return import_module(f"lssvm.{name}")  # a package, such as lssvm.kernels
        raise AttributeError(f"module 'lssvm' has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__all__})
