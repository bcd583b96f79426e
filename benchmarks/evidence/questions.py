"""What the records say, as Markdown: one function a question, each with its own few arrays.

A function returns the text of its section, or None where there are no records for it yet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.evidence import plans, sets
from benchmarks.evidence.comparing import Array, Comparison, compare, half_row, has, paired, values
from benchmarks.evidence.generated import FAMILIES
from benchmarks.evidence.methods import ABLATIONS, MAIN, registry
from benchmarks.evidence.ranks import (
    Duel,
    average_ranks,
    critical_difference,
    duel,
    exponent,
    friedman,
)
from benchmarks.evidence.records import MISSING, OK, Records

OURS = "table"
EVERY = (*sets.TABLES, *sets.STUDY)
"""The real tables, and the sets of the literature."""

CATBOOST = ("catboost-native", "catboost")

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


def peer_of(records: Records) -> str:
    """Return CatBoost with its own categories, or with indicators while it has more records."""
    tried = {
        m: len({n for n, other in records.tried if other == m and n in EVERY}) for m in CATBOOST
    }
    return max(tried, key=lambda m: tried[m])


def field_of(records: Records) -> str:
    """Return "measure" where most records of ours have it, "error" while they are older."""
    found = [
        has(r, "measure") for (name, method), some in records.tried.items()
        for r in some.values() if method == OURS and name in EVERY
    ]  # fmt: skip
    return "measure" if found and np.mean(found) > 0.5 else "error"


def compared_sets(records: Records) -> Sequence[str]:
    """Return the sets that count: all of them by the measure, those of the study by error."""
    return EVERY if field_of(records) == "measure" else sets.STUDY


def main_comparison(records: Records, names: Sequence[str] | None = None) -> Comparison:
    """Return the comparison of the sets that ours and CatBoost have been tried on.

    By the measure of the field over real tables and the study; by error over the study alone while
    the records are older.
    """
    field, peer = field_of(records), peer_of(records)
    names = compared_sets(records) if names is None else names
    methods = [m for m in COMPARED if m == peer or m not in CATBOOST]
    return compare(records, names, methods, always=(OURS, peer), field=field)


def measure_of(records: Records, name: str, field: str) -> str:
    """Return the name of what is compared on a set."""
    if field == "error":
        return "100 (1 - R2)" if sets.task_of(name) == "numbers" else "test error, %"
    if sets.task_of(name) == "numbers":
        return "RMSE"
    classes = values(records, name, OURS, "classes")
    return "1 - AUC" if classes and classes[0] == 2 else "log loss"


def short(value: float, field: str) -> str:
    """Return a value of a comparison: two decimals of an error, four digits of a measure."""
    if not np.isfinite(value):
        return "-"
    return f"{value:.2f}" if field == "error" else f"{value:.4g}"


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


def settings(names: Collection[str]) -> str:
    """List methods of the study with their settings."""
    words = {
        "frame": "as they are",
        "numbers": "medians, indicators",
        "standardised": "medians, indicators, standardised",
    }
    known = [m for m in registry().values() if m.name in names]
    rows = [(f"`{m.name}`", m.label, words[m.inputs], m.settings) for m in known]
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
    return _ranks(records, main_comparison(records))


def ranks_by_kind(records: Records) -> str | None:
    """Ranks on the real tables and on the sets of the literature, each by itself."""
    parts = []
    for words, names in (("The real tables", sets.TABLES), ("The literature", sets.STUDY)):
        text = _ranks(records, main_comparison(records, names))
        if text is not None:
            parts.append(f"{words}: {text}")
    return "\n\n".join(parts) if len(parts) == 2 else None


def _ranks(records: Records, found: Comparison) -> str | None:
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
            rows.append((*line, "", "", "", "", ""))
            continue
        d = duel(ours, found.errors[:, j], found.half_rows)
        counts = f"{d.wins} / {d.ties} / {d.losses}"
        clear = clear_counts(records, found, method)
        rows.append((*line, counts, _share(d), clear, figure(d.ratio, 3), probability(d.p_sign)))
    head = (
        "method", "mean rank", "ours smaller / same / larger", "share smaller, %",
        "clearly smaller / larger", "ratio", "sign test",
    )  # fmt: skip
    table = grid(head, rows)
    p = friedman(found.errors)
    text = (
        f"{n} sets, {k} methods, {splits_in_words(found)}. Mean ranks that differ by less than "
        f"{difference:.2f} are not told apart (Nemenyi, 5 %)"
    )
    if k > 2:
        text += f"; that all are equal has a probability of {probability(p)} (Friedman)"
    what = (
        "Errors are compared" if found.field == "error"
        else "1 - AUC of two classes, log loss of more and root mean squared errors are compared"
    )  # fmt: skip
    text += (
        f". {what}; the ratio is the geometric mean of ours over theirs, half a test row added to "
        "both; shares have their standard error over sets, and a difference is clear where it is "
        "more than its standard error over the splits of a set; a method without a result on a "
        "set (time limit, error) ranks last there."
    )
    if found.left_out:
        names = [n for n in EVERY if n in found.sets or found.field == "error"]
        few = _fewer_splits(records, list(found.left_out), found.field, names)
        table += f"\n\n{few}"
    return f"{text}\n\n{table}"


def _share(d: Duel) -> str:
    """Return the share of sets that ours wins, ties half, with its standard error over sets."""
    share = (d.wins + d.ties / 2) / d.sets
    return f"{100 * share:.0f} ± {100 * np.sqrt(share * (1 - share) / d.sets):.0f}"


def clear_counts(records: Records, found: Comparison, method: str) -> str:
    """Return on how many sets ours is clearly smaller, and clearly larger."""
    smaller = larger = 0
    for name in found.sets:
        mean, error, n = gap(records, name, method, found.field)
        smaller += n > 1 and mean < -error
        larger += n > 1 and mean > error
    return f"{smaller} / {larger}"


def gap(records: Records, name: str, method: str, field: str) -> tuple[float, float, int]:
    """Return ours less theirs on a set: mean, its standard error and number of common splits."""
    a, b = (records.tried.get((name, m), {}) for m in (OURS, method))
    gaps = np.array(
        [a[s][field] - b[s][field] for s in sorted(set(a) & set(b))
         if has(a[s], field) and has(b[s], field)]
    )  # fmt: skip
    if len(gaps) < 2:
        return float(gaps.sum()), float("nan"), len(gaps)
    return float(gaps.mean()), float(gaps.std(ddof=1) / np.sqrt(len(gaps))), len(gaps)


def _fewer_splits(records: Records, methods: list[str], field: str, names: Sequence[str]) -> str:
    """Methods that are not ranked, each against ours on the splits that both have."""
    rows = []
    for method in methods:
        found = compare(records, names, (OURS, method), always=(OURS, method), field=field)
        if not found.sets:
            continue
        d = duel(found.column(OURS), found.column(method), found.half_rows)
        low, high = min(found.seeds), max(found.seeds)
        splits = f"{low} to {high}" if low < high else f"{low}"
        counts = f"{d.wins} / {d.ties} / {d.losses}"
        rows.append((label(method), str(len(found.sets)), splits, counts, figure(d.ratio)))
    head = ("method", "sets", "splits", "ours smaller / same / larger", "ratio")
    return f"Tried on too few of the splits to be ranked, each against ours:\n\n{grid(head, rows)}"


def must_hold(records: Records) -> str | None:
    """Set what was wanted next to what the records say."""
    found, rival = main_comparison(records), peer_of(records)
    if not found.sets or OURS not in found.methods:
        return None
    average = average_ranks(found.errors)
    place = found.methods.index(OURS)
    best = found.methods[int(np.argmin(average))]
    rows = [
        ("sets", "74", str(len(found.sets))),
        (
            "mean rank of the default",
            "the best of all methods",
            f"{average[place]:.2f} (best: {label(best)}, {average.min():.2f})",
        ),
    ]
    for other, wanted in ((rival, "at least 80 %"), ("autogluon-ten", "at least half")):
        pair = compare(records, found.sets, (OURS, other), always=(OURS, other), field=found.field)
        words = "not measured"
        if len(pair.methods) == 2 and pair.sets:
            d = duel(pair.column(OURS), pair.column(other), pair.half_rows)
            words = f"{d.wins} of {d.sets}, {_share(d)} %"
        rows.append((f"sets where the default is better than {label(other)}", wanted, words))
    for method, limits in ((OURS, "median at most 1.3, 90th percentile at most 4"),
                           (FAST, "median at most 0.4")):  # fmt: skip
        words = _quantiles(*paired(records, EVERY, method, rival, "fit_s"))
        rows.append((f"training time of {label(method)} over CatBoost's", limits, words))
    few = [n for n in EVERY if max(values(records, n, OURS, "n"), default=0) <= 40_000]
    words = _quantiles(*paired(records, few, OURS, rival, "predict_s"))
    about = "prediction time over CatBoost's, up to 40,000 training rows"
    rows.append((about, "median at most 4", words))
    small = {
        n: max(values(records, n, OURS, "fit_cpu"))
        for n in EVERY if 0 < max(values(records, n, OURS, "n"), default=0) <= 1000
    }  # fmt: skip
    words = "not measured"
    if small:
        slowest = max(small, key=lambda n: small[n])
        which = f"`{slowest}`, the slowest of {len(small)} sets"
        words = f"{small[slowest]:.1f} s of processor time ({which})"
    rows.append(("training on up to 1,000 rows", "at most 1.5 s", words))
    _, mine, theirs = paired(records, EVERY, OURS, rival, "ece")
    rows.append(
        (
            "sets where the calibration error is no larger than CatBoost's",
            "at least half",
            f"{int(np.sum(mine <= theirs))} of {len(mine)}" if len(mine) else "not measured",
        )
    )
    return grid(("what", "wanted", "measured"), rows, left=3)


def _quantiles(names: list[str], mine: Array, theirs: Array) -> str:
    """Return the median and the 90th percentile of ratios in words."""
    if not names:
        return "not measured"
    middle, high = np.quantile(mine / theirs, [0.5, 0.9])
    return f"median {middle:.2f}, 90th percentile {high:.2f} ({len(names)} sets)"


REASONS = {
    "iri": "50 test rows: one row a split",
    "adu": "categories of many levels and few numbers: a distance adds indicators up, a tree "
    "asks for one at a time",
    "shu": "thresholds of a few columns",
    "resume": "rows of one advertisement have similar outcomes, and only several columns together "
    "identify it: their combination as one more column, chosen by hand, takes 1 - AUC from 0.35 to "
    "0.24 on parts of the training rows",
    "solder": "three categories together: their combination as one more column lowers the error by "
    "7 % on parts of the training rows",
    "spa": "counts that are zero in most rows: whether a word is there at all is a step along one "
    "axis",
    "ttt": "three cells of a board together: rules along axes",
    "thy": "thresholds of two or three hormones, hardly anything else",
}
"""Why a set is lost, as far as we know."""


def losses(records: Records) -> str | None:
    """Say where the peer's mean error is smaller, by how much, and why."""
    found, peer = main_comparison(records), peer_of(records)
    names, rows, clear, field = found.sets, [], 0, found.field
    for name in names:
        mean, error, n = gap(records, name, peer, field)
        if n < 2 or mean <= 1e-9:
            continue
        worse = mean > error
        clear += worse
        why = REASONS.get(name, "not known" if worse else "no more than splits differ")
        cells = (measure_of(records, name, field), short(mean, field), short(error, field), why)
        rows.append((f"`{name}`", str(n), *cells))
    if not rows:
        return None
    head = ("set", "splits", "of", "by", "standard error", "why, as far as we know")
    text = (
        f"Where {label(peer)} is ahead, by the mean difference of the splits that both have. Ours "
        f"is no worse within one standard error on {len(names) - clear} of {len(names)} sets."
    )
    return f"{text}\n\n{grid(head, rows, words=1)}"


