"""The section that reproduces a model: settings, versions, columns, commands."""

from __future__ import annotations

import hashlib
import inspect
import json
import platform
import shlex
from collections.abc import Mapping
from contextlib import suppress
from itertools import dropwhile
from operator import not_
from typing import Any, NamedTuple

import numpy as np
import scipy
import sklearn
from sklearn.pipeline import Pipeline

from lssvm._core.errors import LSSVMError
from lssvm._core.version import __version__
from lssvm.data import CsvOptions, Scan
from lssvm.data.scanning import SplitReader
from lssvm.io.files import schema_hash
from lssvm.plots.base import Estimator
from lssvm.plots.rows import SampledRows, innermost_reader, is_table, parameters_of, preparation_of
from lssvm.report import html
from lssvm.report.refits import Subject
from lssvm.report.text import clean, duration, number
from lssvm.tuning.search import TuningResult

SPECIAL = ("command", "python", "warnings", "notes")
WIDTH = 60  # letters of a line of code that fit a narrow page
MEANINGS = {
    "C": "how closely training rows are followed",
    "gamma": "width of the kernel; larger is narrower",
    "n_prototypes": "prototypes before a reduction",
    "solver": "how the system was solved",
}


class Run(NamedTuple):
    """What a report is about besides the model: data as they were passed, and facts of the run."""

    train: Any
    test: Any = None
    title: str | None = None
    seconds: Mapping[str, float] = {}
    settings: Mapping[str, Any] = {}

    @property
    def command(self) -> str | None:
        """The command that was run, if one was."""
        command = self.settings.get("command")
        if command is None:
            return None
        return clean(command if isinstance(command, str) else shlex.join(map(str, command)))


def schema_digest(estimator: Estimator, rows: SampledRows, classes: Any = None) -> str:
    """Return a digest of the columns and the classes: that of a model file, if there can be one.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVC
    >>> from lssvm.report.reproduce import schema_digest
    >>> from lssvm.plots.rows import SampledRows
    >>> X, y = np.eye(2), np.array([0, 1])
    >>> model = LSSVC(gamma=1.0).fit(X, y)
    >>> len(schema_digest(model, SampledRows.read(model, (X, y)), [0, 1]))
    64
    """
    with suppress(LSSVMError):  # a pipeline, or a kernel that is a function
        return schema_hash(estimator)
    schema = {
        "names": list(rows.schema.names),
        "kinds": list(rows.schema.kinds),
        "target": list(rows.target),
        "classes": None if classes is None else [str(label) for label in classes],
    }
    return hashlib.sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()


def versions() -> dict[str, str]:
    """Return what ran, by name."""
    return {
        "lssvm": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
    }


def reproduce(subject: Subject, run: Run) -> html.Section:
    """Return the section of settings, versions, columns and commands.

    Parameters
    ----------
    subject : Subject
    run : Run
        See `lssvm.report.write_report`.
    """
    model = subject.model
    classes = subject.classes.classes if subject.classification else None
    digest = schema_digest(subject.estimator, subject.train, classes)
    params = dict(sorted(model.get_params(deep=False).items()))
    defaults = type(model)().get_params(deep=False)
    changed = {k: v for k, v in params.items() if _differs(v, defaults[k])}
    shown = {k: _text(v) for k, v in run.settings.items() if k not in SPECIAL}
    code = python_lines(subject, run)
    command = command_line(subject, run, changed)
    subject.facts |= {
        "versions": versions(),
        "schema_sha256": digest,
        "settings": shown,
        "parameters_given": {k: _text(v) for k, v in changed.items()},
        "python": code,
    }
    if command is not None:
        subject.facts["command"] = command
    body = [*commands(code, command), html.tag("h3", "Chosen parameters"), _chosen(subject)]
    if shown:
        body.append(listed("Settings of this run.", "Setting", shown))
    every = {name: _text(value) for name, value in params.items()}
    title = f"All parameters of {type(model).__name__}."
    body.append(html.details("All parameters", listed(title, "Parameter", every)))
    used = versions() | {"SHA-256 of the schema": digest}
    body.append(html.details("Versions", listed("Versions.", "Package", used)))
    return html.Section("reproduce", "Reproduce", "Reproduce", None, body)


