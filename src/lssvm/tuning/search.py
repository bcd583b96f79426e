"""What all searches share: what is tuned and where, and how a run is recorded and continued.

All evaluations go through a recorder: memory of evaluations, events, checkpoint, record. The
checkpoint is a file of JSON lines: one line of settings, then one line per batch of evaluations (a
path of C at one kernel parameter). Numbers are written in Python's shortest exact form, so a
replayed loss equals the computed one bit for bit. The file is rewritten to a temporary neighbour
and moved over the old one after every batch: at any moment it holds whole batches only.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

from lssvm._core.arrays import AnyArray, FloatArray, IntArray, OnEvent
from lssvm._core.atomic import replacing
from lssvm._core.errors import InvalidInputError, Stopped, not_known, not_usable
from lssvm._core.random import RandomState, as_generator
from lssvm.tuning.objective import Losses, Objective, Point


@dataclass(frozen=True)
class Space:
    """The parameters that are tuned, and their ranges.

    Parameters
    ----------
    C : float or None, default=None
        A fixed value of C; None: C is tuned.
    gamma : float or None, default=None
        A fixed kernel parameter; None where it is tuned or the kernel has none.
    tune_gamma : bool, default=True
        Whether the kernel parameter is tuned.
    gamma_start : float, default=1.0
        Data-driven centre of the search, such as 1 / (d var).
    n_features : int, default=1
        Number of inputs d, by which the chapter's candidate widths are scaled.
    C_range : (float, float), default=(1e-3, 1e6)
        Smallest and largest C.
    gamma_range : (float, float), default=(1e-4, 1e4)
        Smallest and largest kernel parameter, as factors of ``gamma_start``.
    counted_rows : int or None, default=None
        If given, losses are minus a rate p counted over this many rows (an accuracy). In the final
        choice rates within half a standard error, sqrt(p (1 - p) / rows) / 2, of the best one then
        count as equal, and the smooth tie loss decides between them.

    Examples
    --------
    >>> from lssvm.tuning.search import Space
    >>> space = Space(gamma_start=0.5)
    >>> space.tune_C, space.gamma_bounds
    (True, (5e-05, 5000.0))
    """

    C: float | None = None
    gamma: float | None = None
    tune_gamma: bool = True
    gamma_start: float = 1.0
    n_features: int = 1
    C_range: tuple[float, float] = (1e-3, 1e6)
    gamma_range: tuple[float, float] = (1e-4, 1e4)
    counted_rows: int | None = None

    def __post_init__(self) -> None:
        for name in ("C", "gamma", "gamma_start"):
            value = getattr(self, name)
            if value is None and name != "gamma_start":
                continue
            if not (np.isfinite(value) and value > 0):
                raise not_usable(name, value, "give a positive number.")
            object.__setattr__(self, name, float(value))
        for name in ("C_range", "gamma_range"):
            low, high = (float(value) for value in getattr(self, name))
            if not 0 < low < high < np.inf:
                raise InvalidInputError(
                    f"{name}={(low, high)} is not a range: give 0 < smallest < largest."
                )
            object.__setattr__(self, name, (low, high))
        if self.tune_gamma and self.gamma is not None:
            raise InvalidInputError(
                f"gamma={self.gamma} is fixed and tune_gamma is True: give gamma=None to tune it, "
                "or tune_gamma=False to keep it."
            )
        if self.n_features < 1:
            raise not_usable("n_features", self.n_features, "give the number of inputs, >= 1.")

    @property
    def tune_C(self) -> bool:
        """Whether C is tuned."""
        return self.C is None

    @property
    def gamma_bounds(self) -> tuple[float, float]:
        """Smallest and largest kernel parameter."""
        return self.gamma_start * self.gamma_range[0], self.gamma_start * self.gamma_range[1]

    def C_grid(self, n: int) -> FloatArray:
        """Return ``n`` values of C, evenly spaced in log C, or the one that is fixed.

        Parameters
        ----------
        n : int
            How many values.
        """
        if self.C is not None:
            return np.array([self.C])
        return np.geomspace(self.C_range[0], self.C_range[1], n)


@dataclass(frozen=True)
class TuningResult:
    """The result of a search.

    Attributes
    ----------
    C, gamma : float, float or None
        The chosen pair: smallest mean loss, then smallest tie loss, then smallest C, then smallest
        gamma among all evaluations.
    loss : float
        Its mean loss.
    n_evaluations : int
        Number of distinct pairs (C, gamma) evaluated.
    n_points : int
        Number of expensive :meth:`Objective.at` calls the run takes without a checkpoint.
    seconds : float
        Wall time, including that of the runs a checkpoint continues.
    interrupted : bool
        Whether the search was stopped by a KeyboardInterrupt; the pair is the best so far.
    cv_results : dict
        One entry per evaluation, as scikit-learn's searches have it: ``param_C``, ``param_gamma``
        (NaN where the kernel has none), ``params``, ``split{i}_test_score`` = -loss,
        ``mean_test_score``, ``std_test_score``, ``rank_test_score`` (1 is the chosen pair; ties
        are broken as above, so ranks are distinct), and ``mean_tie_score`` = -tie, ``stage`` (of
        the search), ``seconds`` (since the start of the search).
    best_index : int
        Position of the chosen pair in ``cv_results``.
    point : Point or None
        What was factorised at the chosen gamma, where it is still at hand.
    approximate : TuningResult or None
        What the same search chose by an approximate criterion before it evaluated exactly.

    Examples
    --------
    >>> from lssvm import LSSVR
    >>> import numpy as np
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> model = LSSVR("cv", cv=4).fit(X, np.sin(X[:, 0]))
    >>> sorted(model.cv_results_)[:2]
    ['mean_test_score', 'mean_tie_score']
    """

    C: float
    gamma: float | None
    loss: float
    n_evaluations: int
    n_points: int
    seconds: float
    interrupted: bool
    cv_results: dict[str, Any] = field(repr=False)
    best_index: int = 0
    point: Point | None = field(default=None, repr=False, compare=False)
    approximate: TuningResult | None = None

    @property
    def trace(self) -> dict[str, AnyArray]:
        """The best loss so far after every evaluation.

        Arrays of one entry per evaluation: ``n_evaluations`` (1, 2, ...), ``seconds`` since the
        start of the search, ``best_loss``.
        """
        loss = -np.asarray(self.cv_results["mean_test_score"], dtype=np.float64)
        return {
            "n_evaluations": np.arange(1, len(loss) + 1),
            "seconds": np.asarray(self.cv_results["seconds"], dtype=np.float64),
            "best_loss": np.fmin.accumulate(loss),
        }


def chance_band(loss: float, rows: int) -> float:
    """Return half a standard error of minus a rate counted over ``rows``; 0 for other losses."""
    if not -1.0 <= loss <= 0.0:
        return 0.0
    return float(0.5 * np.sqrt(-loss * (1.0 + loss) / rows))


def selection_order(
    mean: FloatArray, tie: FloatArray, C: FloatArray, gamma: FloatArray
) -> IntArray:
    """Return the order of evaluations from best to worst.

    Smallest mean, then smallest tie loss, then smallest C, then smallest gamma; what is not a
    number counts as infinite.
    """

    def worst_if_nan(x: FloatArray) -> FloatArray:
        return np.where(np.isnan(x), np.inf, x)

    return np.lexsort((worst_if_nan(gamma), C, worst_if_nan(tie), worst_if_nan(mean)))


FORMAT = 1
Settings: TypeAlias = dict[str, str | int]


@dataclass(frozen=True)
class Batch:
    """Evaluations made in one call: a path of C at one kernel parameter."""

    stage: str
    gamma: float | None
    C: FloatArray
    losses: Losses
    seconds: float

    def encode(self) -> str:
        """Return the batch as one line of JSON."""
        arrays = {"C": self.C, **vars(self.losses)}
        lists = {name: array.tolist() for name, array in arrays.items()}
        known = {"stage": self.stage, "gamma": self.gamma, "seconds": self.seconds}
        return json.dumps(known | lists)

    @classmethod
    def decode(cls, line: str) -> Batch:
        """Read back what :meth:`encode` wrote."""
        raw: dict[str, Any] = json.loads(line)
        stage, gamma = raw["stage"], raw["gamma"]
        if not isinstance(stage, str) or not (gamma is None or isinstance(gamma, (int, float))):
            raise TypeError("a batch has no stage or no gamma")
        C, fold, weight, tie = (
            np.array(raw[name], dtype=np.float64) for name in ("C", "fold", "weight", "tie")
        )
        losses = Losses(fold, weight, tie)
        if C.shape != tie.shape or not np.all(np.isfinite(C)):
            raise ValueError(f"a batch has values of C of shape {C.shape} for {len(tie)} losses")
        return cls(stage, gamma, C, losses, float(raw["seconds"]))


class Checkpoint:
    """The evaluations of one search, in memory and in a file.

    Attributes
    ----------
    settings : dict
        The settings in force, adopted ones included.
    seconds : float
        Wall time recorded so far.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: Mapping[str, str | int],
        adopt: tuple[str, ...] = (),
    ) -> None:
        self.path = Path(path)
        self.settings: Settings = {"format": FORMAT, **settings}
        self.seconds = 0.0
        self._batches: dict[tuple[float | None, bytes], Batch] = {}
        self._lines: list[str] = []
        if not self.path.parent.is_dir():
            raise InvalidInputError(
                f"checkpoint={os.fspath(path)!r} cannot be written: make the folder "
                f"{os.fspath(self.path.parent)!r} first."
            )
        if len(os.fsencode(self.path.name)) > 255:
            raise InvalidInputError(
                f"The name of checkpoint={os.fspath(path)!r} is too long: give a shorter one."
            )
        if self.path.is_dir():
            raise InvalidInputError(
                f"checkpoint={os.fspath(path)!r} is a folder: give the name of a file in it."
            )
        if self.path.exists():
            self._load(adopt)
        else:
            self._write()

    def find(self, gamma: float | None, C: FloatArray) -> Batch | None:
        """Return the recorded batch of exactly these pairs, or None."""
        return self._batches.get((gamma, C.tobytes()))

    def append(self, batch: Batch) -> None:
        """Keep a batch, on disk when this returns."""
        self._keep(batch, batch.encode())
        self._write()

    def _keep(self, batch: Batch, line: str) -> None:
        self._batches[batch.gamma, batch.C.tobytes()] = batch
        self._lines.append(line)
        self.seconds = max(self.seconds, batch.seconds)

    def _load(self, adopt: tuple[str, ...]) -> None:
        try:
            header, *lines = self.path.read_text(encoding="utf-8").splitlines()
            stored: Settings = dict(json.loads(header))
            if "format" not in stored:
                raise ValueError("its first line has no format")
            batches = [Batch.decode(line) for line in lines]
        except OSError as error:
            raise InvalidInputError(
                f"checkpoint={os.fspath(self.path)!r} cannot be read ({error.strerror}): give "
                "another path, or allow yourself to read it."
            ) from error
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise InvalidInputError(
                f"checkpoint={os.fspath(self.path)!r} is not a checkpoint of a search ({error}): "
                "give another path, or delete the file to start again."
            ) from error
        self.settings.update({name: stored[name] for name in adopt if name in stored})
        differences = [
            f"{name}: {stored.get(name)!r} in the file, {self.settings.get(name)!r} now"
            for name in sorted({*stored, *self.settings})
            if stored.get(name) != self.settings.get(name)
        ]
        if differences:
            raise InvalidInputError(
                f"checkpoint={os.fspath(self.path)!r} belongs to a search with other settings "
                f"({'; '.join(differences)}): give another path, restore the settings, or delete "
                "the file."
            )
        for batch, line in zip(batches, lines, strict=True):
            self._keep(batch, line)

    def _write(self) -> None:
        text = "\n".join([json.dumps(self.settings), *self._lines]) + "\n"
        with replacing(self.path, private=True) as name, open(name, "w", encoding="utf-8") as file:
            file.write(text)


