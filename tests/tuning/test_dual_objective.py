"""Exact cross-validation against refitting every fold."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, TimeSeriesSplit
from tests.looping import case
from tests.oracles.dual import kkt_regression, rbf, refit_predictions

from lssvm.codes import make_code
from lssvm.codes.code import groups, targets
from lssvm.data.folds import assign_folds, splitter_folds
from lssvm.kernels import RBF, Precomputed
from lssvm.solvers import DualSystem
from lssvm.tasks import (
    AbsoluteError,
    Classes,
    Misclassification,
    Numbers,
    ScorerLoss,
    SquaredError,
    Targets,
)
from lssvm.tuning.dual import DualObjective
from lssvm.tuning.objective import FoldTargets, Group

rng = np.random.default_rng(0)
n = 60
X = rng.normal(size=(n, 2))
y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)
weight = rng.uniform(0.3, 2.0, size=n)
K = rbf(X, X, 0.5)
grid = np.array([0.05, 3.0, 500.0])


def system(weights=None):
    return DualSystem(RBF(), X, X, 1.0, None if weights is None else np.sqrt(weights))


def pairs(folds):
    train = folds.train or [np.setdiff1d(np.arange(n), t) for t in folds.test]
    return list(zip(train, folds.test, strict=True))


FOLDS = {
    "loo": assign_folds(X, None),
    "7": assign_folds(X, 7),
    "2": assign_folds(X, 2),
    "LeaveOneOut": splitter_folds(LeaveOneOut().split(X), n),
    "KFold": splitter_folds(KFold(4).split(X), n),
    "ShuffleSplit": splitter_folds(ShuffleSplit(3, random_state=0).split(X), n),
    "TimeSeriesSplit": splitter_folds(TimeSeriesSplit(4).split(X), n),
}


@pytest.mark.parametrize("weights", [None, weight], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", FOLDS)
def test_equals_refits(name, weights):
    folds = FOLDS[name]
    Y = np.column_stack([y, X[:, 1]])
    objective = DualObjective(
        RBF, system(weights), Targets(Y), folds, SquaredError(), [Group(np.arange(2))]
    )
    got = objective.at(0.5).predictions(grid)
    for c, C in enumerate(grid):
        for j in range(2):
            wanted = refit_predictions(K, Y[:, j], C, pairs(folds), weights)
            for have, want in zip(got, wanted, strict=True):
                np.testing.assert_allclose(have[c, :, j], want, atol=1e-8)


@pytest.mark.parametrize("name", ["7", "loo", "ShuffleSplit"])
def test_one_vs_one_predicts_every_row_of_a_fold(name):
    folds = FOLDS[name]
    labels = np.digitize(y, [-0.4, 0.4])
    code = make_code("ovo", 3)
    Y = targets(code, labels)
    parts = [Group(g.columns, g.rows) for g in groups(code, labels)]
    objective = DualObjective(RBF, system(), Targets(Y), folds, SquaredError(), parts)
    got = objective.at(0.5).predictions(grid)
    for v, (train, test) in enumerate(pairs(folds)):
        for group in parts:
            rows = train[np.isin(train, group.rows)]
            for c, C in enumerate(grid):
                alpha, b = kkt_regression(K[np.ix_(rows, rows)], Y[rows, group.columns[0]], C)
                wanted = K[np.ix_(test, rows)] @ alpha + b
                np.testing.assert_allclose(got[v][c, :, group.columns[0]], wanted, atol=1e-8)


def test_losses_are_means_over_rows():
    folds = FOLDS["7"]
    Y = y[:, None]
    truth, one = Targets(Y, weight=weight), [Group(np.array([0]))]
    objective = DualObjective(RBF, system(weight), truth, folds, AbsoluteError(), one)
    losses = objective.at(0.5).losses(grid)
    wanted = refit_predictions(K, y, grid[1], pairs(folds), weight)
    errors = np.empty(n)
    for (_, test), prediction in zip(pairs(folds), wanted, strict=True):
        errors[test] = np.abs(prediction - y[test])
    assert losses.mean[1] == pytest.approx(np.average(errors, weights=weight), abs=1e-9)
    assert losses.fold.shape == (3, 7)


def test_many_folds_are_pooled_into_one():
    truth, one = Targets(y[:, None]), [Group(np.array([0]))]
    objective = DualObjective(RBF, system(), truth, FOLDS["loo"], SquaredError(), one)
    losses = objective.at(0.5).losses(grid)
    assert losses.fold.shape == (3, 1)


def test_small_budget_gives_the_same_path():
    args = (Targets(y[:, None]), FOLDS["7"], SquaredError(), [Group(np.array([0]))])
    wide = DualObjective(RBF, system(), *args).at(0.5).losses(grid)
    small = replace(system(), budget=3 * n * n * 8)
    narrow = DualObjective(RBF, small, *args).at(0.5).losses(grid)
    np.testing.assert_allclose(wide.fold, narrow.fold, rtol=1e-12)


def test_indefinite_values_of_C_lose():
    M = rng.normal(size=(n, n))
    M = M + M.T
    objective = DualObjective(
        lambda _: Precomputed(),
        DualSystem(Precomputed(), M, np.arange(n), C=1.0),
        Targets(y[:, None]),
        FOLDS["7"],
        SquaredError(),
        [Group(np.array([0]))],
    )
    losses = objective.at(None).losses(np.array([1e-3, 1e3]))
    assert np.isfinite(losses.mean[0]) and np.isinf(losses.mean[1])


class TestTargetsOfFolds:
    """Fisher's targets and balanced weights are those of the rows that a fold is trained on."""

    labels = np.digitize(y, [-0.1, 0.9])

    def refit(self, code, train, test, C, fisher, balanced, sample, bias):
        """Train every problem on the rows of one fold, from the definitions."""
        count = np.array([sample[train][self.labels[train] == c].sum() for c in range(3)])
        factor = count.sum() / ((count > 0).sum() * np.maximum(count, 1e-300)) if balanced else 1.0
        row = sample * (np.ones(3) * factor)[self.labels]
        out = np.zeros((len(test), code.shape[1]))
        for j, signs in enumerate(code.T):
            used = train[signs[self.labels[train]] != 0]
            side = signs[self.labels[used]]
            plus, minus = row[used][side > 0].sum(), row[used][side < 0].sum()
            target = np.where(side > 0, (plus + minus) / plus, -(plus + minus) / minus)
            part = K[np.ix_(used, used)] + np.diag(1.0 / (C * row[used]))
            if bias:
                part = np.block([[np.zeros((1, 1)), np.ones((1, len(used)))],
                                 [np.ones((len(used), 1)), part]])  # fmt: skip
            right = target if fisher else side
            solved = np.linalg.solve(part, np.r_[0.0, right] if bias else right)
            b, alpha = (solved[0], solved[1:]) if bias else (0.0, solved)
            out[:, j] = K[np.ix_(test, used)] @ alpha + b
        return out

    @pytest.mark.parametrize("name", ["7", "loo", "ShuffleSplit"])
    @pytest.mark.parametrize(
        "options",
        [{"targets": "fisher"}, {"class_weight": "balanced"},
         {"targets": "fisher", "class_weight": "balanced"}],
        ids=["fisher", "balanced", "both"],
    )  # fmt: skip
    @pytest.mark.parametrize("sample", [None, weight], ids=["plain", "weighted"])
    def test_equals_refits(self, name, options, sample):
        for multiclass, bias in product(("ovo", "moc"), (True, False)):
            with case(multiclass, f"bias={bias}"):
                self.check(FOLDS[name], multiclass, bias, options, sample)

    def check(self, folds, multiclass, bias, options, sample):
        task = Classes.of(np.arange(3), multiclass=multiclass, **options)
        counts = task.counts(self.labels, sample)
        table = task.table(counts)
        own = np.ones(n) if sample is None else sample
        truth = Targets(table.targets[self.labels], self.labels, own * table.factors[self.labels])
        parts = [Group(g.columns, g.rows) for g in groups(task.code, self.labels)]
        per_fold = FoldTargets.of(task, self.labels, sample, folds)
        loss = Misclassification(task.decide)
        own_system = replace(system(truth.weight), bias=bias)
        objective = DualObjective(RBF, own_system, truth, folds, loss, parts, per_fold)
        asked = np.array([0.5, 20.0])
        path = objective.at(0.5)
        got, alone = path.predictions(asked), objective.at(0.5).predictions(asked[1:])
        fisher, balanced = "targets" in options, "class_weight" in options
        right, mass = 0.0, 0.0
        for v, (train, test) in enumerate(pairs(folds)):
            for c, C in enumerate(asked):
                wanted = self.refit(
                    task.code.matrix.astype(float), train, test, C, fisher, balanced, own, bias
                )
                np.testing.assert_allclose(got[v][c], wanted, atol=1e-8)
            np.testing.assert_allclose(alone[v][0], wanted, atol=1e-8)
            right += truth.weight[test] @ (task.decide(wanted) == self.labels[test])
            mass += truth.weight[test].sum()
        assert -path.losses(asked).mean[1] == pytest.approx(right / mass, abs=1e-8)

    def test_nothing_is_counted_where_nothing_depends_on_it(self):
        task = Classes.of(np.arange(3), multiclass="ova", class_weight={0: 2.0}, targets=(2.0, 1.0))
        assert FoldTargets.of(task, self.labels, None, FOLDS["7"]) is None


