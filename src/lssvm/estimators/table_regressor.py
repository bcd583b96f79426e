"""The regressor for tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import InvalidInputError
from lssvm.estimators.table_model import TableModel, check_weight, held_out_scorer
from lssvm.recipes import Problem, TableContext, TableFit
from lssvm.tasks import Numbers
from lssvm.uncertainty import Probabilities, check_coverage, scaled_residuals


class LSSVMRegressor(RegressorMixin, TableModel):
    """The model for tables: numbers from a data frame as it is.

    Exact least squares support vector machines with several kernels and input scales, metrics
    learned from gradients, parts for many rows, stacked by what they say about rows that they have
    not seen. Nothing has to be set.

    Parameters
    ----------
    preset : {"balanced", "fast", "best"}, default="balanced"
        How much is tried. "fast": two configurations in small parts; "best": all six, more rounds,
        two trees of large parts.
    time_limit : float, default=None
        Seconds that ``fit`` should stay below: stages are shortened or left out. Without it nothing
        depends on the speed of the machine.
    scoring : str or callable, default=None
        Scorer for ``best_score_``, by held-out predictions; None is R2. It does not change the
        model, which minimises squared errors.
    inputs : "auto", {"standardised", "quantiles"} or a list of them, default="auto"
        Scales that are tried.
    kernel : "auto", {"rbf", "exponential", "laplacian"} or a list of them, default="auto"
        Kernels that are tried.
    metric : "auto" or None, default="auto"
        "auto" learns a metric of the inputs where held-out rows say that it helps.
    part_size : "auto" or int, default="auto"
        Rows that share an exact model; "auto" decides by cost.
    n_trees : "auto" or int, default="auto"
        Differently cut trees of parts that are averaged.
    device : None, "cpu", "cuda", "cuda:1", ... or torch.device, default=None
        Where exact models, gradients and outputs are computed; None: on this machine's cores. The
        same numbers up to rounding; by default parts are larger on a GPU, which is faster.
    memory_budget : int, str or None, default=None
        Bytes, or a string such as "2 GB"; limits the size of parts.
    n_jobs : int, default=None
        Threads; None for all cores.
    random_state : int, Generator, RandomState or None, default=0
        For samples of rows and folds.
    verbose : int, default=0

    Attributes
    ----------
    configurations_ : dict of lists
        What was tried: inputs, kernel, rounds of the metric, out-of-sample error (of the variance),
        weight in the stack, seconds, the stage it reached. ``pandas.DataFrame`` takes it.
    summary_ : str
        What was chosen, and why.
    best_score_ : float
        R2 (or ``scoring``) of held-out predictions: rows by models, metrics and weights that have
        not seen their targets.
    metric_ : array of shape (d, d)
        Of the configuration with the largest weight, for the prepared features.
    feature_importances_ : array of shape (n_columns,)
        Mean squared slope of the model along the columns, summing to 1.
    record_ : TableFit
        The frozen record.
    preparations_ : dict from inputs to TablePreparation
    part_size_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.estimators.table_regressor import LSSVMRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (150, 2))
    >>> model = LSSVMRegressor("fast").fit(X, np.sin(X[:, 0]))
    >>> bool(model.best_score_ > 0.9), bool(model.feature_importances_[0] > 0.9)
    (True, True)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> LSSVMRegressor:
        """Fit the model.

        Parameters
        ----------
        X : data frame, Arrow table, mapping of columns, or array of shape (n, d)
        y : array of shape (n,) or (n, k)
        sample_weight : array of shape (n,), optional
        groups : array of shape (n,), optional
            Rows of one group are left out together wherever rows are left out.

        Returns
        -------
        LSSVMRegressor
        """
        weight = check_weight(X, sample_weight)
        targets = self._targets(y, len(weight))
        used = weight > 0
        shift = np.average(targets[used], axis=0, weights=weight[used])
        spread = np.sqrt(np.average((targets[used] - shift) ** 2, axis=0, weights=weight[used]))
        tiny = np.finfo(np.float64).eps * np.maximum(np.abs(shift), 1.0)
        scale = np.where(spread > tiny, spread, 1.0)
        task = Numbers(targets.shape[1], np.asarray(y).ndim == 1)
        Y = (targets - shift) / scale
        self._fit_numbers(X, targets, Y, None, weight, groups, task, shift, scale)
        return self

    def _publish(self, fit: TableFit) -> TableContext:
        """Keep the record, and set what follows from it as attributes."""
        context = super()._publish(fit)
        assert isinstance(context.task, Numbers)
        assert not isinstance(context.calibration, Probabilities)
        self.shift_, self.scale_ = context.shift, context.scale
        self.single_, self.residuals_ = context.task.single, context.calibration
        return context

    def _targets(self, y: Any, n: int) -> FloatArray:
        if y is None:
            raise InvalidInputError(
                "requires y to be passed, but the target y is None: give one number per row."
            )
        if np.iscomplexobj(np.asarray(y)):
            raise InvalidInputError("Complex data not supported: y has to hold real numbers.")
        try:
            values = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"y holds values that are no numbers ({error}): give numbers, or use "
                "LSSVMClassifier for classes."
            ) from error
        if values.ndim not in (1, 2) or len(values) != n:
            raise InvalidInputError(
                f"y has shape {values.shape} but X has {n} rows: give one target, or one row of "
                "targets, for each row. (inconsistent numbers of samples)"
            )
        if not np.all(np.isfinite(values)):
            raise InvalidInputError(
                "y has NaN or infinite values: give a finite target for every row."
            )
        return values.reshape(n, -1)

    def _judge(self, problem: Problem, fit: TableFit, context: TableContext) -> TableContext:
        """Score the held-out outputs and keep their residuals for intervals."""
        task, shift, scale = context.task, context.shift, context.scale
        assert isinstance(task, Numbers)
        good = np.isfinite(fit.held_out).all(axis=1)
        predicted = fit.held_out[good] * scale + shift
        truth, w = problem.Y[good] * scale + shift, problem.weight[good]
        shown = (truth[:, 0], predicted[:, 0]) if task.single else (truth, predicted)
        if len(truth) < 2:
            score = float("nan")
        elif self.scoring is None:
            score = float(r2_score(*shown, sample_weight=w))
        else:
            score = held_out_scorer(self.scoring, {"predict": shown[1]}, shown[0], w)
        local = fit.local_error(problem.inputs)[good][:, None] * scale
        residuals = scaled_residuals(truth - predicted, local, w)
        return replace(context, best_score=score, calibration=residuals)

    def predict(self, X: Any) -> FloatArray:
        """Return the predictions for a table, shape (n,) or (n, k)."""
        values = self._outputs(X) * self.scale_ + self.shift_
        return np.asarray(values[:, 0] if self.single_ else values)

    def predict_interval(self, X: Any, coverage: float = 0.95) -> FloatArray:
        """Return intervals that hold a new observation with a given probability.

        Parameters
        ----------
        X : table of n rows
        coverage : float, default=0.95

        Returns
        -------
        array of shape (n, 2), or (n, k, 2)
            Lower and upper ends.

        Notes
        -----
        Conformal ([Vovk2005]_), with held-out residuals in units of the leave-one-out error of the
        part that a row is in: wide where the data are noisy, narrow where they are not.
        """
        coverage = check_coverage(coverage)
        prepared = self._prepare(X)
        fit: TableFit = self.record_
        fit.need("prediction", "Intervals")
        residuals = self.residuals_
        assert residuals is not None
        values = fit.outputs(prepared) * self.scale_ + self.shift_
        local = fit.local_error(prepared)[:, None] * self.scale_
        ends = [
            np.stack(
                [values[:, j] + local[:, j] * end for end in residuals.factor(coverage, j)],
                axis=-1,
            )
            for j in range(values.shape[1])
        ]
        return np.asarray(ends[0] if self.single_ else np.stack(ends, axis=1))

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> LSSVMRegressor:
        """Add rows: their parts are solved again, preparation, metric, tree, C and gamma stay."""
        if not hasattr(self, "record_"):
            return self.fit(X, y, sample_weight)
        self._change(X, y, sample_weight, forget=False)
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> LSSVMRegressor:
        """Take rows away that were learned with these targets and weights."""
        self._change(X, y, sample_weight, forget=True)
        return self

    def _change(self, X: Any, y: Any, sample_weight: Any, *, forget: bool) -> None:
        weight = check_weight(X, sample_weight)
        Y = (self._targets(y, len(weight)) - self.shift_) / self.scale_
        self._update(X, Y, weight, forget=forget)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
