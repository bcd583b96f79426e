"""What a fit leaves: one frozen record, which files, exports, plots and reports read."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray, is_sparse, pick, times
from lssvm._core.blocks import as_bytes, n_threads
from lssvm._core.errors import ConvergenceWarning, InvalidInputError
from lssvm._core.progress import Listener
from lssvm._core.random import RandomState, as_generator
from lssvm.backends.rows import Rows
from lssvm.codes import Coding, one_vs_one
from lssvm.codes.code import ONE_VS_ONE_UP_TO
from lssvm.data.folds import (
    Folds,
    PositionHoldout,
    assign_folds,
    content_holdout,
    hash_rows,
    restrict_folds,
    splitter_folds,
)
from lssvm.kernels import Kernel, Metric, MetricKernel, Precomputed, make_kernel
from lssvm.kernels.base import evaluate_expansion
from lssvm.kernels.factory import has_gamma, resolve_gamma
from lssvm.kernels.metric import IDENTITY
from lssvm.tasks import Classes, Task
from lssvm.tasks.losses import DifferentiableLoss, check_loss
from lssvm.tuning.fixed_size import FixedSizeObjective
from lssvm.tuning.objective import Objective
from lssvm.tuning.search import Search, Space, TuningResult
from lssvm.tuning.searches import make_search
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


def alike(values: Iterable[Any]) -> list[IntArray]:
    """Return the positions of values that are written the same, for each of them."""
    gathered: dict[str, list[int]] = {}
    for position, value in enumerate(values):
        gathered.setdefault(repr(value), []).append(position)
    return [np.array(positions, dtype=np.intp) for positions in gathered.values()]


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

    def out_of_fold(self, fit: Fit, resources: Resources) -> OutOfFold:
        """Return scores of rows by models that have not seen them."""

    def posteriors(self, fit: Fit, resources: Resources) -> Posteriors:
        """Return the outputs and their Gaussian posterior."""

    def residuals(self, fit: Fit, resources: Resources, posteriors: Posteriors) -> Residuals:
        """Return errors of rows left out, in units of their predicted deviations."""

    def reduced(self, form: str, fit: Fit) -> CalibrationData:
        """Return what a file of this form keeps."""


@dataclass(frozen=True)
class Resources:
    """Bytes and threads that a call may use."""

    budget: int
    threads: int

    def evaluate(
        self, kernel: Kernel, X: Any, Z: Any, coef: FloatArray, intercept: FloatArray
    ) -> FloatArray:
        """Return K(X, Z) coef + intercept."""
        use = {"budget": self.budget, "threads": self.threads}
        return evaluate_expansion(kernel, X, Z, coef, intercept, **use)


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

    def outputs(self, X: Any, resources: Resources) -> FloatArray:
        """Return the outputs (n, k) of rows in main memory, after the metric."""
        out = np.empty((X.shape[0], self.coef.shape[1]), self.coef.dtype)
        for columns, kernel, coef, intercept in self.expansions():
            out[:, columns] = resources.evaluate(kernel, X, self.basis, coef, intercept)
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


LEAST_C, MOST_C = 1e-30, 1e30  # float32 has numbers up to 1e38
ARD_KERNELS = ("matern", "rbf")
"""Kernels whose width may differ between features."""


SQUARES = "neg_mean_squared_error"
"""The scoring by which outputs that are tuned by themselves are scored by their squared errors."""


def check_C(C: Any) -> float | None:
    """Return C as a number, or None for "cv"."""
    if isinstance(C, str) and C == "cv":
        return None
    if isinstance(C, (int, float, np.number)) and type(C) is not bool:
        value = float(C)
        if LEAST_C <= value <= MOST_C:
            return value
    raise InvalidInputError(
        f"C={C!r} is not usable: give a finite number > 0 (from {LEAST_C:g} to {MOST_C:g}, beyond "
        "which no number of a system would be left), or 'cv' to choose it by cross-validation."
    )


def check_option(name: str, value: Any, options: tuple[str, ...]) -> None:
    """Refuse what is not among the options."""
    if value not in options:
        raise InvalidInputError(f"{name}={value!r} is not known: choose one of {options}.")


def is_int(value: Any) -> bool:
    """Return whether a value is a whole number, and no truth value."""
    return isinstance(value, (int, np.integer)) and type(value) is not bool


def seed_of(random_state: RandomState) -> int:
    """Return the seed of prototypes, folds and searches; a fixed one for None."""
    if random_state is None:
        return 0
    return int(as_generator(random_state).integers(2**31 - 1))


class UsesResources(Protocol):
    """An estimator that says how much it may use."""

    memory_budget: Any
    n_jobs: int | None


def resources_of(estimator: UsesResources) -> Resources:
    """Return bytes and threads that an estimator may use."""
    return Resources(as_bytes(estimator.memory_budget), n_threads(estimator.n_jobs))


class KernelParameters(Protocol):
    """The parameters that all kernel estimators have."""

    C: Any
    kernel: Any
    gamma: Any
    random_state: Any


class TunedParameters(KernelParameters, Protocol):
    """The parameters of estimators that tune C and gamma."""

    reduction: Any
    cv: Any
    search: Any
    scoring: Any
    solver: Any


@dataclass(frozen=True, eq=False)
class KernelChoice:
    """A kernel whose parameter may still be open."""

    kernel: Any
    gamma: Any = "scale"
    metric: Any = None
    scales: FloatArray | None = None

    @classmethod
    def of(cls, estimator: KernelParameters) -> KernelChoice:
        """Read the parameters of an estimator."""
        given = estimator.kernel
        if isinstance(given, MetricKernel):
            return cls(given.kernel, estimator.gamma, given.metric)
        return cls(given, estimator.gamma)

    @property
    def has_gamma(self) -> bool:
        """Whether gamma matters."""
        return has_gamma(self.kernel)

    @property
    def name(self) -> str | None:
        """The name of the kernel; None for a function."""
        if isinstance(self.kernel, str):
            return self.kernel
        return self.kernel.name if isinstance(self.kernel, Kernel) else None

    @property
    def precomputed(self) -> bool:
        """Whether rows are rows of a kernel matrix."""
        return self.name == "precomputed" or isinstance(self.kernel, Precomputed)

    @property
    def accepts_sparse(self) -> bool:
        """Whether rows may be sparse."""
        if isinstance(self.kernel, Kernel):
            return self.kernel.accepts_sparse
        return self.name in ("rbf", "linear", "poly", "matern")

    @property
    def asks_ard(self) -> bool:
        """Whether a width for every feature is to be learned."""
        return isinstance(self.gamma, str) and self.gamma == "ard"

    @property
    def tunes_gamma(self) -> bool:
        """Whether gamma is to be chosen."""
        named = isinstance(self.gamma, str) and self.gamma in ("cv", "ard")
        return named and self.has_gamma

    def check_ard(self) -> None:
        """Refuse a width for every feature where the kernel has none."""
        if self.asks_ard and self.name not in ARD_KERNELS:
            raise InvalidInputError(
                f"gamma='ard' cannot be used with kernel={self.kernel!r}: choose one of "
                f"{ARD_KERNELS}, or another gamma."
            )

    def check(self) -> None:
        """Refuse what does not go together."""
        self.check_ard()
        if isinstance(self.gamma, str) and self.gamma == "cv" and not self.has_gamma:
            if not isinstance(self.kernel, str):
                raise InvalidInputError(
                    f"gamma='cv' cannot tune kernel={self.kernel!r}: name a kernel such as 'rbf', "
                    "or give a kernel object without gamma, such as Matern(nu=2.5)."
                )

    def fixed_gamma(self, X: Any, weight: FloatArray | None, scale: float | None = None) -> Any:
        """Return gamma as numbers; None where it is tuned or does not matter.

        ``scale`` is gamma="scale", where it is known for more rows than these.
        """
        if self.tunes_gamma or not self.has_gamma:
            return None
        gamma = "scale" if isinstance(self.gamma, str) and self.gamma == "cv" else self.gamma
        if isinstance(gamma, str) and gamma == "scale" and scale is not None:
            return scale
        return resolve_gamma(gamma, X, weight)

    def by_feature(self, gamma: Any) -> Any:
        """Return gamma with the factors of the features."""
        if self.scales is None or gamma is None or np.ndim(gamma) > 0:
            return gamma
        return gamma * self.scales

    def at(self, gamma: Any) -> Kernel:
        """Return the kernel at a value of gamma (None: it has none)."""
        return make_kernel(self.kernel, gamma=1.0 if gamma is None else self.by_feature(gamma))

    def scaled(self, scales: FloatArray | None) -> KernelChoice:
        """Return the same with factors of gamma by feature."""
        return replace(self, scales=scales)


@dataclass(frozen=True, eq=False, kw_only=True)
class TunedSettings:
    """What all recipes that tune C and gamma are asked for.

    Attributes
    ----------
    C : float or None
        None: to be chosen.
    choice : KernelChoice
    cv : int, float, "loo", splitter or iterable
    search : Search
    scoring : str, callable or None
    seed : int
    solver : str or solver object
    loss : str or DifferentiableLoss
        What the coefficients minimise.
    separate : bool
        Whether each output has its own C and gamma.
    """

    C: float | None
    choice: KernelChoice
    cv: Any
    search: Search
    scoring: Any
    seed: int
    solver: Any = "auto"
    loss: str | DifferentiableLoss = "squared"
    separate: bool = False

    @staticmethod
    def read(estimator: TunedParameters) -> dict[str, Any]:
        """Return these settings of an estimator, checked."""
        loss = getattr(estimator, "loss", None)
        classes = loss is None  # of which the code has the loss
        if classes:
            loss = Coding.of(getattr(estimator, "multiclass", "auto")).loss
        check_loss(loss, classes=classes)
        if loss != "squared" and estimator.reduction is not None:
            raise InvalidInputError(
                f"reduction={estimator.reduction!r} belongs to squared loss, which loss={loss!r} "
                "is not: use loss='squared', or no reduction."
            )
        search = make_search(estimator.search)
        return {
            "C": check_C(estimator.C),
            "choice": KernelChoice.of(estimator),
            "cv": estimator.cv,
            "search": search,
            "scoring": estimator.scoring,
            "seed": seed_of(estimator.random_state),
            "solver": estimator.solver,
            "loss": loss,
            "separate": search.per_output,
        }

    def run_search(
        self, objective: Objective, space: Space, callback: Listener, **more: Any
    ) -> TuningResult:
        """Search, and warn where a person has cut it short."""
        use = {"random_state": self.seed, "on_event": callback.on_event, **more}
        result = self.search.run(objective, space, **use)
        if result.interrupted and not callback.stopped:
            warnings.warn(
                "Tuning was interrupted; the best parameters found so far are used.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return result

    def fingerprint(self, arrays: Sequence[Any], task: Task, *more: Any) -> str:
        """Return a digest of the data and of the settings that the losses of a search follow from.

        Two searches with equal fingerprints may share a checkpoint.
        """
        choice = self.choice
        settings = [self.C, choice.gamma, choice.kernel, *more]
        settings += [self.cv, self.scoring, self.loss, self.seed]
        if isinstance(task, Classes):
            settings += [task.code.matrix, task.decoding, task.targets, task.class_weight]
        digest = hashlib.sha256()
        for array in arrays:
            if is_sparse(array):
                array = np.concatenate([array.data, array.indices, array.indptr])
            if array is not None:
                digest.update(np.ascontiguousarray(array).data.cast("B"))
        digest.update(repr([_exact(value) for value in settings]).encode())
        return digest.hexdigest()


def _exact(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_exact(entry) for entry in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def usual_C_range(rows: Any, choice: KernelChoice) -> tuple[float, float]:
    """Return between which C is searched: a linear kernel is as large as the rows are spread."""
    unit = rows.spread() if choice.name == "linear" else 1.0
    unit = unit if np.isfinite(unit) and unit > 0 else 1.0
    low, high = Space().C_range
    return low / unit, high / unit


def make_folds(cv: Any, seed: int, rows: Rows, *, positions: bool = False) -> Folds:
    """Turn ``cv`` into folds of rows."""
    given: tuple[Any, Any] = (rows.X, None) if rows.given is None else rows.given
    n, numbers = given[0].shape[0], rows.row_numbers
    loo, share = isinstance(cv, str) and cv == "loo", isinstance(cv, (float, np.floating))
    if isinstance(cv, range):
        cv = PositionHoldout(rows=(cv.start, cv.stop))
    if is_int(cv) and cv < 2:
        raise InvalidInputError(f"cv={cv!r} is not usable: give at least 2 folds, or 'loo'.")
    if loo or is_int(cv) or (share and 0.0 < cv < 1.0):
        content = numbers[:, None] + 1.0 if positions else rows.content
        known = rows.observed() | {"seed": seed}
        if share:
            return content_holdout(content, float(cv), **known)
        if loo:
            return assign_folds(content, None, **known)
        return assign_folds(content, int(cv), **known)
    if not isinstance(cv, str) and (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        grouped = (*given, rows.groups) if rows.groups is not None else given
        splits = cv.split(*grouped) if hasattr(cv, "split") else cv
        folds = restrict_folds(splitter_folds(splits, n), numbers, n)
        if not any(len(test) < len(numbers) or folds.train for test in folds.test):
            raise InvalidInputError(
                "No split of cv has training and test rows of positive weight: give splits that "
                "have both."
            )
        return folds
    raise InvalidInputError(
        f"cv={cv!r} is not usable: give a number of folds, a share between 0 and 1 to hold out, "
        "'loo', a scikit-learn splitter, or an iterable of (train, test) indices."
    )


PAIRS_UP_TO = 60
"""Classes beyond which pairs are not tried: 1,770 binary problems."""
ROWS, OF_A_CLASS = 4_000, 10
"""Rows that the codes are compared on, about, and those of a class at least."""
PROTOTYPES = 200
"""Prototypes of the models that are compared."""
WIDTHS = (0.1, 0.3, 1.0)
"""What gamma="scale" is multiplied by, where gamma is tuned."""
N_C = 20
"""Values of C that are tried."""


def class_rows(
    task: Classes,
    X: Any,
    labels: IntArray,
    weight: FloatArray | None,
    resources: Resources,
    *,
    by_class: bool,
    counts: FloatArray | None = None,
) -> Rows:
    """Return rows of known classes, with their targets and weights.

    ``by_class`` says that the recipe keeps moments per class where the task asks for that: weights
    of rows are then without those of classes. ``counts`` are the weights of the classes where these
    rows are a sample of all.
    """
    table = task.table(task.counts(labels, weight) if counts is None else counts)
    own = times(weight, table.row_factors(labels))
    apart = by_class and task.per_class
    return Rows(
        X,
        table.looked_up(labels),
        weight if apart else own,
        labels,
        loss_weight=own,
        sample_weight=weight,
        budget=resources.budget,
        threads=resources.threads,
    )


def is_open(multiclass: Any, task: Classes, choice: KernelChoice) -> bool:
    """Return whether a code is to be chosen for as many classes as these."""
    few = ONE_VS_ONE_UP_TO < task.n_classes <= PAIRS_UP_TO
    return is_auto(multiclass) and few and not choice.precomputed


def is_auto(multiclass: Any) -> bool:
    """Return whether no output code is named."""
    code = Coding.of(multiclass).code
    return isinstance(code, str) and code == "auto"


def better_code(rows: Rows, task: Classes, choice: KernelChoice, C: float | None) -> Classes:
    """Return the task with the better of its own code and one-vs-one."""
    pairs = replace(task, code=one_vs_one(task.n_classes))
    assert rows.labels is not None
    some = _sample(rows.X, np.asarray(rows.labels), task.n_classes)
    X, labels, weight = rows.X[some], rows.labels[some], pick(rows.sample_weight, some)
    Z = _prototypes(X, choice)
    first = assign_folds(X, 3, labels=labels).test[:1]
    gamma = choice.fixed_gamma(X, weight, rows.gamma_scale() if choice.has_gamma else None)
    gammas = [gamma]
    if choice.tunes_gamma:
        gammas = [width * rows.gamma_scale() for width in WIDTHS]
    grid = Space(C=C, C_range=usual_C_range(rows, choice)).C_grid(N_C)
    resources = Resources(rows.budget, rows.threads)

    def error(code: Classes) -> float:
        own = class_rows(code, X, labels, weight, resources, by_class=True)
        by_class = code if code.per_class else None
        data = (own, Z, Folds(first), code.loss(None), by_class)
        objective = FixedSizeObjective(choice.at, *data, grid if len(code.groups()) > 1 else None)
        means = [objective.at(value).losses(grid).mean for value in gammas]
        return float(np.min([np.min(np.where(np.isnan(mean), np.inf, mean)) for mean in means]))

    return pairs if error(pairs) < error(task) else task


def _sample(X: Any, labels: IntArray, n_classes: int) -> IntArray:
    """Return rows of all classes in proportion, at least a few of each."""
    hashes, share = hash_rows(X), min(1.0, ROWS / X.shape[0])
    parts = []
    for c in range(n_classes):
        own = np.flatnonzero(labels == c)
        size = max(OF_A_CLASS, round(share * len(own)))
        parts.append(own[np.argsort(hashes[own], kind="stable")[:size]])
    return np.sort(np.concatenate(parts))


def _prototypes(X: Any, choice: KernelChoice) -> Any:
    """Return the rows of the smallest hashes, or the axes of a linear kernel."""
    if choice.name == "linear" and X.shape[1] <= PROTOTYPES:
        return np.eye(X.shape[1])
    return X[np.argsort(hash_rows(X, 1), kind="stable")[:PROTOTYPES]]


ROUNDS = 2
"""How often a robust model is tuned again: the parameters were at first those of outliers."""


def rounds(loss: str | DifferentiableLoss) -> int:
    """Return how often a model of this loss is tuned again."""
    return ROUNDS if isinstance(loss, str) and loss != "squared" else 0


def reweights(loss: str | DifferentiableLoss, lowered: bool) -> bool:
    """Return whether coefficients are still to be reweighted.

    ``lowered`` says that tuning has left the weights of "weighted" on the rows.
    """
    return loss != "squared" and not (loss == "weighted" and lowered)
