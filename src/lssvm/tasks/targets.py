"""The two tasks, numbers and classes: targets as outputs, and outputs as predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from lssvm._core.arrays import AnyArray, Array, FloatArray, IntArray, get_namespace, pick
from lssvm._core.blocks import slices
from lssvm._core.errors import InvalidInputError, not_known, shown
from lssvm._core.random import RandomState
from lssvm.codes import Code, decode, make_code
from lssvm.data.raw import LookedUp
from lssvm.tasks.losses import (
    AbsoluteError,
    Loss,
    Misclassification,
    ScorerLoss,
    SquaredError,
    Targets,
)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Targets are numbers, one or several a row: scale * output + shift, where these are given.

    With ``smearing`` (k,) that is the logarithm of a target, and predictions of the mean are its
    exponential times ``smearing``.
    """

    n_outputs: int
    single: bool = True
    shift: FloatArray | None = None
    scale: FloatArray | None = None
    smearing: FloatArray | None = None
    classes: ClassVar[None] = None
    per_class: ClassVar[bool] = False  # moments are not summed class by class

    def groups(self) -> list[IntArray]:
        """Return the outputs that are trained on the same rows: all."""
        return [np.arange(self.n_outputs)]

    def loss(self, scoring: Any, loss: Any = "squared", centre: FloatArray | None = None) -> Loss:
        """Return what tuning minimises; ``centre`` (k,) was taken off targets and outputs."""
        if scoring is None:
            return AbsoluteError() if loss in ("huber", "absolute", "weighted") else SquaredError()
        return ScorerLoss(scoring, self if centre is None else _Centred(self, centre))

    def outputs_of(self, targets: FloatArray) -> FloatArray:
        """Return targets (t, k) as outputs are to be."""
        if self.smearing is not None:
            bad = np.flatnonzero(~(targets > 0).all(axis=1))
            if len(bad):
                raise InvalidInputError(
                    f"y has values that are not positive in {len(bad)} of {len(targets)} rows, the "
                    f"first in row {bad[0]}, but the model is one of logarithms: give positive "
                    "targets, or fit with target_scale='identity'."
                )
            targets = np.log(targets)
        return targets if self.scale is None else np.asarray((targets - self.shift) / self.scale)

    def in_units(self, raw: FloatArray) -> FloatArray:
        """Return outputs (t, k) in the units of the targets: the inverse of `outputs_of`."""
        values = raw if self.scale is None else np.asarray(raw * self.scale + self.shift)
        return values if self.smearing is None else np.exp(values)

    def mean(self, raw: FloatArray) -> FloatArray:
        """Return the predicted means (t, k) of the targets."""
        values = self.in_units(raw)
        return values if self.smearing is None else values * self.smearing

    def predict(self, raw: FloatArray) -> FloatArray:
        """Return predictions of shape (t,) or (t, k)."""
        return self.shaped(self.mean(raw))

    def shaped(self, values: FloatArray) -> FloatArray:
        """Return values (t, k) as predictions are returned, of shape (t,) or (t, k)."""
        return values[:, 0] if self.single else values

    def linear_scores(self) -> tuple[FloatArray, FloatArray]:
        """Return L (k, k) and c (k,): predictions, or their logarithms, are outputs @ L + c."""
        if self.scale is None or self.shift is None:
            return np.eye(self.n_outputs), np.zeros(self.n_outputs)
        constant = self.shift if self.smearing is None else self.shift + np.log(self.smearing)
        return np.diag(self.scale), constant

    def scores(self, raw: FloatArray) -> FloatArray:
        """Return what a scorer may need besides predictions: the outputs."""
        return raw

    def original_targets(self, targets: Targets) -> FloatArray:
        """Return targets as scorers take them."""
        return np.asarray(targets.Y[:, 0] if self.n_outputs == 1 else targets.Y)

    def check_outputs(self, Y: FloatArray) -> FloatArray:
        """Return targets of further rows, of shape (n, k)."""
        if Y.shape[1] != self.n_outputs:
            raise InvalidInputError(
                f"y has {Y.shape[1]} outputs but the model was fitted with {self.n_outputs}: give "
                "as many."
            )
        return Y


@dataclass(frozen=True, eq=False)
class _Centred:
    """Numbers that a constant was taken off, as a scorer is to see them: with it."""

    task: Numbers
    centre: FloatArray
    classes: None = None

    def predict(self, raw: FloatArray) -> FloatArray:
        return self.task.predict(raw + self.centre)

    def scores(self, raw: FloatArray) -> FloatArray:
        return raw + self.centre

    def original_targets(self, targets: Targets) -> FloatArray:
        return self.task.original_targets(replace(targets, Y=targets.Y + self.centre))


