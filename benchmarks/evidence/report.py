"""The texts and pictures that the records make, written between markers.

A generated part begins and ends with a line of its own, in Markdown and in reStructuredText::

    <!-- generated: NAME, by python -m benchmarks.evidence report -->
    <!-- end of generated -->

    .. generated: NAME, by python -m benchmarks.evidence report
    .. end of generated
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from benchmarks.evidence import questions, sets
from benchmarks.evidence.comparing import Comparison
from benchmarks.evidence.methods import registry
from benchmarks.evidence.pictures import critical_difference_diagram, scatter
from benchmarks.evidence.questions import (
    OURS,
    figure,
    grid,
    label,
    main_comparison,
    measure_of,
    peer_of,
    short,
    title,
)
from benchmarks.evidence.ranks import average_ranks, critical_difference, duel
from benchmarks.evidence.records import Records, read

BY = "by python -m benchmarks.evidence report"
SECTION = "benchmarks/RESULTS.md#the-model-for-tables"
RUN = "python -m benchmarks.evidence run --data DIR --out benchmarks/results/evidence.jsonl"
RANKS, TIME, PREDICT, SIZE = (
    f"docs/images/evidence-{name}.svg" for name in ("ranks", "time", "prediction", "size")
)
MANY = 1000
"""Test rows from which a set's error says something by itself."""


def write(root: Path, records_file: Path, *, check: bool = False) -> list[str]:
    """Write all generated parts; return the names of the files that changed (or would)."""
    changed = []
    for name, text in texts(root, read(records_file)).items():
        path = root / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            changed.append(name)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    return changed


def texts(root: Path, records: Records) -> dict[str, str]:
    """Return every file with generated parts as it should be."""
    pictures = drawn(records)
    parts = {
        "README.md": {"summary": summary(records), "tables": readme_table(records)},
        "benchmarks/RESULTS.md": {"tables": results(records, pictures)},
        "docs/tables.rst": {"accuracy": page(records, pictures)},
    }
    found = {"benchmarks/EVIDENCE.md": everything(records, pictures)} | pictures
    for name, its in parts.items():
        text = (root / name).read_text(encoding="utf-8")
        for part, new in its.items():
            text = put(text, part, new, name)
        found[name] = text
    return found


def put(text: str, part: str, new: str, name: str) -> str:
    """Return a text with one generated part replaced."""
    begin, end = (
        (f".. generated: {part}, {BY}", ".. end of generated")
        if name.endswith(".rst")
        else (f"<!-- generated: {part}, {BY} -->", "<!-- end of generated -->")
    )
    pattern = re.compile(rf"^{re.escape(begin)}\n.*?^{re.escape(end)}$", re.DOTALL | re.MULTILINE)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f"{name} needs the lines {begin!r} and {end!r} once")
    return pattern.sub(lambda _: f"{begin}\n\n{new}\n\n{end}", text)


# --- the short texts ---------------------------------------------------------------------------


def _against(records: Records, found: Comparison) -> tuple[int, int, int]:
    d = duel(found.column(OURS), found.column(peer_of(records)), found.half_rows)
    return d.wins, d.ties, d.losses


def _what(found: Comparison) -> str:
    """Return what is compared in words."""
    if found.field == "error":
        return "test error"
    return "loss on test rows (1 - AUC, log loss or root mean squared error)"


def _by_kind(records: Records) -> list[tuple[str, Comparison]]:
    """Return the comparisons on the real tables and on the sets of the literature."""
    kinds = (("real tables", sets.TABLES), ("sets of the literature", sets.STUDY))
    found = [(words, main_comparison(records, names)) for words, names in kinds]
    return [(words, some) for words, some in found if len(some.sets) > 1]


def summary(records: Records) -> str:
    """Return the README's sentence."""
    found = main_comparison(records)
    parts = []
    for words, some in _by_kind(records):
        wins, ties, losses = _against(records, some)
        how = f"With default settings ({questions.splits_in_words(found)}), the {_what(found)}"
        counts = f"on {wins}, the same on {ties} and larger on {losses}"
        sets_of = f"{len(some.sets)} {words}"
        parts.append(
            f"on {sets_of} it was smaller {counts}"
            if parts
            else f"{how} on {sets_of} was smaller than CatBoost's {counts}"
        )
    text = "; ".join(parts)
    if len(found.methods) > 2:
        words = _rank_words(found)
        text += f". {words[0].upper()}{words[1:]}"
    return f"{text} ([figures, and what they do not show]({SECTION}))."


