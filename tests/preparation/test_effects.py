"""Effects of levels: the equations of the mixed model, estimated variances, rows out of fold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import KFold
from tests.oracles import preparation as oracle

from lssvm._core.errors import InvalidInputError
from lssvm.data import effects
from lssvm.data.effects import MixedMoments
from lssvm.data.preparation import PreparedTable
from lssvm.preparation import TablePreparation

ESTIMATION = {
    "first": effects.FIRST_RATIO,
    "steps": effects.STEPS,
    "limits": effects.RATIOS,
    "ridge": effects.RIDGE,
}


def jobs(n=240, seed=0):
    """Two categories that depend on each other, and a number that depends on one of them."""
    rng = np.random.default_rng(seed)
    job = rng.integers(0, 9, n)
    town = np.where(rng.uniform(size=n) < 0.5, job, rng.integers(0, 12, n))
    x = rng.normal(size=n) + 0.3 * job
    y = x + np.sin(2.0 * job) + 0.5 * np.cos(3.0 * town) + 0.5 * rng.normal(size=n)
    return {"job": [f"j{i}" for i in job], "town": [f"t{i}" for i in town], "x": x}, y


def effects_of(preparation, Z):
    """Return the features that are effects."""
    names = preparation.get_feature_names_out().tolist()
    return Z[:, [i for i, name in enumerate(names) if ":effect" in name]]


def standardised(x):
    return ((x - x.mean()) / x.std())[:, None]


def test_effects_solve_the_mixed_model_equations():
    table, y = jobs()
    columns, n = [table["job"], table["town"]], len(y)
    names = [(j, level) for j, column in enumerate(columns) for level in sorted(set(column))]
    D = np.array([[columns[j][i] == level for j, level in names] for i in range(n)], dtype=float)
    features = np.random.default_rng(1).normal(size=(n, 3))
    F = np.column_stack([np.ones(n), features])
    Y = np.column_stack([y, -2.0 * y])
    moments = MixedMoments.of(F, csr_array(D), np.ones(n), Y)
    column = [j for j, _ in names]
    ratios = np.array([[0.5, 7.0], [20.0, 1.0]])
    found = moments.solve(ratios[column], np.zeros((4 + len(names), 2)))[4:]
    for k in range(2):
        by_column, _ = oracle.mixed_model(features, columns, Y[:, k], ratios[:, k], effects.RIDGE)
        expected = [by_column[j][level] for j, level in names]
        np.testing.assert_allclose(found[:, k], expected, atol=1e-8)


def test_rows_have_the_effects_of_a_refit_on_the_other_folds():
    table, y = jobs()
    fold = np.arange(len(y)) % 3
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    preparation = TablePreparation(cv=splits)
    Z = effects_of(preparation, preparation.fit_transform(table, y))
    x = standardised(table["x"])
    for f in range(3):
        others = fold != f
        columns = [np.array(table[name])[others].tolist() for name in ("job", "town")]
        expected = oracle.mixed_effects(x[others], columns, y[others], **ESTIMATION)
        for j, name in enumerate(("job", "town")):
            rows = [expected[j][table[name][i]] for i in np.flatnonzero(fold == f)]
            np.testing.assert_allclose(Z[fold == f, j], rows, atol=1e-7)
    expected = oracle.mixed_effects(x, [table["job"], table["town"]], y, **ESTIMATION)
    new = effects_of(preparation, preparation.transform(table))
    np.testing.assert_allclose(new[:, 0], [expected[0][job] for job in table["job"]], atol=1e-7)


def test_effects_are_those_of_a_level_when_the_rest_is_equal():
    table, y = jobs(2000)
    preparation = TablePreparation().fit(table, y)
    Z = effects_of(preparation, preparation.transform(table))
    true = np.sin(2.0 * np.array([int(job[1:]) for job in table["job"]]))
    assert np.corrcoef(Z[:, 0], true)[0, 1] > 0.97
    means = {job: y[np.array(table["job"]) == job].mean() for job in set(table["job"])}
    assert np.corrcoef([means[job] for job in table["job"]], true)[0, 1] < 0.9


def test_no_row_sees_its_own_target():
    table, y = jobs(90)
    preparation = TablePreparation()
    Z = preparation.fit_transform(table, y)
    assert effects_of(preparation, Z).shape == (90, 2)
    for i in range(0, 90, 7):
        other = y.copy()
        other[i] += 100.0
        moved = preparation.fit_transform(table, other)
        np.testing.assert_allclose(moved[i], Z[i], atol=1e-7)
        assert np.abs(moved - Z).max() > 0.01  # it is seen by others


def test_noise_does_not_predict_its_target():
    correlations = []
    for seed in range(30):
        table, y = jobs(120, seed)
        noise = np.random.default_rng(seed).normal(size=len(y))
        preparation = TablePreparation()
        Z = effects_of(preparation, preparation.fit_transform(table, noise))
        correlations += [np.mean(Z[:, j] * noise) for j in range(2)]
    # Rows of a fold are encoded by the others, whose targets are on the other side of the mean.
    assert -0.25 < np.mean(correlations) < 0.02
    assert np.mean(np.abs(correlations)) < 0.2


def test_names_and_the_columns_that_have_effects():
    table, y = jobs()
    table |= {"few": ["u", "v", "w"] * 80, "many": [f"m{i % 60}" for i in range(240)]}
    preparation = TablePreparation().fit(table, y)
    names = preparation.get_feature_names_out().tolist()
    assert [n for n in names if ":" in n] == ["job:effect", "town:effect", "many:target"]
    done = dict(zip(preparation.report_["column"], preparation.report_["done"], strict=True))
    assert done["job"] == "indicators and effects, 10 features"
    assert preparation.prepared_.encoded_by_target == ["job", "town", "many"]
    labels = np.digitize(y, [0.0, 2.0])
    classes = TablePreparation(drop=["town"]).fit(table, labels).get_feature_names_out()
    assert [n for n in classes if ":effect" in n] == ["job:effect=1", "job:effect=2"]
    levels = sorted(set(table["job"]))
    for options, targets in (
        ({"effects": None}, y),
        ({"effects": 13}, y),
        ({"ordered": {"job": levels, "town": sorted(set(table["town"]))}}, y),
        ({}, np.arange(240) % 7),
        ({}, None),
    ):
        names = TablePreparation(**options).fit(table, targets).get_feature_names_out()
        assert not [n for n in names if ":effect" in n]
    with pytest.raises(InvalidInputError, match="effects=1 is not usable"):
        TablePreparation(effects=1).fit(table, y)


def test_levels_that_are_missing_or_unseen():
    table, y = jobs()
    table["job"] = [None if job == "j3" else job for job in table["job"]]
    preparation = TablePreparation().fit(table, y)
    rows = {"job": ["j0", None, "new"], "town": ["t0"] * 3, "x": [0.0] * 3}
    Z = effects_of(preparation, preparation.transform(rows))
    assert Z[1, 0] != 0.0
    assert Z[2, 0] == 0.0
    named = {**table, "job": [job or "j3" for job in table["job"]]}
    same = TablePreparation().fit(named, y)
    rows["job"][1] = "j3"
    np.testing.assert_allclose(effects_of(same, same.transform(rows)), Z, atol=1e-8)


def test_a_weight_of_2_is_the_row_twice_and_order_changes_nothing():
    table, y = jobs()
    rng = np.random.default_rng(4)
    weight = rng.integers(0, 3, len(y))
    twice = np.repeat(np.arange(len(y)), weight)
    some = {name: np.array(values)[twice] for name, values in table.items()}
    preparation = TablePreparation(rare=1)
    weighted = preparation.fit(table, y, sample_weight=weight).transform(table)
    repeated = preparation.fit(some, y[twice]).transform(table)
    np.testing.assert_allclose(weighted, repeated, atol=1e-8)
    order = rng.permutation(len(y))
    moved = {name: np.array(table[name])[order] for name in ("x", "town", "job")}
    Z = effects_of(preparation, preparation.fit_transform(table, y))
    again = effects_of(preparation, preparation.fit_transform(moved, y[order]))
    np.testing.assert_allclose(again[:, ::-1], Z[order], atol=1e-8)


def test_huge_targets_and_a_record():
    table, y = jobs()
    preparation = TablePreparation()
    Z = preparation.fit_transform(table, y)
    np.testing.assert_allclose(preparation.fit_transform(table, 1e150 * y), Z, atol=1e-8)
    again = PreparedTable.from_record(preparation.to_record())
    np.testing.assert_array_equal(again.transform(table), preparation.transform(table))


def test_rows_of_one_group_have_no_effects():
    table, y = jobs()
    preparation = TablePreparation()
    Z = preparation.fit_transform(table, y, groups=np.zeros(240))
    np.testing.assert_array_equal(effects_of(preparation, Z), 0.0)
    halves = TablePreparation(cv=KFold(2, shuffle=True, random_state=0))
    assert np.all(np.std(effects_of(halves, halves.fit_transform(table, y)), axis=0) > 0.5)
