"""Scores of held-out rows: R2 without bias, thresholds, and what scores are weighted with."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, log_loss, r2_score

from lssvm import LSSVMClassifier, LSSVMRegressor, load, save
from lssvm._core.errors import InvalidInputError
from lssvm.datasets import load_balance
from lssvm.estimators import table_fit
from lssvm.estimators.table_fit import settings_of
from lssvm.fitting import Problem, table_scoring
from lssvm.fitting.table_scoring import ClassScorer, HeldOut, NumberScorer, held_out_r2
from lssvm.tasks import Classes, Numbers


def mean_of_others(y, weight, labels):
    """Return the prediction of the mean, for every row without its group."""
    other = labels[:, None] != labels
    return other @ (weight[:, None] * y) / (other @ weight)[:, None]


def draw(own, n, case):
    weight = own.choice([0.3, 1.0, 3.0], n) if case == "weights" else np.ones(n)
    labels = own.integers(0, n // 4, n) if case == "groups" else np.arange(n)
    shared = own.normal(size=(2, n))[:, labels] if case == "groups" else own.normal(size=(2, n))
    f, e = np.sqrt(0.5) * (shared + own.normal(size=(2, n)))
    return weight, labels, f[:, None], e[:, None]


@pytest.mark.parametrize("case", ["plain", "weights", "groups"])
def test_no_bias_with_signal(case):
    """The prediction is known exactly, so that R2 of new rows is the share of its variance."""
    own = np.random.default_rng(1)
    gaps, plain = [], []
    for _ in range(1000):
        weight, labels, f, e = draw(own, 80 if case == "groups" else 40, case)
        y = np.sqrt(0.6) * f + np.sqrt(0.4) * e
        groups = labels if case == "groups" else None
        gaps.append(held_out_r2(y, np.sqrt(0.6) * f, weight, groups) - 0.6)
        variance = np.average((y - np.average(y, axis=0, weights=weight)) ** 2, 0, weight)
        plain.append(0.4 - 0.4 * np.average(e**2, 0, weight) / variance)
    error = np.std(gaps) / np.sqrt(len(gaps))
    assert abs(np.mean(gaps)) < 2.5 * error + 0.003 < -np.mean(plain)
    assert np.mean(gaps) < 2.5 * error  # never better than new rows say


@pytest.mark.parametrize("case", ["plain", "weights", "groups"])
def test_the_mean_of_noise_scores_what_it_does_on_new_rows(case):
    own = np.random.default_rng(3)
    gaps, n = [], 40
    for _ in range(600):
        weight, labels, _, e = draw(own, n, case)
        groups = labels if case == "groups" else None
        same = labels[:, None] == labels
        covariance = 0.5 * same + 0.5 * np.eye(n)
        true = -(weight @ covariance @ weight) / weight.sum() ** 2
        gaps.append(held_out_r2(e, mean_of_others(e, weight, labels), weight, groups) - true)
    assert -0.012 < np.mean(gaps) < 3 * np.std(gaps) / np.sqrt(len(gaps))


def test_a_weight_of_two_is_the_row_twice():
    own = np.random.default_rng(0)
    y, p, weight = own.normal(size=(20, 2)), own.normal(size=(20, 2)), own.integers(1, 4, 20)
    twice = np.repeat(np.arange(20), weight)
    once = held_out_r2(y, p, weight.astype(float))
    assert held_out_r2(y[twice], p[twice], np.ones(len(twice)), twice) == pytest.approx(once)
    assert held_out_r2(y, p, 7.0 * weight) == pytest.approx(once)


def test_many_rows_need_no_correction():
    own = np.random.default_rng(0)
    y = own.normal(size=(20_000, 1))
    p = y + own.normal(size=y.shape)
    assert held_out_r2(y, p, np.ones(20_000)) == pytest.approx(r2_score(y, p), abs=3e-4)


def test_what_cannot_be_corrected_is_plain():
    y = np.array([[1.0], [2.0], [4.0]])
    assert held_out_r2(y, y, np.ones(3)) == 1.0
    assert held_out_r2(np.ones((3, 1)), y, np.ones(3)) == r2_score(np.ones(3), y)
    one_group = held_out_r2(y, y - 1.0, np.ones(3), np.zeros(3, dtype=int))
    assert one_group == pytest.approx(r2_score(y, y - 1.0))


def test_one_outlier_that_is_predicted_well_does_not_run_away():
    y = np.r_[np.random.default_rng(0).normal(size=(30, 1)), [[1e4]]]
    p = np.r_[np.zeros((30, 1)), [[1e4 - 1.0]]]
    assert 0.9 < held_out_r2(y, p, np.ones(31)) <= 1.0


def test_a_score_that_is_asked_for_is_scikit_learns():
    own = np.random.default_rng(0)
    y, p = own.normal(size=(9, 1)), own.normal(size=(9, 1))
    scorer = NumberScorer(Numbers(1), y, np.ones(9), "r2")
    assert scorer.score(p, np.arange(9)) == pytest.approx(r2_score(y, p))
    scorer = NumberScorer(Numbers(1), y, np.ones(9))
    assert scorer.score(p, np.arange(9)) == held_out_r2(y, p, np.ones(9))


ONE = {"scaling": "standardised", "kernel": "rbf", "metric": None, "n_jobs": 1}


def rare(n, seed, share=0.05):
    """Return rows of which 5 % are of a class that overlaps with the other."""
    own = np.random.default_rng(seed)
    A = own.normal(size=(n, 2))
    score = A[:, 0] + 0.8 * own.normal(size=n)
    return A, np.where(score > np.quantile(score, 1.0 - share), "rare", "usual")


def test_the_threshold_follows_the_score():
    A, t = rare(600, 0)
    new, truth = rare(3000, 1)
    plain, moved = (
        LSSVMClassifier("fast", scoring=s, **ONE).fit(A, t) for s in (None, "balanced_accuracy")
    )
    before, after = (balanced_accuracy_score(truth, m.predict(new)) for m in (plain, moved))
    assert before < 0.65 and after > 0.75
    assert moved.best_score_ == pytest.approx(after, abs=0.08)
    rates = [np.mean(m.predict(new) == "rare") for m in (plain, moved)]
    assert rates[0] < 0.05 and rates[1] > 0.12
    # The same model, moved: "rare" is class 0, so that its log-odds are the negative outputs.
    assert plain.record_.members[0].weight == pytest.approx(moved.record_.members[0].weight)
    assert moved.record_.offset[0] < plain.record_.offset[0] - 1.0
    gap = moved.decision_function(new) - plain.decision_function(new)
    np.testing.assert_allclose(gap, (moved.record_.offset - plain.record_.offset)[0], atol=1e-9)


def test_thresholds_of_several_classes():
    own = np.random.default_rng(0)
    labels = own.choice(3, 900, p=[0.9, 0.05, 0.05])
    outputs = 1.5 * (np.eye(3)[labels] + own.normal(size=(900, 3))) + np.log([0.9, 0.05, 0.05])
    task = Classes.of(np.arange(3), multiclass="ova")
    scorer = ClassScorer(task, labels, np.ones(900), "balanced_accuracy")
    rows = np.arange(900)
    shift = scorer.decision_shift(outputs, rows)
    assert scorer.score(outputs + shift, rows) > scorer.score(outputs, rows) + 0.1
    share = np.log(np.bincount(labels) / 900)
    np.testing.assert_allclose(shift / share, (shift / share)[0])  # parts of the log shares
    accuracy = ClassScorer(task, labels, np.ones(900), "accuracy")
    assert not accuracy.decision_shift(outputs, rows).any()


def two_classes(scoring, n=400):
    own = np.random.default_rng(0)
    labels = (own.uniform(size=n) < 0.1).astype(int)
    outputs = (2.0 * labels - 3.0 + own.normal(size=n))[:, None]
    task = Classes.of(np.arange(2), multiclass="ova")
    return ClassScorer(task, labels, np.ones(n), scoring), outputs, np.arange(n)


def test_the_threshold_is_the_best_of_the_quantiles():
    scorer, outputs, rows = two_classes("balanced_accuracy")
    shift = scorer.decision_shift(outputs, rows)
    places = np.quantile(outputs, np.linspace(0.0, 1.0, 23)[1:-1])
    scores = [balanced_accuracy_score(scorer.labels, outputs[:, 0] > t) for t in places]
    assert scorer.score(outputs + shift, rows) == pytest.approx(max(scores))
    assert shift[0] > 0.5


@pytest.mark.parametrize("scoring", ["f1", "recall", "jaccard"])
def test_the_threshold_follows_scores_of_the_class_1_whatever_its_name(scoring):
    """scikit-learn refuses other names of classes before it asks for decisions."""
    scorer, outputs, rows = two_classes(scoring)
    named = replace(scorer, task=Classes.of(np.array(["no", "yes"]), multiclass="ova"))
    assert not scorer.ranks and not named.ranks
    shift = scorer.decision_shift(outputs, rows)
    assert shift.any() and named.decision_shift(outputs, rows) == shift


def test_the_threshold_is_between_rows():
    """Rounding would decide on a row that is at the threshold, and then on the best threshold."""
    scorer, outputs, rows = two_classes("balanced_accuracy", 221)  # each quantile is a row
    shift = scorer.decision_shift(outputs, rows)
    assert shift[0] > 0.5 and np.abs(outputs + shift).min() > 1e-5
    noise = 1e-13 * np.random.default_rng(1).normal(size=outputs.shape)
    assert scorer.decision_shift(outputs + noise, rows) == pytest.approx(shift, abs=1e-9)
    assert not scorer.decision_shift(np.ones_like(outputs) + noise, rows).any()


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss", "neg_brier_score"])
def test_scores_without_decisions_move_nothing(scoring, monkeypatch):
    """A threshold changes no order and no probabilities: it is not searched for."""
    scorer, outputs, rows = two_classes(scoring)
    calls = []
    score = ClassScorer.score
    monkeypatch.setattr(
        ClassScorer, "score", lambda self, *given: calls.append(1) or score(self, *given)
    )
    assert not scorer.decision_shift(outputs, rows).any()
    assert len(calls) <= 2


@pytest.mark.parametrize("scoring", ["average_precision", "roc_auc", "neg_log_loss"])
def test_rows_of_one_class_have_no_rank_and_no_warning(scoring):
    scorer, outputs, rows = two_classes(scoring)
    with warnings.catch_warnings(action="error"):
        for label in (0, 1):
            alike = rows[scorer.labels == label]
            assert np.isnan(scorer.score(outputs[alike], alike))
            assert scorer.loss(outputs[alike], alike) == np.inf
    assert np.isfinite(scorer.loss(outputs, rows))


def test_thresholds_are_between_two_rows_where_many_are_the_largest():
    places = table_scoring._between_rows(np.array([0.0, 2.0, 2.0, 2.0]), np.array([0.1, 0.5, 0.9]))
    np.testing.assert_array_equal(places, [1.0, 1.0, 1.0])
    assert len(table_scoring._between_rows(np.ones(3), np.array([0.5]))) == 0


def test_of_thresholds_that_differ_by_rounding_the_nearest_is_taken(monkeypatch):
    outputs, rows, tried = np.linspace(-1.0, 1.3, 40)[:, None], np.arange(40), []

    def loss(self, shifted, rows):
        tried.append(float(shifted[0, 0] - outputs[0, 0]))
        return 0.5 if len(tried) == 1 else 0.3 - 1e-15 * len(tried)

    monkeypatch.setattr(ClassScorer, "loss", loss)
    task = Classes.of(np.array(["no", "yes"]), multiclass="ova")
    scorer = ClassScorer(task, (outputs[:, 0] > 0).astype(int), np.ones(40), "f1")
    (shift,) = scorer.decision_shift(outputs, rows)
    assert len(tried) == 22 and abs(shift) == pytest.approx(min(np.abs(tried[1:])))


@pytest.mark.parametrize("scoring", ["roc_auc", "f1", None])
def test_outputs_that_are_rounding_say_nothing(scoring):
    """Every input once with each label: the offsets of folds differed from that of the model."""
    X = (rng := np.random.default_rng(1)).normal(size=(60, 3))
    model = LSSVMClassifier("fast", scoring=scoring, n_jobs=1)
    model.fit(np.tile(X, (2, 1)), np.repeat([0, 1], 60))
    np.testing.assert_allclose(model.predict_proba(rng.normal(size=(50, 3))), 0.5, atol=0.01)


def test_a_score_that_rounding_makes_imaginary_has_no_value_and_no_warning():
    def rooted(model, X, y):  # as Matthews' correlation for weights of many decades
        return np.sqrt(np.float64(-1e-20))

    known = HeldOut({"predict": lambda: np.zeros(2)})
    with warnings.catch_warnings(action="error"):
        assert np.isnan(known.score_by(rooted, np.zeros(2), np.ones(2)))


@pytest.mark.parametrize("class_weight", [None, "balanced", {"rare": 30.0}])
def test_scores_do_not_get_weights_of_classes(class_weight):
    A, t = rare(300, 2)
    seen = []

    def watched(model, X, y, sample_weight=None):
        seen.append((len(y), sample_weight))
        return balanced_accuracy_score(y, model.predict(X), sample_weight=sample_weight)

    use = {"class_weight": class_weight, "scoring": watched, **ONE}
    LSSVMClassifier("fast", **use).fit(A, t)
    assert len(seen) > 10 and all(weight is None for _, weight in seen)
    seen.clear()
    given = np.where(np.arange(300) % 3, 1.0, 2.0)
    LSSVMClassifier("fast", **use).fit(A, t, sample_weight=given)
    weights = [weight for n, weight in seen if n == 300]
    assert weights
    for weight in weights:  # in the order of the fit, which is another one
        np.testing.assert_allclose(
            np.sort(weight) / weight.mean(), np.sort(given) / given.mean(), rtol=1e-9
        )


def test_class_weights_move_decisions_but_not_the_score():
    A, t = rare(500, 3)
    plain, heavy = (
        LSSVMClassifier("fast", class_weight=w, **ONE).fit(A, t) for w in (None, {"rare": 20.0})
    )
    assert np.mean(heavy.predict(A) == "rare") > np.mean(plain.predict(A) == "rare") + 0.05
    new, truth = rare(3000, 4)
    for model in (plain, heavy, heavy.compress(30)):  # the accuracy of rows as they come
        assert model.best_score_ == pytest.approx(model.score(new, truth), abs=0.04)


@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["no", "yes"], [1.0, 2.0]])
def test_small_models_of_files_know_the_weights_of_classes(labels, tmp_path):
    A, t = rare(200, 3)
    y = np.array(labels)[(t == "rare") * 1]
    model = LSSVMClassifier("fast", class_weight="balanced", **ONE).fit(A, y)
    save(model, tmp_path / "m.lssvm", keep="all")
    again = load(tmp_path / "m.lssvm")
    small = [one.compress(20) for one in (model, again)]
    np.testing.assert_array_equal(*[one.predict_proba(A) for one in small])
    assert small[1].best_score_ == small[0].best_score_
    assert np.mean(small[0].predict_proba(A)[:, 1] - model.predict_proba(A)[:, 1]) < 0.05


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])
def test_decisions_are_the_largest_probability_unless_a_score_moves_them(scoring):
    A, t = rare(300, 2)
    model = LSSVMClassifier("fast", scoring=scoring, **ONE).fit(A, t)
    new = rare(600, 3)[0]
    decided = np.searchsorted(model.classes_, model.predict(new))
    assert (decided == model.predict_proba(new).argmax(axis=1)).all() == (scoring is None)
    for coverage in (0.2, 0.9):
        assert model.predict_set(new, coverage)[np.arange(600), decided].all()


def test_weights_of_scores_are_added_up_as_rows_are():
    X = np.array([[0.0], [0.0], [1.0], [2.0]])
    Y = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    classes = np.array([1, 1, 0, 0])
    problem = Problem(
        {"standardised": X}, Y, np.array([3.0, 3.0, 1.0, 1.0]), None, classes, np.ones(4)
    )
    merged = problem.merged()
    assert merged.n == 3
    at = int(np.flatnonzero(merged.inputs["standardised"][:, 0] == 0.0)[0])
    assert (merged.weight[at], merged.score_weight[at]) == (6.0, 2.0)
    assert merged.score_weight.sum() == 4.0
    np.testing.assert_array_equal(replace(problem, scored=None).score_weight, problem.weight)


@pytest.mark.parametrize("scoring", ["roc_auc", "f1", "r2_that_is_not"])
def test_scores_that_cannot_score_several_classes(scoring):
    A = np.random.default_rng(0).normal(size=(90, 2))
    t = np.array(["a", "b", "c"])[np.arange(90) % 3]
    match = "cannot score 3 classes" if scoring != "r2_that_is_not" else "is not usable"
    with pytest.raises(InvalidInputError, match=match):
        LSSVMClassifier("fast", scoring=scoring, **ONE).fit(A, t)
    if scoring != "r2_that_is_not":
        with pytest.raises(InvalidInputError, match="cannot score these targets"):
            LSSVMRegressor("fast", scoring=scoring, **ONE).fit(A, A[:, 0])


@pytest.mark.parametrize("scoring", ["neg_median_absolute_error", "neg_max_error"])
def test_scores_choose_neither_settings_nor_metrics_of_numbers(scoring):
    A = np.random.default_rng(5).normal(size=(300, 3))
    t = np.sin(2.0 * A[:, 0]) + 0.1 * np.random.default_rng(6).normal(size=300)
    use = ONE | {"metric": "auto"}
    plain, scored = (LSSVMRegressor("fast", scoring=s, **use).fit(A, t) for s in (None, scoring))

    def maps(model):
        return {
            m.rounds: (m.metric.matrix(3), m.local.leaves[0].setting) for m in model.record_.members
        }

    both = set(maps(plain)) & set(maps(scored))
    assert both
    for rounds in both:
        np.testing.assert_array_equal(maps(plain)[rounds][0], maps(scored)[rounds][0])
        assert maps(plain)[rounds][1] == maps(scored)[rounds][1]
    assert scored.best_score_ != plain.best_score_


def test_the_factor_of_exponentials_has_the_smallest_squared_error():
    own = np.random.default_rng(7)
    outputs, weight = own.normal(size=(200, 2)), own.uniform(0.5, 2.0, 200)
    targets = np.exp(outputs + 0.8 * own.normal(size=outputs.shape))
    task = Numbers(2, single=False, smearing=np.ones(2))
    factor = NumberScorer(task, targets, weight).smeared(outputs, np.arange(200)).task.smearing

    def errors(factor):
        return weight @ (targets - factor * np.exp(outputs)) ** 2

    for other in (0.99, 1.01):
        assert (errors(factor) < errors(other * factor)).all()
    assert (np.abs(factor - 1.0) > 0.05).all()


def test_the_threshold_is_the_probability_at_which_decisions_change():
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 3))
    y = (X[:, 0] + random.normal(size=600) > 2.2).astype(int)  # about one row in sixteen
    plain, balanced = (
        LSSVMClassifier("fast", scoring=scoring).fit(X, y)
        for scoring in (None, "balanced_accuracy")
    )
    new = random.normal(size=(2000, 3))
    for model in (plain, balanced):
        p = model.predict_proba(new)[:, 1]
        chosen = model.predict(new) == 1
        assert p[chosen].min() >= model.threshold_ - 1e-9
        assert p[~chosen].max() <= model.threshold_ + 1e-9
    assert balanced.threshold_ < 0.5 * plain.threshold_
    with pytest.raises(AttributeError, match="two classes"):
        _ = LSSVMClassifier("fast").fit(X, y + (X[:, 1] > 1)).threshold_


def test_other_classes_help_where_rows_are_nearly_certain(tmp_path, monkeypatch):
    """A scale tips to the left or the right with certainty, and is in balance where neither is."""
    balance = load_balance()
    X, y = balance.data, balance.target
    train = np.random.default_rng(0).permutation(len(y)) < 450
    options = {"preset": "fast", "n_jobs": 1}
    model = LSSVMClassifier(**options).fit(X[train], y[train])
    monkeypatch.setattr(
        table_fit, "settings_of", lambda *a: replace(settings_of(*a), other_classes=False)
    )
    alone = LSSVMClassifier(**options).fit(X[train], y[train])
    assert model.record_.calibrated.decoding == "softmax"
    assert alone.record_.calibrated.decoding == "argmax"
    outputs = [one.decision_function(X[~train]) for one in (model, alone)]
    np.testing.assert_array_equal(*outputs)
    after, before = (log_loss(y[~train], one.predict_proba(X[~train])) for one in (model, alone))
    assert after < 0.95 * before
    save(model, tmp_path / "model.lssvm")
    again = load(tmp_path / "model.lssvm").predict_proba(X[~train])
    np.testing.assert_array_equal(again, model.predict_proba(X[~train]))


@pytest.mark.parametrize("times", [0.0, 2.0])
def test_balanced_weights_are_those_of_weighted_rows(times):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(160, 2)), np.r_[np.zeros(120), np.ones(40)]
    X[y == 1] += 1.0
    weight = np.where(np.arange(160) % 4 == 0, times, 1.0)
    again = np.repeat(np.arange(160), weight.astype(int))
    options = {"class_weight": "balanced", "random_state": 0, "n_jobs": 1}
    weighted = LSSVMClassifier("fast", **options).fit(X, y, sample_weight=weight)
    repeated = LSSVMClassifier("fast", **options).fit(X[again], y[again])
    np.testing.assert_allclose(
        weighted.predict_proba(X), repeated.predict_proba(X), rtol=0, atol=1e-6
    )
