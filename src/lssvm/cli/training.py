"""`lssvm train`, `lssvm tune` and `lssvm reduce`: from a file to a tuned model."""

from __future__ import annotations

import os
import sys
import textwrap
import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import typer
from sklearn.base import clone

from lssvm._core.blocks import as_bytes
from lssvm._core.errors import ColumnWarning, InvalidInputError, LSSVMError
from lssvm.cli.console import Output, percent, shown
from lssvm.cli.models import (
    estimators_of,
    fit_scan,
    last_step,
    load_model,
    make_estimator,
    model_kind,
    model_scan,
    prepared_table,
    reads_scans,
    sized_reduction,
)
from lssvm.cli.options import INTERRUPTED, Reading, Reduce, Seeded, Train, Tune
from lssvm.cli.predicting import headlines, measure, metrics_of, write_onnx
from lssvm.cli.tables import (
    HoldOut,
    Inspection,
    Table,
    check_writable,
    inspect_table,
    open_input,
    open_table,
)
from lssvm.data import Scan
from lssvm.estimators import table_fit
from lssvm.io import save
from lssvm.plots.base import Estimator, fitted_attributes
from lssvm.plots.rows import SampledRows, classifies, is_table, support_size
from lssvm.report.columns import LEAK_ROWS, leaks
from lssvm.report.refits import out_of_fold

