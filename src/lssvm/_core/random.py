"""One way to turn ``random_state`` into a generator."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from lssvm._core.errors import InvalidInputError

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a NumPy generator for any accepted ``random_state``.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        A Generator is returned as it is; a RandomState seeds a new generator (its state advances).

    Returns
    -------
    numpy.random.Generator

    Examples
    --------
    >>> from lssvm._core.random import as_generator
    >>> int(as_generator(0).integers(10)) == int(as_generator(0).integers(10))
    True
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return np.random.default_rng(int(random_state))
    raise InvalidInputError(
        f"random_state={random_state!r} is not usable: give a non-negative int, a "
        "numpy.random.Generator, a RandomState or None."
    )
