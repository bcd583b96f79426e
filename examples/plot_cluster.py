r"""
A cluster moves sums, not rows
==============================

On a cluster every worker adds the moments of its rows, and only these sums are moved. Here
four workers (threads of this process; `distributed.Client` takes the address of a real scheduler)
fit models to more and more rows of a Dask array, and count the bytes that they send.

What is sent is the sample that prototypes are chosen from, 50,000 rows at most from each worker,
and the moments. Neither grows with the data.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster, wait

from lssvm import FixedSizeLSSVR

# %%
# Rows that are generated on the workers.


def make_chunk(block, chunk=20_000):
    rng = np.random.default_rng(int(block[0, 0]))
    X = rng.uniform(-3.0, 3.0, (chunk, 3))
    noise = 0.2 * rng.standard_normal(chunk)
    return np.column_stack([X, np.sin(X[:, 0]) * X[:, 1] + X[:, 2] + noise])


def make_rows(chunks):
    seeds = da.arange(chunks, chunks=1)[:, None]
    sizes = ((20_000,) * chunks, (4,))
    return seeds.map_blocks(make_chunk, dtype=float, chunks=sizes, meta=np.empty((0, 0)))


def sent(client):
    found = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    return sum(found.values())


# %%
# Fits to 80,000, ..., 640,000 rows. Predictions stay on the workers as well.

rows, moved = [], []
options = {"n_workers": 4, "threads_per_worker": 1, "dashboard_address": ":0"}
with LocalCluster(processes=False, **options) as cluster, Client(cluster) as client:
    for chunks in (4, 8, 16, 32):
        table = client.persist(make_rows(chunks))
        wait(table)
        before = sent(client)
        model = FixedSizeLSSVR(100, C=10.0, gamma=0.3).fit(table[:, :3], table[:, 3])
        rows.append(len(table))
        moved.append(sent(client) - before)
    predicted = model.predict(table[:, :3])
    print(predicted)
    print(f"R^2 of {rows[-1]:,} rows: {model.score(table[:, :3], table[:, 3]):.4f}")

# %%
# The bytes sent by the workers, compared with the size of the data.

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
thousands = [n / 1000 for n in rows]
ax.plot(thousands, [8 * 4 * n / 1e6 for n in rows], "o--", color="0.5", label="all rows")
ax.plot(thousands, [b / 1e6 for b in moved], "o-", label="sent by the workers")
ax.set_xlabel("thousands of rows")
ax.set_ylabel("MB")
ax.set_ylim(bottom=0.0)
ax.legend()
plt.show()
