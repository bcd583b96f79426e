"""Fits as algorithms that one reads from top to bottom, and the records that they return."""

from lssvm.fitting.configurations import INPUTS, KERNELS, Configuration, Member
from lssvm.fitting.judging import Judge, SquaredErrors
from lssvm.fitting.problem import Problem
from lssvm.fitting.stacking import StackRule, combine, cross_stack, stack_weights
from lssvm.fitting.table import Interrupted, TableFit, Trial, fit_table
from lssvm.fitting.table_context import TableContext
from lssvm.fitting.table_run import PRESETS, TableSettings

__all__ = [
    "INPUTS",
    "KERNELS",
    "PRESETS",
    "Configuration",
    "Interrupted",
    "Judge",
    "Member",
    "Problem",
    "SquaredErrors",
    "StackRule",
    "TableContext",
    "TableFit",
    "TableSettings",
    "Trial",
    "combine",
    "cross_stack",
    "fit_table",
    "stack_weights",
]
