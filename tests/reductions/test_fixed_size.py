"""SPFS, SSD, SV-L0 and SD of the fixed-size models against plain loops over the printed systems."""

import pickle

import numpy as np
import pytest
from sklearn.model_selection import TimeSeriesSplit
from tests.oracles.dual import rbf
from tests.oracles.reductions import (
    algorithms_3_and_4,
    dual,
    loop,
    primal,
    primal_weights,
    surrogate,
    system_10,
)

from lssvm import FixedSizeLSSVC, FixedSizeLSSVR
from lssvm._core.errors import InvalidInputError, NumericalWarning
from lssvm.data.folds import assign_folds
from lssvm.kernels import RBF
from lssvm.reductions import L0, FixedSizeL0
from lssvm.reductions.l0 import L0System, l0_order, reduce_printed, reweighted_step
from lssvm.solvers.moments import Moments

rng = np.random.default_rng(3)
X = rng.normal(size=(400, 2))
y = np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=400)
labels = (y > 0).astype(int)
weight = rng.uniform(0.5, 2.0, size=400)
three = np.digitize(y, [-0.4, 0.5])
rows = rng.permutation(300)[:30]
GAMMA = 3.0
PRINTED = L0(tol=0.0, max_iter=8)


def as_printed(method):
    return FixedSizeL0(method, size="l0", refit=False, settings=PRINTED)


def regressor(**options):
    settings = {"C": 20.0, "gamma": GAMMA, "selection": rows, "n_jobs": 1} | options
    return FixedSizeLSSVR(len(rows), **settings)


def full(model):
    """Coefficients on all prototypes, zero where they were dropped."""
    coef = np.zeros((len(rows), model.dual_coef_.shape[1]))
    at = {row: i for i, row in enumerate(rows)}
    coef[[at[row] for row in model.support_]] = model.dual_coef_
    return coef


@pytest.mark.parametrize("s", [np.ones(400), weight], ids=["plain", "weighted"])
def test_every_reweighting_equals_a_dense_solve_of_the_printed_system(s):
    Q = rbf(X, X[rows], GAMMA)
    system = L0System.of(Moments.of(Q, y[:, None], s), np.array([0]))
    beta = rng.normal(size=30)
    for _ in range(4):
        expected, b = system_10(Q, y, 3.0, 1.0 / beta**2, s)
        got = reweighted_step([system], np.abs(beta), np.array([3.0]))
        np.testing.assert_allclose(got[:, 0], expected, atol=1e-8)
        np.testing.assert_allclose(system.intercept(got), b, atol=1e-8)
        beta = expected


def test_shifted_moments_give_the_same_system():
    Q = rbf(X, X[rows], GAMMA)
    plain = Moments.of(Q, y[:, None], weight)
    one, other = (L0System.of(m, np.array([0])) for m in (plain, plain.shifted(Q.mean(axis=0))))
    np.testing.assert_allclose(one.A, other.A, atol=1e-10)
    np.testing.assert_allclose(one.c, other.c, atol=1e-10)
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-12)


def test_the_surrogate_objective_falls_in_every_step():
    Q = rbf(X, X[rows], GAMMA)
    system = L0System.of(Moments.of(Q, y[:, None]), np.array([0]))
    beta, b = primal(Q, y, 20.0, rbf(X[rows], X[rows], GAMMA), np.ones(400))
    values = [surrogate(Q, y, 20.0, beta, b, np.ones(400))]
    for _ in range(6):
        new = reweighted_step([system], np.abs(beta), np.array([20.0]))
        beta, b = new[:, 0], system.intercept(new)[0]
        values.append(surrogate(Q, y, 20.0, beta, b, np.ones(400)))
    assert np.all(np.diff(values) < 0)


def in_units(Q, targets, C, start, steps, s, scale):
    """Run the printed loop on targets in units of ``scale``."""
    active, beta, b = loop(Q, targets / scale, C, start / scale, steps, s)
    return active, beta * scale, b * scale


def deviation(s):
    return np.sqrt(np.average((y - np.average(y, weights=s)) ** 2, weights=s))


