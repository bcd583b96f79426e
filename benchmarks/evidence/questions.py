"""What the records say, as Markdown: one function a question, each with its own few arrays.

A function returns the text of its section, or None where there are no records for it yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.evidence import plans, sets
from benchmarks.evidence.comparing import Comparison, compare, has, paired, values
from benchmarks.evidence.generated import FAMILIES
from benchmarks.evidence.methods import ABLATIONS, MAIN, registry
from benchmarks.evidence.ranks import (
    average_ranks,
    critical_difference,
    duel,
    exponent,
    friedman,
)
from benchmarks.evidence.records import MISSING, OK, Records

OURS, PEER = "table", "catboost"
COMPARED = [m for m in MAIN if m not in ("table-fast", "table-best", "dual-tuned")]
"""Methods of the ranking: ours by default, the models with one kernel, and the peers."""

FAST = "table-fast"


def label(method: str) -> str:
    """Return the name of a method in tables."""
    return registry()[method].label


def title(name: str) -> str:
    """Return the name of a set in words."""
    return sets.TITLES.get(sets.base_of(name), name)


def grid(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1, words: int = 0) -> str:
    """Return a Markdown table, all but the first and the last columns (of words) to the right."""
    marks = ["---"] * left + ["---:"] * (len(head) - left - words) + ["---"] * words
    lines = [head, marks, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figure(value: float, digits: int = 2) -> str:
    """Return a number, or a dash for what is not there."""
    return f"{value:,.{digits}f}" if np.isfinite(value) else "-"


def probability(p: float) -> str:
    """Return a probability with two digits that say something."""
    return "-" if not np.isfinite(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def main_comparison(records: Records) -> Comparison:
    """Return the comparison of the study: sets that ours and CatBoost have been tried on."""
    return compare(records, sets.STUDY, COMPARED, always=(OURS, PEER))


# --- what was run ------------------------------------------------------------------------------


def runs(records: Records) -> str:
    """Say how many records there are, of what state, and what they were measured with."""
    counts: dict[str, int] = {}
    for record in records.all:
        counts[record["status"]] = counts.get(record["status"], 0) + 1
    text = ", ".join(f"{n:,} {word}" for word, n in sorted(counts.items()))
    lines = [f"{len(records.all):,} records: {text}.", ""]
    by_run: dict[str, int] = {}
    for record in records.all:
        by_run[record.get("run", "")] = by_run.get(record.get("run", ""), 0) + 1
    for run, n in sorted(by_run.items(), key=lambda item: -item[1]):
        if run not in records.runs:
            continue
        about = records.runs[run]
        machine = about["machine"]
        packages = ", ".join(f"{k} {v}" for k, v in about["versions"].items())
        seconds = about["budget_s"]
        budget = "10, 30 or 100 s by the set's size" if seconds is None else f"{seconds:g} s"
        lines.append(
            f"- `{run}`, {n:,} record{'s' * (n > 1)}: {machine['cores']} cores ({machine['cpu']}), "
            f"{machine['memory_gb']} GB, {about['threads']} threads, {about['jobs']} at a time, "
            f"searches of {budget}, code `{about['code']}`; {packages}."
        )
    return "\n".join(lines).rstrip()


def failures(records: Records) -> str | None:
    """List what gave no error: time limits, errors, libraries that are not there."""
    found: dict[tuple[str, str], list[str]] = {}
    for record in records.all:
        if record["status"] == OK:
            continue
        words = record["status"]
        if words == MISSING:
            words += f" ({record['text'].partition(':')[0]})"
        if record["status"] == "error":
            words = record["text"][:90]
        found.setdefault((record["method"], words), []).append(record["set"])
    if not found:
        return None
    rows = []
    for (method, words), names in sorted(found.items()):
        some = sorted(set(names))
        shown = ", ".join(some[:6]) + (f" and {len(some) - 6} more" if len(some) > 6 else "")
        rows.append((method, words.replace("|", "/"), str(len(names)), shown))
    return grid(("method", "what", "records", "sets"), rows, left=2, words=1)


def settings() -> str:
    """List the methods of the study with their settings."""
    words = {
        "frame": "as they are",
        "numbers": "medians, indicators",
        "standardised": "medians, indicators, standardised",
    }
    rows = [(f"`{m.name}`", m.label, words[m.inputs], m.settings) for m in registry().values()]
    return grid(("name", "method", "columns", "settings"), rows, left=4)


# --- ranks -------------------------------------------------------------------------------------


def splits_in_words(found: Comparison) -> str:
    """Say how many splits a comparison is over."""
    low, high = min(found.seeds), max(found.seeds)
    if high == 1:
        return "one split, seed 0"
    return f"means over {low} to {high} splits" if low < high else f"means over {low} splits"


def ranks(records: Records) -> str | None:
    """Average ranks, the critical difference, wins, ties and losses of ours against each."""
    found = main_comparison(records)
    if len(found.sets) < 2 or len(found.methods) < 2:
        return None
    average = average_ranks(found.errors)
    k, n = len(found.methods), len(found.sets)
    difference = critical_difference(k, n)
    ours = found.column(OURS)
    rows = []
    for j in np.argsort(average, kind="stable"):
        method = found.methods[j]
        line = [label(method), figure(average[j])]
        if method == OURS:
            rows.append((*line, "", "", ""))
            continue
        d = duel(ours, found.errors[:, j], found.half_rows)
        rows.append(
            (*line, f"{d.wins} / {d.ties} / {d.losses}", figure(d.ratio), probability(d.p_sign))
        )
    table = grid(
        ("method", "mean rank", "ours smaller / same / larger", "error ratio", "sign test"), rows
    )
    p = friedman(found.errors)
    text = (
        f"{n} sets, {k} methods, {splits_in_words(found)}. Mean ranks that differ by less than "
        f"{difference:.2f} are not told apart (Nemenyi, 5 %)"
    )
    if k > 2:
        text += f"; that all are equal has a probability of {probability(p)} (Friedman)"
    text += (
        ". The error ratio is the geometric mean of ours over theirs, half a test row added to "
        "both; a method without a result on a set (time limit, error) ranks last there."
    )
    if found.left_out:
        table += f"\n\n{_fewer_splits(records, list(found.left_out))}"
    return f"{text}\n\n{table}"


def _fewer_splits(records: Records, methods: list[str]) -> str:
    """Methods that are not ranked, each beside ours on the splits that both have."""
    rows = []
    for method in methods:
        found = compare(records, sets.STUDY, (OURS, method), always=(OURS, method))
        if not found.sets:
            continue
        d = duel(found.column(OURS), found.column(method), found.half_rows)
        low, high = min(found.seeds), max(found.seeds)
        splits = f"{low} to {high}" if low < high else f"{low}"
        counts = f"{d.wins} / {d.ties} / {d.losses}"
        rows.append((label(method), str(len(found.sets)), splits, counts, figure(d.ratio)))
    head = ("method", "sets", "splits", "ours smaller / same / larger", "error ratio")
    return f"Tried on too few of the splits to be ranked, each beside ours:\n\n{grid(head, rows)}"


def must_hold(records: Records) -> str | None:
    """Set what was wanted beside what the records say."""
    found = main_comparison(records)
    if not found.sets or OURS not in found.methods:
        return None
    average = average_ranks(found.errors)
    place = found.methods.index(OURS)
    best = found.methods[int(np.argmin(average))]
    rows = [
        ("sets", "at least 40", str(len(found.sets))),
        (
            "mean rank of the default",
            "the best of all methods",
            f"{average[place]:.2f} (best: {label(best)}, {average.min():.2f})",
        ),
    ]
    _, mine, theirs = paired(records, sets.STUDY, OURS, PEER, "fit_s")
    rows.append(
        (
            "median training time over CatBoost's",
            "at most 12",
            f"{np.median(mine / theirs):.1f} ({len(mine)} sets)" if len(mine) else "not measured",
        )
    )
    _, mine, theirs = paired(records, sets.STUDY, OURS, PEER, "ece")
    rows.append(
        (
            "sets where the calibration error is no larger than CatBoost's",
            "at least half",
            f"{int(np.sum(mine <= theirs))} of {len(mine)}" if len(mine) else "not measured",
        )
    )
    return grid(("what", "wanted", "measured"), rows, left=3)


REASONS = {
    "iri": "50 test rows: one row a split",
    "adu": "categories of many levels beside few numbers: a distance adds indicators up, a tree "
    "asks for one at a time",
    "spa": "counts that are zero in most rows: whether a word is there at all is a step along one "
    "axis",
    "ttt": "three cells of a board together: rules along axes",
    "thy": "thresholds of two or three hormones, hardly anything else",
}
"""Why a set is lost, as far as we know."""


def losses(records: Records) -> str | None:
    """Say where the peer's mean error is smaller, by how much, and why."""
    names, rows, clear = main_comparison(records).sets, [], 0
    for name in names:
        ours, peer = (records.tried[name, method] for method in (OURS, PEER))
        both = [(ours[s], peer[s]) for s in sorted(set(ours) & set(peer))]
        gaps = np.array(
            [a["error"] - b["error"] for a, b in both if has(a, "error") and has(b, "error")]
        )
        if len(gaps) < 2 or gaps.mean() <= 1e-9:
            continue
        error = float(gaps.std(ddof=1) / np.sqrt(len(gaps)))
        worse = gaps.mean() > error
        clear += worse
        why = REASONS.get(name, "not known" if worse else "no more than splits differ")
        rows.append((f"`{name}`", str(len(gaps)), figure(gaps.mean()), figure(error), why))
    if not rows:
        return None
    head = ("set", "splits", "points", "standard error", "why, as far as we know")
    text = (
        f"Where {label(PEER)} is ahead, by the mean difference of the splits that both have. Ours "
        f"is no worse within one standard error on {len(names) - clear} of {len(names)} sets."
    )
    return f"{text}\n\n{grid(head, rows, words=1)}"


