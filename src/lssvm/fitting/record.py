"""What a fit leaves: one frozen record, which prediction, files, exports, plots and reports read.

A fitted model is a weighted sum of kernel expansions, whatever estimator made it: a `Fit` has
members, and a `Member` is one expansion, or exact ones in the leaves of a partition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.backends.device import Backend
from lssvm.backends.host import Host
from lssvm.data.preparation import PreparedTable
from lssvm.kernels import Metric
from lssvm.kernels.base import Expansion
from lssvm.kernels.factory import KernelChoice
from lssvm.kernels.metric import IDENTITY
from lssvm.local import LocalModel, Tree
from lssvm.local.engine import find_engine
from lssvm.tasks import Task
from lssvm.tuning.search import TuningResult
from lssvm.uncertainty import (
    DualPosterior,
    FixedPosterior,
    OutOfFold,
    Probabilities,
    Residuals,
)

Scaling: TypeAlias = Literal["none", "standardised", "quantiles"]
"""How the inputs of a member are scaled; "none" for features as the model was given them."""

Features: TypeAlias = Mapping[Scaling, Any]
"""Rows (n, d) by the scaling of their inputs, for every scaling that members need."""

Posteriors: TypeAlias = list[tuple[IntArray, DualPosterior | FixedPosterior]]
"""Outputs, and their posterior."""

ONE_THREAD = Host()

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
    """Raise if a model was loaded from a file that lacks what is needed."""
    if FORMS.index(stored) < FORMS.index(form):
        raise InvalidInputError(
            f"{what}: not available, because this model was loaded from a file that was saved with "
            f"keep={stored!r}. Save the fitted model with keep={form!r}."
        )


# -- members -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Member:
    """A kernel expansion, or exact ones in the leaves of a partition, and its part in the model.

    Attributes
    ----------
    model : Expansion or LocalModel
        What it computes from mapped rows.
    outputs : int array or None
        The outputs that it serves; None: all.
    scaling : {"none", "standardised", "quantiles"}
        Which of the scaled inputs it takes.
    metric : Metric
        The map of these inputs, or a warp; the basis and everything in memory is after it.
    rounds : int
        Rounds in which the metric was learned.
    weight : float
        What its outputs are multiplied by.
    error : float
        Mean squared error on held-out rows, summed over outputs; NaN where it is not known.

    Examples
    --------
    >>> from lssvm.fitting import Member
    >>> list(Member.__dataclass_fields__)
    ['model', 'outputs', 'scaling', 'metric', 'rounds', 'weight', 'error']
    """

    model: Expansion | LocalModel
    outputs: IntArray | None = None
    scaling: Scaling = "none"
    metric: Metric = IDENTITY
    rounds: int = 0
    weight: float = 1.0
    error: float = float("nan")

    def __str__(self) -> str:
        return f"{self.model.kernel_name} on {self.scaling}"

    @property
    def expansion(self) -> Expansion:
        """The one expansion that it is, where no tree sends rows to leaves."""
        assert isinstance(self.model, Expansion)
        return self.model

    @property
    def local(self) -> LocalModel:
        """The exact models that it has in leaves."""
        assert isinstance(self.model, LocalModel)
        return self.model

    @property
    def in_leaves(self) -> bool:
        """Whether it keeps its training rows, in the leaves of a partition."""
        return isinstance(self.model, LocalModel)

    def is_of(self, other: Member) -> bool:
        """Return whether both are of one configuration and map, as prototypes and their leaves."""
        same = str(self) == str(other) and self.rounds == other.rounds
        return same and (self.metric.warp is None) == (other.metric.warp is None)

    @property
    def trees(self) -> list[Tree | None]:
        """The trees of its partitions; None for the one expansion of a member without."""
        if isinstance(self.model, Expansion):
            return [None]
        return [one.tree for one in self.model.partitions]

    def leaves(self, partition: int = 0) -> list[Expansion]:
        """Return the expansions in the leaves of a partition; of a member without, its own."""
        if isinstance(self.model, Expansion):
            return [self.model]
        return self.model.expansions(self.model.partitions[partition])

    def expansions(self) -> list[Expansion] | None:
        """Return the expansions whose mean its outputs are; None where rows are sent to leaves."""
        if any(tree is not None and tree.n_leaves > 1 for tree in self.trees):
            return None
        return [self.leaves(i)[0] for i in range(len(self.trees))]

    def mapped(self, features: Features) -> Any:
        """Return rows as the kernel sees them."""
        return self.metric.map_rows(features[self.scaling])

    def evaluate(self, X: Any, backend: Backend) -> FloatArray:
        """Return its outputs for mapped rows, in main memory."""
        one = self.model
        if isinstance(one, LocalModel):
            return one.outputs(X, engine=find_engine(backend))
        return backend.outputs(one.kernel, X, one.basis, one.coef, one.intercept)

    def squared_error(
        self, features: Features | None, n: int, nearby: int | Sequence[int] = 0
    ) -> FloatArray:
        """Return mean squared errors around rows, (n, 1) or (.., n, k); see `LocalModel`."""
        if isinstance(self.model, Expansion):
            return np.full((n, 1), self.error)
        return self.model.squared_error(
            None if features is None else self.mapped(features), n, nearby
        )

    def stripped(self, errors: bool) -> Member:
        """Return what prediction needs, and the errors of training rows on request."""
        if isinstance(self.model, Expansion):
            return self
        return replace(self, model=self.model.stripped(errors))


# -- what else a fit leaves ----------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """A configuration of the model for tables that was tried.

    Attributes
    ----------
    scaling, kernel : str
        The configuration.
    rounds : int
        Of the metric.
    error : float
        Mean squared error on rows that were not seen, relative to that of the mean.
    weight : float
        In the stack; 0 for what is not in it.
    seconds : float
        What it took.
    stage : str
        The last stage it reached: "screening", "metric", "all rows", "prototypes" or "log loss".
    warped : bool
        Whether its features are warped.

    Examples
    --------
    >>> from lssvm.fitting import Trial
    >>> str(Trial("quantiles", "laplacian", 1, 0.2, 0.0, 0.1, "metric"))
    'laplacian on quantiles'
    """

    scaling: Scaling
    kernel: str
    rounds: int
    error: float
    weight: float
    seconds: float
    stage: str
    warped: bool = False

    def __str__(self) -> str:
        return f"{self.kernel} on {self.scaling}"


@dataclass(frozen=True)
class Step:
    """A step of the fit for tables.

    Attributes
    ----------
    stage : str
        "target scale", "preparation", "screening", "metric", "leaf size", "configurations",
        "all rows", "prototypes", "log loss", "stack" or "calibration".
    what : str
        What was done, or what would come next.
    gain : float
        By which share the out-of-sample loss fell, or is expected to fall; negative where it rose,
        NaN where there is nothing to compare with.
    cost : float
        Operations, relative to those that a gain of the preset's size may cost.
    seconds : float
        What it took; 0 for what was not done. A trial after which a step is not taken is a step
        without a gain.
    taken : bool
        Whether it was done, and its result was kept.
    """

    stage: str
    what: str
    gain: float
    cost: float
    seconds: float
    taken: bool


@dataclass(frozen=True, eq=False)
class Tuning:
    """What was tried, and the score of what was chosen.

    Attributes
    ----------
    best_score : float
        Cross-validated score of the chosen parameters; of the model for tables that of held-out
        predictions.
    results : tuple of TuningResult
        One, or one for each binary problem that was tuned separately; none where a file left them
        out.
    n_evaluations : int
        Pairs of C and gamma that were evaluated.
    sizes : dict or None
        Numbers of prototypes that were tried, and their scores.
    sample : dict or None
        The search on a sample of the rows, where it was done on one first.
    trials : tuple of Trial
        Configurations of the model for tables.
    steps : tuple of Step
        Its steps, with what each gained and cost.
    """

    best_score: float
    results: tuple[TuningResult, ...] = ()
    n_evaluations: int = 0
    sizes: dict[str, Any] | None = None
    sample: dict[str, Any] | None = None
    trials: tuple[Trial, ...] = ()
    steps: tuple[Step, ...] = ()

    @classmethod
    def of(cls, results: Sequence[TuningResult], n_evaluations: int) -> Tuning:
        """Return what searches have found, without what their points keep."""
        score = float(np.mean([-result.loss for result in results]))
        return cls(score, tuple(replace(one, point=None) for one in results), n_evaluations)

    @property
    def cv_results(self) -> Any:
        """Parameters and scores of all evaluations, a list of them for several results."""
        return _one_or_all([result.cv_results for result in self.results])

    @property
    def result(self) -> Any:
        """The result, or the list of them."""
        return _one_or_all(list(self.results))

    def published(self) -> dict[str, Any]:
        """Return fitted attributes of the estimator."""
        searched = {
            "n_evaluations_": self.n_evaluations or None,
            "cv_results_": self.cv_results,
            "tuning_result_": self.result,
        }
        known = {name: value for name, value in searched.items() if value is not None}
        return {"best_score_": self.best_score, **known}

    def stripped(self) -> Tuning:
        """Return it without what was evaluated."""
        return replace(self, results=(), sizes=None, sample=None)


def _one_or_all(values: list[Any]) -> Any:
    """Return a single value without its list, and None for no values."""
    return values if len(values) > 1 else next(iter(values), None)


class CalibrationData(Protocol):
    """What a model keeps of its training rows, from which uncertainty follows."""

    def out_of_fold(self, fit: Fit[Any], host: Host) -> OutOfFold:
        """Return scores of rows by models that have not seen them."""

    def posteriors(self, fit: Fit[Any], host: Host) -> Posteriors:
        """Return the outputs and their Gaussian posterior."""

    def residuals(self, fit: Fit[Any], host: Host, posteriors: Posteriors) -> Residuals:
        """Return errors of held-out rows, in units of their predicted deviations."""

    def reduced(self, form: str, fit: Fit[Any]) -> CalibrationData:
        """Return what a file of this form keeps."""


class State(ABC):
    """What only one family of models has: for updates, and how it was fitted."""

    @abstractmethod
    def published(self, fit: Fit[Any]) -> dict[str, Any]:
        """Return fitted attributes of the estimator."""

    @abstractmethod
    def reduced(self, form: str, fit: Fit[Any]) -> Any:
        """Return what a file of this form keeps."""

    def check_rows(self, what: str) -> None:  # noqa: B027 - most states have what updates need
        """Raise where the training rows, which something needs, were never kept."""


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelState(State):
    """How a model of one basis was fitted.

    Attributes
    ----------
    gamma : float, array or None
        As published: None where the kernel has none.
    support : int array
        Rows of the training data that the basis is; -1 for given rows.
    loss : str or DifferentiableLoss
        What the coefficients minimise.
    solver : str
        How the systems were solved.
    residual : float
        Relative residual of the solution.
    iterations : int
    relevance : array of shape (d,) or None
        Shares of the features, with ``gamma="ard"``.
    threshold : array of shape (k,) or None
        What was taken off the intercepts.
    """

    gamma: Any
    support: IntArray
    loss: str = "squared"
    solver: str = "direct"
    residual: float = 0.0
    iterations: int = 0
    relevance: FloatArray | None = None
    threshold: FloatArray | None = None

    def check_posterior(self) -> None:
        """Refuse a model without a Gaussian posterior."""
        if self.loss != "squared":
            raise InvalidInputError(
                f"loss={self.loss!r} has no Gaussian posterior: use loss='squared' for standard "
                "deviations and intervals."
            )

    def published(self, fit: Fit[Any]) -> dict[str, Any]:
        """Return fitted attributes of the estimator."""
        whole, metric = fit.expansion, fit.main.metric
        same = len(set(whole.C.tolist())) == 1
        attributes: dict[str, Any] = {
            "C_": float(whole.C[0]) if same else whole.C,
            "gamma_": self.gamma,
            "dual_coef_": whole.coef,
            "intercept_": whole.intercept,
            "support_": self.support,
        }
        if not whole.kernel.name == "precomputed":
            attributes["support_vectors_"] = metric.unmap(whole.basis)
        if self.threshold is not None:
            attributes["threshold_"] = self.threshold
        if self.relevance is not None:
            attributes["feature_relevance_"] = self.relevance
        return attributes


S = TypeVar("S", bound=State)


@dataclass(frozen=True, eq=False)
class Fit(Generic[S]):
    """A fitted model.

    Attributes
    ----------
    task : Classes or Numbers
        What outputs mean.
    members : tuple of Member
        Kernel expansions, whose weighted sum the outputs are.
    state : DualState, FixedState, GreedyState or TableState
        What only one family of models has.
    seed : int
        What folds and samples were drawn with.
    calibration : CalibrationData or None
        What is kept of the training rows, from which probabilities and intervals follow; None
        where they were computed by the fit.
    calibrated : Probabilities, Residuals or None
        What turns outputs into probabilities and sets, or into intervals, where it was computed
        already.
    tuning : Tuning or None
    prepared : dict from scalings to PreparedTable
        How raw columns become features; empty where rows are features.
    offset : array of shape (k,) or None
        Added to the weighted sum of the members' outputs.
    stored : str
        "all", or the form of the file that the model was loaded from.
    """

    task: Task
    members: tuple[Member, ...]
    state: S
    seed: int
    calibration: CalibrationData | None = None
    calibrated: Probabilities | Residuals | None = None
    tuning: Tuning | None = None
    prepared: dict[Scaling, PreparedTable] = field(default_factory=dict)
    offset: FloatArray | None = None
    stored: str = "all"

    @property
    def main(self) -> Member:
        """The member with the largest weight, the first of several."""
        return max(self.members, key=lambda member: member.weight)

    @property
    def used(self) -> list[Member]:
        """The members that outputs are made of: all but leaves that stay for their rows alone."""
        return [member for member in self.members if member.weight > 0]

    @property
    def local_members(self) -> list[Member]:
        """The members in leaves, without a global one of their rows; all where none is."""
        return [member for member in self.members if member.in_leaves] or list(self.members)

    @property
    def n_tried(self) -> int:
        """The number of configurations that were tried, without prototypes of the same ones."""
        trials = () if self.tuning is None else self.tuning.trials
        return sum(trial.stage != "prototypes" for trial in trials)

    @property
    def any_prepared(self) -> PreparedTable:
        """One of the preparations: all are of the same raw columns."""
        return next(iter(self.prepared.values()))

    def outputs(self, features: Features, backend: Backend = ONE_THREAD) -> FloatArray:
        """Return the outputs (n, k) of rows, in main memory.

        Parameters
        ----------
        features : mapping from scalings to arrays of shape (n, d)
            Rows before the metrics, for every scaling that a member takes.
        backend : Backend, optional
            Where it is computed; by default on one thread.
        """
        return self._summed(backend, lambda member: member.mapped(features))

    def mapped_outputs(self, X: Any, backend: Backend) -> FloatArray:
        """Return the outputs (n, k) of rows after the metric that all members share."""
        return self._summed(backend, lambda member: X)

    def _summed(self, backend: Backend, rows_of: Callable[[Member], Any]) -> FloatArray:
        out: FloatArray | None = None
        for member in self.used:
            values = member.evaluate(rows_of(member), backend)
            if out is None:
                out = np.zeros((len(values), self.task.n_outputs), values.dtype)
            served = slice(None) if member.outputs is None else member.outputs
            out[:, served] += values if member.weight == 1.0 else member.weight * values
        assert out is not None
        return out if self.offset is None else out + self.offset

    # -- models of one basis -----------------------------------------------------------------------

    @property
    def expansion(self) -> Expansion:
        """All outputs on the basis that members share, with the kernel of the first of them."""
        first = self.members[0].expansion
        if len(self.members) == 1:
            return first
        k = self.task.n_outputs
        coef = np.empty((first.coef.shape[0], k), first.coef.dtype)
        intercept, C = np.empty(k, first.intercept.dtype), np.empty(k)
        for member in self.members:
            one, served = member.expansion, member.outputs
            coef[:, served], intercept[served], C[served] = one.coef, one.intercept, one.C
        return replace(first, coef=coef, intercept=intercept, C=C)

    def with_metric(self, metric: Metric) -> Fit[S]:
        """Return the fit with the metric that its rows have gone through."""
        return replace(self, members=tuple(replace(one, metric=metric) for one in self.members))

    def solved(self, **changes: Any) -> Fit[S]:
        """Return the fit with another basis, coefficients (m, k), intercepts (k,) or C (k,)."""

        def part(name: str, value: Any, served: IntArray | None) -> Any:
            if name == "basis" or served is None:
                return value
            return value[..., served]

        members = (
            replace(
                member,
                model=replace(
                    member.expansion,
                    **{name: part(name, value, member.outputs) for name, value in changes.items()},
                ),
            )
            for member in self.members
        )
        return replace(self, members=tuple(members))

    # -- files -------------------------------------------------------------------------------------

    def need(self, form: str, what: str) -> None:
        """Raise where something needs more than the model has, or its file has kept.

        Parameters
        ----------
        form : {"all", "prediction", "support"}
            What a file has to keep for it.
        what : str
            The first words of the error.
        """
        if form == "all":
            self.state.check_rows(what)
        check_form(self.stored, form, what)

    def stripped(self, form: str, calibrated: Probabilities | Residuals | None = None) -> Fit[S]:
        """Return what a file of this form keeps.

        Parameters
        ----------
        form : {"all", "prediction", "support"}
            All, what prediction and intervals need, or what prediction needs.
        calibrated : Probabilities, Residuals or None
            What was computed from rows that are not kept.
        """
        if form == "all":
            return self
        calibrated = self.calibrated if calibrated is None else calibrated
        if form == "support":
            calibrated = without_quantiles(calibrated)
        # Intervals by nearby errors need those of the member that they are taken from.
        errors = isinstance(calibrated, Residuals) and calibrated.nearby > 0
        largest = max(self.local_members, key=lambda member: member.weight)
        return replace(
            self,
            members=tuple(one.stripped(errors and one is largest) for one in self.members),
            state=self.state.reduced(form, self),
            calibration=self.calibration and self.calibration.reduced(form, self),
            calibrated=calibrated,
            tuning=self.tuning and self.tuning.stripped(),
            stored=form,
        )


def without_quantiles(
    calibrated: Probabilities | Residuals | None,
) -> Probabilities | None:
    """Return the maps to probabilities, without what sets and intervals need."""
    if not isinstance(calibrated, Probabilities):
        return None
    none = np.empty(0)
    return replace(calibrated, threshold=none, weight=none)


def alike(values: Iterable[Any]) -> list[IntArray]:
    """Return the positions of values that print alike, for each of them."""
    gathered: dict[str, list[int]] = {}
    for position, value in enumerate(values):
        gathered.setdefault(repr(value), []).append(position)
    return [np.array(positions, dtype=np.intp) for positions in gathered.values()]


def members_of(
    choice: KernelChoice,
    gamma: Sequence[Any],
    basis: Any,
    coef: FloatArray,
    intercept: FloatArray,
    C: FloatArray,
) -> tuple[Member, ...]:
    """Return one member on the basis for every different gamma of the outputs."""
    groups = alike(gamma)
    if len(groups) == 1:
        return (Member(Expansion(choice.at(gamma[0]), basis, coef, intercept, C)),)
    return tuple(
        Member(
            Expansion(
                choice.at(gamma[columns[0]]),
                basis,
                coef[:, columns],
                intercept[columns],
                C[columns],
            ),
            columns,
        )
        for columns in groups
    )
