"""The section of the tuning: the surface over C and gamma, and the way the search took."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.interpolate import LinearNDInterpolator

from lssvm._core.arrays import FloatArray
from lssvm.plots import TuningSurfaceDisplay
from lssvm.plots.tuning_surface import KEYS, WIDE
from lssvm.report.charts import Chart, figure
from lssvm.report.markup import Markup, join, table, tag
from lssvm.report.scales import count, duration, number, percent
from lssvm.report.subject import Section, Subject

LEVELS = 12
CELLS = (110, 80)


def search(subject: Subject) -> Section | None:
    """Return the section of the tuning; None where nothing was tuned."""
    model = subject.model
    results = getattr(model, "cv_results_", None)
    subject.facts["parameters"] = {
        name[:-1]: _plain(getattr(model, name))
        for name in ("C_", "gamma_", "n_prototypes_")
        if getattr(model, name, None) is not None
    }
    if results is None:
        return None
    if isinstance(results, list):
        words = (
            f"Each of the {len(results)} binary problems was tuned by itself, with a C and a gamma "
            "of its own."
        )
        return Section("tuning", "How it was tuned", "Tuning", tag("p", words, class_="why"))
    body: list[Any] = [tag("p", _words(subject, results), class_="why")]
    if all(key in results for key in KEYS):
        display = TuningSurfaceDisplay(results)
        _edge_notes(subject, display)
        tuned = [np.unique(v[np.isfinite(v)]).size > 1 for v in (display.C, display.gamma)]
        if all(tuned) and _spans(display):
            body.append(_surface(subject, display))
        elif any(tuned):
            body.append(_curve(subject, display, "C" if tuned[0] else "gamma"))
    else:
        body.append(_plain_curve(subject, results))
    body.append(_sizes(model))
    return Section("tuning", "How it was tuned", "Tuning", join(body))


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int)) else np.asarray(value, dtype=float).tolist()


def _words(subject: Subject, results: dict[str, Any]) -> str:
    model = subject.model
    evaluated = getattr(model, "n_evaluations_", len(results["mean_test_score"]))
    record = getattr(model, "tuning_result_", None)
    score = float(getattr(model, "best_score_", np.nan))
    scoring = getattr(model, "scoring", None)
    words = (
        "C sets how closely the model follows the training rows, gamma how far one row reaches. "
    )
    words += f"{count(evaluated)} settings were tried"
    if record is not None and not isinstance(record, list) and record.seconds > 0:
        words += f" in {duration(record.seconds)}"
    cv = getattr(model, "cv", None)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        words += f", each by {cv}-fold cross-validation on the training rows alone"
    words += ". "
    if scoring is None and np.isfinite(score):
        if subject.classification and 0.0 <= 1.0 + score <= 1.0 and score <= 0.0:
            words += f"The chosen one is right for {percent(1.0 + score)} of the rows left out."
        elif subject.classification:
            words += f"The chosen one is right for {percent(score)} of the rows left out."
        else:
            loss, what = -score, "loss"
            if getattr(model, "loss", "squared") == "squared" and loss >= 0:
                loss, what = float(np.sqrt(loss)), "root mean squared error"
            words += f"The {what} of the chosen one on the rows left out is {number(loss)}."
    if getattr(record, "interrupted", False):
        subject.notes.append("Tuning was interrupted; the best parameters so far were used.")
    return words


def _spans(display: TuningSurfaceDisplay) -> bool:
    x, y = np.log10(display.C), np.log10(display.gamma)
    return bool(np.linalg.matrix_rank(np.column_stack([x - x[0], y - y[0]]), tol=1e-6) == 2)


def _shown(display: TuningSurfaceDisplay) -> tuple[FloatArray, str, FloatArray]:
    """Return what is drawn for a score, its name, and how good it is from 0 to 1."""
    loss = bool((display.scores <= 0).all())
    values = -display.scores if loss else display.scores
    scaled = values
    if values.min() > 0 and values.max() > WIDE * values.min():
        scaled = np.log(values)
    span = float(np.ptp(scaled)) or 1.0
    good = (scaled - scaled.min()) / span
    return values, "loss" if loss else "score", 1.0 - good if loss else good


def _surface(subject: Subject, display: TuningSurfaceDisplay) -> Markup:
    values, name, good = _shown(display)
    x, y = np.log10(display.C), np.log10(display.gamma)
    chart = Chart(
        "Cross-validated quality over C and gamma with the path of the search",
        display.C,
        display.gamma,
        "C",
        "gamma",
        x_log=True,
        y_log=True,
        height=320,
    )
    edges = [np.linspace(v.min(), v.max(), n + 1) for v, n in zip((x, y), CELLS, strict=True)]
    middles = [(e[1:] + e[:-1]) / 2 for e in edges]
    spread = [max(float(np.ptp(v)), 1e-12) for v in (x, y)]
    at = LinearNDInterpolator(np.column_stack([x / spread[0], y / spread[1]]), good)
    grid = np.meshgrid(middles[0] / spread[0], middles[1] / spread[1])
    quality = at(*grid)
    # Most of what is bad looks alike: steps by rank among the cells show the summit.
    levels = np.where(np.isfinite(quality), np.floor(LEVELS * _ranked(quality)), -1)
    chart.cells(edges[0], edges[1], np.clip(levels, -1, LEVELS - 1).astype(np.intp))
    chart.dots(display.C, display.gamma, None, size=2.2, opacity=0.35)
    path = display.path
    chart.line(display.C[path], display.gamma[path], 1, width=2.2)
    chart.dots(display.C[path], display.gamma[path], 1, size=6.0)
    best = display.best_index
    chosen = f"C = {number(display.C[best])}, gamma = {number(display.gamma[best])}"
    chart.star(display.C[best], display.gamma[best], 1, f"chosen: {chosen}")
    caption = (
        f"Cross-validated {name} over C and gamma, from {number(values.min())} to "
        f"{number(values.max())}: stronger blue is better. Chosen: {chosen}."
    )
    legend = [
        ("st dot", "tried"),
        ("s1 line", "best so far, in order"),
        ("s1 star", "chosen"),
    ]
    return tag("div", figure(chart.svg(), caption, legend), class_="alone")


def _ranked(quality: FloatArray) -> FloatArray:
    """Return half of each cell's quality and half of its rank, from 0 to 1."""
    flat = quality[np.isfinite(quality)]
    rank = np.searchsorted(np.sort(flat), quality, side="left") / max(len(flat), 1)
    return np.asarray(0.5 * quality + 0.5 * rank)


