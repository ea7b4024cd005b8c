"""A finding in plain lines, for the formats whose fields hold text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from compatcheck.language import comma_list
from compatcheck.language import gettext as _
from compatcheck.report import because
from compatcheck.report.steps import step_texts
from compatcheck.results.findings import Finding, ProbeResult


def lines(finding: Finding) -> Iterator[str]:
    """What is seen, what it rests on, what is not known, what its probe found, and each way out."""
    yield finding.summary
    if rests_on := because.sentence(finding):
        yield rests_on
    if finding.status == "possible":
        yield undecided(finding)
    if finding.probe:
        yield probe_text(finding.probe)
    for number, remedy in enumerate(finding.remedies):
        label = _("or: {steps}") if number else _("fix: {steps}")
        yield label.format(steps=_(", and ").join(step_texts(remedy)))


def undecided(finding: Finding) -> str:
    """Why a finding is no more than possible."""
    missing = comma_list(dict.fromkeys(finding.missing))
    if not missing:
        return _("reported, but not yet confirmed by anyone")
    return _("unknown facts that decide: {facts}").format(facts=missing)


def probe_text(result: ProbeResult) -> str:
    return _("probe {probe}: {outcome}, {why}").format(probe=result.probe, outcome=result.outcome, why=result.why)


def first_fix(finding: Finding) -> str:
    """The best way out, as a sentence."""
    return _("Fix: {steps}.").format(steps=_(", and ").join(step_texts(finding.remedies[0])))


def more(finding: Finding, spell: Callable[[str], str] = str) -> str:
    """Where the whole entry is, with the command spelled as the format spells code."""
    return _("more: {command}").format(command=spell(f"compatcheck explain {finding.id}"))
