"""The regressor for tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from lssvm._core.arrays import AnyArray, FloatArray, IntArray, check_magnitude
from lssvm._core.errors import InvalidInputError
from lssvm.data.dataset import Dataset
from lssvm.data.sampling import Sample
from lssvm.estimators.table_model import TableModel, share_documentation, weights
from lssvm.estimators.table_scoring import ClassScorer, NumberScorer
from lssvm.fitting import Problem, TableContext, TableFit
from lssvm.fitting.table_work import Clock
from lssvm.tasks import Classes, Numbers
from lssvm.tasks.targets import check_numbers
from lssvm.uncertainty import Probabilities, Residuals, check_coverage, scaled_residuals

_NEARBY = (25, 50, 100, 200)  # training rows that a local error is the average of
_SPENT = 0.7  # of the time limit: then there is no time for nearby rows
_ENOUGH = 100  # rows below which there are no local errors


@share_documentation("R2")
class LSSVMRegressor(RegressorMixin, TableModel):
    """The model for tables: predicts numbers from a raw data frame.

    Exact least squares support vector machines with several kernels and input scales, metrics
    learned from gradients, parts for many rows, stacked on predictions for held-out rows. No
    settings are needed.

    Parameters
    ----------
    %(parameters)s

    Attributes
    ----------
    %(attributes)s

    Notes
    -----
    %(notes)s

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVMRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (150, 2))
    >>> model = LSSVMRegressor("fast").fit(X, np.sin(X[:, 0]))
    >>> bool(model.best_score_ > 0.9), bool(model.feature_importances_[0] > 0.9)
    (True, True)
    """

    shift_: FloatArray
    scale_: FloatArray
    single_: bool
    residuals_: Residuals | None

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> LSSVMRegressor:
        """Fit the model.

        Parameters
        ----------
        X : data frame, Arrow table, mapping of columns, array of shape (n, d), or scan
            A `scan` brings its own targets and weights.
        y : array of shape (n,) or (n, k)
            Targets: one number for each row, or several.
        sample_weight : array of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.
        groups : array of shape (n,), optional
            Rows of one group are always held out together.

        Returns
        -------
        LSSVMRegressor
        """
        data, drawn = self._open(X, y, sample_weight, groups, classes=False)
        if drawn is not None:
            return self._fit_many(data, drawn)
        rows = data.read()
        X, y, weight = rows.table, rows.target, weights(rows)
        targets = self._targets(y, len(weight))
        shift, scale = _units(targets, weight)
        task = Numbers(targets.shape[1], np.asarray(y).ndim == 1)
        Y = (targets - shift) / scale
        self._fit_numbers(X, targets, Y, None, weight, groups, task, shift, scale)
        return self

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R2, the mean over the outputs.

        Parameters
        ----------
        X : data frame, Arrow table, mapping of columns, array of shape (n, d), or scan
            A `scan` brings its own targets and weights.
        y : array of shape (n,) or (n, k)
            Not with a scan.
        sample_weight : array of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.

        Returns
        -------
        float
        """
        return float(super().score(*self._with_targets(X, y, sample_weight)))

    def _fit_many(self, data: Dataset, drawn: Sample) -> LSSVMRegressor:
        """Fit a table of very many rows: everything by a sample, the parts by all rows."""
        rows = drawn.block
        targets = self._targets(rows.target, len(rows))
        shift, scale = _units(targets, weights(rows))

        def encode(y: AnyArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
            return (self._targets(y, len(weight)) - shift) / scale, weight

        large = self._all_rows(data, drawn, encode)
        task = Numbers(targets.shape[1], np.asarray(rows.target).ndim == 1)
        Y, weight = encode(targets, weights(rows))
        self._fit_numbers(rows.table, targets, Y, None, weight, None, task, shift, scale, large)
        return self

    def _attributes(self, fit: TableFit, context: TableContext) -> dict[str, Any]:
        """Return the fitted attributes of a record."""
        assert isinstance(context.task, Numbers)
        assert not isinstance(context.calibration, Probabilities)
        return super()._attributes(fit, context) | {
            "shift_": context.shift,
            "scale_": context.scale,
            "single_": context.task.single,
            "residuals_": context.calibration,
        }

    def _targets(self, y: Any, n: int) -> FloatArray:
        if y is None:
            raise InvalidInputError(
                "requires y to be passed, but the target y is None: give one number per row. A "
                "scan has no target unless it is named: scan(..., target=...)."
            )
        if np.iscomplexobj(np.asarray(y)):
            raise InvalidInputError("Complex data not supported: y has to hold real numbers.")
        values = np.asarray(check_numbers(y), dtype=np.float64)
        if values.ndim not in (1, 2) or len(values) != n or not values.size:
            raise InvalidInputError(
                f"y has shape {values.shape} but X has {n} rows: give one target, or one row of "
                "targets, for each row. (inconsistent numbers of samples)"
            )
        bad = np.flatnonzero(~np.isfinite(values.reshape(n, -1)).all(axis=1))
        if len(bad):
            raise InvalidInputError(
                f"y has NaN or infinite values in {len(bad)} of {n} rows, the first in row "
                f"{bad[0]}: give a finite target for every row."
            )
        check_magnitude(values, "y", "divide it by a constant")
        return values.reshape(n, -1)

    def _scorer(
        self, problem: Problem, task: Classes | Numbers, shift: FloatArray, scale: FloatArray
    ) -> NumberScorer:
        """Return what scores held-out outputs of a problem."""
        assert isinstance(task, Numbers)
        targets = problem.Y * scale + shift
        return NumberScorer(
            targets, shift, scale, problem.weight, task.single, self.scoring, problem.labels
        )

    def _calibrated(
        self,
        problem: Problem,
        fit: TableFit,
        context: TableContext,
        scorer: ClassScorer | NumberScorer,
        clock: Clock,
    ) -> TableContext:
        """Return the context with the score and the residuals of the held-out outputs."""
        assert isinstance(scorer, NumberScorer)
        good = np.flatnonzero(np.isfinite(fit.held_out).all(axis=1))
        outputs = fit.held_out[good]
        gap = scorer.targets[good] - scorer.predicted(outputs)
        nearby, local = _local_scale(fit, problem, gap / context.scale, good, clock)
        residuals = scaled_residuals(gap, local * context.scale, problem.weight[good])
        score = scorer.score(outputs, good)
        return replace(context, best_score=score, calibration=residuals, nearby=nearby)

    def predict(self, X: Any) -> FloatArray:
        """Return the predictions for a table, shape (n,) or (n, k).

        Parameters
        ----------
        X : table of n rows, or Scan
            Rows with the columns of the fit.
        """
        values = self._outputs(X) * self.scale_ + self.shift_
        return np.asarray(values[:, 0] if self.single_ else values)

    def predict_interval(self, X: Any, coverage: float = 0.95) -> FloatArray:
        """Return intervals that hold a new observation with a given probability.

        Parameters
        ----------
        X : table of n rows
            Rows with the columns of the fit.
        coverage : float, default=0.95
            Probability with which a new target is inside.

        Returns
        -------
        array of shape (n, 2), or (n, k, 2)
            Lower and upper ends.

        Notes
        -----
        Conformal ([Vovk2005]_), with held-out residuals in units of a local error: wide where the
        data are noisy, narrow where they are not. The local error is the leave-one-out error of the
        25 to 200 nearest training rows, or of the part that a row is in, whichever makes the
        held-out residuals more likely.
        """
        coverage = check_coverage(coverage)
        prepared = self._prepare(X)
        fit = self.record_
        fit.need("prediction", "Intervals")
        residuals = self.residuals_
        assert residuals is not None
        values = fit.outputs(prepared) * self.scale_ + self.shift_
        assert fit.context is not None
        local = fit.local_error(prepared, fit.context.nearby) * self.scale_
        ends = [
            np.stack(
                [values[:, j] + local[:, j] * end for end in residuals.factor(coverage, j)], axis=-1
            )
            for j in range(values.shape[1])
        ]
        return np.asarray(ends[0] if self.single_ else np.stack(ends, axis=1))

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> LSSVMRegressor:
        """Add rows: their parts are solved again; preparation, metric, tree, C and gamma are kept.

        Parameters
        ----------
        X : table of n rows
            New rows, with the columns of the fit.
        y : array-like of shape (n,) or (n, k)
            Their targets.
        sample_weight : array-like of shape (n,), optional
            Their weights, in the units of the fit; None: all are one.
        """
        if not hasattr(self, "record_"):
            return self.fit(X, y, sample_weight)
        self._change(X, y, sample_weight, forget=False)
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> LSSVMRegressor:
        """Remove rows that were added with these targets and weights.

        Parameters
        ----------
        X : table of n rows
            Rows as they were given to ``fit`` or ``partial_fit``.
        y : array-like of shape (n,) or (n, k)
            The targets they had.
        sample_weight : array-like of shape (n,), optional
            The weights they had; None: all were one.
        """
        self._change(X, y, sample_weight, forget=True)
        return self

    def _change(self, X: Any, y: Any, sample_weight: Any, *, forget: bool) -> None:
        X, y, weight = self._with_targets(X, y, sample_weight)
        Y = (self._targets(y, len(weight)) - self.shift_) / self.scale_
        self._update(X, Y, weight, forget=forget)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _units(targets: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of every target; 1 for one that does not vary."""
    used = weight > 0
    shift = np.average(targets[used], axis=0, weights=weight[used])
    spread = np.sqrt(np.average((targets[used] - shift) ** 2, axis=0, weights=weight[used]))
    tiny = np.finfo(np.float64).eps * np.maximum(np.abs(shift), 1.0)
    return shift, np.where(spread > tiny, spread, 1.0)


def _local_scale(
    fit: TableFit, problem: Problem, gap: FloatArray, rows: IntArray, clock: Clock
) -> tuple[int, FloatArray]:
    """Return how many nearby rows a local error is made of, and the local errors (m, k) of rows.

    Parameters
    ----------
    fit : TableFit
    problem : Problem
        Its n rows, or a sample of very many.
    gap : array of shape (m, k)
        Held-out residuals of some of them.
    rows : int array of shape (m,)
    clock : Clock
        Without time for nearby rows it is the error of the parts.

    Notes
    -----
    The choice is the largest likelihood of normal residuals whose standard deviation is the local
    error times a constant; nearby rows have to gain two standard errors over the parts.
    """
    n, weight = len(fit.held_out), problem.weight[rows]
    tiny = np.finfo(np.float64).eps ** 2  # of the variance: rounding

    def unlikely(local: FloatArray) -> FloatArray:
        square = np.maximum(local**2, tiny)
        ratio = gap**2 / square
        constant = np.maximum(np.average(ratio, axis=0, weights=weight), tiny)
        return np.asarray((ratio / constant + np.log(square * constant)).sum(axis=1))

    known = all(cut.members for m in fit.members for cut in m.model.cuts)
    error = fit.own_error(n) if known or not problem.inputs else fit.local_error(problem.inputs)
    flat = np.broadcast_to(error[rows], gap.shape)
    best, chosen, local = np.zeros(len(gap)), 0, flat
    if len(gap) < _ENOUGH or not known:
        return chosen, local
    base = unlikely(flat)
    for count in _NEARBY:
        if 4 * count > len(gap) or clock.over(_SPENT):
            break
        near = fit.own_error(n, count)[rows]
        gain = base - unlikely(near)
        if gain.mean() > max(best.mean(), 2.0 * gain.std() / np.sqrt(len(gain))):
            best, chosen, local = gain, count, near
    return chosen, local
