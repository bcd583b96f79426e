"""Numerical lines changed on purpose: how many of the changes do the tests notice?

``python -m tests.fuzz.mutations`` copies the sources, makes one change at a time and runs the tests
named beside it; ``--only 3,7`` tries some of them, ``--seconds`` bounds the time. A change that no
test notices asks for a test. Every old text occurs once in its file, which
`tests/meta/test_mutations.py` keeps true.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEEDED = 0.95  # of the changes that have to be noticed


@dataclass(frozen=True)
class Mutation:
    """One change of a line, and the tests that are to notice it."""

    file: str  # below src/lssvm
    old: str
    new: str
    tests: tuple[str, ...]  # below tests

    @property
    def path(self) -> Path:
        return Path("src", "lssvm", self.file)


def change(file: str, old: str, new: str, *tests: str) -> Mutation:
    return Mutation(file, old, new, tests)


MUTATIONS = (
    # moments
    change("moments/moments.py", "SK = K * s[:, None]", "SK = K * s[:, None] ** 2", "moments"),
    change(
        "moments/moments.py",
        "target, squares = self.weight * own, self.weight * own**2",
        "target, squares = self.weight * own, self.weight * own",
        "moments",
        "estimators/test_fixed_classifier.py",
    ),
    change(
        "moments/moments.py",
        "U[:, keep] / np.sqrt(lam[keep])",
        "U[:, keep] / lam[keep]",
        "moments",
    ),
    change(
        "moments/accumulate.py",
        "root = np.sqrt(block.weight)[:, None]",
        "root = block.weight[:, None]",
        "moments",
    ),
    # solvers
    change(
        "solvers/primal.py",
        "intercept = self.target_mean - np.einsum(",
        "intercept = self.target_mean + np.einsum(",
        "solvers/test_primal.py",
    ),
    change(
        "solvers/primal.py",
        "shrunk = 1.0 / (lam[:, None] + 1.0 / C)",
        "shrunk = 1.0 / (lam[:, None] + 2.0 / C)",
        "solvers/test_primal.py",
    ),
    change(
        "solvers/primal.py",
        "H[np.diag_indices_from(H)] += 1.0 / C",
        "H[np.diag_indices_from(H)] += 1.0 + C",
        "solvers/test_primal.py",
    ),
    change(
        "solvers/exact.py",
        "np.diagonal(array) + (1.0 / system.C + jitter)",
        "np.diagonal(array) + (2.0 / system.C + jitter)",
        "solvers/test_direct.py",
    ),
    change(
        "solvers/cg.py",
        "product += V / self.system.C",
        "product += V * self.system.C",
        "solvers/test_cg.py",
    ),
    change(
        "solvers/smo.py",
        "ridge = 1.0 / (system.C * u[kept] ** 2)",
        "ridge = 1.0 / (system.C * u[kept])",
        "solvers/test_smo.py",
    ),
    change(
        "solvers/exact.py",
        "Y - coef / np.where(left, P, 1.0)[:, None]",
        "Y + coef / np.where(left, P, 1.0)[:, None]",
        "solvers/test_leave_one_out.py",
    ),
    change(
        "solvers/exact.py",
        "P = whole - nu * nu / total",
        "P = whole + nu * nu / total",
        "solvers/test_leave_one_out.py",
    ),
    change(
        "solvers/reweighting.py",
        "np.minimum(1.0, _TUNING * scale / np.maximum(size, 1e-300))",
        "np.minimum(1.0, scale / np.maximum(size, 1e-300))",
        "estimators/test_robust.py",
    ),
    change(
        "solvers/reweighting.py",
        "return float(_MAD * np.median(size))",
        "return float(np.median(size))",
        "estimators/test_robust.py",
    ),
    change(
        "solvers/circulant.py",
        "u = u * (1.0 - share) + other * share",
        "u = u * share + other * (1.0 - share)",
        "solvers/test_circulant.py",
    ),
    # kernels
    change("kernels/radial.py", "[2.0 * gamma * moved,", "[gamma * moved,", "kernels"),
    change("kernels/dot.py", "product += self.coef0", "product -= self.coef0", "kernels"),
    change(
        "kernels/dot.py",
        "np.asarray(int(self.degree) * self.gamma * products",
        "np.asarray(self.gamma * products",
        "kernels",
    ),
    change(
        "kernels/metric.py",
        "return cls(np.sqrt(np.maximum(M / mean, 0.0)))",
        "return cls(np.maximum(M / mean, 0.0))",
        "kernels",
    ),
    change("kernels/radial.py", "D = X @ (-2.0 * Z.T)", "D = X @ (-1.0 * Z.T)", "kernels"),
    # criteria
    change(
        "tuning/objective.py",
        "np.sqrt((deviation**2 * self.weight).sum(axis=1))",
        "(deviation**2 * self.weight).sum(axis=1)",
        "tuning/test_search.py",
        "tuning/test_recorder.py",
    ),
    change(
        "tuning/dual.py",
        "G = -eta_v[:, :, None] * (eta_v / s)[:, None, :]",
        "G = eta_v[:, :, None] * (eta_v / s)[:, None, :]",
        "tuning",
    ),
    change(
        "tuning/spectral.py",
        "(errors[:, total > 0] / total[total > 0])",
        "(errors[:, total > 0])",
        "tuning",
    ),
    change(
        "tuning/spectral.py",
        "trace = trace - (u**2 @ d**2) / s",
        "trace = trace + (u**2 @ d**2) / s",
        "tuning/test_spectral.py",
    ),
    change(
        "tuning/threshold.py",
        "(values[1:] + values[:-1]) / 2",
        "(values[1:] - values[:-1]) / 2",
        "tuning",
    ),
    change(
        "tuning/fixed_size.py",
        "sums / np.where(mass > 0, mass, 1.0)",
        "sums * np.where(mass > 0, mass, 1.0)",
        "tuning",
    ),
    # search
    change(
        "tuning/path.py",
        "space.gamma_start * float(np.exp(u))",
        "space.gamma_start * float(np.exp(-u) + u)",
        "tuning/test_path.py",
    ),
    change(
        "tuning/grid.py", "np.sort(1.0 / sigma**2)", "np.sort(1.0 / sigma)", "tuning"
    ),
    change(
        "tuning/grid.py",
        "gammas = space.gamma_start * np.geomspace(",
        "gammas = np.geomspace(",
        "tuning/test_grid.py",
    ),
    change(
        "tuning/search.py",
        "0.5 * np.sqrt(-loss * (1.0 + loss) / rows)",
        "5.0 * np.sqrt(-loss * (1.0 + loss) / rows)",
        "tuning",
    ),
    # reductions
    change(
        "reductions/l0.py",
        "out[:, system.columns[inside]] = D[:, None] * solved",
        "out[:, system.columns[inside]] = solved",
        "reductions",
    ),
    change(
        "reductions/l0.py",
        "Q, RY = K[:, first] / u[None, first]",
        "Q, RY = K[:, first] * u[None, first]",
        "reductions",
        "estimators/test_dual.py",
    ),
    change(
        "reductions/l0.py",
        "gain += np.sum(system.c**2, axis=1) / np.maximum(variance, floor)",
        "gain += np.sum(system.c**2, axis=1) * np.maximum(variance, floor)",
        "reductions",
    ),
    # greedy
    change(
        "greedy/forward.py",
        "return self.y1 / self.s11 if",
        "return self.y1 * self.s11 if",
        "greedy",
    ),
    change(
        "greedy/forward.py",
        "self.w @ (K * K) - self.total * self._mean(K) ** 2",
        "self.w @ (K * K) + self.total * self._mean(K) ** 2",
        "greedy",
        "estimators/test_greedy.py",
    ),
    change(
        "greedy/path.py",
        "own[c] = y[P] - beta / (diagonal * u)",
        "own[c] = y[P] + beta / (diagonal * u)",
        "greedy",
        "estimators/test_greedy.py",
    ),
    # uncertainty
    change(
        "uncertainty/calibration.py",
        "expit(self.slope * scores + self.offset)",
        "expit(self.slope * scores - self.offset)",
        "uncertainty/test_calibration.py",
    ),
    change(
        "uncertainty/calibration.py",
        "1.0 / (minus + 2.0))  # [Platt2000]",
        "1.0 / (minus + 4.0))  # [Platt2000]",
        "uncertainty/test_calibration.py",
    ),
    change(
        "uncertainty/posterior.py",
        "return self.prior_variance / self.system.C",
        "return self.prior_variance * self.system.C",
        "uncertainty",
    ),
    change(
        "uncertainty/probabilities.py",
        "wanted = coverage * (total + 1.0)",
        "wanted = coverage * (total - 1.0)",
        "uncertainty",
    ),
    # engines
    change(
        "backends/base.py",
        "weight = factor if weight is None else weight * factor",
        "weight = factor if weight is None else weight",
        "backends",
        "solvers/test_pcg.py",
        "estimators/test_many.py",
    ),
    change(
        "backends/rows.py",
        "return fold * n_classes + label if n_classes else fold",
        "return fold + label if n_classes else fold",
        "backends",
        "estimators/test_fixed_stream.py",
    ),
    change(
        "backends/rows.py",
        "return 1.0 / (len(mean) * spread) if spread > 0 else 1.0",
        "return 1.0 / spread if spread > 0 else 1.0",
        "backends",
        "estimators/test_fixed_stream.py",
    ),
    # codes
    change(
        "codes/code.py",
        "(int(filled.max()) - xp.sign(scores) @ words) / 2.0",
        "(int(filled.max()) + xp.sign(scores) @ words) / 2.0",
        "codes",
    ),
    change(
        "codes/code.py",
        "Code(2 * np.eye(k, dtype=np.int8) - 1,",
        "Code(1 - 2 * np.eye(k, dtype=np.int8),",
        "codes",
    ),
    # parts
    change(
        "local/leaf.py",
        "1.0 / (setting.C * rows.weight), repeats",
        "1.0 / setting.C * rows.weight, repeats",
        "local",
    ),
    change(
        "local/model.py",
        "out[rows] += values / len(self.cuts)",
        "out[rows] += values",
        "local",
    ),
    change(
        "local/tree.py",
        "right = X[rows] @ self.directions[node] > self.thresholds[node]",
        "right = X[rows] @ self.directions[node] < self.thresholds[node]",
        "local",
    ),
    # groups, ties and rounding
    change(
        "uncertainty/calibration.py",
        "ends = np.column_stack([knots[starts], knots[np.append(starts[1:], len(knots)) - 1]])",
        "ends = np.column_stack([middle, middle])",
        "uncertainty/test_ties.py",
    ),
    change(
        "uncertainty/calibration.py",
        "fold[np.lexsort((weight, positive, scores))] = np.arange(len(scores)) % _FOLDS",
        "fold = place % _FOLDS",
        "uncertainty/test_ties.py",
        "data/test_repeats.py",
    ),
    change(
        "uncertainty/posterior.py",
        "left = (1.0 - own) * system.C + own * diagonal",
        "left = system.C - own * (system.C - diagonal)",
        "uncertainty/test_posterior.py",
    ),
    change(
        "reductions/l0.py",
        "c[own <= _CONSTANT * whole] = 0.0",
        "c[own < -_CONSTANT * whole] = 0.0",
        "reductions/test_l0.py",
    ),
    change(
        "fitting/greedy.py",
        "return np.isin(groups, order[: min(enough, len(sizes) - 1)])",
        "return rng.permutation(n) < many",
        "data/test_repeats.py",
    ),
    change(
        "fitting/greedy.py",
        "outputs, tested = point.out_of_fold(float(C))",
        "outputs, tested = point.out_of_fold(2.0 * float(C))",
        "data/test_repeats.py",
    ),
    change(
        "fitting/problem.py",
        "if len(heads) < 2 * n_folds:",
        "if len(heads) < 2:",
        "estimators/test_table.py",
    ),
    # recipes and data
    change(
        "fitting/stacking.py",
        "cross = cross + ridge / q",
        "cross = cross - ridge / q",
        "fitting/test_stacking.py",
    ),
    change(
        "fitting/series.py",
        "return 1.0 - lost / spread",
        "return 1.0 + lost / spread",
        "estimators/test_narx.py",
    ),
    change(
        "data/prepare.py",
        "squares = (S * (x - mean) ** 2).sum(axis=0)",
        "squares = (S * abs(x - mean)).sum(axis=0)",
        "data/test_prepare.py",
    ),
)  # fmt: skip


def noticed(mutation: Mutation, folder: Path, limit: float) -> str:
    """Return "noticed", "unnoticed" or what else happened, of one change in a copy."""
    path = folder / mutation.path
    text = path.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        return "does not apply"
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    tests = [os.path.join("tests", name) for name in mutation.tests]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    marks = ["-m", "not slow and not dask and not torch and not browser"]
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        answer = subprocess.run(
            command + marks, cwd=folder, env=environment, capture_output=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return "noticed"  # a computation that no longer ends is noticed by anybody
    finally:
        path.write_text(text, encoding="utf-8")
    return {0: "unnoticed", 1: "noticed"}.get(answer.returncode, "tests do not run")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--only", help="numbers of changes, separated by commas")
    options = parser.parse_args()
    numbers = range(len(MUTATIONS)) if not options.only else map(int, options.only.split(","))
    counts: dict[str, int] = {}
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base)
        for name in ("src", "tests"):
            skipped = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=skipped)
        shutil.copy(ROOT / "pyproject.toml", folder)
        for number in numbers:
            if time.monotonic() > end:
                break
            mutation = MUTATIONS[number]
            result = noticed(mutation, folder, limit=600.0)
            counts[result] = counts.get(result, 0) + 1
            print(f"{number:3} {result:15} {mutation.file}: {mutation.new}", flush=True)
    total = sum(counts.values())
    print(f"{counts.get('noticed', 0)} of {total} changes were noticed: {counts}")
    if counts.get("noticed", 0) < NEEDED * total:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
