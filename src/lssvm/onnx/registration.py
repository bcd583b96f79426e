"""Converters of this package's estimators for skl2onnx."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from lssvm._core.arrays import AnyArray
from lssvm._core.errors import InvalidInputError
from lssvm.onnx.expansions import add_fit
from lssvm.onnx.graph import Graph, Tensor, need_skl2onnx, tensor
from lssvm.onnx.models import CLASSIFIERS, REGRESSORS, add_classifier, class_labels

_OLDEST = 13  # version of the operators from which ReduceSum takes its axes as an input
_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [False, True],
    "raw_scores": [True, False],
}


def register() -> None:
    """Register with skl2onnx converters for the classifiers and regressors of this package.

    Importing `lssvm.onnx` does it already where skl2onnx is installed; doing it again changes
    nothing.

    Notes
    -----
    A classifier has the outputs that skl2onnx gives to `sklearn.svm.SVC`: ``label`` and
    ``probabilities``. The second one holds decision values, of shape (rows, n_classes), with the
    option ``raw_scores=True`` or where the model was fitted with ``calibration=None``; for two
    classes these are -s and s. The options ``zipmap``, ``nocl`` and ``output_class_labels`` mean
    what they mean there. A regressor has the output ``variable``.

    Inside the graph numbers are float64 whatever the inputs are; the outputs have the type of the
    inputs. With float32 inputs the steps before ours compute in float32: give float64 inputs
    (``X.astype(float)``) where labels have to agree exactly.

    Examples
    --------
    >>> import numpy as np
    >>> import skl2onnx
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from lssvm import LSSVC
    >>> from lssvm.onnx import register
    >>> register()
    >>> X = np.arange(20.0)[:, None]
    >>> model = make_pipeline(StandardScaler(), LSSVC(C=1.0)).fit(X, X[:, 0] > 9)
    >>> converted = skl2onnx.to_onnx(model, X, options={"zipmap": False})
    >>> [output.name for output in converted.graph.output]
    ['label', 'probabilities']
    """
    skl2onnx = need_skl2onnx()
    add = skl2onnx.update_registered_converter
    for classifier in CLASSIFIERS:
        alias = f"Lssvm{classifier.__name__}"
        add(classifier, alias, _classifier_shapes, _convert, options=_OPTIONS)
    for regressor in REGRESSORS:
        add(regressor, f"Lssvm{regressor.__name__}", _regressor_shapes, _convert)


class ContainerGraph(Graph):
    """A part of a graph that skl2onnx puts together."""

    def __init__(self, scope: Any, container: Any) -> None:
        super().__init__(np.float64)
        self.scope, self.container = scope, container

    def new_name(self, hint: str) -> str:
        """Return a name that no other value has."""
        return str(self.scope.get_unique_variable_name(f"lssvm_{hint}"))

    def _add(
        self, op: str, inputs: list[str], outputs: list[str], domain: str, attributes: Any
    ) -> None:
        name = self.scope.get_unique_operator_name(f"lssvm_{op}")
        self.container.add_node(op, inputs, outputs, op_domain=domain, name=name, **attributes)

    def _store(self, array: AnyArray, name: str) -> None:
        content = tensor(array, name)
        values = list(content.string_data) if array.dtype.kind in "OUS" else content
        self.container.add_initializer(name, content.data_type, list(array.shape), values)


def convert_imputer(scope: Any, operator: Any, container: Any) -> None:
    """Convert `SimpleImputer` of float64 by standard operators.

    The operator Imputer that skl2onnx takes keeps its values in float32, and onnxruntime has it for
    float32 alone.
    """
    from skl2onnx.common.data_types import DoubleTensorType
    from skl2onnx.operator_converters.imputer_op import convert_sklearn_imputer

    imputer, values = operator.raw_operator, operator.inputs
    double = all(isinstance(value.type, DoubleTensorType) for value in values)
    missing = imputer.missing_values
    kept = len(imputer.statistics_) == operator.outputs[0].type.shape[1]
    if not (double and kept and isinstance(missing, float) and np.isnan(missing)):
        convert_sklearn_imputer(scope, operator, container)
        return
    graph = ContainerGraph(scope, container)
    x = graph.concat([graph.tensor(value.full_name) for value in values])
    filled = graph.node("Where", x.is_nan(), imputer.statistics_[None, :], x)
    graph.rename(filled.name, operator.outputs[0].full_name)


def _check_input(operator: Any) -> None:
    from skl2onnx.common.data_types import StringTensorType

    model = operator.raw_operator
    if hasattr(model, "preparation_"):
        raise InvalidInputError(
            f"{type(model).__name__} was fitted to a scan and prepares raw columns itself: use "
            "lssvm.onnx.export(model, path)."
        )
    if any(isinstance(value.type, StringTensorType) for value in operator.inputs):
        raise InvalidInputError(
            f"{type(model).__name__} needs numbers but a step before it gives strings: encode them."
        )


def _labels(operator: Any) -> AnyArray:
    """Return the labels as skl2onnx writes them: integers or strings."""
    model = operator.raw_operator
    if operator.scope_inst.get_options(model, {"nocl": False})["nocl"]:
        return np.arange(len(model.classes_))
    labels = class_labels(model.classes_)
    if labels.dtype.kind != "O":
        whole = labels.astype(np.int64)
        if not np.array_equal(whole, labels):
            raise InvalidInputError(
                f"The classes {labels.tolist()[:5]} are no whole numbers, as labels of skl2onnx "
                "have to be: use lssvm.onnx.export, or fit with integers or strings."
            )
        labels = whole
    return labels


def _real_type(operator: Any) -> Any:
    """Return the type of outputs: double for double inputs, else float."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    double = isinstance(operator.inputs[0].type, DoubleTensorType)
    return DoubleTensorType if double else FloatTensorType


