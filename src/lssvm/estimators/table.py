"""`LSSVMClassifier` and `LSSVMRegressor`: the model for tables."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, clone
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted, column_or_1d

from lssvm._core.arrays import AnyArray, FloatArray, IntArray, check_magnitude
from lssvm._core.errors import ColumnWarning, InvalidInputError, not_known, not_usable
from lssvm.data.dataset import Dataset
from lssvm.data.sampling import Sample
from lssvm.estimators.base import (
    KernelClassifier,
    KernelEstimator,
    class_probabilities,
    intervals,
    local_ends,
    reports,
)
from lssvm.estimators.opening import Inputs
from lssvm.estimators.table_fit import (
    Targets,
    all_rows,
    change_model,
    compress_model,
    fit_model,
    inputs_of,
    open_table,
    preparations_of,
    rows_of,
    weights_of,
    with_targets,
)
from lssvm.fitting.record import Fit, Step
from lssvm.fitting.table_record import TableFit, local_error
from lssvm.fitting.table_scoring import choose_target_scale
from lssvm.preparation.transformer import takes_tables
from lssvm.tasks import Classes, Numbers
from lssvm.tasks.targets import check_classes, check_labels, check_numbers
from lssvm.uncertainty import Residuals, check_coverage


@dataclass(eq=False, repr=False)
class LSSVMClassifier(KernelClassifier):
    """The model for tables: predicts classes from a raw data frame.

    Exact least squares support vector machines with several kernels and input scales, metrics
    learned from gradients, leaves for many rows, stacked on predictions for held-out rows. No
    settings are needed.

    Parameters
    ----------
    preset : {"balanced", "fast", "best"}, default="balanced"
        How much is tried. "fast": at most two configurations, in small leaves; "best": up to six,
        more rounds, two trees of large leaves.
    time_limit : float, default=None
        Seconds that ``fit`` should stay below: stages are shortened or skipped. Without it the
        result does not depend on the speed of the machine.
    scoring : str or callable, default=None
        A scorer of scikit-learn: configurations and stacks are chosen by it, and ``best_score_`` is
        its value for held-out predictions. None is the accuracy; configurations and weights are
        then chosen by the log loss. C, gamma and metrics are always those of the smallest squared
        errors; leaves of two classes that minimise the log loss, from 250 to 400,000 rows, have the
        C of the smallest log loss.
    drop : bool or list of str, default=True
        Columns to drop: a list names some; True drops those that are constant, empty, equal to
        another one or ids, False none that can be used. A warning, ``summary_`` and
        ``preparations_[...].prepared_.dropped`` name dropped columns with the reason.
    keep : list of str, default=()
        Columns that are not dropped, whatever they look like.
    ordered : mapping from columns to lists of levels, optional
        Categories whose levels have an order, such as ``{"size": ["S", "M", "L"]}``. Ordered
        categoricals of pandas and Arrow are known.
    scaling : "auto", {"standardised", "quantiles"} or a list of them, default="auto"
        Scalings of the inputs that are tried.
    kernel : "auto", {"rbf", "exponential", "laplacian"} or a list of them, default="auto"
        Kernels that are tried.
    metric : "auto", "diagonal", "full", None or array, default="auto"
        "auto" learns a metric of the inputs if it lowers the error on held-out rows: a full matrix,
        for the Laplacian kernel a diagonal. "diagonal" and "full" do so with that shape for all
        kernels. An array of shape (d,) or (d, d) multiplies the d prepared features, whose names
        are ``preparations_[...].get_feature_names_out()``; nothing is learned then.
    leaf_size : "auto" or int, default="auto"
        Rows that share an exact model; "auto" decides by cost.
    n_trees : "auto" or int, default="auto"
        Different partitions of the rows into leaves that are averaged.
    n_prototypes : "auto" or int, default="auto"
        Prototypes of a global model, in addition to the leaves; 0 for none. "auto": as many as a
        fifth of the leaves' cost allows, where a few of them are about as good as small leaves;
        none with "fast", on a GPU, whose leaves are larger, and beyond 400,000 rows.
    device : None, "cpu", "cuda", "cuda:1", ... or torch.device, default=None
        Where exact models, gradients and outputs are computed; None: on this machine's cores. The
        same numbers up to rounding; by default leaves are larger on a GPU, which is faster.
    memory_budget : int, str or None, default=None
        Bytes, or a string such as "2 GB"; limits the matrices of the leaves that are computed at a
        time, and beyond 400,000 rows the rows that the model keeps. It does not count the prepared
        table, which takes 8 bytes for each number and scaling, or the outputs of all rows.
    n_jobs : int, default=None
        Threads; None for all cores.
    random_state : int, Generator, RandomState or None, default=0
        For samples of rows and folds.
    verbose : int, default=0
        1 shows what is tried and the best loss so far, 2 every step.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; they multiply ``sample_weight``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    configurations_ : dict of lists
        What was tried: scaling, kernel, rounds of the metric, out-of-sample error (of the
        variance), weight in the stack, seconds, the stage it reached, whether the metric is a warp.
        ``pandas.DataFrame`` takes it.
    summary_ : str
        What was chosen, and why.
    best_score_ : float
        The accuracy (or ``scoring``) of held-out predictions: rows by models, metrics and weights
        that have not seen their targets. An estimate of the score on new rows.
    threshold_ : float
        Two classes only: the probability of ``classes_[1]`` at which `predict` changes. About 1/2,
        unless ``scoring`` depends on decisions: held-out predictions then choose it.
    metric_ : array of shape (d, d)
        Of the configuration with the largest weight, for the prepared features, or what its warp
        makes of them.
    feature_importances_ : array of shape (n_columns,)
        Mean squared slope of the model along the columns, summing to 1.
    record_ : Fit
        The frozen record.
    preparations_ : dict from scalings to TablePreparation
    leaf_size_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Notes
    -----
    Ctrl-C during ``fit`` raises KeyboardInterrupt. Where a configuration was fitted to all rows by
    then, the estimator keeps the model of what was finished; otherwise it is unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> model = LSSVMClassifier("fast").fit(X, y)
    >>> bool(model.best_score_ > 0.85), model.predict(np.array([[1.0, 1.0]])).tolist()
    (True, ['same'])
    """

    preset: str = "balanced"
    _: KW_ONLY
    time_limit: float | None = None
    scoring: Any = None
    drop: bool | Sequence[str] = True
    keep: Sequence[str] = ()
    ordered: Mapping[str, Sequence[Any]] | None = None
    scaling: Any = "auto"
    kernel: Any = "auto"
    metric: Any = "auto"
    leaf_size: Any = "auto"
    n_trees: Any = "auto"
    n_prototypes: Any = "auto"
    device: Any = None
    memory_budget: Any = None
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: int = 0
    class_weight: Any = None

    def __sklearn_tags__(self) -> Any:
        return takes_tables(super().__sklearn_tags__())

    @reports
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : data frame, Arrow table, mapping of columns, array of shape (n, d), or scan
            A `scan` brings its own targets and weights.
        y : array of shape (n,)
            Classes: text, numbers or booleans.
        sample_weight : array of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.
        groups : array of shape (n,), optional
            Rows of one group are held out together, in tuning, scores and calibration; metrics of
            1,500 rows or more are learned from some rows of every group.

        Returns
        -------
        LSSVMClassifier
        """
        data, drawn = open_table(self, X, y, sample_weight, groups)
        if drawn is not None:
            return fit_model(self, self._targets_of(data, drawn), None)
        X, y, weight = rows_of(data)
        y = _labels(y)
        check_classes(y)
        if len(y) != len(weight):
            raise InvalidInputError(
                f"y has {len(y)} classes but X has {len(weight)} rows: give one for each row. "
                "(inconsistent numbers of samples)"
            )
        classes = np.unique(y[weight > 0])
        if len(classes) < 2:
            raise InvalidInputError(
                f"The data have 1 class, {classes.tolist()}, after rows of weight 0 were "
                "dropped: a classifier needs at least two classes."
            )
        labels = _numbers(classes, y)
        counts = np.bincount(labels, weight, minlength=len(classes))
        factors = _factors(classes, self.class_weight, counts)
        task = _task(classes, factors)
        Y = np.asarray(task.code.matrix[labels], dtype=np.float64)
        # A scorer does not get the weights of classes.
        targets = Targets(X, y, Y, weight * factors[labels], task, labels, weight)
        return fit_model(self, targets, groups)

    def _targets_of(self, data: Dataset, drawn: Sample) -> Targets:
        """Return a sample of very many rows, and how the targets of all are encoded."""
        classes, counts, rows = drawn.classes, drawn.counts, drawn.block
        assert classes is not None and counts is not None
        check_classes(classes)
        if len(classes) < 2:
            raise InvalidInputError(
                f"The data have 1 class, {classes.tolist()}: a classifier needs at least two."
            )
        factors = _factors(classes, self.class_weight, counts)
        task = _task(classes, factors)
        codes = np.asarray(task.code.matrix, dtype=np.float64)

        def encode(y: AnyArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
            labels = _numbers(classes, _labels(y))
            return codes[labels], weight * factors[labels]

        y, scored = _labels(rows.target), weights_of(rows)
        Y, weight = encode(y, scored)
        large = all_rows(self, data, drawn, encode)
        return Targets(rows.table, y, Y, weight, task, _numbers(classes, y), scored, large)

    def _publish(self, fit: Fit[Any], namespace_of: Any = None) -> Self:
        """Keep the record, and set what follows from it as attributes."""
        self.preparations_ = preparations_of(self, fit)
        return super()._publish(fit)

    def _inputs(self, X: Any, method: str = "predict") -> Inputs:
        return inputs_of(self, X)

    @property
    def threshold_(self) -> float:
        """The probability of ``classes_[1]`` at which `predict` changes; two classes only."""
        check_is_fitted(self)
        if len(self.classes_) != 2:
            text = f"threshold_ is of two classes; there are {len(self.classes_)}: use predict."
            raise AttributeError(text)
        return float(class_probabilities(self._probabilities(), self._task, np.zeros((1, 1)))[0, 1])

    @property
    def metric_(self) -> FloatArray:
        """The metric of the configuration with the largest weight, shape (d, d)."""
        check_is_fitted(self)
        main = self.record_.main
        return main.metric.matrix(main.model.n_features)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is right.

        Parameters
        ----------
        X : data frame, Arrow table, mapping of columns, array of shape (n, d), or scan
            A `scan` brings its own targets and weights.
        y : array of shape (n,)
            Not with a scan.
        sample_weight : array of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.

        Returns
        -------
        float
        """
        return float(super().score(*with_targets(self, X, y, sample_weight)))

    def compress(self, n_support: int | Sequence[int] = 200) -> Self | list[Self]:
        """Return a small model that approximates this one.

        Parameters
        ----------
        n_support : int or sequence of int, default=200
            Support vectors that the small model keeps. A sequence gives a path of sizes.

        Returns
        -------
        estimator, or list of them
            Fitted: it takes the same raw columns, and it can be saved. Its ``best_score_``,
            probabilities and sets come from rows that models of its size were not fitted to;
            ``summary_`` compares score, size and time of prediction with those of this model. It
            cannot learn or forget rows.

        Notes
        -----
        A fixed-size model with the inputs, the kernel and the metric of one configuration, fitted
        to the out-of-sample log-odds of the leaves of this model (below 5,000 rows: to targets),
        its prototypes reduced by SPFS ([Mall2014]_); see
        `lssvm.fitting.compression.compress_table`.
        """
        return compress_model(self, n_support)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows: their leaves are solved again; preparation, metric, tree, C and gamma stay.

        Parameters
        ----------
        X : table of n rows
            Rows with the columns of the fit.
        y : array of shape (n,)
            Of the classes that the first fit has seen.
        classes : array, optional
            Checked against those of the first call, where given.
        sample_weight : array of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.
        """
        if self.__sklearn_is_fitted__():
            return change_model(self, *self._encoded(X, y, sample_weight), forget=False)
        self.fit(X, y, sample_weight)
        missing = set() if classes is None else set(np.asarray(classes)) - set(self.classes_)
        if missing:
            raise InvalidInputError(
                f"classes names {sorted(missing)}, of which the first rows have none: begin "
                "with rows of every class."
            )
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were added with these classes and weights.

        Parameters
        ----------
        X : table of n rows
            Rows as they were given to ``fit`` or ``partial_fit``.
        y : array-like of shape (n,)
            The classes they had.
        sample_weight : array-like of shape (n,), optional
            The weights they had; None: all were one.
        """
        check_is_fitted(self)
        return change_model(self, *self._encoded(X, y, sample_weight), forget=True)

    def _encoded(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, FloatArray, FloatArray]:
        """Return rows that are added or removed, with targets and weights."""
        X, y, weight = with_targets(self, X, y, sample_weight)
        y = column_or_1d(y)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise InvalidInputError(
                f"y holds the classes {unknown.tolist()}, which the fit has not seen: fit again "
                "with rows of all classes."
            )
        if isinstance(self.class_weight, str):
            raise InvalidInputError(
                f"partial_fit and forget need class_weight=None or a dict, not "
                f"{self.class_weight!r}: what is balanced changes with every row. Give the weights "
                "of the classes, or sample_weight."
            )
        labels = _numbers(self.classes_, y)
        factor = _factors(self.classes_, self.class_weight, np.ones(len(self.classes_)))
        weight = weight * factor[labels]
        return X, np.asarray(self.code_.matrix[labels], dtype=np.float64), weight


def _labels(y: Any) -> AnyArray:
    """Return labels as one column."""
    if y is None:
        raise InvalidInputError(
            "requires y to be passed, but the target y is None: give one class per row. A scan has "
            "no target unless it is named: scan(..., target=...)."
        )
    if not np.asarray(y).size:
        shape = np.asarray(y).shape
        raise InvalidInputError(f"y has shape {shape}: give one label for each row.")
    y = column_or_1d(check_labels(y), warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    return np.asarray(y)


def _task(classes: AnyArray, factors: FloatArray) -> Classes:
    """Return the task of classes of these weights, with an output each (of two, one for both)."""
    weights = dict(zip(classes.tolist(), factors.tolist(), strict=True))
    task = Classes.of(classes, multiclass="ova")
    return replace(task, decoding="argmax", class_weight=weights if np.ptp(factors) else None)


def _factors(classes: AnyArray, class_weight: Any, counts: FloatArray) -> FloatArray:
    """Return the weights (c,) of classes whose rows have these sums of weights, (c,)."""
    task = Classes.of(classes, multiclass="ova", class_weight=class_weight)
    return np.asarray(task.table(counts).factors)


def _numbers(classes: AnyArray, y: AnyArray) -> IntArray:
    """Return class numbers; labels that are no class (of rows without weight) get 0."""
    place = np.searchsorted(classes, y).clip(0, len(classes) - 1)
    return np.where(classes[place] == y, place, 0).astype(np.intp)


@dataclass(eq=False, repr=False)
class LSSVMRegressor(MultiOutputMixin, RegressorMixin, KernelEstimator):
    """The model for tables: predicts numbers from a raw data frame.

    Exact least squares support vector machines with several kernels and input scales, metrics
    learned from gradients, leaves for many rows, stacked on predictions for held-out rows. No
    settings are needed.

    Parameters
    ----------
    preset : {"balanced", "fast", "best"}, default="balanced"
        How much is tried. "fast": at most two configurations, in small leaves; "best": up to six,
        more rounds, two trees of large leaves.
    time_limit : float, default=None
        Seconds that ``fit`` should stay below: stages are shortened or skipped. Without it the
        result does not depend on the speed of the machine.
    scoring : str or callable, default=None
        A scorer of scikit-learn: configurations and stacks are chosen by it, and ``best_score_`` is
        its value for held-out predictions. None is R2; configurations are then chosen by squared
        errors. C, gamma, metrics and weights are always those of the smallest squared errors.
    drop : bool or list of str, default=True
        Columns to drop: a list names some; True drops those that are constant, empty, equal to
        another one or ids, False none that can be used. A warning, ``summary_`` and
        ``preparations_[...].prepared_.dropped`` name dropped columns with the reason.
    keep : list of str, default=()
        Columns that are not dropped, whatever they look like.
    ordered : mapping from columns to lists of levels, optional
        Categories whose levels have an order, such as ``{"size": ["S", "M", "L"]}``. Ordered
        categoricals of pandas and Arrow are known.
    scaling : "auto", {"standardised", "quantiles"} or a list of them, default="auto"
        Scalings of the inputs that are tried.
    kernel : "auto", {"rbf", "exponential", "laplacian"} or a list of them, default="auto"
        Kernels that are tried.
    metric : "auto", "diagonal", "full", None or array, default="auto"
        "auto" learns a metric of the inputs if it lowers the error on held-out rows: a full matrix,
        for the Laplacian kernel a diagonal. "diagonal" and "full" do so with that shape for all
        kernels. An array of shape (d,) or (d, d) multiplies the d prepared features, whose names
        are ``preparations_[...].get_feature_names_out()``; nothing is learned then.
    leaf_size : "auto" or int, default="auto"
        Rows that share an exact model; "auto" decides by cost.
    n_trees : "auto" or int, default="auto"
        Different partitions of the rows into leaves that are averaged.
    n_prototypes : "auto" or int, default="auto"
        Prototypes of a global model, in addition to the leaves; 0 for none. "auto": as many as a
        fifth of the leaves' cost allows, where a few of them are about as good as small leaves;
        none with "fast", on a GPU, whose leaves are larger, and beyond 400,000 rows.
    device : None, "cpu", "cuda", "cuda:1", ... or torch.device, default=None
        Where exact models, gradients and outputs are computed; None: on this machine's cores. The
        same numbers up to rounding; by default leaves are larger on a GPU, which is faster.
    memory_budget : int, str or None, default=None
        Bytes, or a string such as "2 GB"; limits the matrices of the leaves that are computed at a
        time, and beyond 400,000 rows the rows that the model keeps. It does not count the prepared
        table, which takes 8 bytes for each number and scaling, or the outputs of all rows.
    n_jobs : int, default=None
        Threads; None for all cores.
    random_state : int, Generator, RandomState or None, default=0
        For samples of rows and folds.
    verbose : int, default=0
        1 shows what is tried and the best loss so far, 2 every step.
    target_scale : {"identity", "auto", "log"}, default="identity"
        "log" learns the logarithm of positive targets, for noise and effects that multiply.
        Predictions are the mean in the unit of the targets, exponentials times a factor from
        held-out rows; scores, quantiles and intervals are in that unit, too. `explain` and
        ``feature_importances_`` are about the logarithm. "auto" does so where targets are positive
        and skewed and ``best_score_`` of a fit with ``preset="fast"`` is larger with logarithms
        than without them; ``summary_`` tells the gain.

    Attributes
    ----------
    configurations_ : dict of lists
        What was tried: scaling, kernel, rounds of the metric, out-of-sample error (of the
        variance), weight in the stack, seconds, the stage it reached, whether the metric is a warp.
        ``pandas.DataFrame`` takes it.
    summary_ : str
        What was chosen, and why.
    best_score_ : float
        R2 (or ``scoring``) of held-out predictions: rows by models, metrics and weights that
        have not seen their targets. An estimate of the score on new rows, without the bias that R2
        has for few rows.
    metric_ : array of shape (d, d)
        Of the configuration with the largest weight, for the prepared features, or what its warp
        makes of them.
    feature_importances_ : array of shape (n_columns,)
        Mean squared slope of the model along the columns, summing to 1.
    record_ : Fit
        The frozen record.
    preparations_ : dict from scalings to TablePreparation
    leaf_size_ : int
    n_features_in_ : int
    feature_names_in_ : array of str

    Notes
    -----
    Ctrl-C during ``fit`` raises KeyboardInterrupt. Where a configuration was fitted to all rows by
    then, the estimator keeps the model of what was finished; otherwise it is unchanged.

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

    preset: str = "balanced"
    _: KW_ONLY
    time_limit: float | None = None
    scoring: Any = None
    drop: bool | Sequence[str] = True
    keep: Sequence[str] = ()
    ordered: Mapping[str, Sequence[Any]] | None = None
    scaling: Any = "auto"
    kernel: Any = "auto"
    metric: Any = "auto"
    leaf_size: Any = "auto"
    n_trees: Any = "auto"
    n_prototypes: Any = "auto"
    device: Any = None
    memory_budget: Any = None
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: int = 0
    target_scale: str = "identity"

    def __sklearn_tags__(self) -> Any:
        return takes_tables(super().__sklearn_tags__())

    @reports
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
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
            Rows of one group are held out together, in tuning, scores and calibration; metrics of
            1,500 rows or more are learned from some rows of every group.

        Returns
        -------
        LSSVMRegressor
        """
        if self.target_scale not in _TARGET_SCALES:
            choice = f"choose one of {', '.join(_TARGET_SCALES)}."
            raise not_known("target_scale", self.target_scale, choice)
        data, drawn = open_table(self, X, y, sample_weight, groups)
        if drawn is not None:
            return fit_model(self, *self._targets_of(data, drawn))
        X, y, weight = rows_of(data)
        targets = _targets(y, len(weight))
        rows, step = self._on_scale(X, targets, weight, np.asarray(y).ndim == 1, groups)
        return fit_model(self, rows, groups, step)

    def _on_scale(
        self, X: Any, targets: FloatArray, weight: FloatArray, single: bool, groups: Any
    ) -> tuple[Targets, Step | None]:
        """Return the rows with targets on their scale, and the step that has chosen it, if any."""

        def scaled(log: bool) -> Targets:
            task = _units(targets, weight, single, log)
            return Targets(X, targets, task.outputs_of(_of_used(targets, weight)), weight, task)

        def score(log: bool) -> float:
            limit = None if self.time_limit is None else self.time_limit / 8.0
            scale = "log" if log else "identity"
            trial = clone(self).set_params(preset="fast", target_scale=scale, time_limit=limit)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ColumnWarning)  # the fit gives them
                fit_model(trial, scaled(log), groups)
            return float(trial.best_score_)

        if self.target_scale != "auto":
            return scaled(self.target_scale == "log"), None
        step = choose_target_scale(targets[weight > 0], score, self.scoring)
        return scaled(step is not None and step.taken), step

    def _targets_of(self, data: Dataset, drawn: Sample) -> tuple[Targets, None, Step | None]:
        """Return a sample of very many rows, and how the targets of all are encoded."""
        block, weight = drawn.block, weights_of(drawn.block)
        targets, single = _targets(block.target, len(block)), np.asarray(block.target).ndim == 1
        rows, step = self._on_scale(block.table, targets, weight, single, None)
        task = rows.task
        assert isinstance(task, Numbers)

        def encode(y: AnyArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
            return task.outputs_of(_of_used(_targets(y, len(weight)), weight)), weight

        return replace(rows, large=all_rows(self, data, drawn, encode)), None, step

    def _publish(self, fit: Fit[Any], namespace_of: Any = None) -> Self:
        """Keep the record, and set what follows from it as attributes."""
        self.preparations_ = preparations_of(self, fit)
        return super()._publish(fit)

    def _inputs(self, X: Any, method: str = "predict") -> Inputs:
        return inputs_of(self, X)

    @property
    def metric_(self) -> FloatArray:
        """The metric of the configuration with the largest weight, shape (d, d)."""
        check_is_fitted(self)
        main = self.record_.main
        return main.metric.matrix(main.model.n_features)

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
        return float(super().score(*with_targets(self, X, y, sample_weight)))

    def predict(self, X: Any) -> Any:
        """Return the predictions for a table, shape (n,) or (n, k).

        Parameters
        ----------
        X : table of n rows, or Scan
            Rows with the columns of the fit.
        """
        rows, task = self._inputs(X), self.record_.task
        empty = task.predict(np.empty((0, task.n_outputs)))
        return rows.apply(self.record_, task.predict, empty, "predict")

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
        25 to 200 nearest training rows, or of the leaf that a row is in, whichever makes the
        held-out residuals more likely.

        The ends are those of `predict_quantile` for (1 - coverage) / 2 and (1 + coverage) / 2, so
        that new targets are as often above as below. Where signs of the residuals do not show that
        they are skewed, and below 100 rows, both ends are at the same distance. With groups the
        quantiles are corrected for the number of groups, as new rows are of new groups.
        """
        coverage = check_coverage(coverage)
        task, raw, spread, residuals = self._local_residuals(X, "predict_interval")
        return intervals(task, raw, spread, residuals, coverage)

    def predict_quantile(self, X: Any, q: float | Sequence[float] = 0.5) -> FloatArray:
        """Return quantiles of the targets of new rows.

        Parameters
        ----------
        X : table of n rows
            Rows with the columns of the fit.
        q : float or sequence of float, default=0.5
            Levels, between 0 and 1.

        Returns
        -------
        array of shape (n,) or (n, k) for a float, with one more axis for several levels
            Non-decreasing in the levels.

        Notes
        -----
        Prediction plus local error times the quantile of held-out residuals in units of their local
        errors, as in `predict_interval`. The shape of the distribution is the same for all rows,
        location and width are not. Levels that there are too few rows for are infinite, with a
        warning.

        Examples
        --------
        >>> import numpy as np
        >>> from lssvm import LSSVMRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-3, 3, (300, 1))
        >>> y = np.sin(X[:, 0]) + rng.exponential(0.3, 300)
        >>> model = LSSVMRegressor("fast").fit(X, y)
        >>> low, middle, high = model.predict_quantile(X, [0.1, 0.5, 0.9]).T
        >>> bool(np.mean(high - middle) > 1.5 * np.mean(middle - low))
        True
        """
        levels = [check_coverage(level, "q") for level in np.ravel(q)]
        if not levels:
            raise not_usable("q", q, "give a level between 0 and 1, or several.")
        task, raw, spread, residuals = self._local_residuals(X, "predict_quantile")
        factors = np.array([residuals.quantiles(levels, j) for j in range(task.n_outputs)])
        for j in np.flatnonzero(~np.isfinite(factors).all(axis=1))[:1]:
            residuals.warn_of_few(f"quantiles of {levels}", "levels nearer to 0.5", int(j))
        ends = local_ends(task, raw, spread, factors)
        return ends[..., 0] if np.ndim(q) == 0 else ends

    def _local_residuals(
        self, X: Any, method: str
    ) -> tuple[Numbers, FloatArray, FloatArray, Residuals]:
        """Return the task, outputs (n, k), their local errors, and held-out residuals."""
        rows = self._inputs(X, method)
        fit: TableFit = self.record_
        fit.need("prediction", "Intervals")
        residuals, features = fit.calibrated, rows.features()
        assert isinstance(residuals, Residuals) and isinstance(fit.task, Numbers)
        raw = fit.outputs(features, rows.backend)
        return fit.task, raw, local_error(fit, features, len(raw), residuals.nearby), residuals

    def compress(self, n_support: int | Sequence[int] = 200) -> Self | list[Self]:
        """Return a small model that approximates this one.

        Parameters
        ----------
        n_support : int or sequence of int, default=200
            Support vectors that the small model keeps. A sequence gives a path of sizes.

        Returns
        -------
        estimator, or list of them
            Fitted: it takes the same raw columns, and it can be saved. Its ``best_score_``,
            and its intervals come from rows that models of its size were not fitted to;
            ``summary_`` compares score, size and time of prediction with those of this model. It
            cannot learn or forget rows.

        Notes
        -----
        A fixed-size model with the inputs, the kernel and the metric of one configuration, fitted
        to the out-of-sample outputs of the leaves of this model (below 5,000 rows: to the targets),
        its prototypes reduced by SPFS ([Mall2014]_); see
        `lssvm.fitting.compression.compress_table`.
        """
        return compress_model(self, n_support)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows: their leaves are solved again; preparation, metric, tree, C and gamma stay.

        Parameters
        ----------
        X : table of n rows
            New rows, with the columns of the fit.
        y : array-like of shape (n,) or (n, k)
            Their targets.
        sample_weight : array-like of shape (n,), optional
            Their weights, in the units of the fit; None: all are one.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight)
        return change_model(self, *self._encoded(X, y, sample_weight), forget=False)

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
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
        check_is_fitted(self)
        return change_model(self, *self._encoded(X, y, sample_weight), forget=True)

    def _encoded(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, FloatArray, FloatArray]:
        """Return rows that are added or removed, with targets and weights."""
        X, y, weight = with_targets(self, X, y, sample_weight)
        task = self.record_.task
        assert isinstance(task, Numbers)
        return X, task.outputs_of(_of_used(_targets(y, len(weight)), weight)), weight


