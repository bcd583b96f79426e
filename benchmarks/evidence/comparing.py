"""From records to arrays: which methods and sets can be compared, and their mean values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.evidence.records import OK, Records

Array = NDArray[np.float64]

ENOUGH = 0.9
"""A method is compared that was tried on so large a share of the sets and their splits."""


@dataclass(frozen=True)
class Comparison:
    """Mean errors over the seeds that all methods have been tried with.

    Attributes
    ----------
    sets, methods : lists of names
    errors : array of shape (n_sets, n_methods)
        Infinite where a fit failed or ran out of time.
    half_rows : array of shape (n_sets,)
        Half a test row, in per cent for errors; 0 for numbers.
    seeds : list of int
        How many seeds the means are over.
    left_out : dict
        Share of the splits on which a method was tried that is not compared.
    field : str
        What is compared: "error", in per cent, or "measure", the field's (1 - AUC, log loss, RMSE).
    """

    sets: list[str]
    methods: list[str]
    errors: Array
    half_rows: Array
    seeds: list[int]
    left_out: dict[str, float]
    field: str = "error"

    def column(self, method: str) -> Array:
        """Return the errors of a method."""
        return self.errors[:, self.methods.index(method)]


def compare(
    records: Records,
    sets: Iterable[str],
    methods: Iterable[str],
    *,
    always: Sequence[str] = (),
    field: str = "error",
) -> Comparison:
    """Return the comparison of the methods that were tried on most of the sets and splits.

    Parameters
    ----------
    records : Records
    sets, methods : names
        In the order of the result.
    always : names
        Sets count that all of these have been tried on; without it, sets with any record.
    field : str
        What is compared; a failure has an infinite value. Records of classifiers without
        probabilities have no measure and count as not tried.
    """
    known = {
        pair: {s: r for s, r in found.items() if r["status"] != OK or r.get(field) is not None}
        for pair, found in records.tried.items()
    }
    known = {pair: found for pair, found in known.items() if found}
    methods = list(methods)
    tried = [s for s in sets if any((s, m) in known for m in methods)]
    if always:
        tried = [s for s in tried if all((s, m) in known for m in always)]
    asked = {s: _splits(known, s, always or methods) for s in tried}
    share = {
        m: np.mean([len(asked[s] & set(known.get((s, m), ()))) / len(asked[s]) for s in tried])
        if tried
        else 0.0
        for m in methods
    }
    kept = [m for m in methods if share[m] >= ENOUGH]
    names, rows, half, seeds = [], [], [], []
    for s in tried:
        if not kept or any((s, m) not in known for m in kept):
            continue
        common = set.intersection(*(set(known[s, m]) for m in kept))
        if not common:
            continue
        found = [[known[s, m][seed] for seed in sorted(common)] for m in kept]
        names.append(s)
        rows.append([_mean(some, field) for some in found])
        half.append(half_row(found[0][0], field))
        seeds.append(len(common))
    errors = np.array(rows, dtype=float).reshape(len(names), len(kept))
    left = {m: float(share[m]) for m in methods if m not in kept and share[m] > 0}
    return Comparison(names, kept, errors, np.array(half, dtype=float), seeds, left, field)


def _splits(known: Mapping[tuple[str, str], Any], name: str, methods: Sequence[str]) -> set[int]:
    """Return the seeds of a set that all of the methods have, or else any of them."""
    found = [set(known[name, m]) for m in methods if (name, m) in known]
    return set.intersection(*found) or set.union(*found)


TIMES = ("fit_s", "fit_cpu", "predict_s", "predict_cpu", "one_row_s", "rows_per_s")
"""Fields that depend on the machine."""


def paired(
    records: Records, sets: Iterable[str], first: str, second: str, field: str
) -> tuple[list[str], Array, Array]:
    """Return the sets, and mean values of a field of two methods over common seeds.

    Converted records have no say but for the error. Times are those of the first split for which
    both were measured on the same machine with the same threads and jobs.
    """
    known = records.tried
    names, a, b = [], [], []
    for s in sets:
        one, two = (
            {seed: r for seed, r in known.get((s, m), {}).items() if has(r, field)}
            for m in (first, second)
        )
        common = sorted(set(one) & set(two))
        if field in TIMES:
            common = [seed for seed in common if _alike(records, one[seed], two[seed])][:1]
        if common:
            names.append(s)
            a.append(np.mean([one[seed][field] for seed in common]))
            b.append(np.mean([two[seed][field] for seed in common]))
    return names, np.array(a, dtype=float), np.array(b, dtype=float)


def _alike(records: Records, one: dict[str, Any], two: dict[str, Any]) -> bool:
    """Return whether two records were measured on the same machine in the same way."""
    about = [records.runs.get(r.get("run", ""), {}) for r in (one, two)]
    return all(about[0].get(name) == about[1].get(name) for name in ("machine", "threads", "jobs"))


def values(records: Records, name: str, method: str, field: str) -> list[float]:
    """Return a field of all records of a set and a method that have it."""
    found = records.tried.get((name, method), {})
    return [float(r[field]) for _, r in sorted(found.items()) if has(r, field)]


def has(record: dict[str, Any], field: str) -> bool:
    """Return whether a record may be asked for a field."""
    return record["status"] == OK and record.get(field) is not None


def _mean(some: list[dict[str, Any]], field: str) -> float:
    if not all(has(record, field) for record in some):
        return float("inf")
    return float(np.mean([record[field] for record in some]))


def half_row(record: dict[str, Any], field: str = "error") -> float:
    """Return half a test row, 0 for numbers: an error of 0 does not make a ratio 0."""
    if record.get("task") == "numbers" or not record.get("n_test"):
        return 0.0
    return (50.0 if field == "error" else 0.5) / float(record["n_test"])
