"""The data, methods, timings and printed values of the study of the 2010 paper."""

import numpy as np
import pandas as pd
import pytest
from benchmarks.study import printed_2010 as printed
from benchmarks.study.data_2010 import Data2010, encode_2010, split_2010
from benchmarks.study.methods_2010 import (
    FIGURE_SIZES,
    TUNING_ROWS,
    Job,
    methods_2010,
    one_versus_one,
)
from benchmarks.study.printed_2010 import Figure
from benchmarks.study.timing_2010 import ROUTES, measure_cv, simple_cv

from benchmarks import figures_2010, fixed_size2010, prototypes_moc, tables_2010
from lssvm import FixedSizeLSSVC

KINDS = {
    name: Data2010(name, np.empty((0, 0)), np.empty(0), np.empty(0)).kind for name in printed.SIZES
}


def test_printed_sizes_are_those_of_the_tables():
    totals = {name: sizes.n_train + sizes.n_test for name, sizes in printed.SIZES.items()}
    assert totals == {
        "pid": 768,
        "spa": 4601,
        "mgt": 19020,
        "adu": 45222,
        "ftc": 581012,
        "opt": 5620,
        "lan": 6435,
        "pen": 10992,
        "let": 20000,
        "shu": 58000,
        "bho": 506,
        "ccs": 1030,
    }


@pytest.mark.parametrize(
    ("table", "sets"),
    [
        (printed.TABLE_8, printed.BINARY_SETS),
        (printed.TABLE_9, printed.BINARY_SETS),
        (printed.TABLE_10, printed.MULTICLASS_SETS),
        (printed.TABLE_11, printed.MULTICLASS_SETS),
        (printed.TABLE_13, printed.REGRESSION_SETS),
        *((rows, printed.REGRESSION_SETS) for rows in printed.TABLE_12.values()),
    ],
)
def test_printed_rows_have_a_figure_for_every_set(table, sets):
    assert all(len(figures) == len(sets) for figures in table.values())


def test_printed_accuracy_and_error_are_ordered_as_they_must_be():
    majority = printed.TABLE_10["Maj. rule"]
    for method, figures in printed.TABLE_10.items():
        assert all(f.mean >= m.mean for f, m in zip(figures, majority, strict=True)), method
    for rows in printed.TABLE_12.values():
        for squared, absolute, largest in zip(*rows.values(), strict=True):
            # Jensen: the square of the mean error is at most the mean square, up to the digits
            assert absolute.mean**2 <= squared.mean + 0.01 < largest.mean**2 + 0.01


@pytest.mark.parametrize("table", [printed.TABLE_3, printed.TABLE_4])
def test_printed_times_grow_with_folds(table):
    for routes in table.values():
        for times in routes.values():
            assert len(times) == len(printed.FOLDS)
            assert list(times) == sorted(times)


def test_every_printed_method_is_run():
    for sets, tables in (
        (printed.BINARY_SETS, (printed.TABLE_8, printed.TABLE_9)),
        (printed.MULTICLASS_SETS, (printed.TABLE_10, printed.TABLE_11)),
        (printed.REGRESSION_SETS, (printed.TABLE_12, printed.TABLE_13)),
    ):
        for name in sets:
            for table in tables:
                assert set(table) <= set(methods_2010(name, KINDS[name]))


def test_an_attribute_has_unit_variance_with_all_its_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "work": rng.choice(list("abcd"), 45222),
            "age": rng.normal(40.0, 9.0, 45222),
            "target": rng.choice(["yes", "no"], 45222),
        }
    )
    part = split_2010(encode_2010(frame, "adu"), 0)
    variance = part.X_train.var(axis=0)
    np.testing.assert_allclose([variance[:4].sum(), variance[4]], 1.0)
    assert np.ptp(np.ptp(part.X_train[:, :4], axis=0)) < 1e-12  # one scale for all four


def test_categories_become_columns_and_unknown_rows_go():
    frame = pd.DataFrame(
        {
            "work": ["b", "a", "?", "b"],
            "age": [30, 20, 40, 50],
            "target": ["yes", "no", "yes", "yes"],
            "split": ["train"] * 4,
        }
    )
    data = encode_2010(frame, "adu")
    np.testing.assert_array_equal(data.X, [[0, 1, 30], [1, 0, 20], [0, 1, 50]])
    np.testing.assert_array_equal(data.y, [1, 0, 1])
    np.testing.assert_array_equal(data.attribute, [0, 0, 1])


