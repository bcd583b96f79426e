"""The methods of [DeBrabanter2010, section 8]: ours, and those of scikit-learn (LIBSVM).

Ours are tuned by ten-fold cross-validation on all training rows, with the printed number of
prototypes. Differences from the print: the default search is a line search over gamma with the
path of C inside ("csa" is the printed one). The binary problems of a code share prototypes and
gamma, and those of MOC also C; the print is silent on that, but tunes every binary problem by
itself. The method called "own" gives every pair of classes prototypes, C and gamma of its own, and
those called "threshold" move the thresholds by cross-validation, and those called "ard" give every
feature a gamma of its own. "penalised" has the bias of eq. (7) as printed, "separate" a (C, gamma)
for every binary problem, "counting" minimum output codes by binary counting.

The reference machines have a fixed grid and five folds on at most `TUNING_ROWS` rows, and are then
trained once on all rows, or on the first `SVM_ROWS` (the rows are in random order), with at most
`SVM_MAX_ITER` iterations. The binary linear SVM is LIBLINEAR's (squared hinge loss).
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, NuSVR

from benchmarks.study.printed_2010 import SIZES
from benchmarks.study.task import Trained
from lssvm._core.errors import NumericalWarning
from lssvm.codes import Coding
from lssvm.tuning import PathSearch

TUNING_ROWS = 1000
SVM_ROWS = 10_000
GAMMA_TIMES_D = (0.02, 0.1, 0.5, 2.0, 10.0)
SVM_C = (0.1, 1.0, 10.0, 100.0, 1000.0)
LINEAR_C = (0.001, 0.01, 0.1, 1.0, 10.0)
NU = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
NU_RARE = (0.0001, 0.0003, 0.001)  # where a class has very few rows
SVR_EPSILON = (0.02, 0.1, 0.3)
SVR_C = (1.0, 10.0, 100.0)
SVR_NU = (0.2, 0.5, 0.8)
SVM_MAX_ITER = 100_000
SEARCHES = ("csa", "grid")
SEARCH_SETS = ("pid", "spa", "bho", "ccs")
FIGURE_SIZES = (10, 25, 50, 100, 200, 300, 500, 800)
FEW_PAIRS = 50  # one-versus-one with more pairs than this takes gamma and C from its MOC fit


@dataclass(frozen=True)
class Job:
    """The training part of one randomisation: `X` (n, d), `y` (n,), the number of prototypes."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    n_prototypes: int
    seed: int

    @property
    def is_regression(self) -> bool:
        """Whether `y` holds numbers, not classes."""
        return bool(np.issubdtype(self.y.dtype, np.floating))


Train = Callable[[Job], Trained]


def fixed_size(job: Job, **parameters: Any) -> Trained:
    """Fit our model and record what it chose."""
    from lssvm.estimators.fixed_size import FixedSizeLSSVC, FixedSizeLSSVR

    kind = FixedSizeLSSVR if job.is_regression else FixedSizeLSSVC
    model = kind(
        job.n_prototypes,
        random_state=job.seed,
        n_jobs=1,
        **{"selection": "renyi"} | parameters,
    )
    model.fit(job.X, job.y)
    record = {"C": np.asarray(model.C_).tolist() if np.ndim(model.C_) == 0 else "per pair"}
    if model.gamma_ is not None:
        record["gamma"] = np.asarray(model.gamma_).tolist()
    if hasattr(model, "best_score_"):
        record["cv_score"] = float(model.best_score_)
        record["n_evaluations"] = int(model.n_evaluations_)
    return Trained(model, record | {"n_prototypes": int(model.n_prototypes_)})


def one_versus_one(job: Job, **parameters: Any) -> Trained:
    """Fit one-versus-one; gamma and C come from the MOC fit where there are very many pairs."""
    classes = len(np.unique(job.y))
    if classes * (classes - 1) // 2 <= FEW_PAIRS:
        return fixed_size(job, **{"multiclass": "ovo"} | parameters)
    tuned = fixed_size(job, multiclass="moc").record
    return fixed_size(job, multiclass="ovo", C=tuned["C"], gamma=tuned["gamma"])


def small_C(job: Job) -> Trained:
    """Fit the linear model with the printed bias, C from 1e-6: the bias is small where C is."""
    from lssvm.tuning import GridSearch

    search = GridSearch(C=np.geomspace(1e-6, 10.0, 43), gamma=[1.0])
    return fixed_size(job, kernel="linear", fit_intercept="penalised", search=search)


def separately(job: Job, **parameters: Any) -> Trained:
    """Fit a (C, gamma) for every binary problem; those of MOC are few, of one-versus-one many."""
    return fixed_size(job, search=PathSearch(per_output=True), **parameters)


