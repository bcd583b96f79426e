"""Graphs of ONNX operators, put together node by node."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import numpy as np

from lssvm._core.arrays import AnyArray
from lssvm._core.errors import library

OPSET = 18
"""Version of the standard operators that `to_onnx` uses."""

ML_OPSET = 3
"""Version of the operators ai.onnx.ml; `to_onnx` uses OneHotEncoder and LabelEncoder, for text."""

ML = "ai.onnx.ml"
OPSETS = {"": OPSET, ML: ML_OPSET}


def need_onnx() -> Any:
    """Return the module `onnx`, or say how to install it."""
    onnx = library("onnx", "ONNX files need the library onnx", "[onnx]")
    for part in ("checker", "helper", "numpy_helper"):
        importlib.import_module(f"onnx.{part}")
    return onnx


def need_skl2onnx() -> Any:
    """Return the module `skl2onnx`, or say how to install it."""
    needed = "Pipelines of scikit-learn need the library skl2onnx"
    return library("skl2onnx", needed, "[onnx]")


def element_type(dtype: Any) -> int:
    """Return the number by which ONNX knows a type of NumPy."""
    kind = np.dtype(dtype)
    kind = np.dtype(object) if kind.kind in "US" else kind
    return int(need_onnx().helper.np_dtype_to_tensor_dtype(kind))


def tensor(array: AnyArray, name: str) -> Any:
    """Return an array as ONNX stores it; an array of objects holds strings."""
    plain = array.astype(object) if array.dtype.kind in "US" else array
    return need_onnx().numpy_helper.from_array(plain, name)


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
    def _store(self, array: AnyArray, name: str) -> None:
        """Add a constant."""

    def tensor(self, name: str, dtype: Any = None) -> Tensor:
        """Return the value of that name; constants next to it are of ``dtype`` or the graph's."""
        return Tensor(self, name, dtype)

    def node(self, op: str, *inputs: Any, domain: str = "", **attributes: Any) -> Tensor:
        """Add an operator with one output and return that; numbers become constants."""
        return self.nodes_of(op, *inputs, n_outputs=1, domain=domain, **attributes)[0]

    def nodes_of(
        self, op: str, *inputs: Any, n_outputs: int, domain: str = "", **attributes: Any
    ) -> list[Tensor]:
        """Add an operator and return its outputs."""
        dtypes = [value.dtype for value in inputs if isinstance(value, Tensor)]
        dtype = next((dtype for dtype in dtypes if dtype is not None), None)
        values = [v if isinstance(v, Tensor) else self.real(v, dtype) for v in inputs]
        outputs = [self.new_name(op) for _ in range(n_outputs)]
        self._add(op, [value.name for value in values], outputs, domain, attributes)
        return [Tensor(self, name, dtype) for name in outputs]

    def rename(self, value: str, name: str) -> str:
        """Give a value one more name."""
        self._add("Identity", [value], [name], "", {})
        return name

    def constant(self, array: Any) -> Tensor:
        """Add a constant of its own type."""
        values = np.asarray(array)
        content = repr(values.tolist()).encode() if values.dtype.hasobject else values.tobytes()
        key = (values.dtype.str, values.shape, sha256(content).digest())
        if key not in self._known:  # the same numbers are stored once
            self._known[key] = self.new_name("constant")
            self._store(values, self._known[key])
        return Tensor(self, self._known[key])

    def real(self, array: Any, dtype: Any = None) -> Tensor:
        """Add a constant of ``dtype``, or of the type of the graph."""
        return self.constant(np.asarray(array, dtype=self.dtype if dtype is None else dtype))

    def integers(self, values: Any) -> Tensor:
        """Add a constant of integers."""
        return self.constant(np.asarray(values, dtype=np.int64))

    def concat(self, parts: list[Tensor], axis: int = 1) -> Tensor:
        """Put values side by side."""
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=axis)

    def in_order(self, parts: list[Tensor], columns: list[int]) -> Tensor:
        """Put the values of some columns side by side, in the order of the columns."""
        together = self.concat(parts)
        return together if columns == sorted(columns) else together.columns(np.argsort(columns))

    def zeros(self, like: Tensor, *tail: int) -> Tensor:
        """Return zeros of shape (n, *tail), where ``like`` has n rows."""
        shape = self.node("Shape", like)
        rows = self.node("Gather", shape, self.integers([0]))
        whole = self.concat([rows, self.integers(tail)], axis=0)
        return self.node("ConstantOfShape", whole, value=tensor(np.zeros(1, self.dtype), "value"))

    def scan(self, start: list[Any], over: list[Any], body: Any) -> list[Tensor]:
        """Go through the rows of ``over`` with a state; return the last state.

        ``body`` is what `loop_body` has made.
        """
        return self.nodes_of(
            "Scan", *start, *over, n_outputs=len(start), num_scan_inputs=len(over), body=body
        )


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value in a graph; arithmetic adds operators.

    Attributes
    ----------
    graph : Graph
    name : str
    dtype : type or None
        Of constants next to it; None: that of the graph.
    """

    graph: Graph
    name: str
    dtype: Any = None
    __array_ufunc__ = None  # NumPy leaves arithmetic of its arrays with a value to the value

    def __add__(self, other: Any) -> Tensor:
        return self.graph.node("Add", self, other)

    def __sub__(self, other: Any) -> Tensor:
        return self.graph.node("Sub", self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return self.graph.node("Sub", other, self)

    def __mul__(self, other: Any) -> Tensor:
        return self.graph.node("Mul", self, other)

    def __truediv__(self, other: Any) -> Tensor:
        return self.graph.node("Div", self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return self.graph.node("Div", other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return self.graph.node("MatMul", self, other)

    def __neg__(self) -> Tensor:
        return self.graph.node("Neg", self)

    def clipped(self, low: float, high: float) -> Tensor:
        """Return it between two limits."""
        return self.graph.node("Min", self.graph.node("Max", self, low), high)

    def cast(self, dtype: Any) -> Tensor:
        """Turn it into another type."""
        return replace(self.graph.node("Cast", self, to=element_type(dtype)), dtype=None)

    def is_nan(self) -> Tensor:
        """Return where it is NaN."""
        return replace(self.graph.node("IsNaN", self), dtype=None)

    def reshape(self, *shape: int) -> Tensor:
        """Return it in another shape."""
        return self.graph.node("Reshape", self, self.graph.integers(shape))

    def columns(self, indices: Any) -> Tensor:
        """Return some columns of (n, k), in the order asked for."""
        return self.graph.node("Gather", self, self.graph.integers(indices), axis=1)

    def sums(self, axis: int = 1) -> Tensor:
        """Return the sums over an axis, which is kept: (n, 1) of (n, k)."""
        return self.graph.node("ReduceSum", self, self.graph.integers([axis]), keepdims=1)


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

    def _store(self, array: AnyArray, name: str) -> None:
        self.n_bytes += array.nbytes
        self.initializers.append(tensor(array, name))


def loop_body(graph: ModelGraph, inputs: list[str], outputs: list[Tensor]) -> Any:
    """Return what a `Graph.scan` repeats: from states and rows to new states.

    Parameters
    ----------
    graph : ModelGraph
        With the nodes of one step.
    inputs : list of str
        States, then rows.
    outputs : list of Tensor
        New states.
    """
    helper, kind = need_onnx().helper, element_type(graph.dtype)
    results = [value.name for value in outputs]
    declared = [
        [helper.make_tensor_value_info(name, kind, None) for name in names]
        for names in (inputs, results)
    ]
    return helper.make_graph(graph.nodes, "step", *declared, graph.initializers)
