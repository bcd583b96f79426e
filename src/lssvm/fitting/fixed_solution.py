"""Coefficients of a fixed-size model: from moments, or by conjugate gradients without them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    is_numpy,
    is_sparse,
    join_rows,
    pick,
    times,
    to_numpy,
)
from lssvm._core.blocks import require, run_blocks, run_stream, slices
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm._core.random import as_generator
from lssvm.backends.host import Host
from lssvm.backends.rows import Rows, Training, class_rows
from lssvm.data.folds import (
    Folds,
    are_observations,
    hash_rows,
    observation_weight,
    restrict_folds,
    smallest_hashes,
)
from lssvm.fitting.dual import DualFit, DualSettings, fit_dual
from lssvm.fitting.fixed_settings import (
    NO_OUTPUTS,
    FixedProblem,
    FixedSettings,
    Prototypes,
    fold_task,
    folds_of,
    groups_of,
)
from lssvm.fitting.record import Fit, KernelState, Posteriors
from lssvm.kernels import Kernel
from lssvm.prototypes import Selection
from lssvm.reductions import FixedSizeL0, SparsityPath
from lssvm.reductions.fixed_size import PrototypeBasis, cross_validate_sizes, reduce_as_printed
from lssvm.reductions.l0 import L0System, l0_order, target_scale
from lssvm.solvers import PCG
from lssvm.solvers.moments import FoldMoments, Moments, NystromMap, assemble, nystrom_map
from lssvm.solvers.pcg import (
    KernelProducts,
    PreconditionerRows,
    make_space,
    preconditioner_rows,
    solve_pcg,
)
from lssvm.solvers.primal import Bias, choose_primal, number_folds, solve_primal
from lssvm.tasks import Classes, ClassTable, SquaredError, Task
from lssvm.tasks.losses import best_threshold
from lssvm.tuning.fixed_size import FixedSizeObjective
from lssvm.uncertainty import (
    FixedPosterior,
    OutOfFold,
    Residuals,
    left_out_scores,
    scaled_residuals,
)

Coefficients: TypeAlias = tuple[FloatArray, FloatArray]
"""Of a model on its prototypes, (m, k), and its intercepts (k,)."""

TUNED_PROTOTYPES = 1000
"""Prototypes, the first of all, that C and gamma are tuned with where a fit takes no moments."""


def solve_moments(
    whole: list[Moments],
    map: NystromMap,
    task: Classes | None,
    C_of: FloatArray,
    *,
    bias: Bias = "free",
    threads: int = 1,
) -> Coefficients:
    """Solve for the coefficients on the prototypes [DeBrabanter2010, eq. (7)]."""
    many = len(groups_of(task, len(C_of))) > 2 * len(whole) and is_numpy(map.T)

    def mapped(part: Moments) -> Moments:
        return part.mapped(map.whiten(part.gram), map.T)

    def solve(problem: tuple[IntArray, float, Moments]) -> tuple[IntArray, FloatArray, FloatArray]:
        columns, C, moments = problem
        solved, b = solve_primal(moments, None if many else map, C, bias=bias)
        return columns, map.T @ solved if many else solved, b

    if many:  # problems of few classes, whose moments are mapped once
        whole = run_blocks(mapped, whole, threads)
    coef, intercept = np.zeros((map.T.shape[0], len(C_of))), np.zeros(len(C_of))
    todo = problems(whole, task, C_of)
    for columns, solved, b in (
        run_stream(solve, todo, threads) if many else (solve(p) for p in todo)
    ):
        coef[:, columns], intercept[columns] = solved, b
    return coef, intercept


def problems(
    whole: list[Moments], task: Classes | None, C_of: FloatArray, only: IntArray | None = None
) -> Iterator[tuple[IntArray, float, Moments]]:
    """Yield outputs (all, or ``only`` some) that share rows and C, their C, and their moments."""
    counts = class_counts(whole)
    for columns in groups_of(task, len(C_of)):
        wanted = np.ones(len(columns), dtype=bool) if only is None else np.isin(columns, only)
        if not wanted.any():
            continue
        moments = whole[0] if task is None else assemble(task, whole, columns, counts)
        for C in dict.fromkeys(C_of[columns[wanted]].tolist()):
            inside = np.flatnonzero(wanted & (C_of[columns] == C))
            yield columns[inside], C, moments.outputs(inside)


def class_counts(whole: list[Moments]) -> FloatArray:
    """Return the weights of the classes."""
    return np.array([part.weight for part in whole])


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients (m, k) and intercepts (k,), the C of each, and how they were computed."""

    coef: FloatArray
    intercept: FloatArray
    C: FloatArray
    solver: str = "direct"
    residual: float = 0.0
    iterations: int = 0


