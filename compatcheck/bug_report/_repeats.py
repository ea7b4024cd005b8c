"""Lines of a log that say the same with other numbers: the first of them say what there is to know of the machine."""

from __future__ import annotations

import re
from collections import Counter

_FEWEST_LINES = 300
_FEWEST_CHARACTERS = 24
_MOST_ALIKE = 64
_NUMBERS = re.compile(r"\d[\d.,e+-]*|\bnan\b|\binf\b", re.I)
_BARS = re.compile(r"[#█▉▊▋▌▍▎▏ ]{2,}")


def without_repeats(text: str) -> str:
    """A long text with the lines blank that repeat others but for their numbers; numbers of lines stay true."""
    lines = text.split("\n")
    if len(lines) < _FEWEST_LINES:
        return text
    seen: Counter[str] = Counter()
    for index, line in enumerate(lines):
        if len(line) < _FEWEST_CHARACTERS:
            continue
        shape, numbers = _NUMBERS.subn("0", _BARS.sub(" ", line[:400]))
        if not numbers:
            continue
        seen[shape] += 1
        if seen[shape] > _MOST_ALIKE:
            lines[index] = ""
    return "\n".join(lines)
