"""A global model of prototypes: against the formula, against refits, and through all that a model
for tables can do."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import lssvm
from lssvm import LSSVMClassifier, LSSVMRegressor
from lssvm._core.errors import InvalidInputError, NotPositiveDefiniteError
from lssvm.backends.host import Host
from lssvm.cli.predicting import far_row_detector
from lssvm.fitting import Configuration, Member, Problem, TableSettings, table_prototypes
from lssvm.fitting.table_prototypes import (
    fit_global,
    fit_prototypes,
    moments_of,
    number_of_prototypes,
    prototypes_of,
    rows_of,
    width_of_prototypes,
)
from lssvm.fitting.table_work import Candidate, Clock, Plan, Work
from lssvm.kernels import RBF, Laplacian, Polynomial
from lssvm.kernels.base import Expansion
from lssvm.kernels.metric import IDENTITY
from lssvm.local import LeafEngine, LocalModel, Rows, Setting
from lssvm.solvers.moments import Moments, accumulate
from lssvm.solvers.primal import solve_on_prototypes


def close(found: np.ndarray, wanted: np.ndarray, atol: float) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=atol)


def additive(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows whose target is a sum over columns: what parts learn again and again."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    f = np.sin(2 * X[:, 0]) + X[:, 1] + np.abs(X[:, 2]) - 0.8 + np.sign(X[:, 3])
    return X, f + rng.normal(size=n)


@pytest.fixture(scope="module")
def regressor() -> LSSVMRegressor:
    X, y = additive(4400, 0)
    model = LSSVMRegressor(leaf_size=500, kernel="laplacian", scaling="standardised", n_jobs=1)
    return model.fit(X, y)


def global_of(model: LSSVMRegressor | LSSVMClassifier) -> Member:
    (found,) = [m for m in model.record_.members if not m.in_leaves]
    return found


def leaves_of(model: LSSVMRegressor, member: Member) -> LocalModel:
    """Return the leaves of the rows that the prototypes are of: those under the same map."""
    (found,) = [m.local for m in model.record_.local_members if m.metric is member.metric]
    return found


def outputs_of(member: Member, X: np.ndarray) -> np.ndarray:
    return member.evaluate(X, Host())


@pytest.mark.parametrize("gamma", [0.5, 1e-3])
def test_solution_is_that_of_the_primal_problem(gamma: float) -> None:
    rng = np.random.default_rng(0)
    X, Y, s = rng.normal(size=(80, 3)), rng.normal(size=(80, 2)), rng.uniform(0.5, 2.0, 80)
    Z, C, kernel = X[:12], 7.0, RBF(gamma)
    K, G = kernel(X, Z), kernel(Z, Z)
    coef, intercept = solve_on_prototypes(Moments.of(K, Y, s), G, C)
    # The gradients of a'G a / 2 + C/2 sum s (y - K a - b)^2 are zero.
    error = Y - K @ coef - intercept
    close(G @ coef, C * K.T @ (s[:, None] * error), atol=1e-6)
    close(s @ error, np.zeros(2), atol=1e-9)


def test_shifted_moments_give_the_same_function() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=(60, 1))
    Z, kernel = X[:9], Laplacian(0.01)  # values near one: their mean is subtracted
    (shifted,) = moments_of(kernel, Rows(X, y, np.ones(60)), Z, None, 1)
    assert shifted.shift is not None
    plain = Moments.of(kernel(X, Z), y)
    outputs = [
        kernel(X, Z) @ coef + intercept
        for coef, intercept in (
            solve_on_prototypes(m, kernel(Z, Z), 10.0) for m in (shifted, plain)
        )
    ]
    close(*outputs, atol=1e-6)


def test_prototypes_are_used_where_they_help(regressor: LSSVMRegressor) -> None:
    X, y = additive(2000, 1)
    found = global_of(regressor)
    assert found.weight > 0.1
    assert "prototypes of all of them" in regressor.summary_
    assert "prototypes" in regressor.configurations_["stage"]
    alone = clone(regressor).set_params(n_prototypes=0).fit(*additive(4400, 0))
    assert not any(not m.in_leaves for m in alone.record_.members)
    assert regressor.score(X, y) > alone.score(X, y)
    assert regressor.best_score_ == pytest.approx(regressor.score(X, y), abs=0.03)


def test_held_out_outputs_are_those_of_refits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row's output is that of a model of the other folds: its target has not reached it."""
    seen = []

    def watched(work: Work, candidate: Candidate, parts: LocalModel, size: int, gamma: float):
        seen.append((work, *(found := fit_global(work, candidate, parts, size, gamma))))
        return found

    monkeypatch.setattr("lssvm.fitting.table_prototypes.fit_global", watched)
    X, y = additive(2600, 12)
    LSSVMRegressor(
        "fast",
        leaf_size=300,
        n_prototypes=150,
        kernel="laplacian",
        scaling="standardised",
        n_jobs=1,
    ).fit(X, y, sample_weight=np.random.default_rng(0).uniform(0.5, 2.0, len(X)))
    ((work, found, model, outputs),) = seen
    rows = work.problem.rows("standardised", found.metric)
    kernel, Z = model.kernel, model.basis
    assert np.array_equal(np.unique(work.folds), np.arange(5))
    for v in range(5):
        train, test = (rows.take(np.flatnonzero(at)) for at in (work.folds != v, work.folds == v))
        K, G, s = kernel(train.X, Z), kernel(Z, Z), train.weight[:, None]
        # The bordered normal equations, solved as they stand.
        ones = np.ones((len(K), 1))
        H = np.block([[K.T @ (s * K) + G / found.setting.C, K.T @ s], [(K.T @ s).T, s.sum()]])
        both = np.linalg.solve(H, np.column_stack([K, ones]).T @ (s * train.Y))
        close(outputs[work.folds == v], kernel(test.X, Z) @ both[:-1] + both[-1], atol=1e-6)
    first = work.folds == 0
    gap = (rows.Y - outputs)[first] ** 2
    assert found.error == pytest.approx(np.average(gap, axis=0, weights=rows.weight[first]).sum())