def test_covertype_is_class_two_against_the_rest():
    frame = pd.DataFrame({"x0": [1, 2, 3], "target": [1, 2, 7]})
    np.testing.assert_array_equal(encode_2010(frame, "ftc").y, [0, 1, 0])


def make_set(name, d=3):
    rng = np.random.default_rng(1)
    n = printed.SIZES[name].n_train + printed.SIZES[name].n_test
    X = rng.normal(3.0, 5.0, (n, d))
    score = np.sin(X[:, 0]) + 0.3 * X[:, 1]
    y = score if name == "bho" else (score > 0.9).astype(np.int64)
    return Data2010(name, X, y, np.arange(d))


def test_split_standardises_inputs_and_the_target_of_a_regression():
    data = make_set("bho")
    part = split_2010(data, 2)
    assert (len(part.y_train), len(part.y_test)) == (338, 168)
    np.testing.assert_allclose(part.X_train.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(part.X_train.std(axis=0), 1.0)
    np.testing.assert_allclose([part.y_train.mean(), part.y_train.std()], [0.0, 1.0], atol=1e-12)
    both = np.concatenate([part.y_train, part.y_test])
    np.testing.assert_allclose(  # every row is there once
        np.sort((both - both.mean()) / both.std()),
        np.sort((data.y - data.y.mean()) / data.y.std()),
    )
    assert not np.array_equal(part.y_train, split_2010(data, 3).y_train)
    np.testing.assert_array_equal(part.y_train, split_2010(data, 2).y_train)


def test_classes_are_not_standardised():
    assert set(split_2010(make_set("pid"), 0).y_train) == {0, 1}


def job(kind, n=150, m=20):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    score = X[:, 0] + 0.5 * np.sin(2 * X[:, 1])
    if kind == "regression":
        return Job(X, score, m, 0)
    cuts = [0.0] if kind == "binary" else [-0.6, 0.6]
    return Job(X, np.digitize(score, cuts), m, 0)


@pytest.mark.parametrize("name", ["pid", "opt", "bho", "adu"])
def test_every_method_learns(name):
    kind = KINDS[name]
    whole = job(kind, n=160)
    part = Job(whole.X[:60], whole.y[:60], 20, 0)
    known = set(methods_2010("pid", "binary")) if name == "adu" else {"Maj. rule"}
    for method, train in methods_2010(name, kind).items():
        if "m=" in method or method in known:
            continue
        trained = train(part)
        predictions = trained.model.predict(whole.X[60:])
        if kind == "regression":
            assert np.median(np.abs(predictions - whole.y[60:])) < 0.1, method
        else:
            floor = 0.85 if kind == "binary" else 0.75
            floor = 0.5 if method.startswith("Lin FS-LSSVM (MOC)") else floor
            assert np.mean(predictions == whole.y[60:]) > floor, method


def test_prototypes_are_as_many_as_asked_for():
    found = methods_2010("spa", "binary")["RBF FS-LSSVM, m=25"](job("binary"))
    assert found.record["n_prototypes"] == len(found.model.prototypes_) == 25
    assert found.record["C"] == found.model.C_
    assert max(FIGURE_SIZES) <= printed.SIZES["spa"].n_train


def test_many_pairs_take_their_parameters_from_minimum_output_coding(monkeypatch):
    few = one_versus_one(job("multiclass"))
    assert few.record["C"] == "per pair"
    monkeypatch.setattr("benchmarks.study.methods_2010.FEW_PAIRS", 2)
    many = one_versus_one(job("multiclass"))
    assert many.record["C"] == many.model.C_
    assert many.model.dual_coef_.shape[1] == 3


def test_an_infeasible_nu_is_halved():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [200, 6])
    X = rng.normal(size=(206, 2)) + 4.0 * y[:, None]
    found = methods_2010("pid", "binary")["RBF nu-SVC"](Job(X, y, 5, 0))
    assert found.model.nu <= 2 * 6 / 206
    assert found.record["fit_rows"] == 206 <= TUNING_ROWS


