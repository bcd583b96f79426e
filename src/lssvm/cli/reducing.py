"""`lssvm reduce`: the same model with fewer support vectors."""

from __future__ import annotations

import os
from dataclasses import MISSING, dataclass
from typing import Any

import typer

from lssvm._core.errors import InvalidInputError
from lssvm.cli.evaluating import measure
from lssvm.cli.models import Model, fit_scan, is_classifier, load_model, model_scan
from lssvm.cli.option_groups import INTERRUPTED, option
from lssvm.cli.options import OUTPUT, TARGET, DataFile, General, ModelFile, Reading


@dataclass(frozen=True)
class Reducing:
    """How small the model gets, and where it goes."""

    out: str = option(MISSING, "Where the smaller model goes.", "FILE", OUTPUT)
    support: int | None = option(None, "Support vectors to keep; by default chosen.", "N", min=1)
    method: str = option(
        "spfs", "How prototypes are left out.", "spfs|ssd|sv-l0|spfs-printed|ssd-printed"
    )
    target: str | None = option(None, "Column to predict.", names=TARGET)


def reduce(
    model: ModelFile, data: DataFile, reading: Reading, general: General, reducing: Reducing
) -> None:
    """Make a model smaller.

    Shows the error against the number of support vectors and keeps as few as will do. DATA is what
    the model was trained on (the rows that were held out are held out again). Without --support the
    smallest model whose cross-validated squared error is within one standard error of the best is
    taken.
    """
    from sklearn.base import clone

    from lssvm.cli.parameters import REDUCTIONS, one_of, sized
    from lssvm.cli.tables import check_writable, open_table
    from lssvm.io import save

    out, support, method = reducing.out, reducing.support, reducing.method
    check_writable(out, inputs=(data,))
    one_of("method", method, tuple(m for m in REDUCTIONS if m != "sd"))  # it leaves out nothing
    reduction = method if support is None else sized("method", method, support)
    loaded = load_model(model)
    large = loaded.model
    if not hasattr(large, "sparsity_path"):
        raise InvalidInputError(
            f"{model} holds a {type(large).__name__}; only fixed-size models can be reduced."
        )
    if support is not None and support > large.n_prototypes_:
        raise InvalidInputError(
            f"--support {support} is more than the {large.n_prototypes_} prototypes of the model."
        )
    table = open_table(data, reading, general.output.note)
    rows = model_scan(large, table, loaded.target(reducing.target), loaded.card.get("weight"))
    train, test = loaded.parts(table, rows)
    small = clone(large).set_params(
        n_prototypes=int(large.n_prototypes_),
        gamma=large.gamma_ if large.gamma_ is not None else large.gamma,
        reduction=reduction,
    )
    output = general.output
    stopped = fit_scan(small, train, output, is_classifier(large))
    before, after = (None if test is None else measure(each, test) for each in (large, small))
    card = {
        **loaded.card,
        "reduced_from": os.path.basename(model),
        "cv_score": getattr(small, "best_score_", None),
        "test": after,
    }
    save(small, out, metrics=card)
    paths = trade_off(small)
    output.table(
        "Cross-validated squared error against the number of support vectors",
        ["support vectors", "squared error", "+- standard error", ""],
        [list(row.values()) for row in paths],
        left=(3,),
    )
    sizes = [os.path.getsize(path) for path in (model, out)]
    counts = [len(large.support_vectors_), len(small.support_vectors_)]
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
        for path in (getattr(model, "sparsity_paths_", None) or [])[:1]
        for size, error, std in zip(path.sizes, path.mean, path.std_error, strict=True)
    ]


def _figure(metrics: dict[str, Any] | None) -> str:
    if metrics is None:
        return ""
    if "accuracy" in metrics:
        return f"accuracy {metrics['accuracy']:.2%}"
    return f"RMSE {metrics['rmse']:.4g}"
