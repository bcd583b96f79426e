"""What a dual fit is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from lssvm._core.errors import InvalidInputError
from lssvm.recipes.robust import check_loss
from lssvm.recipes.settings import TunedParameters, TunedSettings, check_option
from lssvm.reductions import L0, Prune


class DualParameters(TunedParameters, Protocol):
    """The parameters of a dual estimator that settings are read from."""

    fit_intercept: bool
    tuning: str
    tol: float
    max_iter: int | None


@dataclass(frozen=True, eq=False, kw_only=True)
class DualSettings(TunedSettings):
    """The settings of a dual model, checked.

    Attributes
    ----------
    fit_intercept : bool
    reduction : Prune, L0 or None
    reduction_text : str or None
        The reduction as the caller wrote it.
    separate : bool
        Whether each output has its own C and gamma.
    tol, max_iter
        Of the iterative solvers.
    """

    fit_intercept: bool = True
    reduction: Prune | L0 | None = None
    reduction_text: str | None = None
    separate: bool = False
    tol: float = 1e-6
    max_iter: int | None = None

    @classmethod
    def of(cls, estimator: DualParameters) -> DualSettings:
        """Read and check the parameters of an estimator."""
        given = estimator.reduction
        check_loss(getattr(estimator, "loss", "squared"), given)
        check_option("tuning", estimator.tuning, ("joint", "separate"))
        ask = cls(
            **cls.read(estimator),
            fit_intercept=bool(estimator.fit_intercept),
            reduction=_reduction(given),
            reduction_text=None if given is None else repr(given),
            separate=estimator.tuning == "separate",
            tol=estimator.tol,
            max_iter=estimator.max_iter,
        )
        ask.choice.check()
        if ask.choice.asks_ard and ask.separate:
            raise InvalidInputError(
                "gamma='ard' finds one set of values for all outputs, so tuning='separate' cannot "
                "be used with it: use tuning='joint'."
            )
        if ask.search.checkpoint is not None and ask.separate:
            raise InvalidInputError(
                "A checkpoint holds one search, and tuning='separate' has one for each output: use "
                "tuning='joint', or no checkpoint."
            )
        return ask

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