def test_coefficients_are_those_of_all_rows(regressor: LSSVMRegressor) -> None:
    found = global_of(regressor)
    kernel, Z, C = found.expansion.kernel, found.expansion.basis, found.expansion.C[0]
    rows, positions = rows_of(leaves_of(regressor, found))
    assert np.array_equal(np.sort(positions), np.arange(len(rows.X)))
    moments = Moments.of(kernel(rows.X, Z), rows.Y, rows.weight)
    coef, b = solve_on_prototypes(moments, kernel(Z, Z), C)
    close(kernel(rows.X, Z) @ coef + b, outputs_of(found, rows.X), atol=1e-6)


def test_learning_and_forgetting_are_exact(regressor: LSSVMRegressor) -> None:
    X, y = additive(60, 2)
    before = regressor.predict(X)
    model = deepcopy(regressor).partial_fit(X, y)
    found = global_of(model)
    assert model.record_.state.moments is not None
    assert model.record_.state.moments.n == 4460
    kernel, Z, C = found.expansion.kernel, found.expansion.basis, found.expansion.C[0]
    rows, _ = rows_of(leaves_of(model, found))
    assert len(rows.X) == 4460
    moments = Moments.of(kernel(rows.X, Z), rows.Y, rows.weight)
    coef, b = solve_on_prototypes(moments, kernel(Z, Z), C)
    close(kernel(rows.X, Z) @ coef + b, outputs_of(found, rows.X), atol=1e-6)
    assert np.abs(model.predict(X) - before).max() > 1e-3
    close(model.forget(X, y).predict(X), before, atol=1e-6)


def test_files_keep_them(regressor: LSSVMRegressor, tmp_path: Path) -> None:
    X, y = additive(50, 3)
    changed = deepcopy(regressor).partial_fit(X, y)
    for model in (regressor, changed):
        for keep in ("all", "prediction", "support"):
            path = tmp_path / f"{keep}.lssvm"
            lssvm.save(model, path, keep=keep)
            loaded = lssvm.load(path)
            close(loaded.predict(X), model.predict(X), atol=0.0)
            if keep == "all":
                again = loaded.partial_fit(X, y).predict(X)
                close(again, deepcopy(model).partial_fit(X, y).predict(X), atol=1e-6)
            elif keep == "prediction":
                close(loaded.predict_interval(X), model.predict_interval(X), atol=0.0)