def choose_pcg(problem: FixedProblem, Z: FloatArray) -> PCG | None:
    """Return the settings of conjugate gradients, or None where moments are the better way."""
    rows, settings, task = problem.rows, problem.settings, problem.by_class
    if isinstance(settings.solver, PCG):
        return settings.solver
    if settings.solver == "pcg":
        return PCG()
    if settings.solver != "auto" or settings.needs_moments is not None or is_sparse(Z):
        return None
    if rows.backend.prefers_moments:
        return None
    chosen = choose_primal(
        rows.n_rows,
        Z.shape[0],
        Z.shape[1],
        rows.n_outputs,
        n_cells=settings.n_folds * (1 if task is None else task.n_classes),
        n_groups=len(groups_of(task, rows.n_outputs)),
        budget=rows.backend.budget,
        threads=rows.backend.threads,
    )
    return PCG() if chosen == "pcg" else None


def solve_by_gradients(
    problem: FixedProblem, pcg: PCG, kernel: Kernel, Z: FloatArray, C_of: FloatArray
) -> Solution:
    """Solve by preconditioned conjugate gradients, in passes over the rows."""
    rows, task, on_event = problem.rows, problem.by_class, problem.callback.on_event
    n, m, k = rows.n_rows, Z.shape[0], len(C_of)
    backend = rows.backend
    budget, threads = backend.budget, backend.threads
    factor, block = 8 * m * (m + 1), 8 * (512 * m + threads * (2**19 + 128 * m))
    require(
        factor + block + 8 * m * 8 * k,
        budget,
        what=f"The factors of {m:,} prototypes",
        advice="Lower n_prototypes, or raise memory_budget.",
    )
    room = budget - factor - block
    keep = 8 * n * (m + k) <= room // 2
    backend.check(kernel=kernel)
    products = KernelProducts(
        kernel,
        lambda: rows.row_blocks(task),
        backend.put(Z),
        k,
        offset=backend.put(rows.sample.target_offset()),
        keep=keep,
        threads=threads,
    )
    space = make_space(kernel, backend.put(Z), threads=threads)
    more = max(0, room - (8 * n * (m + k) if keep else 0)) // 2
    coef, intercept = np.empty((m, k)), np.empty(k)
    residual, iterations = 0.0, 0
    systems = [
        (columns[C_of[columns] == C], float(C))
        for columns in groups_of(task, k)
        for C in dict.fromkeys(C_of[columns].tolist())
    ]
    together = 1 + int(more // (8 * m * m))  # preconditioners that fit
    for part in slices(len(systems), together):
        space.clear()
        for columns, C in systems[part]:
            mass = to_numpy(products.sums.weight)
            problem_mass = float(mass[columns[0] if len(mass) > 1 else 0])
            space.add(_precondition(problem, pcg, m, columns, C, problem_mass))
        wanted = np.concatenate([columns for columns, _ in systems[part]])
        solution = solve_pcg(
            products,
            space,
            C_of,
            wanted,
            tol=pcg.tol,
            max_iter=pcg.max_iter,
            on_iteration=lambda i, r: on_event({"text": f"iteration {i}, residual {r:.1e}"}),
        )
        coef[:, wanted] = to_numpy(solution.coef)
        intercept[wanted] = to_numpy(solution.intercept)
        residual = max(residual, solution.residual)
        iterations = max(iterations, solution.iterations)
    return Solution(coef, intercept, C_of, "pcg", residual, iterations)


def _precondition(
    problem: FixedProblem, pcg: PCG, m: int, columns: IntArray, C: float, mass: float
) -> PreconditionerRows:
    """Return the preconditioner of one system: the moments of prototypes and of some rows."""
    rows, task = problem.rows, problem.by_class
    sample: Rows = rows.sample
    used, weight = np.arange(sample.n_rows), sample.weight
    if task is not None:
        table = sample.table(task)
        assert sample.labels is not None
        factor = table.factors[sample.labels] * (table.targets[sample.labels, columns[0]] != 0)
        weight, used = times(weight, factor), np.flatnonzero(factor)
    size = pcg.n_rows
    if size is None:
        n = int(len(used) / max(1, sample.n_rows) * rows.n_rows)
        size = preconditioner_rows(n, m, sample.X.shape[1], len(columns))
    row_weight = np.ones(len(used)) if weight is None else weight[used]
    put = rows.backend.put
    each = 0.0
    if sample.n_rows < rows.n_rows or size < len(used):  # else all there are are enough
        chance = np.minimum(1.0, size * row_weight / row_weight.sum())
        drawn = np.flatnonzero(as_generator(problem.settings.seed).random(len(used)) < chance)
        used, row_weight, each = (
            used[drawn],
            row_weight[drawn] / chance[drawn],
            mass / (len(drawn) + m),
        )
        row_weight *= each * len(drawn) / max(float(row_weight.sum()), np.finfo(np.float64).tiny)
    return PreconditionerRows(columns, C, put(sample.X[used]), put(row_weight), each)


@dataclass(frozen=True, eq=False, kw_only=True)
class FixedState(KernelState):
    """Moments, and how the prototypes came about.

    Attributes
    ----------
    n_prototypes : int
        Before a reduction.
    moments : list of Moments
        One, or one per class; none of conjugate gradients. Of targets less ``centre``.
    map : NystromMap or None
    selection : Selection or None
    used : bool array of shape (m, k) or None
        Which prototypes serve which output, where a reduction left each its own.
    no_update : str or None
        Why rows cannot be added or removed.
    paths : tuple of SparsityPath
        Of a reduction whose size was cross-validated.
    kept : PrototypeBasis or None
        Moments of the folds, for `sparsity_path`; neither pickled nor stored.
    centre : array of shape (k,) or None
        What was taken off targets that are numbers, at the first fit; rows that are added later and
        the sample that calibrates are without it too.
    peak_memory : int or None
        When fitted to a scan: bytes that the process has had at the most up to then.
    bias : {"free", "penalised", "none"}
    """

    n_prototypes: int
    moments: list[Moments] = field(default_factory=list)
    map: NystromMap | None = None
    selection: Selection | None = None
    used: BoolArray | None = None
    no_update: str | None = None
    paths: tuple[SparsityPath, ...] = ()
    kept: PrototypeBasis | None = None
    centre: FloatArray | None = None
    peak_memory: int | None = None
    bias: Bias = "free"

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"kept": None}

    @property
    def is_posterior_of_model(self) -> bool:
        """Whether the model is the mean of the posterior that its moments give."""
        return self.used is None and self.no_update is None and self.bias == "free"

    def published(self, fit: FixedFit) -> dict[str, Any]:
        """Return fitted attributes of the estimator."""
        pcg, tuning, common = self.solver == "pcg", fit.tuning, super().published(fit)
        where_known = {
            "residual_": self.residual if pcg else None,
            "n_iter_": self.iterations if pcg or fit.task.classes is None else None,
            "sparsity_paths_": list(self.paths) or None,
            "peak_memory_": self.peak_memory,
            "size_results_": None if tuning is None else tuning.sizes,
            "sample_results_": None if tuning is None else tuning.sample,
        }
        return {
            **common,
            "prototypes_": common["support_vectors_"],
            "n_prototypes_": self.n_prototypes,
            "moments_": self.moments,
            "selection_": self.selection,
            "solver_": self.solver,
            **{name: value for name, value in where_known.items() if value is not None},
        }

    def reduced(self, form: str, fit: FixedFit) -> FixedState:
        """Return what a file of this form keeps."""
        stripped = replace(self, moments=[], map=None, selection=None, kept=None)
        if form == "support":
            return replace(stripped, paths=())
        if fit.task.classes is None and self.loss == "squared" and self.is_posterior_of_model:
            return replace(stripped, moments=self.moments, map=self.map)  # error bars need them
        return stripped


