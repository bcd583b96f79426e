"""Small real data sets of the papers, shipped with the package: no network, no optional library.

`SOURCES.md` beside this file names where each one comes from and under which terms.
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
