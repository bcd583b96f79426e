"""What a greedy fit is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lssvm._core.arrays import BoolArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.fitting.settings import KernelChoice, KernelParameters, check_C, seed_of
from lssvm.greedy import Greedy


class GreedyParameters(KernelParameters, Protocol):
    """The parameters of a greedy estimator that settings are read from."""

    fit_intercept: bool
    epsilon: float
    criterion: str
    candidates: int | None
    prefit: bool
    max_support: int | None
    validation_fraction: float | None
    cv: Any


@dataclass(frozen=True, eq=False)
class GreedySettings:
    """The settings of a greedy model, checked.

    Attributes
    ----------
    C : float or None
        None: to be chosen by leave-one-out.
    choice : KernelChoice
    search : Greedy
        How bases grow, and when they stop.
    validation_fraction : float or None
        Part of the rows that the size is judged by.
    fit_intercept : bool
    seed : int
    calibrates : bool
        Whether leave-one-out outputs are kept, for probabilities.
    cv : int, "loo", splitter or iterable
        Folds that gamma is tuned on, and, of groups, C and probabilities.
    """

    C: float | None
    choice: KernelChoice
    search: Greedy
    validation_fraction: float | None
    fit_intercept: bool
    seed: int
    calibrates: bool
    cv: Any = 10

    @classmethod
    def of(cls, estimator: GreedyParameters) -> GreedySettings:
        """Read and check the parameters of an estimator."""
        choice = KernelChoice.of(estimator)
        unknown = isinstance(choice.gamma, str) and choice.gamma not in ("scale", "auto", "cv")
        if choice.asks_ard or (unknown and choice.has_gamma):
            raise InvalidInputError(
                f"gamma={choice.gamma!r} is not available here: give a number, 'scale', 'auto', "
                "'cv' or an array with one value per feature."
            )
        choice.check()
        growth = (estimator.epsilon, estimator.criterion, estimator.candidates)
        return cls(
            check_C(estimator.C),
            choice,
            Greedy(*growth, bool(estimator.prefit), estimator.max_support),
            estimator.validation_fraction,
            bool(estimator.fit_intercept),
            seed_of(estimator.random_state),
            getattr(estimator, "calibration", None) is not None,
            estimator.cv,
        )

    def check_labels(self) -> None:
        """Refuse an epsilon that a model without basis functions satisfies for labels +1, -1."""
        epsilon = self.search.epsilon
        number = isinstance(epsilon, (int, float, np.number))
        if self.search.criterion == "fsals" and number and epsilon >= 1:
            raise InvalidInputError(
                f"epsilon={epsilon!r} is not usable: a model without any basis function is "
                "within 1 of the labels +1 and -1, so give a number below 1 (0.5 is usual)."
            )

    @property
    def splits(self) -> bool:
        """Whether the caller has said which rows make a fold."""
        return not isinstance(self.cv, str) and (
            hasattr(self.cv, "split") or hasattr(self.cv, "__iter__")
        )

    def held_out(
        self, n: int, rng: np.random.Generator, groups: IntArray | None = None
    ) -> BoolArray | None:
        """Draw the rows on which the size is judged; rows stand in an order of their content.

        With groups, numbered from 0, whole ones: as many as hold about the share.
        """
        share = self.validation_fraction
        if share is None:
            return None
        if not isinstance(share, (int, float, np.number)) or not 0 < share < 1:
            raise InvalidInputError(
                f"validation_fraction={share!r} is not usable: give a number between 0 and 1, or "
                "None to use every row."
            )
        many = round(float(share) * n)
        if not 0 < many < n:
            raise InvalidInputError(
                f"validation_fraction={share!r} of {n} distinct rows leaves none to learn from or "
                "none to judge by: give more rows, or None."
            )
        if groups is None:
            held = np.zeros(n, dtype=bool)
            held[rng.permutation(n)[:many]] = True
            return held
        sizes = np.bincount(groups)
        if len(sizes) < 2:
            raise InvalidInputError(
                f"validation_fraction={share!r} needs at least 2 groups, one of them to judge by, "
                "but there is 1: give more groups, or None."
            )
        order = rng.permutation(len(sizes))
        enough = int(np.searchsorted(np.cumsum(sizes[order]), many)) + 1
        return np.isin(groups, order[: min(enough, len(sizes) - 1)])
