"""The second level of sparsity of a fixed-size model, from the moments of its fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from lssvm._core.arrays import (
    Array,
    Device,
    FloatArray,
    IntArray,
    device,
    get_namespace,
    is_numpy,
    take_rows,
    take_square,
    to_numpy,
)
from lssvm._core.blocks import run_blocks, small_problem
from lssvm._core.errors import InvalidInputError
from lssvm.kernels import Kernel
from lssvm.reductions.l0 import L0, L0System, Reduced, l0_order, reduce_printed, reduce_systems
from lssvm.solvers.moments import FoldMoments, Moments, NystromMap, nystrom_map
from lssvm.solvers.primal import fold_paths, output_errors, solve_primal

METHODS = ("spfs", "ssd", "sv-l0", "sd")
"""The reductions of a fixed-size model."""
PRINTED = ("spfs-printed", "ssd-printed", "sv-l0-printed")
"""Those that can be had to the letter."""

_SINGULAR = 1e-8  # pivots of K(Z, Z) below which its eigenvalues have to be looked at
_FEW, _LARGE = 5, 10  # so many folds are scored where each has so many rows per prototype


@dataclass(frozen=True)
class FixedSizeL0:
    """Settings of the second level of sparsity of a fixed-size model.

    Parameters
    ----------
    method : {"spfs", "ssd", "sv-l0", "sd"}, default="spfs"
        "spfs": algorithm 3 of [Mall2014]_, which starts from the primal solution. "ssd": algorithm
        4, which starts from the dual model trained on the prototypes alone. "sv-l0": the loss of
        the reduction sees the prototypes only. "sd": that dual model itself, not reduced.
    size : {"cv", "l0"} or int, default="cv"
        How many support vectors are left. "cv": the smallest size whose cross-validated error is
        within one standard error of the smallest. "l0": the size at which the printed algorithm
        ends for the C of the model; also where there are no folds (``cv="loo"``, or a criterion
        that needs none as ``scoring``).
    refit : bool, default=True
        Solve the fixed-size model again on the support vectors that are left, with a C that is
        cross-validated again if C is "cv". False, with ``size="l0"`` only: the
        coefficients of the last reweighted system, as printed.
    joint : bool, default=True
        Drop a prototype for all outputs at once, or for each output by itself.
    settings : L0, default=L0()
        Tolerances of the printed algorithm, for ``size="l0"``. With ``L0(printed=True)`` algorithms
        3 ("spfs") and 4 ("ssd") are run to the letter, see `FixedSizeL0.printed`, and so is
        "sv-l0", whose loss is that of algorithm 3 over the prototypes.

    Examples
    --------
    >>> from lssvm.reductions import FixedSizeL0
    >>> FixedSizeL0("ssd").size, FixedSizeL0.printed("ssd").refit
    ('cv', False)
    """

    method: str = "spfs"
    size: str | int = "cv"
    refit: bool = True
    joint: bool = True
    settings: L0 = field(default_factory=L0)

    def __post_init__(self) -> None:
        number = isinstance(self.size, (int, np.integer)) and not isinstance(self.size, bool)
        usable = self.size >= 1 if number else self.size in ("cv", "l0")  # type: ignore[operator]
        if self.method not in METHODS or not usable or (number and self.method == "sd"):
            raise InvalidInputError(
                f"FixedSizeL0(method={self.method!r}, size={self.size!r}) is not usable: choose a "
                f"method of {', '.join(METHODS)}, and size 'cv', 'l0' or (not for 'sd') a positive "
                "number of support vectors."
            )
        if self.size != "l0" and not self.refit and self.method != "sd":
            raise InvalidInputError(
                f"FixedSizeL0(size={self.size!r}, refit=False) is not usable: every size is "
                "scored with coefficients that are fitted to it. Give size='l0' for those of the "
                "printed algorithm."
            )
        letter = not (self.refit or self.joint) and self.size == "l0"
        if self.settings.printed and not (letter and self.method != "sd"):
            raise InvalidInputError(
                f"FixedSizeL0(method={self.method!r}, size={self.size!r}, refit={self.refit}, "
                f"joint={self.joint}) is not what is printed: FixedSizeL0.printed('spfs'), 'ssd' "
                "and 'sv-l0' are, or give settings=L0()."
            )

    @classmethod
    def printed(cls, method: str = "spfs") -> FixedSizeL0:
        """Return algorithm 3 ("spfs") or 4 ("ssd") of [Mall2014]_ exactly as printed, or "sv-l0".

        Also ``reduction="spfs-printed"``, ``"ssd-printed"`` and ``"sv-l0-printed"`` of the
        estimators: "sv-l0", the peer of section IV-B, has the loop of algorithm 3 with a loss over
        the prototypes. The first penalties are the primal weights (spfs, sv-l0; one for each
        eigenvector, padded with zeros where eigenvalues were dropped, each eigenvector turned so
        that its largest entry is positive) or the support values (ssd), the loop ends by the
        absolute tolerances of section IV, at most 50 steps, and the last system's coefficients
        above 1e-6 are the model: no size is cross-validated, nothing is fitted again, and every
        output is reduced by itself.

        Parameters
        ----------
        method : {"spfs", "ssd", "sv-l0"}, default="spfs"
            Which of the algorithms.
        """
        return cls(method, "l0", refit=False, joint=False, settings=L0(printed=True))


@dataclass(frozen=True, eq=False)
class PrototypeBasis:
    r"""A fixed-size model before its reduction: prototypes, moments, C.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    Z : array of shape (m, d)
        Prototypes.
    moments : FoldMoments
        Of all rows, and of the folds where there are any. On a device, so is the work.
    C : array of shape (k,)
        Of every output.
    start : array of shape (m, k) or None
        Coefficients that the reduction starts from; None: the primal solution of the rows in hand,
        :math:`\beta = T w` with the Nystrom map's T.
    dual_systems : list of L0System or None
        Systems in place of those of the moments, where the loss sees other rows ("sv-l0").
    threads : int
        How many threads compute.
    scale : array of shape (k,) or None
        Units of the targets, see `reduce_l0`; None: 1.
    """

    kernel: Kernel
    Z: FloatArray
    moments: FoldMoments
    C: FloatArray
    start: FloatArray | None = None
    dual_systems: list[L0System] | None = None
    threads: int = 1
    scale: FloatArray | None = None

    @cached_property
    def prototypes(self) -> Array:
        """The prototypes where the moments are."""
        like = self.moments.cells[0].gram if self.moments.cells else self.Z
        if is_numpy(like):
            return self.Z
        place = Device(get_namespace(like), device(like))
        return place.put(np.asarray(self.Z, dtype=np.float64))

    @cached_property
    def gram(self) -> Array:
        """K(Z, Z), where the moments are."""
        gram = self.kernel(self.prototypes, self.prototypes)
        return np.asarray(gram, dtype=np.float64) if is_numpy(gram) else gram

    @cached_property
    def map(self) -> NystromMap:
        """The Nystrom map of all prototypes."""
        return nystrom_map(self.kernel, self.prototypes, gram=self.gram)

    @property
    def n_folds(self) -> int:
        """Number of folds that there are moments of; 0: none."""
        return len(self.moments.layout.test)

    def groups(self, columns: IntArray) -> list[IntArray]:
        """Return the outputs among ``columns`` that share their rows, group by group."""
        shared = [np.intersect1d(g, columns) for g in self.moments.groups(len(self.C))]
        return [group for group in shared if len(group)]

    def training(self, v: int | None, group: IntArray) -> Moments:
        """Return the moments of the training rows of a fold (None: all rows)."""
        return self._outputs(self.moments.training(v, group), group)

    def testing(self, v: int, group: IntArray) -> Moments:
        """Return the moments of the test rows of a fold."""
        return self._outputs(self.moments.testing(v, group), group)

    def _outputs(self, moments: Moments, group: IntArray) -> Moments:
        return moments if self.moments.task is not None else moments.outputs(group)

    def systems(self, v: int | None, columns: IntArray) -> list[L0System]:
        """Return the systems of some outputs, their columns numbered within ``columns``."""
        if self.dual_systems is not None:
            systems = [system.outputs(columns) for system in self.dual_systems]
            return [system for system in systems if len(system.columns)]
        known = [(self.training(v, group), group) for group in self.groups(columns)]
        places = [(m, np.searchsorted(columns, group)) for m, group in known if m.weight > 0]
        scale = None if self.scale is None else self.scale[columns]
        return [
            L0System.of(moments, place, None if scale is None else scale[place])
            for moments, place in places
        ]

    def first(self, v: int | None, columns: IntArray) -> FloatArray:
        """Return the coefficients (m, q) to start from."""
        if self.start is not None:
            return self.start[:, columns]
        return self.solve(v, columns, None, self.C[columns])[0]

    def printed_start(self, columns: IntArray) -> FloatArray:
        """Return what algorithms 3 and 4 of [Mall2014] start from, shape (m, q).

        The support values of the dual model on the prototypes, or the weights of the features,
        w = T^T K(Z, Z) beta: an eigenvector has no sign of its own, so each is turned to have a
        positive largest entry.
        """
        first = self.first(None, columns)
        if self.start is not None:
            return first
        T = to_numpy(self.map.T)
        largest = T[np.argmax(np.abs(T), axis=0), np.arange(T.shape[1])]
        weights = np.sign(largest)[:, None] * (T.T @ (to_numpy(self.gram) @ first))
        return np.vstack([weights, np.zeros((len(T) - len(weights), len(columns)))])

    def solve(
        self, v: int | None, columns: IntArray, support: IntArray | None, C: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Fit the fixed-size model on some of the prototypes.

        [Mall2014], eq. (5), on the support. 13 m'^3 operations.
        """
        map = self.map if support is None else self._part(support)
        coef, intercept = np.zeros((map.T.shape[0], len(columns))), np.zeros(len(columns))
        for group in self.groups(columns):
            at = np.searchsorted(columns, group)
            moments = self.training(v, group)
            if not moments.weight > 0:
                continue
            moments = moments if support is None else moments.subset(support)
            for value in dict.fromkeys(C[at].tolist()):
                inside = C[at] == value
                solved, b = solve_primal(moments, map, value)
                coef[:, at[inside]], intercept[at[inside]] = solved[:, inside], b[inside]
        return coef, intercept

    def _part(self, support: IntArray) -> NystromMap:
        Z, gram = take_rows(self.prototypes, support), take_square(self.gram, support)
        return nystrom_map(self.kernel, Z, gram=gram)

    def errors(
        self,
        v: int,
        group: IntArray,
        supports: list[IntArray],
        maps: list[NystromMap],
        grids: list[FloatArray],
    ) -> list[FloatArray]:
        """Return the squared errors (c, q) of a group on a fold, for supports and paths of C."""
        training, test = self.training(v, group), self.testing(v, group)
        if not test.weight > 0:
            return [np.zeros((len(grid), len(group))) for grid in grids]
        if not training.weight > 0:
            return [np.tile(to_numpy(test.squares), (len(grid), 1)) for grid in grids]
        out = []
        for support, map, grid in zip(supports, maps, grids, strict=True):
            train, left = training, test
            if len(support) < self.Z.shape[0]:
                train, left = training.subset(support), test.subset(support)
            model = fold_paths([train], map).solve(grid)[0]
            out.append(test.weight * output_errors(left, *model))
        return out

    def quick_map(self, support: IntArray) -> NystromMap:
        """Return a map of the same inner products by Cholesky where K is far from singular."""
        if len(support) == self.Z.shape[0]:
            return self.map
        if not is_numpy(self.gram):
            return self._part(support)
        K = self.gram[np.ix_(support, support)]
        factor, info = dpotrf(K, lower=1)
        diagonal = np.diagonal(factor) ** 2
        if info != 0 or diagonal.min() < _SINGULAR * np.diagonal(K).max():
            return self._part(support)
        inverse, _ = dtrtri(factor, lower=1)
        return NystromMap(np.asfortranarray(np.tril(inverse).T), diagonal, 0.0)


