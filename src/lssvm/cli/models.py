"""Models on the command line: made from options, fitted, loaded, and the rows that they take."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sklearn.metrics import get_scorer_names
from sklearn.pipeline import Pipeline, make_pipeline

from lssvm import estimators
from lssvm._core.blocks import as_bytes
from lssvm._core.errors import InvalidInputError, ModelFileError
from lssvm.cli.console import FitProgress, Output
from lssvm.cli.options import Fitting, Modelling, Reading
from lssvm.cli.tables import HoldOut, Table
from lssvm.data import Scan
from lssvm.data.preparation import PreparedTable
from lssvm.data.raw import RawBlock
from lssvm.fitting import Fit
from lssvm.io import load, read_header
from lssvm.plots.base import Estimator, fitted_attributes
from lssvm.plots.rows import classifies
from lssvm.preparation import TablePreparation
from lssvm.reductions import FixedSizeL0
from lssvm.tuning import make_search
from lssvm.tuning.objective import is_criterion


def last_step(model: Estimator) -> Estimator:
    """Return the model itself, which may be at the end of a pipeline; it need not be fitted."""
    last: Estimator = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return last


def reads_scans(model: Estimator) -> bool:
    """Return whether a model is fitted to a scan, which need not fit into memory."""
    kinds = (*estimators_of("fixed-size"), *estimators_of("table"))
    return isinstance(model, kinds)


def prepared_table(model: Estimator) -> PreparedTable | None:
    """Return how a model prepares raw columns; None where it takes numbers."""
    if isinstance(model, Pipeline):
        return fitted_attributes(model.steps[0][1]).get("prepared_")
    record = fitted_attributes(model).get("record_")
    ready = record.prepared if isinstance(record, Fit) else {}
    # All are of the same columns; a standardised one shows a shift.
    return ready.get("standardised", next(iter(ready.values()), None))


def takes_tables(model: Estimator) -> bool:
    """Return whether the methods of a model take columns with names."""
    return isinstance(model, Pipeline) or prepared_table(model) is not None


def needed_columns(model: Estimator) -> tuple[str, ...]:
    """Return the columns that a model reads."""
    ready = prepared_table(model)
    first = model.steps[0][1] if isinstance(model, Pipeline) else model
    names = tuple(str(name) for name in fitted_attributes(first).get("feature_names_in_", ()))
    if ready is not None and ready.named:
        names = ready.used
    if not names:
        raise InvalidInputError(
            "The model was fitted to columns without names, so they cannot be found in a file: "
            "fit it to a table with named columns, or use it from Python."
        )
    return names


def column_types(model: Estimator) -> dict[str, str]:
    """Return how the columns of a model are to be read from CSV."""
    ready = prepared_table(model)
    kinds = {} if ready is None else ready.kinds
    return {name: kind for name, kind in kinds.items() if kind in ("number", "text")}


def model_scan(
    model: Estimator, table: Table, target: str | None, weight: str | None = None
) -> Scan:
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
        types[target] = "number"
        if classifies(model):
            kind = model.classes_.dtype.kind
            types[target] = "integer" if kind in "iu" else "number" if kind in "bf" else "text"
    if weight is not None:
        table.need([weight], ", the weight")
    return table.scan(target, names, weight, types)


def model_blocks(model: Estimator, data: Scan) -> Iterator[tuple[Any, Any]]:
    """Yield blocks of raw rows, with what the methods of the model take for them."""
    if not takes_tables(model) and data.schema.texts:
        raise InvalidInputError(
            f"The columns {list(data.schema.texts)} hold text, which the model cannot read."
        )
    for block in data.blocks():
        yield block, model_rows(model, block)


def model_rows(model: Estimator, block: RawBlock) -> Any:
    """Return a block of raw rows as the methods of the model take them."""
    return block.table if takes_tables(model) else block.numbers


def fit_scan(
    model: Estimator, data: Scan, output: Output, classes: bool, groups: Any = None
) -> bool:
    """Fit a model to the rows of a scan while its progress is shown; return whether it was stopped.

    The models for large data take the scan; for the others, and for groups, all rows are read.

    Parameters
    ----------
    model : estimator
    data : Scan
    output : Output
    classes : bool
        Whether classes are predicted.
    groups : array of shape (n,) or None, default=None
        Rows of one group are held out together; for models that have all rows in memory.
    """
    last: Any = last_step(model)
    with FitProgress(output, classes, last.get_params().get("scoring")) as progress:
        if groups is None and reads_scans(model):
            model.fit(data)
            return progress.stopped
        whole = RawBlock.join(list(data.blocks()))
        steps: Any = model.steps if isinstance(model, Pipeline) else None
        prefix = "" if steps is None else f"{steps[-1][0]}__"
        options = {}
        if whole.weight is not None:
            options[f"{prefix}sample_weight"] = whole.weight
        if groups is not None:
            options[f"{prefix}groups"] = groups
            if steps is not None:  # what is encoded by the target is encoded without the group
                options[f"{steps[0][0]}__groups"] = groups
        model.fit(whole.table, whole.target, **options)
    return progress.stopped


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model out of its file.

    Attributes
    ----------
    model : estimator
    card : dict
        What was saved with it (``metrics=``); empty for models that were saved from Python.
    """

    model: Estimator
    card: dict[str, Any]

    def target(self, target: str | None) -> str:
        """Return the column of the target: the one given, else that of the training."""
        name = target or self.card.get("target")
        if not isinstance(name, str):
            raise ModelFileError("The model file does not name its target: give --target.")
        return name

    def reading(self, reading: Reading) -> Reading:
        """Return how files are read: what meant a missing value in training means one again."""
        return replace(reading, missing=[*reading.missing, *self.card.get("missing", ())])

    def parts(self, table: Table, rows: Scan) -> tuple[Scan, Scan | None]:
        """Return the rows that the model was trained on and those that were held out.

        None where none were held out, or the data are others than those of the training.
        """
        rule = HoldOut.of_card(self.card)
        if rule is None or self.card.get("refit") or rows.n_rows != self.card.get("rows"):
            return rows, None
        return rule.split(table, rows, self.target(None))

    def groups(self, table: Table, rows: Scan) -> Any:
        """Return the groups of the rows that the model was trained on; None where it had none."""
        rule = HoldOut.of_card(self.card)
        return None if rule is None else rule.train_groups(table, rows, self.target(None))


