"""What a fixed-size model remembers of its training rows: a sample that calibrates it.

First what only the record of a fixed-size model has.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import BoolArray, FloatArray, IntArray, join_rows
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm.backends.host import Rows
from lssvm.data.folds import (
    Folds,
    hash_rows,
    observation_weight,
    repeats_by_nature,
    smallest_hashes,
)
from lssvm.fitting.fixed_settings import NO_OUTPUTS, fold_task, groups_of
from lssvm.fitting.fixed_solution import class_counts, problems
from lssvm.fitting.record import Fit, Posteriors, Resources
from lssvm.kernels import Kernel
from lssvm.moments import Moments, NystromMap
from lssvm.prototypes import Selection
from lssvm.reductions import PrototypeBasis, SparsityPath
from lssvm.tasks import Classes, ClassTable
from lssvm.tasks.weights import pick, times
from lssvm.tuning.threshold import best_threshold
from lssvm.uncertainty import (
    FixedPosterior,
    OutOfFold,
    Residuals,
    left_out_scores,
    scaled_residuals,
)


@dataclass(frozen=True, eq=False)
class FixedDetails:
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
    penalised : bool
        Whether the bias is penalised like a weight.
    """

    n_prototypes: int
    moments: list[Moments]
    map: NystromMap | None = None
    selection: Selection | None = None
    used: BoolArray | None = None
    no_update: str | None = None
    paths: tuple[SparsityPath, ...] = ()
    kept: PrototypeBasis | None = None
    centre: FloatArray | None = None
    peak_memory: int | None = None
    penalised: bool = False

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"kept": None}

    @property
    def is_posterior_of_model(self) -> bool:
        """Whether the model is the mean of the posterior that its moments give."""
        return self.used is None and self.no_update is None and not self.penalised

    def published(self, fit: Fit) -> dict[str, Any]:
        """Return attributes of the estimator."""
        pcg, tuning = fit.solver == "pcg", fit.tuning
        published: dict[str, Any] = {
            "prototypes_": fit.metric.unmap(fit.basis),
            "n_prototypes_": self.n_prototypes,
            "moments_": self.moments,
            "selection_": self.selection,
            "solver_": fit.solver,
        }
        where_known = {
            "residual_": fit.residual if pcg else None,
            "n_iter_": fit.iterations if pcg or fit.task.classes is None else None,
            "sparsity_paths_": list(self.paths) or None,
            "peak_memory_": self.peak_memory,
            "size_results_": None if tuning is None else tuning.sizes,
            "sample_results_": None if tuning is None else tuning.sample,
        }
        known = {name: value for name, value in where_known.items() if value is not None}
        return published | known

    def reduced(self, form: str, fit: Fit) -> FixedDetails:
        """Return what a file of this form keeps."""
        light = replace(self, moments=[], map=None, selection=None, kept=None)
        if form == "support":
            return replace(light, paths=())
        if fit.task.classes is None and fit.loss == "squared" and self.is_posterior_of_model:
            return replace(light, moments=self.moments, map=self.map)  # error bars need them
        return light


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
    held : array of shape (t, k) or None
        Outputs of models that have not seen the rows.
    behind : bool
        Whether rows were added later that are not in the sample.
    """

    keys: NDArray[np.uint64]
    X: FloatArray | None
    Y: FloatArray
    weight: FloatArray | None
    labels: IntArray | None
    held: FloatArray | None = None
    behind: bool = False

    def take(self, rows: IntArray) -> CalibrationSample:
        """Return some of the rows."""
        columns = ("keys", "X", "Y", "weight", "labels", "held")
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
            join(self.held, other.held),
            self.behind or other.behind,
        )
        return joined.take(np.argsort(joined.keys, kind="stable"))

    def enough_for_pairs(self, n_classes: int) -> CalibrationSample:
        """Return the first rows, at least 100 of every class: rows are in the order of hashes."""
        assert self.labels is not None
        size = min(OF_A_CLASS * n_classes, len(self.keys))
        for c in range(n_classes):
            own = np.flatnonzero(self.labels == c)[:OF_A_CLASS]
            size = max(size, int(own[-1]) + 1 if len(own) else 0)
        end = int(np.searchsorted(self.keys, self.keys[size - 1], side="right"))  # equal rows
        return self.take(np.arange(end))

    def folds(self, weight: FloatArray | None) -> tuple[list[IntArray], FloatArray | None]:
        """Return the rows that are left out together, and the weights that leave with them.

        These are equal rows, or single observations where rows repeat by nature. ``weight`` is that
        of the rows in the fit.
        """
        n, cuts = len(self.keys), np.flatnonzero(self.keys[1:] != self.keys[:-1]) + 1
        observed, unit = observation_weight(n, weight, self.labels)
        if repeats_by_nature(len(cuts) + 1, observed):
            return list(np.arange(n)[:, None]), unit
        return np.split(np.arange(n), cuts), weight


def draw_sample(
    rows: Rows, folds: Folds | None, seed: int, size: int, class_table: ClassTable | None = None
) -> tuple[CalibrationSample, IntArray]:
    """Draw the rows with the smallest hashes, among those that were tested; also their numbers.

    ``class_table`` has the weights of the classes where no moments will tell them later.
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
    rows: Rows,
    seed: int,
    class_table: ClassTable | None = None,
    folds: Folds | None = None,
    outputs: Callable[[IntArray], FloatArray] | None = None,
) -> FixedMemory:
    """Keep a sample of the rows, see `draw_sample`.

    Where there are models of the folds, ``outputs`` says what they make of rows of these numbers
    that they have not seen.
    """
    classes = rows.sample.labels is not None
    size = SCORES if outputs is not None and classes else SAMPLE
    sample, numbers = draw_sample(rows, folds, seed, size, class_table)
    if outputs is None:
        return FixedMemory(sample)
    held = outputs(numbers)
    return FixedMemory(replace(sample, X=None if classes else sample.X, held=held))


