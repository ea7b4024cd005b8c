"""Two requirements of one list exclude each other by what their releases declare, so that no installer takes both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compatcheck.environment import Environment
from compatcheck.inference.inferred import Table
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.matrix.matching.match import Occurrence, TraitVerdict
from compatcheck.matrix.traits._requirements import ASK, Exclusion, Requirement, declared_by, exclusions
from compatcheck.packages.release_rows import Row
from compatcheck.packages.versions import final_release

_WHY = marked("one of the two requirements has to change")


def find(environment: Environment, table: Table) -> TraitVerdict:
    """Certain for what is pinned; open where a release that came out since the table was made may accept the other."""
    found = exclusions(environment, table)
    certain = [each for each in found if not each.open_above]
    occurrences = tuple(
        _occurrence(each, declared_by(each.demanding, environment, table)[each.excluded.name])
        for each in certain or found
    )
    if found and not certain:
        return TraitVerdict(None, occurrences)
    return TraitVerdict(bool(found), occurrences)


def _occurrence(exclusion: Exclusion, rows: Sequence[Row]) -> Occurrence:
    demanding, excluded, demands, open_above = exclusion
    summary = _("{package} requires {required}; {place} requires {excluded}").format(
        package=demanding.spelled,
        required=_(" or ").join(f"{excluded.name}{demand}" for demand in demands),
        place=excluded.at or _("the list"),
        excluded=excluded.spelled,
    )
    if open_above:
        summary += _("; the requirements of a newer release may differ ({ask})").format(ask=_(ASK))
    return Occurrence(
        summary,
        (demanding.name, excluded.name),
        {excluded.name: demands[-1]},
        _accepting(demanding, excluded, rows),
        _WHY,
        excluded.at,
    )


def _accepting(demanding: Requirement, excluded: Requirement, rows: Sequence[Row]) -> Mapping[str, str]:
    """The newest releases that were looked up and take the other as it is asked for."""
    from packaging.specifiers import SpecifierSet

    if final_release(excluded.pin) is None:
        return {}
    runs = [
        (first, last) for first, last, demand, *_marker in rows if SpecifierSet(demand).contains(excluded.pin or "")
    ]
    return {demanding.name: f">={runs[-1][0]},<={runs[-1][1]}"} if runs else {}