def _rank_words(found: Comparison) -> str:
    average = average_ranks(found.errors)
    mine = average[found.methods.index(OURS)]
    k = len(found.methods)
    best = int(np.argmin(average))
    difference = critical_difference(k, len(found.sets))
    if found.methods[best] != OURS:
        text = f"among {k} methods its mean rank is {mine:.2f}"
        return f"{text}; the best is that of {label(found.methods[best])}, {average[best]:.2f}"
    second = int(np.argsort(average, kind="stable")[1])
    return (
        f"among {k} methods it has the best mean rank, {mine:.2f}; the next is "
        f"{label(found.methods[second])} with {average[second]:.2f} "
        f"(critical difference {difference:.2f})"
    )


def readme_table(records: Records) -> str:
    """Return the README's rows: the count, and where ours gains and loses most."""
    found, peer = main_comparison(records), peer_of(records)
    link, what = f"]({SECTION})", "test error" if found.field == "error" else "loss"
    rows = []
    for words, some in _by_kind(records):
        wins, ties, losses = _against(records, some)
        rows.append(
            (
                f"[{len(some.sets)} {words}, {what}, defaults{link}",
                f"smaller on {wins}",
                f"CatBoost smaller on {losses}",
                f"the same on {ties}",
            )
        )
    if len(found.methods) > 2:
        average = average_ranks(found.errors)
        others = [j for j, m in enumerate(found.methods) if m != OURS]
        rival = min(others, key=lambda j: float(average[j]))
        mine = float(average[found.methods.index(OURS)])
        word = "ahead" if mine < average[rival] else "**behind**"
        rows.append(
            (
                f"[mean rank of {len(found.methods)} methods{link}",
                figure(mine),
                f"{label(found.methods[rival])} {figure(float(average[rival]))}",
                word,
            )
        )
    for name, mine, theirs in telling(records, found):
        word = "ahead" if mine < theirs else "**behind**"
        rows.append(
            (
                f"[{title(name)}, {measure_of(records, name, found.field)}{link}",
                short(mine, found.field),
                f"CatBoost {short(theirs, found.field)}",
                word,
            )
        )
    table = grid(("measured", "`lssvm`", "compared with", ""), rows, words=1)
    how = "its own categories" if peer == "catboost-native" else "categories as indicators"
    text = (
        "The model for tables, 2/3 of the rows of a set for training and 1/3 for testing, "
        f"{questions.splits_in_words(found)}, default settings, {how} for "
        f"CatBoost. Of the sets with {MANY:,} test rows or more, those where it gains or loses "
        "most:"
    )
    return f"{text}\n\n{table}"


def telling(
    records: Records, found: Comparison, gains: int = 4, losses: int = 3
) -> list[tuple[str, float, float]]:
    """Return the sets with many test rows where ours gains and loses most, by ratio of errors."""
    mine, theirs = found.column(OURS), found.column(peer_of(records))
    some = [
        (float((mine[i] + found.half_rows[i]) / (theirs[i] + found.half_rows[i])), name, i)
        for i, name in enumerate(found.sets)
        if _test_rows(records, name) >= MANY and np.isfinite(mine[i]) and np.isfinite(theirs[i])
    ]
    some.sort()
    ahead = [s for s in some if s[0] < 1.0][:gains]
    behind = [s for s in some if s[0] > 1.0][-losses:]
    return [(name, float(mine[i]), float(theirs[i])) for _, name, i in ahead + behind]


def _test_rows(records: Records, name: str) -> int:
    found = records.tried.get((name, OURS), {})
    return max((int(r.get("n_test") or 0) for r in found.values()), default=0)


def results(records: Records, pictures: dict[str, str]) -> str:
    """Return the section of RESULTS.md."""
    found = main_comparison(records)
    wins, ties, losses = _against(records, found)
    missing = [f"`{n}`" for n in questions.EVERY if n not in found.sets]
    lines = [
        f"`{RUN}`: {_what(found)}, parts of 2/3 "
        f"and 1/3, {questions.splits_in_words(found)}, default settings (`LSSVMClassifier()`, "
        '`LSSVMRegressor()`, preset "balanced"). Sets in the order of their size; all questions '
        "and settings are in [EVIDENCE.md](EVIDENCE.md).",
        "",
        f"Of {len(found.sets)} sets ours has a smaller one than CatBoost on {wins}, the same on "
        f"{ties}, and a larger one on {losses}.",
    ]
    if missing:
        lines += ["", f"Not measured yet: {', '.join(missing)}."]
    for question in (
        questions.ranks,
        questions.ranks_by_kind,
        questions.errors_by_set,
        questions.losses,
        questions.fast_ranks,
    ):
        text = question(records)
        if text is not None:
            lines += ["", text]
    if RANKS in pictures:
        lines += ["", f"![Mean ranks with the critical difference](../{RANKS})"]
    return "\n".join(lines)


