"""The same model fitted again to parts of the rows: out-of-fold figures and the learning curve."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import ColumnWarning, InvalidInputError
from lssvm.codes import Coding
from lssvm.data.folds import assign_folds
from lssvm.plots.base import (
    Estimator,
    class_positions,
    fitted_model,
    has_method,
    require,
    transformed,
)
from lssvm.plots.rows import (
    MANY,
    SampledRows,
    basis,
    classifies,
    is_precomputed,
    is_table,
    n_prototypes,
    n_systems,
    parameters_of,
)
from lssvm.report import measures
from lssvm.report.measures import Predictions
from lssvm.tuning.search import Search

FOLDS = 5
FOLD_ROWS = 3000  # rows that take part in the folds
CURVE_ROWS = 4000
TABLE_ROWS = 1000  # the same for models for tables, whose copies choose for themselves
COPY_WORK = 1e9  # systems times prototypes cubed of a copy, about a second
CURVE_TEST = 1000  # rows that a point of the learning curve is measured on
SIZES = 6  # points of a learning curve
SMALLEST = 10  # rows of its first point, at least


@dataclass(eq=False)
class Subject:
    """A fitted model with the rows a report looks at.

    Attributes
    ----------
    estimator : Estimator
        As given: a model of lssvm, or a pipeline that ends in one.
    model : Estimator
        The model itself.
    train : SampledRows
    test : SampledRows or None
    predictions : ClassPredictions or NumberPredictions
        Of the test rows, or out of fold.
    checked : SampledRows
        The rows of ``predictions``.
    notes : list of str
        What a reader should know; sections add to it.
    facts : dict
        What `lssvm.report.write_report` returns; sections add to it.
    """

    estimator: Estimator
    model: Estimator
    train: SampledRows
    test: SampledRows | None
    predictions: Predictions
    checked: SampledRows
    notes: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def classification(self) -> bool:
        """Whether the model predicts classes."""
        return classifies(self.model)

    @property
    def classes(self) -> measures.ClassPredictions:
        """The predictions of a classifier."""
        return cast(measures.ClassPredictions, self.predictions)

    @property
    def numbers(self) -> measures.NumberPredictions:
        """The predictions of a regressor."""
        return cast(measures.NumberPredictions, self.predictions)

    @property
    def has_features(self) -> bool:
        """Whether rows are features, not kernel values."""
        return not is_precomputed(self.model)

    @property
    def target(self) -> str:
        """What is predicted."""
        names = self.train.target
        return (" and ".join(names) if len(names) <= 2 else f"{len(names)} targets") or "the target"

    @property
    def names(self) -> Any:
        """Names of the classes or of the outputs."""
        return self.classes.classes if self.classification else self.numbers.names

    @property
    def evaluated(self) -> str:
        """The rows that the metrics come from, in words."""
        rows = f"{len(self.checked):,} rows"
        if self.test is None:
            return f"{rows}, each predicted by a copy of the model that had not seen it"
        drawn = "" if self.test.complete else f" drawn from {self.test.n_rows:,}"
        return f"{rows}{drawn} that the model had not seen"


def copy_size(model: Estimator) -> int | None:
    """Return the most prototypes that copies of a model have; None where it has none.

    Fewer than the model has only where there are so many pairs of classes that fits are slow.
    """
    m = n_prototypes(model)
    return None if m is None else min(m, int((COPY_WORK / n_systems(model)) ** (1 / 3)))


def tuned_copy(estimator: Estimator, n: int, *, calibrate: bool = True) -> Any:
    """Return an unfitted copy with the chosen parameters as fixed ones, for about n rows.

    Parameters
    ----------
    estimator : Estimator
        Fitted: a model of lssvm, or a pipeline that ends in one.
    n : int
        Rows it will be fitted to: it has no more prototypes.
    calibrate : bool, default=True
        Whether a classifier gets probabilities.

    Notes
    -----
    Where every binary problem has its own C, the copy has their median for all. A reduced model
    keeps its support vectors as prototypes instead of being reduced again. Of a model for tables
    the copy is its configuration of the largest weight, with the settings of ``preset="fast"``.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.report.refits import tuned_copy
    >>> X = np.linspace(0, 3, 20)[:, None]
    >>> tuned_copy(LSSVR("cv", cv=4, gamma=1.0).fit(X, np.sin(X[:, 0])), 10).C > 0
    True
    """
    model = fitted_model(estimator)
    params = clone(model).get_params(deep=False)
    if is_table(model):
        best = model.record_.main
        changed = {"preset": "fast", "scoring": None, "time_limit": None, "verbose": 0}
        changed |= {"scaling": best.scaling, "kernel": best.model.kernel_name}
        changed["metric"] = "auto" if best.rounds else None
        return _in_place(estimator, clone(model).set_params(**changed))
    changes: dict[str, Any] = {"verbose": 0}
    chosen = parameters_of(model)
    C, gamma = chosen.get("C"), chosen.get("gamma")
    if C is not None:
        changes["C"] = float(np.median(C))
    if gamma is not None:
        # Tuned for every problem by itself there are as many values as problems, not as features.
        search = params.get("search")
        separate = isinstance(search, Search) and search.per_output
        changes["gamma"] = float(np.median(gamma)) if separate else gamma
    basis_rows = basis(model)
    if "n_prototypes" in params and basis_rows is not None:
        changes["n_prototypes"] = min(copy_size(model) or n, n)
        if params.get("reduction") is not None:
            changes |= {"n_prototypes": "auto", "selection": basis_rows[1]}
        elif not isinstance(params["selection"], str):
            changes["selection"] = "random"
    changes["reduction"] = None
    if isinstance(params.get("search"), Search):
        changes["search"] = replace(params["search"], checkpoint=None)
    if "multiclass" in params:
        coding = replace(Coding.of(params["multiclass"]), threshold="zero")
        none = not calibrate or n_systems(model) > MANY
        changes["multiclass"] = replace(coding, calibration=None) if none else coding
    small = clone(model).set_params(**{k: v for k, v in changes.items() if k in params})
    return _in_place(estimator, small)


def _in_place(estimator: Estimator, model: object) -> Any:
    """Return an unfitted copy of a pipeline that ends in this model, or the model itself."""
    if not isinstance(estimator, Pipeline):
        return model
    pipeline = clone(estimator)
    pipeline.steps[-1] = (pipeline.steps[-1][0], model)
    return pipeline


def fit_copy(estimator: Estimator, rows: SampledRows, *, calibrate: bool = True) -> Any:
    """Return a copy with the same parameters, fitted to other rows."""
    copy = tuned_copy(estimator, len(rows), calibrate=calibrate)
    prefix = f"{copy.steps[-1][0]}__" if isinstance(copy, Pipeline) else ""
    options = {} if rows.weight is None else {f"{prefix}sample_weight": rows.weight}
    # warnings were shown when the model was fitted
    with warnings.catch_warnings(action="ignore"):
        return copy.fit(rows.features(estimator), rows.y, **options)


def _of_a_copy() -> warnings.catch_warnings[None]:
    """Return a context for predictions of a copy: what its fewer rows lack is not for users."""
    return warnings.catch_warnings(action="ignore", category=ColumnWarning)


def out_of_fold(estimator: Estimator, rows: SampledRows) -> tuple[Predictions, SampledRows]:
    """Predict each of some rows by a copy that was fitted without it.

    Parameters
    ----------
    estimator : Estimator
    rows : SampledRows
        Training rows; at most 3,000 of them are used.

    Returns
    -------
    predictions : ClassPredictions or NumberPredictions
    rows : SampledRows
        The rows that took part.

    Notes
    -----
    Five fits at the chosen parameters. Equal rows share a fold. The parameters were chosen on the
    same rows, so that the figures are slightly too good.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVR
    >>> from lssvm.report.refits import out_of_fold
    >>> from lssvm.plots.rows import SampledRows
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> model = LSSVR(100.0, gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> predictions, _ = out_of_fold(model, SampledRows.read(model, (X, np.sin(X[:, 0]))))
    >>> bool(np.abs(predictions.Y - predictions.predicted).max() < 0.1)
    True
    """
    sample = rows.subsample(FOLD_ROWS)
    classes = np.asarray(estimator.classes_) if classifies(estimator) else None
    labels = None if classes is None else class_positions(sample.y, classes, len(sample))
    folds = assign_folds(sample.codes(), min(FOLDS, len(sample)), labels=labels, seed=0)
    predictions: list[Any] = []
    tested = []
    for test in folds.test:
        train = np.setdiff1d(np.arange(len(sample)), test)
        if len(test) == 0 or len(train) < 2:
            continue
        if labels is not None and len(np.unique(labels[train])) < 2:
            continue
        copy = fit_copy(estimator, sample.take(train))
        fold = sample.take(test)
        X = fold.features(estimator)
        weight = None if sample.weight is None else fold.block.weight
        with _of_a_copy():
            predictions.append(
                measures.predict_numbers(copy, X, fold.y, weight, rows.target)
                if classes is None
                else measures.predict_classes(copy, X, fold.y, classes, weight)
            )
        tested.append(test)
    if not predictions:
        raise InvalidInputError(
            "The rows cannot be cross-validated: without the rows that are equal, too few are left "
            "to fit a copy of the model. Give rows to test on."
        )
    return measures.join_predictions(predictions), sample.take(np.concatenate(tested))


def read_subject(estimator: Estimator, train: Any, test: Any, pos_label: Any = None) -> Subject:
    """Return an estimator with its rows and predictions: of test rows, or out of fold."""
    model = fitted_model(estimator)
    if not is_table(model):
        require(model, ("dual_coef_", "intercept_"), "a report")
    rows = SampledRows.read(estimator, train)
    if test is not None:
        checked = SampledRows.read(estimator, test)
        predictions = _positive(measures.predict_rows(estimator, checked), rows.y, pos_label)
        return Subject(estimator, model, rows, checked, predictions, checked)
    if is_precomputed(model):
        raise InvalidInputError(
            "A report on a model with kernel='precomputed' needs test=(K, y), the kernel of "
            "test rows with the training rows, because it cannot be fitted to other rows."
        )
    predictions, checked = out_of_fold(estimator, rows)
    predictions = _positive(predictions, rows.y, pos_label)
    return Subject(estimator, model, rows, None, predictions, checked)


def _positive(predictions: Predictions, y: Any, pos_label: Any) -> Predictions:
    """Return predictions with their positive class."""
    if isinstance(predictions, measures.ClassPredictions):
        positive = measures.positive_class(predictions.classes, y, pos_label)
        return replace(predictions, positive=positive)
    if pos_label is not None:
        raise InvalidInputError(
            f"pos_label={pos_label!r} is for classes, but numbers are predicted."
        )
    return predictions


def held_out_intervals(estimator: Estimator, rows: SampledRows) -> list[measures.Intervals]:
    """Return the intervals of a fifth of some rows by a copy that was fitted to the others."""
    if not has_method(fitted_model(estimator), "predict_interval") or len(rows) < 20:
        return []
    sample = rows.subsample(FOLD_ROWS)
    order, cut = np.random.default_rng(0).permutation(len(sample)), len(sample) // 5
    copy = fit_copy(estimator, sample.take(np.sort(order[cut:])))
    held_out = sample.take(np.sort(order[:cut]))
    with _of_a_copy():
        X = transformed(copy, held_out.features(estimator))
        return measures.model_intervals(fitted_model(copy), X, held_out)


SMALL = 0.1  # part of the loss that a gain has to be below to be none


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """Error against the number of training rows.

    Attributes
    ----------
    sizes : int array of shape (s,)
    error, spread : arrays of shape (s,)
        Share of wrong rows, or root of the mean squared error over the target's deviation; its
        standard error.
    gain : (float, float)
        Ends of the fall of the mean loss over the last two steps: the same rows are measured at
        every size, so that this interval is much narrower than those of the errors.
    loss : float
        Mean loss at the last size.
    n_test : int
        Rows it was measured on.
    held_out : bool
        Whether these were held out of the training rows.
    ends_in_model : bool
        Whether the last point is the model itself, not a copy.
    factor : float or array
        Half the width of the band, in standard errors.
    """

    sizes: IntArray
    error: FloatArray
    spread: FloatArray
    gain: tuple[float, float]
    loss: float
    n_test: int
    held_out: bool
    ends_in_model: bool = False
    factor: float = measures.Z95

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the band."""
        half = self.factor * self.spread
        return np.maximum(self.error - half, 0.0), self.error + half

    def verdict(self, unit: str = "rows", longer: str = "more rows") -> str:
        """Return what the end of the curve means.

        Examples
        --------
        >>> import numpy as np
        >>> from lssvm.report.refits import LearningCurve
        >>> sizes, error = np.array([10, 20, 40, 80, 160]), np.array([0.5, 0.4, 0.3, 0.2, 0.1])
        >>> LearningCurve(sizes, error, 0.01 * error, (0.1, 0.3), 0.1, 100, False).verdict()
        'The error was still falling from 40 to 160 rows: more rows would probably help.'
        """
        step = f"from {self.sizes[-3]:,} to {self.sizes[-1]:,} {unit}"
        low, high = self.gain
        if low > 0:
            return f"The error was still falling {step}: {longer} would probably help."
        if high < 0:
            return (
                f"The error rose {step}: the parameters suit fewer {unit}, or the {unit} differ "
                f"from each other. Tune again before looking for {longer}."
            )
        if high <= SMALL * self.loss:
            return f"The error no longer fell {step}: {longer} of the same kind would hardly help."
        return (
            f"The error changed {step} by less than its uncertainty: these {unit} do not show "
            f"whether {longer} would help."
        )


def learning_curve(
    estimator: Estimator, train: SampledRows, test: SampledRows | None
) -> LearningCurve | None:
    """Fit copies to ever larger parts of the training rows.

    Parameters
    ----------
    estimator : Estimator
    train : SampledRows
    test : SampledRows or None
        None: a fifth of the training rows is held out, or 1,000 rows where that is less.

    Returns
    -------
    LearningCurve or None
        None where there are too few rows for five sizes.

    Notes
    -----
    Six nested parts of at most 4,000 rows, from a 32nd on; the last point is the model itself where
    ``test`` is given and it is not a stack, whose copies are other models. The fits together cost
    about as much as one or two of the largest.
    """
    model = fitted_model(estimator)
    if copy_size(model) != n_prototypes(model):
        return None  # the copies would be other models
    order = np.random.default_rng(0).permutation(len(train))
    if test is None:
        n_test = min(len(train) // 5, CURVE_TEST)
        checked, order = train.take(np.sort(order[:n_test])), order[n_test:]
    else:
        checked = test.subsample(CURVE_TEST)
    whole = test is not None and not is_table(model)
    most = TABLE_ROWS if is_table(model) else CURVE_ROWS // (1 if test is None else 2)
    top = min(len(order) // (2 if whole else 1), most)
    sizes = np.geomspace(min(max(top // 32, SMALLEST), top), top, SIZES - whole)
    losses, counts = [], []
    for size in np.unique(sizes.round().astype(np.intp)):
        subset = train.take(np.sort(order[:size]))
        if size < SMALLEST or (classifies(estimator) and len(np.unique(subset.y)) < 2):
            continue
        copy = fit_copy(estimator, subset, calibrate=False)
        with _of_a_copy():
            losses.append(measures.row_losses(copy, checked.features(estimator), checked.y))
        counts.append(int(size))
    if whole:
        losses.append(measures.row_losses(estimator, checked.inputs(estimator), checked.y))
        counts.append(train.n_rows)
    if len(counts) < SIZES - 1 or len(checked) < SMALLEST:
        return None
    mean, spread = np.array([measures.mean_and_error(loss, checked.weight) for loss in losses]).T
    last = float(mean[-1])
    if not classifies(estimator):
        mean = np.sqrt(mean)
        spread = np.divide(spread, 2.0 * mean, out=np.zeros_like(spread), where=mean > 0)
    gain, error = measures.mean_and_error(losses[-3] - losses[-1], checked.weight)
    ends, held = (gain - 2.0 * error, gain + 2.0 * error), test is None
    return LearningCurve(np.array(counts), mean, spread, ends, last, len(checked), held, whole)
