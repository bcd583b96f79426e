"""What a fit leaves: one frozen record, which files, exports, plots and reports read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.backends.host import Host
from lssvm.kernels import Kernel, Metric
from lssvm.kernels.metric import IDENTITY
from lssvm.tasks import Task
from lssvm.tuning.search import TuningResult
from lssvm.uncertainty import DualPosterior, FixedPosterior, OutOfFold, Residuals

Posteriors: TypeAlias = list[tuple[IntArray, DualPosterior | FixedPosterior]]
"""Outputs, and their posterior."""

FORMS = ("support", "prediction", "all")
"""How much of a model a file holds, from least to all; see `lssvm.save`."""


def check_finite(coef: FloatArray, intercept: FloatArray) -> None:
    """Refuse a solution that is not finite."""
    if not (np.all(np.isfinite(coef)) and np.all(np.isfinite(intercept))):
        raise InvalidInputError(
            "The solution is not finite: the kernel matrix overflows or is singular for these "
            "data. Scale the features (StandardScaler), or lower C, degree or gamma."
        )


def check_form(stored: str, form: str, what: str) -> None:
    """Raise where the file that a model was loaded from left out what is asked for."""
    if FORMS.index(stored) < FORMS.index(form):
        raise InvalidInputError(
            f"{what} cannot be had from this model: it was loaded from a file that was saved with "
            f"keep={stored!r}. Save the fitted model with keep={form!r}."
        )


@dataclass(frozen=True, eq=False)
class OutputGroup:
    """A kernel, and the outputs that it serves."""

    kernel: Kernel
    columns: IntArray


@dataclass(frozen=True, eq=False)
class Tuning:
    """The result of tuning.

    Attributes
    ----------
    results : tuple of TuningResult
        One, or one for each binary problem that was tuned on its own; none where a file left them
        out.
    best_score : float
        Cross-validated score of the chosen parameters.
    n_evaluations : int
        Pairs of C and gamma that were evaluated.
    sizes : dict or None
        Numbers of prototypes that were tried, and their scores.
    sample : dict or None
        The search on a sample of the rows, where it was done on one first.
    """

    results: tuple[TuningResult, ...]
    best_score: float
    n_evaluations: int
    sizes: dict[str, Any] | None = None
    sample: dict[str, Any] | None = None

    @property
    def cv_results(self) -> Any:
        """Parameters and scores of all evaluations, a list of them for several results."""
        return _one_or_all([result.cv_results for result in self.results])

    @property
    def result(self) -> Any:
        """The result, or the list of them."""
        return _one_or_all(list(self.results))

    def stripped(self) -> Tuning:
        """Return it without what was evaluated."""
        return replace(self, results=(), sizes=None, sample=None)


def _one_or_all(values: list[Any]) -> Any:
    """Return what is alone by itself, and None for nothing."""
    return values if len(values) > 1 else next(iter(values), None)


class CalibrationData(Protocol):
    """What a model remembers of its training rows, from which uncertainty follows."""

    def out_of_fold(self, fit: Fit, host: Host) -> OutOfFold:
        """Return scores of rows by models that have not seen them."""

    def posteriors(self, fit: Fit, host: Host) -> Posteriors:
        """Return the outputs and their Gaussian posterior."""

    def residuals(self, fit: Fit, host: Host, posteriors: Posteriors) -> Residuals:
        """Return errors of rows left out, in units of their predicted deviations."""

    def reduced(self, form: str, fit: Fit) -> CalibrationData:
        """Return what a file of this form keeps."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted kernel model.

    Attributes
    ----------
    task : Classes or Numbers
        What outputs mean.
    output_groups : tuple of Machine
        Kernels of the outputs: one, or several where problems were tuned on their own.
    basis : array or sparse matrix of shape (m, d)
        Rows that kernels are evaluated against, after the metric; their numbers for a precomputed
        kernel.
    coef : array of shape (m, k)
    intercept : array of shape (k,)
    C : array of shape (k,)
    gamma : float, array or None
        As published: None where the kernel has none.
    support : int array
        Rows of the training data that the basis is; -1 for given rows.
    seed : int
        What folds and samples were drawn with.
    calibration : CalibrationData
        What is remembered of the training rows.
    loss : str or DifferentiableLoss
        What the coefficients minimise.
    solver : str
        Who solved the systems.
    residual : float
        Relative residual of the solution.
    iterations : int
    tuning : Tuning or None
    relevance : array of shape (d,) or None
        Shares of the features, with ``gamma="ard"``.
    threshold : array of shape (k,) or None
        What was taken off the intercepts.
    details : object or None
        What only one family has, such as `FixedDetails`.
    stored : str
        "all", or the form of the file that the model was loaded from.
    metric : Metric
        The map of the inputs; the basis and everything in memory is after it.
    """

    task: Task
    output_groups: tuple[OutputGroup, ...]
    basis: Any
    coef: FloatArray
    intercept: FloatArray
    C: FloatArray
    gamma: Any
    support: IntArray
    seed: int
    calibration: CalibrationData
    loss: str = "squared"
    solver: str = "direct"
    residual: float = 0.0
    iterations: int = 0
    tuning: Tuning | None = None
    relevance: FloatArray | None = None
    threshold: FloatArray | None = None
    details: Any = None
    stored: str = "all"
    metric: Metric = IDENTITY

    def check_posterior(self) -> None:
        """Refuse a model without a Gaussian posterior."""
        if self.loss != "squared":
            raise InvalidInputError(
                f"loss={self.loss!r} has no Gaussian posterior: use loss='squared' for standard "
                "deviations and intervals."
            )

    @property
    def kernel(self) -> Kernel:
        """The kernel of all outputs, or of the first ones."""
        return self.output_groups[0].kernel

    @property
    def published_C(self) -> Any:
        """One number where all outputs have the same, else an array."""
        return float(self.C[0]) if len(set(self.C.tolist())) == 1 else self.C

    def expansions(self) -> Iterator[tuple[IntArray, Kernel, FloatArray, FloatArray]]:
        """Yield columns, kernel, coefficients and intercepts."""
        for group in self.output_groups:
            columns = group.columns
            yield columns, group.kernel, self.coef[:, columns], self.intercept[columns]

    def outputs(self, X: Any, host: Host) -> FloatArray:
        """Return the outputs (n, k) of rows in main memory, after the metric."""
        out = np.empty((X.shape[0], self.coef.shape[1]), self.coef.dtype)
        for columns, kernel, coef, intercept in self.expansions():
            out[:, columns] = host.outputs(kernel, X, self.basis, coef, intercept)
        return out

    def need(self, form: str, what: str) -> None:
        """Raise where the file that the model was loaded from left out what is asked for."""
        check_form(self.stored, form, what)

    def stripped(self, form: str) -> Fit:
        """Return what a file of this form keeps."""
        if form == "all":
            return self
        calibration, tuning = (
            self.calibration.reduced(form, self),
            self.tuning and self.tuning.stripped(),
        )
        details = None if self.details is None else self.details.reduced(form, self)
        return replace(self, calibration=calibration, tuning=tuning, details=details, stored=form)