def test_a_moved_threshold_helps_where_classes_have_different_shapes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = np.where(y == 1, rng.exponential(4.0, 600) + 0.5, 0.3 * rng.normal(size=600))[:, None]
    part = Job(X[:300], y[:300], 20, 0)
    plain = methods_2010("pid", "binary")["Lin FS-LSSVM"](part).model.predict(X[300:])
    found = methods_2010("pid", "binary")["Lin FS-LSSVM, threshold"](part)
    moved = np.mean(found.model.predict(X[300:]) == y[300:])
    assert np.isfinite(found.model.threshold_).all()
    assert moved > 0.95 and moved >= np.mean(plain == y[300:])


def test_simple_and_fast_cross_validation_agree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=120)
    folds = np.array_split(rng.permutation(120), 7)
    arguments = (X, y, X[:15], folds, 10.0, 0.3)
    expected = measure_cv("simple", X, y, 15, 7, 3)["loss"]
    for route, cross_validate in ROUTES.items():
        assert cross_validate(*arguments) == pytest.approx(simple_cv(*arguments), rel=1e-8)
        assert measure_cv(route, X, y, 15, 7, 3)["loss"] == pytest.approx(expected, rel=1e-8)


def test_verdicts():
    figure = Figure(90.0, 0.5)
    assert tables_2010.verdict(90.1, figure) == "better by 0.10"
    assert tables_2010.verdict(89.6, figure) == "within the printed std (-0.40)"
    assert tables_2010.verdict(89.4, figure) == "**short by 0.60**, std 0.50"
    assert tables_2010.verdict(89.4, figure, lower_is_better=True).startswith("better")


def test_a_run_is_resumed_and_makes_tables_and_a_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(fixed_size2010, "load_2010", lambda folder, name: make_set(name))
    out = tmp_path / "results.jsonl"
    methods = "RBF FS-LSSVM;RBF FS-LSSVM, random;RBF FS-LSSVM, m=25;RBF FS-LSSVM, m=10"
    arguments = ["--data", ".", "--sets", "bho", "--methods", methods, "--out", str(out)]
    fixed_size2010.main([*arguments, "--randomisations", "1"])
    fixed_size2010.main([*arguments, "--randomisations", "2"])
    results = tables_2010.records.read(out)
    assert len(results) == 8
    assert sum("method" in line for line in out.read_text().splitlines()) == 8
    table = tmp_path / "table.md"
    tables_2010.main(["--results", str(out), "--out", str(table)])
    mean = np.mean([results["bho", r, "RBF FS-LSSVM"]["L2"] for r in range(2)])
    assert f"| Entropy | {mean:.4f} |" in table.read_text()
    sizes = [m for m, _ in figures_2010.curve(results, "bho")]
    assert sizes == [10, 25]
    pytest.importorskip("matplotlib")
    figures_2010.main(["--results", str(out), "--out", str(tmp_path)])
    boxes = figures_2010.draw_selection(results).axes[0]
    assert any(np.allclose(line.get_ydata(), mean) for line in boxes.lines)  # median of two runs
    for number in range(1, 5):
        assert (tmp_path / f"figure{number}_2010.png").stat().st_size > 1000


def test_accuracy_against_the_number_of_prototypes(tmp_path):
    line = {"C": 1.0, "gamma": 0.1}
    moc = {
        ("lan", r, f"MOC, m={m}"): line | {"accuracy": 88.0 + r + m / 330, "m": m}
        for r in range(2)
        for m in (330, 660)
    }
    moc["lan", 0, prototypes_moc.ALL_ROWS] = line | {"accuracy": 91.5, "m": 4290}
    svc = {("lan", r, "RBF C-SVC (1vs1)"): {"accuracy": 91.0} for r in range(3)}
    text = prototypes_moc.table(moc, svc)
    assert "| lan | MOC | 330 | 89.50 ± 0.71 (2) | 91.83 ± 0.43 |" in text
    assert "| lan | MOC | 660 | 90.50 ± 0.71 (2) |  |" in text
    assert "| lan | MOC, all rows | 4,290 | 91.50 (1) |  |" in text
    assert "| lan | RBF C-SVC (1vs1) |  | 91.00 ± 0.00 (3) | 92.14 ± 0.45 |" in text
    part = split_2010(make_set("pid"), 0)
    found = prototypes_moc.fit_and_test(FixedSizeLSSVC(30, C=2.0, gamma=0.3), part)
    assert 50 < found["accuracy"] <= 100 and (found["C"], found["gamma"]) == (2.0, 0.3)
