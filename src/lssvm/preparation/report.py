"""What was done with each column, as a small table for people."""

from __future__ import annotations

from lssvm.preparation.record import PreparedTable

HEADINGS = ("column", "kind", "done", "why", "features")


class PreparationReport(dict[str, list[str | int]]):
    """A dict from headings to lists, one entry for each column, that prints as a table.

    Examples
    --------
    >>> from lssvm.preparation import TablePreparation
    >>> report = TablePreparation().fit({"age": [20, 40], "one": [1, 1]}).report_
    >>> report["column"], report["done"]
    (['age', 'one'], ['standardised', 'left out'])
    """

    @classmethod
    def of(cls, prepared: PreparedTable) -> PreparationReport:
        """Return the report of a preparation.

        Parameters
        ----------
        prepared : PreparedTable
            What was learned from a table.
        """
        rows = [(c.name, c.kind, c.done, c.why, c.width) for c in prepared.columns]
        return cls({h: [row[i] for row in rows] for i, h in enumerate(HEADINGS)})

    def __str__(self) -> str:
        columns = [[h, *map(str, self[h])] for h in HEADINGS]
        widths = [max(map(len, column)) for column in columns]
        lines = []
        for row in zip(*columns, strict=True):
            cells = [cell.ljust(w) for cell, w in zip(row[:-1], widths[:-1], strict=True)]
            lines.append("  ".join([*cells, row[-1].rjust(widths[-1])]))
        return "\n".join(lines)