def fast_ranks(records: Records) -> str | None:
    """Ranks of the preset "fast" among boosting."""
    others = ("lightgbm", PEER, "histgb")
    found = compare(records, sets.STUDY, (FAST, *others), always=(FAST, *others))
    if len(found.sets) < 2:
        return None
    d = duel(found.column(FAST), found.column("lightgbm"), found.half_rows)
    ranks = ", ".join(
        f"{label(m)} {figure(r)}"
        for m, r in zip(found.methods, average_ranks(found.errors), strict=True)
    )
    return (
        f"{label(FAST)} has a smaller error than {label('lightgbm')} on {d.wins} of "
        f"{len(found.sets)} sets, the same on {d.ties}, a larger one on {d.losses}. Mean ranks of "
        f"these four: {ranks}."
    )


def errors_by_set(records: Records) -> str | None:
    """All errors of the comparison, sets in the order of their size."""
    found = main_comparison(records)
    if not found.sets or PEER not in found.methods:
        return None
    peer = found.column(PEER)
    rows = []
    for i, name in enumerate(found.sets):
        line = found.errors[i]
        least = line.min()
        cells = [_marked(value, least, len(line)) for value in line]
        mine = found.column(OURS)[i]
        word = "**behind**" if mine > peer[i] + 1e-9 else "level" if mine > peer[i] - 1e-9 else ""
        rows.append((f"`{name}`", *cells, word))
    head = ("set", *(label(m) for m in found.methods), "beside CatBoost")
    return grid(head, rows, words=1)


