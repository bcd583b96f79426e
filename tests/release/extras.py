"""Use each extra once, installed from the wheel: ``extras.py`` lists, ``extras.py cli`` runs."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from lssvm import LSSVC, LSSVMClassifier, datasets


def rows():
    """Return a few standardised rows of two classes."""
    heart = datasets.load_heart()
    X = heart.data[:80].astype(float)
    return (X - X.mean(axis=0)) / X.std(axis=0), heart.target[:80]


def gpu():
    """Outputs by torch agree with those by NumPy."""
    import torch

    X, y = rows()
    here = LSSVC().fit(X, y).decision_function(X)
    there = LSSVC().fit(torch.asarray(X), torch.asarray(y)).decision_function(torch.asarray(X))
    np.testing.assert_allclose(np.asarray(there), here, atol=1e-6)


def dask():
    """A collection of Dask is fitted."""
    import dask.array

    from lssvm import FixedSizeLSSVC

    X, y = rows()
    data = dask.array.from_array(X, chunks=(40, X.shape[1]))
    model = FixedSizeLSSVC(20, C=1.0, gamma=0.01).fit(data, dask.array.from_array(y, chunks=40))
    assert np.asarray(model.predict(X)).shape == y.shape


def files():
    """A Parquet file is scanned and fitted."""
    import pyarrow
    import pyarrow.parquet

    from lssvm import scan

    X, y = rows()
    table = pyarrow.table({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"target": y})
    with tempfile.TemporaryDirectory() as folder:
        name = str(Path(folder) / "rows.parquet")
        pyarrow.parquet.write_table(table, name)
        LSSVMClassifier("fast").fit(scan(name, target="target"))


def fast():
    """The compiled loops are used, and agree with the others."""
    import numba

    from lssvm.kernels import Laplacian

    X, _ = rows()
    K = Laplacian(0.1)(X, X)
    expected = np.exp(-0.1 * np.abs(X[:, None] - X[None]).sum(axis=2))
    np.testing.assert_allclose(K, expected, atol=1e-12)
    assert numba.__version__


def onnx():
    """An exported model gives the same classes."""
    import onnxruntime

    from lssvm.onnx import export

    X, y = rows()
    model = LSSVC().fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        name = str(Path(folder) / "model.onnx")
        export(model, name)
        session = onnxruntime.InferenceSession(name)
        (entry,) = session.get_inputs()
        kind = np.float64 if "double" in entry.type else np.float32
        found = session.run(None, {entry.name: X.astype(kind)})[0]
    assert np.mean(np.asarray(found).ravel() == model.predict(X)) > 0.98


def plots():
    """A picture is drawn."""
    import matplotlib

    matplotlib.use("agg")
    from lssvm.plots import BoundaryDisplay

    X, y = rows()
    display = BoundaryDisplay.from_estimator(LSSVC().fit(X[:, :2], y), X[:, :2], y)
    assert len(display.legend_.get_texts()) >= 2


def cli():
    """The command trains on bundled data."""
    command = str(Path(sys.executable).with_name("lssvm"))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([command, "demo", folder], check=True, stdout=subprocess.DEVNULL)


EXTRAS = [gpu, dask, files, fast, onnx, plots, cli]


def main(wanted):
    """Run the named extras, or list them all."""
    for extra in EXTRAS:
        if not wanted:
            print(extra.__name__)
        elif extra.__name__ in wanted:
            extra()
            print(f"the extra {extra.__name__} works")


if __name__ == "__main__":
    main(sys.argv[1:])
