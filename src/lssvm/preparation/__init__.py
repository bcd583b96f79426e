"""From tables as they come to numbers on one scale: a scikit-learn transformer and its parts."""

from lssvm.preparation.encodings import DateEncoding, LevelEncoding, NumberEncoding
from lssvm.preparation.record import PreparedColumn, PreparedTable
from lssvm.preparation.report import PreparationReport
from lssvm.preparation.tables import RawColumn, RawTable, read_table
from lssvm.preparation.transformer import TablePreparation

__all__ = [
    "DateEncoding",
    "LevelEncoding",
    "NumberEncoding",
    "PreparationReport",
    "PreparedColumn",
    "PreparedTable",
    "RawColumn",
    "RawTable",
    "TablePreparation",
    "read_table",
]