def test_intervals_follow_the_parts(regressor: LSSVMRegressor) -> None:
    X, y = additive(2000, 4)
    interval = regressor.predict_interval(X, coverage=0.9)
    inside = np.mean((interval[:, 0] <= y) & (y <= interval[:, 1]))
    assert inside == pytest.approx(0.9, abs=0.03)
    assert np.ptp(interval[:, 1] - interval[:, 0]) > 0


def test_explanations_add_up(regressor: LSSVMRegressor) -> None:
    X, _ = additive(3, 5)
    found = regressor.explain(X, n_background=5)
    close(found.prediction.ravel(), regressor.predict(X), atol=1e-9)


def test_small_models_follow_the_parts(regressor: LSSVMRegressor) -> None:
    X, y = additive(1000, 6)
    small = regressor.compress(60)
    assert [m.model.n_basis for m in small.record_.members] == [60]
    assert small.score(X, y) > regressor.score(X, y) - 0.05


def test_parts_without_weight_stay_for_their_rows(regressor: LSSVMRegressor) -> None:
    """A stack may give prototypes all of the weight: what needs rows still has them."""
    X, y = additive(40, 7)
    fit = regressor.record_
    members = tuple(replace(m, weight=float(not m.in_leaves)) for m in fit.members)
    model = deepcopy(regressor)
    model._publish(replace(fit, members=members))
    found, features = global_of(model), model._inputs(X).features()
    values = model.record_.outputs(features) - model.record_.offset
    close(values, outputs_of(found, found.mapped(features)), atol=1e-12)
    assert np.isfinite(model.predict_interval(X)).all()
    assert np.isfinite(model.compress(20).predict(X)).all()
    assert np.isfinite(model.partial_fit(X, y).predict(X)).all()


def test_a_number_of_prototypes_may_be_asked_for() -> None:
    X, y = additive(2600, 8)
    model = LSSVMClassifier(
        "fast", leaf_size=300, kernel="laplacian", scaling="standardised", n_prototypes=300
    ).fit(X, np.where(y > 0, "high", "low"))
    assert global_of(model).model.n_basis == 300
    one = LSSVMRegressor(kernel="rbf", scaling="standardised", n_prototypes=300).fit(
        X[:200], y[:200]
    )
    assert "prototypes" not in one.configurations_["stage"]  # one exact model needs none beside it


@pytest.mark.parametrize("given", [-1, 2.5, "many", True])
def test_other_numbers_are_refused(given: object) -> None:
    with pytest.raises(InvalidInputError, match="n_prototypes"):
        LSSVMRegressor(n_prototypes=given).fit(np.eye(20), np.arange(20.0))


def test_there_are_none_where_time_is_short() -> None:
    X, y = additive(4400, 9)
    model = LSSVMRegressor(
        leaf_size=500, kernel="laplacian", scaling="standardised", n_jobs=1, time_limit=0.02
    ).fit(X, y)
    assert "prototypes" not in model.configurations_["stage"]


def test_there_are_none_on_an_engine_of_larger_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeafEngine, "speed", property(lambda self: 20.0))
    model = LSSVMRegressor(leaf_size=500, kernel="laplacian", scaling="standardised", n_jobs=1)
    model.fit(*additive(4400, 0))
    assert "prototypes" not in model.configurations_["stage"]


@pytest.fixture(scope="module")
def small() -> tuple[np.ndarray, np.ndarray, LSSVMRegressor]:
    X, y = additive(2600, 10)
    model = LSSVMRegressor(
        "fast",
        leaf_size=300,
        n_prototypes=150,
        kernel="laplacian",
        scaling="standardised",
        n_jobs=1,
    )
    return X, y, model.fit(X, y)


Small = tuple[np.ndarray, np.ndarray, LSSVMRegressor]


