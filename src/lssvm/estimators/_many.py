"""Many prototypes: ``solver="pcg"``, when it is chosen, and what it is given to solve."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm._core.memory import as_bytes, require
from lssvm._core.namespace import to_numpy
from lssvm._core.progress import Progress
from lssvm._core.random import as_generator
from lssvm._core.threads import n_threads, slices
from lssvm.engines.device_expansion import check_device_kernel
from lssvm.estimators._problem import FixedProblem
from lssvm.estimators._prototypes import is_int
from lssvm.estimators._validation import check_option
from lssvm.kernels import Kernel
from lssvm.solvers import (
    PCG,
    FeatureSpace,
    Group,
    KernelProducts,
    Rows,
    choose_primal,
    make_space,
    preconditioner_rows,
    solve_pcg,
)
from lssvm.solvers.primal import METHODS

TUNED_PROTOTYPES = 1000
"""Prototypes, the first of all, that C and gamma are tuned with where a fit takes no moments."""

_CHUNK = 8192  # rows of a part of a pass
_NO_MOMENTS = (
    "solver='pcg' keeps no moments, so rows cannot be added or removed: use solver='cholesky'"
)


def takes_rows(model: Any) -> bool:
    """Say whether rows can be added to a model and removed from it, or raise why not."""
    if isinstance(model.solver, PCG) or model.solver == "pcg":
        raise InvalidInputError(f"{_NO_MOMENTS}, or fit again.")
    return True


def path_method(solver: Any) -> str:
    """Return how a path of C is solved with the prototypes that tuning uses."""
    return solver if isinstance(solver, str) and solver in METHODS else "auto"


class ManyPrototypes(BaseEstimator):
    """Base of the fixed-size estimators: conjugate gradients in place of moments."""

    _no_update: str | None

    def _check_solver(self, reduction: Any) -> None:
        """Raise where a solver is not known, or cannot be had with the other parameters."""
        if isinstance(self.solver, PCG):
            name = repr(self.solver)
        else:
            check_option("solver", self.solver, (*METHODS, "pcg"))
            name = "solver='pcg'"
            if self.solver != "pcg":
                return
        needs = self._needs_moments(reduction)
        if needs is not None:
            raise InvalidInputError(
                f"{needs} works on moments, which {name} does not form: leave it out, or use "
                "solver='cholesky'."
            )

    def _needs_moments(self, reduction: Any) -> str | None:
        """Return the parameter that conjugate gradients cannot be used with."""
        if reduction is not None:
            return f"reduction={self.reduction!r}"
        if getattr(self, "loss", "squared") != "squared":
            return f"loss={self.loss!r}"
        if isinstance(self.n_prototypes, str) and self.n_prototypes == "cv":
            return "n_prototypes='cv'"
        return None

    def _choose_pcg(self, problem: FixedProblem, Z: FloatArray, reduction: Any) -> PCG | None:
        """Return the settings of conjugate gradients where they solve the model."""
        if isinstance(self.solver, PCG):
            return self.solver
        if self.solver == "pcg":
            return PCG()
        if self.solver != "auto" or self._needs_moments(reduction) is not None:
            return None
        if not problem.on_host:  # products are what a device is good at
            return None
        table = problem.table
        chosen = choose_primal(
            problem.n_rows,
            Z.shape[0],
            Z.shape[1],
            problem.Y.shape[1],
            n_cells=self._n_folds() * (1 if table is None else table.n_classes),
            n_groups=len(problem.groups),
            budget=as_bytes(self.memory_budget),
            threads=n_threads(self.n_jobs),
        )
        return PCG() if chosen == "pcg" else None

    def _n_folds(self) -> int:
        """Return about how many moments of all rows a fit holds at once."""
        words = [value for value in (self.C, self.gamma) if isinstance(value, str)]
        if not {"cv", "ard"} & set(words):
            return 1
        if isinstance(self.cv, float):
            return 2
        return int(self.cv) if is_int(self.cv) else 10

    def _solve_pcg(
        self, pcg: PCG, problem: FixedProblem, kernel: Kernel, Z: FloatArray, C_of: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return coefficients (m, k) and intercepts (k,); leave the residual on the model."""
        if not problem.on_host:
            check_device_kernel(kernel)
        n, m, k = problem.n_rows, len(Z), len(C_of)
        budget, threads = problem.budget(self.memory_budget), n_threads(self.n_jobs)
        factor, block = 8 * m * (m + 1), 8 * (512 * m + threads * (2**19 + 128 * m))
        require(
            factor + block + 8 * m * 8 * k,
            budget,
            what=f"The factors of {m:,} prototypes",
            advice="Lower n_prototypes, or raise memory_budget.",
        )
        room = budget - factor - block
        keep = 8 * n * (m + k) <= room // 2
        rows = KernelProducts(
            kernel,
            begin_passes(problem),
            problem.put(Z),
            k,
            offset=problem.put(_offset(problem)),
            keep=keep,
            threads=threads,
        )
        space = make_space(kernel, problem.put(Z), threads=threads)
        more = max(0, room - (8 * n * (m + k) if keep else 0)) // 2
        report = Progress(int(self.verbose))
        coef, intercept = np.empty((m, k)), np.empty(k)
        self.residual_, self.n_iter_, self.n_prototypes_ = 0.0, 0, m
        systems = [
            (columns[C_of[columns] == C], float(C))
            for columns in problem.groups
            for C in dict.fromkeys(C_of[columns].tolist())
        ]
        together = 1 + int(more // (8 * m * m))  # preconditioners that fit
        for part in slices(len(systems), together):
            space.clear()
            for columns, C in systems[part]:
                self._precondition(space, pcg, problem, columns, C, to_numpy(rows.sums.weight))
            wanted = np.concatenate([columns for columns, _ in systems[part]])
            solution = solve_pcg(
                rows,
                space,
                C_of,
                wanted,
                tol=pcg.tol,
                max_iter=pcg.max_iter,
                on_iteration=lambda i, r: report({"text": f"iteration {i}, residual {r:.1e}"}),
            )
            coef[:, wanted] = to_numpy(solution.coef)
            intercept[wanted] = to_numpy(solution.intercept)
            self.residual_ = max(self.residual_, solution.residual)
            self.n_iter_ = max(self.n_iter_, solution.iterations)
        self._no_update = _NO_MOMENTS
        return coef, intercept

    def _precondition(
        self,
        space: FeatureSpace,
        pcg: PCG,
        problem: FixedProblem,
        columns: IntArray,
        C: float,
        total: FloatArray,
    ) -> None:
        """Give some outputs a preconditioner: their rows, or a sample of those in memory."""
        rows = np.arange(len(problem.X))
        weight = problem.weight
        if problem.table is not None:
            labels, table = problem.labels, problem.table
            assert labels is not None
            factor = table.factors[labels] * (table.targets[labels, columns[0]] != 0)
            weight = factor if weight is None else weight * factor
            rows = np.flatnonzero(factor)
        m = self.n_prototypes_
        share = len(rows) / max(1, len(problem.X))
        size = pcg.n_rows
        if size is None:
            n = int(share * problem.n_rows)
            size = preconditioner_rows(n, m, problem.X.shape[1], len(columns))
        own = np.ones(len(rows)) if weight is None else weight[rows]
        mass = float(total[columns[0] if len(total) > 1 else 0])
        if problem.in_memory and size >= len(rows):  # all there are: nothing else is needed
            some, own = problem.put(problem.X[rows]), problem.put(own)
            space.add(Group(columns, C, some, own, 0.0))
            return
        # Each row with a chance in proportion to its weight, so that all count the same then.
        chance = np.minimum(1.0, size * own / own.sum())
        drawn = np.flatnonzero(as_generator(self._seed).random(len(rows)) < chance)
        each = mass / (len(drawn) + m)
        weight = own[drawn] / chance[drawn]
        weight *= each * len(drawn) / max(float(weight.sum()), np.finfo(np.float64).tiny)
        some, weight = problem.put(problem.X[rows[drawn]]), problem.put(weight)
        space.add(Group(columns, C, some, weight, each))


def begin_passes(problem: Any) -> Callable[[], Iterator[Rows]]:
    """Return the function that begins a pass over the rows of a problem, in memory or not."""
    if not problem.on_host:
        return problem.passes  # type: ignore[no-any-return]
    table = problem.table
    apart = table is not None and len(problem.groups) > 1

    def ready(X: Any, Y: Any, weight: Any, labels: Any) -> Rows:
        if table is not None:
            factor = table.factors[labels]
            weight = factor if weight is None else weight * factor
            Y = table.targets[labels]
        if apart:
            weight = weight[:, None] * (Y != 0)
        return Rows(X, Y, weight)

    def arrays() -> Iterator[Rows]:
        n = problem.n_rows
        for part in slices(n, int(np.clip(n // 16, 1024, _CHUNK))):
            weight = None if problem.weight is None else problem.weight[part]
            labels = None if problem.labels is None else problem.labels[part]
            yield ready(problem.X[part], problem.Y[part], weight, labels)

    def stream() -> Iterator[Rows]:
        for piece in problem.rows.pieces():
            for part in slices(len(piece.X), _CHUNK):
                weight = None if piece.weight is None else piece.weight[part]
                yield ready(piece.X[part], piece.Y[part], weight, piece.label[part])

    return arrays if problem.in_memory else stream


def _offset(problem: FixedProblem) -> FloatArray:
    """Return about the mean of the targets of a regression; nothing for classes."""
    k = problem.Y.shape[1]
    if problem.labels is not None:
        return np.zeros(k)
    return np.asarray(np.average(problem.Y, axis=0, weights=problem.weight), dtype=np.float64)
