"""The objectives that names of criteria stand for."""

from collections.abc import Callable, Sequence

from lssvm._core.arrays import FloatArray
from lssvm.kernels import Kernel
from lssvm.solvers import DualSystem
from lssvm.tasks import Targets
from lssvm.tuning.dual import DualObjective
from lssvm.tuning.objective import Group
from lssvm.tuning.spectral import SpectralObjective, press_folds, press_loss


def criterion_objective(
    scoring: str,
    kernel: Callable[[float | None], Kernel],
    system: DualSystem,
    Y: FloatArray,
    groups: Sequence[Group],
    *,
    positions: bool,
) -> DualObjective | SpectralObjective:
    """Return the objective that a criterion's name stands for."""
    if scoring != "press":
        return SpectralObjective(scoring, kernel, system, Y, groups)
    targets = Targets(Y, weight=None if system.root_weight is None else system.root_weight**2)
    folds, loss = press_folds(system, Y, positions), press_loss(groups)
    return DualObjective(kernel, system, targets, folds, loss, groups)
