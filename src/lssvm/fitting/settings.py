"""What all fits are asked for: checked parameters, kernels, folds and searches."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray, is_sparse
from lssvm._core.blocks import as_bytes, n_threads
from lssvm._core.errors import ConvergenceWarning, InvalidInputError
from lssvm._core.progress import Listener
from lssvm._core.random import RandomState, as_generator
from lssvm.backends.host import Host
from lssvm.backends.rows import Rows
from lssvm.codes import Coding
from lssvm.data.folds import (
    Folds,
    PositionHoldout,
    assign_folds,
    content_holdout,
    restrict_folds,
    splitter_folds,
)
from lssvm.fitting.record import Member
from lssvm.kernels import Kernel, MetricKernel, Precomputed, make_kernel
from lssvm.kernels.base import Expansion
from lssvm.kernels.factory import has_gamma, resolve_gamma
from lssvm.tasks import Classes, Task
from lssvm.tasks.losses import DifferentiableLoss, check_loss
from lssvm.tuning.objective import Objective
from lssvm.tuning.search import Search, Space, TuningResult
from lssvm.tuning.searches import make_search

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
    """An estimator with limits of memory and threads."""

    memory_budget: Any
    n_jobs: int | None


def host_of(estimator: UsesResources) -> Host:
    """Return this machine with the memory and the threads that an estimator may use."""
    return Host(as_bytes(estimator.memory_budget), n_threads(estimator.n_jobs))


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

    @property
    def robust_rounds(self) -> int:
        """How often a robust model is tuned again: the first parameters were those of outliers."""
        return 2 if isinstance(self.loss, str) and self.loss != "squared" else 0

    def reweights(self, lowered: bool) -> bool:
        """Return whether coefficients are still to be reweighted.

        ``lowered``: tuning has left the weights of "weighted" on the rows.
        """
        return self.loss != "squared" and not (self.loss == "weighted" and lowered)

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
            Expansion(choice.at(gamma[own[0]]), basis, coef[:, own], intercept[own], C[own]), own
        )
        for own in groups
    )
