"""What a page of HTML holds and refers to."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br"}
HOSTILE = "x</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)><!--\u2028"
"""Text that tries to break out of wherever it is put."""


class Page(HTMLParser):
    """What a page refers to; raises AssertionError where an element is left open or closed twice."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.handlers: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        assert len(named) == len(attrs)
        self.seen.append(tag)
        self.handlers += [name for name in named if name.startswith("on") or name == "style"]
        self.ids += [named["id"] or ""] if "id" in named else []
        (self.links if tag == "a" else self.loads).extend(
            value for name, value in named.items() if name in ("href", "src", "srcset", "data") and value
        )
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)
