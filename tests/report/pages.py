"""A page taken apart, to see what is in it."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"br", "img", "link", "meta", "source"}


class Page(HTMLParser):
    """Elements, attributes and words of a page; wrong nesting is an error."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[tuple[str, str]] = []
        self.code: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        found = self.open.pop()
        assert found == tag, f"</{tag}> closes <{found}>"

    def handle_data(self, data):
        self.words.append((self.open[-1] if self.open else "", data))
        if self.open[-2:] == ["pre", "code"]:
            self.code.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)

    def attributes(self, tag: str, key: str) -> list[str]:
        return [found[key] or "" for name, found in self.tags if name == tag and key in found]

    @property
    def text(self) -> str:
        return " ".join(words for tag, words in self.words if tag != "style")

    @property
    def sections(self) -> list[str]:
        return self.attributes("section", "id")
