"""A range that requirements ask for, against a range known to be bad: all of it, some of it, or none.

What is asked for is a PEP 440 specifier, and an installer takes final releases of it; the known-bad range lies on the
total order of `compatcheck.packages.versions`. All of a range is bad where the whole interval lies in the bad one,
which holds whatever is released in future. None of it is where the two share no version that is likely to exist:
neither a version that one of them names, nor a final release of as many numbers as they are written in (three at
least).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.version import Version

from compatcheck.packages.versions import Comparator, parse_range

_FEW_SERIES = 3
"""A range over at most so many minor series is one that somebody chose with its releases in mind."""


class Interval(NamedTuple):
    """Versions from ``low`` to ``high``; None is no bound on that side."""

    low: Version | None = None
    low_closed: bool = False
    high: Version | None = None
    high_closed: bool = False


class Requested(NamedTuple):
    """What a specifier lets an installer take: some intervals, in order, and the bounds it names."""

    pieces: tuple[Interval, ...]
    bounds: tuple[Version, ...]


class Overlap(NamedTuple):
    """Whether what is asked for is bad: all (True), none (False), or some of it or nobody can say (None).

    ``partial`` tells the former from the latter, and ``telling`` whether it is worth a finding. ``newest`` tells that
    neither range has an upper end, so that a fresh install takes a bad version.
    """

    holds: bool | None
    partial: bool = False
    telling: bool = False
    newest: bool = False


@lru_cache(maxsize=1024)
def compare(asked: str, bad: str) -> Overlap:
    """The range asked for, as ``>=2.4,<2.6``, against the bad one; neither all nor none where the former is no range.

    Part of a range being bad is worth telling where an installer may well take that part. A fresh install takes the
    newest release allowed, so a range without an upper end says nothing about old faults, but all about one that the
    newest release still has. A range with an upper end tells if the bad part reaches that end, or if it spans no more
    than three minor series, since then every release in it is one its author had in mind.
    """
    requested = parse_requested(asked)
    if requested is None or not any(_likely(piece, requested.bounds) for piece in requested.pieces):
        return Overlap(None)
    comparators = parse_range(bad)
    condition = interval_of(comparators)
    if condition is None:
        return Overlap(None)
    if all(_within(piece, condition) for piece in requested.pieces):
        return Overlap(True)
    named = (*requested.bounds, *(bound for _, bound in comparators))
    shared = [_intersection(piece, condition) for piece in requested.pieces]
    if not any(_likely(part, named) for part in shared):
        return Overlap(False)
    end, shared_end = requested.pieces[-1], shared[-1]
    ends_alike = (shared_end.high, shared_end.high_closed) == (end.high, end.high_closed)
    reaches = end.high is not None and ends_alike and not _is_empty(shared_end)
    newest = end.high is None and shared_end.high is None
    return Overlap(None, True, reaches or _is_narrow(requested.pieces), newest)


@lru_cache(maxsize=1024)
def parse_requested(text: str) -> Requested | None:
    """The intervals of a PEP 440 specifier, or None where the text is none."""
    try:
        clauses = list(SpecifierSet(text))
        whole, cuts = Interval(), []
        for clause in clauses:
            if clause.operator == "!=":
                cuts.append(_excluded(clause.version))
            else:
                whole = _intersection(whole, _interval(clause))
        bounds = tuple(Version(clause.version.removesuffix(".*")) for clause in clauses)
    except (InvalidSpecifier, ValueError):
        return None
    pieces = [whole]
    for cut in cuts:
        pieces = [part for piece in pieces for part in _without(piece, cut)]
    return Requested(tuple(piece for piece in pieces if not _is_empty(piece)), bounds)


def _excluded(text: str) -> Interval:
    version = Version(text.removesuffix(".*").partition("+")[0])
    if text.endswith(".*"):
        return Interval(_first(version), True, _first(_bumped(version, len(version.release))))
    return Interval(version, True, version, True)


def _interval(clause: Specifier) -> Interval:
    """The versions that one clause admits, less the pre-releases that no installer takes for it."""
    wild = clause.version.endswith(".*")
    version = Version(clause.version.removesuffix(".*").partition("+")[0])
    operator = clause.operator
    if wild:
        return Interval(version, True, _first(_bumped(version, len(version.release))))
    if operator == "~=":
        return Interval(version, True, _first(_bumped(version, len(version.release) - 1)))
    if operator in (">=", ">"):
        return Interval(version, operator == ">=")
    if operator == "<=":
        return Interval(high=version, high_closed=True)
    if operator == "<":
        return Interval(high=version if version.is_prerelease else _first(version))
    return Interval(version, True, version, True)


def _first(version: Version) -> Version:
    """The very first of the pre-releases of a version, below which everything of the series before it lies."""
    return version if version.is_prerelease or version.is_postrelease else Version(f"{version}.dev0")


def _bumped(version: Version, count: int) -> Version:
    release = version.release[:count]
    return _release(version.epoch, (*release[:-1], release[-1] + 1))


def _release(epoch: int, numbers: tuple[int, ...]) -> Version:
    return Version(f"{epoch}!{'.'.join(map(str, numbers))}")


def interval_of(comparators: tuple[Comparator, ...]) -> Interval | None:
    """The interval of a known-bad range; None where no version meets it."""
    result = Interval()
    for operator, bound in comparators:
        result = _intersection(
            result,
            Interval(
                bound if operator in (">=", ">", "==") else None,
                operator != ">",
                bound if operator in ("<=", "<", "==") else None,
                operator != "<",
            ),
        )
    return None if _is_empty(result) else result


def _intersection(one: Interval, other: Interval) -> Interval:
    lows = [(each.low, not each.low_closed) for each in (one, other) if each.low is not None]
    highs = [(each.high, each.high_closed) for each in (one, other) if each.high is not None]
    low, opened = max(lows, default=(None, True))
    high, closed = min(highs, default=(None, False))
    return Interval(low, not opened, high, closed)


def _without(piece: Interval, cut: Interval) -> Iterator[Interval]:
    below = _intersection(piece, Interval(high=cut.low, high_closed=not cut.low_closed))
    above = _intersection(piece, Interval(low=cut.high, low_closed=not cut.high_closed))
    yield from (part for part in (below, above) if not _is_empty(part))


def _is_empty(piece: Interval) -> bool:
    if piece.low is None or piece.high is None:
        return False
    return piece.low > piece.high or (piece.low == piece.high and not (piece.low_closed and piece.high_closed))


def _within(piece: Interval, other: Interval) -> bool:
    shared = _intersection(piece, other)
    return (shared.low, shared.high) == (piece.low, piece.high) and (
        (piece.low is None or shared.low_closed == piece.low_closed)
        and (piece.high is None or shared.high_closed == piece.high_closed)
    )


def _likely(piece: Interval, named: tuple[Version, ...] = ()) -> bool:
    """Whether a version that is likely to exist lies in the interval."""
    ends = [bound for bound in (piece.low, piece.high) if bound is not None]
    length = max((len(each.release) for each in (*ends, *named)), default=0)
    return any(_inside(piece, version) for version in (*named, *_finals_from(piece, length)))


def _finals_from(piece: Interval, length: int) -> Iterator[Version]:
    """The first final releases from the low end of the interval on."""
    if piece.low is None:
        yield Version("0")
        return
    padded = (*piece.low.release, *(0 for _ in range(max(length, 3) - len(piece.low.release))))
    yield _release(piece.low.epoch, padded)
    yield _release(piece.low.epoch, (*padded[:-1], padded[-1] + 1))


def _inside(piece: Interval, version: Version) -> bool:
    return not _is_empty(_intersection(piece, Interval(version, True, version, True)))


def _is_narrow(pieces: tuple[Interval, ...]) -> bool:
    low, high = pieces[0].low, pieces[-1].high
    if low is None or high is None or low.epoch != high.epoch:
        return False
    (major, minor), (last_major, last_minor) = (*low.release, 0)[:2], (*high.release, 0)[:2]
    return major == last_major and last_minor - minor <= _FEW_SERIES
