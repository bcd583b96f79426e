"""The methods by name: how each is made, what inputs it gets, how many rows at most.

Settings are the libraries' defaults unless ``settings`` says otherwise; nothing is chosen by test
rows. The inputs are equal for all of a kind:

"frame"
    the columns as they are;
"numbers"
    missing numbers are the training median, categories are indicators;
"standardised"
    the same with mean 0 and variance 1 over the training rows; for numbers to predict the target
    too, which methods with a penalty or a width need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from benchmarks.evidence.sets import Task

Inputs = Literal["frame", "numbers", "standardised"]
Group = Literal["ours", "boosting", "forest", "kernel", "other", "ablation", "variant"]


class NotThereError(Exception):
    """A method cannot be made with what is there: its record says so, as of a missing library."""


class Model(Protocol):
    """What a method makes; ``predict_proba`` and ``predict_interval`` are used where they exist."""

    def fit(self, X: Any, y: Any) -> Any:
        """Fit the rows."""
        ...

    def predict(self, X: Any) -> Any:
        """Return classes or numbers."""
        ...


@dataclass(frozen=True)
class Ask:
    """What a model is made for.

    Attributes
    ----------
    task : "classes" or "numbers"
    n_train : int
    n_classes : int
        1 for numbers.
    seed : int
    threads : int
    budget : float
        Seconds that a search for settings may take.
    shares : tuple of two floats
        Of the rarest and of the most frequent class.
    """

    task: Task
    n_train: int
    n_classes: int
    seed: int
    threads: int
    budget: float
    shares: tuple[float, float] = (1.0, 1.0)

    @property
    def numbers(self) -> bool:
        """Whether numbers are predicted."""
        return self.task == "numbers"


@dataclass(frozen=True)
class Method:
    """A method of the study.

    Attributes
    ----------
    name : str
        In records and on the command line.
    label : str
        In tables and pictures.
    group : str
    inputs : str
        See the module.
    make : callable
        From `Ask` to a `Model`; imports its library.
    settings : str
        In words, for the list of methods.
    needs : tuple of str
        Modules that have to be there.
    most_rows : int or None
        Trained on the first so many training rows; a record says so.
    tasks : tuple
        What it can predict.
    warm : bool
        Whether a few rows are fitted before the time is taken: what a library loads or compiles
        once in a process is not part of it.
    times_ours : float or None
        Its budget is so many times what `table` took on the same split.
    """

    name: str
    label: str
    group: Group
    inputs: Inputs
    make: Callable[[Ask], Any]
    settings: str = "defaults"
    needs: tuple[str, ...] = ()
    most_rows: int | None = None
    tasks: tuple[Task, ...] = ("classes", "numbers")
    warm: bool = True
    times_ours: float | None = None


def registry() -> dict[str, Method]:
    """Return all methods by name."""
    from benchmarks.evidence import ours, peers

    found = [*ours.METHODS, *peers.METHODS]
    by_name = {method.name: method for method in found}
    assert len(by_name) == len(found), "a name is there twice"
    return by_name


MAIN = (
    "table table-fast table-best fixed dual dual-tuned catboost catboost-native lightgbm xgboost "
    "histgb forest svm svm-tuned nusvm kernel-ridge nystroem gaussian-process mlp neighbours "
    "intelex-svm neo-ls-svm xrfm xrfm-tuned realmlp tabm skrub-histgb skrub-linear autogluon "
    "autogluon-ten himalaya thundersvm"
).split()
"""Methods of the comparison: ours with their defaults and presets, and the peers."""

QUICK = "table table-fast catboost-native lightgbm histgb forest svm-tuned".split()
"""Methods of the quick run."""

ABLATIONS = (
    "table-without-metric table-without-quantiles table-without-standardised "
    "table-without-gaussian table-without-exponential table-without-laplacian "
    "table-without-prototypes table-without-stacking table-without-ties table-without-rounds "
    "table-without-warps table-without-values table-without-log-loss table-without-logistic"
).split()
"""The model for tables with one ingredient taken away."""

TABLE_PEERS = (
    "table table-fast catboost-native lightgbm xgboost histgb forest svm-tuned xrfm realmlp tabm "
    "skrub-histgb skrub-linear autogluon autogluon-ten"
).split()
"""Methods of the comparison on real tables."""

VARIANTS = (
    "table-numbers table-parts-500 table-parts-1000 table-parts-2000 table-parts-4000 "
    "table-two-trees fixed-renyi fixed-kmeans fixed-rpcholesky fixed-float32 dual-float32"
).split()
"""Other settings of ours."""

GROUPS = {
    "main": MAIN,
    "peers": TABLE_PEERS,
    "quick": QUICK,
    "ablations": ABLATIONS,
    "variants": VARIANTS,
}


def named(wanted: list[str]) -> list[Method]:
    """Return methods by their names or those of groups ("main", "quick", "ablations", ...)."""
    known = registry()
    names = [n for w in wanted for n in (GROUPS.get(w) or (known if w == "all" else [w]))]
    strange = [n for n in names if n not in known]
    if strange:
        raise SystemExit(
            f"methods {strange} are not known: give some of {', '.join(known)}, or of the groups "
            f"{', '.join(GROUPS)} and all"
        )
    return [known[n] for n in dict.fromkeys(names)]