@pytest.mark.parametrize("first", [True, False])
def test_a_heavy_row_can_be_forgotten(small: Small, first: bool) -> None:
    """Sums with a weight of 1e20 have lost the other rows: they are made anew."""
    X, y, model = small
    changed = deepcopy(model) if first else deepcopy(model).partial_fit(X[:1] + 0.5, y[:1])
    before = changed.predict(X[:50])
    heavy = (X[:1] + 0.01, y[:1])
    changed.partial_fit(*heavy, sample_weight=[1e20]).forget(*heavy, sample_weight=[1e20])
    close(changed.predict(X[:50]), before, atol=1e-6)


def test_a_mean_of_kernel_values_may_differ_in_its_last_digit(small: Small) -> None:
    """Another machine, or another number of threads, may round it otherwise."""
    X, y, model = small
    wanted = deepcopy(model).partial_fit(X[:5] + 0.1, y[:5])
    fit = wanted.record_
    moments = fit.state.moments
    assert moments is not None
    assert moments.shift is not None
    other = moments.shifted(np.nextafter(moments.shift, 2.0))
    changed = deepcopy(wanted)
    changed._publish(replace(fit, state=replace(fit.state, moments=other)))
    for one in (wanted, changed):
        one.partial_fit(X[5:9] + 0.1, y[5:9])
    close(changed.predict(X[:50]), wanted.predict(X[:50]), atol=1e-9)


def test_copies_of_rows_can_be_forgotten_and_saved(small: Small, tmp_path: Path) -> None:
    X, y, model = small
    copies = (np.tile(X, (3, 1)), np.tile(y, 3))
    changed = clone(model).fit(*copies)
    changed.forget(np.tile(X, (2, 1)), np.tile(y, 2))
    moments = changed.record_.state.moments
    assert moments is not None
    assert moments.n == len(X)
    lssvm.save(changed, tmp_path / "m", keep="all")
    close(lssvm.load(tmp_path / "m").predict(X[:9]), changed.predict(X[:9]), atol=0.0)