WITHOUT_REPORT = 1  # exit code: the model was written, its report was not
SHARE = 0.2  # of the rows that are held out
TINY = 100  # rows below which none are: metrics are cross-validated
FEWEST = 10  # rows that can be cross-validated
MOST_ROWS = 2_000_000  # up to which the table model is the default
SUPPORT = 200  # vectors that a model for tables is compressed to
_COPIES = 12  # of the rows that the table model chooses by, in float64
_KEPT = 4  # of all rows that it keeps, in float32: configurations, and features of a column


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model with the rows it was fitted to and those it was not.

    Attributes
    ----------
    model : estimator
    inspected : Inspection
    train, test : Scan, Scan or None
    rule : HoldOut or None
        How the rows to test on were held out.
    seed : int
    seconds : float
    interrupted : bool
    """

    model: Estimator
    inspected: Inspection
    train: Scan
    test: Scan | None
    rule: HoldOut | None
    seed: int
    seconds: float
    interrupted: bool

    @property
    def last(self) -> Estimator:
        """The model itself, behind a preparation."""
        return last_step(self.model)

    @property
    def dropped(self) -> dict[str, str]:
        """Columns that the model does not use, and why."""
        ready = prepared_table(self.model)
        unused = () if ready is None else ready.columns
        more = {column.name: column.why for column in unused if column.encoding is None}
        return {**self.inspected.dropped, **more}

    @property
    def kind(self) -> str:
        """Which rows it is measured on."""
        return "held-out" if self.test is not None else "cross-validated"

    @property
    def score_name(self) -> str:
        """What the score of its search is."""
        scoring = self.last.get_params().get("scoring")
        numbers = "R2" if is_table(self.last) else "squared error"
        return str(scoring or ("accuracy" if classifies(self.model) else numbers))

    def score(self, value: float) -> float:
        """Return a score of the search, a loss as a loss."""
        return 0.0 + (-value if self.score_name == "squared error" else value)

    @property
    def best_score(self) -> float | None:
        """Score of the chosen parameters; None where none were searched for."""
        best = fitted_attributes(self.last).get("best_score_")
        return None if best is None else self.score(float(best))

    @property
    def groups(self) -> Any:
        """Groups of the training rows; None without, or where the model assigns folds by rows."""
        if self.rule is None or isinstance(self.model, estimators_of("fixed-size")):
            return None
        inspected = self.inspected
        return self.rule.train_groups(inspected.table, inspected.scan(), inspected.target)


def fit_rows(
    inspected: Inspection, model: Estimator, options: Seeded, rule: HoldOut | None = None
) -> Fitted:
    """Fit a model to a data set, with the rows held out that a rule names.

    Raises
    ------
    KeyboardInterrupt
        Where it was interrupted before there was a model.
    """
    output = options.output
    output.note(f"{inspected.summary()}")
    if inspected.without:
        rows = f"{inspected.without:,} rows have no target and are dropped"
        output.note("1 row has no target and is dropped" if inspected.without == 1 else rows)
    _note_columns(output, inspected.dropped)
    train, test = inspected.scan(), None
    if rule is not None:
        train, test = rule.split(inspected.table, train, inspected.target)
        if test is not None:
            output.note(f"{test.n_rows:,} rows are held out: {rule.words()}")
    rule = None if test is None else rule
    fitted = Fitted(model, inspected, train, test, rule, options.seed, 0.0, False)
    groups, started = fitted.groups, time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnWarning)  # a line for each column follows
        stopped = fit_scan(model, train, output, inspected.classes, groups)
    fitted = replace(fitted, seconds=time.monotonic() - started, interrupted=stopped)
    dropped = {n: why for n, why in fitted.dropped.items() if n not in inspected.dropped}
    _note_columns(output, dropped)
    ready = prepared_table(model)
    for name, guess in ({} if ready is None else ready.guesses).items():
        output.note(f"column {name!r}: {guess}")
    return fitted


def _note_columns(output: Output, dropped: Mapping[str, str]) -> None:
    for name, reason in dropped.items():
        output.note(f"column {name!r} is dropped: {reason}")


def train(options: Train) -> None:
    """Train a tuned, tested model on a file."""
    out, report = options.out, options.report
    check_writable(out, inputs=(options.data,))
    check_writable(report, inputs=(options.data,))
    if report is not None and os.path.realpath(report) == os.path.realpath(out):
        raise InvalidInputError(f"{out} cannot be both the model and the report: name two files.")
    if is_onnx(out):
        write_onnx(None, out)
    with open_input(options.data, options, options.output.note) as table:
        _train(table, options)


def _train(table: Table, options: Train) -> None:
    """Fit, test and write a model of an open table, and a report."""
    output, test = options.output, options.test
    inspected, kind = _inspect(table, options)
    positive = inspected.positive(options.positive)
    estimator = make_estimator(options, inspected.classes, kind)
    parted = options.group is not None or options.by_time is not None
    tiny = test is None and not parted and options.test_data is None and inspected.n_rows < TINY
    rule = None
    if options.test_data is not None:
        other = open_table(options.test_data, options)
        needed = [inspected.target, *inspected.features, inspected.weight]
        other.need([name for name in needed if name], ", which the training data have")
    elif not tiny and test != 0.0:
        share = SHARE if test is None else test
        rule = inspected.rule(share, options.seed, options.group, options.by_time)
    fitted = fit_rows(inspected, estimator, options, rule)
    if options.test_data is not None:
        held = model_scan(fitted.model, other, inspected.target, options.weight)
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
    notes, tested = _report_notes(fitted, metrics, output), fitted
    if options.refit and fitted.test is not None and metrics is not None:
        fitted = _refit(fitted, output)
        notes.append("The model in the file was fitted again, to all rows; this is the tested one.")
    refit = fitted.model is not tested.model
    written = _write(fitted, metrics, options.out, refit=refit, positive=positive)
    if fitted.interrupted:
        output.note(f"interrupted; the best model so far is in {options.out}")
        output.result(written)
        raise typer.Exit(INTERRUPTED)
    suspected = None
    if options.report is not None:
        suspected = _write_report(tested, options, notes, positive)
    if suspected is not None:
        written["report"] = options.report
    leaking = find_leaks(tested) if suspected is None else suspected
    _warn_of_leaks(output, leaking, inspected.classes)
    _print_fit(output, fitted, metrics, options.out)
    if suspected is not None:
        output.line(f"report written to {options.report}")
    output.result(written)
    if options.report is not None and suspected is None:
        raise typer.Exit(WITHOUT_REPORT)


def _inspect(table: Table, options: Train) -> tuple[Inspection, str]:
    """Look at the rows, and return them with the kind of model that is fitted to them."""
    kind, columns = model_kind(options), [options.group, options.by_time]
    parted = [name for name in columns if name is not None]
    if len(parted) > 1 or (parted and (options.test_data is not None or options.test == 0.0)):
        raise InvalidInputError(
            "--group and --time choose the rows that are held out: give one of them, and neither "
            "--test-data nor --test 0."
        )
    if options.time_limit == 0.0:
        raise InvalidInputError("--time-limit 0 is not usable: give a number of seconds above 0.")
    table.need(parted, ", by which rows are held out")
    reduced = replace(options, drop=[*options.drop, *parted])
    inspected = inspect_table(table, reduced)
    if options.kind != "auto" or kind != "table":
        return inspected, kind
    reason = too_large(inspected, options.memory, options.group is not None)
    if not reason:
        return inspected, kind
    if options.preset is not None or options.time_limit is not None:
        raise InvalidInputError(
            f"{table.path}: {reason}, so the default is the fixed-size model, which has no "
            "--preset and no --time-limit: give --model table or --model fixed-size."
        )
    options.output.note(f"{reason}: the fixed-size model reads the rows block by block")
    return inspected, "fixed-size"


def too_large(inspected: Inspection, memory: str | None, grouped: bool = False) -> str:
    """Return why rows are too many for the table model to be the default; "" where they are not.

    Parameters
    ----------
    inspected : Inspection
    memory : str or None
        The memory budget; None: that of the machine.
    grouped : bool, default=False
        Whether the model has to know groups, for which it needs all rows in memory.
    """
    n, d = inspected.n_rows, len(inspected.features)
    if n > MOST_ROWS:
        return f"more than {MOST_ROWS:,} rows"
    streamed = n > table_fit.MANY  # it chooses by a sample and reads the others in blocks
    if streamed and grouped:
        return f"more than {table_fit.MANY:,} rows, too many for groups"
    chosen = 8 * _COPIES * d * (table_fit.SAMPLE if streamed else n)
    stored = 2 * 4 * _KEPT * d * n if streamed else 0  # at most half of the budget
    if max(chosen, stored) > as_bytes(memory):
        return f"the table model of {n:,} rows would need more memory than the budget"
    return ""


def is_onnx(path: str | None) -> bool:
    """Return whether a model is to be written as ONNX."""
    return path is not None and os.path.splitext(path)[1].lower() == ".onnx"


def find_leaks(fitted: Fitted) -> dict[str, float]:
    """Return the columns that predict the target almost alone, with their accuracy or R2."""
    return leaks(SampledRows.read(fitted.model, fitted.train, LEAK_ROWS), fitted.inspected.classes)


def _warn_of_leaks(output: Output, suspected: Mapping[str, float], classes: bool) -> None:
    predicted = "of the rows correctly" if classes else "of the variance of the target"
    for name, share in suspected.items():
        output.note(
            f"warning: column {name!r} alone predicts {percent(share)} {predicted}. It may be a "
            f"leak: check that it is known before the target, or train with --drop {name}"
        )


def cross_validate(fitted: Fitted, output: Output, positive: str | None) -> dict[str, Any] | None:
    """Return metrics of rows that are each predicted by a copy of the model without them."""
    n = fitted.inspected.n_rows
    if n < FEWEST:
        output.note(f"{n} rows are too few to test the model")
        return None
    try:
        rows = SampledRows.read(fitted.model, fitted.train)
        predictions = out_of_fold(fitted.model, rows)[0]
    except InvalidInputError as error:
        output.note(f"the model is not tested. {error}")
        return None
    output.note(f"{n} rows are too few to hold some out: metrics are cross-validated")
    return metrics_of(predictions, positive=positive)


def tune(options: Tune) -> None:
    """Search for the best C and gamma."""
    output = options.output
    check_writable(options.out, inputs=(options.data,))
    inspected = inspect_table(open_table(options.data, options, output.note), options)
    fitted = fit_rows(inspected, make_estimator(options, inspected.classes), options)
    results = search_results(fitted, options.best)
    if options.out is not None:
        _write(fitted, None, options.out)
    results |= {"seconds": fitted.seconds, "interrupted": fitted.interrupted, "model": options.out}
    score, title = fitted.score_name, f"The best of {results['evaluations']} settings"
    names = ["rank", "C", "gamma", score, "+-", "stage"]
    for heading, columns, rows in (
        (f"{title}, by cross-validation", names, results["best"]),
        ("How the best score was found", ["evaluations", "seconds", score], results["trace"]),
    ):
        output.table(heading, columns, [list(row.values()) for row in rows], left=())
    if options.out is not None:
        output.line(f"model written to {options.out}")
    output.result(results)
    if fitted.interrupted:
        raise typer.Exit(INTERRUPTED)


def search_results(fitted: Fitted, best: int) -> dict[str, Any]:
    """Return the best settings of a search and how they were found."""
    model = fitted.model
    if "cv_results_" not in fitted_attributes(model):
        raise InvalidInputError(
            "Nothing was searched, because C and gamma are options: omit --C or --gamma."
        )
    table, trace = model.cv_results_, model.tuning_result_.trace
    steps = np.flatnonzero(np.diff(trace["best_loss"], prepend=np.inf) < 0)
    steps = steps[np.diff(trace["seconds"][steps], append=np.inf) > 0]  # the best of each batch
    return {
        "score_name": fitted.score_name,
        "score": fitted.best_score,
        "C": model.C_,
        "gamma": model.gamma_,
        "prototypes": int(model.n_prototypes_),
        "evaluations": int(model.n_evaluations_),
        "best": [
            {
                "rank": int(table["rank_test_score"][i]),
                "C": float(table["param_C"][i]),
                "gamma": float(table["param_gamma"][i]),
                "score": fitted.score(float(table["mean_test_score"][i])),
                "std": float(table["std_test_score"][i]),
                "stage": str(table["stage"][i]),
            }
            for i in np.argsort(table["rank_test_score"])[:best]
        ],
        "trace": [
            {
                "evaluations": int(trace["n_evaluations"][i]),
                "seconds": float(trace["seconds"][i]),
                "score": fitted.score(-float(trace["best_loss"][i])),
            }
            for i in steps
        ],
    }


def _write_report(
    fitted: Fitted, options: Train, notes: list[str], positive: str | None
) -> dict[str, float] | None:
    """Write the report of a model that is written; return suspected leaks, or None if it failed."""
    from lssvm import report

    inspected = fitted.inspected
    settings = {
        "command": ["lssvm", *sys.argv[1:]],
        "python": _python_code(fitted, options),
        "task": inspected.summary(),
        "notes": notes,
    }
    try:
        facts = report.write_report(
            fitted.model,
            str(options.report),
            train=fitted.train,
            test=fitted.test,
            title=f"{inspected.target} from {os.path.basename(inspected.table.path)}",
            seconds={"fit": fitted.seconds},
            settings=settings,
            pos_label=positive,
        )
    except KeyboardInterrupt as error:
        options.output.note(f"interrupted; the model is in {options.out}, there is no report")
        raise typer.Exit(INTERRUPTED) from error
    except (LSSVMError, OSError, ValueError, MemoryError) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        failed = f"the model is in {options.out}, but its report failed"
        options.output.note(f"error: {failed}: {text}")
        return None
    suspected: dict[str, float] = facts.get("data", {}).get("suspected_leaks", {})
    return suspected


def _python_code(fitted: Fitted, options: Train) -> str:
    """Return lines of Python that read the same rows and fit the model, which reports complete."""
    inspected, rule, test_data = fitted.inspected, fitted.rule, options.test_data
    read = {
        one.name: value
        for one in fields(Reading)
        if (value := vars(options)[one.name]) != one.default
    }
    how = f"Reading({', '.join(f'{name}={value!r}' for name, value in read.items())})"
    texts = [n for n in inspected.table.csv.types if n not in inspected.types]
    named = f".with_categories({texts!r})" if texts else ""
    names = ",\n".join(map(repr, inspected.features))  # names may hold spaces and hyphens
    target, weight, groups = inspected.target, inspected.weight, fitted.groups is not None
    types = f", types={dict(inspected.types)!r}"
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
        f"train = table.scan({target!r}, columns, {weight!r}{types})",
    ]
    if rule is not None:
        lines.append(f"rule = HoldOut({rule.share!r}, {rule.seed!r}, {rule.by!r}, {rule.column!r})")
        lines += [f"groups = rule.train_groups(table, train, {target!r})"] if groups else []
        lines.append(f"train, test = rule.split(table, train, {target!r})")
    if plain:
        lines.append("model = {model}.fit(train)")
    else:
        progress = f"Output(json=False, quiet=True), {inspected.classes}"
        lines.append("model = {model}")
        lines.append(f"fit_scan(model, train, {progress}{', groups' if groups else ''})")
    if test_data is not None:
        other = f"open_table({test_data!r}, {how})"
        lines.append(f"test = model_scan(model, {other}, {target!r}, {weight!r})")
    return "\n".join(lines)


def _report_notes(fitted: Fitted, metrics: dict[str, Any] | None, output: Output) -> list[str]:
    """Return notes for the report; print classes that could not be tested."""
    inspected = fitted.inspected
    notes = [f"Column {name!r} is dropped: {why}." for name, why in fitted.dropped.items()]
    if inspected.table.reading:
        notes.append(f"The file was read as {inspected.table.reading}.")
    if inspected.without:
        notes.append(f"{inspected.without:,} rows of the file have no target and were dropped.")
    if fitted.rule is not None:
        notes.append(f"The test rows were held out of the file: {fitted.rule.words()}.")
    for entry in (metrics or {}).get("classes", ()):
        if not entry["rows"]:
            n = (inspected.labels or {}).get(entry["class"], 0)
            rows = "1 row" if n == 1 else f"{n} rows"
            output.note(f"class {entry['class']!r} is too rare to be tested ({rows})")
    return notes


def _refit(fitted: Fitted, output: Output) -> Fitted:
    """Fit to all rows, at the gamma that was found; C is tuned again."""
    model = clone(fitted.model)
    last = last_step(model)
    if isinstance(last.get_params(deep=False).get("gamma"), str):
        last.set_params(gamma=fitted.last.gamma_)
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
    """Save the model with its metrics; return all that is known of it."""
    inspected, rule = fitted.inspected, fitted.rule
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
        "left_out": sorted(fitted.dropped),
        "cv_score": fitted.best_score,
        "cv_score_name": fitted.score_name,
        "test": metrics,
        "tested": None if metrics is None else fitted.kind,
    }
    if is_onnx(path):
        write_onnx(fitted.model, path)
    else:
        save(fitted.model, path, metrics=card)
    set_params = {k: value for k, value in fitted.last.get_params().items() if value is not None}
    return {
        "model": path,
        "bytes": os.path.getsize(path),
        **card,
        "reason": inspected.reason,
        "interrupted": fitted.interrupted,
        "parameters": set_params | _chosen_parameters(fitted.last),
    }


def _chosen_parameters(model: Estimator) -> dict[str, Any]:
    """Return what a fit has chosen."""
    if is_table(model):
        columns = ("scaling", "kernel", "rounds", "weight", "error")
        rows = zip(*(model.configurations_[name] for name in columns), strict=True)
        return {"configurations": [dict(zip(columns, row, strict=True)) for row in rows]}
    chosen = {"chosen_C": model.C_, "chosen_gamma": model.gamma_}
    if "n_prototypes_" in fitted_attributes(model):
        chosen["chosen_prototypes"] = int(model.n_prototypes_)
    return {**chosen, "support_vectors": len(model.support_vectors_)}


def _print_fit(output: Output, fitted: Fitted, metrics: dict[str, Any] | None, path: str) -> None:
    """Print the lines about a model that was written."""
    model, score = fitted.last, fitted.best_score
    if is_table(model):
        chosen = [str(model.summary_).splitlines()[0].rstrip(".")]
    else:
        values = {"C": model.C_, "gamma": model.gamma_}
        chosen = [
            f"{name} = {shown(value) if isinstance(value, float) else 'one for each'}"
            for name, value in values.items()
            if value is not None  # a linear kernel has no gamma
        ]
        chosen.append(f"{len(model.support_vectors_)} support vectors")
    output.line(f"{', '.join(chosen)}, {fitted.seconds:.1f} s")
    if score is not None:
        text = percent(score) if fitted.score_name == "accuracy" else shown(score)
        output.line(f"cross-validated {fitted.score_name} {text}")
    for line in () if metrics is None else headlines(metrics, fitted.kind):
        output.line(f"test {line}")
    output.line(f"model written to {path} ({os.path.getsize(path) / 1024:.1f} kB)")


def reduce(options: Reduce) -> None:
    """Make a model smaller."""
    output, out, support, method = options.output, options.out, options.support, options.method
    check_writable(out, inputs=(options.data,))
    loaded = load_model(options.model)
    large, fixed = loaded.model, isinstance(loaded.model, estimators_of("fixed-size"))
    if not (fixed or isinstance(large, estimators_of("table"))):
        raise InvalidInputError(
            f"{options.model} holds a {type(large).__name__}: only fixed-size models and models "
            "for tables can be reduced."
        )
    if not fixed and method is not None:
        raise InvalidInputError(
            f"--method {method} is for fixed-size models, but {options.model} holds a "
            f"{type(large).__name__}, which is compressed in its own way: leave --method out."
        )
    reduction: Any = method or "spfs"
    if fixed and support is not None:
        reduction = sized_reduction("method", reduction, support)
        if support > large.n_prototypes_:
            raise InvalidInputError(
                f"--support {support} is more than the {large.n_prototypes_} prototypes of the "
                "model."
            )
    table = open_table(options.data, options, output.note)
    rows = model_scan(large, table, loaded.target(options.target), loaded.card.get("weight"))
    train, test = loaded.parts(table, rows)
    small = clone(large)  # a model file has no training rows
    if fixed:
        gamma = large.gamma_ if large.gamma_ is not None else large.gamma
        size = {"n_prototypes": int(large.n_prototypes_), "gamma": gamma}
        small.set_params(reduction=reduction, **size)
        stopped = fit_scan(small, train, output, classifies(large))
    else:
        groups = loaded.groups(table, rows)
        stopped = fit_scan(small, train, output, classifies(large), groups)
        small = small.compress(support or SUPPORT)
    positive = loaded.card.get("positive")
    both = large, small
    before, after = (None if test is None else measure(one, test, positive) for one in both)
    score = fitted_attributes(small).get("best_score_")
    card = {"reduced_from": os.path.basename(options.model), "cv_score": score, "test": after}
    save(small, out, metrics=loaded.card | card)
    paths = trade_off(small) if fixed else []
    if fixed:
        output.table(
            "Cross-validated squared error against the number of support vectors",
            ["support vectors", "squared error", "+- standard error", ""],
            [list(row.values()) for row in paths],
            left=(3,),
        )
    sizes = [os.path.getsize(path) for path in (options.model, out)]
    counts = [support_size(one) for one in both]
    lines = zip(("before", "after"), counts, sizes, (before, after), strict=True)
    output.table(
        "",
        ["", "support vectors", "file", "on held-out rows"],
        [[name, n, f"{size / 1024:.1f} kB", _score(metrics)] for name, n, size, metrics in lines],
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


def trade_off(model: Estimator) -> list[dict[str, Any]]:
    """Return the sizes of a reduced model and their errors; empty where none was measured."""
    chosen = len(model.support_vectors_)
    return [
        {
            "support": int(size),
            "error": float(error),
            "std_error": float(std),
            "mark": "taken" if size == chosen else "",
        }
        for path in (fitted_attributes(model).get("sparsity_paths_") or [])[:1]
        for size, error, std in zip(path.sizes, path.mean, path.std_error, strict=True)
    ]


def _score(metrics: dict[str, Any] | None) -> str:
    if metrics is None:
        return ""
    if "accuracy" in metrics:
        return f"accuracy {percent(metrics['accuracy'])}"
    return f"RMSE {shown(float(metrics['rmse']))}"
