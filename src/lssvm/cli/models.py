"""Models on the command line: made from options, fitted, loaded, and the rows that they take."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from lssvm._core.errors import InvalidInputError, ModelFileError
from lssvm.cli.console import FitProgress, Output
from lssvm.cli.options import Fitting, Modelling, Reading, read_orders

if TYPE_CHECKING:
    from lssvm.cli.tables import Table
    from lssvm.data import Scan
    from lssvm.data.preparation import PreparedTable
    from lssvm.reductions import FixedSizeL0


class Model(Protocol):
    """A fitted estimator of this library."""

    def predict(self, X: Any) -> Any:
        """Return the predictions of rows."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters."""

    def __getattr__(self, name: str) -> Any:
        """Return what a model of its kind has learned."""


def learned(model: Model) -> dict[str, Any]:
    """Return what a fit has set, by the names of the attributes."""
    from lssvm.plots.base import fitted_attributes

    return fitted_attributes(model)


def is_classifier(model: Model) -> bool:
    """Say whether a model predicts classes."""
    return "classes_" in learned(last_step(model))


def last_step(model: Model) -> Model:
    """Return the model itself, which may stand at the end of a pipeline."""
    from sklearn.pipeline import Pipeline

    last: Model = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return last


def reads_scans(model: Model) -> bool:
    """Say whether a model is fitted to a scan; it reads the rows into memory only if they fit."""
    from lssvm.estimators import FixedSizeLSSVC, FixedSizeLSSVR, LSSVMClassifier, LSSVMRegressor

    kinds = FixedSizeLSSVC | FixedSizeLSSVR | LSSVMClassifier | LSSVMRegressor
    return isinstance(model, kinds)


def prepared_table(model: Model) -> PreparedTable | None:
    """Return how a model prepares raw columns; None where it takes numbers."""
    ready = learned(model).get("preparations_")
    if ready is not None:  # all of the same columns; this one shows a shift
        found: PreparedTable = ready.get("standardised", next(iter(ready.values()))).prepared_
        return found
    if last_step(model) is model:
        return learned(model).get("preparation_")
    return learned(model.steps[0][1]).get("prepared_")


def takes_tables(model: Model) -> bool:
    """Say whether the methods of a model take columns with names."""
    return last_step(model) is not model or prepared_table(model) is not None


def needed_columns(model: Model) -> tuple[str, ...]:
    """Return the columns that a model reads."""
    ready = prepared_table(model)
    first = model if last_step(model) is model else model.steps[0][1]
    names = tuple(str(name) for name in learned(first).get("feature_names_in_", ()))
    if ready is not None and ready.named:
        names = ready.used
    if not names:
        raise InvalidInputError(
            "The model was fitted to columns without names, so they cannot be found in a file: "
            "fit it to a table with named columns, or use it from Python."
        )
    return names


def column_types(model: Model) -> dict[str, str]:
    """Return how the columns of a model are to be read from CSV."""
    ready = prepared_table(model)
    kinds = {} if ready is None else ready.kinds
    return {name: kind for name, kind in kinds.items() if kind in ("number", "text")}


def model_scan(model: Model, table: Table, target: str | None, weight: str | None = None) -> Scan:
    """Return the columns of a table that a model reads, typed as in its training."""
    names = needed_columns(model)
    table.need(names, ", which the model needs")
    types = {name: kind for name, kind in column_types(model).items() if name in names}
    if target is not None:
        table.need([target], ", the target")
        if target in names:
            raise InvalidInputError(
                f"The column {target!r} cannot be the target: the model learns from it."
            )
        types[target] = target_type(model)
    if weight is not None:
        table.need([weight], ", the weight")
    return table.scan(target, names, weight, types)


def target_type(model: Model) -> str:
    """Return how the target of a model is to be read from CSV."""
    if not is_classifier(model):
        return "number"
    kind = model.classes_.dtype.kind
    return "integer" if kind in "iu" else "number" if kind in "bf" else "text"


def model_blocks(model: Model, data: Scan) -> Iterator[tuple[Any, Any]]:
    """Yield blocks of raw rows, with what the methods of the model take for them."""
    if not takes_tables(model) and data.schema.texts:
        raise InvalidInputError(
            f"The columns {list(data.schema.texts)} hold text, which the model cannot read."
        )
    for block in data.blocks():
        yield block, as_given(model, block)


def as_given(model: Model, block: Any) -> Any:
    """Return a block of raw rows as the methods of the model take them."""
    return block.table if takes_tables(model) else block.numbers


