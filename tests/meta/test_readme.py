"""The README's example runs as printed."""

import re
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_example_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert float(re.findall(r"test accuracy ([0-9.]+)", printed)[0]) > 0.88
    assert int(re.findall(r"(\d+) of 250 support vectors", printed)[0]) < 50


def test_the_two_commands_are_named():
    assert "make demo" in README and "make test" in README
