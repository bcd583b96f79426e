"""Fits as algorithms that one reads from top to bottom, and the records that they return."""

from lssvm.fitting.problem import Problem
from lssvm.fitting.table import Interrupted, fit_table
from lssvm.fitting.table_record import (
    INPUTS,
    KERNELS,
    Configuration,
    Member,
    TableContext,
    TableFit,
    Trial,
)
from lssvm.fitting.table_work import PRESETS, Scorer, TableSettings

__all__ = [
    "INPUTS",
    "KERNELS",
    "PRESETS",
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