def _targets(y: Any, n: int) -> FloatArray:
    """Return targets of n rows as numbers, shape (n, k)."""
    if y is None:
        raise InvalidInputError(
            "requires y to be passed, but the target y is None: give one number per row. A scan "
            "has no target unless it is named: scan(..., target=...)."
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


_TARGET_SCALES = ("identity", "auto", "log")


def _of_used(targets: FloatArray, weight: FloatArray) -> FloatArray:
    """Return targets (n, k) with ones in the rows of weight 0, whose targets may be anything."""
    return np.where(weight[:, None] > 0, targets, 1.0)


def _units(targets: FloatArray, weight: FloatArray, single: bool, log: bool) -> Numbers:
    """Return the task of targets, or logarithms, in units of mean and standard deviation."""
    used = weight > 0
    smearing = np.ones(targets.shape[1]) if log else None
    whole = Numbers(targets.shape[1], single, smearing=smearing)
    targets = whole.outputs_of(_of_used(targets, weight))[used]
    shift = np.average(targets, axis=0, weights=weight[used])
    spread = np.sqrt(np.average((targets - shift) ** 2, axis=0, weights=weight[used]))
    tiny = np.finfo(np.float64).eps * np.maximum(np.abs(shift), 1.0)
    scale = np.where(spread > tiny, spread, 1.0)
    return Numbers(targets.shape[1], single, shift, scale, smearing)