@pytest.mark.parametrize("s", [None, weight], ids=["plain", "weighted"])
def test_spfs_equals_a_plain_loop_over_eq_10(s):
    model = regressor(reduction=as_printed("spfs")).fit(X, y, s)
    Q, s = rbf(X, X[rows], GAMMA), np.ones(400) if s is None else s
    start, _ = primal(Q, y, 20.0, rbf(X[rows], X[rows], GAMMA), s)
    active, beta, b = in_units(Q, y, 20.0, start, 8, s, deviation(s))
    np.testing.assert_array_equal(np.sort(model.support_), np.sort(rows[active]))
    assert len(active) < 30
    expected = np.zeros(30)
    expected[active] = beta
    np.testing.assert_allclose(full(model)[:, 0], expected, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-6)  # what was dropped is not quite 0


def test_ssd_starts_from_the_dual_model_on_the_prototypes():
    model = regressor(reduction=as_printed("ssd")).fit(X, y)
    start, _ = dual(rbf(X[rows], X[rows], GAMMA), y[rows], 20.0, np.ones(30))
    Q, s = rbf(X, X[rows], GAMMA), np.ones(400)
    active, beta, b = in_units(Q, y, 20.0, start, 8, s, deviation(s))
    np.testing.assert_array_equal(np.sort(model.support_), np.sort(rows[active]))
    expected = np.zeros(30)
    expected[active] = beta
    np.testing.assert_allclose(full(model)[:, 0], expected, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-7)


@pytest.mark.parametrize("s", [np.ones(400), weight], ids=["plain", "weighted"])
@pytest.mark.parametrize("method", ["spfs", "ssd", "sv-l0"])
def test_algorithms_3_and_4_to_the_letter(method, s):
    few = rng.permutation(300)[:12]  # the printed matrices overflow with more steps and functions
    Q, K = rbf(X, X[few], GAMMA), rbf(X[few], X[few], GAMMA)
    start = dual(K, y[few], 5.0, s[few])[0] if method == "ssd" else primal_weights(Q, y, 5.0, K, s)
    seen = (K, y[few], s[few]) if method == "sv-l0" else (Q, y, s)  # rows of the loss
    indices, expected, b, steps = algorithms_3_and_4(*seen[:2], 5.0, start, seen[2])
    assert 2 <= steps <= 50
    model = regressor(C=5.0, selection=few, reduction=f"{method}-printed").set_params(
        n_prototypes=12
    )
    model.fit(X, y, s)
    np.testing.assert_array_equal(model.support_, few[indices])
    np.testing.assert_allclose(model.dual_coef_[:, 0], expected, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-6)