def commands(code: str, command: str | None) -> list[html.Markup]:
    """Return how a model is fitted again, in Python and on the command line."""
    body = [html.tag("h3", "In Python"), code_block(code)]
    if command is not None:
        body += [html.tag("h3", "On the command line"), code_block(command)]
    return body


def time_spent(
    facts: dict[str, Any], seconds: Mapping[str, float], search: TuningResult | None
) -> html.Section | None:
    """Return the section of the time, and note it; None where it was not measured."""
    stages = {str(name): float(value) for name, value in seconds.items()}
    if not stages and search is not None and search.seconds > 0:
        stages = {"search for C and gamma": search.seconds}
    if not stages:
        return None
    facts["seconds"] = stages
    rows = [(name, spent, duration(spent)) for name, spent in stages.items()]
    whole = f"Time spent, {duration(sum(stages.values()))} in all."
    body = [html.bar_table(whole if len(rows) > 1 else "By stage.", ["Stage", "", "Time"], rows)]
    return html.Section("time", "Time spent", "Time", None, body)


def listed(caption: str, heading: str, values: Mapping[str, str]) -> html.Markup:
    """Return a table of names and values."""
    rows = [[name, html.tag("code", value)] for name, value in values.items()]
    return html.table(caption, [heading, "Value"], rows, class_=None)


def code_block(text: str) -> html.Markup:
    """Return lines of code."""
    return html.tag("pre", html.tag("code", text), tabindex="0")


def _differs(value: Any, default: Any) -> bool:
    try:
        return bool(np.any(np.asarray(value != default)))
    except (TypeError, ValueError):
        return True


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 12:
        return f"array of shape {value.shape}"
    text = repr(value.tolist() if isinstance(value, np.generic) else value)
    return clean(" ".join(text.split()))[:400]


def python_lines(subject: Subject, run: Run) -> str:
    """Return the lines that fit the model again and write its report.

    Where ``settings`` has lines of "python" that read the rows, they are completed; rows in memory
    are called X and y.
    """
    call, imports = constructor(subject.estimator)
    data, test, settings = run.train, run.test, run.settings
    rows = "train=train" + (", test=test" if test is not None else "")
    if "python" in settings:
        lines = str(settings["python"]).replace("{model}", call).splitlines()
    elif isinstance(data, Scan):
        imports.add("from lssvm import scan")
        scans = _scan_lines(subject, data, test)
        if "CsvOptions(" in "".join(scans):
            imports.add("from lssvm.data import CsvOptions")
        lines = [*scans, f"model = {call}.fit(train)"]
    else:
        lines = [f"model = {call}.fit(X, y)"]
        rows = "train=(X, y)" + (", test=(X_test, y_test)" if test is not None else "")
    label = subject.facts.get("pos_label")
    rows += f", pos_label={label!r}" if label is not None else ""
    lines.append(f'write_report(model, "report.html", {rows})')
    imports.add("from lssvm.report import write_report")
    first = [line for line in lines if line.startswith("from ")]
    rest = [line for line in lines if line not in first]
    return clean("\n".join([*sorted({*imports, *first}), "", *dropwhile(not_, rest)]))


def constructor(estimator: Estimator) -> tuple[str, set[str]]:
    """Return the expression that makes an estimator, not fitted, and what it needs imported."""
    if isinstance(estimator, Pipeline):
        steps, imports = [], {"from sklearn.pipeline import Pipeline"}
        for name, step in estimator.steps:
            inner, more = constructor(step)
            steps.append(f"    ({name!r}, {inner}),\n")
            imports |= more
        return f"Pipeline([\n{''.join(steps)}])", imports
    kind = type(estimator)
    imports = {_import_of(kind)}
    defaults = inspect.signature(kind).parameters
    arguments = []
    for key, value in sorted(estimator.get_params(deep=False).items()):
        if _differs(value, defaults[key].default):
            arguments.append(f"{key}={_text(value)}")
            if type(value).__module__.startswith("lssvm."):
                imports.add(_import_of(type(value)))
    call = f"{kind.__name__}({', '.join(arguments)})"
    if len(call) <= WIDTH:
        return call, imports
    return f"{kind.__name__}(\n" + "".join(f"    {each},\n" for each in arguments) + ")", imports


