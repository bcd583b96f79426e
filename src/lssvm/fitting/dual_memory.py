"""What a dual fit leaves beside its model: rows for error bars, scores for probabilities."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError, MemoryBudgetError
from lssvm.data.folds import content_folds, observation_weight, rows_repeat
from lssvm.fitting.record import Fit, Posteriors, Resources
from lssvm.kernels import Kernel
from lssvm.solvers import DualSystem
from lssvm.tasks.weights import pick
from lssvm.uncertainty import DualPosterior, OutOfFold, Residuals, scaled_residuals


@dataclass(frozen=True, eq=False)
class DualDetails:
    """What only dual models tell of their fit.

    Attributes
    ----------
    reduction_path : list
        What the reduction did, one record for each group of outputs.
    n_reweightings : int or None
        Steps of a robust loss; None for classes.
    """

    reduction_path: list[Any]
    n_reweightings: int | None

    def published(self, fit: Fit) -> dict[str, Any]:
        """Return fitted attributes."""
        published = {"n_iter_": fit.iterations, "solver_": fit.solver, "residual_": fit.residual}
        if self.n_reweightings is not None:
            published["n_reweightings_"] = self.n_reweightings
        return published | {"reduction_path_": self.reduction_path}

    def reduced(self, form: str, fit: Fit) -> DualDetails:
        """Return what a file of this form keeps."""
        return replace(self, reduction_path=[])


@dataclass(frozen=True, eq=False)
class DualPart:
    """Problems that share rows, C and kernel.

    Attributes
    ----------
    columns : int array
    rows : int array or None
        Training rows of these problems; None: all.
    kernel : Kernel
    C : float
    """

    columns: IntArray
    rows: IntArray | None
    kernel: Kernel
    C: float


@dataclass(frozen=True, eq=False)
class DualMemory:
    """The training rows of a dual model as far as uncertainty needs them.

    Attributes
    ----------
    parts : list of DualPart
        Empty where rows are not kept: of a precomputed kernel, a reduced model, another loss than
        squares, and where scores of rows left out are kept in their place.
    X : array or sparse matrix of shape (n, d)
        The basis of the model, where that is all rows.
    Y : array of shape (n, k)
    weight : array of shape (n,) or None
    labels : int array of shape (n,) or None
        Class numbers; None where targets are numbers.
    bias : bool
    reduction : str or None
        The parameter, as text.
    held : array of shape (t, k) or None
        What cross-validation has predicted of ``held_rows``.
    held_rows : int array of shape (t,) or None
    """

    parts: list[DualPart]
    X: Any
    Y: FloatArray
    weight: FloatArray | None
    labels: IntArray | None
    bias: bool = True
    reduction: str | None = None
    held: FloatArray | None = None
    held_rows: IntArray | None = None

    def settled(self, resources: Resources) -> DualMemory:
        """Return what is kept after a fit.

        Scores of classes that are at hand stand for the rows; they are computed now where a reduced
        model does not keep the rows. A reduced regressor has no error bars.
        """
        if self.labels is None:
            return self if self.reduction is None else self._without_rows(None)
        held, held_rows = self.held, self.held_rows
        if held is None and self.reduction is not None and self.parts:
            with suppress(MemoryBudgetError):
                held, held_rows = self._leave_one_out(resources), np.arange(len(self.Y))
        if held is None and self.reduction is None:
            return self
        return replace(self._without_rows(held), held_rows=held_rows)

    def _without_rows(self, held: FloatArray | None) -> DualMemory:
        return replace(self, parts=[], X=self.X[:0], Y=self.Y[:0], held=held)

    def out_of_fold(self, fit: Fit, resources: Resources) -> OutOfFold:
        """Return scores of rows by models that have not seen them."""
        assert self.labels is not None
        if self.held is not None and self.held_rows is not None:
            rows = self.held_rows
            return OutOfFold(self.held, self.labels[rows], pick(self.weight, rows))
        if not self.parts:
            raise InvalidInputError(
                "There are no out-of-fold scores to calibrate probabilities on: with a "
                "precomputed kernel, or a reduction of a model too large for the memory budget, "
                "they come from tuning. Set C='cv'."
            )
        return OutOfFold(self._leave_one_out(resources), self.labels, self.weight)

    def _posterior(self, part: DualPart, resources: Resources) -> DualPosterior:
        root = None if self.weight is None else np.sqrt(self.weight)
        budget, threads = resources.budget, resources.threads
        system = DualSystem(part.kernel, self.X, self.X, part.C, root, budget, threads, self.bias)
        if part.rows is None:
            return DualPosterior(system, self.Y[:, part.columns])
        return DualPosterior(system.subset(part.rows), self.Y[np.ix_(part.rows, part.columns)])

    def _left_out(self, part: DualPart, posterior: DualPosterior) -> tuple[FloatArray, FloatArray]:
        """Return leave-one-out predictions and variances.

        Equal rows are left out together, or, where they repeat by nature, one observation alone.
        """
        system, share = posterior.system, None
        if system.n < 2:
            raise InvalidInputError(
                f"Out-of-fold predictions need at least 2 rows but a problem has {system.n}."
            )
        _, unit = observation_weight(len(self.Y), self.weight, self.labels)
        if unit is not None and self.weight is not None:
            share = (unit / self.weight)[slice(None) if part.rows is None else part.rows]
        observed = float(system.n if share is None else np.sum(1.0 / share))
        if rows_repeat(system.rows, observed):
            folds = list(np.arange(system.n)[:, None])
        else:
            folds, share = content_folds(system.rows, None).test, None
        return posterior.leave_out(folds, share)

    def _leave_one_out(self, resources: Resources) -> FloatArray:
        """Return what all problems say of every row without it, shape (n, k)."""
        scores = np.empty(self.Y.shape)
        for part in self.parts:
            posterior = self._posterior(part, resources)
            left, _ = self._left_out(part, posterior)
            if part.rows is None:
                scores[:, part.columns] = left
                continue
            # Rows of other classes were not in the training set of these problems.
            system, (coef, b) = posterior.system, posterior.expansion()
            outputs = resources.evaluate(system.kernel, self.X, system.basis, coef, b)
            scores[:, part.columns] = outputs
            scores[np.ix_(part.rows, part.columns)] = left
        return scores

    def posteriors(self, fit: Fit, resources: Resources) -> Posteriors:
        """Return the outputs and their Gaussian posterior."""
        if self.reduction is not None:
            raise InvalidInputError(
                f"reduction={self.reduction} has replaced the model that the error bars belong "
                "to: use reduction=None for standard deviations and intervals."
            )
        fit.check_posterior()
        if not self.parts:
            raise InvalidInputError(
                "kernel='precomputed' does not give K(x, x) of new rows, which their variance "
                "needs: pass the kernel as a function, or by name."
            )
        return [(part.columns, self._posterior(part, resources)) for part in self.parts]

    def residuals(self, fit: Fit, resources: Resources, posteriors: Posteriors) -> Residuals:
        """Return errors of rows left out, in units of their predicted deviations."""
        residuals, scale = np.empty(self.Y.shape), np.empty(self.Y.shape)
        for part, (columns, posterior) in zip(self.parts, posteriors, strict=True):
            assert isinstance(posterior, DualPosterior)
            left, variance = self._left_out(part, posterior)
            residuals[:, columns] = self.Y[:, columns] - left
            spread = variance[:, None] * posterior.prior_variance + posterior.noise_variance
            scale[:, columns] = np.sqrt(spread)
        if self.held is None or self.held_rows is None:
            return scaled_residuals(residuals, scale, self.weight)
        rows = self.held_rows
        return scaled_residuals(self.Y[rows] - self.held, scale[rows], pick(self.weight, rows))

    def reduced(self, form: str, fit: Fit) -> DualMemory:
        """Return what a file of this form keeps; maps are stored in the place of scores."""
        if form == "all" or (form == "prediction" and self.parts):
            return self
        labels = pick(self.labels, slice(0))
        return replace(self._without_rows(None), weight=None, labels=labels, held_rows=None)
