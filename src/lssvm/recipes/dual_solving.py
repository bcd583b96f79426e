"""How a dual model is solved, made robust, and reduced, with parameters that are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lssvm._core.arrays import FloatArray, IntArray
from lssvm._core.errors import InvalidInputError
from lssvm.criteria.dual import DualObjective
from lssvm.criteria.fold_targets import Group
from lssvm.folds.content import restrict_folds
from lssvm.kernels import Kernel, evaluate_expansion
from lssvm.recipes.dual_settings import DualSettings
from lssvm.recipes.dual_tuning import Chosen, DualProblem, space_of
from lssvm.recipes.robust import ROUGH, absolute_C, lower_weights, reweights
from lssvm.recipes.settings import KernelChoice
from lssvm.reductions import L0, Prune, WrongSides, prune, reduce_dual_l0
from lssvm.solvers import DualSystem
from lssvm.solvers.choice import solve_with
from lssvm.solvers.reweighting import reweight
from lssvm.tasks import SquaredError, Truth

_ACCURATE = 1e-8  # relative residual below which tuning's factorisation also gives the solution


class Model(NamedTuple):
    """A solution: support values (n, k), intercepts (k,), and how they were found."""

    alpha: FloatArray
    b: FloatArray
    solver: str
    residual: float
    iterations: int


@dataclass(frozen=True, eq=False)
class Part:
    """Outputs that share rows, C and gamma, and their model.

    Attributes
    ----------
    group : int
        Number of their group.
    rows : int array or None
        Training rows; None: all.
    columns : int array
    system : DualSystem
        Of those rows, with kernel and C.
    gamma : float, array or None
    choice : KernelChoice
        Of the kernel, for another gamma.
    C : array of shape (k,)
        What each output is published with.
    model : Model or None
        None: not solved yet.
    n_reweightings : int
    path : object or None
        What a reduction did.
    """

    group: int
    rows: IntArray | None
    columns: IntArray
    system: DualSystem
    gamma: Any
    choice: KernelChoice
    C: FloatArray
    model: Model | None = None
    n_reweightings: int = 0
    path: Any = None

    @property
    def solved(self) -> Model:
        """The model."""
        assert self.model is not None
        return self.model

    def fitted(self) -> FloatArray:
        """Return what the model says of its own rows."""
        return _evaluate(self.system, self.solved)


def parts_of(problem: DualProblem, chosen: Chosen) -> list[Part]:
    """Gather outputs of the same rows, C and gamma: they share one factorisation."""
    parts = []
    for number, group in enumerate(problem.groups):
        for columns in alike(group.columns, chosen.C, chosen.gamma):
            C, gamma = chosen.C[columns], chosen.gamma[columns[0]]
            system = replace(problem.system, kernel=chosen.choice.at(gamma), C=float(C[0]))
            own = system if group.rows is None else system.subset(group.rows)
            parts.append(Part(number, group.rows, columns, own, gamma, chosen.choice, C))
    return parts


def alike(columns: IntArray, C: FloatArray, gamma: list[Any]) -> list[IntArray]:
    """Gather columns that have the same C and gamma."""
    gathered: dict[Any, list[int]] = {}
    for j in columns:
        gathered.setdefault((float(C[j]), repr(gamma[j])), []).append(int(j))
    return [np.array(members) for members in gathered.values()]


def solve(part: Part, problem: DualProblem, ask: DualSettings, chosen: Chosen) -> Part:
    """Solve the least squares problem, or take the solution of what tuning has factorised."""
    Y, solved = problem.targets(part.rows, part.columns), None
    if chosen.point is not None and isinstance(ask.solver, str) and ask.solver == "auto":
        solved = chosen.point.solution(part.group, part.system.C, Y)
    if solved is not None and solved[2] <= _ACCURATE:
        alpha, b, residual = solved
        return replace(part, model=Model(alpha, b, "eigen", residual, 1))
    return replace(part, model=_solve_system(part.system, Y, ask))


def _solve_system(system: DualSystem, Y: FloatArray, ask: DualSettings) -> Model:
    """Solve (3.32) of [Suykens2002], or (3.62) without a bias."""
    # The bias takes up a common offset; without it tol and float32 refer to what is to learn.
    centre = np.average(Y, axis=0, weights=system.u**2) if system.bias else np.zeros(Y.shape[1])
    targets = (Y - centre).astype(system.dtype)
    options: dict[str, Any] = {"tol": ask.tol, "max_iter": ask.max_iter, "seed": ask.seed}
    name, found = solve_with(ask.solver, system, targets, **options)
    return Model(found.alpha, found.intercept + centre, name, found.residual, found.iterations)


def _evaluate(system: DualSystem, model: Model) -> FloatArray:
    values = evaluate_expansion(
        system.kernel,
        system.rows,
        system.basis,
        model.alpha,
        model.b,
        budget=system.budget,
        threads=system.threads,
    )
    return np.asarray(values, dtype=np.float64)


# -- robust losses -------------------------------------------------------------------------------


def _weighted(
    system: DualSystem, y: FloatArray, ask: DualSettings, weight: FloatArray
) -> tuple[Model, FloatArray]:
    """Return the weighted least squares model of one output, and what it says of its rows."""
    own = replace(system, root_weight=np.sqrt(weight).astype(system.dtype))
    model = _solve_system(own, y[:, None], ask)
    return model, _evaluate(own, model)[:, 0]


def weigh_down(
    problem: DualProblem, weight: FloatArray | None, ask: DualSettings, chosen: Chosen
) -> DualProblem:
    """Return the problem with less weight on rows that its model is far off from.

    The first time that is Huber's model of all rows, then what cross-validation has predicted.
    ``weight`` is what the caller gave.
    """
    Y = problem.truth.Y
    predictions = np.full(Y.shape, np.nan)
    if not problem.lowered:
        everyone = np.ones(len(Y)) if weight is None else weight
        for part in parts_of(problem, chosen):
            for j in part.columns:
                solve = partial(_weighted, part.system, Y[:, j], ask)
                start = solve(everyone)
                _, predictions[:, j], _ = reweight(solve, Y[:, j], start, "huber", weight, **ROUGH)
    elif chosen.point is not None:
        held = chosen.point.predictions(chosen.C[:1])
        for rows, values in zip(chosen.point.objective.folds.test, held, strict=True):
            predictions[rows] = values[0]
    lowered = lower_weights(Y, predictions, weight, problem.truth.weight)
    return replace(
        problem,
        system=replace(problem.system, root_weight=np.sqrt(lowered)),
        truth=replace(problem.truth, weight=lowered, sample_weight=lowered),
        lowered=True,
    )


def use_loss(part: Part, problem: DualProblem, ask: DualSettings) -> Part:
    """Replace squares by another loss, output by output."""
    if not reweights(ask.loss, problem.lowered):
        return part
    weight, fitted = problem.truth.weight, part.fitted()
    model, C, steps = part.solved, part.C.copy(), 0
    alpha, b = model.alpha.copy(), model.b.copy()
    for i, j in enumerate(part.columns):
        y, values = problem.truth.Y[:, j], fitted[:, i]
        if ask.loss == "absolute" and ask.C is None:
            C[i] = absolute_C(float(C[i]), y - values, weight)
        solve = partial(_weighted, replace(part.system, C=float(C[i])), y, ask)
        start = model._replace(alpha=alpha[:, [i]], b=b[[i]]), values
        found, _, count = reweight(solve, y, start, ask.loss, weight)
        alpha[:, [i]], b[[i]] = found.alpha, found.b
        model, steps = model._replace(solver=found.solver), max(steps, count)
    return replace(part, C=C, model=model._replace(alpha=alpha, b=b), n_reweightings=steps)


# -- fewer support vectors -----------------------------------------------------------------------


def reduce(part: Part, problem: DualProblem, ask: DualSettings) -> Part:
    """Drop support vectors, where that is asked for."""
    Y = problem.targets(part.rows, part.columns)
    if isinstance(ask.reduction, L0):
        coef, reduced = reduce_dual_l0(part.system, Y, part.solved.alpha, ask.reduction)
        model = part.solved._replace(alpha=coef, b=reduced.intercept)
        return replace(part, model=model, path=reduced)
    if isinstance(ask.reduction, Prune):
        return _prune(part, problem, ask, Y, ask.reduction)
    return part


def _prune(
    part: Part, problem: DualProblem, ask: DualSettings, Y: FloatArray, settings: Prune
) -> Part:
    """Remove the smallest support values step by step [Suykens2002, section 3.7]."""
    folds, system = problem.cv, part.system
    assert folds is not None
    if part.rows is not None:
        folds = restrict_folds(folds, part.rows, problem.system.n)
    loss = SquaredError() if problem.truth.labels is None else WrongSides()
    if settings.retune and not ask.tunes:
        raise InvalidInputError(
            "Prune(retune=True) needs something to tune: set C='cv' or gamma='cv'."
        )

    def kernel(value: float | None) -> Kernel:
        return part.choice.at(value if ask.choice.tunes_gamma else problem.gamma)

    def retune(rows: IntArray) -> tuple[Any, DualSystem]:
        group = Group(np.arange(Y.shape[1]), rows)
        objective = DualObjective(kernel, system, Truth(Y), folds, loss, [group])
        space = space_of(problem, ask, system)
        result = ask.search.run(objective, space, random_state=ask.seed, resume=False)
        gamma = result.gamma if ask.choice.tunes_gamma else problem.gamma
        return gamma, replace(system, kernel=part.choice.at(gamma), C=result.C)

    pruned = prune(
        system,
        Y,
        folds,
        loss,
        part.solved.alpha,
        lambda smaller, targets: _solve_system(smaller, targets, ask).alpha,
        settings,
        retune if settings.retune else None,
        part.gamma,
    )
    final = replace(system, kernel=part.choice.at(pruned.gamma), C=pruned.C).subset(pruned.rows)
    left = _solve_system(final, Y[pruned.rows], ask)
    coef = np.zeros_like(part.solved.alpha)
    coef[pruned.rows] = left.alpha
    model = part.solved._replace(alpha=coef, b=left.b, solver=left.solver)
    C = np.full(len(part.columns), pruned.C)
    return replace(part, model=model, C=C, gamma=pruned.gamma, path=pruned)
