"""What the fixed-size estimators do for a second level of sparsity."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm._core.memory import as_bytes
from lssvm._core.threads import n_threads
from lssvm.estimators._stored import need_stored
from lssvm.estimators._validation import check_C
from lssvm.estimators.fixed_subsample import (
    DualFit,
    fit_subsample,
    prototype_systems,
    subsample,
)
from lssvm.folds.content import restrict_folds
from lssvm.kernels import Kernel
from lssvm.moments import Moments
from lssvm.moments.cells import ClassTable, FoldMoments
from lssvm.reductions import (
    FixedSizeL0,
    PrototypeBasis,
    SparsityPath,
    cross_validate_sizes,
    l0_order,
    reduce_as_printed,
)
from lssvm.reductions.fixed_size import METHODS
from lssvm.search.space import Space

if TYPE_CHECKING:
    from lssvm.estimators._problem import FixedProblem


N_C = 20  # values of C that a reduced model is tuned over
KEEP = 0.05  # part of the memory budget up to which the moments of the folds are kept


@dataclass(frozen=True, eq=False)
class ReducedFit:
    """A reduced expansion.

    Attributes
    ----------
    support : int array of shape (m',)
        Which prototypes are left, ascending.
    coef : array of shape (m', k)
    intercept : array of shape (k,)
    C : array of shape (k,)
    used : bool array of shape (m', k) or None
        Which output uses which prototype, where they were dropped for each output by itself.
    paths : list of SparsityPath
        One for all outputs, or one for each; empty where there are no folds.
    moments : list of Moments
        Of all rows, for the prototypes that are left.
    """

    support: IntArray
    coef: FloatArray
    intercept: FloatArray
    C: FloatArray
    used: NDArray[np.bool_] | None
    paths: list[SparsityPath]
    moments: list[Moments]


class ReducibleModel(BaseEstimator):
    """Base of the fixed-size estimators: reductions and the sparsity path."""

    _kept: PrototypeBasis | None = None  # for `sparsity_path` of a model that is not reduced
    _used: NDArray[np.bool_] | None = None
    _no_update: str | None = None  # why rows cannot be added or removed

    def __getstate__(self) -> dict[str, Any]:
        # The moments of the folds may be ten times the model: they do not travel with it.
        return {key: value for key, value in super().__getstate__().items() if key != "_kept"}

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
        paths = getattr(self, "sparsity_paths_", None)
        if not paths:
            if self._kept is None:
                raise InvalidInputError(
                    "sparsity_path needs the moments of the folds, which this model does not have: "
                    "they are there after a fit that tunes something by cross-validation (not "
                    "leave-one-out), as long as they fit into 5 % of memory_budget, no rows were "
                    "added or removed and the model was not pickled. Fit with reduction='spfs', "
                    "which computes the path inside fit, or raise memory_budget."
                )
            every = np.arange(len(self._kept.C))
            paths = [cross_validate_sizes(self._kept, every, self._reduced_grid())]
            self.sparsity_paths_ = paths
        return paths[0] if len(paths) == 1 else list(paths)

    def _reduced_grid(self) -> FloatArray | None:
        return Space().C_grid(N_C) if check_C(self.C) is None else None

    def _reduction_settings(self) -> FixedSizeL0 | None:
        """Check ``reduction`` and ``n_support``."""
        given, size = self.reduction, self.n_support
        reduction = FixedSizeL0(given) if isinstance(given, str) and given in METHODS else given
        if reduction is not None and not isinstance(reduction, FixedSizeL0):
            raise InvalidInputError(
                f"reduction={given!r} is not usable: choose None, {', '.join(map(repr, METHODS))}, "
                "or a lssvm.reductions.FixedSizeL0."
            )
        if size is None:
            return reduction
        if reduction is None or reduction.method == "sd":
            raise InvalidInputError(
                f"n_support={size!r} needs a reduction: give reduction='spfs', 'ssd' or 'sv-l0'."
            )
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 1:
            raise InvalidInputError(
                f"n_support={size!r} is not usable: give a positive int, or None to have it chosen."
            )
        return reduction

    def _moments_to_reduce(
        self, reduction: FixedSizeL0, problem: FixedProblem, kernel: Kernel, Z: FloatArray
    ) -> FoldMoments:
        """Accumulate the moments of the folds at given parameters: one pass, none for "sd"."""
        if reduction.method == "sd":
            return FoldMoments.without_folds([], None)
        objective = problem.objective(
            lambda _: kernel,
            Z,
            self._folds(problem),
            None,
            as_bytes(self.memory_budget),
            n_threads(self.n_jobs),
        )
        return objective.at(None).moments  # type: ignore[no-any-return]

    def _dual_on_prototypes(
        self,
        reduction: FixedSizeL0 | None,
        problem: FixedProblem,
        Z: FloatArray,
        support: IntArray,
        gamma: Any,
    ) -> DualFit | None:
        """Fit the dual model to the prototypes alone where the reduction starts from it."""
        self._kept = self._used = self._no_update = None
        if reduction is None or reduction.method not in ("ssd", "sd"):
            return None
        if isinstance(self.n_prototypes, str) and self.n_prototypes == "cv":
            raise InvalidInputError(
                f"n_prototypes='cv' cannot be used with reduction={reduction.method!r}, which "
                "tunes on the prototypes alone: give a number, or 'auto'."
            )
        part = subsample(problem, Z, support, reduction.method)
        cv = self.cv
        if not isinstance(cv, (int, np.integer, str)):  # folds of all rows: what is left of them
            given = self._folds(problem.sample or problem)
            folds = restrict_folds(given, part.rows, len(problem.X))
            everyone = np.arange(len(part.rows))
            train = folds.train or [np.setdiff1d(everyone, test) for test in folds.test]
            cv = [pair for pair in zip(train, folds.test, strict=True) if len(pair[0])]
        return fit_subsample(self, part, Z, gamma, cv)

    def _second_level(
        self,
        reduction: FixedSizeL0 | None,
        problem: FixedProblem,
        kernel: Kernel,
        Z: FloatArray,
        support: IntArray,
        moments: FoldMoments | None,
        C: FloatArray,
        dual: DualFit | None,
    ) -> ReducedFit | None:
        """Reduce a model that has been solved, or keep what `sparsity_path` will need."""
        if moments is None:
            return None
        given = None
        if reduction is not None and reduction.method == "sv-l0":
            part = subsample(problem, Z, support, reduction.method)
            given = prototype_systems(kernel, Z, part, problem.groups, problem.table)
        start = None if dual is None else dual.coef
        threads = n_threads(self.n_jobs) if problem.on_host else 1
        basis = PrototypeBasis(kernel, Z, moments, C, start, given, threads)
        if reduction is not None:
            return self._reduce(basis, reduction, dual)
        self._keep(basis)
        return None

    def _solve_again(
        self, whole: list[Moments], table: ClassTable | None, C: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Solve on the prototypes that are left, after rows were added or removed."""
        if self._used is None:
            solved: tuple[FloatArray, FloatArray] = self._solve(whole, self._map, table, C)
            return solved
        return solve_used(whole, self._kernel, self.prototypes_, table, C, self._used)

    def _keep(self, basis: PrototypeBasis) -> None:
        """Keep the moments of the folds for `sparsity_path` where that is cheap."""
        size = 8 * len(basis.Z) ** 2 * len(basis.moments.cells)
        if basis.n_folds > 1 and size <= KEEP * as_bytes(self.memory_budget):
            self._kept = replace(basis, moments=basis.moments.on_host())

    def _reduce(
        self, basis: PrototypeBasis, reduction: FixedSizeL0, dual: DualFit | None
    ) -> ReducedFit:
        """Drop prototypes; the dual model on them drops none."""
        m = len(basis.Z)
        if reduction.method == "sd":
            assert dual is not None
            self._no_update = (
                "reduction='sd' has learned from the prototypes alone, so there are no other rows "
                "to add or remove: use reduction='ssd'"
            )
            return ReducedFit(np.arange(m), dual.coef, dual.intercept, dual.C, None, [], [])
        if self.n_support is not None and self.n_support > m:
            raise InvalidInputError(
                f"n_support={self.n_support} but there are only {m} prototypes: give at most {m}, "
                "or raise n_prototypes."
            )
        fit = reduce_basis(basis, reduction, self.n_support, self._reduced_grid())
        if not reduction.refit:
            self._no_update = (
                "a reduction with refit=False ends in a reweighted system, so rows cannot be added "
                "or removed exactly: use refit=True"
            )
        self._used = fit.used
        if fit.paths:
            self.sparsity_paths_ = fit.paths
        return fit

    def _check_update(self) -> None:
        """Raise an error where rows cannot be added or removed; forget the folds otherwise."""
        need_stored(self, "all", "Adding or removing rows")
        if self._no_update is not None:
            raise InvalidInputError(f"{self._no_update}, or fit again.")
        self._kept = None
        self.__dict__.pop("sparsity_paths_", None)


def reduce_basis(
    basis: PrototypeBasis, reduction: FixedSizeL0, n_support: int | None, C_grid: FloatArray | None
) -> ReducedFit:
    """Drop prototypes, for all outputs at once or for each by itself.

    Parameters
    ----------
    basis : PrototypeBasis
    reduction : FixedSizeL0
    n_support : int or None
        The size that is wanted (for each output, where ``joint=False``); None: see
        `FixedSizeL0`. Without folds the size is that of the printed algorithm.
    C_grid : array or None
        See `lssvm.reductions.cross_validate_sizes`.

    Returns
    -------
    ReducedFit
    """
    m, k = len(basis.Z), len(basis.C)
    jobs = [np.arange(k)] if reduction.joint else [np.array([j]) for j in range(k)]
    coef, intercept, C = np.zeros((m, k)), np.zeros(k), np.empty(k)
    used = np.zeros((m, k), dtype=bool)
    paths = []
    for columns in jobs:
        path = None
        if reduction.size == "cv" and basis.n_folds > 1:
            path = cross_validate_sizes(basis, columns, C_grid)
            paths.append(path)
        support, C[columns], solved = _choose(basis, columns, reduction, n_support, path)
        if solved is None:
            solved = basis.solve(None, columns, support, C[columns])
        coef[np.ix_(support, columns)], intercept[columns] = solved
        used[np.ix_(support, columns)] = True
    left = np.flatnonzero(used.any(axis=1))
    return ReducedFit(
        left,
        coef[left],
        intercept,
        C,
        None if reduction.joint else used[left],
        paths,
        [part.subset(left) for part in basis.moments.whole],
    )


def _choose(
    basis: PrototypeBasis,
    columns: IntArray,
    reduction: FixedSizeL0,
    n_support: int | None,
    path: SparsityPath | None,
) -> tuple[IntArray, FloatArray, tuple[FloatArray, FloatArray] | None]:
    """Return the support of some outputs, their C, and the solution where it is known."""
    C = basis.C[columns]
    if n_support is not None:
        if path is not None:
            return path.support(n_support), path.C_at(n_support), None
        order = l0_order(basis.systems(None, columns), basis.first(None, columns), C)
        return np.sort(order[:n_support]), C, None
    if path is None:
        reduced = reduce_as_printed(basis, columns, reduction.settings)
        solution = None if reduction.refit else (reduced.coef, reduced.intercept)
        return reduced.support, C, solution
    size = path.chosen
    if path.constant <= path.limit:
        size = 1
        warnings.warn(
            "The reduction would have dropped every prototype: the cross-validated error of the "
            f"bias alone is {path.constant:.3g}, that of the best model {path.mean.min():.3g}. The "
            "one that left last was kept. Give n_support for more, or other features.",
            NumericalWarning,
            stacklevel=6,
        )
    return path.support(size), path.C_at(size), None


def solve_used(
    whole: list[Moments],
    kernel: Kernel,
    Z: FloatArray,
    table: ClassTable | None,
    C: FloatArray,
    used: NDArray[np.bool_],
) -> tuple[FloatArray, FloatArray]:
    """Solve every output on the prototypes that it uses."""
    basis = PrototypeBasis(kernel, Z, FoldMoments.without_folds(whole, table), C)
    coef, intercept = np.zeros(used.shape), np.zeros(used.shape[1])
    for j in range(used.shape[1]):
        columns, support = np.array([j]), np.flatnonzero(used[:, j])
        solved, b = basis.solve(None, columns, support, C[columns])
        coef[np.ix_(support, columns)], intercept[columns] = solved, b
    return coef, intercept
