"""Approximate cross-validation and the search that is built on it."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from tests.oracles import circulant as oracle
from tests.oracles.dual import rbf

from lssvm import LSSVC, LSSVR, FixedSizeLSSVR
from lssvm._core.errors import InvalidInputError, MemoryBudgetError, NumericalWarning, Stopped
from lssvm.data.folds import assign_folds, splitter_folds
from lssvm.kernels import RBF
from lssvm.solvers import CirculantSolver, DualSystem
from lssvm.solvers.circulant import first_row, lay_rows
from lssvm.solvers.exact import leave_folds_out
from lssvm.tasks import SquaredError, Targets
from lssvm.tuning import CirculantSearch, GridSearch, PathSearch, Space
from lssvm.tuning.circulant import CirculantObjective
from lssvm.tuning.dual import DualObjective
from lssvm.tuning.objective import Group

RNG = np.random.default_rng(3)
X = RNG.standard_normal((70, 3))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]]) + 0.1 * RNG.standard_normal((70, 2))
C = np.array([0.05, 2.0])


def objective(folds, groups=None, bias=True):
    groups = [Group(np.arange(2))] if groups is None else groups
    system = DualSystem(RBF(), X, X, C=1.0, bias=bias)
    return DualObjective(RBF, system, Targets(Y), folds, SquaredError(), groups)


def literal(train, test, c, solver, bias, gamma=0.5):
    """Algorithm 1 on the training rows with a dense circulant matrix, true kernel on the test."""
    lattice = lay_rows(X[train], levels=solver.levels, layout=solver.layout)
    U = oracle.circulant(first_row(RBF(gamma), lattice, solver.wrap))
    H = U + np.eye(len(U)) / c
    placed = Y[train][lattice.places]
    alpha, b = oracle.bordered_solution(H, placed) if bias else (np.linalg.solve(H, placed), 0.0)
    total = np.zeros((len(train), 2))
    np.add.at(total, lattice.places, alpha)
    return rbf(X[test], X[train], gamma) @ total + b


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("settings", [(1, "sorted", "mean"), (2, "plain", "sum")], ids=str)
def test_folds_are_algorithm_2(settings, bias):
    solver = CirculantSolver(*settings)
    folds = assign_folds(X, 5)
    point = CirculantObjective(objective(folds, bias=bias), solver).at(0.5)
    out = point.predictions(C[:1])
    for v, test in enumerate(folds.test):
        train = np.setdiff1d(np.arange(70), test)
        expected = literal(train, test, C[0], solver, bias)
        np.testing.assert_allclose(out.fold(v)[0], expected, atol=1e-9)


def test_the_printed_search_is_algorithm_2_on_its_grid_for_few_rows_too():
    some = np.arange(30)
    cv = [(np.setdiff1d(some, some[v::3]), some[v::3]) for v in range(3)]
    options = {"gamma": "cv", "cv": cv}
    model = LSSVR("cv", search=CirculantSearch.ding2011(), **options).fit(X[:30], Y[:30, 0])
    results, solver = model.cv_results_, CirculantSolver.ding2011()
    assert len(results["params"]) == 13 * 11 and model.tuning_result_.approximate is None
    indefinite = 0
    for i in range(0, 143, 7):
        c, gamma = results["param_C"][i], results["param_gamma"][i]
        squares = 0.0
        for train, test in cv:
            lattice = lay_rows(X[train], levels=2, layout="plain")
            U = oracle.circulant(oracle.first_row_set(gamma, lattice.spacing, lattice.shape))
            indefinite += np.linalg.eigvalsh(U)[0] + 1 / c < 0
            squares += np.sum(
                (literal(train, test, c, solver, True, gamma)[:, 0] - Y[test, 0]) ** 2
            )
        assert results["mean_test_score"][i] == pytest.approx(-squares / 30, rel=1e-6)
    assert indefinite > 0
    few = LSSVR("cv", search=CirculantSearch(GridSearch.ding2011(), 0), **options)
    few.fit(X[:30], Y[:30, 0])  # below 64 rows: exact
    exact = LSSVR("cv", search=GridSearch.ding2011(), **options).fit(X[:30], Y[:30, 0])
    for name in ("param_C", "mean_test_score"):
        np.testing.assert_array_equal(few.cv_results_[name], exact.cv_results_[name])


def test_all_values_of_C_come_together():
    point = CirculantObjective(objective(assign_folds(X, 5))).at(0.5)
    together = point.losses(C).mean
    apart = [point.losses(C[i : i + 1]).mean[0] for i in range(2)]
    np.testing.assert_allclose(together, apart, rtol=1e-12)


def test_splits_with_their_own_training_rows():
    splits = [(np.arange(0, 40), np.arange(40, 70)), (np.arange(20, 70), np.arange(0, 10))]
    folds = splitter_folds(splits, 70)
    solver = CirculantSolver()
    out = CirculantObjective(objective(folds), solver).at(0.5).predictions(C[:1])
    for v, (train, test) in enumerate(splits):
        np.testing.assert_allclose(
            out.fold(v)[0], literal(train, test, C[0], solver, True), atol=1e-9
        )


@pytest.mark.parametrize("bias", [True, False])
def test_leave_one_out_equals_refits_with_the_circulant_matrix(bias):
    folds = assign_folds(X, None)
    made = CirculantObjective(objective(folds, bias=bias))
    out = made.at(0.5).predictions(C[:1])
    lattice = made.parts[0].lattice
    assert len(lattice.places) == 70
    U = oracle.circulant(first_row(RBF(0.5), lattice))
    for v in (0, 13, 42):
        row = int(folds.test[v][0])
        place = int(np.flatnonzero(lattice.places == row)[0])
        others = np.delete(np.arange(70), place)
        H = U[np.ix_(others, others)] + np.eye(69) / C[0]
        placed = Y[lattice.places[others]]
        alpha, b = oracle.bordered_solution(H, placed) if bias else (np.linalg.solve(H, placed), 0)
        np.testing.assert_allclose(out.fold(v)[0, 0], U[place, others] @ alpha + b, atol=1e-9)


def test_groups_on_some_of_the_rows():
    part = np.arange(0, 70, 2)
    groups = [Group(np.array([0])), Group(np.array([1]), part)]
    solver = CirculantSolver()
    folds = assign_folds(X, 5)
    out = CirculantObjective(objective(folds, groups), solver).at(0.5).predictions(C[:1])
    test = folds.test[2]
    train = np.setdiff1d(part, test)
    expected = literal(train, test, C[0], solver, True)[:, 1]
    np.testing.assert_allclose(out.fold(2)[0, :, 1], expected, atol=1e-9)
    loo = CirculantObjective(objective(assign_folds(X, None), groups)).at(0.5)
    assert np.isfinite(loo.losses(C).mean).all()


def test_indefinite_matrices_are_ruled_out():
    made = CirculantObjective(objective(assign_folds(X, 5)), CirculantSolver(wrap="sum"))
    losses = made.at(1e-4).losses(np.array([1e-3, 1e3]))
    assert np.isfinite(losses.mean[0])
    assert np.isinf(losses.mean[1])


@pytest.mark.parametrize("rows", [None, np.arange(0, 70, 2)], ids=["all", "some"])
@pytest.mark.parametrize("n_folds", [5, None])
@pytest.mark.parametrize("bias", [True, False])
def test_one_value_of_C_equals_the_spectrum(bias, n_folds, rows):
    groups = [Group(np.arange(2), rows)]
    folds = assign_folds(X, n_folds)
    alone = objective(folds, groups, bias).at(0.5)
    direct = [alone.losses(C[i : i + 1]).mean[0] for i in range(2)]
    assert alone.solution(0, 1.0, Y if rows is None else Y[rows]) is None
    path = objective(folds, groups, bias).at(0.5).losses(C).mean
    np.testing.assert_allclose(direct, path, rtol=1e-8)


def test_one_value_of_C_sees_an_indefinite_matrix():
    from lssvm.kernels import Precomputed

    gram = np.diag([1.0, -5.0, 1.0])
    system = DualSystem(Precomputed(), gram, np.arange(3), C=1.0)
    assert (
        leave_folds_out(system, np.ones((3, 1)), 1.0, [np.array([0])], [np.empty((0, 3))]) is None
    )


class TestSearch:
    grid = GridSearch(C=[0.1, 1.0, 10.0], gamma=[0.05, 0.5, 5.0])

    def test_refinement_starts_from_the_approximate_choice(self):
        exact = objective(assign_folds(X, 5))
        result = CirculantSearch(self.grid, refine=7).run(exact, Space())
        chosen = GridSearch(self.grid.C, self.grid.gamma).run(CirculantObjective(exact), Space())
        assert (result.approximate.C, result.approximate.gamma) == (chosen.C, chosen.gamma)
        assert result.approximate.n_evaluations == 9
        assert result.n_evaluations == 7
        first = result.cv_results["params"][0]
        assert first == pytest.approx({"C": chosen.C, "gamma": chosen.gamma})
        exactly = exact.at(result.gamma).losses(np.array([result.C])).mean[0]
        assert result.loss == pytest.approx(exactly)
        assert result.loss <= -result.cv_results["mean_test_score"][0]

    def test_one_exact_evaluation_keeps_the_pair(self):
        result = CirculantSearch(self.grid, refine=1).run(objective(assign_folds(X, 5)), Space())
        kept = result.approximate
        assert (result.C, result.gamma) == pytest.approx((kept.C, kept.gamma))

    def test_without_refinement_nothing_exact_is_asked(self):
        exact = objective(assign_folds(X, 5))
        result = CirculantSearch(self.grid, refine=0).run(exact, Space())
        chosen = self.grid.run(CirculantObjective(exact), Space())
        assert (result.C, result.gamma, result.loss) == (chosen.C, chosen.gamma, chosen.loss)
        assert result.approximate is None

    def test_refinement_moves_to_the_floor_of_a_bowl(self):
        search = CirculantSearch(refine=30)
        best = search.run(objective(assign_folds(X, 5)), Space(gamma_start=0.3))
        path = PathSearch().run(objective(assign_folds(X, 5)), Space(gamma_start=0.3))
        assert best.loss <= 1.1 * path.loss

    def test_one_parameter_at_a_time(self):
        exact = objective(assign_folds(X, 5))
        result = CirculantSearch(self.grid, refine=5).run(exact, Space(C=1.0))
        assert set(result.cv_results["param_C"]) == {1.0}
        result = CirculantSearch(self.grid, refine=5).run(exact, Space(gamma=0.5, tune_gamma=False))
        assert set(result.cv_results["param_gamma"]) == {0.5}

    def test_an_interruption_gives_the_best_approximate_pair_so_far(self):
        def stop(event):
            if event["n_evaluations"] == 6:
                raise Stopped

        exact = objective(assign_folds(X, 5))
        result = CirculantSearch(self.grid).run(exact, Space(), on_event=stop)
        first = GridSearch(self.grid.C, self.grid.gamma[:2]).run(CirculantObjective(exact), Space())
        assert result.interrupted
        assert (result.C, result.gamma) == (first.C, first.gamma)

    @pytest.mark.parametrize("stop_at", [3, 10**9])
    def test_a_checkpoint_keeps_exact_losses_only(self, tmp_path, stop_at):
        """An interruption answers with an approximate loss, which is no part of the search."""

        def stop(event):
            refining = event["stage"] == "refine" and event["n_evaluations"] == 5
            if event["n_evaluations"] >= stop_at or refining:
                raise Stopped

        exact = objective(assign_folds(X, 5))
        # powers of 4: the refinement asks for the very numbers of the grid
        search = CirculantSearch(GridSearch(C=[0.25, 1.0, 4.0], gamma=[1.0]), refine=8)
        whole = search.run(exact, Space())
        search = replace(search, checkpoint=tmp_path / "search.jsonl")
        assert search.run(exact, Space(), on_event=stop).interrupted
        resumed = search.run(exact, Space())
        for name in ("param_C", "param_gamma", "mean_test_score"):
            np.testing.assert_array_equal(resumed.cv_results[name], whole.cv_results[name])

    def test_settings_are_checked(self):
        for refine in (-1, 1.5, "a"):
            with pytest.raises(InvalidInputError, match="refine"):
                CirculantSearch(refine=refine)
        with pytest.raises(InvalidInputError, match="instance such as"):
            CirculantSearch("grid")
        for settings in ({"levels": 7}, {"layout": "x"}, {"wrap": "x"}):
            with pytest.raises(InvalidInputError, match=next(iter(settings))):
                CirculantSearch(**settings)
        with pytest.raises(InvalidInputError, match="another search"):
            CirculantSearch(CirculantSearch())

    def test_weights_are_searched_exactly(self):
        weight = np.linspace(0.5, 1.5, 70)
        with pytest.warns(NumericalWarning, match="search is exact"):
            model = LSSVR("cv", gamma="cv", search="circulant").fit(X, Y[:, 0], weight)
        assert len(model.cv_results_["param_C"]) == 11 * 13  # the default grid

    def test_few_rows_are_searched_exactly_without_a_warning(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = LSSVR("cv", gamma="cv", search="circulant", cv=5).fit(X[:40], Y[:40, 0])
        assert model.tuning_result_.approximate is None

    @pytest.mark.parametrize("n", [40, 70])
    def test_other_kernels_are_refused_whatever_the_number_of_rows(self, n):
        with pytest.raises(InvalidInputError, match="Euclidean distance"):
            LSSVR("cv", kernel="linear", search="circulant", cv=5).fit(X[:n], Y[:n, 0])
        with pytest.raises(InvalidInputError, match="one gamma"):
            LSSVR("cv", gamma=np.ones(3), search="circulant", cv=5).fit(X[:n], Y[:n, 0])

    def test_fixed_size_models_are_refused(self):
        with pytest.raises(InvalidInputError, match="fixed-size"):
            FixedSizeLSSVR("cv", gamma="cv", search="circulant").fit(X, Y[:, 0])


@pytest.mark.parametrize("scoring", [None, "gcv", "press", "evidence"])
def test_estimators(scoring):
    rng = np.random.default_rng(0)
    rows = rng.uniform(-3, 3, (120, 1))
    y = np.sinc(rows[:, 0]) + 0.05 * rng.standard_normal(120)
    model = LSSVR("cv", gamma="cv", cv=5, search="circulant", scoring=scoring).fit(rows, y)
    assert np.mean((model.predict(rows) - np.sinc(rows[:, 0])) ** 2) < 0.001
    assert model.n_evaluations_ == 143 + model.tuning_result_.n_evaluations
    labels = (rows[:, 0] > 1).astype(int) + (rows[:, 0] > -1)
    classifier = LSSVC("cv", gamma="cv", cv=5, search="circulant", scoring=scoring)
    assert classifier.fit(rows, labels).score(rows, labels) > 0.95


def test_criteria_without_folds_need_no_kernel_matrix():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-3, 3, (1200, 2))
    y = np.sin(rows[:, 0]) + 0.1 * rng.standard_normal(1200)
    for scoring in ("gcv", "press", "evidence"):
        model = LSSVR(
            "cv",
            gamma="cv",
            scoring=scoring,
            search=CirculantSearch(refine=0),
            solver="circulant",
            memory_budget="4 MB",  # a kernel matrix takes 11.5 MB
        )
        with pytest.warns(NumericalWarning, match="too far from a lattice"):
            model.fit(rows, y)
        assert model.n_evaluations_ == 143
    chosen = LSSVR(
        10.0, gamma="cv", scoring="rk", search=CirculantSearch(refine=0), memory_budget="8 MB"
    ).fit(rows, y)
    assert chosen.n_evaluations_ == 13


@pytest.mark.parametrize("refine", [0, 3])
def test_models_can_be_pickled(refine):
    search = CirculantSearch(refine=refine)
    model = LSSVR("cv", gamma="cv", cv=5, search=search).fit(X, Y[:, 0])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert (again.tuning_result_.approximate is None) == (refine == 0)


def test_the_folds_of_a_splitter_calibrate_without_refinement():
    """Groups of nearly equal rows with random labels: left out one by one, they seem certain."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(40), 5)
    rows = rng.standard_normal((40, 2))[group] + 0.01 * rng.standard_normal((200, 2))
    labels = rng.integers(0, 2, 40)[group]
    splits = [(np.flatnonzero(group % 5 != v), np.flatnonzero(group % 5 == v)) for v in range(5)]
    search = CirculantSearch(GridSearch(C=[10.0], gamma=[0.1]), refine=0)
    model = LSSVC("cv", gamma="cv", cv=splits, search=search).fit(rows, labels)
    assert np.abs(model.predict_proba(rows)[:, 1] - 0.5).mean() < 0.15
    # 200 rows take 320 kB: where that does not fit, there is a model and no probability
    small = LSSVC("cv", gamma="cv", cv=splits, search=search, solver="cg", memory_budget=200_000)
    with pytest.raises(MemoryBudgetError):
        small.fit(rows, labels).predict_proba(rows)


def test_the_record_has_a_trace():
    model = LSSVR("cv", gamma="cv", cv=5, search="circulant").fit(X, Y[:, 0])
    record = model.tuning_result_
    for result in (record, record.approximate):
        trace = result.trace
        assert np.all(np.diff(trace["best_loss"]) <= 0)
        assert np.all(np.diff(trace["seconds"]) >= 0)
        assert trace["n_evaluations"][-1] == result.n_evaluations
    assert record.point is None
