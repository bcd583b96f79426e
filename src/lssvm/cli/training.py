"""`lssvm train` and `lssvm tune`: from a file to a tuned model."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lssvm._core.errors import InvalidInputError
from lssvm.cli.console import Output
from lssvm.cli.grouping import INTERRUPTED
from lssvm.cli.options import Columns, DataFile, Fitting, Reading, ReportFile, Seeded, TestShare

if TYPE_CHECKING:
    from lssvm.cli.looking import Look
    from lssvm.data import Scan


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model with the rows it was fitted to and those it was not.

    Attributes
    ----------
    model : estimator
    look : Look
    train, test : Scan, Scan or None
    seconds : float
    interrupted : bool
    """

    model: Any
    look: Look
    train: Scan
    test: Scan | None
    seconds: float
    interrupted: bool


def fit_look(
    look: Look,
    fitting: Fitting,
    general: Seeded,
    output: Output,
    test: float,
    test_scan: Scan | None = None,
) -> Fitted:
    """Fit a model to a data set, with a part of the rows held out.

    Raises
    ------
    KeyboardInterrupt
        Where it was interrupted before there was a model.
    """
    from lssvm.cli.parameters import make_estimator
    from lssvm.cli.progress import FitProgress

    model = make_estimator(fitting, look.classes, general.seed)
    output.note(f"lssvm: {look.told()}")
    for name, reason in look.left_out.items():
        output.note(f"lssvm: column {name!r} is left out: {reason}")
    train, held = look.scan(), test_scan
    if test_scan is None and test > 0.0:
        train, held = _split(look, test, general.seed)
    started = time.monotonic()
    with FitProgress(output, look.classes, fitting.scoring) as progress:
        model.fit(train)
    return Fitted(model, look, train, held, time.monotonic() - started, progress.stopped)


def train(
    data: DataFile,
    columns: Columns,
    model: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where the model is written.")
    ],
    reading: Reading,
    fitting: Fitting,
    general: Seeded,
    report: ReportFile = None,
    test: TestShare = 0.2,
    test_data: Annotated[
        str | None, typer.Option(metavar="FILE", help="Rows to test on, instead of --test.")
    ] = None,
    refit: Annotated[
        bool, typer.Option("--refit", help="Fit the tested model again, to all rows.")
    ] = False,
) -> None:
    """Train a tuned, tested model on a file.

    The task is judged by the target; columns of text become categories, missing values are filled
    in, numbers are standardised: all of that is stored in the model file. A fifth of the rows is
    held out for the accuracy that is printed. Ctrl-C saves the best model so far (exit code 130).
    """
    from lssvm.cli.looking import look
    from lssvm.cli.measuring import measure, model_scan
    from lssvm.cli.tables import check_writable, open_table

    output = general.output
    check_writable(model, inputs=(data,))
    check_writable(report, inputs=(data,))
    if report is not None and os.path.realpath(report) == os.path.realpath(model):
        raise InvalidInputError(f"{model} cannot be both the model and the report: name two files.")
    found = look(open_table(data, reading), columns)
    test_scan = None
    if test_data is not None:
        table = open_table(test_data, reading)
        table.need([found.target, *found.features], ", which the training data have")
        test_scan = replace(found, table=table).scan()
    fitted = fit_look(found, fitting, general, output, test, test_scan)
    metrics = None
    if fitted.test is not None and not fitted.interrupted:
        held = fitted.test
        if test_data is not None:
            held = model_scan(fitted.model, table, found.target, columns.weight)
            fitted = replace(fitted, test=held)
        try:
            metrics = measure(fitted.model, held)
        except KeyboardInterrupt:  # there is a model, which is not to be lost
            fitted = replace(fitted, interrupted=True)
    tested, notes = fitted, _notes(found)
    if refit and metrics is not None and not fitted.interrupted:
        fitted = _refit(fitted, output)
        notes.append("The model in the file was fitted again, to all rows; this is the tested one.")
    share = test if fitted.test is not None and test_data is None else 0.0
    again = fitted.model is not tested.model
    written = _write(fitted, metrics, model, data, columns, general, share, again)
    if fitted.interrupted:
        output.note(f"lssvm: interrupted; the best model so far is in {model}")
        output.result(written)
        raise typer.Exit(INTERRUPTED)
    if report is not None:
        _write_report(tested, report, notes, model, output)
        written["report"] = report
    _tell(output, fitted, metrics, model, report)
    output.result(written)


