"""The error messages that an entry's own words quote."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compatcheck.matrix.entry import Entry

_IN_QUOTES = re.compile(r"`([^`\n]{8,300})`|\"([^\"\n]{8,300})\"")
_BEHIND_A_NAME = re.compile(
    r"\b(?:[A-Za-z_]\w*\.)*(?=[A-Z])\w{0,60}(?:Error|Exception): ([^\"`\n]+?)(?=[.;]?(?:\s\(|\s*\Z)|[.;]\s|\")"
)
_FAILING = re.compile(
    r"no module named|has no attribute|can(?:no|')t|not |(?:un)?expected|undefined|failed|missing|mismatch|"
    r"in(?:valid|compatible)|un(?:able|known|supported)|only supports|must be|error",
    re.IGNORECASE,
)
_FEWEST_WORDS = 3


def quoted_messages(entry: Entry) -> Iterator[str]:
    """What stands in quotes, or behind an exception's name, in the title or summary and reads like an error."""
    text = f"{entry.title}\n{entry.summary}".replace("\n", " ")
    for match in _BEHIND_A_NAME.finditer(text):
        yield match[1]
    for match in _IN_QUOTES.finditer(text):
        message = match[1] or match[2]
        if len(message.split()) >= _FEWEST_WORDS and _FAILING.search(message):
            yield message
