"""Leaves on a GPU: many exact models at a time, and their outputs.

Leaves of about the same size are stacked into one array (b, n, n) and go through the same steps
together: distances, kernel, Cholesky factor, its inverse, leave-one-out outputs. Shorter leaves are
filled up with rows that touch nothing: their kernel values are 0 and their diagonal is 1.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from lssvm._core.arrays import Array, Device, FloatArray, IntArray, out_of_memory, to_numpy
from lssvm._core.blocks import as_bytes, n_threads, slices
from lssvm._core.errors import MemoryBudgetError, NotPositiveDefiniteError, NumericalWarning
from lssvm.kernels.base import Kernel
from lssvm.kernels.metric import FARTHEST, MOST_LEVELS, Metric, slopes_of
from lssvm.kernels.radial import Distance, Laplacian
from lssvm.local.engine import LeafEngine, LeafTask
from lssvm.local.leaf import Leaf, LocalSearch, Rows, Setting
from lssvm.local.model import Tree
from lssvm.solvers import ExactFit

_SHARE = 0.4  # of the free memory that a batch may take
_MATRICES = 5  # of n x n numbers that a leaf needs while it is solved
_LIKE = 0.95  # leaves whose sizes differ by less are stacked
_CLOSE = 1e-6  # squared distances below this share of the squared norms are computed again
_JITTER = (1e-10, 1e-8, 1e-6)  # shares of the mean diagonal
_NOTHING_LEFT = 1e-12  # P_ii this far below the inverse's own diagonal: no row remains
_ENTRIES = 2**26  # kernel values of a block of outputs
_HALVED = 320  # rows beyond which a factor is inverted by halves
_MOST_BLOCKS = 65_535  # of a grid along its second and third axis
_FEW = 8  # leaves, to which others are added
_LIKE_FEW = 0.8  # that are less alike: a step of so few leaves takes as long as of some more
_FEATURES = 2**23  # numbers of a block of slopes
_SOLVING = Lock()  # one batch at a time has the memory: a device does small ones badly
_LOADING = Lock()  # torch fails where several threads make it load its solvers at the same time


@dataclass(frozen=True, eq=False)
class _Stack:
    """Leaves of about the same size, filled up to the longest.

    Attributes
    ----------
    X : tensor of shape (b, n, d)
    Y : tensor of shape (b, n, k)
    weight : tensor of shape (b, n)
        1 in the rows that fill up.
    real : tensor of shape (b, n)
        1.0 for rows of a leaf, 0.0 for those that fill up.
    lengths : sequence of b ints
        Rows of each leaf.
    distance : {"sqeuclidean", "euclidean", "cityblock"}
        What the kernel is a function of.
    """

    X: Array
    Y: Array
    weight: Array
    real: Array
    lengths: Sequence[int]
    distance: Distance

    @cached_property
    def D(self) -> Array:
        """Distances between the rows (b, n, n); infinite to rows that fill up."""
        D = between(self.X, self.X, self.distance)
        for i, n in enumerate(self.lengths):
            if n < D.shape[1]:
                D[i, n:] = D[i, :, n:] = np.inf
        return D

    @classmethod
    def of(cls, place: Device, leaves: Sequence[Rows], distance: Distance) -> _Stack:
        X = _filled([leaf.X for leaf in leaves])
        Y = _filled([leaf.Y for leaf in leaves], zeros=True)
        weight, real = np.ones(X.shape[:2]), np.zeros(X.shape[:2])
        for i, leaf in enumerate(leaves):
            weight[i, : len(leaf.X)], real[i, : len(leaf.X)] = leaf.weight, 1.0
        lengths = [len(leaf.X) for leaf in leaves]
        put = place.put
        return cls(put(X), put(Y), put(weight), put(real), lengths, distance)


def between(X: Array, Z: Array, distance: Distance) -> Array:
    """Return distances (b, n, m) between the rows of X (b, n, d) and Z (b, m, d)."""
    import torch

    if distance == "cityblock":
        return _cityblock(X, Z)
    centre = Z.mean(dim=1, keepdim=True)
    X, Z = X - centre, Z - centre
    xx, zz = (X * X).sum(dim=2), (Z * Z).sum(dim=2)
    D = torch.baddbmm(xx[:, :, None] + zz[:, None, :], X, Z.transpose(1, 2), alpha=-2.0)
    # Pairs so close that the difference of large numbers has lost their distance.
    limit = _CLOSE * (xx.max() + zz.max())
    b, i, j = torch.nonzero(D < limit, as_tuple=True)
    if len(b):
        gap = X[b, i] - Z[b, j]
        D[b, i, j] = (gap * gap).sum(dim=1)
    return D.sqrt_() if distance == "euclidean" else D


def _cityblock(X: Array, Z: Array) -> Array:
    """Return sums of absolute differences; columns of two values go through a product.

    |x - z| = 2 max(x, z) - x - z: maxima are added up with two thirds of the passes over memory of
    differences, and equal rows have distance 0 still, as all sums are in the order of the columns.
    """
    import torch

    if (kernel := _fused_cityblock(X, Z)) is not None:
        return kernel
    low = torch.minimum(X.amin(dim=(0, 1)), Z.amin(dim=(0, 1)))
    high = torch.maximum(X.amax(dim=(0, 1)), Z.amax(dim=(0, 1)))
    few = ((X == low) | (X == high)).all(dim=1).all(dim=0)
    few &= ((Z == low) | (Z == high)).all(dim=1).all(dim=0)
    D = torch.zeros(X.shape[0], X.shape[1], Z.shape[1], dtype=X.dtype, device=X.device)
    many = torch.nonzero(~few).ravel().tolist()
    if many:  # torch.cdist takes seven times as long on a GPU
        larger = torch.empty_like(D)
        for i in many:
            D += torch.maximum(X[:, :, None, i], Z[:, None, :, i], out=larger)
        del larger
        left, right = (torch.ones(*A.shape[:2], 2, dtype=A.dtype, device=A.device) for A in (X, Z))
        left[:, :, 0], right[:, :, 1] = _added(X, many), _added(Z, many)
        D.baddbmm_(left, right.transpose(1, 2), beta=2.0, alpha=-1.0)
    if bool(few.any()):
        width = torch.where(high > low, high - low, torch.ones_like(low))[few]
        # Whole numbers 0 and 1 multiply exactly: |x - z| = width (x + z - 2 x z).
        A, B = (
            ((X[:, :, few] - low[few]) / width).round(),
            ((Z[:, :, few] - low[few]) / width).round(),
        )
        D += (A @ width)[:, :, None] + (B @ width)[:, None, :]
        D.baddbmm_(A * width, B.transpose(1, 2), alpha=-2.0)
    return D


_CITYBLOCK = r"""
extern "C" __global__ void cityblock(
    const double* X, const double* Z, double* D, int n, int m, int d)
{
    __shared__ double rows[32][33], others[32][33];
    const int x = threadIdx.x, y = threadIdx.y;
    const size_t first = (size_t)blockIdx.z * n, second = (size_t)blockIdx.z * m;
    const int i = blockIdx.y * 32, j = blockIdx.x * 32;
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    for (int k = 0; k < d; k += 32) {
        for (int r = y; r < 32; r += 8) {
            const bool inside = k + x < d;
            rows[r][x] = inside && i + r < n ? X[(first + i + r) * d + k + x] : 0.0;
            others[r][x] = inside && j + r < m ? Z[(second + j + r) * d + k + x] : 0.0;
        }
        __syncthreads();
        const int last = d - k < 32 ? d - k : 32;
        for (int c = 0; c < last; ++c) {
            const double z = others[x][c];
            for (int r = 0; r < 4; ++r) sum[r] += fabs(rows[y + 8 * r][c] - z);
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; ++r)
        if (i + y + 8 * r < n && j + x < m) D[(first + i + y + 8 * r) * m + j + x] = sum[r];
}
"""


def _fused_cityblock(X: Array, Z: Array) -> Array | None:
    """Return sums of absolute differences by one kernel, None where it cannot be used.

    Each entry is written once; the sums of maxima pass over all of them for every column.
    """
    import torch

    if not X.is_cuda or X.dtype != torch.float64 or len(X) > _MOST_BLOCKS or not X.shape[2]:
        return None
    kernel = _compiled_cityblock(X.device.index)
    if kernel is None or -(-X.shape[1] // 32) > _MOST_BLOCKS:
        return None
    X, Z = X.contiguous(), Z.contiguous()
    D = torch.empty(X.shape[0], X.shape[1], Z.shape[1], dtype=X.dtype, device=X.device)
    if D.numel():
        grid = (-(-Z.shape[1] // 32), -(-X.shape[1] // 32), len(X))
        with torch.cuda.device(X.device):
            kernel(grid, (32, 8, 1), [X, Z, D, X.shape[1], Z.shape[1], X.shape[2]])
    return D


def _compiled_cityblock(device: int) -> Any:
    """Return the kernel for a GPU; None where this version of torch cannot compile one."""
    import torch

    with _LOADING:
        if device not in _kernels:
            try:
                with torch.cuda.device(device):
                    _kernels[device] = torch.cuda._compile_kernel(_CITYBLOCK, "cityblock")
            except Exception:  # a function that torch does not document, or a library is missing
                _kernels[device] = None
        return _kernels[device]


_kernels: dict[int, Any] = {}  # by the number of the GPU


def _added(X: Array, columns: Sequence[int]) -> Array:
    """Return the sums (b, n) of some columns of X (b, n, d), added one after the other."""
    total = X[:, :, columns[0]].clone()
    for i in columns[1:]:
        total += X[:, :, i]
    return total


@dataclass(frozen=True, eq=False)
class _Solved:
    """Exact fits of a stack: coefficients (b, n, k), biases (b, k), left-out outputs (b, n, k)."""

    coef: Array
    intercept: Array
    left_out: Array
    error: Array


def _solve(stack: _Stack, chosen: Array, settings: Sequence[Setting], repeats: Any) -> _Solved:
    """Solve the systems of some leaves of a stack, each with its own setting."""
    import torch

    on = {"dtype": stack.X.dtype, "device": stack.X.device}
    gamma = torch.tensor([s.gamma for s in settings], **on)
    C = torch.tensor([s.C for s in settings], **on)
    real, weight, Y = stack.real[chosen], stack.weight[chosen], stack.Y[chosen]
    D = stack.D if len(chosen) == len(stack.D) else stack.D[chosen]
    A = (D * -gamma[:, None, None]).exp_()
    del D
    diagonal = A.diagonal(dim1=1, dim2=2)
    diagonal += torch.where(real > 0, 1.0 / (C[:, None] * weight), torch.ones_like(weight))
    L = _inverse_factor(A, diagonal)
    right = torch.cat([real[:, :, None], Y], dim=2)
    eta = L.transpose(1, 2) @ (L @ right)
    nu, eta = eta[:, :, 0], eta[:, :, 1:]
    total = nu.sum(dim=1)
    intercept = eta.sum(dim=1) / total[:, None]
    coef = eta - nu[:, :, None] * intercept[:, None, :]
    whole = torch.linalg.vector_norm(L, dim=1).square_()
    P = whole - nu * nu / total[:, None]
    left = (P > _NOTHING_LEFT * whole) & (real > 0)
    left_out = torch.where(
        left[:, :, None], Y - coef / torch.where(left, P, torch.ones_like(P))[:, :, None], 0.0
    )
    for i, groups in enumerate(repeats):
        for members in groups:
            _together(L[i], nu[i], total[i], Y[i], coef[i], left_out[i], members)
    gap = ((Y - left_out) ** 2).sum(dim=2) * weight * real
    error = gap.sum(dim=1) / (weight * real).sum(dim=1)
    return _Solved(coef, intercept, left_out, error)


def _inverse_factor(A: Array, diagonal: Array) -> Array:
    """Return the inverses of the lower factors of A, with jitter where A has none."""
    import torch

    inverse, failed = torch.empty_like(A), torch.zeros(len(A), dtype=torch.bool, device=A.device)
    _invert_factor(A, inverse, failed)
    for i in torch.nonzero(failed).ravel().tolist():
        mean = diagonal[i].mean()
        for share in _JITTER:
            again = A[i : i + 1].clone()
            again.diagonal(dim1=1, dim2=2).add_(share * mean)
            still = torch.zeros_like(failed[:1])
            _invert_factor(again, inverse[i : i + 1], still)
            if not bool(still):
                warnings.warn(
                    "The kernel matrix plus 1/C was not positive definite to working precision; "
                    f"{share:g} of its diagonal was added. A smaller C avoids it.",
                    NumericalWarning,
                    stacklevel=2,
                )
                break
        else:
            raise NotPositiveDefiniteError(
                f"The kernel matrix of {A.shape[1]} rows plus 1/C is not positive definite: use a "
                "smaller C, or a kernel that is positive definite."
            )
    return inverse


def _invert_factor(A: Array, out: Array, failed: Array) -> None:
    """Write the inverses of the lower factors of A (b, n, n) to ``out``; note which have none.

    By halves, so that nearly all operations are products: for batches of 2,000 rows and more a GPU
    does them in two fifths of the time of its own factorisation and triangular solution.
    """
    import torch

    n = A.shape[1]
    if n <= _HALVED:
        with _LOADING:
            L, info = torch.linalg.cholesky_ex(A)
        failed |= info != 0
        eye = torch.eye(n, dtype=A.dtype, device=A.device).expand_as(A)
        out.copy_(torch.linalg.solve_triangular(L, eye, upper=False))
        return
    half = _half(n)
    first, second = slice(0, half), slice(half, n)
    upper, lower = out[:, first, first], out[:, second, second]
    _invert_factor(A[:, first, first], upper, failed)
    below = _lower_times(upper, A[:, second, first].transpose(1, 2)).transpose(1, 2)
    left = _lower_difference(A[:, second, second], below)
    _invert_factor(left, lower, failed)
    del left
    out[:, first, second] = 0.0
    out[:, second, first] = _lower_times(lower, _times_lower(below, upper).neg_())


def _half(n: int) -> int:
    """Return the rows of the first of two halves."""
    return -(-n // 128) * 64


def _lower_times(L: Array, B: Array) -> Array:
    """Return L B (b, n, m) for lower factors L, without a quarter that are zeros of L."""
    import torch

    if L.shape[1] <= _HALVED:
        return L @ B
    half = _half(L.shape[1])
    return torch.cat([L[:, :half, :half] @ B[:, :half], L[:, half:] @ B], dim=1)


def _times_lower(B: Array, L: Array) -> Array:
    """Return B L (b, m, n) for lower factors L, without a quarter that are zeros of L."""
    import torch

    if L.shape[1] <= _HALVED:
        return B @ L
    half = _half(L.shape[1])
    return torch.cat([B @ L[:, :, :half], B[:, :, half:] @ L[:, half:, half:]], dim=2)


def _lower_difference(A: Array, B: Array) -> Array:
    """Return A - B B^T (b, n, n), of which the upper right quarter is not needed if n is large."""
    import torch

    if A.shape[1] <= _HALVED:
        return torch.baddbmm(A, B, B.transpose(1, 2), alpha=-1.0)
    out, half = torch.empty_like(A), _half(A.shape[1])
    for rows, columns in ((slice(0, half), slice(0, half)), (slice(half, None), slice(None))):
        out[:, rows, columns] = torch.baddbmm(
            A[:, rows, columns], B[:, rows], B[:, columns].transpose(1, 2), alpha=-1.0
        )
    return out


def _together(
    L: Array, nu: Array, total: Array, Y: Array, coef: Array, left_out: Array, members: Array
) -> None:
    """Write the outputs of groups (g, s) of equal size, each left out as a whole."""
    import torch

    g, s = members.shape
    columns = L[:, members.ravel()].reshape(-1, g, s)
    inside = torch.einsum("nga,ngb->gab", columns, columns)
    nu_members = nu[members]
    inside -= nu_members[:, :, None] * nu_members[:, None, :] / total
    solved = torch.linalg.pinv(inside, rtol=1e-12, hermitian=True) @ coef[members]
    left_out[members] = Y[members] - solved if g * s < len(Y) or s < len(Y) else 0.0


def _grouped(rows: Rows) -> list[IntArray]:
    """Return the groups of a leaf that are left out together, stacked by their size."""
    by_size: dict[int, list[IntArray]] = {}
    for group in rows.repeats().members if len(rows.X) > 1 else ():
        by_size.setdefault(len(group), []).append(group)
    return [np.stack(groups) for groups in by_size.values()]


@dataclass(frozen=True, eq=False)
class _Prepared:
    """A leaf to be fitted, and what a thread of the host finds out meanwhile: `_grouped`."""

    task: LeafTask
    groups: Future[list[IntArray]]


@dataclass(frozen=True, eq=False)
class DeviceLeaves(LeafEngine):
    """Exact leaves computed on a device.

    Parameters
    ----------
    place : Device
        A torch device.

    Examples
    --------
    >>> from lssvm import LSSVMRegressor
    >>> LSSVMRegressor(device="cuda").device  # makes such an engine when it is fitted
    'cuda'
    """

    threads: int = field(
        default_factory=lambda: n_threads(None), init=False
    )  # of slopes on the host
    place: Device

    @property
    def n_workers(self) -> int:
        """Return 1: a device is filled by the leaves of one configuration."""
        return 1

    @property
    def n_configurations(self) -> int:
        """Return 4: the host prepares one while the device solves another."""
        return 4 if self.place.is_cuda else 1

    @property
    def speed(self) -> float:
        """Return 20 for a GPU: an H200 is 40 to 90 times as fast as two cores, many are slower."""
        return 20.0 if self.place.is_cuda else 1.0

    def largest_leaf(self, budget: int) -> int:
        """Return the rows of the largest leaf that the device holds, at most 10,000."""
        return min(10_000, int(np.sqrt(_SHARE * self.place.free_bytes() / (8 * _MATRICES))))

    def single_threaded(self) -> DeviceLeaves:
        """Return this engine."""
        return self

    def fit(
        self,
        tasks: Sequence[LeafTask],
        *,
        tries: int = 1,
        stop: Callable[[], bool] = lambda: False,
        finished: Callable[[int, Leaf], None] = lambda number, leaf: None,
        on_error: Callable[[], None] | None = None,
        draft: bool = False,
        held_out: bool = True,
    ) -> list[Leaf]:
        """Fit an exact model to each of several sets of rows, searching for better settings.

        Parameters
        ----------
        tasks : list of LeafTask
            What is fitted, a leaf each.
        tries : int
            Settings that a leaf may try.
        stop : callable
            Asked before each further setting.
        finished, on_error : callable
            See `LeafEngine`; nothing runs on after an error here.
        draft, held_out : bool
            A draft costs a device what a model costs, and is one.

        Returns
        -------
        list of Leaf
            On the host, equal to those of `fit_leaf` up to rounding.

        Notes
        -----
        Logistic leaves are computed on the threads of the host: on as many as leave room for two
        matrices of the largest leaf each in half of the memory budget.
        """
        if any(task.start.loss == "logistic" for task in tasks):
            largest = max(len(task.rows.X) for task in tasks)
            fitting = int(as_bytes(self.place.limit) / 2 / (16.0 * largest**2))
            threads = self.threads if len(tasks) == 1 else max(1, min(self.threads, fitting))
            return LeafEngine(threads).fit(
                tasks, tries=tries, stop=stop, finished=finished, on_error=on_error, draft=draft
            )
        leaves: list[Leaf | None] = [None] * len(tasks)
        with _SOLVING:  # when memory is free
            batches = list(self._batches(tasks))
        with ThreadPoolExecutor(self.threads) as pool:
            groups = {i: pool.submit(_grouped, tasks[i].rows) for i in itertools.chain(*batches)}
            prepared = [_Prepared(task, groups[i]) for i, task in enumerate(tasks)]
            try:
                for batch in batches:
                    self._fit_batch(prepared, batch, leaves, 1 if stop() else tries, stop)
                    for i in batch:
                        leaf = leaves[i]
                        assert leaf is not None
                        finished(i, leaf)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return [leaf for leaf in leaves if leaf is not None]

    def _batches(self, tasks: Sequence[LeafTask]) -> Iterator[list[int]]:
        """Deal out leaves of one distance and about one size in batches that fit into memory."""
        order = sorted(range(len(tasks)), key=lambda i: (tasks[i].distance, -len(tasks[i].rows.X)))
        batch: list[int] = []
        most = 1
        for i in order:
            task = tasks[i]
            like = _LIKE if len(batch) >= _FEW else _LIKE_FEW
            if batch and (
                task.distance != tasks[batch[0]].distance
                or len(task.rows.X) < like * len(tasks[batch[0]].rows.X)
                or len(batch) >= most
            ):
                yield batch
                batch = []
            if not batch:  # queried once: the answer takes as long as a leaf
                size = 8 * _MATRICES * len(task.rows.X) ** 2
                most = max(1, int(_SHARE * self.place.free_bytes()) // size)
            batch.append(i)
        if batch:
            yield batch

    def _fit_batch(
        self,
        tasks: Sequence[_Prepared],
        batch: list[int],
        leaves: list[Leaf | None],
        tries: int,
        stop: Callable[[], bool],
    ) -> None:
        """Fit a batch; halve it where the device has no memory for it."""
        try:
            for i, leaf in zip(batch, self._together(tasks, batch, tries, stop), strict=True):
                leaves[i] = leaf
        except Exception as error:
            if not out_of_memory(error):
                raise
            self.place.release()
            if len(batch) == 1:
                rows = len(tasks[batch[0]].task.rows.X)
                raise MemoryBudgetError(
                    f"The device has no memory for a leaf of {rows} rows: "
                    "give a smaller leaf_size, or device=None."
                ) from error
            half = len(batch) // 2
            self._fit_batch(tasks, batch[:half], leaves, tries, stop)
            self._fit_batch(tasks, batch[half:], leaves, tries, stop)

    def _together(
        self, tasks: Sequence[_Prepared], batch: list[int], tries: int, stop: Callable[[], bool]
    ) -> list[Leaf]:
        leaves = [tasks[i].task.rows for i in batch]
        stack = _Stack.of(self.place, leaves, tasks[batch[0]].task.distance)
        repeats = [[self.place.put(g) for g in tasks[i].groups.result()] for i in batch]
        searches = [LocalSearch(tasks[i].task.start, tries) for i in batch]
        with _SOLVING:
            best = self._solved(stack, searches, repeats, stop)
            del stack
        coef, intercept = to_numpy(best.coef), to_numpy(best.intercept)
        left_out = to_numpy(best.left_out)
        return [
            Leaf(
                rows,
                search.best,
                ExactFit(
                    coef[i, : len(rows.X)].copy(),
                    intercept[i].copy(),
                    left_out[i, : len(rows.X)].copy(),
                ),
                search.error,
            )
            for i, (rows, search) in enumerate(zip(leaves, searches, strict=True))
        ]

    def _solved(
        self,
        stack: _Stack,
        searches: Sequence[LocalSearch],
        repeats: Sequence[list[Array]],
        stop: Callable[[], bool],
    ) -> _Solved:
        """Return the fits of a stack with the best settings that the searches find."""
        import torch

        best: _Solved | None = None
        while True:
            tried = [search.propose(stop) for search in searches]
            active = [i for i, setting in enumerate(tried) if setting is not None]
            if not active:
                break
            chosen = torch.tensor(active, device=stack.X.device)
            settings = [setting for setting in tried if setting is not None]
            solved = _solve(stack, chosen, settings, [repeats[i] for i in active])
            better = []
            for place, (i, error) in enumerate(zip(active, solved.error.tolist(), strict=True)):
                if searches[i].update(error):
                    better.append(place)
            if best is None:
                best = solved
            elif better:
                into, where = chosen[better], torch.tensor(better, device=stack.X.device)
                for name in ("coef", "intercept", "left_out"):
                    getattr(best, name)[into] = getattr(solved, name)[where]
        assert best is not None
        return best

    def outputs(
        self, jobs: Sequence[tuple[Leaf, FloatArray]], distance: Distance
    ) -> list[FloatArray]:
        """Return the outputs of every leaf for its own rows; leaves with few rows together."""
        out = [np.empty((len(X), leaf.fit.coef.shape[1])) for leaf, X in jobs]
        order = sorted((i for i in range(len(jobs)) if len(out[i])), key=lambda i: len(out[i]))
        while order:
            rows, size, count = len(out[order[-1]]), 0, 0
            while count < len(order) and (count == 0 or (count + 1) * rows * size <= _ENTRIES):
                count += 1
                size = max(size, len(jobs[order[-count]][0].rows.X))
            batch = order[len(order) - count :]
            order = order[: len(order) - count]
            step = max(1, _ENTRIES // (count * size))
            for begin in range(0, rows, step):
                self._outputs(jobs, batch, slice(begin, begin + step), distance, out)
        return out

    def _outputs(
        self,
        jobs: Sequence[tuple[Leaf, FloatArray]],
        batch: list[int],
        rows: slice,
        distance: Distance,
        out: list[FloatArray],
    ) -> None:
        """Write the outputs of some rows of every job of a batch; shorter ones are filled up."""
        import torch

        put = self.place.put
        leaves = [jobs[i][0] for i in batch]
        X = put(_filled([jobs[i][1][rows] for i in batch]))
        Z = put(_filled([leaf.rows.X for leaf in leaves]))
        coef = put(_filled([leaf.fit.coef for leaf in leaves], zeros=True))
        gamma = put(np.array([leaf.setting.gamma for leaf in leaves]))
        K = between(X, Z, distance).mul_(-gamma[:, None, None]).exp_()
        values = to_numpy(torch.bmm(K, coef))
        for i, leaf, row_values in zip(batch, leaves, values, strict=True):
            out[i][rows] = row_values[: len(out[i][rows])] + leaf.fit.intercept

    def slopes(
        self,
        kernel: Kernel,
        X: FloatArray,
        Z: FloatArray,
        coef: FloatArray,
        metric: Metric,
        rows_in_Z: IntArray | None,
    ) -> list[FloatArray]:
        """Return what `slopes_of` does; those of the other kernels are products, for the host."""
        if not isinstance(kernel, Laplacian) or np.ndim(kernel.gamma):
            return slopes_of(kernel, X, Z, coef, metric, rows_in_Z)
        own = rows_in_Z if metric.by_feature else None
        put = self.place.put
        try:
            own = None if own is None else put(own)
            sides = _laplacian_slopes(put(X), put(Z), put(coef), float(kernel.gamma), own)
            return [metric.back(to_numpy(side)) for side in sides]
        except Exception as error:
            if not out_of_memory(error):
                raise
            self.place.release()
            return slopes_of(kernel, X, Z, coef, metric, rows_in_Z)

    def mapped(self, metric: Metric, X: FloatArray) -> FloatArray:
        """Return rows mapped by a metric, the warp of which is computed on the device."""
        if metric.warp is None:
            return metric.apply(X)
        put = self.place.put
        X = to_numpy(_warped(put(X), put(metric.warp.knots), put(metric.warp.values)))
        return replace(metric, warp=None).apply(X)

    def route(self, tree: Tree, X: FloatArray) -> IntArray:
        """Return the leaf of every row, computed level by level."""
        import torch

        n = len(X)
        if not len(tree.thresholds):
            return np.zeros(n, dtype=np.intp)
        put = self.place.put
        directions, thresholds = put(tree.directions), put(tree.thresholds)
        children = put(tree.children)
        out = np.empty(n, dtype=np.intp)
        rows = max(1, _ENTRIES // X.shape[1])
        for begin in range(0, n, rows):
            block = put(X[begin : begin + rows])
            node = torch.zeros(len(block), dtype=torch.int64, device=block.device)
            for _ in range(tree.depth):  # without a look at the nodes, which would wait for them
                at = node.clamp(min=0)
                along = (block * directions[at]).sum(dim=1)
                below = children[at, (along > thresholds[at]).long()]
                node = torch.where(node < 0, node, below)
            out[begin : begin + rows] = to_numpy(-1 - node)
        return out


def _laplacian_slopes(
    X: Array, Z: Array, coef: Array, gamma: float, rows_in_Z: Array | None
) -> list[Array]:
    """Return slopes (n, k, d) as `one_sided_slopes` does, or derivatives without ``rows_in_Z``."""
    import torch

    (n, d), (m, k) = X.shape, coef.shape
    K = between(X[None], Z[None], "cityblock")[0].mul_(-gamma).exp_()
    if rows_in_Z is not None:
        K[torch.arange(n, device=X.device), rows_in_Z] = 0.0
    less, most = torch.empty(2, n, k, d, dtype=X.dtype, device=X.device)
    for part in slices(d, max(1, _FEATURES // (n * m))):
        x, z = X[:, part].T[:, :, None], Z[:, part].T[:, None, :]
        less[:, :, part] = ((z < x) * K @ coef).permute(1, 2, 0)
        most[:, :, part] = ((z <= x) * K @ coef).permute(1, 2, 0)
    total = (K @ coef)[:, :, None]
    slope = -gamma * (less + most - total)
    if rows_in_Z is None:
        return [slope]
    levels = Z.T.contiguous().sort(dim=1).values
    count = 1 + (levels[:, 1:] != levels[:, :-1]).sum(dim=1)
    few = torch.nonzero((count >= 2) & (count <= min(MOST_LEVELS, m // 4))).ravel()
    if not len(few):
        return [slope]
    x, levels, less, most = X.T[few].contiguous(), levels[few], less[:, :, few], most[:, :, few]
    above = torch.searchsorted(levels, x, right=True)
    below = torch.searchsorted(levels, x) - 1
    # At an end of the feature the other side is the only one.
    sides = (torch.where(above < m, above, below), torch.where(below >= 0, below, above))
    gaps = (levels.gather(1, to) - x for to in sides)
    return [_stepped(slope, few, gap, gamma, less, most, total) for gap in gaps]


def _stepped(
    slope: Array, few: Array, gap: Array, gamma: float, less: Array, most: Array, total: Array
) -> Array:
    """Return slopes of which those of some features are differences over gaps (f, n)."""
    import torch

    gap = gap.T[:, None, :]
    moved = (gamma * gap.abs()).clamp(max=FARTHEST)
    behind = torch.where(gap > 0, most, total - less)
    change = torch.expm1(-moved) * behind + torch.expm1(moved) * (total - behind)
    slope = slope.clone()
    slope[:, :, few] = change / gap
    return slope


def _warped(X: Array, knots: Array, values: Array) -> Array:
    """Return rows (n, d) mapped by a warp with knots (d, q) and values (d, q)."""
    import torch

    x, end = X.T.contiguous(), knots.shape[1] - 1
    distinct = (knots < knots[:, -1:]).sum(dim=1, keepdim=True)  # the last knot is repeated
    at = torch.searchsorted(knots, x, right=True) - 1
    at = torch.minimum(at.clamp(min=0), (distinct - 1).clamp(min=0))
    following = (at + 1).clamp(max=end)
    left, start = knots.gather(1, at), values.gather(1, at)
    width, rise = knots.gather(1, following) - left, values.gather(1, following) - start
    slope = torch.where(width > 0, rise / width, torch.ones_like(width))
    return (start + slope * (x - left)).T.contiguous()


def _filled(arrays: Sequence[FloatArray], *, zeros: bool = False) -> FloatArray:
    """Return arrays (n_i, d) of several lengths as one (b, n, d), filled up.

    With their first row, so that a column of two values stays one; or with zeros.
    """
    shape = (len(arrays), max(len(a) for a in arrays), arrays[0].shape[1])
    # float32 becomes float64 on the device.
    out = np.zeros(shape, dtype=max((a.dtype for a in arrays), key=lambda kind: kind.itemsize))
    for i, array in enumerate(arrays):
        out[i, : len(array)] = array
        if not zeros and len(array):
            out[i, len(array) :] = array[0]
    return out
