"""Least squares support vector machines of any size, with scikit-learn's interface.

Names are imported when they are first asked for, so that ``import lssvm`` costs next to nothing.
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
    "ModelFileError",
    "__version__",
    "load",
    "save",
    "scan",
]

if typing.TYPE_CHECKING:
    from lssvm._core.errors import ModelFileError
    from lssvm.blocks import scan
    from lssvm.estimators import (
        LSSVC,
        LSSVR,
        NARX,
        FixedSizeLSSVC,
        FixedSizeLSSVR,
        GreedyLSSVC,
        GreedyLSSVR,
    )
    from lssvm.io import load, save
else:
    _HOMES = {"ModelFileError": "_core.errors", "load": "io", "save": "io", "scan": "blocks"}
    _PACKAGES = (
        "blocks",
        "codes",
        "datasets",
        "estimators",
        "features",
        "io",
        "kernels",
        "moments",
        "plots",
        "prototypes",
        "reductions",
        "solvers",
        "tuning",
        "uncertainty",
    )

    def __getattr__(name):
        from importlib import import_module

        if name in _PACKAGES:
            return import_module(f"lssvm.{name}")
        if name not in __all__:
            raise AttributeError(f"module 'lssvm' has no attribute {name!r}")
        home = _HOMES.get(name, "estimators")
        value = getattr(import_module(f"lssvm.{home}"), name)
        globals()[name] = value  # the next time it is simply there
        return value

    def __dir__():
        return sorted({*globals(), *__all__, *_PACKAGES})