def tune(
    data: DataFile,
    columns: Columns,
    reading: Reading,
    fitting: Fitting,
    general: Seeded,
    model: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write the model, too.")
    ] = None,
    best: Annotated[int, typer.Option(min=1, help="How many settings are listed.")] = 10,
) -> None:
    """Search for the best C and gamma.

    By cross-validation on all rows of a file; the best settings are listed, with how they were
    found. A model is written only where -o asks for one.
    """
    from lssvm.cli.looking import look
    from lssvm.cli.tables import check_writable, open_table

    output = general.output
    check_writable(model, inputs=(data,))
    found = look(open_table(data, reading), columns)
    fitted = fit_look(found, fitting, general, output, 0.0)
    results = searched(fitted.model, best)
    if model is not None:
        _write(fitted, None, model, data, columns, general, 0.0, False)
    results |= {"seconds": fitted.seconds, "interrupted": fitted.interrupted, "model": model}
    names = ["rank", "C", "gamma", results["score_name"], "+-", "stage"]
    output.table(
        f"The best of {results['evaluations']} settings, by cross-validation",
        names,
        [
            [row[key] for key in ("rank", "C", "gamma", "score", "std", "stage")]
            for row in results["best"]
        ],
        left=(),
    )
    output.table(
        "How the best score was found",
        ["evaluations", "seconds", results["score_name"]],
        [[row["evaluations"], row["seconds"], row["score"]] for row in results["trace"]],
        left=(),
    )
    if model is not None:
        output.line(f"model written to {model}")
    output.result(results)
    if fitted.interrupted:
        raise typer.Exit(INTERRUPTED)


def searched(model: Any, best: int) -> dict[str, Any]:
    """Return the best settings of a search and how they were found."""
    import numpy as np

    if not hasattr(model, "cv_results_"):
        raise InvalidInputError(
            "Nothing was searched, because C and gamma are given: leave --C or --gamma out."
        )
    table = model.cv_results_
    order = np.argsort(table["rank_test_score"])[:best]
    rows = [
        {
            "rank": int(table["rank_test_score"][i]),
            "C": float(table["param_C"][i]),
            "gamma": float(table["param_gamma"][i]),
            "score": _score(model, float(table["mean_test_score"][i])),
            "std": float(table["std_test_score"][i]),
            "stage": str(table["stage"][i]),
        }
        for i in order
    ]
    trace = model.tuning_result_.trace
    better = np.diff(trace["best_loss"], prepend=np.inf) < 0
    steps = np.flatnonzero(better)
    steps = steps[np.diff(trace["seconds"][steps], append=np.inf) > 0]  # the best of each batch
    return {
        "score_name": _score_name(model),
        "score": _score(model, float(model.best_score_)),
        "C": model.C_,
        "gamma": model.gamma_,
        "prototypes": int(model.n_prototypes_),
        "evaluations": int(model.n_evaluations_),
        "best": rows,
        "trace": [
            {
                "evaluations": int(trace["n_evaluations"][i]),
                "seconds": float(trace["seconds"][i]),
                "score": _score(model, -float(trace["best_loss"][i])),
            }
            for i in steps
        ],
    }


def _write_report(fitted: Fitted, path: str, notes: list[str], model: str, output: Output) -> None:
    from lssvm.report import write_report

    look = fitted.look
    try:
        write_report(
            fitted.model,
            path,
            train=fitted.train,
            test=fitted.test,
            title=f"{look.target} from {os.path.basename(look.table.path)}",
            seconds={"fit": fitted.seconds},
            settings={"command": _command(), "task": look.told(), "notes": notes},
        )
    except KeyboardInterrupt as error:
        output.note(f"lssvm: interrupted; the model is in {model}, there is no report")
        raise typer.Exit(INTERRUPTED) from error


