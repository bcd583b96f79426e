"""Fitted models as ONNX models, for onnxruntime and other runtimes."""

from contextlib import suppress as _suppress

from lssvm._core.errors import MissingDependencyError as _MissingDependencyError
from lssvm.onnx.exporting import export, register, to_onnx

with _suppress(_MissingDependencyError):  # without skl2onnx nothing is to be registered
    register()

__all__ = ["export", "register", "to_onnx"]
