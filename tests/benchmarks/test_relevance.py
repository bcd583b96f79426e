"""The tables of the study of relevance, from invented measurements."""

import numpy as np
from benchmarks.relevance import robust_methods, spoil
from benchmarks.study import records
from benchmarks.tables_relevance import write_tables


def test_tables(tmp_path):
    path = tmp_path / "relevance.jsonl"
    records.append(path, {"run": {"versions": {"numpy": "2"}, "python": "3", "cores": 1}})
    for seed in range(2):
        base = {"set": "bho", "randomisation": seed, "n": 9, "d": 2, "seconds": 1.0}
        for method, error in (
            ("dual cv", 0.4), ("dual ard", 0.3), ("dual full", 0.2), ("fixed cv", 0.3)
        ):  # fmt: skip
            more = {"method": method, "part": "relevance", "error": error, "kept": True}
            records.append(path, base | more)
        for method in robust_methods():
            error = 2.0 if method == "dual squared" else 1.0
            more = {"method": f"robust {method}", "part": "robust", "error": error}
            records.append(path, base | more)
    write_tables(path)
    text = path.with_suffix(".md").read_text(encoding="utf-8")
    assert "| bho | 9 | 2 | 2 | 0.4000 (1.00) | 0.3000 (1.00) | 1.00 |  | 0.2000 (1.00) |" in text
    assert "Error below that of one gamma, of 1 sets: ard 1, full 1." in text
    assert "Error at most that of ard: full 1." in text
    assert "Median time over that of one gamma: ard 1.0, full 1.0." in text
    assert "| dual | bho | 2 | 1.0000 | 2.00 | 1.00 | 1.00 | 1.00 |" in text


def test_a_fifth_of_the_targets_is_moved_far_up():
    y = np.random.default_rng(0).normal(size=100)
    moved = (spoil(y, 0) - y) / y.std()
    assert np.count_nonzero(moved) == 20
    assert moved[moved != 0].min() >= 5.0 - 1e-9
