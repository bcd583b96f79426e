"""Fits as algorithms that one reads from top to bottom, and the record that they return."""

from lssvm.fitting.record import Fit, Member, Trial
from lssvm.fitting.table import Interrupted, fit_table
from lssvm.fitting.table_record import KERNELS, SCALINGS, Configuration, Problem
from lssvm.fitting.table_work import PRESETS, Scorer, TableSettings

__all__ = [
    "KERNELS",
    "PRESETS",
    "SCALINGS",
    "Configuration",
    "Fit",
    "Interrupted",
    "Member",
    "Problem",
    "Scorer",
    "TableSettings",
    "Trial",
    "fit_table",
]