FixedFit: TypeAlias = Fit[FixedState]


SAMPLE = 5000
"""Rows that a model keeps to leave them out one by one."""
OF_A_CLASS = 100
"""Rows of a class on which the problems of pairs are calibrated, where a class has so many."""
OTHERS = 50
"""Rows besides the prototypes that intervals are calibrated on, where there are so many."""
SCORES = 20_000
"""Rows whose out-of-fold scores a model keeps."""


@dataclass(frozen=True, eq=False)
class CalibrationSample:
    """Some training rows, sorted by the hashes of their content.

    Attributes
    ----------
    keys : uint64 array of shape (t,)
        Hashes; equal rows have the same.
    X : array of shape (t, d) or None
        None where only the scores are kept.
    Y : array of shape (t, k)
    weight, labels : array of shape (t,) or None
    held_out : array of shape (t, k) or None
        Outputs of models that have not seen the rows.
    behind : bool
        Whether rows were added later that are not in the sample.
    """

    keys: NDArray[np.uint64]
    X: FloatArray | None
    Y: FloatArray
    weight: FloatArray | None
    labels: IntArray | None
    held_out: FloatArray | None = None
    behind: bool = False

    def take(self, rows: IntArray) -> CalibrationSample:
        """Return some of the rows."""
        columns = ("keys", "X", "Y", "weight", "labels", "held_out")
        return replace(self, **{name: pick(getattr(self, name), rows) for name in columns})

    def joined(self, other: CalibrationSample) -> CalibrationSample:
        """Return the rows of both."""

        def join(mine: Any, its: Any) -> Any:
            return None if mine is None or its is None else join_rows([mine, its])

        both = [np.ones(len(s.keys)) if s.weight is None else s.weight for s in (self, other)]
        joined = CalibrationSample(
            join(self.keys, other.keys),
            join(self.X, other.X),
            join(self.Y, other.Y),
            None if self.weight is None and other.weight is None else join(*both),
            join(self.labels, other.labels),
            join(self.held_out, other.held_out),
            self.behind or other.behind,
        )
        return joined.take(np.argsort(joined.keys, kind="stable"))

    def enough_for_pairs(self, n_classes: int) -> CalibrationSample:
        """Return the first rows, at least 100 of every class: rows are in the order of hashes."""
        assert self.labels is not None
        size = min(OF_A_CLASS * n_classes, len(self.keys))
        for c in range(n_classes):
            members = np.flatnonzero(self.labels == c)[:OF_A_CLASS]
            size = max(size, int(members[-1]) + 1 if len(members) else 0)
        end = int(np.searchsorted(self.keys, self.keys[size - 1], side="right"))  # equal rows
        return self.take(np.arange(end))

    def folds(self, weight: FloatArray | None) -> tuple[list[IntArray], FloatArray | None]:
        """Return the rows that are left out together, and the weights that leave with them.

        These are equal rows, or single ones where equal rows are observations. ``weight`` is that
        of the rows in the fit.
        """
        n, cuts = len(self.keys), np.flatnonzero(self.keys[1:] != self.keys[:-1]) + 1
        observed, unit = observation_weight(n, weight, self.labels)
        known = self.Y if self.labels is None else self.labels
        if are_observations(self.keys, known, weight, observed):
            return list(np.arange(n)[:, None]), unit
        return np.split(np.arange(n), cuts), weight


