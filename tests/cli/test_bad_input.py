"""Input that cannot be used: one clear line, exit code 2, nothing written."""

import os
import pickle

import pytest
from tests.cli.running import as_csv, lssvm, mixed_rows

ROWS = mixed_rows(60)
TRAIN = ("--target", "income", "-o", "new.lssvm", "--report", "new.html")


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def refused(folder, *words):
    """Run a command that has to fail; return its one line."""
    before = files(folder)
    answer = lssvm(*words)
    assert answer.code == 2, answer
    assert answer.out == ""
    assert answer.err.startswith("lssvm: error: ") and answer.err.count("\n") == 1
    assert "Traceback" not in answer.err
    assert files(folder) == before
    return answer.err


def changed(**columns):
    return as_csv([{**row, **columns} for row in ROWS])


TABLES = {
    "no_rows": (as_csv(ROWS[:1]).splitlines()[0] + "\n", "no rows"),
    "empty": ("", "is empty"),
    "one_class": (changed(income="low"), "one class only, 'low'"),
    "infinite": (changed(pay="inf"), "infinite value in line 2 of bad.csv"),
    "target_missing": (changed(income=None), "No row of bad.csv has a target"),
    "ragged": (
        as_csv(ROWS) + "1,2\n",
        f"Line {len(ROWS) + 2} of bad.csv has 2 fields, but line 1 names 7 columns",
    ),
    "same_name": (as_csv(ROWS).replace("pay", "age", 1), "two columns of the name 'age'"),
    "one_column": ("income\nlow\nhigh\n", "no column to learn from"),
}


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_that_cannot_be_learned(here, name):
    text, part = TABLES[name]
    (here / "bad.csv").write_text(text)
    assert part in refused(here, "train", "bad.csv", *TRAIN)


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("bytes.csv", b"\x00\xff\xfe\x01" * 500, "is not CSV"),
        ("broken.parquet", b"PAR1" + b"\x07" * 400, "cannot be read as Parquet"),
        ("text.parquet", as_csv(ROWS).encode(), "cannot be read as Parquet"),
        ("table.doc", b"PK", "ends in one of .parquet"),
    ],
)
def test_a_file_that_is_no_table(here, name, content, part):
    (here / name).write_bytes(content)
    assert part in refused(here, "train", name, *TRAIN)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("none.csv", *TRAIN), "There is no file none.csv"),
        (("data.csv", "--target", "incme", "-o", "new.lssvm"), "Did you mean 'income'?"),
        (("data.csv", *TRAIN, "--drop", "wage"), "no column 'wage'"),
        (("data.csv", *TRAIN, "--drop", "income"), "cannot be dropped"),
        (("data.csv", *TRAIN, "--weight", "job"), "'job' holds text"),
        (("data.csv", *TRAIN, "--weight", "pay"), "weight is negative"),
        (("data.csv", *TRAIN, "--task", "regression"), "holds text"),
        (("data.csv", *TRAIN, "--task", "ranking"), "--task ranking"),
        (("data.csv", *TRAIN, "--delimiter", ";"), "--delimiter ','"),
        (("data.csv", *TRAIN, "--delimiter", ";;"), "one character"),
        (("data.csv", *TRAIN, "--prototypes", "many"), "--prototypes many"),
        (("data.csv", *TRAIN, "--kernel", "cubic"), "--kernel cubic"),
        (("data.csv", *TRAIN, "--cv", "1"), "--cv 1"),
        (("data.csv", *TRAIN, "--C", "-1"), "--C -1"),
        (("data.csv", *TRAIN, "--scoring", "best"), "--scoring best"),
        (("data.csv", *TRAIN, "--memory", "lots"), "'lots'"),
        (("data.csv", *TRAIN, "--time-limit", "0"), "--time-limit 0"),
        (("data.csv", *TRAIN, "--loss", "huber"), "--loss is for a regression"),
        (("data.csv", *TRAIN, "--test-data", "none.csv"), "There is no file none.csv"),
        (("data.csv", "--target", "value", "--task", "classification", "-o", "n"), "fractions"),
        (
            ("data.csv", "--target", "value", "--class-weight", "balanced", "-o", "n"),
            "class-weight",
        ),
    ],
)
def test_options_that_cannot_be_used(here, words, part):
    assert part in refused(here, "train", *words)


def test_classes_of_more_digits_than_a_number_holds(here):
    rows = [{"a": i, "y": 2**53 + i % 2} for i in range(60)]
    (here / "long.csv").write_text(as_csv(rows))
    assert "more than 15 digits" in refused(here, "train", "long.csv", "-t", "y", "-o", "new.lssvm")


