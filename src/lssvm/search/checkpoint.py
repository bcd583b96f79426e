"""A file that keeps every evaluation of a search, so that a stopped run can be continued.

The file is JSON lines: one line of settings, then one line per batch of evaluations (a path of C at
one kernel parameter). Numbers are written in Python's shortest exact form, so a replayed loss
equals the computed one bit for bit. The file is rewritten to a temporary neighbour and moved over
the old one after every batch: at any moment it holds whole batches only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lssvm._core.arrays import FloatArray
from lssvm._core.atomic import replacing
from lssvm._core.errors import InvalidInputError
from lssvm.criteria.base import Losses

FORMAT = 1
Settings: TypeAlias = dict[str, str | int]


@dataclass(frozen=True)
class Batch:
    """Evaluations made in one call: a path of C at one kernel parameter.

    Parameters
    ----------
    stage : str
        The stage of the search that asked.
    gamma : float or None
        The kernel parameter.
    C : ndarray of shape (c,)
        The values of C.
    losses : Losses
        Their losses.
    seconds : float
        Wall time since the start of the search.
    """

    stage: str
    gamma: float | None
    C: FloatArray
    losses: Losses
    seconds: float

    def encode(self) -> str:
        """Return the batch as one line of JSON."""
        arrays = {"C": self.C, **vars(self.losses)}
        lists = {name: array.tolist() for name, array in arrays.items()}
        known = {"stage": self.stage, "gamma": self.gamma, "seconds": self.seconds}
        return json.dumps(known | lists)

    @classmethod
    def decode(cls, line: str) -> Batch:
        """Read back what :meth:`encode` wrote."""
        raw: dict[str, Any] = json.loads(line)
        stage, gamma = raw["stage"], raw["gamma"]
        if not isinstance(stage, str) or not (gamma is None or isinstance(gamma, (int, float))):
            raise TypeError("a batch has no stage or no gamma")
        C, fold, weight, tie = (
            np.array(raw[name], dtype=np.float64) for name in ("C", "fold", "weight", "tie")
        )
        losses = Losses(fold, weight, tie)
        if C.shape != tie.shape or not np.all(np.isfinite(C)):
            raise ValueError(f"a batch has values of C of shape {C.shape} for {len(tie)} losses")
        return cls(stage, gamma, C, losses, float(raw["seconds"]))


class Checkpoint:
    """The evaluations of one search, in memory and in a file.

    Parameters
    ----------
    path : str or path-like
        The file. It is made where it does not exist and continued where it does.
    settings : mapping of str to str or int
        Everything the evaluations depend on. A file of other settings is refused.
    adopt : tuple of str, default=()
        Names of settings that are taken from an existing file instead of compared with it.

    Attributes
    ----------
    settings : dict
        The settings in force, adopted ones included.
    seconds : float
        Wall time recorded so far.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from lssvm.tuning import Losses
    >>> from lssvm.search.checkpoint import Batch, Checkpoint
    >>> C, one = np.array([0.1]), np.ones(1)
    >>> batch = Batch("grid", 0.5, C, Losses(np.array([[0.3]]), one, one), seconds=2.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "search.jsonl")
    ...     Checkpoint(path, {"seed": 1}).append(batch)
    ...     found = Checkpoint(path, {"seed": 1}).find(0.5, C)
    >>> found.losses.fold
    array([[0.3]])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: Mapping[str, str | int],
        adopt: tuple[str, ...] = (),
    ) -> None:
        self.path = Path(path)
        self.settings: Settings = {"format": FORMAT, **settings}
        self.seconds = 0.0
        self._batches: dict[tuple[float | None, bytes], Batch] = {}
        self._lines: list[str] = []
        if not self.path.parent.is_dir():
            raise InvalidInputError(
                f"checkpoint={os.fspath(path)!r} cannot be written: make the folder "
                f"{os.fspath(self.path.parent)!r} first."
            )
        if len(os.fsencode(self.path.name)) > 255:
            raise InvalidInputError(
                f"The name of checkpoint={os.fspath(path)!r} is too long: give a shorter one."
            )
        if self.path.is_dir():
            raise InvalidInputError(
                f"checkpoint={os.fspath(path)!r} is a folder: give the name of a file in it."
            )
        if self.path.exists():
            self._load(adopt)
        else:
            self._write()

    def find(self, gamma: float | None, C: FloatArray) -> Batch | None:
        """Return the recorded batch of exactly these pairs, or None."""
        return self._batches.get((gamma, C.tobytes()))

    def append(self, batch: Batch) -> None:
        """Keep a batch, on disk when this returns."""
        self._keep(batch, batch.encode())
        self._write()

    def _keep(self, batch: Batch, line: str) -> None:
        self._batches[batch.gamma, batch.C.tobytes()] = batch
        self._lines.append(line)
        self.seconds = max(self.seconds, batch.seconds)

    def _load(self, adopt: tuple[str, ...]) -> None:
        try:
            header, *lines = self.path.read_text(encoding="utf-8").splitlines()
            stored: Settings = dict(json.loads(header))
            if "format" not in stored:
                raise ValueError("its first line has no format")
            batches = [Batch.decode(line) for line in lines]
        except OSError as error:
            raise InvalidInputError(
                f"checkpoint={os.fspath(self.path)!r} cannot be read ({error.strerror}): give "
                "another path, or allow yourself to read it."
            ) from error
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise InvalidInputError(
                f"checkpoint={os.fspath(self.path)!r} is not a checkpoint of a search ({error}): "
                "give another path, or delete the file to start anew."
            ) from error
        self.settings.update({name: stored[name] for name in adopt if name in stored})
        differences = [
            f"{name}: {stored.get(name)!r} in the file, {self.settings.get(name)!r} now"
            for name in sorted({*stored, *self.settings})
            if stored.get(name) != self.settings.get(name)
        ]
        if differences:
            raise InvalidInputError(
                f"checkpoint={os.fspath(self.path)!r} belongs to a search with other settings "
                f"({'; '.join(differences)}): give another path, restore the settings, or delete "
                "the file."
            )
        for batch, line in zip(batches, lines, strict=True):
            self._keep(batch, line)

    def _write(self) -> None:
        text = "\n".join([json.dumps(self.settings), *self._lines]) + "\n"
        with replacing(self.path, private=True) as name, open(name, "w", encoding="utf-8") as file:
            file.write(text)
