"""Trees, leaves and parts against dense solves, refits and brute force."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from tests.oracles.local import dense_solution

from lssvm._core.errors import InvalidInputError
from lssvm.local import LeafEngine, Rows, Setting, fit_leaf, fit_local, grow_tree
from lssvm.local import model as local_model
from lssvm.solvers import solve_exact

rng = np.random.default_rng(0)
START = Setting(20.0, 0.4)
KINDS = ["sqeuclidean", "euclidean", "cityblock"]


def some(n=200, d=3, k=2):
    X = rng.normal(size=(n, d)) * [3, 1, 1]
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]])[:, :k]
    return Rows(X, Y + 0.1 * rng.normal(size=Y.shape), rng.uniform(0.5, 2.0, n))


class TestTree:
    def test_parts_are_equal_and_close(self):
        X = some(1000).X
        tree = grow_tree(X, 100)
        members = tree.rows_by_leaf(X)
        assert sorted(np.concatenate(members).tolist()) == list(range(1000))
        assert {len(m) for m in members} == {100}
        inside = np.mean([X[m].var(axis=0).sum() for m in members])
        assert inside < 0.5 * X.var(axis=0).sum()

    def test_first_cut_is_the_median_of_most_variance(self):
        X = some(1001).X
        tree = grow_tree(X, 600)
        _, vectors = np.linalg.eigh(np.cov(X.T))
        assert abs(vectors[:, -1] @ tree.directions[0]) == pytest.approx(1.0)
        assert sorted(len(m) for m in tree.rows_by_leaf(X)) == [500, 501]

    def test_another_tree_is_cut_differently(self):
        X = some(400).X
        first, second = grow_tree(X, 100), grow_tree(X, 100, random=np.random.default_rng(1))
        assert abs(first.directions[0] @ second.directions[0]) < 0.999
        assert max(len(m) for m in second.rows_by_leaf(X)) <= 101

    @pytest.mark.parametrize("random", [None, 1])
    def test_many_features_need_no_matrix_of_them(self, random, monkeypatch):
        X = rng.normal(size=(120, 900))
        X[:, 3] *= 100.0
        largest = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][0]
        monkeypatch.setattr(np.linalg, "eigh", None)
        trees = [grow_tree(X, 60, random=random and np.random.default_rng(i)) for i in range(2)]
        assert [len(m) for m in trees[0].rows_by_leaf(X)] == [60, 60]
        along = [abs(tree.directions[0] @ largest) for tree in trees]
        same = abs(trees[0].directions[0] @ trees[1].directions[0])
        if random is None:
            assert min(along) > 1.0 - 1e-9 and same == pytest.approx(1.0)
        else:  # a random one in proportion to the spread
            assert 0.5 < min(along) and same < 0.999

    def test_many_features_are_looked_at_in_fewer_rows_where_no_time_is_left(self, monkeypatch):
        X = np.random.default_rng(0).normal(size=(120, 900))
        X[:, 3] *= 100.0
        monkeypatch.setattr(local_model, "_WIDE_ENTRIES", 120 * 900)
        looked, iterated = [], local_model._iterated
        monkeypatch.setattr(
            local_model, "_iterated", lambda A: looked.append(len(A)) or iterated(A)
        )
        for stop in (False, True):
            tree = grow_tree(X, 60, stop=lambda stop=stop: stop)
            assert abs(tree.directions[0][3]) > 0.99
            assert [len(m) for m in tree.rows_by_leaf(X)] == [60, 60]
        assert looked == [120, 15]

    def test_the_order_of_many_features_changes_no_leaf(self):
        X, order = rng.normal(size=(90, 400)), rng.permutation(400)
        leaves = [grow_tree(Z, 30).route(Z) for Z in (X, X[:, order])]
        np.testing.assert_array_equal(*leaves)

    def test_equal_rows_stay_together(self):
        X = np.repeat(rng.integers(0, 3, (60, 2)), 5, axis=0).astype(float)
        tree = grow_tree(X, 40)
        place = tree.route(X)
        for row in np.unique(X, axis=0):
            assert len(set(place[(row == X).all(axis=1)])) == 1

    def test_each_tree_uses_some_of_very_many_equal_rows_and_what_any_knows_is_known(self):
        own = np.random.default_rng(3)
        X = np.repeat([[0.0], [1.0], [2.0]], 100, axis=0)
        rows = Rows(X, X + own.normal(size=X.shape), np.ones(300))
        models = [fit_local(rows, "euclidean", START, leaf_size=10, n_trees=q) for q in (1, 3)]
        shares = [np.isfinite(model.leave_one_out(300)).mean() for model in models]
        assert 0.0 < shares[0] < 0.3 and shares[1] > 1.5 * shares[0]
        each = np.array([tree.leave_one_out(300) for tree in models[1].partitions])
        known = np.isfinite(each).any(axis=0)
        found = models[1].leave_one_out(300)
        assert np.array_equal(np.isfinite(found), known)
        np.testing.assert_allclose(found[known], np.nanmean(each[:, known], axis=0))

    def test_directions_have_one_sign_whatever_library_found_them(self, monkeypatch):
        X = some(400).X
        tree = grow_tree(X, 50)
        eigh = np.linalg.eigh
        monkeypatch.setattr(np.linalg, "eigh", lambda A: (eigh(A)[0], -eigh(A)[1]))
        other = grow_tree(X, 50)
        np.testing.assert_array_equal(tree.directions, other.directions)
        np.testing.assert_array_equal(tree.route(X), other.route(X))

    def test_rows_that_no_cut_separates(self):
        tree = grow_tree(np.ones((50, 2)), 10)
        assert tree.n_leaves == 1 and tree.route(np.zeros((3, 2))).tolist() == [0, 0, 0]

    def test_far_rows_and_no_rows(self):
        tree = grow_tree(some(100).X, 30)
        far = tree.route(np.array([[1e12, 0, 0], [-1e12, 0, 0]]))
        assert far[0] != far[1]
        assert tree.route(np.empty((0, 3))).shape == (0,)


@pytest.mark.parametrize("kind", KINDS)
class TestLeaf:
    def test_dense_solve(self, kind):
        rows, new = some(60), some(20).X
        leaf = fit_leaf(rows, kind, START)
        K = np.exp(-START.gamma * cdist(rows.X, rows.X, kind))
        coef, intercept = dense_solution(K, rows.Y, 1 / (START.C * rows.weight))
        expected = np.exp(-START.gamma * cdist(new, rows.X, kind)) @ coef + intercept
        np.testing.assert_allclose(leaf.outputs(new, kind), expected, atol=1e-8)

    def test_left_out_are_refits(self, kind):
        rows = some(30)
        leaf = fit_leaf(rows, kind, START, tries=6)
        expected = [
            fit_leaf(rows.take(np.delete(np.arange(30), i)), kind, leaf.setting).outputs(
                rows.X[i : i + 1], kind
            )[0]
            for i in range(30)
        ]
        np.testing.assert_allclose(leaf.fit.left_out, expected, atol=1e-7)

    def test_search_lowers_the_error(self, kind):
        rows = some(80)
        errors = [fit_leaf(rows, kind, Setting(0.1, 2.0), tries=t).error for t in (1, 3, 8, 20)]
        assert errors == sorted(errors, reverse=True) and errors[-1] < 0.8 * errors[0]


@pytest.mark.parametrize("kind", KINDS)
class TestDrafts:
    """Models that are not kept: in single precision, where that is as good for a comparison."""

    def test_the_same_setting_is_chosen(self, kind):
        rows = some(300)
        exact = fit_leaf(rows, kind, Setting(0.1, 2.0), tries=12)
        draft = fit_leaf(rows, kind, Setting(0.1, 2.0), tries=12, draft=True)
        assert draft.setting == exact.setting != Setting(0.1, 2.0)
        assert draft.error == pytest.approx(exact.error, rel=1e-3)
        np.testing.assert_allclose(draft.fit.left_out, exact.fit.left_out, atol=2e-3)
        gap = np.abs(draft.outputs(rows.X, kind) - exact.outputs(rows.X, kind)).max()
        assert 1e-12 < gap < 2e-3

    def test_what_is_kept_is_in_double_precision(self, kind):
        rows = some(300)
        leaf = fit_leaf(rows, kind, Setting(0.1, 2.0), tries=8)
        K = np.exp(-leaf.setting.gamma * cdist(rows.X, rows.X, kind))
        coef, intercept = dense_solution(K, rows.Y, 1 / (leaf.setting.C * rows.weight))
        np.testing.assert_allclose(leaf.outputs(rows.X, kind), K @ coef + intercept, atol=1e-8)
        assert leaf.fit.coef.dtype == leaf.fit.left_out.dtype == np.float64

    @pytest.mark.parametrize(("n", "C"), [(60, 1.0), (300, 1e5)])
    def test_few_rows_and_ill_conditioned_ones_stay_in_double_precision(self, kind, n, C):
        rows = some(n)
        if n > 60:  # pairs that are nearly equal
            rows.X[1::2] = rows.X[::2] + 1e-6
        exact, draft = (fit_leaf(rows, kind, Setting(C, 0.5), draft=d) for d in (False, True))
        np.testing.assert_array_equal(draft.fit.coef, exact.fit.coef)
        assert draft.error == exact.error

    def test_large_C_is_well_conditioned_where_rows_lie_apart(self, kind):
        rows, start = some(300), Setting(1e5, 0.5)
        draft, kept = (fit_leaf(rows, kind, start, draft=d) for d in (True, False))
        K = np.exp(-start.gamma * cdist(rows.X, rows.X, kind))
        exact = solve_exact(K, rows.Y, 1.0 / (start.C * rows.weight))
        np.testing.assert_allclose(kept.fit.coef, exact.coef, rtol=1e-8, atol=1e-8)
        spread = (rows.Y - exact.left_out).std()
        np.testing.assert_allclose(draft.fit.left_out, exact.left_out, atol=2e-3 * spread)
        is_single = not np.allclose(draft.fit.left_out, exact.left_out, rtol=1e-9)
        assert is_single == (kind != "sqeuclidean")

    @pytest.mark.parametrize("draft", [False, True])
    def test_without_outputs_of_rows_left_out(self, kind, draft):
        rows = some(250)
        whole = fit_leaf(rows, kind, START, draft=draft)
        quick = fit_leaf(rows, kind, START, draft=draft, held_out=False)
        assert len(quick.fit.left_out) == 0 and np.isnan(quick.error)
        new = some(20).X
        np.testing.assert_allclose(
            quick.outputs(new, kind), whole.outputs(new, kind), atol=1e-3 if draft else 1e-9
        )


class TestNearbyErrors:
    @pytest.mark.parametrize("labelled", [True, False])
    def test_rows_that_are_left_out_together_are_no_neighbours(self, labelled):
        rows = some(60)
        if labelled:
            labels = np.arange(60) // 3
            rows = Rows(rows.X, rows.Y, rows.weight, labels)
        else:  # equal rows with different targets
            labels = np.arange(60) % 20
            rows = Rows(rows.X[labels], rows.Y, rows.weight)
        leaf = fit_leaf(rows, "euclidean", START)
        D, count = cdist(rows.X, rows.X), 7
        found = leaf.nearby_error(None, "euclidean", count)
        for i in range(60):
            others = np.flatnonzero(labels != labels[i])
            near = others[np.argsort(D[i, others], kind="stable")]
            last = D[i, near[count - 1]]
            if np.isclose(D[i, near[count]], last):
                continue  # a tie between neighbours
            squares = (rows.Y[near[:count]] - leaf.fit.left_out[near[:count]]) ** 2
            mean = leaf.squares.mean(axis=0)
            expected = (squares.sum(axis=0) + mean) / (count + 1.0)
            np.testing.assert_allclose(found[i], expected, atol=1e-10)
        new = leaf.nearby_error(rows.X, "euclidean", count)  # new rows may be near any
        assert np.abs(new - found).max() > 1e-6

    def test_a_group_of_all_rows_has_the_mean_error(self):
        rows = some(30)
        rows = Rows(rows.X, rows.Y, rows.weight, np.r_[np.zeros(29, dtype=int), 1])
        leaf = fit_leaf(rows, "euclidean", START)
        found = leaf.nearby_error(None, "euclidean", 5)
        mean = leaf.squares.mean(axis=0)
        np.testing.assert_allclose(found[0], (leaf.squares[29] + mean) / 2.0)


class TestParts:
    def test_every_tenth_part_tries_settings_for_all(self):
        rows = some(600)
        start = Setting(0.1, 2.0)
        leaves = fit_local(rows, "sqeuclidean", start, leaf_size=40, tries=8).leaves
        assert len(leaves) == 15
        tuned = [fit_leaf(leaves[p].rows, "sqeuclidean", start, tries=8).setting for p in (0, 10)]
        assert [leaves[p].setting for p in (0, 10)] == tuned
        rest = {leaf.setting for p, leaf in enumerate(leaves) if p not in (0, 10)}
        (shared,) = rest
        assert shared.C == pytest.approx(np.sqrt(tuned[0].C * tuned[1].C))
        assert shared.gamma == pytest.approx(np.sqrt(tuned[0].gamma * tuned[1].gamma))
        fixed = fit_local(rows, "sqeuclidean", start, leaf_size=40).leaves
        assert {leaf.setting for leaf in fixed} == {start}

    def test_drafts_of_parts(self):
        rows, new, start = some(700), some(50).X, Setting(0.5, 0.4)
        exact = fit_local(rows, "cityblock", start, leaf_size=300, tries=4)
        draft = fit_local(rows, "cityblock", start, leaf_size=300, tries=4, draft=True)
        quick = fit_local(rows, "cityblock", START, leaf_size=300, draft=True, held_out=False)
        assert [leaf.setting for leaf in draft.leaves] == [leaf.setting for leaf in exact.leaves]
        gap = np.abs(draft.outputs(new) - exact.outputs(new)).max()
        assert 1e-12 < gap < 2e-3
        assert all(len(leaf.fit.left_out) == 0 for leaf in quick.leaves)

    def test_one_part_is_the_exact_model(self):
        rows, new = some(60), some(10).X
        whole = fit_leaf(rows, "euclidean", START)
        model = fit_local(rows, "euclidean", START, leaf_size=60, n_trees=3)
        assert len(model.partitions) == 1
        np.testing.assert_allclose(model.outputs(new), whole.outputs(new, "euclidean"), atol=1e-12)
        np.testing.assert_allclose(model.leave_one_out(60), whole.fit.left_out, atol=1e-12)

    @pytest.mark.parametrize("threads", [1, 3])
    def test_every_row_by_the_model_of_its_part(self, threads):
        rows, new = some(300), some(2100).X
        model = fit_local(
            rows, "cityblock", START, leaf_size=80, tries=3, engine=LeafEngine(threads)
        )
        partition = model.partitions[0]
        place = partition.tree.route(new)
        assert set(place) == {0, 1, 2, 3}
        for p, leaf in enumerate(partition.leaves):
            expected = leaf.outputs(new[place == p], "cityblock")
            got = model.outputs(new, engine=LeafEngine(threads))[place == p]
            np.testing.assert_allclose(got, expected, atol=1e-12)

    def test_trees_are_averaged(self):
        rows, new = some(300), some(50).X
        model = fit_local(rows, "euclidean", START, leaf_size=100, n_trees=2)
        single = [
            np.vstack(
                [
                    c.leaves[p].outputs(x[None], "euclidean")
                    for x, p in zip(new, c.tree.route(new), strict=True)
                ]
            )
            for c in model.partitions
        ]
        np.testing.assert_allclose(model.outputs(new), np.mean(single, axis=0), atol=1e-12)
        assert np.isfinite(model.leave_one_out(300)).all()

    def test_left_out_outputs_are_honest(self):
        """On noise the leave-one-out error is no better than that of the mean."""
        rows = Rows(rng.normal(size=(400, 3)), rng.normal(size=(400, 1)), np.ones(400))
        model = fit_local(rows, "sqeuclidean", Setting(0.1, 0.3), leaf_size=100, tries=6)
        error = np.mean((rows.Y - model.leave_one_out(400)) ** 2)
        assert 0.97 * rows.Y.var() < error < 1.2 * rows.Y.var()

    def test_parts_of_one_class_and_of_equal_rows(self):
        X = np.vstack(
            [rng.normal(size=(50, 2)) + 20, rng.normal(size=(50, 2)), np.full((70, 2), 9.0)]
        )
        Y = np.r_[np.ones(50), np.sign(rng.normal(size=50)), -np.ones(70)][:, None]
        model = fit_local(Rows(X, Y, np.ones(170)), "euclidean", START, leaf_size=30, tries=4)
        assert np.all(model.outputs(X[:50]) > 0.5) and np.isfinite(model.outputs(X)).all()
        far = model.outputs(np.array([[1e9, -1e9]]))
        assert np.isfinite(far).all() and np.abs(far).max() < 5

    def test_local_error(self):
        X = rng.uniform(-1, 1, (400, 1))
        y = np.where(X > 0, 1.0, 0.05) * rng.normal(size=(400, 1))
        model = fit_local(Rows(X, y, np.ones(400)), "euclidean", Setting(0.1, 1.0), leaf_size=200)
        quiet, noisy = np.sqrt(model.squared_error(np.array([[-0.9], [0.9]]), 2)[:, 0])
        assert noisy > 3 * quiet

    def test_errors_of_several_trees_are_averaged(self):
        rows = some(300)
        use = {"leaf_size": 60, "n_trees": 3, "random": np.random.default_rng(0)}
        model = fit_local(rows, "euclidean", START, **use)
        alone = [replace(model, partitions=(one,)) for one in model.partitions]
        for nearby in (0, 20):
            found = model.squared_error(rows.X, 300, nearby)
            each = [one.squared_error(rows.X, 300, nearby) for one in alone]
            np.testing.assert_allclose(found, np.mean(each, axis=0))


class TestUpdates:
    def test_learning_is_fitting_with_the_same_tree(self):
        first, more = some(200), some(60)
        model = fit_local(first, "euclidean", START, leaf_size=100)
        learned = model.learn(more, engine=LeafEngine(2))
        both = first.joined(more)
        for p, leaf in enumerate(learned.leaves):
            rows = both.take(np.flatnonzero(model.partitions[0].tree.route(both.X) == p))
            expected = fit_leaf(rows, "euclidean", START).outputs(more.X, "euclidean")
            np.testing.assert_allclose(leaf.outputs(more.X, "euclidean"), expected, atol=1e-9)

    def test_a_row_is_not_forgotten_with_more_weight_than_it_has(self):
        rows = some(60)
        model = fit_local(rows, "euclidean", START, leaf_size=40)
        heavy = Rows(rows.X[:1], rows.Y[:1], 1.5 * rows.weight[:1])
        with pytest.raises(InvalidInputError, match="not among the rows of the model"):
            model.forget(heavy)
        model.forget(rows.take(np.array([0])))

    def test_forgetting_undoes_learning(self):
        first, more = some(200), some(10)
        model = fit_local(first, "cityblock", START, leaf_size=60)
        back = model.learn(more).forget(more, engine=LeafEngine(2))
        new = some(30).X
        np.testing.assert_allclose(back.outputs(new), model.outputs(new), atol=1e-9)
        with pytest.raises(InvalidInputError, match="not among"):
            back.forget(more)

    def test_grown_parts_are_split(self):
        first, more = some(100), some(400)
        model = fit_local(first, "euclidean", START, leaf_size=50).learn(more)
        partition = model.partitions[0]
        sizes = [len(leaf.rows.X) for leaf in partition.leaves]
        assert max(sizes) <= 75 and sum(sizes) == 500 and partition.tree.n_leaves == len(sizes)
        everything = first.joined(more)
        for p, rows in enumerate(partition.tree.rows_by_leaf(everything.X)):
            expected = fit_leaf(everything.take(rows), "euclidean", START)
            np.testing.assert_allclose(
                model.leaves[p].outputs(more.X, "euclidean"),
                expected.outputs(more.X, "euclidean"),
                atol=1e-8,
            )

    def test_an_emptied_part_becomes_one_with_its_neighbour(self):
        rows = some(80)
        model = fit_local(rows, "euclidean", START, leaf_size=10)
        partition = model.partitions[0]
        for part in (0, 3, len(partition.leaves) - 1):
            left = model.forget(rows.take(partition.rows[part])).partitions[0]
            assert left.tree.n_leaves == len(left.leaves) == len(partition.leaves) - 1
            others = [p for p in range(len(partition.leaves)) if p != part]
            for p, leaf in zip(others, left.leaves, strict=True):
                assert leaf is partition.leaves[p]
                assert set(left.tree.route(leaf.rows.X)) == {left.leaves.index(leaf)}
        half = np.concatenate(partition.rows[: len(partition.leaves) // 2])
        left = model.forget(rows.take(half))
        assert np.isfinite(left.outputs(rows.X)).all()
        assert sum(len(leaf.rows.X) for leaf in left.leaves) == len(rows.X) - len(half)
        with pytest.raises(InvalidInputError, match="would leave none"):
            model.forget(rows)

    @pytest.mark.parametrize("kind", [np.float32, np.float64])
    def test_rows_just_added_can_be_forgotten_after_a_split(self, kind):
        first, more = some(60), some(400)
        first = Rows(first.X.astype(kind), first.Y, first.weight)
        model = fit_local(first, "euclidean", START, leaf_size=30)
        grown = model.learn(more)
        assert len(grown.leaves) > 2 * len(model.leaves)
        left = grown.forget(more)
        assert sum(leaf.rows.weight.sum() for leaf in left.leaves) == pytest.approx(
            first.weight.sum()
        )

    def test_copies_are_forgotten_together_or_one_by_one(self):
        rows = some(20)
        row = rows.take(np.array([3]))
        row = Rows(row.X + 0.1, row.Y, np.ones(1))
        twice = Rows(row.X, row.Y, np.array([2.0]))
        model = fit_local(rows, "euclidean", START, leaf_size=30)
        for added, gone in (([row, row], [twice]), ([twice], [row, row])):
            now = model
            for one in added:
                now = now.learn(one)
            for one in gone:
                now = now.forget(one)
            np.testing.assert_allclose(now.outputs(rows.X), model.outputs(rows.X), atol=1e-9)


def test_rows_that_go_down_a_tree_level_by_level_reach_the_same_leaves(monkeypatch):
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(3000, 5)), rng.normal(size=(400, 5))
    tree = grow_tree(X, 10)
    assert 2 ** (tree.depth - 1) <= tree.n_leaves <= 2**tree.depth
    levels = tree.route(new)
    assert len(tree.thresholds) > 200
    np.testing.assert_array_equal(tree.route(new[7:8]), levels[7:8])
    monkeypatch.setattr("lssvm.local.model._MANY_NODES", np.inf)
    np.testing.assert_array_equal(tree.route(new), levels)
    assert grow_tree(X, 5000).depth == 0