def _split(look: Look, share: float, seed: int) -> tuple[Scan, Scan | None]:
    """Hold out a share of the rows, where that leaves rows on both sides."""
    whole = look.scan()
    train, held = whole.split(share, seed=seed)
    if look.n_rows > 200 or 0 < held.n_rows < look.n_rows:
        return train, held
    return whole, None


def _command() -> list[str]:
    """Return the words of the command line, to repeat it."""
    import sys

    return ["lssvm", *sys.argv[1:]]


def _notes(look: Look) -> list[str]:
    left = [f"Column {name!r} is left out: {why}." for name, why in look.left_out.items()]
    return left


def _score_name(model: Any) -> str:
    if model.scoring is not None:
        return str(model.scoring)
    return "accuracy" if hasattr(model, "classes_") else "squared error"


def _score(model: Any, score: float) -> float:
    """Return a score of a search as people read it."""
    return 0.0 + (-score if model.scoring is None and not hasattr(model, "classes_") else score)


def _refit(fitted: Fitted, output: Output) -> Fitted:
    """Fit to all rows, at the gamma that was found; C is tuned again."""
    from sklearn.base import clone

    from lssvm.cli.progress import FitProgress

    model = clone(fitted.model)
    if isinstance(model.gamma, str):
        model.set_params(gamma=fitted.model.gamma_)
    everything = fitted.look.scan()
    try:
        with FitProgress(output, fitted.look.classes, model.scoring) as progress:
            model.fit(everything)
    except KeyboardInterrupt:  # the tested model is the best so far
        return replace(fitted, interrupted=True)
    return replace(fitted, model=model, train=everything, interrupted=progress.stopped)


def _write(
    fitted: Fitted,
    metrics: dict[str, Any] | None,
    path: str,
    data: str,
    columns: Columns,
    general: Seeded,
    test: float,
    refit: bool,
) -> dict[str, Any]:
    """Save the model with what was measured; return all of it."""
    from lssvm.cli.cards import save_model

    model, look = fitted.model, fitted.look
    card = {
        "task": look.task,
        "target": look.target,
        "weight": columns.weight,
        "data": os.path.basename(data),
        "rows": look.n_rows,
        "test_share": test,
        "refit": refit,
        "seed": general.seed,
        "seconds": fitted.seconds,
        "left_out": sorted(look.left_out),
        "cv_score": _score(model, model.best_score_) if hasattr(model, "best_score_") else None,
        "cv_score_name": _score_name(model),
        "test": metrics,
    }
    save_model(model, path, card)
    return {
        "model": path,
        "bytes": os.path.getsize(path),
        **card,
        "reason": look.reason,
        "interrupted": fitted.interrupted,
        "parameters": _settings(model),
    }


def _settings(model: Any) -> dict[str, Any]:
    """Return the parameters of a model and what tuning made of them."""
    return {
        **{key: value for key, value in model.get_params().items() if value is not None},
        "chosen_C": model.C_,
        "chosen_gamma": model.gamma_,
        "chosen_prototypes": int(model.n_prototypes_),
        "support_vectors": len(model.support_vectors_),
    }


def _tell(
    output: Output, fitted: Fitted, metrics: dict[str, Any] | None, path: str, report: str | None
) -> None:
    from lssvm.cli.console import shown
    from lssvm.cli.measuring import headline

    model = fitted.model
    size = os.path.getsize(path) / 1024
    chosen = [
        f"{name} = {shown(value) if isinstance(value, float) else 'one for each'}"
        for name, value in (("C", model.C_), ("gamma", model.gamma_))
        if value is not None  # a linear kernel has no gamma
    ]
    output.line(
        f"{', '.join(chosen)}, {len(model.support_vectors_)} support vectors, "
        f"{fitted.seconds:.1f} s"
    )
    if hasattr(model, "best_score_"):
        score = _score(model, float(model.best_score_))
        output.line(f"cross-validated {_score_name(model)} {shown(score)}")
    if metrics is not None:
        output.line(f"test {headline(metrics, held_out=True)}")
    output.line(f"model written to {path} ({size:.1f} kB)")
    if report is not None:
        output.line(f"report written to {report}")