def _classifier_shapes(operator: Any) -> None:
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    _check_input(operator)
    labels = _labels(operator)
    n = operator.inputs[0].get_first_dimension()
    kind = StringTensorType if labels.dtype.kind == "O" else Int64TensorType
    operator.outputs[0].set_type(kind([n]))
    operator.outputs[1].set_type(_real_type(operator)([n, len(labels)]))


def _regressor_shapes(operator: Any) -> None:
    _check_input(operator)
    n = operator.inputs[0].get_first_dimension()
    width = operator.raw_operator.record_.coef.shape[1]
    operator.outputs[0].set_type(_real_type(operator)([n, width]))


def _convert(scope: Any, operator: Any, container: Any) -> None:
    model = operator.raw_operator
    if container.target_opset < _OLDEST:
        raise InvalidInputError(
            f"target_opset={container.target_opset} is too old for models of this package: give "
            f"{_OLDEST} or more."
        )
    graph = ContainerGraph(scope, container)
    inputs = [graph.tensor(value.full_name).cast(np.float64) for value in operator.inputs]
    X = graph.concat(inputs)
    outputs = operator.outputs
    if not is_classifier(model):
        value = add_fit(X, model.record_)
        _finish(operator, value, outputs[0])
        return
    raw_scores = container.get_options(model, {"raw_scores": False})["raw_scores"]
    scores, index, p = add_classifier(model, X, False if raw_scores else None)
    label = graph.node("Gather", graph.constant(_labels(operator)), index)
    graph.rename(label.name, outputs[0].full_name)
    if p is None:
        p = graph.concat([-scores, scores]) if len(model.classes_) == 2 else scores
    _finish(operator, p, outputs[1])


def _finish(operator: Any, value: Tensor, output: Any) -> None:
    """Give a value to an output, in the type of that."""
    from skl2onnx.common.data_types import DoubleTensorType

    double = _real_type(operator) is DoubleTensorType
    typed = value.cast(np.float64 if double else np.float32)
    typed.graph.rename(typed.name, output.full_name)
