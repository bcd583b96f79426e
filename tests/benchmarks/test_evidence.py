"""The evidence: splits, measures, records and resuming, ranks, and texts that are not stale."""

import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks.evidence import __main__ as evidence
from benchmarks.evidence import (
    machine,
    measures,
    measuring,
    ours,
    pictures,
    plans,
    questions,
    ranks,
    records,
    report,
    running,
    sets,
)
from benchmarks.evidence.generated import FAMILIES, generate
from benchmarks.evidence.methods import ABLATIONS, GROUPS, Ask, Method, named, registry
from benchmarks.evidence.peers import BudgetSearch, Framed, PerClass
from benchmarks.evidence.plans import Job
from scipy import stats
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC
from tests.meta.tree import ROOT

from lssvm.estimators.table_fit import settings_of

pytestmark = pytest.mark.usefixtures("without_nested_folds")

STATE = {
    "versions": {"python": "3"},
    "machine": {"cores": 2, "cpu": "a", "memory_gb": 1, "system": "b"},
    "code": "c",
}


class Most:
    """A fake method: the most frequent class, with probabilities."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares = counts / len(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[self.shares.argmax()])

    def predict_proba(self, X):
        return np.tile(self.shares, (len(X), 1))


class Mean:
    """A fake method for numbers, with intervals."""

    def fit(self, X, y):
        self.mean, self.spread = np.mean(y), np.std(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean)

    def predict_interval(self, X, coverage):
        return np.tile([self.mean - 9 * self.spread, self.mean + 9 * self.spread], (len(X), 1))


class Broken:
    """A fake method that fails, with a path in what it says."""

    def fit(self, X, y):
        raise RuntimeError("no luck\nin " + "/" + "home/ada/data today")


def fake(name="fake", make=lambda ask: Most(), inputs="numbers", **more):
    return Method(name, name.upper(), "other", inputs, make, **more)


@pytest.fixture
def folder(tmp_path):
    """A folder with a table of numbers, text, missing values and a constant column."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": random.normal(size=90),
            "b": random.choice(["x", "y", "?"], 90),
            "c": np.where(np.arange(90) % 7 == 0, np.nan, random.normal(size=90)),
            "constant": 1,
            "split": "train",
            "target": random.choice(["no", "yes", "maybe"], 90, p=[0.5, 0.3, 0.2]),
        }
    )
    frame.to_parquet(tmp_path / "made.parquet")
    return tmp_path


# --- data --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 3])
def test_the_split_is_stratified_and_the_columns_are_prepared_by_training_rows(folder, seed):
    table = pd.read_parquet(folder / "made.parquet")
    y = table["target"].to_numpy()
    a, b = train_test_split(
        np.arange(90), test_size=1 / 3, random_state=seed, stratify=pd.factorize(y)[0]
    )
    found = sets.split(folder, "made", seed)
    pd.testing.assert_frame_equal(found.X_train, table[["a", "b", "c"]].iloc[a])
    pd.testing.assert_frame_equal(found.X_test, table[["a", "b", "c"]].iloc[b])
    assert (found.y_train == y[a]).all() and (found.y_test == y[b]).all()
    assert found.capped is None
    train, test = sets.numeric(found.X_train, found.X_test)
    at = 0
    for name in found.X_train:
        for rows, part in ((train, found.X_train), (test, found.X_test)):
            column = part[name]
            if sets.is_number(column):
                filled = column.fillna(found.X_train[name].median())
                np.testing.assert_array_equal(rows[:, at], filled)
                width = 1
            else:
                levels = sorted(found.X_train[name].astype(str).unique())
                width = len(levels)
                for k, level in enumerate(levels):
                    np.testing.assert_array_equal(rows[:, at + k], column.astype(str) == level)
        at += width
    assert train.shape[1] == test.shape[1] == at


def test_sets_of_the_package_need_no_files():
    for name in sets.BUNDLED:
        found = sets.split(None, name, 0)
        assert len(found.y_test) >= 50 and found.X_train.shape[1] >= 2
        assert (len(np.unique(found.y_train)) < 5) == (found.task == "classes")
    assert Job("gen_smooth_n100_d5", "m", 0).needs_no_file and Job("iri@20", "m", 0).needs_no_file
    assert not Job("ames", "m", 0).needs_no_file


def test_a_set_is_cut_changed_and_named(folder, monkeypatch):
    whole = sets.split(folder, "made", 0)
    few = sets.split(folder, "made@20", 0)
    pd.testing.assert_frame_equal(few.X_train, whole.X_train[:20])
    assert few.capped == 20 and len(few.y_test) == len(whole.y_test)
    more = sets.split(folder, "made+useless", 0)
    assert more.X_train.shape[1] == 6 and more.X_test.iloc[:, 3:].to_numpy().std() > 0.5
    turned = sets.split(folder, "made+rotated", 0)
    A = sets.numeric(whole.X_train, whole.X_test)[0]
    A = (A - A.mean(axis=0)) / A.std(axis=0)
    # A rotation keeps all scalar products.
    np.testing.assert_allclose(turned.X_train @ turned.X_train.T, A @ A.T, atol=1e-10)
    monkeypatch.setattr(sets, "MOST_CELLS", 90)
    assert len(sets.split(folder, "made", 0).y_train) == 30
    with pytest.raises(SystemExit, match="no name of a set"):
        sets.split(folder, "made@few", 0)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_generated_family_has_the_size_that_was_asked_for_and_a_known_answer(family):
    X, y, best = generate(f"gen_{family}_n200_d6", 1)
    assert X.shape == (300, 6) and len(y) == len(best) == 300
    again = generate(f"gen_{family}_n200_d6", 1)
    np.testing.assert_array_equal(X, again[0])
    other = generate(f"gen_{family}_n200_d6", 2)
    assert not np.array_equal(X, other[0])
    if FAMILIES[family].task == "numbers":
        assert 0 < measures.error_of_numbers(y, best) < 20
    else:
        wrong = measures.error_of_classes(y, best)
        assert 0 < wrong < 30 and set(y) == {0, 1}


