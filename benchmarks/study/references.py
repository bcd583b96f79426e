"""The methods that LS-SVM is compared with, from scikit-learn.

Differences from [Suykens2002, section 3.4.2], beyond the software: the SVM has a fixed grid of
5 x 5 values and 5 folds, on at most `REFERENCE_TUNING_ROWS` rows, and is one-versus-one only;
CART with cost-complexity pruning stands in for C4.5 and a tree of depth one for oneR; QDA shrinks
its covariance matrices, which are singular on some sets, by a cross-validated amount; nearest
neighbours take categories as numbers.
"""

import warnings
from collections.abc import Callable
from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.study.bayes import MixedNaiveBayes
from benchmarks.study.discriminant import ShrunkenQDA
from benchmarks.study.task import Task, Trained

REFERENCE_TUNING_ROWS = 1000
SVM_C = (0.1, 1.0, 10.0, 100.0, 1000.0)
SVM_GAMMA_TIMES_D = (0.02, 0.1, 0.5, 2.0, 10.0)
LINEAR_SVM_C = (0.01, 0.1, 1.0, 10.0, 100.0)
QDA_SHRINKAGE = (1e-3, 1e-2, 1e-1, 0.5, 0.9)
PRUNING_ALPHAS = (0.0, 0.001, 0.003, 0.01, 0.03)
SVM_MAX_ITER = 100_000


def _tune(
    estimator: Any, grid: dict[str, Any], task: Task, rows: int = REFERENCE_TUNING_ROWS
) -> dict[str, Any]:
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        # an SVM stopped at SVM_MAX_ITER, a class with fewer than five rows
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="The least populated class")
        search = GridSearchCV(estimator, grid, cv=folds, refit=False)
        search.fit(task.X[:rows], task.y[:rows])
    return dict(search.best_params_)


def _svm(task: Task, kernel: str) -> Trained:
    machine = SVC(kernel=kernel, cache_size=500, max_iter=SVM_MAX_ITER)
    if kernel == "rbf":
        d = task.X.shape[1]
        grid = {"C": list(SVM_C), "gamma": [g / d for g in SVM_GAMMA_TIMES_D]}
    else:
        grid = {"C": list(LINEAR_SVM_C)}
    best = _tune(machine, grid, task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.set_params(**best).fit(task.X[: task.fit_rows], task.y[: task.fit_rows])
    return Trained(machine, best | {"n_support": int(machine.n_support_.sum())})


def _tree(task: Task) -> Trained:
    tree = DecisionTreeClassifier(min_samples_leaf=2, random_state=0)
    alpha = _tune(tree, {"ccp_alpha": list(PRUNING_ALPHAS)}, task)["ccp_alpha"]
    # the gain of a split that noise alone gives falls as 1 / rows
    alpha *= min(1.0, REFERENCE_TUNING_ROWS / len(task.y))
    return Trained(tree.set_params(ccp_alpha=alpha).fit(task.X, task.y), {"ccp_alpha": alpha})


def _qda(task: Task) -> Trained:
    model = ShrunkenQDA()
    best = _tune(model, {"shrinkage": list(QDA_SHRINKAGE)}, task, rows=len(task.y))
    return Trained(model.set_params(**best).fit(task.X, task.y), best)


def _logit(task: Task) -> Trained:
    model = LogisticRegression(C=1e4, max_iter=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # separable classes
        return Trained(model.fit(task.X, task.y))


def _plain(build: Callable[[Task], Any]) -> Callable[[Task], Trained]:
    def train(task: Task) -> Trained:
        return Trained(build(task).fit(task.X, task.y))

    return train


REFERENCES: dict[str, Callable[[Task], Trained]] = {
    "RBF SVM": lambda task: _svm(task, "rbf"),
    "Lin SVM": lambda task: _svm(task, "linear"),
    "LDA": _plain(lambda task: LinearDiscriminantAnalysis()),
    "QDA": _qda,
    "Logit": _logit,
    "CART": _tree,
    "Tree of depth 1": _plain(lambda task: DecisionTreeClassifier(max_depth=1, random_state=0)),
    "1-NN": _plain(lambda task: KNeighborsClassifier(1)),
    "10-NN": _plain(lambda task: KNeighborsClassifier(10)),
    "NB_k": _plain(lambda task: MixedNaiveBayes(task.categorical, "kernel")),
    "NB_n": _plain(lambda task: MixedNaiveBayes(task.categorical, "normal")),
    "Majority": _plain(lambda task: DummyClassifier(strategy="most_frequent")),
}
"""Name and training function of every reference method."""

PRINTED_AS: dict[str, str] = {
    "CART": "C4.5",
    "Tree of depth 1": "oneR",
    "1-NN": "IB1",
    "10-NN": "IB10",
}
"""Where the name in the printed tables differs; a multi-class SVM is printed with its coding."""
