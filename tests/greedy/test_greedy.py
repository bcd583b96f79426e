"""The greedy runs against the printed equations, solved densely."""

import numpy as np
import pytest
from tests.oracles.dual import rbf
from tests.oracles.greedy import bordered_solve, fsals_states, pursuit_states

from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError
from lssvm.greedy import Greedy, greedy_leave_one_out, greedy_paths
from lssvm.greedy.forward import support_factor
from lssvm.kernels import RBF, Linear
from lssvm.solvers import DualSystem

rng = np.random.default_rng(0)
n = 120
X = rng.normal(size=(n, 3))
y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=n)
K = rbf(X, X, 0.5)
ridge = np.full(n, 1 / 7.0)
system = DualSystem(RBF(0.5), X, X, 7.0)


def check_against(path, states):
    assert path.support.tolist() == states[-1]["P"]
    np.testing.assert_allclose(path.objective, [s["f"] for s in states], atol=1e-8)
    np.testing.assert_allclose(path.coef, states[-1]["alpha"], atol=1e-8)
    np.testing.assert_allclose(path.intercept, states[-1]["b"], atol=1e-8)


def check_every_size(path, states, factor):
    for state in states:
        coef, b = path.at(len(state["P"]), factor)
        np.testing.assert_allclose(coef, state["alpha"], atol=1e-8)
        np.testing.assert_allclose(b, state["b"], atol=1e-8)


class TestFullSearch:
    @pytest.mark.parametrize("prefit", [False, True])
    @pytest.mark.parametrize("bias", [True, False])
    def test_every_iteration_is_the_printed_one(self, prefit, bias):
        part = DualSystem(RBF(0.5), X, X, 7.0, bias=bias)
        (path,) = greedy_paths(part, y[:, None], Greedy(epsilon=0.3, prefit=prefit))
        states = fsals_states(K, y, ridge, 0.3, prefit, bias)
        check_against(path, states)
        check_every_size(path, states, support_factor(part, path.support))
        assert path.status == "epsilon" and 5 < len(states) < n
        rest = [np.setdiff1d(np.arange(n), s["P"]) for s in states]
        largest = [np.abs(s["r"][q]).max() for s, q in zip(states, rest, strict=True)]
        np.testing.assert_allclose(path.error, largest, atol=1e-8)
        assert path.error[-1] <= 0.3 < path.error[-2]

    def test_blocks_of_steps_do_not_change_the_path(self, monkeypatch):
        want = greedy_paths(system, y[:, None], Greedy(epsilon=0.1))[0]
        for hot, steps in ((3, 3), (20, 8), (1, 1)):
            monkeypatch.setattr("lssvm.greedy.forward._HOT", hot)
            monkeypatch.setattr("lssvm.greedy.forward._STEPS", steps)
            got = greedy_paths(system, y[:, None], Greedy(epsilon=0.1))[0]
            assert got.support.tolist() == want.support.tolist()
            np.testing.assert_allclose(got.objective, want.objective, atol=1e-9)

    def test_labels_with_ties(self):
        signs = np.where(y > 0, 1.0, -1.0)
        (path,) = greedy_paths(system, signs[:, None])
        r = -signs
        for size in range(1, len(path.support)):  # each choice is among the best, eq. (30)
            gain = r**2 / (np.diag(K) + ridge)
            gain[path.support[: size - 1]] = 0.0
            assert gain[path.support[size - 1]] >= gain.max() * (1 - 1e-8)
            P = path.support[:size]
            b, alpha, _ = bordered_solve(K, signs, ridge, P)
            r = K[:, P] @ alpha + b - signs

    def test_epsilon_zero_is_the_full_machine(self):
        (path,) = greedy_paths(system, y[:, None], Greedy(epsilon=0.0))
        b, alpha, _ = bordered_solve(K, y, ridge, np.arange(n))
        assert sorted(path.support) == list(range(n)) and path.status == "exhausted"
        np.testing.assert_allclose(path.coef, alpha[path.support], atol=1e-8)
        np.testing.assert_allclose(path.intercept, b, atol=1e-8)

    def test_objective_falls(self):
        for settings in (Greedy(0.0), Greedy(0.0, prefit=True), Greedy(0.05, candidates=10)):
            (path,) = greedy_paths(system, y[:, None], settings)
            assert np.all(np.diff(path.objective) <= 1e-12) and path.objective[-1] < -1.0

    def test_prefitting_gains_most_in_its_next_step(self):
        back, pre = (
            greedy_paths(system, y[:, None], Greedy(0.0, prefit=p, max_support=3))[0]
            for p in (False, True)
        )
        assert back.support[:2].tolist() == pre.support[:2].tolist()
        assert pre.objective[2] <= back.objective[2]

    def test_weights_are_ridges(self):
        weight = rng.uniform(0.5, 3.0, n)
        part = DualSystem(RBF(0.5), X, X, 7.0, np.sqrt(weight))
        for settings in (Greedy(0.2), Greedy(0.2, candidates=n)):
            (path,) = greedy_paths(part, y[:, None], settings)
            check_against(path, fsals_states(K, y, 1 / (7.0 * weight), 0.2))

    def test_a_small_budget_recomputes_columns(self):
        want = greedy_paths(system, y[:, None], Greedy(0.2))[0]
        m = len(want.support)
        tight = DualSystem(RBF(0.5), X, X, 7.0, budget=int(8 * n * (m + 2) / 0.4))
        one, two = greedy_paths(tight, np.column_stack([y, -y[::-1]]), Greedy(0.2))
        np.testing.assert_allclose(one.coef, want.coef, atol=1e-10)
        assert two.status in ("epsilon", "memory")
        tiny = DualSystem(RBF(0.5), X, X, 7.0, budget=int(8 * n * 6 / 0.4))
        (short,) = greedy_paths(tiny, y[:, None], Greedy(0.2))
        assert short.status == "memory" and len(short.support) == 6


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("candidates", [None, 20])
def test_leave_one_out_of_a_run(bias, candidates, monkeypatch):
    weight = rng.uniform(0.5, 2.0, n)
    part = DualSystem(RBF(0.5), X, X, 7.0, np.sqrt(weight), bias=bias)
    monkeypatch.setattr("lssvm.greedy.forward._PENDING", 16)
    settings = Greedy(0.3, candidates=candidates)
    for path in greedy_paths(part, np.column_stack([y, X[:, 1]]), settings, left_out=True):
        t = y if path.targets[0] in y else X[:, 1]
        want = greedy_leave_one_out(part, t, path, np.array([7.0]))[0]
        np.testing.assert_allclose(path.left_out, want, atol=1e-8)
    assert greedy_paths(part, y[:, None], settings)[0].left_out is None


