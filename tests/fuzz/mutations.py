"""Numerical lines changed on purpose: how many of the changes do the tests notice?

``python -m tests.fuzz.mutations`` copies the sources, makes one change at a time and runs the tests
named with it; ``--only 3,7`` tries some of them, ``--seconds`` bounds the time. A change that no
test notices asks for a test. A change is anchored by the function and the meaning of an expression
(see `places`), so that it survives new files and new local names; that each has exactly one place
is kept true by `tests/meta/test_mutations.py`.
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

from tests.fuzz.places import TOP, NotOnePlace, Place, find

ROOT = Path(__file__).parents[2]
PACKAGE = Path("src", "lssvm")
NEEDED = 0.95  # of the changes that have to be noticed


@dataclass(frozen=True)
class Mutation:
    """One change of an expression or a statement, and the tests that are to notice it."""

    function: str
    old: str  # patterns, see `places`
    new: str
    tests: tuple[str, ...]  # below tests
    at: int | None

    def place(self, root: Path = ROOT) -> Place:
        """Return the one place where it is made."""
        return find(root / PACKAGE, self.function, self.old, self.at)


def change(function: str, old: str, new: str, *tests: str, at: int | None = None) -> Mutation:
    return Mutation(function, old, new, tests, at)


MUTATIONS = (
    change("Moments.of", "A * B[:, None]", "A * B[:, None] ** 2", "moments"),
    change(
        "Moments.scaled",
        "(A * B, A * B ** 2)",
        "(A * B, A * B)",
        "moments",
        "estimators/test_fixed_classifier.py",
    ),
    change("nystrom_map", "np.sqrt(A[B])", "A[B]", "moments"),
    change("_Pass.sums", "np.sqrt(A)[:, None]", "A[:, None]", "moments"),
    change(
        "PrimalSystem.solve",
        "A - np.einsum('m,mck->ck', B, C)",
        "A + np.einsum('m,mck->ck', B, C)",
        "solvers/test_primal.py",
    ),
    change(
        "PrimalSystem.solve",
        "A[:, None] + 1.0 / B",
        "A[:, None] + 2.0 / B",
        "solvers/test_primal.py",
    ),
    change(
        "PrimalSystem._cholesky",
        "A[np.diag_indices_from(A)] += 1.0 / B",
        "A[np.diag_indices_from(A)] += 1.0 + B",
        "solvers/test_primal.py",
    ),
    change(
        "Cholesky.factorise",
        "np.diagonal(A) + (1.0 / B + C)",
        "np.diagonal(A) + (2.0 / B + C)",
        "solvers/test_direct.py",
    ),
    change("CGState.product", "A += B / C", "A += B * C", "solvers/test_cg.py"),
    change("SMO.factorise", "A * B[C] ** 2", "A * B[C]", "solvers/test_smo.py"),
    change(
        "_left_out",
        "A - B / np.where(C, D, 1.0)[:, None]",
        "A + B / np.where(C, D, 1.0)[:, None]",
        "solvers/test_leave_one_out.py",
    ),
    change("_left_out", "A - B * B / C", "A + B * B / C", "solvers/test_leave_one_out.py"),
    change(
        "robust_weights",
        "A * B / np.maximum(C, 1e-300)",
        "B / np.maximum(C, 1e-300)",
        "estimators/test_robust.py",
    ),
    change("residual_scale", "A * np.median(B)", "np.median(B)", "estimators/test_robust.py"),
    change(
        "first_row", "A * (1.0 - B) + C * B", "A * B + C * (1.0 - B)", "solvers/test_circulant.py"
    ),
    change(
        "_Exponents.of",
        "[2.0 * A * B, xp.ones_like(C), -A * C]",
        "[A * B, xp.ones_like(C), -A * C]",
        "kernels",
    ),
    change("Polynomial.__call__", "A += B", "A -= B", "kernels"),
    change("Polynomial.gradient", "int(A) * B * C(len(D), E, F)", "B * C(len(D), E, F)", "kernels"),
    change("Metric.of", "np.sqrt(np.maximum(A / B, 0.0))", "np.maximum(A / B, 0.0)", "kernels"),
    change("_factors", "-2.0 * A", "-1.0 * A", "kernels"),
    change(
        "Losses.std",
        "np.sqrt((A ** 2 * B).sum(axis=1))",
        "(A ** 2 * B).sum(axis=1)",
        "tuning/test_search.py",
        "tuning/test_recorder.py",
    ),
    change("BorderedPath.errors", "-A[:, :, None]", "A[:, :, None]", "tuning"),
    change("CodedSquaredError.__call__", "A[:, B > 0] / B[B > 0]", "A[:, B > 0]", "tuning"),
    change(
        "Terms.of", "A - B ** 2 @ C ** 2 / D", "A + B ** 2 @ C ** 2 / D", "tuning/test_spectral.py"
    ),
    change("best_threshold", "A[1:] + A[:-1]", "A[1:] - A[:-1]", "tuning"),
    change(
        "FixedSizePoint._score_models",
        "A / np.where(B > 0, B, 1.0)",
        "A * np.where(B > 0, B, 1.0)",
        "tuning",
    ),
    change(
        "PathSearch._search.profile",
        "float(np.exp(A))",
        "float(np.exp(-A) + A)",
        "tuning/test_path.py",
    ),
    change("ShrinkingGridSearch._search", "1.0 / A ** 2", "1.0 / A", "tuning"),
    change(
        "GridSearch._search",
        "A * np.geomspace(*B, num=9)",
        "np.geomspace(*B, num=9)",
        "tuning/test_grid.py",
    ),
    change(
        "chance_band",
        "0.5 * np.sqrt(-A * (1.0 + A) / B)",
        "5.0 * np.sqrt(-A * (1.0 + A) / B)",
        "tuning",
    ),
    change("reweighted_step", "A[:, B[C]] = D[:, None] * E", "A[:, B[C]] = E", "reductions"),
    change(
        "reduce_dual_l0",
        "A[:, B] / C[None, B]",
        "A[:, B] * C[None, B]",
        "reductions",
        "estimators/test_dual.py",
    ),
    change(
        "strongest",
        "np.sum(A ** 2, axis=1) / np.maximum(B, C)",
        "np.sum(A ** 2, axis=1) * np.maximum(B, C)",
        "reductions",
    ),
    change("_Scalars.bias", "B / A if A > 0 else 0.0", "B * A if A > 0 else 0.0", "greedy"),
    change(
        "Pursuit._diagonal",
        "A @ (B * B) - C * D(B) ** 2",
        "A @ (B * B) + C * D(B) ** 2",
        "greedy",
        "estimators/test_greedy.py",
    ),
    change("_dual", "A[B] - (C / D).T", "A[B] + (C / D).T", "greedy", "estimators/test_greedy.py"),
    change("Sigmoid.__call__", "A(B * C + D)", "A(B * C - D)", "uncertainty/test_calibration.py"),
    change("fit_sigmoid", "1.0 / (A + 2.0)", "1.0 / (A + 4.0)", "uncertainty/test_calibration.py"),
    change("DualPosterior.noise_variance", "return A / B", "return A * B", "uncertainty"),
    change("conformal_quantile", "A * (B + 1.0)", "A * (B - 1.0)", "uncertainty"),
    change(
        "row_block",
        "B if A is None else A * B",
        "B if A is None else A",
        "backends",
        "solvers/test_pcg.py",
        "estimators/test_many.py",
    ),
    change(
        "_moments.assign",
        "B * A + C if A else B",
        "B + C if A else B",
        "backends",
        "estimators/test_fixed_stream.py",
    ),
    change(
        "_block_outputs",
        "np.moveaxis(A, 1, 0) + B.intercept[:, None, :]",
        "np.moveaxis(A, 1, 0) - B.intercept[:, None, :]",
        "tuning/test_fixed_size.py",
        "estimators/test_fixed_classifier.py",
    ),
    change("decode", "int(A.max()) - xp.sign(B) @ C", "int(A.max()) + xp.sign(B) @ C", "codes"),
    change(
        "one_vs_all",
        "2 * np.eye(A, dtype=np.int8) - 1",
        "1 - 2 * np.eye(A, dtype=np.int8)",
        "codes",
    ),
    change("fit_leaf.solve", "1.0 / (A * B)", "1.0 / A * B", "local"),
    change("LocalModel.outputs", "A[B] += C / len(D)", "A[B] += C", "local"),
    change("Tree.route", "A[B] @ C[D] > E[D]", "A[B] @ C[D] < E[D]", "local"),
    change(
        "_fit_isotonic",
        "[A[B], A[np.append(B[1:], len(A)) - 1]]",
        "[A[B], A[B]]",
        "uncertainty/test_ties.py",
    ),
    change(
        "_choose",
        "A[np.lexsort((B, C, D))] = np.arange(len(D)) % E",
        "A[:] = np.arange(len(D)) % E",
        "uncertainty/test_ties.py",
        "data/test_repeats.py",
    ),
    change(
        "DualPosterior.leave_out",
        "(1.0 - A) * B + A * C",
        "B - A * (B - C)",
        "uncertainty/test_posterior.py",
    ),
    change("L0System.of", "A[B <= C * D]", "A[B < -C * D]", "reductions/test_l0.py"),
    change(
        "GreedySettings.held_out",
        "np.isin(A, B[:min(C, len(D) - 1)])",
        "np.arange(len(A)) < len(A) // 3",
        "data/test_repeats.py",
    ),
    change("fit_greedy", "A, B = C(float(D))", "A, B = C(2.0 * float(D))", "data/test_repeats.py"),
    change("series_curve", "len(A) < 2 * B", "len(A) < 2", "report/test_sections.py"),
    change("_nonnegative", "A = A + B / C", "A = A - B / C", "fitting/test_stacking.py"),
    change(
        "SeriesFit.score", "return 1.0 - A / B", "return 1.0 + A / B", "estimators/test_narx.py"
    ),
    change("weighted_moments", "(A - B) ** 2", "abs(A - B)", "preparation"),
    # the four that nothing noticed once
    change("Leaf.nearby_error", "A /= B.sum(axis=1) + 1.0", "A /= B.sum(axis=1)", "local"),
    change(
        "cross_stack",
        "np.full(len(A), 1.0 / len(A))",
        "np.full(len(A), 1.0)",
        "fitting/test_stacking.py",
    ),
    change(TOP, "(0.125, 0.25, 0.5, 1.0)", "(0.125, 0.25, 0.5, 0.5)", "fitting"),
    change(
        "add_prototypes",
        "replace(A, seconds=B() - C, step=D)",
        "replace(A, seconds=B() + C, step=D)",
        "fitting/test_table_prototypes.py",
    ),
    # stacks, warps, slopes at ties, drafts and gains
    change(
        "Leaf.nearby_error",
        "A[B[C][:, None] == B] = np.inf",
        "np.fill_diagonal(A, np.inf)",
        "local/test_parts.py",
    ),
    change("fit_leaf.solve", "A.C * B < C", "True", "local/test_parts.py"),
    change("fit_leaf", "A or B is None", "A or True", "local/test_parts.py"),
    change("fit_local_models", "A[::_TUNED]", "A[::1]", "local/test_parts.py"),
    change(
        "middle_setting",
        "np.exp(A.mean(axis=0))",
        "np.exp(A.max(axis=0))",
        "local/test_parts.py",
    ),
    change(
        "_laplacian_steps",
        "A[np.arange(len(B)), C] = 0.0",
        "A[np.arange(len(B)), C] = 1.0",
        "kernels/test_metric.py",
    ),
    change(
        "_steps_by_level",
        "A[np.arange(len(B)), C] = 0.0",
        "A[np.arange(len(B)), C] = 1.0",
        "kernels/test_metric.py",
    ),
    change(
        "_change_by_level",
        "np.expm1(np.minimum(-A * B(C), D))",
        "np.minimum(-A * B(C), D)",
        "kernels/test_metric.py",
    ),
    change(
        "_change_by_level",
        "-0.5 * A * np.exp(-A * B)",
        "-1.0 * A * np.exp(-A * B)",
        "kernels/test_metric.py",
    ),
    change(
        "low_rank",
        "A * np.sqrt(B / float(C))",
        "A * (B / float(C))",
        "kernels/test_metric.py",
    ),
    change("squared_slopes", "A * B.slopes(C) ** 2", "A", "kernels/test_warp.py"),
    change(
        "Warp._interpolate",
        "A += np.maximum(B - C[-1], 0.0) * D",
        "A += np.maximum(B - C[-1], 0.0)",
        "kernels/test_warp.py",
    ),
    change("Metric.unmap", "A.warp.invert(B)", "B", "kernels/test_warp.py"),
    change(
        "learn_warp",
        "np.sqrt(np.maximum(A / B / C, D ** 2))",
        "np.maximum(A / B / C, D ** 2)",
        "kernels/test_warp.py",
    ),
    change(
        "learn_warp",
        "np.searchsorted(A, B, side='left')",
        "np.searchsorted(A, B, side='right')",
        "kernels/test_warp.py",
    ),
    change(
        "_log_stack.losses",
        "A[:, None] * (B - C)",
        "A[:, None] * (B + C)",
        "fitting/test_stacking.py",
    ),
    change(
        "_log_stack.minimised",
        "[(A, 1e3)] * B",
        "[(-1e3, 1e3)] * B",
        "fitting/test_stacking.py",
    ),
    change("_shares", "np.log(A / (1.0 - A))", "np.log(A)", "fitting/test_stacking.py"),
    change(
        "StackRule.fit",
        "A.offset + B.shift(C, D)",
        "A.offset",
        "fitting/test_stacking.py",
    ),
    change("Work.worth", "A > B * max(C, 0.02)", "A > 0.0", "fitting/test_table.py"),
    change("fall_of_loss.fall", "1.0 - A / B", "A / B", "fitting/test_table.py"),
    change("without_redundant", "A + B * C * abs(A)", "A", "fitting/test_table.py"),
    change(
        "ClassScorer.decision_shift",
        "-np.array([A])",
        "np.array([A])",
        "estimators/test_table_scoring.py",
    ),
    change(
        "_between_rows",
        "(A[B] + A[B + 1]) / 2.0",
        "A[B]",
        "estimators/test_table_scoring.py",
    ),
    change(
        "compress",
        "A.weight / B.table(np.ones(B.n_classes)).factors[C]",
        "A.weight",
        "estimators/test_table_scoring.py",
    ),
    change(
        "LSSVMClassifier._scorer",
        "ClassScorer(A, B, C.score_weight, D, E)",
        "ClassScorer(A, B, C.weight, D, E)",
        "estimators/test_table_scoring.py",
    ),
    # the model for tables: rounds, sizes, time, folds, calibration, columns
    change(
        "learn_on_rows",
        "A.error <= (1.0 - B.gain) * C",
        "A.error <= (1.0 + B.gain) * C",
        "fitting/test_table.py",
    ),
    change("clearly_best", "2.5 if A < B else 1.0", "0.0", "fitting/test_table.py"),
    change("clearly_best", "A[0] - A[B]", "A[B] - A[0]", "fitting/test_table.py"),
    change("next_map", "A / B", "B / A", "fitting/test_table.py"),
    change("better_inputs", "A * (1.0 + 2.0 * B)", "A * (1.0 - 2.0 * B)", "fitting/test_table.py"),
    change("choose_leaf_size", "3 * A < B", "A < B", "fitting/test_table.py"),
    change("choose_leaf_size", "_NEXT_GAIN * A", "A", "fitting/test_table.py"),
    change("overfitted", "A > 2.0 * np.sqrt(sum(B))", "A > 0.0", "fitting/test_table.py"),
    change("overfitted", "A[1] - A[0]", "A[0] - A[1]", "fitting/test_table.py"),
    change("worth_fitting", "(A - B) / abs(A) if A else 0.0", "(A - B)", "fitting/test_table.py"),
    change("worth_fitting", "A and len(B) == 1", "A", "fitting/test_table.py"),
    change("in_order", "lambda c: c.error", "lambda c: c.loss", "fitting/test_table.py"),
    change("rows_that_count", "A.sum() ** 2", "A.sum()", "fitting/test_table.py"),
    change("fit_fallback", "0.5 / A(B(C, D, E))", "50.0 / A(B(C, D, E))", "fitting/test_table.py"),
    change("without_rows", "A[B] = np.nan", "A[B] = 0.0", "fitting/test_table.py"),
    change(
        "median_distance",
        "A[A > 0]",
        "A[A >= 0]",
        "fitting/test_table.py",
        "fitting/test_nested.py",
        "fitting/test_stacking.py",
    ),
    change(
        "choose_by_other_folds",
        "A[:, ~B]",
        "A[:, B]",
        "fitting/test_nested.py",
        "fitting/test_table.py",
    ),
    change("tune_outside_folds", "A != B", "A == B", "fitting/test_nested.py"),
    change(
        "tune_on_grid",
        "((A - B) ** 2).sum(axis=2) * C",
        "((A - B) ** 2).sum(axis=2)",
        "fitting/test_nested.py",
        "fitting/test_table.py",
    ),
    change("_distances", "np.sqrt(A)", "A", "fitting/test_nested.py", "fitting/test_table.py"),
    change("Clock.over", "A * B.limit", "B.limit", "fitting/test_table.py"),
    change("Clock.affordable", "max(A - B, 0.0) * C", "max(A - B, 0.0)", "fitting/test_table.py"),
    change("Work.unit", "5e6 * A", "5e9 * A", "fitting/test_table.py"),
    change("most_used", "0.02 * A", "0.6 * A", "fitting/test_stacking.py", "fitting/test_table.py"),
    change("fit_stack", "2.0 * A - 1.0", "A", "fitting/test_stacking.py"),
    change("StackRule.fit", "np.count_nonzero(A) <= B", "True", "fitting/test_stacking.py"),
    change("held_out_r2", "(A - B) ** 2", "abs(A - B)", "estimators/test_table_scoring.py"),
    change(
        "held_out_r2",
        "A.sum() ** 2 - (A ** 2).sum()",
        "A.sum() ** 2",
        "estimators/test_table_scoring.py",
    ),
    change(
        "NumberScorer.smeared",
        "A / (B * C ** 2).sum(axis=0)",
        "A / (B * C).sum(axis=0)",
        "estimators/test_table_scoring.py",
    ),
    change("_local_scale", "4 * A <= len(B)", "A <= len(B)", "estimators/test_table_quantiles.py"),
    change("_local_scale", "A - B(C)", "B(C) - A", "estimators/test_table_quantiles.py"),
    change("number_of_prototypes", "A / 4", "A", "fitting/test_table_prototypes.py"),
    change("threads_for", "(A - B) / 2.0", "A - B", "fitting/test_table_prototypes.py"),
    change("width_of_prototypes", "A or B.worth(C, D)", "True", "fitting/test_table_prototypes.py"),
    change("without", "A != B", "A == B", "fitting/test_table_prototypes.py"),
    change(
        "change_global",
        "A < B * C.weight",
        "False",
        "fitting/test_table_prototypes.py",
        "fitting/test_table.py",
    ),
    change("LocalModel._with", "len(A) > B * C", "len(A) > C", "local"),
    change("LocalModel.squared_error", "A / len(B)", "A", "local"),
    change(
        "_KeptRows.take",
        "A.sum() < B * (1.0 - 1e-9)",
        "A.sum() < 0.0",
        "local",
        "fitting/test_table.py",
    ),
    change("_KeptRows.take", "min(A, float(B))", "A", "local", "fitting/test_table.py"),
    change("_between", "np.abs(A - B)", "A - B", "local"),
    change("_between", "(A + B) / 2.0", "B", "local"),
    change("_split", "1.0 if A else -1.0", "1.0", "local"),
    change(
        "Rows.joined",
        "np.concatenate([A.weight, B.weight])",
        "np.concatenate([B.weight, A.weight])",
        "local",
    ),
    change("LocalModel.leave_one_out", "A / np.maximum(B, 1)", "A / len(B)", "local"),
    change("in_observations", "A * (B / C)", "A", "uncertainty"),
    change("fit_sigmoid", "(A + 1.0) / (B + 1.0)", "(B + 1.0) / (A + 1.0)", "uncertainty"),
    change("_fit_isotonic", "(A + B * C) / (D + B)", "A / D", "uncertainty"),
    change("_choose", "min(A, key=B)", "max(A, key=B)", "uncertainty"),
    change("Isotonic.__call__", "np.interp(A, B, C)", "np.interp(-A, B, C)", "uncertainty"),
    change("Distinct.median", "A / 2 + B / 2", "A", "preparation"),
    change("learn_normal_scores", "np.cumsum(A) - A / 2", "np.cumsum(A)", "preparation"),
    change("phase", "np.mod(A, 7.0)", "np.mod(A + 1.0, 7.0)", "preparation"),
    change("DateEncoding.encode", "2.0 * np.pi * A", "np.pi * A", "preparation"),
    change(
        "repeats_by_nature", "A * B <= C", "A * B < C", "data/test_folds.py", "data/test_repeats.py"
    ),
    change(
        "are_observations", "A >= B * C", "A <= B * C", "data/test_folds.py", "data/test_repeats.py"
    ),
    change(
        "observation_weight",
        "np.round(A).sum()",
        "len(A)",
        "data/test_folds.py",
        "data/test_repeats.py",
    ),
    change("Distinct.constant", "A / 2 - B / 2 <= C", "A / 2 - B / 2 <= 0.0", "preparation"),
    change("LevelEncoding._place", "A.get(B, -2)", "A.get(B, -1)", "preparation"),
    change(
        "DistinctRows.n_distinct",
        "min(A, round(B))",
        "round(B)",
        "data/test_folds.py",
        "data/test_repeats.py",
    ),
    change("in_observations", "len(A) == 0", "True", "uncertainty"),
)


def noticed(mutation: Mutation, folder: Path, limit: float) -> str:
    """Return "noticed", "unnoticed" or what else happened, of one change in a copy."""
    try:
        place = mutation.place(folder)
    except NotOnePlace:
        return "does not apply"
    path = place.path
    text = path.read_text(encoding="utf-8")
    path.write_text(place.changed(mutation.new), encoding="utf-8")
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
            print(f"{number:3} {result:15} {mutation.function}: {mutation.new}", flush=True)
    total = sum(counts.values())
    print(f"{counts.get('noticed', 0)} of {total} changes were noticed: {counts}")
    if counts.get("noticed", 0) < NEEDED * total:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