def _curve(subject: Subject, display: TuningSurfaceDisplay, name: str) -> Markup:
    x = display.C if name == "C" else display.gamma
    values, what, _ = _shown(display)
    order = np.argsort(x)
    x, values, spread = x[order], values[order], display.spread[order]
    keep = np.isfinite(spread)
    chart = Chart(
        f"Cross-validated {what} against {name}", x, values, name, what, x_log=True, height=270
    )
    if keep.any():
        chart.band(x[keep], (values - spread)[keep], (values + spread)[keep])
    chart.line(x, values).dots(x, values, 0, size=4.0)
    best = int(np.flatnonzero(order == display.best_index)[0])
    chart.star(float(x[best]), float(values[best]), 1, "chosen")
    legend = [("s0 line", "mean over folds"), ("s0 area", "one deviation"), ("s1 star", "chosen")]
    caption = f"Cross-validated {what} against {name}. Chosen: {name} = {number(x[best])}."
    return tag("div", figure(chart.svg(), caption, legend), class_="alone")


def _plain_curve(subject: Subject, results: dict[str, Any]) -> Markup | None:
    C = np.asarray(results.get("param_C", ()), dtype=np.float64)
    score = np.asarray(results["mean_test_score"], dtype=np.float64)
    if len(C) < 2:
        return None
    values, what = (-score, "loss") if (score <= 0).all() else (score, "score")
    chart = Chart(f"Leave-one-out {what} against C", C, values, "C", what, x_log=True, height=270)
    best = int(np.argmax(score))
    chart.line(C, values).dots(C, values, 0, size=4.0).star(float(C[best]), float(values[best]))
    caption = f"Leave-one-out {what} against C. Chosen: C = {number(C[best])}."
    return tag("div", figure(chart.svg(), caption, [("s1 star", "chosen")]), class_="alone")


def _edge_notes(subject: Subject, display: TuningSurfaceDisplay) -> None:
    best = display.best_index
    for name, values in (("C", display.C), ("gamma", display.gamma)):
        known = values[np.isfinite(values)]
        if np.unique(known).size < 3 or not np.isfinite(values[best]):
            continue
        end = "largest" if values[best] >= known.max() else "smallest"
        if values[best] in (known.max(), known.min()):
            subject.notes.append(
                f"The chosen {name} = {number(values[best])} is the {end} that was tried: the best "
                "one may lie further out."
            )


def _sizes(model: Any) -> Markup | None:
    """Return the table of numbers of prototypes, where these were tuned."""
    found = getattr(model, "size_results_", None)
    if not found:
        return None
    rows = [
        [count(m), number(-s if (found["mean_test_score"] <= 0).all() else s), number(d)]
        for m, s, d in zip(
            found["n_prototypes"], found["mean_test_score"], found["std_test_score"], strict=True
        )
    ]
    head = ["Prototypes", "Cross-validated", "Deviation over folds"]
    return table(f"How many prototypes? {count(model.n_prototypes_)} were chosen.", head, rows)
