"""The LS-SVM classifiers of this library, tuned and trained as in [Suykens2002, section 3.4.2].

Differences from the print: the parameters are searched by `LSSVC` itself (exact 10-fold
cross-validation, a path of C at each kernel parameter of a line search, shortened for time) and not
on the shrinking grid Sigma_i x Gamma_i; the polynomial degree (2 to 10) is the best by
cross-validated accuracy; on large sets the parameters are tuned on a random subset
(`Task.tuning_rows`) and the machine is then trained on all `Task.fit_rows` rows, or, in the methods
called "all rows", on all there are, by preconditioned conjugate gradients.
One pair of parameters serves all binary problems of a code; the print tunes each by itself, which
the methods called "separate" do. Those called "counting" have minimum output codes by counting.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np

from benchmarks.study.task import Task, Trained

KERNELS = {"RBF": "rbf", "Lin": "linear", "Pol": "poly"}
CODES = {"MOC": "moc", "1vs1": "ovo"}
DEGREES = tuple(range(2, 11))
TOLERANCE = 1e-3  # relative residual of the machines that are trained on all rows of a large set
LEVELS = {"SL5%": 0.05, "SL1%": 0.01}
PRUNINGS: dict[str, dict[str, Any]] = {  # the mark in a name, and what it stands for
    "": {"retune": True, "against": "full"},
    " fixed": {"retune": False, "against": "full"},
    " previous": {"retune": True, "against": "previous"},
}


def library_version() -> str:
    """Return the version of the library under test."""
    import lssvm

    return lssvm.__version__


def _search(kernel: str) -> Any:
    """Return a shorter search than the default one: fewer values of C per kernel parameter."""
    from lssvm.tuning import PathSearch

    return {
        "rbf": PathSearch(n_C=20),
        "linear": PathSearch(),
        "poly": PathSearch(n_C=12, max_points=6),
    }[kernel]


def _fit(task: Task, rows: int, **parameters: Any) -> Any:
    from lssvm import LSSVC
    from lssvm.codes import Coding
    from lssvm.kernels import Polynomial

    if "degree" in parameters:
        parameters["kernel"] = Polynomial(degree=parameters.pop("degree"))
    coding = Coding(
        parameters.pop("multiclass", "auto"), targets=parameters.pop("targets", "label")
    )
    model = LSSVC(random_state=0, multiclass=coding, **parameters)
    return model.fit(task.X[:rows], task.y[:rows])


def _tuned(task: Task, kernel: str, **parameters: Any) -> tuple[dict[str, Any], Any]:
    """Tune on the first rows; return the chosen parameters and the classifier."""
    parameters |= {"kernel": kernel, "search": _search(kernel)}
    choices = [{"degree": d} for d in DEGREES] if kernel == "poly" else [{}]
    tried = [
        (choice, _fit(task, task.tuning_rows, C="cv", gamma="cv", **parameters, **choice))
        for choice in choices
    ]
    choice, model = max(tried, key=lambda entry: float(entry[1].best_score_))
    chosen = {"C": float(model.C_), **choice}
    if kernel != "linear":
        chosen["gamma"] = float(model.gamma_)
    return chosen, model


def _train(task: Task, **parameters: Any) -> Trained:
    chosen, model = _tuned(task, **parameters)
    record = chosen | {"cv_score": float(model.best_score_)}
    if task.tuning_rows < task.fit_rows:
        model = _fit(task, task.fit_rows, **parameters, **chosen)
    return Trained(model, record)


def _train_on_all(task: Task, **parameters: Any) -> Trained:
    """Tune on the first rows, then train on all rows, the ones beyond `Task.fit_rows` too."""
    from lssvm.solvers import ConjugateGradient

    chosen, model = _tuned(task, **parameters)
    record = chosen | {"cv_score": float(model.best_score_), "fit_rows": len(task.y)}
    solver = ConjugateGradient(tol=TOLERANCE, preconditioner="nystrom")
    model = _fit(task, len(task.y), solver=solver, n_jobs=1, **parameters, **chosen)
    return Trained(model, record)


def all_rows_methods() -> dict[str, Callable[[Task], Trained]]:
    """Return the machines that are trained on all rows of a set whose others have a part."""
    return {
        f"{label} LS-SVM all rows": partial(_train_on_all, kernel=kernel)
        for label, kernel in KERNELS.items()
        if kernel != "poly"
    }


def _prune(
    task: Task,
    level: float,
    retune: bool,
    against: Literal["full", "previous"],
    **parameters: Any,
) -> Trained:
    """Tune, then prune until the cross-validated accuracy falls significantly."""
    from lssvm.reductions import Prune

    if retune:
        chosen: dict[str, Any] = {"C": "cv", "gamma": "cv", "search": _search("rbf")}
    else:
        chosen, _ = _tuned(task, **parameters)
    reduction = Prune(level=level, retune=retune, against=against)
    model = _fit(task, task.fit_rows, reduction=reduction, **parameters, **chosen)
    problems = model.dual_coef_.shape[1]
    examples = task.fit_rows * (len(model.classes_) - 1 if problems > 1 else 1)
    kept = int(np.count_nonzero(model.dual_coef_))
    return Trained(model, {"rows_all": examples, "rows_kept": kept})


def methods(is_binary: bool) -> dict[str, Callable[[Task], Trained]]:
    """Return name and training function of every LS-SVM, named as in tables 3.3 and 3.4."""
    found: dict[str, Callable[[Task], Trained]] = {}
    for suffix, code in {"": "auto"}.items() if is_binary else CODES.items():
        for label, kernel in KERNELS.items():
            for mark, targets in {"": "label", "_F": "fisher"}.items():
                name = f"{label} LS-SVM{mark}" + (f" ({suffix})" if suffix else "")
                found[name] = partial(_train, kernel=kernel, targets=targets, multiclass=code)
    return found


def _on_tuning_rows(task: Task, multiclass: str, tuning: str = "separate") -> Trained:
    """Tune and train on the rows that are tuned on, a (C, gamma) for each binary problem or one."""
    search = replace(_search("rbf"), per_output=tuning == "separate")
    parameters = {"multiclass": multiclass, "search": search}
    model = _fit(task, task.tuning_rows, C="cv", gamma="cv", **parameters)
    return Trained(model, {"cv_score": float(model.best_score_), "fit_rows": task.tuning_rows})


def printed_methods() -> dict[str, Callable[[Task], Trained]]:
    """Return what the print has and the other methods do not: own parameters, counted codes.

    Those called "joint" have one (C, gamma) and the rows of those called "separate": what these
    are compared with on sets that are tuned on a part.
    """
    return {
        "RBF LS-SVM (1vs1) separate": partial(_on_tuning_rows, multiclass="ovo"),
        "RBF LS-SVM (1vs1) joint": partial(_on_tuning_rows, multiclass="ovo", tuning="joint"),
        "RBF LS-SVM (MOC) separate": partial(_on_tuning_rows, multiclass="moc"),
        "RBF LS-SVM (MOC) joint": partial(_on_tuning_rows, multiclass="moc", tuning="joint"),
        "RBF LS-SVM (MOC) counting": partial(_train, kernel="rbf", multiclass="moc-counting"),
        "RBF LS-SVM (MOC) counting separate": partial(_on_tuning_rows, multiclass="moc-counting"),
    }


def pruned_methods(is_binary: bool) -> dict[str, Callable[[Task], Trained]]:
    """Return name and training function of the pruned machines of table 3.5.

    When the performance falls, (C, gamma) are tuned again on the rows that are left, as step 4 of
    the algorithm of section 3.7 says; the methods called "fixed" leave that out. A step is tested
    against the model of all rows, in the methods called "previous" against the step before.
    """
    name = "RBF LS-SVM" if is_binary else "RBF LS-SVM (1vs1)"
    code = "auto" if is_binary else "ovo"
    return {
        f"{name} {label}{mark}": partial(
            _prune, level=level, kernel="rbf", multiclass=code, **settings
        )
        for label, level in LEVELS.items()
        for mark, settings in PRUNINGS.items()
    }
