"""Contrasts: two values of one fact, of which one works and the other does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compatcheck.bug_report._claims import Claim, by_path, same, standing, values_of
from compatcheck.environment import Environment, Location, Unknown
from compatcheck.results.cases import FACTUAL, Contrast

_MOST = 8
_UNFIT = ("report.", "missing_names", "interface_errors", "distributions_complete", "trainer.")


def contrasts(claims: Sequence[Claim], facts: Environment, source: str) -> tuple[Contrast, ...]:
    """What works beside what does not, of each fact; ``failed`` is None where no line says with what it fails."""
    found = (
        each
        for path, group in by_path(claims).items()
        if not path.startswith(_UNFIT)
        for each in _of(group, facts, source)
    )
    return tuple(sorted(found, key=lambda contrast: contrast.location.line or 0))


def _of(group: Sequence[Claim], facts: Environment, source: str) -> Iterator[Contrast]:
    path = group[0].path
    worked: list[Claim] = []
    for claim in group:
        settled = claim.how == "worked" and claim.doubt is None and claim.value is not None
        if settled and len(worked) < _MOST and not any(same(path, each.value, claim.value) for each in worked):
            worked.append(claim)
    failed = [] if not worked else _failed(path, group, facts)
    factual = [claim for claim in group if claim.how in FACTUAL and claim.doubt is None]
    for claim in worked:
        against = [value for value in failed if not same(path, value, claim.value)]
        if not against and (failed or any(same(path, each.value, claim.value) for each in factual[:_MOST])):
            continue
        for value in against or [None]:
            yield Contrast(path, value, claim.value, Location(source, claim.line))


def _failed(path: str, group: Sequence[Claim], facts: Environment) -> list[Any]:
    """The value at fault: the known one, else those that lines say to fail."""
    value = facts.get(path)
    if not isinstance(value, Unknown) and value is not None:
        return [value]
    return values_of(path, standing(group))
