"""`lssvm reduce`: the same model with fewer support vectors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lssvm._core.errors import InvalidInputError
from lssvm.cli.option_groups import INTERRUPTED
from lssvm.cli.options import DataFile, General, ModelFile, Reading
from lssvm.cli.parameters import sized_reduction

if TYPE_CHECKING:
    from lssvm.cli.model_rows import Model


def reduce(
    model: ModelFile,
    data: DataFile,
    out: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where the smaller model goes.")
    ],
    reading: Reading,
    general: General,
    support: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Support vectors to keep; by default chosen."),
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="spfs|ssd|sv-l0", help="How prototypes are left out.")
    ] = "spfs",
    target: Annotated[str | None, typer.Option("--target", "-t", help="Column to predict.")] = None,
) -> None:
    """Make a model smaller.

    Shows the error against the number of support vectors and keeps as few as will do. DATA is what
    the model was trained on (the rows that were held out are held out again). Without --support the
    smallest model whose cross-validated squared error is within one standard error of the best is
    taken.
    """
    from sklearn.base import clone

    from lssvm.cli.evaluating import measure
    from lssvm.cli.model_cards import load_model, save_model
    from lssvm.cli.model_rows import is_classifier, model_scan
    from lssvm.cli.parameters import one_of
    from lssvm.cli.progress import FitProgress
    from lssvm.cli.tables import check_writable, open_table

    check_writable(out, inputs=(data,))
    one_of("method", method, ("spfs", "ssd", "sv-l0"))  # "sd" leaves out nothing
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
    table = open_table(data, reading)
    rows = model_scan(large, table, loaded.target(target), loaded.card.get("weight"))
    train, test = loaded.parts(table, rows)
    small = clone(large).set_params(
        n_prototypes=int(large.n_prototypes_),
        gamma=large.gamma_ if large.gamma_ is not None else large.gamma,
        reduction=method if support is None else sized_reduction(method, support),
    )
    output = general.output
    with FitProgress(output, is_classifier(large), small.scoring) as progress:
        small.fit(train)
    metrics = None if test is None else (measure(large, test), measure(small, test))
    card = {
        **loaded.card,
        "reduced_from": os.path.basename(model),
        "cv_score": getattr(small, "best_score_", None),
        "test": None if metrics is None else metrics[1],
    }
    save_model(small, out, card)
    paths = trade_off(small)
    output.table(
        "Cross-validated squared error against the number of support vectors",
        ["support vectors", "squared error", "+- standard error", ""],
        [[row["support"], row["error"], row["std_error"], row["mark"]] for row in paths],
        left=(3,),
    )
    sizes = [os.path.getsize(path) for path in (model, out)]
    counts = [len(large.support_vectors_), len(small.support_vectors_)]
    figures = ["", ""] if metrics is None else [_figure(part) for part in metrics]
    told = [
        [name, n, f"{size / 1024:.1f} kB", figure]
        for name, n, size, figure in zip(("before", "after"), counts, sizes, figures, strict=True)
    ]
    output.table("", ["", "support vectors", "file", "on held-out rows"], told)
    output.line(f"model of {counts[1]} support vectors written to {out}")
    output.result(
        {
            "model": out,
            "support_vectors": counts[1],
            "support_vectors_before": counts[0],
            "bytes": sizes[1],
            "bytes_before": sizes[0],
            "test": None if metrics is None else metrics[1],
            "test_before": None if metrics is None else metrics[0],
            "trade_off": paths,
            "interrupted": progress.stopped,
        }
    )
    if progress.stopped:
        raise typer.Exit(INTERRUPTED)


def trade_off(model: Model) -> list[dict[str, Any]]:
    """Return the sizes of a reduced model and their errors; empty where none was measured."""
    found = getattr(model, "sparsity_paths_", None)
    if not found:
        return []
    path, chosen = found[0], len(model.support_vectors_)
    return [
        {
            "support": int(size),
            "error": float(error),
            "std_error": float(std),
            "mark": "taken" if size == chosen else "",
        }
        for size, error, std in zip(path.sizes, path.mean, path.std_error, strict=True)
    ]


def _figure(metrics: dict[str, Any]) -> str:
    if "accuracy" in metrics:
        return f"accuracy {metrics['accuracy']:.2%}"
    return f"RMSE {metrics['rmse']:.4g}"
