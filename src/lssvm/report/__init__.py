"""A self-contained report about a fitted model."""

from lssvm.report.assembly import write_report

__all__ = ["write_report"]
