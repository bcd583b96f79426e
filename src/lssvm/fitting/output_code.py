"""Which output code many classes get: that of the smaller cross-validated error on a sample."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.backends.host import HostRows
from lssvm.codes import one_vs_one
from lssvm.codes.constructors import ONE_VS_ONE_UP_TO
from lssvm.data.folds import Folds, content_folds, hash_rows
from lssvm.fitting.record import Resources
from lssvm.fitting.settings import KernelChoice, usual_C_range
from lssvm.tasks import Classes
from lssvm.tasks.weights import pick, times
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
    resources: Resources,
    *,
    by_class: bool,
    counts: FloatArray | None = None,
) -> HostRows:
    """Return rows of known classes, with their targets and weights.

    ``by_class`` says that the recipe keeps moments per class where the task asks for that: weights
    of rows are then without those of classes. ``counts`` are the weights of the classes where these
    rows are a sample of all.
    """
    table = task.table(task.counts(labels, weight) if counts is None else counts)
    own = times(weight, table.row_factors(labels))
    apart = by_class and task.per_class
    return HostRows(
        X,
        table.looked_up(labels),
        weight if apart else own,
        labels,
        loss_weight=own,
        sample_weight=weight,
        budget=resources.budget,
        threads=resources.threads,
    )


def is_open(multiclass: Any, task: Classes, choice: KernelChoice) -> bool:
    """Return whether a code is to be chosen for as many classes as these."""
    auto = isinstance(multiclass, str) and multiclass == "auto"
    few = ONE_VS_ONE_UP_TO < task.n_classes <= PAIRS_UP_TO
    return auto and few and not choice.precomputed


def better_code(rows: HostRows, task: Classes, choice: KernelChoice, C: float | None) -> Classes:
    """Return the task with the better of its own code and one-vs-one.

    Parameters
    ----------
    rows : HostRows
        With class numbers.
    task : Classes
        With the code for many classes, one-vs-all.
    choice : KernelChoice
    C : float or None
        None: it is tuned.

    Returns
    -------
    Classes

    Notes
    -----
    Both codes tell apart a third of about 4,000 rows (those of the smallest hashes, class by class)
    from models with 200 prototypes among the others: at three widths where gamma is tuned, with the
    best of 20 values of C; one-vs-one with a C for each pair. Equal errors: the shorter code. About
    k^2/2 systems of 200 unknowns for every width.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.fitting.output_code import better_code, class_rows
    >>> from lssvm.fitting.record import Resources
    >>> from lssvm.fitting.settings import KernelChoice
    >>> from lssvm.tasks import Classes
    >>> X = np.linspace(0, 1, 600)[:, None]  # twelve intervals on a line: pairs are easy to part
    >>> task = Classes.of(np.arange(12), multiclass="auto")
    >>> labels = np.repeat(np.arange(12), 50)
    >>> rows = class_rows(task, X, labels, None, Resources(10**9, 1), by_class=True)
    >>> better_code(rows, task, KernelChoice("linear"), None).code.name
    'ovo'
    """
    pairs = replace(task, code=one_vs_one(task.n_classes))
    assert rows.labels is not None
    some = _sample(rows.X, np.asarray(rows.labels), task.n_classes)
    X, labels, weight = rows.X[some], rows.labels[some], pick(rows.sample_weight, some)
    Z = _prototypes(X, choice)
    first = content_folds(X, 3, labels=labels).test[:1]
    gamma = choice.fixed_gamma(X, weight, rows.gamma_scale() if choice.has_gamma else None)
    gammas = [gamma]
    if choice.tunes_gamma:
        gammas = [width * rows.gamma_scale() for width in WIDTHS]
    grid = Space(C=C, C_range=usual_C_range(rows, choice)).C_grid(N_C)
    resources = Resources(rows.budget, rows.threads)

    def error(code: Classes) -> float:
        own = class_rows(code, X, labels, weight, resources, by_class=True)
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
