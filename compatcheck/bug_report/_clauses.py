"""A line of prose as sentences, and a sentence as clauses, English or Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SENTENCES = re.compile(
    r"(?<=[。!！;；?？])|(?<=\.)(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)\s+(?=[A-Za-z\u4e00-\u9fff`\"'(])|(?<=[a-z]{3}\.)\s+(?=\d)"
)
_TOGETHER = r"\([^()]{0,120}\)|\[[^\[\]]{0,120}\]"
_WORDS = (
    r"\s(?=(?:but|while|whereas|however|yet|though|although)\s)"
    r"|\s(?=and (?:not|now|then|the|it|i|we|get|gets|got|works?|fails?|crash\w*|hangs?|going|with)\s)"
    r"|(?=但是?|不过|可是|然而|而(?!且|不是|言))"
)
_ASIDE = r"(?=\((?=[^()\d]{0,60}[a-z\u4e00-\u9fff][^()]{0,60}\d\.\d)[^()]{0,120}\))"
_CLAUSES = re.compile(
    rf"({_ASIDE})|{_TOGETHER}|(,(?=\s|[^\x00-\x7f])|(?<=[^\x00-\x7f]),|、|;|\s-{{1,2}}\s|\s?[–—]+\s?"
    rf"|(?<!\d):(?=\s(?!v?\d))|{_WORDS})",
    re.I,
)


def sentences(line: str) -> Iterator[str]:
    """The sentences of a line in its order; together they are the line, but for blanks."""
    return (sentence for sentence in _SENTENCES.split(line) if sentence.strip())


def clauses(sentence: str) -> Iterator[str]:
    """The clauses of a sentence in its order; joined they are the sentence."""
    start = 0
    for match in _CLAUSES.finditer(sentence):
        cut = match[1] is not None or match[2] is not None
        if cut and sentence[start : match.end()].strip():
            yield sentence[start : match.end()]
            start = match.end()
    if sentence[start:].strip():
        yield sentence[start:]
