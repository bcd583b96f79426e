"""From the words of the command line to the parameters of an estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from sklearn.metrics import get_scorer_names
from sklearn.pipeline import make_pipeline

from lssvm import estimators
from lssvm._core.blocks import as_bytes
from lssvm._core.errors import InvalidInputError
from lssvm.cli.options import Fitting, Modelling
from lssvm.preparation import TablePreparation
from lssvm.reductions import FixedSizeL0
from lssvm.tuning.spectral import is_criterion

REDUCTIONS = ("spfs", "ssd", "sv-l0", "sd", "spfs-printed", "ssd-printed")
"""Those of the fixed-size model."""
_INTERCEPTS: dict[str, bool | str] = {"free": True, "penalised": "penalised", "none": False}
_WORDS = {
    "kernel": ("rbf", "linear", "poly", "laplacian", "matern", "nonstationary"),
    "selection": ("random", "renyi", "kmeans", "rpcholesky"),
    "search": ("path", "grid", "shrinking", "csa"),
    "tuning": ("joint", "separate"),
    "multiclass": ("auto", "ovo", "ova", "moc", "moc-counting", "ecoc"),
    "class_weight": ("balanced",),
    "loss": ("squared", "huber", "absolute", "weighted"),
}
_DUAL = ("C", "gamma", "cv", "search", "tuning", "intercept", "multiclass", "reduction", "loss")
_OWN = ("prototypes", "selection", "support", *_DUAL)
_SHARED = ("scoring", "class_weight", "device", "memory", "jobs")
_GREEDY = ("C", "gamma", "cv", "support", "intercept", "multiclass")
_KNOWN = {
    "fixed-size": (*_OWN, *_SHARED, "kernel"),
    "table": (*_SHARED, "kernel", "preset", "time_limit"),
    "dual": (*_SHARED, *_DUAL, "kernel"),
    "greedy": ("class_weight", "memory", "jobs", "kernel", *_GREEDY),
}
_OF_KIND: dict[
    str, dict[str, tuple[str, ...]]
] = {  # words that one kind of model has and others have not
    "fixed-size": {"reduction": REDUCTIONS},
    "table": {"kernel": ("rbf", "exponential", "laplacian")},
    "dual": {"reduction": ("prune", "l0")},
}
_PRESETS = ("fast", "balanced", "best")
ESTIMATORS: dict[str, tuple[Any, Any]] = {
    "fixed-size": (estimators.FixedSizeLSSVC, estimators.FixedSizeLSSVR),
    "table": (estimators.LSSVMClassifier, estimators.LSSVMRegressor),
    "dual": (estimators.LSSVC, estimators.LSSVR),
    "greedy": (estimators.GreedyLSSVC, estimators.GreedyLSSVR),
}


def model_kind(modelling: Modelling, fitting: Fitting) -> str:
    """Return the kind of model that was asked for; "auto" is the table model.

    Raises
    ------
    InvalidInputError
        Where an option was given that this kind does not have.
    """
    kind = one_of("model", modelling.kind, ("auto", *_KNOWN))
    given = {
        f.name: value
        for group in (fitting, modelling)
        for f in fields(group)
        if (value := getattr(group, f.name)) is not None and f.name != "kind"
    }
    if kind == "auto":
        kind = "fixed-size" if set(given) & {*_OWN, "kernel"} else "table"
    for name in given:
        if name not in _KNOWN[kind]:
            option = name.replace("_", "-")
            have = " and ".join(k for k, names in _KNOWN.items() if name in names)
            raise InvalidInputError(
                f"--{option} is no option of the {kind} model, but of {have}: leave it out, or "
                f"give --model {have.split()[0]}."
            )
    return kind


def sized(option: str, reduction: str, support: int) -> FixedSizeL0:
    """Return a reduction that leaves a given number; the printed ones end where C puts them.

    Examples
    --------
    >>> from lssvm.cli.parameters import sized
    >>> sized("reduction", "ssd", 20).size
    20
    """
    if reduction.endswith("-printed"):
        raise InvalidInputError(
            f"--{option} {reduction} leaves as many as the printed algorithm ends with, so "
            f"--support {support} cannot be had: leave --support out, or give "
            f"--{option} {reduction.removesuffix('-printed')}."
        )
    return FixedSizeL0(reduction, size=support)


def _words(given: Fitting, classes: bool, kind: str) -> dict[str, Any]:
    words: dict[str, Any] = {
        name: one_of(name.replace("_", "-"), value, choices)
        for name, choices in {**_WORDS, **_OF_KIND.get(kind, {})}.items()
        if (value := getattr(given, name)) is not None
    }
    others = {"loss"} if classes else {"class_weight", "multiclass"}
    task = "a regression" if classes else "a classification"
    for other in others & set(words):
        name = other.replace("_", "-")
        raise InvalidInputError(f"--{name} is for {task}, which this is not: leave it out.")
    if given.intercept is not None:
        bias = one_of("intercept", given.intercept, tuple(_INTERCEPTS))
        words["fit_intercept"] = _INTERCEPTS[bias]
    return words


def _tuned(given: Fitting) -> dict[str, Any]:
    readers: dict[str, Callable[[str], Any]] = {
        "C": lambda value: number_or("C", value, ("cv",), float),
        "gamma": lambda value: number_or("gamma", value, ("cv", "ard", "scale", "auto"), float),
        "cv": _folds,
        "scoring": _scoring,
    }
    given_texts = {name: getattr(given, name) for name in readers}
    return {n: readers[n](text) for n, text in given_texts.items() if text is not None}


def make_estimator(
    given: Fitting, classes: bool, seed: int, kind: str = "fixed-size", ask: Modelling | None = None
) -> Any:
    """Return the estimator, not fitted.

    Parameters
    ----------
    given : Fitting
    classes : bool
        Whether it is a classifier.
    seed : int
    kind : {"fixed-size", "table", "dual", "greedy"}, default="fixed-size"
    ask : Modelling, optional
        Preset and time limit of the table model.
    """
    parameters = {**_words(given, classes, kind), **_tuned(given)}
    if given.memory is not None:
        as_bytes(given.memory)
    parameters |= {"memory_budget": given.memory, "n_jobs": given.jobs, "random_state": seed}
    if kind == "fixed-size":
        parameters |= _of_fixed_size(given)
    elif kind == "table":
        parameters |= _of_table(ask or Modelling())
    elif given.intercept == "penalised":
        raise InvalidInputError(
            f"--intercept penalised is of the fixed-size model, not of the {kind} one: give "
            "--model fixed-size, or --intercept free or none."
        )
    elif kind == "dual":
        parameters = {"C": "cv", "gamma": "cv", **parameters}
    else:
        parameters = {"C": "cv", "max_support": given.support, **parameters}
    model = ESTIMATORS[kind][0 if classes else 1](**parameters)
    if kind in ("dual", "greedy"):  # models of rows in memory, behind what makes numbers of a table
        target = "classes" if classes else "numbers"
        model = make_pipeline(TablePreparation(target=target, random_state=seed), model)
    if given.device is not None:
        if "device" in model.get_params():
            model.set_params(device=given.device)
        elif given.device != "cpu":
            raise InvalidInputError(f"--device {given.device} is not available: only cpu is.")
    return model


def _of_fixed_size(given: Fitting) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if given.support is not None:
        found["reduction"] = sized("reduction", given.reduction or "spfs", given.support)
    if given.prototypes is not None:
        found["n_prototypes"] = given.prototypes
        if not given.prototypes.rstrip().endswith("sqrt(n)"):  # which the estimator reads
            found["n_prototypes"] = number_or("prototypes", given.prototypes, ("auto", "cv"), int)
    return found


def _of_table(ask: Modelling) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if ask.preset is not None:
        found["preset"] = one_of("preset", ask.preset, _PRESETS)
    if ask.time_limit is not None:
        if ask.time_limit <= 0:
            raise InvalidInputError(f"--time-limit {ask.time_limit} is not usable: give seconds.")
        found["time_limit"] = ask.time_limit
    return found


def one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Return a word that has to be among some."""
    if value not in choices:
        raise InvalidInputError(f"--{name} {value} is not known: give one of {', '.join(choices)}.")
    return value