def draw_sample(
    rows: Training, folds: Folds | None, seed: int, size: int, class_table: ClassTable | None = None
) -> tuple[CalibrationSample, IntArray]:
    """Draw the rows with the smallest hashes, among those that were tested; also their numbers.

    ``class_table`` has the weights of the classes where no moments keep them.
    """
    sample, tested = rows.sample, None
    if folds is not None:
        tested = np.zeros(sample.n_rows, dtype=bool)
        for test in folds.test:
            tested[test] = True
    content = rows.content
    known = {name: value for name, value in sample.observed().items() if name != "groups"}
    hashes, numbers = smallest_hashes(content, size, seed, tested, **known)
    columns = (sample.X, sample.Y, sample.weight, sample.labels)
    X, Y, weight, labels = (pick(column, numbers) for column in columns)
    if class_table is not None:
        weight = times(weight, class_table.factors[labels])
    return CalibrationSample(hashes, X, Y, weight, labels), numbers


def remember(
    rows: Training,
    seed: int,
    class_table: ClassTable | None = None,
    folds: Folds | None = None,
    outputs: Callable[[IntArray], FloatArray] | None = None,
) -> FixedCalibrationData:
    """Keep a sample of the rows, see `draw_sample`.

    Where there are models of the folds, ``outputs`` returns their outputs for rows of these numbers
    that they have not seen.
    """
    classes = rows.sample.labels is not None
    size = SCORES if outputs is not None and classes else SAMPLE
    sample, numbers = draw_sample(rows, folds, seed, size, class_table)
    if outputs is None:
        return FixedCalibrationData(sample)
    held_out = outputs(numbers)
    return FixedCalibrationData(replace(sample, X=None if classes else sample.X, held_out=held_out))


def held_out_outputs(
    rows: Training,
    folds: Folds,
    kernel: Kernel,
    Z: FloatArray,
    models: Sequence[tuple[FloatArray, FloatArray]],
    numbers: IntArray,
) -> FloatArray:
    """Return what the models of the folds say of tested rows of these numbers, shape (t, k)."""
    held_out = np.full((len(numbers), len(models[0][1])), np.nan)
    for test, (coef, b) in zip(folds.test, models, strict=True):
        tested = np.flatnonzero(np.isin(numbers, test))
        held_out[tested] = rows.backend.outputs(kernel, rows.sample.X[numbers[tested]], Z, coef, b)
    return held_out


