"""Names of files: as long as the file system allows; longer ones are an error that says so."""

import numpy as np
import pytest

from lssvm import LSSVR, FixedSizeLSSVR, load, save, scan
from lssvm._core.errors import InvalidInputError, LSSVMError

X = np.random.default_rng(0).normal(size=(30, 2))


def test_models_have_names_of_250_characters(tmp_path):
    model = LSSVR().fit(X, X[:, 0])
    path = tmp_path / ("m" * 244 + ".lssvm")
    for _ in range(2):  # new, then replaced
        save(model, path)
        np.testing.assert_array_equal(load(path).predict(X), model.predict(X))
    with pytest.raises(InvalidInputError, match="too long: give a shorter one"):
        save(model, tmp_path / ("m" * 300 + ".lssvm"))
    with pytest.raises((LSSVMError, OSError), match=r"(?i)too long|no such|does not exist"):
        load(tmp_path / ("m" * 300 + ".lssvm"))


def test_data_and_predictions_have_names_of_250_characters(tmp_path):
    path = tmp_path / ("r" * 246 + ".svm")
    path.write_text("".join(f"{a} 1:{a} 2:{b}\n" for a, b in X))
    model = FixedSizeLSSVR(5, C=1.0, gamma=1.0).fit(scan(path))
    assert model.score(scan(path)) > 0.5
    with pytest.raises(InvalidInputError, match="No file matches"):
        scan(tmp_path / ("r" * 300 + ".svm"))
