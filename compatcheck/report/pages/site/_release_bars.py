"""The affected ranges of a package as a bar over its releases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from compatcheck.report.pages.markup import Html, joined, tag

_WIDTH, _LEFT, _RIGHT = 640, 4, 22
_TRACK, _THICK = 18, 12
_APART = 44
"""Least distance of two years' labels."""

Release = tuple[str, str]


class Run(NamedTuple):
    """Affected releases in a row, as places among all releases."""

    first: int
    last: int


def bar(name: str, condition: str, releases: Sequence[Release], within: Callable[[str, str], bool], key: str) -> Html:
    """A figure of the releases that lie in a range, and the same in a sentence; ``key`` is unique on the page."""
    inside = [within(condition, version) for version, _ in releases]
    runs = [Run(places[0], places[-1]) for places in _grouped(inside)]
    is_open = bool(runs) and runs[-1].last == len(releases) - 1 and not {"<", "=="} & set(_operators(condition))
    sentence = _sentence(name, condition, releases, runs, is_open)
    if not releases:
        return tag("figure", tag("figcaption", sentence), class_="bar")
    drawing = tag(
        "svg",
        tag("rect", class_="track", x=_LEFT, y=_TRACK, width=_WIDTH - _LEFT - _RIGHT, height=_THICK, rx=3),
        *(_run(run, len(releases)) for run in runs),
        _arrow() if is_open else None,
        *_years(releases),
        _newest(len(releases)),
        view_box=f"0 0 {_WIDTH} 56",
        role="img",
        aria_labelledby=key,
    )
    return tag("figure", drawing, tag("figcaption", sentence, id=key), class_="bar")


def _operators(condition: str) -> Iterator[str]:
    for part in condition.split(","):
        yield "==" if part.strip().startswith("==") else part.strip()[:1]


def _grouped(inside: Sequence[bool]) -> Iterator[list[int]]:
    for affected, places in groupby(range(len(inside)), key=inside.__getitem__):
        if affected:
            yield list(places)


def _sentence(name: str, condition: str, releases: Sequence[Release], runs: Sequence[Run], is_open: bool) -> Html:
    label = joined((tag("code", f"{name} {condition}"), ": "))
    if not releases:
        return joined((label, "the days of this package's releases are not recorded."))
    if not runs:
        return joined((label, "no final release since ", releases[0][1], " lies in this range."))
    spans = [_span(releases, run) for run in runs]
    count = sum(run.last - run.first + 1 for run in runs)
    end = " The newest release is affected, and no end is known." if is_open else ""
    newest = f" Newest: {releases[-1][0]} ({releases[-1][1]})."
    return joined((label, f"{count} of {len(releases)} releases, {' and '.join(spans)}.", newest, end))


def _span(releases: Sequence[Release], run: Run) -> str:
    first, last = releases[run.first], releases[run.last]
    if run.first == run.last:
        return f"{first[0]} ({first[1]})"
    return f"{first[0]} to {last[0]} ({first[1]} to {last[1]})"


def _x(place: float, count: int) -> float:
    return round(_LEFT + place * (_WIDTH - _LEFT - _RIGHT) / count, 1)


def _run(run: Run, count: int) -> Html:
    start = _x(run.first, count)
    width = max(_x(run.last + 1, count) - start, 3)
    return tag("rect", class_="affected", x=start, y=_TRACK - 2, width=f"{width:.1f}", height=_THICK + 4)


def _arrow() -> Html:
    x, middle = _WIDTH - _RIGHT, _TRACK + _THICK / 2
    return tag("path", class_="affected", d=f"M{x} {middle - 10}L{x + 14} {middle}L{x} {middle + 10}Z")


def _newest(count: int) -> Html:
    x = _x(count, count)
    mark = tag("line", class_="newest", x1=x, x2=x, y1=_TRACK - 6, y2=_TRACK + _THICK + 6)
    return joined((mark, tag("text", "newest", x=x, y=10, text_anchor="end")))


def _years(releases: Sequence[Release]) -> Iterator[Html]:
    shown: list[tuple[str, float]] = []
    for year, places in groupby(range(len(releases)), key=lambda place: releases[place][1][:4]):
        x = _x(next(places), len(releases))
        if (not shown or x - shown[-1][1] >= _APART) and x < _WIDTH - _RIGHT - _APART / 2:
            shown.append((year, x))
    yield tag("path", class_="year", d="".join(f"M{x} {_TRACK + _THICK}v6" for _, x in shown))
    yield from (tag("text", year, x=x, y=52) for year, x in shown)
