"""What y means: classes or numbers, their targets, weights, decisions and losses."""

from lssvm.tasks.losses import (
    AbsoluteError,
    Loss,
    Misclassification,
    RowLoss,
    ScorerLoss,
    SquaredError,
    Targets,
)
from lssvm.tasks.targets import Classes, ClassTable, Numbers

Task = Classes | Numbers
"""One of the two tasks."""

__all__ = [
    "AbsoluteError",
    "ClassTable",
    "Classes",
    "Loss",
    "Misclassification",
    "Numbers",
    "RowLoss",
    "ScorerLoss",
    "SquaredError",
    "Targets",
    "Task",
]
