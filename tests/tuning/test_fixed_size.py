import numpy as np
import pytest
from tests.oracles import fixed_size as oracle

from lssvm.backends.rows import Rows
from lssvm.codes import Code
from lssvm.data.folds import Folds, assign_folds
from lssvm.kernels import RBF
from lssvm.solvers.moments import make_cells
from lssvm.solvers.primal import solve_primal
from lssvm.tasks import AbsoluteError, Classes, Misclassification, SquaredError, Targets
from lssvm.tuning.fixed_size import FixedSizeObjective

C = np.array([1e-2, 1.0, 30.0, 1e2, 3e2, 1e3, 2e3])


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * rng.normal(size=(240, 2))
    return X, Y, rng.integers(1, 4, 240).astype(float)


def splits(folds, n):
    tests = folds.test
    if folds.train is not None:
        return list(zip(folds.train, tests, strict=True))
    return [(np.setdiff1d(np.arange(n), t), t) for t in tests]


def objective(X, Y, folds, loss, weight=None, *, m=40, method="auto", **options):
    rows = Rows(X, Y, weight, **options)
    return FixedSizeObjective(RBF, rows, X[:m], folds, loss, method=method)


def judged(loss, predictions, Y, weight, rows):
    return loss(predictions[None], Targets(Y, weight=weight).take(rows))[0]


def oracle_features(X, point):
    K_zz = oracle.rbf(X[:40], X[:40], 0.2)
    return oracle.features(oracle.rbf(X, X[:40], 0.2), K_zz, point.map.cut)


@pytest.mark.parametrize("method", ["auto", "cholesky", "eigen", "tridiagonal"])
@pytest.mark.parametrize("weighted", [False, True])
def test_fold_errors_equal_refits(data, method, weighted):
    X, Y, s = data
    weight = s if weighted else None
    folds = assign_folds(X, 5)
    point = objective(X, Y, folds, SquaredError(), weight, method=method).at(0.2)
    losses = point.losses(C)
    F = oracle_features(X, point)
    for i, value in enumerate(C):
        refit = oracle.refit_predictions(F, Y, value, splits(folds, len(X)), weight)
        pairs = zip(refit, folds.test, strict=True)
        wanted = [judged(SquaredError(), p, Y, weight, t) for p, t in pairs]
        np.testing.assert_allclose(losses.fold[i], wanted, rtol=1e-8)
    np.testing.assert_allclose(losses.mean, losses.tie, rtol=1e-12)


def test_absolute_errors_equal_refits(data):
    X, Y, s = data
    folds = assign_folds(X, 7)
    point = objective(X, Y, folds, AbsoluteError(), s, threads=2).at(0.2)
    losses = point.losses(C)
    F = oracle_features(X, point)
    for i, value in enumerate(C):
        refit = oracle.refit_predictions(F, Y, value, splits(folds, len(X)), s)
        pairs = zip(refit, folds.test, strict=True)
        wanted = [judged(AbsoluteError(), p, Y, s, t) for p, t in pairs]
        np.testing.assert_allclose(losses.fold[i], wanted, rtol=1e-8)


