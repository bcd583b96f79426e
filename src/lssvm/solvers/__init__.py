"""How the linear system of a model is solved."""

from lssvm.solvers.base import DualSystem, Solution, Solver, Status
from lssvm.solvers.cg import ConjugateGradient
from lssvm.solvers.choice import SOLVER_NAMES, choose_primal, choose_solver, make_solver
from lssvm.solvers.circulant import (
    Circulant,
    CirculantSolver,
    Lattice,
    first_row,
    lattice_shape,
    lay_rows,
)
from lssvm.solvers.exact import (
    ALONE,
    Cholesky,
    EigenState,
    ExactFit,
    ExactPath,
    Repeats,
    eigen_state,
    solve_exact,
)
from lssvm.solvers.pcg import (
    PCG,
    KernelProducts,
    NormalProducts,
    PCGSolution,
    RowBlock,
    Sums,
    array_rows,
    preconditioner_rows,
    solve_pcg,
)
from lssvm.solvers.pcg_space import FeatureSpace, PreconditionerRows, make_space
from lssvm.solvers.primal import (
    PrimalSystem,
    primal_system,
    solve_on_prototypes,
    solve_primal,
)
from lssvm.solvers.reweighting import robust_weights, solve_reweighted
from lssvm.solvers.smo import SMO

__all__ = [
    "ALONE",
    "PCG",
    "SMO",
    "SOLVER_NAMES",
    "Cholesky",
    "Circulant",
    "CirculantSolver",
    "ConjugateGradient",
    "DualSystem",
    "EigenState",
    "ExactFit",
    "ExactPath",
    "FeatureSpace",
    "KernelProducts",
    "Lattice",
    "NormalProducts",
    "PCGSolution",
    "PreconditionerRows",
    "PrimalSystem",
    "Repeats",
    "RowBlock",
    "Solution",
    "Solver",
    "Status",
    "Sums",
    "array_rows",
    "choose_primal",
    "choose_solver",
    "eigen_state",
    "first_row",
    "lattice_shape",
    "lay_rows",
    "make_solver",
    "make_space",
    "preconditioner_rows",
    "primal_system",
    "robust_weights",
    "solve_exact",
    "solve_on_prototypes",
    "solve_pcg",
    "solve_primal",
    "solve_reweighted",
]
