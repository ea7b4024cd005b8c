"""Regular expressions that are compiled when a text may match them: most texts need few of the hundreds there are."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator


class LazyPattern:
    """An expression that is compiled at its first use on a text that has one of its ``marks``.

    Each match of the expression contains one of them, letters in lower case.
    """

    __slots__ = ("_compiled", "flags", "marks", "pattern")

    def __init__(self, pattern: str, flags: int = 0, *, marks: tuple[str, ...]) -> None:
        self.pattern, self.flags, self.marks = pattern, flags, marks
        self._compiled: re.Pattern[str] | None = None

    def _regex_for(self, text: str, lower: str | None = None) -> re.Pattern[str] | None:
        """The compiled expression, None where the text cannot match it. ``lower`` is the text in lower case."""
        lower = text.lower() if lower is None else lower
        for mark in self.marks:
            if mark in lower:
                if self._compiled is None:
                    self._compiled = re.compile(self.pattern, self.flags)
                return self._compiled
        return None

    def search(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        regex = self._regex_for(text)
        return regex.search(text, start, end) if regex else None

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        regex = self._regex_for(text)
        return regex.match(text, start) if regex else None

    def finditer(self, text: str, start: int = 0) -> Iterator[re.Match[str]]:
        regex = self._regex_for(text)
        return regex.finditer(text, start) if regex else iter(())

    def sub(
        self, replacement: str | Callable[[re.Match[str]], str], text: str, count: int = 0, lower: str | None = None
    ) -> str:
        """As `re.Pattern.sub`; ``lower`` is the text in lower case, for a caller that has it."""
        regex = self._regex_for(text, lower)
        return regex.sub(replacement, text, count) if regex else text