def test_the_rare_class_is_rare_and_rows_are_repeated():
    _, y, best = generate("gen_imbalance_n4000_d5", 0)
    assert 0.03 < y.mean() < 0.05
    assert np.mean(y != best) < 0.03
    X, _, _ = generate("gen_duplicates_n300_d5", 0)
    assert len(X.drop_duplicates()) == 150
    with pytest.raises(SystemExit, match="no generated set"):
        generate("gen_nothing_n10", 0)
    with pytest.raises(SystemExit, match="at least 4"):
        generate("gen_smooth_n10_d2", 0)


def test_the_sets_of_the_study_have_names_tasks_and_sizes():
    assert len(sets.STUDY) == len(set(sets.STUDY)) >= 40
    assert set(sets.STUDY) == set(sets.TITLES)
    assert set(sets.THIRTY) <= set(sets.STUDY) and not set(sets.SAME_ROWS) & set(sets.STUDY)
    assert sets.task_of("bho@50") == "numbers" and sets.task_of("gen_sparse") == "classes"
    assert sets.size_of("adu") == "large" and sets.size_of("iri") == "small"


# --- measures ----------------------------------------------------------------------------------


def test_errors_log_loss_and_calibration_by_hand():
    assert measures.error_of_classes(np.array([1, 2, 2, 1]), np.array([1, 1, 2, 1])) == 25.0
    y = np.array([1.0, 2.0, 3.0])
    assert measures.error_of_numbers(y, np.array([1.0, 2.0, 5.0])) == pytest.approx(200.0)
    p = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.45, 0.55]])
    codes = np.array([0, 1, 1, 0])
    assert measures.log_loss(codes, p) == pytest.approx(sklearn_log_loss(codes, p))
    assert measures.log_loss(np.array([-1]), p[:1]) == pytest.approx(-np.log(1e-15))
    # Two bins, 0.5-1: mean confidence 0.7375, right 2 of 4.
    assert measures.calibration_error(codes, p, bins=2) == pytest.approx(0.7375 - 0.5)
    # Fifteen bins: every row has one of its own.
    assert measures.calibration_error(codes, p) == pytest.approx((0.1 + 0.8 + 0.3 + 0.55) / 4)
    assert measures.coverage(y, y - 1, np.array([0.5, 2.5, 3.5])) == pytest.approx(2 / 3)


def test_the_size_of_a_model_is_that_of_its_pickle():
    import pickle

    model = {"array": np.zeros(1000), "name": "made"}
    assert measures.stored_bytes(model) == len(pickle.dumps(model, protocol=5))
    assert measures.stored_bytes(lambda: None) is None


def test_a_record_of_classes_has_all_measures(folder):
    record = measuring.measure(folder, "made", fake(), 0, threads=1, budget=1.0)
    assert record["status"] == "ok" and record["n"] == 60 and record["n_test"] == 30
    assert record["d"] == 5 and record["columns"] == 3  # two numbers, three indicators
    parts = sets.split(folder, "made", 0)
    most = pd.Series(parts.y_train).mode()[0]
    assert record["error"] == pytest.approx(100 * np.mean(parts.y_test != most))
    for name in (
        "log_loss ece fit_s fit_cpu predict_s predict_cpu rows_per_s one_row_s model_bytes peak_mb"
    ).split():
        assert record[name] >= 0, name
    json.dumps(record)
    framed = measuring.measure(folder, "made", fake(inputs="frame"), 0, threads=1, budget=1.0)
    assert framed["error"] == record["error"] and framed["d"] == 3
    assert framed["log_loss"] == pytest.approx(record["log_loss"])


def test_a_record_of_numbers_has_intervals_and_the_smallest_possible_error(tmp_path):
    for inputs in ("numbers", "standardised"):
        method = fake(make=lambda ask: Mean(), inputs=inputs, most_rows=40)
        record = measuring.measure(tmp_path, "gen_smooth_n90", method, 0, threads=1, budget=1.0)
        assert record["n"] == 40 and record["trained_on_part"] is True
        assert record["error"] > 99 > record["known_error"] > 0
        assert record["coverage"] == 1.0 and record["width"] > 10


def test_what_a_method_raises_is_a_record_without_paths(folder):
    method = fake(make=lambda ask: Broken())
    record = measuring.measure(folder, "made", method, 0, threads=1, budget=1.0)
    assert record["status"] == "error" and record["text"] == "RuntimeError: no luck in ... today"
    numbers = fake(tasks=("numbers",))
    refused = measuring.measure(folder, "made", numbers, 0, threads=1, budget=1.0)
    assert "does not predict classes" in refused["text"]


