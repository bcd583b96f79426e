"""Peak memory of a tuned fit does not grow with the rows."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PEAK = """
import sys
import numpy as np
import lssvm.estimators.opening as scan_opening
from lssvm import FixedSizeLSSVC, scan
from lssvm._core.blocks import peak_memory

import pyarrow.parquet

scan_opening.SAMPLE_ROWS = 5_000
start = peak_memory()
for copies in (1, 6):
    data = scan([sys.argv[1]] * copies, "y", batch_rows=16_384)
    model = FixedSizeLSSVC(20, gamma=0.05, cv=3, n_jobs=2, memory_budget='80 MB').fit(data)
    model.predict(data, out=sys.argv[2])
    assert model.score(data) > 0.8
    assert start < model.peak_memory_ <= peak_memory()
    print(data.n_rows, peak_memory() - start)
"""


def test_six_times_the_rows_take_the_same_memory(tmp_path):
    n, d = 60_000, 20
    X = np.random.default_rng(0).standard_normal((n, d))
    columns = {f"x{j}": X[:, j] for j in range(d)} | {"y": (X[:, 0] + X[:, 1] > 0).astype(int)}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=20_000)
    files = [str(tmp_path / name) for name in ("rows.parquet", "p.parquet")]
    command = [sys.executable, "-c", PEAK, *files]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    found = [[int(word) for word in line.split()] for line in run.stdout.splitlines()]
    assert [rows for rows, _ in found] == [n, 6 * n]
    one, six = (peak for _, peak in found)
    assert one <= six <= 80e6  # the budget is kept
    assert six - one <= 24e6  # half of what the further rows would take, were they held
