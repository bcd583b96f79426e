"""Solvers of the linear system of a model."""

from lssvm.solvers.base import DualSystem, Solution, Solver, Status
from lssvm.solvers.cg import ConjugateGradient
from lssvm.solvers.circulant import CirculantSolver
from lssvm.solvers.exact import Cholesky, ExactFit, make_solver, solve_exact
from lssvm.solvers.pcg import PCG
from lssvm.solvers.smo import SMO
from lssvm.tasks.losses import DifferentiableLoss, Logistic, Pinball

__all__ = [
    "PCG",
    "SMO",
    "Cholesky",
    "CirculantSolver",
    "ConjugateGradient",
    "DifferentiableLoss",
    "DualSystem",
    "ExactFit",
    "Logistic",
    "Pinball",
    "Solution",
    "Solver",
    "Status",
    "make_solver",
    "solve_exact",
]
