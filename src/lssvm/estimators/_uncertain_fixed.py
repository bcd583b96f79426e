"""What the fixed-size model keeps for intervals and probabilities, and what it makes of it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm._core.memory import as_bytes
from lssvm._core.threads import n_threads
from lssvm.criteria.fixed_size import FixedSizePoint
from lssvm.estimators._uncertain import IntervalMixin, ProbabilityMixin
from lssvm.folds.content import Folds, hash_rows, smallest_hashes
from lssvm.moments import Moments
from lssvm.moments.cells import ClassTable
from lssvm.uncertainty import FixedPosterior, OutOfFold, Residuals, scaled_residuals

SAMPLE = 5000
"""Rows that a model keeps to leave them out one by one."""

SCORES = 20_000
"""Rows whose out-of-fold scores a model keeps."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Some training rows, whole sets of equal ones, chosen by their content.

    Attributes
    ----------
    keys : uint64 array of shape (t,)
        Hashes of the rows, ascending: equal ones are a fold.
    X : array of shape (t, d) or None
        None where out-of-fold scores are all that is needed.
    Y : array of shape (t, k)
    weight : array of shape (t,) or None
    labels : int array of shape (t,) or None
    held : array of shape (t, k) or None
        Out-of-fold predictions, where cross-validation has made some.
    behind : bool
        Whether the model has learned rows since that could not join.
    """

    keys: NDArray[np.uint64]
    X: FloatArray | None
    Y: FloatArray
    weight: FloatArray | None
    labels: IntArray | None
    held: FloatArray | None = None
    behind: bool = False

    def take(self, rows: IntArray) -> Sample:
        """Return some of the rows."""
        return Sample(
            self.keys[rows],
            None if self.X is None else self.X[rows],
            self.Y[rows],
            None if self.weight is None else self.weight[rows],
            None if self.labels is None else self.labels[rows],
            None if self.held is None else self.held[rows],
            self.behind,
        )

    def joined(self, other: Sample) -> Sample:
        """Return the rows of both, in the order of their hashes."""

        def join(mine: Any, its: Any) -> Any:
            return None if mine is None or its is None else np.concatenate([mine, its])

        weight = None
        if self.weight is not None or other.weight is not None:
            ones = [np.ones(len(s.keys)) if s.weight is None else s.weight for s in (self, other)]
            weight = np.concatenate(ones)
        both = Sample(
            np.concatenate([self.keys, other.keys]),
            join(self.X, other.X),
            np.concatenate([self.Y, other.Y]),
            weight,
            join(self.labels, other.labels),
            join(self.held, other.held),
            self.behind or other.behind,
        )
        return both.take(np.argsort(both.keys, kind="stable"))

    def folds(self) -> list[IntArray]:
        """Return the sets of equal rows."""
        cuts = np.flatnonzero(self.keys[1:] != self.keys[:-1]) + 1
        return np.split(np.arange(len(self.keys)), cuts)


def draw(problem: Any, folds: Folds | None, seed: int, size: int) -> tuple[Sample, IntArray]:
    """Return about ``size`` rows of a problem, those of the smallest hash, and which they are.

    The choice depends on the content of the rows alone, so their order does not matter, and equal
    rows stay together; up to ``size`` rows, a weight of 2 is the row twice. Folds, where there are
    some, restrict it to rows that are tested.
    """
    tested = None
    if folds is not None:
        tested = np.zeros(len(problem.X), dtype=bool)
        for test in folds.test:
            tested[test] = True
    hashes, rows = smallest_hashes(problem.content, size, seed, tested)
    sample = Sample(
        hashes,
        problem.X[rows],
        problem.Y[rows],
        None if problem.weight is None else problem.weight[rows],
        None if problem.labels is None else problem.labels[rows],
    )
    return sample, rows


class FixedMemory(BaseEstimator):
    """Base of the two mixins: the sample, and the posteriors of the current moments."""

    _sample: Sample | None

    def _remember(
        self, problem: Any, point: Any, kernel: Any, Z: FloatArray, C: FloatArray
    ) -> None:
        """Keep a sample of the rows, with out-of-fold predictions where there are fold models.

        ``point`` is what tuning has left; only a point of cross-validation has fold models.
        """
        self._cache: dict[str, Any] = {}
        self._fitted_loss = getattr(self, "loss", "squared")  # the parameter may be set later
        self._by_class = problem.table is not None
        self._sample = None
        if getattr(self, "calibration", "auto") is None:
            return
        models = folds = None
        if isinstance(point, FixedSizePoint):
            models, folds = point.fold_models(float(C[0])), problem.tested(point)
        size = SAMPLE if models is None or problem.labels is None else SCORES
        sample, rows = draw(problem, None if models is None else folds, self._seed, size)
        if self.solver_ == "pcg" and problem.table is not None:  # no moments will tell later
            factor = problem.table.factors[sample.labels]
            weight = factor if sample.weight is None else sample.weight * factor
            sample = replace(sample, weight=weight)
        if models is None or folds is None:
            self._sample = sample
            return
        held = np.full(sample.Y.shape, np.nan)
        for test, coef, b in zip(folds.test, *models, strict=True):
            tested = np.zeros(len(problem.X), dtype=bool)
            tested[test] = True
            own = np.flatnonzero(tested[rows])
            held[own] = problem.evaluate(
                kernel,
                problem.X[rows[own]],
                Z,
                coef,
                b,
                budget=as_bytes(self.memory_budget),
                threads=n_threads(self.n_jobs),
            )
        # The rows themselves are needed for the variances of a regressor only.
        kept = sample.X if problem.labels is None else None
        self._sample = replace(sample, X=kept, held=held)

    def _sample_without(self, problem: Any, sign: int) -> Sample | None:
        """Return the sample after rows were added or removed: removed ones must not stay in it.

        Added ones that are in memory join it, those of the smallest hashes again. Called before the
        update, so that what the model says of added rows is out of sample.
        """
        if self._sample is None:
            return None
        if sign > 0:
            if hasattr(problem, "X"):
                return self._sample_with(problem)
            return replace(self._sample, behind=True)
        gone = problem.holds(self._sample.keys, self._seed)
        return self._sample.take(np.flatnonzero(~gone))

    def _sample_with(self, problem: Any) -> Sample:
        old = self._sample
        assert old is not None
        size = SAMPLE if old.held is None or old.labels is None else SCORES
        new, _ = draw(problem, None, self._seed, size)
        if old.X is not None:  # rows are left out of the model with all rows
            old = replace(old, held=None)
        else:
            new = replace(new, X=None, held=self._raw_scores(new.X))
        both = old.joined(new)
        if len(both.keys) <= size:
            return both
        end = int(np.searchsorted(both.keys, both.keys[size - 1], side="right"))
        return both.take(np.arange(end))

    def _class_table(self) -> ClassTable | None:
        return self._table_of(self.moments_) if self._by_class and self.moments_ else None

    def _make_posteriors(self) -> list[tuple[IntArray, FixedPosterior]]:
        k = self.dual_coef_.shape[1]
        C_of: FloatArray = np.full(k, self.C_) if np.ndim(self.C_) == 0 else np.asarray(self.C_)
        whole: list[Moments] = self.moments_
        table = self._class_table()
        parts = []
        for group in [np.arange(k)] if table is None else table.groups():
            moments = whole[0] if table is None else table.assemble(whole, group)
            for C in dict.fromkeys(C_of[group].tolist()):
                inside = np.flatnonzero(C_of[group] == C)
                posterior = FixedPosterior(
                    self._kernel,
                    self.prototypes_,
                    self._map,
                    moments.outputs(inside),
                    C,
                    as_bytes(self.memory_budget),
                    n_threads(self.n_jobs),
                )
                parts.append((group[inside], posterior))
        return parts

    def _is_posterior_of_model(self) -> bool:
        """Say whether the model is the primal solution on its prototypes from its moments."""
        return self._used is None and self._no_update is None

    def _calibration_rows(self) -> Sample:
        if self._sample is None or len(self._sample.keys) < 2:
            raise InvalidInputError(
                "The model has too few rows of its training set left to calibrate on: fit it to "
                "at least 2 rows."
            )
        if self._sample.behind:
            warnings.warn(
                "Rows added from a scan are learned but do not calibrate intervals and "
                "probabilities, which stay those of the other rows: fit again on all rows.",
                NumericalWarning,
                stacklevel=4,
            )
        return self._sample


class FixedIntervalMixin(FixedMemory, IntervalMixin):
    """Error bars of `FixedSizeLSSVR`."""

    def _make_posteriors(self) -> list[tuple[IntArray, FixedPosterior]]:
        if self._fitted_loss != "squared":
            raise InvalidInputError(
                f"loss={self._fitted_loss!r} has no Gaussian posterior: use loss='squared' for "
                "standard deviations and intervals."
            )
        if getattr(self, "solver_", "direct") == "pcg":  # older files do not say
            raise InvalidInputError(
                "solver='pcg' keeps no moments, from which standard deviations and intervals "
                "follow: use solver='cholesky', with fewer prototypes if need be."
            )
        if not self._is_posterior_of_model():
            raise InvalidInputError(
                f"reduction={self.reduction!r} gives a model without a posterior: use "
                "reduction='spfs' or None for standard deviations and intervals."
            )
        return super()._make_posteriors()

    def _make_residuals(self) -> Residuals:
        sample = self._calibration_rows()
        assert sample.X is not None
        residuals, scale = np.empty(sample.Y.shape), np.empty(sample.Y.shape)
        folds = sample.folds()
        for columns, posterior in self._posteriors():
            assert isinstance(posterior, FixedPosterior)
            Y = sample.Y[:, columns]
            left, variance = posterior.leave_out(sample.X, Y, folds, sample.weight)
            residuals[:, columns] = Y - left
            scale[:, columns] = np.sqrt(
                variance[:, None] * posterior.prior_variance + posterior.noise_variance
            )
        if sample.held is not None:
            residuals = sample.Y - sample.held
        return scaled_residuals(residuals, scale, sample.weight)


class FixedProbabilityMixin(FixedMemory, ProbabilityMixin):
    """Probabilities of `FixedSizeLSSVC`."""

    def _make_out_of_fold(self) -> OutOfFold:
        sample = self._calibration_rows()
        assert sample.labels is not None
        table = self._class_table()
        weight, Y = sample.weight, sample.Y
        if table is not None:  # weights and targets as they follow from the current classes
            factor = table.factors[sample.labels]
            weight = factor if weight is None else weight * factor
            Y = table.targets[sample.labels]
        if sample.held is not None:
            return OutOfFold(sample.held, sample.labels, weight)
        assert sample.X is not None
        if not self._is_posterior_of_model():  # few coefficients remember at most the prototypes
            rows = np.flatnonzero(~np.isin(sample.keys, hash_rows(self.prototypes_, self._seed)))
            if len(np.unique(sample.labels[rows])) < len(self.classes_):
                rows = np.arange(len(sample.keys))
            weight = None if weight is None else weight[rows]
            return OutOfFold(self._raw_scores(sample.X[rows]), sample.labels[rows], weight)
        scores, folds = np.empty(Y.shape), sample.folds()
        for columns, posterior in self._make_posteriors():
            used = Y[:, columns[0]] != 0
            own = used.astype(np.float64) if weight is None else weight * used
            scores[:, columns] = posterior.leave_out(sample.X, Y[:, columns], folds, own)[0]
        return OutOfFold(scores, sample.labels, weight)