def cross_validate_sizes(
    basis: PrototypeBasis, columns: IntArray, C_grid: FloatArray | None = None
) -> SparsityPath:
    """Measure the error of every size of a reduction on the folds of a fit."""
    m = basis.Z.shape[0]
    groups = basis.groups(columns)
    n_folds = _scored_folds(basis, groups)
    sizes = path_sizes(m)
    grids = [
        [np.unique(basis.C[g]) if C_grid is None or s == m else C_grid for s in sizes]
        for g in groups
    ]
    _ = basis.map  # once, before threads need it

    def order(v: int | None) -> IntArray:
        return l0_order(basis.systems(v, columns), basis.first(v, columns), basis.C[columns])

    shared = (
        None if basis.dual_systems is None else order(None)
    )  # a loss that is the same for all folds

    def evaluate(v: int | None) -> tuple[IntArray, list[list[FloatArray]]]:
        ranked = order(v) if shared is None else shared
        if v is None:
            return ranked, []
        supports = [np.arange(m) if size == m else ranked[:size] for size in sizes]
        maps = [basis.quick_map(support) for support in supports]
        todo = zip(groups, grids, strict=True)
        return ranked, [basis.errors(v, group, supports, maps, grid) for group, grid in todo]

    with small_problem(m):
        evaluated = run_blocks(evaluate, [None, *range(n_folds)], basis.threads)
    squares, C = _best_C(basis, columns, groups, grids, [errors for _, errors in evaluated[1:]])
    weight, constant = _without_support(basis, groups, n_folds)
    losses = squares / weight  # (s, v)
    mean = squares.sum(axis=1) / weight.sum()
    with np.errstate(invalid="ignore"):  # an infinite loss has no deviation
        std_error = losses.std(axis=1, ddof=1) / np.sqrt(n_folds)
    return SparsityPath(sizes, mean, std_error, C, evaluated[0][0], constant)


