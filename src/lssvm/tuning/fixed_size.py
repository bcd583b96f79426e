"""Cross-validated losses of fixed-size models along a path of C, for rows of any engine.

One pass over the rows gives the moments of all folds; a training set is what is left without one of
them [DeBrabanter2010, eqs. (18)-(21)]. Where every binary problem has a (C, gamma) of its own
[Suykens2002, eq. (3.13)], [DeBrabanter2010, section 8], what was read from the rows at one gamma
serves all problems.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from lssvm._core.arrays import (
    Array,
    FloatArray,
    IntArray,
    device,
    get_namespace,
    join_rows,
    pick,
    times,
    to_numpy,
)
from lssvm._core.blocks import run_blocks, slices, small_problem
from lssvm._core.errors import InvalidInputError
from lssvm.backends.host import AnyFolds, Expansion, FoldModels, Host
from lssvm.backends.rows import Rows, Training, class_rows
from lssvm.codes import one_vs_one
from lssvm.data.folds import Folds, assign_folds, hash_rows
from lssvm.kernels import Kernel
from lssvm.kernels.factory import KernelChoice
from lssvm.solvers.features import FoldFactors, feature_map
from lssvm.solvers.moments import FoldMoments, Moments, NystromMap, nystrom_map
from lssvm.solvers.primal import (
    Bias,
    FoldPaths,
    fold_paths,
    leave_out_predictions,
    mean_squared_error,
    output_errors,
)
from lssvm.tasks import Classes, Loss, RowLoss, SquaredError, Targets
from lssvm.tuning.objective import Losses, pools
from lssvm.tuning.search import Space
from lssvm.tuning.searches import usual_C_range


@dataclass(frozen=True, eq=False)
class FixedSizeObjective:
    """Cross-validated loss of a fixed-size model as a function of (C, gamma)."""

    kernel: Callable[[float | None], Kernel]
    rows: Training
    Z: FloatArray
    folds: AnyFolds
    loss: Loss
    task: Classes | None = None
    C_grid: FloatArray | None = None
    method: str = "auto"
    bias: Bias = "free"
    by_features: bool = False

    @cached_property
    def leave_out(self) -> bool:
        """Whether folds of equal rows are left out in closed form instead of by moments."""
        return self.rows.leaves_out(self.folds)

    def at(self, gamma: float | None) -> FixedSizePoint:
        """Do the pass over the rows at one kernel parameter."""
        kernel = self.kernel(gamma)
        folds = None if self.leave_out else self.folds
        if self.by_features:
            return FeaturePoint.of(self, kernel, gamma)
        moments = self.rows.moments(kernel, self.Z, folds, self.task)
        return FixedSizePoint(self, kernel, self.Z, moments, gamma)


@dataclass(eq=False)
class FixedSizePoint:
    """The moments of one kernel parameter, and the losses that follow from them.

    Attributes
    ----------
    C_of : array of shape (k,) or None
        What each problem has chosen, where each has its own C.
    has_folds : bool
        Whether its losses are those of the user's folds.
    """

    objective: FixedSizeObjective
    kernel: Kernel
    Z: FloatArray
    moments: FoldMoments
    gamma: float | None = None
    C_of: FloatArray | None = None
    has_folds: ClassVar[bool] = True
    _paths: FoldPaths | None = field(default=None, repr=False)
    _fold_models: list[tuple[FloatArray, FloatArray]] | None = field(default=None, repr=False)

    @cached_property
    def map(self) -> NystromMap:
        """From kernel values to features."""
        return nystrom_map(self.kernel, self.rows.backend.put(self.Z))

    @property
    def rows(self) -> Training:
        """The training rows."""
        return self.objective.rows

    @property
    def whole(self) -> list[Moments]:
        """The moments of all rows, per class where they are kept apart."""
        return self.moments.whole

    @property
    def groups(self) -> list[IntArray]:
        """The columns that share their training rows."""
        return self.moments.groups(self.rows.n_outputs)

    def prefix(self, size: int) -> FixedSizePoint:
        """Return the same for the first ``size`` prototypes."""
        empty: dict[str, Any] = {"C_of": None, "_paths": None, "_fold_models": None}
        return replace(self, Z=self.Z[:size], moments=self.moments.prefix(size), **empty)

    def losses(self, C: FloatArray) -> Losses:
        """Return the losses of a path of C, shape (c,)."""
        groups, C = self.groups, np.asarray(C, dtype=np.float64)
        with small_problem(self.Z.shape[0]):
            if len(groups) > 1:
                losses = self._separate(groups)
            elif self.objective.leave_out:
                losses = self._left_out(C, groups[0])
            else:
                losses = self._joint(C, groups[0])
        cells, folds = len(self.moments.cells), self.moments.n_folds
        one_more = 8 * self.Z.shape[0] ** 2 * (cells + 2 * folds + 4)
        if not self.rows.backend.has_room(one_more):
            self._paths = None
            self.__dict__.pop("map", None)
        return losses

    @cached_property
    def features(self) -> FoldMoments:
        """The moments of the features."""
        return self.moments.mapped(self.map, self.rows.backend.threads)

    def output_models(
        self, C: FloatArray, columns: IntArray
    ) -> tuple[list[Expansion], FloatArray, FloatArray]:
        """Return the models of outputs that share rows, for every fold and value of C."""
        T, C = self.map.T, np.asarray(C, dtype=np.float64)
        xp = get_namespace(T)
        tests, solved = self._solved(self.features, C, columns)
        squares = np.empty((len(C), len(tests), len(columns)))
        nothing = Expansion(
            self.rows.backend.put(np.zeros((len(C), T.shape[0], len(columns)))),
            self.rows.backend.put(np.zeros((len(C), len(columns)))),
        )
        models = []
        for v, test in enumerate(tests):
            if v in solved:
                coef, b = solved[v]
                models.append(Expansion(xp.matmul(T, coef), b))
                squares[:, v] = output_errors(test, coef, b)
            else:
                models.append(nothing)
                squares[:, v] = _constant_error(test, len(C))[:, None]
        return models, squares, np.array([test.weight for test in tests])

    def _solved(
        self, features: FoldMoments, C: FloatArray, columns: IntArray
    ) -> tuple[list[Moments], dict[int, tuple[Array, Array]]]:
        """Return the moments of the test rows, and the models of folds that have rows to learn."""
        folds, objective = range(features.n_folds), self.objective
        training = {v: features.training(v, columns) for v in folds}
        known = {v: part for v, part in training.items() if part.n > 0}
        solved: dict[int, tuple[Array, Array]] = {}
        if known:
            paths = fold_paths(list(known.values()), None, bias=objective.bias)
            solved = dict(zip(known, paths.solve(C, objective.method), strict=True))
        return [features.testing(v, columns) for v in folds], solved

    def left_out_outputs(self, C: FloatArray, columns: IntArray) -> FloatArray:
        """Return outputs (c, n, q) of rows by models without them, where that is in closed form."""
        objective, sample = self.objective, self.rows.sample
        Y, weight = sample.Y, sample.weight
        if objective.task is not None:
            assert sample.labels is not None
            table = sample.table(objective.task)
            Y = table.targets[np.ix_(sample.labels, columns)]
            weight = times(weight, table.factors[sample.labels] * (Y[:, 0] != 0))
        assert isinstance(objective.folds, Folds)
        data = (self.kernel, sample.X, np.asarray(Y), self.Z, objective.folds.test)
        model = (self.moments.training(None, columns), self.map)
        return leave_out_predictions(*data, *model, C, weight, threads=self.rows.backend.threads)

    def fold_models(self, C: float) -> list[tuple[FloatArray, FloatArray]] | None:
        """Return coefficients (m, k) and intercepts (k,) of every fold, as NumPy arrays.

        None where rows are left out in closed form. Where each problem has its own C, at those.
        """
        if self.objective.leave_out:
            return None
        groups = self.groups
        if len(groups) > 1:
            if self._fold_models is None:
                self.losses(np.ones(1))
            return self._fold_models
        models, _ = self._models_and_errors(np.array([C]), groups[0])
        return [(to_numpy(coef)[0], to_numpy(b)[0]) for coef, b in models]

    def _folds(self, columns: IntArray) -> FoldPaths:
        if self._paths is None:
            training = [self.moments.training(v, columns) for v in range(self.moments.n_folds)]
            more: dict[str, Any] = {"bias": self.objective.bias}
            self._paths = fold_paths(training, self.map, threads=self.rows.backend.threads, **more)
        return self._paths

    def _joint(self, C: FloatArray, columns: IntArray) -> Losses:
        """All problems at the same C."""
        each = (
            4 * 8 * self.moments.n_folds * self.Z.shape[0] * len(columns)
        )  # bytes of the models of a C
        step = int(max(1, min(len(C), 0.25 * self.rows.backend.budget // each)))
        errors, losses = [], []
        for part in slices(len(C), step):
            models, squares = self._models_and_errors(C[part], columns)
            errors.append(squares)
            losses.append(self._score_models(models, errors[-1]))
        return self._losses(np.concatenate(losses), np.concatenate(errors))

    def _models_and_errors(
        self, C: FloatArray, columns: IntArray
    ) -> tuple[list[Expansion], FloatArray]:
        """Return the models of the folds, and their squared errors (c, v) on the test rows."""
        solved = self._folds(columns).solve(C, self.objective.method)
        models = [Expansion(*model) for model in solved]
        tests = [self.moments.testing(v, columns) for v in range(self.moments.n_folds)]
        squares = [mean_squared_error(test, *m) for test, m in zip(tests, models, strict=True)]
        return models, np.stack(squares, 1)

    def _score_models(self, models: list[Expansion], errors: FloatArray) -> FloatArray:
        """Return the losses (c, v) of the folds' models, or (c, 1) of all rows as one."""
        loss = self.objective.loss
        if isinstance(loss, SquaredError):
            return errors
        if isinstance(loss, RowLoss):
            sums = self.rows.sums(self._held_out(models), loss)
            mass = self.moments.test_weight()
            losses = loss.finish(sums / np.where(mass > 0, mass, 1.0))
            return np.where(np.isfinite(errors), losses, np.inf)
        losses = np.full(errors.shape, np.inf)
        for part in self.rows.scored_parts(errors):
            chosen = [Expansion(coef[part, ...], b[part, ...]) for coef, b in models]
            losses[part] = scored = self._score(chosen, loss)
        return losses[:, : scored.shape[1]]

    def _held_out(self, models: list[Expansion]) -> FoldModels:
        return FoldModels(self.kernel, self.Z, models, self.objective.folds)

    def _score(self, models: list[Expansion], loss: Loss) -> FloatArray:
        tested = list(self.rows.outputs(self._held_out(models)))
        if pools(loss, self.moments.test_rows(), (targets for _, targets in tested)):
            outputs, all_targets = zip(*tested, strict=True)
            tested = [(np.concatenate(outputs, axis=1), _joined(all_targets))]
        losses = [
            loss(outputs, targets) if len(targets.Y) else np.zeros(len(outputs))
            for outputs, targets in tested
        ]
        return np.stack(losses, 1)

    def _losses(self, losses: FloatArray, errors: FloatArray) -> Losses:
        sizes = self.moments.test_weight()
        if not sizes.sum() > 0:  # a holdout of next to no rows
            sizes = np.ones(len(sizes))
        share = sizes / sizes.sum()
        tie = (errors * share).sum(axis=1)
        if losses.shape[1] < len(share):
            share = np.ones(1)
        elif not isinstance(self.objective.loss, RowLoss):
            share = (sizes > 0) / np.count_nonzero(sizes)
        elif pools(self.objective.loss, self.moments.test_rows()):
            losses, share = (losses * share).sum(axis=1, keepdims=True), np.ones(1)
        losses = np.where(np.isfinite(tie)[:, None], losses, np.inf)
        return Losses(losses, share, np.where(np.isfinite(tie), tie, np.inf))

    # -- folds of equal rows, in closed form ---------------------------------------------------

    def _left_out(self, C: FloatArray, columns: IntArray) -> Losses:
        parts = slices(len(C), self.rows.sample.outputs_at_once(len(C)))
        return Losses.joined([self._all_rows(self.left_out_outputs(C[p], columns)) for p in parts])

    def _all_rows(self, outputs: FloatArray) -> Losses:
        targets = self.rows.sample.targets
        loss, tie = self.objective.loss(outputs, targets), SquaredError()(outputs, targets)
        return Losses.single(loss, tie)

    # -- problems that do not share rows: each chooses its own C -------------------------------

    def _separate(self, groups: list[IntArray]) -> Losses:
        objective, grid = self.objective, np.asarray(self.objective.C_grid, dtype=np.float64)
        if objective.leave_out:
            return self._separate_left_out(groups, grid)
        coef, b, squares = self._choose_all(groups, grid)
        models = [Expansion(coef[v][None], b[v][None]) for v in range(len(coef))]
        return self._losses(self._score_models(models, squares), squares)

    def _separate_left_out(self, groups: list[IntArray], grid: FloatArray) -> Losses:
        sample = self.rows.sample
        self.C_of = np.empty(self.rows.n_outputs)
        out = np.empty((1, self.rows.n_rows, self.rows.n_outputs))
        Y = np.asarray(sample.Y)
        for columns in groups:
            outputs = self.left_out_outputs(grid, columns)
            used = np.flatnonzero(Y[:, columns[0]])
            targets = Targets(Y[np.ix_(used, columns)], weight=pick(sample.weight, used))
            tie = SquaredError()(outputs[:, used], targets)
            best = int(np.argmin(np.where(np.isfinite(tie), tie, np.inf)))
            self.C_of[columns], out[:, :, columns] = grid[best], outputs[best]
        return self._all_rows(out)

    def _choose_all(
        self, groups: list[IntArray], grid: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        k, v, threads = self.rows.n_outputs, self.moments.n_folds, self.rows.backend.threads
        self.C_of = C_of = np.empty(k)
        features = self.moments.mapped(self.map, threads)
        coef, b, ties = np.empty((v, self.map.T.shape[0], k)), np.empty((v, k)), np.empty((v, k))

        def choose(columns: IntArray, best: int | None = None) -> None:
            best, coef[:, :, columns], b[:, columns], errors = self._choose(
                features, grid, columns, best
            )
            C_of[columns], ties[:, columns] = grid[best], errors[:, None]

        run_blocks(choose, filter(features.is_tested, groups), threads)
        untested = [columns for columns in groups if not features.is_tested(columns)]
        if untested:  # a holdout without rows of these classes: the C of the other problems
            known = np.setdiff1d(np.arange(k), np.concatenate(untested))
            centre = np.mean(np.log(C_of[known])) if len(known) else np.mean(np.log(grid))
            best = int(np.argmin(np.abs(np.log(grid) - centre)))
            run_blocks(lambda columns: choose(columns, best), untested, threads)
        self._fold_models = list(zip(coef, b, strict=True))
        return coef, b, ties.mean(axis=1)[None]

    def _choose(
        self, features: FoldMoments, grid: FloatArray, columns: IntArray, best: int | None
    ) -> tuple[int, FloatArray, FloatArray, FloatArray]:
        """Return the place of C in the grid, and coefficients, intercepts and errors of the folds.

        The place with the smallest squared error, unless it is given.
        """
        tests, solved = self._solved(features, grid, columns)
        errors = np.stack([_constant_error(test, len(grid)) for test in tests], 1)
        coef = np.zeros((len(tests), self.map.T.shape[0], len(columns)))
        b = np.zeros((len(tests), len(columns)))
        for v, model in solved.items():
            errors[:, v] = mean_squared_error(tests[v], *model)
        if best is None:
            mass = np.array([test.weight for test in tests])
            best = int(np.argmin(errors @ (mass / mass.sum())))
        xp = get_namespace(self.map.T)
        for v, (weights, intercepts) in solved.items():
            coef[v] = to_numpy(xp.matmul(self.map.T, weights[best, ...]))
            b[v] = to_numpy(intercepts[best, ...])
        return best, coef, b, errors[best]


@dataclass(eq=False)
class FeaturePoint(FixedSizePoint):
    """A point in feature space: fast cross-validation with QR factors in place of moments.

    [DeBrabanter2010, algorithm 3]: features once for all folds, then a system for each fold. The
    factor of a training set is added up from those of the other folds; nothing is subtracted.
    """

    moments: FoldFactors  # type: ignore[assignment]

    @classmethod
    def of(cls, objective: FixedSizeObjective, kernel: Kernel, gamma: float | None) -> FeaturePoint:
        """Do the pass over the rows."""
        map = feature_map(kernel, objective.Z)
        factors = objective.rows.factors(kernel, objective.Z, map, objective.folds)
        made = cls(objective, kernel, objective.Z, factors, gamma)
        vars(made)["map"] = map
        return made

    @cached_property
    def map(self) -> NystromMap:
        """From kernel values to features."""
        return feature_map(self.kernel, self.Z)

    def _models_and_errors(
        self, C: FloatArray, columns: IntArray
    ) -> tuple[list[Expansion], FloatArray]:
        models, squares = [], []
        for v in range(self.moments.n_folds):
            W, b = self.moments.training(v).solve(C, self.objective.bias)
            test = self.moments.testing(v)
            models.append(Expansion(self.map.T @ W, b))
            squares.append(test.squared_error(W, b).mean(axis=1) / max(test.weight, 1e-300))
        return models, np.stack(squares, 1)


def _constant_error(test: Moments, n: int) -> FloatArray:
    """Return the mean squares of the targets: the error of a model that predicts 0."""
    if not test.weight > 0:
        return np.zeros(n)
    return np.full(n, float(np.mean(to_numpy(test.squares))) / test.weight)


def _joined(all_targets: tuple[Targets, ...]) -> Targets:
    def join(name: str) -> FloatArray | None:
        parts = [getattr(targets, name) for targets in all_targets]
        return None if parts[0] is None else join_rows(parts)

    names = ("Y", "labels", "weight", "sample_weight", "X")
    return Targets(**{name: join(name) for name in names})


@dataclass(frozen=True)
class BinaryErrors(RowLoss):
    """Rows on the wrong side of a binary problem, for several problems at a time."""

    columns: tuple[int, ...]

    def rows(self, outputs: Array, targets: Targets) -> Array:
        """Return 1 where a row of a problem is on the wrong side, shape (c q, t)."""
        xp, q = get_namespace(outputs), len(self.columns)
        index = xp.asarray(self.columns, device=device(outputs))
        Y = xp.permute_dims(xp.take(targets.Y, index, axis=1), (1, 0))  # (q, t)
        t = int(outputs.shape[1])
        products = xp.reshape(outputs, (-1, q, t)) * Y[None, ...]
        wrong = (products <= 0) & (Y != 0)[None, ...]
        return xp.astype(xp.reshape(wrong, (-1, t)), outputs.dtype)


def untested_output(output: int) -> InvalidInputError:
    """Return the error of a problem that is to be tuned by itself, and is in no fold."""
    return InvalidInputError(
        f"cv has no rows of the binary problem of output {output} both to train on and to test, so "
        "that a search with per_output=True cannot choose its C: use per_output=False, or folds "
        "with rows of every class."
    )


class _HasPoints(Protocol):
    def at(self, gamma: float | None) -> FixedSizePoint:
        """Do the pass over the rows at one kernel parameter."""


@dataclass(eq=False)
class KeptPoints:
    """A fixed-size objective that keeps its last points."""

    objective: _HasPoints
    room: int
    _points: dict[str, FixedSizePoint] = field(default_factory=dict, repr=False)

    def at(self, gamma: float | None) -> FixedSizePoint:
        """Return the moments at a kernel parameter, of which three digits count."""
        key = _key(gamma)
        if key not in self._points:
            point = self.objective.at(gamma)
            size = 2 * 8 * point.Z.shape[0] ** 2 * max(1, len(point.moments.cells))
            while self._points and (len(self._points) + 1) * size > self.room:
                self._points.pop(next(iter(self._points)))
            self._points[key] = point
        return self._points[key]


@dataclass(eq=False)
class SeparateObjective:
    """One objective for each output, with the passes over the rows in common."""

    objective: FixedSizeObjective
    by_error: bool
    room: int
    _tables: dict[Any, tuple[FloatArray, FloatArray]] = field(default_factory=dict, repr=False)

    def of(self, output: int) -> OutputObjective:
        """Return the objective of one output."""
        return OutputObjective(self, output)

    @cached_property
    def points(self) -> KeptPoints:
        """The moments at the kernel parameters of all outputs so far."""
        return KeptPoints(self.objective, self.room)

    def losses(self, gamma: float | None, output: int, C: FloatArray) -> Losses:
        """Return the losses of one output along a path of C."""
        C = np.asarray(C, dtype=np.float64)
        point = self.points.at(gamma)
        group = next(g for g in point.groups if output in g)
        key = (_key(gamma), int(group[0]), C.tobytes())
        if key not in self._tables:
            with small_problem(point.Z.shape[0]):
                self._tables[key] = self._table(point, C, group)
        errors, mass = self._tables[key]
        loss, squares = errors[..., int(np.searchsorted(group, output))]
        if not mass.sum() > 0:
            raise untested_output(output)
        share = mass / mass.sum()
        tie = (squares * share).sum(axis=1)
        finite = np.isfinite(tie)
        loss = np.where(finite[:, None], loss, np.inf)
        return Losses(loss, share, np.where(finite, tie, np.inf))

    def _table(
        self, point: FixedSizePoint, C: FloatArray, group: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return losses and squared errors (2, c, v, q), and the weights (v,) of the folds."""
        if self.objective.leave_out:
            return self._left_out(point, C, group)
        each = 6 * 8 * point.moments.n_folds * point.Z.shape[0] * len(group)
        step = int(max(1, min(len(C), 0.25 * point.rows.backend.budget // each)))
        pieces = [self._stretch(point, C[part], group) for part in slices(len(C), step)]
        return np.concatenate([losses for losses, _ in pieces], axis=1), pieces[0][1]

    def _stretch(
        self, point: FixedSizePoint, C: FloatArray, group: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        models, squares, mass = point.output_models(C, group)
        losses = squares
        if self.by_error:
            flat = [_problem_by_problem(model) for model in models]
            held_out = FoldModels(point.kernel, point.Z, flat, self.objective.folds)
            sums = point.rows.sums(held_out, BinaryErrors(tuple(group.tolist())))
            wrong = np.moveaxis(sums.reshape(len(C), len(group), -1), 2, 1)
            right = 1.0 - wrong / np.where(mass > 0, mass, 1.0)[:, None]
            losses = -np.round(right, 9)
        return np.stack([losses, squares]), mass

    def _left_out(
        self, point: FixedSizePoint, C: FloatArray, group: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        targets = point.rows.sample.targets
        Y = np.asarray(targets.Y)[:, group]
        used = np.arange(len(Y)) if self.objective.task is None else np.flatnonzero(Y[:, 0])
        weight = np.ones(len(Y)) if targets.weight is None else targets.weight
        weight, Y = weight[used] / weight[used].sum(), Y[used]
        squares, wrong = [], []
        for part in slices(len(C), point.rows.sample.outputs_at_once(len(C))):
            outputs = point.left_out_outputs(C[part], group)[:, used]
            squares.append(np.einsum("cnq,n->cq", (outputs - Y) ** 2, weight))
            wrong.append(np.einsum("cnq,n->cq", (outputs * Y <= 0) & (Y != 0), weight))
        square, right = np.concatenate(squares)[:, None], 1.0 - np.concatenate(wrong)[:, None]
        return np.stack([-np.round(right, 9) if self.by_error else square, square]), np.ones(1)


@dataclass(frozen=True, eq=False)
class OutputObjective:
    """The objective of one output, see `SeparateObjective`."""

    shared: SeparateObjective
    output: int

    def at(self, gamma: float | None) -> OutputPoint:
        """Return the losses at one kernel parameter, computed on demand."""
        return OutputPoint(self, gamma)


@dataclass(frozen=True, eq=False)
class OutputPoint:
    """A kernel parameter of one output."""

    objective: OutputObjective
    gamma: float | None

    def losses(self, C: FloatArray) -> Losses:
        """Return the losses of a path of C."""
        return self.objective.shared.losses(self.gamma, self.objective.output, C)


def _key(gamma: float | None) -> str:
    return "" if gamma is None else f"{gamma:.3g}"


def _problem_by_problem(model: Expansion) -> Expansion:
    """Return models (c, m, q) as (c q, m, 1)."""
    coef, b = model
    xp = get_namespace(coef)
    c, m, q = coef.shape
    flat = xp.reshape(xp.permute_dims(coef, (0, 2, 1)), (c * q, m, 1))
    return Expansion(flat, xp.reshape(b, (c * q, 1)))


def fold_models(
    point: FixedSizePoint, C: float, output: int
) -> list[tuple[FloatArray, FloatArray]]:
    """Return coefficients (m, 1) and intercepts (1,) of one output for every fold."""
    group = next(g for g in point.groups if output in g)
    at = [int(np.searchsorted(group, output))]
    models, _, _ = point.output_models(np.array([C]), group)
    return [(to_numpy(coef)[0][:, at], to_numpy(b)[0][at]) for coef, b in models]


# -- the output code of many classes -------------------------------------------------------------

ROWS, OF_A_CLASS = 4_000, 10
"""Rows that the codes are compared on, about, and those of a class at least."""
PROTOTYPES = 200
"""Prototypes of the models that are compared."""
WIDTHS = (0.1, 0.3, 1.0)
"""What gamma="scale" is multiplied by, where gamma is tuned."""
N_C = 20
"""Values of C that are tried."""


def better_code(rows: Rows, task: Classes, choice: KernelChoice, C: float | None) -> Classes:
    """Return the task with the better of its own code and one-vs-one."""
    pairs = replace(task, code=one_vs_one(task.n_classes))
    assert rows.labels is not None
    some = _sample(rows.X, np.asarray(rows.labels), task.n_classes)
    X, labels, weight = rows.X[some], rows.labels[some], pick(rows.sample_weight, some)
    Z = _prototypes(X, choice)
    first = assign_folds(X, 3, labels=labels).test[:1]
    gamma = choice.fixed_gamma(X, weight, rows.gamma_scale() if choice.has_gamma else None)
    gammas = [gamma]
    if choice.tunes_gamma:
        gammas = [width * rows.gamma_scale() for width in WIDTHS]
    grid = Space(C=C, C_range=usual_C_range(rows, choice)).C_grid(N_C)
    host = Host(rows.budget, rows.threads)

    def error(code: Classes) -> float:
        coded = class_rows(code, X, labels, weight, host, by_class=True)
        by_class = code if code.per_class else None
        data = (coded, Z, Folds(first), code.loss(None), by_class)
        objective = FixedSizeObjective(choice.at, *data, grid if len(code.groups()) > 1 else None)
        means = [objective.at(value).losses(grid).mean for value in gammas]
        return float(np.min([np.min(np.where(np.isnan(mean), np.inf, mean)) for mean in means]))

    return pairs if error(pairs) < error(task) else task


def _sample(X: Any, labels: IntArray, n_classes: int) -> IntArray:
    """Return rows of all classes in proportion, at least a few of each."""
    hashes, share = hash_rows(X), min(1.0, ROWS / X.shape[0])
    parts = []
    for c in range(n_classes):
        members = np.flatnonzero(labels == c)
        size = max(OF_A_CLASS, round(share * len(members)))
        parts.append(members[np.argsort(hashes[members], kind="stable")[:size]])
    return np.sort(np.concatenate(parts))


def _prototypes(X: Any, choice: KernelChoice) -> Any:
    """Return the rows of the smallest hashes, or the axes of a linear kernel."""
    if choice.name == "linear" and X.shape[1] <= PROTOTYPES:
        return np.eye(X.shape[1])
    return X[np.argsort(hash_rows(X, 1), kind="stable")[:PROTOTYPES]]