@pytest.mark.parametrize("kind", ["holdout", "overlapping"])
def test_splits_that_are_no_partition(data, kind):
    X, Y, s = data
    rng = np.random.default_rng(1)
    n = len(X)
    if kind == "holdout":
        test = [rng.permutation(n)[:60]]
        folds = Folds(test, [np.setdiff1d(np.arange(n), test[0])[:100]])
    else:
        folds = Folds([rng.permutation(n)[:60] for _ in range(3)])
    point = objective(X, Y, folds, SquaredError(), s).at(0.2)
    F = oracle_features(X, point)
    refit = oracle.refit_predictions(F, Y, 5.0, splits(folds, n), s)
    pairs = zip(refit, folds.test, strict=True)
    wanted = [judged(SquaredError(), p, Y, s, t) for p, t in pairs]
    np.testing.assert_allclose(point.losses(np.array([5.0])).fold[0], wanted, rtol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_equals_refits_also_with_duplicates(data, weighted):
    X, Y, s = data
    X, Y, s = X[:60].copy(), Y[:60], s[:60]
    X[50:] = X[:10]
    weight = s if weighted else None
    folds = assign_folds(X, None)
    problem = objective(X, Y, folds, AbsoluteError(), weight, m=20)
    assert problem.leave_out
    point = problem.at(0.2)
    losses = point.losses(C)
    K_zz = oracle.rbf(X[:20], X[:20], 0.2)
    F = oracle.features(oracle.rbf(X, X[:20], 0.2), K_zz, point.map.cut)
    rows = np.concatenate(folds.test)
    for i, value in enumerate(C):
        refit = oracle.refit_predictions(F, Y, value, splits(folds, 60), weight)
        wanted = judged(AbsoluteError(), np.concatenate(refit), Y, weight, rows)
        np.testing.assert_allclose(losses.mean[i], wanted, rtol=1e-8)


def test_many_folds_that_are_not_single_rows(data):
    X, Y, _ = data
    folds = assign_folds(X, 60)
    problem = objective(X, Y, folds, AbsoluteError())
    assert not problem.leave_out
    point = problem.at(0.2)
    refit = oracle.refit_predictions(oracle_features(X, point), Y, 5.0, splits(folds, len(X)))
    rows = np.concatenate(folds.test)
    wanted = judged(AbsoluteError(), np.concatenate(refit), Y, None, rows)
    np.testing.assert_allclose(point.losses(np.array([5.0])).mean, wanted, rtol=1e-8)


def test_classes_change_nothing(data):
    X, Y, s = data
    labels = (Y[:, 0] > 0).astype(np.intp)
    task = Classes.of(np.arange(2), multiclass="auto", targets=(2.0, 1.0), class_weight={1: 0.5})
    table = task.table(task.counts(labels, s))
    folds = assign_folds(X, 5, labels=labels)
    rows = s * table.factors[labels]
    plain = objective(X, table.targets[labels], folds, SquaredError(), rows)
    kept_apart = Rows(X, table.targets[labels], s, labels, loss_weight=rows)
    by_class = FixedSizeObjective(RBF, kept_apart, X[:40], folds, SquaredError(), task)
    a, b = plain.at(0.2).losses(C), by_class.at(0.2).losses(C)
    np.testing.assert_allclose(a.fold, b.fold, rtol=1e-9)
    np.testing.assert_allclose(a.weight, b.weight, rtol=1e-12)


@pytest.mark.parametrize("options", [{"targets": "fisher"}, {"class_weight": "balanced"}])
def test_counts_of_classes_are_those_of_the_training_rows(data, options):
    X, Y, s = data
    labels = (Y[:, 0] > 0.4).astype(np.intp)
    task = Classes.of(np.arange(2), multiclass="auto", **options)
    rng = np.random.default_rng(3)
    folds = Folds([rng.permutation(240)[:90]])  # not stratified: the counts differ
    train = np.setdiff1d(np.arange(240), folds.test[0])
    rows = Rows(X, np.zeros((240, 1)), s, labels)
    point = FixedSizeObjective(RBF, rows, X[:40], folds, SquaredError(), task).at(0.2)
    ((coef, b),) = point.fold_models(30.0)
    table = task.table(task.counts(labels[train], s[train]))
    own = Rows(X[train], table.targets[labels[train]], s[train] * table.factors[labels[train]])
    refit = FixedSizeObjective(RBF, own, X[:40], Folds([]), SquaredError()).at(0.2)
    alone = refit.moments.training(None, np.arange(1))
    wanted, intercept = solve_primal(alone, refit.map, 30.0)
    np.testing.assert_allclose(coef, wanted, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(b, intercept, rtol=1e-7)


@pytest.mark.parametrize("leave_out", [False, True])
def test_pairs_of_classes_equal_models_of_their_own(data, leave_out):
    X, Y, _ = data
    X, Y = X[:120], Y[:120]
    labels = np.digitize(Y[:, 0], [-0.5, 0.5]).astype(np.intp)
    matrix = np.array([[-1.0, -1.0, 0.0], [1.0, 0.0, -1.0], [0.0, 1.0, 1.0]])
    code = Code(matrix.astype(np.int8))
    task = Classes(np.arange(3), code)
    folds = assign_folds(X, None if leave_out else 4, labels=None if leave_out else labels)
    loss = Misclassification(lambda s: np.argmax(s @ matrix.T, axis=1))
    rows = Rows(X, matrix[labels], labels=labels)
    problem = FixedSizeObjective(RBF, rows, X[:30], folds, loss, task, C_grid=C)
    point = problem.at(0.2)
    losses = point.losses(np.ones(1))
    K_zz = oracle.rbf(X[:30], X[:30], 0.2)
    F = oracle.features(oracle.rbf(X, X[:30], 0.2), K_zz, point.map.cut)
    out = np.empty((len(X), 3))
    for j in range(3):
        used = matrix[labels, j] != 0
        best = np.inf
        for value in C:
            refit = np.empty(len(X))
            for train, test in splits(folds, len(X)):
                inside = train[used[train]]
                w, b = oracle.ridge(F[inside], matrix[labels[inside], j][:, None], value)
                refit[test] = (F[test] @ w + b)[:, 0]
            error = np.mean((refit - matrix[labels, j])[used] ** 2)
            if error < best:
                best, out[:, j], chosen = error, refit, value
        assert point.C_of[j] == chosen
    wanted = np.mean(np.argmax(out @ matrix.T, axis=1) == labels)
    np.testing.assert_allclose(-losses.mean[0], wanted, rtol=1e-12)


def test_a_prefix_of_the_prototypes_needs_no_pass(data):
    X, Y, _ = data
    folds = assign_folds(X, 5)
    large = objective(X, Y, folds, SquaredError()).at(0.2).prefix(15).losses(C)
    small = objective(X, Y, folds, SquaredError(), m=15).at(0.2).losses(C)
    np.testing.assert_allclose(large.fold, small.fold, rtol=1e-9)


def test_cells_are_consecutive_and_complete():
    labels = np.array([0, 1, 1, 0, 1])
    layout = make_cells(Folds([np.array([4, 0]), np.array([1, 2, 3])]), 5, labels, 2)
    cells = [layout.order[cell].tolist() for cell in layout.cells]
    assert cells == [[0], [4], [3], [1, 2]]
    assert layout.whole == [[0, 2], [1, 3]]


@pytest.mark.parametrize("n_folds", [5, None])
def test_a_small_budget_takes_the_path_in_pieces(data, n_folds):
    X, Y, _ = data
    folds = assign_folds(X, n_folds)
    whole = objective(X, Y, folds, AbsoluteError()).at(0.2).losses(C)
    tight = objective(X, Y, folds, AbsoluteError(), budget=120_000).at(0.2).losses(C)
    np.testing.assert_allclose(tight.fold, whole.fold, rtol=1e-8)
    np.testing.assert_allclose(tight.tie, whole.tie, rtol=1e-8)
