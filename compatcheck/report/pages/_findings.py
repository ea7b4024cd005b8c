"""Findings as a reader needs them: what it is, what to do with something to copy, and what it stands on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compatcheck.environment import Location
from compatcheck.language import gettext as _
from compatcheck.language import marked
from compatcheck.report.because import held
from compatcheck.report.pages._error_bars import details
from compatcheck.report.pages.markup import Html, impact_mark, joined, link, listed, section, tag
from compatcheck.report.steps import lead, to_copy
from compatcheck.results.findings import Finding, HeldFact, ProbeResult, Remark, Remedy, Status, Step, Suppressed

MARKS: dict[Status, tuple[str, str]] = {
    "confirmed": ("bad", "×"),
    "affected": ("bad", "×"),
    "possible": ("may", "?"),
    "refuted": ("good", "✓"),
}
_MEANINGS: dict[Status, str] = {
    "confirmed": marked("confirmed: its probe failed on this machine"),
    "affected": marked("affected: every condition holds"),
    "possible": marked("possible: it may apply, but facts are missing"),
    "refuted": marked("refuted: its probe passed on this machine"),
}
_UNCONFIRMED = marked("based on unconfirmed reports only")
_OUTCOMES = {
    "pass": marked("passed"),
    "watch": marked("passed, and is worth watching"),
    "fail": marked("failed"),
    "skip": marked("could not run"),
    "crash": marked("crashed"),
    "timeout": marked("took too long"),
}


def cards(heading: str, findings: Sequence[Finding], lead: str = "") -> Html:
    return section(heading, tag("p", lead) if lead else None, *map(card, findings)) if findings else Html()


def card(finding: Finding) -> Html:
    return _card(
        finding, sign(finding.status), _(_MEANINGS[finding.status]), MARKS[finding.status][0], _missing(finding)
    )


def explained(finding: Finding, mark: Html, fit: str, parts: Sequence[Html], kind: str) -> Html:
    """A finding as an explanation: what speaks for it stands where a check says which facts are missing."""
    return _card(finding._replace(because=()), mark, fit, kind, *parts)


def _card(finding: Finding, mark: Html, meaning: str, kind: str, *parts: Html) -> Html:
    return tag(
        "article",
        _heading(finding, mark, meaning),
        tag("p", finding.summary),
        _because(finding.because),
        tag("details", tag("summary", _("Why")), tag("p", finding.mechanism)) if finding.mechanism else None,
        section_of(_("What to do") if len(finding.remedies) < 2 else _("What to do, best first"), remedies(finding)),
        *parts,
        _probe(finding.probe),
        _evidence(finding.evidence),
        class_=f"finding {kind}-finding",
    )


def _because(facts: Sequence[HeldFact]) -> Html:
    return section_of(_("Why it concerns you"), tag("p", held(facts))) if facts else Html()


def _heading(finding: Finding, mark: Html, meaning: str) -> Html:
    place = f" · {finding.location}" if finding.location else ""
    about = f" {finding.id} · {_(finding.confidence)} · {' '.join(finding.packages)}{place}"
    return joined(
        (
            tag("h3", mark, " ", finding.title),
            tag("p", impact_mark(finding.impact, _(finding.impact)), about, class_="meta"),
            tag("p", meaning, class_="meta"),
        )
    )


def sign(status: Status) -> Html:
    kind, symbol = MARKS[status]
    return tag("span", symbol, class_=f"sign {kind}-sign", role="img", aria_label=_(status))


def section_of(name: str, content: Html) -> Html:
    return joined((tag("h4", name), content)) if content else Html()


def remedies(finding: Finding) -> Html:
    return listed(map(remedy, finding.remedies), "ol", class_="remedies")


def remedy(way: Remedy) -> Html:
    """What to copy, and the reason; a way that is only said in words is nothing to copy."""
    parts = (_step(step) for step in way.steps if step.what != (way.why,))
    return joined((*parts, tag("p", way.why, class_="why")))


def _step(step: Step) -> Html:
    """A step as what to copy, behind the words that say where it goes; one in words has nothing to copy."""
    if step.kind == "words":
        return tag("p", to_copy(step), class_="step")
    words = lead(step)
    above = tag("p", f"{words[:1].upper()}{words[1:]}", class_="step") if words else None
    return joined((above, copied(to_copy(step))))


def copied(text: str) -> Html:
    return tag("pre", tag("code", text), class_="copied")


def _missing(finding: Finding) -> Html:
    if finding.status != "possible":
        return Html()
    paths = list(dict.fromkeys(finding.missing))
    if not paths and finding.seen and finding.confidence != "reported":
        return Html()
    if not paths:
        return tag("p", _(_UNCONFIRMED))
    named = [
        joined((tag("code", path), f" ({finding.partly[path]})" if path in finding.partly else "")) for path in paths
    ]
    shown = "\n".join(f"--assume {path}=VALUE" for path in paths)
    lead = _("The finding depends on these unknown facts. Supply them (absent if there is none):")
    return joined((tag("h4", _("Missing")), tag("p", lead), listed(named), copied(shown)))


def _probe(result: ProbeResult | None) -> Html:
    if result is None:
        return Html()
    outcome = tag("p", tag("code", result.probe), f" {_(_OUTCOMES[result.outcome])}: {_(result.why)}")
    return joined((tag("h4", _("What its probe measured here")), outcome, details(result)))


def _evidence(addresses: Iterable[str]) -> Html:
    shown = [
        link(each, each.removeprefix("https://")) if each.startswith("https://") else tag("code", f"matrix/{each}")
        for each in addresses
    ]
    return tag("details", tag("summary", f"{_('Evidence')} ({len(shown)})"), listed(shown)) if shown else Html()


def set_aside(suppressed: Sequence[Suppressed]) -> Html:
    """What the user has set aside, folded, with the reasons."""
    if not suppressed:
        return Html()
    rows = [
        joined(
            (
                sign(each.finding.status),
                f" {each.finding.title} ",
                tag("small", f"{each.finding.id}{_place(each.finding.location)}, {_('by')} {_(each.by)}: {each.why}"),
            )
        )
        for each in suppressed
    ]
    return section(
        _("Suppressed"),
        tag("details", tag("summary", _("{count} not counted").format(count=len(rows))), listed(rows)),
    )


def _place(location: Location | None) -> str:
    return f", {location}" if location else ""


def remarks(given: Sequence[Remark]) -> Html:
    shown = [joined((each.text, tag("small", _place(each.location)) if each.location else None)) for each in given]
    return section(_("About your files"), listed(shown)) if shown else Html()