def held_outputs(
    rows: Rows,
    folds: Folds,
    kernel: Kernel,
    Z: FloatArray,
    models: Sequence[tuple[FloatArray, FloatArray]],
    numbers: IntArray,
) -> FloatArray:
    """Return what the models of the folds say of tested rows of these numbers, shape (t, k)."""
    held = np.full((len(numbers), len(models[0][1])), np.nan)
    for test, (coef, b) in zip(folds.test, models, strict=True):
        own = np.flatnonzero(np.isin(numbers, test))
        held[own] = rows.evaluate(kernel, rows.sample.X[numbers[own]], Z, coef, b)
    return held


def with_thresholds(fit: Fit, how: str) -> Fit:
    """Add thresholds of classes: zero, or where out-of-fold outputs make the fewest errors."""
    memory, details, task = fit.memory, fit.details, fit.task
    if not isinstance(task, Classes):
        return fit
    if how == "zero":
        return replace(fit, threshold=np.zeros(task.n_outputs))
    sample = memory.sample if isinstance(memory, FixedMemory) else None
    if sample is None or sample.held is None or sample.labels is None:
        raise InvalidInputError(NO_OUTPUTS)
    weight = sample.weight
    if task.per_class and details.moments:  # else the weights are in the rows
        factors = task.table(class_counts(details.moments)).factors[sample.labels]
        weight = times(weight, factors)
    outputs = zip(sample.held.T, sample.Y.T, strict=True)
    moved = np.array([best_threshold(scores, targets, weight) for scores, targets in outputs])
    held = replace(sample, held=sample.held - moved)
    return replace(fit, threshold=moved, intercept=fit.intercept - moved, memory=FixedMemory(held))


