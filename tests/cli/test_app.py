"""The program itself: help, versions, imports, configuration, silence and JSON."""

import json
import subprocess
import sys
import tomllib

import pytest
from tests.cli.running import QUICK, good, lssvm
from tests.meta.tree import ROOT, SOURCE

import lssvm as package

COMMANDS = (
    "train",
    "predict",
    "evaluate",
    "tune",
    "reduce",
    "info",
    "export",
    "compare",
    "forecast",
    "demo",
    "datasets",
)
HEAVY = {"numpy", "scipy", "sklearn", "pandas", "pyarrow", "matplotlib", "onnx", "torch", "dask"}


def loaded_by(*words):
    """Return the top-level modules that a command loads, in a fresh interpreter."""
    code = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n"
        f"from lssvm.cli import main\nmain({list(words)!r})\n"
        "sys.stderr.write('\\n'.join({name.partition('.')[0] for name in sys.modules}))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return set(answer.stderr.split())


def program(*words, **options):
    """Run ``python -m lssvm`` as people do."""
    command = [sys.executable, "-m", "lssvm", *map(str, words)]
    environment = {"PYTHONPATH": str(SOURCE), "PATH": "", "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, **options)


@pytest.mark.parametrize("words", [("--help",), ("train", "--help"), ("--version",)])
def test_help_loads_no_library_of_numbers_or_tables(words):
    modules = loaded_by(*words)
    assert "typer" in modules
    assert modules & HEAVY == set()


def test_help_names_every_command():
    text = good("--help").out
    assert [name for name in COMMANDS if f"\n  {name} " not in text] == []
    for name in COMMANDS:
        assert "--json" in good(name, "--help").out


def test_help_lists_options_under_headings():
    text = good("train", "--help").out
    heads = [line for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert heads[:4] == ["Arguments:", "Options:", "Test and report:", "Model:"]
    assert heads[4].startswith("Settings (") and heads[-1] == "In general:"
    where = {name: text.index(f"\n{name}") for name in heads}
    assert where["Model:"] < text.index("--preset") < where[heads[4]] < text.index("--gamma")
    assert text.index("--target") < where["Test and report:"] < text.index("--report FILE")


def test_without_a_command_there_is_help():
    assert good().out == good("--help").out


def test_the_version():
    assert good("--version").out == f"lssvm {package.__version__}\n"


def test_the_program_is_installed_under_its_name():
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    assert project["scripts"] == {"lssvm": "lssvm.cli:main"}


def test_the_module_runs_and_fails_as_a_program(here):
    fine = program("info", "classes.lssvm", "--json", cwd=here)
    assert (fine.returncode, fine.stderr) == (0, "")
    assert json.loads(fine.stdout)["model"] == "FixedSizeLSSVC"
    wrong = program("train", "data.csv", "--tarket", "income", "-o", "m.lssvm", cwd=here)
    assert wrong.returncode == 2 and wrong.stdout == ""
    assert wrong.stderr.startswith("lssvm: error: No such option")  # the rest is said by click
    assert "--tarket" in wrong.stderr
    assert wrong.stderr.count("\n") == 1


def test_a_target_that_is_no_column_is_named(here):
    wrong = lssvm("train", "data.csv", "--target", "wage", "-o", "m.lssvm")
    assert wrong.code == 2 and wrong.out == ""
    assert wrong.err.startswith("lssvm: error: data.csv has no column 'wage'")
    assert wrong.err.count("\n") == 1


def test_without_typer_one_line_says_how_to_get_it():
    code = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r}); sys.modules['typer'] = None\n"
        "from lssvm.cli import main\nsys.exit(main(['--help']))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.returncode == 2
    assert "pip install" in answer.stderr and answer.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("tran", "data.csv"), "Did you mean 'train'? See lssvm"),
        (("train", "data.csv", "--tarket", "y"), "No such option"),
        (("train", "data.csv", "-o", "m.lssvm"), "Missing option"),
        (("train", "data.csv", "--target", "y", "-o", "m", "--test", "2"), ". See lssvm train"),
        (("predict",), "Missing argument"),
    ],
)
def test_a_wrong_command_line_is_one_line(words, part):
    answer = lssvm(*words)
    assert answer.code == 2
    assert answer.err.count("\n") == 1 and part in answer.err and "--help" in answer.err


def test_options_from_a_file_which_the_command_line_overrules(here):
    (here / "run.toml").write_text(
        'target = "income"\ndrop = ["id", "value"]\nprototypes = 12\ncv = 3\n'
        'output = "a.lssvm"\nclass-weight = "balanced"\n'
    )
    found = good("train", "data.csv", "--config", "run.toml", "--json").json["parameters"]
    assert (found["n_prototypes"], found["cv"], found["class_weight"]) == (12, 3, "balanced")
    again = good("train", "data.csv", "--config", "run.toml", "--prototypes", "9", "--json").json
    assert again["parameters"]["n_prototypes"] == 9
    assert "kids" in good("info", "a.lssvm").out


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('tarket = "y"', "'tarket'"),
        ("target =", "is not TOML"),
        ('config = "b.toml"', "'config'"),
        (None, "No such file"),
    ],
)
def test_a_wrong_file_of_options_is_one_line(here, text, part):
    if text is not None:
        (here / "bad.toml").write_text(text)
    answer = lssvm("train", "data.csv", "-o", "new.lssvm", "--config", "bad.toml")
    assert answer.code == 2 and answer.err.count("\n") == 1
    assert part in answer.err
    assert not (here / "new.lssvm").exists()


EVERY = [
    ("train", "data.csv", "--target", "income", "-o", "a.lssvm", *QUICK),
    ("predict", "classes.lssvm", "data.csv", "-o", "p.csv"),
    ("evaluate", "classes.lssvm", "data.csv"),
    ("tune", "data.csv", "--target", "income", *QUICK),
    ("reduce", "classes.lssvm", "data.csv", "-o", "b.lssvm"),
    ("info", "classes.lssvm"),
    ("forecast", "data.csv", "--column", "pay", "--horizon", "3", "--lags", "3", "--no-test"),
    ("datasets",),
]


@pytest.mark.parametrize("words", EVERY, ids=lambda words: words[0])
def test_quiet_says_nothing_and_json_is_one_object(here, words):
    silent = good(*words, "--quiet")
    assert (silent.out, silent.err) == ("", "")
    answer = good(*words, "--json")
    assert isinstance(answer.json, dict) and answer.out.count("\n") == 1


def test_warnings_are_lines_without_a_place_in_the_source(here):
    answer = good("train", "data.csv", "-t", "income", "-o", "a.lssvm", "--prototypes", "900")
    warned = [line for line in answer.err.splitlines() if "warning" in line]
    assert len(warned) == 1 and "n_prototypes=900 was reduced" in warned[0]
    assert ".py" not in answer.err


def test_only_commands_that_draw_at_random_take_a_seed():
    drawing = {"train", "tune", "compare", "forecast", "demo"}
    others = {"predict", "evaluate", "reduce", "info", "export", "datasets"}
    for command in drawing | others:
        assert ("--seed" in good(command, "--help").out) == (command in drawing), command
