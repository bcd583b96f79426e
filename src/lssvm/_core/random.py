"""One way to turn ``random_state`` into a generator."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lssvm._core.arrays import AnyArray, IntArray
from lssvm._core.errors import not_usable

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a NumPy generator for any accepted ``random_state``."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    if random_state is None or (isinstance(random_state, (int, np.integer)) and random_state >= 0):
        return np.random.default_rng(random_state)
    needed = "give a non-negative int, a numpy.random.Generator, a RandomState or None."
    raise not_usable("random_state", random_state, needed)


def seed_of(random_state: RandomState) -> int:
    """Return the seed of prototypes, folds and searches; a fixed one for None."""
    if random_state is None:
        return 0
    return int(as_generator(random_state).integers(2**31 - 1))


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def mix_bits(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit integers (the finaliser of the splitmix generator)."""
    values = (values ^ (values >> np.uint64(30))) * _MIX_1
    values = (values ^ (values >> np.uint64(27))) * _MIX_2
    return values ^ (values >> np.uint64(31))


def mix_signed(values: Any) -> Any:
    """Scramble 64-bit integers as `mix_bits` does, in an array of signed ones of any library."""
    values = (values ^ _shifted(values, 30)) * int(_MIX_1.view(np.int64))
    values = (values ^ _shifted(values, 27)) * int(_MIX_2.view(np.int64))
    return values ^ _shifted(values, 31)


def _shifted(values: Any, bits: int) -> Any:
    """Shift to the right and fill with zeros, not with the sign."""
    return (values >> bits) & (2 ** (64 - bits) - 1)


def hash_positions(positions: NDArray[np.integer], seed: int) -> NDArray[np.uint64]:
    """Return a seeded 64-bit hash of each row's position: the same however rows are cut."""
    with np.errstate(over="ignore"):
        key = mix_bits(np.array([seed], dtype=np.uint64) * _GOLDEN + _GOLDEN)
        return mix_bits(positions.astype(np.uint64) * _GOLDEN + key)


def draw_rows(keys: NDArray[np.uint64], size: int, labels: AnyArray | None = None) -> IntArray:
    """Return sorted numbers of ``size`` rows, those of the smallest keys.

    Parameters
    ----------
    keys : uint64 array of shape (n,)
        Random numbers.
    size : int
        How many rows.
    labels : array of shape (n,), optional
        Classes, which are drawn in proportion.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm._core.random import draw_rows
    >>> draw_rows(np.array([7, 3, 8, 9], dtype=np.uint64), 2, np.array([0, 0, 1, 1]))
    array([1, 2])
    """
    order = np.argsort(keys, kind="stable")
    if labels is not None:  # the j-th row of N_c comes at the place (j + 1/2) / N_c
        group, sizes = np.unique(labels[order], return_inverse=True, return_counts=True)[1:]
        by_class = np.argsort(group, kind="stable")
        place = np.empty(len(order))
        first = np.cumsum(sizes) - sizes
        place[by_class] = np.arange(len(order)) - np.repeat(first, sizes) + 0.5
        order = order[np.argsort(place / sizes[group], kind="stable")]
    return np.sort(order[:size]).astype(np.intp)