_CHUNK = 65_536  # rows looked at at a time


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Targets and weights that are the same for all rows of a class."""

    targets: FloatArray
    factors: FloatArray

    def looked_up(self, labels: IntArray) -> LookedUp:
        """Return the targets (n, k) of rows of these classes, without storing them."""
        return LookedUp(self.targets, labels)

    def row_factors(self, labels: IntArray) -> FloatArray | None:
        """Return the factors of the weights of rows of these classes; None where all are 1."""
        return self.factors[labels] if np.any(self.factors != 1.0) else None


@dataclass(frozen=True, eq=False)
class Classes:
    """Targets are labels, coded into binary problems.

    ``decoding`` is that of `lssvm.codes.decode`, or "argmax" where the outputs of one-vs-all are
    the scores of the classes themselves.
    """

    classes: AnyArray
    code: Code
    decoding: str | None = None
    targets: Any = "label"
    class_weight: Any = None

    @classmethod
    def of(
        cls,
        classes: AnyArray,
        *,
        multiclass: Any,
        decoding: str | None = None,
        targets: Any = "label",
        class_weight: Any = None,
        random_state: RandomState = None,
    ) -> Classes:
        """Check the settings of a classifier and return the task."""
        if len(classes) < 2:
            raise InvalidInputError(
                f"A classifier needs at least 2 classes but y has only one class: "
                f"{classes.tolist()} (rows of weight zero do not count)."
            )
        if decoding not in (None, "hamming", "loss"):
            raise not_known("decoding", decoding, "choose one of ('hamming', 'loss').")
        _check_targets(targets)
        code = make_code(multiclass, len(classes), random_state or 0)
        task = cls(classes, code, decoding, targets, class_weight)
        task.table(np.ones(len(classes)))  # refuses class weights that cannot be used
        return task

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def n_outputs(self) -> int:
        """Number of binary problems, k."""
        return self.code.n_problems

    @property
    def per_class(self) -> bool:
        """Whether moments are summed class by class, because targets or rows differ by class."""
        return not self.code.shares_rows or self.fisher or self.balanced

    @property
    def fisher(self) -> bool:
        """Whether targets follow from how many rows the classes have."""
        return isinstance(self.targets, str) and self.targets == "fisher"

    @property
    def balanced(self) -> bool:
        """Whether weights follow from how many rows the classes have."""
        return isinstance(self.class_weight, str) and self.class_weight == "balanced"

    def groups(self) -> list[IntArray]:
        """Return the columns of the problems that are trained on the same classes."""
        return self.code.groups()

    def table(self, counts: FloatArray) -> ClassTable:
        """Return targets and weights of the classes for rows with these (weighted) counts."""
        factors = self._factors(np.asarray(counts, dtype=np.float64))
        return ClassTable(self._scaled(counts * factors), factors)

    def _factors(self, counts: FloatArray) -> FloatArray:
        if self.class_weight is None:
            return np.ones(self.n_classes)
        if self.balanced:
            present = counts > 0
            safe = np.where(present, counts, 1.0)
            return np.where(present, counts.sum() / (np.count_nonzero(present) * safe), 1.0)
        if not isinstance(self.class_weight, dict):
            raise InvalidInputError(
                f"class_weight={self.class_weight!r} is not usable: give a dict from label to "
                "weight, 'balanced', or None."
            )
        labels = self.classes.tolist()
        unknown = [key for key in self.class_weight if key not in labels]
        if unknown:
            raise InvalidInputError(
                f"class_weight names {unknown!r}, which are not among the classes {labels!r}: use "
                "the labels found in y."
            )
        try:
            factors = np.array([float(self.class_weight.get(label, 1.0)) for label in labels])
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"class_weight={self.class_weight!r} has values that are not numbers: give a dict "
                "from label to weight."
            ) from error
        if not np.all(np.isfinite(factors) & (factors >= 0)):
            raise InvalidInputError("class_weight values must be finite and >= 0.")
        if not np.all(factors > 0):
            raise InvalidInputError(
                "class_weight is zero for a whole class: give every class a positive weight, or "
                "remove its rows."
            )
        return factors

    def _scaled(self, mass: FloatArray) -> FloatArray:
        codes = self.code.matrix.astype(np.float64)
        if isinstance(self.targets, str) and self.targets == "label":
            return codes
        if isinstance(self.targets, str):  # "fisher"
            n_plus, n_minus = mass @ (codes > 0), mass @ (codes < 0)
            total = n_plus + n_minus  # [Suykens2002, section 3.4.2]: targets -N/N2, +N/N1
            n_plus, n_minus = np.where(n_plus > 0, n_plus, 1.0), np.where(n_minus > 0, n_minus, 1.0)
            return np.where(codes > 0, total / n_plus, np.where(codes < 0, -total / n_minus, 0.0))
        t1, t2 = (float(t) for t in self.targets)
        return np.where(codes > 0, t1, np.where(codes < 0, -t2, 0.0))  # [Suykens2002, eq. (3.23)]

    def numbers(self, y: Any, where: str = "") -> AnyArray:
        """Return the class numbers of labels, all of which have to be known."""
        unseen = np.setdiff1d(distinct_labels(y), self.classes)
        if len(unseen):
            raise InvalidInputError(
                f"y has labels {unseen.tolist()}{where} that the model has not seen; it knows "
                f"{self.classes.tolist()}. Leave those rows out, or fit again with all classes."
            )
        small = np.int16 if self.n_classes < 2**15 else np.intp
        numbers = np.empty(len(y), dtype=small)
        for part in slices(len(y), _CHUNK):
            numbers[part] = np.searchsorted(self.classes, y[part])
        return numbers

    def counts(self, labels: IntArray, weight: FloatArray | None) -> FloatArray:
        """Return the weight of the rows of each class, shape (n_classes,)."""
        total = np.zeros(self.n_classes)
        for part in slices(len(labels), _CHUNK):
            total += np.bincount(labels[part], pick(weight, part), minlength=self.n_classes)
        return total

    def decide(self, raw: Array) -> Array:
        """Return class numbers (t,) from outputs (t, k), on whatever device they are."""
        xp = get_namespace(raw)
        if self.n_classes == 2:
            return xp.astype(raw[:, 0] * float(self.code.matrix[1, 0]) > 0, xp.int64)
        return xp.argmax(self._class_scores(raw), axis=1)

    def _class_scores(self, raw: Array) -> Array:
        """Return the scores (t, n_classes) of several classes."""
        return raw if self.decoding == "argmax" else decode(self.code, raw, self.decoding)

    def predict(self, raw: FloatArray) -> AnyArray:
        """Return labels (t,)."""
        return np.asarray(self.classes[self.decide(raw)])

    def scores(self, raw: FloatArray) -> FloatArray:
        """Return decision values: (t,) for two classes, else (t, n_classes)."""
        if self.n_classes == 2:
            return np.asarray(raw[:, 0] * self.code.matrix[1, 0])
        return np.asarray(self._class_scores(raw))

    def linear_scores(self) -> tuple[FloatArray, FloatArray] | None:
        """Return L (k, c) and zeros (c,): decision values are outputs times L; None for votes."""
        words = self.code.matrix.T.astype(np.float64)
        if self.n_classes == 2:
            words = words[:, 1:]
        elif self.decoding == "argmax":
            words = np.eye(self.n_classes)
        elif self.decoding == "hamming" or (self.decoding is None and not self.code.shares_rows):
            return None
        return words, np.zeros(words.shape[1])

    def original_targets(self, targets: Targets) -> AnyArray:
        """Return the labels of rows as scorers take them."""
        return np.asarray(self.classes[targets.labels])

    def loss(self, scoring: Any, loss: Any = "squared") -> Loss:
        """Return what tuning minimises."""
        return Misclassification(self.decide) if scoring is None else ScorerLoss(scoring, self)


def _check_targets(targets: Any) -> None:
    named = isinstance(targets, str) and targets in ("label", "fisher")
    pair = isinstance(targets, (tuple, list)) and len(targets) == 2
    if not named and not (pair and all(0 < float(t) < np.inf for t in targets)):
        raise InvalidInputError(
            f"targets={targets!r} is not usable: choose 'label', 'fisher', or a pair (t1, t2) of "
            "positive finite numbers for the targets +t1 and -t2."
        )


def distinct_labels(y: Any) -> AnyArray:
    """Return the labels there are, in order, reading y in chunks."""
    parts: Sequence[AnyArray] = [np.unique(y[part]) for part in slices(len(y), _CHUNK)]
    return np.unique(np.concatenate(parts)) if parts else np.unique(y)


def check_labels(y: Any) -> Any:
    """Return labels of one type, in an array of NumPy; refuse missing and mixed ones.

    What is no column of labels is returned as it is: other checks refuse it.
    """
    if y is None:
        return y
    try:  # a list of Python's objects must not become strings
        labels = np.asarray(y, dtype=object if isinstance(y, (list, tuple)) else None)
    except (TypeError, ValueError):
        return y
    if labels.ndim == 0:
        raise _one_value(y)
    if labels.size != len(labels):
        return y
    if labels.dtype.kind == "f":  # where nullable columns have gaps, too
        _refuse_missing("labels", np.isnan(labels).ravel().tolist())
    if labels.dtype != object:
        return labels if labels.dtype.kind in "biu" else y  # nullable columns without a gap
    values = labels.ravel().tolist()
    _refuse_missing("labels", [_is_missing(value) for value in values])
    kinds = {_kind_of_label(value) for value in values}
    if len(kinds) > 1:
        raise InvalidInputError(
            f"The labels in y have no common order, they are of the types {sorted(kinds)}: give "
            "labels of one type, for example y.astype(str)."
        )
    numbers = kinds <= {"bool", "number"}  # nullable columns of pandas, lists of Python's numbers
    return np.array(values).reshape(labels.shape) if numbers else y


def check_classes(y: AnyArray) -> None:
    """Refuse numbers that have fractions, which are no classes."""
    broken = np.flatnonzero(y != np.floor(y)) if y.dtype.kind == "f" else np.empty(0, np.intp)
    if len(broken):
        raise InvalidInputError(
            f"Unknown label type: continuous. y has fractions, {y[broken[0]]:g} in row "
            f"{broken[0]}: use a regressor for numbers, or give classes (text, whole numbers or "
            "booleans; y.astype(str) where every number is a class)."
        )
    check_classification_targets(y)


def _one_value(y: Any) -> InvalidInputError:
    return InvalidInputError(
        f"y is {shown(y, 60)}, one value: give one target for each row; if that is the "
        "name of a column, give the column."
    )


def _refuse_missing(what: str, missing: list[bool]) -> None:
    if any(missing):
        raise InvalidInputError(
            f"Input y contains NaN or None: the {what} of {sum(missing)} of {len(missing)} rows "
            f"are missing, the first in row {missing.index(True)}. A model needs a target for "
            "every row: leave out the rows without one."
        )


def check_numbers(y: Any) -> Any:
    """Return numbers as they are, texts and objects as numbers; refuse dates, words and gaps."""
    kind = getattr(getattr(y, "dtype", None), "kind", None)
    if y is None or (kind is not None and kind in "biufc"):
        return y
    try:
        values = np.asarray(y)
    except (TypeError, ValueError):  # other checks refuse it
        return y
    if values.dtype.kind in "mM":
        raise InvalidInputError("y holds dates or durations: turn them into numbers.")
    if values.ndim == 0:
        raise _one_value(y)
    if values.dtype.kind not in "OUST":
        return values
    rows = values.reshape(len(values), -1).tolist()
    _refuse_missing("targets", [any(map(_is_missing, row)) for row in rows])
    for i, row in enumerate(rows):
        try:
            rows[i] = [float(value) for value in row]
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                f"y has values that are not numbers, {shown(row[0])} in row {i}: give numbers, or "
                "use a classifier for classes."
            ) from error
    return np.array(rows, dtype=np.float64).reshape(values.shape)


def target_centre(Y: FloatArray, weight: FloatArray | None) -> FloatArray | None:
    """Return about the weighted means (k,) of targets; None where they are near 0, or overflow.

    In steps of a power of two above 8 standard deviations: a sample has the same as all rows, and
    nothing is taken off that costs no digits.
    """
    with np.errstate(all="ignore"):
        mean = np.average(Y, axis=0, weights=weight)
        spread = np.sqrt(np.average((Y - mean) ** 2, axis=0, weights=weight))
        step = 2.0 ** np.ceil(np.log2(8.0 * spread))
        centre = np.where(spread > 1e-12 * np.abs(mean), step * np.round(mean / step), mean)
    centre = np.where(np.isfinite(centre), centre, 0.0)
    return centre if np.any(centre != 0.0) else None


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, (float, np.floating)) and bool(value != value)


def _kind_of_label(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    return "number" if isinstance(value, (int, float, np.number)) else type(value).__name__
