"""The output code of many classes, chosen on a sample; rows with the targets of a code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray, pick, times
from lssvm.backends.host import Host
from lssvm.backends.rows import Rows
from lssvm.codes import Coding, one_vs_one
from lssvm.codes.code import ONE_VS_ONE_UP_TO
from lssvm.data.folds import Folds, assign_folds, hash_rows
from lssvm.fitting.settings import KernelChoice, usual_C_range
from lssvm.tasks import Classes
from lssvm.tuning.fixed_size import FixedSizeObjective
from lssvm.tuning.search import Space

PAIRS_UP_TO = 60
"""Classes beyond which pairs are not tried: 1,770 binary problems."""
ROWS, OF_A_CLASS = 4_000, 10
"""Rows that the codes are compared on, about, and those of a class at least."""
PROTOTYPES = 200
"""Prototypes of the models that are compared."""
WIDTHS = (0.1, 0.3, 1.0)
"""What gamma="scale" is multiplied by, where gamma is tuned."""
N_C = 20
"""Values of C that are tried."""


def class_rows(
    task: Classes,
    X: Any,
    labels: IntArray,
    weight: FloatArray | None,
    host: Host,
    *,
    by_class: bool,
    counts: FloatArray | None = None,
) -> Rows:
    """Return rows of known classes, with their targets and weights.

    ``by_class`` says that the recipe keeps moments per class where the task asks for that: weights
    of rows are then without those of classes. ``counts`` are the weights of the classes where these
    rows are a sample of all.
    """
    table = task.table(task.counts(labels, weight) if counts is None else counts)
    own = times(weight, table.row_factors(labels))
    apart = by_class and task.per_class
    return Rows(
        X,
        table.looked_up(labels),
        weight if apart else own,
        labels,
        loss_weight=own,
        sample_weight=weight,
        budget=host.budget,
        threads=host.threads,
    )


def is_open(multiclass: Any, task: Classes, choice: KernelChoice) -> bool:
    """Return whether a code is to be chosen for as many classes as these."""
    few = ONE_VS_ONE_UP_TO < task.n_classes <= PAIRS_UP_TO
    return is_auto(multiclass) and few and not choice.precomputed


def is_auto(multiclass: Any) -> bool:
    """Return whether no output code is named."""
    code = Coding.of(multiclass).code
    return isinstance(code, str) and code == "auto"


def better_code(rows: Rows, task: Classes, choice: KernelChoice, C: float | None) -> Classes:
    """Return the task with the better of its own code and one-vs-one."""
    pairs = replace(task, code=one_vs_one(task.n_classes))
    assert rows.labels is not None
    some = _sample(rows.X, np.asarray(rows.labels), task.n_classes)
    X, labels, weight = rows.X[some], rows.labels[some], pick(rows.sample_weight, some)
    Z = _prototypes(X, choice)
    first = assign_folds(X, 3, labels=labels).test[:1]
    gamma = choice.fixed_gamma(X, weight, rows.gamma_scale() if choice.has_gamma else None)
    gammas = [gamma]
    if choice.tunes_gamma:
        gammas = [width * rows.gamma_scale() for width in WIDTHS]
    grid = Space(C=C, C_range=usual_C_range(rows, choice)).C_grid(N_C)
    host = Host(rows.budget, rows.threads)

    def error(code: Classes) -> float:
        own = class_rows(code, X, labels, weight, host, by_class=True)
        by_class = code if code.per_class else None
        data = (own, Z, Folds(first), code.loss(None), by_class)
        objective = FixedSizeObjective(choice.at, *data, grid if len(code.groups()) > 1 else None)
        means = [objective.at(value).losses(grid).mean for value in gammas]
        return float(np.min([np.min(np.where(np.isnan(mean), np.inf, mean)) for mean in means]))

    return pairs if error(pairs) < error(task) else task


def _sample(X: Any, labels: IntArray, n_classes: int) -> IntArray:
    """Return rows of all classes in proportion, at least a few of each."""
    hashes, share = hash_rows(X), min(1.0, ROWS / X.shape[0])
    parts = []
    for c in range(n_classes):
        own = np.flatnonzero(labels == c)
        size = max(OF_A_CLASS, round(share * len(own)))
        parts.append(own[np.argsort(hashes[own], kind="stable")[:size]])
    return np.sort(np.concatenate(parts))


def _prototypes(X: Any, choice: KernelChoice) -> Any:
    """Return the rows of the smallest hashes, or the axes of a linear kernel."""
    if choice.name == "linear" and X.shape[1] <= PROTOTYPES:
        return np.eye(X.shape[1])
    return X[np.argsort(hash_rows(X, 1), kind="stable")[:PROTOTYPES]]
