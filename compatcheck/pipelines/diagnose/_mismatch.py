"""Why an environment that was named cannot be the one that wrote what was given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compatcheck.environment.paths import distribution_of
from compatcheck.explanation import evidence
from compatcheck.explanation.features import Context
from compatcheck.explanation.ranking import Ranked
from compatcheck.language import gettext as _
from compatcheck.packages.versions import is_range, parse_version
from compatcheck.pipelines.diagnose._case import Reading
from compatcheck.results.diagnoses import Evidence


def mismatches(reading: Reading, ranked: Sequence[Ranked], context: Context) -> tuple[Evidence, ...]:
    """Versions that the input states otherwise, else an error line that the named versions rule out."""
    if not reading.named.facts:
        return ()
    return tuple(_versions(reading)) or tuple(_ruled_out(reading, ranked, context))


def _versions(reading: Reading) -> Iterator[Evidence]:
    """The versions that a text or a log states, and the named environment has another of."""
    sources = {log.path for log in reading.logs}
    environment = reading.case.environment
    for path, value in reading.named.flat().items():
        at = environment.locations.get(path)
        if (distribution_of(path) or path == "python") and at is not None and at.file in sources:
            stated = environment.get(path)
            if _differ(value, stated) and not _is_mentioned(reading, path, value):
                text = _("the given environment has {name} {value}, but the input was written with {stated}")
                yield Evidence(text.format(name=distribution_of(path) or path, value=value, stated=stated), at)


def _is_mentioned(reading: Reading, path: str, value: Any) -> bool:
    """Whether the input speaks of the named version as well, as one that was tried or that failed."""
    return any(each.path == path and not _differ(value, each.value) for each in reading.case.said)


def _differ(named: Any, stated: Any) -> bool:
    """Whether two versions are of different releases; one that is given in fewer parts is no other."""
    if not (isinstance(named, str) and isinstance(stated, str)) or is_range(named) or is_range(stated):
        return False
    ours, theirs = parse_version(named), parse_version(stated)
    if ours is None or theirs is None:
        return False
    length = min(len(ours.release), len(theirs.release))
    return ours.release[:length] != theirs.release[:length]


def _ruled_out(reading: Reading, ranked: Sequence[Ranked], context: Context) -> Iterator[Evidence]:
    """An error line that one entry alone knows, where a named version does not meet its conditions."""
    hit = [each for each in ranked if any(hit.whole and not hit.others for hit in each.weighing.hits)]
    if not hit or any(each.weighing.verdict.holds is not False for each in hit):
        return
    best = hit[0].weighing
    named = reading.named.flat()
    failed = [path for path in best.weighed.failed() if distribution_of(path) and path in named]
    if failed:
        why = next(iter(evidence.speaks_against(best, context)))
        text = _("an error line matches {entry}, but the given environment rules this entry out: {why}")
        yield Evidence(text.format(entry=best.row.id, why=why.text), best.hits[0].location)
