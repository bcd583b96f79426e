"""What the fixed-size classifier and regressor have in common: select, tune, solve, update."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.device import is_foreign
from lssvm._core.errors import (
    ConvergenceWarning,
    InvalidInputError,
    NotPositiveDefiniteError,
)
from lssvm._core.memory import as_bytes
from lssvm._core.namespace import to_numpy
from lssvm._core.threads import n_threads
from lssvm.criteria.closed_form import check_criterion, is_criterion
from lssvm.criteria.fixed_size import FixedSizeObjective, FixedSizePoint
from lssvm.criteria.fixed_spectral import FixedCriterionObjective, FixedCriterionPoint
from lssvm.data.frames import is_frame
from lssvm.data.scanning import is_stream
from lssvm.engines.device_expansion import expand_on_device
from lssvm.estimators._anywhere import check_device_rows
from lssvm.estimators._callbacks import Listened, told, was_stopped
from lssvm.estimators._many import TUNED_PROTOTYPES, ManyPrototypes, path_method
from lssvm.estimators._problem import FixedProblem
from lssvm.estimators._prototypes import PrototypeMixin, is_int
from lssvm.estimators._relevance import RelevanceMixin, tune_fixed
from lssvm.estimators._robust import SquaredFixed
from lssvm.estimators._uncertain_fixed import FixedMemory
from lssvm.estimators._validation import (
    check_C,
    loss_settings,
    make_folds,
    seed_of,
)
from lssvm.estimators.fixed_device import DeviceProblem
from lssvm.estimators.fixed_reduction import ReducibleModel
from lssvm.estimators.fixed_stream import StreamUpdate, stream_features, stream_outputs
from lssvm.folds.content import Folds, content_folds, hash_rows
from lssvm.kernels import Kernel, evaluate_expansion, has_gamma, make_kernel, resolve_gamma
from lssvm.moments import Moments, nystrom_map
from lssvm.moments.cells import ClassTable
from lssvm.search.base import Search
from lssvm.search.choice import make_search
from lssvm.search.kept_points import KeptPoints
from lssvm.search.listed import ListedPathSearch, best_gammas
from lssvm.search.path import PathSearch
from lssvm.search.space import Space
from lssvm.solvers.primal import solve_primal

N_SIZES = 5  # [DeBrabanter2010, section 5]
N_C = 60
N_GAMMAS = 3  # kernel parameters that are tried on all rows, where they are read in blocks


class FixedSizeModel(
    Listened,
    PrototypeMixin,
    ManyPrototypes,
    SquaredFixed,
    RelevanceMixin,
    FixedMemory,
    ReducibleModel,
):
    """Base of `FixedSizeLSSVC` and `FixedSizeLSSVR`; holds no numerics of its own."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "dual_coef_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    # -- fitting ---------------------------------------------------------------------------------

    def _forget_fit(self) -> None:
        """Drop what an earlier fit left: an interrupted fit leaves an unfitted model."""
        for name in [n for n in vars(self) if n.endswith("_") and not n.startswith("_")]:
            delattr(self, name)
        self.__dict__.pop("_stored", None)

    def _fit_problem(self, problem: FixedProblem) -> None:
        problem = self._placed(problem)
        C, reduction = check_C(self.C), self._reduction_settings()
        self._check_solver(reduction)
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            raise InvalidInputError(
                "kernel='precomputed' cannot be used with prototypes, which are rows of features: "
                "use LSSVC or LSSVR, or pass the kernel as a function."
            )
        if problem.folds is None:  # else the folds were made with it
            self._seed = seed_of(self.random_state)
        self._check_relevance()
        tune_gamma = self._tunes_gamma()
        gamma = self._fixed_gamma(problem, tune_gamma)
        Z, support, selection = self._prototypes(problem, gamma)
        size_by_cv = isinstance(self.n_prototypes, str) and self.n_prototypes == "cv"
        C_of = np.full(problem.Y.shape[1], np.nan if C is None else C)
        whole = moments = point = None
        used, pcg = problem, self._choose_pcg(problem, Z, reduction)
        basis = Z if pcg is None else Z[:TUNED_PROTOTYPES]
        dual = self._dual_on_prototypes(reduction, problem, Z, support, gamma)
        if dual is not None:  # tuned on the prototypes alone
            C_of[:], gamma = dual.C, dual.gamma
        elif C is None or tune_gamma or size_by_cv:
            tuned, used = tune_fixed(self, problem, basis, C, gamma, tune_gamma, size_by_cv)
            C_of[:], gamma, point = tuned.C_of, tuned.gamma, tuned.point
            # A criterion without folds leaves none to reduce by.
            moments = point.moments if isinstance(point, FixedSizePoint) else None
            whole = point.whole
            if pcg is None:
                basis, support = Z[: tuned.size], support[: tuned.size]
        kernel = self._kernel_at(gamma)
        self.gamma_, self.selection_ = self._by_feature(gamma), selection
        self.solver_ = "direct" if pcg is None else "pcg"
        if pcg is not None:
            coef, intercept = self._solve_pcg(pcg, problem, kernel, Z, C_of)
            self._keep_model(problem, kernel, None, Z, support, [])
            self._remember(problem, point, kernel, basis, C_of)
            self._store(coef, intercept, C_of)
            return
        Z = basis
        if reduction is not None and moments is None:
            moments = self._moments_to_reduce(reduction, problem, kernel, Z)
            whole = moments.whole
        if not whole:  # not tuned, or on training sets that are not the rows outside a fold
            alone = reduction is not None and reduction.method == "sd"
            whole = [] if alone else self._accumulate(used, kernel, Z)
            moments = None if moments is None else moments.with_whole(whole)
        map = problem.map(kernel, Z)
        solved = self._solve(whole, map, problem.table, C_of) if dual is None else dual.solution
        coef, intercept, C_of = self._robust(used, kernel, Z, map, C_of, *solved)
        fit = self._second_level(reduction, problem, kernel, Z, support, moments, C_of, dual)
        if fit is not None:
            coef, intercept, C_of, whole = fit.coef, fit.intercept, fit.C, fit.moments
            Z, support = Z[fit.support], support[fit.support] if len(support) else support
            map = nystrom_map(kernel, Z)
        self._keep_model(problem, kernel, map, Z, support, whole)
        self.n_prototypes_ = len(basis)
        self._remember(problem, point if reduction is None else None, kernel, Z, C_of)
        self._store(coef, intercept, C_of)

    def _keep_model(
        self,
        problem: FixedProblem,
        kernel: Kernel,
        map: Any,
        Z: FloatArray,
        support: IntArray,
        whole: list[Moments],
    ) -> None:
        self._kernel, self._map = kernel, None if map is None else map.on_host()
        self.moments_ = [part.on_host() for part in whole]
        self.prototypes_ = self.support_vectors_ = Z
        self.support_, self.n_prototypes_ = support, len(Z)
        self._store_relevance(problem.X, problem.weight)

    def _store(self, coef: FloatArray, intercept: FloatArray, C_of: FloatArray) -> None:
        self.C_ = float(C_of[0]) if len(set(C_of.tolist())) == 1 else C_of
        self.intercept_ = intercept
        self.dual_coef_ = coef  # last: from here on the model is fitted

    def _fixed_gamma(self, problem: FixedProblem, tune_gamma: bool) -> Any:
        if tune_gamma or not has_gamma(self.kernel):
            return None
        gamma = "scale" if isinstance(self.gamma, str) and self.gamma == "cv" else self.gamma
        if isinstance(gamma, str) and gamma == "scale":
            return problem.scale()
        return resolve_gamma(gamma, problem.X, problem.weight)

    def _kernel_at(self, gamma: Any) -> Kernel:
        return make_kernel(
            self.kernel,
            gamma=1.0 if gamma is None else self._by_feature(gamma),
            degree=self.degree,
            coef0=self.coef0,
            nu=self.nu,
        )

    # -- tuning ----------------------------------------------------------------------------------

    def _folds(self, problem: FixedProblem) -> Folds:
        if problem.folds is not None:
            return problem.folds
        cv = self.cv
        n = problem.X.shape[0]
        if is_int(cv) and n <= 10_000:
            distinct = len(np.unique(hash_rows(problem.content, self._seed)))
            if distinct < 2:
                raise InvalidInputError(
                    f"Tuning needs at least 2 distinct rows but there is only 1 (n_samples={n}): "
                    "give fixed numbers for C, gamma and n_prototypes."
                )
            cv = min(int(cv), distinct) if cv >= 2 else cv
        if is_int(cv) and cv >= 2:
            # Straight from the rows: no copy of them is made.
            return content_folds(problem.content, int(cv), labels=problem.labels, seed=self._seed)
        return make_folds(
            cv,
            *problem.given,
            np.arange(n) if problem.support is None else problem.support,
            labels=problem.labels,
            seed=self._seed,
            positions=False,
        )

    def _tune(
        self,
        problem: FixedProblem,
        Z: FloatArray,
        C: float | None,
        gamma: Any,
        tune_gamma: bool,
        size_by_cv: bool,
        again: bool = False,
    ) -> Tuned:
        """Choose C, gamma and the number of prototypes."""
        separate = len(problem.groups) > 1
        counts = problem.labels is not None and self.scoring is None
        space = Space(
            C=1.0 if separate else C,
            tune_gamma=tune_gamma,
            gamma_start=problem.scale() if tune_gamma else 1.0,
            n_features=problem.X.shape[1],
            counted_rows=problem.n_distinct() if counts else None,
        )

        def objective(part: FixedProblem) -> Any:
            found = part.objective(
                lambda value: self._kernel_at(_snap(value) if tune_gamma else gamma),
                Z,
                self._folds(part),
                (Space().C_grid(N_C) if C is None else np.array([C])) if separate else None,
                part.budget(self.memory_budget),
                n_threads(self.n_jobs),
                path_method(self.solver),
            )
            if not is_criterion(self.scoring):
                return found
            check_criterion(self.scoring, C)
            return FixedCriterionObjective(self.scoring, found)

        search = make_search(self.search)
        if problem.sample is not None and tune_gamma:
            rows = None if space.counted_rows is None else len(problem.sample.X)
            part = replace(space, counted_rows=rows)
            search = self._from_sample(search, objective(problem.sample), part)
        memory = KeptPoints(objective(problem), problem.budget(self.memory_budget) // 4)
        result = search.run(
            memory,
            space,
            random_state=self._seed,
            on_event=told(self),
            checkpoint=None if again else self.checkpoint,
            fingerprint=self._fingerprint(problem, Z) if self.checkpoint is not None else "",
        )
        if result.interrupted and not was_stopped(self):
            warnings.warn(
                "Tuning was interrupted; the best parameters found so far are used.",
                ConvergenceWarning,
                stacklevel=5,
            )
        point = memory.point(result.gamma)
        if separate and point.C_of is None:
            point.losses(np.ones(1))
        C_of = point.C_of if separate else np.full(problem.Y.shape[1], result.C)
        assert C_of is not None
        gamma = _snap(result.gamma) if tune_gamma else gamma
        tuned = Tuned(C_of, gamma, len(Z), point)
        cv_results, score = result.cv_results, -result.loss
        if size_by_cv:
            tuned, score = self._tune_size(point, tuned, C, score)
        if tune_gamma:
            cv_results["param_gamma"] = np.array([_snap(g) for g in cv_results["param_gamma"]])
            for params, value in zip(cv_results["params"], cv_results["param_gamma"], strict=True):
                params["gamma"] = float(value)
        if separate:  # each problem has its own C, see C_
            cv_results["param_C"] = np.full(len(cv_results["param_C"]), np.nan)
            cv_results["params"] = [
                {key: value for key, value in params.items() if key != "C"}
                for params in cv_results["params"]
            ]
        self.cv_results_, self.best_score_ = cv_results, float(score)
        self.n_evaluations_ = result.n_evaluations
        self.tuning_result_ = replace(result, point=None)
        return tuned

    def _from_sample(self, search: Search, objective: FixedSizeObjective, space: Space) -> Search:
        """Search on rows in memory; return the search of the full data at the few best gammas."""
        result = search.run(objective, space, random_state=self._seed, on_event=told(self))
        self.sample_results_ = result.cv_results
        n_C = search.n_C if isinstance(search, PathSearch) else N_C
        return ListedPathSearch(n_C=n_C, gammas=best_gammas(result, N_GAMMAS))

    def _tune_size(
        self,
        point: FixedSizePoint | FixedCriterionPoint,
        tuned: Tuned,
        C: float | None,
        score: float,
    ) -> tuple[Tuned, float]:
        """Compare nested sets of prototypes at the chosen gamma, from the moments of the largest.

        [DeBrabanter2010, section 5].
        """
        m = len(point.Z)
        sizes = np.unique(np.maximum(1, m // 2 ** np.arange(N_SIZES)))
        grid = Space(C=C).C_grid(N_C)
        best: tuple[float, float] = (np.inf, np.inf)
        found: dict[str, list[float]] = {"mean_test_score": [], "std_test_score": [], "C": []}
        for size in sizes:
            part = point if size == m else point.prefix(int(size))
            losses = part.losses(grid if part.objective.C_grid is None else np.ones(1))
            i = int(np.lexsort((losses.tie, losses.mean))[0])
            found["mean_test_score"].append(-float(losses.mean[i]))
            found["std_test_score"].append(float(losses.std[i]))
            found["C"].append(np.nan if part.C_of is not None else float(grid[i]))
            key = (float(losses.mean[i]), float(losses.tie[i]))
            if key < best:
                best = key
                own = part.C_of
                C_of = np.full(len(tuned.C_of), grid[i]) if own is None else own
                tuned = Tuned(C_of, tuned.gamma, int(size), part)
                score = -key[0]
        self.size_results_ = {"n_prototypes": sizes} | {
            name: np.array(values) for name, values in found.items()
        }
        return tuned, score

    def _fingerprint(self, problem: FixedProblem, Z: FloatArray) -> str:
        """Return a digest of all that the losses of a search depend on."""
        digest = hashlib.sha256()
        for array in (problem.X, problem.Y, problem.weight, Z):
            if array is not None:
                digest.update(np.ascontiguousarray(array).data.cast("B"))
        digest.update(repr((loss_settings(self), problem.n_rows, self._seed)).encode())
        return digest.hexdigest()

    # -- solving and updating --------------------------------------------------------------------

    def _accumulate(
        self, problem: FixedProblem | StreamUpdate, kernel: Kernel, Z: FloatArray
    ) -> list[Moments]:
        """Return the moments of all rows, per class where there is a table."""
        budget, threads = as_bytes(self.memory_budget), n_threads(self.n_jobs)
        return problem.accumulate(kernel, Z, budget=budget, threads=threads)

    def _solve(
        self, whole: list[Moments], map: Any, table: ClassTable | None, C_of: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Solve every group of problems for its C."""
        k = len(C_of)
        coef, intercept = np.zeros((map.T.shape[0], k)), np.zeros(k)
        for columns in [np.arange(k)] if table is None else table.groups():
            moments = whole[0] if table is None else table.assemble(whole, columns)
            for C in dict.fromkeys(C_of[columns].tolist()):
                inside = C_of[columns] == C
                solved, b = solve_primal(moments, map, C)
                coef[:, columns[inside]] = solved[:, inside]
                intercept[columns[inside]] = b[inside]
        return coef, intercept

    def _update(self, problem: FixedProblem | StreamUpdate, sign: int) -> None:
        """Add (+1) or remove (-1) rows and solve again with the same prototypes, C and gamma."""
        self._check_update()
        if (problem.table is not None) != self._by_class:
            raise InvalidInputError(
                "class_weight or targets were set to something else after fit, so that rows cannot "
                "be added or removed: set them back, or fit again."
            )
        change = self._accumulate(self._placed(problem), self._kernel, self.prototypes_)
        change = [part.on_host() for part in change]
        # Moments of a part of the prototypes have kept the shift of all of them.
        pairs = [
            (old, new.shifted(old.shift)) for old, new in zip(self.moments_, change, strict=True)
        ]
        whole = [old + new if sign > 0 else old - new for old, new in pairs]
        short = [
            part.weight < -1e-9 * old.weight for part, (old, _) in zip(whole, pairs, strict=True)
        ]
        if any(short) or min(part.n for part in whole) < 0 or sum(part.n for part in whole) < 1:
            raise InvalidInputError(
                "forget was given more rows than the model has learned: give only rows (with "
                "their labels and weights) that fit or partial_fit has seen."
            )
        table = None if problem.table is None else self._table_of(whole)
        C_of = np.broadcast_to(self.C_, (self.dual_coef_.shape[1],)).astype(float)
        try:
            coef, intercept = self._solve_again(whole, table, C_of)
        except NotPositiveDefiniteError as error:
            if sign > 0:
                raise
            raise InvalidInputError(
                "What is left without these rows is no sum over rows: forget was given rows that "
                "the model has not learned. Give only rows (with their labels and weights) that "
                "fit or partial_fit has seen."
            ) from error
        sample = self._sample_without(problem, sign)
        self.moments_, self.intercept_, self.dual_coef_ = whole, self._moved(intercept), coef
        self._sample = sample
        self._fitted_loss = "squared"  # only such models take rows
        self._cache.clear()

    def _moved(self, intercept: FloatArray) -> FloatArray:
        """Take what belongs to the decision off the intercepts; nothing here."""
        return intercept

    def _table_of(self, whole: list[Moments]) -> ClassTable | None:
        """Return the class table that belongs to moments of classes."""
        return None

    def _placed(self, problem: Any) -> Any:
        """Return the problem on the device of the call that is running, where there is one."""
        place = vars(self).get("_place")
        if place is None:
            return problem
        if getattr(self, "loss", "squared") != "squared" or is_criterion(self.scoring):
            raise InvalidInputError(
                f"loss={getattr(self, 'loss', 'squared')!r} with scoring={self.scoring!r} is not "
                "available on a device: give loss='squared' and scoring=None or a scorer, or "
                "device=None."
            )
        return DeviceProblem.of(problem, place.engine, place.X)

    # -- the fitted model ------------------------------------------------------------------------

    def _new_rows(self, X: Any) -> Any:
        """Return checked features of new rows, prepared where the model does that."""
        check_is_fitted(self)
        if is_stream(X):
            return stream_features(self, X)
        if hasattr(self, "preparation_"):
            named = hasattr(self, "feature_names_in_") or not is_frame(X)
            return self.preparation_.transform(X if named else np.asarray(X))
        if is_foreign(X):  # error bars are computed on the host
            X = to_numpy(X)
        return validate_data(self, X, reset=False, dtype=[np.float64, np.float32])

    def _raw_scores(self, X: Any) -> FloatArray:
        """Return the outputs of all problems for new rows, shape (n, k)."""
        check_is_fitted(self)
        if is_stream(X):
            return np.concatenate(list(stream_outputs(self, X)))
        place = vars(self).get("_place")
        X = self._new_rows(X) if place is None else check_device_rows(self, X)
        if place is not None:
            model = (self.prototypes_, self.dual_coef_, self.intercept_)
            return expand_on_device(place.engine, self._kernel, X, *model)
        return evaluate_expansion(
            self._kernel,
            X,
            self.prototypes_,
            self.dual_coef_,
            self.intercept_,
            budget=as_bytes(self.memory_budget),
            threads=n_threads(self.n_jobs),
        )


def _snap(gamma: float | None) -> float:
    """Return gamma to three digits: rounding in the last bits of a loss must not show in it."""
    assert gamma is not None
    return float(f"{gamma:.3g}")


@dataclass
class Tuned:
    """What tuning chose, with the moments of all rows there."""

    C_of: FloatArray
    gamma: Any
    size: int
    point: FixedSizePoint | FixedCriterionPoint
