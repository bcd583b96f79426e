"""Settings of a fixed-size fit, and what follows from them."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array
from sklearn.model_selection import PredefinedSplit

from lssvm._core.arrays import FloatArray, IntArray, float_rows, is_int, is_sparse, on_host, pick
from lssvm._core.blocks import slices
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm._core.progress import Listener
from lssvm._core.random import hash_positions
from lssvm.backends.host import AnyFolds
from lssvm.backends.rows import Rows, Training
from lssvm.codes import Coding
from lssvm.data.folds import Folds, PositionFolds, PositionHoldout, assign_folds
from lssvm.kernels import Kernel, Metric
from lssvm.kernels.factory import KernelChoice
from lssvm.prototypes import RenyiEntropy, Selection, Uniform, select_prototypes
from lssvm.reductions.fixed_size import METHODS as REDUCTIONS
from lssvm.reductions.fixed_size import PRINTED, FixedSizeL0
from lssvm.solvers import PCG
from lssvm.solvers.primal import METHODS as PATH_METHODS
from lssvm.solvers.primal import Bias
from lssvm.tasks import Classes, Loss, Task
from lssvm.tuning.fixed_size import FixedSizeObjective
from lssvm.tuning.objective import Objective, is_criterion, make_folds
from lssvm.tuning.search import Space
from lssvm.tuning.searches import (
    SQUARES,
    ListedPathSearch,
    PathSearch,
    TunedParameters,
    TunedSettings,
    best_gammas,
    check_option,
    usual_C_range,
)

N_C = 60
"""Values of C that each problem of a code chooses among."""
SQUARE_ROOT = re.compile(r"\s*(\d+(?:\.\d*)?)\s*\*?\s*sqrt\(n\)\s*")
"""How a number of prototypes that grows with the root of the number of rows is written."""
N_REDUCED_C = 20
"""Values of C that a reduced model is tuned over."""


class FixedParameters(TunedParameters, Protocol):
    """The parameters of a fixed-size estimator that settings are read from."""

    n_prototypes: Any
    selection: Any
    fit_intercept: bool | str


@dataclass(frozen=True, eq=False, kw_only=True)
class FixedSettings(TunedSettings):
    """The settings of a fixed-size model, checked.

    Attributes
    ----------
    n_prototypes : int or str
    selection : str, array or selection object
    reduction : FixedSizeL0 or None
    threshold : str
        "zero", or "cv" to move the thresholds of a classifier.
    calibrates : bool
        Whether rows are kept that calibrate probabilities or intervals.
    bias : {"free", "penalised", "none"}
    """

    n_prototypes: Any
    selection: Any
    reduction: FixedSizeL0 | None
    threshold: str = "zero"
    calibrates: bool = True
    bias: Bias = "free"

    @classmethod
    def of(cls, estimator: FixedParameters) -> FixedSettings:
        """Read and check the parameters of an estimator."""
        coding = Coding.of(getattr(estimator, "multiclass", "auto"))
        settings = cls(
            **cls.read(estimator),
            n_prototypes=estimator.n_prototypes,
            selection=estimator.selection,
            reduction=_reduction(estimator.reduction),
            threshold=coding.threshold,
            calibrates=coding.calibration is not None,
            bias=_bias(estimator.fit_intercept),
        )
        settings._check()
        return settings

    @property
    def sizes_by_cv(self) -> bool:
        """Whether the number of prototypes is chosen by cross-validation."""
        return isinstance(self.n_prototypes, str) and self.n_prototypes == "cv"

    def after(self, metric: Metric) -> FixedSettings:
        """Return the settings for rows after a metric: so are prototypes that are given."""
        if metric.map is None or np.ndim(self.selection) != 2:
            return self
        prototypes = np.asarray(on_host(self.selection), dtype=np.float64)
        return replace(self, selection=metric.map_rows(prototypes))

    @property
    def method(self) -> str | None:
        """How the model is reduced, if at all."""
        return None if self.reduction is None else self.reduction.method

    @property
    def tunes(self) -> bool:
        """Whether anything is tuned."""
        return self.C is None or self.choice.tunes_gamma or self.sizes_by_cv

    @property
    def criterion(self) -> str | None:
        """A criterion without folds, where scoring names one."""
        return self.scoring if is_criterion(self.scoring) else None

    @property
    def by_features(self) -> bool:
        """Whether systems are solved by QR factors of the features, not by moments."""
        return isinstance(self.solver, str) and self.solver == "features"

    @property
    def path_method(self) -> str:
        """How systems along a path of C are solved."""
        named = isinstance(self.solver, str) and self.solver in PATH_METHODS
        return self.solver if named else "auto"

    @property
    def needs_moments(self) -> str | None:
        """What works on moments, as a caller would write it."""
        if self.reduction is not None:
            return f"reduction={self.reduction.method!r}"
        if self.loss != "squared":
            return f"loss={self.loss!r}"
        if self.separate:
            return "a search with per_output=True"
        if self.sizes_by_cv:
            return "n_prototypes='cv'"
        return None if self.bias == "free" else _WRITTEN[self.bias]

    @property
    def n_folds(self) -> int:
        """About how many folds tuning has; 1 where nothing is tuned."""
        if self.C is not None and not self.choice.tunes_gamma:
            return 1
        if isinstance(self.cv, float):
            return 2
        return int(self.cv) if is_int(self.cv) else 10

    def reduced_C_grid(self, C_range: tuple[float, float] | None = None) -> FloatArray | None:
        """Return the values of C that a reduced model chooses among; None: its own."""
        space = Space() if C_range is None else Space(C_range=C_range)
        return space.C_grid(N_REDUCED_C) if self.C is None else None

    def _check(self) -> None:
        if self.choice.precomputed:
            raise InvalidInputError(
                "kernel='precomputed' cannot be used with prototypes, which are rows of features: "
                "use LSSVC or LSSVR, or pass the kernel as a function."
            )
        self.choice.check_ard()
        check_option("threshold", self.threshold, ("zero", "cv"))
        if self.threshold == "cv" and not (
            self.tunes and self.reduction is None and self.calibrates and self.criterion is None
        ):
            raise InvalidInputError(NO_OUTPUTS)
        others = [self.reduction is not None and "a reduction", self.criterion and "a criterion"]
        others += [self.loss != "squared" and "another loss than the squares"]
        if self.bias != "free" and any(others):
            raise InvalidInputError(
                f"{_WRITTEN[self.bias]} cannot be used with {next(filter(None, others))}, "
                "which has a free bias: use fit_intercept=True."
            )
        self._check_separate()
        if isinstance(self.solver, PCG):
            name = repr(self.solver)
        else:
            check_option("solver", self.solver, (*PATH_METHODS, "features", "pcg"))
            if self.solver not in ("features", "pcg"):
                return
            name = f"solver={self.solver!r}"
        needed = self.needs_moments
        if self.by_features and needed == _WRITTEN[self.bias]:
            needed = None  # factors have any bias
        if self.by_features and self.criterion is not None:
            needed = f"scoring={self.scoring!r}"
        if needed is not None:
            raise InvalidInputError(
                f"{needed} works on moments, which {name} does not form: leave it out, or use "
                "solver='cholesky'."
            )

    def _check_separate(self) -> None:
        """Refuse what tunes all outputs together."""
        if not self.separate:
            return
        others = {
            "n_prototypes='cv'": self.sizes_by_cv,
            "gamma='ard'": self.choice.uses_ard,
            "a reduction": self.reduction is not None,
            "another loss than the squares": self.loss != "squared",
            "a checkpoint": self.search.checkpoint is not None,
            f"scoring={self.scoring!r}": self.scoring not in (None, SQUARES),
        }
        for name, used in others.items():
            if used:
                raise InvalidInputError(
                    "A search with per_output=True chooses C and gamma of each output by its "
                    f"error, or with scoring={SQUARES!r} by its squared error; it cannot be used "
                    f"with {name}: use per_output=False, or leave that out."
                )


NO_OUTPUTS = (
    "threshold='cv' needs the out-of-fold outputs of a cross-validated C or gamma: give C='cv' "
    "with scoring=None or a scorer, folds of several rows, calibration='auto' and no reduction, or "
    "threshold='zero'."
)


_WRITTEN: dict[Bias, str] = {
    "free": "fit_intercept=True",
    "penalised": "fit_intercept='penalised'",
    "none": "fit_intercept=False",
}


def _bias(option: Any) -> Bias:
    if isinstance(option, (bool, np.bool_)):
        return "free" if option else "none"
    if isinstance(option, str) and option == "penalised":
        return "penalised"
    raise InvalidInputError(
        f"fit_intercept={option!r} is not usable: give True for a free bias, 'penalised' for one "
        "that is regularised like a weight, or False for none."
    )


def _reduction(option: Any) -> FixedSizeL0 | None:
    reduction = option
    if isinstance(option, str) and option in REDUCTIONS:
        reduction = FixedSizeL0(option)
    elif isinstance(option, str) and option in PRINTED:
        reduction = FixedSizeL0.printed(option.removesuffix("-printed"))
    if reduction is None or isinstance(reduction, FixedSizeL0):
        return reduction
    raise InvalidInputError(
        f"reduction={option!r} is not usable: choose None, "
        f"{', '.join(map(repr, REDUCTIONS + PRINTED))}, or a lssvm.reductions.FixedSizeL0."
    )


def snap_gamma(gamma: float | None) -> float:
    """Round to three digits: rounding in the last bits must not show in what is chosen."""
    assert gamma is not None
    return float(f"{gamma:.3g}")


def snap_results(cv_results: dict[str, Any]) -> dict[str, Any]:
    """Return a table of tuning with the gammas that models are fitted with."""
    return cv_results | {
        "param_gamma": np.array([snap_gamma(g) for g in cv_results["param_gamma"]]),
        "params": [p | {"gamma": snap_gamma(p["gamma"])} for p in cv_results["params"]],
    }


def number_of_prototypes(option: Any, n: int) -> int:
    """Return how many prototypes are to be chosen of n rows."""
    if isinstance(option, str) and option in ("auto", "cv"):
        size = int(np.clip(5.0 * np.sqrt(n), 200, 1000))
        return min(n, size if option == "auto" else 2 * size)
    if is_int(option) and option >= 1:
        return int(option)
    factor = SQUARE_ROOT.fullmatch(option) if isinstance(option, str) else None
    if factor is not None and float(factor[1]) > 0:
        return min(n, math.ceil(float(factor[1]) * math.sqrt(n)))  # [Mall2014, section IV-A]
    raise InvalidInputError(
        f"n_prototypes={option!r} is not usable: give a positive int, 'auto' (a rule in the number "
        "of rows), '6 sqrt(n)' or such, or 'cv' to choose it by cross-validation."
    )


def groups_of(task: Classes | None, k: int) -> list[IntArray]:
    """Return the outputs that share rows, where a task has moments per class."""
    return [np.arange(k)] if task is None else task.groups()


def fold_task(task: Task) -> Classes | None:
    """Return the task where moments are kept per class, which puts problems together."""
    return task if isinstance(task, Classes) and task.per_class else None


def folds_of(rows: Training, settings: FixedSettings) -> AnyFolds:
    """Return the folds of ``cv``, by content or, of rows read in blocks, by position."""
    sample: Rows = rows.sample
    if sample.by_position:
        folds = rows.usable_folds(position_folds(settings.cv, settings.seed))
        if isinstance(folds, Folds) and len(folds) == 0 and settings.tunes:
            raise InvalidInputError(
                f"No fold has rows to train on and rows to test on (n_samples={sample.n_rows}): "
                "give more rows, or fixed numbers for C, gamma and n_prototypes."
            )
        return folds
    if is_int(settings.cv) and settings.cv >= 2:
        return assign_folds(rows.content, int(settings.cv), **sample.observed(), seed=settings.seed)
    return make_folds(settings.cv, settings.seed, sample)


def position_folds(cv: Any, seed: int) -> PositionFolds | PositionHoldout:
    """Turn ``cv`` into folds by position."""
    if isinstance(cv, (PositionFolds, PositionHoldout)):
        return cv
    if is_int(cv) and cv >= 2:
        return PositionFolds(int(cv), seed)
    if isinstance(cv, (float, np.floating)) and 0.0 < cv < 1.0:
        return PositionHoldout(float(cv), seed)
    if isinstance(cv, range) and cv.step == 1 and 0 <= cv.start < cv.stop:
        return PositionHoldout(rows=(cv.start, cv.stop))
    if isinstance(cv, PredefinedSplit):
        return PositionFolds(int(cv.test_fold.max()) + 1, numbers=cv.test_fold)
    raise InvalidInputError(
        f"cv={cv!r} is not usable with rows that are read in blocks: give a number of folds, a "
        "share between 0 and 1 or a range of rows to hold out, the name of a column of fold "
        "numbers, a scan of validation rows, PredefinedSplit, PositionFolds or PositionHoldout."
    )


@dataclass(frozen=True, eq=False)
class FixedProblem:
    """What a fixed-size fit is about.

    Attributes
    ----------
    rows : Training
        Training rows, wherever they are.
    task : Classes or Numbers
    settings : FixedSettings
    callback : Listener
    gamma : float, array or None
        As given; None: tuned, or the kernel has none.
    """

    rows: Training
    task: Task
    settings: FixedSettings
    callback: Listener
    gamma: Any

    @cached_property
    def C_range(self) -> tuple[float, float]:
        """The range of C that is searched, in units of the kernel.

        Those of a linear kernel are the mean diagonal of its centred matrix, so that multiplying X
        by a constant changes nothing; radial kernels are at most one.
        """
        return usual_C_range(self.rows, self.settings.choice)

    @property
    def centre(self) -> FloatArray:
        """What the targets of the rows are without, (k,)."""
        taken: FloatArray | None = self.rows.sample.centre
        return np.zeros(self.rows.n_outputs) if taken is None else taken

    def space(self, rows: Training, C: float | None, counted: float | None) -> Space:
        """Return what is searched; ``counted`` are the rows that an accuracy is counted over."""
        tuned = self.settings.choice.tunes_gamma
        return Space(
            C=C,
            tune_gamma=tuned,
            gamma_start=rows.gamma_scale() if tuned else 1.0,
            n_features=rows.sample.X.shape[1],
            counted_rows=None if counted is None else max(1, round(counted)),
            C_range=self.C_range,
        )

    def objective(
        self,
        choice: KernelChoice,
        rows: Training,
        Z: FloatArray,
        folds: AnyFolds,
        loss: Loss,
        C_grid: FloatArray | None = None,
    ) -> FixedSizeObjective:
        """Return the cross-validated loss as a function of C and gamma."""

        def kernel(value: float | None) -> Kernel:
            return choice.at(snap_gamma(value) if choice.tunes_gamma else self.gamma)

        settings, data = self.settings, (rows, Z, folds, loss, self.by_class)
        made = FixedSizeObjective(kernel, *data, C_grid, settings.path_method, settings.bias)
        made = replace(made, by_features=settings.by_features)
        if settings.by_features and made.leave_out:
            raise InvalidInputError(
                "solver='features' is tuned by folds of several rows: give a number of folds."
            )
        if settings.bias != "free" and made.leave_out:
            raise InvalidInputError(
                f"{_WRITTEN[settings.bias]} is tuned by folds of several rows: give a number of "
                "folds, or fit_intercept=True to leave rows out one by one."
            )
        return made

    def narrowed(
        self, objective: Objective, space: Space, n: int
    ) -> tuple[ListedPathSearch, dict[str, Any]]:
        """Search something smaller first; return the search among its ``n`` best gammas."""
        search, seed, on_event = self.settings.search, self.settings.seed, self.callback.on_event
        result = search.run(objective, space, random_state=seed, on_event=on_event, resume=False)
        listed = ListedPathSearch(
            n_C=search.n_C if isinstance(search, PathSearch) else N_C,
            gammas=best_gammas(result, n),
            checkpoint=search.checkpoint,
            on_interrupt=search.on_interrupt,
        )
        return listed, result.cv_results

    @property
    def by_class(self) -> Classes | None:
        """The task where its classes are kept apart."""
        return fold_task(self.task)


SELECTED_FROM = 100_000
"""About so many rows, drawn by their positions, are what prototypes are selected from."""
SPARSE_FEATURES = 1000
"""Sparse features up to which a linear kernel needs no prototypes."""
HASHED = 64
"""Columns that sparse features are hashed to for the choice of prototypes."""
SELECTED_ON_HOST = 2000
"""Prototypes up to which copies to a device take longer than their entropies on the host."""
_CHUNK = 65_536  # rows looked at at a time
RARE = 1000  # a class of fewer rows takes part with all of them


@dataclass(frozen=True, eq=False)
class Prototypes:
    """The prototypes of a fit.

    Attributes
    ----------
    Z : array of shape (m, d)
    support : int array of shape (m,)
        Rows of the caller's data that they are; -1 for given rows, empty for the linear kernel.
    selection : Selection or None
        How they were chosen; None for the linear kernel in closed form.
    """

    Z: FloatArray
    support: IntArray
    selection: Selection | None

    def first(self, size: int) -> Prototypes:
        """Return the first ``size`` of them."""
        return Prototypes(self.Z[:size], self.support[:size], self.selection)


def choose_prototypes(rows: Training, settings: FixedSettings, gamma: Any) -> Prototypes:
    """Choose the prototypes [DeBrabanter2010, algorithm 1]."""
    sample: Rows = rows.sample
    X, n = sample.X, rows.n_rows
    size, d = number_of_prototypes(settings.n_prototypes, n), int(X.shape[1])
    most = SPARSE_FEATURES if is_sparse(X) else n
    if settings.choice.name == "linear" and d <= min(n, most):  # the features are the inputs
        return Prototypes(np.eye(d), np.empty(0, dtype=np.intp), None)
    rule = on_host(settings.selection)
    named = isinstance(rule, str) and rule in ("renyi", "random", "uniform")
    listed = isinstance(rule, (list, tuple, np.ndarray))
    if is_sparse(X) and not (named or listed or isinstance(rule, (RenyiEntropy, Uniform))):
        raise InvalidInputError(
            f"selection={rule!r} cannot choose among sparse rows: use 'renyi' or 'random', give "
            "the numbers of rows, or X.toarray()."
        )
    if listed:
        X = (
            X if sample.caller_data is None else sample.caller_data[0]
        )  # indices count rows of weight zero
        wanted = None if isinstance(settings.n_prototypes, str) else size
        among = np.zeros((1, d)) if np.ndim(rule) == 2 else _hashed(X, settings.seed)
        selection = select_prototypes(among, wanted, _at_hand(rule, sample))
    elif n <= size and named and not is_sparse(X):
        selection = _all_rows(X, size, explicit=is_int(settings.n_prototypes))
    else:
        every = not isinstance(rule, str) and not is_sparse(X)
        some = slice(None) if every else _some_rows(sample, size, settings.seed)
        gamma = rows.gamma_scale() if gamma is None else gamma
        with warnings.catch_warnings():
            if not is_int(settings.n_prototypes):
                warnings.simplefilter("ignore", NumericalWarning)  # the size was ours
            selection = select_prototypes(
                _hashed(X[some], settings.seed),
                size,
                rule,
                y=pick(sample.labels, some),
                sample_weight=pick(sample.weight, some),
                kernel=settings.choice.at(gamma),
                engine=rows.backend.device if size > SELECTED_ON_HOST else None,
                random_state=settings.seed,
            )
        if not isinstance(some, slice):
            chosen = selection.indices
            selection = replace(selection, indices=np.where(chosen >= 0, some[chosen], -1))
    support = selection.indices
    if is_sparse(X) and selection.rows is None:
        Z = float_rows(X[support])
    else:
        Z = np.array(selection.prototypes(X), dtype=np.float64)  # the caller's may change
    if sample.positions is not None and X.shape[0] == len(sample.positions):
        support = np.where(support >= 0, sample.positions[support], -1)
    return Prototypes(Z, support, selection)


def _hashed(X: Any, seed: int) -> Any:
    """Return rows to choose from; sparse ones dense, their features hashed to few columns.

    A feature is added to one of `HASHED` columns, with a random sign: distances between rows stay
    about what they are.
    """
    if not is_sparse(X):
        return X
    d, rng = X.shape[1], np.random.default_rng(seed)
    if d <= HASHED:
        return np.asarray(X.toarray(), dtype=np.float64)
    places, signs = rng.integers(HASHED, size=d), rng.choice([-1.0, 1.0], size=d)
    table = csr_array((signs, places, np.arange(d + 1)), shape=(d, HASHED))
    return np.asarray((float_rows(X) @ table).toarray())


def _all_rows(X: Any, size: int, *, explicit: bool) -> Selection:
    _, first = np.unique(X, axis=0, return_index=True)
    if explicit and len(first) < size:
        warnings.warn(
            f"n_prototypes={size} was reduced to {len(first)}: there are no more distinct rows of "
            f"positive weight. Give n_prototypes={len(first)} or less.",
            NumericalWarning,
            stacklevel=4,
        )
    return Selection(first.astype(np.intp))


def _at_hand(rule: Any, sample: Rows) -> Any:
    """Return given row numbers as those of the sample, where rows are read in blocks."""
    if not sample.by_position or sample.positions is None or np.ndim(rule) != 1:
        return rule
    numbers = np.asarray(rule)
    lost = np.setdiff1d(numbers, sample.positions)
    if len(lost):
        raise InvalidInputError(
            f"selection names the rows {lost[:5].tolist()}, which are not among the "
            f"{len(sample.positions)} rows of positive weight that are kept of those read in "
            "blocks: give the prototypes themselves, an array of shape (m, d)."
        )
    return np.searchsorted(sample.positions, numbers)


def _some_rows(sample: Rows, size: int, seed: int) -> Any:
    """Return the rows that prototypes are selected from: all, or some of very many."""
    n, most = sample.n_rows, max(SELECTED_FROM, 20 * size)
    if n <= most:
        return slice(None)
    limit = np.uint64(most / n * 2.0**64)
    blocks = [np.arange(part.start, part.stop) for part in slices(n, _CHUNK)]
    rows = np.concatenate([block[hash_positions(block, seed) < limit] for block in blocks])
    if sample.labels is None:
        return rows
    count = np.bincount(sample.labels[rows], minlength=int(sample.labels.max()) + 1)
    rare = []
    for c in np.flatnonzero(count < RARE):
        members = np.flatnonzero(sample.labels == c)
        rare.append(members[np.argsort(hash_positions(members, seed), kind="stable")[:RARE]])
    return np.unique(np.concatenate([rows, *rare]))
