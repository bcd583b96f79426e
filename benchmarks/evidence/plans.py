"""What is run: lists of (set, method, seed), small ones first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.evidence import methods, sets
from benchmarks.evidence.generated import FAMILIES

SEEDS = {"small": 10, "middle": 5, "large": 3}
"""Seeds of the full study by the size of a set."""

BUDGETS = {"small": 10.0, "middle": 30.0, "large": 100.0}
"""Seconds of a search for settings by the size of a set: about what our default takes there."""

QUICK_SETS = tuple(
    "carseats solder credit_card hmda slid_wages hpc "
    "iri win hea bld bal veh gcr ccs ripley ims spa kin8nm".split()
)
"""Real tables and sets of the literature of few rows; `sets.BUNDLED` need no files."""

FAMILY_SETS = tuple(f"gen_{family}_n1000_d10" for family in FAMILIES)

SMALL_SAMPLE_SETS = tuple(
    f"{name}@{rows}"
    for rows in (50, 100, 200, 500)
    for name in ("spa", "wav", "rae_image", "pid", "kin8nm", "mgt", "bike_hour", "ccs")
)

GROWTH_SETS = (
    *(f"gen_smooth_n{n}_d10" for n in (500, 1000, 2000, 4000, 8000, 16000)),
    *(f"gen_smooth_n2000_d{d}" for d in (5, 20, 40, 80)),
)

ROBUST_SETS = tuple(
    name + change
    for name in ("spa", "rae_image", "kin8nm", "ccs", "veh", "wav")
    for change in ("", "+useless", "+rotated")
)

SET_GROUPS: dict[str, Sequence[str]] = {
    "all": (*sets.STUDY, *sets.TABLES),
    "study": sets.STUDY,
    "tables": sets.TABLES,
    "thirty": sets.THIRTY,
    "quick": QUICK_SETS,
    "generated": FAMILY_SETS,
    "small-sample": SMALL_SAMPLE_SETS,
    "growth": GROWTH_SETS,
    "robust": ROBUST_SETS,
}


@dataclass(frozen=True)
class Job:
    """One record that is wanted."""

    set: str
    method: str
    seed: int

    @property
    def budget(self) -> float:
        """Seconds of a search for settings."""
        return BUDGETS[sets.size_of(self.set)]

    @property
    def needs_no_file(self) -> bool:
        """Whether the rows come with the package, with scikit-learn, or are generated."""
        base = sets.base_of(self.set)
        return base in sets.BUNDLED or base.startswith("gen_")

    @property
    def key(self) -> tuple[str, str, int]:
        """Where the record is kept."""
        return self.set, self.method, self.seed


def named_sets(wanted: Iterable[str]) -> list[str]:
    """Return names of sets, those of groups written out."""
    names = [n for w in wanted for n in SET_GROUPS.get(w, [w])]
    for name in names:
        base = sets.base_of(name)
        if base.startswith("gen_") and base.split("_")[1] not in FAMILIES:
            raise SystemExit(f"{name!r} is no generated set: families are {', '.join(FAMILIES)}")
    return list(dict.fromkeys(names))


def largest_first(jobs: Iterable[Job]) -> list[Job]:
    """Return jobs for many processes: one seed after the other, what takes long at its begin."""
    sizes = ("large", "middle", "small")
    return sorted(jobs, key=lambda job: (job.seed, sizes.index(sets.size_of(job.set))))


def plan(
    names: Sequence[str], wanted: Sequence[methods.Method], seeds: Sequence[int] | None
) -> list[Job]:
    """Return all jobs, one seed of everything before the next; None: seeds by size."""
    most = max(SEEDS.values())
    return [
        Job(name, method.name, seed)
        for seed in (range(most) if seeds is None else seeds)
        for name in names
        if seeds is not None or seed < SEEDS[sets.size_of(name)]
        for method in wanted
        if sets.task_of(name) in method.tasks
    ]


def quick() -> list[Job]:
    """Return the quick run: under twenty minutes on two cores."""
    return [
        *plan(QUICK_SETS, methods.named(["quick"]), [0]),
        *plan(FAMILY_SETS, methods.named(["table-fast", "catboost-native", "svm"]), [0]),
    ]


def full() -> list[Job]:
    """Return the whole study; what matters most comes first."""
    main = methods.named(["main"])
    some = methods.named(
        ["table", "table-fast", "fixed", "dual", "catboost", "lightgbm", "histgb", "forest", "svm",
         "gaussian-process", "mlp", "neighbours", "xrfm"]
    )  # fmt: skip
    changed, peers = methods.named(["ablations", "variants"]), methods.named(["peers"])
    jobs = [
        *plan(sets.TABLES, peers, [0, 1, 2]),
        *plan(sets.STUDY, main, [0]),
        *plan(FAMILY_SETS, main, [0, 1, 2]),
        *plan((*sets.TABLES, *sets.STUDY), changed, [0]),
        *plan(SMALL_SAMPLE_SETS, some, [0, 1, 2]),
        *plan(GROWTH_SETS, some, [0]),
        *plan(ROBUST_SETS, some, [0, 1, 2]),
        *plan((*sets.TABLES, *sets.STUDY), main, None),
        *plan((*sets.TABLES, *sets.STUDY), changed, [1, 2]),
    ]
    return list(dict.fromkeys(jobs))