def fast_ranks(records: Records) -> str | None:
    """Ranks of the preset "fast" among boosting."""
    others = ("lightgbm", peer_of(records), "histgb")
    names, field = compared_sets(records), field_of(records)
    found = compare(records, names, (FAST, *others), always=(FAST, *others), field=field)
    what = "error" if field == "error" else "loss"
    if len(found.sets) < 2:
        return None
    d = duel(found.column(FAST), found.column("lightgbm"), found.half_rows)
    ranks = ", ".join(
        f"{label(m)} {figure(r)}"
        for m, r in zip(found.methods, average_ranks(found.errors), strict=True)
    )
    return (
        f"{label(FAST)} has a smaller {what} than {label('lightgbm')} on {d.wins} of "
        f"{len(found.sets)} sets, the same on {d.ties}, a larger one on {d.losses}. Mean ranks of "
        f"these four: {ranks}."
    )


def errors_by_set(records: Records) -> str | None:
    """All errors of the comparison, sets in the order of their size."""
    found = main_comparison(records)
    rival = peer_of(records)
    if not found.sets or rival not in found.methods:
        return None
    peer = found.column(rival)
    rows = []
    for i, name in enumerate(found.sets):
        line = found.errors[i]
        least = line.min()
        cells = [_marked(value, least, len(line), found.field) for value in line]
        mine = found.column(OURS)[i]
        word = "**behind**" if mine > peer[i] + 1e-9 else "level" if mine > peer[i] - 1e-9 else ""
        rows.append((f"`{name}`", measure_of(records, name, found.field), *cells, word))
    head = ("set", "measure", *(label(m) for m in found.methods), "against CatBoost")
    return grid(head, rows, left=2, words=1)