def with_thresholds(fit: FixedFit, how: str) -> FixedFit:
    """Add thresholds of classes: zero, or where out-of-fold outputs make the fewest errors."""
    calibration, state, task = fit.calibration, fit.state, fit.task
    if not isinstance(task, Classes):
        return fit
    if how == "zero":
        return replace(fit, state=replace(state, threshold=np.zeros(task.n_outputs)))
    sample = calibration.sample if isinstance(calibration, FixedCalibrationData) else None
    if sample is None or sample.held_out is None or sample.labels is None:
        raise InvalidInputError(NO_OUTPUTS)
    weight = sample.weight
    if task.per_class and state.moments:  # else the weights are in the rows
        factors = task.table(class_counts(state.moments)).factors[sample.labels]
        weight = times(weight, factors)
    outputs = zip(sample.held_out.T, sample.Y.T, strict=True)
    moved = np.array([best_threshold(scores, targets, weight) for scores, targets in outputs])
    held_out = replace(sample, held_out=sample.held_out - moved)
    return replace(
        fit.solved(intercept=fit.expansion.intercept - moved),
        state=replace(state, threshold=moved),
        calibration=FixedCalibrationData(held_out),
    )


@dataclass(frozen=True, eq=False)
class FixedCalibrationData:
    """A sample of the rows, or nothing."""

    sample: CalibrationSample | None = None

    def reduced(self, form: str, fit: FixedFit) -> FixedCalibrationData:
        """Return what a file of this form keeps: no rows."""
        return self if form == "all" else FixedCalibrationData()

    def _rows(self) -> CalibrationSample:
        if self.sample is None or len(self.sample.keys) < 2:
            raise InvalidInputError(
                "The model has too few rows of its training set left to calibrate on: fit it to "
                "at least 2 rows."
            )
        if self.sample.behind:
            warnings.warn(
                "Rows added from a scan are learned but do not calibrate intervals and "
                "probabilities, which stay those of the other rows: fit again on all rows.",
                NumericalWarning,
                stacklevel=4,
            )
        return self.sample

    def posteriors(self, fit: FixedFit, host: Host) -> Posteriors:
        """Return the Gaussian posteriors of a regressor's outputs."""
        state = fit.state
        state.check_posterior()
        if state.solver == "pcg":
            raise InvalidInputError(
                "solver='pcg' keeps no moments, from which standard deviations and intervals "
                "follow: use solver='cholesky', with fewer prototypes if need be."
            )
        if state.bias != "free":
            raise InvalidInputError(
                "A model without a free bias has no posterior here: use fit_intercept=True for "
                "standard deviations and intervals."
            )
        if not state.is_posterior_of_model:
            raise InvalidInputError(
                "The reduction of this model, or per_output=True of a search, left it without a "
                "posterior: use reduction='spfs' or None, and per_output=False, for standard "
                "deviations and intervals."
            )
        assert state.map is not None
        one, limits = fit.expansion, (host.budget, host.threads)
        return [
            (columns, FixedPosterior(one.kernel, one.basis, state.map, moments, C, *limits))
            for columns, C, moments in problems(state.moments, fold_task(fit.task), one.C)
        ]

    def residuals(self, fit: FixedFit, host: Host, posteriors: Posteriors) -> Residuals:
        """Return errors of rows left out, in units of their predicted deviations.

        Prototypes stay in the basis while they are left out, which no new row is: they are not
        among these rows, as long as there are others.
        """
        sample = self._rows()
        others = np.flatnonzero(~np.isin(sample.keys, hash_rows(fit.expansion.basis, fit.seed)))
        sample = sample.take(others) if len(others) >= OTHERS else sample
        assert sample.X is not None
        residuals, scale = np.empty(sample.Y.shape), np.empty(sample.Y.shape)
        folds, leaving = sample.folds(sample.weight)
        for columns, posterior in posteriors:
            assert isinstance(posterior, FixedPosterior)
            Y = sample.Y[:, columns]
            left, variance = posterior.leave_out(sample.X, Y, folds, leaving)
            residuals[:, columns] = Y - left
            spread = variance[:, None] * posterior.prior_variance + posterior.noise_variance
            scale[:, columns] = np.sqrt(spread)
        if sample.held_out is not None:
            residuals = sample.Y - sample.held_out
        return scaled_residuals(residuals, scale, sample.weight)

    def out_of_fold(self, fit: FixedFit, host: Host) -> OutOfFold:
        """Return scores of rows by models that have not seen them."""
        sample, state, task, one = self._rows(), fit.state, fit.task, fit.expansion
        assert isinstance(task, Classes)
        if len(groups_of(fold_task(task), task.n_outputs)) > 1 and sample.held_out is None:
            sample = sample.enough_for_pairs(task.n_classes)
        assert sample.labels is not None
        weight, Y = sample.weight, sample.Y
        if fold_task(fit.task) is not None and state.moments:
            table = task.table(class_counts(state.moments))  # as it follows from all rows now
            weight = times(weight, table.factors[sample.labels])
            Y = table.targets[sample.labels]
        if sample.held_out is not None:
            return OutOfFold(sample.held_out, sample.labels, weight)
        assert sample.X is not None
        if not state.is_posterior_of_model:  # few coefficients remember at most the prototypes
            new = np.flatnonzero(~np.isin(sample.keys, hash_rows(one.basis, fit.seed)))
            if len(np.unique(sample.labels[new])) < task.n_classes:
                new = np.arange(len(sample.keys))
            outputs = fit.mapped_outputs(sample.X[new], host)
            return OutOfFold(outputs, sample.labels[new], pick(weight, new))
        folds, leaving = sample.folds(weight)
        fold_of = number_folds(folds, len(Y))
        assert state.map is not None
        map = state.map
        features = host.outputs(
            one.kernel, sample.X, one.basis, map.T, np.zeros(map.rank)
        )  # once for all problems, as are the moments of the features
        parts = [part.mapped(map.whiten(part.gram), map.T) for part in state.moments]
        scores = np.empty(Y.shape)
        for columns, C, moments in problems(parts, fold_task(task), one.C):
            data = (features, Y[:, columns], fold_of, leaving)
            scores[:, columns] = left_out_scores(moments, C, *data)
        return OutOfFold(scores, sample.labels, weight)