def reduce_as_printed(basis: PrototypeBasis, columns: IntArray, settings: L0) -> Reduced:
    """Run algorithm 3 or 4 of [Mall2014] on the moments of all rows, with the C of the basis.

    To the letter, for one output, with ``L0(printed=True)``.
    """
    with small_problem(basis.Z.shape[0]):
        if settings.printed:
            (system,), start = basis.systems(None, columns), basis.printed_start(columns)
            return reduce_printed(system, start[:, 0], float(basis.C[columns[0]]), settings)
        return reduce_systems(
            basis.systems(None, columns), basis.first(None, columns), basis.C[columns], settings
        )


def _best_C(
    basis: PrototypeBasis,
    columns: IntArray,
    groups: list[IntArray],
    grids: list[list[FloatArray]],
    errors: list[list[list[FloatArray]]],
) -> tuple[FloatArray, FloatArray]:
    """Return the squared errors (s, v) at the best C of each group, and those C (s, q)."""
    n_sizes = len(grids[0])
    squares, C = np.zeros((n_sizes, len(errors))), np.empty((n_sizes, len(columns)))
    for g, group in enumerate(groups):
        own = basis.C[group]
        for i, grid in enumerate(grids[g]):
            folds = np.stack([fold[g][i] for fold in errors])  # (v, c, q)
            if len(grid) > 1 and set(grid.tolist()) == set(own.tolist()):
                pick = np.searchsorted(grid, own)  # fixed, and not the same for all outputs
            else:
                pick = np.full(len(group), int(np.argmin(folds.sum(axis=(0, 2)))))
            squares[i] += folds[:, pick, np.arange(len(group))].sum(axis=1)
            C[i, np.searchsorted(columns, group)] = grid[pick]
    return squares, C