def test_the_printed_start_matters_only_through_the_first_system():
    # lambda = beta first: the solution of the model before, not 1 / beta^2
    Q = rbf(X, X[rows], GAMMA)
    system = L0System.of(Moments.of(Q, y[:, None]), np.array([0]))
    start = rng.normal(size=30)
    once = reduce_printed(system, start, 2.0, L0(max_iter=1, threshold=0.0, printed=True))
    expected, b = system_10(Q, y, 2.0, start, np.ones(400))
    np.testing.assert_allclose(once.coef[:, 0], expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(once.intercept, b, atol=1e-8)


def test_printed_reductions_serve_every_output_by_itself_and_may_leave_nothing():
    model = FixedSizeLSSVC(len(rows), C=20.0, gamma=GAMMA, selection=rows, multiclass="ova",
                           reduction="spfs-printed").fit(X, three)  # fmt: skip
    for j in range(3):
        alone = regressor(reduction="spfs-printed").fit(X, 2.0 * (three == j) - 1.0)
        at = np.flatnonzero(model.dual_coef_[:, j])
        np.testing.assert_array_equal(model.support_[at], alone.support_)
        np.testing.assert_allclose(model.dual_coef_[at, j], alone.dual_coef_[:, 0], atol=1e-8)
    with pytest.warns(NumericalWarning, match="a constant"):
        nothing = regressor(C=1e-9, reduction="ssd-printed").fit(X, y)
    np.testing.assert_allclose(nothing.predict(X), y.mean(), atol=1e-6)
    with pytest.raises(InvalidInputError, match="not what is printed"):
        FixedSizeL0("spfs", size="l0", settings=L0(printed=True))
    with pytest.raises(InvalidInputError, match="fit again"):
        regressor(reduction="spfs-printed").fit(X, y).partial_fit(X[:5], y[:5])


def test_the_loss_of_sv_l0_sees_the_prototypes_only():
    model = regressor(reduction=as_printed("sv-l0")).fit(X, y, weight)
    K = rbf(X[rows], X[rows], GAMMA)
    start, _ = primal(rbf(X, X[rows], GAMMA), y, 20.0, K, weight)
    scale = deviation(weight)
    active, beta, b = in_units(K, y[rows], 20.0, start, 8, weight[rows], scale)
    np.testing.assert_array_equal(np.sort(model.support_), np.sort(rows[active]))
    expected = np.zeros(30)
    expected[active] = beta
    np.testing.assert_allclose(full(model)[:, 0], expected, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-6)


def test_sd_is_the_dual_model_on_the_prototypes():
    model = regressor(reduction="sd").fit(X, y, weight)
    alpha, b = dual(rbf(X[rows], X[rows], GAMMA), y[rows], 20.0, weight[rows])
    np.testing.assert_allclose(full(model)[:, 0], alpha, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-6)
    with pytest.raises(InvalidInputError, match="prototypes alone"):
        model.partial_fit(X, y)


@pytest.mark.parametrize("reduction", ["spfs", "ssd", "sv-l0"])
@pytest.mark.parametrize("s", [None, weight], ids=["plain", "weighted"])
def test_what_is_left_is_the_fixed_size_model_on_it(reduction, s):
    model = regressor(C="cv", reduction=reduction, cv=4).fit(X, y, s)
    assert len(model.support_) < 30
    assert model.n_prototypes_ == 30
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    again = FixedSizeLSSVR(
        len(model.support_), C=model.C_, gamma=GAMMA, selection=model.support_vectors_
    ).fit(X, y, s)
    np.testing.assert_allclose(model.predict(X), again.predict(X), atol=1e-8)


class Counting(RBF):
    """A kernel that counts the rows it has seen, other than the prototypes among themselves."""

    calls = 0

    def against(self, Z):
        values = super().against(Z)

        def evaluate(A, out=None):
            Counting.calls += len(A) if A.shape[0] != Z.shape[0] else 0
            return values(A, out)

        return evaluate

    def __call__(self, A, B, out=None):
        return self.against(B)(A, out)


def passes(reduction, **options):
    Counting.calls = 0
    settings = {"selection": rows, "n_jobs": 1, "cv": 4, "memory_budget": "1 GB"} | options
    kind = FixedSizeLSSVC if "multiclass" in options else FixedSizeLSSVR
    target = three if "multiclass" in options else y
    model = kind(len(rows), kernel=Counting(GAMMA), reduction=reduction, **settings).fit(X, target)
    return Counting.calls / len(X), model


@pytest.mark.parametrize("C", ["cv", 20.0])
@pytest.mark.parametrize("options", [{}, {"multiclass": "ova"}, {"multiclass": "ovo"}])
def test_a_reduction_reads_the_data_no_further_time(C, options):
    without, _ = passes(None, C=C, **options)
    assert without >= 1
    for reduction in ("spfs", "sv-l0", FixedSizeL0(size="l0"), FixedSizeL0(joint=False)):
        assert passes(reduction, C=C, **options)[0] <= without
    # Tuned on the prototypes among themselves, which may be counted.
    few = 2 * len(rows) / len(X)
    assert 1 <= passes("ssd", C=C, **options)[0] < 2 + few  # one for the errors behind intervals
    assert passes("sd", C=C, **options)[0] < 1 + few  # one for the errors behind its intervals


def test_the_path_of_a_model_that_is_not_reduced_takes_no_pass():
    _, model = passes(None, C="cv")
    Counting.calls = 0
    path = model.sparsity_path()
    assert Counting.calls == 0
    reduced = passes("spfs", C="cv")[1]
    np.testing.assert_array_equal(path.order, reduced.sparsity_path().order)
    np.testing.assert_allclose(path.mean, reduced.sparsity_path().mean, rtol=1e-9)
    assert path.chosen == len(reduced.support_)


@pytest.mark.parametrize("multiclass", ["ova", "ovo", "moc"])
def test_multi_class_is_jointly_sparse_or_each_by_itself(multiclass):
    settings = {"C": "cv", "gamma": GAMMA, "cv": 4, "selection": rows, "multiclass": multiclass}
    joint = FixedSizeLSSVC(30, reduction="spfs", **settings).fit(X, three)
    assert np.all(joint.dual_coef_ != 0)
    assert len(joint.support_) == joint.sparsity_path().chosen
    each = FixedSizeLSSVC(30, reduction=FixedSizeL0(joint=False, size=4), **settings)
    each.fit(X, three)
    np.testing.assert_array_equal(np.count_nonzero(each.dual_coef_, axis=0), 4)
    assert len(each.sparsity_path()) == each.dual_coef_.shape[1]
    for model in (joint, each):
        assert model.score(X, three) > 0.6


@pytest.mark.parametrize("reduction", ["spfs", FixedSizeL0(joint=False), FixedSizeL0(size="l0")])
@pytest.mark.parametrize("multiclass", ["ova", "ovo"])
def test_rows_can_be_added_and_removed_after_a_reduction(reduction, multiclass):
    model = FixedSizeLSSVC(
        30, C="cv", gamma=GAMMA, cv=4, selection=rows, multiclass=multiclass, reduction=reduction
    )
    model.fit(X, three)
    before = model.predict(X), model.decision_function(X)
    model.partial_fit(X[:50], three[:50])
    assert np.abs(model.decision_function(X) - before[1]).max() > 1e-4
    model.forget(X[:50], three[:50])
    np.testing.assert_allclose(model.decision_function(X), before[1], atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), before[0])
    with pytest.raises(InvalidInputError, match="sparsity_path needs"):
        model.sparsity_path()


