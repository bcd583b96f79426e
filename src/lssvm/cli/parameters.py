"""From the words of the command line to the parameters of an estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lssvm._core.errors import InvalidInputError

if TYPE_CHECKING:
    from lssvm.cli.options import Fitting

_KERNELS = ("rbf", "linear", "poly", "laplacian", "matern", "nonstationary")
_SEARCHES = ("path", "grid", "shrinking", "csa")


def estimator_parameters(given: Fitting, classes: bool, seed: int) -> dict[str, Any]:
    """Return the parameters of `FixedSizeLSSVC` or `FixedSizeLSSVR`.

    Parameters
    ----------
    given : Fitting
    classes : bool
        Whether it is a classifier.
    seed : int
    """
    found: dict[str, Any] = {
        "n_prototypes": number_or("prototypes", given.prototypes, ("auto", "cv"), int),
        "kernel": one_of("kernel", given.kernel, _KERNELS),
        "C": number_or("C", given.C, ("cv",), float),
        "gamma": number_or("gamma", given.gamma, ("cv", "ard", "scale", "auto"), float),
        "selection": one_of(
            "selection", given.selection, ("renyi", "random", "kmeans", "rpcholesky")
        ),
        "cv": _folds(given.cv),
        "search": one_of("search", given.search, _SEARCHES),
        "scoring": _scoring(given.scoring),
        "reduction": _reduction(given.reduction),
        "n_support": given.support,
        "memory_budget": _memory(given.memory),
        "n_jobs": given.jobs,
        "random_state": seed,
    }
    if given.support is not None and given.reduction is None:
        found["reduction"] = "spfs"
    if classes:
        _refuse("loss", given.loss, "a regression")
        if given.class_weight is not None:
            found["class_weight"] = one_of("class-weight", given.class_weight, ("balanced",))
    else:
        _refuse("class-weight", given.class_weight, "a classification")
        if given.loss is not None:
            found["loss"] = one_of("loss", given.loss, ("squared", "huber", "absolute", "weighted"))
    return found


def make_estimator(given: Fitting, classes: bool, seed: int) -> Any:
    """Return the estimator, not fitted."""
    from lssvm.estimators import FixedSizeLSSVC, FixedSizeLSSVR

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
    found = number_or("cv", value, (), float)
    if found < 1:
        return found
    if found != int(found) or found < 2:
        raise InvalidInputError(
            f"--cv {value} is not usable: give a number of folds from 2 on, or a share below 1."
        )
    return int(found)


def _reduction(value: str | None) -> str | None:
    return None if value is None else one_of("reduction", value, ("spfs", "ssd", "sv-l0", "sd"))


def _memory(value: str | None) -> str | None:
    from lssvm._core.memory import as_bytes

    if value is not None:
        as_bytes(value)
    return value


def _scoring(value: str | None) -> str | None:
    from sklearn.metrics import get_scorer_names

    from lssvm.criteria.closed_form import is_criterion

    if value is not None and not is_criterion(value) and value not in get_scorer_names():
        raise InvalidInputError(
            f"--scoring {value} is not known: give the name of a scorer of scikit-learn, such as "
            "accuracy, roc_auc, f1, neg_mean_absolute_error."
        )
    return value


def _refuse(name: str, value: Any, task: str) -> None:
    if value is not None:
        raise InvalidInputError(f"--{name} is for {task}, which this is not: leave it out.")