def _marked(value: float, least: float, k: int) -> str:
    words = figure(value)
    return f"**{words}**" if k > 2 and value <= least + 1e-9 else words


# --- time, size, calibration -------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """Medians over sets of ratios to CatBoost, and of absolute values."""

    method: str
    sets: int
    error: float
    fit: float
    size: float


def costs(records: Records) -> list[Cost]:
    """Return error, time and size of every method relative to CatBoost's, over common sets."""
    found = []
    for method in MAIN:
        names, mine, theirs = paired(records, sets.STUDY, method, PEER, "fit_cpu")
        if len(names) < 2:
            continue
        _, e, f = paired(records, names, method, PEER, "error")
        half = np.array([_half(records, name) for name in names])
        sizes = paired(records, names, method, PEER, "model_bytes")
        size = float(np.median(sizes[1] / sizes[2])) if sizes[0] else float("nan")
        ratio = duel(e, f, half).ratio
        found.append(Cost(method, len(names), ratio, float(np.median(mine / theirs)), size))
    return found


def _half(records: Records, name: str) -> float:
    rows = values(records, name, PEER, "n_test")
    return 0.0 if sets.task_of(name) == "numbers" or not rows else 50.0 / rows[0]


def time_and_size(records: Records) -> str | None:
    """Training time, prediction, latency, size and memory, medians over sets."""
    rows = []
    for cost in costs(records):
        names, _, _ = paired(records, sets.STUDY, cost.method, PEER, "fit_cpu")

        def middle(field: str, method: str = cost.method, names: list[str] = names) -> float:
            every = [np.mean(v) for n in names if (v := values(records, n, method, field))]
            return float(np.median(every)) if every else float("nan")

        rows.append(
            (
                label(cost.method),
                str(cost.sets),
                figure(cost.error),
                figure(cost.fit),
                figure(middle("fit_s")),
                figure(middle("fit_cpu")),
                figure(middle("rows_per_s"), 0),
                figure(1000 * middle("one_row_s")),
                figure(middle("model_bytes") / 1e6),
                figure(cost.size),
                figure(middle("peak_mb"), 0),
            )
        )
    if not rows:
        return None
    head = (
        "method", "sets", "error / CatBoost's", "training / CatBoost's (processor)", "training, s",
        "processor s", "rows/s", "one row, ms", "model, MB", "model / CatBoost's", "peak, MB",
    )  # fmt: skip
    return (
        "Medians over the sets that a method shares with CatBoost; the error is the geometric mean "
        "of ratios. The size is that of the pickled model, the peak that of the whole process.\n\n"
        + grid(head, rows)
    )


