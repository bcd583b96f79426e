"""A metric of the inputs of one kernel model: given as an array, or learned in rounds."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lssvm._core.arrays import FloatArray, IntArray, is_sparse, pick
from lssvm._core.blocks import require
from lssvm._core.errors import InvalidInputError
from lssvm.backends.host import Host
from lssvm.backends.rows import Rows
from lssvm.data.folds import hash_rows
from lssvm.fitting.table_record import DISTANCE
from lssvm.fitting.table_work import N_FOLDS, clearly_best
from lssvm.kernels import Kernel, Metric
from lssvm.kernels.dot import variances
from lssvm.kernels.factory import KernelChoice
from lssvm.kernels.metric import IDENTITY, Shape, check_length, mean_outer_product, read_metric
from lssvm.kernels.radial import distances

IN_FOLDS = 2500
"""Below as many rows a metric is scored in folds, above on rows that are set aside."""

_ROUNDS = 4
_FITTED, _GRADIENTS = 2000, 4000  # rows of a fit, and at which gradients are taken, at most
_ENOUGH = 50  # rows below which nothing is learned
_C = 10.0  # for targets of variance 1 and a kernel of width 1


def check_metric(choice: KernelChoice) -> Metric | Shape:
    """Return the metric of a kernel, checked: a given map, or the shape of a learned one."""
    metric = choice.metric
    if choice.precomputed or choice.name is None or choice.name == "function":
        raise InvalidInputError(
            f"metric={metric!r} maps the inputs of a kernel, but kernel={choice.kernel!r} has no "
            "gradients with respect to them here: name a kernel such as 'rbf'."
        )
    if choice.uses_ard:
        raise InvalidInputError(
            "gamma='ard' and a metric both scale the features: use one of them, such as "
            "gamma='cv' with MetricKernel('rbf', 'diagonal')."
        )
    return read_metric(metric)


def metric_of(metric_option: Metric | Shape, rows: Rows, choice: KernelChoice, seed: int) -> Metric:
    """Return the given map of the inputs, or a learned one.

    A round fits a dual model to at most 2,000 rows, at a fixed C and one over the median distance
    for gamma, and averages the outer products of its gradients at no more than 4,000 rows
    ([Radhakrishnan2024]). The rounds, at most 4, are scored by squared errors of rows that made
    no gradient: below 2,500 rows in 5 folds with a metric each, above on a quarter of the rows.
    Where the gain is not clear, or with fewer than 50 rows, the inputs stay as they are.
    """
    d, sparse = rows.X.shape[1], is_sparse(rows.X)
    full = metric_option == "full" or (
        isinstance(metric_option, Metric)
        and metric_option.map is not None
        and metric_option.map.ndim == 2
    )
    if sparse and full:
        raise InvalidInputError(
            "A full metric makes sparse rows dense: use metric='diagonal' or an array of shape "
            "(d,), or give a dense X."
        )
    if isinstance(metric_option, Metric):
        check_length(metric_option, d, f"X has {d} features")
        return metric_option
    require(
        8 * (4 * d * d if full else _GRADIENTS * d) + 24 * _FITTED**2,
        rows.budget,
        what=f"A {metric_option} metric of {d} features",
        advice="Use metric='diagonal' or None, or raise memory_budget.",
    )
    if rows.n_rows < _ENOUGH:
        return IDENTITY
    return _Rounds(rows, choice, metric_option, seed).learn()


_Model: TypeAlias = tuple[Kernel, FloatArray, FloatArray, FloatArray]  # Z, coef, intercept


class _Rounds:
    """Rounds on rows in main memory."""

    def __init__(self, rows: Rows, choice: KernelChoice, shape: Shape, seed: int) -> None:
        # In a random order that depends on the number of the rows alone, not on their content.
        some = np.random.default_rng(seed).permutation(rows.n_rows)[: 2 * _GRADIENTS]
        X: Any = rows.X[some]
        self.X = np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)
        if rows.labels is None:
            Y = np.asarray(rows.Y[some], dtype=np.float64)
        else:
            Y = (rows.labels[some][:, None] == np.arange(rows.labels.max() + 1)) * 1.0
        row_weight = pick(rows.targets.weight, some)
        self.weight = np.ones(len(some)) if row_weight is None else row_weight / row_weight.mean()
        centred = Y - np.average(Y, axis=0, weights=self.weight)
        spread = np.sqrt(np.average((centred**2).sum(axis=1), weights=self.weight))
        self.Y = centred / (spread if spread > 0 else 1.0)
        key = hash_rows(self.X) if rows.groups is None else rows.groups[rows.row_numbers][some]
        _, first, number = np.unique(key, return_index=True, return_inverse=True)
        # equal rows, or groups, stay together
        self.group = np.argsort(np.argsort(first))[number].astype(np.intp)
        self.choice, self.shape = choice, shape
        self.host = Host(rows.budget, rows.threads)

    def learn(self) -> Metric:
        n = len(self.X)
        every = np.arange(n, dtype=np.intp)
        if n >= IN_FOLDS:
            aside = np.flatnonzero(self.group % 4 == 0)
            losses, metrics = self._scored(np.flatnonzero(self.group % 4 != 0), aside)
            return self._scaled(metrics[clearly_best(losses)])
        table: list[list[FloatArray]] = []
        for v in range(N_FOLDS):
            inside = np.flatnonzero(self.group % N_FOLDS == v)
            if not len(inside) or len(inside) == n:
                return IDENTITY
            losses, _ = self._scored(np.flatnonzero(self.group % N_FOLDS != v), inside)
            # a fold that has stopped stays where it was
            table.append([losses[min(r, len(losses) - 1)] for r in range(_ROUNDS + 1)])
        whole = np.array([np.concatenate([fold[r] for fold in table]) for r in range(_ROUNDS + 1)])
        best = clearly_best(whole)
        metric = IDENTITY
        for _ in range(best):
            metric = self._next(every, metric, self._fit(every, metric))
        return self._scaled(metric)

    def _scored(self, learn: IntArray, held_out: IntArray) -> tuple[FloatArray, list[Metric]]:
        """Return the losses of rows set aside after every round, and the metrics of the rounds."""
        metric, metrics, losses = IDENTITY, [], []
        for done in range(_ROUNDS + 1):
            kernel, Z, coef, intercept = model = self._fit(learn, metric)
            out = self.host.outputs(kernel, metric.apply(self.X[held_out]), Z, coef, intercept)
            losses.append(((self.Y[held_out] - out) ** 2).sum(axis=1) * self.weight[held_out])
            metrics.append(metric)
            if done and losses[-1].mean() > 0.99 * losses[-2].mean():
                break
            if done < _ROUNDS:
                metric = self._next(learn, metric, model)
        return np.array(losses), metrics

    def _fit(self, chosen: IntArray, metric: Metric) -> _Model:
        """Solve the bordered system of the dual for some rows, the first ones."""
        some = chosen[:_FITTED]
        Z, Y = metric.apply(self.X[some]), self.Y[some]
        kernel = self.choice.at(self._gamma(Z))
        K = np.array(kernel(Z, Z), dtype=np.float64)
        K[np.diag_indices_from(K)] += K.diagonal().mean() / (_C * self.weight[some])
        solved = cho_solve(cho_factor(K, overwrite_a=True), np.column_stack([np.ones(len(Z)), Y]))
        intercept = solved[:, 1:].sum(axis=0) / solved[:, 0].sum()
        return kernel, Z, solved[:, 1:] - solved[:, :1] * intercept, intercept

    def _gamma(self, Z: FloatArray) -> Any:
        if not self.choice.has_gamma:
            return None
        name: Any = self.choice.name
        if name not in DISTANCE:
            return 1.0 / max(float(variances(Z, None).sum()), 1e-300)
        some = Z[:300]
        pairwise = distances(some, some, DISTANCE[name])[np.triu_indices(len(some), 1)]
        middle = float(np.median(pairwise))
        return 1.0 / middle if middle > 0 else 1.0

    def _next(self, chosen: IntArray, metric: Metric, model: _Model) -> Metric:
        kernel, Z, coef, _ = model
        at = chosen[:_GRADIENTS]
        use: dict[str, Any] = {"shape": self.shape, "threads": self.host.threads}
        use |= {"metric": metric, "weight": self.weight[at]}
        return Metric.of(mean_outer_product(kernel, metric.apply(self.X[at]), Z, coef, **use))

    def _scaled(self, metric: Metric) -> Metric:
        """Return a map that leaves the total variance of the rows as it is."""
        if metric.map is None:
            return metric
        before = variances(self.X, self.weight).sum()
        after = variances(metric.apply(self.X), self.weight).sum()
        return Metric(metric.map * np.sqrt(before / after)) if after > 0 else IDENTITY
