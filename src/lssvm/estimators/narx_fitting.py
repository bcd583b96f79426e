"""How `NARX` tunes: the stretches that are held out, and the models that have not seen them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from lssvm._core.errors import InvalidInputError
from lssvm._core.memory import as_bytes
from lssvm._core.threads import n_threads, small_problem
from lssvm.criteria.dual import C_range
from lssvm.criteria.free_running import FreeRunObjective, Models, Stretch
from lssvm.estimators._validation import check_C
from lssvm.estimators.dual_regressor import LSSVR
from lssvm.estimators.narx_series import FloatArray, Layout, Series
from lssvm.kernels import has_gamma, resolve_gamma
from lssvm.search.choice import make_search
from lssvm.search.path import PathSearch
from lssvm.search.space import Space, TuningResult
from lssvm.solvers import DualSystem

LONGEST = 100  # default horizon


def check_number(name: str, value: Any, smallest: int) -> None:
    """Raise where ``value`` is no whole number of at least ``smallest``."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < smallest:
        raise InvalidInputError(
            f"{name}={value!r} is not usable: give a whole number >= {smallest}."
        )


@dataclass(frozen=True)
class Plan:
    """The training rows of all series, one series after the other, and how they are held out."""

    rows: FloatArray  # (n, p)
    targets: FloatArray  # (n,)
    sizes: list[int]  # rows of each series
    layout: Layout
    horizon: int
    n_origins: int
    rolling: bool

    @classmethod
    def of(
        cls, series: list[Series], layout: Layout, horizon: int | None, n: int, rolling: bool
    ) -> Plan:
        """Make the table of rows; without a horizon choose one."""
        tables = [layout.table(s) for s in series]
        rows = np.concatenate([table for table, _ in tables])
        targets = np.concatenate([target for _, target in tables])
        sizes = [len(target) for _, target in tables]
        steps = min(LONGEST, max(1, max(sizes) // 5)) if horizon is None else int(horizon)
        return cls(rows, targets, sizes, layout, steps, n, rolling)

    def places(self) -> list[tuple[slice, int]]:
        """Return the rows of each stretch, and where what it leaves out ends.

        Origins are spread evenly over all places where a stretch fits; in rolling-origin
        validation over the second half of each series.
        """
        steps, starts = self.horizon, np.cumsum([0, *self.sizes])
        # Rows whose lags reach into a stretch know it; they go too, while half of all rows remain.
        purge = min(self.layout.lags, max(0, len(self.targets) // 2 - steps))
        possible = [
            (slice(int(start + origin), int(start + origin + steps)), int(start + end))
            for start, size in zip(starts, self.sizes, strict=False)
            for origin in range(size // 2 if self.rolling else 0, size - steps + 1)
            for end in [size if self.rolling else min(size, origin + steps + purge)]
            if len(self.targets) - (end - origin) >= 2
        ]
        if not possible:
            raise InvalidInputError(
                f"horizon={steps} is too long to be validated: the longest series has "
                f"{max(self.sizes)} rows after its lags, and some must be left for training. Give "
                "a smaller horizon, fewer lags, or a longer series."
            )
        chosen = np.linspace(0, len(possible) - 1, self.n_origins).round().astype(int)
        return [possible[i] for i in np.unique(chosen)]

    def stretches(self) -> list[Stretch]:
        """Return the stretches that are held out."""
        lags = self.layout.lags
        return [
            Stretch(
                self.rows[place.start, :lags],
                self.targets[place],
                np.arange(place.start, end),
                self.rows[place, lags:] if self.rows.shape[1] > lags else None,
            )
            for place, end in self.places()
        ]

    def objective(self, estimator: LSSVR, gamma: Any) -> FreeRunObjective:
        """Return the free-run loss of a dual model; a ``gamma`` of None is left open."""
        return FreeRunObjective(
            lambda value: estimator._kernel_at(value if gamma is None else gamma),
            self.rows,
            self.targets,
            self.stretches(),
            self.layout.differencing,
            as_bytes(estimator.memory_budget),
            n_threads(estimator.n_jobs),
            bool(estimator.fit_intercept),
        )


def wants_tuning(estimator: Any) -> bool:
    """Say whether the estimator is a dual model that leaves C or gamma open.

    One gamma per feature is found by the model itself.
    """
    if not isinstance(estimator, LSSVR) or estimator._asks_relevance():
        return False
    return check_C(estimator.C) is None or _tunes_gamma(estimator)


def _tunes_gamma(estimator: LSSVR) -> bool:
    asked = isinstance(estimator.gamma, str) and estimator.gamma == "cv"
    return asked and has_gamma(estimator.kernel)


def fit_tuned(
    estimator: LSSVR, plan: Plan, search: Any, seed: int, on_event: Any = None
) -> tuple[LSSVR, TuningResult]:
    """Choose C and gamma by free runs, then fit with all rows."""
    if estimator._precomputed():
        raise InvalidInputError(
            "NARX cannot tune kernel='precomputed': the rows of a free run are made on the way. "
            "Name a kernel such as 'rbf'."
        )
    tunes_gamma = _tunes_gamma(estimator)
    gamma = None
    if not tunes_gamma and has_gamma(estimator.kernel):
        gamma = resolve_gamma(estimator.gamma, plan.rows)
    system = DualSystem(estimator._kernel_at(gamma), plan.rows, plan.rows, 1.0)
    space = Space(
        C=check_C(estimator.C),
        tune_gamma=tunes_gamma,
        gamma_start=float(resolve_gamma("scale", plan.rows)) if tunes_gamma else 1.0,
        n_features=plan.rows.shape[1],
        C_range=C_range(system),
    )
    rule = PathSearch(n_C=13) if search is None else make_search(search)
    with small_problem(len(plan.rows)):
        result = rule.run(
            plan.objective(estimator, gamma), space, random_state=seed, on_event=on_event
        )
    estimator.set_params(C=result.C)
    if tunes_gamma:
        estimator.set_params(gamma=result.gamma)
    return estimator.fit(plan.rows, plan.targets), result


def predictor(estimator: Any) -> Models:
    """Return a fitted regressor as models that predict side by side."""
    return Separate([estimator])


@dataclass(frozen=True)
class Separate:
    """Fitted regressors, one for each model; a single one serves all."""

    estimators: Sequence[Any]

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Predict ``rows`` (m, p, d), those of each of the m models, and return (m, p)."""
        if len(self.estimators) == 1:
            flat = self.estimators[0].predict(rows.reshape(-1, rows.shape[2]))
            return np.asarray(flat, dtype=float).reshape(rows.shape[:2])
        pairs = zip(self.estimators, rows, strict=True)
        return np.stack([np.asarray(e.predict(part), dtype=float).ravel() for e, part in pairs])


def held_out_models(estimator: Any, plan: Plan) -> Models:
    """Return one model for each stretch, trained without what the stretch leaves out.

    One eigendecomposition for a dual model that solves its linear system and no more; a refit for
    each stretch otherwise.
    """
    plain = type(estimator) is LSSVR and estimator.reduction is None
    if plain and getattr(estimator, "loss", "squared") == "squared":
        gamma = estimator.gamma_ if has_gamma(estimator.kernel) else None
        point = plan.objective(estimator, gamma).at(gamma)
        return point.models(np.array([estimator.C_]))
    refits = []
    for stretch in plan.stretches():
        kept = np.setdiff1d(np.arange(len(plan.targets)), stretch.left_out)
        refits.append(clone(estimator).fit(plan.rows[kept], plan.targets[kept]))
    return Separate(refits)