def own_prototypes(job: Job) -> Trained:
    """Fit every pair of classes by itself: as many prototypes as printed, C and gamma for each."""
    from lssvm.estimators.fixed_size import FixedSizeLSSVC

    pair = FixedSizeLSSVC(job.n_prototypes, selection="renyi", random_state=job.seed, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)  # a pair with fewer rows than that
        model = OneVsOneClassifier(pair).fit(job.X, job.y)
    sizes = [part.n_prototypes_ for part in model.estimators_]
    return Trained(model, {"n_prototypes": f"{min(sizes)} to {max(sizes)} per pair"})


def of_size(job: Job, size: int) -> Trained:
    """Fit our model with another number of prototypes (figure 2)."""
    return fixed_size(replace(job, n_prototypes=size))


def dual(job: Job) -> Trained:
    """Fit the model with all rows, tuned on at most `TUNING_ROWS` of them (figure 2)."""
    from lssvm import LSSVC, LSSVR

    kind = LSSVR if job.is_regression else LSSVC
    part = slice(0, TUNING_ROWS)
    tuned = kind("cv", gamma="cv", random_state=job.seed).fit(job.X[part], job.y[part])
    chosen = {"C": float(tuned.C_), "gamma": float(tuned.gamma_)}
    model = tuned if len(job.y) <= TUNING_ROWS else kind(**chosen).fit(job.X, job.y)
    return Trained(model, chosen)


def _tune(machine: Any, grid: dict[str, Any], job: Job) -> dict[str, Any]:
    kind = KFold if job.is_regression else StratifiedKFold
    folds = kind(5, shuffle=True, random_state=0)
    scoring = "neg_mean_squared_error" if job.is_regression else "accuracy"
    search = GridSearchCV(machine, grid, cv=folds, refit=False, scoring=scoring)
    with warnings.catch_warnings():
        # an infeasible nu, a class with fewer than five rows, an SVM stopped early
        warnings.simplefilter("ignore")
        search.fit(job.X[:TUNING_ROWS], job.y[:TUNING_ROWS])
    return dict(search.best_params_)


def machine(job: Job, kind: Any, grid: dict[str, Any], rows: int = SVM_ROWS) -> Trained:
    """Tune a machine of scikit-learn and train it once."""
    grid = dict(grid)
    if "gamma" in grid:
        grid["gamma"] = [g / job.X.shape[1] for g in grid["gamma"]]
    options = (
        {"dual": False} if kind is LinearSVC else {"cache_size": 500, "max_iter": SVM_MAX_ITER}
    )
    model = kind(**options)
    try:
        best = _tune(model, grid, job)
    except ValueError:  # no nu of the grid is feasible: a class has very few rows
        if kind is not NuSVC:
            raise
        best = _tune(model, grid | {"nu": list(NU_RARE)}, job)
    rows = min(rows, len(job.y))
    model = _feasible(model.set_params(**best), job.X[:rows], job.y[:rows])
    record = {key: model.get_params()[key] for key in best} | {"fit_rows": rows}
    if hasattr(model, "support_"):
        record["n_support"] = len(model.support_)
    return Trained(model, record)


