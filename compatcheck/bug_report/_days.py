"""What a report of some day cannot state: a release that was not out yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from compatcheck.bug_report._claims import Claim
from compatcheck.packages.shipped_tables import shipped_table
from compatcheck.results.cases import FACTUAL

_LATER = "names a release of {}, after the day of the report"


def doubt_later_releases(claims: Iterable[Claim], day: str | None) -> Iterator[Claim]:
    """The claims, with a doubt on each version that came out after the day; without a day as they are."""
    if not day:
        yield from claims
        return
    history: Mapping[str, Mapping[str, Any]] = shipped_table("release-history")["releases"]
    for claim in claims:
        section, _, name = claim.path.partition(".")
        factual = section == "distributions" and claim.how in FACTUAL and claim.doubt is None
        released = history.get(name, {}).get(str(claim.value).partition("+")[0]) if factual else None
        later = released is not None and str(released) > day
        yield claim._replace(doubt=_LATER.format(released)) if later else claim