def page(records: Records, pictures: dict[str, str]) -> str:
    """Return the part of the documentation's page."""
    found = main_comparison(records)
    wins, ties, losses = _against(records, found)
    behind = [
        title(name)
        for i, name in enumerate(found.sets)
        if found.column(OURS)[i] > found.column(peer_of(records))[i] + 1e-9
    ]
    text = (
        f"On {len(found.sets)} data sets ({questions.splits_in_words(found)}), with default "
        f"settings, it had a smaller {_what(found)} than CatBoost on {wins}, the same on {ties} "
        f"and a larger one on {losses} ({', '.join(behind)})."
    )
    if len(found.methods) > 2:
        words = _rank_words(found)
        text += f" {words[0].upper()}{words[1:]}."
    lines = [text]
    for name, about in (
        (RANKS, "Mean ranks; bars join methods that the critical difference does not separate"),
        (TIME, "Error and training time relative to CatBoost's"),
        (PREDICT, "Error and prediction time relative to CatBoost's"),
        (SIZE, "Error and size of the model relative to CatBoost's"),
    ):
        if name in pictures:
            lines += ["", f".. image:: {name.removeprefix('docs/')}", f"   :alt: {about}"]
    return "\n".join(lines)


# --- the long one ------------------------------------------------------------------------------


SOURCE = f"{BY} from [`results/evidence.jsonl`](results/evidence.jsonl)"
"""What has written EVIDENCE.md."""


def everything(records: Records, pictures: dict[str, str], source: str = SOURCE) -> str:
    """Return EVIDENCE.md: every question, or the command that would answer it.

    Of records from elsewhere: the questions that they answer, and the methods that they have.
    """
    whole = source == SOURCE
    place = "[`evidence/`](evidence/)" if whole else "`benchmarks/evidence`"
    lines = [
        "# The evidence",
        "",
        f"Written {source}, one record per set, method and seed; nothing here is typed. Sets, "
        f"methods, measures and questions are in {place}. Errors are per cent of "
        "wrong classes, or 100 (1 - R2); "
        "measures are 1 - AUC for two classes, log loss for more, root mean squared errors for "
        "numbers.",
        "",
        questions.runs(records),
    ]
    after = {"Ranks": (RANKS,), "Time and size": (TIME, PREDICT, SIZE)}
    for name, question, wanted in questions.SECTIONS:
        text = question(records)
        if text is None and not whole:
            continue
        lines += ["", f"## {name}", ""]
        if text is None:
            about = "None" if question is questions.failures else f"No records yet: `{RUN} "
            lines.append(about + ("." if about == "None" else f"--methods {wanted}`"))
        else:
            lines.append(text)
        for picture in after.get(name, ()):
            if picture in pictures:
                lines += ["", f"![{name}](../{picture})"]
    measured = registry() if whole else {record["method"] for record in records.all}
    lines += ["", "## Methods", "", questions.settings(measured), ""]
    return "\n".join(lines)


def drawn(records: Records) -> dict[str, str]:
    """Return the pictures that there are records for."""
    known = registry()
    found = main_comparison(records)
    pictures = {}
    if len(found.sets) > 1 and len(found.methods) > 1:
        average = average_ranks(found.errors)
        pictures[RANKS] = critical_difference_diagram(
            [label(m) for m in found.methods],
            average,
            critical_difference(len(found.methods), len(found.sets)),
            [known[m].group == "ours" for m in found.methods],
        )
    costs = questions.costs(records)
    word = "error" if found.field == "error" else "loss"
    for name, attribute, words in (
        (TIME, "fit", "training time (processor) relative to CatBoost's, median"),
        (PREDICT, "predict", "prediction time relative to CatBoost's, median"),
        (SIZE, "size", "size of the model relative to CatBoost's, median"),
    ):
        some = [c for c in costs if np.isfinite(getattr(c, attribute)) and np.isfinite(c.error)]
        if len(some) > 1:
            pictures[name] = scatter(
                [label(c.method) for c in some],
                np.array([getattr(c, attribute) for c in some]),
                np.array([c.error for c in some]),
                [known[c.method].group == "ours" for c in some],
                x_title=words,
                y_title=f"{word} relative to CatBoost's",
            )
    return pictures