def test_added_rows_count_as_if_they_had_been_there():
    model = regressor(C="cv", reduction="spfs", cv=4).fit(X[:300], y[:300])
    settings = {"C": model.C_, "gamma": GAMMA, "selection": model.support_vectors_}
    model.partial_fit(X[300:], y[300:])
    expected = FixedSizeLSSVR(len(model.support_), **settings).fit(X, y)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-8)


@pytest.mark.parametrize("reduction", ["spfs", "ssd", "sv-l0"])
@pytest.mark.parametrize("C", ["cv", 20.0])
def test_a_size_can_be_asked_for(reduction, C):
    model = regressor(C=C, reduction=FixedSizeL0(reduction, size=7), cv=4).fit(X, y)
    assert len(model.support_) == model.dual_coef_.shape[0] == 7
    assert model.score(X, y) > 0.5
    with pytest.raises(InvalidInputError, match="at most 30"):
        regressor(reduction=FixedSizeL0(reduction, size=31)).fit(X, y)


def test_no_folds_means_the_printed_size():
    loo = regressor(reduction="spfs", cv="loo").fit(X, y)
    printed = regressor(reduction=FixedSizeL0(size="l0")).fit(X, y)
    np.testing.assert_array_equal(loo.support_, printed.support_)
    five = regressor(reduction=FixedSizeL0(size=5), cv="loo").fit(X, y)
    assert five.dual_coef_.shape == (5, 1)


def test_the_order_keeps_what_matters_longest():
    Q = rng.normal(size=(300, 12))
    Y = np.column_stack([3.0 * Q[:, 2] + Q[:, 5], Q[:, 9]])
    system = L0System.of(Moments.of(Q, Y), np.arange(2))
    order = l0_order([system], np.ones((12, 2)), np.ones(2))
    np.testing.assert_array_equal(np.sort(order), np.arange(12))
    np.testing.assert_array_equal(np.sort(order[:3]), [2, 5, 9])


def test_nothing_to_learn_keeps_one_and_warns():
    noise = rng.normal(size=400)
    with pytest.warns(NumericalWarning, match="dropped every prototype"):
        model = regressor(C="cv", gamma=GAMMA, reduction="spfs", cv=4).fit(X, noise)
    assert len(model.support_) == 1
    constant = np.ones(400)
    with pytest.warns(NumericalWarning, match="dropped every"):
        model = regressor(reduction=FixedSizeL0(size="l0")).fit(X, constant)
    np.testing.assert_allclose(model.predict(X), 1.0, atol=1e-9)


def test_linear_kernel_in_closed_form_selects_features():
    W = rng.normal(size=(300, 8))
    target = 2.0 * W[:, 1] - W[:, 6]
    two = FixedSizeL0("spfs", size=2)
    model = FixedSizeLSSVR(C=100.0, kernel="linear", reduction=two).fit(W, target)
    np.testing.assert_array_equal(model.support_vectors_, np.eye(8)[[1, 6]])
    assert model.score(W, target) > 0.999
    with pytest.raises(InvalidInputError, match="must be rows of X"):
        FixedSizeLSSVR(C=1.0, kernel="linear", reduction="ssd").fit(W, target)


