"""The README's example runs as printed; its figures and links are true."""

import re

from tests.meta.tree import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def sections():
    """Return the sections of the results by the anchor that a link has to them."""
    parts = re.split(r"^## (.*)\n", RESULTS, flags=re.MULTILINE)[1:]
    anchors = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in parts[::2]]
    return dict(zip(anchors, parts[1::2], strict=True))


def rows():
    """Return the rows of the table of results: anchor, words, the cells with figures."""
    found = re.findall(
        r"^\| \[(.*?)\]\(benchmarks/RESULTS\.md#(.*?)\) \| (.*?) \| (.*?) \|", README, re.MULTILINE
    )
    return [(anchor, words, (ours, theirs)) for words, anchor, ours, theirs in found]


def test_the_example_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    test = float(re.findall(r"test R2 ([0-9.]+)", printed)[0])
    expected = float(re.findall(r"expected R2 ([0-9.]+)", printed)[0])
    assert test > 0.9  # a linear model explains 0.6
    assert abs(test - expected) < 0.05
    assert 0.85 < float(re.findall(r"coverage ([0-9.]+)", printed)[0]) < 0.96
    assert re.search(r"\d rows", printed)  # of the summary
    assert re.search(r"^age +[+-][0-9.]+$", printed, flags=re.MULTILINE)


def test_the_two_commands_are_named():
    assert "make demo" in README and "make test" in README


def test_the_figures_of_the_table_stand_in_the_section_they_link_to():
    known = sections()
    assert len(rows()) > 10
    for anchor, words, cells in rows():
        assert anchor in known, f"{words}: there is no section #{anchor} in RESULTS.md"
        figures = set(NUMBER.findall(known[anchor]))
        missing = [figure for cell in cells for figure in NUMBER.findall(cell)]
        missing = [figure for figure in missing if figure not in figures]
        assert missing == [], f"{words}: {missing} are not in the section #{anchor}"


def test_the_files_it_links_to_exist():
    links = re.findall(r"\]\(([\w/.-]+?)(?:#[\w-]+)?\)", README)
    assert "docs/images/readme.png" in links and "CITATION.cff" in links
    assert [link for link in links if not (ROOT / link).exists()] == []
