"""Least squares support vector machines of any size, with scikit-learn's interface.

Names are imported when they are first asked for, so that ``import lssvm`` costs next to nothing.
"""

import typing

__version__ = "0.1.0.dev0"

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
else:
    _HOMES = {"ModelFileError": "_core.errors", "scan": "blocks"}  # the others: estimators
    _PACKAGES = (
        "blocks",
        "codes",
        "datasets",
        "estimators",
        "features",
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
        value = getattr(import_module(f"lssvm.{_HOMES.get(name, 'estimators')}"), name)
        globals()[name] = value  # the next time it is simply there
        return value

    def __dir__():
        return sorted({*globals(), *__all__, *_PACKAGES})