class TestSampledSearch:
    @pytest.mark.parametrize("prefit", [False, True])
    @pytest.mark.parametrize("bias", [True, False])
    def test_all_rows_as_candidates_is_algorithm_1(self, prefit, bias):
        part = DualSystem(RBF(0.5), X, X, 7.0, bias=bias)
        settings = Greedy(epsilon=0.3, candidates=n, prefit=prefit)
        (path,) = greedy_paths(part, y[:, None], settings)
        states = fsals_states(K, y, ridge, 0.3, prefit, bias)
        check_against(path, states)
        assert path.error[-1] <= 0.3 < path.error[-2]

    def test_each_system_is_the_printed_one(self):
        (path,) = greedy_paths(system, y[:, None], Greedy(0.1, candidates=9), random_state=3)
        factor = support_factor(system, path.support)
        for size in range(1, len(path.support) + 1):
            b, alpha, _ = bordered_solve(K, y, ridge, path.support[:size])
            coef, intercept = path.at(size, factor)
            np.testing.assert_allclose(coef, alpha, atol=1e-8)
            np.testing.assert_allclose(intercept, b, atol=1e-8)
            np.testing.assert_allclose(
                path.objective[size - 1], -0.5 * alpha @ y[path.support[:size]], atol=1e-8
            )

    def test_seed_decides(self):
        one, two, three = (
            greedy_paths(system, y[:, None], Greedy(0.1, candidates=9), random_state=s)[0].support
            for s in (1, 1, 2)
        )
        assert one.tolist() == two.tolist() != three.tolist()

    def test_kept_columns_do_not_matter(self, monkeypatch):
        want = greedy_paths(system, y[:, None], Greedy(0.1, candidates=9))[0]
        monkeypatch.setattr("lssvm.greedy.forward._PENDING", 3)
        got = greedy_paths(system, y[:, None], Greedy(0.1, candidates=9))[0]
        tiny = DualSystem(RBF(0.5), X, X, 7.0, budget=8 * n * 4)
        least = greedy_paths(tiny, y[:, None], Greedy(0.1, candidates=9))[0]
        for other in (got, least):
            np.testing.assert_allclose(other.coef, want.coef, atol=1e-9)

    def test_epsilon_zero_takes_all(self):
        (path,) = greedy_paths(system, y[:, None], Greedy(0.0, candidates=5))
        assert sorted(path.support) == list(range(n)) and path.status == "exhausted"