def test_a_missing_library_is_recorded_as_such(folder):
    method = fake(needs=("a_library_that_is_not_there",))
    record = measuring.measure(folder, "made", method, 0, threads=1, budget=1.0)
    assert record["status"] == "not installed" and "a_library" in record["text"]


# --- methods -----------------------------------------------------------------------------------


def test_groups_name_methods_that_exist():
    known = registry()
    assert all(name in known for names in GROUPS.values() for name in names)
    assert [m.name for m in named(["ablations", "svm", "svm"])] == [*ABLATIONS, "svm"]
    with pytest.raises(SystemExit, match="not known"):
        named(["nothing"])


@pytest.mark.parametrize(
    "name",
    ["histgb", "forest", "svm", "nusvm", "svm-tuned", "kernel-ridge", "gaussian-process",
     "mlp", "neighbours", "fixed", "dual", "fixed-float32"],
)  # fmt: skip
@pytest.mark.parametrize("family", ["sparse", "axis"])
def test_methods_of_installed_libraries_fit(tmp_path, name, family):
    method = registry()[name]
    record = measuring.measure(tmp_path, f"gen_{family}_n60_d4", method, 0, threads=1, budget=0.01)
    assert record["status"] == "ok", record
    assert record["error"] < (60 if family == "sparse" else 130)
    assert record["model_bytes"] > 0


@pytest.mark.parametrize("name", ["table-fast", "table-without-stacking", *ABLATIONS[3:4]])
def test_the_models_for_tables_fit(folder, name):
    method = registry()[name]
    record = measuring.measure(folder, "made@40", method, 0, threads=1, budget=0.01)
    assert record["status"] == "ok", record
    assert record["error"] < 85
    if name != "table-without-stacking":
        assert record["n_members"] >= 1 and "rows" in record["summary"]
        assert record["spent_s"]["all rows"] > 0


def test_an_ingredient_of_the_settings_is_switched_off(folder, monkeypatch):
    ask = Ask("classes", 40, 3, 0, 1, 1.0)
    model = registry()["table-without-rounds"].make(ask)
    usual = settings_of(registry()["table"].make(ask), None)
    assert model.settings(model, None) == replace(usual, rounds=0)
    record = measuring.measure(
        folder, "made@40", registry()["table-without-rounds"], 0, threads=1, budget=0.01
    )
    assert record["status"] == "ok" and record["model_bytes"] > 0
    assert [ours.switched_off(value) for value in (True, 3, 0.5, "log", None)] == [
        False, 0, 0.0, None, None,
    ]  # fmt: skip
    nothing = replace(registry()["table"], make=partial(ours._without, ingredient="nothing"))
    missing = measuring.measure(folder, "made@40", nothing, 0, threads=1, budget=0.01)
    assert missing["status"] == "not installed" and "'nothing'" in missing["text"]


def test_without_stacking_one_member_decides():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(80, 2)), columns=["a", "b"])
    y = np.sin(X["a"].to_numpy()) * X["b"].to_numpy()
    ask = Ask("numbers", 80, 1, 0, 1, 1.0)
    model = registry()["table-without-stacking"].make(ask).fit(X, y)
    (member,) = model.model.record_.members
    assert member.weight == 1.0
    whole = registry()["table"].make(ask).fit(X, y)
    trials = whole.record_.tuning.trials
    best = trials[int(np.argmin([t.error for t in trials]))]
    kept = {str(m) for m in whole.record_.members}
    assert str(member) in kept
    if str(best) in kept:
        assert str(member) == str(best)


def test_a_search_tries_the_default_first_and_stops_in_time():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    found = BudgetSearch(lambda C, gamma: SVC(C=C, gamma=gamma), True, 0.0, 0).fit(X, y)
    assert found.tried_ == 1 and found.model_.C == 1.0
    assert found.model_.gamma == pytest.approx(1 / (3 * X.var()))
    again = BudgetSearch(lambda C, gamma: SVC(C=C, gamma=gamma), True, 0.3, 0).fit(X, y)
    assert again.tried_ > 1 and np.mean(again.predict(X) == y) > 0.9
    assert np.mean(again.predict_proba(X).argmax(axis=1) == y) > 0.9


def test_a_regressor_of_indicators_is_a_classifier():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array(["a", "a", "b", "b"])
    assert PerClass(Ridge(0.01)).fit(X, y).predict(X).tolist() == y.tolist()


def test_categories_are_told_to_a_library_that_has_its_own_way():
    class Taker:
        def set_params(self, **given):
            self.given = given

        def fit(self, X, y):
            self.seen = X

        def predict(self, X):
            return X["b"].to_numpy()

    X = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", None]})
    model = Framed(Taker(), named="cat_features").fit(X, [0, 1])
    assert model.model.given == {"cat_features": ["b"]}
    assert model.model.seen["b"].map(type).eq(str).all() and model.predict(X)[0] == "x"


# --- running -----------------------------------------------------------------------------------