def calibration(records: Records) -> str | None:
    """Calibration error and log loss beside CatBoost's; coverage of intervals."""
    rows = []
    for method in MAIN:
        names, mine, theirs = paired(records, sets.STUDY, method, PEER, "ece")
        if not names:
            continue
        _, loss, other = paired(records, names, method, PEER, "log_loss")
        better = "" if method == PEER else f"{int(np.sum(mine <= theirs))} of {len(names)}"
        less = "" if method == PEER else f"{int(np.sum(loss <= other))} of {len(names)}"
        rows.append(
            (
                label(method),
                figure(float(mine.mean()), 4),
                better,
                figure(float(loss.mean()), 3),
                less,
            )
        )
    if not rows:
        return None
    head = (
        "method", "mean calibration error", "no larger than CatBoost's", "mean log loss",
        "no larger than CatBoost's",
    )  # fmt: skip
    text = (
        "Of methods with probabilities, test rows, 15 bins of equal width of the probability of "
        "the most likely class.\n\n" + grid(head, rows)
    )
    inside = _coverage(records)
    return text if inside is None else f"{text}\n\n{inside}"


def _coverage(records: Records) -> str | None:
    rows = []
    for method in MAIN:
        found = [
            (np.mean(v), np.mean(values(records, name, method, "width")))
            for name in (*sets.STUDY, *plans.FAMILY_SETS)
            if (v := values(records, name, method, "coverage"))
        ]
        if found:
            c, w = np.array(found).T
            near = int(np.sum(np.abs(c - 0.9) <= 0.015))
            rows.append((label(method), str(len(c)), figure(float(c.mean()), 3),
                         f"{near} of {len(c)}", figure(float(w.mean()))))  # fmt: skip
    if not rows:
        return None
    head = ("method", "sets", "mean coverage", "within 1.5 points of 90 %", "mean width")
    return "Prediction intervals for 90 %, width in standard deviations of the target.\n\n" + grid(
        head, rows
    )


# --- ours against ours -------------------------------------------------------------------------