def number_or(name: str, value: str, words: tuple[str, ...], kind: Any) -> Any:
    """Return one of some words, or a positive number.

    Examples
    --------
    >>> from lssvm.cli.parameters import number_or
    >>> number_or("C", "cv", ("cv",), float), number_or("C", "2.5", ("cv",), float)
    ('cv', 2.5)
    """
    if value in words:
        return value
    try:
        number = kind(value)
    except ValueError:
        number = -1
    if not 0 < number < float("inf"):
        what = "whole number" if kind is int else "number"
        raise InvalidInputError(
            f"--{name} {value} is not usable: give {', '.join(words)} or a positive {what}."
        )
    return number


def _folds(value: str) -> Any:
    folds = number_or("cv", value, (), float)
    if (folds > 1 and (folds != int(folds) or folds < 2)) or folds == 1:
        raise InvalidInputError(
            f"--cv {value} is not usable: give a number of folds from 2 on, or a share below 1."
        )
    return folds if folds < 1 else int(folds)


def _scoring(value: str) -> str:
    if not is_criterion(value) and value not in get_scorer_names():
        raise InvalidInputError(
            f"--scoring {value} is not known: give the name of a scorer of scikit-learn, such as "
            "accuracy, roc_auc, f1, neg_mean_absolute_error."
        )
    return value