def test_several_outputs_of_a_regression():
    Y = np.column_stack([y, np.cos(X[:, 1])])
    model = regressor(C="cv", reduction="spfs", cv=4).fit(X, Y)
    assert model.predict(X).shape == (400, 2)
    assert len(model.support_) < 30


def test_bad_requests():
    for options in ({"reduction": "l0"}, {"reduction": L0()}):
        with pytest.raises(InvalidInputError, match="reduction"):
            regressor(**options).fit(X, y)
    for size in (0, -3, "ten", True, 2.5):
        with pytest.raises(InvalidInputError, match="positive number of support vectors"):
            FixedSizeL0("spfs", size=size)
    with pytest.raises(InvalidInputError, match="loss='huber'"):
        regressor(reduction="spfs", loss="huber").fit(X, y)
    with pytest.raises(InvalidInputError, match="must be rows of X"):
        regressor(reduction="ssd", selection=X[:30] + 0.1).fit(X, y)
    with pytest.raises(InvalidInputError, match="n_prototypes='cv'"):
        FixedSizeLSSVR("cv", reduction="ssd").fit(X, y)
    with pytest.raises(InvalidInputError, match="No prototype is of the classes"):
        FixedSizeLSSVC(
            20, C=1.0, gamma=1.0, selection=np.flatnonzero(three > 0)[:20], reduction="sd"
        ).fit(X, three)
    with pytest.raises(InvalidInputError, match="refit=False"):
        FixedSizeL0(refit=False)
    with pytest.raises(InvalidInputError, match="choose a method"):
        FixedSizeL0("l0")
    with pytest.raises(InvalidInputError, match="sparsity_path needs"):
        regressor().fit(X, y).sparsity_path()


def test_of_large_folds_five_are_judged():
    big = rng.normal(size=(2000, 2))
    target = np.sin(2.0 * big[:, 0])
    model = FixedSizeLSSVR(5, C=1.0, gamma=1.0, selection=np.arange(5), cv=10, reduction="spfs")
    model.fit(big, target)
    path = model.sparsity_path()
    folds = assign_folds(big, 10)
    residuals = []
    for test in folds.test[:5]:
        train = np.setdiff1d(np.arange(2000), test)
        fold = FixedSizeLSSVR(5, C=1.0, gamma=1.0, selection=big[:5]).fit(big[train], target[train])
        residuals.append(np.mean((fold.predict(big[test]) - target[test]) ** 2))
    np.testing.assert_allclose(path.mean[-1], np.average(residuals, weights=[200] * 5), rtol=1e-6)
    np.testing.assert_allclose(path.std_error[-1], np.std(residuals, ddof=1) / 5**0.5, rtol=1e-3)


def test_training_sets_that_are_not_the_rest_of_a_fold():
    for C in ("cv", 20.0):
        splits = TimeSeriesSplit(3)
        model = regressor(C=C, reduction="spfs", cv=splits).fit(X, y)
        path = model.sparsity_path()
        residuals = []
        for train, test in splits.split(X):
            settings = {"C": path.C[-1, 0], "gamma": GAMMA, "selection": X[rows]}
            fold = FixedSizeLSSVR(len(rows), **settings).fit(X[train], y[train])
            residuals.append(np.mean((fold.predict(X[test]) - y[test]) ** 2))
        np.testing.assert_allclose(path.mean[-1], np.mean(residuals), rtol=1e-6)


def test_what_travels_with_a_pickle():
    plain = regressor(C="cv", cv=4).fit(X, y)
    chosen = plain.sparsity_path().chosen
    reduced = regressor(C="cv", cv=4, reduction="spfs").fit(X, y)
    assert len(pickle.dumps(reduced)) < len(pickle.dumps(plain))
    copy = pickle.loads(pickle.dumps(reduced))
    np.testing.assert_array_equal(copy.predict(X), reduced.predict(X))
    assert copy.sparsity_path().chosen == chosen
    fresh = regressor(C="cv", cv=4).fit(X, y)
    with pytest.raises(InvalidInputError, match="not pickled"):
        pickle.loads(pickle.dumps(fresh)).sparsity_path()


def test_fold_moments_are_kept_only_where_they_are_cheap():
    cells = 4 * 30 * 30 * 8
    for budget, kept in ((cells * 25, True), (cells * 15, False)):
        model = regressor(C="cv", cv=4, memory_budget=budget).fit(X, y)
        assert (model.record_.state.kept is not None) == kept
    with pytest.raises(InvalidInputError, match="raise memory_budget"):
        model.sparsity_path()