def variants(
    records: Records, base: str, others: Sequence[str], names: Sequence[str] = sets.STUDY
) -> str | None:
    """Compare other settings with a base: error, time, and ranks on two halves of the sets."""
    rows = []
    for method in others:
        same, mine, theirs = paired(records, names, method, base, "error")
        if len(same) < 2:
            continue
        half = np.array([_half_of(records, n, base) for n in same])
        d = duel(mine, theirs, half)
        first, second = (
            average_ranks(np.column_stack([mine[part], theirs[part]]))[0]
            if len(mine[part])
            else float("nan")
            for part in (slice(0, None, 2), slice(1, None, 2))
        )
        _, t, u = paired(records, same, method, base, "fit_cpu")
        time = float(np.median(t / u)) if len(t) else float("nan")
        rows.append(
            (
                label(method),
                str(len(same)),
                f"{d.wins} / {d.ties} / {d.losses}",
                figure(d.ratio, 3),
                probability(d.p_sign),
                figure(float(first)),
                figure(float(second)),
                figure(time),
            )
        )
    if not rows:
        return None
    head = (
        "setting", "sets", "smaller / same / larger", "error ratio", "sign test",
        "mean rank of two, 1st half", "2nd half", "training time ratio",
    )  # fmt: skip
    return (
        f"Against {label(base)}; a mean rank of two below 1.5 is better than it. The halves are "
        "every other set: what is decided on one is confirmed on the other.\n\n" + grid(head, rows)
    )


def _half_of(records: Records, name: str, method: str) -> float:
    found = records.tried.get((name, method), {})
    rows = [r["n_test"] for r in found.values() if has(r, "error") and r.get("n_test")]
    return 0.0 if sets.task_of(name) == "numbers" or not rows else 50.0 / rows[0]


def ablations(records: Records) -> str | None:
    """Take one ingredient of the model for tables away at a time."""
    return variants(records, OURS, ABLATIONS)


def presets(records: Records) -> str | None:
    """Preset against preset, and the peers' inputs instead of ours."""
    return variants(records, OURS, ["table-fast", "table-best", "table-numbers"])


def part_sizes(records: Records) -> str | None:
    """Rows of a part, and two trees; sets of less than 2,500 rows have one part anyway."""
    large = [n for n in sets.STUDY if sets.size_of(n) != "small"]
    others = [*(f"table-parts-{n}" for n in (500, 1000, 2000, 4000)), "table-two-trees"]
    return variants(records, OURS, others, large)


def prototype_rules(records: Records) -> str | None:
    """Rules for prototypes against the default, at the same number of prototypes."""
    return variants(records, "fixed", ["fixed-renyi", "fixed-kmeans", "fixed-rpcholesky"])


def precision(records: Records) -> str | None:
    """Rows of float32 in place of float64."""
    parts = [
        variants(records, "fixed", ["fixed-float32"]),
        variants(records, "dual", ["dual-float32"]),
    ]
    return "\n\n".join(p for p in parts if p is not None) or None


# --- where it wins and loses -------------------------------------------------------------------


def families(records: Records) -> str | None:
    """Errors on generated families beside the smallest possible one."""
    known = records.tried
    tried = [m for m in MAIN if any((s, m) in known for s in plans.FAMILY_SETS)]
    rows = []
    for name in plans.FAMILY_SETS:
        best = [v for m in tried for v in values(records, name, m, "known_error")]
        if not best:
            continue
        cells = [
            figure(float(np.mean(v))) if (v := values(records, name, m, "error")) else "-"
            for m in tried
        ]
        about = FAMILIES[name.split("_")[1]].about
        rows.append((about, figure(float(np.mean(best))), *cells))
    if not rows:
        return None
    head = ("what made the rows", "smallest possible", *(label(m) for m in tried))
    return "1,000 training rows, 10 columns, errors in per cent or 100 (1 - R2).\n\n" + grid(
        head, rows
    )


def small_samples(records: Records) -> str | None:
    """Mean ranks by the number of training rows."""
    return _by_rows(records, (50, 100, 200, 500))


