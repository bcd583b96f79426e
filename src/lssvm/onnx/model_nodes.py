"""A fitted estimator of this package as ONNX operators."""

from __future__ import annotations

from dataclasses import dataclass

from lssvm._core.errors import InvalidInputError
from lssvm.estimators import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVC, GreedyLSSVR
from lssvm.estimators.base import KernelClassifier, KernelEstimator, KernelRegressor
from lssvm.onnx.decision_nodes import add_class_scores, add_decision, class_labels
from lssvm.onnx.graph import Tensor, Value, element_type
from lssvm.onnx.interval_nodes import add_interval
from lssvm.onnx.kernel_nodes import add_expansion
from lssvm.onnx.probability_nodes import add_probabilities
from lssvm.tasks import Classes
from lssvm.uncertainty import Probabilities

CLASSIFIERS = (LSSVC, FixedSizeLSSVC, GreedyLSSVC)
REGRESSORS = (LSSVR, FixedSizeLSSVR, GreedyLSSVR)


def probabilities_of(model: KernelClassifier, wanted: bool | None) -> Probabilities | None:
    """Return the calibrated maps of a classifier.

    Parameters
    ----------
    model : KernelClassifier
    wanted : bool or None
        None: None is returned where there are no maps; True: that is an error.
    """
    if wanted is False:
        return None
    if model.calibration is None:
        if wanted:
            raise InvalidInputError(
                "probabilities=True but the model has none: fit with calibration='auto', or leave "
                "probabilities out."
            )
        return None
    try:
        return model._probabilities()
    except InvalidInputError:  # too few rows to calibrate on, or a model cut short
        if wanted:
            raise
        return None


@dataclass(frozen=True)
class Decision:
    """Values of a classifier in a graph: outputs, scores, class numbers, probabilities."""

    scores: Tensor
    index: Tensor
    probabilities: Tensor | None

    @classmethod
    def add(cls, model: KernelClassifier, X: Tensor, wanted: bool | None) -> Decision:
        """Add a classifier for rows ``X`` (n, d)."""
        calibrated = probabilities_of(model, wanted)
        raw, task = add_expansion(X, model.record_), model.record_.task
        assert isinstance(task, Classes)
        scores, index = add_decision(task.code, task.decoding, raw)
        if calibrated is None:
            return cls(scores, index, None)
        by_class = scores
        if task.n_classes == 2:
            by_class = add_class_scores(task.code, task.decoding, raw)
        return cls(scores, index, add_probabilities(calibrated, raw, by_class, index))


def _no_interval(model: KernelEstimator) -> InvalidInputError:
    return InvalidInputError(
        f"interval= is for LSSVR and FixedSizeLSSVR; {type(model).__name__} has no prediction "
        "intervals in ONNX: leave it out."
    )


def add_outputs(
    model: KernelEstimator, X: Tensor, wanted: bool | None, interval: float | None
) -> dict[str, Value]:
    """Add a model for rows ``X`` (n, d); return its outputs by their usual names.

    Parameters
    ----------
    model : classifier or regressor
    X : Tensor
    wanted : bool or None
        Whether a classifier is to have probabilities, see `probabilities_of`.
    interval : float or None
        Coverage of a regressor's intervals, where it is to have some.
    """
    graph, kind = X.graph, element_type(X.graph.dtype)
    if not isinstance(model, KernelClassifier):
        if wanted:
            raise InvalidInputError(
                "probabilities=True but the model is a regressor: leave it out."
            )
        tail = (model.record_.coef.shape[1],)
        prediction = add_expansion(X, model.record_)
        values = {"prediction": prediction}
        if interval is not None:
            if not isinstance(model, KernelRegressor) or not hasattr(model, "predict_interval"):
                raise _no_interval(model)
            values["lower"], values["upper"] = add_interval(model, X, prediction, interval)
        return {name: Value(value.name, kind, tail) for name, value in values.items()}
    if interval is not None:
        raise _no_interval(model)
    labels = class_labels(model.classes_)
    decision = Decision.add(model, X, wanted)
    K = len(labels)
    label = graph.node("Gather", graph.constant(labels), decision.index)
    # Tools look for probabilities in the second output, as skl2onnx writes them.
    outputs = {"label": Value(label.name, element_type(labels.dtype), ())}
    if decision.probabilities is not None:
        outputs["probabilities"] = Value(decision.probabilities.name, kind, (K,))
    return outputs | {"scores": Value(decision.scores.name, kind, (1 if K == 2 else K,))}