def test_an_empty_fold_is_no_judge(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten groups, each in a fold by chance, may leave the first fold without a row."""
    X, y, model = small
    groups = np.arange(len(X)) % 10
    monkeypatch.setattr(Problem, "folds", lambda problem, n_folds, random: 1 + groups % 4)
    found = global_of(clone(model).fit(X, y, groups=groups))
    assert 0.0 < found.error < 1.0


def test_a_system_without_a_solution_is_an_error() -> None:
    moments = Moments.of(np.eye(2), np.ones((2, 1)))
    with pytest.raises(NotPositiveDefiniteError, match="2 prototypes is not positive definite"):
        solve_on_prototypes(moments, -np.eye(2), 1e-3)


def tampered(model: LSSVMRegressor, change: Callable[[Member], Member]) -> LSSVMRegressor:
    """Return the model with other members, as a file may describe them."""
    found, fit = deepcopy(model), model.record_
    found.record_ = replace(fit, members=tuple(change(m) for m in fit.members))
    return found


def with_sums(model: LSSVMRegressor, change: Callable[[Moments], Moments]) -> LSSVMRegressor:
    """Return the model with other moments, as a file may describe them."""
    found, fit = deepcopy(model), model.record_
    found.record_ = replace(fit, state=replace(fit.state, moments=change(fit.state.moments)))
    return found


def of_global(**changes: Any) -> Callable[[Member], Member]:
    return lambda m: m if m.in_leaves else replace(m, **changes)


def of_expansion(change: Callable[[Expansion], Expansion]) -> Callable[[Member], Member]:
    return lambda m: m if m.in_leaves else replace(m, model=change(m.expansion))


MEMBERS = [
    (lambda m: replace(m, weight=0.0), "no member with a weight"),
    (of_global(rounds=9), "prototypes have no leaves"),
    (of_global(metric=IDENTITY), "have another metric"),
    (of_global(error=float("nan")), "the error of prototypes is missing"),
    (of_global(error=-1.0), "error is out of range"),
    (of_global(outputs=np.arange(1)), "serves some outputs alone"),
    (of_expansion(lambda e: replace(e, kernel=Polynomial(gamma=0.1))), "kernel|leaves"),
    (of_expansion(lambda e: replace(e, coef=e.coef[1:])), "has shape"),
    (of_expansion(lambda e: replace(e, C=0.0 * e.C)), "C is out of range"),
]
SUMS = [
    (lambda s: replace(s, weight=0.0), "not sums of kernel values"),
    (lambda s: replace(s, border=1e200 * s.border), "not sums of kernel values"),
    (lambda s: replace(s, gram=1e200 * s.gram), "not sums of kernel values"),
    (lambda s: replace(s, shift=1e200 * s.shift), "shift is out of range"),
    (lambda s: replace(s, n=-1), "n is out of range"),
    (lambda s: s.prefix(9), "gram has shape"),
    (lambda s: s.outputs([]), "cross"),
]


@pytest.mark.parametrize(("change", "match"), [*MEMBERS, *SUMS])
def test_files_that_do_not_fit_together_are_refused(
    small: Small, tmp_path: Path, change: Callable[..., Any], match: str
) -> None:
    X, y, model = small
    changed = deepcopy(model).partial_fit(X[:2] + 0.1, y[:2])
    change_model = with_sums if (change, match) in SUMS else tampered
    lssvm.save(change_model(changed, change), tmp_path / "m", keep="all")
    with pytest.raises(lssvm.ModelFileError, match=match):
        lssvm.load(tmp_path / "m")


def all_weight(model: LSSVMRegressor, to_prototypes: bool) -> LSSVMRegressor:
    return tampered(model, lambda m: replace(m, weight=float(m.in_leaves != to_prototypes)))


def test_explanations_of_prototypes_alone_are_exact(small: Small) -> None:
    """Parts that stay for their rows alone are not sampled."""
    X, _, model = small
    found = all_weight(model, True).explain(X[:2], n_background=5, interactions=True)
    assert not np.any(found.errors)
    close(found.prediction.ravel(), all_weight(model, True).predict(X[:2]), atol=1e-9)


def test_rows_are_far_from_parts_whatever_prototypes_weigh(small: Small) -> None:
    X, _, model = small
    far = [far_row_detector(all_weight(model, one)) for one in (True, False)]
    wide = np.linspace(1.0, 3.0, 200)[:, None] * X[:200]
    assert 0 < far[0](wide).sum() < 200
    assert np.array_equal(far[0](wide), far[1](wide))


def test_many_threads_stay_within_the_memory_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []

    def watched(kernel: object, source: object, Z: np.ndarray, cells: list[slice], **how: int):
        taken.append(8 * len(Z) ** 2 * (len(cells) + 2 * how["threads"]))
        return accumulate(kernel, source, Z, cells, **how)

    monkeypatch.setattr("lssvm.fitting.table_prototypes.accumulate", watched)
    X, y = additive(2600, 11)
    LSSVMRegressor(
        "fast",
        n_prototypes=10_000,
        kernel="laplacian",
        scaling="standardised",
        memory_budget="8 MB",
        n_jobs=16,
    ).fit(X, y)
    assert 4e6 < max(taken) < 8e6


def test_prototypes_are_as_many_as_the_cost_allows() -> None:
    # 6,000 m^2 operations of moments and 14 systems of m^3 / 3 are half of the unit of cost.
    for n, wanted in ((3000, 0), (6000, 1289)):
        X = np.random.default_rng(0).normal(size=(n, 2))
        problem = Problem({"standardised": X}, X[:, :1], np.ones(n))
        work = Work(problem, TableSettings(), Clock(), None, np.arange(n) % 5, lambda event: None)
        assert number_of_prototypes(work) == wanted
        asked = replace(work, settings=TableSettings(n_prototypes=50))
        assert number_of_prototypes(asked) == 50


def test_prototypes_are_different_rows() -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(7, 2)), 20, axis=0)
    for size in (4, 7, 30):
        Z = prototypes_of(X, size, RBF(0.5), np.random.default_rng(1))
        assert len(np.unique(Z, axis=0)) == len(Z) == min(size, 7)


@pytest.mark.parametrize(
    ("noise", "cost", "used"),
    [
        (0.5, 1.0, True),
        (0.0, 1.0, False),  # nothing to gain
        (0.5, 1e3, False),  # not worth the cost
    ],
)
def test_prototypes_have_to_be_worth_their_cost(noise: float, cost: float, used: bool) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 2))
    problem = Problem({"standardised": X}, X[:, :1], np.ones(300))
    work = Work(problem, TableSettings(), Clock(), None, np.arange(300) % 5, lambda event: None)
    kind, rows = Configuration("standardised", "rbf"), np.arange(200, 300)
    outputs = X[200:, :1] + noise * random.normal(size=(100, 1))
    leaves = Candidate(kind, Setting(10.0, 0.5), 0.3, 0.0, outputs=outputs, rows=rows)
    plan = Plan([leaves], learned=np.arange(200))
    gain, gamma = width_of_prototypes(work, plan, leaves, 50, cost)
    assert (gamma is not None) == used
    assert (gain > 0.005) == (noise > 0)
    work = replace(work, settings=TableSettings(n_prototypes=50))  # who asks for some gets them
    assert width_of_prototypes(work, plan, leaves, 50, cost)[1] is not None


@pytest.mark.parametrize(
    ("gains", "tried", "width"),
    [
        ((0.02, 0.03, 0.011), 3, 0.25),  # the best of three
        ((0.004, 0.011, 0.012), 3, 1.0),  # another one may gain four times as much
        ((0.002, 0.9, 0.9), 1, None),  # no hope
        ((0.004, 0.005, 0.006), 3, None),
    ],
)
def test_the_width_of_the_largest_gain_is_taken(
    gains: tuple[float, ...], tried: int, width: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(0).normal(size=(300, 2))
    problem = Problem({"standardised": X}, X[:, :1], np.ones(300))
    work = Work(problem, TableSettings(), Clock(), None, np.arange(300) % 5, lambda event: None)
    kind, rows = Configuration("standardised", "rbf"), np.arange(200, 300)
    leaves = Candidate(kind, Setting(10.0, 0.5), 0.3, 0.0, outputs=X[200:, :1], rows=rows)
    losses = [1.0, *(1.0 - gain for gain in gains)]
    monkeypatch.setattr(table_prototypes, "mean_loss", lambda *given: losses.pop(0))
    cost = 0.01 / work.settings.gain  # what gains one per cent
    plan = Plan([leaves], learned=np.arange(200))
    gain, gamma = width_of_prototypes(work, plan, leaves, 50, cost)
    assert len(gains) - len(losses) == tried and gain == pytest.approx(max(gains[:tried]))
    assert gamma == (None if width is None else 0.5 * width)


@pytest.mark.parametrize("factor", [0.125, 0.25, 0.5, 1.0])
def test_widths_from_an_eighth_of_that_of_the_leaves_to_it_are_tried(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(0).normal(size=(200, 2))
    problem = Problem({"standardised": X}, np.sin(X[:, :1]), np.ones(200))
    work = Work(problem, TableSettings(), Clock(), None, np.arange(200) % 5, lambda event: None)
    candidate = Candidate(Configuration("standardised", "rbf"), Setting(10.0, 0.8), 0.1, 0.0)
    monkeypatch.setattr(
        table_prototypes,
        "held_out_error",
        lambda kernel, *given: abs(np.log(kernel.gamma / (0.8 * factor))),
    )
    block = SimpleNamespace(inputs=problem.inputs, Y=problem.Y, weight=problem.weight, start=0)
    all_rows = SimpleNamespace(blocks=lambda scalings: [block], sample=np.arange(200))
    chosen, model, _ = fit_prototypes(work, all_rows, candidate, 20)
    assert chosen.setting.gamma == model.kernel.gamma == pytest.approx(0.8 * factor)


def test_the_seconds_of_prototypes_are_those_of_their_step(regressor: LSSVMRegressor) -> None:
    tuning = regressor.record_.tuning
    (trial,) = [one for one in tuning.trials if one.stage == "prototypes"]
    (step,) = [one for one in tuning.steps if one.stage == "prototypes"]
    assert trial.seconds == pytest.approx(step.seconds, abs=0.05)