class TestPursuit:
    @pytest.mark.parametrize("criterion", ["kmp", "sggp"])
    @pytest.mark.parametrize("prefit", [False, True])
    @pytest.mark.parametrize("bias", [False, True])
    @pytest.mark.parametrize("candidates", [None, n])
    def test_every_iteration_is_the_printed_one(self, criterion, prefit, bias, candidates):
        weight = rng.uniform(0.5, 2.0, n) if bias else np.ones(n)
        part = DualSystem(RBF(0.5), X, X, 7.0, np.sqrt(weight), bias=bias)
        settings = Greedy(0.0, criterion, candidates, prefit, max_support=12)
        (path,) = greedy_paths(part, y[:, None], settings)
        states = pursuit_states(K, y, 7.0, criterion, 12, prefit, bias, weight)
        check_against(path, states)
        check_every_size(path, states, path.factor)
        assert np.all(np.diff(path.objective) < 0)

    def test_without_room_for_the_matrix(self):
        settings = Greedy(0.0, "sggp", prefit=True, max_support=8)
        want = greedy_paths(system, y[:, None], settings)[0]
        tight = DualSystem(RBF(0.5), X, X, 7.0, budget=8 * n * n)
        np.testing.assert_allclose(greedy_paths(tight, y[:, None], settings)[0].coef, want.coef)

    def test_all_of_sggp_is_the_machine_itself(self):
        few = DualSystem(RBF(0.5), X[:20], X[:20], 7.0)
        (path,) = greedy_paths(few, y[:20, None], Greedy(0.0, "sggp"))
        b, alpha, _ = bordered_solve(K, y, ridge, np.arange(20))
        fitted = K[:20][:, path.support] @ path.coef + path.intercept
        np.testing.assert_allclose(fitted, K[:20, :20] @ alpha + b, atol=1e-6)

    @pytest.mark.parametrize("prefit", [False, True])
    @pytest.mark.parametrize("candidates", [None, 10])
    def test_functions_in_the_span_of_the_basis_are_set_aside(self, prefit, candidates):
        flat = DualSystem(RBF(1e-3), X, X, 1e6)  # numerically of low rank
        settings = Greedy(0.0, "sggp", candidates, prefit)
        (path,) = greedy_paths(flat, y[:, None], settings)
        assert path.status == "exhausted" and 5 < len(path.support) < 80
        assert np.all(np.isfinite(path.coef)) and np.all(np.diff(path.objective) <= 1e-9)
        assert len(path.error) == len(path.objective) == len(path.support)

    def test_stops_by_the_error_of_all_rows(self):
        (path,) = greedy_paths(system, y[:, None], Greedy(0.5, "kmp", candidates=20))
        residual = K[:, path.support] @ path.coef + path.intercept - y
        rest = np.setdiff1d(np.arange(n), path.support)
        assert path.status == "epsilon" and np.abs(residual[rest]).max() <= 0.5 < path.error[-2]


class TestStops:
    @pytest.mark.parametrize(
        "settings", [Greedy(0.0), Greedy(0.0, candidates=30), Greedy(0.0, "kmp")]
    )
    def test_held_out_rows_choose_the_size(self, settings):
        held = np.arange(n) % 4 == 0
        (path,) = greedy_paths(system, y[:, None], settings, held_out=held)
        assert not held[path.support].any()
        f = K[:, path.support] @ path.coef + path.intercept
        np.testing.assert_allclose(np.mean((f - y)[held] ** 2), path.held_out[-1], atol=1e-8)
        assert path.held_out[-1] == path.held_out.min() and len(path.support) < 90

    @pytest.mark.parametrize("settings", [{}, {"candidates": 30}, {"criterion": "kmp"}])
    def test_max_support(self, settings):
        (path,) = greedy_paths(system, y[:, None], Greedy(0.0, max_support=7, **settings))
        assert path.status == "max_support" and len(path.support) == 7

    def test_nothing_to_learn(self):
        for settings in (Greedy(0.5), Greedy(0.5, candidates=3), Greedy(0.5, "sggp")):
            (path,) = greedy_paths(system, np.full((n, 1), 0.2), settings)
            assert len(path.support) == 0 and path.status == "epsilon"


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        (Greedy(epsilon=-1.0), "epsilon"),
        (Greedy(epsilon=float("nan")), "epsilon"),
        (Greedy(criterion="omp"), "criterion"),
        (Greedy(candidates=0), "candidates"),
        (Greedy(max_support=2.5), "max_support"),
    ],
)
def test_bad_settings(settings, match):
    with pytest.raises(InvalidInputError, match=match):
        greedy_paths(system, y[:, None], settings)


def test_an_indefinite_kernel_is_refused():
    class Negative(Linear):
        def __call__(self, X, Z, out=None):
            return -(X @ Z.T)

        def diag(self, X):
            return -np.sum(X * X, axis=1)

    part = DualSystem(Negative(), X, X, 7.0)
    for settings in (Greedy(0.0), Greedy(0.0, candidates=50)):
        with pytest.raises(NotPositiveDefiniteError, match="positive definite"):
            greedy_paths(part, y[:, None], settings)