def _feasible(model: Any, X: NDArray[np.float64], y: NDArray[Any]) -> Any:
    """Fit; a nu that the class shares of all rows do not allow is halved."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopped at SVM_MAX_ITER
        while True:
            try:
                return model.fit(X, y)
            except ValueError:
                if not isinstance(model, NuSVC) or model.nu < 1e-4:
                    raise
                model.set_params(nu=model.nu / 2)


def majority(job: Job) -> Trained:
    """Predict the most frequent class."""
    return Trained(DummyClassifier(strategy="most_frequent").fit(job.X, job.y))


RBF_GRID = {"C": list(SVM_C), "gamma": list(GAMMA_TIMES_D)}
SVR_GRID = {"C": list(SVR_C), "gamma": list(GAMMA_TIMES_D)}
NU_GRID = {"nu": list(NU), "gamma": list(GAMMA_TIMES_D)}
C_SVC = partial(machine, kind=SVC, grid=RBF_GRID)
NU_SVC = partial(machine, kind=NuSVC, grid=NU_GRID)
LINEAR_SVC = partial(machine, kind=LinearSVC, grid={"C": list(LINEAR_C)})

BINARY: dict[str, Train] = {
    "RBF FS-LSSVM": fixed_size,
    "Lin FS-LSSVM": partial(fixed_size, kernel="linear"),
    "RBF C-SVC": C_SVC,
    "Lin C-SVC": LINEAR_SVC,
    "RBF nu-SVC": NU_SVC,
    "Maj. rule": majority,
    "RBF FS-LSSVM, threshold": partial(fixed_size, multiclass=Coding(threshold="cv")),
    "Lin FS-LSSVM, threshold": partial(
        fixed_size, kernel="linear", multiclass=Coding(threshold="cv")
    ),
    "RBF FS-LSSVM, penalised": partial(fixed_size, fit_intercept="penalised"),
    "Lin FS-LSSVM, penalised": partial(fixed_size, kernel="linear", fit_intercept="penalised"),
    "Lin FS-LSSVM, penalised, small C": small_C,
}
MULTICLASS: dict[str, Train] = {
    "RBF FS-LSSVM (MOC)": partial(fixed_size, multiclass="moc"),
    "RBF FS-LSSVM (1vs1)": one_versus_one,
    "Lin FS-LSSVM (1vs1)": partial(fixed_size, kernel="linear", multiclass="ovo"),
    "Lin FS-LSSVM (MOC)": partial(fixed_size, kernel="linear", multiclass="moc"),
    "RBF C-SVC (1vs1)": C_SVC,
    "Lin C-SVC (1vs1)": partial(
        machine, kind=SVC, grid={"C": list(LINEAR_C), "kernel": ["linear"]}
    ),
    "RBF nu-SVC (1vs1)": NU_SVC,
    "Maj. rule": majority,
    "RBF FS-LSSVM (1vs1), threshold": partial(
        one_versus_one, multiclass=Coding("ovo", threshold="cv")
    ),
    "Lin FS-LSSVM (1vs1), threshold": partial(
        fixed_size, kernel="linear", multiclass=Coding("ovo", threshold="cv")
    ),
    "RBF FS-LSSVM (MOC), separate": partial(separately, multiclass="moc"),
    "RBF FS-LSSVM (1vs1), separate": partial(separately, multiclass="ovo"),
    "RBF FS-LSSVM (MOC), counting": partial(fixed_size, multiclass="moc-counting"),
    "RBF FS-LSSVM (MOC), kmeans": partial(fixed_size, multiclass="moc", selection="kmeans"),
    "Lin FS-LSSVM (MOC), counting": partial(fixed_size, kernel="linear", multiclass="moc-counting"),
}
REGRESSION: dict[str, Train] = {
    "RBF FS-LSSVM": fixed_size,
    "RBF FS-LSSVM, random": partial(fixed_size, selection="random"),
    "RBF eps-SVR": partial(machine, kind=SVR, grid=SVR_GRID | {"epsilon": list(SVR_EPSILON)}),
    "RBF nu-SVR": partial(machine, kind=NuSVR, grid=SVR_GRID | {"nu": list(SVR_NU)}),
}
EXTRA: dict[str, Train] = {
    f"RBF FS-LSSVM, {search}": partial(fixed_size, search=search) for search in SEARCHES
}
CLUSTERED: dict[str, Train] = {"RBF FS-LSSVM, kmeans": partial(fixed_size, selection="kmeans")}
CLUSTERED_SETS = ("adu", "ftc")
RELEVANT: dict[str, Train] = {"RBF FS-LSSVM, ard": partial(fixed_size, gamma="ard")}
RELEVANT_SETS = ("spa", "mgt", "adu", "ftc")
OWN: dict[str, Train] = {"RBF FS-LSSVM (1vs1), own": own_prototypes}
OWN_SETS = ("opt", "lan", "pen", "shu", "let")  # a pair of `let` has fewer rows than prototypes
FIGURE_2_SETS = ("spa", "bho")


def figure_2(name: str) -> dict[str, Train]:
    """Return our model with rising numbers of prototypes, and the model with all rows."""
    sizes = [size for size in FIGURE_SIZES if size <= SIZES[name].n_train]
    found: dict[str, Train] = {f"RBF FS-LSSVM, m={m}": partial(of_size, size=m) for m in sizes}
    return found | {"RBF LS-SVM": dual}


def methods_2010(name: str, kind: str) -> dict[str, Train]:
    """Return the methods of a data set; some only where they say something."""
    found = {"binary": BINARY, "multiclass": MULTICLASS, "regression": REGRESSION}[kind]
    if name in SEARCH_SETS:
        found = found | EXTRA
    if name in CLUSTERED_SETS:
        found = found | CLUSTERED
    if name in RELEVANT_SETS:
        found = found | RELEVANT
    if name in OWN_SETS:
        found = found | OWN
    return found | figure_2(name) if name in FIGURE_2_SETS else found