def test_plans_are_small_sets_first_and_seeds_by_size():
    jobs = plans.plan(["iri", "adu"], named(["table"]), None)
    assert sum(job.set == "iri" for job in jobs) == 10
    assert sum(job.set == "adu" for job in jobs) == 3
    assert jobs[:2] == [Job("iri", "table", 0), Job("adu", "table", 0)]
    quick = [job for job in plans.quick() if job.needs_no_file]
    assert {job.method for job in quick} >= {"table", "catboost-native"} and len(quick) > 50
    full = plans.full()
    assert len(full) == len(set(full)) > len(plans.quick()) > 100
    # Real tables first, with the strongest peers; every ingredient is taken away on all sets.
    assert full[0] == Job(sets.TABLES[0], "table", 0)
    every = {*sets.TABLES, *sets.STUDY}
    for method in ("table", "catboost-native", "autogluon-ten", *ABLATIONS):
        assert {job.set for job in full if job.method == method} >= every, method
    for name in every:
        seeds = {job.seed for job in full if job.set == name and job.method == "table"}
        assert len(seeds) >= (3 if sets.size_of(name) == "large" else 5)
    assert plans.named_sets(["quick", "iri"])[: len(plans.QUICK_SETS)] == list(plans.QUICK_SETS)
    with pytest.raises(SystemExit, match="families"):
        plans.named_sets(["gen_nothing"])


def test_a_run_without_a_job_says_which_sets_there_are(tmp_path):
    command = ["run", "--out", str(tmp_path / "records.jsonl"), "--quick", "--sets"]
    for name in ("german_credit", "carseats"):  # a name of another list, and a file
        with pytest.raises(SystemExit, match=r"plan without --data: .*\bgcr\b"):
            evidence.main([*command, name])


def test_records_from_elsewhere_are_read_without_what_they_do_not_answer(tmp_path, capsys):
    made = {"set": "bal", "method": "svm", "seed": 0, "run": "a", "status": "error", "text": "no"}
    (tmp_path / "few.jsonl").write_text(json.dumps(made) + "\n", encoding="utf-8")
    evidence.main(["read", str(tmp_path / "few.jsonl")])
    text = capsys.readouterr().out
    assert "No records yet" not in text and "](evidence/)" not in text
    assert "| `svm` |" in text and "`table-best`" not in text


def test_a_run_writes_one_record_each_and_goes_on_where_it_was_stopped(tmp_path):
    asked = []

    def measure(job, settings):
        asked.append(job.key)
        if job.set == "stop":
            raise KeyboardInterrupt
        return {
            "set": job.set,
            "method": job.method,
            "seed": job.seed,
            "status": "ok",
            "error": 1.0,
        }

    out, settings = tmp_path / "records.jsonl", running.Settings(tmp_path)
    jobs = [Job("a", "m", 0), Job("stop", "m", 0), Job("b", "m", 0)]
    with pytest.raises(KeyboardInterrupt):
        running.run(jobs, out, settings, STATE, measure=measure, quiet=True)
    with out.open("a") as file:
        file.write('{"set": "cut off')
    jobs[1] = Job("c", "m", 0)
    assert running.run(jobs, out, settings, STATE, measure=measure, quiet=True) == 2
    assert running.run(jobs, out, settings, STATE, measure=measure, quiet=True) == 0
    found = records.read(out)
    assert sorted(key[0] for key in found.by_key) == ["a", "b", "c"]
    assert asked.count(("a", "m", 0)) == 1
    (run,) = found.runs.values()
    assert run["threads"] == 2 and run["versions"] == {"python": "3"}
    assert all(r["run"] == run["run"] and r["limit_s"] == 900 for r in found.all)
    assert running.run(jobs, out, settings, STATE, measure=measure, quiet=True, again=True) == 3


def test_a_total_of_seconds_leaves_the_rest_to_the_next_run(tmp_path):
    limits = []

    def measure(job, settings):
        limits.append(settings.limit)
        time.sleep(0.02)
        status = "time limit" if job.set == "long" else "ok"
        return {"set": job.set, "method": job.method, "seed": 0, "status": status, "error": 1.0}

    out = tmp_path / "records.jsonl"
    jobs = [Job(name, "m", 0) for name in ("a", "long", "b")]
    short = running.Settings(tmp_path, limit=9.0, total=5.0)
    # What the total cuts off is no record; the limit of a record is one.
    assert running.run(jobs, out, short, STATE, measure=measure, quiet=True) == 2
    assert max(limits) <= 5.0 and records.read(out).done(("long", "m", 0)) is None
    spent = running.Settings(tmp_path, total=0.0)
    assert running.run(jobs, out, spent, STATE, measure=measure, quiet=True) == 0
    assert len(limits) == 3
    plenty = running.Settings(tmp_path, limit=1.0, total=100.0)
    assert running.run(jobs, out, plenty, STATE, measure=measure, quiet=True) == 1
    assert records.read(out).done(("long", "m", 0)) == "time limit"


def test_a_budget_of_our_time_needs_our_record(tmp_path):
    budgets = []

    def measure(job, settings):
        budgets.append(settings.budget)
        key = {"set": job.set, "method": job.method, "seed": job.seed}
        return key | {"status": "ok", "error": 1.0, "fit_s": 7.0}

    out, settings = tmp_path / "records.jsonl", running.Settings(tmp_path)
    alone = [Job("iri", "autogluon-ten", 0)]
    assert running.run(alone, out, settings, STATE, measure=measure, quiet=True) == 0
    both = [Job("iri", "table", 0), *alone]
    assert running.run(both, out, settings, STATE, measure=measure, quiet=True) == 2
    assert budgets == [None, 70.0]


