"""What the dual classifier and the dual regressor have in common: tune, solve, reduce, store."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import ConvergenceWarning, InvalidInputError
from lssvm._core.memory import as_bytes
from lssvm._core.threads import n_threads, small_problem
from lssvm.criteria.closed_form import check_criterion, criterion_objective, is_criterion
from lssvm.criteria.dual import C_range, DualObjective, DualPoint, Group
from lssvm.criteria.losses import Criterion
from lssvm.criteria.spectral_objective import SpectralObjective
from lssvm.estimators._callbacks import Listened, told, was_stopped
from lssvm.estimators._dual_reduction import DualReduction
from lssvm.estimators._relevance import TUNED, spread_dual
from lssvm.estimators._robust import Rounds
from lssvm.estimators._uncertain_dual import needs_folds, remember
from lssvm.estimators._validation import (
    check_C,
    check_kernel_matrix,
    check_option,
    make_folds,
    n_distinct,
    seed_of,
)
from lssvm.folds.content import Folds, restrict_folds
from lssvm.kernels import (
    Kernel,
    Precomputed,
    evaluate_expansion,
    has_gamma,
    make_kernel,
    resolve_gamma,
)
from lssvm.reductions import L0, Prune, reduce_dual_l0
from lssvm.search.choice import make_search
from lssvm.search.space import Space, TuningResult
from lssvm.solvers import DualSystem
from lssvm.solvers.choice import solve_with

_ACCURATE = 1e-8  # relative residual below which tuning's factorisation also gives the solution


@dataclass
class DualProblem:
    """Everything that a fit needs after its input has been checked."""

    given: tuple[Any, Any]  # the caller's X and y, all rows
    X: Any  # rows of positive weight
    Y: FloatArray
    groups: list[Group]
    weight: FloatArray | None
    labels: IntArray | None
    support: IntArray  # rows of the caller's X that have a positive weight
    criterion: Callable[[IntArray | None], Criterion]  # of one column, or of all (None)
    row_loss: Callable[[FloatArray, FloatArray], FloatArray]  # predictions, targets -> per row
    lowered: bool = False  # whether a robust loss has changed the weights


class DualModel(Listened, Rounds, DualReduction):
    """Base of `LSSVC` and `LSSVR`; holds no numerics of its own."""

    def _accepts_sparse(self) -> bool:
        if isinstance(self.kernel, Kernel):
            return self.kernel.accepts_sparse
        return isinstance(self.kernel, str) and self.kernel in ("rbf", "linear", "poly", "matern")

    def _precomputed(self) -> bool:
        if isinstance(self.kernel, str):
            return self.kernel == "precomputed"
        return isinstance(self.kernel, Precomputed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed()
        tags.input_tags.sparse = self._accepts_sparse()
        return tags

    # -- fitting ---------------------------------------------------------------------------------

    def _fit_problem(self, problem: DualProblem) -> None:
        for name in (*TUNED, "feature_relevance_", "support_vectors_", "_stored"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if self._precomputed():
            check_kernel_matrix(problem.given[0])
        check_option("tuning", self.tuning, ("joint", "separate"))
        C = check_C(self.C)
        self._seed = seed_of(self.random_state)
        self._check_relevance()
        budget, threads = as_bytes(self.memory_budget), n_threads(self.n_jobs)
        rows, basis = problem.X, problem.X
        if self._precomputed():
            basis = problem.support
        tune_gamma = self._tunes_gamma()
        gamma = self._fixed_gamma(problem, tune_gamma)
        system = DualSystem(
            self._kernel_at(gamma if gamma is not None else 1.0),
            rows,
            basis,
            C or 1.0,
            None if problem.weight is None else np.sqrt(problem.weight),
            budget,
            threads,
            bool(self.fit_intercept),
        )
        reduction = self._reduction()
        folds = None
        if C is None or tune_gamma or isinstance(reduction, Prune):
            folds = make_folds(
                self.cv,
                *problem.given,
                problem.support,
                labels=problem.labels,
                seed=self._seed,
                positions=basis is not rows,
            )
        k = problem.Y.shape[1]
        C_of = np.full(k, np.nan if C is None else C)
        gamma_of: list[Any] = [gamma] * k
        point, used = None, problem
        with small_problem(system.n):
            if C is None or tune_gamma:
                assert folds is not None
                point = self._tune(problem, system, folds, C, gamma, tune_gamma, C_of, gamma_of)
                for _ in range(self._robust_rounds()):
                    used = self._weigh_down(problem, used, system, C_of, gamma_of, point)
                    system = replace(system, root_weight=np.sqrt(used.weight))
                    point = self._tune(used, system, folds, C, gamma, tune_gamma, C_of, gamma_of)
                if self._asks_relevance():
                    point = spread_dual(self, used, system, folds, C, C_of, gamma_of, point)
            self._solve(used, system, folds, reduction, C_of, gamma_of, point)

    def _fixed_gamma(self, problem: DualProblem, tune_gamma: bool) -> Any:
        if isinstance(self.gamma, str) and self.gamma == "cv" and not isinstance(self.kernel, str):
            raise InvalidInputError(
                f"gamma='cv' cannot tune kernel={self.kernel!r}: name a kernel such as 'rbf', or "
                "leave gamma as it is."
            )
        if tune_gamma or not has_gamma(self.kernel):
            return None
        gamma = "scale" if isinstance(self.gamma, str) and self.gamma == "cv" else self.gamma
        return resolve_gamma(gamma, problem.X, problem.weight)

    def _kernel_at(self, gamma: Any) -> Kernel:
        return make_kernel(
            self.kernel,
            gamma=1.0 if gamma is None else self._by_feature(gamma),
            degree=self.degree,
            coef0=self.coef0,
            nu=self.nu,
        )

    def _tune(
        self,
        problem: DualProblem,
        system: DualSystem,
        folds: Folds,
        C: float | None,
        gamma: Any,
        tune_gamma: bool,
        C_of: FloatArray,
        gamma_of: list[Any],
    ) -> DualPoint | None:
        """Choose C and gamma, jointly for all problems or for each by itself.

        Returns what was factorised at the chosen gamma, where one choice serves all problems.
        """
        if is_criterion(self.scoring):
            check_criterion(self.scoring, C)
        start = float(resolve_gamma("scale", problem.X, problem.weight)) if tune_gamma else 1.0
        space = Space(
            C=C,
            tune_gamma=tune_gamma,
            gamma_start=start,
            n_features=max(1, problem.X.shape[1]),
            C_range=C_range(system),
        )
        counts = problem.labels is not None and self.scoring is None
        jobs: list[IntArray | None] = [None]
        if self.tuning == "separate":
            jobs = [np.array([j]) for j in range(problem.Y.shape[1])]
        results = []
        for columns in jobs:
            objective = self._objective(problem, system, folds, columns, gamma, tune_gamma)
            counted = n_distinct(objective.rows, self._precomputed()) if counts else None
            result = make_search(self.search).run(
                objective,
                replace(space, counted_rows=counted),
                random_state=self._seed,
                on_event=told(self),
            )
            results.append(result)
            chosen = slice(None) if columns is None else columns
            C_of[chosen] = result.C
            if tune_gamma:
                for j in range(len(gamma_of)) if columns is None else columns:
                    gamma_of[j] = result.gamma
            if result.interrupted and not was_stopped(self):
                warnings.warn(
                    "Tuning was interrupted; the best parameters found so far are used.",
                    ConvergenceWarning,
                    stacklevel=4,
                )
        self._store_tuning(results)
        point = results[0].point if len(results) == 1 else None
        if isinstance(point, DualPoint):
            return point
        if len(results) == 1 and needs_folds(self) and isinstance(objective, DualObjective):
            return objective.at(result.gamma)
        return None

    def _objective(
        self,
        problem: DualProblem,
        system: DualSystem,
        folds: Folds,
        columns: IntArray | None,
        gamma: Any,
        tune_gamma: bool,
    ) -> DualObjective | SpectralObjective:
        Y, groups = problem.Y, problem.groups
        rows, basis, weight, used = system.rows, system.basis, problem.weight, folds
        if columns is not None:
            group = next(g for g in groups if columns[0] in g.columns)
            Y, groups = Y[:, columns], [Group(np.array([0]))]
            if group.rows is not None:
                rows, basis, Y = rows[group.rows], basis[group.rows], Y[group.rows]
                weight = None if weight is None else weight[group.rows]
                used = restrict_folds(folds, group.rows, system.n)

        def kernel(value: float | None) -> Kernel:
            return self._kernel_at(value if tune_gamma else gamma)

        if is_criterion(self.scoring):
            root = None if weight is None else np.sqrt(weight)
            part = replace(system, rows=rows, basis=basis, root_weight=root)
            positions = self._precomputed()
            return criterion_objective(self.scoring, kernel, part, Y, groups, positions=positions)
        return DualObjective(
            kernel,
            rows,
            basis,
            Y,
            used,
            problem.criterion(columns),
            groups,
            weight,
            system.budget,
            system.threads,
            system.bias,
        )

    def _store_tuning(self, results: list[TuningResult]) -> None:
        self.cv_results_ = (
            results[0].cv_results if len(results) == 1 else [r.cv_results for r in results]
        )
        self.best_score_ = float(np.mean([-r.loss for r in results]))
        kept = [replace(r, point=None) for r in results]
        self.tuning_result_ = kept[0] if len(kept) == 1 else kept
        both = [r for result in results for r in (result, result.approximate) if r is not None]
        self.n_evaluations_ = int(sum(r.n_evaluations for r in both))

    def _solve(
        self,
        problem: DualProblem,
        system: DualSystem,
        folds: Folds | None,
        reduction: Any,
        C_of: FloatArray,
        gamma_of: list[Any],
        point: DualPoint | None,
    ) -> None:
        """Solve every group, reduce it, and store the expansion."""
        n, k = problem.Y.shape
        coef = np.zeros((n, k))
        intercept = np.zeros(k)
        self.reduction_path_: list[Any] = []
        residual, iterations = 0.0, 1
        for g, group in enumerate(problem.groups):
            for columns, C, gamma in _alike(group.columns, C_of, gamma_of):
                rows = np.arange(n) if group.rows is None else group.rows
                part = self._part(system, group, C, gamma)
                Y = problem.Y[np.ix_(rows, columns)]
                alpha, b, stats = self._tuned_solution(point, g, C) or self._solve_system(part, Y)
                alpha, b = self._robust(problem, part, Y, alpha, b, columns, C_of)
                residual, iterations = max(residual, stats[0]), max(iterations, stats[1])
                if isinstance(reduction, L0):
                    part_coef, reduced = reduce_dual_l0(part, Y, alpha, reduction)
                    b = reduced.intercept
                    self.reduction_path_.append(reduced)
                elif isinstance(reduction, Prune):
                    part_coef, b, C, gamma = self._reduce_prune(
                        problem, system, group, columns, folds, part, Y, alpha, reduction, gamma
                    )
                    C_of[columns] = C
                    for j in columns:
                        gamma_of[j] = gamma
                else:
                    part_coef = alpha
                coef[np.ix_(rows, columns)] = part_coef
                intercept[columns] = b
        if not (np.all(np.isfinite(coef)) and np.all(np.isfinite(intercept))):
            raise InvalidInputError(
                "The solution is not finite: the kernel matrix overflows or is singular for these "
                "data. Scale the features (StandardScaler), or lower C, degree or gamma."
            )
        self.residual_, self.n_iter_ = residual, iterations
        self._store(problem, system, coef, intercept, C_of, gamma_of)
        parts = [
            (columns, group.rows, C, gamma)
            for group in problem.groups
            for columns, C, gamma in _alike(group.columns, C_of, gamma_of)
        ]
        self._memory = remember(self, problem, system, parts, point)
        self._cache: dict[str, Any] = {}

    def _robust(
        self,
        problem: DualProblem,
        part: DualSystem,
        Y: FloatArray,
        alpha: FloatArray,
        b: FloatArray,
        columns: IntArray,
        C_of: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Replace squared loss by another; nothing here."""
        return alpha, b

    def _part(self, system: DualSystem, group: Group, C: float, gamma: Any) -> DualSystem:
        part = replace(system, kernel=self._kernel_at(gamma), C=C)
        return part if group.rows is None else part.subset(group.rows)

    def _tuned_solution(
        self, point: DualPoint | None, group: int, C: float
    ) -> tuple[FloatArray, FloatArray, tuple[float, int]] | None:
        """Return the solution that tuning has factorised already, if there is one."""
        solved = None
        if point is not None and isinstance(self.solver, str) and self.solver == "auto":
            solved = point.solution(group, C)
        if solved is None or not solved[2] <= _ACCURATE:
            return None
        self.solver_ = "eigen"
        return solved[0], solved[1], (solved[2], 1)

    def _solve_system(
        self, system: DualSystem, Y: FloatArray
    ) -> tuple[FloatArray, FloatArray, tuple[float, int]]:
        # The bias takes up a common offset; without it tol and float32 refer to what is to learn.
        centre = np.average(Y, axis=0, weights=system.u**2) if system.bias else np.zeros(Y.shape[1])
        targets = (Y - centre).astype(system.dtype)
        self.solver_, solution = solve_with(
            self.solver, system, targets, tol=self.tol, max_iter=self.max_iter, seed=self._seed
        )
        b = solution.intercept + centre
        return solution.alpha, b, (solution.residual, solution.iterations)

    # -- the fitted model ------------------------------------------------------------------------

    def _store(
        self,
        problem: DualProblem,
        system: DualSystem,
        coef: FloatArray,
        intercept: FloatArray,
        C_of: FloatArray,
        gamma_of: list[Any],
    ) -> None:
        used = np.flatnonzero(np.any(coef != 0, axis=1))
        if len(used) == 0:
            used = np.array([0])
        self.support_ = problem.support[used]
        self._basis = system.basis[used]
        if not isinstance(system.kernel, Precomputed):
            self.support_vectors_ = self._basis
        self.dual_coef_ = coef[used].astype(system.dtype, copy=False)
        self.intercept_ = intercept.astype(system.dtype, copy=False)
        self._machines = [
            (self._kernel_at(gamma), columns)
            for columns, _, gamma in _alike(np.arange(coef.shape[1]), np.ones_like(C_of), gamma_of)
        ]
        alike = len(set(C_of)) == 1
        self.C_ = float(C_of[0]) if alike else C_of
        same = all(np.array_equal(gamma_of[0], g) for g in gamma_of)
        self.gamma_ = self._by_feature(gamma_of[0]) if same else np.array(gamma_of)
        self._store_relevance(problem.X, problem.weight)

    def _new_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr" if self._accepts_sparse() else False,
            dtype=[np.float64, np.float32],
        )

    def _raw_scores(self, X: Any) -> FloatArray:
        """Return the outputs of all problems for new rows, shape (n, k)."""
        X = self._new_rows(X)
        budget, threads = as_bytes(self.memory_budget), n_threads(self.n_jobs)
        out = np.empty((X.shape[0], self.dual_coef_.shape[1]), self.dual_coef_.dtype)
        for kernel, columns in self._machines:
            coef, intercept = self.dual_coef_[:, columns], self.intercept_[columns]
            out[:, columns] = evaluate_expansion(
                kernel, X, self._basis, coef, intercept, budget=budget, threads=threads
            )
        return out


def _alike(
    columns: IntArray, C_of: FloatArray, gamma_of: list[Any]
) -> list[tuple[IntArray, float, Any]]:
    """Gather columns that have the same C and gamma: they share one factorisation."""
    gathered: dict[Any, list[int]] = {}
    for j in columns:
        gathered.setdefault((float(C_of[j]), repr(gamma_of[j])), []).append(int(j))
    return [(np.array(members), key[0], gamma_of[members[0]]) for key, members in gathered.items()]
