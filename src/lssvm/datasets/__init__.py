"""Small real data sets of the papers, shipped with the package: no network, no optional library.

`SOURCES.md` in this folder has the source and the terms of each one.
"""

from __future__ import annotations

from lssvm.datasets.bundled import (
    Dataset,
    list_datasets,
    load_balance,
    load_concrete,
    load_german_credit,
    load_heart,
    load_laser,
    load_liver,
    load_ripley,
)

__all__ = [
    "Dataset",
    "list_datasets",
    "load_balance",
    "load_concrete",
    "load_german_credit",
    "load_heart",
    "load_laser",
    "load_liver",
    "load_ripley",
]
