"""A range that requirements ask for, against a range known to be bad: all of it, some of it, or none.

What is asked for is a PEP 440 specifier; the known-bad range lies on the total order of
`compatcheck.packages.versions`. Both become a `VersionRange` of packaging. All of a range is bad where it is a subset
of the bad one, which holds whatever is released in future. None of it is where the two share no version that is
likely to exist: neither a version that one of them names, nor a final release of as many numbers as they are written
in (three at least).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from packaging.ranges import VersionRange
from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import Version

from compatcheck.packages.versions import Comparator, parse_range

_LOCAL = re.compile(r"\+[^,]*")
_FEW_SERIES = 3
"""A range over at most so many minor series is one that somebody chose with its releases in mind."""


class Overlap(NamedTuple):
    """Whether what is asked for is bad: all (True), none (False), or some of it or nobody can say (None).

    ``partial`` separates the former from the latter, and ``telling`` says whether it is worth a finding. With
    ``newest`` neither range has an upper end, so that a fresh install takes a bad version.
    """

    holds: bool | None
    partial: bool = False
    telling: bool = False
    newest: bool = False


class _Requested(NamedTuple):
    """The versions of a specifier, its ends (None is no bound on that side), and the releases beside its bounds."""

    versions: VersionRange
    low: Version | None
    high: Version | None
    named: tuple[Version, ...]


@lru_cache(maxsize=1024)
def compare(asked: str, bad: str) -> Overlap:
    """The range asked for, as ``>=2.4,<2.6``, against the bad one; neither all nor none where the former is no range.

    Part of a range being bad is worth a finding where an installer may well take that part. A fresh install takes the
    newest release allowed, so a range without an upper end says nothing about old faults, but all about one that the
    newest release still has. A range with an upper end counts if the bad part reaches that end, or if it spans no more
    than three minor series, since then every release in it is one its author had in mind.
    """
    requested = _parse_requested(asked)
    if requested is None or not _has_likely(requested.versions, requested.named):
        return Overlap(None)
    comparators = parse_range(bad)
    condition = _condition(comparators)
    if condition.is_empty:
        return Overlap(None)
    if requested.versions.is_subset(condition):
        return Overlap(True)
    if not _has_likely(requested.versions & condition, (*requested.named, *(bound for _, bound in comparators))):
        return Overlap(False)
    tops = [comparator for comparator in comparators if comparator.operator in ("<", "<=", "==")]
    if requested.high is None:
        return Overlap(None, True, newest=not tops)
    reaches = not any(_is_above(requested.versions, each) for each in tops)
    return Overlap(None, True, reaches or _is_narrow(requested.low, requested.high))


@lru_cache(maxsize=1024)
def _parse_requested(text: str) -> _Requested | None:
    try:
        clauses = SpecifierSet(text)
        ends = [_ends(clause) for clause in clauses if clause.operator != "!="]
        named = [Version(clause.version.removesuffix(".*").partition("+")[0]) for clause in clauses]
        versions = SpecifierSet(_LOCAL.sub("", text.replace("===", "=="))).to_range()
        for clause in clauses:
            if clause.operator == "==" and clause.version.endswith(".*"):  # no installer takes its pre-releases
                versions &= SpecifierSet(f">={clause.version.removesuffix('.*')}").to_range()
    except ValueError:
        return None
    named += [_next_series(clause) for clause in clauses if clause.operator == "~=" or clause.version.endswith(".*")]
    low = max((low for low, _ in ends if low is not None), default=None)
    high = min((high for _, high in ends if high is not None), default=None)
    return _Requested(versions, low, high, tuple(named))


def _ends(clause: Specifier) -> tuple[Version | None, Version | None]:
    version = Version(clause.version.removesuffix(".*").partition("+")[0])
    if clause.operator in (">", ">="):
        return version, None
    if clause.operator in ("<", "<="):
        return None, version
    return version, _next_series(clause) if clause.operator == "~=" or clause.version.endswith(".*") else version


def _next_series(clause: Specifier) -> Version:
    """The first release after those of ``~=2.5.0`` or ``==2.5.*``."""
    version = Version(clause.version.removesuffix(".*"))
    release = version.release[:-1] if clause.operator == "~=" else version.release
    return _release(version.epoch, (*release[:-1], release[-1] + 1))


def _release(epoch: int, numbers: Iterable[int]) -> Version:
    return Version(f"{epoch}!{'.'.join(map(str, numbers))}")


@cache
def _condition(comparators: tuple[Comparator, ...]) -> VersionRange:
    """The versions of a known-bad range on the total order, with the local builds of each."""
    result = VersionRange.full()
    for operator, bound in comparators:
        if operator in (">", "<"):
            result &= ~SpecifierSet(f"{'<=' if operator == '>' else '>='}{bound}").to_range()
        else:
            result &= SpecifierSet(f"{operator}{bound}").to_range()
    return result


def _is_above(versions: VersionRange, top: Comparator) -> bool:
    """Whether some of these versions lie above the upper end of a known-bad range."""
    beyond = Comparator(">=" if top.operator == "<" else ">", top.version)
    return not versions.is_disjoint(_condition((beyond,)))


def _has_likely(versions: VersionRange, named: tuple[Version, ...]) -> bool:
    """Whether a version that is likely to exist is among these."""
    length = max((len(each.release) for each in named), default=0)
    likely = (each for bound in named for each in (bound, *_finals_from(bound, length)))
    return any(versions.contains(each, prereleases=True) for each in (Version("0"), *likely))


def _finals_from(bound: Version, length: int) -> Iterator[Version]:
    """The first final releases from a bound on."""
    padded = (*bound.release, *(0 for _ in range(max(length, 3) - len(bound.release))))
    yield _release(bound.epoch, padded)
    yield _release(bound.epoch, (*padded[:-1], padded[-1] + 1))


def _is_narrow(low: Version | None, high: Version) -> bool:
    if low is None or low.epoch != high.epoch:
        return False
    return low.major == high.major and high.minor - low.minor <= _FEW_SERIES
