"""Why a finding concerns this user: the facts that hold, each with the place that states it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from compatcheck.language import comma_list
from compatcheck.language import gettext as _
from compatcheck.report import traits
from compatcheck.results.findings import Finding, HeldFact

_OBVIOUS = ("distributions.", "training.")


def held(facts: Collection[HeldFact], most: int | None = None) -> str:
    """The facts in one text, as ``torch 2.5.0 (requirements.txt:1), attention sdpa (train.py:12)``.

    Of more than ``most``, those that a file states come first, and what is absent last; the rest are counted.
    """
    shown = list(facts)
    if most is not None and len(shown) > most:
        shown = sorted(shown, key=lambda fact: (fact.location is None, fact.value is None))[:most]
    more = len(facts) - len(shown)
    return comma_list((*map(_text, shown), *((_("{count} more").format(count=more),) if more else ())))


def sentence(finding: Finding, most: int | None = None) -> str:
    """What a finding rests on; empty if no fact of the user's is known."""
    if not finding.because:
        return ""
    text = _("known: {facts}") if finding.status == "possible" else _("because {facts}")
    return text.format(facts=held(finding.because, most))


def _text(fact: HeldFact) -> str:
    name = fact.fact
    for section in _OBVIOUS:
        name = name.removeprefix(section)
    _section, of_trait, trait = name.partition(".traits.")
    if of_trait:
        shown = traits.in_words(trait)
    elif fact.value is None:
        shown = _("no {name}").format(name=name)
    else:
        shown = f"{name} {_value(fact.value)}".rstrip()
    source = fact.location or fact.why
    return f"{shown} ({source})" if source else shown


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)) and any(isinstance(each, Mapping) for each in value):
        return ""
    return "/".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
