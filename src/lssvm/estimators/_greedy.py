"""What the greedy classifier and regressor have in common: merge, run, choose C, store."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import ConvergenceWarning, InvalidInputError
from lssvm._core.memory import as_bytes
from lssvm._core.progress import Progress
from lssvm._core.threads import n_threads, small_problem
from lssvm.criteria.dual import Group
from lssvm.estimators._callbacks import Listened
from lssvm.estimators._stored import need_stored
from lssvm.estimators._validation import check_C, seed_of
from lssvm.folds.content import hash_rows
from lssvm.greedy import Greedy, GreedyPath, greedy_leave_one_out, greedy_paths
from lssvm.greedy.path import cholesky
from lssvm.greedy.paths import change_C
from lssvm.kernels import (
    Kernel,
    Precomputed,
    evaluate_expansion,
    has_gamma,
    make_kernel,
    resolve_gamma,
)
from lssvm.solvers import DualSystem

Self = TypeVar("Self", bound="GreedyModel")

SELECTION_C = 8.0
"""The C at which the basis is selected when C itself is to be chosen."""

C_GRID = 2.0 ** np.arange(-6, 15)
"""The values among which C="cv" chooses."""


@dataclass
class GreedyProblem:
    """Everything that a fit needs after its input has been checked."""

    X: Any  # rows of positive weight
    Y: FloatArray
    groups: list[Group]
    weight: FloatArray | None
    support: IntArray  # rows of the caller's X that have a positive weight
    losses: Callable[[FloatArray], FloatArray]  # predictions (c, n, k) -> (c, 2), the second ties
    centre: FloatArray  # (k,), taken off the targets


@dataclass(frozen=True)
class _Part:
    """The distinct rows of one group of problems."""

    system: DualSystem
    Y: FloatArray
    first: IntArray  # a row of the problem for each distinct row
    member: IntArray  # the distinct row of each row of the group
    rows: IntArray  # rows of the group


class GreedyModel(Listened, BaseEstimator):
    """Base of `GreedyLSSVC` and `GreedyLSSVR`; holds no numerics of its own."""

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

    def _fit_problem(self, problem: GreedyProblem) -> None:
        for name in ("cv_results_", "best_score_", "support_vectors_", "_stored"):
            self.__dict__.pop(name, None)  # of an earlier fit
        C = check_C(self.C)
        settings = self._settings()
        gamma = self._resolved_gamma(problem)
        self._kernel = make_kernel(
            self.kernel,
            gamma=1.0 if gamma is None else gamma,
            degree=self.degree,
            coef0=self.coef0,
            nu=self.nu,
        )
        seed = seed_of(self.random_state)
        parts = [
            self._part(problem, group, SELECTION_C if C is None else C) for group in problem.groups
        ]
        paths: list[list[GreedyPath]] = []
        for g, part in enumerate(parts):
            rng = np.random.default_rng([seed, g])
            with small_problem(part.system.n):
                held = self._held_out(part.system.n, rng)
                paths.append(
                    greedy_paths(
                        part.system,
                        part.Y,
                        settings,
                        held_out=held,
                        random_state=rng,
                        on_event=Progress(int(self.verbose)) if self.verbose else None,
                        left_out=C is not None and self._wants_left_out(),
                    )
                )
        self._warn([path for group in paths for path in group])
        if C is None:
            C = self._choose_C(problem, parts, paths)
            paths = [
                [change_C(part.system, path, C, self.criterion) for path in found]
                for part, found in zip(parts, paths, strict=True)
            ]
        self.C_, self.gamma_ = C, gamma
        self._centre = problem.centre
        self._store(problem, parts, paths)
        self._remember(lambda: self._left_out(problem, parts, paths, np.array([C]))[0])

    def _wants_left_out(self) -> bool:
        """Say whether `_remember` will ask."""
        return False

    def _remember(self, left_out: Callable[[], FloatArray]) -> None:
        """Keep leave-one-out predictions (n, k) where they are needed; nothing here."""

    def _settings(self) -> Greedy:
        return Greedy(
            self.epsilon, self.criterion, self.candidates, bool(self.prefit), self.max_support
        )

    def _resolved_gamma(self, problem: GreedyProblem) -> Any:
        if isinstance(self.gamma, str) and self.gamma == "cv":
            raise InvalidInputError(
                "gamma='cv' is not available here: give a number, 'scale', 'auto' or an array, or "
                "search over gamma with sklearn.model_selection.GridSearchCV."
            )
        if not has_gamma(self.kernel):
            return None
        return resolve_gamma(self.gamma, problem.X, problem.weight)

    def _part(self, problem: GreedyProblem, group: Group, C: float) -> _Part:
        """Merge equal rows: their weights add up, their targets are averaged."""
        n = problem.X.shape[0]
        rows = np.arange(n) if group.rows is None else group.rows
        keys = rows if self._precomputed() else hash_rows(problem.X[rows])
        _, first, member = np.unique(keys, return_index=True, return_inverse=True)
        weight = np.ones(n) if problem.weight is None else problem.weight
        weight, Y = weight[rows], problem.Y[np.ix_(rows, group.columns)]
        total = np.bincount(member, weight)
        if len(first) < len(rows):
            sums = [np.bincount(member, weight * column) for column in Y.T]
            Y = np.column_stack(sums) / total[:, None]
        else:
            Y = Y[first]
        first = rows[first]
        X = problem.X[first]
        system = DualSystem(
            self._kernel,
            X,
            problem.support[first] if self._precomputed() else X,
            C,
            None if np.all(total == 1.0) else np.sqrt(total),
            as_bytes(self.memory_budget),
            n_threads(self.n_jobs),
            bool(self.fit_intercept),
        )
        return _Part(system, Y, first, member, rows)

    def _held_out(self, n: int, rng: np.random.Generator) -> NDArray[np.bool_] | None:
        """Draw the rows on which the size is judged; rows stand in an order of their content."""
        share = self.validation_fraction
        if share is None:
            return None
        number = isinstance(share, (int, float, np.number)) and not isinstance(share, bool)
        if not number or not 0 < share < 1:
            raise InvalidInputError(
                f"validation_fraction={share!r} is not usable: give a number between 0 and 1, or "
                "None to use every row."
            )
        many = round(float(share) * n)
        if not 0 < many < n:
            raise InvalidInputError(
                f"validation_fraction={share!r} of {n} distinct rows leaves none to learn from or "
                "none to judge by: give more rows, or None."
            )
        held = np.zeros(n, dtype=bool)
        held[rng.permutation(n)[:many]] = True
        return held

    def _warn(self, paths: list[GreedyPath]) -> None:
        cut = sum(path.status == "memory" for path in paths)
        if cut:
            warnings.warn(
                f"{cut} of {len(paths)} problems stopped before epsilon={self.epsilon:g} because "
                "memory_budget holds no more columns. Raise memory_budget or epsilon, or set "
                "candidates=146, which needs less.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _choose_C(
        self, problem: GreedyProblem, parts: list[_Part], paths: list[list[GreedyPath]]
    ) -> float:
        """Choose C for all problems by leave-one-out on the selected bases."""
        losses = problem.losses(self._left_out(problem, parts, paths, C_GRID))
        best = int(np.lexsort((losses[:, 1], losses[:, 0]))[0])
        self.cv_results_ = {"param_C": C_GRID.copy(), "mean_test_score": -losses[:, 0]}
        self.best_score_ = -float(losses[best, 0])
        return float(C_GRID[best])

    def _left_out(
        self,
        problem: GreedyProblem,
        parts: list[_Part],
        paths: list[list[GreedyPath]],
        Cs: FloatArray,
    ) -> FloatArray:
        """Return leave-one-out predictions on the selected bases, shape (c, n, k)."""
        n, k = problem.Y.shape
        predictions = np.empty((len(Cs), n, k))
        for group, part, found in zip(problem.groups, parts, paths, strict=True):
            for j, path in zip(group.columns, found, strict=True):
                y = part.Y[:, list(group.columns).index(j)]
                if path.left_out is not None and len(Cs) == 1:  # the run's own C
                    left_out = path.left_out[None, :]
                else:
                    left_out = greedy_leave_one_out(part.system, y, path, Cs, self.criterion)
                if group.rows is not None:
                    predictions[:, :, j] = self._elsewhere(problem, part, path)[None, :]
                predictions[:, part.rows, j] = left_out[:, part.member]
        return predictions

    def _elsewhere(self, problem: GreedyProblem, part: _Part, path: GreedyPath) -> FloatArray:
        """Predict all rows, those included that a one-vs-one problem has not seen."""
        system = part.system
        return evaluate_expansion(
            system.kernel,
            problem.X,
            system.basis[path.support],
            path.coef[:, None],
            np.array([path.intercept]),
            budget=system.budget,
            threads=system.threads,
        )[:, 0]

    # -- the fitted model ------------------------------------------------------------------------

    def _store(
        self, problem: GreedyProblem, parts: list[_Part], paths: list[list[GreedyPath]]
    ) -> None:
        """Store the union of all bases, and the run of every problem."""
        k = problem.Y.shape[1]
        runs: list[Any] = [None] * k
        self._ridges: list[Any] = [None] * k
        for group, part, found in zip(problem.groups, parts, paths, strict=True):
            for j, path in zip(group.columns, found, strict=True):
                weight = np.asarray(part.system.u, dtype=np.float64)[path.support] ** 2
                self._ridges[j] = 1.0 / (self.C_ * weight)
                runs[j] = replace(path, support=part.first[path.support], left_out=None)
        used = np.unique(np.concatenate([run.support for run in runs]))
        if len(used) == 0:
            used = parts[0].first[:1]
        self.support_ = problem.support[used]
        self._basis = self.support_ if self._precomputed() else problem.X[used]
        if self._precomputed():
            self._gram = np.asarray(problem.X[np.ix_(used, self.support_)])
        else:
            self.support_vectors_ = self._basis
        self._places = [np.searchsorted(used, run.support) for run in runs]
        self._dtype = parts[0].system.dtype
        self.paths_ = [replace(run, support=problem.support[run.support]) for run in runs]
        self.n_iter_ = max(1, *(len(run.support) for run in runs)) if runs else 1
        self._expand([(run.coef, run.intercept) for run in runs])

    def _expand(self, solutions: list[tuple[FloatArray, float]]) -> None:
        """Spread the coefficients of every problem over the rows of the union."""
        coef = np.zeros((len(self.support_), len(solutions)))
        for j, (values, _) in enumerate(solutions):
            coef[self._places[j][: len(values)], j] = values
        intercept = np.array([b for _, b in solutions]) + self._centre
        if not (np.all(np.isfinite(coef)) and np.all(np.isfinite(intercept))):
            raise InvalidInputError(
                "The solution is not finite: the kernel matrix overflows or is singular for these "
                "data. Scale the features (StandardScaler), or lower C, degree or gamma."
            )
        self.dual_coef_ = coef.astype(self._dtype, copy=False)
        self.intercept_ = intercept.astype(self._dtype, copy=False)

    def truncate(self: Self, n: int) -> Self:
        """Return the model of the first basis functions of every problem.

        Exactly what `fit` would have given with ``max_support=n`` (without held-out rows): no
        training data are needed.

        Parameters
        ----------
        n : int
            Largest number of basis functions per problem.

        Returns
        -------
        estimator
            A fitted copy; this one stays as it is.

        Notes
        -----
        m^3/3 operations for each problem of m basis functions (m^2 for "kmp" and "sggp").
        """
        check_is_fitted(self)
        if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1:
            raise InvalidInputError(f"n={n!r} is not usable: give a whole number >= 1.")
        need_stored(self, "all", "A truncated model")
        small = copy.copy(self)
        small._cache = {}
        small._left = None  # what was left out belongs to the whole model
        sizes = [min(int(n), len(path.support)) for path in self.paths_]
        solutions = [self._solve(j, size) for j, size in enumerate(sizes)]
        places = [place[:size] for place, size in zip(self._places, sizes, strict=True)]
        used = np.unique(np.concatenate(places))
        used = used if len(used) else np.array([0])
        small.support_, small._basis = self.support_[used], self._basis[used]
        if self._precomputed():
            small._gram = self._gram[np.ix_(used, used)]
        else:
            small.support_vectors_ = small._basis
        small._places = [np.searchsorted(used, place) for place in places]
        small._ridges = [r[:size] for r, size in zip(self._ridges, sizes, strict=True)]
        small.paths_ = [
            path.cut(size, *solution)
            for path, size, solution in zip(self.paths_, sizes, solutions, strict=True)
        ]
        small.n_iter_ = max(1, *sizes)
        small._expand(solutions)
        return small

    def _solve(self, j: int, size: int) -> tuple[FloatArray, float]:
        """Solve problem j for its first ``size`` basis functions."""
        path: GreedyPath = self.paths_[j]
        place = self._places[j][:size]
        if size == len(path.support):
            return path.coef, path.intercept
        if path.factor is not None:
            return path.at(size, path.factor)
        if self._precomputed():
            K = self._gram[np.ix_(place, place)]
        else:
            K = self._kernel(self._basis[place], self._basis[place])
        K = np.asarray(K, dtype=np.float64)
        return path.at(size, cholesky(K + np.diag(self._ridges[j][:size])))

    def _raw_scores(self, X: Any) -> FloatArray:
        """Return the outputs of all problems for new rows, shape (n, k)."""
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse="csr" if self._accepts_sparse() else False,
            dtype=[np.float64, np.float32],
        )
        return evaluate_expansion(
            self._kernel,
            X,
            self._basis,
            self.dual_coef_,
            self.intercept_,
            budget=as_bytes(self.memory_budget),
            threads=n_threads(self.n_jobs),
        )