def fit_scan(model: Model, data: Scan, output: Output, classes: bool, groups: Any = None) -> bool:
    """Fit a model to the rows of a scan while its progress is shown; say whether it was stopped.

    The models for large data take the scan; for the others, and for groups, all rows are read.

    Parameters
    ----------
    model : estimator
    data : Scan
    output : Output
    classes : bool
        Whether classes are predicted.
    groups : array of shape (n,) or None, default=None
        Rows of one group are left out together; for models that have all rows in memory.
    """
    from lssvm.data.raw import RawBlock

    fit: Any = model.fit
    with FitProgress(output, classes, last_step(model).get_params().get("scoring")) as progress:
        if groups is None and reads_scans(model):
            fit(data)
            return progress.stopped
        whole = RawBlock.join(list(data.blocks()))
        steps: Any = None if last_step(model) is model else model.steps
        last = "" if steps is None else f"{steps[-1][0]}__"
        options = {}
        if whole.weight is not None:
            options[f"{last}sample_weight"] = whole.weight
        if groups is not None:
            options[f"{last}groups"] = groups
            if steps is not None:  # what is encoded by the target is encoded without the group
                options[f"{steps[0][0]}__groups"] = groups
        fit(whole.table, whole.target, **options)
    return progress.stopped


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model out of its file.

    Attributes
    ----------
    model : estimator
    card : dict
        What was saved beside it (``metrics=``); empty for models that were saved from Python.
    """

    model: Model
    card: dict[str, Any]

    def target(self, given: str | None) -> str:
        """Return the column of the target: the one given, else that of the training."""
        name = given or self.card.get("target")
        if not isinstance(name, str):
            raise ModelFileError("The model file does not name its target: give --target.")
        return name

    def reading(self, given: Reading) -> Reading:
        """Return how files are read: what meant a missing value in training means one again."""
        return replace(given, missing=[*given.missing, *self.card.get("missing", ())])

    def parts(self, table: Table, rows: Scan) -> tuple[Scan, Scan | None]:
        """Return the rows that the model was trained on and those that were held out.

        None where none were held out, or the data are others than those of the training.
        """
        from lssvm.cli.tables import HoldOut

        rule = HoldOut.of_card(self.card)
        if rule is None or self.card.get("refit") or rows.n_rows != self.card.get("rows"):
            return rows, None
        return rule.split(table, rows, self.target(None))

    def groups(self, table: Table, rows: Scan) -> Any:
        """Return the groups of the rows that the model was trained on; None where it had none."""
        from lssvm.cli.tables import HoldOut

        rule, target = HoldOut.of_card(self.card), self.target(None)
        if rule is None or rule.by != "group":
            return None
        return rule.train_groups(table, rows, target)


def load_model(path: str) -> Loaded:
    """Load a model with its card."""
    from lssvm.io import load, read_header

    if not os.path.isfile(path):
        raise ModelFileError(f"There is no model file {path}.")
    model = load(path)
    card = read_header(path).get("metrics")
    return Loaded(model, checked(card) if isinstance(card, dict) else {})


def checked(card: dict[str, Any]) -> dict[str, Any]:
    """Return a card without the entries that are not what we would have written: anybody may.

    Examples
    --------
    >>> from lssvm.cli.models import checked
    >>> checked({"target": "y", "seed": "0", "test_share": 0.2, "note": "mine"})
    {'target': 'y', 'test_share': 0.2, 'note': 'mine'}
    """
    return {k: value for k, value in card.items() if k not in _KINDS or _KINDS[k](value)}


def _text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _measured(value: Any) -> bool:
    if not isinstance(value, dict):
        return value is None
    if "accuracy" not in value:
        return all(_number(value.get(n)) for n in ("rows", "rmse", "r2", "baseline_rmse"))
    ends = value.get("accuracy_interval")
    pair = isinstance(ends, (list, tuple)) and len(ends) == 2 and all(map(_number, ends))
    shares = [value.get(n, 0.0) for n in ("precision", "recall", "roc_auc")]
    known = [value.get(n) for n in ("rows", "accuracy", "baseline")]
    return pair and all(map(_number, [*known, *shares])) and _text(value.get("positive"))


_KINDS: dict[str, Any] = {
    "target": _text,
    "positive": _text,
    "missing": lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value),
    "tested": _text,
    "weight": _text,
    "seed": lambda value: isinstance(value, int) and value >= 0,
    "test_share": lambda value: _number(value) and 0.0 <= value < 1.0,
    "test": _measured,
}


REDUCTIONS = ("spfs", "ssd", "sv-l0", "sd", "spfs-printed", "ssd-printed", "sv-l0-printed")
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
    "table": (*_SHARED, "kernel", "preset", "time_limit", "ordered"),
    "dual": (*_SHARED, *_DUAL, "kernel", "ordered"),
    "greedy": ("class_weight", "memory", "jobs", "kernel", "ordered", *_GREEDY),
}
_OF_KIND: dict[
    str, dict[str, tuple[str, ...]]
] = {  # words that one kind of model has and others have not
    "fixed-size": {"reduction": REDUCTIONS},
    "table": {"kernel": ("rbf", "exponential", "laplacian")},
    "dual": {"reduction": ("prune", "l0")},
}
_PRESETS = ("fast", "balanced", "best")


def estimator_class(kind: str, classes: bool) -> Any:
    """Return the estimator of a kind of model."""
    from lssvm import estimators

    both: dict[str, tuple[Any, Any]] = {
        "fixed-size": (estimators.FixedSizeLSSVC, estimators.FixedSizeLSSVR),
        "table": (estimators.LSSVMClassifier, estimators.LSSVMRegressor),
        "dual": (estimators.LSSVC, estimators.LSSVR),
        "greedy": (estimators.GreedyLSSVC, estimators.GreedyLSSVR),
    }
    return both[kind][0 if classes else 1]


def model_kind(modelling: Modelling, fitting: Fitting) -> str:
    """Return the kind of model that was asked for; "auto" is the table model.

    Raises
    ------
    InvalidInputError
        Where an option was given that this kind does not have.
    """
    kind = one_of("model", modelling.kind, ("auto", *_KNOWN))
    given = {
        name: value
        for group in (fitting, modelling)
        for name, value in vars(group).items()
        if value not in (None, (), []) and name != "kind"
    }
    if kind == "auto":
        kind = "fixed-size" if set(given) & {*_OWN, "kernel"} else "table"
    for name in given:
        if name not in _KNOWN[kind]:
            option = name.replace("_", "-")
            have = " and ".join(k for k, names in _KNOWN.items() if name in names)
            raise InvalidInputError(
                f"--{option} is not an option of the {kind} model, but of {have}: omit it, or "
                f"give --model {have.split()[0]}."
            )
    return kind


def sized(option: str, reduction: str, support: int) -> FixedSizeL0:
    """Return a reduction that leaves a given number; the printed ones end where C puts them.

    Examples
    --------
    >>> from lssvm.cli.models import sized
    >>> sized("reduction", "ssd", 20).size
    20
    """
    if reduction.endswith("-printed"):
        raise InvalidInputError(
            f"--{option} {reduction} leaves as many as the printed algorithm ends with, so "
            f"--support {support} cannot be had: leave --support out, or give "
            f"--{option} {reduction.removesuffix('-printed')}."
        )
    from lssvm.reductions import FixedSizeL0

    return FixedSizeL0(reduction, size=support)


def _words(given: Fitting, classes: bool, kind: str) -> dict[str, Any]:
    words: dict[str, Any] = {
        name: one_of(name.replace("_", "-"), value, choices)
        for name, choices in {**_WORDS, **_OF_KIND.get(kind, {})}.items()
        if (value := vars(given)[name]) is not None
    }
    others = {"loss"} if classes else {"class_weight", "multiclass"}
    task = "a regression" if classes else "a classification"
    for other in others & set(words):
        name = other.replace("_", "-")
        raise InvalidInputError(f"--{name} is for {task}, which this is not: leave it out.")
    if given.intercept is not None:
        bias = one_of("intercept", given.intercept, tuple(_INTERCEPTS))
        words["fit_intercept"] = _INTERCEPTS[bias]
    if words.pop("tuning", "joint") == "separate":
        from lssvm.tuning import make_search

        words["search"] = replace(make_search(words.get("search", "path")), per_output=True)
    return words


def _tuned(given: Fitting) -> dict[str, Any]:
    readers: dict[str, Callable[[str], Any]] = {
        "C": lambda value: number_or("C", value, ("cv",), float),
        "gamma": lambda value: number_or("gamma", value, ("cv", "ard", "scale", "auto"), float),
        "cv": _folds,
        "scoring": _scoring,
    }
    given_texts = {name: vars(given)[name] for name in readers}
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
        Preset and time limit of the table model, and ordered categories.
    """
    ask = Modelling() if ask is None else ask
    orders = read_orders(ask.ordered) or None
    parameters = {**_words(given, classes, kind), **_tuned(given)}
    if given.memory is not None:
        from lssvm._core.blocks import as_bytes

        as_bytes(given.memory)
    parameters |= {"memory_budget": given.memory, "n_jobs": given.jobs, "random_state": seed}
    if kind == "fixed-size":
        parameters |= _of_fixed_size(given)
    elif kind == "table":
        parameters |= _of_table(ask) | {"ordered": orders}
    elif given.intercept == "penalised":
        raise InvalidInputError(
            f"--intercept penalised is of the fixed-size model, not of the {kind} one: give "
            "--model fixed-size, or --intercept free or none."
        )
    elif kind == "dual":
        parameters = {"C": "cv", "gamma": "cv", **parameters}
    else:
        parameters = {"C": "cv", "max_support": given.support, **parameters}
    model = estimator_class(kind, classes)(**parameters)
    if kind in ("dual", "greedy"):  # models of rows in memory, behind what makes numbers of a table
        from sklearn.pipeline import make_pipeline

        from lssvm.preparation import TablePreparation

        target = "classes" if classes else "numbers"
        ready = TablePreparation(target=target, ordered=orders, random_state=seed)
        model = make_pipeline(ready, model)
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
    >>> from lssvm.cli.models import number_or
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
    from sklearn.metrics import get_scorer_names

    from lssvm.tuning.objective import is_criterion

    if not is_criterion(value) and value not in get_scorer_names():
        raise InvalidInputError(
            f"--scoring {value} is not known: give the name of a scorer of scikit-learn, such as "
            "accuracy, roc_auc, f1, neg_mean_absolute_error."
        )
    return value
