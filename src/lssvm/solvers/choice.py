"""Which solver: by name, or chosen from the size and the memory budget."""

from __future__ import annotations

from typing import Any

from lssvm._core.arrays import FloatArray
from lssvm._core.errors import not_known, not_usable
from lssvm.solvers.base import DualSystem, Solution
from lssvm.solvers.cg import ConjugateGradient
from lssvm.solvers.circulant import CirculantSolver, TakenOver, warn_if_rough
from lssvm.solvers.exact import Cholesky
from lssvm.solvers.smo import SMO

SOLVER_NAMES = ("auto", "cg", "cholesky", "circulant", "smo")
"""The solvers that have a name."""
_NAMES: dict[type, str] = {
    Cholesky: "cholesky",
    CirculantSolver: "circulant",
    ConjugateGradient: "cg",
    SMO: "smo",
}


def choose_solver(n: int, budget: int, itemsize: int = 8) -> str:
    """Return what ``solver="auto"`` means for ``n`` rows.

    The kernel matrix is factorised when it fits into the memory budget; otherwise conjugate
    gradients recompute it block by block.
    """
    return "cholesky" if n * n * itemsize <= budget else "cg"


def make_solver(solver: Any, system: DualSystem, *, seed: int) -> tuple[str, Any]:
    """Return the name and the solver object for a system.

    Parameters
    ----------
    solver : {"auto", "cholesky", "cg", "smo", "circulant"} or a solver object
        An object needs ``factorise`` and ``solve`` (see `lssvm.solvers.Solver`), and has the
        tolerance and the limit of an iterative solver. "circulant" falls
        back to what "auto" means where it cannot be used.
    system : DualSystem
        What is to be solved.
    seed : int
        Chooses the landmarks of the preconditioner.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import Linear
    >>> from lssvm.solvers import DualSystem, make_solver
    >>> system = DualSystem(Linear(), np.eye(3), np.eye(3), C=1.0)
    >>> make_solver("auto", system, seed=0)[0]
    'cholesky'
    """
    if not isinstance(solver, str):
        if all(callable(getattr(solver, method, None)) for method in ("factorise", "solve")):
            return _NAMES.get(type(solver), type(solver).__name__), solver
        needed = f"give one of {', '.join(SOLVER_NAMES)}, or an object with the methods "
        raise not_usable("solver", solver, f"{needed}factorise(system) and solve(state, Y).")
    name = solver
    if solver == "auto":
        name = choose_solver(system.n, system.budget, system.dtype.itemsize)
    if name == "cholesky":
        return name, Cholesky()
    if name == "cg":
        return name, ConjugateGradient(preconditioner="nystrom", random_state=seed)
    if name == "circulant":
        _, exact = make_solver("auto", system, seed=seed)
        return name, CirculantSolver(fallback=exact)
    if name == "smo":
        return name, SMO()
    raise not_known("solver", solver, f"choose one of {', '.join(SOLVER_NAMES)}.")


def solve_with(
    solver: Any, system: DualSystem, Y: FloatArray, *, seed: int
) -> tuple[str, Solution]:
    """Solve a system for the targets ``Y`` (n, k) with the solver of that name, or that object.

    Parameters are those of `make_solver`. Returns the name of the solver that did it, which for
    "circulant" may be that of its fallback, and the solution.
    """
    name, chosen = make_solver(solver, system, seed=seed)
    state = chosen.factorise(system)
    solution = chosen.solve(state, Y)
    warn_if_rough(state, Y, solution)
    return state.name if isinstance(state, TakenOver) else name, solution
