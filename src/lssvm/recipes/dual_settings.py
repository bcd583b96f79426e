"""What a dual fit is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from lssvm._core.errors import InvalidInputError
from lssvm.recipes.robust import check_loss
from lssvm.recipes.settings import KernelChoice, check_C, check_option, seed_of
from lssvm.reductions import L0, Prune
from lssvm.search.base import Search
from lssvm.search.choice import make_search


class DualParameters(Protocol):
    """The parameters of a dual estimator that settings are read from."""

    C: Any
    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    fit_intercept: bool
    solver: Any
    reduction: Any
    cv: Any
    search: Any
    scoring: Any
    tuning: str
    tol: float
    max_iter: int | None
    random_state: Any


@dataclass(frozen=True, eq=False)
class DualSettings:
    """The settings of a dual model, checked.

    Attributes
    ----------
    C : float or None
        None: to be chosen.
    choice : KernelChoice
    cv : int, float, "loo", splitter or iterable
    search : Search
    scoring : str, callable or None
    seed : int
    fit_intercept : bool
    solver : str or solver object
    reduction : Prune, L0 or None
    reduction_text : str or None
        The reduction as the caller wrote it.
    loss : str
        What the coefficients minimise.
    separate : bool
        Whether each output has its own C and gamma.
    tol, max_iter
        Of the iterative solvers.
    """

    C: float | None
    choice: KernelChoice
    cv: Any
    search: Search
    scoring: Any
    seed: int
    fit_intercept: bool = True
    solver: Any = "auto"
    reduction: Prune | L0 | None = None
    reduction_text: str | None = None
    loss: str = "squared"
    separate: bool = False
    tol: float = 1e-6
    max_iter: int | None = None

    @classmethod
    def of(cls, estimator: DualParameters) -> DualSettings:
        """Read and check the parameters of an estimator."""
        loss, given = getattr(estimator, "loss", "squared"), estimator.reduction
        check_loss(loss, given)
        check_option("tuning", estimator.tuning, ("joint", "separate"))
        choice = KernelChoice(estimator.kernel, estimator.gamma, estimator.degree, estimator.coef0)
        choice.check()
        if choice.asks_ard and estimator.tuning != "joint":
            raise InvalidInputError(
                f"gamma='ard' finds one set of values for all outputs, so "
                f"tuning={estimator.tuning!r} cannot be used with it: use tuning='joint'."
            )
        search = make_search(estimator.search)
        if search.checkpoint is not None and estimator.tuning != "joint":
            raise InvalidInputError(
                "A checkpoint holds one search, and tuning='separate' has one for each output: use "
                "tuning='joint', or no checkpoint."
            )
        return cls(
            check_C(estimator.C),
            choice,
            estimator.cv,
            search,
            estimator.scoring,
            seed_of(estimator.random_state),
            bool(estimator.fit_intercept),
            estimator.solver,
            _reduction(given),
            None if given is None else repr(given),
            loss,
            estimator.tuning == "separate",
            estimator.tol,
            estimator.max_iter,
        )

    @property
    def tunes(self) -> bool:
        """Whether anything is tuned."""
        return self.C is None or self.choice.tunes_gamma

    @property
    def needs_folds(self) -> bool:
        """Whether leave-one-out predictions could not stand in for those of the folds.

        The folds of a splitter may keep groups together; a precomputed matrix is not kept to leave
        rows out later.
        """
        return self.choice.precomputed or not (hasattr(self.cv, "__index__") or self.cv == "loo")


def _reduction(given: Any) -> Prune | L0 | None:
    known: dict[str, Prune | L0] = {"prune": Prune(), "l0": L0()}
    reduction = known.get(given) if isinstance(given, str) else given
    if given is not None and not isinstance(reduction, (Prune, L0)):
        raise InvalidInputError(
            f"reduction={given!r} is not known: choose None, 'prune', 'l0', or an instance of "
            "lssvm.reductions.Prune or lssvm.reductions.L0."
        )
    return reduction
