"""What a model says of itself against fresh rows: scores, coverage, calibration.

Ten draws of a problem each: the mean difference has to be within two standard errors of 0. The
seeds were chosen once; a failure is a bias, not bad luck to be drawn again.
"""

import numpy as np
import pytest
from sklearn.metrics import get_scorer

from lssvm import LSSVMClassifier, LSSVMRegressor

DRAWS = 10
FRESH = 1500
COVERAGE = 0.8
FAST = {"preset": "fast", "kernel": "rbf", "n_jobs": 1}


def value(X):
    return np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1]


def plain(rng, n, d=3, noise=0.6):
    X = rng.normal(size=(n, d))
    return X, value(X) + noise * rng.normal(size=n), None


def copies(rng, n):
    if n == FRESH:
        return plain(rng, n)
    X, y, _ = plain(rng, n)
    X, y = np.tile(X, (3, 1)), np.tile(y, 3)
    y[0] += 0.5
    return X, y, None


def noise(rng, n):
    X, y, _ = copies(rng, n)
    return X, np.tile(rng.normal(size=n), len(y) // n), None


def groups(rng, n):
    group = np.arange(n) // 4
    X = rng.normal(size=(n, 3))[group * 4] + 0.2 * rng.normal(size=(n, 3))
    effect = 0.6 * rng.normal(size=n)[group]
    return X, value(X) + effect + 0.3 * rng.normal(size=n), group


def wide(rng, n):
    X, y, _ = plain(rng, n, d=200)
    return X, y + X[:, :20].sum(axis=1), None


def towns(rng, n):
    """Sixty levels, which are encoded by their targets, in rows that stand there three times."""
    town = rng.integers(0, 60, n)
    x = rng.normal(size=n)
    y = x + np.sin(1.7 * town) + rng.normal(size=n)
    times = 1 if n == FRESH else 3
    table = {"town": np.tile([f"t{t}" for t in town], times), "x": np.tile(x, times)}
    return table, np.tile(y, times), None


def labels(rng, n, of=plain):
    X, y, group = of(rng, n)
    return X, np.where(y + 0.3 * rng.normal(size=len(y)) > 0.7, "yes", "no"), group


# A known fault: intervals of encoded targets cover 2 to 3 % too little.
SHORT = pytest.param(towns, 150, marks=pytest.mark.xfail(strict=True))


def honest(gaps):
    """Return whether the mean of differences is within two standard errors of 0."""
    gaps = np.asarray(gaps, dtype=float)
    return abs(gaps.mean()) <= 2.0 * gaps.std(ddof=1) / np.sqrt(len(gaps))


@pytest.mark.parametrize(
    ("draw", "n"),
    [(plain, 100), (copies, 100), (noise, 100), (groups, 100), (wide, 80), SHORT],
)
def test_a_regressor(draw, n):
    scores, covered = [], []
    for seed in range(DRAWS):
        rng = np.random.default_rng([7, seed])
        X, y, group = draw(rng, n)
        new, truth, _ = draw(rng, FRESH)
        model = LSSVMRegressor(**FAST).fit(X, y, groups=group)
        scores.append(model.best_score_ - model.score(new, truth))
        ends = model.predict_interval(new, COVERAGE)
        covered.append(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])) - COVERAGE)
    assert honest(scores), scores
    assert honest(covered), covered


@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision"])
def test_scores_that_rank(scoring):
    """Outputs of folds, each with a stack of its own, are ranked on one scale."""
    scores = []
    for seed in range(DRAWS):
        rng = np.random.default_rng([8, seed])
        X, y, _ = labels(rng, 120)
        model = LSSVMClassifier(**FAST, scoring=scoring).fit(X, y == "yes")
        new, truth, _ = labels(rng, FRESH)
        scores.append(model.best_score_ - get_scorer(scoring)(model, new, truth == "yes"))
    assert honest(scores), scores


# A known fault: outputs of folds are a little worse than those of the model, so probabilities are
# too flat. In 60 draws p - hit has this covariance with p, with a standard error of 0.001.
TOO_FLAT = -0.004


@pytest.mark.parametrize(
    ("scoring", "options"),
    [
        (None, {}),
        (None, {"class_weight": {"no": 1.0, "yes": 10.0}}),
        ("average_precision", {"class_weight": {"no": 1.0, "yes": 10.0}}),
        ("roc_auc", {}),
    ],
)
def test_a_classifier(scoring, options):
    scores, shares, slopes = [], [], []
    for seed in range(DRAWS):
        rng = np.random.default_rng([8, seed])
        X, y, _ = labels(rng, 120)
        new, truth, _ = labels(rng, FRESH)
        model = LSSVMClassifier(**FAST, scoring=scoring, **options).fit(X, y)
        if scoring == "average_precision":
            fresh = get_scorer(scoring)._score_func
            value = fresh(truth == "yes", model.decision_function(new))
        else:
            value = get_scorer(scoring or "accuracy")(model, new, truth)
        scores.append(model.best_score_ - value)
        p, hit = model.predict_proba(new)[:, 1], truth == "yes"
        shares.append(np.mean(p - hit))
        slopes.append(np.mean((p - hit) * (p - p.mean())))
    assert honest(scores), scores
    if not options:  # weights of classes are wanted in probabilities
        assert honest(shares), shares
        assert honest(np.subtract(slopes, TOO_FLAT)), slopes


def test_a_small_model_holds_groups_out_together():
    """Rows of a group share their noise: who has seen one of them knows the others."""
    rng = np.random.default_rng(0)
    group = np.arange(240) // 6
    X = rng.normal(size=(40, 3))[group] + 0.01 * rng.normal(size=(240, 3))
    y = rng.normal(size=40)[group] + 0.01 * rng.normal(size=240)
    model = LSSVMRegressor(**FAST).fit(X, y, groups=group)
    assert model.best_score_ < 0.1
    assert model.compress(60).best_score_ < 0.1


def test_a_small_model_holds_equal_rows_out_together():
    """Rows that stand there three times, with targets that hardly differ."""
    rng = np.random.default_rng(0)
    X, y = np.tile(rng.normal(size=(150, 3)), (3, 1)), np.tile(rng.normal(size=150), 3)
    model = LSSVMRegressor(**FAST).fit(X, y + 1e-3 * rng.normal(size=450)).compress(100)
    assert model.best_score_ < 0.1
    ends = model.predict_interval(rng.normal(size=(500, 3)), 0.9)
    new = rng.normal(size=500)
    assert np.mean((ends[:, 0] <= new) & (new <= ends[:, 1])) > 0.8