@dataclass(frozen=True, eq=False)
class FixedMemory:
    """A sample of the rows, or nothing."""

    sample: CalibrationSample | None = None

    def reduced(self, form: str, fit: Fit) -> FixedMemory:
        """Return what a file of this form keeps: no rows."""
        return self if form == "all" else FixedMemory()

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

    def posteriors(self, fit: Fit, resources: Resources) -> Posteriors:
        """Return the Gaussian posteriors of a regressor's outputs."""
        details: FixedDetails = fit.details
        fit.check_posterior()
        if fit.solver == "pcg":
            raise InvalidInputError(
                "solver='pcg' keeps no moments, from which standard deviations and intervals "
                "follow: use solver='cholesky', with fewer prototypes if need be."
            )
        if details.penalised:
            raise InvalidInputError(
                "fit_intercept='penalised' has no posterior here: use fit_intercept=True for "
                "standard deviations and intervals."
            )
        if not details.is_posterior_of_model:
            raise InvalidInputError(
                "The reduction of this model, or tuning='separate', has left it without a "
                "posterior: use reduction='spfs' or None, and tuning='joint', for standard "
                "deviations and intervals."
            )
        return list(self._posteriors(fit, resources))

    def _posteriors(self, fit: Fit, resources: Resources) -> list[tuple[IntArray, FixedPosterior]]:
        details: FixedDetails = fit.details
        assert details.map is not None
        basis, limits = (fit.kernel, fit.basis, details.map), (resources.budget, resources.threads)
        return [
            (columns, FixedPosterior(*basis, moments, C, *limits))
            for columns, C, moments in problems(details.moments, fold_task(fit.task), fit.C)
        ]

    def residuals(self, fit: Fit, resources: Resources, posteriors: Posteriors) -> Residuals:
        """Return errors of rows left out, in units of their predicted deviations.

        Prototypes stay in the basis while they are left out, which no new row is: they are not
        among these rows, as long as there are others.
        """
        sample = self._rows()
        others = np.flatnonzero(~np.isin(sample.keys, hash_rows(fit.basis, fit.seed)))
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
        if sample.held is not None:
            residuals = sample.Y - sample.held
        return scaled_residuals(residuals, scale, sample.weight)

    def out_of_fold(self, fit: Fit, resources: Resources) -> OutOfFold:
        """Return scores of rows by models that have not seen them."""
        sample, details, task = self._rows(), fit.details, fit.task
        assert isinstance(task, Classes)
        if len(groups_of(fold_task(task), task.n_outputs)) > 1 and sample.held is None:
            sample = sample.enough_for_pairs(task.n_classes)
        assert sample.labels is not None
        weight, Y = sample.weight, sample.Y
        if fold_task(fit.task) is not None and details.moments:
            table = task.table(class_counts(details.moments))  # as it follows from all rows now
            weight = times(weight, table.factors[sample.labels])
            Y = table.targets[sample.labels]
        if sample.held is not None:
            return OutOfFold(sample.held, sample.labels, weight)
        assert sample.X is not None
        if not details.is_posterior_of_model:  # few coefficients remember at most the prototypes
            new = np.flatnonzero(~np.isin(sample.keys, hash_rows(fit.basis, fit.seed)))
            if len(np.unique(sample.labels[new])) < task.n_classes:
                new = np.arange(len(sample.keys))
            outputs = fit.outputs(sample.X[new], resources)
            return OutOfFold(outputs, sample.labels[new], pick(weight, new))
        folds, leaving = sample.folds(weight)
        fold_of = np.empty(len(Y), dtype=np.intp)
        fold_of[np.concatenate(folds)] = np.repeat(np.arange(len(folds)), [len(f) for f in folds])
        assert details.map is not None
        map = details.map
        features = resources.evaluate(
            fit.kernel, sample.X, fit.basis, map.T, np.zeros(map.rank)
        )  # once for all problems, as are the moments of the features
        parts = [part.mapped(map.whiten(part.gram), map.T) for part in details.moments]
        scores = np.empty(Y.shape)
        for columns, C, moments in problems(parts, fold_task(task), fit.C):
            data = (features, Y[:, columns], fold_of, leaving)
            scores[:, columns] = left_out_scores(moments, C, *data)
        return OutOfFold(scores, sample.labels, weight)