def test_many_processes_begin_with_what_takes_long():
    jobs = [Job("iri", "m", 1), Job("adu", "m", 1), Job("iri", "m", 0), Job("spa", "m", 0)]
    order = [(job.set, job.seed) for job in plans.largest_first(jobs)]
    assert order == [("spa", 0), ("iri", 0), ("adu", 1), ("iri", 1)]


def test_lists_of_the_command_line_have_spaces_or_commas(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(running, "run", lambda jobs, *others, **more: asked.extend(jobs))
    command = ["run", "--data", str(tmp_path), "--out", str(tmp_path / "r"), "--sets", "iri,adu"]
    evidence.main([*command, "spa", "--methods", "svm,forest", "--seeds", "0,2"])
    assert {job.set for job in asked} == {"iri", "adu", "spa"}
    assert {job.method for job in asked} == {"svm", "forest"}
    assert {job.seed for job in asked} == {0, 2} and len(asked) == 12


def test_a_run_that_is_told_to_end_leaves_no_process_behind(tmp_path):
    out = tmp_path / "records.jsonl"
    command = [sys.executable, "-m", "benchmarks.evidence", "run", "--data", str(tmp_path), "--out"]
    command += [str(out), "--sets", "gen_smooth_n20000_d40", "--methods", "gaussian-process"]
    run = subprocess.Popen([*command, "--seeds", "0", "--threads", "1"], cwd=ROOT,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
    if not children.exists():
        run.kill()
        pytest.skip("children of a process are read from /proc")
    for _ in range(600):
        found = [int(pid) for pid in children.read_text().split()]
        if found or run.poll() is not None:
            break
        time.sleep(0.1)
    assert found
    run.terminate()
    assert run.wait(60) != 0
    for _ in range(100):
        if not Path(f"/proc/{found[0]}").exists():
            break
        time.sleep(0.1)
    assert not Path(f"/proc/{found[0]}").exists()
    assert records.read(out).all == []


def test_several_at_a_time_write_the_same_records_and_an_interruption_ends_what_runs(tmp_path):
    out = tmp_path / "records.jsonl"
    settings = running.Settings(tmp_path, jobs=2)

    def measure(job, settings):
        if job.set == "stop":
            raise KeyboardInterrupt
        if job.set == "long":
            command = [sys.executable, "-c", "import time; time.sleep(60)"]
            return running.finish(command, "", dict(os.environ), job, 50)
        key = {"set": job.set, "method": job.method, "seed": job.seed}
        return key | {"status": "ok", "error": 1.0}

    jobs = [Job(name, "m", seed) for seed in range(3) for name in "abc"]
    assert running.run(jobs, out, settings, STATE, measure=measure, quiet=True) == 9
    assert set(records.read(out).by_key) == {job.key for job in jobs}
    late = [Job("long", "m", 0), Job("stop", "m", 0), *(Job("d", "m", i) for i in range(9))]
    with pytest.raises(KeyboardInterrupt):
        running.run(late, out, settings, STATE, measure=measure, quiet=True)
    assert ("long", "m", 0) not in records.read(out).by_key


def test_what_is_not_ok_is_measured_again_when_asked(tmp_path):
    known = records.Records()
    for name, status in (("a", "ok"), ("b", "time limit"), ("c", "error"), ("d", "not installed")):
        known.by_key[name, "m", 0] = {"status": status}
    jobs = [Job(name, "m", 0) for name in "abcde"]
    assert [job.set for job in running.pending(jobs, known)] == ["e"]
    assert [job.set for job in running.pending(jobs, known, retry=True)] == list("bcde")


def test_a_time_limit_and_a_crash_are_records():
    job, environment = Job("a", "m", 0), dict(os.environ)
    sleeping = [sys.executable, "-c", "import time; time.sleep(60)"]
    late = running.finish(sleeping, "", environment, job, 0.2)
    assert late["status"] == "time limit" and late["set"] == "a" and late["seconds"] >= 0.2
    crashing = [sys.executable, "-c", "import sys; sys.exit('out of luck')"]
    crashed = running.finish(crashing, "", environment, job, 60)
    assert crashed["status"] == "error" and "ended with 1: out of luck" in crashed["text"]
    speaking = [sys.executable, "-c", "print('noise'); print('{\"status\": \"ok\"}')"]
    assert running.finish(speaking, "", environment, job, 60)["status"] == "ok"


def test_a_process_of_its_own_measures_a_record(tmp_path):
    settings = running.Settings(tmp_path, limit=120.0, threads=1)
    record = running.in_process(Job("gen_sparse_n60_d4", "neighbours", 0), settings)
    assert record["status"] == "ok" and record["peak_mb"] > 10 and record["seconds"] > 0
    assert record["known_error"] < record["error"] < 70


def test_a_run_says_versions_and_machine_and_no_more():
    state = machine.state()
    assert state["versions"]["lssvm"] and state["machine"]["cores"] >= 1
    assert set(state["machine"]) == {"cores", "cpu", "memory_gb", "system"}
    assert records.run_line(state)["run"] == records.run_line(state)["run"]


# --- ranks -------------------------------------------------------------------------------------


def test_average_ranks_are_those_of_scipy():
    errors = np.random.default_rng(0).integers(0, 5, (30, 6)).astype(float)
    expected = np.mean([stats.rankdata(row) for row in errors], axis=0)
    np.testing.assert_allclose(ranks.average_ranks(errors), expected)
    failed = np.array([[1.0, np.inf, np.inf], [2.0, 1.0, 3.0]])
    np.testing.assert_allclose(ranks.average_ranks(failed), [1.5, 1.75, 2.75])


def test_rounding_makes_no_ranks():
    np.testing.assert_allclose(
        ranks.average_ranks(np.array([[0.3, 0.1 + 0.2, 1.0]])), [1.5, 1.5, 3]
    )


@pytest.mark.parametrize(
    ("k", "n", "q"), [(2, 30, 1.960), (4, 14, 2.569), (5, 10, 2.728), (10, 40, 3.164)]
)
def test_the_critical_difference_by_hand(k, n, q):
    # q of Nemenyi's test at 5 % as printed in tables of it, for k methods.
    expected = q * np.sqrt(k * (k + 1) / (6 * n))
    assert ranks.critical_difference(k, n) == pytest.approx(expected, rel=5e-4)


def test_friedman_agrees_with_scipy_by_its_statistic():
    errors = np.random.default_rng(1).normal(size=(12, 4)) + np.arange(4) * 0.5
    chi = stats.friedmanchisquare(*errors.T).statistic
    n, k = errors.shape
    F = (n - 1) * chi / (n * (k - 1) - chi)
    expected = stats.f.sf(F, k - 1, (k - 1) * (n - 1))
    assert ranks.friedman(errors) == pytest.approx(expected)


def test_cliques_are_the_longest_runs_that_do_not_differ():
    assert ranks.cliques(np.array([3.0, 1.0, 1.5, 2.4]), 1.0) == [(0, 1), (1, 2), (2, 3)]
    assert ranks.cliques(np.array([1.0, 2.0, 3.0]), 5.0) == [(0, 2)]
    assert ranks.cliques(np.array([1.0, 3.0]), 1.0) == []


def test_a_duel_counts_wins_ties_and_losses():
    ours = np.array([1.0, 2.0, 0.0, np.inf, np.inf])
    theirs = np.array([2.0, 2.0, 1.0, 1.0, np.inf])
    found = ranks.duel(ours, theirs, np.full(5, 1.0))
    assert (found.wins, found.ties, found.losses, found.sets) == (2, 2, 1, 5)
    assert found.ratio == pytest.approx((2 / 3 * 1 * 1 / 2) ** (1 / 3))
    assert found.p_sign == pytest.approx(stats.binomtest(2, 3).pvalue)


def test_an_exponent_is_the_slope_of_the_logarithms():
    n = np.array([100.0, 200.0, 400.0, 800.0])
    assert ranks.exponent(n, 3e-6 * n**1.7) == pytest.approx(1.7)
    assert np.isnan(ranks.exponent(n[:2], n[:2]))


# --- questions and texts -----------------------------------------------------------------------


def invented(methods, names, seeds=(0, 1), **fields):
    """Return records whose error is the method's number times the set's."""
    found = records.Records(runs={"r": records.run_line(STATE) | {"threads": 2, "jobs": 1,
                                                                   "budget_s": 1.0}})  # fmt: skip
    for j, method in enumerate(methods, 1):
        for i, name in enumerate(names, 1):
            for seed in seeds:
                found.by_key[name, method, seed] = {
                    "set": name, "method": method, "seed": seed, "status": "ok", "run": "r",
                    "task": sets.task_of(name), "n": 1000 * i, "d": 10, "n_test": 2000,
                    "error": float(i * j + seed), "fit_s": 0.5 * j, "fit_cpu": 1.0 * j,
                    "predict_s": 0.1 * j,
                    "rows_per_s": 10.0, "one_row_s": 0.001, "model_bytes": 1000 * j,
                    "peak_mb": 100.0,
                    "ece": 0.01 * j, "log_loss": 0.1 * j,
                } | fields  # fmt: skip
    return found


def test_methods_are_compared_on_sets_and_seeds_that_all_have():
    found = invented(["table", "catboost", "svm"], ["iri", "win", "snr"])
    del found.by_key["iri", "table", 1]
    del found.by_key["win", "svm", 0], found.by_key["win", "svm", 1]
    found.by_key["snr", "catboost", 0]["status"] = "time limit"
    answer = questions.main_comparison(found)
    assert answer.methods == ["table", "catboost"] and answer.sets == ["iri", "win", "snr"]
    assert answer.left_out == {"svm": pytest.approx(2 / 3)} and answer.seeds == [1, 2, 2]
    np.testing.assert_allclose(answer.errors, [[1, 2], [2.5, 4.5], [3.5, np.inf]])
    assert answer.half_rows[0] == pytest.approx(50 / 2000)


def test_every_question_has_an_answer_from_records():
    names = [*plans.QUICK_SETS, *plans.FAMILY_SETS, *plans.SMALL_SAMPLE_SETS,
             *plans.GROWTH_SETS, *plans.ROBUST_SETS]  # fmt: skip
    methods = list(registry())
    found = invented(methods, names, known_error=0.5, coverage=0.9, width=1.0)
    kinds = questions.ranks_by_kind(found)
    tables = len(set(plans.QUICK_SETS) & set(sets.TABLES))
    assert kinds.startswith(f"The real tables: {tables} sets") and "The literature: " in kinds
    for name, question, _ in questions.SECTIONS:
        text = question(found)
        if question is questions.failures:
            assert text is None
        else:
            assert text is not None and "nan" not in text and text.count("\n| ") > 2, name
    ranked = questions.ranks(found)
    study = {*plans.QUICK_SETS, *(s for s in plans.ROBUST_SETS if "+" not in s)} - {*sets.TABLES}
    n = len(study)
    assert f"{n} sets, {len(questions.COMPARED) - 1} methods, means over 2 splits." in ranked
    assert "| lssvm tables | 1.00 |" in ranked
    place = {name: i for i, name in enumerate(methods, 1)}
    ratio = place["table"] / place["catboost-native"]
    wanted = questions.must_hold(found)
    assert (
        f"at most 4 | median {ratio:.2f}, 90th percentile {ratio:.2f} ({n + tables} sets)" in wanted
    )
    assert f"CatBoost, own categories | at least 80 % | {n} of {n}, 100 ± 0 %" in wanted
    first = plans.QUICK_SETS[0]
    slowest = f"1.0 s of processor time (`{first}`, the slowest of 1 sets)"
    assert f"| at most 1.5 s | {slowest} |" in wanted
    n += tables
    assert f"| without a metric | {n} | 0 / 0 / {n} |" in questions.ablations(found)
    better = with_errors(found, "table-without-metric", 0.01)
    assert f"| without a metric | {n} | {n} / 0 / 0 |" in questions.ablations(better)


def test_real_tables_are_compared_by_the_measure_of_the_field():
    found = invented(["table", "catboost-native", "catboost", "svm"], ["iri", "ames", "hmda"])
    for (_, method, seed), record in found.by_key.items():
        if method != "svm":  # has no probabilities
            worse = method != "table"
            record |= {"measure": 0.1 + 0.01 * seed + 0.2 * worse, "classes": 2}
    answer = questions.main_comparison(found)
    assert answer.field == "measure"
    assert set(answer.sets) == {"iri", "ames", "hmda"}
    assert answer.methods == ["table", "catboost-native"]
    np.testing.assert_allclose(answer.errors, [[0.105, 0.305]] * 3)
    assert sorted(answer.half_rows) == [0.0, 0.5 / 2000, 0.5 / 2000]
    ranked = questions.ranks(found)
    # Ours is smaller by more than the splits differ, on all three sets.
    assert "| CatBoost, own categories | 2.00 | 3 / 0 / 0 | 100 ± 0 | 3 / 0 |" in ranked
    by_set = questions.errors_by_set(found)
    assert "| `ames` | RMSE | 0.105 | 0.305 |" in by_set and "| `iri` | 1 - AUC |" in by_set
    text = report.summary(found)
    assert text.startswith("With default settings (means over 2 splits)") and (
        "on 2 real tables was smaller than CatBoost's on 2, the same on 0 and larger on 0" in text
    )


def test_the_line_of_the_best_joins_points_that_no_other_betters():
    x, y = np.array([3.0, 1.0, 2.0, 2.5, 1.0]), np.array([1.0, 5.0, 2.0, 2.5, 6.0])
    assert pictures.pareto(x, y) == [1, 2, 0]


def test_methods_with_few_splits_are_told_apart_from_the_ranking():
    found = invented(["table", "catboost", "svm", "mlp"], ["iri", "win", "snr"], seeds=range(4))
    for name in ("iri", "win", "snr"):
        for seed in (1, 2, 3):
            del found.by_key[name, "mlp", seed]
    assert questions.main_comparison(found).seeds == [4, 4, 4]
    assert "| MLP | 3 | 1 | 3 / 0 / 0 |" in questions.ranks(found)


def test_losses_are_mean_differences_with_their_standard_error():
    found = invented(["table", "catboost"], ["iri", "mgt", "gcr"], seeds=range(3))
    assert questions.losses(found) is None
    for name, gaps in (("mgt", (1.0, 2.0, 6.0)), ("gcr", (-3.0, 0.0, 6.0))):
        for seed, more in enumerate(gaps):
            peer = found.by_key[name, "catboost", seed]["error"]
            found.by_key[name, "table", seed]["error"] = peer + more
    text = questions.losses(found)
    of = "test error, %"
    assert f"| `mgt` | 3 | {of} | 3.00 | 1.53 | not known |" in text and "`iri`" not in text
    assert f"| `gcr` | 3 | {of} | 1.00 | 2.65 | no more than splits differ |" in text
    assert "within one standard error on 2 of 3 sets" in text


def test_fast_is_ranked_among_boosting():
    found = invented(["table-fast", "lightgbm", "catboost", "histgb"], ["iri", "win", "snr"])
    text = questions.fast_ranks(found)
    assert "on 3 of 3 sets, the same on 0, a larger one on 0" in text and "fast 1.00" in text


def with_errors(found, method, factor):
    by_key = {
        key: record | ({"error": record["error"] * factor} if key[1] == method else {})
        for key, record in found.by_key.items()
    }
    return replace(found, by_key=by_key)


def test_growth_and_robustness_by_hand():
    found = invented(["table"], plans.GROWTH_SETS, seeds=(0,))
    for (name, _, _), record in found.by_key.items():
        record["n"] = int(name.split("_n")[1].split("_")[0])
        record["d"] = int(name.split("_d")[1])
        record["fit_cpu"] = 1e-5 * record["n"] ** 1.5 * record["d"] ** 0.5
    assert "| lssvm tables | 1.50 | 0.50 |" in questions.growth(found)
    changed = invented(["table"], plans.ROBUST_SETS, seeds=(0,))
    for (name, _, _), record in changed.by_key.items():
        record["error"] = 3.0 if "+useless" in name else 4.5 if "+rotated" in name else 1.5
    assert "| lssvm tables | 2.00 | 3.00 |" in questions.robustness(changed)


def test_failures_are_listed_with_their_reasons():
    found = invented(["svm"], ["iri", "win", "snr"], seeds=(0,))
    found.by_key["iri", "svm", 0] |= {"status": "time limit"}
    found.by_key["win", "svm", 0] |= {"status": "error", "text": "ValueError: a|b"}
    found.by_key["snr", "svm", 0] |= {"status": "not installed", "text": "OSError: gone"}
    text = questions.failures(found)
    assert "| svm | time limit | 1 | iri |" in text
    assert "| svm | ValueError: a/b | 1 | win |" in text
    assert "| svm | not installed (OSError) | 1 | snr |" in text


def test_pictures_are_well_formed_and_name_every_method():
    names = ["ours & co", "<b>", "c", "d"]
    average = np.array([1.2, 2.0, 2.8, 4.0])
    ours = [True, False, False, False]
    diagram = pictures.critical_difference_diagram(names, average, 1.0, ours)
    x, y = np.array([0.1, 1.0, 10.0, 10.1]), np.array([0.8, 1.0, 1.1, 1.1])
    cloud = pictures.scatter(names, x, y, ours, x_title="time", y_title="error")
    for text in (diagram, cloud):
        tree = ElementTree.fromstring(text)
        words = " ".join(tree.itertext())
        assert all(name in words for name in names)
    bars = [e for e in ElementTree.fromstring(diagram).iter() if e.get("stroke-width") == "4"]
    assert len(bars) == len(ranks.cliques(average, 1.0)) == 2


def test_a_part_is_put_between_its_markers_and_nowhere_else():
    begin, end = f"<!-- generated: a, {report.BY} -->", "<!-- end of generated -->"
    text = f"before\n\n{begin}\nold\n{end}\n\nafter\n"
    assert report.put(text, "a", "new", "x.md") == f"before\n\n{begin}\n\nnew\n\n{end}\n\nafter\n"
    with pytest.raises(ValueError, match=r"x\.md needs the lines"):
        report.put(text, "b", "new", "x.md")


def test_texts_follow_the_records(tmp_path):
    for name in ("README.md", "benchmarks/RESULTS.md", "docs/tables.rst"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    found = invented(["table", "catboost", "svm"], ["iri", "spa", "mgt", "ccs"])
    for (name, method, _), record in found.by_key.items():
        if name == "mgt" and method == "table":
            record["error"] = 99.5
    texts = report.texts(tmp_path, found)
    assert "on 4 sets of the literature was smaller" in texts["README.md"]
    assert "| smaller on 3 | CatBoost smaller on 1 | the same on 0 |" in texts["README.md"]
    assert (
        "test error, %](benchmarks/RESULTS.md#the-model-for-tables) | 99.50 | CatBoost 6.50"
        in (texts["README.md"])
    )
    line = "| `mgt` | test error, % | 99.50 | **6.50** | 9.50 | **behind** |"
    assert line in texts["benchmarks/RESULTS.md"]
    assert "larger one on 1 (Magic)" in texts["docs/tables.rst"]
    assert {report.RANKS, report.TIME, report.SIZE} <= set(texts)
    file = tmp_path / "records.jsonl"
    for line in (*found.runs.values(), *found.all):
        records.append(file, line)
    assert "README.md" in report.write(tmp_path, file, check=True)
    assert "README.md" in report.write(tmp_path, file)
    assert report.write(tmp_path, file) == []


def test_the_texts_of_this_repository_are_not_stale():
    file = ROOT / "benchmarks" / "results" / "evidence.jsonl"
    stale = report.write(ROOT, file, check=True)
    assert stale == [], "run: python -m benchmarks.evidence report"


def test_dates_are_expanded_and_many_levels_numbered_for_peers_that_take_numbers():
    days = pd.date_range("2024-01-01", periods=120, freq="D").strftime("%Y-%m-%d")
    table = pd.DataFrame(
        {
            "when": days,
            "town": [f"town {i:03}" for i in range(120)],
            "job": ["cook", None] * 60,
            "pay": np.arange(120.0),
        }
    )
    expanded = sets.with_dates_expanded(table)
    assert expanded["when weekday"].tolist()[:3] == [0.0, 1.0, 2.0]
    assert expanded["when days"].diff().dropna().eq(1.0).all()
    train, test = sets.numeric(table.iloc[:100], table.iloc[100:])
    assert train.shape[1] == 6 + 1 + 2 + 1
    assert np.all(test[:, 6] == -1.0) and np.array_equal(train[:, 6], np.arange(100.0))


def test_the_field_s_measure_of_two_classes_is_the_area_above_the_curve():
    codes, sure = np.array([0, 1, 1, 0]), np.array([0.1, 0.4, 0.8, 0.6])
    assert measures.area_above_curve(codes, np.column_stack([1 - sure, sure])) == 0.25


def test_the_digest_of_the_code_counts_statements_alone():
    documented = 'def f():\n    "Text."\n    return 1  # one'
    assert machine.statements(documented) == machine.statements("def f(): return 1")
    assert machine.statements('x = "a"') != machine.statements('x = "b"')
