"""Prototypes from clusters."""

import numpy as np

from lssvm.prototypes import KMeans, select_prototypes


def blobs(sizes, seed=0):
    rng = np.random.default_rng(seed)
    centres = 20.0 * np.arange(len(sizes))
    return np.concatenate([c + rng.standard_normal(s) for c, s in zip(centres, sizes, strict=True)])


def test_one_prototype_near_every_centre_heaviest_first():
    sizes = [50, 400, 120, 30]
    X = blobs(sizes)[:, None]
    chosen = select_prototypes(X, 4, KMeans(), random_state=0)
    np.testing.assert_allclose(X[chosen.indices, 0], [20.0, 40.0, 0.0, 60.0], atol=0.6)


def test_quantisation_error_is_below_that_of_chance():
    X = np.random.default_rng(0).standard_normal((2000, 2))

    def error(indices):
        return ((X[:, None] - X[indices]) ** 2).sum(axis=2).min(axis=1).mean()

    for seed in range(3):
        clustered = error(select_prototypes(X, 40, "kmeans", random_state=seed).indices)
        random = error(select_prototypes(X, 40, "random", random_state=seed).indices)
        assert clustered < 0.85 * random


def test_weights_draw_the_centres():
    X = np.array([[0.0], [1.0], [2.0]])
    weight = np.array([1.0, 1.0, 20.0])
    chosen = select_prototypes(X, 1, KMeans(), sample_weight=weight, random_state=0)
    assert chosen.indices.tolist() == [2]


def test_no_content_is_repeated_among_many_duplicates():
    rng = np.random.default_rng(0)
    X = np.append(np.zeros(500), rng.standard_normal(40))[:, None]
    y = np.append(np.tile([0, 1], 250), np.tile([0, 1], 20))
    for labels in (None, y):
        chosen = select_prototypes(X, 30, "kmeans", y=labels, random_state=0)
        assert np.unique(X[chosen.indices]).size == 30
