"""What fixed-size classifiers and regressors share: rows of any kind, updates, sparsity paths."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lssvm._core.errors import InvalidInputError
from lssvm.estimators.base import KernelEstimator
from lssvm.estimators.callbacks import listen
from lssvm.estimators.new_rows import NewRows
from lssvm.estimators.scan_opening import open_given, open_new_rows
from lssvm.recipes.fixed_settings import FixedSettings
from lssvm.recipes.fixed_size import fit_fixed_size
from lssvm.recipes.fixed_updates import forget_rows, sparsity_path
from lssvm.recipes.input_metric import check_metric
from lssvm.reductions import SparsityPath
from lssvm.solvers import PCG


def takes_rows(estimator: Any) -> bool:
    """Return True, or say why rows cannot be added to or removed from such a model."""
    if isinstance(estimator.solver, PCG) or estimator.solver == "pcg":
        raise InvalidInputError(
            "solver='pcg' keeps no moments, so rows cannot be added or removed: use "
            "solver='cholesky', or fit again."
        )
    loss = getattr(estimator, "loss", "squared")
    if loss != "squared":
        raise InvalidInputError(
            f"loss={loss!r} weights every row by its residual, so rows cannot be added or removed "
            "exactly: use loss='squared', or fit again."
        )
    return True


@dataclass(eq=False, repr=False)
class FixedSizeModel(KernelEstimator):
    """A kernel model of prototypes: parameters and methods that do not depend on the task."""

    n_prototypes: Any = "auto"
    _: KW_ONLY
    C: Any = "cv"
    gamma: Any = "cv"
    fit_intercept: bool | str = True
    selection: Any = "renyi"
    reduction: Any = None
    cv: Any = 10
    search: Any = "path"
    scoring: Any = None
    tuning: str = "joint"
    solver: Any = "auto"
    device: Any = None
    metric: Any = None

    def __sklearn_tags__(self) -> Any:
        """Say that arrays of other libraries are taken, and sparse ones where the kernel can."""
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Self:
        ask, tell = FixedSettings.of(self), listen(self)
        check_metric(self.metric, ask.choice)
        given = open_given(self, X, y, sample_weight, groups)
        rows, task, metric = given.rows(tell)
        fit = replace(fit_fixed_size(rows, task, ask.after(metric), tell), metric=metric)
        return self._publish(fit, given.like)

    @available_if(takes_rows)
    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Remove rows that the model has learned; exactly a fit without them.

        Parameters
        ----------
        X : array-like of shape (n, d), Scan, RowSource, Dask array or data frame
        y : array-like of shape (n,), or (n, n_outputs) of a regressor
        sample_weight : array-like of shape (n,), optional
            As it was when they were learned.

        Returns
        -------
        FixedSizeLSSVC or FixedSizeLSSVR
            Itself.
        """
        check_is_fitted(self)
        return self._change(forget_rows, X, y, sample_weight)

    def _change(self, change: Any, X: Any, y: Any, sample_weight: Any) -> Self:
        given = open_given(self, X, y, sample_weight)
        old = self.record_
        rows = given.further_rows(old.task, listen(self), old.details.centre)
        fit = change(old, rows, self._resources())
        self.__dict__.pop("sparsity_paths_", None)
        return self._publish(fit, self.dual_coef_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is right, or R^2 of a regressor.

        Parameters
        ----------
        X : array-like of shape (n, d), Scan, RowSource, Dask array or data frame
        y : array-like of shape (n,), or (n, n_outputs) of a regressor
            Not with a scan.
        sample_weight : array-like of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        return open_given(self, X, y, sample_weight).score()

    def sparsity_path(self) -> SparsityPath | list[SparsityPath]:
        r"""Return the cross-validated error against the number of support vectors.

        Returns
        -------
        SparsityPath
            With ``sizes``, ``mean`` and ``std_error`` of the squared error, the ``chosen`` size by
            the one-standard-error rule and ``supports``. A list of them, one per output, where the
            reduction has ``joint=False``.

        Notes
        -----
        Section V of [Mall2014]_. From the moments of the folds that `fit` has seen, without a pass
        over the data: about 15 v m^3 operations for v folds. A model that was reduced has computed
        it already. A model that was not keeps the moments of the folds (v m^2 numbers) where they
        take at most 5 % of ``memory_budget``, until it is pickled or rows are added.

        The error is the squared error of the outputs, for classes too (their targets are +1 and
        -1): moments give no other. `score` on held-out rows tells the accuracy.

        Examples
        --------
        >>> from lssvm import FixedSizeLSSVC
        >>> from lssvm.datasets import load_ripley
        >>> ripley = load_ripley()
        >>> X, y = ripley.data[ripley.train], ripley.target[ripley.train]
        >>> path = FixedSizeLSSVC(60).fit(X, y).sparsity_path()
        >>> path.chosen < 20
        True
        """
        check_is_fitted(self)
        self.record_, paths = sparsity_path(self.record_, FixedSettings.of(self).reduced_C_grid())
        self.sparsity_paths_ = paths
        return paths[0] if len(paths) == 1 else list(paths)

    def _new_rows(self, X: Any, method: str = "predict") -> NewRows:
        return open_new_rows(self, X, method)
