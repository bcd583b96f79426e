"""What cannot be exported says so, and leaves no file."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from lssvm import LSSVC, LSSVR, FixedSizeLSSVC, GreedyLSSVR
from lssvm._core.errors import InvalidInputError, MissingDependencyError
from lssvm.codes import Coding
from lssvm.kernels import NonStationary
from lssvm.onnx import export, register, to_onnx

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 2))
Y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (LSSVC(C=1.0, kernel=lambda A, B: A @ B.T), X),
        (FixedSizeLSSVC(10, C=1.0, kernel=lambda A, B: A @ B.T), X),
        (GreedyLSSVR(C=1.0, kernel="precomputed"), X @ X.T),
        (LSSVR(C=1.0, kernel=NonStationary(1.0, lambda A: 1.0 + A**2)), X),
    ],
)
def test_functions_and_matrices_as_kernels_are_refused(model, rows, tmp_path):
    model.fit(rows, Y)
    with pytest.raises(InvalidInputError, match=r"ONNX.* [fF]it with"):
        export(model, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("model", [LSSVC(), FixedSizeLSSVC(), GreedyLSSVR()])
def test_a_model_that_is_not_fitted(model):
    with pytest.raises(NotFittedError):
        to_onnx(model)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float16"}, "dtype='float16'"),
        ({"probabilities": True}, "calibration='auto'"),
    ],
)
def test_options_that_do_not_fit(options, message):
    model = LSSVC(C=1.0, multiclass=Coding(calibration=None)).fit(X, Y)
    with pytest.raises(InvalidInputError, match=message):
        to_onnx(model, **options)


@pytest.mark.parametrize("model", [LSSVC(C=1.0), GreedyLSSVR(C=1.0)])
def test_models_without_intervals(model):
    with pytest.raises(InvalidInputError, match="interval= is for LSSVR"):
        to_onnx(model.fit(X, Y), interval=0.9)


@pytest.mark.filterwarnings("ignore:.*too few for intervals")
def test_intervals_that_would_be_infinite():
    with pytest.raises(InvalidInputError, match="too few rows"):
        to_onnx(LSSVR(C=1.0).fit(X, Y), interval=0.999)


def test_a_regressor_has_no_probabilities():
    with pytest.raises(InvalidInputError, match="regressor"):
        to_onnx(LSSVR(C=1.0).fit(X, Y), probabilities=True)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(InvalidInputError, match="does not exist"):
        export(LSSVC(C=1.0).fit(X, Y), tmp_path / "nowhere" / "model.onnx")


def test_a_failed_export_leaves_the_older_file(tmp_path):
    path = tmp_path / "model.onnx"
    export(LSSVC(C=1.0).fit(X, Y), path)
    before = path.read_bytes()
    with pytest.raises(InvalidInputError):
        export(LSSVC(C=1.0, kernel=lambda A, B: A @ B.T).fit(X, Y), path)
    assert path.read_bytes() == before


def test_a_model_of_more_than_two_gibibytes(monkeypatch):
    monkeypatch.setattr("lssvm.onnx.exporting._LIMIT", 100)
    with pytest.raises(InvalidInputError, match="2 GiB"):
        to_onnx(LSSVC(C=1.0).fit(X, Y))


@pytest.mark.parametrize(
    ("library", "call"),
    [
        ("onnx", lambda: to_onnx(LSSVC(C=1.0).fit(X, Y))),
        ("skl2onnx", register),
    ],
)
def test_libraries_that_are_not_installed(library, call, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependencyError, match=r"pip install '\.\[onnx\]'"):
        call()
