"""One self-contained page about a fitted model: what it learned, how good it is, how to repeat."""

from lssvm.report.assembly import write_report

__all__ = ["write_report"]