def _scored_folds(basis: PrototypeBasis, groups: list[IntArray]) -> int:
    """Return how many folds are scored: all, or a few where they are large."""
    rows = [basis.testing(v, group).n for v in range(basis.n_folds) for group in groups]
    return min(_FEW, basis.n_folds) if min(rows) >= _LARGE * basis.Z.shape[0] else basis.n_folds


def _without_support(
    basis: PrototypeBasis, groups: list[IntArray], n_folds: int
) -> tuple[FloatArray, float]:
    """Return the weights of all outputs on the folds (v,), and the error of the bias alone."""
    weight, error = np.zeros(n_folds), 0.0
    for v in range(n_folds):
        for group in groups:
            training, test = basis.training(v, group), basis.testing(v, group)
            b = to_numpy(training.target) / training.weight if training.weight > 0 else 0.0
            squares, target = to_numpy(test.squares), to_numpy(test.target)
            weight[v] += test.weight * len(group)
            error += float(np.sum(squares - 2 * b * target + test.weight * b * b))
    return weight, error / float(weight.sum())


@dataclass(frozen=True, eq=False)
class SparsityPath:
    """Cross-validated error against the number of support vectors.

    Attributes
    ----------
    sizes : int array of shape (s,)
        Ascending numbers of support vectors; the last is the number of prototypes.
    mean : array of shape (s,)
        Cross-validated mean squared error of the outputs, averaged over them.
    std_error : array of shape (s,)
        Its standard error over the folds.
    C : array of shape (s, k)
        The regularisation of every output at every size, chosen on the same folds.
    order : int array of shape (m,)
        Prototypes from the last to the first that leaves: those of any size are its beginning.
    constant : float
        The error without any support vector, of the bias alone.
    chosen : int
        The smallest size whose error is within one standard error of the smallest error.

    Notes
    -----
    The trade-off of section V of [Mall2014]_, measured on left-out rows of the training set rather
    than on the test set.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm.reductions import SparsityPath
    >>> path = SparsityPath(np.array([1, 2, 3]), np.array([0.9, 0.31, 0.3]), np.full(3, 0.02),
    ...                     np.ones((3, 1)), np.array([2, 0, 1]), 1.0)
    >>> path.chosen, path.support(2)
    (2, array([0, 2]))
    """

    sizes: IntArray
    mean: FloatArray
    std_error: FloatArray
    C: FloatArray
    order: IntArray
    constant: float

    @property
    def best(self) -> int:
        """The size of the smallest error."""
        return int(self.sizes[np.argmin(self.mean)])

    @property
    def limit(self) -> float:
        """The smallest error plus its standard error."""
        i = int(np.argmin(self.mean))
        return float(self.mean[i] + self.std_error[i])

    @property
    def chosen(self) -> int:
        """The smallest size whose error is within one standard error of the smallest error."""
        return int(self.sizes[np.argmax(self.mean <= self.limit)])

    @property
    def supports(self) -> list[IntArray]:
        """The numbers of the prototypes that are left at every size, ascending."""
        return [self.support(int(size)) for size in self.sizes]

    def support(self, size: int) -> IntArray:
        """Return the numbers of the ``size`` prototypes that leave last, ascending.

        Parameters
        ----------
        size : int
            How many prototypes.
        """
        return np.sort(self.order[:size])

    def C_at(self, size: int) -> FloatArray:
        """Return the C (k,) of a size: that of the nearest size of the path.

        Parameters
        ----------
        size : int
            How many prototypes; need not be one of the path.
        """
        distance = np.abs(np.log(self.sizes) - np.log(size))
        return np.asarray(self.C[np.argmin(distance)])


def path_sizes(m: int, ratio: float = 0.75) -> IntArray:
    """Return the sizes of a path: from m downwards, each three quarters of the one before."""
    sizes = [m]
    while sizes[-1] > 1:
        sizes.append(min(sizes[-1] - 1, round(sizes[-1] * ratio)))
    return np.array(sizes[::-1], dtype=np.intp)
