r"""Intervals of `NARX` forecasts: simulated free runs, calibrated on stretches held out.

1. Models that have not seen a stretch predict it one step at a time: what is left over are
   residuals of the size that new data have.
2. Paths are simulated by adding residuals drawn at random to every step of a free run. Their
   spread around the free run without noise, a root mean square :math:`s_h` at step h, says how much
   the model amplifies errors from this starting point.
3. On every stretch the same simulation by the model that has not seen it gives the ratio of the
   true error at step h to the spread there. The interval at step h is the free run plus or minus
   :math:`k_h s_h`, where :math:`k_h` is the split-conformal quantile of the ratios at the steps
   around h of all stretches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lssvm.estimators.narx_fitting import Plan, held_out_models
from lssvm.estimators.narx_series import FloatArray, Layout
from lssvm.tuning import free_run
from lssvm.tuning.free_running import Models, level_errors, stack_exog

WINDOW = 0.1  # ratios are pooled over this part of the horizon on either side of a step


@dataclass(frozen=True)
class Calibration:
    """What held-out stretches say about the size of errors."""

    residuals: FloatArray  # (k,) of one step, in standardised units
    ratios: FloatArray  # (o, horizon), absolute error over simulated spread

    def factors(self, coverage: float, steps: int) -> FloatArray:
        """Return k_h for every step; beyond the calibrated horizon that of its end."""
        horizon = self.ratios.shape[1]
        reach = int(np.ceil(WINDOW * horizon)) if horizon > 1 else 0
        factors = np.empty(horizon)
        for h in range(horizon):
            pool = np.sort(self.ratios[:, max(0, h - reach) : h + reach + 1], axis=None)
            rank = int(np.ceil((len(pool) + 1) * coverage))
            factors[h] = pool[min(rank, len(pool)) - 1]
        return np.asarray(factors[np.minimum(np.arange(steps), horizon - 1)])


def calibrate(estimator: Any, plan: Plan, n_paths: int, seed: int) -> Calibration:
    """Compare simulated spread and true errors on the stretches that are held out.

    Cost: one eigendecomposition (or a refit per stretch), then ``n_paths`` free runs of
    ``plan.horizon`` steps for each stretch.
    """
    models, stretches = held_out_models(estimator, plan), plan.stretches()
    truth = np.stack([s.truth for s in stretches])
    rows = np.stack([plan.rows[place] for place, _ in plan.places()])
    residuals = (truth - models(rows)).ravel()
    start = np.stack([s.history for s in stretches])[:, None]
    exog = stack_exog(stretches)
    run = free_run(models, start, plan.horizon, exog)[:, 0]
    sums = plan.layout.differencing
    scale = spread(models, start, exog, run, residuals, n_paths, sums, [seed, 0])
    errors = np.abs(level_errors(run - truth, sums))
    return Calibration(residuals, errors / scale)


def spread(
    models: Models,
    start: FloatArray,
    exog: FloatArray | None,
    run: FloatArray,
    residuals: FloatArray,
    n_paths: int,
    sums: int,
    seed: list[int],
) -> FloatArray:
    """Return the root mean square deviation of noisy free runs from ``run`` (m, steps)."""
    m, steps = run.shape
    noise = np.random.default_rng(seed).choice(residuals, size=(m, n_paths, steps))
    paths = free_run(models, np.repeat(start, n_paths, axis=1), steps, exog, noise)
    deviations = level_errors(paths - run[:, None], sums)
    floor = np.finfo(float).eps * (1.0 + np.abs(run))
    return np.asarray(np.sqrt((deviations**2).mean(axis=1)) + floor)


def interval_widths(
    calibration: Calibration,
    models: Models,
    start: FloatArray,
    exog: FloatArray | None,
    run: FloatArray,
    coverage: float,
    n_paths: int,
    layout: Layout,
    seed: int,
) -> FloatArray:
    """Return half the width of the interval at each step, in the units of the series."""
    scale = spread(
        models, start, exog, run, calibration.residuals, n_paths, layout.differencing, [seed, 1]
    )
    return np.asarray(calibration.factors(coverage, run.shape[1]) * scale * layout.scale)