def load_model(path: str) -> Loaded:
    """Load a model with its card."""
    if not os.path.isfile(path):
        raise ModelFileError(f"There is no model file {path}.")
    model = load(path)
    card = read_header(path).get("metrics")
    return Loaded(model, valid_entries(card) if isinstance(card, dict) else {})


def valid_entries(card: dict[str, Any]) -> dict[str, Any]:
    """Return a card without the entries that are not what we would have written: anybody may.

    Examples
    --------
    >>> from lssvm.cli.models import valid_entries
    >>> valid_entries({"target": "y", "seed": "0", "test_share": 0.2, "note": "mine"})
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

KINDS = ("fixed-size", "table", "dual", "greedy")
REDUCTIONS = ("spfs", "ssd", "sv-l0", "sd", "spfs-printed", "ssd-printed", "sv-l0-printed")
"""Those of the fixed-size model."""
_INTERCEPTS: dict[str, bool | str] = {"free": True, "penalised": "penalised", "none": False}
_PARAMETERS = {  # of options that have another name than the parameter of the estimator
    "prototypes": "n_prototypes",
    "intercept": "fit_intercept",
    "tuning": "search",
    "memory": "memory_budget",
    "jobs": "n_jobs",
}
_WORDS: dict[str, dict[str, tuple[str, ...]]] = {  # that are not taken by all models
    "table": {"kernel": ("rbf", "exponential", "laplacian")},
    "fixed-size": {"reduction": REDUCTIONS},
    "dual": {"reduction": ("prune", "l0")},
}


def estimators_of(kind: str) -> tuple[Any, Any]:
    """Return classifier and regressor of a kind of model."""
    return {
        "fixed-size": (estimators.FixedSizeLSSVC, estimators.FixedSizeLSSVR),
        "table": (estimators.LSSVMClassifier, estimators.LSSVMRegressor),
        "dual": (estimators.LSSVC, estimators.LSSVR),
        "greedy": (estimators.GreedyLSSVC, estimators.GreedyLSSVR),
    }[kind]


def has_option(kind: str, option: str) -> bool:
    """Return whether a kind of model has an option: as a parameter, or of its preparation."""
    known = {name for each in estimators_of(kind) for name in inspect.signature(each).parameters}
    extra = {
        "fixed-size": {"support"},
        "greedy": {"support", "ordered"},
        "dual": {"device", "ordered"},
    }
    known |= extra.get(kind, set())
    return _PARAMETERS.get(option, option) in known and (kind, option) != ("table", "prototypes")


def model_options(options: Any) -> dict[str, Any]:
    """Return the options about the model that were given, by their names."""
    names = [*inspect.get_annotations(Fitting), *inspect.get_annotations(Modelling)]
    values = {name: vars(options).get(name) for name in names if name not in ("kind", "heading")}
    return {name: value for name, value in values.items() if value not in (None, (), [])}


def model_kind(options: Any) -> str:
    """Return the kind of model that the options ask for; "auto" is the table model.

    Raises
    ------
    InvalidInputError
        Where an option was given that this kind does not have.
    """
    chosen, kind = model_options(options), options.kind
    if kind == "auto":
        others = [name for name in chosen if name == "kernel" or not has_option("table", name)]
        kind = "fixed-size" if others else "table"
    for name in chosen:
        if not has_option(kind, name):
            have = [each for each in KINDS if has_option(each, name)]
            raise InvalidInputError(
                f"--{name.replace('_', '-')} is not an option of the {kind} model, but of "
                f"{' and '.join(have)}: omit it, or give --model {have[0]}."
            )
    return str(kind)


def sized_reduction(option: str, reduction: str, support: int) -> FixedSizeL0:
    """Return a reduction that leaves a given number; the printed ones end where C puts them.

    Examples
    --------
    >>> from lssvm.cli.models import sized_reduction
    >>> sized_reduction("reduction", "ssd", 20).size
    20
    """
    if reduction.endswith("-printed"):
        raise InvalidInputError(
            f"--{option} {reduction} leaves as many as the printed algorithm ends with, so "
            f"--support {support} is not possible: omit --support, or give "
            f"--{option} {reduction.removesuffix('-printed')}."
        )
    return FixedSizeL0(reduction, size=support)


def make_estimator(options: Any, classes: bool, kind: str = "fixed-size") -> Any:
    """Return the estimator, not fitted.

    Parameters
    ----------
    options : Fitting and Seeded, or Train
    classes : bool
        Whether it is a classifier.
    kind : {"fixed-size", "table", "dual", "greedy"}, default="fixed-size"
    """
    settings = model_options(options)
    for name in ("loss",) if classes else ("class_weight", "multiclass"):
        if name in settings:
            task = "a regression" if classes else "a classification"
            option = name.replace("_", "-")
            raise InvalidInputError(f"--{option} is for {task}, which this is not: omit it.")
    for name, choices in _WORDS.get(kind, {}).items():
        if name in settings and settings[name] not in choices:
            raise InvalidInputError(
                f"--{name} {settings[name]} is not known: give one of {', '.join(choices)}."
            )
    settings = {
        name: _READERS.get(name, str)(value) if isinstance(value, str) else value
        for name, value in settings.items()
    }
    orders, device = read_orders(settings.pop("ordered", ())), settings.pop("device", None)
    support = settings.pop("support", None)
    if kind == "table":
        settings |= {"ordered": orders or None}
    elif settings.get("intercept") == "penalised" and kind != "fixed-size":
        raise InvalidInputError(
            f"--intercept penalised is of the fixed-size model, not of the {kind} one: give "
            "--model fixed-size, or --intercept free or none."
        )
    elif kind == "dual":
        settings = {"C": "cv", "gamma": "cv", **settings}
    elif kind == "greedy":
        settings = {"C": "cv", "max_support": support, **settings}
    elif support is not None:
        name = settings.get("reduction", "spfs")
        settings["reduction"] = sized_reduction("reduction", name, support)
    if settings.pop("tuning", "joint") == "separate":
        settings["search"] = replace(make_search(settings.get("search", "path")), per_output=True)
    parameters = {_PARAMETERS.get(name, name): value for name, value in settings.items()}
    estimator = estimators_of(kind)[0 if classes else 1]
    model = estimator(random_state=options.seed, **parameters)
    if kind in ("dual", "greedy"):  # models of rows in memory, behind what makes numbers of a table
        target = "classes" if classes else "numbers"
        ready = TablePreparation(target=target, ordered=orders or None, random_state=options.seed)
        model = make_pipeline(ready, model)
    if device is not None:
        if "device" in model.get_params():
            model.set_params(device=device)
        elif device != "cpu":
            raise InvalidInputError(f"--device {device} is not available: only cpu is.")
    return model


def read_orders(texts: Any) -> dict[str, list[str]]:
    """Return the levels of ordered categories.

    Examples
    --------
    >>> from lssvm.cli.models import read_orders
    >>> read_orders(["size=S,M,L"])
    {'size': ['S', 'M', 'L']}
    """
    orders = {}
    for text in texts:
        name, sign, levels = text.partition("=")
        order = [level.strip() for level in levels.split(",")]
        if not (name and sign and all(order) and len(order) > 1):
            raise InvalidInputError(
                f"--ordered {text} is not usable: give COLUMN=LOW,...,HIGH, as in size=S,M,L."
            )
        orders[name.strip()] = order
    return orders


def number_or_word(name: str, value: str, words: tuple[str, ...], kind: Any) -> Any:
    """Return one of some words, or a positive number.

    Examples
    --------
    >>> from lssvm.cli.models import number_or_word
    >>> number_or_word("C", "cv", ("cv",), float), number_or_word("C", "2.5", ("cv",), float)
    ('cv', 2.5)
    """
    if value in words:
        return value
    try:
        number = kind(value)
    except ValueError:
        number = -1
    if not 0 < number < float("inf"):
        noun = "whole number" if kind is int else "number"
        raise InvalidInputError(
            f"--{name} {value} is not usable: give {', '.join(words)} or a positive {noun}."
        )
    return number


def _prototypes(value: str) -> Any:
    if value.rstrip().endswith("sqrt(n)"):  # which the estimator reads
        return value
    return number_or_word("prototypes", value, ("auto", "cv"), int)


def _folds(value: str) -> Any:
    folds = number_or_word("cv", value, (), float)
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


def _memory(value: str) -> str:
    as_bytes(value)
    return value


_READERS: dict[str, Callable[[str], Any]] = {
    "prototypes": _prototypes,
    "C": lambda value: number_or_word("C", value, ("cv",), float),
    "gamma": lambda value: number_or_word("gamma", value, ("cv", "ard", "scale", "auto"), float),
    "cv": _folds,
    "scoring": _scoring,
    "intercept": lambda value: _INTERCEPTS[value],
    "memory": _memory,
}
