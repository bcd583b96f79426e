"""The section for those who want the same model again: settings, versions, columns, commands."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from lssvm._core.errors import LSSVMError
from lssvm._core.version import __version__
from lssvm.data import CsvOptions, Scan
from lssvm.io.files import schema_hash
from lssvm.report.markup import Markup, clean, join, table, tag
from lssvm.report.rows import Rows
from lssvm.report.scales import count, number, short
from lssvm.report.subject import Section, Subject

SPECIAL = ("command", "warnings", "notes")
COLUMNS = 1200  # columns that are listed
WIDTH = 60  # letters of a line of code that fit a narrow page


def schema_digest(estimator: Any, rows: Rows, classes: Any = None) -> str:
    """Return a digest of the columns and the classes: that of a model file, if there can be one.

    Examples
    --------
    >>> import numpy as np
    >>> from lssvm import LSSVC
    >>> from lssvm.report.reproduce import schema_digest
    >>> from lssvm.report.rows import Rows
    >>> X, y = np.eye(2), np.array([0, 1])
    >>> model = LSSVC(gamma=1.0).fit(X, y)
    >>> len(schema_digest(model, Rows.read(model, (X, y)), [0, 1]))
    64
    """
    with suppress(LSSVMError):  # a pipeline, or a kernel that is a function
        return schema_hash(estimator)
    names = None if classes is None else [str(label) for label in classes]
    schema = {
        "names": list(rows.schema.names),
        "kinds": list(rows.schema.kinds),
        "target": list(rows.target),
        "classes": names,
    }
    text = json.dumps(schema, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


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


def reproduce(subject: Subject, data: Any, settings: Mapping[str, Any] | None) -> Section:
    """Return the section of settings, versions, columns and commands.

    Parameters
    ----------
    subject : Subject
    data : Scan or (X, y)
        The training rows as given.
    settings : mapping or None
        See `lssvm.report.write_report`.
    """
    settings = dict(settings or {})
    classes = subject.found.classes if subject.classification else None
    digest = schema_digest(subject.estimator, subject.train, classes)
    found = versions()
    model = subject.model
    params = {k: v for k, v in sorted(model.get_params(deep=False).items())}
    given = {k: v for k, v in params.items() if _differs(v, _defaults(model).get(k))}
    subject.facts["versions"] = found
    subject.facts["schema_sha256"] = digest
    subject.facts["settings"] = {k: _text(v) for k, v in settings.items() if k not in SPECIAL}
    subject.facts["parameters_given"] = {k: _text(v) for k, v in given.items()}
    parts: list[Any] = [
        tag("h3", "In Python"),
        _code(python_lines(subject, data, given)),
    ]
    command = command_line(subject, data, given, settings.get("command"))
    if command is not None:
        parts += [tag("h3", "On the command line"), _code(command)]
        subject.facts["command"] = command
    parts += [tag("h3", "Chosen parameters"), _chosen(subject)]
    shown = {k: v for k, v in settings.items() if k not in SPECIAL}
    if shown:
        rows = [[name, tag("code", _text(value))] for name, value in shown.items()]
        parts.append(table("Settings of this run.", ["Setting", "Value"], rows, numbers=False))
    rows = [[name, tag("code", _text(value))] for name, value in params.items()]
    all_of = table(
        f"All parameters of {type(model).__name__}.", ["Parameter", "Value"], rows, numbers=False
    )
    parts.append(tag("details", tag("summary", "All parameters"), all_of))
    lines = [[name, version] for name, version in found.items()]
    parts.append(
        tag(
            "details",
            tag("summary", "Versions"),
            table("What ran.", ["Package", "Version"], lines, numbers=False),
        )
    )
    parts.append(_columns(subject, digest))
    return Section("reproduce", "Make it again", "Reproduce", join(parts))


def _code(text: str) -> Markup:
    return tag("pre", tag("code", text), tabindex="0")


def _defaults(model: Any) -> dict[str, Any]:
    found: dict[str, Any] = type(model)().get_params(deep=False)
    return found


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


def python_lines(subject: Subject, data: Any, given: dict[str, Any]) -> str:
    """Return the lines that fit the model again."""
    name = type(subject.model).__name__
    arguments = [f"{key}={_text(value)}" for key, value in given.items()]
    made = f"{name}({', '.join(arguments)})"
    if len(made) > WIDTH:
        made = f"{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"
    imports = [name]
    lines = []
    if isinstance(subject.estimator, Pipeline):
        made = " ".join(repr(clone(subject.estimator)).split())
    if isinstance(data, Scan):
        imports.append("scan")
        lines.append(_scan_line(subject, data))
        lines.append(f"model = {made}.fit(data)")
    else:
        lines.append(f"model = {made}.fit(X, y)")
    head = [f"from lssvm import {', '.join(imports)}"]
    if "csv=CsvOptions(" in "".join(lines):
        head.append("from lssvm.data import CsvOptions")
    return clean("\n".join([*head, "", *lines]))


def _scan_line(subject: Subject, data: Scan) -> str:
    """Return the line that names the training rows, as a part of a file where they are one."""
    reader: Any = data.reader
    if not hasattr(reader, "held_out"):
        return f"data = {_scan_call(subject, data)}"
    parts = "_, data" if reader.held_out else "data, held_out"
    return f"{parts} = {_scan_call(subject, data)}.split({reader.share!r}, seed={reader.seed!r})"


def _scan_call(subject: Subject, data: Scan) -> str:
    files, target = subject.train.files, subject.train.target
    source = "data" if not files else repr(files[0] if len(files) == 1 else list(files))
    if source == "data":
        source = "table"
    options = []
    if target:
        options.append(f"target={target[0]!r}" if len(target) == 1 else f"target={list(target)!r}")
    reader: Any = data.reader
    while hasattr(reader, "reader"):
        reader = reader.reader
    for key in ("columns", "weight", "csv"):
        value = getattr(reader, key, None)
        if isinstance(value, CsvOptions):
            value = None if value == CsvOptions() else value
        if files and value is not None:
            options.append(f"{key}={list(value) if isinstance(value, tuple) else value!r}")
    for key, default in (("standardise", True), ("missing", "refuse"), ("max_categories", 64)):
        value = getattr(data, key)
        if value != default:
            options.append(f"{key}={value!r}")
    return f"scan({', '.join([source, *options])})"


def command_line(subject: Subject, data: Any, given: dict[str, Any], command: Any) -> str | None:
    """Return the command that fits the model again; None where no plain one does."""
    if command is not None:
        return clean(command if isinstance(command, str) else shlex.join(map(str, command)))
    reader = getattr(data, "reader", None)
    extra = [getattr(reader, key, None) for key in ("columns", "weight", "held_out")]
    if set(given) - {"random_state"} or any(value is not None for value in extra):
        return None
    files, target = subject.train.files, subject.train.target
    if len(files) != 1 or len(target) != 1 or not hasattr(subject.estimator, "preparation_"):
        return None
    words = ["lssvm", "train", files[0], "--target", target[0], "-o", "model.lssvm"]
    words += ["--test", "0", "--report", "report.html"]
    seed = getattr(subject.model, "random_state", None)
    if isinstance(seed, (int, np.integer)):
        words += ["--seed", str(int(seed))]
    return clean(shlex.join(words))


def _chosen(subject: Subject) -> Markup:
    model = subject.model
    rows = []
    for name, meaning in (
        ("C_", "how closely training rows are followed"),
        ("gamma_", "width of the kernel; larger is narrower"),
        ("n_prototypes_", "prototypes before a reduction"),
        ("solver_", "how the system was solved"),
    ):
        value = getattr(model, name, None)
        if value is None:
            continue
        if np.ndim(value) > 0:
            array = np.asarray(value, dtype=np.float64)
            said = f"{number(array.min())} to {number(array.max())} ({array.size} values)"
        else:
            said = value if isinstance(value, str) else _text(value)
        rows.append([name, tag("code", said), meaning])
    rows.append(
        ["kernel", tag("code", _text(getattr(model, "kernel", None))), "similarity of rows"]
    )
    head = ["Parameter", "Value", "What it is"]
    return table(f"What {type(model).__name__} ended with.", head, rows, numbers=False)


def _columns(subject: Subject, digest: str) -> Markup:
    """Return the table of the columns, with what was learned of them."""
    rows, ready = subject.train, getattr(subject.estimator, "preparation_", None)
    lines = []
    numbers, texts = iter(range(len(rows.schema.numbers))), iter(range(len(rows.schema.texts)))
    for name, kind in zip(rows.schema.names, rows.schema.kinds, strict=True):
        if kind == "number":
            j = next(numbers)
            values = rows.block.numbers[:, j]
            known = values[np.isfinite(values)]
            said = (
                "nothing known"
                if not known.size
                else (
                    f"{number(known.min())} to {number(known.max())}, mean {number(known.mean())}"
                )
            )
            missing = int((~np.isfinite(values)).sum())
        else:
            j = next(texts)
            column = rows.block.texts[j]
            levels = ready.categories[j] if ready is not None else column.levels
            names = ", ".join(short("missing" if c is None else c, 16) for c in levels[:6])
            said = f"{len(levels)} categories: {names}{', …' if len(levels) > 6 else ''}"
            missing = int((column.codes < 0).sum())
        said += f"; {count(missing)} missing" if missing else ""
        lines.append([short(name, 60), kind, said])
    seen = "" if rows.complete else f" (seen in {count(len(rows))} rows)"
    caption = f"Columns of the training rows{seen}; SHA-256 of the schema {digest[:16]}…"
    head = ["Column", "Kind", "What it holds"]
    summary = f"The {count(len(lines))} columns"
    inner = [table(caption, head, lines[:COLUMNS], numbers=False)]
    inner.append(tag("p", "Schema: ", tag("code", digest), class_="facts"))
    return tag("details", tag("summary", summary), inner)
