"""`lssvm train`, `lssvm tune` and `lssvm reduce`: from a file to a tuned model."""

from __future__ import annotations

import os
import sys
import textwrap
import time
import warnings
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer
from typer import Option

from lssvm._core.errors import ColumnWarning, InvalidInputError, LSSVMError
from lssvm.cli.console import Output, percent, shown
from lssvm.cli.models import (
    Model,
    fit_scan,
    is_classifier,
    last_step,
    learned,
    load_model,
    model_scan,
    prepared_table,
)
from lssvm.cli.options import (
    INTERRUPTED,
    OUTPUT,
    TARGET,
    TESTING,
    Columns,
    DataFile,
    Fitting,
    General,
    ModelFile,
    Modelling,
    Reading,
    Seeded,
    option,
)
from lssvm.cli.predicting import headlines, measure, metrics_of, write_onnx

if TYPE_CHECKING:
    from lssvm.cli.tables import HoldOut, Inspection, Table
    from lssvm.data import Scan

WITHOUT_REPORT = 1  # exit code: the model was written, its report was not
SHARE = 0.2  # of the rows that are held out
TINY = 100  # rows below which none are: figures are cross-validated
FEWEST = 10  # rows that can be cross-validated
MOST_ROWS = 2_000_000  # up to which the table model is the default
SUPPORT = 200  # vectors that a model for tables is compressed to
_COPIES = 12  # of the rows that the table model chooses by, in float64
_KEPT = 4  # of all rows that it keeps, in float32: configurations, and features of a column


