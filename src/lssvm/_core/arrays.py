"""The types of arrays, defined once: what the annotations of the whole library mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[Any]
"""Real numbers, float64 unless the input was float32."""
IntArray: TypeAlias = NDArray[np.intp]
"""Row numbers, class numbers, columns."""
BoolArray: TypeAlias = NDArray[np.bool_]
OnEvent: TypeAlias = Callable[[dict[str, Any]], None]
"""What listens to the progress of long work."""
