r"""Greedy approximation: one basis function at a time, until every row is predicted well enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lssvm._core.arrays import BoolArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError, not_known, not_usable
from lssvm._core.magnitudes import check_gram
from lssvm._core.random import RandomState, as_generator
from lssvm.greedy.columns import KernelColumns, Search
from lssvm.greedy.full import FullSearch
from lssvm.greedy.path import (
    Greedy,
    GreedyPath,
    OnEvent,
    Trace,
    best_size,
    cholesky,
    own_errors,
    solve_size,
    support_gram,
)
from lssvm.greedy.pursuit import Pursuit
from lssvm.greedy.sampled import SampledSearch
from lssvm.solvers import DualSystem

_CRITERIA = ("fsals", "kmp", "sggp")


def greedy_paths(
    system: DualSystem,
    Y: FloatArray,
    settings: Greedy | None = None,
    *,
    held_out: BoolArray | None = None,
    random_state: RandomState = 0,
    on_event: OnEvent | None = None,
    left_out: bool = False,
) -> list[GreedyPath]:
    r"""Build sparse models of several targets, one basis function at a time.

    Algorithms 1 (FSALS) and 2 (PFSALS) of [Jiao2007]_, and the losses of kernel matching pursuit
    and of the sparse greedy Gaussian process (eqs. (36) and (37)) in the same scheme: the row whose
    kernel function promises the largest fall of the loss joins the basis, and the coefficients of
    the whole basis are solved for again.

    Parameters
    ----------
    system : DualSystem
        Kernel, rows, C, weights; ``bias=False`` drops the border of eq. (12).
    Y : array of shape (n, k)
        Every column is a problem of its own, with its own basis.
    settings : Greedy, optional
        Criterion, candidates and when to stop; None: the defaults.
    held_out : bool array of shape (n,), optional
        Rows that never join a basis; the size with the smallest squared error on them is kept.
    random_state : int, Generator, RandomState or None, default=0
        Draws the candidates.
    on_event : callable, optional
        Called with a dict that says how far a run is.
    left_out : bool, default=False
        Whether the paths of "fsals" get the leave-one-out predictions of all rows at this C, for
        m^3/3 operations more (n m k with candidates); where held-out rows cut a run, they do not.

    Returns
    -------
    list of GreedyPath
        One per column.

    Notes
    -----
    The paper's gamma is C/2 (its matrix is K + I/(2 gamma)), and step 7 of its algorithms lacks the
    -y of eq. (28). With weights s_i the ridge of row i is 1/(C s_i).

    The bias is the border of the system of every subproblem (eqs. (13), (16)): after each step
    sum_P alpha = 0, and the model is exactly the LS-SVM trained on the rows P alone. The first
    basis function therefore gets the coefficient zero and only sets the bias. The selection
    (eq. (27)) moves one coefficient with the bias held, which is not feasible by itself; it ranks.
    For "kmp" and "sggp", whose losses have no bias in print, the bias is the weighted mean of what
    is left, so that the columns of K are centred; ``system.bias=False`` gives the print.

    Time n m^2 + n m d per problem of final size m with all candidates, m^3 + candidates m^2 with
    some; kernel columns are shared by all problems. "kmp" and "sggp": n^2 m, or n m candidates
    (times m with prefitting).

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.greedy import Greedy, greedy_paths
    >>> from lssvm.solvers import DualSystem
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> system = DualSystem(RBF(1.0), X, X, C=100.0)
    >>> sine, cosine = greedy_paths(system, np.hstack([np.sin(X), np.cos(X)]), Greedy(epsilon=0.1))
    >>> bool(np.all(np.diff(sine.objective) <= 0)), bool(sine.error[-1] <= 0.1)
    (True, True)
    """
    settings = settings or Greedy()
    check_settings(settings)
    n = system.n
    usable = np.ones(n, dtype=bool) if held_out is None else ~np.asarray(held_out, dtype=bool)
    if not usable.any():
        raise InvalidInputError("Every row is held out: leave at least one to learn from.")
    Y = np.asarray(Y, dtype=np.float64)
    weight = np.ones(n) if system.root_weight is None else system.root_weight.astype(float) ** 2
    rng = as_generator(random_state)
    if settings.criterion != "fsals":
        pursuit = Pursuit(system, settings, usable=usable, weight=weight, on_event=on_event)
        draws = rng.spawn(Y.shape[1])
        return [pursuit.run(y, draws[j], j) for j, y in enumerate(Y.T)]
    ridge = 1.0 / (system.C * weight)  # 1/(2 gamma) of [Jiao2007, eq. (12)]
    diagonal = system.kernel_diagonal()
    check_gram(diagonal)
    H = diagonal.astype(np.float64) + ridge
    columns = KernelColumns(system, share=0.4 if settings.candidates is None else 0.8)
    search = Search(columns, ridge, H, settings, system.bias, usable, weight, on_event)
    if settings.candidates is None:
        limit = min(n, max(1, int(0.4 * system.budget / (n * system.dtype.itemsize))))
        traces = [FullSearch(search, y, limit, j).run() for j, y in enumerate(Y.T)]
    else:
        traces = SampledSearch(search, Y, rng, want_fitted=left_out).run()
    return [_finish(search, trace, y, left_out) for trace, y in zip(traces, Y.T, strict=True)]


def check_settings(settings: Greedy) -> None:
    """Raise `InvalidInputError` for settings that cannot be used."""
    if settings.criterion not in _CRITERIA:
        raise not_known("criterion", settings.criterion, f"choose one of {_CRITERIA}.")
    epsilon = settings.epsilon
    number = isinstance(epsilon, (int, float, np.number)) and not isinstance(epsilon, bool)
    if not number or not 0 <= epsilon < np.inf:
        raise not_usable("epsilon", epsilon, "give a finite number >= 0.")
    for name in ("candidates", "max_support", "patience"):
        value, limit = getattr(settings, name), ", or None for no limit"
        limit = "" if name == "patience" else limit
        if value is None and limit:
            continue
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
            raise not_usable(name, value, f"give a whole number >= 1{limit}.")


def support_factor(system: DualSystem, support: IntArray) -> FloatArray:
    """Return the lower Cholesky factor of K + 1/(C s) on the support, shape (m, m), in float64."""
    ridge = 1.0 / (system.C * np.asarray(system.u)[support] ** 2)
    return cholesky(support_gram(system, support) + np.diag(ridge))


def change_C(system: DualSystem, path: GreedyPath, C: float, criterion: str) -> GreedyPath:
    """Return the path with its coefficients solved again at another C, on the same basis.

    Parameters
    ----------
    system : DualSystem
        With the C of the run.
    path : GreedyPath
    C : float
    criterion : {"fsals", "kmp", "sggp"}

    Returns
    -------
    GreedyPath
        Its traces are those of the run.
    """
    if len(path.support) == 0:
        return path
    if path.factor is None:
        coef, b = path.at(len(path.support), support_factor(replace(system, C=C), path.support))
        return replace(path, coef=coef, intercept=b, left_out=None)
    m = len(path.support)
    D = support_gram(system, path.support) if criterion == "sggp" else np.eye(m)
    factor = cholesky(path.factor @ path.factor.T + D * (1.0 / C - 1.0 / system.C))
    coef, b = path.at(m, factor)
    return replace(path, coef=coef, intercept=b, factor=factor)


def _finish(search: Search, trace: Trace, y: FloatArray, left_out: bool) -> GreedyPath:
    size, bias = best_size(trace, search.settings.patience), search.bias
    kept = trace.cut(size)
    support = kept["support"]
    coef, intercept, others = np.empty(0), 0.0, None
    if size:
        K = search.columns.block(support, support)
        factor = cholesky(K + np.diag(search.ridge[support]))
        coef, intercept = solve_size(factor, y[support], bordered=bias)
        if left_out and size == len(trace.support) and trace.fitted is not None:
            others = trace.fitted
            others[support] = y[support] - own_errors(factor, coef, bias, y[support])
    solved = {"coef": coef, "intercept": intercept, "targets": y[support], "left_out": others}
    return GreedyPath(**kept, **solved, bordered=bias)
