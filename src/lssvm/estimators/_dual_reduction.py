"""How the dual classifier and regressor lose support vectors after training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.criteria.dual import C_range, DualObjective, Group
from lssvm.estimators._relevance import RelevanceMixin
from lssvm.estimators._scoring import RowLossCriterion
from lssvm.estimators._validation import check_C
from lssvm.folds.content import Folds, restrict_folds
from lssvm.kernels import resolve_gamma
from lssvm.reductions import L0, Prune, prune
from lssvm.search.choice import make_search
from lssvm.search.space import Space
from lssvm.solvers import DualSystem


class DualReduction(RelevanceMixin):
    """Pruning of a dual model, with the parameters tuned again where asked for."""

    def _reduction(self) -> Any:
        known = {"prune": Prune(), "l0": L0()}
        if self.reduction is None or isinstance(self.reduction, (Prune, L0)):
            return self.reduction
        if isinstance(self.reduction, str) and self.reduction in known:
            return known[self.reduction]
        raise InvalidInputError(
            f"reduction={self.reduction!r} is not known: choose None, 'prune', 'l0', or an "
            "instance of lssvm.reductions.Prune or lssvm.reductions.L0."
        )

    def _reduce_prune(
        self,
        problem: Any,
        system: DualSystem,
        group: Group,
        columns: IntArray,
        folds: Folds | None,
        part: DualSystem,
        Y: FloatArray,
        alpha: FloatArray,
        settings: Prune,
        gamma: Any,
    ) -> tuple[FloatArray, FloatArray, float, Any]:
        assert folds is not None
        used = folds if group.rows is None else restrict_folds(folds, group.rows, system.n)
        pruned = prune(
            part,
            Y,
            used,
            lambda predictions: problem.row_loss(predictions, Y),
            alpha,
            lambda reduced, targets: self._solve_system(reduced, targets)[0],
            settings,
            self._retuner(problem, part, Y, used, columns) if settings.retune else None,
            gamma,
        )
        rows = pruned.rows
        final = replace(part, kernel=self._kernel_at(pruned.gamma), C=pruned.C).subset(rows)
        left, b, _ = self._solve_system(final, Y[rows])
        coef = np.zeros_like(alpha)
        coef[rows] = left
        self.reduction_path_.append(pruned)
        return coef, b, pruned.C, pruned.gamma

    def _retuner(
        self, problem: Any, part: DualSystem, Y: FloatArray, folds: Folds, columns: IntArray
    ) -> Callable[[IntArray], tuple[Any, DualSystem]]:
        C = check_C(self.C)
        tune_gamma = self._tunes_gamma()
        if C is not None and not tune_gamma:
            raise InvalidInputError(
                "Prune(retune=True) needs something to tune: set C='cv' or gamma='cv'."
            )
        weight = None if part.root_weight is None else part.root_weight**2
        gamma = self._fixed_gamma(problem, tune_gamma)
        start = float(resolve_gamma("scale", problem.X, problem.weight)) if tune_gamma else 1.0
        space = Space(
            C=C,
            tune_gamma=tune_gamma,
            gamma_start=start,
            n_features=part.rows.shape[1],
            C_range=C_range(part),
        )

        def retune(rows: IntArray) -> tuple[Any, DualSystem]:
            objective = DualObjective(
                lambda value: self._kernel_at(value if tune_gamma else gamma),
                part.rows,
                part.basis,
                Y,
                folds,
                RowLossCriterion(problem.row_loss, Y),
                [Group(np.arange(Y.shape[1]), rows)],
                weight,
                part.budget,
                part.threads,
                part.bias,
            )
            result = make_search(self.search).run(objective, space, random_state=self._seed)
            chosen = result.gamma if tune_gamma else gamma
            return chosen, replace(part, kernel=self._kernel_at(chosen), C=result.C)

        return retune
