"""The one place where a search evaluates: memory of what was asked, events, checkpoint, record."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, OnEvent
from lssvm._core.errors import InvalidInputError, Stopped
from lssvm.criteria.base import Losses, Objective, Point
from lssvm.search.checkpoint import Batch, Checkpoint
from lssvm.search.space import TuningResult, chance_band, selection_order


@dataclass(frozen=True)
class Evaluation:
    """One evaluated pair.

    Parameters
    ----------
    C, gamma : float, float or None
        The pair.
    fold : ndarray of shape (v,)
        Loss on each fold.
    mean, std, tie : float
        Summary over the folds and the tie loss.
    stage : str
        The stage of the search that asked.
    seconds : float
        Wall time since the start of the search.
    """

    C: float
    gamma: float | None
    fold: FloatArray
    mean: float
    std: float
    tie: float
    stage: str
    seconds: float

    @property
    def key(self) -> tuple[float, ...]:
        """What evaluations are compared by, smallest is best."""
        gamma = 0.0 if self.gamma is None else self.gamma
        return (*(np.inf if np.isnan(x) else x for x in (self.mean, self.tie)), self.C, gamma)


class Recorder:
    """Evaluate pairs for a search and keep the record of it.

    Each distinct pair is evaluated once: a repeated one is answered from the record, and one that
    the checkpoint holds is replayed. Of the expensive points only the latest and the best one are
    kept alive, so memory is that of two points.

    Parameters
    ----------
    objective : Objective
        What is minimised.
    on_event : callable or None, default=None
        Called with a dict after every batch: ``stage``, ``n_evaluations``, ``planned`` (an upper
        estimate), ``n_points``, ``best_loss``, ``best_C``, ``best_gamma``, ``elapsed``. It may
        raise `Stopped` to end the search.
    checkpoint : Checkpoint or None, default=None
        Where evaluations are kept between runs.
    counted_rows : int or None, default=None
        As in `Space`.

    Attributes
    ----------
    planned : int
        Number of evaluations the search expects to make; set by the search.
    n_points : int
        Number of points needed so far.
    objective : Objective
        What is minimised from here on; set by a search that replaces it by an approximation.
    approximate : TuningResult or None
        What a search on an approximate objective found before; set by the search.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from lssvm.tuning import Losses
    >>> from lssvm.search.recorder import Recorder
    >>> point = SimpleNamespace(losses=lambda C: Losses((C - 2)[:, None] ** 2, np.ones(1), 0 * C))
    >>> record = Recorder(SimpleNamespace(at=lambda gamma: point))
    >>> record.evaluate("grid", None, np.array([1.0, 2.0])).mean
    array([1., 0.])
    >>> record.best.C, record.n_points
    (2.0, 1)
    """

    def __init__(
        self,
        objective: Objective,
        *,
        on_event: OnEvent | None = None,
        checkpoint: Checkpoint | None = None,
        counted_rows: int | None = None,
    ) -> None:
        self.planned = 0
        self._counted_rows = counted_rows
        self.n_points = 0
        self.objective = objective
        self.approximate: TuningResult | None = None
        self.on_event = on_event
        self._checkpoint = checkpoint
        self._evaluations: list[Evaluation] = []
        self._weight: FloatArray = np.ones(0)
        self._position: dict[tuple[float | None, float], int] = {}
        self._best = -1
        # None: the point was needed, but everything asked of it came from the checkpoint.
        self._points: dict[float | None, Point | None] = {}
        self._before = checkpoint.seconds if checkpoint is not None else 0.0
        self._start = time.perf_counter()

    @property
    def n_evaluations(self) -> int:
        """Number of distinct pairs evaluated."""
        return len(self._evaluations)

    @property
    def best(self) -> Evaluation:
        """The best evaluation so far."""
        return self._evaluations[self._best]

    @property
    def has_finite(self) -> bool:
        """Whether there is an evaluation with a finite loss."""
        return bool(self._evaluations) and bool(np.isfinite(self.best.mean))

    @property
    def elapsed(self) -> float:
        """Wall time since the start of the search, that of continued runs included."""
        return self._before + time.perf_counter() - self._start

    def evaluate(self, stage: str, gamma: float | None, C: FloatArray) -> Losses:
        """Return the losses of a path of C at one kernel parameter.

        Parameters
        ----------
        stage : str
            Name under which new evaluations are recorded.
        gamma : float or None
            The kernel parameter.
        C : ndarray of shape (c,)
            The values of C.

        Returns
        -------
        Losses
        """
        gamma = None if gamma is None else float(gamma)
        asked = [(gamma, value) for value in np.asarray(C, dtype=np.float64).tolist()]
        new = dict.fromkeys(pair[1] for pair in asked if pair not in self._position)
        if new:
            self._add(stage, gamma, np.array([*new]))
        rows = [self._evaluations[self._position[pair]] for pair in asked]
        fold, tie = np.stack([row.fold for row in rows]), np.array([row.tie for row in rows])
        return Losses(fold, self._weight, tie)

    def leave_checkpoint(self) -> None:
        """Keep what is evaluated from here on out of the checkpoint: it is of another kind."""
        self._checkpoint = None

    def result(self, *, interrupted: bool) -> TuningResult:
        """Return the record; raise where no loss is finite."""
        if not self.has_finite:
            raise InvalidInputError(
                f"None of the {self.n_evaluations} evaluated pairs of C and gamma has a finite "
                "loss: check the data and the scoring, or give other ranges of C and gamma."
            )
        cv_results = self._cv_results()
        self._best = int(np.argmin(cv_results["rank_test_score"]))
        self.planned = self.n_evaluations
        with contextlib.suppress(KeyboardInterrupt, Stopped):  # the result is not lost
            self._tell("interrupted" if interrupted else "done")
        best = self.best
        return TuningResult(
            C=best.C,
            gamma=best.gamma,
            loss=best.mean,
            n_evaluations=self.n_evaluations,
            n_points=self.n_points,
            seconds=self.elapsed,
            interrupted=interrupted,
            cv_results=cv_results,
            best_index=self._best,
            point=self._points.get(best.gamma),
            approximate=self.approximate,
        )

    def _add(self, stage: str, gamma: float | None, C: FloatArray) -> None:
        if gamma not in self._points:  # of the others the best one so far stays
            kept = {self.best.gamma} if self._evaluations else set()
            self._points = {key: point for key, point in self._points.items() if key in kept}
            self._points[gamma] = None
            self.n_points += 1
        store = self._checkpoint
        recorded = None if store is None else store.find(gamma, C)
        batch = recorded or Batch(stage, gamma, C, self._compute(gamma, C), self.elapsed)
        self._keep(batch)
        if store is not None and recorded is None:
            store.append(batch)
        self._tell(stage)

    def _compute(self, gamma: float | None, C: FloatArray) -> Losses:
        point = self._points[gamma]
        if point is None:
            point = self._points[gamma] = self.objective.at(gamma)
        losses = point.losses(C)
        known = self._weight.size or losses.weight.size
        if losses.tie.shape != C.shape or losses.weight.size != known:
            raise InvalidInputError(
                f"The objective gave losses of shape {losses.fold.shape} for {C.size} values of C; "
                f"a search needs {(C.size, known)} at every kernel parameter."
            )
        return losses

    def _keep(self, batch: Batch) -> None:
        losses, gamma = batch.losses, batch.gamma
        self._weight = losses.weight
        numbers = (values.tolist() for values in (losses.mean, losses.std, losses.tie))
        rows = zip(batch.C.tolist(), losses.fold.copy(), *numbers, strict=True)
        for C, fold, mean, std, tie in rows:
            evaluation = Evaluation(C, gamma, fold, mean, std, tie, batch.stage, batch.seconds)
            self._evaluations.append(evaluation)
            self._position[gamma, C] = len(self._evaluations) - 1
            if self._best < 0 or self._evaluations[-1].key < self.best.key:
                self._best = len(self._evaluations) - 1

    def _tell(self, stage: str) -> None:
        event = {
            "stage": stage,
            "n_evaluations": self.n_evaluations,
            "planned": max(self.planned, self.n_evaluations),
            "n_points": self.n_points,
            "best_loss": self.best.mean,
            "best_C": self.best.C,
            "best_gamma": self.best.gamma,
            "elapsed": self.elapsed,
        }
        if self.on_event is not None:
            self.on_event(event)

    def _cv_results(self) -> dict[str, Any]:
        rows = self._evaluations
        fold = np.stack([row.fold for row in rows])  # (n, v)
        mean, std, tie, C, seconds = np.array(
            [(row.mean, row.std, row.tie, row.C, row.seconds) for row in rows]
        ).T
        gamma = np.array([np.nan if row.gamma is None else row.gamma for row in rows])
        tied, best = mean, float(np.nanmin(mean))
        if self._counted_rows is not None:  # rates that cannot be told from the best one equal it
            tied = np.where(mean <= best + chance_band(best, self._counted_rows), best, mean)
        rank = np.empty(len(rows), dtype=np.int32)
        rank[selection_order(tied, tie, C, gamma)] = np.arange(1, len(rows) + 1)
        params = [
            {"C": row.C} if row.gamma is None else {"C": row.C, "gamma": row.gamma} for row in rows
        ]
        return {
            "params": params,
            "param_C": C,
            "param_gamma": gamma,
            **{f"split{i}_test_score": -fold[:, i] for i in range(fold.shape[1])},
            "mean_test_score": -mean,
            "std_test_score": std,
            "rank_test_score": rank,
            "mean_tie_score": -tie,
            "stage": np.array([row.stage for row in rows]),
            "seconds": seconds,
        }
