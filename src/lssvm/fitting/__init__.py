"""Fits as algorithms that one reads from top to bottom, and the records that they return."""

from lssvm.fitting.problem import Problem
from lssvm.fitting.table import Interrupted, fit_table
from lssvm.fitting.table_record import (
    KERNELS,
    SCALINGS,
    Configuration,
    Member,
    TableContext,
    TableFit,
    Trial,
)
from lssvm.fitting.table_work import PRESETS, Scorer, TableSettings

__all__ = [
    "KERNELS",
    "PRESETS",
    "SCALINGS",
    "Configuration",
    "Interrupted",
    "Member",
    "Problem",
    "Scorer",
    "TableContext",
    "TableFit",
    "TableSettings",
    "Trial",
    "fit_table",
]
