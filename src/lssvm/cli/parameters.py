"""From the words of the command line to the parameters of an estimator."""

from __future__ import annotations

from typing import Any

from sklearn.metrics import get_scorer_names

from lssvm._core.errors import InvalidInputError
from lssvm._core.memory import as_bytes
from lssvm.cli.options import Fitting
from lssvm.criteria.closed_form import is_criterion
from lssvm.estimators import FixedSizeLSSVC, FixedSizeLSSVR
from lssvm.reductions import FixedSizeL0

_WORDS = {
    "kernel": ("rbf", "linear", "poly", "laplacian", "matern", "nonstationary"),
    "selection": ("renyi", "random", "kmeans", "rpcholesky"),
    "search": ("path", "grid", "shrinking", "csa"),
    "reduction": ("spfs", "ssd", "sv-l0", "sd"),
    "class_weight": ("balanced",),
    "loss": ("squared", "huber", "absolute", "weighted"),
}


def estimator_parameters(given: Fitting, classes: bool, seed: int) -> dict[str, Any]:
    """Return the parameters of `FixedSizeLSSVC` or `FixedSizeLSSVR`.

    Parameters
    ----------
    given : Fitting
    classes : bool
        Whether it is a classifier.
    seed : int
    """
    words: dict[str, Any] = {
        name: one_of(name.replace("_", "-"), value, choices)
        for name, choices in _WORDS.items()
        if (value := getattr(given, name)) is not None
    }
    other, task = ("loss", "a regression") if classes else ("class_weight", "a classification")
    if other in words:
        name = other.replace("_", "-")
        raise InvalidInputError(f"--{name} is for {task}, which this is not: leave it out.")
    if given.memory is not None:
        as_bytes(given.memory)
    if given.support is not None:
        words["reduction"] = FixedSizeL0(words.get("reduction", "spfs"), size=given.support)
    return {
        **words,
        "n_prototypes": number_or("prototypes", given.prototypes, ("auto", "cv"), int),
        "C": number_or("C", given.C, ("cv",), float),
        "gamma": number_or("gamma", given.gamma, ("cv", "ard", "scale", "auto"), float),
        "cv": _folds(given.cv),
        "scoring": _scoring(given.scoring),
        "memory_budget": given.memory,
        "n_jobs": given.jobs,
        "random_state": seed,
    }


def make_estimator(given: Fitting, classes: bool, seed: int) -> Any:
    """Return the estimator, not fitted."""
    parameters = estimator_parameters(given, classes, seed)
    model: Any = (FixedSizeLSSVC if classes else FixedSizeLSSVR)(**parameters)
    if given.device is not None:
        if "device" in model.get_params():
            model.set_params(device=given.device)
        elif given.device != "cpu":
            raise InvalidInputError(f"--device {given.device} is not available: only cpu is.")
    return model


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


def _scoring(value: str | None) -> str | None:
    if value is not None and not is_criterion(value) and value not in get_scorer_names():
        raise InvalidInputError(
            f"--scoring {value} is not known: give the name of a scorer of scikit-learn, such as "
            "accuracy, roc_auc, f1, neg_mean_absolute_error."
        )
    return value
