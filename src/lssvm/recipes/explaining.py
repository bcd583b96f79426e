"""What a fitted kernel model is made of, as terms whose explanations add up."""

from __future__ import annotations

from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.memory import require
from lssvm._core.namespace import is_sparse
from lssvm.explanations import Contrast, Expansion, Term
from lssvm.recipes.record import Fit, Resources
from lssvm.tasks import Classes


def dense_rows(X: Any, budget: int) -> FloatArray:
    """Return rows as a dense array of float64, where they fit into the budget.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.recipes.explaining import dense_rows
    >>> dense_rows(np.ones((1, 2), dtype=np.float32), 10**6).dtype
    dtype('float64')
    """
    if is_sparse(X):
        require(
            8 * X.shape[0] * X.shape[1],
            budget,
            what=f"Explaining {X.shape[0]} sparse rows of {X.shape[1]} features",
            advice="Explain fewer rows at a time, or raise memory_budget.",
        )
        X = X.toarray()
    return np.asarray(X, dtype=np.float64)


def output_names(task: Any) -> tuple[str, ...]:
    """Return names of what is explained: classes, or targets.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.recipes.explaining import output_names
    >>> from lssvm.tasks import Classes, Numbers
    >>> output_names(Numbers(2, single=False))
    ('output 0', 'output 1')
    >>> output_names(Classes.of(np.array(["a", "b"]), multiclass="auto"))
    ('b',)
    """
    if isinstance(task, Classes):
        shown = task.classes[1:] if task.n_classes == 2 else task.classes
        return tuple(str(label) for label in shown)
    return ("prediction",) if task.single else tuple(f"output {j}" for j in range(task.n_outputs))


def terms_of_fit(fit: Fit, rows: Contrast, resources: Resources) -> list[Term]:
    """Return the terms of a kernel model's predictions or decision values.

    Parameters
    ----------
    fit : Fit
    rows : Contrast
        In the features of the kernel, before the metric.
    resources : Resources

    Returns
    -------
    list of Term
        An expansion for every kernel, where decision values are linear in the outputs; where they
        count votes, one function.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.explanations import Contrast
    >>> from lssvm.recipes.explaining import terms_of_fit
    >>> from lssvm.recipes.record import Resources
    >>> X = np.arange(4.0)[:, None]
    >>> fit = LSSVR().fit(X, X[:, 0]).record_
    >>> [term.exact for term in terms_of_fit(fit, Contrast.of(X, X), Resources(10**6, 1))]
    [True]
    """
    task = fit.task
    linear = task.linear_scores() if isinstance(task, Classes) else np.eye(fit.coef.shape[1])
    if linear is None:
        return [Term(rows, lambda X: task.scores(fit.outputs(fit.metric.apply(X), resources)))]
    basis = fit.basis
    if is_sparse(basis):
        basis = dense_rows(basis, resources.budget)
    return [
        Term(
            rows,
            Expansion(
                kernel,
                basis,
                np.asarray(coef, dtype=np.float64) @ linear[columns],
                np.asarray(intercept, dtype=np.float64) @ linear[columns],
                fit.metric,
            ),
        )
        for columns, kernel, coef, intercept in fit.expansions()
    ]
