"""Fits as algorithms that one reads from top to bottom, and the records that they return."""

from lssvm.recipes.configurations import INPUTS, KERNELS, Configuration, Member
from lssvm.recipes.judging import Judge, SquaredErrors
from lssvm.recipes.problem import Problem
from lssvm.recipes.stacking import StackRule, combine, cross_stack, stack_weights
from lssvm.recipes.table import Interrupted, TableFit, Trial, fit_table
from lssvm.recipes.table_context import TableContext
from lssvm.recipes.table_run import PRESETS, TableSettings

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
