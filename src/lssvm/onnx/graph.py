"""Graphs of ONNX operators, put together node by node."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lssvm._core.errors import MissingDependencyError

OPSET = 18
"""Version of the standard operators that `to_onnx` uses."""

ML_OPSET = 3
"""Version of the operators ai.onnx.ml; `to_onnx` uses OneHotEncoder and LabelEncoder, for text."""

ML = "ai.onnx.ml"


def need_onnx() -> Any:
    """Return the module `onnx`, or say how to install it."""
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise MissingDependencyError(
            "ONNX files need the library onnx, which is not installed: pip install 'lssvm[onnx]'"
        ) from error
    return onnx


def need_skl2onnx() -> Any:
    """Return the module `skl2onnx`, or say how to install it."""
    try:
        import skl2onnx
    except ImportError as error:
        raise MissingDependencyError(
            "Pipelines of scikit-learn need the library skl2onnx, which is not installed: "
            "pip install 'lssvm[onnx]'"
        ) from error
    return skl2onnx


def element_type(dtype: Any) -> int:
    """Return the number by which ONNX knows a type of NumPy."""
    kind = np.dtype(dtype)
    kind = np.dtype(object) if kind.kind in "US" else kind
    return int(need_onnx().helper.np_dtype_to_tensor_dtype(kind))


def tensor(array: NDArray[Any], name: str) -> Any:
    """Return an array as ONNX stores it; an array of objects holds strings."""
    onnx = need_onnx()
    if array.dtype.kind in "OUS":
        texts = [str(text).encode("utf-8") for text in array.ravel()]
        return onnx.helper.make_tensor(name, onnx.TensorProto.STRING, array.shape, texts)
    return onnx.numpy_helper.from_array(array, name)


class Graph(ABC):
    """Where nodes and constants go; values are known by their names.

    Parameters
    ----------
    dtype : float64 or float32
        What real numbers are computed in.
    """

    def __init__(self, dtype: Any = np.float64) -> None:
        self.dtype = np.dtype(dtype)
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    @abstractmethod
    def new_name(self, hint: str) -> str:
        """Return a name that no other value has."""

    @abstractmethod
    def _add(
        self, op: str, inputs: list[str], outputs: list[str], domain: str, attributes: Any
    ) -> None:
        """Add a node."""

    @abstractmethod
    def _store(self, array: NDArray[Any], name: str) -> None:
        """Add a constant."""

    def node(self, op: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operator with one output and return that."""
        return self.nodes_of(op, *inputs, n_outputs=1, domain=domain, **attributes)[0]

    def nodes_of(
        self, op: str, *inputs: str, n_outputs: int, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Add an operator and return its outputs."""
        outputs = [self.new_name(op) for _ in range(n_outputs)]
        self._add(op, list(inputs), outputs, domain, attributes)
        return outputs

    def rename(self, value: str, name: str) -> str:
        """Give a value one more name."""
        self._add("Identity", [value], [name], "", {})
        return name

    def constant(self, array: Any) -> str:
        """Add a constant of its own type."""
        values = np.asarray(array)
        content = repr(values.tolist()).encode() if values.dtype.hasobject else values.tobytes()
        key = (values.dtype.str, values.shape, sha256(content).digest())
        if key not in self._known:  # the same numbers are stored once
            self._known[key] = self.new_name("constant")
            self._store(values, self._known[key])
        return self._known[key]

    def real(self, array: Any) -> str:
        """Add a constant in the type of the graph."""
        return self.constant(np.asarray(array, dtype=self.dtype))

    def integers(self, values: Any) -> str:
        """Add a constant of integers."""
        return self.constant(np.asarray(values, dtype=np.int64))

    def cast(self, value: str, dtype: Any) -> str:
        """Turn a value into another type."""
        return self.node("Cast", value, to=element_type(dtype))

    def columns(self, value: str, which: Any) -> str:
        """Return some columns of (n, k), in the order asked for."""
        return self.node("Gather", value, self.integers(which), axis=1)

    def row_sums(self, value: str) -> str:
        """Return the sums (n, 1) of the rows of (n, k)."""
        return self.node("ReduceSum", value, self.integers([1]), keepdims=1)

    def zeros(self, like: str, *tail: int) -> str:
        """Return zeros of shape (n, *tail), where ``like`` has n rows."""
        shape = self.node("Shape", like)
        rows = self.node("Gather", shape, self.integers([0]))
        whole = self.node("Concat", rows, self.integers(tail), axis=0)
        return self.node("ConstantOfShape", whole, value=tensor(np.zeros(1, self.dtype), "value"))

    def scan(self, start: list[str], over: list[str], body: Any) -> list[str]:
        """Go through the rows of ``over`` with a state; return the last state.

        ``body`` is what `loop_body` has made.
        """
        return self.nodes_of(
            "Scan", *start, *over, n_outputs=len(start), num_scan_inputs=len(over), body=body
        )


@dataclass(frozen=True)
class Value:
    """An output or input of a model: its name, type, and shape after the rows."""

    name: str
    kind: int
    tail: tuple[int, ...]

    def info(self) -> Any:
        """Return it as ONNX declares it; the number of rows is left open."""
        shape = ["rows", *self.tail]
        return need_onnx().helper.make_tensor_value_info(self.name, self.kind, shape)


class ModelGraph(Graph):
    """A graph of our own.

    Parameters
    ----------
    dtype : float64 or float32
    prefix : str, default="lssvm/"
        Of all names that are made up.
    taken : iterable of str
        Names that must not be made up.
    """

    def __init__(self, dtype: Any = np.float64, prefix: str = "lssvm/", taken: Any = ()) -> None:
        super().__init__(dtype)
        self.prefix = prefix
        self.taken = set(taken)
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.n_bytes = 0

    def new_name(self, hint: str) -> str:
        """Return a name that no other value has."""
        number = len(self.taken)
        while f"{self.prefix}{hint}_{number}" in self.taken:
            number += 1
        name = f"{self.prefix}{hint}_{number}"
        self.taken.add(name)
        return name

    def _add(
        self, op: str, inputs: list[str], outputs: list[str], domain: str, attributes: Any
    ) -> None:
        helper = need_onnx().helper
        node = helper.make_node(op, inputs, outputs, outputs[0], domain=domain, **attributes)
        self.nodes.append(node)

    def _store(self, array: NDArray[Any], name: str) -> None:
        self.n_bytes += array.nbytes
        self.initializers.append(tensor(array, name))


def loop_body(graph: ModelGraph, inputs: list[str], outputs: list[str]) -> Any:
    """Return what a `Graph.scan` repeats: from states and rows to new states.

    Parameters
    ----------
    graph : ModelGraph
        With the nodes of one step.
    inputs : list of str
        States, then rows.
    outputs : list of str
        New states.
    """
    helper = need_onnx().helper
    kind = element_type(graph.dtype)

    def declared(names: list[str]) -> list[Any]:
        return [helper.make_tensor_value_info(name, kind, None) for name in names]

    return helper.make_graph(
        graph.nodes, "step", declared(inputs), declared(outputs), graph.initializers
    )
