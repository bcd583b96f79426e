"""Fits as algorithms that one reads from top to bottom, and the records that they return."""

from lssvm.recipes.configurations import INPUTS, KERNELS, Configuration, Member
from lssvm.recipes.problem import Problem
from lssvm.recipes.screening import PRESETS, TableSettings
from lssvm.recipes.stacking import combine, cross_stack, stack_weights
from lssvm.recipes.table import TableFit, Trial, fit_table
from lssvm.recipes.table_context import TableContext

__all__ = [
    "INPUTS",
    "KERNELS",
    "PRESETS",
    "Configuration",
    "Member",
    "Problem",
    "TableContext",
    "TableFit",
    "TableSettings",
    "Trial",
    "combine",
    "cross_stack",
    "fit_table",
    "stack_weights",
]
