"""Data, tables and fitted exponents of the studies of the fixed-size model."""

import json

import numpy as np
import pandas as pd
import pytest
from benchmarks.study.frames import draw, encode

from benchmarks import growth, prototype_rules, renyi_check


def test_frames_become_numbers():
    frame = pd.DataFrame(
        {
            "split": ["train"] * 4,
            "colour": ["red", "blue", "?", "red"],
            "size": [1, 2, 3, 4],
            "target": [2, 1, 2, 3],
        }
    )
    rows = encode(frame, "ftc", regression=False)
    np.testing.assert_array_equal(rows.X, [[1, 1], [0, 2], [1, 4]])
    np.testing.assert_array_equal(rows.y, [1, 0, 0])  # class 2 against the rest
    numbers = encode(frame, "other", regression=True)
    np.testing.assert_array_equal(numbers.y, [2.0, 1.0, 3.0])


def test_a_draw_is_standardised_by_its_training_rows():
    frame = pd.DataFrame({"x": np.arange(30.0), "one": 1.0, "target": np.arange(30) % 2})
    part = draw(encode(frame, "any", regression=False), 3, 100, 7)
    assert part.X_train.shape == (20, 2)
    assert part.X_test.shape == (7, 2)
    np.testing.assert_allclose(part.X_train.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(part.X_train.std(axis=0), [1.0, 0.0], atol=1e-12)
    again = draw(encode(frame, "any", regression=False), 3, 100, 7)
    np.testing.assert_array_equal(part.X_test, again.X_test)


def test_one_measurement_of_every_rule(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((150, 2)), columns=["u", "v"])
    frame["target"] = (frame["u"] > 0).astype(int)
    frame.to_parquet(tmp_path / "spa.parquet")
    paths = [tmp_path / "out.jsonl", tmp_path / "tables.md"]
    options = ["--sets", "spa", "--out", str(paths[0]), "--tables", str(paths[1])]
    prototype_rules.main(["--data", str(tmp_path), "--seeds", "1", *options])
    lines = [json.loads(line) for line in paths[0].read_text().splitlines()]
    assert len(lines) == 1 + len(prototype_rules.COMPARED) * len(prototype_rules.SIZES)
    assert all(0.0 <= line["error"] <= 20.0 for line in lines[1:])
    prototype_rules.main(["--data", str(tmp_path), "--seeds", "1", *options])
    assert len(paths[0].read_text().splitlines()) == len(lines) + 1  # the head of the second run
    assert "| spa | 100 | 2 | 1 |" in paths[1].read_text()


def test_tables_name_the_better_rule(tmp_path):
    path = tmp_path / "out.jsonl"
    error = {"random": 10.0, "renyi": 5.0, "kmeans": 10.0, "rpcholesky": 20.0}
    with path.open("w") as file:
        for name in ("spa", "mgt", "ccs"):
            for seed in range(2):
                for rule, value in error.items():
                    record = {
                        "set": name,
                        "randomisation": seed,
                        "method": f"{rule}, m = 50",
                        "error": value + seed,
                        "selection_seconds": 1.0,
                        "fit_seconds": 4.0,
                        "n_train": 100,
                        "n_features": 3,
                    }
                    file.write(json.dumps(record) + "\n")
    text = prototype_rules.tables(path)
    assert text.count("**5.50 ± 0.71**") == 3
    assert "| average rank (1 is best) | 2.500 | 1.000 | 2.500 | 4.000 |" in text
    assert "| sets better / worse than random | 0 / 0 | 3 / 0 | 0 / 0 | 0 / 3 |" in text
    assert "| p of the sign test against random | 1.000 | 0.250 | 1.000 | 0.250 |" in text


def test_the_selection_table_has_shares_and_rises(tmp_path):
    path = tmp_path / "out.jsonl"
    record = {
        "set": "mgt",
        "randomisation": 500,
        "method": "renyi",
        "n": 1000,
        "d": 10,
        "trials": 2048,
        "swaps": 40,
        "tuned_seconds": 2.0,
        "tuned_selection_seconds": 0.02,
        "plain_seconds": 0.2,
        "plain_selection_seconds": 0.01,
        "entropy_start": -1.0,
        "entropy": -2.0,
        "entropy_long": -1.99,
    }
    path.write_text(json.dumps(record) + "\n")
    assert "| 5.0 % | 1.0 % | -1.000 | -2.000 | -1.990 | 0.50 % |" in renyi_check.table(path)


def test_the_exponent_of_growth():
    sizes = [100, 200, 800]
    assert growth.exponent(sizes, [n**1.5 for n in sizes]) == pytest.approx(1.5)


def test_generated_rows_are_the_same_for_every_size():
    few, many = growth.make_rows(60_000, "regressor"), growth.make_rows(110_000, "regressor")
    np.testing.assert_array_equal(few[0], many[0][:60_000])
    np.testing.assert_array_equal(few[1], many[1][:60_000])


def test_growth_is_measured_in_processes_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(growth, "KINDS", ("regressor",))
    monkeypatch.setattr(growth, "FITS", ("plain",))
    out, table = tmp_path / "out.jsonl", tmp_path / "table.md"
    options = ["--repeats", "1", "--threads", "1", "--out", str(out), "--table", str(table)]
    growth.main(["--sizes", "600,1200", *options])
    results = [json.loads(line) for line in out.read_text().splitlines()][1:]
    assert [result["randomisation"] for result in results] == [600, 1200]
    assert all(result["seconds"] > 0 for result in results)
    assert table.read_text().count("Exponent of the time") == 1