@dataclass(frozen=True)
class Testing:
    """Which rows a model is tested on, and what becomes of the tested model."""

    heading: ClassVar[str] = TESTING

    report: str | None = option(None, "Write an HTML report.", "FILE")
    test: float | None = option(
        None, "Share of the rows held out (0.2); 0: none.", min=0.0, max=0.9
    )
    test_data: str | None = option(None, "Rows to test on, instead of --test.", "FILE")
    group: str | None = option(None, "Rows with the same value are held out together.", "COLUMN")
    by_time: str | None = option(
        None, "The last rows by this column are held out.", "COLUMN", ("--time",)
    )
    positive: str | None = option(
        None,
        "Of two classes, the one that precision, recall, curves and costs are about; the rarer.",
        "CLASS",
    )
    refit: bool = option(False, "Fit the tested model again, to all rows.", names=("--refit",))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model with the rows it was fitted to and those it was not.

    Attributes
    ----------
    model : estimator
    found : Inspection
    train, test : Scan, Scan or None
    rule : HoldOut or None
        How the rows to test on were held out.
    seconds : float
    interrupted : bool
    """

    model: Model
    inspected: Inspection
    train: Scan
    test: Scan | None
    rule: HoldOut | None
    seed: int
    seconds: float
    interrupted: bool

    @property
    def left_out(self) -> dict[str, str]:
        """Columns that the model does not use, and why."""
        ready = prepared_table(self.model)
        unused = () if ready is None else ready.columns
        own = {column.name: column.why for column in unused if column.encoding is None}
        return {**self.inspected.left_out, **own}

    @property
    def kind(self) -> str:
        """Which rows it is measured on."""
        return "held-out" if self.test is not None else "cross-validated"


def fit_rows(
    inspected: Inspection, model: Model, general: Seeded, rule: HoldOut | None = None
) -> Fitted:
    """Fit a model to a data set, with a part of the rows held out where a rule says which.

    Raises
    ------
    KeyboardInterrupt
        Where it was interrupted before there was a model.
    """
    output = general.output
    output.note(f"lssvm: {inspected.told()}")
    if inspected.without:
        many = "1 row has" if inspected.without == 1 else f"{inspected.without:,} rows have"
        left = "is" if inspected.without == 1 else "are"
        output.note(f"lssvm: {many} no target and {left} dropped")
    for name, reason in inspected.left_out.items():
        output.note(f"lssvm: column {name!r} is dropped: {reason}")
    train, test, groups = inspected.scan(), None, None
    if rule is not None:
        train, test = rule.split(inspected.table, train, inspected.target)
        if test is not None:
            output.note(f"lssvm: {test.n_rows:,} rows are held out: {rule.told()}")
            groups = _groups(model, inspected, rule)
        rule = rule if test is not None else None
    started = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)  # a line for each column follows
        stopped = fit_scan(model, train, output, inspected.classes, groups)
    seconds = time.monotonic() - started
    fitted = Fitted(model, inspected, train, test, rule, general.seed, seconds, stopped)
    for name, reason in fitted.left_out.items():
        if name not in inspected.left_out:
            output.note(f"lssvm: column {name!r} is dropped: {reason}")
    ready = prepared_table(model)
    for name, guess in ({} if ready is None else ready.guesses).items():
        output.note(f"lssvm: column {name!r}: {guess}")
    return fitted


def _groups(model: Model, inspected: Inspection, rule: HoldOut) -> Any:
    """Return the groups of the training rows; None for a model that deals rows one by one."""
    from lssvm.estimators import FixedSizeLSSVC, FixedSizeLSSVR

    if rule.by != "group" or isinstance(model, FixedSizeLSSVC | FixedSizeLSSVR):
        return None
    return rule.train_groups(inspected.table, inspected.scan(), inspected.target)


def train(
    data: DataFile,
    columns: Columns,
    model: Annotated[
        str, Option(*OUTPUT, metavar="FILE", help="Where the model is written; .onnx: as ONNX.")
    ],
    reading: Reading,
    modelling: Modelling,
    fitting: Fitting,
    general: Seeded,
    testing: Testing,
) -> None:
    """Train a tuned, tested model on a file.

    As in: lssvm train data.csv -t price -o price.lssvm --report price.html

    The target decides between classification and regression. Columns may hold text, dates and
    missing values; how they are encoded is stored in the model file. The default is the model for
    tables, a stack of exact models that needs no settings; --model chooses another. A fifth of the
    rows (the same share of every class) is held out to test the model; below 100 rows the metrics
    are cross-validated. Ctrl-C saves the best model so far (exit code 130).
    """
    from lssvm.cli.tables import check_writable, open_input

    report = testing.report
    check_writable(model, inputs=(data,))
    check_writable(report, inputs=(data,))
    if report is not None and os.path.realpath(report) == os.path.realpath(model):
        raise InvalidInputError(f"{model} cannot be both the model and the report: name two files.")
    if is_onnx(model):
        write_onnx(None, model)
    with open_input(data, reading, general.output.note) as table:
        _train(table, columns, model, reading, modelling, fitting, general, testing)


def _train(
    table: Table,
    columns: Columns,
    model: str,
    reading: Reading,
    modelling: Modelling,
    fitting: Fitting,
    general: Seeded,
    testing: Testing,
) -> None:
    """Fit, test and write a model of an open table, and a report."""
    from lssvm.cli.models import make_estimator, model_kind
    from lssvm.cli.tables import inspect_table, open_table

    output, report = general.output, testing.report
    test, test_data = testing.test, testing.test_data
    kind = model_kind(modelling, fitting)
    parted = [name for name in (testing.group, testing.by_time) if name is not None]
    if len(parted) > 1 or (parted and (test_data is not None or test == 0.0)):
        raise InvalidInputError(
            "--group and --time choose the rows that are held out: give one of them, and neither "
            "--test-data nor --test 0."
        )
    table.need(parted, ", by which rows are held out")
    columns = replace(columns, drop=[*columns.drop, *parted])
    inspected = inspect_table(table, columns, anything=kind != "fixed-size")
    if modelling.kind == "auto" and kind == "table":
        why = too_large(inspected, fitting.memory, testing.group is not None)
        if why and (modelling.preset is not None or modelling.time_limit is not None):
            raise InvalidInputError(
                f"{table.path}: {why}, so the default is the fixed-size model, which has no "
                "--preset and no --time-limit: give --model table or --model fixed-size."
            )
        if why:
            output.note(f"lssvm: {why}: the fixed-size model reads the rows block by block")
            kind, inspected = "fixed-size", inspect_table(table, columns)
    positive = inspected.positive(testing.positive)
    estimator = make_estimator(fitting, inspected.classes, general.seed, kind, modelling)
    rule = None
    tiny = test is None and not parted and test_data is None and inspected.n_rows < TINY
    if test_data is not None:
        other = open_table(test_data, reading)
        needed = [inspected.target, *inspected.features, inspected.weight]
        other.need([name for name in needed if name], ", which the training data have")
    elif not tiny and test != 0.0:
        share = SHARE if test is None else test
        rule = inspected.rule(share, general.seed, testing.group, testing.by_time)
    fitted = fit_rows(inspected, estimator, general, rule)
    if test_data is not None:
        held = model_scan(fitted.model, other, inspected.target, columns.weight)
        fitted = replace(fitted, test=held)
    metrics = None
    if not fitted.interrupted:
        try:
            if fitted.test is not None:
                metrics = measure(fitted.model, fitted.test, positive)
            elif tiny:
                metrics = cross_validate(fitted, output, positive)
        except KeyboardInterrupt:  # there is a model, which is not to be lost
            fitted = replace(fitted, interrupted=True)
    notes = _notes(fitted, metrics, output)
    tested = fitted
    if testing.refit and fitted.test is not None and metrics is not None:
        fitted = _refit(fitted, output)
        notes.append("The model in the file was fitted again, to all rows; this is the tested one.")
    refit = fitted.model is not tested.model
    written = _write(fitted, metrics, model, refit=refit, positive=positive)
    if fitted.interrupted:
        output.note(f"lssvm: interrupted; the best model so far is in {model}")
        output.result(written)
        raise typer.Exit(INTERRUPTED)
    failed = report is not None and not _write_report(
        tested, report, notes, positive, model, output, written, _code(tested, reading, test_data)
    )
    if report is None or failed:
        _warn_of_leaks(output, find_leaks(tested), inspected.classes)
    _tell(output, fitted, metrics, model, None if failed else report)
    output.result(written)
    if failed:
        raise typer.Exit(WITHOUT_REPORT)


def too_large(inspected: Inspection, memory: str | None, grouped: bool = False) -> str:
    """Say why rows are too many for the table model to be the default; "" where they are not.

    Parameters
    ----------
    inspected : Inspection
    memory : str or None
        The memory budget; None: that of the machine.
    grouped : bool, default=False
        Whether the model has to know groups, for which it needs all rows in memory.
    """
    from lssvm._core.blocks import as_bytes
    from lssvm.estimators import table_source

    n, d = inspected.n_rows, len(inspected.features)
    if n > MOST_ROWS:
        return f"more than {MOST_ROWS:,} rows"
    streamed = n > table_source.MANY  # it chooses by a sample and reads the others in blocks
    if streamed and grouped:
        return f"more than {table_source.MANY:,} rows, too many for groups"
    chosen = 8 * _COPIES * d * (table_source.SAMPLE if streamed else n)
    kept = 2 * 4 * _KEPT * d * n if streamed else 0  # at most half of the budget
    if max(chosen, kept) > as_bytes(memory):
        return f"the table model of {n:,} rows would need more memory than the budget"
    return ""


def is_onnx(path: str | None) -> bool:
    """Say whether a model is to be written as ONNX."""
    return path is not None and os.path.splitext(path)[1].lower() == ".onnx"


def find_leaks(fitted: Fitted) -> dict[str, float]:
    """Return the columns that predict the target almost alone, with their accuracy or R2."""
    from lssvm.plots.rows import SampledRows
    from lssvm.report.columns import LEAK_ROWS, leaks

    rows = SampledRows.read(fitted.model, fitted.train, LEAK_ROWS)
    return leaks(rows, fitted.inspected.classes)


def _warn_of_leaks(output: Output, found: Mapping[str, float], classes: bool) -> None:
    what = "of the rows correctly" if classes else "of the variance of the target"
    for name, share in found.items():
        output.note(
            f"lssvm: warning: column {name!r} alone predicts {percent(share)} {what}. It may be a "
            f"leak: check that it is known before the target, or train with --drop {name}"
        )


def cross_validate(fitted: Fitted, output: Output, positive: str | None) -> dict[str, Any] | None:
    """Return metrics of rows that are each predicted by a copy of the model without them."""
    from lssvm.plots.rows import SampledRows
    from lssvm.report.refits import out_of_fold

    n = fitted.inspected.n_rows
    if n < FEWEST:
        output.note(f"lssvm: {n} rows are too few to test the model")
        return None
    rows = SampledRows.read(fitted.model, fitted.train)
    try:
        predictions = out_of_fold(fitted.model, rows)[0]
    except InvalidInputError as error:
        output.note(f"lssvm: the model is not tested. {error}")
        return None
    output.note(f"lssvm: {n} rows are too few to hold some out: figures are cross-validated")
    return metrics_of(predictions, positive=positive)


def tune(
    data: DataFile,
    columns: Columns,
    reading: Reading,
    fitting: Fitting,
    general: Seeded,
    model: Annotated[str | None, Option(*OUTPUT, metavar="FILE", help="Write the model, too.")] = (
        None
    ),
    best: Annotated[int, Option(min=1, help="How many settings are listed.")] = 10,
) -> None:
    """Search for the best C and gamma.

    Of the fixed-size model, by cross-validation on all rows of a file; the best settings are
    listed, with how they were found. A model is written only where -o asks for one.
    """
    from lssvm.cli.models import make_estimator
    from lssvm.cli.tables import check_writable, inspect_table, open_table

    output = general.output
    check_writable(model, inputs=(data,))
    inspected = inspect_table(open_table(data, reading, output.note), columns)
    estimator = make_estimator(fitting, inspected.classes, general.seed)
    fitted = fit_rows(inspected, estimator, general)
    results = searched(fitted.model, best)
    if model is not None:
        _write(fitted, None, model)
    results |= {"seconds": fitted.seconds, "interrupted": fitted.interrupted, "model": model}
    score = results["score_name"]
    for title, names, rows in (
        (
            f"The best of {results['evaluations']} settings, by cross-validation",
            ["rank", "C", "gamma", score, "+-", "stage"],
            results["best"],
        ),
        ("How the best score was found", ["evaluations", "seconds", score], results["trace"]),
    ):
        output.table(title, names, [list(row.values()) for row in rows], left=())
    if model is not None:
        output.line(f"model written to {model}")
    output.result(results)
    if fitted.interrupted:
        raise typer.Exit(INTERRUPTED)


def searched(model: Model, best: int) -> dict[str, Any]:
    """Return the best settings of a search and how they were found."""
    import numpy as np

    if "cv_results_" not in learned(model):
        raise InvalidInputError(
            "Nothing was searched, because C and gamma are given: leave --C or --gamma out."
        )
    table = model.cv_results_
    rows = [
        {
            "rank": int(table["rank_test_score"][i]),
            "C": float(table["param_C"][i]),
            "gamma": float(table["param_gamma"][i]),
            "score": _score(model, float(table["mean_test_score"][i])),
            "std": float(table["std_test_score"][i]),
            "stage": str(table["stage"][i]),
        }
        for i in np.argsort(table["rank_test_score"])[:best]
    ]
    trace = model.tuning_result_.trace
    steps = np.flatnonzero(np.diff(trace["best_loss"], prepend=np.inf) < 0)
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


def _write_report(
    fitted: Fitted,
    path: str,
    notes: list[str],
    positive: str | None,
    model: str,
    output: Output,
    written: dict[str, Any],
    code: str,
) -> bool:
    """Write the report of a model that is written; say whether that was possible."""
    from lssvm.report import write_report

    inspected, command = fitted.inspected, ["lssvm", *sys.argv[1:]]
    try:
        facts = write_report(
            fitted.model,
            path,
            train=fitted.train,
            test=fitted.test,
            title=f"{inspected.target} from {os.path.basename(inspected.table.path)}",
            seconds={"fit": fitted.seconds},
            settings={
                "command": command,
                "python": code,
                "task": inspected.told(),
                "notes": notes,
            },
            pos_label=positive,
        )
    except KeyboardInterrupt as error:
        output.note(f"lssvm: interrupted; the model is in {model}, there is no report")
        raise typer.Exit(INTERRUPTED) from error
    except (LSSVMError, OSError, ValueError, MemoryError) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        output.note(f"lssvm: error: the model is in {model}, but its report failed: {text}")
        return False
    _warn_of_leaks(output, facts.get("data", {}).get("suspected_leaks", {}), inspected.classes)
    written["report"] = path
    return True


def _code(fitted: Fitted, reading: Reading, test_data: str | None) -> str:
    """Return lines of Python that read the same rows and fit the model, which reports complete."""
    from lssvm.cli.models import reads_scans

    inspected, rule, defaults = fitted.inspected, fitted.rule, asdict(Reading())
    read = {name: value for name, value in asdict(reading).items() if value != defaults[name]}
    how = f"Reading({', '.join(f'{name}={value!r}' for name, value in read.items())})"
    texts = [n for n in inspected.table.csv.types if n not in inspected.types]
    named = f".with_categories({texts!r})" if texts else ""
    names = ",\n".join(map(repr, inspected.features))  # names may hold spaces and hyphens
    target, weight = inspected.target, inspected.weight
    options = f", types={dict(inspected.types)!r}, max_categories={inspected.max_categories}"
    groups = rule is not None and _groups(fitted.model, inspected, rule) is not None
    used = ["open_table"] if rule is None else ["HoldOut", "open_table"]
    plain = reads_scans(fitted.model) and not groups
    models = ["fit_scan"] * (not plain) + ["model_scan"] * (test_data is not None)
    lines = ["from lssvm.cli.console import Output"] * (not plain)
    lines += [f"from lssvm.cli.models import {', '.join(models)}"] if models else []
    lines += [
        "from lssvm.cli.options import Reading",
        f"from lssvm.cli.tables import {', '.join(used)}",
        "",
        f"table = open_table({inspected.table.path!r}, {how}){named}",
        "columns = [",
        textwrap.indent(names, "    ") + ",",
        "]",
        f"train = table.scan({target!r}, columns, {weight!r}{options})",
    ]
    if rule is not None:
        lines += [
            f"rule = HoldOut({rule.share!r}, {rule.seed!r}, {rule.by!r}, {rule.column!r})",
            *([f"groups = rule.train_groups(table, train, {target!r})"] if groups else []),
            f"train, test = rule.split(table, train, {target!r})",
        ]
    if plain:
        lines.append("model = {model}.fit(train)")
    else:
        progress = f"Output(json=False, quiet=True), {inspected.classes}"
        lines += [
            "model = {model}",
            f"fit_scan(model, train, {progress}{', groups' if groups else ''})",
        ]
    if test_data is not None:
        other = f"open_table({test_data!r}, {how})"
        lines.append(f"test = model_scan(model, {other}, {target!r}, {weight!r})")
    return "\n".join(lines)


def _notes(fitted: Fitted, metrics: dict[str, Any] | None, output: Output) -> list[str]:
    """Return what the report should say; tell of classes that could not be tested."""
    inspected = fitted.inspected
    notes = [f"Column {name!r} is dropped: {why}." for name, why in fitted.left_out.items()]
    if inspected.table.told:
        notes.append(f"The file was read as {inspected.table.told}.")
    if inspected.without:
        notes.append(f"{inspected.without:,} rows of the file have no target and were dropped.")
    if fitted.rule is not None:
        notes.append(f"The test rows were held out of the file: {fitted.rule.told()}.")
    for entry in (metrics or {}).get("classes", ()):
        if not entry["rows"]:
            n = (inspected.labels or {}).get(entry["class"], 0)
            rows = "1 row" if n == 1 else f"{n} rows"
            output.note(f"lssvm: class {entry['class']!r} is too rare to be tested ({rows})")
    return notes


def _score_name(model: Model) -> str:
    scoring = last_step(model).get_params().get("scoring")
    if scoring is not None:
        return str(scoring)
    numbers = "R2" if "configurations_" in learned(model) else "squared error"
    return "accuracy" if is_classifier(model) else numbers


def _score(model: Model, score: float) -> float:
    """Return a score of a search as people read it."""
    return 0.0 + (-score if _score_name(model) == "squared error" else score)


def _refit(fitted: Fitted, output: Output) -> Fitted:
    """Fit to all rows, at the gamma that was found; C is tuned again."""
    from sklearn.base import clone

    model = clone(fitted.model)
    own, found = last_step(model), last_step(fitted.model)
    if isinstance(own.get_params(deep=False).get("gamma"), str):
        own.set_params(gamma=found.gamma_)
    everything = fitted.inspected.scan()
    try:
        stopped = fit_scan(model, everything, output, fitted.inspected.classes)
    except KeyboardInterrupt:  # the tested model is the best so far
        return replace(fitted, interrupted=True)
    return replace(fitted, model=model, train=everything, interrupted=stopped)


def _write(
    fitted: Fitted,
    metrics: dict[str, Any] | None,
    path: str,
    refit: bool = False,
    positive: str | None = None,
) -> dict[str, Any]:
    """Save the model with what was measured; return all of it."""
    from lssvm.io import save

    model, inspected, rule = fitted.model, fitted.inspected, fitted.rule
    own = last_step(model)
    card = {
        "task": inspected.task,
        "target": inspected.target,
        "weight": inspected.weight,
        "positive": positive,
        "data": os.path.basename(inspected.table.path),
        "missing": list(inspected.table.csv.null_values),
        "rows": inspected.n_rows,
        "rows_without_target": inspected.without,
        "test_share": 0.0 if rule is None else rule.share,
        "held_out": None if rule is None else asdict(rule),
        "refit": refit,
        "seed": fitted.seed,
        "seconds": fitted.seconds,
        "left_out": sorted(fitted.left_out),
        "cv_score": _score(model, own.best_score_) if "best_score_" in learned(own) else None,
        "cv_score_name": _score_name(model),
        "test": metrics,
        "tested": None if metrics is None else fitted.kind,
    }
    if is_onnx(path):
        write_onnx(model, path)
    else:
        save(model, path, metrics=card)
    return {
        "model": path,
        "bytes": os.path.getsize(path),
        **card,
        "reason": inspected.reason,
        "interrupted": fitted.interrupted,
        "parameters": {
            **{key: value for key, value in own.get_params().items() if value is not None},
            **_chosen(own),
        },
    }


def _tell(
    output: Output, fitted: Fitted, metrics: dict[str, Any] | None, path: str, report: str | None
) -> None:

    model = last_step(fitted.model)
    output.line(f"{_chosen_words(model)}, {fitted.seconds:.1f} s")
    if "best_score_" in learned(model):
        score, name = _score(model, float(model.best_score_)), _score_name(model)
        output.line(
            f"cross-validated {name} {percent(score) if name == 'accuracy' else shown(score)}"
        )
    for line in () if metrics is None else headlines(metrics, fitted.kind):
        output.line(f"test {line}")
    output.line(f"model written to {path} ({os.path.getsize(path) / 1024:.1f} kB)")
    if report is not None:
        output.line(f"report written to {report}")


def _chosen(model: Model) -> dict[str, Any]:
    """Return what a fit has chosen."""
    if "configurations_" in learned(model):
        table = model.configurations_
        columns = ("inputs", "kernel", "rounds", "weight", "error")
        rows = zip(*(table[name] for name in columns), strict=True)
        return {"configurations": [dict(zip(columns, row, strict=True)) for row in rows]}
    chosen = {"chosen_C": model.C_, "chosen_gamma": model.gamma_}
    if "n_prototypes_" in learned(model):
        chosen["chosen_prototypes"] = int(model.n_prototypes_)
    return {**chosen, "support_vectors": len(model.support_vectors_)}


def _chosen_words(model: Model) -> str:
    if "configurations_" in learned(model):
        return str(model.summary_).splitlines()[0].rstrip(".")
    chosen = [
        f"{name} = {shown(value) if isinstance(value, float) else 'one for each'}"
        for name, value in (("C", model.C_), ("gamma", model.gamma_))
        if value is not None  # a linear kernel has no gamma
    ]
    return f"{', '.join(chosen)}, {len(model.support_vectors_)} support vectors"


@dataclass(frozen=True)
class Reducing:
    """How small the model gets, and where it goes."""

    out: str = option(MISSING, "Where the smaller model goes.", "FILE", OUTPUT)
    support: int | None = option(
        None,
        "Support vectors to keep; by default chosen by cross-validation (model for tables: 200).",
        "N",
        min=1,
    )
    method: str | None = option(
        None,
        "How prototypes of a fixed-size model are removed; spfs.",
        "spfs|ssd|sv-l0|spfs-printed|ssd-printed|sv-l0-printed",
    )
    target: str | None = option(None, "Column to predict.", names=TARGET)


def reduce(
    model: ModelFile, data: DataFile, reading: Reading, general: General, reducing: Reducing
) -> None:
    """Make a model smaller.

    DATA is the file that the model was trained on; the rows that were held out are held out again.
    A model for tables becomes a sparse model of --support vectors that follows it (`compress`). A
    fixed-size model is reduced, with the error against the number of support vectors; without
    --support the smallest model whose cross-validated squared error is within one standard error
    of the best is taken.
    """
    from sklearn.base import clone

    from lssvm.cli.models import REDUCTIONS, one_of, sized
    from lssvm.cli.tables import check_writable, open_table
    from lssvm.estimators import FixedSizeLSSVC, FixedSizeLSSVR, LSSVMClassifier, LSSVMRegressor
    from lssvm.io import save
    from lssvm.plots.rows import support_size

    out, support, method = reducing.out, reducing.support, reducing.method
    check_writable(out, inputs=(data,))
    if method is not None:
        one_of("method", method, tuple(m for m in REDUCTIONS if m != "sd"))  # it removes nothing
    loaded = load_model(model)
    large, output = loaded.model, general.output
    if not isinstance(large, FixedSizeLSSVC | FixedSizeLSSVR | LSSVMClassifier | LSSVMRegressor):
        raise InvalidInputError(
            f"{model} holds a {type(large).__name__}: only fixed-size models and models for tables "
            "can be reduced."
        )
    fixed = isinstance(large, FixedSizeLSSVC | FixedSizeLSSVR)
    if not fixed and method is not None:
        raise InvalidInputError(
            f"--method {method} is for fixed-size models, but {model} holds a "
            f"{type(large).__name__}, which is compressed in its own way: leave --method out."
        )
    reduction: Any = method or "spfs"
    if fixed and support is not None:
        reduction = sized("method", reduction, support)
        if support > large.n_prototypes_:
            raise InvalidInputError(
                f"--support {support} is more than the {large.n_prototypes_} prototypes of the "
                "model."
            )
    table = open_table(data, reading, output.note)
    rows = model_scan(large, table, loaded.target(reducing.target), loaded.card.get("weight"))
    train, test = loaded.parts(table, rows)
    if fixed:
        small = clone(large).set_params(
            n_prototypes=int(large.n_prototypes_),
            gamma=large.gamma_ if large.gamma_ is not None else large.gamma,
            reduction=reduction,
        )
        stopped = fit_scan(small, train, output, is_classifier(large))
    else:
        whole = clone(large)  # a model file has no training rows
        groups = loaded.groups(table, rows)
        stopped = fit_scan(whole, train, output, is_classifier(large), groups)
        small = whole.compress(support or SUPPORT)
    positive = loaded.card.get("positive")
    before, after = (
        None if test is None else measure(each, test, positive) for each in (large, small)
    )
    card = {
        **loaded.card,
        "reduced_from": os.path.basename(model),
        "cv_score": learned(small).get("best_score_"),
        "test": after,
    }
    save(small, out, metrics=card)
    paths = trade_off(small) if fixed else []
    if fixed:
        output.table(
            "Cross-validated squared error against the number of support vectors",
            ["support vectors", "squared error", "+- standard error", ""],
            [list(row.values()) for row in paths],
            left=(3,),
        )
    sizes = [os.path.getsize(path) for path in (model, out)]
    counts = [support_size(each) for each in (large, small)]
    lines = zip(("before", "after"), counts, sizes, (before, after), strict=True)
    output.table(
        "",
        ["", "support vectors", "file", "on held-out rows"],
        [[name, n, f"{size / 1024:.1f} kB", _figure(test)] for name, n, size, test in lines],
    )
    output.line(f"model of {counts[1]} support vectors written to {out}")
    output.result(
        {
            "model": out,
            "support_vectors": counts[1],
            "support_vectors_before": counts[0],
            "bytes": sizes[1],
            "bytes_before": sizes[0],
            "test": after,
            "test_before": before,
            "trade_off": paths,
            "interrupted": stopped,
        }
    )
    if stopped:
        raise typer.Exit(INTERRUPTED)


def trade_off(model: Model) -> list[dict[str, Any]]:
    """Return the sizes of a reduced model and their errors; empty where none was measured."""
    chosen = len(model.support_vectors_)
    return [
        {
            "support": int(size),
            "error": float(error),
            "std_error": float(std),
            "mark": "taken" if size == chosen else "",
        }
        for path in (learned(model).get("sparsity_paths_") or [])[:1]
        for size, error, std in zip(path.sizes, path.mean, path.std_error, strict=True)
    ]


def _figure(metrics: dict[str, Any] | None) -> str:
    if metrics is None:
        return ""
    if "accuracy" in metrics:
        return f"accuracy {percent(metrics['accuracy'])}"
    return f"RMSE {shown(float(metrics['rmse']))}"