KEEP = 0.05
"""Part of the memory budget up to which the moments of the folds are kept."""
SD_KEEPS_NO_ROWS = (
    "reduction='sd' has learned from the prototypes alone, so there are no other rows to add or "
    "remove: use reduction='ssd'"
)
REWEIGHTED = (
    "a reduction with refit=False ends in a reweighted system, so rows cannot be added or removed "
    "exactly: use refit=True"
)


# -- the dual model on the prototypes: the start of SSD, and SD itself ----------------------------


@dataclass(frozen=True, eq=False)
class PrototypeRows:
    """The training rows that are prototypes: one for each different pair of row and class.

    Attributes
    ----------
    rows : int array of shape (t,)
        Rows of the sample.
    member : int array of shape (t,)
        Prototypes that they are.
    labels : int array or None
    Y : array of shape (t, k)
        Weighted means of the targets of equal rows.
    weight : array of shape (t,)
        Sums of their weights.
    """

    rows: IntArray
    member: IntArray
    labels: IntArray | None
    Y: FloatArray
    weight: FloatArray


def prototype_rows(sample: Rows, chosen: Prototypes, what: str) -> PrototypeRows:
    """Find the training rows that are prototypes."""
    Z, support = chosen.Z, chosen.support
    if len(support) != Z.shape[0] or np.any(support < 0):
        raise InvalidInputError(
            f"reduction={what!r} needs the targets of the prototypes, which must be rows of X: "
            "choose another selection (not 'kmeans' or given points, and not the linear kernel, "
            "which has none), or reduction='spfs'."
        )
    keys, names = hash_rows(sample.X), hash_rows(Z)
    order = np.argsort(names, kind="stable")
    at = np.minimum(np.searchsorted(names[order], keys), Z.shape[0] - 1)
    rows = np.flatnonzero(names[order][at] == keys)
    member = order[at[rows]]
    s = np.ones(len(keys)) if sample.weight is None else np.asarray(sample.weight, float)
    labels = np.zeros(len(keys), np.intp) if sample.labels is None else sample.labels
    classes = labels[rows].astype(np.intp)
    pair = member * (int(labels.max()) + 1) + classes
    _, first, group = np.unique(pair, return_index=True, return_inverse=True)
    weight = np.bincount(group, s[rows])
    Y = np.asarray(sample.Y[rows], dtype=np.float64)
    means = [np.bincount(group, s[rows] * column) / weight for column in Y.T]
    pair_labels = None if sample.labels is None else classes[first]
    return PrototypeRows(rows[first], member[first], pair_labels, np.stack(means, 1), weight)


@dataclass(frozen=True, eq=False)
class DualStart:
    """The dual model that was tuned and trained on the prototypes alone."""

    fit: DualFit
    coef: FloatArray  # (m, k)


