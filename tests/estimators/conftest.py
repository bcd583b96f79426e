"""Dask clusters of two kinds that the tests of the estimators share."""

import contextlib

import pytest

PRELOADED = ["distributed", "dask.array", "dask.dataframe", "pyarrow.parquet", "lssvm.estimators"]


@contextlib.contextmanager
def cluster(n_workers, **options):
    """Yield the client of a cluster on this machine."""
    distributed = pytest.importorskip("distributed")
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50, **options}
    with (
        distributed.LocalCluster(n_workers=n_workers, **options) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    """Three workers in threads of this process, with TCP between them: all is sent as bytes."""
    with cluster(3, processes=False, protocol="tcp://") as client:
        yield client


@pytest.fixture(scope="module")
def client_of_processes():
    """Two worker processes, which can be killed and share nothing with this one.

    They are forked from a server that has imported what they need: most of a start is imports.
    """
    dask = pytest.importorskip("dask")
    utils = pytest.importorskip("distributed.utils")
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        utils.get_mp_context().set_forkserver_preload(PRELOADED)
        with cluster(2, processes=True) as client:
            yield client