@dataclass(frozen=True)
class Evaluation:
    """One evaluated pair."""

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
        # None: the point was needed, but all its losses came from the checkpoint.
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
        """Return the losses of a path of C at one kernel parameter."""
        gamma = None if gamma is None else float(gamma)
        pairs = [(gamma, value) for value in np.asarray(C, dtype=np.float64).tolist()]
        new = dict.fromkeys(pair[1] for pair in pairs if pair not in self._position)
        if new:
            self._add(stage, gamma, np.array([*new]))
        rows = [self._evaluations[self._position[pair]] for pair in pairs]
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
            self._send("interrupted" if interrupted else "done")
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
        self._send(stage)

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

    def _send(self, stage: str) -> None:
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
        if (
            self._counted_rows is not None
        ):  # rates that do not differ from the best one by chance equal it
            tied = np.where(mean <= best + chance_band(best, self._counted_rows), best, mean)
        rank = np.empty(len(rows), dtype=np.int32)
        rank[selection_order(tied, tie, C, gamma)] = np.arange(1, len(rows) + 1)
        both = [{"C": row.C, "gamma": row.gamma} for row in rows]
        params = [{k: v for k, v in pair.items() if v is not None} for pair in both]
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


@dataclass(frozen=True, kw_only=True)
class Search(ABC):
    """A rule that decides which pairs (C, gamma) are evaluated.

    A search is a frozen dataclass of its settings and implements :meth:`_search`; everything else
    (memory of what was evaluated, events, checkpoint, interruption, record) is shared.

    Parameters
    ----------
    checkpoint : str, path-like or None, default=None
        File that keeps every evaluation. Where it exists, its evaluations are replayed instead of
        computed, and the answer is that of a run that was never stopped, bit for bit; a run with
        ``random_state=None`` takes the seed of the file.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does: it ends the fit with a KeyboardInterrupt, as in any library, or the search
        with the best pair so far.
    per_output : bool, default=False
        Whether every output, or binary problem of a code, is searched by itself and has its own
        pair (eq. (3.13) of [Suykens2002]_, section 8 of [DeBrabanter2010]_), by its own error or,
        with ``scoring="neg_mean_squared_error"``, by the squared error of its targets.

    Examples
    --------
    >>> from lssvm.tuning import GridSearch, PathSearch, Search
    >>> issubclass(PathSearch, Search) and issubclass(GridSearch, Search)
    True
    """

    checkpoint: str | os.PathLike[str] | None = field(default=None, repr=False, compare=False)
    on_interrupt: str = field(default="raise", repr=False, compare=False)
    per_output: bool = field(default=False, repr=False)
    name: ClassVar[str] = ""
    """The string that stands for the search with its default settings; empty: there is none."""
    stochastic: ClassVar[bool] = False
    """Whether the search draws random numbers."""

    def run(
        self,
        objective: Objective,
        space: Space,
        *,
        random_state: RandomState = None,
        on_event: OnEvent | None = None,
        fingerprint: str = "",
        resume: bool = True,
    ) -> TuningResult:
        """Search for the best pair.

        Who listens to the search may stop it (`lssvm._core.errors.Stopped`), and so may Ctrl-C with
        ``on_interrupt="keep"``: the best pair so far is the answer then, unless nothing was
        evaluated yet.

        Parameters
        ----------
        objective : Objective
            What is minimised.
        space : Space
            The parameters that are tuned, and their ranges.
        random_state : int, Generator, RandomState or None, default=None
            Seed of the annealing; the other searches draw nothing.
        on_event : callable or None, default=None
            Called with a dict after every batch of evaluations, see
            :class:`~lssvm.tuning.search.Recorder`.
        fingerprint : str, default=""
            Whatever else the losses depend on (data, kernel, folds, scoring). A checkpoint with
            another fingerprint, search, space or seed is refused.
        resume : bool, default=True
            Whether the checkpoint is used; not where a fit searches a second time.

        Returns
        -------
        TuningResult
        """
        if self.on_interrupt not in ("raise", "keep"):
            raise not_known("on_interrupt", self.on_interrupt, "choose 'raise' or 'keep'.")
        seed = int(as_generator(random_state).integers(2**63 - 1)) if self.stochastic else 0
        store = None
        if self.checkpoint is not None and resume:
            settings: dict[str, str | int] = {
                "search": repr(self),
                "space": repr(space),
                "fingerprint": fingerprint,
                "seed": seed,
            }
            store = Checkpoint(self.checkpoint, settings, ("seed",) if random_state is None else ())
            seed = int(store.settings["seed"])
        record = Recorder(
            objective, on_event=on_event, checkpoint=store, counted_rows=space.counted_rows
        )
        interrupted = False
        try:
            self._search(record, space, np.random.default_rng(seed))
        except (KeyboardInterrupt, Stopped) as error:
            kept = isinstance(error, Stopped) or self.on_interrupt == "keep"
            if not record.has_finite or not kept:
                raise
            interrupted = True
        return record.result(interrupted=interrupted)

    @abstractmethod
    def _search(self, record: Recorder, space: Space, rng: np.random.Generator) -> None:
        """Ask ``record`` for evaluations until satisfied."""


def whole(*values: object) -> bool:
    """Say whether all of some settings are whole numbers."""
    return all(hasattr(value, "__index__") for value in values)


def zoom(values: FloatArray, best: int, n: int) -> FloatArray:
    """Return a finer set around one element of an increasing set."""
    centre = values[best]
    left = values[best - 1] if best > 0 else centre**2 / values[best + 1]
    right = values[best + 1] if best + 1 < len(values) else centre**2 / values[best - 1]
    below = np.geomspace(left, centre, n + 2)[1:-1]
    above = np.geomspace(centre, right, n + 2)[1:-1]
    return np.concatenate([below, [centre], above])
