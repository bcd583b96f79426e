"""The classifier for tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import assert_all_finite
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.estimators.table_model import TableModel, check_weight, held_out_scorer
from lssvm.recipes import Problem, TableContext, TableFit
from lssvm.tasks import Classes
from lssvm.uncertainty import OutOfFold, Probabilities, calibrate, check_coverage


class LSSVMClassifier(ClassifierMixin, TableModel):
    """The model for tables: classes from a data frame as it is.

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
        Scorer for ``best_score_``, by held-out predictions; None is the accuracy. It does not
        change the model, which minimises squared errors.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; they multiply ``sample_weight``.
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
    classes_ : array of shape (n_classes,)
    configurations_ : dict of lists
        What was tried: inputs, kernel, rounds of the metric, out-of-sample error (of the variance),
        weight in the stack, seconds, the stage it reached. ``pandas.DataFrame`` takes it.
    summary_ : str
        What was chosen, and why.
    best_score_ : float
        Accuracy (or ``scoring``) of held-out predictions: rows by models, metrics and weights that
        have not seen their classes.
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
    >>> from lssvm.estimators.table_classifier import LSSVMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> model = LSSVMClassifier("fast").fit(X, y)
    >>> bool(model.best_score_ > 0.85), model.predict(np.array([[1.0, 1.0]])).tolist()
    (True, ['same'])
    """

    def __init__(
        self,
        preset: str = "balanced",
        *,
        time_limit: float | None = None,
        scoring: Any = None,
        class_weight: Any = None,
        inputs: Any = "auto",
        kernel: Any = "auto",
        metric: Any = "auto",
        part_size: Any = "auto",
        n_trees: Any = "auto",
        device: Any = None,
        memory_budget: Any = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            preset,
            time_limit=time_limit,
            scoring=scoring,
            inputs=inputs,
            kernel=kernel,
            metric=metric,
            part_size=part_size,
            n_trees=n_trees,
            device=device,
            memory_budget=memory_budget,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> LSSVMClassifier:
        """Fit the model.

        Parameters
        ----------
        X : data frame, Arrow table, mapping of columns, or array of shape (n, d)
        y : array of shape (n,)
            Classes: text, numbers or booleans.
        sample_weight : array of shape (n,), optional
        groups : array of shape (n,), optional
            Rows of one group are left out together wherever rows are left out.

        Returns
        -------
        LSSVMClassifier
        """
        weight = check_weight(X, sample_weight)
        if y is None:
            raise InvalidInputError(
                "requires y to be passed, but the target y is None: give one class per row."
            )
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        if len(y) != len(weight):
            raise InvalidInputError(
                f"y has {len(y)} classes but X has {len(weight)} rows: give one for each row. "
                "(inconsistent numbers of samples)"
            )
        classes = np.unique(y[weight > 0])
        if len(classes) < 2:
            raise InvalidInputError(
                f"The data have 1 class, {classes.tolist()}, after rows of weight 0 were "
                "left out: a classifier needs at least two classes."
            )
        if self.class_weight is not None:
            weight = weight * compute_sample_weight(self.class_weight, y)
        labels = _numbers(classes, y)
        task = Classes.of(classes, multiclass="ova")
        Y = np.asarray(task.code.matrix[labels], dtype=np.float64)
        k = Y.shape[1]
        self._fit_numbers(X, y, Y, labels, weight, groups, task, np.zeros(k), np.ones(k))
        return self

    def _publish(self, fit: TableFit) -> TableContext:
        """Keep the record, and set what follows from it as attributes."""
        context = super()._publish(fit)
        assert isinstance(context.task, Classes)
        assert isinstance(context.calibration, Probabilities)
        self.classes_, self.code_ = context.task.classes, context.task.code
        self.probabilities_ = context.calibration
        return context

    def _judge(self, problem: Problem, fit: TableFit, context: TableContext) -> TableContext:
        """Calibrate and score the held-out outputs."""
        task = context.task
        assert isinstance(task, Classes)
        assert problem.classes is not None
        good = np.isfinite(fit.held_out).all(axis=1)
        outputs, labels = fit.held_out[good], problem.classes[good]
        weight = problem.weight[good]
        probabilities = calibrate(OutOfFold(outputs, labels, weight), task.code)
        decided = _decide(outputs)
        predicted, truth = task.classes[decided], task.classes[labels]
        if self.scoring is None:
            score = float(accuracy_score(truth, predicted, sample_weight=weight))
        else:
            said = {
                "predict": predicted,
                "predict_proba": probabilities.of(outputs, decided),
                "decision_function": outputs[:, 0] if outputs.shape[1] == 1 else outputs,
                "classes": task.classes,
            }
            score = held_out_scorer(self.scoring, said, truth, weight)
        return replace(context, best_score=score, calibration=probabilities)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the outputs: (n,) for two classes (positive: the second), else (n, n_classes)."""
        outputs = self._outputs(X)
        return np.asarray(outputs[:, 0] if outputs.shape[1] == 1 else outputs)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the classes of a table, shape (n,)."""
        decided = _decide(self._outputs(X))
        return np.asarray(self.classes_[decided])

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes, calibrated on held-out outputs.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        array of shape (n, n_classes)
        """
        outputs = self._outputs(X)
        return np.asarray(self.probabilities_.of(outputs, _decide(outputs)))

    def predict_set(self, X: Any, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Return which classes belong to a set that holds the true one with a given probability.

        Parameters
        ----------
        X : table of n rows
        coverage : float, default=0.9

        Returns
        -------
        bool array of shape (n, n_classes)
        """
        coverage = check_coverage(coverage)
        outputs = self._outputs(X)
        self.record_.need("prediction", "Prediction sets")
        return np.asarray(self.probabilities_.sets(outputs, _decide(outputs), coverage))

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> LSSVMClassifier:
        """Add rows: their parts are solved again, preparation, metric, tree, C and gamma stay.

        Parameters
        ----------
        X : table of n rows
        y : array of shape (n,)
            Of the classes that the first fit has met.
        classes : array, optional
            Checked against those of the first call, where given.
        sample_weight : array of shape (n,), optional
        """
        if not hasattr(self, "record_"):
            self.fit(X, y, sample_weight)
            missing = set() if classes is None else set(np.asarray(classes)) - set(self.classes_)
            if missing:
                raise InvalidInputError(
                    f"classes names {sorted(missing)}, of which the first rows have none: begin "
                    "with rows of every class."
                )
            return self
        self._change(X, y, sample_weight, forget=False)
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> LSSVMClassifier:
        """Take rows away that were learned with these classes and weights."""
        self._change(X, y, sample_weight, forget=True)
        return self

    def _change(self, X: Any, y: Any, sample_weight: Any, *, forget: bool) -> None:
        weight = check_weight(X, sample_weight)
        y = column_or_1d(y)
        strange = np.setdiff1d(y, self.classes_)
        if len(strange):
            raise InvalidInputError(
                f"y holds the classes {strange.tolist()}, which the fit has not met: fit anew with "
                "rows of all classes."
            )
        if self.class_weight is not None:
            raise InvalidInputError(
                "partial_fit and forget need class_weight=None: give sample_weight instead."
            )
        Y = np.asarray(self.code_.matrix[_numbers(self.classes_, y)], dtype=np.float64)
        self._update(X, Y, weight, forget=forget)


def _numbers(classes: NDArray[Any], y: NDArray[Any]) -> IntArray:
    """Return class numbers; labels that are no class (of rows without weight) get 0."""
    place = np.searchsorted(classes, y).clip(0, len(classes) - 1)
    return np.where(classes[place] == y, place, 0).astype(np.intp)


def _decide(outputs: FloatArray) -> IntArray:
    """Return class numbers: the sign of one output, the largest of several."""
    if outputs.shape[1] == 1:
        return np.asarray(outputs[:, 0] > 0, dtype=np.intp)
    return np.asarray(outputs.argmax(axis=1), dtype=np.intp)