@pytest.mark.parametrize("option", ["-o", "--report"])
@pytest.mark.parametrize(
    ("path", "part"), [("missing/m.html", "no folder"), (".", "it is a folder")]
)
def test_an_output_that_cannot_be_written_is_found_before_training(here, option, path, part):
    other = ("--report", "new.html") if option == "-o" else ("-o", "new.lssvm")
    line = refused(here, "train", "data.csv", "-t", "income", option, path, *other)
    assert part in line and path in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(here):
    locked = here / "locked"
    locked.mkdir(mode=0o500)
    assert "cannot be written" in refused(
        here, "train", "data.csv", "-t", "income", "-o", "locked/m.lssvm"
    )


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_column_that_the_model_needs_is_missing(here, command):
    rows = [{k: v for k, v in row.items() if k != "pay"} for row in ROWS]
    (here / "less.csv").write_text(as_csv(rows))
    line = refused(here, command, "classes.lssvm", "less.csv")
    assert "less.csv has no column 'pay', which the model needs" in line


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("predict", "classes.lssvm", "text.csv"), "Line 2 of text.csv has 'much' in column 'pay'"),
        (("predict", "classes.lssvm", "data.csv", "--keep", "wage"), "no column 'wage'"),
        (("predict", "classes.lssvm", "data.csv", "-o", "p.xlsx"), "has to end in"),
        (("predict", "classes.lssvm", "data.csv", "-o", "no/p.csv"), "no folder"),
        (("predict", "classes.lssvm", "data.csv", "--interval", "2"), "--interval 2"),
        (("predict", "classes.lssvm", "data.csv", "--json"), "give -o FILE"),
        (("predict", "numbers.lssvm", "data.csv", "--proba"), "--proba needs a classifier"),
        (("predict", "none.lssvm", "data.csv"), "no model file none.lssvm"),
        (("evaluate", "classes.lssvm", "data.csv", "--target", "wage"), "no column 'wage'"),
        (("evaluate", "numbers.lssvm", "data.csv", "--target", "job"), "learns from it"),
        (
            ("evaluate", "numbers.lssvm", "data.csv", "--target", "income"),
            "Line 2 of data.csv has 'high' in column 'income'",
        ),
        (("export", "classes.lssvm", "m.txt"), "has to end in .onnx"),
        (("reduce", "classes.lssvm", "data.csv", "-o", "s", "--support", "99"), "--support 99"),
        (
            (
                *("reduce", "classes.lssvm", "data.csv", "-o", "s"),
                *("--method", "ssd-printed", "--support", "5"),
            ),
            "give --method ssd",
        ),
        (("forecast", "data.csv", "--column", "wage"), "no column 'wage'"),
        (("forecast", "data.csv", "--column", "job"), "not numbers"),
        (("forecast", "data.csv", "--column", "age"), "missing or infinite value in line"),
        (("datasets", "iris"), "no data set 'iris'"),
        (("datasets", "ripley", "--json"), "give -o FILE"),
        (("train", "data.csv", "-t", "income", "-o", "data.csv"), "it is the input"),
        (("predict", "classes.lssvm", "data.csv", "-o", "./data.csv"), "it is the input"),
        (("evaluate", "classes.lssvm", "text.csv", "--held-out"), "--held-out needs the file"),
        (("compare", "data.csv", "--target", "wage"), "no column 'wage'"),
        (("compare", "data.csv", "--target", "income", "--test", "0"), "--test"),
        (("train", "data.csv", "-t", "income", "-o", "-"), "give the name of a file"),
        (("tune", "data.csv", "-t", "income", "-o", "-"), "give the name of a file"),
        (("export", "classes.lssvm", "-"), "give the name of a file"),
        (("reduce", "classes.lssvm", "data.csv", "-o", "-"), "give the name of a file"),
        (("reduce", "classes.lssvm", "data.csv", "-o", "s", "--method", "sd"), "--method sd"),
        (("forecast", "data.csv", "--column", "pay", "-o", "-"), "give the name of a file"),
        (
            ("train", "data.csv", "-t", "income", "-o", "new", "--report", "./new"),
            "both the model and the report",
        ),
    ],
)
def test_other_commands_refuse_in_one_line(here, words, part):
    (here / "text.csv").write_text(changed(pay="much"))
    assert part in refused(here, *words)


class Trap:
    """Would write a file when it is unpickled."""

    def __reduce__(self):
        return open, ("ran", "w")


@pytest.mark.parametrize("command", ["info", "predict", "evaluate", "export", "reduce"])
@pytest.mark.parametrize("kind", ["empty", "text", "pickle", "truncated", "changed", "huge"])
def test_a_model_file_that_is_none(here, command, kind):
    real = (here / "classes.lssvm").read_bytes()
    flipped = bytearray(real)
    flipped[len(real) // 2] ^= 255
    content = {
        "empty": b"",
        "text": b"{}" * 50,
        "pickle": pickle.dumps(Trap()),
        "truncated": real[: len(real) // 2],
        "changed": bytes(flipped),
        "huge": (2**62).to_bytes(8, "little") + real[8:],
    }[kind]
    (here / "bad.lssvm").write_bytes(content)
    rest = {
        "info": (),
        "predict": ("data.csv",),
        "evaluate": ("data.csv",),
        "export": ("new.onnx",),
        "reduce": ("data.csv", "-o", "new.lssvm"),
    }[command]
    assert "bad.lssvm" in refused(here, command, "bad.lssvm", *rest)


def test_what_others_wrote_into_a_good_file_is_not_believed(here):
    from lssvm.io import load, save

    card = {"target": ["income"], "seed": "x", "test_share": 7, "test": {"accuracy": "high"}}
    save(load("classes.lssvm"), "odd.lssvm", metrics=card)
    assert lssvm("info", "odd.lssvm").code == 0
    assert "give --target" in refused(here, "evaluate", "odd.lssvm", "data.csv")
    words = ("odd.lssvm", "data.csv", "--target", "income")
    assert "--held-out needs the file" in refused(here, "evaluate", *words, "--held-out")
    assert lssvm("reduce", *words, "-o", "r.lssvm").code == 0
