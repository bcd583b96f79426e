"""The classifier for tables."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from lssvm._core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.codes import Code
from lssvm.data.dataset import Dataset
from lssvm.data.sampling import Sample
from lssvm.estimators.table_model import TableModel, share_documentation, weights
from lssvm.estimators.table_scoring import ClassScorer, NumberScorer, decide
from lssvm.fitting import Problem, TableContext, TableFit
from lssvm.fitting.table_work import Clock
from lssvm.tasks import Classes, Numbers
from lssvm.tasks.targets import check_labels
from lssvm.uncertainty import Probabilities, check_coverage


@share_documentation("the accuracy")
@dataclass(eq=False, repr=False)
class LSSVMClassifier(ClassifierMixin, TableModel):
    """The model for tables: predicts classes from a raw data frame.

    Exact least squares support vector machines with several kernels and input scales, metrics
    learned from gradients, parts for many rows, stacked on predictions for held-out rows. No
    settings are needed.

    Parameters
    ----------
    %(parameters)s
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; they multiply ``sample_weight``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    %(attributes)s

    Notes
    -----
    %(notes)s

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

    _: KW_ONLY
    class_weight: Any = None

    classes_: AnyArray = field(init=False)
    code_: Code = field(init=False)
    probabilities_: Probabilities = field(init=False)

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> LSSVMClassifier:
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
            Rows of one group are always held out together.

        Returns
        -------
        LSSVMClassifier
        """
        data, drawn = self._open(X, y, sample_weight, groups, classes=True)
        if drawn is not None:
            return self._fit_many(data, drawn)
        rows = data.read()
        X, y, weight = rows.table, rows.target, weights(rows)
        y = _labels(y)
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
        labels = _numbers(classes, y)
        scored = weight  # a scorer does not get the weights of classes
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            weight = weight * compute_sample_weight("balanced", y)
        else:
            weight = weight * _factors(classes, self.class_weight)[labels]
        task = Classes.of(classes, multiclass="ova")
        Y = np.asarray(task.code.matrix[labels], dtype=np.float64)
        k = Y.shape[1]
        unit = np.zeros(k), np.ones(k)
        self._fit_numbers(X, y, Y, labels, weight, groups, task, *unit, scored=scored)
        return self

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is right.

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

    def _fit_many(self, data: Dataset, drawn: Sample) -> LSSVMClassifier:
        """Fit a table of very many rows: everything by a sample, the parts by all rows."""
        classes, number = drawn.classes, drawn.sizes
        assert classes is not None and number is not None
        check_classification_targets(classes)
        if len(classes) < 2:
            raise InvalidInputError(
                f"The data have 1 class, {classes.tolist()}: a classifier needs at least two."
            )
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            factor = number.sum() / (len(classes) * number)
        else:
            factor = _factors(classes, self.class_weight)
        task = Classes.of(classes, multiclass="ova")
        codes = np.asarray(task.code.matrix, dtype=np.float64)

        def encode(y: AnyArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
            labels = _numbers(classes, _labels(y))
            return codes[labels], weight * factor[labels]

        rows, k = drawn.block, codes.shape[1]
        y, scored = _labels(rows.target), weights(rows)
        Y, weight = encode(y, scored)
        labels, unit = _numbers(classes, y), (np.zeros(k), np.ones(k))
        large = self._all_rows(data, drawn, encode)
        self._fit_numbers(rows.table, y, Y, labels, weight, None, task, *unit, large, scored)
        return self

    def _attributes(self, fit: TableFit, context: TableContext) -> dict[str, Any]:
        """Return the fitted attributes of a record."""
        assert isinstance(context.task, Classes)
        assert isinstance(context.calibration, Probabilities)
        return super()._attributes(fit, context) | {
            "classes_": context.task.classes,
            "code_": context.task.code,
            "probabilities_": context.calibration,
        }

    def _scorer(
        self, problem: Problem, task: Classes | Numbers, shift: FloatArray, scale: FloatArray
    ) -> ClassScorer:
        """Return what scores held-out outputs of a problem."""
        assert isinstance(task, Classes)
        assert problem.classes is not None
        return ClassScorer(task, problem.classes, problem.score_weight, self.scoring)

    def _calibrated(
        self,
        problem: Problem,
        fit: TableFit,
        context: TableContext,
        scorer: ClassScorer | NumberScorer,
        clock: Clock,
    ) -> TableContext:
        """Return the context with the score and the probabilities of the held-out outputs."""
        assert isinstance(scorer, ClassScorer)
        good = np.flatnonzero(np.isfinite(fit.held_out).all(axis=1))
        outputs = fit.held_out[good]
        score = scorer.score(outputs, good)
        return replace(context, best_score=score, calibration=scorer.calibrated(outputs, good))

    def decision_function(self, X: Any) -> FloatArray:
        """Return the outputs: (n,) for two classes (positive: the second), else (n, n_classes).

        Parameters
        ----------
        X : table of n rows, or Scan
            Rows with the columns of the fit.
        """
        outputs = self._outputs(X)
        return np.asarray(outputs[:, 0] if outputs.shape[1] == 1 else outputs)

    def predict(self, X: Any) -> AnyArray:
        """Return the classes of a table, shape (n,).

        Parameters
        ----------
        X : table of n rows, or Scan
            Rows with the columns of the fit.
        """
        decided = decide(self._outputs(X))
        return np.asarray(self.classes_[decided])

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes, calibrated on held-out outputs.

        Parameters
        ----------
        X : table of n rows
            Rows with the columns of the fit.

        Returns
        -------
        array of shape (n, n_classes)
        """
        outputs = self._outputs(X)
        tuned = self.scoring is not None  # decisions need not be those of the largest probability
        return np.asarray(self.probabilities_.of(outputs, None if tuned else decide(outputs)))

    def predict_set(self, X: Any, coverage: float = 0.9) -> BoolArray:
        """Return which classes belong to a set that holds the true one with a given probability.

        Parameters
        ----------
        X : table of n rows
            Rows with the columns of the fit.
        coverage : float, default=0.9
            Probability with which the true class is in the set.

        Returns
        -------
        bool array of shape (n, n_classes)
        """
        coverage = check_coverage(coverage)
        outputs = self._outputs(X)
        self.record_.need("prediction", "Prediction sets")
        return np.asarray(
            self.probabilities_.sets(
                outputs, decide(outputs), coverage, tuned=self.scoring is not None
            )
        )

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> LSSVMClassifier:
        """Add rows: their parts are solved again; preparation, metric, tree, C and gamma are kept.

        Parameters
        ----------
        X : table of n rows
            Rows with the columns of the fit.
        y : array of shape (n,)
            Of the classes that the first fit has met.
        classes : array, optional
            Checked against those of the first call, where given.
        sample_weight : array of shape (n,), optional
            Weight of every row; a weight of 2 counts as the row twice.
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
        self._change(X, y, sample_weight, forget=True)
        return self

    def _change(self, X: Any, y: Any, sample_weight: Any, *, forget: bool) -> None:
        X, y, weight = self._with_targets(X, y, sample_weight)
        y = column_or_1d(y)
        strange = np.setdiff1d(y, self.classes_)
        if len(strange):
            raise InvalidInputError(
                f"y holds the classes {strange.tolist()}, which the fit has not met: fit anew with "
                "rows of all classes."
            )
        if isinstance(self.class_weight, str):
            raise InvalidInputError(
                f"partial_fit and forget need class_weight=None or a dict, not "
                f"{self.class_weight!r}: what is balanced changes with every row. Give the weights "
                "of the classes, or sample_weight."
            )
        labels = _numbers(self.classes_, y)
        weight = weight * _factors(self.classes_, self.class_weight)[labels]
        Y = np.asarray(self.code_.matrix[labels], dtype=np.float64)
        self._update(X, Y, weight, forget=forget)


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


def _factors(classes: AnyArray, class_weight: Any) -> FloatArray:
    """Return the weights (c,) of the classes that a dict gives, or ones."""
    task = Classes.of(classes, multiclass="ova", class_weight=class_weight)
    return np.asarray(task.table(np.ones(len(classes))).factors)


def _numbers(classes: AnyArray, y: AnyArray) -> IntArray:
    """Return class numbers; labels that are no class (of rows without weight) get 0."""
    place = np.searchsorted(classes, y).clip(0, len(classes) - 1)
    return np.where(classes[place] == y, place, 0).astype(np.intp)
