"""From raw tables to numbers on one scale: a scikit-learn transformer."""

from lssvm.preparation.transformer import TablePreparation

__all__ = ["TablePreparation"]