def _marked(value: float, least: float, k: int, field: str) -> str:
    words = short(value, field)
    return f"**{words}**" if k > 2 and value <= least + 1e-9 else words


# --- time, size, calibration -------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """Medians over sets of ratios to CatBoost, and of absolute values."""

    method: str
    sets: int
    error: float
    fit: float
    predict: float
    size: float


def costs(records: Records) -> list[Cost]:
    """Return error, time and size of every method relative to CatBoost's, over common sets."""
    found, rival, field = [], peer_of(records), field_of(records)
    for method in MAIN:
        names, mine, theirs = paired(records, EVERY, method, rival, "fit_cpu")
        if len(names) < 2:
            continue
        same, e, f = paired(records, names, method, rival, field)
        half = np.array([_half_of(records, name, rival, field) for name in same])
        ratio = duel(e, f, half).ratio if len(same) > 1 else float("nan")
        predict, size = (
            float(np.median(a / b)) if some else float("nan")
            for some, a, b in (
                paired(records, names, method, rival, name) for name in ("predict_s", "model_bytes")
            )
        )
        fit = float(np.median(mine / theirs))
        found.append(Cost(method, len(names), ratio, fit, predict, size))
    return found


def time_and_size(records: Records) -> str | None:
    """Training time, prediction, latency, size and memory, medians over sets."""
    rows = []
    for cost in costs(records):
        names, _, _ = paired(records, EVERY, cost.method, peer_of(records), "fit_cpu")

        def middle(field: str, method: str = cost.method, names: list[str] = names) -> float:
            every = [np.mean(v) for n in names if (v := values(records, n, method, field))]
            return float(np.median(every)) if every else float("nan")

        rows.append(
            (
                label(cost.method),
                str(cost.sets),
                figure(cost.error),
                figure(cost.fit),
                figure(cost.predict),
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
        "method", "sets", "error / CatBoost's", "training / CatBoost's (processor)",
        "prediction / CatBoost's", "training, s",
        "processor s", "rows/s", "one row, ms", "model, MB", "model / CatBoost's", "peak, MB",
    )  # fmt: skip
    return (
        "Medians over the sets that a method shares with CatBoost; the error is the geometric mean "
        "of ratios. The size is that of the pickled model, the peak that of the whole process.\n\n"
        + grid(head, rows)
    )


def calibration(records: Records) -> str | None:
    """Calibration error and log loss against CatBoost's; coverage of intervals."""
    rows, rival = [], peer_of(records)
    for method in MAIN:
        names, mine, theirs = paired(records, EVERY, method, rival, "ece")
        if not names:
            continue
        _, loss, other = paired(records, names, method, rival, "log_loss")
        better = "" if method == rival else f"{int(np.sum(mine <= theirs))} of {len(names)}"
        less = "" if method == rival else f"{int(np.sum(loss <= other))} of {len(names)}"
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
            for name in (*EVERY, *plans.FAMILY_SETS)
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
    records: Records, base: str, others: Sequence[str], names: Sequence[str] = EVERY
) -> str | None:
    """Compare other settings with a base: loss, time, and ranks on two halves of the sets."""
    rows, field = [], field_of(records)
    for method in others:
        same, mine, theirs = paired(records, names, method, base, field)
        if len(same) < 2:
            continue
        half = np.array([_half_of(records, n, base, field) for n in same])
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
        "setting", "sets", "smaller / same / larger", "ratio", "sign test",
        "mean rank of two, 1st half", "2nd half", "training time ratio",
    )  # fmt: skip
    return (
        f"Against {label(base)}; a mean rank of two below 1.5 is better than it. The halves are "
        "every other set: what is decided on one is confirmed on the other.\n\n" + grid(head, rows)
    )


def _half_of(records: Records, name: str, method: str, field: str) -> float:
    found = records.tried.get((name, method), {})
    return next((half_row(r, field) for r in found.values() if has(r, field)), 0.0)


def ablations(records: Records) -> str | None:
    """Take one ingredient of the model for tables away at a time."""
    return variants(records, OURS, ABLATIONS)


def presets(records: Records) -> str | None:
    """Preset against preset, and the peers' inputs instead of ours."""
    return variants(records, OURS, ["table-fast", "table-best", "table-numbers"])


def part_sizes(records: Records) -> str | None:
    """Rows of a part, and two trees; sets of less than 2,500 rows have one part anyway."""
    large = [n for n in EVERY if sets.size_of(n) != "small"]
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
    """Errors on generated families and the smallest possible one."""
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
    ("Ranks on real tables and on the literature", ranks_by_kind, "main --sets all"),
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
