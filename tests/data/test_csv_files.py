"""CSV files: delimiters, missing values, types said and types of a model."""

import numpy as np
import pytest

from lssvm import FixedSizeLSSVC, scan
from lssvm._core.errors import InvalidInputError
from lssvm.data import CsvOptions


@pytest.fixture
def write(tmp_path):
    def write(text, name="d.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return write


def whole(data):
    (block,) = list(data.blocks())
    return block


def test_another_delimiter(write):
    path = write("a;b\n1,5;x\n2;y\n")
    block = whole(scan(path, csv=CsvOptions(delimiter=";", types={"a": "text"})))
    assert block.texts[0].levels == ("1,5", "2") and block.texts[1].levels == ("x", "y")
    for options in (None, CsvOptions(delimiter=";", decimal=",")):
        data = scan(path, csv=options)
        assert whole(data).numbers[:, 0].tolist() == [1.5, 2.0]
        assert data.detected == "fields separated by semicolons, decimal commas"


def test_texts_that_mean_missing(write):
    path = write("a,b\n1,x\nk.A.,?\n3,y\n")
    assert scan(path).schema.kinds == ("text", "text")
    data = scan(path, csv=CsvOptions(null_values=("k.A.",)))
    block = whole(data)
    assert data.schema.kinds == ("number", "text")
    np.testing.assert_array_equal(block.numbers[:, 0], [1.0, np.nan, 3.0])
    assert block.texts[0].codes.tolist()[1] == -1


def test_types_that_are_said(write):
    path = write("a,b,y\n1,1,1\n2,2,0\n")
    types = {"a": "text", "y": "integer"}
    data = scan(path, "y", csv=CsvOptions(types=types))
    assert data.schema.kinds == ("text", "number")
    assert whole(data).target.dtype == np.int64
    assert whole(scan(path, "y")).target.dtype == np.float64


def test_a_column_whose_first_megabyte_is_empty_can_hold_numbers(write):
    lines = ["a,b"] + [f",{i}" for i in range(200_000)] + ["7.5,1"]
    data = scan(write("\n".join(lines) + "\n"))
    last = list(data.blocks())[-1]
    assert last.numbers[-1, 0] == 7.5


def test_a_model_reads_new_files_with_the_types_of_its_training(write):
    rows = "\n".join(f"{'x1'[i % 2]},{i / 10},{'ab'[i % 2]}" for i in range(60))
    path = write("code,n,y\n" + rows + "\n")
    model = FixedSizeLSSVC(20, C=10.0, gamma=0.5).fit(scan(path, "y"))
    assert model.preparation_.kinds == {"code": "text", "n": "number"}
    new = write("code,n\n1,5\n1,6\n,7\n", "new.csv")
    assert scan(new).schema.kinds == ("number", "number")
    assert model.predict(scan(new)).shape == (3,)
    direct = model.predict({"code": np.array(["1", "1", None], dtype=object), "n": [5, 6, 7]})
    np.testing.assert_array_equal(model.predict(scan(new)), direct)
    with pytest.raises(InvalidInputError, match=r"column 'n'.*'many'"):
        model.predict(scan(write("code,n\n1,many\n", "bad.csv")))


@pytest.mark.parametrize(
    ("options", "part"), [({"delimiter": ""}, "one character"), ({"types": {"a": "int"}}, "int")]
)
def test_options_that_cannot_be_used(options, part):
    with pytest.raises(InvalidInputError, match=part):
        CsvOptions(**options)
