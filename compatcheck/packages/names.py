"""What stages agree on about names and version specifiers."""

from __future__ import annotations

import re

_SEPARATORS = re.compile(r"[-_.]+")
_EDGE = re.compile(r"\s*(>=|<=|===?|~=)\s*([^\s,*]+)\s*$")


def normalised(name: str) -> str:
    """The name as PEP 503 compares it."""
    return _SEPARATORS.sub("-", name).lower()


def edge(specifier: str) -> str | None:
    """The version that a specifier names and itself allows: the one that was found good. The last one counts."""
    matches = [match for match in map(_EDGE.match, specifier.split(",")) if match]
    return matches[-1][2] if matches else None
