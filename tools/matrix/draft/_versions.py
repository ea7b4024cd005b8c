"""The versions that a reporter names as failing or working, and the range that they bear out."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from compatcheck.packages.names import normalised

_NAMED = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9_-]{0,60}?)[ \t]*(?:===?|[=@:-]|[ \t])[ \t]*)?"
    r"\bv?(\d{1,6}(?:\.\d{1,8}){1,4}[A-Za-z0-9.+]{0,24})"
)
_MOST = 40


class Range(NamedTuple):
    """A range of known-bad versions with the neighbours that are known to work; empty where nothing is known.

    ``open`` says what nobody told.
    """

    text: str
    bad: str | None
    below: str | None
    above: str | None
    open: tuple[str, ...]


def versions_of(text: str, package: str, others: Collection[str]) -> list[Version]:
    """The versions in the text that are the package's: those without a name, and those behind its own."""
    found: list[Version] = []
    for match in _NAMED.finditer(text):
        name = normalised(match[1] or "")
        if name != package and name in others:
            continue
        try:
            found.append(Version(match[2].rstrip(".").partition("+")[0]))
        except InvalidVersion:
            continue
    return sorted(set(found))[:_MOST]


def range_of(fails: Sequence[Version], works: Sequence[Version], installed: Version | None) -> Range:
    """From the first version that fails to the next that works; where none is known to, no further than what failed."""
    bad = set(fails) | ({installed} if installed and installed not in works else set())
    bad -= set(works)
    if not bad:
        return Range("", None, None, None, ("which versions fail",))
    between = [each for each in works if min(bad) < each < max(bad)]
    told: list[str] = []
    if between:
        bad = {each for each in bad if each > max(between)}
        told.append(f"{between[-1]} works between versions that fail: does an earlier range need a table of its own?")
    below = max((each for each in works if each < min(bad)), default=None)
    above = min((each for each in works if each > max(bad)), default=None)
    if above:
        text = f">={min(bad)},<{above}"
        told.append(f"does the last release before {above} fail, and the first after {max(bad)}?")
    else:
        text = f"=={max(bad)}" if len(bad) == 1 else f">={min(bad)},<={max(bad)}"
        told.append("no later version is known to work: which is the first?")
    if below is None:
        told.append(f"no version below {min(bad)} is known to work: which is the last?")
    names = [str(each) if each else None for each in (below, above)]
    return Range(text, str(installed if installed in bad else max(bad)), names[0], names[1], tuple(told))
