"""The text of a web page that was saved or copied as HTML, each piece in the line where it stands."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from compatcheck.files.lazy_patterns import LazyPattern

BREAK = "\x1e"
"""Stands between two lines of text that are one line of the HTML."""

_HEAD = 4096
_PAGE = LazyPattern(
    r"\s{0,200}(?:<\?xml[^>]{0,200}>\s{0,200})?(?:<!--.{0,400}?-->\s{0,200})?<(?:!doctype html|html|head|body)\b",
    re.I | re.S,
    marks=(
        "html",
        "head",
        "body",
    ),
)
_CLOSED = re.compile(r"</(?:div|p|span|a|li|ul|td|tr|table|h[1-6]|article|section|body|pre)\s{0,4}>", re.I)
_FEWEST_CLOSED = 6
_UNSEEN = ("script", "style", "nav", "footer", "aside", "noscript", "template", "svg", "iframe", "button", "select")
_UNSEEN_ROLES = ("navigation", "banner", "complementary", "contentinfo", "search", "dialog", "alertdialog", "menu")
_UNSEEN_NAMES = re.compile(
    r"(?<![a-z])(?<!has-)(?<!with-)(?<!no-)(?:side-?bar|cookie\w*|advert\w*|ads?|footer|nav(?:bar|igation)?|menu"
    r"|breadcrumbs?|related|recommend\w*"
    r"|newsletter|share|social|toolbar|popup|modal)(?![a-z])",
    re.I,
)
_WHOLE = ("html", "body", "main", "article")
_FEWEST_SEEN = 5
_LINES = (
    *(
        "p",
        "div",
        "br",
        "li",
        "ul",
        "ol",
        "tr",
        "table",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "section",
        "article",
        "pre",
    ),
    *("title", "dt", "dd", "blockquote", "details", "summary", "header", "main", "hr", "figure"),
)
_CELLS = ("td", "th")
_VOID = ("br", "hr", "img", "meta", "link", "input", "source", "wbr", "area", "base", "col", "embed", "track", "param")
_LANGUAGE = LazyPattern(
    r"(?:language|lang|highlight-source)-([a-z+]{1,12})",
    marks=(
        "lang",
        "highlight-source",
    ),
)


def is_html(text: str) -> bool:
    """Whether a text is a page of HTML or a part of one, and not Markdown with some tags in it."""
    head = text[:_HEAD]
    if _PAGE.match(head):
        return True
    return head.lstrip().startswith("<") and len(_CLOSED.findall(head)) >= _FEWEST_CLOSED


def text_of(html: str) -> str:
    """What a reader of the page sees, without its scripts, menus and side bars; code stands in fences.

    Where the names of the elements would leave out nearly everything, they count for nothing.
    """
    named, whole = (_read(html, by_name) for by_name in (True, False))
    return named if len(named.split()) * _FEWEST_SEEN >= len(whole.split()) else whole


def _read(html: str, by_name: bool) -> str:
    reader = _Reader(html.count("\n") + 1, by_name)
    reader.feed(html)
    reader.close()
    return reader.text()


class _Reader(HTMLParser):
    """Collects the text of each line of the source; what is inside of an unseen element is left out."""

    def __init__(self, count: int, by_name: bool) -> None:
        super().__init__(convert_charrefs=True)
        self._by_name = by_name
        self._lines: list[list[str]] = [[] for _ in range(count)]
        self._open: list[tuple[str, bool]] = []
        self._unseen = 0
        self._code = 0

    def text(self) -> str:
        return "\n".join(_tidied("".join(line)) for line in self._lines)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _LINES:
            self._put(BREAK)
        elif tag in _CELLS:
            self._put(" | ")
        if tag in _VOID:
            return
        unseen = tag in _UNSEEN or (tag not in _WHOLE and self._is_unseen(dict(attrs)))
        self._open.append((tag, unseen))
        self._unseen += unseen
        if tag == "pre" and not self._unseen:
            self._code += 1
            named = _LANGUAGE.search(dict(attrs).get("class") or "")
            self._put(f"```{named[1] if named else ''}{BREAK}")

    def handle_endtag(self, tag: str) -> None:
        if not any(name == tag for name, _ in self._open[-200:]):
            return
        while self._open:
            name, unseen = self._open.pop()
            if name == "pre" and not self._unseen and self._code:
                self._code -= 1
                self._put(f"{BREAK}```{BREAK}")
            self._unseen -= unseen
            if name == tag:
                break
        if tag in _LINES:
            self._put(BREAK)

    def handle_data(self, data: str) -> None:
        if self._unseen:
            return
        first = self.getpos()[0] - 1
        for offset, part in enumerate(data.split("\n")):
            if part and first + offset < len(self._lines):
                self._lines[first + offset].append(part.replace(BREAK, " "))

    def _is_unseen(self, attributes: dict[str, str | None]) -> bool:
        if "hidden" in attributes or attributes.get("aria-hidden") == "true":
            return True
        names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"[:400]
        by_name = attributes.get("role") in _UNSEEN_ROLES or _UNSEEN_NAMES.search(names)
        return self._by_name and bool(by_name)

    def _put(self, mark: str) -> None:
        if not self._unseen:
            self._lines[self.getpos()[0] - 1].append(mark)


def _tidied(line: str) -> str:
    """One line without empty pieces at its ends, runs of breaks made one."""
    return BREAK.join(piece.rstrip() for piece in line.split(BREAK) if piece.strip())