class TestScorers:
    """Scores of folds are averaged, and pooled only where a fold has fewer than 3 rows."""

    def losses(self, tests):
        folds = splitter_folds([(np.setdiff1d(np.arange(n), t), t) for t in tests], n)
        loss = ScorerLoss("neg_median_absolute_error", Numbers(1))
        truth, one = Targets(y[:, None], X=X), [Group(np.array([0]))]
        point = DualObjective(RBF, system(), truth, folds, loss, one).at(0.5)
        wanted = refit_predictions(K, y, grid[1], pairs(folds))
        errors = [np.abs(p - y[t]) for p, t in zip(wanted, tests, strict=True)]
        return point.losses(grid), errors

    def test_many_folds_of_three_rows_are_averaged(self):
        order = np.random.default_rng(1).permutation(n)
        # three repetitions of twenty folds: more than the fifty that means over rows are pooled at
        tests = [t for i in range(3) for t in np.split(np.roll(order, i), 20)]
        losses, errors = self.losses(tests)
        assert losses.fold.shape == (3, 60)
        assert losses.mean[1] == pytest.approx(np.mean([np.median(e) for e in errors]), abs=1e-9)

    def test_one_small_fold_pools_all_rows(self):
        losses, errors = self.losses(np.split(np.arange(n), [2, 30]))
        assert losses.fold.shape == (3, 1)
        assert losses.mean[1] == pytest.approx(np.median(np.concatenate(errors)), abs=1e-9)