def fit_on_prototypes(problem: FixedProblem, chosen: Prototypes) -> DualStart | None:
    """Train the dual model on the prototypes [Mall2014, algorithm 4]; None where it is not used."""
    rows, task, settings, gamma = problem.rows, problem.task, problem.settings, problem.gamma
    if settings.method not in ("ssd", "sd"):
        return None
    if settings.sizes_by_cv:
        raise InvalidInputError(
            f"n_prototypes='cv' cannot be used with reduction={settings.method!r}, which tunes on "
            "the prototypes alone: give a number, or 'auto'."
        )
    if settings.search.checkpoint is not None:
        raise InvalidInputError(
            "A checkpoint cannot be used with reduction='ssd' or 'sd', which tune on the "
            "prototypes alone: leave it out."
        )
    sample: Rows = rows.sample
    part = prototype_rows(sample, chosen, settings.method)
    X, host = chosen.Z[part.member], Host(sample.budget, sample.threads)
    if isinstance(task, Classes):
        assert part.labels is not None
        missing = np.setdiff1d(np.arange(task.n_classes), part.labels)
        if len(missing):
            raise InvalidInputError(
                f"No prototype is of the classes {task.classes[missing].tolist()}, which the dual "
                "model on the prototypes has to learn: raise n_prototypes, or use "
                "reduction='spfs'."
            )
        inner = class_rows(task, X, part.labels, part.weight, host, by_class=False)
        y = task.classes[part.labels]
    else:
        y = part.Y if sample.centre is None else part.Y + sample.centre
        inner = Rows(X, y, part.weight, budget=sample.budget, threads=sample.threads)
    # the groups are those of the first of equal rows
    groups = None if sample.groups is None else sample.groups[sample.row_numbers[part.rows]]
    inner = replace(inner, caller_data=(X, y), groups=groups)
    inner_settings = DualSettings(
        C=settings.C,
        choice=settings.choice if gamma is None else replace(settings.choice, gamma=gamma),
        cv=_cv_on_prototypes(rows, settings, part),
        search=settings.search,
        scoring=settings.scoring,
        seed=settings.seed,
    )
    fit = fit_dual(inner, task, inner_settings, problem.callback)
    dual = fit.expansion.coef
    coef = np.zeros((chosen.Z.shape[0], dual.shape[1]))
    np.add.at(coef, part.member[fit.state.support], dual)
    return DualStart(fit, coef)


def _cv_on_prototypes(rows: Training, settings: FixedSettings, part: PrototypeRows) -> Any:
    if isinstance(settings.cv, (int, np.integer, str)):
        return settings.cv
    all_folds = folds_of(rows.sample, settings)  # folds of all rows: what is left of them
    assert isinstance(all_folds, Folds)
    folds = restrict_folds(all_folds, part.rows, rows.sample.n_rows)
    everyone = np.arange(len(part.rows))
    train = folds.train or [np.setdiff1d(everyone, test) for test in folds.test]
    return [pair for pair in zip(train, folds.test, strict=True) if len(pair[0])]


# -- which prototypes are left ---------------------------------------------------------------------


def moments_to_reduce(problem: FixedProblem, kernel: Kernel, Z: FloatArray) -> FoldMoments | None:
    """Return the moments of the folds for a reduction whose model was not tuned on all rows."""
    rows, settings = problem.rows, problem.settings
    if settings.method in (None, "sd"):
        return None
    data = (rows, Z, folds_of(rows, settings), SquaredError(), problem.by_class)
    return FixedSizeObjective(lambda _: kernel, *data).at(None).moments


def prototype_basis(
    problem: FixedProblem,
    fit: FixedFit,
    chosen: Prototypes,
    moments: FoldMoments,
    start: DualStart | None,
) -> PrototypeBasis:
    """Return what reductions work on."""
    systems, rows, scale, kernel = None, problem.rows, None, fit.expansion.kernel
    reduction = problem.settings.reduction
    printed = reduction is not None and reduction.settings.printed  # in whatever unit y is
    if not printed and not isinstance(problem.task, Classes):
        scale = target_scale(moments.whole[0])
    if problem.settings.method == "sv-l0":
        part = prototype_rows(rows.sample, chosen, "sv-l0")
        systems = _prototype_systems(kernel, chosen.Z, part, problem.task, scale)
    first = None if start is None else start.coef
    threads = rows.backend.threads
    return PrototypeBasis(
        kernel, chosen.Z, moments, fit.expansion.C, first, systems, threads, scale
    )


