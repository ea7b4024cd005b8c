"""A line of prose as sentences, and a sentence as clauses, English or Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SENTENCES = re.compile(
    r"(?<=[。!！;；?？])|(?<=\.)(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)\s+(?=[A-Za-z\u4e00-\u9fff`\"'(])"
    r"|(?<=[a-z]{3}\.)\s+(?=\d)"
)
_TOGETHER = r"\([^()]{0,120}\)|\[[^\[\]]{0,120}\]"
_WORDS = (
    r"\s(?=(?:until|till)\s(?:i|we|the|it|my|our|yesterday|last)\s)|\s(?=(?:but|while|whereas|however|yet|though"
    r"|although)\s)|\s(?=and (?:not|now|then|the|it|i|we|get|gets|got|works?|fails?|crash\w*|hangs?|going|with|did"
    r"|ran|have|had|use|used|installed)\s)|(?<=[✅✔❌✗])\s|\s(?=as (?:required|needed|recommended|demanded"
    r"|suggested)\b)|\s(?=(?:as|because|since)\s(?:the\s)?[\w-]{1,20}\s(?:needs?|wants?|requires?|demands?|says?"
    r"|recommends?|asks?)\b)|(?=但是?|不过|可是|然而|而(?!且|不是|言))"
)
_ASIDE = (
    r"(?=\((?=[^()]{0,80}(?:\b(?:other|before|works?|worked|fine|fails?|failed|ok|requires?|required|supports?"
    r"|needs?|old|on the)\b|之前|另|旧|老|要求|需要|支持|原来|正常|报错|没问题))[^()]{0,120}\))"
)
_CLAUSES = re.compile(
    rf"({_ASIDE})|{_TOGETHER}|(,(?=\s|[^\x00-\x7f])|(?<=[^\x00-\x7f]),|、|;"
    rf"|(?-i:(?<=[\u4e00-\u9fff])\s(?=[\u4e00-\u9fff]))|\s-{{1,2}}\s|\s?[–—]+\s?|(?<!\d)(?<!for)(?<!with):(?=\s(?!v?\d))"
    rf"|{_WORDS})",
    re.I,
)


def sentences(line: str) -> Iterator[str]:
    """The sentences of a line in its order; together they are the line, but for blanks."""
    return (sentence for sentence in _SENTENCES.split(line) if sentence.strip())


def clauses(sentence: str) -> Iterator[str]:
    """The clauses of a sentence in its order; joined they are the sentence."""
    start, aside = 0, False
    for match in _CLAUSES.finditer(sentence):
        closes = aside and match[1] is None and match[2] is None
        if (closes or match[1] is not None or match[2] is not None) and sentence[start : match.end()].strip():
            yield sentence[start : match.end()]
            start = match.end()
        aside = match[1] is not None
    if sentence[start:].strip():
        yield sentence[start:]
