r"""Intervals of forecasts: simulated free runs, calibrated on stretches held out.

1. Models that have not seen a stretch predict it one step at a time: what is left over are
   residuals of the size that new data have.
2. Paths are simulated: every step of a free run adds the residual of one of the `NEIGHBOURS` rows
   nearest to the current one, drawn at random, so that noise is large where the series is hard to
   predict. The spread of the paths around the free run without noise, a root mean square
   :math:`s_h` at step h, says how uncertain this forecast is compared with others.
3. The same simulation is made on every stretch, by the model that has not seen it and without the
   residuals it leaves out. With the mean spread :math:`m_h` of all stretches the unit of error is
   :math:`u_h = \sqrt{s_h m_h}`: simulation cannot foresee everything, so its word counts half.
4. The interval at step h is the free run plus or minus :math:`k_h u_h`, where :math:`k_h` is the
   split-conformal quantile of the ratios of true error to unit at the steps around h of all
   stretches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.threads import slices
from lssvm.criteria.free_running import RUNAWAY, Models, Noise, free_run, level_errors, stack_exog
from lssvm.recipes.series_data import Plan

NEIGHBOURS = 5
WINDOW = 0.1  # ratios are pooled over this part of the horizon on either side of a step
_CHUNK = 4_000_000  # numbers in the largest temporary


@dataclass(frozen=True, eq=False)
class SeriesResiduals:
    """Out-of-sample one-step residuals, and the rows they belong to."""

    rows: FloatArray  # (k, d)
    values: FloatArray  # (k,)
    index: IntArray  # (k,), places among the training rows

    def noise(self, seed: list[int], left_out: list[IntArray] | None = None) -> Noise:
        """Return a function that draws the residual of a near row, see `free_run`.

        ``left_out`` names the training rows that each of the m models may not use; a model to
        which too few are left may use all.
        """
        rng = np.random.default_rng(seed)
        squares, k = (self.rows**2).sum(axis=1), min(NEIGHBOURS, len(self.values))
        barred = None
        if left_out is not None:
            barred = np.stack([np.isin(self.index, rows) for rows in left_out])
            barred[(~barred).sum(axis=1) < k] = False

        def draw(rows: FloatArray) -> FloatArray:
            m, p, d = rows.shape
            out = np.empty((m, p))
            rank = rng.integers(k, size=(m, p))
            for some in slices(m, max(1, _CHUNK // (p * len(squares)))):
                # Squared distances less what is the same for all rows.
                far = squares - 2.0 * (rows[some].reshape(-1, d) @ self.rows.T)
                far = far.reshape(-1, p, len(squares))
                if barred is not None:
                    far = np.where(barred[some, None], np.inf, far)
                near = np.argpartition(far, k - 1, axis=2)[:, :, :k]
                picked = np.take_along_axis(near, rank[some, :, None], axis=2)[:, :, 0]
                out[some] = self.values[picked]
            return out

        return draw


@dataclass(frozen=True, eq=False)
class Calibration:
    """What held-out stretches say about the size of errors."""

    residuals: SeriesResiduals
    mean_spread: FloatArray  # (horizon,)
    ratios: FloatArray  # (o, horizon), absolute error over unit

    def half_widths(self, spread: FloatArray, coverage: float) -> FloatArray:
        """Return half the widths k_h u_h of intervals for a simulated spread (m, steps)."""
        steps = spread.shape[1]
        units = np.sqrt(spread * self.mean_spread[self._step(steps)])
        return np.asarray(self.factors(coverage, steps) * units)

    def _step(self, steps: int) -> IntArray:
        """Return the calibrated step that stands for each step: the last one for all beyond."""
        return np.minimum(np.arange(steps), len(self.mean_spread) - 1)

    def factors(self, coverage: float, steps: int) -> FloatArray:
        """Return k_h for every step."""
        horizon = self.ratios.shape[1]
        reach = int(np.ceil(WINDOW * horizon)) if horizon > 1 else 0
        factors = np.empty(horizon)
        for h in range(horizon):
            pool = np.sort(self.ratios[:, max(0, h - reach) : h + reach + 1], axis=None)
            rank = int(np.ceil((len(pool) + 1) * coverage))
            factors[h] = pool[min(rank, len(pool)) - 1]
        return np.asarray(factors[self._step(steps)])


@dataclass(frozen=True, eq=False)
class FreeRun:
    """Forecasts of m series on their own predictions, in units of the rows.

    Attributes
    ----------
    start : array of shape (m, 1, lags)
        Values before the first step, the newest first.
    exog : array of shape (m, steps, e) or None
        Columns that come from the inputs.
    values : array of shape (m, steps)
    """

    start: FloatArray
    exog: FloatArray | None
    values: FloatArray

    @classmethod
    def of(cls, models: Models, start: FloatArray, exog: FloatArray | None, steps: int) -> FreeRun:
        """Let models run from given values."""
        return cls(start, exog, free_run(models, start, steps, exog)[:, 0])

    @property
    def diverged(self) -> bool:
        """Whether it was held at its limit."""
        return bool(np.abs(self.values).max() >= RUNAWAY)

    def spread(self, models: Models, noise: Noise, n_paths: int, sums: int) -> FloatArray:
        """Return the root mean square deviation of noisy free runs from this one, (m, steps)."""
        starts, steps = np.repeat(self.start, n_paths, axis=1), self.values.shape[1]
        paths = free_run(models, starts, steps, self.exog, noise)
        deviations = level_errors(paths - self.values[:, None], sums)
        floor = np.finfo(float).eps * (1.0 + np.abs(self.values))
        return np.asarray(np.sqrt((deviations**2).mean(axis=1)) + floor)


def calibrate(models: Models, plan: Plan, n_paths: int, seed: int) -> Calibration:
    """Compare simulated spread and true errors on the stretches that are held out.

    Parameters
    ----------
    models : Models
        One for each stretch of the plan, trained without what the stretch leaves out.
    plan : Plan
    n_paths : int
    seed : int

    Returns
    -------
    Calibration

    Notes
    -----
    ``n_paths`` free runs of ``plan.horizon`` steps for each stretch.
    """
    stretches, sums = plan.stretches(), plan.layout.differencing
    truth = np.stack([s.truth for s in stretches])
    places = [place for place, _ in plan.places()]
    errors = (truth - models(np.stack([plan.rows[place] for place in places]))).ravel()
    index, first = np.unique(
        np.concatenate([np.arange(place.start, place.stop) for place in places]), return_index=True
    )
    residuals = SeriesResiduals(plan.rows[index], errors[first], index)
    start = np.stack([s.history for s in stretches])[:, None]
    run = FreeRun.of(models, start, stack_exog(stretches), plan.horizon)
    noise = residuals.noise([seed, 0], [s.left_out for s in stretches])
    scale = run.spread(models, noise, n_paths, sums)
    mean = scale.mean(axis=0)
    ratios = np.abs(level_errors(run.values - truth, sums)) / np.sqrt(scale * mean)
    return Calibration(residuals, mean, ratios)
