"""Translate texts that were put together elsewhere, such as a reason from a probe's process, by their templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from compatcheck.language import marked

_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_WORD = re.compile(r"[A-Za-z]{2,}")
_MARKS = {"; ": marked("; "), ": ": marked(": "), ", ": marked("{before}, {after}")}
"""What joins parts of a text, the widest first, and the text that says how another language joins them."""
_LIST = re.compile(r"[^\s,]+(?:, [^\s,]+)+")
"""Names or values with commas between them."""
_LEAST_WORDS = 2
_MOST_NESTED = 4

Translate = Callable[[str], str]


class Template:
    """A text with placeholders, as ``{0} is not installed``; one that begins or ends with a space goes on there."""

    def __init__(self, text: str) -> None:
        self.text = text
        whole = f"{'{before}' * text.startswith((' ', '; ', ', '))}{text}{'{after}' * text.endswith(' ')}"
        self.pieces = _PLACEHOLDER.split(whole)[::2]
        self.names = _PLACEHOLDER.findall(whole)
        self.anchor = max(self.pieces, key=len)
        self._pattern: re.Pattern[str] | None = None

    def values(self, text: str) -> dict[str, str] | None:
        """What fills the placeholders of a text made from this template, None for any other text."""
        if self.anchor not in text:
            return None
        if self._pattern is None:
            self._pattern = re.compile("(.+?)".join(map(re.escape, self.pieces)), re.DOTALL)
        found = self._pattern.fullmatch(text)
        return dict(zip(self.names, found.groups())) if found else None


def templates(texts: Iterable[str]) -> list[Template]:
    """Those of the texts that have placeholders and enough words to be told apart, the longest first."""
    return sorted(
        (Template(text) for text in texts if _words(text) >= _LEAST_WORDS and ("{" in text or text != text.strip())),
        key=lambda template: -sum(map(len, template.pieces)),
    )


def translated(text: str, known: list[Template], exact: Translate, depth: int = 0) -> str:
    """The text in the other language, as far as it is made of known texts; unknown parts stay as they are."""
    told = exact(text)
    if told != text or depth > _MOST_NESTED:
        return told

    def inside(part: str) -> str:
        return translated(part, known, exact, depth + 1)

    parts = text.split("; ")
    sentences = [inside(part) for part in parts] if len(parts) > 1 else []
    if sentences and all(each != part for each, part in zip(sentences, parts)):
        return exact("; ").join(sentences)
    if depth and _LIST.fullmatch(text):
        return text.replace(", ", exact(", "))
    for template in known:
        values = template.values(text)
        if values is not None:
            return _filled(exact(template.text), {name: inside(value) for name, value in values.items()})
    mark = next((mark for mark in _MARKS if mark in text), None)
    if mark is None:
        return text
    parts = text.split(mark)
    pieces = [inside(part) for part in parts]
    return text if pieces == parts else _PLACEHOLDER.sub("", exact(_MARKS[mark])).join(pieces)


def _filled(template: str, values: Mapping[str, str]) -> str:
    told = _PLACEHOLDER.sub(lambda place: values[place[1]], template)
    return f"{values.get('before', '')}{told}{values.get('after', '')}"


def _words(text: str) -> int:
    return len(_WORD.findall(_PLACEHOLDER.sub("", text)))
