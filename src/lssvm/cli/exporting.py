"""`lssvm info` and `lssvm export`: what a model file holds, and the model for other programs."""

from __future__ import annotations

import os
from typing import Annotated, Any

from typer import Argument

from lssvm.cli.evaluating import headline
from lssvm.cli.models import Loaded, last_step, load_model, prepared_table
from lssvm.cli.options import General, ModelFile


def info(model: ModelFile, general: General) -> None:
    """Say what a model file holds."""
    loaded, output = load_model(model), general.output
    facts = describe(model, loaded)
    rows = [[name.replace("_", " "), _text(value)] for name, value in facts.items()]
    output.table(os.path.basename(model), ["", ""], rows, left=(0, 1))
    test = loaded.card.get("test")
    if isinstance(test, dict):
        output.line(f"test {headline(test, str(loaded.card.get('tested') or 'held-out'))}")
    output.result({**facts, "card": loaded.card})


def describe(path: str, loaded: Loaded) -> dict[str, Any]:
    """Return what is known about a model."""
    from lssvm.io import read_header

    whole, card, header = loaded.model, loaded.card, read_header(path)
    model = last_step(whole)
    vectors = getattr(model, "support_vectors_", None)
    facts: dict[str, Any] = {
        "bytes": os.path.getsize(path),
        "model": type(model).__name__,
        "kernel": str(getattr(model, "kernel", "")),
        "C": getattr(model, "C_", None),
        "gamma": getattr(model, "gamma_", None),
        "support_vectors": None if vectors is None else len(vectors),
        "prototypes": getattr(model, "n_prototypes_", None),
    }
    for name in ("task", "target", "data", "rows", "cv_score", "cv_score_name", "seconds", "seed"):
        facts[name] = card.get(name)
    if hasattr(model, "classes_"):
        facts["classes"] = model.classes_.tolist()
    ready = prepared_table(whole)
    if hasattr(model, "configurations_"):
        lines = model.summary_.splitlines()
        facts["chosen"] = [line.strip().removeprefix("- ").rstrip(".") for line in lines]
    if ready is not None:
        used = [column for column in ready.columns if column.encoding is not None]
        facts["columns"] = {column.name: column.kind for column in used}
        facts["features"] = ready.n_features
    elif hasattr(model, "preparation_"):
        schema = model.preparation_.schema
        facts["columns"] = dict(zip(schema.names, schema.kinds, strict=True))
        facts["features"] = model.preparation_.n_features
    elif hasattr(whole, "feature_names_in_"):
        facts["columns"] = dict.fromkeys(map(str, whole.feature_names_in_), "number")
    for name in ("format", "version", "schema_sha256"):
        facts[name] = header.get(name)
    return {name: value for name, value in facts.items() if value is not None}


def export(
    model: ModelFile,
    out: Annotated[str, Argument(metavar="MODEL.onnx", help="The ONNX file to write.")],
    general: General,
) -> None:
    """Write a model as ONNX for other programs.

    The preparation of its columns is part of it: it has an input for every raw column.
    """
    from lssvm.cli.tables import check_writable
    from lssvm.onnx import export as write

    check_writable(out, (".onnx",), (model,))
    write(load_model(model).model, out)
    size = os.path.getsize(out)
    general.output.line(f"{out} written ({size / 1024:.1f} kB)")
    general.output.result({"model": model, "output": out, "bytes": size})


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} ({kind})" for name, kind in value.items())
    if isinstance(value, list):
        items = [str(item) for item in value]
        return ("; " if any(", " in item for item in items) else ", ").join(items)
    if isinstance(value, float):
        return f"{value:.5g}"
    return str(value)