def _by_rows(records: Records, sizes: Sequence[int]) -> str | None:
    columns: dict[int, dict[str, float]] = {}
    counts = []
    for n in sizes:
        names = [s for s in plans.SMALL_SAMPLE_SETS if s.endswith(f"@{n}")]
        found = compare(records, names, MAIN, always=(OURS,))
        if len(found.sets) > 1 and len(found.methods) > 1:
            columns[n] = dict(zip(found.methods, average_ranks(found.errors), strict=True))
            counts.append(f"{len(found.sets)} sets at {n}")
    if not columns:
        return None
    methods = [m for m in MAIN if any(m in c for c in columns.values())]
    rows = [
        (label(m), *(figure(c.get(m, float("nan"))) for c in columns.values())) for m in methods
    ]
    head = ("mean rank", *(f"{n} rows" for n in columns))
    return f"The first rows of the training parts of larger sets ({', '.join(counts)}).\n\n" + grid(
        head, rows
    )


def growth(records: Records) -> str | None:
    """Exponents of time and memory in rows and columns."""
    rows = []
    for method in MAIN:
        cells = []
        for varied, fixed in (("n", "_d10"), ("d", "_n2000")):
            names = [s for s in (*plans.GROWTH_SETS, "gen_smooth_n2000_d10") if fixed in s]
            points = sorted(
                {
                    (float(v[0]), float(np.mean(t)))
                    for s in names
                    if (t := values(records, s, method, "fit_cpu"))
                    and (v := values(records, s, method, varied))
                }
            )
            cells.append(_exponent(points))
            if varied == "n":
                top = f"{points[-1][1]:.1f} s at {points[-1][0]:,.0f}" if points else "-"
        if any(c != "-" for c in cells):
            rows.append((label(method), *cells, top))
    if not rows:
        return None
    head = ("method", "exponent in rows", "exponent in columns", "processor seconds, most rows")
    return (
        "Processor time of training on the smooth family: fitted exponents, rows at 10 columns and "
        "columns at 2,000 rows.\n\n" + grid(head, rows)
    )


def _exponent(points: list[tuple[float, float]]) -> str:
    if len(points) < 3:
        return "-"
    x, y = np.array(points).T
    return figure(exponent(x, y))


def robustness(records: Records) -> str | None:
    """How much an error grows with useless columns and with a rotation."""
    originals = [s for s in plans.ROBUST_SETS if "+" not in s]
    rows = []
    for method in MAIN:
        cells = []
        for change in ("+useless", "+rotated"):
            logs = []
            for name in originals:
                a, b = (values(records, s, method, "error") for s in (name, name + change))
                if a and b and np.mean(a) > 0 and np.mean(b) > 0:
                    logs.append(np.log(np.mean(b[: len(a)]) / np.mean(a[: len(b)])))
            cells.append(figure(float(np.exp(np.mean(logs)))) if logs else "-")
        if any(c != "-" for c in cells):
            rows.append((label(method), *cells))
    if not rows:
        return None
    head = ("error relative to that on the set itself", "useless columns", "rotated")
    return (
        f"Geometric means over {', '.join(originals)}: as many columns of noise again; numbers "
        "times a random rotation.\n\n" + grid(head, rows)
    )


SECTIONS: tuple[tuple[str, Callable[[Records], str | None], str], ...] = (
    ("What was wanted", must_hold, "main"),
    ("Ranks", ranks, "main"),
    ("Errors by set", errors_by_set, "main"),
    ("Time and size", time_and_size, "main"),
    ("Calibration and intervals", calibration, "main"),
    ("Ingredients of the model for tables", ablations, "ablations"),
    ("Presets", presets, "main table-numbers"),
    ("Rows of a part", part_sizes, "variants"),
    ("Rules for prototypes", prototype_rules, "fixed variants"),
    ("Single precision", precision, "fixed dual variants"),
    ("Generated families", families, "main --sets generated"),
    ("Small samples", small_samples, "main --sets small-sample"),
    ("Growth", growth, "main --sets growth"),
    ("Useless and rotated columns", robustness, "main --sets robust"),
    ("What gave no result", failures, "main"),
)
"""Title, question and what ``--methods`` measures it, in the order of the report."""