def _prototype_systems(
    kernel: Kernel, Z: FloatArray, part: PrototypeRows, task: Task, scale: FloatArray | None
) -> list[L0System]:
    K = np.asarray(kernel(Z, Z), dtype=np.float64)[part.member]
    systems, by_class = [], fold_task(task)
    for columns in groups_of(by_class, task.n_outputs):
        weight, Y = part.weight, part.Y[:, columns]
        if by_class is not None:
            assert part.labels is not None
            table = by_class.table(by_class.counts(part.labels, part.weight))
            Y = table.targets[np.ix_(part.labels, columns)]
            weight = weight * table.factors[part.labels] * (Y[:, 0] != 0)
        if weight.sum() > 0:
            part_scale = None if scale is None else scale[columns]
            systems.append(L0System.of(Moments.of(K, Y, weight), columns, part_scale))
    return systems


def worth_keeping(basis: PrototypeBasis, budget: int) -> PrototypeBasis | None:
    """Return the moments of the folds, on the host, where they are small for the budget."""
    size = 8 * basis.Z.shape[0] ** 2 * len(basis.moments.cells)
    if basis.n_folds < 2 or size > KEEP * budget:
        return None
    return replace(basis, moments=basis.moments.on_host())


def reduce_model(
    fit: FixedFit,
    rows: Training,
    basis: PrototypeBasis,
    reduction: FixedSizeL0,
    C_grid: FloatArray | None,
) -> FixedFit:
    """Drop prototypes [Mall2014, algorithms 3 and 4]."""
    m, k = basis.Z.shape[0], len(basis.C)
    size = reduction.size if isinstance(reduction.size, (int, np.integer)) else None
    if size is not None and size > m:
        raise InvalidInputError(
            f"size={size} support vectors were asked for, but there are only {m} prototypes: give "
            f"at most {m}, or raise n_prototypes."
        )
    jobs = [np.arange(k)] if reduction.joint else [np.array([j]) for j in range(k)]
    coef, intercept, C = np.zeros((m, k)), np.zeros(k), np.empty(k)
    used = np.zeros((m, k), dtype=bool)
    paths = []
    for columns in jobs:
        path = None
        if reduction.size != "l0" and basis.n_folds > 1:
            path = cross_validate_sizes(basis, columns, C_grid)
            paths.append(path)
        support, C[columns], solved = _choose(basis, columns, reduction, size, path)
        if solved is None:
            solved = basis.solve(None, columns, support, C[columns])
        coef[np.ix_(support, columns)], intercept[columns] = solved
        used[np.ix_(support, columns)] = True
    left = np.flatnonzero(used.any(axis=1))
    if len(left) == 0:  # only as printed
        left = np.zeros(1, dtype=np.intp)
        warnings.warn(
            "The reduction has dropped every prototype: the model is a constant. Raise C, or use "
            "reduction='spfs', which keeps those that matter.",
            NumericalWarning,
            stacklevel=5,
        )
    support = fit.state.support
    state = replace(
        fit.state,
        support=support[left] if len(support) else support,
        moments=[whole.subset(left) for whole in basis.moments.whole],
        map=nystrom_map(basis.kernel, rows.backend.put(basis.Z[left])),
        used=None if reduction.joint else used[left],
        no_update=None if reduction.refit else REWEIGHTED,
        paths=tuple(paths),
    )
    fit = fit.solved(basis=basis.Z[left], coef=coef[left], intercept=intercept, C=C)
    return replace(fit, state=state)


def _choose(
    basis: PrototypeBasis,
    columns: IntArray,
    reduction: FixedSizeL0,
    size: int | None,
    path: SparsityPath | None,
) -> tuple[IntArray, FloatArray, tuple[FloatArray, FloatArray] | None]:
    C = basis.C[columns]
    if size is not None:
        if path is not None:
            return path.support(size), path.C_at(size), None
        order = l0_order(basis.systems(None, columns), basis.first(None, columns), C)
        return np.sort(order[:size]), C, None
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
            "one that left last was kept. Give a size for more, or other features.",
            NumericalWarning,
            stacklevel=6,
        )
    return path.support(size), path.C_at(size), None


def solve_used(
    fit: FixedFit, whole: list[Moments], used: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Solve for outputs that each have their own prototypes."""
    moments, one = FoldMoments.without_folds(whole, fold_task(fit.task)), fit.expansion
    basis = PrototypeBasis(one.kernel, one.basis, moments, one.C)
    coef, intercept = np.zeros(used.shape), np.zeros(used.shape[1])
    for j in range(used.shape[1]):
        columns, support = np.array([j]), np.flatnonzero(used[:, j])
        solved, b = basis.solve(None, columns, support, one.C[columns])
        coef[np.ix_(support, columns)], intercept[columns] = solved, b
    return coef, intercept
