"""Scores of left-out rows of many binary problems: what they are, and what they take."""

import numpy as np
import pytest

from lssvm import LSSVC, FixedSizeLSSVC
from lssvm.backends.host import Host
from lssvm.fitting import fixed_solution
from lssvm.solvers.moments import Moments
from lssvm.uncertainty import posterior

rng = np.random.default_rng(0)
centres = 1.5 * rng.standard_normal((6, 3))
y = rng.integers(0, 6, 1500)
X = centres[y] + rng.standard_normal((1500, 3))


@pytest.mark.parametrize("multiclass", ["ovo", "ova"])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_scores_are_those_of_models_without_the_row(multiclass, class_weight):
    some = X[:60], y[:60]
    options = {"multiclass": multiclass, "class_weight": class_weight}
    model = FixedSizeLSSVC(60, C=3.0, gamma=0.3, **options).fit(*some)
    table = model.record_.calibration.out_of_fold(model.record_, Host(2**30, 1))
    sample = model.record_.calibration.sample
    for i in (0, 17, 42):
        out = next(j for j in range(60) if np.array_equal(some[0][j], sample.X[i]))
        left = np.delete(np.arange(60), out)
        weight = None
        if class_weight is not None:  # those of all rows, as the closed form has them
            count = np.bincount(some[1])
            weight = (60 / (6 * count))[some[1]][left]
        refit = LSSVC(3.0, gamma=0.3, multiclass=multiclass)
        refit.fit(some[0][left], some[1][left], sample_weight=weight)
        expected = refit.record_.outputs({"none": sample.X[[i]]})[0]
        np.testing.assert_allclose(table.scores[i], expected, atol=1e-6)


def test_pairs_share_what_they_can(monkeypatch):
    """The moments of classes are mapped once, and not every row is judged by every pair."""
    model = FixedSizeLSSVC(30, C=3.0, gamma=0.3, multiclass="ovo").fit(X, y)
    mapped, real = [], Moments.mapped
    monkeypatch.setattr(Moments, "mapped", lambda *args: mapped.append(1) or real(*args))
    table = model.record_.calibration.out_of_fold(model.record_, Host(2**30, 1))
    assert len(mapped) == 6
    assert 600 <= len(table.labels) < 900
    assert np.bincount(table.labels).min() >= 90
    p = model.predict_proba(X)
    assert np.mean(p.argmax(axis=1) == y) == pytest.approx(np.mean(p.max(axis=1)), abs=0.08)


def test_the_first_probabilities_take_less_work_than_the_fit(monkeypatch):
    """Both are counted in multiplications: those of systems of size m, and of rows of m numbers."""
    m, fit, asked = 100, [], []

    def counted(module, name, work, book):
        real = getattr(module, name)

        def called(*args, **options):
            book.append(work(*args))
            return real(*args, **options)

        monkeypatch.setattr(module, name, called)

    counted(fixed_solution, "solve_primal", lambda moments, *_: 10 * moments.size**3 / 3, fit)
    counted(posterior, "cholesky", lambda H, *_: len(H) ** 3 / 3, asked)
    counted(posterior, "solve_triangular", lambda L, B, *_: len(L) * B.size, asked)
    monkeypatch.setattr("numpy.linalg.eigh", None)  # no decomposition of a pair alone
    monkeypatch.setattr("scipy.linalg.eigh", None)
    model = FixedSizeLSSVC(m, C=3.0, gamma=0.3, multiclass="ovo").fit(X, y)
    assert fit == [10 * m**3 / 3] * 15 and not asked
    model.predict_proba(X[:3])
    assert len(fit) == 15  # nothing is fitted again
    assert asked.count(m**3 / 3) == 15  # one factorisation for a pair
    assert sum(asked) < sum(fit)
    again = len(asked)
    model.predict_proba(X[:3])
    assert len(asked) == again


@pytest.mark.parametrize("cls", [LSSVC, FixedSizeLSSVC])
def test_the_best_score_is_a_share_of_rows(cls):
    model = cls(C="cv", gamma=0.3, cv=7).fit(X[:250], (y[:250] > 2).astype(int))
    right = 250 * model.best_score_
    assert right == pytest.approx(round(right), abs=1e-10)
