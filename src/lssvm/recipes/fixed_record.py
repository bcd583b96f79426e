"""What only the record of a fixed-size model has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lssvm._core.arrays import BoolArray, FloatArray
from lssvm.moments import Moments, NystromMap
from lssvm.prototypes import Selection
from lssvm.recipes.record import Fit
from lssvm.reductions import PrototypeBasis, SparsityPath


@dataclass(frozen=True, eq=False)
class FixedDetails:
    """Moments, and how the prototypes came about.

    Attributes
    ----------
    n_prototypes : int
        Before a reduction.
    moments : list of Moments
        One, or one per class; none of conjugate gradients. Of targets less ``centre``.
    map : NystromMap or None
    selection : Selection or None
    used : bool array of shape (m, k) or None
        Which prototypes serve which output, where a reduction left each its own.
    no_update : str or None
        Why rows cannot be added or removed.
    paths : tuple of SparsityPath
        Of a reduction whose size was cross-validated.
    kept : PrototypeBasis or None
        Moments of the folds, for `sparsity_path`; neither pickled nor stored.
    centre : array of shape (k,) or None
        What was taken off targets that are numbers, at the first fit; rows that are added later and
        the sample that calibrates are without it too.
    peak_memory : int or None
        When fitted to a scan: bytes that the process has had at the most up to then.
    penalised : bool
        Whether the bias is penalised like a weight.
    """

    n_prototypes: int
    moments: list[Moments]
    map: NystromMap | None = None
    selection: Selection | None = None
    used: BoolArray | None = None
    no_update: str | None = None
    paths: tuple[SparsityPath, ...] = ()
    kept: PrototypeBasis | None = None
    centre: FloatArray | None = None
    peak_memory: int | None = None
    penalised: bool = False

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"kept": None}

    @property
    def is_posterior_of_model(self) -> bool:
        """Whether the model is the mean of the posterior that its moments give."""
        return self.used is None and self.no_update is None and not self.penalised

    def published(self, fit: Fit) -> dict[str, Any]:
        """Return attributes of the estimator."""
        pcg, tuning = fit.solver == "pcg", fit.tuning
        published: dict[str, Any] = {
            "prototypes_": fit.metric.unmap(fit.basis),
            "n_prototypes_": self.n_prototypes,
            "moments_": self.moments,
            "selection_": self.selection,
            "solver_": fit.solver,
        }
        where_known = {
            "residual_": fit.residual if pcg else None,
            "n_iter_": fit.iterations if pcg or fit.task.classes is None else None,
            "sparsity_paths_": list(self.paths) or None,
            "peak_memory_": self.peak_memory,
            "size_results_": None if tuning is None else tuning.sizes,
            "sample_results_": None if tuning is None else tuning.sample,
        }
        known = {name: value for name, value in where_known.items() if value is not None}
        return published | known

    def reduced(self, form: str, fit: Fit) -> FixedDetails:
        """Return what a file of this form keeps."""
        light = replace(self, moments=[], map=None, selection=None, kept=None)
        if form == "support":
            return replace(light, paths=())
        if fit.task.classes is None and fit.loss == "squared" and self.is_posterior_of_model:
            return replace(light, moments=self.moments, map=self.map)  # error bars need them
        return light