def _import_of(kind: type) -> str:
    """Return the line that imports a class from where it is documented."""
    parts = kind.__module__.split(".")
    root = "lssvm" if parts[:2] == ["lssvm", "estimators"] else ".".join(parts[:2])
    return f"from {root} import {kind.__name__}"


def _scan_lines(subject: Subject, data: Scan, test: Any) -> list[str]:
    """Return the lines that name the training rows and those to test on."""
    call = _scan_call(subject.train, data)
    if isinstance(data.reader, SplitReader):
        split = f"{call}.split({data.reader.share!r}, seed={data.reader.seed!r})"
        together = isinstance(test, Scan) and isinstance(test.reader, SplitReader)
        names = ["train", "test" if together else "_"]
        return [f"{', '.join(reversed(names) if data.reader.held_out else names)} = {split}"]
    lines = [f"train = {call}"]
    if isinstance(test, Scan) and subject.test is not None:
        lines.append(f"test = {_scan_call(subject.test, test, 'other_table')}")
    return lines


def _scan_call(rows: SampledRows, data: Scan, table: str = "table") -> str:
    def one_or_list(values: tuple[str, ...]) -> str:
        return repr(values[0] if len(values) == 1 else list(values))

    files, target = rows.files, rows.target
    text = [one_or_list(files) if files else table]
    if target:
        text.append(f"target={one_or_list(target)}")
    reader = vars(innermost_reader(data))
    for key in ("columns", "weight", "csv"):
        value = reader.get(key)
        if files and value is not None and value != CsvOptions():
            text.append(f"{key}={list(value) if isinstance(value, tuple) else value!r}")
    for key, default in (("missing", "fill"), ("prepare", True)):
        if (value := vars(data)[key]) != default:
            text.append(f"{key}={value!r}")
    return f"scan({', '.join(text)})"


def command_line(subject: Subject, run: Run, changed: dict[str, Any]) -> str | None:
    """Return the command that fits the model again; None where no plain one does."""
    if (command := run.command) is not None:
        return command
    reader = vars(run.train.reader) if isinstance(run.train, Scan) else {}
    extra = [reader.get(key) for key in ("columns", "weight", "held_out")]
    if set(changed) - {"random_state"} or any(value is not None for value in extra):
        return None
    files, target = subject.train.files, subject.train.target
    plain = preparation_of(subject.estimator) is None or is_table(subject.model)
    if plain or len(files) != 1 or len(target) != 1:
        return None
    text = ["lssvm", "train", files[0], "--target", target[0]]
    text += "-o model.lssvm --test 0 --report report.html".split()
    seed = subject.model.get_params(deep=False).get("random_state")
    if isinstance(seed, (int, np.integer)):
        text += ["--seed", str(int(seed))]
    return clean(shlex.join(text))


def _chosen(subject: Subject) -> html.Markup:
    rows = []
    for name, value in parameters_of(subject.model).items():
        text = value if isinstance(value, str) else _text(value)
        if np.ndim(value) > 0:
            text = f"{number(np.min(value))} to {number(np.max(value))} ({np.size(value)} values)"
        rows.append([f"{name}_", html.tag("code", text), MEANINGS[name]])
    if is_table(subject.model):
        return html.tag("pre", html.tag("code", subject.model.summary_), tabindex="0")
    kernel = _text(subject.model.get_params(deep=False).get("kernel"))
    rows.append(["kernel", html.tag("code", kernel), "similarity of rows"])
    title = f"What {type(subject.model).__name__} ended with."
    return html.table(title, ["Parameter", "Value", "What it is"], rows, class_=None)
