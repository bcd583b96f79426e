"""Rows that repeat by nature are observations: dealt, left out and drawn one by one."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, cross_val_score

from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, FixedSizeLSSVR, GreedyLSSVC, GreedyLSSVR, scan
from lssvm._core.errors import InvalidInputError
from lssvm.codes import Coding
from lssvm.data.folds import (
    DistinctRows,
    are_observations,
    assign_folds,
    content_holdout,
    count_observations,
    hash_rows,
    observation_weight,
    smallest_hashes,
)
from lssvm.fitting.greedy import C_GRID


def assignment(folds, n):
    fold = np.full(n, -1)
    for v, rows in enumerate(folds.test):
        assert np.all(fold[rows] == -1)
        fold[rows] = v
    assert np.all(fold >= 0)
    return fold


def cells(seed=0, n=1100):
    """Return rows of which 13 differ, and classes that follow none of their order."""
    rng = np.random.default_rng(seed)
    kinds = rng.standard_normal((13, 4))
    cell = rng.choice(13, n, p=rng.dirichlet(np.full(13, 2.0)))
    chance = rng.uniform(0.05, 0.95, 13)
    return kinds[cell], (rng.random(n) < chance[cell]).astype(int), cell


def test_repeats_are_dealt_one_by_one_and_order_changes_nothing():
    X, y, cell = cells()
    fold = assignment(assign_folds(X, 10, labels=y), len(X))
    for label in (0, 1):
        sizes = np.bincount(fold[y == label], minlength=10)
        assert sizes.max() - sizes.min() <= 1
    big = cell == np.argmax(np.bincount(cell))
    assert len(np.unique(fold[big])) == 10
    order = np.random.default_rng(1).permutation(len(X))
    moved = assignment(assign_folds(X[order], 10, labels=y[order]), len(X))

    def table(fold, X, y):
        keys = [tuple(row) for row in np.column_stack([X, y, fold])]
        return sorted(keys)

    assert table(moved, X[order], y[order]) == table(fold, X, y)


def test_targets_and_weights_tell_observations_apart():
    rng = np.random.default_rng(2)
    X, y = rng.integers(0, 2, (400, 2)).astype(float), rng.integers(0, 5, 400).astype(float)
    weight = rng.integers(1, 4, 400).astype(float)
    order = rng.permutation(400)
    known, moved = {"targets": y, "weight": weight}, {"targets": y[order], "weight": weight[order]}
    fold = assignment(assign_folds(X, 7, **known), 400)
    other = assignment(assign_folds(X[order], 7, **moved), 400)
    rows = np.column_stack([X, y, weight, fold])
    again = np.column_stack([X[order], y[order], weight[order], other])
    assert sorted(map(tuple, rows)) == sorted(map(tuple, again))


@pytest.mark.parametrize("times", [2, 3, 9, 10, 40])
@pytest.mark.parametrize("classes", [False, True])
def test_copies_share_a_fold_however_many_there_are(times, classes):
    """Also where a few of their targets were changed: nothing flips on a single row."""
    rng = np.random.default_rng(0)
    X = np.repeat(np.arange(50.0)[:, None], times, axis=0)
    y = np.repeat(rng.integers(0, 2, 50) if classes else rng.random(50), times)
    changed = y.copy()
    changed[:times:2] = 1 - y[:times:2]
    for targets in (y, changed):
        known = {"labels": targets} if classes else {"targets": targets}
        fold = assignment(assign_folds(X, 5, **known), 50 * times)
        assert np.all(fold.reshape(50, times) == fold[::times, None])
        assert len(assign_folds(X, None, **known)) == count_observations(X, targets) == 50
        assert len(content_holdout(X, 0.2, **known).test[0]) == 10 * times


@pytest.mark.parametrize("scale", [1e-12, 1e-3])
def test_targets_that_nearly_agree_are_those_of_copies(scale):
    """One by one they would leak: with noise of rounding alone the score of chance was 1."""
    rng = np.random.default_rng(0)
    rows, value = np.repeat(np.arange(40), 12), np.repeat(rng.normal(size=40), 12)
    noise = rng.normal(size=480)
    weight = rng.uniform(0.5, 2.0, 480)
    for shift in (0.0, 1e6 * (np.arange(480) == 3)):  # one outlier moves no scale
        for two in (False, True):
            y = value + scale * noise + shift
            y = np.column_stack([y, -y]) if two else y
            assert not are_observations(rows, y)
            assert not are_observations(rows, y, weight)
            assert not are_observations(rows, 7.0 * y + 3.0)
    assert are_observations(rows, value + 0.1 * noise)
    chance = LSSVR("cv").fit(rng.normal(size=(40, 3))[rows], value + scale * noise)
    assert chance.best_score_ < 0.1


def test_observations_are_ten_of_each_whose_targets_differ():
    rng = np.random.default_rng(0)
    X = np.repeat(np.arange(50.0)[:, None], 10, axis=0)
    y = rng.random(500)
    apart = assignment(assign_folds(X, 5, targets=y), 500).reshape(50, 10)
    assert np.any(apart != apart[:, :1])
    few = np.arange(500) % 10 < 9  # nine of each: too few to learn a category from
    assert len(assign_folds(X, None, targets=y)) == 500
    assert len(assign_folds(X[few], None, targets=y[few])) == 50
    assert count_observations(X[few], y[few]) == 50 and count_observations(X, y) == 500
    assert count_observations(sparse.csr_matrix(X), y) == 500
    (held,) = content_holdout(X, 0.2, targets=y).test
    assert len(held) == 100
    rows, label = np.repeat(np.arange(50), 10), rng.integers(0, 2, 500)
    assert are_observations(rows, label)
    twice, weight = np.repeat(rows, 2), np.full(500, 2.0)
    assert are_observations(twice, np.repeat(label, 2)) == are_observations(rows, label, weight)
    assert not are_observations(rows, None)  # nothing is known of the targets


def test_which_share_of_targets_has_to_differ():
    """Equal rows of the share p of one class differ in 2 p (1 - p) of all pairs."""
    rows = np.repeat([0, 1], 1000)
    for share, observed in ((0.02, False), (0.2, True)):
        few = (np.arange(1000) < 1000 * share).astype(int)
        assert are_observations(rows, np.concatenate([few, 1 - few])) is observed


def test_very_many_rows_follow_the_same_rule(monkeypatch):
    monkeypatch.setattr("lssvm.data.folds._LARGE", 500)
    X, y, _ = cells(n=2000)
    fold = assignment(assign_folds(X, 5, labels=y), 2000)
    sizes = np.bincount(fold)
    assert sizes.max() - sizes.min() <= 1


def test_distinct_rows_are_counted_in_chunks(monkeypatch):
    monkeypatch.setattr("lssvm.data.folds._COUNTED", 300)
    X = np.random.default_rng(3).standard_normal((4000, 2))
    counted = DistinctRows()
    for part in np.split(np.vstack([X, X]), 16):
        counted.add(hash_rows(part))
    assert counted.n_rows == 8000
    assert counted.n_distinct() == pytest.approx(4000, rel=0.2)


def test_observations_are_drawn_one_by_one():
    X, y, cell = cells(n=3000)
    keys, rows = smallest_hashes(X, 600, labels=y)
    assert len(rows) == 600 and np.all(np.diff(keys.astype(float)) >= 0)
    share = np.bincount(cell[rows], minlength=13) / 600 - np.bincount(cell, minlength=13) / 3000
    assert np.abs(share).max() < 0.05


@pytest.mark.parametrize("cls", [LSSVC, FixedSizeLSSVC])
def test_a_few_categories_are_tuned_as_by_shuffled_folds(cls):
    """Whole cells left out drive gamma to zero, where the model is next to linear."""
    X, y, _ = cells()
    train, test = np.arange(1100) < 500, np.arange(1100) >= 500
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    options = {"C": "cv", "gamma": "cv"}
    own = cls(**options).fit(X[train], y[train])
    reference = cls(**options, cv=folds).fit(X[train], y[train])
    assert own.score(X[test], y[test]) >= reference.score(X[test], y[test]) - 0.005
    outside = cross_val_score(cls(C=own.C_, gamma=own.gamma_), X[train], y[train], cv=folds)
    assert own.best_score_ == pytest.approx(outside.mean(), abs=0.02)


@pytest.mark.parametrize("cls", [LSSVC, FixedSizeLSSVC, GreedyLSSVC])
def test_probabilities_of_a_few_categories(cls):
    rng = np.random.default_rng(4)
    X = rng.integers(0, 2, (1500, 3)).astype(float)
    chance = np.where(X.sum(axis=1) % 2 == 1, 0.8, 0.25)  # other than what its neighbours say
    y = (rng.random(1500) < chance).astype(int)
    model = cls(C=1.0, gamma=0.5).fit(X, y)
    p, score = model.predict_proba(X)[:, 1], model.decision_function(X)
    assert abs(p.mean() - y.mean()) < 0.01
    for level in np.unique(np.round(score, 9)):  # greedy models may not tell all cells apart
        rows = np.abs(score - level) < 1e-8
        share = y[rows].mean()
        assert abs(p[rows].mean() - share) < 2 * np.sqrt(share * (1 - share) / rows.sum())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cls", [LSSVC, FixedSizeLSSVC, GreedyLSSVC])
def test_probabilities_are_the_shares_of_the_cells_that_scores_tell_apart(cls, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (1500, 3)).astype(float)
    chance, cell = rng.uniform(0.1, 0.9, 8), (X @ [1, 2, 4]).astype(int)
    y = (rng.random(1500) < chance[cell]).astype(int)
    model = cls(C=1.0, gamma=0.5).fit(X, y)
    p, score = model.predict_proba(X)[:, 1], np.round(model.decision_function(X), 9)
    assert abs(p.mean() - y.mean()) < 0.005
    for level in np.unique(score):  # a greedy model gives some cells one score
        rows = score == level
        assert abs(p[rows].mean() - y[rows].mean()) < 0.02


@pytest.mark.parametrize("cls", [LSSVC, FixedSizeLSSVC, GreedyLSSVC])
def test_one_observation_of_a_weight_is_left_out(cls):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, (40, 2)).astype(float)
    y = rng.integers(0, 2, 40)
    weight = rng.integers(1, 4, 40)
    counted = cls(C=2.0, gamma=0.7).fit(X, y, sample_weight=weight)
    repeated = cls(C=2.0, gamma=0.7).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(counted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("criterion", ["fsals", "kmp", "sggp"])
def test_greedy_observations_are_left_out_as_by_refits(criterion):
    from lssvm.greedy import Greedy, Observations, greedy_leave_one_out, greedy_paths
    from lssvm.greedy.forward import change_C
    from lssvm.kernels import RBF
    from lssvm.solvers import DualSystem

    rng = np.random.default_rng(6)
    Z, member = rng.standard_normal((6, 2)), np.repeat(np.arange(6), 5)
    y = rng.standard_normal(30)

    def merged(rows):
        total = np.bincount(member[rows], minlength=6).astype(float)
        mean = np.bincount(member[rows], y[rows], minlength=6) / total
        return DualSystem(RBF(0.5), Z, Z, 3.0, np.sqrt(total)), mean

    system, mean = merged(np.arange(30))
    settings = Greedy(epsilon=1e-6, criterion=criterion, max_support=4)
    (path,) = greedy_paths(system, mean[:, None], settings)
    observations = Observations(member, y, np.full(30, 0.2))
    out = greedy_leave_one_out(system, mean, path, np.array([3.0]), criterion, observations)[0]
    K = np.exp(-0.5 * ((Z[:, None] - Z[None]) ** 2).sum(-1))
    P = path.support
    for i in (0, 7, 29):
        smaller, target = merged(np.delete(np.arange(30), i))
        w = np.asarray(smaller.u) ** 2
        if criterion == "fsals":
            A = np.block(
                [
                    [np.zeros((1, 1)), np.ones((1, len(P)))],
                    [np.ones((len(P), 1)), K[np.ix_(P, P)] + np.diag(1 / (3.0 * w[P]))],
                ]
            )
            b, *coef = np.linalg.solve(A, np.append(0.0, target[P]))
        else:
            ridge = K[np.ix_(P, P)] if criterion == "sggp" else np.eye(len(P))
            Phi = K[:, P]
            centred, level = Phi - w @ Phi / w.sum(), w @ target / w.sum()
            A = centred.T @ (w[:, None] * centred) + ridge / 3.0
            coef = np.linalg.solve(A, centred.T @ (w * (target - level)))
            b = level - w @ Phi / w.sum() @ coef
        assert out[i] == pytest.approx(K[member[i], P] @ np.array(coef) + b, abs=1e-7)
    assert change_C(system, path, 3.0, criterion).intercept == pytest.approx(path.intercept)


def test_what_is_a_count():
    assert observation_weight(3, None) == (3.0, None)
    n, unit = observation_weight(3, np.array([0.5, 1.5, 0.0]))
    assert n == 4.0
    np.testing.assert_array_equal(unit, [0.5, 0.5, 0.0])
    n, unit = observation_weight(2, np.array([0.5, 1.2]))
    assert n == 2.0
    np.testing.assert_array_equal(unit, [0.5, 1.2])
    n, unit = observation_weight(4, np.array([1.3, 1.3, 0.7, 2.1]), np.array([0, 0, 1, 1]))
    assert n == 6.0
    np.testing.assert_allclose(unit, [1.3, 1.3, 0.7, 0.7])


def test_repeats_do_not_fill_the_prototypes():
    X, y, _ = cells()
    for selection in ("renyi", "random", "kmeans", "rpcholesky"):
        model = FixedSizeLSSVC(C=1.0, gamma=0.5, selection=selection).fit(X, y)
        assert len(np.unique(model.prototypes_, axis=0)) == len(model.prototypes_) == 13


# -- groups ----------------------------------------------------------------------------------------


def clusters(seed=7, n=240):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 24, n)
    X = rng.standard_normal((24, 3))[group] + 0.05 * rng.standard_normal((n, 3))
    level = rng.standard_normal(24)[group]
    return X, level + 0.1 * rng.standard_normal(n), np.array([f"g{i}" for i in group])


def test_rows_of_a_group_share_a_fold():
    X, _, groups = clusters()
    fold = assignment(assign_folds(X, 5, groups=groups), len(X))
    for name in np.unique(groups):
        assert len(np.unique(fold[groups == name])) == 1
    order = np.random.default_rng(0).permutation(len(X))
    moved = assignment(assign_folds(X[order], 5, groups=groups[order]), len(X))
    np.testing.assert_array_equal(moved, fold[order])
    with pytest.raises(InvalidInputError, match="2 groups"):
        assign_folds(X, 5, groups=np.zeros(len(X)))


@pytest.mark.parametrize("cls", [LSSVR, FixedSizeLSSVR])
def test_tuning_leaves_out_groups(cls):
    X, y, groups = clusters()
    seen = cls(C="cv", gamma=0.3).fit(X, y)
    new = cls(C="cv", gamma=0.3).fit(X, y, groups=groups)
    assert -new.best_score_ > 5 * -seen.best_score_  # what groups share cannot be predicted
    folds = GroupKFold(6)
    split = cls(C="cv", gamma=0.3, cv=folds).fit(X, y, groups=groups)
    listed = cls(C="cv", gamma=0.3, cv=list(folds.split(X, y, groups))).fit(X, y)
    assert split.best_score_ == listed.best_score_
    with pytest.raises(ValueError, match="groups"):
        cls(C="cv", gamma=0.3, cv=folds).fit(X, y)


@pytest.mark.parametrize("cls", [LSSVR, FixedSizeLSSVR])
def test_intervals_of_an_untuned_model_leave_out_groups(cls):
    X, y, groups = clusters()
    plain, grouped = cls(C=10.0, gamma=0.3).fit(X, y), cls(C=10.0, gamma=0.3)
    grouped.fit(X, y, groups=groups)

    def width(model):
        low, high = model.predict_interval(X[:5], coverage=0.8).T
        return float(np.mean(high - low))

    assert width(grouped) > 3 * width(plain)


@pytest.mark.parametrize("multiclass", ["ovo", "ova"])
@pytest.mark.parametrize("cls", [LSSVC, FixedSizeLSSVC])
def test_probabilities_of_an_untuned_model_leave_out_groups(cls, multiclass):
    X, y, groups = clusters()
    labels = np.digitize(y, [-0.5, 0.5])
    options = {"C": 10.0, "gamma": 0.3, "multiclass": multiclass}
    sure = cls(**options).fit(X, labels).predict_proba(X).max(axis=1)
    less = cls(**options).fit(X, labels, groups=groups).predict_proba(X).max(axis=1)
    assert less.mean() < sure.mean() - 0.05


def test_groups_that_cannot_be_used():
    X, y, groups = clusters()
    with pytest.raises(InvalidInputError, match="groups has 3 entries"):
        LSSVR(C="cv").fit(X, y, groups=groups[:3])
    with pytest.raises(InvalidInputError, match="1 of them missing"):
        LSSVR(C="cv").fit(X, y, groups=np.append(np.zeros(len(X) - 1), np.nan))
    named = np.array(["a", None] * len(X), dtype=object)[: len(X)]
    with pytest.raises(InvalidInputError, match=f"{len(X) // 2} of them missing"):
        LSSVR(C="cv").fit(X, y, groups=named)
    with pytest.raises(InvalidInputError, match="groups has shape"):
        LSSVR(C="cv").fit(X, y, groups=np.zeros((len(X), 2)))
    with pytest.raises(InvalidInputError, match="read in blocks"):
        FixedSizeLSSVR().fit(scan(X, target=y), groups=groups)


# -- groups of greedy models: every fold grows its basis anew --------------------------------------


def pairs(folds, n):
    return [(np.setdiff1d(np.arange(n), test), test) for test in folds.test]


@pytest.mark.parametrize("multiclass", ["ova", "ovo"])
def test_greedy_probabilities_leave_out_groups_as_by_refits(multiclass):
    X, y, groups = clusters()
    labels = np.digitize(y, [-0.5, 0.5])
    model = GreedyLSSVC(10.0, gamma=0.3, cv=4, multiclass=multiclass).fit(X, labels, groups=groups)
    folds = assign_folds(X, 4, labels=labels, groups=groups)
    scores = []
    for train, test in pairs(folds, len(X)):
        refit = GreedyLSSVC(10.0, gamma=0.3, multiclass=multiclass).fit(X[train], labels[train])
        scores.append(refit.record_.outputs({"none": X[test]}))
    found = model.record_.calibration.held_out
    np.testing.assert_allclose(found.scores, np.concatenate(scores), atol=1e-8)
    np.testing.assert_array_equal(found.labels, labels[np.concatenate(folds.test)])
    sure = GreedyLSSVC(10.0, gamma=0.3, multiclass=multiclass).fit(X, labels)
    np.testing.assert_array_equal(sure.dual_coef_, model.dual_coef_)  # only the folds differ
    assert model.predict_proba(X).max(axis=1).mean() < sure.predict_proba(X).max(1).mean() - 0.05


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_greedy_C_is_chosen_by_folds_of_groups_as_by_refits(kernel):
    X, y, groups = clusters()
    weight = np.random.default_rng(8).integers(0, 3, len(X)).astype(float)
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(-1))
    options = {"epsilon": 0.3, "kernel": kernel, "gamma": 0.3}
    given = X if kernel == "rbf" else K
    model = GreedyLSSVR("cv", cv=3, **options).fit(given, y, weight, groups)
    kept = np.flatnonzero(weight)
    folds = assign_folds(X[kept], 3, groups=groups[kept])
    loss = np.zeros(len(C_GRID))
    for train, test in pairs(folds, len(kept)):
        train, test = kept[train], kept[test]
        basis = GreedyLSSVR(8.0, gamma=0.3, epsilon=0.3).fit(X[train], y[train], weight[train])
        rows = train[basis.support_]
        for c, C in enumerate(C_GRID):
            refit = LSSVR(C, gamma=0.3).fit(X[rows], y[rows], weight[rows])
            loss[c] += weight[test] @ (refit.predict(X[test]) - y[test]) ** 2 / weight.sum()
    np.testing.assert_allclose(-model.cv_results_["mean_test_score"], loss, rtol=1e-6)
    assert C_GRID[np.argmin(loss)] == model.C_ and -model.best_score_ == pytest.approx(loss.min())
    seen = GreedyLSSVR("cv", **options).fit(given, y, weight)
    assert -model.best_score_ > 2 * -seen.best_score_


@pytest.mark.parametrize("cls", [GreedyLSSVC, GreedyLSSVR])
def test_greedy_gamma_is_chosen_by_folds_of_groups(cls):
    X, y, groups = clusters(n=120)
    y = y if cls is GreedyLSSVR else np.digitize(y, [0.0])
    options, folds = {"gamma": "cv", "C": "cv"}, GroupKFold(3)
    split = cls(**options, cv=folds).fit(X, y, groups=groups)
    listed = cls(**options, cv=list(folds.split(X, y, groups))).fit(X, y)
    assert (split.gamma_, split.C_, split.best_score_) == (
        listed.gamma_,
        listed.C_,
        listed.best_score_,
    )
    labels = None if cls is GreedyLSSVR else y
    dealt = pairs(assign_folds(X, 3, labels=labels, groups=groups), len(X))
    numbered, named = cls(**options, cv=3).fit(X, y, groups=groups), cls(**options, cv=dealt)
    assert numbered.best_score_ == named.fit(X, y).best_score_
    if cls is GreedyLSSVC:  # calibrated on the folds of the tuning
        for one, two in ((split, listed), (numbered, named)):
            np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
        test = dealt[0][1]
        refit = GreedyLSSVC(8.0, gamma=named.gamma_).fit(X[dealt[0][0]], y[dealt[0][0]])
        rows = dealt[0][0][refit.support_]
        want = LSSVC(named.C_, gamma=named.gamma_).fit(X[rows], y[rows]).decision_function(X[test])
        found = named.record_.calibration.held_out.scores[: len(test), 0]
        np.testing.assert_allclose(found, want, atol=1e-7)


@pytest.mark.parametrize("growth", [{}, {"candidates": 5}, {"criterion": "kmp"}, {"prefit": True}])
def test_greedy_pairs_without_rows_in_a_fold_say_nothing(growth):
    """And those of one class alone say that class, which is explained by the bias."""
    X, _, _ = clusters(n=90)
    labels = np.repeat([0, 1, 2], 30)
    rows = np.arange(90)
    cv = [(rows[:30], rows[30:]), (rows[30:], rows[:30])]  # the first knows class 0 alone
    model = GreedyLSSVC("cv", gamma="cv", multiclass="ovo", cv=cv, **growth).fit(X, labels)
    scores = model.record_.calibration.held_out.scores[:60]
    np.testing.assert_allclose(scores, np.tile(model.code_.matrix[0], (60, 1)), atol=1e-6)


def test_greedy_probabilities_where_the_best_of_the_search_is_not_kept():
    """Of points as good as the best one another is chosen, whose folds are grown again."""
    rng = np.random.default_rng(12)
    X, y = rng.standard_normal((44, 3)) + 1e4, rng.integers(0, 2, 44)
    cv = list(KFold(2).split(X))
    model = GreedyLSSVC(1.0, gamma="cv", cv=cv, multiclass=Coding(calibration="sigmoid")).fit(X, y)
    train, test = cv[1]
    refit = GreedyLSSVC(1.0, gamma=model.gamma_).fit(X[train], y[train])
    found = model.record_.calibration.held_out.scores[len(cv[0][1]) :, 0]
    np.testing.assert_allclose(found, refit.decision_function(X[test]), atol=1e-9)


def test_greedy_sizes_are_judged_by_whole_groups():
    X, y, groups = clusters()
    X, y, groups = np.vstack([X, X[:20]]), np.append(y, y[:20]), np.append(groups, groups[:20])
    options = {"gamma": 1.0, "epsilon": 0.0, "validation_fraction": 0.3, "random_state": 0}
    model = GreedyLSSVR(10.0, **options).fit(X, y, groups=groups)
    order = np.random.default_rng(9).permutation(len(X))
    moved = GreedyLSSVR(10.0, **options).fit(X[order], y[order], groups=groups[order])
    np.testing.assert_allclose(model.predict(X), moved.predict(X), atol=1e-9)
    seen = GreedyLSSVR(10.0, **options).fit(X, y)
    assert len(model.support_) < len(seen.support_)  # small: what groups share does not help
    learned = np.unique(groups[model.support_])
    assert 0 < len(learned) <= 20
    with pytest.raises(InvalidInputError, match="at least 2 groups"):
        GreedyLSSVR(10.0, **options).fit(X, y, groups=np.zeros(len(X)))
