"""
When does a circulant matrix choose the right kernel?
=====================================================

By theorem 7 of [Ding2011] the criterion R(K) with a multilevel circulant matrix tends to the
one with the true kernel matrix as all sides of the lattice grow, if rows lie on a lattice (except
near its edges) and targets vanish towards the edges. The left picture shows it: rows on a square
lattice, the difference against the number of rows, with the printed matrix ("sum") and with the
weighted one that is never indefinite ("mean"). The printed rate of the part V, one over the shorter
side, is drawn for comparison.

The right picture shows what happens to rows that are not on a lattice: moved at random by a part of
the spacing, or scattered at random and sorted along their principal directions. There the
difference is larger and falls slowly or not at all (a dip is a change of its sign): the circulant
matrix can narrow a search, but it does not replace the exact one.
"""

import matplotlib.pyplot as plt
import numpy as np

from lssvm.kernels import RBF
from lssvm.solvers import DualSystem
from lssvm.solvers.circulant import Circulant, lay_rows
from lssvm.solvers.exact import eigen_state
from lssvm.tuning.spectral import Spectrum

GAMMA, MU, NOISE = 0.5, 0.1, 0.05
SIDES = np.array([5, 7, 10, 14, 20, 28, 40])


def difference(X, layout, wrap):
    """Return |R~(K) - R(K)| of eq. (29) for targets that fade from the middle of the rows."""
    centre = X.mean(axis=0)
    Y = np.exp(-0.3 * np.linalg.norm(X - centre, axis=1, keepdims=True))
    C, noise = np.array([1.0 / MU]), np.array([NOISE])
    exact = Spectrum.of_state(eigen_state(DualSystem(RBF(GAMMA), X, X, C=1.0, bias=False)), Y)
    matrix = Circulant.of(RBF(GAMMA), lay_rows(X, layout=layout), wrap)
    approximate = Spectrum.of_circulant(matrix, Y, bias=False)
    loss = [spectrum.loss("rk", C, noise)[0] for spectrum in (exact, approximate)]
    return abs(loss[1] - loss[0])


def square(side):
    """Return the points of a square lattice of spacing 1."""
    axis = np.arange(float(side))
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)


figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained", sharey=True)
n = SIDES**2
for wrap, marker, line in (("sum", "o", "-"), ("mean", "s", "--")):
    values = [difference(square(side), "plain", wrap) for side in SIDES]
    left.loglog(n, values, line, marker=marker, label=f'wrap="{wrap}"')
left.loglog(n, 0.02 / SIDES, ":", color="0.4", label="one over the side")
left.set_title("rows on a lattice")

rng = np.random.default_rng(0)
for share, marker, line in ((0.1, "o", "-"), (0.3, "^", "--")):
    moved = [square(side) + share * rng.standard_normal((side**2, 2)) for side in SIDES]
    values = [difference(X, "plain", "mean") for X in moved]
    right.loglog(n, values, line, marker=marker, label=f"moved by {share:g} of the spacing")
strewn = [side * rng.random((side**2, 2)) for side in SIDES]
values = [difference(X, "sorted", "mean") for X in strewn]
right.loglog(n, values, "-.", marker="D", label="strewn at random, sorted")
values = [difference(X, "plain", "mean") for X in strewn]
right.loglog(n, values, ":", marker="v", label="scattered, in given order")
right.set_title("rows elsewhere")

left.set_ylabel(r"$|\tilde R(K) - R(K)|$")
for ax in (left, right):
    ax.set_xlabel("rows")
    ax.grid(alpha=0.3)
    ax.legend(frameon=False, fontsize="small")
plt.show()
