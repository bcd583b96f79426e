"""Which code many classes get: that of the smaller error on rows left out."""

import numpy as np
import pytest

from lssvm import LSSVC, FixedSizeLSSVC
from lssvm.backends.host import Host
from lssvm.backends.rows import class_rows
from lssvm.codes import Coding
from lssvm.kernels.factory import KernelChoice
from lssvm.tasks import Classes
from lssvm.tuning.fixed_size import better_code

rng = np.random.default_rng(0)
K = 12


def _line(n):
    """Intervals of a line: each pair can be parted, one against all others cannot."""
    x = rng.uniform(0, K, n)
    return np.column_stack([x, rng.normal(size=n)]) / K, np.floor(x).astype(int)


def _rows(X, y, weight=None, **more):
    task = Classes.of(np.unique(y), multiclass="auto", **more)
    return class_rows(task, X, y, weight, Host(10**9, 1), by_class=True), task


@pytest.mark.parametrize("model", [FixedSizeLSSVC, LSSVC])
def test_pairs_where_one_against_all_fails(model):
    (X, y), (new, truth) = _line(600), _line(600)
    auto = model(C=100.0, kernel="linear").fit(X, y)
    assert auto.record_.task.code.name == "ovo"
    forced = model(C=100.0, kernel="linear", multiclass="ova").fit(X, y)
    assert auto.score(new, truth) > forced.score(new, truth) + 0.3


def test_one_against_all_where_it_is_as_good():
    y = np.arange(480) % K
    X = 6.0 * np.eye(K)[y] + 0.1 * rng.normal(size=(480, K))
    rows, task = _rows(X, y)
    assert better_code(rows, task, KernelChoice("rbf", "cv"), None) is task
    model = FixedSizeLSSVC(40).fit(X, y)
    assert model.record_.task.code.name == "ova"


def test_order_and_rare_classes_do_not_matter():
    X, y = _line(900)
    rare = np.concatenate([np.flatnonzero(y != 3), np.flatnonzero(y == 3)[:2]])
    X, y = X[rare], y[rare]
    weight = rng.uniform(0.5, 2.0, len(y))
    choice = KernelChoice("rbf", "scale")
    rows, task = _rows(X, y, weight, class_weight="balanced")
    shuffled = rng.permutation(len(y))
    again, _ = _rows(X[shuffled], y[shuffled], weight[shuffled], class_weight="balanced")
    code = better_code(rows, task, choice, 10.0).code.name
    assert code == better_code(again, task, choice, 10.0).code.name


def test_only_many_classes_and_no_name_leave_it_open():
    auto = Coding.of("auto")
    assert auto.is_open(K) and not auto.is_open(10) and not auto.is_open(61)
    assert not Coding.of("ova").is_open(K)
    X, y = _line(300)
    model = LSSVC(C=100.0, kernel="precomputed").fit(X @ X.T, y)
    assert model.record_.task.code.name == "ova"  # rows of a kernel matrix are not compared
