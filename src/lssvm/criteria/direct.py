"""Exact cross-validation at one value of C, from the inverse in place of the spectrum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import lapack

from lssvm._core.arrays import FloatArray, IntArray
from lssvm.solvers import DualSystem


def leave_out_direct(
    system: DualSystem,
    RY: FloatArray,
    C: float,
    folds: Sequence[IntArray],
    cross: Sequence[FloatArray],
) -> list[tuple[FloatArray, FloatArray]] | None:
    r"""Predict every fold by the model that was trained without it, for one C.

    Parameters
    ----------
    system : DualSystem
        Its C is not used.
    RY : array of shape (n, k)
        Scaled targets.
    C : float
    folds : sequence of int arrays
        Rows of the system in each fold; empty where all its rows are elsewhere.
    cross : sequence of arrays of shape (m, n)
        For each fold the kernel between further rows and those of the system, times R.

    Returns
    -------
    list of (array of shape (t, k), array of shape (m, k)) or None
        Predictions of the fold's rows and of the further rows; None where the factorisation breaks
        down: H is not positive definite, to rounding.

    Notes
    -----
    :math:`e_v = G_{vv}^{-1} \beta_v` ([An2007]_, [Cawley2004]_) from the inverse of H by its
    Cholesky factor: n^3 operations, two matrices of n^2 numbers, where an
    eigendecomposition takes about 9 n^3.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.kernels import RBF
    >>> from lssvm.solvers import DualSystem
    >>> from lssvm.criteria.direct import leave_out_direct
    >>> X = np.linspace(0, 3, 10)[:, None]
    >>> system = DualSystem(RBF(1.0), X, X, C=1.0)
    >>> out = leave_out_direct(system, np.sin(X), 1e3, [np.array([4])], [np.empty((0, 10))])
    >>> bool(abs(out[0][0][0, 0] - np.sin(X[4, 0])) < 0.01)
    True
    """
    H = system.gram(
        copies=2,
        what="Exact cross-validation with the kernel matrix",
        advice="Give numbers for C and gamma, or use search=CirculantSearch(refine=0), which never "
        "stores it, or a fixed-size model (FixedSizeLSSVC, FixedSizeLSSVR), or raise "
        "memory_budget.",
    )
    H[np.diag_indices_from(H)] += 1.0 / C
    single = H.dtype == np.float32
    potrf, potri = (lapack.spotrf, lapack.spotri) if single else (lapack.dpotrf, lapack.dpotri)
    factor, info = potrf(H.T, lower=0, overwrite_a=1, clean=0)
    if info:
        return None
    inverse, _ = potri(factor, lower=0, overwrite_c=1)
    inverse = np.triu(inverse) + np.triu(inverse, 1).T
    eta, nu = inverse @ system.u, inverse @ RY
    s, b = 1.0, np.zeros(RY.shape[1])
    if system.bias:
        s = float(system.u @ eta)
        b = (system.u @ nu) / s  # [Suykens2002, eq. (3.25)]
    else:
        eta = np.zeros_like(eta)
    beta = nu - eta[:, None] * b
    out = []
    for rows, further in zip(folds, cross, strict=True):
        e = np.empty((0, RY.shape[1]))
        left, shifted = beta, b
        if len(rows) == system.n:  # nothing is left to train on
            out.append((np.zeros((len(rows), len(b))), np.zeros((len(further), len(b)))))
            continue
        if len(rows):
            G = inverse[np.ix_(rows, rows)] - np.outer(eta[rows], eta[rows]) / s
            e = np.linalg.solve(G, beta[rows])  # [An2007]
        if len(further) and len(rows):
            shift = eta[rows] @ e / s
            left = beta - inverse[:, rows] @ e + eta[:, None] * shift
            left[rows] = 0.0
            shifted = b - shift
        out.append(((RY[rows] - e) / system.u[rows, None], further @ left + shifted))
    return out
